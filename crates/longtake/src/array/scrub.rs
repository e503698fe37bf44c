//! Reads everything back, compares it with checksums and parity, and repairs what parity allows.

use anyhow::Result;
use base::{Bank, Duration, Rate, Timestamp};
use recorder::TimeRange;
use recorder::scrub::{Fault, Finding, Options, Repair, Scrubbed, Step, scrub as run};
use recorder::superblocks::Change;
use recorder::takes::{Catalog, Entry};
use uuid::Uuid;

use super::Progress;
use super::courtesy::Courtesy;
use super::info::{StaleMember, stale_members};
use super::open::Opened;
use super::select::READ_RATE_DURING_RECORDING;

/// How to scrub.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScrubOptions {
    /// Whether what parity gives back is written in its place. Nobody may be recording on the array then.
    pub repair: bool,
    /// Reads at this rate at most; None for [`READ_RATE_DURING_RECORDING`] during a recording, and no limit otherwise.
    pub limit: Option<Rate>,
}

/// What a scrub found.
#[derive(Clone, Debug)]
pub struct ScrubReport {
    /// Chunks that were read, parity included.
    pub chunks: u64,
    /// Their length in bytes.
    pub bytes: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// Parity chunks that each group of chunks should have.
    pub parity: u8,
    /// Groups whose chunks were compared with their parity.
    pub groups: u64,
    /// Chunks of packets that no parity covers.
    pub without_parity: u64,
    /// Parity chunks that were written and are not found.
    pub parity_missing: u64,
    /// Chunks of packets with less parity than the array has. They were recorded while members had failed or were missing, and
    /// survive the loss of fewer members.
    pub less_parity: u64,
    /// Packets that takes should hold and don't.
    pub missing_packets: u64,
    /// Everything that is wrong, in the order in which it was found.
    pub findings: Vec<ScrubFinding>,
    /// Missing members, by number.
    pub missing_members: Vec<MissingMember>,
    /// Whether superblocks differ or are damaged. They were rewritten if this was a repair.
    pub superblocks_differ: bool,
    /// Whether this was a repair.
    pub repair: bool,
    /// Whether somebody was recording, so that what is not found may still be written.
    pub recording: bool,
    /// Members that are out of date.
    pub stale: Vec<StaleMember>,
    /// Chunks that come from an out-of-date member although the ring has overwritten them since.
    pub overwritten_chunks: u64,
}

impl ScrubReport {
    /// Whether nothing is damaged or missing, or everything that was has been repaired.
    pub fn is_sound(&self) -> bool {
        let harmless = |f: &ScrubFinding| f.repair == Repair::Done || !f.fault.is_damage();
        self.findings.iter().all(harmless)
            && self.overwritten_chunks == 0
            && (self.repair || !self.superblocks_differ)
            && self.missing_members.is_empty()
            && (self.recording || self.parity_missing == 0)
            && self.missing_packets == 0
    }
}

/// Something that is wrong.
#[derive(Clone, Debug)]
pub struct ScrubFinding {
    /// The member that it is on.
    pub member: u16,
    /// The member's file or device; of a missing member, model and serial number.
    pub target: String,
    /// First byte of the chunk there; of an index, first byte of its segment's first chunk.
    pub offset: u64,
    /// Length of the chunk in bytes.
    pub length: u32,
    /// The chunk's sequence number in the array.
    pub sequence: u64,
    /// The take that it belongs to.
    pub take: Uuid,
    /// Time of its first packet, or when it was written if it has none.
    pub time: Timestamp,
    /// Packets in it.
    pub packets: u32,
    /// What is wrong.
    pub fault: Fault,
    /// Whether it was repaired or can be.
    pub repair: Repair,
}

/// A member that was missing during a scrub.
#[derive(Clone, Debug)]
pub struct MissingMember {
    /// Its number.
    pub member: u16,
    /// Model and serial number of its drive, or the file's path.
    pub identity: String,
    /// Chunks that it held.
    pub chunks: u64,
    /// Chunks, of those, that parity gives back whole.
    pub recoverable: u64,
}

pub(super) fn scrub(
    opened: &mut Opened,
    options: &ScrubOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<ScrubReport> {
    let catalog = opened.catalog(TimeRange::ALL)?;
    let image = opened.image.clone();
    let start = opened.bank.now();
    let (done, findings) = read(opened, &catalog, options, progress)?;
    let elapsed = opened.bank.now().since(start);
    let repair = options.repair;
    // A recording under way rewrites them itself.
    let superblocks_differ = image.superblocks_differ && !opened.recording;
    if superblocks_differ && repair {
        opened.change_superblocks(&Change::Settle)?;
    }
    let name = |member: u16| {
        let known = &image.superblock.members[usize::from(member)].identity;
        opened.target(member).unwrap_or(known).to_owned()
    };
    let missing = done.missing.iter().map(|(&member, &(chunks, recoverable))| MissingMember {
        member,
        identity: name(member),
        chunks,
        recoverable,
    });
    Ok(ScrubReport {
        chunks: done.chunks,
        bytes: done.bytes,
        elapsed,
        parity: image.superblock.parity,
        groups: done.groups,
        without_parity: done.without_parity,
        parity_missing: done.parity_missing,
        less_parity: done.less_parity,
        missing_packets: catalog.takes().iter().map(|take| take.missing().packets).sum(),
        findings: findings
            .iter()
            .map(|f| ScrubFinding::of(f, name(f.entry.place.member)))
            .collect(),
        missing_members: missing.collect(),
        superblocks_differ,
        repair,
        recording: opened.recording,
        stale: stale_members(opened),
        overwritten_chunks: opened.overwritten,
    })
}

fn read(
    opened: &mut Opened,
    catalog: &Catalog,
    options: &ScrubOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Scrubbed, Vec<Finding>)> {
    let ScrubOptions { repair, limit } = *options;
    let recording = opened.recording;
    let limit = limit.or(recording.then_some(READ_RATE_DURING_RECORDING));
    let total = catalog.entries.iter().map(|e| u64::from(e.record.summary.length)).sum();
    let mut done = 0;
    progress(Progress { done, total });
    let mut findings = Vec::new();
    let image = opened.image.clone();
    let options = Options { limit, repair, recording };
    let beside = limit.is_none().then_some(READ_RATE_DURING_RECORDING);
    let mut courtesy = Courtesy::in_reading(opened, beside);
    let scrubbed = run(&mut opened.reader(), &image, catalog, options, |step| match step {
        Step::Read(bytes) => {
            if let Some(courtesy) = &mut courtesy {
                courtesy.stand_back();
            }
            done += bytes;
            progress(Progress { done, total });
        }
        Step::Found(finding) => findings.push(finding.clone()),
    })?;
    Ok((scrubbed, findings))
}

impl ScrubFinding {
    fn of(finding: &Finding, target: String) -> Self {
        let Finding { entry, fault, repair } = finding;
        Self {
            member: entry.place.member,
            target,
            offset: entry.place.offset,
            length: entry.record.summary.length,
            sequence: entry.record.sequence,
            take: entry.record.take.uuid,
            time: time(entry),
            packets: entry.record.summary.packets,
            fault: fault.clone(),
            repair: repair.clone(),
        }
    }
}

/// Its first packet's time, or when it was sealed.
fn time(entry: &Entry) -> Timestamp {
    let summary = &entry.record.summary;
    let ns = if summary.first_ns == u64::MAX { summary.sealed_ns } else { summary.first_ns };
    Timestamp::from_nanos(ns)
}
