//! Shapes of an index: hashes of keys with their columns, in bytes on the media. Each begins with a page of 4 KiB that describes
//! the rest. None but ours has checksums.

use std::collections::BTreeSet;

use fastbloom::{BloomFilter, optimal_hashes};
use format::PAGE_BYTES;
use format::flow_index::FlowIndex;
use xorf::{BinaryFuse8, Filter};

use crate::keys::Keys;

const PAGE: usize = PAGE_BYTES as usize;
/// Bytes of a hash or a set of columns.
const NUMBER: usize = 8;

/// Numbers of pages, the first page left out.
pub type Pages = BTreeSet<usize>;

/// An index that can be asked.
pub trait Shape {
    /// Length, the first page included.
    fn bytes(&self) -> usize;
    /// The columns that may hold a key with this hash.
    fn columns(&self, hash: u64) -> u64;
    /// Notes the pages that tell these columns, if all are asked for at once.
    fn note_pages(&self, hash: u64, pages: &mut Pages);
}

/// Ours.
pub struct Hashed {
    /// The first page.
    pub first: FlowIndex,
    /// All of it.
    pub bytes: Vec<u8>,
}

impl Shape for Hashed {
    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn columns(&self, hash: u64) -> u64 {
        let at = (1 + self.first.page(hash) as usize) * PAGE;
        self.first.columns(&self.bytes[at..at + PAGE], hash).expect("the page is whole")
    }

    fn note_pages(&self, hash: u64, pages: &mut Pages) {
        pages.insert(self.first.page(hash) as usize);
    }
}

/// The columns whose filters accept.
fn accepted<F>(filters: &[F], accepts: impl Fn(&F) -> bool) -> u64 {
    filters.iter().rev().fold(0, |columns, filter| columns << 1 | u64::from(accepts(filter)))
}

/// A Bloom filter for each column, one behind the other.
pub struct Blooms(Vec<BloomFilter>);

impl Blooms {
    /// In so many bytes, of which each column has its share of the keys.
    pub fn sized(by_column: &[Vec<u64>], bytes: usize) -> Self {
        let pairs: usize = by_column.iter().map(Vec::len).sum();
        let sized = |hashes: &Vec<u64>| {
            let bits = ((bytes - PAGE) as u128 * 8 * hashes.len() as u128 / pairs as u128) as usize;
            let bits = (bits / 64 * 64).max(64);
            BloomFilter::with_num_bits(bits).hashes(optimal_hashes(bits, hashes.len()))
        };
        Self::fill(by_column, sized)
    }

    /// As long as a share of false positives asks for.
    pub fn of_share(by_column: &[Vec<u64>], share: f64) -> Self {
        Self::fill(by_column, |hashes| {
            BloomFilter::with_false_pos(share).expected_items(hashes.len())
        })
    }

    fn fill(by_column: &[Vec<u64>], empty: impl Fn(&Vec<u64>) -> BloomFilter) -> Self {
        let filter = |hashes: &Vec<u64>| {
            let mut filter = empty(hashes);
            for &hash in hashes {
                filter.insert_hash(hash);
            }
            filter
        };
        Self(by_column.iter().map(filter).collect())
    }
}

impl Shape for Blooms {
    fn bytes(&self) -> usize {
        PAGE + self.0.iter().map(|filter| filter.num_bits() / 8).sum::<usize>()
    }

    fn columns(&self, hash: u64) -> u64 {
        accepted(&self.0, |filter| filter.contains_hash(hash))
    }

    fn note_pages(&self, hash: u64, pages: &mut Pages) {
        let mut start = 0;
        for filter in &self.0 {
            // The bits of a filter that has this key alone are the bits to look at.
            let mut alone =
                BloomFilter::with_num_bits(filter.num_bits()).hashes(filter.num_hashes());
            alone.insert_hash(hash);
            let words = alone.as_slice().iter().enumerate().filter(|(_, word)| **word != 0);
            pages.extend(words.map(|(at, _)| (start + at * NUMBER) / PAGE));
            start += filter.num_bits() / 8;
        }
    }
}

/// A binary fuse filter with fingerprints of 8 bits for each column, one behind the other.
pub struct Fuses(Vec<BinaryFuse8>);

impl Fuses {
    /// Of these keys.
    pub fn of(by_column: &[Vec<u64>]) -> Self {
        let filter = |hashes: &Vec<u64>| BinaryFuse8::try_from(hashes).expect("keys differ");
        Self(by_column.iter().map(filter).collect())
    }
}

impl Shape for Fuses {
    fn bytes(&self) -> usize {
        PAGE + self.0.iter().map(Filter::len).sum::<usize>()
    }

    fn columns(&self, hash: u64) -> u64 {
        accepted(&self.0, |filter| filter.contains(&hash))
    }

    fn note_pages(&self, hash: u64, pages: &mut Pages) {
        let mut start = 0;
        for filter in &self.0 {
            let (mixed, places) = fuse_places(filter, hash);
            let sum = places.iter().fold(0, |sum, &place| sum ^ filter.fingerprints[place]);
            let accepts = sum == (mixed ^ (mixed >> 32)) as u8;
            assert_eq!(accepts, filter.contains(&hash), "the filter looks elsewhere");
            pages.extend(places.map(|place| (start + place) / PAGE));
            start += filter.len();
        }
    }
}

/// The finalizer of MurmurHash3 (Appleby): every bit of the result depends on every bit of the number.
const fn mix(mut number: u64) -> u64 {
    number = (number ^ (number >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    number = (number ^ (number >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ (number >> 33)
}

/// The hash that a binary fuse filter makes of a hash, and the places of the three fingerprints that it looks at.
fn fuse_places(filter: &BinaryFuse8, hash: u64) -> (u64, [usize; 3]) {
    let of = &filter.descriptor;
    let mixed = mix(hash.wrapping_add(of.seed));
    let first = ((u128::from(mixed) * u128::from(of.segment_count_length)) >> 64) as u32;
    let second = (first + of.segment_length) ^ ((mixed >> 18) as u32 & of.segment_length_mask);
    let third = (first + 2 * of.segment_length) ^ (mixed as u32 & of.segment_length_mask);
    (mixed, [first, second, third].map(|place| place as usize))
}

/// Bloom filters of all columns, equally long and interleaved: a row of 64 bits says which columns have a bit set. All rows of a
/// key are on one page.
pub struct Sliced {
    rows: Vec<u64>,
    probes: u32,
}

/// Rows of a page.
const ROWS: usize = PAGE / NUMBER;
/// Bits of a row's number.
const ROW_BITS: u32 = ROWS.ilog2();
/// Rows that one hash can choose at most.
const PROBES_MAX: u32 = u64::BITS / ROW_BITS;

impl Sliced {
    /// In so many bytes, with no keys yet.
    pub fn empty(bytes: usize, pairs: u64) -> Self {
        let rows = vec![0; (bytes - PAGE) / PAGE * ROWS];
        let probes = optimal_hashes(rows.len() * 64, pairs as usize).min(PROBES_MAX);
        Self { rows, probes }
    }

    /// In so many bytes.
    pub fn of(keys: &Keys, pairs: u64, bytes: usize) -> Self {
        let mut filter = Self::empty(bytes, pairs);
        for &(hash, columns) in &keys.hashed {
            filter.insert(hash, columns);
        }
        filter
    }

    /// Adds a key.
    pub fn insert(&mut self, hash: u64, columns: u64) {
        let first = self.page(hash) * ROWS;
        for row in self.rows_of(hash) {
            self.rows[first + row] |= columns;
        }
    }

    fn page(&self, hash: u64) -> usize {
        ((u128::from(hash) * (self.rows.len() / ROWS) as u128) >> 64) as usize
    }

    fn rows_of(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        // The hash's high bits chose the page: all bits are mixed again.
        let mixed = mix(hash);
        (0..self.probes).map(move |probe| (mixed >> (probe * ROW_BITS)) as usize % ROWS)
    }
}

impl Shape for Sliced {
    fn bytes(&self) -> usize {
        PAGE + self.rows.len() * NUMBER
    }

    fn columns(&self, hash: u64) -> u64 {
        let first = self.page(hash) * ROWS;
        self.rows_of(hash).fold(u64::MAX, |columns, row| columns & self.rows[first + row])
    }

    fn note_pages(&self, hash: u64, pages: &mut Pages) {
        pages.insert(self.page(hash));
    }
}

/// Pairs of a hash and a set of columns, in order: a sorted run.
pub struct Sorted {
    pairs: Vec<(u64, u64)>,
    /// Whether the page of a hash is guessed from its value, and not found by halving.
    guesses: bool,
}

/// Pairs of a page.
const PAIRS: usize = PAGE / (2 * NUMBER);

impl Sorted {
    /// Of these keys.
    pub fn of(keys: &Keys, guesses: bool) -> Self {
        let mut pairs = keys.hashed.clone();
        pairs.sort_unstable();
        Self { pairs, guesses }
    }

    /// The page on which a hash is or would be. Calls `read` with each page on the way.
    fn find(&self, hash: u64, mut read: impl FnMut(usize)) -> usize {
        let count = self.pairs.len().div_ceil(PAIRS);
        let mut bounds = 0..count;
        let mut page = count / 2;
        if self.guesses {
            page = ((u128::from(hash) * count as u128) >> 64) as usize;
        }
        loop {
            read(page);
            let held = &self.pairs[page * PAIRS..self.pairs.len().min((page + 1) * PAIRS)];
            if hash < held[0].0 {
                bounds.end = page;
            } else if hash > held[held.len() - 1].0 {
                bounds.start = page + 1;
            } else {
                return page;
            }
            if bounds.is_empty() {
                return page;
            }
            page = match self.guesses {
                // Hashes are spread evenly: it is close by.
                true if hash < held[0].0 => page - 1,
                true => page + 1,
                false => bounds.start + bounds.len() / 2,
            };
        }
    }
}

impl Shape for Sorted {
    fn bytes(&self) -> usize {
        PAGE + self.pairs.len().div_ceil(PAIRS) * PAGE
    }

    fn columns(&self, hash: u64) -> u64 {
        let page = self.find(hash, |_| ());
        let held = &self.pairs[page * PAIRS..self.pairs.len().min((page + 1) * PAIRS)];
        let found = held.binary_search_by_key(&hash, |pair| pair.0);
        found.map_or(0, |at| held[at].1)
    }

    fn note_pages(&self, hash: u64, pages: &mut Pages) {
        self.find(hash, |page| {
            pages.insert(page);
        });
    }
}
