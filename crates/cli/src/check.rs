//! `longtake array check`: reads everything back and verifies every checksum.

use std::process::ExitCode;

use anyhow::Result;
use longtake::{json, text};

use crate::arguments::ArrayArguments;
use crate::{exit, opening, printer, progress};

/// Checks an array.
///
/// # Errors
/// If it can't be opened. Damage that is found is output, and exit code 3.
pub fn check(arguments: &ArrayArguments) -> Result<ExitCode> {
    let mut array = opening::open_to_read(arguments)?;
    let bar = progress::bytes_bar(0, "checking", !arguments.json);
    let report = array.check(|progress| progress::show(&bar, progress))?;
    bar.finish_and_clear();
    if arguments.json {
        printer::json(&json::checked(&report))?;
    } else {
        printer::tell_all(text::recovered_chunks(&report.recovered));
        printer::lines(text::checked(&report))?;
    }
    Ok(exit::lossless(report.is_sound()))
}
