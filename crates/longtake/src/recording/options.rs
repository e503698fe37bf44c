//! How to record: every setting of a recording, with one default for all who record.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, bail};
use base::{BufferId, ByteSize, Duration, Rate, Timestamp};
use device::target::FILE_MODE_DEFAULT;
use format::{PAGE_BYTES, flow_index};
use recorder::{Config, ParityMeans, Placement, WhenFull, defaults};
use search::{KEYS_MAX, SegmentKeys};
use target::Uplink;
use target::parts::{PartsError, Place, parts};
use uuid::Uuid;

use super::retention::Slice;

/// How to record. The defaults are those of the program, except that it gives up its privileges.
#[derive(Clone, Debug)]
pub struct Options {
    /// Stops after this time.
    pub duration: Option<Duration>,
    /// Stops after so many bytes of packets.
    pub until_bytes: Option<ByteSize>,
    /// Refuses to start if the recording is known not to fit, before anything is created.
    pub strict: bool,
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
    /// What is kept of each packet, within `snap_bytes`; None for all. What is left out is counted in the ledger as sliced.
    pub slice: Option<Slice>,
    /// Bytes kept of the beginning of each flow, counted on the wire and in both directions together; None keeps everything. The ledger
    /// counts the other packets as cut. After [`search::IDLE`] without a packet, a flow begins again.
    pub cut: Option<ByteSize>,
    /// The kernel's memory for each queue of an interface or UDP source.
    pub kernel_buffer: ByteSize,
    /// Memory for chunk buffers.
    pub memory: ByteSize,
    /// Chunk writes under way on each member at most.
    pub depth: u32,
    /// Buffered packets are written at least this often, and each member's cache is flushed at the same interval.
    pub flush_interval: Duration,
    /// How far members' fill may drift apart under adaptive placement; None for two segments.
    pub drift_max: Option<ByteSize>,
    /// Segments that a ring keeps trimmed ahead of its head; None for 4 on drives and 0 on files.
    pub trim_ahead: Option<u64>,
    /// A ring trims at this rate on each member at most.
    pub trim_rate: Rate,
    /// Members that take no writes at a time, in turn.
    pub rest: u32,
    /// Which NVM Sets of the drives recording and reading use.
    pub sets: Sets,
    /// How long a member rests at a time, or a part is written with separate sets; None for 5 s and 10 min.
    pub rest_turn: Option<Duration>,
    /// Processors: the first for the run loop, the others for the source's queues; empty for any.
    pub processors: Vec<usize>,
    /// Keys that are indexed during the recording. Recordings on simulated drives are not indexed.
    pub index: FlowIndexing,
    /// Bandwidth of the link that all simulated drives share.
    pub uplink: Option<Uplink>,
    /// A file of metrics that is renewed every five seconds, in the format that node-exporter's textfile collector reads; None for
    /// none. Recordings on simulated drives have none.
    pub metrics: Option<PathBuf>,
    /// What the process keeps of its rights once everything is open.
    pub privileges: Privileges,
}

/// What flow indexes find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowIndexing {
    /// None are made, and no room is kept for them.
    None,
    /// Hosts, protocols, VLANs and MPLS labels.
    Hosts,
    /// Flows and ports besides.
    #[default]
    Flows,
}

impl FlowIndexing {
    /// Memory for the keys of a segment that is so long: for no more than its index can hold.
    pub(super) fn keys(self, segment_bytes: u64) -> SegmentKeys {
        let pages = flow_index::bytes_max(segment_bytes) / PAGE_BYTES;
        let keys = SegmentKeys::new(flow_index::keys_max(pages as u32).min(KEYS_MAX));
        match self {
            Self::Hosts => keys.of_hosts(),
            Self::None | Self::Flows => keys,
        }
    }
}

impl fmt::Display for FlowIndexing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Hosts => "hosts",
            Self::Flows => "flows",
        })
    }
}

impl FromStr for FlowIndexing {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "hosts" => Ok(Self::Hosts),
            "flows" => Ok(Self::Flows),
            _ => Err(format!("'{text}' is no kind of flow index: give none, hosts or flows")),
        }
    }
}

/// Which NVM Sets of the drives recording and reading use. A namespace lies in sets, and a member is a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sets {
    /// All members are written, and readers meet the writing wherever they read.
    #[default]
    Shared,
    /// One member of each drive is written at a time, and readers meet nothing in the others. Drives have as many members each, which
    /// share no set.
    Separate,
}

/// What the process keeps of its rights once everything is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Privileges {
    /// All of them.
    #[default]
    Keep,
    /// Root becomes another user, and whoever runs the process can gain no privileges, dump no core, open no more files and make no
    /// TCP connections. This is for a process that only records: there is no way back, and threads that run already are not confined.
    GiveUp {
        /// Whom root becomes. None for the user who ran sudo, else `longtake` if that user exists, else `nobody`.
        user: Option<String>,
    },
}

/// An array that is made for a recording.
#[derive(Clone, Debug)]
pub struct NewArray {
    /// Member files.
    pub members: u16,
    /// Size of each. None for 2 GiB, or what the recording needs if it ends by time at a known rate and that is more, as far as
    /// there is space.
    pub member_size: Option<ByteSize>,
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
            member_size: None,
            mode: FILE_MODE_DEFAULT,
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
            strict: false,
            when_full: WhenFull::default(),
            placement: Placement::default(),
            new: NewArray::default(),
            filter: String::new(),
            snap_bytes: 0,
            slice: None,
            cut: None,
            kernel_buffer: ByteSize(64 << 20),
            memory: ByteSize(defaults::MEMORY_BYTES),
            depth: defaults::DEPTH,
            flush_interval: defaults::FLUSH_INTERVAL,
            drift_max: None,
            trim_ahead: None,
            trim_rate: defaults::TRIM_RATE,
            rest: 0,
            sets: Sets::default(),
            rest_turn: None,
            processors: Vec::new(),
            index: FlowIndexing::default(),
            uplink: None,
            metrics: None,
            privileges: Privileges::default(),
        }
    }
}

/// Chunk writes under way on each member, at most.
pub const DEPTH_MAX: u32 = 64;

impl Options {
    /// Whether a recording can go on with them at all.
    pub(super) fn check(&self) -> Result<()> {
        match self.depth {
            1..=DEPTH_MAX => Ok(()),
            depth => bail!("no member takes {depth} writes at a time: give 1 to {DEPTH_MAX}"),
        }
    }

    /// The recorder's settings for an array with segments of this length and so many chunk buffers.
    pub(super) fn config(
        &self,
        started: Timestamp,
        segment_bytes: u64,
        buffers: u32,
        on_files: bool,
        flow_indexes: bool,
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
            rest_turn: self.turn(),
            flow_indexes,
        }
    }

    /// How long a member rests at a time, or a part is written.
    pub(super) fn turn(&self) -> Duration {
        self.rest_turn.unwrap_or(match self.sets {
            Sets::Shared => defaults::REST_TURN,
            Sets::Separate => defaults::SETS_TURN,
        })
    }

    /// The parts that members are written in, if sets are separate.
    ///
    /// # Errors
    /// If members share sets, or rest besides.
    pub(super) fn parts(
        &self,
        places: impl FnOnce() -> Result<Vec<Place>, PartsError>,
    ) -> Result<Option<Vec<u16>>> {
        if self.sets == Sets::Shared {
            return Ok(None);
        }
        if self.rest > 0 {
            bail!(
                "--rest and --sets separate both say which members take no writes: leave one of them out"
            );
        }
        Ok(Some(parts(&places()?)?))
    }

    /// What parity takes, and the chunk buffers that are left. Each group in flight holds a buffer for each parity: about as many
    /// groups as there are writes under way on a member, and the one that is open; but no more than an eighth of the buffers.
    pub(super) fn parity_means<'b>(
        &self,
        parity: u8,
        buffers: &'b [BufferId],
    ) -> (ParityMeans, &'b [BufferId]) {
        let each = usize::from(parity);
        let groups = (self.depth as usize + 1).min(buffers.len() / 8);
        let (own, left) = buffers.split_at(each * groups.max(1));
        let wait = defaults::group_wait(self.flush_interval);
        (ParityMeans { buffers: own.to_vec(), wait }, left)
    }
}
