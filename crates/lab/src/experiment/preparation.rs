//! Preparation: brings the drives into the state that an experiment starts from, so that it doesn't measure what the one before
//! left. A drive answers reads of blocks that were never written without touching its flash, and a file answers them without
//! touching the drive, so what is read is written once before.

use std::fmt;

use base::{ByteSize, Geometry};
use load::Workload;
use load::quantity::Size;
use load::workload::{Blocks, Stream};
use serde::{Deserialize, Serialize};

use super::Scope;
use super::trouble::{remarks, troubles};
use crate::cost::Cost;
use crate::finding::Finding;
use crate::lab::{Lab, LabError, Step};

/// Names of preparing steps begin with this.
pub(crate) const PREFIX: &str = "prepare";

/// Writes are this long, or as long as the drive takes.
pub(super) const BLOCK_BYTES: u64 = 1 << 20;

/// Trims are this long, or as long as the region.
const TRIM_BYTES: u64 = 1 << 30;

/// Commands under way while preparing.
const DEPTH: u32 = 8;

/// The state of the drives that an experiment starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartingState {
    /// Whatever is on them.
    #[default]
    AsFound,
    /// The region trimmed.
    Empty,
    /// The region written once, in order, and nothing written over that.
    WrittenOnce,
}

impl fmt::Display for StartingState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AsFound => "as found",
            Self::Empty => "trimmed",
            Self::WrittenOnce => "written once in order",
        })
    }
}

/// How the drives came into the state that an experiment started from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preparation {
    /// The state that they were brought to.
    pub state: StartingState,
    /// They were put back into the state in which they were opened, so nothing is left of experiments before.
    pub renewed: bool,
    /// Every point started from the state; otherwise each started from what the one before left.
    pub restored: bool,
    /// Bytes that were trimmed on all drives together.
    pub trimmed_bytes: u64,
    /// Bytes that were written to all drives together.
    pub written_bytes: u64,
    /// What to know about it.
    pub notes: Vec<String>,
}

impl Preparation {
    /// Brings these drives (by place in the bank) to [`StartingState::WrittenOnce`], one after the other so that each is
    /// written exactly. Drives that keep what was written before are trimmed first.
    ///
    /// # Errors
    /// [`LabError`]; a drive that can't be written is left as it is, with a note.
    pub fn make(
        lab: &mut Lab<'_>,
        scope: &Scope,
        experiment: &str,
        drives: &[u16],
    ) -> Result<Self, LabError> {
        let renewed = lab.renew()?;
        Self::written_once(lab, scope, (experiment, PREFIX), drives, renewed)
    }

    /// The same of all drives within an experiment, for which they were `renewed` or not. `names` are the experiment's and what
    /// those of the steps begin with.
    ///
    /// # Errors
    /// As [`Preparation::make`].
    pub fn make_again(
        lab: &mut Lab<'_>,
        scope: &Scope,
        names: (&str, &str),
        renewed: bool,
    ) -> Result<Self, LabError> {
        let all: Vec<u16> = (0..lab.drives().len() as u16).collect();
        Self::written_once(lab, scope, names, &all, renewed)
    }

    fn written_once(
        lab: &mut Lab<'_>,
        scope: &Scope,
        (experiment, prefix): (&str, &str),
        drives: &[u16],
        renewed: bool,
    ) -> Result<Self, LabError> {
        let mut made = Self { state: StartingState::WrittenOnce, renewed, ..Self::default() };
        for &drive in drives {
            let Some(geometry) = lab.drives().get(usize::from(drive)).cloned() else { continue };
            if !geometry.writable {
                made.notes.push(unprepared(&format!("{} is open for reading only", geometry.name)));
                continue;
            }
            if !renewed {
                made.trim(lab, scope, (experiment, prefix), (drive, &geometry))?;
            }
            let name = format!("{prefix}-drive-{drive}");
            let workload = once(scope, &geometry, drive, &name, BLOCK_BYTES);
            let step = lab.step(experiment, &name, &workload)?;
            made.written_bytes += written_bytes(&step);
            made.notes.extend(troubles(&format!("preparing {}", geometry.name), &step));
        }
        if made.written_bytes == 0 {
            made.state = StartingState::AsFound;
        }
        made.restored = lab.save();
        Ok(made)
    }

    /// Trims what is about to be written. What earlier writes left on a drive that can't trim is told.
    fn trim(
        &mut self,
        lab: &mut Lab<'_>,
        scope: &Scope,
        (experiment, prefix): (&str, &str),
        (drive, geometry): (u16, &Geometry),
    ) -> Result<(), LabError> {
        let name = format!("{prefix}-trim-{drive}");
        let region = scope.bytes(geometry, 1);
        let trimmed = match trim(scope, geometry, drive, &name, region) {
            Some(workload) => {
                let step = lab.step(experiment, &name, &workload)?;
                self.notes.extend(troubles(&format!("trimming {}", geometry.name), &step));
                if step.measurement.error_count() == 0 { trimmed_bytes(&step) } else { 0 }
            }
            None => 0,
        };
        self.trimmed_bytes += trimmed;
        if trimmed == 0 {
            self.notes.push(format!(
                "{} was not trimmed: earlier writes may have used up its spare flash or cache, so the figures may depend on \
                 what was done to it before.",
                geometry.name
            ));
        }
        Ok(())
    }

    /// Nothing was written because nobody asked for it.
    ///
    /// # Errors
    /// If the drives can't be opened again.
    pub fn left_out(lab: &mut Lab<'_>) -> Result<Self, LabError> {
        let renewed = lab.renew()?;
        Ok(Self {
            renewed,
            restored: lab.save(),
            notes: vec![unprepared("the drives were taken as they were")],
            ..Self::default()
        })
    }

    /// What [`Preparation::make`] costs.
    pub fn cost(scope: &Scope, drives: &[Geometry]) -> Cost {
        let writable = drives.iter().filter(|drive| drive.writable);
        scope.write_cost(writable.map(|drive| scope.bytes(drive, drive.block_bytes.into())).sum())
    }

    /// For an answer: the state that the drives were in, and what to know about it.
    pub fn findings(&self, order: &str) -> Vec<Finding> {
        let state = self.sentence(order).map(Finding::remark);
        state.into_iter().chain(remarks(&self.notes)).collect()
    }

    /// The state that the drives were in. `order` says in which order points were measured that change it for those
    /// after them; empty if none does.
    fn sentence(&self, order: &str) -> Option<String> {
        if self.written_bytes == 0 {
            return None;
        }
        let written = ByteSize(self.written_bytes);
        let state = if self.renewed {
            format!("the drives as they were opened, then {written} written once in order")
        } else if self.trimmed_bytes > 0 {
            let trimmed = ByteSize(self.trimmed_bytes);
            format!("{trimmed} trimmed, then {written} written once in order")
        } else {
            format!("{written} written once in order, over what was there")
        };
        let points = match (self.restored, order) {
            (true, _) => " Every point started from it.".to_owned(),
            (false, "") => String::new(),
            (false, order) => {
                format!(" Each point started from what the one before left: {order}.")
            }
        };
        Some(format!("Starting state: {state}.{points}"))
    }
}

/// A workload that trims the whole units of a drive's first `region` bytes once; None if that can't be done.
pub(super) fn trim(
    scope: &Scope,
    geometry: &Geometry,
    drive: u16,
    name: &str,
    region: u64,
) -> Option<Workload> {
    let unit = u64::from(geometry.trim_unit_bytes?).max(u64::from(geometry.block_bytes));
    let region = region / unit * unit;
    if region == 0 {
        return None;
    }
    let stream = Stream {
        name: "trim".to_owned(),
        drives: vec![drive],
        trim: 1,
        block: Blocks::of((TRIM_BYTES / unit * unit).max(unit).min(region)),
        align: Some(Size(unit)),
        size: Some(Size(region)),
        ..Stream::default()
    };
    Some(scope.bytes_once(name, region, vec![stream]))
}

/// Bytes that a step's trims moved.
pub(super) fn trimmed_bytes(step: &Step) -> u64 {
    bytes_of(step, load::Verb::Trim)
}

/// A workload that writes every byte of one drive's region exactly once, from its beginning to its end, in blocks of
/// `block_bytes` or the longest that the drive takes.
pub(super) fn once(
    scope: &Scope,
    geometry: &Geometry,
    drive: u16,
    name: &str,
    block_bytes: u64,
) -> Workload {
    let unit = u64::from(geometry.block_bytes);
    let region = scope.bytes(geometry, unit);
    let longest = u64::from(geometry.transfer_max_bytes).min(region).max(unit) / unit * unit;
    let stream = Stream {
        name: "write".to_owned(),
        drives: vec![drive],
        write: 1,
        block: Blocks::of(block_bytes.next_multiple_of(unit).min(longest)),
        // A last block may be shorter than the others.
        align: Some(Size(unit)),
        size: Some(Size(region)),
        depth: DEPTH,
        ..Stream::default()
    };
    scope.bytes_once(name, region, vec![stream])
}

/// Bytes that a step's writes moved.
pub(super) fn written_bytes(step: &Step) -> u64 {
    bytes_of(step, load::Verb::Write)
}

fn bytes_of(step: &Step, verb: load::Verb) -> u64 {
    let results = step.measurement.results.iter();
    results.filter(|result| result.operation == verb).map(|result| result.bytes).sum()
}

fn unprepared(why: &str) -> String {
    format!(
        "Nothing was written before ({why}): blocks that were never written may have been answered faster than the \
         flash could."
    )
}
