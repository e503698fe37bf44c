//! A bank of real drives or of simulated ones, for those who need not know which.

use std::sync::Arc;

use base::{Bank, BankError, Command, Completion, Full, Geometry, Instant};
use device::{Pool, UringBank};
use ssd::SimBank;

/// Simulated drives that keep what is written to them, in the buffers of a pool.
pub type SimDataBank = SimBank<Arc<Pool>>;

/// Real drives or simulated ones.
#[derive(Debug)]
pub enum AnyBank {
    /// Real drives in real time.
    Real(Box<UringBank>),
    /// Simulated drives in virtual time.
    Simulated(Box<SimDataBank>),
}

impl From<UringBank> for AnyBank {
    fn from(bank: UringBank) -> Self {
        Self::Real(Box::new(bank))
    }
}

impl From<SimDataBank> for AnyBank {
    fn from(bank: SimDataBank) -> Self {
        Self::Simulated(Box::new(bank))
    }
}

impl Bank for AnyBank {
    fn drives(&self) -> &[Geometry] {
        match self {
            Self::Real(bank) => bank.drives(),
            Self::Simulated(bank) => bank.drives(),
        }
    }

    fn now(&self) -> Instant {
        match self {
            Self::Real(bank) => bank.now(),
            Self::Simulated(bank) => bank.now(),
        }
    }

    fn submit(&mut self, command: Command) -> Result<(), Full> {
        match self {
            Self::Real(bank) => bank.submit(command),
            Self::Simulated(bank) => bank.submit(command),
        }
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        match self {
            Self::Real(bank) => bank.wait(until, done),
            Self::Simulated(bank) => bank.wait(until, done),
        }
    }
}
