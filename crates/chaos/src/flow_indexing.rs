//! Flow indexes on hostile drives: whatever has become of an index, and of the segment that it lies in, no chunk is passed over that
//! holds what is looked for. Each chunk's key is its own sequence number, which no other chunk ever has.

use std::collections::BTreeMap;

use base::memory::MemoryBuffers;
use base::{DriveId, Duration, Instant, Random};
use format::flow_index::{self, Facts, FlowIndex};
use format::index::{self, Footer};
use format::{ChunkRecord, Layout, Place};
use recorder::flow_indexes::{self, FreeRoom, IndexedSegment, Room};
use recorder::reader::{Range, Reader};
use recorder::run::FilledSegment;
use recorder::takes::{Catalog, Entry};
use recorder::{ArrayImage, FlowIndexPart};

use crate::adversary::Handle;
use crate::outcome::{Met, Outcome};

/// Makes flow indexes beside a recording: late, of some chunks only, or not at all.
#[derive(Debug)]
pub struct Maker {
    random: Random,
    layouts: Vec<Layout>,
    /// Until when each is held back.
    late: Vec<(Instant, FlowIndexPart)>,
}

/// How long an index is held back at most, in ns: as long as a ring takes to come round.
const LATE_NS_MAX: u64 = 1 << 31;

impl Maker {
    /// For the members of an array.
    pub fn new(seed: u64, layouts: Vec<Layout>) -> Self {
        Self { random: Random::new(seed), layouts, late: Vec::new() }
    }

    /// Makes a flow index for a segment that is full, or not.
    pub fn filled(&mut self, now: Instant, segment: &FilledSegment) {
        let random = &mut self.random;
        if random.one_in(8) {
            return;
        }
        let place = segment.place;
        let layout = self.layouts[usize::from(place.member)];
        let written = index::encode(&place, segment.section_bytes, &segment.chunks);
        let Ok(footer) = Footer::read(&written.tail) else { panic!("flow index: no footer") };
        let column = |place: &Place| {
            let start = layout.segment_offset(layout.segment_at(place.offset));
            1 << flow_index::column(place.offset - start, layout.segment_bytes)
        };
        let number = layout.segment_at(place.offset);
        let room = Room::in_full(DriveId(place.member), &layout, number, &footer);
        let leaves_out = random.one_in(3);
        let Some(bytes) = encode(&room, &segment.chunks, column, random, leaves_out) else {
            return;
        };
        let part = room.part(number, bytes);
        let longest = LATE_NS_MAX >> random.below(32);
        let late = random.below(longest);
        self.late.push((now + Duration::from_nanos(late), part));
    }

    /// One that is held back no longer.
    pub fn ready(&mut self, now: Instant) -> Option<FlowIndexPart> {
        let at = self.late.iter().position(|(until, _)| *until <= now)?;
        Some(self.late.swap_remove(at).1)
    }

    /// Until when the next one is held back.
    pub fn next(&self) -> Option<Instant> {
        self.late.iter().map(|(until, _)| *until).min()
    }
}

/// A flow index in which each chunk's key is its own number; some chunks may be left out.
fn encode(
    room: &Room,
    chunks: &[(Place, ChunkRecord)],
    column: impl Fn(&Place) -> u64,
    random: &mut Random,
    leaves_out: bool,
) -> Option<Vec<u8>> {
    let mut hash_key = [0; 16];
    hash_key[..8].copy_from_slice(&random.bits().to_le_bytes());
    let mut facts = Facts { kinds: u16::MAX, hash_key, anything: 0, fragments: 0, unread: 0 };
    let mut keys = Vec::new();
    for (place, record) in chunks {
        if leaves_out && random.one_in(2) {
            facts.anything |= column(place);
            facts.unread += 1;
        } else {
            keys.push((hash(record.sequence, &hash_key), column(place)));
        }
    }
    FlowIndex::encode(&room.subject, &facts, &keys, room.pages_max)
}

type BySegment<'c> = BTreeMap<(u16, u64), Vec<&'c Entry>>;

/// Looks every chunk up, and gives segments new indexes, some of which are not flushed. `salt` chooses which.
///
/// # Panics
/// If an index passes a chunk over.
pub fn judge(
    reader: &mut Reader<'_, Handle, MemoryBuffers>,
    image: &ArrayImage,
    catalog: &Catalog,
    salt: u64,
) -> Met {
    let mut met = Met::default();
    let mut random = Random::new(salt);
    let layout = |member: u16| &image.members[usize::from(member)].layout;
    let mut by_segment = BySegment::new();
    // What parity gives back is always read: the index of its segment may never have listed it.
    let is_looked_up = |entry: &&Entry| !catalog.recovered.contains(&entry.record.sequence);
    for entry in catalog.entries.iter().filter(is_looked_up) {
        let member = entry.place.member;
        let segment = (member, layout(member).segment_at(entry.place.offset));
        by_segment.entry(segment).or_default().push(entry);
    }
    let places: Vec<(u16, u64)> = by_segment.keys().copied().collect();
    let Ok(segments) = flow_indexes::find(reader, image, &places) else {
        panic!("flow index: the bank never fails as a whole")
    };
    let free = FreeRoom::of(image, catalog);
    for one in &segments {
        let entries = &by_segment[&(one.member, one.segment)];
        look_up(reader, image, one, entries, &mut met);
        if random.one_in(2) && free.is_in(one) {
            give_index(reader, image, one, &mut random);
        }
    }
    met
}

/// The column of a chunk, as a bit.
fn column(image: &ArrayImage, one: &IndexedSegment, entry: &Entry) -> u64 {
    let layout = &image.members[usize::from(one.member)].layout;
    let start = layout.segment_offset(one.segment);
    1 << flow_index::column(entry.place.offset - start, layout.segment_bytes)
}

fn hash(sequence: u64, hash_key: &[u8; 16]) -> u64 {
    let salt = hash_key.iter().fold(0, |salt, &byte| salt << 4 ^ u64::from(byte));
    Random::new(sequence ^ salt).bits()
}

fn look_up(
    reader: &mut Reader<'_, Handle, MemoryBuffers>,
    image: &ArrayImage,
    one: &IndexedSegment,
    entries: &[&Entry],
    met: &mut Met,
) {
    let Some(flows) = &one.flows else { return };
    met.add(match one.footer {
        Some(_) => Outcome::FlowIndexed,
        None => Outcome::FlowIndexedOpen,
    });
    let about: Vec<&&Entry> = entries.iter().filter(|entry| one.is_about(entry)).collect();
    let hashes = about.iter().map(|entry| hash(entry.record.sequence, &flows.hash_key)).collect();
    let Ok(columns) = flow_indexes::columns(reader, std::slice::from_ref(one), &[hashes]) else {
        panic!("flow index: the bank never fails as a whole")
    };
    for (entry, columns) in about.iter().zip(&columns[0]) {
        let Entry { place, record } = entry;
        assert!(
            columns & column(image, one, entry) != 0,
            "flow index: it passes over chunk {} of member {} at {}",
            record.sequence,
            place.member,
            place.offset
        );
    }
}

/// Gives a segment a new index of all chunks that its footer lists: one that another stands in for is listed again if that one is
/// lost. Of a segment that is not full, those that were found. A drive that fails leaves the index as it may.
fn give_index(
    reader: &mut Reader<'_, Handle, MemoryBuffers>,
    image: &ArrayImage,
    one: &IndexedSegment,
    random: &mut Random,
) {
    let member = &image.members[usize::from(one.member)];
    let Some(chunks) = chunks(reader, image, one) else { return };
    let place_column = |place: &Place| {
        let start = member.layout.segment_offset(one.segment);
        1 << flow_index::column(place.offset - start, member.layout.segment_bytes)
    };
    let room = &one.room;
    let Some(bytes) = encode(room, &chunks, place_column, random, false) else { return };
    let written = flow_indexes::write(reader, room, &bytes);
    if written.is_ok() && random.one_in(2) {
        flow_indexes::flush(reader, room.drive).ok();
    }
}

/// The chunks that a segment's index is to be about.
fn chunks(
    reader: &mut Reader<'_, Handle, MemoryBuffers>,
    image: &ArrayImage,
    one: &IndexedSegment,
) -> Option<Vec<(Place, ChunkRecord)>> {
    let member = &image.members[usize::from(one.member)];
    let Some(footer) = &one.footer else {
        return member.head.as_ref().map(|head| head.chunks.clone());
    };
    let length = index::tail_length(footer.entries.into());
    let offset = member.layout.segment_offset(one.segment + 1) - length;
    let tail = reader.one(Range { drive: member.drive, offset, length: length as u32 });
    footer.entries(&tail.ok()?).ok()
}
