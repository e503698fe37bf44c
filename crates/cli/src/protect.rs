//! `longtake protect` and `longtake unprotect`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use base::Timestamp;
use longtake::TimeRange;
use longtake::array::protect;
use longtake::instant::utc;
use serde_json::json;
use source::clock;

use crate::arguments::ProtectArguments;
use crate::{opening, printer};

/// Protects a span of time.
///
/// # Errors
/// If the array can't be opened or written.
pub fn protect(arguments: &ProtectArguments) -> Result<ExitCode> {
    let now = clock::now();
    let (Some(since), Some(until)) = (arguments.since, arguments.until) else {
        bail!("protect needs --since and --until: the start and the end of the span to keep");
    };
    let span = TimeRange { from: since.at(now), to: until.at(now) };
    if span.from > span.to {
        bail!("--since {} lies after --until {}: exchange them", utc(span.from), utc(span.to));
    }
    let count = protect::protect(&arguments.array, span, &arguments.label, opening::tell())?;
    report(arguments, "protected", span, count)
}

/// Ends the protection of spans of time.
///
/// # Errors
/// If the array can't be opened or written.
pub fn unprotect(arguments: &ProtectArguments) -> Result<ExitCode> {
    let now = clock::now();
    let span = match (arguments.since, arguments.until) {
        (None, None) if arguments.all => TimeRange::ALL,
        (None, None) => bail!("unprotect needs --since and --until, or --all"),
        (since, until) => TimeRange {
            from: since.map_or(Timestamp::MIN, |w| w.at(now)),
            to: until.map_or(Timestamp::MAX, |w| w.at(now)),
        },
    };
    let count = protect::unprotect(&arguments.array, span, opening::tell())?;
    report(arguments, "no longer protected", span, count)
}

fn report(
    arguments: &ProtectArguments,
    what: &str,
    span: TimeRange,
    count: usize,
) -> Result<ExitCode> {
    let TimeRange { from, to } = span;
    if arguments.json {
        printer::json(&json!({"from": utc(from), "to": utc(to), "protected_ranges": count}))?;
    } else {
        printer::text(&format!(
            "{} to {}: {what}; {} in all",
            utc(from),
            utc(to),
            printer::counted(count as u64, "protected span")
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
