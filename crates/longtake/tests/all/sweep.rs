//! Sweeps: what is kept of one that was stopped, and what a job that fails does to the others.

use std::sync::atomic::AtomicBool;

use longtake::sweep::{Sweep, SweepRun};
use target::Profiles;
use target::output::Outputs;

use crate::harness::scratch;

/// Three plans, of which the last one needs more than a number can say.
const SPEC: &str = r#"
run = ["plan"]
[base]
drive = "ideal"
keep = "1h"
[axes]
rate = ["1GB/s", "2GB/s", "no rate"]
"#;

#[test]
fn a_stopped_sweep_goes_on_and_a_failed_job_is_a_result() {
    let sweep = Sweep::from_toml(SPEC).expect("it is a sweep");
    let (folder, profiles) = (scratch(), Profiles::of_user());
    let outputs = Outputs::new(false);
    let open = || SweepRun::open(&sweep, &profiles, folder.path(), &outputs).expect("it is new");
    let mut run = open();
    let stopped = run.run(None, &AtomicBool::new(true), |_| {}).expect("nothing is written");
    assert_eq!((stopped, run.left()), (0, 3));
    let other = SweepRun::open(&sweep, &profiles, folder.path(), &outputs).map(drop);
    let refused = other.expect_err("the results are being written").to_string();
    assert!(refused.contains("another sweep"), "{refused}");
    let mut failed = 0;
    let count =
        |finished: &longtake::sweep::Finished| failed += u32::from(finished.error.is_some());
    let run_now = run.run(None, &AtomicBool::new(false), count).expect("there is space");
    assert_eq!((run_now, failed, run.left()), (3, 1, 0));
    drop(run);
    let run = open();
    let places: Vec<u64> = run.results().map(|(place, ..)| place).collect();
    assert_eq!((places, run.left()), (vec![0, 1, 2], 0));
}

#[test]
fn looking_at_a_sweep_makes_nothing() {
    let sweep = Sweep::from_toml(SPEC).expect("it is a sweep");
    let (folder, profiles) = (scratch(), Profiles::of_user());
    let results = folder.path().join("results");
    let run = SweepRun::look(&sweep, &profiles, &results).expect("there are none");
    let estimate = run.estimate(None);
    assert_eq!((estimate.left, estimate.problem), (3, None));
    assert!(estimate.one.is_some_and(|one| one <= estimate.all), "{:?}", estimate.all);
    assert!(!results.exists());
}
