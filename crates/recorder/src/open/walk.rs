//! The chunks of a segment without an index: their headers one after another, then all bodies with as many commands under way as
//! there are buffers.

use base::{Bank, Buffers, DeviceError, DriveId};
use format::chunk::check_body;
use format::{ChunkRecord, Damage, Layout, PAGE_BYTES, Place};

use super::OpenError;
use crate::reader::{Range, ReadError, Reader};

/// Read at a time to find headers: several short chunks, and little of a long one.
const LOOK_BYTES: u64 = 256 << 10;

/// The sound chunks of a segment, from its start to the first one that doesn't check.
///
/// # Errors
/// [`OpenError::Read`] if the drive or the bank fails.
pub(crate) fn walk<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
    layout: &Layout,
    at: &Place,
    segment: u64,
) -> Result<Vec<(Place, ChunkRecord)>, OpenError> {
    go_on(reader, drive, layout, at, segment, &[])
}

/// The same behind chunks that an earlier walk has found, if they still stand.
///
/// # Errors
/// As [`walk`].
pub(super) fn go_on<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
    layout: &Layout,
    at: &Place,
    segment: u64,
    known: &[(Place, ChunkRecord)],
) -> Result<Vec<(Place, ChunkRecord)>, OpenError> {
    let mut walk = Walk { reader, drive, layout, at, segment };
    let known = if walk.stands(known)? { known } else { &[] };
    let mut chunks = known.to_vec();
    let unreadable = walk.headers(&mut chunks)?;
    let sound = walk.bodies(&chunks[known.len()..])?;
    let is_whole = known.len() + sound == chunks.len();
    chunks.truncate(known.len() + sound);
    // What can't be read behind a chunk that doesn't check is behind the end.
    match unreadable.filter(|_| is_whole) {
        Some(error) => Err(error.into()),
        None => Ok(chunks),
    }
}

/// Reads a chunk header that must lie at `place`.
pub(super) fn chunk_at(bytes: &[u8], place: &Place) -> Result<ChunkRecord, Damage> {
    let (found, record) = ChunkRecord::read(bytes)?;
    let here =
        found.array == place.array && found.member == place.member && found.offset == place.offset;
    if here { Ok(record) } else { Err(Damage::Elsewhere) }
}

/// A walk through a segment.
struct Walk<'a, 'b, B: Bank, M: Buffers> {
    reader: &'a mut Reader<'b, B, M>,
    drive: DriveId,
    layout: &'a Layout,
    /// A place on the member; the offset does not count.
    at: &'a Place,
    segment: u64,
}

impl<B: Bank, M: Buffers> Walk<'_, '_, B, M> {
    /// Whether the first and the last of these chunks lie where they were found. A ring writes over the first one first; a copy that
    /// somebody has put back may lack the last one.
    fn stands(&mut self, known: &[(Place, ChunkRecord)]) -> Result<bool, OpenError> {
        let (Some(first), Some(last)) = (known.first(), known.last()) else { return Ok(false) };
        let ends = [first, last];
        let drive = self.drive;
        let length = PAGE_BYTES as u32;
        let ranges = ends.map(|(place, _)| Range { drive, offset: place.offset, length });
        let mut stands = true;
        self.reader.scatter(&ranges, |at, page| {
            let (place, record) = ends[at];
            let found = page.ok().and_then(|page| chunk_at(page, place).ok());
            stands &= found.as_ref() == Some(record);
        })?;
        Ok(stands)
    }

    /// Adds chunks as their headers tell, up to the first one that doesn't check or can't be read; that error is returned.
    fn headers(
        &mut self,
        chunks: &mut Vec<(Place, ChunkRecord)>,
    ) -> Result<Option<ReadError>, OpenError> {
        let end = self.layout.segment_offset(self.segment) + self.layout.segment_bytes;
        let look_bytes = LOOK_BYTES.min(self.reader.buffer_bytes().into());
        let behind = |(place, record): &(Place, ChunkRecord)| {
            place.offset + u64::from(record.summary.length)
        };
        let start = self.layout.segment_offset(self.segment);
        let mut offset = chunks.last().map_or(start, behind);
        while offset + PAGE_BYTES <= end {
            let length = look_bytes.min(end - offset) as u32;
            let bytes = match self.reader.one(Range { drive: self.drive, offset, length }) {
                Ok(bytes) => bytes,
                Err(error @ ReadError::Device { .. }) => return Ok(Some(error)),
                Err(error) => return Err(error.into()),
            };
            let mut within = 0;
            while let Some(rest) = bytes.get(within..).filter(|rest| !rest.is_empty()) {
                let place = Place { offset: offset + within as u64, ..*self.at };
                let found = chunk_at(rest, &place).ok();
                let follows = |record: &ChunkRecord| {
                    self.fits(&place, record) && is_behind(chunks.last(), record)
                };
                let Some(record) = found.filter(follows) else { return Ok(None) };
                chunks.push((place, record));
                within += record.summary.length as usize;
            }
            offset += within as u64;
        }
        Ok(None)
    }

    /// Whether a chunk of this length may lie there.
    fn fits(&self, place: &Place, record: &ChunkRecord) -> bool {
        let length = record.summary.length;
        let end = self.layout.segment_offset(self.segment) + self.layout.segment_bytes;
        u64::from(length) >= PAGE_BYTES
            && length <= self.layout.chunk_max
            && place.offset + u64::from(length) <= end
    }

    /// How many of the chunks, from the first one on, have the bodies that their headers tell of.
    fn bodies(&mut self, chunks: &[(Place, ChunkRecord)]) -> Result<usize, OpenError> {
        let drive = self.drive;
        let range = |(place, record): &(Place, ChunkRecord)| Range {
            drive,
            offset: place.offset,
            length: record.summary.length,
        };
        let ranges: Vec<Range> = chunks.iter().map(range).collect();
        // The first chunk that is not sound, and why it can't be read.
        let mut first: (usize, Option<DeviceError>) = (chunks.len(), None);
        self.reader.scatter(&ranges, |at, read| {
            let wrong = match read {
                Ok(bytes) => check_body(bytes, &chunks[at].1).err().map(|_| None),
                Err(error) => Some(Some(error)),
            };
            if let Some(error) = wrong.filter(|_| at < first.0) {
                first = (at, error);
            }
        })?;
        match first {
            (at, Some(error)) => Err(self.reader.error(ranges[at], error).into()),
            (at, None) => Ok(at),
        }
    }
}

/// Whether a chunk may follow the last one. A later take starts behind everything that was found when it did.
fn is_behind(last: Option<&(Place, ChunkRecord)>, record: &ChunkRecord) -> bool {
    last.is_none_or(|(_, last)| {
        record.sequence > last.sequence
            && (record.take == last.take || record.take.first_sequence > last.sequence)
    })
}
