//! `longtake plan` with a drive that is not in the library: what follows from its size, rate and endurance is answered, everything else is
//! refused or called unknown.

use std::fs;
use std::path::Path;

use crate::harness::{asked, line, new_in, scratch, unbroken};
use serde_json::Value;

const DRIVE: &str = "--drive-size 15.36TB --drive-rate 5GB/s";

fn here() -> &'static Path {
    Path::new(".")
}

fn need(design: &Value, limit: &str) -> Value {
    let needs = design["needs"].as_array().unwrap();
    needs.iter().find(|need| need["limit"] == limit).unwrap()["drives"].clone()
}

#[test]
fn a_described_drive_is_planned_by_plain_division() {
    let answer = asked(
        &format!("plan --rate 12.5GB/s --raw 1MiB {DRIVE} --dwpd 1 --keep 8h --life 5"),
        here(),
    );
    let [design] = answer["designs"].as_array().unwrap().as_slice() else { panic!("{answer}") };
    assert_eq!(design["drive"], "described-15.36tb");
    // 12.5 / 5 = 2.5; 8 h x 12.5 GB/s = 360 TB / 15.36 TB = 23.4; 5 years of it = 1.97 EB / 28.0 PB = 70.3; a little more for chunks.
    assert_eq!(need(design, "rate"), 3);
    assert_eq!(need(design, "capacity"), 24);
    assert_eq!(need(design, "endurance"), 71);
    let array = &design["array"];
    assert_eq!((&array["drives"], &array["binds"]), (&71.into(), &"endurance".into()));
    let years = array["life_years"].as_f64().unwrap();
    let written = 12.5e9 * 1.0015 * 365.0 * 86_400.0;
    assert!((years / (71.0 * 15.36e12 * 1825.0 / written) - 1.0).abs() < 1e-3, "{years}");
    // What adaptive placement would come to is not made up.
    for field in ["adaptive_drives", "adaptive_rate_drives", "adaptive_rate_buffer_bytes"] {
        assert_eq!(design[field], Value::Null, "{field}");
    }
    assert_eq!(design["evidence"], "assumed");
    // Three years of warranty are three fifths of the endurance.
    let three = asked(
        &format!("plan --rate 12.5GB/s --raw 1MiB {DRIVE} --dwpd 1 --warranty 3 --life 5"),
        here(),
    );
    assert_eq!(need(&three["designs"][0], "endurance"), 118);
}

#[test]
fn what_is_assumed_and_what_is_unknown_of_a_described_drive_is_printed() {
    let command = format!("plan --rate 100Gb/s {DRIVE} --dwpd 1 --lanes 16");
    let text = line(&command, here()).code(0).text();
    let row: Vec<&str> = text
        .lines()
        .find(|line| line.trim_start().starts_with("described-15.36tb "))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(row, ["described-15.36tb", "3", "unknown", "unknown", "unknown", "3", "rate"]);
    let text = unbroken(&text);
    for words in [
        "assumed: it writes 5.00 GB/s at all times (--drive-rate)",
        "assumed: 28.0 PB may be written to it: 1 drive writes a day (--dwpd) over 5 years of 365 days (--warranty is not given)",
        "assumed: its own link carries that rate",
        "unknown: its latencies, its cache and its dips, and so what adaptive placement would save",
        "unknown: whether the host's lanes are fast enough",
    ] {
        assert!(text.contains(words), "'{words}' in {text}");
    }
    assert!(!text.contains("would save no drive"), "{text}");
    let nothing = unbroken(&line(&format!("plan --rate 100Gb/s {DRIVE}"), here()).code(0).text());
    assert!(nothing.contains("unknown: how long it lasts: give --dwpd"), "{nothing}");
}

#[test]
fn a_described_drive_stands_beside_named_ones_in_one_table() {
    let prices = "--price described-15.36tb=1500 --price intel-d7-p5510-3.84tb=700";
    let command =
        format!("plan --rate 100Gb/s {DRIVE} --dwpd 1 --drive intel-d7-p5510-3.84tb {prices}");
    let text = line(&command, here()).code(0).text();
    let drives: Vec<&str> = text
        .lines()
        .take_while(|line| !line.contains("slowest phase  "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| word.starts_with("described-") || word.starts_with("intel-"))
        .collect();
    assert_eq!(drives, ["intel-d7-p5510-3.84tb", "described-15.36tb"], "2800 before 4500: {text}");
    assert!(text.contains("4500") && text.contains("2800"), "{text}");
    assert!(text.contains("Adaptive placement would save no drive."), "of the named one: {text}");
}

#[test]
fn what_a_description_does_not_tell_is_refused() {
    for (options, words) in [
        ("--drive-size 15TB", vec!["doesn't say its drive-rate", "--drive-rate 5GB/s"]),
        ("--drive-rate 5GB/s", vec!["doesn't say its drive-size"]),
        ("--dwpd 1", vec!["doesn't say its drive-size"]),
        (&format!("{DRIVE} --life 5"), vec!["doesn't say its dwpd"]),
        (&format!("{DRIVE} --warranty 5"), vec!["doesn't say its dwpd"]),
        (&format!("{DRIVE} --prove"), vec!["not enough to simulate a drive", "longtake fit"]),
        ("--drive-size 1MB --drive-rate 5GB/s", vec!["from 1 GB to 1 PB"]),
        ("--drive-size 15TB --drive-rate 5B/s", vec!["from 1 MB/s to 1 TB/s"]),
        (&format!("{DRIVE} --dwpd 0"), vec!["dwpd of '0'"]),
        (&format!("{DRIVE} --dwpd 1 --warranty 0"), vec!["warranty of '0'"]),
    ] {
        line(&format!("plan --rate 10Gb/s {options}"), here()).code(2).says(&words);
    }
    // Readers, sets and lanes that don't suffice are obstacles, as they are of any drive.
    for (options, words) in [
        ("--readers 2x500MB/s", "its read rate is unknown"),
        ("--readers 2x500MB/s --sets separate", "no NVM Sets"),
        ("--keep 800h --lanes 16", "need a lane each and 16 are left"),
    ] {
        let text = line(&format!("plan --rate 10Gb/s {DRIVE} {options}"), here()).code(1).text();
        assert!(unbroken(&text).contains(words), "'{words}' in {text}");
    }
}

#[test]
fn a_described_drive_is_part_of_a_requirement_as_a_file_and_none_of_a_sweep() {
    let folder = scratch();
    let file = new_in(&folder, "requirement.toml");
    let options = format!("--rate 40Gb/s {DRIVE} --dwpd 0.5 --warranty 3");
    let text = line(&format!("plan {options} --print toml"), here()).code(0).text();
    fs::write(&file, &text).unwrap();
    assert_eq!(
        asked("plan @", &file)["designs"],
        asked(&format!("plan {options}"), here())["designs"]
    );
    let base = "drive = \"ideal\"\nrate = \"1GB/s\"\ndrive_size = \"4TB\"\ndrive_rate = \"1GB/s\"";
    fs::write(&file, format!("[base]\n{base}\n[axes]\nparity = [0, 1]\n")).unwrap();
    let ran = line("sweep @ --dry-run", &file);
    assert_ne!(ran.code, 0);
    ran.says(&["a sweep plans with the drive that `drive` names"]);
}

#[test]
fn beside_a_described_drive_the_named_ones_are_proved() {
    let ran = line(
        "plan --rate 4GB/s --raw 1MiB --mission 1s --prove --drive ideal --drive-size 1TB --drive-rate 2GB/s",
        here(),
    );
    let text = ran.code(0).text();
    assert!(text.contains("described-1tb: not proved: a size and a rate"), "{text}");
    assert!(text.contains("ideal: proved by recording"), "{text}");
}
