//! `longtake takes` and `longtake ledger`: what was recorded, and its account.

use std::process::ExitCode;

use anyhow::Result;
use longtake::instant::utc;
use longtake::{json, text};
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
    printer::listing(&text::takes(&takes))?;
    for take in takes.iter().filter(|take| take.recovered_chunks > 0) {
        printer::text(&format!("{}: {}", take.id.uuid, text::recovered(take)))?;
    }
    for take in takes.iter().filter(|take| !take.ledger.truncated.is_zero()) {
        let words = ledger::truncated_words(take.ledger.truncated);
        printer::text(&format!("{}: {words}", take.id.uuid))?;
    }
    Ok(code)
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
    printer::text("")?;
    printer::messages(text::account(&take))?;
    Ok(code)
}
