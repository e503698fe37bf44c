//! Bytes that fill packets, with sums of any part of them at hand.

use std::ops::Range;

use base::Random;

/// Places where a payload may start, and the bytes between them.
pub(super) const PLACES: usize = 512;
const PLACE_BYTES: usize = 64;

/// What stands at each place, so that no analyser takes the bytes behind it for a protocol.
const LABEL: &[u8; 8] = b"payload ";

/// Random bytes, and the sums of their 16-bit words up to each.
pub(super) struct Pattern {
    bytes: Vec<u8>,
    /// Sums wrap: the difference of two is right as long as it is below 2^32, which is 128 KiB.
    sums: Vec<u32>,
}

impl Pattern {
    /// For payloads of up to `longest` bytes.
    pub(super) fn new(seed: u64, longest: usize) -> Self {
        let length = (PLACES * PLACE_BYTES + longest).next_multiple_of(PLACE_BYTES);
        assert!(longest < 100_000, "sums wrap");
        let mut random = Random::new(seed ^ 0x7061_7474_6572_6e73);
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            bytes.extend_from_slice(LABEL);
            for _ in LABEL.len() / 8..PLACE_BYTES / 8 {
                bytes.extend_from_slice(&random.bits().to_le_bytes());
            }
        }
        let mut sums = vec![0u32];
        let mut all = 0u32;
        for pair in bytes.chunks_exact(2) {
            all = all.wrapping_add(u32::from(u16::from_be_bytes([pair[0], pair[1]])));
            sums.push(all);
        }
        Self { bytes, sums }
    }

    /// Where the payload that belongs to this number starts.
    #[inline]
    pub(super) const fn place(number: u64) -> usize {
        (number % PLACES as u64) as usize * PLACE_BYTES
    }

    #[inline]
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// The sum of a range's 16-bit words. It starts at an even offset.
    #[inline]
    pub(super) fn sum(&self, range: Range<usize>) -> u64 {
        let even = range.end & !1;
        let whole = self.sums[even / 2].wrapping_sub(self.sums[range.start / 2]);
        let odd = if range.end > even { u64::from(self.bytes[even]) << 8 } else { 0 };
        u64::from(whole) + odd
    }
}

#[cfg(test)]
mod tests {
    use super::super::checksum;
    use super::*;

    #[test]
    fn the_sum_of_any_part_is_that_of_its_bytes() {
        let pattern = Pattern::new(1, 70_000);
        let mut random = Random::new(5);
        for _ in 0..1000 {
            let start = random.below(20_000) as usize * 2;
            let range = start..start + random.below(60_000) as usize;
            assert_eq!(pattern.sum(range.clone()), checksum::sum(pattern.bytes(range)));
        }
        let last = Pattern::place(u64::MAX);
        assert_eq!(pattern.bytes(last..last + 8), LABEL);
    }
}
