//! `neighbours`: what a sequential writer does to somebody else's random reads: on the same namespace, on another one,
//! in another NVM Set, or on another drive.

use std::fmt;

use base::{Geometry, Rate};
use load::measurement::{LatencySummary, PERCENTILES};
use load::workload::{Blocks, Pattern, Stream};
use load::{Verb, Workload};
use serde::{Deserialize, Serialize};

use super::Scope;
use super::pace::kept;
use super::preparation::Preparation;
use super::trouble::{iops, latency, told, troubles};
use crate::answer::{Answer, Figure, Unit};
use crate::cost::Cost;
use crate::lab::{Lab, LabError, Step};

const NAME: &str = "neighbours";

/// Samples that 99.9999 % needs: a hundred beyond it.
const SIX_NINES_SAMPLES: f64 = 1e8;

/// A read that is this much slower than alone is disturbed; less is noise.
const DISTURBED: f64 = 1.1;

/// What the reader and the writer share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// The namespace, and the region.
    Same,
    /// The drive, in different namespaces.
    OtherNamespace,
    /// The drive, in different NVM Sets.
    OtherSet,
    /// Nothing but the machine.
    OtherDrive,
}

impl Relation {
    /// Its name among steps and figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::OtherNamespace => "other-namespace",
            Self::OtherSet => "other-set",
            Self::OtherDrive => "other-drive",
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Same => "on the same namespace",
            Self::OtherNamespace => "on another namespace of the drive",
            Self::OtherSet => "in another NVM Set of the drive",
            Self::OtherDrive => "on another drive",
        })
    }
}

/// The experiment's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    /// Where, and how long each point takes.
    pub scope: Scope,
    /// Who is read, by place in the bank.
    pub reader: u16,
    /// Who is written, by place in the bank, and what they share with the reader. One at a time.
    pub writers: Vec<(Relation, u16)>,
    /// Reads under way, each a point.
    pub depths: Vec<u32>,
    /// Bytes of each read.
    pub read_block_bytes: u64,
    /// Bytes of each write.
    pub write_block_bytes: u64,
    /// Writes under way.
    pub write_depth: u32,
    /// What the writer writes; None for as fast as it can.
    pub write_rate: Option<Rate>,
    /// Write what is read once before.
    pub prepare: bool,
}

impl Default for Neighbours {
    fn default() -> Self {
        Self {
            scope: Scope::default(),
            reader: 0,
            writers: vec![(Relation::Same, 0)],
            depths: vec![1, 2, 4, 8, 16, 32],
            read_block_bytes: 4096,
            write_block_bytes: 128 << 10,
            write_depth: 8,
            write_rate: None,
            prepare: true,
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeighboursResult {
    /// The drive that is read.
    pub reader: String,
    /// Bytes of each read.
    pub read_block_bytes: u64,
    /// What writers were to write, in bytes a second; None for as fast as they could.
    pub write_rate: Option<f64>,
    /// What was done before.
    pub preparation: Preparation,
    /// The reader alone, by depth.
    pub alone: Vec<ReadPoint>,
    /// The reader beside each writer.
    pub beside: Vec<Beside>,
    /// What went wrong.
    pub notes: Vec<String>,
}

/// The reader beside one writer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// What they share.
    pub relation: Relation,
    /// The drive that is written.
    pub writer: String,
    /// What the writer writes alone, in bytes a second.
    pub write_alone_bytes_per_s: f64,
    /// By depth of the reads.
    pub points: Vec<ReadPoint>,
}

/// Reads at one depth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadPoint {
    /// Reads under way.
    pub depth: u32,
    /// Reads a second.
    pub iops: f64,
    /// From the intended start to the answer.
    pub response: LatencySummary,
    /// From submission to the answer.
    pub service: LatencySummary,
    /// What the writer wrote meanwhile, in bytes a second; 0 without one.
    pub write_bytes_per_s: f64,
    /// How long measuring would have to take until 99.9999 % is known, in nanoseconds; None without reads.
    pub six_nines_ns: Option<u64>,
    /// Commands that failed.
    pub errors: u64,
    /// The harness may have been the limit.
    pub harness_limited: bool,
}

impl Neighbours {
    /// What it costs, at most where writes are concerned.
    pub fn cost(&self, drives: &[Geometry]) -> Cost {
        let scope = self.scope.fitted(drives);
        let reader = drives.get(usize::from(self.reader)).map_or(&[][..], std::slice::from_ref);
        let mut cost =
            if self.prepare { Preparation::cost(&scope, reader) } else { Cost::default() };
        let depths = self.depths.len() as u64;
        cost = cost.and(scope.points_cost(depths, 0.0, 1.0));
        let points = self.writers.len() as u64 * (depths + 1);
        let share = self.write_rate.map_or(1.0, |rate| rate.0 / scope.write_guess.0);
        cost = cost.and(scope.points_cost(points, share, 1.0));
        cost.written_bytes += points * u64::from(self.write_depth) * self.write_block_bytes;
        cost
    }

    /// Reads alone, then beside each writer.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn run(&self, lab: &mut Lab<'_>) -> Result<NeighboursResult, LabError> {
        let drives = lab.drives().to_vec();
        self.suits(&drives)?;
        let scope = self.scope.fitted(&drives);
        let preparation = if self.prepare {
            Preparation::make(lab, &scope, &[self.reader])?
        } else {
            Preparation::left_out()
        };
        let mut notes = Vec::new();
        let mut alone = Vec::new();
        for &depth in &self.depths {
            let name = format!("alone-d{depth}");
            let step = lab.step(NAME, &name, &self.workload(&scope, &name, Some(depth), None))?;
            notes.extend(troubles(&format!("reads alone, depth {depth}"), &step));
            alone.push(point(depth, &step));
        }
        let mut beside = Vec::new();
        for &(relation, writer) in &self.writers {
            let of = |depth: &str| format!("{}-{writer}-{depth}", relation.name());
            let name = of("writer");
            let workload = self.workload(&scope, &name, None, Some(writer));
            let step = lab.step(NAME, &name, &workload)?;
            notes.extend(troubles(&format!("the writer {relation} alone"), &step));
            let write_alone_bytes_per_s = step.measurement.rate().0;
            let mut points = Vec::new();
            for &depth in &self.depths {
                let name = of(&format!("d{depth}"));
                let workload = self.workload(&scope, &name, Some(depth), Some(writer));
                let step = lab.step(NAME, &name, &workload)?;
                let words = format!("reads beside a writer {relation}, depth {depth}");
                notes.extend(troubles(&words, &step));
                points.push(point(depth, &step));
            }
            let writer = drives[usize::from(writer)].name.clone();
            beside.push(Beside { relation, writer, write_alone_bytes_per_s, points });
        }
        let result = NeighboursResult {
            reader: drives[usize::from(self.reader)].name.clone(),
            read_block_bytes: self.read_block_bytes,
            write_rate: self.write_rate.map(|rate| rate.0),
            preparation,
            alone,
            beside,
            notes,
        };
        lab.keep(NAME, &result)?;
        Ok(result)
    }

    fn suits(&self, drives: &[Geometry]) -> Result<(), LabError> {
        let unsuitable = |reason| Err(LabError::Unsuitable { experiment: NAME, reason });
        let writers = self.writers.iter().map(|(_, writer)| *writer);
        for drive in writers.chain([self.reader]) {
            if usize::from(drive) >= drives.len() {
                return unsuitable(format!(
                    "there is no drive {drive}: the bank has {}, numbered from 0",
                    drives.len()
                ));
            }
        }
        for &(relation, writer) in &self.writers {
            if (relation == Relation::Same) != (writer == self.reader) {
                return unsuitable(format!(
                    "drive {writer} can't be a writer {relation} while drive {} is read: name another relation or drive",
                    self.reader
                ));
            }
            let drive = &drives[usize::from(writer)];
            if !drive.writable {
                return unsuitable(format!(
                    "{} is to be written and open for reading only: open it for writing",
                    drive.name
                ));
            }
        }
        Ok(())
    }

    fn workload(
        &self,
        scope: &Scope,
        name: &str,
        depth: Option<u32>,
        writer: Option<u16>,
    ) -> Workload {
        let reads = depth.map(|depth| Stream {
            name: "reads".to_owned(),
            drives: vec![self.reader],
            pattern: Pattern::Random,
            block: Blocks::of(self.read_block_bytes),
            read: 1,
            depth,
            ..Stream::default()
        });
        let writes = writer.map(|writer| Stream {
            name: "writes".to_owned(),
            drives: vec![writer],
            pattern: Pattern::Sequential,
            block: Blocks::of(self.write_block_bytes),
            write: 1,
            depth: self.write_depth,
            rate: self.write_rate.map(|rate| kept(rate.0)),
            ..Stream::default()
        });
        scope.point(name, reads.into_iter().chain(writes).collect())
    }
}

fn point(depth: u32, step: &Step) -> ReadPoint {
    let measurement = &step.measurement;
    let reads = measurement.result("reads", Verb::Read);
    let iops = reads.map_or(0.0, |reads| reads.commands_per_s);
    let writes = measurement.result("writes", Verb::Write);
    ReadPoint {
        depth,
        iops,
        response: reads.map(|reads| reads.response.clone()).unwrap_or_default(),
        service: reads.map(|reads| reads.service.clone()).unwrap_or_default(),
        write_bytes_per_s: writes.map_or(0.0, |writes| writes.bytes_per_s),
        six_nines_ns: (iops > 0.0).then(|| (SIX_NINES_SAMPLES / iops * 1e9) as u64),
        errors: measurement.error_count(),
        harness_limited: measurement.harness.limited.is_some(),
    }
}

/// What a writer has left beside readers.
fn writer_left(least: f64, alone: f64) -> String {
    let (least_words, alone_words) = (Rate(least), Rate(alone));
    if least <= alone {
        format!(
            "the writer keeps {least_words} of the {alone_words} that it writes alone, at least"
        )
    } else if least <= alone * (1.0 + SAME) {
        format!("the writer is not slowed: {least_words} at least, {alone_words} alone")
    } else {
        format!(
            "the writer writes {least_words} at least and wrote {alone_words} alone, before: the drives were in another state then, so \
             what readers cost it is not known"
        )
    }
}

/// Rates this close together, as a share, are the same.
const SAME: f64 = 0.05;

/// The highest percentile that is known of both, with its two latencies in nanoseconds.
fn highest_known(a: &LatencySummary, b: &LatencySummary) -> Option<(f64, u64, u64)> {
    let known = |p: f64| Some((p, a.percentile(p)?, b.percentile(p)?));
    PERCENTILES.into_iter().rev().find_map(known)
}

impl NeighboursResult {
    fn pairs<'a>(
        &'a self,
        beside: &'a Beside,
    ) -> impl Iterator<Item = (&'a ReadPoint, &'a ReadPoint)> {
        self.alone.iter().filter_map(|alone| {
            Some((alone, beside.points.iter().find(|point| point.depth == alone.depth)?))
        })
    }

    fn in_words(&self, beside: &Beside) -> Vec<String> {
        let mut said = Vec::new();
        let ratios: Vec<f64> = self
            .pairs(beside)
            .filter(|(alone, _)| alone.iops > 0.0)
            .map(|(alone, point)| point.iops / alone.iops)
            .collect();
        let Some(least) = ratios.iter().copied().reduce(f64::min) else {
            return vec![format!("Beside a writer {} no reads were measured.", beside.relation)];
        };
        let most = ratios.iter().copied().fold(least, f64::max);
        let writes: Vec<f64> = beside.points.iter().map(|p| p.write_bytes_per_s).collect();
        let least_write = writes.iter().copied().fold(f64::INFINITY, f64::min);
        let verdict = if least * DISTURBED < 1.0 { "disturbs" } else { "doesn't disturb" };
        said.push(format!(
            "A sequential writer {} {verdict} the reads: {:.0} to {:.0} % of the reads a second are left, over the depths; {}.",
            beside.relation,
            100.0 * least,
            100.0 * most,
            writer_left(least_write, beside.write_alone_bytes_per_s)
        ));
        for (alone, point) in self.pairs(beside) {
            let median = (alone.response.percentile(50.0), point.response.percentile(50.0));
            let mut line = format!(
                "Depth {}: {} reads a second become {}, the median {} becomes {}",
                alone.depth,
                iops(alone.iops),
                iops(point.iops),
                latency(median.0),
                latency(median.1)
            );
            if let Some((percentile, before, after)) =
                highest_known(&alone.response, &point.response)
            {
                line += &format!(
                    ", {percentile} % {} becomes {} ({:.1} x)",
                    latency(Some(before)),
                    latency(Some(after)),
                    after as f64 / before.max(1) as f64
                );
            }
            said.push(line + ".");
        }
        said
    }
}

impl Answer for NeighboursResult {
    fn question(&self) -> &'static str {
        "What does a neighbour that writes do to random reads?"
    }

    fn answer(&self) -> Vec<String> {
        let mut said = Vec::new();
        if let (Some(first), Some(last)) = (self.alone.first(), self.alone.last()) {
            said.push(format!(
                "Alone, {} does {} random reads a second at depth {} (median {}) and {} at depth {} (median {}).",
                self.reader,
                iops(first.iops),
                first.depth,
                latency(first.response.percentile(50.0)),
                iops(last.iops),
                last.depth,
                latency(last.response.percentile(50.0))
            ));
        }
        said.extend(self.beside.iter().flat_map(|beside| self.in_words(beside)));
        let points = || self.alone.iter().chain(self.beside.iter().flat_map(|b| &b.points));
        let unknown = points().filter(|p| p.response.percentile(99.9999).is_none());
        if let Some(slowest) = unknown.filter_map(|point| point.six_nines_ns).max() {
            said.push(format!(
                "99.9999 % needs {} reads and is not known at every depth: the slowest point would have to run for {}.",
                iops(SIX_NINES_SAMPLES),
                base::Duration::from_nanos(slowest)
            ));
        }
        said.extend(self.preparation.sentence());
        said.extend(told(&self.preparation.notes));
        said.extend(told(&self.notes));
        said
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for point in &self.alone {
            figures.extend(point_figures("neighbours.alone", "Reads alone", point));
        }
        for beside in &self.beside {
            let name = format!("neighbours.{}", beside.relation.name());
            let words = format!("Reads beside a writer {}", beside.relation);
            figures.push(Figure::new(
                &format!("{name}.write_alone"),
                &format!("The writer {} alone", beside.relation),
                beside.write_alone_bytes_per_s,
                Unit::BytesPerSecond,
            ));
            for (alone, point) in self.pairs(beside) {
                figures.extend(point_figures(&name, &words, point));
                figures.push(Figure::new(
                    &format!("{name}.d{}.iops_left", point.depth),
                    &format!("{words}, depth {}: reads a second that are left", point.depth),
                    (alone.iops > 0.0).then(|| 100.0 * point.iops / alone.iops),
                    Unit::Percent,
                ));
                figures.push(Figure::new(
                    &format!("{name}.d{}.write", point.depth),
                    &format!("{words}, depth {}: what the writer writes", point.depth),
                    point.write_bytes_per_s,
                    Unit::BytesPerSecond,
                ));
            }
        }
        figures
    }
}

fn point_figures(name: &str, words: &str, point: &ReadPoint) -> Vec<Figure> {
    let mut figures = vec![Figure::new(
        &format!("{name}.d{}.iops", point.depth),
        &format!("{words}, depth {}: reads a second", point.depth),
        point.iops,
        Unit::CommandsPerSecond,
    )];
    for (percentile, suffix) in [
        (50.0, "p50"),
        (99.0, "p99"),
        (99.9, "p99_9"),
        (99.99, "p99_99"),
        (99.999, "p99_999"),
        (99.9999, "p99_9999"),
    ] {
        let value = point.response.percentile(percentile).map(|ns| ns as f64);
        let note = if value.is_none() { "too few reads to know" } else { "" };
        figures.push(
            Figure::new(
                &format!("{name}.d{}.{suffix}", point.depth),
                &format!("{words}, depth {}: {percentile} % within", point.depth),
                value,
                Unit::Nanoseconds,
            )
            .noted(note),
        );
    }
    figures
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use base::{Duration, Instant, Operation};

    use super::*;
    use crate::experiment::testing::{Done, Model, geometry, run_in, scope};

    /// Reads take 100 us, or 250 us within 5 ms of a write on the same drive; a write takes 1 ms.
    fn disturbed() -> Model {
        let mut written: BTreeMap<u16, Instant> = BTreeMap::new();
        Box::new(move |command, now| {
            let drive = command.drive.0;
            if matches!(command.operation, Operation::Write { .. }) {
                written.insert(drive, now);
                return Ok(now + Duration::from_millis(1));
            }
            let recent =
                written.get(&drive).is_some_and(|at| now.since(*at) < Duration::from_millis(5));
            Ok(now + Duration::from_micros(if recent { 250 } else { 100 }))
        })
    }

    #[test]
    fn a_writer_keeps_no_more_than_it_writes_alone() {
        let said = |least| writer_left(least, 181e6);
        assert!(said(100e6).starts_with("the writer keeps 100 MB/s"), "{}", said(100e6));
        assert!(said(185e6).starts_with("the writer is not slowed"), "{}", said(185e6));
        assert!(said(246e6).contains("in another state then"), "{}", said(246e6));
    }

    fn both() -> Neighbours {
        Neighbours {
            scope: scope(200),
            writers: vec![(Relation::Same, 0), (Relation::OtherDrive, 1)],
            depths: vec![1, 8],
            ..Neighbours::default()
        }
    }

    fn run(options: &Neighbours) -> (NeighboursResult, Done) {
        let folder = tempfile::tempdir().unwrap();
        let drives = vec![geometry(), geometry()];
        let (result, done) = run_in(folder.path(), drives, disturbed(), |lab| options.run(lab));
        (result.unwrap(), done)
    }

    #[test]
    fn a_writer_on_the_same_namespace_takes_its_share_and_one_on_another_drive_nothing() {
        let (result, done) = run(&both());
        for (alone, depth) in result.alone.iter().zip([1.0, 8.0]) {
            assert!((alone.iops / (depth * 10e3) - 1.0).abs() < 0.05, "{alone:?}");
        }
        let left: Vec<f64> = result
            .figures()
            .into_iter()
            .filter(|figure| figure.name.ends_with("iops_left"))
            .map(|figure| figure.value.unwrap())
            .collect();
        for (left, expected) in left.iter().zip([40.0, 40.0, 100.0, 100.0]) {
            assert!((left - expected).abs() < 2.0, "{left} for {expected}");
        }
        let answer = result.answer().join("\n");
        assert!(answer.contains("on the same namespace disturbs the reads"), "{answer}");
        assert!(answer.contains("on another drive doesn't disturb the reads"), "{answer}");
        assert!(answer.contains("the median 100 us becomes 250 us"), "{answer}");
        // Eight writes of 128 KiB a millisecond.
        let writes = result.beside[0].write_alone_bytes_per_s;
        assert!((writes / (8.0 * 131_072e3) - 1.0).abs() < 0.05, "{writes}");
        // Estimates of cost are made with 1 GB/s, and this drive writes 1.05 GB/s.
        let cost = both().cost(&[geometry(), geometry()]);
        assert!(done.written_bytes <= cost.written_bytes + cost.written_bytes / 10, "{cost:?}");
    }

    #[test]
    fn percentiles_without_enough_reads_are_not_known_and_the_time_they_need_is_said() {
        let (result, _) = run(&both());
        let alone = &result.alone[0];
        assert_eq!(alone.response.percentile(99.9), None, "2,000 reads have 2 beyond it");
        let needed = alone.six_nines_ns.unwrap() as f64;
        assert!((needed / 1e13 - 1.0).abs() < 0.05, "10^8 reads at 10,000 a second: {needed}");
        let figures = result.figures();
        let six = figures.iter().find(|f| f.name == "neighbours.alone.d1.p99_9999").unwrap();
        assert_eq!((six.value, six.note.as_str()), (None, "too few reads to know"));
        let answer = result.answer().join("\n");
        assert!(answer.contains("99.9999 % needs 100 M reads"), "{answer}");
    }

    #[test]
    fn a_writer_with_a_rate_of_its_own_keeps_it() {
        let options = Neighbours { write_rate: Some(Rate(50e6)), ..both() };
        let (result, _) = run(&options);
        for point in &result.beside[0].points {
            assert!((point.write_bytes_per_s / 50e6 - 1.0).abs() < 0.05, "{point:?}");
        }
    }

    #[test]
    fn a_second_run_in_the_same_folder_does_no_io() {
        let folder = tempfile::tempdir().unwrap();
        let run = || {
            let drives = vec![geometry(), geometry()];
            run_in(folder.path(), drives, disturbed(), |lab| both().run(lab))
        };
        let (first, _) = run();
        let (second, again) = run();
        assert_eq!(first.unwrap(), second.unwrap());
        assert_eq!(again, Done::default());
    }

    #[test]
    fn roles_that_can_not_be_are_refused_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        for (reader, writers, expected) in [
            (0, vec![(Relation::Same, 1)], "drive 1 can't be a writer on the same namespace"),
            (0, vec![(Relation::OtherSet, 0)], "can't be a writer in another NVM Set"),
            (2, vec![], "there is no drive 2"),
            (0, vec![(Relation::OtherDrive, 1)], "open for reading only"),
        ] {
            let reading = Geometry { writable: false, ..geometry() };
            let options = Neighbours { reader, writers, ..both() };
            let drives = vec![geometry(), reading];
            let (error, done) = run_in(folder.path(), drives, disturbed(), |lab| options.run(lab));
            let error = error.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert_eq!(done, Done::default());
        }
    }
}
