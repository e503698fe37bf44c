//! Reads everything back and verifies every checksum.

use anyhow::Result;
use base::{Bank, Duration};
use format::Count;
use recorder::TimeRange;
use recorder::extract::{Provenance, Unreadable, verify};
use recorder::scrub::is_damage;
use recorder::takes::Entry;
use uuid::Uuid;

use super::Progress;
use super::account::RecoveredChunks;
use super::courtesy::Courtesy;
use super::info::{StaleMember, stale_members};
use super::open::Opened;
use super::select::READ_RATE_DURING_RECORDING;

/// What a check found.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// Chunks that were read.
    pub chunks: u64,
    /// Their length in bytes.
    pub bytes: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// Takes on the array.
    pub takes: u64,
    /// Packets that takes should hold and don't.
    pub missing: Count,
    /// Takes whose ledger does not add up, which is a fault of Longtake.
    pub unbalanced_takes: Vec<Uuid>,
    /// Chunks that could not be read and that parity recovered.
    pub recovered: RecoveredChunks,
    /// Chunks that can't be read or fail their checksum. Parity may recover them; chunks of a missing member are not among them.
    pub damaged: Vec<DamagedChunk>,
    /// Full segments without an index. A scrub says why each has none.
    pub unindexed_segments: u64,
    /// Members that are out of date.
    pub stale: Vec<StaleMember>,
    /// Chunks that come from an out-of-date member although the ring has overwritten them since.
    pub overwritten_chunks: u64,
}

impl CheckReport {
    /// Whether nothing is damaged or missing.
    pub fn is_sound(&self) -> bool {
        self.damaged.is_empty()
            && self.unbalanced_takes.is_empty()
            && self.missing.packets == 0
            && self.overwritten_chunks == 0
    }
}

/// A chunk that can't be read or fails its checksum.
#[derive(Clone, Debug)]
pub struct DamagedChunk {
    /// Its sequence number in the array.
    pub sequence: u64,
    /// Its member's file or device; `-` for a missing member.
    pub target: String,
    /// Its first byte there.
    pub offset: u64,
    /// Packets in it.
    pub packets: u32,
    /// Why it can't be read.
    pub reason: Unreadable,
}

pub(super) fn check(
    opened: &mut Opened,
    progress: &mut dyn FnMut(Progress),
) -> Result<CheckReport> {
    let catalog = opened.catalog(TimeRange::ALL)?;
    let takes = catalog.takes();
    let bytes: u64 = catalog.entries.iter().map(|e| u64::from(e.record.summary.length)).sum();
    let start = opened.bank.now();
    let (damaged, recovered) = read(opened, &catalog, bytes, progress)?;
    let unbalanced = takes.iter().filter(|take| !take.balances());
    let damaged = damaged.into_iter().map(|(entry, reason)| DamagedChunk {
        sequence: entry.record.sequence,
        target: opened.target(entry.place.member).unwrap_or("-").to_owned(),
        offset: entry.place.offset,
        packets: entry.record.summary.packets,
        reason,
    });
    Ok(CheckReport {
        chunks: catalog.entries.len() as u64,
        bytes,
        elapsed: opened.bank.now().since(start),
        takes: takes.len() as u64,
        missing: takes.iter().fold(Count::ZERO, |sum, take| sum + take.missing()),
        unbalanced_takes: unbalanced.map(|take| take.id.uuid).collect(),
        recovered,
        damaged: damaged.collect(),
        unindexed_segments: catalog.unindexed.len() as u64,
        stale: stale_members(opened),
        overwritten_chunks: opened.overwritten,
    })
}

/// Reads every chunk; gives those that are damaged, and what parity recovered.
fn read(
    opened: &mut Opened,
    catalog: &recorder::takes::Catalog,
    bytes: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Vec<(Entry, Unreadable)>, RecoveredChunks)> {
    let image = opened.image.clone();
    let mut damaged = Vec::new();
    let mut recovered = RecoveredChunks::default();
    let mut done = 0;
    progress(Progress { done, total: bytes });
    // What a missing member held is not damaged; that parity recovers it is all there is to report.
    let missing_member = |e: &Entry| image.members[usize::from(e.place.member)].is_missing();
    let mut courtesy = Courtesy::in_reading(opened, Some(READ_RATE_DURING_RECORDING));
    verify(&mut opened.reader(), &image, &catalog.entries, |entry, outcome| {
        if let Some(courtesy) = &mut courtesy {
            courtesy.stand_back();
        }
        done += u64::from(entry.record.summary.length);
        progress(Progress { done, total: bytes });
        match outcome {
            // What a ring reuses while we read is no longer there to be checked.
            Ok(Provenance::Read) | Err(Unreadable::Overwritten) => {}
            Ok(Provenance::Recovered(why)) => {
                recovered.enter(entry);
                let reused = why == Unreadable::Overwritten;
                if !reused && !missing_member(entry) && is_damage(catalog, entry, true) {
                    damaged.push((*entry, why));
                }
            }
            Err(why) if is_damage(catalog, entry, false) => damaged.push((*entry, why)),
            Err(_) => {}
        }
    })?;
    Ok((damaged, recovered))
}
