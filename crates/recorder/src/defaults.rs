//! What a recording does unless it is asked for something else. The program, the planner and the benchmarks take these from
//! here, so that a plan is proved with what will be recorded with.

use base::{Duration, Rate};

/// Chunk writes under way on each member at most.
pub const DEPTH: u32 = 4;

/// Memory for chunk buffers, in bytes.
pub const MEMORY_BYTES: u64 = 512 << 20;

/// A packet is written within this time of its capture, and each member is flushed within as much again.
pub const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// Segments that a ring keeps trimmed ahead of its head on drives.
pub const TRIM_AHEAD: u64 = 4;

/// The same on files: trimming one gives its preallocated space back, which costs more than it saves.
pub const TRIM_AHEAD_ON_FILES: u64 = 0;

/// The rate at which a ring trims on each member at most.
pub const TRIM_RATE: Rate = Rate(8e9);

/// How long a member rests at a time, if members rest.
pub const REST_TURN: Duration = Duration::from_secs(5);

/// How long a part of the array is written at a time, if NVM Sets are separate.
pub const SETS_TURN: Duration = Duration::from_secs(600);

/// How far members' fill may drift apart under adaptive placement, in bytes: two segments.
pub const fn drift_max(segment_bytes: u64) -> u64 {
    2 * segment_bytes
}

/// Buffers for indexes, superblocks and what else is not a chunk: one for each member, and two for what comes beside.
pub const fn metadata_buffers(members: usize) -> usize {
    members + 2
}

/// How old the first packet of a chunk becomes before the chunk is sealed, full or not: three quarters of the flush interval, so
/// that a packet is on its medium within the whole.
pub const fn chunk_age_max(flush_interval: Duration) -> Duration {
    share(flush_interval, 3, 4)
}

/// How long a block of a stream waits to be filled: an eighth of the flush interval.
pub const fn block_age_max(flush_interval: Duration) -> Duration {
    share(flush_interval, 1, 8)
}

/// How long a group of chunks waits for further chunks before its parity is made: half the flush interval.
pub const fn group_wait(flush_interval: Duration) -> Duration {
    share(flush_interval, 1, 2)
}

const fn share(interval: Duration, numerator: u64, denominator: u64) -> Duration {
    Duration::from_nanos(interval.as_nanos() / denominator * numerator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_time_to_be_written_within_the_flush_interval() {
        let ages = [chunk_age_max, block_age_max, group_wait].map(|age| age(FLUSH_INTERVAL));
        assert_eq!(ages.map(Duration::as_nanos), [750_000_000, 125_000_000, 500_000_000]);
        assert!(ages[0] + ages[1] < FLUSH_INTERVAL);
    }
}
