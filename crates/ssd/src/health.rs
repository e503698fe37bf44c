//! What a drive has been through: the counters behind SMART and endurance logs.

use base::{Duration, Instant};

use crate::drive::Window;
use crate::heat::Thermal;

/// A drive's counters since it was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    /// Bytes that the host read.
    pub read_bytes: u64,
    /// Bytes that the host wrote.
    pub written_bytes: u64,
    /// Read commands that were completed.
    pub reads: u64,
    /// Write commands that were completed.
    pub writes: u64,
    /// Time in which at least one command was under way.
    pub busy: Duration,
    /// Time since it was made.
    pub power_on: Duration,
    /// Times that power went while data was in an unprotected buffer, and the times in all.
    pub unsafe_shutdowns: u64,
    /// Blocks that were erased.
    pub erases: Erases,
    /// Reads of a page that were repeated, each time counted.
    pub retries: u64,
    /// How warm it is; None if its heat isn't simulated.
    pub thermal: Option<Thermal>,
    /// Each NVM Set, which is an endurance group of its own.
    pub sets: Vec<SetHealth>,
}

/// Erases of single dies, one block of each plane at a time, and what waited for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erases {
    /// Erases that were asked of a die.
    pub blocks: u64,
    /// Those of them that a die without other work began before anything was to be programmed there. The others were asked when their
    /// superblock was opened, in front of its programs.
    pub ahead: u64,
    /// Erases at whose end the die had other work waiting: programs of the same block, or of others that came meanwhile.
    pub waited_for: u64,
    /// For how long such work was kept waiting by erases, summed over dies, in nanoseconds.
    pub wait_ns: u64,
}

/// One NVM Set's counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetHealth {
    /// Bytes that can be addressed in it.
    pub capacity_bytes: u64,
    /// Bytes of its flash.
    pub physical_bytes: u64,
    /// Bytes of its share of the drive's capacity that belong to no namespace.
    pub unallocated_bytes: u64,
    /// Bytes that the host wrote into it.
    pub written_bytes: u64,
    /// Bytes that the host read from it.
    pub read_bytes: u64,
    /// Bytes that its media took: the host's, copies and upkeep.
    pub media_written_bytes: u64,
    /// Times that its blocks were erased, on average and the most.
    pub erases_mean: f64,
    /// The most that one of its superblocks was erased.
    pub erases_max: u32,
    /// Share of its life that is used, 0 for new; it can pass 1.
    pub life_used: f64,
    /// Its window, if Predictable Latency Mode is on for it.
    pub window: Option<SetWindow>,
}

/// The window of an NVM Set in Predictable Latency Mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetWindow {
    /// Which it is in.
    pub window: Window,
    /// When that began.
    pub since: Instant,
    /// Reads of 4 KiB that are left of a deterministic window; 0 outside one.
    pub reads_left: u64,
    /// Writes of the size that suits the set that are left of it.
    pub writes_left: u64,
    /// Milliseconds that are left of it.
    pub ms_left: u64,
    /// Deterministic windows that the drive ended by itself, because one of these was used up.
    pub ended: u64,
}

impl SetHealth {
    /// Media bytes for each byte of the host; None before the host wrote anything.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.written_bytes > 0)
            .then(|| self.media_written_bytes as f64 / self.written_bytes as f64)
    }
}
