//! `longtake takes` and `longtake ledger`: what was recorded, and its account.

use std::process::ExitCode;

use anyhow::Result;
use base::{ByteSize, Timestamp};
use format::Count;
use longtake::array::{Gap, Take};
use longtake::instant::utc;
use longtake::json;
use report::ledger;

use crate::arguments::{ArrayArguments, LedgerArguments};
use crate::{exit, opening, printer};

/// Lists an array's takes.
///
/// # Errors
/// If the array can't be opened.
pub fn takes(arguments: &ArrayArguments) -> Result<ExitCode> {
    let mut array = opening::open_to_read(arguments)?;
    let takes = array.takes()?;
    let code = exit::lossless(array.overwritten_chunks() == 0);
    if arguments.json {
        printer::json(&takes.iter().map(json::take).collect())?;
        return Ok(code);
    }
    if takes.is_empty() {
        printer::text("no takes: nothing has been recorded on this array yet")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = printer::table(
        &["take", "started", "length", "packets", "bytes", "lost", "missing", "state"],
        &[2, 3, 4, 5, 6],
    );
    for take in &takes {
        table.add_row([
            take.id.uuid.to_string(),
            utc(take.id.started),
            take.duration().to_string(),
            printer::number(take.stored.packets),
            ByteSize(take.captured_bytes).to_string(),
            printer::number(take.ledger.lost_unwanted().packets),
            printer::number(take.missing().packets),
            take.state.to_string(),
        ]);
    }
    printer::text(&printer::trimmed(&table))?;
    for take in takes.iter().filter(|take| take.recovered_chunks > 0) {
        printer::text(&format!("{}: {}", take.id.uuid, recovered(take)))?;
    }
    for take in takes.iter().filter(|take| !take.ledger.truncated.is_zero()) {
        let words = ledger::truncated_words(take.ledger.truncated);
        printer::text(&format!("{}: {words}", take.id.uuid))?;
    }
    Ok(code)
}

/// What of a take is there by parity alone.
fn recovered(take: &Take) -> String {
    format!(
        "recovered from parity: {} chunks, {} packets, {} bytes",
        printer::number(take.recovered_chunks),
        printer::number(take.recovered.packets),
        printer::number(take.recovered.bytes)
    )
}

/// Shows one take's account.
///
/// # Errors
/// If the array can't be opened or has no such take.
pub fn ledger(arguments: &LedgerArguments) -> Result<ExitCode> {
    let mut array = opening::open_to_read(&arguments.array)?;
    let take = array.ledger(&arguments.take)?;
    let complete = take.ledger.lost_unwanted().is_zero() && take.ledger.truncated.packets == 0;
    let readable = take.gaps.is_empty() && array.overwritten_chunks() == 0;
    let code = exit::lossless(complete && readable && take.balances());
    if arguments.array.json {
        printer::json(&json::take(&take))?;
        return Ok(code);
    }
    printer::text(&format!("take {}, started {}", take.id.uuid, utc(take.id.started)))?;
    printer::text(&format!("{} over {}\n", take.state, take.duration()))?;
    printer::text(&ledger::table(&take.ledger, ledger::Rejections::IfAny))?;
    printer::text(&account(&take))?;
    Ok(code)
}

/// When the packets of a gap came, as far as the chunks around it tell.
fn times(gap: &Gap) -> String {
    let time = |ns| utc(Timestamp::from_nanos(ns));
    if gap.to_ns == u64::MAX {
        return format!("after {}", time(gap.from_ns));
    }
    format!("between {} and {}", time(gap.from_ns), time(gap.to_ns))
}

/// What became of the stored part: there, overwritten, missing.
fn account(take: &Take) -> String {
    let count = |c: Count| {
        format!("{} packets, {} bytes", printer::number(c.packets), printer::number(c.bytes))
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
            "\nMISSING: {} in chunks {} to {}, {}",
            count(gap.count),
            gap.first_sequence,
            gap.last_sequence,
            times(gap)
        );
    }
    if !take.ended {
        text += "\nthe take has no recorded end: the ledger covers everything up to the last chunk found, and nothing after it";
    }
    let sum =
        if take.balances() { "which adds up" } else { "which does NOT add up: please report it" };
    text + &format!("\nstored = on the media + overwritten + missing, {sum}")
}
