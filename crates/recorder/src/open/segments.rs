//! What a member's segments hold: each one's first and last page tell, and a walk where the index is missing.

use base::{Bank, Buffers, DriveId};
use format::index::{self, Footer};
use format::{ChunkRecord, Layout, PAGE_BYTES, Place};

use super::walk::{self, At, chunk_at};
use super::{HeadImage, Live, Look, MemberImage, OpenError, Segment};
use crate::reader::{Range, ReadError, Reader};

/// Reads one member's segments. Those that can't be read count as empty in a degraded look.
///
/// # Errors
/// [`OpenError::Read`] if the drive or the bank fails.
pub(super) fn read<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
    layout: Layout,
    place: Place,
    look: Look<'_>,
) -> Result<MemberImage, OpenError> {
    let known = look.known.filter(|known| known.uuid == place.array);
    let known = known.and_then(|known| known.members.get(usize::from(place.member)));
    let known = known.filter(|known| known.layout == layout);
    let mut member = Member { reader, drive, layout, place, look, known };
    let ends = member.ends()?;
    let lost_segment = ends.iter().any(|ends| ends.lost);
    let untimed = (0..).zip(&ends).filter_map(|(at, ends)| Some((at, ends.untimed_ns?))).collect();
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
                    head_image = Some(member.closed_head(segment, &footer)?);
                }
            }
            // A head whose first chunk's body is torn holds nothing: recording goes on at its start. What the ring has overwritten
            // stands in that chunk's header.
            None => {
                let (state, mut found) = member.open(segment)?;
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
    let trims = member.trims();
    let head = head_image;
    Ok(MemberImage { drive, layout, segments, head, unindexed, trims, lost_segment, untimed })
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
}

/// A member whose segments are being read.
struct Member<'a, 'b, B: Bank, M: Buffers> {
    reader: &'a mut Reader<'b, B, M>,
    drive: DriveId,
    layout: Layout,
    /// A place on it; the offset does not count.
    place: Place,
    look: Look<'a>,
    /// As it was at an earlier look.
    known: Option<&'a MemberImage>,
}

impl<B: Bank, M: Buffers> Member<'_, '_, B, M> {
    /// The ends of all segments.
    fn ends(&mut self) -> Result<Vec<Ends>, OpenError> {
        let Self { drive, layout, place, .. } = *self;
        let ranges: Vec<Range> = (0..layout.segments)
            .flat_map(|segment| {
                let start = layout.segment_offset(segment);
                let end = start + layout.segment_bytes - PAGE_BYTES;
                [start, end].map(|offset| Range { drive, offset, length: PAGE_BYTES as u32 })
            })
            .collect();
        let mut ends = vec![Ends::default(); layout.segments as usize];
        let mut unreadable = Vec::new();
        let mut failed = None;
        self.reader.scatter(&ranges, |index, bytes| match bytes {
            Ok(bytes) if index % 2 == 0 => {
                let place = Place { offset: ranges[index].offset, ..place };
                let ends = &mut ends[index / 2];
                let first = chunk_at(bytes, &place).ok();
                ends.first = first.map(|record| record.sequence);
                ends.reused_to_ns = first.map(|record| record.reused_to_ns);
                ends.untimed_ns = first.and_then(|record| untimed_ns(&record));
                let of_array =
                    ChunkRecord::read(bytes).is_ok_and(|(found, _)| found.array == place.array);
                ends.lost = of_array && ends.first.is_none();
            }
            Ok(bytes) => {
                let footer = Footer::read(bytes).ok();
                ends[index / 2].footer =
                    footer.filter(|footer| footer.suits(&place, layout.segment_bytes));
            }
            Err(error) => {
                unreadable.extend((index % 2 == 0).then_some(index / 2));
                failed = Some((index, error));
            }
        })?;
        if let Some((index, error)) = failed.filter(|_| !self.look.degraded) {
            return Err(self.reader.error(ranges[index], error).into());
        }
        // An index tells of a first page that can't be read. One that reads as something else was written over.
        for at in unreadable {
            ends[at].first = ends[at].footer.map(|footer| footer.first_sequence);
            ends[at].lost |= ends[at].first.is_none();
        }
        Ok(ends)
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
        let chunks = match walk::go_on(self.reader, at, segment, look.written, known) {
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
