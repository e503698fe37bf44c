//! `longtake array check`: reads everything back and verifies every checksum.

use std::process::ExitCode;

use anyhow::Result;
use base::{Bank, Rate};
use recorder::TimeRange;
use recorder::extract::{Had, Unreadable, verify};
use recorder::scrub::is_damage;
use recorder::takes::{Catalog, Entry};
use serde_json::json;

use crate::account::Recovered;
use crate::arguments::ArrayArguments;
use crate::exit;
use crate::opening;
use crate::outlet;
use crate::progress;

/// Checks an array.
///
/// # Errors
/// If it can't be opened. Damage that is found is output, and exit code 3.
pub fn check(arguments: &ArrayArguments) -> Result<ExitCode> {
    let mut opened = opening::open_to_read(&arguments.array, arguments.degraded)?;
    let catalog = opened.catalog(TimeRange::ALL)?;
    let image = opened.image.clone();
    let takes = catalog.takes();
    let bytes: u64 = catalog.entries.iter().map(|e| u64::from(e.record.summary.length)).sum();
    let bar = progress::bytes_bar(bytes, "checking", !arguments.json);
    let start = opened.bank.now();
    let mut damaged = Vec::new();
    let mut recovered = Recovered::default();
    // What a missing member held is not damaged; that it can be had is what there is to say.
    let missing_member = |e: &Entry| image.members[usize::from(e.place.member)].is_missing();
    verify(&mut opened.reader(), &image, &catalog.entries, |entry, outcome| {
        bar.inc(u64::from(entry.record.summary.length));
        match outcome {
            // What a ring reuses while we read is no longer there to be checked.
            Ok(Had::Read) | Err(Unreadable::Overwritten) => {}
            Ok(Had::Recovered(why)) => {
                recovered.enter(entry);
                let reused = why == Unreadable::Overwritten;
                if !reused && !missing_member(entry) && is_damage(&catalog, entry, true) {
                    damaged.push((*entry, why));
                }
            }
            Err(why) if is_damage(&catalog, entry, false) => damaged.push((*entry, why)),
            Err(_) => {}
        }
    })?;
    bar.finish_and_clear();
    let rate = Rate::of(bytes, opened.bank.now().since(start));
    let unbalanced: Vec<_> = takes.iter().filter(|t| !t.balances()).map(|t| t.id.uuid).collect();
    let missing: u64 = takes.iter().map(|t| t.missing().packets).sum();
    let name = |member: u16| {
        let drive = image.members[usize::from(member)].drive;
        opened.bank.drives().get(drive.index()).map_or("-".to_owned(), |d| d.name.clone())
    };
    if arguments.json {
        outlet::json(&json!({
            "chunks": catalog.entries.len(), "bytes": bytes, "takes": takes.len(),
            "missing_packets": missing, "unbalanced_takes": unbalanced, "recovered": recovered.json(),
            "stale_members": opening::stale_json(&opened), "overwritten_chunks": opened.overwritten,
            "damaged": damaged.iter().map(|(e, why)| json!({
                "sequence": e.record.sequence, "target": name(e.place.member), "offset": e.place.offset,
                "packets": e.record.summary.packets, "why": why.to_string(),
            })).collect::<Vec<_>>(),
        }))?;
    } else {
        for (entry, why) in &damaged {
            outlet::text(&format!(
                "DAMAGED: chunk {} with {} packets on {} at byte {}: {why}",
                entry.record.sequence,
                entry.record.summary.packets,
                name(entry.place.member),
                entry.place.offset
            ))?;
        }
        recovered.report();
        for take in &unbalanced {
            outlet::text(&format!("take {take}: its ledger does not balance; please report it"))?;
        }
        outlet::text(&format!(
            "{} chunks, {} bytes read at {rate}: {} damaged; {} takes, {} packets missing{}",
            outlet::number(catalog.entries.len() as u64),
            outlet::number(bytes),
            damaged.len(),
            takes.len(),
            outlet::number(missing),
            unseen(&catalog, missing)
        ))?;
    }
    let sound =
        damaged.is_empty() && unbalanced.is_empty() && missing == 0 && opened.overwritten == 0;
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::from(exit::LOSS) })
}

/// What a check can't see, where a scrub may find more.
fn unseen(catalog: &Catalog, missing: u64) -> String {
    let indexes = match catalog.unindexed.len() {
        0 => String::new(),
        count => {
            format!("\nfull segments without an index: {count}; `longtake array scrub` says why")
        }
    };
    let packets = match missing {
        0 => "",
        _ => "\n`longtake array scrub` looks for damaged chunks among the missing packets",
    };
    indexes + packets
}
