//! Schedules: when an open loop intends its commands at a rate, whatever the drive does.

use base::{Duration, Instant, Random};
use rand_distr::{Distribution, Exp1};

use crate::address::Draws;
use crate::quantity::Pace;
use crate::workload::Arrival;

/// The intended starts of one job. They are kept as fractions of nanoseconds since its start, so that a rate is
/// kept for as long as it runs.
#[derive(Clone, Debug)]
pub struct Schedule {
    pace: Pace,
    arrival: Arrival,
    start: Instant,
    /// Nanoseconds from the start to the next command.
    next_ns: f64,
    /// How many more of this burst.
    left: u32,
}

impl Schedule {
    /// From `start` on. Several jobs with the same rate are spread over the first distance by `phase`, from 0 to 1.
    pub fn new(pace: Pace, arrival: Arrival, start: Instant, phase: f64, mean_bytes: f64) -> Self {
        let mut schedule = Self { pace, arrival, start, next_ns: 0.0, left: 0 };
        let per_burst = if let Arrival::Bursts(count) = arrival { f64::from(count) } else { 1.0 };
        schedule.next_ns = schedule.distance_ns(mean_bytes) * per_burst * phase;
        schedule
    }

    /// When the next command is intended.
    pub fn next(&self) -> Instant {
        self.start + Duration::from_nanos(self.next_ns as u64)
    }

    /// Goes on by one command of `bytes`.
    pub fn advance(&mut self, bytes: u64, random: &mut Random) {
        let distance = self.distance_ns(bytes as f64);
        self.next_ns += match self.arrival {
            Arrival::Constant => distance,
            Arrival::Poisson => {
                let stretch: f64 = Exp1.sample(&mut Draws(random));
                distance * stretch
            }
            Arrival::Bursts(count) => {
                if self.left == 0 {
                    self.left = count;
                }
                self.left -= 1;
                if self.left == 0 { distance * f64::from(count) } else { 0.0 }
            }
        };
    }

    fn distance_ns(&self, bytes: f64) -> f64 {
        match self.pace {
            Pace::Bytes(rate) => bytes * 1e9 / rate,
            Pace::Commands(rate) => 1e9 / rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(pace: Pace, arrival: Arrival, count: usize) -> Vec<u64> {
        let mut random = Random::new(3);
        let mut schedule = Schedule::new(pace, arrival, Instant::START, 0.0, 4096.0);
        (0..count)
            .map(|_| {
                let at = schedule.next().as_nanos();
                schedule.advance(4096, &mut random);
                at
            })
            .collect()
    }

    #[test]
    fn a_constant_rate_is_kept_however_odd_it_is() {
        let starts = starts(Pace::Commands(3.0), Arrival::Constant, 3_000_001);
        assert!(
            starts[3_000_000].abs_diff(1_000_000_000_000_000) < 100_000,
            "within 0.1 ms after a million seconds"
        );
        let bytes = self::starts(Pace::Bytes(4096.0 * 1000.0), Arrival::Constant, 3);
        assert_eq!(bytes, [0, 1_000_000, 2_000_000]);
    }

    #[test]
    fn poisson_distances_have_the_mean_and_the_spread_of_independent_users() {
        let starts = starts(Pace::Commands(1000.0), Arrival::Poisson, 100_001);
        let distances: Vec<f64> = starts.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect();
        let mean = distances.iter().sum::<f64>() / 1e5;
        let variance = distances.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.015 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    #[test]
    fn bursts_come_together_and_keep_the_rate() {
        let starts = starts(Pace::Commands(1000.0), Arrival::Bursts(4), 12);
        assert_eq!(starts[..4], [0, 0, 0, 0]);
        assert_eq!(
            starts[4..],
            [
                4_000_000, 4_000_000, 4_000_000, 4_000_000, 8_000_000, 8_000_000, 8_000_000,
                8_000_000
            ]
        );
    }
}
