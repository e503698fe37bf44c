//! What opening finds in a member's segments: by their indexes, by a walk where there is none, and what is left of both if
//! pages can't be read.

use crate::media::{Media, record};
use base::{DeviceError, DriveId};
use format::{ChunkRecord, ChunkSummary, Place};
use longtake_recorder::open::{HeadImage, Live, OpenError};
use longtake_recorder::reader::ReadError;
use longtake_recorder::takes::extents;
use longtake_recorder::{MemberImage, Segment};
use uuid::Uuid;

const BUFFER: usize = 64 << 10;

/// The only member, as it is opened; what can't be read is passed over if `degraded`.
fn opened(media: &Media, degraded: bool) -> Result<MemberImage, OpenError> {
    media.open(BUFFER, degraded, |_, image| image.members[0].clone())
}

fn sound(media: &Media) -> MemberImage {
    opened(media, false).expect("the array opens")
}

fn live(first: u64, last: u64, (first_ns, last_ns): (u64, u64), indexed: bool) -> Segment {
    Segment::Live(Live {
        first_sequence: first,
        last_sequence: last,
        first_ns,
        last_ns,
        indexed,
        chunks: (last - first) as u32 + 1,
    })
}

/// The numbers of the chunks at a head.
fn numbers(head: &HeadImage) -> Vec<u64> {
    head.chunks.iter().map(|(_, record)| record.sequence).collect()
}

/// Three segments: one with an index, one that a crash left without, and the open head.
fn three() -> Media {
    let mut media = Media::new(1, 4, 256 << 10);
    let full = [record(10, 8192, (150, 180)), record(11, 4096, (100, 160))];
    media.full(&[(0, 0, &full)]);
    media.chunks(0, 1, &[record(20, 4096, (250, 280)), record(21, 8192, (200, 260))]);
    let mut head = [record(30, 12_288, (350, 360)), record(31, 4096, (340, 390))];
    head[1].reused_to_ns = 77;
    media.chunks(0, 2, &head);
    media
}

#[test]
fn a_segment_is_as_its_chunks_say_with_an_index_and_without() {
    let member = sound(&three());
    let expected = [
        live(10, 11, (100, 180), true),
        live(20, 21, (200, 280), false),
        live(30, 31, (340, 390), false),
        Segment::Empty,
    ];
    assert_eq!(member.segments, expected);
    let head = member.head.as_ref().expect("it holds something");
    assert_eq!((head.segment, head.used, head.closed), (2, 16_384, false));
    assert_eq!((numbers(head), head.reused_to_ns), (vec![30, 31], Some(77)));
    let [unindexed] = &member.unindexed[..] else { panic!("{:?}", member.unindexed) };
    assert_eq!((unindexed.segment, unindexed.used, unindexed.closed), (1, 12_288, false));
    assert_eq!(numbers(unindexed), [20, 21]);
    // The superblock goes with what begins behind it, and an open segment goes as far as it is written.
    let start = |segment| member.layout.segment_offset(segment);
    assert_eq!(extents(&member), [(0, start(1) + 12_288), (start(2), 16_384)]);
}

#[test]
fn a_head_whose_only_chunk_is_torn_still_says_what_the_ring_has_overwritten() {
    let mut media = Media::new(1, 3, 256 << 10);
    let mut older = record(10, 8192, (150, 180));
    older.reused_to_ns = 40;
    media.full(&[(0, 1, &[older])]);
    // The first chunk of the ring's next lap: its header says what was overwritten for it.
    let mut newest = record(20, 8192, (250, 280));
    newest.reused_to_ns = 77;
    let entries = media.chunks(0, 2, &[newest]);
    let whole = sound(&media).head.expect("it holds something");
    assert_eq!((numbers(&whole), whole.reused_to_ns), (vec![20], Some(77)));
    media.tear(&entries[0]);
    let torn = sound(&media).head.expect("its header can be read");
    assert_eq!((torn.segment, numbers(&torn), torn.reused_to_ns), (2, vec![], Some(77)));
}

#[test]
fn the_newest_chunk_of_a_closed_head_is_told_by_its_index_if_a_buffer_takes_that() {
    // As many entries as 64 KiB hold, and one more.
    for (count, reused_to_ns) in [(1, Some(77)), (148, Some(77)), (149, None)] {
        let mut media = Media::new(1, 2, 1 << 20);
        let mut records: Vec<ChunkRecord> = (1..=count).map(|n| record(n, 4096, (n, n))).collect();
        records.last_mut().expect("one at least").reused_to_ns = 77;
        media.full(&[(0, 1, &records)]);
        let member = sound(&media);
        let head = member.head.expect("it holds something");
        assert_eq!((head.segment, head.used, head.closed), (1, count * 4096, true));
        assert_eq!((numbers(&head), head.reused_to_ns), (vec![], reused_to_ns), "{count} chunks");
    }
}

#[test]
fn a_walk_goes_as_far_as_chunks_follow_each_other_up_to_the_very_end_of_a_segment() {
    // Windows of 64 KiB: the last one is a page.
    let lengths = [61_440, 61_440, 61_440, 8192, 65_536, 4096];
    assert_eq!(lengths.iter().sum::<u32>(), 256 << 10);
    let records: Vec<ChunkRecord> =
        (1..).zip(lengths).map(|(n, length)| record(n, length, (n, n))).collect();
    let walked = |records: &[ChunkRecord]| {
        let mut media = Media::new(1, 3, 256 << 10);
        media.chunks(0, 0, records);
        numbers(&sound(&media).head.expect("it holds something"))
    };
    assert_eq!(walked(&records), [1, 2, 3, 4, 5, 6]);
    let changed = |at: usize, change: fn(&mut ChunkRecord)| {
        let mut records = records.clone();
        change(&mut records[at]);
        walked(&records)
    };
    // An older number, or the same one again, is of an earlier lap.
    assert_eq!(changed(3, |r| r.sequence = 2), [1, 2, 3]);
    assert_eq!(changed(3, |r| r.sequence = 3), [1, 2, 3]);
    // Another take goes on there only if it began behind all that was found.
    let another_take = |first_sequence| {
        let mut records = records.clone();
        let take = &mut records[5].take;
        (take.uuid, take.first_sequence) = (Uuid::from_u128(9), first_sequence);
        walked(&records)
    };
    assert_eq!(another_take(6), [1, 2, 3, 4, 5, 6]);
    assert_eq!(another_take(5), [1, 2, 3, 4, 5]);
    // A chunk that would go over the segment's end, and one that is longer than the array's chunks.
    assert_eq!(changed(5, |r| r.summary.length = 8192), [1, 2, 3, 4, 5]);
    assert_eq!(changed(0, |r| r.summary.length = 68 << 10), [0u64; 0]);
}

#[test]
fn a_page_that_can_not_be_read_is_named_unless_what_is_left_is_wanted() {
    let whole = sound(&three());
    let layout = whole.layout;
    let first = |segment: u64| layout.segment_offset(segment);
    let last = |segment: u64| first(segment + 1) - 4096;
    let with = |offset, degraded| {
        let mut media = three();
        media.unreadable = vec![(DriveId(0), offset)];
        opened(&media, degraded)
    };
    // In the middle of a segment that is walked, too.
    for offset in [first(0), last(0), first(1), first(1) + 4096, last(3)] {
        let drive = "memory0".to_string();
        let at = if offset == first(1) + 4096 { first(1) } else { offset };
        let error = ReadError::Device { drive, offset: at, error: DeviceError::Medium };
        assert_eq!(with(offset, false).unwrap_err(), OpenError::Read(error));
    }
    let left = |offset| with(offset, true).expect("it opens for reading").segments;
    // An index tells what is in a segment whose first page can't be read; without one nobody does.
    assert_eq!(left(first(0)), whole.segments);
    let mut without = whole.segments.clone();
    without[1] = Segment::Empty;
    assert_eq!(left(first(1)), without);
    assert_eq!(left(first(1) + 4096), without);
    // Without its index a segment is walked.
    let mut walked = whole.segments.clone();
    walked[0] = live(10, 11, (100, 180), false);
    assert_eq!(left(last(0)), walked);
    assert_eq!(left(last(3)), whole.segments);
}

/// How many chunks of the first segment are found, and the pages at which reads of so many bytes
/// start there or at the start of the next segment.
fn reads(media: &Media, length: u32) -> (usize, Vec<u64>) {
    let (start, next) = (media.layout.segment_offset(0), media.layout.segment_offset(1));
    let found = media.open(BUFFER, false, |reader, image| {
        let asked = reader.bank.asked.iter().filter(|(_, bytes)| *bytes == length);
        let within = asked.filter(|(offset, _)| (start..=next).contains(offset));
        let mut pages: Vec<u64> = within.map(|(offset, _)| (offset - start) / 4096).collect();
        pages.sort_unstable();
        (image.members[0].head.as_ref().map_or(0, |head| head.chunks.len()), pages)
    });
    found.expect("the array opens")
}

#[test]
fn headers_of_long_chunks_are_looked_for_where_they_lie_if_all_are_as_long() {
    let mut media = Media::new(1, 2, 2 << 20);
    let records: Vec<ChunkRecord> = (1..=20).map(|n| record(n, 64 << 10, (n, n))).collect();
    media.chunks(0, 0, &records);
    // A header for each chunk of a full segment, the segment's last page, and the next one's first.
    let mut pages: Vec<u64> = (0..32).map(|chunk| 16 * chunk).collect();
    pages.extend([511, 512]);
    assert_eq!(reads(&media, 4096), (20, pages));
}

#[test]
fn headers_of_short_chunks_are_found_in_one_read() {
    let mut media = Media::new(1, 2, 1 << 20);
    let records: Vec<ChunkRecord> = (1..=20).map(|n| record(n, 4096, (n, n))).collect();
    media.chunks(0, 0, &records);
    assert_eq!(reads(&media, 64 << 10), (20, vec![0, 16]));
}

#[test]
fn a_header_that_can_not_be_read_is_an_error_only_if_a_chunk_may_lie_there() {
    let whole = [record(1, 64 << 10, (1, 1)), record(2, 64 << 10, (2, 2))];
    let walked = |records: &[ChunkRecord], unreadable: u64, torn: bool| {
        let mut media = Media::new(1, 3, 256 << 10);
        let entries = media.chunks(0, 0, records);
        if torn {
            media.tear(&entries[1]);
        }
        let offset = media.layout.segment_offset(0) + unreadable;
        media.unreadable = vec![(DriveId(0), offset)];
        let head = opened(&media, false).map(|member| member.head);
        head.map(|head| numbers(&head.expect("it holds something")))
    };
    let drive = "memory0".to_string();
    let error =
        ReadError::Device { drive, offset: (1 << 20) + (128 << 10), error: DeviceError::Medium };
    assert_eq!(walked(&whole, 128 << 10, false), Err(OpenError::Read(error)));
    // The segment ends before it: with a torn chunk, or with one that is shorter than those before.
    assert_eq!(walked(&whole, 128 << 10, true), Ok(vec![1]));
    let short = [whole[0], record(2, 32 << 10, (2, 2))];
    assert_eq!(walked(&short, 192 << 10, false), Ok(vec![1, 2]));
}

#[test]
fn an_index_whose_first_chunk_was_written_over_does_not_count() {
    let mut media = Media::new(1, 3, 256 << 10);
    let entries = media.full(&[(0, 0, &[record(10, 8192, (1, 2)), record(11, 8192, (3, 4))])]);
    assert_eq!(sound(&media).segments[0], live(10, 11, (1, 4), true));
    // The ring has begun the segment anew.
    media.chunks(0, 0, &[record(50, 8192, (5, 6))]);
    assert_eq!(sound(&media).segments[0], live(50, 50, (5, 6), false));
    assert_eq!(entries.len(), 2);
}

#[test]
fn an_index_tells_of_the_first_page_of_its_own_segment() {
    let mut media = Media::new(1, 4, 256 << 10);
    for segment in 0..3 {
        let first = 10 * (segment + 1);
        let records =
            [record(first, 8192, (first, first)), record(first + 1, 4096, (first, first))];
        media.full(&[(0, segment, &records)]);
    }
    let whole = sound(&media);
    for segment in 0..3 {
        media.unreadable = vec![(DriveId(0), media.layout.segment_offset(segment))];
        let left = opened(&media, true).expect("it opens for reading");
        assert_eq!(left.segments, whole.segments, "segment {segment}");
    }
}

#[test]
fn a_chunk_that_belongs_elsewhere_is_none() {
    let places: [fn(&mut Place); 4] = [
        |_| (),
        |place| place.array = Uuid::from_u128(99),
        |place| place.member += 1,
        |place| place.offset += 4096,
    ];
    for (at, change) in places.into_iter().enumerate() {
        let mut media = Media::new(2, 4, 256 << 10);
        let entries = media.chunks(0, 0, &[record(1, 8192, (1, 2)), record(2, 8192, (3, 4))]);
        // First the second one, then the first.
        for (left, entry) in [(&[1][..], entries[1]), (&[], entries[0])] {
            let mut place = entry.place;
            change(&mut place);
            media.header_at(&entry, place);
            let member = sound(&media);
            // What a segment of this array held is lost where a chunk of another place lies at its start.
            let is_lost = left.is_empty() && at > 1;
            assert_eq!(member.lost_segment, is_lost, "place {at}");
            let found = member.head.map_or(Vec::new(), |head| numbers(&head));
            assert_eq!(found, if at == 0 { &[1, 2][..] } else { left }, "place {at}");
        }
    }
}

#[test]
fn a_member_is_trimmed_only_in_whole_units_of_its_drive() {
    // Segments of 384 KiB begin at 1 MiB.
    let units = [
        (Some(4096), true),
        (Some(128 << 10), true),
        (Some(384 << 10), false),
        (Some(1 << 20), false),
        (Some(256 << 10), false),
        (None, false),
    ];
    for (unit, trims) in units {
        let mut media = Media::new(1, 4, 384 << 10);
        media.trim_unit_bytes = unit;
        assert_eq!(sound(&media).trims, trims, "{unit:?}");
    }
}

#[test]
fn a_segment_that_begins_with_a_chunk_without_packets_says_when_that_was_sealed() {
    let summary = ChunkSummary { length: 4096, sealed_ns: 77, end: true, ..ChunkSummary::EMPTY };
    let end = ChunkRecord { summary, ..record(20, 4096, (1, 2)) };
    let mut media = Media::new(1, 5, 256 << 10);
    media.full(&[(0, 0, &[record(10, 8192, (1, 2)), record(11, 8192, (3, 4))])]);
    media.full(&[(0, 1, &[end, record(21, 8192, (5, 6))])]);
    let end =
        ChunkRecord { sequence: 31, summary: ChunkSummary { sealed_ns: 88, ..summary }, ..end };
    media.chunks(0, 2, &[record(30, 8192, (5, 6)), end]);
    media.chunks(0, 3, &[ChunkRecord { sequence: 40, ..end }]);
    assert_eq!(sound(&media).untimed, [(1, 77), (3, 88)]);
}
