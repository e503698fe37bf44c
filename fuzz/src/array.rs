//! A whole array with changed pages: opening, listing, extracting, checking, scrubbing, repairing and rebuilding it
//! never panic, always end, and return no more packets than the media can hold. A repair takes no packet away.
//!
//! Starts from golden members, without parity or with it. The input is a list of changes: a place, what is put there,
//! and whether the checksums around it are put right.

use std::cell::RefCell;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::ops::Range;

use arbitrary::{Arbitrary, Unstructured};
use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use base::{Bank, DriveId, Timestamp};
use format::layout::{DATA_OFFSET, SUPERBLOCK_BYTES};
use format::pcapng::{Block, ReadPacket};
use format::{ChunkRecord, Interface, Layout};
use recorder::extract::{Unreadable, Visitor, extract, verify};
use recorder::open::open_some;
use recorder::reader::Reader;
use recorder::rebuild::{self, Plan};
use recorder::scrub::{Options, scrub};
use recorder::takes::{Catalog, Entry, extents};
use recorder::{ArrayImage, MemberImage, TimeRange};

use crate::checksums;

type Members = &'static [&'static [u8]];

const PLAIN: Members = &[
    include_bytes!("../../crates/format/tests/golden/member0.bin"),
    include_bytes!("../../crates/format/tests/golden/member1.bin"),
];
const PARITY: Members = &[
    include_bytes!("../../crates/format/tests/golden/parity0.bin"),
    include_bytes!("../../crates/format/tests/golden/parity1.bin"),
    include_bytes!("../../crates/format/tests/golden/parity2.bin"),
    include_bytes!("../../crates/format/tests/golden/parity3.bin"),
];
/// The golden layout.
const SEGMENT_BYTES: usize = 256 << 10;
const CHUNK_BYTES: usize = 64 << 10;
/// Longer than any golden member.
const MEMBER_BYTES_MAX: u64 = 2 << 20;

/// Where on a member something is changed.
#[derive(Arbitrary, Debug)]
enum At {
    /// In a superblock's header or tables.
    Superblock { copy: bool, within: u16 },
    /// At one of the chunks or index sections that the golden members hold.
    Section { which: u8, within: u16 },
    /// From a segment's end backward.
    Tail { segment: bool, back: u16 },
}

#[derive(Arbitrary, Debug)]
struct Change<'a> {
    member: u8,
    at: At,
    bytes: &'a [u8],
    repair: bool,
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    changes: Vec<Change<'a>>,
    degraded: bool,
    /// Bit 0: the last member is missing; bit 1: the array is repaired.
    how: u8,
    from_ns: u64,
}

/// Offsets of the sections that a member holds, found by their magic.
fn sections(bytes: &[u8]) -> Vec<usize> {
    (DATA_OFFSET as usize..DATA_OFFSET as usize + 2 * SEGMENT_BYTES)
        .step_by(4096)
        .filter(|&at| &bytes[at + 32..at + 40] == b"LONGTAKE")
        .collect()
}

thread_local! {
    /// Kept from one input to the next, because filling a bank takes longer than reading it.
    static PLAIN_BENCH: RefCell<Bench> = RefCell::new(Bench::new(PLAIN));
    static PARITY_BENCH: RefCell<Bench> = RefCell::new(Bench::new(PARITY));
}

/// Makes the changes that the bytes describe to the members without parity, and reads the array.
pub fn run(bytes: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
    PLAIN_BENCH.with_borrow_mut(|bench| bench.run(&input));
}

/// The same to the members with parity.
pub fn run_parity(bytes: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
    PARITY_BENCH.with_borrow_mut(|bench| bench.run(&input));
}

/// Golden members as bytes and on a bank; a second bank lacks the last member.
struct Bench {
    golden: Members,
    sections: Vec<Vec<usize>>,
    members: Vec<Vec<u8>>,
    buffers: MemoryBuffers,
    banks: [MemoryBank; 2],
}

impl Bench {
    fn new(golden: Members) -> Self {
        let buffers = MemoryBuffers::new(3, 2 * CHUNK_BYTES);
        let banks = [&golden[..golden.len() - 1], golden].map(|there| bank(there, &buffers));
        Self {
            golden,
            sections: golden.iter().map(|bytes| sections(bytes)).collect(),
            members: golden.iter().map(|bytes| bytes.to_vec()).collect(),
            buffers,
            banks,
        }
    }

    fn run(&mut self, input: &Input<'_>) {
        let bank = &mut self.banks[usize::from(input.how & 1 == 0)];
        let present = bank.drives().len();
        let mut changed: Vec<(usize, Range<usize>)> = Vec::new();
        for change in input.changes.iter().take(8) {
            let member = usize::from(change.member) % self.golden.len();
            let bytes = &mut self.members[member];
            for range in apply(bytes, &self.sections[member], change) {
                changed.push((member, range));
            }
        }
        let here = || changed.iter().filter(|(member, _)| *member < present);
        for (member, range) in here() {
            let bytes = &self.members[*member][range.clone()];
            bank.poke(DriveId(*member as u16), range.start as u64, bytes);
        }
        let buffers = self.buffers.buffer_ids().collect();
        let mut reader = Reader { bank, memory: &self.buffers, buffers };
        read(&mut reader, input);
        if input.how & 2 != 0 {
            repair(&mut reader, input.degraded);
            for (at, bytes) in (0..present as u16).zip(self.golden) {
                bank.poke(DriveId(at), 0, bytes);
            }
        }
        for (member, range) in here() {
            let bytes = &self.golden[*member][range.clone()];
            bank.poke(DriveId(*member as u16), range.start as u64, bytes);
        }
        for (member, range) in changed {
            self.members[member][range.clone()].copy_from_slice(&self.golden[member][range]);
        }
    }
}

/// Drives that hold these members.
fn bank(members: &[&[u8]], buffers: &MemoryBuffers) -> MemoryBank {
    let drive = |bytes: &&[u8]| MemoryDrive {
        capacity_bytes: bytes.len() as u64,
        block_bytes: 512,
        ..MemoryDrive::default()
    };
    let mut bank = MemoryBank::new(members.iter().map(drive).collect(), buffers.clone());
    for (at, bytes) in (0u16..).zip(members) {
        bank.poke(DriveId(at), 0, bytes);
    }
    bank
}

/// Makes a change, and says what is different from before.
fn apply(member: &mut [u8], sections: &[usize], change: &Change<'_>) -> [Range<usize>; 2] {
    let (start, at) = match change.at {
        At::Superblock { copy, within } => {
            let start = if copy { Layout::copy_offset(member.len() as u64) as usize } else { 0 };
            (start, start + usize::from(within))
        }
        At::Section { which, within } => {
            let start = sections[usize::from(which) % sections.len()];
            (start, start + usize::from(within))
        }
        At::Tail { segment, back } => {
            let start = DATA_OFFSET as usize + SEGMENT_BYTES * usize::from(segment);
            (start, start + SEGMENT_BYTES - 1 - usize::from(back))
        }
    };
    let end = (at + change.bytes.len()).min(member.len());
    member[at..end].copy_from_slice(&change.bytes[..end - at]);
    let mut repaired = start..start;
    if change.repair {
        match change.at {
            At::Superblock { .. } => {
                checksums::section(&mut member[start..], SUPERBLOCK_BYTES as usize);
                repaired = start..start + 512;
            }
            At::Section { .. } => {
                let length = checksums::length(&member[start..]);
                checksums::section(&mut member[start..], length);
                repaired = start..start + 512;
            }
            At::Tail { .. } => {
                let segment = start..start + SEGMENT_BYTES;
                repaired = segment.end - 100..segment.end;
                checksums::index(&mut member[segment]);
            }
        }
    }
    [at..end, repaired]
}

fn read(reader: &mut Reader<'_, MemoryBank, MemoryBuffers>, input: &Input<'_>) {
    let image = match open_some(reader, input.degraded) {
        Ok(image) => image,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for member in image.members.iter().filter(|m| !m.segments.is_empty()) {
        extents(member);
    }
    let from = Timestamp::from_nanos(input.from_ns);
    for range in [
        TimeRange { from: Timestamp::MIN, to: Timestamp::MAX },
        TimeRange { from, to: Timestamp::MAX },
    ] {
        let Ok(catalog) = Catalog::load(reader, &image, range) else { continue };
        for take in catalog.takes() {
            take.balances();
            let entries: Vec<Entry> =
                catalog.entries.iter().filter(|e| e.record.take == take.id).copied().collect();
            let mut count = Counting::default();
            extract(reader, &image, &entries, range, None, &mut count).ok();
            let held: u64 = entries.iter().map(|e| u64::from(e.record.summary.length)).sum();
            assert!(count.bytes <= held, "{} bytes of packets out of {held}", count.bytes);
        }
        scrub(reader, &image, &catalog, Options::default(), |_| {}).ok();
        rebuild_missing(reader, &image, &catalog);
        let mut seen = 0;
        verify(reader, &image, &catalog.entries, |_, _| seen += 1).ok();
        assert!(seen <= catalog.entries.len());
    }
}

/// Rebuilds a missing member on a drive of its own.
fn rebuild_missing(
    reader: &mut Reader<'_, MemoryBank, MemoryBuffers>,
    image: &ArrayImage,
    catalog: &Catalog,
) {
    let Some(at) = image.members.iter().position(MemberImage::is_missing) else { return };
    // A front end takes no drive that is too small for the member.
    let layout = image.members[at].layout;
    if layout.segment_offset(layout.segments) > MEMBER_BYTES_MAX {
        return;
    }
    let Ok(plan) = Plan::new(reader, image, catalog, at as u16, None) else { return };
    let memory = MemoryBuffers::new(3, 2 * CHUNK_BYTES);
    let drive = MemoryDrive {
        capacity_bytes: MEMBER_BYTES_MAX,
        block_bytes: 512,
        ..MemoryDrive::default()
    };
    let mut bank = MemoryBank::new(vec![drive], memory.clone());
    let buffers = memory.buffer_ids().collect();
    let mut to = Reader { bank: &mut bank, memory: &memory, buffers };
    rebuild::run(reader, &mut to, image, &plan, None, |_| ControlFlow::Continue(())).ok();
}

/// Packets that the array returns, if it opens.
fn packets(reader: &mut Reader<'_, MemoryBank, MemoryBuffers>, degraded: bool) -> Option<u64> {
    let image = open_some(reader, degraded).ok()?;
    let catalog = Catalog::load(reader, &image, TimeRange::ALL).ok()?;
    let mut found = 0;
    verify(reader, &image, &catalog.entries, |entry, had| {
        found += if had.is_ok() { u64::from(entry.record.summary.packets) } else { 0 };
    })
    .ok()?;
    Some(found)
}

/// Repairs the array in place, which must not cost a packet.
fn repair(reader: &mut Reader<'_, MemoryBank, MemoryBuffers>, degraded: bool) {
    let before = packets(reader, degraded);
    let Ok(image) = open_some(reader, degraded) else { return };
    let Ok(catalog) = Catalog::load(reader, &image, TimeRange::ALL) else { return };
    let how = Options { repair: true, ..Options::default() };
    scrub(reader, &image, &catalog, how, |_| {}).ok();
    let after = packets(reader, degraded);
    assert!(after >= before, "{before:?} packets before a repair, {after:?} after it");
}

#[derive(Default)]
struct Counting {
    bytes: u64,
}

impl Visitor for Counting {
    type Error = Infallible;
    fn packet(
        &mut self,
        _: &Interface,
        packet: &ReadPacket<'_>,
        _: &Block<'_>,
        _: &ChunkRecord,
    ) -> Result<(), Infallible> {
        self.bytes += packet.data.len() as u64;
        Ok(())
    }
    fn blocks(
        &mut self,
        _: &[Interface],
        blocks: &[u8],
        record: &ChunkRecord,
    ) -> Result<bool, Infallible> {
        // Some are taken whole, the others come one by one.
        let whole = record.sequence.is_multiple_of(2);
        self.bytes += if whole { blocks.len() as u64 } else { 0 };
        Ok(whole)
    }
    fn lost(&mut self, _: &Entry, why: &Unreadable) -> Result<(), Infallible> {
        assert!(!why.to_string().is_empty());
        Ok(())
    }
    fn progress(&mut self, done: u64, of: u64) -> Result<(), Infallible> {
        assert!(done <= of);
        Ok(())
    }
}
