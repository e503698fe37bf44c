//! Stream: sequential reads and writes over block sizes and depths. Answers what a streaming program gets from its block
//! size and depth, from where on more of either gains nothing, and what latency costs.

use base::{ByteSize, Geometry};
use load::Verb;
use load::measurement::LatencySummary;
use load::quantity::Size;
use load::workload::{Blocks, Stop};
use profile::{Direction, name};
use serde::{Deserialize, Serialize};

use super::Scope;
use super::mix::{binary, usable};
use super::preparation::Preparation;
use super::trouble::{latency, remarks, troubles};
use crate::answer::{Answer, Figure, Unit};
use crate::cost::Cost;
use crate::finding::{Finding, FindingKind, Quantity};
use crate::lab::{Lab, LabError, Step};

const NAME: &str = "stream";

/// Streaming software uses blocks from 64 KiB to 16 MiB; 512 KiB and 8 MiB stand for small and large objects.
const SMALL: u64 = 512 << 10;
const LARGE: u64 = 8 << 20;
/// A point with this share of the best has gained all there is.
const BEST_SHARE: f64 = 0.95;
/// Memory for buffers, at most.
const MEMORY_MAX: u64 = 1 << 30;
/// Percentiles that become figures.
const PERCENTILES: [f64; 2] = [50.0, 99.0];

/// The experiment's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Where, and how long each point takes.
    pub scope: Scope,
    /// Block sizes in bytes.
    pub blocks: Vec<u64>,
    /// Commands under way on each drive.
    pub depths: Vec<u32>,
    /// Measure writes too, and write the region once before reading it. Without, reads of what was never written may be
    /// too fast.
    pub write: bool,
    /// Memory that buffers may take, in bytes; points that need more are left out.
    pub memory_max: u64,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            // 108 points of a minute each would take two hours; rates of one stream settle sooner.
            scope: Scope {
                point: base::Duration::from_secs(5),
                region: Some(8 << 30),
                ..Scope::default()
            },
            blocks: (0..9).map(|power| (64 << 10) << power).collect(),
            depths: vec![1, 2, 4, 8, 16, 32],
            write: true,
            memory_max: MEMORY_MAX,
        }
    }
}

/// What was found. All figures are of all drives together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamResult {
    /// The drives' names.
    pub drives: Vec<String>,
    /// What was done before.
    pub preparation: Preparation,
    /// Every point, reads first, by block and depth.
    pub points: Vec<StreamPoint>,
    /// Block size in bytes, depth (None: all), and why it was left out.
    pub skipped: Vec<(u64, Option<u32>, String)>,
    /// Why there are no writes.
    pub writes_left_out: Option<String>,
    /// What went wrong.
    pub notes: Vec<String>,
}

/// One point of the grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamPoint {
    /// Reads or writes.
    pub operation: Verb,
    /// Block size in bytes.
    pub block_bytes: u64,
    /// Commands under way on each drive.
    pub depth: u32,
    /// Bytes a second; None if nothing came of it.
    pub bytes_per_s: Option<f64>,
    /// Latency of its commands.
    pub latency: LatencySummary,
    /// Commands that failed.
    pub errors: u64,
    /// The harness may have been the limit.
    pub harness_limited: bool,
}

impl Stream {
    /// What it costs, at most where writes are concerned.
    pub fn cost(&self, drives: &[Geometry]) -> Cost {
        let scope = self.scope.fitted(drives);
        let (points, _) = self.points(&scope, drives);
        let reads = scope.points_cost(points.len() as u64, 0.0, 1.0);
        if !self.writes(drives) {
            return reads;
        }
        let writes = points.iter().map(|&(block, _)| {
            let one = scope.points_cost(1, 1.0, 0.0);
            Cost { written_bytes: write_limit(&scope, block), ..one }
        });
        writes.fold(reads.and(Preparation::cost(&scope, drives)), Cost::and)
    }

    /// Measures every point.
    ///
    /// # Errors
    /// [`LabError`]; points that can't be done are left out and said.
    pub fn run(&self, lab: &mut Lab<'_>) -> Result<StreamResult, LabError> {
        let drives = lab.drives().to_vec();
        let scope = self.scope.fitted(&drives);
        let (grid, skipped) = self.points(&scope, &drives);
        if grid.is_empty() {
            return Err(LabError::Unsuitable {
                experiment: NAME,
                reason: "no block size and depth fits the region, the drives and the memory: give smaller blocks"
                    .to_owned(),
            });
        }
        let writes = self.writes(&drives);
        let all: Vec<u16> = (0..drives.len() as u16).collect();
        let preparation = if writes {
            Preparation::make(lab, &scope, NAME, &all)?
        } else {
            Preparation::left_out(lab)?
        };
        let (mut points, mut notes) = (Vec::new(), Vec::new());
        let operations = if writes { &[Verb::Read, Verb::Write][..] } else { &[Verb::Read] };
        for &operation in operations {
            for &(block, depth) in &grid {
                let name = format!("{operation}-{}-depth{depth}", name::block(block));
                let step = self.measure(lab, &scope, &name, operation, block, depth)?;
                notes.extend(troubles(&name, &step));
                points.push(point(&step, operation, block, depth));
            }
        }
        let writes_left_out = (!writes).then(|| {
            if self.write {
                "a drive is open for reading only".to_owned()
            } else {
                "they were not requested".to_owned()
            }
        });
        let drives = drives.into_iter().map(|drive| drive.name).collect();
        let result = StreamResult { drives, preparation, points, skipped, writes_left_out, notes };
        lab.keep(NAME, &result)?;
        Ok(result)
    }

    fn writes(&self, drives: &[Geometry]) -> bool {
        self.write && drives.iter().all(|drive| drive.writable)
    }

    /// Blocks and depths that can be measured, and those that can't with the reason.
    #[allow(clippy::type_complexity, reason = "two lists, each named where it is taken")]
    fn points(
        &self,
        scope: &Scope,
        drives: &[Geometry],
    ) -> (Vec<(u64, u32)>, Vec<(u64, Option<u32>, String)>) {
        let (blocks, skipped) = usable(&self.blocks, scope, drives);
        let mut skipped: Vec<_> =
            skipped.into_iter().map(|(block, why)| (block, None, why)).collect();
        let mut points = Vec::new();
        for block in blocks {
            for &depth in &self.depths {
                let memory = block * u64::from(depth) * drives.len() as u64;
                if memory > self.memory_max {
                    let (needed, most) = (ByteSize(memory), ByteSize(self.memory_max));
                    let why = format!("its buffers need {needed} of memory and {most} are allowed");
                    skipped.push((block, Some(depth), why));
                } else {
                    points.push((block, depth));
                }
            }
        }
        (points, skipped)
    }

    fn measure(
        &self,
        lab: &mut Lab<'_>,
        scope: &Scope,
        name: &str,
        operation: Verb,
        block: u64,
        depth: u32,
    ) -> Result<Step, LabError> {
        let stream = load::Stream {
            name: "stream".to_owned(),
            read: u32::from(operation == Verb::Read),
            write: u32::from(operation == Verb::Write),
            block: Blocks::of(block),
            depth,
            ..load::Stream::default()
        };
        let mut workload = scope.point(name, vec![stream]);
        if operation == Verb::Write {
            let bytes = Some(Size(write_limit(scope, block)));
            workload.stop = Stop { bytes, ..workload.stop };
        }
        lab.point(NAME, name, &workload)
    }
}

/// What a point may write at most, so that drives faster than thought don't wear more than was said.
fn write_limit(scope: &Scope, block: u64) -> u64 {
    (scope.points_cost(1, 1.0, 0.0).written_bytes / block).max(1) * block
}

fn point(step: &Step, operation: Verb, block_bytes: u64, depth: u32) -> StreamPoint {
    let measurement = &step.measurement;
    let result = measurement.result("stream", operation);
    StreamPoint {
        operation,
        block_bytes,
        depth,
        bytes_per_s: result.map(|result| result.bytes_per_s).filter(|rate| *rate > 0.0),
        latency: result.map(|result| result.response.clone()).unwrap_or_default(),
        errors: measurement.error_count(),
        harness_limited: measurement.harness.limited.is_some(),
    }
}

impl StreamPoint {
    const fn direction(&self) -> Direction {
        match self.operation {
            Verb::Read => Direction::Read,
            Verb::Write | Verb::Trim => Direction::Write,
        }
    }

    /// Its rate.
    fn quantity(&self) -> Quantity {
        let figure = name::stream_rate(self.direction(), self.block_bytes, self.depth);
        Quantity::rate(rate(self)).named(&figure)
    }
}

impl StreamResult {
    /// A point.
    pub fn at(&self, operation: Verb, block_bytes: u64, depth: u32) -> Option<&StreamPoint> {
        self.points
            .iter()
            .find(|p| (p.operation, p.block_bytes, p.depth) == (operation, block_bytes, depth))
    }

    /// The fastest point.
    pub fn best(&self, operation: Verb) -> Option<&StreamPoint> {
        let points = self.points.iter().filter(|p| p.operation == operation);
        points.max_by(|a, b| rate(a).total_cmp(&rate(b))).filter(|p| p.bytes_per_s.is_some())
    }

    /// The point with the fewest bytes under way that has gained all there is: 95 % of the fastest.
    pub fn enough(&self, operation: Verb) -> Option<&StreamPoint> {
        let least = BEST_SHARE * rate(self.best(operation)?);
        self.points
            .iter()
            .filter(|p| p.operation == operation && rate(p) >= least)
            .min_by_key(|p| (p.block_bytes * u64::from(p.depth), p.depth))
    }

    /// The smallest block with which a depth gains 95 % of what that depth gains at best.
    pub fn enough_at(&self, operation: Verb, depth: u32) -> Option<&StreamPoint> {
        let at = || self.points.iter().filter(|p| p.operation == operation && p.depth == depth);
        let best = at().map(rate).reduce(f64::max).filter(|best| *best > 0.0)?;
        at().filter(|p| rate(p) >= BEST_SHARE * best).min_by_key(|p| p.block_bytes)
    }

    fn findings_of(&self, operation: Verb) -> Vec<Finding> {
        let Some(best) = self.best(operation) else {
            let sentence = format!("No {operation} came to an end, so nothing is known of them.");
            return vec![Finding::remark(sentence)];
        };
        let subject = format!("stream.{operation}");
        let mut found = Vec::new();
        for block in [SMALL, LARGE] {
            let points = [1, 2].into_iter().filter_map(|depth| self.at(operation, block, depth));
            let points: Vec<&StreamPoint> = points.filter(|p| p.bytes_per_s.is_some()).collect();
            let parts = points.iter().enumerate();
            let parts: Vec<String> =
                parts.map(|(place, p)| format!("{{{place}}} at depth {}", p.depth)).collect();
            let block = binary(block);
            found.push(if parts.is_empty() {
                Finding::remark(format!("{block} {operation}s at depth 1 and 2 were not measured."))
            } else {
                let rates = points.into_iter().map(StreamPoint::quantity).collect();
                let sentence = format!("{block} {operation}s: {}.", parts.join(", "));
                Finding::new(&subject, FindingKind::States, rates, &sentence)
            });
        }
        let mut all: Vec<&StreamPoint> = self
            .points
            .iter()
            .filter(|p| p.operation == operation && p.bytes_per_s.is_some())
            .collect();
        all.sort_by_key(|point| *point != best);
        found.push(Finding::new(
            &subject,
            FindingKind::Greatest,
            all.into_iter().map(StreamPoint::quantity).collect(),
            &format!(
                "The fastest {operation}s reach {{0}} with {} at depth {}.",
                binary(best.block_bytes),
                best.depth
            ),
        ));
        if let Some(enough) = self.enough(operation) {
            let sentence = format!(
                "{} at depth {} already has 95 % of that: more of either gains next to nothing.",
                binary(enough.block_bytes),
                enough.depth
            );
            let least = Quantity::rate(BEST_SHARE * rate(best));
            let quantities = vec![enough.quantity(), least];
            found.push(Finding::new(&subject, FindingKind::Meets, quantities, &sentence));
        }
        if let Some(enough) = self.enough_at(operation, 1) {
            let sentence = format!(
                "At depth 1 nothing more is gained from blocks of {} on ({{0}}).",
                binary(enough.block_bytes)
            );
            let rates = vec![enough.quantity()];
            found.push(Finding::new(&subject, FindingKind::States, rates, &sentence));
        }
        found.extend(self.latencies(operation).map(Finding::remark));
        found
    }

    /// How latency goes with the block size, at the least depth.
    fn latencies(&self, operation: Verb) -> Option<String> {
        let depth =
            self.points.iter().filter(|p| p.operation == operation).map(|p| p.depth).min()?;
        let known = |block| self.at(operation, block, depth).and_then(|p| p.latency.mean_ns);
        let blocks = || self.points.iter().filter(|p| p.operation == operation && p.depth == depth);
        let least = blocks().map(|p| p.block_bytes).min()?;
        let most = blocks().map(|p| p.block_bytes).max()?;
        let (short, long) = if known(SMALL).is_some() && known(LARGE).is_some() {
            (SMALL, LARGE)
        } else {
            (least, most)
        };
        let (first, last) = (known(short)?, known(long)?);
        if short == long || first <= 0.0 {
            return None;
        }
        Some(format!(
            "At depth {depth} a {operation} of {} takes {} on average and one of {} takes {}: {:.1} times the time for \
             {} times the bytes.",
            binary(short),
            latency(Some(first as u64)),
            binary(long),
            latency(Some(last as u64)),
            last / first,
            long / short
        ))
    }
}

fn rate(point: &StreamPoint) -> f64 {
    point.bytes_per_s.unwrap_or(0.0)
}

impl Answer for StreamResult {
    fn question(&self) -> &'static str {
        "What do sequential reads and writes reach at each block size and depth, from where on is nothing gained, and how \
         does latency go with the block size?"
    }

    fn findings(&self) -> Vec<Finding> {
        let mut said = self.findings_of(Verb::Read);
        match &self.writes_left_out {
            Some(why) => said.push(Finding::remark(format!("Writes were not measured: {why}."))),
            None => said.extend(self.findings_of(Verb::Write)),
        }
        said.extend(self.preparation.findings("all reads first, then writes"));
        let skipped = self.skipped.iter().map(|(block, depth, why)| {
            let depth = depth.map_or_else(String::new, |depth| format!(" at depth {depth}"));
            format!("Left out: {}{depth}, because {why}.", binary(*block))
        });
        said.extend(remarks(&skipped.collect::<Vec<_>>()));
        said.extend(remarks(&self.notes));
        said
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for point in &self.points {
            let direction = point.direction();
            let (block, depth) = (point.block_bytes, point.depth);
            let label = format!("{direction} of {} at depth {depth}", binary(block));
            let name = name::stream_rate(direction, block, depth);
            let note = if point.harness_limited {
                "this machine may have been the limit"
            } else if point.bytes_per_s.is_none() {
                "nothing came to an end"
            } else {
                ""
            };
            figures.push(
                Figure::new(&name, &label, point.bytes_per_s, Unit::BytesPerSecond).noted(note),
            );
            for percent in PERCENTILES {
                let value = point.latency.percentile(percent).map(|ns| ns as f64);
                let name = name::stream_latency(direction, block, depth, percent);
                let label = format!("{label}, latency of {percent} %");
                let few = if value.is_none() { "too few samples" } else { "" };
                figures.push(Figure::new(&name, &label, value, Unit::Nanoseconds).noted(few));
            }
        }
        let best = self.best(Verb::Read).and_then(|best| best.bytes_per_s);
        let label = "fastest sequential read";
        figures.push(Figure::new(name::READ_SEQUENTIAL, label, best, Unit::BytesPerSecond));
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::testing::{Done, Model, geometry, run_in, scope};
    use base::{Command, Duration, Instant, Operation, Rate};

    /// Each command takes 100 us, and then its bytes cross a link of 2 GB/s (reads) or 1 GB/s (writes), one after the
    /// other.
    fn drive() -> Model {
        let mut busy = std::collections::BTreeMap::<u16, Instant>::new();
        Box::new(move |command: &Command, now| {
            let (rate, length) = match command.operation {
                Operation::Read { length, .. } => (Rate(2e9), length),
                Operation::Write { length, .. } => (Rate(1e9), length),
                Operation::Trim { .. } | Operation::Flush => (Rate(1e9), 0),
            };
            let busy = busy.entry(command.drive.0).or_default();
            *busy = (*busy).max(now + Duration::from_micros(100)) + rate.time_for(length.into());
            Ok(*busy)
        })
    }

    fn stream() -> Stream {
        Stream { scope: Scope { region: None, ..scope(300) }, ..Stream::default() }
    }

    fn run(stream: &Stream, drives: Vec<Geometry>) -> (StreamResult, Done) {
        let folder = tempfile::tempdir().unwrap();
        let (result, done) = run_in(folder.path(), drives, drive(), |lab| stream.run(lab));
        (result.unwrap(), done)
    }

    #[test]
    fn rates_and_latencies_follow_from_block_and_depth() {
        let (result, done) = run(&stream(), vec![geometry()]);
        assert_eq!(result.points.len(), 2 * 9 * 6);
        let near = |point: Option<&StreamPoint>, expected: f64| {
            let found = point.unwrap().bytes_per_s.unwrap();
            assert!((found / expected - 1.0).abs() < 0.05, "{found} for {expected}");
        };
        // 512 KiB takes 100 us and 262 us on the link.
        near(result.at(Verb::Read, SMALL, 1), 524_288.0 / 362.144e-6);
        near(result.at(Verb::Read, SMALL, 2), 2e9);
        near(result.at(Verb::Read, LARGE, 1), 8_388_608.0 / 4_294.304e-6);
        near(result.at(Verb::Write, 64 << 10, 1), 65_536.0 / 165.536e-6);
        near(result.best(Verb::Read), 2e9);
        let enough = result.enough(Verb::Read).unwrap();
        assert!(enough.block_bytes * u64::from(enough.depth) <= 1 << 20, "{enough:?}");
        let at_one = result.enough_at(Verb::Read, 1).unwrap();
        assert_eq!(at_one.block_bytes, 4 << 20);
        let cost = stream().cost(&[geometry()]);
        assert!(done.written_bytes <= cost.written_bytes, "{} {cost:?}", done.written_bytes);
        let said = result.answer().join(" ");
        assert!(said.contains("for 16 times the bytes"), "{said}");
        let figures = result.figures();
        let named = |name: &str| figures.iter().find(|f| f.name == name).unwrap().value;
        assert!(named("stream.read.512KiB.depth2").is_some());
        assert!(named("stream.read.64KiB.depth1.p50").unwrap() > 100_000.0);
        assert_eq!(named("stream.read.16MiB.depth1.p99"), None, "too few to know");
    }

    #[test]
    fn blocks_that_do_not_fit_are_left_out_and_said() {
        let small = Geometry { transfer_max_bytes: 1 << 20, ..geometry() };
        let stream = Stream { memory_max: 16 << 20, ..stream() };
        let (result, _) = run(&stream, vec![small.clone(), small]);
        assert!(result.points.iter().all(|p| p.block_bytes <= 1 << 20));
        assert!(result.at(Verb::Read, 1 << 20, 16).is_none());
        assert!(result.at(Verb::Read, 1 << 20, 8).is_some());
        let said = result.answer().join(" ");
        assert!(said.contains("Left out: 2 MiB, because model takes"), "{said}");
        assert!(said.contains("8 MiB reads at depth 1 and 2 were not measured"), "{said}");
        let best = result.best(Verb::Read).unwrap().bytes_per_s.unwrap();
        assert!((best / 4e9 - 1.0).abs() < 0.05, "both drives together: {best}");
    }

    #[test]
    fn a_drive_that_may_only_be_read_is_not_written() {
        let (result, done) = run(&stream(), vec![Geometry { writable: false, ..geometry() }]);
        assert_eq!((done.written_bytes, done.changes.len()), (0, 0));
        let said = result.answer().join(" ");
        assert!(
            said.contains("Writes were not measured: a drive is open for reading only"),
            "{said}"
        );
        assert!(said.contains("blocks that were never written may have been answered faster"));
    }

    #[test]
    fn a_second_run_in_the_same_folder_does_no_io() {
        let folder = tempfile::tempdir().unwrap();
        let stream = Stream { blocks: vec![SMALL], ..stream() };
        let run = || run_in(folder.path(), vec![geometry()], drive(), |lab| stream.run(lab));
        let (first, done) = run();
        assert!(done.read_bytes > 0);
        let (second, done) = run();
        assert_eq!(done, Done::default());
        assert_eq!(second.unwrap(), first.unwrap());
    }
}
