//! What a reader finds where the index promised a chunk: the chunk, damage, or what a ring has written there since. A segment
//! that is being rewritten is looked at until its first chunk tells.

use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use base::{
    Bank, BankError, Command, Completion, DriveId, Duration, Full, Geometry, Instant, Operation,
};
use format::pcapng::{Block, ReadPacket};
use format::{ChunkRecord, Damage, Interface, Place};
use longtake_recorder::TimeRange;
use longtake_recorder::extract::{ExtractError, Provenance, Unreadable, Visitor, extract, verify};
use longtake_recorder::live;
use longtake_recorder::open::open;
use longtake_recorder::reader::Reader;
use longtake_recorder::takes::{Catalog, Entry};
use uuid::Uuid;

use crate::recovery::{FIRST, Packets, all, with_array};

/// A bank whose media change by themselves at a time, and that counts how many reads are under way at once.
pub struct Changing {
    pub bank: MemoryBank,
    changes: Vec<(Instant, Entry, Vec<u8>)>,
    under_way: usize,
    most: usize,
    /// Bytes that were asked for.
    pub bytes: u64,
    /// Where that was, in order.
    asked: Vec<(DriveId, u64)>,
}

impl Changing {
    pub fn new(bank: MemoryBank) -> Self {
        let (changes, asked) = (Vec::new(), Vec::new());
        Self { bank, changes, under_way: 0, most: 0, bytes: 0, asked }
    }

    /// From a time on, counted from now, these bytes lie where the chunk did.
    pub fn becomes(&mut self, after: Duration, entry: &Entry, bytes: Vec<u8>) {
        self.changes.push((self.bank.now() + after, *entry, bytes));
        self.change();
    }

    fn change(&mut self) {
        let now = self.bank.now();
        for (at, entry, bytes) in &self.changes {
            if *at <= now {
                let drive = DriveId(entry.place.member);
                self.bank.poke(drive, entry.place.offset, bytes);
            }
        }
        self.changes.retain(|(at, ..)| *at > now);
    }
}

impl Bank for Changing {
    fn drives(&self) -> &[Geometry] {
        self.bank.drives()
    }
    fn now(&self) -> Instant {
        self.bank.now()
    }
    fn submit(&mut self, command: Command) -> Result<(), Full> {
        self.bank.submit(command)?;
        let Operation::Read { length, offset, .. } = command.operation else {
            panic!("readers read")
        };
        assert_ne!(length, 0, "a read of no bytes");
        self.bytes += u64::from(length);
        self.asked.push((command.drive, offset));
        let geometry = &self.bank.drives()[command.drive.index()];
        assert_eq!(geometry.check(&command.operation, 64 << 10), Ok(()), "none is refused");
        self.under_way += 1;
        self.most = self.most.max(self.under_way);
        Ok(())
    }
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        let before = done.len();
        self.bank.wait(until, done)?;
        self.under_way -= done.len() - before;
        self.change();
        Ok(())
    }
}

/// The golden array with two parities, and so many buffers of 64 KiB.
pub fn array(buffers: u32) -> (Changing, MemoryBuffers) {
    let members = all();
    let memory = MemoryBuffers::new(buffers, 64 << 10);
    let there = || members.iter().flatten();
    let drive = |bytes: &Vec<u8>| MemoryDrive {
        capacity_bytes: bytes.len() as u64,
        ..MemoryDrive::default()
    };
    let mut bank = MemoryBank::new(there().map(drive).collect(), memory.clone());
    for (at, bytes) in (0u16..).zip(there()) {
        bank.poke(DriveId(at), 0, bytes);
    }
    (Changing::new(bank), memory)
}

/// A reader of it with all of its buffers.
pub fn reader_of<'a>(
    bank: &'a mut Changing,
    memory: &'a MemoryBuffers,
) -> Reader<'a, Changing, MemoryBuffers> {
    Reader { bank, memory, buffers: memory.buffer_ids().collect() }
}

/// The chunks of the array, in order of their numbers, which start at 0.
pub fn chunks() -> Vec<Entry> {
    let load = |reader: &mut Reader<'_, _, _>, image: &_| {
        Catalog::load(reader, image, TimeRange::ALL).expect("drives that read").entries
    };
    with_array(&mut all(), false, load).expect("the array opens")
}

/// The same chunk header, changed and stamped for a place.
pub fn header(entry: &Entry, place: Place, change: impl FnOnce(&mut ChunkRecord)) -> Vec<u8> {
    let mut record = entry.record;
    change(&mut record);
    let mut page = vec![0; 4096];
    record.stamp(&place, &mut page);
    page.truncate(format::section::HEADER_BYTES);
    page
}

/// Reads one chunk, of which the parity is not known, while the media change; how it was had, and how long that took.
fn read_while(
    buffers: u32,
    entry: &Entry,
    changes: Vec<(Duration, Entry, Vec<u8>)>,
) -> (Result<Provenance, Unreadable>, Duration) {
    let (mut bank, memory) = array(buffers);
    let names = memory.buffer_ids().collect();
    let image = {
        let (mut bank, memory) = array(4);
        open(&mut reader_of(&mut bank, &memory)).expect("the array opens")
    };
    let start = bank.now();
    bank.changes = changes.into_iter().map(|(at, e, bytes)| (start + at, e, bytes)).collect();
    bank.change();
    let mut found = Vec::new();
    let mut reader = Reader { bank: &mut bank, memory: &memory, buffers: names };
    verify(&mut reader, &image, &[*entry], |_, had| found.push(had)).expect("the bank works");
    assert_eq!(found.len(), 1, "each chunk is judged once");
    (found.remove(0), bank.now().since(start))
}

const NOW: Duration = Duration::ZERO;

#[test]
fn a_newer_chunk_in_the_same_place_means_that_the_ring_has_reused_it_and_anything_else_is_damage() {
    let entry = chunks()[8];
    let elsewhere = Place { member: entry.place.member + 1, ..entry.place };
    let newer = |record: &mut ChunkRecord| record.sequence += 1000;
    let older = |record: &mut ChunkRecord| record.sequence -= 1;
    let other = |record: &mut ChunkRecord| record.summary.sealed_ns += 1;
    let damaged = Err(Unreadable::Damaged(Damage::Elsewhere));
    let cases = [
        (header(&entry, entry.place, newer), Err(Unreadable::Overwritten)),
        (header(&entry, entry.place, older), damaged.clone()),
        (header(&entry, entry.place, other), damaged.clone()),
        (header(&entry, elsewhere, newer), damaged),
        (header(&entry, entry.place, |_| ()), Ok(Provenance::Read)),
    ];
    // With a single buffer nothing but the chunk's own place can be looked at.
    for buffers in [1, 4] {
        for (at, (page, expected)) in cases.iter().enumerate() {
            let (had, took) = read_while(buffers, &entry, vec![(NOW, entry, page.clone())]);
            // The segment's first chunk is as old as ever: there is nothing to wait for.
            assert_eq!((&had, took), (expected, NOW), "case {at} with {buffers} buffers");
        }
    }
}

#[test]
fn a_segment_that_is_being_rewritten_is_looked_at_until_its_first_chunk_tells() {
    let chunks = chunks();
    // The second chunk of the first member's second segment, and the third of another's first.
    for (entry, first) in [(chunks[15], chunks[14]), (chunks[9], chunks[2])] {
        let garbage = || vec![0xAA; 4096];
        let torn = vec![(NOW, entry, garbage()), (NOW, first, garbage())];
        let after = |ms, page| {
            let mut changes = torn.clone();
            changes.push((Duration::from_millis(ms), first, page));
            read_while(4, &entry, changes)
        };
        let stamped =
            |place, more| header(&first, place, |r| r.sequence = entry.record.sequence + more);
        let (had, took) = after(100, stamped(first.place, 1));
        assert_eq!(had, Err(Unreadable::Overwritten));
        assert!(took >= Duration::from_millis(100), "it was waited for");
        // An older one, or the chunk itself in another place than it was, tells of no reuse.
        for page in [header(&first, first.place, |_| ()), stamped(first.place, 0)] {
            let (had, took) = after(100, page);
            assert!(matches!(had, Err(Unreadable::Damaged(_))), "{had:?}");
            let soon = Duration::from_millis(100)..Duration::from_millis(120);
            assert!(soon.contains(&took), "it is known then: {took:?}");
        }
        // What was put there from another place says nothing, and the wait has an end.
        let place = first.place;
        let others = [
            Place { array: Uuid::from_u128(5), ..place },
            Place { member: place.member ^ 1, ..place },
            Place { offset: place.offset + 4096, ..place },
        ];
        for place in others {
            let (had, took) = after(0, stamped(place, 1));
            assert!(matches!(had, Err(Unreadable::Damaged(_))), "{had:?}");
            assert_eq!(took, Duration::from_millis(500), "fifty looks, 10 ms apart");
        }
    }
}

#[test]
fn damage_in_a_segment_that_nobody_rewrites_is_reported_at_once() {
    let chunks = chunks();
    // Also in the first chunk of its segment, which is as new as itself.
    for entry in [chunks[0], chunks[8], chunks[14]] {
        let page =
            Entry { place: Place { offset: entry.place.offset + 4096, ..entry.place }, ..entry };
        let (had, took) = read_while(4, &entry, vec![(NOW, page, vec![0xAA; 4096])]);
        assert_eq!((had, took), (Err(Unreadable::Damaged(Damage::BodyChecksum)), NOW));
    }
}

/// Reads all packets, with the header of a chunk replaced once the index is read.
fn read_with(entries: impl Fn(&mut Vec<Entry>), page: Option<(Entry, Vec<u8>)>) -> Packets {
    let read = |reader: &mut Reader<'_, MemoryBank, MemoryBuffers>, image: &_| {
        let catalog = Catalog::load(reader, image, TimeRange::ALL).expect("drives that read");
        if let Some((entry, bytes)) = page {
            reader.bank.poke(DriveId(entry.place.member), entry.place.offset, &bytes);
        }
        let (mut packets, mut listed) = (Packets::default(), catalog.entries);
        entries(&mut listed);
        extract(reader, image, &listed, TimeRange::ALL, None, &mut packets).expect("none fails");
        packets
    };
    with_array(&mut all(), false, read).expect("the array opens")
}

#[test]
fn what_the_ring_has_overwritten_since_comes_back_as_long_as_its_group_has_parity() {
    let whole = read_with(|_| (), None);
    for at in [0, 4, 8, 12] {
        let entry = chunks()[at];
        let page = header(&entry, entry.place, |record| record.sequence += 1000);
        let found = read_with(|_| (), Some((entry, page)));
        assert_eq!(found.recovered, [at as u64]);
        assert_eq!(found.packets, whole.packets);
    }
}

#[test]
fn parity_does_not_give_back_another_chunk_than_the_one_that_was_listed() {
    let entry = chunks()[0];
    let body = Place { offset: entry.place.offset + 4096, ..entry.place };
    let torn = || Some((Entry { place: body, ..entry }, vec![0xAA; 64]));
    assert_eq!(read_with(|_| (), torn()).recovered, [0]);
    let found = read_with(|entries| entries[0].record.summary.sealed_ns += 1, torn());
    assert_eq!((found.lost, found.recovered), (vec![0], vec![]));
}

#[test]
fn what_the_ring_has_overwritten_and_nothing_gives_back_is_reported_as_lost() {
    let entry = chunks()[4];
    let page = header(&entry, entry.place, |record| record.sequence += 1000);
    let without_parity = |entries: &mut Vec<Entry>| entries.retain(|e| e.record.parity.is_none());
    let found = read_with(without_parity, Some((entry, page)));
    assert_eq!((found.lost, found.recovered), (vec![4], vec![]));
}

#[test]
fn a_chunk_that_arrives_between_two_looks_is_not_called_recovered() {
    // Its header, and with it what lies behind it in a segment without an index, is torn at first.
    let chunk = chunks()[7];
    let (mut bank, memory) = array(4);
    let whole = bank.bank.peek(DriveId(chunk.place.member), chunk.place.offset, 4096);
    let at = |ms| Instant::START + Duration::from_millis(ms);
    bank.changes = vec![(at(0), chunk, vec![0xAA; 4096]), (at(20), chunk, whole)];
    bank.change();
    let mut reader = reader_of(&mut bank, &memory);
    let mut image = open(&mut reader).expect("the array opens");
    let first = Catalog::load(&mut reader, &image, TimeRange::ALL).expect("drives that read");
    assert_eq!(first.recovered, [FIRST + 7].into());
    let looked = live::catalog(&mut reader, &mut image, false, TimeRange::ALL, |_| None);
    let looked = looked.expect("drives that read");
    assert_eq!(looked.recovered, [].into());
    // The take has ended meanwhile: it is listed whole.
    assert_eq!(looked.entries, chunks());
}

#[test]
fn an_extraction_that_ends_early_leaves_no_read_under_way() {
    struct Enough;
    impl Visitor for Enough {
        type Error = ();
        fn packet(
            &mut self,
            _: &Interface,
            _: &ReadPacket<'_>,
            _: &Block<'_>,
            _: &ChunkRecord,
        ) -> Result<(), ()> {
            Err(())
        }
        fn blocks(&mut self, _: &[Interface], _: &[u8], _: &ChunkRecord) -> Result<bool, ()> {
            Ok(false)
        }
        fn lost(&mut self, _: &Entry, why: &Unreadable) -> Result<(), ()> {
            panic!("{why}")
        }
        fn progress(&mut self, _: u64, _: u64) -> Result<(), ()> {
            Ok(())
        }
    }
    let (mut bank, memory) = array(10);
    let mut reader = reader_of(&mut bank, &memory);
    let image = open(&mut reader).expect("the array opens");
    let ended = extract(&mut reader, &image, &chunks(), TimeRange::ALL, None, &mut Enough);
    assert!(matches!(ended, Err(ExtractError::Visitor(()))));
    // Whoever reads next uses the same buffers, and would take a late completion for its own.
    assert_eq!(bank.under_way, 0);
}

#[test]
fn as_many_chunks_are_read_ahead_as_buffers_allow_and_eight_at_most() {
    for (buffers, most) in [(1, 1), (2, 1), (3, 1), (4, 2), (6, 4), (10, 8), (32, 8)] {
        let (mut bank, memory) = array(buffers.max(2));
        let names = memory.buffer_ids().take(buffers as usize).collect();
        let mut reader = Reader { bank: &mut bank, memory: &memory, buffers: names };
        let image = open(&mut reader).expect("the array opens");
        let chunks = chunks();
        assert!(chunks.len() > 9, "more than are read ahead");
        reader.bank.most = 0;
        let mut numbers = Vec::new();
        let each = |e: &Entry, had: Result<Provenance, Unreadable>| {
            assert_eq!(had, Ok(Provenance::Read));
            numbers.push(e.record.sequence - FIRST);
        };
        verify(&mut reader, &image, &chunks, each).expect("the bank works");
        assert!(numbers.iter().copied().eq(0..chunks.len() as u64), "each once, in order");
        assert_eq!(bank.most, most, "{buffers} buffers");
    }
}

#[test]
fn queues_that_are_read_side_by_side_share_the_buffers() {
    let whole = read_with(|_| (), None);
    // One buffer is kept for a look at a segment's start. The others are divided among two queues.
    for (buffers, ahead) in [(3, 1), (5, 2), (6, 2), (7, 3), (9, 4)] {
        let (mut bank, memory) = array(buffers);
        let mut chunks = chunks();
        let data = chunks.iter_mut().filter(|entry| entry.record.parity.is_none());
        for entry in data.skip(1).step_by(2) {
            let page = header(entry, entry.place, |record| record.summary.queue = 1);
            bank.bank.poke(DriveId(entry.place.member), entry.place.offset, &page);
            entry.record.summary.queue = 1;
        }
        let mut reader = reader_of(&mut bank, &memory);
        let image = open(&mut reader).expect("the array opens");
        reader.bank.asked.clear();
        let mut packets = Packets::default();
        let extracted = extract(&mut reader, &image, &chunks, TimeRange::ALL, None, &mut packets);
        extracted.expect("none fails");
        assert_eq!(packets, whole, "times put both queues in order");
        // As many as its share, and one when the first of them is taken; then it is the other's turn.
        let at = |entry: &Entry| (DriveId(entry.place.member), entry.place.offset);
        let queue = |asked| chunks.iter().find(|e| at(e) == asked).map(|e| e.record.summary.queue);
        let first = bank.asked.iter().take_while(|asked| queue(**asked) == Some(0)).count();
        assert_eq!(first, ahead + 1, "{buffers} buffers");
    }
}
