//! Other shapes of a flow index beside ours, on the same keys: their sizes, the time to build them, and what a search reads.
//! `cargo bench -p longtake-search --bench alternatives` prints a table for each kind of traffic.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads the clock and prints"
)]

#[path = "../segment/mod.rs"]
mod segment;

mod keys;
mod shapes;

use std::hint::black_box;
use std::time::Instant;

use format::flow_index::{COLUMNS, Facts, FlowIndex, SHARE, Subject, reserve};
use format::{LinkType, PAGE_BYTES};
use longtake_search::{
    FRAGMENTS_MAX, Fragments, KeyKind, Layers, SegmentKeys, community_id, dissect,
};
use source::synthetic::Sizes;
use uuid::Uuid;

use keys::{HASH_KEY, Keys, Search, for_each_key};
use longtake_search::IndexKey;
use segment::{SEGMENT, Segment};
use shapes::{Blooms, Fuses, Hashed, Pages, Shape, Sliced, Sorted};

/// Pages of an index that may be as long as it gets.
const PAGES_MAX: u32 = 1 << 16;
/// Runs of what is timed; the middle one counts.
const RUNS: usize = 5;

fn main() {
    // Tests build and start benchmarks as well.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    for (name, sizes) in [("IMIX", Sizes::Imix), ("1500 B", Sizes::Fixed(1500))] {
        let segment = Segment::of(sizes);
        let keys = Keys::of(&segment);
        println!(
            "\n{name}: {} packets, {} keys, {} pairs of a key and a column",
            segment.len(),
            keys.hashed.len(),
            keys.pairs()
        );
        compare(&segment, &keys);
    }
}

/// The middle of several times in nanoseconds, for each packet, and the last result.
fn timed<T>(packets: usize, mut run: impl FnMut() -> T) -> (f64, T) {
    let once = |run: &mut dyn FnMut() -> T| {
        let start = Instant::now();
        let made = black_box(run());
        (start.elapsed().as_nanos() as f64 / packets as f64, made)
    };
    let (mut times, mut made): (Vec<f64>, Vec<T>) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (time, result) = once(&mut run);
        times.push(time);
        made.clear();
        made.push(result);
    }
    times.sort_by(f64::total_cmp);
    (times[RUNS / 2], made.remove(0))
}

fn compare(segment: &Segment, keys: &Keys) {
    let packets = segment.len();
    let subject = Subject::open(Uuid::from_u128(1), 0, (1, 64), SEGMENT - reserve(SEGMENT));
    let index = ours(segment, keys, &subject);
    let (by_column, pairs) = (keys.by_column(), keys.pairs());
    let equal = index.bytes.len();
    let facts = Facts {
        kinds: index.first.kinds,
        hash_key: HASH_KEY,
        anything: index.first.anything,
        fragments: index.first.fragments,
        unread: 0,
    };
    let pages = (reserve(SEGMENT) / PAGE_BYTES) as u32;
    let table = Table::new(keys, index.first.anything);
    let (ns, bytes) = timed(packets, || first_that_fits(&subject, &facts, keys, pages));
    assert!(bytes == index.bytes, "what is timed is what a recording makes");
    table.row("hashed pages with sets of chunks (ours)", ns, &index);
    let exact =
        || FlowIndex::encode(&subject, &facts, &keys.hashed, PAGES_MAX).expect("it has room");
    let (ns, bytes) = timed(packets, exact);
    let first = read_first(&bytes);
    table.row("the same with room for exact sets", ns, &Hashed { first, bytes });
    let (ns, shape) = timed(packets, || Blooms::sized(&by_column, equal));
    table.row("Bloom filter per chunk, as long", ns, &shape);
    let (ns, shape) = timed(packets, || Blooms::of_share(&by_column, 0.01));
    table.row("Bloom filter per chunk, 1 % false", ns, &shape);
    let (ns, shape) = timed(packets, || Fuses::of(&by_column));
    table.row("binary fuse filter per chunk, 8 bits", ns, &shape);
    let (ns, shape) = timed(packets, || Sliced::of(keys, pairs, equal));
    table.row("Bloom filters interleaved, as long", ns, &shape);
    let (ns, shape) = timed(packets, || Sliced::of(keys, pairs, 2 * equal));
    table.row("Bloom filters interleaved, twice that", ns, &shape);
    let (ns, shape) = timed(packets, || Sorted::of(keys, false));
    table.row("sorted hashes, halving", ns, &shape);
    let (ns, shape) = timed(packets, || Sorted::of(keys, true));
    table.row("sorted hashes, guessing", ns, &shape);
    let (ns, _) = timed(packets, || as_they_arrive(segment, pairs, equal));
    println!(
        "packets to interleaved Bloom filters, without a table of keys: {ns:.0} ns per packet"
    );
    let positions = 4 * keys.occurrences as usize + 16 * keys.hashed.len();
    let share = percent(positions);
    println!(
        "sorted keys of 16 bytes with 4 bytes for each packet: {positions} bytes ({share:.2} %)"
    );
}

/// Our index as a recording makes it. Prints what making it takes, the sight of packets included.
fn ours(segment: &Segment, keys: &Keys, subject: &Subject) -> Hashed {
    let pages = (reserve(SEGMENT) / PAGE_BYTES) as u32;
    let mut gathered = SegmentKeys::default();
    let gather = |gathered: &mut SegmentKeys| {
        gathered.clear();
        for (column, packet) in segment.packets() {
            gathered.add(column, LinkType::ETHERNET, packet);
        }
    };
    let (gathering, ()) = timed(segment.len(), || gather(&mut gathered));
    let (whole, bytes) = timed(segment.len(), || {
        gather(&mut gathered);
        gathered.finish(subject, HASH_KEY, pages).expect("it has room")
    });
    println!(
        "packets to keys: {gathering:.0} ns per packet; to our index: {whole:.0} ns per packet"
    );
    let first = read_first(&bytes);
    let all = KeyKind::ALL.iter().fold(0, |kinds, kind| kinds | kind.bit());
    assert_eq!(first.kinds, all, "the shapes are compared with all kinds of keys");
    assert_eq!(first.keys as usize, keys.hashed.len(), "the shapes have the same keys");
    Hashed { first, bytes }
}

/// What a recording does with keys of all kinds: tries in how many columns a key may be before it counts as being in all of them.
fn first_that_fits(subject: &Subject, facts: &Facts, keys: &Keys, pages: u32) -> Vec<u8> {
    let attempt = |columns_max: &u32| {
        let widened = keys.hashed.iter().map(|&(hash, columns)| {
            (hash, if columns.count_ones() > *columns_max { u64::MAX } else { columns })
        });
        FlowIndex::encode(subject, facts, &widened.collect::<Vec<_>>(), pages)
    };
    [COLUMNS, 16, 8].iter().find_map(attempt).expect("it has room")
}

/// Interleaved Bloom filters that are filled packet by packet. Of packets of a flow that follow each other the first is entered.
fn as_they_arrive(segment: &Segment, pairs: u64, bytes: usize) -> Sliced {
    let mut filter = Sliced::empty(bytes, pairs);
    let (mut layers, mut fragments) = (Layers::new(), Fragments::new(FRAGMENTS_MAX));
    let mut before = None;
    for (column, packet) in segment.packets() {
        dissect(LinkType::ETHERNET, packet, &mut layers);
        fragments.resolve(&mut layers);
        let flow = layers.flow().map(|(flow, _)| (flow, column));
        if flow.is_some() && flow == before {
            continue;
        }
        before = flow;
        let (mut hashes, mut id) = (Vec::with_capacity(16), None);
        for_each_key(
            &layers,
            |key| hashes.push(key.hash(&HASH_KEY)),
            |flow| id = community_id(flow, 0),
        );
        hashes.extend(id.map(|id| IndexKey::Flow(id).hash(&HASH_KEY)));
        hashes.iter().for_each(|&hash| filter.insert(hash, 1 << column));
    }
    filter
}

fn read_first(bytes: &[u8]) -> FlowIndex {
    // An index of any length, as if its segment were long enough.
    let segment_bytes = bytes.len() as u64 * SHARE;
    FlowIndex::read_open(bytes, Uuid::from_u128(1), 0, 1, segment_bytes).expect("it was made now")
}

fn percent(bytes: usize) -> f64 {
    100.0 * bytes as f64 / SEGMENT as f64
}

/// The table that is printed.
struct Table {
    /// Columns that every shape would have to name.
    anything: u64,
    present: Vec<Search>,
    absent: Vec<Search>,
    expressions: Vec<Search>,
}

/// What one kind of searches read and found, in the mean of all.
struct Found {
    /// Pages that are read, the first page included.
    pages: f64,
    /// Columns that are named for nothing.
    false_columns: f64,
    /// Percent of the searches without such a column.
    exact: f64,
    ns: f64,
}

impl Table {
    fn new(keys: &Keys, anything: u64) -> Self {
        println!(
            "{:39} {:23} | {:31} | {:14} | {:12}",
            "", "", "keys that are there", "absent", "flows"
        );
        println!(
            "{:39} {:>8} {:>6} {:>7} | {:>6} {:>7} {:>7} {:>8} | {:>7} {:>6} | {:>6} {:>5}",
            "shape",
            "bytes",
            "%",
            "ns/pkt",
            "pages",
            "false",
            "exact %",
            "ns",
            "false",
            "exact %",
            "pages",
            "false"
        );
        let (present, absent, expressions) = (keys.present(), keys.absent(), keys.expressions());
        Self { anything, present, absent, expressions }
    }

    fn row(&self, name: &str, build_ns: f64, shape: &impl Shape) {
        let bytes = shape.bytes();
        let there = self.look_up(shape, &self.present);
        let absent = self.look_up(shape, &self.absent);
        let flows = self.look_up(shape, &self.expressions);
        print!("{name:39} {bytes:8} {:6.3} {build_ns:7.1} | ", percent(bytes));
        print!("{:6.1} {:7.3} {:7.2} ", there.pages, there.false_columns, there.exact);
        print!("{:8.0} | {:7.3} {:7.2} | ", there.ns, absent.false_columns, absent.exact);
        println!("{:6.1} {:.3}", flows.pages, flows.false_columns);
    }

    fn look_up(&self, shape: &impl Shape, searches: &[Search]) -> Found {
        let columns_of = |search: &Search| {
            let of_key = |key: &IndexKey| shape.columns(key.hash(&HASH_KEY));
            search.condition.columns(&of_key, 0)
        };
        let start = Instant::now();
        let found: Vec<u64> = searches.iter().map(columns_of).collect();
        let count = searches.len() as f64;
        let ns = start.elapsed().as_nanos() as f64 / count;
        let (mut pages, mut false_columns, mut exact) = (0, 0, 0);
        for (search, &found) in searches.iter().zip(&found) {
            assert_eq!(found & search.wanted, search.wanted, "{} is missed", search.condition);
            let wrong = (found & !search.wanted & !self.anything).count_ones();
            false_columns += wrong;
            exact += u32::from(wrong == 0);
        }
        for search in searches {
            let mut read = Pages::new();
            for key in search.condition.keys() {
                shape.note_pages(key.hash(&HASH_KEY), &mut read);
            }
            // Every shape's first page is read as well.
            pages += 1 + read.len();
        }
        Found {
            pages: pages as f64 / count,
            false_columns: f64::from(false_columns) / count,
            exact: 100.0 * f64::from(exact) / count,
            ns,
        }
    }
}
