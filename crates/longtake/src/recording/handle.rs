//! A recording in a thread of its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context, anyhow};
use base::{Duration, Instant};
use crossbeam_channel::{Receiver, Sender, bounded};
use format::Ledger;
use recorder::Event;
use source::producer::Producer;

use super::account::Account;
use super::builder::Builder;
use super::observer::{Observer, Snapshot, Started, View};
use super::options::Privileges;
use super::watch::{Notice, Watch};
use crate::{Remark, Result};

/// Updates that wait to be taken at most.
const UPDATES_MAX: usize = 1 << 16;

/// How often a snapshot is made.
const SNAPSHOT_EVERY: Duration = Duration::from_millis(100);

/// A recording under way. It stops, and is waited for, when this is dropped.
#[derive(Debug)]
pub struct Recording {
    thread: Option<JoinHandle<Result<Account>>>,
    started: Started,
    stop: Arc<AtomicBool>,
    shared: Arc<Shared>,
    updates: Receiver<Update>,
}

/// Something that happened in a recording.
#[derive(Clone, Debug)]
pub enum Update {
    /// Something that the user should know.
    Remark(Remark),
    /// Something happened, at this time after the start.
    Event(Duration, Event),
    /// Loss, silence or a link's failure began or ended, at this time after the start.
    Notice(Duration, Notice),
}

impl Update {
    /// Whether it comes with each chunk or segment.
    pub const fn is_routine(&self) -> bool {
        matches!(
            self,
            Self::Event(
                _,
                Event::Acknowledged { .. }
                    | Event::Durable { .. }
                    | Event::DurableChunk { .. }
                    | Event::Reused { .. }
            )
        )
    }
}

/// What the recording's thread leaves for others to look at.
#[derive(Debug, Default)]
struct Shared {
    snapshot: Mutex<Snapshot>,
    /// Updates that nobody took in time.
    dropped: AtomicU64,
}

impl Recording {
    /// Describes a recording from a source (`synthetic:1GB/s`, an interface, `udp:ADDR:PORT`, a capture file, ...) to a target: an
    /// array, a directory that gets member files, or simulated drives (`sim:NAME*6`).
    pub fn builder(source: &str, target: &str) -> Builder {
        Builder::new(source, target)
    }

    /// Describes a recording of what this program writes into a producer. The recording ends when that is closed.
    ///
    /// ```
    /// use longtake::recording::{LinkType, NewArray, Options, Producer};
    /// use longtake::{ByteSize, Recording};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let target = folder.path().join("array").display().to_string();
    /// let new = NewArray { members: 1, member_size: Some(ByteSize(65 << 20)), ..NewArray::default() };
    /// let options = Options { new, memory: ByteSize(32 << 20), ..Options::default() };
    /// let producer = Producer::new("adc", LinkType::USER0);
    /// let recording = Recording::of_producer(&producer, &target).options(options).start()?;
    /// producer.write(&[1, 2, 3], None)?;
    /// producer.close();
    /// assert_eq!(recording.wait()?.ledger.stored.packets, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_producer(producer: &Producer, target: &str) -> Builder {
        Builder::of_producer(producer, target)
    }

    pub(super) fn start(job: Builder) -> Result<Self> {
        if job.options.privileges != Privileges::Keep {
            // The threads of the caller could neither be confined nor be spared.
            return Err(anyhow!(
                "a recording in a thread of its own can't give up the process's privileges: call `run` in its first thread"
            )
            .into());
        }
        let shared = Arc::new(Shared::default());
        let stop = Arc::clone(&job.stop);
        let (updates_in, updates) = bounded(UPDATES_MAX);
        let (started_in, started) = bounded(1);
        let mut reporter = Reporter {
            started: Some(started_in),
            start: Instant::START,
            due: Instant::START,
            source: job.source.clone(),
            watch: None,
            updates: updates_in,
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new()
            .name("recording".to_owned())
            .spawn(move || job.run(&mut reporter))
            .context("starting the thread of the recording")?;
        let Ok(started) = started.recv() else {
            wait(thread)?;
            unreachable!("a recording that has not started ends with an error");
        };
        Ok(Self { thread: Some(thread), started, stop, shared, updates })
    }

    /// What is recorded, and where.
    pub fn started(&self) -> &Started {
        &self.started
    }

    /// What has happened, as it happens; ends with the recording. At most 65,536 updates wait to be taken, of which those that come with
    /// each chunk or segment leave half the room to others. What finds no room is dropped: [`Recording::updates_dropped`] counts it.
    pub fn updates(&self) -> impl Iterator<Item = Update> {
        self.updates.iter()
    }

    /// What has happened and was not taken yet, without waiting for more.
    pub fn updates_so_far(&self) -> impl Iterator<Item = Update> {
        self.updates.try_iter()
    }

    /// Updates that nobody took in time.
    pub fn updates_dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// How far it has come, at most a tenth of a second ago.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Offered, stored, and each named loss so far.
    pub fn ledger(&self) -> Ledger {
        self.snapshot().ledger
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Asks it to end. What it has taken in is still written.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits until it is over: until the source ends, a limit is reached, or it was asked to end.
    ///
    /// # Errors
    /// If all drives failed at once.
    pub fn wait(mut self) -> Result<Account> {
        match self.thread.take() {
            Some(thread) => wait(thread),
            None => unreachable!("the thread is taken here and when this is dropped"),
        }
    }
}

fn wait(thread: JoinHandle<Result<Account>>) -> Result<Account> {
    thread.join().unwrap_or_else(|_| Err(anyhow!("the thread of the recording panicked").into()))
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stop();
            // Nobody is left to be told what came of it.
            thread.join().ok();
        }
    }
}

/// The observer in the recording's thread.
struct Reporter {
    started: Option<Sender<Started>>,
    start: Instant,
    /// When the next snapshot is due.
    due: Instant,
    source: String,
    /// Judges the snapshots, once it has started.
    watch: Option<Watch>,
    updates: Sender<Update>,
    shared: Arc<Shared>,
}

impl Reporter {
    fn send(&self, update: Update) {
        let no_room = update.is_routine() && self.updates.len() >= UPDATES_MAX / 2;
        if no_room || self.updates.try_send(update).is_err() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Observer for Reporter {
    fn remark(&mut self, remark: Remark) {
        self.send(Update::Remark(remark));
    }

    fn started(&mut self, now: Instant, started: &Started) -> Result<()> {
        (self.start, self.due) = (now, now);
        self.watch = Some(Watch::new(now, &self.source, started.buffers));
        if let Some(sender) = self.started.take() {
            sender.send(started.clone()).context("nobody waits for the recording to start")?;
        }
        Ok(())
    }

    fn next(&self) -> Option<Instant> {
        Some(self.due)
    }

    fn event(&mut self, now: Instant, event: &Event) {
        self.send(Update::Event(now.since(self.start), event.clone()));
    }

    fn look(&mut self, view: &View<'_>) {
        if view.now() < self.due {
            return;
        }
        self.due = view.now() + SNAPSHOT_EVERY;
        let snapshot = view.snapshot();
        let watch = self.watch.as_mut();
        for notice in watch.map_or_else(Vec::new, |watch| watch.look(view.now(), &snapshot)) {
            self.send(Update::Notice(snapshot.elapsed, notice));
        }
        *self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}

#[cfg(test)]
mod tests {
    use format::Count;

    use super::*;

    #[test]
    fn what_each_chunk_brings_leaves_room_for_what_matters() {
        let (updates_in, updates) = bounded(UPDATES_MAX);
        let shared = Arc::new(Shared::default());
        let mut reporter = Reporter {
            started: None,
            start: Instant::START,
            due: Instant::START,
            source: String::new(),
            watch: None,
            updates: updates_in,
            shared: Arc::clone(&shared),
        };
        for sequence in 0..UPDATES_MAX as u64 {
            let count = Count::new(1, 1);
            let event = Event::Acknowledged { sequence, member: 0, count, end: false };
            reporter.event(Instant::START, &event);
        }
        reporter.event(Instant::START, &Event::NoMemberLeft);
        let taken: Vec<Update> = updates.try_iter().collect();
        assert_eq!(taken.len(), UPDATES_MAX / 2 + 1);
        assert!(matches!(taken.last(), Some(Update::Event(_, Event::NoMemberLeft))));
        assert_eq!(shared.dropped.load(Ordering::Relaxed), UPDATES_MAX as u64 / 2);
    }
}
