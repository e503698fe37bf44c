//! `neighbours`: what a sequential writer does to somebody else's random reads: on the same namespace, on another one,
//! in another NVM Set, or on another drive.

mod answer;
mod overwriting;

use std::fmt;

use base::latency::SAMPLES_BEYOND;
use base::{Duration, Geometry, Rate};
use load::measurement::LatencySummary;
use load::quantity::Time;
use load::workload::{Blocks, Pattern, Stop, Stream};
use load::{Interval, Verb, Workload};
use serde::{Deserialize, Serialize};

pub use overwriting::{Overwriting, Overwritten};

use super::Scope;
use super::mix::usable;
use super::pace::kept;
use super::preparation::Preparation;
use super::trouble::troubles;
use crate::cost::Cost;
use crate::lab::{Lab, LabError, Step};
use crate::rig::Go;

const NAME: &str = "neighbours";

/// Percentiles that can be looked for: those of a summary, from the median on.
pub const PERCENTILES: [f64; 8] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, HIGHEST];
const HIGHEST: f64 = 99.9999;

/// A point that is drawn out until a percentile is known takes so many times as long, at most, if nothing else is said.
const LONGEST_TIMES: u64 = 10;

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
    /// Then overwrite the reader's drive and the writers' before anything is measured; None to leave that out.
    pub overwrite: Option<Overwriting>,
    /// Draw each point with reads out until this percentile is known; None to measure for the time of a point.
    pub percentile: Option<f64>,
    /// How long a point that is drawn out may take; None for ten times a point.
    pub longest: Option<Duration>,
    /// Read in deterministic windows of the reader's NVM Sets, one for each point.
    pub deterministic: bool,
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
            overwrite: None,
            percentile: None,
            longest: None,
            deterministic: false,
        }
    }
}

/// Reads that have to be measured before a percentile is known.
pub fn samples_for(percent: f64) -> f64 {
    // What decimal fractions lose in binary is rounded off.
    (SAMPLES_BEYOND / (1.0 - percent / 100.0)).round()
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
    /// How the drives were overwritten then, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwritten: Option<Overwritten>,
    /// The percentile that points were drawn out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<f64>,
    /// Whether reads were measured in deterministic windows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deterministic: bool,
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
    /// Commands that failed.
    pub errors: u64,
    /// The harness may have been the limit.
    pub harness_limited: bool,
}

impl Neighbours {
    /// What it costs, at most where writes are concerned.
    pub fn cost(&self, drives: &[Geometry]) -> Cost {
        let scope = self.scope.fitted(drives);
        let before = self.written_before();
        let before = before.iter().filter_map(|drive| drives.get(usize::from(*drive)));
        let before: Vec<&Geometry> = before.collect();
        let prepared = before.iter().map(|d| Preparation::cost(&scope, std::slice::from_ref(d)));
        let mut cost =
            if self.prepare { prepared.fold(Cost::default(), Cost::and) } else { Cost::default() };
        if let Some(overwrite) = self.overwrite {
            cost = cost.and(overwrite.cost(&scope, &before));
        }
        let depths = self.depths.len() as u64;
        let drawn_out = Scope { point: self.longest(), ..scope.clone() };
        cost = cost.and(drawn_out.points_cost(depths, 0.0, 1.0));
        let writers = self.writers.len() as u64;
        let share = self.write_rate.map_or(1.0, |rate| rate.0 / scope.write_guess.0);
        cost = cost.and(scope.points_cost(writers, share, 0.0));
        cost = cost.and(drawn_out.points_cost(writers * depths, share, 1.0));
        let points = writers * (depths + 1);
        cost.written_bytes += points * u64::from(self.write_depth) * self.write_block_bytes;
        cost
    }

    /// How long a point with reads takes, at most.
    fn longest(&self) -> Duration {
        let point = self.scope.point;
        if self.percentile.is_none() {
            return point;
        }
        let usual = Duration::from_nanos(point.as_nanos().saturating_mul(LONGEST_TIMES));
        self.longest.unwrap_or(usual).max(point)
    }

    /// The drives that are written before anything is measured: the reader's, and if there is something to overwrite, the
    /// writers' too.
    fn written_before(&self) -> Vec<u16> {
        let writers = self.writers.iter().map(|(_, writer)| *writer);
        let mut drives = vec![self.reader];
        drives.extend(writers.filter(|_| self.overwrite.is_some()));
        drives.sort_unstable();
        drives.dedup();
        drives
    }

    /// Reads alone, then beside each writer.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn run(&self, lab: &mut Lab<'_>) -> Result<NeighboursResult, LabError> {
        let drives = lab.drives().to_vec();
        self.suits(&drives)?;
        if self.deterministic && !lab.begin_window(self.reader)? {
            let reason = format!(
                "{} has no deterministic windows (Predictable Latency Mode) that can be asked for: leave --deterministic out, or name a simulated drive with [simulated.predictable] alone",
                drives[usize::from(self.reader)].name
            );
            return Err(LabError::Unsuitable { experiment: NAME, reason });
        }
        let scope = self.scope.fitted(&drives);
        let before = self.written_before();
        let preparation = if self.prepare {
            Preparation::make(lab, &scope, NAME, &before)?
        } else {
            Preparation::left_out(lab)?
        };
        let mut notes = Vec::new();
        let overwritten = match self.overwrite {
            Some(overwrite) => Some(overwrite.make(lab, &scope, &before, &mut notes)?),
            None => None,
        };
        if overwritten.is_some() {
            lab.save();
        }
        let mut alone = Vec::new();
        for &depth in &self.depths {
            let words = format!("reads alone, depth {depth}");
            let name = format!("alone-d{depth}");
            alone.push(self.reads(lab, &scope, (&name, &words), depth, None, &mut notes)?);
        }
        let mut beside = Vec::new();
        for &(relation, writer) in &self.writers {
            beside.push(self.beside(lab, &scope, relation, writer, &mut notes)?);
        }
        let result = NeighboursResult {
            reader: drives[usize::from(self.reader)].name.clone(),
            read_block_bytes: self.read_block_bytes,
            write_rate: self.write_rate.map(|rate| rate.0),
            preparation,
            overwritten,
            percentile: self.percentile,
            deterministic: self.deterministic,
            alone,
            beside,
            notes,
        };
        lab.keep(NAME, &result)?;
        Ok(result)
    }

    /// The writer alone, then beside reads of every depth.
    fn beside(
        &self,
        lab: &mut Lab<'_>,
        scope: &Scope,
        relation: Relation,
        writer: u16,
        notes: &mut Vec<String>,
    ) -> Result<Beside, LabError> {
        let of = |depth: &str| format!("{}-{writer}-{depth}", relation.name());
        let name = of("writer");
        let workload = self.workload(scope, &name, None, Some(writer));
        let step = lab.point(NAME, &name, &workload)?;
        notes.extend(troubles(&format!("the writer {relation} alone"), &step));
        let write_alone_bytes_per_s = step.measurement.rate().0;
        let mut points = Vec::new();
        for &depth in &self.depths {
            let words = format!("reads beside a writer {relation}, depth {depth}");
            let name = of(&format!("d{depth}"));
            points.push(self.reads(lab, scope, (&name, &words), depth, Some(writer), notes)?);
        }
        let writer = lab.drives()[usize::from(writer)].name.clone();
        Ok(Beside { relation, writer, write_alone_bytes_per_s, points })
    }

    /// Reads of one depth, until the percentile that is looked for is known.
    fn reads(
        &self,
        lab: &mut Lab<'_>,
        scope: &Scope,
        (name, words): (&str, &str),
        depth: u32,
        writer: Option<u16>,
        notes: &mut Vec<String>,
    ) -> Result<ReadPoint, LabError> {
        let mut workload = self.workload(scope, name, Some(depth), writer);
        workload.stop = Stop { time: Some(Time(self.longest())), ..workload.stop };
        let enough = self.percentile.map(samples_for);
        let mut reads = 0;
        let mut watch = |interval: &Interval| {
            let fresh = interval.streams.get(&(READS, Verb::Read)).filter(|_| !interval.warm_up);
            reads += fresh.map_or(0, |stream| stream.response.count());
            let over = interval.start + interval.length >= scope.point + scope.warm_up;
            if over && enough.is_some_and(|enough| reads as f64 >= enough) {
                Go::Stop
            } else {
                Go::On
            }
        };
        let step = if self.deterministic {
            let (step, held) =
                lab.point_in_window(NAME, name, &workload, self.reader, &mut watch)?;
            if held == Some(false) {
                notes.push(format!(
                    "{words}: the deterministic window ended before the point did: measure for less time (--point, --longest), or read less"
                ));
            }
            step
        } else {
            lab.point_until(NAME, name, &workload, &mut watch)?
        };
        notes.extend(troubles(words, &step));
        Ok(point(depth, &step))
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
        let mut blocks = vec![self.read_block_bytes];
        blocks.extend(self.writers.first().map(|_| self.write_block_bytes));
        let (_, unfit) = usable(&blocks, &self.scope, drives);
        if let Some((block, why)) = unfit.first() {
            return unsuitable(format!(
                "blocks of {block} bytes can't be used, because {why}: give another block size, or a larger region"
            ));
        }
        if self.depths.is_empty() {
            return unsuitable("there is no depth to read at: give one".to_owned());
        }
        if let Some(drive) = drives
            .get(usize::from(self.reader))
            .filter(|drive| self.overwrite.is_some() && !drive.writable)
        {
            return unsuitable(format!(
                "{} is to be overwritten and open for reading only: open it for writing, or overwrite nothing",
                drive.name
            ));
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

/// The place of the reads among a workload's streams.
const READS: u16 = 0;

impl ReadPoint {
    /// How long measuring would have to take until a percentile is known; None without reads.
    pub fn time_for(&self, percent: f64) -> Option<Duration> {
        let seconds = samples_for(percent) / self.iops;
        (self.iops > 0.0).then(|| Duration::from_secs_f64(seconds))
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
        errors: measurement.error_count(),
        harness_limited: measurement.harness.limited.is_some(),
    }
}

#[cfg(test)]
mod tests;
