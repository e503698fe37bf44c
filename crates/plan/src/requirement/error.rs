//! What can't be asked, why, and the nearest thing that can.

use std::fmt;

/// Why a text is no requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequirementError {
    /// It isn't TOML, or has a field that isn't known or of another kind.
    Syntax {
        /// What the parser says, with the line.
        reason: String,
    },
    /// Something that has to be said is not.
    Missing {
        /// What, as option and field.
        field: &'static str,
        /// What it is for, with an example.
        wanted: &'static str,
    },
    /// A value can't be.
    Value {
        /// Of which field.
        field: &'static str,
        /// As it was given.
        given: String,
        /// What is wrong.
        problem: String,
        /// The nearest that can be.
        nearest: String,
    },
    /// A value can't be understood.
    Unreadable {
        /// Of which field.
        field: &'static str,
        /// As it was given.
        given: String,
        /// What is wrong.
        problem: String,
        /// One that can be understood.
        example: &'static str,
    },
    /// Two that exclude each other.
    Contradiction {
        /// The first of the two requirements.
        one: &'static str,
        /// The second of the two requirements.
        other: &'static str,
        /// Why they don't go together, and which to choose when.
        why: &'static str,
    },
}

impl fmt::Display for RequirementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { reason } => write!(f, "reading the requirement failed: {reason}"),
            Self::Missing { field, wanted } => {
                write!(f, "the requirement doesn't say its {field}: give {wanted}")
            }
            Self::Value { field, given, problem, nearest } => {
                write!(f, "{field} of '{given}': {problem}; the nearest that can be: {nearest}")
            }
            Self::Unreadable { field, given, problem, example } => {
                write!(f, "{field} of '{given}': {problem}; for example: {example}")
            }
            Self::Contradiction { one, other, why } => {
                write!(f, "{one} and {other} contradict each other: {why}")
            }
        }
    }
}

impl std::error::Error for RequirementError {}
