//! Flow indexes for what was recorded without them, or in part.

use std::collections::BTreeSet;

use anyhow::Result;
use base::{Bank, Duration};
use format::flow_index;
use format::index::tail_length;
use format::{ChunkRecord, PAGE_BYTES, Place};
use recorder::flow_indexes::{self, FreeRoom, IndexedSegment};
use recorder::reader::Range;
use recorder::takes::Entry;
use recorder::{ArrayImage, TimeRange};
use search::{KeyKind, SegmentKeys};

use super::open::Opened;
use super::{Array, Progress};
use crate::flow_keys;

/// How to index an array.
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexOptions {
    /// Whether segments with a complete flow index get a new one.
    pub again: bool,
}

/// What became of an array's segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexReport {
    /// Segments that hold chunks.
    pub segments: u64,
    /// Segments that had a complete flow index.
    pub had: u64,
    /// Segments that got one.
    pub indexed: u64,
    /// Segments that get none: the index of their chunks is missing, which the next recording makes up for. If chunks were lost, so do
    /// segments that are not full.
    pub not_full: u64,
    /// Segments without room for one: searches read their chunks.
    pub no_room: u64,
    /// Segments, of those that got one, whose index leaves out some kinds of keys for want of room, by kind in words.
    pub left_out: Vec<(String, u64)>,
    /// Chunks that could not be read: searches try to read them again.
    pub unreadable: u64,
    /// Packets whose keys were entered.
    pub packets: u64,
    /// Bytes of chunks that were read.
    pub bytes: u64,
    /// Bytes of indexes that were written.
    pub index_bytes: u64,
    /// How long it took.
    pub elapsed: Duration,
}

impl Array {
    /// Makes flow indexes for the segments that have none, or whose index lacks chunks. The array must not be recorded on meanwhile.
    /// `progress` counts chunks.
    ///
    /// # Errors
    /// If somebody is recording on the array, or a drive fails to write.
    pub fn index(
        &mut self,
        options: &IndexOptions,
        mut progress: impl FnMut(Progress),
    ) -> crate::Result<IndexReport> {
        self.reopen_for_repair()?;
        let report = index(&mut self.opened, options, &mut progress);
        self.reopen_to_read()?;
        Ok(report?)
    }
}

fn index(
    opened: &mut Opened,
    options: &IndexOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<IndexReport> {
    let start = opened.bank.now();
    let image = opened.image.clone();
    let (places, free) = segments(opened)?;
    let mut known = flow_indexes::find(&mut opened.reader(), &image, &places)?;
    known.retain(|segment| free.is_in(segment));
    let mut report = IndexReport {
        segments: places.len() as u64,
        not_full: (places.len() - known.len()) as u64,
        ..IndexReport::default()
    };
    let (mut keys, mut written) = (SegmentKeys::default(), BTreeSet::new());
    let mut left_out = [0; KeyKind::ALL.len()];
    let total = known.iter().map(|segment| chunks(&image, segment)).sum();
    let mut done = 0;
    for segment in &known {
        progress(Progress { done, total });
        done += chunks(&image, segment);
        if segment.is_complete() && !options.again {
            report.had += 1;
            continue;
        }
        let Some(bytes) = made(opened, segment, &mut keys, &mut report)? else { continue };
        flow_indexes::write(&mut opened.reader(), &segment.room, &bytes)?;
        let kinds = flow_index::kinds(&bytes);
        for (count, kind) in left_out.iter_mut().zip(KeyKind::ALL) {
            *count += u64::from(kinds & kind.bit() == 0);
        }
        written.insert(segment.room.drive);
        report.indexed += 1;
        report.index_bytes += bytes.len() as u64;
    }
    for drive in written {
        flow_indexes::flush(&mut opened.reader(), drive)?;
    }
    progress(Progress { done, total });
    let named = KeyKind::ALL.iter().zip(left_out).filter(|(_, count)| *count > 0);
    report.left_out = named.map(|(kind, count)| (kind.to_string(), count)).collect();
    report.elapsed = opened.bank.now().since(start);
    Ok(report)
}

/// The segments that hold chunks, by member and number, and which of them have room.
fn segments(opened: &mut Opened) -> Result<(Vec<(u16, u64)>, FreeRoom)> {
    let catalog = opened.catalog(TimeRange::ALL)?;
    let segment = |entry: &Entry| {
        let member = &opened.image.members[usize::from(entry.place.member)];
        let segment = (entry.place.member, member.layout.segment_at(entry.place.offset));
        (!member.is_missing()).then_some(segment)
    };
    let segments: BTreeSet<(u16, u64)> = catalog.entries.iter().filter_map(segment).collect();
    let free = FreeRoom::of(&opened.image, &catalog);
    Ok((segments.into_iter().collect(), free))
}

/// How many chunks a segment holds.
fn chunks(image: &ArrayImage, segment: &IndexedSegment) -> u64 {
    let head = || image.members[usize::from(segment.member)].head.as_ref();
    match &segment.footer {
        Some(footer) => footer.entries.into(),
        None => head().map_or(0, |head| head.chunks.len() as u64),
    }
}

/// The flow index of a segment; None if it gets none, and the report says why.
fn made(
    opened: &mut Opened,
    segment: &IndexedSegment,
    keys: &mut SegmentKeys,
    report: &mut IndexReport,
) -> Result<Option<Vec<u8>>> {
    if segment.room.pages_max < flow_index::PAGES_LEAST {
        report.no_room += 1;
        return Ok(None);
    }
    keys.clear();
    let Some(entries) = entries(opened, segment)? else {
        report.not_full += 1;
        return Ok(None);
    };
    let layout = opened.image.members[usize::from(segment.member)].layout;
    let drive = segment.room.drive;
    let gathered = flow_keys::gather(&mut opened.reader(), drive, &layout, &entries, keys)?;
    report.packets += gathered.packets;
    report.bytes += gathered.bytes;
    report.unreadable += gathered.unreadable;
    let made = flow_keys::made(keys, &segment.room);
    report.no_room += u64::from(made.is_none());
    Ok(made)
}

/// The chunks of a segment, in order: what the index of a full one lists. None if that is damaged.
fn entries(
    opened: &mut Opened,
    segment: &IndexedSegment,
) -> Result<Option<Vec<(Place, ChunkRecord)>>> {
    let member = &opened.image.members[usize::from(segment.member)];
    let Some(footer) = &segment.footer else {
        return Ok(member.head.as_ref().map(|head| head.chunks.clone()));
    };
    let end = member.layout.segment_offset(segment.segment + 1);
    let (drive, mut left) = (member.drive, tail_length(footer.entries.into()));
    let mut reader = opened.reader();
    let most = u64::from(reader.buffer_bytes());
    let mut tail = Vec::new();
    while left > 0 {
        let length = left.min(most).next_multiple_of(PAGE_BYTES);
        tail.extend(reader.one(Range { drive, offset: end - left, length: length as u32 })?);
        left -= length;
    }
    Ok(footer.entries(&tail).ok())
}
