//! Why nothing stands behind an array's name.

use std::fmt;
use std::io;
use std::path::PathBuf;

use device::identity::IdentityError;
use device::shell::quoted;
use device::target::TargetError;
use format::Damage;

use crate::name::NameError;

/// Why nothing stands behind an array's name.
#[derive(Debug)]
pub enum ArrayNameError {
    /// A part of it can't be understood.
    Name(NameError),
    /// Its directory can't be read.
    Directory(MemberFilesError),
    /// The drives of this machine can't be listed.
    Drives(IdentityError),
    /// It can be understood, and nothing is found.
    NotFound {
        /// The name.
        array: String,
        /// What is missing.
        problem: Missing,
    },
}

/// What is missing where an array should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// An array from before: simulated drives keep nothing.
    Simulated,
    /// Member files in the directory.
    MemberFiles,
    /// One of several targets.
    Target(PathBuf),
    /// A file or directory at the path.
    Path,
    /// A name that only one array has.
    Unique,
    /// A drive that carries the name.
    Name {
        /// The names that drives of this machine carry, in alphabetical order.
        names: Vec<String>,
    },
}

impl fmt::Display for ArrayNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (array, problem) = match self {
            Self::Name(error) => return error.fmt(f),
            Self::Directory(error) => return error.fmt(f),
            Self::Drives(error) => return error.fmt(f),
            Self::NotFound { array, problem } => (array, problem),
        };
        match problem {
            Missing::Simulated => write!(
                f,
                "{array}: each command creates its simulated drives empty, so they hold no array; `longtake \
                 record --to {}` makes one, records on it, and tells what came of it",
                quoted(array)
            ),
            Missing::MemberFiles => write!(
                f,
                "{array} is a directory without member files (member0, member1, ...): `longtake record --to {}` makes them",
                quoted(array)
            ),
            Missing::Target(path) => write!(f, "{}: no such drive or file", path.display()),
            Missing::Path => write!(f, "{array}: no such directory, drive or file"),
            Missing::Unique => {
                write!(f, "several arrays are called '{array}': name one by its UUID or its drives")
            }
            Missing::Name { names } => {
                let known = if names.is_empty() {
                    "no drive of this machine belongs to an array".to_owned()
                } else {
                    format!("the drives of this machine belong to {}", names.join(", "))
                };
                write!(
                    f,
                    "no array '{array}': {known}; name a directory of member files, drives with commas between them, or an array's name"
                )
            }
        }
    }
}

impl std::error::Error for ArrayNameError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // Each is said in its own words, so its source is this one's.
        match self {
            Self::Name(error) => error.source(),
            Self::Directory(error) => error.source(),
            Self::Drives(error) => error.source(),
            Self::NotFound { .. } => None,
        }
    }
}

impl From<NameError> for ArrayNameError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl From<MemberFilesError> for ArrayNameError {
    fn from(error: MemberFilesError) -> Self {
        Self::Directory(error)
    }
}

impl From<IdentityError> for ArrayNameError {
    fn from(error: IdentityError) -> Self {
        Self::Drives(error)
    }
}

/// Why the member files of a directory can't be listed.
#[derive(Debug)]
pub enum MemberFilesError {
    /// The user may not.
    NotPermitted {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory can't be read.
    Unreadable {
        /// The directory.
        directory: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// Reading it ended in the middle.
    Entry {
        /// The directory.
        directory: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
}

impl fmt::Display for MemberFilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted { directory } => write!(
                f,
                "looking into {} is not permitted; run as root, or as the user who owns it",
                directory.display()
            ),
            Self::Unreadable { directory, reason } => {
                write!(f, "looking into {} failed: {reason}", directory.display())
            }
            Self::Entry { directory, .. } => write!(f, "looking into {}", directory.display()),
        }
    }
}

impl std::error::Error for MemberFilesError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Entry { reason, .. } => Some(reason),
            Self::NotPermitted { .. } | Self::Unreadable { .. } => None,
        }
    }
}

/// Why a target's superblock can't be read.
#[derive(Debug)]
pub enum PeekError {
    /// The target is none.
    Target(TargetError),
    /// It can't be opened.
    Open {
        /// The node that is read.
        path: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// It holds no sound superblock.
    Damage(Damage),
}

impl fmt::Display for PeekError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(error) => error.fmt(f),
            Self::Open { path, .. } => write!(f, "opening {}", path.display()),
            Self::Damage(damage) => damage.fmt(f),
        }
    }
}

impl std::error::Error for PeekError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Target(error) => error.source(),
            Self::Open { reason, .. } => Some(reason),
            Self::Damage(damage) => damage.source(),
        }
    }
}
