//! The recorder's feed in real time: chunks come from source threads by channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::{BufferId, Instant};
use crossbeam_channel::{Receiver, Sender};
use device::Pool;
use format::{ChunkWriter, Ledger};
use recorder::run::{Feed, FilledSegment};
use recorder::{FlowIndexPart, ReadyChunk};
use source::{Filled, clock};

use super::indexer::{Indexer, Left, Search};
use crate::control::InMemory;

/// A feed that knows how much it has handed on.
pub trait CountingFeed: Feed {
    /// Bytes of packets so far.
    fn bytes(&self) -> u64;

    /// Segments that are filled and have no flow index yet.
    fn segments_to_index(&self) -> usize {
        0
    }

    /// Answers a search for chunks, among those in memory, that hold no packet that meets a condition: now or soon.
    fn exclude(&self, search: Search) {
        search.answer(InMemory::default());
    }
}

/// Chunks from source threads.
#[derive(Debug)]
pub struct LiveFeed {
    /// Sealed chunks.
    pub ready: Receiver<Filled>,
    /// Where free buffers go.
    pub free: Sender<BufferId>,
    /// The same channel's other end, for the chunk that ends the take.
    pub taken_back: Receiver<BufferId>,
    /// Source threads that still run.
    pub running: Arc<AtomicUsize>,
    /// The buffers' memory.
    pub pool: Arc<Pool>,
    /// Shortest chunk in bytes.
    pub chunk_min: u32,
    /// Longest chunk in bytes.
    pub chunk_max: u32,
    /// Bytes of packets that were handed on.
    pub bytes: u64,
    /// Makes flow indexes, if they are wanted.
    pub indexer: Option<Indexer>,
    /// Chunk buffers in all.
    pub buffers: usize,
}

impl LiveFeed {
    /// Ends the indexer, if there is one, once all that was written is in the indexes.
    pub fn end_indexing(&mut self) -> Option<Left> {
        self.indexer.take().map(|mut indexer| indexer.end())
    }

    /// Takes buffers back from the indexer when fewer than a quarter are free: nothing waits for flow indexes.
    fn take_back_if_scarce(&mut self) {
        let Some(indexer) = &mut self.indexer else { return };
        if indexer.has_waiting() && self.taken_back.len() < self.buffers / 4 {
            let free = &self.free;
            indexer.take_back(|buffer| {
                free.send(buffer).ok();
            });
        }
    }
}

impl CountingFeed for LiveFeed {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn segments_to_index(&self) -> usize {
        self.indexer.as_ref().map_or(0, Indexer::segments_waiting)
    }

    fn exclude(&self, search: Search) {
        match &self.indexer {
            Some(indexer) => indexer.exclude(search),
            None => search.answer(InMemory::default()),
        }
    }
}

impl Feed for LiveFeed {
    fn poll(&mut self, _now: Instant) -> Option<ReadyChunk> {
        self.take_back_if_scarce();
        let Filled { buffer, summary, losses } = self.ready.try_recv().ok()?;
        self.bytes += summary.captured_bytes;
        Some(ReadyChunk { buffer, summary, losses })
    }

    fn next(&self, _now: Instant) -> Option<Instant> {
        None
    }

    fn release(&mut self, buffer: BufferId) {
        // This feed holds a receiver of the channel, so that it can't be closed.
        self.free.send(buffer).ok();
    }

    fn release_written(&mut self, buffer: BufferId) {
        let indexer = self.indexer.as_ref().filter(|_| self.taken_back.len() >= self.buffers / 2);
        let left = indexer.map_or(Some(buffer), |indexer| indexer.offer(buffer));
        if let Some(buffer) = left {
            self.release(buffer);
        }
    }

    fn segment_filled(&mut self, segment: FilledSegment) {
        if let Some(indexer) = &mut self.indexer {
            indexer.filled(segment);
        }
    }

    fn flow_index(&mut self) -> Option<FlowIndexPart> {
        self.indexer.as_mut().and_then(Indexer::made)
    }

    fn makes_flow_indexes(&self) -> bool {
        self.indexer.as_ref().is_some_and(Indexer::is_busy)
    }

    fn ended(&self) -> bool {
        // In this order: a thread sends its last chunk before it counts itself out.
        self.running.load(Ordering::Acquire) == 0 && self.ready.is_empty()
    }

    fn end_chunk(&mut self) -> Option<ReadyChunk> {
        let memory = self.pool.hold(self.taken_back.try_recv().ok()?);
        let writer = ChunkWriter::new(memory, self.chunk_min, self.chunk_max, 0);
        let sealed = writer.seal(&[], clock::now(), true);
        let (buffer, summary) = (sealed.buffer.release(), sealed.summary);
        Some(ReadyChunk { buffer, summary, losses: Ledger::default() })
    }
}
