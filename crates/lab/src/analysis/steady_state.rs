//! Steady state as SNIA defines it: five rounds in a row that neither scatter nor drift.
//!
//! "Solid State Storage Performance Test Specification" 2.0.2 (SNIA Standard, October 2020), definitions
//! of *steady state* and *measurement window*: with y the tracking variable of each round of the window,
//! (a) max(y) - min(y) is at most 20 % of the average, and (b) the greatest less the least value of the
//! best linear fit within the window is at most 10 % of the average. The fit is read at the rounds, so
//! over five rounds (b) is four times the slope. Rounds go on until both hold, 25 at most.

use serde::{Deserialize, Serialize};

/// The criteria. The default is the specification's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyStateOptions {
    /// Rounds in the window. Default 5; fewer than 2 is taken as 2.
    pub window: usize,
    /// Range over average, at most. Default 0.20.
    pub range_max: f64,
    /// Excursion of the fitted line over average, at most. Default 0.10.
    pub excursion_max: f64,
    /// Rounds at most. Default 25.
    pub rounds_max: usize,
}

impl Default for SteadyStateOptions {
    fn default() -> Self {
        Self { window: 5, range_max: 0.20, excursion_max: 0.10, rounds_max: 25 }
    }
}

/// The window and both criteria.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its first round, from 1.
    pub first_round: usize,
    /// Its last round, from 1.
    pub last_round: usize,
    /// Mean of the variable, in its unit.
    pub average: f64,
    /// Greatest less least value, in the variable's unit.
    pub range: f64,
    /// Whether the range is small enough.
    pub range_holds: bool,
    /// Slope of the least-squares line, in the variable's unit a round.
    pub slope: f64,
    /// The line's value at round 0, in the variable's unit.
    pub intercept: f64,
    /// Greatest less least value of the line at the window's rounds, in the variable's unit.
    pub excursion: f64,
    /// Whether the excursion is small enough.
    pub excursion_holds: bool,
}

impl Window {
    /// The line's value at a round (from 1), in the variable's unit.
    pub fn fit_at(&self, round: usize) -> f64 {
        self.intercept + self.slope * round as f64
    }

    /// Whether both criteria hold.
    pub fn holds(&self) -> bool {
        self.range_holds && self.excursion_holds
    }
}

/// Whether and when a run became steady.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// The round (from 1) with which both criteria held first; None if they never did.
    pub reached_at: Option<usize>,
    /// The window that ends there, or else the last; None with too few rounds for one.
    pub window: Option<Window>,
    /// Rounds looked at.
    pub rounds: usize,
    /// Whether no further round may be run: steady, or at the limit.
    pub ended: bool,
}

/// Judges the rounds so far: `values` is the tracking variable of each, first round first.
pub fn judge(values: &[f64], options: &SteadyStateOptions) -> SteadyState {
    let size = options.window.max(2);
    let values = &values[..values.len().min(options.rounds_max)];
    let mut last = None;
    for end in size..=values.len() {
        let window = window(values, end - size, end, options);
        let reached = window.holds();
        last = Some(window);
        if reached {
            return SteadyState { reached_at: Some(end), window: last, rounds: end, ended: true };
        }
    }
    let ended = values.len() >= options.rounds_max;
    SteadyState { reached_at: None, window: last, rounds: values.len(), ended }
}

fn window(values: &[f64], first: usize, end: usize, options: &SteadyStateOptions) -> Window {
    let inside = &values[first..end];
    let n = inside.len() as f64;
    let average = inside.iter().sum::<f64>() / n;
    let greatest = inside.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = inside.iter().copied().fold(f64::INFINITY, f64::min);
    let middle = (first + 1 + end) as f64 / 2.0;
    let from_middle = |i: usize| (first + 1 + i) as f64 - middle;
    let products: f64 =
        inside.iter().enumerate().map(|(i, y)| from_middle(i) * (y - average)).sum();
    let squares: f64 = (0..inside.len()).map(|i| from_middle(i).powi(2)).sum();
    let slope = products / squares;
    let (range, excursion) = (greatest - least, slope.abs() * (n - 1.0));
    Window {
        first_round: first + 1,
        last_round: end,
        average,
        range,
        range_holds: average > 0.0 && range <= options.range_max * average,
        slope,
        intercept: average - slope * middle,
        excursion,
        excursion_holds: average > 0.0 && excursion <= options.excursion_max * average,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge_plain(values: &[f64]) -> SteadyState {
        judge(values, &SteadyStateOptions::default())
    }

    #[test]
    fn a_decaying_run_is_steady_with_the_first_window_that_meets_both_criteria() {
        let values =
            [900.0, 500.0, 300.0, 200.0, 150.0, 120.0, 105.0, 101.0, 100.0, 99.0, 98.0, 97.0];
        let found = judge_plain(&values);
        // Rounds 6 to 10 have a range of 21 on 105 (exactly 20 %), but a line that falls by 19 %.
        assert_eq!(found.reached_at, Some(11));
        let window = found.window.unwrap();
        assert_eq!((window.first_round, window.last_round), (7, 11));
        assert!((window.average - 100.6).abs() < 1e-9);
        assert!((window.range - 7.0).abs() < 1e-9);
        assert!((window.slope + 1.6).abs() < 1e-9);
        assert!((window.excursion - 6.4).abs() < 1e-9);
        assert!((window.fit_at(9) - window.average).abs() < 1e-9);
    }

    #[test]
    fn a_slope_within_the_range_criterion_is_not_steady() {
        // Rises by 3 % a round: range 12 %, excursion 12 %.
        let found = judge_plain(&[94.0, 97.0, 100.0, 103.0, 106.0]);
        let window = found.window.unwrap();
        assert!(window.range_holds && !window.excursion_holds);
        assert_eq!(found.reached_at, None);
        assert!(!found.ended);
    }

    #[test]
    fn a_scatter_without_slope_is_not_steady() {
        let window = judge_plain(&[100.0, 125.0, 100.0, 125.0, 100.0]).window.unwrap();
        assert!(!window.range_holds && window.excursion_holds);
        assert_eq!(window.slope, 0.0);
    }

    #[test]
    fn the_limits_themselves_are_steady() {
        // A range of 20 on 100 and a slope of 2.5 a round, both exact in binary.
        let values = [96.75, 90.5, 110.5, 95.5, 106.75];
        let found = judge_plain(&values);
        let window = found.window.unwrap();
        assert_eq!((window.average, window.range), (100.0, 20.0));
        assert_eq!((window.slope, window.excursion), (2.5, 10.0));
        assert_eq!(found.reached_at, Some(5));
    }

    #[test]
    fn a_run_that_never_settles_ends_after_twenty_five_rounds() {
        let values: Vec<f64> = (0..40).map(|i| if i % 2 == 0 { 100.0 } else { 200.0 }).collect();
        let found = judge_plain(&values);
        assert_eq!((found.reached_at, found.rounds, found.ended), (None, 25, true));
        assert_eq!(found.window.unwrap().last_round, 25);
        // Steady from round 22 on would have come too late.
        let late: Vec<f64> =
            (0..40).map(|i| if i < 22 { f64::from(2 * i + 1) } else { 100.0 }).collect();
        assert_eq!(judge_plain(&late).reached_at, None);
    }

    #[test]
    fn nothing_measured_is_not_steady() {
        assert_eq!(judge_plain(&[]).window, None);
        assert_eq!(judge_plain(&[0.0; 25]).reached_at, None);
    }
}
