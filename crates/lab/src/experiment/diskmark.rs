//! `diskmark`: the four tests that CrystalDiskMark users know, each reading, writing and mixed. Figures in the shape in which
//! drives are advertised and compared, on real drives and simulated ones.

mod answer;

use base::{Geometry, Rate};
use load::measurement::LatencySummary;
use load::quantity::Size;
use load::workload::{Blocks, Pattern, Stop, Stream};
use load::{Verb, Workload};
use serde::{Deserialize, Serialize};

use super::Scope;
use super::mix::usable;
use super::preparation::Preparation;
use super::trouble::troubles;
use crate::cost::Cost;
use crate::lab::{Lab, LabError, Step};

const NAME: &str = "diskmark";

/// Bytes of each drive that are used, unless others are asked for (CrystalDiskMark 8: 1 GiB).
const REGION: u64 = 1 << 30;
/// Share of reads of the mix in percent (CrystalDiskMark 8: R70 % / W30 %).
const MIX_READ_PERCENT: u32 = 70;
/// A mix draws reads and writes at random: what may be written is taken to be this part of what the costs say.
const MIX_MARGIN: f64 = 0.8;

/// One of the tests: blocks, their order, and how many are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// Its name in the table: `SEQ1M Q8T1`.
    pub title: &'static str,
    /// Its name among steps and figures.
    pub name: &'static str,
    /// Bytes of each command.
    pub block_bytes: u64,
    /// Whether offsets are random.
    pub random: bool,
    /// Commands under way for each job.
    pub depth: u32,
    /// Jobs on each drive.
    pub jobs: u32,
}

/// The tests (CrystalDiskMark 8, setting "NVMe SSD").
pub const TESTS: [Test; 4] = [
    Test {
        title: "SEQ1M Q8T1",
        name: "seq1m-q8t1",
        block_bytes: 1 << 20,
        random: false,
        depth: 8,
        jobs: 1,
    },
    Test {
        title: "SEQ128K Q32T1",
        name: "seq128k-q32t1",
        block_bytes: 128 << 10,
        random: false,
        depth: 32,
        jobs: 1,
    },
    Test {
        title: "RND4K Q32T16",
        name: "rnd4k-q32t16",
        block_bytes: 4 << 10,
        random: true,
        depth: 32,
        jobs: 16,
    },
    Test {
        title: "RND4K Q1T1",
        name: "rnd4k-q1t1",
        block_bytes: 4 << 10,
        random: true,
        depth: 1,
        jobs: 1,
    },
];

/// What a test does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// 70 % of its commands read, the others write.
    Mix,
}

impl Direction {
    /// All, in the order of the table's columns.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Mix];

    /// Its name among steps and figures, and at the head of its column.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Mix => "mix",
        }
    }

    /// Share of reads in percent.
    pub const fn read_percent(self) -> u32 {
        match self {
            Self::Read => 100,
            Self::Write => 0,
            Self::Mix => MIX_READ_PERCENT,
        }
    }
}

/// The experiment's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Diskmark {
    /// Where, and how long each of the 12 points takes.
    pub scope: Scope,
    /// Write too, and write the region once before reading it.
    pub write: bool,
}

impl Default for Diskmark {
    fn default() -> Self {
        // CrystalDiskMark 8 measures each point for 5 s.
        let point = base::Duration::from_secs(5);
        let scope = Scope { point, region: Some(REGION), ..Scope::default() };
        Self { scope, write: true }
    }
}

/// What was found. All figures are of all drives together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskmarkResult {
    /// The drives' names.
    pub drives: Vec<String>,
    /// Bytes that were used, of all drives together.
    pub region_bytes: u64,
    /// How long each point was measured at most, in nanoseconds.
    pub point_ns: u64,
    /// What was done before.
    pub preparation: Preparation,
    /// The points, by test and then in the order of the columns.
    pub points: Vec<DiskmarkPoint>,
    /// Titles of tests that were left out, and why.
    pub skipped: Vec<(String, String)>,
    /// Why there are no writes.
    pub writes_left_out: Option<String>,
    /// What went wrong.
    pub notes: Vec<String>,
}

/// One cell of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskmarkPoint {
    /// Name of its test among steps and figures.
    pub test: String,
    /// What it did.
    pub direction: Direction,
    /// Commands a second.
    pub iops: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Latency of the reads, if there were any.
    pub read: Option<LatencySummary>,
    /// Latency of the writes, if there were any.
    pub write: Option<LatencySummary>,
    /// Commands that failed.
    pub errors: u64,
    /// The harness may have been the limit.
    pub harness_limited: bool,
}

impl Diskmark {
    /// What it costs, at most where writes are concerned.
    pub fn cost(&self, drives: &[Geometry]) -> Cost {
        let scope = self.scope.fitted(drives);
        let writes = self.writes(drives);
        let mut cost = if writes { Preparation::cost(&scope, drives) } else { Cost::default() };
        let (tests, _) = tests(&scope, drives);
        for test in tests {
            for direction in self.directions(drives) {
                let reads = scope.points_cost(1, 0.0, f64::from(direction.read_percent()) / 100.0);
                let written_bytes = match direction {
                    Direction::Read => 0,
                    Direction::Write | Direction::Mix => {
                        write_limit(&scope, &test, direction) + under_way(&test, drives)
                    }
                };
                cost = cost.and(Cost { written_bytes, ..reads });
            }
        }
        cost
    }

    /// Measures every point.
    ///
    /// # Errors
    /// [`LabError`]; tests that a drive can't do are left out and said.
    pub fn run(&self, lab: &mut Lab<'_>) -> Result<DiskmarkResult, LabError> {
        let drives = lab.drives().to_vec();
        let scope = self.scope.fitted(&drives);
        let (tests, skipped) = tests(&scope, &drives);
        if tests.is_empty() {
            let reason = "the region has no room for a single command: give a larger one";
            return Err(LabError::Unsuitable { experiment: NAME, reason: reason.to_owned() });
        }
        let writes = self.writes(&drives);
        let all: Vec<u16> = (0..drives.len() as u16).collect();
        let preparation = if writes {
            Preparation::make(lab, &scope, NAME, &all)?
        } else {
            Preparation::left_out(lab)?
        };
        let (mut points, mut notes) = (Vec::new(), Vec::new());
        for (test, direction) in gentlest_first(&tests, &self.directions(&drives)) {
            let name = format!("{}-{}", test.name, direction.name());
            let step = lab.point(NAME, &name, &workload(&scope, &name, &test, direction))?;
            notes.extend(troubles(&format!("{} {}", test.title, direction.name()), &step));
            points.push(point(&test, direction, &step));
        }
        points.sort_by_key(|point| (point.place(), point.direction as u8));
        let writes_left_out = (!writes).then(|| {
            if self.write { "a drive is open for reading only" } else { "they were not requested" }
                .to_owned()
        });
        let result = DiskmarkResult {
            region_bytes: scope.bytes_of_all(&drives, 1),
            point_ns: scope.point.as_nanos(),
            preparation,
            points,
            skipped,
            writes_left_out,
            notes,
            drives: drives.into_iter().map(|drive| drive.name).collect(),
        };
        lab.keep(NAME, &result)?;
        Ok(result)
    }

    fn writes(&self, drives: &[Geometry]) -> bool {
        self.write && drives.iter().all(|drive| drive.writable)
    }

    fn directions(&self, drives: &[Geometry]) -> Vec<Direction> {
        let writes = self.writes(drives);
        Direction::ALL.into_iter().filter(|d| writes || *d == Direction::Read).collect()
    }
}

/// How points are ordered on drives that can't be put back into their starting state: those that write small blocks at random use
/// up spare flash, so they come last.
const ORDER: &str = "reads first, then writes and mixes, sequential ones before random ones";

fn gentlest_first(tests: &[Test], directions: &[Direction]) -> Vec<(Test, Direction)> {
    let all = |test: &Test| directions.iter().map(|d| (*test, *d)).collect::<Vec<_>>();
    let mut points: Vec<(Test, Direction)> = tests.iter().flat_map(all).collect();
    points.sort_by_key(|(test, direction)| (*direction != Direction::Read, test.random));
    points
}

/// The tests that all drives can do, and titles of the others with the reason.
fn tests(scope: &Scope, drives: &[Geometry]) -> (Vec<Test>, Vec<(String, String)>) {
    let (mut possible, mut skipped) = (Vec::new(), Vec::new());
    for test in TESTS {
        match usable(&[test.block_bytes], scope, drives).1.pop() {
            Some((_, why)) => skipped.push((test.title.to_owned(), why)),
            None => possible.push(test),
        }
    }
    (possible, skipped)
}

/// What a point may write at most, so that drives faster than thought don't wear more than was said.
fn write_limit(scope: &Scope, test: &Test, direction: Direction) -> u64 {
    let read = f64::from(direction.read_percent());
    // Beside reads there can't be more writes than their share of what the drives read alone.
    let beside =
        if read == 0.0 { f64::INFINITY } else { scope.read_guess.0 * (100.0 - read) / read };
    let rate = Rate(scope.write_guess.0.min(beside));
    let bytes = rate.bytes_in(scope.point + scope.warm_up) as u64;
    (bytes / test.block_bytes).max(1) * test.block_bytes
}

/// Commands under way at the end are waited for.
fn under_way(test: &Test, drives: &[Geometry]) -> u64 {
    u64::from(test.depth * test.jobs) * test.block_bytes * drives.len() as u64
}

fn workload(scope: &Scope, name: &str, test: &Test, direction: Direction) -> Workload {
    let read = direction.read_percent();
    let stream = Stream {
        name: NAME.to_owned(),
        pattern: if test.random { Pattern::Random } else { Pattern::Sequential },
        block: Blocks::of(test.block_bytes),
        read,
        write: 100 - read,
        jobs: test.jobs,
        depth: test.depth,
        ..Stream::default()
    };
    let workload = scope.point(name, vec![stream]);
    let limit = write_limit(scope, test, direction);
    let bytes = match direction {
        Direction::Read => None,
        Direction::Write => Some(limit),
        Direction::Mix => {
            let share = f64::from(100 - read) / 100.0;
            Some(((limit as f64 * MIX_MARGIN / share) as u64).max(test.block_bytes))
        }
    };
    Workload { stop: Stop { bytes: bytes.map(Size), ..workload.stop }, ..workload }
}

fn point(test: &Test, direction: Direction, step: &Step) -> DiskmarkPoint {
    let measurement = &step.measurement;
    let summary = |verb| measurement.result(NAME, verb).map(|result| result.response.clone());
    DiskmarkPoint {
        test: test.name.to_owned(),
        direction,
        iops: measurement.commands_per_s(),
        bytes_per_s: measurement.rate().0,
        read: summary(Verb::Read),
        write: summary(Verb::Write),
        errors: measurement.error_count(),
        harness_limited: measurement.harness.limited.is_some(),
    }
}

impl DiskmarkPoint {
    /// Its test's place in the table.
    fn place(&self) -> usize {
        TESTS.iter().position(|test| test.name == self.test).unwrap_or(TESTS.len())
    }

    /// Its test; None of a result that another version wrote.
    pub fn of(&self) -> Option<&'static Test> {
        TESTS.get(self.place())
    }
}

impl DiskmarkResult {
    /// A cell of the table.
    pub fn at(&self, test: &str, direction: Direction) -> Option<&DiskmarkPoint> {
        self.points.iter().find(|point| point.test == test && point.direction == direction)
    }
}

#[cfg(test)]
mod tests;
