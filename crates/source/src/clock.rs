//! The wall clock, as sources stamp packets with it.

use std::time::SystemTime;

use base::Timestamp;

/// The time by `CLOCK_REALTIME`: UTC in nanoseconds. A clock set before 1970 reads as
/// [`Timestamp::MIN`].
pub fn now() -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX))
}

/// The same clock as of the kernel's last timer tick, up to 10 ms ago, at a quarter of the cost: to see
/// for every packet whether something is due.
pub(crate) fn coarse() -> Timestamp {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable. On failure, which Linux has no reason for, it stays 1970.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Timestamp::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_reads_a_time_after_this_was_written() {
        let written = Timestamp::from_nanos(1_767_225_600_000_000_000); // 2026-01-01
        assert!(now() > written);
    }

    #[test]
    fn the_coarse_clock_never_runs_ahead_of_the_fine_one() {
        for _ in 0..10_000 {
            let coarse = coarse();
            assert!(coarse <= now());
            assert!(coarse > Timestamp::MIN);
        }
    }
}
