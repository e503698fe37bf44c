//! Overwriting: a drive that was filled once has all its spare flash erased, and collects garbage only once what lies on it is
//! replaced. Readers beside a writer see that, so the drives can be put into that state before anything is measured.

use std::fmt;
use std::str::FromStr;

use base::{ByteSize, Geometry};
use load::Workload;
use load::quantity::Size;
use load::workload::{Blocks, Pattern, Stream};
use serde::{Deserialize, Serialize};

use super::NAME;
use crate::cost::Cost;
use crate::experiment::Scope;
use crate::experiment::preparation::{BLOCK_BYTES, once, written_bytes};
use crate::experiment::trouble::troubles;
use crate::lab::{Lab, LabError};

/// Blocks of random overwriting: the unit of most drives' mapping, so that nothing is read to be written again.
const RANDOM_BYTES: u64 = 4096;
/// Random writes under way.
const RANDOM_DEPTH: u32 = 32;
/// Nobody needs more passes for a steady state; SNIA asks for two.
const PASSES_MAX: u32 = 100;

/// How drives are overwritten before they are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overwriting {
    /// At random places in blocks of 4 KiB, or from the first byte to the last.
    pub random: bool,
    /// How often as many bytes as the region has are written.
    pub passes: u32,
}

/// What was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overwritten {
    /// How.
    pub how: Overwriting,
    /// Bytes that were written to all drives together for it; none if the state was reached at once.
    pub written_bytes: u64,
}

impl FromStr for Overwriting {
    type Err = String;

    /// `sequential`, `random`, with the number of passes behind a colon: `random:2`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (how, passes) = text.split_once(':').unwrap_or((text, "1"));
        let random = match how {
            "random" => true,
            "sequential" => false,
            _ => return Err("give sequential or random, with :PASSES for several".to_owned()),
        };
        let passes = passes.parse().ok().filter(|passes| (1..=PASSES_MAX).contains(passes));
        let passes = passes.ok_or_else(|| format!("passes are a number from 1 to {PASSES_MAX}"))?;
        Ok(Self { random, passes })
    }
}

impl fmt::Display for Overwriting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.random { "at random places in blocks of 4 KiB" } else { "in sequence" };
        let times = match self.passes {
            1 => "once".to_owned(),
            2 => "twice".to_owned(),
            passes => format!("{passes} times"),
        };
        write!(f, "{times}, {how}")
    }
}

impl Overwriting {
    /// What it costs on these drives.
    pub(super) fn cost(&self, scope: &Scope, drives: &[&Geometry]) -> Cost {
        let bytes: u64 = drives.iter().map(|d| scope.bytes(d, d.block_bytes.into())).sum();
        scope.write_cost(bytes * u64::from(self.passes))
    }

    /// Overwrites these drives (by place in the bank), one after the other. A rig that can put all drives into the state that
    /// endless random writing leaves does so, if whole drives are to be overwritten at random.
    pub(super) fn make(
        self,
        lab: &mut Lab<'_>,
        scope: &Scope,
        drives: &[u16],
        notes: &mut Vec<String>,
    ) -> Result<Overwritten, LabError> {
        let geometry = lab.drives().to_vec();
        let unit = |drive: &Geometry| u64::from(drive.block_bytes);
        let whole = geometry.iter().all(|d| scope.bytes(d, unit(d)) == d.capacity_bytes);
        let mut done = Overwritten { how: self, written_bytes: 0 };
        if self.random && whole && drives.len() == geometry.len() && lab.settle(RANDOM_BYTES) {
            return Ok(done);
        }
        for pass in 1..=self.passes {
            for &drive in drives {
                let Some(of) = geometry.get(usize::from(drive)) else { continue };
                let name = format!("overwrite-{pass}-drive-{drive}");
                let step = lab.step(NAME, &name, &self.workload(scope, of, drive, &name))?;
                done.written_bytes += written_bytes(&step);
                notes.extend(troubles(&format!("overwriting {}", of.name), &step));
            }
        }
        Ok(done)
    }

    fn workload(self, scope: &Scope, drive: &Geometry, place: u16, name: &str) -> Workload {
        if !self.random {
            return once(scope, drive, place, name, BLOCK_BYTES);
        }
        let unit = u64::from(drive.block_bytes);
        let block = RANDOM_BYTES.next_multiple_of(unit);
        let region = scope.bytes(drive, block);
        let stream = Stream {
            name: "overwrite".to_owned(),
            drives: vec![place],
            pattern: Pattern::Random,
            write: 1,
            block: Blocks::of(block),
            size: Some(Size(region)),
            depth: RANDOM_DEPTH,
            ..Stream::default()
        };
        scope.bytes_once(name, region, vec![stream])
    }
}

impl Overwritten {
    /// For an answer: a sentence on what was done.
    pub fn sentence(&self) -> String {
        if self.written_bytes == 0 {
            return "Before, the drives were put into the state that endless random writing of 4 KiB leaves."
                .to_owned();
        }
        format!(
            "Before, the drives were overwritten {}: {} in all.",
            self.how,
            ByteSize(self.written_bytes)
        )
    }
}
