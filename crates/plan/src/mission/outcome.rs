//! What came of a mission: its account, what was lost first and why, how near to a loss it was over time, and what it cost the drives.

use std::fmt;

use base::units::counted;
use base::{Duration, Instant, NoBuffers, Rate};
use format::{Count, Ledger};
use recorder::Event;
use recorder::run::Recording;
use ssd::heat::{Thermal, Throttling};
use ssd::{Erases, Health, Start};

use super::array::EPOCH_NS;
use super::feed::Descriptors;
use super::readers::{Reads, Shared};
use super::{Mission, SAMPLES_MAX};

/// What came of a mission.
#[derive(Clone, Debug)]
pub struct MissionOutcome {
    /// The account of the take.
    pub ledger: Ledger,
    /// The first loss, or what tells that one is to come: when and why.
    pub first_loss: Option<FirstLoss>,
    /// The most chunk buffers that were in use, of how many.
    pub buffers_most: u32,
    /// Chunk buffers.
    pub buffers: u32,
    /// The time up to the end of which nothing is missing from the array but what was lost.
    pub retention: Duration,
    /// What each drive went through.
    pub drives: Vec<DriveOutcome>,
    /// How it went: [`SAMPLES_MAX`] samples at most, evenly over the time.
    pub samples: Vec<Sample>,
    /// Virtual time from the start to the last flush.
    pub time: Duration,
    /// How long data came: the mission's time, or until it was broken off.
    pub fed: Duration,
    /// What it cost to simulate, in events: those in its drives, and as many for each step of the recorder as take that long. The same
    /// on every machine.
    pub work: u64,
    /// Chunks recorded, the one that ends the take among them.
    pub chunks: u64,
    /// What came of the readers' reads.
    pub reads: Reads,
    /// Whether it went on to its end, and was not broken off.
    pub whole: bool,
}

impl MissionOutcome {
    /// Whether everything that was offered is stored, as far as it went.
    pub fn lossless(&self) -> bool {
        self.ledger.lost_unwanted().is_zero() && self.ledger.balances()
    }

    /// The lowest rate of all drives together in any sample from the second lap of the array on; None before a second lap.
    pub fn slowest_wrapped(&self) -> Option<Rate> {
        let begun_wrapped = self.samples.windows(2).filter(|pair| pair[0].fill >= 1.0);
        let rates = begun_wrapped.map(|pair| pair[1].rates.iter().sum::<f64>());
        rates.min_by(f64::total_cmp).map(Rate)
    }
}

/// What a drive went through.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveOutcome {
    /// What it is called.
    pub name: String,
    /// Bytes that were written to it.
    pub written_bytes: u64,
    /// Bytes that its media took for them.
    pub media_written_bytes: u64,
    /// How often its capacity was written over, the first time included.
    pub passes: f64,
    /// How much erasing held up writing; None if it erased nothing.
    pub erasing: Option<Erasing>,
    /// How warm it got; None if its heat isn't simulated.
    pub warmth: Option<Warmth>,
    /// Share of its life that this cost, 0 to 1, by the cycles that its flash stands.
    pub life_used: f64,
    /// Share of the bytes that the maker promises, where he does.
    pub rated_used: Option<f64>,
    /// Years that it lives if it goes on like this, by whichever of the two is shorter.
    pub life_years: f64,
}

/// How warm a drive got, and for how long it let less through because of that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warmth {
    /// The highest temperature, in degrees Celsius.
    pub highest_celsius: f64,
    /// Time throttled lightly.
    pub lightly: Duration,
    /// Time throttled heavily.
    pub heavily: Duration,
}

impl Warmth {
    fn of(thermal: Thermal) -> Self {
        let Thermal { highest_celsius, light, heavy, .. } = thermal;
        Self { highest_celsius, lightly: light.time, heavily: heavy.time }
    }
}

/// How much erasing held up writing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Erasing {
    /// Erases of single dies, as many of them as the simulated drive has.
    pub erases: u64,
    /// Share of the erases that a die began while it had nothing else to do, before its superblock was opened, 0 to 1.
    pub ahead: f64,
    /// Share of the flash's time in which programs waited for an erase of either kind, 0 to 1.
    pub wait: f64,
}

impl Erasing {
    /// Of a drive with so many dies, in this time.
    fn of(erases: Erases, dies: u32, time: Duration) -> Option<Self> {
        let time_ns = time.as_nanos() as f64 * f64::from(dies);
        (erases.blocks > 0).then(|| Self {
            erases: erases.blocks,
            ahead: erases.ahead as f64 / erases.blocks as f64,
            wait: erases.wait_ns as f64 / time_ns,
        })
    }
}

impl DriveOutcome {
    /// Media bytes for each byte of the host's; 1 before anything was written.
    pub fn amplification(&self) -> f64 {
        if self.written_bytes == 0 {
            return 1.0;
        }
        self.media_written_bytes as f64 / self.written_bytes as f64
    }
}

/// Figures of a short time of a mission.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Its end, since the start.
    pub at: Duration,
    /// Bytes written so far, over the array's capacity: from 1 on a ring is in overwrite.
    pub fill: f64,
    /// Each drive's rate of writing in it, in bytes a second.
    pub rates: Vec<f64>,
    /// Media bytes for each of the host's in it, drive by drive.
    pub amplification: Vec<f64>,
    /// The most chunk buffers in use.
    pub buffers_most: u32,
    /// Stored bytes lost for want of a buffer in it.
    pub lost_bytes: u64,
}

/// Why something is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// No buffer was free.
    NoBuffer,
    /// There was no place on the drives.
    Full,
    /// Nothing yet, but chunks waited without a pause up to the end of a mission that was to go on, so that buffers fill up sooner or
    /// later.
    Filling {
        /// Since when at least, since the start.
        since: Duration,
    },
}

/// The first loss.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstLoss {
    /// When, since the start.
    pub at: Duration,
    /// Why.
    pub cause: LossCause,
    /// Drives that had as many writes under way as they may: what everything waited for.
    pub behind: Vec<Behind>,
    /// Drives in all.
    pub drives: usize,
}

/// A drive that was behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Behind {
    /// Which, from 0.
    pub drive: usize,
    /// Its rate of writing since buffers had filled past half.
    pub rate: Rate,
    /// How often its capacity had been written over, the first time and what it held in the beginning included: from 1 on it was in
    /// overwrite.
    pub passes: f64,
    /// Media bytes for each of the host's in the sample under way.
    pub amplification: f64,
    /// Its temperature in degrees Celsius, if it was throttled because of that.
    pub throttled_celsius: Option<f64>,
}

impl fmt::Display for FirstLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {}: ", self.at)?;
        match self.cause {
            LossCause::Full => return f.write_str("the array was full"),
            LossCause::Filling { since } => {
                return write!(
                    f,
                    "buffers were still filling, as drives had not caught up since {since}"
                );
            }
            LossCause::NoBuffer => f.write_str("no buffer was free")?,
        }
        let Some(slowest) = self.behind.iter().min_by(|a, b| a.rate.0.total_cmp(&b.rate.0)) else {
            return Ok(());
        };
        let Behind { drive, rate, passes, amplification, throttled_celsius } = slowest;
        let behind = self.behind.len();
        let phase = if *passes >= 1.0 { "in overwrite" } else { "in its first pass" };
        write!(
            f,
            "; {behind} of {} {} behind, the slowest of them drive {drive} at {rate}, {phase} ({passes:.2} of its capacity \
             written), flash taking {amplification:.2} bytes for one",
            counted(self.drives as u64, "drive"),
            if behind == 1 { "was" } else { "were" },
        )?;
        throttled_celsius.map_or(Ok(()), |celsius| write!(f, ", throttled at {celsius:.0} °C"))
    }
}

/// Keeps the outcome while a mission runs.
#[derive(Debug)]
pub struct Book {
    interval: Duration,
    next: Instant,
    depth: u32,
    duration: Duration,
    /// Bytes that each drive can hold, and what it held in the beginning.
    data_bytes: Vec<u64>,
    held: Vec<f64>,
    rated: Vec<Option<u64>>,
    /// As of the last sample.
    written: Vec<u64>,
    media: Vec<(u64, u64)>,
    lost: u64,
    buffers_most: u32,
    /// When buffers last filled past half, and what was written by then.
    pressed: Option<(Instant, Vec<u64>)>,
    full: bool,
    /// From when on a mission that was to go on has to catch up once, if that can be told, and whether it has.
    catch_up_from: Option<Instant>,
    caught_up: bool,
    outcome: MissionOutcome,
}

/// A mission under way.
pub type Live<'a> = Recording<'a, Shared, NoBuffers, Descriptors>;

impl Book {
    /// Of a mission that is about to begin, with the bytes that each member can hold.
    pub fn new(mission: &Mission, data_bytes: &[u64]) -> Self {
        let count = mission.drives.len();
        let data_bytes = by_drive(data_bytes.iter().copied(), count);
        let interval = Duration::from_nanos((mission.duration.as_nanos() / SAMPLES_MAX).max(1));
        let held = |start: &Start| if *start == Start::Empty { 0.0 } else { 1.0 };
        Self {
            interval,
            next: Instant::START + interval,
            depth: mission.depth,
            duration: mission.duration,
            data_bytes,
            held: mission.drives.iter().map(|slot| held(&slot.start)).collect(),
            rated: mission.drives.iter().map(|slot| slot.spec.endurance.rated_bytes).collect(),
            written: vec![0; count],
            media: vec![(0, 0); count],
            lost: 0,
            buffers_most: 0,
            pressed: None,
            full: false,
            catch_up_from: catch_up_from(mission),
            caught_up: false,
            outcome: MissionOutcome {
                ledger: Ledger::default(),
                first_loss: None,
                buffers_most: 0,
                buffers: mission.buffers,
                retention: Duration::ZERO,
                drives: Vec::new(),
                samples: Vec::new(),
                time: Duration::ZERO,
                fed: mission.duration,
                work: 0,
                chunks: 0,
                reads: Reads::default(),
                whole: true,
            },
        }
    }

    /// When the next sample is due.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// The first loss so far.
    pub fn first_loss(&self) -> Option<&FirstLoss> {
        self.outcome.first_loss.as_ref()
    }

    /// Notes what the recorder tells.
    pub fn event(&mut self, event: &Event) {
        self.full |= matches!(event, Event::ArrayFull { .. });
    }

    /// It was broken off. What came until then is still written.
    pub fn broken_off(&mut self, now: Instant) {
        if self.outcome.whole && now.since(Instant::START) < self.duration {
            self.outcome.whole = false;
            self.outcome.fed = now.since(Instant::START);
        }
    }

    /// Looks at the recording after a step; returns a sample if one is due, or something was lost first.
    pub fn look(&mut self, recording: &mut Live<'_>) -> Option<Sample> {
        let held = recording.core().buffers_held();
        self.buffers_most = self.buffers_most.max(held);
        let fed = recording.now().since(Instant::START) <= self.duration;
        if fed && !self.caught_up && self.catch_up_from.is_some_and(|from| recording.now() >= from)
        {
            let under_way: u32 = recording.core().members().map(|m| m.under_way).sum();
            self.caught_up = held <= under_way;
        }
        if held <= self.outcome.buffers / 2 {
            self.pressed = None;
        } else if self.pressed.is_none() {
            self.pressed = Some((recording.now(), self.written(recording)));
        }
        let lost_first =
            self.outcome.first_loss.is_none() && (self.full || !recording.feed().lost().is_zero());
        if recording.now() < self.next && !lost_first {
            return None;
        }
        let sample = self.sample(recording, lost_first);
        self.outcome.buffers_most = self.outcome.buffers_most.max(sample.buffers_most);
        if !lost_first && self.outcome.samples.len() < SAMPLES_MAX as usize {
            self.outcome.samples.push(sample.clone());
        }
        Some(sample)
    }

    /// Bytes written to each drive.
    fn written(&self, recording: &Live<'_>) -> Vec<u64> {
        by_drive(recording.core().members().map(|m| m.written), self.data_bytes.len())
    }

    fn sample(&mut self, recording: &mut Live<'_>, lost_first: bool) -> Sample {
        let now = recording.now();
        let Count { packets, .. } = recording.feed().lost();
        let lost = recording.feed().bytes_of(packets);
        let begun = self.next.since(Instant::START).saturating_sub(self.interval);
        let seconds = now.since(Instant::START).saturating_sub(begun).as_secs_f64().max(1e-9);
        let written = self.written(recording);
        let rates: Vec<f64> = written
            .iter()
            .zip(&self.written)
            .map(|(is, was)| (is - was) as f64 / seconds)
            .collect();
        let media: Vec<(u64, u64)> =
            (0..written.len()).map(|drive| bytes(&recording.bank().bank().health(drive))).collect();
        let amplification: Vec<f64> = media
            .iter()
            .zip(&self.media)
            .map(|(is, was)| match is.0 - was.0 {
                0 => 1.0,
                host => (is.1 - was.1) as f64 / host as f64,
            })
            .collect();
        if lost_first {
            let behind = self.behind(recording, &written, &amplification);
            let cause = if self.full { LossCause::Full } else { LossCause::NoBuffer };
            let (at, drives) = (now.since(Instant::START), written.len());
            self.outcome.first_loss = Some(FirstLoss { at, cause, behind, drives });
        }
        let total: u64 = self.data_bytes.iter().sum();
        let sample = Sample {
            at: now.since(Instant::START),
            fill: written.iter().sum::<u64>() as f64 / total as f64,
            rates,
            amplification,
            buffers_most: self.buffers_most,
            lost_bytes: lost - self.lost,
        };
        if !lost_first {
            (self.written, self.media, self.lost) = (written, media, lost);
            self.outcome.buffers_most = self.outcome.buffers_most.max(self.buffers_most);
            self.buffers_most = recording.core().buffers_held();
            while self.next <= now {
                self.next += self.interval;
            }
        }
        sample
    }

    /// Drives that have as many writes under way as they may. Each has so many bytes written, and this amplification.
    fn behind(&self, recording: &Live<'_>, written: &[u64], amplification: &[f64]) -> Vec<Behind> {
        let now = recording.now();
        let members = recording.core().members().enumerate();
        members
            .filter(|(_, m)| m.under_way >= self.depth)
            .map(|(member, m)| (member % written.len(), m))
            .map(|(drive, m)| Behind {
                drive,
                rate: self.pressed.as_ref().map_or(Rate(m.rate), |(since, before)| {
                    Rate::of(written[drive] - before[drive], now.since(*since))
                }),
                passes: self.held[drive] + written[drive] as f64 / self.data_bytes[drive] as f64,
                amplification: amplification[drive],
                throttled_celsius: (recording.bank().bank().health(drive).thermal)
                    .filter(|thermal| thermal.throttling != Throttling::None)
                    .map(|thermal| thermal.celsius),
            })
            .collect()
    }

    /// Buffers that were still filling at the end of a mission that was to go on are as good as a loss.
    fn note_filling(&mut self) {
        let Some(from) = self.catch_up_from.filter(|_| !self.caught_up && self.outcome.whole)
        else {
            return;
        };
        if self.outcome.first_loss.is_none() {
            self.outcome.first_loss = Some(FirstLoss {
                at: self.duration,
                cause: LossCause::Filling { since: from.since(Instant::START) },
                behind: Vec::new(),
                drives: self.data_bytes.len(),
            });
        }
    }

    /// The outcome of a mission that is over and has cost so much work.
    pub fn close(mut self, recording: &mut Live<'_>, work: u64) -> MissionOutcome {
        let now = recording.now();
        self.note_filling();
        self.outcome.buffers_most = self.outcome.buffers_most.max(self.buffers_most);
        self.outcome.chunks = recording.feed().chunks() + 1;
        let core = recording.core();
        let bank = recording.bank().bank();
        let end_ns = EPOCH_NS + self.duration.as_nanos().min(now.as_nanos());
        let kept_from = core.reused_to_ns().max(EPOCH_NS);
        let years = now.as_nanos() as f64 / 1e9 / (365.0 * 86_400.0);
        let written = self.written(recording);
        let drives = written.iter().enumerate().map(|(drive, written)| {
            let health = bank.health(drive);
            let (written_bytes, media_written_bytes) = bytes(&health);
            let life_used = health.sets.iter().map(|set| set.life_used).fold(0.0, f64::max)
                - bank.spec(drive).endurance.used;
            let rated_used = self.rated[drive].map(|rated| written_bytes as f64 / rated as f64);
            DriveOutcome {
                name: bank.spec(drive).name.clone(),
                written_bytes,
                media_written_bytes,
                passes: *written as f64 / self.data_bytes[drive] as f64,
                erasing: Erasing::of(
                    health.erases,
                    bank.spec(drive).flash.dies(),
                    now.since(Instant::START),
                ),
                warmth: health.thermal.map(Warmth::of),
                life_used,
                rated_used,
                life_years: years / life_used.max(rated_used.unwrap_or(0.0)),
            }
        });
        let drives = drives.collect();
        MissionOutcome {
            ledger: *core.ledger(),
            retention: Duration::from_nanos(end_ns.saturating_sub(kept_from)),
            drives,
            time: now.since(Instant::START),
            work,
            reads: recording.bank().reads().clone(),
            ..self.outcome
        }
    }
}

/// Part of a mission that was to go on in which it has to catch up once.
const CATCH_UP: f64 = 0.2;

/// From when on a mission that was to go on has to catch up once: that part of it, or a period of its load if that is longer. None if
/// it is no such mission, or too short for that to tell anything.
fn catch_up_from(mission: &Mission) -> Option<Instant> {
    let length_s = mission.duration.as_secs_f64();
    let even = mission.load.windows(2).all(|pair| pair[0].rate == pair[1].rate);
    let period_s: f64 = mission.load.iter().map(|span| span.time.as_secs_f64()).sum();
    let part_s = (length_s * CATCH_UP).max(if even { 0.0 } else { period_s });
    let told = mission.endless && part_s <= length_s / 2.0;
    told.then(|| Instant::START + Duration::from_secs_f64(length_s - part_s))
}

/// Sums over the members on each drive: their first ones stand first, then their second ones, and so on.
fn by_drive(members: impl Iterator<Item = u64>, drives: usize) -> Vec<u64> {
    let mut sums = vec![0; drives];
    for (member, bytes) in members.enumerate() {
        sums[member % drives] += bytes;
    }
    sums
}

/// Bytes of the host's and of the media's.
fn bytes(health: &Health) -> (u64, u64) {
    let media = health.sets.iter().map(|set| set.media_written_bytes).sum();
    (health.written_bytes, media)
}
