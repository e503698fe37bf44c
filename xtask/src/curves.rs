//! Published fill curves beside their twins: each is read in as somebody would type it in, fitted, and its twin filled at full size.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lab::experiment::fill::{Fill, FillResult};
use lab::{Answer, BankRig, Go, Lab};
use profile::name;
use ssd::{SimBank, Slot, Spec, Start};
use twin::curves::{Division, PublishedCurve};
use twin::{Budget, MeasuredDrive, Search};

/// Options of the comparison.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Drives that a fit may try.
    #[arg(long, default_value_t = 100)]
    evaluations: u32,
    /// Only drives whose names contain this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Write the tables to this file, as Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// The figures of a fill that are compared, with their heads.
const FIGURES: [(&str, &str); 6] = [
    (name::WRITE_FAST, "first level"),
    (name::WRITE_CACHE, "until"),
    (name::WRITE_NATIVE, "second"),
    (name::WRITE_SHRINK, "until"),
    (name::WRITE_SHRUNK, "third"),
    (name::WRITE_MEAN, "mean"),
];

/// Compares, and prints each drive.
///
/// # Errors
/// If a curve can't be read in, fitted or filled.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut text = String::new();
    for (division, heading) in
        [(Division::Judge, "To judge by"), (Division::Learn, "To learn from")]
    {
        let heads: Vec<&str> = FIGURES.iter().map(|(_, head)| *head).collect();
        writeln!(text, "## {heading}\n\n| drive | {} | stated mean |", heads.join(" | "))?;
        writeln!(text, "|---|{}", "---|".repeat(FIGURES.len() + 1))?;
        for curve in PublishedCurve::of(division) {
            if arguments.only.as_ref().is_some_and(|only| !curve.model.contains(only)) {
                continue;
            }
            let row = row(&curve, arguments.evaluations)
                .with_context(|| format!("comparing {}", curve.model))?;
            println!("{row}");
            writeln!(text, "{row}")?;
        }
        text.push('\n');
    }
    if let Some(path) = &arguments.markdown {
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn row(curve: &PublishedCurve, evaluations: u32) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let table = folder.path().join("curve.csv");
    fs::write(&table, curve.table())?;
    let profile = curve.profile(&table)?;
    let drive = MeasuredDrive::of_profile(profile.clone(), Path::new("curve.csv"), "twin")?;
    let budget = Budget { evaluations, time: None };
    let fitted = Search::new(&drive, None)?.run(budget, &mut |_, _| Go::On)?;
    let filled = fill(&fitted.spec, folder.path())?.figures();
    let mut row = format!("| [{}]({}) |", curve.model, curve.source);
    for (name, _) in FIGURES {
        let published = profile.known(name).map(|known| (known.value, known.unit));
        let twin = filled.iter().find(|figure| figure.name == name).and_then(|figure| figure.value);
        match published {
            None if twin.is_none() || name != name::WRITE_SHRUNK => row += " |",
            None => row += " *a third level* |",
            Some((value, unit)) => {
                let off = twin.map_or_else(
                    || "*none*".to_owned(),
                    |twin| format!("{:+.1} %", 100.0 * (twin / value - 1.0)),
                );
                write!(
                    row,
                    " {} {off} |",
                    unit.show(value).split(" (").next().unwrap_or_default()
                )?;
            }
        }
    }
    let mean = filled.iter().find(|figure| figure.name == name::WRITE_MEAN).and_then(|f| f.value);
    match curve.mean_mb_s.zip(mean) {
        Some((stated, mean)) => {
            write!(row, " {stated} MB/s {:+.1} % |", 100.0 * (mean / 1e6 / stated - 1.0))?
        }
        None => row += " |",
    }
    Ok(row)
}

/// The drive at full size, written from empty to full.
fn fill(spec: &Spec, folder: &Path) -> Result<FillResult> {
    let slot = Slot { spec: spec.clone(), start: Start::Empty, namespaces: vec![0], seed: 1 };
    let mut rig = BankRig::without_data(SimBank::new(&[slot], None)?);
    let mut watch = |_: &lab::Progress<'_>| Go::On;
    let mut lab = Lab::new(&mut rig, folder, &mut watch)?;
    Ok(Fill { rests: Vec::new(), ..Fill::default() }.run(&mut lab)?)
}
