//! `longtake wireshark install`: tshark lists arrays among its interfaces, and captures from them what `extract` gives.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::harness::captures::capinfos;
use crate::harness::{Ran, Recorder, line, longtake, new_in, run, scratch, tool};

const SMALL: &str = "--members 2 --member-size 64MiB --segment 1MiB --chunk 64KiB --memory 64MiB";

/// A command of a user whose settings, Wireshark's among them, are in this folder.
fn of_user(mut command: Command, folder: &TempDir) -> Command {
    command.env("XDG_CONFIG_HOME", folder.path().join("settings")).env("HOME", folder.path());
    command
}

fn install(folder: &TempDir, array: &Path) -> Ran {
    let mut install = of_user(longtake(), folder);
    run(install.args(["wireshark", "install", "--array"]).arg(array))
}

/// What tshark says to these words.
fn tshark(folder: &TempDir, words: &[&str]) -> Ran {
    run(of_user(tool("tshark", "tshark"), folder).args(words))
}

/// The interface of this kind, from tshark's list.
fn interface(folder: &TempDir, kind: &str) -> String {
    let list = tshark(folder, &["-D"]).code(0).text();
    let shown = format!("(array ({kind}))");
    let line = list.lines().find(|line| line.ends_with(&shown));
    let line = line.unwrap_or_else(|| panic!("no {shown} in\n{list}"));
    line.split_whitespace().nth(1).expect("a number, a name and what it shows").to_owned()
}

/// The script that was installed, asked as Wireshark asks it.
fn script(folder: &TempDir) -> Command {
    Command::new(folder.path().join("settings/wireshark/extcap/longtake"))
}

#[test]
fn what_was_recorded_is_captured_whole_or_by_filter() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let record = format!("record -q --from traffic:max,seed=5 --until-bytes 6MB --to @ {SMALL}");
    line(&record, &array).code(0);
    let installed = install(&folder, &array).code(0).text();
    assert!(
        installed.contains("settings/wireshark/extcap/longtake: see `tshark -D`"),
        "{installed}"
    );
    install(&folder, &array).code(1).says(&["is there already", "-y"]);

    let span = interface(&folder, "span");
    let counted = |filter: &str| {
        let (extracted, captured) = (new_in(&folder, "e.pcapng"), new_in(&folder, "c.pcapng"));
        line(&format!("extract @ -q -y -o {}", extracted.display()), &array).code(0);
        let mut extract = longtake();
        extract.args(["extract", "-q", "-y", "--filter", filter, "-o"]).arg(&extracted).arg(&array);
        run(&mut extract).code(0);
        let file = captured.to_str().expect("UTF-8");
        // It says what it captures; nothing of it is an error.
        let ran = tshark(&folder, &["-Q", "-i", &span, "-f", filter, "-w", file]).code(0);
        assert_eq!(ran.text(), "");
        assert_eq!(capinfos(&captured), capinfos(&extracted), "{filter}");
        capinfos(&captured)
    };
    let (all, some) = (counted(""), counted("udp port 53"));
    assert!(some > 0 && some < all, "{some} of {all}");
}

#[test]
fn a_recording_under_way_is_captured_live() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let from = "--from synthetic:5MB/s --flush-interval 100ms";
    let mut recorder = Recorder::start(&format!("{from} --to @ {SMALL}"), &array);
    recorder.wait_for_written(1 << 20);
    install(&folder, &array).code(0);
    let live = interface(&folder, "live");
    let captured = new_in(&folder, "live.pcapng");
    let file = captured.to_str().expect("UTF-8");
    tshark(&folder, &["-Q", "-i", &live, "-c", "500", "-w", file]).code(0);
    assert_eq!(capinfos(&captured), 500);
    recorder.stop().code(0);
}

#[test]
fn the_dialog_has_fields_for_times_and_a_filter_and_wrong_ones_are_named() {
    let folder = scratch();
    let array: PathBuf = new_in(&folder, "array");
    line(&format!("record -q --from synthetic:max --until-bytes 1MB --to @ {SMALL}"), &array)
        .code(0);
    install(&folder, &array).code(0);
    let asked = |words: &[&str]| run(script(&folder).args(words));
    let span = interface(&folder, "span");
    let of_span = ["--extcap-interface", &span];
    let fields = asked(&[of_span[0], of_span[1], "--extcap-config"]).code(0).text();
    for name in ["since", "until", "take", "filter"] {
        let field = format!("{{call=--{name}}}");
        assert_eq!(fields.lines().filter(|line| line.contains(&field)).count(), 1, "{fields}");
    }
    // Whatever is printed is what is wrong with the filter.
    let filter =
        |text| asked(&[of_span[0], of_span[1], "--extcap-capture-filter", text]).code(0).text();
    assert_eq!(filter("udp port 53"), "");
    assert!(filter("udp porrt 53").contains("syntax error"));

    let fifo = new_in(&folder, "fifo");
    let file = fifo.to_str().expect("UTF-8");
    let capture = [of_span[0], of_span[1], "--capture", "--fifo", file];
    let refused = asked(&[&capture[..], &["--since", "yesterdey"]].concat()).code(2);
    refused.says(&["yesterdey"]);
    asked(&[&capture[..], &["--filter", "udp porrt 53"]].concat()).code(1).says(&["syntax error"]);
    assert!(!fifo.exists());
    asked(&["--extcap-interface", "eth0", "--extcap-config"]).code(1).says(&["eth0"]);
    fs::remove_dir_all(&array).expect("it is there");
    asked(&capture).code(1).says(&["is not there any more"]);
    // Without the array, Wireshark gets an empty list and no error.
    let interfaces = asked(&["--extcap-interfaces", "--extcap-version=4.2"]).code(0).text();
    assert_eq!(interfaces.lines().count(), 1, "{interfaces}");
}
