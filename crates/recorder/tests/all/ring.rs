//! A ring by hand: what it trims ahead of its head and when, what it says that it gave up, and where chunks go whose turn finds
//! no room.

use crate::hand::{Asked, Command, Hand, LATE, LONG, SEGMENT, config, image, live, protected};
use crate::media::record;
use base::{BufferId, DeviceError, Duration, Instant};
use format::{Count, Layout, Place, Stage};
use longtake_recorder::open::HeadImage;
use longtake_recorder::{ArrayImage, Config, Event, Input, Placement, TimeRange, WhenFull};

/// A member's segments as a lap of the ring left them: the first one is the oldest.
fn lap(member: u64, segments: u64) -> Vec<longtake_recorder::open::Live> {
    (0..segments)
        .map(|n| live(1000 * n + member, 1000 * n + 900, (100 * n + 1, 100 * n + 100)))
        .collect()
}

/// Members whose segments are all full.
fn full(members: u64, segments: u64) -> ArrayImage {
    let laps: Vec<_> = (0..members).map(|member| lap(member, segments)).collect();
    image(0, segments, &laps.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn ring(trim_ahead: u64) -> Config {
    Config { when_full: WhenFull::Wrap, trim_ahead, ..config() }
}

fn chunk(hand: &mut Hand) {
    hand.chunk(LONG, (100_000, 100_001));
}

/// Member and segment of each that was given up.
fn reused(hand: &Hand) -> Vec<(u16, u64)> {
    let reused = |event: &Event| match event {
        Event::Reused { member, segment, .. } => Some((*member, *segment)),
        _ => None,
    };
    hand.events.iter().filter_map(reused).collect()
}

/// Member and segment of each trim under way.
fn trims(hand: &Hand) -> Vec<(u16, u64)> {
    let trim = |c: &Command| match c.asked {
        Asked::Trim { offset } => Some((c.member, (offset - (1 << 20)) / SEGMENT)),
        _ => None,
    };
    hand.under_way.iter().filter_map(trim).collect()
}

fn is_chunk(c: &Command) -> bool {
    c.asked == Asked::Chunk
}

#[test]
fn a_segment_is_trimmed_once_a_chunk_is_acknowledged_that_says_it_was_given_up() {
    let mut hand = Hand::new(ring(2), full(1, 6));
    chunk(&mut hand);
    // The head takes the first one; the next is given up ahead of it.
    assert_eq!((reused(&hand), trims(&hand)), (vec![(0, 0), (0, 1)], vec![]));
    let told = hand.writes[0].record;
    assert_eq!((told.reused, told.reused_to_ns), (Some(900), 100), "it knows of the first alone");
    hand.finish(is_chunk);
    assert_eq!(trims(&hand), [], "no chunk on the medium tells of the second");
    chunk(&mut hand);
    let told = hand.writes[1].record;
    assert_eq!((told.reused, told.reused_to_ns), (Some(1900), 200));
    assert_eq!((trims(&hand), hand.core.reused_to_ns()), (vec![], 200));
    hand.finish(is_chunk);
    // At once, and then the one behind it is given up.
    assert_eq!(trims(&hand), [(0, 1)]);
    hand.finish(|c| matches!(c.asked, Asked::Trim { .. }));
    assert_eq!(reused(&hand), [(0, 0), (0, 1), (0, 2)]);
    chunk(&mut hand);
    hand.finish(is_chunk);
    assert_eq!(trims(&hand), [(0, 2)]);
    hand.finish(|c| matches!(c.asked, Asked::Trim { .. }));
    // Two are trimmed ahead of the head, and no more until it goes on.
    chunk(&mut hand);
    hand.finish(is_chunk);
    assert_eq!((trims(&hand), reused(&hand).len()), (vec![], 3));
    chunk(&mut hand);
    assert_eq!(hand.writes[4].place.offset, (1 << 20) + SEGMENT, "the head goes on");
    assert_eq!(reused(&hand), [(0, 0), (0, 1), (0, 2), (0, 3)]);
}

#[test]
fn a_chunk_on_one_member_tells_for_all_of_them() {
    let mut hand = Hand::new(Config { placement: Placement::Stripe, ..ring(1) }, full(3, 6));
    for _ in 0..3 {
        chunk(&mut hand);
    }
    let mut given_up = reused(&hand);
    given_up.sort_unstable();
    assert_eq!(given_up, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
    // The third chunk says that the first two members' second segments were given up, whenever theirs are done.
    hand.finish(|c| c.member == 2);
    let mut seen = trims(&hand);
    seen.sort_unstable();
    assert_eq!(seen, [(0, 1), (1, 1)]);
}

#[test]
fn trims_of_a_member_keep_their_distance() {
    let interval = Duration::from_millis(10);
    let mut hand = Hand::new(Config { trim_interval: interval, ..ring(3) }, full(1, 8));
    for _ in 0..2 {
        chunk(&mut hand);
        hand.finish(is_chunk);
    }
    assert_eq!(trims(&hand), [(0, 1)]);
    hand.finish(|c| matches!(c.asked, Asked::Trim { .. }));
    chunk(&mut hand);
    hand.finish(is_chunk);
    assert_eq!(
        (trims(&hand), reused(&hand).len()),
        (vec![], 3),
        "the next is told of, and not due"
    );
    assert_eq!(hand.core.poll_timeout(), Some(Instant::START + interval));
    hand.pass(interval);
    assert_eq!(trims(&hand), [(0, 2)]);
}

#[test]
fn nothing_is_trimmed_ahead_unless_the_array_is_a_ring_of_drives_that_can_while_it_records() {
    let given_up = |config: Config, array: ArrayImage, stopped: bool| {
        let mut hand = Hand::new(config, array);
        if stopped {
            hand.tell(Input::Stop);
        }
        chunk(&mut hand);
        hand.finish(is_chunk);
        // The head's own segment is none that is trimmed.
        let ahead = reused(&hand).into_iter().filter(|&(_, segment)| segment > 0).count();
        hand.finish(|c| !is_chunk(c));
        ahead
    };
    assert_eq!(given_up(ring(2), full(1, 6), false), 1);
    assert_eq!(given_up(ring(0), full(1, 6), false), 0);
    assert_eq!(given_up(ring(2), full(1, 6), true), 0);
    let mut cannot = full(1, 6);
    cannot.members[0].trims = false;
    assert_eq!(given_up(ring(2), cannot, false), 0);
    // And not without wrapping, though there is room.
    let mut room = full(1, 6);
    room.members[0].segments[0] = longtake_recorder::Segment::Empty;
    assert_eq!(given_up(Config { trim_ahead: 2, ..config() }, room, false), 0);
}

#[test]
fn a_member_that_fails_to_trim_goes_on_without() {
    let mut hand = Hand::new(ring(2), full(1, 6));
    for _ in 0..2 {
        chunk(&mut hand);
        hand.finish(is_chunk);
    }
    hand.fail(|c| matches!(c.asked, Asked::Trim { .. }));
    let failed = Event::TrimFailed { member: 0, error: DeviceError::Medium };
    assert_eq!(hand.saw(|event| *event == failed), 1);
    for _ in 0..12 {
        chunk(&mut hand);
        hand.finish(is_chunk);
        assert_eq!(trims(&hand), []);
    }
    assert_eq!((hand.acknowledged(), hand.core.members().all(|m| m.working)), (14, true));
}

#[test]
fn protected_segments_are_not_trimmed_until_they_are_let_go() {
    let mut array = full(1, 6);
    array.protected = vec![protected(150, 160)];
    let mut hand = Hand::new(ring(1), array);
    chunk(&mut hand);
    assert_eq!(reused(&hand), [(0, 0), (0, 2)], "the one behind it, of another time");
    let mut array = full(1, 3);
    array.protected = vec![protected(101, 300)];
    let mut hand = Hand::new(ring(1), array);
    chunk(&mut hand);
    hand.finish(is_chunk);
    assert_eq!(reused(&hand), [(0, 0)]);
    hand.tell(Input::Protect(Vec::new()));
    assert_eq!(reused(&hand), [(0, 0), (0, 1)], "at once");
}

#[test]
fn what_could_not_be_trimmed_while_its_index_was_written_is_when_that_is_done() {
    // Three segments: the ring is at its last one, and comes round to segments it wrote itself.
    let interval = Duration::from_micros(10);
    let array = image(0, 3, &[&[]]);
    let mut hand = Hand::new(Config { flush_interval: interval, ..ring(2) }, array);
    while hand.writes.last().is_none_or(|w| w.place.offset < (1 << 20) + 2 * SEGMENT) {
        chunk(&mut hand);
        hand.finish(is_chunk);
        // Only the first segment's index is finished.
        if hand.writes.len() < 8 {
            hand.pass(interval);
            hand.finish(|_| true);
        }
    }
    assert_eq!((reused(&hand), trims(&hand)), (vec![(0, 0)], vec![]), "trimmed long ago");
    chunk(&mut hand);
    hand.finish(is_chunk);
    assert_eq!(reused(&hand), [(0, 0)], "the second one's index is still to be written");
    hand.pass(interval);
    hand.finish(|c| !is_chunk(c));
    hand.pass(interval);
    hand.finish(|c| !is_chunk(c));
    assert_eq!(reused(&hand), [(0, 0), (0, 1)]);
}

#[test]
fn a_flush_waits_for_its_time_and_at_the_takes_end_for_the_writes_before_it() {
    let interval = Duration::from_millis(10);
    let mut hand = Hand::new(Config { flush_interval: interval, ..config() }, image(0, 3, &[&[]]));
    let flushes = |hand: &Hand| hand.asked(|c| c.asked == Asked::Flush).len();
    chunk(&mut hand);
    chunk(&mut hand);
    let tags = hand.asked(is_chunk);
    hand.done(tags[0], Ok(()));
    assert_eq!(flushes(&hand), 0);
    assert_eq!(hand.core.poll_timeout(), Some(Instant::START + interval));
    // The source stops: what is under way is waited for, and then the flush comes at once.
    hand.tell(Input::Stop);
    assert_eq!(flushes(&hand), 0);
    hand.done(tags[1], Ok(()));
    assert_eq!((flushes(&hand), hand.durable()), (1, 0));
    assert_eq!(hand.core.durable(), Count::ZERO);
    hand.finish(|c| c.asked == Asked::Flush);
    assert_eq!((hand.durable(), hand.core.durable()), (1, Count::new(2, 100)));
    // While it records it waits for its time, if nothing at all is under way.
    let mut hand = Hand::new(Config { flush_interval: interval, ..config() }, image(0, 3, &[&[]]));
    chunk(&mut hand);
    hand.finish(is_chunk);
    assert_eq!(flushes(&hand), 0);
    hand.pass(Duration::from_micros(9_999));
    assert_eq!(flushes(&hand), 0);
    hand.pass(Duration::from_micros(1));
    assert_eq!(flushes(&hand), 1);
    // What comes meanwhile gets a flush of its own when that one is done.
    chunk(&mut hand);
    hand.finish(is_chunk);
    hand.pass(interval);
    assert_eq!(flushes(&hand), 1);
    hand.finish(|c| c.asked == Asked::Flush);
    assert_eq!(hand.core.durable(), Count::new(2, 100));
}

#[test]
fn at_the_takes_end_a_member_with_nothing_left_to_do_is_flushed_while_others_write() {
    // In turn, with one write under way on each: the third chunk waits for the first member.
    let mut hand = Hand::new(stripe(), image(0, 3, &[&[], &[]]));
    (0..3).for_each(|_| chunk(&mut hand));
    let flush = |c: &Command| (c.member, c.asked) == (1, Asked::Flush);
    hand.finish(|c| c.member == 1);
    hand.tell(Input::Stop);
    assert_eq!(hand.asked(flush).len(), 0, "what waits may come to it yet");
    let tag = hand.asked(is_chunk)[0];
    hand.done(tag, Ok(()));
    assert_eq!((hand.members(false), hand.asked(flush).len()), (vec![0, 1, 0], 1));
}

#[test]
fn a_member_that_rests_is_woken_when_the_others_have_failed_or_are_full() {
    let rests = Config { rest: 1, ..config() };
    let mut hand = Hand::new(rests.clone(), image(0, 3, &[&[], &[]]));
    chunk(&mut hand);
    assert_eq!(hand.members(false), [1], "the first member rests");
    hand.fail(is_chunk);
    assert_eq!(hand.members(false), [1, 0]);
    let mut hand = Hand::new(rests, image(0, 3, &[&[], &lap(0, 3)]));
    chunk(&mut hand);
    assert_eq!((hand.members(false), hand.core.refusing()), (vec![0], false));
}

/// In turn, with one write under way on each member.
fn stripe() -> Config {
    Config { placement: Placement::Stripe, depth: 1, ..config() }
}

#[test]
fn in_turn_an_array_is_full_when_the_member_whose_turn_it_is_is_and_the_end_goes_elsewhere() {
    // The first member fails, the second has room, the third is full, the last one has room.
    let array = image(0, 3, &[&[], &[], &lap(0, 3), &[]]);
    let mut hand = Hand::new(stripe(), array);
    chunk(&mut hand);
    hand.fail(is_chunk);
    assert_eq!(hand.members(false), [0, 1]);
    chunk(&mut hand);
    assert_eq!(hand.members(false), [0, 1], "no chunk goes out of its turn");
    assert_eq!(hand.saw(|e| *e == Event::ArrayFull { protected: false }), 1);
    assert_eq!(hand.core.ledger().lost(Stage::ArrayFull).packets, 1);
    // The second is busy, the last is not.
    hand.end();
    assert_eq!(hand.members(false), [0, 1, 3]);
    // With all that have room busy the end waits for one.
    let mut hand = Hand::new(stripe(), image(0, 3, &[&[], &lap(0, 3)]));
    chunk(&mut hand);
    hand.end();
    assert_eq!(hand.members(false), [0]);
    hand.finish(is_chunk);
    assert_eq!(hand.members(false), [0, 0]);
    // With no room anywhere there is nothing to wait for.
    let mut hand = Hand::new(stripe(), full(2, 3));
    hand.end();
    assert_eq!((hand.writes.len(), hand.released.len()), (0, 1));
    assert_eq!(hand.saw(|e| *e == Event::Finished), 1);
}

#[test]
fn members_are_filled_up_to_the_room_that_the_takes_end_needs() {
    for placement in [Placement::Adaptive, Placement::Stripe] {
        let mut hand = Hand::new(Config { placement, ..config() }, image(0, 2, &[&[], &[]]));
        while !hand.core.refusing() {
            hand.chunk(4096, (1, 2));
            hand.settle();
        }
        hand.tell(Input::Stop);
        hand.settle();
        hand.end();
        hand.settle();
        hand.pass(LATE);
        hand.settle();
        assert!(hand.core.finished());
        let layout = Layout::new((2 << 20) + 2 * SEGMENT, SEGMENT, 64 << 10).expect("lengths");
        for member in 0..2 {
            let last = layout.segment_offset(1);
            let there =
                hand.writes.iter().filter(|w| w.place.member == member && w.place.offset >= last);
            let count = there.clone().count() as u64;
            let used: u64 = there.map(|w| u64::from(w.record.summary.length)).sum();
            assert!(count > 0 && layout.fits(used, count - 1, 0), "its index has its room");
            assert!(
                !layout.fits(used, count + 2, 3 * 4096),
                "no chunk more, beside the end's room"
            );
        }
    }
}

#[test]
fn the_time_that_a_ring_gave_up_is_known_from_the_start() {
    let mut array = full(2, 3);
    for (member, reused_to_ns) in array.members.iter_mut().zip([None, Some(77)]) {
        let head = HeadImage {
            segment: 2,
            used: 4096,
            chunks: Vec::new(),
            closed: true,
            newest: None,
            reused_to_ns,
        };
        member.head = Some(head);
    }
    let mut hand = Hand::new(ring(0), array);
    assert_eq!(hand.core.reused_to_ns(), 77);
    chunk(&mut hand);
    assert_eq!(hand.core.reused_to_ns(), 100);
    assert_eq!(hand.writes[0].record.reused_to_ns, 100);
    let range = protected(1, 100);
    hand.tell(Input::Protect(vec![TimeRange { from: range.from, to: range.to }]));
    assert_eq!(hand.released, [] as [BufferId; 0]);
}

#[test]
fn a_segment_whose_chunks_leave_no_room_for_their_index_stays_without_one() {
    // As many as have room, and one more: behind a write that a drive has lost lie chunks of two uses of the segment.
    for (count, indexes) in [(9, 1), (10, 0)] {
        let mut array = full(1, 3);
        let place = |at| Place { array: array.uuid, member: 0, members: 1, offset: at };
        let chunks: Vec<_> = (0..count).map(|n| (place(n), record(1 + n, 4096, (1, 2)))).collect();
        let used = SEGMENT - 12288 + if count == 10 { 4096 } else { 0 };
        let image = HeadImage {
            segment: 0,
            used,
            chunks,
            closed: false,
            newest: None,
            reused_to_ns: Some(0),
        };
        array.members[0].unindexed = vec![image];
        let mut hand = Hand::new(ring(0), array);
        hand.tell(Input::Tick);
        let asked = hand.asked(|c| c.asked == Asked::Index).len();
        assert_eq!(asked, indexes, "{count} chunks");
        chunk(&mut hand);
        hand.settle();
    }
}
