//! Preparation: a drive answers reads of blocks that were never written without touching its flash, and a file answers
//! them without touching the drive. So what is read is written once before.

use base::{ByteSize, Geometry};
use load::Workload;
use load::quantity::Size;
use load::workload::{Blocks, Stream};
use serde::{Deserialize, Serialize};

use super::Scope;
use super::trouble::troubles;
use crate::cost::Cost;
use crate::lab::{Lab, LabError, Step};

/// The folder that experiments share, so that a region is written once for all of them.
const NAME: &str = "prepare";

/// Writes are this long, or as long as the drive takes.
pub(super) const BLOCK_BYTES: u64 = 1 << 20;

/// Commands under way while preparing.
const DEPTH: u32 = 8;

/// What was done to the drives before the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Preparation {
    /// Bytes that were written to all drives together, now or by an experiment before this one.
    pub written_bytes: u64,
    /// What to know about it.
    pub notes: Vec<String>,
}

impl Preparation {
    /// Writes the region of these drives (by place in the bank) once, one drive after the other so that each is
    /// written exactly.
    ///
    /// # Errors
    /// [`LabError`]; a drive that can't be written is left as it is, with a note.
    pub fn make(lab: &mut Lab<'_>, scope: &Scope, drives: &[u16]) -> Result<Self, LabError> {
        Self::make_named(lab, scope, drives, (NAME, ""))
    }

    /// Writes the region of all drives as a part of an experiment's own: its folder and what its steps' names begin with. For
    /// drives that begin anew, to which what was written before means nothing.
    ///
    /// # Errors
    /// As [`Preparation::make`].
    pub fn make_as(
        lab: &mut Lab<'_>,
        scope: &Scope,
        (experiment, prefix): (&str, &str),
    ) -> Result<Self, LabError> {
        let all: Vec<u16> = (0..lab.drives().len() as u16).collect();
        Self::make_named(lab, scope, &all, (experiment, &format!("{prefix}-")))
    }

    fn make_named(
        lab: &mut Lab<'_>,
        scope: &Scope,
        drives: &[u16],
        (experiment, prefix): (&str, &str),
    ) -> Result<Self, LabError> {
        let mut made = Self::default();
        for &drive in drives {
            let Some(geometry) = lab.drives().get(usize::from(drive)).cloned() else { continue };
            if !geometry.writable {
                made.notes.push(unprepared(&format!("{} is open for reading only", geometry.name)));
                continue;
            }
            let name = format!("{prefix}drive-{drive}");
            let workload = once(scope, &geometry, drive, &name, BLOCK_BYTES);
            let step = lab.step(experiment, &name, &workload)?;
            made.written_bytes += written_bytes(&step);
            made.notes.extend(troubles(&format!("preparing {}", geometry.name), &step));
        }
        Ok(made)
    }

    /// Nothing was written because nobody asked for it.
    pub fn left_out() -> Self {
        Self { written_bytes: 0, notes: vec![unprepared("the drives were taken as they were")] }
    }

    /// What [`Preparation::make`] costs.
    pub fn cost(scope: &Scope, drives: &[Geometry]) -> Cost {
        let writable = drives.iter().filter(|drive| drive.writable);
        scope.write_cost(writable.map(|drive| scope.bytes(drive, drive.block_bytes.into())).sum())
    }

    /// For an answer: a sentence on what was written.
    pub fn sentence(&self) -> Option<String> {
        (self.written_bytes > 0).then(|| {
            format!(
                "Before, {} were written once, so that no read hit a block that was never written.",
                ByteSize(self.written_bytes)
            )
        })
    }
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
    let results = step.measurement.results.iter();
    results.filter(|result| result.operation == load::Verb::Write).map(|result| result.bytes).sum()
}

fn unprepared(why: &str) -> String {
    format!(
        "Nothing was written before ({why}): blocks that were never written may have been answered faster than the \
         flash could."
    )
}
