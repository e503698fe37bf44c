//! The flow index of a segment against libpcap: whatever packet an expression accepts lies in a column that the index names.

use std::net::IpAddr;

use base::Random;
use format::flow_index::{COLUMNS, FlowIndex, Subject, column, pages_max};
use format::index::Footer;
use format::layout::CHUNK_MAX_DEFAULT;
use format::{Layout, LinkType, PAGE_BYTES};
use longtake_search::{
    CommunityId, Condition, End, IndexKey, KeyKind, Layer, Layers, SegmentKeys, community_id,
    condition_of, dissect,
};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRunner};
use source::Generator;
use source::filter::Program;
use source::traffic::{self, Traffic};

use crate::stack::stack;

const SEGMENT: u64 = 256 << 20;
const PAGE: usize = PAGE_BYTES as usize;

fn footer() -> Footer {
    Footer {
        array: uuid::Uuid::from_u128(1),
        entries: 64,
        entries_crc: 5,
        first_sequence: 1,
        last_sequence: 64,
        first_ns: 1,
        last_ns: 2,
        section_bytes: 1 << 20,
        member: 0,
    }
}

/// The flow index of packets, as it lies on the media.
struct Index {
    first: FlowIndex,
    bytes: Vec<u8>,
    hash_key: [u8; 16],
}

impl Index {
    fn new(keys: &mut SegmentKeys, pages_max: u32) -> Self {
        let hash_key = [3; 16];
        let bytes = keys.finish(&Subject::from(&footer()), hash_key, pages_max).unwrap();
        let first = FlowIndex::read(&bytes, &footer(), SEGMENT).unwrap();
        Self { first, bytes, hash_key }
    }

    fn of_key(&self, key: &IndexKey) -> u64 {
        if self.first.kinds & key.kind().bit() == 0 {
            return u64::MAX;
        }
        let hash = key.hash(&self.hash_key);
        let at = (1 + self.first.page(hash) as usize) * PAGE;
        self.first.columns(&self.bytes[at..at + PAGE], hash).unwrap()
    }

    fn columns(&self, condition: &Condition) -> u64 {
        condition.columns(&|key| self.of_key(key), self.first.fragments | self.first.anything)
    }
}

/// A packet in a column.
struct Packet {
    column: u32,
    link_type: LinkType,
    bytes: Vec<u8>,
}

/// Packets of one link type: whole ones, some cut short, some with changed bytes, some ARP.
fn packets(runner: &mut TestRunner, random: &mut Random, count: usize) -> Vec<Packet> {
    let stack = stack();
    let mut packets: Vec<Packet> = Vec::new();
    while packets.len() < count {
        let made = stack.new_tree(runner).unwrap().current();
        let link_type = made.link.link_type();
        if packets.first().is_some_and(|first| first.link_type != link_type) {
            continue;
        }
        let mut bytes = made.bytes();
        if random.one_in(8) {
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
        }
        if random.one_in(6) && !bytes.is_empty() {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.bits() as u8;
        }
        if link_type == LinkType::ETHERNET && random.one_in(10) {
            let addresses: [u8; 28] = std::array::from_fn(|_| random.below(4) as u8);
            bytes = [&[4; 12][..], &[8, 6], &addresses].concat();
        }
        packets.push(Packet { column: random.below(COLUMNS.into()) as u32, link_type, bytes });
    }
    packets
}

/// Primitives that some of the packets meet, and others.
fn primitive(random: &mut Random, packets: &[Packet]) -> String {
    let packet = &packets[random.below(packets.len() as u64) as usize];
    let mut layers = Layers::new();
    dissect(packet.link_type, &packet.bytes, &mut layers);
    let some = layers.all();
    if some.is_empty() || random.one_in(6) {
        let others = [
            "tcp",
            "udp",
            "icmp",
            "icmp6",
            "ip",
            "ip6",
            "arp",
            "sctp",
            "port 53 or 80",
            "greater 60",
            "less 100",
            "ip[8] > 10",
            "(ip[0] & 0xf != 5)",
            "ip proto 47",
            "proto \\udp",
            "host 10.0.0.1 or 10.0.0.2",
            "vlan",
            "mpls",
            "ip multicast",
            "net 0.0.0.0/3",
            "net 10",
            "portrange 0-60",
            "udp port 4789",
            "not tcp",
            "! udp port 53",
            "ip6 proto 17",
            "igmp",
            "arp host 1.2.3.0",
            "net 1.2.3.0/24",
            "net 2.1.0",
            "ip protochain 6",
        ];
        return others[random.below(others.len() as u64) as usize].to_owned();
    }
    let way = ["", "src ", "dst ", "src or dst ", "src and dst "][random.below(5) as usize];
    match some[random.below(some.len() as u64) as usize] {
        Layer::Vlan(id) => format!("vlan {id}"),
        Layer::Mpls(label) => format!("mpls {label}"),
        Layer::Arp(sender, target) => {
            format!("{way}host {}", if random.one_in(2) { sender } else { target })
        }
        Layer::Ip(ip) => {
            let host = if random.one_in(2) { ip.source } else { ip.destination };
            match (random.below(6), host) {
                (0, IpAddr::V4(host)) => {
                    format!("{way}net {}/24", IpAddr::from((host.to_bits() & !0xff).to_be_bytes()))
                }
                (0, IpAddr::V6(host)) => {
                    format!("{way}net {}/124", IpAddr::from((host.to_bits() & !0xf).to_be_bytes()))
                }
                (1, IpAddr::V4(_)) => format!("ip {way}host {host}"),
                (2, _) => format!("host {} and host {}", ip.source, ip.destination),
                _ => format!("{way}host {host}"),
            }
        }
        Layer::Ports(source, destination) => {
            let port = if random.one_in(2) { source } else { destination };
            match random.below(6) {
                0 => format!("tcp {way}port {port}"),
                1 => format!("udp {way}port {port}"),
                2 => format!("{way}portrange {port}-{}", port.saturating_add(9)),
                3 => format!("port {source} and port {destination}"),
                _ => format!("{way}port {port}"),
            }
        }
        Layer::Icmp(..) => "icmp or icmp6".to_owned(),
        Layer::Tunnel(_) => "ip proto 47".to_owned(),
    }
}

fn expression(random: &mut Random, packets: &[Packet], depth: u32) -> String {
    let mut text = String::new();
    for part in 0..=random.below(4) {
        if part > 0 {
            text += [" and ", " or ", " && ", " || "][random.below(4) as usize];
        }
        let inner = if depth < 2 && random.one_in(4) {
            format!("({})", expression(random, packets, depth + 1))
        } else {
            primitive(random, packets)
        };
        let not = if random.one_in(8) { "not " } else { "" };
        text += &format!("{not}{inner}");
    }
    text
}

/// A whole conversation's expression, in some order.
fn conversation(random: &mut Random, packets: &[Packet]) -> Option<String> {
    let packet = &packets[random.below(packets.len() as u64) as usize];
    let mut layers = Layers::new();
    dissect(packet.link_type, &packet.bytes, &mut layers);
    let (flow, _) = layers.flow()?;
    let (first, second) = flow.ports?;
    let mut parts = [
        format!("host {}", flow.first),
        format!("host {}", flow.second),
        format!("port {first}"),
        format!("port {second}"),
    ];
    let at = random.below(4) as usize;
    parts.rotate_left(at);
    Some(parts.join(" and "))
}

#[test]
fn whatever_an_expression_accepts_lies_in_columns_that_the_index_names() {
    let mut runner = TestRunner::deterministic();
    runner = TestRunner::new_with_rng(Config::default(), runner.new_rng());
    let mut random = Random::new(11);
    let (mut tried, mut accepted, mut narrowed, mut narrowed_in_memory) = (0, 0, 0, 0);
    for _ in 0..200 {
        let packets = packets(&mut runner, &mut random, 60);
        let keys_max = if random.one_in(3) { 20 } else { 1000 };
        let gathered = || {
            let mut keys = SegmentKeys::new(keys_max);
            for Packet { column, link_type, bytes } in &packets {
                keys.add(*column, *link_type, bytes);
            }
            keys
        };
        let (in_memory, mut keys) = (gathered(), gathered());
        let index = Index::new(&mut keys, if random.one_in(4) { 2 } else { 60 });
        for _ in 0..90 {
            let conversation =
                random.one_in(8).then(|| conversation(&mut random, &packets)).flatten();
            let text = conversation.unwrap_or_else(|| expression(&mut random, &packets, 0));
            let Ok(program) = Program::compile(&text, packets[0].link_type, 0) else { continue };
            tried += 1;
            let condition = condition_of(&text).unwrap_or(Condition::Any);
            let columns = index.columns(&condition);
            narrowed += u32::from(columns.count_ones() < 32);
            // Before the index is made, the same is known exactly.
            let named = columns;
            let columns = in_memory.columns(&condition);
            assert_eq!(columns & !named, 0, "{text}: {condition:?}");
            narrowed_in_memory += u32::from(columns.count_ones() < named.count_ones());
            for Packet { column, bytes, .. } in &packets {
                if program.matches(bytes, bytes.len() as u32) {
                    accepted += 1;
                    assert!(
                        columns >> column & 1 == 1,
                        "{text}: {condition:?} misses {bytes:02x?}"
                    );
                }
            }
        }
    }
    // Not so many are accepted that the index had nothing to do, nor so few that nothing was tried.
    assert!(
        tried >= 10_000 && accepted > 50_000 && narrowed > 1000 && narrowed_in_memory > 100,
        "{tried} {accepted} {narrowed} {narrowed_in_memory}"
    );
}

/// A segment of two million flows' traffic, in frames of 350 bytes on average. Chunks of the default length leave room for hosts and
/// services; somewhat shorter ones leave room for flows and clients' ports as well.
#[test]
fn keys_have_room_in_what_chunks_leave_of_a_segment() {
    let all = KeyKind::ALL.iter().fold(0, |kinds, kind| kinds | kind.bit());
    let few = [KeyKind::Hosts, KeyKind::ServicePorts, KeyKind::Labels];
    let few = few.iter().fold(0, |kinds, kind| kinds | kind.bit());
    let mut traffic = Traffic::open(&traffic::Options::default()).unwrap().remove(0);
    // Until flows end as fast as they begin.
    (0..2_000_000).for_each(|_| traffic.packet(0, |_| ()));
    for (chunk_max, pages, kinds) in [(CHUNK_MAX_DEFAULT, 56, few), (4088 << 10, 120, all)] {
        let layout = Layout::new(1 << 40, SEGMENT, chunk_max).unwrap();
        let (mut keys, mut offset) = (SegmentKeys::default(), 0);
        while offset < SEGMENT - (512 << 10) {
            traffic.packet(0, |packet| {
                keys.add(column(offset, SEGMENT), LinkType::ETHERNET, packet);
                offset += 32 + packet.len().next_multiple_of(4) as u64;
            });
        }
        let section_bytes = SEGMENT - 64 * u64::from(layout.chunk_max);
        let full = Footer { section_bytes, ..footer() };
        assert_eq!(pages_max(&full, SEGMENT), pages);
        let bytes = keys.finish(&Subject::from(&full), [5; 16], pages).unwrap();
        let index = FlowIndex::read(&bytes, &full, SEGMENT).unwrap();
        assert_eq!(index.kinds, kinds, "{} keys in {} bytes", index.keys, bytes.len());
    }
}

/// A layout that has changed is another version's: arrays are indexed once and read for years.
#[test]
fn the_bytes_of_an_index_are_those_of_the_golden_file() {
    let mut keys = SegmentKeys::default();
    for number in 0..3000_u32 {
        let [a, b, c, d] = number.to_be_bytes();
        let ip = [
            0x45,
            0,
            0,
            28,
            0,
            1,
            0,
            0,
            64,
            if number % 3 == 0 { 6 } else { 17 },
            0,
            0,
            10,
            0,
            c & 3,
            d,
        ];
        let packet = [&ip[..], &[10, 9, a, b | 1, c, d, 1, 187, 0, 8, 0, 0]].concat();
        let tagged = [&[2; 12][..], &[0x81, 0, 0, d & 7, 8, 0], &packet].concat();
        keys.add(number / 7 % COLUMNS, LinkType::ETHERNET, &tagged);
    }
    keys.add_unread(63);
    let bytes = keys.finish(&Subject::from(&footer()), [7; 16], 60).unwrap();
    let golden = include_bytes!("../golden/flow_index.bin");
    assert!(golden == bytes.as_slice(), "{} bytes", bytes.len());
}

#[test]
fn flows_are_found_by_their_community_ids_and_two_hosts_and_ports() {
    let mut runner = TestRunner::deterministic();
    let mut random = Random::new(5);
    let packets = packets(&mut runner, &mut random, 500);
    let mut keys = SegmentKeys::default();
    let mut flows = Vec::new();
    for Packet { column, link_type, bytes } in &packets {
        keys.add(*column, *link_type, bytes);
        let mut layers = Layers::new();
        dissect(*link_type, bytes, &mut layers);
        if let Some((flow, _)) = layers.flow()
            && let Some(id) = community_id(&flow, 0)
        {
            flows.push((*column, id, layers.end()));
        }
    }
    assert!(flows.len() > 200, "{}", flows.len());
    let of_flow = |id: &CommunityId| Condition::of_flows(&[*id]);
    let in_memory: Vec<u64> = flows.iter().map(|(_, id, _)| keys.columns(&of_flow(id))).collect();
    let index = Index::new(&mut keys, 60);
    for ((column, id, end), in_memory) in flows.into_iter().zip(in_memory) {
        let columns = index.columns(&of_flow(&id));
        assert!(in_memory >> column & 1 == 1 && in_memory & !columns == 0, "{in_memory:b}");
        assert!(columns >> column & 1 == 1);
        assert!(end != End::Payload || columns.count_ones() < 50, "{columns:b}");
    }
}

/// Beyond what is remembered and what has room, kinds of keys are left out, and the index says so.
#[test]
fn a_flood_of_flows_is_indexed_in_bounded_memory_without_flows() {
    let mut keys = SegmentKeys::new(5000);
    let mut packet = [
        0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88, 0, 53, 0,
        12, 0, 0, 1, 2, 3, 4,
    ];
    for number in 0..100_000_u32 {
        packet[12..16].copy_from_slice(&(0x0a00_0000 + number).to_be_bytes());
        keys.add(number % 64, LinkType::RAW_IP, &packet);
    }
    let index = Index::new(&mut keys, 60);
    let has = |kind: KeyKind| index.first.kinds & kind.bit() != 0;
    assert!(!has(KeyKind::Flows) && !has(KeyKind::Hosts) && has(KeyKind::Labels));
    assert_eq!(index.of_key(&IndexKey::Protocol(17)), u64::MAX);
    assert_eq!(index.of_key(&IndexKey::Protocol(6)), 0);
    assert_eq!(
        index.of_key(&IndexKey::Host([10, 0, 0, 9].into())),
        u64::MAX,
        "hosts are not known"
    );
}
