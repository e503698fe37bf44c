//! Flexible data placement: Technical Proposal 4146, part of NVM Express Base Specification 2.1.

use super::fields::Fields;
use super::{Admin, Status};
use crate::health::SetHealth;
use crate::spec::{Isolation, Placement};

/// The feature's value: placement is on (FDPE), with the first configuration (FDPCI).
pub(super) const ENABLED: u32 = 1;

/// Length of the list's head, and of a descriptor without its handles.
const HEAD_BYTES: usize = 16;
const DESCRIPTOR_BYTES: usize = 64;

impl Admin {
    /// Placement, and what an endurance group has been through; each set is a group of its own.
    pub(super) fn placed(&self, group: u16) -> Result<(Placement, &SetHealth), Status> {
        let placement = self.spec.placement.ok_or(Status::INVALID_FIELD)?;
        let index = usize::from(group).checked_sub(1).ok_or(Status::INVALID_FIELD)?;
        Ok((placement, self.health.sets.get(index).ok_or(Status::INVALID_FIELD)?))
    }

    /// FDP Configurations (20h): the one that there is.
    pub(super) fn placement_configurations(&self, group: u16) -> Result<Vec<u8>, Status> {
        let (placement, _) = self.placed(group)?;
        let handles = placement.handles as usize;
        let length = DESCRIPTOR_BYTES + 4 * handles;
        let whole = HEAD_BYTES + length;
        let mut log = Fields::new(whole);
        log.u16(0, 0) // NUMFDPC, from 0
            .u8(2, 0) // version
            .u32(4, whole as u32); // size
        let at = HEAD_BYTES;
        log.u16(at, length as u16) // DSZE
            .u8(at + 2, 1 << 7) // FDPA: valid
            .u32(at + 4, 1) // NRG
            .u16(at + 8, handles as u16) // NRUH
            .u16(at + 10, 0) // MAXPIDS, from 0: a namespace's first handle
            .u32(at + 12, self.spec.sets.namespaces.len() as u32) // NNSS
            .u64(at + 16, self.stripe_block_bytes(group)); // RUNS
        let kind = match placement.isolation {
            Isolation::Initial => 1,
            Isolation::Persistent => 2,
        };
        for handle in 0..handles {
            log.u8(at + DESCRIPTOR_BYTES + 4 * handle, kind); // RUHT
        }
        Ok(log.bytes())
    }

    /// FDP Statistics (22h).
    pub(super) fn placement_statistics(&self, group: u16) -> Result<Vec<u8>, Status> {
        let (_, set) = self.placed(group)?;
        let mut log = Fields::new(64);
        let erased = set.erases_mean * set.physical_bytes as f64;
        log.count(0, set.written_bytes) // HBMW
            .count(16, set.media_written_bytes) // MBMW
            .count(32, erased.round() as u64); // MBE
        Ok(log.bytes())
    }

    /// Bytes of a group's superblocks.
    fn stripe_block_bytes(&self, group: u16) -> u64 {
        let dies = self.spec.dies_of_set(u32::from(group) - 1).len();
        self.spec.flash.block_bytes() * dies as u64
    }
}
