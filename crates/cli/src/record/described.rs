//! `longtake record --virtual`: a mission in virtual time. Chunks are described and not made, so that hours take seconds and no memory.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::Result;
use base::Rate;
use longtake::recording::Builder;
use plan::mission::{Progress, Sample};
use report::mission;

use crate::arguments::RecordArguments;
use crate::signals::stop_on_signals;
use crate::{exit, printer, progress};

/// Runs the mission that a recording is, and says what came of it.
///
/// # Errors
/// If the source has no rate, contents are asked for, or the mission can't be run.
pub fn record(arguments: &RecordArguments, recording: Builder) -> Result<ExitCode> {
    let recorded = recording.mission()?;
    let stop = stop_on_signals()?;
    let bar = progress::mission_bar(!arguments.quiet && !arguments.json);
    let mut told = false;
    let outcome = recorded.run(|progress| {
        if let (Some(loss), false) = (progress.first_loss, told) {
            told = true;
            if !arguments.json && !arguments.quiet {
                bar.suspend(|| printer::tell(&format!("longtake: first loss {loss}")));
            }
        }
        if arguments.json {
            // Whether or not anybody still listens, the mission goes on.
            if let Some(line) = mission::progress_json(&progress) {
                printer::json_line(&line).ok();
            }
        } else if !bar.is_hidden() {
            show(&bar, &progress);
        }
        if stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    bar.finish_and_clear();
    if arguments.json {
        printer::json_line(&mission::outcome_json(&outcome))?;
    } else {
        printer::text(&mission::text(&outcome))?;
    }
    Ok(if outcome.lossless() { ExitCode::SUCCESS } else { ExitCode::from(exit::LOSS) })
}

fn show(bar: &indicatif::ProgressBar, progress: &Progress<'_>) {
    let share = progress.at.as_secs_f64() / progress.duration.as_secs_f64().max(1e-9);
    bar.set_position((share * 1000.0) as u64);
    let Some(Sample { rates, buffers_most, .. }) = progress.sample else { return };
    let message = format!(
        "{} of {} virtual, {}, buffers {:.0} %{}",
        progress.at,
        progress.duration,
        Rate(rates.iter().sum()),
        100.0 * f64::from(*buffers_most) / f64::from(progress.buffers),
        if progress.first_loss.is_some() { ", LOSING" } else { "" },
    );
    progress::say(bar, &message);
}
