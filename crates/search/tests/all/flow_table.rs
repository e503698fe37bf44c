//! Packets counted by flow, host and port: nothing is counted twice or not at all, whatever the limit.

use std::net::IpAddr;

use base::Timestamp;
use format::LinkType;
use longtake_search::{Direction, FlowTable, Group, Key, Layers, Order, Ranking, Tally, dissect};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::stack::{Carries, plain};

fn host(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

/// A packet: who sent it to whom from which port to which, its bytes and its time in ns.
type Sent = (u8, u8, u16, u16, u64, u64);

fn counted(group: Group, max: usize, packets: &[Sent]) -> FlowTable {
    let mut table = FlowTable::new(group, max);
    let mut layers = Layers::new();
    for &(from, to, source, destination, bytes, ns) in packets {
        let carries = Carries::Ports { protocol: 17, source, destination };
        let packet = plain(host(from), host(to), carries).bytes();
        dissect(LinkType::ETHERNET, &packet, &mut layers);
        table.add(&layers, bytes, Timestamp::from_nanos(ns));
    }
    table
}

fn tally(packets: u64, bytes: u64, span: (u64, u64)) -> Tally {
    let (first, last) = span;
    let span = Some((Timestamp::from_nanos(first), Timestamp::from_nanos(last)));
    Tally { packets, bytes, span }
}

const TALK: [Sent; 5] = [
    (2, 1, 5000, 53, 100, 10),
    (1, 2, 53, 5000, 900, 20),
    (2, 1, 5000, 53, 100, 30),
    (3, 1, 6000, 443, 1500, 5),
    (3, 1, 6000, 53, 60, 40),
];

#[test]
fn a_flow_counts_both_directions_apart_from_the_first_packet_on() {
    let ranking = counted(Group::Flows, 10, &TALK).rank(Order::Bytes, None);
    assert_eq!((ranking.rows.len(), ranking.found), (3, 3));
    assert_eq!(ranking.total, tally(5, 2660, (5, 40)));
    let (key, row) = ranking.rows[1];
    let Key::Flow(flow) = key else { panic!("{key:?}") };
    assert_eq!(flow.ends(row.began), [(host(2), Some(5000)), (host(1), Some(53))]);
    assert_eq!(row.forward, tally(2, 200, (10, 30)));
    assert_eq!(row.backward, tally(1, 900, (20, 20)));
    assert_eq!(row.both(), tally(3, 1100, (10, 30)));
    // By packets, the same flow is the first.
    let by_packets = counted(Group::Flows, 10, &TALK).rank(Order::Packets, Some(1));
    assert_eq!(by_packets.rows, [(key, row)]);
    assert_eq!((by_packets.found, by_packets.rest), (3, tally(2, 1560, (5, 40))));
}

#[test]
fn hosts_have_what_they_sent_and_received_and_ports_what_their_service_did() {
    let hosts = counted(Group::Hosts, 10, &TALK).rank(Order::Bytes, None);
    let (key, row) = hosts.rows[0];
    assert_eq!(key, Key::Host(host(1)));
    assert_eq!((row.forward, row.backward), (tally(1, 900, (20, 20)), tally(4, 1760, (5, 40))));
    assert_eq!(row.began, Direction::Forward);
    let ports = counted(Group::Ports, 10, &TALK).rank(Order::Packets, None);
    let [(dns, of_dns), (https, _)] = ports.rows[..] else { panic!("{ports:?}") };
    assert_eq!(dns, Key::Port { protocol: 17, port: Some(53) });
    assert_eq!(https, Key::Port { protocol: 17, port: Some(443) });
    assert_eq!((of_dns.forward.packets, of_dns.backward.packets), (3, 1));
}

#[test]
fn packets_without_an_ip_header_are_counted_apart() {
    let mut table = FlowTable::new(Group::Flows, 10);
    let mut layers = Layers::new();
    dissect(LinkType::ETHERNET, &[2; 60], &mut layers);
    table.add(&layers, 60, Timestamp::from_nanos(3));
    let ranking = table.rank(Order::Bytes, None);
    assert_eq!((ranking.not_ip, ranking.found), (tally(1, 60, (3, 3)), 0));
}

fn sums(ranking: &Ranking) -> (u64, u64) {
    let rows = ranking.rows.iter().map(|(_, row)| row.both());
    let all = rows.chain([ranking.rest, ranking.beyond, ranking.not_ip]);
    all.fold((0, 0), |(packets, bytes), tally| (packets + tally.packets, bytes + tally.bytes))
}

proptest! {
    #[test]
    fn rows_and_what_is_beyond_them_add_up_to_the_total(
        packets in vec((0_u8..4, 0_u8..4, 1_u16..4, 1_u16..4, 1_u64..2000, any::<u64>()), 0..60),
        max in 0_usize..12,
        top in proptest::option::of(0_usize..12),
    ) {
        for (group, times) in [(Group::Flows, 1), (Group::Ports, 1), (Group::Hosts, 2)] {
            let ranking = counted(group, max, &packets).rank(Order::Bytes, top);
            let bytes: u64 = packets.iter().map(|packet| packet.4).sum();
            prop_assert_eq!(ranking.total.packets, packets.len() as u64);
            prop_assert_eq!(sums(&ranking), (packets.len() as u64 * times, bytes * times));
            prop_assert!(ranking.found <= max);
            prop_assert_eq!(ranking.rows.len(), top.unwrap_or(max).min(ranking.found));
            prop_assert!(ranking.rows.is_sorted_by_key(|(_, row)| std::cmp::Reverse(row.both().bytes)));
            let unlimited = counted(group, 1000, &packets).rank(Order::Bytes, None);
            prop_assert_eq!(unlimited.beyond.packets, 0);
        }
    }
}
