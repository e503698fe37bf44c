//! The table of a sweep: a row for each job in the sweep's order, a column for each key that varies and each figure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use plan::sweep::{Figure, Job, Sweep};
use report::series::Columns;
use target::output::Outputs;

use super::arguments::SweepArguments;
use super::results::{Finished, Results};
use crate::outlet;
use crate::report::{Series, write_series};

/// A terminal shows so many rows.
const ROWS_SHOWN: u64 = 40;

/// Writes the table as CSV and, if asked for, as Parquet; returns where.
///
/// # Errors
/// If a file can't be written.
pub fn write(
    sweep: &Sweep,
    results: &Results,
    folder: &Path,
    arguments: &SweepArguments,
    outputs: &Outputs,
) -> Result<Vec<PathBuf>> {
    let rows = rows(sweep, results);
    let columns = columns(sweep, &rows);
    let mut written = Vec::new();
    for (path, kind, outputs) in tables(outputs, folder, arguments) {
        write_series(&columns, &path, kind, &outputs)?;
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

/// Prints the first rows.
///
/// # Errors
/// If standard output is gone.
pub fn print(sweep: &Sweep, results: &Results) -> Result<()> {
    let rows = rows(sweep, results);
    let keys = varied(sweep);
    let names: Vec<&str> = figure_names(&rows)
        .into_iter()
        .filter(|(name, is_text)| !is_text || *name == "plan.binds")
        .map(|(name, _)| name)
        .collect();
    let heads: Vec<&str> = keys.iter().copied().chain(names.iter().copied()).collect();
    let right: Vec<usize> = (0..heads.len()).collect();
    let mut table = outlet::table(&heads, &right);
    for (_, job, finished) in rows.iter().take(ROWS_SHOWN as usize) {
        let of_keys = keys.iter().map(|key| said(job, key));
        let of_figures = names.iter().map(|name| match finished.figures.get(*name) {
            Some(Figure::Number(value)) => short(*value),
            Some(Figure::Text(text)) => text.clone(),
            None => "-".to_owned(),
        });
        table.add_row(of_keys.chain(of_figures));
    }
    outlet::text(&outlet::trimmed(&table))?;
    if sweep.count() > ROWS_SHOWN {
        outlet::text(&format!("... the first {ROWS_SHOWN} of {} rows", sweep.count()))?;
    }
    outlet::text("")
}

/// Rows of what was run: number, job, result.
fn rows<'a>(sweep: &Sweep, results: &'a Results) -> Vec<(u64, Job, &'a Finished)> {
    let row = |index| {
        let job = sweep.job(index);
        results.of(&job).map(|finished| (index, job.clone(), finished))
    };
    (0..sweep.count()).filter_map(row).collect()
}

fn varied(sweep: &Sweep) -> Vec<&str> {
    sweep.axes.iter().map(|(key, _)| key.as_str()).collect()
}

/// Every figure that any job has, and whether it is a word.
fn figure_names<'a>(rows: &[(u64, Job, &'a Finished)]) -> BTreeMap<&'a str, bool> {
    let mut names = BTreeMap::new();
    for (name, figure) in rows.iter().flat_map(|(.., finished)| &finished.figures) {
        *names.entry(name.as_str()).or_insert(false) |= matches!(figure, Figure::Text(_));
    }
    names
}

fn columns(sweep: &Sweep, rows: &[(u64, Job, &Finished)]) -> Columns {
    let mut columns = Columns::new().integers("job", "", rows.iter().map(|(index, ..)| *index));
    for key in varied(sweep) {
        let values = || rows.iter().map(|(_, job, _)| job.keys.get(key));
        let number = |value: &profile::Value| match value {
            profile::Value::Integer(n) => Some(*n as f64),
            profile::Value::Float(n) => Some(*n),
            _ => None,
        };
        // A key of numbers is a column of numbers; anything else is words.
        columns = if values().all(|value| value.is_some_and(|value| number(value).is_some())) {
            columns.floats(key, "", values().map(|value| value.and_then(number)))
        } else {
            columns.texts(key, rows.iter().map(|(_, job, _)| Some(said(job, key))))
        };
    }
    for (name, is_text) in figure_names(rows) {
        let figures = rows.iter().map(|(.., finished)| finished.figures.get(name));
        columns = if is_text {
            columns.texts(
                name,
                figures.map(|figure| {
                    figure.map(|figure| match figure {
                        Figure::Text(text) => text.clone(),
                        Figure::Number(value) => value.to_string(),
                    })
                }),
            )
        } else {
            columns.floats(
                name,
                "",
                figures.map(|figure| match figure {
                    Some(Figure::Number(value)) => Some(*value),
                    _ => None,
                }),
            )
        };
    }
    columns.texts("error", rows.iter().map(|(.., finished)| finished.error.clone()))
}

/// A key's value as it was written.
fn said(job: &Job, key: &str) -> String {
    match job.keys.get(key) {
        Some(profile::Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

/// Four significant digits.
fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() >= 1e6 {
        return format!("{value:.3e}");
    }
    let decimals = if value.fract() == 0.0 {
        0
    } else {
        (3.0 - value.abs().log10().floor()).clamp(0.0, 6.0) as usize
    };
    format!("{value:.decimals$}")
}
