//! The recorder's feed in real time: chunks come from source threads by channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::{BufferId, Instant};
use crossbeam_channel::{Receiver, Sender};
use device::Pool;
use format::{ChunkWriter, Ledger};
use recorder::ReadyChunk;
use recorder::run::Feed;
use source::{Filled, clock};

/// A feed that knows how much it has handed on.
pub trait CountingFeed: Feed {
    /// Bytes of packets so far.
    fn bytes(&self) -> u64;
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
}

impl CountingFeed for LiveFeed {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Feed for LiveFeed {
    fn poll(&mut self, _now: Instant) -> Option<ReadyChunk> {
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
