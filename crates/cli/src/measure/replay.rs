//! `longtake measure replay`: a recorded trace on one or several targets.

use std::process::ExitCode;

use anyhow::Result;
use lab::{LabError, Progress};
use load::trace::{Choice, Fitting, Speed};
use serde_json::{Value, json};
use twin::replay::{self, ReplayTarget, TraceFiles};

use crate::measure::arguments::ReplayTraceArguments;
use crate::measure::{OutputFolder, open, setup_options, warn};
use crate::progress::{bytes_bar, steps_bar};
use crate::signals::stop_or_go_on;
use crate::{exit, printer, profiles};

/// Replays a trace.
///
/// # Errors
/// If it can't be read, does not fit a target, or a target can't be opened.
pub fn replay(arguments: &ReplayTraceArguments) -> Result<ExitCode> {
    let rig = &arguments.rig;
    let shown = !rig.quiet && !rig.json;
    let choice = Choice {
        format: arguments.format,
        device: arguments.device.clone(),
        events: arguments.events,
        reads_only: arguments.reads_only,
        time: arguments.time,
    };
    let files = TraceFiles::of(&arguments.trace)?;
    let bar = bytes_bar(files.bytes, "reading the trace", shown);
    let trace = files.read(&choice, &|bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let trace = trace?;
    let speed = if arguments.asap { Speed::Fastest } else { Speed::Recorded(arguments.speed) };
    let fitting = Fitting { speed, wrap: arguments.wrap, depth: arguments.depth };
    let options = setup_options(rig, arguments.size.0, None);
    let targets = replay::look(&options, &trace, fitting, profiles::known())?;
    let several = targets.len() > 1;
    let notes: Vec<_> = targets.iter().map(|target| target.state(several, rig.dry_run)).collect();
    if rig.dry_run && rig.json {
        let of = |(target, notes): (&ReplayTarget, _)| {
            let ReplayTarget { name, fitted, .. } = target;
            json!({ "target": name, "fitted": fitted, "cost": target.cost(), "notes": notes })
        };
        let targets: Vec<Value> = targets.iter().zip(&notes).map(of).collect();
        printer::json(&json!({ "trace": trace.summary, "targets": targets }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let lines = replay::described(&trace).into_iter().chain(notes.into_iter().flatten());
    printer::tell_all(lines.map(|line| format!("longtake: note: {line}")));
    if rig.dry_run {
        printer::text("dry run: nothing was done")?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = OutputFolder::make(rig.output.as_ref(), rig.resume)?;
    let stopped = stop_or_go_on()?;
    let writes = trace.summary.writes.requests > 0;
    let mut opened = Vec::new();
    for ReplayTarget { name, setup, .. } in targets {
        opened.push((name, open(setup, writes, None, &stopped)?));
    }
    let folder = folder.keep();
    let mut replayed = Vec::new();
    for (index, (name, rig)) in opened.iter_mut().enumerate() {
        let bar = steps_bar(shown, rig.clock());
        let mut watch = |progress: &Progress<'_>| {
            bar.show(progress);
            stopped()
        };
        let done = replay::replay(rig, (index + 1, name), (&trace, fitting), &folder, &mut watch);
        bar.finish();
        warn(rig);
        if matches!(done, Err(LabError::Interrupted)) {
            let folder = folder.display();
            printer::tell(&format!("longtake: stopped; the intervals so far are in {folder}"));
            return Ok(ExitCode::from(exit::FAILED));
        }
        replayed.push(done?);
    }
    if rig.json {
        let trace = &trace.summary;
        printer::json(&json!({ "folder": folder, "trace": trace, "targets": replayed }))?;
    } else {
        printer::text(&report::replayed::text(&replayed))?;
        printer::message(&format!("results: {}", folder.display()))?;
    }
    let failed = |target: &lab::replay::Replayed| target.step.measurement.error_count() > 0;
    let failed = replayed.iter().any(failed);
    Ok(if failed { ExitCode::from(exit::LOSS) } else { ExitCode::SUCCESS })
}
