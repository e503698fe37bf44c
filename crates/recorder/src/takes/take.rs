//! One take as the media show it: what is there of it, what is missing, and its account.

use base::{Duration, Timestamp};
use format::{ChunkRecord, Count, Ledger, TakeId, TakeRecord};

use crate::protocol::TimeRange;

/// Chunks of a take that no member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// First missing sequence number.
    pub first_sequence: u64,
    /// Last missing sequence number.
    pub last_sequence: u64,
    /// What is missing, exactly.
    pub count: Count,
    /// Latest packet time before the gap, ns since 1970.
    pub from_ns: u64,
    /// Earliest packet time after it; all ones if no chunk tells.
    pub to_ns: u64,
}

impl Gap {
    /// Whether some of what is missing may have times of this span.
    pub fn touches(&self, range: TimeRange) -> bool {
        self.from_ns < range.to.as_nanos() && self.to_ns > range.from.as_nanos()
    }
}

/// One recording as the media show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// Its identity and start.
    pub id: TakeId,
    /// Chunks of packets found.
    pub chunks: u64,
    /// Parity chunks found.
    pub parity_chunks: u64,
    /// Bytes of them.
    pub parity_bytes: u64,
    /// Chunks, of those found, that no member has and parity gives back.
    pub recovered_chunks: u64,
    /// What is in them.
    pub recovered: Count,
    /// The first one's number.
    pub first_sequence: u64,
    /// The last one's number, or the greatest that is known to have been given out.
    pub last_sequence: u64,
    /// Packets and wire bytes in the chunks found.
    pub stored: Count,
    /// Packet bytes kept in them.
    pub captured_bytes: u64,
    /// Bytes of the chunks of packets.
    pub media_bytes: u64,
    /// Earliest packet time, ns since 1970; all ones without packets.
    pub first_ns: u64,
    /// Latest packet time; 0 without packets.
    pub last_ns: u64,
    /// Queues that filled it.
    pub queues: u16,
    /// The account through the last chunk that is known of: the one with which the take was ended, if it was.
    pub ledger: Ledger,
    /// Whether it was ended, not cut short.
    pub ended: bool,
    /// What a ring has since given up.
    pub overwritten: Count,
    /// Where that was, between the chunks found and before the first of them.
    pub holes: Vec<Gap>,
    /// What is missing beside that.
    pub gaps: Vec<Gap>,
}

impl Take {
    /// One from the first to the last chunk that were found, before chunks are added.
    pub(super) fn empty(first: &ChunkRecord, last: &ChunkRecord, ended: bool) -> Self {
        Self {
            id: first.take,
            chunks: 0,
            parity_chunks: 0,
            parity_bytes: 0,
            recovered_chunks: 0,
            recovered: Count::ZERO,
            first_sequence: first.sequence,
            last_sequence: last.sequence,
            stored: Count::ZERO,
            captured_bytes: 0,
            media_bytes: 0,
            first_ns: u64::MAX,
            last_ns: 0,
            queues: 0,
            ledger: last.ledger,
            ended,
            overwritten: Count::ZERO,
            holes: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// Adds a chunk to the sums.
    pub(super) fn add(&mut self, record: &ChunkRecord, recovered: bool) {
        let s = &record.summary;
        if record.parity.is_some() {
            self.parity_chunks += 1;
            self.parity_bytes += u64::from(s.length);
            return;
        }
        if recovered {
            self.recovered_chunks += 1;
            self.recovered += s.stored();
        }
        self.chunks += 1;
        self.stored += s.stored();
        self.captured_bytes += s.captured_bytes;
        self.media_bytes += u64::from(s.length);
        self.first_ns = self.first_ns.min(s.first_ns);
        self.last_ns = self.last_ns.max(s.last_ns);
        self.queues = self.queues.max(s.queue + 1);
    }

    /// One of which nothing is left but its record.
    pub(super) fn on_record(record: &TakeRecord) -> Self {
        Self {
            id: record.take,
            chunks: 0,
            parity_chunks: 0,
            parity_bytes: 0,
            recovered_chunks: 0,
            recovered: Count::ZERO,
            first_sequence: record.take.first_sequence,
            last_sequence: record.last_sequence,
            stored: Count::ZERO,
            captured_bytes: 0,
            media_bytes: 0,
            first_ns: record.first_ns,
            last_ns: record.last_ns,
            queues: 0,
            ledger: record.ledger,
            ended: record.ended,
            overwritten: Count::ZERO,
            holes: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// From the first to the last packet.
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.last_ns.saturating_sub(self.first_ns))
    }

    /// What all gaps come to.
    pub fn missing(&self) -> Count {
        self.gaps.iter().fold(Count::ZERO, |sum, gap| sum + gap.count)
    }

    /// Whether what is there, what was overwritten, what is missing and what was lost make up
    /// what was offered, in packets and bytes.
    pub fn balances(&self) -> bool {
        self.ledger.balances()
            && self.stored + self.overwritten + self.missing() == self.ledger.stored
    }

    /// Its packet times.
    pub fn range(&self) -> TimeRange {
        TimeRange {
            from: Timestamp::from_nanos(self.first_ns),
            to: Timestamp::from_nanos(self.last_ns),
        }
    }
}
