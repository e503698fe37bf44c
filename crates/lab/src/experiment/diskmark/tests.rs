//! The table of a drive whose rates are known, and what it costs.

use base::Duration;
use load::Plan;

use super::*;
use crate::answer::Answer;
use crate::experiment::testing::{Done, Model, covers, geometry, moving, run_in, scope};
use crate::finding::contradictions;

fn diskmark() -> Diskmark {
    Diskmark { scope: scope(100), ..Diskmark::default() }
}

/// Reads at 2 GB/s and writes at 500 MB/s, one command after the other; each takes 10 us at least.
fn model() -> Model {
    let mut busy = base::Instant::START;
    Box::new(move |command, now| {
        let (rate, length) = moving(command, Rate(2e9), Rate(500e6));
        busy = busy.max(now) + rate.time_for(length).max(Duration::from_micros(10));
        Ok(busy)
    })
}

fn run(options: &Diskmark, drive: Geometry) -> (DiskmarkResult, Done) {
    let folder = tempfile::tempdir().unwrap();
    let (result, done) = run_in(folder.path(), vec![drive], model(), |lab| options.run(lab));
    (result.unwrap(), done)
}

#[test]
fn every_cell_of_the_table_has_the_rate_of_the_drive() {
    let (result, done) = run(&diskmark(), geometry());
    assert_eq!(result.points.len(), 12);
    // 70 % of the bytes at 2 GB/s and 30 % at 500 MB/s; 4 KiB in 10 us.
    let mixed = 1.0 / (0.7 / 2e9 + 0.3 / 500e6);
    for (test, rates) in [
        ("seq1m-q8t1", [2e9, 500e6, mixed]),
        ("seq128k-q32t1", [2e9, 500e6, mixed]),
        ("rnd4k-q32t16", [409.6e6; 3]),
        ("rnd4k-q1t1", [409.6e6; 3]),
    ] {
        for (direction, rate) in Direction::ALL.into_iter().zip(rates) {
            let point = result.at(test, direction).unwrap();
            assert!((point.bytes_per_s / rate - 1.0).abs() < 0.15, "{test} {point:?}");
            assert_eq!(point.read.is_some(), direction != Direction::Write);
            assert_eq!(point.write.is_some(), direction != Direction::Read);
        }
    }
    let cost = diskmark().cost(&[geometry()]);
    assert!(done.written_bytes <= cost.written_bytes, "{done:?} {cost:?}");
    assert!(done.written_bytes * 4 > cost.written_bytes, "{done:?} {cost:?}");
    assert!(covers(&done, 0, 64 << 20));
    assert_eq!(contradictions(&result.findings(), &result.figures()), []);
    let answer = result.answer().join("\n");
    assert!(answer.contains("The fastest test is SEQ"), "{answer}");
    assert!(answer.contains("One 4 KiB command at a time: 100 k reads a second"), "{answer}");
}

#[test]
fn sixteen_jobs_of_depth_32_are_512_commands_under_way() {
    let test = TESTS[2];
    let workload = workload(&scope(100), "x", &test, Direction::Mix);
    let plan = Plan::new(&workload, &[geometry()]).unwrap();
    assert_eq!((plan.jobs.len(), plan.depth()), (16, 512));
    let stream = &workload.streams[0];
    assert_eq!((stream.read, stream.write, stream.pattern), (70, 30, Pattern::Random));
}

#[test]
fn a_drive_faster_than_thought_is_not_written_more_than_was_said() {
    let slow = Scope { write_guess: Rate(20e6), read_guess: Rate(20e6), ..scope(500) };
    let options = Diskmark { scope: slow, ..Diskmark::default() };
    let (_, done) = run(&options, geometry());
    let cost = options.cost(&[geometry()]);
    assert!(done.written_bytes <= cost.written_bytes, "{} {cost:?}", done.written_bytes);
}

#[test]
fn without_writes_the_reads_remain_and_nothing_is_written() {
    let (result, done) = run(&Diskmark { write: false, ..diskmark() }, geometry());
    assert_eq!((result.points.len(), done.written_bytes), (4, 0));
    assert!(result.points.iter().all(|point| point.direction == Direction::Read));
    assert_eq!(Diskmark { write: false, ..diskmark() }.cost(&[geometry()]).written_bytes, 0);
    let answer = result.answer().join("\n");
    assert!(answer.contains("Writes and mixes were not measured"), "{answer}");
}

#[test]
fn a_test_that_a_drive_can_not_do_is_left_out_with_the_reason() {
    let drive = Geometry { transfer_max_bytes: 512 << 10, ..geometry() };
    let (result, _) = run(&diskmark(), drive);
    assert_eq!(result.points.len(), 9);
    let answer = result.answer().join("\n");
    assert!(answer.contains("SEQ1M Q8T1 was left out: model takes 524 kB at once"), "{answer}");
}

#[test]
fn an_interrupted_table_goes_on_without_writing_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = || run_in(folder.path(), vec![geometry()], model(), |lab| diskmark().run(lab));
    let (first, done) = run();
    assert!(done.changes.iter().any(|(_, _, length)| *length == 4096));
    let (second, again) = run();
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(again, Done::default());
}

#[test]
fn reads_are_measured_before_anything_is_written_over() {
    let order = gentlest_first(&TESTS, &Direction::ALL);
    assert!(order[..4].iter().all(|(_, direction)| *direction == Direction::Read));
    let random = order[4..].iter().position(|(test, _)| test.random).unwrap();
    assert!(order[4 + random..].iter().all(|(test, _)| test.random));
}
