//! How many drives are enough where the planned number is not: the same recording on more and more of them.

use std::ops::ControlFlow;

use base::Duration;
use format::superblock::MEMBERS_MAX;
use ssd::{Spec, Start};

use super::{Budget, Finding, Question, Trial};
use crate::answer::Design;
use crate::mission::{Mission, MissionError, MissionOutcome, Progress};
use crate::requirement::Requirement;

/// What recordings on any number of drives are planned from.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What is required.
    pub requirement: Requirement,
    /// The design on trial.
    pub design: Design,
    /// Its drives.
    pub spec: Spec,
    /// How they are at the start.
    pub start: Start,
}

/// The fewest drives, more than planned, that are enough.
#[derive(Clone, Debug)]
pub enum Enough {
    /// So many, with what came of recording on them. On one less something was lost.
    Drives(usize, Box<MissionOutcome>),
    /// None of those that were tried, up to so many.
    MoreThan(usize),
    /// The work was spent before the recording on so many drives had shown it.
    Undecided(usize),
}

impl Planned {
    fn on(&self, drives: usize) -> Option<Mission> {
        let Self { requirement, design, spec, start } = self;
        Mission::planned(requirement, design, spec, drives as u32, start)
    }
}

/// Drives up to which it is worth looking where so many were planned.
fn most(planned: usize, members_each: usize) -> usize {
    (2 * planned + 2).min(MEMBERS_MAX / members_each.max(1))
}

impl Trial {
    /// The fewest drives, more than planned, on which it comes out as required; None if the trial has no plan for other numbers.
    ///
    /// # Errors
    /// [`MissionError`] if one can't be run.
    pub(super) fn enough(
        &self,
        finding: &Finding,
        budget: &mut Budget,
        watch: &mut impl FnMut(usize, Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Option<Enough>, MissionError> {
        let planned = finding.proof.drives;
        let members_each = self.mission.drives.first().map_or(1, |slot| slot.namespaces.len());
        let most = most(planned, members_each);
        for drives in planned + 1..=most {
            if budget.is_spent() {
                return Ok(Some(Enough::Undecided(drives)));
            }
            let Some(mission) = self.on(drives, budget.left()) else { return Ok(None) };
            let outcome = mission.run(|progress| {
                let lost = progress.first_loss.is_some();
                let told = watch(drives, progress);
                if lost { ControlFlow::Break(()) } else { told }
            })?;
            budget.spend(outcome.work);
            if finding.does(&outcome) {
                return Ok(Some(Enough::Drives(drives, Box::new(outcome))));
            }
            if !outcome.whole && outcome.first_loss.is_none() {
                return Ok(Some(Enough::Undecided(drives)));
            }
        }
        Ok(Some(Enough::MoreThan(most)))
    }

    /// The same recording on so many drives, for as much work. How long it takes to write them all over grows with their number.
    fn on(&self, drives: usize, work_max: Option<u64>) -> Option<Mission> {
        let mut mission = self.planned.as_ref()?.on(drives)?;
        let longer = match self.question {
            Question::Rate => drives as f64 / self.mission.drives.len() as f64,
            Question::Whole => 1.0,
        };
        let steady = self.steady.filter(|_| work_max.is_some());
        let duration = self.mission.duration.min(steady.unwrap_or(self.mission.duration));
        mission.duration = Duration::from_secs_f64(duration.as_secs_f64() * longer);
        mission.endless = self.mission.endless;
        mission.work_max = work_max;
        Some(mission)
    }
}
