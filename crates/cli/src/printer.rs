//! What every command prints alike: messages on standard error, text and JSON on standard output.

use std::io::Write;

use anyhow::Result;
use format::Ledger;
use longtake::recording::Rejections;
use report::text::{escaped, indented, json_escaped};
use serde_json::Value;

pub use base::units::{counted, grouped as number};
pub use report::text::{inline, table, trimmed};

/// Says something to the user on standard error. If nobody hears it any more, what was to be done
/// is done all the same.
///
/// Lines after the first are indented: a name with a line end in it can't pass for a message of its own.
pub fn tell(text: &str) {
    writeln!(std::io::stderr().lock(), "{}", indented(text)).ok();
}

/// Says each of these to the user on standard error.
pub fn tell_all(texts: impl IntoIterator<Item = String>) {
    texts.into_iter().for_each(|text| tell(&text));
}

/// Prints one JSON value as a line, at once.
///
/// # Errors
/// If standard output is gone.
pub fn json_line(value: &Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", json_escaped(&value.to_string()))?;
    Ok(out.flush()?)
}

/// Prints one JSON value over several lines.
///
/// # Errors
/// If standard output is gone.
pub fn json(value: &Value) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{}", json_escaped(&format!("{value:#}")))?;
    Ok(())
}

/// Prints text to standard output, its control characters but line ends as escapes. Foreign text in it goes through [`inline`]
/// first.
///
/// # Errors
/// If standard output is gone.
pub fn text(text: &str) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{}", escaped(text))?;
    Ok(())
}

/// Prints lines of text.
///
/// # Errors
/// If standard output is gone.
pub fn lines(lines: impl IntoIterator<Item = String>) -> Result<()> {
    lines.into_iter().try_for_each(|line| text(&line))
}

/// Prints a table of the library.
///
/// # Errors
/// If standard output is gone.
pub fn listing(listed: &longtake::text::Table) -> Result<()> {
    text(&rows(listed))
}

/// A table of the library as text.
pub fn rows(listed: &longtake::text::Table) -> String {
    let mut shown = table(listed.heads, listed.right);
    for row in &listed.rows {
        shown.add_row(row);
    }
    trimmed(&shown)
}

/// A ledger as a table.
pub fn ledger(ledger: &Ledger, rejections: Rejections) -> String {
    let rejections = match rejections {
        Rejections::NoFilter => report::ledger::Rejections::IfAny,
        Rejections::Counted => report::ledger::Rejections::Counted,
        Rejections::NotCounted => report::ledger::Rejections::NotCounted,
    };
    report::ledger::table(ledger, rejections)
}

/// Prints messages, each on a line of its own.
///
/// # Errors
/// If standard output is gone.
pub fn messages(texts: impl IntoIterator<Item = String>) -> Result<()> {
    texts.into_iter().try_for_each(|text| message(&text))
}

/// Prints a message with foreign text in it, such as a path or an error, to standard output. Lines after the first are indented.
///
/// # Errors
/// If standard output is gone.
pub fn message(text: &str) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{}", indented(text))?;
    Ok(())
}
