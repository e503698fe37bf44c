//! Division by a number that stays the same, without dividing.

/// Divides 32-bit numbers by one divisor: a multiplication by its reciprocal of 64 bits, which is exact for every number of 32 bits
/// (Lemire, Kaser and Kurz, "Faster remainder by direct computation", 2019).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor {
    divisor: u32,
    reciprocal: u64,
}

impl Divisor {
    /// For a divisor above 0.
    pub const fn new(divisor: u32) -> Self {
        // For 1 it wraps to 0, which stands for "the number itself".
        Self { divisor, reciprocal: (u64::MAX / divisor as u64).wrapping_add(1) }
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
        if self.reciprocal == 0 {
            return number;
        }
        ((self.reciprocal as u128 * number as u128) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use base::random::Random;

    use super::*;

    #[test]
    fn quotients_and_remainders_are_exact() {
        let mut random = Random::new(5);
        let divisors = [1, 2, 3, 5, 7, 64, 393_216, 1_000_003, u32::MAX - 1, u32::MAX];
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
