//! What a seed chooses: the drives, the array on them, how it is recorded on, what goes wrong and when, who reads.

use base::{DeviceError, Duration, Instant, Random, Rate};
use format::layout::{DATA_OFFSET, SUPERBLOCK_BYTES};
use format::parity::OVERHEAD_BYTES;
use recorder::{Placement, WhenFull};

use crate::adversary::{Drive, Pace, Trick};
use crate::fault::{Applied, Fault, Kind, What};
use crate::media::Trimmed;

mod wanted;

pub use wanted::{Faults, Wanted};

/// Longest chunk in bytes: the least that the format allows.
pub const CHUNK_MAX: u32 = format::layout::CHUNK_MAX_LEAST;

/// How a recording ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The source stops and the take is finished.
    Stop,
    /// kill -9: of what is under way, anything has happened; what was answered stays.
    Kill,
    /// The power fails: also what was not flushed may be gone, on drives with a volatile cache.
    PowerCut,
}

/// What happens to a drive between two recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accident {
    /// It comes back in the state it had at some moment of the recording before.
    Stale,
    /// A part of it rots: shares of its data, in 1/256.
    Rot(u8, u8),
    /// It is not there for the next recording.
    Absent,
    /// A segment of it changes places with the one that lies there on the next drive: which, in 1/256 of those that both have.
    Swapped(u8),
}

/// A change of the superblocks between two recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// What it is for.
    pub purpose: Purpose,
    /// The answers after which it is cut short, and whether the power fails then; None if it is whole.
    pub cut: Option<(u32, bool)>,
}

/// What a change of the superblocks is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A span is protected, in shares of all time so far, of 1/256; None unprotects.
    Protect(Option<(u8, u8)>),
    /// A drive takes a lost member's place. Whether the other members are told at once.
    Join(u16, bool),
}

/// Somebody who reads while recording goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Viewer {
    /// When, after the recording's start.
    pub at: Duration,
    /// The range of time, in shares of all time so far, of 1/256.
    pub range: (u8, u8),
    /// Whether it takes whole chunks at once where it can.
    pub whole: bool,
    /// Whether it looks again until no gap is left that chunks under way may fill.
    pub patient: bool,
    /// How fast it may read: a slow one is overtaken by a ring.
    pub limit: Option<Rate>,
}

/// One recording.
#[derive(Clone, Debug)]
pub struct Round {
    /// When its source stops, or it is cut short.
    pub length: Duration,
    /// How it ends.
    pub ending: Ending,
    /// A crash comes so many steps after the time is over.
    pub steps_more: u32,
    /// What goes wrong; times count from the recording's start.
    pub faults: Vec<Fault>,
    /// When the protected range changes, and to which shares of all time so far, of 1/256; None unprotects.
    pub protections: Vec<(Duration, Option<(u8, u8)>)>,
    /// Who reads meanwhile.
    pub viewers: Vec<Viewer>,
    /// When the drive's state is remembered that it may come back in: drive and time.
    pub remember: Option<(u16, Duration)>,
    /// What happens to which drive before the next recording.
    pub accident: Option<(u16, Accident)>,
    /// How superblocks are changed before the next recording, one change after another.
    pub changes: Vec<Change>,
    /// Whether the media are also read with drives that misread, in the end.
    pub misread: bool,
    /// How much older its packets are than its chunks, as those of a capture file are.
    pub older: Duration,
}

/// Everything that a seed chooses.
#[derive(Clone, Debug)]
pub struct Case {
    /// The seed.
    pub seed: u64,
    /// The drives.
    pub drives: Vec<Drive>,
    /// Length of a segment in bytes.
    pub segment_bytes: u64,
    /// How chunks are spread.
    pub placement: Placement,
    /// What happens at the end of the array.
    pub when_full: WhenFull,
    /// Chunk writes under way on one member at most.
    pub depth: u32,
    /// Chunk buffers.
    pub buffers: u32,
    /// Buffers for indexes and superblocks.
    pub metadata: u32,
    /// How far members' fill may drift apart in bytes.
    pub drift_max: u64,
    /// Longest time without a flush.
    pub flush_interval: Duration,
    /// Segments that are trimmed ahead.
    pub trim_ahead: u64,
    /// Least time between two trims.
    pub trim_interval: Duration,
    /// Members that take no writes at a time, so that they can erase.
    pub rest: u32,
    /// Parts of the array that are written in turn, instead of members that rest; 0 for none.
    pub parts: u16,
    /// How long each of them rests.
    pub rest_turn: Duration,
    /// Queues of the source.
    pub queues: u16,
    /// Mean time between two chunks of a queue.
    pub interval: Duration,
    /// Longest chunk that the source makes, in pages.
    pub pages_max: u64,
    /// Chunks that come at once, now and then.
    pub burst: u64,
    /// Parity chunks for each group.
    pub parity: u8,
    /// Groups that find buffers for their parities at a time.
    pub groups: u32,
    /// How long a group waits for further chunks.
    pub group_wait: Duration,
    /// Whether recordings make flow indexes, and keep room for them in each segment.
    pub flow_indexes: bool,
    /// The recordings, one after another.
    pub rounds: Vec<Round>,
    /// A lie that the bank tells, for the proof of the prover.
    pub trick: Option<Trick>,
}

impl Case {
    /// How much older than its chunks the oldest packets are.
    pub fn oldest(&self) -> Duration {
        self.rounds.iter().map(|round| round.older).max().unwrap_or(Duration::ZERO)
    }

    /// The longest chunk that holds packets.
    pub const fn data_chunk_max(&self) -> u32 {
        CHUNK_MAX - if self.parity > 0 { OVERHEAD_BYTES } else { 0 }
    }

    /// Buffers that parity takes.
    pub fn parity_buffers(&self) -> u32 {
        self.groups * u32::from(self.parity)
    }

    /// What this seed chooses.
    pub fn of(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        let members = 1 + random.below(2) + random.below(3) * random.below(2);
        let segment_bytes = [4, 4, 5, 8][random.below(4) as usize] * u64::from(CHUNK_MAX);
        let volatile = !random.one_in(4);
        let hasty = random.one_in(3);
        let mut drives: Vec<Drive> =
            (0..members).map(|_| drive(random, segment_bytes, volatile)).collect();
        // By numbers of its own, so that an array without parity is what it would be if there were none.
        let other = &mut Random::new(seed ^ 0x9A41_7EAD);
        let parity = [0, 0, 0, 1, 1, 2][other.below(6) as usize];
        while parity > 0 && (drives.len() <= usize::from(parity) || other.one_in(2)) {
            drives.push(drive(other, segment_bytes, volatile));
        }
        let interval_us = if hasty { 20 + random.below(150) } else { 100 + random.below(2000) };
        let protects = random.one_in(2);
        let faulty = !random.one_in(4);
        let reads = random.one_in(4);
        let round =
            |random: &mut Random| round(random, &drives, interval_us, (protects, faulty, reads));
        let mut rounds: Vec<Round> = (0..1 + random.below(3)).map(|_| round(random)).collect();
        let flush_us = 1 << (4 + random.below(14));
        let groups = 1 + other.below(4) as u32;
        let group_wait = Duration::from_micros(1 + other.below(4000));
        if other.one_in(6) {
            for round in &mut rounds {
                round.older = Duration::from_micros(other.below(2) << other.below(32));
            }
        }
        let changes = &mut Random::new(seed ^ 0x5B10_C5ED);
        for round in &mut rounds {
            while changes.one_in(3) {
                round.changes.push(change(changes, drives.len() as u64));
            }
        }
        Self {
            seed,
            segment_bytes,
            placement: if random.one_in(4) { Placement::Stripe } else { Placement::Adaptive },
            when_full: if random.one_in(4) { WhenFull::Stop } else { WhenFull::Wrap },
            depth: 1 + random.below(6) as u32,
            buffers: 4 + random.below(14) as u32,
            metadata: 1 + random.below(2 * members) as u32,
            drift_max: random.below(6) * 64 * 1024,
            flush_interval: Duration::from_micros(500 + random.below(flush_us)),
            trim_ahead: random.below(4),
            trim_interval: Duration::from_micros(random.below(3) * random.below(5000)),
            rest: if random.one_in(4) { random.below(members) as u32 } else { 0 },
            parts: parts(seed, members),
            rest_turn: Duration::from_micros(200 + random.below(20_000)),
            queues: 1 + random.below(3) as u16,
            interval: Duration::from_micros(interval_us),
            pages_max: [2, 4, 6, 15][random.below(4) as usize],
            burst: if random.one_in(3) { 2 + random.below(10) } else { 1 },
            rounds,
            trick: None,
            parity,
            groups,
            group_wait,
            flow_indexes: Random::new(seed ^ 0xF10A_1DE5).one_in(2),
            drives,
        }
    }
}

/// Parts of the array that are written in turn, by numbers of their own; 0 for none.
fn parts(seed: u64, members: u64) -> u16 {
    let mut random = Random::new(seed ^ 0x9A27_5E75);
    if random.one_in(6) { 1 + random.below(members) as u16 } else { 0 }
}

fn drive(random: &mut Random, segment_bytes: u64, volatile: bool) -> Drive {
    let us = 1 << random.below(11);
    let segments = 2 + random.below(3);
    Drive {
        // What a drive has beyond its segments stays unused.
        capacity_bytes: DATA_OFFSET
            + segments * segment_bytes
            + SUPERBLOCK_BYTES
            + random.below(2) * 4096 * random.below(8),
        block_bytes: if random.one_in(2) { 512 } else { 4096 },
        depth_max: 2 + random.below(20) as u32,
        trimmed: [Some(Trimmed::Zeros), Some(Trimmed::Junk), Some(Trimmed::Old), None]
            [random.below(4) as usize],
        volatile: volatile && !random.one_in(6),
        pace: match random.below(3) {
            0 => Pace::Even(us),
            1 => Pace::Spread(us * 2),
            _ => Pace::Tailed {
                us,
                one_in: 8 << random.below(5),
                worst_us: 1000 << random.below(11),
            },
        },
        kib_ns: 20 << random.below(9),
        flush_us: if random.one_in(12) { 3_000_000 } else { 10 << random.below(12) },
    }
}

fn round(
    random: &mut Random,
    drives: &[Drive],
    interval_us: u64,
    (protects, faulty, reads): (bool, bool, bool),
) -> Round {
    let chunks = if random.one_in(6) { random.below(4) } else { 10 + random.below(90) };
    let length_us = chunks * interval_us;
    let some = |random: &mut Random| Duration::from_micros(random.below(length_us + 1));
    let any_drive = |random: &mut Random| random.below(drives.len() as u64) as u16;
    let shares = |random: &mut Random| {
        let (one, other) = (random.bits() as u8, random.bits() as u8);
        (one.min(other), one.max(other))
    };
    let mut faults = Vec::new();
    while faulty && faults.len() < 4 && random.one_in(2) {
        let drive = any_drive(random);
        faults.push(fault(random, drive, &drives[usize::from(drive)], length_us));
    }
    let mut protections = Vec::new();
    while protects && protections.len() < 4 && !random.one_in(3) {
        let range = (!random.one_in(4)).then(|| shares(random));
        protections.push((some(random), range));
    }
    protections.sort_by_key(|&(at, _)| at);
    let viewer = |random: &mut Random| Viewer {
        at: some(random),
        range: if random.one_in(2) { (0, 255) } else { shares(random) },
        whole: random.one_in(2),
        patient: random.one_in(3),
        limit: random.one_in(2).then(|| Rate(1e6 * (1 << random.below(10)) as f64)),
    };
    let mut viewers: Vec<Viewer> =
        (0..if reads { random.below(3) } else { 0 }).map(|_| viewer(random)).collect();
    viewers.sort_by_key(|viewer| viewer.at);
    let accident = if faulty { accident(random, drives.len() as u64) } else { None };
    let remember = match accident {
        Some((drive, Accident::Stale)) => Some((drive, some(random))),
        _ => None,
    };
    Round {
        length: Duration::from_micros(length_us),
        ending: match random.below(5) {
            0 => Ending::Stop,
            1 | 2 => Ending::Kill,
            _ => Ending::PowerCut,
        },
        steps_more: random.below(16) as u32,
        faults,
        protections,
        viewers,
        remember,
        accident,
        changes: Vec::new(),
        misread: random.one_in(10),
        older: Duration::ZERO,
    }
}

/// What happens to a drive between two recordings: mostly nothing.
fn accident(random: &mut Random, drives: u64) -> Option<(u16, Accident)> {
    let accident = match random.below(13) {
        0 => Accident::Stale,
        1 => Accident::Rot(random.bits() as u8, random.below(20) as u8),
        2 => Accident::Absent,
        3 => Accident::Swapped(random.bits() as u8),
        _ => return None,
    };
    Some((random.below(drives) as u16, accident))
}

fn change(random: &mut Random, drives: u64) -> Change {
    let purpose = if random.one_in(2) {
        let (one, other) = (random.bits() as u8, random.bits() as u8);
        Purpose::Protect((!random.one_in(4)).then(|| (one.min(other), one.max(other))))
    } else {
        Purpose::Join(random.below(drives) as u16, random.one_in(2))
    };
    let cut = (!random.one_in(3)).then(|| (random.below(5 * drives + 5) as u32, random.one_in(2)));
    Change { purpose, cut }
}

fn fault(random: &mut Random, number: u16, drive: &Drive, length_us: u64) -> Fault {
    let from = random.below(length_us + 1);
    let forever = Instant::from_nanos(u64::MAX);
    let until = |us: u64| Instant::START + Duration::from_micros(from + us);
    let error = [DeviceError::Medium, DeviceError::Os(5), DeviceError::Medium];
    let (to, what) = match random.below(10) {
        0 => (forever, What::Dies),
        1 => (until(random.below(length_us + 1)), What::Dies),
        2 | 3 => (until(1 << random.below(22)), What::Stalls),
        4 => (until(length_us), What::Slows(2 + random.below(40))),
        5 if random.one_in(3) => (forever, What::Fills),
        6 if random.one_in(2) => (forever, What::LosesWrites { left: 1 + random.below(2) as u32 }),
        kind => {
            let kind = match kind {
                8 => Kind::Flush,
                9 if random.one_in(2) => Kind::Trim,
                9 => Kind::Read,
                _ => Kind::Write,
            };
            let mut error = error[random.below(3) as usize].clone();
            let mut applied =
                [Applied::Nothing, Applied::Part, Applied::All][random.below(3) as usize];
            if kind == Kind::Write && random.one_in(3) {
                error = DeviceError::Short { moved: 512 };
                applied = Applied::Part;
            }
            let once = random.one_in(2);
            let start = random.below(drive.capacity_bytes);
            let (from, to) = match once {
                true => (0, drive.capacity_bytes),
                false => (start, start + random.below(drive.capacity_bytes / 2)),
            };
            let left = if once { 1 } else { u32::MAX };
            (forever, What::Fails { kind, from, to, error, applied, left })
        }
    };
    Fault { drive: number, from: Instant::START + Duration::from_micros(from), to, what }
}
