//! Addresses: which block of its region a command goes to.

mod settling;

use base::Random;
use rand_core::RngCore;
use rand_distr::{Distribution, Zipf};

use crate::workload::Pattern;
use settling::Settling;

/// Our seeded numbers in the form that `rand_distr` draws from.
pub(crate) struct Draws<'a>(pub &'a mut Random);

impl RngCore for Draws<'_> {
    fn next_u32(&mut self) -> u32 {
        (self.0.bits() >> 32) as u32
    }
    fn next_u64(&mut self) -> u64 {
        self.0.bits()
    }
    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.0.bits().to_le_bytes()[..part.len()]);
        }
    }
}

/// Draws offsets for one job, relative to its region's start.
#[derive(Clone, Debug)]
pub struct Addresses {
    unit: u64,
    /// Units in the region.
    units: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Sequential { next: u64 },
    Random,
    Zipf { ranks: Zipf<f64>, stride: u64 },
    Hot { hot: u64, chance: f64 },
    Settling(Settling),
}

impl Addresses {
    /// Offsets in a region of `region_bytes` that are multiples of `unit`. Job `job` of `jobs` starts a sequential pattern
    /// at its own share of the region, so that jobs don't follow each other's tracks.
    ///
    /// # Panics
    /// If the region holds no unit.
    pub fn new(pattern: Pattern, region_bytes: u64, unit: u64, job: u64, jobs: u64) -> Self {
        let units = region_bytes / unit;
        assert!(units > 0, "a region of {region_bytes} bytes holds no unit of {unit}");
        let kind = match pattern {
            Pattern::Sequential => Kind::Sequential { next: units / jobs.max(1) * job },
            Pattern::Random => Kind::Random,
            Pattern::Zipf { theta } => Kind::Zipf {
                ranks: Zipf::new(units as f64, theta)
                    .expect("at least one unit and a positive exponent"),
                stride: scattering_stride(units),
            },
            Pattern::Hot { space_percent, access_percent } => Kind::Hot {
                hot: ((units as f64 * space_percent / 100.0) as u64).clamp(1, units),
                chance: access_percent / 100.0,
            },
            Pattern::Settling { spare_percent } => {
                Kind::Settling(Settling::new(units, spare_percent / 100.0))
            }
        };
        Self { unit, units, kind }
    }

    /// The next offset at which `length` bytes fit, from 0. A command longer than what is left of the region starts at
    /// the last place where it fits (random) or around at the beginning (sequential).
    #[inline]
    pub fn next(&mut self, length: u64, random: &mut Random) -> u64 {
        let long = length.div_ceil(self.unit).max(1);
        let last = self.units.saturating_sub(long);
        let unit = match &mut self.kind {
            Kind::Sequential { next } => {
                let at = if *next > last { 0 } else { *next };
                *next = at + long;
                at
            }
            Kind::Random => random.below(last + 1),
            Kind::Zipf { ranks, stride } => {
                let rank = ranks.sample(&mut Draws(random)) as u64 - 1;
                let place = (u128::from(rank.min(self.units - 1)) * u128::from(*stride))
                    % u128::from(self.units);
                (place as u64).min(last)
            }
            Kind::Hot { hot, chance } => {
                // 53 bits make a fraction below 1.
                let fraction = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
                let cold = self.units - *hot;
                let place = if fraction < *chance || cold == 0 {
                    random.below(*hot)
                } else {
                    *hot + random.below(cold)
                };
                place.min(last)
            }
            Kind::Settling(settling) => settling.next(random).min(last),
        };
        unit * self.unit
    }
}

/// A stride near the golden section of `units` that shares no factor with it: multiples of it visit every
/// unit once, and neighbours in popularity lie far apart.
fn scattering_stride(units: u64) -> u64 {
    let golden = (units as f64 * 0.618_033_988_749_894_9) as u64;
    (golden.max(1)..).find(|&stride| greatest_common_divisor(stride, units) == 1).unwrap_or(1)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pattern: Pattern, units: u64, draws: u32) -> Vec<u32> {
        let mut addresses = Addresses::new(pattern, units * 4096, 4096, 0, 1);
        let mut random = Random::new(5);
        let mut counts = vec![0; units as usize];
        for _ in 0..draws {
            let offset = addresses.next(4096, &mut random);
            assert!(offset.is_multiple_of(4096));
            counts[(offset / 4096) as usize] += 1;
        }
        counts
    }

    #[test]
    fn a_sequence_visits_every_block_in_order_and_goes_around() {
        let mut addresses = Addresses::new(Pattern::Sequential, 10 * 512 + 100, 512, 1, 2);
        let mut random = Random::new(1);
        let found: Vec<u64> = (0..12).map(|_| addresses.next(512, &mut random) / 512).collect();
        assert_eq!(found, [5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6]);
        let mut long = Addresses::new(Pattern::Sequential, 10 * 512, 512, 0, 1);
        let found: Vec<u64> = (0..4).map(|_| long.next(2048, &mut random) / 512).collect();
        assert_eq!(found, [0, 4, 0, 4], "a block never leaves its region");
    }

    #[test]
    fn random_blocks_are_even() {
        let counts = counts(Pattern::Random, 100, 100_000);
        // Chi-square with 99 degrees of freedom: 99.9 % lie below 149.
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi < 149.0, "{chi}");
    }

    #[test]
    fn zipf_popularity_falls_as_its_exponent_says_and_is_scattered() {
        let counts = counts(Pattern::Zipf { theta: 1.0 }, 1000, 1_000_000);
        let mut sorted = counts.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        for rank in [2, 5, 10, 50] {
            let ratio = f64::from(sorted[0]) / f64::from(sorted[rank - 1]);
            assert!((ratio / rank as f64 - 1.0).abs() < 0.08, "rank {rank}: {ratio}");
        }
        let position = |count| counts.iter().position(|&c| c == count).unwrap();
        assert!(position(sorted[0]).abs_diff(position(sorted[1])) > 100);
    }

    #[test]
    fn a_hot_share_of_the_space_gets_its_share_of_the_commands() {
        let counts =
            counts(Pattern::Hot { space_percent: 20.0, access_percent: 80.0 }, 1000, 100_000);
        let hot: u32 = counts[..200].iter().sum();
        assert!((f64::from(hot) / 100_000.0 - 0.8).abs() < 0.01, "{hot}");
    }
}
