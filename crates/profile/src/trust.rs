//! How far a figure can be trusted, by where it comes from and how closely it is known.

use std::fmt;

use crate::{Known, SourceKind};

/// How far to trust a figure. The later ones are worth more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// Somebody's guess: measure before relying on it.
    Guess,
    /// A maker's or a reviewer's word for a drive of this model.
    Word,
    /// Measured, but it isn't known how far it strays, or it strays far.
    Loose,
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
            Self::Guess => "guess",
            Self::Word => "word",
            Self::Loose => "loose",
            Self::Close => "close",
        })
    }
}

impl Known {
    /// How far to trust it.
    pub fn trust(&self) -> Trust {
        let sure = self.confidence.is_none_or(|confidence| confidence >= CONFIDENCE_MIN);
        match (self.source.kind, self.spread()) {
            (SourceKind::Assumed, _) => Trust::Guess,
            (SourceKind::Published, _) => Trust::Word,
            (SourceKind::Measured, Some(spread)) if spread <= WIDE_SHARE && sure => Trust::Close,
            (SourceKind::Measured, _) => Trust::Loose,
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
            (Assumed, Some((100.0, 100.0)), None, Trust::Guess),
            (Published, None, None, Trust::Word),
            (Measured, None, None, Trust::Loose),
            (Measured, Some((80.0, 101.0)), None, Trust::Loose),
            (Measured, Some((95.0, 110.0)), Some(0.5), Trust::Loose),
            (Measured, Some((95.0, 110.0)), Some(0.99), Trust::Close),
            (Measured, Some((100.0, 100.0)), None, Trust::Close),
        ] {
            assert_eq!(known(kind, range, confidence).trust(), trust, "{kind:?} {range:?}");
        }
        assert!(Trust::Guess < Trust::Word && Trust::Loose < Trust::Close);
    }

    #[test]
    fn a_range_around_nothing_is_as_wide_as_can_be() {
        let known = Known { value: 0.0, ..known(SourceKind::Measured, Some((0.0, 1.0)), None) };
        assert_eq!(known.spread(), Some(f64::INFINITY));
        assert_eq!(known.trust(), Trust::Loose);
    }
}
