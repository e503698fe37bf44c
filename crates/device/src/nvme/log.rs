//! Log pages: health, endurance groups, predictable latency, and which logs there are.
//!
//! Byte offsets: NVM Express Base Specification 2.0, section 5.16.1, whose names are in the comments.
//! A log of 16-byte counters is read in 64 bits: 18 EB is beyond any drive's life.

use serde::Serialize;

use super::admin::LogPage;
use super::fields::{Fields, names};

/// Length in bytes of the health, endurance group and predictable latency logs.
pub const LOG_BYTES: usize = 512;

/// Length in bytes of the log of supported log pages.
pub const SUPPORTED_BYTES: usize = 1024;

/// Data units are thousands of 512 bytes.
const DATA_UNIT_BYTES: u128 = 512_000;
/// Endurance groups count billions of bytes.
const BILLION: u128 = 1_000_000_000;

/// The log of supported log pages (00h).
pub const SUPPORTED: LogPage = LogPage { id: 0x00, specific: 0, name: "its supported log pages" };
/// SMART / Health Information (02h) of the controller.
pub const HEALTH: LogPage = LogPage { id: 0x02, specific: 0, name: "its SMART log" };

/// Endurance Group Information (09h).
pub fn endurance_group_page(group: u16) -> LogPage {
    LogPage { id: 0x09, specific: group, name: "an endurance group's log" }
}

/// Predictable Latency Per NVM Set (0Ah).
pub fn predictable_latency_page(set: u16) -> LogPage {
    LogPage { id: 0x0A, specific: set, name: "an NVM Set's predictable latency log" }
}

/// SMART / Health Information.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SmartLog {
    /// Critical Warning as it is; 0 is good.
    pub critical_warning: u8,
    /// The same in words.
    pub warnings: Vec<CriticalWarning>,
    /// Composite Temperature in degrees Celsius; None: not reported.
    pub temperature_celsius: Option<i32>,
    /// Temperature sensors 1 to 8 in degrees Celsius; those that it doesn't have are None.
    pub sensors_celsius: [Option<i32>; 8],
    /// Available Spare, in percent of what there was when new.
    pub spare_percent: u8,
    /// Below which spare it warns, in percent.
    pub spare_threshold_percent: u8,
    /// Percentage Used: the vendor's estimate of life used; 255 stands for 255 and more.
    pub percent_used: u8,
    /// Bytes read by the host over its life (Data Units Read x 512,000).
    pub read_bytes: u64,
    /// Bytes written by the host over its life (Data Units Written x 512,000).
    pub written_bytes: u64,
    /// Read commands.
    pub host_reads: u64,
    /// Write commands.
    pub host_writes: u64,
    /// Minutes during which commands were under way.
    pub busy_minutes: u64,
    /// Power cycles.
    pub power_cycles: u64,
    /// Hours with power; may leave out low-power states.
    pub power_on_hours: u64,
    /// Losses of power without notice.
    pub unsafe_shutdowns: u64,
    /// Data that the drive could not give back unharmed.
    pub media_errors: u64,
    /// Entries that its error log has ever had.
    pub error_log_entries: u64,
    /// Minutes at or above the warning temperature (Warning Composite Temperature Time).
    pub warning_temperature_minutes: u32,
    /// Minutes at or above the critical temperature (Critical Composite Temperature Time).
    pub critical_temperature_minutes: u32,
    /// How often it went into light throttling (Thermal Management Temperature 1 Transition Count).
    pub throttle_light_count: u32,
    /// How often it went into heavy throttling (Thermal Management Temperature 2 Transition Count).
    pub throttle_heavy_count: u32,
    /// Seconds in light throttling.
    pub throttle_light_seconds: u32,
    /// Seconds in heavy throttling.
    pub throttle_heavy_seconds: u32,
}

/// Critical Warning bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CriticalWarning {
    /// Spare is below its threshold.
    SpareLow,
    /// A temperature is beyond its threshold.
    Temperature,
    /// Reliability has suffered from errors.
    ReliabilityDegraded,
    /// It takes no writes any more.
    ReadOnly,
    /// Its protection of cached data against power loss has failed.
    VolatileBackupFailed,
    /// Its persistent memory region is unreliable or read-only.
    PersistentMemoryUnreliable,
}

const CRITICAL_WARNINGS: [(u32, CriticalWarning); 6] = [
    (0, CriticalWarning::SpareLow),
    (1, CriticalWarning::Temperature),
    (2, CriticalWarning::ReliabilityDegraded),
    (3, CriticalWarning::ReadOnly),
    (4, CriticalWarning::VolatileBackupFailed),
    (5, CriticalWarning::PersistentMemoryUnreliable),
];

/// Endurance Group Information.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnduranceGroup {
    /// Its identifier.
    pub id: u16,
    /// Critical Warning as it is; 0 is good.
    pub critical_warning: u8,
    /// Available spare in percent.
    pub spare_percent: u8,
    /// Below which spare it warns, in percent.
    pub spare_threshold_percent: u8,
    /// Life used in percent; 255 stands for 255 and more.
    pub percent_used: u8,
    /// Endurance Estimate: bytes that can be written over its life if each write of the host causes one
    /// of the medium, to the next billion; None: not reported.
    pub endurance_bytes: Option<u64>,
    /// Bytes read by the host, to the next billion; None: not reported.
    pub read_bytes: Option<u64>,
    /// Bytes written by the host, to the next billion; None: not reported.
    pub written_bytes: Option<u64>,
    /// Bytes written to the medium, housekeeping included, to the next billion; None: not reported.
    pub media_written_bytes: Option<u64>,
    /// Read commands; 0 where it doesn't count.
    pub host_reads: u64,
    /// Write commands; 0 where it doesn't count.
    pub host_writes: u64,
    /// Data that could not be given back unharmed.
    pub media_errors: u64,
    /// Entries of the error log about it.
    pub error_log_entries: u64,
    /// Size in bytes; None: not reported.
    pub capacity_bytes: Option<u64>,
    /// What of it is in no NVM Set, in bytes; None where `capacity_bytes` isn't reported.
    pub unallocated_bytes: Option<u64>,
}

/// Predictable Latency Per NVM Set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PredictableLatency {
    /// The NVM Set.
    pub nvm_set_id: u16,
    /// In which window it is.
    pub window: Window,
    /// Reads of 4 KiB in a deterministic window, typically; None: not reported.
    pub deterministic_reads: Option<u64>,
    /// Writes of its optimal size in a deterministic window, typically; None: not reported.
    pub deterministic_writes: Option<u64>,
    /// Longest deterministic window in milliseconds; None: not reported.
    pub deterministic_max_ms: Option<u64>,
    /// Shortest window of housekeeping after a full deterministic one, in milliseconds; None: not reported.
    pub housekeeping_min_high_ms: Option<u64>,
    /// Shortest window of housekeeping that is of use, in milliseconds; None: not reported.
    pub housekeeping_min_low_ms: Option<u64>,
    /// Reads left in this deterministic window; None outside one, or not reported.
    pub deterministic_reads_left: Option<u64>,
    /// Writes left in this deterministic window; None outside one, or not reported.
    pub deterministic_writes_left: Option<u64>,
    /// Milliseconds left in this deterministic window; None outside one, or not reported.
    pub deterministic_ms_left: Option<u64>,
}

/// An NVM Set's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// The mode is off.
    NotUsed,
    /// Latency is deterministic.
    Deterministic,
    /// Housekeeping may disturb.
    NonDeterministic,
}

/// A log page that the drive has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SupportedLog {
    /// Log page identifier.
    pub id: u8,
    /// Its name in the specification; None for a vendor's own.
    pub name: Option<&'static str>,
}

impl SmartLog {
    /// Reads the log.
    pub fn parse(log: &[u8; LOG_BYTES]) -> Self {
        let log = Fields(log);
        Self {
            critical_warning: log.u8(0),
            warnings: names(log.u8(0).into(), &CRITICAL_WARNINGS),
            temperature_celsius: log.celsius(1),
            sensors_celsius: std::array::from_fn(|n| log.celsius(200 + 2 * n)),
            spare_percent: log.u8(3),
            spare_threshold_percent: log.u8(4),
            percent_used: log.u8(5),
            read_bytes: log.scaled(32, DATA_UNIT_BYTES),
            written_bytes: log.scaled(48, DATA_UNIT_BYTES),
            host_reads: log.count(64),
            host_writes: log.count(80),
            busy_minutes: log.count(96),
            power_cycles: log.count(112),
            power_on_hours: log.count(128),
            unsafe_shutdowns: log.count(144),
            media_errors: log.count(160),
            error_log_entries: log.count(176),
            warning_temperature_minutes: log.u32(192),
            critical_temperature_minutes: log.u32(196),
            throttle_light_count: log.u32(216),
            throttle_heavy_count: log.u32(220),
            throttle_light_seconds: log.u32(224),
            throttle_heavy_seconds: log.u32(228),
        }
    }
}

impl EnduranceGroup {
    /// Reads the log of group `id`.
    pub fn parse(id: u16, log: &[u8; LOG_BYTES]) -> Self {
        let log = Fields(log);
        // In this log, zero is "not reported" for everything that is counted in billions.
        let billions = |at| Some(log.scaled(at, BILLION)).filter(|&n| n > 0);
        let capacity = Some(log.count(160)).filter(|&n| n > 0); // TEGCAP
        Self {
            id,
            critical_warning: log.u8(0),
            spare_percent: log.u8(3),
            spare_threshold_percent: log.u8(4),
            percent_used: log.u8(5),
            endurance_bytes: billions(32),
            read_bytes: billions(48),
            written_bytes: billions(64),
            media_written_bytes: billions(80),
            host_reads: log.count(96),
            host_writes: log.count(112),
            media_errors: log.count(128),
            error_log_entries: log.count(144),
            capacity_bytes: capacity,
            unallocated_bytes: capacity.map(|_| log.count(176)), // UEGCAP
        }
    }
}

impl PredictableLatency {
    /// Reads the log of NVM Set `set`.
    pub fn parse(set: u16, log: &[u8; LOG_BYTES]) -> Self {
        let log = Fields(log);
        let reported = |at| Some(log.u64(at)).filter(|&n| n > 0);
        let window = match log.u8(0) & 0b111 {
            1 => Window::Deterministic,
            2 => Window::NonDeterministic,
            _ => Window::NotUsed,
        };
        // In the window, nothing left is news; outside it says nothing.
        let left = |at| (window == Window::Deterministic).then(|| log.u64(at));
        Self {
            nvm_set_id: set,
            window,
            deterministic_reads: reported(32),
            deterministic_writes: reported(40),
            deterministic_max_ms: reported(48),
            housekeeping_min_high_ms: reported(56),
            housekeeping_min_low_ms: reported(64),
            deterministic_reads_left: left(128),
            deterministic_writes_left: left(136),
            deterministic_ms_left: left(144),
        }
    }
}

/// Reads the log of supported log pages: four bytes for each identifier, bit 0 says that it is there.
pub fn parse_supported(log: &[u8; SUPPORTED_BYTES]) -> Vec<SupportedLog> {
    let log = Fields(log);
    (0..=u8::MAX)
        .filter(|&id| log.u32(4 * usize::from(id)) & 1 == 1)
        .map(|id| SupportedLog { id, name: name(id) })
        .collect()
}

/// A log page's name: Base Specification 2.0, figure 202, and 2.1 for flexible data placement.
fn name(id: u8) -> Option<&'static str> {
    Some(match id {
        0x00 => "supported log pages",
        0x01 => "error information",
        0x02 => "SMART / health information",
        0x03 => "firmware slot information",
        0x04 => "changed namespace list",
        0x05 => "commands supported and effects",
        0x06 => "device self-test",
        0x07 => "telemetry host-initiated",
        0x08 => "telemetry controller-initiated",
        0x09 => "endurance group information",
        0x0A => "predictable latency per NVM set",
        0x0B => "predictable latency event aggregate",
        0x0C => "asymmetric namespace access",
        0x0D => "persistent event log",
        0x0F => "endurance group event aggregate",
        0x10 => "media unit status",
        0x11 => "supported capacity configuration list",
        0x12 => "feature identifiers supported and effects",
        0x13 => "NVMe-MI commands supported and effects",
        0x14 => "command and feature lockdown",
        0x15 => "boot partition",
        0x16 => "rotational media information",
        0x20 => "FDP configurations",
        0x21 => "reclaim unit handle usage",
        0x22 => "FDP statistics",
        0x23 => "FDP events",
        0x80 => "reservation notification",
        0x81 => "sanitize status",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(log: &mut [u8], at: usize, bytes: &[u8]) {
        log[at..at + bytes.len()].copy_from_slice(bytes);
    }

    #[test]
    fn the_smart_log_is_read_where_the_specification_puts_its_fields() {
        let mut log = [0u8; LOG_BYTES];
        log[0] = 0b10_0010;
        put(&mut log, 1, &310u16.to_le_bytes());
        log[3] = 97;
        log[4] = 10;
        log[5] = 12;
        // The counters of 16 bytes, 32 to 191, numbered from 1.
        for n in 0..10u8 {
            put(&mut log, 32 + 16 * usize::from(n), &u128::from(n + 1).to_le_bytes());
        }
        put(&mut log, 192, &21u32.to_le_bytes());
        put(&mut log, 196, &22u32.to_le_bytes());
        put(&mut log, 202, &(273u16 + 55).to_le_bytes());
        for n in 0..4u32 {
            put(&mut log, 216 + 4 * n as usize, &(31 + n).to_le_bytes());
        }
        let smart = SmartLog::parse(&log);
        let mut sensors_celsius = [None; 8];
        sensors_celsius[1] = Some(55);
        let expected = SmartLog {
            critical_warning: 0x22,
            warnings: vec![
                CriticalWarning::Temperature,
                CriticalWarning::PersistentMemoryUnreliable,
            ],
            temperature_celsius: Some(37),
            sensors_celsius,
            spare_percent: 97,
            spare_threshold_percent: 10,
            percent_used: 12,
            read_bytes: 512_000,
            written_bytes: 1_024_000,
            host_reads: 3,
            host_writes: 4,
            busy_minutes: 5,
            power_cycles: 6,
            power_on_hours: 7,
            unsafe_shutdowns: 8,
            media_errors: 9,
            error_log_entries: 10,
            warning_temperature_minutes: 21,
            critical_temperature_minutes: 22,
            throttle_light_count: 31,
            throttle_heavy_count: 32,
            throttle_light_seconds: 33,
            throttle_heavy_seconds: 34,
        };
        assert_eq!(smart, expected);
    }

    #[test]
    fn a_counter_beyond_64_bits_stays_at_the_greatest_number() {
        let log = [0xFFu8; LOG_BYTES];
        let smart = SmartLog::parse(&log);
        assert_eq!((smart.written_bytes, smart.power_cycles), (u64::MAX, u64::MAX));
        assert_eq!(EnduranceGroup::parse(1, &log).media_written_bytes, Some(u64::MAX));
    }

    #[test]
    fn a_temperature_of_zero_kelvin_is_not_reported() {
        let smart = SmartLog::parse(&[0; LOG_BYTES]);
        assert_eq!(smart.temperature_celsius, None);
        assert_eq!(smart.sensors_celsius, [None; 8]);
    }

    #[test]
    fn an_endurance_group_counts_in_billions_and_tells_nothing_by_zero() {
        let mut log = [0u8; LOG_BYTES];
        log[3] = 100;
        log[5] = 3;
        for (n, value) in (1u128..=8).enumerate() {
            put(&mut log, 32 + 16 * n, &value.to_le_bytes());
        }
        put(&mut log, 48, &[0; 16]);
        put(&mut log, 160, &4_000_000_000_000u128.to_le_bytes());
        let group = EnduranceGroup::parse(7, &log);
        assert_eq!((group.id, group.spare_percent, group.percent_used), (7, 100, 3));
        assert_eq!(group.endurance_bytes, Some(1_000_000_000));
        assert_eq!(group.read_bytes, None);
        assert_eq!(group.written_bytes, Some(3_000_000_000));
        assert_eq!(group.media_written_bytes, Some(4_000_000_000));
        assert_eq!((group.host_reads, group.host_writes), (5, 6));
        assert_eq!((group.media_errors, group.error_log_entries), (7, 8));
        assert_eq!(group.capacity_bytes, Some(4_000_000_000_000));
        assert_eq!(group.unallocated_bytes, Some(0));
    }

    #[test]
    fn what_is_left_of_a_deterministic_window_is_told_inside_one_only() {
        let mut log = [0u8; LOG_BYTES];
        for (at, value) in [(32, 100u64), (40, 20), (48, 500), (56, 60), (64, 5), (128, 99)] {
            put(&mut log, at, &value.to_le_bytes());
        }
        let idle = PredictableLatency::parse(2, &log);
        assert_eq!((idle.nvm_set_id, idle.window), (2, Window::NotUsed));
        assert_eq!((idle.deterministic_reads, idle.deterministic_reads_left), (Some(100), None));
        assert_eq!(idle.deterministic_max_ms, Some(500));
        log[0] = 1;
        let inside = PredictableLatency::parse(2, &log);
        assert_eq!(inside.window, Window::Deterministic);
        assert_eq!(
            (inside.deterministic_reads_left, inside.deterministic_ms_left),
            (Some(99), Some(0))
        );
        assert_eq!(
            (inside.housekeeping_min_high_ms, inside.housekeeping_min_low_ms),
            (Some(60), Some(5))
        );
    }

    #[test]
    fn supported_logs_are_named_and_a_vendors_own_are_numbered() {
        let mut log = [0u8; SUPPORTED_BYTES];
        for id in [0x02usize, 0x09, 0xCA] {
            log[4 * id] = 1;
        }
        log[4 * 0x0D + 1] = 1; // another bit than the one that says it is there
        let found: Vec<_> = parse_supported(&log).into_iter().map(|l| (l.id, l.name)).collect();
        let expected = [
            (0x02, Some("SMART / health information")),
            (0x09, Some("endurance group information")),
            (0xCA, None),
        ];
        assert_eq!(found, expected);
    }
}
