//! What is written: bytes that neither compress nor repeat, or compress by a stated share.

use base::Random;

use crate::workload::Content;

/// Drives and arrays that compress or find duplicates work on pieces of at least this length.
const PIECE_BYTES: usize = 4096;

/// Fills buffers once and then makes each write different by a few bytes in each piece, so that a drive can
/// neither compress nor deduplicate, and the processor has next to nothing to do.
#[derive(Clone, Debug)]
pub struct Filler {
    random: Random,
    zeros_percent: u8,
}

impl Filler {
    /// For a stream's content, from a seed. [`Content::Verify`] fills its own way; see [`crate::verify`].
    pub fn new(content: Content, seed: u64) -> Self {
        let zeros_percent =
            if let Content::Compressible { percent } = content { percent } else { 0 };
        Self { random: Random::new(seed), zeros_percent }
    }

    /// Fills a new buffer.
    pub fn prepare(&mut self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(PIECE_BYTES) {
            let random = piece.len() - piece.len() * usize::from(self.zeros_percent) / 100;
            let (noise, zeros) = piece.split_at_mut(random);
            for word in noise.chunks_mut(8) {
                word.copy_from_slice(&self.random.bits().to_le_bytes()[..word.len()]);
            }
            zeros.fill(0);
        }
    }

    /// Makes a buffer's content a new one.
    #[inline]
    pub fn renew(&mut self, bytes: &mut [u8]) {
        if self.zeros_percent == 100 {
            return;
        }
        for piece in bytes.chunks_exact_mut(PIECE_BYTES.min(bytes.len())) {
            piece[..8].copy_from_slice(&self.random.bits().to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stated_share_is_zeros_and_every_write_differs_in_every_piece() {
        for percent in [0u8, 30, 100] {
            let mut filler = Filler::new(Content::Compressible { percent }, 1);
            let mut bytes = vec![1; 3 * PIECE_BYTES];
            filler.prepare(&mut bytes);
            let zeros =
                bytes.iter().filter(|&&b| b == 0).count() as f64 / bytes.len() as f64 * 100.0;
            assert!((zeros - f64::from(percent)).abs() < 1.0, "{percent}: {zeros}");
            let before = bytes.clone();
            filler.renew(&mut bytes);
            for (old, new) in before.chunks(PIECE_BYTES).zip(bytes.chunks(PIECE_BYTES)) {
                assert_eq!(old == new, percent == 100);
            }
        }
    }
}
