//! The drives that are simulated: listed, shown, made into files, checked.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{asked, line, new_in, scratch};
use tempfile::TempDir;

/// A new drive's file in the folder, made from a drive of the library.
fn made(folder: &TempDir, from: &str) -> PathBuf {
    let file = new_in(folder, "mine.toml");
    line(&format!("sim new mine -o @ --from {from}"), &file).code(0);
    file
}

/// The file with some of its text replaced.
fn change(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(old), "{old} in {text}");
    fs::write(file, text.replace(old, new)).unwrap();
}

#[test]
fn the_library_is_listed_with_what_its_drives_come_to() {
    let here = Path::new(".");
    let text = line("sim list", here).code(0).text();
    let listed = asked("sim list", here);
    let drives = listed.as_array().unwrap();
    assert!(drives.len() >= 14, "{}", drives.len());
    for drive in drives {
        assert!(drive["native_write_bytes_per_s"].as_f64().unwrap() > 1e8, "{drive}");
        assert!(text.contains(drive["name"].as_str().unwrap()), "{text}");
    }
}

#[test]
fn a_drive_is_shown_with_every_parameter_and_its_source() {
    let here = Path::new(".");
    let shown = asked("sim show samsung-970-evo-plus-1tb", here);
    let parameters = shown["parameters"].as_array().unwrap();
    let of = |section: &str, name: &str| {
        let found = parameters.iter().find(|p| p["section"] == section && p["name"] == name);
        found.unwrap_or_else(|| panic!("{section}.{name} is not shown")).clone()
    };
    let channels = of("flash", "channels");
    assert_eq!((&channels["value"], &channels["known_by"]), (&8.into(), &"published".into()));
    assert_eq!(channels["from"], "reviews");
    assert_eq!(of("mapping", "collector")["known_by"], "default");
    let fitted = of("cache", "program_us");
    assert_eq!(fitted["known_by"], "assumed");
    assert_eq!(fitted["fitted"], serde_json::json!(["REC-7"]));
    assert_eq!(channels["fitted"], serde_json::json!([]));
    assert!(of("buffer", "bytes")["meaning"].as_str().unwrap().contains("wait for the flash"));
    let derived = &shown["derived"];
    assert!(derived["physical_bytes"].as_u64() > shown["capacity_bytes"].as_u64());
    // 32 dies x 32 KiB x 3 pages in 1,850 us.
    let native = derived["native_write_bytes_per_s"].as_f64().unwrap();
    assert!((native / 1.7e9 - 1.0).abs() < 0.01, "{native}");

    let text = line("sim show sim:samsung-970-evo-plus-1tb", here).code(0).text();
    for word in [
        "flash.channels",
        "published",
        "datasheet",
        "fitted to REC-7: 2.8 GB/s into the cache",
        "sequential writes into the cache",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn a_drive_of_ones_own_is_made_and_shown_and_checked() {
    let folder = scratch();
    let file = made(&folder, "samsung-970-pro-512gb");
    let shown = asked("sim show @", &file);
    let model = asked("sim show samsung-970-pro-512gb", &file);
    assert_eq!(shown["name"], "mine");
    assert_eq!(shown["derived"], model["derived"]);
    line("sim check @", &file).code(0);

    change(&file, "program_us = { is = 226.0", "program_us = { is = 452.0");
    let slower = asked("sim show @", &file);
    let rate =
        |shown: &serde_json::Value| shown["derived"]["flash_write_bytes_per_s"].as_f64().unwrap();
    assert!((rate(&slower) / rate(&model) - 0.5).abs() < 1e-9);
}

#[test]
fn every_drive_of_the_library_can_be_made_ones_own() {
    let folder = scratch();
    for drive in asked("sim list", Path::new(".")).as_array().unwrap() {
        let name = drive["name"].as_str().unwrap();
        let file = new_in(&folder, &format!("{name}.toml"));
        line(&format!("sim new my-{name} -o @ --from {name}"), &file).code(0);
        line("sim check @", &file).code(0);
    }
}

#[test]
fn a_file_that_is_there_is_not_overwritten_unasked() {
    let folder = scratch();
    let file = made(&folder, "ideal");
    let before = fs::read(&file).unwrap();
    line("sim new other -o @", &file).code(1).says(&["mine.toml", "-y"]);
    assert_eq!(fs::read(&file).unwrap(), before);
    line("sim new other -y -o @", &file).code(0);
    assert_ne!(fs::read(&file).unwrap(), before);
    line("sim new ../other -y -o @", &file).code(1).says(&["../other", "letters"]);
}

#[test]
fn what_can_not_be_is_told_with_its_field_and_remedy() {
    let folder = scratch();
    let good = made(&folder, "ideal");
    for (number, (old, new, words)) in [
        ("channels = 8", "chanels = 8", &["flash.ch", "did you mean 'channels'"][..]),
        ("channels = 8", "channels = 0", &["flash.channels", "1 or more"][..]),
        ("channels = 8", "channels = { is = 8 }", &["simulated.flash.channels", "exactly one"][..]),
        ("channels = 8", "channels = ", &["line", "column"][..]),
        ("over_provisioning = 0.25", "over_provisioning = 0.0", &["or more"][..]),
        ("[simulated.flash]", "[simulated.flush]", &["did you mean 'flash'"][..]),
    ]
    .into_iter()
    .enumerate()
    {
        let file = new_in(&folder, &format!("{number}.toml"));
        fs::copy(&good, &file).unwrap();
        change(&file, old, new);
        let said = line("sim check @", &file).code(1).text();
        for word in words {
            assert!(said.contains(word), "{word} in {said}");
        }
        let shown = line("sim show @", &file).code(1);
        assert!(!shown.stderr.is_empty());
    }
}

#[test]
fn several_files_are_checked_and_one_that_is_wrong_fails_them() {
    let folder = scratch();
    let good = made(&folder, "ideal");
    let bad = new_in(&folder, "none.toml");
    let both = format!("sim check @ {} --json", bad.display());
    let checked = line(&both, &good).code(1).json();
    assert_eq!(checked[0]["good"], true);
    assert_eq!(checked[1]["good"], false);
    assert!(checked[1]["problem"].as_str().unwrap().contains("No such file"), "{checked}");
}

#[test]
fn a_name_that_is_not_there_finds_the_one_that_was_meant() {
    let here = Path::new(".");
    line("sim show 970-evo-plus", here).code(1).says(&["samsung-970-evo-plus-1tb"]);
    line("sim show ideel", here).code(1).says(&["did you mean 'ideal'"]);
    line("sim show ./none.toml", here).code(1).says(&["./none.toml"]);
}
