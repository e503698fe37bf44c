//! Files that leave Longtake, byte by byte, and the ledger's names in them.

use longtake_format::export::{Exporter, FileFormat, MixedLinkTypes};
use longtake_format::packets::{Item, Items};
use longtake_format::pcapng::{
    self, Block, Blocks, ReadPacket, options, read_interface, read_packet,
};
use longtake_format::{Count, Interface, Ledger, LinkType, Stage};

use crate::rules::{interface, packet, place, record, writer};

/// Exports packets of some interfaces, each as `(interface, ns, bytes)`.
fn export(
    format: FileFormat,
    interfaces: &[Interface],
    packets: &[(usize, u64, &[u8])],
) -> Result<Vec<u8>, MixedLinkTypes> {
    let mut out = Vec::new();
    let mut exporter = Exporter::new(format, "a comment", &mut out);
    assert_eq!(exporter.takes_blocks(), format == FileFormat::Pcapng);
    for &(number, ns, data) in packets {
        let interface = exporter.interface(&interfaces[number], &mut out);
        // As it lies in its chunk, under another number.
        let mut bytes = vec![0; 32 + data.len().next_multiple_of(4)];
        pcapng::put_packet(&mut bytes, 77, &packet(77, ns, data), 0);
        let block = Block { kind: pcapng::ENHANCED_PACKET, bytes: &bytes, offset: 0 };
        let read: ReadPacket<'_> = read_packet(&block).unwrap();
        exporter.packet(interface, &read, &block, &mut out)?;
    }
    exporter.finish(&mut out);
    Ok(out)
}

fn two() -> [Interface; 2] {
    [interface("a", LinkType::ETHERNET), interface("b", LinkType::USER0)]
}

#[test]
fn a_pcapng_file_describes_each_interface_once_and_numbers_its_packets_by_that() {
    let (first, second) = (1_700_000_000_123_456_789, 1_700_000_001_000_000_000);
    let file = export(
        FileFormat::Pcapng,
        &two(),
        &[(1, first, b"one"), (0, second, b"four"), (1, second, b"")],
    )
    .unwrap();
    let blocks: Vec<_> = Blocks::new(&file).map(Result::unwrap).collect();
    let (header, rest) = blocks.split_first().unwrap();
    assert_eq!(header.kind, pcapng::SECTION_HEADER);
    let body = header.body();
    assert_eq!(body[..8], *b"\x4D\x3C\x2B\x1A\x01\0\0\0");
    assert_eq!(body[8..16], [0xFF; 8], "a length that is not known");
    let said: Vec<_> = options(&body[16..]).collect();
    let application = format!("longtake {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(said, [(1, &b"a comment"[..]), (4, application.as_bytes())]);

    let mut found = Vec::new();
    for block in rest {
        if block.kind == pcapng::INTERFACE {
            found.push(read_interface(block).unwrap().name);
        } else {
            let read = read_packet(block).unwrap();
            let text = String::from_utf8(read.data.to_vec()).unwrap();
            found.push(format!("{} {} {text}", read.interface, read.time));
        }
    }
    let expected = [
        "b".to_owned(),
        format!("0 {first} one"),
        "a".to_owned(),
        format!("1 {second} four"),
        format!("0 {second} "),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_pcapng_file_without_a_comment_has_no_empty_one() {
    let header = pcapng::section_header("program", "");
    let block = Blocks::new(&header).next().unwrap().unwrap();
    assert_eq!(options(&block.body()[16..]).collect::<Vec<_>>(), [(4, &b"program"[..])]);
}

#[test]
fn a_pcap_file_has_nanoseconds_and_its_packets_link_type() {
    let packets =
        [(1, 1_700_000_000_123_456_789, &b"one"[..]), (1, 1_700_000_001_000_000_000, b"")];
    let file = export(FileFormat::Pcap, &two(), &packets).unwrap();
    // draft-ietf-opsawg-pcap, sections 4 and 5.
    let mut expected = Vec::new();
    let word = |value: u32| value.to_le_bytes();
    for value in [0xA1B2_3C4D, 4 << 16 | 2, 0, 0, 262_144, 147] {
        expected.extend(word(value));
    }
    for value in [1_700_000_000, 123_456_789, 3, 3] {
        expected.extend(word(value));
    }
    expected.extend(b"one");
    for value in [1_700_000_001, 0, 0, 0] {
        expected.extend(word(value));
    }
    assert_eq!(file, expected);
}

#[test]
fn a_pcap_file_takes_interfaces_of_one_link_type_and_refuses_a_second_one() {
    let alike = [interface("a", LinkType::ETHERNET), interface("b", LinkType::ETHERNET)];
    let file = export(FileFormat::Pcap, &alike, &[(0, 1, b"x"), (1, 2, b"y"), (0, 3, b"z")]);
    assert_eq!(file.unwrap().len(), 24 + 3 * 17);
    let error = export(FileFormat::Pcap, &two(), &[(0, 1, b"x"), (1, 2, b"y")]).unwrap_err();
    assert_eq!(error, MixedLinkTypes { file: LinkType::ETHERNET, packet: LinkType::USER0 });
    let text = error.to_string();
    assert!(text.contains("1 and 147") && text.contains("extract as pcapng"), "{text}");
}

#[test]
fn a_file_without_packets_is_still_a_file() {
    let pcap = export(FileFormat::Pcap, &two(), &[]).unwrap();
    assert_eq!((pcap.len(), pcap[20]), (24, 1), "Ethernet, as nothing says otherwise");
    let mut out = Vec::new();
    let mut exporter = Exporter::new(FileFormat::Pcap, "", &mut out);
    exporter.interface(&two()[1], &mut out);
    exporter.finish(&mut out);
    assert_eq!((out.len(), out[20]), (24, 147), "what its interface has");
    let pcapng = export(FileFormat::Pcapng, &two(), &[]).unwrap();
    assert_eq!(Blocks::new(&pcapng).count(), 1);
}

#[test]
fn a_packet_block_out_of_a_chunk_is_exported_with_its_options() {
    let mut writer = writer();
    writer.packet(&packet(4, 5, b"data!"), 3).unwrap();
    let sealed = writer.seal(&[], base::Timestamp::MIN, false);
    let record = record(sealed.summary);
    let mut chunk = sealed.buffer;
    record.stamp(&place(), &mut chunk);
    let mut out = Vec::new();
    let mut exporter = Exporter::new(FileFormat::Pcapng, "", &mut out);
    exporter.interface(&interface("other", LinkType::ETHERNET), &mut out);
    for item in Items::new(&chunk, &record).unwrap() {
        if let Item::Packet(read, block) = item.unwrap() {
            let number = exporter.interface(&interface("eth4", LinkType::ETHERNET), &mut out);
            exporter.packet(number, &read, &block, &mut out).unwrap();
        }
    }
    let last = Blocks::new(&out).map(Result::unwrap).last().unwrap();
    let read = read_packet(&last).unwrap();
    assert_eq!((read.interface, read.data, read.dropped()), (1, &b"data!"[..], 3));
}

#[test]
fn a_ledger_adds_up_by_stage_and_tells_losses_that_were_asked_for_from_the_others() {
    let mut ledger = Ledger::default();
    ledger.store(Count::new(10, 1000));
    for (n, stage) in (1..).zip(Stage::ALL) {
        ledger.lose(stage, Count::new(n, 10 * n));
    }
    assert_eq!(ledger.lost_total(), Count::new(28, 280));
    assert_eq!(ledger.lost_unwanted(), Count::new(17, 170), "all but filtered and cut ones");
    let earlier = ledger;
    ledger.add(&earlier);
    assert_eq!(ledger.stored, Count::new(20, 2000));
    assert_eq!(ledger.offered, Count::new(76, 2560));
    assert_eq!(ledger.lost(Stage::NoBuffer), Count::new(6, 60));
    assert_eq!(ledger.since(&earlier), earlier);
    assert!(ledger.balances() && ledger.since(&ledger) == Ledger::default());
}

#[test]
fn stages_have_their_names_in_json() {
    let keys = Stage::ALL.map(Stage::key);
    assert_eq!(
        keys,
        ["interface", "kernel_ring", "no_buffer", "filtered", "device_error", "array_full", "cut"]
    );
    // On a terminal they read the same, in words.
    assert_eq!(Stage::ALL.map(|stage| stage.to_string().replace(' ', "_")), keys);
}
