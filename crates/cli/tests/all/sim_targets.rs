//! Simulated drives wherever a command takes drives: named, refused with reasons, measured, listed, recorded on.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Ran, new_in, number, ran, scratch, unbroken};
use serde_json::Value;
use tempfile::TempDir;

/// What is said of a name that means nothing, or not to this command.
const OF_NAMES: [&str; 6] = [
    "is simulated and",
    "a striped set",
    "name its members",
    "other targets",
    "there are no",
    "multiple of 512 bytes",
];

/// A drive of 1 GiB with two namespaces in NVM Sets of their own, small enough to be filled in a moment.
const TWO_SETS: &str = r#"
name = "two-sets"
model = "Example with two sets"
kind = "nvme"
capacity_bytes = 1073741824

[simulated.controller]
read_us = 10.0
write_us = 8.0
read_iops = 500000.0
write_iops = 400000.0
depth = 256

[simulated.link]
generation = 3
lanes = 4
efficiency = 0.9

[simulated.buffer]
bytes = "16 MiB"
protected = false

[simulated.flash]
channels = 4
dies_per_channel = 2
planes = 2
page_bytes = 16384
pages_per_block = 48
pages_per_program = 3
read_us = 50.0
program_us = 600.0
erase_us = 3000.0
channel_mb_s = 800.0
suspend_us = 20.0

[simulated.mapping]
over_provisioning = 0.3

[simulated.sets]
layout = "vertical"
count = 2
namespaces = [{ share = 0.5, sets = [0] }, { share = 0.5, sets = [1] }]

[simulated.endurance]
cycles = 3000
"#;

/// The small drive's file in the folder.
fn drive(folder: &TempDir) -> PathBuf {
    let path = new_in(folder, "two-sets.toml");
    fs::write(&path, TWO_SETS).unwrap();
    path
}

/// A command line in which DRIVE stands for the drive's file.
#[track_caller]
fn command(arguments: &str, drive: &Path) -> Ran {
    let path = drive.to_str().expect("a scratch path is text");
    ran(arguments.split_whitespace().map(|word| word.replace("DRIVE", path)))
}

/// A command with `--json`, which must end well.
#[track_caller]
fn asked(arguments: &str, drive: &Path) -> Value {
    command(&format!("{arguments} --json"), drive).code(0).json()
}

/// What a workload came to.
fn measured(arguments: &str, drive: &Path, output: &Path) -> Value {
    let arguments = format!("measure run {arguments} --output {}", output.display());
    let mut step = asked(&arguments, drive)["step"]["measurement"].take();
    // The calendar is the only thing that differs.
    step["started_ns"] = Value::Null;
    step
}

#[test]
fn a_target_that_can_not_be_is_refused_with_what_could() {
    let folder = scratch();
    let drive = drive(&folder);
    for (target, words) in [
        ("sim:ideall", &["no drive 'ideall'", "did you mean 'ideal'"][..]),
        ("sim:", &["names no drive"]),
        ("sim:ideal:fresh", &["':fresh'", ":full, :overwritten or :random"]),
        ("sim:ideal@2", &["the drive has 1 namespace"]),
        ("sim:DRIVE@3", &["the drive has 2 namespaces"]),
        ("sim:DRIVE*0", &["from 1 to 1024"]),
        ("sim:/nowhere/to/be/found.toml", &["reading the drive /nowhere", "No such file"]),
        ("sim:ideal sim:ideal", &["name the same drive", "give sim:ideal*2"]),
        ("sim:DRIVE@1 sim:DRIVE@1", &["is named twice"]),
        ("sim:DRIVE@1 sim:DRIVE:full@2", &["begins in one way"]),
        ("sim:ideal /dev/null", &["sim:ideal is simulated and /dev/null is not"]),
        ("sim:ideal --threads 2", &["--threads", "one thread: leave it out"]),
        ("sim:ideal --poll", &["--poll"]),
        ("sim:ideal --uplink 7", &["--uplink"]),
    ] {
        let ran = command(&format!("measure run {target} --for 1s"), &drive);
        assert!(ran.code == 1 || ran.code == 2, "{target}: {ran:?}");
        ran.says(words);
    }
    let file = new_in(&folder, "file");
    command("measure run DRIVE --write 1 --uplink 7GB/s", &file)
        .code(1)
        .says(&["--uplink is for simulated"]);
    assert!(!file.exists(), "nothing was made");
    let wrong = new_in(&folder, "wrong.toml");
    fs::write(&wrong, TWO_SETS.replace("channels = 4", "channels = 0")).unwrap();
    command("measure run sim:DRIVE", &wrong).code(1).says(&["wrong.toml", "flash.channels"]);
}

#[test]
fn the_same_command_gets_the_same_drive_and_the_same_result() {
    let folder = scratch();
    let drive = drive(&folder);
    let run = |arguments: &str, name: &str| {
        measured(&format!("sim:DRIVE{arguments} --size 64MiB"), &drive, &new_in(&folder, name))
    };
    let mixed = " --read 1 --write 1 --pattern random --block 4KiB --depth 8 --for 200ms";
    let first = run(mixed, "first");
    assert_eq!(first, run(mixed, "second"));
    assert!(number(&first["results"][0], "count") > 1000, "{}", first["results"]);
    let name = |at: usize| first["drives"][at].as_str().unwrap().to_owned();
    assert!(name(0).ends_with("two-sets.toml@1") && name(1).ends_with("two-sets.toml@2"));
    let rate = |measured: &Value| measured["results"][0]["bytes_per_s"].as_f64().unwrap();
    let reads = " --block 128KiB --depth 16 --for 100ms";
    let full = run(&format!(":full{reads}"), "full");
    // Reading what was never written costs no flash, only the link.
    assert!(rate(&full) < rate(&run(reads, "empty")));
    let narrow = rate(&run(&format!(":full{reads} --uplink 200MB/s"), "narrow"));
    assert!((narrow / 200e6 - 1.0).abs() < 0.05, "{narrow}");
}

#[test]
fn write_amplification_is_printed_kept_and_exported() {
    let folder = scratch();
    let drive = drive(&folder);
    let scattered = "measure run sim:DRIVE:random@1 --write 1 --pattern random --block 4KiB \
                     --depth 8 --bytes 256MiB --output";
    let (kept, shown) = (new_in(&folder, "kept"), new_in(&folder, "shown"));
    let step = asked(&format!("{scattered} {}", kept.display()), &drive)["step"].take();
    let known = &step["counters"]["written"]["known"];
    let (host, media) = (number(known, "host_bytes"), number(known, "media_bytes"));
    assert_eq!(host, 256 << 20, "{known}");
    assert!(media > host + host / 2, "a drive written over at random copies: {known}");
    let amplification = known["amplification"].as_f64().unwrap();
    assert!((amplification - media as f64 / host as f64).abs() < 1e-9, "{known}");
    let text = command(&format!("{scattered} {}", shown.display()), &drive).code(0).text();
    let line = format!("write amplification: {amplification:.3} (host 268 MB, media ");
    assert!(text.contains(&line), "{line} in\n{text}");

    let (page, tables) = (new_in(&folder, "report.html"), new_in(&folder, "tables"));
    let exports =
        format!("report {} --output {} --csv {}", kept.display(), page.display(), tables.display());
    command(&exports, &drive).code(0);
    assert!(fs::read_to_string(page).unwrap().contains("write amplification"));
    let figures = fs::read_to_string(tables.join("figures.csv")).unwrap();
    let row = figures.lines().find(|line| line.contains("run.workload.write_amplification"));
    assert!(row.is_some_and(|row| row.contains(&amplification.to_string())), "{figures}");
}

#[test]
fn what_is_written_is_read_back_and_found_right() {
    let folder = scratch();
    let (drive, output) = (drive(&folder), new_in(&folder, "out"));
    let arguments = "sim:DRIVE*2 --write 3 --read 1 --pattern random --block 4KiB:1,64KiB:1 --size 8MiB --depth 8 --bytes 64MiB --verify";
    let measured = measured(arguments, &drive, &output);
    let found = &measured["verification"];
    assert!(number(found, "checked_bytes") > 16 << 20, "{found}");
    assert_eq!(number(found, "wrong_sectors"), 0, "{found}");
    assert_eq!(measured["drives"].as_array().map(Vec::len), Some(4));
}

#[test]
fn an_experiment_on_a_simulated_drive_ends_in_profile_and_report() {
    let folder = scratch();
    let (drive, output) = (drive(&folder), new_in(&folder, "out"));
    let arguments = format!("measure fill sim:DRIVE@1 --output {} --json", output.display());
    let ran = command(&arguments, &drive);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.says(&["simulated: writes up to", "of virtual time", "nothing real is touched"]);
    let run: Value = serde_json::from_slice(&fs::read(output.join("run.json")).unwrap()).unwrap();
    let subject = &run["subjects"][0];
    assert_eq!(subject["kind"], "simulated");
    assert_eq!(subject["model"], "Example with two sets");
    assert!(subject["serial"].as_str().unwrap().starts_with("SIM-"), "{subject}");
    assert_eq!(number(subject, "capacity_bytes"), 1 << 29);
    let profile = fs::read_to_string(output.join("profile.toml")).unwrap();
    assert!(profile.contains("kind = \"simulated\""), "{profile}");
    assert!(
        fs::read_to_string(output.join("report.html")).unwrap().contains("Example with two sets")
    );
}

#[test]
fn going_on_simulates_again_what_was_done_because_the_drive_begins_anew() {
    let folder = scratch();
    let (drive, output) = (drive(&folder), new_in(&folder, "out"));
    let arguments = format!(
        "measure link sim:DRIVE --point 50ms --size 64MiB --quiet --output {}",
        output.display()
    );
    command(&arguments, &drive).code(0);
    let results = |name: &str| {
        let mut result: Value =
            serde_json::from_slice(&fs::read(output.join(name)).unwrap()).unwrap();
        result["started_ns"] = Value::Null;
        result
    };
    let before = results("link/result.json");
    let steps = fs::read_dir(output.join("link")).unwrap().count();
    // As if the command had been ended in the middle.
    fs::remove_file(output.join("link/result.json")).unwrap();
    fs::remove_file(output.join("link/random-read-4KiB-depth32.json")).unwrap();
    command(&format!("{arguments} --resume"), &drive).code(0);
    assert_eq!(results("link/result.json"), before);
    assert_eq!(fs::read_dir(output.join("link")).unwrap().count(), steps);
    let other = format!("measure link sim:ideal --output {} --resume", output.display());
    command(&other, &drive).code(1).says(&["are of other drives"]);
}

#[test]
fn namespaces_in_sets_of_their_own_are_neighbours_that_share_less() {
    let folder = scratch();
    let (drive, output) = (drive(&folder), new_in(&folder, "out"));
    let arguments = format!(
        "measure neighbours sim:DRIVE@1 sim:DRIVE@2 --point 100ms --size 64MiB --output {}",
        output.display()
    );
    command(&arguments, &drive).code(0);
    let result: Value =
        serde_json::from_slice(&fs::read(output.join("neighbours/result.json")).unwrap()).unwrap();
    let relations: Vec<_> =
        result["beside"].as_array().unwrap().iter().map(|b| b["relation"].clone()).collect();
    assert_eq!(relations, ["same", "other-set"]);
}

#[test]
fn reads_in_deterministic_windows_meet_no_housekeeping() {
    let folder = scratch();
    let path = new_in(&folder, "windows.toml");
    let windows = "[simulated.predictable]\nreads = 200000\nwrites = 200\nlongest_ms = 2000.0\nrecovery_ms = 3000.0\n";
    fs::write(&path, format!("{TWO_SETS}\n{windows}")).unwrap();
    let tail = |name: &str, options: &str| {
        let output = new_in(&folder, name);
        let arguments = format!(
            "measure neighbours sim:DRIVE@1 --overwrite random --rate 20MB/s --depth 1 --point 1s --output {} {options}",
            output.display()
        );
        let text = unbroken(&command(&arguments, &path).code(0).text());
        let result = fs::read(output.join("neighbours/result.json")).unwrap();
        let result: Value = serde_json::from_slice(&result).unwrap();
        assert_eq!(result["notes"].as_array().map(Vec::len), Some(0), "{result}");
        let percentiles = &result["beside"][0]["points"][0]["response"]["percentiles"];
        let p99 = percentiles.as_array().unwrap().iter().find(|pair| pair[0] == 99.0).unwrap();
        (p99[1].as_f64().unwrap(), text)
    };
    let (usual, _) = tail("usual", "");
    let (inside, text) = tail("inside", "--deterministic");
    assert!(text.contains("measured in deterministic windows"), "{text}");
    assert!(inside < usual, "{inside} ns in a window, {usual} without");
    // One that is too short is named, and a drive without any is refused.
    let short = windows.replace("2000.0", "500.0");
    fs::write(&path, format!("{TWO_SETS}\n{short}")).unwrap();
    let arguments = |name: &str| {
        let output = new_in(&folder, name);
        format!(
            "measure neighbours sim:DRIVE@1 --depth 1 --point 1s --size 64MiB --deterministic --output {}",
            output.display()
        )
    };
    let text = unbroken(&command(&arguments("short"), &path).code(0).text());
    assert!(text.contains("the deterministic window ended before the point did"), "{text}");
    command(&arguments("refused"), &drive(&folder))
        .code(1)
        .says(&["no deterministic windows", "[simulated.predictable]"]);
}

#[test]
fn a_dry_run_says_what_would_be_done_and_makes_nothing() {
    let folder = scratch();
    let (drive, output) = (drive(&folder), new_in(&folder, "out"));
    let told =
        asked(&format!("measure all sim:DRIVE --dry-run --output {}", output.display()), &drive);
    assert!(told["experiments"].as_array().is_some_and(|all| all.len() == 10), "{told}");
    assert!(told["notes"][0].as_str().unwrap().starts_with("simulated: "), "{told}");
    assert!(!output.exists());
}

#[test]
fn a_simulated_drive_is_listed_like_a_real_one() {
    let folder = scratch();
    let drive = drive(&folder);
    let text = command("drives sim:DRIVE", &drive).code(0).text();
    for words in ["Example with two sets", "SIM-", "PCIe 3.0 x4", "NVM Set", "yes: it is simulated"]
    {
        assert!(text.contains(words), "{words} in\n{text}");
    }
    let listed = asked("drives sim:DRIVE", &drive);
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    assert_eq!(listed[0]["simulated"], true);
    assert_eq!(listed[1]["writable"], true);
    assert_eq!(number(&listed[1], "drive.size_bytes"), 1 << 29);
    command("drives sim:DRIVE /dev/null", &drive)
        .code(2)
        .says(&["is simulated and /dev/null is not"]);
}

#[test]
fn a_recording_on_simulated_drives_loses_nothing_they_can_keep_up_with() {
    let folder = scratch();
    let drive = drive(&folder);
    let arguments = "record --from synthetic:200MB/s,queues=2 --for 2s --to sim:DRIVE:random*2 --memory 32MiB --json";
    let events = |arguments: &str| -> Vec<Value> {
        let ran = command(arguments, &drive).code(0);
        ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = events(arguments);
    let find = |all: &[Value], name: &str| all.iter().find(|e| e["event"] == name).unwrap().clone();
    let finished = find(&all, "finished");
    assert_eq!(finished["simulated"], true);
    assert_eq!(finished["ledger"]["balances"], true);
    assert_eq!(finished["ledger"]["offered"], finished["ledger"]["stored"]);
    let stored = number(&finished, "ledger.stored.bytes") as f64;
    assert!((stored / 400e6 - 1.0).abs() < 0.01, "{stored}");
    let read_back = find(&all, "read_back");
    assert!(number(&read_back, "chunks") > 90 && number(&read_back, "damaged") == 0, "{read_back}");
    // The same again comes out the same, but for names and the calendar.
    let again = find(&events(arguments), "finished");
    for same in ["after_s", "written", "ledger", "buffers_most"] {
        assert_eq!(finished[same], again[same], "{same}");
    }
}

#[test]
fn a_recording_that_is_too_fast_loses_by_name_what_found_no_buffer() {
    let folder = scratch();
    let drive = drive(&folder);
    let arguments =
        "record --from synthetic:20GB/s --for 50ms --to sim:DRIVE --memory 32MiB --json";
    let ran = command(arguments, &drive).code(3);
    let text = ran.text();
    let finished = text.lines().find(|line| line.contains("\"finished\"")).unwrap();
    let finished: Value = serde_json::from_str(finished).unwrap();
    let ledger = &finished["ledger"];
    assert_eq!(ledger["balances"], true);
    assert!(number(ledger, "lost.no_buffer.packets") > 0, "{ledger}");
    let offered = number(ledger, "offered.bytes") as f64;
    assert!((offered / 1e9 - 1.0).abs() < 0.02, "{offered}");
}

#[test]
fn a_source_that_waits_is_recorded_as_fast_as_the_drives_take_it() {
    let folder = scratch();
    let drive = drive(&folder);
    let text = command("record --from synthetic:max --until-bytes 100MB --to sim:DRIVE", &drive)
        .code(0)
        .text();
    for words in [
        "of virtual time",
        "balanced: offered = stored + filtered + lost",
        "0 damaged",
        "discarded when this command ends",
    ] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
    assert!(!text.contains("extract it"), "{text}");
}

#[test]
fn what_needs_real_time_or_an_array_from_before_is_refused_with_the_reason() {
    let folder = scratch();
    let drive = drive(&folder);
    for (arguments, words) in [
        (
            "record --from udp:127.0.0.1:9 --to sim:DRIVE",
            &["UDP lives in real time", "synthetic source"][..],
        ),
        ("record --from if:lo --to sim:DRIVE", &["an interface lives in real time"]),
        (
            "record --from synthetic:1MB/s --for 1s --to sim:DRIVE,/tmp/x",
            &["is simulated and /tmp/x is not"],
        ),
        (
            "record --from synthetic:1MB/s --to /tmp/x --uplink 1GB/s",
            &["--uplink is for simulated"],
        ),
        (
            "record --from synthetic:max --to sim:samsung-970-evo-plus-1tb*8",
            &["keep in memory", "--until-bytes"],
        ),
        ("takes sim:DRIVE", &["creates its simulated drives empty"]),
        ("ledger sim:DRIVE", &["creates its simulated drives empty"]),
        ("extract sim:DRIVE -o /tmp/x.pcapng", &["creates its simulated drives empty"]),
        ("array show sim:DRIVE", &["creates its simulated drives empty"]),
        ("array check sim:DRIVE", &["creates its simulated drives empty"]),
        ("array create sim:DRIVE", &["exist only while a command runs"]),
        (
            "record --from synthetic:1MB/s --for 1s --to raid0:sim:DRIVE*2 --members 2",
            &["raid0:sim:", "is a striped set, which only `longtake measure` takes", "--parity"],
        ),
        ("record --from synthetic:1MB/s --to raid5:/tmp/a,/tmp/b,/tmp/c", &["name its members"]),
        ("array create raid0:/tmp/a,/tmp/b", &["name its members"]),
        ("extract raid0:sim:DRIVE*2 -o /tmp/x.pcapng", &["name its members"]),
        ("drives raid6:sim:DRIVE*4", &["name its members"]),
        ("measure fill raid5:sim:DRIVE", &["raid5 needs 3 drives or more, not 2"]),
        ("measure fill raid0:sim:DRIVE*2 sim:ideal", &["leave out the other targets"]),
        ("measure fill raid0:sim:DRIVE*2,stripe=8", &["multiple of 512 bytes"]),
        ("measure fill raid10:sim:DRIVE*2", &["there are no 'raid10:' targets"]),
        ("measure link raid0:sim:DRIVE*2 --sweep", &["as many as drives"]),
        ("protect sim:DRIVE --since -1m --until -1s", &["creates its simulated drives empty"]),
    ] {
        // Names that mean nothing, or not to this command, are wrong arguments.
        let is_name = words.iter().any(|word| OF_NAMES.iter().any(|of| word.contains(of)));
        command(arguments, &drive).code(if is_name { 2 } else { 1 }).says(words);
    }
}
