//! What a scrub calls damage.

use crate::media::{Media, record};
use format::ChunkRecord;
use longtake_recorder::TimeRange;
use longtake_recorder::scrub::{Fault, Options, Step, scrub};
use longtake_recorder::takes::Catalog;

/// The numbers of the chunks that a scrub finds fault with, and the faults.
fn found(media: &Media) -> Vec<(u64, Fault)> {
    let scrubbed = media.open(64 << 10, false, |reader, image| {
        let catalog = Catalog::load(reader, image, TimeRange::ALL).expect("drives that read");
        let mut found = Vec::new();
        scrub(reader, image, &catalog, Options::default(), |step| {
            if let Step::Found(finding) = step {
                found.push((finding.entry.record.sequence, finding.fault.clone()));
            }
        })
        .expect("the drives work");
        found
    });
    scrubbed.expect("the array opens")
}

/// Two members: chunks 1 and 2 on the first, `last` on the other. Chunk 3 is missing.
fn members(last: ChunkRecord) -> Media {
    let mut media = Media::new(2, 4, 256 << 10);
    media.chunks(0, 0, &[1, 2].map(|number| record(number, 4096, (number, number))));
    media.chunks(1, 0, &[last]);
    media
}

#[test]
fn a_copy_that_another_chunk_stands_in_for_is_no_damage() {
    // The write of chunk 2 failed and had happened all the same; chunk 4 has its packets.
    let last = ChunkRecord { replaces: Some(2), ..record(4, 4096, (4, 4)) };
    let media = members(last);
    let gaps = media.open(64 << 10, false, |reader, image| {
        let catalog = Catalog::load(reader, image, TimeRange::ALL).expect("drives that read");
        catalog.takes().into_iter().flat_map(|take| take.gaps).collect::<Vec<_>>()
    });
    let gaps = gaps.expect("the array opens");
    assert!(
        gaps.iter().any(|gap| (gap.first_sequence..=gap.last_sequence).contains(&2)),
        "{gaps:?}"
    );
    assert_eq!(found(&media), []);
}
