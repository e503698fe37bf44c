//! A ledger as a table of text and as JSON: what was offered, stored, rejected by the filter, cut, and lost.

use base::units::{counted, grouped as number};
use format::{Count, Ledger, Stage};
use serde_json::{Value, json};

use crate::text;

/// What was truncated, in words: "truncated to fit: 3 packets, 120 bytes cut".
pub fn truncated_words(truncated: Count) -> String {
    let Count { packets, bytes } = truncated;
    format!("truncated to fit: {}, {} cut", counted(packets, "packet"), counted(bytes, "byte"))
}

/// What is known of the packets that a filter rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rejections {
    /// Whether there was a filter is not known, or there was none: shown if any were counted.
    #[default]
    IfAny,
    /// There was a filter, and it counted them.
    Counted,
    /// The kernel's filter rejected them, which counts none.
    NotCounted,
}

/// A ledger as JSON. `cut` and `filtered` stand outside `lost`, because the user asked for them. `filtered` is null if rejected
/// packets were not counted.
pub fn json(ledger: &Ledger, rejections: Rejections) -> Value {
    let mut value = json!(ledger);
    if let Some(lost) = value["lost"].as_object_mut() {
        lost.remove(Stage::Filtered.key());
        lost.remove(Stage::Cut.key());
    }
    value["cut"] = json!(ledger.lost(Stage::Cut));
    value["filtered"] = match rejections {
        Rejections::NotCounted => Value::Null,
        Rejections::IfAny | Rejections::Counted => json!(ledger.lost(Stage::Filtered)),
    };
    value
}

/// A ledger as a table.
pub fn table(ledger: &Ledger, rejections: Rejections) -> String {
    let mut out = text::table(&["", "packets", "bytes"], &[1, 2]);
    let mut row = |name: &str, count: Count, unknown_bytes: bool| {
        let bytes = if unknown_bytes { "not known".to_owned() } else { number(count.bytes) };
        out.add_row([name.to_owned(), number(count.packets), bytes]);
    };
    // The kernel counts the packets that it drops, and not always their bytes.
    let is_unknown = |count: Count| count.packets > 0 && count.bytes == 0;
    let some_unknown = Stage::unwanted().any(|stage| is_unknown(ledger.lost(stage)));
    row("offered", ledger.offered, some_unknown);
    row("stored", ledger.stored, false);
    let filtered = ledger.lost(Stage::Filtered);
    if rejections == Rejections::Counted || !filtered.is_zero() {
        row("filtered", filtered, false);
    }
    let cut = ledger.lost(Stage::Cut);
    if !cut.is_zero() {
        row("cut", cut, false);
    }
    for stage in Stage::unwanted() {
        let count = ledger.lost(stage);
        row(&format!("lost: {stage}"), count, is_unknown(count));
    }
    if !ledger.truncated.is_zero() {
        row("truncated to fit", ledger.truncated, false);
    }
    if !ledger.sliced.is_zero() {
        row("sliced", ledger.sliced, false);
    }
    if rejections == Rejections::NotCounted {
        out.add_row(["filtered", "not counted", "by the kernel"]);
    }
    let sum =
        if cut.is_zero() { "stored + filtered + lost" } else { "stored + filtered + cut + lost" };
    let verdict = if ledger.balances() {
        format!("balanced: offered = {sum}")
    } else {
        format!("NOT BALANCED: offered is not {sum}; this is a fault of Longtake, please report it")
    };
    format!("{}\n{verdict}", text::trimmed(&out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        ledger.lose(Stage::Filtered, Count::new(3, 180));
        ledger.lose(Stage::NoBuffer, Count::new(2, 120));
        ledger
    }

    #[test]
    fn packets_that_the_filter_rejected_are_not_among_the_lost() {
        let table = table(&ledger(), Rejections::IfAny);
        assert!(table.lines().any(|line| line.starts_with(" filtered")), "{table}");
        assert!(!table.contains("lost: filtered"), "{table}");
        assert!(table.ends_with("balanced: offered = stored + filtered + lost"), "{table}");
        let json = json(&ledger(), Rejections::IfAny);
        assert_eq!(json["filtered"]["packets"], 3);
        assert_eq!(json["lost"]["no_buffer"]["packets"], 2);
        assert!(json["lost"].get("filtered").is_none(), "{json}");
    }

    #[test]
    fn bytes_that_nobody_counted_are_not_known_in_the_sum_either() {
        let mut ledger = ledger();
        ledger.lose(Stage::KernelRing, Count::new(7, 0));
        let table = table(&ledger, Rejections::IfAny);
        let offered = table.lines().find(|line| line.starts_with(" offered"));
        assert!(offered.is_some_and(|line| line.ends_with("not known")), "{table}");
    }

    #[test]
    fn what_was_cut_or_sliced_has_rows_of_its_own_if_there_is_any() {
        let mut ledger = ledger();
        ledger.lose(Stage::Cut, Count::new(5, 300));
        ledger.store(Count::new(9, 900));
        ledger.sliced = Count::new(4, 80);
        let table = table(&ledger, Rejections::IfAny);
        let cells = |name: &str| {
            let row = table.lines().find(|line| line.trim_start().starts_with(name));
            row.map(|row| row.split_whitespace().skip(1).collect::<Vec<_>>())
        };
        assert_eq!(cells("cut"), Some(vec!["5", "300"]), "{table}");
        assert_eq!(cells("sliced"), Some(vec!["4", "80"]), "{table}");
        assert!(!table.contains("lost: cut"), "{table}");
        assert!(table.ends_with("balanced: offered = stored + filtered + cut + lost"), "{table}");
        let json = json(&ledger, Rejections::IfAny);
        assert_eq!(
            (json["cut"]["packets"].clone(), json["sliced"]["bytes"].clone()),
            (5.into(), 80.into())
        );
        assert!(json["lost"].get("cut").is_none(), "{json}");
        let plain = super::table(&self::ledger(), Rejections::IfAny);
        assert!(!plain.contains("cut") && !plain.contains("sliced"), "{plain}");
    }

    #[test]
    fn what_the_kernel_rejects_is_said_not_to_be_counted() {
        let none = Ledger::default();
        let shown = table(&none, Rejections::NotCounted);
        assert!(
            shown.lines().any(|l| l.starts_with(" filtered") && l.contains("not counted")),
            "{shown}"
        );
        assert!(json(&none, Rejections::NotCounted)["filtered"].is_null());
        assert!(!table(&none, Rejections::IfAny).contains(" filtered  "));
    }

    #[test]
    fn a_filter_that_rejected_nothing_says_so() {
        let shown = table(&Ledger::default(), Rejections::Counted);
        assert!(shown.lines().any(|l| l.starts_with(" filtered") && l.contains('0')), "{shown}");
    }
}
