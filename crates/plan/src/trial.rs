//! A design put to the test: recorded on simulated drives with the load that is required over the day, on as many drives as planned
//! and on one less.
//!
//! A ring has two questions. That drives are fast enough shows on as many as the rate alone asks for, in the phase that they are slowest
//! in: full from the beginning, so that everything is written over stale data, or empty and filled first. That enough is held shows on all drives, from empty ones on, once the ring has come round. A
//! mission has one: it fits and nothing is lost.

use std::fmt;
use std::ops::ControlFlow;

use base::Duration;
use format::superblock::MEMBERS_MAX;
use serde::Serialize;
use ssd::{Spec, Start};

use crate::answer::Design;
use crate::explain;
use crate::limits::Limit;
use crate::mission::{Mission, MissionError, MissionOutcome, Progress};
use crate::phases::Stage;
use crate::proof::{Proof, prove};
use crate::requirement::Requirement;

/// How often every byte of the drives is written in a trial of the rate: stale data once over, and a little more; before that, where the
/// first pass is what drives are slowest in, that too.
const LAPS: f64 = 1.1;
const FIRST_LAP: f64 = 1.0;
/// A trial of the rate lasts this long at least.
const RATE_TIME_MIN: Duration = Duration::from_secs(60);
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
}

/// What came of a trial.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What was asked.
    pub question: Question,
    /// What had to be held.
    pub held: Duration,
    /// On as many drives, and on one less.
    pub proof: Proof,
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
    /// It was broken off before it could tell.
    BrokenOff,
}

/// Whether every finding confirmed the number of drives of its design.
pub fn all_confirmed(findings: &[(String, Finding)]) -> bool {
    findings.iter().all(|(_, finding)| finding.verdict() == TrialVerdict::Confirmed)
}

/// The trials of a design on drives made like this: none if the design has no answer.
pub fn trials(requirement: &Requirement, design: &Design, spec: &Spec) -> Vec<Trial> {
    let Some(array) = &design.array else { return Vec::new() };
    let on = |drives, start| Mission::planned(requirement, design, spec, drives, &start);
    let whole = on(array.data_drives, Start::Empty);
    if !requirement.wraps() {
        let trial = |mission| Trial { question: Question::Whole, mission, held: Duration::ZERO };
        return whole.map(trial).into_iter().collect();
    }
    let need = design.needs.iter().find(|need| need.limit == Limit::Rate);
    let fast = need.and_then(|need| need.drives).unwrap_or(array.data_drives);
    // A cache that shrinks while drives fill up for the first time is slower than writing over stale data ever is.
    let (start, laps) = match array.slowest {
        Stage::Overwrite => (Start::Full, LAPS),
        _ => (Start::Empty, FIRST_LAP + LAPS),
    };
    let of_rate = on(fast, start).map(|mut mission| {
        let bytes = spec.capacity_bytes as f64 * f64::from(fast);
        let lap_s = bytes / (array.take.stored_bytes_per_s / requirement.duty.peak());
        let time = Duration::from_secs_f64(requirement.duty.span_of(lap_s * laps));
        mission.duration = time.max(RATE_TIME_MIN);
        Trial { question: Question::Rate, mission, held: Duration::ZERO }
    });
    let of_whole = whole.filter(|_| array.binds == Limit::Capacity).map(|mut mission| {
        let held = mission.duration;
        mission.duration = Duration::from_secs_f64(held.as_secs_f64() * HELD_TIMES);
        Trial { question: Question::Whole, mission, held }
    });
    of_rate.into_iter().chain(of_whole).collect()
}

impl Trial {
    /// Whether it takes more drives than one array has members: several arrays side by side would have to be tried one by one.
    pub fn too_many(&self) -> bool {
        let members = self.mission.drives.iter().map(|slot| slot.namespaces.len());
        members.sum::<usize>() > MEMBERS_MAX
    }

    /// Runs it. `watch` is told on how many drives it runs and how it goes, and may break it off.
    ///
    /// # Errors
    /// [`MissionError`] if it can't be run.
    pub fn run(
        &self,
        watch: impl FnMut(usize, Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Finding, MissionError> {
        let proof = prove(&self.mission, watch)?;
        Ok(Finding { question: self.question, held: self.held, proof })
    }
}

impl Finding {
    /// Whether an array came out as required.
    pub fn does(&self, outcome: &MissionOutcome) -> bool {
        outcome.first_loss.is_none() && outcome.retention >= self.held
    }

    /// What it says of the number of drives.
    pub fn verdict(&self) -> TrialVerdict {
        let Proof { with, without, .. } = &self.proof;
        if !self.does(with) {
            return if with.whole || with.first_loss.is_some() {
                TrialVerdict::TooFew
            } else {
                TrialVerdict::BrokenOff
            };
        }
        match without {
            Some(less) if self.does(less) => TrialVerdict::TooMany,
            Some(less) if !less.whole && less.first_loss.is_none() => TrialVerdict::BrokenOff,
            _ => TrialVerdict::Confirmed,
        }
    }

    /// What an array came to, in words.
    fn told(&self, outcome: &MissionOutcome) -> String {
        match &outcome.first_loss {
            Some(loss) => format!("loss {loss}"),
            None if self.held == Duration::ZERO => format!("no loss in {}", outcome.time),
            None => {
                let held = explain::seconds(outcome.retention.as_secs_f64());
                format!("no loss in {}, {held} held", outcome.time)
            }
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Proof { drives, with, without } = &self.proof;
        let all = explain::drives(*drives as u32);
        write!(f, "{all} {}: {}", self.verdict(), self.told(with))?;
        match without {
            Some(less) => write!(f, "; on {}: {}", drives - 1, self.told(less)),
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
            Self::BrokenOff => "not decided",
        })
    }
}
