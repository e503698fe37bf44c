//! The core moved by hand: a test hands it chunks and completions one at a time and sees what it asks for.

use base::{BufferId, DeviceError, DriveId, Duration, Instant, Timestamp};
use format::parity::Table;
use format::superblock::{Member, Protected};
use format::{ChunkRecord, ChunkSummary, Layout, Ledger, Place, Superblock};
use longtake_recorder::open::{Live, MemberImage, Segment};
use longtake_recorder::{
    ArrayImage, Config, Event, Input, Output, ParityMeans, Placement, ReadyChunk, Recorder,
    WhenFull,
};
use uuid::Uuid;

/// As long as a chunk of data may be beside its parity.
pub const LONG: u32 = 60 << 10;
pub const SEGMENT: u64 = 256 << 10;
/// Later than anything that a test waits for.
pub const LATE: Duration = Duration::from_secs(1000);

/// A chunk with one packet, or without any, as a source hands it to the core; its buffer holds nothing.
pub fn bare(buffer: BufferId, length: u32, packets: u32) -> ReadyChunk {
    let front = ChunkSummary {
        length,
        packets,
        packets_start: 600,
        packets_end: 700,
        ..ChunkSummary::EMPTY
    };
    let times = ChunkSummary { first_ns: 1, last_ns: 2, sealed_ns: 3, ..front };
    let summary = ChunkSummary { captured_bytes: 50, original_bytes: 50, ..times };
    ReadyChunk { buffer, summary, losses: Ledger::default() }
}

/// An array whose members hold these segments; those that are not named are empty.
pub fn image(parity: u8, segments: u64, held: &[&[Live]]) -> ArrayImage {
    let capacity_bytes = (2 << 20) + segments * SEGMENT;
    let mut layout = Layout::new(capacity_bytes, SEGMENT, 64 << 10).expect("it can be divided");
    layout.segments = segments;
    let members = (0u16..).zip(held).map(|(at, held)| {
        let mut segments: Vec<Segment> = held.iter().map(|live| Segment::Live(*live)).collect();
        segments.resize(layout.segments as usize, Segment::Empty);
        let (drive, unindexed) = (DriveId(at), Vec::new());
        MemberImage {
            drive,
            layout,
            segments,
            head: None,
            unindexed,
            trims: true,
            lost_segment: false,
            untimed: Vec::new(),
        }
    });
    let row = |_| Member { capacity_bytes, identity: String::new(), joined_ns: 0 };
    ArrayImage {
        uuid: Uuid::from_u128(1),
        superblock: Superblock {
            array: Uuid::from_u128(1),
            name: String::new(),
            member: 0,
            members: (0..held.len()).map(row).collect(),
            layout,
            created: Timestamp::MIN,
            generation: 1,
            protected: Vec::new(),
            parity,
        },
        members: members.collect(),
        next_sequence: 100_000,
        protected: Vec::new(),
        superblocks_differ: false,
        first_copies_bad: Vec::new(),
        remarks: Vec::new(),
        written: None,
    }
}

/// A range that a ring must not reuse.
pub fn protected(from: u64, to: u64) -> Protected {
    let [from, to] = [from, to].map(Timestamp::from_nanos);
    Protected { from, to, made: from, label: String::new() }
}

pub fn config() -> Config {
    Config {
        take: Uuid::from_u128(2),
        started: Timestamp::MIN,
        placement: Placement::Adaptive,
        when_full: WhenFull::Stop,
        depth: 4,
        buffers: 64,
        drift_max: 1 << 30,
        flush_interval: LATE,
        trim_ahead: 0,
        trim_interval: Duration::ZERO,
        rest: 0,
        rest_turn: LATE,
        flow_indexes: false,
    }
}

/// A command that was asked for and is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Chunk,
    Index,
    FlowIndex,
    Trim { offset: u64 },
    Flush,
}

#[derive(Clone, Debug)]
pub struct Command {
    pub tag: u64,
    pub member: u16,
    pub asked: Asked,
}

#[derive(Clone, Debug)]
pub struct Write {
    pub place: Place,
    pub record: ChunkRecord,
}

/// The core, and all that it has asked for so far.
pub struct Hand {
    pub core: Recorder,
    pub now: Instant,
    pub under_way: Vec<Command>,
    pub writes: Vec<Write>,
    /// Parities that wait to be made.
    pub seals: Vec<(u64, Table)>,
    pub events: Vec<Event>,
    pub released: Vec<BufferId>,
    pub wants_end: bool,
    next_buffer: u32,
}

impl Hand {
    pub fn new(config: Config, image: ArrayImage) -> Self {
        Self::with_groups(config, image, 8)
    }

    /// With buffers for the parities of so many groups.
    pub fn with_groups(config: Config, image: ArrayImage, groups: u32) -> Self {
        let parities = groups * u32::from(image.superblock.parity);
        let buffers = (1000..1000 + parities).map(BufferId).collect();
        let means = ParityMeans { buffers, wait: Duration::from_millis(2) };
        Self {
            core: Recorder::with_parity(config, image, means),
            now: Instant::START,
            under_way: Vec::new(),
            writes: Vec::new(),
            seals: Vec::new(),
            events: Vec::new(),
            released: Vec::new(),
            wants_end: false,
            next_buffer: 0,
        }
    }

    pub fn tell(&mut self, input: Input) {
        self.core.handle(self.now, input);
        while let Some(output) = self.core.poll_output() {
            let mut ask = |tag, member, asked| self.under_way.push(Command { tag, member, asked });
            match output {
                Output::WriteChunk { place, record, tag, .. } => {
                    ask(tag, place.member, Asked::Chunk);
                    self.writes.push(Write { place, record });
                }
                Output::WriteIndex { place, tag, .. } => ask(tag, place.member, Asked::Index),
                Output::WriteFlowIndex { part, tag } => ask(tag, part.member, Asked::FlowIndex),
                Output::Trim { member, tag, offset, .. } => {
                    ask(tag, member, Asked::Trim { offset })
                }
                Output::Flush { member, tag } => ask(tag, member, Asked::Flush),
                Output::Seal { group, table, .. } => self.seals.push((group, table)),
                Output::Release { buffer } => self.released.push(buffer),
                Output::WantEnd => self.wants_end = true,
                Output::Event(event) => self.events.push(event),
            }
        }
    }

    /// Hands over a chunk with packets of these times.
    pub fn chunk(&mut self, length: u32, (first_ns, last_ns): (u64, u64)) {
        let mut chunk = self.ready(length, 1);
        (chunk.summary.first_ns, chunk.summary.last_ns) = (first_ns, last_ns);
        self.tell(Input::Chunk(chunk));
    }

    pub fn ready(&mut self, length: u32, packets: u32) -> ReadyChunk {
        self.next_buffer += 1;
        bare(BufferId(self.next_buffer), length, packets)
    }

    /// Hands over the chunk that ends the take.
    pub fn end(&mut self) {
        let mut chunk = self.ready(4096, 0);
        chunk.summary.end = true;
        self.tell(Input::Chunk(chunk));
    }

    pub fn done(&mut self, tag: u64, outcome: Result<(), DeviceError>) {
        let at = self.under_way.iter().position(|c| c.tag == tag).expect("it is under way");
        self.under_way.remove(at);
        self.tell(Input::Done { tag, outcome });
    }

    /// The commands under way that a test is after.
    pub fn asked(&self, wanted: impl Fn(&Command) -> bool) -> Vec<u64> {
        self.under_way.iter().filter(|c| wanted(c)).map(|c| c.tag).collect()
    }

    /// All commands of a kind, and those that follow from them, are done.
    pub fn finish(&mut self, wanted: impl Fn(&Command) -> bool) {
        while let Some(&tag) = self.asked(&wanted).first() {
            self.done(tag, Ok(()));
        }
    }

    /// The first command that a test is after fails.
    pub fn fail(&mut self, wanted: impl Fn(&Command) -> bool) {
        let tag = self.asked(wanted)[0];
        self.done(tag, Err(DeviceError::Medium));
    }

    /// All parities that wait for it are made.
    pub fn seal(&mut self) {
        for (group, table) in std::mem::take(&mut self.seals) {
            let (place, length) = (table.part.place, table.longest() + 4096);
            self.tell(Input::Sealed { group, place, length, body_crc: 0 });
        }
    }

    /// Everything is done, and parity made, until nothing is left to do.
    pub fn settle(&mut self) {
        while !self.under_way.is_empty() || !self.seals.is_empty() {
            self.seal();
            self.finish(|_| true);
        }
    }

    /// So much time passes.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
        self.tell(Input::Tick);
    }

    /// The members that chunks of data, or parity, were written to, in order.
    pub fn members(&self, parity: bool) -> Vec<u16> {
        let wanted = |w: &&Write| w.record.parity.is_some() == parity;
        self.writes.iter().filter(wanted).map(|w| w.place.member).collect()
    }

    pub fn saw(&self, wanted: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| wanted(event)).count()
    }

    /// Numbers of the chunks that were said to be acknowledged, and durable.
    pub fn acknowledged(&self) -> usize {
        self.saw(|event| matches!(event, Event::Acknowledged { .. }))
    }

    pub fn durable(&self) -> usize {
        self.saw(|event| matches!(event, Event::DurableChunk { .. } | Event::Durable { .. }))
    }
}

/// A segment's contents, with an index.
pub fn live(first_sequence: u64, last_sequence: u64, (first_ns, last_ns): (u64, u64)) -> Live {
    Live { first_sequence, last_sequence, first_ns, last_ns, indexed: true, chunks: 1 }
}
