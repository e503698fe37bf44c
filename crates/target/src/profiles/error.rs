//! Why there is no profile to a word.

use std::fmt;
use std::io;
use std::path::PathBuf;

use profile::ProfileError;

/// Why there is no profile to a word.
#[derive(Debug)]
pub enum ProfilesError {
    /// The folder of the user's profiles exists and can't be read.
    Folder {
        /// The folder.
        path: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// The file can't be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// The file holds something else.
    NoProfile {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        reason: ProfileError,
    },
    /// Drives are to be put somewhere, and this one is real.
    IsReal {
        /// Its name.
        target: String,
    },
    /// It is to be put somewhere, and its profile doesn't say how warm it gets.
    NoHeat {
        /// Its name.
        name: String,
    },
    /// Neither the library nor the user's folder has a model of this name.
    Unknown {
        /// The name.
        name: String,
        /// The name that was probably meant.
        meant: Option<String>,
        /// All names that there are.
        names: Vec<String>,
    },
}

impl fmt::Display for ProfilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { path, .. } => {
                write!(f, "reading the folder of profiles {}", path.display())
            }
            Self::Unreadable { path, .. } => write!(f, "reading the drive {}", path.display()),
            Self::NoProfile { path, .. } => {
                write!(f, "{} is no profile of a drive", path.display())
            }
            Self::IsReal { target } => {
                write!(f, "--ambient and --cooling are for simulated drives, and {target} is none")
            }
            Self::NoHeat { name } => write!(
                f,
                "how warm {name} gets is not known, so that its cooling makes no difference: add [simulated.heat] to its file \
                 (docs/simulated-drives.md)"
            ),
            Self::Unknown { name, meant, names } => {
                let meant = match meant {
                    Some(meant) => format!("did you mean '{meant}'?"),
                    None => format!("there are {}", names.join(", ")),
                };
                write!(
                    f,
                    "the library has no drive '{name}', and neither has your own folder of profiles; {meant}"
                )
            }
        }
    }
}

impl std::error::Error for ProfilesError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Folder { reason, .. } | Self::Unreadable { reason, .. } => Some(reason),
            Self::NoProfile { reason, .. } => Some(reason),
            Self::IsReal { .. } | Self::NoHeat { .. } | Self::Unknown { .. } => None,
        }
    }
}
