//! The table of a sweep: a row for each job, a column for each key that varies and each figure; as columns of a file, and its first
//! rows as text.

use std::collections::BTreeMap;

use plan::sweep::{Figure, Job, Sweep};

use crate::series::Columns;
use crate::text;

/// A terminal shows so many rows.
const ROWS_SHOWN: u64 = 40;

/// What came of a job.
#[derive(Debug)]
pub struct Row<'a> {
    /// The job's place in the sweep, from 0.
    pub index: u64,
    /// The job.
    pub job: Job,
    /// Its figures; none if it failed.
    pub figures: &'a BTreeMap<String, Figure>,
    /// Why it could not be done.
    pub error: Option<&'a str>,
}

/// The first rows as a table of text, figures that are words left out but for what binds.
pub fn text(sweep: &Sweep, rows: &[Row<'_>]) -> String {
    let keys = varied(sweep);
    let names: Vec<&str> = figure_names(rows)
        .into_iter()
        .filter(|(name, is_text)| !is_text || *name == "plan.binds")
        .map(|(name, _)| name)
        .collect();
    let heads: Vec<&str> = keys.iter().copied().chain(names.iter().copied()).collect();
    let right: Vec<usize> = (0..heads.len()).collect();
    let mut table = text::table(&heads, &right);
    for row in rows.iter().take(ROWS_SHOWN as usize) {
        let of_keys = keys.iter().map(|key| said(&row.job, key));
        let of_figures = names.iter().map(|name| match row.figures.get(*name) {
            Some(Figure::Number(value)) => short(*value),
            Some(Figure::Text(text)) => text.clone(),
            None => "-".to_owned(),
        });
        table.add_row(of_keys.chain(of_figures));
    }
    let table = text::trimmed(&table);
    if sweep.count() <= ROWS_SHOWN {
        return table + "\n";
    }
    format!("{table}\n... the first {ROWS_SHOWN} of {} rows\n", sweep.count())
}

fn varied(sweep: &Sweep) -> Vec<&str> {
    sweep.axes.iter().map(|(key, _)| key.as_str()).collect()
}

/// Every figure that any job has, and whether it is a word.
fn figure_names<'a>(rows: &[Row<'a>]) -> BTreeMap<&'a str, bool> {
    let mut names = BTreeMap::new();
    for (name, figure) in rows.iter().flat_map(|row| row.figures) {
        *names.entry(name.as_str()).or_insert(false) |= matches!(figure, Figure::Text(_));
    }
    names
}

/// All rows as columns: numbers where all values are, else words.
pub fn columns(sweep: &Sweep, rows: &[Row<'_>]) -> Columns {
    let mut columns = Columns::new().integers("job", "", rows.iter().map(|row| row.index));
    for key in varied(sweep) {
        let values = || rows.iter().map(|row| row.job.keys.get(key));
        let number = |value: &profile::Value| match value {
            profile::Value::Integer(n) => Some(*n as f64),
            profile::Value::Float(n) => Some(*n),
            _ => None,
        };
        // A key of numbers is a column of numbers; anything else is words.
        columns = if values().all(|value| value.is_some_and(|value| number(value).is_some())) {
            columns.floats(key, "", values().map(|value| value.and_then(number)))
        } else {
            columns.texts(key, rows.iter().map(|row| Some(said(&row.job, key))))
        };
    }
    for (name, is_text) in figure_names(rows) {
        let figures = rows.iter().map(|row| row.figures.get(name));
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
    columns.texts("error", rows.iter().map(|row| row.error.map(str::to_owned)))
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
