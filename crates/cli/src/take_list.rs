//! `longtake takes` and `longtake ledger`: what was recorded, and its account.

use std::process::ExitCode;

use anyhow::{Result, bail};
use base::{ByteSize, Timestamp};
use format::Count;
use recorder::TimeRange;
use recorder::takes::Take;
use serde_json::{Value, json};

use crate::arguments::{ArrayArguments, LedgerArguments, takes_match};
use crate::exit;
use crate::opening::{self, Opened};
use crate::outlet;
use longtake::instant::utc;

/// Lists an array's takes.
///
/// # Errors
/// If the array can't be opened.
pub fn takes(arguments: &ArrayArguments) -> Result<ExitCode> {
    let (opened, takes) = load(arguments)?;
    let code = if opened.overwritten > 0 { exit::LOSS } else { 0 };
    if arguments.json {
        let list: Vec<Value> = takes
            .iter()
            .enumerate()
            .map(|(at, t)| take_json(t, is_open(&opened, &takes, at)))
            .collect();
        outlet::json(&Value::Array(list))?;
        return Ok(ExitCode::from(code));
    }
    if takes.is_empty() {
        outlet::text("no takes: nothing was recorded on this array yet")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = outlet::table(
        &["take", "started", "length", "packets", "bytes", "lost", "missing", "state"],
        &[2, 3, 4, 5, 6],
    );
    for (at, take) in takes.iter().enumerate() {
        table.add_row([
            take.id.uuid.to_string(),
            utc(take.id.started),
            take.duration().to_string(),
            outlet::number(take.stored.packets),
            ByteSize(take.captured_bytes).to_string(),
            outlet::number(take.ledger.lost_unwanted().packets),
            outlet::number(take.missing().packets),
            state(take, is_open(&opened, &takes, at)).to_owned(),
        ]);
    }
    outlet::text(&outlet::trimmed(&table))?;
    for take in takes.iter().filter(|take| take.recovered_chunks > 0) {
        outlet::text(&format!("{}: {}", take.id.uuid, recovered(take)))?;
    }
    for take in takes.iter().filter(|take| !take.ledger.truncated.is_zero()) {
        let words = outlet::truncated_words(take.ledger.truncated);
        outlet::text(&format!("{}: {words}", take.id.uuid))?;
    }
    Ok(ExitCode::from(code))
}

/// What of a take is there by parity alone.
fn recovered(take: &Take) -> String {
    format!(
        "recovered from parity: {} chunks, {} packets, {} bytes",
        outlet::number(take.recovered_chunks),
        outlet::number(take.recovered.packets),
        outlet::number(take.recovered.bytes)
    )
}

/// Shows one take's account.
///
/// # Errors
/// If the array can't be opened or has no such take.
pub fn ledger(arguments: &LedgerArguments) -> Result<ExitCode> {
    let (opened, takes) = load(&arguments.array)?;
    let found: Vec<usize> = (0..takes.len())
        .filter(|&at| takes_match(&arguments.take, takes[at].id.uuid, at + 1 == takes.len()))
        .collect();
    let at = match found[..] {
        [at] => at,
        [] => bail!("no take '{}': `longtake takes` lists them", arguments.take),
        _ => bail!("several takes begin with '{}': give more of the UUID", arguments.take),
    };
    let take = &takes[at];
    let recording = is_open(&opened, &takes, at);
    let complete = take.ledger.lost_unwanted().is_zero() && take.ledger.truncated.packets == 0;
    let there = take.gaps.is_empty() && opened.overwritten == 0;
    let clean = complete && there && take.balances();
    let code = if clean { ExitCode::SUCCESS } else { ExitCode::from(exit::LOSS) };
    if arguments.array.json {
        outlet::json(&take_json(take, recording))?;
        return Ok(code);
    }
    outlet::text(&format!("take {}, started {}", take.id.uuid, utc(take.id.started)))?;
    outlet::text(&format!("{} over {}\n", state(take, recording), take.duration()))?;
    outlet::text(&outlet::ledger_table(&take.ledger))?;
    outlet::text(&account(take))?;
    Ok(code)
}

/// What became of the stored part: there, overwritten, missing.
fn account(take: &Take) -> String {
    let count = |c: Count| {
        format!("{} packets, {} bytes", outlet::number(c.packets), outlet::number(c.bytes))
    };
    let mut text = format!("\non the media: {} in {} chunks", count(take.stored), take.chunks);
    if take.recovered_chunks > 0 {
        text += &format!("\nof that {}", recovered(take));
    }
    if !take.overwritten.is_zero() {
        text += &format!("\noverwritten by the ring since: {}", count(take.overwritten));
    }
    for gap in &take.gaps {
        text += &format!(
            "\nMISSING: {} in chunks {} to {}, between {} and {}",
            count(gap.count),
            gap.first_sequence,
            gap.last_sequence,
            utc(Timestamp::from_nanos(gap.from_ns)),
            utc(Timestamp::from_nanos(gap.to_ns))
        );
    }
    if !take.ended {
        text += "\nno end is recorded: the ledger reaches to the last chunk found; what was offered after it is not known";
    }
    let sum =
        if take.balances() { "which adds up" } else { "which does NOT add up: please report it" };
    text + &format!("\nstored = on the media + overwritten + missing, {sum}")
}

fn state(take: &Take, recording: bool) -> &'static str {
    match (take.ended, recording) {
        (true, _) => "complete",
        (false, true) => "being recorded",
        (false, false) => "cut short",
    }
}

/// Whether a take is the one that is being recorded.
fn is_open(opened: &Opened, takes: &[Take], at: usize) -> bool {
    opened.recording && at + 1 == takes.len() && !takes[at].ended
}

/// Opens an array and lists its takes.
fn load(arguments: &ArrayArguments) -> Result<(Opened, Vec<Take>)> {
    let mut opened = opening::open_to_read(&arguments.array, arguments.degraded)?;
    let catalog = opened.catalog(TimeRange::ALL)?;
    let takes = catalog.takes();
    Ok((opened, takes))
}

/// A take as JSON.
pub fn take_json(take: &Take, recording: bool) -> Value {
    let time = |ns: u64| (take.stored.packets > 0).then(|| utc(Timestamp::from_nanos(ns)));
    json!({
        "take": take.id.uuid,
        "started": utc(take.id.started),
        "first_packet": time(take.first_ns),
        "last_packet": time(take.last_ns),
        "state": state(take, recording),
        "chunks": take.chunks,
        "first_sequence": take.first_sequence,
        "last_sequence": take.last_sequence,
        "queues": take.queues,
        "on_media": outlet::count_json(take.stored),
        "captured_bytes": take.captured_bytes,
        "media_bytes": take.media_bytes,
        "parity": {"chunks": take.parity_chunks, "bytes": take.parity_bytes},
        "recovered": {
            "chunks": take.recovered_chunks,
            "packets": take.recovered.packets,
            "bytes": take.recovered.bytes,
        },
        "ledger": outlet::ledger_json(&take.ledger),
        "overwritten": outlet::count_json(take.overwritten),
        "missing": outlet::count_json(take.missing()),
        "gaps": take.gaps.iter().map(|gap| json!({
            "first_sequence": gap.first_sequence,
            "last_sequence": gap.last_sequence,
            "missing": outlet::count_json(gap.count),
            "from": utc(Timestamp::from_nanos(gap.from_ns)),
            "to": utc(Timestamp::from_nanos(gap.to_ns)),
        })).collect::<Vec<_>>(),
        "balances": take.balances(),
    })
}
