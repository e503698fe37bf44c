//! The kept corpora as tests, with any toolchain: each input is read, and so are one to four changes of it.
//!
//! Thousands of times as many changes with `LONGTAKE_LONG=1`.

use std::fs;
use std::path::Path;

use base::Random;
use longtake_fuzz::{TARGETS, target};

fn replay(name: &str) {
    let target = target(name).expect("a target of that name");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut inputs: Vec<Vec<u8>> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| fs::read(entry.expect("it is there").path()).expect("it is a file"))
        .collect();
    assert!(inputs.len() >= 5, "{} inputs in {}", inputs.len(), folder.display());
    inputs.sort();
    let changes = match std::env::var_os("LONGTAKE_LONG") {
        Some(long) if long == "1" => 10_000,
        // Large corpora have what changes would find.
        _ => (2_000 / inputs.len()).clamp(1, 4),
    };
    let mut random = Random::new(1);
    for input in &inputs {
        (target.run)(input);
        for _ in 0..changes {
            (target.run)(&changed(input, &inputs, &mut random));
        }
    }
}

/// The input with a few bytes changed, a part of another one in its place, or cut short.
fn changed(input: &[u8], inputs: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    let mut place = |length: usize| random.below(length.max(1) as u64) as usize;
    match place(4) {
        0 => bytes.truncate(place(input.len())),
        1 => {
            let other = &inputs[place(inputs.len())];
            let (from, at) = (place(other.len()), place(input.len()));
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        count => {
            for _ in 0..count {
                let at = place(input.len());
                let value = place(256) as u8;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
        }
    }
    bytes
}

#[test]
fn any_bytes_are_recorded_as_a_capture_file_without_an_unexplained_loss() {
    replay("recording");
}

#[test]
fn changes_of_an_array_are_survived() {
    replay("array");
}

#[test]
fn changes_of_an_array_with_parity_are_survived() {
    replay("array_parity");
}

#[test]
fn any_bytes_are_survived_as_a_capture_file() {
    replay("capture_file");
}

#[test]
fn any_bytes_are_survived_as_a_segment() {
    replay("media");
}

#[test]
fn any_bytes_are_survived_as_a_superblock() {
    replay("superblock");
}

#[test]
fn any_bytes_are_survived_as_a_packet() {
    replay("packet");
}

#[test]
fn any_text_is_survived_as_a_point_in_time() {
    replay("moments");
}

#[test]
fn any_text_is_survived_as_a_quantity() {
    replay("quantities");
}

#[test]
fn any_text_is_survived_as_a_profile() {
    replay("profile");
}

#[test]
fn any_text_is_survived_as_a_requirement() {
    replay("requirement");
}

#[test]
fn any_text_is_survived_as_a_drive_and_what_is_required_of_it() {
    replay("planned");
}

#[test]
fn any_text_is_survived_as_a_sweep() {
    replay("sweep");
}

#[test]
fn any_text_is_survived_as_a_workload() {
    replay("workload");
}

#[test]
fn every_corpus_is_a_targets() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for entry in fs::read_dir(folder).expect("there are corpora") {
        let name = entry.expect("it is there").file_name();
        assert!(TARGETS.iter().any(|target| *target.name == *name), "{name:?} is of no target");
    }
}
