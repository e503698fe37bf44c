//! The recorder's feed in virtual time. Sources run in threads of their own as they always do, but in step with the bank: a
//! source gets a buffer, or a time up to which it may go, and the bank's time stands still until it has done its part.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use base::{BufferId, Duration, Instant, Rate, Timestamp};
use crossbeam_channel::{Receiver, Sender};
use device::Pool;
use format::{ChunkWriter, Interface, Ledger, Packet};
use recorder::ReadyChunk;
use recorder::run::Feed;
use source::sink::{Ended, Loss, Sink};
use source::{Filled, clock};

use super::feed::CountingFeed;

/// A chunk of a paced source is ready at most this part of its time after its last packet.
const STEPS_A_CHUNK: u64 = 16;

/// The shortest step: virtual time costs real time by the step.
const STEP_MIN: Duration = Duration::from_micros(10);

/// The longest step, so that sources see in time that they are to end.
const STEP_MAX: Duration = Duration::from_millis(50);

/// What a source's thread comes to: notes for the user.
pub type Thread = JoinHandle<Result<Vec<String>>>;

/// One queue of a source.
#[derive(Debug)]
pub struct Lane {
    /// Chunks that it has sealed.
    pub ready: Receiver<Filled>,
    /// Its thread, until that has ended.
    pub thread: Option<Thread>,
    /// How it is kept in step.
    pub step: Step,
}

/// How a queue is kept in step with the bank.
#[derive(Debug)]
pub enum Step {
    /// It can wait: it gets one buffer at a time and fills it at once.
    Waits {
        /// Where it takes its buffer. Without it, it ends.
        free: Option<Sender<BufferId>>,
    },
    /// It has a pace: it goes up to a time, and says when it is there.
    Paced {
        /// Up to when it may go.
        go: Sender<Instant>,
        /// It is there.
        reached: Receiver<()>,
    },
}

/// Who ends a recording. Sources are told when they can end at once: one that still has losses to tell needs a buffer for
/// that, and buffers come free with the bank's time.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// The recording is to end.
    pub asked: Arc<AtomicBool>,
    /// Sources see this.
    pub told: Arc<AtomicBool>,
}

/// Chunks from sources in step with the bank.
#[derive(Debug)]
pub struct VirtualFeed {
    lanes: Vec<Lane>,
    /// Where paced lanes take buffers that are free.
    free: Sender<BufferId>,
    /// The same channel's other end.
    taken: Receiver<BufferId>,
    pool: Arc<Pool>,
    chunk_min: u32,
    chunk_max: u32,
    /// How often paced lanes are looked after.
    step: Duration,
    stop: Stop,
    /// Up to when paced lanes have gone.
    at: Option<Instant>,
    /// Whose turn it is among lanes that can wait.
    turn: usize,
    /// What ended lanes have told.
    told: Vec<Result<Vec<String>>>,
    /// Bytes of packets that were handed on.
    bytes: u64,
}

impl VirtualFeed {
    /// Of lanes whose buffers come by the channel from `free` to `taken`.
    pub fn new(
        lanes: Vec<Lane>,
        (free, taken): (Sender<BufferId>, Receiver<BufferId>),
        pool: Arc<Pool>,
        chunk_bytes: (u32, u32),
        rate: Option<Rate>,
        stop: Stop,
    ) -> Self {
        let (chunk_min, chunk_max) = chunk_bytes;
        let step = rate.map_or(STEP_MAX, |rate| {
            rate.time_for(u64::from(chunk_max) / STEPS_A_CHUNK).clamp(STEP_MIN, STEP_MAX)
        });
        Self {
            lanes,
            free,
            taken,
            pool,
            chunk_min,
            chunk_max,
            step,
            stop,
            at: None,
            turn: 0,
            told: Vec::new(),
            bytes: 0,
        }
    }

    /// What the sources' threads have told, once all have ended.
    pub fn take_told(&mut self) -> Vec<Result<Vec<String>>> {
        std::mem::take(&mut self.told)
    }

    /// A chunk that is there already.
    fn sealed(&self) -> Option<Filled> {
        self.lanes.iter().find_map(|lane| lane.ready.try_recv().ok())
    }

    fn stopping(&self) -> bool {
        self.stop.asked.load(Ordering::Relaxed)
    }

    /// Has paced lanes go on to `now`, or end.
    fn advance(&mut self, now: Instant) {
        if self.at == Some(now) && !self.stopping() {
            return;
        }
        self.at = Some(now);
        for lane in 0..self.lanes.len() {
            let Lane { thread: Some(_), step: Step::Paced { go, reached }, .. } = &self.lanes[lane]
            else {
                continue;
            };
            if self.stopping() {
                if self.taken.is_empty() {
                    return;
                }
                self.stop.told.store(true, Ordering::Relaxed);
            }
            if go.send(now).is_err() || reached.recv().is_err() {
                self.end(lane);
            }
        }
    }

    /// Has a lane that can wait fill a buffer, if there is one.
    fn filled(&mut self) -> Option<Filled> {
        let stopping = self.stopping();
        for turn in 0..self.lanes.len() {
            let lane = (self.turn + turn) % self.lanes.len();
            let Lane { ready, thread: Some(_), step: Step::Waits { free } } = &mut self.lanes[lane]
            else {
                continue;
            };
            let mut given = None;
            if stopping {
                *free = None;
            } else if let Some(free) = free {
                let buffer = self.taken.try_recv().ok()?;
                given = free.send(buffer).is_ok().then_some(buffer);
            }
            if let Ok(filled) = ready.recv() {
                self.turn = lane + 1;
                return Some(filled);
            }
            self.end(lane);
            // There was nothing left to fill it with.
            given.map(|buffer| self.free.send(buffer));
        }
        None
    }

    fn end(&mut self, lane: usize) {
        let Some(thread) = self.lanes[lane].thread.take() else { return };
        self.told.push(thread.join().unwrap_or_else(|_| {
            Err(anyhow!("a source thread panicked; packets received before that are recorded"))
        }));
    }
}

impl CountingFeed for VirtualFeed {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Feed for VirtualFeed {
    fn poll(&mut self, now: Instant) -> Option<ReadyChunk> {
        self.advance(now);
        let Filled { buffer, summary, losses } = self.sealed().or_else(|| self.filled())?;
        self.bytes += summary.captured_bytes;
        Some(ReadyChunk { buffer, summary, losses })
    }

    fn next(&self, now: Instant) -> Option<Instant> {
        let paced = |lane: &Lane| lane.thread.is_some() && matches!(lane.step, Step::Paced { .. });
        self.lanes.iter().any(paced).then(|| now + self.step)
    }

    fn release(&mut self, buffer: BufferId) {
        // This feed holds a receiver of the channel, so that it can't be closed.
        self.free.send(buffer).ok();
    }

    fn ended(&self) -> bool {
        self.lanes.iter().all(|lane| lane.thread.is_none() && lane.ready.is_empty())
    }

    fn end_chunk(&mut self) -> Option<ReadyChunk> {
        let memory = self.pool.hold(self.taken.try_recv().ok()?);
        let writer = ChunkWriter::new(memory, self.chunk_min, self.chunk_max, 0);
        let sealed = writer.seal(&[], clock::now(), true);
        let (buffer, summary) = (sealed.buffer.release(), sealed.summary);
        Some(ReadyChunk { buffer, summary, losses: Ledger::default() })
    }
}

/// A sink that gives packets the times at which a source of a pace would have sent them, and lets it go no further than the
/// bank's time.
#[derive(Debug)]
pub struct Paced<S> {
    inner: S,
    go: Receiver<Instant>,
    reached: Sender<()>,
    /// Up to when it may go; None before it was told anything.
    until: Option<Instant>,
    start: Instant,
    started: Timestamp,
    ns_per_byte: f64,
    bytes: u64,
}

impl<S: Sink> Paced<S> {
    /// Packets of so many bytes a second from `start` on, which is `started` by the calendar.
    pub fn new(
        inner: S,
        (go, reached): (Receiver<Instant>, Sender<()>),
        rate: Rate,
        start: Instant,
        started: Timestamp,
    ) -> Self {
        let ns_per_byte = 1e9 / rate.0;
        Self { inner, go, reached, until: None, start, started, ns_per_byte, bytes: 0 }
    }

    /// What stands behind it.
    pub fn into_inner(self) -> S {
        self.inner
    }

    /// Waits until it may go to `intended`.
    fn come(&mut self, intended: Instant) -> Result<(), Ended> {
        while self.until.is_none_or(|until| intended > until) {
            if let Some(until) = self.until {
                self.inner.tick(self.started + until.since(self.start))?;
                self.reached.send(()).map_err(|_| Ended)?;
            }
            self.until = Some(self.go.recv().map_err(|_| Ended)?);
        }
        Ok(())
    }
}

impl<S: Sink> Sink for Paced<S> {
    fn interface(&mut self, interface: &Interface) -> u32 {
        self.inner.interface(interface)
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        let after = Duration::from_nanos((self.bytes as f64 * self.ns_per_byte) as u64);
        self.come(self.start + after)?;
        self.bytes += u64::from(packet.original_length);
        self.inner.packet(&Packet { timestamp: self.started + after, ..*packet })
    }

    fn lost(&mut self, interface: u32, stage: Loss, packets: u64, bytes: u64) {
        self.inner.lost(interface, stage, packets, bytes);
    }

    fn tick(&mut self, _now: Timestamp) -> Result<(), Ended> {
        // Its own time is all that counts.
        Ok(())
    }
}

/// Starts a queue's thread.
///
/// # Errors
/// If the system gives none.
pub fn spawn(
    queue: u16,
    work: impl FnOnce() -> Result<Vec<String>> + Send + 'static,
) -> Result<Thread> {
    std::thread::Builder::new()
        .name(format!("source {queue}"))
        .spawn(work)
        .context("starting a source thread")
}
