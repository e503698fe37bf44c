//! What every command prints alike: JSON on standard output, tables, counts with separators.

use std::io::Write;

use anyhow::Result;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use format::{Count, Ledger, Stage};
use serde_json::{Value, json};

/// Says something to the user on standard error. If nobody hears it any more, what was to be done
/// is done all the same.
pub fn tell(text: &str) {
    writeln!(std::io::stderr().lock(), "{text}").ok();
}

/// Prints one JSON value as a line, at once.
///
/// # Errors
/// If standard output is gone.
pub fn json_line(value: &Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}")?;
    Ok(out.flush()?)
}

/// Prints one JSON value over several lines.
///
/// # Errors
/// If standard output is gone.
pub fn json(value: &Value) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{value:#}")?;
    Ok(())
}

/// Prints text to standard output.
///
/// # Errors
/// If standard output is gone.
pub fn text(text: &str) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{text}")?;
    Ok(())
}

/// A plain table; columns in `right` are aligned to the right.
pub fn table(heads: &[&str], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(heads);
    for &column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// 1234567 as 1,234,567.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Packets and bytes as JSON.
pub fn count_json(count: Count) -> Value {
    json!({"packets": count.packets, "bytes": count.bytes})
}

/// A ledger as JSON.
pub fn ledger_json(ledger: &Ledger) -> Value {
    let lost: serde_json::Map<String, Value> = Stage::ALL
        .iter()
        .map(|&stage| (stage.key().to_owned(), count_json(ledger.lost(stage))))
        .collect();
    json!({
        "offered": count_json(ledger.offered),
        "stored": count_json(ledger.stored),
        "lost": lost,
        "balances": ledger.balances(),
    })
}

/// A ledger as a table.
pub fn ledger_table(ledger: &Ledger) -> String {
    let mut out = table(&["", "packets", "bytes"], &[1, 2]);
    let mut row = |name: &str, count: Count, unknown_bytes: bool| {
        let bytes = if unknown_bytes { "not known".to_owned() } else { number(count.bytes) };
        out.add_row([name.to_owned(), number(count.packets), bytes]);
    };
    row("offered", ledger.offered, false);
    row("stored", ledger.stored, false);
    for stage in Stage::ALL {
        let count = ledger.lost(stage);
        row(&format!("lost: {stage}"), count, count.packets > 0 && count.bytes == 0);
    }
    let verdict = if ledger.balances() {
        "balanced: offered = stored + lost"
    } else {
        "NOT BALANCED: offered is not stored + lost; this is a fault of Longtake, please report it"
    };
    format!("{}\n{verdict}", trimmed(&out))
}

/// A table without spaces at line ends.
pub fn trimmed(table: &Table) -> String {
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_get_separators() {
        for (n, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(n), text);
        }
    }
}
