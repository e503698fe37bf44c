//! What the traffic consists of: the shares of its kinds, and the laws of hosts and of lengths.
//!
//! All are whole numbers, so that a seed gives the same packets on every machine.

use base::Random;

/// What a flow is. Shares are of flows, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// TCP to port 443 that begins with a ClientHello and goes on with records of application data.
    Tls,
    /// TCP to port 80 that begins with a request and an answer.
    Http,
    /// TCP to another port.
    Stream,
    /// A query and its answer, over UDP.
    Dns,
    /// UDP datagrams that fit into a frame.
    Datagrams,
    /// UDP datagrams in fragments.
    Fragments,
    /// ICMP echo requests and replies.
    Ping,
}

/// Kinds of flows.
pub(super) const KINDS: [(Kind, u16); 7] = [
    (Kind::Tls, 300),
    (Kind::Http, 120),
    (Kind::Stream, 130),
    (Kind::Dns, 220),
    (Kind::Datagrams, 140),
    (Kind::Fragments, 20),
    (Kind::Ping, 70),
];

/// How a TCP connection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// Handshake, data, and an end in both directions.
    Complete,
    /// The one SYN is not answered.
    Unanswered,
    /// The SYN is answered with a RST.
    Refused,
}

/// How TCP connections go.
pub(super) const OPENINGS: [(Opening, u16); 3] =
    [(Opening::Complete, 850), (Opening::Unanswered, 100), (Opening::Refused, 50)];

/// The IP version of a flow (of the inner header in a tunnel).
pub(super) const VERSIONS: [(Version, u16); 2] = [(Version::V4, 800), (Version::V6, 200)];

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// What stands between a frame's addresses and its outermost IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// Nothing.
    None,
    /// An 802.1Q tag.
    Vlan,
    /// A service tag and a customer tag (802.1ad, "QinQ").
    QinQ,
    /// One MPLS label.
    Mpls,
}

/// Tags of flows.
pub(super) const TAGS: [(Tag, u16); 4] =
    [(Tag::None, 840), (Tag::Vlan, 100), (Tag::QinQ, 30), (Tag::Mpls, 30)];

/// What carries a flow's IP packets. The outer header is IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tunnel {
    /// Ethernet, as it is.
    None,
    /// VXLAN (RFC 7348).
    Vxlan,
    /// GTP-U (3GPP TS 29.281).
    Gtp,
    /// GRE (RFC 2784).
    Gre,
    /// IP in IP (RFC 2003, RFC 4213).
    IpInIp,
}

/// Tunnels of flows.
pub(super) const TUNNELS: [(Tunnel, u16); 5] = [
    (Tunnel::None, 900),
    (Tunnel::Vxlan, 30),
    (Tunnel::Gtp, 30),
    (Tunnel::Gre, 20),
    (Tunnel::IpInIp, 20),
];

/// Ranks of clients, and of servers, are below 2 to the power of this.
pub(super) const HOST_OCTAVES: u64 = 16;

/// Lengths of flows of up to 8 packets: the share in thousandths, and the shortest and longest.
///
/// Measured over 4 billion flows at the Internet-facing interface of a campus: Jurkiewicz, Rzym and Boryło,
/// "How Many Mice Make an Elephant? Modelling Flow Length and Size Distribution of Internet Traffic",
/// arXiv:1809.03486 (47.83 % of one packet, 65.34 % of up to 2, 74.89 % of up to 4, 84.13 % of up to 8).
pub(super) const MICE: [(u64, u64, u16); 4] = [(1, 1, 478), (2, 2, 175), (3, 4, 96), (5, 8, 92)];

/// Octaves of longer flows, from 9 to 65,536 packets: each has half as many flows as the one before.
///
/// This is Pareto's law with shape 1. The same measurement has 0.7 for flows that were followed for 30 days; files,
/// which a recording of seconds or minutes sees whole, have 1.0 to 1.3 (Crovella and Bestavros, "Self-Similarity in
/// World Wide Web Traffic: Evidence and Possible Causes", IEEE/ACM Transactions on Networking 5(6), 1997).
pub(super) const ELEPHANT_OCTAVES: u64 = 13;

/// One of these, by its share.
pub(super) fn pick<T: Copy>(shares: &[(T, u16)], random: &mut Random) -> T {
    let mut left = random.below(1000);
    for &(one, share) in shares {
        if left < u64::from(share) {
            return one;
        }
        left -= u64::from(share);
    }
    shares[0].0
}

/// The rank of a host, 1 to 65,535, by Zipf's law with exponent 1 in steps of octaves: the chance to fall between 2^k
/// and 2^(k+1) is the same for every k, and all ranks between them are equally likely. The first ten of 65,535
/// have 21 %.
///
/// Exponents near 1 are those of requests to sites: Adamic and Huberman, "Zipf's law and the Internet",
/// Glottometrics 3, 2002; Breslau et al., "Web Caching and Zipf-like Distributions", INFOCOM 1999.
pub(super) fn rank(random: &mut Random) -> u32 {
    let octave = random.below(HOST_OCTAVES);
    let first = 1 << octave;
    (first + random.below(first)) as u32
}

/// Packets with data of a flow, 1 to 65,536, by [`MICE`] and [`ELEPHANT_OCTAVES`]; 14 on average.
pub(super) fn packets(random: &mut Random) -> u32 {
    let mut left = random.below(1000);
    for (shortest, longest, share) in MICE {
        if left < u64::from(share) {
            return (shortest + random.below(longest + 1 - shortest)) as u32;
        }
        left -= u64::from(share);
    }
    // The last octave takes what would lie behind it.
    let octave = u64::from(random.bits().leading_zeros()).min(ELEPHANT_OCTAVES - 1);
    let first = 8 << octave;
    (first + 1 + random.below(first)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole<T>(shares: &[(T, u16)]) -> bool {
        shares.iter().map(|&(_, share)| share).sum::<u16>() == 1000
    }

    #[test]
    fn shares_add_up_and_are_picked_as_often_as_they_say() {
        assert!(whole(&KINDS) && whole(&OPENINGS) && whole(&VERSIONS));
        assert!(whole(&TAGS) && whole(&TUNNELS));
        let mut random = Random::new(1);
        let picked: Vec<Kind> = (0..100_000).map(|_| pick(&KINDS, &mut random)).collect();
        for (kind, share) in KINDS {
            let found = picked.iter().filter(|&&one| one == kind).count() as f64 / 100.0;
            assert!((found / f64::from(share) - 1.0).abs() < 0.1, "{kind:?}: {found} of 1000");
        }
    }

    #[test]
    fn flows_are_as_long_as_measured() {
        let mut random = Random::new(2);
        let lengths: Vec<u32> = (0..1_000_000).map(|_| packets(&mut random)).collect();
        for (up_to, share) in [(1, 0.4783), (2, 0.6534), (4, 0.7489), (8, 0.8413)] {
            let found = lengths.iter().filter(|&&length| length <= up_to).count() as f64 / 1e6;
            assert!((found - share).abs() < 0.003, "up to {up_to}: {found}");
        }
        let mean = lengths.iter().map(|&length| f64::from(length)).sum::<f64>() / 1e6;
        assert!((12.0..16.5).contains(&mean), "{mean}");
        assert!(lengths.iter().all(|length| (1..=65_536).contains(length)));
        assert!(lengths.iter().any(|&length| length > 32_768));
    }

    #[test]
    fn the_first_ten_hosts_have_a_fifth_and_the_last_half_a_sixteenth() {
        let mut random = Random::new(3);
        let ranks: Vec<u32> = (0..1_000_000).map(|_| rank(&mut random)).collect();
        let share = |low, high| {
            ranks.iter().filter(|rank| (low..=high).contains(*rank)).count() as f64 / 1e6
        };
        assert!((share(1, 10) - 0.211).abs() < 0.005);
        assert!((share(32_768, 65_535) - 0.0625).abs() < 0.002);
        assert_eq!(share(0, 0), 0.0);
    }
}
