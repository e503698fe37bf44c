//! What is asked of a packet without libpcap: its time, and the keys of its outermost IP header and of the tags before that. VLAN tags
//! and MPLS labels hide nothing, unlike in a filter expression, and no link type is too plain for any question.

use std::net::IpAddr;

use base::Timestamp;

use crate::condition::Condition;
use crate::expression::{all_with_flows, hosts_of};
use crate::index_key::IndexKey;
use crate::layers::{IpLayer, Layer, Layers};
use crate::protocol;

/// A question to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketTest {
    /// Source or destination is in the network of this address, whose prefix has so many bits.
    Network(IpAddr, u8),
    /// Source or destination port of TCP or UDP.
    Port(u16),
    /// Protocol behind the extension headers.
    Protocol(u8),
    /// Id of any VLAN tag.
    Vlan(u16),
    /// Any label of an MPLS stack.
    Mpls(u32),
    /// The packet was captured then, both ends included.
    Time(Timestamp, Timestamp),
    /// All of these.
    All(Vec<Self>),
    /// At least one of these.
    OneOf(Vec<Self>),
}

/// What is looked at of a packet.
struct Outer<'l> {
    tags: &'l [Layer],
    ip: Option<&'l IpLayer>,
    ports: Option<(u16, u16)>,
    time: Timestamp,
}

impl PacketTest {
    /// Whether a packet that was captured at this time passes.
    pub fn accepts(&self, layers: &Layers, time: Timestamp) -> bool {
        let all = layers.all();
        let at = all.iter().position(|layer| matches!(layer, Layer::Ip(_)));
        let mut outer =
            Outer { tags: &all[..at.unwrap_or(all.len())], ip: None, ports: None, time };
        if let Some((Layer::Ip(ip), rest)) = at.and_then(|at| all[at..].split_first()) {
            let has_ports = matches!(ip.protocol, Some(protocol::TCP | protocol::UDP));
            outer.ip = Some(ip);
            outer.ports = match rest.first() {
                Some(&Layer::Ports(source, destination)) if has_ports => {
                    Some((source, destination))
                }
                _ => None,
            };
        }
        self.holds(&outer)
    }

    fn holds(&self, outer: &Outer<'_>) -> bool {
        match self {
            Self::Network(network, bits) => outer.ip.is_some_and(|ip| {
                [ip.source, ip.destination].iter().any(|host| is_inside(host, network, *bits))
            }),
            Self::Port(port) => outer
                .ports
                .is_some_and(|(source, destination)| [source, destination].contains(port)),
            Self::Protocol(number) => outer.ip.is_some_and(|ip| ip.protocol == Some(*number)),
            Self::Vlan(id) => outer.tags.contains(&Layer::Vlan(*id)),
            Self::Mpls(label) => outer.tags.contains(&Layer::Mpls(*label)),
            Self::Time(from, to) => (*from..=*to).contains(&outer.time),
            Self::All(parts) => parts.iter().all(|part| part.holds(outer)),
            Self::OneOf(parts) => parts.iter().any(|part| part.holds(outer)),
        }
    }

    /// What every packet that passes has.
    pub fn condition(&self) -> Condition {
        match self {
            Self::Network(network, bits) => hosts_of(*network, u32::from(*bits)),
            Self::Port(port) => Condition::Key(IndexKey::Port(*port)),
            Self::Protocol(number) => Condition::Key(IndexKey::Protocol(*number)),
            Self::Vlan(id) => Condition::Key(IndexKey::Vlan(*id)),
            Self::Mpls(label) => Condition::Key(IndexKey::Mpls(*label)),
            Self::Time(..) => Condition::Any,
            Self::All(parts) => all_with_flows(parts.iter().map(Self::condition).collect()),
            Self::OneOf(parts) => Condition::one_of(parts.iter().map(Self::condition)),
        }
    }

    /// The span of time in which every packet was captured that passes; None if none can pass.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        match self {
            Self::Time(from, to) => (from <= to).then_some((*from, *to)),
            Self::All(parts) => {
                let spans = parts.iter().map(Self::span).collect::<Option<Vec<_>>>()?;
                let from = spans.iter().map(|span| span.0).max().unwrap_or(Timestamp::MIN);
                let to = spans.iter().map(|span| span.1).min().unwrap_or(Timestamp::MAX);
                (from <= to).then_some((from, to))
            }
            Self::OneOf(parts) => {
                let spans: Vec<_> = parts.iter().filter_map(Self::span).collect();
                let from = spans.iter().map(|span| span.0).min()?;
                Some((from, spans.iter().map(|span| span.1).max()?))
            }
            _ => Some((Timestamp::MIN, Timestamp::MAX)),
        }
    }
}

/// Whether an address is in a network.
fn is_inside(host: &IpAddr, network: &IpAddr, bits: u8) -> bool {
    let is_equal = |difference: u128, width: u32| {
        difference.checked_shr(width.saturating_sub(u32::from(bits))).is_none_or(|bits| bits == 0)
    };
    match (host, network) {
        (IpAddr::V4(host), IpAddr::V4(network)) => {
            is_equal(u128::from(host.to_bits() ^ network.to_bits()), 32)
        }
        (IpAddr::V6(host), IpAddr::V6(network)) => {
            is_equal(host.to_bits() ^ network.to_bits(), 128)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use format::LinkType;

    use super::*;
    use crate::dissect::dissect;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("it is an address")
    }

    /// A UDP packet from 10.0.0.1 port 5000 to 10.0.0.2 port 53, in VLANs 7 and 8 and in an MPLS stack with labels 100 and 200.
    const PACKET: [u8; 64] = [
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 0x88,
        0x47, // tags
        0, 6, 0x40, 64, 0, 0xc, 0x81, 64, // labels
        0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
        0x13, 0x88, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4, 0, 0,
    ];

    #[test]
    fn tags_and_labels_hide_nothing() {
        let mut layers = Layers::new();
        dissect(LinkType::ETHERNET, &PACKET, &mut layers);
        let time = Timestamp::from_nanos(7);
        let (host, net) = (address("10.0.0.2"), address("10.0.0.128"));
        for test in [
            PacketTest::Network(host, 32),
            PacketTest::Network(net, 24),
            PacketTest::Network(address("255.0.0.0"), 0),
            PacketTest::Port(53),
            PacketTest::Protocol(17),
            PacketTest::Vlan(7),
            PacketTest::Vlan(8),
            PacketTest::Mpls(100),
            PacketTest::Mpls(200),
            PacketTest::Time(time, time),
            PacketTest::All(vec![PacketTest::Port(53), PacketTest::Vlan(8)]),
            PacketTest::OneOf(vec![PacketTest::Port(54), PacketTest::Vlan(8)]),
        ] {
            assert!(test.accepts(&layers, time), "{test:?}");
        }
        for test in [
            PacketTest::Network(net, 25),
            PacketTest::Network(address("::"), 0),
            PacketTest::Port(17),
            PacketTest::Protocol(6),
            PacketTest::Vlan(9),
            PacketTest::Mpls(7),
            PacketTest::Time(Timestamp::from_nanos(8), Timestamp::MAX),
            PacketTest::All(vec![PacketTest::Port(53), PacketTest::Vlan(9)]),
            PacketTest::OneOf(Vec::new()),
        ] {
            assert!(!test.accepts(&layers, time), "{test:?}");
        }
    }

    #[test]
    fn the_span_is_the_smallest_that_holds_every_packet() {
        let at = Timestamp::from_nanos;
        let time = |from, to| PacketTest::Time(at(from), at(to));
        let port = PacketTest::Port(1);
        let span =
            |test: PacketTest| test.span().map(|(from, to)| (from.as_nanos(), to.as_nanos()));
        assert_eq!(span(port.clone()), Some((0, u64::MAX)));
        assert_eq!(
            span(PacketTest::All(vec![port.clone(), time(2, 9), time(5, 20)])),
            Some((5, 9))
        );
        assert_eq!(span(PacketTest::OneOf(vec![time(2, 4), time(8, 9)])), Some((2, 9)));
        assert_eq!(span(PacketTest::OneOf(vec![time(2, 4), port])), Some((0, u64::MAX)));
        let never = PacketTest::All(vec![time(2, 4), time(8, 9)]);
        assert_eq!(span(never.clone()), None);
        assert_eq!(span(PacketTest::OneOf(vec![never, time(1, 2)])), Some((1, 2)));
    }
}
