//! `longtake protect` and `longtake unprotect`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use base::Timestamp;
use longtake::array::protect::change;
use longtake::control::Request;
use longtake::instant::utc;
use serde_json::json;
use source::clock;

use crate::arguments::ProtectArguments;
use crate::{opening, outlet};

/// Protects a span of time.
///
/// # Errors
/// If the array can't be opened or written.
pub fn protect(arguments: &ProtectArguments) -> Result<ExitCode> {
    let now = clock::now();
    let (Some(since), Some(until)) = (arguments.since, arguments.until) else {
        bail!("protect needs both --since and --until: which span of time is to be kept?");
    };
    let (from, to) = (since.at(now), until.at(now));
    if from > to {
        bail!("--since {} lies after --until {}: exchange them", utc(from), utc(to));
    }
    let label = arguments.label.clone();
    let request = Request::Protect { from_ns: from.as_nanos(), to_ns: to.as_nanos(), label };
    let count = change(&arguments.array, &request, opening::tell())?;
    report(arguments, "protected", from, to, count)
}

/// Gives protected spans up.
///
/// # Errors
/// If the array can't be opened or written.
pub fn unprotect(arguments: &ProtectArguments) -> Result<ExitCode> {
    let now = clock::now();
    let (from, to) = match (arguments.since, arguments.until) {
        (None, None) if arguments.all => (Timestamp::MIN, Timestamp::MAX),
        (None, None) => bail!("unprotect needs --since and --until, or --all"),
        (since, until) => (
            since.map_or(Timestamp::MIN, |w| w.at(now)),
            until.map_or(Timestamp::MAX, |w| w.at(now)),
        ),
    };
    let request = Request::Unprotect { from_ns: from.as_nanos(), to_ns: to.as_nanos() };
    let count = change(&arguments.array, &request, opening::tell())?;
    report(arguments, "no longer protected", from, to, count)
}

fn report(
    arguments: &ProtectArguments,
    what: &str,
    from: Timestamp,
    to: Timestamp,
    count: usize,
) -> Result<ExitCode> {
    if arguments.json {
        outlet::json(&json!({"from": utc(from), "to": utc(to), "protected_ranges": count}))?;
    } else {
        outlet::text(&format!(
            "{} to {}: {what}; {count} protected spans in all",
            utc(from),
            utc(to)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
