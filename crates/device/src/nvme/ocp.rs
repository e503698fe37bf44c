//! Log pages of the Open Compute Project's Datacenter NVMe SSD Specification 2.0: what the medium was
//! written (C0h), and how many commands were slow (C3h).
//!
//! These identifiers are the vendors' to use, and other pages of theirs have them too: a page is one of
//! OCP's only if its last 16 bytes are the GUID that the specification gives it. Byte offsets: sections
//! 4.8.6 (SMART / Health Information Extended) and 4.8.9 (Latency Monitor), as `nvme ocp` of nvme-cli
//! reads them too.

use std::fmt;

use serde::Serialize;

use super::admin::{AdminError, Controller, LogPage};
use super::fields::Fields;

/// Length in bytes of both pages.
pub const PAGE_BYTES: usize = 512;

/// SMART / Health Information Extended (C0h).
pub const EXTENDED_HEALTH: LogPage =
    LogPage { id: 0xC0, specific: 0, name: "its OCP extended SMART log (C0h)" };
/// Latency Monitor (C3h).
pub const LATENCY_MONITOR: LogPage =
    LogPage { id: 0xC3, specific: 0, name: "its OCP latency monitor log (C3h)" };

/// Log Page GUIDs, as they stand in bytes 511:496.
const EXTENDED_HEALTH_GUID: u128 = 0xAFD5_14C9_7C6F_4F9C_A4F2_BFEA_2810_AFC5;
const LATENCY_MONITOR_GUID: u128 = 0x85D4_5E58_D4E6_4370_9C6C_84D0_8CC0_7A92;

/// Buckets of the latency monitor.
pub const BUCKETS: usize = 4;

/// Thresholds of latencies count in steps of this many milliseconds, from one step on.
const THRESHOLD_STEP_MS: u32 = 5;
/// The monitor's timer counts in steps of this many minutes.
const TIMER_STEP_MINUTES: u32 = 5;

/// SMART / Health Information Extended, as far as it is used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExtendedHealth {
    /// Bytes written to the medium over the drive's life, the host's and the drive's own (Physical Media
    /// Units Written).
    pub media_written_bytes: u64,
    /// Bytes read from the medium over the drive's life (Physical Media Units Read).
    pub media_read_bytes: u64,
    /// The page's version (Log Page Version).
    pub version: u16,
}

/// The drive's own count of slow commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LatencyMonitor {
    /// Whether the drive counts now (Feature Status, bit 0).
    pub enabled: bool,
    /// Minutes since the active counters began (Active Bucket Timer).
    pub active_minutes: u32,
    /// Minutes after which the active counters become the static ones and begin again (Active Bucket
    /// Timer Threshold).
    pub window_minutes: u32,
    /// From which latency on a command is counted in each bucket, in milliseconds. A bucket ends where
    /// the next begins; the last has no end (Active Thresholds A to D).
    pub thresholds_ms: [u32; BUCKETS],
    /// Commands of the present window.
    pub active: [Bucket; BUCKETS],
    /// Commands of the window before.
    pub last_window: [Bucket; BUCKETS],
    /// The page's version (Log Page Version).
    pub version: u16,
}

/// Commands whose latency lies between two thresholds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// Reads.
    pub reads: u32,
    /// Writes.
    pub writes: u32,
    /// Trims.
    pub trims: u32,
}

/// Why a page is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OcpPageError {
    /// The page is shorter than the specification's.
    Short {
        /// Bytes that there are.
        bytes: usize,
    },
    /// The page is not OCP's: a vendor uses the identifier for another.
    Foreign {
        /// The identifier that was asked for.
        page: u8,
    },
    /// The GUID is right and the contents can't be.
    Malformed {
        /// The identifier.
        page: u8,
        /// What can't be.
        field: &'static str,
    },
}

impl fmt::Display for OcpPageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { bytes } => {
                write!(f, "an OCP log page has {PAGE_BYTES} bytes, and this one has {bytes}")
            }
            Self::Foreign { page } => {
                write!(f, "log page {page:02X}h is the vendor's own: it has not the GUID of OCP's")
            }
            Self::Malformed { page, field } => {
                write!(f, "log page {page:02X}h has OCP's GUID and is malformed: {field}")
            }
        }
    }
}

impl std::error::Error for OcpPageError {}

/// Why a drive's OCP page is not known.
#[derive(Debug)]
pub enum OcpError {
    /// The drive didn't answer.
    Asking(AdminError),
    /// The drive's answer is no such page.
    Page(OcpPageError),
}

impl fmt::Display for OcpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asking(error) => error.fmt(f),
            Self::Page(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OcpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Asking(error) => Some(error),
            Self::Page(error) => Some(error),
        }
    }
}

impl ExtendedHealth {
    /// Asks a controller.
    ///
    /// # Errors
    /// If it doesn't answer, or with another page.
    pub fn ask(controller: &Controller) -> Result<Self, OcpError> {
        Self::parse(&answer(controller, EXTENDED_HEALTH)?).map_err(OcpError::Page)
    }

    /// Reads the page.
    ///
    /// # Errors
    /// If it is another page, or malformed.
    pub fn parse(page: &[u8]) -> Result<Self, OcpPageError> {
        let (log, version) = checked(page, EXTENDED_HEALTH.id, EXTENDED_HEALTH_GUID)?;
        let malformed = |field| OcpPageError::Malformed { page: EXTENDED_HEALTH.id, field };
        if [0, 16].into_iter().any(|at| log.u64(at) == u64::MAX) {
            return Err(malformed("a count of the medium's bytes is all ones"));
        }
        Ok(Self { media_written_bytes: log.count(0), media_read_bytes: log.count(16), version })
    }
}

impl LatencyMonitor {
    /// Asks a controller.
    ///
    /// # Errors
    /// If it doesn't answer, or with another page.
    pub fn ask(controller: &Controller) -> Result<Self, OcpError> {
        Self::parse(&answer(controller, LATENCY_MONITOR)?).map_err(OcpError::Page)
    }

    /// Reads the page.
    ///
    /// # Errors
    /// If it is another page, or malformed.
    pub fn parse(page: &[u8]) -> Result<Self, OcpPageError> {
        let (log, version) = checked(page, LATENCY_MONITOR.id, LATENCY_MONITOR_GUID)?;
        let steps: [u32; BUCKETS] = std::array::from_fn(|n| u32::from(log.u8(6 + n)));
        let enabled = log.u8(0) & 1 == 1;
        if enabled && !steps.is_sorted() {
            let field = "its latency thresholds don't ascend";
            return Err(OcpPageError::Malformed { page: LATENCY_MONITOR.id, field });
        }
        let buckets = |at: usize| std::array::from_fn(|n| Bucket::parse(log, at + 16 * n));
        Ok(Self {
            enabled,
            active_minutes: u32::from(log.u16(2)) * TIMER_STEP_MINUTES,
            window_minutes: u32::from(log.u16(4)) * TIMER_STEP_MINUTES,
            thresholds_ms: steps.map(|steps| (steps + 1) * THRESHOLD_STEP_MS),
            active: buckets(0x20),
            last_window: buckets(0xF0),
            version,
        })
    }

    /// Commands that were counted from `before` to this; None if that can't be told: the monitor was off
    /// or set otherwise meanwhile, or more than one window began.
    pub fn since(&self, before: &Self) -> Option<[Bucket; BUCKETS]> {
        let comparable =
            self.enabled && before.enabled && self.thresholds_ms == before.thresholds_ms;
        if !comparable {
            return None;
        }
        let same_window =
            self.active_minutes >= before.active_minutes && self.last_window == before.last_window;
        if same_window && let Some(counted) = each(&self.active, &before.active, Bucket::less) {
            return Some(counted);
        }
        let to_the_end = each(&self.last_window, &before.active, Bucket::less)?;
        each(&to_the_end, &self.active, Bucket::and)
    }
}

impl Bucket {
    /// Reserved, trims, writes, reads: four bytes each.
    fn parse(log: Fields<'_>, at: usize) -> Self {
        Self { reads: log.u32(at + 12), writes: log.u32(at + 8), trims: log.u32(at + 4) }
    }

    fn less(self, before: Self) -> Option<Self> {
        Some(Self {
            reads: self.reads.checked_sub(before.reads)?,
            writes: self.writes.checked_sub(before.writes)?,
            trims: self.trims.checked_sub(before.trims)?,
        })
    }

    fn and(self, more: Self) -> Option<Self> {
        Some(Self {
            reads: self.reads.checked_add(more.reads)?,
            writes: self.writes.checked_add(more.writes)?,
            trims: self.trims.checked_add(more.trims)?,
        })
    }
}

/// Pairs of buckets, all or none.
fn each(
    a: &[Bucket; BUCKETS],
    b: &[Bucket; BUCKETS],
    join: impl Fn(Bucket, Bucket) -> Option<Bucket>,
) -> Option<[Bucket; BUCKETS]> {
    let mut joined = [Bucket::default(); BUCKETS];
    for (joined, (&a, &b)) in joined.iter_mut().zip(a.iter().zip(b)) {
        *joined = join(a, b)?;
    }
    Some(joined)
}

fn answer(controller: &Controller, page: LogPage) -> Result<[u8; PAGE_BYTES], OcpError> {
    let mut answer = [0; PAGE_BYTES];
    controller.log(page, &mut answer).map_err(OcpError::Asking)?;
    Ok(answer)
}

/// The page's fields and version, if it is the one whose GUID this is.
fn checked(page: &[u8], id: u8, guid: u128) -> Result<(Fields<'_>, u16), OcpPageError> {
    let Some(page) = page.first_chunk::<PAGE_BYTES>() else {
        return Err(OcpPageError::Short { bytes: page.len() });
    };
    if page[PAGE_BYTES - 16..] != guid.to_le_bytes() {
        return Err(OcpPageError::Foreign { page: id });
    }
    let log = Fields(page);
    match log.u16(PAGE_BYTES - 18) {
        0 => Err(OcpPageError::Malformed { page: id, field: "its version is 0" }),
        version => Ok((log, version)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The GUIDs byte by byte, as a drive sends them.
    const SENT: [[u8; 16]; 2] = [
        [
            0xC5, 0xAF, 0x10, 0x28, 0xEA, 0xBF, 0xF2, 0xA4, 0x9C, 0x4F, 0x6F, 0x7C, 0xC9, 0x14,
            0xD5, 0xAF,
        ],
        [
            0x92, 0x7A, 0xC0, 0x8C, 0xD0, 0x84, 0x6C, 0x9C, 0x70, 0x43, 0xE6, 0xD4, 0x58, 0x5E,
            0xD4, 0x85,
        ],
    ];

    fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
        page[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn page(guid: [u8; 16], version: u16) -> [u8; PAGE_BYTES] {
        let mut page = [0; PAGE_BYTES];
        put(&mut page, 494, &version.to_le_bytes());
        put(&mut page, 496, &guid);
        page
    }

    fn health(written: u128) -> [u8; PAGE_BYTES] {
        let mut page = page(SENT[0], 3);
        put(&mut page, 0, &written.to_le_bytes());
        put(&mut page, 16, &77u128.to_le_bytes());
        page
    }

    /// A monitor that is on, 35 minutes into a window of a week, with 1 to 12 in its active counters
    /// and 21 to 32 in the others: bucket by bucket trims, writes, reads.
    fn monitor() -> [u8; PAGE_BYTES] {
        let mut page = page(SENT[1], 1);
        page[0] = 0b001;
        put(&mut page, 2, &7u16.to_le_bytes());
        put(&mut page, 4, &2016u16.to_le_bytes());
        put(&mut page, 6, &[0, 1, 9, 199]);
        for (start, at) in [(0, 0x20), (20, 0xF0)] {
            for n in 0..12u32 {
                let place = at + 16 * (n as usize / 3) + 4 * (n as usize % 3 + 1);
                put(&mut page, place, &(start + n + 1).to_le_bytes());
            }
        }
        page
    }

    #[test]
    fn the_extended_health_page_is_read_where_the_specification_puts_its_fields() {
        let read = ExtendedHealth::parse(&health(8_410_000_000_123)).unwrap();
        let expected = ExtendedHealth {
            media_written_bytes: 8_410_000_000_123,
            media_read_bytes: 77,
            version: 3,
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn the_latency_monitor_is_read_where_the_specification_puts_its_fields() {
        let read = LatencyMonitor::parse(&monitor()).unwrap();
        assert!(read.enabled);
        assert_eq!((read.active_minutes, read.window_minutes), (35, 10_080));
        assert_eq!(read.thresholds_ms, [5, 10, 50, 1000]);
        assert_eq!(read.active[0], Bucket { trims: 1, writes: 2, reads: 3 });
        assert_eq!(read.active[3], Bucket { trims: 10, writes: 11, reads: 12 });
        assert_eq!(read.last_window[1], Bucket { trims: 24, writes: 25, reads: 26 });
    }

    #[test]
    fn a_page_without_the_guid_is_the_vendors_own_and_nothing_is_read_from_it() {
        for flipped in 496..512 {
            let mut wrong = health(5);
            wrong[flipped] ^= 1;
            assert_eq!(ExtendedHealth::parse(&wrong), Err(OcpPageError::Foreign { page: 0xC0 }));
            let mut wrong = monitor();
            wrong[flipped] ^= 0x80;
            assert_eq!(LatencyMonitor::parse(&wrong), Err(OcpPageError::Foreign { page: 0xC3 }));
        }
        let zeros = [0; PAGE_BYTES];
        assert_eq!(ExtendedHealth::parse(&zeros), Err(OcpPageError::Foreign { page: 0xC0 }));
        // One page's GUID is not the other's.
        assert_eq!(ExtendedHealth::parse(&monitor()), Err(OcpPageError::Foreign { page: 0xC0 }));
        assert_eq!(LatencyMonitor::parse(&health(5)), Err(OcpPageError::Foreign { page: 0xC3 }));
    }

    #[test]
    fn a_page_that_is_short_or_contradicts_itself_is_malformed() {
        assert_eq!(
            ExtendedHealth::parse(&health(5)[..511]),
            Err(OcpPageError::Short { bytes: 511 })
        );
        assert_eq!(LatencyMonitor::parse(&[]), Err(OcpPageError::Short { bytes: 0 }));
        let without_version = page(SENT[0], 0);
        let refused = ExtendedHealth::parse(&without_version).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "log page C0h has OCP's GUID and is malformed: its version is 0"
        );
        let ones = ExtendedHealth::parse(&health(u128::MAX)).unwrap_err();
        assert!(ones.to_string().contains("all ones"), "{ones}");
        let mut descending = monitor();
        put(&mut descending, 6, &[9, 1, 9, 9]);
        let refused = LatencyMonitor::parse(&descending).unwrap_err();
        assert!(refused.to_string().contains("don't ascend"), "{refused}");
        // One that is off has no thresholds yet.
        descending[0] = 0;
        assert!(!LatencyMonitor::parse(&descending).unwrap().enabled);
    }

    #[test]
    fn slow_commands_between_two_looks_are_their_difference_also_across_a_windows_end() {
        let before = LatencyMonitor::parse(&monitor()).unwrap();
        let mut after = before;
        after.active[0].reads += 5;
        after.active[3].writes += 1;
        let mut expected = [Bucket::default(); BUCKETS];
        (expected[0].reads, expected[3].writes) = (5, 1);
        assert_eq!(after.since(&before), Some(expected));

        // The window ended with those counts, and the next has two reads.
        let mut next = after;
        (next.last_window, next.active, next.active_minutes) =
            (after.active, Default::default(), 0);
        next.active[1].reads = 2;
        expected[1].reads = 2;
        assert_eq!(next.since(&before), Some(expected));

        // Two windows ended: what the first had is nowhere any more.
        let mut later = next;
        later.last_window = Default::default();
        assert_eq!(later.since(&before), None);
        let off = LatencyMonitor { enabled: false, ..after };
        assert_eq!((off.since(&before), after.since(&off)), (None, None));
        let set_otherwise = LatencyMonitor { thresholds_ms: [5, 10, 15, 20], ..after };
        assert_eq!(set_otherwise.since(&before), None);
    }
}
