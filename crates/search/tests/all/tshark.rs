//! Dissection and Community ID against what tshark finds in the same packets.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use longtake_search::{Layer, Layers, community_id, dissect, protocol};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::stack::{Carries, Link, Stack, plain, stack};

/// Packets that are made for a comparison.
const PACKETS: usize = 600;

/// Fields of the layers, with every occurrence of each.
const FIELDS: [&str; 18] = [
    "ieee8021ad.id",
    "ieee8021ad.svid",
    "ieee8021ad.cvid",
    "vlan.id",
    "mpls.label",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.flags",
    "udp.srcport",
    "udp.dstport",
    "sctp.srcport",
    "sctp.dstport",
    "dccp.srcport",
    "dccp.dstport",
];

/// How many of the fields are ids of VLANs.
const TAGS: usize = 4;

/// A pcap file of packets of one link type.
#[allow(clippy::disallowed_methods, reason = "a test hands tshark a file")]
fn pcap(path: &Path, link: Link, packets: &[Vec<u8>]) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, u32::from(link.link_type().0)] {
        file.extend(u32::to_le_bytes(word));
    }
    for (second, packet) in packets.iter().enumerate() {
        let length = packet.len() as u32;
        for word in [second as u32, 0, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    fs::write(path, file).expect("there is space");
}

/// What tshark prints for these fields, one line for each packet, without reassembly and with Community IDs.
fn tshark(path: &Path, fields: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(path).args(["--enable-protocol", "communityid"]);
    command.args(["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE", "-T", "fields"]);
    command.args(fields.iter().flat_map(|field| ["-e", *field]));
    let output = command.output().expect("install tshark: `apt-get install tshark`");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{complaint}");
    String::from_utf8(output.stdout).expect("it is text").lines().map(str::to_owned).collect()
}

/// The same fields from layers.
fn fields(layers: &Layers) -> Vec<String> {
    let mut found: [Vec<String>; FIELDS.len()] = Default::default();
    let mut put = |field: &str, value: String| {
        let at = FIELDS.iter().position(|known| *known == field);
        if let Some(at) = at {
            found[at].push(value);
        }
    };
    for layer in layers.all() {
        match layer {
            Layer::Vlan(id) => put("vlan.id", id.to_string()),
            Layer::Mpls(label) => put("mpls.label", label.to_string()),
            _ => {}
        }
    }
    let named = |protocol| match protocol {
        Some(protocol::TCP) => "tcp",
        Some(protocol::UDP | protocol::UDP_LITE) => "udp",
        Some(protocol::SCTP) => "sctp",
        Some(protocol::DCCP) => "dccp",
        _ => "",
    };
    for (ip, transport) in layers.ips() {
        let version = if ip.source.is_ipv4() { "ip" } else { "ipv6" };
        put(&format!("{version}.src"), ip.source.to_string());
        put(&format!("{version}.dst"), ip.destination.to_string());
        if let longtake_search::Transport::Ports { source, destination } = transport {
            put(&format!("{}.srcport", named(ip.protocol)), source.to_string());
            put(&format!("{}.dstport", named(ip.protocol)), destination.to_string());
        }
    }
    if let Some(flags) = layers.tcp_flags() {
        put("tcp.flags", format!("{flags:#06x}"));
    }
    found.iter().map(|values| values.join(",")).collect()
}

/// Numbers of lists with commas, in order.
fn ids(lists: &[&str]) -> Vec<u16> {
    let numbers = lists.iter().flat_map(|list| list.split(',')).filter(|number| !number.is_empty());
    let mut numbers: Vec<u16> =
        numbers.map(|number| number.parse().expect("it is a number")).collect();
    numbers.sort_unstable();
    numbers
}

fn generated() -> Vec<Stack> {
    let mut runner = TestRunner::deterministic();
    let strategy = stack();
    (0..PACKETS).map(|_| strategy.new_tree(&mut runner).expect("it makes one").current()).collect()
}

fn dissected(stack: &Stack) -> Layers {
    let mut layers = Layers::new();
    dissect(stack.link.link_type(), &stack.bytes(), &mut layers);
    layers
}

#[test]
fn tshark_finds_the_same_vlans_labels_addresses_ports_and_flags() {
    let folder = tempfile::tempdir().expect("there is space");
    let all = generated();
    let mut compared = 0;
    for link in [Link::Ethernet, Link::Snap, Link::Raw, Link::Null, Link::Sll, Link::Sll2] {
        let of_link: Vec<&Stack> = all.iter().filter(|stack| stack.link == link).collect();
        let path = folder.path().join("packets.pcap");
        pcap(&path, link, &of_link.iter().map(|stack| stack.bytes()).collect::<Vec<_>>());
        let found = tshark(&path, &FIELDS);
        assert_eq!(found.len(), of_link.len());
        for (found, stack) in found.iter().zip(of_link) {
            // tshark has fields of its own for tags of each kind.
            let found: Vec<&str> = found.split('\t').collect();
            let expected = fields(&dissected(stack));
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            assert_eq!(found[TAGS..], expected[TAGS..], "{stack:?}");
            assert_eq!(ids(&found[..TAGS]), ids(&expected[..TAGS]), "{stack:?}");
            compared += 1;
        }
    }
    assert_eq!(compared, PACKETS);
}

/// Packets of every kind that Community ID defines: two addresses in both orders and on one, every type of ICMP.
fn identified() -> Vec<Stack> {
    let pairs = [
        ["10.0.0.1", "10.0.0.2"],
        ["10.0.0.2", "10.0.0.1"],
        ["192.0.2.200", "10.9.9.9"],
        ["2001:db8::1", "2001:db8::2"],
        ["2001:db8:ffff::1", "2001:db8::2"],
        ["10.0.0.1", "10.0.0.1"],
    ];
    let mut packets = Vec::new();
    for pair in pairs {
        let [source, destination] =
            pair.map(|address| address.parse::<IpAddr>().expect("it is an address"));
        for protocol in [protocol::TCP, protocol::UDP, protocol::SCTP] {
            for (from, to) in [(50_100, 50_200), (50_200, 50_100), (50_100, 50_100)] {
                let carries = Carries::Ports { protocol, source: from, destination: to };
                packets.push(plain(source, destination, carries));
            }
        }
        for kind in 0..=255 {
            for body in [4, 8, 12, 16, 20, 28, 36, 60, 100] {
                packets.push(plain(source, destination, Carries::Icmp { kind, code: 3, body }));
            }
        }
    }
    for stack in packets.iter_mut().step_by(2) {
        stack.frame.vlans.push((0x8100, 7));
    }
    packets
}

#[test]
fn tshark_gives_every_flow_the_same_community_id() {
    let folder = tempfile::tempdir().expect("there is space");
    let path = folder.path().join("packets.pcap");
    let packets = identified();
    pcap(&path, Link::Ethernet, &packets.iter().map(Stack::bytes).collect::<Vec<_>>());
    let found = tshark(&path, &["communityid", "_ws.malformed"]);
    assert_eq!(found.len(), packets.len());
    let mut types = BTreeSet::new();
    for (found, stack) in found.iter().zip(&packets) {
        let (id_found, malformed) = found.split_once('\t').expect("two fields");
        if !malformed.is_empty() {
            // Too short for what tshark makes of its type: it then shows no type to its own Community ID either.
            continue;
        }
        let (flow, _) = dissected(stack).flow().expect("it has an IP header");
        let id = community_id(&flow, 0).expect("its ports are known");
        assert_eq!(id_found, id.to_string(), "{stack:?}");
        if let Carries::Icmp { kind, .. } = *stack.frame.ip.carries {
            types.insert((flow.protocol, kind));
        }
    }
    // No body of zeros is a sound MPL control message (RFC 7731), which is 159.
    let all = (0..=255).flat_map(|kind| [(protocol::ICMP, kind), (protocol::ICMPV6, kind)]);
    let missing: Vec<_> = all.filter(|kind| !types.contains(kind)).collect();
    assert_eq!(missing, [(protocol::ICMPV6, 159)]);
}
