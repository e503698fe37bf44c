//! What became of flow indexes, and how they narrowed a search: a line for each.

use base::units::{counted, grouped};
use base::{ByteSize, Rate};

use crate::array::{IndexReport, IndexUse};

/// What was indexed, and what has no index.
pub fn indexed(report: &IndexReport) -> Vec<String> {
    let mut lines = vec![format!(
        "indexed {} of {}: {} in {} read at {}; the indexes take {}{}",
        grouped(report.indexed),
        counted(report.segments, "segment"),
        counted(report.packets, "packet"),
        ByteSize(report.bytes),
        Rate::of(report.bytes, report.elapsed),
        ByteSize(report.index_bytes),
        share(report)
    )];
    if report.had > 0 {
        lines.push(format!(
            "{} had a complete index already: --again replaces it",
            counted(report.had, "segment")
        ));
    }
    if report.not_full > 0 {
        lines.push(format!(
            "{} without an index of chunks, or not full while chunks are lost: searches read all chunks there",
            counted(report.not_full, "segment")
        ));
    }
    if report.no_room > 0 {
        lines.push(format!(
            "{} without room for an index behind the last chunk: searches read all chunks there",
            counted(report.no_room, "segment")
        ));
    }
    for (kind, segments) in &report.left_out {
        lines.push(format!(
            "{} without room for all keys: {kind} were left out, and a search for these reads all chunks there",
            counted(*segments, "segment")
        ));
    }
    if report.unreadable > 0 {
        lines.push(format!(
            "{} could not be read: every search reads them again; `longtake array scrub` says why",
            counted(report.unreadable, "chunk")
        ));
    }
    lines
}

/// The index's share of what it is the index of.
fn share(report: &IndexReport) -> String {
    match report.bytes {
        0 => String::new(),
        bytes => {
            format!(", {:.3} % of the chunks", report.index_bytes as f64 / bytes as f64 * 100.0)
        }
    }
}

/// How a search was narrowed, for `--explain`.
pub fn index_use(used: &IndexUse) -> Vec<String> {
    let mut lines = Vec::new();
    match (&used.condition, &used.not_understood) {
        (Some(condition), _) => lines.push(format!("every selected packet has: {condition}")),
        (None, Some(word)) => lines.push(format!(
            "every chunk is read: flow indexes can't help with an expression that contains '{word}'"
        )),
        (None, None) => {
            lines.push("every chunk is read: nothing in the selection narrows it".to_owned())
        }
    }
    lines.push(format!(
        "chunks in the span: {}; candidates, which are read: {}",
        grouped(used.chunks),
        grouped(used.candidates)
    ));
    if used.in_memory > 0 {
        lines.push(format!(
            "chunks whose keys the recorder had in memory: {}",
            grouped(used.in_memory)
        ));
    }
    if used.condition.is_some() && used.not_indexed > 0 {
        lines.push(format!(
            "candidates without a flow index: {}; `longtake array index` adds what is missing",
            grouped(used.not_indexed)
        ));
    }
    if !used.left_out.is_empty() {
        lines.push(format!("some indexes leave out: {}", used.left_out.join(", ")));
    }
    lines
}
