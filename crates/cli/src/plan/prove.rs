//! `plan --prove`: designs recorded on simulated drives, in virtual time.

use std::ops::ControlFlow;

use anyhow::{Context, Result};
use plan::answer::{Answer, Design};
use plan::mission::Progress;
use plan::trial::{Finding, Trial, trials};
use plan::{Candidate, Requirement};
use report::planned::proof;

use crate::{printer, progress};

/// A trial's finding, with its drive's name.
pub type Proved = (String, Finding);

/// Runs the trials of all designs that have an answer. What can't be simulated is said, and left out.
///
/// # Errors
/// If a mission can't be run.
pub fn prove(
    requirement: &Requirement,
    answer: &Answer,
    candidates: &[Candidate],
    shown: bool,
) -> Result<Vec<Proved>> {
    let mut proved = Vec::new();
    let planned = |(design, _): &(&Design, _)| design.array.is_some();
    for (design, spec) in answer.simulated(candidates).filter(planned) {
        let spec = match spec {
            Ok(spec) => spec,
            Err(_) if design.is_described() => {
                printer::tell(&format!(
                    "longtake: the plan of {} is not proved: a size and a rate are not enough to simulate a drive",
                    design.drive
                ));
                continue;
            }
            Err(error) => {
                printer::tell(&format!(
                    "longtake: {} can't be simulated, so its plan is not proved: {error}; `longtake fit` makes a model of \
                     what was measured",
                    design.drive
                ));
                continue;
            }
        };
        for trial in trials(requirement, design, &spec) {
            if trial.too_many() {
                printer::tell(&format!(
                    "longtake: {} drives of {} are more than one array has, so that what they hold is not proved by recording",
                    trial.mission.drives.len(),
                    design.drive
                ));
                continue;
            }
            let finding = run(design, &trial, shown)
                .with_context(|| format!("proving the plan of {}", design.drive))?;
            let found = (design.drive.clone(), finding);
            if shown {
                printer::text(&proof::text(&found))?;
            }
            proved.push(found);
        }
    }
    Ok(proved)
}

fn run(design: &Design, trial: &Trial, shown: bool) -> Result<Finding> {
    let bar = progress::mission_bar(shown);
    let finding = trial.run(|drives, progress: Progress<'_>| {
        bar.set_position(1000 * progress.at.as_nanos() / progress.duration.as_nanos().max(1));
        progress::say(
            &bar,
            &format!("{drives} x {}, {} of virtual time", design.drive, progress.at),
        );
        ControlFlow::Continue(())
    })?;
    bar.finish_and_clear();
    Ok(finding)
}
