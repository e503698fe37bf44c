//! What a scrub found, and what came of it: a line for each.

use base::Rate;
use base::units::{counted, grouped};
use recorder::scrub::Repair;

use crate::array::{MissingMember, ScrubFinding, ScrubReport};
use crate::instant::utc;

/// The findings, what is missing, and the sums.
pub fn scrubbed(report: &ScrubReport) -> Vec<String> {
    let mut lines: Vec<String> = report.findings.iter().map(finding).collect();
    if report.superblocks_differ {
        let outcome = if report.repair { "repaired" } else { "can be repaired" };
        lines.push(format!("DAMAGED: superblocks differ or are damaged: {outcome}"));
    }
    lines.extend(report.missing_members.iter().map(missing));
    if report.parity_missing > 0 && !report.recording {
        lines.push(format!(
            "MISSING: {}; the data chunks are intact, but survive the loss of fewer members",
            counted(report.parity_missing, "parity chunk")
        ));
    }
    if report.less_parity > 0 {
        lines.push(format!(
            "note: less parity than the array's in {}, recorded while members had failed: such chunks survive the loss of fewer members",
            counted(report.less_parity, "chunk")
        ));
    }
    lines.push(sums(report));
    if !report.repair && report.findings.iter().any(|f| f.repair == Repair::Possible) {
        lines.push("nothing was written: --repair repairs damaged chunks in place".to_owned());
    }
    lines
}

fn sums(report: &ScrubReport) -> String {
    format!(
        "{}, {} read at {}; parity matches in {}, {} without parity; {}, {} missing",
        counted(report.chunks, "chunk"),
        counted(report.bytes, "byte"),
        Rate::of(report.bytes, report.elapsed),
        counted(report.groups, "group"),
        counted(report.without_parity, "chunk"),
        counted(report.findings.len() as u64, "finding"),
        counted(report.missing_packets, "packet")
    )
}

fn finding(finding: &ScrubFinding) -> String {
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

fn missing(MissingMember { member, identity, chunks, recoverable }: &MissingMember) -> String {
    format!(
        "MISSING: member {member} ({identity}) with {}, of which parity can recover {}: `longtake array rebuild --member {member} --onto TARGET` rebuilds it",
        counted(*chunks, "chunk"),
        grouped(*recoverable)
    )
}
