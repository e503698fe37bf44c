//! The applications on drives that serve them and drives that don't.

use base::{DeviceError, Operation};

use super::*;
use crate::experiment::testing::{Done, Model, geometry, rated, run_in, scope};

/// Reads and writes 1 GB/s; a command alone takes 100 us more.
fn fast() -> Model {
    rated(Rate(1e9), Rate(1e9), Duration::from_micros(100))
}

/// Applications that ask for shares of what a drive does alone.
fn apps() -> Apps {
    Apps { scope: scope(3_000), demands: None, ..Apps::default() }
}

/// Applications that ask for what they need.
fn absolute(applications: &[Application]) -> Apps {
    let applications = applications.to_vec();
    Apps { applications, demands: Some(Demands::own()), ..apps() }
}

fn run(apps: &Apps, drives: Vec<Geometry>, model: Model) -> (AppsResult, Done) {
    let folder = tempfile::tempdir().unwrap();
    let (result, done) = run_in(folder.path(), drives, model, |lab| apps.run(lab));
    (result.unwrap(), done)
}

fn discontent(result: &AppsResult) -> Vec<String> {
    let streams = |a: &ApplicationResult| {
        let name = a.application.name();
        let bad = a.streams.iter().filter(|stream| !stream.content);
        bad.map(|stream| format!("{name}.{}", stream.name)).collect::<Vec<_>>()
    };
    result.applications.iter().flat_map(streams).collect()
}

#[test]
fn a_steady_drive_serves_every_application() {
    let (result, done) = run(&apps(), vec![geometry()], fast());
    assert!((result.ceilings.read_bytes_per_s / 1e9 - 1.0).abs() < 0.01, "{:?}", result.ceilings);
    let answer = result.answer().join("\n");
    assert_eq!(discontent(&result), Vec::<String>::new(), "{answer}");
    assert_eq!(answer.matches(": served well.").count(), 6, "{answer}");
    let delivery = &result.applications[3].streams;
    assert_eq!(delivery.len(), 3, "viewers, new and cold content");
    assert!((delivery[0].bytes_per_s / 500e6 - 1.0).abs() < 0.05, "{:?}", delivery[0]);
    let cost = apps().cost(&[geometry()]);
    assert!(done.written_bytes <= cost.written_bytes, "{} {cost:?}", done.written_bytes);
}

#[test]
fn a_drive_that_stops_for_a_while_fails_those_who_can_not_wait() {
    let mut drive = fast();
    let pausing: Model = Box::new(move |command, now| {
        let at = drive(command, now)?;
        // Half a second of every two nothing is done.
        let into = now.as_nanos() % 2_000_000_000;
        let pause = Duration::from_nanos(500_000_000u64.saturating_sub(into));
        Ok(at.max(now + pause))
    });
    let (result, _) = run(&apps(), vec![geometry()], pausing);
    let bad = discontent(&result);
    for stream in ["cache-tier.cache", "virtual-machines.guests", "content-delivery.viewers"] {
        assert!(bad.iter().any(|name| name == stream), "{stream}: {bad:?}");
    }
    let answer = result.answer().join("\n");
    assert!(answer.contains("Short of what they need: cache got"), "{answer}");
    assert!(answer.contains("later than 10.0 ms (0.1 % allowed)"), "{answer}");
}

#[test]
fn a_load_beyond_what_drives_do_alone_is_not_served() {
    let (result, _) = run(&Apps { load: 2.0, ..apps() }, vec![geometry()], fast());
    let contents: Vec<bool> = result.applications.iter().map(|a| a.content).collect();
    assert!(contents.iter().filter(|content| **content).count() <= 1, "{contents:?}");
    assert!(result.answer()[0].ends_with("shares of that, times 2."));
}

#[test]
fn two_drives_are_asked_for_twice_as_much() {
    let only = Apps { applications: vec![Application::PostProduction], ..apps() };
    let (result, _) = run(&only, vec![geometry(), geometry()], fast());
    let playout = &result.applications[0].streams[0];
    assert!((playout.bytes_per_s / 1e9 - 1.0).abs() < 0.05, "{playout:?}");
    assert!(playout.content, "{playout:?}");
}

#[test]
fn a_drive_that_can_not_trim_has_its_cold_content_overwritten() {
    let drive = Geometry { trim_unit_bytes: None, trim_reads_zeros: false, ..geometry() };
    let only = Apps { applications: vec![Application::ContentDelivery], ..apps() };
    let (result, done) = run(&only, vec![drive], fast());
    assert_eq!((result.applications[0].streams.len(), done.trimmed_bytes), (2, 0));
    assert!(result.answer().join("\n").contains("Cold content was not trimmed"));
}

#[test]
fn failed_commands_make_nobody_content_and_are_said() {
    let mut drive = fast();
    let mut frames = 0;
    let failing: Model = Box::new(move |command, now| {
        let long = matches!(command.operation, Operation::Read { length, .. } if length == 8 << 20);
        frames += u64::from(long);
        if long && frames % 20 == 0 { Err(DeviceError::Medium) } else { drive(command, now) }
    });
    let only = Apps { applications: vec![Application::PostProduction], ..apps() };
    let (result, _) = run(&only, vec![geometry()], failing);
    assert_eq!(discontent(&result)[0], "post-production.playout");
    assert!(result.answer().join("\n").contains("medium error"));
}

#[test]
fn a_second_run_in_the_same_folder_does_no_io() {
    let folder = tempfile::tempdir().unwrap();
    let short = Apps { scope: scope(300), load: 0.7, ..apps() };
    let run = || run_in(folder.path(), vec![geometry()], fast(), |lab| short.run(lab));
    let (first, done) = run();
    assert!(done.read_bytes > 0 && done.trimmed_bytes > 0);
    let (second, again) = run();
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(again, Done::default());
}

#[test]
fn drives_that_can_not_be_written_and_senseless_loads_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let reading = Geometry { writable: false, ..geometry() };
    let (error, _) = run_in(folder.path(), vec![reading], fast(), |lab| apps().run(lab));
    assert!(error.unwrap_err().to_string().contains("open it for writing"));
    let none = Apps { load: 0.0, ..apps() };
    let (error, done) = run_in(folder.path(), vec![geometry()], fast(), |lab| none.run(lab));
    assert!(error.unwrap_err().to_string().contains("give 1 or so"));
    assert_eq!(done, Done::default());
}

#[test]
fn a_slow_drive_fails_what_a_fast_one_serves() {
    let applications =
        [Application::Olap, Application::ContentDelivery, Application::PostProduction];
    let of = |gb_per_s: f64| {
        let rate = Rate(gb_per_s * 1e9);
        let model = rated(rate, rate, Duration::from_micros(50));
        run(&absolute(&applications), vec![geometry()], model).0
    };
    let fast = of(6.0);
    assert_eq!(discontent(&fast), Vec::<String>::new(), "{:?}", fast.answer());
    let slow = of(0.5);
    assert_eq!(slow.applications.iter().filter(|a| a.content).count(), 0, "{:?}", slow.answer());
    let said = slow.answer().join("\n");
    assert!(said.contains("every figure has a source"), "{said}");
    assert!(said.contains("(at least 1.80 GB/s (14.4 Gb/s) required)"), "{said}");
    let shares = Apps { demands: None, ..absolute(&applications) };
    let model = rated(Rate(0.5e9), Rate(0.5e9), Duration::from_micros(50));
    let (asked_less, _) = run(&shares, vec![geometry()], model);
    assert_eq!(discontent(&asked_less), Vec::<String>::new());
}

#[test]
fn demands_are_asked_of_all_drives_together_and_multiplied_by_the_load() {
    let model = || rated(Rate(6e9), Rate(6e9), Duration::from_micros(50));
    for (drives, load) in [(1, 1.0), (2, 1.0), (2, 0.5)] {
        // Of both drives together.
        let (write_guess, read_guess) = (Rate(12e9), Rate(12e9));
        let scope = Scope { write_guess, read_guess, ..scope(1_000) };
        let apps = Apps { scope, load, ..absolute(&[Application::ContentDelivery]) };
        let (result, done) = run(&apps, vec![geometry(); drives], model());
        let viewers = &result.applications[0].streams[0];
        // 250 viewers of 4 MB/s, of which each block lasts 131 ms.
        let asked = viewers.asked_bytes_per_s.unwrap();
        assert!((asked / (load * 1e9) - 1.0).abs() < 1e-9, "{asked}");
        assert!((viewers.bytes_per_s / asked - 1.0).abs() < 0.05, "{viewers:?}");
        let deadline = viewers.deadline_ns.unwrap() as f64;
        assert!((deadline * load / 131e6 - 1.0).abs() < 0.01, "{deadline}");
        assert!(viewers.source.as_ref().unwrap().contains("H.264"));
        let cost = apps.cost(&vec![geometry(); drives]);
        assert!(done.written_bytes <= cost.written_bytes, "{} {cost:?}", done.written_bytes);
    }
}
