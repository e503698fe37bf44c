//! Several sequential writers on one drive (QOS-3): how many bytes its flash takes for each of theirs.

use load::Workload;
use load::quantity::Size;
use load::workload::{Blocks, Pattern, Stream};

use super::claim::Row;
use super::stage::{Contents, DrivesNeeded, Effort, Stage};
use crate::experiment::Scope;
use crate::lab::{Lab, LabError};

/// Writers that share a drive.
const WRITERS: u64 = 8;

/// The writers' part of the drive: its first namespace. What lies in others stays as it is.
const DRIVE: u16 = 0;

/// Bytes of a write.
const BLOCK_BYTES: u64 = 128 << 10;

/// How often this part is written before the flash's bytes are counted, and while they are.
const SETTLING_PASSES: u64 = 1;
const COUNTED_PASSES: u64 = 3;

/// The flash takes this much more for each byte of several writers than for one of a single writer: visibly more.
const VISIBLY: f64 = 1.05;

/// Bytes that the flash takes for each byte of the host.
pub(super) struct Writers {
    one: Option<f64>,
    /// All as fast as each other.
    alike: Option<f64>,
    /// Each with one more write under way than the one before, so that their parts are written over at different times.
    unlike: Option<f64>,
    random: Option<f64>,
}

impl Writers {
    /// On a drive of this model that is full, once for each mixture.
    pub(super) fn measure(stage: &mut Stage<'_>, model: &'static str) -> Result<Self, LabError> {
        // As many superblocks as keep what is open or being emptied a small part of the drive.
        let share = match stage.effort() {
            Effort::Quick => 0.05,
            Effort::Usual | Effort::Long => 0.2,
        };
        let needed = DrivesNeeded::one(model).of_capacity(share).holding(Contents::Full);
        let mut amplification = |name: &str, streams: fn(u64) -> Vec<Stream>| {
            stage.on(&format!("QOS-3-{name}"), &needed, |lab| count(lab, name, streams))
        };
        Ok(Self {
            one: amplification("one", |capacity| vec![writer(0, 1, capacity, 1)])?,
            alike: amplification("alike", |capacity| writers(capacity, |_| 1))?,
            unlike: amplification("unlike", |capacity| writers(capacity, |number| number + 1))?,
            random: amplification("random", |capacity| {
                vec![Stream { pattern: Pattern::Random, ..writer(0, 1, capacity, 8) }]
            })?,
        })
    }

    /// More for several writers than for one, as the document says.
    pub(super) fn compare(&self, row: Row) -> Row {
        let text = |found: Option<f64>| found.map_or("not known".to_owned(), |x| format!("{x:.2}"));
        let more = |found: Option<f64>| {
            found.zip(self.one).is_some_and(|(several, one)| several > VISIBLY * one)
        };
        let against = |found| {
            let (one, random) = (text(self.one), text(self.random));
            format!("{} against {one} of one writer; at random {random}", text(found))
        };
        row.words(
            format!("bytes that the flash takes for each of {WRITERS} sequential writers of different pace"),
            "more than for one writer",
            more(self.unlike),
            against(self.unlike),
        )
        .noted("each overwrites a part of its own without a pause, with 1 to 8 writes of 128 KiB under way")
        .missed_in_words(
            "the simulated drive appends all writers' data to one log, and what they wrote together becomes stale nearly together",
        )
        .words(
            format!("of {WRITERS} writers of the same pace"),
            "more than for one writer",
            more(self.alike),
            against(self.alike),
        )
        .contradicted_in_words(
            "writers of the same pace overwrite data in the order in which they wrote it, so whole blocks become stale at once, as with one \
             writer",
        )
    }
}

/// Writes the namespace over, and then counts.
fn count(
    lab: &mut Lab<'_>,
    name: &str,
    streams: fn(u64) -> Vec<Stream>,
) -> Result<Option<f64>, LabError> {
    let capacity = lab.drives()[DRIVE as usize].capacity_bytes;
    lab.step("writers", "settling", &passes(name, SETTLING_PASSES * capacity, streams(capacity)))?;
    let counted = passes(name, COUNTED_PASSES * capacity, streams(capacity));
    Ok(lab.step("writers", "counted", &counted)?.counters.written.amplification())
}

fn passes(name: &str, bytes: u64, streams: Vec<Stream>) -> Workload {
    Scope::default().bytes_once(name, bytes, streams)
}

fn writers(capacity: u64, depth: fn(u64) -> u64) -> Vec<Stream> {
    (0..WRITERS).map(|number| writer(number, WRITERS, capacity, depth(number))).collect()
}

/// Writes over one of so many equal parts, from its start to its end and again.
fn writer(number: u64, of: u64, capacity: u64, depth: u64) -> Stream {
    let part = capacity / of / BLOCK_BYTES * BLOCK_BYTES;
    Stream {
        name: format!("writer-{}", number + 1),
        drives: vec![DRIVE],
        write: 1,
        block: Blocks::of(BLOCK_BYTES),
        from: Some(Size(number * part)),
        size: Some(Size(part)),
        depth: depth as u32,
        ..Stream::default()
    }
}
