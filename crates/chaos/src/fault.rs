//! What may go wrong with a drive: faults as data, beside the pristine contents of the drive.

use base::{DeviceError, Instant, Operation};

/// What kind of command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// Flushes.
    Flush,
}

impl Kind {
    /// Of this operation.
    pub const fn of(operation: &Operation) -> Self {
        match operation {
            Operation::Read { .. } => Self::Read,
            Operation::Write { .. } => Self::Write,
            Operation::Trim { .. } => Self::Trim,
            Operation::Flush => Self::Flush,
        }
    }
}

/// How much of a command that fails has happened all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Nothing.
    Nothing,
    /// Any of its blocks.
    Part,
    /// Everything.
    All,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Every command fails.
    Dies,
    /// Commands of a kind fail that touch a region of the drive, in bytes; flushes have no region.
    Fails {
        /// Which kind.
        kind: Kind,
        /// Where it begins.
        from: u64,
        /// Where it ends.
        to: u64,
        /// The error.
        error: DeviceError,
        /// What happens all the same.
        applied: Applied,
        /// How many commands are still to fail.
        left: u32,
    },
    /// Nothing gets done.
    Stalls,
    /// Everything takes so many times as long.
    Slows(u64),
    /// There is no space behind the drive any more: writes fail.
    Fills,
    /// Writes are acknowledged and never get there.
    LosesWrites {
        /// How many are still to be lost.
        left: u32,
    },
    /// Reads come back with a bit turned, one in so many.
    CorruptsReads(u64),
    /// Reads come back with what lies elsewhere, one in so many.
    MisdirectsReads(u64),
}

/// A fault and when it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Index of the drive in the bank.
    pub drive: u16,
    /// From when on.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
    /// What goes wrong.
    pub what: What,
}

impl Fault {
    /// Whether it is there at this moment.
    pub fn is_on(&self, now: Instant) -> bool {
        self.from <= now && now < self.to
    }

    /// The error that a command meets, and how much of it happens all the same. A limited fault counts it.
    pub(crate) fn error(&mut self, operation: &Operation) -> Option<(DeviceError, Applied)> {
        let writes = matches!(operation, Operation::Write { .. });
        match &mut self.what {
            What::Dies => Some((DeviceError::Gone, Applied::Nothing)),
            What::Fills if writes => Some((DeviceError::NoSpace, Applied::Nothing)),
            What::Fails { kind, from, to, error, applied, left } if *left > 0 => {
                let (start, end) = match *operation {
                    Operation::Read { offset, length, .. }
                    | Operation::Write { offset, length, .. } => {
                        (offset, offset + u64::from(length))
                    }
                    Operation::Trim { offset, length } => (offset, offset + length),
                    Operation::Flush => (*from, *to),
                };
                let met = *kind == Kind::of(operation) && start < *to && end > *from;
                met.then(|| {
                    *left -= 1;
                    (error.clone(), *applied)
                })
            }
            _ => None,
        }
    }
}
