//! What a drive reaches with nothing beside: the most it reads and writes, and the latency of the fastest medium.

use load::Verb;
use load::workload::{Blocks, Stream};

use super::super::basis::Basis;
use super::super::claim::{Published, Row};
use super::super::stage::{Contents, DrivesNeeded, Stage};
use super::{DRIVE, FASTEST, READ, SECOND, SHARE, WRITTEN, reads, run};
use crate::answer::Unit;
use crate::lab::LabError;

/// What the drive reaches with nothing beside.
pub(super) struct Peaks {
    read: f64,
    write: f64,
    read_iops: f64,
}

impl Peaks {
    pub(super) fn measure(stage: &mut Stage<'_>) -> Result<Self, LabError> {
        let drive = DrivesNeeded::one(DRIVE).of_capacity(SHARE);
        let both = vec![WRITTEN, READ];
        let large = |name: &str| Stream {
            name: name.to_owned(),
            drives: both.clone(),
            block: Blocks::of(1 << 20),
            depth: 16,
            ..Stream::default()
        };
        stage.on("QOS-peaks", &drive, |lab| {
            let write = Stream { write: 1, ..large("peak") };
            let read = Stream { read: 1, ..large("peak") };
            let random = Stream { drives: both.clone(), depth: PEAK_DEPTH, ..reads(PEAK_DEPTH) };
            let random = Stream { name: "peak".to_owned(), ..random };
            let mut reached = |name: &str, stream: Stream, verb| -> Result<(f64, f64), LabError> {
                let measurement = run(lab, name, SECOND, vec![stream])?;
                let result = measurement.result("peak", verb);
                Ok(result.map_or((f64::NAN, f64::NAN), |r| (r.bytes_per_s, r.commands_per_s)))
            };
            Ok(Self {
                write: reached("peak-write", write, Verb::Write)?.0,
                read: reached("peak-read", read, Verb::Read)?.0,
                read_iops: reached("peak-random-read", random, Verb::Read)?.1,
            })
        })
    }

    /// The talk's figures are of the fastest drives of its time: its own, which is simulated, has half of their lanes.
    pub(super) fn compare(&self, row: Row) -> Row {
        let smaller = "the simulated drive has four lanes of 3.0, which carry 3.5 GB/s; the fastest drives of that time have eight";
        let fewer_dies = "64 dies program so much";
        let drive = row.basis.clone();
        row.figure("read", Published::About(6e9), Unit::BytesPerSecond, self.read)
            .because(smaller, (3.3e9, 3.9e9))
            .figure("write", Published::About(4e9), Unit::BytesPerSecond, self.write)
            .because(fewer_dies, (2.8e9, 3.5e9))
            .figure(
                "random reads of 4 KiB",
                Published::About(1e6),
                Unit::CommandsPerSecond,
                self.read_iops,
            )
            .because(smaller, (7e5, 9e5))
            .on(Basis::Arithmetic)
            .figure(
                "SATA: line rate of 6 Gb/s, ten bits a byte",
                Published::AtMost(600e6),
                Unit::BytesPerSecond,
                6e9 / 10.0,
            )
            .on(drive)
    }
}

/// Random reads under way where a drive is to reach what it can.
const PEAK_DEPTH: u32 = 256;

/// The mean latency of a read alone on the fastest medium, in nanoseconds.
pub(super) fn fastest_medium(stage: &mut Stage<'_>) -> Result<Option<f64>, LabError> {
    let drive = DrivesNeeded::one(FASTEST).holding(Contents::Full).of_capacity(SHARE);
    stage.on("QOS-fastest", &drive, |lab| {
        let stream = Stream { drives: vec![WRITTEN], ..reads(1) };
        let measurement = run(lab, "read-alone", SECOND, vec![stream])?;
        Ok(measurement.result("reads", Verb::Read).and_then(|result| result.response.mean_ns))
    })
}
