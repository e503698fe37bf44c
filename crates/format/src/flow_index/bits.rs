//! Numbers of a few bits each, one behind the other, the lowest bit first.

/// Appends numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    bits: usize,
}

impl BitWriter {
    /// Appends the lowest `width` bits of a number; 64 at most.
    pub(super) fn put(&mut self, number: u64, width: u32) {
        let mut rest = u128::from(number) & ((1 << width) - 1);
        let mut left = width as usize;
        while left > 0 {
            if self.bits.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let at = self.bits % 8;
            let taken = left.min(8 - at);
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((rest & ((1 << taken) - 1)) << at) as u8;
            }
            rest >>= taken;
            left -= taken;
            self.bits += taken;
        }
    }

    /// Appends a number as so many zeros and a one.
    pub(super) fn unary(&mut self, zeros: u64) {
        for _ in 0..zeros {
            self.put(0, 1);
        }
        self.put(1, 1);
    }

    /// Bits that were appended.
    pub(super) const fn bits(&self) -> usize {
        self.bits
    }

    /// The bytes; the last one is filled with zeros.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
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

    proptest! {
        #[test]
        fn numbers_read_back(numbers in prop::collection::vec((any::<u64>(), 1..=64_u32, 0..40_u64), 0..50)) {
            let mut writer = BitWriter::default();
            for &(number, width, zeros) in &numbers {
                writer.put(number, width);
                writer.unary(zeros);
            }
            prop_assert_eq!(writer.bytes().len(), writer.bits().div_ceil(8));
            let mut reader = BitReader::new(writer.bytes());
            for (number, width, zeros) in numbers {
                let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
                prop_assert_eq!(reader.get(width), Some(number & mask));
                prop_assert_eq!(reader.unary(), Some(zeros));
            }
            prop_assert_eq!(reader.get(8), None);
        }
    }
}
