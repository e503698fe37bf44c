//! Groups of an array with parity, by hand: when they close, where their parity goes, and what becomes of them if members fail.

use std::collections::{BTreeMap, BTreeSet};

use crate::hand::{Asked, Hand, LATE, LONG, SEGMENT, config, image, live, protected};
use base::{Duration, Instant};
use format::Count;
use longtake_recorder::{ArrayImage, Config, Event, Input, Placement, WhenFull};

const TIMES: (u64, u64) = (100, 200);

/// Empty members of an array with parity.
fn empty(parity: u8, members: usize) -> ArrayImage {
    image(parity, 20, &vec![&[][..]; members])
}

fn chunks(hand: &mut Hand, count: usize) {
    (0..count).for_each(|_| hand.chunk(LONG, TIMES));
}

fn reduced(hand: &Hand) -> Vec<(u8, u8)> {
    let reduced = |event: &Event| match event {
        Event::ParityReduced { parities, of } => Some((*parities, *of)),
        _ => None,
    };
    hand.events.iter().filter_map(reduced).collect()
}

#[test]
fn a_group_stays_open_until_it_is_full_or_has_waited_its_time_or_the_source_stops() {
    // Full: as many chunks as members leave beside parity.
    let mut hand = Hand::new(config(), empty(1, 4));
    chunks(&mut hand, 2);
    assert!(hand.seals.is_empty());
    chunks(&mut hand, 1);
    assert_eq!(hand.seals.len(), 1);
    // Its time is over: whoever drives the core is told when that is.
    let mut hand = Hand::new(config(), empty(1, 4));
    chunks(&mut hand, 1);
    let wait = Duration::from_millis(2);
    assert_eq!(hand.core.poll_timeout(), Some(Instant::START + wait));
    hand.pass(Duration::from_micros(1999));
    assert!(hand.seals.is_empty());
    hand.pass(Duration::from_micros(1));
    assert_eq!(hand.seals.len(), 1);
    assert!(hand.core.poll_timeout().is_none_or(|due| due > hand.now + wait));
    // Nothing more comes for it.
    let mut hand = Hand::new(config(), empty(1, 4));
    chunks(&mut hand, 1);
    hand.tell(Input::Stop);
    assert_eq!(hand.seals.len(), 1);
}

#[test]
fn an_open_group_waits_for_nobody_once_a_member_has_failed() {
    let mut hand = Hand::new(config(), empty(1, 4));
    chunks(&mut hand, 3);
    hand.seal();
    // The next group begins on a member that has done all it was asked for.
    hand.pass(Duration::from_millis(1));
    hand.finish(|c| c.member == 0);
    chunks(&mut hand, 1);
    assert_ne!(hand.members(false)[3], 3);
    assert_eq!((hand.writes.len(), hand.seals.len()), (5, 0));
    // The write of the first group's parity fails: that group is written again, and the open one is closed.
    let open = hand.writes[4].record.sequence;
    hand.fail(|c| c.member == 3);
    assert!(hand.seals.iter().any(|(_, table)| table.part.group == open), "at once");
}

#[test]
fn a_group_is_no_larger_than_a_quarter_of_the_buffers() {
    for (buffers, most) in [(8, 2), (12, 3), (3, 1), (64, 5)] {
        let mut hand = Hand::new(Config { buffers, ..config() }, empty(1, 6));
        chunks(&mut hand, 5);
        hand.settle();
        hand.tell(Input::Stop);
        hand.settle();
        let largest = hand.writes.iter().filter_map(|w| w.record.parity.map(|p| p.span)).max();
        // Without parity between them its numbers follow each other.
        assert_eq!(largest, Some(most - 1), "{buffers} buffers");
    }
}

#[test]
fn a_parity_chunk_has_the_times_and_the_queue_of_its_group() {
    let mut hand = Hand::new(config(), empty(1, 4));
    for (times, sealed_ns) in [((500, 900), 30), ((100, 600), 70), ((700, 800), 50)] {
        let mut chunk = hand.ready(LONG, 1);
        let s = &mut chunk.summary;
        (s.first_ns, s.last_ns, s.sealed_ns, s.queue) = (times.0, times.1, sealed_ns, 6);
        hand.tell(Input::Chunk(chunk));
    }
    hand.seal();
    let parity = hand.writes.iter().find(|w| w.record.parity.is_some()).expect("it is written");
    let s = parity.record.summary;
    assert_eq!((s.first_ns, s.last_ns, s.sealed_ns, s.queue), (100, 900, 70, 6));
    assert_eq!((s.packets, s.length), (0, LONG + 4096));
}

#[test]
fn parities_take_the_turns_behind_the_data_so_that_they_go_round() {
    let mut hand = Hand::new(Config { placement: Placement::Stripe, ..config() }, empty(2, 5));
    for _ in 0..5 {
        chunks(&mut hand, 3);
        hand.settle();
    }
    assert_eq!(hand.members(false), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    assert_eq!(hand.members(true), [3, 4, 1, 2, 4, 0, 2, 3, 0, 1]);
}

#[test]
fn a_group_is_acknowledged_when_all_of_it_is_written_and_durable_when_all_of_it_is_flushed() {
    let interval = Duration::from_millis(1);
    let mut hand = Hand::new(Config { flush_interval: interval, ..config() }, empty(1, 3));
    chunks(&mut hand, 2);
    let chunk =
        |member| move |c: &crate::hand::Command| (c.member, c.asked) == (member, Asked::Chunk);
    hand.finish(chunk(0));
    hand.finish(chunk(1));
    assert_eq!((hand.acknowledged(), hand.released.len()), (0, 0));
    hand.seal();
    assert_eq!(hand.acknowledged(), 0);
    hand.finish(chunk(2));
    assert_eq!((hand.acknowledged(), hand.released.len()), (2, 2));
    assert_eq!(hand.core.acknowledged(), Count::new(2, 100));
    hand.pass(interval);
    for member in [2, 0] {
        hand.finish(|c| c.member == member);
        assert_eq!((hand.durable(), hand.core.durable()), (0, Count::ZERO));
    }
    hand.finish(|c| c.member == 1);
    assert_eq!((hand.durable(), hand.core.durable()), (2, Count::new(2, 100)));
    let progress = hand.core.parity().expect("an array with parity");
    assert_eq!((progress.groups, progress.bytes, progress.chunks_short), (1, 65_536, 0));
}

#[test]
fn a_group_a_part_of_which_could_not_be_flushed_is_not_durable() {
    for fails in 0..3 {
        let interval = Duration::from_millis(1);
        let mut hand = Hand::new(Config { flush_interval: interval, ..config() }, empty(1, 3));
        chunks(&mut hand, 2);
        hand.seal();
        hand.finish(|c| c.asked == Asked::Chunk);
        assert_eq!(hand.acknowledged(), 2);
        hand.pass(interval);
        hand.fail(|c| (c.member, c.asked) == (fails, Asked::Flush));
        hand.finish(|c| c.asked == Asked::Flush);
        assert_eq!((hand.durable(), hand.core.durable()), (0, Count::ZERO), "member {fails}");
    }
}

#[test]
fn a_take_asks_for_its_end_when_every_group_is_acknowledged() {
    let mut hand = Hand::new(config(), empty(1, 3));
    chunks(&mut hand, 2);
    hand.tell(Input::Stop);
    hand.finish(|c| c.asked == Asked::Chunk);
    assert!(!hand.wants_end, "parity is not even made");
    hand.seal();
    assert!(!hand.wants_end, "nor written");
    hand.finish(|c| c.asked == Asked::Chunk);
    assert!(hand.wants_end);
    hand.end();
    assert!(!hand.core.finished());
    hand.settle();
    assert!(hand.core.finished());
}

#[test]
fn a_group_with_too_few_members_left_for_its_parity_is_written_again_in_smaller_ones() {
    // As many parity buffers as one group takes: none may be lost, or nothing goes on.
    let mut hand = Hand::with_groups(config(), empty(1, 3), 1);
    chunks(&mut hand, 2);
    assert_eq!(hand.members(false), [0, 1]);
    // The third member fails, by the write of an earlier group, before the parity is made.
    let mut hand = {
        hand.seal();
        hand.settle();
        chunks(&mut hand, 2);
        hand
    };
    let members = hand.members(false);
    let third = (0..3).find(|at| !members[2..].contains(at)).expect("one is left");
    let before = hand.writes.len();
    fail_member(&mut hand, third);
    assert_eq!(hand.seals.len(), 1);
    hand.seal();
    hand.settle();
    let again: Vec<bool> = hand.writes[before..]
        .iter()
        .filter(|w| w.record.parity.is_none())
        .map(|w| w.record.replaces.is_some())
        .collect();
    assert_eq!(again, [true, true], "both have new places");
    assert_eq!((hand.acknowledged(), reduced(&hand)), (4, vec![]));
    assert_eq!(hand.core.parity().map(|p| (p.groups, p.chunks_short)), Some((3, 0)));
    // And goes on.
    chunks(&mut hand, 2);
    hand.settle();
    hand.pass(Duration::from_millis(2));
    hand.settle();
    assert_eq!(hand.acknowledged(), 6);
}

/// A member fails by a flush, whatever else is under way.
fn fail_member(hand: &mut Hand, member: u16) {
    hand.pass(LATE);
    hand.fail(|c| (c.member, c.asked) == (member, Asked::Flush));
}

#[test]
fn a_group_of_one_chunk_goes_on_with_as_many_parities_as_members_are_left_for() {
    for (parity, members, left) in [(1, 2, 0), (2, 3, 1)] {
        let wait = Config { flush_interval: Duration::from_micros(1), ..config() };
        let mut hand = Hand::new(wait, empty(parity, members));
        // Something for every member to flush.
        chunks(&mut hand, 1);
        hand.seal();
        hand.finish(|c| c.asked == Asked::Chunk);
        chunks(&mut hand, 1);
        assert_eq!(hand.seals.len(), usize::from(parity), "{:?}", hand.seals);
        let on = *hand.members(false).last().expect("it is written");
        hand.pass(Duration::from_micros(1));
        let other = (0..members as u16).find(|&at| at != on).expect("there are others");
        hand.fail(|c| (c.member, c.asked) == (other, Asked::Flush));
        hand.seal();
        hand.finish(|c| c.asked == Asked::Chunk);
        assert_eq!((hand.acknowledged(), reduced(&hand)), (2, vec![(left, parity)]));
        let progress = hand.core.parity().expect("an array with parity");
        assert_eq!((progress.groups, progress.chunks_short), (1 + u64::from(left > 0), 1));
        if left == 0 {
            // From now on chunks belong to no group.
            chunks(&mut hand, 1);
            hand.pass(Duration::from_millis(2));
            hand.settle();
            let last = hand.writes.last().expect("it is written").record;
            assert_eq!((last.group, last.parity), (None, None));
            assert_eq!(hand.core.parity().map(|p| p.groups), Some(1));
        }
    }
}

#[test]
fn an_open_group_one_of_whose_writes_fails_takes_no_more_chunks() {
    let mut hand = Hand::new(config(), empty(1, 4));
    chunks(&mut hand, 2);
    hand.fail(|c| c.member == 0);
    hand.settle();
    chunks(&mut hand, 2);
    hand.settle();
    hand.pass(Duration::from_millis(2));
    hand.settle();
    assert_eq!((hand.acknowledged(), reduced(&hand)), (4, vec![]));
    assert!(hand.saw(|e| matches!(e, Event::MemberFailed { spared: true, .. })) == 1);
}

#[test]
fn parity_makes_up_for_as_many_members_as_there_are_parities() {
    for parity in 0..3u8 {
        let wait = Config { flush_interval: Duration::from_micros(1), ..config() };
        let mut hand = Hand::new(wait, empty(parity, 5));
        let spared: Vec<bool> = (0..3)
            .map(|_| {
                chunks(&mut hand, 5);
                hand.fail(|c| c.asked == Asked::Chunk);
                hand.settle();
                let last = hand.events.iter().rev().find_map(|event| match event {
                    Event::MemberFailed { spared, .. } => Some(*spared),
                    _ => None,
                });
                last.expect("a member failed")
            })
            .collect();
        let expected: Vec<bool> = (1..=3).map(|failed| failed <= parity).collect();
        assert_eq!(spared, expected, "parity {parity}");
    }
}

#[test]
fn without_room_for_parity_beside_it_no_chunk_is_taken() {
    // One member is full: what the other takes could have no parity.
    let full: Vec<_> = (0..2).map(|n| live(n * 10, n * 10 + 5, TIMES)).collect();
    let mut hand = Hand::new(config(), image(1, 2, &[&full, &[]]));
    chunks(&mut hand, 1);
    assert!(hand.writes.is_empty());
    assert_eq!(hand.saw(|e| matches!(e, Event::ArrayFull { protected: false })), 1);
    assert!(hand.core.refusing());
}

#[test]
fn a_member_that_rests_counts_as_room_for_parity() {
    let rests = Config { rest: 1, ..config() };
    let mut hand = Hand::new(rests, empty(1, 3));
    chunks(&mut hand, 4);
    hand.settle();
    assert_eq!(hand.acknowledged(), 4);
    let members: Vec<bool> = hand.core.members().map(|m| m.resting).collect();
    assert_eq!(members, [true, false, false]);
    assert!(hand.writes.iter().all(|w| w.place.member != 0), "and is not woken for it");
    // With as many resting as there is room beside: both are not full, one is awake.
    let rests = Config { rest: 1, ..config() };
    let mut hand = Hand::new(rests, empty(1, 2));
    chunks(&mut hand, 1);
    hand.pass(Duration::from_millis(2));
    hand.settle();
    assert_eq!((hand.acknowledged(), reduced(&hand)), (1, vec![]));
    assert!(!hand.core.refusing());
}

#[test]
fn a_full_array_has_parity_up_to_its_end() {
    for (placement, members) in
        [Placement::Adaptive, Placement::Stripe].into_iter().flat_map(|p| [(p, 3), (p, 4)])
    {
        for length in [4096, 3 * 4096, LONG] {
            let mut hand =
                Hand::new(Config { placement, ..config() }, image(1, 3, &vec![&[][..]; members]));
            while !hand.core.refusing() {
                hand.chunk(length, TIMES);
                hand.settle();
            }
            hand.tell(Input::Stop);
            hand.settle();
            assert!(hand.wants_end);
            hand.end();
            hand.settle();
            hand.pass(LATE);
            hand.settle();
            assert!(hand.core.finished());
            assert_eq!(reduced(&hand), [], "{placement} of {members}");
            let ended = |e: &Event| matches!(e, Event::Acknowledged { end: true, .. });
            assert_eq!(hand.saw(ended), 1);
            // What is left of a member is what the end and two parities take, and less than a chunk more.
            let start = 1 << 20;
            for member in 0..members as u16 {
                let end = |w: &&crate::hand::Write| w.place.member == member;
                let to = hand
                    .writes
                    .iter()
                    .filter(end)
                    .map(|w| w.place.offset + u64::from(w.record.summary.length) - start);
                let left = 3 * SEGMENT - to.max().expect("it was written to");
                assert!(left < 2 * (64 << 10) + 3 * u64::from(LONG) + 32_768, "{left} bytes left");
            }
        }
    }
}

/// Members of one known speed, each with two writes under way, as many as it takes.
fn busy() -> Hand {
    let mut hand = Hand::new(Config { depth: 2, ..config() }, empty(1, 4));
    chunks(&mut hand, 3);
    hand.seal();
    hand.pass(Duration::from_millis(1));
    hand.settle();
    for _ in 0..2 {
        chunks(&mut hand, 3);
        hand.seal();
    }
    assert_eq!(hand.under_way.len(), 8);
    hand.pass(Duration::from_millis(1));
    hand
}

/// One write of a member is done.
fn one_done(hand: &mut Hand, member: u16) {
    let tag = hand.asked(|c| c.member == member)[0];
    hand.done(tag, Ok(()));
}

#[test]
fn a_group_waits_for_members_that_are_busy_and_not_for_those_that_are_slow() {
    let mut hand = busy();
    one_done(&mut hand, 0);
    one_done(&mut hand, 0);
    chunks(&mut hand, 1);
    assert_eq!(hand.members(false).last(), Some(&0), "the one that has done its writes");
    let (writes, seals) = (hand.writes.len(), hand.seals.len());
    // The others are as fast: the next chunk of the group waits for one of them.
    chunks(&mut hand, 1);
    assert_eq!((hand.writes.len(), hand.seals.len()), (writes, seals));
    // They take a second for what should take milliseconds: the chunk goes to the same member, in another group.
    hand.now += Duration::from_secs(1);
    chunks(&mut hand, 1);
    assert_eq!((hand.writes.len(), hand.members(false).last()), (writes + 1, Some(&0)));
    assert!(hand.seals[seals..].iter().all(|(_, table)| table.rows.len() == 1));
}

#[test]
fn a_slow_member_is_better_than_none() {
    let mut hand = busy();
    one_done(&mut hand, 0);
    chunks(&mut hand, 1);
    assert_eq!(hand.members(false).last(), Some(&0));
    one_done(&mut hand, 1);
    let seals = hand.seals.len();
    hand.now += Duration::from_secs(1);
    chunks(&mut hand, 1);
    assert_eq!(hand.members(false).last(), Some(&1));
    let rows: Vec<usize> = hand.seals[seals..].iter().map(|(_, table)| table.rows.len()).collect();
    assert_eq!(rows, [2], "the group goes on there");
}

#[test]
fn the_rest_of_a_protected_chunks_group_is_kept_with_it() {
    let ring = Config { when_full: WhenFull::Wrap, placement: Placement::Stripe, ..config() };
    let mut hand = Hand::new(ring, image(1, 4, &[&[][..]; 3]));
    // Times far apart in one group, whose chunks do not begin their segments.
    for _ in 0..10 {
        hand.chunk(LONG, (60_000, 60_100));
        hand.settle();
    }
    let before = hand.writes.len();
    hand.chunk(LONG, (10_000, 10_100));
    hand.chunk(LONG, (50_000, 50_100));
    hand.settle();
    let group: Vec<(u16, u64)> = hand.writes[before..]
        .iter()
        .map(|w| (w.place.member, (w.place.offset - (1 << 20)) / SEGMENT))
        .collect();
    assert_eq!(group.len(), 3);
    assert!(group.iter().all(|&(_, segment)| segment == 1));
    let range = protected(10_050, 10_060);
    hand.tell(Input::Protect(vec![longtake_recorder::TimeRange {
        from: range.from,
        to: range.to,
    }]));
    for n in 0..150 {
        hand.chunk(LONG, (100_000 + n, 100_000 + n));
        hand.settle();
    }
    let reused: Vec<(u16, u64)> = hand
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Reused { member, segment, .. } => Some((*member, *segment)),
            _ => None,
        })
        .collect();
    assert!(reused.len() > 6, "it came round");
    assert!(group.iter().all(|segment| !reused.contains(segment)), "{group:?} of {reused:?}");
}

#[test]
fn groups_of_an_earlier_recording_are_kept_by_their_numbers_if_the_array_has_parity() {
    // The first member's first segment is protected; the others have chunks with near numbers and other times.
    let near = [live(10, 20, (100, 200)), live(5_000, 5_010, (3_000, 3_100))];
    let other = [live(11, 21, (300, 400)), live(6_500, 6_510, (3_200, 3_300))];
    for (parity, kept) in [(0, vec![(0, 0)]), (1, vec![(0, 0), (1, 0), (2, 0)])] {
        let mut array = image(parity, 2, &[&near, &other, &other]);
        array.protected = vec![protected(150, 160)];
        let mut hand = Hand::new(Config { when_full: WhenFull::Wrap, ..config() }, array);
        for n in 0..100 {
            hand.chunk(LONG, (100_000 + n, 100_000 + n));
            hand.settle();
        }
        hand.pass(Duration::from_millis(2));
        hand.settle();
        let reused: Vec<(u16, u64)> = hand
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Reused { member, segment, .. } => Some((*member, *segment)),
                _ => None,
            })
            .collect();
        for member in 0..3 {
            for segment in 0..2 {
                let keeps = kept.contains(&(member, segment));
                let what = format!("parity {parity}: segment {segment} of member {member}");
                assert_eq!(reused.contains(&(member, segment)), !keeps, "{what} of {reused:?}");
            }
        }
    }
}

/// Packets of each group, by the group's number: the latest time, and whether a chunk of it lies in a place that was given up.
fn groups_given_up(hand: &Hand, given_up: &BTreeSet<u64>) -> BTreeMap<u64, (u64, bool)> {
    let mut groups: BTreeMap<u64, (u64, bool)> = BTreeMap::new();
    for record in hand.writes.iter().map(|write| write.record) {
        let Some(joined) = record.group else { continue };
        let group = groups.entry(joined.group).or_default();
        group.0 = group.0.max(record.summary.last_ns);
        group.1 |= given_up.contains(&record.sequence);
    }
    groups
}

#[test]
fn a_ring_that_gives_up_a_chunk_of_a_group_says_so_of_all_its_chunks_even_of_those_that_come_later()
{
    let ring = Config {
        when_full: WhenFull::Wrap,
        placement: Placement::Stripe,
        trim_ahead: 1,
        ..config()
    };
    let mut open_when_given_up = 0;
    for odd in 0..40 {
        // Two segments a member: the one before the head is the one behind it, and given up soon after its last chunk.
        let mut hand = Hand::new(ring.clone(), image(1, 2, &[&[][..]; 4]));
        let mut given_up = BTreeSet::new();
        for n in 0..120 {
            let (written, seen) = (hand.writes.len(), hand.events.len());
            let length = (1 + (n * (odd + 3) + odd) % 15) as u32 * 4096;
            hand.chunk(length, (100_000 + n * 100, 100_050 + n * 100));
            hand.finish(|_| true);
            // The parity of a group is ready while the next one is open.
            if n % 4 == odd % 4 {
                hand.seal();
                hand.finish(|_| true);
            }
            for event in &hand.events[seen..] {
                let Event::Reused { member, segment, .. } = *event else { continue };
                let here = hand.writes[..written].iter().filter(|write| {
                    let at = (write.place.offset - (1 << 20)) / SEGMENT;
                    (write.place.member, at) == (member, segment)
                });
                given_up.extend(here.map(|write| write.record.sequence));
            }
            let closed: BTreeSet<u64> =
                hand.writes.iter().filter_map(|w| w.record.parity.map(|part| part.group)).collect();
            for (group, (last_ns, gone)) in groups_given_up(&hand, &given_up) {
                open_when_given_up += u32::from(gone && !closed.contains(&group));
                assert!(
                    !gone || !closed.contains(&group) || last_ns <= hand.core.reused_to_ns(),
                    "group {group} of times up to {last_ns}, and nothing is said to be missing since {}",
                    hand.core.reused_to_ns()
                );
            }
        }
    }
    assert!(open_when_given_up > 0, "some group was open when a chunk of it was given up");
}
