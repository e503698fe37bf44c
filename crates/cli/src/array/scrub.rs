//! `longtake array scrub`: everything is read and held against checksums and parity; what parity allows is repaired.

use std::process::ExitCode;

use anyhow::{Result, bail};
use base::{Bank, Rate, Timestamp};
use device::safety::{Authorized, Purpose};
use device::target::{Access, is_locked};
use recorder::TimeRange;
use recorder::scrub::{Finding, Options, Repair, Scrubbed, Step};
use serde_json::{Value, json};
use target::array::resolve;
use target::authorize;

use crate::arguments::ScrubArguments;
use crate::exit;
use crate::extract::READ_RATE_BESIDE_RECORDING;
use crate::opening::{self, Opened, READ_MEMORY_BYTES};
use crate::outlet;
use crate::progress;
use longtake::array::protect::rewrite_superblocks;
use longtake::instant::utc;

/// Scrubs an array.
///
/// # Errors
/// If it can't be opened, or is to be repaired while somebody records on it. Damage that is found is output, and exit code 3.
pub fn scrub(arguments: &ScrubArguments) -> Result<ExitCode> {
    // The proofs keep others off the drives until the end.
    let (mut opened, _proofs) = open(arguments)?;
    let catalog = opened.catalog(TimeRange::ALL)?;
    let image = opened.image.clone();
    let bytes: u64 = catalog.entries.iter().map(|e| u64::from(e.record.summary.length)).sum();
    let bar = progress::bytes_bar(bytes, "scrubbing", !arguments.array.json);
    let limit = arguments.limit.or(opened.recording.then_some(READ_RATE_BESIDE_RECORDING));
    let start = opened.bank.now();
    let mut findings: Vec<Finding> = Vec::new();
    let recording = opened.recording;
    let mut reader = opened.reader();
    let repair = arguments.repair;
    let options = Options { limit, repair, recording };
    let done = recorder::scrub::scrub(&mut reader, &image, &catalog, options, |step| match step {
        Step::Read(bytes) => bar.inc(bytes),
        Step::Found(finding) => findings.push(finding.clone()),
    })?;
    bar.finish_and_clear();
    let rate = Rate::of(done.bytes, opened.bank.now().since(start));
    // A recording under way writes them anew by itself.
    let superblocks_differ = image.superblocks_differ && !opened.recording;
    if superblocks_differ && repair {
        let superblock = &image.superblock;
        rewrite_superblocks(&mut opened, &superblock.protected, &superblock.members)?;
    }
    let takes = catalog.takes();
    let missing_packets: u64 = takes.iter().map(|take| take.missing().packets).sum();
    let names: Vec<String> = (0u16..)
        .zip(&image.members)
        .map(|(at, member)| match opened.bank.drives().get(member.drive.index()) {
            Some(drive) => drive.name.clone(),
            None => image.superblock.members[usize::from(at)].identity.clone(),
        })
        .collect();
    if arguments.array.json {
        outlet::json(&json!({
            "chunks": done.chunks, "bytes": done.bytes, "groups": done.groups, "parity": image.superblock.parity,
            "without_parity": done.without_parity, "parity_missing": done.parity_missing, "missing_packets": missing_packets, "repair": repair,
            "superblocks": !superblocks_differ,
            "stale_members": opening::stale_json(&opened), "overwritten_chunks": opened.overwritten,
            "findings": findings.iter().map(|f| finding_json(f, &names)).collect::<Vec<_>>(),
            "missing_members": done.missing.iter().map(|(&member, (held, had))| json!({
                "member": member, "identity": names[usize::from(member)], "chunks": held, "recoverable": had,
            })).collect::<Vec<_>>(),
        }))?;
    } else {
        for finding in &findings {
            outlet::text(&describe(finding, &names))?;
        }
        if superblocks_differ {
            let outcome = if repair { "written again" } else { "can be repaired" };
            outlet::text(&format!("DAMAGED: superblocks differ or are damaged: {outcome}"))?;
        }
        tell_missing(&done, &names)?;
        if done.parity_missing > 0 && !opened.recording {
            outlet::text(&format!(
                "MISSING: {} parity chunks; what they are of is there, and less of it can be lost",
                outlet::number(done.parity_missing)
            ))?;
        }
        outlet::text(&format!(
            "{} chunks, {} bytes read at {rate}; {} groups hold with their parity, {} chunks have none; {} findings, {} packets missing",
            outlet::number(done.chunks),
            outlet::number(done.bytes),
            outlet::number(done.groups),
            outlet::number(done.without_parity),
            findings.len(),
            outlet::number(missing_packets)
        ))?;
        if !repair && findings.iter().any(|f| f.repair == Repair::Possible) {
            outlet::text(
                "nothing was written: --repair writes what can be made again in its place",
            )?;
        }
    }
    let harmless = |f: &Finding| f.repair == Repair::Done || !f.fault.is_damage();
    let sound = findings.iter().all(harmless)
        && opened.overwritten == 0
        && (repair || !superblocks_differ)
        && done.missing.is_empty()
        && (opened.recording || done.parity_missing == 0)
        && missing_packets == 0;
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::from(exit::LOSS) })
}

/// Opens the array, for writing only if it is to be repaired.
fn open(arguments: &ScrubArguments) -> Result<(Opened, Vec<Option<Authorized>>)> {
    let array = &arguments.array;
    if !arguments.repair {
        return Ok((opening::open_to_read(&array.array, array.degraded)?, Vec::new()));
    }
    let targets = resolve(&array.array)?;
    for target in &targets {
        if is_locked(target)? {
            bail!(
                "{}: somebody records on the array; nothing was written. Scrub without --repair, or repair when the take is over",
                target.display()
            );
        }
    }
    let proofs = authorize(&targets, &[], Purpose::Continue, false)?;
    let access = Access::Write { exclusive: false };
    let opened = opening::open(&targets, access, READ_MEMORY_BYTES, 0, array.degraded)?;
    Ok((opened, proofs))
}

fn describe(finding: &Finding, names: &[String]) -> String {
    let Finding { entry, fault, repair } = finding;
    let outcome = match repair {
        Repair::None => "can't be repaired",
        Repair::Possible => "can be repaired",
        Repair::Done => "repaired",
        Repair::Failed => "written again, and still not sound: the drive fails there",
    };
    let (kind, outcome) = match repair {
        _ if fault.is_damage() => ("DAMAGED", outcome),
        Repair::Possible => ("TORN", "the next recording or --repair rebuilds it from its chunks"),
        _ => ("TORN", outcome),
    };
    format!(
        "{kind}: member {} ({}) at byte {}, chunk {} of take {} at {}: {fault}: {outcome}",
        entry.place.member,
        names[usize::from(entry.place.member)],
        entry.place.offset,
        entry.record.sequence,
        entry.record.take.uuid,
        utc(time(finding))
    )
}

/// Its first packet's time, or when it was sealed.
fn time(finding: &Finding) -> Timestamp {
    let summary = &finding.entry.record.summary;
    let ns = if summary.first_ns == u64::MAX { summary.sealed_ns } else { summary.first_ns };
    Timestamp::from_nanos(ns)
}

fn finding_json(finding: &Finding, names: &[String]) -> Value {
    let Finding { entry, fault, repair } = finding;
    json!({
        "member": entry.place.member, "target": names[usize::from(entry.place.member)], "offset": entry.place.offset,
        "length": entry.record.summary.length, "sequence": entry.record.sequence, "take": entry.record.take.uuid,
        "time": utc(time(finding)), "packets": entry.record.summary.packets, "fault": fault.to_string(),
        "damage": fault.is_damage(),
        "repair": match repair {
            Repair::None => "impossible",
            Repair::Possible => "possible",
            Repair::Done => "done",
            Repair::Failed => "failed",
        },
    })
}

fn tell_missing(done: &Scrubbed, names: &[String]) -> Result<()> {
    for (&member, (held, had)) in &done.missing {
        outlet::text(&format!(
            "MISSING: member {member} ({}) with {} chunks, of which parity gives back {}: `longtake array rebuild --member {member} --onto TARGET` makes it anew",
            names[usize::from(member)],
            outlet::number(*held),
            outlet::number(*had)
        ))?;
    }
    Ok(())
}
