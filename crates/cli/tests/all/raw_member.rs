//! Members copied off by hand, with the `dd` commands that `array show` prints, open in tshark and
//! capinfos without a complaint, and hold every packet that the ledger says is stored.

use std::path::Path;

use crate::harness::captures::{capinfos, tshark};
use crate::harness::{Recorder, asked, line, new_in, number, run, scratch, tool, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

/// Packets as long as they get keep tshark's part of these tests short.
const SOURCE: &str = "synthetic:max,size=9000";
const SMALL: &str = "--members 2 --member-size 65MiB --segment 8MiB --memory 64MiB";

/// Copies every member by the printed commands, and counts the packets that the tools find in each.
fn count_in_copies(folder: &TempDir, array: &Path) -> Vec<u64> {
    let shown = asked("array show @", array);
    let copies = new_in(folder, "copies");
    std::fs::create_dir_all(&copies).expect("making a scratch folder");
    let commands = shown["copy"].as_array().expect("there is a list");
    for command in commands.iter().filter_map(Value::as_str) {
        let mut shell = tool("sh", "dash");
        run(shell.args(["-ec", command]).current_dir(&copies)).code(0);
    }
    let members = shown["members"].as_array().expect("there is a list").len();
    (0..members)
        .map(|member| {
            let copy = copies.join(format!("member{member}.pcapng"));
            let found = capinfos(&copy);
            let shown = tshark(&copy, &["-T", "fields", "-e", "frame.len"]);
            assert_eq!(shown.len() as u64, found, "tshark and capinfos");
            assert!(shown.iter().all(|length| length == "9000"));
            found
        })
        .collect()
}

/// What all takes have on the media.
fn stored(array: &Path) -> u64 {
    let takes = asked("takes @", array);
    let takes = takes.as_array().expect("there is a list");
    assert!(takes.iter().all(|take| take["balances"] == true), "{takes:#?}");
    takes.iter().map(|take| number(take, "on_media.packets")).sum()
}

fn assert_copies_hold_all(folder: &TempDir, array: &Path) {
    let counts = count_in_copies(folder, array);
    println!("packets in the copies of the members: {counts:?}");
    assert_eq!(counts.iter().sum::<u64>(), stored(array));
    assert!(counts.iter().all(|&count| count > 0));
}

#[test]
fn a_member_opens_after_a_recording_that_was_stopped() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    line(&format!("record -q --from {SOURCE} --until-bytes 40MB --to @ {SMALL}"), array).code(0);
    assert_copies_hold_all(&folder, array);
}

#[test]
fn a_member_opens_after_the_array_was_full() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    let ran = line(&format!("record -q --from {SOURCE} --to @ {SMALL}"), array).code(3);
    ran.says(&["the array is full", "--when-full wrap"]);
    let ledger = line("ledger @ --json", array).code(3).json();
    assert!(number(&ledger, "ledger.lost.array_full.packets") > 0);
    assert_copies_hold_all(&folder, array);
}

#[test]
fn a_member_opens_after_the_ring_has_turned() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    // Two laps and a half: the head is in the middle.
    let wrap = "--until-bytes 290MB --when-full wrap --placement stripe";
    line(&format!("record -q --from {SOURCE} --to @ {SMALL} {wrap}"), array).code(0);
    let shown = asked("array show @", array);
    for member in shown["members"].as_array().expect("there is a list") {
        assert_eq!(member["extents"].as_array().map(Vec::len), Some(2), "{member:#}");
    }
    assert_copies_hold_all(&folder, array);
}

#[test]
fn a_member_opens_after_a_crash_and_after_recording_on() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    // The second time the ring has turned before it is killed.
    for bytes in [20 << 20, 300 << 20] {
        let mut recorder =
            Recorder::start(&format!("--from {SOURCE} --to @ {SMALL} --when-full wrap"), array);
        recorder.wait_for_written(bytes);
        recorder.signal(Signal::SIGKILL);
        recorder.end();
        wait_until("nothing writes any more", || {
            asked("array show @", array)["recording"] == false
        });
        assert_copies_hold_all(&folder, array);
        let on = "--until-bytes 30MB --when-full wrap";
        line(&format!("record -q --from {SOURCE} --to @ {on}"), array).code(0);
        assert_copies_hold_all(&folder, array);
    }
}
