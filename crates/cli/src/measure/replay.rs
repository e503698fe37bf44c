//! `longtake measure replay`: a recorded trace on one or several targets.

use std::process::ExitCode;

use anyhow::Result;
use lab::LabError;
use lab::replay::Replayed;
use load::trace::{Choice, Fitting, Speed};
use twin::Replay;
use twin::replay::TraceFiles;

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
    let mut replay = look(arguments)?;
    if rig.dry_run && rig.json {
        printer::json(&replay.stated())?;
        return Ok(ExitCode::SUCCESS);
    }
    let notes = replay.notes(rig.dry_run).into_iter();
    printer::tell_all(notes.map(|line| format!("longtake: note: {line}")));
    if rig.dry_run {
        printer::text("dry run: nothing was done")?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = OutputFolder::make(rig.output.as_ref(), rig.resume)?;
    let stopped = stop_or_go_on()?;
    let (writes, mut opened) = (replay.writes(), Vec::new());
    for setup in replay.take_setups() {
        opened.push(open(setup, writes, None, &stopped)?);
    }
    let folder = folder.keep();
    let mut replayed = Vec::new();
    for (index, target) in opened.iter_mut().enumerate() {
        let bar = steps_bar(!rig.quiet && !rig.json, target.clock());
        let done = replay.run(index, target, &folder, &mut |progress| {
            bar.show(progress);
            stopped()
        });
        bar.finish();
        warn(target);
        if matches!(done, Err(LabError::Interrupted)) {
            let folder = folder.display();
            printer::tell(&format!("longtake: stopped; the intervals so far are in {folder}"));
            return Ok(ExitCode::from(exit::FAILED));
        }
        replayed.push(done?);
    }
    if rig.json {
        printer::json(&replay.answer(&folder, &replayed))?;
    } else {
        printer::text(&report::replayed::text(&replayed))?;
        printer::message(&format!("results: {}", folder.display()))?;
    }
    let failed = replayed.iter().any(Replayed::has_failures);
    Ok(if failed { ExitCode::from(exit::LOSS) } else { ExitCode::SUCCESS })
}

/// Reads the trace, and looks at the targets.
fn look(arguments: &ReplayTraceArguments) -> Result<Replay> {
    let ReplayTraceArguments { rig, format, device, events, reads_only, time, .. } = arguments;
    let (format, events, reads_only, time) = (*format, *events, *reads_only, *time);
    let choice = Choice { format, device: device.clone(), events, reads_only, time };
    let files = TraceFiles::of(&arguments.trace)?;
    let bar = bytes_bar(files.bytes, "reading the trace", !rig.quiet && !rig.json);
    let trace = files.read(&choice, &|bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let speed = if arguments.asap { Speed::Fastest } else { Speed::Recorded(arguments.speed) };
    let fitting = Fitting { speed, wrap: arguments.wrap, depth: arguments.depth };
    let options = setup_options(rig, arguments.size.0, None);
    let profiles = profiles::known().clone().placed_for(rig.place.place(), &rig.targets)?;
    Ok(Replay::look(trace?, fitting, arguments.precondition, &options, &profiles)?)
}
