//! The records of an array's takes, which stay when a ring overwrites their chunks: every member has the same table of them in front
//! of its data (`docs/format.md`, section 10).
//!
//! A recorder enters the newest take that it finds before it writes anything, and its own when that is over. So the record of a take
//! is there before a ring gives up any of its last chunks, whether the take was ended or cut short.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base::{Bank, BankError, Buffers, DriveId};
use format::take_record::{TAKE_RECORD_BYTES, TAKE_RECORDS_MAX, TAKE_RECORDS_OFFSET, TakeRecord};
use format::{ChunkRecord, PAGE_BYTES};
use uuid::Uuid;

use crate::open::{ArrayImage, HeadImage, MemberImage};
use crate::reader::{Range, Reader};
use crate::superblocks::{Update, UpdateCommand};

/// What is read of a table at a time.
const PIECE_BYTES: u64 = 64 << 10;
const PAGE_SLOTS: u64 = PAGE_BYTES / TAKE_RECORD_BYTES as u64;

/// The records of an array's takes, in order of their takes, and what each member's table holds of them.
#[derive(Clone, Debug, Default)]
pub struct TakeRecords {
    array: Uuid,
    records: Vec<TakeRecord>,
    /// By drive and offset.
    on_drives: HashMap<(DriveId, u64), TakeRecord>,
}

impl TakeRecords {
    /// Reads the tables of all members that are there. What can't be read, or is damaged, the other members have.
    ///
    /// # Errors
    /// [`BankError`] if the bank fails.
    pub fn read<B: Bank, M: Buffers>(
        reader: &mut Reader<'_, B, M>,
        image: &ArrayImage,
    ) -> Result<Self, BankError> {
        let there = image.members.iter().filter(|member| !member.is_missing());
        Self::read_on(reader, image.uuid, there.map(|member| member.drive).collect())
    }

    /// The same of drives that hold members of an array.
    ///
    /// # Errors
    /// [`BankError`] if the bank fails.
    pub(crate) fn read_on<B: Bank, M: Buffers>(
        reader: &mut Reader<'_, B, M>,
        array: Uuid,
        mut drives: Vec<DriveId>,
    ) -> Result<Self, BankError> {
        let mut on_drives = HashMap::new();
        let end = TAKE_RECORDS_OFFSET + TAKE_RECORDS_MAX * TAKE_RECORD_BYTES as u64;
        let piece_bytes = PIECE_BYTES.min(reader.buffer_bytes().into());
        let mut offset = TAKE_RECORDS_OFFSET;
        // Slots are used in order: behind a piece without a record there is none.
        while offset < end && !drives.is_empty() {
            let length = piece_bytes.min(end - offset) as u32;
            let ranges: Vec<Range> =
                drives.iter().map(|&drive| Range { drive, offset, length }).collect();
            let mut more = BTreeSet::new();
            reader.scatter(&ranges, |at, bytes| {
                let slots = bytes.ok().into_iter().flat_map(|b| b.chunks(TAKE_RECORD_BYTES));
                for (slot, bytes) in (offset..).step_by(TAKE_RECORD_BYTES).zip(slots) {
                    if let Some(record) = TakeRecord::read(bytes, array, slot) {
                        on_drives.insert((ranges[at].drive, slot), record);
                        more.insert(ranges[at].drive);
                    }
                }
            })?;
            drives.retain(|drive| more.contains(drive));
            offset += u64::from(length);
        }
        let records = merged(on_drives.values().copied());
        Ok(Self { array, records, on_drives })
    }

    /// All of them, in the order in which the takes were recorded.
    pub fn iter(&self) -> impl Iterator<Item = &TakeRecord> {
        self.records.iter()
    }

    /// That of a take.
    pub fn get(&self, take: Uuid) -> Option<&TakeRecord> {
        self.records.iter().find(|record| record.take.uuid == take)
    }

    /// What a drive has kept of takes, by its own records of them.
    pub(crate) fn kept_by(&self, drive: DriveId) -> Kept {
        let of_drive = self.on_drives.iter().filter(|((on, _), _)| *on == drive);
        let ended = of_drive
            .map(|(_, record)| record)
            .filter(|record| record.ended && record.is_of_its_recorder());
        Kept(ended.map(|record| (record.take.uuid, record.last_sequence)).collect())
    }

    /// The least number for a chunk that no take on record may have given out.
    pub fn next_sequence(&self) -> u64 {
        self.records.iter().map(|record| record.last_sequence + 1).max().unwrap_or(0)
    }

    /// Enters a take that is over. The number of its record follows from those before it.
    pub fn enter(&mut self, record: TakeRecord) {
        let number = self.records.last().map_or(0, |last| last.number + 1);
        let record = TakeRecord { number, ..record };
        self.records = merged(self.records.iter().copied().chain([record]));
    }

    /// Enters the newest take as its chunks show it, and those before it that are not on record either: a take has no record yet if
    /// its recorder was killed, or does not keep any, and members with its chunks may have been away when the next one began.
    pub fn enter_newest(&mut self, image: &ArrayImage) {
        let walked = || image.members.iter().flat_map(MemberImage::walked);
        let mut by_take: BTreeMap<(u64, Uuid), ChunkRecord> = BTreeMap::new();
        for chunk in walked().filter_map(|head| head.newest).filter(|chunk| !chunk.is_filler()) {
            let newest =
                by_take.entry((chunk.take.first_sequence, chunk.take.uuid)).or_insert(chunk);
            if chunk.sequence > newest.sequence {
                *newest = chunk;
            }
        }
        let newest = by_take.keys().next_back().copied();
        let known = self.records.last().map(|last| (last.take.first_sequence, last.take.uuid));
        by_take.retain(|take, _| Some(*take) >= known.min(newest));
        for chunk in by_take.into_values() {
            self.enter(TakeRecord {
                number: 0,
                take: chunk.take,
                ended: walked().any(|head| holds_end(head, chunk.take.uuid)),
                last_sequence: chunk.sequence,
                first_ns: u64::MAX,
                last_ns: 0,
                ledger: chunk.ledger,
            });
        }
    }

    /// What is to be done so that these drives, each a member, hold all records for good: the pages that differ are written, and every
    /// drive is flushed, because what was read may be in its cache since somebody who was killed wrote it. That goes for all that was
    /// read when the array was opened, so that they are flushed for no record too.
    pub fn update(&self, drives: impl IntoIterator<Item = DriveId>) -> Update {
        let slots: BTreeMap<u64, &TakeRecord> =
            self.records.iter().map(|record| (TakeRecord::offset(record.number), record)).collect();
        let (mut pages, mut flushes) = (Vec::new(), Vec::new());
        for drive in drives {
            let differs = |(slot, record): &(&u64, &&TakeRecord)| {
                self.on_drives.get(&(drive, **slot)) != Some(**record)
            };
            let differing: BTreeSet<u64> = slots
                .iter()
                .filter(differs)
                .map(|(slot, _)| slot / PAGE_BYTES * PAGE_BYTES)
                .collect();
            let page = |offset| {
                UpdateCommand::WritePage(
                    drive,
                    offset,
                    self.page(&slots, offset).into_boxed_slice(),
                )
            };
            pages.extend(differing.into_iter().map(page));
            flushes.push(UpdateCommand::Flush(drive));
        }
        let steps = [pages, flushes].into_iter().filter(|step| !step.is_empty());
        Update::of_steps(steps)
    }

    /// A page of the table.
    fn page(&self, slots: &BTreeMap<u64, &TakeRecord>, offset: u64) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES as usize];
        for (slot, bytes) in (0..PAGE_SLOTS).zip(page.chunks_mut(TAKE_RECORD_BYTES)) {
            if let Some(record) = slots.get(&(offset + slot * TAKE_RECORD_BYTES as u64)) {
                bytes.copy_from_slice(&record.encode(self.array));
            }
        }
        page
    }
}

/// The takes that have ended by a drive's own records, and the last number of each. The take's recorder writes such a record to the
/// members that still work, once it has flushed them: what the take has written to this one is there for good. What a later recorder
/// enters says nothing of it: that one only saw that the take's last chunk was there, maybe on another member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(HashMap<Uuid, u64>);

impl Kept {
    /// Whether a chunk whose header lies on the drive was flushed there whole.
    pub(crate) fn covers(&self, record: &ChunkRecord) -> bool {
        self.0.get(&record.take.uuid).is_some_and(|&last| record.sequence <= last)
    }
}

/// Whether the end of a take is among the chunks of a head.
fn holds_end(head: &HeadImage, take: Uuid) -> bool {
    let chunks = head.chunks.iter().map(|(_, chunk)| chunk).chain(&head.newest);
    let is_end = |chunk: &ChunkRecord| chunk.take.uuid == take && chunk.summary.end;
    chunks.into_iter().any(is_end)
}

/// The records that count, each take's once and under a number of its own, the newest that the table has room for. Of several of a
/// take the one that tells most counts: members may have been away when another was written.
fn merged(records: impl Iterator<Item = TakeRecord>) -> Vec<TakeRecord> {
    let tells = |record: &TakeRecord| (record.ended, record.last_sequence, record.last_ns);
    let mut by_take: BTreeMap<(u64, Uuid), TakeRecord> = BTreeMap::new();
    for record in records {
        let known = by_take.entry((record.take.first_sequence, record.take.uuid)).or_insert(record);
        // It stays in its slot.
        let number = known.number.min(record.number);
        if tells(&record) > tells(known) {
            *known = record;
        }
        known.number = number;
    }
    let mut merged: Vec<TakeRecord> = by_take.into_values().collect();
    for at in 1..merged.len() {
        merged[at].number = merged[at].number.max(merged[at - 1].number + 1);
    }
    merged.split_off(merged.len().saturating_sub(TAKE_RECORDS_MAX as usize))
}

#[cfg(test)]
mod tests {
    use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
    use base::{BufferId, Timestamp};
    use format::chunk::TakeId;
    use format::{Count, Ledger};

    use super::*;
    use crate::create::{Plan, create, write};
    use crate::open::open;
    use crate::superblocks::carry_out;

    fn record(take: u64) -> TakeRecord {
        let mut ledger = Ledger::default();
        ledger.store(Count::new(take, 100 * take));
        let id = TakeId {
            uuid: Uuid::from_u128(take.into()),
            started: Timestamp::from_nanos(take),
            first_sequence: 100 * take,
        };
        TakeRecord {
            number: 0,
            take: id,
            ended: true,
            last_sequence: 100 * take + 9,
            first_ns: take,
            last_ns: take + 1,
            ledger,
        }
    }

    /// An array of two members, opened.
    fn array() -> (MemoryBank, MemoryBuffers) {
        let memory = MemoryBuffers::new(3, 64 << 10);
        let drive = MemoryDrive { capacity_bytes: 8 << 20, ..MemoryDrive::default() };
        let mut bank = MemoryBank::new(vec![drive; 2], memory.clone());
        let plan = Plan {
            uuid: Uuid::from_u128(1),
            name: "array".into(),
            created: Timestamp::from_nanos(1),
            segment_bytes: Some(1 << 20),
            chunk_max: Some(64 << 10),
            identities: vec!["drive".into(); 2],
            trim: true,
            parity: 0,
        };
        create(&mut reader(&mut bank, &memory), &plan).unwrap();
        (bank, memory)
    }

    fn reader<'a>(
        bank: &'a mut MemoryBank,
        memory: &'a MemoryBuffers,
    ) -> Reader<'a, MemoryBank, MemoryBuffers> {
        Reader { bank, memory, buffers: (0..3).map(BufferId).collect() }
    }

    fn read(reader: &mut Reader<'_, MemoryBank, MemoryBuffers>) -> TakeRecords {
        let image = open(reader).unwrap();
        TakeRecords::read(reader, &image).unwrap()
    }

    const BOTH: [DriveId; 2] = [DriveId(0), DriveId(1)];

    /// The pages that an update of both members writes. It flushes both in any case.
    fn written(records: &TakeRecords) -> Vec<(DriveId, u64)> {
        let mut update = records.update(BOTH);
        let mut commands = update.next_update_step();
        commands.extend(update.next_update_step());
        let flushes = commands.iter().filter(|command| command.bytes().is_none());
        assert_eq!(flushes.map(UpdateCommand::drive).collect::<Vec<_>>(), BOTH);
        let page = |command: &UpdateCommand| Some((command.drive(), command.bytes()?.0));
        commands.iter().filter_map(page).collect()
    }

    #[test]
    fn the_newest_takes_are_kept_on_every_member_and_the_oldest_make_room() {
        let (mut bank, memory) = array();
        let mut reader = reader(&mut bank, &memory);
        let mut records = read(&mut reader);
        assert_eq!((records.iter().count(), records.next_sequence()), (0, 0));
        assert_eq!(written(&records), [], "there is nothing to write");
        for take in 1..=TAKE_RECORDS_MAX + 3 {
            records.enter(record(take));
        }
        carry_out(&mut reader, records.update(BOTH)).unwrap();
        let found = read(&mut reader);
        assert_eq!(written(&found), [], "both members have all of them");
        let takes: Vec<u64> = found.iter().map(|record| record.take.started.as_nanos()).collect();
        assert_eq!(takes, (4..=TAKE_RECORDS_MAX + 3).collect::<Vec<_>>());
        let numbers: Vec<u64> = found.iter().map(|record| record.number).collect();
        assert_eq!(numbers, (3..=TAKE_RECORDS_MAX + 2).collect::<Vec<_>>());
        assert_eq!(found.next_sequence(), 100 * (TAKE_RECORDS_MAX + 3) + 10);
        assert_eq!(found.get(Uuid::from_u128(2)), None);
        assert_eq!(
            found.get(Uuid::from_u128(9)).map(|record| record.ledger),
            Some(record(9).ledger)
        );
    }

    #[test]
    fn a_member_that_lacks_a_record_or_has_a_damaged_one_is_given_it() {
        let (mut bank, memory) = array();
        let mut reader = reader(&mut bank, &memory);
        let mut records = read(&mut reader);
        (1..=20).for_each(|take| records.enter(record(take)));
        carry_out(&mut reader, records.update([DriveId(1)])).unwrap();
        write(&mut reader, DriveId(1), TAKE_RECORDS_OFFSET, &[0xFF; PAGE_BYTES as usize]).unwrap();
        carry_out(&mut reader, records.update([DriveId(0)])).unwrap();
        let found = read(&mut reader);
        assert_eq!(found.iter().count(), 20);
        assert_eq!(written(&found), [(DriveId(1), TAKE_RECORDS_OFFSET)], "only what differs");
        carry_out(&mut reader, found.update(BOTH)).unwrap();
        assert_eq!(written(&read(&mut reader)), []);
    }

    #[test]
    fn of_several_records_of_a_take_the_one_that_tells_most_counts() {
        let short = TakeRecord { ended: false, last_sequence: 105, ..record(1) };
        let shorter = TakeRecord { last_sequence: 103, number: 4, ..short };
        let other = TakeRecord { number: 4, ..record(2) };
        for order in [[record(1), short, shorter, other], [other, shorter, short, record(1)]] {
            let merged = merged(order.into_iter());
            assert_eq!(merged, [record(1), TakeRecord { number: 4, ..record(2) }]);
        }
        // Two takes that came by one number, each while the other's member was away.
        let merged = merged([record(2), record(1)].into_iter());
        assert_eq!(merged.iter().map(|record| record.number).collect::<Vec<_>>(), [0, 1]);
    }
}
