//! What a pcapng timestamp means: a count of units that its interface defines, from an epoch that it
//! may shift.

use base::Timestamp;

/// How one interface counts time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Units {
    resolution: Resolution,
    offset_s: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// Nanoseconds a unit: units of a nanosecond and longer.
    Multiply(u64),
    /// Units a nanosecond: shorter decimal units.
    Divide(u64),
    /// Units a second as a power of two.
    Binary(u32),
    /// So short that no count reaches a nanosecond.
    Vanishing,
}

impl Units {
    /// From the options `if_tsresol` (default 6) and `if_tsoffset` (default 0) of the pcapng draft,
    /// section 4.2: the high bit chooses base 2 over base 10, the rest is the negative exponent.
    pub(super) fn new(tsresol: u8, offset_s: i64) -> Self {
        let exponent = u32::from(tsresol & 0x7f);
        let resolution = if tsresol & 0x80 != 0 {
            Resolution::Binary(exponent)
        } else if exponent <= 9 {
            Resolution::Multiply(10u64.pow(9 - exponent))
        } else {
            match 10u64.checked_pow(exponent - 9) {
                Some(units) => Resolution::Divide(units),
                None => Resolution::Vanishing,
            }
        };
        Self { resolution, offset_s }
    }

    /// The moment, cut to whole nanoseconds, and whether it lies between 1970 and 2554; if not, the
    /// nearer end stands for it.
    pub(super) fn timestamp(self, count: u64) -> (Timestamp, bool) {
        if let (Resolution::Multiply(factor), 0) = (self.resolution, self.offset_s)
            && let Some(ns) = count.checked_mul(factor)
        {
            return (Timestamp::from_nanos(ns), true);
        }
        let wide = i128::from(count);
        let ns = match self.resolution {
            Resolution::Multiply(factor) => wide * i128::from(factor),
            Resolution::Divide(units) => wide / i128::from(units),
            Resolution::Binary(exponent) => {
                // 64 bits of count and 30 of the factor fit; a greater shift leaves nothing.
                (wide * 1_000_000_000).checked_shr(exponent).unwrap_or(0)
            }
            Resolution::Vanishing => 0,
        } + i128::from(self.offset_s) * 1_000_000_000;
        match u64::try_from(ns) {
            Ok(ns) => (Timestamp::from_nanos(ns), true),
            Err(_) if ns < 0 => (Timestamp::MIN, false),
            Err(_) => (Timestamp::MAX, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ns(tsresol: u8, offset_s: i64, count: u64) -> u64 {
        Units::new(tsresol, offset_s).timestamp(count).0.as_nanos()
    }

    #[test]
    fn counts_become_nanoseconds_for_every_kind_of_unit() {
        assert_eq!(ns(6, 0, 1_700_000_000_123_456), 1_700_000_000_123_456_000);
        assert_eq!(ns(9, 0, 1_700_000_000_123_456_789), 1_700_000_000_123_456_789);
        assert_eq!(ns(0, 0, 7), 7_000_000_000);
        assert_eq!(ns(12, 0, 1_234_567), 1_234);
        assert_eq!(ns(0x80 | 10, 0, 1024 + 512), 1_500_000_000);
        assert_eq!(ns(0x80 | 32, 0, (5 << 32) + (1 << 31)), 5_500_000_000);
        assert_eq!(ns(0x80, 0, 3), 3_000_000_000);
        assert_eq!(ns(6, 1_000, 5), 1_000_000_005_000);
        assert_eq!(ns(6, -1, 1_500_000), 500_000_000);
    }

    #[test]
    fn a_moment_outside_the_range_becomes_its_end_and_is_told() {
        assert_eq!(Units::new(0, 0).timestamp(u64::MAX), (Timestamp::MAX, false));
        assert_eq!(Units::new(6, i64::MIN).timestamp(u64::MAX), (Timestamp::MIN, false));
        assert_eq!(Units::new(0, i64::MAX).timestamp(u64::MAX), (Timestamp::MAX, false));
        assert_eq!(Units::new(127, 0).timestamp(u64::MAX), (Timestamp::MIN, true));
    }

    proptest! {
        #[test]
        fn time_never_runs_backward_when_the_count_goes_up(
            tsresol in any::<u8>(), offset_s in any::<i64>(), one in any::<u64>(), two in any::<u64>()
        ) {
            let units = Units::new(tsresol, offset_s);
            prop_assert!(units.timestamp(one.min(two)).0 <= units.timestamp(one.max(two)).0);
        }
    }
}
