//! Findings: the statements of an experiment as values. A finding has a subject, quantities, and a kind, which is the relation that it
//! claims between them. Its sentence is generated from the quantities, so it always shows the measured numbers. The claim is checked
//! against the figures and the other findings before it is printed.

use std::fmt;

use base::{ByteSize, Duration, Rate};
use serde::Serialize;

use crate::answer::{Figure, Unit};
use crate::experiment::trouble::iops;

/// Values that differ by less than this share are the same: what adding up in another order changes.
const SAME_SHARE: f64 = 1e-9;
/// Percentages that differ by less than this are the same.
const SAME_PERCENT: f64 = 1e-6;

/// A second below this share of the rate that a recording relies on is one that its buffers have to ride out.
pub const DIP_SHARE: f64 = 0.95;

/// A value that a finding names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantity {
    /// The figure that it is; empty if it is a part of the result that has no name among the figures.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub figure: String,
    /// Its value.
    pub value: f64,
    /// What it counts.
    pub unit: Unit,
    /// Digits behind the point where it is printed; of percentages and counts alone.
    #[serde(skip)]
    decimals: usize,
}

/// What a finding claims of its quantities, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Nothing: it says how something was measured, or what to know about it.
    Remark,
    /// They are what was measured.
    States,
    /// The first is an average over a time of which the subject's slowest part is a part.
    Averages,
    /// The first is what is left of the second, and no more than it.
    Keeps,
    /// The first is the share of the second that the third says.
    Share,
    /// The subject goes from the first down to the second.
    Falls,
    /// The same after so many bytes as the third says, and it doesn't come back.
    FallsForGood,
    /// The subject goes from the first up to the second.
    Rises,
    /// The subject doesn't go down.
    Stays,
    /// The first is the rate of the slowest stretch, which a recording can rely on. The second, if known and slower, is the slowest
    /// second within it, and the third the bytes of buffer that this second needs.
    Relies,
    /// The first is the greatest of all that the rest are.
    Greatest,
    /// The subject carries the first for as long as anybody wants; the second, if there is one, is more than it carries, counted in
    /// another unit.
    Carries,
    /// The first is the most that the subject ever did.
    AtBest,
    /// The subject is the limit. The first is a share of it, in percent.
    Limits,
    /// The subject may be the limit. The first is a share of it, in percent.
    MayLimit,
    /// The subject is not the limit. The first is a share of it, in percent.
    DoesNotLimit,
    /// The first is more than the second allows.
    Exceeds,
    /// The subject meets what was asked of it: the first is at least the second.
    Meets,
    /// The subject falls short of what was asked: the first is below the second.
    FallsShort,
}

/// Something that an experiment found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What it is about, as figures are named; empty for a remark.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// What it claims.
    pub kind: FindingKind,
    /// Of what.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quantities: Vec<Quantity>,
    /// The same as a sentence.
    pub sentence: String,
}

/// Findings that can't all be true: an error of the program's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// The finding.
    pub finding: String,
    /// The other one; None if it contradicts its own quantities or a figure.
    pub other: Option<String>,
    /// What can't be.
    pub law: String,
}

impl Quantity {
    /// A figure's value.
    pub fn of(figure: &str, value: f64, unit: Unit) -> Self {
        Self { figure: figure.to_owned(), value, unit, decimals: 0 }
    }

    /// A value that is no figure of its own.
    pub fn new(value: f64, unit: Unit) -> Self {
        Self::of("", value, unit)
    }

    /// A rate in bytes a second that is no figure of its own.
    pub fn rate(value: f64) -> Self {
        Self::new(value, Unit::BytesPerSecond)
    }

    /// A number of bytes that is no figure of its own.
    pub fn bytes(value: u64) -> Self {
        Self::new(value as f64, Unit::Bytes)
    }

    /// A time that is no figure of its own.
    pub fn time(ns: u64) -> Self {
        Self::new(ns as f64, Unit::Nanoseconds)
    }

    /// Percent, printed with so many digits behind the point, that are no figure of their own.
    pub fn percent(value: f64, decimals: usize) -> Self {
        Self { decimals, ..Self::new(value, Unit::Percent) }
    }

    /// The same, which is this figure.
    #[must_use]
    pub fn named(self, figure: &str) -> Self {
        Self { figure: figure.to_owned(), ..self }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, decimals, .. } = *self;
        match self.unit {
            Unit::BytesPerSecond => Rate(value).fmt(f),
            Unit::Bytes => ByteSize(value as u64).fmt(f),
            Unit::Nanoseconds => Duration::from_nanos(value as u64).fmt(f),
            Unit::CommandsPerSecond => f.write_str(&iops(value)),
            Unit::Percent => write!(f, "{value:.decimals$} %"),
            _ => write!(f, "{value:.decimals$}"),
        }
    }
}

impl Finding {
    /// A finding whose sentence has the quantities in the places of `{0}`, `{1}` and so on.
    pub fn new(
        subject: &str,
        kind: FindingKind,
        quantities: Vec<Quantity>,
        sentence: &str,
    ) -> Self {
        let mut text = sentence.to_owned();
        for (place, quantity) in quantities.iter().enumerate() {
            text = text.replace(&format!("{{{place}}}"), &quantity.to_string());
        }
        debug_assert!(!text.contains('{'), "{text}");
        Self { subject: subject.to_owned(), kind, quantities, sentence: text }
    }

    /// A sentence that claims nothing that was measured.
    pub fn remark(sentence: impl Into<String>) -> Self {
        Self {
            subject: String::new(),
            kind: FindingKind::Remark,
            quantities: Vec::new(),
            sentence: sentence.into(),
        }
    }

    fn value(&self, place: usize) -> Option<f64> {
        self.quantities.get(place).map(|quantity| quantity.value)
    }

    /// What is wrong with its quantities among themselves.
    fn broken(&self) -> Option<String> {
        let (first, second, third) = (self.value(0), self.value(1), self.value(2));
        let law = |holds: Option<bool>, law: &str| (holds == Some(false)).then(|| law.to_owned());
        let both = first.zip(second);
        match self.kind {
            FindingKind::Carries
            | FindingKind::AtBest
            | FindingKind::Remark
            | FindingKind::States
            | FindingKind::Averages
            | FindingKind::Stays => None,
            FindingKind::Keeps => law(both.map(|(a, b)| a <= b), "what is left is more than all"),
            FindingKind::Share => {
                let share = both.zip(third).map(|((a, b), share)| {
                    (share - 100.0 * a / b).abs() <= SAME_PERCENT * share.abs().max(1.0)
                });
                law(share, "the share is another one")
            }
            FindingKind::Falls | FindingKind::FallsForGood => {
                law(both.map(|(a, b)| b < a), "what falls ends higher")
            }
            FindingKind::Rises => law(both.map(|(a, b)| b > a), "what rises ends lower"),
            FindingKind::Relies => {
                let ridden =
                    both.map(|(rate, second)| second >= DIP_SHARE * rate || third.is_some());
                law(ridden, "it relies on more than the slowest second has, and names no buffer")
            }
            FindingKind::Greatest => {
                let most = self.quantities.iter().map(|q| q.value).fold(f64::MIN, f64::max);
                law(first.map(|first| first >= most), "another one is greater")
            }
            FindingKind::Limits | FindingKind::MayLimit | FindingKind::DoesNotLimit => {
                law(first.map(|share| share <= 100.0), "no more than all of a limit can be used")
            }
            FindingKind::Exceeds => law(both.map(|(a, b)| a > b), "it is within what is allowed"),
            FindingKind::Meets => law(both.map(|(a, b)| a >= b), "it has less than it asked for"),
            FindingKind::FallsShort => law(both.map(|(a, b)| a < b), "it has what it asked for"),
        }
    }

    /// Which of its quantities isn't what the figure of that name says.
    fn denied(&self, figures: &[Figure]) -> Option<String> {
        self.quantities.iter().filter(|q| !q.figure.is_empty()).find_map(|quantity| {
            let named = figures.iter().find(|figure| figure.name == quantity.figure);
            match named.and_then(|figure| figure.value) {
                Some(value) if same(value, quantity.value) => None,
                Some(value) => Some(format!(
                    "the figure {} is {}",
                    quantity.figure,
                    Quantity { value, ..quantity.clone() }
                )),
                None => Some(format!("there is no figure {}", quantity.figure)),
            }
        })
    }

    /// Why it can't be true together with another one.
    fn contradicts(&self, other: &Self) -> Option<String> {
        for ours in self.quantities.iter().filter(|q| !q.figure.is_empty()) {
            let theirs = other.quantities.iter().find(|theirs| theirs.figure == ours.figure);
            if theirs.is_some_and(|theirs| !same(theirs.value, ours.value)) {
                return Some(format!("{} has two values", ours.figure));
            }
        }
        if self.subject.is_empty() || self.subject != other.subject {
            return None;
        }
        let law = match (self.kind, other.kind) {
            (FindingKind::Stays, FindingKind::Falls | FindingKind::FallsForGood) => {
                "what stays doesn't fall"
            }
            (FindingKind::FallsForGood, FindingKind::Rises)
                if other.value(2)? > self.value(2)? && other.value(1)? >= self.value(0)? =>
            {
                "what fell for good came back"
            }
            (FindingKind::Carries, FindingKind::AtBest)
                if self.value(0)? > other.value(0)? * (1.0 + SAME_SHARE) =>
            {
                "more is carried than there is"
            }
            (FindingKind::Limits, FindingKind::MayLimit | FindingKind::DoesNotLimit) => {
                "a limit is one or is none"
            }
            (FindingKind::Meets, FindingKind::FallsShort) => "it can't be short of what it has",
            (FindingKind::Relies, FindingKind::Averages)
                if self.value(0)? > other.value(0)? * (1.0 + SAME_SHARE) =>
            {
                "the slowest part is faster than the whole"
            }
            (FindingKind::Relies, FindingKind::Relies) if self.value(0) != other.value(0) => {
                "it relies on two rates"
            }
            _ => return None,
        };
        Some(law.to_owned())
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { finding, other, law } = self;
        write!(f, "Longtake contradicts itself; please report this error: \"{finding}\"")?;
        if let Some(other) = other {
            write!(f, " and \"{other}\"")?;
        }
        write!(f, " can't be true, because {law}.")
    }
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME_SHARE * a.abs().max(b.abs())
}

/// Compares findings with what they say themselves, with the figures that they name, and with each other.
pub fn contradictions(findings: &[Finding], figures: &[Figure]) -> Vec<Contradiction> {
    let mut found = Vec::new();
    for (place, finding) in findings.iter().enumerate() {
        let own = finding.broken().or_else(|| finding.denied(figures));
        let of_own = own.map(|law| (None, law));
        let others = findings.iter().enumerate().filter(|(other, _)| *other != place);
        // Of two that contradict each other either may see it: each pair is told once.
        let with_others = others.filter_map(|(other, theirs)| {
            let law = finding.contradicts(theirs)?;
            let told = other < place && theirs.contradicts(finding).is_some();
            (!told).then(|| (Some(theirs.sentence.clone()), law))
        });
        found.extend(of_own.into_iter().chain(with_others).map(|(other, law)| Contradiction {
            finding: finding.sentence.clone(),
            other,
            law,
        }));
    }
    found
}

/// The findings as sentences. A contradiction replaces the findings that it is about.
pub fn sentences(findings: &[Finding], figures: &[Figure]) -> Vec<String> {
    let wrong = contradictions(findings, figures);
    let is_wrong = |sentence: &String| {
        wrong.iter().any(|c| c.finding == *sentence || c.other.as_ref() == Some(sentence))
    };
    let good = findings.iter().map(|finding| &finding.sentence).filter(|s| !is_wrong(s)).cloned();
    wrong.iter().map(ToString::to_string).chain(good).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use FindingKind::*;

    fn of(kind: FindingKind, values: &[f64]) -> Finding {
        let quantities: Vec<Quantity> = values.iter().map(|&v| Quantity::rate(v)).collect();
        let places: Vec<String> = (0..values.len()).map(|n| format!("{{{n}}}")).collect();
        Finding::new("write", kind, quantities, &format!("{kind:?} {}", places.join(" ")))
    }

    fn laws(findings: &[Finding]) -> Vec<String> {
        contradictions(findings, &[]).into_iter().map(|c| c.law).collect()
    }

    #[test]
    fn each_law_is_kept_by_true_findings_and_broken_by_false_ones() {
        for (kind, good, bad) in [
            (Keeps, &[180.0, 181.0][..], &[246.0, 181.0][..]),
            (Share, &[50.0, 200.0, 25.0], &[50.0, 200.0, 50.0]),
            (Falls, &[1.7, 1.61], &[1.61, 1.7]),
            (Rises, &[1.0, 2.0], &[2.0, 1.0]),
            (Relies, &[1.74, 1.38, 9.0], &[1.74, 1.38]),
            (Relies, &[1.74, 1.70], &[1.74, 0.0]),
            (Greatest, &[3.0, 1.0, 3.0], &[1.0, 3.0]),
            (Limits, &[99.0], &[101.0]),
            (DoesNotLimit, &[50.0], &[150.0]),
            (Meets, &[2.0, 2.0], &[1.0, 2.0]),
            (FallsShort, &[1.0, 2.0], &[2.0, 2.0]),
        ] {
            assert_eq!(laws(&[of(kind, good)]), [""; 0], "{kind:?} {good:?}");
            assert_eq!(laws(&[of(kind, bad)]).len(), 1, "{kind:?} {bad:?}");
        }
    }

    #[test]
    fn two_findings_that_deny_each_other_are_told_once_and_not_as_findings() {
        for pair in [
            [of(Stays, &[1.7]), of(Falls, &[1.7, 1.61])],
            [of(DoesNotLimit, &[90.0]), of(Limits, &[90.0])],
            [of(Averages, &[1.0]), of(Relies, &[1.1])],
            [of(Relies, &[1.0]), of(Relies, &[1.1])],
            [of(Meets, &[1.0, 1.0]), of(FallsShort, &[1.0, 2.0])],
            [of(FallsForGood, &[1.7, 1.6, 58.0]), of(Rises, &[1.6, 1.7, 67.0])],
            [of(AtBest, &[3.5]), of(Carries, &[3.8])],
        ] {
            assert_eq!(laws(&pair).len(), 1, "{pair:?}");
            let said = sentences(&pair, &[]);
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].contains("please report this error"), "{said:?}");
            let mut elsewhere = pair;
            elsewhere[1].subject = "read".to_owned();
            assert_eq!(laws(&elsewhere), [""; 0]);
        }
    }

    #[test]
    fn a_finding_is_compared_with_the_figures_that_it_names() {
        let rate = Quantity::rate(1.5e9).named("write.native");
        let finding = Finding::new("write", States, vec![rate], "It writes {0}.");
        assert_eq!(finding.sentence, "It writes 1.50 GB/s (12.0 Gb/s).");
        let figure = |value| Figure::new("write.native", "", value, Unit::BytesPerSecond);
        let check = |figures: &[Figure]| contradictions(std::slice::from_ref(&finding), figures);
        assert_eq!(check(&[figure(1.5e9)]), []);
        assert!(check(&[figure(1.4e9)])[0].law.contains("write.native is 1.40 GB/s"));
        assert!(check(&[])[0].law.contains("there is no figure write.native"));
        let mut other = finding.clone();
        other.quantities[0].value = 1.4e9;
        assert_eq!(finding.contradicts(&other).unwrap(), "write.native has two values");
    }
}
