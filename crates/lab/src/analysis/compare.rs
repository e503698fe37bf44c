//! Two runs side by side: is one faster, or is no difference known?
//!
//! The ratio of their rates with a range from a circular block bootstrap (Politis and Romano, "A circular
//! block-resampling procedure for stationary data", 1992): blocks are as long as the noise remembers, so
//! that correlated intervals don't make a difference look sure. The range covers what varies within the
//! runs; what varies between runs of the same kind only shows when runs are repeated.

use base::Random;
use serde::{Deserialize, Serialize};

use super::noise;
use super::series::{Joined, Series};

/// How a comparison is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonOptions {
    /// Probability that the range holds the ratio, 0 to 1. Default 0.95. With several runs against one, the
    /// probability that all their ranges do (Bonferroni).
    pub confidence: f64,
    /// Resamples. Default 2,000.
    pub resamples: usize,
    /// Seed of the resampling: the same seed gives the same range. Default 1.
    pub seed: u64,
}

impl Default for ComparisonOptions {
    fn default() -> Self {
        Self { confidence: 0.95, resamples: 2_000, seed: 1 }
    }
}

/// What a comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonVerdict {
    /// The second run is faster.
    Faster,
    /// The second run is slower.
    Slower,
    /// The range holds 1, or there were too few intervals for a range.
    NoDifferenceKnown,
}

/// A second run against a first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Rate of the first run, in bytes a second.
    pub first: f64,
    /// Rate of the second run, in bytes a second.
    pub second: f64,
    /// Second over first; None if the first moved nothing.
    pub ratio: Option<f64>,
    /// Least and greatest ratio at the confidence asked for; None with fewer than
    /// eight intervals in either run.
    pub range: Option<(f64, f64)>,
    /// What follows.
    pub verdict: ComparisonVerdict,
}

/// A run of fewer intervals says too little about its own noise.
const INTERVALS_MIN: usize = 8;
/// Longer runs are joined to this many pieces of equal bytes, which bounds the time.
const PIECES_MAX: usize = 500;

/// Compares a second run with a first.
pub fn compare(first: &Series, second: &Series, options: &ComparisonOptions) -> Comparison {
    let ratio = (first.total_bytes() > 0 && !second.is_empty())
        .then(|| second.mean_rate() / first.mean_rate());
    let range = ratio.and_then(|_| {
        let mut random = Random::new(options.seed);
        let below = resampled_rates(first, options.resamples, &mut random)?;
        let above = resampled_rates(second, options.resamples, &mut random)?;
        let ratios = above.iter().zip(&below).filter(|(_, b)| **b > 0.0).map(|(a, b)| a / b);
        quantile_range(ratios.collect(), options.confidence)
    });
    let verdict = match range {
        Some((low, _)) if low > 1.0 => ComparisonVerdict::Faster,
        Some((_, high)) if high < 1.0 => ComparisonVerdict::Slower,
        _ => ComparisonVerdict::NoDifferenceKnown,
    };
    Comparison { first: first.mean_rate(), second: second.mean_rate(), ratio, range, verdict }
}

/// Compares each of several runs with one; the confidence is that of all the ranges together.
pub fn compare_all(
    first: &Series,
    others: &[&Series],
    options: &ComparisonOptions,
) -> Vec<Comparison> {
    let confidence = 1.0 - (1.0 - options.confidence) / others.len().max(1) as f64;
    let each = ComparisonOptions { confidence, ..options.clone() };
    others.iter().map(|other| compare(first, other, &each)).collect()
}

/// The range of a run's rate in bytes a second, by the same resampling; None with fewer than
/// eight intervals.
pub fn rate_range(series: &Series, options: &ComparisonOptions) -> Option<(f64, f64)> {
    let mut random = Random::new(options.seed);
    let rates = resampled_rates(series, options.resamples, &mut random)?;
    quantile_range(rates, options.confidence)
}

fn resampled_rates(series: &Series, resamples: usize, random: &mut Random) -> Option<Vec<f64>> {
    let (pieces, _) = series.joined(PIECES_MAX);
    let n = pieces.len();
    if n < INTERVALS_MIN {
        return None;
    }
    let rates: Vec<f64> = pieces.iter().map(Joined::rate).collect();
    let floor = series.mean_rate() * 1e-9;
    let memory = noise::estimate(&rates, floor.max(f64::MIN_POSITIVE)).memory();
    let block = ((n as f64).cbrt().max(2.0 * memory).ceil() as usize).clamp(1, n / 4);
    let resample = |random: &mut Random| {
        let (mut bytes, mut ns, mut left) = (0u128, 0u128, n);
        while left > 0 {
            let start = random.below(n as u64) as usize;
            let take = block.min(left);
            for i in start..start + take {
                let piece = &pieces[i % n];
                bytes += u128::from(piece.bytes);
                ns += u128::from(piece.duration_ns);
            }
            left -= take;
        }
        bytes as f64 * 1e9 / ns as f64
    };
    Some((0..resamples).map(|_| resample(random)).collect())
}

fn quantile_range(mut values: Vec<f64>, confidence: f64) -> Option<(f64, f64)> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let tail = ((1.0 - confidence) / 2.0).clamp(0.0, 0.5);
    let low = (tail * last as f64).floor() as usize;
    Some((values[low], values[last - low]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Point;

    fn series(n: usize, level: f64, sd: f64, correlation: f64, random: &mut Random) -> Series {
        let mut state = 0.0;
        let points = (0..n).map(|i| {
            let normal = (0..12).map(|_| random.bits() as f64 / u64::MAX as f64).sum::<f64>() - 6.0;
            state = correlation * state + (1.0f64 - correlation * correlation).sqrt() * normal;
            Point {
                start_ns: i as u64 * 1_000_000_000,
                duration_ns: 1_000_000_000,
                bytes: (level * (1.0 + sd * state)).max(0.0) as u64,
            }
        });
        Series::new(points.collect()).unwrap()
    }

    #[test]
    fn runs_of_one_rate_are_seldom_told_apart_even_when_noise_remembers() {
        let mut random = Random::new(11);
        let told = (0..200)
            .filter(|_| {
                let first = series(200, 1e9, 0.05, 0.6, &mut random);
                let second = series(200, 1e9, 0.05, 0.6, &mut random);
                let options = ComparisonOptions { resamples: 300, ..ComparisonOptions::default() };
                compare(&first, &second, &options).verdict != ComparisonVerdict::NoDifferenceKnown
            })
            .count();
        // 5 % are expected, and block bootstraps are known to come out somewhat above.
        assert!(told <= 24, "{told} of 200");
    }

    #[test]
    fn a_run_five_hundredths_slower_is_called_slower_and_its_ratio_lies_in_the_range() {
        let mut random = Random::new(12);
        let (mut slower, mut held) = (0, 0);
        for _ in 0..100 {
            let first = series(200, 1e9, 0.05, 0.3, &mut random);
            let second = series(150, 0.95e9, 0.05, 0.3, &mut random);
            let options = ComparisonOptions { resamples: 300, ..ComparisonOptions::default() };
            let found = compare(&first, &second, &options);
            slower += usize::from(found.verdict == ComparisonVerdict::Slower);
            let (low, high) = found.range.unwrap();
            held += usize::from(low <= 0.95 && 0.95 <= high);
        }
        assert!(slower == 100 && held >= 88, "{slower} slower, {held} held");
    }

    #[test]
    fn the_same_seed_gives_the_same_range() {
        let mut random = Random::new(13);
        let first = series(50, 1e9, 0.05, 0.0, &mut random);
        let second = series(50, 2e9, 0.05, 0.0, &mut random);
        let options = ComparisonOptions::default();
        let found = compare(&first, &second, &options);
        assert_eq!(found, compare(&first, &second, &options));
        assert_eq!(found.verdict, ComparisonVerdict::Faster);
        let range = rate_range(&first, &options).unwrap();
        assert!(range.0 < first.mean_rate() && first.mean_rate() < range.1, "{range:?}");
    }

    #[test]
    fn several_runs_against_one_have_wider_ranges() {
        let mut random = Random::new(14);
        let first = series(80, 1e9, 0.05, 0.0, &mut random);
        let second = series(80, 1e9, 0.05, 0.0, &mut random);
        let options = ComparisonOptions::default();
        let width = |c: &Comparison| c.range.map(|(low, high)| high - low).unwrap();
        let alone = compare(&first, &second, &options);
        let among = compare_all(&first, &[&second; 10], &options);
        assert_eq!(among.len(), 10);
        assert!(width(&among[0]) > width(&alone));
    }

    #[test]
    fn too_few_intervals_or_no_bytes_give_no_range() {
        let mut random = Random::new(15);
        let long = series(80, 1e9, 0.05, 0.0, &mut random);
        let short = series(7, 1e9, 0.05, 0.0, &mut random);
        let options = ComparisonOptions::default();
        let found = compare(&long, &short, &options);
        assert_eq!((found.range, found.verdict), (None, ComparisonVerdict::NoDifferenceKnown));
        assert!(found.ratio.is_some());
        assert_eq!(compare(&Series::default(), &long, &options).ratio, None);
    }
}
