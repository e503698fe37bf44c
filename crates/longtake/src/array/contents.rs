//! What was recorded on an array: takes, chunks, and the parity that covers them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use anyhow::Result;
use base::Timestamp;
use format::{Count, Interface, Stage};
use recorder::TimeRange;
use recorder::takes::{Catalog, Entry};
use uuid::Uuid;

use super::open::Opened;
use crate::recording::Rejections;

/// What was recorded on an array.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The takes, in the order in which they were recorded.
    pub takes: Vec<Take>,
    /// Every chunk, parity included, by sequence number.
    pub chunks: Vec<Entry>,
    /// What parity covers; None for an array without parity.
    pub parity: Option<ParityCoverage>,
    /// What a ring has overwritten; None if no chunk says that anything was.
    pub released: Option<Released>,
}

/// What a ring has overwritten so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
    /// The greatest sequence number of a chunk that was overwritten.
    pub sequence: u64,
    /// Time of the latest packet that was overwritten: nothing later is missing. None if not every member tells.
    pub until: Option<Timestamp>,
    /// Packets that were overwritten, and their bytes on the wire, in takes of which something is left.
    pub count: Count,
}

/// One recording, from its start to its end: its ledger, and what is still there of it.
#[derive(Clone, Debug)]
pub struct Take {
    /// What its chunks say.
    pub recorded: recorder::takes::Take,
    /// Whether it has ended.
    pub state: TakeState,
}

impl Take {
    /// Whether the ring has left nothing of it but its account.
    pub fn is_overwritten(&self) -> bool {
        self.chunks + self.parity_chunks == 0
            && self.gaps.is_empty()
            && !self.overwritten.is_zero()
            && self.state != TakeState::Recording
    }
}

impl Take {
    /// What is known of the packets that a filter rejected, with the interfaces that the take's chunks describe. The media hold the
    /// filter and a count, which is 0 if the kernel applied the filter, because it counts none.
    pub fn rejections(&self, interfaces: &[Interface]) -> Rejections {
        let is_filtered = interfaces.iter().any(|interface| !interface.filter.is_empty());
        match (self.ledger.lost(Stage::Filtered).is_zero(), is_filtered) {
            (false, _) => Rejections::Counted,
            (true, true) => Rejections::NotCounted,
            (true, false) => Rejections::NoFilter,
        }
    }
}

impl Deref for Take {
    type Target = recorder::takes::Take;

    fn deref(&self) -> &Self::Target {
        &self.recorded
    }
}

/// Whether a take has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeState {
    /// It was ended, and its ledger is final.
    Complete,
    /// It is being recorded.
    Recording,
    /// Its recorder stopped without ending it, by a crash or a power cut. The ledger reaches to the last chunk found.
    CutShort,
}

impl fmt::Display for TakeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Complete => "complete",
            Self::Recording => "being recorded",
            Self::CutShort => "cut short",
        })
    }
}

/// How much of an array's chunks its parity covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParityCoverage {
    /// Groups of chunks with at least one parity chunk.
    pub groups: u64,
    /// Bytes of parity chunks.
    pub bytes: u64,
    /// Chunks whose group has fewer parity chunks than the array should have.
    pub short_chunks: u64,
}

impl Contents {
    pub(super) fn read(opened: &mut Opened) -> Result<Self> {
        let catalog = opened.catalog(TimeRange::ALL)?;
        let parity = opened.image.superblock.parity;
        let takes = takes(&catalog, opened.recording);
        let released = catalog.reused.map(|sequence| Released {
            sequence,
            until: catalog.reused_to_ns.map(Timestamp::from_nanos),
            count: takes.iter().fold(Count::ZERO, |sum, take| sum + take.overwritten),
        });
        Ok(Self {
            takes,
            released,
            parity: (parity > 0).then(|| ParityCoverage::of(parity, &catalog)),
            chunks: catalog.entries,
        })
    }
}

/// The takes of a catalog. The last one is being recorded if the array is.
fn takes(catalog: &Catalog, recording: bool) -> Vec<Take> {
    let takes = catalog.takes();
    let count = takes.len();
    let takes = takes.into_iter().enumerate().map(|(at, recorded)| {
        let state = match recorded.ended {
            true => TakeState::Complete,
            false if recording && at + 1 == count => TakeState::Recording,
            false => TakeState::CutShort,
        };
        Take { recorded, state }
    });
    takes.collect()
}

/// Why a word names no take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeError {
    /// No take of the array is called so.
    Unknown(String),
    /// None that has packets of the selected span is.
    NotInSpan(String),
    /// Several takes begin with it.
    Ambiguous(String),
}

impl fmt::Display for TakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(wanted) => write!(f, "no take '{wanted}': `longtake takes` lists them"),
            Self::NotInSpan(wanted) => {
                write!(f, "no take '{wanted}' in that span: `longtake takes` lists them")
            }
            Self::Ambiguous(wanted) => {
                write!(f, "several takes begin with '{wanted}': give more of the UUID")
            }
        }
    }
}

impl std::error::Error for TakeError {}

/// The one take that a word names.
pub(super) fn find(mut takes: Vec<Take>, wanted: &str) -> Result<Take, TakeError> {
    let count = takes.len();
    let mut at = 0;
    takes.retain(|take| {
        at += 1;
        matches_take(wanted, take.id.uuid, at == count)
    });
    match takes.len() {
        0 => Err(TakeError::Unknown(wanted.to_owned())),
        1 => Ok(takes.remove(0)),
        _ => Err(TakeError::Ambiguous(wanted.to_owned())),
    }
}

/// Whether a word names a take: its UUID, the beginning of that, or `last` for the last one.
pub fn matches_take(wanted: &str, take: Uuid, last: bool) -> bool {
    (wanted == "last" && last) || take.to_string().starts_with(&wanted.to_lowercase())
}

impl Contents {
    /// Time of the newest packet; None if there is none.
    pub fn newest_packet(&self) -> Option<Timestamp> {
        let with_packets = self.takes.iter().filter(|take| take.stored.packets > 0);
        with_packets.map(|take| Timestamp::from_nanos(take.last_ns)).max()
    }

    /// From the first packet to the last one; None if there is none.
    pub fn span(&self) -> Option<TimeRange> {
        let with_packets = self.takes.iter().filter(|take| take.stored.packets > 0);
        let first = with_packets.map(|take| Timestamp::from_nanos(take.first_ns)).min();
        Some(TimeRange { from: first?, to: self.newest_packet()? })
    }
}

impl ParityCoverage {
    fn of(parity: u8, catalog: &Catalog) -> Self {
        let mut coverage = Self::default();
        // By group: the number of its last data chunk, and its parities.
        let mut parities: BTreeMap<u64, (u64, u8)> = BTreeMap::new();
        for entry in &catalog.entries {
            if let Some(part) = entry.record.parity {
                let last = part.group + u64::from(part.span);
                parities.entry(part.group).or_insert((last, 0)).1 += 1;
                coverage.bytes += u64::from(entry.record.summary.length);
            }
        }
        coverage.groups = parities.len() as u64;
        let data = catalog.entries.iter().filter(|e| e.record.parity.is_none());
        for entry in data {
            let sequence = entry.record.sequence;
            let group = parities.range(..=sequence).next_back().map(|(_, &group)| group);
            let whole = group.is_some_and(|(last, count)| sequence <= last && count >= parity);
            coverage.short_chunks += u64::from(!whole);
        }
        coverage
    }
}
