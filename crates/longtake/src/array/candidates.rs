//! Which of the listed chunks may hold the selected packets, by the flow indexes of their segments.

use std::collections::{BTreeMap, HashSet};

use anyhow::Result;
use recorder::flow_indexes::{self, IndexedSegment};
use recorder::open::ArrayImage;
use recorder::takes::Entry;
use search::{Condition, IndexKey, KeyKind, PacketTest, condition_of};

use super::open::Opened;
use super::select::Selection;
use crate::control;

/// How flow indexes narrowed a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexUse {
    /// Chunks of the selected span and takes.
    pub chunks: u64,
    /// Chunks, of those, that may hold selected packets: they are read.
    pub candidates: u64,
    /// Chunks, of the candidates, that no flow index covers.
    pub not_indexed: u64,
    /// Chunks of the span whose keys the recorder of the array still had in memory.
    pub in_memory: u64,
    /// What every selected packet has, in words; None if nothing is known of that, and every chunk is read.
    pub condition: Option<String>,
    /// The word of the filter expression because of which nothing is known.
    pub not_understood: Option<String>,
    /// Kinds of keys that the condition asks for and that some segment's index leaves out, in words.
    pub left_out: Vec<String>,
}

/// Keys that are looked up at most: a search for more reads every chunk.
const KEYS_MAX: usize = 4096;
/// Segments whose indexes are looked up at a time.
const SEGMENTS_AT_A_TIME: usize = 1024;

/// Sequence numbers of chunks that hold none of the selected packets.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    excluded: HashSet<u64>,
    used: IndexUse,
}

impl Candidates {
    /// Those of some chunks. Every chunk is a candidate unless its segment's index says that it is not.
    /// What parity gives back (`recovered`, by sequence number) is one too: the index of its segment may never have listed it.
    pub(super) fn of(
        opened: &mut Opened,
        entries: &[Entry],
        recovered: &HashSet<u64>,
        selection: &Selection,
    ) -> Result<Self> {
        let mut used = IndexUse::default();
        let condition = condition(selection, &mut used);
        let excluded = match condition {
            Condition::Any => HashSet::new(),
            condition => {
                used.condition = Some(condition.to_string());
                let mut excluded = excluded(opened, entries, &condition, &mut used)?;
                excluded.retain(|sequence| !recovered.contains(sequence));
                excluded
            }
        };
        Ok(Self { excluded, used })
    }

    /// Whether a chunk has to be read.
    pub(super) fn may_hold(&self, entry: &Entry) -> bool {
        !self.excluded.contains(&entry.record.sequence)
    }

    /// How the chunks of a search were narrowed, of which so many were listed and are candidates.
    pub(super) fn used(&self, chunks: u64, candidates: u64) -> IndexUse {
        IndexUse { chunks, candidates, ..self.used.clone() }
    }
}

/// What must be true of every selected packet.
fn condition(selection: &Selection, used: &mut IndexUse) -> Condition {
    if selection.full_scan {
        return Condition::Any;
    }
    let by_filter = condition_of(&selection.filter).unwrap_or_else(|word| {
        used.not_understood = Some(word);
        Condition::Any
    });
    let ids = &selection.community_ids;
    let by_flow = if ids.is_empty() { Condition::Any } else { Condition::of_flows(ids) };
    let by_test = selection.test.as_ref().map_or(Condition::Any, PacketTest::condition);
    let condition = Condition::all([by_filter, by_flow, by_test]);
    if condition.keys().len() > KEYS_MAX { Condition::Any } else { condition }
}

fn excluded(
    opened: &mut Opened,
    entries: &[Entry],
    condition: &Condition,
    used: &mut IndexUse,
) -> Result<HashSet<u64>> {
    let image = opened.image.clone();
    let mut by_segment: BTreeMap<(u16, u64), Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        let layout = &image.members[usize::from(entry.place.member)].layout;
        let segment = (entry.place.member, layout.segment_at(entry.place.offset));
        by_segment.entry(segment).or_default().push(entry);
    }
    let places: Vec<(u16, u64)> = by_segment.keys().copied().collect();
    let keys = condition.keys();
    let mut excluded = HashSet::new();
    let mut covered = HashSet::new();
    let mut left_out = 0;
    for places in places.chunks(SEGMENTS_AT_A_TIME) {
        let mut reader = opened.reader();
        let segments = flow_indexes::find(&mut reader, &image, places)?;
        let hashes = |one: &IndexedSegment| match &one.flows {
            Some(flows) => keys.iter().map(|key| key.hash(&flows.hash_key)).collect(),
            None => Vec::new(),
        };
        let hashes: Vec<Vec<u64>> = segments.iter().map(hashes).collect();
        let columns = flow_indexes::columns(&mut reader, &segments, &hashes)?;
        for (one, columns) in segments.iter().zip(&columns) {
            let Some(flows) = &one.flows else { continue };
            left_out |= !flows.kinds;
            let of_key = |wanted: &IndexKey| match keys.binary_search(wanted) {
                Ok(at) if flows.kinds & wanted.kind().bit() != 0 => columns[at],
                _ => u64::MAX,
            };
            let candidates = condition.columns(&of_key, flows.fragments | flows.anything);
            let layout = &image.members[usize::from(one.member)].layout;
            let start = layout.segment_offset(one.segment);
            for entry in &by_segment[&(one.member, one.segment)] {
                let column =
                    format::flow_index::column(entry.place.offset - start, layout.segment_bytes);
                if !one.is_about(entry) {
                    continue;
                }
                covered.insert(entry.record.sequence);
                if candidates >> column & 1 == 0 {
                    excluded.insert(entry.record.sequence);
                }
            }
        }
    }
    if opened.recording {
        used.in_memory = ask_recorder(&image, entries, condition, &mut covered, &mut excluded);
    }
    let is_asked = |kind: &KeyKind| keys.iter().any(|key| key.kind() == *kind);
    let missing = KeyKind::ALL.into_iter().filter(|kind| left_out & kind.bit() != 0);
    used.left_out = missing.filter(is_asked).map(|kind| kind.to_string()).collect();
    let is_covered = |entry: &&Entry| covered.contains(&entry.record.sequence);
    used.not_indexed = (entries.len() - entries.iter().filter(is_covered).count()) as u64;
    Ok(excluded)
}

/// Asks the recorder of the array what it knows of chunks that no flow index covers yet. Without an answer they are read. Returns how
/// many it knew.
fn ask_recorder(
    image: &ArrayImage,
    entries: &[Entry],
    condition: &Condition,
    covered: &mut HashSet<u64>,
    excluded: &mut HashSet<u64>,
) -> u64 {
    let is_uncovered = |entry: &&Entry| !covered.contains(&entry.record.sequence);
    let uncovered: Vec<&Entry> = entries.iter().filter(is_uncovered).collect();
    if uncovered.is_empty() {
        return 0;
    }
    let Some(answer) = control::excluded(image.uuid, condition.clone()) else { return 0 };
    let known: HashSet<u64> = answer.known.into_iter().collect();
    let without: HashSet<u64> = answer.excluded.into_iter().collect();
    let mut found = 0;
    for record in uncovered.iter().map(|entry| &entry.record) {
        if record.take.uuid == answer.take && known.contains(&record.sequence) {
            found += 1;
            covered.insert(record.sequence);
            if without.contains(&record.sequence) {
                excluded.insert(record.sequence);
            }
        }
    }
    found
}
