//! Reads that are repeated because cells have worn.
//!
//! As flash wears, more of what is read has more errors than its code corrects, and the drive reads again with other thresholds:
//! once worn, several times for each read (Ye et al., "Achieving near-zero read retry for 3D NAND flash memory", ASPLOS 2024: more
//! than 3 times on average after 3,000 cycles). How long data has lain and how warm, which matters as much, the model leaves out.

use base::Random;

use crate::spec::{Endurance, Flash};

/// The likeliest that a read is repeated, however worn the cells are.
const LIKELY_MAX: f64 = 0.95;

/// Times that a read is repeated at most: drives have so many sets of thresholds at least.
const TIMES_MAX: u64 = 40;

/// When reads are repeated.
#[derive(Clone, Debug)]
pub struct Retries {
    /// How likely a read is repeated when life begins, and how much more with each block that is erased.
    at_first: f64,
    by_erase: f64,
    random: Random,
}

impl Retries {
    /// Of flash that has so many superblocks; None if it repeats no reads.
    pub fn of(flash: &Flash, endurance: &Endurance, superblocks: u32, seed: u64) -> Option<Self> {
        (flash.retry_share > 0.0).then(|| {
            let blocks = f64::from(superblocks.max(1)) * f64::from(flash.dies());
            Self {
                at_first: flash.retry_share * endurance.used,
                by_erase: flash.retry_share / (blocks * f64::from(endurance.cycles)),
                // Not what else follows from the seed.
                random: Random::new(seed ^ 0x7265_7472_6965_7321),
            }
        })
    }

    /// How often the next read is repeated, once so many blocks have been erased. Each time is as likely as the one before.
    pub fn next(&mut self, erases: u64) -> u64 {
        let likely = (self.at_first + self.by_erase * erases as f64).min(LIKELY_MAX);
        let below = (likely * (1_u64 << 53) as f64) as u64;
        (0..TIMES_MAX).find(|_| self.random.bits() >> 11 >= below).unwrap_or(TIMES_MAX)
    }
}
