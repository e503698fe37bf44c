//! `longtake takes` and `longtake ledger`: what was recorded, and its account.

use std::process::ExitCode;

use anyhow::Result;
use longtake::instant::utc;
use longtake::{json, text};
use report::ledger;

use crate::arguments::{LedgerArguments, TakesArguments};
use crate::{exit, opening, printer};

/// The answer to `takes --delete`.
const NO_DELETION: &str = "longtake: a single take can't be deleted, because takes share segments and parity with each other: \
    `longtake array delete` deletes the whole array, and a ring (`record --when-full wrap`) overwrites its oldest takes, \
    protected ones after `longtake unprotect`";

/// Lists an array's takes.
///
/// # Errors
/// If the array can't be opened.
pub fn takes(arguments: &TakesArguments) -> Result<ExitCode> {
    if arguments.delete.is_some() {
        printer::tell(NO_DELETION);
        return Ok(ExitCode::from(exit::USAGE));
    }
    let mut array = opening::open_to_read(&arguments.array)?;
    let mut takes = array.takes()?;
    let code = exit::lossless(array.overwritten_chunks() == 0);
    if arguments.array.json {
        let rejections = array.rejections(&takes)?;
        printer::json(
            &takes.iter().zip(rejections).map(|(take, of)| json::take(take, of)).collect(),
        )?;
        return Ok(code);
    }
    if takes.is_empty() {
        printer::text("no takes: nothing has been recorded on this array yet")?;
        return Ok(ExitCode::SUCCESS);
    }
    let count = takes.len();
    takes.retain(|take| arguments.all || !take.is_overwritten());
    let hidden = count - takes.len();
    printer::listing(&text::takes(&takes))?;
    if hidden > 0 {
        let (older, are) =
            (printer::counted(hidden as u64, "older take"), if hidden == 1 { "is" } else { "are" });
        printer::text(&format!("{older} {are} overwritten: --all lists them too"))?;
    }
    for take in takes.iter().filter(|take| !take.overwritten.is_zero()) {
        printer::text(&format!("{}: {}", take.id.uuid, text::left(take)))?;
    }
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
    let rejections = array.rejections(std::slice::from_ref(&take))?[0];
    let complete = take.ledger.lost_unwanted().is_zero() && take.ledger.truncated.packets == 0;
    let readable = take.gaps.is_empty() && array.overwritten_chunks() == 0;
    let code = exit::lossless(complete && readable && take.balances());
    if arguments.array.json {
        printer::json(&json::take(&take, rejections))?;
        return Ok(code);
    }
    printer::text(&format!("take {}, started {}", take.id.uuid, utc(take.id.started)))?;
    printer::text(&format!("{} over {}\n", take.state, take.duration()))?;
    printer::text(&printer::ledger(&take.ledger, rejections))?;
    printer::text("")?;
    printer::messages(text::account(&take))?;
    Ok(code)
}
