//! How many packets a core dissects and counts.

use std::hint::black_box;

use base::Timestamp;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use format::LinkType;
use longtake_search::{FlowTable, Fragments, Group, Layers, community_id, dissect};

/// Packets of each kind.
const PACKETS: usize = 10_000;

fn ipv4_tcp(from: u16) -> Vec<u8> {
    let [a, b] = from.to_be_bytes();
    let ip = [0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, a, b, 10, 9, 9, 9];
    let tcp = [a, b | 1, 1, 187, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0];
    [&[2; 12][..], &[8, 0], &ip, &tcp].concat()
}

fn vlan_ipv6_udp(from: u16) -> Vec<u8> {
    let [a, b] = from.to_be_bytes();
    let ip = [&[0x60, 0, 0, 0, 0, 8, 17, 64][..], &[a; 16], &[b; 16]].concat();
    [&[2; 12][..], &[0x81, 0, 0, 7, 0x86, 0xdd], &ip, &[a, b, 0, 53, 0, 8, 0, 0]].concat()
}

fn vxlan(from: u16) -> Vec<u8> {
    let [a, b] = from.to_be_bytes();
    let inner = ipv4_tcp(from);
    let length = (inner.len() as u16 + 36).to_be_bytes();
    let ip = [&[0x45, 0][..], &length, &[0, 1, 0, 0, 64, 17, 0, 0, 172, 16, 0, 1, 172, 16, 0, 2]];
    let udp = [a, b, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 9, 0];
    [&[2; 12][..], &[8, 0], &ip.concat(), &udp, &inner].concat()
}

/// Its name, and how to make one of a flow.
type Kind = (&'static str, fn(u16) -> Vec<u8>);

fn speeds(criterion: &mut Criterion) {
    let kinds: [Kind; 3] =
        [("ipv4-tcp", ipv4_tcp), ("vlan-ipv6-udp", vlan_ipv6_udp), ("vxlan-ipv4-tcp", vxlan)];
    for (name, packet) in kinds {
        let packets: Vec<Vec<u8>> = (0..PACKETS).map(|from| packet(from as u16)).collect();
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(PACKETS as u64));
        let mut layers = Layers::new();
        group.bench_function("dissect", |bencher| {
            bencher.iter(|| {
                for packet in &packets {
                    dissect(LinkType::ETHERNET, black_box(packet), &mut layers);
                    black_box(layers.all());
                }
            });
        });
        group.bench_function("count", |bencher| {
            let (mut fragments, mut table) =
                (Fragments::new(1000), FlowTable::new(Group::Flows, 100_000));
            bencher.iter(|| {
                for packet in &packets {
                    dissect(LinkType::ETHERNET, black_box(packet), &mut layers);
                    fragments.resolve(&mut layers);
                    table.add(&layers, packet.len() as u64, Timestamp::from_nanos(1));
                }
            });
        });
        group.bench_function("community-id", |bencher| {
            bencher.iter(|| {
                for packet in &packets {
                    dissect(LinkType::ETHERNET, black_box(packet), &mut layers);
                    black_box(layers.flow().and_then(|(flow, _)| community_id(&flow, 0)));
                }
            });
        });
        group.finish();
    }
}

criterion_group!(benches, speeds);
criterion_main!(benches);
