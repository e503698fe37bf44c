//! How far a figure can be trusted, by where it comes from and how closely it is known.

use std::fmt;

use serde::Serialize;

use crate::{Known, SourceKind};

/// How far to trust a figure. The later ones are worth more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Taken for granted, or computed from what a simulated drive is made of: measure before relying on it.
    Assumed,
    /// The maker's word: what it holds for, and for how long, isn't known (REC-1).
    Datasheet,
    /// Published by somebody who measured a drive of this model.
    Published,
    /// Measured, but it isn't known how far it strays, or it strays far.
    Measured,
    /// Measured, and known to lie within a tenth of its value.
    Close,
}

/// A range that reaches further than this share of the value to either side is a wide one.
const WIDE_SHARE: f64 = 0.1;
/// Less confidence than this says little.
const CONFIDENCE_MIN: f64 = 0.95;

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Assumed => "assumed",
            Self::Datasheet => "datasheet",
            Self::Published => "published by a measurer",
            Self::Measured => "measured",
            Self::Close => "measured closely",
        })
    }
}

impl Known {
    /// How far to trust it. A maker's word is told from a measurer's by the origin: profiles write `datasheet` there.
    pub fn trust(&self) -> Trust {
        let sure = self.confidence.is_none_or(|confidence| confidence >= CONFIDENCE_MIN);
        let maker = || self.source.origin.to_lowercase().contains("datasheet");
        match (self.source.kind, self.spread()) {
            (SourceKind::Assumed, _) => Trust::Assumed,
            (SourceKind::Published, _) if maker() => Trust::Datasheet,
            (SourceKind::Published, _) => Trust::Published,
            (SourceKind::Measured, Some(spread)) if spread <= WIDE_SHARE && sure => Trust::Close,
            (SourceKind::Measured, _) => Trust::Measured,
        }
    }

    /// How far its range reaches from its value on the wider side, as a share of the value; None if no range is known.
    pub fn spread(&self) -> Option<f64> {
        let (low, high) = self.range?;
        let furthest = (self.value - low).max(high - self.value);
        Some(if furthest <= 0.0 { 0.0 } else { furthest / self.value.abs() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, Unit};

    fn known(kind: SourceKind, range: Option<(f64, f64)>, confidence: Option<f64>) -> Known {
        let source = Source { kind, origin: "here".to_owned(), when: None };
        Known { value: 100.0, unit: Unit::Bytes, range, confidence, note: String::new(), source }
    }

    #[test]
    fn what_was_measured_closely_is_worth_most_and_a_guess_least() {
        use SourceKind::{Assumed, Measured, Published};
        for (kind, range, confidence, trust) in [
            (Assumed, Some((100.0, 100.0)), None, Trust::Assumed),
            (Published, None, None, Trust::Published),
            (Measured, None, None, Trust::Measured),
            (Measured, Some((80.0, 101.0)), None, Trust::Measured),
            (Measured, Some((95.0, 110.0)), Some(0.5), Trust::Measured),
            (Measured, Some((95.0, 110.0)), Some(0.99), Trust::Close),
            (Measured, Some((100.0, 100.0)), None, Trust::Close),
        ] {
            assert_eq!(known(kind, range, confidence).trust(), trust, "{kind:?} {range:?}");
        }
        let mut told = known(Published, None, None);
        told.source.origin = "Datasheet, page 3".to_owned();
        assert_eq!(told.trust(), Trust::Datasheet);
        let all =
            [Trust::Assumed, Trust::Datasheet, Trust::Published, Trust::Measured, Trust::Close];
        assert!(all.is_sorted());
    }

    #[test]
    fn a_range_around_nothing_is_as_wide_as_can_be() {
        let known = Known { value: 0.0, ..known(SourceKind::Measured, Some((0.0, 1.0)), None) };
        assert_eq!(known.spread(), Some(f64::INFINITY));
        assert_eq!(known.trust(), Trust::Measured);
    }
}
