//! Why no twin is found.

use std::fmt;
use std::path::PathBuf;

use lab::{LabError, RigError};
use ssd::SpecError;
use target::{NameError, ProfilesError, SimDrivesError};

/// Why no twin is found.
#[derive(Debug)]
pub enum FitError {
    /// The folder's results can't be read.
    Results(LabError),
    /// The folder holds no results.
    NoResults {
        /// The folder.
        folder: PathBuf,
    },
    /// The results are of several drives together.
    Several {
        /// The folder.
        folder: PathBuf,
        /// Number of drives.
        drives: usize,
    },
    /// Nothing in the measurement tells how a drive is made.
    Nothing {
        /// The folder or profile.
        path: PathBuf,
        /// Names of the experiments that it has.
        experiments: Vec<String>,
    },
    /// The folder's own profile can't be read.
    Profile(ProfilesError),
    /// It is neither a folder nor a profile.
    Neither {
        /// What was given.
        path: PathBuf,
        /// Why it is no profile.
        reason: ProfilesError,
    },
    /// What the twin is to be like is no target.
    LikeName(NameError),
    /// What the twin is to be like can't be simulated.
    Like(SimDrivesError),
    /// The drive to begin with can't be simulated.
    Guess {
        /// Where the measurement is.
        origin: String,
        /// The parameter that can't be.
        reason: SpecError,
    },
    /// A simulated drive failed.
    Trial {
        /// Where the measurement is.
        origin: String,
        /// How it failed.
        reason: RigError,
    },
    /// The best fit can't be simulated.
    Fitted(SpecError),
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Results(error) => error.fmt(f),
            Self::NoResults { folder } => write!(
                f,
                "{} holds no results: give a folder that `longtake measure` wrote, or a profile",
                folder.display()
            ),
            Self::Several { folder, drives } => write!(
                f,
                "{} is of {drives} drives, and their figures are of all together: measure one alone",
                folder.display()
            ),
            Self::Nothing { path, experiments } => {
                let there = match experiments.as_slice() {
                    [] => "nothing else".to_owned(),
                    some => some.join(", "),
                };
                write!(
                    f,
                    "{} tells nothing of how a drive is made (it has {there}): fill tells its cache and rates, link and stream how it \
                     reads, mix how many reads it takes, snia its over-provisioning; run \
                     `longtake measure fill TARGET -o DIR`, or `all` for everything",
                    path.display()
                )
            }
            Self::Profile(error) => error.fmt(f),
            Self::Neither { path, .. } => write!(
                f,
                "{}: give a folder that `longtake measure` wrote, or a profile",
                path.display()
            ),
            Self::LikeName(error) => error.fmt(f),
            Self::Like(error) => error.fmt(f),
            Self::Guess { origin, .. } => write!(
                f,
                "no drive like that of {origin} can be simulated; give one that is like it with --from"
            ),
            Self::Trial { origin, .. } => {
                write!(f, "the fitted drive can't repeat the experiments in {origin}")
            }
            Self::Fitted(_) => f.write_str("the best fit is not a valid drive"),
        }
    }
}

impl std::error::Error for FitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // These are said in their own words, so their sources are this one's.
            Self::Results(error) => error.source(),
            Self::Profile(error) => error.source(),
            Self::LikeName(error) => error.source(),
            Self::Like(error) => error.source(),
            Self::Neither { reason, .. } => Some(reason),
            Self::Guess { reason, .. } | Self::Fitted(reason) => Some(reason),
            Self::Trial { reason, .. } => Some(reason),
            Self::NoResults { .. } | Self::Several { .. } | Self::Nothing { .. } => None,
        }
    }
}

impl From<LabError> for FitError {
    fn from(error: LabError) -> Self {
        Self::Results(error)
    }
}

impl From<ProfilesError> for FitError {
    fn from(error: ProfilesError) -> Self {
        Self::Profile(error)
    }
}

impl From<NameError> for FitError {
    fn from(error: NameError) -> Self {
        Self::LikeName(error)
    }
}

impl From<SimDrivesError> for FitError {
    fn from(error: SimDrivesError) -> Self {
        Self::Like(error)
    }
}
