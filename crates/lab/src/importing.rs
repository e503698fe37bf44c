//! Measurements made elsewhere, read in: fio's output and logs, tables of time and rate, and our own files. Each is told by what
//! is in it. What shows a rate over time becomes a series, which is judged as a measured fill is.

pub mod fio_log;
mod passes;
pub mod profile;
pub mod table;
pub mod units;

use std::fmt;

use load::Measurement;
use serde_json::Value;

use crate::analysis::Series;
use crate::lab::Step;
use crate::run::Run;
use fio_log::{FioLog, FioLogError};
use table::{TableError, TableOptions};

pub use passes::{Passes, added_up};

/// What a file holds.
#[derive(Clone, Debug)]
pub enum Found {
    /// What fio's JSON says.
    Fio(Box<Measurement>),
    /// A log of fio's.
    Log(FioLog),
    /// A single workload that we measured.
    Step(Box<Step>),
    /// A run of experiments that we measured.
    Run(Box<Run>),
    /// Rates over time, from a table.
    Table(Series),
}

/// Why a file can't be read in.
#[derive(Debug)]
pub enum ImportError {
    /// It is JSON of neither fio's nor ours.
    Json {
        /// What was expected, and what is wrong with it.
        reason: String,
    },
    /// fio's JSON.
    Fio(load::fio_json::FioError),
    /// A log of fio's.
    Log(FioLogError),
    /// A table.
    Table(TableError),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json { reason } => write!(
                f,
                "this JSON is neither fio's nor what `longtake measure` writes ({reason}): give fio's --output-format=json+, a \
                 run.json, or the folder of results itself"
            ),
            Self::Fio(error) => error.fmt(f),
            Self::Log(error) => error.fmt(f),
            Self::Table(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ImportError {}

/// Reads what a file holds. The options are for tables alone.
///
/// # Errors
/// [`ImportError`], with the line where there is one.
pub fn read(bytes: &[u8], options: &TableOptions) -> Result<Found, ImportError> {
    let text = table::decoded(bytes);
    if fio_log::is_one(&text) {
        return fio_log::read(&text).map(Found::Log).map_err(ImportError::Log);
    }
    if text.contains("\"fio version\"") {
        let read = load::fio_json::read(&text).map_err(ImportError::Fio)?;
        return Ok(Found::Fio(Box::new(read)));
    }
    if text.trim_start().starts_with('{') {
        return ours(&text);
    }
    table::read(&text, options).map(Found::Table).map_err(ImportError::Table)
}

fn ours(text: &str) -> Result<Found, ImportError> {
    let failed = |error: serde_json::Error| ImportError::Json { reason: error.to_string() };
    let value: Value = serde_json::from_str(text).map_err(failed)?;
    if value.get("outcomes").is_some() {
        return serde_json::from_value(value).map(|run| Found::Run(Box::new(run))).map_err(failed);
    }
    // `measure run --json` prints the step with its folder.
    let step = value.get("step").cloned().unwrap_or(value);
    serde_json::from_value(step).map(|step| Found::Step(Box::new(step))).map_err(failed)
}
