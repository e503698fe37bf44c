//! Names what is damaged in segments without an index, and what that hides: a walk ends at the first chunk that doesn't check.
//! Only what a take lacks is named: behind the end of what was recorded anything may lie.

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
        let image = self.image;
        for (at, member) in (0u16..).zip(&image.members) {
            for (number, segment) in (0u64..).zip(&member.segments) {
                let walked = match segment {
                    Segment::Live(live) => {
                        !live.indexed || self.catalog.unindexed.contains(&(at, number))
                    }
                    Segment::Empty => true,
                };
                if !walked {
                    continue;
                }
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
                self.behind(reader, &place, end, known.is_some(), &gaps)?;
            }
        }
        Ok(())
    }

    /// Looks from a place to its segment's end, page by page; in a segment of which no chunk is known only as far as one follows
    /// the other.
    fn behind<B: Bank, M: Buffers>(
        &mut self,
        reader: &mut Reader<'_, B, M>,
        from: &Place,
        end: u64,
        by_page: bool,
        gaps: &[Gap],
    ) -> Result<(), CreateError> {
        let drive = self.image.members[usize::from(from.member)].drive;
        let window = if by_page { u64::from(reader.buffer_bytes()) } else { PAGE_BYTES };
        let mut offset = from.offset;
        while offset < end {
            let length = window.min(end - offset) as u32;
            let bytes = match reader.one(Range { drive, offset, length }) {
                Ok(bytes) => bytes,
                Err(ReadError::Device { .. }) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let mut within = 0;
            while within < bytes.len() as u64 {
                let place = Place { offset: offset + within, ..*from };
                let record = ChunkRecord::read(&bytes[within as usize..]);
                let lacked = record.ok().filter(|(there, record)| {
                    let number = record.sequence;
                    *there == place
                        && record.parity.is_none()
                        && offset + within + u64::from(record.summary.length) <= end
                        && !self.by_number.contains_key(&number)
                        && gaps
                            .iter()
                            .any(|g| (g.first_sequence..=g.last_sequence).contains(&number))
                });
                let Some((place, record)) = lacked else {
                    if !by_page {
                        return Ok(());
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
                within += u64::from(length);
            }
            offset += within;
        }
        Ok(())
    }
}
