//! `longtake array scrub`: everything is read and held against checksums and parity; what parity allows is repaired.

use std::process::ExitCode;

use anyhow::Result;
use longtake::array::ScrubOptions;
use longtake::{json, text};

use crate::arguments::ScrubArguments;
use crate::{exit, opening, printer, progress};

/// Scrubs an array.
///
/// # Errors
/// If it can't be opened, or is to be repaired while somebody records on it. Damage that is found is output, and exit code 3.
pub fn scrub(arguments: &ScrubArguments) -> Result<ExitCode> {
    let ScrubArguments { array: read, repair, limit } = arguments;
    let mut array = opening::options(read.degraded).repair(*repair).open(&read.array)?;
    let bar = progress::bytes_bar(0, "scrubbing", !read.json);
    let options = ScrubOptions { repair: *repair, limit: *limit };
    let report = array.scrub(&options, |progress| progress::show(&bar, progress))?;
    bar.finish_and_clear();
    if read.json {
        printer::json(&json::scrubbed(&report))?;
    } else {
        printer::lines(text::scrubbed(&report))?;
    }
    Ok(exit::lossless(report.is_sound()))
}
