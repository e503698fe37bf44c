//! Makes a lost member's image on a new drive, chunk by chunk, from the parity of the others: what to write is
//! planned from what the array's catalog knows, and each piece that is there already is left as it is.

mod lost;
mod plan;

use std::ops::ControlFlow;

use base::{Bank, Buffers, DriveId, Operation, Rate};
use format::chunk::check_body;
use format::parity::Table;
use format::{ChunkRecord, ChunkWriter, Layout, PAGE_BYTES, Place, Superblock, index};

use crate::create::{CreateError, run as command, write};
use crate::open::ArrayImage;
use crate::reader::{Pace, Range, Reader};
use crate::recover::{self, Groups};
use crate::superblocks::store;
use crate::takes::Entry;

pub use plan::Plan;
use plan::{Piece, SegmentPlan};

/// What came of a rebuild, or of so much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// Chunks of packets that were recovered and written.
    pub chunks: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Parity chunks that were computed and written.
    pub parity_chunks: u64,
    /// Pieces that an earlier try had written.
    pub found: u64,
    /// Holes that were filled so that what lies behind them is found: the chunks there can't be had.
    pub filled: u64,
}

/// Marks the target as a member that does not count yet, before anything else is written to it.
///
/// # Errors
/// [`CreateError`] if writing fails.
pub fn begin<B: Bank, M: Buffers>(
    to: &mut Reader<'_, B, M>,
    superblock: &Superblock,
) -> Result<(), CreateError> {
    let superblock = Superblock { generation: 0, ..superblock.clone() };
    write(to, TARGET, format::layout::SUPERBLOCK_BYTES, &Superblock::padding())?;
    store(to, TARGET, &superblock)
}

/// The new drive, which has a bank of its own.
const TARGET: DriveId = DriveId(0);

/// Writes what a plan says, at a rate of reading at most, and tells `each` the bytes of every piece that is done. If `each`
/// breaks, the rest is left for another run, and the result is None. Nothing counts yet: that is for the superblock to say.
///
/// # Errors
/// [`CreateError`] if the target can't be written or a bank fails.
pub fn run<B: Bank, M: Buffers, T: Bank, N: Buffers>(
    from: &mut Reader<'_, B, M>,
    to: &mut Reader<'_, T, N>,
    image: &ArrayImage,
    plan: &Plan,
    limit: Option<Rate>,
    mut each: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<Rebuilt>, CreateError> {
    let Plan { groups, layout, .. } = plan;
    let mut pace = Pace::new(limit, from.bank.now());
    let mut rebuilt = Rebuilt::default();
    let count = plan.segments.len();
    for (at, SegmentPlan { segment, pieces }) in plan.segments.iter().enumerate() {
        let mut written: Vec<(Place, ChunkRecord)> = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let entry = *piece.entry();
            let length = entry.record.summary.length;
            let record = match there(to, TARGET, piece)? {
                Some(record) => {
                    rebuilt.found += 1;
                    record
                }
                None => {
                    let made = make(from, image, groups, piece)?;
                    pace.keep(from, u64::from(length) * image.members.len() as u64)?;
                    match (&made, piece) {
                        (Some(_), Piece::Chunk(_)) => {
                            rebuilt.chunks += 1;
                            rebuilt.bytes += u64::from(length);
                        }
                        (Some(_), Piece::Parity(..)) => rebuilt.parity_chunks += 1,
                        (None, Piece::Filler(_, false)) => {}
                        (None, _) if Some(entry.record.sequence) <= plan.reused => {}
                        _ => rebuilt.filled += 1,
                    }
                    let last = written.last().map(|(_, record)| record);
                    let (record, bytes) = made.unwrap_or_else(|| fill(&entry, last));
                    write(to, TARGET, entry.place.offset, &bytes)?;
                    record
                }
            };
            written.push((entry.place, record));
            if each(length.into()).is_break() {
                return Ok(None);
            }
        }
        // The newest segment stays open: recording goes on in it.
        if at + 1 < count {
            write_index(to, TARGET, layout, *segment, &written)?;
        }
    }
    empty_the_rest(to, image, plan)?;
    command(to, TARGET, Operation::Flush)?;
    Ok(Some(rebuilt))
}

/// The record of the chunk that stands in a piece's place, if it is that piece.
pub(crate) fn there<T: Bank, N: Buffers>(
    to: &mut Reader<'_, T, N>,
    drive: DriveId,
    piece: &Piece,
) -> Result<Option<ChunkRecord>, CreateError> {
    let entry = piece.entry();
    let exactly = matches!(piece, Piece::Chunk(_));
    let length = entry.record.summary.length;
    let range = Range { drive, offset: entry.place.offset, length };
    // A page that can't be read is written anew, which may be all that it wants.
    let Ok(bytes) = to.one(range) else { return Ok(None) };
    let Ok((place, record)) = ChunkRecord::read(&bytes) else { return Ok(None) };
    let same = place == entry.place
        && record.sequence == entry.record.sequence
        && record.summary.length == length
        && record.parity == entry.record.parity
        && (!exactly || record == entry.record);
    Ok((same && check_body(&bytes, &record).is_ok()).then_some(record))
}

/// A piece's record and bytes; None if it can't be had.
pub(crate) fn make<B: Bank, M: Buffers>(
    from: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    groups: &Groups,
    piece: &Piece,
) -> Result<Option<(ChunkRecord, Vec<u8>)>, CreateError> {
    match piece {
        Piece::Chunk(entry) => {
            let made = recover::chunk(from, image, groups, entry.record.sequence)?;
            Ok(made.map(|(made, bytes)| (made.record, bytes)).filter(|(r, _)| *r == entry.record))
        }
        Piece::Parity(entry, rows) => {
            let Some(part) = entry.record.parity else { return Ok(None) };
            let table = Table { part, rows: rows.clone() };
            let chunks = recover::group_of(from, image, groups, rows)?;
            Ok(recover::parity_of(&table, &chunks).map(|(mut bytes, body_crc)| {
                let mut record = entry.record;
                record.summary.body_crc = body_crc;
                record.stamp(&entry.place, &mut bytes);
                (record, bytes)
            }))
        }
        Piece::Filler(..) => Ok(None),
    }
}

/// A chunk of nothing in the place of one that can't be had.
fn fill(entry: &Entry, last: Option<&ChunkRecord>) -> (ChunkRecord, Vec<u8>) {
    let length = entry.record.summary.length;
    let mut record = plan::filler(entry.record.sequence, length, last, &entry.record);
    let writer = ChunkWriter::new(vec![0; length as usize], length, length, 0);
    let sealed = writer.seal(&[], base::Timestamp::MIN, false);
    record.summary = sealed.summary;
    let mut bytes = sealed.buffer;
    record.stamp(&entry.place, &mut bytes);
    (record, bytes)
}

/// Writes a full segment's index behind its chunks, which are on the medium then.
///
/// # Errors
/// [`CreateError`] if the drive fails.
pub(crate) fn write_index<B: Bank, M: Buffers>(
    to: &mut Reader<'_, B, M>,
    drive: DriveId,
    layout: &Layout,
    segment: u64,
    chunks: &[(Place, ChunkRecord)],
) -> Result<(), CreateError> {
    let Some((first, _)) = chunks.first() else { return Ok(()) };
    let used: u64 = chunks.iter().map(|(_, c)| u64::from(c.summary.length)).sum();
    let section_bytes = layout.segment_bytes.saturating_sub(used);
    if section_bytes < index::length_for(chunks.len() as u64) {
        return Ok(());
    }
    let offset = layout.segment_offset(segment) + used;
    let written = index::encode(&Place { offset, ..*first }, section_bytes, chunks);
    let end = layout.segment_offset(segment + 1);
    write(to, drive, offset, &written.front)?;
    command(to, drive, Operation::Flush)?;
    write(to, drive, end - written.tail.len() as u64, &written.tail)
}

/// Segments for which nothing is planned must not hold what some array's member left there.
fn empty_the_rest<T: Bank, N: Buffers>(
    to: &mut Reader<'_, T, N>,
    image: &ArrayImage,
    plan: &Plan,
) -> Result<(), CreateError> {
    let layout = &plan.layout;
    let planned: std::collections::HashSet<u64> = plan.segments.iter().map(|s| s.segment).collect();
    let free: Vec<u64> = (0..layout.segments).filter(|s| !planned.contains(s)).collect();
    let page = PAGE_BYTES as u32;
    let ranges: Vec<Range> = free
        .iter()
        .map(|&s| Range { drive: TARGET, offset: layout.segment_offset(s), length: page })
        .collect();
    let mut left = Vec::new();
    to.scatter(&ranges, |at, bytes| {
        let ours = |bytes: &[u8]| {
            ChunkRecord::read(bytes).is_ok_and(|(place, _)| place.array == image.uuid)
        };
        if bytes.is_ok_and(ours) {
            left.push(ranges[at].offset);
        }
    })?;
    for offset in left {
        write(to, TARGET, offset, &vec![0; PAGE_BYTES as usize])?;
    }
    Ok(())
}
