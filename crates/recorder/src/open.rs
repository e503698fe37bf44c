//! Recovery is opening: superblocks, then each segment's first and last page, then a walk through
//! the segments that have no index (`docs/format.md`, section 7).

use std::fmt;

use base::{Bank, Buffers, DriveId, Geometry};
use format::chunk::check_body;
use format::index::{self, Footer};
use format::layout::SUPERBLOCK_BYTES;
use format::superblock::Protected;
use format::{ChunkRecord, Damage, Layout, PAGE_BYTES, Place, Superblock};
use uuid::Uuid;

use crate::planted::{Bug, is_planted};
use crate::reader::{Range, ReadError, Reader};
use crate::superblocks::members_now;

/// Sequence numbers left out when an array is opened: chunks behind a hole may bear them. A recorder
/// whose clock goes right starts from the time anyway; no chunk takes less than the microsecond that
/// a number stands for.
pub(crate) const SEQUENCE_GAP: u64 = 1 << 16;

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
            },
            Self::Live(live) => Live {
                last_sequence: record.sequence,
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
    /// Which.
    pub segment: u64,
    /// Bytes of sound chunks in it.
    pub used: u64,
    /// They.
    pub chunks: Vec<(Place, ChunkRecord)>,
    /// Whether its index is written: recording goes on in the next one.
    pub closed: bool,
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
}

impl MemberImage {
    /// Whether it was not there when the array was opened.
    pub fn is_missing(&self) -> bool {
        self.segments.is_empty()
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
}

/// Why an array can't be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// A drive has no sound superblock.
    NotMember {
        /// Which.
        drive: String,
        /// What stands there instead.
        damage: Damage,
    },
    /// Two drives belong to different arrays.
    Foreign {
        /// The one that doesn't belong.
        drive: String,
        /// Its array's name.
        name: String,
        /// The name of the others' array.
        expected: String,
    },
    /// Two drives say that they are the same member.
    Twice {
        /// The one.
        first: String,
        /// The other.
        second: String,
        /// Which member.
        member: u16,
    },
    /// Another drive has taken this one's place in the meantime.
    Stale {
        /// Which.
        drive: String,
        /// The array's name.
        name: String,
        /// The member that it was.
        member: u16,
        /// What took its place.
        replaced_by: String,
    },
    /// The drive is to become a member, and its rebuild is under way or was cut short.
    Unfinished {
        /// Which.
        drive: String,
        /// The array's name.
        name: String,
        /// The member that it will be.
        member: u16,
    },
    /// Members are missing.
    Missing {
        /// The array's name.
        name: String,
        /// Which, and what they are.
        members: Vec<(u16, String)>,
    },
    /// The drive is smaller than its superblock says.
    Shrunk {
        /// Which.
        drive: String,
        /// What there is.
        capacity_bytes: u64,
        /// What there was.
        expected_bytes: u64,
    },
    /// The buffers are too small for the array's chunks.
    Buffers {
        /// What there is.
        buffer_bytes: u32,
        /// What it takes.
        needed_bytes: u32,
    },
    /// Reading failed.
    Read(ReadError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMember { drive, damage: damage @ Damage::Newer { .. } } => {
                write!(f, "{drive}: {damage}")
            }
            Self::NotMember { drive, damage } => write!(
                f,
                "{drive} is not a member of a Longtake array ({damage}): read without it by --degraded, or create one with `longtake array create`"
            ),
            Self::Foreign { drive, name, expected } => write!(
                f,
                "{drive} belongs to array '{name}', not to '{expected}': name the members of one array only"
            ),
            Self::Twice { first, second, member } => write!(
                f,
                "{first} and {second} both say they are member {member}: one is a copy of the other, leave one out"
            ),
            Self::Stale { drive, name, member, replaced_by } => write!(
                f,
                "{drive} was member {member} of array '{name}' until it was replaced by {replaced_by}: what it holds is out of date, leave it out"
            ),
            Self::Unfinished { drive, name, member } => write!(
                f,
                "{drive} is to become member {member} of array '{name}', and its rebuild is under way or was cut short: leave it out, or go on with `longtake array rebuild`"
            ),
            Self::Missing { name, members } => {
                write!(f, "array '{name}' lacks ")?;
                for (at, (member, identity)) in members.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}member {member} ({identity})")?;
                }
                f.write_str(": name all members; to read without them, give --degraded")
            }
            Self::Shrunk { drive, capacity_bytes, expected_bytes } => write!(
                f,
                "{drive} has {capacity_bytes} bytes but was made a member with {expected_bytes}: was the file cut or the drive exchanged? Read without it by --degraded"
            ),
            Self::Buffers { buffer_bytes, needed_bytes } => write!(
                f,
                "buffers of {buffer_bytes} bytes are too small for this array's chunks of {needed_bytes}"
            ),
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

impl<E: Into<ReadError>> From<E> for OpenError {
    fn from(error: E) -> Self {
        Self::Read(error.into())
    }
}

/// Whether a superblock marks a drive that does not count yet: a lost member is being rebuilt on it.
pub const fn is_unfinished(superblock: &Superblock) -> bool {
    superblock.generation == 0
}

/// Reads one drive's superblock: the sound copy with the greater generation.
///
/// # Errors
/// [`OpenError::NotMember`] if neither copy is sound, [`OpenError::Read`] if the bank fails.
pub fn superblock<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
) -> Result<Superblock, OpenError> {
    superblock_copies(reader, drive).map(|(superblock, _)| superblock)
}

/// How a superblock's two copies were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    /// Both are sound and of one generation.
    Same,
    /// The first one counts.
    First,
    /// The one at the end counts.
    Last,
}

/// The same, and how both copies were found.
pub(crate) fn superblock_copies<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
) -> Result<(Superblock, Copies), OpenError> {
    let Geometry { name, capacity_bytes, .. } = reader.bank.drives()[drive.index()].clone();
    if capacity_bytes < 2 * SUPERBLOCK_BYTES {
        return Err(OpenError::NotMember { drive: name, damage: Damage::Short });
    }
    let offsets = [0, Layout::copy_offset(capacity_bytes)];
    let ranges = offsets.map(|offset| Range { drive, offset, length: SUPERBLOCK_BYTES as u32 });
    let mut read: [Result<Superblock, Damage>; 2] = [Err(Damage::Short), Err(Damage::Short)];
    let mut failed = None;
    reader.scatter(&ranges, |at, bytes| match bytes {
        Ok(bytes) => read[at] = Superblock::read(bytes, offsets[at]),
        Err(error) => failed = Some((at, error)),
    })?;
    let [first, copy] = read;
    match (first, copy) {
        (Ok(first), Ok(last)) if last.generation > first.generation => Ok((last, Copies::Last)),
        (Ok(first), Ok(last)) if last.generation == first.generation => Ok((first, Copies::Same)),
        (Ok(first), _) => Ok((first, Copies::First)),
        (Err(_), Ok(last)) => Ok((last, Copies::Last)),
        (Err(damage), Err(_)) => match failed {
            Some((at, error)) => Err(reader.error(ranges[at], error).into()),
            None => Err(OpenError::NotMember { drive: name, damage }),
        },
    }
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
    let names: Vec<String> = reader.bank.drives().iter().map(|g| g.name.clone()).collect();
    let mut superblocks = Vec::new();
    let (mut superblocks_differ, mut first_copies_bad) = (false, Vec::new());
    for at in 0..names.len() {
        let (superblock, copies) = superblock_copies(reader, DriveId(at as u16))?;
        superblocks_differ |= copies != Copies::Same;
        if copies == Copies::Last {
            first_copies_bad.push(superblock.member);
        }
        superblocks.push(superblock);
    }
    // Before anything is taken from the newest: it may be the other array's.
    if let Some(at) = superblocks.iter().position(|found| found.array != superblocks[0].array) {
        return Err(OpenError::Foreign {
            drive: names[at].clone(),
            name: superblocks[at].name.clone(),
            expected: superblocks[0].name.clone(),
        });
    }
    let mut newest = superblocks
        .iter()
        .max_by_key(|s| s.generation)
        .cloned()
        .ok_or_else(|| OpenError::Missing { name: String::new(), members: Vec::new() })?;
    newest.members = members_now(&superblocks, &newest);
    let mut places: Vec<Option<DriveId>> = vec![None; newest.members.len()];
    let mut remarks = Vec::new();
    for (at, found) in superblocks.iter().enumerate() {
        let Some(place) = places.get_mut(usize::from(found.member)) else {
            return Err(OpenError::NotMember {
                drive: names[at].clone(),
                damage: Damage::Elsewhere,
            });
        };
        let (drive, name) = (names[at].clone(), newest.name.clone());
        let member = found.member;
        if is_unfinished(found) {
            return Err(OpenError::Unfinished { drive, name, member });
        }
        let (row, own) =
            (&newest.members[usize::from(member)], &found.members[usize::from(member)]);
        if own.joined_ns < row.joined_ns {
            let replaced_by = row.identity.clone();
            return Err(OpenError::Stale { drive, name, member, replaced_by });
        }
        if let Some(first) = place.replace(DriveId(at as u16)) {
            return Err(OpenError::Twice {
                first: names[first.index()].clone(),
                second: names[at].clone(),
                member: found.member,
            });
        }
        let capacity_bytes = reader.bank.drives()[at].capacity_bytes;
        let needed = found.layout.segment_offset(found.layout.segments);
        if capacity_bytes < needed {
            return Err(OpenError::Shrunk {
                drive: names[at].clone(),
                capacity_bytes,
                expected_bytes: newest.members[usize::from(found.member)].capacity_bytes,
            });
        }
        if found.generation < newest.generation {
            remarks.push(format!(
                "{} missed {} changes of the superblock; the newest one counts",
                names[at],
                newest.generation - found.generation
            ));
        }
    }
    let missing: Vec<(u16, String)> = (0u16..)
        .zip(&places)
        .filter(|(_, place)| place.is_none())
        .map(|(at, _)| (at, newest.members[usize::from(at)].identity.clone()))
        .collect();
    if !missing.is_empty() {
        let by_parity = missing.len() <= usize::from(newest.parity);
        if !degraded && !by_parity {
            return Err(OpenError::Missing { name: newest.name.clone(), members: missing });
        }
        for (member, identity) in &missing {
            let why = if by_parity { ": what it holds is had by parity" } else { "" };
            remarks.push(format!("member {member} ({identity}) is missing{why}"));
        }
    }
    let needed = superblocks.iter().map(|s| s.layout.chunk_max).max().unwrap_or(0);
    if reader.buffer_bytes() < needed {
        return Err(OpenError::Buffers {
            buffer_bytes: reader.buffer_bytes(),
            needed_bytes: needed,
        });
    }
    let members_count = newest.members.len() as u16;
    let mut members = Vec::new();
    for (at, place) in (0u16..).zip(&places) {
        let Some(drive) = *place else {
            // Members of one size are divided alike, and others as those are.
            let capacity = newest.members[usize::from(at)].capacity_bytes;
            let Layout { segment_bytes, chunk_max, .. } = newest.layout;
            let layout = Layout::new(capacity, segment_bytes, chunk_max).unwrap_or(newest.layout);
            let drive = NOT_THERE;
            members.push(MemberImage {
                drive,
                layout,
                segments: Vec::new(),
                head: None,
                unindexed: Vec::new(),
                trims: false,
            });
            continue;
        };
        let layout = superblocks[drive.index()].layout;
        let at = Place { array: newest.array, member: at, members: members_count, offset: 0 };
        members.push(member(reader, drive, layout, &at, degraded)?);
    }
    let last = members
        .iter()
        .flat_map(|m| &m.segments)
        .filter_map(|s| if let Segment::Live(live) = s { Some(live.last_sequence) } else { None })
        .max();
    Ok(ArrayImage {
        uuid: newest.array,
        protected: newest.protected.clone(),
        next_sequence: last.map_or(0, |last| last + SEQUENCE_GAP),
        superblocks_differ: superblocks_differ
            || superblocks
                .iter()
                .any(|s| s.generation < newest.generation || s.members != newest.members),
        first_copies_bad,
        superblock: newest,
        members,
        remarks,
    })
}

/// Reads one member's segments.
fn member<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
    layout: Layout,
    at: &Place,
    past_unreadable: bool,
) -> Result<MemberImage, OpenError> {
    let page = PAGE_BYTES as u32;
    let ranges: Vec<Range> = (0..layout.segments)
        .flat_map(|segment| {
            let start = layout.segment_offset(segment);
            let end = start + layout.segment_bytes - PAGE_BYTES;
            [start, end].map(|offset| Range { drive, offset, length: page })
        })
        .collect();
    let mut firsts: Vec<Option<u64>> = vec![None; layout.segments as usize];
    let mut footers: Vec<Option<Footer>> = vec![None; layout.segments as usize];
    let mut failed = None;
    let mut unreadable = vec![false; layout.segments as usize];
    reader.scatter(&ranges, |index, bytes| match bytes {
        Ok(bytes) if index % 2 == 0 => {
            let place = Place { offset: ranges[index].offset, ..*at };
            firsts[index / 2] = chunk_at(bytes, &place).ok().map(|record| record.sequence);
        }
        Ok(bytes) => {
            footers[index / 2] =
                Footer::read(bytes).ok().filter(|footer| footer.suits(at, layout.segment_bytes));
        }
        Err(error) => {
            unreadable[index / 2] |= index % 2 == 0;
            failed = Some((index, error));
        }
    })?;
    if let Some((index, error)) = failed.filter(|_| !past_unreadable) {
        return Err(reader.error(ranges[index], error).into());
    }
    // An index tells of a first page that can't be read. One that reads as something else was written over.
    for segment in (0..unreadable.len()).filter(|&segment| unreadable[segment]) {
        firsts[segment] = footers[segment].map(|footer| footer.first_sequence);
    }
    let head = (0..layout.segments).max_by_key(|&segment| firsts[segment as usize]);
    let head = head.filter(|&segment| firsts[segment as usize].is_some());
    let mut segments = Vec::with_capacity(layout.segments as usize);
    let (mut head_image, mut unindexed) = (None, Vec::new());
    for segment in 0..layout.segments {
        let Some(first) = firsts[segment as usize] else {
            segments.push(Segment::Empty);
            continue;
        };
        let footer = footers[segment as usize].filter(|footer| footer.first_sequence == first);
        let is_head = Some(segment) == head;
        let mut state = Segment::Empty;
        match footer {
            Some(footer) => {
                state = Segment::Live(Live {
                    first_sequence: first,
                    last_sequence: footer.last_sequence,
                    first_ns: footer.first_ns,
                    last_ns: footer.last_ns,
                    indexed: true,
                });
                if is_head {
                    let used = layout.segment_bytes - footer.section_bytes;
                    let reused_to_ns = last_record(reader, drive, &layout, segment, &footer)?
                        .map(|record| record.reused_to_ns);
                    let (chunks, closed) = (Vec::new(), true);
                    head_image = Some(HeadImage { segment, used, chunks, closed, reused_to_ns });
                }
            }
            None => {
                let chunks = match walk(reader, drive, &layout, at, segment) {
                    Err(OpenError::Read(ReadError::Device { .. })) if past_unreadable => Vec::new(),
                    walked => walked?,
                };
                for (_, record) in &chunks {
                    state.take_in(record);
                }
                let used = chunks.iter().map(|(_, c)| u64::from(c.summary.length)).sum();
                let reused_to_ns = chunks.last().map(|(_, record)| record.reused_to_ns);
                let found = HeadImage { segment, used, chunks, closed: false, reused_to_ns };
                if is_head {
                    head_image = Some(found);
                } else if !found.chunks.is_empty() {
                    unindexed.push(found);
                }
            }
        }
        segments.push(state);
    }
    // A head whose first chunk's body is torn holds nothing: go on at its start.
    let geometry = &reader.bank.drives()[drive.index()];
    let trims = geometry.trim_unit_bytes.is_some_and(|unit| {
        layout.segment_bytes.is_multiple_of(u64::from(unit))
            && layout.segment_offset(0).is_multiple_of(u64::from(unit))
    });
    Ok(MemberImage { drive, layout, segments, head: head_image, unindexed, trims })
}

/// The record of the last chunk in a segment, by its index; None if the index is damaged.
fn last_record<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
    layout: &Layout,
    segment: u64,
    footer: &Footer,
) -> Result<Option<ChunkRecord>, OpenError> {
    let tail = index::tail_length(u64::from(footer.entries));
    if tail > u64::from(reader.buffer_bytes()) {
        return Ok(None);
    }
    let end = layout.segment_offset(segment) + layout.segment_bytes;
    match reader.one(Range { drive, offset: end - tail, length: tail as u32 }) {
        Ok(bytes) => {
            let entries = footer.entries(&bytes).ok();
            Ok(entries.and_then(|entries| entries.last().map(|(_, record)| *record)))
        }
        // Reading the chunks will tell.
        Err(ReadError::Device { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads a chunk header that must lie at `place`.
fn chunk_at(bytes: &[u8], place: &Place) -> Result<ChunkRecord, Damage> {
    let (found, record) = ChunkRecord::read(bytes)?;
    let here =
        found.array == place.array && found.member == place.member && found.offset == place.offset;
    if here { Ok(record) } else { Err(Damage::Elsewhere) }
}

/// The sound chunks of a segment, from its start to the first one that doesn't check.
///
/// # Errors
/// [`OpenError::Read`] if the drive or the bank fails.
pub fn walk<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
    layout: &Layout,
    at: &Place,
    segment: u64,
) -> Result<Vec<(Place, ChunkRecord)>, OpenError> {
    let start = layout.segment_offset(segment);
    let end = start + layout.segment_bytes;
    let window = u64::from(reader.buffer_bytes());
    let mut chunks: Vec<(Place, ChunkRecord)> = Vec::new();
    let mut offset = start;
    loop {
        let length = window.min(end - offset) as u32;
        if u64::from(length) < PAGE_BYTES {
            return Ok(chunks);
        }
        let bytes = reader.one(Range { drive, offset, length })?;
        let mut within = 0usize;
        loop {
            let rest = &bytes[within..];
            let place = Place { offset: offset + within as u64, ..*at };
            if rest.is_empty() {
                break;
            }
            let Ok(record) = chunk_at(rest, &place) else { return Ok(chunks) };
            // A later take starts behind everything that was found when it did.
            let longer = chunks.last().is_none_or(|(_, last)| {
                record.sequence > last.sequence
                    && (record.take == last.take || record.take.first_sequence > last.sequence)
            }) || is_planted(Bug::OpensPastTheEnd);
            let length = record.summary.length;
            if !longer || length > layout.chunk_max {
                return Ok(chunks);
            }
            match check_body(rest, &record) {
                Ok(()) => {}
                Err(Damage::BodyChecksum) if is_planted(Bug::OpensWithoutChecksum) => {}
                // Cut by the window: read again from here.
                Err(Damage::Short) => break,
                Err(_) => return Ok(chunks),
            }
            chunks.push((place, record));
            within += length as usize;
        }
        if within == 0 {
            return Ok(chunks);
        }
        offset += within as u64;
    }
}
