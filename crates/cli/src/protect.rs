//! `longtake protect` and `longtake unprotect`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use base::Timestamp;
use clap::Args;
use longtake::TimeRange;
use longtake::array::protect;
use longtake::instant::{When, span_in_words, utc};
use longtake::names;
use serde_json::json;
use source::clock;

use crate::{opening, printer};

/// `protect`.
#[derive(Debug, Args)]
pub struct ProtectArguments {
    /// Array: a directory of member files, drives with commas between them, or an array's name or UUID.
    pub array: String,
    /// Start of the span: 2026-11-21T10:00:00Z, "2026-11-21 10:00" (local), -10m (ago), seconds since 1970.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub since: When,
    /// End of the span, in the same forms, or `now`.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub until: When,
    /// Label shown in listings, at most 40 bytes.
    #[arg(long, default_value = "", hide_default_value = true, value_parser = names::label)]
    pub label: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `unprotect`.
#[derive(Debug, Args)]
pub struct UnprotectArguments {
    /// Array: a directory of member files, drives with commas between them, or an array's name or UUID.
    pub array: String,
    /// Start of the span: 2026-11-21T10:00:00Z, "2026-11-21 10:00" (local), -10m (ago), seconds since 1970
    /// [default: the first packet].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub since: Option<When>,
    /// End of the span, in the same forms, or `now` [default: the last packet].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub until: Option<When>,
    /// Release every protected span.
    #[arg(long, conflicts_with_all = ["since", "until"], required_unless_present_any = ["since", "until"])]
    pub all: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Protects a span of time.
///
/// # Errors
/// If the array can't be opened or written.
pub fn protect(arguments: &ProtectArguments) -> Result<ExitCode> {
    let now = clock::now();
    let span = TimeRange { from: arguments.since.at(now), to: arguments.until.at(now) };
    if span.from > span.to {
        bail!("--since {} lies after --until {}: exchange them", utc(span.from), utc(span.to));
    }
    let count = protect::protect(&arguments.array, span, &arguments.label, opening::tell())?;
    report(arguments.json, "protected", span, count)
}

/// Ends the protection of spans of time.
///
/// # Errors
/// If the array can't be opened or written.
pub fn unprotect(arguments: &UnprotectArguments) -> Result<ExitCode> {
    let now = clock::now();
    let span = TimeRange {
        from: arguments.since.map_or(Timestamp::MIN, |when| when.at(now)),
        to: arguments.until.map_or(Timestamp::MAX, |when| when.at(now)),
    };
    let count = protect::unprotect(&arguments.array, span, opening::tell())?;
    report(arguments.json, "no longer protected", span, count)
}

fn report(as_json: bool, what: &str, span: TimeRange, count: usize) -> Result<ExitCode> {
    if as_json {
        printer::json(
            &json!({"from": utc(span.from), "to": utc(span.to), "protected_ranges": count}),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let in_all = printer::counted(count as u64, "protected span");
    printer::text(&format!("{}: {what}; {in_all} in all", span_in_words(span)))?;
    Ok(ExitCode::SUCCESS)
}
