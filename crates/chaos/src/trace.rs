//! What happened in a run, as one number that tells two runs apart, and in words for whoever asks.

use std::fmt;

use base::{Command, DeviceError, Instant, Operation};

/// Takes a line of a trace.
pub type Lines = Box<dyn FnMut(&str)>;

/// A run's commands and answers so far.
#[derive(Default)]
pub struct Trace {
    hash: u64,
    /// Commands and answers.
    steps: u64,
    lines: Option<Lines>,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({:016x} after {} steps)", self.hash, self.steps)
    }
}

impl Trace {
    /// One that is told in words, too.
    pub fn told(lines: Lines) -> Self {
        Self { lines: Some(lines), ..Self::default() }
    }

    /// The number that all commands and answers come to.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Commands and answers so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Something else to tell.
    pub fn say(&mut self, text: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines(&text());
        }
    }

    pub(crate) fn submitted(&mut self, now: Instant, user: usize, drive: usize, c: &Command) {
        self.enter(now, drive, &c.operation, user as u64);
        self.say(|| {
            let at = now.as_nanos() as f64 / 1e6;
            format!("{at:12.6} ms  user {user} drive {drive}: {}", c.operation.describe())
        });
    }

    pub(crate) fn completed(
        &mut self,
        now: Instant,
        drive: usize,
        c: &Command,
        outcome: &Result<(), DeviceError>,
    ) {
        self.enter(now, drive, &c.operation, 0x100 + u64::from(outcome.is_ok()));
        self.say(|| {
            let at = now.as_nanos() as f64 / 1e6;
            let how = outcome.as_ref().map_or_else(ToString::to_string, |()| "done".to_owned());
            format!("{at:12.6} ms         drive {drive}: {}: {how}", c.operation.describe())
        });
    }

    fn enter(&mut self, now: Instant, drive: usize, operation: &Operation, what: u64) {
        self.steps += 1;
        let (kind, offset, length) = match *operation {
            Operation::Read { offset, length, .. } => (0, offset, u64::from(length)),
            Operation::Write { offset, length, .. } => (1, offset, u64::from(length)),
            Operation::Trim { offset, length } => (2, offset, length),
            Operation::Flush => (3, 0, 0),
        };
        for word in [now.as_nanos(), (drive as u64) << 32 | kind << 16 | what, offset, length] {
            // FNV-1a over words, with the 64-bit prime of Fowler, Noll and Vo, and a shift for the high bits.
            self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            self.hash ^= self.hash >> 29;
        }
    }
}
