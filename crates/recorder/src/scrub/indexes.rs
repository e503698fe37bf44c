//! Judges full segments without an index that counts. A crash may keep an index from being written, which is no damage; an
//! index that was written and has changed since is damage.

use base::{Bank, Buffers, DriveId};
use format::index::{self, Footer};
use format::{ChunkRecord, Damage, Layout, PAGE_BYTES, Place};

use super::{Fault, Finding, Repair, Scrub, Step, indexed};
use crate::create::CreateError;
use crate::open::{MemberImage, Segment};
use crate::reader::{Range, ReadError, Reader};
use crate::rebuild::write_index;
use crate::takes::Entry;

/// Younger segments of a member that may have an index where a crash tore an older one. Indexes are written in the order of
/// their segments, at most a few at a time, and flushed with the next few: a power cut takes any of these.
const YOUNGER_INDEXES_MAX: usize = 8;

/// The unit in which a drive writes whole or not at all.
const BLOCK_BYTES: usize = 512;

/// Bits of a block that differ at most where it was written and has changed since. A block of another index differs in more.
const CHANGED_BITS_MAX: u32 = 8;

/// Bytes of entries in a block from which on it tells one index from another: a whole entry, with its checksum.
const ENTRY_BYTES_LEAST: usize = format::section::RECORD_BYTES;

impl<F: FnMut(Step<'_>)> Scrub<'_, F> {
    /// Tells of the segments without an index, and writes it where all their chunks are known.
    pub(super) fn indexes<B: Bank, M: Buffers>(
        &mut self,
        reader: &mut Reader<'_, B, M>,
    ) -> Result<(), CreateError> {
        for &(member, segment) in &self.catalog.unindexed {
            let image = &self.image.members[usize::from(member)];
            let chunks = self.chunks(member, segment);
            let Some(&(place, record)) = chunks.first() else { continue };
            let entry = Entry { place, record };
            let fault = self.index_fault(reader, image, segment, &chunks)?;
            let mut finding = Finding { entry, fault, repair: Repair::None };
            if self.all_known(member, segment, &chunks) {
                finding.repair = Repair::Possible;
                if self.repair {
                    write_index(reader, image.drive, &image.layout, segment, &chunks)?;
                    self.written.push(member);
                    finding.repair = Repair::Done;
                }
            }
            (self.each)(Step::Found(&finding));
        }
        Ok(())
    }

    /// Whether a segment whose index does not count now has one that contradicts this chunk, or another known chunk of the segment.
    /// If this chunk were written back, the index could count again, and the chunk that it contradicts could no longer be read. Until
    /// then, parity returns this chunk.
    pub(super) fn index_denies<B: Bank, M: Buffers>(
        &self,
        reader: &mut Reader<'_, B, M>,
        entry: &Entry,
        chunk: &[u8],
    ) -> Result<bool, CreateError> {
        let image = &self.image.members[usize::from(entry.place.member)];
        let segment = image.layout.segment_at(entry.place.offset);
        let Ok((place, record)) = ChunkRecord::read(chunk) else { return Ok(true) };
        if image.segments.get(segment as usize).is_some_and(indexed) {
            return Ok(false);
        }
        // An index that is longer is not read.
        let longest = image.layout.segment_bytes.min(reader.buffer_bytes().into());
        let mut found = |length| match tail(reader, image.drive, &image.layout, segment, length) {
            Ok(found) => Ok(Some(found)),
            Err(ReadError::Device { .. }) => Ok(None),
            Err(error) => Err(error),
        };
        let footer = found(PAGE_BYTES as usize)?.and_then(|page| Footer::read(&page).ok());
        let footer = footer.filter(|footer| footer.suits(&place, image.layout.segment_bytes));
        let Some(footer) = footer else { return Ok(false) };
        let length = index::tail_length(footer.entries.into());
        if length > longest {
            return Ok(false);
        }
        let entries = found(length as usize)?.and_then(|tail| footer.entries(&tail).ok());
        let mut known = self.chunks(entry.place.member, segment);
        known.push((place, record));
        let denies = |(at, listed): &(Place, ChunkRecord)| {
            known.iter().any(|(place, record)| {
                at.offset == place.offset && listed.sequence == record.sequence && listed != record
            })
        };
        Ok(entries.is_some_and(|entries| entries.iter().any(denies)))
    }

    /// Whether these are all chunks of the segment, one behind the other, and leave room for their index.
    fn all_known(&self, member: u16, segment: u64, chunks: &[(Place, ChunkRecord)]) -> bool {
        let image = &self.image.members[usize::from(member)];
        let last = chunks.last().map(|(_, record)| record.sequence);
        let all = match image.segments[segment as usize] {
            Segment::Live(live) => !live.indexed || Some(live.last_sequence) == last,
            Segment::Empty => true,
        };
        let fits = written_index(&image.layout, segment, chunks).is_some();
        all && fits && !self.hiding.contains(&(member, segment))
    }

    /// Why a segment with these chunks has no index that counts.
    fn index_fault<B: Bank, M: Buffers>(
        &self,
        reader: &mut Reader<'_, B, M>,
        image: &MemberImage,
        segment: u64,
        chunks: &[(Place, ChunkRecord)],
    ) -> Result<Fault, CreateError> {
        if !recent(image, chunks) {
            return Ok(Fault::Index);
        }
        let written = written_index(&image.layout, segment, chunks);
        let length = written.as_ref().map_or(PAGE_BYTES as usize, Vec::len);
        let found = match tail(reader, image.drive, &image.layout, segment, length) {
            Ok(found) => found,
            // A crash leaves nothing that can't be read.
            Err(ReadError::Device { .. }) => return Ok(Fault::Index),
            Err(error) => return Err(error.into()),
        };
        // The footer lies in one block: no crash tears it.
        let footer_changed = Footer::read(&found) == Err(Damage::HeaderChecksum);
        let changed = written.is_some_and(|written| has_changed(&written, &found, chunks.len()));
        Ok(if footer_changed || changed { Fault::Index } else { Fault::TornIndex })
    }
}

/// Whether the segment of these chunks is among those of the member whose index a crash may have torn: few younger ones have
/// one that counts.
fn recent(image: &MemberImage, chunks: &[(Place, ChunkRecord)]) -> bool {
    let last = chunks.last().map_or(0, |(_, record)| record.sequence);
    let younger = |segment: &&Segment| matches!(segment, Segment::Live(live) if live.indexed && live.first_sequence > last);
    image.segments.iter().filter(younger).count() <= YOUNGER_INDEXES_MAX
}

/// The tail of the index that a recording writes for these chunks; None if they leave no room for it, so that they can't be all.
fn written_index(
    layout: &Layout,
    segment: u64,
    chunks: &[(Place, ChunkRecord)],
) -> Option<Vec<u8>> {
    let (place, _) = chunks.first()?;
    // Of chunks that were written again only the newest are listed: then the index had more entries.
    let mut end = layout.segment_offset(segment);
    for (place, record) in chunks {
        if place.offset != end {
            return None;
        }
        end += u64::from(record.summary.length);
    }
    let used: u64 = chunks.iter().map(|(_, chunk)| u64::from(chunk.summary.length)).sum();
    let section_bytes = layout.segment_bytes.checked_sub(used)?;
    let offset = layout.segment_offset(segment) + used;
    (section_bytes >= index::length_for(chunks.len() as u64))
        .then(|| index::encode(&Place { offset, ..*place }, section_bytes, chunks).tail)
}

/// The last bytes of a segment.
fn tail<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
    layout: &Layout,
    segment: u64,
    length: usize,
) -> Result<Vec<u8>, ReadError> {
    let offset = layout.segment_offset(segment + 1) - length as u64;
    reader.one(Range { drive, offset, length: length as u32 })
}

/// Whether some block is that of the index but for a few bits: it was written, and has changed since.
fn has_changed(written: &[u8], found: &[u8], entries: usize) -> bool {
    let from = written.len().saturating_sub(index::entries_bytes(entries));
    let blocks = written.chunks(BLOCK_BYTES).zip(found.chunks(BLOCK_BYTES));
    // What lies before the entries is zeros, as it may have been before.
    let tells = |at: usize| (at + 1) * BLOCK_BYTES >= from + ENTRY_BYTES_LEAST;
    let differ = |(written, found): (&[u8], &[u8])| -> u32 {
        written.iter().zip(found).map(|(one, other)| (one ^ other).count_ones()).sum()
    };
    let mut differing =
        blocks.enumerate().filter(|(at, _)| tells(*at)).map(|(_, block)| differ(block));
    differing.any(|bits| (1..=CHANGED_BITS_MAX).contains(&bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_bits_are_a_change_and_a_block_that_was_not_written_is_none() {
        let written: Vec<u8> = (0..4096u32).map(|at| (at * 7 % 251) as u8).collect();
        let old = vec![0xA5; 4096];
        assert!(!has_changed(&written, &written, 8));
        assert!(!has_changed(&written, &old, 8));
        let torn = [&written[..2048], &old[2048..]].concat();
        assert!(!has_changed(&written, &torn, 8));
        let mut flipped = torn.clone();
        flipped[1900] ^= 0x10;
        assert!(has_changed(&written, &flipped, 8));
        // Before the entries nothing tells one index from another.
        let mut before = written.clone();
        before[10] ^= 1;
        assert!(!has_changed(&written, &before, 2));
    }
}
