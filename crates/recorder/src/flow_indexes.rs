//! The flow indexes of segments: found, looked up and written (`docs/format.md`, section 11).

use std::collections::HashSet;
use std::ops::Range;

use base::{Bank, BankError, Buffers, DriveId, Operation};
use format::flow_index::{self, FlowIndex, Subject};
use format::index::Footer;
use format::{ChunkRecord, Layout, PAGE_BYTES, Place};

use crate::create::{self, CreateError};
use crate::open::{ArrayImage, HeadImage, MemberImage, Segment};
use crate::protocol::FlowIndexPart;
use crate::reader::{self, Reader};
use crate::takes::{Catalog, Entry};

/// A segment that has, or may be given, a flow index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedSegment {
    /// Its member.
    pub member: u16,
    /// Which of the member's.
    pub segment: u64,
    /// What the index of its chunks says; None if the segment is not full.
    pub footer: Option<Footer>,
    /// Its flow index; None if it has none that belongs to these chunks.
    pub flows: Option<FlowIndex>,
    /// The one that it may be given.
    pub room: Room,
    /// Where the chunks lie that it covers, or would: bytes on the drive.
    pub extent: Range<u64>,
}

/// Where a segment's flow index goes, and what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The member's drive.
    pub drive: DriveId,
    /// Offset on the drive in bytes.
    pub offset: u64,
    /// Pages that it may take; fewer than two hold nothing.
    pub pages_max: u32,
    /// The chunks that it is about.
    pub subject: Subject,
}

impl Room {
    /// In a full segment.
    pub fn in_full(drive: DriveId, layout: &Layout, segment: u64, footer: &Footer) -> Self {
        let (start, _) = flow_index::room(footer, layout.segment_bytes);
        Self {
            drive,
            offset: layout.segment_offset(segment) + start,
            pages_max: flow_index::pages_max(footer, layout.segment_bytes),
            subject: Subject::from(footer),
        }
    }

    /// A flow index that goes there, in the segment of this number.
    pub fn part(&self, segment: u64, bytes: Vec<u8>) -> FlowIndexPart {
        FlowIndexPart {
            member: self.subject.member,
            segment,
            sequences: self.subject.sequences,
            offset: self.offset,
            bytes: bytes.into(),
        }
    }

    /// In a segment that is not full and holds these chunks, in order. None if there are none.
    pub fn in_open(
        drive: DriveId,
        layout: &Layout,
        segment: u64,
        chunks: &[(Place, ChunkRecord)],
    ) -> Option<Self> {
        let ((place, first), (last_place, last)) = (chunks.first()?, chunks.last()?);
        let start = layout.segment_offset(segment);
        let offset = start + flow_index::open_start(layout.segment_bytes);
        let used = last_place.offset + u64::from(last.summary.length);
        let free = if used <= offset { flow_index::reserve(layout.segment_bytes) } else { 0 };
        let sequences = (first.sequence, last.sequence);
        Some(Self {
            drive,
            offset,
            pages_max: (free / PAGE_BYTES) as u32,
            subject: Subject::open(place.array, place.member, sequences, used - start),
        })
    }
}

impl IndexedSegment {
    /// What its flow index is about, or would be.
    fn subject(&self) -> &Subject {
        self.flows.as_ref().map_or(&self.room.subject, |flows| &flows.subject)
    }

    /// Whether a chunk that was listed in this segment is one of those that the index is about. A ring may have reused the segment
    /// since: then its chunks have greater numbers, and so do those that followed in a segment that was not full. What parity names
    /// may lie behind them all.
    pub fn is_about(&self, entry: &Entry) -> bool {
        let (first, last) = self.subject().sequences;
        (first..=last).contains(&entry.record.sequence) && self.extent.contains(&entry.place.offset)
    }

    /// Whether it has a flow index for which every chunk of it was read.
    pub fn is_complete(&self) -> bool {
        let is_whole = |flows: &FlowIndex| flows.unread == 0 && flows.subject == self.room.subject;
        self.flows.as_ref().is_some_and(is_whole)
    }
}

/// Which segments that are not full have room at their end: behind their chunks, lost or older ones may lie that parity or a scrub
/// still finds.
#[derive(Debug)]
pub struct FreeRoom {
    /// A take lacks chunks, which may lie anywhere.
    anything_lost: bool,
    /// Members and segments in which chunks are listed behind those that were found in order.
    occupied: HashSet<(u16, u64)>,
}

impl FreeRoom {
    /// By what is listed of all time.
    pub fn of(image: &ArrayImage, catalog: &Catalog) -> Self {
        let behind_head = |entry: &Entry| {
            let member = entry.place.member;
            let image = &image.members[usize::from(member)];
            let segment = image.layout.segment_at(entry.place.offset);
            let head = open_head(image, segment)?;
            let used = image.layout.segment_offset(segment) + head.used;
            (entry.place.offset >= used).then_some((member, segment))
        };
        Self {
            anything_lost: catalog.takes().iter().any(|take| !take.gaps.is_empty()),
            occupied: catalog.entries.iter().filter_map(behind_head).collect(),
        }
    }

    /// Whether a flow index may be written to a segment.
    pub fn is_in(&self, one: &IndexedSegment) -> bool {
        let is_full = one.footer.is_some();
        is_full || !(self.anything_lost || self.occupied.contains(&(one.member, one.segment)))
    }
}

/// Those of the segments, given by member and number, whose chunks are known: of full ones by an index of their chunks that counts, and
/// the one of each member that is being filled. In a full one, what lies between its chunks and that index belongs to nothing else.
///
/// # Errors
/// [`BankError`] if the bank fails. What a drive fails to read counts as not there.
pub fn find<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    segments: &[(u16, u64)],
) -> Result<Vec<IndexedSegment>, BankError> {
    let there = segments.iter().filter(|(at, _)| !image.members[usize::from(*at)].is_missing());
    let there: Vec<(u16, u64)> = there.copied().collect();
    let footers = footers(reader, image, &there)?;
    let mut found: Vec<IndexedSegment> = Vec::new();
    for (&(member, segment), footer) in there.iter().zip(footers) {
        let member_image = &image.members[usize::from(member)];
        let (drive, layout) = (member_image.drive, &member_image.layout);
        let room = match &footer {
            Some(footer) => Some(Room::in_full(drive, layout, segment, footer)),
            None => open_head(member_image, segment)
                .and_then(|head| Room::in_open(drive, layout, segment, &head.chunks)),
        };
        let start = layout.segment_offset(segment);
        let end = start + layout.segment_bytes - footer.map_or(0, |footer| footer.section_bytes);
        let extent = start..end;
        found.extend(room.map(|room| IndexedSegment {
            member,
            segment,
            footer,
            flows: None,
            room,
            extent,
        }));
    }
    let firsts: Vec<reader::Range> =
        found.iter().map(|one| page(one.room.drive, one.room.offset)).collect();
    reader.scatter(&firsts, |at, read| {
        let one = &mut found[at];
        let segment_bytes = image.members[usize::from(one.member)].layout.segment_bytes;
        let Subject { array, member, sequences: (first, _), .. } = one.room.subject;
        one.flows = read.ok().and_then(|bytes| match &one.footer {
            Some(footer) => FlowIndex::read(bytes, footer, segment_bytes).ok(),
            None => FlowIndex::read_open(bytes, array, member, first, segment_bytes).ok(),
        });
        if let Some(bytes) = one.subject().open_bytes {
            one.extent.end = one.extent.start + bytes;
        }
    })?;
    Ok(found)
}

fn page(drive: DriveId, offset: u64) -> reader::Range {
    reader::Range { drive, offset, length: PAGE_BYTES as u32 }
}

/// A member's head if it is in this segment, and goes on there.
fn open_head(member: &MemberImage, segment: u64) -> Option<&HeadImage> {
    member.head.as_ref().filter(|head| head.segment == segment && !head.closed)
}

/// What the indexes of full segments' chunks say, where they count.
fn footers<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    segments: &[(u16, u64)],
) -> Result<Vec<Option<Footer>>, BankError> {
    let ends = segments.iter().map(|&(member, segment)| {
        let member = &image.members[usize::from(member)];
        page(member.drive, member.layout.segment_offset(segment + 1) - PAGE_BYTES)
    });
    let mut footers = vec![None; segments.len()];
    reader.scatter(&ends.collect::<Vec<_>>(), |at, read| {
        footers[at] = read.ok().and_then(|bytes| Footer::read(bytes).ok());
    })?;
    for (&(member, segment), footer) in segments.iter().zip(&mut footers) {
        let array = image.uuid;
        let place = Place { array, member, members: image.members.len() as u16, offset: 0 };
        let member_image = &image.members[usize::from(member)];
        // The end of a segment that is being written may still hold the index of the lap before.
        footer.take_if(|footer| {
            let counts = match member_image.segments.get(segment as usize) {
                Some(Segment::Live(live)) => {
                    live.indexed
                        && (live.first_sequence, live.last_sequence)
                            == (footer.first_sequence, footer.last_sequence)
                }
                _ => false,
            };
            !counts || !footer.suits(&place, member_image.layout.segment_bytes)
        });
    }
    Ok(footers)
}

/// For each segment, the columns that may hold each of its keys, which are given by their hashes. A key of which nothing is known, as
/// the segment has no flow index or that is damaged, may be in all of them.
///
/// # Errors
/// [`BankError`] if the bank fails.
pub fn columns<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
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
    let range = |&(at, page): &(usize, u32)| reader::Range {
        drive: segments[at].room.drive,
        offset: segments[at].room.offset + (u64::from(page) + 1) * PAGE_BYTES,
        length: PAGE_BYTES as u32,
    };
    let ranges: Vec<reader::Range> = pages.iter().map(range).collect();
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

/// Writes a segment's flow index, its first page last, so that one that was cut short is none. It is durable after the next flush.
///
/// # Errors
/// [`CreateError`] if the drive fails.
///
/// # Panics
/// If there is no room for it.
pub fn write<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    room: &Room,
    bytes: &[u8],
) -> Result<(), CreateError> {
    let most = u64::from(room.pages_max) * PAGE_BYTES;
    assert!(bytes.len() as u64 <= most, "{} bytes in {most}", bytes.len());
    let (first, table) = bytes.split_at(PAGE_BYTES as usize);
    create::write(reader, room.drive, room.offset + PAGE_BYTES, table)?;
    create::write(reader, room.drive, room.offset, first)
}

/// Makes durable what was written to a drive.
///
/// # Errors
/// [`CreateError`] if the drive fails.
pub fn flush<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
) -> Result<(), CreateError> {
    create::run(reader, drive, Operation::Flush)
}
