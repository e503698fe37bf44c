//! `longtake measure replay`: a recorded trace on one or several targets.

use std::process::ExitCode;

use anyhow::Result;
use lab::replay::Replayed;
use lab::{Go, LabError, Progress};
use load::Trace;
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
    let trace = read(arguments)?;
    let speed = if arguments.asap { Speed::Fastest } else { Speed::Recorded(arguments.speed) };
    let fitting = Fitting { speed, wrap: arguments.wrap, depth: arguments.depth };
    let options = setup_options(rig, arguments.size.0, None);
    let targets = replay::look(&options, &trace, fitting, profiles::known())?;
    state(&trace, &targets, arguments)?;
    if rig.dry_run {
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
    for (index, (name, open)) in opened.iter_mut().enumerate() {
        let bar = steps_bar(!rig.quiet && !rig.json, open.clock());
        let mut watch = |progress: &Progress<'_>| -> Go {
            bar.show(progress);
            stopped()
        };
        let done = replay::replay(open, (index + 1, name), (&trace, fitting), &folder, &mut watch);
        bar.finish();
        warn(open);
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
    let failed = replayed.iter().any(Replayed::has_failures);
    Ok(if failed { ExitCode::from(exit::LOSS) } else { ExitCode::SUCCESS })
}

fn read(arguments: &ReplayTraceArguments) -> Result<Trace> {
    let ReplayTraceArguments { trace, rig, format, device, events, reads_only, time, .. } =
        arguments;
    let (format, events, reads_only, time) = (*format, *events, *reads_only, *time);
    let choice = Choice { format, device: device.clone(), events, reads_only, time };
    let files = TraceFiles::of(trace)?;
    let bar = bytes_bar(files.bytes, "reading the trace", !rig.quiet && !rig.json);
    let trace = files.read(&choice, &|bytes| bar.inc(bytes));
    bar.finish_and_clear();
    Ok(trace?)
}

/// Says what the trace is, and what will be done and what it costs, before anything is.
fn state(trace: &Trace, targets: &[ReplayTarget], arguments: &ReplayTraceArguments) -> Result<()> {
    let (json, dry_run) = (arguments.rig.json, arguments.rig.dry_run);
    if dry_run && json {
        let of = |target: &ReplayTarget| {
            let ReplayTarget { name, fitted, .. } = target;
            let (cost, notes) = (target.cost(), target.state(false, true));
            json!({ "target": name, "fitted": fitted, "cost": cost, "notes": notes })
        };
        let targets: Vec<Value> = targets.iter().map(of).collect();
        return printer::json(&json!({ "trace": trace.summary, "targets": targets }));
    }
    let notes = targets.iter().flat_map(|target| target.state(targets.len() > 1, dry_run));
    let lines = replay::described(trace).into_iter().chain(notes);
    printer::tell_all(lines.map(|line| format!("longtake: note: {line}")));
    if dry_run {
        printer::text("dry run: nothing was done")?;
    }
    Ok(())
}
