//! The figures for which HDR's log has no place: nanoseconds of start and length, and the exact sum and extremes.

use std::fmt;

use base::{Duration, Latencies};
use hdrhistogram::Histogram;

const MARK: &str = "#[Exact:";

/// What stands in the comment before a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exact {
    pub start_ns: u64,
    pub length_ns: u64,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Exact {
    pub fn of(start: Duration, length: Duration, latencies: &Latencies) -> Self {
        let count = latencies.count();
        Self {
            start_ns: start.as_nanos(),
            length_ns: length.as_nanos(),
            count,
            // The mean has 53 bits: exact for sums below 2^51 ns, 26 days of latency in one interval.
            sum_ns: latencies.mean_ns().map_or(0, |mean| (mean * count as f64).round() as u128),
            // As an empty set has it.
            min_ns: latencies.min().map_or(u64::MAX, Duration::as_nanos),
            max_ns: latencies.max().map_or(0, Duration::as_nanos),
        }
    }

    /// From a comment; None if it is another one or damaged.
    pub fn parse(line: &str) -> Option<Self> {
        let mut values = line.trim().strip_prefix(MARK)?.strip_suffix(']')?.split_whitespace();
        let mut value = |name: &str| values.next()?.strip_prefix(name)?.strip_prefix('=');
        let exact = Self {
            start_ns: value("start_ns")?.parse().ok()?,
            length_ns: value("length_ns")?.parse().ok()?,
            count: value("count")?.parse().ok()?,
            sum_ns: value("sum_ns")?.parse().ok()?,
            min_ns: value("min_ns")?.parse().ok()?,
            max_ns: value("max_ns")?.parse().ok()?,
        };
        values.next().is_none().then_some(exact)
    }

    /// The latencies of this histogram with these figures; None if they are not of the same set.
    pub fn latencies(&self, histogram: &Histogram<u64>) -> Option<Latencies> {
        let same = self.count == histogram.len();
        same.then(|| Latencies::from_parts(histogram, self.sum_ns, self.min_ns, self.max_ns))
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start_ns, length_ns, count, sum_ns, min_ns, max_ns } = self;
        write!(
            f,
            "{MARK} start_ns={start_ns} length_ns={length_ns} count={count} sum_ns={sum_ns} min_ns={min_ns} max_ns={max_ns}]"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_that_is_not_whole_is_none() {
        let mut latencies = Latencies::default();
        latencies.record(Duration::from_nanos(1_234_567));
        let exact = Exact::of(Duration::from_nanos(1), Duration::from_nanos(999), &latencies);
        let text = exact.to_string();
        assert_eq!(Exact::parse(&text), Some(exact));
        for cut in 0..text.len() {
            assert_eq!(Exact::parse(&text[..cut]), None, "{}", &text[..cut]);
        }
        assert_eq!(Exact::parse("#[StartTime: 1.000 (seconds since epoch)]"), None);
    }
}
