//! `longtake array check`: reads everything back and verifies every checksum.

use std::process::ExitCode;

use anyhow::Result;
use base::Rate;
use longtake::array::CheckReport;
use longtake::{json, text};

use crate::arguments::ArrayArguments;
use crate::{exit, opening, printer, progress};

/// Checks an array.
///
/// # Errors
/// If it can't be opened. Damage that is found is output, and exit code 3.
pub fn check(arguments: &ArrayArguments) -> Result<ExitCode> {
    let mut array = opening::open_to_read(arguments)?;
    let bar = progress::bytes_bar(0, "checking", !arguments.json);
    let report = array.check(|progress| progress::show(&bar, progress))?;
    bar.finish_and_clear();
    if arguments.json {
        printer::json(&json::checked(&report))?;
    } else {
        print(&report)?;
    }
    Ok(exit::lossless(report.is_sound()))
}

fn print(report: &CheckReport) -> Result<()> {
    for chunk in &report.damaged {
        printer::text(&format!(
            "DAMAGED: chunk {} with {} on {} at byte {}: {}",
            chunk.sequence,
            printer::counted(chunk.packets.into(), "packet"),
            chunk.target,
            chunk.offset,
            chunk.reason
        ))?;
    }
    printer::tell_all(text::recovered_chunks(&report.recovered));
    for take in &report.unbalanced_takes {
        printer::text(&format!("take {take}: its ledger does not balance; please report it"))?;
    }
    printer::text(&format!(
        "{}, {} read at {}: {} damaged; {}, {} missing{}",
        printer::counted(report.chunks, "chunk"),
        printer::counted(report.bytes, "byte"),
        Rate::of(report.bytes, report.elapsed),
        report.damaged.len(),
        printer::counted(report.takes, "take"),
        printer::counted(report.missing.packets, "packet"),
        unseen(report)
    ))
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
