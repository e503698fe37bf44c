//! Drives of a model that differ, as those that are bought do.

use base::Random;

use super::{Flash, Media, Spec};

/// Standard deviations from the model at most.
const DEVIATIONS_MAX: f64 = 3.0;

impl Spec {
    /// One drive of the model: what its flash and its cache take times as long as the seed and [`variation`](Flash::variation) say,
    /// and it has as many superblocks as its [`bad_blocks`](Flash::bad_blocks) leave. Its own times and blocks don't vary any more.
    #[must_use]
    pub fn of_drive(&self, seed: u64) -> Self {
        let mut drive = self.clone();
        let variation = std::mem::take(&mut drive.flash.variation);
        if variation > 0.0 {
            let times = 1.0 + variation * normal(seed).clamp(-DEVIATIONS_MAX, DEVIATIONS_MAX);
            drive.take_times_as_long(times);
        }
        if self.flash.media == Media::Nand && std::mem::take(&mut drive.flash.bad_blocks) > 0.0 {
            drive.lose_superblocks(
                self.flash.bad_superblocks(self.superblocks_of_set().into(), seed),
            );
        }
        drive
    }

    fn take_times_as_long(&mut self, times: f64) {
        let flash = &mut self.flash;
        for time in [&mut flash.read_us, &mut flash.program_us, &mut flash.erase_us] {
            *time *= times;
        }
        if let Some(cache) = &mut self.cache {
            cache.program_us *= times;
            cache.read_us *= times;
            let others = [&mut cache.first_program_us, &mut cache.fold_us];
            others.into_iter().flatten().for_each(|time| *time *= times);
        }
    }

    /// Takes so many superblocks from what the drive has beyond its capacity.
    fn lose_superblocks(&mut self, lost: u64) {
        let superblock = self.flash.block_bytes() * u64::from(self.flash.dies());
        let left = self.physical_bytes() / superblock - lost;
        // Half a superblock less: bytes of flash are rounded up to whole ones.
        let bytes = (left as f64 - 0.5) * superblock as f64;
        self.mapping.over_provisioning = bytes / self.capacity_bytes as f64 - 1.0;
    }
}

impl Flash {
    /// Superblocks that a drive of so many lacks. Each block is bad with the same probability. A superblock takes one block of each
    /// die, so the die with most bad ones decides.
    fn bad_superblocks(&self, superblocks: u64, seed: u64) -> u64 {
        let mut random = Random::new(seed ^ 0x6261_6420_626C_6F63);
        let below = (self.bad_blocks * (1_u64 << 53) as f64) as u64;
        let mut of_die = || (0..superblocks).filter(|_| random.bits() >> 11 < below).count() as u64;
        let most = (0..self.dies()).map(|_| of_die()).max().unwrap_or(0);
        most.min(self.bad_blocks_max(superblocks))
    }

    /// Bad blocks of a die of so many at most: six standard deviations above the mean, which hardly any die exceeds.
    pub(super) fn bad_blocks_max(&self, blocks: u64) -> u64 {
        if self.bad_blocks == 0.0 {
            return 0;
        }
        let mean = self.bad_blocks * blocks as f64;
        ((mean + 6.0 * mean.sqrt()).ceil() as u64 + 1).min(blocks)
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
