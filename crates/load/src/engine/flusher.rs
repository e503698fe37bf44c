//! Flushes that a stream sends at regular times, as a recorder does.

use base::{Duration, Instant};

use crate::plan::Plan;

/// Tags from here on are flushes', by place among them.
pub(super) const FIRST_TAG: u64 = 1 << 63;

/// One drive that is flushed for a stream.
#[derive(Clone, Debug)]
pub(super) struct Flusher {
    pub stream: u16,
    pub drive: base::DriveId,
    every: Duration,
    due: Instant,
    pub under_way: bool,
}

impl Flusher {
    /// One for each drive of each stream that asks for flushes.
    pub fn all(plan: &Plan) -> Vec<Self> {
        let first = plan.jobs.iter().filter(|job| job.number == 0);
        first
            .filter_map(|job| {
                let every = plan.stream(job).flush?.0;
                let (stream, drive) = (job.stream, job.drive);
                Some(Self { stream, drive, every, due: Instant::START, under_way: false })
            })
            .collect()
    }

    /// The run begins.
    pub fn begin(&mut self, start: Instant) {
        self.due = start + self.every;
    }

    /// When it has something to do; None while its flush is under way.
    pub fn due(&self) -> Option<Instant> {
        (!self.under_way).then_some(self.due)
    }

    /// Its flush was sent. A drive that was not ready for it in time is not sent the missed ones.
    pub fn sent(&mut self, now: Instant) {
        self.under_way = true;
        self.due = now.max(self.due) + self.every;
    }
}
