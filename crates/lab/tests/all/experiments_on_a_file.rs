//! The experiments that search, mix and judge, on a small file with the real engine: they come to an end with an
//! answer, whatever this machine's storage does. What the answers must be is tested on drives of known behaviour.

use std::path::Path;

use base::Duration;
use device::target::{self, Access};
use longtake_lab::experiment::Scope;
use longtake_lab::experiment::apps::{Application, Apps};
use longtake_lab::experiment::mix::Mix;
use longtake_lab::experiment::neighbours::Neighbours;
use longtake_lab::experiment::snia::Snia;
use longtake_lab::experiment::viewers::Viewers;
use longtake_lab::{Answer, Go, Lab, LabError, Progress, ThreadOptions, ThreadRig};

const FILE_BYTES: u64 = 64 << 20;

fn scope() -> Scope {
    Scope {
        point: Duration::from_millis(300),
        interval: Duration::from_millis(100),
        ..Scope::default()
    }
}

/// Runs on a file in a folder of its own, twice: what is measured is kept, so both results must be the same.
fn run<T: Answer + PartialEq + std::fmt::Debug>(
    run: impl Fn(&mut Lab<'_>) -> Result<T, LabError>,
) -> T {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("drive");
    target::create_file(&path, FILE_BYTES).unwrap();
    let once = |results: &Path| {
        let target = target::open(&path, Access::Write { exclusive: true }).unwrap().0;
        let sensors = Box::new(Vec::new);
        let mut rig = ThreadRig::new(vec![target], ThreadOptions::default(), sensors);
        let mut watch = |_: &Progress<'_>| Go::On;
        let mut lab = Lab::new(&mut rig, results, &mut watch).unwrap();
        run(&mut lab).unwrap_or_else(|error| panic!("{error}"))
    };
    let results = folder.path().join("results");
    let first = once(&results);
    assert_eq!(once(&results), first);
    assert!(!first.answer().is_empty());
    let mut names: Vec<String> = first.figures().into_iter().map(|figure| figure.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "every figure has a name of its own");
    first
}

#[test]
fn viewers_are_searched() {
    // A rate at which a few viewers are all that fit: the search is short, and the buffers are few.
    let viewers = Viewers {
        scope: scope(),
        rate: base::Rate(20e6),
        resolution_percent: 25.0,
        passes: 1,
        tries: 1,
        ..Viewers::default()
    };
    let result = run(|lab| viewers.run(lab));
    assert!(result.ceiling_bytes_per_s > 0.0);
    assert!(!result.alone.trials.is_empty() && result.ingesting.is_some());
}

#[test]
fn mixes_are_measured() {
    let mix = Mix {
        scope: scope(),
        blocks: vec![4096, 128 << 10],
        read_percents: vec![100, 50, 0],
        ..Mix::default()
    };
    let result = run(|lab| mix.run(lab));
    assert_eq!((result.points.len(), result.preparation.written_bytes), (6, FILE_BYTES));
    assert!(result.points.iter().all(|point| point.iops > 0.0 && point.errors == 0));
}

#[test]
fn neighbours_are_compared() {
    let neighbours = Neighbours { scope: scope(), depths: vec![1, 8], ..Neighbours::default() };
    let result = run(|lab| neighbours.run(lab));
    assert!(result.alone.iter().all(|point| point.iops > 0.0));
    assert!(result.beside[0].points.iter().all(|point| point.write_bytes_per_s > 0.0));
}

#[test]
fn rounds_are_run_until_they_are_steady_or_enough() {
    let snia = Snia { scope: scope(), ..Snia::default() };
    let result = run(|lab| snia.run(lab));
    assert!((5..=25).contains(&result.rounds.len()));
    assert_eq!(result.steady.rounds, result.rounds.len());
}

#[test]
fn every_application_is_judged() {
    let result = run(|lab| Apps { scope: scope(), ..Apps::default() }.run(lab));
    assert_eq!(result.applications.len(), Application::ALL.len());
    assert!(result.applications.iter().all(|found| found.streams.iter().any(|s| s.count > 0)));
}
