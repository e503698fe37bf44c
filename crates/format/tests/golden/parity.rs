//! Makes the golden members of an array of four with two parities, by section 9 of `docs/format.md`.
//!
//! Shared as `recipe.rs` is.

use base::Timestamp;
use format::chunk::TakeId;
use format::parity::{Joined, LastParities, Part, PlacedParity, Row, Table, fold};
use format::section::HEADER_BYTES;
use format::superblock::Member;
use format::{ChunkRecord, ChunkSummary, Layout, Ledger, Place, Sealed, Superblock};
use uuid::Uuid;

use super::recipe::{
    CHUNK_MAX, FIRST, MS, STARTED, Writing, describe, ethernet, frame, put, sealed_at, writer,
};

/// The files, in the order of [`members`].
pub const FILES: [&str; 4] = ["parity0.bin", "parity1.bin", "parity2.bin", "parity3.bin"];

const ARRAY: Uuid = Uuid::from_u128(0x4c6f_6e67_7461_6b65_5061_7269_7479_0002);
const CAPACITY: u64 = 1_638_400;
const PARITY: u8 = 2;

/// The four members' bytes, whole.
pub fn members() -> Vec<Vec<u8>> {
    let mut array = Array {
        members: FILES.iter().map(|_| Writing::new(CAPACITY, 0)).collect(),
        ledger: Ledger::default(),
        take: TakeId {
            uuid: Uuid::from_u128(0xC),
            started: Timestamp::from_nanos(STARTED),
            first_sequence: FIRST,
        },
        next: FIRST,
        placed: Vec::new(),
    };
    // A long chunk and a short one; then a group of one; then the other way round.
    array.group(&[(0, packed(0, 35)), (1, packed(1, 12))], &[2, 3]);
    array.group(&[(2, packed(4, 20))], &[0, 3]);
    array.group(&[(3, packed(7, 3)), (0, packed(8, 30))], &[2, 1]);
    array.close(0);
    // Fewer members had room: a group of one parity, and a chunk without.
    array.group(&[(1, packed(11, 5)), (2, packed(12, 6)), (3, packed(13, 7))], &[0]);
    array.group(&[(0, packed(15, 8))], &[]);
    let end = writer(0).seal(&[], Timestamp::from_nanos(STARTED + 20 * MS), true);
    array.group(&[(1, end)], &[2, 3]);
    array.finish()
}

struct Array {
    members: Vec<Writing>,
    ledger: Ledger,
    take: TakeId,
    next: u64,
    /// Parity chunks, oldest first.
    placed: Vec<PlacedParity>,
}

impl Array {
    /// Writes chunks to members and their parities to others.
    fn group(&mut self, data: &[(usize, Sealed<Vec<u8>>)], parities: &[usize]) {
        let mut chunks: Vec<Vec<u8>> =
            parities.iter().map(|_| vec![0xEE; CHUNK_MAX as usize]).collect();
        let mut table = Table {
            part: Part { group: self.next, span: 0, place: 0, of: parities.len() as u8 },
            rows: Vec::new(),
        };
        for (member, sealed) in data {
            let mut chunk = sealed.buffer.clone();
            self.ledger.store(sealed.summary.stored());
            let group = table.part.group;
            // That fewer members have room shows when the group is closed.
            let joined = (!parities.is_empty()).then_some(Joined { group, of: PARITY });
            let row = self.write(*member, &mut chunk, sealed.summary, (None, joined));
            for (place, parity) in (0u8..).zip(&mut chunks) {
                fold(place, parity, table.longest(), &chunk[..row.length as usize]);
            }
            table.rows.push(row);
        }
        for ((place, chunk), member) in (0u8..).zip(&mut chunks).zip(parities) {
            table.part.place = place;
            table.part.span =
                table.rows.last().map_or(0, |row| (row.sequence - table.part.group) as u32);
            let (length, body_crc) = table.seal(chunk);
            let times = |f: fn(&ChunkSummary) -> u64| {
                data.iter().map(move |(_, sealed)| f(&sealed.summary))
            };
            let summary = ChunkSummary {
                length,
                body_crc,
                packets: 0,
                packets_start: HEADER_BYTES as u32,
                packets_end: HEADER_BYTES as u32,
                captured_bytes: 0,
                original_bytes: 0,
                first_ns: times(|s| s.first_ns).min().unwrap_or(u64::MAX),
                last_ns: times(|s| s.last_ns).max().unwrap_or(0),
                sealed_ns: times(|s| s.sealed_ns).max().unwrap_or(0),
                plain: true,
                loss: false,
                end: false,
                queue: 0,
            };
            self.write(*member, chunk, summary, (Some(table.part), None));
        }
    }

    fn write(
        &mut self,
        member: usize,
        chunk: &mut [u8],
        summary: ChunkSummary,
        (parity, group): (Option<Part>, Option<Joined>),
    ) -> Row {
        let record = ChunkRecord {
            take: self.take,
            sequence: self.next,
            replaces: None,
            ledger: self.ledger,
            reused: None,
            reused_to_ns: 0,
            parity,
            group,
            last_parities: LastParities::of(self.next, self.placed.iter().rev().copied()),
            summary,
        };
        self.next += 1;
        let place = self.place(member);
        self.members[member].append(&place, record, chunk);
        let (sequence, length) = (record.sequence, summary.length);
        if let Some(Part { group, place: which, of, .. }) = parity {
            let member = place.member;
            self.placed.push(PlacedParity { sequence, group, member, place: which, of });
        }
        Row { sequence, offset: place.offset, length, member: place.member }
    }

    fn close(&mut self, member: usize) {
        let place = self.place(member);
        self.members[member].close(&place);
    }

    fn place(&self, member: usize) -> Place {
        let offset = self.members[member].head();
        Place { array: ARRAY, member: member as u16, members: FILES.len() as u16, offset }
    }

    fn finish(mut self) -> Vec<Vec<u8>> {
        let row = |at| Member {
            capacity_bytes: CAPACITY,
            identity: format!("Golden drive {at}"),
            joined_ns: 0,
        };
        for (member, writing) in (0u16..).zip(&mut self.members) {
            let superblock = Superblock {
                array: ARRAY,
                name: "parity".into(),
                member,
                members: (0..FILES.len()).map(row).collect(),
                layout: writing.layout,
                created: Timestamp::from_nanos(STARTED - 5000 * MS),
                generation: 1,
                protected: Vec::new(),
                parity: PARITY,
            };
            let copy = Layout::copy_offset(CAPACITY);
            writing.put(copy, &superblock.encode(copy));
            let first = superblock.encode(0);
            writing.put(0, &first);
            writing.put(first.len() as u64, &Superblock::padding());
        }
        self.members.into_iter().map(|writing| writing.bytes).collect()
    }
}

/// A chunk of so many packets of 1,500 bytes.
fn packed(chunk: u64, packets: u64) -> Sealed<Vec<u8>> {
    let mut writer = writer(0);
    describe(&mut writer, 0, &ethernet());
    for number in 0..packets {
        put(&mut writer, 0, chunk, number, &frame(chunk, number, 1500), 0, &[]);
    }
    writer.seal(&[], sealed_at(chunk), false)
}
