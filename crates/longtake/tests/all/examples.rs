//! The examples run, and find what they look for. `cargo test` has built them; where only this test program was built, they are
//! built first.

use std::path::PathBuf;
use std::process::{Command, Output};

/// The program of an example, beside this one.
fn built(name: &str) -> PathBuf {
    let here = std::env::current_exe().expect("a test knows its program");
    let folder = here.ancestors().nth(2).expect("it lies in target/PROFILE/deps");
    let example = folder.join("examples").join(name);
    if !example.exists() {
        let build = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "longtake", "--example", name])
            .status();
        assert!(build.expect("cargo starts").success(), "{name} is built");
    }
    example
}

fn run(name: &str, arguments: &[&str]) -> Output {
    Command::new(built(name)).args(arguments).output().expect("an example starts")
}

/// Runs an example that records and checks every packet; returns how many.
fn recorded_and_checked(name: &str, arguments: &[&str]) -> u64 {
    let output = run(name, arguments);
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let words: Vec<&str> = said.split_whitespace().collect();
    let [recorded, "packets", "recorded,", back, "came", "back,", wrong, ..] = words[..] else {
        panic!("{said}")
    };
    assert_eq!((back, wrong), (recorded, "0"), "{said}");
    recorded.parse().expect("a number")
}

#[test]
fn two_seconds_of_packets_on_files_come_back_whole() {
    let folder = tempfile::tempdir().unwrap();
    let array = folder.path().join("array");
    let array = array.to_str().unwrap();
    assert!(recorded_and_checked("record_and_check", &[array]) > 0);

    // What it has recorded, the other examples read.
    let checked = run("check_arrays", &[array]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let minute = run("extract_minute", &[array, "1970-01-01T00:00:00Z"]);
    let said = String::from_utf8_lossy(&minute.stdout).into_owned();
    assert!(minute.status.success() && said.contains("0 packets and 0 bytes in memory"), "{said}");
}

#[test]
fn two_seconds_of_packets_on_simulated_drives_come_back_whole() {
    // At 1 GB/s of packets of 1,500 bytes, in virtual time: none is lost to a busy machine.
    let packets = recorded_and_checked("record_simulated", &[]);
    assert!((1_300_000..1_400_000).contains(&packets), "{packets} packets");
}
