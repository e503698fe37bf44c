//! Flow indexes for what was recorded without them.

use std::collections::BTreeSet;

use anyhow::Result;
use base::{Bank, DeviceError, Duration};
use format::chunk::check_body;
use format::flow_index::{self, column};
use format::index::tail_length;
use format::packets::{Item, Items};
use format::{ChunkRecord, Interface, LinkType, PAGE_BYTES, Place};
use recorder::TimeRange;
use recorder::flow_indexes::{self, IndexedSegment};
use recorder::reader::Range;
use recorder::takes::Entry;
use search::{KeyKind, SegmentKeys};
use uuid::Uuid;

use super::open::Opened;
use super::{Array, Progress};

/// How to index an array.
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexOptions {
    /// Whether segments that have a flow index get a new one.
    pub again: bool,
}

/// What became of an array's segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexReport {
    /// Segments that hold chunks.
    pub segments: u64,
    /// Segments that had a flow index.
    pub had: u64,
    /// Segments that got one.
    pub indexed: u64,
    /// Segments that are not full yet, or whose index of chunks is missing: they have none.
    pub not_full: u64,
    /// Full segments without room for one: searches read their chunks.
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

/// Pages of the shortest flow index: its first page, and one of its table.
const PAGES_LEAST: u32 = 2;

impl Array {
    /// Makes flow indexes for the full segments that have none. The array must not be recorded on meanwhile. `progress` counts chunks.
    ///
    /// # Errors
    /// If somebody is recording on the array, or a drive fails to write.
    pub fn index(
        &mut self,
        options: &IndexOptions,
        progress: impl FnMut(Progress),
    ) -> crate::Result<IndexReport> {
        self.reopen_for_repair()?;
        let report = index(&mut self.opened, options, progress);
        self.reopen_to_read()?;
        Ok(report?)
    }
}

fn index(
    opened: &mut Opened,
    options: &IndexOptions,
    mut progress: impl FnMut(Progress),
) -> Result<IndexReport> {
    let start = opened.bank.now();
    let places = segments(opened)?;
    let image = opened.image.clone();
    let full = flow_indexes::find(&mut opened.reader(), &image, &places)?;
    let mut report = IndexReport {
        segments: places.len() as u64,
        not_full: (places.len() - full.len()) as u64,
        ..IndexReport::default()
    };
    let (mut keys, mut written) = (SegmentKeys::default(), BTreeSet::new());
    let mut left_out = [0; KeyKind::ALL.len()];
    let chunks = |segment: &IndexedSegment| u64::from(segment.footer.entries);
    let (mut done, total) = (0, full.iter().map(chunks).sum());
    for segment in &full {
        progress(Progress { done, total });
        done += chunks(segment);
        if segment.flows.is_some() && !options.again {
            report.had += 1;
            continue;
        }
        let Some(bytes) = made(opened, segment, &mut keys, &mut report)? else { continue };
        flow_indexes::write(&mut opened.reader(), &image, segment, &bytes)?;
        let kinds = flow_index::kinds(&bytes);
        for (count, kind) in left_out.iter_mut().zip(KeyKind::ALL) {
            *count += u64::from(kinds & kind.bit() == 0);
        }
        written.insert(segment.member);
        report.indexed += 1;
        report.index_bytes += bytes.len() as u64;
    }
    for member in written {
        flow_indexes::flush(&mut opened.reader(), &image, member)?;
    }
    progress(Progress { done, total });
    let named = KeyKind::ALL.iter().zip(left_out).filter(|(_, count)| *count > 0);
    report.left_out = named.map(|(kind, count)| (kind.to_string(), count)).collect();
    report.elapsed = opened.bank.now().since(start);
    Ok(report)
}

/// The segments that hold chunks, by member and number.
fn segments(opened: &mut Opened) -> Result<Vec<(u16, u64)>> {
    let catalog = opened.catalog(TimeRange::ALL)?;
    let segment = |entry: &Entry| {
        let member = &opened.image.members[usize::from(entry.place.member)];
        let segment = (entry.place.member, member.layout.segment_at(entry.place.offset));
        (!member.is_missing()).then_some(segment)
    };
    let segments: BTreeSet<(u16, u64)> = catalog.entries.iter().filter_map(segment).collect();
    Ok(segments.into_iter().collect())
}

/// The flow index of a segment; None if it gets none, and the report says why.
fn made(
    opened: &mut Opened,
    segment: &IndexedSegment,
    keys: &mut SegmentKeys,
    report: &mut IndexReport,
) -> Result<Option<Vec<u8>>> {
    let layout = opened.image.members[usize::from(segment.member)].layout;
    let pages_max = flow_index::pages_max(&segment.footer, layout.segment_bytes);
    if pages_max < PAGES_LEAST {
        report.no_room += 1;
        return Ok(None);
    }
    keys.clear();
    if !gather(opened, segment, keys, report)? {
        report.not_full += 1;
        return Ok(None);
    }
    let made = keys.finish(&segment.footer, Uuid::new_v4().into_bytes(), pages_max);
    report.no_room += u64::from(made.is_none());
    Ok(made)
}

/// Enters the keys of a segment's packets. Returns whether its chunks are known.
fn gather(
    opened: &mut Opened,
    segment: &IndexedSegment,
    keys: &mut SegmentKeys,
    report: &mut IndexReport,
) -> Result<bool> {
    let image = opened.image.clone();
    let member = &image.members[usize::from(segment.member)];
    let layout = &member.layout;
    let start = layout.segment_offset(segment.segment);
    let Some(mut entries) = entries(opened, segment)? else { return Ok(false) };
    // Parity, and what ends a take or fills a hole, has no keys.
    entries.retain(|(_, record)| record.summary.packets > 0);
    let range = |(place, record): &(Place, ChunkRecord)| Range {
        drive: member.drive,
        offset: place.offset,
        length: record.summary.length,
    };
    let ranges: Vec<Range> = entries.iter().map(range).collect();
    let column_of = |place: &Place| column(place.offset - start, layout.segment_bytes);
    opened.reader().scatter(&ranges, |at, read| {
        let (place, record) = &entries[at];
        let column = column_of(place);
        report.bytes += u64::from(record.summary.length);
        match enter(read, place, record, |link_type, packet| keys.add(column, link_type, packet)) {
            Some(packets) => report.packets += packets,
            None => {
                keys.add_unread(column);
                report.unreadable += 1;
            }
        }
    })?;
    Ok(true)
}

/// What the index of a segment's chunks lists; None if that is damaged.
fn entries(
    opened: &mut Opened,
    segment: &IndexedSegment,
) -> Result<Option<Vec<(Place, ChunkRecord)>>> {
    let member = &opened.image.members[usize::from(segment.member)];
    let end = member.layout.segment_offset(segment.segment + 1);
    let (drive, mut left) = (member.drive, tail_length(segment.footer.entries.into()));
    let mut reader = opened.reader();
    let most = u64::from(reader.buffer_bytes());
    let mut tail = Vec::new();
    while left > 0 {
        let length = left.min(most).next_multiple_of(PAGE_BYTES);
        tail.extend(reader.one(Range { drive, offset: end - left, length: length as u32 })?);
        left -= length;
    }
    Ok(segment.footer.entries(&tail).ok())
}

/// Hands on the packets of a chunk. Returns how many there were; None if the chunk can't be read whole.
fn enter(
    read: Result<&[u8], DeviceError>,
    place: &Place,
    record: &ChunkRecord,
    mut each: impl FnMut(LinkType, &[u8]),
) -> Option<u64> {
    let bytes = read.ok()?;
    let is_it = ChunkRecord::read(bytes).is_ok_and(|(at, found)| (at, found) == (*place, *record));
    if !is_it || check_body(bytes, record).is_err() {
        return None;
    }
    let (mut interfaces, mut packets) = (Vec::<Interface>::new(), 0);
    for item in Items::new(bytes, record).ok()? {
        match item.ok()? {
            Item::Interface(interface) => interfaces.push(interface),
            Item::Packet(packet, _) => {
                each(interfaces.get(packet.interface as usize)?.link_type, packet.data);
                packets += 1;
            }
        }
    }
    Some(packets)
}
