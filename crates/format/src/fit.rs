//! Makes a packet fit a chunk that is too short for it: which options are left out, and where its data ends.

use std::ops::Range;

use crate::packet::Packet;
use crate::pcapng::packet_block_bytes;

/// Options of this many bytes in all are kept although data has to be cut: flags, hash, queue and verdict
/// tell a reader what the packet is, and cost less than a hundredth of the smallest chunk.
pub const OPTIONS_BESIDE_CUT_DATA_MAX: usize = 256;

/// What of a packet is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// Bytes of its data, from the start.
    pub data_bytes: usize,
    /// Its options, in their order, as [`Packet::options`] has them.
    pub options: Vec<u8>,
    /// Bytes left out: of the data, and of the options with their headers and padding.
    pub bytes_cut: u64,
}

impl Fitted {
    /// The packet with what is kept. Its length on the wire stays.
    pub fn packet<'a>(&'a self, packet: &Packet<'a>) -> Packet<'a> {
        Packet { data: &packet.data[..self.data_bytes], options: &self.options, ..*packet }
    }
}

/// Cuts a packet so that its block, in front of which `dropped` packets were lost, takes at most `room` bytes.
///
/// - Data comes first. If it fits without options, all of it is kept, and as many options as fit beside it.
/// - If it doesn't fit, its end is cut. Then options of up to [`OPTIONS_BESIDE_CUT_DATA_MAX`] bytes in
///   all are kept.
/// - The longest options are left out first, and no more of them than necessary. *Why?* Short ones (flags, hash,
///   queue, verdict) are what programs read; the long ones are comments.
///
/// `epb_dropcount` is always kept. Without room for even that and the packet's header nothing is kept, and
/// the block is longer than `room`.
pub fn fit(packet: &Packet<'_>, dropped: u64, room: usize) -> Fitted {
    let bytes = |data_bytes: usize, options: &[u8]| {
        let data = &packet.data[..data_bytes];
        packet_block_bytes(&Packet { data, options, ..*packet }, dropped)
    };
    let whole = packet.data.len();
    let fits_whole = bytes(whole, &[]) <= room;
    let kept = kept_options(packet.options, |options| {
        if fits_whole {
            bytes(whole, options) <= room
        } else {
            options.len() <= OPTIONS_BESIDE_CUT_DATA_MAX && bytes(0, options) <= room
        }
    });
    let data_bytes = if fits_whole {
        whole
    } else {
        // Blocks are padded to words: data up to a word's end costs nothing.
        (room.saturating_sub(bytes(0, &kept)) / 4 * 4).min(whole)
    };
    let bytes_cut = (whole - data_bytes + packet.options.len() - kept.len()) as u64;
    Fitted { data_bytes, options: kept, bytes_cut }
}

/// The options that are kept, in their order: from the shortest on, as many as `fits` accepts in all.
fn kept_options(encoded: &[u8], fits: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut by_length = options(encoded);
    by_length.sort_by_key(|option| (option.len(), option.start));
    let mut taken = 0;
    let fitting = by_length.iter().take_while(|option| {
        taken += option.len();
        // Whether they fit depends on nothing but their number of bytes.
        fits(&encoded[..taken])
    });
    let count = fitting.count();
    let mut kept = by_length[..count].to_vec();
    kept.sort_by_key(|option| option.start);
    kept.into_iter().flat_map(|option| &encoded[option]).copied().collect()
}

/// Where each option lies, with its header and padding. What is behind the last whole one is left out.
fn options(encoded: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(length) = encoded.get(at + 2..at + 4) {
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        let end = (at + 4 + length).next_multiple_of(4);
        if end > encoded.len() {
            break;
        }
        found.push(at..end);
        at = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Timestamp;
    use proptest::prelude::*;

    /// An option of a code, with a value of so many bytes.
    fn option(code: u16, bytes: usize) -> Vec<u8> {
        let mut option = [code.to_le_bytes(), (bytes as u16).to_le_bytes()].concat();
        option.resize((4 + bytes).next_multiple_of(4), code as u8);
        option
    }

    fn packet<'a>(data: &'a [u8], options: &'a [u8]) -> Packet<'a> {
        let timestamp = Timestamp::MIN;
        Packet { interface: 0, timestamp, original_length: 1 << 20, data, options }
    }

    #[test]
    fn whole_data_comes_before_options_and_short_options_before_long_ones() {
        let data = [7; 100];
        let options = [option(1, 5000), option(2, 4), option(1, 300), option(5, 8)].concat();
        let fitted = fit(&packet(&data, &options), 0, 500);
        assert_eq!(fitted.data_bytes, 100);
        assert_eq!(fitted.options, [option(2, 4), option(1, 300), option(5, 8)].concat());
        assert_eq!(fitted.bytes_cut, 5004);
    }

    #[test]
    fn cut_data_leaves_room_for_short_options() {
        let data = [7; 1000];
        let options = [option(1, 252), option(2, 4)].concat();
        let fitted = fit(&packet(&data, &options), 3, 500);
        assert_eq!(fitted.options, option(2, 4));
        // Header and end, the option, epb_dropcount, and the end of options.
        assert_eq!(fitted.data_bytes, 500 - 32 - 8 - 12 - 4);
        assert_eq!(fitted.bytes_cut, (1000 - fitted.data_bytes + 256) as u64);
    }

    #[test]
    fn room_is_filled_to_its_last_byte() {
        let data = [7; 100];
        let options = [option(2, 4), option(1, 300)].concat();
        let (whole, bare) = (packet(&data, &options), packet(&data, &[]));
        let kept = |packet: &Packet<'_>, room| {
            let fitted = fit(packet, 0, room);
            (fitted.data_bytes, fitted.options.len(), packet_block_bytes(&fitted.packet(packet), 0))
        };
        let room = packet_block_bytes(&bare, 0);
        assert_eq!(kept(&whole, room), (100, 0, room), "data alone");
        let room = packet_block_bytes(&whole, 0);
        assert_eq!(kept(&whole, room), (100, options.len(), room), "data and all options");
        let room = packet_block_bytes(&packet(&[], &options[..8]), 0);
        assert_eq!(kept(&whole, room), (0, 8, room), "an option and no data");
    }

    #[test]
    fn options_of_256_bytes_are_kept_beside_cut_data_and_of_more_they_are_not() {
        let data = [7; 1000];
        let kept = |bytes| fit(&packet(&data, &option(1, bytes)), 0, 500).options.len();
        assert_eq!(kept(252), OPTIONS_BESIDE_CUT_DATA_MAX);
        assert_eq!(kept(256), 0);
    }

    proptest! {
        #[test]
        fn nothing_more_is_cut_than_must_be(
            data in 0usize..3000,
            lengths in proptest::collection::vec(0usize..600, 0..12),
            dropped in 0u64..2,
            room in 512usize..3000,
        ) {
            let data = vec![9; data];
            let all: Vec<Vec<u8>> =
                (1u16..).zip(&lengths).map(|(code, &bytes)| option(code, bytes)).collect();
            let options = all.concat();
            let packet = packet(&data, &options);
            let fitted = fit(&packet, dropped, room);
            let kept = fitted.packet(&packet);
            let taken = packet_block_bytes(&kept, dropped);
            prop_assert!(taken <= room);
            let cut = data.len() - kept.data.len() + options.len() - kept.options.len();
            prop_assert_eq!(fitted.bytes_cut, cut as u64);
            prop_assert_eq!(cut == 0, packet_block_bytes(&packet, dropped) <= room);
            if kept.data.len() < data.len() {
                prop_assert!(room - taken < 4, "data is cut no earlier than it must be");
            } else {
                // One option more, the shortest that is missing, would not have fitted.
                let missing = all.iter().filter(|o| !kept.options.windows(o.len()).any(|w| w == &o[..]));
                if let Some(least) = missing.map(Vec::len).min() {
                    let first = if taken == packet_block_bytes(&Packet { options: &[], ..kept }, 0) { 4 } else { 0 };
                    prop_assert!(taken + least + first > room);
                }
            }
        }
    }
}
