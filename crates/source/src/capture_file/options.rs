//! A packet's pcapng options, carried over in little endian whatever order the file has.

use pcap_parser::{OptionCode, PcapNGOption};

/// Codes of the pcapng draft, section 4.3.
const COMMENT: u16 = 1;
const FLAGS: u16 = 2;
const HASH: u16 = 3;
const DROP_COUNT: u16 = 4;
const PACKET_ID: u16 = 5;
const QUEUE: u16 = 6;
const VERDICT: u16 = 7;
const PROCESS_THREAD: u16 = 8;
/// Custom options (strings and binary, to be copied or not) start with a 32-bit enterprise number.
const CUSTOM: [u16; 4] = [2988, 2989, 19372, 19373];

/// Verdicts whose value is a 64-bit number: eBPF at traffic control and XDP. The value of a hardware's
/// verdict is its own affair.
const NUMERIC_VERDICTS: [u8; 2] = [1, 2];

/// What became of one packet's options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Carried {
    /// Packets lost before this one, by `epb_dropcount`.
    pub(super) lost: u64,
    /// Options that could not be carried over: unknown ones of a big-endian file, whose numbers can't be
    /// turned, and known ones of a wrong length.
    pub(super) left_out: u64,
}

/// Appends `options` to `out`, each padded to four bytes, without the end mark and the drop count.
pub(super) fn carry(options: &[PcapNGOption<'_>], big_endian: bool, out: &mut Vec<u8>) -> Carried {
    let mut carried = Carried::default();
    for option in options {
        if option.code == OptionCode::EndOfOpt {
            break;
        }
        let Ok(value) = option.as_bytes() else {
            carried.left_out += 1;
            continue;
        };
        if option.code.0 == DROP_COUNT {
            match number_u64(value, big_endian) {
                Some(count) => carried.lost = carried.lost.saturating_add(count),
                None => carried.left_out += 1,
            }
            continue;
        }
        if !has_its_length(option.code.0, value) {
            carried.left_out += 1;
            continue;
        }
        let start = out.len();
        out.extend_from_slice(&option.code.0.to_le_bytes());
        out.extend_from_slice(&option.len.to_le_bytes());
        out.extend_from_slice(value);
        if big_endian && !turn(option.code.0, &mut out[start + 4..]) {
            out.truncate(start);
            carried.left_out += 1;
            continue;
        }
        out.resize(out.len().next_multiple_of(4), 0);
    }
    carried
}

/// Whether a value is as long as its kind of option demands (pcapng draft, sections 3.5 and 4.3). Wireshark refuses a whole file for
/// one that is not. Unknown kinds may have any length.
fn has_its_length(code: u16, value: &[u8]) -> bool {
    match code {
        FLAGS | QUEUE => value.len() == 4,
        PACKET_ID | PROCESS_THREAD => value.len() == 8,
        HASH => !value.is_empty(),
        VERDICT => value.first().is_some_and(|kind| {
            // The kind, and a number of 64 bits.
            !NUMERIC_VERDICTS.contains(kind) || value.len() == 9
        }),
        code if CUSTOM.contains(&code) => value.len() >= 4,
        _ => true,
    }
}

/// An 8-byte option value.
pub(super) fn number_u64(value: &[u8], big_endian: bool) -> Option<u64> {
    let bytes = <[u8; 8]>::try_from(value).ok()?;
    Some(if big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
}

/// Reverses the numbers inside a value. False if it isn't known where they are.
fn turn(code: u16, value: &mut [u8]) -> bool {
    match (code, value.len()) {
        (COMMENT, _) | (HASH, 1..) => true,
        (FLAGS | QUEUE, 4) | (PACKET_ID, 8) => {
            value.reverse();
            true
        }
        (VERDICT, 1..) => {
            if NUMERIC_VERDICTS.contains(&value[0]) {
                value[1..].reverse();
            }
            true
        }
        (PROCESS_THREAD, 8) => {
            value[..4].reverse();
            value[4..].reverse();
            true
        }
        (code, 4..) if CUSTOM.contains(&code) => {
            value[..4].reverse();
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_parser::nom::error::Error;
    use pcap_parser::{parse_option_be, parse_option_le};

    fn parsed(mut bytes: &[u8], big_endian: bool) -> Vec<PcapNGOption<'_>> {
        let mut options = Vec::new();
        while !bytes.is_empty() {
            let parse = if big_endian { parse_option_be::<Error<&[u8]>> } else { parse_option_le };
            let (rest, option) = parse(bytes).unwrap();
            options.push(option);
            bytes = rest;
        }
        options
    }

    #[test]
    fn options_of_either_byte_order_become_the_same_little_endian_bytes() {
        #[rustfmt::skip]
        let little = [
            1, 0, 2, 0, b'h', b'i', 0, 0,
            2, 0, 4, 0, 1, 2, 3, 4,
            4, 0, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0,
            5, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8,
            6, 0, 4, 0, 7, 0, 0, 0,
            7, 0, 9, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0xac, 0x0b, 6, 0, 0xd9, 0x7e, 0, 0, b'o', b'k', 0, 0,
            0, 0, 0, 0,
            1, 0, 1, 0, b'x', 0, 0, 0,
        ];
        #[rustfmt::skip]
        let big = [
            0, 1, 0, 2, b'h', b'i', 0, 0,
            0, 2, 0, 4, 4, 3, 2, 1,
            0, 4, 0, 8, 0, 0, 0, 0, 0, 0, 0, 9,
            0, 5, 0, 8, 8, 7, 6, 5, 4, 3, 2, 1,
            0, 6, 0, 4, 0, 0, 0, 7,
            0, 7, 0, 9, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
            0x0b, 0xac, 0, 6, 0, 0, 0x7e, 0xd9, b'o', b'k', 0, 0,
            0, 0, 0, 0,
            0, 1, 0, 1, b'x', 0, 0, 0,
        ];
        let (mut from_little, mut from_big) = (Vec::new(), Vec::new());
        let expected = Carried { lost: 9, left_out: 0 };
        assert_eq!(carry(&parsed(&little, false), false, &mut from_little), expected);
        assert_eq!(carry(&parsed(&big, true), true, &mut from_big), expected);
        assert_eq!(from_little, from_big);
        // All but the drop count, the end mark, and what stands behind it.
        assert_eq!(from_little, [&little[..16], &little[28..little.len() - 12]].concat());
    }

    #[test]
    fn a_known_option_of_a_wrong_length_is_left_out_in_either_byte_order() {
        for (code, length) in
            [(2u16, 3u16), (2, 8), (3, 0), (5, 11), (6, 1), (7, 0), (8, 4), (2988, 3)]
        {
            for big_endian in [false, true] {
                let bytes = if big_endian { u16::to_be_bytes } else { u16::to_le_bytes };
                let mut option = [bytes(code), bytes(length)].concat();
                option.resize(4 + usize::from(length).next_multiple_of(4), 0);
                let mut out = Vec::new();
                let carried = carry(&parsed(&option, big_endian), big_endian, &mut out);
                assert_eq!(carried, Carried { lost: 0, left_out: 1 }, "{code} of {length}");
                assert_eq!(out, []);
            }
        }
        let verdict = [7, 0, 4, 0, 1, 0, 0, 0];
        assert_eq!(carry(&parsed(&verdict, false), false, &mut Vec::new()).left_out, 1);
    }

    #[test]
    fn what_cannot_be_turned_is_left_out_and_counted() {
        let unknown = [0x7f, 0xff, 0, 2, 1, 2, 0, 0, 0, 2, 0, 3, 1, 2, 3, 0];
        let mut out = Vec::new();
        assert_eq!(
            carry(&parsed(&unknown, true), true, &mut out),
            Carried { lost: 0, left_out: 2 }
        );
        assert_eq!(out, []);
        // In a little-endian file nothing needs turning.
        let unknown = [0xff, 0x7f, 2, 0, 1, 2, 0, 0];
        assert_eq!(carry(&parsed(&unknown, false), false, &mut out), Carried::default());
        assert_eq!(out, unknown);
    }
}
