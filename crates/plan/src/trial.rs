//! A design put to the test: recorded on simulated drives with the required load over the day, on the planned number of drives and on
//! one less.
//!
//! A trial of a ring answers two questions:
//!
//! - Are the drives fast enough? The trial uses as many drives as the rate alone needs, in their slowest phase: written over without a
//!   rest before it begins, so that no spare flash is left erased, or empty and filled first.
//! - Is enough held? The trial uses all drives, empty at the start, until the ring has wrapped.
//!
//! A trial of a mission answers one: it fits, and nothing is lost.
//!
//! Where the answer depends on when drives do their maintenance, and one drive less loses nothing either, both are recorded in more draws
//! of those times.
//!
//! The cost of a trial is counted in simulated events, so a [`Budget`] ends it at the same moment on every machine. Within a budget, a
//! trial of the rate ends when the drives have reached their steady state; any other trial uses the whole budget.

mod budget;
mod draws;
mod enough;
mod proofs;

use std::fmt;
use std::ops::ControlFlow;

use base::Duration;
use serde::Serialize;
use ssd::spec::Media;
use ssd::{Spec, Start};

use crate::answer::Design;
use crate::explain;
use crate::limits::Limit;
use crate::mission::{LossCause, Mission, MissionError, MissionOutcome, Progress};
use crate::phases::Stage;
use crate::proof::{Proof, prove};
use crate::requirement::Requirement;

pub use budget::Budget;
pub use draws::{Drawn, draw, draws};
pub use enough::{Enough, Planned};
pub use proofs::{Proofs, Unproved, of_answer};

/// How often every byte of the drives is written in a trial of the rate. If drives are slowest in the first pass, that pass comes
/// before it. One lap is too few for those: a load that is slightly more than drives sustain uses up the blocks that were erased before it
/// began only at the rate by which it exceeds what they sustain. Of 200 random requirements (`xtask planned`), one drive less meets eight
/// for a lap and not for three. Drives that begin overwritten have no such blocks.
const LAPS: f64 = 3.3;
const FIRST_LAP: f64 = 1.0;
/// A trial of the rate lasts this long at least: all of it, and until its drives are in their steady state.
const RATE_TIME_MIN: Duration = Duration::from_secs(180);
const STEADY_TIME_MIN: Duration = Duration::from_secs(60);
/// A drive that is written over, and didn't begin so, has reached its steady state after this many times the capacity of its spare flash:
/// by then no spare block is left from before, and the cache has been emptied.
pub const SPARE_TIMES: f64 = 1.2;
/// What a drive writes for itself came this often by then.
const UPKEEPS: f64 = 3.0;

/// Time constants of its heat for which a drive is written to: it is then within a hundredth of the temperature at which it stays.
const TIME_CONSTANTS: f64 = 5.0;
/// A trial of what is held goes on for this long after it could be, so that the ring has come round.
const HELD_TIMES: f64 = 1.1;
/// What a trial is to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// That the drives are fast enough.
    Rate,
    /// That nothing is lost and enough is held, on all drives of the design.
    Whole,
}

/// A recording that answers a question.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The question.
    pub question: Question,
    /// The recording.
    pub mission: Mission,
    /// What has to be held in the end; zero if that isn't asked.
    pub held: Duration,
    /// When its drives have reached their steady state, if that answers it.
    pub steady: Option<Duration>,
    /// What it is planned from, to try it on more drives where these are not enough.
    pub planned: Option<Planned>,
}

/// How much of its recording a trial simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// All of it.
    Whole,
    /// Until the drives were in their steady state, in which they stay.
    SteadyState,
    /// Its beginning, which tells nothing of the rest.
    Beginning,
}

/// What came of a trial.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What was asked.
    pub question: Question,
    /// What had to be held.
    pub held: Duration,
    /// How long the whole trial is.
    pub planned: Duration,
    /// Whether drives for parity are planned, too: a proof records on those for data alone.
    pub has_parity: bool,
    /// On as many drives, and on one less.
    pub proof: Proof,
    /// In how many draws of what happens by chance one less loses something, if it didn't in the first.
    pub draws: Option<Drawn>,
    /// How many are enough, if these are not.
    pub enough: Option<Enough>,
}

/// What a trial says of the number of drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialVerdict {
    /// As many do, one less doesn't.
    Confirmed,
    /// As many don't.
    TooFew,
    /// One less does too.
    TooMany,
    /// It was cut short before it could tell.
    CutShort,
}

/// The trials of a design on drives made like this: none if the design has no answer.
pub fn trials(requirement: &Requirement, design: &Design, spec: &Spec) -> Vec<Trial> {
    let Some(array) = &design.array else { return Vec::new() };
    let on = |drives, start: &Start| Mission::planned(requirement, design, spec, drives, start);
    let planned = |start: Start| {
        let (requirement, design, spec) = (requirement.clone(), design.clone(), spec.clone());
        Some(Planned { requirement, design, spec, start })
    };
    let whole = on(array.data_drives, &Start::Empty);
    if !requirement.wraps() {
        let trial = |mission| Trial {
            question: Question::Whole,
            mission,
            held: Duration::ZERO,
            steady: None,
            planned: planned(Start::Empty),
        };
        return whole.map(trial).into_iter().collect();
    }
    let need = design.needs.iter().find(|need| need.limit == Limit::Rate);
    let fast = need.and_then(|need| need.drives).unwrap_or(array.data_drives);
    // A cache that shrinks while drives fill up for the first time is slower than writing over stale data ever is.
    let (start, first) = match array.slowest {
        Stage::Overwrite => (Start::Overwritten, 0.0),
        _ => (Start::Empty, FIRST_LAP),
    };
    let of_rate = on(fast, &start).map(|mut mission| {
        let bytes = spec.capacity_bytes as f64 * f64::from(fast);
        let lap_s = bytes / (array.take.stored_bytes_per_s / requirement.duty.peak());
        let time = |laps: f64, least: Duration| {
            let time = Duration::from_secs_f64(requirement.duty.span_of(lap_s * laps));
            time.max(least).max(warm_after(spec))
        };
        mission.duration = time(first + LAPS, RATE_TIME_MIN);
        mission.endless = true;
        let laps = first + steady_bytes(spec, &start) / spec.capacity_bytes as f64;
        let steady = Some(time(laps, STEADY_TIME_MIN));
        let planned = planned(start);
        Trial { question: Question::Rate, mission, held: Duration::ZERO, steady, planned }
    });
    let of_whole = whole.filter(|_| array.binds == Limit::Capacity).map(|mut mission| {
        let held = mission.duration;
        mission.duration = Duration::from_secs_f64(held.as_secs_f64() * HELD_TIMES);
        let planned = planned(Start::Empty);
        Trial { question: Question::Whole, mission, held, steady: None, planned }
    });
    of_rate.into_iter().chain(of_whole).collect()
}

/// Time after which a drive is as warm as it gets.
fn warm_after(spec: &Spec) -> Duration {
    let constant_s = spec.heat.map_or(0.0, |heat| heat.time_constant_s());
    Duration::from_secs_f64(TIME_CONSTANTS * constant_s)
}

/// Bytes after which a drive that is written over, and was filled if it began empty, is in its steady state.
fn steady_bytes(spec: &Spec, start: &Start) -> f64 {
    let upkeep = spec.upkeep.map_or(0.0, |upkeep| upkeep.every_bytes as f64 * UPKEEPS);
    if *start == Start::Overwritten {
        return upkeep;
    }
    let spare = match spec.flash.media {
        Media::Nand => spec.physical_bytes().saturating_sub(spec.capacity_bytes),
        Media::InPlace => 0,
    };
    let cached = spec.cache.map_or(0, |cache| cache.static_bytes + cache.dynamic_bytes);
    (SPARE_TIMES * (spare + cached) as f64).max(upkeep)
}

impl Trial {
    /// Runs it, as far as the budget lasts, and on more drives if these are not enough. `watch` is told how many drives it runs on and
    /// how far it has come, and may break it off.
    ///
    /// # Errors
    /// [`MissionError`] if it can't be run.
    pub fn run(
        &self,
        budget: &mut Budget,
        mut watch: impl FnMut(usize, Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Finding, MissionError> {
        let mut mission = self.mission.clone();
        mission.work_max = budget.left();
        let shorter = self.steady.filter(|_| mission.work_max.is_some());
        mission.duration = mission.duration.min(shorter.unwrap_or(mission.duration));
        let proof = prove(&mission, &mut watch)?;
        budget.spend(proof.work());
        let planned = self.mission.duration;
        let (question, held) = (self.question, self.held);
        let has_parity = self.planned.as_ref().is_some_and(|plan| plan.requirement.parity > 0);
        let mut finding =
            Finding { question, held, planned, has_parity, proof, draws: None, enough: None };
        if finding.verdict() == TrialVerdict::TooMany && draws(&self.mission) > 1 {
            self.draw(&mut finding, budget, &mut watch)?;
        }
        match finding.verdict() {
            TrialVerdict::TooFew => finding.enough = self.enough(&finding, budget, &mut watch)?,
            TrialVerdict::TooMany if finding.extent() == Extent::SteadyState => {
                finding.proof.without = Some(self.on_one_less(budget, &mut watch)?);
            }
            _ => {}
        }
        Ok(finding)
    }

    /// On one drive less in as many draws as it takes to tell, as far as the budget lasts; if it isn't enough, in as many on all of them.
    fn draw(
        &self,
        finding: &mut Finding,
        budget: &mut Budget,
        watch: &mut impl FnMut(usize, Progress<'_>) -> ControlFlow<()>,
    ) -> Result<(), MissionError> {
        let mut mission = self.mission.clone();
        mission.drives.pop();
        mission.work_max = budget.left();
        let drives = mission.drives.len();
        let drawn = draw(&mission, draws(&self.mission), |progress| watch(drives, progress))?;
        budget.spend(drawn.work);
        if drawn.enough() == Some(false) {
            finding.proof.without.clone_from(&drawn.loss);
            let mut mission = self.mission.clone();
            mission.work_max = budget.left();
            let all = draw(&mission, drawn.tried, |progress| watch(drives + 1, progress))?;
            budget.spend(all.work);
            if all.enough() == Some(false) {
                finding.proof.with = all.loss.unwrap_or_else(|| finding.proof.with.clone());
            }
        }
        finding.draws = Some(drawn);
        Ok(())
    }

    /// All of it on one drive less, as far as the budget lasts: one that is nearly enough loses nothing for long.
    fn on_one_less(
        &self,
        budget: &mut Budget,
        watch: &mut impl FnMut(usize, Progress<'_>) -> ControlFlow<()>,
    ) -> Result<MissionOutcome, MissionError> {
        let mut mission = self.mission.clone();
        mission.drives.pop();
        mission.work_max = budget.left();
        let drives = mission.drives.len();
        let outcome = mission.run(|progress| match progress.first_loss {
            Some(_) => ControlFlow::Break(()),
            None => watch(drives, progress),
        })?;
        budget.spend(outcome.work);
        Ok(outcome)
    }
}

impl Finding {
    /// Whether an array came out as required.
    pub fn does(&self, outcome: &MissionOutcome) -> bool {
        outcome.whole && outcome.first_loss.is_none() && outcome.retention >= self.held
    }

    /// How much of the recording was simulated on as many drives as planned.
    pub fn extent(&self) -> Extent {
        match &self.proof.with {
            with if !with.whole => Extent::Beginning,
            with if with.fed < self.planned => Extent::SteadyState,
            _ => Extent::Whole,
        }
    }

    /// What it says of the number of drives.
    pub fn verdict(&self) -> TrialVerdict {
        let Proof { with, without, .. } = &self.proof;
        let cut = |outcome: &MissionOutcome| !outcome.whole && outcome.first_loss.is_none();
        match without {
            _ if cut(with) => TrialVerdict::CutShort,
            _ if !self.does(with) => TrialVerdict::TooFew,
            Some(less) if cut(less) => TrialVerdict::CutShort,
            Some(less) if self.does(less) => match &self.draws {
                Some(drawn) if drawn.enough().is_none() => TrialVerdict::CutShort,
                _ => TrialVerdict::TooMany,
            },
            _ => TrialVerdict::Confirmed,
        }
    }

    /// What an array came to, in words.
    fn told(&self, outcome: &MissionOutcome) -> String {
        match &outcome.first_loss {
            Some(loss) if matches!(loss.cause, LossCause::Filling { .. }) => {
                return loss.to_string();
            }
            Some(loss) => return format!("loss {loss}"),
            None => {}
        }
        let time = explain::seconds(outcome.fed.as_secs_f64());
        let planned = explain::seconds(self.planned.as_secs_f64());
        if self.extent() == Extent::Beginning || !outcome.whole {
            return format!("no loss in the first {time} of {planned}");
        }
        if outcome.fed < self.planned {
            return format!("no loss in {time}, after which drives stay in their steady state");
        }
        if self.held == Duration::ZERO {
            return format!("no loss in {}", outcome.time);
        }
        let held = explain::seconds(outcome.retention.as_secs_f64());
        format!("no loss in {}, {held} held", outcome.time)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Proof { drives, with, without } = &self.proof;
        let all = explain::drives(*drives as u32);
        write!(f, "{all} {}: {}", self.verdict(), self.told(with))?;
        if let Some(less) = without {
            let draws = self.draws.as_ref().map_or(String::new(), ToString::to_string);
            write!(f, "; on {}{draws}: {}", drives - 1, self.told(less))?;
        }
        match &self.enough {
            Some(Enough::Drives(drives, outcome)) => {
                write!(f, "; {drives} drives are enough: {}", self.told(outcome))
            }
            Some(Enough::MoreThan(drives)) => write!(f, "; nor are {drives} drives"),
            Some(Enough::Undecided(drives)) => write!(f, "; {drives} drives not decided"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for TrialVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Confirmed => "confirmed",
            Self::TooFew => "not enough",
            Self::TooMany => "are one too many",
            Self::CutShort => "not decided",
        })
    }
}
