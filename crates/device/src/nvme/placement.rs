//! Flexible data placement: which configurations an endurance group has, and which is on.
//!
//! Technical Proposal 4146, part of NVM Express Base Specification 2.1: FDP Configurations (log 20h), FDP
//! Statistics (log 22h), feature Flexible Data Placement (1Dh).

use serde::Serialize;

use super::admin::LogPage;
use super::fields::Fields;

/// The feature that switches placement on for an endurance group; CDW11 names the group.
pub const FEATURE: u8 = 0x1D;

/// Length in bytes of FDP Statistics.
pub const STATISTICS_BYTES: usize = 64;

/// Length in bytes of the head of FDP Configurations, in which the length of all of it stands.
pub const HEAD_BYTES: usize = 16;

/// The longest list of configurations that is read.
pub const CONFIGURATIONS_BYTES_MAX: usize = 64 << 10;

/// FDP Configurations of an endurance group (20h).
pub fn configurations_page(group: u16) -> LogPage {
    LogPage { id: 0x20, specific: group, name: "an endurance group's FDP configurations" }
}

/// FDP Statistics of an endurance group (22h).
pub fn statistics_page(group: u16) -> LogPage {
    LogPage { id: 0x22, specific: group, name: "an endurance group's FDP statistics" }
}

/// An endurance group's placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// The endurance group.
    pub endurance_group_id: u16,
    /// Whether it is on; None: not told.
    pub enabled: Option<bool>,
    /// Which configuration is on, an index of `configurations`; None: it is off, or not told.
    pub configuration_in_use: Option<u8>,
    /// The configurations that there are.
    pub configurations: Vec<Configuration>,
    /// What has been written; None while placement is off.
    pub statistics: Option<Statistics>,
}

/// A configuration (FDP Configuration Descriptor).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Configuration {
    /// Whether it can be used.
    pub valid: bool,
    /// Whether it needs the volatile write cache.
    pub volatile_write_cache: bool,
    /// How many reclaim groups.
    pub reclaim_groups: u32,
    /// How many reclaim unit handles.
    pub reclaim_unit_handles: u16,
    /// How many placement handles a namespace can have.
    pub placement_handles_max: u32,
    /// How many namespaces can use it.
    pub namespaces_max: u32,
    /// Nominal size of a reclaim unit in bytes: what is trimmed whole costs no copying.
    pub reclaim_unit_bytes: u64,
    /// After how many seconds an unfinished reclaim unit may be given up; None: never.
    pub reclaim_unit_seconds_max: Option<u32>,
    /// How each handle's data is kept apart.
    pub isolation: Vec<Isolation>,
}

/// Reclaim unit handle types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Apart when written, and perhaps together after the drive has moved it.
    Initial,
    /// Apart always.
    Persistent,
    /// A type that this version of the specification doesn't know.
    Other,
}

/// What has been written under placement (FDP Statistics).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// Bytes written by the host, metadata included.
    pub host_written_bytes: u64,
    /// Bytes written to the medium.
    pub media_written_bytes: u64,
    /// Bytes erased.
    pub media_erased_bytes: u64,
}

/// How long the whole list is, from its head; within what is read, and in dwords.
pub fn configurations_bytes(head: &[u8; HEAD_BYTES]) -> usize {
    let told = Fields(head).u32(4) as usize;
    told.clamp(HEAD_BYTES, CONFIGURATIONS_BYTES_MAX).next_multiple_of(4)
}

/// Reads FDP Configurations as far as they are whole.
pub fn parse_configurations(log: &[u8]) -> Vec<Configuration> {
    let mut found = Vec::new();
    if log.len() < HEAD_BYTES {
        return found;
    }
    // Counted from 0.
    let count = usize::from(Fields(log).u16(0)) + 1;
    let mut rest = &log[HEAD_BYTES..];
    while found.len() < count && rest.len() >= DESCRIPTOR_BYTES {
        let length = usize::from(Fields(rest).u16(0)); // DSZE
        if length < DESCRIPTOR_BYTES || length > rest.len() {
            break;
        }
        found.push(Configuration::parse(&rest[..length]));
        rest = &rest[length..];
    }
    found
}

/// A descriptor without its handles.
const DESCRIPTOR_BYTES: usize = 64;

impl Configuration {
    fn parse(bytes: &[u8]) -> Self {
        let data = Fields(bytes);
        let attributes = data.u8(2); // FDPA
        let handles = data.u16(8); // NRUH
        Self {
            valid: attributes >> 7 & 1 == 1,
            volatile_write_cache: attributes >> 4 & 1 == 1,
            reclaim_groups: data.u32(4), // NRG
            reclaim_unit_handles: handles,
            placement_handles_max: u32::from(data.u16(10)) + 1, // MAXPIDS, from 0
            namespaces_max: data.u32(12),                       // NNSS
            reclaim_unit_bytes: data.u64(16),                   // RUNS
            reclaim_unit_seconds_max: Some(data.u32(24)).filter(|&n| n > 0), // ERUTL
            isolation: bytes[DESCRIPTOR_BYTES..]
                .chunks_exact(4)
                .take(handles.into())
                .map(|handle| match handle[0] {
                    1 => Isolation::Initial,
                    2 => Isolation::Persistent,
                    _ => Isolation::Other,
                })
                .collect(),
        }
    }
}

impl Statistics {
    /// Reads FDP Statistics.
    pub fn parse(log: &[u8; STATISTICS_BYTES]) -> Self {
        let log = Fields(log);
        Self {
            host_written_bytes: log.count(0),   // HBMW
            media_written_bytes: log.count(16), // MBMW
            media_erased_bytes: log.count(32),  // MBE
        }
    }
}

/// Reads the feature's value: whether placement is on (FDPE), and with which configuration (FDPCI).
pub fn parse_feature(value: u32) -> (bool, Option<u8>) {
    let enabled = value & 1 == 1;
    (enabled, enabled.then_some((value >> 8) as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two configurations, of two handles and of one.
    fn log() -> Vec<u8> {
        let mut log = vec![0; HEAD_BYTES];
        log[0] = 1;
        for (handles, units) in [(2u8, 64u64 << 20), (1, 1 << 30)] {
            let mut bytes = vec![0; DESCRIPTOR_BYTES + 4 * usize::from(handles)];
            bytes[0] = bytes.len() as u8;
            bytes[2] = 0x90;
            bytes[4] = 1;
            bytes[8] = handles;
            bytes[10] = 7;
            bytes[12] = 32;
            bytes[16..24].copy_from_slice(&units.to_le_bytes());
            bytes[DESCRIPTOR_BYTES] = 1;
            if handles == 2 {
                bytes[DESCRIPTOR_BYTES + 4] = 2;
            }
            log.extend(bytes);
        }
        let length = log.len() as u32;
        log[4..8].copy_from_slice(&length.to_le_bytes());
        log
    }

    #[test]
    fn every_configuration_is_read_with_its_handles() {
        let found = parse_configurations(&log());
        let first = Configuration {
            valid: true,
            volatile_write_cache: true,
            reclaim_groups: 1,
            reclaim_unit_handles: 2,
            placement_handles_max: 8,
            namespaces_max: 32,
            reclaim_unit_bytes: 64 << 20,
            reclaim_unit_seconds_max: None,
            isolation: vec![Isolation::Initial, Isolation::Persistent],
        };
        assert_eq!(found[0], first);
        assert_eq!((found.len(), found[1].reclaim_unit_bytes), (2, 1 << 30));
    }

    #[test]
    fn a_list_that_is_cut_or_lies_about_its_lengths_gives_what_is_whole() {
        let whole = log();
        for length in 0..whole.len() {
            let found = parse_configurations(&whole[..length]).len();
            assert!(found <= 1, "{length} bytes give {found}");
        }
        let mut lie = whole.clone();
        lie[HEAD_BYTES..HEAD_BYTES + 2].copy_from_slice(&[0, 0]);
        assert!(parse_configurations(&lie).is_empty());
        let mut head = [0xFF; HEAD_BYTES];
        assert_eq!(configurations_bytes(&head), CONFIGURATIONS_BYTES_MAX);
        head[4..8].copy_from_slice(&3u32.to_le_bytes());
        assert_eq!(configurations_bytes(&head), HEAD_BYTES);
    }

    #[test]
    fn the_configuration_in_use_is_told_only_while_placement_is_on() {
        assert_eq!(parse_feature(0x0301), (true, Some(3)));
        assert_eq!(parse_feature(0x0300), (false, None));
    }

    #[test]
    fn statistics_are_counted_in_bytes() {
        let mut log = [0; STATISTICS_BYTES];
        (log[0], log[16], log[32]) = (10, 20, 30);
        let found = Statistics::parse(&log);
        let expected =
            Statistics { host_written_bytes: 10, media_written_bytes: 20, media_erased_bytes: 30 };
        assert_eq!(found, expected);
    }
}
