//! Numbers of a few bits each, one behind the other, the lowest bit first.

/// Appends numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that are not in `bytes` yet.
    last: u64,
    /// How many of them there are: fewer than 64.
    last_bits: u32,
}

impl BitWriter {
    /// Appends the lowest `width` bits of a number; 64 at most.
    #[inline]
    pub(super) fn put(&mut self, number: u64, width: u32) {
        let number = number & low_bits(width);
        self.last |= number << self.last_bits;
        let bits = self.last_bits + width;
        if bits < u64::BITS {
            self.last_bits = bits;
            return;
        }
        self.bytes.extend_from_slice(&self.last.to_le_bytes());
        self.last = number.checked_shr(u64::BITS - self.last_bits).unwrap_or(0);
        self.last_bits = bits - u64::BITS;
    }

    /// Appends a number as so many zeros and a one.
    #[inline]
    pub(super) fn unary(&mut self, zeros: u64) {
        for _ in 0..zeros / u64::from(u64::BITS) {
            self.put(0, u64::BITS);
        }
        let rest = (zeros % u64::from(u64::BITS)) as u32;
        self.put(1 << rest, rest + 1);
    }

    /// Bits that were appended.
    pub(super) const fn bits(&self) -> usize {
        self.bytes.len() * 8 + self.last_bits as usize
    }

    /// The bytes; the last one is filled with zeros. Nothing is appended afterwards but with [`BitWriter::clear`].
    pub(super) fn finish(&mut self) -> &[u8] {
        let last = self.last_bits.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.last.to_le_bytes()[..last]);
        &self.bytes
    }

    /// Forgets all numbers, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        (self.last, self.last_bits) = (0, 0);
    }
}

const fn low_bits(width: u32) -> u64 {
    if width >= u64::BITS { u64::MAX } else { (1 << width) - 1 }
}

/// Reads numbers.
#[derive(Clone, Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next `width` bits, 64 at most; None past the end.
    #[inline]
    pub(super) fn get(&mut self, width: u32) -> Option<u64> {
        let end = self.at + width as usize;
        if end > self.bytes.len() * 8 {
            return None;
        }
        let first = self.at / 8;
        // Most numbers lie in eight bytes that are all there.
        let near = self.bytes.get(first..).and_then(|rest| rest.first_chunk());
        if let Some(bytes) = near.filter(|_| width <= 56) {
            let number = u64::from_le_bytes(*bytes) >> (self.at % 8) & low_bits(width);
            self.at = end;
            return Some(number);
        }
        let mut window = [0; 16];
        let last = (first + 9).min(self.bytes.len());
        window[..last - first].copy_from_slice(&self.bytes[first..last]);
        let number = u128::from_le_bytes(window) >> (self.at % 8);
        self.at = end;
        Some((number & ((1 << width) - 1)) as u64)
    }

    /// The zeros before the next one, which is passed too; None past the end.
    #[inline]
    pub(super) fn unary(&mut self) -> Option<u64> {
        let mut zeros = 0;
        loop {
            let left = (self.bytes.len() * 8).checked_sub(self.at).filter(|left| *left > 0)?;
            let width = left.min(56) as u32;
            let ahead = self.get(width)?;
            let run = ahead.trailing_zeros().min(width);
            zeros += u64::from(run);
            if run < width {
                self.at -= (width - run - 1) as usize;
                return Some(zeros);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_run_of_zeros_reads_back_however_long_it_is_and_has_no_end_without_a_one() {
        for zeros in [0, 55, 56, 57, 63, 64, 65, 200] {
            let mut writer = BitWriter::default();
            writer.unary(zeros);
            let mut reader = BitReader::new(writer.finish());
            assert_eq!(reader.unary(), Some(zeros));
        }
        for bytes in [0, 1, 7, 20] {
            assert_eq!(BitReader::new(&vec![0; bytes]).unary(), None, "{bytes} bytes");
        }
    }

    proptest! {
        #[test]
        fn numbers_read_back(numbers in prop::collection::vec((any::<u64>(), 1..=64_u32, 0..40_u64), 0..50)) {
            let mut writer = BitWriter::default();
            for &(number, width, zeros) in &numbers {
                writer.put(number, width);
                writer.unary(zeros);
            }
            let bits = writer.bits();
            let written = writer.finish();
            prop_assert_eq!(written.len(), bits.div_ceil(8));
            let mut reader = BitReader::new(written);
            for (number, width, zeros) in numbers {
                prop_assert_eq!(reader.get(width), Some(number & low_bits(width)));
                prop_assert_eq!(reader.unary(), Some(zeros));
            }
            prop_assert_eq!(reader.get(8), None);
        }
    }
}
