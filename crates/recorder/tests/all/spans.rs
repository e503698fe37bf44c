//! Which segments a listing of a span of time reads: those whose packets touch it, and those next to where chunks of it may be
//! missing, also by what the ends of takes say. Numbers and times are at the very edge of what decides.

use crate::listing::{listed, ms, pair, span, span_ms};
use crate::media::{Media, TAKE, record};
use base::{DriveId, Timestamp};
use format::{ChunkRecord, ChunkSummary, TakeId, TakeRecord};
use longtake_recorder::TimeRange;
use longtake_recorder::takes::{Catalog, Unread};
use uuid::Uuid;

/// Two chunks of a take that began with this number, and time in ms.
fn of_later_take(
    (first_sequence, started): (u64, u64),
    first: u64,
    times: (u64, u64),
) -> [ChunkRecord; 2] {
    let started = Timestamp::from_nanos(ms(started, 0).0);
    let take = TakeId { uuid: Uuid::from_u128(9), started, first_sequence };
    pair(first, times).map(|record| ChunkRecord { take, ..record })
}

/// Numbers of the chunks that a listing of a span has.
fn numbers(media: &Media, range: TimeRange) -> Vec<u64> {
    listed(media, 64 << 10, range).0
}

#[test]
fn what_may_be_missing_at_the_end_of_a_take_lies_behind_its_last_number_and_its_last_packet() {
    let mut media = Media::new(2, 8, 256 << 10);
    let [early, middle] = [pair(10, ms(100, 150)), pair(20, ms(200, 250))];
    let last = pair(22, ms(290, 300));
    let later = |first, times| of_later_take((40, 900), first, times);
    let heads = [later(40, ms(1000, 1010)), later(42, ms(1010, 1020))];
    media.full(&[
        (0, 0, &early),
        (0, 1, &middle),
        (0, 2, &heads[0]),
        (1, 0, &last),
        (1, 1, &heads[1]),
    ]);
    media.take_record(
        0,
        &TakeRecord {
            number: 0,
            take: TAKE,
            ended: true,
            last_sequence: 23,
            first_ns: ms(100, 0).0,
            last_ns: ms(300, 0).0,
            ledger: last[1].ledger,
        },
    );
    // Its last number was found, so that nothing before its last packet can be missing behind that.
    assert_eq!(numbers(&media, span_ms(292, 298)), [22, 23, 40, 41, 42, 43]);
    // The take behind it may have lost its first chunks, from the end of this one on.
    assert_eq!(numbers(&media, span_ms(400, 500)), [20, 21, 22, 23, 40, 41, 42, 43]);
}

#[test]
fn the_end_of_a_take_that_an_index_alone_tells_of_bounds_the_start_of_the_next_one() {
    let mut media = Media::new(2, 8, 256 << 10);
    // Number 14 ended a take at 300 ms. The next one began at 400 ms with number 30, which is missing.
    let summary =
        ChunkSummary { length: 4096, sealed_ns: ms(300, 0).0, end: true, ..ChunkSummary::EMPTY };
    let end = ChunkRecord {
        summary,
        ledger: record(13, 4096, (1, 1)).ledger,
        ..record(14, 4096, (1, 1))
    };
    let later = |first, times| of_later_take((30, 400), first, times);
    media.full(&[
        (0, 0, &pair(10, ms(100, 150))),
        (0, 1, &[end, later(40, ms(700, 710))[0]]),
        (1, 0, &pair(12, ms(200, 250))),
        (1, 1, &later(41, ms(720, 730))),
    ]);
    // The page that would have said at once that the segment begins with an end.
    media.unreadable = vec![(DriveId(0), media.layout.segment_offset(1))];
    let found = media.open(64 << 10, true, |reader, image| {
        assert_eq!(image.members[0].untimed, []);
        let catalog = Catalog::load(reader, image, span_ms(500, 510)).expect("the indexes read");
        catalog.entries.iter().map(|e| e.record.sequence).collect::<Vec<_>>()
    });
    assert_eq!(found.expect("it opens for reading"), [12, 13, 14, 40, 41, 42]);
}

#[test]
fn packets_as_old_as_their_numbers_may_come_from_a_file_and_what_is_missing_beside_them_too() {
    // The last number of the second segment stands for 2 ms.
    for (first_ns, from_a_file) in [(2_000_999, true), (2_001_000, false)] {
        let mut media = Media::new(1, 8, 256 << 10);
        let mut second = [record(1000, 4096, ms(3, 3)), record(2000, 4096, ms(3, 3))];
        second[0].summary.first_ns = first_ns;
        media.full(&[
            (0, 0, &pair(10, (50_000, 60_000))),
            (0, 1, &second),
            (0, 2, &pair(3000, ms(10, 11))),
        ]);
        let found = numbers(&media, span(100, 200));
        assert_eq!(found.contains(&1000), from_a_file, "{first_ns}: {found:?}");
    }
}

#[test]
fn where_numbers_catch_up_with_packets_another_take_begins_that_may_have_lost_what_is_as_old() {
    let mut media = Media::new(1, 8, 256 << 10);
    let second = |seconds: u64| seconds * 1_000_000_000;
    // The third segment's first number stands for second 155, with which the packets of the second one begin. What is missing
    // between the two may be of any time from the second one's last number on.
    let first = [99_999_000, 99_999_999].map(|n| record(n, 4096, (second(149), second(150))));
    let late = [100_000_000, 100_000_010].map(|n| record(n, 4096, (second(155), second(156))));
    let behind = pair(155_000_000, (second(180), second(181)));
    media.full(&[(0, 0, &first), (0, 1, &late), (0, 2, &behind)]);
    let since = 100_000_010_000;
    for (to, needed) in [(since, true), (since - 1, false)] {
        let found = numbers(&media, span(second(100), to));
        assert_eq!(found.contains(&100_000_000), needed, "up to {to}: {found:?}");
        assert!(found.contains(&99_999_000), "what began before the first chunk is of any time");
    }
}

#[test]
fn what_seems_lost_may_have_been_placed_anew_until_the_chunk_behind_it_was_sealed() {
    let mut media = Media::new(1, 8, 256 << 10);
    // Number 11 is missing. A slow queue's chunk follows: its packets are old, and it was sealed at 500 ms.
    let mut slow = record(12, 4096, ms(105, 108));
    slow.summary.sealed_ns = ms(500, 0).0;
    // Number 15 stands in for it; what was stored is counted by number 11.
    let mut anew = record(15, 4096, ms(300, 310));
    (anew.replaces, anew.ledger) = (Some(11), record(14, 4096, (1, 1)).ledger);
    media.full(&[
        (0, 0, &[record(10, 4096, ms(100, 109)), slow]),
        (0, 1, &pair(13, ms(600, 650))),
        (0, 2, &[anew, record(16, 4096, ms(700, 710))]),
        (0, 3, &pair(17, ms(800, 850))),
        (0, 4, &pair(19, ms(900, 950))),
    ]);
    let (found, catalog) = listed(&media, 64 << 10, span_ms(101, 110));
    assert_eq!(found, [10, 12, 15, 16, 19, 20]);
    // The others hold later numbers too, but nothing that is as old.
    assert_eq!(catalog.unread, Unread::of([13..=14, 17..=18].into_iter()));
}

#[test]
fn numbers_of_unread_segments_that_meet_are_one_range() {
    let one = Unread::of([5..=12].into_iter());
    assert_eq!(Unread::of([9..=12, 5..=9].into_iter()), one);
    assert_ne!(Unread::of([10..=12, 5..=9].into_iter()), one);
}
