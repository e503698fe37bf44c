//! Two profiles of one model made into one: measured beats published beats assumed, and newer beats older.

use std::fmt;

use base::ByteSize;

use crate::{FillCurve, Profile, Source};

/// Why two profiles can't be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeError {
    /// They are of different models.
    Model {
        /// The one's.
        ours: String,
        /// The other's.
        theirs: String,
    },
    /// They are of different sizes.
    Capacity {
        /// The one's bytes.
        ours: u64,
        /// The other's bytes.
        theirs: u64,
    },
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model { ours, theirs } => write!(
                f,
                "merging profiles failed: one is of a '{ours}', the other of a '{theirs}'; merge profiles of one model"
            ),
            Self::Capacity { ours, theirs } => write!(
                f,
                "merging profiles failed: one is of a drive of {}, the other of {}; rates and cache differ with \
                 size, so keep a profile for each",
                ByteSize(*ours),
                ByteSize(*theirs)
            ),
        }
    }
}

impl std::error::Error for MergeError {}

impl Profile {
    /// This profile with whatever the other one knows better. Name and kind stay this one's, and so do a simulation's
    /// parameters if there are any: they are chosen to go together.
    ///
    /// # Errors
    /// [`MergeError`] if they aren't of the same drive model.
    pub fn merge(mut self, other: Self) -> Result<Self, MergeError> {
        if self.model != other.model {
            return Err(MergeError::Model { ours: self.model, theirs: other.model });
        }
        if self.capacity_bytes != other.capacity_bytes {
            return Err(MergeError::Capacity {
                ours: self.capacity_bytes,
                theirs: other.capacity_bytes,
            });
        }
        for (name, theirs) in other.figures {
            if self.figures.get(&name).is_none_or(|ours| is_better(&theirs.source, &ours.source)) {
                self.figures.insert(name, theirs);
            }
        }
        let better = |theirs: &FillCurve| {
            self.fill.as_ref().is_none_or(|ours| is_better(&theirs.source, &ours.source))
        };
        if other.fill.as_ref().is_some_and(better) {
            self.fill = other.fill;
        }
        if self.simulated.is_empty() {
            self.simulated = other.simulated;
        }
        for note in other.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        Ok(self)
    }
}

/// Whether `new` is worth more than `old`. Dates compare as text; one that isn't known is the oldest.
fn is_better(new: &Source, old: &Source) -> bool {
    let worth = |source: &Source| (source.kind, source.when.clone());
    worth(new) > worth(old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Known, SourceKind, Unit, name};

    fn profile(value: f64, kind: SourceKind, when: Option<&str>) -> Profile {
        let mut profile = Profile::new("it", "Model", "nvme", 1 << 40);
        let source = Source { kind, origin: "here".to_owned(), when: when.map(str::to_owned) };
        let known = Known {
            value,
            unit: Unit::BytesPerSecond,
            range: None,
            confidence: None,
            note: String::new(),
            source,
        };
        profile.figures.insert(name::WRITE_NATIVE.to_owned(), known);
        profile
    }

    #[test]
    fn measured_beats_published_beats_assumed_and_newer_beats_older() {
        use SourceKind::{Assumed, Measured, Published};
        for (worse, better) in [
            ((Published, Some("2026-01-01")), (Measured, Some("2019-01-01"))),
            ((Assumed, Some("2026-01-01")), (Published, None)),
            ((Measured, Some("2025-12-31")), (Measured, Some("2026-01-01"))),
            ((Measured, None), (Measured, Some("2019-01-01"))),
            ((Measured, Some("2026-01-01")), (Measured, Some("2026-01-01T10:00:00Z"))),
        ] {
            let (worse, better) =
                (profile(1.0, worse.0, worse.1), profile(2.0, better.0, better.1));
            for (a, b) in [(&worse, &better), (&better, &worse)] {
                let merged = a.clone().merge(b.clone()).unwrap();
                assert_eq!(merged.native_write(), Some(base::Rate(2.0)));
            }
        }
    }

    #[test]
    fn what_only_one_knows_is_kept_and_notes_are_not_doubled() {
        let mut ours = profile(1.0, SourceKind::Measured, None);
        ours.notes = vec!["hot".to_owned()];
        let mut theirs = Profile::new("other", "Model", "nvme", 1 << 40);
        theirs.notes = vec!["hot".to_owned(), "loud".to_owned()];
        let merged = theirs.merge(ours.clone()).unwrap();
        assert_eq!(merged.figures, ours.figures);
        assert_eq!((merged.name.as_str(), merged.notes.len()), ("other", 2));
    }

    #[test]
    fn profiles_of_different_drives_are_not_merged() {
        let ours = profile(1.0, SourceKind::Measured, None);
        let small = Profile { capacity_bytes: 1 << 30, ..ours.clone() };
        let error = ours.clone().merge(small).unwrap_err();
        assert!(error.to_string().contains("1.07 GB"), "{error}");
        let other = Profile { model: "Another".to_owned(), ..ours.clone() };
        let error = ours.merge(other).unwrap_err();
        assert!(error.to_string().contains("'Another'"), "{error}");
    }
}
