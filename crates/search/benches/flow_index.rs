//! How many packets a core enters into a flow index, a segment at a time.

mod segment;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use format::flow_index::{Subject, reserve};
use format::{LinkType, PAGE_BYTES};
use longtake_search::SegmentKeys;
use segment::{SEGMENT, Segment};
use source::synthetic::Sizes;
use uuid::Uuid;

fn gather(segment: &Segment, keys: &mut SegmentKeys) {
    for (column, packet) in segment.packets() {
        keys.add(column, LinkType::ETHERNET, packet);
    }
}

fn speeds(criterion: &mut Criterion) {
    let subject = Subject::open(Uuid::from_u128(1), 0, (1, 64), SEGMENT);
    let pages = (reserve(SEGMENT) / PAGE_BYTES) as u32;
    let sizes = [("imix", Sizes::Imix), ("1500B", Sizes::Fixed(1500)), ("64B", Sizes::Fixed(64))];
    for (name, sizes) in sizes {
        let segment = Segment::of(sizes);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10).throughput(Throughput::Elements(segment.len() as u64));
        let mut keys = SegmentKeys::default();
        group.bench_function("enter", |bencher| {
            bencher.iter(|| {
                keys.clear();
                gather(&segment, &mut keys);
            });
        });
        // As beside a recording: with the index that the keys become.
        group.bench_function("enter and encode", |bencher| {
            bencher.iter(|| {
                keys.clear();
                gather(&segment, &mut keys);
                keys.finish(&subject, [7; 16], pages)
            });
        });
        group.finish();
    }
}

criterion_group!(benches, speeds);
criterion_main!(benches);
