//! Made-up packets at a chosen rate, each checkable afterwards: which one it is, and every byte of it.
//!
//! Open loop: each packet has an intended time, which is its timestamp, and a slow sink doesn't slow the
//! source down. If the generator itself falls behind, it says so, because then the rate was not offered.

mod checker;
mod frame;
mod ranges;

use std::fmt;
use std::thread;
use std::time::Instant;

use base::{Duration, Rate, Timestamp};
use format::{Interface, LinkType, Packet};

pub use checker::{Checker, Queue, Wrong};
pub use frame::FRAME_BYTES_MIN;
pub use ranges::Ranges;

use frame::{Head, Table};

use crate::clock;
use crate::readable::TICK;
use crate::sink::{Ended, Sink};

/// The longest frame: what an IPv4 length field and an Ethernet header allow, rounded down.
pub const FRAME_BYTES_MAX: u16 = 65_535;

/// The most queues.
pub const QUEUES_MAX: u16 = 256;

/// A source that lags its schedule by more than this has not offered the rate it was asked for.
pub const LAG_MAX: Duration = Duration::from_millis(50);

/// Frame lengths of the "simple IMIX" in the order they are sent: 7 x 64, 4 x 594, 1 x 1518 bytes on the
/// wire, here without the check sequence of 4 bytes, so that they can be replayed onto an interface.
const IMIX: [u16; 12] = [60, 590, 60, 60, 590, 60, 1514, 60, 590, 60, 590, 60];

/// Packets between looks at the clock.
const BATCH: u32 = 64;

/// The least that a sleep is worth: shorter gaps become bursts, with the intended times on each packet.
const NAP_MIN: Duration = Duration::from_micros(100);

/// How fast to generate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Bytes of packet data a second, over all queues together.
    Rate(Rate),
    /// As fast as the sink takes them, waiting for it.
    Max,
}

/// How long frames are, without check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All the same, in bytes: [`FRAME_BYTES_MIN`] to [`FRAME_BYTES_MAX`].
    Fixed(u16),
    /// 7 of 60, 4 of 590 and 1 of 1514 bytes: 64, 594 and 1518 on the wire.
    Imix,
}

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How fast.
    pub pace: Pace,
    /// How long frames are.
    pub sizes: Sizes,
    /// Makes the pattern.
    pub seed: u64,
    /// Sources that run side by side, each with its share of the rate and its own sequence numbers;
    /// 1 to [`QUEUES_MAX`].
    pub queues: u16,
}

impl Default for Options {
    /// As fast as possible, 1500 bytes, seed 1, one queue.
    fn default() -> Self {
        Self { pace: Pace::Max, sizes: Sizes::Fixed(1500), seed: 1, queues: 1 }
    }
}

impl Sizes {
    /// The length of the frame with that sequence number, in bytes.
    pub fn of(self, sequence: u64) -> u16 {
        match self {
            Self::Fixed(size) => size,
            Self::Imix => IMIX[(sequence % IMIX.len() as u64) as usize],
        }
    }

    /// The longest frame, in bytes.
    fn max(self) -> u16 {
        match self {
            Self::Fixed(size) => size,
            Self::Imix => 1514,
        }
    }
}

/// One queue of a synthetic source, to be run by a thread of its own.
pub struct Synthetic {
    options: Options,
    queue: u16,
    table: Table,
    /// One for each place in the cycle of sizes.
    cycle: Vec<(u16, Head)>,
}

/// What one queue has generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyntheticSummary {
    /// Packets that the sink was given, which is also the next sequence number.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How far the generator was behind its schedule at worst. Zero without a rate.
    pub lag_max: Duration,
}

impl SyntheticSummary {
    /// Whether the generator was the limit: the rate was not offered evenly, so a result obtained with it
    /// says less about the recorder than it seems to.
    pub fn harness_limited(&self) -> bool {
        self.lag_max > LAG_MAX
    }
}

impl fmt::Display for SyntheticSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets, {}", self.packets, base::ByteSize(self.bytes))?;
        if self.harness_limited() {
            write!(
                f,
                "; the generator itself fell behind its schedule by up to {}: this machine can't \
                 generate at that rate while it records, so lower the rate or free a core",
                self.lag_max
            )?;
        }
        Ok(())
    }
}

impl Synthetic {
    /// Each queue of the source.
    ///
    /// # Errors
    /// [`OptionsError`] if a size, a rate or the number of queues is out of range.
    pub fn open(options: &Options) -> Result<Vec<Self>, OptionsError> {
        options.check()?;
        let cycle_length = match options.sizes {
            Sizes::Fixed(_) => 1,
            Sizes::Imix => IMIX.len() as u64,
        };
        let queue = |queue| Self {
            options: *options,
            queue,
            table: Table::new(options.seed, options.sizes.max()),
            cycle: (0..cycle_length)
                .map(|at| options.sizes.of(at))
                .map(|size| (size, Head::new(queue, size)))
                .collect(),
        };
        Ok((0..options.queues).map(queue).collect())
    }

    /// With a rate the source goes on, whether the sink has room or not; without one it waits.
    pub fn can_wait(&self) -> bool {
        self.options.pace == Pace::Max
    }

    /// This queue's interface.
    pub fn interface(&self) -> Interface {
        let speed_bits = match self.options.pace {
            Pace::Rate(rate) => (rate.0 * 8.0 / f64::from(self.options.queues)) as u64,
            Pace::Max => 0,
        };
        Interface {
            name: format!("synthetic{}", self.queue),
            description: format!("generated by Longtake, {}", self.options),
            link_type: LinkType::ETHERNET,
            snap_length: 0,
            filter: String::new(),
            speed_bits,
        }
    }

    /// Generates until the sink ends it. Timestamps are intended times; without a rate, the time at which
    /// the packet's batch of 64 was started.
    pub fn run(mut self, sink: &mut impl Sink) -> SyntheticSummary {
        let interface = sink.interface(&self.interface());
        let mut summary = SyntheticSummary::default();
        let ended = match self.options.pace {
            Pace::Max => self.run_freely(interface, sink, &mut summary),
            Pace::Rate(rate) => {
                let share = rate.0 / f64::from(self.options.queues);
                self.run_paced(interface, share, sink, &mut summary)
            }
        };
        match ended {
            Ok(never) => match never {},
            Err(Ended) => summary,
        }
    }

    fn run_freely(
        &mut self,
        interface: u32,
        sink: &mut impl Sink,
        summary: &mut SyntheticSummary,
    ) -> Result<Never, Ended> {
        loop {
            let now = clock::now();
            for _ in 0..BATCH {
                self.send(interface, now, sink, summary)?;
            }
        }
    }

    fn run_paced(
        &mut self,
        interface: u32,
        bytes_per_s: f64,
        sink: &mut impl Sink,
        summary: &mut SyntheticSummary,
    ) -> Result<Never, Ended> {
        let (start, started) = (clock::now(), Instant::now());
        let ns_per_byte = 1e9 / bytes_per_s;
        let mut heard = Duration::ZERO;
        loop {
            let mut intended = due(summary.bytes, ns_per_byte);
            let now = elapsed(started);
            if intended > now {
                if now.saturating_sub(heard) >= TICK {
                    sink.tick(clock::now())?;
                    heard = now;
                }
                let gap = intended - now;
                thread::sleep(gap.max(NAP_MIN).min(TICK).into());
                continue;
            }
            summary.lag_max = summary.lag_max.max(now - intended);
            for _ in 0..BATCH {
                self.send(interface, start + intended, sink, summary)?;
                intended = due(summary.bytes, ns_per_byte);
                if intended > now {
                    break;
                }
            }
            heard = now;
        }
    }

    #[inline]
    fn send(
        &mut self,
        interface: u32,
        timestamp: Timestamp,
        sink: &mut impl Sink,
        summary: &mut SyntheticSummary,
    ) -> Result<(), Ended> {
        let sequence = summary.packets;
        let (length, head) = match &*self.cycle {
            [only] => only,
            cycle => &cycle[(sequence % IMIX.len() as u64) as usize % cycle.len()],
        };
        self.table.with_frame(head, self.queue, sequence, *length, |data| {
            let original_length = u32::from(*length);
            sink.packet(&Packet { interface, timestamp, original_length, data, options: &[] })
        })?;
        summary.packets += 1;
        summary.bytes += u64::from(*length);
        Ok(())
    }
}

/// What a loop that only its sink ends returns otherwise.
enum Never {}

/// When the packet after so many bytes is to be sent, after the start.
fn due(bytes: u64, ns_per_byte: f64) -> Duration {
    Duration::from_nanos((bytes as f64 * ns_per_byte) as u64)
}

fn elapsed(since: Instant) -> Duration {
    Duration::from_nanos(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Why these options can't be generated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionsError {
    /// The frame length is out of range.
    Size(u16),
    /// The rate is not a positive number.
    Rate(Rate),
    /// The number of queues is out of range.
    Queues(u16),
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => write!(
                f,
                "a synthetic frame can't be {size} bytes long: give {FRAME_BYTES_MIN} to \
                 {FRAME_BYTES_MAX}, without the frame check sequence"
            ),
            Self::Rate(rate) => {
                write!(f, "a synthetic source can't run at {rate}: give a positive rate, or max")
            }
            Self::Queues(queues) => {
                write!(f, "a synthetic source can't have {queues} queues: give 1 to {QUEUES_MAX}")
            }
        }
    }
}

impl std::error::Error for OptionsError {}

impl Options {
    /// Checks that every option is in range.
    ///
    /// # Errors
    /// [`OptionsError`] names the first that isn't.
    pub fn check(&self) -> Result<(), OptionsError> {
        match self.sizes {
            Sizes::Fixed(size) if size < FRAME_BYTES_MIN => return Err(OptionsError::Size(size)),
            _ => {}
        }
        match self.pace {
            Pace::Rate(rate) if !(rate.0.is_finite() && rate.0 > 0.0) => {
                return Err(OptionsError::Rate(rate));
            }
            _ => {}
        }
        if !(1..=QUEUES_MAX).contains(&self.queues) {
            return Err(OptionsError::Queues(self.queues));
        }
        Ok(())
    }
}

impl fmt::Display for Options {
    /// As the command line takes it after `synthetic:`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pace {
            Pace::Max => f.write_str("max")?,
            Pace::Rate(rate) => write!(f, "{}B/s", rate.0)?,
        }
        match self.sizes {
            Sizes::Fixed(size) => write!(f, ",size={size}")?,
            Sizes::Imix => f.write_str(",imix")?,
        }
        write!(f, ",seed={},queues={}", self.seed, self.queues)
    }
}

#[cfg(test)]
mod tests;
