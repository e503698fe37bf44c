//! `longtake array index`: flow indexes for what was recorded without them.

use std::process::ExitCode;

use anyhow::Result;
use longtake::array::IndexOptions;
use longtake::{json, text};

use crate::arguments::IndexArguments;
use crate::{opening, printer, progress};

/// Indexes an array.
///
/// # Errors
/// If it can't be opened, somebody records on it, or a drive can't be written.
pub fn index(arguments: &IndexArguments) -> Result<ExitCode> {
    let IndexArguments { array: read, again } = arguments;
    let mut array = opening::options(read.degraded).open(&read.array)?;
    let bar = progress::chunks_bar(0, "indexing", !read.json);
    let options = IndexOptions { again: *again };
    let report = array.index(&options, |progress| progress::show(&bar, progress))?;
    bar.finish_and_clear();
    if read.json {
        printer::json(&json::indexed(&report))?;
    } else {
        printer::lines(text::indexed(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}
