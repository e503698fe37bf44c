//! Why real drives can't be opened.

use std::fmt;
use std::io;
use std::path::PathBuf;

use device::target::TargetError;

use super::STOPPED;
use crate::authorize::Refused;
use crate::new_files::NewFilesError;

/// Why drives can't be opened.
#[derive(Debug)]
pub enum OpenError {
    /// They may not be written.
    Refused(Refused),
    /// A target can't be opened.
    Target(TargetError),
    /// A file can't be made.
    NewFile(NewFilesError),
    /// What was opened can't be held against what was claimed.
    Claim(io::Error),
    /// Another drive or file has come to be at the path.
    Exchanged {
        /// The target.
        path: PathBuf,
    },
    /// There is no such device.
    NoDevice {
        /// The target.
        path: PathBuf,
    },
    /// It is only read, and does not exist.
    NothingToRead {
        /// The target.
        path: PathBuf,
    },
    /// It was asked to stop.
    Stopped,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Target(error) => error.fmt(f),
            Self::NewFile(error) => error.fmt(f),
            Self::Claim(error) => error.fmt(f),
            Self::Exchanged { path } => write!(
                f,
                "{}: it was exchanged while it was being opened; nothing was written",
                path.display()
            ),
            Self::NoDevice { path } => write!(
                f,
                "{}: there is no such device; `longtake drives` lists the drives",
                path.display()
            ),
            Self::NothingToRead { path } => write!(
                f,
                "{}: there is nothing to read; give a drive or a file that has something in it",
                path.display()
            ),
            Self::Stopped => f.write_str(STOPPED),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // Each is said in its own words, so its source is this one's.
        match self {
            Self::Refused(error) => error.source(),
            Self::Target(error) => error.source(),
            Self::NewFile(error) => error.source(),
            Self::Claim(error) => error.source(),
            _ => None,
        }
    }
}

impl From<Refused> for OpenError {
    fn from(error: Refused) -> Self {
        Self::Refused(error)
    }
}

impl From<TargetError> for OpenError {
    fn from(error: TargetError) -> Self {
        Self::Target(error)
    }
}

impl From<NewFilesError> for OpenError {
    fn from(error: NewFilesError) -> Self {
        Self::NewFile(error)
    }
}
