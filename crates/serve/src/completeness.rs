//! How complete an answer is: what is missing, overwritten or unreadable of what it should cover.

use base::Timestamp;
use format::Count;
use longtake::Array;
use longtake::array::{ReadAccount, Take};
use longtake::instant::utc;
use serde::Serialize;
use utoipa::ToSchema;

/// How complete an answer is.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Completeness {
    /// Whether the answer covers every packet that was stored in the takes and the span that were asked for. What a ring overwrote
    /// counts against it only if a span was asked for. What was lost before it could be stored is in the ledger.
    complete: bool,
    /// Numbers of members that can't be opened. Parity recovers what they held, if it can.
    missing_members: Vec<u16>,
    /// Numbers of members that are out of date.
    stale_members: Vec<u16>,
    /// Packets that the array should hold and doesn't.
    missing: Packets,
    /// Packets in chunks that are damaged, or that a drive failed to read.
    unreadable: Packets,
    /// Packets that the ring overwrote before they were listed, in takes of which something is left.
    overwritten: Packets,
    /// Packets that the ring overwrote while they were being read.
    overtaken: Packets,
    /// Time of the first packet after which some are overwritten; null if none is.
    overwritten_from: Option<String>,
    /// Time of the last packet before which some are overwritten; null if none is.
    overwritten_to: Option<String>,
    /// Chunks that come from a member that is out of date, although the ring has overwritten them since.
    outdated_chunks: u64,
}

/// Packets and their bytes on the wire.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct Packets {
    /// Number of packets.
    packets: u64,
    /// Their bytes on the wire.
    bytes: u64,
}

impl From<Count> for Packets {
    fn from(Count { packets, bytes }: Count) -> Self {
        Self { packets, bytes }
    }
}

/// Which members of an array there are.
#[derive(Clone, Debug)]
pub struct Members {
    /// Numbers of those that can't be opened.
    pub missing: Vec<u16>,
    /// Numbers of those that are out of date.
    pub stale: Vec<u16>,
    parity: u8,
}

impl Members {
    /// Those of an array.
    pub fn of(array: &Array) -> Self {
        let info = array.info();
        let missing = (0..).zip(&info.members).filter(|(_, member)| member.target.is_none());
        let stale = info.stale.iter().map(|stale| stale.member);
        Self {
            missing: missing.map(|(number, _)| number).collect(),
            stale: stale.collect(),
            parity: info.parity,
        }
    }

    /// Whether parity makes up for those that are missing.
    fn suffice(&self) -> bool {
        self.missing.len() <= usize::from(self.parity)
    }
}

impl Completeness {
    /// Of packets that were read, or are about to be.
    pub fn of_packets(members: &Members, read: &ReadAccount) -> Self {
        let overwritten = read.holes.iter().fold(Count::ZERO, |sum, hole| sum + hole.count);
        let from = read.holes.iter().map(|hole| hole.from_ns).min();
        let to = read.holes.iter().map(|hole| hole.to_ns).filter(|&to| to != u64::MAX).max();
        let time = |ns| utc(Timestamp::from_nanos(ns));
        Self {
            complete: members.suffice() && read.missing.packets == 0 && read.is_read_whole(),
            missing_members: members.missing.clone(),
            stale_members: members.stale.clone(),
            missing: read.missing.into(),
            unreadable: read.unreadable.count.into(),
            overwritten: overwritten.into(),
            overtaken: read.overwritten.count.into(),
            overwritten_from: from.map(time),
            overwritten_to: to.map(time),
            outdated_chunks: read.overwritten_chunks,
        }
    }

    /// Of takes that were listed.
    pub fn of_takes(members: &Members, takes: &[Take], outdated_chunks: u64) -> Self {
        let sum =
            |of: fn(&Take) -> Count| takes.iter().fold(Count::ZERO, |sum, take| sum + of(take));
        let missing = sum(|take| take.missing());
        let account = ReadAccount {
            missing,
            overwritten_chunks: outdated_chunks,
            holes: takes.iter().flat_map(|take| take.holes.iter().copied()).collect(),
            ..ReadAccount::default()
        };
        let overwritten = sum(|take| take.overwritten).into();
        Self { overwritten, ..Self::of_packets(members, &account) }
    }

    /// Whether the answer covers everything.
    pub fn is_complete(&self) -> bool {
        self.complete
    }
}
