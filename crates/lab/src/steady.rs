//! Watches a run until its speed is steady.

use base::Duration;
use load::Interval;
use load::workload::Steady;

use crate::analysis::steady_state::{self, SteadyState, SteadyStateOptions};
use crate::rig::Go;

/// Gathers intervals into rounds and judges them.
#[derive(Clone, Debug)]
pub struct Watcher {
    steady: Steady,
    rounds: Vec<f64>,
    bytes: u64,
    time: Duration,
}

impl Watcher {
    /// For these criteria.
    pub fn new(steady: Steady) -> Self {
        Self { steady, rounds: Vec::new(), bytes: 0, time: Duration::ZERO }
    }

    /// Adds an interval; stops when it is steady, or has had rounds enough.
    pub fn look(&mut self, interval: &Interval) -> Go {
        if interval.warm_up {
            return Go::On;
        }
        self.bytes += interval.bytes();
        self.time = self.time + interval.length;
        if self.time < self.steady.round.0 {
            return Go::On;
        }
        self.rounds.push(self.bytes as f64 / self.time.as_secs_f64());
        self.bytes = 0;
        self.time = Duration::ZERO;
        let enough = self.rounds.len() >= self.steady.rounds_max as usize;
        if enough || self.state().reached_at.is_some() { Go::Stop } else { Go::On }
    }

    /// What the rounds so far say.
    pub fn state(&self) -> SteadyState {
        let options = SteadyStateOptions {
            window: self.steady.window as usize,
            range_max: self.steady.range_percent / 100.0,
            excursion_max: self.steady.slope_percent / 100.0,
            rounds_max: self.steady.rounds_max as usize,
        };
        steady_state::judge(&self.rounds, &options)
    }

    /// The same in words.
    pub fn describe(&self) -> String {
        let state = self.state();
        let Some(window) = &state.window else {
            return format!(
                "not known whether it is steady: {} rounds are fewer than a window",
                state.rounds
            );
        };
        let percent = |part: f64| 100.0 * part / window.average;
        let criteria = format!(
            "range {:.1} % (at most {}), slope {:.1} % (at most {}) over rounds {} to {}",
            percent(window.range),
            self.steady.range_percent,
            percent(window.excursion),
            self.steady.slope_percent,
            window.first_round,
            window.last_round
        );
        match state.reached_at {
            Some(round) => format!("steady from round {round}: {criteria}"),
            None => format!("NOT steady after {} rounds: {criteria}", state.rounds),
        }
    }
}
