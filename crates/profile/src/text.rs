//! Profiles as TOML. What is written reads back as the same profile, to the last bit; what is wrong in a file is told with
//! its field and its line.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use toml::Spanned;

use crate::simulated::{self, Simulated};
use crate::{FillCurve, Known, Profile, name};

/// Why a text is no profile, or a profile can't be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileError {
    /// It isn't TOML, or a field is missing, unknown or of another type.
    Syntax {
        /// Line and column, from 1, if the parser knows them.
        place: Option<(usize, usize)>,
        /// What the parser says.
        reason: String,
    },
    /// A field's value can't be.
    Field {
        /// Which: `figures."write.native".range`.
        field: String,
        /// On which line it, or the figure it belongs to, begins, from 1; None if the profile doesn't come from a text.
        line: Option<usize>,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { place: Some((line, column)), reason } => {
                write!(f, "reading a profile failed at line {line}, column {column}: {reason}")
            }
            Self::Syntax { place: None, reason } => {
                write!(f, "reading a profile failed: {reason}")
            }
            Self::Field { field, line: Some(line), problem } => {
                write!(f, "reading a profile failed at line {line}, {field}: {problem}")
            }
            Self::Field { field, line: None, problem } => {
                write!(f, "the profile's {field} is not valid: {problem}")
            }
        }
    }
}

impl std::error::Error for ProfileError {}

/// The same as [`Profile`], with the places where fields lie.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Placed {
    name: Spanned<String>,
    model: Spanned<String>,
    kind: Spanned<String>,
    capacity_bytes: Spanned<u64>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    figures: BTreeMap<String, Spanned<Known>>,
    fill: Option<Spanned<FillCurve>>,
    #[serde(default)]
    simulated: simulated::Placed,
}

impl Profile {
    /// From TOML.
    ///
    /// # Errors
    /// [`ProfileError`] for the first thing that can't be.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        let placed: Placed = toml::from_str(text).map_err(|error| ProfileError::Syntax {
            place: error.span().map(|span| place(text, span.start)),
            reason: error.message().to_owned(),
        })?;
        let (simulated, places) =
            placed.simulated.read().map_err(|(fault, at)| ProfileError::Field {
                field: parameter(&fault.section, &fault.name),
                line: Some(place(text, at).0),
                problem: fault.problem,
            })?;
        let lines: BTreeMap<String, usize> = [
            ("name", placed.name.span()),
            ("model", placed.model.span()),
            ("kind", placed.kind.span()),
            ("capacity_bytes", placed.capacity_bytes.span()),
        ]
        .into_iter()
        .map(|(field, span)| (field.to_owned(), span))
        .chain(placed.fill.iter().map(|fill| ("fill".to_owned(), fill.span())))
        .chain(placed.figures.iter().map(|(name, known)| (figure(name), known.span())))
        .map(|(field, span)| (field, span.start))
        .chain(places.into_iter().map(|((section, name), at)| (parameter(&section, &name), at)))
        .map(|(field, at)| (field, place(text, at).0))
        .collect();
        let profile = Self {
            name: placed.name.into_inner(),
            model: placed.model.into_inner(),
            kind: placed.kind.into_inner(),
            capacity_bytes: placed.capacity_bytes.into_inner(),
            notes: placed.notes,
            figures: placed.figures.into_iter().map(|(n, known)| (n, known.into_inner())).collect(),
            fill: placed.fill.map(Spanned::into_inner),
            simulated,
        };
        match profile.problem() {
            None => Ok(profile),
            Some(Problem { of, part, problem }) => Err(ProfileError::Field {
                line: lines.get(&of).copied(),
                field: format!("{of}{part}"),
                problem,
            }),
        }
    }

    /// As TOML that reads back as the same profile.
    ///
    /// # Errors
    /// [`ProfileError::Field`] if it holds what [`Profile::from_toml`] would refuse.
    pub fn to_toml(&self) -> Result<String, ProfileError> {
        if let Some(Problem { of, part, problem }) = self.problem() {
            return Err(ProfileError::Field { field: format!("{of}{part}"), line: None, problem });
        }
        // Its own parameters' tables would be spread over many lines each.
        let head = Self { simulated: Simulated::default(), ..self.clone() };
        let head = toml::to_string(&head).map_err(|error| ProfileError::Syntax {
            place: None,
            reason: format!("it can't be written as TOML: {error}"),
        })?;
        Ok(head + &self.simulated.to_toml())
    }

    /// The first thing about it that can't be.
    fn problem(&self) -> Option<Problem> {
        let field =
            |of: &str, problem: String| Some(Problem { of: of.to_owned(), part: "", problem });
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if self.name.is_empty() || self.name.starts_with('.') || !self.name.chars().all(plain) {
            return field(
                "name",
                format!("'{}' can't name a file: use letters, digits, '-', '_' and '.'", self.name),
            );
        }
        if self.kind.is_empty() {
            return field("kind", "it is empty: give nvme, sata, file or simulated".to_owned());
        }
        if self.capacity_bytes == 0 || i64::try_from(self.capacity_bytes).is_err() {
            return field(
                "capacity_bytes",
                format!("{} is not between 1 and 2^63 - 1", self.capacity_bytes),
            );
        }
        let of_figures = self.figures.iter().find_map(|(name, known)| {
            let (part, problem) = figure_problem(name, known)?;
            Some(Problem { of: figure(name), part, problem })
        });
        let of_fill = || {
            let problem = self.fill.as_ref()?.problem()?;
            field("fill", problem)
        };
        of_figures.or_else(of_fill).or_else(|| {
            let fault = self.simulated.fault()?;
            let of = parameter(&fault.section, &fault.name);
            Some(Problem { of, part: "", problem: fault.problem })
        })
    }
}

/// What is wrong with which part of which field.
struct Problem {
    of: String,
    part: &'static str,
    problem: String,
}

fn figure_problem(name: &str, known: &Known) -> Option<(&'static str, String)> {
    let value = known.value;
    if !value.is_finite() || value < 0.0 {
        return Some((".value", format!("{value} is not a number of 0 or more")));
    }
    if let Some(unit) = name::unit(name).filter(|unit| *unit != known.unit) {
        return Some((".unit", format!("{name} counts {unit:?}, not {:?}", known.unit)));
    }
    if let Some((low, high)) = known.range
        && !(low.is_finite() && high.is_finite() && low <= high)
    {
        return Some((".range", format!("[{low}, {high}] is not from the least to the greatest")));
    }
    if let Some(confidence) = known.confidence
        && !(0.0..=1.0).contains(&confidence)
    {
        return Some((".confidence", format!("{confidence} is not between 0 and 1")));
    }
    if known.source.origin.trim().is_empty() {
        return Some((
            ".source.origin",
            "it is empty: say who measured it on what, or where it was published".to_owned(),
        ));
    }
    let when = known.source.when.as_deref().filter(|when| !is_date(when));
    when.map(|when| (".source.when", format!("'{when}' is no date: give it as 2026-11-21")))
}

/// `2026-11-21`, or that with a time behind a T.
fn is_date(text: &str) -> bool {
    let (date, time) = text.split_once('T').unwrap_or((text, "00"));
    let mut parts = date.split('-');
    let mut part = |digits: usize, greatest: u32| {
        parts.next().is_some_and(|part| {
            part.len() == digits
                && part.bytes().all(|b| b.is_ascii_digit())
                && part.parse().is_ok_and(|n: u32| n >= 1 && n <= greatest)
        })
    };
    let good = part(4, 9999) && part(2, 12) && part(2, 31);
    good && parts.next().is_none() && !time.is_empty()
}

fn figure(name: &str) -> String {
    format!("figures.{name:?}")
}

fn parameter(section: &str, name: &str) -> String {
    format!("simulated.{section}.{name}")
}

/// Line and column of a byte of the text, from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Direction, PcieLink, Source, SourceKind, Unit};
    use base::{ByteSize, Duration, Rate};
    use proptest::prelude::*;

    const TEXT: &str = r#"name = "970-evo-plus-1tb"
model = "Samsung 970 EVO Plus 1TB"
kind = "nvme"
capacity_bytes = 1000204886016
notes = ["TLC with a cache of SLC"]

[figures."write.fast"]
value = 2.75e9
unit = "bytes_per_second"
range = [2.7e9, 2.8e9]
source = { kind = "published", origin = "an article", when = "2021-06-01" }

[figures."write.cache_bytes"]
value = 42000000000.0
unit = "bytes"
confidence = 0.5
source = { kind = "assumed", origin = "the maker's white paper" }

[figures."link.gigatransfers"]
value = 8.0
unit = "count"
source = { kind = "published", origin = "datasheet" }

[figures."link.lanes"]
value = 4.0
unit = "count"
source = { kind = "published", origin = "datasheet" }

[figures."stream.read.512KiB.depth2.p99"]
value = 1500000.0
unit = "nanoseconds"
source = { kind = "measured", origin = "longtake on host", when = "2026-11-21T10:00:00Z" }
"#;

    #[test]
    fn what_is_known_comes_as_quantities_and_what_is_not_as_none() {
        let profile = Profile::from_toml(TEXT).unwrap();
        assert_eq!(profile.fast_write(), Some(Rate(2.75e9)));
        assert_eq!(profile.cache(), Some(ByteSize(42_000_000_000)));
        assert_eq!(profile.link(), Some(PcieLink { gigatransfers: 8.0, lanes: 4 }));
        assert_eq!(
            profile.stream_latency(Direction::Read, 512 << 10, 2, 99.0),
            Some(Duration::from_micros(1500))
        );
        assert_eq!(profile.native_write(), None);
        assert_eq!(profile.endurance(), None);
        let known = profile.known("write.fast").unwrap();
        assert_eq!((known.range, known.source.kind), (Some((2.7e9, 2.8e9)), SourceKind::Published));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_field_and_line() {
        for (wrong, right, line, field) in [
            ("2.75e9", "-1.0", 7, "write.fast\".value"),
            ("2.75e9", "nan", 7, "write.fast\".value"),
            ("\"bytes_per_second\"", "\"bytes\"", 7, "write.fast\".unit"),
            ("[2.7e9, 2.8e9]", "[2.8e9, 2.7e9]", 7, "write.fast\".range"),
            ("confidence = 0.5", "confidence = 50.0", 13, "cache_bytes\".confidence"),
            ("\"an article\"", "\"\"", 7, "write.fast\".source.origin"),
            ("2021-06-01", "June 2021", 7, "write.fast\".source.when"),
            ("970-evo-plus-1tb", "../970", 1, "name"),
            ("1000204886016", "0", 4, "capacity_bytes"),
        ] {
            let error = Profile::from_toml(&TEXT.replace(wrong, right)).unwrap_err();
            let ProfileError::Field { field: found, line: at, .. } = &error else {
                panic!("{error}")
            };
            assert_eq!(*at, Some(line), "{error}");
            assert!(found.contains(field), "{error}");
        }
    }

    #[test]
    fn a_field_that_is_missing_or_unknown_is_named() {
        let error = Profile::from_toml(&TEXT.replace("unit = \"bytes\"\n", "")).unwrap_err();
        assert!(error.to_string().contains("unit"), "{error}");
        let error = Profile::from_toml(&TEXT.replace("confidence", "confidense")).unwrap_err();
        let ProfileError::Syntax { place: Some((16, 1)), reason } = &error else {
            panic!("{error:?}")
        };
        assert!(reason.contains("confidense"), "{error}");
        let error = Profile::from_toml("name = \"a\"\nmodel").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }

    #[test]
    fn a_profile_that_could_not_be_read_back_is_not_written() {
        let mut profile = Profile::from_toml(TEXT).unwrap();
        profile.figures.get_mut("write.fast").unwrap().value = f64::INFINITY;
        let error = profile.to_toml().unwrap_err();
        assert!(error.to_string().contains("write.fast\".value"), "{error}");
    }

    fn known() -> impl Strategy<Value = Known> {
        let kind = prop::sample::select(vec![
            SourceKind::Assumed,
            SourceKind::Published,
            SourceKind::Measured,
        ]);
        (0.0..1e15f64, prop::option::of(0.0..=1.0f64), kind, "[ -~äπ\\n\"]{1,20}x").prop_map(
            |(value, confidence, kind, origin)| Known {
                value,
                unit: Unit::Count,
                range: confidence.map(|c| (value * c, value)),
                confidence,
                note: origin.clone(),
                source: Source { kind, origin, when: confidence.map(|_| "2026-11-21".to_owned()) },
            },
        )
    }

    fn fill() -> impl Strategy<Value = FillCurve> {
        let step = (1..=1u64 << 40, 1.0..1e11f64);
        prop::collection::vec(step, 1..5).prop_map(|steps| {
            let mut end = 0;
            let ends = steps.into_iter().map(|(bytes, rate)| {
                end += bytes;
                (end, rate)
            });
            let source =
                Source { kind: SourceKind::Published, origin: "a page".to_owned(), when: None };
            FillCurve { steps: ends.collect(), source }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_as_the_same(
            capacity_bytes in 1..=i64::MAX as u64,
            model in "[ -~é\\n\"']{0,20}",
            notes in prop::collection::vec("[ -~]{0,10}", 0..3),
            figures in prop::collection::btree_map("[a-z.\" ]{1,12}0", known(), 0..5),
            fill in prop::option::of(fill()),
        ) {
            let profile = Profile {
                model, notes, figures, fill,
                ..Profile::new("it", "", "nvme", capacity_bytes)
            };
            let text = profile.to_toml().unwrap();
            prop_assert_eq!(Profile::from_toml(&text).unwrap(), profile);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[a-z =\\[\\]\"0-9.\\n{}]{0,80}", cut in 0..TEXT.len()) {
            prop_assert!(Profile::from_toml(&text).is_err());
            let (head, tail) = TEXT.split_at(cut);
            if let Err(error) = Profile::from_toml(&format!("{head}{text}{tail}")) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
