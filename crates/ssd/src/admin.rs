//! What a simulated drive tells of itself: the bytes that an NVMe drive answers to Identify and Get Log Page.
//!
//! Byte offsets and values: NVM Express Base Specification 2.0 and NVM Command Set Specification 1.0, whose
//! abbreviations stand beside them. What the model doesn't have, such as heat, is told as "not reported".

mod fields;
mod identify;
mod log;
mod placement;
mod windows;

use std::fmt;

use base::Random;

use crate::health::{Health, SetHealth};
use crate::spec::{Link, Media, Spec};

/// Who answers for a drive.
#[derive(Clone, Debug)]
pub struct Admin {
    spec: Spec,
    /// With all sets, also those of a drive that has been through nothing yet.
    health: Health,
    identity: Identity,
    mark: [u64; 2],
}

/// A drive's names, SATA or NVMe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The model that it stands for.
    pub model: String,
    /// `SIM-` and 16 hexadecimal digits. They follow from specification, seed and place in the bank, on every
    /// machine; a drive of another specification, or of more parameters, is another drive.
    pub serial: String,
    /// This program's version: the model is the firmware.
    pub firmware: String,
}

/// An admin command that only asks, in the specification's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// Identify: 4096 bytes.
    Identify {
        /// Which data structure: 00h a namespace, 01h the controller, 02h active namespaces, 04h NVM Sets, 19h endurance
        /// groups.
        cns: u8,
        /// Of which namespace; or above which one the list begins; else 0.
        nsid: u32,
        /// The set or group from which a list begins, else 0.
        specific: u16,
    },
    /// Get Log Page, whole.
    Log {
        /// 00h supported pages, 02h SMART, 09h an endurance group, 0Ah an NVM Set's windows, 20h an endurance group's configurations of
        /// placement, 22h what was written under it.
        page: u8,
        /// The endurance group or NVM Set that the page is of, else 0.
        specific: u16,
    },
}

/// Why a drive refuses: status code type in bits 10:8, status code in bits 7:0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u16);

impl Status {
    /// Invalid Command Opcode.
    pub const INVALID_OPCODE: Self = Self(0x001);
    /// Invalid Field in Command.
    pub const INVALID_FIELD: Self = Self(0x002);
    /// Invalid Namespace or Format.
    pub const INVALID_NAMESPACE: Self = Self(0x00B);
    /// Invalid Log Page.
    pub const INVALID_LOG_PAGE: Self = Self(0x109);
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the simulated drive refuses with NVMe status {:#05x}", self.0)
    }
}

impl std::error::Error for Status {}

impl Identity {
    /// Of the drive of this specification and seed that is at `slot` in its bank.
    pub fn of(spec: &Spec, seed: u64, slot: usize) -> Self {
        Self::marked(spec, mark(spec, seed, slot))
    }

    fn marked(spec: &Spec, [first, _]: [u64; 2]) -> Self {
        Self {
            model: spec.model.clone(),
            serial: format!("SIM-{first:016X}"),
            firmware: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl Admin {
    /// Answers for the drive of this seed that is at `slot` in its bank. Its specification must have been checked. With a
    /// default `health` it is new.
    pub fn new(spec: &Spec, mut health: Health, seed: u64, slot: usize) -> Self {
        let drive = spec.of_drive(seed);
        for set in health.sets.len() as u32..spec.sets.count {
            health.sets.push(unused(&drive, set));
        }
        let mark = mark(spec, seed, slot);
        let identity = Identity::marked(spec, mark);
        Self { spec: spec.clone(), health, identity, mark }
    }

    /// Answers as the drive does, in full length.
    ///
    /// # Errors
    /// The status with which it refuses. A SATA drive knows none of these commands.
    pub fn answer(&self, query: Query) -> Result<Vec<u8>, Status> {
        if matches!(self.spec.link, Link::Sata { .. }) {
            return Err(Status::INVALID_OPCODE);
        }
        match query {
            Query::Identify { cns: 0x00, nsid, .. } => self.identify_namespace(nsid),
            Query::Identify { cns: 0x01, .. } => Ok(self.identify_controller()),
            Query::Identify { cns: 0x02, nsid, .. } => self.active_namespaces(nsid),
            Query::Identify { cns: 0x04, specific, .. } if self.tells_sets() => {
                Ok(self.nvm_sets(specific))
            }
            Query::Identify { cns: 0x19, specific, .. } => Ok(self.endurance_groups(specific)),
            Query::Identify { .. } => Err(Status::INVALID_FIELD),
            Query::Log { page: 0x00, .. } => Ok(self.supported()),
            Query::Log { page: 0x02, .. } => Ok(self.smart()),
            Query::Log { page: 0x09, specific } => self.endurance_group(specific),
            Query::Log { page: 0x0A, specific } => self.predictable_latency(specific),
            Query::Log { page: 0x20, specific } => self.placement_configurations(specific),
            Query::Log { page: 0x22, specific } => self.placement_statistics(specific),
            Query::Log { .. } => Err(Status::INVALID_LOG_PAGE),
        }
    }

    /// The value of a feature (Get Features): 13h, whether an NVM Set has Predictable Latency Mode on; 14h, its window; or 1Dh, an endurance
    /// group's placement.
    ///
    /// # Errors
    /// The status with which the drive refuses.
    pub fn feature(&self, id: u8, specific: u32) -> Result<u32, Status> {
        let group = u16::try_from(specific).map_err(|_| Status::INVALID_FIELD)?;
        match id {
            0x13 => self.window_of(group).map(|(_, window)| u32::from(window.is_some())),
            0x14 => self.window_of(group).map(|(_, window)| windows::number(window)),
            0x1D => self.placed(group).map(|_| placement::ENABLED),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// One set is the whole drive, and no drive tells of that. Its endurance group is told all the same: there the
    /// medium's writes are counted.
    fn tells_sets(&self) -> bool {
        self.spec.sets.count > 1
    }

    /// Whether data can be lost with the power: the medium of in-place drives is as fast as a buffer, and they have none.
    fn volatile(&self) -> bool {
        self.spec.flash.media == Media::Nand
            && self.spec.buffer.bytes > 0
            && !self.spec.buffer.protected
    }

    /// Bytes that the dies of these sets program at once.
    fn stripe_bytes(&self, sets: &[u32]) -> u64 {
        match self.spec.flash.media {
            Media::Nand => {
                let dies: usize = sets.iter().map(|&set| self.spec.dies_of_set(set).len()).sum();
                self.spec.flash.program_bytes() * dies as u64
            }
            Media::InPlace => self.spec.mapping.unit_bytes.into(),
        }
    }
}

/// A set of a new drive.
fn unused(spec: &Spec, set: u32) -> SetHealth {
    let in_set = spec.sets.namespaces.iter().filter(|namespace| namespace.sets.contains(&set));
    let capacity_bytes = in_set.map(|it| spec.namespace_bytes(it) / it.sets.len() as u64).sum();
    let share = spec.capacity_bytes / u64::from(spec.sets.count);
    let superblock_bytes = spec.flash.block_bytes() * spec.dies_of_set(set).len() as u64;
    SetHealth {
        capacity_bytes,
        physical_bytes: superblock_bytes * u64::from(spec.superblocks_of_set()),
        unallocated_bytes: share.saturating_sub(capacity_bytes),
        life_used: spec.endurance.used,
        ..SetHealth::default()
    }
}

/// 128 bits that are a drive's own: FNV-1a (Fowler, Noll, Vo) of all its parameters as Rust prints them, which is exact
/// and the same everywhere, spread by SplitMix64 with seed and slot.
fn mark(spec: &Spec, seed: u64, slot: usize) -> [u64; 2] {
    const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    let text = format!("{spec:?} {seed} {slot}");
    let hash = text.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    let mut random = Random::new(hash);
    [random.bits(), random.bits()]
}

#[cfg(test)]
mod tests;
