//! Runs of experiments as documents: what was found in words, figures and pictures, of one run or of several side by side;
//! and the same as lines for a terminal, as SVG files and as series for other programs.
//!
//! Nothing is measured or judged here: figures are the results' own, in other units, and what they don't know stays unknown.

mod apps;
mod diskmark;
mod figures;
mod fill;
mod found;
mod grid;
mod link;
mod mix;
mod neighbours;
mod percentiles;
mod quantity;
mod rates;
mod section;
mod single;
mod snia;
mod steady;
mod stream;
mod subject;
mod summaries;
mod summary;
mod viewers;

use std::path::{Path, PathBuf};

use lab::Answer as _;
use lab::experiment::any::ExperimentOutcome;
use lab::run::Run;

use crate::document::{Document, Section};
use crate::series::Columns;
use crate::svg;
use crate::text::{width, wrapped};
use found::{Found, Shown};
use single::Single;

/// The report of runs, each with a label that tells it apart and the folder of its results. Of one run everything is shown;
/// of several, every picture has a line for each run (or there is one for each), figures stand side by side, and ratios are
/// to the first. Percentile curves are as fine as the folders' histograms allow.
pub fn document(runs: &[(String, Run, PathBuf)]) -> Document {
    let mut document = Document::default();
    let labelled: Vec<(&str, &Run)> =
        runs.iter().map(|(label, run, _)| (label.as_str(), run)).collect();
    subject::introduce(&mut document, &labelled);
    let sections = sections(runs);
    document.sections.push(summary::section(&labelled));
    document.sections.extend(sections);
    document
}

/// An experiment's result in lines of at most `width` characters.
pub fn sparklines(outcome: &ExperimentOutcome, width: usize) -> Vec<String> {
    let lines = match outcome {
        ExperimentOutcome::Fill(result) => result.sparklines(width),
        ExperimentOutcome::Steady(result) => result.sparklines(width),
        ExperimentOutcome::Stream(result) => result.sparklines(width),
        ExperimentOutcome::Link(result) => result.sparklines(width),
        ExperimentOutcome::Mix(result) => result.sparklines(width),
        ExperimentOutcome::Neighbours(result) => result.sparklines(width),
        ExperimentOutcome::Viewers(result) => result.sparklines(width),
        ExperimentOutcome::Apps(result) => result.sparklines(width),
        ExperimentOutcome::Snia(result) => result.sparklines(width),
        ExperimentOutcome::Diskmark(result) => result.sparklines(width),
    };
    lines.into_iter().map(|line| line.chars().take(width).collect()).collect()
}

/// Columns that an experiment's answer is indented by.
const INDENT: usize = 2;

/// An experiment's answer for a terminal: its question, sentences, and table or curves.
pub fn text(outcome: &ExperimentOutcome) -> String {
    let answer = outcome.answer();
    let mut lines = vec![wrapped(&format!("{}: {}", outcome.name(), answer.question()), 0)];
    lines.extend(answer.answer().iter().map(|sentence| wrapped(sentence, INDENT)));
    let table = match outcome {
        ExperimentOutcome::Link(result) => result.lines(INDENT),
        ExperimentOutcome::Diskmark(result) => result.lines(INDENT),
        _ => Vec::new(),
    };
    // Its table has all that a line could show.
    let has_table = matches!(outcome, ExperimentOutcome::Diskmark(_));
    let curves = if has_table { Vec::new() } else { sparklines(outcome, width() - INDENT) };
    let drawn = table.into_iter().chain(curves);
    lines.extend(drawn.map(|line| format!("{}{line}", " ".repeat(INDENT)).trim_end().to_owned()));
    lines.join("\n")
}

/// What a run answers a buyer, for a terminal: a sentence each.
pub fn verdict(sentences: &[String]) -> String {
    let lines = sentences.iter().map(|sentence| format!("{}\n", wrapped(sentence, 0)));
    format!("\n{}", lines.collect::<String>())
}

/// Everything that a run measured, as tables for files: a stem of a file's name for each. Of series over time there are as
/// many intervals as the result keeps; the steps' own files have all. Each table begins with the run's label and the drives, so
/// that tables of several runs can be put below each other.
pub fn series(label: &str, run: &Run) -> Vec<(String, Columns)> {
    let figures: Vec<_> = run
        .outcomes
        .iter()
        .flat_map(|outcome| {
            outcome.answer().figures().into_iter().map(|figure| (outcome.name(), figure))
        })
        .chain(
            Single(&run.measurements)
                .figures()
                .into_iter()
                .map(|figure| (lab::run::SINGLE, figure)),
        )
        .collect();
    let mut all = vec![("figures".to_owned(), figures::columns(&figures))];
    if !run.measurements.is_empty() {
        let single = Single(&run.measurements).series();
        all.extend(single.into_iter().map(|(name, columns)| (name.to_owned(), columns)));
    }
    for outcome in &run.outcomes {
        let series = match outcome {
            ExperimentOutcome::Fill(result) => result.series(),
            ExperimentOutcome::Steady(result) => result.series(),
            ExperimentOutcome::Stream(result) => result.series(),
            ExperimentOutcome::Link(result) => result.series(),
            ExperimentOutcome::Mix(result) => result.series(),
            ExperimentOutcome::Neighbours(result) => result.series(),
            ExperimentOutcome::Viewers(result) => result.series(),
            ExperimentOutcome::Apps(result) => result.series(),
            ExperimentOutcome::Snia(result) => result.series(),
            ExperimentOutcome::Diskmark(result) => result.series(),
        };
        for (name, columns) in series {
            let stem = unused(&all, name);
            all.push((stem, columns));
        }
    }
    let drives = subject::names(run);
    let led = |columns: Columns| columns.led_by("drive", &drives).led_by("run", label);
    all.into_iter().map(|(name, columns)| (name, led(columns))).collect()
}

/// Every picture of a document as an SVG file: its name and its content.
pub fn pictures(document: &Document) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    for section in &document.sections {
        for picture in &section.pictures {
            let stem = format!("{}-{}", section.id, picture.file_stem());
            let mut name = format!("{stem}.svg");
            let mut number = 2;
            while files.iter().any(|(used, _)| *used == name) {
                name = format!("{stem}-{number}.svg");
                number += 1;
            }
            files.push((name, svg::draw(picture)));
        }
    }
    files
}

/// The stem itself, or with the least number behind it that makes it another than those there.
fn unused(all: &[(String, Columns)], stem: &str) -> String {
    let is_free = |candidate: &String| all.iter().all(|(used, _)| used != candidate);
    let numbered = (2..).map(|number| format!("{stem}-{number}"));
    std::iter::once(stem.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

/// A section for each experiment that any of the runs has done, in the experiments' own order.
fn sections(runs: &[(String, Run, PathBuf)]) -> Vec<Section> {
    macro_rules! sections {
        ($($variant:ident),*) => {
            [$(section::of(&found(runs, |outcome| match outcome {
                ExperimentOutcome::$variant(result) => Some((outcome.name(), &**result)),
                _ => None,
            }))),*]
        };
    }
    let singles: Vec<Single<'_>> =
        runs.iter().map(|(_, run, _)| Single(&run.measurements)).collect();
    let of_singles = runs.iter().zip(&singles).filter(|(_, single)| !single.0.is_empty());
    let of_singles = of_singles.map(|((label, _, folder), result)| Found { label, folder, result });
    let single = section::of(&(lab::run::SINGLE, of_singles.collect()));
    let all = sections!(Fill, Steady, Stream, Link, Mix, Neighbours, Viewers, Apps, Snia, Diskmark);
    single.into_iter().chain(all.into_iter().flatten()).collect()
}

/// The last result of a kind in each run that has one, and the experiment's name.
fn found<'a, R>(
    runs: &'a [(String, Run, PathBuf)],
    of: impl Fn(&'a ExperimentOutcome) -> Option<(&'static str, &'a R)>,
) -> (&'static str, Vec<Found<'a, R>>) {
    let mut experiment = "";
    let mut all = Vec::new();
    for (label, run, folder) in runs {
        let Some((name, result)) = run.outcomes.iter().rev().find_map(&of) else { continue };
        let folder: &Path = folder;
        experiment = name;
        all.push(Found { label, folder, result });
    }
    (experiment, all)
}
