//! What every generated source has in common: its pace, its clock, and what it tells at the end.
//!
//! Open loop: each packet has an intended time, which is its timestamp, and a slow sink doesn't slow the
//! source down. If the generator itself falls behind, it says so, because then the rate was not offered.

use std::fmt;
use std::thread;
use std::time::Instant;

use base::{Duration, Rate, Timestamp};
use format::{Interface, LinkType, Packet};

use crate::clock;
use crate::readable::TICK;
use crate::sink::{Ended, Sink};

/// The most queues.
pub const QUEUES_MAX: u16 = 256;

/// A source that lags its schedule by more than this has not offered the rate it was asked for.
pub const LAG_MAX: Duration = Duration::from_millis(50);

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

impl Pace {
    /// The rate, if it has one.
    pub const fn rate(self) -> Option<Rate> {
        match self {
            Self::Rate(rate) => Some(rate),
            Self::Max => None,
        }
    }
}

impl fmt::Display for Pace {
    /// As the command line takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Max => f.write_str("max"),
            Self::Rate(rate) => write!(f, "{}B/s", rate.0),
        }
    }
}

/// What one queue has generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Packets that the sink was given, which is also the next sequence number.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How far the generator was behind its schedule at worst. Zero without a rate.
    pub lag_max: Duration,
}

impl Summary {
    /// Whether the generator was the limit: the rate was not offered evenly, so a result obtained with it
    /// says less about the recorder than it seems to.
    pub fn harness_limited(&self) -> bool {
        self.lag_max > LAG_MAX
    }
}

impl fmt::Display for Summary {
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

/// One queue of a generated source, to be run by a thread of its own.
pub trait Generator: Sized {
    /// The pace of all queues together.
    fn pace(&self) -> Pace;

    /// How many queues there are.
    fn queues(&self) -> u16;

    /// Name and description of this queue's interface.
    fn names(&self) -> (String, String);

    /// Makes the packet with that sequence number, which is the one after the last, and lets `look` see it.
    fn packet<T>(&mut self, sequence: u64, look: impl FnOnce(&[u8]) -> T) -> T;

    /// With a rate the source goes on, whether the sink has room or not; without one it waits.
    fn can_wait(&self) -> bool {
        self.pace() == Pace::Max
    }

    /// This queue's interface.
    fn interface(&self) -> Interface {
        let speed_bits = match self.pace() {
            Pace::Rate(rate) => (rate.0 * 8.0 / f64::from(self.queues())) as u64,
            Pace::Max => 0,
        };
        let (name, description) = self.names();
        Interface {
            name,
            description,
            link_type: LinkType::ETHERNET,
            snap_length: 0,
            filter: String::new(),
            speed_bits,
        }
    }

    /// Generates until the sink ends it. Timestamps are intended times; without a rate, the time at which
    /// the packet's batch of 64 was started.
    fn run(mut self, sink: &mut impl Sink) -> Summary {
        let interface = sink.interface(&self.interface());
        let mut summary = Summary::default();
        let ended = match self.pace() {
            Pace::Max => run_freely(&mut self, interface, sink, &mut summary),
            Pace::Rate(rate) => {
                let share = rate.0 / f64::from(self.queues());
                run_paced(&mut self, interface, share, sink, &mut summary)
            }
        };
        match ended {
            Ok(never) => match never {},
            Err(Ended) => summary,
        }
    }
}

fn run_freely(
    generator: &mut impl Generator,
    interface: u32,
    sink: &mut impl Sink,
    summary: &mut Summary,
) -> Result<Never, Ended> {
    loop {
        let now = clock::now();
        for _ in 0..BATCH {
            send(generator, interface, now, sink, summary)?;
        }
    }
}

fn run_paced(
    generator: &mut impl Generator,
    interface: u32,
    bytes_per_s: f64,
    sink: &mut impl Sink,
    summary: &mut Summary,
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
            send(generator, interface, start + intended, sink, summary)?;
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
    generator: &mut impl Generator,
    interface: u32,
    timestamp: Timestamp,
    sink: &mut impl Sink,
    summary: &mut Summary,
) -> Result<(), Ended> {
    let length = generator.packet(summary.packets, |data| {
        let original_length = data.len() as u32;
        sink.packet(&Packet { interface, timestamp, original_length, data, options: &[] })?;
        Ok(original_length)
    })?;
    summary.packets += 1;
    summary.bytes += u64::from(length);
    Ok(())
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
    Size {
        /// The length asked for, in bytes.
        size: u16,
        /// The shortest possible.
        min: u16,
    },
    /// The rate is not a positive number.
    Rate(Rate),
    /// The number of queues is out of range.
    Queues(u16),
    /// There are fewer flows than queues, or too many.
    Flows {
        /// The number asked for.
        flows: u64,
        /// The least: one for each queue.
        min: u64,
        /// The most.
        max: u64,
    },
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { size, min } => write!(
                f,
                "a generated frame can't be {size} bytes long: give {min} to {}, without the frame \
                 check sequence",
                u16::MAX
            ),
            Self::Rate(rate) => {
                write!(f, "a generated source can't run at {rate}: give a positive rate, or max")
            }
            Self::Queues(queues) => {
                write!(f, "a generated source can't have {queues} queues: give 1 to {QUEUES_MAX}")
            }
            Self::Flows { flows, min, max } => {
                write!(
                    f,
                    "a source can't have {flows} flows: give {min} to {max}, one for each queue at least"
                )
            }
        }
    }
}

impl std::error::Error for OptionsError {}

/// Checks what all generated sources are asked for.
///
/// # Errors
/// [`OptionsError`] names the first that is out of range.
pub fn check(pace: Pace, queues: u16) -> Result<(), OptionsError> {
    match pace {
        Pace::Rate(rate) if !(rate.0.is_finite() && rate.0 > 0.0) => {
            return Err(OptionsError::Rate(rate));
        }
        _ => {}
    }
    if !(1..=QUEUES_MAX).contains(&queues) {
        return Err(OptionsError::Queues(queues));
    }
    Ok(())
}
