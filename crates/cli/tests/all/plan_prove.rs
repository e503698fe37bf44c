//! `longtake plan --prove` and `record --virtual`: numbers of drives confirmed and refuted by recording on simulated drives, and the same
//! recording by hand.

use std::fs;
use std::path::PathBuf;

use crate::harness::{asked, line, new_in, scratch, unbroken};
use profile::{Parameter, library};
use serde_json::Value;
use tempfile::TempDir;

/// A drive of 2.1 GB/s that is written over in seconds.
fn small(folder: &TempDir) -> PathBuf {
    let mut profile = library::get("ideal").unwrap();
    profile.name = "small".to_owned();
    profile.capacity_bytes = 8 << 30;
    profile.simulated.set("flash", "pages_per_block", Parameter::assumed(24));
    let file = new_in(folder, "small.toml");
    fs::write(&file, profile.to_toml().unwrap()).unwrap();
    file
}

fn proofs(answer: &Value) -> &[Value] {
    answer["proofs"].as_array().unwrap()
}

#[test]
fn a_ring_is_proved_fast_enough_and_large_enough_and_one_drive_less_is_not() {
    let folder = scratch();
    let drive = small(&folder);
    // 5 GB/s are three drives' worth; ten seconds of it fill eight.
    let answer =
        asked("plan --rate 5GB/s --raw 1MiB --keep 10s --life 0.01 --prove --drive @", &drive);
    let [rate, whole] = proofs(&answer) else { panic!("{}", answer["proofs"]) };
    assert_eq!((&rate["question"], &rate["verdict"]), (&"rate".into(), &"confirmed".into()));
    assert_eq!((&rate["drives"], &rate["extent"]), (&3.into(), &"steady_state".into()));
    assert!(rate["recorded_s"].as_f64() < rate["planned_s"].as_f64(), "{rate}");
    assert_eq!(answer["unproved"].as_array().unwrap().len(), 0);
    assert_eq!(rate["with"]["first_loss"], Value::Null);
    let loss = &rate["without"]["first_loss"];
    assert_eq!(loss["full"], false);
    assert!(loss["text"].as_str().unwrap().contains("2 of 2 drives were behind"), "{loss}");
    assert_eq!((&whole["question"], &whole["verdict"]), (&"whole".into(), &"confirmed".into()));
    assert_eq!(whole["drives"], answer["designs"][0]["array"]["data_drives"]);
    assert!(whole["with"]["retention_s"].as_f64().unwrap() >= 10.0);
    assert!(whole["without"]["retention_s"].as_f64().unwrap() < 10.0);
}

#[test]
fn a_mission_is_proved_in_words_and_refuted_where_it_does_not_fit() {
    let folder = scratch();
    let drive = small(&folder);
    let text =
        line("plan --rate 4GB/s --raw 1MiB --mission 8s --prove --drive @", &drive).code(0).text();
    assert_eq!(text.lines().find(|line| line.chars().count() > 100), None);
    let long = line("plan --rate 4GB/s --raw 1MiB --mission 8s --prove --long --drive @", &drive);
    assert_eq!(long.code(0).text(), text, "what takes less than a minute is the same at length");
    let text = unbroken(&text);
    for words in
        ["proved by recording, all of it", "drives confirmed: no loss in 8.0", "on 3: loss"]
    {
        assert!(text.contains(words), "'{words}' in {text}");
    }
    assert!(text.contains("the array was full"), "{text}");
}

#[test]
fn a_plan_that_trusts_a_figure_too_far_is_refuted_with_its_own_exit_code() {
    let folder = scratch();
    let drive = small(&folder);
    // Somebody says that it writes twice as fast as it does.
    let told = fs::read_to_string(&drive).unwrap();
    let figures = "[figures]\n\"write.native\" = { value = 4.2e9, unit = \"bytes_per_second\", source = { kind = \"published\", origin = \
                   \"datasheet\" } }\n";
    assert!(told.contains("[figures]\n") || !told.contains("[figures"), "{told}");
    let told = if told.contains("[figures]\n") {
        told.replace("[figures]\n", figures)
    } else {
        told.replacen("\n[simulated.", &format!("\n{figures}\n[simulated."), 1)
    };
    fs::write(&drive, told).unwrap();
    let command = "plan --rate 4GB/s --raw 1MiB --keep 1s --life 0.01 --prove --json --drive @";
    let ran = line(command, &drive).code(3);
    let answer = ran.json();
    assert_eq!(proofs(&answer)[0]["verdict"], "too_few", "{}", answer["proofs"]);
    assert!(answer["designs"][0]["doubts"].to_string().contains("datasheet"), "{answer}");
}

#[test]
fn the_same_recording_by_hand_says_when_and_why_it_loses_the_first_packet() {
    let folder = scratch();
    let drive = small(&folder);
    let record = |count: u32, rest: &str| {
        format!(
            "record --from synthetic:4.5GB/s,size=1500 --to sim:@:full*{count} --virtual --for 8s --when-full wrap --memory 256MiB {rest}"
        )
    };
    let held = line(&record(3, ""), &drive).code(0).text();
    for words in ["8.0", "written to 3 drives", "buffers were filled to", "flash for one byte"] {
        assert!(held.contains(words), "'{words}' in {held}");
    }
    let lost = line(&record(2, "--json"), &drive).code(3);
    let events: Vec<Value> =
        lost.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let finished = events.last().unwrap();
    assert_eq!((&finished["event"], &finished["whole"]), (&"finished".into(), &true.into()));
    let first = finished["first_loss"]["after_s"].as_f64().unwrap();
    assert!(first > 0.0 && first < 8.0, "{first}");
    // The account balances: what was offered is stored, or lost for want of a buffer.
    let ledger = &finished["ledger"];
    let bytes = |of: &Value| of["bytes"].as_f64().unwrap();
    assert!((bytes(&ledger["offered"]) / 36e9 - 1.0).abs() < 0.001, "{ledger}");
    assert!(bytes(&ledger["stored"]) < bytes(&ledger["offered"]), "{ledger}");
    assert!(events.iter().filter(|event| event["event"] == "progress").count() >= 100);
}

#[test]
fn what_a_virtual_recording_can_not_do_is_said() {
    let folder = scratch();
    let drive = small(&folder);
    for (options, words) in [
        ("--from synthetic:1GB/s --virtual", vec!["--for"]),
        ("--from synthetic:max --virtual --for 1s", vec!["--virtual needs a source of a rate"]),
        ("--from synthetic:1GB/s --virtual --for 1s --filter tcp", vec!["--filter and --snap"]),
    ] {
        let ran = line(&format!("record {options} --to sim:@"), &drive);
        assert_ne!(ran.code, 0, "{options}");
        ran.says(&words);
    }
}
