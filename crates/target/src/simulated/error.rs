//! Why targets name no simulated drives.

use std::fmt;

use ssd::SpecError;

use crate::name::{Model, SimTarget};
use crate::profiles::ProfilesError;

/// Why targets name no simulated drives.
#[derive(Debug)]
pub enum SimDrivesError {
    /// Nothing is known of the model.
    Profile(ProfilesError),
    /// The model can't be simulated.
    Spec {
        /// The model.
        model: Model,
        /// The parameter that can't be.
        reason: SpecError,
    },
    /// Two targets name the same drive, and not different namespaces of it.
    Same {
        /// The later target.
        target: SimTarget,
        /// The earlier target.
        other: SimTarget,
    },
    /// Two targets name namespaces of the same drive, with different contents or numbers of drives.
    Beginnings {
        /// The later target.
        target: SimTarget,
        /// The earlier target.
        other: SimTarget,
    },
    /// The same namespace twice.
    Twice {
        /// The later target.
        target: SimTarget,
    },
    /// The drive has fewer namespaces.
    NoNamespace {
        /// The target.
        target: SimTarget,
        /// Number of namespaces that the drive has.
        there: usize,
    },
}

impl fmt::Display for SimDrivesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profile(error) => error.fmt(f),
            Self::Spec { model, .. } => model.fmt(f),
            Self::Same { target, other } => write!(
                f,
                "{target} and {other} name the same drive: for several drives alike give {}*2",
                target.model
            ),
            Self::Beginnings { target, other } => write!(
                f,
                "{other} and {target} name the same drive, which begins in one way: give both the same contents and number"
            ),
            Self::Twice { target } => write!(f, "{target} is named twice"),
            Self::NoNamespace { target, there } => {
                let plural = if *there == 1 { "namespace" } else { "namespaces" };
                write!(f, "{target}: the drive has {there} {plural}, numbered from 1")
            }
        }
    }
}

impl std::error::Error for SimDrivesError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // It is said in its own words, so its source is this one's.
            Self::Profile(error) => error.source(),
            Self::Spec { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

impl From<ProfilesError> for SimDrivesError {
    fn from(error: ProfilesError) -> Self {
        Self::Profile(error)
    }
}
