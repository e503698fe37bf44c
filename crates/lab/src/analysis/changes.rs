//! Lasting changes of rate: where a series steps from one level to another, how surely, and how great
//! a step could have been missed.
//!
//! The analysis works on logarithms of rates, so that steps and noise are relative. An excursion
//! shorter than the shortest segment is a dip (see [`super::dips`]) and is replaced by its neighbours
//! first. PELT (Killick, Fearnhead, Eckley, "Optimal detection of changepoints with a linear
//! computational cost", JASA 107, 2012) proposes changes. Each must then pass Welch's test with the
//! long-run variance around it, corrected for the number of possible places, and reach the size that
//! is asked for.

use std::num::NonZero;

use pelt::{Pelt, SegmentCostFunction};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::noise::{self, Noise};
use super::series::{Joined, Series};

/// What counts as a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeOptions {
    /// The least step, as a share of the greater of the two levels. Default 0.05.
    pub step_min: f64,
    /// The least confidence, 0 to 1. Default 0.999. Flat synthetic series have a false change once in
    /// a thousand when their noise is white, and up to once in a hundred when it is correlated by
    /// 0.6 and there are fewer than 300 intervals to learn that from.
    pub confidence_min: f64,
    /// The shortest segment as a share of the pieces judged (of equal bytes when there are many).
    /// Default 0.01; never fewer than six pieces.
    pub segment_min_share: f64,
    /// Pieces judged at most: longer series are joined to this many of equal bytes, which bounds
    /// the time and the resolution. Default 1,000.
    pub cells_max: usize,
}

impl Default for ChangeOptions {
    fn default() -> Self {
        Self { step_min: 0.05, confidence_min: 0.999, segment_min_share: 0.01, cells_max: 1_000 }
    }
}

/// A step from one level to another. Bytes count from the start of the series; times are
/// nanoseconds of the run's clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The first interval after it, from 0.
    pub index: usize,
    /// The intervals that may straddle it, at 95 %: from the first, up to but not including the second.
    pub index_range: (usize, usize),
    /// Bytes before it.
    pub bytes: u64,
    /// Least and greatest bytes before it, at 95 %.
    pub bytes_range: (u64, u64),
    /// When.
    pub at_ns: u64,
    /// Earliest and latest, at 95 %.
    pub ns_range: (u64, u64),
    /// Level before, in bytes a second.
    pub before: f64,
    /// Level after, in bytes a second.
    pub after: f64,
    /// Probability that noise alone does not make such a step anywhere in the series; 0.9999 at most,
    /// because noise is not known any better.
    pub confidence: f64,
}

impl Change {
    /// The step as a share of the level before: -0.5 when the rate halves.
    pub fn relative(&self) -> f64 {
        if self.before > 0.0 { self.after / self.before - 1.0 } else { f64::INFINITY }
    }

    /// Whether the rate fell.
    pub fn is_drop(&self) -> bool {
        self.after < self.before
    }
}

/// Intervals of one level, between two changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Its first interval, from 0.
    pub first: usize,
    /// The interval after its last.
    pub end: usize,
    /// Bytes before it and at its end.
    pub bytes: (u64, u64),
    /// When it began and ended, in nanoseconds of the run's clock.
    pub ns: (u64, u64),
    /// The rate in the median of its time, which dips leave alone, in bytes a second.
    pub level: f64,
    /// All its bytes over all its time, dips counted, in bytes a second.
    pub mean: f64,
    /// The greatest lasting step, as a share of the level, that could hide in the middle eight
    /// tenths of it once in twenty; None if it is too short for any to show.
    pub step_missed_max: Option<f64>,
}

/// A series cut into levels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Segmentation {
    /// The levels in order; they cover the series. Empty for an empty series.
    pub segments: Vec<Segment>,
    /// The changes between them, one fewer.
    pub changes: Vec<Change>,
    /// Standard deviation of the pieces judged about their level, relative.
    pub noise: f64,
    /// How many pieces carry as much as an independent one: 1 for white noise.
    pub memory: f64,
    /// Bytes that a level at the beginning must hold to be told from noise: a smaller cache is not seen.
    #[serde(default)]
    pub shortest_bytes: u64,
}

impl Segmentation {
    /// Takes over the drop that a close look at the beginning has found, if it leads to the level that the first segment has.
    fn begin_with(&mut self, close: Self, series: &Series, options: &ChangeOptions) {
        let ([change], [before, after]) = (close.changes.as_slice(), close.segments.as_slice())
        else {
            return;
        };
        let rest = &mut self.segments[0];
        if !change.is_drop()
            || step(change.before, change.after) < BEGINNING_STEP_MIN
            || step(after.level, rest.level) >= options.step_min
        {
            return;
        }
        (rest.first, rest.bytes.0, rest.ns.0) = (change.index, change.bytes, change.at_ns);
        rest.mean = series.slice(rest.first, rest.end).mean_rate();
        self.segments.insert(0, before.clone());
        self.changes.insert(0, change.clone());
    }

    /// Whether the drop of this number ends lower than everything between it and the change before it of number `after`: a level that
    /// was there already is nothing new.
    pub fn is_new_low(&self, change: usize, after: usize) -> bool {
        let middle = self.middle(change);
        let between = self.segments.get(after + 1..=change);
        between.is_some_and(|between| between.iter().all(|segment| segment.mean > middle))
    }

    /// The first change behind a drop that brings the rate back, nearer to the level before it; None if it lasts.
    pub fn back_after(&self, change: usize) -> Option<&Change> {
        let middle = self.middle(change);
        let behind = self.segments.iter().enumerate().skip(change + 2);
        let (back, _) = behind.into_iter().find(|(_, segment)| segment.mean >= middle)?;
        self.changes.get(back - 1)
    }

    fn middle(&self, change: usize) -> f64 {
        f64::midpoint(self.changes[change].before, self.changes[change].after)
    }
}

/// A segment has at least this many pieces: fewer can't be told from noise with a memory.
const SEGMENT_CELLS_MIN: usize = 6;
/// Penalty of a change in units of the long-run variance x ln n. A change of the mean costs two
/// parameters (2, as the Bayesian information criterion counts); the third pays for estimating the
/// long-run variance.
const PENALTY: f64 = 3.0;
/// Noise is taken to be at least this share of a level: simulated series may have none at all.
const NOISE_MIN: f64 = 0.001;
/// Pieces are joined, as long as there are enough, when more than this share of them differs from the
/// next by more than a factor of two.
const LEAPS_MAX: f64 = 0.2;
/// Joining noisy pieces leaves at least this many, so that a place is known within 1 % of the bytes.
const CELLS_JOINED_MIN: usize = 100;
/// A rate below this share of the median counts as this share, so that it has a logarithm.
const RATE_MIN: f64 = 0.001;
/// Values further than this many deviations from their neighbours are strays.
const STRAY_SD: f64 = 4.0;
/// Half-width of the 95 % range in units of the long-run variance: the quantile of the likelihood
/// ratio of a location (Hansen, "Sample splitting and threshold estimation", Econometrica 68, 2000,
/// table I).
const LOCATION_QUANTILE: f64 = 7.35;
/// No more is claimed.
const CONFIDENCE_MAX: f64 = 0.9999;
/// A segment with less than this share of bytes and [`EXCURSION_TIME_MAX`] of time between two like
/// levels is a dip or a burst.
const EXCURSION_BYTES_MAX: f64 = 0.02;
/// See [`EXCURSION_BYTES_MAX`].
const EXCURSION_TIME_MAX: f64 = 0.10;

/// The beginning of a series that is looked at closely if nothing changes there otherwise, as a share of its bytes, and the least
/// step, as a share of the greater level, that is taken for one there. A small cache is full within it.
const BEGINNING_SHARE: f64 = 0.1;
const BEGINNING_STEP_MIN: f64 = 0.1;

/// Cuts a series into levels.
pub fn find(series: &Series, options: &ChangeOptions) -> Segmentation {
    let mut found = find_at_once(series, options);
    let bytes = series.cumulative_bytes();
    let close = (BEGINNING_SHARE * series.total_bytes() as f64) as u64;
    let end = bytes.partition_point(|&before| before < close);
    let is_close = end >= 4 * SEGMENT_CELLS_MIN;
    // Changes are proposed on a grid as wide as the shortest segment, so that one of twice its length is sure to have a place on it.
    let share = 2.0 * SEGMENT_CELLS_MIN as f64 / series.len().max(1) as f64;
    let share = if is_close { share } else { share.max(2.0 * options.segment_min_share) };
    found.shortest_bytes = (share * series.total_bytes() as f64).ceil() as u64;
    if is_close && found.segments.first().is_some_and(|one| one.end > end) {
        found.begin_with(find_at_once(&series.slice(0, end), options), series, options);
    }
    found
}

fn find_at_once(series: &Series, options: &ChangeOptions) -> Segmentation {
    if series.is_empty() {
        return Segmentation::default();
    }
    let mut judged = Judged::new(series, options, options.cells_max);
    // Rates that leap between nothing and much (a limit enforced in bursts) have no useful logarithm:
    // pieces are joined until they are of one kind.
    while judged.leaps() > LEAPS_MAX && judged.len() >= 2 * CELLS_JOINED_MIN {
        judged = Judged::new(series, options, judged.len() / 2);
    }
    let mut cuts = judged.propose();
    judged.keep_the_sure(&mut cuts);
    if judged.drop_excursions(&mut cuts) {
        judged.keep_the_sure(&mut cuts);
    }
    judged.segmentation(series, &cuts)
}

/// What PELT and the tests work on: one value for each piece of the series.
struct Judged<'o> {
    options: &'o ChangeOptions,
    cells: Vec<Joined>,
    /// First interval of each cell, and the end.
    starts: Vec<usize>,
    /// Logarithms of the rates without strays.
    values: Vec<f64>,
    /// Sums of `values` before each cell, and at the end; of values less their mean.
    sums: Vec<f64>,
    noise: Noise,
    cells_min: usize,
}

impl<'o> Judged<'o> {
    fn new(series: &Series, options: &'o ChangeOptions, cells_max: usize) -> Self {
        let (cells, starts) = series.joined(cells_max.max(4 * SEGMENT_CELLS_MIN));
        let cells_min =
            SEGMENT_CELLS_MIN.max((options.segment_min_share * cells.len() as f64).ceil() as usize);
        let moving: Vec<f64> = cells.iter().map(Joined::rate).filter(|r| *r > 0.0).collect();
        let least = noise::median(&moving) * RATE_MIN;
        let logs: Vec<f64> = cells
            .iter()
            .map(|cell| if least > 0.0 { cell.rate().max(least).ln() } else { 0.0 })
            .collect();
        let mut values = noise::without_strays(&logs, 2 * cells_min - 1, STRAY_SD, NOISE_MIN);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter_mut().for_each(|v| *v -= mean);
        let mut sum = 0.0;
        let sums = std::iter::once(0.0)
            .chain(values.iter().map(|v| {
                sum += v;
                sum
            }))
            .collect();
        let noise = noise::estimate(&values, NOISE_MIN);
        Self { options, cells, starts, values, sums, noise, cells_min }
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    /// The share of neighbours that differ by more than a factor of two.
    fn leaps(&self) -> f64 {
        let leaps = |pair: &&[Joined]| {
            let (a, b) = (pair[0].rate(), pair[1].rate());
            a.max(b) > 2.0 * a.min(b)
        };
        self.cells.windows(2).filter(leaps).count() as f64 / self.len() as f64
    }

    /// Penalty of a change, in squared units of the long-run deviation.
    fn penalty(&self) -> f64 {
        PENALTY * (self.len() as f64).ln()
    }

    /// Where changes may be: PELT on a grid as wide as the shortest segment, which is what bounds
    /// its time. The places are made exact later.
    fn propose(&self) -> Vec<usize> {
        if self.len() < 2 * self.cells_min {
            return Vec::new();
        }
        let grid = NonZero::new(self.cells_min).unwrap_or(NonZero::<usize>::MIN);
        let penalty = self.penalty() * self.noise.long_run_sd.powi(2);
        let mut cuts = Pelt::new()
            .with_segment_cost_function(SegmentCostFunction::L2)
            .with_jump(grid)
            .with_minimum_segment_length(grid)
            .predict(&self.values[..], penalty)
            // It fails only on fewer points than a segment has, which was excluded.
            .unwrap_or_default();
        // The end of the series is no change, and the last segment may have come out short.
        cuts.retain(|&cut| cut > 0 && cut + self.cells_min <= self.len());
        cuts
    }

    /// Moves each change to where it fits best and drops the one that explains least, until all are
    /// sure, great enough, and far enough apart.
    fn keep_the_sure(&self, cuts: &mut Vec<usize>) {
        loop {
            for _ in 0..2 {
                for i in 0..cuts.len() {
                    let (start, end) = self.around(cuts, i);
                    cuts[i] = self.best_cut(start, end).unwrap_or(cuts[i]);
                }
            }
            let worst = (0..cuts.len())
                .map(|i| (i, self.test(cuts, i)))
                .filter(|(i, test)| !test.passes(self.options) || self.is_close(cuts, *i))
                .min_by(|a, b| a.1.statistic.total_cmp(&b.1.statistic));
            match worst {
                Some((i, _)) => cuts.remove(i),
                None => return,
            };
        }
    }

    /// Whether a segment beside a change is shorter than allowed. While changes are moved they may
    /// come close: two on either side of a step, where the grid put them, must be able to meet.
    fn is_close(&self, cuts: &[usize], i: usize) -> bool {
        let (start, end) = self.around(cuts, i);
        cuts[i] - start < self.cells_min || end - cuts[i] < self.cells_min
    }

    /// Drops pairs of changes around a short segment between two like levels. Whether any were.
    fn drop_excursions(&self, cuts: &mut Vec<usize>) -> bool {
        let bytes = |from: usize, to: usize| -> f64 {
            self.cells[from..to].iter().map(|c| c.bytes as f64).sum()
        };
        let time = |from: usize, to: usize| -> f64 {
            self.cells[from..to].iter().map(|c| c.duration_ns as f64).sum()
        };
        let (all_bytes, all_time) = (bytes(0, self.len()), time(0, self.len()));
        let before = cuts.len();
        let mut i = 0;
        while i + 1 < cuts.len() {
            let (start, _) = self.around(cuts, i);
            let (_, end) = self.around(cuts, i + 1);
            let (from, to) = (cuts[i], cuts[i + 1]);
            let short = bytes(from, to) <= EXCURSION_BYTES_MAX * all_bytes
                && time(from, to) <= EXCURSION_TIME_MAX * all_time;
            let alike = step(self.level(start, from), self.level(to, end)) < self.options.step_min;
            if short && alike {
                cuts.drain(i..=i + 1);
            } else {
                i += 1;
            }
        }
        cuts.len() < before
    }

    /// The bounds of the two segments beside a change.
    fn around(&self, cuts: &[usize], i: usize) -> (usize, usize) {
        let start = if i == 0 { 0 } else { cuts[i - 1] };
        (start, cuts.get(i + 1).copied().unwrap_or(self.len()))
    }

    fn mean(&self, from: usize, to: usize) -> f64 {
        (self.sums[to] - self.sums[from]) / (to - from) as f64
    }

    /// How much of the squared deviation in `start..end` a cut explains.
    fn gain(&self, start: usize, cut: usize, end: usize) -> f64 {
        let (left, right) = ((cut - start) as f64, (end - cut) as f64);
        let difference = self.mean(start, cut) - self.mean(cut, end);
        difference * difference * left * right / (left + right)
    }

    fn best_cut(&self, start: usize, end: usize) -> Option<usize> {
        // The ends of the series don't move.
        let first = if start == 0 { self.cells_min } else { start + 1 };
        let last = if end == self.len() { end - self.cells_min } else { end - 1 };
        (first..=last)
            .max_by(|&a, &b| self.gain(start, a, end).total_cmp(&self.gain(start, b, end)))
    }

    /// The median rate of a range's time, in bytes a second.
    fn level(&self, from: usize, to: usize) -> f64 {
        let mut pairs: Vec<(f64, u64)> =
            self.cells[from..to].iter().map(|c| (c.rate(), c.duration_ns)).collect();
        noise::weighted_median(&mut pairs)
    }

    /// Welch's test of the two segments beside a change, with long-run variances.
    fn test(&self, cuts: &[usize], i: usize) -> Test {
        let (start, end) = self.around(cuts, i);
        let cut = cuts[i];
        let both = self.local_variance(start, end);
        let side = |from: usize, to: usize| {
            // Too few values say nothing about their own noise.
            let variance = if to - from < 2 * SEGMENT_CELLS_MIN {
                both
            } else {
                self.local_variance(from, to)
            };
            variance / (to - from) as f64
        };
        let error = (side(start, cut) + side(cut, end)).sqrt();
        let statistic = (self.mean(cut, end) - self.mean(start, cut)).abs() / error;
        let freedom = ((end - start) as f64 / self.noise.memory() - 2.0).max(3.0);
        let tail = StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |t| 2.0 * t.sf(statistic));
        let confidence = (1.0 - tail * self.places()).clamp(0.0, CONFIDENCE_MAX);
        let step = step(self.level(start, cut), self.level(cut, end));
        Test { statistic, confidence, step }
    }

    /// Independent places where a change could have been.
    fn places(&self) -> f64 {
        (self.len() as f64 / self.noise.memory()).max(1.0)
    }

    /// The long-run variance of a range: its own noise, with the memory of the whole series where
    /// it is too short to show its own.
    fn local_variance(&self, from: usize, to: usize) -> f64 {
        let values = &self.values[from..to];
        let near = noise::mean_square_difference(values, 1).max(NOISE_MIN * NOISE_MIN);
        let own = if values.len() >= 200 {
            noise::estimate(values, NOISE_MIN).long_run_sd.powi(2)
        } else {
            0.0
        };
        own.max(near * self.noise.inflation)
    }

    /// See [`Segment::step_missed_max`].
    fn step_missed_max(&self, from: usize, to: usize) -> Option<f64> {
        let n = (to - from) as f64;
        let left = (n / 10.0).max(self.cells_min as f64);
        let right = n - left;
        if right < left {
            return None;
        }
        let normal = Normal::standard();
        let error = (self.local_variance(from, to) * (1.0 / left + 1.0 / right)).sqrt();
        let tail = (1.0 - self.options.confidence_min) / (2.0 * self.places());
        let needed = normal.inverse_cdf(1.0 - tail).max(self.penalty().sqrt()) * error;
        let power = normal.inverse_cdf(0.95) * error;
        let least = -(1.0 - self.options.step_min).ln();
        Some(1.0 - (-(needed.max(least) + power)).exp())
    }

    /// Cells between which a change may lie as well as at its place.
    fn location_range(&self, start: usize, cut: usize, end: usize) -> (usize, usize) {
        let enough =
            self.gain(start, cut, end) - LOCATION_QUANTILE * self.local_variance(start, end);
        let fits = |at: &usize| self.gain(start, *at, end) >= enough;
        let low = (start + 1..=cut).rev().take_while(fits).last().unwrap_or(cut);
        let high = (cut..end).take_while(fits).last().unwrap_or(cut);
        // The step may have come at any time in the cells beside the edge.
        (low - 1, high + 1)
    }

    fn segmentation(&self, series: &Series, cuts: &[usize]) -> Segmentation {
        let bytes = series.cumulative_bytes();
        let points = series.points();
        let bytes_at = |cell: usize| bytes[self.starts[cell]];
        let ns_at = |cell: usize| {
            points.get(self.starts[cell]).map_or_else(|| series.end_ns(), |p| p.start_ns)
        };
        let bounds: Vec<usize> =
            std::iter::once(0).chain(cuts.iter().copied()).chain([self.len()]).collect();
        let segments: Vec<Segment> = bounds
            .windows(2)
            .map(|pair| {
                let (from, to) = (pair[0], pair[1]);
                let (first, end) = (self.starts[from], self.starts[to]);
                let cells = &self.cells[from..to];
                Segment {
                    first,
                    end,
                    bytes: (bytes[first], bytes[end]),
                    ns: (points[first].start_ns, points[end - 1].end_ns()),
                    level: self.level(from, to),
                    mean: cells.iter().map(|c| c.bytes).sum::<u64>() as f64 * 1e9
                        / cells.iter().map(|c| c.duration_ns).sum::<u64>() as f64,
                    step_missed_max: self.step_missed_max(from, to),
                }
            })
            .collect();
        let changes = (0..cuts.len())
            .map(|i| {
                let (start, end) = self.around(cuts, i);
                let (low, high) = self.location_range(start, cuts[i], end);
                Change {
                    index: self.starts[cuts[i]],
                    index_range: (self.starts[low], self.starts[high]),
                    bytes: bytes_at(cuts[i]),
                    bytes_range: (bytes_at(low), bytes_at(high)),
                    at_ns: ns_at(cuts[i]),
                    ns_range: (ns_at(low), ns_at(high)),
                    before: segments[i].level,
                    after: segments[i + 1].level,
                    confidence: self.test(cuts, i).confidence,
                }
            })
            .collect();
        let (noise, memory) = (self.noise.sd, self.noise.memory());
        Segmentation { segments, changes, noise, memory, shortest_bytes: 0 }
    }
}

struct Test {
    statistic: f64,
    confidence: f64,
    step: f64,
}

impl Test {
    fn passes(&self, options: &ChangeOptions) -> bool {
        self.confidence >= options.confidence_min && self.step >= options.step_min
    }
}

/// How far two levels are apart, as a share of the greater.
fn step(a: f64, b: f64) -> f64 {
    let greater = a.max(b);
    if greater > 0.0 { (a - b).abs() / greater } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Point;

    fn series(rates: impl IntoIterator<Item = u64>) -> Series {
        let points = rates.into_iter().enumerate().map(|(i, bytes)| Point {
            start_ns: i as u64 * 1_000_000_000,
            duration_ns: 1_000_000_000,
            bytes,
        });
        Series::new(points.collect()).unwrap()
    }

    #[test]
    fn a_drop_in_the_first_hundredth_is_found_where_intervals_are_short_enough() {
        let wave = |i: u64| i * 7919 % 13;
        let rates =
            |cached: u64| (0..2000).map(move |i| if i < cached { 480 } else { 400 } + wave(i));
        let found = find(&series(rates(12)), &ChangeOptions::default());
        let places: Vec<usize> = found.changes.iter().map(|change| change.index).collect();
        assert_eq!(places, [12]);
        assert_eq!((found.segments[0].end, found.segments[1].first), (12, 12));
        assert!((found.segments[1].mean / 406.0 - 1.0).abs() < 0.01, "{:?}", found.segments[1]);
        assert_eq!(find(&series(rates(0)), &ChangeOptions::default()).changes, []);
        // That is about the shortest level, as it says.
        assert!(
            (0.8..1.0).contains(&(found.shortest_bytes as f64 / found.changes[0].bytes as f64))
        );
        assert_eq!(find(&series(rates(3)), &ChangeOptions::default()).changes, []);
    }

    #[test]
    fn nothing_and_stillness_and_a_few_intervals_have_no_changes() {
        let options = ChangeOptions::default();
        assert_eq!(find(&Series::default(), &options), Segmentation::default());
        for still in [series([0; 100]), series([7]), series([9, 1, 9, 1, 9])] {
            let found = find(&still, &options);
            assert_eq!(found.changes, []);
            assert_eq!(found.segments.len(), 1);
            assert_eq!(found.segments[0].bytes.1, still.total_bytes());
        }
        assert_eq!(find(&series([7]), &options).segments[0].step_missed_max, None);
    }

    #[test]
    fn a_step_without_noise_is_found_at_its_interval() {
        let found = find(
            &series((0..100).map(|i| if i < 37 { 2_000 } else { 1_000 })),
            &ChangeOptions::default(),
        );
        assert_eq!(found.changes.len(), 1);
        let change = &found.changes[0];
        assert_eq!((change.index, change.bytes), (37, 74_000));
        assert_eq!((change.before, change.after), (2_000.0, 1_000.0));
        assert_eq!(change.relative(), -0.5);
        assert!(change.bytes_range.0 <= 74_000 && change.bytes_range.1 >= 74_000);
        assert!(change.confidence > 0.99);
    }

    #[test]
    fn a_fall_to_nothing_and_back_is_two_changes_when_it_lasts() {
        let found = find(
            &series((0..300).map(|i| if (100..200).contains(&i) { 0 } else { 500 })),
            &ChangeOptions::default(),
        );
        let places: Vec<usize> = found.changes.iter().map(|c| c.index).collect();
        assert_eq!(places, [100, 200]);
        assert_eq!(found.segments[1].level, 0.0);
        assert_eq!(found.changes[1].relative(), f64::INFINITY);
    }

    #[test]
    fn a_short_fall_and_return_is_left_to_the_dips() {
        let found = find(
            &series((0..1_000).map(|i| if (400..415).contains(&i) { 300 } else { 1_000 })),
            &ChangeOptions::default(),
        );
        assert_eq!(found.changes, []);
    }
}
