//! A recording in virtual time as text, as JSON and as a document: how far it is, and what came of it.

pub mod pictures;

use base::units::{counted, grouped as number};
use base::{ByteSize, Duration, Rate};
use plan::explain;
use plan::mission::{
    DriveOutcome, Erasing, FirstLoss, LossCause, MissionOutcome, Progress, Sample, Warmth,
};
use serde_json::{Value, json};

use crate::document::{Cell, Column, Document, Section, Table};
use crate::{ledger, text};

/// What is held of the last packets, in words.
fn kept(outcome: &MissionOutcome) -> &'static str {
    if outcome.first_loss.is_none() { "came" } else { "was stored" }
}

/// What came of a mission, several lines.
pub fn text(outcome: &MissionOutcome) -> String {
    let written: u64 = outcome.drives.iter().map(|drive| drive.written_bytes).sum();
    let mut lines = vec![
        format!(
            "{} of virtual time{}: {} chunks, {} written to {} at {}\n",
            outcome.time,
            if outcome.whole { "" } else { ", broken off" },
            number(outcome.chunks),
            ByteSize(written),
            counted(outcome.drives.len() as u64, "drive"),
            Rate::of(written, outcome.time),
        ),
        ledger::table(&outcome.ledger, ledger::Rejections::IfAny),
    ];
    lines.extend(outcome.first_loss.as_ref().map(|loss| format!("\nfirst loss {loss}")));
    lines.push(format!(
        "\nbuffers were filled to {:.0} % at most; what {} in the last {} is held",
        100.0 * f64::from(outcome.buffers_most) / f64::from(outcome.buffers),
        kept(outcome),
        outcome.retention,
    ));
    lines.extend(outcome.slowest_wrapped().map(|rate| {
        let window = outcome.time.as_secs_f64() / outcome.samples.len().max(1) as f64;
        format!("the slowest {} from the second lap on: {rate}", explain::seconds(window))
    }));
    let heads = [
        "drive",
        "written",
        "passes",
        "flash for one byte",
        "erased ahead",
        "waits for erases",
        "life at this rate",
    ];
    let mut table = text::table(&heads, &[1, 2, 3, 4, 5, 6]);
    for drive in &outcome.drives {
        let life_s = drive.life_years * 365.0 * 86_400.0;
        table.add_row([
            drive.name.clone(),
            ByteSize(drive.written_bytes).to_string(),
            format!("{:.2}", drive.passes),
            format!("{:.3}", drive.amplification()),
            erasing(drive, |erasing| erasing.ahead),
            erasing(drive, |erasing| erasing.wait),
            if life_s.is_finite() { explain::seconds(life_s) } else { "-".to_owned() },
        ]);
    }
    lines.push(format!("\n{}", text::trimmed(&table)));
    lines.extend(warmth(outcome));
    lines.join("\n")
}

/// How warm the warmest drive got, and what that cost; None without simulated heat.
fn warmth(outcome: &MissionOutcome) -> Option<String> {
    let warmest = outcome.drives.iter().filter_map(|drive| Some((drive, drive.warmth?)));
    let (drive, warmth) =
        warmest.max_by(|a, b| a.1.highest_celsius.total_cmp(&b.1.highest_celsius))?;
    let Warmth { highest_celsius, lightly, heavily } = warmth;
    let throttled = if lightly + heavily == Duration::ZERO {
        "and was not throttled".to_owned()
    } else {
        format!(
            "and was throttled lightly for {}, heavily for {}",
            explain::seconds(lightly.as_secs_f64()),
            explain::seconds(heavily.as_secs_f64())
        )
    };
    Some(format!(
        "{} was the warmest drive: it reached {highest_celsius:.0} °C {throttled}",
        drive.name
    ))
}

/// What came of a mission, with pictures of how it went.
pub fn document(outcome: &MissionOutcome) -> Document {
    let mut document = Document::new("A recording on simulated drives");
    let written: u64 = outcome.drives.iter().map(|drive| drive.written_bytes).sum();
    let lost = outcome.ledger.lost_unwanted().bytes;
    let said = match &outcome.first_loss {
        Some(loss) => format!("{} lost; first loss {loss}.", ByteSize(lost)),
        None => "Nothing was lost.".to_owned(),
    };
    let mut section = Section::new("recording", "Recording", said);
    section.paragraphs.push(format!(
        "{} in {} of virtual time{}, {} on average. Buffers were filled to {:.0} % at most. What {} in the last {} is held.",
        ByteSize(written),
        outcome.time,
        if outcome.whole { "" } else { ", broken off" },
        Rate::of(written, outcome.time),
        100.0 * f64::from(outcome.buffers_most) / f64::from(outcome.buffers.max(1)),
        kept(outcome),
        outcome.retention,
    ));
    section.paragraphs.extend(warmth(outcome).map(|said| format!("{said}.")));
    section.pictures = pictures::pictures(&[(String::new(), outcome)], None);
    section.tables.push(drives(outcome));
    document.sections.push(section);
    document
}

/// What each drive went through.
fn drives(outcome: &MissionOutcome) -> Table {
    let row = |drive: &DriveOutcome| {
        let years = Some(drive.life_years).filter(|years| years.is_finite());
        vec![
            Cell::text(&drive.name),
            Cell::number(drive.written_bytes as f64 / 1e9, 1),
            Cell::number(drive.passes, 2),
            Cell::number(drive.amplification(), 3),
            Cell::maybe(years, 1),
        ]
    };
    Table {
        caption: "Drives".to_owned(),
        columns: vec![
            Column::text("Drive"),
            Column::number("Written", "GB"),
            Column::number("Passes", ""),
            Column::number("Write amplification", ""),
            Column::number("Life at this rate", "years"),
        ],
        rows: outcome.drives.iter().map(row).collect(),
    }
}

/// A share of a drive's erases or of its time, if it erased anything.
fn erasing(drive: &DriveOutcome, share: impl Fn(Erasing) -> f64) -> String {
    drive.erasing.map_or("-".to_owned(), |erasing| format!("{:.1} %", 100.0 * share(erasing)))
}

/// A sample of a mission under way, as JSON: bytes, seconds, bytes a second. None between samples.
pub fn progress_json(progress: &Progress<'_>) -> Option<Value> {
    let mut value = sample_json(progress.sample?);
    value["event"] = json!("progress");
    value["first_loss"] = progress.first_loss.map_or(Value::Null, loss_json);
    Some(value)
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
                "amplification": drive.amplification, "throttled_celsius": drive.throttled_celsius,
            })
        })
        .collect();
    json!({
        "after_s": loss.at.as_secs_f64(), "full": loss.cause == LossCause::Full,
        "filling": matches!(loss.cause, LossCause::Filling { .. }), "behind": behind,
        "text": loss.to_string(),
    })
}

/// What came of a mission, as JSON: bytes, seconds, bytes a second.
pub fn outcome_json(outcome: &MissionOutcome) -> Value {
    let drives: Vec<Value> = outcome
        .drives
        .iter()
        .map(|drive| {
            json!({
                "name": drive.name, "written": drive.written_bytes,
                "media_written": drive.media_written_bytes, "amplification": drive.amplification(),
                "passes": drive.passes,
                "erased_ahead": drive.erasing.map(|erasing| erasing.ahead),
                "erase_wait": drive.erasing.map(|erasing| erasing.wait),
                "highest_celsius": drive.warmth.map(|warmth| warmth.highest_celsius),
                "throttled_lightly_s": drive.warmth.map(|warmth| warmth.lightly.as_secs_f64()),
                "throttled_heavily_s": drive.warmth.map(|warmth| warmth.heavily.as_secs_f64()),
                "life_used": drive.life_used,
                "rated_used": drive.rated_used,
                "life_years": Some(drive.life_years).filter(|years| years.is_finite()),
            })
        })
        .collect();
    json!({
        "event": "finished", "virtual": true, "after_s": outcome.time.as_secs_f64(),
        "whole": outcome.whole, "chunks": outcome.chunks,
        "ledger": ledger::json(&outcome.ledger, ledger::Rejections::IfAny),
        "first_loss": outcome.first_loss.as_ref().map(loss_json),
        "buffers": outcome.buffers, "buffers_most": outcome.buffers_most,
        "slowest_wrapped": outcome.slowest_wrapped().map(|rate| rate.0),
        "retention_s": outcome.retention.as_secs_f64(), "drives": drives,
        "samples": outcome.samples.iter().map(sample_json).collect::<Vec<_>>(),
    })
}
