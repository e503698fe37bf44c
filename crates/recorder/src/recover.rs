//! Gives back chunks that no member has any more, from the others of their group and its parity
//! (`docs/format.md`, section 9). What is recovered proves itself: by its own checksums, and by the
//! place and number that the group's table has for it. One group at a time is in memory.

use std::collections::{BTreeMap, HashSet};

use base::{Bank, Buffers};
use format::chunk::check_body;
use format::parity::{self, PARITY_MAX, Row, Table};
use format::{ChunkRecord, PAGE_BYTES, Place};

use crate::extract::check;
use crate::open::ArrayImage;
use crate::reader::{Range, ReadError, Reader};
use crate::takes::{Entry, Unread};

/// Groups whose tables and headers are read at a time.
const GROUPS_AT_ONCE: usize = 128;
/// What is read of a parity chunk's front for its header and the parity of one page.
const FRONT_BYTES: usize = 2 * PAGE_BYTES as usize;

/// The parity chunks of an array, by the first number of their group.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    parity: BTreeMap<u64, Vec<Entry>>,
}

impl Groups {
    /// Those among `entries`.
    pub fn of(entries: &[Entry]) -> Self {
        let mut parity: BTreeMap<u64, Vec<Entry>> = BTreeMap::new();
        for entry in entries {
            if let Some(part) = entry.record.parity.filter(|part| part.of > 0) {
                parity.entry(part.group).or_default().push(*entry);
            }
        }
        Self { parity }
    }

    /// The parity chunks of the group that a number belongs to, if any does. Groups are one behind the
    /// other.
    pub fn around(&self, sequence: u64) -> &[Entry] {
        self.parity.range(..=sequence).next_back().map_or(&[], |(_, parity)| parity.as_slice())
    }

    /// Each group's parity chunks, in order.
    pub fn each(&self) -> impl Iterator<Item = &[Entry]> {
        self.parity.values().map(Vec::as_slice)
    }
}

/// Chunks that neither an index nor a walk has found, and a group's table names.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    /// No member has them: parity gives them back.
    pub(crate) recovered: Vec<Entry>,
    /// They are in their place, behind something that hides them from a walk.
    pub(crate) hidden: Vec<Entry>,
}

/// Finds what is missing from `entries`, which are all that is found of numbers that are not among `unread`. Of what went
/// with a member only headers are recovered: that takes a page of each chunk of the group.
///
/// # Errors
/// [`ReadError`] if the bank fails.
pub(crate) fn lost<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    entries: &[Entry],
    unread: &Unread,
) -> Result<Lost, ReadError> {
    // A filler may bear the number of a chunk that is not it.
    let found = entries.iter().filter(|e| !e.record.is_filler());
    let search = Search {
        image,
        known: found.map(|e| e.record.sequence).collect(),
        unread,
        groups: Groups::of(entries),
    };
    let incomplete: Vec<&[Entry]> =
        search.groups.each().filter(|parity| search.lacks_chunks(parity)).collect();
    let mut found = Lost::default();
    for some in incomplete.chunks(GROUPS_AT_ONCE) {
        let mut fronts = fronts(reader, image, some)?;
        fronts.retain(|front| front.table.rows.iter().any(|row| search.is_lost(row)));
        found.recovered.extend(search.headers_made(reader, &fronts)?);
        for row in fronts.iter().flat_map(|front| &front.table.rows) {
            if search.is_lost(row) && !search.is_of_missing_member(row) {
                search.look_behind_damage(reader, row, &mut found)?;
            }
        }
    }
    Ok(found)
}

/// What [`lost`] goes by.
struct Search<'a> {
    image: &'a ArrayImage,
    /// Numbers of the chunks that are found.
    known: HashSet<u64>,
    unread: &'a Unread,
    groups: Groups,
}

impl Search<'_> {
    /// Whether a group, given by its parity chunks, may have chunks that were looked for and not found.
    fn lacks_chunks(&self, parity: &[Entry]) -> bool {
        let Some(part) = parity[0].record.parity else { return false };
        let last = part.group.saturating_add(part.span.into());
        let mut next = self.unread.past(part.group);
        while next < last && self.known.contains(&next) {
            next = self.unread.past(next + 1);
        }
        next <= last && !self.known.contains(&next)
    }

    fn is_lost(&self, row: &Row) -> bool {
        let is_unread = self.unread.past(row.sequence) != row.sequence;
        !self.known.contains(&row.sequence) && !is_unread
    }

    fn is_of_missing_member(&self, row: &Row) -> bool {
        self.image.members[usize::from(row.member)].is_missing()
    }

    /// The lost chunks of missing members in these groups, by their headers: made of the first pages of the others and of the parity.
    fn headers_made<B: Bank, M: Buffers>(
        &self,
        reader: &mut Reader<'_, B, M>,
        fronts: &[Front],
    ) -> Result<Vec<Entry>, ReadError> {
        let rows = fronts.iter().flat_map(|front| &front.table.rows);
        let page = |row: &Row| range_of_row(self.image, row).map(|r| Range { length: PAGE, ..r });
        let ranges: Vec<Option<Range>> = rows.map(page).collect();
        let mut pages = read(reader, &ranges)?.into_iter();
        let mut found = Vec::new();
        for front in fronts {
            let rows = &front.table.rows;
            let pages: Vec<Option<Vec<u8>>> = pages.by_ref().take(rows.len()).collect();
            let sound = |row: &Row, page: &[u8]| {
                !self.is_lost(row) && header(self.image, row, page).is_some()
            };
            let there: Vec<Option<&[u8]>> = rows
                .iter()
                .zip(&pages)
                .map(|(row, page)| page.as_deref().filter(|page| sound(row, page)))
                .collect();
            let short: Vec<Row> = rows.iter().map(|row| Row { length: PAGE, ..*row }).collect();
            let parities = std::array::from_fn(|at| front.parity[at].as_deref());
            let Ok(made) = parity::recover(&short, &there, parities) else { continue };
            let missing = rows.iter().zip(&there).filter(|(_, there)| there.is_none());
            // Behind damage nothing is known to be where its table says: those chunks are looked at whole.
            let wanted = |row: &Row| self.is_lost(row) && self.is_of_missing_member(row);
            let made = missing.zip(&made).filter(|((row, _), _)| wanted(row));
            found.extend(made.filter_map(|((row, _), page)| header(self.image, row, page)));
        }
        Ok(found)
    }

    /// Looks for a lost chunk of a member that is there: in its place, or made again from its group.
    fn look_behind_damage<B: Bank, M: Buffers>(
        &self,
        reader: &mut Reader<'_, B, M>,
        row: &Row,
        found: &mut Lost,
    ) -> Result<(), ReadError> {
        let image = self.image;
        let bytes = read(reader, &[range_of_row(image, row)])?.pop().flatten();
        if let Some(entry) = bytes.and_then(|bytes| whole(image, row, &bytes)) {
            found.hidden.push(entry);
            return Ok(());
        }
        let Some(group) = Group::read(reader, image, self.groups.around(row.sequence))? else {
            return Ok(());
        };
        let is_row = |entry: &Entry| entry.record.sequence == row.sequence;
        // A damaged table of another parity may have named a wrong place.
        found.hidden.extend(group.in_place(image).filter(is_row));
        let made = group.made_again(image).into_iter().map(|(entry, _)| entry);
        found.recovered.extend(made.filter(is_row));
        Ok(())
    }
}

const PAGE: u32 = PAGE_BYTES as u32;

/// What is read of a group's parity first: its table, and the parities of the chunks' first pages.
struct Front {
    table: Table,
    parity: [Option<Vec<u8>>; PARITY_MAX as usize],
}

/// The tables of groups, each given by its parity chunks; those that can't be read are left out.
fn fronts<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    groups: &[&[Entry]],
) -> Result<Vec<Front>, ReadError> {
    let chunks = || groups.iter().flat_map(|parity| parity.iter());
    let ranges: Vec<Option<Range>> = chunks()
        .flat_map(|entry| {
            let whole = range(image, entry);
            let front = whole.map(|r| Range { length: r.length.min(FRONT_BYTES as u32), ..r });
            let end = whole.map(|r| Range {
                offset: r.offset + u64::from(r.length - PAGE),
                length: PAGE,
                ..r
            });
            [front, end]
        })
        .collect();
    let mut pieces = read(reader, &ranges)?.into_iter();
    let mut fronts = Vec::new();
    for parity in groups {
        let mut of_group: Option<Front> = None;
        for entry in *parity {
            let (Some(Some(front)), Some(Some(end))) = (pieces.next(), pieces.next()) else {
                continue;
            };
            // Its front and its end in their places: the table stands behind the parity.
            let length = entry.record.summary.length as usize;
            let mut chunk = vec![0; length];
            chunk[..front.len()].copy_from_slice(&front);
            chunk[length - end.len()..].copy_from_slice(&end);
            let same = ChunkRecord::read(&chunk) == Ok((entry.place, entry.record));
            let read = Table::read(&chunk, &entry.record).ok();
            let Some((table, bytes)) = read.filter(|(table, _)| same && suits(image, table)) else {
                continue;
            };
            let place = usize::from(table.part.place);
            let bytes = bytes[..PAGE_BYTES as usize].to_vec();
            let front = of_group.get_or_insert(Front { table, parity: [None, None] });
            front.parity[place] = Some(bytes);
        }
        fronts.extend(of_group);
    }
    Ok(fronts)
}

/// A group with the bytes of its chunks, as far as they are sound.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) table: Table,
    /// In the order of the table.
    pub(crate) chunks: Vec<Option<Vec<u8>>>,
    /// By place: whole parity chunks.
    pub(crate) parity: [Option<Vec<u8>>; PARITY_MAX as usize],
}

impl Group {
    /// Reads a group whole, given its parity chunks. None if no table can be had.
    ///
    /// # Errors
    /// [`ReadError`] if the bank fails.
    pub(crate) fn read<B: Bank, M: Buffers>(
        reader: &mut Reader<'_, B, M>,
        image: &ArrayImage,
        parity: &[Entry],
    ) -> Result<Option<Self>, ReadError> {
        let ranges: Vec<Option<Range>> = parity.iter().map(|entry| range(image, entry)).collect();
        let mut found: Option<Self> = None;
        for (entry, bytes) in parity.iter().zip(read(reader, &ranges)?) {
            let Some(bytes) = bytes.filter(|bytes| check(bytes, entry).is_ok()) else { continue };
            let Ok((table, _)) = Table::read(&bytes, &entry.record) else { continue };
            if !suits(image, &table) {
                continue;
            }
            let place = usize::from(table.part.place);
            let group = found.get_or_insert_with(|| Self {
                table,
                chunks: Vec::new(),
                parity: [None, None],
            });
            group.parity[place] = Some(bytes);
        }
        let Some(mut group) = found else { return Ok(None) };
        group.chunks = read_rows(reader, image, &group.table.rows)?;
        Ok(Some(group))
    }

    /// The same by a table, if no parity chunk can be read.
    ///
    /// # Errors
    /// [`ReadError`] if the bank fails.
    pub(crate) fn without_parity<B: Bank, M: Buffers>(
        reader: &mut Reader<'_, B, M>,
        image: &ArrayImage,
        table: Table,
    ) -> Result<Self, ReadError> {
        let chunks = read_rows(reader, image, &table.rows)?;
        Ok(Self { table, chunks, parity: [None, None] })
    }

    /// The chunks that are sound in the places that the table names.
    fn in_place<'a>(&'a self, image: &'a ArrayImage) -> impl Iterator<Item = Entry> + 'a {
        let rows = self.table.rows.iter().zip(&self.chunks);
        rows.filter_map(|(row, bytes)| whole(image, row, bytes.as_deref()?))
    }

    /// The chunks that are not sound, made again; those that can't be are left out.
    pub(crate) fn made_again(&self, image: &ArrayImage) -> Vec<(Entry, Vec<u8>)> {
        let there: Vec<Option<&[u8]>> = self.chunks.iter().map(Option::as_deref).collect();
        let parities = std::array::from_fn(|at| self.parity[at].as_deref().map(parity_bytes));
        let Ok(made) = parity::recover(&self.table.rows, &there, parities) else {
            return Vec::new();
        };
        let rows = self.table.rows.iter().zip(&there).filter(|(_, there)| there.is_none());
        rows.zip(made)
            .filter_map(|((row, _), bytes)| Some((whole(image, row, &bytes)?, bytes)))
            .collect()
    }
}

/// A group's chunks in the order of its table; None for those that are not sound.
///
/// # Errors
/// [`ReadError`] if the bank fails.
fn read_rows<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    rows: &[Row],
) -> Result<Vec<Option<Vec<u8>>>, ReadError> {
    let ranges: Vec<Option<Range>> = rows.iter().map(|row| range_of_row(image, row)).collect();
    let mut chunks = read(reader, &ranges)?;
    for (row, chunk) in rows.iter().zip(&mut chunks) {
        if chunk.as_deref().and_then(|bytes| whole(image, row, bytes)).is_none() {
            *chunk = None;
        }
    }
    Ok(chunks)
}

/// The same, with what can't be read made again if other parity of the group is there.
///
/// # Errors
/// [`ReadError`] if the bank fails.
pub(crate) fn group_of<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    groups: &Groups,
    rows: &[Row],
) -> Result<Vec<Option<Vec<u8>>>, ReadError> {
    let mut chunks = read_rows(reader, image, rows)?;
    if chunks.iter().all(Option::is_some) {
        return Ok(chunks);
    }
    let parity = rows.first().map_or(&[][..], |row| groups.around(row.sequence));
    let group = Group::read(reader, image, parity)?.filter(|group| group.table.rows == rows);
    for (entry, bytes) in group.iter().flat_map(|group| group.made_again(image)) {
        if let Some(at) = rows.iter().position(|row| row.sequence == entry.record.sequence) {
            chunks[at] = Some(bytes);
        }
    }
    Ok(chunks)
}

/// A group's parity chunk, all but its header, and its body's checksum; None unless all of its chunks are there.
pub(crate) fn parity_of(table: &Table, chunks: &[Option<Vec<u8>>]) -> Option<(Vec<u8>, u32)> {
    let mut bytes = vec![0; (table.longest() + parity::OVERHEAD_BYTES) as usize];
    let mut filled = 0;
    for chunk in chunks {
        let chunk = chunk.as_deref()?;
        parity::fold(table.part.place, &mut bytes, filled, chunk);
        filled = filled.max(chunk.len() as u32);
    }
    let (_, body_crc) = table.seal(&mut bytes);
    Some((bytes, body_crc))
}

/// The parity in a whole parity chunk.
fn parity_bytes(chunk: &[u8]) -> &[u8] {
    let longest = chunk.len().saturating_sub(parity::OVERHEAD_BYTES as usize);
    chunk.get(parity::PARITY_AT..parity::PARITY_AT + longest).unwrap_or_default()
}

/// Makes a chunk again whose own bytes can't be had, with all that it takes from its group. None if too much of the group is
/// missing, or what comes out is not the chunk.
///
/// # Errors
/// [`ReadError`] if the bank fails.
pub fn chunk<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    groups: &Groups,
    sequence: u64,
) -> Result<Option<(Entry, Vec<u8>)>, ReadError> {
    let parity = groups.around(sequence);
    let Some(group) = Group::read(reader, image, parity)? else { return Ok(None) };
    let mut made = group.made_again(image).into_iter();
    Ok(made.find(|(entry, _)| entry.record.sequence == sequence))
}

/// Whether all of a table's members are of this array. A table is read before its chunk's checksum is.
fn suits(image: &ArrayImage, table: &Table) -> bool {
    table.rows.iter().all(|row| usize::from(row.member) < image.members.len())
}

/// Whether these are the first bytes of the chunk that the table names there.
fn header(image: &ArrayImage, row: &Row, bytes: &[u8]) -> Option<Entry> {
    let (place, record) = ChunkRecord::read(bytes).ok()?;
    let there = Place {
        array: image.uuid,
        member: row.member,
        members: image.members.len() as u16,
        offset: row.offset,
    };
    (place == there && record.sequence == row.sequence && record.summary.length == row.length)
        .then_some(Entry { place, record })
}

/// Whether it is that chunk, whole.
fn whole(image: &ArrayImage, row: &Row, bytes: &[u8]) -> Option<Entry> {
    header(image, row, bytes).filter(|entry| check_body(bytes, &entry.record).is_ok())
}

/// Where a chunk is read from; None if its member is not there.
pub(crate) fn range(image: &ArrayImage, entry: &Entry) -> Option<Range> {
    let member = image.members.get(usize::from(entry.place.member))?;
    let (offset, length) = (entry.place.offset, entry.record.summary.length);
    (!member.is_missing()).then_some(Range { drive: member.drive, offset, length })
}

fn range_of_row(image: &ArrayImage, row: &Row) -> Option<Range> {
    let member = image.members.get(usize::from(row.member))?;
    let Row { offset, length, .. } = *row;
    let layout = &member.layout;
    let end = layout.segment_offset(layout.segments);
    // A table's chunks are no longer than its parity, which a buffer takes.
    let sound = offset.is_multiple_of(PAGE_BYTES)
        && offset.checked_add(length.into()).is_some_and(|to| to <= end);
    (!member.is_missing() && sound).then_some(Range { drive: member.drive, offset, length })
}

/// Reads ranges whole; what is not there or can't be read is None.
fn read<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    ranges: &[Option<Range>],
) -> Result<Vec<Option<Vec<u8>>>, ReadError> {
    let wanted: Vec<Range> = ranges.iter().flatten().copied().collect();
    let mut found: Vec<Option<Vec<u8>>> = vec![None; wanted.len()];
    reader.scatter(&wanted, |at, bytes| found[at] = bytes.ok().map(<[u8]>::to_vec))?;
    let mut found = found.into_iter();
    Ok(ranges.iter().map(|range| range.and_then(|_| found.next().flatten())).collect())
}

/// The tables of all groups, each with the places of the parities that are there.
///
/// # Errors
/// [`ReadError`] if the bank fails.
pub(crate) fn tables<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    groups: &Groups,
) -> Result<Vec<(Table, Vec<u8>)>, ReadError> {
    let all: Vec<&[Entry]> = groups.each().collect();
    let mut tables = Vec::new();
    for some in all.chunks(GROUPS_AT_ONCE) {
        for Front { table, parity } in fronts(reader, image, some)? {
            let there = (0u8..).zip(&parity).filter(|(_, parity)| parity.is_some());
            let there = there.map(|(place, _)| place).collect();
            tables.push((table, there));
        }
    }
    Ok(tables)
}
