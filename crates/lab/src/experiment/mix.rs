//! `mix`: how block size and the share of reads change what the drives do, over the 56 points that SNIA's tests and
//! many articles use.

mod shape;

use std::cmp::Reverse;

use base::{ByteSize, Duration, Geometry};
use load::measurement::LatencySummary;
use load::quantity::Size;
use load::workload::{Blocks, Pattern, Stream};
use load::{Verb, Workload};
use serde::{Deserialize, Serialize};

pub use shape::Shape;

use super::Scope;
use super::preparation::Preparation;
use super::trouble::{latency, remarks, troubles};
use crate::answer::{Answer, Figure, Unit};
use crate::cost::Cost;
use crate::finding::{Finding, FindingKind, Quantity};
use crate::lab::{Lab, LabError, Step};

const NAME: &str = "mix";

/// The block sizes of the grid in bytes (SNIA PTS 2.0.2, IOPS test).
pub const BLOCKS: [u64; 8] =
    [512, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 1 << 20];

/// The shares of reads of the grid in percent (the same source).
pub const READ_PERCENTS: [u32; 7] = [100, 95, 65, 50, 35, 5, 0];

/// The experiment's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Where, and how long each point takes.
    pub scope: Scope,
    /// Block sizes in bytes.
    pub blocks: Vec<u64>,
    /// Shares of reads in percent, 0 to 100.
    pub read_percents: Vec<u32>,
    /// Commands under way on each drive, by two jobs if it is an even number. A striped set is one drive.
    pub depth: u32,
    /// Write the region once before, so that reads find something.
    pub prepare: bool,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            scope: Scope::default(),
            blocks: BLOCKS.to_vec(),
            read_percents: READ_PERCENTS.to_vec(),
            depth: 64,
            prepare: true,
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixResult {
    /// The drives' names.
    pub drives: Vec<String>,
    /// Jobs on each drive.
    pub jobs: u32,
    /// Commands under way for each job.
    pub depth: u32,
    /// What was done before.
    pub preparation: Preparation,
    /// The points that were measured, by block and then by falling share of reads.
    pub points: Vec<MixPoint>,
    /// Block sizes in bytes that were left out, and why.
    pub skipped: Vec<(u64, String)>,
    /// What went wrong.
    pub notes: Vec<String>,
}

/// One point of the grid. All figures are of all drives together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixPoint {
    /// Block size in bytes.
    pub block_bytes: u64,
    /// Share of reads in percent.
    pub read_percent: u32,
    /// Commands a second.
    pub iops: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Latency of the reads, if there were any.
    pub read: Option<LatencySummary>,
    /// Latency of the writes, if there were any.
    pub write: Option<LatencySummary>,
    /// Commands that failed.
    pub errors: u64,
    /// The harness may have been the limit.
    pub harness_limited: bool,
}

impl Mix {
    /// What it costs, at most where writes are concerned. A mixed point can't write more than the drives write alone, nor
    /// more than its share beside the reads they do alone.
    pub fn cost(&self, drives: &[Geometry]) -> Cost {
        let scope = self.scope.fitted(drives);
        let (blocks, _) = usable(&self.blocks, &scope, drives);
        let mut cost =
            if self.prepare { Preparation::cost(&scope, drives) } else { Cost::default() };
        for &block in &blocks {
            for &read in &self.read_percents {
                cost = cost.and(point_cost(&scope, drives, block, read, self.depth));
            }
        }
        cost
    }

    /// Measures every point.
    ///
    /// # Errors
    /// [`LabError`]; block sizes that a drive can't do are left out and said.
    pub fn run(&self, lab: &mut Lab<'_>) -> Result<MixResult, LabError> {
        let drives = lab.drives().to_vec();
        let scope = self.scope.fitted(&drives);
        let writes = self.read_percents.iter().any(|&read| read < 100);
        if let Some(drive) = drives.iter().find(|drive| writes && !drive.writable) {
            return Err(LabError::Unsuitable {
                experiment: NAME,
                reason: format!(
                    "{} is open for reading only: open it for writing, or ask for 100 % reads alone",
                    drive.name
                ),
            });
        }
        let all: Vec<u16> = (0..drives.len() as u16).collect();
        let preparation = if self.prepare {
            Preparation::make(lab, &scope, NAME, &all)?
        } else {
            Preparation::left_out(lab)?
        };
        let (blocks, skipped) = usable(&self.blocks, &scope, &drives);
        let jobs = if self.depth.is_multiple_of(2) { 2 } else { 1 };
        let depth = self.depth / jobs;
        let (mut points, mut notes, mut ended_early) = (Vec::new(), Vec::new(), false);
        for (block, read) in self.gentlest_first(&blocks) {
            let name = format!("{block}-r{read}");
            let workload = workload(&scope, &drives, &name, (block, read), (jobs, depth));
            let step = lab.point(NAME, &name, &workload)?;
            notes.extend(troubles(&words(block, read), &step));
            ended_early |= Duration::from_nanos(step.measurement.elapsed_ns) < scope.point;
            points.push(point(block, read, &step));
        }
        notes.extend(enough(&scope, &drives).filter(|_| ended_early));
        points.sort_by_key(|point| {
            (place(&blocks, point.block_bytes), place(&self.read_percents, point.read_percent))
        });
        let result = MixResult {
            drives: drives.into_iter().map(|drive| drive.name).collect(),
            jobs,
            depth,
            preparation,
            points,
            skipped,
            notes,
        };
        lab.keep(NAME, &result)?;
        Ok(result)
    }

    /// The points in the order in which they change least for those behind them: small random writes use up spare flash, so they
    /// come last.
    fn gentlest_first(&self, blocks: &[u64]) -> Vec<(u64, u32)> {
        let mut points: Vec<(u64, u32)> = blocks
            .iter()
            .flat_map(|&block| self.read_percents.iter().map(move |&read| (block, read)))
            .collect();
        points.sort_by_key(|&(block, read)| (read < 100, Reverse(block), Reverse(read)));
        points
    }
}

/// How points are ordered on drives that can't be put back into their starting state: see [`Mix::gentlest_first`].
const ORDER: &str =
    "pure reads first, then blocks from the largest to the smallest, each with ever more writes";

/// Where a value is in a list.
fn place<T: PartialEq>(all: &[T], value: T) -> Option<usize> {
    all.iter().position(|one| *one == value)
}

/// Random commands of one block size and share of reads on all drives, of so many jobs and so many under way for each. It ends once it
/// has written enough.
pub(super) fn workload(
    scope: &Scope,
    drives: &[Geometry],
    name: &str,
    (block, read): (u64, u32),
    (jobs, depth): (u32, u32),
) -> Workload {
    let stream = Stream {
        name: "mix".to_owned(),
        pattern: Pattern::Random,
        block: Blocks::of(block),
        read,
        write: 100u32.saturating_sub(read),
        jobs,
        depth,
        ..Stream::default()
    };
    let mut workload = scope.point(name, vec![stream]);
    workload.stop.bytes = scope.bytes_enough(drives, read).map(Size);
    workload
}

/// That points ended before their time, and why.
pub(super) fn enough(scope: &Scope, drives: &[Geometry]) -> Option<String> {
    let written = ByteSize(scope.bytes_enough(drives, 0)?);
    Some(format!("Points that had written {written} before their time was over ended then."))
}

/// A point's figures from its step.
pub(super) fn point(block: u64, read: u32, step: &Step) -> MixPoint {
    let measurement = &step.measurement;
    let summary = |verb| measurement.result("mix", verb).map(|result| result.response.clone());
    MixPoint {
        block_bytes: block,
        read_percent: read,
        iops: measurement.commands_per_s(),
        bytes_per_s: measurement.rate().0,
        read: summary(Verb::Read),
        write: summary(Verb::Write),
        errors: measurement.error_count(),
        harness_limited: measurement.harness.limited.is_some(),
    }
}

/// What one point costs; `depth` commands are under way on each drive.
pub(super) fn point_cost(
    scope: &Scope,
    drives: &[Geometry],
    block: u64,
    read: u32,
    depth: u32,
) -> Cost {
    let share = f64::from(100u32.saturating_sub(read));
    let beside_reads =
        if read == 0 { f64::INFINITY } else { scope.read_guess.0 * share / f64::from(read) };
    let write_rate = scope.write_guess.0.min(beside_reads);
    let read_share = f64::from(read) / 100.0;
    let mut cost = scope.points_cost(1, write_rate / scope.write_guess.0, read_share);
    if let Some(enough) = scope.bytes_enough(drives, read) {
        cost.written_bytes = cost.written_bytes.min((enough as f64 * share / 100.0) as u64);
        cost.read_bytes = cost.read_bytes.min((enough as f64 * read_share) as u64);
        // Commands under way at the end are waited for.
        cost.written_bytes += u64::from(depth) * block * drives.len() as u64;
    }
    cost
}

/// The block sizes that all drives can do, and the others with the reason.
pub(super) fn usable(
    blocks: &[u64],
    scope: &Scope,
    drives: &[Geometry],
) -> (Vec<u64>, Vec<(u64, String)>) {
    let (mut usable, mut skipped) = (Vec::new(), Vec::new());
    for &block in blocks {
        let objection = drives.iter().find_map(|drive| {
            let unit = u64::from(drive.block_bytes);
            if !block.is_multiple_of(unit) || block == 0 {
                Some(format!("{} is addressed in blocks of {unit} bytes", drive.name))
            } else if block > u64::from(drive.transfer_max_bytes) {
                let most = ByteSize(drive.transfer_max_bytes.into());
                Some(format!("{} takes {most} at once at most", drive.name))
            } else if block > scope.bytes(drive, unit) {
                Some(format!("the region on {} is smaller than that", drive.name))
            } else {
                None
            }
        });
        match objection {
            Some(why) => skipped.push((block, why)),
            None => usable.push(block),
        }
    }
    (usable, skipped)
}

/// `4 KiB, 65/35`.
pub(super) fn words(block: u64, read: u32) -> String {
    format!("{}, {read}/{}", binary(block), 100u32.saturating_sub(read))
}

/// A block size as people say it: `4 KiB`, `512 B`.
pub(crate) fn binary(bytes: u64) -> String {
    match bytes {
        b if b != 0 && b.is_multiple_of(1 << 20) => format!("{} MiB", b >> 20),
        b if b != 0 && b.is_multiple_of(1 << 10) => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

impl MixPoint {
    /// What its figures' names begin with.
    fn name(&self) -> String {
        format!("mix.{}.r{}", self.block_bytes, self.read_percent)
    }

    fn figure(&self, part: &str) -> String {
        format!("{}.{part}", self.name())
    }
}

impl MixResult {
    /// The point that has most of something, among all of them.
    fn greatest(
        &self,
        part: &str,
        unit: Unit,
        of: fn(&MixPoint) -> f64,
        words_before: &str,
    ) -> Option<Finding> {
        let mut points: Vec<&MixPoint> = self.points.iter().filter(|p| p.iops > 0.0).collect();
        // Of points that are the same the last is named, as in the order of the grid.
        points.sort_by(|a, b| of(b).total_cmp(&of(a)));
        let best = points.first()?;
        let (reads, writes) = (best.read_percent, 100 - best.read_percent);
        let block = binary(best.block_bytes);
        let sentence = format!("{words_before}{block} with {reads} % reads and {writes} % writes.");
        let all = points.iter().map(|p| Quantity::of(&p.figure(part), of(p), unit)).collect();
        Some(Finding::new("mix", FindingKind::Greatest, all, &sentence))
    }

    fn writes(&self) -> bool {
        self.points.iter().any(|point| point.read_percent < 100)
    }

    /// A point.
    pub fn at(&self, block: u64, read: u32) -> Option<&MixPoint> {
        self.points.iter().find(|p| p.block_bytes == block && p.read_percent == read)
    }
}

impl Answer for MixResult {
    fn question(&self) -> &'static str {
        "How do block size and the share of reads change what the drive does?"
    }

    fn findings(&self) -> Vec<Finding> {
        let mut said = Vec::new();
        let each = if self.drives.len() > 1 { " on each drive" } else { "" };
        said.extend(self.greatest(
            "iops",
            Unit::CommandsPerSecond,
            |point| point.iops,
            &format!(
                "With {} commands under way{each}, the most IOPS: {{0}} in blocks of ",
                self.jobs * self.depth
            ),
        ));
        said.extend(self.greatest(
            "rate",
            Unit::BytesPerSecond,
            |p| p.bytes_per_s,
            "The highest rate: {0} in blocks of ",
        ));
        if let (Some(reads), Some(writes)) = (self.at(4096, 100), self.at(4096, 0)) {
            let tail = |summary: &Option<LatencySummary>| {
                latency(summary.as_ref().and_then(|summary| summary.percentile(99.0)))
            };
            let iops = |point: &MixPoint| {
                Quantity::of(&point.figure("iops"), point.iops, Unit::CommandsPerSecond)
            };
            said.push(Finding::new("mix", FindingKind::States, vec![iops(reads), iops(writes)], &format!(
                "At 4 KiB, {{0}} random reads a second (p99 latency {}) and {{1}} random writes (p99 latency {}).",
                tail(&reads.read),
                tail(&writes.write)
            )));
        }
        said.extend(self.shapes().into_iter().map(|shape| shape.finding()));
        for (block, why) in &self.skipped {
            said.push(Finding::remark(format!(
                "Blocks of {} were left out: {why}.",
                binary(*block)
            )));
        }
        said.extend(self.preparation.findings(if self.writes() { ORDER } else { "" }));
        said.extend(remarks(&self.notes));
        said
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for point in &self.points {
            let name = point.name();
            let label = words(point.block_bytes, point.read_percent);
            let noted = |figure: Figure| {
                if point.harness_limited {
                    figure.noted("the harness was the limit")
                } else {
                    figure
                }
            };
            let count = point.iops;
            figures.push(noted(Figure::new(
                &format!("{name}.iops"),
                &format!("{label}: IOPS"),
                count,
                Unit::CommandsPerSecond,
            )));
            figures.push(noted(Figure::new(
                &format!("{name}.rate"),
                &format!("{label}: bandwidth"),
                point.bytes_per_s,
                Unit::BytesPerSecond,
            )));
            for (verb, summary) in [("read", &point.read), ("write", &point.write)] {
                let Some(summary) = summary else { continue };
                figures.push(Figure::new(
                    &format!("{name}.{verb}.p99"),
                    &format!("{label}: 99 % latency of {verb}s"),
                    summary.percentile(99.0).map(|ns| ns as f64),
                    Unit::Nanoseconds,
                ));
            }
        }
        for shape in self.shapes() {
            let value = shape.found.map(|found| f64::from(u8::from(found)));
            figures.push(
                Figure::new(&format!("mix.shape.{}", shape.name), shape.claim, value, Unit::Count)
                    .noted(shape.detail),
            );
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use base::{DeviceError, Duration, Instant, Operation, Rate};

    use super::*;
    use crate::experiment::testing::{Done, Model, covers, geometry, moving, run_in, scope};

    /// 10 us for each command, or its transfer at 1 GB/s (reads) or 500 MB/s (writes) if that is longer; reads and
    /// writes after each other, or each for themselves.
    fn model(duplex: bool) -> Model {
        let mut busy_until: BTreeMap<bool, Instant> = BTreeMap::new();
        Box::new(move |command, now| {
            let (rate, length) = moving(command, Rate(1e9), Rate(500e6));
            let write = matches!(command.operation, Operation::Write { .. });
            let busy = busy_until.entry(duplex && write).or_default();
            *busy = (*busy).max(now) + rate.time_for(length).max(Duration::from_micros(10));
            Ok(*busy)
        })
    }

    fn mix() -> Mix {
        Mix { scope: scope(50), ..Mix::default() }
    }

    fn run(mix: &Mix, drive: Geometry, model: Model) -> (MixResult, Done) {
        let folder = tempfile::tempdir().unwrap();
        let (result, done) = run_in(folder.path(), vec![drive], model, |lab| mix.run(lab));
        (result.unwrap(), done)
    }

    fn found(result: &MixResult, name: &str) -> Option<bool> {
        result.shapes().into_iter().find(|shape| shape.name == name).unwrap().found
    }

    #[test]
    fn the_grid_has_56_points_with_the_rates_of_the_drive() {
        let (result, done) = run(&mix(), geometry(), model(false));
        assert_eq!(result.points.len(), 56);
        for (block, read, rate) in
            [(1 << 20, 100, 1e9), (1 << 20, 0, 500e6), (32 << 10, 50, 667e6), (512, 100, 51.2e6)]
        {
            let point = result.at(block, read).unwrap();
            assert!((point.bytes_per_s / rate - 1.0).abs() < 0.08, "{block} {read}: {point:?}");
            assert!((point.iops * block as f64 / point.bytes_per_s - 1.0).abs() < 1e-9);
        }
        assert_eq!(found(&result, "large_reads_are_level"), Some(true));
        assert_eq!(found(&result, "middle_mixes_carry_more"), Some(false));
        assert_eq!(found(&result, "pure_writes_are_lowest"), Some(true));
        assert_eq!(found(&result, "four_kib_recovers"), Some(false));
        let cost = mix().cost(&[geometry()]);
        assert!(done.written_bytes <= cost.written_bytes, "{done:?} {cost:?}");
        assert!(result.notes.is_empty(), "{:?}", result.notes);
    }

    #[test]
    fn a_drive_that_reads_and_writes_at_the_same_time_carries_most_in_the_middle() {
        let (result, _) = run(&mix(), geometry(), model(true));
        assert_eq!(found(&result, "middle_mixes_carry_more"), Some(true));
        let answer = result.answer().join("\n");
        assert!(
            answer.contains("Found here: from 32 KiB up the middle mixes carry more"),
            "{answer}"
        );
        assert!(answer.contains("Not found here: 4 KiB falls"), "{answer}");
    }

    #[test]
    fn block_sizes_that_a_drive_can_not_do_are_left_out_with_the_reason() {
        let drive = Geometry { block_bytes: 4096, transfer_max_bytes: 128 << 10, ..geometry() };
        let (result, _) = run(&mix(), drive, model(false));
        let skipped: Vec<u64> = result.skipped.iter().map(|(block, _)| *block).collect();
        assert_eq!(skipped, [512, 1 << 20]);
        assert_eq!(found(&result, "small_blocks_fall_and_recover"), None);
        let answer = result.answer().join("\n");
        assert!(
            answer.contains("Blocks of 512 B were left out: model is addressed in"),
            "{answer}"
        );
        assert!(answer.contains("takes 131 kB at once at most"), "{answer}");
    }

    #[test]
    fn the_region_is_written_whole_before_and_nothing_is_done_twice() {
        let folder = tempfile::tempdir().unwrap();
        let region = (3 << 20) + 4096;
        let mix = Mix {
            scope: Scope { region: Some(region), ..scope(20) },
            blocks: vec![4096],
            read_percents: vec![100, 50],
            ..Mix::default()
        };
        let drives = || vec![geometry(), geometry()];
        let (first, done) = run_in(folder.path(), drives(), model(false), |lab| mix.run(lab));
        assert!(covers(&done, 0, region) && covers(&done, 1, region));
        assert_eq!(first.as_ref().unwrap().preparation.written_bytes, 2 * region);
        let (second, again) = run_in(folder.path(), drives(), model(false), |lab| mix.run(lab));
        assert_eq!(second.unwrap(), first.unwrap());
        assert_eq!(again, Done::default());
        assert!(folder.path().join("mix/result.json").exists());
    }

    #[test]
    fn failed_commands_and_a_drive_that_can_not_be_written_are_said() {
        let mut count = 0;
        let failing: Model = Box::new(move |_, now| {
            count += 1;
            if count % 50 == 0 {
                Err(DeviceError::Medium)
            } else {
                Ok(now + Duration::from_micros(10))
            }
        });
        let one = Mix { blocks: vec![4096], read_percents: vec![100], prepare: false, ..mix() };
        let (result, done) = run(&one, geometry(), failing);
        assert_eq!(done.written_bytes, 0);
        assert!(result.points[0].errors > 0);
        let answer = result.answer().join("\n");
        assert!(answer.contains("4 KiB, 100/0:") && answer.contains("medium error"), "{answer}");
        assert!(answer.contains("Nothing was written before"), "{answer}");
        let folder = tempfile::tempdir().unwrap();
        let drive = Geometry { writable: false, ..geometry() };
        let (error, _) = run_in(folder.path(), vec![drive], model(false), |lab| mix().run(lab));
        assert!(error.unwrap_err().to_string().contains("open it for writing"));
    }
}
