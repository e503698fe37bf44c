//! Preconditioning: a drive is brought into the steady state of random writes, with as few writes as that takes.

use base::{ByteSize, Geometry};
use load::quantity::Size;
use load::trace::Moved;
use load::workload::{Blocks, Pattern, Stream};
use serde::Serialize;

use super::Scope;
use super::preparation::{trim, trimmed_bytes, written_bytes};
use super::trouble::troubles;
use crate::lab::{Lab, LabError};

/// Shortest and longest writes, in bytes: flash is mapped in the former, and the latter leave nothing to be gained.
const BLOCK_LEAST: u64 = 4 << 10;
const BLOCK_MOST: u64 = 1 << 20;

/// Commands under way.
const DEPTH: u32 = 32;

/// How a drive is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Preconditioning {
    /// Bytes of each write.
    pub block_bytes: u64,
    /// Flash beyond the capacity, in percent of it.
    pub spare_percent: f64,
}

/// What was done to a drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Preconditioned {
    /// How.
    #[serde(flatten)]
    pub how: Preconditioning,
    /// Bytes that were trimmed before.
    pub trimmed_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// What went wrong.
    pub notes: Vec<String>,
}

impl Preconditioning {
    /// In blocks as long as these writes are on average, in powers of two, on a drive with so much spare flash. If there are none, the
    /// drive is only written once.
    pub fn of(writes: Moved, drive: &Geometry, spare_percent: f64) -> Self {
        let power_of_two = |bytes: u64| 1 << bytes.max(1).ilog2();
        let most = power_of_two(u64::from(drive.transfer_max_bytes)).min(BLOCK_MOST);
        let least = u64::from(drive.block_bytes).max(BLOCK_LEAST).min(most);
        match writes.bytes.checked_div(writes.requests) {
            None => Self { block_bytes: most, spare_percent: 0.0 },
            Some(mean) => {
                Self { block_bytes: power_of_two(mean).clamp(least, most), spare_percent }
            }
        }
    }

    /// Bytes that it writes to a drive.
    pub fn bytes(&self, drive: &Geometry) -> u64 {
        let blocks = drive.capacity_bytes / self.block_bytes;
        (blocks as f64 * (1.0 + self.spare_percent / 100.0)).ceil() as u64 * self.block_bytes
    }

    /// Trims the lab's drive and writes it. Names of the steps begin with `prefix`.
    ///
    /// # Errors
    /// [`LabError`]; what failed commands say is in the result.
    pub fn run(
        self,
        lab: &mut Lab<'_>,
        experiment: &str,
        prefix: &str,
    ) -> Result<Preconditioned, LabError> {
        let (scope, drive) = (Scope::default(), lab.drives()[0].clone());
        let mut done =
            Preconditioned { how: self, trimmed_bytes: 0, written_bytes: 0, notes: Vec::new() };
        let name = format!("{prefix}-trim");
        if let Some(workload) = trim(&scope, &drive, 0, &name, drive.capacity_bytes) {
            let step = lab.step(experiment, &name, &workload)?;
            done.trimmed_bytes = trimmed_bytes(&step);
            done.notes.extend(troubles("trimming before the trace", &step));
        }
        let stream = Stream {
            name: "write".to_owned(),
            write: 1,
            pattern: Pattern::Settling { spare_percent: self.spare_percent },
            block: Blocks::of(self.block_bytes),
            size: Some(Size(drive.capacity_bytes / self.block_bytes * self.block_bytes)),
            depth: DEPTH,
            ..Stream::default()
        };
        let name = format!("{prefix}-write");
        let workload = scope.bytes_once(&name, self.bytes(&drive), vec![stream]);
        let step = lab.step(experiment, &name, &workload)?;
        done.written_bytes = written_bytes(&step);
        done.notes.extend(troubles("writing before the trace", &step));
        Ok(done)
    }
}

impl Preconditioned {
    /// In words.
    pub fn sentence(&self) -> String {
        let over = match self.trimmed_bytes {
            0 => ", over what was there: it was not trimmed",
            _ => "",
        };
        format!(
            "{} written before the trace in blocks of {}, for {:.1} % spare flash{over}",
            ByteSize(self.written_bytes),
            ByteSize(self.how.block_bytes),
            self.how.spare_percent
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_was_not_trimmed_is_told() {
        let how = Preconditioning { block_bytes: 4096, spare_percent: 7.0 };
        let done =
            Preconditioned { how, trimmed_bytes: 0, written_bytes: 1_070_000, notes: Vec::new() };
        assert_eq!(
            done.sentence(),
            "1.07 MB written before the trace in blocks of 4.10 kB, for 7.0 % spare flash, over what was there: it was not \
             trimmed"
        );
        let trimmed = Preconditioned { trimmed_bytes: 1_000_000, ..done };
        assert!(trimmed.sentence().ends_with("7.0 % spare flash"));
    }
}
