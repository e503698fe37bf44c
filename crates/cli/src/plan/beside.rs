//! What separate NVM Sets save: readers' latencies beside the recording, with shared and with separate sets, found by recording.

use std::ops::ControlFlow;

use anyhow::Result;
use longtake::planning::{Answer, Planning};
use plan::beside::Comparison;

use crate::{printer, progress};

/// Compares for all designs that have separate sets; each comparison has its drive's name. Prints them if `shown`.
///
/// # Errors
/// If a recording can't be run, or standard output is gone.
pub fn beside(
    planning: &Planning,
    answer: &Answer,
    shown: bool,
) -> Result<Vec<(String, Comparison)>> {
    let bar = progress::mission_bar(shown);
    let compared = planning.compare(answer, |drive, share| {
        bar.set_position((share * 1000.0) as u64);
        progress::say(&bar, &format!("{drive}: readers beside the recording"));
        ControlFlow::Continue(())
    })?;
    bar.finish_and_clear();
    for (drive, found) in compared.iter().filter(|_| shown) {
        let design = answer.designs.iter().find(|design| design.drive == *drive);
        if let Some(design) = design {
            printer::text(&report::planned::beside::text(design, found))?;
        }
    }
    Ok(compared)
}
