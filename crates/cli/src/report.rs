//! `longtake report`: one HTML file from folders of results, or from several side by side; series as CSV or Parquet.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::report::series::Columns;
use anyhow::{Context, Result, bail};
use lab::run::Run;
use serde_json::json;
use target::output::{NewFile, Outputs, Readers};

use crate::arguments::ReportArguments;
use crate::printer;

/// Makes a report, and whatever else is asked for.
///
/// # Errors
/// If a folder has no results, or something can't be written.
pub fn report(arguments: &ReportArguments) -> Result<ExitCode> {
    let outputs = Outputs::new(arguments.overwrite).reads(&arguments.folders);
    // The report in the folder of results is made again whenever it is asked for.
    let (output, of_page) = match &arguments.output {
        Some(path) => (path.clone(), outputs.clone()),
        None => (arguments.folders[0].join("report.html"), outputs.replacing()),
    };
    of_page.check(&output)?;
    let folders = [&arguments.svg, &arguments.csv, &arguments.parquet];
    folders.into_iter().flatten().try_for_each(|folder| outputs.check_folder(folder))?;
    let runs = read(&arguments.folders)?;
    let pictures = pictures(&runs, arguments.svg.as_deref());
    let series = [(&arguments.csv, Series::Csv), (&arguments.parquet, Series::Parquet)];
    let series = series.into_iter().filter_map(|(folder, kind)| Some((folder.as_deref()?, kind)));
    let series: Vec<_> = series.flat_map(|(folder, kind)| tables(&runs, folder, kind)).collect();
    // All are checked before the first is written.
    let paths = pictures.iter().map(|(path, _)| path).chain(series.iter().map(|(path, ..)| path));
    paths.into_iter().try_for_each(|path| outputs.check(path))?;
    for folder in folders.into_iter().flatten() {
        outputs.make_folder(folder)?;
    }
    let mut written = vec![write(&runs, &output, &of_page)?];
    for (path, svg) in pictures {
        outputs.write(&path, &svg)?;
        written.push(path);
    }
    for (path, columns, kind) in series {
        write_series(&columns, &path, kind, &outputs)?;
        written.push(path);
    }
    if arguments.json {
        printer::json(&json!({ "written": written }))?;
    } else {
        for path in written {
            printer::message(&path.display().to_string())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What a report is made of: a label, a run, and the folder that it is in.
pub type Labelled = (String, Run, PathBuf);

/// Reads folders of results.
///
/// # Errors
/// If one has none.
pub fn read(folders: &[PathBuf]) -> Result<Vec<Labelled>> {
    let mut runs = Vec::new();
    for folder in folders {
        let Some(run) = Run::read(folder)? else {
            bail!(
                "{} holds no results: give a folder that `longtake measure` wrote",
                folder.display()
            );
        };
        let label = folder.file_name().map_or_else(
            || folder.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        runs.push((label, run, folder.clone()));
    }
    Ok(runs)
}

/// Writes the page.
///
/// # Errors
/// If it can't be written.
pub fn write(runs: &[Labelled], output: &Path, outputs: &Outputs) -> Result<PathBuf> {
    let page = ::report::html::page(&::report::measured::document(runs));
    outputs.write(output, &page)?;
    Ok(output.to_owned())
}

/// The pictures of a report and their files.
fn pictures(runs: &[Labelled], folder: Option<&Path>) -> Vec<(PathBuf, String)> {
    let Some(folder) = folder else { return Vec::new() };
    let pictures = ::report::measured::pictures(&::report::measured::document(runs));
    pictures.into_iter().map(|(name, svg)| (folder.join(name), svg)).collect()
}

/// How series are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// Comma-separated values.
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// The series of runs and their files.
fn tables(runs: &[Labelled], folder: &Path, kind: Series) -> Vec<(PathBuf, Columns, Series)> {
    let extension = if kind == Series::Parquet { "parquet" } else { "csv" };
    let of_run = |(label, run, _): &Labelled| {
        let named = |(name, columns)| {
            let name = if runs.len() == 1 { name } else { format!("{label}-{name}") };
            (folder.join(format!("{name}.{extension}")), columns, kind)
        };
        ::report::measured::series(label, run).into_iter().map(named).collect::<Vec<_>>()
    };
    runs.iter().flat_map(of_run).collect()
}

/// Writes columns to a file.
///
/// # Errors
/// If it can't be written.
pub fn write_series(columns: &Columns, path: &Path, kind: Series, outputs: &Outputs) -> Result<()> {
    let mut file: NewFile = outputs.create(path, Readers::Umask)?;
    let mut buffered = BufWriter::new(&mut file);
    match kind {
        Series::Csv => columns.write_csv(&mut buffered),
        Series::Parquet => columns.write_parquet(&mut buffered),
    }
    .map_err(anyhow::Error::from)
    .and_then(|()| Ok(buffered.flush()?))
    .with_context(|| format!("writing {}", path.display()))?;
    drop(buffered);
    Ok(file.finish()?)
}
