//! How sure it is that a number of drives writes as fast as data comes, by what is known of the figures that it was computed from.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::limits::{Case, Subject};
use crate::requirement::Requirement;

/// A plan also names the number of drives that is enough with this confidence.
pub const SURE: f64 = 0.99;
/// Standard deviations up to which figures are looked at: what lies beyond is rarer than any range tells.
const DEVIATIONS_MAX: f64 = 4.0;
/// As many times as the deviations are halved in the search: to a thousandth of one.
const HALVINGS: usize = 12;

/// How sure a number of drives is. All figures are taken to be worse than stated by as many standard deviations at once, because they are
/// mostly measured on the same drive on the same day.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confidence {
    /// The chance that the planned drives write as fast as data comes, without any margin, from 0.5 to 1.
    pub enough: f64,
    /// Drives for data that do so with a chance of [`SURE`]; None if no number does.
    pub sure_drives: Option<u32>,
    /// The figure that limits them, and from where to where it lies in 95 of 100 cases, in bytes a second.
    pub figure: String,
    /// Its range.
    pub range: (f64, f64),
}

impl Confidence {
    /// Of so many drives for data. None if nothing tells how far the figure that limits them may be off, or if a drive was seen to hold
    /// its share.
    pub fn of(requirement: &Requirement, subject: &Subject<'_>, drives: u32) -> Option<Self> {
        let requirement = Requirement { margin_percent: 0.0, ..requirement.clone() };
        let mut candidate = subject.candidate.clone();
        // Of each drive, whether so many are enough where its figures are off by so many deviations.
        let mut with = |deviations: f64, look: &mut dyn FnMut(&Case<'_>)| {
            candidate.worse_by(deviations);
            if let Some(subject) = subject.with_figures_of(&candidate) {
                look(&Case::new(&requirement, &subject));
            }
        };
        let limiting = |case: &Case<'_>| {
            let figure = &case.subject.phases.slowest(case.fill(drives)).figure;
            figure.range.map(|range| (figure.name.clone(), range))
        };
        let mut limits = None;
        with(0.0, &mut |case| {
            let seen = case.holds(drives, requirement.placement).is_some();
            limits = limiting(case).filter(|_| !seen);
        });
        let (mut figure, mut range) = limits?;
        let mut enough_at = |deviations| {
            let mut enough = false;
            with(deviations, &mut |case| enough = case.sustains(drives, requirement.placement));
            enough
        };
        let (mut low, mut high) = (0.0, DEVIATIONS_MAX);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if enough_at(middle) { low = middle } else { high = middle }
        }
        // Where they are just too slow, another figure may be the one that limits them.
        if high < DEVIATIONS_MAX {
            with(high, &mut |case| {
                (figure, range) = limiting(case).unwrap_or((figure.clone(), range))
            });
        }
        let mut sure_drives = None;
        with(Normal::standard().inverse_cdf(SURE), &mut |case| {
            sure_drives = case.sustaining(requirement.placement);
        });
        Some(Self { enough: Normal::standard().cdf(low), sure_drives, figure, range })
    }
}
