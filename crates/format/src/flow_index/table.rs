//! The table of a flow index: for the hash of each key, the columns that hold it (`docs/format.md`, section 11).

use super::bits::{BitReader, BitWriter};
use super::{COLUMNS, Shape};
use crate::fields::Put;
use crate::layout::PAGE_BYTES;

/// A page's checksum and its number of entries.
const PAGE_HEAD_BYTES: usize = 8;
/// Bits of a page that entries may take.
const PAGE_BITS: usize = (PAGE_BYTES as usize - PAGE_HEAD_BYTES) * 8;
/// Bits of a fingerprint beyond those that tell a page's own keys apart: another key is taken for one of them once in 2^8 times.
const SPARE_BITS: u32 = 8;
/// Widest fingerprint: the other half of a hash chooses the page.
const FINGERPRINT_BITS_MAX: u32 = 32;
/// Bits of a column's number.
const COLUMN_BITS: u32 = COLUMNS.ilog2();
/// Longest list of columns: beyond it, a bit for each column is shorter.
const LIST_MAX: u32 = 18;
/// In the place of a list's length: a bit for each column follows.
const BITS: u32 = LIST_MAX + 1;
/// In the place of a list's length: any column.
const ANY: u32 = LIST_MAX + 2;

/// Bits of the distance between the fingerprints of two keys, in the mean.
const DISTANCE_BITS: usize = SPARE_BITS as usize + 1;
/// Bits of a key's columns if there is only one.
const ONE_COLUMN_BITS: usize = 1 + COLUMN_BITS as usize;

/// How many keys a table of so many pages can hold at most.
pub(super) const fn keys_max(pages: u32) -> usize {
    pages as usize * PAGE_BITS / (DISTANCE_BITS + ONE_COLUMN_BITS)
}

/// Pages of a table of these keys: their hashes, and the columns that hold each. None if they don't fit into `pages_max`.
///
/// The checksums are left for [`super::FlowIndex::encode`].
pub(super) fn encode(keys: &[(u64, u64)], pages_max: u32) -> Option<(Shape, Vec<u8>)> {
    if keys.len() > keys_max(pages_max) {
        return None;
    }
    let bits: usize = keys.iter().map(|&(_, columns)| columns_bits(columns)).sum();
    let bits = bits + keys.len() * DISTANCE_BITS;
    let mut pages = bits.div_ceil(PAGE_BITS).max(1) as u32;
    if pages > pages_max {
        return None;
    }
    let mut by_hash = keys.to_vec();
    by_hash.sort_unstable();
    while pages <= pages_max {
        let shape = Shape::of(pages, keys.len());
        if let Some(bytes) = fill(&by_hash, &shape) {
            return Some((shape, bytes));
        }
        if pages == pages_max {
            break;
        }
        pages = (pages + (pages / 32).max(1)).min(pages_max);
    }
    None
}

impl Shape {
    /// For so many keys on so many pages.
    fn of(pages: u32, keys: usize) -> Self {
        let each = (keys as u64).div_ceil(pages.into()).max(1);
        let own_bits = each.next_power_of_two().ilog2();
        let fingerprint_bits = (own_bits + SPARE_BITS).min(FINGERPRINT_BITS_MAX);
        // Fingerprints of a full page differ by 2^SPARE_BITS in the mean. The best parameter of a Rice code is one below that.
        Self { pages, fingerprint_bits, rice_bits: SPARE_BITS - 1 }
    }

    /// Which page a hash belongs to.
    pub(super) const fn page(&self, hash: u64) -> u32 {
        ((hash as u128 * self.pages as u128) >> 64) as u32
    }

    const fn fingerprint(&self, hash: u64) -> u64 {
        hash & ((1 << self.fingerprint_bits) - 1)
    }
}

/// The table's pages, of keys in the order of their hashes; None if one overflows.
fn fill(by_hash: &[(u64, u64)], shape: &Shape) -> Option<Vec<u8>> {
    let mut bytes = vec![0; shape.pages as usize * PAGE_BYTES as usize];
    let (mut entries, mut writer) = (Vec::new(), BitWriter::default());
    // Hashes that follow each other are on the same page or a later one.
    for keys in by_hash.chunk_by(|one, other| shape.page(one.0) == shape.page(other.0)) {
        entries.clear();
        entries.extend(keys.iter().map(|&(hash, columns)| (shape.fingerprint(hash), columns)));
        merge(&mut entries);
        writer.clear();
        let mut before = 0;
        for &(fingerprint, columns) in &entries {
            put(&mut writer, shape, fingerprint - before, columns);
            before = fingerprint;
        }
        if writer.bits() > PAGE_BITS {
            return None;
        }
        let at = shape.page(keys[0].0) as usize * PAGE_BYTES as usize;
        let page = &mut bytes[at..at + PAGE_BYTES as usize];
        Put::new(page).u32(0).u16(entries.len() as u16).u16(0).raw(writer.finish());
    }
    Some(bytes)
}

/// Sorts entries by their fingerprints. Keys that can't be told apart become one entry, with the columns of all.
fn merge(entries: &mut Vec<(u64, u64)>) {
    entries.sort_unstable();
    entries.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 |= next.1;
        }
        same
    });
}

fn put(writer: &mut BitWriter, shape: &Shape, distance: u64, columns: u64) {
    writer.unary(distance >> shape.rice_bits);
    writer.put(distance, shape.rice_bits);
    put_columns(writer, columns);
}

/// Parameter of the Rice code of the columns that lie between those of a list this long: what is best if they are spread evenly.
const fn gap_bits(count: u32) -> u32 {
    match count {
        1 => COLUMN_BITS,
        _ => (COLUMNS / count).ilog2() - 1,
    }
}

/// How many columns there are, in Elias's gamma code, and for each the number of columns between it and the one before.
fn put_columns(writer: &mut BitWriter, columns: u64) {
    let count = match columns.count_ones() {
        COLUMNS => ANY,
        count => count.min(BITS),
    };
    writer.unary(count.ilog2().into());
    writer.put(count.into(), count.ilog2());
    match count {
        ANY => return,
        BITS => return writer.put(columns, COLUMNS),
        _ => {}
    }
    let (mut rest, bits) = (columns, gap_bits(count));
    for _ in 0..count {
        let gap = u64::from(rest.trailing_zeros());
        if count > 1 {
            writer.unary(gap >> bits);
        }
        writer.put(gap, bits);
        rest = rest.checked_shr(gap as u32 + 1).unwrap_or(0);
    }
}

/// Bits that [`put_columns`] takes.
fn columns_bits(columns: u64) -> usize {
    let count = match columns.count_ones() {
        COLUMNS => ANY,
        count => count.min(BITS),
    };
    let length = 2 * count.ilog2() + 1;
    let list = match count {
        1 => COLUMN_BITS,
        ANY => 0,
        BITS => COLUMNS,
        _ => {
            let bits = gap_bits(count);
            let (mut rest, mut sum) = (columns, 0);
            for _ in 0..count {
                let gap = rest.trailing_zeros();
                sum += (gap >> bits) + 1 + bits;
                rest = rest.checked_shr(gap + 1).unwrap_or(0);
            }
            sum
        }
    };
    (length + list) as usize
}

fn get_columns(reader: &mut BitReader<'_>) -> Option<u64> {
    let width = reader.unary()? as u32;
    if width >= u32::BITS {
        return None;
    }
    let count = 1 << width | reader.get(width)? as u32;
    match count {
        0..=LIST_MAX => {}
        BITS => return reader.get(COLUMNS),
        _ => return Some(u64::MAX),
    }
    let (mut columns, mut next, bits) = (0, 0, gap_bits(count));
    for _ in 0..count {
        let long = if count > 1 { reader.unary()? } else { 0 };
        next += long << bits | reader.get(bits)?;
        columns |= 1_u64.checked_shl(u32::try_from(next).ok()?)?;
        next += 1;
    }
    Some(columns)
}

/// The columns that may hold a key with this hash, by its page; None if the page contradicts itself.
pub(super) fn find(shape: &Shape, page: &[u8], hash: u64) -> Option<u64> {
    let wanted = shape.fingerprint(hash);
    let entries = u16::from_le_bytes([*page.get(4)?, *page.get(5)?]);
    let mut reader = BitReader::new(page.get(PAGE_HEAD_BYTES..)?);
    let mut fingerprint = 0;
    for _ in 0..entries {
        let distance = reader.unary()? << shape.rice_bits | reader.get(shape.rice_bits)?;
        fingerprint += distance;
        let columns = get_columns(&mut reader)?;
        if fingerprint >= wanted {
            return Some(if fingerprint == wanted { columns } else { 0 });
        }
    }
    Some(0)
}

#[cfg(test)]
mod tests {
    use base::Random;
    use proptest::prelude::*;

    use super::*;

    /// The bits of a set of columns, in the order in which they are read.
    fn written(columns: u64) -> String {
        let mut writer = BitWriter::default();
        put_columns(&mut writer, columns);
        let bits = writer.bits();
        let bytes = writer.finish();
        (0..bits).map(|at| if bytes[at / 8] >> (at % 8) & 1 == 1 { '1' } else { '0' }).collect()
    }

    /// The columns that such bits stand for.
    fn read(bits: &str) -> Option<u64> {
        let mut writer = BitWriter::default();
        bits.bytes().for_each(|bit| writer.put((bit == b'1').into(), 1));
        get_columns(&mut BitReader::new(writer.finish()))
    }

    #[test]
    fn columns_are_coded_as_the_specification_says() {
        let first = |count: u32| u64::MAX >> (64 - count);
        for (columns, bits) in [
            // A count, and columns or the distances between them, each from its lowest bit on.
            (1 << 5, "1 101000"),
            (1 << 3 | 1 << 5, "010 11100 11000"),
            (1 | 1 << 2 | 1 << 63, "011 1000 1100 00000001001"),
            (first(18), &["000010100", &"1".repeat(18)].concat()),
            (first(19), &["000011100", &"1".repeat(19), &"0".repeat(45)].concat()),
            (u64::MAX, "000010010"),
        ] {
            let bits = bits.replace(' ', "");
            assert_eq!(written(columns), bits, "{columns:b}");
            assert_eq!(columns_bits(columns), bits.len(), "{columns:b}");
            assert_eq!(read(&bits), Some(columns), "{columns:b}");
        }
    }

    #[test]
    fn a_count_of_columns_that_cannot_be_says_nothing() {
        let count = |zeros: usize| ["0".repeat(zeros), "1".repeat(64)].concat();
        assert_eq!(read(&count(31)), Some(u64::MAX), "more columns than there are");
        assert_eq!(read(&count(32)), None);
        assert_eq!(read(&count(60)), None);
    }

    #[test]
    fn distances_take_fewer_bits_than_under_any_other_parameter() {
        let shape = Shape::of(1, 1 << 10);
        assert_eq!(shape.fingerprint_bits, 18, "256 for each key");
        let mut random = Random::new(1);
        let mut fingerprints: Vec<u64> = (0..1 << 10).map(|_| random.below(1 << 18)).collect();
        fingerprints.sort_unstable();
        let bits = |rice_bits| {
            let (mut writer, mut before) = (BitWriter::default(), 0);
            for &fingerprint in &fingerprints {
                put(&mut writer, &Shape { rice_bits, ..shape }, fingerprint - before, 1);
                before = fingerprint;
            }
            writer.bits()
        };
        assert_eq!((0..18).min_by_key(|&rice_bits| bits(rice_bits)), Some(shape.rice_bits));
    }

    #[test]
    fn a_page_is_filled_to_its_last_bit() {
        // An entry takes 16 bits: 9 for its distance, and 7 for its column.
        let full: Vec<(u64, u64)> = (1..=2044).map(|n| (200 * n, 1)).collect();
        assert_eq!(keys_max(1), full.len());
        let (shape, bytes) = encode(&full, 1).unwrap();
        assert_eq!((shape.pages, bytes.len() as u64), (1, PAGE_BYTES));
        for &(hash, columns) in &full {
            assert_eq!(find(&shape, &bytes, hash), Some(columns));
            assert_eq!(find(&shape, &bytes, hash + 1), Some(0));
        }
        // A distance of a bit more.
        let mut over = full;
        over.iter_mut().for_each(|(hash, _)| *hash += 100);
        assert_eq!(encode(&over, 1), None);
        assert!(encode(&over, 2).is_some());
    }

    proptest! {
        #[test]
        fn columns_take_as_many_bits_as_are_counted(columns in 1..=u64::MAX, others in any::<u64>()) {
            for columns in [columns, 1 << (columns % 64), columns & others | 1, columns | others] {
                let mut writer = BitWriter::default();
                put_columns(&mut writer, columns);
                prop_assert_eq!(writer.bits(), columns_bits(columns));
            }
        }
    }
}
