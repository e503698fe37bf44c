//! fio's logs as series of what was written: bandwidth (`write_bw_log`) and histograms (`write_hist_log`).
//!
//! A bandwidth log has a line for each command (milliseconds, KiB/s, direction, block size) or, with `log_avg_msec`, one for
//! each window, stamped at its end and without block size; windows in which nothing ended are left out. A histogram log has a line
//! for each window with the number of commands in each bin of latency. (HOWTO, "Log File Formats".)

use std::collections::BTreeMap;
use std::fmt;

use crate::analysis::{Point, Series};

/// What one job wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct FioLog {
    /// Bytes over time.
    pub series: Series,
    /// Bytes of each write; 0 if the log doesn't tell.
    pub block_bytes: u64,
    /// Whether it is of latencies, which count the same bytes as the log of bandwidth.
    pub histogram: bool,
}

/// Why a log can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FioLogError {
    /// A line isn't like the others.
    Line {
        /// Which, from 1.
        line: usize,
        /// What it says, cut short.
        text: String,
    },
    /// Time goes back, or windows come too close.
    Order {
        /// In which line, from 1.
        line: usize,
    },
    /// Nothing was written.
    NoWrites,
    /// It ends before there is a rate.
    Short,
}

impl fmt::Display for FioLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { line, text } => write!(
                f,
                "line {line} of fio's log, '{text}', is not 'milliseconds, value, direction, block size': was it cut off or joined \
                 with something else? Give fio's file as it is"
            ),
            Self::Order { line } => write!(
                f,
                "line {line} of fio's log comes too early for the line before it: several jobs share the log; run fio with \
                 --per_job_logs=1 and give all of its files"
            ),
            Self::NoWrites => f.write_str(
                "fio's log has no writes: a profile's rates over time are of writing; give the log of a write job",
            ),
            Self::Short => f.write_str("fio's log has fewer than two windows: let fio write for longer"),
        }
    }
}

impl std::error::Error for FioLogError {}

/// fio's number for writes.
const WRITE: u64 = 1;
/// A histogram has this many bins at least: 1,856 made coarser by halves, six times.
const BINS_MIN: usize = 29;
/// Fields before the bins.
const HEAD: usize = 3;
/// Commands are gathered into so many intervals, within these limits, as a measured fill is.
const INTERVALS: u64 = 1_000;
const INTERVAL_MIN_MS: u64 = 10;
const INTERVAL_MAX_MS: u64 = 1_000;
const MS: u64 = 1_000_000;
/// One early window of so many, or more, is another job's.
const EARLY_SHARE: usize = 5;

/// One line.
struct Entry {
    line: usize,
    at_ms: u64,
    value: u64,
    block: u64,
    /// Commands in all bins; None in a log of bandwidth.
    commands: Option<u64>,
}

/// Whether a text looks like a log of fio's: whole numbers with ", " between them, the third of which is a direction.
pub fn is_one(text: &str) -> bool {
    let Some(line) = text.lines().find(|line| !line.trim().is_empty()) else { return false };
    line.contains(", ") && numbers(line).is_some_and(|n| n.len() >= 4 && direction(&n) <= 2)
}

/// Reads the writes of a log.
///
/// # Errors
/// [`FioLogError`].
pub fn read(text: &str) -> Result<FioLog, FioLogError> {
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = || FioLogError::Line { line: index + 1, text: line.chars().take(40).collect() };
        let numbers = numbers(line).filter(|n| n.len() >= 4).ok_or_else(wrong)?;
        if direction(&numbers) > 2 {
            return Err(wrong());
        }
        if direction(&numbers) != WRITE {
            continue;
        }
        let histogram = numbers.len() >= HEAD + BINS_MIN;
        entries.push(Entry {
            line: index + 1,
            at_ms: numbers[0],
            value: numbers[1],
            block: if histogram { numbers[2] } else { numbers[3] },
            commands: histogram.then(|| numbers[HEAD..].iter().sum()),
        });
    }
    let Some(first) = entries.first() else { return Err(FioLogError::NoWrites) };
    let block_bytes = first.block;
    let histogram = first.commands.is_some();
    let points = if histogram {
        windows(&entries, |entry, _| entry.commands.unwrap_or(0).saturating_mul(entry.block))?
    } else if block_bytes == 0 {
        // KiB a second for so many milliseconds.
        windows(&entries, |entry, ms| (entry.value as f64 * 1.024 * ms as f64) as u64)?
    } else {
        commands(&entries)?
    };
    let series = Series::new(points).map_err(|_| FioLogError::Order { line: entries[0].line })?;
    Ok(FioLog { series, block_bytes, histogram })
}

/// Whole numbers; a histogram's come as `time, direction, block, bins...`. Whatever stands behind the fourth field of a log of
/// bandwidth (offset, priority in several forms) isn't needed.
fn numbers(line: &str) -> Option<Vec<u64>> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let needed = if fields.len() >= HEAD + BINS_MIN { fields.len() } else { fields.len().min(4) };
    fields[..needed].iter().map(|field| field.parse().ok()).collect()
}

fn direction(numbers: &[u64]) -> u64 {
    numbers[if numbers.len() >= HEAD + BINS_MIN { 1 } else { 2 }]
}

/// A point for each window, and one without bytes wherever windows were left out.
fn windows(
    entries: &[Entry],
    bytes: impl Fn(&Entry, u64) -> u64,
) -> Result<Vec<Point>, FioLogError> {
    let mut gaps: Vec<u64> =
        entries.windows(2).map(|w| w[1].at_ms.saturating_sub(w[0].at_ms)).collect();
    gaps.sort_unstable();
    let typical = *gaps
        .get(gaps.len().saturating_sub(1) / 2)
        .filter(|gap| **gap > 0)
        .ok_or(FioLogError::Short)?;
    // Times since 1970 begin with the first window, others with the job.
    let mut at = if entries[0].at_ms > 2 * typical { entries[0].at_ms - typical } else { 0 };
    let begin = at;
    let mut points: Vec<Point> = Vec::new();
    let (mut before, mut early) = (0, Vec::new());
    for (index, entry) in entries.iter().enumerate() {
        let back = entry.at_ms < at;
        let length = entry.at_ms.saturating_sub(at);
        if back {
            return Err(FioLogError::Order { line: entry.line });
        }
        // The first one may begin late and the last be cut off. On a busy machine a window may come late, which makes the next
        // one short.
        let inside = index > 0 && index + 1 < entries.len();
        if inside && 2 * length < typical && 2 * (before + length) < 3 * typical {
            early.push(entry.line);
        }
        before = length;
        let point = |from: u64, ms: u64, bytes| Point {
            start_ns: (from - begin) * MS,
            duration_ns: ms * MS,
            bytes,
        };
        let own = if 2 * length > 3 * typical { typical } else { length };
        let bytes = bytes(entry, own);
        if own == 0 {
            let point = points.last_mut().ok_or(FioLogError::Order { line: entry.line })?;
            point.bytes += bytes;
            continue;
        }
        if own < length {
            points.push(point(at, length - own, 0));
        }
        points.push(point(entry.at_ms - own, own, bytes));
        at = entry.at_ms;
    }
    match early.first() {
        Some(&line) if EARLY_SHARE * early.len() >= entries.len() => {
            Err(FioLogError::Order { line })
        }
        _ => Ok(points),
    }
}

/// The bytes of commands in intervals of equal length. Threads may log a few commands out of order.
fn commands(entries: &[Entry]) -> Result<Vec<Point>, FioLogError> {
    let (mut first, mut last) = (u64::MAX, 0);
    for entry in entries {
        (first, last) = (first.min(entry.at_ms), last.max(entry.at_ms));
    }
    let begin = if first > (last - first) { first } else { 0 };
    let interval = ((last - begin) / INTERVALS).clamp(INTERVAL_MIN_MS, INTERVAL_MAX_MS);
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for entry in entries {
        *sums.entry((entry.at_ms - begin) / interval).or_default() += entry.block;
    }
    let end = (last - begin) / interval;
    if end < 2 {
        return Err(FioLogError::Short);
    }
    // The last interval was cut off in the middle, so it has no rate.
    let point = |at| Point {
        start_ns: at * interval * MS,
        duration_ns: interval * MS,
        bytes: sums.get(&at).copied().unwrap_or(0),
    };
    Ok((0..end).map(point).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(log: &FioLog) -> Vec<f64> {
        log.series.rates()
    }

    #[test]
    fn windows_are_stamped_at_their_end_and_those_left_out_moved_nothing() {
        let log =
            read("100, 1000, 1, 0, 0\n200, 2000, 1, 0, 0\n200, 9, 0, 0, 0\n500, 1000, 1, 0, 0\n")
                .unwrap();
        assert_eq!(rates(&log), [1_024_000.0, 2_048_000.0, 0.0, 1_024_000.0]);
        let points = log.series.points();
        assert_eq!((points[2].start_ns, points[2].duration_ns), (200 * MS, 200 * MS));
        assert_eq!((log.series.end_ns(), log.block_bytes), (500 * MS, 0));
    }

    #[test]
    fn a_late_window_makes_the_next_one_short() {
        let log = |ends: &[u64]| {
            read(&ends.iter().map(|ms| format!("{ms}, 1000, 1, 0, 0\n")).collect::<String>())
        };
        for ends in [[100, 200, 300, 460, 500, 600, 700], [100, 200, 300, 500, 500, 600, 700]] {
            let late = log(&ends).unwrap();
            assert_eq!(late.series.end_ns(), 700 * MS);
        }
        assert!(matches!(log(&[100, 200, 300, 250, 400]), Err(FioLogError::Order { line: 4 })));
        assert!(matches!(log(&[100, 200, 300, 310, 400]), Err(FioLogError::Order { line: 4 })));
    }

    #[test]
    fn commands_are_added_up_by_their_bytes() {
        let text: String =
            (0..100).map(|ms| format!("{}, 77, 1, 4096, 0, 0x0000\n", ms * 3)).collect();
        let log = read(&text).unwrap();
        assert_eq!(log.block_bytes, 4096);
        assert!((log.series.mean_rate() / (4096.0 / 0.003) - 1.0).abs() < 0.05);
        assert!(is_one(&text));
    }

    #[test]
    fn histograms_count_commands() {
        let line = |ms: u64, count: u64| {
            let bins: Vec<String> = (0..1856u64)
                .map(|bin| u64::from(bin == 700).wrapping_mul(count).to_string())
                .collect();
            format!("{ms}, 1, 65536, {}\n", bins.join(", "))
        };
        let text = line(1000, 10) + &line(2000, 30) + &line(3000, 20);
        assert!(is_one(&text));
        let log = read(&text).unwrap();
        assert_eq!(rates(&log), [655_360.0, 1_966_080.0, 1_310_720.0]);
    }

    #[test]
    fn stamps_since_1970_begin_with_the_first_window() {
        let log = read("1700000000100, 1000, 1, 0, 0\n1700000000200, 2000, 1, 0, 0\n").unwrap();
        assert_eq!((log.series.start_ns(), log.series.end_ns()), (0, 200 * MS));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, error) in [
            (
                "100, 1, 1, 0\nx, 2, 1, 0\n",
                FioLogError::Line { line: 2, text: "x, 2, 1, 0".to_owned() },
            ),
            (
                "100, 1, 1, 0\n200, 2, 7, 0\n",
                FioLogError::Line { line: 2, text: "200, 2, 7, 0".to_owned() },
            ),
            ("100, 1, 0, 0\n200, 2, 0, 0\n", FioLogError::NoWrites),
            ("100, 1, 1, 0\n", FioLogError::Short),
            ("5, 1, 1, 4096\n", FioLogError::Short),
            (
                "100, 1, 1, 0\n200, 1, 1, 0\n202, 2, 1, 0\n300, 1, 1, 0\n302, 1, 1, 0\n400, 1, 1, 0\n500, 1, 1, 0\n600, 1, 1, 0\n",
                FioLogError::Order { line: 3 },
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), error, "{text}");
        }
        assert!(!is_one("time,rate\n0,1\n") && !is_one("") && !is_one("1,2,3,4"));
    }
}
