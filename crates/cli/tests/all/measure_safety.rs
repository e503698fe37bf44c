//! Measuring writes nothing that nobody confirmed, and what is asked wrongly ends with a word of what would be right: nothing
//! written, no folder of results left behind.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::harness::{Ran, line, longtake, new_in, number, run, scratch, tool};
use crate::measure_rig::{LoopDevice, MIB, lines};
use serde_json::Value;
use tempfile::TempDir;

/// A file with something in it.
fn content(folder: &TempDir) -> PathBuf {
    let path = new_in(folder, "content");
    let bytes: Vec<u8> = (0..8 * MIB).map(|at| (at * 31 % 251) as u8).collect();
    fs::write(&path, bytes).expect("writing a file");
    path
}

/// `longtake measure` with these words in a folder of its own; `@` stands for the target.
#[track_caller]
fn measure(arguments: &str, target: &Path, folder: &TempDir) -> Ran {
    let target = target.to_str().expect("a scratch path is text");
    let words = arguments.split_whitespace().map(|word| word.replace('@', target));
    run(longtake().current_dir(folder.path()).arg("measure").args(words))
}

/// What is in the folder, by name.
fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).expect("reading a scratch folder");
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_file_with_something_in_it_is_refused_by_everything_that_writes() {
    let folder = scratch();
    let path = content(&folder);
    let before = fs::read(&path).expect("it is there");
    for words in [
        "run @ --write 1 --for 1s --output results",
        "run @ --trim 1 --for 1s --output results",
        "run @ --write 1 --for 1s --output results --erase somebody-else",
        "fill @ --output results",
        "snia @ --output results",
        "diskmark @ --output results",
        "all @ --time 20s --output results",
        "stream @ --output results/of/today",
    ] {
        measure(words, &path, &folder).code(1).says(&[
            "nothing was written",
            "is not empty",
            "--erase",
        ]);
        assert_eq!(names(&folder), ["content"], "{words}");
    }
    assert!(fs::read(&path).expect("it is there") == before, "it was changed");
}

#[test]
fn a_file_that_a_measurement_made_is_used_again_until_somebody_writes_to_it() {
    let folder = scratch();
    let path = folder.path().join("made");
    let words = "run @ --size 8MiB --write 1 --bytes 8MiB --output";
    measure(&format!("{words} first"), &path, &folder).code(0).says(&["making"]);
    let reused = "writing over";
    measure(&format!("{words} second"), &path, &folder)
        .code(0)
        .says(&[reused, "earlier measurement"]);
    // One that only reads leaves the mark as it is.
    measure("run @ --for 100ms --output third", &path, &folder).code(0);
    measure(&format!("{words} fourth"), &path, &folder).code(0).says(&[reused]);
    let mut file = fs::File::options().write(true).open(&path).expect("it is there");
    file.write_all(b"mine").expect("writing to it");
    drop(file);
    measure(&format!("{words} fifth"), &path, &folder).code(1).says(&["is not empty", "--erase"]);
    assert_eq!(fs::read(&path).expect("it is there")[..4], *b"mine");
}

#[test]
fn the_members_of_a_striped_set_are_refused_for_what_each_would_be_refused_for() {
    let folder = scratch();
    let path = content(&folder);
    let before = fs::read(&path).expect("it is there");
    for (words, said) in [
        ("run raid0:new,@ --write 1 --for 1s --output results", "is not empty"),
        ("mix raid5:new,other,@ --output results", "is not empty"),
        ("fill raid0:@,./content --output results", "a member already"),
        ("run raid0:new,@ --write 1 --for 1s --output results --erase new", "is not empty"),
    ] {
        // A name that can't be is a wrong argument.
        let code = if said == "a member already" { 2 } else { 1 };
        measure(words, &path, &folder).code(code).says(&[said]);
        assert_eq!(names(&folder), ["content"], "{words}");
    }
    let device = LoopDevice::new(64 * MIB);
    let words = "run raid6:a,b,c,@ --write 1 --for 1s --output results";
    // What parity costs is part of the cost.
    measure(words, &device.path, &folder).code(1).says(&[
        "parity: up to",
        "share of its life",
        "nothing was written",
        "--erase",
    ]);
    assert_eq!((names(&folder), device.written()), (vec!["content".to_owned()], 0));
    assert!(fs::read(&path).expect("it is there") == before, "it was changed");
}

/// A mounted file system, unmounted at the end.
struct Mounted(TempDir);

impl Drop for Mounted {
    fn drop(&mut self) {
        tool("umount", "mount").arg("--lazy").arg(self.0.path()).status().ok();
    }
}

#[test]
fn a_mounted_device_is_refused_even_when_its_erasing_is_confirmed() {
    let folder = scratch();
    let device = LoopDevice::new(64 * MIB);
    // All of it now: the kernel would go on with it later.
    let whole = "lazy_itable_init=0,lazy_journal_init=0";
    run(tool("mkfs.ext4", "e2fsprogs").args(["-q", "-E", whole]).arg(&device.path)).code(0);
    let point = Mounted(tempfile::tempdir().expect("making a scratch folder"));
    run(tool("mount", "mount").arg(&device.path).arg(point.0.path())).code(0);
    fs::write(point.0.path().join("kept"), "this").expect("writing a file");
    // The journal's own writes are over now.
    run(&mut tool("sync", "coreutils")).code(0);
    let written = device.written();
    let words = "run @ --write 1 --for 1s --output results --erase @";
    measure(words, &device.path, &folder).code(1).says(&["nothing was written", "mounted"]);
    assert!(names(&folder).is_empty());
    assert_eq!(device.written(), written);
    assert_eq!(fs::read(point.0.path().join("kept")).expect("it is there"), b"this");
}

#[test]
fn a_device_whose_serial_number_nobody_confirmed_is_refused_even_if_it_is_empty() {
    let folder = scratch();
    let device = LoopDevice::new(64 * MIB);
    for words in ["run @ --write 1 --for 1s --output results", "fill @ --output results"] {
        measure(words, &device.path, &folder).code(1).says(&[
            "writes up to",
            "takes about",
            "share of its life",
            "nothing was written",
            "--erase",
        ]);
        assert!(names(&folder).is_empty());
    }
    assert_eq!(device.written(), 0);
}

#[test]
fn what_only_reads_needs_no_confirmation_and_writes_nothing() {
    let folder = scratch();
    let device = LoopDevice::new(64 * MIB);
    fs::write(device.image(), vec![7; 64 << 20]).expect("writing an image");
    for (index, words) in [
        "run @ --for 300ms --json",
        "link @ --read-only --point 200ms --json",
        "steady @ --read-only --point 300ms --json",
        "mix @ --read-only --point 100ms --json",
    ]
    .into_iter()
    .enumerate()
    {
        let ran = measure(&format!("{words} --output r{index}"), &device.path, &folder).code(0);
        assert!(!lines_or_whole(&ran).is_empty());
    }
    assert_eq!(device.written(), 0);
    let image = fs::read(device.image()).expect("it is there");
    assert!(image.iter().all(|byte| *byte == 7), "it was changed");
}

/// JSON that was printed: one document, or one a line.
#[track_caller]
fn lines_or_whole(ran: &Ran) -> Vec<Value> {
    serde_json::from_slice(&ran.stdout).map_or_else(|_| lines(ran), |whole| vec![whole])
}

#[test]
fn reading_only_leaves_out_experiments_that_have_to_write() {
    let folder = scratch();
    // Nothing is in it, so that nothing else would keep it from being written.
    let path = new_in(&folder, "zeros");
    fs::File::create(&path).and_then(|file| file.set_len(64 * MIB)).expect("making a file");
    for experiment in ["fill", "snia", "apps"] {
        let words = format!("{experiment} @ --read-only --time 20s --output results");
        measure(&words, &path, &folder).code(1).says(&[experiment, "it must write", "--read-only"]);
    }
    let ran = measure("all @ --read-only --dry-run --json", &path, &folder).code(0);
    let stated = ran.json();
    assert_eq!(number(&stated, "cost.written_bytes"), 0);
    let left_out = stated["left_out"].as_array().expect("there is a list");
    assert!(left_out.iter().any(|left| left[0] == "fill"), "{left_out:?}");
    assert_eq!(names(&folder), ["zeros"]);
    assert!(fs::read(&path).expect("it is there").iter().all(|byte| *byte == 0), "written");
}

#[test]
fn a_dry_run_states_bytes_wear_and_time_and_does_nothing() {
    let folder = scratch();
    let device = LoopDevice::new(64 * MIB);
    for words in ["fill @ --dry-run", "run @ --write 1 --bytes 32MiB --dry-run"] {
        measure(words, &device.path, &folder).code(0).says(&[
            "writes up to",
            "takes about",
            "share of its life",
        ]);
        let stated = measure(&format!("{words} --json"), &device.path, &folder).code(0).json();
        assert!(number(&stated, "cost.written_bytes") >= 32 * MIB, "{stated:#}");
        assert!(number(&stated, "cost.time_ns") > 0);
        let notes = stated["notes"].as_array().expect("there is a list");
        let life = |note: &Value| note.as_str().is_some_and(|text| text.contains("its life"));
        assert!(notes.iter().any(life), "{notes:?}");
    }
    // A file that isn't there yet is not made.
    let new = measure("all @ --time 60s --dry-run", &new_in(&folder, "new"), &folder).code(0);
    new.says(&["would be made, a file of 4.29 GB"]);
    assert!(names(&folder).is_empty());
    assert_eq!(device.written(), 0);
}

#[test]
fn a_workload_that_can_not_be_is_refused_before_anything_is_made() {
    let folder = scratch();
    let target = new_in(&folder, "new");
    for (words, said) in [
        ("--write 1 --size 1MiB --block 2MiB", "block"),
        ("--write 1 --size 1MiB --from 3KB", "from"),
        ("--write 1 --size 64MiB --block 1GiB", "at once"),
        ("--write 1 --size 64MiB --depth 0", "depth"),
        ("--write 1 --size 64MiB --depth 100000", "depth"),
        ("--write 1 --size 64MiB --interval 0s", "interval"),
        ("--write 1 --size 64MiB --warm-up 1500us --interval 1ms", "warm_up"),
    ] {
        let words = format!("run @ --for 1s --output results {words}");
        measure(&words, &target, &folder).code(1).says(&[said]);
        assert!(names(&folder).is_empty(), "{words}: {:?}", names(&folder));
    }
    measure("run @ --write 1 --size 1MiB --for 0s --output results", &target, &folder)
        .code(1)
        .says(&["greater than 0"]);
    for words in ["--size 1ZB", "--rate 5", "--pattern zigzag", "--block 0", "--verify --content x"]
    {
        let words = format!("run @ --write 1 --output results {words}");
        measure(&words, &target, &folder).code(2).says(&["error:"]);
    }
    assert!(names(&folder).is_empty());
}

#[test]
fn a_wrong_workload_file_is_refused_with_the_line_that_is_wrong() {
    let folder = scratch();
    let path = new_in(&folder, "workload.toml");
    let text = "stop = { time = '1s' }\n[[stream]]\nread = 1\npatern = 'random'\n";
    fs::write(&path, text).expect("writing a file");
    let target = content(&folder);
    let words = format!("run @ --output results --workload {}", path.display());
    measure(&words, &target, &folder).code(1).says(&[
        "workload.toml is not a workload",
        "line 4",
        "patern",
        "pattern",
    ]);
    let words = "run @ --output results --workload none.toml";
    measure(words, &target, &folder).code(1).says(&["none.toml", "No such file"]);
    assert_eq!(names(&folder), ["content", "workload.toml"]);
}

#[test]
fn targets_that_are_none_are_named_with_what_would_be_one() {
    let folder = scratch();
    let none = new_in(&folder, "none");
    measure("run @ --for 1s --output results", &none, &folder).code(1).says(&["nothing to read"]);
    for words in ["run /dev/longtake-none --for 1s", "fill /dev/longtake-none"] {
        measure(&format!("{words} --output results"), &none, &folder)
            .code(1)
            .says(&["no such device", "longtake drives"]);
    }
    measure("run . --for 1s --output results", &none, &folder).code(1).says(&["is a directory"]);
    // The name of a drive that can be simulated is no new file.
    for words in ["run ideal --write 1 --for 1s", "fill ideal"] {
        measure(&format!("{words} --output results"), &none, &folder)
            .code(2)
            .says(&["sim:ideal", "./ideal"]);
    }
    let small = measure("fill sim:ideal --size 10 --output results", &none, &folder).code(2);
    small.says(&["--size 10 B", "1.05 MB or more", "bytes"]);
    line("measure run", &none).code(2).says(&["TARGETS"]);
    assert!(names(&folder).is_empty(), "{:?}", names(&folder));
}

#[test]
fn a_budget_in_which_nothing_fits_is_refused_with_what_each_would_take() {
    let folder = scratch();
    let target = new_in(&folder, "new");
    for (words, said) in [
        ("fill @ --write-budget 0", "budget of 0 B"),
        ("all @ --write-budget 0 --time 60s", "budget of"),
        ("all @ --time 1ms", "budget of time"),
        ("viewers @ --time 1ms", "budget of time"),
    ] {
        let words = format!("{words} --size 64MiB --output results");
        let ran = measure(&words, &target, &folder);
        if ran.code == 0 {
            // Reading alone fits into no bytes: then nothing was written.
            assert!(words.starts_with("all"), "{words}");
        } else {
            ran.code(1).says(&["fits the given limits", said]);
        }
        assert!(names(&folder).is_empty(), "{words}: {:?}", names(&folder));
    }
}

#[test]
fn a_folder_that_can_not_be_made_leaves_no_new_target_behind() {
    let folder = scratch();
    let target = new_in(&folder, "new");
    let words = "run @ --write 1 --for 1s --size 1MiB --output /proc/none/results";
    measure(words, &target, &folder).code(1).says(&["/proc/none/results"]);
    let words = "fill @ --size 1MiB --output /proc/none/results";
    measure(words, &target, &folder).code(1).says(&["/proc/none/results"]);
    assert!(names(&folder).is_empty());
}

#[test]
fn results_of_before_are_not_written_over() {
    let folder = scratch();
    let path = content(&folder);
    measure("run @ --for 100ms --output results", &path, &folder).code(0);
    let kept = folder.path().join("results/run/workload.json");
    let before = fs::read(&kept).expect("it is there");
    measure("run @ --for 200ms --output results", &path, &folder)
        .code(1)
        .says(&["is not empty", "--resume"]);
    assert!(fs::read(&kept).expect("it is there") == before);
    measure("run @ --for 100ms --resume", &path, &folder).code(1).says(&["--output"]);
}

#[test]
fn a_target_of_an_unknown_kind_makes_no_file_in_any_command() {
    let folder = scratch();
    for command in [
        "measure mix raid10:x --time 1s",
        "measure run raid10:x --write 1 --for 1s",
        "record -q --from synthetic:1MB/s --until-bytes 1MB --to raid10:x",
        "array create --name a raid10:x",
    ] {
        let mut program = longtake();
        run(program.args(command.split(' ')).current_dir(folder.path())).code(2).says(&[
            "no 'raid10:' targets",
            "./raid10:x",
            "sim:NAME",
        ]);
        let left = fs::read_dir(folder.path()).expect("it is there").count();
        assert_eq!(left, 0, "{command} leaves nothing");
    }
}
