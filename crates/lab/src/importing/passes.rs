//! Series of one drive put together: those of several jobs added up, and cut where the drive was full.

use crate::analysis::{Point, Series};

/// Writing from empty to full, and over it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Passes {
    /// Writing the empty drive; empty if nothing was written to an empty one.
    pub empty: Series,
    /// Writing over it.
    pub overwrite: Series,
}

impl Passes {
    /// What was written up to the drive's capacity, and what beyond it. An interval on the edge belongs to the first.
    pub fn of(series: &Series, capacity_bytes: u64) -> Self {
        let written = series.cumulative_bytes();
        let edge = written.partition_point(|bytes| *bytes < capacity_bytes);
        Self { empty: series.slice(0, edge), overwrite: series.slice(edge, series.len()) }
    }
}

/// What several jobs wrote at the same time, all beginning at 0: in intervals as long as the longest of theirs.
pub fn added_up(jobs: &[Series]) -> Series {
    if let [only] = jobs {
        return only.clone();
    }
    let typical = |series: &Series| {
        let mut lengths: Vec<u64> = series.points().iter().map(|p| p.duration_ns).collect();
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied().unwrap_or(1)
    };
    let cell_ns = jobs.iter().map(typical).max().unwrap_or(1).max(1);
    let mut sums: Vec<(u64, u64)> = Vec::new();
    for job in jobs.iter().filter(|job| !job.is_empty()) {
        for (place, point) in from_zero(job).by_equal_time(cell_ns).points().iter().enumerate() {
            if place == sums.len() {
                sums.push((0, 0));
            }
            let (length, bytes) = &mut sums[place];
            *length = point.duration_ns.max(*length);
            *bytes += point.bytes;
        }
    }
    let point = |(place, (duration_ns, bytes)): (usize, (u64, u64))| Point {
        start_ns: place as u64 * cell_ns,
        duration_ns,
        bytes,
    };
    // Cells of one grid can't overlap; only sums beyond 64 bits are no series.
    Series::new(sums.into_iter().enumerate().map(point).collect()).unwrap_or_default()
}

/// The same with a still interval from 0 on.
fn from_zero(job: &Series) -> Series {
    let still =
        (job.start_ns() > 0).then(|| Point { start_ns: 0, duration_ns: job.start_ns(), bytes: 0 });
    Series::new(still.into_iter().chain(job.points().iter().copied()).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(from: u64, length: u64, bytes: &[u64]) -> Series {
        let point = |(i, &bytes): (usize, &u64)| Point {
            start_ns: from + i as u64 * length,
            duration_ns: length,
            bytes,
        };
        Series::new(bytes.iter().enumerate().map(point).collect()).unwrap()
    }

    #[test]
    fn jobs_are_added_up_on_one_clock_without_losing_a_byte() {
        let sum = added_up(&[series(0, 10, &[100; 4]), series(20, 5, &[7; 6])]);
        let bytes: Vec<u64> = sum.points().iter().map(|p| p.bytes).collect();
        assert_eq!(bytes, [100, 100, 114, 114, 14]);
        assert_eq!(sum.end_ns(), 50);
        assert_eq!(added_up(&[]), Series::default());
    }

    #[test]
    fn what_lies_beyond_the_capacity_is_overwriting() {
        let whole = series(0, 10, &[100; 5]);
        let passes = Passes::of(&whole, 250);
        assert_eq!((passes.empty.total_bytes(), passes.overwrite.total_bytes()), (300, 200));
        assert_eq!(passes.overwrite.start_ns(), 30);
        let all = Passes::of(&whole, 10_000);
        assert_eq!((all.empty.len(), all.overwrite.len()), (5, 0));
    }
}
