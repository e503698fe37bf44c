//! What a command that reads packets could not read, and what parity gave back.

use base::Timestamp;
use format::Count;
use recorder::extract::Unreadable;
use recorder::takes::Entry;
use serde_json::{Value, json};

use crate::outlet;
use longtake::instant::utc;

/// Chunks that could not be read, and that parity gave back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovered {
    /// How many.
    pub chunks: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// What is in them.
    pub count: Count,
}

impl Recovered {
    /// Enters a chunk.
    pub fn enter(&mut self, entry: &Entry) {
        self.chunks += 1;
        self.bytes += u64::from(entry.record.summary.length);
        self.count += entry.record.summary.stored();
    }

    /// Tells the user.
    pub fn report(&self) {
        if self.chunks > 0 {
            outlet::tell(&format!(
                "recovered from parity: {} chunks, {} bytes, {} packets",
                outlet::number(self.chunks),
                outlet::number(self.bytes),
                outlet::number(self.count.packets)
            ));
        }
    }

    /// The same as JSON.
    pub fn json(&self) -> Value {
        json!({"chunks": self.chunks, "bytes": self.bytes, "packets": self.count.packets})
    }
}

/// Chunks that could not be read.
#[derive(Debug, Default)]
pub struct Unread {
    /// Packets and bytes in those that are damaged, or that a drive failed to read.
    pub count: Count,
    /// Those that the ring overwrote after they were listed.
    pub overwritten: Overwritten,
    reasons: Vec<String>,
}

/// Chunks that the ring overwrote before they were read.
#[derive(Clone, Copy, Debug)]
pub struct Overwritten {
    count: Count,
    first_ns: u64,
    last_ns: u64,
}

impl Default for Overwritten {
    fn default() -> Self {
        Self { count: Count::ZERO, first_ns: u64::MAX, last_ns: 0 }
    }
}

impl Overwritten {
    fn enter(&mut self, entry: &Entry) {
        let summary = &entry.record.summary;
        self.count += summary.stored();
        self.first_ns = self.first_ns.min(summary.first_ns);
        self.last_ns = self.last_ns.max(summary.last_ns);
    }

    /// First and last packet time, in words; None if nothing was overwritten.
    fn span(&self) -> Option<(String, String)> {
        let time = |ns| utc(Timestamp::from_nanos(ns));
        (self.count.packets > 0).then(|| (time(self.first_ns), time(self.last_ns)))
    }

    /// Packets, bytes and the times between which they lay.
    pub fn json(&self) -> Value {
        let (from, to) = self.span().unzip();
        json!({"packets": self.count.packets, "bytes": self.count.bytes, "from": from, "to": to})
    }

    fn report(&self) {
        if let Some((from, to)) = self.span() {
            outlet::tell(&format!(
                "longtake: warning: the ring overwrote {} packets from {from} to {to} before they were read; \
                 --hold keeps a span while it is read",
                outlet::number(self.count.packets)
            ));
        }
    }
}

impl Unread {
    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.count.is_zero() && self.overwritten.count.is_zero()
    }

    /// Enters a chunk.
    pub fn enter(&mut self, entry: &Entry, why: &Unreadable) {
        if *why == Unreadable::Overwritten {
            self.overwritten.enter(entry);
            return;
        }
        self.count += entry.record.summary.stored();
        if self.reasons.len() < 20 {
            self.reasons.push(format!(
                "chunk {} on member {} at byte {}: {why}",
                entry.record.sequence, entry.place.member, entry.place.offset
            ));
        }
    }

    /// Tells the user.
    pub fn report(&self) {
        self.overwritten.report();
        for reason in &self.reasons {
            outlet::tell(&format!("longtake: unreadable: {reason}"));
        }
        if self.count.packets > 0 {
            outlet::tell(&format!(
                "{} packets could not be read",
                outlet::number(self.count.packets)
            ));
        }
    }
}
