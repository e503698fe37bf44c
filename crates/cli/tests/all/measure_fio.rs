//! A workload printed as a fio job asks fio for the same bytes, and what fio measured is read back whole.

use std::collections::BTreeSet;
use std::fs;

use crate::harness::{line, longtake, new_in, run, scratch, tool};
use load::{Measurement, Verb};
use serde_json::Value;

const WORKLOAD: &str =
    "--write 1 --block 64KiB --depth 4 --size 32MiB --bytes 32MiB --interval 50ms";

#[track_caller]
fn measurement(printed: &Value) -> Measurement {
    serde_json::from_value(printed["step"]["measurement"].clone()).expect("a measurement in JSON")
}

#[test]
fn fio_runs_a_printed_workload_and_its_result_is_read_back() {
    let folder = scratch();
    let target = new_in(&folder, "drive");
    let printed = line(&format!("measure run @ {WORKLOAD} --print fio"), &target).code(0);
    assert!(!target.exists(), "printing makes nothing");
    // A job never makes a file: a wrong name must not fill a disk.
    fs::File::create(&target).and_then(|file| file.set_len(32 << 20)).expect("making a file");
    let job = new_in(&folder, "job.fio");
    fs::write(&job, &printed.stdout).expect("writing a file");
    let result = new_in(&folder, "fio.json");
    let mut fio = tool("fio", "fio");
    fio.arg("--output-format=json+").arg("--output").arg(&result).arg(&job);
    run(fio.current_dir(folder.path())).code(0);

    let output = new_in(&folder, "imported");
    let words = format!("measure import @ --json --output {}", output.display());
    let theirs = measurement(&line(&words, &result).code(0).json());
    assert!(theirs.instrument.starts_with("fio"), "{}", theirs.instrument);
    assert!(output.join("run/workload.json").exists());

    let output = new_in(&folder, "measured");
    let words = format!("measure run @ {WORKLOAD} --json --erase @ --output {}", output.display());
    let ours = measurement(&line(&words, &target).code(0).json());
    let sums = |measured: &Measurement| {
        let writes = measured.results.iter().filter(|result| result.operation == Verb::Write);
        writes.fold((0, 0), |sum, result| (sum.0 + result.bytes, sum.1 + result.count))
    };
    assert_eq!(sums(&theirs), (32 << 20, 512));
    assert_eq!(sums(&ours), sums(&theirs));
    assert_eq!(theirs.workload.streams[0].block.mean(), 65_536.0);
    assert_eq!(theirs.results[0].service.count, 512, "json+ has every latency");
}

#[test]
fn a_printed_workload_reads_back_as_the_same() {
    let folder = scratch();
    let target = new_in(&folder, "drive");
    let first = line(&format!("measure run @ {WORKLOAD} --print toml"), &target).code(0);
    let file = new_in(&folder, "workload.toml");
    fs::write(&file, &first.stdout).expect("writing a file");
    let words = format!("measure run @ --print toml --workload {}", file.display());
    assert_eq!(line(&words, &target).code(0).stdout, first.stdout);
}

/// A job as one finds it, not one that Longtake printed.
const JOB: &str = "[global]\nioengine=libaio\ndirect=1\ngroup_reporting\n\n[job]\nrw=write\nbs=64k\niodepth=4\nsize=32m\n";

#[test]
fn a_job_file_runs_as_fio_would_run_it() {
    let folder = scratch();
    let target = new_in(&folder, "drive");
    fs::File::create(&target).and_then(|file| file.set_len(32 << 20)).expect("making a file");
    let job = new_in(&folder, "job.fio");
    fs::write(&job, JOB).expect("writing a file");
    let output = new_in(&folder, "measured");
    let (file, results) = (job.display(), output.display());
    let words = format!("measure run {file} @ --json --erase @ --output {results}");
    let said = "job.fio: these options change nothing here: group_reporting";
    let ran = line(&words, &target).code(0).says(&[said]);
    let written = measurement(&ran.json()).results[0].clone();
    assert_eq!((written.operation, written.bytes, written.count), (Verb::Write, 32 << 20, 512));
    let named = line(&format!("measure run @ --print toml --workload {file}"), &target).code(0);
    let placed = line(&format!("measure run {file} @ --print toml"), &target).code(0);
    assert_eq!(named.stdout, placed.stdout);
}

#[test]
fn what_a_job_file_asks_in_vain_is_named_by_line_and_nothing_is_made() {
    let folder = scratch();
    let target = new_in(&folder, "drive");
    let job = new_in(&folder, "job.fio");
    let (file, second) = (job.display(), new_in(&folder, "two.fio"));
    fs::write(&job, format!("{JOB}startdelay=5\nioengine=mmap\n")).expect("writing a file");
    let words = format!("measure run {file} @ --erase @");
    let named = ["job.fio:11: startdelay=5: ", "job.fio:12: ioengine=mmap: "];
    line(&words, &target).code(1).says(&named);
    fs::write(&job, JOB).expect("writing a file");
    for (words, code, said) in [
        (format!("{file}"), 2, "name the target too"),
        (format!("{file} {} @", second.display()), 2, "two workloads"),
        (format!("{file} @ --workload {}", second.display()), 2, "two workloads"),
        (format!("{file} @ --depth 8"), 1, "describes the whole workload"),
    ] {
        line(&format!("measure run {words}"), &target).code(code).says(&[said]);
    }
    assert!(!target.exists(), "nothing was made");
    assert_eq!(fs::read_to_string(&job).expect("it is there"), JOB);
}

#[test]
fn runs_in_the_same_second_get_folders_of_their_own() {
    let folder = scratch();
    let one = |_| {
        let mut program = longtake();
        program.args("measure run sim:ideal --read 1 --for 10ms --interval 10ms --json".split(' '));
        run(program.current_dir(folder.path())).code(0).json()["folder"].to_string()
    };
    let folders: BTreeSet<String> = (0..4).map(one).collect();
    assert_eq!(folders.len(), 4, "{folders:?}");
}

#[test]
fn what_is_not_fios_is_refused_and_leaves_no_results() {
    let folder = scratch();
    let output = new_in(&folder, "results");
    for (text, said) in [
        ("fio: nothing to do\n", "--output-format=json+"),
        ("{\"fio version\": \"fio-3.33\", \"jobs\": [", "fio.json"),
        ("{\"something\": \"else\"}", "fio.json"),
    ] {
        let file = new_in(&folder, "fio.json");
        fs::write(&file, text).expect("writing a file");
        let words = format!("measure import @ --output {}", output.display());
        line(&words, &file).code(1).says(&[said]);
        assert!(!output.exists(), "{text}");
    }
    let words = format!("measure import @ --output {}", output.display());
    line(&words, &new_in(&folder, "none")).code(1).says(&["none", "No such file"]);
    assert!(!output.exists());
}
