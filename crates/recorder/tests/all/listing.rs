//! What a listing says: which chunks of a span there are, what a take holds to the byte, and what is missing from it, between
//! which numbers and times, and whether a ring gave it up.

use std::ops::RangeInclusive;

use crate::media::{Media, TAKE, record};
use base::{Duration, Timestamp};
use format::parity::Part;
use format::{ChunkRecord, Count, Ledger, Place, Stage, TakeId, TakeRecord, index};
use longtake_recorder::recover::Groups;
use longtake_recorder::take_records::TakeRecords;
use longtake_recorder::takes::{Catalog, Entry, Gap, Take, Unread};
use longtake_recorder::{ArrayImage, TimeRange};
use uuid::Uuid;

pub fn span(from: u64, to: u64) -> TimeRange {
    TimeRange { from: Timestamp::from_nanos(from), to: Timestamp::from_nanos(to) }
}

/// A chunk somewhere.
fn entry(record: ChunkRecord) -> Entry {
    let offset = record.sequence << 16;
    Entry { place: Place { array: Uuid::from_u128(7), member: 0, members: 1, offset }, record }
}

/// The one take of these chunks.
fn take_of(catalog: &Catalog) -> Take {
    let takes = catalog.takes();
    let [take] = &takes[..] else { panic!("{} takes", takes.len()) };
    take.clone()
}

/// Chunks of one packet of 50 bytes with the times `sequence * 100` to `sequence * 100 + 9`.
fn numbered(sequences: &[u64]) -> Vec<Entry> {
    let chunk = |&n: &u64| entry(record(n, 4096, (n * 100, n * 100 + 9)));
    sequences.iter().map(chunk).collect()
}

#[test]
fn a_gap_touches_a_span_that_has_times_between_the_packets_around_it() {
    let count = Count::new(1, 50);
    let gap = Gap { first_sequence: 1, last_sequence: 1, count, from_ns: 100, to_ns: 200 };
    let cases = [
        (span(0, 100), false),
        (span(0, 101), true),
        (span(0, 500), true),
        (span(150, 160), true),
        (span(100, 200), true),
        (span(199, 500), true),
        (span(200, 500), false),
        (span(300, 500), false),
        (span(0, 50), false),
    ];
    for (range, touches) in cases {
        assert_eq!(gap.touches(range), touches, "{range:?}");
    }
}

#[test]
fn a_take_counts_data_and_parity_apart_and_what_parity_gave_back_in_both() {
    let mut entries = numbered(&[1, 2, 4]);
    entries[1].record.summary.queue = 3;
    let mut parity = entry(record(3, 8192, (100, 209)));
    parity.record.summary.packets = 0;
    parity.record.summary.original_bytes = 0;
    parity.record.ledger = entries[1].record.ledger;
    parity.record.parity = Some(Part { group: 1, span: 1, place: 0, of: 1 });
    // The number of a parity chunk stands for no packets.
    entries[2].record.ledger = Ledger::default();
    entries[2].record.ledger.store(Count::new(3, 150));
    entries.push(parity);
    let catalog = Catalog { recovered: [2].into(), ..Catalog::of(entries) };
    let take = take_of(&catalog);
    assert_eq!((take.chunks, take.media_bytes, take.captured_bytes), (3, 3 * 4096, 150));
    assert_eq!((take.parity_chunks, take.parity_bytes), (1, 8192));
    assert_eq!((take.recovered_chunks, take.recovered), (1, Count::new(1, 50)));
    assert_eq!((take.stored, take.queues), (Count::new(3, 150), 4));
    assert_eq!((take.first_sequence, take.last_sequence), (1, 4));
    assert_eq!((take.first_ns, take.last_ns), (100, 409));
    assert_eq!(take.duration(), Duration::from_nanos(309));
    assert_eq!(take.range(), span(100, 409));
    assert!(take.gaps.is_empty() && take.holes.is_empty() && take.balances() && !take.ended);
}

#[test]
fn a_gap_lies_between_two_chunks_and_says_what_the_ledger_knows_of_it() {
    let take = take_of(&Catalog::of(numbered(&[1, 2, 6, 8])));
    let gap = |first_sequence, last_sequence, from_ns, to_ns| {
        let packets = last_sequence - first_sequence + 1;
        let count = Count::new(packets, packets * 50);
        Gap { first_sequence, last_sequence, count, from_ns, to_ns }
    };
    assert_eq!(take.gaps, [gap(3, 5, 209, 600), gap(7, 7, 609, 800)]);
    assert_eq!(take.missing(), Count::new(4, 200));
    assert!(take.balances() && take.overwritten.is_zero());
    // Behind it a chunk without packets tells the time at which it was sealed.
    let mut entries = numbered(&[1, 3]);
    let s = &mut entries[1].record.summary;
    (s.packets, s.original_bytes, s.first_ns, s.last_ns) = (0, 0, u64::MAX, 0);
    entries[1].record.ledger = Ledger::default();
    entries[1].record.ledger.store(Count::new(2, 100));
    assert_eq!(take_of(&Catalog::of(entries)).gaps, [gap(2, 2, 109, 310)]);
}

#[test]
fn what_is_missing_before_the_first_chunk_is_missing_since_the_take_began() {
    // The take began at 50. Packets of a capture file may be older.
    for (first_ns, from_ns) in [(300, 50), (50, 50), (49, 0)] {
        let entries = vec![entry(record(3, 4096, (first_ns, 310)))];
        let take = take_of(&Catalog::of(entries));
        let count = Count::new(2, 100);
        let gap = Gap { first_sequence: 1, last_sequence: 2, count, from_ns, to_ns: first_ns };
        assert_eq!(take.gaps, [gap]);
    }
}

#[test]
fn where_the_ring_gave_it_up_what_is_missing_is_overwritten_and_reaches_no_further_than_that() {
    let chunks = |reused, reused_to_ns| Catalog {
        reused,
        reused_to_ns,
        ring_alone: true,
        ..Catalog::of(numbered(&[3, 4, 7]))
    };
    // Up to number 2, or through 5 in the second gap, whose end the ring has not given up.
    for (reused, holes, gaps) in [(Some(2), 1, 1), (Some(4), 1, 1), (Some(5), 2, 0), (None, 0, 2)] {
        let take = take_of(&chunks(reused, None));
        assert_eq!((take.holes.len(), take.gaps.len()), (holes, gaps), "{reused:?}");
        let sum = |gaps: &[Gap]| gaps.iter().fold(Count::ZERO, |sum, gap| sum + gap.count);
        assert_eq!(sum(&take.holes), take.overwritten);
        assert_eq!(sum(&take.gaps), take.missing());
        assert_eq!(take.overwritten + take.missing(), Count::new(4, 200));
        assert!(take.balances());
    }
    // Nothing later than this time was given up.
    let ends = |reused, reused_to_ns| -> Vec<(u64, u64)> {
        let take = take_of(&chunks(Some(reused), reused_to_ns));
        take.holes.iter().map(|hole| (hole.from_ns, hole.to_ns)).collect()
    };
    assert_eq!(ends(6, None), [(50, 300), (409, 700)]);
    assert_eq!(ends(6, Some(600)), [(50, 300), (409, 601)]);
    // What follows packets that are later was lost in another way, and so was what has later numbers.
    assert_eq!(ends(6, Some(200)), [(50, 300), (409, 700)]);
    assert_eq!(ends(6, Some(409)), [(50, 300), (409, 700)]);
    assert_eq!(ends(5, Some(600)), [(50, 300), (409, 700)]);
    // A member may have lost what is later than all that the ring gave up, with a lower number.
    let take = take_of(&Catalog { ring_alone: false, ..chunks(Some(6), Some(600)) });
    assert_eq!(take.holes.last().map(|hole| hole.to_ns), Some(700));
}

#[test]
fn what_is_missing_of_a_take_that_was_cut_short_may_be_later_than_all_that_the_ring_gave_up() {
    let mut media = Media::new(1, 4, 256 << 10);
    let mut newest = record(7, 4096, (700, 709));
    (newest.reused, newest.reused_to_ns) = (Some(6), 600);
    media.chunks(0, 0, &[record(4, 4096, (400, 409)), newest]);
    let on_record = |ended| TakeRecord {
        number: 0,
        take: TAKE,
        ended,
        last_sequence: 7,
        first_ns: 100,
        last_ns: 709,
        ledger: newest.ledger,
    };
    for (record, to_ns) in
        [(None, 601), (Some(on_record(true)), 601), (Some(on_record(false)), 700)]
    {
        let mut media = media.clone();
        record.iter().for_each(|record| media.take_record(0, record));
        let (_, catalog) = listed(&media, 64 << 10, TimeRange::ALL);
        assert!(catalog.ring_alone);
        let hole = take_of(&catalog).holes.pop().expect("the ring took chunks");
        assert_eq!((hole.first_sequence, hole.to_ns), (5, to_ns), "{record:?}");
    }
}

#[test]
fn the_ring_alone_took_chunks_if_every_walk_found_one_that_is_newer() {
    let mut media = Media::new(2, 4, 256 << 10);
    let mut newest = record(40, 4096, (400, 409));
    (newest.reused, newest.reused_to_ns) = (Some(20), 209);
    media.chunks(0, 1, &[newest]);
    media.chunks(1, 1, &[record(41, 4096, (410, 419))]);
    // An older segment of the second member, without an index: it was walked to its last sound chunk.
    for (found, alone) in [(&[10, 21][..], true), (&[10, 19], false), (&[10], false)] {
        let older: Vec<_> = found.iter().map(|&n| record(n, 4096, (n * 10, n * 10 + 9))).collect();
        let mut media = media.clone();
        media.chunks(1, 0, &older);
        let (_, catalog) = listed(&media, 64 << 10, TimeRange::ALL);
        assert_eq!((catalog.reused, catalog.ring_alone), (Some(20), alone), "{found:?}");
    }
    // A member without a chunk may have had any.
    let mut media = Media::new(2, 4, 256 << 10);
    media.chunks(0, 1, &[newest]);
    let (_, catalog) = listed(&media, 64 << 10, TimeRange::ALL);
    assert_eq!((catalog.reused, catalog.ring_alone), (Some(20), false));
}

#[test]
fn a_chunk_behind_older_ones_that_a_power_cut_brought_back_tells_what_the_ring_gave_up() {
    let mut media = Media::new(1, 4, 256 << 10);
    let mut chunks = [record(10, 4096, (100, 109)), record(31, 4096, (310, 319))];
    (chunks[1].reused, chunks[1].reused_to_ns) = (Some(20), 209);
    media.chunks(0, 0, &chunks);
    let mut before = record(30, 4096, (300, 309));
    (before.reused, before.reused_to_ns) = (Some(9), 99);
    media.chunks(0, 1, &[before]);
    let (_, catalog) = listed(&media, 64 << 10, TimeRange::ALL);
    assert_eq!((catalog.reused, catalog.reused_to_ns), (Some(20), Some(209)));
    let entered = media.open(64 << 10, false, |reader, image| {
        let mut records = TakeRecords::read(reader, image).expect("the drive reads");
        records.enter_newest(image);
        records.get(TAKE.uuid).map(|record| record.last_sequence)
    });
    assert_eq!(entered.expect("the array opens"), Some(31));
}

#[test]
fn every_take_that_is_found_without_a_record_is_entered_but_none_older_than_those_on_record() {
    let mut media = Media::new(3, 4, 256 << 10);
    let take = |number: u16| {
        let first_sequence = 100 * u64::from(number);
        TakeId { uuid: Uuid::from_u128(number.into()), first_sequence, ..TAKE }
    };
    // Members that were away in the other two.
    for member in 0..3 {
        let take = take(member + 1);
        let chunk = record(take.first_sequence, 4096, (100, 109));
        media.chunks(member, 0, &[ChunkRecord { take, ..chunk }]);
    }
    let entered = |media: &Media| {
        let found = media.open(64 << 10, false, |reader, image| {
            let mut records = TakeRecords::read(reader, image).expect("the drive reads");
            records.enter_newest(image);
            records.iter().map(|record| record.take).collect::<Vec<_>>()
        });
        found.expect("the array opens")
    };
    assert_eq!(entered(&media), [take(1), take(2), take(3)]);
    let on_record = TakeRecord {
        number: 0,
        take: take(2),
        ended: true,
        last_sequence: 200,
        first_ns: 100,
        last_ns: 109,
        ledger: Ledger::default(),
    };
    media.take_record(0, &on_record);
    assert_eq!(entered(&media), [take(2), take(3)]);
}

#[test]
fn a_segment_that_cannot_be_read_at_either_end_may_have_held_the_newest_chunk() {
    let mut media = Media::new(1, 4, 256 << 10);
    let mut older = record(10, 4096, (100, 109));
    older.reused_to_ns = 30;
    media.chunks(0, 0, &[older]);
    let start = media.layout.segment_offset(1);
    let ends = [start, media.layout.segment_offset(2) - 4096];
    for (unreadable, known) in [(&ends[1..], Some(30)), (&ends[..], None)] {
        media.unreadable = unreadable.iter().map(|&offset| (base::DriveId(0), offset)).collect();
        let catalog = media.open(64 << 10, true, |reader, image| {
            Catalog::load(reader, image, TimeRange::ALL).expect("the rest reads")
        });
        assert_eq!(catalog.expect("the array opens").reused_to_ns, known, "{unreadable:?}");
    }
}

#[test]
fn a_loss_ends_with_the_next_packets_not_with_those_of_a_chunk_placed_anew_or_of_parity() {
    let until = |change: &dyn Fn(&mut ChunkRecord)| {
        let mut entries = numbered(&[1, 4, 5]);
        change(&mut entries[1].record);
        take_of(&Catalog::of(entries)).gaps.first().map(|gap| (gap.first_sequence, gap.to_ns))
    };
    assert_eq!(until(&|_| {}), Some((2, 400)));
    // It stands in for number 2; number 3 may be as late as number 5.
    let anew = |record: &mut ChunkRecord| {
        record.replaces = Some(2);
        record.ledger.stored = record.ledger.stored - record.summary.stored();
    };
    assert_eq!(until(&anew), Some((2, 500)));
    let of_parity = |record: &mut ChunkRecord| {
        record.parity = Some(Part { group: 1, span: 1, place: 0, of: 1 });
    };
    assert_eq!(until(&of_parity), Some((2, 500)));
    // Behind the last chunk that was not placed anew nothing tells.
    let mut entries = numbered(&[1, 4]);
    anew(&mut entries[1].record);
    let gaps = take_of(&Catalog::of(entries)).gaps;
    assert_eq!(gaps.iter().map(|gap| gap.to_ns).collect::<Vec<_>>(), [u64::MAX]);
}

#[test]
fn what_segments_that_were_not_read_may_hold_is_not_called_missing() {
    let gaps = |unread: &[RangeInclusive<u64>]| {
        let unread = Unread::of(unread.iter().cloned());
        let catalog = Catalog { unread, ..Catalog::of(numbered(&[1, 4, 8])) };
        let take = take_of(&catalog);
        take.gaps.iter().map(|gap| gap.first_sequence).collect::<Vec<_>>()
    };
    assert_eq!(gaps(&[]), [2, 5]);
    assert_eq!(gaps(&[1..=1, 4..=4, 8..=20]), [2, 5]);
    assert_eq!(gaps(&[0..=2]), [5]);
    assert_eq!(gaps(&[7..=9]), [2]);
    assert_eq!(gaps(&[0..=u64::MAX]), [0u64; 0]);
}

#[test]
fn numbers_that_follow_each_other_leave_nothing_out_whatever_their_ledgers_say() {
    let mut entries = numbered(&[1, 2]);
    entries[1].record.ledger.store(Count::new(9, 900));
    assert!(take_of(&Catalog::of(entries)).gaps.is_empty());
}

#[test]
fn a_take_balances_if_its_ledger_does_and_its_chunks_and_gaps_make_it_up() {
    let take = take_of(&Catalog::of(numbered(&[1, 3])));
    assert!(take.balances());
    let lost = |change: fn(&mut Take)| {
        let mut take = take.clone();
        change(&mut take);
        take.balances()
    };
    assert!(!lost(|take| take.stored += Count::new(1, 0)));
    assert!(!lost(|take| take.overwritten += Count::new(0, 1)));
    assert!(!lost(|take| take.gaps.clear()));
    // More was offered than its ledger has an account of.
    assert!(!lost(|take| take.ledger.offered += Count::new(1, 50)));
    assert!(lost(|take| take.ledger.lose(Stage::NoBuffer, Count::new(1, 50))));
}

#[test]
fn a_chunk_that_only_fills_a_hole_belongs_to_no_group() {
    let parity = |sequence, part| {
        let mut record = record(sequence, 8192, (100, 200));
        record.parity = Some(part);
        entry(record)
    };
    let of_group = parity(9, Part { group: 7, span: 1, place: 0, of: 1 });
    let groups = Groups::of(&[parity(3, Part::FILLER), of_group, numbered(&[1])[0]]);
    assert_eq!(groups.each().collect::<Vec<_>>(), [[of_group]]);
    assert_eq!(groups.around(5), []);
    assert_eq!(groups.around(8), [of_group]);
}

/// Numbers of the chunks that a listing of a span has.
pub fn listed(media: &Media, buffer_bytes: usize, range: TimeRange) -> (Vec<u64>, Catalog) {
    let catalog = media
        .open(buffer_bytes, false, |reader, image| {
            Catalog::load(reader, image, range).expect("drives that read")
        })
        .expect("the array opens");
    (catalog.entries.iter().map(|e| e.record.sequence).collect(), catalog)
}

/// Milliseconds as packets' times. Numbers grow more slowly than microseconds.
pub fn ms(from: u64, to: u64) -> (u64, u64) {
    (from * 1_000_000, to * 1_000_000)
}

pub fn span_ms(from: u64, to: u64) -> TimeRange {
    let (from, to) = ms(from, to);
    span(from, to)
}

/// Two chunks with these numbers, and times from the first's to the other's.
pub fn pair(first: u64, (from, to): (u64, u64)) -> [ChunkRecord; 2] {
    [record(first, 4096, (from, to)), record(first + 1, 4096, (from, to))]
}

#[test]
fn a_span_is_listed_with_a_segment_more_on_either_side_and_the_newest_one() {
    let mut media = Media::new(1, 8, 256 << 10);
    let mut segments: Vec<[ChunkRecord; 2]> =
        (0..6).map(|n| pair(10 * (n + 1), ms(100 * (n + 1), 100 * (n + 1) + 50))).collect();
    // The newest chunk tells what the ring has given up.
    segments[5][1].reused = Some(3);
    segments[5][1].reused_to_ns = 30;
    let full: Vec<(u16, u64, &[ChunkRecord])> =
        (0..).zip(&segments).map(|(at, records)| (0, at, &records[..])).collect();
    let entries = media.full(&full);
    let (all, catalog) = listed(&media, 64 << 10, TimeRange::ALL);
    assert_eq!(catalog.entries, entries);
    assert_eq!((catalog.reused, catalog.reused_to_ns), (Some(3), Some(30)));
    assert_eq!(catalog.unread, Unread::default());
    let (some, catalog) = listed(&media, 64 << 10, span_ms(110, 120));
    assert_eq!(some, [10, 11, 20, 21, 60, 61]);
    assert_eq!((catalog.reused, catalog.reused_to_ns), (Some(3), Some(30)));
    assert_eq!(catalog.unread, Unread::of([30..=31, 40..=41, 50..=51].into_iter()));
    let (some, catalog) = listed(&media, 64 << 10, span_ms(310, 420));
    assert_eq!(some, [20, 21, 30, 31, 40, 41, 50, 51, 60, 61]);
    assert_eq!(catalog.unread, Unread::of([10..=11].into_iter()));
    assert_eq!(all.len(), 12);
}

#[test]
fn what_the_ring_gave_up_is_known_whatever_the_span_if_the_head_is_still_open() {
    let mut media = Media::new(1, 8, 256 << 10);
    let segments: Vec<[ChunkRecord; 2]> =
        (0..4).map(|n| pair(10 * (n + 1), ms(100 * (n + 1), 100 * (n + 1) + 50))).collect();
    let full: Vec<(u16, u64, &[ChunkRecord])> =
        (0..).zip(&segments).map(|(at, records)| (0, at, &records[..])).collect();
    media.full(&full);
    let mut newest = record(50, 4096, ms(500, 501));
    (newest.reused, newest.reused_to_ns) = (Some(4), 44);
    media.chunks(0, 4, &[newest]);
    let (some, catalog) = listed(&media, 64 << 10, span_ms(110, 120));
    assert_eq!(some, [10, 11, 20, 21]);
    assert_eq!((catalog.reused, catalog.reused_to_ns), (Some(4), Some(44)));
}

#[test]
fn the_time_that_a_ring_gave_up_is_known_if_every_members_newest_chunk_says_it() {
    let mut media = Media::new(3, 4, 256 << 10);
    let mut chunks = [record(10, 4096, (100, 150)), record(11, 4096, (100, 150))];
    chunks[0].reused_to_ns = 30;
    chunks[1].reused_to_ns = 40;
    media.chunks(0, 0, &chunks[..1]);
    media.chunks(1, 0, &chunks[1..]);
    let known = |change: fn(&mut ArrayImage)| {
        let of_image = media.open(64 << 10, false, |reader, image| {
            let mut image = image.clone();
            change(&mut image);
            Catalog::load(reader, &image, TimeRange::ALL).expect("drives that read").reused_to_ns
        });
        of_image.expect("the array opens")
    };
    // The third member is empty: it gave up nothing.
    assert_eq!(known(|_| ()), Some(40));
    assert_eq!(known(|image| image.members[0].head = None), Some(40));
    assert_eq!(known(|image| (0..2).for_each(|at| image.members[at].head = None)), None);
    // A member that is missing may have had the newest chunk, and so may one whose index is damaged.
    assert_eq!(known(|image| image.members[2].segments.clear()), None);
    let damaged = |image: &mut ArrayImage| {
        let head = image.members[0].head.as_mut().expect("it holds something");
        head.reused_to_ns = None;
    };
    assert_eq!(known(damaged), None);
}

#[test]
fn a_segment_of_another_member_is_listed_for_its_numbers_if_its_times_lie_outside() {
    let mut media = Media::new(2, 8, 256 << 10);
    let one = [pair(10, ms(100, 150)), pair(60, ms(160, 180))];
    // A slow queue's: their numbers lie between, their packets are later.
    let other = [
        pair(12, ms(1000, 1010)),
        pair(30, ms(1100, 1110)),
        pair(52, ms(1200, 1210)),
        pair(70, ms(1300, 1310)),
        pair(80, ms(1400, 1410)),
        pair(90, ms(1500, 1510)),
    ];
    let mut full: Vec<(u16, u64, &[ChunkRecord])> =
        (0..).zip(&one).map(|(at, records)| (0, at, &records[..])).collect();
    full.extend((0..).zip(&other).map(|(at, records)| (1, at, &records[..])));
    media.full(&full);
    let (some, catalog) = listed(&media, 64 << 10, span_ms(110, 170));
    assert_eq!(some, [10, 11, 12, 13, 52, 53, 60, 61, 70, 71, 90, 91]);
    // Before and behind these all packets are later.
    assert_eq!(catalog.unread, Unread::of([30..=31, 80..=81].into_iter()));
}

#[test]
fn an_index_longer_than_a_first_look_is_read_whole_and_one_longer_than_a_buffer_is_walked() {
    // As many entries as 64 KiB hold, and one more.
    for (count, walked_with_64_kib) in [(148, false), (149, true)] {
        let mut media = Media::new(1, 2, 1 << 20);
        let records: Vec<ChunkRecord> =
            (1..=count).map(|n| record(n, 4096, (n * 100, n * 100 + 9))).collect();
        let entries = media.full(&[(0, 0, &records)]);
        for (buffer_bytes, walked) in [(64 << 10, walked_with_64_kib), (128 << 10, false)] {
            let (_, catalog) = listed(&media, buffer_bytes, TimeRange::ALL);
            assert_eq!(catalog.entries, entries);
            let unindexed: &[(u16, u64)] = if walked { &[(0, 0)] } else { &[] };
            assert_eq!(catalog.unindexed, unindexed, "{count} entries, {buffer_bytes} bytes");
        }
    }
}

#[test]
fn an_index_that_does_not_describe_its_segment_from_start_to_end_is_not_believed() {
    let records = [record(1, 8192, (100, 109)), record(2, 8192, (200, 209))];
    let sound = |_: &mut Vec<(Place, ChunkRecord)>| ();
    // It begins behind the segment's start.
    let behind = |chunks: &mut Vec<(Place, ChunkRecord)>| {
        chunks[0].0.offset += 8192;
        chunks[1].0.offset += 8192;
    };
    // Bytes are left over.
    let short = |chunks: &mut Vec<(Place, ChunkRecord)>| chunks[1].1.summary.length = 4096;
    // A chunk is longer than the array's chunks are.
    let long = |chunks: &mut Vec<(Place, ChunkRecord)>| {
        chunks[0].1.summary.length = 17 * 4096;
        chunks[1].0.offset += 15 * 4096;
    };
    type Change = dyn Fn(&mut Vec<(Place, ChunkRecord)>);
    let cases: [(&str, &Change, u64, bool); 4] = [
        ("sound", &sound, 16_384, true),
        ("behind the start", &behind, 16_384, false),
        ("not up to the end", &short, 16_384, false),
        ("too long", &long, 19 * 4096, false),
    ];
    for (what, change, from, believed) in cases {
        let mut media = Media::new(1, 4, 256 << 10);
        let entries = media.chunks(0, 0, &records);
        let mut chunks: Vec<_> = entries.iter().map(|e| (e.place, e.record)).collect();
        change(&mut chunks);
        let start = entries[0].place;
        let place = Place { offset: start.offset + from, ..start };
        media.index_at(0, place, &chunks);
        let (numbers, catalog) = listed(&media, 64 << 10, TimeRange::ALL);
        assert_eq!(numbers, [1, 2], "{what}");
        assert_eq!(catalog.unindexed.is_empty(), believed, "{what}");
    }
}

/// A take's record: its last number and packet, and what it stored.
pub fn on_record(last_sequence: u64, last_ns: u64, ended: bool) -> TakeRecord {
    let ledger = record(last_sequence, 4096, (1, 1)).ledger;
    TakeRecord { number: 0, take: TAKE, ended, last_sequence, first_ns: 100, last_ns, ledger }
}

/// These chunks with a take on record.
fn with_record(record: TakeRecord, entries: Vec<Entry>) -> Catalog {
    let mut records = TakeRecords::default();
    records.enter(record);
    Catalog { records, ..Catalog::of(entries) }
}

#[test]
fn a_take_on_record_is_listed_without_chunks_unless_some_may_be_unread() {
    let listed = |unread: &[RangeInclusive<u64>]| {
        let unread = Unread::of(unread.iter().cloned());
        Catalog { unread, ..with_record(on_record(6, 609, true), Vec::new()) }.takes().len()
    };
    assert_eq!((listed(&[]), listed(&[0..=0, 7..=9])), (1, 1));
    assert_eq!((listed(&[0..=1]), listed(&[6..=9]), listed(&[3..=4])), (0, 0, 0));
}

#[test]
fn all_that_is_left_of_a_take_on_record_is_missing_since_it_began_or_before_if_packets_are_older() {
    // The take began at 50. Packets of a capture file may be older.
    for (first_ns, from_ns) in [(51, 50), (50, 50), (49, 0)] {
        let record = TakeRecord { first_ns, ..on_record(6, 609, true) };
        let take = take_of(&with_record(record, Vec::new()));
        let count = Count::new(6, 300);
        let gap = Gap { first_sequence: 1, last_sequence: 6, count, from_ns, to_ns: 610 };
        assert_eq!(take.gaps, [gap]);
    }
}

#[test]
fn a_record_that_knows_as_much_as_the_chunks_is_the_takes_account_and_what_it_knows_more_is_missing()
 {
    let of = |last_sequence, ended| {
        let mut record = on_record(last_sequence, 609, ended);
        record.ledger.lose(Stage::NoBuffer, Count::new(7, 70));
        let take = take_of(&with_record(record, numbered(&[1, 2, 3])));
        let ends: Vec<_> =
            take.gaps.iter().map(|gap| (gap.first_sequence, gap.last_sequence)).collect();
        (take.ledger == record.ledger, take.last_sequence, ends)
    };
    // One that was written when some members were away may know less.
    assert_eq!(of(2, false), (false, 3, vec![]));
    assert_eq!(of(3, false), (true, 3, vec![]));
    assert_eq!(of(4, false), (true, 4, vec![(4, 4)]));
    assert_eq!(of(6, false), (true, 6, vec![(4, 6)]));
    assert_eq!(of(6, true), (true, 6, vec![(4, 6)]));
}

#[test]
fn what_the_ring_gave_up_at_the_end_of_a_take_is_as_late_as_the_take_if_no_chunk_follows() {
    let until = |last_sequence| {
        let catalog = Catalog {
            reused: Some(6),
            reused_to_ns: Some(500),
            ring_alone: true,
            ..with_record(on_record(last_sequence, 709, true), numbered(&[1, 2, 3, 7]))
        };
        let take = take_of(&catalog);
        take.holes.iter().map(|hole| (hole.last_sequence, hole.to_ns)).collect::<Vec<_>>()
    };
    assert_eq!(until(7), [(6, 501)]);
    let catalog = Catalog {
        reused: Some(6),
        reused_to_ns: Some(500),
        ring_alone: true,
        ..with_record(on_record(6, 709, true), numbered(&[1, 2, 3]))
    };
    let holes = take_of(&catalog).holes;
    assert_eq!(holes.iter().map(|h| (h.last_sequence, h.to_ns)).collect::<Vec<_>>(), [(6, 710)]);
}

#[test]
fn a_member_whose_newest_chunk_is_the_last_that_was_given_up_has_none_that_is_newer() {
    for (number, alone) in [(21, true), (20, false)] {
        let mut media = Media::new(2, 4, 256 << 10);
        let mut newest = record(40, 4096, (400, 409));
        (newest.reused, newest.reused_to_ns) = (Some(20), 209);
        media.chunks(0, 1, &[newest]);
        media.chunks(1, 1, &[record(number, 4096, (200, 209))]);
        let (_, catalog) = listed(&media, 64 << 10, TimeRange::ALL);
        assert_eq!((catalog.reused, catalog.ring_alone), (Some(20), alone), "{number}");
    }
}

#[test]
fn an_index_is_believed_if_its_chunks_are_as_long_as_they_may_be_and_it_fills_a_buffer() {
    let mut media = Media::new(1, 4, 256 << 10);
    media.full(&[(0, 0, &[record(1, media.layout.chunk_max, (100, 109))])]);
    let (numbers, catalog) = listed(&media, 64 << 10, TimeRange::ALL);
    assert_eq!((numbers, catalog.unindexed), (vec![1], vec![]));
    // More than a first look takes, and to the byte as much as a buffer does.
    let buffer_bytes = 128 << 10;
    let fits = |count: &u64| index::tail_length(*count) <= buffer_bytes;
    let count = (1..).take_while(fits).last().expect("one at least");
    assert_eq!(index::tail_length(count), buffer_bytes);
    for (count, unindexed) in [(count, vec![]), (count + 1, vec![(0, 0)])] {
        let mut media = Media::new(1, 2, 2 << 20);
        let records: Vec<ChunkRecord> = (1..=count).map(|n| record(n, 4096, (n, n))).collect();
        media.full(&[(0, 0, &records)]);
        let (_, catalog) = listed(&media, buffer_bytes as usize, TimeRange::ALL);
        assert_eq!((catalog.entries.len() as u64, catalog.unindexed), (count, unindexed));
    }
}
