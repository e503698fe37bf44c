//! Dips: short falls below the level that a drive otherwise holds, and whether they come regularly.
//!
//! A dip is judged against the level of its segment (see [`super::changes`]), and only counts when
//! noise of that segment's size would not make it once in a thousand series.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use super::changes::{Segment, Segmentation};
use super::fill::Pass;
use super::noise;
use super::series::Series;

/// What counts as a dip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DipOptions {
    /// A dip's rate is below this share of the level. Default 0.8.
    pub below: f64,
}

impl Default for DipOptions {
    fn default() -> Self {
        Self { below: 0.8 }
    }
}

/// Neighbouring intervals below the threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dip {
    /// Its first interval, from 0.
    pub first: usize,
    /// The interval after its last.
    pub end: usize,
    /// When it began, in nanoseconds of the run's clock.
    pub start_ns: u64,
    /// How long it lasted, in nanoseconds; intervals are its resolution.
    pub length_ns: u64,
    /// Bytes moved before it.
    pub at_bytes: u64,
    /// Its lowest rate as a share of the level.
    pub lowest_share: f64,
    /// Bytes that the level would have moved and the dip did not.
    pub bytes_missed: u64,
}

/// How dips come one after another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rhythm {
    /// The median time from one dip's start to the next, in nanoseconds.
    pub period_ns: u64,
    /// 1 when all these times are the same, 0 when they scatter as those of independent events do
    /// or more: one less their scatter (from the first decile to the last, scaled to a standard
    /// deviation) over the median. Among many dips a few missing ones do not spoil it.
    pub regularity: f64,
}

impl Rhythm {
    /// Whether the dips are best called periodic.
    pub fn is_periodic(&self) -> bool {
        self.regularity >= REGULARITY_MIN
    }
}

/// Dips in few numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DipSummary {
    /// Number of them.
    pub count: usize,
    /// The median of their lowest rates as shares of the level; None without dips.
    pub lowest_share_median: Option<f64>,
    /// The deepest of all; None without dips.
    pub lowest_share_min: Option<f64>,
    /// Their median length in nanoseconds; None without dips.
    pub length_median_ns: Option<u64>,
    /// Their rhythm; None with fewer than four.
    pub rhythm: Option<Rhythm>,
    /// The share of time spent in them.
    pub time_share: f64,
    /// Bytes that they cost.
    pub bytes_missed: u64,
    /// Mean absolute deviation of the rate from the mean of its segment, relative, weighted by time.
    pub deviation_mean: f64,
    /// Standard deviation of the rate about the mean of its segment, relative, weighted by time.
    pub deviation_standard: f64,
    /// The share of the level that a rate had to fall below: as asked for, or lower where noise is
    /// so great that it would have looked like dips.
    pub threshold: f64,
}

/// Every dip, and the summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dips {
    /// In order of time.
    pub dips: Vec<Dip>,
    /// Of all of them.
    pub summary: DipSummary,
}

/// Regularity from which dips are called periodic.
const REGULARITY_MIN: f64 = 0.7;
/// Dips that noise may make in a series, on average.
const FALSE_DIPS: f64 = 0.001;
/// A rate below this share of the level is a dip whatever the noise: nothing moved.
const STILL: f64 = 0.05;
/// Segments shorter than this many intervals say too little about their own noise.
const SEGMENT_INTERVALS_MIN: usize = 50;
/// From the first decile to the last there are this many standard deviations of a normal distribution.
const DECILES_TO_SD: f64 = 2.563;
/// A rhythm takes at least this many dips.
const RHYTHM_DIPS_MIN: usize = 4;

/// The dips of a series that was cut into levels.
pub fn find(series: &Series, segmentation: &Segmentation, options: &DipOptions) -> Dips {
    let lines = Lines::new(series, segmentation, options);
    let points = series.points();
    let bytes = series.cumulative_bytes();
    let mut dips = Vec::new();
    let mut first = 0;
    while first < points.len() {
        if !lines.is_below(first, points[first].rate()) {
            first += 1;
            continue;
        }
        let mut end = first + 1;
        while end < points.len() && lines.is_below(end, points[end].rate()) {
            end += 1;
        }
        let inside = (first..end).map(|i| (points[i], lines.levels[i]));
        dips.push(Dip {
            first,
            end,
            start_ns: points[first].start_ns,
            length_ns: points[end - 1].end_ns() - points[first].start_ns,
            at_bytes: bytes[first],
            lowest_share: inside.clone().map(|(p, l)| p.rate() / l).fold(f64::INFINITY, f64::min),
            bytes_missed: inside
                .map(|(p, l)| (l * p.duration_ns as f64 / 1e9 - p.bytes as f64).max(0.0))
                .sum::<f64>()
                .round() as u64,
        });
        first = end;
    }
    let summary = summarize(series, &segmentation.segments, &dips, lines.threshold);
    Dips { dips, summary }
}

/// The dips of some of the segments, summed up: `dips` are all dips of the series.
pub fn summarize_segments(
    series: &Series,
    segments: &[Segment],
    dips: &[Dip],
    threshold: f64,
) -> DipSummary {
    let inside: Vec<Dip> = dips
        .iter()
        .filter(|dip| segments.iter().any(|s| (s.first..s.end).contains(&dip.first)))
        .cloned()
        .collect();
    summarize(series, segments, &inside, threshold)
}

/// The time that dips cost a writer. If bytes written without a pause would take `t` seconds at the level, they take at most
/// `(1 + share) * t + together_s`. Network calculus calls such a bound a rate-latency service curve (Le Boudec and Thiran, 2001).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DipCost {
    /// Time that dips close together cost, beyond the share, in seconds.
    pub together_s: f64,
    /// Time that dips cost over a whole pass, as a share of what its bytes take at the level.
    pub share: f64,
}

/// What the dips of passes cost: of the pass in which they cost most. None without dips.
pub fn cost(passes: &[Pass]) -> Option<DipCost> {
    let all: Vec<(Vec<Lost>, f64)> = passes.iter().map(lost).collect();
    let share = all.iter().map(|(lost, even_s)| {
        if *even_s > 0.0 { lost.iter().map(|dip| dip.lost_s).sum::<f64>() / even_s } else { 0.0 }
    });
    let share = share.fold(0.0, f64::max);
    let together_s = all.iter().map(|(lost, _)| together(lost, share)).fold(0.0, f64::max);
    (together_s > 0.0).then_some(DipCost { together_s, share })
}

/// Time that one dip cost.
struct Lost {
    /// Time from the end of the dip before to its start, in seconds.
    gap_s: f64,
    /// Its length, less the time that its bytes take at the level, in seconds.
    lost_s: f64,
}

/// What each dip of a pass cost, and the time that the pass took without that.
fn lost(pass: &Pass) -> (Vec<Lost>, f64) {
    let segments = &pass.segmentation.segments;
    let mut ended_ns = pass.start_ns;
    let mut lost = Vec::new();
    for dip in &pass.dips.dips {
        let level = segments.iter().find(|s| (s.first..s.end).contains(&dip.first));
        let Some(level) = level.map(|s| s.level).filter(|level| *level > 0.0) else { continue };
        lost.push(Lost {
            gap_s: dip.start_ns.saturating_sub(ended_ns) as f64 / 1e9,
            lost_s: dip.bytes_missed as f64 / level,
        });
        ended_ns = dip.start_ns + dip.length_ns;
    }
    let whole_s = if pass.mean_rate > 0.0 { pass.total_bytes as f64 / pass.mean_rate } else { 0.0 };
    let even_s = whole_s - lost.iter().map(|dip| dip.lost_s).sum::<f64>();
    (lost, even_s)
}

/// The most that dips in a row cost beyond their share of the time between them.
fn together(lost: &[Lost], share: f64) -> f64 {
    let (mut now, mut most) = (0.0, 0.0);
    for dip in lost {
        now = f64::max(now - share * dip.gap_s, 0.0) + dip.lost_s;
        most = f64::max(most, now);
    }
    most
}

/// The line below which each interval is in a dip.
struct Lines {
    levels: Vec<f64>,
    lines: Vec<f64>,
    threshold: f64,
}

impl Lines {
    fn new(series: &Series, segmentation: &Segmentation, options: &DipOptions) -> Self {
        let rates = series.rates();
        let (mut levels, mut shares) = (vec![0.0; rates.len()], vec![0.0; rates.len()]);
        let relative = |segment: &Segment| -> Vec<f64> {
            rates[segment.first..segment.end].iter().map(|rate| rate / segment.level).collect()
        };
        let moving = || segmentation.segments.iter().filter(|s| s.level > 0.0);
        let whole: Vec<f64> = moving().flat_map(relative).collect();
        let whole_sd = noise::upper_sd(&whole);
        // Where the standard deviation is itself uncertain, it is taken to be greater.
        let uncertain = |n: usize| 1.0 + 2.0 / (n as f64).sqrt();
        let tail = (FALSE_DIPS / rates.len().max(1) as f64).min(0.5);
        let quantile = Normal::standard().inverse_cdf(1.0 - tail);
        let mut threshold = options.below;
        for segment in moving() {
            let n = segment.end - segment.first;
            let mut sd = noise::upper_sd(&relative(segment)) * uncertain(n);
            if n < SEGMENT_INTERVALS_MIN {
                sd = sd.max(whole_sd * uncertain(whole.len()));
            }
            let share = (1.0 - quantile * sd).max(STILL).min(options.below);
            threshold = threshold.min(share);
            levels[segment.first..segment.end].fill(segment.level);
            shares[segment.first..segment.end].fill(share);
        }
        let mut lines: Vec<f64> = levels.iter().zip(&shares).map(|(l, s)| l * s).collect();
        // An interval that may straddle a change is only in a dip if it is below both levels' lines.
        let plain = lines.clone();
        for change in &segmentation.changes {
            let (low, high) = change.index_range;
            let line = plain[change.index - 1].min(plain[change.index]);
            lines[low..high].iter_mut().for_each(|l| *l = l.min(line));
        }
        Self { levels, lines, threshold }
    }

    fn is_below(&self, index: usize, rate: f64) -> bool {
        rate < self.lines[index]
    }
}

fn summarize(series: &Series, segments: &[Segment], dips: &[Dip], threshold: f64) -> DipSummary {
    let points = series.points();
    let (mut time, mut absolute, mut square) = (0.0, 0.0, 0.0);
    for segment in segments {
        for point in &points[segment.first..segment.end] {
            let weight = point.duration_ns as f64;
            time += weight;
            if segment.mean > 0.0 {
                let deviation = point.rate() / segment.mean - 1.0;
                absolute += weight * deviation.abs();
                square += weight * deviation * deviation;
            }
        }
    }
    let over_time = |sum: f64| if time > 0.0 { sum / time } else { 0.0 };
    let of = |value: fn(&Dip) -> f64| dips.iter().map(value).collect::<Vec<f64>>();
    let depths = of(|dip| dip.lowest_share);
    let some = |value: f64| (!dips.is_empty()).then_some(value);
    DipSummary {
        count: dips.len(),
        lowest_share_median: some(noise::median(&depths)),
        lowest_share_min: depths.iter().copied().min_by(f64::total_cmp),
        length_median_ns: some(noise::median(&of(|dip| dip.length_ns as f64))).map(|ns| ns as u64),
        rhythm: rhythm(dips),
        time_share: over_time(of(|dip| dip.length_ns as f64).iter().sum()),
        bytes_missed: dips.iter().map(|dip| dip.bytes_missed).sum(),
        deviation_mean: over_time(absolute),
        deviation_standard: over_time(square).sqrt(),
        threshold,
    }
}

fn rhythm(dips: &[Dip]) -> Option<Rhythm> {
    if dips.len() < RHYTHM_DIPS_MIN {
        return None;
    }
    let mut gaps: Vec<f64> =
        dips.windows(2).map(|pair| (pair[1].start_ns - pair[0].start_ns) as f64).collect();
    gaps.sort_unstable_by(f64::total_cmp);
    let period = noise::median(&gaps);
    let tenth = gaps.len() / 10;
    let scatter = (gaps[gaps.len() - 1 - tenth] - gaps[tenth]) / DECILES_TO_SD / period;
    Some(Rhythm { period_ns: period as u64, regularity: (1.0 - scatter).max(0.0) })
}
