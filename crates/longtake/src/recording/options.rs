//! How to record: every setting of a recording, with one default for all who record.

use base::{ByteSize, Duration, Rate, Timestamp};
use recorder::{Config, Placement, WhenFull, defaults};
use target::Uplink;
use uuid::Uuid;

/// How to record. The defaults are those of the program.
#[derive(Clone, Debug)]
pub struct Options {
    /// Stops after this time.
    pub duration: Option<Duration>,
    /// Stops after so many bytes of packets.
    pub until_bytes: Option<ByteSize>,
    /// What happens when every segment has been written.
    pub when_full: WhenFull,
    /// How chunks are spread over the members.
    pub placement: Placement,
    /// What is made where there is no array yet.
    pub new: NewArray,
    /// An expression in tcpdump's language that packets must satisfy; empty for all.
    pub filter: String,
    /// Bytes kept of each packet; 0 keeps all.
    pub snap_bytes: u32,
    /// The kernel's memory for each queue of an interface or UDP source.
    pub kernel_buffer: ByteSize,
    /// Memory for chunk buffers.
    pub memory: ByteSize,
    /// Chunk writes under way on each member at most.
    pub depth: u32,
    /// A packet is on its medium after this time, and each member is flushed after as much again.
    pub flush_interval: Duration,
    /// How far members' fill may drift apart under adaptive placement; None for two segments.
    pub drift_max: Option<ByteSize>,
    /// Segments that a ring keeps trimmed ahead of its head; None for 4 on drives and 0 on files.
    pub trim_ahead: Option<u64>,
    /// A ring trims at this rate on each member at most.
    pub trim_rate: Rate,
    /// Members that take no writes at a time, in turn.
    pub rest: u32,
    /// How long a member rests at a time.
    pub rest_turn: Duration,
    /// Processors: the first for the run loop, the others for the source's queues; empty for any.
    pub processors: Vec<usize>,
    /// What simulated drives together get through to the host.
    pub uplink: Option<Uplink>,
}

/// An array that is made for a recording.
#[derive(Clone, Debug)]
pub struct NewArray {
    /// Member files.
    pub members: u16,
    /// Size of each.
    pub member_size: ByteSize,
    /// The files' mode.
    pub mode: u32,
    /// Length of a segment; None for 256 MiB, less for small members.
    pub segment: Option<ByteSize>,
    /// Longest chunk; None for 4 MiB less 4 KiB.
    pub chunk: Option<ByteSize>,
    /// Parity chunks for each group of chunks. None makes none; an existing array must have as many as are named here.
    pub parity: Option<u8>,
}

impl Default for NewArray {
    fn default() -> Self {
        Self {
            members: 4,
            member_size: ByteSize(2 << 30),
            mode: 0o600,
            segment: None,
            chunk: None,
            parity: None,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            duration: None,
            until_bytes: None,
            when_full: WhenFull::default(),
            placement: Placement::default(),
            new: NewArray::default(),
            filter: String::new(),
            snap_bytes: 0,
            kernel_buffer: ByteSize(64 << 20),
            memory: ByteSize(defaults::MEMORY_BYTES),
            depth: defaults::DEPTH,
            flush_interval: defaults::FLUSH_INTERVAL,
            drift_max: None,
            trim_ahead: None,
            trim_rate: defaults::TRIM_RATE,
            rest: 0,
            rest_turn: defaults::REST_TURN,
            processors: Vec::new(),
            uplink: None,
        }
    }
}

impl Options {
    /// The recorder's settings for an array with segments of this length and so many chunk buffers.
    pub(crate) fn config(
        &self,
        started: Timestamp,
        segment_bytes: u64,
        buffers: u32,
        on_files: bool,
    ) -> Config {
        let trim_ahead =
            if on_files { defaults::TRIM_AHEAD_ON_FILES } else { defaults::TRIM_AHEAD };
        Config {
            take: Uuid::new_v4(),
            started,
            placement: self.placement,
            when_full: self.when_full,
            depth: self.depth,
            buffers,
            drift_max: self.drift_max.map_or(defaults::drift_max(segment_bytes), |d| d.0),
            flush_interval: self.flush_interval,
            trim_ahead: self.trim_ahead.unwrap_or(trim_ahead),
            trim_interval: self.trim_rate.time_for(segment_bytes),
            rest: self.rest,
            rest_turn: self.rest_turn,
        }
    }
}
