//! `longtake measure run`: one workload.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use base::Duration;
use clap::Parser;
use lab::run::SINGLE;
use lab::{Cost, Go, Lab, LabError, Step};
use load::Plan;
use load::quantity::Time;
use load::workload::{Content, Steady, Stop, Stream, Workload};
use serde_json::json;
use target::real::NEW_FILE_BYTES;
use twin::Setup;

use crate::exit;
use crate::measure::arguments::{RigArguments, RunArguments, WorkloadFormat, is_job_file};
use crate::measure::{OutputFolder, look, open, print, warn};
use crate::printer;
use crate::progress::steps_bar;
use crate::signals::stop_or_go_on;
use ::report::measurement;

/// How long a workload runs if nothing else is said.
const TIME_DEFAULT: Duration = Duration::from_secs(60);

/// Runs a workload, or prints it.
///
/// # Errors
/// If it can't be read, doesn't fit the drives, or they can't be opened.
pub fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let workload = match &arguments.workload {
        Some(path) => from_file(path, arguments)?,
        None => from_options(arguments),
    };
    if let Some(format) = arguments.print {
        print_workload(&workload, format, &names(&arguments.rig))?;
        return Ok(ExitCode::SUCCESS);
    }
    let new_file_bytes = arguments
        .size
        .map_or(NEW_FILE_BYTES, |size| size.0 + arguments.from.map_or(0, |from| from.0));
    let setup = look(&arguments.rig, new_file_bytes, None)?;
    Plan::new(&workload, setup.geometry())?;
    if workload.stop.time.is_some_and(|time| time.0 == Duration::ZERO) {
        bail!("--for must be greater than 0");
    }
    state(&workload, &setup, &arguments.rig)?;
    if arguments.rig.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let folder = OutputFolder::make(arguments.rig.output.as_ref(), arguments.rig.resume)?;
    setup.go_on(folder.path(), &[SINGLE])?;
    let stopped = stop_or_go_on()?;
    let mut rig = open(setup, workload.changes(), Some(&workload), &stopped)?;
    let folder = folder.keep();
    let bar = steps_bar(!arguments.rig.quiet && !arguments.rig.json, rig.clock());
    let mut watch = |progress: &lab::Progress<'_>| {
        bar.show(progress);
        stopped()
    };
    let mut steady = workload.stop.steady.map(lab::steady::Watcher::new);
    let step = Lab::new(rig.rig(), &folder, &mut watch)?.step_until(
        SINGLE,
        "workload",
        &workload,
        &mut |interval| steady.as_mut().map_or(Go::On, |steady| steady.look(interval)),
    );
    bar.finish();
    warn(&mut rig);
    if matches!(step, Err(LabError::Interrupted)) {
        let folder = folder.display();
        printer::tell(&format!("longtake: stopped; the intervals so far are in {folder}"));
        return Ok(ExitCode::from(exit::FAILED));
    }
    finish(&step?, steady.as_ref(), &folder, arguments.rig.json)
}

/// The targets as they were typed.
fn names(rig: &RigArguments) -> Vec<String> {
    rig.targets.iter().map(|path| path.display().to_string()).collect()
}

fn print_workload(workload: &Workload, format: WorkloadFormat, targets: &[String]) -> Result<()> {
    let text = match format {
        WorkloadFormat::Toml => workload.to_toml(),
        WorkloadFormat::Fio => load::fio_job::job(workload, targets),
    };
    printer::text(text.trim_end())
}

/// Says what will be done and what it costs, before anything is.
fn state(workload: &Workload, setup: &Setup, rig: &RigArguments) -> Result<()> {
    let cost = Cost::of_workload(workload, setup.geometry().len());
    let notes = setup.state_cost(&cost, rig.dry_run);
    if rig.dry_run && rig.json {
        return printer::json(&json!({ "workload": workload, "cost": cost, "notes": notes }));
    }
    if workload.changes() || rig.dry_run {
        for line in notes {
            printer::tell(&format!("longtake: note: {line}"));
        }
    }
    if rig.dry_run {
        printer::text("dry run: nothing was done")?;
    }
    Ok(())
}

/// Prints what was measured.
fn finish(
    step: &Step,
    steady: Option<&lab::steady::Watcher>,
    folder: &Path,
    json: bool,
) -> Result<ExitCode> {
    let measured = &step.measurement;
    if json {
        let state = steady.map(lab::steady::Watcher::state);
        printer::json(&json!({ "folder": folder, "steady": state, "step": step }))?;
    } else {
        print(measured, &measurement::counted(step))?;
        if let Some(steady) = steady {
            printer::text(&steady.describe())?;
        }
        printer::message(&format!("results: {}", folder.display()))?;
    }
    let wrong = measured.verification.as_ref().is_some_and(|found| found.wrong_sectors > 0);
    let lost = wrong || measured.error_count() > 0;
    Ok(if lost { ExitCode::from(exit::LOSS) } else { ExitCode::SUCCESS })
}

/// The workload in a file, of which options may say nothing more.
fn from_file(path: &Path, arguments: &RunArguments) -> Result<Workload> {
    let unchanged = RunArguments {
        from: arguments.from,
        size: arguments.size,
        ..RunArguments::parse_from(["run", "TARGET"])
    };
    if from_options(arguments) != from_options(&unchanged) {
        bail!(
            "{} describes the whole workload: change it there and leave out the options of a workload, or leave out the file",
            path.display()
        );
    }
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    if !is_job_file(path) {
        return Workload::from_toml(&text)
            .with_context(|| format!("{} is not a workload", path.display()));
    }
    let read =
        load::fio_job::read::read(&text, &path.display().to_string(), &names(&arguments.rig))?;
    for note in read.notes {
        printer::tell(&format!("longtake: note: {}: {note}", path.display()));
    }
    Ok(read.workload)
}

/// The workload that the options say.
fn from_options(arguments: &RunArguments) -> Workload {
    let nothing = arguments.write == 0 && arguments.trim == 0;
    let time =
        arguments
            .time
            .or((arguments.bytes.is_none() && arguments.steady.is_none())
                .then_some(Time(TIME_DEFAULT)));
    let steady = arguments.steady.map(|round| Steady { round, ..Steady::default() });
    let stream = Stream {
        name: "stream".to_owned(),
        pattern: arguments.pattern,
        block: arguments.block.clone(),
        read: arguments.read.unwrap_or(u32::from(nothing)),
        write: arguments.write,
        trim: arguments.trim,
        from: arguments.from,
        size: arguments.size,
        align: arguments.align,
        depth: arguments.depth,
        jobs: arguments.jobs,
        rate: arguments.rate,
        arrival: arguments.arrival,
        deadline: arguments.deadline,
        priority: arguments.priority,
        content: if arguments.verify { Content::Verify } else { arguments.content },
        fua: arguments.fua,
        ..Stream::default()
    };
    Workload {
        name: "run".to_owned(),
        seed: arguments.seed,
        interval: arguments.interval,
        warm_up: arguments.warm_up,
        stop: Stop { time, bytes: arguments.bytes, steady },
        streams: vec![stream],
    }
}
