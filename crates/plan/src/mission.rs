//! A recording in virtual time: the recorder's own code, from the chunk that is ready to the write that is acknowledged, on simulated
//! drives that keep time and no data, fed with descriptors of chunks. Hours take seconds; nothing is drawn at random but by seed.

mod array;
mod feed;
mod outcome;
mod planned;
mod readers;

use std::fmt;
use std::ops::ControlFlow;

use base::{BankError, BufferId, Duration, Instant, NoBuffers, Rate};
use recorder::create::CreateError;
use recorder::run::{Recording, STEP_MAX};
use recorder::{Config, Placement, Recorder, WhenFull, defaults};
use ssd::{SimBank, Slot, SpecError, Uplink};
use uuid::Uuid;

pub use array::EPOCH_NS;
use feed::Descriptors;
pub use outcome::{
    Behind, DriveOutcome, Erasing, FirstLoss, LossCause, MissionOutcome, Sample, Warmth,
};
use outcome::{Book, Live};
use readers::Shared;
pub use readers::{Readers, Reads, SETTLING};

/// Samples that are kept of a mission at most.
pub const SAMPLES_MAX: u64 = 500;

/// Events in simulated drives that take as long as a step of the recorder, with one more for each drive: by measuring missions on 1 to 73
/// drives, flash and such as write in place.
const STEP_EVENTS: u64 = 24;

/// Steps after which a mission looks again whether it has cost what it may.
const STEPS_A_LOOK: u64 = 64;

/// Steps after which progress is reported between samples as well: they take a fraction of a second, and from one sample of a month to
/// the next it may be minutes.
const STEPS_TO_TELL: u64 = 1 << 14;

/// What is recorded, on what, and how.
#[derive(Clone, Debug)]
pub struct Mission {
    /// The drives, all showing as many namespaces, each of which is a member. What a drive holds in the beginning is, to a ring,
    /// older takes, and to a take that stops when full, nothing.
    pub drives: Vec<Slot>,
    /// What all drives share on their way to the processor.
    pub uplink: Option<Uplink>,
    /// The load, span after span, from the beginning again after the last.
    pub load: Vec<Span>,
    /// What chunks are made of.
    pub chunk: Chunk,
    /// Chunk buffers.
    pub buffers: u32,
    /// Segment length in bytes, or the default for each drive's size.
    pub segment_bytes: Option<u64>,
    /// How chunks are spread.
    pub placement: Placement,
    /// What happens at the end of the array.
    pub when_full: WhenFull,
    /// How long data comes.
    pub duration: Duration,
    /// Whether more would come if there was time to simulate it: that buffers which still fill in the end hold all of it says nothing.
    pub endless: bool,
    /// Chunk writes under way on a member at most.
    pub depth: u32,
    /// How far members' fill may drift apart, in bytes; None for two segments.
    pub drift_max: Option<u64>,
    /// Time from a write to the flush that covers it.
    pub flush_interval: Duration,
    /// Segments that a ring keeps trimmed ahead of its head.
    pub trim_ahead: u64,
    /// The rate at which a ring trims on each member at most.
    pub trim_rate: Rate,
    /// Members that rest at a time.
    pub rest: u32,
    /// Whether the namespaces of each drive are written in turn, while the others rest, so that readers have NVM Sets to
    /// themselves: the first namespaces of all drives, then the second ones. No other members rest then.
    pub separate: bool,
    /// How long a member rests at a time, or the namespaces in turn are written.
    pub rest_turn: Duration,
    /// Reads beside the recording.
    pub readers: Vec<Readers>,
    /// Whether drives are simulated in fewer, larger parts ([`ssd::Spec::coarsened`]): hours in seconds. Not for latencies of reads.
    pub coarse: bool,
    /// What the drives' and readers' random choices follow from.
    pub seed: u64,
    /// Work that it may cost ([`MissionOutcome::work`]): it is broken off there. None for as much as it takes.
    pub work_max: Option<u64>,
}

/// A load for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Length of the span.
    pub time: Duration,
    /// Bytes of chunks a second: what is stored, headers and padding included.
    pub rate: Rate,
}

/// What a full chunk is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its length in bytes, a multiple of 4 KiB.
    pub bytes: u32,
    /// Packets in it.
    pub packets: u32,
    /// Bytes of a packet.
    pub packet_bytes: u32,
}

/// Bytes of a packet's block beside its own, and of a chunk beside packets, at least: header and interface.
const BLOCK_BYTES: u32 = 32;
const HEAD_BYTES: u32 = 1024;

impl Chunk {
    /// A chunk of so many bytes full of packets of so many, as near as one can say without packing them.
    pub const fn of(bytes: u32, packet_bytes: u32) -> Self {
        let block = BLOCK_BYTES + packet_bytes.next_multiple_of(4);
        let packets = bytes.saturating_sub(HEAD_BYTES) / block;
        let packets = if packets == 0 { 1 } else { packets };
        Self { bytes, packets, packet_bytes }
    }
}

impl Default for Chunk {
    /// The longest of the format's defaults, with packets of 1500 bytes.
    fn default() -> Self {
        Self::of(format::layout::CHUNK_MAX_DEFAULT, 1500)
    }
}

/// How a mission goes, for whoever watches.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Since its start.
    pub at: Duration,
    /// Of how much.
    pub duration: Duration,
    /// The figures of the time since the last sample, if one is due or something was lost first.
    pub sample: Option<&'a Sample>,
    /// Chunk buffers.
    pub buffers: u32,
    /// The first loss, if there was one.
    pub first_loss: Option<&'a FirstLoss>,
    /// Which draw of what happens by chance it is, from 0, and of how many.
    pub draw: (u64, u64),
}

/// Why a mission can't be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissionError {
    /// A drive can't be simulated.
    Spec(SpecError),
    /// Drives can't be made an array.
    Array(CreateError),
    /// The simulated bank failed.
    Bank(BankError),
    /// What is asked makes no sense: what, and what would.
    Nonsense(String),
}

impl fmt::Display for MissionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(error) => error.fmt(f),
            Self::Array(error) => error.fmt(f),
            Self::Bank(error) => error.fmt(f),
            Self::Nonsense(what) => write!(f, "the mission is not valid: {what}"),
        }
    }
}

impl std::error::Error for MissionError {}

impl Mission {
    /// A mission of this length at one rate of stored bytes: a ring, and for the rest what `longtake record` does by default.
    pub fn new(drives: Vec<Slot>, rate: Rate, duration: Duration) -> Self {
        let chunk = Chunk::default();
        Self {
            drives,
            uplink: None,
            load: vec![Span { time: Duration::from_secs(24 * 3600), rate }],
            chunk,
            buffers: (defaults::MEMORY_BYTES / u64::from(chunk.bytes)) as u32,
            segment_bytes: None,
            placement: Placement::Adaptive,
            when_full: WhenFull::Wrap,
            duration,
            endless: false,
            depth: defaults::DEPTH,
            drift_max: None,
            flush_interval: defaults::FLUSH_INTERVAL,
            trim_ahead: defaults::TRIM_AHEAD,
            trim_rate: defaults::TRIM_RATE,
            rest: 0,
            separate: false,
            rest_turn: defaults::REST_TURN,
            readers: Vec::new(),
            coarse: true,
            seed: 1,
            work_max: None,
        }
    }

    /// Runs it to its end, or until `watch` breaks it off, or until it has cost `work_max`. `watch` is told [`SAMPLES_MAX`] times, and at
    /// the first loss.
    ///
    /// # Errors
    /// [`MissionError`] if it can't be run.
    pub fn run(
        &self,
        mut watch: impl FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<MissionOutcome, MissionError> {
        self.record(&mut watch)
    }

    fn record(
        &self,
        watch: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<MissionOutcome, MissionError> {
        self.check()?;
        let slots = self.slots();
        let bank = SimBank::new(&slots, self.uplink).map_err(MissionError::Spec)?;
        let found = array::image(self, &bank).map_err(MissionError::Array)?;
        let mut bank = Shared::new(bank, self.namespaces(), &self.readers, self.seed);
        let layout = found.superblock.layout;
        let chunk_min = found.members.iter().map(|m| m.layout.chunk_min).max().unwrap_or(0);
        let data_bytes: Vec<u64> = found.members.iter().map(|m| m.layout.data_bytes()).collect();
        let members: Vec<_> = found.members.iter().map(|m| m.drive).collect();
        let feed = Descriptors::new(self, chunk_min);
        let memory = NoBuffers { size: layout.chunk_max.max(1 << 20) as usize };
        let metadata = defaults::metadata_buffers(members.len()) as u32;
        let metadata = (0..metadata).map(|n| BufferId(self.buffers + n)).collect();
        let mut core = Recorder::new(self.config(found.superblock.layout.segment_bytes), found);
        if self.separate {
            core = core.with_parts(array::parts(self));
        }
        let mut book = Book::new(self, &data_bytes);
        let mut recording =
            Recording::new(core, &mut bank, &memory, feed, members, Vec::new(), metadata);
        let mut events = Vec::new();
        let step_events = STEP_EVENTS + self.drives.len() as u64;
        let work =
            |recording: &Live<'_>, steps| recording.bank().bank().events() + steps * step_events;
        let mut steps = 0;
        loop {
            steps += 1;
            let until = (recording.now() + STEP_MAX).min(book.next());
            let over = recording.step(until, &mut events).map_err(MissionError::Bank)?;
            events.iter().for_each(|event| book.event(event));
            events.clear();
            if recording.core().refusing() {
                recording.feed().stop();
            }
            let sample = book.look(&mut recording);
            if sample.is_some() || steps % STEPS_TO_TELL == 0 {
                let told = Progress {
                    at: recording.now().since(Instant::START),
                    duration: self.duration,
                    sample: sample.as_ref(),
                    buffers: self.buffers,
                    first_loss: book.first_loss(),
                    draw: (0, 1),
                };
                if watch(told).is_break() {
                    book.broken_off(recording.now());
                    recording.feed().stop();
                }
            }
            let spent = |max| steps % STEPS_A_LOOK == 0 && work(&recording, steps) >= max;
            if self.work_max.is_some_and(spent) {
                book.broken_off(recording.now());
                recording.feed().stop();
            }
            if over {
                let work = work(&recording, steps);
                return Ok(book.close(&mut recording, work));
            }
        }
    }

    /// What the recorder is told.
    fn config(&self, segment_bytes: u64) -> Config {
        Config {
            flow_indexes: false,
            take: Uuid::from_u128(u128::from(self.seed)),
            started: array::time(Instant::START),
            placement: self.placement,
            when_full: self.when_full,
            depth: self.depth,
            buffers: self.buffers,
            drift_max: self.drift_max.unwrap_or(defaults::drift_max(segment_bytes)),
            flush_interval: self.flush_interval,
            trim_ahead: self.trim_ahead,
            trim_interval: self.trim_rate.time_for(segment_bytes),
            rest: self.rest,
            rest_turn: self.rest_turn,
        }
    }

    /// The mean rate of the load, in bytes of chunks a second.
    pub fn mean_rate(&self) -> Rate {
        let time: f64 = self.load.iter().map(|span| span.time.as_secs_f64()).sum();
        let bytes: f64 = self.load.iter().map(|span| span.time.as_secs_f64() * span.rate.0).sum();
        Rate(bytes / time)
    }

    /// Namespaces that each drive shows.
    fn namespaces(&self) -> usize {
        self.drives.first().map_or(0, |slot| slot.namespaces.len())
    }

    /// The drives as they are simulated.
    fn slots(&self) -> Vec<Slot> {
        let slot = |(number, slot): (usize, &Slot)| {
            let mut slot = slot.clone();
            if self.coarse {
                slot.spec = slot.spec.coarsened();
            }
            slot.seed = slot.seed.wrapping_add(self.seed).wrapping_add(number as u64);
            slot
        };
        self.drives.iter().enumerate().map(slot).collect()
    }

    fn check(&self) -> Result<(), MissionError> {
        let nonsense = |what: &str| Err(MissionError::Nonsense(what.to_owned()));
        let each = self.namespaces();
        if each == 0 || self.drives.iter().any(|slot| slot.namespaces.len() != each) {
            return nonsense(
                "there must be drives, each showing as many namespaces as the others to be recorded on",
            );
        }
        let time: f64 = self.load.iter().map(|span| span.time.as_secs_f64()).sum();
        let rates = || self.load.iter().map(|span| span.rate.0);
        if time <= 0.0 || rates().any(|rate| !rate.is_finite() || rate < 0.0) {
            return nonsense("the load must last, at rates from 0 on");
        }
        let Chunk { bytes, packets, packet_bytes } = self.chunk;
        let block = u64::from(BLOCK_BYTES) + u64::from(packet_bytes);
        if packets == 0
            || !u64::from(bytes).is_multiple_of(format::PAGE_BYTES)
            || u64::from(packets) * block > u64::from(bytes)
        {
            return nonsense("a chunk has a multiple of 4096 bytes, and packets that fit into it");
        }
        if self.buffers < 2 || self.depth == 0 {
            return nonsense("there must be two chunk buffers, and a write at a time, at least");
        }
        if self.separate && (each == 1 || self.rest > 0) {
            return nonsense(
                "drives that are written a namespace at a time show several, and no other members rest",
            );
        }
        if self.readers.iter().any(|readers| !readers.sound(self.drives.len())) {
            return nonsense("reads have a multiple of 4096 bytes, a rate above 0, and a drive");
        }
        Ok(())
    }
}
