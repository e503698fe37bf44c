//! Reads everything that an array holds and holds it against its checksums and its parity; says what can be written
//! in its place again, and writes it if that is wanted.

mod hidden;
mod indexes;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use base::{Bank, Buffers, Operation, Rate};
use format::parity::{OVERHEAD_BYTES, Row, Table};
use format::{ChunkRecord, Damage, Place};

use crate::create::{CreateError, run as command, write};
use crate::extract::{Fetch, Unreadable, check};
use crate::open::{ArrayImage, MemberImage, Segment};
use crate::reader::{Pace, Range, ReadError, Reader};
use crate::rebuild::{self, Plan, write_index};
use crate::recover::{self, Group, Groups};
use crate::takes::{Catalog, Entry};

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A chunk of packets can't be read or doesn't check.
    Chunk(Unreadable),
    /// A chunk of packets is sound and can't be reached: its segment has no index, and what is before it is damaged.
    Hidden,
    /// A parity chunk can't be read or doesn't check.
    Parity(Unreadable),
    /// A parity chunk that checks is not the parity of its group.
    Contradiction,
    /// A full segment has no index that counts, and no crash explains it.
    Index,
    /// A crash kept the index of a full segment from being written whole. It is no damage: the index is rebuilt from the
    /// segment's chunks.
    TornIndex,
}

impl Fault {
    /// Whether something was recorded and has changed since; not so what a crash kept from being written.
    pub const fn is_damage(&self) -> bool {
        !matches!(self, Self::TornIndex)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chunk(why) => write!(f, "chunk: {why}"),
            Self::Hidden => f.write_str("chunk: it is sound, and damage before it hides it"),
            Self::Parity(why) => write!(f, "parity: {why}"),
            Self::Contradiction => f.write_str("parity: it is not that of its group"),
            Self::Index => f.write_str("index: the segment has none that counts"),
            Self::TornIndex => f.write_str("index: torn by a crash; no packet is lost"),
        }
    }
}

/// What can be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Nothing: too much is missing to make it again, something else has its place by now, or an index denies it.
    None,
    /// It can be written again in its place.
    Possible,
    /// It was, and checks.
    Done,
    /// It was, and doesn't check: the drive is at fault.
    Failed,
}

/// Something that is wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The chunk, or the first one of the segment.
    pub entry: Entry,
    /// The fault that was found.
    pub fault: Fault,
    /// What can be done, or was.
    pub repair: Repair,
}

/// What a scrub has read and found, beside its findings.
#[derive(Clone, Debug, Default)]
pub struct Scrubbed {
    /// Chunks looked at, parity among them.
    pub chunks: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Groups whose parity was held against their chunks.
    pub groups: u64,
    /// Chunks of packets that no parity is of.
    pub without_parity: u64,
    /// Parity chunks that groups were given and that are not found.
    pub parity_missing: u64,
    /// Chunks of packets whose groups were given fewer parity chunks than the array has: members had failed, or were missing.
    pub less_parity: u64,
    /// For members that are not there: chunks that they held, and those that parity gives back whole.
    pub missing: BTreeMap<u16, (u64, u64)>,
}

/// What a scrub tells on its way.
#[derive(Debug)]
pub enum Step<'f> {
    /// So many bytes more are read.
    Read(u64),
    /// Something is wrong.
    Found(&'f Finding),
}

/// How to scrub.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The rate to read at, at most.
    pub limit: Option<Rate>,
    /// Write what can be made again in its place. Nobody may be recording then.
    pub repair: bool,
    /// Somebody is recording: what is not there may be still to come.
    pub recording: bool,
}

/// Scrubs an array.
///
/// # Errors
/// [`CreateError`] if the bank fails, or a write that repairs does.
pub fn scrub<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    catalog: &Catalog,
    options: Options,
    each: impl FnMut(Step<'_>),
) -> Result<Scrubbed, CreateError> {
    let pace = Pace::new(options.limit, reader.bank.now());
    let repair = options.repair;
    let by_number = catalog.entries.iter().map(|e| (e.record.sequence, *e)).collect();
    let mut scrub = Scrub {
        image,
        catalog,
        by_number,
        pace,
        repair,
        done: Scrubbed::default(),
        written: Vec::new(),
        hiding: BTreeSet::new(),
        each,
    };
    let whole = scrub.groups(reader)?;
    if !whole && !options.recording {
        scrub.hidden_parity(reader)?;
    }
    if !options.recording {
        scrub.hidden_chunks(reader)?;
    }
    // While somebody records, the index of a full segment is still to come.
    if !options.recording {
        scrub.indexes(reader)?;
    }
    if !scrub.written.is_empty() {
        for member in image.members.iter().filter(|m| !m.is_missing()) {
            command(reader, member.drive, Operation::Flush)?;
        }
    }
    Ok(scrub.done)
}

struct Scrub<'s, F> {
    image: &'s ArrayImage,
    catalog: &'s Catalog,
    by_number: BTreeMap<u64, Entry>,
    pace: Pace,
    repair: bool,
    done: Scrubbed,
    /// Members that were written to.
    written: Vec<u16>,
    /// Segments in which something lies behind the chunks that are known: no index may be written over it.
    hiding: BTreeSet<(u16, u64)>,
    each: F,
}

impl<F: FnMut(Step<'_>)> Scrub<'_, F> {
    /// Every group, then every chunk that belongs to none. Returns whether all of them have all their parity.
    fn groups<B: Bank, M: Buffers>(
        &mut self,
        reader: &mut Reader<'_, B, M>,
    ) -> Result<bool, CreateError> {
        let groups = Groups::of(&self.catalog.entries);
        let mut covered: HashSet<u64> = HashSet::new();
        for parity in groups.each() {
            let group = match Group::read(reader, self.image, parity)? {
                Some(group) => group,
                // Its table can't be read; its chunks are those whose numbers lie there.
                None => match self.table(parity) {
                    Some(table) => Group::without_parity(reader, self.image, table)?,
                    None => continue,
                },
            };
            // Of a group that was written again elsewhere there may be any part.
            let listed = |row: &Row| self.by_number.contains_key(&row.sequence);
            let overwritten = parity.first().is_some_and(|e| is_overwritten(self.catalog, e));
            if group.table.rows.iter().all(listed) && !overwritten {
                let of = u64::from(group.table.part.of);
                self.done.parity_missing += of.saturating_sub(parity.len() as u64);
                if group.table.part.of < self.image.superblock.parity {
                    self.done.less_parity += group.table.rows.len() as u64;
                }
            }
            covered.extend(group.table.rows.iter().map(|row| row.sequence));
            covered.extend(parity.iter().map(|entry| entry.record.sequence));
            self.group(reader, parity, &group)?;
        }
        let others: Vec<Entry> = self
            .catalog
            .entries
            .iter()
            .filter(|entry| !covered.contains(&entry.record.sequence))
            .copied()
            .collect();
        let without = others.iter().filter(|e| e.record.parity.is_none()).count() as u64;
        self.done.without_parity = without;
        self.singly(reader, &others)?;
        let parity = self.image.superblock.parity > 0;
        Ok(self.done.parity_missing == 0 && (without == 0 || !parity))
    }

    /// Parity chunks that groups lack, in the holes that members have: damage in a segment without an index hides them.
    fn hidden_parity<B: Bank, M: Buffers>(
        &mut self,
        reader: &mut Reader<'_, B, M>,
    ) -> Result<(), CreateError> {
        // What a missing member held may explain a hole of another one.
        if self.image.members.iter().any(MemberImage::is_missing) {
            return Ok(());
        }
        for (at, member) in (0u16..).zip(&self.image.members) {
            let plan = Plan::new(reader, self.image, self.catalog, at, None)?;
            for piece in plan.parity_between() {
                if is_overwritten(self.catalog, piece.entry()) {
                    continue;
                }
                if rebuild::there(reader, member.drive, piece)?.is_some() {
                    continue;
                }
                let made = rebuild::make(reader, self.image, &plan.groups, piece)?;
                let mut entry = *piece.entry();
                if let Some((record, _)) = &made {
                    entry.record = *record;
                }
                let why = Unreadable::Damaged(Damage::NotOurs);
                let bytes = made.as_ref().map(|(_, bytes)| bytes.as_slice());
                self.found(reader, entry, Fault::Parity(why), bytes)?;
            }
        }
        Ok(())
    }

    /// A group's chunks as the catalog has them, where none of its parity chunks can be read.
    fn table(&self, parity: &[Entry]) -> Option<Table> {
        let first = parity.first()?;
        let part = first.record.parity?;
        let rows: Vec<Row> = self
            .by_number
            .range(part.group..=part.group.saturating_add(part.span.into()))
            .map(|(_, entry)| entry)
            .filter(|entry| entry.record.parity.is_none())
            .map(Entry::row)
            .collect();
        let longest = rows.iter().map(|row| row.length).max()?;
        (longest + OVERHEAD_BYTES == first.record.summary.length).then_some(Table { part, rows })
    }

    fn group<B: Bank, M: Buffers>(
        &mut self,
        reader: &mut Reader<'_, B, M>,
        parity: &[Entry],
        group: &Group,
    ) -> Result<(), CreateError> {
        let made = group.made_again(self.image);
        let mut bytes_read = 0;
        let mut chunks = group.chunks.clone();
        for (row, chunk) in group.table.rows.iter().zip(&mut chunks) {
            // What the catalog does not have was replaced, or given up by the ring.
            let Some(&entry) = self.by_number.get(&row.sequence) else { continue };
            bytes_read += self.looked_at(&entry);
            if chunk.is_some() {
                continue;
            }
            let again = made.iter().find(|(made, _)| made.record == entry.record);
            *chunk = again.map(|(_, bytes)| bytes.clone());
            if !self.is_there(&entry) {
                let (held, had) = self.done.missing.entry(entry.place.member).or_default();
                *held += 1;
                *had += u64::from(again.is_some());
            } else if is_damage(self.catalog, &entry, again.is_some())
                && let Some(why) = self.why(reader, &entry)?
            {
                let bytes = again.map(|(_, bytes)| bytes.as_slice());
                self.found(reader, entry, Fault::Chunk(why), bytes)?;
            }
        }
        self.done.groups += 1;
        for entry in parity {
            bytes_read += self.looked_at(entry);
            let Some(part) = entry.record.parity else { continue };
            let table = Table { part, rows: group.table.rows.clone() };
            let stamped = recover::parity_of(&table, &chunks).map(|(mut bytes, body_crc)| {
                let mut record = entry.record;
                record.summary.body_crc = body_crc;
                record.stamp(&entry.place, &mut bytes);
                (record, bytes)
            });
            match &group.parity[usize::from(part.place)] {
                Some(there) => {
                    let chunks_sound = group.chunks.iter().all(Option::is_some);
                    if chunks_sound && stamped.as_ref().is_some_and(|(_, bytes)| bytes != there) {
                        let bytes = stamped.as_ref().map(|(_, bytes)| bytes.as_slice());
                        self.found(reader, *entry, Fault::Contradiction, bytes)?;
                    }
                }
                None => {
                    if let Some(why) = self.why(reader, entry)? {
                        let same = stamped.as_ref().filter(|(record, _)| *record == entry.record);
                        let bytes = same.map(|(_, bytes)| bytes.as_slice());
                        self.found(reader, *entry, Fault::Parity(why), bytes)?;
                    }
                }
            }
        }
        self.read(reader, bytes_read)
    }

    /// Chunks that no parity is of: nothing but their own checksums can be looked at.
    fn singly<B: Bank, M: Buffers>(
        &mut self,
        reader: &mut Reader<'_, B, M>,
        entries: &[Entry],
    ) -> Result<(), CreateError> {
        for some in entries.chunks(reader.buffers.len().max(1)) {
            let mut bad = Vec::new();
            let ranges: Vec<Option<Range>> =
                some.iter().map(|entry| recover::range(self.image, entry)).collect();
            let there: Vec<(Entry, Range)> =
                some.iter().zip(ranges).filter_map(|(e, range)| Some((*e, range?))).collect();
            let ranges: Vec<Range> = there.iter().map(|(_, range)| *range).collect();
            reader.scatter(&ranges, |at, bytes| {
                if !bytes.is_ok_and(|bytes| check(bytes, &there[at].0).is_ok()) {
                    bad.push(there[at].0);
                }
            })?;
            let mut bytes = 0;
            for entry in some {
                bytes += self.looked_at(entry);
                if !self.is_there(entry) {
                    self.done.missing.entry(entry.place.member).or_default().0 += 1;
                }
            }
            for entry in bad.into_iter().filter(|entry| is_damage(self.catalog, entry, false)) {
                if let Some(why) = self.why(reader, &entry)? {
                    self.found(reader, entry, Fault::Chunk(why), None)?;
                }
            }
            self.read(reader, bytes)?;
        }
        Ok(())
    }

    fn is_there(&self, entry: &Entry) -> bool {
        !self.image.members[usize::from(entry.place.member)].is_missing()
    }

    fn looked_at(&mut self, entry: &Entry) -> u64 {
        let bytes = u64::from(entry.record.summary.length);
        self.done.chunks += 1;
        self.done.bytes += bytes;
        bytes
    }

    fn read<B: Bank, M: Buffers>(
        &mut self,
        reader: &mut Reader<'_, B, M>,
        bytes: u64,
    ) -> Result<(), CreateError> {
        (self.each)(Step::Read(bytes));
        Ok(self.pace.keep(reader, bytes)?)
    }

    /// What is wrong with a chunk on a second look; None if nothing is, or a ring has reused its place.
    fn why<B: Bank, M: Buffers>(
        &self,
        reader: &mut Reader<'_, B, M>,
        entry: &Entry,
    ) -> Result<Option<Unreadable>, CreateError> {
        let mut fetch =
            Fetch::new(reader, self.image, vec![(0, vec![*entry])], Groups::default(), None);
        let mut bytes = Vec::new();
        let Some((entry, outcome)) = fetch.take(0, &mut bytes)? else { return Ok(None) };
        let why = fetch.judge(&entry, outcome, &bytes)?.err();
        Ok(why.filter(|why| *why != Unreadable::Overwritten))
    }

    /// Tells what was found, after writing `bytes` in its place if that is wanted.
    fn found<B: Bank, M: Buffers>(
        &mut self,
        reader: &mut Reader<'_, B, M>,
        entry: Entry,
        fault: Fault,
        bytes: Option<&[u8]>,
    ) -> Result<(), CreateError> {
        let mut bytes = bytes.filter(|_| has_its_place(self.catalog, &entry));
        if let Some(again) = bytes
            && self.index_denies(reader, &entry, again)?
        {
            bytes = None;
        }
        let mut repair = if bytes.is_some() { Repair::Possible } else { Repair::None };
        if let Some(bytes) = bytes.filter(|_| self.repair) {
            let drive = self.image.members[usize::from(entry.place.member)].drive;
            repair = match write(reader, drive, entry.place.offset, bytes) {
                Err(CreateError::Write { .. }) => Repair::Failed,
                Err(error) => return Err(error),
                Ok(()) => {
                    self.written.push(entry.place.member);
                    let length = entry.record.summary.length;
                    let range = Range { drive, offset: entry.place.offset, length };
                    match reader.one(range) {
                        Ok(read) if read == bytes => {
                            self.rewrite_index(reader, &entry, bytes)?;
                            Repair::Done
                        }
                        Ok(_) | Err(ReadError::Device { .. }) => Repair::Failed,
                        Err(error) => return Err(error.into()),
                    }
                }
            };
        }
        (self.each)(Step::Found(&Finding { entry, fault, repair }));
        Ok(())
    }

    /// The index of a segment has its chunks' records: where one has become another, it is written anew.
    fn rewrite_index<B: Bank, M: Buffers>(
        &self,
        reader: &mut Reader<'_, B, M>,
        entry: &Entry,
        bytes: &[u8],
    ) -> Result<(), CreateError> {
        let member = &self.image.members[usize::from(entry.place.member)];
        let segment = member.layout.segment_at(entry.place.offset);
        let Ok((_, record)) = ChunkRecord::read(bytes) else { return Ok(()) };
        if record == entry.record || !member.segments.get(segment as usize).is_some_and(indexed) {
            return Ok(());
        }
        let mut chunks = self.chunks(entry.place.member, segment);
        for chunk in chunks.iter_mut().filter(|(place, _)| *place == entry.place) {
            chunk.1 = record;
        }
        write_index(reader, member.drive, &member.layout, segment, &chunks)
    }

    /// A segment's chunks, in their places. Behind them may lie older ones that the ring gave up, of which parity still knows.
    fn chunks(&self, member: u16, segment: u64) -> Vec<(Place, ChunkRecord)> {
        let layout = &self.image.members[usize::from(member)].layout;
        let span = layout.segment_offset(segment)..layout.segment_offset(segment + 1);
        let here = |e: &&Entry| e.place.member == member && span.contains(&e.place.offset);
        let chunks = self.catalog.entries.iter().filter(here);
        let mut chunks: Vec<_> = chunks.map(|e| (e.place, e.record)).collect();
        chunks.sort_by_key(|(place, _)| place.offset);
        let mut newest = 0;
        chunks.retain(|(_, record)| {
            let follows = record.sequence > newest;
            newest = newest.max(record.sequence);
            follows
        });
        chunks
    }
}

/// Whether a segment's index counts.
fn indexed(segment: &Segment) -> bool {
    matches!(segment, Segment::Live(live) if live.indexed)
}

/// Whether a chunk of the catalog that does not check in its place is damaged; `made_again`: parity gives it back. It is not if
/// parity alone knows of it, and the ring has overwritten a part of its group, or recording went on in its place after a crash
/// that had kept it from being written.
pub fn is_damage(catalog: &Catalog, entry: &Entry, made_again: bool) -> bool {
    let by_parity_alone = catalog.recovered.contains(&entry.record.sequence);
    let explained =
        is_overwritten(catalog, entry) || (made_again && !has_its_place(catalog, entry));
    !(by_parity_alone && explained)
}

/// Whether the ring has given up a part of a chunk's group. What such a group lacks is no damage.
fn is_overwritten(catalog: &Catalog, entry: &Entry) -> bool {
    let record = &entry.record;
    let group =
        record.parity.map(|part| part.group).or_else(|| record.group.map(|group| group.group));
    group.is_some_and(|group| catalog.reused.is_some_and(|reused| group <= reused))
}

/// Whether nothing else that counts lies where a chunk was: recording may have gone on there after a crash.
fn has_its_place(catalog: &Catalog, entry: &Entry) -> bool {
    let start = entry.place.offset;
    let end = start + u64::from(entry.record.summary.length);
    catalog.entries.iter().all(|other| {
        let from = other.place.offset;
        other.place.member != entry.place.member
            || other.record.sequence == entry.record.sequence
            || catalog.recovered.contains(&other.record.sequence)
            || from >= end
            || from + u64::from(other.record.summary.length) <= start
    })
}
