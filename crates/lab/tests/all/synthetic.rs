//! Series made by rule: a level with steps, noise of a stated kind, dips at stated places.

use base::Random;
use longtake_lab::analysis::{Point, Series};

pub const SECOND_NS: u64 = 1_000_000_000;
pub const GB_S: f64 = 1e9;

/// Noise of a level, relative to it.
#[derive(Clone, Copy, Debug)]
pub enum Noise {
    /// Independent, normal, with this standard deviation.
    White(f64),
    /// First-order autoregression: standard deviation and correlation of neighbours.
    Autoregressive(f64, f64),
}

/// A standard normal number (Box and Muller).
pub fn normal(random: &mut Random) -> f64 {
    let even = |random: &mut Random| (random.below(1 << 53) as f64 + 0.5) / (1u64 << 53) as f64;
    let (u, v) = (even(random), even(random));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// `levels` (bytes a second, one an interval of a second) with noise.
pub fn noisy(levels: &[f64], noise: Noise, random: &mut Random) -> Vec<f64> {
    let (sd, correlation) = match noise {
        Noise::White(sd) => (sd, 0.0),
        Noise::Autoregressive(sd, correlation) => (sd, correlation),
    };
    let fresh = (1.0 - correlation * correlation).sqrt();
    let mut state = normal(random);
    levels
        .iter()
        .map(|level| {
            state = correlation * state + fresh * normal(random);
            level * (1.0 + sd * state).max(0.0)
        })
        .collect()
}

/// Intervals of a second with these rates.
pub fn seconds(rates: &[f64]) -> Series {
    let points = rates.iter().enumerate().map(|(i, rate)| Point {
        start_ns: i as u64 * SECOND_NS,
        duration_ns: SECOND_NS,
        bytes: rate.round() as u64,
    });
    Series::new(points.collect()).unwrap()
}

/// `n` levels: `steps` are (first interval, level), the first at 0.
pub fn levels(n: usize, steps: &[(usize, f64)]) -> Vec<f64> {
    (0..n).map(|i| steps.iter().rev().find(|(from, _)| *from <= i).unwrap().1).collect()
}
