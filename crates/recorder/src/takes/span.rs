//! Which segments a listing of a span of time reads, and of which sequence numbers it then knows
//! all chunks. Chunks are missing between two numbers that are there, so that segments count by
//! their numbers as much as by their times: a slow queue's chunk is numbered behind chunks with
//! later packets.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use format::TakeRecord;

use super::Entry;
use crate::open::{Live, Segment, untimed_ns};
use crate::protocol::TimeRange;

/// A segment with chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentAt {
    /// Its member.
    pub(super) member: u16,
    /// Which of the member's.
    pub(super) segment: u64,
    /// What it holds.
    pub(super) live: Live,
    /// When its first chunk was sealed, in ns since 1970, if that has no packets. It ended a take then, and the take behind it may
    /// have lost chunks that are older than the first packet that was found.
    pub(super) untimed_ns: Option<u64>,
}

impl SegmentAt {
    /// The first number behind a take on record, in no segment: what is missing at the end of the take lies before it.
    pub(super) fn behind(record: &TakeRecord) -> Self {
        let sequence = record.last_sequence + 1;
        // Without a time it may have ended at any.
        let last_ns = record.last_ns;
        let first_ns = if last_ns > 0 { last_ns } else { u64::MAX };
        let live = Live {
            first_sequence: sequence,
            last_sequence: sequence,
            first_ns,
            last_ns,
            indexed: false,
            chunks: 0,
        };
        Self { member: u16::MAX, segment: 0, live, untimed_ns: None }
    }

    /// The same with what was found in it; None if that is nothing.
    pub(super) fn as_found<'a>(&self, chunks: impl Iterator<Item = &'a Entry>) -> Option<Self> {
        let mut chunks = chunks.peekable();
        let untimed_ns = chunks.peek().and_then(|first| untimed_ns(&first.record));
        let mut found = Segment::Empty;
        chunks.for_each(|entry| found.take_in(&entry.record));
        match found {
            Segment::Live(live) => Some(Self { live, untimed_ns, ..*self }),
            Segment::Empty => None,
        }
    }
}

/// The numbers of chunks in segments that were not read: in order, none touching the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread(Vec<RangeInclusive<u64>>);

impl Unread {
    /// Those of segments with these numbers, which may meet.
    pub fn of(ranges: impl Iterator<Item = RangeInclusive<u64>>) -> Self {
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_by_key(|range| *range.start());
        let mut merged: Vec<RangeInclusive<u64>> = Vec::new();
        for range in ranges {
            match merged.last_mut() {
                Some(last) if *range.start() <= *last.end() => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => merged.push(range),
            }
        }
        Self(merged)
    }

    /// The first number from this one on that no unread segment may have.
    pub(crate) fn past(&self, number: u64) -> u64 {
        let at = self.0.partition_point(|range| *range.end() < number);
        self.0.get(at).filter(|r| r.contains(&number)).map_or(number, |r| r.end().saturating_add(1))
    }

    /// Whether an unread segment may have some of these numbers.
    pub(crate) fn touches(&self, numbers: &RangeInclusive<u64>) -> bool {
        let at = self.0.partition_point(|range| range.end() < numbers.start());
        self.0.get(at).is_some_and(|range| range.start() <= numbers.end())
    }
}

/// For each segment whether a listing of the span needs it.
///
/// The first and last numbers of all segments divide the numbers into stretches. If chunks are missing in a stretch, what was
/// found before and behind them lies in segments that hold numbers of it, and the times of these segments bound those of the
/// missing chunks. A stretch that may hold missing chunks of the span takes these segments, and from every other member
/// those next to it: what parity knows of a missing chunk is not far.
pub(super) fn needed(places: &[SegmentAt], range: TimeRange) -> Vec<bool> {
    let stretches = Stretches::of(places);
    let concerned = stretches.that_may_miss(places, range);
    // How many of the stretches before each are concerned.
    let mut before = vec![0; concerned.len() + 1];
    for (at, &one) in concerned.iter().enumerate() {
        before[at + 1] = before[at] + u32::from(one);
    }
    let neighbours = neighbours(places);
    let near = |at: usize| {
        let (below, above) = neighbours[at];
        let first = below.map_or(0, |below| *stretches.of_segment(&places[below].live).end());
        let last = above.map_or(concerned.len() - 1, |above| {
            *stretches.of_segment(&places[above].live).start()
        });
        // What a torn segment still holds of an earlier lap makes its numbers surround others: these count by their own.
        let own = stretches.of_segment(&places[at].live);
        let (first, last) = (first.min(*own.start()), last.max(*own.end()));
        before[last + 1] > before[first]
    };
    places
        .iter()
        .enumerate()
        .map(|(at, place)| is_untimed(&place.live) || range.touches(&place.live) || near(at))
        .collect()
}

/// What seems lost of a span, as far as unread segments may still hold it under other numbers: what a member refused was placed
/// anew, behind chunks of later packets.
pub(super) struct Losses {
    /// By the first number of each: that number, and the latest time by which this loss or one before it was sealed.
    latest: Vec<(u64, u64)>,
}

impl Losses {
    /// Those with these first numbers and latest times, in ns since 1970.
    pub(super) fn of(losses: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut latest: Vec<(u64, u64)> = losses.collect();
        latest.sort_unstable();
        let mut so_far = 0;
        for (_, until) in &mut latest {
            so_far = so_far.max(*until);
            *until = so_far;
        }
        Self { latest }
    }

    /// Whether a segment may hold chunks placed anew: it has later numbers than a loss, and packets as old.
    pub(super) fn may_be_in(&self, live: &Live) -> bool {
        let before = self.latest.partition_point(|&(first, _)| first < live.last_sequence);
        before > 0 && live.first_ns <= self.latest[before - 1].1
    }
}

/// Without a packet time there may still be the end of a take in it.
fn is_untimed(live: &Live) -> bool {
    live.last_ns == 0
}

/// The times that chunks missing next to a segment's may have. A take's numbers begin with its start in microseconds at least. Packets
/// older than their numbers come from a file, or a take begins behind them: then what is missing may be of any time. A take that
/// begins behind the end of another one in the segment may miss chunks from that end on.
fn times(SegmentAt { live, untimed_ns, .. }: &SegmentAt) -> (u64, u64) {
    if is_untimed(live) || live.first_ns / 1000 <= live.last_sequence {
        (0, u64::MAX)
    } else {
        (untimed_ns.map_or(live.first_ns, |ended_ns| ended_ns.min(live.first_ns)), live.last_ns)
    }
}

/// Each segment's neighbours by number on its member, as places in the list.
fn neighbours(places: &[SegmentAt]) -> Vec<(Option<usize>, Option<usize>)> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|&at| (places[at].member, places[at].live.first_sequence));
    let mut neighbours = vec![(None, None); places.len()];
    for pair in order.windows(2) {
        if places[pair[0]].member == places[pair[1]].member {
            neighbours[pair[0]].1 = Some(pair[1]);
            neighbours[pair[1]].0 = Some(pair[0]);
        }
    }
    neighbours
}

/// The numbers of an array, divided where some segment begins or ends. Stretch `n` goes from bound `n - 1` to bound `n`, both
/// included; the first begins below all numbers, the last ends above them.
struct Stretches {
    bounds: Vec<u64>,
    index: HashMap<u64, usize>,
}

impl Stretches {
    fn of(places: &[SegmentAt]) -> Self {
        let ends = places.iter().flat_map(|p| [p.live.first_sequence, p.live.last_sequence]);
        let mut bounds: Vec<u64> = ends.collect();
        bounds.sort_unstable();
        bounds.dedup();
        let index = bounds.iter().enumerate().map(|(at, &bound)| (bound, at)).collect();
        Self { bounds, index }
    }

    fn count(&self) -> usize {
        self.bounds.len() + 1
    }

    /// The stretches that hold numbers of a segment.
    fn of_segment(&self, live: &Live) -> RangeInclusive<usize> {
        let (first, last) = (self.index[&live.first_sequence], self.index[&live.last_sequence]);
        first.min(last)..=first.max(last) + 1
    }

    /// Which of them may miss chunks of the span.
    fn that_may_miss(&self, places: &[SegmentAt], range: TimeRange) -> Vec<bool> {
        let mut bounds = vec![(u64::MAX, 0); self.count()];
        for place in places {
            let (from, to) = times(place);
            for (first, last) in &mut bounds[self.of_segment(&place.live)] {
                *first = from.min(*first);
                *last = to.max(*last);
            }
        }
        // A take may have begun at any time before the first number.
        bounds[0].0 = 0;
        bounds[self.bounds.len()].1 = u64::MAX;
        let may_miss = |at: usize| {
            // Nothing can be missing after the last chunk.
            let Some(&bound) = self.bounds.get(at) else { return false };
            let room = at == 0 || bound - self.bounds[at - 1] > 1;
            let latest = latest_in(&bounds[at..]);
            // Within a take numbers grow by less than one a microsecond. Where they catch up with the packets' times, another take
            // begins: what is missing at its start may be as old as that.
            let begins = at > 0 && bound.saturating_mul(1000) >= bounds[at].0;
            let begin = if begins { self.bounds[at - 1].saturating_mul(1000) } else { u64::MAX };
            let earliest = bounds[at].0.min(begin);
            room && earliest <= range.to.as_nanos() && latest >= range.from.as_nanos()
        };
        (0..self.count()).map(may_miss).collect()
    }
}

/// The latest time that chunks missing in the first of these stretches may have, by the times of the segments that bound each.
fn latest_in(bounds: &[(u64, u64)]) -> u64 {
    let mut latest = bounds[0].1;
    // A chunk without packets, as at the end of a take, is dated by when it was sealed: the missing chunks may be as late as what
    // follows. A following chunk with older packets (it was written again in another place, or its queue was slow) sets no limit.
    for (_, follows) in &bounds[1..] {
        let is_older = *follows < latest;
        latest = latest.max(*follows);
        if !is_older {
            break;
        }
    }
    latest
}

#[cfg(test)]
mod tests {
    use base::Timestamp;

    use super::*;

    /// The segments that a span needs; each is given by member, first and last number, and times. These are seconds from second 100 on.
    fn needed_of(segments: &[(u16, u64, u64, u64, u64)], (from, to): (u64, u64)) -> Vec<usize> {
        let time = |seconds: u64| (100 + seconds) * 1_000_000_000;
        let place = |(segment, &(member, first, last, from, to)): (u64, &_)| {
            let (first_ns, last_ns) = if to == 0 { (u64::MAX, 0) } else { (time(from), time(to)) };
            let live = Live {
                first_sequence: first,
                last_sequence: last,
                first_ns,
                last_ns,
                indexed: true,
                chunks: 1,
            };
            SegmentAt { member, segment, live, untimed_ns: None }
        };
        let places: Vec<SegmentAt> = (0..).zip(segments).map(place).collect();
        let [from, to] = [from, to].map(|at| Timestamp::from_nanos(time(at)));
        let needed = needed(&places, TimeRange { from, to });
        (0..segments.len()).filter(|&at| needed[at]).collect()
    }

    #[test]
    fn of_segments_without_numbers_between_them_those_of_the_span_and_the_one_before_are_read() {
        let whole: Vec<_> = (0..9).map(|n| (0, n * 10, n * 10 + 9, n * 10, n * 10 + 9)).collect();
        assert_eq!(needed_of(&whole, (32, 37)), [2, 3]);
        assert_eq!(needed_of(&whole, (39, 40)), [2, 3, 4]);
        // A take may have ended after its last packet.
        assert_eq!(needed_of(&whole, (500, 600)), [8]);
    }

    #[test]
    fn a_span_in_which_chunks_may_be_missing_needs_what_was_found_on_either_side() {
        // Numbers 30 to 69 are not there.
        let gap: Vec<_> =
            [0, 1, 2, 7, 8].iter().map(|n| (0, n * 10, n * 10 + 9, n * 10, n * 10 + 9)).collect();
        assert_eq!(needed_of(&gap, (45, 50)), [2, 3]);
        assert_eq!(needed_of(&gap, (5, 6)), [0]);
        assert_eq!(needed_of(&gap, (85, 86)), [3, 4]);
    }

    #[test]
    fn a_slow_queue_s_chunk_that_is_numbered_behind_later_packets_is_needed() {
        // The first member's second segment holds an old packet under a late number; what is missing before it is old too.
        let slow =
            [(0, 0, 9, 10, 19), (1, 10, 19, 20, 29), (0, 20, 29, 50, 59), (1, 40, 49, 21, 69)];
        assert!(needed_of(&slow, (60, 62)).ends_with(&[2, 3]));
        assert!(needed_of(&slow, (30, 31)).ends_with(&[2, 3]));
        assert_eq!(needed_of(&slow, (12, 13)), [0, 1]);
    }

    /// Found by chaos, seed 742866: the newest chunks of a take were lost, except one that had been written again in another place.
    #[test]
    fn what_is_missing_before_a_chunk_placed_anew_may_be_later_than_its_packets() {
        // Number 33 is an older chunk in another place. A take on record ends with it, at second 39.
        let anew = [(0, 10, 19, 10, 29), (1, 33, 33, 14, 15), (2, 34, 34, 39, 39)];
        assert_eq!(needed_of(&anew, (35, 36)), [0, 1, 2]);
        assert_eq!(needed_of(&anew, (40, 41)), [0usize; 0]);
    }

    #[test]
    fn a_segment_whose_numbers_lie_within_a_torn_one_s_counts_by_its_own() {
        // The second segment still begins with a chunk of the lap before; number 30 is missing behind the first one.
        let torn = [(0, 20, 29, 20, 29), (0, 10, 49, 10, 49), (0, 50, 59, 50, 59)];
        assert!(needed_of(&torn, (30, 31)).contains(&0));
    }

    #[test]
    fn a_segment_that_holds_the_end_of_a_take_alone_is_read_whatever_the_span() {
        let ends = [(0, 0, 9, 10, 19), (0, 10, 10, 0, 0), (0, 11, 19, 20, 29)];
        assert_eq!(needed_of(&ends, (25, 26)), [0, 1, 2]);
        assert_eq!(needed_of(&ends, (12, 13)), [0, 1]);
    }

    #[test]
    fn packets_older_than_their_take_may_be_missing_from_any_time_before_it() {
        // Numbers are microseconds from the start of the take: these packets come from a file.
        let file = [(0, 1_000, 900_000_009, 10, 19), (0, 900_000_020, 900_000_029, 20, 29)];
        assert_eq!(needed_of(&file, (1, 2)), [0, 1]);
    }

    #[test]
    fn the_start_of_a_take_may_be_missing_from_before_the_first_packet_that_was_found() {
        // The first take began at second 105. The second began at second 160; its first packets are of second 180.
        let takes = [
            (0, 105_000_000, 105_000_099, 10, 19),
            (0, 105_000_100, 105_000_199, 20, 29),
            (0, 160_000_005, 160_000_099, 80, 89),
        ];
        assert_eq!(needed_of(&takes, (65, 70)), [1, 2]);
        assert_eq!(needed_of(&takes, (1, 2)), [0]);
    }

    /// Found by chaos, seed 300915: a power cut took the first chunk of the second take.
    #[test]
    fn a_take_behind_the_end_of_another_in_a_segment_may_miss_its_start() {
        let second = |seconds: u64| (100 + seconds) * 1_000_000_000;
        let place = |segment, numbers: (u64, u64), times: (u64, u64), untimed_ns| {
            let (first_sequence, last_sequence) = numbers;
            let (first_ns, last_ns) = (second(times.0), second(times.1));
            let live =
                Live { first_sequence, last_sequence, first_ns, last_ns, indexed: true, chunks: 1 };
            SegmentAt { member: 0, segment, live, untimed_ns }
        };
        // The first take began at second 100 and ended at second 30 of these. The second began at second 60, number 160,000,000,
        // which is missing; the first of its packets that was found is of second 70.
        let takes = |ended_ns| {
            [
                place(0, (100_000_000, 100_000_099), (0, 30), None),
                place(1, (100_000_100, 160_000_009), (70, 80), ended_ns),
                place(2, (160_000_010, 160_000_099), (80, 90), None),
            ]
        };
        let [from, to] = [65, 66].map(|at| Timestamp::from_nanos(second(at)));
        let range = TimeRange { from, to };
        assert_eq!(needed(&takes(Some(second(30))), range), [true, true, false]);
        assert_eq!(needed(&takes(None), range), [true, false, false]);
    }

    #[test]
    fn a_loss_may_have_been_placed_anew_in_a_later_segment_with_packets_as_old() {
        let losses = Losses::of([(50, 700), (10, 300), (30, 200)].into_iter());
        let may_be_in = |first_sequence, last_sequence, first_ns, last_ns| {
            let live =
                Live { first_sequence, last_sequence, first_ns, last_ns, indexed: true, chunks: 1 };
            losses.may_be_in(&live)
        };
        assert!(may_be_in(40, 45, 290, 900), "placed anew behind the second loss");
        assert!(may_be_in(60, 60, 290, 290), "placed anew alone");
        assert!(may_be_in(60, 99, 700, 900) && may_be_in(5, 11, 300, 300));
        assert!(!may_be_in(40, 45, 301, 900), "only later packets");
        assert!(!may_be_in(60, 99, 701, 900) && !may_be_in(60, 60, u64::MAX, 0));
        assert!(!may_be_in(1, 10, 0, 900), "before every loss");
        assert!(!Losses::of([].into_iter()).may_be_in(&Live {
            first_sequence: 1,
            last_sequence: 9,
            first_ns: 0,
            last_ns: 9,
            indexed: true,
            chunks: 1
        }));
    }

    #[test]
    fn numbers_of_segments_that_were_not_read_are_passed_over() {
        let unread = Unread::of([20..=29, 5..=9, 25..=39].into_iter());
        assert_eq!(
            [0, 5, 9, 10, 19, 20, 39, 40].map(|n| unread.past(n)),
            [0, 10, 10, 10, 19, 40, 40, 40]
        );
        assert!(
            unread.touches(&(0..=5)) && unread.touches(&(39..=50)) && unread.touches(&(0..=99))
        );
        assert!(
            !unread.touches(&(0..=4)) && !unread.touches(&(10..=19)) && !unread.touches(&(40..=50))
        );
        assert_eq!(Unread::of([7..=u64::MAX].into_iter()).past(8), u64::MAX);
    }
}
