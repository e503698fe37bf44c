//! What an experiment shows of itself in a report, and the results of several runs side by side.

use std::path::Path;

use lab::Answer;

use crate::document::Table;
use crate::picture::{Picture, Series};
use crate::series::Columns;

/// One run's result.
#[derive(Debug)]
pub(super) struct Found<'a, R> {
    /// The run, as the reader knows it.
    pub label: &'a str,
    /// Its folder of results.
    pub folder: &'a Path,
    /// What was found.
    pub result: &'a R,
}

/// A result that has a section in a report.
pub(super) trait Shown: Answer + Sized {
    /// The section's title.
    const TITLE: &'static str;

    /// The finding in a sentence or two.
    fn finding(&self) -> String;
    /// What went wrong, or was not as it should be.
    fn warnings(&self) -> Vec<String>;
    /// What it looks like: of one run with everything, of several side by side.
    fn pictures(found: &[Found<'_, Self>]) -> Vec<Picture>;
    /// Tables beside that of the figures.
    fn tables(found: &[Found<'_, Self>]) -> Vec<Table>;
    /// Whether a figure belongs into the table of figures; those of a grid are shown as one instead.
    fn is_listed(name: &str) -> bool;
    /// Lines for a terminal.
    fn sparklines(&self, width: usize) -> Vec<String>;
    /// A table for a terminal, line by line, where one says more than sentences.
    fn lines(&self, _indent: usize) -> Vec<String> {
        Vec::new()
    }
    /// Everything measured, by file name.
    fn series(&self) -> Vec<(&'static str, Columns)>;
}

impl<R> Found<'_, R> {
    /// The name of a series among those of `found`: what it is, and whose if there are several runs.
    pub fn name(&self, found: &[Self], what: &str) -> String {
        match (found.len(), what) {
            (0 | 1, _) => what.to_owned(),
            (_, "") => self.label.to_owned(),
            _ => format!("{}, {what}", self.label),
        }
    }

    /// A picture's title: of this run, if there are several.
    pub fn title(&self, found: &[Self], what: &str) -> String {
        if found.len() < 2 { what.to_owned() } else { format!("{what}: {}", self.label) }
    }
}

/// Where the points of series stand on the axis below.
pub(super) fn places(series: &[Series]) -> impl Iterator<Item = f64> + '_ {
    series.iter().flat_map(|series| series.points.iter().map(|point| point.x))
}

/// All values of a kind, each once, in rising order.
pub(super) fn distinct<T: Ord>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_unstable();
    values.dedup();
    values
}
