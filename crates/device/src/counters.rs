//! What a drive counts of its own work over its life: bytes of the host and of the medium, and slow
//! commands. The difference of two readings is what happened between them.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::facts;
use crate::identity::{self, IdentityError};
use crate::nvme::ocp::{ExtendedHealth, LatencyMonitor, OcpError};
use crate::nvme::{AdminError, Controller};
use crate::sampler::group_of;
use crate::sysfs::System;

/// Data Units Written of the SMART log counts thousands of 512 bytes.
const HOST_STEP_BYTES: u64 = 512_000;
/// An endurance group's log counts billions of bytes.
const GROUP_STEP_BYTES: u64 = 1_000_000_000;

/// Reads one drive's counters.
#[derive(Debug)]
pub struct CounterReader {
    controller: Controller,
    medium: Result<Medium, OcpError>,
    monitors_latency: bool,
}

/// Where a drive counts what its medium is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Medium {
    /// In OCP's extended SMART log (C0h), in bytes.
    ExtendedHealth,
    /// In the log of this endurance group (09h), in billions of bytes, and the host's beside them.
    EnduranceGroup(u16),
}

/// Bytes over a drive's life, the host's and the medium's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenBytes {
    /// Written by the host.
    pub host: u64,
    /// The counter of the host's moves in steps of this many bytes.
    pub host_step: u64,
    /// Written to the medium.
    pub media: u64,
    /// The counter of the medium's moves in steps of this many bytes.
    pub media_step: u64,
}

/// Why a drive's counters can't be read.
#[derive(Debug)]
pub enum CountersError {
    /// It isn't there, or is no drive.
    Identity(IdentityError),
    /// It is no NVMe drive.
    NotNvme {
        /// The target.
        path: PathBuf,
    },
    /// It didn't answer.
    Asking(AdminError),
    /// It has no count of its medium.
    NoMedium {
        /// The controller's node.
        node: PathBuf,
        /// Why OCP's log can't be read.
        reason: String,
    },
}

impl fmt::Display for CountersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity(error) => error.fmt(f),
            Self::NotNvme { path } => {
                write!(f, "{} is no NVMe drive, and only those count it", path.display())
            }
            Self::Asking(error) => error.fmt(f),
            Self::NoMedium { node, reason } => {
                write!(f, "{} doesn't count what its medium is written: {reason}", node.display())
            }
        }
    }
}

impl std::error::Error for CountersError {}

impl CounterReader {
    /// Gets ready to read a target's counters. A drive is asked once here for each page that it may
    /// lack, and never again for one that it does.
    ///
    /// # Errors
    /// If it is no NVMe drive, or can't be opened.
    pub fn open(path: &Path) -> Result<Self, CountersError> {
        let system = System::default();
        let drive = identity::describe_in(&system, path).map_err(CountersError::Identity)?;
        let namespace = drive.nvme.as_ref();
        let Some(name) = namespace.and_then(|namespace| namespace.controllers.first()) else {
            return Err(CountersError::NotNvme { path: path.to_owned() });
        };
        let (node, number) = identity::controller_node(&system, name);
        let controller = Controller::open(&node, number).map_err(CountersError::Asking)?;
        let nsid = namespace.and_then(|namespace| namespace.id);
        Ok(Self::of(controller, nsid))
    }

    /// The counters of a controller, of whose namespaces this is the one that is written.
    pub fn of(controller: Controller, nsid: Option<u32>) -> Self {
        let medium = match ExtendedHealth::ask(&controller) {
            Ok(_) => Ok(Medium::ExtendedHealth),
            Err(error) => {
                let group = nsid.and_then(|nsid| group_of(&controller, nsid));
                group.map(Medium::EnduranceGroup).ok_or(error)
            }
        };
        let monitors_latency = LatencyMonitor::ask(&controller).is_ok();
        Self { controller, medium, monitors_latency }
    }

    /// The controller's node. Several namespaces have one controller, and its counters are of them all.
    pub fn node(&self) -> &Path {
        self.controller.node()
    }

    /// Bytes over the drive's life.
    ///
    /// # Errors
    /// If the drive doesn't count its medium's, or doesn't answer.
    pub fn written(&self) -> Result<WrittenBytes, CountersError> {
        let no_medium = |error: &dyn fmt::Display| CountersError::NoMedium {
            node: self.node().to_owned(),
            reason: error.to_string(),
        };
        match &self.medium {
            Err(error) => Err(no_medium(error)),
            Ok(Medium::ExtendedHealth) => {
                let host = facts::smart(&self.controller).map_err(CountersError::Asking)?;
                let media = ExtendedHealth::ask(&self.controller).map_err(|e| no_medium(&e))?;
                Ok(WrittenBytes {
                    host: host.written_bytes,
                    host_step: HOST_STEP_BYTES,
                    media: media.media_written_bytes,
                    media_step: 1,
                })
            }
            Ok(Medium::EnduranceGroup(group)) => {
                let log = facts::endurance_group(&self.controller, *group);
                let log = log.map_err(CountersError::Asking)?;
                let (Some(host), Some(media)) = (log.written_bytes, log.media_written_bytes) else {
                    let reason = format!("its endurance group {group} reports no bytes yet");
                    return Err(no_medium(&reason));
                };
                let step = GROUP_STEP_BYTES;
                Ok(WrittenBytes { host, host_step: step, media, media_step: step })
            }
        }
    }

    /// The drive's own count of slow commands; None if it has none, or doesn't answer now.
    pub fn latency_monitor(&self) -> Option<LatencyMonitor> {
        self.monitors_latency.then(|| LatencyMonitor::ask(&self.controller).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme::{Answers, CommandError, Question};

    /// A controller that has these log pages: first bytes, and OCP's GUID where it is one of OCP's.
    #[derive(Debug, Default)]
    struct Drive {
        /// Data units that the host wrote.
        units: u64,
        /// Bytes of the medium in C0h, and its GUID.
        extended: Option<(u64, u128)>,
        /// Billions of bytes of the host and of the medium in endurance group 1.
        group: Option<(u64, u64)>,
    }

    const GUID: u128 = 0xAFD5_14C9_7C6F_4F9C_A4F2_BFEA_2810_AFC5;

    impl Answers for Drive {
        fn ask(&self, question: Question, answer: &mut [u8]) -> Result<u32, CommandError> {
            let mut put = |at: usize, value: u64| {
                answer[at..at + 8].copy_from_slice(&value.to_le_bytes());
            };
            match (question, self.extended, self.group) {
                (Question::Identify { cns: 0, .. }, _, group) => {
                    put(0, 1000);
                    put(102, u64::from(group.is_some()));
                    answer[130] = 12;
                }
                (Question::Log { page: 2, .. }, ..) => put(48, self.units),
                (Question::Log { page: 0xC0, .. }, Some((media, guid)), _) => {
                    put(0, media);
                    put(494, 3);
                    answer[496..].copy_from_slice(&guid.to_le_bytes());
                }
                (Question::Log { page: 9, specific: 1 }, _, Some((host, media))) => {
                    put(64, host);
                    put(80, media);
                }
                _ => return Err(CommandError::Status(0x109)),
            }
            Ok(0)
        }
    }

    fn written(drive: Drive) -> Result<WrittenBytes, String> {
        let controller = Controller::answered_by(Path::new("/dev/nvme7"), Box::new(drive));
        let reader = CounterReader::of(controller, Some(1));
        assert_eq!(reader.latency_monitor(), None, "it has none");
        reader.written().map_err(|error| error.to_string())
    }

    #[test]
    fn a_datacenter_drive_counts_its_medium_in_bytes() {
        let drive = Drive { units: 10, extended: Some((7_000_001, GUID)), group: Some((1, 2)) };
        let told =
            WrittenBytes { host: 5_120_000, host_step: 512_000, media: 7_000_001, media_step: 1 };
        assert_eq!(written(drive), Ok(told));
    }

    #[test]
    fn a_drive_without_the_log_of_ocp_counts_in_its_endurance_group() {
        for extended in [None, Some((7_000_001, GUID ^ 1))] {
            let drive = Drive { units: 10, extended, group: Some((3, 5)) };
            let step = 1_000_000_000;
            let told =
                WrittenBytes { host: 3 * step, host_step: step, media: 5 * step, media_step: step };
            assert_eq!(written(drive), Ok(told));
        }
    }

    #[test]
    fn a_drive_that_does_not_count_its_medium_says_why() {
        let why = written(Drive::default()).unwrap_err();
        assert!(why.contains("/dev/nvme7") && why.contains("C0h"), "{why}");
        let drive = Drive { extended: Some((1, GUID ^ 1)), ..Drive::default() };
        let why = written(drive).unwrap_err();
        assert!(why.contains("the vendor's own"), "{why}");
        let file = tempfile::NamedTempFile::new().unwrap();
        let why = CounterReader::open(file.path()).unwrap_err().to_string();
        assert!(why.contains("no NVMe drive"), "{why}");
    }
}
