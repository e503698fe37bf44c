//! Flow indexes on hostile drives: whatever has become of an index, and of the segment that it lies in, no chunk is passed over that
//! holds what is looked for. Each chunk's key is its own sequence number, which no other chunk ever has.

use std::collections::BTreeMap;

use base::Random;
use base::memory::MemoryBuffers;
use format::flow_index::{self, Facts, FlowIndex};
use format::{ChunkRecord, Place, index};
use recorder::flow_indexes::{self, IndexedSegment};
use recorder::reader::{Range, Reader};
use recorder::takes::{Catalog, Entry};
use recorder::{ArrayImage, Segment};

use crate::adversary::Handle;
use crate::outcome::{Met, Outcome};

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
    for one in &segments {
        let entries = &by_segment[&(one.member, one.segment)];
        look_up(reader, image, one, entries, &mut met);
        if random.one_in(2) {
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
    met.add(Outcome::FlowIndexed);
    let about: Vec<&&Entry> = entries.iter().filter(|entry| one.is_about(entry)).collect();
    let hashes = about.iter().map(|entry| hash(entry.record.sequence, &flows.hash_key)).collect();
    let Ok(columns) = flow_indexes::columns(reader, image, &[*one], &[hashes]) else {
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
/// lost. A drive that fails leaves the index as it may.
fn give_index(
    reader: &mut Reader<'_, Handle, MemoryBuffers>,
    image: &ArrayImage,
    one: &IndexedSegment,
    random: &mut Random,
) {
    let member = &image.members[usize::from(one.member)];
    debug_assert!(matches!(member.segments[one.segment as usize], Segment::Live(_)));
    let pages_max = flow_index::pages_max(&one.footer, member.layout.segment_bytes);
    let mut hash_key = [0; 16];
    hash_key[..8].copy_from_slice(&random.bits().to_le_bytes());
    let length = index::tail_length(one.footer.entries.into());
    let offset = member.layout.segment_offset(one.segment + 1) - length;
    let tail = reader.one(Range { drive: member.drive, offset, length: length as u32 });
    let Some(listed) = tail.ok().and_then(|tail| one.footer.entries(&tail).ok()) else { return };
    let facts = Facts { kinds: u16::MAX, hash_key, anything: 0, fragments: 0 };
    let key = |(place, record): &(Place, ChunkRecord)| {
        let entry = Entry { place: *place, record: *record };
        (hash(record.sequence, &hash_key), column(image, one, &entry))
    };
    let keys: Vec<(u64, u64)> = listed.iter().map(key).collect();
    let Some(bytes) = FlowIndex::encode(&one.footer, &facts, &keys, pages_max) else { return };
    let written = flow_indexes::write(reader, image, one, &bytes);
    if written.is_ok() && random.one_in(2) {
        flow_indexes::flush(reader, image, one.member).ok();
    }
}
