//! A recorded trace replayed on a drive: one step, kept beside those of single workloads.

use load::trace::{Fitted, FittedTrace};
use serde::Serialize;

use crate::experiment::{Preconditioned, Preconditioning};
use crate::lab::{Lab, LabError, Step};
use crate::run::SINGLE;

/// What came of a trace on one target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// The target as it was given.
    pub target: String,
    /// Whether its time is virtual.
    pub simulated: bool,
    /// What was done to the drive before, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preconditioned: Option<Preconditioned>,
    /// What the trace is on this target.
    pub fitted: Fitted,
    /// What was measured. Nothing in it depends on when a simulated drive was measured.
    pub step: Step,
}

impl Replayed {
    /// Whether the drive did not do everything that it was asked.
    pub fn has_failures(&self) -> bool {
        let measured = &self.step.measurement;
        let before = self.preconditioned.as_ref().is_some_and(|before| !before.notes.is_empty());
        before || measured.error_count() > 0 || measured.unsent > 0 || !measured.given_up.is_empty()
    }
}

/// Replays a trace on the lab's drive, as the `number`th of several targets, and first preconditions it if asked to. A
/// target whose result is there already is not replayed again.
///
/// # Errors
/// [`LabError`]; what failed commands say is in the result.
pub fn replay(
    lab: &mut Lab<'_>,
    (number, target): (usize, &str),
    simulated: bool,
    preconditioning: Option<Preconditioning>,
    trace: FittedTrace,
) -> Result<Replayed, LabError> {
    let name = name(number, target);
    let preconditioned = match preconditioning {
        Some(how) => Some(how.run(lab, SINGLE, &format!("{name}-before"))?),
        None => None,
    };
    let mut step = lab.step(SINGLE, &name, &trace.workload)?;
    if simulated {
        step.measurement.started_ns = None;
    }
    Ok(Replayed {
        target: target.to_owned(),
        simulated,
        preconditioned,
        fitted: trace.fitted,
        step,
    })
}

/// Characters of a target's name that a file's name has at most.
const NAME_MAX: usize = 60;

/// Name of the step on a target: its number, and what of its name may stand in a file's name.
fn name(number: usize, target: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let last = target.rsplit('/').next().unwrap_or(target);
    let name: String = last.chars().take(NAME_MAX).map(plain).collect();
    format!("{number}-{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_named_after_its_target() {
        assert_eq!(name(1, "/dev/loop0"), "1-loop0");
        assert_eq!(
            name(2, "sim:samsung-970-evo-plus-1tb:full"),
            "2-sim-samsung-970-evo-plus-1tb-full"
        );
        assert_eq!(name(3, "../../x y\n"), "3-x-y-");
    }
}
