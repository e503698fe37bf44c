//! What is generated, as tshark judges it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use base::Rate;

use super::mix::{Kind, Tag, Tunnel, Version};
use super::*;
use crate::testing::Recording;

fn generate(options: &Options, queue: usize, packets: usize) -> Vec<Vec<u8>> {
    let source = Traffic::open(options).unwrap().swap_remove(queue);
    let mut sink = Recording::ending_at_packet(packets);
    let summary = source.run(&mut sink);
    assert_eq!(summary.packets, packets as u64);
    sink.packets().map(|packet| packet.data.clone()).collect()
}

/// A pcap file of these packets, a microsecond apart.
fn pcap(path: &Path, packets: &[Vec<u8>]) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for (number, packet) in (0u32..).zip(packets) {
        let length = packet.len() as u32;
        for word in [number / 1_000_000, number % 1_000_000, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    std::fs::write(path, file).unwrap();
}

const STATUSES: [&str; 5] = [
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
    "icmp.checksum.status",
    "icmpv6.checksum.status",
];

/// As Wireshark numbers them: 0 is bad.
const BAD: &str = "0";

/// What tshark finds in each packet: a line of fields. It checks checksums, and puts fragments together.
fn tshark(path: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(path).args(["--enable-protocol", "communityid", "-T", "fields"]);
    for protocol in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    command.args(fields.iter().flat_map(|field| ["-e", *field]));
    let output = command.output().expect("tshark, of the Debian package of that name");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn a_seed_makes_the_same_packets_at_every_rate_and_no_others() {
    let options = Options::default();
    let packets = generate(&options, 0, 20_000);
    assert_eq!(packets, generate(&options, 0, 20_000));
    let paced = Options { pace: Pace::Rate(Rate(1e15)), ..options };
    assert_eq!(packets, generate(&paced, 0, 20_000));
    let two = Options { queues: 2, ..options };
    for (other, queue) in [(Options { seed: 2, ..options }, 0), (two, 0), (two, 1)] {
        assert_ne!(packets[..100], generate(&other, queue, 100));
    }
}

/// What a flow is by the protocols that tshark names, and the documented share.
fn documented() -> [(&'static str, &'static [&'static str], f64); 15] {
    fn share<T: Copy + PartialEq>(shares: &[(T, u16)], one: T) -> f64 {
        shares.iter().filter(|(other, _)| *other == one).map(|&(_, n)| f64::from(n) / 1000.0).sum()
    }
    let kind = |kind| share(&mix::KINDS, kind);
    let tag = |tag| share(&mix::TAGS, tag);
    let tunnel = |tunnel| share(&mix::TUNNELS, tunnel);
    let complete = share(&mix::OPENINGS, mix::Opening::Complete);
    let tcp = kind(Kind::Tls) + kind(Kind::Http) + kind(Kind::Stream);
    [
        ("DNS", &[":dns"], kind(Kind::Dns)),
        ("TLS", &[":tls"], kind(Kind::Tls) * complete),
        ("HTTP", &[":http"], kind(Kind::Http) * complete),
        ("TCP", &[":tcp"], tcp),
        ("UDP", &[":udp:data"], kind(Kind::Datagrams) + kind(Kind::Fragments)),
        ("fragments", &[":reassembled"], kind(Kind::Fragments)),
        ("ICMP", &[":icmp"], kind(Kind::Ping)),
        ("IPv6", &[":ipv6"], share(&mix::VERSIONS, Version::V6)),
        ("VLAN", &[":vlan"], tag(Tag::Vlan) + tag(Tag::QinQ)),
        ("QinQ", &[":ieee8021ad"], tag(Tag::QinQ)),
        ("MPLS", &[":mpls"], tag(Tag::Mpls)),
        ("VXLAN", &[":vxlan"], tunnel(Tunnel::Vxlan)),
        ("GTP-U", &[":gtp"], tunnel(Tunnel::Gtp)),
        ("GRE", &[":gre"], tunnel(Tunnel::Gre)),
        ("IP in IP", &[":ip:ip:", ":ip:ipv6:"], tunnel(Tunnel::IpInIp)),
    ]
}

#[test]
fn tshark_finds_nothing_wrong_and_every_kind_as_often_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traffic.pcap");
    let packets = generate(&Options::default(), 0, 50_000);
    pcap(&path, &packets);
    let mut fields = vec!["_ws.malformed", "frame.protocols", "communityid"];
    fields.extend(["ip.reassembled.length", "ipv6.reassembled.length"]);
    fields.extend(["ip.flags.mf", "ipv6.fraghdr.more", "tls.handshake.extensions_server_name"]);
    fields.extend(STATUSES);
    let found = tshark(&path, &fields);
    assert_eq!(found.len(), packets.len());
    let mut flows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (number, line) in (1..).zip(&found) {
        let [malformed, protocols, id, reassembled @ ..] = line.as_slice() else { panic!() };
        assert!(malformed.is_empty(), "packet {number}: {line:?}");
        for (status, field) in line[8..].iter().zip(STATUSES) {
            assert!(status.split(',').all(|one| one != BAD), "packet {number}: {field}");
        }
        if line[5..7].iter().any(|more| more.contains('1')) {
            // Its ports are in another fragment.
            continue;
        }
        let whole = reassembled[..2].iter().any(|length| !length.is_empty());
        let protocols = format!("{protocols}:{}", if whole { "reassembled" } else { "" });
        for (name, marks, _) in documented() {
            if marks.iter().any(|mark| protocols.contains(mark)) {
                flows.entry(name).or_default().insert(id);
            }
        }
        flows.entry("all").or_default().insert(id);
        if !line[7].is_empty() {
            assert!(line[7].starts_with("site-") && line[7].ends_with(".example.net"), "{line:?}");
            flows.entry("ClientHello").or_default().insert(id);
        }
    }
    let all = flows["all"].len() as f64;
    for (name, _, share) in documented() {
        let found = flows.get(name).map_or(0, BTreeSet::len) as f64 / all;
        assert!(found > share / 2.0 && found < share * 2.0, "{name}: {found:.4}, not {share}");
    }
    assert_eq!(flows["ClientHello"], flows["TLS"], "every flow of TLS begins with one");
}

/// The flows of packets as tshark names them; fragments without ports are left out.
fn flows(packets: &[Vec<u8>]) -> BTreeMap<String, usize> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traffic.pcap");
    pcap(&path, packets);
    let mut flows = BTreeMap::new();
    for line in tshark(&path, &["communityid", "ip.flags.mf", "ipv6.fraghdr.more"]) {
        if !line[1..].iter().any(|more| more.contains('1')) {
            *flows.entry(line[0].clone()).or_default() += 1;
        }
    }
    flows
}

#[test]
fn there_are_as_many_flows_as_asked_for_and_they_begin_again() {
    for queues in [1, 2] {
        let options = Options { flows: 50, queues, ..Options::default() };
        let mut all = BTreeMap::new();
        for queue in 0..queues {
            all.extend(flows(&generate(&options, usize::from(queue), 30_000)));
        }
        // Two pings between the same hosts are one flow.
        assert!((40..=50).contains(&all.len()), "{} flows", all.len());
    }
    let mut of_one = flows(&generate(&Options { flows: 1, ..Options::default() }, 0, 1000));
    assert_eq!(of_one.pop_first().map(|(_, packets)| packets), Some(1000));
    assert!(of_one.is_empty());
}

#[test]
fn the_ten_busiest_hosts_have_a_fifth_of_the_packets_and_most_flows_are_short() {
    let packets = generate(&Options::default(), 0, 100_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traffic.pcap");
    pcap(&path, &packets);
    let mut hosts: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (number, line) in
        tshark(&path, &["ip.src", "ip.dst", "ipv6.src", "ipv6.dst"]).iter().enumerate()
    {
        // The last of each is the inner one.
        for host in line.iter().filter_map(|field| field.rsplit(',').next()) {
            if !host.is_empty() && !host.starts_with("172.") {
                hosts.entry(host.to_owned()).or_default().insert(number);
            }
        }
    }
    let mut busiest: Vec<&BTreeSet<usize>> = hosts.values().collect();
    busiest.sort_by_key(|packets| std::cmp::Reverse(packets.len()));
    let touched: BTreeSet<usize> =
        busiest[..10].iter().flat_map(|host| host.iter().copied()).collect();
    assert!(touched.len() >= packets.len() / 5, "{} packets", touched.len());
    assert!(busiest.len() > 3000, "{} hosts", busiest.len());

    let flows = flows(&packets);
    let short = flows.values().filter(|&&packets| packets <= 10).count();
    assert!(short * 2 > flows.len(), "{short} of {}", flows.len());
    let longest = flows.values().max().copied().unwrap_or(0);
    assert!(longest > 300, "{longest} packets");
}

#[test]
fn frames_with_data_are_as_long_as_asked_for() {
    for size in [60, 1500, 9000, u16::MAX] {
        let options = Options { sizes: Sizes::Fixed(size), ..Options::default() };
        let packets = generate(&options, 0, 20_000);
        let longest = packets.iter().map(Vec::len).max().unwrap();
        let most = usize::from(size).max(1514);
        assert!(packets.iter().all(|packet| (60..=most).contains(&packet.len())), "{longest}");
        if size > 1000 {
            let whole = packets.iter().filter(|packet| packet.len() == usize::from(size)).count();
            assert!(whole > 5000, "{whole} of {size} bytes");
        }
        assert_eq!(longest.max(1514), most);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("traffic.pcap");
        pcap(&path, &packets[..2000]);
        let wrong = tshark(&path, &["_ws.malformed"]);
        assert!(wrong.iter().flatten().all(String::is_empty), "{size} bytes");
    }
}

#[test]
fn flows_and_imix_frames_are_about_as_long_on_average_as_documented() {
    const PACKETS: u64 = 4_000_000;
    let mut source = Traffic::open(&Options::default()).unwrap().remove(0);
    let mut bytes = 0;
    for sequence in 0..PACKETS {
        bytes += source.packet(sequence, <[u8]>::len);
    }
    let mean = bytes as f64 / PACKETS as f64;
    assert!((mean / f64::from(IMIX_MEAN_BYTES) - 1.0).abs() < 0.1, "{mean} bytes");
    let packets = PACKETS as f64 / source.next as f64;
    assert!((12.0..16.0).contains(&packets), "{packets} packets in a flow");
}

#[test]
fn options_out_of_range_are_refused() {
    let flows = |flows, queues| Options { flows, queues, ..Options::default() };
    for (options, error) in [
        (flows(0, 1), OptionsError::Flows { flows: 0, min: 1, max: FLOWS_MAX }),
        (flows(3, 4), OptionsError::Flows { flows: 3, min: 4, max: FLOWS_MAX }),
        (flows(u64::MAX, 1), OptionsError::Flows { flows: u64::MAX, min: 1, max: FLOWS_MAX }),
        (flows(1000, 0), OptionsError::Queues(0)),
        (
            Options { sizes: Sizes::Fixed(59), ..Options::default() },
            OptionsError::Size { size: 59, min: 60 },
        ),
        (
            Options { pace: Pace::Rate(Rate(0.0)), ..Options::default() },
            OptionsError::Rate(Rate(0.0)),
        ),
    ] {
        assert_eq!(Traffic::open(&options).err(), Some(error));
    }
}
