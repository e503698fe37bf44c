//! Names what is damaged in segments without an index, and what that hides: a walk ends at the first chunk that doesn't check.
//! Only what a take lacks is named: behind the end of what was recorded anything may lie.

use std::collections::HashSet;

use base::{Bank, Buffers};
use format::chunk::check_body;
use format::{ChunkRecord, Damage, PAGE_BYTES, Place};

use super::{Fault, Scrub, Step};
use crate::create::CreateError;
use crate::extract::Unreadable;
use crate::open::Segment;
use crate::reader::{Range, ReadError, Reader};
use crate::takes::{Entry, Gap};

impl<F: FnMut(Step<'_>)> Scrub<'_, F> {
    /// Looks for the chunks that takes lack behind those that are known of each segment without an index.
    pub(super) fn hidden_chunks<B: Bank, M: Buffers>(
        &mut self,
        reader: &mut Reader<'_, B, M>,
    ) -> Result<(), CreateError> {
        let gaps: Vec<Gap> = self.catalog.takes().into_iter().flat_map(|take| take.gaps).collect();
        if gaps.is_empty() {
            return Ok(());
        }
        // A write that failed may have happened all the same: the chunk that stands in for it is listed.
        let replaced: HashSet<u64> =
            self.catalog.entries.iter().filter_map(|entry| entry.record.replaces).collect();
        let image = self.image;
        for (at, member) in (0u16..).zip(&image.members) {
            for (number, segment) in (0u64..).zip(&member.segments) {
                // What is younger than a footer that closes the segment was not flushed when the power was cut.
                let last = match segment {
                    Segment::Live(live) if live.indexed => {
                        if !self.catalog.unindexed.contains(&(at, number)) {
                            continue;
                        }
                        live.last_sequence
                    }
                    Segment::Live(_) | Segment::Empty => u64::MAX,
                };
                let chunks = self.chunks(at, number);
                let layout = &member.layout;
                let start = layout.segment_offset(number);
                let known = chunks.last();
                let from = known.map_or(start, |(p, c)| p.offset + u64::from(c.summary.length));
                let end = start + layout.segment_bytes;
                let place = Place {
                    array: image.uuid,
                    member: at,
                    members: image.members.len() as u16,
                    offset: from,
                };
                let lacked = |record: &ChunkRecord| {
                    let number = record.sequence;
                    let in_gap =
                        |gap: &Gap| (gap.first_sequence..=gap.last_sequence).contains(&number);
                    number <= last
                        && !replaced.contains(&record.replaces.unwrap_or(number))
                        && gaps.iter().any(in_gap)
                };
                if self.behind(reader, &place, end, known.is_some(), lacked)? {
                    self.hiding.insert((at, number));
                }
            }
        }
        Ok(())
    }

    /// Looks from a place to its segment's end for chunks whose numbers takes lack, page by page; in a segment of which no chunk is
    /// known only as far as one follows the other. Returns whether there are any.
    fn behind<B: Bank, M: Buffers>(
        &mut self,
        reader: &mut Reader<'_, B, M>,
        from: &Place,
        end: u64,
        by_page: bool,
        lacked: impl Fn(&ChunkRecord) -> bool,
    ) -> Result<bool, CreateError> {
        let mut any = false;
        let drive = self.image.members[usize::from(from.member)].drive;
        let window = if by_page { u64::from(reader.buffer_bytes()) } else { PAGE_BYTES };
        let mut offset = from.offset;
        while offset < end {
            let length = window.min(end - offset) as u32;
            let bytes = match reader.one(Range { drive, offset, length }) {
                Ok(bytes) => bytes,
                Err(ReadError::Device { .. }) => return Ok(any),
                Err(error) => return Err(error.into()),
            };
            let mut within = 0;
            while within < bytes.len() as u64 {
                let place = Place { offset: offset + within, ..*from };
                let record = ChunkRecord::read(&bytes[within as usize..]);
                let found = record.ok().filter(|(there, record)| {
                    *there == place
                        && record.parity.is_none()
                        && offset + within + u64::from(record.summary.length) <= end
                        && !self.by_number.contains_key(&record.sequence)
                        && lacked(record)
                });
                let Some((place, record)) = found else {
                    if !by_page {
                        return Ok(any);
                    }
                    within += PAGE_BYTES;
                    continue;
                };
                let length = record.summary.length;
                let whole = reader.one(Range { drive, offset: place.offset, length });
                let fault = match whole {
                    Ok(bytes) if check_body(&bytes, &record).is_ok() => Fault::Hidden,
                    Ok(_) => Fault::Chunk(Unreadable::Damaged(Damage::BodyChecksum)),
                    Err(ReadError::Device { error, .. }) => Fault::Chunk(Unreadable::Device(error)),
                    Err(error) => return Err(error.into()),
                };
                self.found(reader, Entry { place, record }, fault, None)?;
                any = true;
                within += u64::from(length);
            }
            offset += within;
        }
        Ok(any)
    }
}
