//! What a reader refuses though its checksums are right, and what it says of it.

use base::Timestamp;
use longtake_format::crc::{Running, crc32c};
use longtake_format::index::{self, Footer, length_for};
use longtake_format::pcapng::{self, Blocks, read_interface, read_packet};
use longtake_format::superblock::{MEMBERS_MAX, Member};
use longtake_format::{
    ChunkRecord, Damage, Header, Kind, Layout, LinkType, PAGE_BYTES, Place, Superblock,
};
use uuid::Uuid;

use crate::rules::{BY_KIND, empty, forged, interface, place, record};

fn superblock() -> Superblock {
    let member = |n| Member { capacity_bytes: 1 << 30, identity: format!("{n}"), joined_ns: 0 };
    Superblock {
        array: place().array,
        name: "array".into(),
        member: 1,
        members: (0..3).map(member).collect(),
        layout: Layout::default_for(1 << 30).unwrap(),
        created: Timestamp::MIN,
        generation: 1,
        protected: Vec::new(),
        parity: 0,
    }
}

#[test]
fn a_superblock_whose_numbers_do_not_go_together_is_damage_each_by_itself() {
    let bytes = superblock().encode(0);
    assert_eq!(Superblock::read(&bytes, 0), Ok(superblock()));
    let longer = superblock().layout.segments + 1;
    // Segment lengths of which no layout is made, and a number of segments that overflows.
    let by_kind = BY_KIND;
    for (what, at, value) in [
        ("data offset", by_kind + 16, &(2u64 << 20).to_le_bytes()[..]),
        ("segment_bytes", by_kind + 24, &100u64.to_le_bytes()),
        ("segments", by_kind + 32, &1u64.to_le_bytes()),
        ("segments beyond counting", by_kind + 32, &u64::MAX.to_le_bytes()),
        ("chunk_max", by_kind + 40, &4096u32.to_le_bytes()),
        ("chunk_min", by_kind + 44, &4096u32.to_le_bytes()),
        ("protected ranges", by_kind + 48, &701u32.to_le_bytes()),
        ("parity", by_kind + 52, &3u32.to_le_bytes()),
        ("parity beyond a byte", by_kind + 52, &256u32.to_le_bytes()),
        ("a member behind the last", 14, &3u16.to_le_bytes()),
        ("no members", 16, &0u16.to_le_bytes()),
        ("members", 16, &257u16.to_le_bytes()),
    ] {
        let found = Superblock::read(&forged(&bytes, at, value), 0);
        assert_eq!(found, Err(Damage::Length), "{what}");
    }
    // The capacity is not in the layout: a member with a segment more is another member, and sound.
    let more = forged(&bytes, by_kind + 32, &longer.to_le_bytes());
    assert!(Superblock::read(&more, 0).is_ok());
    let last = forged(&bytes, 14, &2u16.to_le_bytes());
    assert_eq!(Superblock::read(&last, 0).unwrap().member, 2);
    let all = forged(&bytes, 16, &(MEMBERS_MAX as u16).to_le_bytes());
    assert_eq!(Superblock::read(&all, 0).unwrap().members.len(), MEMBERS_MAX);
    let chunk = forged(&bytes, 8, &2u16.to_le_bytes());
    assert_eq!(Superblock::read(&chunk, 0), Err(Damage::Elsewhere));
}

#[test]
fn text_that_is_too_long_is_cut_between_characters() {
    // 65 bytes, of which the 64th begins a character of two.
    let name = format!("a{}", "ü".repeat(32));
    let written = Superblock { name: name.clone(), ..superblock() }.encode(0);
    assert_eq!(Superblock::read(&written, 0).unwrap().name, name[..63]);
    let name = format!("a{}", "ü".repeat(500));
    let block = pcapng::interface_block(&interface(&name, LinkType::ETHERNET));
    let block = Blocks::new(&block).next().unwrap().unwrap();
    assert_eq!(read_interface(&block).unwrap().name, name[..999]);
}

#[test]
fn a_section_is_ours_only_with_both_its_marks() {
    let mut section = vec![0; PAGE_BYTES as usize];
    record(empty()).stamp(&place(), &mut section);
    assert!(Header::read(&section).is_ok());
    let mut no_pcapng = section.clone();
    no_pcapng[0] ^= 1;
    assert_eq!(Header::read(&no_pcapng), Err(Damage::NotOurs));
    assert_eq!(Header::read(&forged(&section, 0, b"l")), Err(Damage::NotOurs));
    assert_eq!(Header::read(&section[..511]), Err(Damage::Short));
    assert_eq!(Header::read(&forged(&section, 8, &[4, 0])), Err(Damage::Elsewhere));
    assert_eq!(Header::read(&forged(&section, 12, &[200, 0])).unwrap().minor, 200);
}

#[test]
fn a_section_is_expected_by_kind_array_member_and_offset() {
    let written = index::encode(&place(), length_for(1), &[(place(), record(empty()))]);
    let header = Header::read(&written.front).unwrap();
    assert_eq!(header.kind, Kind::Index);
    assert_eq!(header.expect(Kind::Index, &place()), Ok(()));
    // How many members there are may change, where a section lies may not.
    assert_eq!(header.expect(Kind::Index, &Place { members: 9, ..place() }), Ok(()));
    for (kind, at) in [
        (Kind::Chunk, place()),
        (Kind::Superblock, place()),
        (Kind::Index, Place { array: Uuid::from_u128(99), ..place() }),
        (Kind::Index, Place { member: 2, ..place() }),
        (Kind::Index, Place { offset: 4096, ..place() }),
    ] {
        assert_eq!(header.expect(kind, &at), Err(Damage::Elsewhere), "{kind:?} {at:?}");
    }
    assert_eq!(ChunkRecord::read(&written.front), Err(Damage::Elsewhere), "it is no chunk");
}

/// A footer with other bytes in it, and a checksum that fits them.
fn forged_footer(tail: &[u8], at: usize, bytes: &[u8]) -> Result<Footer, Damage> {
    let mut tail = tail.to_vec();
    let start = tail.len() - 100;
    tail[start + at..start + at + bytes.len()].copy_from_slice(bytes);
    let crc = crc32c(&tail[start..start + 92]);
    tail[start + 92..start + 96].copy_from_slice(&crc.to_le_bytes());
    Footer::read(&tail)
}

#[test]
fn a_footer_that_cannot_be_is_damage() {
    let second = Place { offset: place().offset + PAGE_BYTES, ..place() };
    let chunks =
        [(place(), record(empty())), (second, ChunkRecord { sequence: 12, ..record(empty()) })];
    let tail = index::encode(&place(), length_for(2), &chunks).tail;
    let footer = Footer::read(&tail).unwrap();
    assert_eq!((footer.entries, footer.section_bytes), (2, length_for(2)));
    assert_eq!(forged_footer(&tail, 24, &[2]), Ok(footer), "the forger writes sound footers");
    assert_eq!(forged_footer(&tail, 24, &0u32.to_le_bytes()), Err(Damage::Length));
    let short = length_for(2) - PAGE_BYTES;
    assert_eq!(forged_footer(&tail, 64, &short.to_le_bytes()), Err(Damage::Length));
    assert_eq!(forged_footer(&tail, 0, b"l"), Err(Damage::NotOurs));
    let contradiction = Err(Damage::Contradiction);
    assert_eq!(forged_footer(&tail, 32, &13u64.to_le_bytes()), contradiction);
    assert_eq!(forged_footer(&tail, 40, &(1u64 << 63).to_le_bytes()), contradiction);
    assert_eq!(Footer::read(&tail[..99]), Err(Damage::Short));
}

#[test]
fn an_index_with_one_number_twice_is_damage() {
    let second = Place { offset: place().offset + PAGE_BYTES, ..place() };
    let chunks = [(place(), record(empty())), (second, record(empty()))];
    let tail = index::encode(&place(), length_for(2), &chunks).tail;
    let footer = Footer::read(&tail).unwrap();
    assert_eq!(footer.entries(&tail), Err(Damage::Contradiction));
    assert_eq!(footer.entries(&tail[tail.len() - 2 * 440..]), Err(Damage::Short));
}

#[test]
fn blocks_are_walked_to_the_first_that_cannot_be() {
    let walk = |bytes: &[u8]| {
        Blocks::new(bytes)
            .map(|block| block.map(|b| (b.kind, b.offset, b.body().len())))
            .collect::<Vec<_>>()
    };
    let block = |total: u32, bytes: usize, end: u32| {
        let mut block = vec![0; bytes];
        block[0] = 9;
        block[4..8].copy_from_slice(&total.to_le_bytes());
        block[bytes - 4..].copy_from_slice(&end.to_le_bytes());
        block
    };
    assert_eq!(walk(&[]), []);
    // The shortest block has no body.
    let two = [block(16, 16, 16), block(12, 12, 12)].concat();
    assert_eq!(walk(&two), [Ok((9, 0, 4)), Ok((9, 16, 0))]);
    let then = |rest: &[u8]| {
        walk(&[block(12, 12, 12), rest.to_vec(), block(12, 12, 12)].concat())[1..].to_vec()
    };
    assert_eq!(then(&block(16, 16, 12)), [Err(Damage::Length)]);
    assert_eq!(then(&block(8, 16, 16)), [Err(Damage::Length)]);
    assert_eq!(then(&block(18, 20, 18)), [Err(Damage::Length)]);
    assert_eq!(then(&block(64, 16, 64)), [Err(Damage::Short)]);
    for cut in 1..12 {
        assert_eq!(walk(&two[..16 + cut])[1..], [Err(Damage::Short)], "{cut} bytes of a block");
    }
}

#[test]
fn descriptions_and_packets_must_have_their_fixed_part() {
    let block = |kind: u32, body: &[u8]| {
        let total = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &total, body, &total].concat()
    };
    let bytes = block(pcapng::INTERFACE, &[147, 0, 0, 0, 5, 0, 0, 0]);
    let read = read_interface(&Blocks::new(&bytes).next().unwrap().unwrap()).unwrap();
    assert_eq!((read.link_type, read.snap_length, read.name), (LinkType::USER0, 5, String::new()));
    let bytes = block(pcapng::INTERFACE, &[147, 0, 0, 0]);
    let read = read_interface(&Blocks::new(&bytes).next().unwrap().unwrap());
    assert_eq!(read, Err(Damage::Short));

    let packet = |captured: u32, bytes: usize| {
        let mut body = vec![0; 20 + bytes];
        if let Some(field) = body.get_mut(12..16) {
            field.copy_from_slice(&captured.to_le_bytes());
        }
        let bytes = block(pcapng::ENHANCED_PACKET, &body);
        read_packet(&Blocks::new(&bytes).next().unwrap().unwrap()).map(|p| p.data.len())
    };
    assert_eq!((packet(0, 0), packet(4, 4), packet(3, 4)), (Ok(0), Ok(4), Ok(3)));
    assert_eq!(packet(5, 4), Err(Damage::Length));
    assert_eq!(packet(u32::MAX, 4), Err(Damage::Length));
    let bytes = block(pcapng::ENHANCED_PACKET, &[0; 16]);
    let read = read_packet(&Blocks::new(&bytes).next().unwrap().unwrap());
    assert_eq!(read, Err(Damage::Short));
}

#[test]
fn options_are_walked_to_their_end_with_their_padding() {
    let options = |bytes: &'static [u8]| pcapng::options(bytes).collect::<Vec<_>>();
    let bytes = b"\x02\0\x05\0hello\0\0\0\x03\0\x04\0four\x07\0\0\0\0\0\0\0\x09\0\x01\0x\0\0\0";
    assert_eq!(options(bytes), [(2, &b"hello"[..]), (3, b"four"), (7, b"")]);
    assert_eq!(options(b"\x02\0\x05\0hell"), [], "a value that is cut short");
    assert_eq!(options(b"\x02\0\x01\0x\0\0\0\x03\0"), [(2, &b"x"[..])]);
    assert_eq!(options(b"\x02\0\x01\0x"), [(2, &b"x"[..])], "the last one without padding");
    assert_eq!(options(b""), []);
}

#[test]
fn damage_says_what_is_wrong_and_a_newer_format_what_to_do() {
    let newer = Damage::Newer { major: 7 }.to_string();
    assert!(newer.contains("7.x") && newer.contains("newer Longtake"), "{newer}");
    let all = [
        Damage::Short,
        Damage::NotOurs,
        Damage::HeaderChecksum,
        Damage::BodyChecksum,
        Damage::Length,
        Damage::Contradiction,
        Damage::Elsewhere,
    ];
    let mut texts: Vec<String> = all.iter().map(Damage::to_string).collect();
    assert!(texts.iter().all(|text| !text.is_empty()));
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), all.len(), "no two read the same");
}

#[test]
fn a_running_checksum_shows_its_value() {
    let mut running = Running::default();
    running.update(b"123456789");
    assert_eq!(format!("{running:?}"), "Running(e3069283)");
}
