//! A place in a packet's bytes. It moves forward, and never past the end.

use crate::layers::End;

/// The bytes of a packet that are still to be read.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next `N` bytes, which are passed.
    #[inline]
    pub fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], End> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(End::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next byte, which stays the next.
    #[inline]
    pub fn peek(&self) -> Result<u8, End> {
        self.0.first().copied().ok_or(End::Truncated)
    }

    /// How many bytes of `whole`, at whose start the cursor began, are passed.
    #[inline]
    pub fn passed(&self, whole: &[u8]) -> usize {
        self.0.as_ptr().addr() - whole.as_ptr().addr()
    }

    /// Passes so many bytes.
    #[inline]
    pub fn skip(&mut self, bytes: usize) -> Result<(), End> {
        self.0 = self.0.get(bytes..).ok_or(End::Truncated)?;
        Ok(())
    }

    /// Leaves at most so many bytes: what follows them belongs to an outer header, or is padding.
    #[inline]
    pub fn limit(&mut self, bytes: usize) {
        self.0 = self.0.get(..bytes).unwrap_or(self.0);
    }
}

/// A 16-bit number in network byte order.
#[inline]
pub const fn be16(high: u8, low: u8) -> u16 {
    u16::from_be_bytes([high, low])
}
