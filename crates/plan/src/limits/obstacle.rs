//! Why no number of drives will do.

use std::fmt;

use base::ByteSize;
use serde::{Serialize, Serializer};

use crate::explain::{bytes, rate};

/// Why no number of drives of a kind will do in this host.
#[derive(Clone, Debug, PartialEq)]
pub enum Obstacle {
    /// Nothing tells how fast it writes.
    NoRate,
    /// It holds less than two segments; what the layout says.
    TooSmall(String),
    /// A raw block is longer than a chunk.
    BlockTooLong {
        /// The longest that fits.
        most_bytes: u32,
    },
    /// It has no NVM Sets that readers and the recorder could have apart.
    NoSets,
    /// Nothing tells how fast it reads, and there are readers.
    NoReadRate,
    /// What can't be read beside the writing.
    Readers {
        /// Asked for together, bytes a second.
        reads: f64,
    },
    /// More drives than anybody has.
    TooMany,
    /// Not enough lanes for so many.
    Lanes {
        /// Drives in all.
        drives: u32,
        /// Lanes that are left to them.
        lanes: u32,
    },
    /// The lanes together carry less than the stream.
    Link {
        /// What has to go over them, bytes a second.
        needed: f64,
        /// What they carry at best.
        there: f64,
    },
    /// The shared link carries less than the stream.
    Uplink {
        /// `drives` or `host`: where to.
        toward: &'static str,
        /// What has to go over it, bytes a second.
        needed: f64,
        /// What it carries.
        there: f64,
    },
    /// The network interfaces' slots carry less than the stream.
    Nic {
        /// What has to go over them, bytes a second.
        needed: f64,
        /// What they carry.
        there: f64,
    },
    /// Buffers don't fit.
    Memory {
        /// Bytes needed.
        needed_bytes: f64,
        /// Bytes given.
        there_bytes: f64,
        /// With so many drives.
        drives: u32,
    },
    /// Memory moves less than copying each byte once takes.
    MemoryBandwidth {
        /// What crosses the bus at least, bytes a second.
        needed: f64,
        /// What it moves.
        there: f64,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRate => f.write_str(
                "nothing in its profile tells how fast it writes: measure it with `longtake measure fill DRIVE`",
            ),
            Self::TooSmall(why) => f.write_str(why),
            Self::BlockTooLong { most_bytes } => write!(
                f,
                "a raw block is longer than a chunk: give --raw {most_bytes} at most, or hand blocks over in pieces"
            ),
            Self::NoSets => f.write_str(
                "its profile has no NVM Sets ([simulated.sets]), so readers and writers can't be kept apart: choose a drive with \
                 sets, or give --sets shared",
            ),
            Self::NoReadRate => f.write_str(
                "its read rate is unknown, so the time that readers leave for writing is unknown too: measure it with \
                 `longtake measure stream DRIVE`, or leave --readers out",
            ),
            Self::Readers { reads } => write!(
                f,
                "reading {} during the recording leaves drives no time to write, or exceeds their read rate: lower --readers",
                rate(*reads)
            ),
            Self::TooMany => f.write_str("it would take more than a million drives"),
            Self::Lanes { drives, lanes } => write!(
                f,
                "{} and {lanes} {} left: take faster or larger drives, a host with more lanes, or several hosts",
                if *drives == 1 { "1 drive needs a lane".to_owned() } else { format!("{drives} drives need a lane each") },
                if *lanes == 1 { "is" } else { "are" }
            ),
            Self::Link { needed, there } => write!(
                f,
                "{} have to go over lanes that carry {} at best: take a host with more lanes or of a later generation",
                rate(*needed),
                rate(*there)
            ),
            Self::Uplink { toward, needed, there } => write!(
                f,
                "{} have to go over an uplink that carries {} toward the {toward}: put drives on the processor's own lanes",
                rate(*needed),
                rate(*there)
            ),
            Self::Nic { needed, there } => write!(
                f,
                "{} come in by slots that carry {}: give the interfaces more lanes or a later generation",
                rate(*needed),
                rate(*there)
            ),
            Self::Memory { needed_bytes, there_bytes, drives } => write!(
                f,
                "buffers of {drives} drives need {} and {} are given: give more --memory",
                bytes(*needed_bytes),
                ByteSize(*there_bytes as u64)
            ),
            Self::MemoryBandwidth { needed, there } => write!(
                f,
                "copying each packet once moves {} and memory moves {}: fill more memory channels, or use several hosts",
                rate(*needed),
                rate(*there)
            ),
        }
    }
}

impl Serialize for Obstacle {
    /// As its message.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
