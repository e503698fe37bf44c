//! What separate NVM Sets save: readers' latencies beside the recording, with shared and with separate sets, found by recording.

use std::ops::ControlFlow;

use anyhow::{Context, Result};
use plan::answer::{Answer, Design};
use plan::beside::{Comparison, compare};
use plan::{Candidate, Requirement};

use crate::{printer, progress};

/// A comparison, with its drive's name.
pub type Compared = (String, Comparison);

/// Compares for all designs that have separate sets.
///
/// # Errors
/// If a recording can't be run, or standard output is gone.
pub fn beside(
    requirement: &Requirement,
    answer: &Answer,
    candidates: &[Candidate],
    shown: bool,
) -> Result<Vec<Compared>> {
    let mut all = Vec::new();
    let apart = |(design, _): &(&Design, _)| design.sets.is_some();
    for (design, spec) in answer.simulated(candidates).filter(apart) {
        let bar = progress::mission_bar(shown);
        progress::say(&bar, &format!("{}: readers beside the recording", design.drive));
        let found = compare(requirement, design, &spec?, |share| {
            bar.set_position((share * 1000.0) as u64);
            ControlFlow::Continue(())
        })
        .with_context(|| format!("recording to {} beside readers", design.drive))?;
        bar.finish_and_clear();
        let Some(found) = found else { continue };
        if shown {
            printer::text(&report::planned::beside::text(design, &found))?;
        }
        all.push((design.drive.clone(), found));
    }
    Ok(all)
}
