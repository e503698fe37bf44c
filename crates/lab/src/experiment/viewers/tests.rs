//! The search for viewers on drives that carry a known number of them.

use base::{DeviceError, Instant, Operation};

use super::*;
use crate::analysis::Sample;
use crate::answer::Answer;
use crate::experiment::testing::{Done, Model, geometry, rated, run_in, scope};

/// 100 viewers of 2.5 MB/s are 250 MB/s.
fn carries_a_hundred() -> Model {
    rated(Rate(250e6), Rate(250e6), Duration::ZERO)
}

fn alone() -> Viewers {
    // An overload of one in a hundred shows after a hundred times 0.21 s.
    Viewers {
        scope: Scope { interval: Duration::from_secs(1), ..scope(60_000) },
        ..Viewers::read_only()
    }
}

fn run(viewers: &Viewers, drives: Vec<Geometry>, model: Model) -> (ViewersResult, Done) {
    let folder = tempfile::tempdir().unwrap();
    let (result, done) = run_in(folder.path(), drives, model, |lab| viewers.run(lab));
    (result.unwrap(), done)
}

#[test]
fn a_drive_of_250_mb_a_second_carries_a_hundred_viewers_and_no_more() {
    let (result, done) = run(&alone(), vec![geometry()], carries_a_hundred());
    assert_eq!((result.alone.viewers, result.alone.refused), (100, Some(101)));
    let miss = result.alone.first_miss.as_ref().unwrap();
    assert_eq!((miss.viewers, miss.cause), (101, MissCause::Busy), "{miss:?}");
    assert_eq!(done.written_bytes, 0);
    let answer = result.answer().join("\n");
    assert!(answer.contains("100 viewers of 2.50 MB/s (20.0 Mb/s) each were carried"), "{answer}");
    assert!(
        answer.contains("With 101 the first block was late because the drive was as busy"),
        "{answer}"
    );
    let count = &result.figures()[1];
    assert_eq!((count.name.as_str(), count.value), ("viewers.alone", Some(100.0)));
}

#[test]
fn two_drives_carry_twice_as_many() {
    let options = Viewers { resolution_percent: 5.0, passes: 1, tries: 1, ..alone() };
    let (result, _) = run(&options, vec![geometry(), geometry()], carries_a_hundred());
    assert_eq!((result.alone.viewers, result.alone.refused), (200, Some(210)));
}

#[test]
fn an_ingest_takes_its_rate_from_the_viewers() {
    let options = Viewers { ingest: Some(Ingest::Rate(Rate(100e6))), prepare: true, ..alone() };
    let (result, done) = run(&options, vec![geometry()], carries_a_hundred());
    assert_eq!(result.alone.viewers, 100);
    let limit = result.ingesting.as_ref().unwrap();
    assert!((59..=61).contains(&limit.viewers), "{limit:?}");
    assert!(limit.first_miss.is_some());
    let cost = options.cost(&[geometry()]);
    assert!(done.written_bytes <= cost.written_bytes, "{} {cost:?}", done.written_bytes);
    // The ingest has the last quarter for itself, and all was written before.
    let behind = done.changes.iter().filter(|(_, offset, _)| *offset >= 48 << 20).count();
    assert!(behind > done.changes.len() / 2);
    assert_eq!(result.preparation.written_bytes, 64 << 20);
}

#[test]
fn an_ingest_of_a_share_is_measured_first() {
    let options = Viewers {
        ingest: Some(Ingest::Share(0.5)),
        resolution_percent: 5.0,
        passes: 1,
        tries: 1,
        ..alone()
    };
    let (result, _) = run(&options, vec![geometry()], carries_a_hundred());
    let limit = result.ingesting.unwrap();
    assert!((limit.ingest_bytes_per_s.unwrap() / 125e6 - 1.0).abs() < 0.01);
    assert!((45..=50).contains(&limit.viewers), "{limit:?}");
}

#[test]
fn one_stall_in_all_the_time_is_outvoted() {
    let mut drive = carries_a_hundred();
    let stalling: Model = Box::new(move |command, now| {
        let at = drive(command, now)?;
        let stall = Instant::from_nanos(100_000_000_000)..Instant::from_nanos(100_300_000_000);
        Ok(if stall.contains(&now) { at.max(stall.end) } else { at })
    });
    let options = Viewers { resolution_percent: 5.0, ..alone() };
    let (result, _) = run(&options, vec![geometry()], stalling);
    assert_eq!(result.alone.viewers, 100);
    let failed = result.alone.trials.iter().filter(|t| !t.held && t.viewers <= 100).count();
    assert_eq!(failed, 1, "the stall was seen, once");
}

#[test]
fn a_drive_that_is_slow_now_and_then_is_named_as_the_cause() {
    let mut reads = 0;
    let hiccups: Model = Box::new(move |_, now| {
        reads += 1;
        Ok(now + Duration::from_millis(if reads % 2_000 == 0 { 300 } else { 2 }))
    });
    let options = Viewers { scope: scope(20_000), resolution_percent: 5.0, ..alone() };
    let (result, _) = run(&options, vec![geometry()], hiccups);
    let miss = result.alone.first_miss.as_ref().unwrap();
    assert_eq!(miss.cause, MissCause::DriveSlow, "{miss:?}");
    assert_eq!(miss.service_ns, 300_000_000);
}

#[test]
fn what_limits_a_search_from_above_makes_it_a_lower_bound() {
    let options = Viewers { buffers_max_bytes: 20 * (512 << 10), ..alone() };
    let (result, _) = run(&options, vec![geometry()], carries_a_hundred());
    assert_eq!((result.alone.viewers, result.alone.refused), (20, None));
    let answer = result.answer().join("\n");
    assert!(answer.contains("At least 20 viewers"), "{answer}");
    assert!(answer.contains("the memory for blocks was used up"), "{answer}");
}

#[test]
fn failures_are_the_cause_when_reads_fail_and_nobody_is_carried() {
    let failing: Model = Box::new(|_, _| Err(DeviceError::Medium));
    let (result, _) = run(&alone(), vec![geometry()], failing);
    assert_eq!(result.alone.viewers, 0);
    assert_eq!(result.alone.first_miss.as_ref().unwrap().cause, MissCause::Failures);
    let answer = result.answer().join("\n");
    assert!(answer.contains("medium error"), "{answer}");
}

#[test]
fn drives_open_for_reading_are_searched_alone_and_that_is_said() {
    let options = Viewers {
        resolution_percent: 10.0,
        passes: 1,
        tries: 1,
        scope: scope(5_000),
        ..Viewers::default()
    };
    let drive = Geometry { writable: false, ..geometry() };
    let (result, done) = run(&options, vec![drive], carries_a_hundred());
    assert_eq!((done.written_bytes, result.ingesting.is_none()), (0, true));
    let answer = result.answer().join("\n");
    assert!(answer.contains("beside an ingest were left out"), "{answer}");
    assert!(answer.contains("Nothing was written before"), "{answer}");
}

#[test]
fn a_second_run_in_the_same_folder_does_no_io() {
    let folder = tempfile::tempdir().unwrap();
    let options = Viewers { scope: scope(3_000), resolution_percent: 10.0, ..Viewers::default() };
    let run =
        || run_in(folder.path(), vec![geometry()], carries_a_hundred(), |lab| options.run(lab));
    let (first, done) = run();
    assert!(done.read_bytes > 0);
    let (second, again) = run();
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(again, Done::default());
}

#[test]
fn a_region_without_room_is_refused_with_what_to_do() {
    let options = Viewers { scope: Scope { region: Some(256 << 10), ..scope(100) }, ..alone() };
    let folder = tempfile::tempdir().unwrap();
    let (error, _) =
        run_in(folder.path(), vec![geometry()], carries_a_hundred(), |lab| options.run(lab));
    assert!(error.unwrap_err().to_string().contains("give a larger one"));
}

/// A trial whose first block is late because of a stall.
fn late_trial() -> Step {
    let mut reads = 0;
    let model: Model = Box::new(move |command, now| {
        assert!(matches!(command.operation, Operation::Read { .. }));
        reads += 1;
        Ok(now + Duration::from_millis(if reads == 5 { 400 } else { 1 }))
    });
    let setting = alone().setting(&[geometry()]).unwrap();
    let workload = Workload {
        stop: Stop { time: Some(Time(Duration::from_secs(3))), ..Stop::default() },
        ..setting.trial("late", 3, 0, Rate(2.5e6), None)
    };
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), vec![geometry()], model, |lab| lab.step(NAME, "late", &workload))
        .0
        .unwrap()
}

fn judged(step: &Step) -> FirstMiss {
    let deadline = Rate(2.5e6).time_for(512 << 10);
    miss::judge(
        step,
        Circumstances { viewers: 3, deadline, ceiling: 1e9, asked: 0.5e9, starved: None },
    )
}

#[test]
fn heat_and_the_harness_are_named_when_something_speaks_for_them() {
    let step = late_trial();
    assert_eq!(judged(&step).cause, MissCause::DriveSlow);
    let mut hot = step.clone();
    let sample =
        Sample { throttled: Some(true), temperature_celsius: Some(91.0), ..Sample::default() };
    hot.samples.push((1, sample));
    assert_eq!(judged(&hot).cause, MissCause::DriveSlow, "another drive's heat is no cause");
    hot.samples.push((0, sample));
    let found = judged(&hot);
    assert_eq!(found.cause, MissCause::Heat);
    assert!(found.evidence.contains("91 degrees"), "{found:?}");
    let mut limited = step.clone();
    limited.measurement.harness.limited = Some("a thread was busy".to_owned());
    assert_eq!(judged(&limited).cause, MissCause::Harness);
    let mut lagging = step;
    lagging.measurement.harness.lag.max_ns = Some(390_000_000);
    assert_eq!(judged(&lagging).cause, MissCause::Harness);
}
