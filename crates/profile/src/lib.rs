//! What is known of a drive model, measured or published, each figure with its source. No I/O: text in, text out.

#![forbid(unsafe_code)]

pub mod figures;
mod fill;
pub mod library;
pub mod merge;
pub mod name;
pub mod nearest;
mod show;
pub mod simulated;
pub mod text;
pub mod trust;

pub use figures::{Direction, PcieLink};
pub use fill::FillCurve;
pub use library::UnknownModel;
pub use merge::MergeError;
pub use nearest::nearest;
pub use simulated::{Parameter, Simulated};
pub use text::ProfileError;
pub use toml::Value;
pub use trust::Trust;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What is known of a drive model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// What the profile is called: letters, digits, `-`, `_` and `.`, so that it can be a file's name.
    pub name: String,
    /// The model as the drive tells it, or as it is sold.
    pub model: String,
    /// What kind of drive: `nvme`, `sata`, `file`, `simulated`.
    pub kind: String,
    /// Bytes that can be addressed.
    pub capacity_bytes: u64,
    /// What there is to know beside the figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Figures by name: those of [`name`], and any others.
    pub figures: BTreeMap<String, Known>,
    /// How fast it took data from empty to full, if that is known as a curve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<FillCurve>,
    /// What a simulation of it is made of.
    #[serde(skip_serializing_if = "Simulated::is_empty")]
    pub simulated: Simulated,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The value.
    pub value: f64,
    /// What it counts.
    pub unit: Unit,
    /// Where it lies, from least to greatest, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
    /// How sure it is, from 0 to 1, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// What to know about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Where it comes from.
    pub source: Source,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// Commands a second.
    CommandsPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Parts of a hundred.
    Percent,
    /// A plain number.
    Count,
}

/// Where a figure comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// How it became known.
    pub kind: SourceKind,
    /// Who measured it on what, or where it was published.
    pub origin: String,
    /// When, as `2026-11-21`; None if that isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// How a figure became known; the later ones are worth more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// Taken for granted.
    Assumed,
    /// Told by a datasheet, an article, the maker.
    Published,
    /// Measured.
    Measured,
}

impl Profile {
    /// A profile without figures.
    pub fn new(name: &str, model: &str, kind: &str, capacity_bytes: u64) -> Self {
        Self {
            name: name.to_owned(),
            model: model.to_owned(),
            kind: kind.to_owned(),
            capacity_bytes,
            notes: Vec::new(),
            figures: BTreeMap::new(),
            fill: None,
            simulated: Simulated::default(),
        }
    }
}
