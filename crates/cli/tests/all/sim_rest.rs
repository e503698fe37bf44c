//! `longtake sim rest`: what trimming ahead and letting members rest does to a ring, as a table and as JSON.

use std::fs;
use std::path::PathBuf;

use crate::harness::{asked, line, new_in, scratch};
use profile::{Parameter, Profile, library};
use ssd::Spec;
use tempfile::TempDir;

/// A slow drive in few parts, so that half a minute of it is soon simulated.
fn slow(folder: &TempDir) -> PathBuf {
    let mut profile = library::get("ideal").unwrap();
    profile.name = "slow".to_owned();
    profile.capacity_bytes = 8 << 30;
    for (name, value) in [("channels", 2), ("dies_per_channel", 2), ("pages_per_block", 96)] {
        profile.simulated.set("flash", name, Parameter::assumed(value));
    }
    let file = new_in(folder, "slow.toml");
    fs::write(&file, profile.to_toml().unwrap()).unwrap();
    file
}

#[test]
fn every_setting_of_a_ring_has_the_rate_that_loses_nothing() {
    let folder = scratch();
    let drive = slow(&folder);
    let profile = Profile::from_toml(&fs::read_to_string(&drive).unwrap()).unwrap();
    let ceiling = Spec::from_profile(&profile).unwrap().native_write_bytes_per_s();
    let found = asked("sim rest @ --members 2", &drive);
    let effects = found[0]["effects"].as_array().unwrap();
    let settings: Vec<(u64, u64)> = effects
        .iter()
        .map(|e| (e["trim_ahead"].as_u64().unwrap(), e["rest"].as_u64().unwrap()))
        .collect();
    assert_eq!(settings, [(0, 0), (4, 0), (64, 0), (0, 1), (4, 1)]);
    for effect in effects {
        let each = effect["rate_per_member"].as_f64().unwrap();
        assert_eq!(effect["rate"], 2.0 * each);
        // Within what halving leaves of the drive's own rate, and never above it.
        assert!(each > 0.85 * ceiling && each < 1.02 * ceiling, "{each} of {ceiling}");
        assert!(effect["amplification"].as_f64().unwrap() < 1.1, "{effect}");
    }
}

#[test]
fn a_drive_that_is_not_there_is_named() {
    let folder = scratch();
    line("sim rest idael", folder.path()).code(1).says(&["did you mean 'ideal'"]);
    line("sim rest ideal --members 1", folder.path()).code(2).says(&["--members"]);
}
