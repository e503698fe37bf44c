//! A ledger as a table of text: what was offered, stored and lost.

use base::units::grouped as number;
use format::{Count, Ledger, Stage};

use crate::text;

/// What was truncated, in words: "truncated to fit: 3 packets, 120 bytes cut".
pub fn truncated_words(truncated: Count) -> String {
    let (packets, bytes) = (number(truncated.packets), number(truncated.bytes));
    format!("truncated to fit: {packets} packets, {bytes} bytes cut")
}

/// A ledger as a table.
pub fn table(ledger: &Ledger) -> String {
    let mut out = text::table(&["", "packets", "bytes"], &[1, 2]);
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
    if !ledger.truncated.is_zero() {
        row("truncated to fit", ledger.truncated, false);
    }
    let verdict = if ledger.balances() {
        "balanced: offered = stored + lost"
    } else {
        "NOT BALANCED: offered is not stored + lost; this is a fault of Longtake, please report it"
    };
    format!("{}\n{verdict}", text::trimmed(&out))
}
