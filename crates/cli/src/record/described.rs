//! `longtake record --virtual`: a mission in virtual time. Chunks are described and not made, so that hours take seconds and no memory.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::Result;
use base::{ByteSize, Rate};
use longtake::recording::Builder;
use plan::explain;
use plan::mission::{FirstLoss, Outcome, Progress, Sample};
use serde_json::{Value, json};

use crate::arguments::RecordArguments;
use crate::signals::stop_on_signals;
use crate::{exit, outlet, progress};

/// Runs the mission that a recording is, and says what came of it.
///
/// # Errors
/// If the source has no rate, contents are asked for, or the mission can't be run.
pub fn record(arguments: &RecordArguments, recording: Builder) -> Result<ExitCode> {
    let mission = recording.mission()?;
    let stop = stop_on_signals()?;
    let bar = progress::mission_bar(!arguments.quiet && !arguments.json);
    let mut told = false;
    let outcome = mission.run(|progress| {
        if let (Some(loss), false) = (progress.first_loss, told) {
            told = true;
            if !arguments.json && !arguments.quiet {
                bar.suspend(|| outlet::tell(&format!("longtake: first loss {loss}")));
            }
        }
        if arguments.json {
            // Whether or not anybody still listens, the mission goes on.
            outlet::json_line(&progress_json(&progress)).ok();
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
        outlet::json_line(&outcome_json(&outcome))?;
    } else {
        tell(&outcome)?;
    }
    Ok(if outcome.lossless() { ExitCode::SUCCESS } else { ExitCode::from(exit::LOSS) })
}

fn show(bar: &indicatif::ProgressBar, progress: &Progress<'_>) {
    let Sample { rates, buffers_most, .. } = progress.sample;
    let share = progress.at.as_secs_f64() / progress.duration.as_secs_f64().max(1e-9);
    bar.set_position((share * 1000.0) as u64);
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

fn progress_json(progress: &Progress<'_>) -> Value {
    let mut value = sample_json(progress.sample);
    value["event"] = json!("progress");
    value["first_loss"] = progress.first_loss.map_or(Value::Null, loss_json);
    value
}

fn sample_json(sample: &Sample) -> Value {
    json!({
        "after_s": sample.at.as_secs_f64(), "fill": sample.fill, "rates": sample.rates,
        "amplification": sample.amplification, "buffers_most": sample.buffers_most,
        "lost_bytes": sample.lost_bytes,
    })
}

fn loss_json(loss: &FirstLoss) -> Value {
    let behind: Vec<Value> = loss
        .behind
        .iter()
        .map(|drive| {
            json!({
                "drive": drive.drive, "rate": drive.rate.0, "passes": drive.passes,
                "amplification": drive.amplification,
            })
        })
        .collect();
    json!({
        "after_s": loss.at.as_secs_f64(), "full": loss.full, "behind": behind,
        "text": loss.to_string(),
    })
}

/// What came of a mission, as JSON: bytes, seconds, bytes a second.
pub fn outcome_json(outcome: &Outcome) -> Value {
    let drives: Vec<Value> = outcome
        .drives
        .iter()
        .map(|drive| {
            json!({
                "name": drive.name, "written": drive.written_bytes,
                "media_written": drive.media_written_bytes, "amplification": drive.amplification(),
                "passes": drive.passes, "life_used": drive.life_used,
                "rated_used": drive.rated_used,
                "life_years": Some(drive.life_years).filter(|years| years.is_finite()),
            })
        })
        .collect();
    json!({
        "event": "finished", "virtual": true, "after_s": outcome.time.as_secs_f64(),
        "whole": outcome.whole, "chunks": outcome.chunks,
        "ledger": outlet::ledger_json(&outcome.ledger),
        "first_loss": outcome.first_loss.as_ref().map(loss_json),
        "buffers": outcome.buffers, "buffers_most": outcome.buffers_most,
        "retention_s": outcome.retention.as_secs_f64(), "drives": drives,
        "samples": outcome.samples.iter().map(sample_json).collect::<Vec<_>>(),
    })
}

fn tell(outcome: &Outcome) -> Result<()> {
    let written: u64 = outcome.drives.iter().map(|drive| drive.written_bytes).sum();
    outlet::text(&format!(
        "{} of virtual time{}: {} chunks, {} written to {} drives at {}\n",
        outcome.time,
        if outcome.whole { "" } else { ", broken off" },
        outlet::number(outcome.chunks),
        ByteSize(written),
        outcome.drives.len(),
        Rate::of(written, outcome.time),
    ))?;
    outlet::text(&outlet::ledger_table(&outcome.ledger))?;
    if let Some(loss) = &outcome.first_loss {
        outlet::text(&format!("\nfirst loss {loss}"))?;
    }
    outlet::text(&format!(
        "\nbuffers were filled to {:.0} % at most; what came in the last {} is held",
        100.0 * f64::from(outcome.buffers_most) / f64::from(outcome.buffers),
        outcome.retention,
    ))?;
    let heads = ["drive", "written", "passes", "flash for one byte", "life at this rate"];
    let mut table = outlet::table(&heads, &[1, 2, 3, 4]);
    for drive in &outcome.drives {
        let life_s = drive.life_years * 365.0 * 86_400.0;
        table.add_row([
            drive.name.clone(),
            ByteSize(drive.written_bytes).to_string(),
            format!("{:.2}", drive.passes),
            format!("{:.3}", drive.amplification()),
            if life_s.is_finite() { explain::seconds(life_s) } else { "-".to_owned() },
        ]);
    }
    outlet::text(&format!("\n{}", outlet::trimmed(&table)))
}
