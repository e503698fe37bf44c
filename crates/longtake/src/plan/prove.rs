//! `plan --prove`: designs recorded on simulated drives, in virtual time.

use std::ops::ControlFlow;

use anyhow::{Context, Result};
use base::Duration;
use plan::answer::{Answer, Design};
use plan::mission::{Outcome, Progress};
use plan::trial::{Finding, Question, Trial, Verdict, trials};
use plan::{Candidate, Requirement};
use serde_json::{Value, json};
use ssd::Spec;

use crate::{outlet, progress};

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
    for design in answer.designs.iter().filter(|design| design.array.is_some()) {
        let Some(candidate) = candidates.iter().find(|c| c.profile.name == design.drive) else {
            continue;
        };
        let spec = match Spec::from_profile(&candidate.profile) {
            Ok(spec) => spec,
            Err(error) => {
                outlet::tell(&format!(
                    "longtake: {} can't be simulated, so its plan is not proved: {error}; `longtake fit` makes a model of \
                     what was measured",
                    design.drive
                ));
                continue;
            }
        };
        for trial in trials(requirement, design, &spec) {
            let finding = run(design, &trial, shown)
                .with_context(|| format!("proving the plan of {}", design.drive))?;
            if shown {
                outlet::text(&format!("\n{}: {}", design.drive, words(&finding)))?;
            }
            proved.push((design.drive.clone(), finding));
        }
    }
    Ok(proved)
}

fn run(design: &Design, trial: &Trial, shown: bool) -> Result<Finding> {
    let bar = progress::virtual_bar(trial.mission.duration, shown);
    let finding = trial.run(|drives, progress: Progress<'_>| {
        bar.set_position(progress.at.as_nanos() / 1_000_000_000);
        bar.set_message(format!("{drives} x {}", design.drive));
        ControlFlow::Continue(())
    })?;
    bar.finish_and_clear();
    Ok(finding)
}

/// Whether every one was confirmed.
pub fn all_confirmed(proved: &[Proved]) -> bool {
    proved.iter().all(|(_, finding)| finding.verdict() == Verdict::Confirmed)
}

/// A finding in words: what was asked, and what came of it.
fn words(finding: &Finding) -> String {
    let asked = match finding.question {
        Question::Rate => "fast enough",
        Question::Whole => "all of it",
    };
    format!("proved by recording, {asked}: {finding}")
}

/// A finding as JSON.
pub fn json(proved: &Proved) -> Value {
    let (drive, finding) = proved;
    json!({
        "drive": drive,
        "question": finding.question,
        "verdict": finding.verdict(),
        "drives": finding.proof.drives,
        "held_s": seconds(finding.held),
        "with": outcome(&finding.proof.with),
        "without": finding.proof.without.as_ref().map(outcome),
    })
}

/// What came of a mission, as JSON: bytes, seconds, bytes a second.
pub fn outcome(outcome: &Outcome) -> Value {
    let drives = outcome.drives.iter().map(|drive| {
        json!({
            "name": drive.name,
            "written_bytes": drive.written_bytes,
            "media_written_bytes": drive.media_written_bytes,
            "passes": drive.passes,
            "life_used": drive.life_used,
            "rated_used": drive.rated_used,
            "life_years": drive.life_years.is_finite().then_some(drive.life_years),
        })
    });
    let samples = outcome.samples.iter().map(|sample| {
        json!({
            "at_s": seconds(sample.at),
            "fill": sample.fill,
            "rates_bytes_per_s": sample.rates,
            "amplification": sample.amplification,
            "buffers_most": sample.buffers_most,
            "lost_bytes": sample.lost_bytes,
        })
    });
    let lost: u64 = outcome.samples.iter().map(|sample| sample.lost_bytes).sum();
    json!({
        "time_s": seconds(outcome.time),
        "whole": outcome.whole,
        "lossless": outcome.lossless(),
        "lost_stored_bytes": lost,
        "first_loss": outcome.first_loss.as_ref().map(|loss| {
            json!({ "at_s": seconds(loss.at), "array_full": loss.full, "why": loss.to_string() })
        }),
        "chunks": outcome.chunks,
        "buffers": outcome.buffers,
        "buffers_most": outcome.buffers_most,
        "retention_s": seconds(outcome.retention),
        "read_bytes": outcome.read_bytes.0,
        "read_missed_bytes": outcome.read_bytes.1,
        "drives": drives.collect::<Vec<_>>(),
        "samples": samples.collect::<Vec<_>>(),
    })
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}
