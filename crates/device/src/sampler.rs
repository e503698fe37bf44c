//! A drive's condition beside a run, about once a second: what explains a drop in speed (heat, link) and
//! what a run has cost (wear, bytes written).
//!
//! A sample is one or two log pages and a few lines of sysfs: microseconds of processor time, and no
//! allocation that grows. The kernel asks for CAP_SYS_ADMIN at each log page: once a process has
//! given up root, temperature and link still come, and the sample says why the rest doesn't.

use std::path::Path;

use serde::Serialize;

use crate::facts;
use crate::identity::{self, IdentityError};
use crate::link::{Link, Place};
use crate::nvme::log::SmartLog;
use crate::nvme::{AdminError, Controller};
use crate::sysfs::System;
use crate::temperature::Sensor;

/// Asks one drive again and again.
#[derive(Debug)]
pub struct Sampler {
    /// An NVMe drive's controller, or why there is none to ask.
    controller: Result<Controller, String>,
    /// The endurance group that counts what the medium is written.
    group: Option<u16>,
    sensor: Option<Sensor>,
    link: Option<Place>,
}

/// A drive's condition at one moment. What the drive doesn't tell is None.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Composite temperature in degrees Celsius.
    pub temperature_celsius: Option<i32>,
    /// Critical Warning bits of the SMART log; 0 is good.
    pub critical_warning: Option<u8>,
    /// Percent of the rated life used.
    pub percent_used: Option<u8>,
    /// Bytes read by the host over the drive's life.
    pub read_bytes: Option<u64>,
    /// Bytes written by the host over the drive's life. Drives count in steps of 512,000 bytes at best.
    pub written_bytes: Option<u64>,
    /// Bytes written to the medium over the life of the drive's endurance group, to the next billion.
    pub media_written_bytes: Option<u64>,
    /// Data that the drive could not give back unharmed, over its life.
    pub media_errors: Option<u64>,
    /// How often and how long it was slowed down by heat.
    pub throttle: Option<Throttle>,
    /// Its link.
    pub link: Option<Link>,
    /// Why the log is not told, if it isn't.
    pub not_told: Option<String>,
}

/// Counters of heat over the drive's life. A drive that doesn't count leaves them at 0, so that only
/// a difference tells something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Throttle {
    /// Times that it went into light throttling.
    pub light_count: u32,
    /// Times that it went into heavy throttling.
    pub heavy_count: u32,
    /// Seconds in light throttling.
    pub light_seconds: u32,
    /// Seconds in heavy throttling.
    pub heavy_seconds: u32,
    /// Minutes at or above the warning temperature.
    pub warning_minutes: u32,
    /// Minutes at or above the critical temperature.
    pub critical_minutes: u32,
}

impl Sampler {
    /// Gets ready to sample a target. A file has nothing to sample, and its samples say so.
    ///
    /// # Errors
    /// If the target isn't there, or is neither a drive nor a file.
    pub fn open(path: &Path) -> Result<Self, IdentityError> {
        Self::open_in(&System::default(), path)
    }

    /// [`Sampler::open`] in another system. The path is taken as it is, not below the system's root.
    ///
    /// # Errors
    /// As [`Sampler::open`].
    pub fn open_in(system: &System, path: &Path) -> Result<Self, IdentityError> {
        let drive = identity::describe_in(system, path)?;
        let disk = facts::disk(system, path);
        let namespace = drive.nvme.as_ref();
        let controller = match namespace.and_then(|namespace| namespace.controllers.first()) {
            Some(name) => {
                let (node, number) = identity::controller_node(system, name);
                Controller::open(&node, number).map_err(|error| error.to_string())
            }
            None => Err("it is no NVMe drive, and only those have the log".to_owned()),
        };
        let group = controller.as_ref().ok().zip(namespace.and_then(|namespace| namespace.id));
        Ok(Self {
            group: group.and_then(|(controller, nsid)| group_of(controller, nsid)),
            controller,
            sensor: facts::sensors(system, path, &drive).into_iter().next(),
            link: disk.and_then(|disk| identity::link_place(system, &disk, namespace)),
        })
    }

    /// The drive's condition now. It takes as long as the drive takes to answer, two seconds at most for
    /// each log page, so it belongs on a thread of its own.
    pub fn sample(&self) -> Sample {
        let log = match &self.controller {
            Ok(controller) => facts::smart(controller).map_err(|error| error.to_string()),
            Err(reason) => Err(reason.clone()),
        };
        let media_written_bytes = match (&self.controller, self.group, &log) {
            (Ok(controller), Some(group), Ok(_)) => facts::endurance_group(controller, group)
                .ok()
                .and_then(|group| group.media_written_bytes),
            _ => None,
        };
        let sensed = || Some(self.sensor.as_ref()?.read()?.celsius);
        Sample::of(log, media_written_bytes, sensed, self.link.as_ref().and_then(Place::read))
    }
}

/// The namespace's endurance group, if its log can be read.
pub(crate) fn group_of(controller: &Controller, nsid: u32) -> Option<u16> {
    let group = || -> Result<Option<u16>, AdminError> {
        Ok(match controller.namespace(nsid)?.endurance_group_id {
            Some(id) if facts::endurance_group(controller, id).is_ok() => Some(id),
            _ => None,
        })
    };
    group().ok().flatten()
}

impl Sample {
    fn of(
        log: Result<SmartLog, String>,
        media_written_bytes: Option<u64>,
        sensed: impl FnOnce() -> Option<i32>,
        link: Option<Link>,
    ) -> Self {
        let (log, not_told) = match log {
            Ok(log) => (Some(log), None),
            Err(reason) => (None, Some(reason)),
        };
        let log = log.as_ref();
        Self {
            temperature_celsius: log.and_then(|log| log.temperature_celsius).or_else(sensed),
            critical_warning: log.map(|log| log.critical_warning),
            percent_used: log.map(|log| log.percent_used),
            read_bytes: log.map(|log| log.read_bytes),
            written_bytes: log.map(|log| log.written_bytes),
            media_written_bytes,
            media_errors: log.map(|log| log.media_errors),
            throttle: log.map(|log| Throttle {
                light_count: log.throttle_light_count,
                heavy_count: log.throttle_heavy_count,
                light_seconds: log.throttle_light_seconds,
                heavy_seconds: log.throttle_heavy_seconds,
                warning_minutes: log.warning_temperature_minutes,
                critical_minutes: log.critical_temperature_minutes,
            }),
            link,
            not_told,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme::log::LOG_BYTES;

    #[test]
    fn a_sample_without_the_log_still_has_the_kernels_temperature_and_says_why() {
        let sample =
            Sample::of(Err("asking /dev/nvme0 needs root".to_owned()), None, || Some(41), None);
        assert_eq!(sample.temperature_celsius, Some(41));
        assert_eq!(
            (sample.percent_used, sample.written_bytes, sample.throttle),
            (None, None, None)
        );
        assert_eq!(sample.not_told.as_deref(), Some("asking /dev/nvme0 needs root"));
    }

    #[test]
    fn the_logs_own_temperature_is_preferred() {
        let mut log = [0; LOG_BYTES];
        log[1..3].copy_from_slice(&310u16.to_le_bytes());
        log[216] = 3;
        let sample = Sample::of(Ok(SmartLog::parse(&log)), Some(7), || Some(41), None);
        assert_eq!(sample.temperature_celsius, Some(37));
        assert_eq!(sample.throttle.map(|t| t.light_count), Some(3));
        assert_eq!((sample.media_written_bytes, sample.not_told), (Some(7), None));
    }

    #[test]
    fn a_file_is_sampled_as_having_nothing_to_tell() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let sample = Sampler::open(file.path()).unwrap().sample();
        assert_eq!(
            (sample.temperature_celsius, sample.written_bytes, sample.link),
            (None, None, None)
        );
        assert!(sample.not_told.is_some_and(|reason| reason.contains("no NVMe drive")));
    }
}
