//! A sustained write from empty to full and over again: the thresholds that a drive passes.
//!
//! The empty pass may show (a) full speed until the cache is full, (b) the native rate, (c) a fill level
//! from which the cache shrinks; the second pass (d) whether overwriting stale data is slower. If a phase
//! is absent, the answer says so, with the largest step that the analysis could have missed.

mod answer;

use serde::{Deserialize, Serialize};

use super::cause::{Attribution, Cause, Sample, Samples};
use super::changes::{self, Change, ChangeOptions, Segment, Segmentation};
use super::compare::{self, Comparison, ComparisonOptions, ComparisonVerdict};
use super::dips::{self, DipOptions, DipSummary, Dips};
use super::series::{Series, WorstWindow};
use crate::finding::Finding;

/// What a fill measured.
#[derive(Clone, Debug)]
pub struct FillInput<'a> {
    /// Bytes that the drive (or the part of it that was written) holds.
    pub capacity_bytes: u64,
    /// Writing the empty drive.
    pub empty: &'a Series,
    /// Writing over it, if that was done.
    pub overwrite: Option<&'a Series>,
    /// What drive and link said meanwhile, on the same clock.
    pub samples: &'a [Sample],
    /// The drive's own warning temperature in degrees Celsius, if known.
    pub warning_celsius: Option<f64>,
    /// What counts as a change.
    pub changes: ChangeOptions,
    /// What counts as a dip.
    pub dips: DipOptions,
}

impl<'a> FillInput<'a> {
    /// An empty pass alone, with default options.
    pub fn new(capacity_bytes: u64, empty: &'a Series) -> Self {
        Self {
            capacity_bytes,
            empty,
            overwrite: None,
            samples: &[],
            warning_celsius: None,
            changes: ChangeOptions::default(),
            dips: DipOptions::default(),
        }
    }
}

/// What a fill found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fill {
    /// Bytes that the drive holds.
    pub capacity_bytes: u64,
    /// The empty pass, and the pass over it if there was one.
    pub passes: Vec<Pass>,
    /// Every level of both passes, in order.
    pub phases: Vec<Phase>,
    /// Where the cache was full.
    pub cache: Sought<Threshold>,
    /// Where the cache shrank.
    pub shrink: Sought<Threshold>,
    /// How overwriting compares with the end of the empty pass.
    pub overwrite: Sought<Comparison>,
}

/// Something looked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sought<T> {
    /// It is there.
    Found(T),
    /// It was looked for and is not there.
    NotSeen {
        /// The greatest drop, as a share of the rate, that could have been missed once in twenty;
        /// None where there was too little to see any.
        drop_missed_max: Option<f64>,
    },
    /// It was not measured.
    NotMeasured,
}

impl<T> Sought<T> {
    /// What was found.
    pub fn found(&self) -> Option<&T> {
        match self {
            Self::Found(found) => Some(found),
            Self::NotSeen { .. } | Self::NotMeasured => None,
        }
    }
}

/// A lasting drop, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// The drop. Its bytes are those written since the pass began.
    pub change: Change,
    /// How full the drive was, 0 to 1.
    pub fill: f64,
    /// The likely cause.
    pub attribution: Attribution,
}

/// One pass over the drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// When it began, in nanoseconds of the run's clock.
    pub start_ns: u64,
    /// Bytes written.
    pub total_bytes: u64,
    /// All bytes over all time, in bytes a second.
    pub mean_rate: f64,
    /// Its levels and changes.
    pub segmentation: Segmentation,
    /// The likely cause of each change, in order.
    pub attributions: Vec<Attribution>,
    /// Its dips.
    pub dips: Dips,
    /// The slowest second, ten seconds and minute, as far as it lasted that long.
    pub worst: Vec<WorstWindow>,
}

/// Which of the phases a level belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseKind {
    /// Into the cache.
    Fast,
    /// Past the cache, or without one.
    Native,
    /// With the cache shrunk.
    Shrunk,
    /// Over stale data.
    Overwrite,
}

/// One level of one pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What it is.
    pub kind: PhaseKind,
    /// Its pass, from 0.
    pub pass: usize,
    /// Where it lies, and its level and mean rate.
    pub segment: Segment,
    /// Least and greatest mean rate at 95 %, in bytes a second; None with too few intervals.
    pub mean_range: Option<(f64, f64)>,
    /// Its dips.
    pub dips: DipSummary,
}

/// A first drop of less than this is not called a cliff: caches are several times as fast as what
/// is behind them.
const CLIFF_MIN: f64 = 0.10;
/// A second drop within this share of the capacity after the cliff is the cliff's own slope.
const SLOPE_SHARE: f64 = 0.02;
/// A pass that wrote less than this share of the capacity did not fill the drive.
const FILLED_SHARE: f64 = 0.99;
/// Lengths of the worst windows, in nanoseconds.
const WORST_NS: [u64; 3] = [1_000_000_000, 10_000_000_000, 60_000_000_000];

/// Finds the thresholds.
pub fn judge(input: &FillInput<'_>) -> Fill {
    let samples = Samples::new(input.samples, input.warning_celsius);
    let mut passes: Vec<Pass> = std::iter::once(input.empty)
        .chain(input.overwrite)
        .map(|series| pass(series, &samples, input))
        .collect();
    let (cliff, shrink) = thresholds(&passes[0], input.capacity_bytes);
    for (index, cause) in [(cliff, Cause::CacheFull), (shrink, Cause::CacheShrunk)] {
        if let Some(index) = index {
            passes[0].name_cause(index, cause, &samples);
        }
    }
    for index in 0..passes.get(1).map_or(0, |p| p.attributions.len()) {
        if passes[1].segmentation.changes[index].is_drop() {
            passes[1].name_cause(index, Cause::Overwriting, &samples);
        }
    }
    let threshold = |index: Option<usize>, from: usize| match index {
        Some(index) => Sought::Found(passes[0].threshold(index, input.capacity_bytes)),
        None => Sought::NotSeen { drop_missed_max: passes[0].drop_missed_max(from) },
    };
    let cache = threshold(cliff, 0);
    // Without a cliff there was no cache that could shrink, so the whole pass was looked at.
    let shrink_found = threshold(shrink, cliff.map_or(0, |cliff| cliff + 1));
    let phases = phases(&passes, cliff, shrink, input);
    let overwrite = overwriting(&passes, input);
    Fill {
        capacity_bytes: input.capacity_bytes,
        passes,
        phases,
        cache,
        shrink: shrink_found,
        overwrite,
    }
}

impl Fill {
    /// The mean rate of a phase, in bytes a second: that of its level with most bytes. None if the
    /// drive shows no such phase.
    pub fn rate(&self, kind: PhaseKind) -> Option<f64> {
        self.phases
            .iter()
            .filter(|phase| phase.kind == kind)
            .max_by_key(|phase| phase.segment.bytes.1 - phase.segment.bytes.0)
            .map(|phase| phase.segment.mean)
    }

    /// The pass over it, if no empty drive was written.
    pub fn only_overwritten(&self) -> Option<&Pass> {
        let is_empty = self.passes.first().is_some_and(|pass| pass.total_bytes == 0);
        self.passes.get(1).filter(|pass| is_empty && pass.total_bytes > 0)
    }

    /// The mean rate of the empty pass, in bytes a second; None if it did not fill the drive.
    pub fn whole_mean(&self) -> Option<f64> {
        let pass = self.passes.first()?;
        let filled = pass.total_bytes as f64 >= FILLED_SHARE * self.capacity_bytes as f64;
        filled.then_some(pass.mean_rate)
    }

    /// The lowest mean rate of any level, in bytes a second: what can be relied on for long. None
    /// without any.
    pub fn sustained_rate(&self) -> Option<f64> {
        self.phases.iter().map(|phase| phase.segment.mean).min_by(f64::total_cmp)
    }

    /// The findings in sentences.
    pub fn answer(&self) -> Vec<String> {
        self.findings().into_iter().map(|finding| finding.sentence).collect()
    }

    /// What it found, in words and as values.
    pub fn findings(&self) -> Vec<Finding> {
        answer::findings(self)
    }
}

impl Pass {
    fn threshold(&self, index: usize, capacity_bytes: u64) -> Threshold {
        let change = self.segmentation.changes[index].clone();
        let fill = change.bytes as f64 / capacity_bytes.max(1) as f64;
        Threshold { change, fill, attribution: self.attributions[index].clone() }
    }

    /// Names a cause that follows from the place of a change, unless samples named one.
    fn name_cause(&mut self, index: usize, cause: Cause, samples: &Samples<'_>) {
        let attribution = &mut self.attributions[index];
        if attribution.cause == Cause::NotKnown {
            let place = match cause {
                Cause::CacheFull => "the first lasting drop of an empty drive",
                Cause::CacheShrunk => "a further lasting drop as the drive filled up",
                _ => "a lasting drop while stale data was overwritten",
            };
            let nothing = samples.nothing_seen(&self.segmentation.changes[index]);
            *attribution = Attribution { cause, evidence: format!("{place}; {nothing}") };
        }
    }

    /// The greatest drop that could have been missed in the segments from `first` on: that of the
    /// one with most bytes.
    fn drop_missed_max(&self, first: usize) -> Option<f64> {
        self.segmentation
            .segments
            .get(first..)?
            .iter()
            .max_by_key(|segment| segment.bytes.1 - segment.bytes.0)?
            .step_missed_max
    }
}

fn pass(series: &Series, samples: &Samples<'_>, input: &FillInput<'_>) -> Pass {
    let segmentation = changes::find(series, &input.changes);
    let dips = dips::find(series, &segmentation, &input.dips);
    let start_ns = series.start_ns();
    let attributions = segmentation
        .changes
        .iter()
        .map(|change| {
            samples.attribute(change, start_ns).unwrap_or_else(|| Attribution {
                cause: Cause::NotKnown,
                evidence: samples.nothing_seen(change).to_owned(),
            })
        })
        .collect();
    Pass {
        start_ns,
        total_bytes: series.total_bytes(),
        mean_rate: series.mean_rate(),
        segmentation,
        attributions,
        dips,
        worst: WORST_NS.iter().filter_map(|&ns| series.worst_window(ns)).collect(),
    }
}

/// The changes of the empty pass that are the cliff and the shrink point. Drops that heat or the
/// link explain are neither.
fn thresholds(pass: &Pass, capacity_bytes: u64) -> (Option<usize>, Option<usize>) {
    let changes = &pass.segmentation.changes;
    let open: Vec<usize> = (0..changes.len())
        .filter(|&i| changes[i].is_drop() && pass.attributions[i].cause == Cause::NotKnown)
        .collect();
    let Some(at) = open.iter().position(|&i| -changes[i].relative() >= CLIFF_MIN) else {
        return (None, None);
    };
    let cliff = open[at];
    let slope = (SLOPE_SHARE * capacity_bytes as f64) as u64;
    let beyond = changes[cliff].bytes.saturating_add(slope);
    let shrink = open[at + 1..]
        .iter()
        .copied()
        .find(|&i| changes[i].bytes > beyond && pass.segmentation.is_new_low(i, cliff));
    (Some(cliff), shrink)
}

/// The last segment of the phase behind a shrink point: from then on the rate is nearer to what it was before than to the lowest.
pub(crate) fn last_shrunk(segments: &[Segment], cliff: usize, shrink: usize) -> usize {
    let native = longest(&segments[cliff + 1..=shrink]);
    let lowest = segments[shrink + 1..].iter().map(|one| one.mean).reduce(f64::min);
    let (Some(native), Some(lowest)) = (native, lowest) else { return shrink };
    let shrunk = |segment: &&Segment| segment.mean < f64::midpoint(native, lowest);
    shrink + segments[shrink + 1..].iter().take_while(shrunk).count()
}

/// The mean rate of a phase is that of its level with most bytes.
pub(crate) fn longest(segments: &[Segment]) -> Option<f64> {
    let longest = segments.iter().max_by_key(|segment| segment.bytes.1 - segment.bytes.0);
    longest.map(|segment| segment.mean)
}

fn phases(
    passes: &[Pass],
    cliff: Option<usize>,
    shrink: Option<usize>,
    input: &FillInput<'_>,
) -> Vec<Phase> {
    let all = [Some(input.empty), input.overwrite];
    let mut phases = Vec::new();
    let last_shrunk = shrink
        .zip(cliff)
        .map_or(0, |(shrink, cliff)| last_shrunk(&passes[0].segmentation.segments, cliff, shrink));
    for (pass, series) in all.into_iter().flatten().enumerate() {
        let dips = &passes[pass].dips;
        for (i, segment) in passes[pass].segmentation.segments.iter().enumerate() {
            let kind = match pass {
                0 if cliff.is_some_and(|cliff| i <= cliff) => PhaseKind::Fast,
                0 if shrink.is_some_and(|shrink| i > shrink && i <= last_shrunk) => {
                    PhaseKind::Shrunk
                }
                0 => PhaseKind::Native,
                _ => PhaseKind::Overwrite,
            };
            let inside = series.slice(segment.first, segment.end);
            phases.push(Phase {
                kind,
                pass,
                segment: segment.clone(),
                mean_range: compare::rate_range(&inside, &ComparisonOptions::default()),
                dips: dips::summarize_segments(
                    series,
                    std::slice::from_ref(segment),
                    &dips.dips,
                    dips.summary.threshold,
                ),
            });
        }
    }
    phases
}

/// Compares the end of the empty pass with the level of the pass over it that has most bytes.
fn overwriting(passes: &[Pass], input: &FillInput<'_>) -> Sought<Comparison> {
    let (Some(series), Some(pass)) = (input.overwrite, passes.get(1)) else {
        return Sought::NotMeasured;
    };
    let main = pass.segmentation.segments.iter().max_by_key(|s| s.bytes.1 - s.bytes.0);
    let last = passes[0].segmentation.segments.last();
    let (Some(last), Some(main)) = (last, main) else { return Sought::NotMeasured };
    let comparison = compare::compare(
        &input.empty.slice(last.first, last.end),
        &series.slice(main.first, main.end),
        &ComparisonOptions::default(),
    );
    let least = 1.0 - input.changes.step_min;
    match comparison.ratio {
        Some(ratio) if comparison.verdict == ComparisonVerdict::Slower && ratio <= least => {
            Sought::Found(comparison)
        }
        _ => Sought::NotSeen {
            drop_missed_max: comparison
                .range
                .map(|(low, _)| (1.0 - low).max(input.changes.step_min)),
        },
    }
}
