//! Recorded traces are replayed with the counts of those who recorded them, on drives, files and simulated drives.

use std::fs;
use std::path::Path;

use crate::harness::{Ran, line, longtake, new_in, ran, run, scratch, tool};
use crate::measure_rig::{LoopDevice, MIB};
use crate::trace_recorder::recorded;
use serde_json::Value;
use tempfile::TempDir;

/// A trace of MSR Cambridge's form: a write, a read of another disk, and two reads, 10 ms apart, the last one not in whole blocks.
const MSR: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
    128166372000000000,usr,0,Write,65536,8192,100\n\
    128166372000050000,usr,1,Read,0,4096,100\n\
    128166372000100000,usr,0,Read,4096,4096,100\n\
    128166372000200000,usr,0,Read,100663300,512,100\n";

/// Count and bytes of a direction on a target.
fn moved(ran: &Ran, target: usize, operation: &str) -> (u64, u64) {
    let json = ran.json();
    let results = &json["targets"][target]["step"]["measurement"]["results"];
    let all = results.as_array().expect("a list of results").iter();
    let number = |result: &Value, key: &str| result[key].as_u64().expect("a number");
    all.filter(|result| result["operation"] == operation).fold((0, 0), |sum, result| {
        (sum.0 + number(result, "count"), sum.1 + number(result, "bytes"))
    })
}

/// `longtake measure replay` with these words, run in a folder; `@` stands for the folder.
fn replay(words: &str, folder: &TempDir) -> Ran {
    let mut program = longtake();
    let path = folder.path().to_str().expect("a scratch path is text");
    let words = words.split_whitespace().map(|word| word.replace('@', path));
    run(program.args(["measure", "replay"]).args(words).current_dir(folder.path()))
}

/// The same on a real device. Whether this machine kept up with it, or is said not to have by an exit code of 3, isn't what is tested.
fn replay_on_device(words: &str, folder: &TempDir) -> Ran {
    let ran = replay(words, folder);
    let code = if ran.is_code(3) { 3 } else { 0 };
    ran.code(code)
}

fn write(folder: &TempDir, name: &str, text: &str) {
    fs::write(folder.path().join(name), text).expect("there is space");
}

#[test]
fn what_the_kernel_recorded_of_a_loop_device_is_replayed_whole() {
    let folder = scratch();
    let device = LoopDevice::new(64 * MIB);
    let job = [
        "--name=job",
        "--rw=randrw",
        "--bs=4k-64k",
        "--size=32m",
        "--io_size=8m",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=8",
        "--fsync=64",
        "--output-format=json",
    ];
    let mut theirs = Value::Null;
    recorded(&device, folder.path(), || {
        let mut fio = tool("fio", "fio");
        fio.args(job).arg(format!("--filename={}", device.text()));
        theirs = run(&mut fio).code(0).json();
    });
    // What blkparse finds in the same files: queue events that move bytes, by direction, and flushes.
    let mut blkparse = tool("blkparse", "blktrace");
    blkparse.args(["-q", "-f", "%a %d %N\\n", "-i", "trace"]).current_dir(folder.path());
    let parsed = run(&mut blkparse).code(0).text();
    let mut found = [(0, 0), (0, 0), (0, 0)];
    for event in parsed.lines() {
        if let [action, kind, bytes] = event.split_whitespace().collect::<Vec<_>>().as_slice()
            && *action == "Q"
        {
            let bytes: u64 = bytes.parse().expect("a number of bytes");
            let place = if bytes == 0 { 2 } else { usize::from(kind.contains('W')) };
            found[place] = (found[place].0 + 1, found[place].1 + bytes);
        }
    }
    let [reads, writes, (flushes, _)] = found;
    let fio = |direction: &str| {
        let job = &theirs["jobs"][0][direction];
        (job["total_ios"].as_u64().unwrap(), job["io_bytes"].as_u64().unwrap())
    };
    assert_eq!((reads, writes), (fio("read"), fio("write")), "blkparse sees what fio did");
    assert!(reads.0 > 0 && writes.0 > 0 && flushes > 0, "{found:?}");

    let onto = LoopDevice::new(64 * MIB);
    let words = format!("trace.blktrace.0 {} sim:ideal --json -o out", onto.text());
    replay(&words, &folder).code(1).says(&["nothing was written", "--erase"]);
    assert_eq!(onto.written(), 0);
    let words = format!("{words} --speed 20 --erase {}", onto.text());
    let ran = replay_on_device(&words, &folder);
    for target in 0..2 {
        assert_eq!(moved(&ran, target, "read"), reads);
        assert_eq!(moved(&ran, target, "write"), writes);
    }
    assert_eq!((onto.read() >= reads.1, onto.written()), (true, writes.1));
    let summary = &ran.json()["trace"];
    assert_eq!(summary["left_out"]["flushes"], flushes);
    assert_eq!((&summary["format"], &summary["events"]), (&"blktrace".into(), &"queue".into()));
}

#[test]
fn a_log_that_fio_wrote_is_replayed_with_its_counts() {
    let folder = scratch();
    let mut fio = tool("fio", "fio");
    fio.args([
        "--name=job",
        "--filename=file",
        "--size=4m",
        "--rw=randrw",
        "--bs=4k",
        "--ioengine=psync",
    ]);
    fio.args(["--write_iolog=log", "--output-format=json"]).current_dir(folder.path());
    let theirs = run(&mut fio).code(0).json();
    for words in ["log sim:ideal --json -o timed", "log sim:ideal --json -o fast --asap --depth 4"]
    {
        let ran = replay(words, &folder).code(0);
        for direction in ["read", "write"] {
            let job = &theirs["jobs"][0][direction];
            let counted = (job["total_ios"].as_u64().unwrap(), job["io_bytes"].as_u64().unwrap());
            assert_eq!(moved(&ran, 0, direction), counted);
        }
    }
}

#[test]
fn the_same_trace_on_the_same_simulated_drive_gives_the_same_bytes() {
    let once = || {
        let folder = scratch();
        write(&folder, "usr_0.csv", MSR);
        replay("usr_0.csv sim:patriot-hellfire-240gb:full --json -o out", &folder).code(0).stdout
    };
    let first = once();
    assert_eq!(first, once());
    let json: Value = serde_json::from_slice(&first).expect("it is JSON");
    let measured = &json["targets"][0]["step"]["measurement"];
    assert_eq!(
        (measured["started_ns"].is_null(), &json["targets"][0]["fitted"]["widened"]),
        (true, &1.into())
    );
    assert!(measured["elapsed_ns"].as_u64().unwrap() >= 20_000_000, "the recorded times are kept");
}

#[test]
fn targets_stand_below_each_other_and_what_is_left_out_is_named() {
    let folder = scratch();
    write(&folder, "usr_0.csv", MSR);
    // A new file has room for the whole trace.
    let ran = replay_on_device("usr_0.csv drive.bin sim:ideal -q -o out", &folder);
    let ran = ran.says(&[
        "MSR Cambridge CSV",
        "device usr_0: 2 reads",
        "left out: 1 request of 1 other device",
    ]);
    let file = fs::metadata(folder.path().join("drive.bin")).expect("it was made").len();
    assert_eq!(
        file,
        100_663_300_u64.next_multiple_of(4096).max(100_663_812_u64.next_multiple_of(4096))
    );
    let text = ran.text();
    let heads: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(
        heads[0] == "target" && heads.contains(&"drive.bin") && heads.contains(&"sim:ideal"),
        "{text}"
    );
    assert!(text.contains("sim:ideal: 1 request widened to whole blocks"), "{text}");
    line("report @/out -y -o @/page.html", folder.path()).code(0);
    // A target that has results is not measured again.
    let again = replay_on_device("usr_0.csv drive.bin sim:ideal -q -o out --resume", &folder);
    assert_eq!(again.text(), text);
}

#[test]
fn what_a_trace_would_overwrite_or_cannot_reach_is_refused_with_the_remedy() {
    let folder = scratch();
    write(&folder, "usr_0.csv", MSR);
    write(&folder, "precious.bin", &"x".repeat(1 << 20));
    let refused =
        |words: &str, code: i32, says: &[&str]| replay(words, &folder).code(code).says(says);
    refused("usr_0.csv precious.bin", 1, &["reaches to", "ends at 1.05 MB", "--wrap"]);
    refused("usr_0.csv precious.bin --wrap -o out", 1, &["nothing was written", "--erase"]);
    refused("usr_0.csv sim:ideal*2", 1, &["is 2 drives", "raid0:"]);
    refused("usr_0.csv sim:ideal --device usr_7", 1, &["name one of usr_0, usr_1"]);
    refused("usr_0.csv precious.bin --threads 2", 1, &["leave out --threads"]);
    refused("usr_0.csv sim:ideal --speed 0", 2, &["above 0"]);
    refused(
        "usr_0.csv sim:ideal --format iolog",
        1,
        &["usr_0.csv, line 1: it must be 'fio version"],
    );
    refused("missing sim:ideal", 1, &["opening the trace missing failed"]);
    let dry = refused(
        "usr_0.csv precious.bin --wrap --dry-run",
        0,
        &["writes up to 8.19 kB", "would be refused"],
    );
    assert_eq!(dry.text(), "dry run: nothing was done\n");
    let read =
        replay_on_device("usr_0.csv precious.bin --wrap --reads-only --json -o out", &folder);
    assert_eq!(moved(&read, 0, "write"), (0, 0));
    assert_eq!(read.json()["trace"]["left_out"]["writes"], 1);
    let kept = fs::read(folder.path().join("precious.bin")).expect("it is there");
    assert!(kept.iter().all(|&byte| byte == b'x'), "nothing was written");
    let names = |path: &Path| fs::read_dir(path).expect("it is there").count();
    assert_eq!(names(folder.path()), 3, "the trace, the file, and the results of the reads");
}

#[test]
fn a_target_is_preconditioned_before_the_trace_and_only_with_permission() {
    let folder = scratch();
    write(&folder, "usr_0.csv", MSR);
    let drive = LoopDevice::new(64 * MIB);
    // A trace of reads writes the target all the same.
    let words = format!("usr_0.csv {} --wrap --reads-only -o out --json", drive.text());
    replay(&format!("{words} --precondition"), &folder)
        .code(1)
        .says(&["nothing was written", "--erase"]);
    assert_eq!(drive.written(), 0);
    let dry = replay(&format!("{words} --precondition=25 --dry-run"), &folder).code(0).json();
    assert_eq!(
        dry["targets"][0]["cost"]["written_bytes"],
        64 * MIB,
        "once, as nothing is written over"
    );
    let permitted = format!("--erase {}", drive.text());
    let read = replay_on_device(&format!("{words} --precondition=25 {permitted}"), &folder).json();
    assert_eq!(
        (drive.written(), &read["targets"][0]["preconditioned"]["written_bytes"]),
        (64 * MIB, &(64 * MIB).into())
    );

    let words = format!("usr_0.csv {} sim:ideal --wrap --precondition=25 -o two", drive.text());
    let before = drive.written();
    let ran = replay_on_device(&format!("{words} {permitted} --json"), &folder).json();
    // As often as there is flash, and the trace's one write.
    assert_eq!(drive.written() - before, 80 * MIB + 8192);
    for target in ran["targets"].as_array().expect("two targets") {
        let done = &target["preconditioned"];
        assert_eq!((&done["block_bytes"], &done["spare_percent"]), (&8192.into(), &25.0.into()));
    }
    let simulated = &ran["targets"][1];
    assert_eq!(
        (&simulated["simulated"], &simulated["preconditioned"]["notes"]),
        (&true.into(), &serde_json::json!([]))
    );
    let text = replay_on_device(&format!("{words} {permitted} --resume -q"), &folder).text();
    assert!(
        text.contains("written before the trace in blocks of 8.19 kB, for 25.0 % spare flash"),
        "{text}"
    );
    replay("usr_0.csv sim:ideal --precondition=-3", &folder).code(2).says(&["give 0 to 1000"]);
}

#[test]
fn a_trace_comes_from_a_pipe_and_a_damaged_one_is_named() {
    let folder = scratch();
    write(&folder, "usr_0.csv", MSR);
    write(&folder, "cut.csv", &MSR[..MSR.len() - 12]);
    let program = longtake();
    let mut shell = tool("bash", "bash");
    let program = program.get_program().to_str().expect("its path is text").to_owned();
    shell.args(["-c", &format!("cat usr_0.csv | {program} measure replay - sim:ideal --json -q")]);
    let piped = run(shell.current_dir(folder.path())).code(0);
    assert_eq!(moved(&piped, 0, "read"), (2, 8192));
    replay("cut.csv sim:ideal", &folder)
        .code(1)
        .says(&["cut.csv, line 5: it has", "correct the line"]);
    let help = ran(["measure", "replay", "--help"]).code(0).text();
    assert!(new_in(&folder, "out").symlink_metadata().is_err() && help.contains("--asap"));
}
