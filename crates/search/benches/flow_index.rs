//! How many packets a core enters into a flow index, a segment at a time.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use format::flow_index::{Subject, column, reserve};
use format::{LinkType, PAGE_BYTES};
use longtake_search::SegmentKeys;
use source::generator::Generator;
use source::synthetic::Sizes;
use source::traffic::{Options, Traffic};
use uuid::Uuid;

const SEGMENT: u64 = 256 << 20;

/// Packets of a segment, one behind the other, with the column of each.
struct Segment {
    bytes: Vec<u8>,
    packets: Vec<(usize, usize, u32)>,
}

impl Segment {
    /// What this traffic fills a segment with, some way into it.
    fn of(sizes: Sizes) -> Self {
        let options = Options { sizes, ..Options::default() };
        let mut traffic = Traffic::open(&options).unwrap().remove(0);
        for sequence in 0..2_000_000 {
            traffic.packet(sequence, |packet| black_box(packet.len()));
        }
        let (mut bytes, mut packets, mut offset) = (Vec::new(), Vec::new(), 0);
        while offset < SEGMENT - 300_000 {
            traffic.packet(0, |packet| {
                packets.push((bytes.len(), packet.len(), column(offset, SEGMENT)));
                bytes.extend_from_slice(packet);
                // As an enhanced packet block.
                offset += 32 + packet.len().next_multiple_of(4) as u64;
            });
        }
        Self { bytes, packets }
    }

    fn gather(&self, keys: &mut SegmentKeys) {
        for &(at, length, column) in &self.packets {
            keys.add(column, LinkType::ETHERNET, &self.bytes[at..at + length]);
        }
    }
}

fn speeds(criterion: &mut Criterion) {
    let subject = Subject::open(Uuid::from_u128(1), 0, (1, 64), SEGMENT);
    let pages = (reserve(SEGMENT) / PAGE_BYTES) as u32;
    let sizes = [("imix", Sizes::Imix), ("1500B", Sizes::Fixed(1500)), ("64B", Sizes::Fixed(64))];
    for (name, sizes) in sizes {
        let segment = Segment::of(sizes);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10).throughput(Throughput::Elements(segment.packets.len() as u64));
        let mut keys = SegmentKeys::default();
        group.bench_function("enter", |bencher| {
            bencher.iter(|| {
                keys.clear();
                segment.gather(&mut keys);
            });
        });
        // As beside a recording: with the index that the keys become.
        group.bench_function("enter and encode", |bencher| {
            bencher.iter(|| {
                keys.clear();
                segment.gather(&mut keys);
                keys.finish(&subject, [7; 16], pages)
            });
        });
        group.finish();
    }
}

criterion_group!(benches, speeds);
criterion_main!(benches);
