//! Little-endian fields of an answer, by their first byte as the specification counts them.

/// An answer's bytes. Reading past the end is a mistake in the program: an answer has the length that
/// was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub &'a [u8]);

/// Added to degrees Celsius gives kelvins, in whole degrees, as the specification's examples and other
/// tools do it.
const KELVIN_AT_ZERO_CELSIUS: i32 = 273;

impl Fields<'_> {
    pub fn u8(self, at: usize) -> u8 {
        self.0[at]
    }

    pub fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    /// A count of 16 bytes. Above 18 million million million it stays there.
    pub fn count(self, at: usize) -> u64 {
        self.scaled(at, 1)
    }

    /// The same times `unit`.
    pub fn scaled(self, at: usize, unit: u128) -> u64 {
        let count = u128::from_le_bytes(self.array(at)).saturating_mul(unit);
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// ASCII text padded with spaces, or ended by a zero; None if there is none.
    pub fn text(self, at: usize, length: usize) -> Option<String> {
        let bytes = &self.0[at..at + length];
        let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        let text = String::from_utf8_lossy(bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// A temperature in kelvins as degrees Celsius; None for 0, which is "not reported".
    pub fn celsius(self, at: usize) -> Option<i32> {
        let kelvin = i32::from(self.u16(at));
        (kelvin != 0).then_some(kelvin - KELVIN_AT_ZERO_CELSIUS)
    }

    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.0[at..at + N]);
        bytes
    }
}

/// The names whose bits are set.
pub(super) fn names<T: Copy>(bits: u32, table: &[(u32, T)]) -> Vec<T> {
    table.iter().filter(|(bit, _)| bits >> bit & 1 == 1).map(|&(_, name)| name).collect()
}
