//! Fill: what the drives write from empty to full, what over stale data, and what rests give back. Answers which rate a
//! recording can rely on, and up to where.

mod answer;
mod elsewhere;
pub mod held;
mod rests;

use base::{Duration, Geometry, Rate};
use load::quantity::{Size, Time};
use load::workload::{Blocks, Stop, Stream};
use load::{Verb, Workload};
use profile::{FillCurve, Source};
use serde::{Deserialize, Serialize};

use self::held::Held;
use super::preparation::trim;
use super::trouble::troubles;
use super::{Scope, curve};
use crate::analysis::series::WorstWindow;
use crate::analysis::{self, ChangeOptions, DipOptions, FillInput, Point, Recovery, Series};
use crate::cost::Cost;
use crate::lab::{Lab, LabError, Step};
use crate::profiling;

const NAME: &str = "fill";

/// A pass is cut into about this many intervals, as far as their limits allow.
const INTERVALS: u64 = 1_000;
const INTERVAL_MIN: Duration = Duration::from_millis(10);
const INTERVAL_MAX: Duration = Duration::from_secs(1);

/// Without a known cache, a burst after a rest may write this part of the region.
const BURST_PART: u64 = 4;

/// The experiment's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Fill {
    /// Where. The time for a point doesn't matter here.
    pub scope: Scope,
    /// Bytes of each write; less where the drive takes less at once.
    pub block_bytes: u64,
    /// Writes under way on each drive.
    pub depth: u32,
    /// Trim the region before, so that the drive is empty.
    pub trim: bool,
    /// Rests after the overwriting, each followed by a burst of writes.
    pub rests: Vec<Duration>,
    /// Rests are multiplied by this.
    pub rest_scale: f64,
    /// Bytes of a burst on each drive, at most; None for a quarter of the region.
    pub burst_bytes_max: Option<u64>,
    /// The time that each pass may take: fewer bytes are written if the whole region takes longer.
    pub pass_time: Option<Duration>,
    /// The drives' own warning temperature in degrees Celsius, if known.
    pub warning_celsius: Option<f64>,
    /// Rates for each drive, at each of which the region is written again from empty.
    pub rates: Vec<Rate>,
}

impl Default for Fill {
    fn default() -> Self {
        Self {
            scope: Scope::default(),
            block_bytes: 1 << 20,
            depth: 8,
            trim: true,
            rests: [10, 60, 300].map(Duration::from_secs).to_vec(),
            rest_scale: 1.0,
            burst_bytes_max: None,
            pass_time: None,
            warning_celsius: None,
            rates: Vec::new(),
        }
    }
}

/// What was found. All figures are of all drives together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FillResult {
    /// The drives' names.
    pub drives: Vec<String>,
    /// Bytes of each write.
    pub block_bytes: u64,
    /// Bytes that were to be written in each pass.
    pub region_bytes: u64,
    /// The region was cut so that no pass takes longer than this, in nanoseconds.
    pub cut_to_ns: Option<u64>,
    /// What "empty" means.
    pub emptied: Emptied,
    /// Thresholds, levels and dips.
    pub fill: analysis::Fill,
    /// The slowest minute of any pass, or where none lasted that long, the slowest tenth.
    pub sustained: Option<WorstWindow>,
    /// The slowest second of any pass; None if none lasted that long.
    pub worst_second: Option<WorstWindow>,
    /// What rests gave back.
    pub rests: Rests,
    /// Writing the empty drive: at most 2,000 of its intervals, the slowest and the fastest among them.
    pub empty: Vec<Point>,
    /// Writing over it, likewise.
    pub overwrite: Vec<Point>,
    /// All of that pass in few steps: bytes written when each ends, and its rate in bytes a second.
    #[serde(default)]
    pub steps: Vec<(u64, f64)>,
    /// Bytes that each drive took in the empty pass.
    pub shares: Vec<u64>,
    /// What came of writing at given rates.
    #[serde(default)]
    pub held: Vec<Held>,
    /// What went wrong.
    pub notes: Vec<String>,
}

/// What "empty" means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Emptied {
    /// The region was trimmed before.
    Trimmed,
    /// The drives were taken as they were, and why.
    AsFound(String),
}

/// What rests gave back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rests {
    /// The table; None if there was nothing to give back, or nothing was measured.
    pub recovery: Option<Recovery>,
    /// The bursts: rest in nanoseconds, and at most 2,000 intervals of each.
    pub bursts: Vec<(u64, Vec<Point>)>,
    /// Why there is no table.
    pub left_out: Option<String>,
}

/// The part of the drives that is filled.
#[derive(Clone, Debug, PartialEq)]
struct Layout {
    block: u64,
    /// Bytes on each drive, whole blocks.
    each: u64,
    drives: u64,
    interval: Duration,
    cut_to: Option<Duration>,
    /// Bytes of a burst on each drive, at most.
    burst: u64,
}

impl Fill {
    /// What it costs, at most where writes are concerned.
    pub fn cost(&self, drives: &[Geometry]) -> Cost {
        let layout = self.layout(drives, self.block_bytes);
        let rests = self.rests.iter().fold(Duration::ZERO, |sum, rest| sum + self.scaled(*rest));
        let bursts = self.rests.len() as u64 * layout.burst;
        let bytes = (2 * layout.each + bursts) * layout.drives;
        let rests = Cost { time_ns: rests.as_nanos(), ..Cost::default() };
        self.scope.write_cost(bytes).and(rests).and(self.held_cost(&layout))
    }

    /// Times that the region is written, bursts after rests not counted.
    pub fn passes(&self) -> u64 {
        2 + held::ROUNDS * self.rates.len() as u64
    }

    /// Writes the region twice, and a burst after each rest; then at each of the given rates.
    ///
    /// # Errors
    /// [`LabError`], [`LabError::Unsuitable`] where nothing can be written.
    pub fn run(&self, lab: &mut Lab<'_>) -> Result<FillResult, LabError> {
        let drives = lab.drives().to_vec();
        let layout = self.layout(&drives, self.block_bytes);
        suitable(&drives, &layout)?;
        lab.renew()?;
        let pass = self.pass("empty", &layout, layout.each);
        let (emptied, mut notes) = self.empty(lab, &drives, &layout, &pass)?;
        let first = lab.step(NAME, "empty", &pass)?;
        notes.extend(troubles("writing the empty drive", &first));
        let empty = curve::resolved(&curve::whole(&first, Verb::Write, 0), layout.block);
        // Where the first pass ended early, the second goes over what it reached.
        let shares = shares(&first, drives.len());
        let reached = shares.iter().min().copied().unwrap_or(0) / layout.block * layout.block;
        let second = match reached.min(layout.each) {
            0 => None,
            each => Some(lab.step(NAME, "overwrite", &self.pass("overwrite", &layout, each))?),
        };
        let offset_ns = empty.end_ns();
        let mut samples = curve::samples(&first, 0);
        let mut over = Series::default();
        if let Some(second) = &second {
            notes.extend(troubles("overwriting", second));
            over = curve::whole(second, Verb::Write, offset_ns);
            over = curve::resolved(&over, layout.block);
            samples.extend(curve::samples(second, offset_ns));
        }
        let fill = analysis::fill::judge(&FillInput {
            capacity_bytes: drives.iter().map(|drive| drive.capacity_bytes).sum(),
            empty: &empty,
            overwrite: (!over.is_empty()).then_some(&over),
            samples: &samples,
            warning_celsius: self.warning_celsius,
            changes: ChangeOptions::default(),
            dips: DipOptions::default(),
        });
        let last = second.as_ref().unwrap_or(&first);
        let rests = self.rest_and_burst(lab, &layout, &fill, last, &mut notes)?;
        let held = self.hold(lab, &drives, &mut notes)?;
        let passes = [&empty, &over];
        let result = FillResult {
            drives: drives.into_iter().map(|drive| drive.name).collect(),
            block_bytes: layout.block,
            region_bytes: layout.each * layout.drives,
            cut_to_ns: layout.cut_to.map(Duration::as_nanos),
            emptied,
            sustained: sustained(&passes),
            worst_second: worst(&passes, Duration::from_secs(1).as_nanos()),
            rests,
            empty: curve::thinned(&empty),
            overwrite: curve::thinned(&over),
            steps: profiling::fill_steps(&empty),
            fill,
            shares,
            held,
            notes,
        };
        lab.keep(NAME, &result)?;
        Ok(result)
    }

    fn layout(&self, drives: &[Geometry], block_bytes: u64) -> Layout {
        let count = (drives.len() as u64).max(1);
        let unit = drives.iter().map(|d| u64::from(d.block_bytes)).max().unwrap_or(512);
        let smallest = drives.iter().map(|d| self.scope.bytes(d, unit)).min().unwrap_or(0);
        let longest = drives.iter().map(|d| u64::from(d.transfer_max_bytes)).min().unwrap_or(unit);
        let block = (block_bytes.min(longest).min(smallest) / unit * unit).max(unit);
        let mut each = smallest / block * block;
        let guess = self.scope.write_guess;
        let mut cut_to = None;
        if let Some(time) = self.pass_time {
            let possible = (guess.bytes_in(time) / count as f64) as u64 / block * block;
            if possible < each {
                (each, cut_to) = (possible.max(block), Some(time));
            }
        }
        let pass_ns = guess.time_for(each * count).as_nanos();
        let interval_ms = (pass_ns / INTERVALS).div_ceil(1_000_000);
        let interval = Duration::from_millis(interval_ms).clamp(INTERVAL_MIN, INTERVAL_MAX);
        let burst = self.burst_bytes_max.unwrap_or(each / BURST_PART).min(each) / block * block;
        let burst = burst.max(block).min(each);
        Layout { block, each, drives: count, interval, cut_to, burst }
    }

    /// Trims the region of each drive, if that can be, for what is written `next`.
    fn empty(
        &self,
        lab: &mut Lab<'_>,
        drives: &[Geometry],
        layout: &Layout,
        next: &Workload,
    ) -> Result<(Emptied, Vec<String>), LabError> {
        if !self.trim {
            return Ok((Emptied::AsFound("no trim was requested".to_owned()), Vec::new()));
        }
        if let Some(drive) = drives.iter().find(|drive| drive.trim_unit_bytes.is_none()) {
            return Ok((Emptied::AsFound(format!("{} can't trim", drive.name)), Vec::new()));
        }
        let mut notes = Vec::new();
        let is_done = lab.measured(NAME, &next.name, next)?.is_some();
        for (index, drive) in drives.iter().enumerate() {
            let name = format!("{}-trim-{index}", next.name);
            if !is_done {
                // Writing that was interrupted has left the drive no longer empty.
                lab.forget(NAME, &name)?;
            }
            let Some(workload) = trim(&self.scope, drive, index as u16, &name, layout.each) else {
                let why = format!("the region is shorter than what {} trims at once", drive.name);
                return Ok((Emptied::AsFound(why), notes));
            };
            let step = lab.step(NAME, &name, &workload)?;
            notes.extend(troubles(&format!("trimming {}", drive.name), &step));
            if step.measurement.error_count() > 0 {
                let why = format!("trims of {} failed", drive.name);
                return Ok((Emptied::AsFound(why), notes));
            }
        }
        Ok((Emptied::Trimmed, notes))
    }

    /// Writing `each` bytes from the beginning of each drive. Every drive has a stream of its own, so that it shows what
    /// each of them took.
    fn pass(&self, name: &str, layout: &Layout, each: u64) -> Workload {
        let stream = |drive: u64| Stream {
            name: format!("drive-{drive}"),
            drives: vec![drive as u16],
            write: 1,
            block: Blocks::of(layout.block),
            size: Some(Size(each)),
            depth: self.depth,
            ..Stream::default()
        };
        let streams = (0..layout.drives).map(stream).collect();
        let workload = self.scope.bytes_once(name, each * layout.drives, streams);
        let time = self.pass_time.map(Time);
        Workload {
            interval: Time(layout.interval),
            stop: Stop { time, ..workload.stop },
            ..workload
        }
    }

    fn scaled(&self, rest: Duration) -> Duration {
        Duration::from_secs_f64(rest.as_secs_f64() * self.rest_scale)
    }
}

impl FillResult {
    /// The curve of the empty pass; None if nothing was written.
    pub fn curve(&self, source: &Source) -> Option<FillCurve> {
        let steps = self.steps.clone();
        (!steps.is_empty()).then(|| FillCurve { steps, source: source.clone() })
    }
}

fn suitable(drives: &[Geometry], layout: &Layout) -> Result<(), LabError> {
    let reason = if let Some(drive) = drives.iter().find(|drive| !drive.writable) {
        format!("{} is open for reading only: open it for writing", drive.name)
    } else if layout.each == 0 {
        "the region has no room for a single block: give a larger one".to_owned()
    } else {
        return Ok(());
    };
    Err(LabError::Unsuitable { experiment: NAME, reason })
}

/// Bytes that each drive took.
fn shares(step: &Step, drives: usize) -> Vec<u64> {
    let of = |drive| {
        let result = step.measurement.result(&format!("drive-{drive}"), Verb::Write);
        result.map_or(0, |result| result.bytes)
    };
    (0..drives).map(of).collect()
}

/// The slowest minute, or the slowest tenth of the shortest pass if no pass lasts that long.
fn sustained(passes: &[&Series]) -> Option<WorstWindow> {
    const MINUTE_NS: u64 = 60_000_000_000;
    worst(passes, MINUTE_NS).or_else(|| {
        let length = |series: &&&Series| series.end_ns() - series.start_ns();
        let shortest = passes.iter().filter(|s| !s.is_empty()).map(|s| length(&s)).min()?;
        worst(passes, shortest / 10)
    })
}

fn worst(passes: &[&Series], length_ns: u64) -> Option<WorstWindow> {
    passes
        .iter()
        .filter_map(|series| series.worst_window(length_ns))
        .min_by(|a, b| a.rate.total_cmp(&b.rate))
}

#[cfg(test)]
mod tests;
