//! The flow indexes of full segments: found, looked up and written (`docs/format.md`, section 11).

use base::{Bank, BankError, Buffers, Operation};
use format::flow_index::{self, FlowIndex};
use format::index::Footer;
use format::{PAGE_BYTES, Place};

use crate::create::{self, CreateError};
use crate::open::{ArrayImage, Segment};
use crate::reader::{Range, Reader};
use crate::takes::Entry;

/// A full segment whose index of chunks is whole, and its flow index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedSegment {
    /// Its member.
    pub member: u16,
    /// Which of the member's.
    pub segment: u64,
    /// What the index of its chunks says.
    pub footer: Footer,
    /// Its flow index; None if it has none that belongs to these chunks.
    pub flows: Option<FlowIndex>,
}

impl IndexedSegment {
    /// Whether a chunk that was listed in this segment is one of those that the index is about. A ring may have reused the segment
    /// since: then its chunks have greater numbers.
    pub fn is_about(&self, entry: &Entry) -> bool {
        (self.footer.first_sequence..=self.footer.last_sequence).contains(&entry.record.sequence)
    }

    /// Where its flow index starts on the member, in bytes.
    fn start(&self, image: &ArrayImage) -> u64 {
        let layout = &image.members[usize::from(self.member)].layout;
        let (start, _) = flow_index::room(&self.footer, layout.segment_bytes);
        layout.segment_offset(self.segment) + start
    }
}

/// Those of the segments, given by member and number, that are full and have an index of their chunks that counts, in the same order.
/// What lies between their chunks and that index belongs to nothing else.
///
/// # Errors
/// [`BankError`] if the bank fails. What a drive fails to read counts as not there.
pub fn find<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    segments: &[(u16, u64)],
) -> Result<Vec<IndexedSegment>, BankError> {
    let page = |member: u16, offset| Range {
        drive: image.members[usize::from(member)].drive,
        offset,
        length: PAGE_BYTES as u32,
    };
    let there: Vec<(u16, u64)> = segments
        .iter()
        .filter(|(member, _)| !image.members[usize::from(*member)].is_missing())
        .copied()
        .collect();
    let ends = there.iter().map(|&(member, segment)| {
        let layout = &image.members[usize::from(member)].layout;
        page(member, layout.segment_offset(segment + 1) - PAGE_BYTES)
    });
    let mut footers = vec![None; there.len()];
    reader.scatter(&ends.collect::<Vec<_>>(), |at, read| {
        footers[at] = read.ok().and_then(|bytes| Footer::read(bytes).ok());
    })?;
    let mut found: Vec<IndexedSegment> = Vec::new();
    for (&(member, segment), footer) in there.iter().zip(&footers) {
        let Some(footer) = *footer else { continue };
        let array = image.uuid;
        let place = Place { array, member, members: image.members.len() as u16, offset: 0 };
        let member_image = &image.members[usize::from(member)];
        // The end of a segment that is being written may still hold the index of the lap before.
        let counts = match member_image.segments.get(segment as usize) {
            Some(Segment::Live(live)) => {
                live.indexed
                    && (live.first_sequence, live.last_sequence)
                        == (footer.first_sequence, footer.last_sequence)
            }
            _ => false,
        };
        if counts && footer.suits(&place, member_image.layout.segment_bytes) {
            found.push(IndexedSegment { member, segment, footer, flows: None });
        }
    }
    let firsts: Vec<Range> = found.iter().map(|one| page(one.member, one.start(image))).collect();
    reader.scatter(&firsts, |at, read| {
        let one = &mut found[at];
        let segment_bytes = image.members[usize::from(one.member)].layout.segment_bytes;
        one.flows =
            read.ok().and_then(|bytes| FlowIndex::read(bytes, &one.footer, segment_bytes).ok());
    })?;
    Ok(found)
}

/// For each segment, the columns that may hold each of its keys, which are given by their hashes. A key of which nothing is known, as
/// the segment has no flow index or that is damaged, may be in all of them.
///
/// # Errors
/// [`BankError`] if the bank fails.
pub fn columns<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    segments: &[IndexedSegment],
    hashes: &[Vec<u64>],
) -> Result<Vec<Vec<u64>>, BankError> {
    let mut pages: Vec<(usize, u32)> = Vec::new();
    for (at, (one, hashes)) in segments.iter().zip(hashes).enumerate() {
        let Some(flows) = &one.flows else { continue };
        pages.extend(hashes.iter().map(|&hash| (at, flows.page(hash))));
    }
    pages.sort_unstable();
    pages.dedup();
    let range = |&(at, page): &(usize, u32)| Range {
        drive: image.members[usize::from(segments[at].member)].drive,
        offset: segments[at].start(image) + (u64::from(page) + 1) * PAGE_BYTES,
        length: PAGE_BYTES as u32,
    };
    let ranges: Vec<Range> = pages.iter().map(range).collect();
    let mut columns: Vec<Vec<u64>> = hashes.iter().map(|list| vec![u64::MAX; list.len()]).collect();
    reader.scatter(&ranges, |which, read| {
        let (at, page) = pages[which];
        let (Some(flows), Ok(bytes)) = (&segments[at].flows, read) else { return };
        for (&hash, columns) in hashes[at].iter().zip(&mut columns[at]) {
            if flows.page(hash) == page {
                *columns = flows.columns(bytes, hash).unwrap_or(u64::MAX);
            }
        }
    })?;
    Ok(columns)
}

/// Writes a segment's flow index, which has room there, and then its first page, so that one that was cut short is none. It is durable
/// after the next flush.
///
/// # Errors
/// [`CreateError`] if the drive fails.
///
/// # Panics
/// If it is longer than the room between the segment's chunks and the index of them.
pub fn write<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    segment: &IndexedSegment,
    bytes: &[u8],
) -> Result<(), CreateError> {
    let member = &image.members[usize::from(segment.member)];
    let (_, room) = flow_index::room(&segment.footer, member.layout.segment_bytes);
    assert!(bytes.len() as u64 <= room, "{} bytes in {room}", bytes.len());
    let (first, table) = bytes.split_at(PAGE_BYTES as usize);
    let start = segment.start(image);
    create::write(reader, member.drive, start + PAGE_BYTES, table)?;
    create::write(reader, member.drive, start, first)
}

/// Makes durable what was written to a member.
///
/// # Errors
/// [`CreateError`] if the drive fails.
pub fn flush<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    member: u16,
) -> Result<(), CreateError> {
    create::run(reader, image.members[usize::from(member)].drive, Operation::Flush)
}
