//! A rig of real drives: several engines, each with a thread, a ring and memory of its own, on the same drives.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use base::striped::{StripedError, StripedSet};
use base::{Bank, BufferId, Duration, Geometry, Instant, StripedBank};
use device::priority::{IoPriority, set_io_priority};
use device::target::OpenTarget;
use device::{Options, Pages, Pool, UringBank, Warning};
use load::measurement::{Collector, ProcessorTime};
use load::verify::Verification;
use load::workload::Priority;
use load::{Engine, Interval, Measurement, Plan, Workload};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;

use crate::analysis::Sample;
use crate::counters::{CounterSource, Counters};
use crate::rig::{Go, Rig, RigError, Watch};

/// How the engines use the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadOptions {
    /// Engines, at most: streams of different priorities are always apart.
    pub threads: usize,
    /// Processors to bind them to, in turn; empty leaves them to the kernel.
    pub cpus: Vec<usize>,
    /// Poll for completions where the drives can, instead of waiting for interrupts.
    pub poll: bool,
}

impl Default for ThreadOptions {
    fn default() -> Self {
        Self { threads: 1, cpus: Vec::new(), poll: false }
    }
}

/// Buffers up to here get pages of their own, in bytes.
const SMALL_BUFFER_BYTES: u32 = 4096;

/// How often the drives' sensors are read.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Time from the last engine being ready to the common start.
const COUNTDOWN: Duration = Duration::from_millis(2);

/// Reads the drives' sensors; called about once a second.
pub type Sensors = Box<dyn FnMut() -> Vec<(u16, Sample)> + Send>;

/// Real drives.
pub struct ThreadRig {
    targets: Vec<OpenTarget>,
    geometry: Vec<Geometry>,
    /// The drives are one to workloads.
    set: Option<StripedSet>,
    options: ThreadOptions,
    sensors: Sensors,
    counters: Option<CounterSource>,
    /// What opening the banks said, each once.
    warnings: Vec<String>,
}

impl std::fmt::Debug for ThreadRig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThreadRig")
            .field("geometry", &self.geometry)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// What an engine's thread says.
enum Word {
    /// Its bank is open and its buffers are full; its clock says this.
    Ready(Instant),
    /// These intervals are over.
    Closed(Vec<Interval>),
    /// It has ended.
    Ended(Result<Ending, RigError>),
}

struct Ending {
    cpu: ProcessorTime,
    verification: Option<Verification>,
    given_up: Vec<(String, String)>,
    warnings: Vec<Warning>,
}

struct Worker {
    thread: JoinHandle<()>,
    start: Sender<Instant>,
}

impl ThreadRig {
    /// On open drives. `sensors` are read beside every run.
    pub fn new(targets: Vec<OpenTarget>, options: ThreadOptions, sensors: Sensors) -> Self {
        let geometry = targets.iter().map(|target| target.geometry.clone()).collect();
        let (set, counters) = (None, None);
        Self { targets, geometry, set, options, sensors, counters, warnings: Vec::new() }
    }

    /// The same, with the drives' own counters, which are read before and after each step.
    #[must_use]
    pub fn counting(self, counters: CounterSource) -> Self {
        Self { counters: Some(counters), ..self }
    }

    /// On open drives as a striped set, which is one drive to workloads.
    ///
    /// # Errors
    /// If they can't be one.
    pub fn striped(self, set: StripedSet) -> Result<Self, StripedError> {
        let geometry = vec![set.geometry(&self.geometry)?];
        let mut members = self.sensors;
        // Whatever a member says, the set does.
        let sensors: Sensors =
            Box::new(move || members().into_iter().map(|(_, sample)| (0, sample)).collect());
        Ok(Self { geometry, set: Some(set), sensors, ..self })
    }

    /// What there was to warn of since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn spawn(
        &self,
        plans: Vec<Plan>,
        words: &Sender<(usize, Word)>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<Worker>, RigError> {
        let mut workers = Vec::new();
        for (index, plan) in plans.into_iter().enumerate() {
            let targets =
                self.targets.iter().map(OpenTarget::try_clone).collect::<Result<Vec<_>, _>>();
            let targets = targets.map_err(|reason| {
                RigError::Open(format!(
                    "opening the drives once more for a thread failed: {reason}"
                ))
            })?;
            let (start, starts) = channel();
            let (words, stop, options) = (words.clone(), Arc::clone(stop), self.options.clone());
            let set = self.set.clone();
            let thread = std::thread::Builder::new()
                .name(format!("load-{index}"))
                .spawn(move || {
                    let ended = prepare_thread(&plan, &options, index).and_then(|()| {
                        let post = Post { index, words: &words, starts: &starts, stop: &stop };
                        open_and_run(&plan, targets, set.as_ref(), &options, &post)
                    });
                    // Nobody listening means that the run was given up.
                    words.send((index, Word::Ended(ended))).ok();
                })
                .map_err(|reason| RigError::Open(format!("starting a thread failed: {reason}")))?;
            workers.push(Worker { thread, start });
        }
        Ok(workers)
    }
}

impl Rig for ThreadRig {
    fn drives(&self) -> &[Geometry] {
        &self.geometry
    }

    fn run(&mut self, workload: &Workload, watch: &mut Watch<'_>) -> Result<Measurement, RigError> {
        let plans = Plan::new(workload, &self.geometry)?.split(self.options.threads);
        let threads = plans.len();
        let (words, heard) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let workers = self.spawn(plans, &words, &stop)?;
        drop(words);
        let (starts, threads_running): (Vec<_>, Vec<_>) =
            workers.into_iter().map(|w| (w.start, w.thread)).unzip();
        let outcome = self.follow(workload, watch, &heard, starts, &stop);
        stop.store(true, Ordering::Relaxed);
        drop(heard);
        for thread in threads_running {
            thread.join().expect("an engine's thread does not panic");
        }
        let (collector, ending) = outcome?;
        for warning in ending.warnings.iter().map(ToString::to_string) {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        let names = self.geometry.iter().map(|drive| drive.name.clone()).collect();
        Ok(collector.finish(
            names,
            threads as u32,
            Some(ending.cpu),
            ending.verification,
            ending.given_up,
        ))
    }

    fn rest(
        &mut self,
        time: Duration,
        tick: &mut dyn FnMut(Duration) -> Go,
    ) -> Result<(), RigError> {
        let start = std::time::Instant::now();
        let time = StdDuration::from(time);
        loop {
            let rested = start.elapsed();
            if rested >= time || tick(Duration::from_nanos(rested.as_nanos() as u64)) == Go::Stop {
                return Ok(());
            }
            std::thread::sleep((time - rested).min(StdDuration::from_millis(200)));
        }
    }

    fn counters(&mut self) -> Counters {
        match &mut self.counters {
            Some(read) => read(),
            None => Counters::not_known("the drives' counters were not requested"),
        }
    }
}

impl ThreadRig {
    /// From the engines' being ready to their end: starts them together and joins their intervals.
    fn follow(
        &mut self,
        workload: &Workload,
        watch: &mut Watch<'_>,
        heard: &Receiver<(usize, Word)>,
        starts: Vec<Sender<Instant>>,
        stop: &AtomicBool,
    ) -> Result<(Collector, Ending), RigError> {
        start_together(heard, &starts)?;
        let mut collector = Collector::new(workload);
        let mut joiner = Joiner::new(starts.len());
        let mut whole = Ending {
            cpu: ProcessorTime::default(),
            verification: None,
            given_up: Vec::new(),
            warnings: Vec::new(),
        };
        let began = std::time::Instant::now();
        let mut sampled_ns = 0;
        let mut fresh = Vec::new();
        let mut failure = None;
        while joiner.running > 0 {
            let elapsed_ns = began.elapsed().as_nanos() as u64;
            if elapsed_ns >= sampled_ns {
                sampled_ns = elapsed_ns + SAMPLE_EVERY.as_nanos();
                fresh.extend(
                    (self.sensors)()
                        .into_iter()
                        .map(|(drive, sample)| (drive, Sample { at_ns: elapsed_ns, ..sample })),
                );
            }
            match heard.recv_timeout(StdDuration::from_millis(200)) {
                Ok((index, Word::Closed(intervals))) => joiner.add(index, intervals),
                Ok((index, Word::Ended(ended))) => {
                    joiner.end(index);
                    match ended {
                        Ok(ending) => whole.join(ending),
                        Err(error) => {
                            stop.store(true, Ordering::Relaxed);
                            failure.get_or_insert(error);
                        }
                    }
                }
                Ok((_, Word::Ready(_))) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while let Some(interval) = joiner.next() {
                collector.add(&interval);
                if watch(&interval, &fresh) == Go::Stop {
                    stop.store(true, Ordering::Relaxed);
                }
                fresh.clear();
            }
        }
        failure.map_or(Ok((collector, whole)), Err)
    }
}

/// Waits until all engines are ready, and has them start at one instant.
fn start_together(
    heard: &Receiver<(usize, Word)>,
    starts: &[Sender<Instant>],
) -> Result<(), RigError> {
    let mut latest = Instant::START;
    for _ in 0..starts.len() {
        match heard.recv() {
            Ok((_, Word::Ready(now))) => latest = latest.max(now),
            Ok((_, Word::Ended(Err(error)))) => return Err(error),
            _ => return Err(RigError::Open("an engine ended before it began".to_owned())),
        }
    }
    for sender in starts {
        // If an engine has already ended, its result says why.
        sender.send(latest + COUNTDOWN).ok();
    }
    Ok(())
}

impl Ending {
    fn join(&mut self, other: Self) {
        self.cpu.user_ns += other.cpu.user_ns;
        self.cpu.system_ns += other.cpu.system_ns;
        self.cpu.busiest_ns = self.cpu.busiest_ns.max(other.cpu.busiest_ns);
        if let Some(found) = other.verification {
            self.verification.get_or_insert_default().add(&found);
        }
        self.given_up.extend(other.given_up);
        self.warnings.extend(other.warnings);
    }
}

/// How an engine's thread hears and is heard.
struct Post<'a> {
    index: usize,
    words: &'a Sender<(usize, Word)>,
    starts: &'a Receiver<Instant>,
    stop: &'a AtomicBool,
}

/// Opens one engine's bank and runs the engine on it.
fn open_and_run(
    plan: &Plan,
    targets: Vec<OpenTarget>,
    set: Option<&StripedSet>,
    options: &ThreadOptions,
    post: &Post<'_>,
) -> Result<Ending, RigError> {
    let open = |error: &dyn std::fmt::Display| RigError::Open(error.to_string());
    let (own, bytes) = (plan.depth(), plan.buffer_bytes());
    let spare = set.map_or(0, |set| set.spare_buffers(own, targets.len(), bytes));
    // A page of its own spares a small buffer the kernel's look whether it must be split; larger ones are split less in huge pages.
    let pages = if bytes <= SMALL_BUFFER_BYTES { Pages::Normal } else { Pages::Huge };
    let (pool, _) = Pool::new(own + spare, bytes as usize, pages).map_err(|e| open(&e))?;
    let bank_options = Options {
        depth_max: plan.depth_of_one_drive(),
        poll: options.poll,
        tight_loop: true,
        ..Options::default()
    };
    let (bank, warnings) =
        UringBank::open(targets, Arc::clone(&pool), bank_options).map_err(|e| open(&e))?;
    let ending = match set {
        None => engine(plan, bank, &pool, post),
        Some(set) => {
            let spare = (own..own + spare).map(BufferId).collect();
            let bank = StripedBank::new(bank, set, Arc::clone(&pool), spare);
            engine(plan, bank.map_err(|e| open(&e))?, &pool, post)
        }
    };
    ending.map(|ending| Ending { warnings, ..ending })
}

/// One engine's life, on a thread of its own.
fn engine<B: Bank>(
    plan: &Plan,
    mut bank: B,
    pool: &Arc<Pool>,
    post: &Post<'_>,
) -> Result<Ending, RigError> {
    let Post { index, words, starts, stop } = *post;
    let buffers = pool.buffer_ids().take(plan.depth() as usize).collect();
    let mut engine = Engine::new(plan, &mut bank, pool, buffers);
    words.send((index, Word::Ready(engine.now()))).ok();
    let Ok(start) = starts.recv() else {
        return Err(RigError::Open("the run was cancelled before it began".to_owned()));
    };
    engine.begin(start);
    let before = processor_time();
    let mut closed = Vec::new();
    while !engine.step(&mut closed)? {
        if !closed.is_empty() {
            words.send((index, Word::Closed(std::mem::take(&mut closed)))).ok();
        }
        if stop.load(Ordering::Relaxed) {
            engine.stop();
        }
    }
    words.send((index, Word::Closed(closed))).ok();
    let after = processor_time();
    let (user_ns, system_ns) = (after.0 - before.0, after.1 - before.1);
    let cpu = ProcessorTime { user_ns, system_ns, busiest_ns: user_ns + system_ns };
    let (verification, given_up) = (engine.verification(), engine.given_up());
    Ok(Ending { cpu, verification, given_up, warnings: Vec::new() })
}

/// Binds the thread, gives it its streams' priority, and has it woken on time.
fn prepare_thread(plan: &Plan, options: &ThreadOptions, index: usize) -> Result<(), RigError> {
    let failed = |what: &str, reason: &dyn std::fmt::Display| {
        RigError::Open(format!("{what} failed: {reason}"))
    };
    if !options.cpus.is_empty() {
        let cpu = options.cpus[index % options.cpus.len()];
        let mut set = CpuSet::new();
        set.set(cpu)
            .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
            .map_err(|reason| failed(&format!("binding a thread to processor {cpu}"), &reason))?;
    }
    // The kernel may otherwise wake a sleeper 50 us late to save power.
    nix::sys::prctl::set_timerslack(1)
        .map_err(|reason| failed("asking for exact timers", &reason))?;
    let priority = plan.jobs.first().and_then(|job| plan.stream(job).priority);
    if let Some(priority) = priority {
        let wanted = match priority {
            Priority::RealTime(level) => IoPriority::RealTime(level),
            Priority::BestEffort(level) => IoPriority::BestEffort(level),
            Priority::Idle => IoPriority::Idle,
        };
        set_io_priority(wanted)
            .map_err(|reason| failed(&format!("giving a stream priority {priority}"), &reason))?;
    }
    Ok(())
}

/// Of this thread: user and kernel, in nanoseconds.
fn processor_time() -> (u64, u64) {
    let ns = |time: nix::sys::time::TimeVal| {
        (time.tv_sec() * 1_000_000_000 + time.tv_usec() * 1_000) as u64
    };
    getrusage(UsageWho::RUSAGE_THREAD)
        .map_or((0, 0), |usage| (ns(usage.user_time()), ns(usage.system_time())))
}

/// Joins what several engines did in the same interval.
struct Joiner {
    /// Each engine's intervals that still wait for the others', by index; None when it has ended.
    queues: Vec<(VecDeque<Interval>, bool)>,
    running: usize,
    /// What is left of engines that have ended.
    late: BTreeMap<u64, Interval>,
}

impl Joiner {
    fn new(engines: usize) -> Self {
        Self {
            queues: (0..engines).map(|_| (VecDeque::new(), true)).collect(),
            running: engines,
            late: BTreeMap::new(),
        }
    }

    fn add(&mut self, engine: usize, intervals: Vec<Interval>) {
        self.queues[engine].0.extend(intervals);
    }

    fn end(&mut self, engine: usize) {
        if std::mem::replace(&mut self.queues[engine].1, false) {
            self.running -= 1;
        }
    }

    /// The next interval that every engine has closed.
    fn next(&mut self) -> Option<Interval> {
        if self.queues.iter().any(|(queue, running)| *running && queue.is_empty()) {
            return None;
        }
        for (queue, _) in &mut self.queues {
            if let Some(interval) = queue.pop_front() {
                self.late
                    .entry(interval.index)
                    .and_modify(|whole| whole.add(&interval))
                    .or_insert(interval);
            }
        }
        self.late.pop_first().map(|(_, interval)| interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_begins_late_is_joined_with_what_the_others_did_at_the_time() {
        let interval = |index: u64, from_ms: u64| Interval {
            length: Duration::from_millis(1000 * (index + 1) - from_ms),
            unsent: 1,
            ..Interval::new(index, Duration::from_millis(from_ms), false)
        };
        let mut joiner = Joiner::new(2);
        joiner.add(0, (0..4).map(|index| interval(index, 1000 * index)).collect());
        assert_eq!(joiner.next(), None, "the late one may have been in time");
        joiner.add(1, vec![interval(2, 2530), interval(3, 3000), interval(4, 4000)]);
        let mut joined: Vec<Interval> = std::iter::from_fn(|| joiner.next()).collect();
        joiner.end(0);
        joiner.end(1);
        joined.extend(std::iter::from_fn(|| joiner.next()));
        let told = |i: &Interval| (i.index, i.start.as_nanos() / 1_000_000, i.unsent);
        let told: Vec<_> = joined.iter().map(told).collect();
        assert_eq!(told, [(0, 0, 1), (1, 1000, 1), (2, 2000, 2), (3, 3000, 2), (4, 4000, 1)]);
        assert!(joined.iter().all(|i| i.length == Duration::from_secs(1)));
    }
}
