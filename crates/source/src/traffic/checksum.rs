//! The Internet checksum (RFC 1071) from parts: sums of what stays the same are kept, sums of what changes are added,
//! as RFC 1624 updates a checksum. A part starts at an even offset of what is summed.

/// The sum of a part's 16-bit words, not yet folded. An odd byte at the end is the high half of a word.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |&last| u64::from(last) << 8);
    words.map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u64>() + odd
}

/// The checksum of parts with this sum in all.
#[inline]
pub(super) const fn finish(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

/// The same for UDP, where 0 means that there is none.
#[inline]
pub(super) const fn finish_udp(sum: u64) -> u16 {
    match finish(sum) {
        0 => 0xffff,
        checksum => checksum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_parts_is_the_sum_of_the_whole() {
        // The example of RFC 1071, section 3.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(finish(sum(&bytes)), !0xddf2);
        assert_eq!(sum(&bytes[..4]) + sum(&bytes[4..]), sum(&bytes));
        assert_eq!(sum(&[1, 2, 3]), sum(&[1, 2, 3, 0]));
        assert_eq!(finish(u64::MAX), 0);
        assert_eq!((finish(0xffff), finish_udp(0xffff)), (0, 0xffff));
    }
}
