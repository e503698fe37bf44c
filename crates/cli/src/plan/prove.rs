//! `plan --prove`: designs recorded on simulated drives, in virtual time.

use std::ops::ControlFlow;

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use plan::answer::Answer;
use plan::explain;
use plan::mission::Progress;
use plan::trial::{Budget, Finding, Proofs, Trial, Unproved, of_answer};
use plan::{Candidate, Requirement};
use report::planned::proof;

use crate::{printer, progress};

/// Runs the trials of all designs that have an answer: all of each if `long`, else what takes at most a minute. Prints what came of them
/// if `shown`.
///
/// # Errors
/// If a mission can't be run, or standard output is gone.
pub fn prove(
    requirement: &Requirement,
    answer: &Answer,
    candidates: &[Candidate],
    long: bool,
    shown: bool,
) -> Result<Proofs> {
    let mut budget = if long { Budget::unlimited() } else { Budget::default() };
    let mut proofs = Proofs::default();
    let all = of_answer(requirement, answer, candidates);
    let count = all.len();
    for (number, (design, trial)) in (1..).zip(all) {
        let drive = design.drive.clone();
        let trial = trial.and_then(|trial| match budget.is_spent() {
            true => Err(Unproved::WorkSpent),
            false => Ok(trial),
        });
        let text = match trial {
            Ok(trial) => {
                let bar = progress::mission_bar(true);
                let finding =
                    run(&trial, &mut budget, &bar, &format!("{number} of {count}: {drive}"))
                        .with_context(|| format!("proving the plan of {drive}"))?;
                proofs.findings.push((drive, finding));
                proofs.findings.last().map(proof::text)
            }
            Err(why) => {
                proofs.unproved.push((drive, why));
                proofs.unproved.last().map(proof::unproved_text)
            }
        };
        if let Some(text) = text.filter(|_| shown) {
            printer::text(&text)?;
        }
    }
    Ok(proofs)
}

fn run(trial: &Trial, budget: &mut Budget, bar: &ProgressBar, what: &str) -> Result<Finding> {
    let finding = trial.run(budget, |drives, progress: Progress<'_>| {
        bar.set_position(1000 * progress.at.as_nanos() / progress.duration.as_nanos().max(1));
        let drives = explain::drives(drives as u32);
        let (at, of) = (progress.at, progress.duration);
        progress::say(bar, &format!("{what}, {drives}, {at} of {of} recorded"));
        ControlFlow::Continue(())
    })?;
    bar.finish_and_clear();
    Ok(finding)
}
