//! Files built byte by byte in either order, files that Wireshark's tools made, and files cut anywhere.

use std::process::Command;

use base::Timestamp;
use format::{Interface, LinkType};
use proptest::prelude::*;

use super::*;
use crate::sink::Loss;
use crate::testing::{Event, Recording};

/// Writes numbers in one byte order.
#[derive(Clone)]
struct Writer {
    big_endian: bool,
    bytes: Vec<u8>,
}

impl Writer {
    fn new(big_endian: bool) -> Self {
        Self { big_endian, bytes: Vec::new() }
    }

    fn half(mut self, number: u16) -> Self {
        let bytes = if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() };
        self.bytes.extend(bytes);
        self
    }

    fn word(mut self, number: u32) -> Self {
        let bytes = if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() };
        self.bytes.extend(bytes);
        self
    }

    fn long(self, number: u64) -> Self {
        let (high, low) = ((number >> 32) as u32, number as u32);
        if self.big_endian { self.word(high).word(low) } else { self.word(low).word(high) }
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    fn pad(mut self) -> Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    fn option(self, code: u16, value: &[u8]) -> Self {
        self.half(code).half(value.len() as u16).raw(value).pad()
    }

    fn option_long(self, code: u16, number: u64) -> Self {
        self.half(code).half(8).long(number)
    }

    fn block(self, kind: u32, contents: impl FnOnce(Self) -> Self) -> Self {
        let inner = contents(Self::new(self.big_endian)).pad().bytes;
        let length = inner.len() as u32 + 12;
        self.word(kind).word(length).raw(&inner).word(length)
    }

    fn section(self) -> Self {
        self.block(0x0a0d_0d0a, |w| w.word(0x1a2b_3c4d).half(1).half(0).long(u64::MAX))
    }

    /// An Ethernet interface, with more options.
    fn interface(self, snap_length: u32, options: impl FnOnce(Self) -> Self) -> Self {
        self.block(1, |w| options(w.half(1).half(0).word(snap_length)))
    }

    fn packet(self, interface: u32, count: u64, data: &[u8], more: u32) -> Self {
        self.packet_with(interface, count, data, more, |w| w)
    }

    fn packet_with(
        self,
        interface: u32,
        count: u64,
        data: &[u8],
        more: u32,
        options: impl FnOnce(Self) -> Self,
    ) -> Self {
        let length = data.len() as u32;
        self.block(6, |w| {
            let w = w.word(interface).word((count >> 32) as u32).word(count as u32);
            options(w.word(length).word(length + more).raw(data).pad())
        })
    }
}

fn read(bytes: &[u8]) -> (Recording, Result<CaptureFileSummary, CaptureFileError>) {
    let mut sink = Recording::default();
    let file = CaptureFile::from_reader("test.pcapng", std::io::Cursor::new(bytes.to_vec()));
    let result = file.run(&mut sink);
    (sink, result)
}

fn ethernet(name: &str, snap_length: u32) -> Interface {
    Interface {
        name: name.to_owned(),
        description: String::new(),
        link_type: LinkType::ETHERNET,
        snap_length,
        filter: String::new(),
        speed_bits: 0,
    }
}

#[test]
fn pcap_of_every_magic_gives_the_same_packets() {
    for (magic, big_endian, ns_per_fraction, extra) in [
        (0xa1b2_c3d4u32, false, 1_000u64, 0),
        (0xa1b2_c3d4, true, 1_000, 0),
        (0xa1b2_3c4d, false, 1, 0),
        (0xa1b2_3c4d, true, 1, 0),
        (0xa1b2_cd34, false, 1_000, 8),
    ] {
        // Ethernet with a check sequence of two 16-bit words.
        let mut file = Writer::new(big_endian).word(magic).half(2).half(4).word(0).word(0);
        file = file.word(65_535).word(0x2400_0001);
        for (second, data) in [(1_700_000_000u32, &b"first"[..]), (1_700_000_001, b""), (7, b"x")] {
            let length = data.len() as u32;
            file = file.word(second).word(123_456).word(length).word(length + 3);
            file = file.raw(&vec![0; extra]).raw(data);
        }
        let (sink, result) = read(&file.bytes);
        let summary = result.unwrap();
        assert_eq!((summary.packets, summary.bytes, summary.complete), (3, 6, true));
        let description = "frames end with a check sequence of 4 bytes".to_owned();
        let expected = Interface { description, ..ethernet("test.pcapng", 65_535) };
        assert_eq!(sink.interfaces, [expected]);
        let packets: Vec<_> = sink.packets().collect();
        assert_eq!(packets[0].data, b"first");
        assert_eq!(packets[0].original_length, 8);
        assert_eq!(
            packets[0].timestamp.as_nanos(),
            1_700_000_000_000_000_000 + 123_456 * ns_per_fraction
        );
        assert_eq!((packets[1].data.len(), packets[2].data.as_slice()), (0, &b"x"[..]));
    }
}

#[test]
fn a_pcapng_interface_is_described_as_the_file_describes_it() {
    for big_endian in [false, true] {
        let file = Writer::new(big_endian).section().interface(96, |w| {
            w.option(2, b"eth7")
                .option(3, "zur Straße".as_bytes())
                .option_long(8, 25_000_000_000)
                .option(9, &[9])
                .option(11, b"\0tcp port 80")
                .option_long(14, 1_000)
                .option(0, b"")
        });
        let (sink, result) = read(&file.packet(0, 2_000_000_007, b"abc", 0).bytes);
        assert!(result.unwrap().complete);
        let expected = Interface {
            description: "zur Straße".to_owned(),
            filter: "tcp port 80".to_owned(),
            speed_bits: 25_000_000_000,
            ..ethernet("eth7", 96)
        };
        assert_eq!(sink.interfaces, [expected]);
        let packet = sink.packets().next().unwrap();
        assert_eq!(packet.timestamp, Timestamp::from_nanos(1_002_000_000_007));
    }
}

#[test]
fn sections_of_different_byte_order_follow_each_other_in_one_file() {
    let one = Writer::new(false).section().interface(0, |w| w.option(2, b"a"));
    let one = one.packet(0, 1, b"one", 0);
    let two = Writer::new(true).section().interface(0, |w| w.option(2, b"b"));
    let two = two.interface(0, |w| w.option(2, b"a")).packet(1, 2, b"two", 0);
    let (sink, result) = read(&[one.bytes, two.bytes].concat());
    let summary = result.unwrap();
    assert_eq!((summary.sections, summary.interfaces, summary.packets), (2, 2, 2));
    let seen: Vec<_> = sink.packets().map(|p| (p.interface, p.data.as_slice())).collect();
    assert_eq!(seen, [(0, &b"one"[..]), (0, &b"two"[..])]);
}

#[test]
fn simple_and_obsolete_packet_blocks_are_read_too() {
    for big_endian in [false, true] {
        let file = Writer::new(big_endian).section().interface(4, |w| w);
        let file = file.packet(0, 1_000_000, b"time", 0);
        let file = file.block(3, |w| w.word(9).raw(b"simp"));
        let file = file.block(2, |w| {
            w.half(0).half(5).word(0).word(2_000_000).word(3).word(10).raw(b"old").pad()
        });
        let file = file.block(2, |w| {
            w.half(0).half(0xffff).word(0).word(2_000_000).word(0).word(0).option(1, b"hi")
        });
        let (sink, result) = read(&file.bytes);
        assert_eq!(result.unwrap().packets, 4);
        let packets: Vec<_> = sink.packets().cloned().collect();
        assert_eq!((packets[1].data.as_slice(), packets[1].original_length), (&b"simp"[..], 9));
        assert_eq!(packets[1].timestamp, packets[0].timestamp, "a simple packet has no time");
        assert_eq!((packets[2].data.as_slice(), packets[2].original_length), (&b"old"[..], 10));
        assert_eq!(packets[2].timestamp.as_nanos(), 2_000_000_000);
        assert_eq!(packets[3].options, [1, 0, 2, 0, b'h', b'i', 0, 0]);
        assert_eq!(sink.lost(Loss::Interface), 5);
    }
}

#[test]
fn the_original_captures_losses_stand_in_front_of_the_packet_that_tells_them() {
    for big_endian in [false, true] {
        let file = Writer::new(big_endian).section().interface(0, |w| w);
        let file = file.packet(0, 1, b"a", 0);
        let file = file.packet_with(0, 2, b"b", 0, |w| {
            w.option(1, b"after a gap").option_long(4, 3).option(0, b"")
        });
        let file = file.block(5, |w| {
            w.word(0).long(0).option_long(4, 99).option_long(5, 4).option_long(7, 2).option(0, b"")
        });
        let (sink, result) = read(&file.bytes);
        assert_eq!(result.unwrap().lost_originally, 6);
        let kinds: Vec<_> = sink
            .events
            .iter()
            .map(|event| match event {
                Event::Packet(packet) => (b'p', packet.options.len() as u64),
                Event::Lost(_, Loss::Interface, packets, 0) => (b'i', *packets),
                Event::Lost(_, Loss::KernelRing, packets, 0) => (b'k', *packets),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(kinds, [(b'p', 0), (b'i', 3), (b'p', 16), (b'i', 1), (b'k', 2)]);
    }
}

#[test]
fn blocks_without_packets_are_skipped_and_counted() {
    let file = Writer::new(false).section().interface(0, |w| w);
    let file = file.block(4, |w| w.word(0));
    let file = file.block(10, |w| w.word(0x544c_534b).word(4).raw(b"keys"));
    let file = file.block(0xbad, |w| w.word(32_473).raw(b"anything"));
    let file = file.block(0x4000_0bad, |w| w.word(32_473));
    let file = file.block(0x7777, |w| w.raw(b"????"));
    let (_, result) = read(&file.packet(0, 1, b"p", 0).bytes);
    let summary = result.unwrap();
    assert_eq!(summary.packets, 1);
    assert_eq!(
        (summary.skipped_name_resolution, summary.skipped_secrets, summary.skipped_custom),
        (1, 1, 2)
    );
    assert_eq!(summary.skipped_other, 1);
}

#[test]
fn a_file_that_is_no_capture_is_named_with_its_first_bytes() {
    let error = read(b"GIF89a").1.unwrap_err().to_string();
    assert!(error.contains("test.pcapng") && error.contains("47 49 46 38"), "{error}");
    let error = read(b"").1.unwrap_err().to_string();
    assert!(error.contains("empty"), "{error}");
    let error = read(&[0x1f, 0x8b, 8, 0, 0]).1.unwrap_err().to_string();
    assert!(error.contains("zcat test.pcapng |"), "{error}");
    let error = read(&[0x28, 0xb5, 0x2f, 0xfd]).1.unwrap_err().to_string();
    assert!(error.contains("zstdcat"), "{error}");
}

#[test]
fn a_plain_file_that_is_no_capture_is_refused_when_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "notes").unwrap();
    assert!(matches!(CaptureFile::open(&path), Err(CaptureFileError::NotACapture { .. })));
    let missing = CaptureFile::open(&folder.path().join("missing.pcap"));
    assert!(matches!(missing, Err(CaptureFileError::Open { .. })));
}

#[test]
fn a_block_that_contradicts_itself_is_named_with_its_place() {
    let start = Writer::new(false).section().interface(0, |w| w).packet(0, 1, b"fine", 0);
    let offset = start.bytes.len() as u64;
    for (bad, wanted) in [
        (start.clone().packet(1, 1, b"", 0), "names interface 1"),
        (start.clone().word(6).word(7), "its length is 7"),
        (start.clone().word(6).word(0x0500_0000).word(0), "83886080 bytes"),
        (start.clone().block(6, |w| w.word(0).long(0).word(400).word(400)), "contradict"),
        (start.clone().block(6, |w| w), "contradict"),
        (start.clone().block(3, |w| w.word(400)), "contradict"),
        (start.clone().block(2, |w| w.word(0)), "contradict"),
        (start.clone().block(0x0a0d_0d0a, |w| w.word(1).long(0).long(0)), "byte order mark"),
        (
            start.clone().block(0x0a0d_0d0a, |w| w.word(0x1a2b_3c4d).half(2).half(0).long(0)),
            "version is 2.0",
        ),
    ] {
        // Enough behind it that the file doesn't just end.
        let (sink, result) = read(&bad.raw(&[0; 64]).bytes);
        assert_eq!(sink.packets().count(), 1);
        let error = result.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(wanted), "{wanted}: {text}");
        assert!(text.contains(&format!("at byte {offset}")), "{text}");
        assert!(text.contains("one packet before it was delivered"), "{text}");
        assert!(!matches!(error, CaptureFileError::Truncated { .. }), "{text}");
    }
}

#[test]
fn a_block_larger_than_the_window_is_read_whole() {
    let data: Vec<u8> = (0..3_000_000u32).map(|i| i as u8).collect();
    let file = Writer::new(false).section().interface(0, |w| w);
    let file = file.packet(0, 1, b"a", 0).packet(0, 2, &data, 0).packet(0, 3, b"b", 0);
    let (sink, result) = read(&file.bytes);
    assert!(result.unwrap().complete);
    let packets: Vec<_> = sink.packets().collect();
    assert_eq!((packets.len(), packets[1].data == data, packets[2].data.len()), (3, true, 1));
}

#[test]
fn a_sink_that_ends_stops_the_file_without_an_error() {
    let mut file = Writer::new(false).section().interface(0, |w| w);
    for count in 0..10 {
        file = file.packet(0, count, b"data", 0);
    }
    let mut sink = Recording::ending_at_packet(4);
    let reader = CaptureFile::from_reader("x", std::io::Cursor::new(file.bytes));
    let summary = reader.run(&mut sink).unwrap();
    assert_eq!((summary.packets, summary.complete), (4, false));
}

#[test]
fn a_stop_is_seen_while_a_fifo_is_silent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let file = CaptureFile::open(&path).unwrap();
    let summary = file.run(&mut Recording::ending_at_tick(3)).unwrap();
    assert_eq!((summary.packets, summary.complete), (0, false));
}

#[test]
fn a_capture_that_comes_slowly_through_a_fifo_is_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let bytes = Writer::new(true).section().interface(0, |w| w).packet(0, 1, b"abc", 0).bytes;
    let file = CaptureFile::open(&path).unwrap();
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        let mut fifo = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        for byte in bytes {
            fifo.write_all(&[byte]).unwrap();
        }
    });
    let mut sink = Recording::default();
    let summary = file.run(&mut sink).unwrap();
    writer.join().unwrap();
    assert_eq!((summary.packets, summary.complete), (1, true));
}

#[test]
fn what_editcap_converts_reads_the_same_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let original = folder.path().join("ns.pcap");
    let mut file = Writer::new(true).word(0xa1b2_3c4d).half(2).half(4).word(0).word(0);
    file = file.word(65_535).word(1);
    for n in 0..500u32 {
        let data = vec![n as u8; 14 + n as usize];
        file =
            file.word(1_700_000_000 + n).word(n * 1_999_999).word(14 + n).word(20 + n).raw(&data);
    }
    std::fs::write(&original, &file.bytes).unwrap();
    let packets = |path: &Path| -> Vec<_> {
        let mut sink = Recording::default();
        assert!(CaptureFile::open(path).unwrap().run(&mut sink).unwrap().complete);
        sink.packets().cloned().collect()
    };
    let expected = packets(&original);
    assert_eq!(expected.len(), 500);
    for format in ["nsecpcap", "pcapng"] {
        let converted = folder.path().join(format);
        let done = Command::new("editcap")
            .args(["-F", format])
            .args([&original, &converted])
            .status()
            .expect("editcap, of the Debian package wireshark-common, must be installed");
        assert!(done.success());
        assert_eq!(packets(&converted), expected, "{format}");
    }
}

/// A file with a bit of everything, and where each packet ends in it.
fn mixed_file(pcapng: bool, big_endian: bool, sizes: &[u16]) -> (Vec<u8>, Vec<usize>) {
    let mut ends = Vec::new();
    let mut file = Writer::new(big_endian);
    if !pcapng {
        file = file.word(0xa1b2_c3d4).half(2).half(4).word(0).word(0).word(65_535).word(1);
    }
    for (n, size) in sizes.iter().enumerate() {
        let data = vec![n as u8; usize::from(*size)];
        if pcapng {
            if n % 7 == 0 {
                file = file.section().interface(0, |w| w.option(9, &[9]).option(0, b""));
            }
            file = file.packet_with(0, n as u64, &data, 0, |w| match n % 3 {
                0 => w,
                1 => w.option(1, b"comment").option(0, b""),
                _ => w.option_long(5, n as u64),
            });
        } else {
            let length = u32::from(*size);
            file = file.word(0).word(n as u32).word(length).word(length).raw(&data);
        }
        ends.push(file.bytes.len());
    }
    (file.bytes, ends)
}

proptest! {
    #[test]
    fn a_file_cut_anywhere_gives_every_packet_before_the_cut_and_says_where(
        pcapng in any::<bool>(),
        big_endian in any::<bool>(),
        sizes in prop::collection::vec(0u16..300, 1..30),
        cut in any::<prop::sample::Index>(),
    ) {
        let (bytes, ends) = mixed_file(pcapng, big_endian, &sizes);
        let cut = cut.index(bytes.len());
        let (sink, result) = read(&bytes[..cut]);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        prop_assert_eq!(sink.packets().count(), whole);
        for (n, packet) in sink.packets().enumerate() {
            prop_assert_eq!(&packet.data, &vec![n as u8; usize::from(sizes[n])]);
        }
        match result {
            Ok(summary) => prop_assert!(summary.complete && summary.packets == whole as u64),
            Err(CaptureFileError::Truncated { place, needed, present, .. }) => {
                prop_assert_eq!(place.packets, whole as u64);
                prop_assert_eq!(place.offset + present, cut as u64);
                prop_assert!(needed > present);
            }
            Err(CaptureFileError::NotACapture { .. }) => prop_assert!(cut < 4),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn a_damaged_file_never_panics_and_what_is_delivered_is_well_formed(
        pcapng in any::<bool>(),
        big_endian in any::<bool>(),
        sizes in prop::collection::vec(0u16..100, 1..12),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let (mut bytes, _) = mixed_file(pcapng, big_endian, &sizes);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let (sink, _) = read(&bytes);
        for packet in sink.packets() {
            prop_assert_eq!(packet.options.len() % 4, 0);
        }
    }
}
