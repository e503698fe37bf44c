//! Puts right the checksums of mutated media, so that a fuzzer gets behind them: what a hostile hand can
//! write, a reader must survive.

#![allow(dead_code, reason = "not every target needs all of it")]

use format::crc::crc32c;

/// Offset of the record in a section (`docs/format.md`, section 2).
const RECORD: usize = 32;

/// A section's body checksum over `length` bytes in all, then its header checksum.
pub fn section(bytes: &mut [u8], length: usize) {
    if bytes.len() < 512 {
        return;
    }
    if let Some(body) = bytes.get(512..length) {
        let crc = crc32c(body);
        bytes[RECORD + 24..RECORD + 28].copy_from_slice(&crc.to_le_bytes());
    }
    bytes[RECORD + 20..RECORD + 24].fill(0);
    let crc = crc32c(&bytes[..512]);
    bytes[RECORD + 20..RECORD + 24].copy_from_slice(&crc.to_le_bytes());
}

/// The length that a section's record gives.
pub fn length(bytes: &[u8]) -> usize {
    bytes
        .get(RECORD + 28..RECORD + 32)
        .map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
}

/// The checksums of an index at the end of `segment`: of its entries, then of its footer.
pub fn index(segment: &mut [u8]) {
    let Some(footer) = segment.len().checked_sub(100) else { return };
    let count = segment[footer + 24..footer + 28].try_into().map(u32::from_le_bytes).unwrap_or(0);
    if let Some(start) = footer.checked_sub(count as usize * 440) {
        let crc = crc32c(&segment[start..footer]);
        segment[footer + 28..footer + 32].copy_from_slice(&crc.to_le_bytes());
    }
    let crc = crc32c(&segment[footer..footer + 92]);
    segment[footer + 92..footer + 96].copy_from_slice(&crc.to_le_bytes());
}
