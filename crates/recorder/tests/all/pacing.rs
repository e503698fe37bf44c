//! Extraction keeps to the rate it is given, says how far it has come, and hands over runs of blocks with the interfaces
//! that they refer to.

use std::collections::BTreeSet;
use std::convert::Infallible;

use crate::recovery::{Packets, all, with_array};
use base::{Bank, DriveId, Duration, Rate, Timestamp};
use format::pcapng::{Block, Blocks, ReadPacket, read_packet};
use format::{ChunkRecord, Damage, Interface};
use longtake_recorder::TimeRange;
use longtake_recorder::extract::{ExtractError, Unreadable, Visitor, extract};
use longtake_recorder::takes::{Catalog, Entry};

/// Counts what comes, and takes whole runs if told to.
#[derive(Default)]
struct Counter {
    whole: bool,
    packets: u64,
    runs: u64,
    progress: Vec<(u64, u64)>,
}

impl Visitor for Counter {
    type Error = Infallible;
    fn packet(
        &mut self,
        _: &Interface,
        _: &ReadPacket<'_>,
        _: &Block<'_>,
        _: &ChunkRecord,
    ) -> Result<(), Infallible> {
        self.packets += 1;
        Ok(())
    }
    fn blocks(
        &mut self,
        interfaces: &[Interface],
        blocks: &[u8],
        record: &ChunkRecord,
    ) -> Result<bool, Infallible> {
        let mut packets = 0;
        let mut used = BTreeSet::new();
        for block in Blocks::new(blocks) {
            let packet = block.expect("a run of whole blocks");
            used.insert(read_packet(&packet).expect("packets alone").interface as usize);
            packets += 1;
        }
        assert_eq!(packets, record.summary.packets);
        assert!(
            used.iter().all(|&number| number < interfaces.len()),
            "their interfaces come along"
        );
        if self.whole {
            self.runs += 1;
            self.packets += u64::from(packets);
        }
        Ok(self.whole)
    }
    fn lost(&mut self, entry: &Entry, why: &Unreadable) -> Result<(), Infallible> {
        panic!("chunk {}: {why}", entry.record.sequence)
    }
    fn progress(&mut self, done: u64, of: u64) -> Result<(), Infallible> {
        self.progress.push((done, of));
        Ok(())
    }
}

/// Extracts a range at a limit; the time that it took, and the chunks that overlap the range.
fn paced(range: TimeRange, limit: Option<Rate>, whole: bool) -> (Counter, Duration, Vec<Entry>) {
    with_array(&mut all(), false, |reader, image| {
        let catalog = Catalog::load(reader, image, range).expect("drives that read");
        let mut counter = Counter { whole, ..Counter::default() };
        let start = reader.bank.now();
        extract(reader, image, &catalog.entries, range, limit, &mut counter).expect("none fails");
        let took = Duration::from_nanos(reader.bank.now().as_nanos() - start.as_nanos());
        let (from, to) = (range.from.as_nanos(), range.to.as_nanos());
        let inside = |e: &Entry| e.record.summary.overlaps(from, to);
        (counter, took, catalog.entries.into_iter().filter(inside).collect())
    })
    .expect("the array opens")
}

#[test]
fn a_limit_is_kept_to_the_byte() {
    for rate in [1e6, 50e6] {
        let (counter, took, entries) = paced(TimeRange::ALL, Some(Rate(rate)), false);
        let bytes: u64 = entries.iter().map(|e| u64::from(e.record.summary.length)).sum();
        let due = Rate(rate).time_for(bytes);
        // Each chunk's time is rounded to nanoseconds; the drives in memory take none.
        let rounding = Duration::from_micros(1);
        assert!(took + rounding >= due && took <= due + rounding, "{took:?} for {due:?}");
        assert!(counter.packets > 0);
    }
    assert_eq!(paced(TimeRange::ALL, None, false).1, Duration::ZERO, "without one, none waits");
}

#[test]
fn a_limit_covers_what_it_takes_to_make_a_chunk_again() {
    let (_, _, entries) = paced(TimeRange::ALL, None, false);
    let rate = Rate(50e6);
    // With its parity, at the price of its whole group, and without.
    for members in [4, 0] {
        let mut lost = 0;
        let took = with_array(&mut all(), false, |reader, image| {
            let catalog = Catalog::load(reader, image, TimeRange::ALL).expect("drives that read");
            let entry = catalog.entries[0];
            lost = entry.record.summary.length;
            let at = entry.place.offset + 5000;
            reader.bank.poke(DriveId(entry.place.member), at, &[0xAA; 64]);
            let mut packets = Packets::default();
            let mut entries = catalog.entries;
            entries.retain(|e| members > 0 || e.record.parity.is_none());
            let start = reader.bank.now();
            extract(reader, image, &entries, TimeRange::ALL, Some(rate), &mut packets)
                .expect("none fails");
            assert_eq!(packets.recovered.len() + packets.lost.len(), 1);
            assert_eq!(packets.lost.is_empty(), members > 0);
            reader.bank.now().since(start)
        })
        .expect("the array opens");
        let read: u64 = entries.iter().map(|e| u64::from(e.record.summary.length)).sum();
        let due = rate.time_for(read + u64::from(lost) * members);
        let rounding = Duration::from_micros(1);
        assert!(took + rounding >= due && took <= due + rounding, "{took:?} for {due:?}");
    }
}

#[test]
fn progress_counts_the_chunks_of_the_range() {
    let (_, _, entries) = paced(TimeRange::ALL, None, false);
    let middle = entries[entries.len() / 2].record.summary.first_ns;
    let half = TimeRange { from: Timestamp::from_nanos(middle), to: Timestamp::MAX };
    for range in [TimeRange::ALL, half] {
        let (counter, _, entries) = paced(range, None, false);
        let of = entries.len() as u64;
        assert_eq!(counter.progress, (1..=of).map(|done| (done, of)).collect::<Vec<_>>());
    }
}

#[test]
fn runs_of_blocks_come_with_their_interfaces_and_hold_what_single_packets_do() {
    let (single, _, entries) = paced(TimeRange::ALL, None, false);
    let (whole, _, _) = paced(TimeRange::ALL, None, true);
    assert_eq!(single.packets, whole.packets);
    let queues: BTreeSet<u16> = entries.iter().map(|e| e.record.summary.queue).collect();
    assert_eq!(whole.runs > 0, queues.len() == 1, "runs of one queue alone need no merging");
}

#[test]
fn a_chunk_that_reaches_over_the_span_does_not_go_whole() {
    let (_, _, entries) = paced(TimeRange::ALL, None, false);
    let times = |at: usize| {
        let s = &entries[at].record.summary;
        (s.first_ns, s.last_ns)
    };
    let last = entries.len() - 1;
    // Cut at its start, at its end, at both, and not at all.
    let spans = [
        (times(0).0 + 1, times(last).1),
        (times(0).0, times(last).1 - 1),
        (times(1).0 + 1, times(1).1 - 1),
        times(1),
    ];
    for (from, to) in spans {
        let range = TimeRange { from: Timestamp::from_nanos(from), to: Timestamp::from_nanos(to) };
        let (single, _, inside) = paced(range, None, false);
        let (whole, _, _) = paced(range, None, true);
        assert_eq!(single.packets, whole.packets);
        let uncut =
            |e: &&Entry| e.record.summary.first_ns >= from && e.record.summary.last_ns <= to;
        assert_eq!(whole.runs, inside.iter().filter(uncut).count() as u64);
    }
}

/// Ends the extraction at some call.
struct Refuses(u32);

impl Refuses {
    fn call(&mut self) -> Result<(), u32> {
        self.0 = self.0.checked_sub(1).ok_or(7u32)?;
        Ok(())
    }
}

impl Visitor for Refuses {
    type Error = u32;
    fn packet(
        &mut self,
        _: &Interface,
        _: &ReadPacket<'_>,
        _: &Block<'_>,
        _: &ChunkRecord,
    ) -> Result<(), u32> {
        self.call()
    }
    fn blocks(&mut self, _: &[Interface], _: &[u8], _: &ChunkRecord) -> Result<bool, u32> {
        self.call().map(|()| false)
    }
    fn lost(&mut self, _: &Entry, _: &Unreadable) -> Result<(), u32> {
        self.call()
    }
    fn progress(&mut self, _: u64, _: u64) -> Result<(), u32> {
        self.call()
    }
}

#[test]
fn a_visitor_ends_the_extraction_whenever_it_refuses() {
    for calls in 0..40 {
        let ended = with_array(&mut all(), false, |reader, image| {
            let catalog = Catalog::load(reader, image, TimeRange::ALL).expect("drives that read");
            let mut visitor = Refuses(calls);
            let entries = &catalog.entries;
            extract(reader, image, entries, TimeRange::ALL, None, &mut visitor)
        })
        .expect("the array opens");
        assert!(matches!(ended, Err(ExtractError::Visitor(7))), "after {calls} calls");
    }
}

#[test]
fn why_a_chunk_can_not_be_had_is_said_in_words() {
    let damaged = Unreadable::Damaged(Damage::BodyChecksum);
    assert_eq!(damaged.to_string(), Damage::BodyChecksum.to_string());
    assert_eq!(Unreadable::Overwritten.to_string(), "the ring has reused its place");
    let gone = base::DeviceError::Gone;
    assert_eq!(Unreadable::Device(gone.clone()).to_string(), gone.to_string());
}
