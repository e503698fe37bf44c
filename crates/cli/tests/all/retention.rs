//! `record --slice` and `--cut`: what is kept is what a model of the rule keeps, searches find the same as in whole packets, and what
//! is left out is in the ledger and not lost.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::captures::{Frame, read, tshark};
use crate::harness::{asked, line, new_in, number, run, scratch, tool};

const SMALL: &str = "--members 1 --member-size 33MiB --segment 1MiB --chunk 64KiB --memory 64MiB";

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

/// The last event of a recording, which must exit with 0.
#[track_caller]
fn finished(words: &str, array: &Path) -> Value {
    let said = line(&format!("record --json {words}"), array).code(0).text();
    let events = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let finished = events.into_iter().find(|event| event["event"] == "finished");
    finished.expect("it prints its account")
}

fn extracted(array: &Path) -> PathBuf {
    let file = array.with_extension("pcapng");
    line(&format!("extract @ -q -y -o {}", text(&file)), array).code(0);
    file
}

/// A file of generated traffic: flows of every kind, in VLANs, MPLS and tunnels, and in fragments.
fn traffic(folder: &TempDir, bytes: &str) -> PathBuf {
    let array = new_in(folder, "whole");
    line(
        &format!("record -q --from traffic:max,seed=7 --until-bytes {bytes} --to @ {SMALL}"),
        &array,
    )
    .code(0);
    extracted(&array)
}

/// For each packet whether it is among the first bytes of its flow, with flows and fragments as tshark sees them.
fn model(file: &Path, frames: &[Frame], limit: u64) -> Vec<bool> {
    let mut command = tool("tshark", "tshark");
    command.args(["-n", "-r"]).arg(file).args(["--enable-protocol", "communityid", "-T", "fields"]);
    // A datagram that was put together would get the flow of its last fragment.
    command.args(["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"]);
    let fields = ["communityid", "ip.flags.mf", "ip.frag_offset", "ipv6.fraghdr.ident"];
    command.args(fields.iter().flat_map(|field| ["-e", *field]));
    let shown = run(&mut command).code(0).text();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), frames.len());
    let mut flows: HashMap<String, u64> = HashMap::new();
    let mut keeps = |line: &str, frame: &Frame| {
        let fields: Vec<&str> = line.split('\t').collect();
        let any = |field: &str| field.split(',').any(|value| !matches!(value, "" | "0" | "False"));
        if any(fields[1]) || any(fields[2]) || !fields[3].is_empty() || fields[0].is_empty() {
            return true;
        }
        let before = flows.entry(fields[0].to_owned()).or_default();
        let is_kept = *before < limit;
        *before += u64::from(frame.original_length);
        is_kept
    };
    lines.iter().zip(frames).map(|(line, frame)| keeps(line, frame)).collect()
}

#[test]
fn a_cut_keeps_exactly_the_first_bytes_of_each_flow() {
    let folder = scratch();
    let file = traffic(&folder, "24MB");
    let whole = read(&file).frames;
    let kept = model(&file, &whole, 10 << 10);
    assert!(kept.iter().filter(|kept| !**kept).count() > 5000, "heavy flows are in it");
    // The same traffic is generated once more, and cut before it is stored.
    let array = new_in(&folder, "cut");
    let record = "--from traffic:max,seed=7 --until-bytes 4MB --cut 10KiB --to @";
    let ended = finished(&format!("{record} {SMALL}"), &array);
    let found = read(&extracted(&array)).frames;
    assert!(found.len() > 5000, "{} packets", found.len());
    let mut expected = whole.iter().zip(&kept).enumerate().filter(|(_, (_, kept))| **kept);
    let mut last = 0;
    for (number, frame) in found.iter().enumerate() {
        let (at, (wanted, _)) = expected.next().expect("the whole recording is longer");
        let same = (&wanted.data, wanted.original_length) == (&frame.data, frame.original_length);
        assert!(same, "packet {number} of the cut recording is not packet {at} of the whole");
        last = at;
    }
    // All others up to there were cut, and maybe some behind the last that was kept.
    let (next, _) = expected.next().expect("the whole recording is longer");
    let ledger = &ended["ledger"];
    let cut = number(ledger, "cut.packets");
    let so_far = (last + 1 - found.len()) as u64..=(next - found.len()) as u64;
    assert!(so_far.contains(&cut), "{cut} packets were cut, not {so_far:?}");
    assert_eq!(number(ledger, "offered.packets"), found.len() as u64 + cut);
    assert_eq!(ledger["balances"], true);
    assert!(ledger["lost"].get("cut").is_none(), "{ledger:#}");
    // The ledger on the array says the same, and that nothing is lost.
    let take = line("ledger @ --json", &array).code(0).json();
    assert_eq!(take["ledger"], *ledger);
    let said = line("ledger @", &array).code(0).text();
    assert!(said.contains("balanced: offered = stored + filtered + cut + lost"), "{said}");
    assert!(!said.contains("sliced"), "{said}");
}

#[test]
fn sliced_packets_are_found_by_the_same_searches_and_open_in_wireshark() {
    let folder = scratch();
    let file = traffic(&folder, "6MB");
    let array = new_in(&folder, "sliced");
    let ended = finished(&format!("--from {} --slice headers --to @ {SMALL}", text(&file)), &array);
    let whole_array = new_in(&folder, "whole");
    let sliced_file = extracted(&array);
    let [whole, sliced] = [&file, &sliced_file].map(|file| read(file).frames);
    assert_eq!(whole.len(), sliced.len());
    let mut left_out = (0, 0);
    for (whole, sliced) in whole.iter().zip(&sliced) {
        assert_eq!((whole.time, whole.original_length), (sliced.time, sliced.original_length));
        assert!(whole.data.starts_with(&sliced.data));
        let bytes = (whole.data.len() - sliced.data.len()) as u64;
        left_out = (left_out.0 + u64::from(bytes > 0), left_out.1 + bytes);
    }
    let ledger = &ended["ledger"];
    assert_eq!((number(ledger, "sliced.packets"), number(ledger, "sliced.bytes")), left_out);
    assert_eq!(number(ledger, "truncated.packets"), 0);
    assert!(left_out.1 > 3_000_000, "most bytes are payload: {left_out:?}");
    let said = line("ledger @", &array).code(0).text();
    assert!(said.contains("balanced: offered = stored + filtered + lost"), "{said}");
    assert!(said.lines().any(|line| line.starts_with(" sliced")), "{said}");
    // Flows, ids and ports are those of the whole packets, with and without an index.
    let flows = "flows @ --community-id --max-rows 100000";
    let [of_whole, of_sliced] = [&whole_array, &array].map(|array| asked(flows, array));
    assert!(of_whole["flows"].as_array().is_some_and(|rows| rows.len() > 1000));
    assert_eq!(of_whole["flows"], of_sliced["flows"]);
    let id = of_whole["flows"][0]["community_id"].as_str().expect("the largest flow has an id");
    let found = |array: &Path, select: &str| {
        let file = folder.path().join("found.pcapng");
        let said = format!("extract @ -q -y {select} -o {}", text(&file));
        line(&said, array).code(0);
        read(&file).frames.into_iter().map(|frame| frame.time).collect::<Vec<_>>()
    };
    for indexed in [false, true] {
        for select in [format!("--community-id {id}"), "--filter tcp".to_owned()] {
            let [of_whole, of_sliced] = [&whole_array, &array].map(|array| found(array, &select));
            assert!(!of_whole.is_empty());
            assert_eq!(of_whole, of_sliced, "{select}, indexed: {indexed}");
        }
        line("array index @", &array).code(0);
    }
    // Wireshark sees packets that are cut short, and none that contradict themselves.
    let shown = |fields: &[&str]| tshark(&sliced_file, fields);
    let lengths = shown(&["-T", "fields", "-e", "frame.len"]);
    assert!(
        lengths
            .iter()
            .zip(&whole)
            .all(|(shown, whole)| *shown == whole.original_length.to_string())
    );
    assert_eq!(shown(&["-Y", "_ws.malformed"]), Vec::<String>::new());
}

#[test]
fn a_slice_of_a_number_of_bytes_is_cut_there_in_files_and_says_so() {
    let folder = scratch();
    let (file, out) = (traffic(&folder, "1MB"), new_in(&folder, "out.pcapng"));
    let words = format!("--from {} --slice 64 --cut 2KiB -w @", text(&file));
    let ended = finished(&words, &out);
    let (whole, sliced) = (read(&file), read(&out));
    assert!(sliced.interfaces.iter().all(|interface| interface.snap_length == 64));
    let cut = number(&ended, "ledger.cut.packets");
    assert!(cut > 0 && number(&ended, "ledger.sliced.packets") > 0, "{ended:#}");
    assert_eq!(sliced.frames.len() as u64 + cut, whole.frames.len() as u64);
    let kept = model(&file, &whole.frames, 2 << 10);
    let expected: Vec<_> = whole.frames.iter().zip(&kept).filter(|(_, kept)| **kept).collect();
    assert_eq!(expected.len(), sliced.frames.len());
    for ((whole, _), sliced) in expected.iter().zip(&sliced.frames) {
        assert_eq!(sliced.data, whole.data[..whole.data.len().min(64)]);
        assert_eq!(sliced.original_length, whole.original_length);
    }
    // What is not whole is not sent, and says why.
    let array = new_in(&folder, "array");
    line(&format!("record -q --from {} --slice 64 --to @ {SMALL}", text(&file)), &array).code(0);
    let info = line("array info @", &array).code(0).text();
    assert!(info.contains("packets cut to 64 bytes"), "{info}");
}

#[test]
fn simulated_drives_keep_what_real_ones_would() {
    let record = "record --from traffic:10MB/s,seed=3,queues=2 --for 2s --cut 2KiB --slice headers";
    let said = line(&format!("{record} --to sim:ideal*2"), Path::new(".")).code(0).text();
    for words in [" cut ", " sliced ", "balanced: offered = stored + filtered + cut + lost"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.contains(" 0 damaged"), "{said}");
}

#[test]
fn what_can_not_be_sliced_or_cut_is_refused_before_anything_is_created() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    for (words, said) in [
        ("--from - --cut 1KiB", "a stream of bytes"),
        ("--from tcp-listen:127.0.0.1:0 --slice headers", "a stream of bytes"),
        ("--from udp:127.0.0.1:0,headers=off --slice headers", "headers=off"),
        ("--from traffic:max --cut 0", "keep nothing"),
    ] {
        line(&format!("record {words} --to @ {SMALL}"), &array).code(1).says(&[said]);
        assert!(!array.exists(), "{words}");
        let file = array.with_extension("pcapng");
        line(&format!("record {words} -w {}", text(&file)), &array).code(1).says(&[said]);
        assert!(!file.exists(), "{words}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 0);
    for words in ["--slice 64", "--cut 1KiB"] {
        let words =
            format!("record --from traffic:1GB/s --to sim:ideal --virtual --for 1s {words}");
        line(&words, &array).code(1).says(&["--virtual has none"]);
    }
    line("record --from traffic:max --to @ --slice payload", &array).code(2).says(&["`headers`"]);
}

#[test]
fn both_rules_can_be_in_a_file_of_options() {
    let folder = scratch();
    let (config, array) = (new_in(&folder, "record.toml"), new_in(&folder, "array"));
    let record = "--from traffic:max,seed=7 --until-bytes 300kB --slice headers --cut 2KiB --to @";
    let printed = line(&format!("record {record} {SMALL} --print-config"), &array).code(0).text();
    assert!(printed.contains("slice = \"headers\"\n") && printed.contains("cut = \"2KiB\"\n"));
    fs::write(&config, printed).expect("it can be written");
    let ended = finished(&format!("--config {}", text(&config)), &array);
    for account in ["ledger.cut.packets", "ledger.sliced.packets"] {
        assert!(number(&ended, account) > 0, "{ended:#}");
    }
    // Options on the command line win.
    let ended = finished(&format!("--config {} --slice 96 --cut 1GiB", text(&config)), &array);
    assert_eq!(number(&ended, "ledger.cut.packets"), 0);
}
