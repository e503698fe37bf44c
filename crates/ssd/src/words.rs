//! A large table of numbers in huge pages: scattered accesses to gigabytes would otherwise spend most of their time finding pages.

use std::ops::Range;

use memmap2::{Advice, MmapMut, MmapOptions};

/// Numbers, zero at first. Only what is touched takes memory.
#[derive(Debug)]
pub enum Words {
    /// Huge pages, if the kernel has them.
    Mapped(MmapMut),
    /// Where mapping is refused, or there is nothing to map.
    Plain(Vec<u32>),
}

impl Words {
    /// So many.
    pub fn new(length: usize) -> Self {
        match MmapOptions::new().len(length * 4).no_reserve_swap().map_anon() {
            Ok(map) if length > 0 => {
                // Without huge pages it is slower, and the same otherwise.
                let _ = map.advise(Advice::HugePage);
                Self::Mapped(map)
            }
            _ => Self::Plain(vec![0; length]),
        }
    }

    /// As many, of which the first `used` are the same and the others zero.
    pub fn copy(&self, used: usize) -> Self {
        let mut copy = Self::new(self.all().len());
        copy.some(0..used).copy_from_slice(&self.all()[..used]);
        copy
    }

    /// All of them.
    #[inline]
    pub fn all(&self) -> &[u32] {
        match self {
            Self::Mapped(map) => bytemuck::cast_slice(map),
            Self::Plain(words) => words,
        }
    }

    /// Some of them, to change.
    #[inline]
    pub fn some(&mut self, range: Range<usize>) -> &mut [u32] {
        match self {
            Self::Mapped(map) => &mut bytemuck::cast_slice_mut(map)[range],
            Self::Plain(words) => &mut words[range],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_zero_until_they_are_changed() {
        for length in [0, 1, 5_000_000] {
            let mut words = Words::new(length);
            assert_eq!(words.all().len(), length);
            assert!(words.all().iter().all(|&word| word == 0));
            if length > 0 {
                words.some(length - 1..length)[0] = 7;
                assert_eq!(words.all().last(), Some(&7));
                assert_eq!(words.copy(length).all(), words.all());
                assert!(words.copy(length - 1).all().iter().all(|&word| word == 0));
            }
        }
    }
}
