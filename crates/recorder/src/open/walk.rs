//! The chunks of a segment without an index: their headers one after another, then all bodies with as many commands under way as
//! there are buffers.

use base::{Bank, Buffers, DeviceError, DriveId};
use format::chunk::check_body;
use format::{ChunkRecord, Damage, Layout, PAGE_BYTES, Place};

use super::{OpenError, Written};
use crate::reader::{Range, ReadError, Reader};
use crate::take_records::Kept;

/// Read at a time to find the headers of chunks that are shorter than this.
const LOOK_BYTES: u64 = 256 << 10;

/// Headers that are read at a time where chunks are longer: each where the next one lies if all are as long as the last.
const HEADERS_AT_A_TIME: u64 = 16;

/// A member to walk on.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) drive: DriveId,
    pub(crate) layout: &'a Layout,
    /// A place on it; the offset does not count.
    pub(crate) place: &'a Place,
}

/// What is known of chunks without reading their bodies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told<'a> {
    /// What the recorder of the take under way says.
    pub(crate) written: Option<&'a Written>,
    /// What the member's own records of takes say.
    pub(crate) kept: Option<&'a Kept>,
}

impl Told<'_> {
    /// Whether a chunk whose header lies on this member lies there whole.
    fn covers(&self, member: u16, record: &ChunkRecord) -> bool {
        self.written.is_some_and(|written| written.covers(member, record))
            || self.kept.is_some_and(|kept| kept.covers(record))
    }
}

/// The sound chunks of a segment, from its start to the first one that doesn't check, or that the recorder has not written yet.
///
/// # Errors
/// [`OpenError::Read`] if the drive or the bank fails.
pub(crate) fn walk<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    at: At<'_>,
    segment: u64,
    told: Told<'_>,
) -> Result<Vec<(Place, ChunkRecord)>, OpenError> {
    go_on(reader, at, segment, told, &[])
}

/// The same behind chunks that an earlier walk has found, if they still stand.
///
/// # Errors
/// As [`walk`].
pub(super) fn go_on<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    at: At<'_>,
    segment: u64,
    told: Told<'_>,
    known: &[(Place, ChunkRecord)],
) -> Result<Vec<(Place, ChunkRecord)>, OpenError> {
    let mut walk = Walk { reader, at, segment, told };
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
    at: At<'a>,
    segment: u64,
    told: Told<'a>,
}

impl<B: Bank, M: Buffers> Walk<'_, '_, B, M> {
    /// Whether the first and the last of these chunks lie where they were found. A ring writes over the first one first; a copy that
    /// somebody has put back may lack the last one.
    fn stands(&mut self, known: &[(Place, ChunkRecord)]) -> Result<bool, OpenError> {
        let (Some(first), Some(last)) = (known.first(), known.last()) else { return Ok(false) };
        let ends = [first, last];
        let ranges = ends.map(|(place, _)| self.range(place.offset, PAGE_BYTES as u32));
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
        loop {
            let behind = |(place, record): &(Place, ChunkRecord)| {
                place.offset + u64::from(record.summary.length)
            };
            let offset = chunks.last().map_or(self.start(), behind);
            if offset + PAGE_BYTES > self.end() {
                return Ok(None);
            }
            let last = chunks.last().map_or(0, |(_, record)| u64::from(record.summary.length));
            let ranges = self.ahead(offset, last);
            let mut pages = vec![Err(None); ranges.len()];
            self.reader.scatter(&ranges, |at, read| {
                pages[at] = read.map(<[u8]>::to_vec).map_err(Some);
            })?;
            let before = chunks.len();
            for (range, bytes) in ranges.iter().zip(pages) {
                match bytes {
                    Ok(bytes) if !self.take_headers(&bytes, range.offset, chunks) => {
                        return Ok(None);
                    }
                    // Whether a chunk lies there is known only once those before it are.
                    Err(Some(error))
                        if chunks.last().map_or(self.start(), behind) == range.offset =>
                    {
                        return Ok(Some(self.reader.error(*range, error)));
                    }
                    _ => {}
                }
            }
            debug_assert!(chunks.len() > before, "each turn finds a chunk or ends");
        }
    }

    /// Where headers may lie, from `offset` on, behind a chunk of this length.
    fn ahead(&self, offset: u64, last: u64) -> Vec<Range> {
        let end = self.end();
        let look_bytes = LOOK_BYTES.min(self.reader.buffer_bytes().into());
        if last < look_bytes {
            return vec![self.range(offset, look_bytes.min(end - offset) as u32)];
        }
        let offsets = (0..HEADERS_AT_A_TIME).map(|ahead| offset + ahead * last);
        let within = offsets.take_while(|offset| offset + PAGE_BYTES <= end);
        within.map(|offset| self.range(offset, PAGE_BYTES as u32)).collect()
    }

    /// Adds the chunks whose headers lie in these bytes, if the first of them lies where the last chunk ends. Returns whether further
    /// ones may follow.
    fn take_headers(
        &self,
        bytes: &[u8],
        offset: u64,
        chunks: &mut Vec<(Place, ChunkRecord)>,
    ) -> bool {
        let mut within = 0;
        while let Some(rest) = bytes.get(within..).filter(|rest| !rest.is_empty()) {
            let place = Place { offset: offset + within as u64, ..*self.at.place };
            let behind = |(place, record): &(Place, ChunkRecord)| {
                place.offset + u64::from(record.summary.length)
            };
            if chunks.last().is_some_and(|last| behind(last) != place.offset) {
                // The chunks before are not as long as was thought.
                return true;
            }
            let found = chunk_at(rest, &place).ok();
            let follows = |record: &ChunkRecord| {
                self.fits(&place, record)
                    && is_behind(chunks.last(), record)
                    && self.told.written.is_none_or(|written| record.sequence <= written.through)
            };
            let Some(record) = found.filter(follows) else { return false };
            chunks.push((place, record));
            within += record.summary.length as usize;
        }
        true
    }

    fn start(&self) -> u64 {
        self.at.layout.segment_offset(self.segment)
    }

    fn end(&self) -> u64 {
        self.start() + self.at.layout.segment_bytes
    }

    fn range(&self, offset: u64, length: u32) -> Range {
        Range { drive: self.at.drive, offset, length }
    }

    /// Whether a chunk of this length may lie there.
    fn fits(&self, place: &Place, record: &ChunkRecord) -> bool {
        let length = record.summary.length;
        u64::from(length) >= PAGE_BYTES
            && length <= self.at.layout.chunk_max
            && place.offset + u64::from(length) <= self.end()
    }

    /// How many of the chunks, from the first one on, have the bodies that their headers tell of. Those that are known to be whole
    /// are not read.
    fn bodies(&mut self, chunks: &[(Place, ChunkRecord)]) -> Result<usize, OpenError> {
        let is_whole =
            |(place, record): &(Place, ChunkRecord)| self.told.covers(place.member, record);
        let read: Vec<usize> = (0..chunks.len()).filter(|&at| !is_whole(&chunks[at])).collect();
        let range = |&at: &usize| self.range(chunks[at].0.offset, chunks[at].1.summary.length);
        let ranges: Vec<Range> = read.iter().map(range).collect();
        // The first chunk that is not sound, and why it can't be read.
        let mut first: (usize, Option<(Range, DeviceError)>) = (chunks.len(), None);
        self.reader.scatter(&ranges, |index, bytes| {
            let at = read[index];
            let wrong = match bytes {
                Ok(bytes) => check_body(bytes, &chunks[at].1).err().map(|_| None),
                Err(error) => Some(Some((ranges[index], error))),
            };
            if let Some(error) = wrong.filter(|_| at < first.0) {
                first = (at, error);
            }
        })?;
        match first {
            (_, Some((range, error))) => Err(self.reader.error(range, error).into()),
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
