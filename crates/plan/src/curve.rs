//! How an empty drive was seen to write, step by step: what a mission is planned by, which ends before the means of phases are reached.

use profile::{FillCurve, Profile, SourceKind, Trust};

use crate::candidate::{Candidate, Figure};
use crate::phases::waiting;

/// A curve counts for all that is written if it covers this share of it.
const COVERED: f64 = 0.99;
/// A curve shows dips if the time from one to the next takes so many of its shortest steps.
const STEPS_BETWEEN_DIPS: f64 = 2.0;
/// Steps of a curve that have about as many bytes are intervals of the measurement.
const SAME_BYTES: f64 = 1.1;

/// The pass over an empty drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Bytes on the drive where each step ends, and how many it writes a second; never empty.
    steps: Vec<(f64, f64)>,
    /// Bytes by which a drive without a cache is ahead of that after the first step: its write buffer, which holds as much at any rate.
    buffer_bytes: f64,
}

impl Curve {
    /// A drive's, as much worse as its rate past the cache is taken to be. None if either wasn't measured.
    pub fn of(candidate: &Candidate, native: &Figure, cached: bool) -> Option<Self> {
        let measured = |curve: &&FillCurve| curve.source.kind == SourceKind::Measured;
        let curve = candidate.profile.fill.as_ref().filter(measured)?;
        let stated = candidate.profile.known(&native.name)?.value;
        if native.evidence < Trust::Measured {
            return None;
        }
        let worse = native.value / stated;
        let steps: Vec<(f64, f64)> =
            curve.steps.iter().map(|&(end, rate)| (end as f64, rate * worse)).collect();
        let (mut steps, mut buffer_bytes) = (with_edges(&steps), 0.0);
        if let [first, (_, then), ..] = steps[..]
            && then < first.1
            && !cached
        {
            buffer_bytes = ahead(first, then);
            steps[0].1 = then;
        }
        (!steps.is_empty()).then_some(Self { steps, buffer_bytes })
    }

    /// The most bytes that wait while so many drives are offered `offered` bytes a second until `volume` have come, and have a share of their
    /// time for them. None if the curve ends before.
    pub fn backlog(&self, offered: f64, volume: f64, drives: f64, share: f64) -> Option<f64> {
        let (last, _) = self.steps.last()?;
        if volume * COVERED > last * drives {
            return None;
        }
        let steps = self
            .steps
            .iter()
            .map(|&(end, rate)| ((end < *last).then_some(end), rate * drives * share));
        Some((waiting(offered, volume, drives, steps) - self.buffer_bytes * drives).max(0.0))
    }

    /// Seconds in which a drive writes its first bytes; None if the curve ends before.
    pub fn seconds(&self, bytes: f64) -> Option<f64> {
        let (mut begin, mut seconds) = (0.0, 0.0);
        let flash = (bytes - self.buffer_bytes).max(0.0);
        for (end, rate) in &self.steps {
            seconds += (end.min(flash) - begin).max(0.0) / rate;
            begin = *end;
        }
        (bytes * COVERED <= begin && seconds > 0.0).then_some(seconds)
    }
}

/// Bytes of the write buffer of a drive without a cache that writes `level` bytes a second between dips: what the first step of a measured
/// curve is ahead of the second, or of that level if the second has a dip. 0 if there is no such curve.
pub fn buffer_bytes(profile: &Profile, level: f64) -> f64 {
    let curve = profile.fill.as_ref().filter(|curve| curve.source.kind == SourceKind::Measured);
    let Some([(end, rate), (_, then), ..]) = curve.map(|curve| &curve.steps[..]) else {
        return 0.0;
    };
    ahead((*end as f64, *rate), then.max(level)).max(0.0)
}

/// Bytes that a step of a curve, which ends at a place and writes so many bytes a second, is ahead of a drive that writes `then`.
fn ahead((end, rate): (f64, f64), then: f64) -> f64 {
    (rate - then) * end / rate
}

/// The rate in bytes a second at which or faster half of what an empty drive was written between two places was: the level between dips.
/// None if no measured curve goes through all of that, or if its steps are longer than the time from one dip to the next, and hide them.
pub fn level(profile: &Profile, begins: f64, ends: f64, period_s: f64) -> Option<f64> {
    let curve = profile.fill.as_ref().filter(|curve| curve.source.kind == SourceKind::Measured)?;
    let (mut begin, mut inside) = (0.0_f64, Vec::new());
    for &(end, rate) in &curve.steps {
        inside.push((rate, ((end as f64).min(ends) - begin.max(begins)).max(0.0)));
        begin = end as f64;
    }
    let all: f64 = inside.iter().map(|(_, bytes)| bytes).sum();
    if all < COVERED * (ends - begins) {
        return None;
    }
    let took_s = |(rate, bytes): &(f64, f64)| bytes / rate;
    let shortest_s = inside.iter().filter(|(_, bytes)| *bytes > 0.0).map(took_s);
    if shortest_s.fold(f64::INFINITY, f64::min) > period_s / STEPS_BETWEEN_DIPS {
        return None;
    }
    inside.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut faster = 0.0;
    let half = inside.iter().find(|(_, bytes)| {
        faster += bytes;
        faster >= all / 2.0
    });
    half.map(|(rate, _)| *rate)
}

/// Steps with their edges: a short one between a faster and a slower is where the rate changed, and wrote at the rate of the first until
/// then, and at that of the second from then on.
fn with_edges(steps: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let begin = |index: usize| if index == 0 { 0.0 } else { steps[index - 1].0 };
    let bytes = |index: usize| steps[index].0 - begin(index);
    let mut with_edges = Vec::with_capacity(steps.len());
    for (index, &(end, rate)) in steps.iter().enumerate() {
        if index > 0 && index + 1 < steps.len() {
            let (before, after) = (steps[index - 1].1, steps[index + 1].1);
            let is_between = before.min(after) < rate && rate < before.max(after);
            let is_short = bytes(index) <= bytes(index - 1).min(bytes(index + 1)) * SAME_BYTES;
            if is_between && is_short {
                let at_second = (1.0 / rate - 1.0 / before) / (1.0 / after - 1.0 / before);
                with_edges.push((end - bytes(index) * at_second, before));
                with_edges.push((end, after));
                continue;
            }
        }
        with_edges.push((end, rate));
    }
    with_edges
}
