//! How complete an answer about an array is: what is missing, overwritten or unreadable of what it should cover.

use base::Timestamp;
use base::units::counted;
use format::Count;

use super::account::ReadAccount;
use super::contents::Take;
use super::open::Opened;
use crate::instant::utc;

/// Which members of an array there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Numbers of those that can't be opened.
    pub missing: Vec<u16>,
    /// Numbers of those that are out of date.
    pub stale: Vec<u16>,
    parity: u8,
}

impl Members {
    pub(super) fn of(opened: &Opened) -> Self {
        let members = (0u16..).zip(&opened.image.members);
        Self {
            missing: members.filter(|(_, member)| member.is_missing()).map(|(at, _)| at).collect(),
            stale: opened.stale().iter().map(|stale| stale.member).collect(),
            parity: opened.image.superblock.parity,
        }
    }

    /// Whether parity makes up for those that are missing.
    pub fn suffice(&self) -> bool {
        self.missing.len() <= usize::from(self.parity)
    }
}

/// How complete an answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completeness {
    /// Whether the answer covers every packet that was stored in the takes and the span that were asked for. What a ring overwrote
    /// counts against it only if a span was asked for. What was lost before it could be stored is in the ledger.
    pub complete: bool,
    /// Which members there are.
    pub members: Members,
    /// Packets that the array should hold and doesn't.
    pub missing: Count,
    /// Packets in chunks that are damaged, or that a drive failed to read.
    pub unreadable: Count,
    /// Packets that the ring overwrote before they were listed, in takes of which something is left.
    pub overwritten: Count,
    /// Packets that the ring overwrote while they were being read.
    pub overtaken: Count,
    /// Time of the first packet after which some are overwritten.
    pub overwritten_from: Option<Timestamp>,
    /// Time of the last packet before which some are overwritten, if it is known.
    pub overwritten_to: Option<Timestamp>,
    /// Chunks that come from a member that is out of date, although the ring has overwritten them since.
    pub outdated_chunks: u64,
}

impl Completeness {
    /// Of packets that were read, or are about to be.
    pub fn of_packets(read: &ReadAccount) -> Self {
        let from = read.holes.iter().map(|hole| hole.from_ns).min();
        let to = read.holes.iter().map(|hole| hole.to_ns).filter(|&to| to != u64::MAX).max();
        Self {
            complete: read.is_complete(),
            members: read.members.clone(),
            missing: read.missing,
            unreadable: read.unreadable.count,
            overwritten: read.holes.iter().fold(Count::ZERO, |sum, hole| sum + hole.count),
            overtaken: read.overwritten.count,
            overwritten_from: from.map(Timestamp::from_nanos),
            overwritten_to: to.map(Timestamp::from_nanos),
            outdated_chunks: read.overwritten_chunks,
        }
    }

    /// What a file of packets says of itself: a line for each thing.
    pub fn lines(&self) -> Vec<String> {
        let lines = [
            self.complete
                .then(|| "it has every packet of the selection that was stored".to_owned()),
            self.missing_members(),
            told(self.missing, "are missing from the takes"),
            self.by_ring(),
            (self.outdated_chunks > 0).then(|| {
                let chunks = counted(self.outdated_chunks, "chunk");
                format!("{chunks} come from a member that is out of date")
            }),
            told(self.unreadable, "could not be read"),
            told(self.overtaken, "were overwritten by the ring before they were read"),
        ];
        lines.into_iter().flatten().collect()
    }

    fn missing_members(&self) -> Option<String> {
        let missing: Vec<String> = self.members.missing.iter().map(u16::to_string).collect();
        let by_parity =
            if self.members.suffice() { "; parity gives back what they held" } else { "" };
        (!missing.is_empty()).then(|| format!("missing members: {}{by_parity}", missing.join(", ")))
    }

    fn by_ring(&self) -> Option<String> {
        let last = self.overwritten_to.map(|to| format!(", the last before {}", utc(to)));
        let last = last.unwrap_or_default();
        told(self.overwritten, "had been overwritten by the ring").map(|line| line + &last)
    }

    /// Of takes of an array that were listed.
    pub(super) fn of_takes(opened: &Opened, takes: &[Take]) -> Self {
        let sum =
            |of: fn(&Take) -> Count| takes.iter().fold(Count::ZERO, |sum, take| sum + of(take));
        let account = ReadAccount {
            members: Members::of(opened),
            missing: sum(|take| take.missing()),
            overwritten_chunks: opened.overwritten,
            holes: takes.iter().flat_map(|take| take.holes.iter().copied()).collect(),
            ..ReadAccount::default()
        };
        Self { overwritten: sum(|take| take.overwritten), ..Self::of_packets(&account) }
    }
}

fn told(count: Count, what: &str) -> Option<String> {
    (count.packets > 0).then(|| format!("{} {what}", counted(count.packets, "packet")))
}
