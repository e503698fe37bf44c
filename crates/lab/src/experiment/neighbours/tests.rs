//! Readers beside writers whose every effect is known.

use std::collections::BTreeMap;

use base::{Instant, Operation};

use super::answer::writer_left;
use super::*;
use crate::answer::Answer;
use crate::experiment::testing::{Done, Model, geometry, run_in, scope};

/// Reads take 100 us, or 250 us within 5 ms of a write on the same drive; a write takes 1 ms.
fn disturbed() -> Model {
    let mut written: BTreeMap<u16, Instant> = BTreeMap::new();
    Box::new(move |command, now| {
        let drive = command.drive.0;
        if matches!(command.operation, Operation::Write { .. }) {
            written.insert(drive, now);
            return Ok(now + Duration::from_millis(1));
        }
        let recent =
            written.get(&drive).is_some_and(|at| now.since(*at) < Duration::from_millis(5));
        Ok(now + Duration::from_micros(if recent { 250 } else { 100 }))
    })
}

#[test]
fn a_writer_keeps_no_more_than_it_writes_alone() {
    let said = |least| writer_left(least, 181e6).1;
    assert!(said(100e6).starts_with("the writer keeps {0} of the {1}"), "{}", said(100e6));
    assert!(said(185e6).starts_with("the writer is not slowed"), "{}", said(185e6));
    assert!(said(246e6).contains("in another state then"), "{}", said(246e6));
}

fn both() -> Neighbours {
    Neighbours {
        scope: scope(200),
        writers: vec![(Relation::Same, 0), (Relation::OtherDrive, 1)],
        depths: vec![1, 8],
        ..Neighbours::default()
    }
}

fn run(options: &Neighbours) -> (NeighboursResult, Done) {
    let folder = tempfile::tempdir().unwrap();
    let drives = vec![geometry(), geometry()];
    let (result, done) = run_in(folder.path(), drives, disturbed(), |lab| options.run(lab));
    (result.unwrap(), done)
}

#[test]
fn a_writer_on_the_same_namespace_takes_its_share_and_one_on_another_drive_nothing() {
    let (result, done) = run(&both());
    for (alone, depth) in result.alone.iter().zip([1.0, 8.0]) {
        assert!((alone.iops / (depth * 10e3) - 1.0).abs() < 0.05, "{alone:?}");
    }
    let left: Vec<f64> = result
        .figures()
        .into_iter()
        .filter(|figure| figure.name.ends_with("iops_left"))
        .map(|figure| figure.value.unwrap())
        .collect();
    for (left, expected) in left.iter().zip([40.0, 40.0, 100.0, 100.0]) {
        assert!((left - expected).abs() < 2.0, "{left} for {expected}");
    }
    let answer = result.answer().join("\n");
    assert!(answer.contains("on the same namespace disturbs the reads"), "{answer}");
    assert!(answer.contains("on another drive doesn't disturb the reads"), "{answer}");
    assert!(answer.contains("the median latency 100 us becomes 250 us"), "{answer}");
    // Eight writes of 128 KiB a millisecond.
    let writes = result.beside[0].write_alone_bytes_per_s;
    assert!((writes / (8.0 * 131_072e3) - 1.0).abs() < 0.05, "{writes}");
    // Estimates of cost are made with 1 GB/s, and this drive writes 1.05 GB/s.
    let cost = both().cost(&[geometry(), geometry()]);
    assert!(done.written_bytes <= cost.written_bytes + cost.written_bytes / 10, "{cost:?}");
}

#[test]
fn percentiles_without_enough_reads_are_not_known_and_the_time_they_need_is_said() {
    let (result, _) = run(&both());
    let alone = &result.alone[0];
    assert_eq!(alone.response.percentile(99.9), None, "2,000 reads have 2 beyond it");
    let needed = alone.time_for(99.9999).unwrap().as_nanos() as f64;
    assert!((needed / 1e13 - 1.0).abs() < 0.05, "10^8 reads at 10,000 a second: {needed}");
    let figures = result.figures();
    let six = figures.iter().find(|f| f.name == "neighbours.alone.d1.p99_9999").unwrap();
    assert_eq!((six.value, six.note.as_str()), (None, "too few reads to know: 1.98 k of 100 M"));
    let answer = result.answer().join("\n");
    assert!(answer.contains("The p99.9999 latency needs 100 M reads to be known"), "{answer}");
}

#[test]
fn a_writer_with_a_rate_of_its_own_keeps_it() {
    let options = Neighbours { write_rate: Some(Rate(50e6)), ..both() };
    let (result, _) = run(&options);
    for point in &result.beside[0].points {
        assert!((point.write_bytes_per_s / 50e6 - 1.0).abs() < 0.05, "{point:?}");
    }
}

#[test]
fn a_second_run_in_the_same_folder_does_no_io() {
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let drives = vec![geometry(), geometry()];
        run_in(folder.path(), drives, disturbed(), |lab| both().run(lab))
    };
    let (first, _) = run();
    let (second, again) = run();
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(again, Done::default());
}

#[test]
fn roles_that_can_not_be_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for (reader, writers, expected) in [
        (0, vec![(Relation::Same, 1)], "drive 1 can't be a writer on the same namespace"),
        (0, vec![(Relation::OtherSet, 0)], "can't be a writer in another NVM Set"),
        (2, vec![], "there is no drive 2"),
        (0, vec![(Relation::OtherDrive, 1)], "open for reading only"),
    ] {
        let reading = Geometry { writable: false, ..geometry() };
        let options = Neighbours { reader, writers, ..both() };
        let drives = vec![geometry(), reading];
        let (error, done) = run_in(folder.path(), drives, disturbed(), |lab| options.run(lab));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(done, Done::default());
    }
}

#[test]
fn a_point_is_drawn_out_until_the_percentile_is_known_and_no_longer_than_was_said() {
    // Of 99 % 10,000 reads tell: a second alone at depth 1, two and a half beside the writer.
    let options = Neighbours {
        percentile: Some(99.0),
        longest: Some(Duration::from_secs(2)),
        writers: vec![(Relation::Same, 0)],
        depths: vec![1],
        ..both()
    };
    let (result, done) = run(&options);
    let (alone, beside) = (&result.alone[0].response, &result.beside[0].points[0].response);
    assert!((10_000..12_000).contains(&alone.count), "{alone:?}");
    assert!(alone.percentile(99.0).is_some());
    assert!((7_900..8_100).contains(&beside.count), "two seconds at 4,000 a second: {beside:?}");
    assert_eq!(beside.percentile(99.0), None);
    let said = result.answer().join("\n");
    assert!(
        said.contains("The p99 latency needs 10.0 k reads to be known. 1 of 2 points have fewer"),
        "{said}"
    );
    assert!(said.contains("would have to run for 2.5"), "{said}");
    let cost = options.cost(&[geometry(), geometry()]);
    assert!(done.written_bytes <= cost.written_bytes + cost.written_bytes / 10, "{cost:?}");
    // Where it is known soon, a point takes the time that it takes without.
    let soon = Neighbours { percentile: Some(50.0), ..options };
    let (result, _) = run(&soon);
    assert!((1_900..2_100).contains(&result.alone[0].response.count), "{:?}", result.alone[0]);
}

#[test]
fn a_percentile_needs_a_hundred_reads_beyond_it() {
    for (percent, samples) in
        [(50.0, 200.0), (99.0, 1e4), (99.9, 1e5), (99.99, 1e6), (99.9999, 1e8)]
    {
        assert_eq!(samples_for(percent), samples);
    }
}

#[test]
fn drives_are_overwritten_whole_before_anything_is_measured() {
    let bytes = geometry().capacity_bytes;
    for (how, passes, block) in [("random:2", 2, 4096), ("sequential", 1, 1 << 20)] {
        let writers = vec![(Relation::OtherDrive, 1)];
        let overwrite = Some(how.parse().unwrap());
        let options = Neighbours { overwrite, writers, depths: vec![1], ..both() };
        let (result, done) = run(&options);
        let overwritten = result.overwritten.unwrap();
        assert_eq!(overwritten.written_bytes, 2 * passes * bytes, "two drives, {passes} times");
        assert_eq!(result.preparation.written_bytes, 2 * bytes);
        let on_reader: Vec<u64> =
            done.changes.iter().filter(|change| change.0 == 0).map(|change| change.2).collect();
        // Trimmed, written once, and overwritten: nobody else writes there.
        assert_eq!(on_reader.iter().sum::<u64>(), (2 + passes) * bytes);
        assert_eq!(on_reader.last(), Some(&block));
        let said = result.answer().join("\n");
        assert!(said.contains("Before, the drives were overwritten"), "{said}");
        let cost = options.cost(&[geometry(), geometry()]);
        assert!(done.written_bytes <= cost.written_bytes + cost.written_bytes / 10, "{cost:?}");
    }
    for wrong in ["", "backwards", "random:0", "random:x", "sequential:101"] {
        assert!(wrong.parse::<Overwriting>().is_err(), "{wrong}");
    }
}

#[test]
fn blocks_that_can_not_be_used_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let options = Neighbours { read_block_bytes: 1000, ..both() };
    let drives = vec![geometry(), geometry()];
    let (error, done) = run_in(folder.path(), drives, disturbed(), |lab| options.run(lab));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("addressed in blocks of 512 bytes: give another block"), "{error}");
    assert_eq!(done, Done::default());
}
