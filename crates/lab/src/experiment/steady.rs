//! Steady: one region written and then read continuously in large blocks, one at a time. Answers how even the speed is: what
//! counts for a stream is the depth of the dips and the deviation, not the average.

use base::{Duration, Geometry};
use load::Verb;
use load::quantity::{Size, Time};
use load::workload::{Blocks, Stop, Stream};
use profile::Direction;
use serde::{Deserialize, Serialize};

use super::preparation::Preparation;
use super::trouble::{remarks, troubles};
use super::{Scope, curve};
use crate::analysis::series::WorstWindow;
use crate::analysis::{ChangeOptions, DipOptions, Dips, Point, Segmentation, changes, dips};
use crate::answer::{Answer, Figure, Unit};
use crate::cost::Cost;
use crate::finding::{Finding, FindingKind, Quantity};
use crate::lab::{Lab, LabError};

const NAME: &str = "steady";

/// The region that is usual for this measurement, in bytes.
const REGION: u64 = 2_000_000_000;
/// A point is cut into about this many intervals, each long enough for a few blocks.
const INTERVALS: u64 = 300;
const INTERVAL_BLOCKS: u64 = 10;
/// Speeds this even are called steady: dips no deeper than to this share of the level, and a mean deviation of no more.
const DEEP_BELOW: f64 = 0.5;
const DEVIATION_MAX: f64 = 0.05;

/// The experiment's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// Where, and how long each direction takes. The length of intervals follows from the blocks.
    pub scope: Scope,
    /// Bytes of each command.
    pub block_bytes: u64,
    /// Write too; without, what is there is read.
    pub write: bool,
}

impl Default for Steady {
    fn default() -> Self {
        let scope = Scope { region: Some(REGION), ..Scope::default() };
        Self { scope, block_bytes: 8 << 20, write: true }
    }
}

/// What was found. All figures are of all drives together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyResult {
    /// The drives' names.
    pub drives: Vec<String>,
    /// Bytes of each command.
    pub block_bytes: u64,
    /// Bytes of each drive that were used.
    pub region_bytes: u64,
    /// What was done before.
    pub preparation: Preparation,
    /// Writing; None if it was not measured.
    pub write: Option<Evenness>,
    /// Reading; None if nothing came of it.
    pub read: Option<Evenness>,
    /// What went wrong.
    pub notes: Vec<String>,
}

/// How even a speed was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evenness {
    /// Bytes a second on average.
    pub mean: f64,
    /// Time measured in nanoseconds.
    pub time_ns: u64,
    /// Its levels.
    pub segmentation: Segmentation,
    /// Its dips and deviation.
    pub dips: Dips,
    /// The slowest second; None if it lasted shorter.
    pub worst_second: Option<WorstWindow>,
    /// Speed over time: at most 2,000 of the intervals, the slowest and the fastest among them.
    pub curve: Vec<Point>,
}

impl Steady {
    /// What it costs, at most where writes are concerned.
    pub fn cost(&self, drives: &[Geometry]) -> Cost {
        let scope = self.scope.fitted(drives);
        let read = scope.points_cost(1, 0.0, 1.0);
        if !self.writes(drives) {
            return read;
        }
        let write = Cost {
            written_bytes: write_limit(&scope, self.block(&scope, drives)),
            ..scope.points_cost(1, 1.0, 0.0)
        };
        Preparation::cost(&scope, drives).and(write).and(read)
    }

    /// Writes and reads.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn run(&self, lab: &mut Lab<'_>) -> Result<SteadyResult, LabError> {
        let drives = lab.drives().to_vec();
        let scope = self.scope.fitted(&drives);
        let block = self.block(&scope, &drives);
        let region = drives.iter().map(|drive| scope.bytes(drive, block)).min().unwrap_or(0);
        if region == 0 {
            return Err(LabError::Unsuitable {
                experiment: NAME,
                reason: "the region has no room for a single block: give a larger one".to_owned(),
            });
        }
        let all: Vec<u16> = (0..drives.len() as u16).collect();
        let writes = self.writes(&drives);
        let preparation = if writes {
            Preparation::make(lab, &scope, NAME, &all)?
        } else {
            Preparation::left_out(lab)?
        };
        let mut notes = Vec::new();
        let mut write = None;
        if writes {
            write = self.measure(lab, &scope, (block, region), Verb::Write, &mut notes)?;
        }
        let read = self.measure(lab, &scope, (block, region), Verb::Read, &mut notes)?;
        let result = SteadyResult {
            drives: drives.into_iter().map(|drive| drive.name).collect(),
            block_bytes: block,
            region_bytes: region,
            preparation,
            write,
            read,
            notes,
        };
        lab.keep(NAME, &result)?;
        Ok(result)
    }

    fn writes(&self, drives: &[Geometry]) -> bool {
        self.write && drives.iter().all(|drive| drive.writable)
    }

    /// The block, or as much of it as every drive takes and has room for.
    fn block(&self, scope: &Scope, drives: &[Geometry]) -> u64 {
        let unit = drives.iter().map(|d| u64::from(d.block_bytes)).max().unwrap_or(512);
        let most = |d: &Geometry| scope.bytes(d, unit).min(d.transfer_max_bytes.into());
        let most = drives.iter().map(most).min().unwrap_or(unit);
        (self.block_bytes.min(most) / unit * unit).max(unit)
    }

    fn measure(
        &self,
        lab: &mut Lab<'_>,
        scope: &Scope,
        (block, region): (u64, u64),
        operation: Verb,
        notes: &mut Vec<String>,
    ) -> Result<Option<Evenness>, LabError> {
        let stream = Stream {
            name: "steady".to_owned(),
            read: u32::from(operation == Verb::Read),
            write: u32::from(operation == Verb::Write),
            block: Blocks::of(block),
            size: Some(Size(region)),
            ..Stream::default()
        };
        let name = operation.to_string();
        let mut workload = scope.point(&name, vec![stream]);
        let guess = if operation == Verb::Read { scope.read_guess } else { scope.write_guess };
        workload.interval = Time(interval(scope, guess.time_for(block * INTERVAL_BLOCKS)));
        workload.warm_up = Time::default();
        if operation == Verb::Write {
            let bytes = Some(Size(write_limit(scope, block)));
            workload.stop = Stop { bytes, ..workload.stop };
        }
        let step = lab.point(NAME, &name, &workload)?;
        notes.extend(troubles(&name, &step));
        let series = curve::resolved(&curve::whole(&step, operation, 0), block);
        if series.total_bytes() == 0 {
            return Ok(None);
        }
        let segmentation = changes::find(&series, &ChangeOptions::default());
        let dips = dips::find(&series, &segmentation, &DipOptions::default());
        Ok(Some(Evenness {
            mean: series.mean_rate(),
            time_ns: series.total_ns(),
            segmentation,
            dips,
            worst_second: series.worst_window(Duration::from_secs(1).as_nanos()),
            curve: curve::thinned(&series),
        }))
    }
}

/// Long enough for `blocks_time`, short enough for many of them; a whole number of milliseconds.
fn interval(scope: &Scope, blocks_time: Duration) -> Duration {
    let ns = (scope.point.as_nanos() / INTERVALS).max(blocks_time.as_nanos());
    Duration::from_millis((ns / 1_000_000).clamp(1, 1_000))
}

/// What may be written at most, so that drives faster than thought don't wear more than was said.
fn write_limit(scope: &Scope, block: u64) -> u64 {
    (scope.points_cost(1, 1.0, 0.0).written_bytes / block).max(1) * block
}

impl Evenness {
    /// Whether dips stay shallow and the deviation small.
    pub fn is_even(&self) -> bool {
        let summary = &self.dips.summary;
        summary.lowest_share_min.is_none_or(|lowest| lowest >= DEEP_BELOW)
            && summary.deviation_mean <= DEVIATION_MAX
    }

    fn finding(&self, direction: Direction) -> Finding {
        let summary = &self.dips.summary;
        let what = if direction == Direction::Write { "Writing" } else { "Reading" };
        let verdict = if self.is_even() { "even" } else { "uneven" };
        let named =
            |quantity: Quantity, part: &str| quantity.named(&format!("steady.{direction}.{part}"));
        let mut quantities = vec![
            named(Quantity::rate(self.mean), "rate"),
            Quantity::time(self.time_ns),
            named(Quantity::percent(100.0 * summary.deviation_mean, 1), "deviation"),
        ];
        let dips = match (summary.lowest_share_min, summary.length_median_ns) {
            (Some(lowest), Some(length)) => {
                let period = summary.rhythm.filter(|rhythm| rhythm.is_periodic());
                let period = period.map_or_else(String::new, |rhythm| {
                    format!(", one every {}", Duration::from_nanos(rhythm.period_ns))
                });
                let count = Quantity::new(summary.count as f64, Unit::Count);
                quantities.extend([named(count, "dips"), Quantity::percent(100.0 * lowest, 0)]);
                quantities.push(Quantity::time(length));
                format!(
                    "{{3}} dips, the deepest to {{4}} of the level, typically {{5}} long{period}"
                )
            }
            _ => format!("no dips below {:.0} % of the level", 100.0 * summary.threshold),
        };
        let levels = match self.segmentation.changes.len() {
            0 => String::new(),
            n => format!(" The level changed {n} times; both are counted about each level."),
        };
        let sentence = format!(
            "{what} is {verdict}: {{0}} on average over {{1}}, {dips}; the rate deviates from that by {{2}} on average.{levels}"
        );
        Finding::new(&format!("steady.{direction}"), FindingKind::Averages, quantities, &sentence)
    }

    fn figures(&self, direction: Direction) -> Vec<Figure> {
        let summary = &self.dips.summary;
        let name = |part: &str| format!("steady.{direction}.{part}");
        let depth = summary.lowest_share_min.map(|share| 100.0 * (1.0 - share));
        let worst = self.worst_second.as_ref().map(|window| window.rate);
        let label = |what: &str| format!("steady {direction}: {what}");
        vec![
            Figure::new(&name("rate"), &label("average speed"), self.mean, Unit::BytesPerSecond),
            Figure::new(&name("dips"), &label("dips"), summary.count as f64, Unit::Count),
            Figure::new(
                &name("dip_depth"),
                &label("depth of the deepest dip"),
                depth,
                Unit::Percent,
            ),
            Figure::new(
                &name("deviation"),
                &label("mean deviation from the level"),
                100.0 * summary.deviation_mean,
                Unit::Percent,
            ),
            Figure::new(
                &name("worst_second"),
                &label("the slowest second"),
                worst,
                Unit::BytesPerSecond,
            )
            .noted(if worst.is_none() { "it lasted shorter than that" } else { "" }),
        ]
    }
}

impl Answer for SteadyResult {
    fn question(&self) -> &'static str {
        "How even is the speed of one continuous stream in large blocks: how deep are its dips, and how far does it deviate?"
    }

    fn findings(&self) -> Vec<Finding> {
        let mut said = Vec::new();
        match &self.write {
            Some(write) => said.push(write.finding(Direction::Write)),
            None => said.push(Finding::remark("Writing was not measured.")),
        }
        match &self.read {
            Some(read) => said.push(read.finding(Direction::Read)),
            None => said
                .push(Finding::remark("No read came to an end, so nothing is known of reading.")),
        }
        said.push(Finding::remark(
            "What counts for a stream is the depth of the dips and the deviation: a buffer must carry it through the \
             deepest dip, whatever the average.",
        ));
        said.extend(self.preparation.findings("writing first, then reading"));
        said.extend(remarks(&self.notes));
        said
    }

    fn figures(&self) -> Vec<Figure> {
        let write = self.write.iter().flat_map(|write| write.figures(Direction::Write));
        write.chain(self.read.iter().flat_map(|read| read.figures(Direction::Read))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::testing::{Done, Model, geometry, rated, run_in, scope};
    use base::{DeviceError, Instant, Operation, Rate};

    fn steady() -> Steady {
        Steady { scope: Scope { region: Some(32 << 20), ..scope(10_000) }, ..Steady::default() }
    }

    fn run(steady: &Steady, drives: Vec<Geometry>, model: Model) -> (SteadyResult, Done) {
        let folder = tempfile::tempdir().unwrap();
        let (result, done) = run_in(folder.path(), drives, model, |lab| steady.run(lab));
        (result.unwrap(), done)
    }

    #[test]
    fn an_even_drive_is_called_even_and_its_speed_is_right() {
        let model = rated(Rate(2e9), Rate(5e8), Duration::ZERO);
        let (result, done) = run(&steady(), vec![geometry()], model);
        let (write, read) = (result.write.clone().unwrap(), result.read.clone().unwrap());
        assert!((write.mean / 5e8 - 1.0).abs() < 0.02, "{}", write.mean);
        assert!((read.mean / 2e9 - 1.0).abs() < 0.02, "{}", read.mean);
        assert_eq!(read.dips.summary.count, 0);
        let said = result.answer().join(" ");
        assert!(said.contains("Reading is even: 2.00 GB/s"), "{said}");
        assert!(done.changes.iter().all(|change| change.1 + change.2 <= 32 << 20));
        let cost = steady().cost(&[geometry()]);
        assert!(done.written_bytes <= cost.written_bytes, "{} {cost:?}", done.written_bytes);
    }

    #[test]
    fn deep_dips_make_a_fast_drive_uneven() {
        let mut flat = rated(Rate(1e9), Rate(1e9), Duration::ZERO);
        let model: Model = Box::new(move |command, now| {
            let due = flat(command, now)?.as_nanos();
            // In the first 200 ms of each second it reads nothing.
            let second = due / 1_000_000_000;
            let within = due % 1_000_000_000;
            let reads = matches!(command.operation, Operation::Read { .. });
            Ok(Instant::from_nanos(if reads && within < 200_000_000 {
                second * 1_000_000_000 + 200_000_000
            } else {
                due
            }))
        });
        let (result, _) = run(&steady(), vec![geometry()], model);
        let read = result.read.clone().unwrap();
        assert!(!read.is_even(), "{:?}", read.dips.summary);
        assert!((8..=11).contains(&read.dips.summary.count), "{:?}", read.dips.summary);
        let period = read.dips.summary.rhythm.unwrap().period_ns as f64;
        assert!((period / 1e9 - 1.0).abs() < 0.1, "{period}");
        assert!(result.answer().join(" ").contains("Reading is uneven"));
        assert!(result.write.unwrap().is_even());
    }

    #[test]
    fn drives_that_fail_or_may_not_be_written_are_said() {
        let dead: Model = Box::new(|command, now| match command.operation {
            Operation::Read { .. } => Err(DeviceError::Gone),
            _ => Ok(now + Duration::from_millis(10)),
        });
        let reading = Geometry { writable: false, ..geometry() };
        let (result, done) = run(&steady(), vec![reading], dead);
        assert_eq!(done.written_bytes, 0);
        assert_eq!(result.read, None);
        let said = result.answer().join(" ");
        assert!(said.contains("nothing is known of reading"), "{said}");
        assert!(said.contains("gave up"), "{said}");
        assert!(said.contains("Writing was not measured"), "{said}");
    }

    #[test]
    fn a_second_run_does_no_io_and_a_tiny_file_for_a_short_time_will_do() {
        let folder = tempfile::tempdir().unwrap();
        let tiny = Geometry { capacity_bytes: 3 << 20, ..geometry() };
        let steady = Steady {
            scope: Scope { region: Some(2_000_000_000), ..scope(300) },
            ..Steady::default()
        };
        let run = || {
            let model = rated(Rate(3e8), Rate(3e8), Duration::ZERO);
            run_in(folder.path(), vec![tiny.clone(), tiny.clone()], model, |lab| steady.run(lab))
        };
        let (first, _) = run();
        let (second, done) = run();
        assert_eq!(done, Done::default());
        let second = second.unwrap();
        assert_eq!(second, first.unwrap());
        assert!((second.read.unwrap().mean / 6e8 - 1.0).abs() < 0.1);
    }
}
