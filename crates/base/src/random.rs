//! Random numbers that a seed replays: for simulations, tests and hostile drives. Never for secrets.

/// SplitMix64: one 64-bit state, every seed a good one.
///
/// The generator of Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
/// OOPSLA 2014, with the constants of its `mix64` variant 13 (Stafford).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The numbers that belong to this seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to but not including `end`; 0 if `end` is 0. For ends far below 2^64 (all
    /// of ours) the numbers are as even as makes no difference.
    pub const fn below(&mut self, end: u64) -> u64 {
        ((self.bits() as u128 * end as u128) >> 64) as u64
    }

    /// True once in `n` times, on average.
    pub const fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_published_sequence() {
        // The first outputs for this seed in the test of the same name in Vigna's reference C code.
        let mut random = Random::new(1_234_567);
        let found: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(found, published);
    }

    #[test]
    fn numbers_below_an_end_reach_all_of_them_and_no_more() {
        let mut random = Random::new(7);
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[random.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| count > 800), "{seen:?}");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }
}
