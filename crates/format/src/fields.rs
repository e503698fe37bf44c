//! Little-endian fields of a record, written and read in order.

/// Writes fields one after the other.
pub(crate) struct Put<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Put<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }
    #[inline]
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        self
    }
    #[inline]
    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }
    #[inline]
    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }
    #[inline]
    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }
    /// UTF-8 in a field of fixed width, cut at a character's border and padded with zeros.
    pub(crate) fn text(&mut self, text: &str, width: usize) -> &mut Self {
        let mut end = text.len().min(width);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.raw(&text.as_bytes()[..end]).zeros(width - end)
    }
    pub(crate) fn zeros(&mut self, count: usize) -> &mut Self {
        self.bytes[self.at..self.at + count].fill(0);
        self.at += count;
        self
    }
    /// Zeros up to the end.
    pub(crate) fn finish(&mut self) {
        self.bytes[self.at..].fill(0);
        self.at = self.bytes.len();
    }
}

/// Reads fields one after the other. The caller has checked that the bytes are long enough.
pub(crate) struct Get<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Get<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
    #[inline]
    pub(crate) fn raw<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&self.bytes[self.at..self.at + N]);
        self.at += N;
        out
    }
    #[inline]
    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.raw())
    }
    #[inline]
    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.raw())
    }
    #[inline]
    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.raw())
    }
    pub(crate) fn text(&mut self, width: usize) -> String {
        let field = &self.bytes[self.at..self.at + width];
        self.at += width;
        let end = field.iter().position(|&b| b == 0).unwrap_or(width);
        String::from_utf8_lossy(&field[..end]).into_owned()
    }
    #[inline]
    pub(crate) fn skip(&mut self, count: usize) -> &mut Self {
        self.at += count;
        self
    }
}
