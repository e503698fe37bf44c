//! What a rest gives back: bytes at the fast rate after idling for various lengths of time.
//!
//! Each burst of writing is fast until the emptied part of the cache is full, and then falls to the
//! slow rate. Both rates are known from a fill, so the drop is where these two rates fit the burst
//! best. This works for bursts of any length.

use serde::{Deserialize, Serialize};

use super::noise;
use super::series::Series;

/// Writing after a rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// How long the drive was idle before, in nanoseconds.
    pub rest_ns: u64,
    /// What was written then.
    pub series: Series,
}

/// What one rest gave back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecoveryRow {
    /// How long the drive was idle, in nanoseconds.
    pub rest_ns: u64,
    /// Bytes written at the fast rate.
    pub fast_bytes: u64,
    /// How far that may be off: the bytes of the interval in which the rate fell.
    pub resolution_bytes: u64,
    /// Whether the burst ended before the rate fell, so that `fast_bytes` is only the least it was.
    pub at_least: bool,
}

/// The table and what it says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// Fast rate that bursts were judged by, in bytes a second.
    pub fast: f64,
    /// Slow rate that bursts were judged by, in bytes a second.
    pub slow: f64,
    /// One row a burst, by length of rest.
    pub rows: Vec<RecoveryRow>,
    /// Bytes of cache that a second of rest gives back: the median of the slopes between rests, up
    /// to where more rest gave no more (Theil and Sen). None with fewer than two such rests.
    pub bytes_a_second: Option<f64>,
    /// The shortest rest that gave back all that any gave (95 % of the most), in nanoseconds; None
    /// if that was the longest, because a longer one might give more.
    pub full_after_ns: Option<u64>,
}

/// A rest that gave back this share of the most gave back all.
const FULL_SHARE: f64 = 0.95;

/// Judges bursts by the fast and the slow rate of the drive, in bytes a second. None unless the
/// rates are positive and fast is above slow: then there is no cache to recover.
pub fn judge(bursts: &[Burst], fast: f64, slow: f64) -> Option<Recovery> {
    if !(fast > slow && slow > 0.0 && fast.is_finite()) {
        return None;
    }
    let mut rows: Vec<RecoveryRow> = bursts.iter().map(|burst| row(burst, fast, slow)).collect();
    rows.sort_by_key(|row| row.rest_ns);
    let most = rows.iter().map(|row| row.fast_bytes).max().unwrap_or(0);
    let is_full = |row: &&RecoveryRow| row.fast_bytes as f64 >= FULL_SHARE * most as f64;
    let full_after_ns = rows
        .iter()
        .find(is_full)
        .filter(|row| most > 0 && rows.last().is_some_and(|last| last.rest_ns > row.rest_ns))
        // A burst that ended before the cache did doesn't say what there was.
        .filter(|row| rows.iter().all(|other| !other.at_least || other.rest_ns < row.rest_ns))
        .map(|row| row.rest_ns);
    let bytes_a_second = slope(&rows, full_after_ns);
    Some(Recovery { fast, slow, rows, bytes_a_second, full_after_ns })
}

fn row(burst: &Burst, fast: f64, slow: f64) -> RecoveryRow {
    let points = burst.series.points();
    // Distances are of logarithms, so that fast and slow intervals weigh alike.
    let distance = |rate: f64, level: f64| (rate.max(slow * 1e-3).ln() - level.ln()).abs();
    let mut cost: f64 = points.iter().map(|p| distance(p.rate(), slow)).sum();
    let (mut split, mut least) = (0, cost);
    for (i, point) in points.iter().enumerate() {
        cost += distance(point.rate(), fast) - distance(point.rate(), slow);
        if cost < least {
            (split, least) = (i + 1, cost);
        }
    }
    // The interval in which the rate fell is on one side of the split or the other.
    let beside = points[split.saturating_sub(1)..(split + 1).min(points.len())].iter();
    let at_least = split == points.len() && split > 0;
    RecoveryRow {
        rest_ns: burst.rest_ns,
        fast_bytes: points[..split].iter().map(|p| p.bytes).sum(),
        resolution_bytes: if at_least { 0 } else { beside.map(|p| p.bytes).max().unwrap_or(0) },
        at_least,
    }
}

fn slope(rows: &[RecoveryRow], full_after_ns: Option<u64>) -> Option<f64> {
    let rising: Vec<&RecoveryRow> = rows
        .iter()
        .filter(|row| !row.at_least && full_after_ns.is_none_or(|full| row.rest_ns <= full))
        .collect();
    let mut slopes = Vec::new();
    for (i, short) in rising.iter().enumerate() {
        for long in rising[i + 1..].iter().filter(|long| long.rest_ns > short.rest_ns) {
            let seconds = (long.rest_ns - short.rest_ns) as f64 / 1e9;
            slopes.push((long.fast_bytes as f64 - short.fast_bytes as f64) / seconds);
        }
    }
    (!slopes.is_empty()).then(|| noise::median(&slopes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Point;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Intervals of 100 ms: `fast_bytes` at 2 GB/s with every fourth 8 % slower, then 0.5 GB/s.
    fn burst(rest_s: u64, fast_bytes: u64, all_bytes: u64) -> Burst {
        let (mut at, mut done, mut points) = (0, 0u64, Vec::new());
        while done < all_bytes {
            let mut left_ns = 100_000_000.0;
            let mut bytes = 0.0;
            let fast = if points.len() % 4 == 3 { 1.84 } else { 2.0 };
            let until_fall = fast_bytes.saturating_sub(done) as f64;
            let moved = f64::min(until_fall, left_ns * fast);
            left_ns -= moved / fast;
            bytes += moved + left_ns * 0.5;
            points.push(Point { start_ns: at, duration_ns: 100_000_000, bytes: bytes as u64 });
            done += bytes as u64;
            at += 100_000_000;
        }
        Burst { rest_ns: rest_s * SECOND_NS, series: Series::new(points).unwrap() }
    }

    #[test]
    fn rests_give_back_bytes_at_a_rate_until_the_cache_is_whole() {
        // 1 GB a second of rest, 20 GB in all.
        let gb = |n: u64| n * 1_000_000_000;
        let bursts: Vec<Burst> = [60, 1, 2, 5, 10, 20, 40, 0]
            .into_iter()
            .map(|rest| burst(rest, gb(rest.min(20)), gb(30)))
            .collect();
        let found = judge(&bursts, 2e9, 0.5e9).unwrap();
        let rests: Vec<u64> = found.rows.iter().map(|r| r.rest_ns / SECOND_NS).collect();
        assert_eq!(rests, [0, 1, 2, 5, 10, 20, 40, 60]);
        for row in &found.rows {
            let truth = gb((row.rest_ns / SECOND_NS).min(20));
            assert!(row.fast_bytes.abs_diff(truth) <= row.resolution_bytes, "{row:?}");
            assert!(!row.at_least);
        }
        assert_eq!(found.full_after_ns, Some(20 * SECOND_NS));
        let rate = found.bytes_a_second.unwrap();
        assert!((rate / 1e9 - 1.0).abs() < 0.05, "{rate}");
    }

    #[test]
    fn a_burst_that_stays_fast_says_only_the_least_that_came_back() {
        let found = judge(&[burst(5, u64::MAX, 3_000_000_000)], 2e9, 0.5e9).unwrap();
        assert!(found.rows[0].at_least);
        assert!(found.rows[0].fast_bytes >= 3_000_000_000);
        assert_eq!((found.bytes_a_second, found.full_after_ns), (None, None));
    }

    #[test]
    fn bursts_that_end_before_the_cache_does_do_not_say_that_there_was_no_more() {
        let bursts: Vec<Burst> = [2, 10].map(|rest| burst(rest, u64::MAX, 3_000_000_000)).into();
        let found = judge(&bursts, 2e9, 0.5e9).unwrap();
        assert!(found.rows.iter().all(|row| row.at_least));
        assert_eq!(found.full_after_ns, None);
    }

    #[test]
    fn rests_that_give_nothing_back_have_a_rate_of_nothing() {
        let bursts: Vec<Burst> = (1..5).map(|rest| burst(rest, 0, 5_000_000_000)).collect();
        let found = judge(&bursts, 2e9, 0.5e9).unwrap();
        assert!(found.rows.iter().all(|row| row.fast_bytes == 0));
        assert_eq!((found.bytes_a_second, found.full_after_ns), (Some(0.0), None));
    }

    #[test]
    fn without_two_rates_there_is_nothing_to_recover() {
        assert_eq!(judge(&[], 1e9, 1e9), None);
        assert_eq!(judge(&[], f64::NAN, 1e9), None);
        let empty = Burst { rest_ns: 1, series: Series::default() };
        let found = judge(&[empty], 2e9, 1e9).unwrap();
        assert_eq!((found.rows[0].fast_bytes, found.rows[0].at_least), (0, false));
    }
}
