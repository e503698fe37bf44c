//! How far the groups of an array with parity reach over segments that an earlier recording left. Opening reads no more of a
//! segment than its first and last chunks' numbers and times, so this is a bound: a group may lie in any segment whose numbers
//! are near.

use crate::member::Times;
use crate::open::{Live, MemberImage, Segment};

/// Sequence numbers that lie between two chunks of one group at most: 64 data chunks, and the parity chunks of earlier groups
/// that got their places between them, which is limited by the buffers for parity.
const GROUP_REACH: u64 = 1 << 10;

/// For each segment of each member, the times between which packets of its chunks' groups may lie.
pub(super) fn of(members: &[MemberImage]) -> Vec<Vec<Times>> {
    let in_order: Vec<Vec<Live>> = members.iter().map(live_in_order).collect();
    let of_member = |member: &MemberImage| {
        let each = member.segments.iter().map(|segment| match segment {
            Segment::Live(live) => near(&in_order, live),
            Segment::Empty => Times::NONE,
        });
        each.collect()
    };
    members.iter().map(of_member).collect()
}

/// A member's segments in the order of their numbers.
fn live_in_order(member: &MemberImage) -> Vec<Live> {
    let live = member.segments.iter().filter_map(|segment| match segment {
        Segment::Live(live) => Some(*live),
        Segment::Empty => None,
    });
    let mut live: Vec<Live> = live.collect();
    live.sort_by_key(|live| live.first_sequence);
    live
}

/// The times of all segments whose numbers are near those of this one.
fn near(in_order: &[Vec<Live>], live: &Live) -> Times {
    let from = live.first_sequence.saturating_sub(GROUP_REACH);
    let to = live.last_sequence.saturating_add(GROUP_REACH);
    let mut times = Times::NONE;
    for segments in in_order {
        let first = segments.partition_point(|other| other.last_sequence < from);
        for other in segments[first..].iter().take_while(|other| other.first_sequence <= to) {
            times.first_ns = times.first_ns.min(other.first_ns);
            times.last_ns = times.last_ns.max(other.last_ns);
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use base::DriveId;
    use format::Layout;

    use super::*;

    fn member(segments: &[(u64, u64, u64, u64)]) -> MemberImage {
        let live = |&(first_sequence, last_sequence, first_ns, last_ns)| {
            Segment::Live(Live {
                first_sequence,
                last_sequence,
                first_ns,
                last_ns,
                indexed: true,
                chunks: 1,
            })
        };
        MemberImage {
            drive: DriveId(0),
            layout: Layout::new(64 << 20, 1 << 20, 64 << 10).expect("it can be divided"),
            segments: segments.iter().map(live).chain([Segment::Empty]).collect(),
            head: None,
            unindexed: Vec::new(),
            trims: false,
            lost_segment: false,
            untimed: Vec::new(),
        }
    }

    #[test]
    fn a_segment_reaches_over_those_of_other_members_with_near_numbers_and_no_further() {
        let one = member(&[(0, 4_000, 100, 200), (8_000, 12_000, 300, 400)]);
        // Written at the same time, a little later, and long after.
        let other =
            member(&[(1, 4_500, 110, 230), (12_500, 14_000, 410, 500), (20_000, 21_000, 600, 700)]);
        let reach = of(&[one, other]);
        let times = |first_ns, last_ns| Times { first_ns, last_ns };
        assert_eq!(reach[0], [times(100, 230), times(300, 500), Times::NONE]);
        assert_eq!(reach[1], [times(100, 230), times(300, 500), times(600, 700), Times::NONE]);
    }

    #[test]
    fn numbers_are_near_up_to_the_reach_of_a_group_on_either_side() {
        let one = member(&[(10_000, 10_100, 300, 400)]);
        let reach = |before: u64, after: u64| {
            let other = member(&[(8_000, before, 100, 150), (after, 20_000, 500, 600)]);
            of(&[one.clone(), other])[0][0]
        };
        let times = |first_ns, last_ns| Times { first_ns, last_ns };
        let (before, after) = (10_000 - GROUP_REACH, 10_100 + GROUP_REACH);
        assert_eq!(reach(before, after), times(100, 600));
        assert_eq!(reach(before - 1, after), times(300, 600));
        assert_eq!(reach(before, after + 1), times(100, 400));
    }
}
