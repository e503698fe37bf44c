//! How many drives a rate needs, and recordings on simulated drives in virtual time.

use std::sync::atomic::AtomicBool;

use longtake::planning::{Answer, Budget, Draft, Planning, PlanningError, Proofs, Proving};
use longtake::sweep::{self, Job};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use report::{html, mission, planned};
use target::Profiles;

use crate::values::Shown;
use crate::watch::Watch;
use crate::{failed, recording, values};

/// Plans a requirement, whose fields are those of its file.
///
/// # Errors
/// `ValueError` if it can't be required, `LongtakeError` if a drive is not known or can't be simulated.
#[pyfunction]
pub fn plan(
    py: Python<'_>,
    requirement: &Bound<'_, PyAny>,
    prove: bool,
    long: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Shown> {
    let draft: Draft = serde_json::from_value(values::json(requirement)?)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let planning = Planning::new(draft, &Profiles::of_user()).map_err(|error| match error {
        PlanningError::Drive(error) => failed(error),
        error => PyValueError::new_err(error.to_string()),
    })?;
    let mut watch = Watch::new(progress);
    let planned = py.detach(|| -> longtake::Result<_> {
        let answer = planning.answer();
        let compared = planning.compare(&answer, |_, share| watch.at(share))?;
        let proofs = match prove {
            true => proved(&planning, &answer, long, &mut watch)?,
            false => Proofs::default(),
        };
        Ok((answer, compared, proofs))
    });
    let (answer, compared, proofs) = watch.finish(planned.map_err(failed))?;
    let value = planned::json(&planning.draft, &answer, &compared, &proofs);
    let mut page = planned::document(&planning.requirement, &answer, &compared, &proofs);
    // All candidates side by side, and the best of them; the others would be many.
    let best = answer.designs.iter().position(|design| design.array.is_some());
    let shown = best.map_or(1, |best| best + 2);
    page.sections.truncate(shown);
    page.sections.drain(1..shown.saturating_sub(1).max(1));
    Ok((value.to_string(), html::fragment(&page)))
}

fn proved(
    planning: &Planning,
    answer: &Answer,
    long: bool,
    watch: &mut Watch,
) -> longtake::Result<Proofs> {
    let budget = if long { Budget::unlimited() } else { Budget::default() };
    let mut share: f64 = 0.0;
    planning.prove(answer, budget, |proving| {
        if let Proving::Trial { number, of, progress, .. } = proving {
            let one = progress.at.as_secs_f64() / progress.duration.as_secs_f64().max(1e-9);
            // A trial records several times, each time from the start.
            share = share.max(((number - 1) as f64 + one) / of as f64);
        }
        watch.at(share)
    })
}

/// Runs one job of a sweep on the drive with this profile, and returns the result as a line of JSON.
///
/// # Errors
/// `ValueError` if it is no job. A job that can't be done is a result.
#[pyfunction]
pub fn sweep_job(py: Python<'_>, job: &str, profile: &str) -> PyResult<String> {
    let job: Job =
        serde_json::from_str(job).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let finished = py.detach(|| sweep::job_on(&job, profile, &AtomicBool::new(false)));
    serde_json::to_string(&finished).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Records on simulated drives in virtual time. Chunks are described and not made.
///
/// # Errors
/// `LongtakeError` if the drives are real or not known, or the source has no rate.
#[pyfunction]
pub fn simulate(
    py: Python<'_>,
    source: &str,
    target: &str,
    options: &Bound<'_, PyDict>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Shown> {
    let options = recording::chosen(options)?;
    let recording = longtake::Recording::builder(source, target).options(options);
    let mut watch = Watch::new(progress);
    let outcome = py.detach(|| {
        let mission = recording.mission().map_err(failed)?;
        let outcome = mission.run(|progress| {
            watch.at(progress.at.as_secs_f64() / progress.duration.as_secs_f64().max(1e-9))
        });
        outcome.map_err(failed)
    });
    let outcome = watch.finish(outcome)?;
    let value = mission::outcome_json(&outcome);
    Ok((value.to_string(), html::fragment(&mission::document(&outcome))))
}
