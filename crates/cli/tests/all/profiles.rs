//! Profiles as users handle them: listed, shown, made of fio's output and logs, of tables, and of our own results.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::filled::filled;
use crate::harness::{Ran, asked, line, new_in, run, scratch, tool};
use serde_json::Value;
use tempfile::TempDir;

/// Runs with the user's own profiles in the scratch folder.
fn with(folder: &TempDir, words: &str, path: &Path) -> Ran {
    let own = folder.path().join("own");
    line(&format!("{words} --profiles {}", own.display()), path)
}

/// A file in the scratch folder.
fn file(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = new_in(folder, name);
    fs::write(&path, text).expect("writing a file");
    path
}

fn figure(profile: &Value, name: &str) -> f64 {
    let value = profile["figures"][name]["value"].as_f64();
    value.unwrap_or_else(|| panic!("no {name} in {profile}"))
}

/// Fast for 40 s, native to 400 GB, then over it.
fn table() -> String {
    let mut text = "Time (s);Write (MB/s)\n".to_owned();
    for second in 1..=500 {
        // 80 GB at 2 GB/s, then 1 GB/s to the end, then 0.8 GB/s; a few percent up and down.
        let level = if second <= 40 {
            2000.0
        } else if second <= 360 {
            1000.0
        } else {
            800.0
        };
        let rate = level * (1.0 + 0.01 * f64::from(second * 7919 % 5 - 2));
        text += &format!("{second};{}\n", format!("{rate:.2}").replace('.', ","));
    }
    text
}

#[test]
fn a_table_becomes_a_profile_of_ones_own_with_its_source() {
    let folder = scratch();
    let csv = file(&folder, "review.csv", &table());
    let words = "profiles import @ --capacity 400GB --model Reviewed --by Ada --json";
    let made = with(&folder, words, &csv).code(0).json();
    let profile = &made["profile"];
    for (name, expected) in [
        ("write.fast", 2e9),
        ("write.cache_bytes", 80e9),
        ("write.native", 1e9),
        ("write.overwrite", 0.8e9),
        ("write.sustained", 0.8e9),
        ("write.worst_second", 0.8e9),
    ] {
        let found = figure(profile, name);
        assert!((found / expected - 1.0).abs() < 0.05, "{name}: {found}");
    }
    let source = &profile["figures"]["write.native"]["source"];
    assert_eq!(source["kind"], "measured");
    assert_eq!(source["origin"], "a table, review.csv, by Ada");
    assert!(source["when"].as_str().is_some_and(|when| when.starts_with("20")), "{source}");
    assert!(profile["notes"][0].as_str().is_some_and(|note| note.contains("CRC32C")), "{profile}");
    // It is there by its name from now on.
    let shown = with(&folder, "profiles show reviewed --json", &csv).code(0).json();
    assert_eq!(shown["figures"], profile["figures"]);
    assert_eq!(shown["fill"], profile["fill"]);
    let text = with(&folder, "profiles show reviewed", &csv).code(0).text();
    assert!(text.contains("Fill curve: the whole drive, 400 GB in "), "{text}");
    let listed = with(&folder, "profiles list --json", &csv).code(0).json();
    let row = listed["profiles"].as_array().unwrap().iter().find(|row| row["name"] == "reviewed");
    assert_eq!(row.expect("it is listed")["simulated"], false);
    with(&folder, "profiles show reviewd", &csv).code(1).says(&["did you mean 'reviewed'"]);
    with(&folder, "profiles import @ --capacity 400GB --model Reviewed", &csv)
        .code(1)
        .says(&["-y to overwrite"]);
}

#[test]
fn what_was_published_counts_as_such_and_the_known_drive_fills_the_gaps() {
    let folder = scratch();
    let csv = file(&folder, "fill.csv", &table());
    let output = new_in(&folder, "out.toml");
    let words = format!(
        "profiles import @ --drive samsung-970-evo-plus-1tb --published example.org --when 2024-02-01 -o {}",
        output.display()
    );
    with(&folder, &words, &csv).code(0);
    let shown = asked("profiles show @", &output);
    assert_eq!(shown["name"], "samsung-970-evo-plus-1tb-published");
    assert_eq!(shown["capacity_bytes"].as_u64(), Some(1_000_204_886_016));
    let native = &shown["figures"]["write.native"];
    assert_eq!(
        (&native["source"]["kind"], &native["trust"]),
        (&"published".into(), &"published".into())
    );
    assert!(native["source"]["origin"].as_str().unwrap().starts_with("example.org: a table"));
    assert_eq!(figure(&shown, "endurance.bytes"), 600e12, "of the datasheet");
    line("measure run sim:@ --write 1 --bytes 1GB", &output).code(1).says(&["simulated"]);
}

#[test]
fn a_simulated_fill_comes_back_from_a_table_within_a_twentieth() {
    let folder = scratch();
    let measured = &filled().results;
    let tables = new_in(&folder, "tables");
    line(&format!("report @ --csv {}", tables.display()), measured).code(0);
    let csv = |end: &str| {
        let mut found = fs::read_dir(&tables).unwrap().map(|entry| entry.unwrap().path());
        found.find(|path| path.to_string_lossy().ends_with(end)).expect("a table of the pass")
    };
    let words = format!(
        "profiles import @ --overwrite-pass {} --drive samsung-970-evo-plus-1tb --json",
        csv("fill-overwrite.csv").display()
    );
    let theirs = with(&folder, &words, &csv("fill-empty.csv")).code(0).json();
    let ours = with(&folder, "profiles import @ --name ours --json", measured).code(0).json();
    for name in [
        "write.fast",
        "write.cache_bytes",
        "write.native",
        "write.overwrite",
        "write.sustained",
        "write.worst_second",
    ] {
        let (theirs, ours) = (figure(&theirs["profile"], name), figure(&ours["profile"], name));
        assert!((theirs / ours - 1.0).abs() < 0.05, "{name}: {theirs} {ours}");
    }
    let origin = ours["profile"]["figures"]["write.native"]["source"]["origin"].as_str().unwrap();
    assert!(origin.starts_with("longtake 0."), "{origin}");
}

#[test]
fn fios_own_output_and_logs_are_read() {
    let folder = scratch();
    let disk = new_in(&folder, "disk");
    fs::File::create(&disk).and_then(|file| file.set_len(64 << 20)).expect("making a file");
    let fio = |more: &[&str]| {
        let mut fio = tool("fio", "fio");
        fio.args(["--name=seq", "--rw=write", "--bs=128k", "--ioengine=libaio", "--iodepth=4"]);
        fio.args(["--direct=1", "--size=64m"]).args(more).arg("--filename").arg(&disk);
        run(fio.current_dir(folder.path())).code(0);
    };
    fio(&["--io_size=1g", "--output-format=json+", "--output=seq.json"]);
    let json =
        with(&folder, "profiles import @ --capacity 64MiB --json", &new_in(&folder, "seq.json"));
    let json = json.code(0).json();
    let rate = figure(&json["profile"], "stream.write.128KiB.depth4");
    assert!(rate > 1e6, "{rate}");
    let origin = &json["profile"]["figures"]["stream.write.128KiB.depth4"]["source"]["origin"];
    assert!(origin.as_str().is_some_and(|origin| origin.starts_with("fio 3")), "{origin}");
    // At a rate that any disk has: then it is known, and windows come when they should.
    let logs = ["--write_bw_log=each", "--write_hist_log=each", "--log_hist_msec=50"];
    fio(&[&["--io_size=128m", "--rate=64m"][..], &logs].concat());
    let log = new_in(&folder, "each_bw.1.log");
    let made = with(&folder, "profiles import @ --capacity 64MiB --json", &log);
    let made = made.code(0).json();
    let native = figure(&made["profile"], "write.native");
    // A mean with the disk's stalls: the unit is right.
    let off = native / f64::from(64 << 20);
    assert!((0.3..3.0).contains(&off), "{native} by the log");
    // On a busy machine fio writes one window of histograms alone: three of it.
    let histograms = new_in(&folder, "each_clat_hist.1.log");
    let text = fs::read_to_string(&histograms).expect("fio wrote it");
    let window = text.lines().next().and_then(|line| line.split_once(',')).expect("it has one").1;
    let windows = ["50", "100", "150"].map(|time| format!("{time},{window}\n"));
    fs::write(&histograms, windows.concat()).expect("writing it");
    let both = format!("profiles import @ {} --capacity 64MiB", histograms.display());
    with(&folder, &both, &log).code(1).says(&["not both"]);
}

#[test]
fn what_can_not_be_read_in_is_told_with_file_line_and_remedy() {
    let folder = scratch();
    for (name, text, more, said) in [
        (
            "a.csv",
            "time [s],MB/s\n0,1\n1,fast\n",
            "--capacity 1GB",
            &["a.csv", "line 3", "'fast'"][..],
        ),
        ("b.csv", "time [s],speed\n0,1\n1,1\n", "--capacity 1GB", &["b.csv", "--rate-unit"]),
        ("c.csv", "time [s],MB/s\n0,1\n1,1\n", "", &["c.csv", "--capacity"]),
        ("d_iops.1.log", "1, 2, 1, 0\n", "--capacity 1GB", &["log of commands", "_bw"]),
        ("e.json", "{\"a\": 1}", "--capacity 1GB", &["e.json", "neither fio's nor"]),
        ("f.log", "100, 1, 0, 0\n200, 1, 0, 0\n", "--capacity 1GB", &["f.log", "no writes"]),
        ("g.csv", "time [s],MB/s\n0,1\n1,1\n", "--capacity 1GB --name ideal", &["another --name"]),
        ("h.txt", "nothing at all\n", "--capacity 1GB", &["h.txt", "no line with two numbers"]),
    ] {
        let path = file(&folder, name, text);
        with(&folder, &format!("profiles import @ {more}"), &path).code(1).says(said);
    }
    with(&folder, "profiles import @", &new_in(&folder, "none"))
        .code(1)
        .says(&["none", "No such file"]);
    with(&folder, "profiles import @", folder.path()).code(1).says(&["holds no results"]);
    let csv = file(&folder, "i.csv", "s,MB/s\n0,1\n");
    with(&folder, "profiles import @ --rate-unit moons", &csv).code(2).says(&["MiB/s"]);
}

#[test]
fn a_profile_of_ones_own_that_is_none_is_named_in_the_list() {
    let folder = scratch();
    let own = new_in(&folder, "own");
    fs::create_dir(&own).expect("making a folder");
    fs::write(own.join("broken.toml"), "name = 5\n").expect("writing a file");
    with(&folder, "profiles list", folder.path()).code(1).says(&["broken.toml", "line 1"]);
}
