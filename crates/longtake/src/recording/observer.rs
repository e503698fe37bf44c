//! What a recording tells while it runs.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use base::{Duration, Instant, Rate};
use format::{Count, Ledger, Stage};
use recorder::{Event, ParityProgress, Recorder};
use source::interface::{Link, LinkState};
use source::packer::Progress;
use uuid::Uuid;

use super::files::CompleteFile;
use super::fits::Capacity;
use super::writes::{MemberWrites, WriteTimes};

use crate::{Remark, Result};

/// What is known of the packets that the filter rejects. They are not among the lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rejections {
    /// There is no filter.
    #[default]
    NoFilter,
    /// Longtake applies the filter and counts what it rejects.
    Counted,
    /// The kernel applies the filter, and doesn't count what it rejects.
    NotCounted,
}

impl Rejections {
    /// What is known of packets that this filter rejects, if Longtake applies it.
    pub(crate) fn of(filter: &str) -> Self {
        match filter.trim() {
            "" => Self::NoFilter,
            _ => Self::Counted,
        }
    }
}

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
    /// Whether drives are simulated: time is virtual.
    pub simulated: bool,
    /// What is known of the packets that the filter rejects.
    pub rejections: Rejections,
    /// How much may be written. Nothing if that is not known, or never runs out.
    pub capacity: Capacity,
    /// The file that is written, or the name that those of the files begin with. There is no array then: its name is empty.
    pub file: Option<PathBuf>,
}

/// Where a recording's counts come from.
#[derive(Clone, Copy)]
pub(super) enum Counts<'a> {
    Array(&'a Recorder),
    Files(&'a FileCounts),
}

/// The counts of a recording into files.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileCounts {
    pub ledger: Ledger,
    /// Bytes of all files.
    pub written: u64,
    /// Whether files can still be written.
    pub working: bool,
    pub buffers_held: u32,
    /// Packets in complete files.
    pub complete: Count,
}

/// A look at a recording under way.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(super) now: Instant,
    pub(super) start: Instant,
    pub(super) counts: Counts<'a>,
    pub(super) progress: &'a Progress,
    pub(super) link: Option<&'a Link>,
    /// How the members take their writes, if that is measured.
    pub(super) writes: Option<&'a WriteTimes>,
    /// Segments that are filled and have no flow index yet.
    pub(super) segments_to_index: usize,
}

impl View<'_> {
    /// The bank's time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.now.since(self.start)
    }

    /// Written, with everything before it.
    pub fn acknowledged(&self) -> Count {
        match self.counts {
            Counts::Array(core) => core.acknowledged(),
            Counts::Files(files) => files.complete,
        }
    }

    /// Flushed, with everything before it.
    pub fn durable(&self) -> Count {
        match self.counts {
            Counts::Array(core) => core.durable(),
            Counts::Files(files) => files.complete,
        }
    }

    /// Packets truncated to fit a chunk, and the bytes that were cut off.
    pub fn truncated(&self) -> Count {
        Count::new(
            self.progress.truncated_packets.load(Ordering::Relaxed),
            self.progress.truncated_bytes.load(Ordering::Relaxed),
        )
    }

    /// All there is to know, as a value of its own.
    pub fn snapshot(&self) -> Snapshot {
        let lost =
            |stage: &Stage| self.progress.lost_packets[stage.index()].load(Ordering::Relaxed);
        Snapshot {
            elapsed: self.elapsed(),
            acknowledged: self.acknowledged(),
            durable: self.durable(),
            offered_packets: self.progress.offered_packets.load(Ordering::Relaxed),
            lost_by_stage: Stage::ALL.each_ref().map(lost),
            lost_packets: Stage::unwanted().map(|stage| lost(&stage)).sum(),
            truncated: self.truncated(),
            link: self.link.and_then(Link::state),
            writes: self.writes.map(WriteTimes::of_members).unwrap_or_default(),
            segments_to_index: self.segments_to_index,
            ..self.counts.snapshot(self.elapsed())
        }
    }
}

impl Counts<'_> {
    /// What is known here of a recording that has lasted so long.
    fn snapshot(&self, elapsed: Duration) -> Snapshot {
        match self {
            Self::Array(core) => {
                let members = core.members().map(|member| MemberSnapshot {
                    written: member.written,
                    rate: member.rate,
                    working: member.working,
                });
                let written = core.written();
                Snapshot {
                    members: members.collect(),
                    buffers_held: core.buffers_held(),
                    buffers_waiting: core.chunks_waiting(),
                    ledger: *core.ledger(),
                    written_through: written.through,
                    under_way: written.under_way,
                    reused_to_ns: core.reused_to_ns(),
                    parity: core.parity(),
                    ..Snapshot::default()
                }
            }
            Self::Files(files) => {
                let rate = Rate::of(files.written, elapsed).0;
                let member =
                    MemberSnapshot { written: files.written, rate, working: files.working };
                Snapshot {
                    members: vec![member],
                    buffers_held: files.buffers_held,
                    ledger: files.ledger,
                    ..Snapshot::default()
                }
            }
        }
    }
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("elapsed", &self.elapsed()).finish_non_exhaustive()
    }
}

/// How far a recording has come.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Time since the start.
    pub elapsed: Duration,
    /// The members, in the array's order; the files as one, if there is no array.
    pub members: Vec<MemberSnapshot>,
    /// Chunk buffers that hold something.
    pub buffers_held: u32,
    /// Of these, buffers whose chunks wait for a member.
    pub buffers_waiting: u32,
    /// The account of what was packed and placed.
    pub ledger: Ledger,
    /// Written, with everything before it.
    pub acknowledged: Count,
    /// Flushed, with everything before it.
    pub durable: Count,
    /// The greatest sequence number of a chunk that is written; 0 without an array.
    pub written_through: u64,
    /// The numbers before it of chunks that are still being written, in order.
    pub under_way: Vec<u64>,
    /// The latest packet time that a ring has given up, ns since 1970; 0 for none.
    pub reused_to_ns: u64,
    /// What parity there is; None without.
    pub parity: Option<ParityProgress>,
    /// Packets offered so far, those not yet placed included.
    pub offered_packets: u64,
    /// Packets lost so far, those that were filtered or cut not included.
    pub lost_packets: u64,
    /// Packets lost so far by [`Stage`]; those that were left out as asked for are at [`Stage::Filtered`] and [`Stage::Cut`].
    pub lost_by_stage: [u64; Stage::ALL.len()],
    /// Packets truncated to fit a chunk, and the bytes that were cut off.
    pub truncated: Count,
    /// The link of the interface that is recorded; None for other sources.
    pub link: Option<LinkState>,
    /// How each member took its writes; empty if that is not measured, on simulated drives and in files.
    pub writes: Vec<MemberWrites>,
    /// Segments that are filled and have no flow index yet.
    pub segments_to_index: usize,
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
    /// Packets that the filter rejected, where Longtake applies it. They are not lost.
    pub fn filtered_packets(&self) -> u64 {
        self.lost_by_stage[Stage::Filtered.index()]
    }

    /// Packets that came after the first bytes of their flow, if only those are kept. They are not lost.
    pub fn cut_packets(&self) -> u64 {
        self.lost_by_stage[Stage::Cut.index()]
    }

    /// Bytes written to all members.
    pub fn written(&self) -> u64 {
        self.members.iter().map(|member| member.written).sum()
    }
}

/// Hears of a recording. Everything is told from the run loop, which must not be held up. `()` listens to nothing.
pub trait Observer {
    /// Something that the user should know.
    fn remark(&mut self, remark: Remark) {
        let _ = remark;
    }

    /// It has started, at this time of the bank's.
    ///
    /// # Errors
    /// If there is no recording without the observer: it ends before it has recorded anything.
    fn started(&mut self, now: Instant, started: &Started) -> Result<()> {
        let _ = (now, started);
        Ok(())
    }

    /// When it wants to look at the recording again at the latest, if nothing happens before.
    fn next(&self) -> Option<Instant> {
        None
    }

    /// Something happened.
    fn event(&mut self, now: Instant, event: &Event) {
        let _ = (now, event);
    }

    /// A file is complete.
    fn file(&mut self, now: Instant, file: &CompleteFile) {
        let _ = (now, file);
    }

    /// A look at the recording, after each round of the run loop.
    fn look(&mut self, view: &View<'_>) {
        let _ = view;
    }
}

impl Observer for () {}
