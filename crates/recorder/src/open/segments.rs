//! What a member's segments hold: each one's first and last page tell, and a walk where the index is missing.

use base::{Bank, Buffers, DriveId};
use format::index::{self, Footer};
use format::{ChunkRecord, Layout, PAGE_BYTES, Place};
use uuid::Uuid;

use super::walk::{self, At, Told, chunk_at};
use super::{HeadImage, Live, Look, MemberImage, OpenError, Segment};
use crate::reader::{Range, ReadError, Reader};
use crate::take_records::{Kept, TakeRecords};

/// A member to read: its drive, how that is divided, and a place on it, whose offset does not count.
pub(super) type There = (DriveId, Layout, Place);

/// Reads the segments of these members. Those that can't be read count as empty in a degraded look.
///
/// # Errors
/// [`OpenError::Read`] if a drive or the bank fails.
pub(super) fn read<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    members: &[There],
    look: Look<'_>,
) -> Result<Vec<MemberImage>, OpenError> {
    let ends = ends(reader, members, look.degraded)?;
    let array = members.first().map_or(Uuid::nil(), |(_, _, place)| place.array);
    let records = if look.by_records {
        let drives = members.iter().map(|(drive, ..)| *drive).collect();
        TakeRecords::read_on(reader, array, drives).map_err(ReadError::from)?
    } else {
        TakeRecords::default()
    };
    let known = look.known.filter(|known| known.uuid == array);
    let read = |(&(drive, layout, place), ends): (&There, Vec<Ends>)| {
        let known = known.and_then(|known| known.members.get(usize::from(place.member)));
        let known = known.filter(|known| known.layout == layout);
        let kept = records.kept_by(drive);
        Member { reader, drive, layout, place, look, kept, known }.image(ends)
    };
    members.iter().zip(ends).map(read).collect()
}

/// Contents of a segment's first and last page.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    /// The number of its first chunk.
    first: Option<u64>,
    footer: Option<Footer>,
    /// The latest packet time that the ring had overwritten when its first chunk was placed, in ns since 1970.
    reused_to_ns: Option<u64>,
    /// When its first chunk was sealed, in ns since 1970, if that has no packets.
    untimed_ns: Option<u64>,
    /// Whether it begins with a chunk of the array that belongs elsewhere, or neither end can be read.
    lost: bool,
    /// Whether its first page can't be read.
    unreadable: bool,
}

impl Ends {
    /// Takes in the first page, which lies there.
    fn take_first(&mut self, bytes: &[u8], place: &Place) {
        let first = chunk_at(bytes, place).ok();
        self.first = first.map(|record| record.sequence);
        self.reused_to_ns = first.map(|record| record.reused_to_ns);
        self.untimed_ns = first.and_then(|record| untimed_ns(&record));
        let of_array = ChunkRecord::read(bytes).is_ok_and(|(found, _)| found.array == place.array);
        self.lost = of_array && self.first.is_none();
    }
}

/// A member whose segments are being read.
struct Member<'a, 'b, B: Bank, M: Buffers> {
    reader: &'a mut Reader<'b, B, M>,
    drive: DriveId,
    layout: Layout,
    /// A place on it; the offset does not count.
    place: Place,
    look: Look<'a>,
    /// What it has of takes that have ended.
    kept: Kept,
    /// As it was at an earlier look.
    known: Option<&'a MemberImage>,
}

impl<B: Bank, M: Buffers> Member<'_, '_, B, M> {
    /// What its segments hold, as their ends and the chunks of those without an index tell.
    fn image(mut self, ends: Vec<Ends>) -> Result<MemberImage, OpenError> {
        let lost_segment = ends.iter().any(|ends| ends.lost);
        let untimed =
            (0..).zip(&ends).filter_map(|(at, ends)| Some((at, ends.untimed_ns?))).collect();
        let head = (0..ends.len()).max_by_key(|&at| ends[at].first);
        let mut segments = Vec::with_capacity(ends.len());
        let (mut head_image, mut unindexed) = (None, Vec::new());
        for (at, ends) in ends.into_iter().enumerate() {
            let Some(first) = ends.first else {
                segments.push(Segment::Empty);
                continue;
            };
            let (segment, is_head) = (at as u64, Some(at) == head);
            match ends.footer.filter(|footer| footer.first_sequence == first) {
                Some(footer) => {
                    segments.push(closed(&footer));
                    if is_head {
                        head_image = Some(self.closed_head(segment, &footer)?);
                    }
                }
                // A head whose first chunk's body is torn holds nothing: recording goes on at its start. What the ring has overwritten
                // stands in that chunk's header.
                None => {
                    let (state, mut found) = self.open(segment)?;
                    found.reused_to_ns = found.reused_to_ns.or(ends.reused_to_ns);
                    segments.push(state);
                    if is_head {
                        head_image = Some(found);
                    } else if !found.chunks.is_empty() {
                        unindexed.push(found);
                    }
                }
            }
        }
        let trims = self.trims();
        let Self { drive, layout, .. } = self;
        let head = head_image;
        Ok(MemberImage { drive, layout, segments, head, unindexed, trims, lost_segment, untimed })
    }

    /// The newest segment, if its index is written.
    fn closed_head(&mut self, segment: u64, footer: &Footer) -> Result<HeadImage, OpenError> {
        let used = self.layout.segment_bytes - footer.section_bytes;
        let last = last_record(self.reader, self.drive, &self.layout, segment, footer)?;
        let reused_to_ns = last.map(|record| record.reused_to_ns);
        Ok(HeadImage {
            segment,
            used,
            chunks: Vec::new(),
            closed: true,
            newest: last,
            reused_to_ns,
        })
    }

    /// A segment without an index, as far as its chunks are sound.
    fn open(&mut self, segment: u64) -> Result<(Segment, HeadImage), OpenError> {
        let Self { drive, layout, place, look, .. } = *self;
        let known = self.known.and_then(|member| member.walked_chunks(segment)).unwrap_or_default();
        let at = At { drive, layout: &layout, place: &place };
        let told = Told { written: look.written, kept: Some(&self.kept) };
        let chunks = match walk::go_on(self.reader, at, segment, told, known) {
            Err(OpenError::Read(ReadError::Device { .. })) if self.look.degraded => Vec::new(),
            walked => walked?,
        };
        let mut state = Segment::Empty;
        chunks.iter().for_each(|(_, record)| state.take_in(record));
        let used = chunks.iter().map(|(_, c)| u64::from(c.summary.length)).sum();
        let newest = chunks.last().map(|(_, record)| *record);
        let reused_to_ns = newest.map(|record| record.reused_to_ns);
        Ok((state, HeadImage { segment, used, chunks, closed: false, newest, reused_to_ns }))
    }

    /// Whether a segment can be trimmed alone.
    fn trims(&self) -> bool {
        let unit = self.reader.bank.drives()[self.drive.index()].trim_unit_bytes;
        unit.map(u64::from).is_some_and(|unit| {
            self.layout.segment_bytes.is_multiple_of(unit)
                && self.layout.segment_offset(0).is_multiple_of(unit)
        })
    }
}

/// The ends of all segments of all members.
fn ends<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    members: &[There],
    degraded: bool,
) -> Result<Vec<Vec<Ends>>, OpenError> {
    let of_member = |(at, (_, layout, _)): (usize, &There)| {
        (0..layout.segments).flat_map(move |segment| [(at, segment, false), (at, segment, true)])
    };
    let pages: Vec<(usize, u64, bool)> = members.iter().enumerate().flat_map(of_member).collect();
    let range = |&(at, segment, is_last): &(usize, u64, bool)| {
        let (drive, layout, _) = members[at];
        let start = layout.segment_offset(segment);
        let offset = if is_last { start + layout.segment_bytes - PAGE_BYTES } else { start };
        Range { drive, offset, length: PAGE_BYTES as u32 }
    };
    let ranges: Vec<Range> = pages.iter().map(range).collect();
    let mut all: Vec<Vec<Ends>> = members
        .iter()
        .map(|(_, layout, _)| vec![Ends::default(); layout.segments as usize])
        .collect();
    let mut failed = None;
    reader.scatter(&ranges, |index, bytes| {
        let (at, segment, is_last) = pages[index];
        let (_, layout, place) = &members[at];
        let ends = &mut all[at][segment as usize];
        match bytes {
            Ok(bytes) if is_last => {
                let footer = Footer::read(bytes).ok();
                ends.footer = footer.filter(|footer| footer.suits(place, layout.segment_bytes));
            }
            Ok(bytes) => ends.take_first(bytes, &Place { offset: ranges[index].offset, ..*place }),
            Err(error) => {
                ends.unreadable |= !is_last;
                failed = Some((index, error));
            }
        }
    })?;
    if let Some((index, error)) = failed.filter(|_| !degraded) {
        return Err(reader.error(ranges[index], error).into());
    }
    // Where a first page can't be read, the index tells which chunk it was. A page that reads as something else was overwritten.
    for ends in all.iter_mut().flatten().filter(|ends| ends.unreadable) {
        ends.first = ends.footer.map(|footer| footer.first_sequence);
        ends.lost |= ends.first.is_none();
    }
    Ok(all)
}

/// When a chunk was sealed, in ns since 1970, if it has no packets.
pub(crate) fn untimed_ns(record: &ChunkRecord) -> Option<u64> {
    (record.summary.packets == 0).then_some(record.summary.sealed_ns)
}

/// A segment as its index has it.
fn closed(footer: &Footer) -> Segment {
    Segment::Live(Live {
        first_sequence: footer.first_sequence,
        last_sequence: footer.last_sequence,
        first_ns: footer.first_ns,
        last_ns: footer.last_ns,
        indexed: true,
        chunks: footer.entries,
    })
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
