//! How much work trials may cost: counted in simulated events, so that they end at the same moment on every machine.

/// The work that trials may still cost, in simulated events ([`work`](crate::mission::MissionOutcome::work)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// None for as much as it takes.
    left: Option<u64>,
}

/// Events that a processor of 2020 simulates in half a minute.
const WORK_USUAL: u64 = 1_000_000_000;
/// Events below which a trial isn't begun: it would show next to nothing.
const WORK_LEAST: u64 = 10_000_000;

impl Default for Budget {
    /// What takes less than a minute on most machines.
    fn default() -> Self {
        Self::of(WORK_USUAL)
    }
}

impl Budget {
    /// So many events.
    pub const fn of(work: u64) -> Self {
        Self { left: Some(work) }
    }

    /// As many as it takes.
    pub const fn unlimited() -> Self {
        Self { left: None }
    }

    /// Events that are left; None for as many as it takes.
    pub const fn left(&self) -> Option<u64> {
        self.left
    }

    /// Whether too few events are left for another trial.
    pub fn is_spent(&self) -> bool {
        self.left.is_some_and(|left| left < WORK_LEAST)
    }

    /// Takes off what a trial has cost.
    pub fn spend(&mut self, work: u64) {
        self.left = self.left.map(|left| left.saturating_sub(work));
    }
}
