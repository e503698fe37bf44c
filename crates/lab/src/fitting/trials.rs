//! Trials: what was done to a drive in a measurement and what came of it, step by step, and the same asked of a model of the
//! drive. A trial's figures are computed alike from both, so they compare.

mod folder;
mod known;

use base::Duration;
use load::quantity::{Size, Time};
use load::workload::{Blocks, Pattern, Stop, Stream};
use load::{Measurement, Verb, Workload};
use profile::{Direction, name};

pub use folder::read;
pub use known::of_profile;

use super::Target;
use crate::analysis::{ChangeOptions, Point, Series, changes, fill};
use crate::answer::Unit;

/// Deviations that figures are thought to have, as shares of them, beside what short intervals add: rates and latencies of
/// the same drive in the same state repeat to a few percent.
const NOISE: f64 = 0.02;
/// Places of a change of level are known less surely, in a fill of a thousand intervals.
const PLACE_NOISE: f64 = 0.04;
/// A pass over the drive is cut into so many equal parts.
const PARTS: u32 = 20;
/// Beside those, about the place where the cache was full: these shares of it.
const ABOUT_CLIFF: [f64; 10] = [0.25, 0.5, 0.75, 0.85, 0.95, 1.05, 1.15, 1.25, 1.5, 2.0];
/// Points of a curve, at most: more than these are joined to as many pieces of equal bytes.
const POINTS_MAX: usize = 2000;
/// A point of a curve holds so many blocks at least.
const POINT_BLOCKS: u64 = 4;
/// A workload that only reads leaves the drive as it was, so that any time is long enough that has enough commands.
const READ_TIME: (Duration, Duration) = (Duration::from_millis(8), Duration::from_millis(40));
const INTERVAL_MIN: Duration = Duration::from_millis(1);
const INTERVAL_MAX: Duration = Duration::from_secs(10);
/// The first drop of at least this share is where a cache was full; the next, so much of the drive behind it, where it
/// shrank. As `analysis::fill` has them.
const CLIFF_MIN: f64 = 0.10;
const SLOPE_SHARE: f64 = 0.02;
/// A pass of this share of the capacity went over the whole drive.
const WHOLE_SHARE: f64 = 0.99;
/// Rounds of steady random writes whose mean is a figure.
const WINDOW: usize = 5;

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Experiment and step: `fill/empty`.
    pub name: String,
    /// The state in which it found the drive.
    pub begins: Begins,
    /// How long the drive was left alone before.
    pub rest: Duration,
    /// What was done.
    pub workload: Workload,
    /// What is looked at.
    pub shows: Shows,
}

/// The state in which a trial finds the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begins {
    /// As the one before left it.
    #[default]
    AsLeft,
    /// As it was before the first trial.
    New,
    /// As the last trial left it that was none of these.
    Prepared,
}

/// What a trial shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Shows {
    /// Nothing: it brings the drive into the state that the next ones are measured in.
    Nothing,
    /// The rate of one operation, under this name; in commands a second or in bytes.
    Rate {
        /// The figure's name.
        name: String,
        /// Which operation.
        verb: Verb,
        /// Commands a second or bytes a second.
        unit: Unit,
    },
    /// How the rate of writing goes with the bytes written: levels and their thresholds, and the rate of each part.
    Curve {
        /// Over the empty drive, or over stale data.
        empty: bool,
        /// Parts of the pass: the name of each one's figure, and the bytes at which it ends.
        ends: Vec<(String, u64)>,
    },
    /// A round of random writes, of so many in all, counted from 1.
    Round {
        /// Its number.
        number: usize,
        /// Of how many.
        of: usize,
    },
}

/// What was measured of one drive, as trials and the figures that came of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// What was done, in order.
    pub trials: Vec<Trial>,
    /// What came of it.
    pub targets: Vec<Target>,
    /// What was found in the measurement and can't be used, and why.
    pub notes: Vec<String>,
}

impl Trial {
    /// The same on a drive of one part in `parts` of the bytes, `capacity_bytes` of them: sizes and times in proportion, blocks
    /// and depths as they are. So the drive is in the same state at the same share of every step.
    #[must_use]
    pub fn scaled(&self, parts: u64, capacity_bytes: u64) -> Self {
        let mut workload = self.workload.clone();
        for stream in &mut workload.streams {
            if stream.trim > 0 {
                let unit = stream.align_bytes().max(1);
                let block = (stream.block.longest() / parts / unit * unit).max(unit);
                stream.block = Blocks::of(block);
            }
            let unit = stream.block.longest().max(stream.align_bytes()).max(1);
            let most = capacity_bytes / unit * unit;
            let least = (unit * u64::from(stream.depth.max(1))).min(most);
            let region = |Size(bytes): Size| Size((bytes / parts / unit * unit).clamp(least, most));
            stream.size = stream.size.map(region);
            // There is room behind the beginning for the region, as there was.
            let begin = |Size(bytes): Size| {
                let last = most - stream.size.map_or(least, |Size(bytes)| bytes);
                Size((bytes / parts / unit * unit).min(last))
            };
            stream.from = stream.from.map(begin);
        }
        workload.stop = Stop {
            bytes: workload.stop.bytes.map(|Size(bytes)| Size((bytes / parts).max(1))),
            time: workload.stop.time.map(|Time(time)| {
                let scaled = Duration::from_nanos(time.as_nanos() / parts);
                let (least, most) = READ_TIME;
                Time(if workload.changes() {
                    scaled.max(INTERVAL_MIN)
                } else {
                    time.clamp(least, most)
                })
            }),
            steady: None,
        };
        workload.warm_up = Time::default();
        // Only a curve needs intervals, and each costs as much as thousands of commands.
        let interval = match self.shows {
            Shows::Curve { .. } => Duration::from_nanos(workload.interval.0.as_nanos() / parts),
            _ => INTERVAL_MAX,
        };
        workload.interval = Time(interval.clamp(INTERVAL_MIN, INTERVAL_MAX));
        let shows = match &self.shows {
            Shows::Curve { empty, ends } => {
                let ends = ends.iter().map(|(name, end)| (name.clone(), end / parts)).collect();
                Shows::Curve { empty: *empty, ends }
            }
            other => other.clone(),
        };
        let rest = Duration::from_nanos(self.rest.as_nanos() / parts);
        Self { name: self.name.clone(), rest, workload, shows, ..*self }
    }

    /// Its figures from what came of it: name, value, unit, noise. Places are in bytes of the drive that was measured.
    fn figures(&self, measurement: &Measurement, capacity_bytes: u64) -> Vec<Target> {
        match &self.shows {
            Shows::Nothing => Vec::new(),
            Shows::Rate { name, verb, unit } => {
                let found = measurement.results.iter().filter(|result| result.operation == *verb);
                let value = found.map(|result| match unit {
                    Unit::CommandsPerSecond => result.commands_per_s,
                    _ => result.bytes_per_s,
                });
                target(name, value.sum(), *unit, NOISE).into_iter().collect()
            }
            Shows::Curve { empty, ends } => {
                let series = curve(measurement, self.workload.streams[0].block.longest());
                let mut all = parts(&series, ends);
                all.extend(levels(&series, *empty, capacity_bytes));
                all
            }
            Shows::Round { number, .. } => {
                let name = format!("snia.round{number}.iops");
                let value = measurement.commands_per_s();
                target(&name, value, Unit::CommandsPerSecond, NOISE).into_iter().collect()
            }
        }
    }
}

/// The figures of measured trials, in the order of the trials.
pub fn figures<'a>(
    measured: impl Iterator<Item = (&'a Trial, &'a Measurement)>,
    capacity_bytes: u64,
) -> Vec<Target> {
    let mut all = Vec::new();
    let mut rounds = Vec::new();
    for (trial, measurement) in measured {
        all.extend(trial.figures(measurement, capacity_bytes));
        if let Shows::Round { number, of } = trial.shows
            && number + WINDOW > of
        {
            rounds.push(measurement.commands_per_s());
        }
    }
    if !rounds.is_empty() {
        let mean = rounds.iter().sum::<f64>() / rounds.len() as f64;
        all.extend(target("snia.write.iops", mean, Unit::CommandsPerSecond, NOISE));
    }
    all
}

fn target(name: &str, value: f64, unit: Unit, noise: f64) -> Option<Target> {
    (value.is_finite() && value > 0.0).then(|| Target { name: name.to_owned(), value, unit, noise })
}

/// The parts of a pass of so many bytes: even ones, and closer ones about a cliff.
fn ends(empty: bool, bytes: u64, cliff: Option<u64>) -> Vec<(String, u64)> {
    let even = (1..=PARTS).map(|part| bytes * u64::from(part) / u64::from(PARTS));
    let near = cliff.into_iter().flat_map(|cliff| ABOUT_CLIFF.map(|at| (cliff as f64 * at) as u64));
    let mut all: Vec<u64> = even.chain(near.filter(|&end| end < bytes)).collect();
    all.sort_unstable();
    // A part must be long enough to have a rate.
    let least = cliff.unwrap_or(bytes / 20).min(bytes / 20) / 25;
    all.dedup_by(|next, before| *next - *before <= least);
    let pass = if empty { "empty" } else { "overwrite" };
    let share = |end: u64| 100.0 * end as f64 / bytes.max(1) as f64;
    all.into_iter().map(|end| (format!("fill.{pass}.to {:.1} %", share(end)), end)).collect()
}

/// Bytes written over time, with enough blocks in each point.
fn curve(measurement: &Measurement, block_bytes: u64) -> Series {
    let mut points: Vec<Point> = Vec::new();
    for line in measurement.series.iter().filter(|line| line.operation == Verb::Write) {
        let end_ns = line.start_ns + line.length_ns;
        match points.last_mut() {
            Some(last) if last.bytes < POINT_BLOCKS * block_bytes || end_ns <= last.end_ns() => {
                last.duration_ns = end_ns.max(last.end_ns()) - last.start_ns;
                last.bytes += line.bytes;
            }
            _ => {
                // What nothing moved in belongs to the point behind it.
                let start_ns = points.last().map_or(line.start_ns, Point::end_ns);
                let duration_ns = end_ns - start_ns;
                points.push(Point { start_ns, duration_ns, bytes: line.bytes });
            }
        }
    }
    points.retain(|point| point.duration_ns > 0);
    let series = Series::new(points).unwrap_or_default();
    if series.len() > POINTS_MAX { series.by_equal_bytes(POINTS_MAX) } else { series }
}

/// The rate of each part of a pass, by when its end was reached. Within a point bytes move evenly.
fn parts(series: &Series, ends: &[(String, u64)]) -> Vec<Target> {
    let mut all = Vec::new();
    let (mut start, mut started_ns) = (0, 0.0);
    for (name, end) in ends {
        let Some(ended_ns) = reached_ns(series, *end) else { break };
        let bytes = end - start;
        // An interval more or less at each end.
        let point = series.total_bytes() as f64 / series.len().max(1) as f64;
        let noise = NOISE.hypot(0.3 * point / bytes.max(1) as f64);
        let rate = bytes as f64 * 1e9 / (ended_ns - started_ns);
        all.extend(target(name, rate, Unit::BytesPerSecond, noise));
        (start, started_ns) = (*end, ended_ns);
    }
    all
}

/// When so many bytes were written, in nanoseconds since the first; None if they never were. The last few blocks of a pass
/// may be cut off with it.
fn reached_ns(series: &Series, bytes: u64) -> Option<f64> {
    let bytes = if bytes as f64 > series.total_bytes() as f64 * 1.001 {
        return None;
    } else {
        bytes.min(series.total_bytes())
    };
    let mut before = 0;
    for point in series.points() {
        if before + point.bytes >= bytes {
            let share = (bytes - before) as f64 / point.bytes.max(1) as f64;
            let from_ns = (point.start_ns - series.start_ns()) as f64;
            return Some(from_ns + share * point.duration_ns as f64);
        }
        before += point.bytes;
    }
    None
}

/// Levels and thresholds, as a fill tells them.
fn levels(series: &Series, empty: bool, capacity_bytes: u64) -> Vec<Target> {
    let rate =
        |name, value: Option<f64>| target(name, value.unwrap_or(0.0), Unit::BytesPerSecond, NOISE);
    if !empty {
        return rate(name::WRITE_OVERWRITE, Some(series.mean_rate())).into_iter().collect();
    }
    // As a fill judges its empty pass, without what it tells beside these: that takes most of its time.
    let found = changes::find(series, &ChangeOptions::default());
    let drop = |index: &usize| found.changes[*index].is_drop();
    let drops = || (0..found.changes.len()).filter(drop);
    let cliff = drops().find(|&index| -found.changes[index].relative() >= CLIFF_MIN);
    let beyond = cliff.map(|cliff| {
        found.changes[cliff].bytes.saturating_add((SLOPE_SHARE * capacity_bytes as f64) as u64)
    });
    let shrink = cliff.zip(beyond).and_then(|(cliff, beyond)| {
        drops()
            .find(|&i| i > cliff && found.changes[i].bytes > beyond && found.is_new_low(i, cliff))
    });
    let place = |name, index: Option<usize>| {
        let bytes = index.map_or(0.0, |index| found.changes[index].bytes as f64);
        target(name, bytes, Unit::Bytes, PLACE_NOISE)
    };
    let level = fill::longest;
    let first = cliff.map_or(0, |cliff| cliff + 1);
    let end = shrink.map_or(found.segments.len(), |shrink| shrink + 1);
    let shrunk = shrink.zip(cliff).map(|(shrink, cliff)| {
        let last = fill::last_shrunk(&found.segments, cliff, shrink);
        &found.segments[(shrink + 1)..=last]
    });
    let whole = series.total_bytes() as f64 >= WHOLE_SHARE * capacity_bytes as f64;
    [
        rate(name::WRITE_FAST, level(&found.segments[..first])),
        place(name::WRITE_CACHE, cliff),
        rate(name::WRITE_NATIVE, level(&found.segments[first..end])),
        place(name::WRITE_SHRINK, shrink),
        rate(name::WRITE_SHRUNK, shrunk.and_then(level)),
        rate(name::WRITE_MEAN, whole.then(|| series.mean_rate())),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The figure of a point of reads or writes: sequential ones under their stream's name, random reads under theirs.
pub(crate) fn point_name(stream: &Stream) -> Option<(String, Verb)> {
    let (block, depth) = (stream.block.longest(), stream.depth * stream.jobs);
    let (direction, verb) = match (stream.read, stream.write) {
        (1.., 0) => (Direction::Read, Verb::Read),
        (0, 1..) => (Direction::Write, Verb::Write),
        _ => return None,
    };
    match (stream.pattern, verb) {
        (Pattern::Sequential, _) => Some((name::stream_rate(direction, block, depth), verb)),
        (Pattern::Random, Verb::Read) => Some((name::random_rate(block, depth), verb)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
