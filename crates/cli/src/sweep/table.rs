//! The tables of a sweep: which files they are, and writing them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use report::series::Columns;
use target::output::Outputs;

use super::arguments::SweepArguments;
use crate::report::{Series, write_series};

/// Writes the table as CSV and, if asked for, as Parquet; returns where.
///
/// # Errors
/// If a file can't be written.
pub fn write(
    columns: &Columns,
    folder: &Path,
    arguments: &SweepArguments,
    outputs: &Outputs,
) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for (path, kind, outputs) in tables(outputs, folder, arguments) {
        write_series(columns, &path, kind, &outputs)?;
        written.push(path);
    }
    Ok(written)
}

/// Checks that the tables can be written, before any job is run.
///
/// # Errors
/// If one must not be.
pub fn check(outputs: &Outputs, folder: &Path, arguments: &SweepArguments) -> Result<()> {
    outputs.check_folder(folder)?;
    for (path, _, outputs) in tables(outputs, folder, arguments) {
        outputs.check(&path)?;
    }
    Ok(())
}

/// The tables that are written. The one in the folder of results is the sweep's own and is replaced each time.
fn tables(
    outputs: &Outputs,
    folder: &Path,
    arguments: &SweepArguments,
) -> Vec<(PathBuf, Series, Outputs)> {
    let csv = match &arguments.csv {
        Some(path) => (path.clone(), Series::Csv, outputs.clone()),
        None => (folder.join("results.csv"), Series::Csv, outputs.replacing()),
    };
    let parquet = arguments.parquet.iter().map(|p| (p.clone(), Series::Parquet, outputs.clone()));
    std::iter::once(csv).chain(parquet).collect()
}
