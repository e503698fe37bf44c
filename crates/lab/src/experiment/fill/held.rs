//! Writing at a given rate instead of as fast as possible: whether the drives hold it, and how much waits meanwhile. A drive that is left
//! a part of its time tidies up in it, so what it holds is not what a fill at full speed shows.

use base::{Duration, Geometry, Rate};
use load::quantity::{Pace, Size, Time};
use load::workload::DEPTH_MAX;
use load::{Stop, Verb, Workload};
use profile::name;
use serde::{Deserialize, Serialize};

use super::{Fill, FillResult, INTERVAL_MAX, INTERVAL_MIN, INTERVALS, Layout, NAME};
use crate::answer::{Figure, Unit};
use crate::cost::Cost;
use crate::experiment::trouble::troubles;
use crate::finding::{Finding, FindingKind, Quantity};
use crate::lab::{Lab, LabError, Step};

/// Times that the region is written: once empty, and four times over stale data. A rate that is slightly more than the drive sustains uses
/// up its spare flash only by what it is too much: of 7 % spare, 2 % too much leave nothing after three and a half times.
pub(super) const ROUNDS: u64 = 5;
/// The drives are written as `longtake record` writes them, in chunks of so many bytes. A segment of 256 MiB holds 64 of them beside its
/// index, so they end anywhere in a stripe of flash, and what a flush makes the drive pad is lost to it. In chunks of 4 MiB, a drive of
/// four bits a cell held 2 % more.
pub(super) const CHUNK_BYTES: u64 = (4 << 20) - UNIT_BYTES;
/// Commands are as long as so many whole bytes.
const UNIT_BYTES: u64 = 4 << 10;
/// As many of them under way on each.
const UNDER_WAY: u64 = 4;
/// And flushed as often.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// Drives that were trimmed rest so long before they are written: some notice only then that their cache is empty.
const REST: Duration = Duration::from_secs(60);
/// A drive holds a rate if it catches up in each of so many parts of the time: what waits is then what a moment has left, and not what
/// a slow phase has.
const PARTS: usize = 50;
/// Less than this share of what was to be written tells nothing.
const WHOLE_SHARE: f64 = 0.999;

/// A rate, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// Bytes a second for each drive.
    pub rate: f64,
    /// Bytes that were written to each drive.
    pub written_bytes: u64,
    /// The most bytes that had come for one drive and were not on it yet.
    pub waiting_bytes: u64,
    /// Whether every drive had caught up near the end. None if the writing ended early.
    pub held: Option<bool>,
}

impl Fill {
    /// What writing at these rates costs.
    pub(super) fn held_cost(&self, layout: &Layout) -> Cost {
        let bytes = ROUNDS * layout.each;
        self.rates.iter().fold(Cost::default(), |sum, rate| {
            let slower = Rate(rate.0.min(self.scope.write_guess.0 / layout.drives as f64));
            let written_bytes = bytes * layout.drives;
            let time_ns = (slower.time_for(bytes) + REST).as_nanos();
            sum.and(Cost { written_bytes, time_ns, ..Cost::default() })
        })
    }

    /// Writes the region at each of the rates, every time from empty drives.
    pub(super) fn hold(
        &self,
        lab: &mut Lab<'_>,
        drives: &[Geometry],
        notes: &mut Vec<String>,
    ) -> Result<Vec<Held>, LabError> {
        let longest = drives.iter().map(|drive| u64::from(drive.transfer_max_bytes)).min();
        let layout = &self.layout(drives, command_bytes(longest.unwrap_or(CHUNK_BYTES)));
        let mut found = Vec::new();
        for rate in &self.rates {
            let name = format!("held-{:.0}", rate.0);
            let workload = self.at_rate(&name, layout, *rate);
            lab.renew()?;
            let (_, trouble) = self.empty(lab, drives, layout, &workload)?;
            notes.extend(trouble);
            if lab.measured(NAME, &name, &workload)?.is_none() {
                lab.rest(NAME, &format!("{name}-rest"), REST)?;
            }
            let step = lab.step(NAME, &name, &workload)?;
            notes.extend(troubles(&format!("writing at {rate}"), &step));
            found.push(self.judged(&step, layout, *rate));
        }
        Ok(found)
    }

    fn at_rate(&self, name: &str, layout: &Layout, rate: Rate) -> Workload {
        let mut workload = self.pass(name, layout, layout.each);
        for stream in &mut workload.streams {
            stream.depth = depth(layout);
            stream.rate = Some(Pace::Bytes(rate.0));
            stream.flush = Some(Time(FLUSH_EVERY));
        }
        let time = rate.time_for(ROUNDS * layout.each);
        let interval = Duration::from_nanos(time.as_nanos() / INTERVALS);
        let stop =
            Stop { bytes: Some(Size(ROUNDS * layout.each * layout.drives)), ..Stop::default() };
        Workload { stop, interval: Time(interval.clamp(INTERVAL_MIN, INTERVAL_MAX)), ..workload }
    }

    fn judged(&self, step: &Step, layout: &Layout, rate: Rate) -> Held {
        let all = ROUNDS * layout.each;
        let (mut waiting, mut written, mut behind) = (0.0f64, all, Some(0.0f64));
        for drive in 0..layout.drives {
            let result = step.measurement.result(&format!("drive-{drive}"), Verb::Write);
            written = written.min(result.map_or(0, |result| result.bytes));
            // What came while the longest command waited for its turn and was done.
            let longest_ns = result.and_then(|result| result.response.max_ns).unwrap_or(0);
            waiting = waiting.max(rate.0 * longest_ns as f64 / 1e9 + layout.block as f64);
            let least = least_behind(step, drive as u16, rate, all);
            behind = behind.zip(least).map(|(a, b)| a.max(b));
        }
        let in_flight = u64::from(depth(layout)) * layout.block;
        let is_whole = written as f64 >= WHOLE_SHARE * all as f64;
        let held = behind.filter(|_| is_whole).map(|behind| behind <= in_flight as f64);
        Held { rate: rate.0, written_bytes: written, waiting_bytes: waiting as u64, held }
    }
}

/// Bytes of the commands that a chunk is written in on a drive that takes so many in one.
fn command_bytes(longest: u64) -> u64 {
    let commands = CHUNK_BYTES.div_ceil(longest.max(UNIT_BYTES));
    CHUNK_BYTES / commands / UNIT_BYTES * UNIT_BYTES
}

fn depth(layout: &Layout) -> u32 {
    (UNDER_WAY * CHUNK_BYTES / layout.block).clamp(UNDER_WAY, u64::from(DEPTH_MAX)) as u32
}

/// The least that a drive's stream was behind in a part of the time, of the part where that was most. None if bytes came too fast to tell.
fn least_behind(step: &Step, stream: u16, rate: Rate, all: u64) -> Option<f64> {
    let (mut written, mut least) = (0, [None::<f64>; PARTS]);
    for line in &step.measurement.series {
        if line.stream != stream || line.operation != Verb::Write {
            continue;
        }
        written += line.bytes;
        let came = rate.0 * (line.start_ns + line.length_ns) as f64 / 1e9;
        // Behind the last byte a drive that is late catches up with nothing.
        if let Some(least) = least.get_mut((came / all as f64 * PARTS as f64) as usize) {
            let behind = came - written as f64;
            *least = Some(least.map_or(behind, |least| least.min(behind)));
        }
    }
    least.into_iter().try_fold(0.0, |most: f64, least| Some(most.max(least?)))
}

impl FillResult {
    /// What was found of rates, as sentences.
    pub(super) fn held_findings(&self) -> Vec<Finding> {
        let sentence = |one: &Held| {
            let rate = Quantity::rate(one.rate);
            let (quantities, sentence) = match one.held {
                Some(true) => (
                    vec![rate, Quantity::bytes(one.waiting_bytes)],
                    "At {0} each drive keeps up, from empty through four rounds over stale data. A recorder needs buffers of {1} for it.",
                ),
                Some(false) => (vec![rate], "At {0} a drive falls further and further behind."),
                None => (
                    vec![rate],
                    "Too little was written at {0} to tell whether the drives keep up.",
                ),
            };
            Finding::new("write.held", FindingKind::States, quantities, sentence)
        };
        self.held.iter().map(sentence).collect()
    }

    /// The greatest rate that was held, what waited at it, and the least that was not held. None of them if no rate was given.
    pub(super) fn held_figures(&self) -> Vec<Figure> {
        if self.held.is_empty() {
            return Vec::new();
        }
        // What holds on a part of the drive, where the rest is spare, need not hold on all of it.
        let is_whole = self.region_bytes as f64 >= WHOLE_SHARE * self.fill.capacity_bytes as f64;
        let of =
            |held: bool| self.held.iter().filter(move |one| is_whole && one.held == Some(held));
        let greatest = of(true).max_by(|a, b| a.rate.total_cmp(&b.rate));
        let least = of(false).min_by(|a, b| a.rate.total_cmp(&b.rate));
        let rate = |one: &Held| one.rate;
        let waiting = greatest.map(|one| one.waiting_bytes as f64);
        let note = if is_whole { "" } else { "only a part of the drive was written" };
        let figures = [
            Figure::new(
                name::WRITE_HELD,
                "greatest rate that was held",
                greatest.map(rate),
                Unit::BytesPerSecond,
            ),
            Figure::new(name::WRITE_HELD_WAITING, "most that waited at it", waiting, Unit::Bytes),
            Figure::new(
                name::WRITE_NOT_HELD,
                "least rate that was not held",
                least.map(rate),
                Unit::BytesPerSecond,
            ),
        ];
        figures.into_iter().map(|figure| figure.noted(note)).collect()
    }
}
