//! Which member gets the next chunk.

use std::fmt;
use std::str::FromStr;

use base::{Duration, Instant};

/// How chunks are spread over the members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// To the member expected to finish it first (of several that are about as soon, to the one with the fewest bytes), within a
    /// bound on how far the members' fill may drift apart: the array is as fast as the sum of its members.
    #[default]
    Adaptive,
    /// In turn, as RAID 0: the array is as fast as its slowest member times their number.
    Stripe,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Adaptive => "adaptive",
            Self::Stripe => "stripe",
        })
    }
}

impl FromStr for Placement {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "adaptive" => Ok(Self::Adaptive),
            "stripe" => Ok(Self::Stripe),
            _ => Err(format!("'{text}' is no placement: give adaptive or stripe")),
        }
    }
}

/// The speed of one member as its completions show it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Bytes of its completions, and the seconds that they took; older completions weigh less. Their quotient is the rate. An average
    /// of each completion's own rate would not do: where several are reaped at one instant, all but the first take no time.
    bytes: f64,
    seconds: f64,
    rate: f64,
    /// Bytes of what it last finished, and what as many would take it alone: mostly what is asked for next.
    alone: (u32, Duration),
    /// When it last finished something, or was given something after having been idle.
    busy_since: Instant,
}

/// Weight of a new completion. An eighth follows a change within some tens of chunks and is not moved by one.
const WEIGHT: f64 = 1.0 / 8.0;

/// A completion counts for at most so many times what all that was under way should have taken. One stall does not make a member
/// slow, several do.
const LATE: f64 = 8.0;

impl Pace {
    /// A command was given to a member that had none.
    pub(crate) fn started_from_idle(&mut self, now: Instant) {
        self.busy_since = now;
    }

    /// A write of `bytes` was finished, of `queued` bytes that were under way.
    pub(crate) fn finished(&mut self, now: Instant, queued: u64, bytes: u32) {
        let mut seconds = now.since(self.busy_since).as_secs_f64().max(1e-9);
        if self.seconds > 0.0 {
            seconds = seconds.min(LATE * queued as f64 / self.rate());
        }
        self.seconds += seconds - WEIGHT * self.seconds;
        self.bytes += f64::from(bytes) - WEIGHT * self.bytes;
        self.rate = self.bytes / self.seconds;
        self.alone = (bytes, Duration::from_secs_f64(f64::from(bytes) / self.rate()));
        self.busy_since = now;
    }

    /// When it is expected to finish `bytes` more behind `queued` bytes, from now. A member that is
    /// overdue is taken to be as slow as it has just shown.
    #[inline]
    pub(crate) fn expected(&self, now: Instant, queued: u64, bytes: u32) -> Duration {
        let mut rate = self.rate();
        if rate <= 0.0 {
            return Duration::from_nanos(queued);
        }
        if queued == 0 && bytes == self.alone.0 {
            return self.alone.1;
        }
        let waited = now.since(self.busy_since).as_secs_f64();
        if queued > 0 && waited > 0.0 {
            rate = rate.min((queued as f64 / waited).max(1.0));
        }
        Duration::from_secs_f64((queued as f64 + f64::from(bytes)) / rate)
    }

    /// Bytes a second, 0 if not known yet.
    pub(crate) const fn rate(&self) -> f64 {
        self.rate
    }
}

/// A member counts as equally soon if it is expected at most a quarter (1 / 4) later than the soonest; of those, the one with
/// the fewest bytes so far gets the chunk. Drives of a kind differ by less than that from moment to moment, and following such
/// differences would send a burst to one and nothing to the next. From a tenth to a half, simulated drives sustain the same.
const AS_SOON: u64 = 4;

/// What placement needs to know of a member that could take a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) member: usize,
    /// Bytes written since the recording began, and those that it was excused from.
    pub(crate) balance: u64,
    /// When it would finish the chunk, from now.
    pub(crate) expected: Duration,
    /// Whether a queue slot is free now.
    pub(crate) ready: bool,
}

/// The member that `adaptive` chooses among those that are eligible, or None to wait: none of them is
/// further than `drift_max` bytes ahead of the one with the least.
pub(crate) fn adaptive(
    candidates: &[Candidate],
    drift_max: u64,
    eligible: impl Fn(&Candidate) -> bool,
) -> Option<usize> {
    let least = candidates.iter().fold(u64::MAX, |least, c| least.min(c.balance));
    let most = least.saturating_add(drift_max);
    // Who is able and who is first can't be foreseen, so there are no branches for it.
    let able = |c: &Candidate| c.ready & (c.balance <= most) & eligible(c);
    let soonest = candidates.iter().fold(u64::MAX, |soonest, c| {
        soonest.min(if able(c) { c.expected.as_nanos() } else { u64::MAX })
    });
    let as_soon = soonest.saturating_add(soonest / AS_SOON);
    let (mut least, mut found) = (u64::MAX, None);
    for c in candidates {
        let balance =
            if able(c) && c.expected.as_nanos() <= as_soon { c.balance } else { u64::MAX };
        found = if balance < least { Some(c.member) } else { found };
        least = least.min(balance);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(member: usize, balance: u64, ms: u64, ready: bool) -> Candidate {
        Candidate { member, balance, expected: Duration::from_millis(ms), ready }
    }

    #[test]
    fn the_first_to_finish_is_chosen() {
        let candidates =
            [candidate(0, 0, 5, true), candidate(1, 0, 3, true), candidate(2, 0, 1, false)];
        assert_eq!(adaptive(&candidates, 100, |_| true), Some(1));
        assert_eq!(adaptive(&candidates, 100, |c| c.member != 1), Some(0));
    }

    #[test]
    fn of_those_as_soon_the_one_with_the_least_is_chosen() {
        let candidates =
            [candidate(0, 9, 100, true), candidate(1, 8, 124, true), candidate(2, 0, 126, true)];
        assert_eq!(adaptive(&candidates, 100, |_| true), Some(1));
        assert_eq!(adaptive(&candidates, 100, |c| c.member != 1), Some(0));
        assert_eq!(adaptive(&candidates, 100, |_| false), None);
    }

    #[test]
    fn drift_is_bounded() {
        let candidates = [candidate(0, 500, 1, true), candidate(1, 0, 9, false)];
        assert_eq!(adaptive(&candidates, 100, |_| true), None);
        assert_eq!(adaptive(&candidates, u64::MAX, |_| true), Some(0));
    }

    #[test]
    fn an_overdue_member_is_taken_to_be_slow() {
        let mut pace = Pace::default();
        let at = |ms| Instant::START + Duration::from_millis(ms);
        pace.started_from_idle(at(0));
        pace.finished(at(1), 1_000_000, 1_000_000);
        let prompt = pace.expected(at(1), 1_000_000, 1_000_000);
        let stalled = pace.expected(at(101), 1_000_000, 1_000_000);
        assert!(stalled > prompt + Duration::from_millis(100));
    }

    #[test]
    fn completions_that_are_reaped_together_do_not_make_a_member_fast() {
        let at = |ms| Instant::START + Duration::from_millis(ms);
        let mut pace = Pace::default();
        pace.started_from_idle(at(0));
        // Four writes of a megabyte in four milliseconds: 1 GB/s, seen every four milliseconds.
        for batch in 1..100 {
            for left in (1..=4).rev() {
                pace.finished(at(4 * batch), left * 1_000_000, 1_000_000);
            }
            let rate = pace.rate();
            assert!((0.5e9..2e9).contains(&rate), "{rate} bytes a second after batch {batch}");
        }
    }

    #[test]
    fn one_stall_does_not_make_a_member_slow_and_a_slow_one_is_found_out_soon() {
        let at = |us| Instant::START + Duration::from_micros(us);
        let mut pace = Pace::default();
        pace.started_from_idle(at(0));
        let write = |pace: &mut Pace, now: &mut u64, us: u64| {
            *now += us;
            pace.finished(at(*now), 1_000_000, 1_000_000);
            pace.rate()
        };
        let mut now = 0;
        for _ in 0..20 {
            write(&mut pace, &mut now, 1000);
        }
        let stalled = write(&mut pace, &mut now, 1_000_000);
        assert!(stalled > 0.4e9, "{stalled} bytes a second after a stall");
        let slow = (0..10).map(|_| write(&mut pace, &mut now, 100_000)).last();
        assert!(slow.is_some_and(|rate| rate < 2e7), "{slow:?} bytes a second of 10 MB/s");
    }
}
