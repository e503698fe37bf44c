//! What a recording tells while it runs.

use std::sync::atomic::Ordering;

use base::{Duration, Instant};
use format::{Count, Ledger, Stage};
use recorder::{Event, ParityProgress, Recorder};
use source::packer::Progress;
use uuid::Uuid;

/// A recording that has started.
#[derive(Clone, Debug)]
pub struct Started {
    /// The take's identity.
    pub take: Uuid,
    /// When it started, by the calendar.
    pub at: base::Timestamp,
    /// Number of the take's first chunk.
    pub first_sequence: u64,
    /// The array's name.
    pub array: String,
    /// The array's identity.
    pub array_uuid: Uuid,
    /// The members' drives by name; `missing` where there is none.
    pub drives: Vec<String>,
    /// Chunk buffers.
    pub buffers: u32,
    /// Whether drives are simulated: time is virtual, and afterwards there is nothing to read.
    pub simulated: bool,
}

/// How far a recording has come.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Time since the start.
    pub elapsed: Duration,
    /// The members, in the array's order.
    pub members: Vec<MemberSnapshot>,
    /// Chunk buffers that hold something.
    pub buffers_held: u32,
    /// The account of what was packed and placed.
    pub ledger: Ledger,
    /// Written, with everything before it.
    pub acknowledged: Count,
    /// Flushed, with everything before it.
    pub durable: Count,
    /// The latest packet time that a ring has given up, ns since 1970; 0 for none.
    pub reused_to_ns: u64,
    /// What parity there is; None without.
    pub parity: Option<ParityProgress>,
    /// Packets offered so far, those not yet placed included.
    pub offered_packets: u64,
    /// Packets lost so far, those that a filter left out not included.
    pub lost_packets: u64,
    /// Packets truncated to fit a chunk, and the bytes that were cut off.
    pub truncated: Count,
}

/// A member during a recording.
#[derive(Clone, Copy, Debug)]
pub struct MemberSnapshot {
    /// Bytes written to it.
    pub written: u64,
    /// Its recent rate in bytes a second.
    pub rate: f64,
    /// Whether it still takes writes.
    pub working: bool,
}

impl Snapshot {
    pub(crate) fn of(elapsed: Duration, core: &Recorder, progress: &Progress) -> Self {
        let lost = |stage: &Stage| progress.lost_packets[stage.index()].load(Ordering::Relaxed);
        let members = core.members().map(|member| MemberSnapshot {
            written: member.written,
            rate: member.rate,
            working: member.working,
        });
        Self {
            elapsed,
            members: members.collect(),
            buffers_held: core.buffers_held(),
            ledger: *core.ledger(),
            acknowledged: core.acknowledged(),
            durable: core.durable(),
            reused_to_ns: core.reused_to_ns(),
            parity: core.parity(),
            offered_packets: progress.offered_packets.load(Ordering::Relaxed),
            lost_packets: Stage::ALL.iter().filter(|&&s| s != Stage::Filtered).map(lost).sum(),
            truncated: Count::new(
                progress.truncated_packets.load(Ordering::Relaxed),
                progress.truncated_bytes.load(Ordering::Relaxed),
            ),
        }
    }

    /// Bytes written to all members.
    pub fn written(&self) -> u64 {
        self.members.iter().map(|member| member.written).sum()
    }
}

/// Hears of a recording. Everything is told from the run loop, which must not be held up.
pub trait Observer {
    /// Something that the user should know, in words.
    fn note(&mut self, note: &str);

    /// It has started.
    fn started(&mut self, started: &Started);

    /// When it wants to be told next how far the recording has come.
    fn next(&self) -> Instant;

    /// Something happened.
    fn event(&mut self, now: Instant, event: &Event);

    /// How far it has come, at the time that [`Observer::next`] named or later.
    fn progress(&mut self, now: Instant, snapshot: &Snapshot);
}
