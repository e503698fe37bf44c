//! Recovery is opening: superblocks, then each segment's first and last page, then a walk through
//! the segments that have no index (`docs/format.md`, section 7).

mod discover;
mod error;
mod segments;
mod validate;
pub(crate) mod walk;
mod written;

use base::{Bank, Buffers, DriveId};
use format::superblock::Protected;
use format::{ChunkRecord, Layout, Place, Superblock};
use uuid::Uuid;

use crate::reader::Reader;
pub(crate) use discover::{Copies, superblock_copies};
use discover::{Found, discover};
pub use discover::{is_unfinished, superblock};
pub use error::OpenError;
pub(crate) use segments::untimed_ns;
use validate::{Members, validate};
pub use written::Written;

/// Sequence numbers left out when an array is opened: chunks behind a hole may bear them. A recorder
/// whose clock goes right starts from the time anyway; no chunk takes less than the microsecond that
/// a number stands for.
const SEQUENCE_GAP: u64 = 1 << 16;

/// The drive of a member that was not among those that were opened.
const NOT_THERE: DriveId = DriveId(u16::MAX);

/// What a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Nothing that counts.
    Empty,
    /// Chunks.
    Live(Live),
}

/// A segment's contents in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// Number of its first chunk.
    pub first_sequence: u64,
    /// Number of its last chunk.
    pub last_sequence: u64,
    /// Earliest packet time in ns since 1970; all ones without packets.
    pub first_ns: u64,
    /// Latest packet time; 0 without packets.
    pub last_ns: u64,
    /// Whether a sound index stands at its end.
    pub indexed: bool,
    /// How many chunks it holds.
    pub chunks: u32,
}

impl Segment {
    /// Adds a chunk behind those it holds.
    pub(crate) fn take_in(&mut self, record: &ChunkRecord) {
        let s = &record.summary;
        *self = Self::Live(match *self {
            Self::Empty => Live {
                first_sequence: record.sequence,
                last_sequence: record.sequence,
                first_ns: s.first_ns,
                last_ns: s.last_ns,
                indexed: false,
                chunks: 1,
            },
            Self::Live(live) => Live {
                last_sequence: record.sequence,
                chunks: live.chunks + 1,
                first_ns: live.first_ns.min(s.first_ns),
                last_ns: live.last_ns.max(s.last_ns),
                ..live
            },
        });
    }
}

/// A segment and its chunks: the one with a member's latest chunk, for one.
#[derive(Clone, Debug)]
pub struct HeadImage {
    /// Zero-based index of the segment.
    pub segment: u64,
    /// Bytes of sound chunks in it.
    pub used: u64,
    /// Place and record of each chunk, in order.
    pub chunks: Vec<(Place, ChunkRecord)>,
    /// Whether its index is written: recording goes on in the next one.
    pub closed: bool,
    /// The record of its last chunk; None if that can't be read.
    pub newest: Option<ChunkRecord>,
    /// The latest packet time that the ring had given up when its last chunk was written, ns since 1970; 0 if nothing, None if
    /// that chunk's record can't be read.
    pub reused_to_ns: Option<u64>,
}

/// One member as it was found.
#[derive(Clone, Debug)]
pub struct MemberImage {
    /// The bank's drive.
    pub drive: DriveId,
    /// How it is divided.
    pub layout: Layout,
    /// Its segments.
    pub segments: Vec<Segment>,
    /// Where writing goes on; None if it is empty.
    pub head: Option<HeadImage>,
    /// Full segments whose index a crash left unwritten. Recording writes them first.
    pub unindexed: Vec<HeadImage>,
    /// Whether the ring may trim segments on it.
    pub trims: bool,
    /// Whether a segment begins with a chunk of this array that belongs elsewhere, or can't be read at either end. What the
    /// segment held is lost without a record, and may have been the newest chunks.
    pub lost_segment: bool,
    /// Segments that begin with a chunk without packets, as the last chunk of a take is: the segment, and when that chunk was
    /// sealed, in ns since 1970.
    pub untimed: Vec<(u64, u64)>,
}

impl MemberImage {
    /// Whether it was not there when the array was opened.
    pub fn is_missing(&self) -> bool {
        self.segments.is_empty()
    }

    /// The chunks of a segment that has no index and was looked into when it was opened.
    pub(crate) fn walked_chunks(&self, segment: u64) -> Option<&[(Place, ChunkRecord)]> {
        let one = self.walked().find(|one| one.segment == segment && !one.closed)?;
        Some(&one.chunks)
    }

    /// The segments that were looked into when it was opened. A crash may have left its newest chunk in any of them: in front of that
    /// chunk a power cut may bring back the segment's older contents.
    pub(crate) fn walked(&self) -> impl Iterator<Item = &HeadImage> {
        self.head.iter().chain(&self.unindexed)
    }
}

/// An array as it was found. Members are in the array's order; the bank's drives need not be.
#[derive(Clone, Debug)]
pub struct ArrayImage {
    /// Its identity.
    pub uuid: Uuid,
    /// The superblock of member 0, with the highest generation.
    pub superblock: Superblock,
    /// The members, all of them.
    pub members: Vec<MemberImage>,
    /// Least number for the next chunk; a take starts at its time in microseconds if that is more.
    pub next_sequence: u64,
    /// What a ring must not reuse.
    pub protected: Vec<Protected>,
    /// Whether some copy of a superblock is damaged or older than the newest: a change of them was
    /// cut short, or a member was not there. A recording begins by writing them all again.
    pub superblocks_differ: bool,
    /// Members whose first copy is not the one that counts. It is written before the other one, which is the only good one.
    pub first_copies_bad: Vec<u16>,
    /// What was found wrong and did not hinder opening, in words.
    pub remarks: Vec<String>,
    /// What the recorder said of the take under way before the members were read: chunks with later numbers are left out. None
    /// without a recording, or if it was not asked.
    pub written: Option<Written>,
}

/// How an array is opened to read from it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look<'a> {
    /// Whether more members may be missing than there is parity, and what can't be read is passed over.
    pub degraded: bool,
    /// What an earlier look has found: chunks that it walked over are not read again where they still stand.
    pub known: Option<&'a ArrayImage>,
    /// What the recorder says of the take under way. Its chunks through there need not be read to know that they are whole.
    pub written: Option<&'a Written>,
    /// Whether chunks of takes that have ended are left unread, too, where the member's records tell that it was flushed then. For
    /// readers: they hear of damage once they read a chunk. A recorder goes on behind the last chunk that is sound.
    pub by_records: bool,
}

/// Opens the array that all of the bank's drives belong to.
///
/// # Errors
/// [`OpenError`]; nothing was written.
pub fn open<B: Bank, M: Buffers>(reader: &mut Reader<'_, B, M>) -> Result<ArrayImage, OpenError> {
    open_some(reader, false)
}

/// Opens what there is of an array. As many members may be missing as it has parity; for reading more, and what can't be
/// read is passed over, if `degraded`. A missing member has a [`MemberImage`] without segments, and drive `u16::MAX`.
///
/// # Errors
/// [`OpenError`]; nothing was written.
pub fn open_some<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    degraded: bool,
) -> Result<ArrayImage, OpenError> {
    open_to_read(reader, Look { degraded, ..Look::default() })
}

/// Opens what there is of an array, to read from it and not to record on it.
///
/// # Errors
/// [`OpenError`].
pub fn open_to_read<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    look: Look<'_>,
) -> Result<ArrayImage, OpenError> {
    let found = discover(reader)?;
    let Members { newest, drives, remarks } = validate(&found, look.degraded)?;
    fits_buffers(reader.buffer_bytes(), &found)?;
    let count = drives.len() as u16;
    let there = (0u16..).zip(&drives).filter_map(|(member, drive)| {
        let (drive, array) = ((*drive)?, newest.array);
        let layout = found[drive.index()].superblock.layout;
        Some((drive, layout, Place { array, member, members: count, offset: 0 }))
    });
    let mut read = segments::read(reader, &there.collect::<Vec<_>>(), look)?.into_iter();
    let member = |(member, drive): (u16, &Option<DriveId>)| {
        drive.and_then(|_| read.next()).unwrap_or_else(|| missing_member(&newest, member))
    };
    let members: Vec<MemberImage> = (0..).zip(&drives).map(member).collect();
    let superblocks_differ = found.iter().any(|Found { superblock, copies, .. }| {
        *copies != Copies::Same
            || superblock.generation < newest.generation
            || superblock.members != newest.members
    });
    let first_copy_bad = |found: &&Found| found.copies == Copies::Last;
    Ok(ArrayImage {
        uuid: newest.array,
        protected: newest.protected.clone(),
        next_sequence: last_sequence(&members).map_or(0, |last| last + SEQUENCE_GAP),
        superblocks_differ,
        first_copies_bad: found
            .iter()
            .filter(first_copy_bad)
            .map(|found| found.superblock.member)
            .collect(),
        superblock: newest,
        members,
        remarks,
        written: look.written.cloned(),
    })
}

/// Whether a chunk of any member fits into a buffer.
fn fits_buffers(buffer_bytes: u32, found: &[Found]) -> Result<(), OpenError> {
    let longest = found.iter().map(|found| found.superblock.layout.chunk_max).max();
    let needed_bytes = longest.unwrap_or(0);
    if buffer_bytes < needed_bytes {
        return Err(OpenError::Buffers { buffer_bytes, needed_bytes });
    }
    Ok(())
}

fn missing_member(newest: &Superblock, member: u16) -> MemberImage {
    // Members of one size are divided alike, and others as those are.
    let capacity = newest.members[usize::from(member)].capacity_bytes;
    let Layout { segment_bytes, chunk_max, .. } = newest.layout;
    MemberImage {
        drive: NOT_THERE,
        layout: Layout::new(capacity, segment_bytes, chunk_max).unwrap_or(newest.layout),
        segments: Vec::new(),
        head: None,
        unindexed: Vec::new(),
        trims: false,
        lost_segment: false,
        untimed: Vec::new(),
    }
}

/// The greatest number of a chunk that was found.
fn last_sequence(members: &[MemberImage]) -> Option<u64> {
    let segments = members.iter().flat_map(|member| &member.segments);
    segments
        .filter_map(|s| if let Segment::Live(live) = s { Some(live.last_sequence) } else { None })
        .max()
}
