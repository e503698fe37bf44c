//! A recording on drives that get warm: lost where their heat isn't carried away, stored where it is.

use std::fs;
use std::path::PathBuf;

use crate::harness::{line, new_in, scratch, unbroken};
use profile::{Parameter, Profile, library};
use tempfile::TempDir;

/// The ideal drive with heat. It comes near its temperature in a few seconds.
fn warm(folder: &TempDir, kelvin_per_w: f64) -> PathBuf {
    let mut profile = library::get("ideal").unwrap();
    profile.name = "warm".to_owned();
    let heat = [
        ("idle_w", 2.0),
        ("die_w", 0.1),
        ("transfer_w", 4.0),
        ("joules_per_k", 0.5),
        ("kelvin_per_w", kelvin_per_w),
        ("ambient_c", 35.0),
        ("light_c", 75.0),
        ("light_mb_s", 500.0),
        ("heavy_c", 80.0),
        ("heavy_mb_s", 50.0),
    ];
    for (name, value) in heat {
        profile.simulated.set("heat", name, Parameter::assumed(value));
    }
    let file = new_in(folder, &format!("warm-{kelvin_per_w}.toml"));
    fs::write(&file, profile.to_toml().unwrap()).unwrap();
    file
}

const RECORD: &str = "record --virtual --from synthetic:3GB/s --for 30s --to sim:@*2";

#[test]
fn what_cooled_drives_store_hot_drives_lose_and_both_say_how_warm_they_were() {
    let folder = scratch();
    let (cooled, hot) = (warm(&folder, 5.0), warm(&folder, 15.0));
    line(&format!("sim check {}", cooled.display()), &cooled).code(0);
    let said = line(RECORD, &cooled).code(0).text();
    assert!(said.contains("°C and was not throttled"), "{said}");
    let said = line(RECORD, &hot).code(3).text();
    assert!(
        said.contains("was the warmest drive: it reached 80 °C and was throttled lightly for"),
        "{said}"
    );

    let json = format!("{RECORD} --json");
    let finished = |drive: &PathBuf, code| {
        let said = line(&json, drive).code(code).text();
        let last = said.lines().last().expect("it says how it ended").to_owned();
        serde_json::from_str::<serde_json::Value>(&last).expect("lines of JSON")
    };
    let (cooled, hot) = (finished(&cooled, 0), finished(&hot, 3));
    assert!(cooled["first_loss"].is_null());
    let behind = &hot["first_loss"]["behind"][0];
    assert!(behind["throttled_celsius"].as_f64().unwrap() > 73.0, "{behind}");
    let why = hot["first_loss"]["text"].as_str().unwrap();
    assert!(why.contains(", throttled at 7"), "{why}");
    for drive in 0..2 {
        let (cooled, hot) = (&cooled["drives"][drive], &hot["drives"][drive]);
        let celsius = cooled["highest_celsius"].as_f64().unwrap();
        assert!(celsius > 50.0 && celsius < 75.0, "{cooled}");
        assert_eq!(cooled["throttled_lightly_s"], 0.0);
        assert!(hot["throttled_lightly_s"].as_f64().unwrap() > 5.0, "{hot}");
    }
    let plain = line(
        "record --virtual --json --from synthetic:1GB/s --for 1s --to sim:ideal",
        &folder.path().join("none"),
    );
    let last = plain.code(0).text().lines().last().expect("it says how it ended").to_owned();
    assert!(last.contains("\"highest_celsius\":null"), "{last}");
}

#[test]
fn a_proof_finds_that_hot_drives_are_too_few() {
    let folder = scratch();
    let plan = "plan --rate 3GB/s --keep 10m --prove --drive @";
    let said = line(plan, &warm(&folder, 5.0)).code(0).text();
    assert!(unbroken(&said).contains("2 drives confirmed"), "{said}");
    let said = line(plan, &warm(&folder, 15.0)).text();
    assert!(unbroken(&said).contains("2 drives not enough: loss after"), "{said}");
    assert!(unbroken(&said).contains("throttled at 7"), "{said}");
}

#[test]
fn a_place_cools_drives_better_or_worse_than_their_files_say() {
    let folder = scratch();
    let drive = warm(&folder, 5.0);
    let warmest = |options: &str, code: i32| {
        let said = line(&format!("{RECORD} --json {options}"), &drive).code(code).text();
        let last = said.lines().last().expect("it says how it ended").to_owned();
        let value: serde_json::Value = serde_json::from_str(&last).expect("lines of JSON");
        value["drives"][0]["highest_celsius"].as_f64().expect("a temperature")
    };
    let plain = warmest("", 0);
    // Above the air it is as warm as before.
    assert!((warmest("--ambient -5", 0) - (plain - 40.0)).abs() < 1.0);
    let twice = warmest("--cooling 2.5", 0);
    assert!((twice - 35.0 - (plain - 35.0) / 2.0).abs() < 2.0, "{twice}, {plain}");
    assert!(warmest("--ambient 55", 3) > 75.0);
    assert!(warmest("--cooling 15", 3) > 75.0);

    let plan = "plan --rate 3GB/s --keep 10m --prove --drive @";
    let said = line(&format!("{plan} --cooling 15"), &drive).text();
    assert!(unbroken(&said).contains("2 drives not enough: loss after"), "{said}");
    line("plan --rate 3GB/s --drive @ --ambient 55", &drive).code(2).says(&["--prove"]);

    let overwriting = |options: &str, name: &str| {
        let results = new_in(&folder, name);
        let words = format!("measure fill sim:@ --size 4GiB -o {} {options}", results.display());
        line(&words, &drive).code(0);
        let profile = fs::read_to_string(results.join("profile.toml")).unwrap();
        Profile::from_toml(&profile).unwrap().overwrite().expect("it was filled twice").0
    };
    let (cool, hot) = (overwriting("", "cool"), overwriting("--cooling 40", "hot"));
    assert!(hot < cool / 2.0, "{hot}, {cool}");

    let record = "record --virtual --from synthetic:1GB/s --for 1s --to sim:ideal --ambient 40";
    line(record, &drive).code(1).says(&["how warm ideal gets is not known", "[simulated.heat]"]);
    let record = "record --from synthetic:1GB/s --for 1s --to @ --cooling 4";
    line(record, &folder.path().join("real")).code(1).says(&["simulated drives", "real"]);
    assert!(!folder.path().join("real").exists());
    line(&format!("{RECORD} --ambient 900"), &drive).code(1).says(&["heat.ambient_c", "900"]);
}

#[test]
fn a_drive_that_is_throttled_to_more_than_its_link_moves_is_refused() {
    let folder = scratch();
    let file = warm(&folder, 5.0);
    let mut profile = Profile::from_toml(&fs::read_to_string(&file).unwrap()).unwrap();
    profile.simulated.set("heat", "light_mb_s", Parameter::assumed(9e9));
    fs::write(&file, profile.to_toml().unwrap()).unwrap();
    let said = line("sim check @", &file).code(1);
    let said = said.text() + &said.stderr;
    assert!(said.contains("heat.light_mb_s") && said.contains("what the link moves"), "{said}");
}
