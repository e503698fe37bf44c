//! `plan --prove`: designs recorded on simulated drives, in virtual time.

use std::ops::ControlFlow;

use anyhow::Result;
use longtake::planning::{Answer, Budget, Planning, Proofs, Proving};
use plan::explain;
use report::planned::proof;

use crate::{printer, progress};

/// Runs the trials of all designs that have an answer: all of each if `long`, else what takes at most a minute. Prints what came of them
/// if `shown`.
///
/// # Errors
/// If a mission can't be run, or standard output is gone.
pub fn prove(planning: &Planning, answer: &Answer, long: bool, shown: bool) -> Result<Proofs> {
    let budget = if long { Budget::unlimited() } else { Budget::default() };
    let bar = progress::mission_bar(true);
    let mut printed = Ok(());
    let proofs = planning.prove(answer, budget, |proving| {
        let text = match proving {
            Proving::Trial { number, of, drive, drives, progress } => {
                let (at, whole) = (progress.at, progress.duration);
                let drives = explain::drives(drives);
                let what = format!("{number} of {of}: {drive}, {drives}");
                match progress.draw {
                    (0, _) => {
                        bar.set_position(1000 * at.as_nanos() / whole.as_nanos().max(1));
                        progress::say(&bar, &format!("{what}, {at} of {whole} recorded"));
                    }
                    (draw, draws) => {
                        bar.set_position(1000 * draw / draws);
                        progress::say(&bar, &format!("{what}, {draw} of {draws} draws recorded"));
                    }
                }
                return ControlFlow::Continue(());
            }
            Proving::Found(found) => proof::text(found),
            Proving::Unproved(unproved) => proof::unproved_text(unproved),
        };
        if shown {
            printed = bar.suspend(|| printer::text(&text));
        }
        if printed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    bar.finish_and_clear();
    printed.map(|()| proofs)
}
