//! `longtake plan`: how many drives a rate needs, said as a table, as arithmetic and as JSON; and what can't be required.

use std::fs;
use std::path::Path;

use crate::harness::{asked, line, new_in, scratch};
use profile::library;
use serde_json::Value;

/// The drives of a white paper that measured them.
const FIVE: &str = "--drive samsung-970-evo-plus-1tb,samsung-970-pro-512gb,samsung-pm1725b-1.6tb,intel-optane-900p-480gb,\
                    intel-d7-p5510-3.84tb";

fn here() -> &'static Path {
    Path::new(".")
}

fn design<'a>(answer: &'a Value, drive: &str) -> &'a Value {
    let designs = answer["designs"].as_array().unwrap();
    designs.iter().find(|design| design["drive"] == drive).unwrap_or_else(|| panic!("{drive}"))
}

fn needs(design: &Value, limit: &str) -> Value {
    let needs = design["needs"].as_array().unwrap();
    needs.iter().find(|need| need["limit"] == limit).unwrap()["drives"].clone()
}

#[test]
fn the_white_papers_column_comes_out_with_its_arithmetic() {
    let command = format!("plan --rate 100Gb/s --keep 8h --placement stripe {FIVE}");
    let answer = asked(&command, here());
    for (drive, drives, arithmetic) in [
        ("samsung-970-evo-plus-1tb", 8, "12.6 GB/s / 1.60 GB/s"),
        ("samsung-970-pro-512gb", 6, "12.6 GB/s / 2.20 GB/s"),
        ("samsung-pm1725b-1.6tb", 10, "12.6 GB/s / 1.30 GB/s"),
        ("intel-optane-900p-480gb", 6, "12.6 GB/s / 2.20 GB/s"),
        ("intel-d7-p5510-3.84tb", 4, "12.6 GB/s / 3.20 GB/s"),
    ] {
        let design = design(&answer, drive);
        assert_eq!(needs(design, "rate"), drives, "{drive}");
        // Eight hours are 360 TB: capacity asks for more.
        assert_eq!(design["array"]["binds"], "capacity", "{drive}");
        assert_eq!(design["evidence"], "published");
        let explained = line(&format!("{command} --explain"), here()).code(0).text();
        assert!(explained.contains(arithmetic), "{drive}: {explained}");
    }
}

/// What one drive's row of the first table says.
fn first_row(text: &str, drive: &str) -> Vec<String> {
    let row = text.lines().find(|line| line.split_whitespace().next() == Some(drive));
    let row = row.unwrap_or_else(|| panic!("{drive} in {text}"));
    row.split_whitespace().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_rate_alone_tells_first_how_many_drives_sustain_it_at_their_slowest() {
    let command = format!("plan --rate 100Gb/s {FIVE}");
    let (answer, text) = (asked(&command, here()), line(&command, here()).code(0).text());
    for (drive, drives, adaptive) in [
        ("samsung-970-evo-plus-1tb", 8, 8),
        ("samsung-970-pro-512gb", 6, 6),
        ("samsung-pm1725b-1.6tb", 10, 8),
        ("intel-optane-900p-480gb", 6, 6),
        ("intel-d7-p5510-3.84tb", 4, 4),
    ] {
        let row = first_row(&text, drive);
        assert_eq!(row[..2], [drives.to_string(), adaptive.to_string()], "{text}");
        assert_eq!(row.last(), Some(&drives.to_string()), "the total: {text}");
        let design = design(&answer, drive);
        assert_eq!(design["stripe_rate_drives"], drives, "{drive}");
        assert_eq!(design["adaptive_rate_drives"], adaptive, "{drive}");
        let array = &design["array"];
        assert_eq!((&array["drives"], &array["binds"]), (&drives.into(), &"rate".into()));
        // Neither --keep nor --life is given, and the answer still says how long data is kept and drives last.
        assert_eq!((needs(design, "capacity"), needs(design, "endurance")), Default::default());
        assert!(array["retention_s"].as_f64().unwrap() > 60.0, "{array}");
        assert_eq!(array["take"]["seconds"], array["retention_s"]);
        assert_eq!(design["load"]["life_bytes"], Value::Null);
    }
    for words in [
        "a ring over all that the drives hold",
        "at its slowest moments",
        "keeps",
        "lasts",
        "with its buffers, would save 2 drives of samsung-pm1725b-1.6tb.",
    ] {
        assert!(text.contains(words), "'{words}' in {text}");
    }
    assert!(!text.contains("drives that last"), "{text}");
    let draft = &answer["requirement"];
    for field in ["keep", "mission", "life_years", "placement"] {
        assert_eq!(draft[field], Value::Null, "{field}");
    }
    let explained = line(&format!("{command} --explain"), here()).code(0).text();
    for words in ["rate: stripe: 12.6 GB/s / 1.30 GB/s", "rate: adaptive: 12.6 GB/s / 1.70 GB/s"] {
        assert!(explained.contains(words), "'{words}' in {explained}");
    }
}

#[test]
fn drives_life_counts_only_when_it_is_asked_for() {
    let command = "plan --rate 100Gb/s --keep 1h --drive samsung-970-pro-512gb";
    let free = asked(command, here());
    let free = design(&free, "samsung-970-pro-512gb");
    assert_eq!(needs(free, "endurance"), Value::Null);
    assert_eq!(free["array"]["binds"], "capacity");
    let years = free["array"]["life_years"].as_f64().unwrap();
    assert!(years > 0.0 && years < 5.0, "{years}");
    let told = line(command, here()).code(0).text();
    assert!(told.contains("lasts") && !told.contains("drives that last"), "{told}");
    let asked_for = asked(&format!("{command} --life 5"), here());
    let asked_for = design(&asked_for, "samsung-970-pro-512gb");
    assert_eq!(asked_for["array"]["binds"], "endurance");
    assert_eq!(asked_for["array"]["data_drives"], needs(asked_for, "endurance"));
    assert!(asked_for["array"]["life_years"].as_f64().unwrap() >= 5.0);
    let told = line(&format!("{command} --life 5"), here()).code(0).text();
    let words = "drives that last 5 years, written at the full rate 100 % of the time";
    assert!(told.contains(words), "{told}");
    // A rate alone with a life: drives for its slowest moments, or for life if that takes more.
    let both = asked("plan --rate 100Gb/s --life 1 --drive samsung-970-pro-512gb", here());
    let both = design(&both, "samsung-970-pro-512gb");
    assert_eq!(both["array"]["binds"], "endurance");
}

#[test]
fn no_line_of_a_plan_is_wider_than_100_columns() {
    let all = "--keep 8h --life 5 --parity 2 --spare 3 --margin 10 --duty 30% --readers 2x50MB/s,4KiB --memory 64GiB \
               --uplink 60GB/s --lanes 128 --pcie-generation 5 --nic 5x16 --memory-bandwidth 400GB/s";
    let described =
        "--drive-size 15.36TB --drive-rate 5GB/s --dwpd 1 --keep 8h --life 5 --lanes 64";
    for options in [
        "",
        "--keep 8h",
        "--mission 2h --life 5",
        all,
        "--explain",
        "--keep 8h --life 5 --explain",
        described,
    ] {
        let text = line(&format!("plan --rate 100Gb/s {options}"), here()).text();
        for drive in library::names().filter(|_| options != described) {
            assert!(text.contains(drive), "{drive} in {text}");
        }
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{options}: {line}");
        }
    }
}

#[test]
fn a_requirement_as_a_file_has_no_life_and_no_time_that_was_not_given() {
    let text = line("plan --rate 100Gb/s --print toml", here()).code(0).text();
    assert_eq!(text.trim(), "rate = \"100Gb/s\"");
    let text = line("plan --rate 100Gb/s --life 3 --print toml", here()).code(0).text();
    assert!(text.contains("life_years = 3.0"), "{text}");
}

#[test]
fn a_table_tells_what_binds_what_it_costs_and_what_would_save_a_drive() {
    let text = line(
        "plan --rate 25Gb/s --keep 30m --life 1 --drive intel-d7-p5510-3.84tb --price intel-d7-p5510-3.84tb=700 --spare 1",
        here(),
    )
    .code(0)
    .text();
    for words in [
        "25.0 Gb/s) on the wire",
        "frames of 1518 bytes",
        "a ring that keeps 30m 00s",
        "binds",
        "endurance",
        "published by a measurer",
        "11200",
        "drives instead of 16: rate -",
        "one spare less",
    ] {
        assert!(text.contains(words), "'{words}' in {text}");
    }
}

#[test]
fn without_drives_all_of_the_library_are_planned_with_the_fewest_first() {
    let answer = asked("plan --rate 10Gb/s --keep 1h", here());
    let counts: Vec<u64> = answer["designs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|design| design["array"]["drives"].as_u64().unwrap())
        .collect();
    assert!(counts.len() >= 14 && counts.is_sorted(), "{counts:?}");
    let text = line("plan --rate 10Gb/s --keep 1h", here()).code(0).text();
    assert!(text.contains("--explain"), "{text}");
}

#[test]
fn json_has_what_a_recording_and_pictures_are_made_of() {
    let answer = asked(
        "plan --rate 10Gb/s --mission 1m --drive samsung-970-evo-plus-1tb --readers 1x100MB/s",
        here(),
    );
    assert_eq!(answer["requirement"]["rate"], "10Gb/s");
    let design = design(&answer, "samsung-970-evo-plus-1tb");
    let take = &design["array"]["take"];
    // 1,538 bytes on the wire are 1,548 in a chunk, and a little for the chunk itself.
    let stored = take["stored_bytes_per_s"].as_f64().unwrap();
    assert!((stored / (1.25e9 * 1548.0 / 1538.0) - 1.0).abs() < 1e-3, "{stored}");
    assert_eq!(
        (&take["wraps"], &take["seconds"], &take["placement"]),
        (&false.into(), &60.0.into(), &"adaptive".into())
    );
    assert_eq!(take["read_bytes_per_s"], 1e8);
    assert!(take["buffers"].as_u64().unwrap() >= 4);
    assert_eq!(take["members"], design["array"]["data_drives"]);
    for series in ["headroom_by_s", "drives_by_rate", "buffer_by_drives"] {
        assert!(design["series"][series].as_array().unwrap().len() >= 2, "{series}");
    }
    assert!(
        design["figures"].as_array().unwrap().iter().all(|figure| figure["origin"].is_string())
    );
}

#[test]
fn a_requirement_is_written_as_a_file_and_planned_from_it() {
    let folder = scratch();
    let file = new_in(&folder, "requirement.toml");
    let options =
        "--rate 40Gb/s --frame imix --mission 2h --parity 1 --price ideal=100 --drive ideal";
    let text = line(&format!("plan {options} --print toml"), here()).code(0).text();
    fs::write(&file, &text).unwrap();
    assert_eq!(
        asked("plan @", &file)["designs"],
        asked(&format!("plan {options}"), here())["designs"]
    );
    // An option goes before what the file says.
    let ring = asked("plan @ --keep 1h", &file);
    assert_eq!(
        (&ring["requirement"]["keep"], &ring["requirement"]["mission"]),
        (&"1h".into(), &Value::Null)
    );
    fs::write(&file, text.replace("rate", "rat")).unwrap();
    line("plan @", &file).code(2).says(&["rat", "unknown field"]);
    line("plan @", Path::new("/nowhere.toml")).code(1).says(&["/nowhere.toml"]);
}

#[test]
fn what_can_not_be_required_is_a_wrong_argument_with_the_nearest_that_can() {
    for (options, words) in [
        ("--rate 100Gb/s --missions-a-day 2", vec!["doesn't say its mission", "--mission 2h"]),
        ("--keep 8h", vec!["--rate"]),
        ("--rate 100Gb/s --keep 8h --mission 2h", vec!["--keep and --mission contradict"]),
        ("--rate 100Gb/s --keep 8h --life 0", vec!["life of '0'", "0.01"]),
        ("--rate 100Gb/s --keep 8h --raw 1MiB --wire", vec!["--wire and --raw contradict"]),
        ("--rate 100Gb/s --keep 8h --frame 40", vec!["64"]),
        ("--rate 100 --keep 8h", vec!["'100' is not a rate", "100Gb/s"]),
        ("--rate 100Gb/s --keep 8h --drive ideal --price other=5", vec!["'other'", "ideal"]),
        ("--rate 1Gb/s --keep 8h --wire --payload", vec!["--wire", "--payload"]),
    ] {
        line(&format!("plan {options}"), here()).code(2).says(&words);
    }
    line("plan --rate 1Gb/s --keep 8h --drive idael", here())
        .code(1)
        .says(&["did you mean 'ideal'"]);
}

#[test]
fn what_no_number_of_drives_will_do_says_why_and_what_would() {
    let text = line(
        "plan --rate 400Gb/s --keep 1m --lanes 16 --pcie-generation 3 --drive intel-d7-p5510-3.84tb",
        here(),
    )
    .code(1)
    .text();
    for words in ["no number will do", "lanes", "possible with", "rate -"] {
        assert!(text.contains(words), "'{words}' in {text}");
    }
    let uplink = asked_failing("plan --rate 100Gb/s --keep 1m --uplink 7GB/s --drive ideal");
    let design = design(&uplink, "ideal");
    assert_eq!(design["array"], Value::Null);
    assert!(design["obstacles"][0].as_str().unwrap().contains("uplink"));
    assert!(design["savings"].as_array().unwrap().iter().any(|s| s["change"] == "rate"));
    // A drive smaller than two segments.
    let folder = scratch();
    let file = new_in(&folder, "small.toml");
    fs::write(
        &file,
        "name = \"small\"\nmodel = \"s\"\nkind = \"file\"\ncapacity_bytes = 1000000\n",
    )
    .unwrap();
    let text = line("plan --rate 1Gb/s --keep 1s --drive @", &file).code(1).text();
    assert!(text.contains("fewer than two segments"), "{text}");
}

#[test]
fn a_chunk_that_is_really_recorded_holds_what_the_plan_says() {
    let folder = scratch();
    for (frame, options) in [("1518", "size=1514"), ("64", "size=60"), ("imix", "imix")] {
        let planned =
            asked(&format!("plan --rate 100MB/s --keep 1s --frame {frame} --drive ideal"), here());
        let overhead = &design(&planned, "ideal")["overhead"];
        let array = new_in(&folder, frame);
        // A plan leaves out flow indexes, for which chunks are a little shorter.
        let record = "--members 1 --member-size 600MiB --segment 256MiB --index none -q";
        let from = format!("synthetic:100MB/s,{options}");
        line(&format!("record --from {from} --until-bytes 20MB --to @ {record}"), &array).code(0);
        let chunks = asked("array show @ --chunks", &array)["chunks"].clone();
        // Descriptions of interfaces differ by a few words: a packet more or less.
        let full = &chunks[1];
        assert_eq!(full["length"], overhead["chunk_bytes"], "{frame}");
        let packets = |of: &Value| of["packets"].as_u64().unwrap();
        assert!(packets(full).abs_diff(packets(overhead)) <= 2, "{frame}: {full} {overhead}");
    }
}

/// JSON of a command that fails.
fn asked_failing(command: &str) -> Value {
    line(&format!("{command} --json"), here()).code(1).json()
}
