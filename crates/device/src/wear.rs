//! How much of its rated life an NVMe drive says it has used.
//!
//! The share of the SMART log that decides whether a run is worth its writes. Anything that prevents
//! reading it is a reason in words, never a guess.

use std::path::Path;

use serde::Serialize;

use crate::nvme::Controller;
use crate::nvme::log::{self, SmartLog};
use crate::sysfs::DeviceNumber;

/// A drive's wear, or why it isn't known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wear {
    /// What the drive reports of itself.
    Known(Health),
    /// Not known.
    Unknown {
        /// The reason.
        reason: String,
    },
}

impl Wear {
    pub(crate) fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown { reason: reason.into() }
    }

    /// Percent of the rated life used; it may pass 100.
    pub fn percent_used(&self) -> Option<u8> {
        match self {
            Self::Known(health) => Some(health.percent_used),
            Self::Unknown { .. } => None,
        }
    }
}

/// The fields of the SMART log that say how worn a drive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Percentage Used: the vendor's estimate of life used; 255 stands for 255 and more.
    pub percent_used: u8,
    /// Available Spare, in percent of what there was when new.
    pub spare_percent: u8,
    /// Bytes written by the host over the drive's life (Data Units Written x 512,000).
    pub written_bytes: u64,
    /// Composite Temperature in degrees Celsius; None if the drive doesn't say.
    pub temperature_celsius: Option<i32>,
    /// Critical Warning bits; 0 is good.
    pub critical_warning: u8,
}

/// Asks the controller whose character device is `node` and whose number sysfs gives as `expected`.
pub(crate) fn read(node: &Path, expected: Option<DeviceNumber>) -> Wear {
    let mut answer = [0; log::LOG_BYTES];
    let asked = Controller::open(node, expected)
        .and_then(|controller| controller.log(log::HEALTH, &mut answer));
    match asked {
        Ok(()) => Wear::Known(SmartLog::parse(&answer).into()),
        Err(error) => Wear::unknown(error.to_string()),
    }
}

impl From<SmartLog> for Health {
    fn from(log: SmartLog) -> Self {
        Self {
            percent_used: log.percent_used,
            spare_percent: log.spare_percent,
            written_bytes: log.written_bytes,
            temperature_celsius: log.temperature_celsius,
            critical_warning: log.critical_warning,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_may_not_be_asked_has_an_unknown_wear_with_its_reason() {
        let wear = read(Path::new("/dev/null"), Some(DeviceNumber { major: 240, minor: 0 }));
        assert!(
            matches!(&wear, Wear::Unknown { reason } if reason.contains("not the controller")),
            "{wear:?}"
        );
        assert_eq!(wear.percent_used(), None);
    }

    #[test]
    fn wear_is_the_smart_logs_own() {
        let mut log = [0; log::LOG_BYTES];
        (log[3], log[5], log[48]) = (97, 12, 2);
        let health = Health::from(SmartLog::parse(&log));
        assert_eq!((health.percent_used, health.spare_percent), (12, 97));
        assert_eq!(health.written_bytes, 1_024_000);
    }
}
