//! The fill curve of a drive: how fast it took data from empty to full.

use serde::{Deserialize, Serialize};

use crate::Source;

/// A pass over an empty drive, in steps of even rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FillCurve {
    /// Bytes written when the step ends, and its rate in bytes a second. The first step begins at 0, each other one where the one
    /// before ends.
    pub steps: Vec<(u64, f64)>,
    /// Where it comes from.
    pub source: Source,
}

/// A curve that reaches this share of the capacity is of the whole drive.
const WHOLE_SHARE: f64 = 0.99;

impl FillCurve {
    /// Bytes that were written.
    pub fn bytes(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.0)
    }

    /// Whether it goes on until a drive of this capacity is full.
    pub fn is_whole(&self, capacity_bytes: u64) -> bool {
        self.bytes() as f64 >= WHOLE_SHARE * capacity_bytes as f64
    }

    /// All bytes over all time, in bytes a second; 0 without a step.
    pub fn mean_rate(&self) -> f64 {
        let seconds: f64 = self.pieces().map(|(bytes, rate)| bytes as f64 / rate).sum();
        if seconds > 0.0 { self.bytes() as f64 / seconds } else { 0.0 }
    }

    /// Bytes and rate of each step.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, f64)> {
        let starts = std::iter::once(0).chain(self.steps.iter().map(|step| step.0));
        self.steps.iter().zip(starts).map(|(&(end, rate), start)| (end.saturating_sub(start), rate))
    }

    /// What is wrong with it.
    pub(crate) fn problem(&self) -> Option<String> {
        if self.steps.is_empty() {
            return Some("it has no steps: leave it out".to_owned());
        }
        if let Some((bytes, _)) = self.pieces().find(|(bytes, _)| *bytes == 0) {
            return Some(format!("a step of {bytes} bytes: each must end behind the one before"));
        }
        let wrong = self.steps.iter().find(|(_, rate)| !(rate.is_finite() && *rate > 0.0));
        if let Some((end, rate)) = wrong {
            return Some(format!("the step that ends at {end} has a rate of {rate}, not above 0"));
        }
        self.source.origin.trim().is_empty().then(|| "its source's origin is empty".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceKind;

    fn curve(steps: &[(u64, f64)]) -> FillCurve {
        let source =
            Source { kind: SourceKind::Published, origin: "a page".to_owned(), when: None };
        FillCurve { steps: steps.to_vec(), source }
    }

    #[test]
    fn its_mean_is_bytes_over_time_and_not_the_mean_of_rates() {
        let curve = curve(&[(100, 100.0), (200, 25.0)]);
        assert!((curve.mean_rate() - 40.0).abs() < 1e-9);
        assert!(curve.is_whole(201) && !curve.is_whole(300));
        assert_eq!(curve.problem(), None);
    }

    #[test]
    fn steps_that_go_back_or_stand_still_are_refused() {
        for steps in [&[][..], &[(100, 1.0), (100, 2.0)], &[(100, 0.0)], &[(9, f64::NAN)]] {
            assert!(curve(steps).problem().is_some(), "{steps:?}");
        }
    }
}
