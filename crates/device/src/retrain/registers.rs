//! The registers of a port: its PCI Express capability in configuration space, through its `config` file in sysfs.
//!
//! Offsets and bits: PCI Express Base Specification 6.0, sections 7.5.1 (header) and 7.5.3 (PCI Express capability).

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::RetrainError;

/// Status register of the header, and its bit that says that there are capabilities.
const STATUS: u64 = 0x06;
const HAS_CAPABILITIES: u16 = 1 << 4;
/// Where the list of capabilities begins.
const CAPABILITIES: u64 = 0x34;
/// PCI Express capability.
const PCI_EXPRESS: u8 = 0x10;
/// Capabilities lie behind the header of 64 bytes, each of 4 at least, in 256 bytes.
const CAPABILITIES_MAX: u32 = (256 - 64) / 4;

/// Offsets within the capability.
const PCIE_CAPABILITIES: u64 = 0x02;
const LINK_CAPABILITIES: u64 = 0x0C;
const LINK_CONTROL: u64 = 0x10;
const LINK_STATUS: u64 = 0x12;
const LINK_CAPABILITIES_2: u64 = 0x2C;
const LINK_CONTROL_2: u64 = 0x30;

/// Types of ports with a link below: root port, downstream port of a switch.
const PORTS: [u16; 2] = [0x4, 0x6];
/// Link Control 2 came with the second version of the capability.
const VERSION_MIN: u16 = 2;
/// Speeds in Link Capabilities, Link Status and Link Control 2 are the lowest four bits: 1 for 2.5 GT/s, and so on.
const SPEED: u16 = 0xF;
/// Link Capabilities: the port tells whether the data link layer is active.
const REPORTS_ACTIVE: u32 = 1 << 20;
/// Link Control.
const RETRAIN: u16 = 1 << 5;
/// Link Status.
const TRAINING: u16 = 1 << 11;
const ACTIVE: u16 = 1 << 13;

/// A port's registers.
#[derive(Debug)]
pub(super) struct Registers {
    config: PathBuf,
    /// Where the PCI Express capability begins.
    capability: u64,
}

/// How a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub generation: u8,
    /// It doesn't train, and carries data.
    pub is_up: bool,
}

/// Link Control 2 with another target speed, and all else as it is.
pub(super) const fn with_target(control_2: u16, generation: u8) -> u16 {
    control_2 & !SPEED | generation as u16 & SPEED
}

impl Registers {
    /// Those of the port that has this folder in sysfs.
    pub fn of(folder: &Path) -> Result<Self, RetrainError> {
        let missing = |missing| RetrainError::NoPort { folder: folder.to_owned(), missing };
        let config = folder.join("config");
        if !config.exists() {
            return Err(missing("configuration space"));
        }
        let mut registers = Self { config, capability: 0 };
        let at = registers.find()?.ok_or_else(|| missing("PCI Express capability"))?;
        registers.capability = at;
        let about = registers.word(at + PCIE_CAPABILITIES)?;
        if !PORTS.contains(&(about >> 4 & 0xF)) {
            return Err(missing("link below it, being no port"));
        }
        if about & 0xF < VERSION_MIN {
            return Err(missing("Link Control 2 register"));
        }
        Ok(registers)
    }

    /// Where the PCI Express capability begins; None if there is none.
    fn find(&self) -> Result<Option<u64>, RetrainError> {
        if self.word(STATUS)? & HAS_CAPABILITIES == 0 {
            return Ok(None);
        }
        let mut at = self.word(CAPABILITIES)? & 0xFC;
        for _ in 0..CAPABILITIES_MAX {
            if at == 0 {
                return Ok(None);
            }
            let [id, next] = self.word(u64::from(at))?.to_le_bytes();
            if id == PCI_EXPRESS {
                return Ok(Some(at.into()));
            }
            at = u16::from(next & 0xFC);
        }
        Ok(None)
    }

    /// The fastest generation that the port can do. Link Capabilities 2 names each speed; ports that leave it empty have the
    /// greatest in Link Capabilities.
    pub fn fastest(&self) -> Result<u8, RetrainError> {
        let vector = self.long(self.capability + LINK_CAPABILITIES_2)? >> 1 & 0x7F;
        if vector != 0 {
            return Ok((u32::BITS - vector.leading_zeros()) as u8);
        }
        let capabilities = self.long(self.capability + LINK_CAPABILITIES)?;
        Ok((capabilities & u32::from(SPEED)) as u8)
    }

    pub fn control_2(&self) -> Result<u16, RetrainError> {
        self.word(self.capability + LINK_CONTROL_2)
    }

    pub fn set_control_2(&self, value: u16) -> Result<(), RetrainError> {
        self.set_word(self.capability + LINK_CONTROL_2, value)
    }

    /// Sets the bit that retrains, and leaves all others as they are. It reads as 0.
    pub fn retrain(&self) -> Result<(), RetrainError> {
        let control = self.word(self.capability + LINK_CONTROL)?;
        self.set_word(self.capability + LINK_CONTROL, control | RETRAIN)
    }

    pub fn status(&self) -> Result<Status, RetrainError> {
        let status = self.word(self.capability + LINK_STATUS)?;
        let capabilities = self.long(self.capability + LINK_CAPABILITIES)?;
        let active = capabilities & REPORTS_ACTIVE == 0 || status & ACTIVE != 0;
        let is_up = status & TRAINING == 0 && active;
        Ok(Status { generation: (status & SPEED) as u8, is_up })
    }

    fn word(&self, offset: u64) -> Result<u16, RetrainError> {
        self.read(offset).map(u16::from_le_bytes)
    }

    fn long(&self, offset: u64) -> Result<u32, RetrainError> {
        self.read(offset).map(u32::from_le_bytes)
    }

    fn read<const N: usize>(&self, offset: u64) -> Result<[u8; N], RetrainError> {
        let mut bytes = [0; N];
        let file = OpenOptions::new().read(true).open(&self.config);
        self.told("reading", file.and_then(|file| file.read_exact_at(&mut bytes, offset)))?;
        Ok(bytes)
    }

    fn set_word(&self, offset: u64, value: u16) -> Result<(), RetrainError> {
        // One write of two bytes is one access of the register.
        let file = OpenOptions::new().write(true).open(&self.config);
        self.told("writing", file.and_then(|f| f.write_all_at(&value.to_le_bytes(), offset)))
    }

    fn told<T>(&self, attempted: &'static str, done: io::Result<T>) -> Result<T, RetrainError> {
        done.map_err(|reason| RetrainError::Config { attempted, path: self.config.clone(), reason })
    }
}
