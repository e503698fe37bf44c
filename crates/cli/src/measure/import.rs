//! `longtake measure import`: fio's JSON as a measurement.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use lab::Step;
use lab::counters::StepCounters;
use serde_json::json;
use target::output::Outputs;

use crate::measure::arguments::ImportArguments;
use crate::measure::{OutputFolder, print};
use crate::printer;

/// Reads a result of fio's and keeps it as ours.
///
/// # Errors
/// If it can't be read, or isn't fio's.
pub fn import(arguments: &ImportArguments) -> Result<ExitCode> {
    // Removed again if there is nothing to keep.
    let folder = OutputFolder::make(arguments.output.as_ref(), false)?;
    let text = if arguments.file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("reading standard input")?;
        text
    } else {
        fs::read_to_string(&arguments.file)
            .with_context(|| format!("reading {}", arguments.file.display()))?
    };
    let measurement = load::fio_json::read(&text)
        .with_context(|| format!("reading {}", arguments.file.display()))?;
    let folder = folder.keep();
    let step = Step { measurement, samples: Vec::new(), counters: StepCounters::default() };
    Outputs::default().make_folder(&folder.join("run"))?;
    lab::lab::write_json(&folder.join("run/workload.json"), &step)?;
    if arguments.json {
        printer::json(&json!({ "folder": folder, "step": step }))?;
    } else {
        print(&step.measurement, &[])?;
        printer::message(&format!("results: {}", folder.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
