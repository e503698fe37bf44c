//! A rig: drives with instruments around them, on which workloads run. Experiments know nothing else, so they are the same
//! on real drives and on simulated ones.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Bank, BankError, BufferId, Buffers, Duration, Geometry, Instant, NoBuffers};
use load::measurement::Collector;
use load::{Engine, Interval, Measurement, Plan, PlanError, Workload};

use crate::analysis::Sample;

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// It does.
    On,
    /// It has shown what it was to show: stop now, and keep what was measured.
    Stop,
}

/// Looks at every interval as it closes, with what the drives' own sensors said meanwhile (drive and sample).
pub type Watch<'a> = dyn FnMut(&Interval, &[(u16, Sample)]) -> Go + 'a;

/// Why a workload didn't run.
#[derive(Debug)]
pub enum RigError {
    /// It doesn't fit the drives.
    Plan(PlanError),
    /// The bank can't be opened.
    Open(String),
    /// The bank failed.
    Bank(BankError),
}

impl fmt::Display for RigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => write!(f, "the workload doesn't fit the drives: {error}"),
            Self::Open(reason) => f.write_str(reason),
            Self::Bank(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RigError {}

impl From<PlanError> for RigError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl From<BankError> for RigError {
    fn from(error: BankError) -> Self {
        Self::Bank(error)
    }
}

/// Drives with instruments around them.
pub trait Rig {
    /// The drives.
    fn drives(&self) -> &[Geometry];

    /// Runs a workload to its end, or until `watch` has seen enough.
    ///
    /// # Errors
    /// [`RigError`]; failures of single commands are in the measurement instead.
    fn run(&mut self, workload: &Workload, watch: &mut Watch<'_>) -> Result<Measurement, RigError>;

    /// Leaves the drives alone for a while. `tick` is called now and then with the time rested; it may end the rest.
    ///
    /// # Errors
    /// If the bank fails.
    fn rest(
        &mut self,
        time: Duration,
        tick: &mut dyn FnMut(Duration) -> Go,
    ) -> Result<(), RigError>;

    /// Puts the drives at once into the state that endless uniform random writes of so many bytes each would leave, if that can be
    /// done: returns whether it was. Real drives have to be written.
    fn settle(&mut self, _block_bytes: u64) -> bool {
        false
    }
}

/// A rig of one bank and one engine: for simulated drives, and wherever a bank is already open.
#[derive(Debug)]
pub struct BankRig<B, M> {
    bank: B,
    memory: M,
    buffers: Names,
    clock: Clock,
    settle: Option<fn(&mut B, u64)>,
}

/// What buffers are called.
#[derive(Debug)]
enum Names {
    /// These there are.
    Of(Vec<BufferId>),
    /// Nobody looks at a buffer: there are as many as are asked for, of any size.
    Any,
}

/// Tells a rig's time to others while it runs.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// The time of the rig's bank when it was last looked at: at the end of an interval, or during a rest.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, now: Instant) {
        self.0.store(now.as_nanos(), Ordering::Relaxed);
    }
}

impl<B: Bank, M: Buffers> BankRig<B, M> {
    /// On an open bank, with buffers as many as the deepest workload needs.
    pub fn new(bank: B, memory: M, buffers: Vec<BufferId>) -> Self {
        Self { bank, memory, buffers: Names::Of(buffers), clock: Clock::default(), settle: None }
    }

    /// The same, with a way to put the bank's drives into a steady state: see [`Rig::settle`].
    #[must_use]
    pub fn settling(self, settle: fn(&mut B, u64)) -> Self {
        Self { settle: Some(settle), ..self }
    }

    /// The bank.
    pub fn bank(&mut self) -> &mut B {
        &mut self.bank
    }

    /// Its time, for whoever shows it.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Names of buffers for every command of a plan.
    fn names(&self, plan: &Plan) -> Result<Vec<BufferId>, RigError> {
        let depth = plan.depth();
        let there = match &self.buffers {
            Names::Any => return Ok((0..depth).map(BufferId).collect()),
            Names::Of(there) => there,
        };
        match there.get(..depth as usize) {
            Some(enough) if self.memory.size() >= plan.buffer_bytes() as usize => {
                Ok(enough.to_vec())
            }
            _ => Err(RigError::Open(format!(
                "the workload needs {depth} buffers of {} bytes and this bank has {} of {}",
                plan.buffer_bytes(),
                there.len(),
                self.memory.size()
            ))),
        }
    }
}

impl<B: Bank> BankRig<B, NoBuffers> {
    /// On an open bank that keeps no data and looks at no buffers.
    pub fn without_data(bank: B) -> Self {
        let memory = NoBuffers { size: usize::MAX };
        Self { bank, memory, buffers: Names::Any, clock: Clock::default(), settle: None }
    }
}

impl<B: Bank, M: Buffers> Rig for BankRig<B, M> {
    fn drives(&self) -> &[Geometry] {
        self.bank.drives()
    }

    fn run(&mut self, workload: &Workload, watch: &mut Watch<'_>) -> Result<Measurement, RigError> {
        let plan = Plan::new(workload, self.bank.drives())?;
        let names = self.bank.drives().iter().map(|drive| drive.name.clone()).collect();
        let buffers = self.names(&plan)?;
        let mut engine = Engine::new(&plan, &mut self.bank, &self.memory, buffers);
        let start = engine.now();
        engine.begin(start);
        let mut collector = Collector::new(workload);
        let mut closed = Vec::new();
        loop {
            let over = engine.step(&mut closed)?;
            if !closed.is_empty() {
                self.clock.set(engine.now());
            }
            for interval in closed.drain(..) {
                collector.add(&interval);
                if watch(&interval, &[]) == Go::Stop {
                    engine.stop();
                }
            }
            if over {
                break;
            }
        }
        Ok(collector.finish(names, 1, None, engine.verification(), engine.given_up()))
    }

    fn rest(
        &mut self,
        time: Duration,
        tick: &mut dyn FnMut(Duration) -> Go,
    ) -> Result<(), RigError> {
        let start = self.bank.now();
        let mut done = Vec::new();
        loop {
            self.clock.set(self.bank.now());
            let rested = self.bank.now().since(start);
            if rested >= time || tick(rested) == Go::Stop {
                return Ok(());
            }
            self.bank
                .wait_for(time.saturating_sub(rested).min(Duration::from_secs(1)), &mut done)?;
        }
    }

    fn settle(&mut self, block_bytes: u64) -> bool {
        if let Some(settle) = self.settle {
            settle(&mut self.bank, block_bytes);
        }
        self.settle.is_some()
    }
}
