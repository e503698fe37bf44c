//! Claims as data, and what they come to: a row for each claim, a comparison for each of its figures.

use std::fmt;

use base::{ByteSize, Duration, Rate};
use serde::{Deserialize, Serialize};

use super::basis::Basis;
use crate::answer::Unit;

/// How far from a published figure ours may be, as a share of it.
pub const TOLERANCE: f64 = 0.10;

/// How far beyond the end of a published range ours may be, as a share of that end: what rounding to two digits hides.
pub const END_TOLERANCE: f64 = 0.02;

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
    /// What the comparisons that are added next rest on, and the claim itself as long as it has none.
    pub basis: Basis,
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
    /// What ours rests on.
    pub basis: Basis,
    /// How ours came about: its arithmetic.
    pub note: Option<String>,
    /// Why ours is believed to differ, where it does.
    pub explanation: Option<Explanation>,
}

/// Why a figure of ours differs from what was published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Whether the published figure is contradicted, by others of its document or by the experiment, rather than missed by
    /// the model.
    pub contradicts: bool,
    /// The reason.
    pub reason: String,
    /// The figures of ours that it explains, from the least to the greatest. None of words.
    pub covers: Option<(f64, f64)>,
}

/// What was published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Published {
    /// A figure, which ours must be within [`TOLERANCE`] of.
    About(f64),
    /// A number that ours must be.
    Exactly(f64),
    /// A range that ours must be in, with [`END_TOLERANCE`] at both ends.
    Between(f64, f64),
    /// A lower end, with [`END_TOLERANCE`].
    AtLeast(f64),
    /// An upper end, with [`END_TOLERANCE`].
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

/// What is to be said of a comparison, or of a claim with all of its comparisons. The last of them is the claim's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// Nothing in it can be measured or computed fairly.
    NotTestable,
    /// As published, by definition.
    Arithmetic,
    /// As published, and no parameter was chosen with this figure in view, nor with another of the same drive that the figure
    /// depends on: evidence for the model.
    Predicted,
    /// As published, and it isn't known whether a parameter that it depends on was fitted to it: the drive is not the library's.
    AsPublished,
    /// As published, but a parameter that it depends on was fitted to this figure or to another of the same drive: no evidence.
    Calibrated,
    /// Not as published, because the document's own figures or the experiment contradict it.
    Contradicted,
    /// Not as published.
    NotMet,
}

impl ClaimVerdict {
    /// All of them, best evidence first.
    pub const ALL: [Self; 7] = [
        Self::Predicted,
        Self::AsPublished,
        Self::Calibrated,
        Self::Arithmetic,
        Self::Contradicted,
        Self::NotMet,
        Self::NotTestable,
    ];
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotTestable => "not testable",
            Self::Arithmetic => "arithmetic",
            Self::Predicted => "predicted",
            Self::AsPublished => "as published",
            Self::Calibrated => "calibrated",
            Self::Contradicted => "contradicted",
            Self::NotMet => "not met",
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
    pub fn row(&self, basis: Basis) -> Row {
        Row {
            id: self.id.to_owned(),
            says: self.says.to_owned(),
            contradiction: self.contradiction.map(str::to_owned),
            basis,
            comparisons: Vec::new(),
        }
    }
}

impl Row {
    /// What the comparisons that are added next rest on.
    #[must_use]
    pub fn on(self, basis: Basis) -> Self {
        Self { basis, ..self }
    }

    /// With a figure held against ours.
    #[must_use]
    pub fn figure(
        self,
        what: impl Into<String>,
        published: Published,
        unit: Unit,
        ours: impl Into<Option<f64>>,
    ) -> Self {
        let ours =
            ours.into().filter(|ours| ours.is_finite()).map_or(Found::NotKnown, Found::Figure);
        self.compare(what.into(), published, unit, ours)
    }

    /// With an order or shape held against ours.
    #[must_use]
    pub fn words(
        self,
        what: impl Into<String>,
        published: impl Into<String>,
        holds: bool,
        ours: impl Into<String>,
    ) -> Self {
        let ours = Found::Words { text: ours.into(), holds };
        self.compare(what.into(), Published::Words(published.into()), Unit::Count, ours)
    }

    fn compare(mut self, what: String, published: Published, unit: Unit, ours: Found) -> Self {
        let basis = self.basis.clone();
        let (note, explanation) = (None, None);
        let comparison = Comparison { what, published, ours, unit, basis, note, explanation };
        self.comparisons.push(comparison);
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

    /// Why the model misses the last comparison's figure, where it does so with a figure of this range.
    #[must_use]
    pub fn because(self, reason: impl Into<String>, covers: (f64, f64)) -> Self {
        self.explained(false, reason.into(), Some(covers))
    }

    /// Why the last comparison's figure can't be as published, where ours is in this range: the document's other figures, or the
    /// experiment, contradict it.
    #[must_use]
    pub fn contradicted(self, reason: impl Into<String>, covers: (f64, f64)) -> Self {
        self.explained(true, reason.into(), Some(covers))
    }

    /// Why what the last comparison says in words isn't so.
    #[must_use]
    pub fn contradicted_in_words(self, reason: impl Into<String>) -> Self {
        self.explained(true, reason.into(), None)
    }

    /// Why the model doesn't show what the last comparison says in words.
    #[must_use]
    pub fn missed_in_words(self, reason: impl Into<String>) -> Self {
        self.explained(false, reason.into(), None)
    }

    /// Explains the last comparison if it differs.
    fn explained(mut self, contradicts: bool, reason: String, covers: Option<(f64, f64)>) -> Self {
        if let Some(last) = self.comparisons.last_mut() {
            let explanation = Explanation { contradicts, reason, covers };
            last.explanation = (!last.is_as_published()).then_some(explanation);
        }
        self
    }

    /// The last of its comparisons' verdicts, in the order of [`ClaimVerdict`].
    pub fn verdict(&self) -> ClaimVerdict {
        let verdicts = self.comparisons.iter().map(Comparison::verdict);
        verdicts.max().unwrap_or(ClaimVerdict::NotTestable)
    }
}

impl Explanation {
    /// Whether it explains this finding.
    fn covers(&self, found: &Found) -> bool {
        match (found, self.covers) {
            (Found::Figure(ours), Some((least, greatest))) => (least..=greatest).contains(ours),
            (Found::Words { .. }, None) => true,
            _ => false,
        }
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

    /// Whether ours is what was published, within the tolerance.
    fn is_as_published(&self) -> bool {
        let within = |tolerance| self.difference().is_some_and(|d| d.abs() <= tolerance);
        match (&self.ours, &self.published) {
            (Found::NotKnown, _) => false,
            (Found::Words { holds, .. }, _) => *holds,
            (Found::Figure(ours), Published::Exactly(figure)) => ours == figure,
            (Found::Figure(_), Published::About(_)) => within(TOLERANCE),
            (Found::Figure(_), _) => within(END_TOLERANCE),
        }
    }

    /// The explanation that covers what we found.
    fn holding_explanation(&self) -> Option<&Explanation> {
        self.explanation.as_ref().filter(|explanation| explanation.covers(&self.ours))
    }

    /// What is to be said of it.
    pub fn verdict(&self) -> ClaimVerdict {
        match &self.basis {
            Basis::NotTestable(_) => ClaimVerdict::NotTestable,
            _ if !self.is_as_published() => match self.holding_explanation() {
                Some(explanation) if explanation.contradicts => ClaimVerdict::Contradicted,
                _ => ClaimVerdict::NotMet,
            },
            Basis::Arithmetic => ClaimVerdict::Arithmetic,
            Basis::Simulated(fitted) if fitted.is_empty() => ClaimVerdict::Predicted,
            Basis::Simulated(fitted) if fitted.iter().all(|one| one.claims.is_empty()) => {
                ClaimVerdict::AsPublished
            }
            Basis::Simulated(_) => ClaimVerdict::Calibrated,
        }
    }

    /// Why it differs, as text: the explanation, or that it doesn't reach so far.
    pub fn explained(&self) -> Option<String> {
        let explanation = self.explanation.as_ref()?;
        let reason = &explanation.reason;
        Some(match (self.holding_explanation(), explanation.covers) {
            (None, Some((least, greatest))) => {
                let (least, greatest) = (figure(least, self.unit), figure(greatest, self.unit));
                format!(
                    "NOT explained: the known reason covers only {least} to {greatest}: {reason}"
                )
            }
            _ => reason.clone(),
        })
    }

    /// Whether it differs from what was published and nothing explains a difference like that.
    pub fn is_unexplained(&self) -> bool {
        self.verdict() == ClaimVerdict::NotMet && self.holding_explanation().is_none()
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
    use crate::published::basis::Fitted;

    /// Simulated, with a fitted parameter or with none.
    fn simulated(fitted: bool) -> Basis {
        let claims = vec!["TST-1".to_owned()];
        let fitted = fitted.then(|| Fitted { of: "d".into(), name: "flash.x".into(), claims });
        Basis::Simulated(fitted.into_iter().collect())
    }

    fn claimed(basis: Basis) -> Row {
        Claim::new("TST-1", "it is so").row(basis)
    }

    fn compared(published: Published, ours: f64) -> Comparison {
        claimed(simulated(false)).figure("it", published, Unit::Count, ours).comparisons.remove(0)
    }

    #[test]
    fn a_figure_is_as_published_within_a_tenth_and_a_range_but_for_rounding_at_its_ends() {
        for (published, ours, holds, difference) in [
            (Published::About(10.0), 10.9, true, 0.09),
            (Published::About(10.0), 11.1, false, 0.11),
            (Published::Exactly(10.0), 10.0, true, 0.0),
            (Published::Exactly(10.0), 10.5, false, 0.05),
            (Published::Between(10.0, 20.0), 15.0, true, 0.0),
            (Published::Between(10.0, 20.0), 9.9, true, -0.01),
            (Published::Between(10.0, 20.0), 9.2, false, -0.08),
            (Published::Between(10.0, 20.0), 23.0, false, 0.15),
            (Published::AtLeast(10.0), 99.0, true, 0.0),
            (Published::AtLeast(10.0), 9.5, false, -0.05),
            (Published::AtMost(10.0), 1.0, true, 0.0),
            (Published::AtMost(10.0), 10.5, false, 0.05),
            (Published::About(10.0), f64::NAN, false, f64::NAN),
        ] {
            let comparison = compared(published, ours);
            let verdict = if holds { ClaimVerdict::Predicted } else { ClaimVerdict::NotMet };
            assert_eq!(comparison.verdict(), verdict, "{comparison:?}");
            match comparison.difference() {
                Some(found) => assert!((found - difference).abs() < 1e-9, "{comparison:?}"),
                None => assert!(difference.is_nan(), "{comparison:?}"),
            }
        }
    }

    #[test]
    fn what_is_as_published_is_worth_what_it_rests_on() {
        for (basis, verdict, differing) in [
            (simulated(false), ClaimVerdict::Predicted, ClaimVerdict::NotMet),
            (simulated(true), ClaimVerdict::Calibrated, ClaimVerdict::NotMet),
            (Basis::Arithmetic, ClaimVerdict::Arithmetic, ClaimVerdict::NotMet),
            (Basis::not_testable("why"), ClaimVerdict::NotTestable, ClaimVerdict::NotTestable),
        ] {
            let at =
                |ours| claimed(basis.clone()).figure("a", Published::About(1.0), Unit::Count, ours);
            assert_eq!((at(1.0).verdict(), at(2.0).verdict()), (verdict, differing));
        }
        assert_eq!(claimed(simulated(false)).verdict(), ClaimVerdict::NotTestable);
        let row = claimed(simulated(false)).words("a", "rises", true, "rises");
        assert_eq!(row.verdict(), ClaimVerdict::Predicted);
        let row = row.on(simulated(true)).words("b", "falls", true, "falls");
        assert_eq!(row.verdict(), ClaimVerdict::Calibrated);
        assert_eq!(row.words("c", "falls", false, "rises").verdict(), ClaimVerdict::NotMet);
    }

    #[test]
    fn an_explanation_holds_in_the_range_that_it_covers_and_nowhere_else() {
        let at =
            |ours| claimed(simulated(false)).figure("a", Published::About(1.0), Unit::Count, ours);
        for (ours, contradicted, missed, unexplained) in [
            (1.0, ClaimVerdict::Predicted, ClaimVerdict::Predicted, false),
            (2.0, ClaimVerdict::Contradicted, ClaimVerdict::NotMet, false),
            (200.0, ClaimVerdict::NotMet, ClaimVerdict::NotMet, true),
        ] {
            let row = at(ours).contradicted("it is known", (1.5, 2.5));
            assert_eq!(row.verdict(), contradicted);
            assert_eq!(row.comparisons[0].is_unexplained(), unexplained);
            let row = at(ours).because("it is known", (1.5, 2.5));
            assert_eq!(row.verdict(), missed);
            assert_eq!(row.comparisons[0].is_unexplained(), unexplained);
            assert_eq!(row.comparisons[0].explanation.is_some(), ours > 1.0);
        }
        assert!(at(2.0).comparisons[0].is_unexplained());
        let words = |holds| claimed(Basis::Arithmetic).words("a", "rises", holds, "so");
        let verdict = |row: Row| (row.verdict(), row.comparisons[0].is_unexplained());
        let why = "it can't";
        assert_eq!(
            verdict(words(true).contradicted_in_words(why)),
            (ClaimVerdict::Arithmetic, false)
        );
        assert_eq!(
            verdict(words(false).contradicted_in_words(why)),
            (ClaimVerdict::Contradicted, false)
        );
        assert_eq!(verdict(words(false).missed_in_words(why)), (ClaimVerdict::NotMet, false));
        assert_eq!(verdict(words(false)), (ClaimVerdict::NotMet, true));
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
        let rates = claimed(Basis::Arithmetic).figure(
            "rate",
            Published::Between(2.7e9, 2.8e9),
            Unit::BytesPerSecond,
            2.75e9,
        );
        assert_eq!(rates.comparisons[0].published_text(), "2.70 to 2.80 GB/s");
        assert_eq!(rates.comparisons[0].difference_text(), "0.0 %");
    }
}
