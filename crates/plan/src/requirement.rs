//! What is asked of an array: a rate, how long to keep what comes at it, and the host that it runs in.
//!
//! [`Draft`] is a requirement as people write it, in a file or as options; [`Draft::check`] makes a [`Requirement`] of it.

mod draft;
mod error;

use base::{ByteSize, Duration, Rate};
use recorder::Placement;

use crate::duty::Duty;
use crate::host::Host;

pub use draft::{Draft, DutyText};
pub use error::RequirementError;

/// What is asked of an array; everything in it can be, if perhaps not together.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// The rate, while data comes at its fullest.
    pub rate: Rate,
    /// What the rate counts.
    pub counts: Counts,
    /// What comes at it.
    pub frames: Frames,
    /// Bytes kept of each packet at most; None for all.
    pub slice: Option<u32>,
    /// How long to keep it, or to go on.
    pub term: Term,
    /// How the load lies over the day.
    pub duty: Duty,
    /// Drives' worth of parity: as many may fail.
    pub parity: u32,
    /// Drives that wait for others to fail.
    pub spare: u32,
    /// How many years of 365 days the drives are to last; None if that limits nothing.
    pub life_years: Option<f64>,
    /// Plan for a rate that is higher by this much, in percent.
    pub margin_percent: f64,
    /// Who reads while it is recorded.
    pub readers: Readers,
    /// The machine.
    pub host: Host,
    /// How chunks are spread over the drives.
    pub placement: Placement,
    /// Which NVM Sets of a drive readers and the recorder use.
    pub sets: Sets,
}

/// What a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Everything on an Ethernet link: preamble, frame, check sequence, gap.
    Wire,
    /// The bytes that are kept of each packet: frames without their check sequence, or raw blocks.
    Payload,
}

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frames {
    /// Ethernet frames: lengths with the check sequence, as RFC 2544 counts them, and how many of each there are.
    Ethernet(Vec<(u32, u32)>),
    /// Blocks of a sensor that are no packets, of so many bytes each.
    Raw {
        /// Bytes of each.
        block_bytes: u32,
    },
}

/// How long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// A ring over all that the drives hold, however long that is: only the rate is asked for.
    Whole,
    /// A ring that keeps at least so much, for as long as the drives live.
    Keep(Duration),
    /// Recordings of this length that stop when they are done, each onto drives that were trimmed and have rested.
    Mission {
        /// Length of each.
        length: Duration,
        /// How many there are in a thousand days, so that they can be rarer than daily and stay a whole number.
        per_thousand_days: u32,
    },
}

/// Readers beside the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Readers {
    /// Number of them.
    pub count: u32,
    /// What each reads.
    pub rate: Rate,
    /// Bytes of a read at a place drawn at random; None for long reads in order, as extraction reads.
    pub random_bytes: Option<u32>,
}

/// Which NVM Sets of a drive readers and the recorder use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sets {
    /// All data lies on all flash: whoever reads meets what is written.
    #[default]
    Shared,
    /// It is recorded to one part of each drive's flash at a time, and readers read from the others.
    Separate {
        /// How long it is recorded to the same part.
        turn: Duration,
    },
}

/// Bytes of each read of readers that read in order, as extraction reads.
pub const READ_BYTES: u32 = 1 << 20;

/// The "simple IMIX": 7 frames of 64, 4 of 594 and 1 of 1518 bytes, as `synthetic:RATE,imix` sends them.
pub const IMIX: [(u32, u32); 3] = [(64, 7), (594, 4), (1518, 1)];

/// What an Ethernet frame takes on the link beside itself: preamble and start of frame 8, gap 12 (IEEE 802.3).
pub const WIRE_BYTES: u32 = 20;
/// A frame's check sequence, which is not recorded.
pub const CHECK_BYTES: u32 = 4;
/// The shortest frame, with its check sequence.
pub const FRAME_BYTES_MIN: u32 = 64;
/// The longest frame that is planned for.
pub const FRAME_BYTES_MAX: u32 = 65_535;

impl Requirement {
    /// Whether the array is a ring, which ends up overwriting.
    pub const fn wraps(&self) -> bool {
        matches!(self.term, Term::Whole | Term::Keep(_))
    }

    /// Whether each chunk goes to the drive that is expected to finish it first.
    pub fn is_adaptive(&self) -> bool {
        self.placement == Placement::Adaptive
    }

    /// Seconds to be held: of a ring, or of one mission. Zero if nothing has to be held.
    pub fn held_s(&self) -> f64 {
        match self.term {
            Term::Whole => 0.0,
            Term::Keep(time) | Term::Mission { length: time, .. } => time.as_secs_f64(),
        }
    }

    /// The share of all time that is recorded at the full rate.
    pub fn mean_share(&self) -> f64 {
        match self.term {
            Term::Whole | Term::Keep(_) => self.duty.mean(),
            Term::Mission { length, per_thousand_days } => {
                let share =
                    length.as_secs_f64() * f64::from(per_thousand_days) / (1000.0 * 86_400.0);
                share.min(1.0) * self.duty.mean()
            }
        }
    }
}

impl Readers {
    /// What they read together, bytes a second.
    pub fn bytes_per_s(&self) -> f64 {
        f64::from(self.count) * self.rate.0
    }

    /// Bytes of each of their reads.
    pub fn read_bytes(&self) -> u32 {
        self.random_bytes.unwrap_or(READ_BYTES)
    }
}

impl Frames {
    /// Bytes of each that are kept, and how many there are, in the order of the list.
    pub fn kept(&self) -> Vec<(u32, u32)> {
        match self {
            Self::Ethernet(mix) => {
                mix.iter().map(|(bytes, weight)| (bytes - CHECK_BYTES, *weight)).collect()
            }
            Self::Raw { block_bytes } => vec![(*block_bytes, 1)],
        }
    }

    /// Bytes on the link for each byte that is kept.
    pub fn wire_per_kept(&self) -> f64 {
        match self {
            Self::Ethernet(mix) => {
                let sum = |of: fn(u32) -> u32| -> f64 {
                    mix.iter()
                        .map(|(bytes, weight)| f64::from(of(*bytes)) * f64::from(*weight))
                        .sum()
                };
                sum(|bytes| bytes + WIRE_BYTES) / sum(|bytes| bytes - CHECK_BYTES)
            }
            Self::Raw { .. } => 1.0,
        }
    }
}

impl std::fmt::Display for Sets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Shared => "shared",
            Self::Separate { .. } => "separate",
        })
    }
}

impl std::fmt::Display for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ethernet(mix) if mix.len() == 1 => write!(f, "frames of {} bytes", mix[0].0),
            Self::Ethernet(mix) => {
                let parts: Vec<String> = mix.iter().map(|(b, n)| format!("{b}:{n}")).collect();
                write!(f, "frames of {} bytes", parts.join(","))
            }
            Self::Raw { block_bytes } => {
                write!(f, "raw blocks of {}", ByteSize(u64::from(*block_bytes)))
            }
        }
    }
}
