//! `longtake array scrub`: everything is read and held against checksums and parity; what parity allows is repaired.

use std::process::ExitCode;

use anyhow::Result;
use base::Rate;
use longtake::array::{MissingMember, ScrubFinding, ScrubOptions, ScrubReport};
use longtake::instant::utc;
use longtake::json;
use recorder::scrub::Repair;

use crate::arguments::ScrubArguments;
use crate::{exit, opening, printer, progress};

/// Scrubs an array.
///
/// # Errors
/// If it can't be opened, or is to be repaired while somebody records on it. Damage that is found is output, and exit code 3.
pub fn scrub(arguments: &ScrubArguments) -> Result<ExitCode> {
    let ScrubArguments { array: read, repair, limit } = arguments;
    let mut array = opening::options(read.degraded).repair(*repair).open(&read.array)?;
    let bar = progress::bytes_bar(0, "scrubbing", !read.json);
    let options = ScrubOptions { repair: *repair, limit: *limit };
    let report = array.scrub(&options, |progress| progress::show(&bar, progress))?;
    bar.finish_and_clear();
    if read.json {
        printer::json(&json::scrubbed(&report))?;
    } else {
        print(&report)?;
    }
    Ok(exit::lossless(report.is_sound()))
}

fn print(report: &ScrubReport) -> Result<()> {
    for finding in &report.findings {
        printer::text(&describe(finding))?;
    }
    if report.superblocks_differ {
        let outcome = if report.repair { "repaired" } else { "can be repaired" };
        printer::text(&format!("DAMAGED: superblocks differ or are damaged: {outcome}"))?;
    }
    print_missing(&report.missing_members)?;
    if report.parity_missing > 0 && !report.recording {
        printer::text(&format!(
            "MISSING: {}; the data chunks are intact, but survive the loss of fewer members",
            printer::counted(report.parity_missing, "parity chunk")
        ))?;
    }
    if report.less_parity > 0 {
        printer::text(&format!(
            "note: less parity than the array's in {}, recorded while members had failed: such chunks survive the loss of fewer members",
            printer::counted(report.less_parity, "chunk")
        ))?;
    }
    printer::text(&format!(
        "{}, {} read at {}; parity matches in {}, {} without parity; {}, {} missing",
        printer::counted(report.chunks, "chunk"),
        printer::counted(report.bytes, "byte"),
        Rate::of(report.bytes, report.elapsed),
        printer::counted(report.groups, "group"),
        printer::counted(report.without_parity, "chunk"),
        printer::counted(report.findings.len() as u64, "finding"),
        printer::counted(report.missing_packets, "packet")
    ))?;
    if !report.repair && report.findings.iter().any(|f| f.repair == Repair::Possible) {
        printer::text("nothing was written: --repair repairs damaged chunks in place")?;
    }
    Ok(())
}

fn describe(finding: &ScrubFinding) -> String {
    let outcome = match finding.repair {
        Repair::None => "can't be repaired",
        Repair::Possible => "can be repaired",
        Repair::Done => "repaired",
        Repair::Failed => "repaired, but still damaged when read back: the drive fails there",
    };
    let (kind, outcome) = match finding.repair {
        _ if finding.fault.is_damage() => ("DAMAGED", outcome),
        Repair::Possible => ("TORN", "the next recording or --repair rebuilds it from its chunks"),
        _ => ("TORN", outcome),
    };
    format!(
        "{kind}: member {} ({}) at byte {}, chunk {} of take {} at {}: {}: {outcome}",
        finding.member,
        finding.target,
        finding.offset,
        finding.sequence,
        finding.take,
        utc(finding.time),
        finding.fault
    )
}

fn print_missing(members: &[MissingMember]) -> Result<()> {
    for MissingMember { member, identity, chunks, recoverable } in members {
        printer::text(&format!(
            "MISSING: member {member} ({identity}) with {}, of which parity can recover {}: `longtake array rebuild --member {member} --onto TARGET` rebuilds it",
            printer::counted(*chunks, "chunk"),
            printer::number(*recoverable)
        ))?;
    }
    Ok(())
}
