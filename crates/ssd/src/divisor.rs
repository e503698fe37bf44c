//! Division by a number that stays the same, without dividing.

/// Divides 32-bit numbers by one divisor: a multiplication by its reciprocal in 63 bits after the point, rounded up. It is exact for
/// every number of 32 bits, as what was added, less than the divisor, is at most 2^(63 - 32) (Granlund and Montgomery, "Division by
/// invariant integers using multiplication", 1994).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor {
    divisor: u32,
    reciprocal: u64,
}

/// Bits of the reciprocal after the point.
const BITS: u32 = 63;

impl Divisor {
    /// For a divisor.
    ///
    /// # Panics
    /// If it is 0 or above 2^31.
    pub const fn new(divisor: u32) -> Self {
        assert!(divisor > 0 && divisor <= 1 << (BITS - 32));
        Self { divisor, reciprocal: (1_u64 << BITS).div_ceil(divisor as u64) }
    }

    /// The divisor.
    #[inline]
    pub const fn get(self) -> u32 {
        self.divisor
    }

    /// Quotient and remainder.
    #[inline]
    pub const fn split(self, number: u32) -> (u32, u32) {
        let quotient = self.quotient(number);
        (quotient, number - quotient * self.divisor)
    }

    /// The quotient.
    #[inline]
    pub const fn quotient(self, number: u32) -> u32 {
        ((self.reciprocal as u128 * number as u128) >> BITS) as u32
    }
}

#[cfg(test)]
mod tests {
    use base::random::Random;

    use super::*;

    #[test]
    fn quotients_and_remainders_are_exact() {
        let mut random = Random::new(5);
        let divisors = [1, 2, 3, 5, 7, 64, 393_216, 1_000_003, (1_u32 << 31) - 1, 1 << 31];
        for divisor in divisors {
            let edges = [0, 1, divisor - 1, divisor, divisor.saturating_add(1), u32::MAX];
            let drawn = (0..10_000).map(|_| random.bits() as u32);
            for number in edges.into_iter().chain(drawn) {
                let expected = (number / divisor, number % divisor);
                assert_eq!(Divisor::new(divisor).split(number), expected, "{number} / {divisor}");
            }
        }
    }
}
