//! Runs for the tests of reports: all experiments on a drive in memory and virtual time, a fill with a cache, and results that
//! are odd in every way.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use base::memory::{MemoryBank, MemoryDrive};
use base::{BufferId, DriveId, Duration, Instant, NoBuffers, Rate};
use lab::analysis::{Burst, FillInput, Link, Point, Series, fill, recovery};
use lab::experiment::any::{Experiment, ExperimentOutcome};
use lab::experiment::fill::{Emptied, FillResult, Rests};
use lab::experiment::link::DriveLink;
use lab::run::{Run, Subject};
use lab::{BankRig, Go, Lab};
use load::measurement::LatencySummary;
use tempfile::TempDir;

/// A run and the folder of its results.
#[derive(Debug)]
pub struct Measured {
    pub run: Run,
    pub folder: PathBuf,
    /// Removes the folder. None of what all tests share, which is never dropped: its folder is kept until they run again.
    _scratch: Option<TempDir>,
}

/// All experiments on a drive of 200 MB/s, run once for all tests.
pub fn all() -> &'static Measured {
    static ALL: LazyLock<Measured> = LazyLock::new(run_all);
    &ALL
}

/// A run of these results, without histograms.
pub fn of(outcomes: Vec<ExperimentOutcome>) -> Measured {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().to_owned();
    Measured { run: run(outcomes), folder, _scratch: Some(scratch) }
}

fn run(outcomes: Vec<ExperimentOutcome>) -> Run {
    let mut run = Run::begin("0.0.0", vec![subject()]);
    run.started_ns = 1_795_269_120_000_000_000;
    run.outcomes = outcomes;
    run
}

fn subject() -> Subject {
    Subject {
        target: "/dev/model".to_owned(),
        kind: "simulated".to_owned(),
        model: Some("Model of a drive".to_owned()),
        serial: Some("SERIAL-1".to_owned()),
        firmware: Some("1.0".to_owned()),
        capacity_bytes: 64 << 20,
        block_bytes: 512,
        trim_bytes: Some(4096),
        link: Some("8 GT/s x4".to_owned()),
        scheduler: None,
        facts: None,
        members: Vec::new(),
    }
}

fn run_all() -> Measured {
    let drive = MemoryDrive {
        capacity_bytes: 64 << 20,
        block_bytes: 512,
        depth_max: 4096,
        latency: Duration::from_micros(100),
        rate: Some(Rate(200e6)),
        ..MemoryDrive::default()
    };
    let mut bank = MemoryBank::without_data(vec![drive]);
    // It stands still a few times a second, so that there are dips.
    for second in 0..600u64 {
        let from = Instant::from_nanos(second * 1_000_000_000 + 300_000_000);
        bank.stall(DriveId(0), from, from + Duration::from_millis(60));
    }
    let buffers = (0..20_000).map(BufferId).collect();
    let mut rig = BankRig::new(bank, NoBuffers { size: 16 << 20 }, buffers);
    let mut watch = |_: &lab::Progress<'_>| Go::On;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("measured");
    fs::remove_dir_all(&folder).ok();
    let mut measured = Measured { run: run(Vec::new()), folder, _scratch: None };
    let mut lab = Lab::new(&mut rig, &measured.folder, &mut watch).unwrap();
    for name in Experiment::NAMES {
        let mut experiment = Experiment::named(name).unwrap();
        let scope = experiment.scope();
        scope.region = Some(32 << 20);
        scope.point = Duration::from_millis(if *name == "steady" { 10_000 } else { 40 });
        scope.interval = Duration::from_millis(10);
        (scope.write_guess, scope.read_guess) = (Rate(200e6), Rate(200e6));
        if let Experiment::Link(link) = &mut experiment {
            let now = Some(Link { gigatransfers: 8.0, lanes: 2 });
            let best = Some(Link { gigatransfers: 8.0, lanes: 4 });
            link.links = vec![DriveLink::Pcie { now, best, slot: best }];
        }
        measured.run.outcomes.push(experiment.run(&mut lab).unwrap());
    }
    measured.run.left_out.push(("later".to_owned(), "nobody had the time".to_owned()));
    measured
}

/// The same with twice the rates of the sequential streams.
pub fn faster(than: &Measured) -> Measured {
    let mut outcomes = than.run.outcomes.clone();
    for outcome in &mut outcomes {
        if let ExperimentOutcome::Stream(result) = outcome {
            for point in &mut result.points {
                point.bytes_per_s = point.bytes_per_s.map(|rate| 2.0 * rate);
            }
        }
    }
    of(outcomes)
}

/// A fill of 100 GB with a cache of 20 GB, dips behind it, a slower pass over it, and rests.
pub fn with_cache() -> FillResult {
    let capacity = 100_000_000_000;
    let empty = series(0, 1_000, |gb, n| match (gb < 20.0, n % 90) {
        (true, _) => 4.0,
        (false, 0) => 0.3,
        (false, _) => 1.0,
    });
    let over = series(empty.end_ns(), 1_000, |_, _| 0.7);
    let input = FillInput { overwrite: Some(&over), ..FillInput::new(capacity, &empty) };
    let fill = fill::judge(&input);
    let burst = |rest_s: u64, fast_gb: f64| Burst {
        rest_ns: rest_s * 1_000_000_000,
        series: series(0, 200, move |gb, _| if gb < fast_gb { 4.0 } else { 0.7 }),
    };
    let bursts = [burst(10, 2.0), burst(60, 9.0), burst(300, 1e9)];
    let sustained = empty.worst_window(1_000_000_000);
    FillResult {
        drives: vec!["model".to_owned()],
        block_bytes: 1 << 20,
        region_bytes: capacity,
        cut_to_ns: None,
        emptied: Emptied::Trimmed,
        sustained,
        worst_second: sustained,
        rests: Rests {
            recovery: recovery::judge(&bursts, 4e9, 0.7e9),
            bursts: bursts.iter().map(|b| (b.rest_ns, b.series.points().to_vec())).collect(),
            left_out: None,
        },
        empty: empty.points().to_vec(),
        overwrite: over.points().to_vec(),
        steps: Vec::new(),
        fill,
        shares: vec![capacity],
        held: Vec::new(),
        notes: vec!["something went wrong.".to_owned()],
    }
}

/// Intervals of 100 MB at so many GB/s by the GB written and the number of the interval, with a little noise.
fn series(start_ns: u64, intervals: u64, gigabytes: impl Fn(f64, u64) -> f64) -> Series {
    let mut at = start_ns;
    let mut random = base::Random::new(7);
    let points = (0..intervals).map(|n| {
        let noise = 1.0 + (random.below(1_000) as f64 / 1_000.0 - 0.5) * 0.02;
        let rate = gigabytes(n as f64 * 0.1, n) * noise;
        let duration_ns = (0.1 / rate * 1e9) as u64;
        let point = Point { start_ns: at, duration_ns, bytes: 100_000_000 };
        at += duration_ns;
        point
    });
    Series::new(points.collect()).unwrap()
}

/// Every experiment's result as if nothing had come of it.
pub fn empty() -> Vec<ExperimentOutcome> {
    let mut outcomes = all().run.outcomes.clone();
    for outcome in &mut outcomes {
        match outcome {
            ExperimentOutcome::Fill(result) => {
                let nothing = Series::default();
                result.fill = fill::judge(&FillInput::new(0, &nothing));
                (result.empty, result.overwrite) = (Vec::new(), Vec::new());
                (result.sustained, result.worst_second) = (None, None);
                result.rests = Rests { recovery: None, bursts: Vec::new(), left_out: None };
                (result.shares, result.region_bytes) = (Vec::new(), 0);
            }
            ExperimentOutcome::Steady(result) => (result.write, result.read) = (None, None),
            ExperimentOutcome::Stream(result) => result.points.clear(),
            ExperimentOutcome::Link(result) => {
                result.points.clear();
                result.table.clear();
                (result.ceiling, result.best) = (None, None);
            }
            ExperimentOutcome::Mix(result) => result.points.clear(),
            ExperimentOutcome::Neighbours(result) => {
                result.alone.clear();
                result.beside.clear();
            }
            ExperimentOutcome::Viewers(result) => {
                result.alone.trials.clear();
                (result.alone.viewers, result.alone.refused) = (0, None);
                (result.alone.response, result.ingesting) = (None, None);
            }
            ExperimentOutcome::Apps(result) => result.applications.clear(),
            ExperimentOutcome::Snia(result) => {
                result.rounds.clear();
                result.averages.clear();
                result.steady.window = None;
                result.steady.reached_at = None;
            }
            ExperimentOutcome::Diskmark(result) => result.points.clear(),
        }
    }
    outcomes
}

/// Every experiment's result with the first of everything alone.
pub fn with_one_point() -> Vec<ExperimentOutcome> {
    let mut outcomes = all().run.outcomes.clone();
    for outcome in &mut outcomes {
        match outcome {
            ExperimentOutcome::Fill(result) => {
                result.empty.truncate(1);
                result.overwrite.truncate(1);
            }
            ExperimentOutcome::Steady(result) => {
                for even in [&mut result.write, &mut result.read].into_iter().flatten() {
                    even.curve.truncate(1);
                }
            }
            ExperimentOutcome::Stream(result) => result.points.truncate(1),
            ExperimentOutcome::Link(result) => result.points.truncate(1),
            ExperimentOutcome::Mix(result) => result.points.truncate(1),
            ExperimentOutcome::Neighbours(result) => {
                result.alone.truncate(1);
                result.beside.iter_mut().for_each(|beside| beside.points.truncate(1));
            }
            ExperimentOutcome::Viewers(result) => result.alone.trials.truncate(1),
            ExperimentOutcome::Apps(result) => {
                result.applications.truncate(1);
                result.applications.iter_mut().for_each(|a| a.streams.truncate(1));
            }
            ExperimentOutcome::Snia(result) => result.rounds.truncate(1),
            ExperimentOutcome::Diskmark(result) => result.points.truncate(1),
        }
    }
    outcomes
}

/// Every experiment's result with rates of zero and latencies that nobody knows.
pub fn with_zeros() -> Vec<ExperimentOutcome> {
    let mut outcomes = all().run.outcomes.clone();
    let still = |points: &mut Vec<Point>| points.iter_mut().for_each(|point| point.bytes = 0);
    for outcome in &mut outcomes {
        match outcome {
            ExperimentOutcome::Fill(result) => {
                still(&mut result.empty);
                still(&mut result.overwrite);
            }
            ExperimentOutcome::Steady(result) => {
                for even in [&mut result.write, &mut result.read].into_iter().flatten() {
                    even.mean = 0.0;
                    still(&mut even.curve);
                }
            }
            ExperimentOutcome::Stream(result) => {
                for point in &mut result.points {
                    (point.bytes_per_s, point.latency) = (Some(0.0), LatencySummary::default());
                }
            }
            ExperimentOutcome::Link(result) => {
                result.points.iter_mut().for_each(|point| point.bytes_per_s = Some(0.0));
            }
            ExperimentOutcome::Mix(result) => {
                for point in &mut result.points {
                    (point.iops, point.bytes_per_s) = (0.0, 0.0);
                    (point.read, point.write) = (None, Some(LatencySummary::default()));
                }
            }
            ExperimentOutcome::Neighbours(result) => {
                for point in &mut result.alone {
                    (point.iops, point.response) = (0.0, LatencySummary::default());
                }
                for beside in &mut result.beside {
                    beside.write_alone_bytes_per_s = 0.0;
                    beside.points.iter_mut().for_each(|point| point.write_bytes_per_s = 0.0);
                }
            }
            ExperimentOutcome::Viewers(result) => {
                result.alone.viewers = 0;
                result.alone.trials.iter_mut().for_each(|trial| trial.bytes_per_s = 0.0);
            }
            ExperimentOutcome::Apps(result) => {
                for stream in result.applications.iter_mut().flat_map(|a| &mut a.streams) {
                    (stream.bytes_per_s, stream.count) = (0.0, 0);
                    stream.asked_bytes_per_s = stream.asked_bytes_per_s.map(|_| 0.0);
                }
            }
            ExperimentOutcome::Snia(result) => {
                result.rounds.iter_mut().for_each(|round| round.iops = 0.0);
                if let Some(window) = &mut result.steady.window {
                    window.average = 0.0;
                }
            }
            ExperimentOutcome::Diskmark(result) => {
                for point in &mut result.points {
                    (point.iops, point.bytes_per_s) = (0.0, 0.0);
                    (point.read, point.write) = (None, Some(LatencySummary::default()));
                }
            }
        }
    }
    outcomes
}
