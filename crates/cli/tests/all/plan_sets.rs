//! `longtake plan --sets`: what it costs a recording to leave readers a part of each drive's flash, what it saves them, and on which
//! drives it can be.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{asked, line, new_in, scratch, unbroken};
use profile::{Parameter, library};
use serde_json::Value;
use tempfile::TempDir;

/// 40 MB/s of random reads beside a gigabyte a second.
const ASKED: &str = "plan --rate 1GB/s --raw 1MiB --life 0.01 --readers 1x40MB/s,4KiB";

fn here() -> &'static Path {
    Path::new(".")
}

/// A drive of the library with the same dies and fewer blocks, so that it is written over in seconds.
fn small(folder: &TempDir, name: &str) -> PathBuf {
    let mut profile = library::get(name).unwrap();
    profile.capacity_bytes = 16 << 30;
    profile.simulated.set("flash", "pages_per_block", Parameter::assumed(24));
    let file = new_in(folder, &format!("{name}.toml"));
    fs::write(&file, profile.to_toml().unwrap()).unwrap();
    file
}

/// What so many percent of a run's reads don't exceed, in microseconds.
fn us(run: &Value, percent: f64) -> f64 {
    let all = run["latencies"]["percentiles_ns"].as_array().unwrap();
    let found = all.iter().find(|pair| pair[0] == percent).unwrap();
    found[1].as_f64().unwrap_or_else(|| panic!("{percent} % of {run}")) / 1e3
}

#[test]
fn separate_sets_cost_drives_and_give_readers_their_latency_back() {
    let folder = scratch();
    let drive = small(&folder, "memblaze-4tb-horizontal");
    let separate = asked(&format!("{ASKED} --keep 4s --sets separate --turn 5s --drive @"), &drive);
    let (design, beside) = (&separate["designs"][0], &separate["beside"][0]["runs"]);
    let split = &design["sets"];
    assert_eq!((&split["layout"], &split["parts"]), (&"horizontal".into(), &2.into()));
    assert_eq!((&split["share"], &split["apart_share"]), (&0.5.into(), &0.5.into()));
    // Half the flash writes half as fast, and readers take nothing of it.
    let (part, all) = (&split["write_bytes_per_s"], &split["shared_write_bytes_per_s"]);
    let ratio = all.as_f64().unwrap() / part.as_f64().unwrap();
    assert!(ratio > 1.8 && ratio < 2.0, "{ratio}");
    let runs = beside.as_array().unwrap();
    let of = |sets: &str| runs.iter().rfind(|run| run["sets"] == sets).unwrap();
    let (shared, separate) = (of("shared"), of("separate"));
    // As many drives both times: it is the sets that do it.
    assert_eq!(shared["drives"], separate["drives"]);
    for run in runs {
        assert_eq!(run["first_loss"], Value::Null, "{run}");
        assert_eq!(run["missed_read_bytes"], 0, "{run}");
        let read = run["read_bytes"].as_f64().unwrap() / run["looked_at_s"].as_f64().unwrap();
        assert!((read / 40e6 - 1.0).abs() < 0.01, "{read}");
    }
    // QOS-7, QOS-8: readers on flash of their own take what a read takes, and their tail is no erase.
    let mean = |run: &Value| run["latencies"]["mean_ns"].as_f64().unwrap() / 1e3;
    assert!(mean(separate) < 110.0 && mean(shared) > 1.2 * mean(separate), "{shared} {separate}");
    assert!(us(shared, 99.9) > 5.0 * us(separate, 99.9), "{shared} {separate}");
    // In the second after a change the part that readers come to was written a moment ago.
    assert!(separate["after_change"]["count"].as_u64().unwrap() > 1000);
    assert_eq!(shared["after_change"]["count"], 0);
}

#[test]
fn the_arithmetic_of_separate_sets_is_told_in_words() {
    let folder = scratch();
    let drive = small(&folder, "memblaze-4tb-vertical");
    let asked = ASKED.replace("1GB/s", "2.5GB/s");
    let command = format!("{asked} --keep 3s --sets separate --turn 2s --explain --drive @");
    let text = line(&command, &drive).code(0).text();
    let wide = text.lines().find(|line| line.chars().count() > 100);
    assert_eq!(wide, None);
    let text = unbroken(&text);
    for words in [
        "sets: 2 namespaces on 2 vertical NVM Sets",
        "x 0.50 of the flash",
        "sharing all flash it would write",
        "lies apart from the writing after 2.00 s at the latest",
        "2.00 s are held beyond what is kept",
        "if all flash is shared",
        "instead of",
        "shared sets: readers then meet what is written",
        "readers beside the recording",
        "after a change",
        "p99.9 us",
    ] {
        assert!(text.contains(words), "'{words}' in {text}");
    }
}

#[test]
fn a_plan_with_separate_sets_is_confirmed_by_recording() {
    let folder = scratch();
    let drive = small(&folder, "memblaze-4tb-horizontal");
    // Both questions: that one part of each drive is fast enough, and that turns leave what is to be kept.
    let command =
        format!("{ASKED} --keep 40s --margin 5 --sets separate --turn 3s --prove --drive @");
    let answer = asked(&command, &drive);
    let proofs = answer["proofs"].as_array().unwrap();
    let whole = proofs.iter().find(|proof| proof["question"] == "whole").unwrap();
    assert_eq!(whole["verdict"], "confirmed", "{whole}");
    assert!(whole["with"]["retention_s"].as_f64().unwrap() >= 40.0);
    assert_eq!(whole["with"]["drives"].as_array().unwrap().len(), whole["drives"]);
}

#[test]
fn what_is_planned_with_separate_sets_is_recorded_so() {
    let folder = scratch();
    let drive = small(&folder, "memblaze-4tb-horizontal");
    let words = "record --from synthetic:1GB/s --to sim:@:full,sim:ideal --virtual --for 2s";
    line(&format!("{words} --sets separate"), &drive).code(1).says(&["only member", "ideal"]);
    let words = "record --from synthetic:1GB/s --to sim:@:full*2 --virtual --for 6s --quiet";
    line(&format!("{words} --sets separate --rest-turn 2s"), &drive).code(0);
    line(&format!("{words} --sets separate --rest 2"), &drive).code(2).says(&["--rest"]);
    line(&format!("{words} --rest-turn 2s"), &drive).code(2).says(&["--sets"]);
}

#[test]
fn a_drive_without_sets_is_an_obstacle_that_names_what_would_do() {
    let words = ["its profile has no NVM Sets", "--sets shared", "possible with"];
    let command = format!("{ASKED} --keep 4s --sets separate");
    let ran = line(&format!("{command} --drive memblaze-4tb"), here()).code(1);
    let text = unbroken(&ran.text());
    for words in words {
        assert!(text.contains(words), "'{words}' in {text}");
    }
}

#[test]
fn sets_that_can_not_be_are_wrong_arguments() {
    for (options, words) in [
        ("--sets mine", vec!["sets of 'mine'", "separate"]),
        ("--sets separate", vec!["readers", "--readers 2x500MB/s"]),
        ("--turn 1m", vec!["--turn and --sets shared contradict"]),
        ("--sets separate --readers 1x40MB/s --turn 1ms", vec!["turn of '1ms'", "1s"]),
        ("--readers 1x40MB/s,1000", vec!["4 KiB", "1x40MB/s,4096"]),
        ("--readers 1x40MB/s,1GiB", vec!["16 MiB", "1x40MB/s,16777216"]),
    ] {
        line(&format!("plan --rate 1GB/s --keep 4s {options}"), here()).code(2).says(&words);
    }
}
