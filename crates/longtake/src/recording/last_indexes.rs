//! Flow indexes when a recording is over: of the segments that it has left open, and of those that the indexing thread had no time for.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use base::{Bank, Buffers, DriveId};
use device::Pool;
use format::{ChunkRecord, Layout, Place};
use recorder::flow_indexes::{self, Room};
use recorder::reader::Reader;
use recorder::run::{Feed, Recording};

use super::indexer::{Incomplete, IndexCounts, Left, footer};
use super::observer::Observer;
use super::options::FlowIndexing;
use crate::Remark;
use crate::flow_keys;

/// A segment to be indexed.
struct Segment {
    room: Room,
    layout: Layout,
    chunks: Arc<Vec<(Place, ChunkRecord)>>,
    /// Chunks that the indexing thread left out, and whether it made an index nevertheless; None if the segment is not full.
    incomplete: Option<(u64, bool)>,
}

/// The segments of a recording that is over that are to be indexed.
pub struct LastSegments {
    segments: Vec<Segment>,
    counts: IndexCounts,
}

impl LastSegments {
    /// Those that this take began and did not fill, and those that the thread left incomplete and that were not reused. `members` are the
    /// drive and the layout of each.
    pub fn of<B: Bank, M: Buffers, F: Feed>(
        recording: &Recording<'_, B, M, F>,
        left: Left,
        members: &[(DriveId, Layout)],
    ) -> Self {
        let core = recording.core();
        let of_member = |place: &Place| members[usize::from(place.member)];
        let mut segments = Vec::new();
        for Incomplete { segment: filled, left_out, indexed } in left.incomplete {
            let (drive, layout) = of_member(&filled.place);
            let number = layout.segment_at(filled.place.offset);
            let Some(footer) = footer(&filled) else { continue };
            let sequences = (footer.first_sequence, footer.last_sequence);
            if core.is_filled_with(filled.place.member, number, sequences) {
                let room = Room::in_full(drive, &layout, number, &footer);
                let incomplete = Some((left_out, indexed));
                segments.push(Segment { room, layout, chunks: filled.chunks, incomplete });
            }
        }
        for (number, chunks) in core.open_segments() {
            let Some((place, first)) = chunks.first() else { continue };
            // Behind the chunks of an earlier take, lost ones may lie that are still found.
            if first.take != core.take() {
                continue;
            }
            let (drive, layout) = of_member(place);
            if let Some(room) = Room::in_open(drive, &layout, number, chunks) {
                let chunks = Arc::new(chunks.to_vec());
                segments.push(Segment { room, layout, chunks, incomplete: None });
            }
        }
        Self { segments, counts: left.counts }
    }

    /// Reads their chunks and writes their indexes. Returns what was indexed in all.
    pub fn index<B: Bank>(
        self,
        bank: &mut B,
        pool: &Arc<Pool>,
        kinds: FlowIndexing,
        observer: &mut dyn Observer,
    ) -> IndexCounts {
        let mut counts = self.counts;
        if let Err(error) = self.write(bank, pool, kinds, &mut counts) {
            observer.remark(Remark::Warning(format!(
                "flow indexes could not be completed: {error:#}; searches read the chunks, and `longtake array index` tries again"
            )));
        }
        counts
    }

    fn write<B: Bank>(
        self,
        bank: &mut B,
        pool: &Arc<Pool>,
        kinds: FlowIndexing,
        counts: &mut IndexCounts,
    ) -> Result<()> {
        let mut reader = Reader { bank, memory: pool, buffers: pool.buffer_ids().collect() };
        let longest = self.segments.iter().map(|segment| segment.layout.segment_bytes).max();
        let mut keys = kinds.keys(longest.unwrap_or(0));
        let mut written = BTreeSet::new();
        for Segment { room, layout, chunks, incomplete } in self.segments {
            keys.clear();
            let gathered = flow_keys::gather(&mut reader, room.drive, &layout, &chunks, &mut keys)?;
            let Some(bytes) = flow_keys::made(&mut keys, &room) else { continue };
            flow_indexes::write(&mut reader, &room, &bytes)?;
            written.insert(room.drive);
            counts.bytes += bytes.len() as u64;
            if let Some((left_out, indexed)) = incomplete {
                counts.chunks_left_out -= left_out.saturating_sub(gathered.unreadable);
                counts.indexed += u64::from(!indexed);
            }
        }
        for drive in written {
            flow_indexes::flush(&mut reader, drive)?;
        }
        Ok(())
    }
}
