//! `longtake sweep`: many designs computed over all cores, each a job of its own, and a table of what came of them.

pub mod arguments;
mod estimate;
mod results;
mod run;
mod table;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plan::sweep::{Job, Sweep};
use serde_json::json;
use target::output::Outputs;

use crate::profiles;
use crate::{exit, outlet};
use arguments::{ExpandArguments, JobArguments, SweepAction, SweepArguments};
use results::{Finished, Results};

/// Runs a sweep, one job of one, or writes its jobs for other machines.
///
/// # Errors
/// If a file can't be read or written, or says what can't be. A job that can't be done is a result, not an error.
pub fn sweep(arguments: &SweepArguments) -> Result<ExitCode> {
    match (&arguments.action, &arguments.spec) {
        (Some(SweepAction::Job(job)), _) => one(job),
        (Some(SweepAction::Expand(expand)), _) => expanded(expand),
        (None, Some(spec)) => all(arguments, spec),
        (None, None) => bail!("there is no sweep to run: give SPEC.toml"),
    }
}

fn all(arguments: &SweepArguments, path: &Path) -> Result<ExitCode> {
    let sweep = read(path)?;
    // What is wrong with every job is said before any is run.
    check(&sweep.job(0)).with_context(|| format!("the first job of {}", path.display()))?;
    let folder = arguments.output.clone().unwrap_or_else(|| beside(path));
    let outputs = Outputs::new(arguments.overwrite).reads([path]);
    let of_tables = outputs.clone().reads([folder.join(results::FILE)]);
    table::check(&of_tables, &folder, arguments)?;
    let mut results = Results::open(&folder, arguments.dry_run, &outputs)?;
    let mut known = HashMap::new();
    results.forget_others(|job| {
        *known
            .entry(job.drive().ok().map(str::to_owned))
            .or_insert_with(|| run::drive_checksum(job))
    });
    let left: Vec<u64> = (0..sweep.count()).filter(|&n| !results.has(&sweep.job(n))).collect();
    if arguments.dry_run {
        return estimate::estimate(&sweep, &left, arguments);
    }
    let finished = run::run(&sweep, &left, arguments, &mut results)?;
    let rows: Vec<&Finished> =
        (0..sweep.count()).filter_map(|n| results.of(&sweep.job(n))).collect();
    let failed = rows.iter().filter(|row| row.error.is_some()).count();
    let missing = sweep.count() - rows.len() as u64;
    let written = table::write(&sweep, &results, &folder, arguments, &of_tables)?;
    if arguments.json {
        outlet::json(&json!({
            "jobs": sweep.count(), "run": finished, "failed": failed, "missing": missing,
            "folder": folder, "written": written,
        }))?;
    } else {
        table::print(&sweep, &results)?;
        for path in &written {
            outlet::message(&format!("table: {}", path.display()))?;
        }
        let jobs = sweep.count();
        outlet::text(&format!(
            "{jobs} jobs: {finished} run now, {failed} failed, {missing} not run"
        ))?;
    }
    if missing > 0 {
        let again = if arguments.csv.is_some() || arguments.parquet.is_some() {
            "the same command with -y goes on"
        } else {
            "the same command goes on"
        };
        outlet::tell(&format!("longtake: stopped before the end; {again}"));
    }
    Ok(if failed > 0 || missing > 0 { ExitCode::from(exit::LOSS) } else { ExitCode::SUCCESS })
}

/// One job, its result as a line of JSON.
fn one(arguments: &JobArguments) -> Result<ExitCode> {
    let path = &arguments.job;
    let text =
        fs::read_to_string(path).with_context(|| format!("reading the job {}", path.display()))?;
    let job: Job = if text.trim_start().starts_with('{') {
        serde_json::from_str(&text).with_context(|| format!("{} is no job", path.display()))?
    } else {
        Job::from_toml(&text).with_context(|| format!("{} is no job", path.display()))?
    };
    let finished = run::job(&job, &|| false);
    let failed = finished.error.is_some();
    if let Some(error) = &finished.error {
        outlet::tell(&format!("longtake: {error}"));
    }
    outlet::json_line(&serde_json::to_value(&finished)?)?;
    Ok(if failed { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS })
}

/// A file for each job.
fn expanded(arguments: &ExpandArguments) -> Result<ExitCode> {
    let sweep = read(&arguments.spec)?;
    let folder = &arguments.output;
    let outputs = Outputs::new(arguments.overwrite).reads([&arguments.spec]);
    let digits = sweep.count().to_string().len();
    let place = |index: u64| folder.join(format!("{index:0digits$}.toml"));
    outputs.check_folder(folder)?;
    (0..sweep.count()).try_for_each(|index| outputs.check(&place(index)))?;
    outputs.make_folder(folder)?;
    for index in 0..sweep.count() {
        let path = place(index);
        let text = sweep.job(index).to_toml().context("writing a job as TOML")?;
        outputs.write(&path, &text)?;
    }
    if arguments.json {
        outlet::json(&json!({"jobs": sweep.count(), "folder": folder}))?;
    } else {
        outlet::message(&format!("{} jobs in {}", sweep.count(), folder.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Sweep> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("reading the sweep {}", path.display()))?;
    Sweep::from_toml(&text).with_context(|| format!("{} is no sweep", path.display()))
}

/// What can be known to be wrong without running it.
fn check(job: &Job) -> Result<()> {
    profiles::known().find(job.drive()?.trim_start_matches("sim:"))?;
    Ok(job.check()?)
}

/// The folder of results of a sweep's file, if no other is asked for.
fn beside(path: &Path) -> PathBuf {
    let stem = path.file_stem().map_or_else(|| "sweep".into(), |stem| stem.to_string_lossy());
    path.with_file_name(format!("{stem}.sweep"))
}
