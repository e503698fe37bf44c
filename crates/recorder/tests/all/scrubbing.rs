//! What a scrub calls damage.

use crate::media::{Media, record};
use crate::recovery::{Members, with_array};
use format::ChunkRecord;
use format::layout::DATA_OFFSET;
use longtake_recorder::TimeRange;
use longtake_recorder::extract::verify;
use longtake_recorder::scrub::{Fault, Options, Repair, Step, scrub};
use longtake_recorder::takes::Catalog;

/// Golden members with two parities.
const PARITY: [&[u8]; 4] = [
    include_bytes!("../../../format/tests/golden/parity0.bin"),
    include_bytes!("../../../format/tests/golden/parity1.bin"),
    include_bytes!("../../../format/tests/golden/parity2.bin"),
    include_bytes!("../../../format/tests/golden/parity3.bin"),
];

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

/// Packets that an array of these members gives back.
fn packets(members: &mut Members) -> u64 {
    let found = with_array(members, false, |reader, image| {
        let catalog = Catalog::load(reader, image, TimeRange::ALL).expect("drives that read");
        let mut packets = 0;
        verify(reader, image, &catalog.entries, |entry, had| {
            packets += if had.is_ok() { u64::from(entry.record.summary.packets) } else { 0 };
        })
        .expect("drives that read");
        packets
    });
    found.expect("the array opens")
}

/// What a repair does about each chunk that it finds fault with, by number.
fn repaired(members: &mut Members) -> Vec<(u64, Repair)> {
    let repaired = with_array(members, false, |reader, image| {
        let catalog = Catalog::load(reader, image, TimeRange::ALL).expect("drives that read");
        let mut done = Vec::new();
        let options = Options { repair: true, ..Options::default() };
        scrub(reader, image, &catalog, options, |step| {
            if let Step::Found(finding) = step {
                done.push((finding.entry.record.sequence, finding.repair.clone()));
            }
        })
        .expect("the drives work");
        done
    });
    repaired.expect("the array opens")
}

#[test]
fn a_chunk_is_left_to_parity_if_the_index_that_would_count_with_it_denies_a_chunk_of_its_segment() {
    let first = DATA_OFFSET as usize;
    // Nothing, the other chunk of the damaged one's group, and a chunk behind the damaged one.
    for (changed, expected) in [
        (None, Repair::Done),
        (Some((1, first)), Repair::None),
        (Some((0, first + 94_208)), Repair::None),
    ] {
        let mut members = PARITY.map(|bytes| Some(bytes.to_vec())).to_vec();
        if let Some((member, at)) = changed {
            // Somebody has changed when it was sealed, and has put its checksum right. What parity makes of it is changed alike, and
            // checks.
            let bytes = members[member].as_mut().expect("it is there");
            let (place, mut record) = ChunkRecord::read(&bytes[at..]).expect("a chunk");
            record.summary.sealed_ns ^= 1;
            record.stamp(&place, &mut bytes[at..]);
        }
        let damaged = members[0].as_mut().expect("it is there");
        let (_, record) = ChunkRecord::read(&damaged[first..]).expect("a chunk");
        damaged[first + 100] ^= 1;
        let before = packets(&mut members);
        let repairs = repaired(&mut members);
        let of_damaged = repairs.iter().find(|(number, _)| *number == record.sequence);
        assert_eq!(of_damaged.map(|(_, repair)| repair), Some(&expected), "{changed:?}");
        assert!(packets(&mut members) >= before, "{changed:?}: {before} before, {repairs:?}");
    }
}
