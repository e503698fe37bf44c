//! `viewers`: how many readers of a constant rate a bank carries without one block coming too late, alone and beside
//! a writer. Every viewer reads a sequence of its own; viewers begin spread over the time that one block lasts.

mod answer;
mod miss;

use std::str::FromStr;

use base::{ByteSize, Duration, Geometry, ParseUnitError, Rate};
use load::measurement::LatencySummary;
use load::quantity::{Size, Time};
use load::workload::{Blocks, Pattern, Stop, Stream};
use load::{Verb, Workload};
use serde::{Deserialize, Serialize};

pub use miss::{FirstMiss, MissCause};

use super::Scope;
use super::pace::kept;
use super::preparation::Preparation;
use super::trouble::troubles;
use crate::analysis::Search;
use crate::analysis::search::SearchOptions;
use crate::cost::Cost;
use crate::lab::{Lab, LabError, Step};
use crate::rig::Go;
use miss::Circumstances;

const NAME: &str = "viewers";

/// A trial lasts for so many blocks of each viewer, at least: a queue must have time to grow.
const TRIAL_BLOCKS: u64 = 10;
/// Readers of one drive, at most (the most jobs that a stream may have).
const VIEWERS_MAX: u64 = 10_000;
/// Commands under way when the ceiling is measured.
const CEILING_DEPTH: u32 = 32;
/// The first number tried, as a share of what the ceiling would carry.
const FIRST_SHARE: f64 = 0.9;
/// The ingest writes in blocks of this size, so many under way.
const INGEST_BLOCK_BYTES: u64 = 1 << 20;
const INGEST_DEPTH: u32 = 8;
/// The ingest has its rate if it reaches this share of it.
const INGEST_KEPT: f64 = 0.99;
/// The ingest has this part of the region, its end, to itself.
const INGEST_PART: u64 = 4;
/// Numbers that a search of a hundred steps of resolution asks for, about.
const NUMBERS_GUESS: u64 = 10;

/// What a writer ingests beside the viewers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ingest {
    /// This rate, on all drives together.
    Rate(Rate),
    /// This share of what the drives write alone, from 0 to 1.
    Share(f64),
}

impl FromStr for Ingest {
    type Err = String;

    /// A rate (`200MB/s`) or a share of what the drives write alone (`50%`).
    fn from_str(text: &str) -> Result<Self, String> {
        let Some(percent) = text.strip_suffix('%') else {
            let rate: Rate = text.parse().map_err(|error: ParseUnitError| error.to_string())?;
            return positive(rate).map(Self::Rate);
        };
        let percent = percent.trim().parse().ok().filter(|p: &f64| *p > 0.0 && *p <= 100.0);
        let percent = percent.ok_or("a share of the writing is more than 0 % and at most 100 %")?;
        Ok(Self::Share(percent / 100.0))
    }
}

fn positive(rate: Rate) -> Result<Rate, String> {
    let is = rate.0 > 0.0 && rate.0.is_finite();
    if is { Ok(rate) } else { Err("give a rate above 0".to_owned()) }
}

impl Default for Ingest {
    fn default() -> Self {
        Self::Rate(Rate(200e6))
    }
}

/// The experiment's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Viewers {
    /// Where, and how long each trial takes.
    pub scope: Scope,
    /// What each viewer reads. The default is that of a film in H.264 at 1080p, which takes 1.5 to 4 MB/s.
    pub rate: Rate,
    /// Bytes of each read.
    pub block_bytes: u64,
    /// The writer of the second search; None leaves that out.
    pub ingest: Option<Ingest>,
    /// Trials without a miss that confirm a number.
    pub passes: u32,
    /// Trials of a number, at most.
    pub tries: u32,
    /// How finely the number is sought, in percent of what the drives carry at best.
    pub resolution_percent: f64,
    /// Memory for blocks, which limits the number of viewers.
    pub buffers_max_bytes: u64,
    /// Write the region once before, so that viewers find something.
    pub prepare: bool,
}

impl Default for Viewers {
    fn default() -> Self {
        Self {
            scope: Scope::default(),
            rate: Rate(2.5e6),
            block_bytes: 512 << 10,
            ingest: Some(Ingest::default()),
            passes: 2,
            tries: 3,
            resolution_percent: 1.0,
            buffers_max_bytes: 2 << 30,
            prepare: true,
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewersResult {
    /// The drives' names.
    pub drives: Vec<String>,
    /// What each viewer reads, in bytes a second.
    pub rate_bytes_per_s: f64,
    /// Bytes of each read.
    pub block_bytes: u64,
    /// A block later than this is late: the time it lasts, in nanoseconds.
    pub deadline_ns: u64,
    /// Length of each trial in nanoseconds.
    pub trial_ns: u64,
    /// Trials without a miss that confirmed a number, of how many at most.
    pub passes_of: (u32, u32),
    /// What was done before.
    pub preparation: Preparation,
    /// What the drives read at best in such blocks from random places, in bytes a second.
    pub ceiling_bytes_per_s: f64,
    /// Viewers alone.
    pub alone: Limit,
    /// Viewers beside an ingest, if that was asked for and possible.
    pub ingesting: Option<Limit>,
    /// What went wrong.
    pub notes: Vec<String>,
}

/// The greatest number of viewers, on all drives together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// What the writer beside them wrote, in bytes a second; None if there was none.
    pub ingest_bytes_per_s: Option<f64>,
    /// The greatest number that was confirmed; 0 if none was.
    pub viewers: u64,
    /// The least number above it that was refused; None if no more could be tried.
    pub refused: Option<u64>,
    /// Why the drives may carry more than that, if they may.
    pub lower_bound: Option<String>,
    /// Every trial, in order.
    pub trials: Vec<ViewersTrial>,
    /// The first failure of the least number that was refused.
    pub first_miss: Option<FirstMiss>,
    /// Response times of the confirmed number's last trial.
    pub response: Option<LatencySummary>,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewersTrial {
    /// Viewers on all drives together.
    pub viewers: u64,
    /// No block was late, none failed, and the ingest kept its rate.
    pub held: bool,
    /// Late blocks until the trial was ended.
    pub missed: u64,
    /// Failed commands.
    pub errors: u64,
    /// What the viewers read, in bytes a second.
    pub bytes_per_s: f64,
    /// What the ingest wrote, in bytes a second.
    pub ingest_bytes_per_s: Option<f64>,
    /// The slowest block, in nanoseconds.
    pub slowest_ns: Option<u64>,
}

/// Where things are and how long they take, once the drives are known.
#[derive(Clone, Debug)]
struct Setting {
    scope: Scope,
    drives: u64,
    block: u64,
    /// What a viewer reads, in bytes a second.
    rate: f64,
    deadline: Duration,
    trial: Duration,
    /// Unit of the viewers' places in bytes.
    unit: u64,
    /// The viewers' part of the region, from its beginning, in bytes.
    read_bytes: u64,
    /// The ingest's part behind it.
    ingest_bytes: u64,
    ingest_block: u64,
    /// Viewers of each drive, at most, and why.
    most: (u64, &'static str),
}

impl Viewers {
    /// One that writes nothing: viewers alone, on the drives as they are.
    pub fn read_only() -> Self {
        Self { ingest: None, prepare: false, ..Self::default() }
    }

    /// What it costs, at most where writes are concerned.
    pub fn cost(&self, drives: &[Geometry]) -> Cost {
        let scope = self.scope.fitted(drives);
        let mut cost =
            if self.prepare { Preparation::cost(&scope, drives) } else { Cost::default() };
        let Ok(setting) = self.setting(drives) else { return cost };
        // A search begins near the answer: doubled twice, then halved to the resolution, every number tried until sure.
        let resolution = (100.0 / self.resolution_percent.max(0.01)).log2().ceil() as u64;
        let trials = (NUMBERS_GUESS.max(resolution + 3)) * u64::from(self.tries);
        let timed = Scope { point: setting.trial, ..scope.clone() };
        cost = cost.and(scope.points_cost(1, 0.0, 1.0)).and(timed.points_cost(trials, 0.0, 1.0));
        if let Some(ingest) = self.ingest.filter(|_| drives.iter().all(|drive| drive.writable)) {
            let rate = match ingest {
                Ingest::Rate(rate) => rate.0,
                Ingest::Share(share) => {
                    cost = cost.and(scope.points_cost(1, 1.0, 0.0));
                    share * scope.write_guess.0
                }
            };
            let share = rate / scope.write_guess.0;
            cost = cost.and(timed.points_cost(trials, share, 1.0));
            let under_way = u64::from(INGEST_DEPTH) * setting.ingest_block * setting.drives;
            cost.written_bytes += (trials + 1) * under_way;
        }
        cost
    }

    /// Searches the number of viewers, alone and then beside the ingest.
    ///
    /// # Errors
    /// [`LabError`]; drives that can't be written are searched alone, which is said.
    pub fn run(&self, lab: &mut Lab<'_>) -> Result<ViewersResult, LabError> {
        let drives = lab.drives().to_vec();
        let setting = self.setting(&drives)?;
        let all: Vec<u16> = (0..drives.len() as u16).collect();
        let preparation = if self.prepare {
            Preparation::make(lab, &setting.scope, NAME, &all)?
        } else {
            Preparation::left_out(lab)?
        };
        let mut notes = Vec::new();
        if setting.block != self.block_bytes {
            notes.push(format!(
                "Blocks are of {} instead of {}, because of what the drives take.",
                ByteSize(setting.block),
                ByteSize(self.block_bytes)
            ));
        }
        let ceiling = lab.point(NAME, "ceiling", &setting.ceiling())?;
        notes.extend(troubles("the ceiling of reads", &ceiling));
        let ceiling = ceiling.measurement.rate().0;
        let alone = self.search(lab, &setting, ceiling, None, &mut notes)?;
        let ingesting = match (self.ingest, drives.iter().find(|drive| !drive.writable)) {
            (None, _) => None,
            (Some(_), Some(drive)) => {
                notes.push(format!(
                    "Viewers beside an ingest were left out: {} is open for reading only.",
                    drive.name
                ));
                None
            }
            (Some(ingest), None) => {
                let rate = match ingest {
                    Ingest::Rate(rate) => rate.0,
                    Ingest::Share(share) => {
                        let step = lab.point(NAME, "ingest-ceiling", &setting.ingest_ceiling())?;
                        notes.extend(troubles("the ceiling of writes", &step));
                        step.measurement.rate().0 * share
                    }
                };
                Some(self.search(lab, &setting, ceiling, Some(rate), &mut notes)?)
            }
        };
        let result = ViewersResult {
            drives: drives.into_iter().map(|drive| drive.name).collect(),
            rate_bytes_per_s: self.rate.0,
            block_bytes: setting.block,
            deadline_ns: setting.deadline.as_nanos(),
            trial_ns: setting.trial.as_nanos(),
            passes_of: (self.passes, self.tries),
            preparation,
            ceiling_bytes_per_s: ceiling,
            alone,
            ingesting,
            notes,
        };
        lab.keep(NAME, &result)?;
        Ok(result)
    }

    fn setting(&self, drives: &[Geometry]) -> Result<Setting, LabError> {
        let unsuitable = |reason: String| LabError::Unsuitable { experiment: NAME, reason };
        if !(self.rate.0 > 0.0 && self.rate.0.is_finite()) {
            return Err(unsuitable("a viewer's rate must be more than nothing".to_owned()));
        }
        let scope = self.scope.fitted(drives);
        // Places are multiples of 4 KiB, as those of files are, so that viewers don't all fall on the same dies.
        let unit = drives.iter().map(|drive| u64::from(drive.block_bytes)).fold(4096, u64::max);
        let transfer = drives.iter().map(|d| u64::from(d.transfer_max_bytes)).min().unwrap_or(unit);
        let region = drives.iter().map(|drive| scope.bytes(drive, unit)).min().unwrap_or(0);
        let ingest_bytes =
            if self.ingest.is_some() { region / INGEST_PART / unit * unit } else { 0 };
        let read_bytes = region - ingest_bytes;
        let block = self.block_bytes.min(transfer).max(unit) / unit * unit;
        if block > read_bytes || (self.ingest.is_some() && ingest_bytes < unit) {
            return Err(unsuitable(format!(
                "a region of {} has no room for viewers of {} blocks: give a larger one",
                ByteSize(region),
                ByteSize(block)
            )));
        }
        let deadline = self.rate.time_for(block);
        let trial = self.scope.point.max(Duration::from_nanos(deadline.as_nanos() * TRIAL_BLOCKS));
        let count = drives.len() as u64;
        let most = [
            (VIEWERS_MAX, "a stream has no more readers of one drive"),
            (self.buffers_max_bytes / block / count.max(1), "the memory for blocks was used up"),
            (read_bytes / unit, "the region has no more places"),
        ];
        let most = most.into_iter().min_by_key(|(most, _)| *most).unwrap_or((1, ""));
        Ok(Setting {
            scope,
            drives: count,
            block,
            rate: self.rate.0,
            deadline,
            trial,
            unit,
            read_bytes,
            ingest_bytes,
            ingest_block: INGEST_BLOCK_BYTES.min(transfer).min(ingest_bytes.max(unit)) / unit
                * unit,
            most: (most.0.max(1), most.1),
        })
    }

    fn search(
        &self,
        lab: &mut Lab<'_>,
        setting: &Setting,
        ceiling: f64,
        ingest: Option<f64>,
        notes: &mut Vec<String>,
    ) -> Result<Limit, LabError> {
        let carried = (ceiling / self.rate.0 / setting.drives as f64) as u64;
        // The search counts in steps of its resolution.
        let stride = ((carried as f64 * self.resolution_percent / 100.0) as u64).max(1);
        let limit = (setting.most.0 / stride).max(1);
        let start = ((carried as f64 * FIRST_SHARE) as u64 / stride).clamp(1, limit);
        let options = SearchOptions { start, limit, passes: self.passes, tries: self.tries };
        let mut search = Search::new(options)
            .map_err(|e| LabError::Unsuitable { experiment: NAME, reason: e.to_string() })?;
        let mut seen = Seen::default();
        while let Some(number) = search.next() {
            let viewers = (number * stride).min(setting.most.0);
            let attempt = search.trials().iter().filter(|trial| trial.n == number).count();
            let kind = if ingest.is_some() { "ingest" } else { "alone" };
            let name = format!("{kind}-{viewers}-{attempt}");
            let workload = setting.trial(&name, viewers, attempt, self.rate, ingest);
            let step = lab.point_until(NAME, &name, &workload, &mut |interval| {
                // The first late block decides; the rest of the trial would be wasted.
                let late = interval.first_miss.is_some() && !interval.warm_up;
                if late { Go::Stop } else { Go::On }
            })?;
            let starved = ingest.and_then(|asked| setting.starved(&step, asked));
            let trial = setting.judge(&step, viewers, starved, ceiling);
            let held = trial.held;
            let about = (setting.deadline, setting.rate, ceiling, starved);
            seen.add(trial, &step, about, notes);
            search
                .report(number, held)
                .map_err(|e| LabError::Unsuitable { experiment: NAME, reason: e.to_string() })?;
        }
        let outcome = search.outcome();
        let on_all = |number: u64| (number * stride).min(setting.most.0) * setting.drives;
        let viewers = outcome.map_or(0, |outcome| on_all(outcome.greatest));
        let refused = outcome.and_then(|outcome| outcome.refused).map(on_all);
        let first_miss = seen.first_miss.filter(|_| refused.is_some());
        let lower_bound = match (&first_miss, refused) {
            (_, None) => Some(format!("no more were tried, because {}", setting.most.1)),
            (Some(miss), _) if miss.cause == MissCause::Harness => Some(miss.cause.to_string()),
            _ => None,
        };
        let response = seen.response.filter(|(most, _)| *most == viewers);
        Ok(Limit {
            ingest_bytes_per_s: ingest,
            viewers,
            refused,
            lower_bound,
            trials: seen.trials,
            first_miss,
            response: response.map(|(_, summary)| summary),
        })
    }
}

/// What the trials of a search have shown so far.
#[derive(Default)]
struct Seen {
    trials: Vec<ViewersTrial>,
    /// Of the trial with the fewest viewers that failed.
    first_miss: Option<FirstMiss>,
    /// Of the trial with the most viewers that held: how many, and how soon they were served.
    response: Option<(u64, LatencySummary)>,
}

impl Seen {
    /// Adds a trial: its deadline, a viewer's rate, the drives' best read rate, and how far the writer beside it fell short.
    fn add(
        &mut self,
        trial: ViewersTrial,
        step: &Step,
        (deadline, rate, ceiling, starved): (Duration, f64, f64, Option<(f64, f64)>),
        notes: &mut Vec<String>,
    ) {
        let viewers = trial.viewers;
        // The first miss explains a failed trial. Only trials that held report their troubles here.
        if trial.held {
            notes.extend(troubles(&format!("{viewers} viewers"), step));
            let result = step.measurement.result("viewers", Verb::Read);
            let greater = self.response.as_ref().is_none_or(|(most, _)| *most <= viewers);
            if let Some(result) = result.filter(|_| greater) {
                self.response = Some((viewers, result.response.clone()));
            }
        } else if self.first_miss.as_ref().is_none_or(|miss| viewers < miss.viewers) {
            let asked = viewers as f64 * rate;
            let about = Circumstances { viewers, deadline, ceiling, asked, starved };
            self.first_miss = Some(miss::judge(step, about));
        }
        self.trials.push(trial);
    }
}

impl Setting {
    /// What the drives read at best, in blocks of this size.
    fn ceiling(&self) -> Workload {
        let stream = Stream {
            name: "ceiling".to_owned(),
            pattern: Pattern::Random,
            block: Blocks::of(self.block),
            read: 1,
            depth: CEILING_DEPTH,
            size: Some(Size(self.read_bytes)),
            align: Some(Size(self.unit)),
            ..Stream::default()
        };
        self.scope.point("ceiling", vec![stream])
    }

    fn ingest_ceiling(&self) -> Workload {
        self.scope.point("ingest-ceiling", vec![self.ingest(None)])
    }

    /// The writer, at a rate on each drive, or as fast as it can.
    fn ingest(&self, rate: Option<f64>) -> Stream {
        Stream {
            name: "ingest".to_owned(),
            block: Blocks::of(self.ingest_block),
            align: Some(Size(self.unit)),
            write: 1,
            depth: INGEST_DEPTH,
            from: Some(Size(self.read_bytes)),
            size: Some(Size(self.ingest_bytes)),
            rate: rate.map(kept),
            ..Stream::default()
        }
    }

    /// So many viewers on each drive for the time of a trial.
    fn trial(
        &self,
        name: &str,
        viewers: u64,
        attempt: usize,
        rate: Rate,
        ingest: Option<f64>,
    ) -> Workload {
        // An odd distance between places: with a power of two they would all lie on the same dies of the flash.
        let apart = (self.read_bytes / self.unit / viewers).max(1);
        let apart = if apart.is_multiple_of(2) { apart - 1 } else { apart };
        let size = (apart * viewers * self.unit).max(self.block);
        let stream = Stream {
            name: "viewers".to_owned(),
            pattern: Pattern::Sequential,
            block: Blocks::of(self.block),
            align: Some(Size(self.unit)),
            read: 1,
            size: Some(Size(size)),
            jobs: viewers as u32,
            rate: Some(kept(rate.0)),
            deadline: Some(Time(self.deadline)),
            ..Stream::default()
        };
        let mut streams = vec![stream];
        streams.extend(ingest.map(|rate| self.ingest(Some(rate / self.drives as f64))));
        let stop = Stop { time: Some(Time(self.trial)), ..Stop::default() };
        Workload { stop, seed: attempt as u64 + 1, ..self.scope.point(name, streams) }
    }

    /// What the ingest reached and should have, if it fell short.
    fn starved(&self, step: &Step, asked: f64) -> Option<(f64, f64)> {
        let measurement = &step.measurement;
        let reached = measurement.result("ingest", Verb::Write).map_or(0.0, |r| r.bytes_per_s);
        // What is under way at the end is not short of anything.
        let under_way = u64::from(INGEST_DEPTH) * self.ingest_block * self.drives;
        let seconds = Duration::from_nanos(measurement.elapsed_ns).as_secs_f64();
        let missing = if seconds > 0.0 { under_way as f64 / seconds } else { asked };
        (reached + missing < asked * INGEST_KEPT).then_some((reached, asked))
    }

    fn judge(
        &self,
        step: &Step,
        viewers: u64,
        starved: Option<(f64, f64)>,
        ceiling: f64,
    ) -> ViewersTrial {
        let measurement = &step.measurement;
        let result = measurement.result("viewers", Verb::Read);
        let missed = result.map_or(0, |result| result.missed);
        let errors = measurement.error_count();
        let viewers = viewers * self.drives;
        // A viewer waits for one block at most without being late, so more of them than viewers are late.
        let overdue = measurement.unsent > viewers + u64::from(INGEST_DEPTH) * self.drives;
        let moved = result.is_some_and(|result| result.count > 0);
        let bytes_per_s = result.map_or(0.0, |result| result.bytes_per_s);
        // A trial may end before the queue of what is more than the drives read has made a block late.
        let asked = viewers as f64 * self.rate;
        let overloaded = asked > ceiling.max(bytes_per_s);
        ViewersTrial {
            viewers,
            held: moved
                && missed == 0
                && errors == 0
                && !overdue
                && !overloaded
                && starved.is_none(),
            missed,
            errors,
            bytes_per_s,
            ingest_bytes_per_s: measurement.result("ingest", Verb::Write).map(|r| r.bytes_per_s),
            slowest_ns: result.and_then(|result| result.response.max_ns),
        }
    }
}

#[cfg(test)]
mod tests;
