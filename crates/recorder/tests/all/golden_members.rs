//! Opens the golden members of the media format: what the specification promises of an array (a lap
//! that was given up, a chunk that stands in for another, a take cut short) is what the recorder finds.

use std::convert::Infallible;

use crate::recovery::with_array as with_array_of;
use base::Timestamp;
use base::memory::{MemoryBank, MemoryBuffers};
use format::pcapng::{Block, ReadPacket};
use format::{ChunkRecord, Count, Interface, Stage};
use longtake_recorder as recorder;
use recorder::extract::{Unreadable, Visitor, extract};
use recorder::reader::{Range, Reader};
use recorder::scrub::{Options, scrub};
use recorder::takes::{Catalog, Entry, extents};
use recorder::{ArrayImage, Segment, TimeRange};

const GOLDEN: [&[u8]; 2] = [
    include_bytes!("../../../format/tests/golden/member0.bin"),
    include_bytes!("../../../format/tests/golden/member1.bin"),
];
/// The first take's first sequence number.
const FIRST: u64 = 1_800_000_000_000_000;
const EVER: TimeRange = TimeRange { from: Timestamp::MIN, to: Timestamp::MAX };

/// Opens the members, in this order of drives, and hands on what was found.
fn with_array<T>(
    order: [usize; 2],
    use_it: impl FnOnce(&mut Reader<'_, MemoryBank, MemoryBuffers>, &ArrayImage) -> T,
) -> T {
    with_members(order.map(|member| GOLDEN[member].to_vec()), use_it)
}

/// The same with members that are these bytes.
fn with_members<T>(
    members: [Vec<u8>; 2],
    use_it: impl FnOnce(&mut Reader<'_, MemoryBank, MemoryBuffers>, &ArrayImage) -> T,
) -> T {
    with_array_of(&mut members.map(Some).to_vec(), false, use_it).expect("the golden array opens")
}

#[test]
fn both_takes_are_found_and_balance_whatever_the_order_of_the_drives() {
    for order in [[0, 1], [1, 0]] {
        let takes = with_array(order, |reader, image| {
            Catalog::load(reader, image, EVER).expect("indexes that read").takes()
        });
        let [first, second] = &takes[..] else { panic!("two takes, not {}", takes.len()) };
        assert!(first.ended && first.balances() && first.gaps.is_empty());
        assert_eq!(
            (first.chunks, first.first_sequence, first.last_sequence),
            (11, FIRST, FIRST + 14)
        );
        assert_eq!(first.queues, 2);
        // Chunks 1, 5 and 7, which the second member's ring has given up.
        assert_eq!(first.overwritten, Count::new(120, 3 * 62_000));
        assert_eq!(first.ledger.lost(Stage::ArrayFull), Count::new(7, 10_500));
        assert!(!second.ended && second.balances() && second.gaps.is_empty());
        assert_eq!(second.stored, Count::new(1, 61));
    }
}

#[test]
fn segments_and_the_parts_to_copy_are_those_of_the_specification() {
    with_array([0, 1], |_, image| {
        assert_eq!(image.superblock.generation, 3);
        assert_eq!(image.next_sequence, FIRST + 1_000_000 + (1 << 16));
        let state = |member: usize| -> Vec<Option<bool>> {
            let segments = image.members[member].segments.iter();
            let indexed = segments.map(|segment| match segment {
                Segment::Live(live) => Some(live.indexed),
                Segment::Empty => None,
            });
            indexed.collect()
        };
        assert_eq!(state(0), [Some(true), Some(false)]);
        assert_eq!(state(1), [Some(false), Some(true)]);
        assert_eq!(extents(&image.members[0]), [(0, 1_384_448)]);
        assert_eq!(extents(&image.members[1]), [(1_310_720, 262_144), (0, 1_056_768)]);
    });
}

#[test]
fn every_packet_of_the_first_take_comes_back_in_order_of_time() {
    #[derive(Default)]
    struct Times(Vec<u64>);
    impl Visitor for Times {
        type Error = Infallible;
        fn packet(
            &mut self,
            _: &Interface,
            packet: &ReadPacket<'_>,
            _: &Block<'_>,
            _: &ChunkRecord,
        ) -> Result<(), Infallible> {
            self.0.push(packet.time);
            Ok(())
        }
        fn blocks(
            &mut self,
            _: &[Interface],
            _: &[u8],
            _: &ChunkRecord,
        ) -> Result<bool, Infallible> {
            Ok(false)
        }
        fn lost(&mut self, entry: &Entry, why: &Unreadable) -> Result<(), Infallible> {
            panic!("chunk {}: {why}", entry.record.sequence)
        }
        fn progress(&mut self, _: u64, _: u64) -> Result<(), Infallible> {
            Ok(())
        }
    }
    with_array([0, 1], |reader, image| {
        let catalog = Catalog::load(reader, image, EVER).expect("indexes that read");
        let take = &catalog.takes()[0];
        let entries: Vec<Entry> =
            catalog.entries.iter().filter(|e| e.record.take == take.id).copied().collect();
        let mut times = Times::default();
        extract(reader, image, &entries, EVER, None, &mut times).expect("nothing fails");
        assert_eq!(times.0.len() as u64, take.stored.packets);
        // Also those of the chunk that was placed again two numbers later. Within a chunk packets stay as
        // they came: one of the thirteenth came late.
        let late: Vec<u64> =
            times.0.windows(2).filter(|pair| pair[0] > pair[1]).map(|pair| pair[1]).collect();
        assert_eq!(late, [1_800_000_000_012_001_001]);
    });
}

#[test]
fn behind_a_lap_that_a_power_cut_brought_back_no_younger_chunk_is_found() {
    const LATER: u64 = 500;
    /// Where the footer of the first segment's index lies: its last entry ends there.
    const FOOTER: usize = 1_310_720 - 100;
    let load = |reader: &mut Reader<'_, _, _>, image: &ArrayImage| -> Vec<Entry> {
        let catalog = Catalog::load(reader, image, EVER).expect("drives that read");
        let in_segment = |e: &&Entry| e.place.member == 0 && e.place.offset < 1_310_720;
        catalog.entries.iter().filter(in_segment).copied().collect()
    };
    let sequences = |entries: &[Entry]| -> Vec<u64> {
        entries.iter().map(|entry| entry.record.sequence - FIRST).collect()
    };
    let chunks = with_array([0, 1], load);
    assert!(chunks.len() > 2);
    // The ring has begun the segment anew, as far as where the second chunk stood and over a part of the index. The power cut
    // takes the new lap's first chunk, and the one that stands there goes on from the old lap's.
    let mut members = GOLDEN.map(<[u8]>::to_vec);
    let Entry { place, record } = chunks[1];
    let at = place.offset as usize;
    let younger = ChunkRecord { sequence: record.sequence + LATER, ..record };
    younger.stamp(&place, &mut members[0][at..]);
    members[0][FOOTER - 1] ^= 1;
    let closed = with_members(members.clone(), |reader, image| {
        let chunk = Range { drive: image.members[0].drive, offset: place.offset, length: 4096 };
        let before = reader.one(chunk).expect("a drive that reads");
        let options = Options { limit: None, repair: true, recording: false };
        let catalog = Catalog::load(reader, image, EVER).expect("drives that read");
        scrub(reader, image, &catalog, options, |_| {}).expect("drives that write");
        assert_eq!(reader.one(chunk), Ok(before), "no index is written over what it may name");
        sequences(&load(reader, image))
    });
    assert_eq!(closed, [0], "the footer that closes the segment knows of no such chunk");
    // Without any index it is the segment's: what a crash left of a segment is walked as far as it goes.
    members[0][FOOTER] ^= 1;
    assert_eq!(sequences(&with_members(members, load)), [0, record.sequence - FIRST + LATER]);
}
