//! The engine: runs jobs on a bank. It stamps every command three times: when it was intended, when it was submitted,
//! and (by the bank) when it was reaped.

mod flusher;
mod job;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use base::{Bank, BankError, BufferId, Buffers, Command, Completion, Duration, Instant, Operation};

use crate::interval::{Interval, Miss, StreamInterval, Verb};
use crate::plan::Plan;
use crate::verify::Verification;
use crate::workload::Workload;
use flusher::{FIRST_TAG, Flusher};
use job::{Job, Next};

/// Failures in a row after which a job gives up: the drive is gone, and asking on would only heat a processor.
const FAILURES_MAX: u32 = 100;

/// What a command under way needs to be known by.
#[derive(Clone, Copy, Debug)]
struct Slot {
    job: u32,
    next: Next,
    buffer: BufferId,
    intended: Instant,
    submitted: Instant,
    /// It had to wait because its job had as many commands under way as it may.
    delayed: bool,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// No new commands; those under way are waited for.
    Draining,
    /// Everything written is read again and compared.
    ReadingBack,
    Over,
}

/// Jobs of one plan running on one bank.
#[derive(Debug)]
pub struct Engine<'a, B, M> {
    bank: &'a mut B,
    memory: &'a M,
    workload: Workload,
    jobs: Vec<Job>,
    flushers: Vec<Flusher>,
    slots: Vec<Option<Slot>>,
    free_slots: Vec<u32>,
    /// Open-loop jobs that may start a command, by when they intend to.
    due: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Jobs whose command a drive had no room for, by drive.
    waiting: Vec<VecDeque<u32>>,
    /// How many there are.
    waiting_count: usize,
    /// Some job checks what it reads.
    verifies: bool,
    room: Vec<u32>,
    phase: Phase,
    start: Instant,
    end: Option<Instant>,
    /// Bytes that may still be asked for.
    bytes_left: Option<u64>,
    interval: Interval,
    interval_end: Instant,
    /// What happened in the interval, by stream and verb: an index beats a map for every command.
    counts: Vec<[StreamInterval; 3]>,
    done: Vec<Completion>,
    /// Jobs of completions that were taken. Kept for its memory.
    freed: Vec<u32>,
}

impl<'a, B: Bank, M: Buffers> Engine<'a, B, M> {
    /// Jobs with buffers of at least [`Plan::buffer_bytes`] each, which are filled with what will be written. Then
    /// [`Engine::begin`].
    ///
    /// # Panics
    /// With fewer than [`Plan::depth`] buffers.
    pub fn new(plan: &Plan, bank: &'a mut B, memory: &'a M, buffers: Vec<BufferId>) -> Self {
        assert!(
            buffers.len() >= plan.depth() as usize,
            "{} buffers for {} commands",
            buffers.len(),
            plan.depth()
        );
        let mut buffers = buffers;
        let mut jobs = Vec::new();
        for (index, job) in plan.jobs.iter().enumerate() {
            let own = buffers.split_off(buffers.len() - plan.stream(job).depth as usize);
            jobs.push(Job::new(plan, index, own, memory));
        }
        let workload = plan.workload.clone();
        let room = bank.drives().iter().map(|drive| drive.depth_max).collect();
        let start = bank.now();
        Self {
            slots: (0..plan.depth()).map(|_| None).collect(),
            free_slots: (0..plan.depth()).rev().collect(),
            due: BinaryHeap::new(),
            waiting: vec![VecDeque::new(); bank.drives().len()],
            waiting_count: 0,
            verifies: jobs.iter().any(|job| job.verifier.is_some()),
            room,
            phase: Phase::Running,
            start,
            end: None,
            bytes_left: plan.stop_bytes(),
            interval: Interval::new(0, Duration::ZERO, false),
            interval_end: start,
            counts: (0..workload.streams.len()).map(|_| Default::default()).collect(),
            done: Vec::new(),
            freed: Vec::new(),
            bank,
            memory,
            workload,
            jobs,
            flushers: Flusher::all(plan),
        }
    }

    /// Sets the run's start, which may lie a little ahead. If it lies behind, because nobody gave this thread a processor in time, the
    /// run begins within the interval that is under way, whose end is that of every other engine's, and has all its time.
    pub fn begin(&mut self, start: Instant) {
        let now = start.max(self.bank.now());
        let interval = self.workload.interval.0.as_nanos();
        let index = now.since(start).as_nanos() / interval;
        let counts_from = start + self.workload.warm_up.0;
        self.start = start;
        self.end = self.workload.stop.time.map(|time| now.max(counts_from) + time.0);
        self.interval = Interval::new(index, now.since(start), now < counts_from);
        self.interval_end = start + Duration::from_nanos((index + 1) * interval);
        self.due.clear();
        for (index, job) in self.jobs.iter_mut().enumerate() {
            // A closed loop starts all that it may have under way at once.
            self.due.push(Reverse((job.begin(now), index as u32)));
        }
        self.flushers.iter_mut().for_each(|flusher| flusher.begin(now));
    }

    /// Starts no more commands. [`Engine::step`] goes on until those under way are done.
    pub fn stop(&mut self) {
        if self.phase == Phase::Running {
            self.phase = Phase::Draining;
        }
    }

    /// One round: starts what is due, waits for the next thing to happen, takes what is done. Appends the intervals that
    /// ended to `closed`; returns whether everything is over.
    ///
    /// # Errors
    /// [`BankError`] if the bank fails.
    pub fn step(&mut self, closed: &mut Vec<Interval>) -> Result<bool, BankError> {
        let now = self.bank.now();
        if self.end.is_some_and(|end| now >= end) {
            self.stop();
        }
        self.start_due(now);
        self.flush_due(now);
        if self.under_way() == 0 && self.nothing_will_come() {
            self.advance_phase(closed);
            if self.phase == Phase::Over {
                return Ok(true);
            }
        }
        self.bank.wait(Some(self.wake_up()), &mut self.done)?;
        let mut done = std::mem::take(&mut self.done);
        if !self.flushers.is_empty() {
            self.take_flushes(&mut done);
        }
        self.take_all(&done, closed);
        self.done = done;
        self.done.clear();
        if self.phase == Phase::Running {
            let now = self.bank.now();
            while now >= self.interval_end {
                self.close(self.interval_end, closed);
            }
        }
        Ok(false)
    }

    /// The bank's clock.
    pub fn now(&self) -> Instant {
        self.bank.now()
    }

    /// Commands that are under way.
    pub fn under_way(&self) -> usize {
        let flushes = self.flushers.iter().filter(|flusher| flusher.under_way).count();
        self.slots.len() - self.free_slots.len() + flushes
    }

    /// What the jobs that verify have found.
    pub fn verification(&self) -> Option<Verification> {
        let mut all: Option<Verification> = None;
        for found in self.jobs.iter().filter_map(|job| job.verifier.as_ref()) {
            all.get_or_insert_default().add(found.verification());
        }
        all
    }

    /// Jobs that gave up, by stream's name, with what their drives said last.
    pub fn given_up(&self) -> Vec<(String, String)> {
        let dead = self.jobs.iter().filter(|job| job.failures >= FAILURES_MAX);
        dead.map(|job| {
            (self.workload.streams[usize::from(job.stream)].name.clone(), job.last_error.clone())
        })
        .collect()
    }

    fn nothing_will_come(&self) -> bool {
        match self.phase {
            Phase::Running => {
                self.jobs.iter().all(|job| job.failures >= FAILURES_MAX)
                    || self.bytes_left == Some(0)
            }
            _ => true,
        }
    }

    /// When something must be looked at even if nothing is done.
    fn wake_up(&self) -> Instant {
        let mut wake = self.interval_end;
        if self.phase == Phase::Running {
            if let Some(&Reverse((due, _))) = self.due.peek() {
                wake = wake.min(due);
            }
            let has_room = |flusher: &&Flusher| self.room[flusher.drive.index()] > 0;
            let flush = self.flushers.iter().filter(has_room).filter_map(Flusher::due).min();
            wake.min(self.end.unwrap_or(wake)).min(flush.unwrap_or(wake))
        } else {
            // Nothing else can happen than that commands are done; a second is as good as any.
            self.bank.now() + Duration::from_secs(1)
        }
    }

    fn start_due(&mut self, now: Instant) {
        while self.phase == Phase::Running {
            match self.due.peek() {
                Some(&Reverse((due, _))) if due <= now => {}
                _ => return,
            }
            let Some(Reverse((due, index))) = self.due.pop() else { return };
            if self.end.is_some_and(|end| due >= end) {
                continue;
            }
            self.start_job(index, due, false, usize::MAX);
        }
    }

    /// Sends the flushes that are due, to drives that have room for a command.
    fn flush_due(&mut self, now: Instant) {
        if self.phase != Phase::Running {
            return;
        }
        for (flusher, tag) in self.flushers.iter_mut().zip(FIRST_TAG..) {
            let room = &mut self.room[flusher.drive.index()];
            if *room > 0 && flusher.due().is_some_and(|due| due <= now) {
                let command = Command { drive: flusher.drive, operation: Operation::Flush, tag };
                self.bank.submit(command).expect("the drive has room");
                *room -= 1;
                flusher.sent(now);
            }
        }
    }

    /// Takes the flushes out of what is done. They are no commands of a stream: one that failed counts among its writes.
    fn take_flushes(&mut self, done: &mut Vec<Completion>) {
        done.retain(|completion| {
            let Some(at) = completion.tag.checked_sub(FIRST_TAG) else { return true };
            let flusher = &mut self.flushers[at as usize];
            flusher.under_way = false;
            self.room[completion.drive.index()] += 1;
            if let Err(error) = &completion.outcome {
                let stream = &mut self.counts[usize::from(flusher.stream)][Verb::Write.index()];
                *stream.errors.entry(format!("flush: {error}")).or_default() += 1;
            }
            false
        });
    }

    /// Starts all that a job may start now. `free` is since when it could have; `held_up` says that until then it could not,
    /// because too much was under way. After `commands_max` the job is held up again.
    fn start_job(&mut self, index: u32, free: Instant, held_up: bool, commands_max: usize) {
        let mut started = 0;
        while self.phase == Phase::Running {
            let job = &mut self.jobs[index as usize];
            if job.failures >= FAILURES_MAX || self.bytes_left == Some(0) {
                return;
            }
            let intended = job.intended();
            if let Some(next) = intended
                && (next > self.bank.now() || self.end.is_some_and(|end| next >= end))
            {
                self.due.push(Reverse((next, index)));
                return;
            }
            let Some(&buffer) = job.buffers.last().filter(|_| started < commands_max) else {
                job.held_up = true;
                return;
            };
            started += 1;
            let drive = job.drive.index();
            if self.room[drive] == 0 {
                job.held_up = true;
                if !std::mem::replace(&mut job.waiting, true) {
                    self.waiting[drive].push_back(index);
                    self.waiting_count += 1;
                }
                return;
            }
            let Some(next) = job.choose(self.bytes_left) else {
                if job.under_way() > 0 {
                    // Every place it drew is busy; a completion frees one.
                    job.held_up = true;
                    return;
                }
                continue;
            };
            job.buffers.pop();
            job.advance(next.length);
            let next = job.fill(next, buffer, self.memory);
            if let Some(left) = &mut self.bytes_left {
                *left = left.saturating_sub(next.length);
            }
            let delayed = held_up && intended.is_some_and(|intended| intended < free);
            let submitted = self.submit(index, next, buffer, intended, delayed);
            if let Some(intended) = intended {
                self.interval.lag.record(submitted.since(free.max(intended)));
            }
        }
    }

    fn submit(
        &mut self,
        index: u32,
        next: Next,
        buffer: BufferId,
        intended: Option<Instant>,
        delayed: bool,
    ) -> Instant {
        let job = &self.jobs[index as usize];
        let Next { verb, offset, length, fua, .. } = next;
        let operation = match verb {
            Verb::Read => Operation::Read { offset, length: length as u32, buffer },
            Verb::Write => Operation::Write { offset, length: length as u32, buffer, fua },
            Verb::Trim => Operation::Trim { offset, length },
        };
        let drive = job.drive;
        let tag = self.free_slots.pop().expect("a slot for each buffer");
        let submitted = self.bank.now();
        self.bank
            .submit(Command { drive, operation, tag: u64::from(tag) })
            .expect("no more commands than the drive's depth are under way");
        self.room[drive.index()] -= 1;
        // A closed loop intends a command when it submits it.
        let intended = intended.unwrap_or(submitted);
        self.slots[tag as usize] =
            Some(Slot { job: index, next, buffer, intended, submitted, delayed });
        submitted
    }

    /// Takes completions, and starts what each of them made room for.
    fn take_all(&mut self, done: &[Completion], closed: &mut Vec<Interval>) {
        if !self.can_take_all_first(done) {
            for completion in done {
                let job = self.take(completion, closed);
                self.go_on(job, completion, usize::MAX);
            }
            return;
        }
        let mut freed = std::mem::take(&mut self.freed);
        freed.extend(done.iter().map(|completion| self.take(completion, closed)));
        for (job, completion) in freed.drain(..).zip(done) {
            self.go_on(job, completion, 1);
        }
        self.freed = freed;
    }

    /// Whether it makes no difference to what is started, and in which order, that all completions are taken before anything is. It
    /// makes one to the processor: a bank goes through the kernel once for a few commands, which leaves little of our code and data in
    /// the nearest caches.
    fn can_take_all_first(&self, done: &[Completion]) -> bool {
        done.len() > 1
            && self.phase == Phase::Running
            && self.waiting_count == 0
            && !self.verifies
            && self.end.is_none_or(|end| done.iter().all(|completion| completion.reaped < end))
    }

    /// Takes a completion and counts it. Returns its job.
    fn take(&mut self, completion: &Completion, closed: &mut Vec<Interval>) -> u32 {
        let slot = self.slots[completion.tag as usize].take().expect("a command completes once");
        self.free_slots.push(completion.tag as u32);
        self.room[completion.drive.index()] += 1;
        if !self.flushers.is_empty() {
            // Before the next command takes the room, or a job that keeps the drive full would never let a flush in.
            self.flush_due(completion.reaped);
        }
        // What is reaped at the very end of an interval belongs to it.
        while self.phase == Phase::Running && completion.reaped > self.interval_end {
            self.close(self.interval_end, closed);
        }
        if self.phase != Phase::ReadingBack {
            self.count(&slot, completion);
        }
        if self.end.is_some_and(|end| completion.reaped >= end) {
            self.stop();
        }
        let job = &mut self.jobs[slot.job as usize];
        job.finish(&slot.next, slot.buffer, &completion.outcome, self.memory);
        slot.job
    }

    /// Starts what a completion of this job made room for, at most so many commands of the job itself.
    fn go_on(&mut self, index: u32, completion: &Completion, commands_max: usize) {
        match self.phase {
            Phase::Running => {
                let held_up = std::mem::take(&mut self.jobs[index as usize].held_up);
                // Those that wait for the drive come first, or a fast job would never let them in.
                if let Some(other) = self.waiting[completion.drive.index()].pop_front() {
                    self.waiting_count -= 1;
                    let other_job = &mut self.jobs[other as usize];
                    other_job.waiting = false;
                    other_job.held_up = false;
                    self.start_job(other, completion.reaped, true, usize::MAX);
                }
                if held_up && !self.jobs[index as usize].waiting {
                    self.start_job(index, completion.reaped, true, commands_max);
                }
            }
            Phase::ReadingBack => self.read_back(index),
            Phase::Draining | Phase::Over => {}
        }
    }

    fn count(&mut self, slot: &Slot, completion: &Completion) {
        let job = &mut self.jobs[slot.job as usize];
        let stream = &mut self.counts[usize::from(job.stream)][slot.next.verb.index()];
        stream.delayed += u64::from(slot.delayed);
        if let Err(error) = &completion.outcome {
            *stream.errors.entry(error.to_string()).or_default() += 1;
            return;
        }
        let service = completion.reaped.since(slot.submitted);
        let response = completion.reaped.since(slot.intended);
        stream.bytes += slot.next.length;
        stream.service.record(service);
        // In a closed loop it is the same as the service, and copied once an interval.
        if job.is_open() {
            stream.response.record(response);
        }
        if job.deadline.is_some_and(|deadline| response > deadline) {
            stream.missed += 1;
            self.interval.first_miss.get_or_insert(Miss {
                stream: job.stream,
                drive: job.drive.0,
                intended_ns: slot.intended.since(self.start).as_nanos(),
                waited_ns: slot.submitted.since(slot.intended).as_nanos(),
                service_ns: service.as_nanos(),
            });
        }
    }

    fn close(&mut self, at: Instant, closed: &mut Vec<Interval>) {
        let index = self.interval.index + 1;
        let start = at.since(self.start);
        let warm_up = start < self.workload.warm_up.0;
        let mut whole = std::mem::replace(&mut self.interval, Interval::new(index, start, warm_up));
        whole.length = start - whole.start;
        for (stream, verbs) in self.counts.iter_mut().enumerate() {
            for verb in Verb::ALL {
                let counted = &mut verbs[verb.index()];
                if !self.workload.streams[stream].is_open() {
                    counted.response.clone_from(&counted.service);
                }
                if counted.count() > 0 || !counted.errors.is_empty() {
                    whole.streams.insert((stream as u16, verb), std::mem::take(counted));
                }
            }
        }
        closed.push(whole);
        self.interval_end = at + self.workload.interval.0;
    }

    fn advance_phase(&mut self, closed: &mut Vec<Interval>) {
        match self.phase {
            Phase::Running | Phase::Draining => {
                self.count_unsent();
                let now = self.bank.now();
                let empty =
                    self.counts.iter().flatten().all(|c| c.count() == 0 && c.errors.is_empty());
                // What was reaped before the interval's end is all there is: the look at the clock came later.
                let end = match self.phase {
                    Phase::Running => now.min(self.interval_end),
                    _ => now,
                };
                if !empty || end.since(self.start) > self.interval.start || self.interval.unsent > 0
                {
                    self.close(end, closed);
                }
                self.phase = Phase::ReadingBack;
                for index in 0..self.jobs.len() as u32 {
                    for _ in 0..self.jobs[index as usize].depth {
                        self.read_back(index);
                    }
                }
                if self.under_way() == 0 {
                    self.phase = Phase::Over;
                }
            }
            Phase::ReadingBack | Phase::Over => self.phase = Phase::Over,
        }
    }

    /// Commands of open loops that were intended before the end and never started.
    fn count_unsent(&mut self) {
        if self.bytes_left == Some(0) {
            return;
        }
        let now = self.bank.now();
        let end = self.end.map_or(now, |end| end.min(now));
        self.interval.unsent = self.jobs.iter_mut().map(|job| job.unsent_before(end)).sum();
    }

    /// Starts the next read of what a job wrote, if there is more.
    fn read_back(&mut self, index: u32) {
        let job = &mut self.jobs[index as usize];
        if self.room[job.drive.index()] == 0 || job.failures >= FAILURES_MAX {
            return;
        }
        let (Some(next), Some(buffer)) = (job.next_to_read_back(), job.buffers.last().copied())
        else {
            return;
        };
        job.buffers.pop();
        self.submit(index, next, buffer, None, false);
    }
}
