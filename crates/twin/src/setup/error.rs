//! Why drives can't be measured as asked.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use base::ByteSize;
use base::striped::StripedError;
use device::retrain::RetrainError;
use lab::LabError;
use lab::experiment::options::OptionsError;
use target::NameError;
use target::OpenError;

use crate::rig::SimulatedRigError;

/// The smallest part of a drive that can be measured: one of the largest blocks that experiments write.
pub const SIZE_MIN: ByteSize = ByteSize(1 << 20);

/// Why drives can't be measured as asked.
#[derive(Debug)]
pub enum SetupError {
    /// A name of simulated drives can't be understood.
    Target(NameError),
    /// Drives can't be simulated.
    Simulated(SimulatedRigError),
    /// Real drives can't be opened.
    Open(OpenError),
    /// Real drives can't be a striped set.
    Striped(StripedError),
    /// A word that would be a new file is the name of a drive that can be simulated.
    Model {
        /// The name.
        name: String,
    },
    /// So little of a drive that nothing can be measured there.
    Size {
        /// How much was given.
        given: ByteSize,
    },
    /// A sweep is over the link of a drive, and this is a striped set.
    SweepOfSet {
        /// The set.
        set: String,
    },
    /// An option says how real drives are driven, and these are simulated.
    OptionOfReal {
        /// The option.
        option: &'static str,
    },
    /// An uplink is for simulated drives, and these are real.
    UplinkOfReal,
    /// Options that can't be given together.
    Options(OptionsError),
    /// A link can't be retrained.
    Retrain(RetrainError),
    /// Simulated drives need no retraining.
    RetrainOfSimulated,
    /// A sweep retrains the link of one drive.
    RetrainSeveral,
    /// A sweep over links needs simulated drives, or to retrain a real one, and nobody said that it may.
    SweepOfReal,
    /// Retraining changes no lanes.
    LanesOfReal,
    /// A sweep is over PCIe links, and this drive has another one.
    SweepOfSata {
        /// Its name.
        drive: String,
    },
    /// The run in the folder can't be read.
    Run(LabError),
    /// The run in the folder is of a file that is no longer there.
    Gone {
        /// Folder of the results.
        folder: PathBuf,
        /// The file.
        target: String,
    },
    /// The run in the folder is of other drives.
    OtherDrives {
        /// Folder of the results.
        folder: PathBuf,
        /// The drives that it is of.
        targets: Vec<String>,
    },
    /// Steps of an earlier run can't be removed.
    OldSteps {
        /// Their folder.
        folder: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
}

impl SetupError {
    /// Whether an argument can't be what it is, whatever drives there are.
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Target(_) | Self::Model { .. } | Self::Size { .. })
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(error) => error.fmt(f),
            Self::Simulated(error) => error.fmt(f),
            Self::Open(error) => error.fmt(f),
            Self::Striped(error) => error.fmt(f),
            Self::Model { name } => write!(
                f,
                "{name} is the name of a drive's profile: write sim:{name} to simulate that drive, or ./{name} for a file"
            ),
            Self::Size { given } => write!(
                f,
                "--size {given} is too little to measure: give {SIZE_MIN} or more; a number without a unit is in bytes"
            ),
            Self::SweepOfSet { set } => write!(
                f,
                "--sweep is over a drive's link, and {set} has as many as drives: name one of them"
            ),
            Self::Run(error) => error.fmt(f),
            Self::Options(error) => error.fmt(f),
            Self::OptionOfReal { option } => write!(
                f,
                "{option} says how real drives are driven; simulated ones are one calculation on one thread: leave it out"
            ),
            Self::UplinkOfReal => f.write_str(
                "--uplink is for simulated drives: real ones have the links that they have",
            ),
            Self::Retrain(error) => error.fmt(f),
            Self::RetrainOfSimulated => f.write_str(
                "simulated drives are swept over links without retraining: leave out --retrain",
            ),
            Self::RetrainSeveral => f.write_str("--retrain is for one drive at a time: name one"),
            Self::SweepOfReal => f.write_str(
                "--sweep changes the speed of a real drive's link only with --retrain SERIAL; without, measure the drive \
                 (`longtake measure all`), make its simulated twin (`longtake fit`) and sweep that",
            ),
            Self::LanesOfReal => f.write_str(
                "--retrain changes the speed of a link and not its lanes: leave out --lanes",
            ),
            Self::SweepOfSata { drive } => write!(
                f,
                "--sweep is over PCIe links, and {drive} is a SATA drive: choose an NVMe drive (`longtake sim list`)"
            ),
            Self::Gone { folder, target } => write!(
                f,
                "the results in {} are of {target}, which no longer exists: name a new folder to measure a new file",
                folder.display()
            ),
            Self::OtherDrives { folder, targets } => write!(
                f,
                "the results in {} are of other drives ({}, by serial number and size): name a new folder",
                folder.display(),
                targets.join(", ")
            ),
            Self::OldSteps { folder, .. } => {
                write!(f, "removing the old steps in {}", folder.display())
            }
        }
    }
}

impl Error for SetupError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // Each is said in its own words, so its source is this one's.
            Self::Target(error) => error.source(),
            Self::Simulated(error) => error.source(),
            Self::Open(error) => error.source(),
            Self::Retrain(error) => error.source(),
            Self::Run(error) => error.source(),
            Self::OldSteps { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

impl From<NameError> for SetupError {
    fn from(error: NameError) -> Self {
        Self::Target(error)
    }
}

impl From<SimulatedRigError> for SetupError {
    fn from(error: SimulatedRigError) -> Self {
        Self::Simulated(error)
    }
}

impl From<OpenError> for SetupError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<StripedError> for SetupError {
    fn from(error: StripedError) -> Self {
        Self::Striped(error)
    }
}

impl From<OptionsError> for SetupError {
    fn from(error: OptionsError) -> Self {
        Self::Options(error)
    }
}

impl From<RetrainError> for SetupError {
    fn from(error: RetrainError) -> Self {
        Self::Retrain(error)
    }
}

impl From<LabError> for SetupError {
    fn from(error: LabError) -> Self {
        Self::Run(error)
    }
}
