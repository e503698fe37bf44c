//! A series: how many bytes moved in each interval of a run.
//!
//! Intervals may differ in length and may have pauses between them; they never overlap. Bytes are
//! conserved exactly whenever a series is cut or joined another way.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::noise;

/// What moved in one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// When the interval began, in nanoseconds of the run's clock.
    pub start_ns: u64,
    /// How long it was, in nanoseconds; not zero.
    pub duration_ns: u64,
    /// Bytes that moved in it.
    pub bytes: u64,
}

impl Point {
    /// Bytes a second.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.duration_ns as f64
    }

    /// When the interval ended, in nanoseconds of the run's clock.
    pub fn end_ns(&self) -> u64 {
        self.start_ns + self.duration_ns
    }
}

/// Intervals in order of time. Deserializing checks what [`Series::new`] checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Point>", into = "Vec<Point>")]
pub struct Series {
    points: Vec<Point>,
}

/// Why intervals are not a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeriesError {
    /// An interval has no length, so it has no rate.
    NoDuration {
        /// Which, from 0.
        index: usize,
    },
    /// An interval begins before the one before it ended.
    Overlap {
        /// Which, from 0.
        index: usize,
    },
    /// Times or bytes add up to more than 64 bits hold.
    Overflow {
        /// Which interval went past it, from 0.
        index: usize,
    },
}

impl fmt::Display for SeriesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDuration { index } => write!(
                f,
                "interval {index} has no duration, so no rate: leave out intervals of zero length"
            ),
            Self::Overlap { index } => write!(
                f,
                "interval {index} begins before the one before it ended: give intervals of one \
                 stream, in order of time"
            ),
            Self::Overflow { index } => write!(
                f,
                "times or bytes up to interval {index} exceed 64 bits: check that they are \
                 nanoseconds and bytes"
            ),
        }
    }
}

impl std::error::Error for SeriesError {}

/// A stretch of a series that moved least.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorstWindow {
    /// The window's length in nanoseconds.
    pub length_ns: u64,
    /// When it began, in nanoseconds of the run's clock.
    pub start_ns: u64,
    /// Its rate in bytes a second.
    pub rate: f64,
}

impl TryFrom<Vec<Point>> for Series {
    type Error = SeriesError;
    fn try_from(points: Vec<Point>) -> Result<Self, SeriesError> {
        Self::new(points)
    }
}

impl From<Series> for Vec<Point> {
    fn from(series: Series) -> Self {
        series.points
    }
}

impl Series {
    /// The series of these intervals.
    ///
    /// # Errors
    /// [`SeriesError`] if an interval is empty, overlaps the one before, or the sums exceed 64 bits.
    pub fn new(points: Vec<Point>) -> Result<Self, SeriesError> {
        let (mut end_ns, mut bytes) = (0u64, 0u64);
        for (index, point) in points.iter().enumerate() {
            if point.duration_ns == 0 {
                return Err(SeriesError::NoDuration { index });
            }
            if index > 0 && point.start_ns < end_ns {
                return Err(SeriesError::Overlap { index });
            }
            let overflow = SeriesError::Overflow { index };
            end_ns = point.start_ns.checked_add(point.duration_ns).ok_or(overflow.clone())?;
            bytes = bytes.checked_add(point.bytes).ok_or(overflow)?;
        }
        Ok(Self { points })
    }

    /// The intervals.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Whether there are no intervals.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Intervals.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// When it began, in nanoseconds of the run's clock; 0 if empty.
    pub fn start_ns(&self) -> u64 {
        self.points.first().map_or(0, |p| p.start_ns)
    }

    /// When it ended, in nanoseconds of the run's clock; 0 if empty.
    pub fn end_ns(&self) -> u64 {
        self.points.last().map_or(0, Point::end_ns)
    }

    /// All bytes.
    pub fn total_bytes(&self) -> u64 {
        self.points.iter().map(|p| p.bytes).sum()
    }

    /// The time that intervals cover, in nanoseconds; pauses between them are not counted.
    pub fn total_ns(&self) -> u64 {
        self.points.iter().map(|p| p.duration_ns).sum()
    }

    /// Bytes a second over all intervals; 0 if empty.
    pub fn mean_rate(&self) -> f64 {
        match self.total_ns() {
            0 => 0.0,
            ns => self.total_bytes() as f64 * 1e9 / ns as f64,
        }
    }

    /// Bytes a second of each interval.
    pub fn rates(&self) -> Vec<f64> {
        self.points.iter().map(Point::rate).collect()
    }

    /// Bytes moved before each interval, and at the end: one more than there are intervals.
    pub fn cumulative_bytes(&self) -> Vec<u64> {
        let mut sum = 0;
        let ends = self.points.iter().map(|p| {
            sum += p.bytes;
            sum
        });
        std::iter::once(0).chain(ends).collect()
    }

    /// How far an interval's rate strays from its neighbours', as a share of the median rate: the
    /// median absolute difference of neighbours, scaled to a standard deviation of independent
    /// normal noise. A few dips or steps leave it as it is. 0 with fewer than three intervals.
    pub fn noise_level(&self) -> f64 {
        let rates = self.rates();
        let median = noise::median(&rates);
        if rates.len() < 3 || median <= 0.0 {
            return 0.0;
        }
        noise::difference_sd(&rates, 1) / median
    }

    /// The intervals from `first` up to but not including `end`, both cut to what is there.
    pub fn slice(&self, first: usize, end: usize) -> Self {
        let end = end.min(self.points.len());
        Self { points: self.points[first.min(end)..end].to_vec() }
    }

    /// The same bytes in at most `cells` pieces of equal bytes. Within an interval bytes are taken
    /// to have moved evenly, pauses belong to the piece that they delay.
    pub fn by_equal_bytes(&self, cells: usize) -> Self {
        let total = self.total_bytes();
        if total == 0 || cells == 0 {
            return Self::default();
        }
        let end = self.end_ns();
        let mut walk = self.points.iter();
        let mut current = walk.next();
        let mut before = 0u64;
        let mut points = Vec::with_capacity(cells);
        let (mut cell_start, mut cell_bytes) = (self.start_ns(), 0u64);
        for cell in 1..=cells as u128 {
            let edge = (u128::from(total) * cell / cells as u128) as u64;
            while let Some(point) = current
                && before + point.bytes < edge
            {
                before += point.bytes;
                current = walk.next();
            }
            let at = match current {
                _ if cell == cells as u128 => end,
                Some(point) => {
                    point.start_ns + share(point.duration_ns, edge - before, point.bytes)
                }
                None => end,
            };
            // Pieces too small to have a length of their own wait for the next.
            if at > cell_start {
                points.push(Point {
                    start_ns: cell_start,
                    duration_ns: at - cell_start,
                    bytes: edge - cell_bytes,
                });
                (cell_start, cell_bytes) = (at, edge);
            }
        }
        if let Some(last) = points.last_mut() {
            last.bytes += total - cell_bytes;
        }
        Self { points }
    }

    /// The same bytes in pieces of `cell_ns` each (the last may be shorter), pauses counted as time
    /// without bytes. Within an interval bytes are taken to have moved evenly. A `cell_ns` of 0 is
    /// taken as 1 ns.
    pub fn by_equal_time(&self, cell_ns: u64) -> Self {
        let cell_ns = cell_ns.max(1);
        let (start, end) = (self.start_ns(), self.end_ns());
        let mut points = Vec::new();
        let (mut index, mut before, mut counted, mut at) = (0, 0u64, 0u64, start);
        while at < end {
            let edge = at.saturating_add(cell_ns).min(end);
            while index < self.points.len() && self.points[index].end_ns() <= edge {
                before += self.points[index].bytes;
                index += 1;
            }
            let moved = match self.points.get(index) {
                Some(p) if p.start_ns < edge => share(p.bytes, edge - p.start_ns, p.duration_ns),
                _ => 0,
            };
            points.push(Point {
                start_ns: at,
                duration_ns: edge - at,
                bytes: before + moved - counted,
            });
            (counted, at) = (before + moved, edge);
        }
        Self { points }
    }

    /// The window of this length that moved least, its edges at interval edges or between; None if
    /// the series is shorter. Pauses count as time without bytes.
    pub fn worst_window(&self, length_ns: u64) -> Option<WorstWindow> {
        let (start, end) = (self.start_ns(), self.end_ns());
        if length_ns == 0 || self.points.is_empty() || end - start < length_ns {
            return None;
        }
        // What a window moves is piecewise linear in where it lies, so the least is reached with
        // one of its edges on an edge of an interval.
        let mut edges: Vec<u64> =
            self.points.iter().flat_map(|p| [p.start_ns, p.end_ns()]).collect();
        edges.dedup();
        let starts = edges.iter().copied().filter(|&at| at <= end - length_ns);
        let ends = edges.iter().filter(|&&at| at >= start + length_ns).map(|at| at - length_ns);
        let (mut left, mut right) = (Cursor::new(self), Cursor::new(self));
        let mut candidates: Vec<u64> = starts.chain(ends).collect();
        candidates.sort_unstable();
        candidates
            .into_iter()
            .map(|at| (at, right.bytes_at(at + length_ns) - left.bytes_at(at)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(start_ns, bytes)| WorstWindow {
                length_ns,
                start_ns,
                rate: bytes.max(0.0) * 1e9 / length_ns as f64,
            })
    }

    /// Neighbouring intervals joined until at most about `cells` are left, each of nearly the same
    /// bytes. Every piece consists of whole intervals; with them comes where each begins (an
    /// index), and the end.
    pub(super) fn joined(&self, cells: usize) -> (Vec<Joined>, Vec<usize>) {
        let total = u128::from(self.total_bytes());
        let whole = self.points.len() <= cells || cells == 0;
        let (mut joined, mut starts) = (Vec::new(), vec![0]);
        let (mut sum, mut piece) = (0u128, Joined::default());
        for (index, point) in self.points.iter().enumerate() {
            sum += u128::from(point.bytes);
            piece.bytes += point.bytes;
            piece.duration_ns += point.duration_ns;
            let full = sum * cells as u128 >= total * (joined.len() as u128 + 1);
            if whole || full || index + 1 == self.points.len() {
                joined.push(std::mem::take(&mut piece));
                starts.push(index + 1);
            }
        }
        (joined, starts)
    }
}

/// Bytes and time of intervals joined.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Joined {
    pub bytes: u64,
    pub duration_ns: u64,
}

impl Joined {
    pub fn rate(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.duration_ns as f64
    }
}

/// `whole` x `part` / `of`, rounded down.
fn share(whole: u64, part: u64, of: u64) -> u64 {
    if of == 0 { 0 } else { (u128::from(whole) * u128::from(part) / u128::from(of)) as u64 }
}

/// Bytes moved up to an instant, for instants that never go back.
struct Cursor<'s> {
    points: &'s [Point],
    before: u64,
}

impl<'s> Cursor<'s> {
    fn new(series: &'s Series) -> Self {
        Self { points: &series.points, before: 0 }
    }

    fn bytes_at(&mut self, at_ns: u64) -> f64 {
        while let Some(first) = self.points.first()
            && first.end_ns() <= at_ns
        {
            self.before += first.bytes;
            self.points = &self.points[1..];
        }
        let part =
            self.points.first().filter(|p| p.start_ns < at_ns).map_or(0.0, |p| {
                p.bytes as f64 * ((at_ns - p.start_ns) as f64 / p.duration_ns as f64)
            });
        self.before as f64 + part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(seconds: &[u64]) -> Series {
        let points = seconds.iter().enumerate().map(|(i, &bytes)| Point {
            start_ns: i as u64 * 1_000_000_000,
            duration_ns: 1_000_000_000,
            bytes,
        });
        Series::new(points.collect()).unwrap()
    }

    #[test]
    fn intervals_that_are_no_series_are_refused_with_what_to_do() {
        let point = |start_ns, duration_ns, bytes| Point { start_ns, duration_ns, bytes };
        for (points, error) in [
            (vec![point(5, 0, 1)], SeriesError::NoDuration { index: 0 }),
            (vec![point(5, 5, 1), point(9, 5, 1)], SeriesError::Overlap { index: 1 }),
            (vec![point(u64::MAX, 5, 1)], SeriesError::Overflow { index: 0 }),
            (vec![point(0, 1, u64::MAX), point(1, 1, 1)], SeriesError::Overflow { index: 1 }),
        ] {
            let json = serde_json::to_string(&points).unwrap();
            assert!(error.to_string().contains(": "), "{error}");
            assert_eq!(Series::new(points), Err(error));
            assert!(serde_json::from_str::<Series>(&json).is_err());
        }
    }

    #[test]
    fn equal_bytes_cut_an_interval_where_it_reached_them() {
        let cut = series(&[100, 300, 0, 400]).by_equal_bytes(4);
        let bytes: Vec<u64> = cut.points().iter().map(|p| p.bytes).collect();
        assert_eq!(bytes, [200, 200, 200, 200]);
        assert_eq!(cut.points()[0].duration_ns, 1_333_333_333);
        // 400 bytes are reached at the end of the second interval; the pause delays the third.
        assert_eq!(cut.points()[1].end_ns(), 2_000_000_000);
        assert_eq!(cut.end_ns(), 4_000_000_000);
    }

    #[test]
    fn equal_times_count_pauses_as_time_without_bytes() {
        let point = |start_ns, duration_ns, bytes| Point { start_ns, duration_ns, bytes };
        let paused = Series::new(vec![point(0, 10, 100), point(30, 10, 50)]).unwrap();
        let bytes: Vec<u64> = paused.by_equal_time(20).points().iter().map(|p| p.bytes).collect();
        assert_eq!(bytes, [100, 50]);
        let bytes: Vec<u64> = paused.by_equal_time(15).points().iter().map(|p| p.bytes).collect();
        assert_eq!(bytes, [100, 0, 50]);
    }

    #[test]
    fn the_worst_window_lies_between_interval_edges_when_it_must() {
        let worst = series(&[10, 2, 0, 4, 10]).worst_window(1_500_000_000).unwrap();
        // All of the third interval and half of the second.
        assert_eq!(worst.start_ns, 1_500_000_000);
        assert!((worst.rate - 1.0 / 1.5).abs() < 1e-9, "{worst:?}");
        assert_eq!(series(&[10, 2]).worst_window(2_000_000_001), None);
        assert_eq!(series(&[10, 2]).worst_window(2_000_000_000).unwrap().rate, 6.0);
    }

    #[test]
    fn the_noise_level_does_not_see_a_dip_or_a_step() {
        let mut seconds = vec![1_000u64; 40];
        for (i, bytes) in seconds.iter_mut().enumerate() {
            *bytes += [0, 20, 5, 15][i % 4];
        }
        let quiet = series(&seconds).noise_level();
        seconds[10] = 0;
        seconds[20..].iter_mut().for_each(|bytes| *bytes /= 2);
        let disturbed = series(&seconds).noise_level();
        assert!(quiet > 0.005 && quiet < 0.03, "{quiet}");
        assert!((disturbed / quiet - 1.0).abs() < 0.5, "{quiet} {disturbed}");
    }

    #[test]
    fn joined_intervals_are_whole_and_keep_their_bytes() {
        let (cells, starts) = series(&[5, 5, 5, 5, 0, 0, 10, 10]).joined(4);
        let bytes: Vec<u64> = cells.iter().map(|c| c.bytes).collect();
        assert_eq!(bytes, [10, 10, 10, 10]);
        assert_eq!(starts, [0, 2, 4, 7, 8]);
    }
}
