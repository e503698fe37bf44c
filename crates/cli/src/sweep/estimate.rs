//! `longtake sweep --dry-run`: how many jobs, and about how long.

use std::process::ExitCode;

use anyhow::Result;
use base::Duration;
use plan::sweep::Sweep;
use serde_json::json;

use super::arguments::SweepArguments;
use super::run;
use crate::outlet;

/// Says what a sweep will do. One job from the middle is run for that, and not kept.
///
/// # Errors
/// If standard output is gone.
pub fn estimate(sweep: &Sweep, left: &[u64], arguments: &SweepArguments) -> Result<ExitCode> {
    let threads = run::threads(arguments).min(left.len().max(1));
    let probe = left.get(left.len() / 2).map(|&index| run::job(&sweep.job(index), &|| false));
    let each_s = probe.as_ref().map(|finished| finished.took_s);
    let rounds = left.len().div_ceil(threads) as f64;
    let all_s = each_s.map_or(0.0, |each| each * rounds);
    let axes: Vec<_> =
        sweep.axes.iter().map(|(key, axis)| json!({"key": key, "values": axis.steps()})).collect();
    let problem = probe.and_then(|finished| finished.error);
    if arguments.json {
        outlet::json(&json!({
            "jobs": sweep.count(), "left": left.len(), "at_a_time": threads, "axes": axes,
            "one_job_s": each_s, "estimate_s": all_s, "problem": problem,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (key, axis) in &sweep.axes {
        outlet::text(&format!("{key}: {} values", axis.steps()))?;
    }
    let done = sweep.count() - left.len() as u64;
    outlet::text(&format!("{} jobs, {done} of them done, {threads} at a time", sweep.count()))?;
    if let Some(each) = each_s {
        let (each, all) = (Duration::from_secs_f64(each), Duration::from_secs_f64(all_s));
        outlet::text(&format!(
            "one from the middle took {each}: about {all} for those that are left"
        ))?;
    }
    if let Some(problem) = problem {
        outlet::tell(&format!("longtake: that one failed: {problem}"));
    }
    Ok(ExitCode::SUCCESS)
}
