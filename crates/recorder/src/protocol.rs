//! What the recorder's core is told and what it tells: configuration, inputs, outputs, events.

use std::fmt;
use std::sync::Arc;

use base::{BufferId, DeviceError, Duration, Timestamp};
use format::parity::Table;
use format::{ChunkRecord, ChunkSummary, Count, Ledger, Place};
use uuid::Uuid;

use crate::open::Live;
use crate::placement::Placement;

/// What happens when every segment has been written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The take stops.
    #[default]
    Stop,
    /// The oldest segments that are not protected are reused.
    Wrap,
}

/// A span of packet time, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Start.
    pub from: Timestamp,
    /// End.
    pub to: Timestamp,
}

impl TimeRange {
    /// From the beginning to the end of time.
    pub const ALL: Self = Self { from: Timestamp::MIN, to: Timestamp::MAX };

    /// Whether a segment holds any time of this span.
    pub(crate) fn touches(&self, live: &Live) -> bool {
        self.from.as_nanos() <= live.last_ns && self.to.as_nanos() >= live.first_ns
    }
}

/// How to record.
#[derive(Clone, Debug)]
pub struct Config {
    /// The new take's name.
    pub take: Uuid,
    /// When it starts.
    pub started: Timestamp,
    /// How chunks are spread.
    pub placement: Placement,
    /// What happens at the end of the array.
    pub when_full: WhenFull,
    /// Chunk writes under way on one member at most.
    pub depth: u32,
    /// Chunk buffers in all.
    pub buffers: u32,
    /// How far members' fill may drift apart in bytes under `Adaptive`, until more chunks wait than there are members or
    /// buffers are filled past half.
    pub drift_max: u64,
    /// A flush is sent this long after the first write that is not yet flushed.
    pub flush_interval: Duration,
    /// Segments kept trimmed ahead of the head in a ring; 0 for no trim.
    pub trim_ahead: u64,
    /// Least time between two trims of one member.
    pub trim_interval: Duration,
    /// Members that take no writes at a time, in turn, so that each can erase; 0 for none. They are woken when buffers fill past
    /// half.
    pub rest: u32,
    /// How long a member rests at a time.
    pub rest_turn: Duration,
    /// Whether each segment keeps room for a flow index ([`format::flow_index::reserve`]).
    pub flow_indexes: bool,
}

/// What recording on an array with parity takes beside the configuration.
#[derive(Clone, Debug, Default)]
pub struct ParityMeans {
    /// Buffers that nothing else uses, as long as the longest chunk. Each group holds as many as it has parities, from its first
    /// chunk until it is written: some groups should find theirs.
    pub buffers: Vec<BufferId>,
    /// How long a group waits for further chunks.
    pub wait: Duration,
}

/// What parity has come to in a take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParityProgress {
    /// Parity chunks that each group should have.
    pub parity: u8,
    /// Groups that were written with some.
    pub groups: u64,
    /// Bytes of parity chunks.
    pub bytes: u64,
    /// Chunks that were acknowledged with fewer parities than they should have, or none.
    pub chunks_short: u64,
}

/// A chunk that the source side has sealed.
#[derive(Clone, Debug)]
pub struct ReadyChunk {
    /// Its memory.
    pub buffer: BufferId,
    /// What is in it.
    pub summary: ChunkSummary,
    /// What its queue lost since its last chunk, and how the packets in this chunk were shortened. Entered in
    /// the ledger in front of this chunk.
    pub losses: Ledger,
}

/// A flow index of a full segment, or a part of one, that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowIndexPart {
    /// Zero-based index of the member.
    pub member: u16,
    /// The segment that it is about, and lies in.
    pub segment: u64,
    /// Sequence numbers of that segment's first and last chunk.
    pub sequences: (u64, u64),
    /// Offset on the drive in bytes.
    pub offset: u64,
    /// What is written there.
    pub bytes: Arc<[u8]>,
}

/// What the core is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// A chunk is ready.
    Chunk(ReadyChunk),
    /// A command is done.
    Done {
        /// The tag its output had.
        tag: u64,
        /// How it went.
        outcome: Result<(), DeviceError>,
    },
    /// The parity that [`Output::Seal`] asked for is made.
    Sealed {
        /// The group's.
        group: u64,
        /// Which parity of it.
        place: u8,
        /// The chunk's length in bytes.
        length: u32,
        /// Its body's checksum.
        body_crc: u32,
    },
    /// A flow index is ready. It is written unless its segment was reused meanwhile. Also taken after [`Event::Finished`].
    FlowIndex(FlowIndexPart),
    /// The ranges that a ring must not reuse, replacing all earlier ones.
    Protect(Vec<TimeRange>),
    /// From now on a ring reuses segments that hold packets of these spans only where it has no other: they are being read.
    Hold(Vec<TimeRange>),
    /// No more chunks will come.
    Stop,
    /// Time has passed.
    Tick,
}

/// The two pieces of an index. The tail is what readers go by; the front makes it whole pcapng.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPart {
    /// Its first page.
    Front,
    /// Its last pages. Asked for when all else in the segment, the front too, is flushed.
    Tail,
}

/// The parities that a chunk is taken into once its header is stamped, by their places: buffers in which so many bytes of
/// parity stand ([`format::parity::fold`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fold {
    /// The parities' buffers.
    pub parities: [Option<BufferId>; format::parity::PARITY_MAX as usize],
    /// Bytes of parity in them.
    pub filled: u32,
}

/// What the core wants done.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most outputs are chunks, and a box for each would cost more"
)]
pub enum Output {
    /// Stamp the record in front of the chunk in `buffer` and write it at `place`.
    WriteChunk {
        /// The chunk's memory.
        buffer: BufferId,
        /// Where it goes.
        place: Place,
        /// What its header says.
        record: ChunkRecord,
        /// Its group's parities.
        fold: Fold,
        /// Comes back in [`Input::Done`].
        tag: u64,
    },
    /// Write a part of a segment's index.
    WriteIndex {
        /// Where its section starts.
        place: Place,
        /// From there to the segment's end.
        section_bytes: u64,
        /// The segment's chunks.
        chunks: Arc<Vec<(Place, ChunkRecord)>>,
        /// Which part of it.
        part: IndexPart,
        /// Comes back in [`Input::Done`].
        tag: u64,
    },
    /// Write a flow index, or a part of one.
    WriteFlowIndex {
        /// What, and where.
        part: FlowIndexPart,
        /// Comes back in [`Input::Done`].
        tag: u64,
    },
    /// Make a parity chunk of what was folded into a buffer. Answer with [`Input::Sealed`].
    Seal {
        /// The group's.
        group: u64,
        /// The parity.
        buffer: BufferId,
        /// What it is of.
        table: Table,
    },
    /// Trim a segment.
    Trim {
        /// Zero-based index of the member.
        member: u16,
        /// Offset on the drive in bytes.
        offset: u64,
        /// How much.
        length: u64,
        /// Comes back in [`Input::Done`].
        tag: u64,
    },
    /// Flush a member.
    Flush {
        /// Zero-based index of the member.
        member: u16,
        /// Comes back in [`Input::Done`].
        tag: u64,
    },
    /// The buffer is free again.
    Release {
        /// The buffer.
        buffer: BufferId,
    },
    /// Everything is written: hand in the chunk that ends the take ([`ChunkSummary::end`]).
    WantEnd,
    /// Something to tell.
    Event(Event),
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A chunk is on its medium, and everything before it on that member: kill -9 can't lose it. In an array with parity so is all of its
    /// group: so many members may die as well.
    Acknowledged {
        /// Its number.
        sequence: u64,
        /// Its member.
        member: u16,
        /// What is in it.
        count: Count,
        /// Whether it is acknowledged as the take's last.
        end: bool,
    },
    /// All of a chunk's group is flushed, in an array with parity: a power cut can't lose it either.
    DurableChunk {
        /// Its number.
        sequence: u64,
        /// What is in it.
        count: Count,
    },
    /// A flush is done, in an array without parity: a power cut can't lose what it covers either.
    Durable {
        /// Zero-based index of the member.
        member: u16,
        /// What the flush covered.
        count: Count,
    },
    /// A member failed and gets no more chunks; the take goes on with the rest.
    MemberFailed {
        /// Zero-based index of the member.
        member: u16,
        /// The error that the drive reported.
        error: DeviceError,
        /// What was acknowledged on it in this take: what is at stake if it can't be read.
        held: Count,
        /// The same in chunks.
        held_chunks: u64,
        /// Whether parity makes up for it, and for those that failed before.
        spared: bool,
    },
    /// From now on groups get fewer parities, as too few members work, or have room, beside those that hold the group.
    ParityReduced {
        /// Parities that they get.
        parities: u8,
        /// Parities that they should get.
        of: u8,
    },
    /// A segment of a ring is being reused; what it held is gone.
    Reused {
        /// Zero-based index of the member.
        member: u16,
        /// Which segment.
        segment: u64,
        /// The time up to which its contents reached, ns since 1970.
        last_ns: u64,
    },
    /// A member can't trim after all; the ring goes on without.
    TrimFailed {
        /// Zero-based index of the member.
        member: u16,
        /// The error that the drive reported.
        error: DeviceError,
    },
    /// No segment is left that may be written. What is still offered is lost; the source should stop.
    ArrayFull {
        /// Whether protected ranges are what is in the way.
        protected: bool,
    },
    /// No member is left. What is still offered is lost; the source should stop.
    NoMemberLeft,
    /// The take is over and flushed; the core takes no more input but flow indexes.
    Finished,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acknowledged { sequence, member, count, .. } => {
                write!(f, "chunk {sequence} with {} packets is on member {member}", count.packets)
            }
            Self::Durable { member, count } => {
                write!(f, "{} packets more are durable on member {member}", count.packets)
            }
            Self::DurableChunk { sequence, count } => {
                write!(f, "chunk {sequence} with {} packets is durable", count.packets)
            }
            Self::MemberFailed { member, error, held, held_chunks, spared } => write!(
                f,
                "member {member} failed ({error}) and gets no more chunks; it holds {held_chunks} chunks of this take with {} packets, which {} if it can't be read",
                held.packets,
                if *spared { "parity makes up for" } else { "are a gap" }
            ),
            Self::ParityReduced { parities: 0, .. } => f.write_str(
                "recording goes on WITHOUT PARITY: too few members work, or have room, to put it on; what is recorded from now on is lost with the member it is on",
            ),
            Self::ParityReduced { parities, of } => write!(
                f,
                "recording goes on with {parities} parity chunk for each group instead of {of}: too few members work, or have room"
            ),
            Self::Reused { member, segment, .. } => {
                write!(f, "segment {segment} of member {member} is reused")
            }
            Self::TrimFailed { member, error } => {
                write!(f, "member {member} does not trim ({error}); the ring goes on without")
            }
            Self::ArrayFull { protected: false } => f.write_str(
                "the array is full: use --when-full wrap to reuse the oldest segments, or a larger array",
            ),
            Self::ArrayFull { protected: true } => f.write_str(
                "every segment that could be reused is protected: unprotect a range or add drives",
            ),
            Self::NoMemberLeft => f.write_str("every member has failed: nothing can be recorded"),
            Self::Finished => f.write_str("the take is complete"),
        }
    }
}

/// What a member has done in this take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemberProgress {
    /// Bytes given to it.
    pub written: u64,
    /// Bytes a second as its completions show it; 0 if not known yet.
    pub rate: f64,
    /// Whether it takes part.
    pub working: bool,
    /// Whether it is its turn to take no writes.
    pub resting: bool,
    /// Chunk writes under way on it.
    pub under_way: u32,
}
