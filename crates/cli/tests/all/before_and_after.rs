//! What an operator learns before a recording (whether it fits) and after it (why it ended, what the filter rejected).

use std::fs;

use crate::harness::{line, new_in, number, scratch};

const SMALL: &str = "--members 2 --member-size 33MiB --memory 32MiB --segment 4MiB";

#[test]
fn a_recording_that_cannot_fit_says_so_and_strict_creates_nothing() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let asked = format!("record --from synthetic:10MB/s --to @ --for 1h {SMALL}");
    let refused = line(&format!("{asked} --strict"), &array).code(1);
    assert!(refused.stderr.contains("--for 1h 00m 00s needs 36.8 GB"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--when-full wrap"), "{}", refused.stderr);
    assert!(!array.exists(), "something was created");
    // Without it the recording starts, with a warning, and ends at its other limit.
    let warned = line(&format!("{asked} --until-bytes 1MB"), &array).code(0);
    assert!(warned.stderr.contains("warning: the array has"), "{}", warned.stderr);
    assert!(warned.text().contains("ended because the size given with --until-bytes"));
    // A second take on what is there now.
    let again = line(&format!("{asked} --strict"), &array).code(1);
    assert!(again.stderr.contains("needs 36.8 GB"), "{}", again.stderr);
    let takes = line("takes @ --json", &array).json();
    assert_eq!(takes.as_array().map(Vec::len), Some(1));
}

#[test]
fn what_is_left_of_segments_that_were_begun_is_free() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let take = format!("record --from synthetic:max --to @ --until-bytes 1MB {SMALL}");
    for _ in 0..3 {
        line(&take, &array).code(0);
    }
    // 58.7 MB of segments, of which three takes have begun two and written 3 MB: some 55 MB are left, for 51 MB.
    let fits = format!("record --from synthetic:50MB/s --to @ --for 1s --strict {SMALL}");
    let said = line(&format!("{fits} --until-bytes 1MB"), &array).code(0);
    assert!(said.text().contains("ended because the size given"), "{}", said.text());
}

#[test]
fn a_full_array_ends_a_recording_whatever_else_would_have() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let fill = format!("record --from synthetic:max --to @ --for 1h {SMALL}");
    assert!(line(&fill, &array).text().contains("the array is full"), "it is filled");
    let said = line(&format!("{fill} --until-bytes 100kB"), &array).code(3).text();
    assert!(said.contains("ended because the array is full"), "{said}");
}

#[test]
fn what_the_filter_rejects_is_filtered_and_not_lost_and_the_exit_code_is_0() {
    let folder = scratch();
    let (array, again) = (new_in(&folder, "array"), new_in(&folder, "again"));
    let source = "record --from synthetic:1MB/s,size=100 --to @ --until-bytes 100kB";
    line(&format!("{source} {SMALL}"), &array).code(0);
    let file = new_in(&folder, "file.pcapng");
    let output = file.to_str().expect("a scratch path is text");
    line(&format!("extract @ -q -o {output}"), &array).code(0);
    let record = format!("record --from {output} --to @ --filter arp {SMALL}");
    let said = line(&record, &again).code(0);
    let table = said.text();
    assert!(!table.contains("lost: filtered"), "{table}");
    assert!(table.lines().any(|line| line.starts_with(" filtered")), "{table}");
    assert!(table.contains("ended because the file was read to its end"), "{table}");
    let ended = line(&format!("{record} --json"), &again).code(0);
    let last = ended.text();
    let last: serde_json::Value =
        serde_json::from_str(last.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last["reason"], "file_ended");
    let ledger = line("ledger @ --json", &again).code(0).json();
    for ledger in [&last["ledger"], &ledger["ledger"]] {
        assert!(number(ledger, "filtered.packets") >= 1000, "{ledger:#}");
        assert_eq!(number(ledger, "stored.packets"), 0);
        assert!(ledger["lost"].get("filtered").is_none(), "{ledger:#}");
    }
}

#[test]
fn progress_in_json_comes_at_the_interval_asked_for_and_only_with_json() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let record = format!("record --from synthetic:1MB/s --to @ --until-bytes 100kB {SMALL}");
    line(&format!("{record} --json-every 1s"), &array).code(2);
    assert!(!array.exists());
    let quiet = line(&format!("{record} --json --json-every 1h"), &array).code(0).text();
    assert!(!quiet.contains("\"progress\""), "{quiet}");
    let told = format!("record --from synthetic:10kB/s --to @ --for 1s {SMALL} --json");
    let told = line(&format!("{told} --json-every 1ms"), &array).code(0).text();
    let progress = told.lines().find(|line| line.contains("\"progress\"")).expect("progress");
    let progress: serde_json::Value = serde_json::from_str(progress).expect("JSON");
    assert_eq!(progress["filtered_packets"], 0);
    assert!(fs::read_dir(&array).is_ok());
}
