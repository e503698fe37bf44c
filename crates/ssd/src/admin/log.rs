//! Log pages: Base Specification 2.0, section 5.16.1.

use base::Duration;

use super::fields::Fields;
use super::{Admin, Status};
use crate::heat::Throttled;

/// Length of the SMART and endurance group logs.
const BYTES: usize = 512;

/// The model retires no blocks, so that its spare is always whole.
const SPARE_PERCENT: u8 = 100;
/// Below which spare it would warn, in percent, as most drives do.
const SPARE_THRESHOLD_PERCENT: u8 = 10;

/// SMART counts thousands of 512 bytes, and endurance groups billions of bytes: both rounded up.
const DATA_UNIT_BYTES: u64 = 512_000;
const BILLION: u64 = 1_000_000_000;

impl Admin {
    /// Supported log pages (00h): four bytes for each identifier, bit 0 says that it is there.
    pub(super) fn supported(&self) -> Vec<u8> {
        let mut log = Fields::new(1024);
        let placement: &[usize] = if self.spec.placement.is_some() { &[0x20, 0x22] } else { &[] };
        let predictable: &[usize] = if self.spec.predictable.is_some() { &[0x0A] } else { &[] };
        for page in [0x00, 0x02, 0x09].iter().chain(predictable).chain(placement) {
            log.u32(4 * page, 1);
        }
        log.bytes()
    }

    /// SMART / Health Information (02h) of the whole drive. Without simulated heat, temperatures stay 0, "not reported".
    pub(super) fn smart(&self) -> Vec<u8> {
        let health = &self.health;
        // The drive has lived as long as the set that has lived longest.
        let used = health.sets.iter().map(|set| set.life_used).fold(0.0, f64::max);
        let mut log = Fields::new(BYTES);
        log.u8(3, SPARE_PERCENT)
            .u8(4, SPARE_THRESHOLD_PERCENT)
            .u8(5, percent(used))
            .count(32, health.read_bytes.div_ceil(DATA_UNIT_BYTES))
            .count(48, health.written_bytes.div_ceil(DATA_UNIT_BYTES))
            .count(64, health.reads)
            .count(80, health.writes)
            .count(96, whole(health.busy, Duration::from_secs(60)))
            // Power came once to begin with, and again after each time that it went.
            .count(112, health.unsafe_shutdowns.saturating_add(1))
            .count(128, whole(health.power_on, Duration::from_secs(3600)))
            .count(144, health.unsafe_shutdowns);
        if let Some(thermal) = &health.thermal {
            let seconds =
                |time| u32::try_from(whole(time, Duration::from_secs(1))).unwrap_or(u32::MAX);
            let times = |throttled: &Throttled| u32::try_from(throttled.times).unwrap_or(u32::MAX);
            let minutes = |throttled: &Throttled| seconds(throttled.time) / 60;
            log.u16(1, kelvin(thermal.celsius)) // Composite Temperature
                .u32(192, minutes(&thermal.light) + minutes(&thermal.heavy)) // above WCTEMP
                .u32(196, minutes(&thermal.heavy)) // above CCTEMP
                .u32(216, times(&thermal.light)) // transitions, then seconds, of each management temperature
                .u32(220, times(&thermal.heavy))
                .u32(224, seconds(thermal.light.time))
                .u32(228, seconds(thermal.heavy.time));
        }
        log.bytes()
    }

    /// Endurance Group Information (09h): each set is a group of its own, of the same number.
    pub(super) fn endurance_group(&self, id: u16) -> Result<Vec<u8>, Status> {
        let index = usize::from(id).checked_sub(1).ok_or(Status::INVALID_FIELD)?;
        let set = self.health.sets.get(index).ok_or(Status::INVALID_FIELD)?;
        let lifetime = set.physical_bytes.saturating_mul(self.spec.endurance.cycles.into());
        let mut log = Fields::new(BYTES);
        log.u8(3, SPARE_PERCENT)
            .u8(4, SPARE_THRESHOLD_PERCENT)
            .u8(5, percent(set.life_used))
            .count(32, lifetime.div_ceil(BILLION)) // Endurance Estimate
            .count(48, set.read_bytes.div_ceil(BILLION))
            .count(64, set.written_bytes.div_ceil(BILLION))
            .count(80, set.media_written_bytes.div_ceil(BILLION))
            .count(160, set.capacity_bytes + set.unallocated_bytes); // TEGCAP
        // With sets, commands are counted for the drive alone, and none of the group is outside its set.
        if !self.tells_sets() {
            log.count(96, self.health.reads)
                .count(112, self.health.writes)
                .count(176, set.unallocated_bytes); // UEGCAP
        }
        Ok(log.bytes())
    }
}

/// A temperature in kelvins, as logs and limits have it.
pub(super) fn kelvin(celsius: f64) -> u16 {
    (celsius + 273.0).round() as u16
}

/// Percentage Used: 255 stands for 255 and more.
fn percent(life_used: f64) -> u8 {
    (life_used * 100.0).round() as u8
}

/// How many whole units are in a time.
fn whole(time: Duration, unit: Duration) -> u64 {
    time.as_nanos() / unit.as_nanos()
}
