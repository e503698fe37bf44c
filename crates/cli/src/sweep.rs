//! `longtake sweep`: many designs computed over all cores, each a job of its own, and a table of what came of them.

pub mod arguments;
mod table;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use base::Duration;
use longtake::sweep::{self, Estimate, Finished, Job, Sweep, SweepRun};
use report::swept::{self, Row};
use serde_json::json;
use target::output::Outputs;

use crate::signals::stop_on_signals;
use crate::{exit, printer, profiles, progress};
use arguments::{ExpandArguments, JobArguments, SweepAction, SweepArguments};

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
    sweep::check(&sweep.job(0), profiles::known())
        .with_context(|| format!("the first job of {}", path.display()))?;
    let folder = arguments.output.clone().unwrap_or_else(|| path.with_extension("sweep"));
    let outputs = Outputs::new(arguments.overwrite).reads([path]);
    let of_tables = outputs.clone().reads([folder.join(sweep::FILE)]);
    table::check(&of_tables, &folder, arguments)?;
    if arguments.dry_run {
        let run = SweepRun::look(&sweep, profiles::known(), &folder)?;
        return estimate(&sweep, &run.estimate(arguments.jobs), arguments.json);
    }
    let mut run = SweepRun::open(&sweep, profiles::known(), &folder, &outputs)?;
    let finished = run_shown(&mut run, arguments)?;
    let rows: Vec<Row<'_>> = run.results().map(row).collect();
    let failed = rows.iter().filter(|row| row.error.is_some()).count();
    let missing = run.left();
    let written = table::write(&swept::columns(&sweep, &rows), &folder, arguments, &of_tables)?;
    if arguments.json {
        printer::json(&json!({
            "jobs": sweep.count(), "run": finished, "failed": failed, "missing": missing,
            "folder": folder, "written": written,
        }))?;
    } else {
        printer::text(&swept::text(&sweep, &rows))?;
        for path in &written {
            printer::message(&format!("table: {}", path.display()))?;
        }
        let jobs = printer::counted(sweep.count(), "job");
        printer::text(&format!("{jobs}: {finished} run now, {failed} failed, {missing} not run"))?;
    }
    if missing > 0 {
        let again = if arguments.csv.is_some() || arguments.parquet.is_some() {
            "run the same command with -y to continue"
        } else {
            "run the same command to continue"
        };
        printer::tell(&format!("longtake: stopped before the end; {again}"));
    }
    Ok(if failed > 0 || missing > 0 { ExitCode::from(exit::LOSS) } else { ExitCode::SUCCESS })
}

/// Runs the jobs that are left, here or on a cluster; returns how many were run. A signal ends it after what is under way was broken
/// off.
fn run_shown(run: &mut SweepRun<'_>, arguments: &SweepArguments) -> Result<usize> {
    let stop = stop_on_signals()?;
    let bar = progress::jobs_bar(run.left() as u64, !arguments.quiet && !arguments.json);
    let each = |finished: &Finished| {
        if let Some(error) = &finished.error {
            progress::print_above(&bar, &format!("failed: {error}"));
        }
        bar.inc(1);
    };
    let told = |why: &str| bar.suspend(|| printer::tell(&format!("longtake: {why}")));
    let finished = match arguments.cluster.chosen() {
        None => run.run(arguments.jobs, &stop, each)?,
        Some(cluster) => run.run_on(&cluster, &stop, each, told)?,
    };
    bar.finish_and_clear();
    Ok(finished)
}

fn row((index, job, finished): (u64, Job, &Finished)) -> Row<'_> {
    Row { index, job, figures: &finished.figures, error: finished.error.as_deref() }
}

/// Says what a sweep will do.
fn estimate(sweep: &Sweep, estimate: &Estimate, json: bool) -> Result<ExitCode> {
    let Estimate { left, threads, one, all, problem } = estimate;
    if json {
        let axes: Vec<_> = sweep
            .axes
            .iter()
            .map(|(key, axis)| json!({"key": key, "values": axis.steps()}))
            .collect();
        printer::json(&json!({
            "jobs": sweep.count(), "left": left, "at_a_time": threads, "axes": axes,
            "one_job_s": one.map(Duration::as_secs_f64), "estimate_s": all.as_secs_f64(), "problem": problem,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (key, axis) in &sweep.axes {
        printer::text(&format!("{key}: {}", printer::counted(axis.steps(), "value")))?;
    }
    let done = sweep.count() - *left as u64;
    let jobs = printer::counted(sweep.count(), "job");
    printer::text(&format!("{jobs}, {done} of them done, {threads} at a time"))?;
    if let Some(one) = one {
        printer::text(&format!(
            "one from the middle took {one}: about {all} for those that are left"
        ))?;
    }
    if let Some(problem) = problem {
        printer::tell(&format!("longtake: that one failed: {problem}"));
    }
    Ok(ExitCode::SUCCESS)
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
    let finished = sweep::job(&job, profiles::known(), &AtomicBool::new(false));
    let failed = finished.error.is_some();
    if let Some(error) = &finished.error {
        printer::tell(&format!("longtake: {error}"));
    }
    printer::json_line(&serde_json::to_value(&finished)?)?;
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
        printer::json(&json!({"jobs": sweep.count(), "folder": folder}))?;
    } else {
        let jobs = printer::counted(sweep.count(), "job");
        printer::message(&format!("{jobs} in {}", folder.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Sweep> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("reading the sweep {}", path.display()))?;
    Sweep::from_toml(&text).with_context(|| format!("{} is no sweep", path.display()))
}
