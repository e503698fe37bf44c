//! Sees every command on its way to the drives and holds writing to its rules: in order within a
//! segment, never across one, never into what is under way, never a number twice.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use base::memory::MemoryBuffers;
use base::{BufferId, Buffers, Operation};
use format::{ChunkRecord, Count, Layout, Place};

/// What a source put in a chunk.
#[derive(Debug)]
pub struct Contents {
    /// Its packets: number, time in ns, queue.
    pub packets: Vec<(u64, u64, u16)>,
    /// Packets and wire bytes.
    pub count: Count,
}

/// What kind of command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Chunk,
    Index,
    Trim,
    Flush,
}

/// A chunk whose write was submitted, and what has been said of it since.
#[derive(Clone, Debug)]
pub struct Written {
    pub record: ChunkRecord,
    pub place: Place,
    pub segment: u64,
    pub contents: Rc<Contents>,
    /// Acknowledged, or found when the array was opened after a crash.
    pub acknowledged: bool,
    /// A flush covered it.
    pub durable: bool,
    /// The ring gave it up.
    pub given_up: bool,
    /// A power cut took it, as it may.
    pub cut: bool,
    /// The recording that wrote it, from 0.
    pub round: usize,
}

impl Written {
    /// The number that stays the same when it is written again.
    pub fn root(&self) -> u64 {
        self.record.replaces.unwrap_or(self.record.sequence)
    }
}

/// A range of a drive that a command under way writes or trims.
#[derive(Clone, Copy, Debug)]
struct Busy {
    drive: u16,
    start: u64,
    end: u64,
    chunk: bool,
}

pub struct Watch {
    memory: MemoryBuffers,
    /// Each member's; empty while the array is made.
    pub layouts: Vec<Layout>,
    pub depth: u32,
    pub round: usize,
    busy: HashMap<u64, Busy>,
    /// Where the next chunk of a segment must start, once one was seen in this recording.
    next: HashMap<(u16, u64), u64>,
    /// Chunks as they lie on each drive: start, end and number.
    shadow: Vec<BTreeMap<u64, (u64, u64)>>,
    /// Numbers of chunks that were written or trimmed over since the last look.
    pub destroyed: Vec<u64>,
    /// Every chunk ever submitted.
    pub chunks: BTreeMap<u64, Written>,
    /// What is in each chunk buffer.
    contents: HashMap<BufferId, Rc<Contents>>,
    /// What the source handed over in this recording, in order.
    pub handed: Vec<Rc<Contents>>,
    /// The number that each drive was given last.
    last: Vec<Option<u64>>,
    /// Bytes of chunks given to each drive in this recording.
    pub given: Vec<u64>,
    /// The most chunk writes that were under way on one drive.
    pub deepest: usize,
}

impl Watch {
    pub fn new(memory: &MemoryBuffers, drives: usize) -> Self {
        Self {
            memory: memory.clone(),
            layouts: Vec::new(),
            depth: 0,
            round: 0,
            busy: HashMap::new(),
            next: HashMap::new(),
            shadow: vec![BTreeMap::new(); drives],
            destroyed: Vec::new(),
            chunks: BTreeMap::new(),
            contents: HashMap::new(),
            handed: Vec::new(),
            last: vec![None; drives],
            given: vec![0; drives],
            deepest: 0,
        }
    }

    /// Another recording begins.
    pub fn begin(&mut self, round: usize, depth: u32) {
        self.round = round;
        self.depth = depth;
        self.next.clear();
        self.handed.clear();
        self.given.fill(0);
    }

    /// A chunk was handed over.
    pub fn handed_over(&mut self, buffer: BufferId, contents: Contents) {
        let contents = Rc::new(contents);
        self.handed.push(Rc::clone(&contents));
        self.contents.insert(buffer, contents);
    }

    /// No command is under way any more.
    pub fn everything_ended(&mut self) {
        self.busy.clear();
    }

    pub fn completed(&mut self, tag: u64, _operation: &Operation) {
        self.busy.remove(&tag);
    }

    /// Looks at a command before it goes to a drive.
    pub fn submitted(&mut self, tag: u64, drive: u16, operation: &Operation) -> Option<Kind> {
        let (start, length, buffer) = match *operation {
            _ if self.layouts.is_empty() => return None,
            Operation::Read { .. } => return None,
            Operation::Flush => return Some(Kind::Flush),
            Operation::Write { offset, length, buffer } => {
                (offset, u64::from(length), Some(buffer))
            }
            Operation::Trim { offset, length } => (offset, length, None),
        };
        let end = start + length;
        for busy in self.busy.values().filter(|b| b.drive == drive) {
            assert!(
                end <= busy.start || busy.end <= start,
                "writing order: {} on drive {drive} while {busy:?} is under way",
                operation.describe()
            );
        }
        let layout = self.layouts[usize::from(drive)];
        let data = layout.segment_offset(0)..layout.segment_offset(layout.segments);
        if !data.contains(&start) {
            self.busy.insert(tag, Busy { drive, start, end, chunk: false });
            return None;
        }
        let segment = (start - data.start) / layout.segment_bytes;
        assert!(
            end <= layout.segment_offset(segment + 1),
            "writing order: {} on drive {drive} crosses the end of segment {segment}",
            operation.describe()
        );
        let over: Vec<u64> = self.shadow[usize::from(drive)]
            .range(..end)
            .rev()
            .take_while(|(_, (chunk_end, _))| *chunk_end > start)
            .map(|(&at, _)| at)
            .collect();
        for at in over {
            if let Some((_, sequence)) = self.shadow[usize::from(drive)].remove(&at) {
                self.destroyed.push(sequence);
            }
        }
        let mut record = None;
        if let Some(buffer) = buffer {
            self.memory.with(buffer, &mut |bytes| record = ChunkRecord::read(bytes).ok());
        }
        let kind = match (buffer, record) {
            (Some(buffer), Some((place, record)))
                if place.offset == start && u64::from(record.summary.length) == length =>
            {
                self.chunk(drive, segment, buffer, place, record);
                Kind::Chunk
            }
            (Some(_), _) => Kind::Index,
            (None, _) => Kind::Trim,
        };
        self.busy.insert(tag, Busy { drive, start, end, chunk: kind == Kind::Chunk });
        let deep = self.busy.values().filter(|b| b.drive == drive && b.chunk).count();
        assert!(deep <= self.depth as usize, "depth: {deep} chunk writes on drive {drive}");
        self.deepest = self.deepest.max(deep);
        Some(kind)
    }

    fn chunk(
        &mut self,
        drive: u16,
        segment: u64,
        buffer: BufferId,
        place: Place,
        record: ChunkRecord,
    ) {
        let layout = self.layouts[usize::from(drive)];
        let end = place.offset + u64::from(record.summary.length);
        assert_eq!(place.member, drive, "a chunk goes to the member that its header names");
        let begins = place.offset == layout.segment_offset(segment);
        if let Some(expected) = self.next.insert((drive, segment), end) {
            assert!(
                begins || place.offset == expected,
                "writing order: chunk {} at {} in segment {segment} of drive {drive}, not at {expected}",
                record.sequence,
                place.offset
            );
        }
        assert!(
            record.ledger.balances(),
            "ledger: chunk {} carries {:?}",
            record.sequence,
            record.ledger
        );
        self.given[usize::from(drive)] += u64::from(record.summary.length);
        self.shadow[usize::from(drive)].insert(place.offset, (end, record.sequence));
        let contents = Rc::clone(&self.contents[&buffer]);
        assert_eq!(contents.count, record.summary.stored(), "a buffer is its chunk's own");
        let written = Written {
            record,
            place,
            segment,
            contents,
            acknowledged: false,
            durable: false,
            given_up: false,
            cut: false,
            round: self.round,
        };
        let before = self.chunks.insert(record.sequence, written);
        assert!(before.is_none(), "number {} was given out twice", record.sequence);
        let last = self.last[usize::from(drive)].replace(record.sequence);
        assert!(last < Some(record.sequence), "numbers go up on each member");
    }
}
