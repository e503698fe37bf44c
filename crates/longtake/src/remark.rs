//! What the user of a recording or an array should know.

use std::fmt;

/// Something that the user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// It is as it should be, and goes without saying where little is to be said.
    Detail(String),
    /// It is as it should be.
    Note(String),
    /// Something is wrong, and the work goes on.
    Warning(String),
}

impl Remark {
    /// As a key in JSON.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Detail(_) | Self::Note(_) => "note",
            Self::Warning(_) => "warning",
        }
    }

    /// What it says.
    pub fn text(&self) -> &str {
        match self {
            Self::Detail(text) | Self::Note(text) | Self::Warning(text) => text,
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key(), self.text())
    }
}
