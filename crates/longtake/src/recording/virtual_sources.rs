//! The threads of sources that run in step with simulated drives.

use std::sync::Arc;

use anyhow::{Context, Result};
use base::{BufferId, Duration, Instant, Rate, Timestamp};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use device::{Pool, Waker};
use recorder::defaults;
use source::filtering::Filtering;
use source::generator::{Generator, Pace};
use source::packer::{Packer, Pressure, Progress, Supply};
use source::spec::SourceSpec;
use source::synthetic::{self, Synthetic};
use source::traffic::{self, Traffic};
use source::{Filled, Retention};

use super::observer::Observer;
use super::options::Options;
use super::retention;
use super::sources::{self, Taking};
use super::virtual_feed::{Lane, Paced, Step, Stop, VirtualFeed, spawn};
use crate::Remark;

/// The longest that a source may take over a chunk in real time: virtual time waits for it.
const AGE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// What sources need to be run in step with the bank.
pub struct Sources<'a> {
    pub options: &'a Options,
    pub pool: Arc<Pool>,
    pub stop: Stop,
    pub progress: Arc<Progress>,
    /// The bank's time at the start, and the calendar's.
    pub start: Instant,
    pub started: Timestamp,
    /// Shortest and longest chunk.
    pub chunk_bytes: (u32, u32),
}

impl Sources<'_> {
    /// Starts the source's threads.
    pub fn feed(
        &self,
        spec: &SourceSpec,
        chunks: &[BufferId],
        observer: &mut dyn Observer,
    ) -> Result<VirtualFeed> {
        let (free, taken) = unbounded();
        for &buffer in chunks {
            free.send(buffer).context("filling the list of free buffers")?;
        }
        let lanes = match (spec, spec.rate()) {
            // Here it is the lanes that have the rate.
            (SourceSpec::Synthetic(options), Some(rate)) => {
                options.check()?;
                let options = synthetic::Options { pace: Pace::Max, ..*options };
                self.all_paced(Synthetic::open(&options)?, rate, &taken)?
            }
            (SourceSpec::Traffic(options), Some(rate)) => {
                options.check()?;
                let options = traffic::Options { pace: Pace::Max, ..*options };
                self.all_paced(Traffic::open(&options)?, rate, &taken)?
            }
            _ => self.waiting(spec, observer)?,
        };
        let rate = spec.rate();
        let stop = self.stop.clone();
        let pool = Arc::clone(&self.pool);
        Ok(VirtualFeed::new(lanes, (free, taken), pool, self.chunk_bytes, rate, stop))
    }

    fn taking(&self) -> Taking {
        Taking {
            filter: self.options.filter.clone(),
            snap: self.options.snap_bytes,
            kernel_buffer: 0,
            flush_interval: AGE_MAX,
        }
    }

    /// Queues that share a rate.
    fn all_paced(
        &self,
        queues: Vec<impl Generator + Send + 'static>,
        rate: Rate,
        taken: &Receiver<BufferId>,
    ) -> Result<Vec<Lane>> {
        let each = Rate(rate.0 / queues.len() as f64);
        let rules = retention::rules(self.options, queues.len());
        let queues = (0..).zip(queues).zip(rules);
        queues.map(|((number, queue), rule)| self.paced(number, queue, each, taken, rule)).collect()
    }

    /// A queue that goes on at its pace, whether there are buffers or not.
    fn paced(
        &self,
        number: u16,
        queue: impl Generator + Send + 'static,
        rate: Rate,
        taken: &Receiver<BufferId>,
        rule: Option<Box<dyn Retention>>,
    ) -> Result<Lane> {
        let (ready_in, ready) = unbounded();
        let (go, going) = bounded(1);
        let (reached_in, reached) = bounded(1);
        let age = defaults::chunk_age_max(self.options.flush_interval);
        let packer = Packer::new(
            self.supply(ready_in, taken.clone(), age)?,
            number,
            Pressure::Drops,
            Arc::clone(&self.progress),
        )
        .retaining(rule);
        let Taking { filter, snap, .. } = self.taking();
        let (start, started) = (self.start, self.started);
        let thread = spawn(number, move || {
            let filtering = Filtering::new(packer, &filter, snap);
            let mut sink = Paced::new(filtering, (going, reached_in), rate, start, started);
            queue.run(&mut sink);
            let packer =
                sink.into_inner().finish().context("the filter does not suit the source")?;
            packer.finish();
            Ok(Vec::new())
        })?;
        Ok(Lane { ready, thread: Some(thread), step: Step::Paced { go, reached } })
    }

    /// Queues that wait for buffers.
    fn waiting(&self, spec: &SourceSpec, observer: &mut dyn Observer) -> Result<Vec<Lane>> {
        let source = sources::open(spec, &self.taking())?;
        for warning in &source.warnings {
            observer.remark(Remark::Note(warning.clone()));
        }
        let mut lanes = Vec::new();
        let rules = retention::rules(self.options, source.queues.len());
        for ((number, work), rule) in (0..).zip(source.queues).zip(rules) {
            let (ready_in, ready) = unbounded();
            let (free, taken) = unbounded();
            let packer = Packer::new(
                self.supply(ready_in, taken, AGE_MAX)?,
                number,
                source.pressure,
                Arc::clone(&self.progress),
            )
            .retaining(rule);
            let thread = spawn(number, move || work(packer))?;
            let step = Step::Waits { free: Some(free) };
            lanes.push(Lane { ready, thread: Some(thread), step });
        }
        Ok(lanes)
    }

    fn supply(
        &self,
        ready: Sender<Filled>,
        free: Receiver<BufferId>,
        flush_interval: Duration,
    ) -> Result<Supply> {
        Ok(Supply {
            pool: Arc::clone(&self.pool),
            free,
            ready,
            // The run loop asks, and is not woken.
            waker: Waker::new().context("making a waker")?,
            stop: Arc::clone(&self.stop.told),
            bytes_left: None,
            chunk_min: self.chunk_bytes.0,
            chunk_max: self.chunk_bytes.1,
            flush_interval,
            started: self.started,
        })
    }
}
