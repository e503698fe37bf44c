//! Why simulated drives can't be measured.

use std::fmt;

use base::striped::StripedError;
use device::PoolError;
use device::nvme::AdminError;
use load::PlanError;
use ssd::SpecError;
use target::SimDrivesError;

/// Why simulated drives can't be measured.
#[derive(Debug)]
pub enum SimulatedRigError {
    /// The targets name none.
    Drives(SimDrivesError),
    /// One can't be simulated.
    Spec(SpecError),
    /// One does not say what it is.
    Facts(AdminError),
    /// They can't be a striped set.
    Striped(StripedError),
    /// The workload does not fit them.
    Workload(PlanError),
    /// There is no memory for the workload's buffers.
    Memory(PoolError),
}

impl SimulatedRigError {
    /// The error that it stands for.
    fn inner(&self) -> &(dyn std::error::Error + 'static) {
        match self {
            Self::Drives(error) => error,
            Self::Spec(error) => error,
            Self::Facts(error) => error,
            Self::Striped(error) => error,
            Self::Workload(error) => error,
            Self::Memory(error) => error,
        }
    }
}

impl fmt::Display for SimulatedRigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner())
    }
}

impl std::error::Error for SimulatedRigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // It is said in the inner error's words, so that error's source is this one's.
        self.inner().source()
    }
}

impl From<SimDrivesError> for SimulatedRigError {
    fn from(error: SimDrivesError) -> Self {
        Self::Drives(error)
    }
}

impl From<SpecError> for SimulatedRigError {
    fn from(error: SpecError) -> Self {
        Self::Spec(error)
    }
}

impl From<AdminError> for SimulatedRigError {
    fn from(error: AdminError) -> Self {
        Self::Facts(error)
    }
}

impl From<StripedError> for SimulatedRigError {
    fn from(error: StripedError) -> Self {
        Self::Striped(error)
    }
}

impl From<PlanError> for SimulatedRigError {
    fn from(error: PlanError) -> Self {
        Self::Workload(error)
    }
}

impl From<PoolError> for SimulatedRigError {
    fn from(error: PoolError) -> Self {
        Self::Memory(error)
    }
}
