//! One job: chooses its commands, fills what it writes, checks what it reads.

use base::{BufferId, Buffers, DeviceError, DriveId, Duration, Instant, Random};

use crate::address::Addresses;
use crate::content::Filler;
use crate::interval::Verb;
use crate::plan::Plan;
use crate::quantity::Pace;
use crate::schedule::Schedule;
use crate::trace::{Playback, Recorded};
use crate::verify::Verifier;
use crate::workload::{Arrival, Blocks, Content};

/// Draws of a place that is free before a job that verifies waits for one.
const DRAWS_MAX: u32 = 16;

/// Unsent commands are counted one by one up to here; more are as bad.
const UNSENT_MAX: u64 = 10_000_000;

/// A command to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub verb: Verb,
    /// On the drive, in bytes.
    pub offset: u64,
    pub length: u64,
    /// The write's number, if it verifies.
    pub number: u32,
    /// The write asks for Force Unit Access.
    pub fua: bool,
}

#[derive(Debug)]
pub(super) struct Job {
    pub stream: u16,
    pub drive: DriveId,
    pub depth: u32,
    pub deadline: Option<Duration>,
    schedule: Option<Schedule>,
    pace: Option<(Pace, Arrival)>,
    /// Its commands come from a trace.
    playback: Option<Playback>,
    /// They have the trace's times.
    recorded_times: bool,
    start: Instant,
    /// Its share of the first distance, so that jobs of one rate don't all start together.
    phase: f64,
    random: Random,
    /// Buffers that are free.
    pub buffers: Vec<BufferId>,
    /// It has something to start, and couldn't.
    pub held_up: bool,
    /// It stands in its drive's queue.
    pub waiting: bool,
    pub verifier: Option<Verifier>,
    /// Failures since the last success.
    pub failures: u32,
    pub last_error: String,
    from: u64,
    bytes: u64,
    align: u64,
    addresses: Addresses,
    weights: [u32; 3],
    blocks: Blocks,
    filler: Filler,
    fua: bool,
    /// Up to where everything has been read back.
    read_back: u64,
}

impl Job {
    /// The job of that place in the plan, with the buffers it may use.
    pub fn new<M: Buffers>(plan: &Plan, index: usize, buffers: Vec<BufferId>, memory: &M) -> Self {
        let job = &plan.jobs[index];
        let stream = plan.stream(job);
        // Jobs differ by everything that makes them what they are, however they are dealt out.
        let mut random = Random::new(plan.workload.seed);
        for part in [u64::from(job.stream), u64::from(job.drive.0), job.from, u64::from(job.number)]
        {
            random = Random::new(random.bits() ^ part);
        }
        let mut filler = Filler::new(stream.content, random.bits());
        let verifier = (stream.content == Content::Verify).then(|| {
            Verifier::new(random.bits(), job.drive, job.from, job.bytes, stream.align_bytes())
        });
        if stream.write > 0 && verifier.is_none() {
            for buffer in &buffers {
                memory.with(*buffer, &mut |bytes| filler.prepare(bytes));
            }
        }
        Self {
            stream: job.stream,
            drive: job.drive,
            depth: stream.depth,
            deadline: stream.deadline.map(|time| time.0),
            pace: stream.rate.map(|pace| (pace, stream.arrival)),
            phase: f64::from(job.number) / f64::from(job.of.max(1)),
            schedule: None,
            playback: stream.trace.as_ref().and_then(Recorded::requests).map(Playback::new),
            recorded_times: stream.trace.as_ref().is_some_and(Recorded::is_open),
            start: Instant::START,
            buffers,
            held_up: false,
            waiting: false,
            verifier,
            failures: 0,
            last_error: String::new(),
            from: job.from,
            bytes: job.bytes,
            align: stream.align_bytes(),
            addresses: Addresses::new(
                stream.pattern,
                job.bytes,
                stream.align_bytes(),
                job.number.into(),
                job.of.into(),
            ),
            weights: [stream.read, stream.write, stream.trim],
            blocks: stream.block.clone(),
            filler,
            fua: stream.fua,
            read_back: job.from,
            random,
        }
    }

    /// Makes its schedule; returns when its first command is intended.
    pub fn begin(&mut self, start: Instant) -> Instant {
        self.start = start;
        self.schedule = self.pace.map(|(pace, arrival)| {
            Schedule::new(pace, arrival, start, self.phase, self.blocks.mean())
        });
        self.intended().unwrap_or(start)
    }

    /// Whether it keeps a schedule, whatever the drive does (an open loop).
    #[inline]
    pub fn is_open(&self) -> bool {
        self.schedule.is_some() || self.recorded_times
    }

    /// When its next command is intended, in an open loop.
    #[inline]
    pub fn intended(&self) -> Option<Instant> {
        match &self.playback {
            Some(playback) => self.recorded_times.then(|| playback.due(self.start)),
            None => self.schedule.as_ref().map(Schedule::next),
        }
    }

    /// A command of so many bytes was started. A trace goes on when its request is taken.
    #[inline]
    pub fn advance(&mut self, bytes: u64) {
        if let Some(schedule) = &mut self.schedule {
            schedule.advance(bytes, &mut self.random);
        }
    }

    pub fn under_way(&self) -> usize {
        self.depth as usize - self.buffers.len()
    }

    /// The next command, not longer than `left` bytes allow; None if the places it drew are busy.
    pub fn choose(&mut self, left: Option<u64>) -> Option<Next> {
        if let Some(playback) = &mut self.playback {
            let request = playback.take()?;
            let (offset, length) = (request.offset, request.length.into());
            return Some(Next { verb: request.verb, offset, length, number: 0, fua: request.fua });
        }
        let verb = Verb::ALL[weighted(&self.weights, |w| *w, &mut self.random)];
        let block = weighted(&self.blocks.0, |(_, weight)| *weight, &mut self.random);
        let mut length = self.blocks.0[block].0.0;
        if let Some(left) = left {
            length = length.min(left.next_multiple_of(self.align));
        }
        for _ in 0..DRAWS_MAX {
            let offset = self.from + self.addresses.next(length, &mut self.random);
            if self.verifier.as_mut().is_none_or(|verifier| verifier.claim(offset, length)) {
                return Some(Next { verb, offset, length, number: 0, fua: self.fua });
            }
        }
        None
    }

    /// Puts a write's bytes into its buffer.
    pub fn fill<M: Buffers>(&mut self, mut next: Next, buffer: BufferId, memory: &M) -> Next {
        if next.verb == Verb::Write {
            let length = next.length as usize;
            memory.with(buffer, &mut |bytes| match &mut self.verifier {
                Some(verifier) => next.number = verifier.fill(next.offset, &mut bytes[..length]),
                None => self.filler.renew(&mut bytes[..length]),
            });
        }
        next
    }

    /// Takes its buffer back; checks what was read, and remembers what was written.
    #[inline]
    pub fn finish<M: Buffers>(
        &mut self,
        next: &Next,
        buffer: BufferId,
        outcome: &Result<(), DeviceError>,
        memory: &M,
    ) {
        self.buffers.push(buffer);
        match outcome {
            Ok(()) => self.failures = 0,
            Err(error) => {
                self.failures += 1;
                self.last_error = error.to_string();
            }
        }
        let Some(verifier) = &mut self.verifier else { return };
        verifier.release(next.offset);
        match (next.verb, outcome) {
            (Verb::Read, Ok(())) => {
                memory.with(buffer, &mut |bytes| {
                    verifier.check(next.offset, &bytes[..next.length as usize])
                });
            }
            (Verb::Read, Err(_)) => {}
            (Verb::Write, Ok(())) => verifier.written(next.offset, next.length, next.number),
            (Verb::Write | Verb::Trim, _) => verifier.unknown(next.offset, next.length),
        }
    }

    /// The next read of what was written and not read back yet.
    pub fn next_to_read_back(&mut self) -> Option<Next> {
        let verifier = self.verifier.as_ref()?;
        if self.read_back >= self.from + self.bytes {
            return None;
        }
        let (offset, length) = verifier.next_written(self.read_back, self.blocks.longest())?;
        self.read_back = offset + length;
        Some(Next { verb: Verb::Read, offset, length, number: 0, fua: false })
    }

    /// Commands that its schedule intends before `end` and that were never started.
    pub fn unsent_before(&mut self, end: Instant) -> u64 {
        let mut unsent = 0;
        if let Some(playback) = self.playback.as_mut().filter(|_| self.recorded_times) {
            while playback.due(self.start) < end && playback.take().is_some() {
                unsent += 1;
            }
            return unsent;
        }
        let Some(schedule) = &mut self.schedule else { return 0 };
        let mean = self.blocks.mean() as u64;
        while schedule.next() < end && unsent < UNSENT_MAX {
            schedule.advance(mean, &mut self.random);
            unsent += 1;
        }
        unsent
    }
}

/// The place of one of `items`, by weight.
#[inline]
fn weighted<T>(items: &[T], weight: impl Fn(&T) -> u32, random: &mut Random) -> usize {
    if items.len() == 1 {
        return 0;
    }
    let total: u64 = items.iter().map(|item| u64::from(weight(item))).sum();
    let mut draw = random.below(total);
    for (index, item) in items.iter().enumerate() {
        let weight = u64::from(weight(item));
        if draw < weight {
            return index;
        }
        draw -= weight;
    }
    items.len() - 1
}
