//! `snia`: random writes until they are steady, in the shape of the IOPS test of the "Solid State Storage Performance
//! Test Specification" 2.0.2 (SNIA, 2020): purge, precondition, then rounds until a window of five holds two criteria.

use base::{ByteSize, Duration, Geometry};
use load::Verb;
use load::measurement::LatencySummary;
use serde::{Deserialize, Serialize};

use super::Scope;
use super::mix;
use super::preparation::{once, trim, trimmed_bytes, written_bytes};
use super::trouble::{latency, remarks, troubles};
use crate::analysis::steady_state::{self, SteadyState, SteadyStateOptions, Window};
use crate::answer::{Answer, Figure, Unit};
use crate::cost::Cost;
use crate::finding::{Finding, FindingKind, Quantity};
use crate::lab::{Lab, LabError, Step};

const NAME: &str = "snia";

/// Preconditioning writes blocks of this size (PTS 2.0.2, IOPS test: 128 KiB sequential).
const PRECONDITION_BLOCK_BYTES: u64 = 128 << 10;
/// Time of a point in the specification.
const ROUND_TIME: Duration = Duration::from_secs(60);
/// The point that is tracked: random writes of this size.
const TRACKED_BYTES: u64 = 4096;

/// The experiment's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Snia {
    /// Where, and how long each point of a round takes (60 s in the specification).
    pub scope: Scope,
    /// Trim the region before, where drives can.
    pub purge: bool,
    /// How often the region is written before the rounds (2 in the specification).
    pub precondition_passes: u32,
    /// Jobs on each drive.
    pub jobs: u32,
    /// Commands under way for each job.
    pub depth: u32,
    /// Measure all 56 points in every round, not the tracked one alone.
    pub grid: bool,
    /// What steady is.
    pub criteria: SteadyStateOptions,
}

impl Default for Snia {
    fn default() -> Self {
        Self {
            scope: Scope::default(),
            purge: true,
            precondition_passes: 2,
            jobs: 2,
            depth: 16,
            grid: false,
            criteria: SteadyStateOptions::default(),
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SniaResult {
    /// The drives' names.
    pub drives: Vec<String>,
    /// Block size of the tracked random writes in bytes.
    pub tracked_bytes: u64,
    /// Bytes that were trimmed before, on all drives together.
    pub purged_bytes: u64,
    /// What was written to precondition.
    pub preconditioning: Vec<Pass>,
    /// The rounds.
    pub rounds: Vec<Round>,
    /// The criteria.
    pub criteria: SteadyStateOptions,
    /// The verdict, with the window, both criteria and the fitted line.
    pub steady: SteadyState,
    /// Every point's averages over the window; only the tracked one without the grid.
    pub averages: Vec<PointAverage>,
    /// Where this was not what the specification asks for.
    pub deviations: Vec<String>,
    /// What went wrong.
    pub notes: Vec<String>,
}

/// Writing one drive's region once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// The drive, by place in the bank.
    pub drive: u16,
    /// Its number, from 1.
    pub number: u32,
    /// Bytes written.
    pub bytes: u64,
    /// How fast, in bytes a second.
    pub bytes_per_s: f64,
}

/// One round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Its number, from 1.
    pub number: u32,
    /// Tracked writes a second, on all drives together.
    pub iops: f64,
    /// Their latency.
    pub latency: LatencySummary,
}

/// A point's average over the window's rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointAverage {
    /// Block size in bytes.
    pub block_bytes: u64,
    /// Share of reads in percent.
    pub read_percent: u32,
    /// Commands a second.
    pub iops: f64,
}

impl Snia {
    /// What it costs, at most: with as many rounds as there may be.
    pub fn cost(&self, drives: &[Geometry]) -> Cost {
        let scope = self.scope.fitted(drives);
        let region = drives.iter().map(|drive| scope.bytes(drive, drive.block_bytes.into())).sum();
        let mut cost = Cost::default();
        for _ in 0..self.precondition_passes {
            cost = cost.and(scope.write_cost(region));
        }
        let mut round = Cost::default();
        for (block, read) in self.points(&scope, drives) {
            let under_way = self.jobs * self.depth;
            round = round.and(mix::point_cost(&scope, drives, block, read, under_way));
        }
        for _ in 0..self.criteria.rounds_max {
            cost = cost.and(round);
        }
        cost
    }

    /// Purges, preconditions and runs rounds.
    ///
    /// # Errors
    /// [`LabError`]; a run that doesn't become steady is a result, not an error.
    pub fn run(&self, lab: &mut Lab<'_>) -> Result<SniaResult, LabError> {
        let drives = lab.drives().to_vec();
        let scope = self.scope.fitted(&drives);
        self.suits(&scope, &drives)?;
        let mut notes = Vec::new();
        lab.renew()?;
        let purged_bytes = self.purge(lab, &scope, &drives, &mut notes)?;
        // Part of a drive can't be settled: the rest of it would act as over-provisioning.
        let whole = scope.bytes_of_all(&drives, 1) == lab.capacity_bytes();
        let settled = whole && self.precondition_passes > 0 && lab.settle(TRACKED_BYTES);
        let preconditioning =
            if settled { Vec::new() } else { self.precondition(lab, &scope, &drives, &mut notes)? };
        let points = self.points(&scope, &drives);
        let mut rounds: Vec<Round> = Vec::new();
        let mut measured: Vec<Vec<PointAverage>> = Vec::new();
        let mut steady = steady_state::judge(&[], &self.criteria);
        let mut cut_short = false;
        while !steady.ended {
            let number = rounds.len() as u32 + 1;
            let mut of_round = Vec::new();
            for &(block, read) in &points {
                let name = format!("round-{number:02}-{block}-r{read}");
                let workload =
                    mix::workload(&scope, &drives, &name, (block, read), (self.jobs, self.depth));
                let step = lab.step(NAME, &name, &workload)?;
                cut_short |= Duration::from_nanos(step.measurement.elapsed_ns) < scope.point;
                let words = format!("round {number}, {}", mix::words(block, read));
                notes.extend(troubles(&words, &step));
                let iops = step.measurement.commands_per_s();
                of_round.push(PointAverage { block_bytes: block, read_percent: read, iops });
                if (block, read) == (TRACKED_BYTES, 0) {
                    rounds.push(round(number, &step));
                }
            }
            measured.push(of_round);
            let values: Vec<f64> = rounds.iter().map(|round| round.iops).collect();
            steady = steady_state::judge(&values, &self.criteria);
        }
        let mut deviations = self.deviations(&scope, &drives, purged_bytes, settled);
        deviations.extend(mix::enough(&scope, &drives).filter(|_| cut_short));
        let result = SniaResult {
            tracked_bytes: TRACKED_BYTES,
            purged_bytes,
            preconditioning,
            rounds,
            criteria: self.criteria.clone(),
            averages: averages(&measured, &steady),
            steady,
            deviations,
            notes,
            drives: drives.into_iter().map(|drive| drive.name).collect(),
        };
        lab.keep(NAME, &result)?;
        Ok(result)
    }

    fn suits(&self, scope: &Scope, drives: &[Geometry]) -> Result<(), LabError> {
        let unsuitable = |reason| Err(LabError::Unsuitable { experiment: NAME, reason });
        if let Some(drive) = drives.iter().find(|drive| !drive.writable) {
            return unsuitable(format!(
                "{} is open for reading only: this test is one of writes, so open it for writing",
                drive.name
            ));
        }
        if let (_, Some((_, why))) = {
            let (usable, skipped) = mix::usable(&[TRACKED_BYTES], scope, drives);
            (usable, skipped.into_iter().next())
        } {
            return unsuitable(format!("the writes that are tracked are of 4 KiB, and {why}"));
        }
        if self.criteria.rounds_max < self.criteria.window.max(2) {
            return unsuitable(format!(
                "{} rounds are fewer than the {} of a window: allow more",
                self.criteria.rounds_max, self.criteria.window
            ));
        }
        Ok(())
    }

    /// The points of a round, in the specification's order: by mix, and by block size within.
    fn points(&self, scope: &Scope, drives: &[Geometry]) -> Vec<(u64, u32)> {
        if !self.grid {
            return vec![(TRACKED_BYTES, 0)];
        }
        let (mut blocks, _) = mix::usable(&mix::BLOCKS, scope, drives);
        blocks.reverse();
        let of_mix =
            |read: &u32| blocks.iter().map(move |block| (*block, *read)).collect::<Vec<_>>();
        mix::READ_PERCENTS.iter().flat_map(of_mix).collect()
    }

    fn purge(
        &self,
        lab: &mut Lab<'_>,
        scope: &Scope,
        drives: &[Geometry],
        notes: &mut Vec<String>,
    ) -> Result<u64, LabError> {
        let mut purged = 0;
        for (drive, geometry) in drives.iter().enumerate().filter(|_| self.purge) {
            let name = format!("purge-{drive}");
            let region = scope.bytes(geometry, 1);
            let workload = trim(scope, geometry, drive as u16, &name, region);
            let Some(workload) = workload else { continue };
            let step = lab.step(NAME, &name, &workload)?;
            notes.extend(troubles(&format!("trimming {}", geometry.name), &step));
            purged += trimmed_bytes(&step);
        }
        Ok(purged)
    }

    fn precondition(
        &self,
        lab: &mut Lab<'_>,
        scope: &Scope,
        drives: &[Geometry],
        notes: &mut Vec<String>,
    ) -> Result<Vec<Pass>, LabError> {
        let mut passes = Vec::new();
        for pass in 1..=self.precondition_passes {
            for (drive, geometry) in drives.iter().enumerate() {
                let drive = drive as u16;
                let name = format!("precondition-{pass}-{drive}");
                let workload = once(scope, geometry, drive, &name, PRECONDITION_BLOCK_BYTES);
                let step = lab.step(NAME, &name, &workload)?;
                notes.extend(troubles(&format!("preconditioning {}", geometry.name), &step));
                passes.push(Pass {
                    drive,
                    number: pass,
                    bytes: written_bytes(&step),
                    bytes_per_s: step.measurement.rate().0,
                });
            }
        }
        Ok(passes)
    }

    fn deviations(
        &self,
        scope: &Scope,
        drives: &[Geometry],
        purged: u64,
        settled: bool,
    ) -> Vec<String> {
        let mut found = Vec::new();
        let region = scope.bytes_of_all(drives, 1);
        let whole: u64 = drives.iter().map(|drive| drive.capacity_bytes).sum();
        if region < whole {
            found.push(format!(
                "{} of {} were used, not the whole: the rest acts as over-provisioning.",
                ByteSize(region),
                ByteSize(whole)
            ));
        }
        if scope.point < ROUND_TIME {
            found.push(format!("A point took {} instead of {ROUND_TIME}.", scope.point));
        }
        found.push(if purged == 0 {
            "The drives were not purged before.".to_owned()
        } else {
            "The purge was a trim, not a sanitize or format command.".to_owned()
        });
        if settled {
            found.push(
                "The drives are simulated: the steady state was computed and put in place, instead of reached by \
                 writing."
                    .to_owned(),
            );
        } else if self.precondition_passes != 2 {
            found.push(format!(
                "The region was written {} times before, instead of twice.",
                self.precondition_passes
            ));
        }
        if !self.grid {
            found.push(
                "A round was the tracked point alone, not all 56: reads and mixes between the writes might change \
                 when they become steady."
                    .to_owned(),
            );
        }
        if drives.len() > 1 {
            found.push(format!("{} drives were tested as one.", drives.len()));
        }
        if self.criteria != SteadyStateOptions::default() {
            found.push("The criteria of steadiness are not the specification's.".to_owned());
        }
        found
    }
}

fn round(number: u32, step: &Step) -> Round {
    let result = step.measurement.result("mix", Verb::Write);
    Round {
        number,
        iops: step.measurement.commands_per_s(),
        latency: result.map(|result| result.response.clone()).unwrap_or_default(),
    }
}

/// Averages over the window's rounds, or over the last of them where it never became steady.
fn averages(measured: &[Vec<PointAverage>], steady: &SteadyState) -> Vec<PointAverage> {
    let Some(window) = &steady.window else { return Vec::new() };
    let rounds = &measured[window.first_round - 1..window.last_round];
    let Some(first) = rounds.first() else { return Vec::new() };
    let average = |(index, point): (usize, &PointAverage)| {
        let sum: f64 = rounds.iter().map(|round| round[index].iops).sum();
        PointAverage { iops: sum / rounds.len() as f64, ..point.clone() }
    };
    first.iter().enumerate().map(average).collect()
}

impl SniaResult {
    /// Whether each of both criteria holds in a window.
    fn criteria_findings(&self, window: &Window) -> [Finding; 2] {
        let rounds = format!("In rounds {} to {}", window.first_round, window.last_round);
        let finding = |figure: &str, holds: bool, value: f64, most: f64, what: &str| {
            let (kind, verdict) = if holds {
                (FindingKind::Keeps, "the criterion holds")
            } else {
                (FindingKind::Exceeds, "the criterion does not hold")
            };
            let quantities = vec![
                Quantity::percent(100.0 * value / window.average, 1).named(figure),
                Quantity::percent(100.0 * most, 0),
            ];
            let sentence = format!("{rounds} {what}, at most {{1}} allowed: {verdict}.");
            Finding::new(figure, kind, quantities, &sentence)
        };
        let line = format!(
            "the fitted line, {:+.0} IOPS a round, changes by {{0}} of the average",
            window.slope
        );
        let range = "the range is {0} of the average";
        let Self { criteria, .. } = self;
        [
            finding("snia.range", window.range_holds, window.range, criteria.range_max, range),
            finding(
                "snia.excursion",
                window.excursion_holds,
                window.excursion,
                criteria.excursion_max,
                &line,
            ),
        ]
    }
}

impl Answer for SniaResult {
    fn question(&self) -> &'static str {
        "What does it do once random writes are steady, as SNIA's Performance Test Specification defines that?"
    }

    fn findings(&self) -> Vec<Finding> {
        let mut said = Vec::new();
        let window = self.steady.window.as_ref();
        match (self.steady.reached_at, window) {
            (Some(round), Some(window)) => said.push(Finding::new(
                "snia.write",
                FindingKind::Averages,
                vec![
                    Quantity::of("snia.write.iops", window.average, Unit::CommandsPerSecond),
                    Quantity::rate(window.average * self.tracked_bytes as f64),
                ],
                &format!(
                    "Steady in round {round}: {{0}} IOPS of 4 KiB random writes, {{1}}, on average of rounds {} to {}.",
                    window.first_round, window.last_round
                ),
            )),
            _ => said.push(Finding::remark(format!(
                "Not steady in {} rounds: its 4 KiB random writes have no steady rate to state.",
                self.steady.rounds
            ))),
        }
        let window = window.filter(|window| window.average > 0.0);
        said.extend(window.into_iter().flat_map(|window| self.criteria_findings(window)));
        if let (Some(first), Some(last)) = (self.rounds.first(), self.rounds.last()) {
            let sentence = format!(
                "The first round did {{0}} IOPS, the last {{1}}; in the last, the p99 latency is {}, the longest {}.",
                latency(last.latency.percentile(99.0)),
                latency(last.latency.max_ns)
            );
            let of = |round: &Round| Quantity::new(round.iops, Unit::CommandsPerSecond);
            let rounds = vec![of(first), of(last)];
            said.push(Finding::new("snia.rounds", FindingKind::States, rounds, &sentence));
        }
        let preconditioned: u64 = self.preconditioning.iter().map(|pass| pass.bytes).sum();
        if preconditioned > 0 || self.purged_bytes > 0 {
            said.push(Finding::remark(format!(
                "Before, {} were trimmed and {} written in sequence.",
                ByteSize(self.purged_bytes),
                ByteSize(preconditioned)
            )));
        }
        if !self.deviations.is_empty() {
            let all = self.deviations.join(" ");
            said.push(Finding::remark(format!("Not as the specification asks: {all}")));
        }
        said.extend(remarks(&self.notes));
        said
    }

    fn figures(&self) -> Vec<Figure> {
        let window = self.steady.window.as_ref();
        let steady = window.filter(|_| self.steady.reached_at.is_some());
        let unsteady = if steady.is_some() { "" } else { "not steady" };
        let share = |value: Option<f64>| {
            let average = window.map(|window| window.average).filter(|average| *average > 0.0)?;
            Some(100.0 * value? / average)
        };
        let mut figures = vec![
            Figure::new(
                "snia.write.iops",
                "4 KiB random writes, steady",
                steady.map(|window| window.average),
                Unit::CommandsPerSecond,
            )
            .noted(unsteady),
            Figure::new(
                "snia.round",
                "Round in which it was steady",
                self.steady.reached_at.map(|round| round as f64),
                Unit::Count,
            )
            .noted(unsteady),
            Figure::new(
                "snia.range",
                "Range in the window, of its average",
                share(window.map(|window| window.range)),
                Unit::Percent,
            ),
            Figure::new(
                "snia.excursion",
                "Change of the fitted line in the window, of its average",
                share(window.map(|window| window.excursion)),
                Unit::Percent,
            ),
        ];
        for point in self.averages.iter().filter(|_| steady.is_some()) {
            figures.push(Figure::new(
                &format!("snia.{}.r{}.iops", point.block_bytes, point.read_percent),
                &format!(
                    "{}: IOPS in the window",
                    mix::words(point.block_bytes, point.read_percent)
                ),
                point.iops,
                Unit::CommandsPerSecond,
            ));
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use base::Operation;

    use super::*;
    use crate::experiment::testing::{Done, Model, covers, geometry, run_in, scope};

    /// A drive that takes one command after the other, each as long as `time` says for the n-th write.
    fn by_write(mut time: impl FnMut(u64) -> Duration + 'static) -> Model {
        let (mut busy, mut written) = (base::Instant::START, 0);
        Box::new(move |command, now| {
            written += u64::from(matches!(command.operation, Operation::Write { .. }));
            busy = busy.max(now) + time(written);
            Ok(busy)
        })
    }

    /// 512 writes of 128 KiB fill the 64 MiB twice at two passes: 1,024. Then so many are fast (10 us), the rest slow.
    fn fast_for(writes: u64) -> Model {
        by_write(move |n| Duration::from_micros(if n <= 1024 + writes { 10 } else { 40 }))
    }

    fn snia() -> Snia {
        Snia { scope: scope(100), ..Snia::default() }
    }

    fn run(snia: &Snia, drives: Vec<Geometry>, model: Model) -> (SniaResult, Done) {
        let folder = tempfile::tempdir().unwrap();
        let (result, done) = run_in(folder.path(), drives, model, |lab| snia.run(lab));
        (result.unwrap(), done)
    }

    #[test]
    fn a_drive_that_slows_after_three_rounds_is_steady_in_the_eighth() {
        let (result, done) = run(&snia(), vec![geometry()], fast_for(30_000));
        assert_eq!(result.rounds.len(), 8);
        for (round, expected) in
            result.rounds.iter().zip([1e5, 1e5, 1e5, 25e3, 25e3, 25e3, 25e3, 25e3])
        {
            assert!((round.iops / expected - 1.0).abs() < 0.02, "{round:?}");
        }
        assert_eq!(result.steady.reached_at, Some(8));
        assert!((result.averages[0].iops / 25e3 - 1.0).abs() < 0.02, "{:?}", result.averages);
        let answer = result.answer().join("\n");
        assert!(answer.contains("Steady in round 8: 25.0 k IOPS"), "{answer}");
        assert!(answer.contains("at most 20 % allowed: the criterion holds"), "{answer}");
        assert_eq!(done.trimmed_bytes, 64 << 20);
        assert!(covers(&done, 0, 64 << 20));
        let cost = snia().cost(&[geometry()]);
        assert!(done.written_bytes <= cost.written_bytes, "{cost:?}");
    }

    #[test]
    fn a_round_ends_once_it_has_written_the_region_which_bounds_what_the_test_costs() {
        let fast = by_write(|_| Duration::from_micros(1));
        let (result, done) = run(&Snia { scope: scope(1_000), ..snia() }, vec![geometry()], fast);
        assert_eq!(result.rounds.len(), 5);
        // Twice the 64 MiB to precondition, and in five rounds the least that each writes at its end.
        assert_eq!(done.written_bytes, 2 * (64 << 20) + (5 << 30));
        assert!(
            result
                .deviations
                .iter()
                .any(|line| line.contains("had written 1.07 GB before their time")),
            "{:?}",
            result.deviations
        );
        let minutes = Snia { scope: Scope { region: Some(4 << 30), ..Scope::default() }, ..snia() };
        let cost = minutes.cost(&[Geometry { capacity_bytes: 1 << 40, ..geometry() }]);
        assert_eq!(cost.written_bytes, 2 * (4 << 30) + 25 * ((4 << 30) + 2 * 16 * 4096));
    }

    #[test]
    fn a_drive_that_never_settles_is_said_not_to_and_has_no_rate() {
        let slowing = by_write(|n| Duration::from_secs_f64(10e-6 * 1.000_01f64.powi(n as i32)));
        let (result, _) = run(&snia(), vec![geometry()], slowing);
        assert_eq!((result.steady.reached_at, result.rounds.len()), (None, 25));
        let answer = result.answer().join("\n");
        assert!(answer.contains("Not steady in 25 rounds"), "{answer}");
        assert!(answer.contains("at most 10 % allowed: the criterion does not hold"), "{answer}");
        assert_eq!(result.figures()[0].value, None);
    }

    #[test]
    fn what_is_not_as_the_specification_asks_is_listed() {
        let drive = || Geometry { trim_unit_bytes: None, trim_reads_zeros: false, ..geometry() };
        let short = Snia {
            scope: Scope { region: Some(16 << 20), ..scope(20) },
            precondition_passes: 1,
            ..snia()
        };
        let (result, done) = run(&short, vec![drive(), drive()], fast_for(0));
        assert_eq!(done.trimmed_bytes, 0);
        assert!(covers(&done, 0, 16 << 20) && covers(&done, 1, 16 << 20));
        let answer = result.answer().join("\n");
        for part in [
            "not purged",
            "A point took 20.0 ms instead of 1m 00s.",
            "33.6 MB of 134 MB",
            "2 drives were tested as one",
            "written 1 times before",
            "the tracked point alone",
        ] {
            assert!(answer.contains(part), "{part}: {answer}");
        }
    }

    #[test]
    fn the_grid_measures_every_point_in_every_round_and_averages_the_window() {
        let grid = Snia { grid: true, scope: scope(5), ..snia() };
        let (result, _) = run(&grid, vec![geometry()], by_write(|_| Duration::from_micros(50)));
        assert_eq!(result.steady.reached_at, Some(5));
        assert_eq!(result.averages.len(), 56);
        assert!(result.averages.iter().all(|point| (point.iops / 20e3 - 1.0).abs() < 0.4));
    }

    #[test]
    fn an_interrupted_test_goes_on_without_writing_again() {
        let folder = tempfile::tempdir().unwrap();
        let run = || run_in(folder.path(), vec![geometry()], fast_for(0), |lab| snia().run(lab));
        let (first, done) = run();
        assert!(done.written_bytes > 0);
        let (second, again) = run();
        assert_eq!(first.unwrap(), second.unwrap());
        assert_eq!(again, Done::default());
    }

    #[test]
    fn drives_that_can_not_be_written_or_rounds_that_are_too_few_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let reading = Geometry { writable: false, ..geometry() };
        let (error, _) = run_in(folder.path(), vec![reading], fast_for(0), |lab| snia().run(lab));
        assert!(error.unwrap_err().to_string().contains("open it for writing"));
        let criteria = SteadyStateOptions { rounds_max: 3, ..SteadyStateOptions::default() };
        let few = Snia { criteria, ..snia() };
        let (error, done) =
            run_in(folder.path(), vec![geometry()], fast_for(0), |lab| few.run(lab));
        assert!(error.unwrap_err().to_string().contains("allow more"));
        assert_eq!(done, Done::default());
    }
}
