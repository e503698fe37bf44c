//! What every experiment's result can say of itself: its question, its answer in words, and its figures.

use serde::{Deserialize, Serialize};

pub use profile::Unit;

use crate::finding::{self, Finding};

/// One figure that was found, by a name that stays the same over drives and versions (`write.native`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name: dotted, in lower case.
    pub name: String,
    /// What it is, in words.
    pub label: String,
    /// Its value; None if it could not be known.
    pub value: Option<f64>,
    /// What it counts.
    pub unit: Unit,
    /// Where it lies with the stated confidence, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
    /// How sure it is, from 0 to 1, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Why it isn't known, or what to know about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Figure {
    /// A figure with a value and nothing more to say.
    pub fn new(name: &str, label: &str, value: impl Into<Option<f64>>, unit: Unit) -> Self {
        Self {
            name: name.to_owned(),
            label: label.to_owned(),
            value: value.into(),
            unit,
            range: None,
            confidence: None,
            note: String::new(),
        }
    }

    /// With a note.
    #[must_use]
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// An experiment's result.
pub trait Answer {
    /// What was asked.
    fn question(&self) -> &'static str;
    /// What was found, in the order in which it is told.
    fn findings(&self) -> Vec<Finding>;
    /// The figures behind it.
    fn figures(&self) -> Vec<Figure>;

    /// The findings as sentences, compared with the figures and with each other before: see [`finding::sentences`].
    fn answer(&self) -> Vec<String> {
        finding::sentences(&self.findings(), &self.figures())
    }
}
