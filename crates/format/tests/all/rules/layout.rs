//! How a member is divided, and what an index has room for.

use longtake_format::chunk::PACKET_CHUNK_MAX_LEAST;
use longtake_format::index::{
    FOOTER_BYTES, Footer, entries_bytes, entries_in, length_for, tail_length,
};
use longtake_format::layout::{CHUNK_MAX_DEFAULT, CHUNK_MAX_LEAST, DATA_OFFSET};
use longtake_format::section::RECORD_BYTES;
use longtake_format::superblock::Member;
use longtake_format::{Layout, LayoutError, Superblock};
use uuid::Uuid;

use crate::rules::place;

const MIB: u64 = 1 << 20;

#[test]
fn segments_are_halved_until_a_member_holds_sixteen_but_never_below_16_mib() {
    let room = |segments: u64, segment: u64| DATA_OFFSET + segments * segment + 64 * 1024;
    for (capacity, segment_mib) in [
        (16 * 256 * MIB, 256),
        (16 * 256 * MIB - 1, 128),
        (16 * 128 * MIB, 128),
        (16 * 128 * MIB - 1, 64),
        (16 * 16 * MIB, 16),
        (16 * 16 * MIB - 1, 16),
        (room(2, 16 * MIB), 16),
    ] {
        let layout = Layout::default_for(capacity).unwrap();
        assert_eq!(layout.segment_bytes, segment_mib * MIB, "{capacity} bytes");
    }
    let error = Layout::default_for(room(2, 16 * MIB) - 1).unwrap_err();
    let LayoutError::TooSmall { capacity_bytes, least_bytes } = &error else { panic!("{error}") };
    assert_eq!((*capacity_bytes, *least_bytes), (room(2, 16 * MIB) - 1, room(2, 16 * MIB)));
    assert!(error.to_string().contains(&format!("at least {least_bytes} bytes")), "{error}");
}

#[test]
fn chunk_max_and_segments_are_taken_to_their_limits_and_not_beyond() {
    let chunk = |chunk_max: u32| Layout::new(1 << 40, 8 * u64::from(chunk_max), chunk_max);
    for chunk_max in [64 << 10, 8 << 20, CHUNK_MAX_DEFAULT] {
        assert_eq!(chunk(chunk_max).unwrap().chunk_max, chunk_max);
    }
    for chunk_max in [60 << 10, (8 << 20) + 4096, (64 << 10) + 512] {
        let error = chunk(chunk_max).unwrap_err();
        assert!(matches!(error, LayoutError::Lengths(_)), "{error}");
        assert!(error.to_string().starts_with(&format!("chunks of {chunk_max} bytes")), "{error}");
    }
    let segment = |bytes: u64| Layout::new(1 << 40, bytes, 8 << 20);
    assert!(segment(32 * MIB).is_ok() && segment(64 << 30).is_ok());
    for bytes in [32 * MIB - 4096, (64 << 30) + 4096, 64 * MIB + 512] {
        let error = segment(bytes).unwrap_err().to_string();
        assert!(error.contains(&bytes.to_string()), "{error}");
    }
    // 64 KiB hold the index of 148 chunks, which are at most 64 KiB long.
    let long = Layout::new(1 << 40, 148 * (64 << 10) + 4096, 64 << 10).unwrap_err();
    assert!(long.to_string().contains("too long"), "{long}");
    assert!(Layout::new(1 << 40, 148 * (64 << 10), 64 << 10).is_ok());
}

#[test]
fn every_offset_of_the_data_lies_in_its_segment() {
    let layout = Layout::new(1 << 30, 4 * MIB, 1 << 20).unwrap();
    assert_eq!(layout.data_bytes(), layout.segments * 4 * MIB);
    assert_eq!(layout.segments, (1 << 30) / (4 * MIB) - 1);
    for segment in [0, 1, 2, 7, layout.segments - 1] {
        let start = layout.segment_offset(segment);
        assert_eq!(start, MIB + segment * 4 * MIB);
        assert_eq!(layout.segment_at(start), segment);
        assert_eq!(layout.segment_at(start + 4 * MIB - 1), segment);
    }
    assert_eq!(layout.segment_at(0), 0);
    assert!(layout.segment_offset(layout.segments) <= Layout::copy_offset(1 << 30));
}

#[test]
fn a_chunk_fits_as_long_as_the_index_with_its_entry_does() {
    let layout = Layout::new(1 << 30, 4 * MIB, 1 << 20).unwrap();
    for chunks in [0, 1, 8, 9, 10, 100] {
        let index = length_for(chunks + 1);
        let used = 4 * MIB - index - (64 << 10);
        assert!(layout.fits(used, chunks, 64 << 10), "{chunks} chunks");
        assert!(!layout.fits(used + 1, chunks, 64 << 10), "{chunks} chunks");
        assert!(!layout.fits(used, chunks, (64 << 10) + 1), "{chunks} chunks");
    }
}

#[test]
fn an_index_takes_as_few_pages_as_hold_its_entries_and_footer() {
    for entries in 1..1000 {
        let bytes = entries * RECORD_BYTES as u64 + FOOTER_BYTES as u64 + 4;
        let tail = tail_length(entries);
        assert!(tail.is_multiple_of(4096) && tail >= bytes && tail < bytes + 4096, "{entries}");
        assert_eq!(length_for(entries), 4096 + tail);
        assert!(entries_in(tail) >= entries);
        assert_eq!(entries_in(tail + 4095), entries_in(tail), "only whole pages count");
        if tail > 4096 {
            assert!(entries_in(tail - 4096) < entries);
        }
        assert_eq!(entries_bytes(entries as usize) as u64, bytes);
    }
}

#[test]
fn a_footer_suits_a_longer_segment_of_its_own_member_alone() {
    let footer = Footer {
        array: place().array,
        entries: 3,
        entries_crc: 0,
        first_sequence: 1,
        last_sequence: 3,
        first_ns: 0,
        last_ns: 0,
        section_bytes: 8192,
        member: place().member,
    };
    assert!(footer.suits(&place(), 8193));
    assert!(!footer.suits(&place(), 8192), "a segment begins with a chunk");
    assert!(!footer.suits(&place(), 4096));
    let other = longtake_format::Place { array: Uuid::from_u128(99), ..place() };
    assert!(!footer.suits(&other, 1 << 20));
    assert!(!footer.suits(&longtake_format::Place { member: 2, ..place() }, 1 << 20));
}

#[test]
fn parity_takes_one_page_of_the_longest_chunk_and_a_member_more_than_there_are_parities() {
    let layout = Layout::default_for(1 << 40).unwrap();
    let superblock = |parity| Superblock {
        array: Uuid::from_u128(1),
        name: String::new(),
        member: 0,
        members: vec![Member { capacity_bytes: 1 << 40, identity: String::new(), joined_ns: 0 }; 3],
        layout,
        created: base::Timestamp::MIN,
        generation: 1,
        protected: Vec::new(),
        parity,
    };
    assert_eq!(superblock(0).data_chunk_max(), layout.chunk_max);
    assert_eq!(superblock(1).data_chunk_max(), layout.chunk_max - 4096);
    assert_eq!(superblock(2).data_chunk_max(), layout.chunk_max - 4096);

    let least = Layout::new(1 << 30, 1 << 20, CHUNK_MAX_LEAST).unwrap();
    let least = Superblock { layout: least, ..superblock(1) };
    assert_eq!(least.data_chunk_max(), PACKET_CHUNK_MAX_LEAST);

    for (parity, members, suits) in
        [(0, 1, true), (1, 1, false), (1, 2, true), (2, 2, false), (2, 3, true), (3, 9, false)]
    {
        assert_eq!(Superblock::suits_parity(parity, members, &layout), suits, "{parity} {members}");
    }
    // The shortest data chunk and its parity's overhead must fit in the longest chunk.
    let lengths = |chunk_min| Layout { chunk_min, chunk_max: 64 << 10, ..layout };
    assert!(Superblock::suits_parity(1, 2, &lengths((64 << 10) - 4096)));
    assert!(!Superblock::suits_parity(1, 2, &lengths(64 << 10)));
    assert!(Superblock::suits_parity(0, 2, &lengths(64 << 10)));
}
