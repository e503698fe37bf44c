//! Drives of a model that differ, as those that are bought do.

use base::Random;

use super::Spec;

/// Standard deviations from the model at most.
const DEVIATIONS_MAX: f64 = 3.0;

impl Spec {
    /// One drive of the model: what its flash and its cache take times as long as the seed and [`variation`](super::Flash::variation)
    /// say. Its own times don't vary any more.
    #[must_use]
    pub fn of_drive(&self, seed: u64) -> Self {
        let mut drive = self.clone();
        let variation = std::mem::take(&mut drive.flash.variation);
        if variation == 0.0 {
            return drive;
        }
        let times = 1.0 + variation * normal(seed).clamp(-DEVIATIONS_MAX, DEVIATIONS_MAX);
        let flash = &mut drive.flash;
        for time in [&mut flash.read_us, &mut flash.program_us, &mut flash.erase_us] {
            *time *= times;
        }
        if let Some(cache) = &mut drive.cache {
            cache.program_us *= times;
            cache.read_us *= times;
            let others = [&mut cache.first_program_us, &mut cache.fold_us];
            others.into_iter().flatten().for_each(|time| *time *= times);
        }
        drive
    }
}

/// A number that is normally distributed over seeds, with mean 0 and standard deviation 1: the sum of twelve that are evenly
/// distributed, which needs nothing that machines round differently.
fn normal(seed: u64) -> f64 {
    // Not what else follows from the seed.
    let mut random = Random::new(seed ^ 0x5661_7269_6174_696f);
    let even = (0..12).map(|_| (random.bits() >> 11) as f64 / (1_u64 << 53) as f64);
    even.sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_normal_has_the_mean_and_the_deviation_of_that() {
        let all: Vec<f64> = (0..10_000).map(normal).collect();
        let mean = all.iter().sum::<f64>() / 10_000.0;
        let square = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 10_000.0;
        // Five of their own deviations, as sums of so many have them.
        assert!(mean.abs() < 0.05 && (square - 1.0).abs() < 0.07, "{mean} {square}");
        let within = all.iter().filter(|one| one.abs() < 1.0).count();
        assert!((6_580..7_060).contains(&within), "{within} of 6,827");
    }
}
