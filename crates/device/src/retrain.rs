//! Retraining: another speed for the PCIe link above a drive, for as long as it is measured, and then the one that it had.
//!
//! The port above the drive decides: the target link speed in its Link Control 2 register is what the link trains to when the Retrain
//! Link bit of its Link Control register is set (PCI Express Base Specification 6.0, sections 7.5.3.7 and 7.5.3.19). The number of
//! lanes stays. Both registers are reached through the port's `config` file in sysfs, as `setpci` does.

mod registers;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::identity::{self, Drive};
use crate::link::{Link, Place};
use crate::refusal::Refusal;
use crate::safety;
use crate::sysfs::{System, names_in};

use registers::Registers;

/// Between two looks at a link that trains.
const POLL: Duration = Duration::from_millis(10);
/// Looks, at most: a second. A link trains within 100 ms.
const POLLS_MAX: u32 = 100;

/// Passes time while a link trains.
pub type Wait = Box<dyn FnMut(Duration) + Send>;

/// The port above a drive. When it goes out of scope, the link is trained to the speed that it had.
pub struct Port {
    registers: Registers,
    wait: Wait,
    /// The fastest generation that both ends can do.
    best: u8,
    /// Link Control 2 and the generation as they were.
    before: (u16, u8),
    changed: bool,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { registers, best, before, changed, wait: _ } = self;
        f.debug_struct("Port")
            .field("registers", registers)
            .field("best", best)
            .field("before", before)
            .field("changed", changed)
            .finish_non_exhaustive()
    }
}

/// Why a link can't be retrained.
#[derive(Debug)]
pub enum RetrainError {
    /// It has no PCIe link of its own.
    NoLink {
        /// The target.
        path: PathBuf,
    },
    /// The serial number that confirms retraining was not given, or is another drive's.
    NotConfirmed {
        /// The target.
        path: PathBuf,
        /// Its serial number, if it has one.
        serial: Option<String>,
    },
    /// A drive below the port is in use.
    InUse(Vec<Refusal>),
    /// Something else hangs on the same link.
    Shared {
        /// The PCI functions below the port.
        functions: Vec<String>,
    },
    /// There is no port above it, or one without the registers.
    NoPort {
        /// Where it was looked for.
        folder: PathBuf,
        /// What is missing.
        missing: &'static str,
    },
    /// Both ends together can't do this generation.
    Unsupported {
        /// What was asked.
        generation: u8,
        /// The fastest that they can.
        best: u8,
    },
    /// The link trained to another speed.
    NotReached {
        /// What was asked.
        asked: u8,
        /// What came of it.
        reached: u8,
    },
    /// The link didn't come up again in time.
    Down,
    /// The registers can't be read or written.
    Config {
        /// What was tried.
        attempted: &'static str,
        /// The port's file.
        path: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
}

impl fmt::Display for RetrainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLink { path } => write!(
                f,
                "{} has no PCIe link of its own: only the link of an NVMe drive can be retrained",
                path.display()
            ),
            Self::NotConfirmed { path, serial: Some(serial) } => write!(
                f,
                "the link of {} is retrained only if its serial number is given: --retrain {}",
                path.display(),
                crate::shell::quoted(serial)
            ),
            Self::NotConfirmed { path, serial: None } => write!(
                f,
                "{} has no serial number with which retraining its link could be confirmed",
                path.display()
            ),
            Self::InUse(refusals) => {
                let said: Vec<String> = refusals.iter().map(ToString::to_string).collect();
                write!(f, "the link is in use and was left as it is:\n  {}", said.join("\n  "))
            }
            Self::Shared { functions } => write!(
                f,
                "the link leads to more than the drive ({}): move the drive to a slot of its own",
                functions.join(", ")
            ),
            Self::NoPort { folder, missing } => write!(
                f,
                "the link can't be retrained, because {} has no {missing}: use another slot",
                folder.display()
            ),
            Self::Unsupported { generation, best } => write!(
                f,
                "the link can't do PCIe {generation}.0: its ends can do up to {best}.0, so give --generations up to that"
            ),
            Self::NotReached { asked, reached } => write!(
                f,
                "the link was to train to PCIe {asked}.0 and came up as {reached}.0: check slot and cable"
            ),
            Self::Down => f.write_str(
                "the link did not come up again within a second of retraining: check it with `longtake drives`, or restart the machine",
            ),
            Self::Config { attempted, path, reason } => write!(
                f,
                "{attempted} {} failed: {reason}. Retraining needs root and a kernel without lockdown",
                path.display()
            ),
        }
    }
}

impl std::error::Error for RetrainError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

impl Port {
    /// The port above a drive whose serial number is `confirmation`. Nothing is changed yet.
    ///
    /// # Errors
    /// [`RetrainError`]: every refusal, such as that it is mounted.
    pub fn above(path: &Path, confirmation: &str) -> Result<Self, RetrainError> {
        let sleep = Box::new(std::thread::sleep);
        Self::above_in(&System::default(), path, confirmation, sleep)
    }

    /// [`Port::above`] in another system, where `wait` passes time.
    ///
    /// # Errors
    /// As [`Port::above`].
    pub fn above_in(
        system: &System,
        path: &Path,
        confirmation: &str,
        wait: Wait,
    ) -> Result<Self, RetrainError> {
        let no_link = || RetrainError::NoLink { path: path.to_owned() };
        let drive = identity::describe_in(system, path).map_err(|_| no_link())?;
        let nvme = drive.nvme.as_ref().ok_or_else(no_link)?;
        confirmed(&drive, confirmation)?;
        // A command to a drive with several controllers may take the link of any of them.
        let [controller] = nvme.controllers.as_slice() else { return Err(no_link()) };
        let function = system.sys.join("class/nvme").join(controller).join("device");
        let function = function.canonicalize().map_err(|_| no_link())?;
        let port = Self::of_function(&function, wait)?;
        unused(system, controller)?;
        Ok(port)
    }

    /// The port above a PCI function's folder in sysfs, whatever uses the function.
    ///
    /// # Errors
    /// [`RetrainError::NoPort`], [`RetrainError::Shared`], or if its registers can't be read.
    pub fn of_function(function: &Path, wait: Wait) -> Result<Self, RetrainError> {
        let Some(Link::Pcie { best: drive, .. }) = Place::Pcie(function.to_owned()).read() else {
            return Err(RetrainError::NoLink { path: function.to_owned() });
        };
        let Some(folder) = function.parent() else {
            let missing = "port above it";
            return Err(RetrainError::NoPort { folder: function.to_owned(), missing });
        };
        alone(folder)?;
        let registers = Registers::of(folder)?;
        let (best, before) = (registers.fastest()?, registers.control_2()?);
        let generation = registers.status()?.generation;
        let best = best.min(drive.generation);
        Ok(Self { registers, wait, best, before: (before, generation), changed: false })
    }

    /// The fastest generation that both ends of the link can do.
    pub const fn best(&self) -> u8 {
        self.best
    }

    /// Trains the link to a generation.
    ///
    /// # Errors
    /// If it can't do it, or comes up with another. It stays as it came up until the next call.
    pub fn set(&mut self, generation: u8) -> Result<(), RetrainError> {
        if !(1..=self.best).contains(&generation) {
            return Err(RetrainError::Unsupported { generation, best: self.best });
        }
        self.changed = true;
        let target = registers::with_target(self.before.0, generation);
        self.train(target, generation)
    }

    /// Trains the link to the speed that it had, if it was changed.
    ///
    /// # Errors
    /// If it comes up with another one, or not at all.
    pub fn restore(&mut self) -> Result<(), RetrainError> {
        if !self.changed {
            return Ok(());
        }
        let (control, generation) = self.before;
        // First of all, so that a link that is down now comes up as it was.
        self.registers.set_control_2(control)?;
        self.train(control, generation)?;
        self.changed = false;
        Ok(())
    }

    /// Writes Link Control 2 and retrains. A link that is training already is let finish first (section 7.5.3.7).
    fn train(&mut self, control_2: u16, generation: u8) -> Result<(), RetrainError> {
        self.settle()?;
        self.registers.set_control_2(control_2)?;
        self.registers.retrain()?;
        (self.wait)(POLL);
        let reached = self.settle()?;
        if reached == generation {
            return Ok(());
        }
        Err(RetrainError::NotReached { asked: generation, reached })
    }

    /// Waits until the link is up and doesn't train; returns its generation.
    fn settle(&mut self) -> Result<u8, RetrainError> {
        for _ in 0..POLLS_MAX {
            let status = self.registers.status()?;
            if status.is_up {
                return Ok(status.generation);
            }
            (self.wait)(POLL);
        }
        Err(RetrainError::Down)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // An error can't be reported from here: callers who need it call `restore` first.
        self.restore().ok();
    }
}

fn confirmed(drive: &Drive, confirmation: &str) -> Result<(), RetrainError> {
    let serial = drive.confirmation();
    if serial.as_deref() == Some(confirmation) {
        return Ok(());
    }
    Err(RetrainError::NotConfirmed { path: drive.path.clone(), serial })
}

/// Whether one PCI function alone lies below a port.
fn alone(port: &Path) -> Result<(), RetrainError> {
    let is_function = |name: &String| {
        // 0000:01:00.0
        let digits = name.bytes().all(|b| b.is_ascii_hexdigit() || b":.".contains(&b));
        digits && name.matches(':').count() == 2 && name.contains('.')
    };
    let mut functions = names_in(port).unwrap_or_default();
    functions.retain(is_function);
    if functions.len() == 1 { Ok(()) } else { Err(RetrainError::Shared { functions }) }
}

/// Refuses if any namespace of a controller is in use. With multipath they lie elsewhere in sysfs than the controller.
fn unused(system: &System, controller: &str) -> Result<(), RetrainError> {
    let mut refusals = Vec::new();
    let disks = system.disks().map_err(|reason| {
        let path = system.sys.join("block");
        RetrainError::Config { attempted: "listing the drives in", path, reason }
    })?;
    for disk in disks {
        let node = system.node(&disk.name);
        let nvme = identity::of_block(system, &node, &disk).nvme;
        if nvme.is_some_and(|nvme| nvme.controllers.iter().any(|name| name == controller)) {
            refusals.extend(safety::inspect_in(system, &node).refusals);
        }
    }
    // What is on it stays there: only who uses it matters.
    let in_use = |refusal: &Refusal| match refusal {
        Refusal::Mounted { .. }
        | Refusal::Swap { .. }
        | Refusal::Held { .. }
        | Refusal::InUse { .. }
        | Refusal::Unreadable { .. }
        | Refusal::NotThere { .. }
        | Refusal::NotADrive { .. }
        | Refusal::Changed { .. } => true,
        Refusal::ReadOnly { .. }
        | Refusal::Partitioned { .. }
        | Refusal::Signature { .. }
        | Refusal::LongtakeArray { .. }
        | Refusal::NoArray { .. }
        | Refusal::ForeignContent { .. }
        | Refusal::NotConfirmed { .. } => false,
    };
    refusals.retain(in_use);
    if refusals.is_empty() { Ok(()) } else { Err(RetrainError::InUse(refusals)) }
}
