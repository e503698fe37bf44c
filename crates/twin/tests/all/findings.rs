//! What experiments say of random simulated drives: no finding contradicts another one or its figures, and the figures are those of
//! the steps' own files, computed once more in another way.
//!
//! A few drives, or a thousand with `LONGTAKE_LONG=1`, which takes half an hour of one core. Each case follows from its number alone, so
//! that `LONGTAKE_CASES=250..500` (or `LONGTAKE_CASES=137`) measures a part of them, beside other parts or again. Which case was measured,
//! how long that took and what is wrong with it is printed at once with `--nocapture`.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use base::Duration;
use lab::experiment::{Experiment, ExperimentOutcome};
use lab::finding::contradictions;
use lab::rig::Go;
use lab::run::Run;
use lab::{FindingKind, LabError, Progress, Step};
use load::Verb;
use longtake_twin::{Setup, SetupOptions, Wishes};
use profile::{Profile, name};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use ssd::Spec;
use target::{NewFiles, Profiles};

use crate::specs;

/// A drive, what is on it, and how it is measured.
#[derive(Clone, Debug)]
struct Case {
    spec: Spec,
    contents: &'static str,
    names: Vec<&'static str>,
    point: Duration,
}

fn cases() -> impl Strategy<Value = Case> {
    let names = subsequence(Experiment::NAMES, 1..=3);
    let contents = select(&["", ":full", ":random"][..]);
    (specs::any(), contents, names, 3..40_u64).prop_map(|(spec, contents, names, ms)| Case {
        spec,
        contents,
        names,
        point: Duration::from_millis(ms),
    })
}

/// The case of a number, whatever other cases are measured.
fn case(number: u64) -> Case {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    cases().new_tree(&mut TestRunner::new_with_rng(Config::default(), random)).unwrap().current()
}

/// Numbers of the cases asked for: `from..to`, or one.
fn numbers() -> Range<u64> {
    let Ok(asked) = std::env::var("LONGTAKE_CASES") else {
        let long = std::env::var_os("LONGTAKE_LONG").is_some_and(|value| value == "1");
        return 0..if long { 1_000 } else { 8 };
    };
    let number = |text: &str| match text.trim().parse::<u64>() {
        Ok(number) => number,
        Err(_) => panic!("LONGTAKE_CASES is {asked:?}: give a number, or a range such as 250..500"),
    };
    match asked.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => number(&asked)..number(&asked) + 1,
    }
}

/// Measures, and gives what was found and what failed.
fn measure(case: &Case, folder: &Path) -> Run {
    let path = folder.join("drive.toml");
    let mut profile = Profile::new("drive", "Drive", "simulated", case.spec.capacity_bytes);
    profile.simulated = case.spec.to_parameters();
    fs::write(&path, profile.to_toml().unwrap()).unwrap();
    let target = format!("sim:{}{}", path.display(), case.contents);
    let options = SetupOptions { targets: vec![target.into()], ..SetupOptions::default() };
    let setup = Setup::look(options, &Profiles::in_folder("/nonexistent".into())).unwrap();
    let wishes = Wishes { point: Some(case.point), ..Wishes::default() };
    let programme = wishes.programme(&case.names, &setup);
    let mut rig =
        setup.open(true, None, &mut NewFiles::default(), &|| Go::On, &mut |_| ()).unwrap();
    let mut run = Run::begin("1", Vec::new());
    let mut watch = |_: &Progress<'_>| Go::On;
    programme
        .conduct::<LabError>(rig.rig(), &mut run, folder, &mut watch, &mut |_| Ok(()))
        .unwrap();
    run
}

/// Every step of an experiment, by name.
fn steps(folder: &Path) -> BTreeMap<String, Step> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let steps = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let steps = steps.filter(|path| path.file_stem().is_some_and(|name| name != "result"));
    let step = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
    };
    steps.map(step).collect()
}

/// What a step moved in a second: bytes, or commands.
fn per_second(step: &Step, of: impl Fn(&load::measurement::StreamResult) -> Option<u64>) -> f64 {
    let sum: u64 = step.measurement.results.iter().filter_map(of).sum();
    sum as f64 / (step.measurement.elapsed_ns as f64 / 1e9)
}

/// The slowest stretch of so long a time that begins where an interval does: interval after interval, without any sums kept.
fn slowest(points: &[lab::analysis::Point], length_ns: u64) -> Option<f64> {
    let end_ns = points.last()?.start_ns + points.last()?.duration_ns;
    let within = |from_ns: u64| {
        let bytes = points.iter().map(|point| {
            let begin = point.start_ns.max(from_ns);
            let end = (point.start_ns + point.duration_ns).min(from_ns + length_ns);
            point.bytes as f64 * end.saturating_sub(begin) as f64 / point.duration_ns as f64
        });
        bytes.sum::<f64>() / (length_ns as f64 / 1e9)
    };
    let starts = points.iter().map(|point| point.start_ns).filter(|at| at + length_ns <= end_ns);
    starts.map(within).reduce(f64::min)
}

/// Figures computed from the steps, and from the curves of a fill.
fn recomputed(outcome: &ExperimentOutcome, folder: &Path) -> Vec<(String, f64)> {
    let steps = steps(&folder.join(outcome.name()));
    let bytes = |step: &Step| per_second(step, |result| Some(result.bytes));
    let commands = |step: &Step| per_second(step, |result| Some(result.count));
    match outcome {
        ExperimentOutcome::Fill(result) => {
            let second = [&result.empty, &result.overwrite];
            let second = second.into_iter().filter_map(|curve| slowest(curve, 1_000_000_000));
            let second = second.reduce(f64::min).map(|rate| (name::WRITE_WORST_SECOND, rate));
            second.into_iter().map(|(name, rate)| (name.to_owned(), rate)).collect()
        }
        ExperimentOutcome::Mix(_) => {
            let points =
                steps.iter().filter_map(|(name, step)| Some((name.split_once("-r")?, step)));
            let points = points.filter(|((block, _), _)| block.parse::<u64>().is_ok());
            let of = |((block, read), step): ((&str, &str), &Step)| {
                let name = format!("mix.{block}.r{read}");
                [(format!("{name}.iops"), commands(step)), (format!("{name}.rate"), bytes(step))]
            };
            points.flat_map(of).collect()
        }
        ExperimentOutcome::Link(_) => {
            let fastest = |kind: &str| {
                let of_kind = steps.iter().filter(|(name, _)| name.starts_with(kind));
                of_kind.map(|(_, step)| bytes(step)).reduce(f64::max)
            };
            let reads = fastest("sequential-read").map(|rate| (name::READ_SEQUENTIAL, rate));
            let writes = fastest("sequential-write").map(|rate| ("link.write", rate));
            let all = reads.into_iter().chain(writes);
            all.map(|(name, rate)| (name.to_owned(), rate)).collect()
        }
        ExperimentOutcome::Neighbours(_) => {
            let reads = |step: &Step| {
                per_second(step, |result| (result.operation == Verb::Read).then_some(result.count))
            };
            let alone =
                steps.iter().filter_map(|(name, step)| Some((name.strip_prefix("alone-")?, step)));
            alone
                .map(|(depth, step)| (format!("neighbours.alone.{depth}.iops"), reads(step)))
                .collect()
        }
        ExperimentOutcome::Apps(result) => {
            let name = |application: &lab::experiment::apps::ApplicationResult| {
                format!("apps.{}.content", application.application.name())
            };
            let all = result.applications.iter();
            all.map(|one| (name(one), f64::from(u8::from(one.streams.iter().all(|s| s.content)))))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// What is wrong with what was found.
fn wrong(run: &Run, folder: &Path) -> Vec<String> {
    let mut wrong: Vec<String> = run.contradictions().iter().map(ToString::to_string).collect();
    for outcome in &run.outcomes {
        let (findings, figures) = (outcome.answer().findings(), outcome.answer().figures());
        wrong.extend(contradictions(&findings, &figures).iter().map(ToString::to_string));
        let claims = findings.iter().filter(|finding| finding.kind != FindingKind::Remark);
        if claims.count() == 0 {
            wrong.push(format!("{} claims nothing: {findings:?}", outcome.name()));
        }
        if let ExperimentOutcome::Fill(fill) = outcome
            && let Some(recovery) = &fill.rests.recovery
            && let Some(full) = recovery.full_after_ns
            && recovery.rows.iter().any(|row| row.at_least && row.rest_ns >= full)
        {
            wrong.push(format!("nothing is known of what came back at most: {recovery:?}"));
        }
        for (name, value) in recomputed(outcome, folder) {
            let figure = figures.iter().find(|figure| figure.name == name);
            let figure = figure.and_then(|figure| figure.value).unwrap_or(0.0);
            if (figure - value).abs() > 1e-6 * value.abs().max(1e-9) {
                wrong.push(format!("{name} is {figure}, and the steps say {value}"));
            }
        }
    }
    wrong
}

/// What is wrong with a case, which may also be that it can't be measured.
fn judge(case: &Case) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let judged = catch_unwind(AssertUnwindSafe(|| {
        let run = measure(case, folder.path());
        wrong(&run, folder.path())
    }));
    judged.unwrap_or_else(|_| vec!["it panicked, as printed above".to_owned()])
}

#[test]
#[expect(clippy::disallowed_macros, reason = "a test of an hour tells how it goes")]
fn findings_of_random_drives_do_not_contradict_each_other_or_the_series() {
    let numbers = numbers();
    assert!(!numbers.is_empty(), "no cases in {numbers:?}");
    let mut failed = Vec::new();
    for number in numbers {
        let case = case(number);
        let begin = Instant::now();
        let wrong = judge(&case);
        let (seconds, names) = (begin.elapsed().as_secs_f64(), case.names.join(", "));
        eprintln!("case {number} ({names}): {} wrong, {seconds:.1} s", wrong.len());
        if !wrong.is_empty() {
            let failure = format!("{number}: {case:?}\n{}", wrong.join("\n"));
            eprintln!("{failure}\n");
            failed.push(failure);
        }
    }
    assert!(failed.is_empty(), "{} drives:\n{}", failed.len(), failed.join("\n\n"));
}
