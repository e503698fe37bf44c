//! A table of time and rate, as reviewers and tools publish it, read as a series.
//!
//! Separators are tabs, semicolons or commas; a comma in a number is a decimal comma. Lines before the first with numbers are its
//! head. Rates hold from one line to the next: where times begin at 0 a line stamps the beginning of its interval, elsewhere the
//! end. Instead of time there may be what was written so far.

use std::borrow::Cow;
use std::fmt;

use super::units::{RateUnit, ScaleUnit};
use crate::analysis::{Point, Series};

/// What the user says of a table; None is for its head to tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableOptions {
    /// The column of times, by name or by number from 1.
    pub time_column: Option<String>,
    /// The column of rates, likewise.
    pub rate_column: Option<String>,
    /// What times are in.
    pub time_unit: Option<ScaleUnit>,
    /// What rates are in.
    pub rate_unit: Option<RateUnit>,
    /// What the drive holds, where percents of it are given.
    pub capacity_bytes: Option<u64>,
}

/// Why a table can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableError {
    /// It has no lines with two numbers.
    NoNumbers,
    /// A column that is needed can't be told from the others.
    Column {
        /// Which: `time` or `rate`.
        wanted: &'static str,
        /// The head's names.
        names: Vec<String>,
        /// The line of the head, from 1.
        line: usize,
    },
    /// The name of a column doesn't tell its unit.
    Unit {
        /// Which: `time` or `rate`.
        of: &'static str,
        /// The column's name.
        name: String,
    },
    /// A field is no number.
    Number {
        /// In which line, from 1.
        line: usize,
        /// What it says.
        field: String,
    },
    /// A line is shorter than the column that is needed.
    Short {
        /// Which, from 1.
        line: usize,
    },
    /// Times go back or stand still.
    Order {
        /// In which line, from 1.
        line: usize,
    },
    /// A rate is below zero, or zero where something was written.
    Rate {
        /// In which line, from 1.
        line: usize,
    },
    /// Percents of a drive whose size isn't known.
    Capacity,
    /// Fewer than two lines, or more bytes than 64 bits count.
    Size,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumbers => f.write_str(
                "the table has no line with two numbers: give columns of time and rate with a tab, semicolon or comma between them",
            ),
            Self::Column { wanted, names, line } => write!(
                f,
                "line {line}: the {wanted} column can't be identified among {}: add --{wanted}-column with a name or a number \
                 from 1",
                if names.is_empty() { "a table without a head".to_owned() } else { names.join(" | ") }
            ),
            Self::Unit { of, name } => {
                let example = if *of == "time" { "s" } else { "MB/s" };
                write!(f, "the column '{name}' doesn't tell its unit: add --{of}-unit, as in --{of}-unit {example}")
            }
            Self::Number { line, field } => write!(
                f,
                "line {line}: '{field}' is no number: correct or delete the line, or name another column with --time-column or \
                 --rate-column"
            ),
            Self::Short { line } => write!(
                f,
                "line {line} has too few columns: correct or delete the line, or name other columns with --time-column and \
                 --rate-column"
            ),
            Self::Order { line } => write!(
                f,
                "line {line}: its time lies before that of the line above it: if a second pass over the drive begins here, give it \
                 as a file of its own with --overwrite-pass"
            ),
            Self::Rate { line } => write!(
                f,
                "line {line}: an impossible rate (below zero, or zero where bytes were written): correct or delete the line"
            ),
            Self::Capacity => {
                f.write_str("percents of a drive whose size isn't known: add --capacity or --drive")
            }
            Self::Size => f.write_str(
                "the table has fewer than two lines of numbers, or counts more bytes than there are: check --time-unit and --rate-unit",
            ),
        }
    }
}

impl std::error::Error for TableError {}

/// One line's numbers.
struct Row {
    line: usize,
    at: f64,
    rate: f64,
}

/// A file's text, whatever program saved it: UTF-8, UTF-16 with its mark, or else Latin-1.
pub fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    let wide = |read: fn([u8; 2]) -> u16| {
        let units: Vec<u16> =
            bytes[2..].chunks_exact(2).map(|pair| read([pair[0], pair[1]])).collect();
        Cow::Owned(String::from_utf16_lossy(&units))
    };
    match bytes {
        [0xFF, 0xFE, ..] => wide(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => wide(u16::from_be_bytes),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text.trim_start_matches('\u{FEFF}')),
            Err(_) => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
        },
    }
}

/// Reads a table.
///
/// # Errors
/// [`TableError`] for the first thing that is wrong.
pub fn read(text: &str, options: &TableOptions) -> Result<Series, TableError> {
    let lines = lines(text);
    let first =
        lines.iter().position(|(_, fields)| numbers(fields) >= 2).ok_or(TableError::NoNumbers)?;
    let (head_line, head) = match first.checked_sub(1) {
        Some(head) => (lines[head].0, lines[head].1.as_slice()),
        None => (lines[first].0, &[][..]),
    };
    let width = lines[first].1.len();
    let column = |wanted, asked: &Option<String>, guess: fn(&[String], usize) -> Option<usize>| {
        let found = match asked {
            Some(asked) => named(asked, head, width),
            None => guess(head, width),
        };
        let names = || head.to_vec();
        found.ok_or_else(|| TableError::Column { wanted, names: names(), line: head_line })
    };
    let rate_at = column("rate", &options.rate_column, guess_rate)?;
    let time_at = column("time", &options.time_column, guess_time)?;
    let name = |at: usize| head.get(at).map_or("", String::as_str);
    let rate_unit = options
        .rate_unit
        .or_else(|| RateUnit::told_by(name(rate_at)))
        .ok_or_else(|| TableError::Unit { of: "rate", name: name(rate_at).to_owned() })?;
    let clock = lines[first].1.get(time_at).is_some_and(|field| field.contains(':'));
    let time_unit = options
        .time_unit
        .or_else(|| clock.then_some(ScaleUnit::Clock))
        .or_else(|| ScaleUnit::told_by(name(time_at)))
        .ok_or_else(|| TableError::Unit { of: "time", name: name(time_at).to_owned() })?;
    let mut rows = Vec::new();
    for (line, fields) in &lines[first..] {
        let field = |at: usize| fields.get(at).ok_or(TableError::Short { line: *line });
        let (at, rate) = (field(time_at)?, field(rate_at)?);
        if rate.is_empty() {
            continue;
        }
        let wrong = |field: &String| TableError::Number { line: *line, field: field.clone() };
        let at = scaled(at, time_unit, options.capacity_bytes).ok_or_else(|| match time_unit {
            ScaleUnit::Percent if options.capacity_bytes.is_none() => TableError::Capacity,
            _ => wrong(at),
        })?;
        let rate = number(rate).ok_or_else(|| wrong(rate))? * rate_unit.0;
        if rate < 0.0 {
            return Err(TableError::Rate { line: *line });
        }
        rows.push(Row { line: *line, at, rate });
    }
    if !time_unit.is_time() && is_turning(&rows) {
        return turning(&rows);
    }
    series(&joined(rows)?, time_unit, options.capacity_bytes)
}

/// Turning points are few; more lines with two rates at one place are a log whose places are rounded.
const TURNING_MAX: usize = 64;
/// Rates at one place that differ by more than this share are a step.
const STEP_SHARE: f64 = 0.05;
/// Pieces of the line between two turning points.
const PIECES: usize = 50;

/// Whether rows are the corners of a curve: some place has two of them, one for the rate before a step and one for that behind it.
fn is_turning(rows: &[Row]) -> bool {
    let step = |pair: &[Row]| {
        pair[0].at == pair[1].at && (pair[0].rate / pair[1].rate - 1.0).abs() > STEP_SHARE
    };
    rows.len() <= TURNING_MAX && rows.windows(2).any(step)
}

/// Corners as intervals: between two of them the rate goes in a straight line over the bytes written.
fn turning(rows: &[Row]) -> Result<Series, TableError> {
    let first = rows.first().ok_or(TableError::Size)?;
    let mut pieces: Vec<Row> = Vec::new();
    let mut before = Row { line: first.line, at: 0.0, rate: first.rate };
    for row in rows {
        if row.at < before.at {
            return Err(TableError::Order { line: row.line });
        }
        for piece in 1..=PIECES {
            let share = |at: f64, from: f64, to: f64| from + (to - from) * at / PIECES as f64;
            let at = share(piece as f64, before.at, row.at);
            let rate = share(piece as f64 - 0.5, before.rate, row.rate);
            if at > pieces.last().map_or(0.0, |last| last.at) {
                pieces.push(Row { line: row.line, at, rate });
            }
        }
        before = Row { line: row.line, ..*row };
    }
    series(&pieces, ScaleUnit::Written(1.0), None)
}

/// Lines with anything on them, but for remarks, with their number and their fields.
fn lines(text: &str) -> Vec<(usize, Vec<String>)> {
    let separator = separator(text);
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .map(|(index, line)| (index + 1, fields(line, separator)))
        .collect()
}

/// The first of tab, semicolon and comma that stands in most lines.
fn separator(text: &str) -> char {
    let lines = || text.lines().filter(|line| !line.trim().is_empty()).take(100);
    let all = lines().count();
    let common =
        |separator: &char| 2 * lines().filter(|line| line.contains(*separator)).count() > all;
    ['\t', ';', ','].into_iter().find(common).unwrap_or(',')
}

/// The fields of a line; quotes hold them together, and two quotes in quotes are one.
fn fields(line: &str, separator: char) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => {
                field.push('"');
                rest.next();
            }
            '"' => quoted = !quoted,
            c if c == separator && !quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    fields.iter().map(|field| field.trim().to_owned()).collect()
}

fn numbers(fields: &[String]) -> usize {
    let is_one =
        |field: &&String| number(field.trim_end_matches('%')).is_some() || clock(field).is_some();
    fields.iter().filter(is_one).count()
}

/// A number with a point or a comma before its decimals; where there are both, the first kind parts thousands.
fn number(field: &str) -> Option<f64> {
    let plain = field.replace([' ', '\u{A0}', '\''], "");
    let text = match (plain.rfind('.'), plain.rfind(',')) {
        (Some(point), Some(comma)) if point > comma => plain.replace(',', ""),
        (Some(_), Some(_)) => plain.replace('.', "").replace(',', "."),
        (None, Some(_)) => plain.replace(',', "."),
        _ => plain,
    };
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// `1:02:03.5` in nanoseconds.
fn clock(field: &str) -> Option<f64> {
    let parts: Vec<&str> = field.split(':').collect();
    if !(2..=3).contains(&parts.len()) {
        return None;
    }
    let seconds = parts.into_iter().try_fold(0.0, |sum, part| Some(sum * 60.0 + number(part)?));
    seconds.map(|seconds| seconds * 1e9)
}

/// A time in nanoseconds, or what was written in bytes.
fn scaled(field: &str, unit: ScaleUnit, capacity_bytes: Option<u64>) -> Option<f64> {
    match unit {
        ScaleUnit::Time(factor) | ScaleUnit::Written(factor) => number(field).map(|n| n * factor),
        ScaleUnit::Clock => clock(field),
        ScaleUnit::Percent => {
            Some(number(field.trim_end_matches('%'))? * capacity_bytes? as f64 / 100.0)
        }
    }
}

/// The column that the user named.
fn named(asked: &str, head: &[String], width: usize) -> Option<usize> {
    let same = |name: &String| name.eq_ignore_ascii_case(asked.trim());
    head.iter()
        .position(same)
        .or_else(|| asked.parse::<usize>().ok().filter(|n| (1..=width).contains(n)).map(|n| n - 1))
}

/// The only column that tells a unit of rates or is called like one; of several, the only one of writes.
fn guess_rate(head: &[String], width: usize) -> Option<usize> {
    let of_writes = |name: &str| name.to_lowercase().contains("write");
    let words = ["rate", "speed", "throughput", "bandwidth", "mbps", "bw"];
    let told = |name: &str| {
        RateUnit::told_by(name).is_some()
            || words.iter().any(|word| name.to_lowercase().contains(word))
    };
    let found: Vec<usize> = (0..head.len()).filter(|at| told(&head[*at])).collect();
    let writes: Vec<usize> = found.iter().copied().filter(|at| of_writes(&head[*at])).collect();
    match (found.as_slice(), writes.as_slice()) {
        ([only], _) | (_, [only]) => Some(*only),
        ([], _) if width == 2 => Some(1),
        _ => None,
    }
}

/// The first column that is called like a time, or else like what was written.
fn guess_time(head: &[String], width: usize) -> Option<usize> {
    let has = |name: &String, words: &[&str]| {
        let name = name.to_lowercase();
        RateUnit::told_by(&name).is_none() && words.iter().any(|word| name.contains(word))
    };
    let time = ["time", "elapsed", "start", "second", "minute", "zeit", "sec", "t ", "t["];
    let written = ["written", "position", "offset", "fill", "capacity", "progress", "%"];
    let by_unit = |name: &String| {
        RateUnit::told_by(name).is_none()
            && ScaleUnit::told_by(name).is_some_and(ScaleUnit::is_time)
    };
    head.iter()
        .position(|name| has(name, &time))
        .or_else(|| head.iter().position(by_unit))
        .or_else(|| head.iter().position(|name| has(name, &written)))
        .or((width == 2).then_some(0))
}

/// Lines of one stamp (whole seconds, more often) made one, with the mean of their rates.
fn joined(rows: Vec<Row>) -> Result<Vec<Row>, TableError> {
    let mut joined: Vec<(Row, f64)> = Vec::with_capacity(rows.len());
    for row in rows {
        match joined.last_mut() {
            Some((last, _)) if row.at < last.at => {
                return Err(TableError::Order { line: row.line });
            }
            Some((last, count)) if row.at <= last.at => {
                *count += 1.0;
                last.rate += (row.rate - last.rate) / *count;
            }
            _ => joined.push((row, 1.0)),
        }
    }
    Ok(joined.into_iter().map(|(row, _)| row).collect())
}

/// A table whose last line is at this share of the capacity ends with the drive.
const END_SHARE: f64 = 0.999;

/// The rows as intervals.
fn series(
    rows: &[Row],
    unit: ScaleUnit,
    capacity_bytes: Option<u64>,
) -> Result<Series, TableError> {
    let [first, second, ..] = rows else { return Err(TableError::Size) };
    let count = rows.len();
    let begins = first.at == 0.0;
    let full =
        |at: f64| !unit.is_time() && capacity_bytes.is_some_and(|all| at >= END_SHARE * all as f64);
    let edges: Vec<f64> = if begins && full(rows[count - 1].at) {
        // The drive was full there: nothing was written at the last line's rate.
        rows.iter().map(|row| row.at).collect()
    } else if begins {
        let last = 2.0 * rows[count - 1].at - rows[count - 2].at;
        rows.iter().map(|row| row.at).chain([last]).collect()
    } else {
        // What was written is counted from nothing; a clock may have run before.
        let before = if unit.is_time() { (2.0 * first.at - second.at).max(0.0) } else { 0.0 };
        std::iter::once(before).chain(rows.iter().map(|row| row.at)).collect()
    };
    let mut points: Vec<Point> = Vec::with_capacity(count);
    let (mut at_ns, mut ideal_ns) = (0u64, 0.0);
    for (row, edge) in rows.iter().zip(edges.windows(2)) {
        let length = edge[1] - edge[0];
        let (ns, bytes) = if unit.is_time() {
            (length, row.rate * length / 1e9)
        } else if row.rate > 0.0 {
            (length * 1e9 / row.rate, length)
        } else {
            return Err(TableError::Rate { line: row.line });
        };
        // Rounded where it ends, so that roundings don't add up.
        ideal_ns += ns;
        let end_ns = ideal_ns.round();
        if !(end_ns < u64::MAX as f64 && bytes < u64::MAX as f64) {
            return Err(TableError::Size);
        }
        let duration_ns = (end_ns as u64).saturating_sub(at_ns);
        if duration_ns == 0 {
            return Err(TableError::Order { line: row.line });
        }
        points.push(Point { start_ns: at_ns, duration_ns, bytes: bytes.round() as u64 });
        at_ns += duration_ns;
    }
    Series::new(points).map_err(|_| TableError::Size)
}

#[cfg(test)]
mod tests;
