//! A rig: drives with instruments around them, on which workloads run. Experiments know nothing else, so they are the same
//! on real drives and on simulated ones.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Bank, BankError, BufferId, Buffers, Duration, Geometry, Instant, NoBuffers};
use load::measurement::Collector;
use load::{Engine, Interval, Measurement, Plan, PlanError, Workload};
use serde::{Deserialize, Serialize};

use crate::analysis::{Link, Sample};
use crate::counters::{Counters, Written};

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

    /// Puts every drive on a PCIe link of this mode, or on its own without one, with what was on it at the start. Returns whether
    /// that can be done: real drives have the link that they have.
    ///
    /// # Errors
    /// If a drive can't be on such a link.
    fn relink(&mut self, _mode: Option<PcieMode>) -> Result<bool, RigError> {
        Ok(false)
    }

    /// Puts the drives back into the state in which they were opened. Returns whether that can be done: real drives keep what was
    /// written to them.
    ///
    /// # Errors
    /// If the drives can't be opened again.
    fn renew(&mut self) -> Result<bool, RigError> {
        Ok(false)
    }

    /// Puts a drive into a whole deterministic window (NVMe's Predictable Latency Mode), once it has recovered from the last. Returns
    /// whether it has such windows.
    ///
    /// # Errors
    /// If the bank fails.
    fn begin_window(&mut self, _drive: u16) -> Result<bool, RigError> {
        Ok(false)
    }

    /// Whether a drive is in a deterministic window still.
    fn is_in_window(&mut self, _drive: u16) -> bool {
        false
    }

    /// Remembers the drives' present state for [`Rig::restore`]. Returns whether that can be done.
    fn save(&mut self) -> bool {
        false
    }

    /// Puts the drives back into the state that was saved last; without one they stay as they are.
    fn restore(&mut self) {}

    /// What the drives have counted of their own work until now.
    fn counters(&mut self) -> Counters {
        Counters::not_known("these drives don't count what their media are written")
    }
}

/// Generation and lanes of a PCIe link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PcieMode {
    /// 1 to 6.
    pub generation: u8,
    /// 1 to 16.
    pub lanes: u8,
}

impl PcieMode {
    /// Transfers a second on each lane, in 10^9, of generations 1 to 6: PCI Express Base Specification 6.0, section 1.2.
    const GIGATRANSFERS: [f64; 6] = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];

    /// The link; None for a generation that there isn't.
    pub fn link(self) -> Option<Link> {
        let place = usize::from(self.generation).checked_sub(1)?;
        let gigatransfers = *Self::GIGATRANSFERS.get(place)?;
        Some(Link { gigatransfers, lanes: self.lanes })
    }

    /// The mode of a link; None for a rate that no generation has.
    pub fn of(link: &Link) -> Option<Self> {
        let place = Self::GIGATRANSFERS.iter().position(|&rate| rate == link.gigatransfers)?;
        Some(Self { generation: place as u8 + 1, lanes: link.lanes })
    }
}

impl fmt::Display for PcieMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PCIe {}.0 x{}", self.generation, self.lanes)
    }
}

/// A rig of one bank and one engine: for simulated drives, and wherever a bank is already open.
#[derive(Debug)]
pub struct BankRig<B, M> {
    bank: B,
    memory: M,
    buffers: Names,
    clock: Clock,
    /// What the clocks of banks said that were replaced, beyond where their successors began.
    past: Duration,
    settle: Option<fn(&mut B, u64)>,
    relink: Option<Relink<B>>,
    copy: Option<fn(&B) -> Option<B>>,
    saved: Option<Box<B>>,
    written: Option<fn(&B) -> Written>,
    windows: Option<Windows<B>>,
}

/// How a bank's drives are put into deterministic windows: see [`Rig::begin_window`] and [`Rig::is_in_window`].
#[derive(Debug)]
pub struct Windows<B> {
    /// Puts a drive into one, if it has any.
    pub begin: fn(&mut B, u16) -> Result<bool, BankError>,
    /// Whether a drive is in one.
    pub is_in: fn(&B, u16) -> bool,
}

/// Makes a bank of the same drives on other links.
type MakeBank<B> = dyn FnMut(Option<PcieMode>) -> Result<B, RigError> + Send;

/// See [`BankRig::relinking`].
struct Relink<B>(Box<MakeBank<B>>);

impl<B> fmt::Debug for Relink<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Relink")
    }
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
    /// The time that the rig's bank, and those in its place before it, had run when it was last looked at: at the end of an
    /// interval, or during a rest.
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
        Self::with(bank, memory, Names::Of(buffers))
    }

    fn with(bank: B, memory: M, buffers: Names) -> Self {
        let clock = Clock::default();
        Self {
            bank,
            memory,
            buffers,
            clock,
            past: Duration::ZERO,
            settle: None,
            relink: None,
            copy: None,
            saved: None,
            written: None,
            windows: None,
        }
    }

    /// The same, with a way to make the bank's drives again on other links: see [`Rig::relink`].
    #[must_use]
    pub fn relinking(
        self,
        make: impl FnMut(Option<PcieMode>) -> Result<B, RigError> + Send + 'static,
    ) -> Self {
        Self { relink: Some(Relink(Box::new(make))), ..self }
    }

    /// The same, with a way to put the bank's drives into a steady state: see [`Rig::settle`].
    #[must_use]
    pub fn settling(self, settle: fn(&mut B, u64)) -> Self {
        Self { settle: Some(settle), ..self }
    }

    /// The same, with a way to copy the bank and all that is on its drives, as far as there is memory for it: see [`Rig::save`].
    #[must_use]
    pub fn copying(self, copy: fn(&B) -> Option<B>) -> Self {
        Self { copy: Some(copy), ..self }
    }

    /// The same, with a way to know what was written: see [`Rig::counters`].
    #[must_use]
    pub fn counting(self, written: fn(&B) -> Written) -> Self {
        Self { written: Some(written), ..self }
    }

    /// The same, with a way to put drives into deterministic windows.
    #[must_use]
    pub fn windowing(self, windows: Windows<B>) -> Self {
        Self { windows: Some(windows), ..self }
    }

    /// The bank.
    pub fn bank(&mut self) -> &mut B {
        &mut self.bank
    }

    /// Its time, for whoever shows it.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Puts another bank in the place of this one. The time shown goes on.
    fn replace(&mut self, bank: B) {
        let ran = self.bank.now().since(Instant::START);
        self.past = (self.past + ran).saturating_sub(bank.now().since(Instant::START));
        self.bank = bank;
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
        Self::with(bank, memory, Names::Any)
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
                self.clock.set(engine.now() + self.past);
            }
            for interval in &closed {
                collector.add(interval);
                if watch(interval, &[]) == Go::Stop {
                    engine.stop();
                }
            }
            closed.clear();
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
            self.clock.set(self.bank.now() + self.past);
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

    fn relink(&mut self, mode: Option<PcieMode>) -> Result<bool, RigError> {
        let Some(Relink(make)) = &mut self.relink else { return Ok(false) };
        let bank = make(mode)?;
        self.replace(bank);
        self.saved = None;
        Ok(true)
    }

    fn renew(&mut self) -> Result<bool, RigError> {
        self.relink(None)
    }

    fn begin_window(&mut self, drive: u16) -> Result<bool, RigError> {
        let Some(Windows { begin, .. }) = &self.windows else { return Ok(false) };
        Ok(begin(&mut self.bank, drive)?)
    }

    fn is_in_window(&mut self, drive: u16) -> bool {
        self.windows.as_ref().is_some_and(|windows| (windows.is_in)(&self.bank, drive))
    }

    fn save(&mut self) -> bool {
        self.saved = self.copy.and_then(|copy| copy(&self.bank)).map(Box::new);
        self.saved.is_some()
    }

    fn restore(&mut self) {
        if let Some(bank) =
            self.copy.zip(self.saved.as_deref()).and_then(|(copy, saved)| copy(saved))
        {
            self.replace(bank);
        }
    }

    fn counters(&mut self) -> Counters {
        match self.written {
            Some(written) => Counters { written: Ok(written(&self.bank)), latency: Vec::new() },
            None => Counters::not_known("this bank doesn't count what its media are written"),
        }
    }
}
