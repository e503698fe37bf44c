//! A bank of simulated drives: each with its own link, all on one clock, behind a shared uplink if there is one.

use base::{Bank, BankError, Buffers, Command, Completion, Full, Geometry, Instant, NoBuffers};

use crate::health::Health;
use crate::spec::{Spec, SpecError};

/// A drive to put into a bank.
#[derive(Clone, Debug)]
pub struct Slot {
    /// What it is.
    pub spec: Spec,
    /// What is on it when the bank begins.
    pub start: Start,
    /// Which of its namespaces the bank shows, from 0, in this order. A bank's drive is one namespace.
    pub namespaces: Vec<usize>,
    /// What its random choices follow from.
    pub seed: u64,
}

/// What is on a drive when its bank begins.
#[derive(Clone, Debug, PartialEq)]
pub enum Start {
    /// Nothing.
    Empty,
    /// Everything, written once from the first byte to the last.
    Full,
    /// What endless uniform random writing of units of so many bytes leaves. Computed, not simulated.
    Random {
        /// Bytes of a write; a multiple of the mapping unit.
        block_bytes: u32,
    },
}

/// A link that all drives of a bank share, such as the one between a chipset and the processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uplink {
    /// Payload bytes a second toward the host.
    pub read_bytes_per_s: f64,
    /// Payload bytes a second toward the drives.
    pub write_bytes_per_s: f64,
}

/// Simulated drives. The time is virtual: waiting is what moves it.
#[derive(Debug)]
pub struct SimBank<M = NoBuffers> {
    geometry: Vec<Geometry>,
    now: Instant,
    memory: Option<M>,
}

impl SimBank<NoBuffers> {
    /// Drives that keep time and no data, and look at no buffers.
    ///
    /// # Errors
    /// [`SpecError`] for the first drive that can't be.
    pub fn new(slots: &[Slot], uplink: Option<Uplink>) -> Result<Self, SpecError> {
        Self::build(slots, uplink, None)
    }
}

impl<M: Buffers> SimBank<M> {
    /// Drives that keep what is written (in memory, only what is written takes any) and move it to and from buffers.
    ///
    /// # Errors
    /// [`SpecError`] for the first drive that can't be.
    pub fn with_data(slots: &[Slot], uplink: Option<Uplink>, memory: M) -> Result<Self, SpecError> {
        Self::build(slots, uplink, Some(memory))
    }

    fn build(
        slots: &[Slot],
        _uplink: Option<Uplink>,
        memory: Option<M>,
    ) -> Result<Self, SpecError> {
        let _ = slots;
        Ok(Self { geometry: Vec::new(), now: Instant::START, memory })
    }

    /// What a slot's drive has been through.
    pub fn health(&self, slot: usize) -> Health {
        let _ = (slot, &self.memory);
        Health::default()
    }
}

impl<M: Buffers> Bank for SimBank<M> {
    fn drives(&self) -> &[Geometry] {
        &self.geometry
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn submit(&mut self, _command: Command) -> Result<(), Full> {
        Err(Full)
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        _done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        self.now = until.map_or(self.now, |until| until.max(self.now));
        Ok(())
    }
}
