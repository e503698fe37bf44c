//! `longtake report`: one HTML file from folders of results, or from several side by side; series as CSV or Parquet.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use lab::run::Run;
use serde_json::json;

use crate::arguments::ReportArguments;
use crate::outlet;

/// Makes a report, and whatever else is asked for.
///
/// # Errors
/// If a folder has no results, or something can't be written.
pub fn report(arguments: &ReportArguments) -> Result<ExitCode> {
    let runs = read(&arguments.folders)?;
    let output =
        arguments.output.clone().unwrap_or_else(|| arguments.folders[0].join("report.html"));
    let mut written = vec![write(&runs, &output)?];
    if let Some(folder) = &arguments.svg {
        make_folder(folder)?;
        for (name, svg) in ::report::measured::pictures(&::report::measured::document(&runs)) {
            let path = folder.join(name);
            fs::write(&path, svg).with_context(|| format!("writing {}", path.display()))?;
            written.push(path);
        }
    }
    for (folder, parquet) in [(&arguments.csv, false), (&arguments.parquet, true)] {
        if let Some(folder) = folder {
            written.extend(write_series(&runs, folder, parquet)?);
        }
    }
    if arguments.json {
        outlet::json(&json!({ "written": written }))?;
    } else {
        for path in written {
            outlet::text(&path.display().to_string())?;
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
pub fn write(runs: &[Labelled], output: &Path) -> Result<PathBuf> {
    let page = ::report::html::page(&::report::measured::document(runs));
    fs::write(output, page).with_context(|| format!("writing {}", output.display()))?;
    Ok(output.to_owned())
}

fn write_series(runs: &[Labelled], folder: &Path, parquet: bool) -> Result<Vec<PathBuf>> {
    make_folder(folder)?;
    let mut written = Vec::new();
    for (label, run, _) in runs {
        for (name, columns) in ::report::measured::series(run) {
            let name = if runs.len() == 1 { name } else { format!("{label}-{name}") };
            let path = folder.join(format!("{name}.{}", if parquet { "parquet" } else { "csv" }));
            let attempt = || format!("writing {}", path.display());
            let file = BufWriter::new(File::create(&path).with_context(attempt)?);
            if parquet { columns.write_parquet(file) } else { columns.write_csv(file) }
                .with_context(attempt)?;
            written.push(path);
        }
    }
    Ok(written)
}

fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}
