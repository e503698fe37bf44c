//! Claims as data, and what they come to: a row for each claim, a comparison for each of its figures.

use std::fmt;

use base::{ByteSize, Duration, Rate};
use serde::{Deserialize, Serialize};

use crate::answer::Unit;

/// How far from a published figure ours may be, as a share of it.
pub const TOLERANCE: f64 = 0.10;

/// What a document claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its identifier: `REC-7`.
    pub id: &'static str,
    /// What it says.
    pub says: &'static str,
    /// Where the document contradicts itself in it.
    pub contradiction: Option<&'static str>,
}

/// What a claim came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The claim's identifier.
    pub id: String,
    /// What it says.
    pub says: String,
    /// Where the document contradicts itself in it.
    pub contradiction: Option<String>,
    /// Its figures against ours. Without any there is nothing in it that could be measured or computed.
    pub comparisons: Vec<Comparison>,
}

/// One thing that a claim says, and what we found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared.
    pub what: String,
    /// What was published.
    pub published: Published,
    /// What we found.
    pub ours: Found,
    /// What figures count.
    pub unit: Unit,
    /// How ours came about: its arithmetic.
    pub note: Option<String>,
    /// Why ours is believed to differ, where it does.
    pub reason: Option<String>,
}

/// What was published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Published {
    /// A figure, which ours must be within [`TOLERANCE`] of.
    About(f64),
    /// A number that ours must be.
    Exactly(f64),
    /// A range that ours must be in, with [`TOLERANCE`] at both ends.
    Between(f64, f64),
    /// A lower end, with [`TOLERANCE`].
    AtLeast(f64),
    /// An upper end, with [`TOLERANCE`].
    AtMost(f64),
    /// An order or a shape, in words.
    Words(String),
}

/// What we found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// Nothing: the run didn't show it.
    NotKnown,
    /// A figure.
    Figure(f64),
    /// An order or a shape: in words, and whether it is as published.
    Words {
        /// What it is.
        text: String,
        /// Whether that is what was published.
        holds: bool,
    },
}

/// What is to be said of a comparison, or of a claim with all of its comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// Nothing in it can be measured or computed.
    NothingToMeasure,
    /// As published.
    Met,
    /// Not as published, and the reason is believed to be known.
    Explained,
    /// Not as published.
    NotMet,
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NothingToMeasure => "nothing to measure",
            Self::Met => "met",
            Self::Explained => "explained",
            Self::NotMet => "NOT MET",
        })
    }
}

impl Claim {
    /// A claim that doesn't contradict itself.
    pub const fn new(id: &'static str, says: &'static str) -> Self {
        Self { id, says, contradiction: None }
    }

    /// The same with its contradiction.
    #[must_use]
    pub const fn contradicting(self, contradiction: &'static str) -> Self {
        Self { contradiction: Some(contradiction), ..self }
    }

    /// Its row, with nothing compared yet.
    pub fn row(&self) -> Row {
        Row {
            id: self.id.to_owned(),
            says: self.says.to_owned(),
            contradiction: self.contradiction.map(str::to_owned),
            comparisons: Vec::new(),
        }
    }
}

impl Row {
    /// With a figure held against ours.
    #[must_use]
    pub fn figure(
        mut self,
        what: impl Into<String>,
        published: Published,
        unit: Unit,
        ours: impl Into<Option<f64>>,
    ) -> Self {
        let ours =
            ours.into().filter(|ours| ours.is_finite()).map_or(Found::NotKnown, Found::Figure);
        let (what, note, reason) = (what.into(), None, None);
        self.comparisons.push(Comparison { what, published, ours, unit, note, reason });
        self
    }

    /// With an order or shape held against ours.
    #[must_use]
    pub fn words(
        mut self,
        what: impl Into<String>,
        published: impl Into<String>,
        holds: bool,
        ours: impl Into<String>,
    ) -> Self {
        self.comparisons.push(Comparison {
            what: what.into(),
            published: Published::Words(published.into()),
            ours: Found::Words { text: ours.into(), holds },
            unit: Unit::Count,
            note: None,
            reason: None,
        });
        self
    }

    /// How the last comparison's figure came about.
    #[must_use]
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        if let Some(last) = self.comparisons.last_mut() {
            last.note = Some(note.into());
        }
        self
    }

    /// Why the last comparison's figure is believed to differ. Nothing is said of it where it doesn't.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        if let Some(last) = self.comparisons.last_mut() {
            last.reason = (last.verdict() == ClaimVerdict::NotMet).then(|| reason.into());
        }
        self
    }

    /// The worst of its comparisons'.
    pub fn verdict(&self) -> ClaimVerdict {
        let verdicts = self.comparisons.iter().map(Comparison::verdict);
        verdicts.max().unwrap_or(ClaimVerdict::NothingToMeasure)
    }
}

impl Comparison {
    /// How far ours is from what was published, as a share of it: 0 within a range. None without two figures.
    pub fn difference(&self) -> Option<f64> {
        let Found::Figure(ours) = self.ours else { return None };
        let from = match self.published {
            Published::About(figure) | Published::Exactly(figure) => figure,
            // Beyond an end the difference is to that end.
            Published::Between(low, high) => ours.max(low).min(high),
            Published::AtLeast(least) => ours.max(least),
            Published::AtMost(most) => ours.min(most),
            Published::Words(_) => return None,
        };
        (from != 0.0).then(|| ours / from - 1.0)
    }

    /// Whether it is as published.
    pub fn verdict(&self) -> ClaimVerdict {
        let met = match (&self.ours, &self.published) {
            (Found::NotKnown, _) => false,
            (Found::Words { holds, .. }, _) => *holds,
            (Found::Figure(ours), Published::Exactly(figure)) => ours == figure,
            (Found::Figure(_), _) => self.difference().is_some_and(|d| d.abs() <= TOLERANCE),
        };
        match (met, &self.reason) {
            (true, _) => ClaimVerdict::Met,
            (false, Some(_)) => ClaimVerdict::Explained,
            (false, None) => ClaimVerdict::NotMet,
        }
    }

    /// What was published, as text with its unit.
    pub fn published_text(&self) -> String {
        let show = |value| figure(value, self.unit);
        match &self.published {
            Published::About(value) | Published::Exactly(value) => show(*value),
            Published::Between(low, high) => {
                let (low, high) = (show(*low), show(*high));
                // The unit is said once where both have the same.
                match (low.split_once(' '), high.split_once(' ')) {
                    (Some((value, unit)), Some((_, other))) if unit == other => {
                        format!("{value} to {high}")
                    }
                    _ => format!("{low} to {high}"),
                }
            }
            Published::AtLeast(value) => format!("at least {}", show(*value)),
            Published::AtMost(value) => format!("at most {}", show(*value)),
            Published::Words(text) => text.clone(),
        }
    }

    /// What we found, as text with its unit.
    pub fn ours_text(&self) -> String {
        match &self.ours {
            Found::NotKnown => "not known".to_owned(),
            Found::Figure(value) => figure(*value, self.unit),
            Found::Words { text, .. } => text.clone(),
        }
    }

    /// The difference as text: `+3.2 %`; empty without one.
    pub fn difference_text(&self) -> String {
        self.difference().map_or_else(String::new, |difference| {
            let percent = 100.0 * difference;
            // Less than half of the last digit is none.
            if percent.abs() < 0.05 { "0.0 %".to_owned() } else { format!("{percent:+.1} %") }
        })
    }
}

/// A figure with its unit, in three digits.
fn figure(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => ByteSize(value as u64).to_string(),
        Unit::BytesPerSecond => {
            let both = Rate(value).to_string();
            both.split_once(" (").map_or(both.clone(), |(bytes, _)| bytes.to_owned())
        }
        Unit::Nanoseconds => Duration::from_nanos(value as u64).to_string(),
        Unit::CommandsPerSecond => format!("{} IOPS", digits(value)),
        Unit::Percent => format!("{} %", digits(value)),
        Unit::Count => digits(value),
    }
}

/// Three significant digits, with k and M for thousands and millions from 10,000 on; whole numbers below as they are.
fn digits(value: f64) -> String {
    let (value, suffix) = match value.abs() {
        v if v >= 1e6 => (value / 1e6, " M"),
        v if v >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let decimals = match value.abs() {
        _ if value.fract() == 0.0 => 0,
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(published: Published, ours: f64) -> Comparison {
        let row = Claim::new("TST-1", "it is so").row();
        row.figure("it", published, Unit::Count, ours).comparisons.remove(0)
    }

    #[test]
    fn a_figure_is_met_within_a_tenth_and_a_range_at_its_ends() {
        for (published, ours, verdict, difference) in [
            (Published::About(10.0), 10.9, ClaimVerdict::Met, 0.09),
            (Published::About(10.0), 11.1, ClaimVerdict::NotMet, 0.11),
            (Published::Exactly(10.0), 10.0, ClaimVerdict::Met, 0.0),
            (Published::Exactly(10.0), 10.5, ClaimVerdict::NotMet, 0.05),
            (Published::Between(10.0, 20.0), 15.0, ClaimVerdict::Met, 0.0),
            (Published::Between(10.0, 20.0), 9.2, ClaimVerdict::Met, -0.08),
            (Published::Between(10.0, 20.0), 23.0, ClaimVerdict::NotMet, 0.15),
            (Published::AtLeast(10.0), 99.0, ClaimVerdict::Met, 0.0),
            (Published::AtLeast(10.0), 8.0, ClaimVerdict::NotMet, -0.2),
            (Published::AtMost(10.0), 1.0, ClaimVerdict::Met, 0.0),
            (Published::AtMost(10.0), 12.0, ClaimVerdict::NotMet, 0.2),
            (Published::About(10.0), f64::NAN, ClaimVerdict::NotMet, f64::NAN),
        ] {
            let comparison = compared(published, ours);
            assert_eq!(comparison.verdict(), verdict, "{comparison:?}");
            match comparison.difference() {
                Some(found) => assert!((found - difference).abs() < 1e-9, "{comparison:?}"),
                None => assert!(difference.is_nan(), "{comparison:?}"),
            }
        }
    }

    #[test]
    fn a_row_is_as_good_as_the_worst_of_its_comparisons_and_a_reason_explains_only_what_differs() {
        let claim = Claim::new("TST-1", "it is so");
        assert_eq!(claim.row().verdict(), ClaimVerdict::NothingToMeasure);
        let row = claim.row().figure("a", Published::About(1.0), Unit::Count, 1.0).because("never");
        assert_eq!((row.verdict(), &row.comparisons[0].reason), (ClaimVerdict::Met, &None));
        let row = row.figure("b", Published::About(1.0), Unit::Count, 2.0).because("it is known");
        assert_eq!(row.verdict(), ClaimVerdict::Explained);
        let row = row.words("c", "rises", false, "falls");
        assert_eq!(row.verdict(), ClaimVerdict::NotMet);
    }

    #[test]
    fn figures_are_shown_with_their_units_and_three_digits() {
        for (value, unit, text) in [
            (1.6e9, Unit::BytesPerSecond, "1.60 GB/s"),
            (42e9, Unit::Bytes, "42.0 GB"),
            (100e3, Unit::Nanoseconds, "100 us"),
            (350e3, Unit::CommandsPerSecond, "350 k IOPS"),
            (71.4, Unit::Percent, "71.4 %"),
            (2.25, Unit::Count, "2.25"),
            (1826.0, Unit::Count, "1826"),
        ] {
            assert_eq!(figure(value, unit), text);
        }
        let range = compared(Published::Between(2.7, 2.8), 2.75);
        assert_eq!(range.published_text(), "2.70 to 2.80");
        let rates = Claim::new("TST-1", "").row().figure(
            "rate",
            Published::Between(2.7e9, 2.8e9),
            Unit::BytesPerSecond,
            2.75e9,
        );
        assert_eq!(rates.comparisons[0].published_text(), "2.70 to 2.80 GB/s");
        assert_eq!(rates.comparisons[0].difference_text(), "0.0 %");
    }
}
