//! What separate NVM Sets save: readers' latencies beside the recording, with shared and with separate sets, found by recording.

use std::ops::ControlFlow;

use anyhow::{Context, Result};
use base::{Duration, Latencies};
use plan::answer::{Answer, Design};
use plan::beside::{Beside, Comparison, PERCENTS, compare};
use plan::{Candidate, Requirement};
use serde_json::{Value, json};
use ssd::Spec;

use crate::{outlet, progress};

/// A comparison, with its drive's name.
pub type Compared = (String, Comparison);

/// Compares for all designs that have separate sets.
///
/// # Errors
/// If a recording can't be run, or standard output is gone.
pub fn beside(
    requirement: &Requirement,
    answer: &Answer,
    candidates: &[Candidate],
    shown: bool,
) -> Result<Vec<Compared>> {
    let mut all = Vec::new();
    for design in answer.designs.iter().filter(|design| design.sets.is_some()) {
        let named = candidates.iter().find(|c| c.profile.name == design.drive);
        let Some(candidate) = named else { continue };
        let spec = Spec::from_profile(&candidate.profile)?;
        let bar = progress::mission_bar(shown);
        progress::say(&bar, &format!("{}: readers beside the recording", design.drive));
        let found = compare(requirement, design, &spec, |share| {
            bar.set_position((share * 1000.0) as u64);
            ControlFlow::Continue(())
        })
        .with_context(|| format!("recording to {} beside readers", design.drive))?;
        bar.finish_and_clear();
        let Some(found) = found else { continue };
        if shown {
            show(design, &found)?;
        }
        all.push((design.drive.clone(), found));
    }
    Ok(all)
}

fn show(design: &Design, comparison: &Comparison) -> Result<()> {
    let percents: Vec<String> = PERCENTS.iter().map(|percent| format!("{percent} %")).collect();
    let mut heads = vec!["sets", "drives", "writes, each", "reads", "late", "mean us"];
    heads.extend(percents.iter().map(String::as_str));
    heads.extend(["longest", "buffers", "recording"]);
    let right: Vec<usize> = (1..heads.len() - 1).collect();
    let mut table = outlet::table(&heads, &right);
    for run in &comparison.runs {
        table.add_row(row(run, &run.sets.to_string(), &run.reads.latencies, true));
        if !run.reads.after_change.is_empty() {
            table.add_row(row(run, "after a change", &run.reads.after_change, false));
        }
    }
    outlet::text(&format!("\n{}: readers beside the recording, us", design.drive))?;
    outlet::text(&outlet::trimmed(&table))?;
    let turn = design.sets.as_ref().map_or(0.0, |split| split.turn_s);
    outlet::text(&format!(
        "Found by recording over stale data on simulated drives. Late: reads that were not begun when they were due. After a change: \
         those of the first second after the recorder and the readers change places, one in every {}.",
        plan::explain::seconds(turn)
    ))
}

fn row(run: &Beside, name: &str, latencies: &Latencies, first: bool) -> Vec<String> {
    let us = |time: Option<Duration>| {
        time.map_or_else(
            || "-".to_owned(),
            |time| outlet::number((time.as_nanos() as f64 / 1e3).round() as u64),
        )
    };
    let once = |text: String| if first { text } else { String::new() };
    let missed = run.reads.missed_bytes as f64;
    let all = (missed + run.reads.bytes as f64).max(1.0);
    let mut cells = vec![
        name.to_owned(),
        once(run.drives.to_string()),
        once(plan::explain::rate(run.write_bytes_per_s)),
        outlet::number(latencies.count()),
        once(format!("{:.1} %", missed / all * 100.0)),
        latencies.mean_ns().map_or_else(|| "-".to_owned(), |ns| format!("{:.0}", ns / 1e3)),
    ];
    cells.extend(PERCENTS.iter().map(|percent| us(latencies.percentile(*percent))));
    cells.push(us(latencies.max()));
    let filled = f64::from(run.buffers_most) / f64::from(run.buffers.max(1)) * 100.0;
    cells.push(once(format!("{filled:.0} %")));
    let lost = run.first_loss.as_ref();
    cells.push(once(lost.map_or_else(|| "no loss".to_owned(), |loss| format!("loss {loss}"))));
    cells
}

/// A comparison as JSON: nanoseconds, bytes, bytes a second.
pub fn json(compared: &Compared) -> Value {
    let (drive, comparison) = compared;
    let runs: Vec<Value> = comparison
        .runs
        .iter()
        .map(|run| {
            json!({
                "sets": run.sets.to_string(), "drives": run.drives,
                "write_bytes_per_s_each": run.write_bytes_per_s,
                "read_bytes": run.reads.bytes, "missed_read_bytes": run.reads.missed_bytes,
                "latencies": latencies_json(&run.reads.latencies),
                "after_change": latencies_json(&run.reads.after_change),
                "buffers": run.buffers, "buffers_most": run.buffers_most,
                "first_loss": run.first_loss.as_ref().map(ToString::to_string),
                "looked_at_s": run.time.as_secs_f64(),
            })
        })
        .collect();
    json!({ "drive": drive, "runs": runs })
}

fn latencies_json(latencies: &Latencies) -> Value {
    let ns = |time: Option<Duration>| time.map(Duration::as_nanos);
    let percentiles: Vec<Value> = PERCENTS
        .iter()
        .map(|percent| json!([percent, ns(latencies.percentile(*percent))]))
        .collect();
    json!({
        "count": latencies.count(), "mean_ns": latencies.mean_ns(), "percentiles_ns": percentiles,
        "max_ns": ns(latencies.max()),
    })
}
