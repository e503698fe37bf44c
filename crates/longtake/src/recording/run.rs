//! The run loop around the recorder's step: limits, requests from the control socket, and what the observer hears.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use base::{Bank, Buffers, Instant};
use crossbeam_channel::Receiver;
use recorder::run::{Recording, STEP_MAX};
use recorder::{Event, Recorder};
use source::interface::Link;
use source::packer::Progress;

use super::account::Over;
use super::ending::{EndReason, SourceEnd};
use super::feed::CountingFeed;
use super::holds::Holds;
use super::indexer::Search;
use super::metrics_file::MetricsFile;
use super::observer::{Counts, Observer, Started, View};
use super::options::Options;
use super::writes::WriteTimes;
use crate::array::protect;
use crate::control::{Asked, Reply, Request};
use crate::json;

/// What the run loop works with, beside the recording itself.
pub struct Stage<'a> {
    pub options: &'a Options,
    pub started: Started,
    /// Requests from the control socket.
    pub asked: Receiver<Asked>,
    /// Ends the recording; also set when a limit is reached.
    pub stop: &'a AtomicBool,
    pub progress: &'a Progress,
    /// What only real drives and interfaces tell.
    pub watched: Watched<'a>,
    /// What it means when the source ends by itself.
    pub source_end: SourceEnd,
    pub observer: &'a mut dyn Observer,
}

/// What is watched besides, in recordings on real drives.
#[derive(Default)]
pub struct Watched<'a> {
    /// The link of the interface that is recorded.
    pub link: Option<&'a Link>,
    /// How the members take their writes.
    pub writes: Option<WriteTimes>,
    /// The file of metrics, if one is wanted.
    pub metrics: Option<MetricsFile>,
}

/// Runs a recording until it is over.
pub fn run<B: Bank, M: Buffers, F: CountingFeed>(
    recording: &mut Recording<'_, B, M, F>,
    stage: Stage<'_>,
) -> Result<Over> {
    let Stage { options, started, asked, stop, progress, watched, source_end, observer } = stage;
    let Watched { link, writes, mut metrics } = watched;
    let start = recording.now();
    let deadline = options.duration.map(|duration| start + duration);
    let mut events = Vec::new();
    let mut requests = Requests::new(asked);
    let reason = EndReason::Source(source_end);
    let mut over = Over { started, reason, start, end: None, buffers_most: 0 };
    let mut ending = false;
    observer.started(start, &over.started)?;
    loop {
        let now = recording.now();
        let renewed = metrics.as_ref().map(MetricsFile::next);
        let until = [observer.next(), renewed, deadline.filter(|&deadline| deadline > now)]
            .into_iter()
            .flatten()
            .fold(now + STEP_MAX, Instant::min);
        let ended = recording.step(until, &mut events)?;
        let now = recording.now();
        if recording.core().finished() {
            over.end.get_or_insert(now);
        }
        let enough = options.until_bytes.is_some_and(|most| recording.feed().bytes() >= most.0);
        let late = deadline.is_some_and(|deadline| now >= deadline);
        if !ending && let Some(reason) = reason_to_end(recording, late, enough, stop) {
            (over.reason, ending) = (reason, true);
            stop.store(true, Ordering::Relaxed);
        }
        for event in &events {
            observer.event(now, event);
            debug_assert!(*event != Event::Finished || recording.core().finished());
        }
        events.clear();
        requests.serve(recording);
        over.buffers_most = over.buffers_most.max(recording.core().buffers_held());
        let segments_to_index = recording.feed().segments_to_index();
        let (counts, writes) = (Counts::Array(recording.core()), writes.as_ref());
        let view = View { now, start, counts, progress, link, writes, segments_to_index };
        requests.tell_where(&over.started, &view);
        observer.look(&view);
        if let Some(metrics) = &mut metrics {
            metrics.look(&over.started, &view, ended, observer);
        }
        if ended {
            // The source's threads end the recording themselves at the limit, before all of it has come here.
            let core = recording.core();
            let at_limit = if enough { EndReason::Bytes } else { over.reason };
            over.reason = refused(core).unwrap_or(at_limit);
            return Ok(over);
        }
    }
}

/// Why the recording is to end now, if it is.
fn reason_to_end<B: Bank, M: Buffers, F: CountingFeed>(
    recording: &Recording<'_, B, M, F>,
    late: bool,
    enough: bool,
    stop: &AtomicBool,
) -> Option<EndReason> {
    let refused = refused(recording.core());
    if refused.is_some() {
        refused
    } else if enough {
        Some(EndReason::Bytes)
    } else if late {
        Some(EndReason::Duration)
    } else {
        stop.load(Ordering::Relaxed).then_some(EndReason::Stopped)
    }
}

/// Why the core takes no more chunks, if it takes none.
fn refused(core: &Recorder) -> Option<EndReason> {
    let working = core.members().any(|member| member.working);
    let why = if working { EndReason::ArrayFull } else { EndReason::NoMemberLeft };
    core.refusing().then_some(why)
}

/// Requests from the control socket. The superblocks are changed for one at a time.
struct Requests {
    asked: Receiver<Asked>,
    holds: Holds,
    /// The next one, until the change before it is written.
    waiting: Option<Asked>,
    /// The one whose change is being written, and the number of protected spans after it.
    updating: Option<(Asked, usize)>,
    /// The one that only wants to know where the recording is.
    curious: Option<Asked>,
}

impl Requests {
    fn new(asked: Receiver<Asked>) -> Self {
        Self { asked, holds: Holds::default(), waiting: None, updating: None, curious: None }
    }

    fn serve<B: Bank, M: Buffers, F: CountingFeed>(
        &mut self,
        recording: &mut Recording<'_, B, M, F>,
    ) {
        if !recording.updating()
            && let Some((asked, count)) = self.updating.take()
        {
            let outcome = recording.update_outcome().clone();
            let answer = outcome
                .map(|()| Reply::Spans(count))
                .map_err(|e| format!("writing a superblock failed: {e}"));
            asked.answer.send(answer).ok();
        }
        if self.updating.is_none() && self.waiting.is_none() {
            let asked = self.asked.try_recv().ok();
            self.waiting = asked.and_then(|asked| self.holds.grant(asked, recording));
        }
        self.holds.let_go(recording);
        let Some(asked) = self.waiting.take() else { return };
        match asked.request {
            Request::Status => {
                self.curious = Some(asked);
                return;
            }
            Request::Excluded(condition) => {
                let Asked { answer, left, .. } = asked;
                recording.feed().exclude(Search { condition, answer, left });
                return;
            }
            _ => {}
        }
        match protect::apply(recording.protected(), &asked.request) {
            Ok(ranges) => {
                let count = ranges.len();
                if recording.protect(ranges) {
                    self.updating = Some((asked, count));
                } else {
                    self.waiting = Some(asked);
                }
            }
            Err(why) => {
                asked.answer.send(Err(why)).ok();
            }
        }
    }

    /// Tells where the recording is, if somebody wants to know.
    fn tell_where(&mut self, started: &Started, view: &View<'_>) {
        if let Some(asked) = self.curious.take() {
            let status = json::status(started, &view.snapshot());
            asked.answer.send(Ok(Reply::Status(status))).ok();
        }
    }
}
