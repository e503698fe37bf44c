//! Little-endian fields put into an answer, by their first byte as the specification counts them.

/// An answer in the making. Writing past the end is a mistake in the program: offsets and lengths are the
/// specification's.
pub(super) struct Fields(Vec<u8>);

impl Fields {
    /// So many zeros.
    pub(super) fn new(bytes: usize) -> Self {
        Self(vec![0; bytes])
    }

    pub(super) fn u8(&mut self, at: usize, value: u8) -> &mut Self {
        self.put(at, &[value])
    }

    pub(super) fn u16(&mut self, at: usize, value: u16) -> &mut Self {
        self.put(at, &value.to_le_bytes())
    }

    pub(super) fn u32(&mut self, at: usize, value: u32) -> &mut Self {
        self.put(at, &value.to_le_bytes())
    }

    pub(super) fn u64(&mut self, at: usize, value: u64) -> &mut Self {
        self.put(at, &value.to_le_bytes())
    }

    /// A count of 16 bytes.
    pub(super) fn count(&mut self, at: usize, value: u64) -> &mut Self {
        self.put(at, &u128::from(value).to_le_bytes())
    }

    /// ASCII padded with spaces to `length`; what is no printable ASCII becomes `?`.
    pub(super) fn text(&mut self, at: usize, length: usize, text: &str) -> &mut Self {
        let ascii = text.chars().map(|c| if matches!(c, ' '..='~') { c as u8 } else { b'?' });
        let padded: Vec<u8> = ascii.chain(std::iter::repeat(b' ')).take(length).collect();
        self.put(at, &padded)
    }

    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) -> &mut Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        self.0
    }
}
