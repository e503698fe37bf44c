//! Chunks: what fits in one, how it is padded, and which records can't be true.

use base::Timestamp;
use longtake_format::chunk::{check_body, packet_block_max};
use longtake_format::packets::{Item, Items};
use longtake_format::parity::{Joined, LastParities, PARITY_AT, Part, PlacedParity, Row, Table};
use longtake_format::pcapng::{
    self, Blocks, INTERFACE_BYTES_MAX, InterfaceTotals, PRIVATE, PRIVATE_LEAST_BYTES,
    STATISTICS_BYTES_MAX, statistics_block,
};
use longtake_format::{
    ChunkRecord, ChunkSummary, ChunkWriter, Damage, Interface, LinkType, NoRoom,
};

use crate::rules::{BY_KIND, empty, forged, interface, packet, place, record, writer};

/// A chunk's memory with a record's header in it.
fn stamped(record: &ChunkRecord) -> Vec<u8> {
    let mut chunk = vec![0; record.summary.length as usize];
    record.stamp(&place(), &mut chunk);
    chunk
}

fn read(record: &ChunkRecord) -> Result<ChunkRecord, Damage> {
    ChunkRecord::read(&stamped(record)).map(|(_, record)| record)
}

#[test]
fn a_chunk_overlaps_a_range_of_time_when_they_share_a_nanosecond() {
    let summary = ChunkSummary { packets: 1, first_ns: 100, last_ns: 200, ..ChunkSummary::EMPTY };
    for (from, to, overlaps) in [
        (0, 99, false),
        (0, 100, true),
        (150, 150, true),
        (0, u64::MAX, true),
        (200, 300, true),
        (201, 300, false),
    ] {
        assert_eq!(summary.overlaps(from, to), overlaps, "{from} to {to}");
    }
    assert!(!ChunkSummary::EMPTY.overlaps(0, u64::MAX), "a chunk without packets has no time");
    // A parity chunk has its group's times and no packets.
    let parity = ChunkSummary { packets: 0, ..summary };
    assert!(!parity.overlaps(0, u64::MAX));
}

#[test]
fn a_chunk_has_room_for_the_longest_interface_a_packet_and_four_statistics_and_for_no_byte_more() {
    let longest = Interface {
        name: "n".repeat(2000),
        description: "d".repeat(2000),
        filter: "f".repeat(2000),
        speed_bits: 1,
        ..interface("", LinkType::ETHERNET)
    };
    assert_eq!(pcapng::interface_block(&longest).len(), INTERFACE_BYTES_MAX);
    let totals = InterfaceTotals { comment: "c".repeat(1000), ..InterfaceTotals::default() };
    assert_eq!(statistics_block(0, &totals).len(), STATISTICS_BYTES_MAX);

    let chunk_max = 1 << 16;
    let fits = packet_block_max(chunk_max) - pcapng::PACKET_OVERHEAD_BYTES;
    let data = vec![7; fits + 4];
    let mut writer = ChunkWriter::new(vec![0; 1 << 16], 4096, chunk_max, 0);
    assert_eq!(writer.interface(0, &longest), Ok(()));
    assert_eq!(writer.packet(&packet(0, 1, &data), 0), Err(NoRoom));
    assert_eq!(writer.packets(), 0, "nothing was written");
    assert_eq!(writer.packet(&packet(0, 1, &data[..fits]), 0), Ok(()));
    assert_eq!(writer.packet(&packet(0, 2, &[]), 0), Err(NoRoom));
    assert_eq!(writer.interface(1, &interface("", LinkType::ETHERNET)), Err(NoRoom));

    // The fifth is left out.
    let lossy: Vec<_> = (0..5).map(|_| (0, totals.clone())).collect();
    let sealed = writer.seal(&lossy, Timestamp::MIN, false);
    assert_eq!(sealed.summary.length, chunk_max);
    let mut chunk = sealed.buffer;
    let record = record(sealed.summary);
    record.stamp(&place(), &mut chunk);
    assert_eq!(check_body(&chunk, &record), Ok(()));
    let kinds: Vec<u32> = Blocks::new(&chunk).map(|block| block.unwrap().kind).collect();
    let statistics = [pcapng::STATISTICS; 4];
    let before = [pcapng::SECTION_HEADER, pcapng::INTERFACE, pcapng::ENHANCED_PACKET];
    assert_eq!(kinds, [&before[..], &statistics, &[PRIVATE]].concat());
}

#[test]
fn an_interface_that_fills_a_chunk_to_its_room_is_taken_and_one_more_is_not() {
    let small = interface("", LinkType::ETHERNET);
    let block = pcapng::interface_block(&small).len();
    let mut writer = ChunkWriter::new(vec![0; 1 << 16], 4096, 1 << 16, 0);
    // The same room as for packets: what is behind the header, less statistics and padding.
    let room = packet_block_max(1 << 16) + INTERFACE_BYTES_MAX;
    assert_eq!(room % 4, 0);
    let gap = room % block;
    let name = "n".repeat(gap.saturating_sub(4));
    let mut left = room;
    if gap > 4 {
        let odd = interface(&name, LinkType::ETHERNET);
        left -= pcapng::interface_block(&odd).len();
        assert_eq!(writer.interface(u32::MAX, &odd), Ok(()));
    }
    for number in 0..(left / block) as u32 {
        assert_eq!(writer.interface(number, &small), Ok(()), "{number}");
    }
    assert_eq!(left % block, 0, "the room is filled exactly");
    assert_eq!(writer.interface(u32::MAX - 1, &small), Err(NoRoom));
}

#[test]
fn a_packet_that_no_chunk_holds_is_cut_to_the_room_of_an_empty_one() {
    let data: Vec<u8> = (0..70_000_u32).map(|at| at as u8).collect();
    let mut writer = writer();
    let described = writer.filled();
    assert_eq!(writer.packet(&packet(4, 1, &data), 3), Err(NoRoom));
    let cut = writer.packet_cut_to_fit(&packet(4, 1, &data), 3).unwrap();
    assert_eq!(writer.packet(&packet(4, 2, &[]), 0), Err(NoRoom), "it fills the chunk");
    // epb_dropcount and the end of options stand behind the data.
    let kept = writer.filled() - described - pcapng::PACKET_OVERHEAD_BYTES - 16;
    assert_eq!(cut, (data.len() - kept) as u64);

    let sealed = writer.seal(&[], Timestamp::MIN, false);
    let record = record(sealed.summary);
    let mut chunk = sealed.buffer;
    record.stamp(&place(), &mut chunk);
    let last = Items::new(&chunk, &record).unwrap().map(Result::unwrap).last();
    let Some(Item::Packet(read, _)) = last else { panic!("the chunk ends with its packet") };
    assert_eq!((read.data, read.dropped()), (&data[..kept], 3));
    assert_eq!(read.original_length as usize, data.len(), "its length on the wire stays");
}

#[test]
fn what_an_interfaces_description_leaves_out_is_counted() {
    let cut = |name: usize, description: usize, filter: usize| {
        let text = |bytes| "t".repeat(bytes);
        let description = text(description);
        let interface = interface(&text(name), LinkType::ETHERNET);
        pcapng::interface_bytes_cut(&Interface { description, filter: text(filter), ..interface })
    };
    assert_eq!(cut(0, 1, 1000), 0);
    assert_eq!(cut(1001, 1020, 1300), 321);
}

#[test]
fn a_writer_says_what_it_holds_and_which_interfaces_it_knows() {
    let mut writer = writer();
    let described = writer.filled();
    assert_eq!(
        described,
        512 + pcapng::interface_block(&interface("eth4", LinkType::ETHERNET)).len()
    );
    assert_eq!(writer.packets(), 0);
    assert!(writer.knows(4) && !writer.knows(5) && !writer.knows(0));
    for count in 1..4 {
        writer.packet(&packet(4, 1, &[1, 2, 3]), 0).unwrap();
        assert_eq!(writer.packets(), count);
        assert_eq!(writer.filled(), described + count as usize * 36);
        assert!(writer.knows(4) && !writer.knows(5), "also once it was looked up");
    }
    writer.interface(5, &interface("eth5", LinkType::ETHERNET)).unwrap();
    assert!(writer.knows(4) && writer.knows(5));
}

#[test]
fn a_chunk_ends_on_a_page_and_is_padded_only_where_a_block_of_padding_fits() {
    let described = writer().filled();
    for (left, length) in [(0, 4096), (20, 4096), (24, 4096), (16, 8192), (4, 8192)] {
        let mut writer = writer();
        let data = vec![1; 4096 - left - described - pcapng::PACKET_OVERHEAD_BYTES];
        writer.packet(&packet(4, 1, &data), 0).unwrap();
        assert_eq!(writer.filled(), 4096 - left);
        let sealed = writer.seal(&[], Timestamp::MIN, false);
        assert_eq!(sealed.summary.length, length, "{left} bytes to the page's end");
        let mut chunk = sealed.buffer;
        record(sealed.summary).stamp(&place(), &mut chunk);
        let blocks: Vec<_> = Blocks::new(&chunk[..length as usize]).map(Result::unwrap).collect();
        let padding = blocks.last().filter(|block| block.kind == PRIVATE);
        let expected = length as usize - (4096 - left);
        assert_eq!(padding.map_or(0, |block| block.bytes.len()), expected);
        assert!(expected == 0 || expected >= PRIVATE_LEAST_BYTES);
    }
}

#[test]
fn lengths_that_cannot_be_are_damage_each_by_itself() {
    let sound = record(empty());
    assert_eq!(read(&sound), Ok(sound));
    let starts = |start, end| ChunkSummary { packets_start: start, packets_end: end, ..empty() };
    assert_eq!(read(&record(starts(600, 599))).err(), Some(Damage::Length));
    assert_eq!(read(&record(starts(600, 4097))).err(), Some(Damage::Length));
    assert_eq!(
        read(&record(ChunkSummary { captured_bytes: 4097, ..empty() })).err(),
        Some(Damage::Length)
    );
    assert!(read(&record(ChunkSummary { captured_bytes: 4096, ..empty() })).is_ok());
    assert!(read(&record(starts(600, 4096))).is_ok(), "packets up to its end");
    let of_length = |length: u32, end: u32| {
        let chunk = forged(&stamped(&record(starts(0, 0))), 28, &length.to_le_bytes());
        let chunk = forged(&chunk, BY_KIND + 60, &end.to_le_bytes());
        ChunkRecord::read(&chunk).err()
    };
    assert_eq!(of_length(8192, 0), None);
    assert_eq!(of_length(8192 + 512, 0), Some(Damage::Length), "no multiple of 4 KiB");
    assert_eq!(of_length(0, 0), Some(Damage::Length), "no room for its own header");
}

#[test]
fn a_parity_chunk_is_of_a_group_before_it_and_has_no_packets() {
    let part = Part { group: 7, span: 1, place: 1, of: 2 };
    let parity = ChunkRecord { parity: Some(part), ..record(empty()) };
    assert_eq!(read(&parity), Ok(parity));
    let of = |part| read(&ChunkRecord { parity: Some(part), ..record(empty()) }).err();
    assert_eq!(of(Part::FILLER), None);
    assert_eq!(of(Part { place: 0, of: 1, ..part }), None);
    let contradiction = Some(Damage::Contradiction);
    assert_eq!(of(Part { place: 2, ..part }), contradiction, "the third of two");
    assert_eq!(of(Part { of: 3, ..part }), contradiction, "three parities");
    assert_eq!(of(Part { span: 2, ..part }), contradiction, "a group that ends with itself");
    assert_eq!(of(Part { span: 3, ..part }), contradiction, "a group that ends behind it");
    assert_eq!(of(Part { group: u64::MAX, ..part }), contradiction, "a group without an end");
    let packets = ChunkSummary { packets: 1, packets_end: 544, first_ns: 1, last_ns: 1, ..empty() };
    for changed in [
        ChunkRecord { summary: packets, ..parity },
        ChunkRecord { summary: ChunkSummary { end: true, ..empty() }, ..parity },
        ChunkRecord { replaces: Some(8), ..parity },
    ] {
        assert_eq!(read(&changed).err(), contradiction, "{changed:?}");
    }
}

#[test]
fn only_parity_of_nothing_is_a_filler() {
    let of = |parity| ChunkRecord { parity, ..record(empty()) }.is_filler();
    assert!(of(Some(Part::FILLER)));
    assert!(!of(Some(Part { group: 7, span: 0, place: 0, of: 1 })));
    assert!(!of(None));
    let read = read(&ChunkRecord { parity: Some(Part::FILLER), ..record(empty()) }).unwrap();
    assert!(read.is_filler(), "also when it was read back");
    let data = ChunkRecord { group: Some(Joined { group: 8, of: 1 }), ..record(empty()) };
    assert!(!data.is_filler());
}

#[test]
fn parities_that_cannot_be_told_of_leave_their_room_to_others() {
    let placed = |sequence| PlacedParity { sequence, group: 50, member: 3, place: 0, of: 1 };
    let last = LastParities::of(100, (92..=100).rev().map(placed));
    let told: Vec<u64> = last.told_by(100).map(|parity| parity.sequence).collect();
    assert_eq!(told, [99, 98, 97, 96, 95, 94, 93, 92]);
    assert!(!last.is_empty());
}

#[test]
fn each_row_of_a_parity_table_must_be_possible() {
    let row = |sequence, member| Row { sequence, offset: 1 << 20, length: 4096, member };
    let rows = vec![row(100, 0), row(101, 1), row(103, 2)];
    let part = Part { group: 100, span: 3, place: 0, of: 1 };
    let table = Table { part, rows };
    let refusal = |sequence: u64, change: fn(&mut Vec<Row>)| {
        let mut changed = table.clone();
        change(&mut changed.rows);
        let mut chunk = vec![0; PARITY_AT + 3 * 4096];
        let (length, body_crc) = changed.seal(&mut chunk);
        let summary = ChunkSummary { length, body_crc, ..ChunkSummary::EMPTY };
        let record = ChunkRecord { sequence, parity: Some(part), ..record(summary) };
        Table::read(&chunk, &record).err()
    };
    assert_eq!(refusal(104, |_| ()), None);
    let contradictions: [fn(&mut Vec<Row>); 6] = [
        |rows| rows[0].sequence = 99,
        |rows| rows[1].sequence = 100,
        |rows| rows[2].sequence = 102,
        |rows| rows[1].offset = 1 << 63,
        |rows| rows[1].member = 2,
        |rows| rows[2].member = 0,
    ];
    for change in contradictions {
        assert_eq!(refusal(104, change), Some(Damage::Contradiction));
    }
    assert_eq!(refusal(103, |_| ()), Some(Damage::Contradiction), "a group that holds its parity");
    assert_eq!(refusal(104, |rows| rows[1].length = 1000), Some(Damage::Length));
    assert_eq!(refusal(104, |rows| rows[1].length = 0), Some(Damage::Length));
}

#[test]
fn nothing_missing_takes_no_parity_and_too_much_missing_says_how_much() {
    use longtake_format::parity::{TooManyMissing, recover};
    let rows = [Row { sequence: 1, offset: 0, length: 4096, member: 0 }; 2];
    let chunk = vec![3; 4096];
    assert_eq!(recover(&rows, &[Some(&chunk), Some(&chunk)], [None, None]), Ok(Vec::new()));
    let error = recover(&rows, &[None, None], [Some(&chunk), None]).unwrap_err();
    assert_eq!(error, TooManyMissing { missing: 2, parities: 1 });
    let text = error.to_string();
    assert!(text.contains("2 chunks") && text.contains("1 of its parities"), "{text}");
}

#[test]
fn an_interface_described_between_packets_makes_the_chunk_less_than_plain() {
    let sealed = |interfaces: bool| {
        let mut writer = writer();
        writer.interface(5, &interface("eth5", LinkType::USER0)).unwrap();
        writer.packet(&packet(5, 3, b"one"), 0).unwrap();
        if interfaces {
            writer.interface(6, &interface("eth6", LinkType::USER0)).unwrap();
            writer.packet(&packet(6, 4, b"two"), 2).unwrap();
        }
        writer.seal(&[], Timestamp::MIN, true)
    };
    assert!(sealed(false).summary.plain);
    let sealed = sealed(true);
    assert!(!sealed.summary.plain && sealed.summary.end);
    let record = record(sealed.summary);
    let mut chunk = sealed.buffer;
    record.stamp(&place(), &mut chunk);
    let mut names = Vec::new();
    let mut packets = Vec::new();
    for item in Items::new(&chunk, &record).unwrap() {
        match item.unwrap() {
            Item::Interface(interface) => names.push(interface.name),
            Item::Packet(packet, _) => packets.push((packet.interface, packet.dropped())),
        }
    }
    assert_eq!(names, ["eth4", "eth5", "eth6"]);
    assert_eq!(packets, [(1, 0), (2, 2)]);
}
