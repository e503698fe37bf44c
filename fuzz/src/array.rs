//! A whole array with changed pages: opening, listing, extracting and checking it never panic, always end,
//! and hand out no more packets than the media can hold.
//!
//! Starts from the golden members. The input is a list of changes: a place, what is put there, and whether
//! the checksums around it are put right.

use std::cell::RefCell;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::LazyLock;

use arbitrary::{Arbitrary, Unstructured};
use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use base::{Bank, DriveId, Timestamp};
use format::layout::{DATA_OFFSET, SUPERBLOCK_BYTES};
use format::pcapng::{Block, ReadPacket};
use format::{ChunkRecord, Interface, Layout};
use recorder::TimeRange;
use recorder::extract::{Unreadable, Visitor, extract, verify};
use recorder::open::open_some;
use recorder::reader::Reader;
use recorder::takes::{Catalog, Entry, extents};

use crate::repair;

const GOLDEN: [&[u8]; 2] = [
    include_bytes!("../../crates/format/tests/golden/member0.bin"),
    include_bytes!("../../crates/format/tests/golden/member1.bin"),
];
/// The golden layout.
const SEGMENT_BYTES: usize = 256 << 10;
const CHUNK_BYTES: usize = 64 << 10;

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
    member: bool,
    at: At,
    bytes: &'a [u8],
    repair: bool,
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    changes: Vec<Change<'a>>,
    degraded: bool,
    leave_out: bool,
    from_ns: u64,
}

/// Offsets of the sections that the golden members hold, found by their magic.
static SECTIONS: LazyLock<[Vec<usize>; 2]> = LazyLock::new(|| {
    GOLDEN.map(|bytes| {
        (DATA_OFFSET as usize..DATA_OFFSET as usize + 2 * SEGMENT_BYTES)
            .step_by(4096)
            .filter(|&at| &bytes[at + 32..at + 40] == b"LONGTAKE")
            .collect()
    })
});

thread_local! {
    /// Kept from one input to the next, because filling a bank takes longer than reading it.
    static BENCH: RefCell<Bench> = RefCell::new(Bench::new());
}

/// Makes the changes that the bytes describe, and reads the array.
pub fn run(bytes: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
    BENCH.with_borrow_mut(|bench| bench.run(&input));
}

/// The golden members as bytes and on a bank; a second bank lacks the second member.
struct Bench {
    members: [Vec<u8>; 2],
    buffers: MemoryBuffers,
    banks: [MemoryBank; 2],
}

impl Bench {
    fn new() -> Self {
        let buffers = MemoryBuffers::new(3, 2 * CHUNK_BYTES);
        let bank = |count: usize| {
            let drive = |bytes: &&[u8]| MemoryDrive {
                capacity_bytes: bytes.len() as u64,
                block_bytes: 512,
                ..MemoryDrive::default()
            };
            let drives = GOLDEN[..count].iter().map(drive).collect();
            let mut bank = MemoryBank::new(drives, buffers.clone());
            for (at, bytes) in (0u16..).zip(&GOLDEN[..count]) {
                bank.poke(DriveId(at), 0, bytes);
            }
            bank
        };
        let banks = [bank(1), bank(2)];
        Self { members: GOLDEN.map(<[u8]>::to_vec), buffers, banks }
    }

    fn run(&mut self, input: &Input<'_>) {
        let bank = &mut self.banks[usize::from(!input.leave_out)];
        let present = bank.drives().len();
        let mut changed: Vec<(usize, Range<usize>)> = Vec::new();
        for change in input.changes.iter().take(8) {
            let member = usize::from(change.member);
            let bytes = &mut self.members[member];
            for range in apply(bytes, &SECTIONS[member], change) {
                changed.push((member, range));
            }
        }
        let here = || changed.iter().filter(|(member, _)| *member < present);
        for (member, range) in here() {
            let bytes = &self.members[*member][range.clone()];
            bank.poke(DriveId(*member as u16), range.start as u64, bytes);
        }
        let buffers = self.buffers.buffer_ids().collect();
        read(&mut Reader { bank, memory: &self.buffers, buffers }, input);
        for (member, range) in here() {
            let bytes = &GOLDEN[*member][range.clone()];
            bank.poke(DriveId(*member as u16), range.start as u64, bytes);
        }
        for (member, range) in changed {
            self.members[member][range.clone()].copy_from_slice(&GOLDEN[member][range]);
        }
    }
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
                repair::section(&mut member[start..], SUPERBLOCK_BYTES as usize);
                repaired = start..start + 512;
            }
            At::Section { .. } => {
                let length = repair::length(&member[start..]);
                repair::section(&mut member[start..], length);
                repaired = start..start + 512;
            }
            At::Tail { .. } => {
                let segment = start..start + SEGMENT_BYTES;
                repaired = segment.end - 100..segment.end;
                repair::index(&mut member[segment]);
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
        let mut seen = 0;
        verify(reader, &image, &catalog.entries, |_, _| seen += 1).ok();
        assert!(seen <= catalog.entries.len());
    }
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
