//! The names of figures that others rely on. They stay the same over drives and versions; what they count is part of them.

use base::ByteSize;

use crate::{Direction, Unit};

/// Writing into the cache of an empty drive, bytes a second.
pub const WRITE_FAST: &str = "write.fast";
/// Bytes that an empty drive takes at the fast rate.
pub const WRITE_CACHE: &str = "write.cache_bytes";
/// Writing past the cache, bytes a second.
pub const WRITE_NATIVE: &str = "write.native";
/// Bytes on the drive from which its cache shrinks.
pub const WRITE_SHRINK: &str = "write.shrink_bytes";
/// Writing while the cache shrinks or the flash has run out, bytes a second.
pub const WRITE_SHRUNK: &str = "write.shrunk";
/// All of an empty drive's bytes over all the time that they took, bytes a second.
pub const WRITE_MEAN: &str = "write.mean";
/// Writing over stale data, bytes a second.
pub const WRITE_OVERWRITE: &str = "write.overwrite";
/// What every minute of a long write reaches, bytes a second.
pub const WRITE_SUSTAINED: &str = "write.sustained";
/// What every second of a long write reaches, bytes a second.
pub const WRITE_WORST_SECOND: &str = "write.worst_second";
/// The greatest rate at which a drive was written from empty through four rounds over stale data without falling ever further behind,
/// bytes a second.
pub const WRITE_HELD: &str = "write.held";
/// The most bytes that waited meanwhile.
pub const WRITE_HELD_WAITING: &str = "write.held_waiting_bytes";
/// The least rate at which it fell ever further behind, bytes a second.
pub const WRITE_NOT_HELD: &str = "write.not_held";
/// How many dips a fill shows.
pub const DIP_COUNT: &str = "dip.count";
/// How far the rate falls in a typical dip, percent of the level.
pub const DIP_DEPTH: &str = "dip.depth";
/// How long a typical dip is.
pub const DIP_LENGTH: &str = "dip.length";
/// The time from one dip to the next, where they come regularly.
pub const DIP_PERIOD: &str = "dip.period";
/// The most time that dips close together cost, beyond what writing as many bytes at the level takes and [`DIP_SHARE`] explains.
pub const DIP_LOST: &str = "dip.lost";
/// The time that dips cost over a whole pass, percent of what writing its bytes at the level takes.
pub const DIP_SHARE: &str = "dip.share";
/// Bytes of cache that a second of rest gives back.
pub const RECOVERY_RATE: &str = "recovery.rate";
/// The rest after which all of the cache is there again.
pub const RECOVERY_FULL_AFTER: &str = "recovery.full_after";
/// Reading one block behind the other, as fast as it gets, bytes a second.
pub const READ_SEQUENTIAL: &str = "read.sequential";
/// Bytes that the maker guarantees can be written in the drive's life.
pub const ENDURANCE: &str = "endurance.bytes";
/// Transfers a second on each lane of the PCIe link, in 10^9.
pub const LINK_GIGATRANSFERS: &str = "link.gigatransfers";
/// Lanes of the PCIe link.
pub const LINK_LANES: &str = "link.lanes";
/// Unit of offsets and lengths of reads and writes.
pub const BLOCK_UNIT: &str = "unit.block_bytes";
/// Unit of trims.
pub const TRIM_UNIT: &str = "unit.trim_bytes";

/// What the named figures count.
const UNITS: [(&str, Unit); 26] = [
    (WRITE_FAST, Unit::BytesPerSecond),
    (WRITE_CACHE, Unit::Bytes),
    (WRITE_NATIVE, Unit::BytesPerSecond),
    (WRITE_SHRINK, Unit::Bytes),
    (WRITE_SHRUNK, Unit::BytesPerSecond),
    (WRITE_MEAN, Unit::BytesPerSecond),
    (WRITE_OVERWRITE, Unit::BytesPerSecond),
    (WRITE_SUSTAINED, Unit::BytesPerSecond),
    (WRITE_WORST_SECOND, Unit::BytesPerSecond),
    (WRITE_HELD, Unit::BytesPerSecond),
    (WRITE_HELD_WAITING, Unit::Bytes),
    (WRITE_NOT_HELD, Unit::BytesPerSecond),
    (DIP_COUNT, Unit::Count),
    (DIP_DEPTH, Unit::Percent),
    (DIP_LENGTH, Unit::Nanoseconds),
    (DIP_PERIOD, Unit::Nanoseconds),
    (DIP_LOST, Unit::Nanoseconds),
    (DIP_SHARE, Unit::Percent),
    (RECOVERY_RATE, Unit::BytesPerSecond),
    (RECOVERY_FULL_AFTER, Unit::Nanoseconds),
    (READ_SEQUENTIAL, Unit::BytesPerSecond),
    (ENDURANCE, Unit::Bytes),
    (LINK_GIGATRANSFERS, Unit::Count),
    (LINK_LANES, Unit::Count),
    (BLOCK_UNIT, Unit::Bytes),
    (TRIM_UNIT, Unit::Bytes),
];

/// What the figure of this name counts, if that is laid down.
pub fn unit(name: &str) -> Option<Unit> {
    UNITS.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit)
}

/// Sequential rate at a block size and depth: `stream.read.512KiB.depth2`.
pub fn stream_rate(direction: Direction, block_bytes: u64, depth: u32) -> String {
    format!("stream.{direction}.{}.depth{depth}", block(block_bytes))
}

/// Latency that so many percent of sequential commands don't exceed: `stream.read.512KiB.depth2.p99`.
pub fn stream_latency(direction: Direction, block_bytes: u64, depth: u32, percent: f64) -> String {
    format!("{}.p{percent}", stream_rate(direction, block_bytes, depth))
}

/// Random reads at a block size and depth: `random.read.4KiB.depth16`.
pub fn random_rate(block_bytes: u64, depth: u32) -> String {
    format!("random.read.{}.depth{depth}", block(block_bytes))
}

/// Latency that so many percent of random reads don't exceed: `random.read.4KiB.depth16.p99`.
pub fn random_latency(block_bytes: u64, depth: u32, percent: f64) -> String {
    format!("{}.p{percent}", random_rate(block_bytes, depth))
}

/// Bytes that come back at the fast rate after a rest: `recovery.after_60s`.
pub fn recovery_after(rest: base::Duration) -> String {
    format!("recovery.after_{}s", rest.as_secs_f64())
}

/// A block size in the largest binary unit that is exact.
pub fn block(bytes: u64) -> String {
    for (unit, factor) in [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes != 0 && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    ByteSize(bytes).to_string().replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_direction_block_depth_and_percentile() {
        assert_eq!(stream_rate(Direction::Read, 512 << 10, 2), "stream.read.512KiB.depth2");
        assert_eq!(
            stream_latency(Direction::Write, 8 << 20, 1, 99.9),
            "stream.write.8MiB.depth1.p99.9"
        );
        assert_eq!(random_latency(4096, 16, 99.0), "random.read.4KiB.depth16.p99");
        assert_eq!(recovery_after(base::Duration::from_millis(500)), "recovery.after_0.5s");
        assert_eq!(unit(WRITE_CACHE), Some(Unit::Bytes));
        assert_eq!(unit("write.something"), None);
    }
}
