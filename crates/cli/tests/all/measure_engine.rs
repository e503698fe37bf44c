//! Several threads, processors, targets and priorities: their figures must add up to what was asked.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::harness::{Ran, line, new_in, scratch};
use crate::measure_rig::MIB;
use load::{Measurement, Verb};

#[track_caller]
fn measurement(ran: &Ran) -> Measurement {
    let step = ran.json()["step"]["measurement"].clone();
    serde_json::from_value(step).expect("a measurement in JSON")
}

/// Every interval is there once for each stream and operation, on one grid, and all add up to the totals. Off the grid each thread
/// may begin once and end once: on a busy machine one may begin when another has already ended. Its last interval lasts until all that
/// was under way is done, which may be beyond the grid.
#[track_caller]
fn adds_up(measured: &Measurement) {
    let interval = measured.workload.interval.0.as_nanos();
    let threads = measured.harness.threads as usize;
    let (mut seen, mut starts, mut ends) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut across = BTreeSet::new();
    for line in &measured.series {
        let index = line.start_ns / interval;
        assert!(seen.insert((index, line.stream, line.operation)), "twice: {line:?}");
        let end = line.start_ns + line.length_ns;
        if end > (index + 1) * interval {
            across.insert(index);
        }
        starts.insert(line.start_ns);
        ends.insert(end);
    }
    assert!(across.len() <= threads, "across the grid: {across:?}");
    for edges in [starts, ends] {
        let off = edges.iter().filter(|edge| *edge % interval != 0).count();
        assert!(off <= threads, "off the grid: {edges:?}");
    }
    for result in &measured.results {
        let lines = measured.series.iter().filter(|line| {
            line.operation == result.operation
                && measured.workload.streams[usize::from(line.stream)].name == result.stream
        });
        let sums = lines.fold((0, 0), |sum, line| (sum.0 + line.bytes, sum.1 + line.count));
        assert_eq!(sums, (result.bytes, result.count), "{} {}", result.stream, result.operation);
        assert_eq!(result.service.count, result.count);
        assert_eq!(result.response.count, result.count);
    }
}

#[test]
fn threads_on_processors_of_their_own_share_the_jobs_and_move_every_byte_once() {
    let folder = scratch();
    let target = new_in(&folder, "drive");
    let words = "measure run @ --json --write 1 --size 64MiB --bytes 64MiB --block 256KiB --depth 2 --jobs 4 --interval 20ms";
    for (index, (options, threads)) in
        [("--threads 1", 1), ("--threads 2 --cpus 0,1", 2), ("--threads 16 --cpus 0", 4)]
            .into_iter()
            .enumerate()
    {
        let output = new_in(&folder, &format!("results-{index}"));
        let words = format!("{words} {options} --erase @ --output {}", output.display());
        let measured = measurement(&line(&words, &target).code(0));
        adds_up(&measured);
        assert_eq!(measured.harness.threads, threads, "{options}");
        let written = measured.result("stream", Verb::Write).expect("it wrote");
        assert_eq!((written.bytes, written.count), (64 * MIB, 256), "{options}");
    }
    let data = fs::read(&target).expect("it was made");
    assert!(data.chunks(4096).all(|block| block.iter().any(|b| *b != 0)), "a block is missing");
}

#[test]
fn a_processor_that_is_not_there_is_named() {
    let folder = scratch();
    let target = new_in(&folder, "drive");
    fs::write(&target, vec![1; 1 << 20]).expect("writing a file");
    let output = new_in(&folder, "results");
    let words = format!("measure run @ --for 100ms --cpus 1000 --output {}", output.display());
    line(&words, &target).code(1).says(&["binding a thread to processor 1000"]);
}

#[test]
fn several_targets_each_get_the_jobs_and_are_all_in_the_sum() {
    let folder = scratch();
    let (one, other) = (new_in(&folder, "one"), new_in(&folder, "other"));
    let output = new_in(&folder, "results");
    let words = format!(
        "measure run @ {} --json --write 1 --size 16MiB --bytes 32MiB --block 64KiB --depth 4 --threads 2 --interval 20ms --output {}",
        other.display(),
        output.display()
    );
    let measured = measurement(&line(&words, &one).code(0));
    adds_up(&measured);
    assert_eq!(measured.drives.len(), 2);
    let written = measured.result("stream", Verb::Write).expect("it wrote");
    assert_eq!(written.bytes, 32 * MIB);
    let whole = |path: &Path| {
        let data = fs::read(path).expect("it was made");
        assert_eq!(data.len() as u64, 16 * MIB);
        data.chunks(4096).filter(|block| block.iter().any(|b| *b != 0)).count()
    };
    assert!(whole(&one) > 0 && whole(&other) > 0);
}

#[test]
fn streams_of_different_priorities_run_apart_and_keep_their_own_figures() {
    let folder = scratch();
    let target = new_in(&folder, "drive");
    let file = new_in(&folder, "workload.toml");
    let text = "stop = { time = '1s' }\ninterval = '50ms'\n\
        [[stream]]\nname = 'first'\nread = 1\nblock = '4KiB'\nrate = '200/s'\npriority = 'best-effort:0'\n\
        [[stream]]\nname = 'second'\nread = 1\nwrite = 1\npattern = 'random'\nblock = '16KiB'\nrate = '100/s'\npriority = 'idle'\n\
        [[stream]]\nname = 'third'\nread = 1\nblock = '8KiB'\nrate = '50/s'\njobs = 2\n";
    fs::write(&file, text).expect("writing a file");
    let output = new_in(&folder, "results");
    let words = format!(
        "measure run @ --size 32MiB --json --workload {} --output {}",
        file.display(),
        output.display()
    );
    let measured = measurement(&line(&words, &target).code(0));
    adds_up(&measured);
    assert_eq!(measured.harness.threads, 3, "one for each priority");
    let count = |stream: &str| {
        let results = measured.results.iter().filter(|result| result.stream == stream);
        results.map(|result| result.count).sum::<u64>()
    };
    // Each asks for its rate times a second; what could not be started in time is counted.
    let all = count("first") + count("second") + count("third");
    assert_eq!(all + measured.unsent, 200 + 100 + 2 * 50);
    assert!(count("first") <= 200 && count("second") <= 100 && count("third") <= 100);
}

#[test]
fn all_that_a_good_drive_wrote_is_read_back_right() {
    let folder = scratch();
    let target = new_in(&folder, "drive");
    let output = new_in(&folder, "results");
    let words = format!(
        "measure run @ --json --write 3 --read 1 --pattern random --size 32MiB --bytes 64MiB --block 4KiB:1,64KiB:3 --align 4KiB --depth 8 --verify --output {}",
        output.display()
    );
    let measured = measurement(&line(&words, &target).code(0));
    adds_up(&measured);
    let found = measured.verification.expect("it was verified");
    assert_eq!(found.wrong_sectors, 0);
    assert!(found.checked_bytes > 0);
    let sum: u64 = measured.results.iter().map(|result| result.bytes).sum();
    assert_eq!(sum, 64 * MIB);
}
