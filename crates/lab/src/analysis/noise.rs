//! How noisy a series is and how long its noise is correlated, measured in a way that steps and dips
//! don't affect.
//!
//! Throughput noise is autocorrelated: the mean of n intervals varies more than with independent
//! noise. The long-run deviation says by how much, and every test of a change uses it.

/// The noise of a sequence of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Noise {
    /// Standard deviation of one value about its level.
    pub sd: f64,
    /// Long-run standard deviation: a mean of n values strays by this over the root of n.
    pub long_run_sd: f64,
    /// Long-run variance over half the mean squared difference of neighbours; at least 1.
    pub inflation: f64,
}

impl Noise {
    /// How many values carry as much as one independent value; at least 1.
    pub fn memory(&self) -> f64 {
        (self.long_run_sd / self.sd).powi(2).max(1.0)
    }
}

/// Scales a median absolute deviation to the standard deviation of normal noise.
const MAD_TO_SD: f64 = 1.4826;
/// Differences beyond this many deviations are steps or dips, and count as this much.
const DIFFERENCE_SD_MAX: f64 = 4.0;
/// Autocorrelation above this can't be told from drift.
const CORRELATION_MAX: f64 = 0.9;
/// Values there must be for each one in a block, so that a few steps disturb few blocks.
const VALUES_A_BLOCK_VALUE: usize = 40;

/// The noise of `values`, at least `floor` (a standard deviation).
///
/// Two estimates of the long-run variance, the greater counts: that of a first-order autoregression,
/// whose correlation follows from the mean squared differences at lag 1 and 2 (2 s^2 (1 - r) and
/// 2 s^2 (1 - r^2)), and that of the differences of neighbouring block means.
pub(super) fn estimate(values: &[f64], floor: f64) -> Noise {
    let near = mean_square_difference(values, 1).max(floor * floor);
    let far = mean_square_difference(values, 2);
    let found = (far / near - 1.0).clamp(0.0, CORRELATION_MAX);
    // One standard error more: what is not known counts as memory.
    let error = ((1.0 - found * found) / values.len().max(1) as f64).sqrt();
    let correlation = (found + error).min(CORRELATION_MAX);
    let variance = near / (1.0 - correlation);
    let mut long_run = variance * (1.0 + correlation) / (1.0 - correlation);
    for block in [4, 8, 16, 32] {
        if values.len() >= block * VALUES_A_BLOCK_VALUE {
            let sd = difference_sd(&sliding_means(values, block), block);
            long_run = long_run.max(sd * sd * block as f64);
        }
    }
    Noise {
        sd: variance.sqrt(),
        long_run_sd: long_run.sqrt(),
        inflation: (long_run / near).max(1.0),
    }
}

/// Half the mean squared difference of values `lag` apart, great ones cut: the variance of
/// independent noise.
pub(super) fn mean_square_difference(values: &[f64], lag: usize) -> f64 {
    if values.len() <= lag {
        return 0.0;
    }
    let mut sizes: Vec<f64> =
        values.iter().zip(&values[lag..]).map(|(a, b)| (b - a).abs()).collect();
    let most = DIFFERENCE_SD_MAX * MAD_TO_SD * median_of(&mut sizes);
    let squares: f64 = sizes.iter().map(|d| d.min(most).powi(2)).sum();
    squares / sizes.len() as f64 / 2.0
}

/// The standard deviation of independent noise whose values `lag` apart differ by this much in the
/// median.
pub(super) fn difference_sd(values: &[f64], lag: usize) -> f64 {
    if values.len() <= lag {
        return 0.0;
    }
    let mut sizes: Vec<f64> =
        values.iter().zip(&values[lag..]).map(|(a, b)| (b - a).abs()).collect();
    MAD_TO_SD * median_of(&mut sizes) / std::f64::consts::SQRT_2
}

fn sliding_means(values: &[f64], width: usize) -> Vec<f64> {
    let mut sum: f64 = values[..width].iter().sum();
    let mut means = vec![sum / width as f64];
    for i in width..values.len() {
        sum += values[i] - values[i - width];
        means.push(sum / width as f64);
    }
    means
}

/// The median; 0 of nothing.
pub(super) fn median(values: &[f64]) -> f64 {
    median_of(&mut values.to_vec())
}

fn median_of(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = if even { below.iter().copied().fold(f64::MIN, f64::max) } else { upper };
    f64::midpoint(lower, upper)
}

/// The value below which half the weight lies; 0 of nothing.
pub(super) fn weighted_median(pairs: &mut [(f64, u64)]) -> f64 {
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let half = pairs.iter().map(|p| u128::from(p.1)).sum::<u128>() / 2;
    let mut sum = 0u128;
    pairs
        .iter()
        .find(|(_, weight)| {
            sum += u128::from(*weight);
            sum > half
        })
        .or(pairs.last())
        .map_or(0.0, |p| p.0)
}

/// The values without outliers: a value more than `sd_max` deviations from the median of the `width`
/// values around it is replaced by that median. So short excursions disappear, and those longer than
/// half the width stay. The deviation is measured over four widths before and after, at least `floor`.
/// The greater of the two counts, so that noise at the edge of a quiet phase is no outlier.
pub(super) fn without_strays(values: &[f64], width: usize, sd_max: f64, floor: f64) -> Vec<f64> {
    let medians = sliding_medians(values, width);
    let strays: Vec<f64> = values.iter().zip(&medians).map(|(v, m)| (v - m).abs()).collect();
    let usual = sliding_medians(&strays, 4 * width + 1);
    let limit = |i: usize| {
        let before = usual[i.saturating_sub(2 * width)];
        let after = usual[(i + 2 * width).min(usual.len() - 1)];
        sd_max * (MAD_TO_SD * before.max(after)).max(floor)
    };
    (0..values.len()).map(|i| if strays[i] <= limit(i) { values[i] } else { medians[i] }).collect()
}

/// The median of the `width` values around each; at the ends the window is moved, not shortened.
fn sliding_medians(values: &[f64], width: usize) -> Vec<f64> {
    let low_max = values.len().saturating_sub(width);
    (0..values.len())
        .map(|i| {
            let low = i.saturating_sub(width / 2).min(low_max);
            median(&values[low..(low + width).min(values.len())])
        })
        .collect()
}

/// The standard deviation of values about their median, by the half above it alone: dips lie below.
pub(super) fn upper_sd(values: &[f64]) -> f64 {
    let middle = median(values);
    let above: Vec<f64> = values.iter().filter(|v| **v >= middle).map(|v| v - middle).collect();
    MAD_TO_SD * median(&above)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;

    /// Nearly normal: the sum of twelve even numbers.
    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.bits() as f64 / u64::MAX as f64).sum::<f64>() - 6.0
    }

    fn autoregression(n: usize, correlation: f64, sd: f64, random: &mut Random) -> Vec<f64> {
        let fresh = sd * (1.0 - correlation * correlation).sqrt();
        let mut last = sd * normal(random);
        (0..n)
            .map(|_| {
                last = correlation * last + fresh * normal(random);
                last
            })
            .collect()
    }

    #[test]
    fn the_long_run_deviation_of_correlated_noise_is_found() {
        let mut random = Random::new(3);
        for correlation in [0.0, 0.3, 0.6f64] {
            let truth = ((1.0 + correlation) / (1.0 - correlation)).sqrt();
            let found: Vec<f64> = (0..50)
                .map(|_| {
                    let values = autoregression(800, correlation, 1.0, &mut random);
                    estimate(&values, 1e-9).long_run_sd
                })
                .collect();
            let ratio = median(&found) / truth;
            assert!((0.95..1.35).contains(&ratio), "{correlation}: {ratio}");
        }
    }

    #[test]
    fn steps_and_dips_hardly_change_the_estimate() {
        let mut values = autoregression(600, 0.3, 1.0, &mut Random::new(5));
        let plain = estimate(&values, 1e-9).long_run_sd;
        values[300..].iter_mut().for_each(|v| *v -= 20.0);
        (0..600).step_by(60).for_each(|i| values[i] -= 30.0);
        let kept = without_strays(&values, 11, 4.0, 1e-9);
        let disturbed = estimate(&kept, 1e-9).long_run_sd;
        assert!((0.8..1.3).contains(&(disturbed / plain)), "{plain} {disturbed}");
    }

    #[test]
    fn medians_are_those_of_the_definition() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
        assert_eq!(weighted_median(&mut [(1.0, 1), (9.0, 5), (2.0, 1)]), 9.0);
        assert_eq!(weighted_median(&mut []), 0.0);
    }
}
