//! Predictable Latency Mode: Base Specification 2.0, sections 5.16.1.11 and 5.27.1.16.

use super::fields::Fields;
use super::{Admin, Status};
use crate::drive::Window;
use crate::health::SetWindow;
use crate::spec::Predictable;

/// A window by its number: 0 without the mode.
pub(super) fn number(window: Option<SetWindow>) -> u32 {
    match window.map(|it| it.window) {
        None => 0,
        Some(Window::Deterministic) => 1,
        Some(Window::NonDeterministic) => 2,
    }
}

impl Admin {
    /// What windows of a drive that has them are like, and the one that an NVM Set, from 1, is in.
    pub(super) fn window_of(&self, set: u16) -> Result<(Predictable, Option<SetWindow>), Status> {
        let predictable = self.spec.predictable.ok_or(Status::INVALID_FIELD)?;
        let index = usize::from(set).checked_sub(1).ok_or(Status::INVALID_FIELD)?;
        let health = self.health.sets.get(index).ok_or(Status::INVALID_FIELD)?;
        Ok((predictable, health.window))
    }

    /// Predictable Latency Per NVM Set (0Ah).
    pub(super) fn predictable_latency(&self, set: u16) -> Result<Vec<u8>, Status> {
        let (limits, window) = self.window_of(set)?;
        let mut log = Fields::new(512);
        log.u8(0, number(window) as u8) // Status
            .u64(32, limits.reads) // DTWIN Reads Typical
            .u64(40, limits.writes) // DTWIN Writes Typical
            .u64(48, limits.longest_ms as u64) // DTWIN Time Maximum
            .u64(56, limits.recovery_ms as u64) // NDWIN Time Minimum High
            .u64(64, limits.recovery_least_ms as u64); // NDWIN Time Minimum Low
        if let Some(window) = window {
            log.u64(128, window.reads_left) // DTWIN Reads Estimate
                .u64(136, window.writes_left) // DTWIN Writes Estimate
                .u64(144, window.ms_left); // DTWIN Time Estimate
        }
        Ok(log.bytes())
    }
}
