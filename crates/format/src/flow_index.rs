//! A segment's flow index: in which parts of the segment the packets of a host, a port or a flow may lie (`docs/format.md`,
//! section 11). Keys are hashes here; what they are hashes of is for `search` to say.

mod bits;
mod table;

use uuid::Uuid;

use crate::crc::crc32c;
use crate::fields::{Get, Put};
use crate::index::{Footer, tail_length};
use crate::layout::PAGE_BYTES;
use crate::section::Damage;

/// Number of columns: the equal parts into which a flow index divides a segment. A chunk belongs to the column in which it starts.
pub const COLUMNS: u32 = u64::BITS;
/// A segment's flow index takes one part of it in so many at most.
pub const SHARE: u64 = 512;
/// What small segments' flow indexes may take nevertheless.
pub const LEAST_BYTES: u64 = 64 << 10;

/// Pages of the shortest flow index: its first page, and one of its table.
pub const PAGES_LEAST: u32 = 2;

const MAGIC: &[u8; 8] = b"LTKFLOWS";
/// The version of this layout, and of what is hashed how.
const VERSION: u16 = 1;
const CRC_AT: usize = PAGE_BYTES as usize - 4;

/// Bytes that a recording keeps free in each segment for its flow index: [`SHARE`], and in small segments up to [`LEAST_BYTES`], but
/// no more than a 64th.
pub const fn reserve(segment_bytes: u64) -> u64 {
    let (share, small) = (segment_bytes / SHARE, segment_bytes / 64);
    let small = if small < LEAST_BYTES { small } else { LEAST_BYTES };
    (if share > small { share } else { small }) / PAGE_BYTES * PAGE_BYTES
}

/// Where the flow index of a segment that is not full starts, in bytes from the start of the segment; it ends with the segment.
pub const fn open_start(segment_bytes: u64) -> u64 {
    segment_bytes - reserve(segment_bytes)
}

/// The column of a chunk that starts so many bytes behind the start of its segment.
pub fn column(offset: u64, segment_bytes: u64) -> u32 {
    let column = u128::from(offset) * u128::from(COLUMNS) / u128::from(segment_bytes.max(1));
    column.min(u128::from(COLUMNS - 1)) as u32
}

/// Where a segment's flow index starts, in bytes from the start of the segment, and how long it can be.
pub const fn room(footer: &Footer, segment_bytes: u64) -> (u64, u64) {
    let start = segment_bytes.saturating_sub(footer.section_bytes) + PAGE_BYTES;
    let end = segment_bytes.saturating_sub(tail_length(footer.entries as u64));
    (start, end.saturating_sub(start))
}

/// Bytes that the flow index of a segment may take, if there is room.
pub fn bytes_max(segment_bytes: u64) -> u64 {
    (segment_bytes / SHARE).max(LEAST_BYTES)
}

/// Pages that a flow index may take in a segment, its first one included; fewer than two hold nothing.
pub fn pages_max(footer: &Footer, segment_bytes: u64) -> u32 {
    let (_, room) = room(footer, segment_bytes);
    (room.min(bytes_max(segment_bytes)) / PAGE_BYTES) as u32
}

/// How many keys a flow index of so many pages can hold at most, its first page included.
pub const fn keys_max(pages: u32) -> usize {
    table::keys_max(pages.saturating_sub(1))
}

/// The kinds of keys that a flow index has, by its bytes: a bit each. 0 if they are too short.
pub fn kinds(bytes: &[u8]) -> u16 {
    let stored = bytes.get(10..12).and_then(|stored| stored.try_into().ok());
    stored.map_or(0, u16::from_le_bytes)
}

/// How a table is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Pages.
    pages: u32,
    /// Bits of a hash that tell the keys of a page apart.
    fingerprint_bits: u32,
    /// Parameter of the Rice code of distances between fingerprints.
    rice_bits: u32,
}

/// Which chunks a flow index is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The array.
    pub array: Uuid,
    /// The member.
    pub member: u16,
    /// Sequence numbers of the segment's first chunk, and of the last one that is covered: of a full segment the last there is.
    pub sequences: (u64, u64),
    /// Checksum of the index of the segment's chunks: this belongs to those chunks and no others. 0 if the segment was not full.
    pub entries_crc: u32,
    /// Bytes of a segment that was not full that are covered, from its start: more chunks may have followed, and lost ones may lie
    /// behind them. None of a full segment, of which all chunks are covered.
    pub open_bytes: Option<u64>,
}

impl Subject {
    /// Chunks of a segment that is not full yet, from its first one to the last that is covered, by their sequence numbers, which take
    /// so many bytes.
    pub const fn open(array: Uuid, member: u16, sequences: (u64, u64), bytes: u64) -> Self {
        Self { array, member, sequences, entries_crc: 0, open_bytes: Some(bytes) }
    }
}

impl From<&Footer> for Subject {
    fn from(footer: &Footer) -> Self {
        Self {
            array: footer.array,
            member: footer.member,
            sequences: (footer.first_sequence, footer.last_sequence),
            entries_crc: footer.entries_crc,
            open_bytes: None,
        }
    }
}

/// The first page of a flow index: what it is the index of, and how to read its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowIndex {
    /// What it is about.
    pub subject: Subject,
    /// Kinds of keys that were entered, a bit each. Of the others nothing is known.
    pub kinds: u16,
    /// The key of the hashes.
    pub hash_key: [u8; 16],
    /// Columns that may hold anything: there are packets that could not be taken apart.
    pub anything: u64,
    /// Columns that hold fragments of datagrams.
    pub fragments: u64,
    /// Keys in the table.
    pub keys: u32,
    /// Chunks that were not read for it: their columns may hold anything.
    pub unread: u32,
    shape: Shape,
    /// Checksum of the page. The table's pages belong to it and to no other.
    crc: u32,
}

/// What a flow index says beside its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// [`FlowIndex::kinds`].
    pub kinds: u16,
    /// [`FlowIndex::hash_key`].
    pub hash_key: [u8; 16],
    /// [`FlowIndex::anything`].
    pub anything: u64,
    /// [`FlowIndex::fragments`].
    pub fragments: u64,
    /// [`FlowIndex::unread`].
    pub unread: u32,
}

impl FlowIndex {
    /// The bytes of a flow index: these keys, each once, by their hashes, with the columns that hold each. None if they don't fit into
    /// `pages_max` pages.
    pub fn encode(
        subject: &Subject,
        facts: &Facts,
        keys: &[(u64, u64)],
        pages_max: u32,
    ) -> Option<Vec<u8>> {
        let (shape, table) = table::encode(keys, pages_max.checked_sub(1)?)?;
        let mut bytes = vec![0; PAGE_BYTES as usize];
        Put::new(&mut bytes)
            .raw(MAGIC)
            .u16(VERSION)
            .u16(facts.kinds)
            .u16(subject.member)
            .u16((shape.fingerprint_bits | shape.rice_bits << 8) as u16)
            .raw(subject.array.as_bytes())
            .u64(subject.sequences.0)
            .u64(subject.sequences.1)
            .u32(subject.entries_crc)
            .u32(shape.pages)
            .raw(&facts.hash_key)
            .u64(facts.anything)
            .u64(facts.fragments)
            .u32(keys.len() as u32)
            .u32(facts.unread)
            .u64(subject.open_bytes.unwrap_or(0));
        let crc = crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes.extend(table);
        for (number, page) in
            (0..).zip(bytes[PAGE_BYTES as usize..].chunks_exact_mut(PAGE_BYTES as usize))
        {
            let crc = page_crc(crc, number, page);
            page[..4].copy_from_slice(&crc.to_le_bytes());
        }
        Some(bytes)
    }

    /// Reads the first page of the flow index of the full segment whose index ends in `footer`.
    ///
    /// # Errors
    /// [`Damage`] if there is none, or another segment's or an earlier one's, or it can't be true.
    pub fn read(page: &[u8], footer: &Footer, segment_bytes: u64) -> Result<Self, Damage> {
        let (_, room) = room(footer, segment_bytes);
        let index = Self::parse(page, room)?;
        if index.subject == Subject::from(footer) { Ok(index) } else { Err(Damage::Elsewhere) }
    }

    /// Reads the first page of the flow index of a segment that was not full when it was made.
    ///
    /// # Errors
    /// As [`FlowIndex::read`].
    pub fn read_open(
        page: &[u8],
        array: Uuid,
        member: u16,
        first_sequence: u64,
        segment_bytes: u64,
    ) -> Result<Self, Damage> {
        let index = Self::parse(page, reserve(segment_bytes))?;
        let sequences = (first_sequence, index.subject.sequences.1);
        let bytes = index.subject.open_bytes.ok_or(Damage::Elsewhere)?;
        let expected = Subject::open(array, member, sequences, bytes);
        if index.subject == expected { Ok(index) } else { Err(Damage::Elsewhere) }
    }

    fn parse(page: &[u8], room: u64) -> Result<Self, Damage> {
        let page = page.get(..PAGE_BYTES as usize).ok_or(Damage::Short)?;
        if &page[..8] != MAGIC {
            return Err(Damage::NotOurs);
        }
        let crc = crc32c(&page[..CRC_AT]);
        if crc.to_le_bytes() != page[CRC_AT..] {
            return Err(Damage::HeaderChecksum);
        }
        let mut get = Get::new(&page[8..]);
        let major = get.u16();
        if major > VERSION {
            return Err(Damage::Newer { major });
        }
        let (kinds, member, widths) = (get.u16(), get.u16(), get.u16());
        let array = Uuid::from_bytes(get.raw());
        let sequences = (get.u64(), get.u64());
        let (entries_crc, pages, hash_key) = (get.u32(), get.u32(), get.raw());
        let (anything, fragments, keys) = (get.u64(), get.u64(), get.u32());
        let (unread, open_bytes) = (get.u32(), Some(get.u64()).filter(|&bytes| bytes > 0));
        let shape = Shape {
            pages,
            fingerprint_bits: u32::from(widths & 0xff),
            rice_bits: u32::from(widths >> 8),
        };
        if pages == 0 || (u64::from(pages) + 1) * PAGE_BYTES > room {
            return Err(Damage::Length);
        }
        if shape.fingerprint_bits > 32 || shape.rice_bits > 24 {
            return Err(Damage::Contradiction);
        }
        Ok(Self {
            subject: Subject { array, member, sequences, entries_crc, open_bytes },
            kinds,
            hash_key,
            anything,
            fragments,
            keys,
            unread,
            shape,
            crc,
        })
    }

    /// Length in bytes, the first page included.
    pub fn bytes(&self) -> u64 {
        (u64::from(self.shape.pages) + 1) * PAGE_BYTES
    }

    /// Which page of the table says where a key with this hash may lie, from 0; it starts so many pages behind the first page.
    pub const fn page(&self, hash: u64) -> u32 {
        self.shape.page(hash)
    }

    /// The columns that may hold a key with this hash: a bit each. None, which means any, if the page is not that page, whole.
    pub fn columns(&self, page: &[u8], hash: u64) -> Option<u64> {
        let number = self.page(hash);
        let stored = page.get(..4)?;
        if page.len() < PAGE_BYTES as usize
            || page_crc(self.crc, number, &page[..PAGE_BYTES as usize]).to_le_bytes() != *stored
        {
            return None;
        }
        table::find(&self.shape, page, hash).map(|columns| columns | self.anything)
    }
}

/// The checksum of a page of the table, bound to the first page and the page's number: one of an earlier index in the same place
/// doesn't pass.
fn page_crc(first: u32, number: u32, page: &[u8]) -> u32 {
    let mut running = crate::crc::Running::new();
    running.update(&first.to_le_bytes());
    running.update(&number.to_le_bytes());
    running.update(&page[4..]);
    running.value()
}

#[cfg(test)]
mod tests {
    use base::Random;
    use proptest::prelude::*;

    use super::*;

    const SEGMENT: u64 = 4 << 20;

    fn footer(entries: u32) -> Footer {
        Footer {
            array: Uuid::from_u128(7),
            entries,
            entries_crc: 77,
            first_sequence: 5,
            last_sequence: 68,
            first_ns: 1,
            last_ns: 2,
            section_bytes: 512 << 10,
            member: 3,
        }
    }

    const FACTS: Facts =
        Facts { kinds: 5, hash_key: [9; 16], anything: 0, fragments: 1 << 9, unread: 2 };

    fn random_keys(seed: u64, count: usize, columns: u64) -> Vec<(u64, u64)> {
        let mut random = Random::new(seed);
        let mut keys = Vec::new();
        for _ in 0..count {
            let held = (0..=random.below(columns)).fold(0, |held, _| held | 1 << random.below(64));
            keys.push((random.bits(), held));
        }
        keys
    }

    fn find(bytes: &[u8], hash: u64) -> Option<u64> {
        let index = FlowIndex::read(bytes, &footer(64), SEGMENT).unwrap();
        let at = PAGE_BYTES as usize * (1 + index.page(hash) as usize);
        index.columns(&bytes[at..at + PAGE_BYTES as usize], hash)
    }

    #[test]
    fn every_key_is_found_in_its_columns_and_few_others_are_found() {
        for (seed, (count, columns)) in
            (1..).zip([(0, 1), (1, 1), (900, 1), (20_000, 3), (3_000, 64)])
        {
            let keys = random_keys(seed, count, columns);
            let bytes = FlowIndex::encode(&Subject::from(&footer(64)), &FACTS, &keys, 100).unwrap();
            for &(hash, held) in &keys {
                let found = find(&bytes, hash).unwrap();
                assert_eq!(found & held, held, "key {hash:x} of {count}");
            }
            let others = random_keys(seed + 100, 20_000, 1);
            let wrong = others.iter().filter(|(hash, _)| find(&bytes, *hash) != Some(0)).count();
            // One in 256 at most: 78 expected, and ten standard deviations more are 166.
            assert!(wrong < 166, "{wrong} of 20000 with {count} keys");
        }
    }

    #[test]
    fn a_key_of_one_column_takes_about_two_bytes() {
        let keys = random_keys(3, 50_000, 1);
        let bytes = FlowIndex::encode(&Subject::from(&footer(64)), &FACTS, &keys, 1000).unwrap();
        let bits = bytes.len() as f64 * 8.0 / 50_000.0;
        assert!((15.0..20.0).contains(&bits), "{bits} bits a key");
        assert_eq!(
            FlowIndex::encode(&Subject::from(&footer(64)), &FACTS, &keys, 20),
            None,
            "too many for 20 pages"
        );
    }

    #[test]
    fn what_is_torn_stale_or_elsewhere_says_nothing() {
        let keys = random_keys(4, 3000, 2);
        let bytes = FlowIndex::encode(&Subject::from(&footer(64)), &FACTS, &keys, 100).unwrap();
        let read = |bytes: &[u8], footer: &Footer| FlowIndex::read(bytes, footer, SEGMENT);
        let other = Footer { entries_crc: 78, ..footer(64) };
        assert_eq!(read(&bytes, &other), Err(Damage::Elsewhere));
        let later = Footer { first_sequence: 6, ..footer(64) };
        assert_eq!(read(&bytes, &later), Err(Damage::Elsewhere));
        let mut torn = bytes.clone();
        torn[100] ^= 1;
        assert_eq!(read(&torn, &footer(64)), Err(Damage::HeaderChecksum));
        assert_eq!(read(&[0; 4096], &footer(64)), Err(Damage::NotOurs));
        assert_eq!(read(&bytes[..4000], &footer(64)), Err(Damage::Short));
        // A page of the same segment's index under another hash key.
        let again = Facts { hash_key: [8; 16], ..FACTS };
        let again = FlowIndex::encode(&Subject::from(&footer(64)), &again, &keys, 100).unwrap();
        assert_eq!(again.len(), bytes.len());
        let mixed = [&again[..PAGE_BYTES as usize], &bytes[PAGE_BYTES as usize..]].concat();
        assert!(keys.iter().all(|(hash, _)| find(&mixed, *hash).is_none()));
        // Too long for the room that is left.
        let tight = Footer { section_bytes: 60 << 10, ..footer(64) };
        assert_eq!(read(&bytes, &tight).is_err(), bytes.len() as u64 > room(&tight, SEGMENT).1);
    }

    #[test]
    fn the_index_of_a_segment_that_is_not_full_counts_for_that_use_of_the_segment_alone() {
        let (array, member) = (Uuid::from_u128(7), 3);
        let keys = random_keys(5, 500, 2);
        let open = Subject::open(array, member, (5, 40), 1 << 20);
        let bytes = FlowIndex::encode(&open, &FACTS, &keys, 16).unwrap();
        let read = |array, member, first| {
            FlowIndex::read_open(&bytes, array, member, first, SEGMENT).map(|index| index.subject)
        };
        assert_eq!(read(array, member, 5), Ok(open));
        assert_eq!(read(array, member, 6), Err(Damage::Elsewhere));
        assert_eq!(read(array, 2, 5), Err(Damage::Elsewhere));
        assert_eq!(read(Uuid::from_u128(8), member, 5), Err(Damage::Elsewhere));
        // Neither counts in the place of the other.
        assert_eq!(FlowIndex::read(&bytes, &footer(64), SEGMENT), Err(Damage::Elsewhere));
        let full = FlowIndex::encode(&Subject::from(&footer(64)), &FACTS, &keys, 16).unwrap();
        let found = FlowIndex::read_open(&full, array, member, 5, SEGMENT);
        assert_eq!(found, Err(Damage::Elsewhere));
        // Longer than what is kept free.
        let many = FlowIndex::encode(&open, &FACTS, &random_keys(6, 60_000, 2), 1000).unwrap();
        let found = FlowIndex::read_open(&many, array, member, 5, SEGMENT);
        assert_eq!(found, Err(Damage::Length));
    }

    #[test]
    fn a_five_hundredth_of_a_segment_is_kept_free_and_more_of_small_ones() {
        assert_eq!(reserve(256 << 20), 512 << 10);
        assert_eq!(reserve(16 << 20), 64 << 10);
        assert_eq!(reserve(1 << 20), 16 << 10);
        assert_eq!(reserve(256 << 10), 4 << 10);
        assert_eq!(open_start(256 << 20), (256 << 20) - (512 << 10));
    }

    #[test]
    fn the_room_of_a_full_segment_lies_between_its_index_and_the_entries() {
        let index = footer(64);
        let behind_index = SEGMENT - index.section_bytes + PAGE_BYTES;
        let entries = tail_length(64);
        assert_eq!(room(&index, SEGMENT), (behind_index, SEGMENT - entries - behind_index));
        // The index fills its section.
        let tight = Footer { section_bytes: PAGE_BYTES + entries, ..index };
        assert_eq!(room(&tight, SEGMENT), (SEGMENT - entries, 0));
        assert_eq!(pages_max(&tight, SEGMENT), 0);
    }

    #[test]
    fn a_flow_index_takes_a_five_hundredth_of_a_segment_or_64_kib_if_there_is_room() {
        assert_eq!(bytes_max(256 << 20), 512 << 10);
        assert_eq!(bytes_max(1 << 20), 64 << 10);
        assert_eq!(pages_max(&footer(64), SEGMENT), 16);
        let pages = |pages: u64| Footer {
            section_bytes: PAGE_BYTES + tail_length(64) + pages * PAGE_BYTES,
            ..footer(64)
        };
        assert_eq!([1, 15, 17].map(|n| pages_max(&pages(n), SEGMENT)), [1, 15, 16]);
    }

    #[test]
    fn a_page_of_4_kib_holds_2044_keys_and_the_first_page_none() {
        assert_eq!([0, 1, 2, 3].map(keys_max), [0, 0, 2044, 4088]);
    }

    #[test]
    fn kinds_are_known_by_the_first_bytes() {
        let facts = Facts { kinds: 0x0102, ..FACTS };
        let bytes = FlowIndex::encode(&Subject::from(&footer(64)), &facts, &[], 2).unwrap();
        assert_eq!(kinds(&bytes), 0x0102);
        assert_eq!(kinds(&bytes[..12]), 0x0102);
        assert_eq!(kinds(&bytes[..11]), 0);
    }

    #[test]
    fn columns_that_may_hold_anything_may_hold_every_key() {
        let facts = Facts { anything: 0b110, ..FACTS };
        let keys = [(1 << 40, 0b011)];
        let bytes = FlowIndex::encode(&Subject::from(&footer(64)), &facts, &keys, 2).unwrap();
        assert_eq!(find(&bytes, 1 << 40), Some(0b111));
        assert_eq!(find(&bytes, 1), Some(0b110));
    }

    #[test]
    fn an_index_is_as_long_as_it_says_and_fits_in_exactly_that_room() {
        let keys = random_keys(7, 3000, 1);
        let bytes = FlowIndex::encode(&Subject::from(&footer(64)), &FACTS, &keys, 100).unwrap();
        let within = |room: u64| {
            let section_bytes = PAGE_BYTES + tail_length(64) + room;
            let footer = Footer { section_bytes, ..footer(64) };
            FlowIndex::read(&bytes, &footer, SEGMENT)
        };
        let length = bytes.len() as u64;
        assert_eq!(within(length).unwrap().bytes(), length);
        assert_eq!(within(length - PAGE_BYTES), Err(Damage::Length));
        assert_eq!(within(0), Err(Damage::Length));
    }

    #[test]
    fn a_page_that_is_cut_short_may_hold_any_key() {
        let bytes = FlowIndex::encode(&Subject::from(&footer(64)), &FACTS, &[], 2).unwrap();
        let index = FlowIndex::read(&bytes, &footer(64), SEGMENT).unwrap();
        let page = &bytes[PAGE_BYTES as usize..];
        assert_eq!(index.columns(page, 1), Some(0));
        for length in [0, 3, 4, 4000, page.len() - 1] {
            assert_eq!(index.columns(&page[..length], 1), None, "{length} bytes");
        }
    }

    #[test]
    fn a_first_page_that_cannot_be_is_damaged_whatever_its_checksum() {
        let bytes = FlowIndex::encode(&Subject::from(&footer(64)), &FACTS, &[], 2).unwrap();
        let with = |at: usize, value: u8| {
            let mut forged = bytes.clone();
            forged[at] = value;
            let crc = crc32c(&forged[..CRC_AT]);
            forged[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
            FlowIndex::read(&forged, &footer(64), SEGMENT).err()
        };
        let (version, fingerprint_bits, rice_bits, pages) = (8, 14, 15, 52);
        assert_eq!(with(version, 1), None);
        assert_eq!(with(version, 2), Some(Damage::Newer { major: 2 }));
        assert_eq!(with(fingerprint_bits, 32), None);
        assert_eq!(with(fingerprint_bits, 33), Some(Damage::Contradiction));
        assert_eq!(with(rice_bits, 24), None);
        assert_eq!(with(rice_bits, 25), Some(Damage::Contradiction));
        assert_eq!(with(pages, 0), Some(Damage::Length));
    }

    #[test]
    fn columns_divide_a_segment_evenly() {
        let segment = 256 << 20;
        assert_eq!(
            [0, segment / 64 - 1, segment / 64, segment - 1].map(|at| column(at, segment)),
            [0, 0, 1, 63]
        );
        assert_eq!(column(u64::MAX, 1), 63 & column(u64::MAX, 1));
    }

    proptest! {
        #[test]
        fn damaged_pages_are_never_trusted(at in 0..4096_usize, flip in 1..=255_u8, seed in any::<u64>()) {
            let keys = random_keys(seed, 300, 3);
            let mut bytes = FlowIndex::encode(&Subject::from(&footer(64)), &FACTS, &keys, 100).unwrap();
            let index = FlowIndex::read(&bytes, &footer(64), SEGMENT).unwrap();
            let start = PAGE_BYTES as usize;
            bytes[start + at] ^= flip;
            let on_it = |(hash, _): &&(u64, u64)| index.page(*hash) == 0;
            for (hash, _) in keys.iter().filter(on_it) {
                prop_assert_eq!(index.columns(&bytes[start..2 * start], *hash), None);
            }
        }
    }
}
