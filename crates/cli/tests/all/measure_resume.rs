//! A measurement that is cut short keeps what it has, and goes on from there.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::harness::{new_in, scratch};
use crate::measure_rig::{MIB, Measuring};
use lab::run::Run;
use load::hdr_log;
use nix::sys::signal::Signal;
use tempfile::TempDir;

/// Something to read.
fn drive(folder: &TempDir) -> PathBuf {
    let path = new_in(folder, "drive");
    fs::write(&path, vec![1; (32 * MIB) as usize]).expect("writing a file");
    // Or else the first reads would wait until it is written out.
    File::open(&path).and_then(|file| file.sync_all()).expect("writing it out");
    path
}

/// An experiment of eight steps, each of a second in four intervals.
fn mix<'a>(target: &'a Path, output: &'a Path) -> Vec<&'a str> {
    let text = |path: &'a Path| path.to_str().expect("a scratch path is text");
    let mut words = vec!["mix", text(target), "--read-only", "--point", "1s", "--json"];
    words.extend(["--output", text(output)]);
    words
}

/// The experiment's files that end in this.
fn files(output: &Path, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(output.join("mix")) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == end)).collect()
}

/// What the steps that are done have written, and when.
fn done(output: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let look = |path: PathBuf| {
        let time = fs::metadata(&path).and_then(|file| file.modified()).expect("it is there");
        let bytes = fs::read(&path).expect("it is there");
        (path, (time, bytes))
    };
    files(output, "json").into_iter().map(look).collect()
}

/// The log of the step that isn't done.
fn under_way(output: &Path) -> Option<PathBuf> {
    files(output, "hlog").into_iter().find(|log| !log.with_extension("json").exists())
}

/// Whole lines of a log: when each interval began and the longest service in it, in nanoseconds, in order and each once.
fn intervals(log: &Path) -> Vec<(u64, u64)> {
    let file = BufReader::new(File::open(log).expect("it is there"));
    let mut intervals: Vec<(u64, u64)> = Vec::new();
    for line in hdr_log::read(file) {
        let line = line.unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let (start, slowest) =
            (line.start.as_nanos(), line.latencies.max().map_or(0, |longest| longest.as_nanos()));
        match intervals.last_mut().filter(|last| last.0 == start) {
            Some(last) => last.1 = last.1.max(slowest),
            None => intervals.push((start, slowest)),
        }
    }
    intervals
}

/// Every interval is there. One in which no command was done has no line: then those behind it took as long. The first is short
/// if the machine began late.
#[track_caller]
fn none_is_missing(intervals: &[(u64, u64)], length: u64) {
    let mut next = 0;
    for (at, &(start, slowest)) in intervals.iter().enumerate() {
        assert!(start >= next && (start % length == 0 || at == 0), "{intervals:?}");
        // None was there to be left out before a late beginning.
        let left_out = if start % length == 0 { start - next } else { 0 };
        assert!(slowest + length > left_out, "{left_out} ns before {start}: {intervals:?}");
        next = (start / length + 1) * length;
    }
}

#[test]
fn killed_in_the_middle_it_goes_on_behind_the_steps_that_were_done() {
    let folder = scratch();
    let (target, output) = (drive(&folder), new_in(&folder, "results"));
    let mut measuring = Measuring::new(&mix(&target, &output));
    // In the third step or later, when it has written two of its intervals.
    let mut seen = None;
    measuring.wait_until("a later step's second interval", || {
        if files(&output, "json").len() >= 2
            && let Some(log) = under_way(&output)
        {
            let found = intervals(&log).len();
            seen = (found >= 2).then_some((log, found));
        }
        seen.is_some()
    });
    measuring.signal(Signal::SIGKILL);
    measuring.end().code(-1);

    let before = done(&output);
    assert!(before.len() >= 2, "{before:?}");
    let (log, seen) = seen.expect("it was seen");
    let found = intervals(&log);
    assert!(found.len() >= seen, "{seen} intervals were written, {found:?} are left");
    none_is_missing(&found, 250_000_000);

    let mut words = mix(&target, &output);
    words.push("--resume");
    Measuring::new(&words).end().code(0);
    let after = done(&output);
    for (path, file) in &before {
        assert!(after.get(path) == Some(file), "{} was written again", path.display());
    }
    // Eight steps and the result.
    assert_eq!(after.len(), 9, "{:?}", after.keys());
    assert!(under_way(&output).is_none());
    let run = Run::read(&output).expect("it can be read").expect("there is one");
    assert_eq!(run.outcomes.iter().map(|outcome| outcome.name()).collect::<Vec<_>>(), ["mix"]);
}

#[test]
fn interrupted_an_experiment_stops_keeps_what_it_has_and_says_how_to_go_on() {
    let folder = scratch();
    let (target, output) = (drive(&folder), new_in(&folder, "results"));
    let mut measuring = Measuring::new(&mix(&target, &output));
    measuring.wait_until("the first step is done", || !files(&output, "json").is_empty());
    let before = done(&output);
    measuring.signal(Signal::SIGINT);
    measuring.end().code(1).says(&["stopped", "--resume"]);
    let after = done(&output);
    assert!(before.iter().all(|(path, file)| after.get(path) == Some(file)));
    assert!(after.len() < 8, "{:?}", after.keys());
    let run = fs::read(output.join("run.json")).expect("it is there");
    let run: Run = serde_json::from_slice(&run).expect("it can be read");
    assert!(run.outcomes.is_empty() && !run.subjects.is_empty());
}

#[test]
fn interrupted_a_workload_keeps_its_intervals() {
    let folder = scratch();
    let (target, output) = (drive(&folder), new_in(&folder, "results"));
    let words = [
        "run",
        target.to_str().expect("a scratch path is text"),
        "--output",
        output.to_str().expect("a scratch path is text"),
        "--for",
        "60s",
        "--interval",
        "100ms",
    ];
    let mut measuring = Measuring::new(&words);
    let log = output.join("run/workload.hlog");
    measuring.wait_until("three intervals", || log.exists() && intervals(&log).len() >= 3);
    measuring.signal(Signal::SIGINT);
    measuring.end().code(1).says(&["stopped", "intervals so far"]);
    let found = intervals(&log);
    assert!(found.len() >= 3, "{found:?}");
    none_is_missing(&found, 100_000_000);
}

#[test]
fn results_of_one_drive_are_never_taken_for_anothers() {
    let folder = scratch();
    let (first, output) = (drive(&folder), new_in(&folder, "results"));
    let second = new_in(&folder, "another");
    fs::write(&second, vec![1; (32 * MIB) as usize]).expect("writing a file");
    let words = |target| {
        let mut words = mix(target, &output);
        words[4] = "100ms";
        words
    };
    Measuring::new(&words(&first)).end().code(0);
    let before = fs::read(output.join("run.json")).expect("a run has a file");
    let again = [words(&second), vec!["--resume"]].concat();
    Measuring::new(&again).end().code(1).says(&["other drives", "new folder"]);
    fs::remove_file(&first).expect("removing a file");
    let gone = [words(&first), vec!["--resume"]].concat();
    Measuring::new(&gone).end().code(1);
    assert_eq!(fs::read(output.join("run.json")).expect("it stays"), before);
    assert!(!first.exists(), "nothing was made in its place");
}

#[test]
fn another_experiment_in_the_same_folder_keeps_what_the_first_one_found() {
    let folder = scratch();
    let (target, output) = (drive(&folder), new_in(&folder, "results"));
    let mut words = mix(&target, &output);
    words[4] = "100ms";
    Measuring::new(&words).end().code(0);
    words[0] = "link";
    words.push("--resume");
    Measuring::new(&words).end().code(0);
    let run = Run::read(&output).expect("run.json reads").expect("it is there");
    let names: Vec<&str> =
        run.outcomes.iter().map(lab::experiment::ExperimentOutcome::name).collect();
    assert_eq!(names, ["mix", "link"]);
}
