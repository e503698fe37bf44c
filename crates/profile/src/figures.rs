//! What planning and simulating ask of a profile, as quantities. None is "not known", never a guess.

use std::fmt;

use base::{ByteSize, Duration, Rate};

use crate::{Known, Profile, SourceKind, Unit, name};

/// Reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the drive.
    Read,
    /// To the drive.
    Write,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

/// A PCIe link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PcieLink {
    /// Transfers a second on each lane, in 10^9: 2.5, 5, 8, 16, 32 or 64.
    pub gigatransfers: f64,
    /// Lanes.
    pub lanes: u8,
}

impl Profile {
    /// A figure with all that is known about it.
    pub fn known(&self, name: &str) -> Option<&Known> {
        self.figures.get(name)
    }

    /// Writing into the cache of an empty drive. Without a cache, None: see [`Profile::native_write`].
    pub fn fast_write(&self) -> Option<Rate> {
        self.rate(name::WRITE_FAST)
    }

    /// Bytes that an empty drive takes at the fast rate.
    pub fn cache(&self) -> Option<ByteSize> {
        self.bytes(name::WRITE_CACHE)
    }

    /// Writing past the cache, or without one.
    pub fn native_write(&self) -> Option<Rate> {
        self.rate(name::WRITE_NATIVE)
    }

    /// Bytes on the drive from which its cache shrinks.
    pub fn shrink(&self) -> Option<ByteSize> {
        self.bytes(name::WRITE_SHRINK)
    }

    /// Writing over stale data.
    pub fn overwrite(&self) -> Option<Rate> {
        self.rate(name::WRITE_OVERWRITE)
    }

    /// What every minute of a long write reaches.
    pub fn sustained_write(&self) -> Option<Rate> {
        self.rate(name::WRITE_SUSTAINED)
    }

    /// What a long write can rely on as far as is known: the rate of its slowest minute, or else of its slowest phase.
    pub fn long_write(&self) -> Option<Rate> {
        let slower = |a: Option<Rate>, b: Option<Rate>| match (a, b) {
            (Some(Rate(a)), Some(Rate(b))) => Some(Rate(a.min(b))),
            (a, b) => a.or(b),
        };
        self.sustained_write().or_else(|| slower(self.native_write(), self.overwrite()))
    }

    /// Number of figures that are measured, published, assumed.
    pub fn counts(&self) -> [usize; 3] {
        [SourceKind::Measured, SourceKind::Published, SourceKind::Assumed]
            .map(|kind| self.figures.values().filter(|known| known.source.kind == kind).count())
    }

    /// What every second of a long write reaches.
    pub fn worst_second(&self) -> Option<Rate> {
        self.rate(name::WRITE_WORST_SECOND)
    }

    /// Bytes of cache that a second of rest gives back.
    pub fn recovery(&self) -> Option<Rate> {
        self.rate(name::RECOVERY_RATE)
    }

    /// Reading one block behind the other, as fast as it gets.
    pub fn sequential_read(&self) -> Option<Rate> {
        self.rate(name::READ_SEQUENTIAL)
    }

    /// Sequential rate at a block size in bytes and a depth.
    pub fn stream(&self, direction: Direction, block_bytes: u64, depth: u32) -> Option<Rate> {
        self.rate(&name::stream_rate(direction, block_bytes, depth))
    }

    /// Latency that so many percent of sequential commands don't exceed, at a block size in bytes and a depth.
    pub fn stream_latency(
        &self,
        direction: Direction,
        block_bytes: u64,
        depth: u32,
        percent: f64,
    ) -> Option<Duration> {
        self.time(&name::stream_latency(direction, block_bytes, depth, percent))
    }

    /// Bytes a second of random reads at a block size in bytes and a depth.
    pub fn random_read(&self, block_bytes: u64, depth: u32) -> Option<Rate> {
        self.rate(&name::random_rate(block_bytes, depth))
    }

    /// Latency that so many percent of random reads don't exceed, at a block size in bytes and a depth.
    pub fn random_latency(&self, block_bytes: u64, depth: u32, percent: f64) -> Option<Duration> {
        self.time(&name::random_latency(block_bytes, depth, percent))
    }

    /// Bytes that can be written in the drive's life.
    pub fn endurance(&self) -> Option<ByteSize> {
        self.bytes(name::ENDURANCE)
    }

    /// The PCIe link.
    pub fn link(&self) -> Option<PcieLink> {
        let gigatransfers = self.value(name::LINK_GIGATRANSFERS, Unit::Count)?;
        let lanes = self.value(name::LINK_LANES, Unit::Count)?;
        ((1.0..=32.0).contains(&lanes) && lanes.fract() == 0.0)
            .then_some(PcieLink { gigatransfers, lanes: lanes as u8 })
    }

    /// Unit of offsets and lengths of reads and writes.
    pub fn block_unit(&self) -> Option<ByteSize> {
        self.bytes(name::BLOCK_UNIT)
    }

    /// Unit of trims.
    pub fn trim_unit(&self) -> Option<ByteSize> {
        self.bytes(name::TRIM_UNIT)
    }

    fn value(&self, name: &str, unit: Unit) -> Option<f64> {
        self.figures.get(name).filter(|known| known.unit == unit).map(|known| known.value)
    }

    fn rate(&self, name: &str) -> Option<Rate> {
        self.value(name, Unit::BytesPerSecond).map(Rate)
    }

    fn bytes(&self, name: &str) -> Option<ByteSize> {
        self.value(name, Unit::Bytes).map(|bytes| ByteSize(bytes.round() as u64))
    }

    fn time(&self, name: &str) -> Option<Duration> {
        self.value(name, Unit::Nanoseconds).map(|ns| Duration::from_nanos(ns.round() as u64))
    }
}
