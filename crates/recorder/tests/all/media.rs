//! Members made byte by byte: superblocks, chunks and indexes as a test wants them, on an array without parity.

use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use base::{
    Bank, BankError, Command, Completion, DeviceError, DriveId, Full, Geometry, Instant, Operation,
    Timestamp,
};
use format::layout::{DATA_OFFSET, SUPERBLOCK_BYTES};
use format::superblock::Member;
use format::{
    ChunkRecord, ChunkSummary, Count, Layout, Ledger, Place, Superblock, TakeId, TakeRecord, index,
};
use longtake_recorder::ArrayImage;
use longtake_recorder::open::{OpenError, open_some};
use longtake_recorder::reader::Reader;
use longtake_recorder::takes::Entry;
use uuid::Uuid;

pub const TAKE: TakeId =
    TakeId { uuid: Uuid::from_u128(8), started: Timestamp::from_nanos(50), first_sequence: 1 };
const ARRAY: Uuid = Uuid::from_u128(7);

/// A bank some pages of which can't be read.
pub struct Failing {
    pub bank: MemoryBank,
    /// Drive and offset of each such page.
    pub unreadable: Vec<(DriveId, u64)>,
    /// Offset and length of each read that was asked for, in order.
    pub asked: Vec<(u64, u32)>,
    failing: Vec<u64>,
}

impl Bank for Failing {
    fn drives(&self) -> &[Geometry] {
        self.bank.drives()
    }
    fn now(&self) -> Instant {
        self.bank.now()
    }
    fn submit(&mut self, command: Command) -> Result<(), Full> {
        self.bank.submit(command)?;
        if let Operation::Read { offset, length, .. } = command.operation {
            self.asked.push((offset, length));
            let read = offset..offset + u64::from(length);
            let bad = |(drive, at): &(DriveId, u64)| *drive == command.drive && read.contains(at);
            if self.unreadable.iter().any(bad) {
                self.failing.push(command.tag);
            }
        }
        Ok(())
    }
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        self.bank.wait(until, done)?;
        for completion in done {
            if let Some(at) = self.failing.iter().position(|&tag| tag == completion.tag) {
                self.failing.remove(at);
                completion.outcome = Err(DeviceError::Medium);
            }
        }
        Ok(())
    }
}

/// Members and what lies on them.
#[derive(Clone)]
pub struct Media {
    pub layout: Layout,
    members: Vec<Vec<u8>>,
    /// Drive and offset of each page that can't be read.
    pub unreadable: Vec<(DriveId, u64)>,
    pub trim_unit_bytes: Option<u32>,
}

impl Media {
    /// Empty members of an array.
    pub fn new(members: u16, segments: u64, segment_bytes: u64) -> Self {
        let capacity_bytes = DATA_OFFSET + segments * segment_bytes + SUPERBLOCK_BYTES;
        let layout = Layout::new(capacity_bytes, segment_bytes, 64 << 10).expect("it is divided");
        let row = |_| Member { capacity_bytes, identity: String::new(), joined_ns: 0 };
        let rows: Vec<Member> = (0..members).map(row).collect();
        let made = |member| {
            let superblock = Superblock {
                array: ARRAY,
                name: "made".into(),
                member,
                members: rows.clone(),
                layout,
                created: Timestamp::MIN,
                generation: 1,
                protected: Vec::new(),
                parity: 0,
            };
            let mut bytes = vec![0; capacity_bytes as usize];
            for offset in [0, Layout::copy_offset(capacity_bytes)] {
                let slot = offset as usize..(offset + SUPERBLOCK_BYTES) as usize;
                bytes[slot].copy_from_slice(&superblock.encode(offset));
            }
            bytes
        };
        Self {
            layout,
            members: (0..members).map(made).collect(),
            unreadable: Vec::new(),
            trim_unit_bytes: Some(4096),
        }
    }

    fn place(&self, member: u16, offset: u64) -> Place {
        Place { array: ARRAY, member, members: self.members.len() as u16, offset }
    }

    /// Writes chunks one behind the other from a segment's start, as far as the member goes.
    pub fn chunks(&mut self, member: u16, segment: u64, records: &[ChunkRecord]) -> Vec<Entry> {
        let mut offset = self.layout.segment_offset(segment);
        let mut entries = Vec::new();
        for record in records {
            let place = self.place(member, offset);
            let bytes = &mut self.members[usize::from(member)][offset as usize..];
            let mut record = *record;
            let length = (record.summary.length as usize).min(bytes.len());
            bytes[..length].fill(record.sequence as u8);
            record.summary.body_crc = crc(length, record.sequence as u8);
            record.stamp(&place, bytes);
            entries.push(Entry { place, record });
            offset += u64::from(record.summary.length);
        }
        entries
    }

    /// Enters a take into the records of a member.
    pub fn take_record(&mut self, member: u16, record: &TakeRecord) {
        let offset = TakeRecord::offset(record.number) as usize;
        let bytes = record.encode(ARRAY);
        self.members[usize::from(member)][offset..offset + bytes.len()].copy_from_slice(&bytes);
    }

    /// Turns the last byte of a chunk, as if a crash had torn its write.
    pub fn tear(&mut self, entry: &Entry) {
        let end = entry.place.offset + u64::from(entry.record.summary.length);
        self.members[usize::from(entry.place.member)][end as usize - 1] ^= 0xff;
    }

    /// Writes a chunk's header again, with another place in it.
    pub fn header_at(&mut self, entry: &Entry, place: Place) {
        let bytes = &mut self.members[usize::from(entry.place.member)];
        entry.record.stamp(&place, &mut bytes[entry.place.offset as usize..]);
    }

    /// Writes the index of a segment that holds these chunks.
    pub fn index(&mut self, segment: u64, chunks: &[Entry]) {
        let last = chunks.last().expect("a chunk");
        let place = last.place;
        let start = place.offset + u64::from(last.record.summary.length);
        let chunks: Vec<_> = chunks.iter().map(|e| (e.place, e.record)).collect();
        self.index_at(segment, self.place(place.member, start), &chunks);
    }

    /// The same with its section from another place on.
    pub fn index_at(&mut self, segment: u64, place: Place, chunks: &[(Place, ChunkRecord)]) {
        let end = self.layout.segment_offset(segment + 1);
        let written = index::encode(&place, end - place.offset, chunks);
        let bytes = &mut self.members[usize::from(place.member)];
        let front = place.offset as usize;
        bytes[front..front + written.front.len()].copy_from_slice(&written.front);
        let tail = end as usize - written.tail.len();
        bytes[tail..end as usize].copy_from_slice(&written.tail);
    }

    /// Writes full segments, each with its index: member, segment, and its records.
    pub fn full(&mut self, segments: &[(u16, u64, &[ChunkRecord])]) -> Vec<Entry> {
        let mut all = Vec::new();
        for (member, segment, records) in segments {
            let entries = self.chunks(*member, *segment, records);
            self.index(*segment, &entries);
            all.extend(entries);
        }
        all
    }

    /// A chunk's bytes as they lie on its member.
    pub fn bytes(&self, entry: &Entry) -> Vec<u8> {
        let start = entry.place.offset as usize;
        let member = &self.members[usize::from(entry.place.member)];
        member[start..start + entry.record.summary.length as usize].to_vec()
    }

    /// A bank of the members, with buffers of so many bytes.
    pub fn bank(&self, buffer_bytes: usize) -> (MemoryBank, MemoryBuffers) {
        let memory = MemoryBuffers::new(3, buffer_bytes);
        let drive = |bytes: &Vec<u8>| MemoryDrive {
            capacity_bytes: bytes.len() as u64,
            trim_unit_bytes: self.trim_unit_bytes,
            ..MemoryDrive::default()
        };
        let mut bank = MemoryBank::new(self.members.iter().map(drive).collect(), memory.clone());
        for (at, bytes) in (0u16..).zip(&self.members) {
            bank.poke(DriveId(at), 0, bytes);
        }
        (bank, memory)
    }

    /// Opens the array with buffers of so many bytes, and hands it on.
    pub fn open<T>(
        &self,
        buffer_bytes: usize,
        degraded: bool,
        use_it: impl FnOnce(&mut Reader<'_, Failing, MemoryBuffers>, &ArrayImage) -> T,
    ) -> Result<T, OpenError> {
        let (bank, memory) = self.bank(buffer_bytes);
        let unreadable = self.unreadable.clone();
        let mut bank = Failing { bank, unreadable, asked: Vec::new(), failing: Vec::new() };
        let buffers = memory.buffer_ids().collect();
        let mut reader = Reader { bank: &mut bank, memory: &memory, buffers };
        let image = open_some(&mut reader, degraded)?;
        Ok(use_it(&mut reader, &image))
    }
}

/// The checksum of a body of one byte over and over, by a chunk that holds it.
fn crc(length: usize, byte: u8) -> u32 {
    let body = vec![byte; length.saturating_sub(format::section::HEADER_BYTES)];
    crc_of(&body)
}

fn crc_of(body: &[u8]) -> u32 {
    // CRC-32C, bit by bit: a second opinion on the format's own.
    !body.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82F6_3B78 & (crc & 1).wrapping_neg())
        })
    })
}

/// What a chunk of one packet says of itself; the take's ledger knows all chunks before it.
pub fn record(sequence: u64, length: u32, (first_ns, last_ns): (u64, u64)) -> ChunkRecord {
    let front = ChunkSummary {
        length,
        packets: 1,
        packets_start: 600,
        packets_end: 700,
        ..ChunkSummary::EMPTY
    };
    let summary = ChunkSummary {
        captured_bytes: 50,
        original_bytes: 50,
        first_ns,
        last_ns,
        sealed_ns: last_ns + 1,
        ..front
    };
    let mut ledger = Ledger::default();
    let before = sequence + 1 - TAKE.first_sequence;
    ledger.store(Count::new(before, before * 50));
    ChunkRecord {
        take: TAKE,
        sequence,
        replaces: None,
        ledger,
        reused: None,
        reused_to_ns: 0,
        parity: None,
        group: None,
        last_parities: Default::default(),
        summary,
    }
}
