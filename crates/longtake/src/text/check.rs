//! What a check found: a line for each.

use base::Rate;
use base::units::counted;

use crate::array::CheckReport;

/// What is damaged, and the sums.
pub fn checked(report: &CheckReport) -> Vec<String> {
    let damaged = report.damaged.iter().map(|chunk| {
        format!(
            "DAMAGED: chunk {} with {} on {} at byte {}: {}",
            chunk.sequence,
            counted(chunk.packets.into(), "packet"),
            chunk.target,
            chunk.offset,
            chunk.reason
        )
    });
    let unbalanced = report
        .unbalanced_takes
        .iter()
        .map(|take| format!("take {take}: its ledger does not balance; please report it"));
    damaged.chain(unbalanced).chain([sums(report)]).collect()
}

fn sums(report: &CheckReport) -> String {
    format!(
        "{}, {} read at {}: {} damaged; {}, {} missing{}",
        counted(report.chunks, "chunk"),
        counted(report.bytes, "byte"),
        Rate::of(report.bytes, report.elapsed),
        report.damaged.len(),
        counted(report.takes, "take"),
        counted(report.missing.packets, "packet"),
        unseen(report)
    )
}

/// What a check can't see, where a scrub may find more.
fn unseen(report: &CheckReport) -> String {
    let indexes = match report.unindexed_segments {
        0 => String::new(),
        count => {
            format!("\nfull segments without an index: {count}; `longtake array scrub` says why")
        }
    };
    let packets = match report.missing.packets {
        0 => "",
        _ => "\n`longtake array scrub` looks for damaged chunks among the missing packets",
    };
    indexes + packets
}
