//! What could not be read of a selection, and what parity recovered.

use base::Timestamp;
use format::Count;
use recorder::extract::Unreadable;
use recorder::takes::{Entry, Gap};

use super::candidates::IndexUse;
use super::completeness::Members;
use super::info::StaleMember;

/// What became of the selected packets, apart from those that were read as they were recorded.
#[derive(Clone, Debug, Default)]
pub struct ReadAccount {
    /// Which members there are.
    pub members: Members,
    /// Packets that the array should hold and doesn't, in gaps that reach into the span.
    pub missing: Count,
    /// Packets in chunks that are damaged, or that a drive failed to read.
    pub unreadable: UnreadablePackets,
    /// Packets that the ring overwrote after they were listed and before they were read.
    pub overwritten: OverwrittenPackets,
    /// Stretches of the span that the ring had overwritten before they were listed.
    pub holes: Vec<Gap>,
    /// Whether `holes` reach into a span that was asked for, not just into whatever there is.
    pub is_cut_by_ring: bool,
    /// Chunks that could not be read and that parity recovered.
    pub recovered: RecoveredChunks,
    /// Members that are out of date.
    pub stale: Vec<StaleMember>,
    /// Chunks that come from an out-of-date member although the ring has overwritten them since.
    pub overwritten_chunks: u64,
    /// How flow indexes narrowed what was read.
    pub index: IndexUse,
}

impl ReadAccount {
    /// Whether every packet that was recorded in the selected span was there and was read.
    pub fn is_complete(&self) -> bool {
        self.members.suffice() && self.missing.packets == 0 && self.is_read_whole()
    }

    /// Whether everything that was listed was read, and nothing of a span that was asked for was overwritten. Packets that are
    /// missing from the takes don't count.
    pub fn is_read_whole(&self) -> bool {
        self.unreadable.count.is_zero()
            && self.overwritten.count.is_zero()
            && !self.is_cut_by_ring
            && self.overwritten_chunks == 0
    }

    /// Enters a chunk that could not be read.
    pub(super) fn enter_lost(&mut self, entry: &Entry, why: &Unreadable) {
        match why {
            Unreadable::Overwritten => self.overwritten.enter(entry),
            _ => self.unreadable.enter(entry, why),
        }
    }
}

/// Chunks that could not be read, or that a missing member held, and that parity recovered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveredChunks {
    /// Number of chunks.
    pub chunks: u64,
    /// Their length in bytes.
    pub bytes: u64,
    /// Packets in them.
    pub count: Count,
}

impl RecoveredChunks {
    pub(super) fn enter(&mut self, entry: &Entry) {
        self.chunks += 1;
        self.bytes += u64::from(entry.record.summary.length);
        self.count += entry.record.summary.stored();
    }
}

/// Packets that could not be read.
#[derive(Clone, Debug, Default)]
pub struct UnreadablePackets {
    /// Number of packets, and their bytes on the wire.
    pub count: Count,
    /// The chunks that they were in and why each could not be read, in words; the first 20.
    pub reasons: Vec<String>,
}

/// Reasons that are kept at most.
const REASONS_MAX: usize = 20;

impl UnreadablePackets {
    fn enter(&mut self, entry: &Entry, why: &Unreadable) {
        self.count += entry.record.summary.stored();
        if self.reasons.len() < REASONS_MAX {
            self.reasons.push(format!(
                "chunk {} on member {} at byte {}: {why}",
                entry.record.sequence, entry.place.member, entry.place.offset
            ));
        }
    }
}

/// Packets that the ring overwrote before they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverwrittenPackets {
    /// Number of packets, and their bytes on the wire.
    pub count: Count,
    /// Times of the first and the last of them; None if there are none.
    pub span: Option<(Timestamp, Timestamp)>,
}

impl OverwrittenPackets {
    fn enter(&mut self, entry: &Entry) {
        let summary = &entry.record.summary;
        self.count += summary.stored();
        if summary.packets > 0 {
            let [first, last] = [summary.first_ns, summary.last_ns].map(Timestamp::from_nanos);
            let (from, to) = self.span.unwrap_or((first, last));
            self.span = Some((from.min(first), to.max(last)));
        }
    }
}
