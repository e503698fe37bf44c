//! What share of a drive's rated life a write costs, as far as that can be known.

use std::fmt;

use base::ByteSize;
use serde::Serialize;

use crate::identity::Drive;
use crate::wear::Wear;

/// A write's share of a drive's rated life.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// From the endurance that the maker rates the drive at.
    Rated {
        /// Percent of the rated life.
        percent: f64,
        /// Rated endurance in bytes written by the host.
        rated_bytes: u64,
    },
    /// From what the drive itself reports of its past: bytes written and percent used.
    Estimated {
        /// Percent of the life, at most.
        percent_max: f64,
        /// Percent of the life, at least.
        percent_min: f64,
    },
    /// Not known.
    Unknown {
        /// The reason.
        reason: String,
    },
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rated { percent, rated_bytes } => {
                write!(f, "{} of its rated life ({})", share(*percent), ByteSize(*rated_bytes))
            }
            Self::Estimated { percent_min, percent_max } => write!(
                f,
                "{} to {} of its life, by its own account of the past",
                share(*percent_min),
                share(*percent_max)
            ),
            Self::Unknown { reason } => write!(f, "share of its life not known: {reason}"),
        }
    }
}

fn share(percent: f64) -> String {
    if percent > 0.0 && percent < 0.001 {
        "less than 0.001 %".to_owned()
    } else {
        format!("{percent:.3} %")
    }
}

/// Below this the whole percents that a drive reports say too little about what one costs.
const PERCENT_USED_MIN: u8 = 3;

/// The share of `drive`'s life that writing `bytes` costs, given its rated endurance where that is
/// known (from a profile of its model). Without it, a drive that has used some of its life tells by
/// its counters what a percent of it took.
pub fn cost(drive: &Drive, bytes: u64, rated_bytes: Option<u64>) -> Cost {
    if let Some(rated_bytes) = rated_bytes.filter(|&rated| rated > 0) {
        return Cost::Rated { percent: bytes as f64 * 100.0 / rated_bytes as f64, rated_bytes };
    }
    let health = match &drive.wear {
        Wear::Known(health) => health,
        Wear::Unknown { reason } => return Cost::Unknown { reason: reason.clone() },
    };
    if health.percent_used < PERCENT_USED_MIN || health.written_bytes == 0 {
        return Cost::Unknown {
            reason: format!(
                "no rated endurance is known for this model, and it has used only {} %",
                health.percent_used
            ),
        };
    }
    // A reported 7 % is 7 up to 8 (or 6 up to 7, where a drive rounds up): take both.
    let per_byte = |percent: u8| f64::from(percent) / health.written_bytes as f64;
    Cost::Estimated {
        percent_min: bytes as f64 * per_byte(health.percent_used - 1),
        percent_max: bytes as f64 * per_byte(health.percent_used.saturating_add(1)),
    }
}
