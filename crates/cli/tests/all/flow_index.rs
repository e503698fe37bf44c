//! Flow indexes: a search that uses them returns what a full scan returns, whatever has become of the array, and reads less.

use std::fs::{self, File};
use std::net::UdpSocket;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Recorder, asked, line, new_in, number, ran, scratch, wait_until};

const THREE: &str = "--members 3 --segment 4MiB --chunk 68KiB --memory 64MiB";
/// Members that keep the whole take.
const LARGE: &str = "--member-size 40MiB";
/// Members over which a ring comes round soon.
const SMALL: &str = "--member-size 16MiB";
const TRAFFIC: &str = "traffic:max,flows=20000";

/// An array with some traffic, and what its recording says in the end.
fn recorded(folder: &TempDir, options: &str) -> (PathBuf, Value) {
    let array = new_in(folder, "array");
    let size = if options.contains(SMALL) { "" } else { LARGE };
    let record = format!("--from {TRAFFIC} --until-bytes 24MB --to @ {THREE} {size} {options}");
    let ended = Recorder::start(&record, &array).end().code(0);
    (array, ended.event("finished").clone())
}

/// An array with some traffic and flow indexes that were made afterwards.
fn indexed(folder: &TempDir, options: &str) -> PathBuf {
    let (array, said) = recorded(folder, &format!("--index none {options}"));
    assert_eq!(said["index"], Value::Null);
    let report = asked("array index @", &array);
    assert!(number(&report, "indexed") >= 3, "{report}");
    assert_eq!(number(&report, "unreadable_chunks"), 0);
    array
}

/// Filters that flows of the array meet, rare ones and frequent ones, and others.
fn filters(array: &Path) -> Vec<String> {
    let shown = asked("flows @ --by packets --top 4000", array);
    let rows = shown["flows"].as_array().expect("there are flows");
    let with_ports: Vec<&Value> =
        rows.iter().filter(|row| row["source_port"].is_number()).collect();
    let mut filters = Vec::new();
    for flow in with_ports.iter().step_by(with_ports.len() / 4) {
        let text = |field: &str| flow[field].as_str().expect("it is a text").to_owned();
        let [from, to] = ["source", "destination"].map(text);
        let [one, other] = ["source_port", "destination_port"].map(|field| flow[field].to_string());
        filters.push(format!("host {from} and host {to} and port {one} and port {other}"));
        filters.push(format!("host {from} or host {to}"));
        filters.push(format!("src host {from} and not port {other}"));
        filters.push(format!("port {one}"));
    }
    filters.extend(
        ["vlan and tcp", "icmp6", "net 10.9.0.0/24", "tcp[13] & 2 != 0", ""].map(str::to_owned),
    );
    filters
}

/// What a search writes, and its account.
fn search(array: &Path, filter: &str, options: &[&str], code: i32) -> (Vec<u8>, Value) {
    let file = array.with_extension("pcap");
    let [from, to] = [array, &file].map(|path| path.to_str().expect("a scratch path is text"));
    let words = ["extract", from, "-q", "-y", "--json", "--filter", filter, "-o", to];
    let said = ran(words.iter().chain(options)).code(code).json();
    (fs::read(&file).expect("it was written"), said)
}

/// Every search returns what a full scan does. Returns how many chunks were listed and read by all of them.
#[track_caller]
fn agree(array: &Path, filters: &[String], options: &[&str], code: i32) -> (u64, u64) {
    let (mut listed, mut read) = (0, 0);
    for filter in filters {
        let (found, said) = search(array, filter, options, code);
        let (all, whole) = search(array, filter, &[options, &["--full-scan"]].concat(), code);
        assert!(found == all, "{filter}: {said} instead of {whole}");
        assert_eq!(said["index"]["chunks"], whole["index"]["candidates"], "a full scan reads all");
        listed += number(&said["index"], "chunks");
        read += number(&said["index"], "candidates");
    }
    (listed, read)
}

#[test]
fn a_search_by_flow_index_returns_what_a_full_scan_returns_and_reads_less() {
    let folder = scratch();
    let array = &indexed(&folder, "");
    let filters = filters(array);
    let (listed, read) = agree(array, &filters, &[], 0);
    assert!(read * 3 < listed * 2, "{read} of {listed} chunks were read");
    // A rare flow's chunks alone, and those that no index covers.
    let rare = &filters[filters.len() - 9];
    let (_, said) = search(array, rare, &["--explain"], 0);
    let index = &said["index"];
    assert!(
        number(index, "candidates") <= number(index, "not_indexed") + number(index, "chunks") / 3,
        "{index}"
    );
    // By its Community ID.
    let flows = asked("flows @ --community-id --by packets", array);
    let id = flows["flows"][7]["community_id"].as_str().expect("it has one").to_owned();
    let (found, _) = search(array, "", &["--community-id", &id], 0);
    assert_eq!(found, search(array, "", &["--community-id", &id, "--full-scan"], 0).0);
    // Nothing that was recorded has changed.
    assert_eq!(asked("array check @", array)["damaged"], Value::Array(Vec::new()));
    line("array scrub @", array).code(0);
    let again = asked("array index @", array);
    assert_eq!(number(&again, "indexed"), 0);
    assert!(number(&asked("array index @ --again", array), "indexed") >= 3);
    agree(array, &filters[..4], &[], 0);
}

/// Segments that `array index` gave none, because they end where a take does and none fits behind it.
fn without_room(report: &Value) -> u64 {
    number(report, "no_room") + number(report, "not_full")
}

#[test]
fn a_recording_indexes_what_it_writes() {
    let folder = scratch();
    let (array, said) = recorded(&folder, "");
    let index = &said["index"];
    assert!(number(index, "segments_filled") >= 3 && number(index, "bytes") > 0, "{index}");
    assert_eq!(index["segments_indexed"], index["segments_filled"]);
    assert_eq!(number(index, "chunks_left_out"), 0, "{index}");
    let filters = filters(&array);
    let (listed, read) = agree(&array, &filters, &[], 0);
    assert!(read * 3 < listed * 2, "{read} of {listed} chunks were read");
    // Nothing is left to be indexed, in segments that are not full either: unless none fits behind the take.
    let (_, said) = search(&array, &filters[0], &[], 0);
    let report = asked("array index @", &array);
    let (left, rest) = (number(&said["index"], "not_indexed"), without_room(&report));
    assert!(left == 0 || rest > 0, "{report}, {said}");
    assert_eq!(number(&report, "had") + rest, number(&report, "segments"), "{report}");
    // A take that goes on in the same segments, without, and then with an index.
    for options in ["--index none", ""] {
        let more = format!(
            "record -q --from {TRAFFIC},seed=5 --until-bytes 2MB --memory 64MiB --to @ {options}"
        );
        line(&more, &array).code(0);
        agree(&array, &filters[..8], &[], 0);
    }
    // Segments that were filled without an index have none until now. Where a take ended just before a segment's end, none fits.
    let report = asked("array index @", &array);
    let (_, said) = search(&array, &filters[0], &[], 0);
    let left = number(&said["index"], "not_indexed");
    assert!(left == 0 || without_room(&report) > 0, "{report}, {said}");
    assert_eq!(asked("array check @", &array)["damaged"], Value::Array(Vec::new()));
    line("array scrub @", &array).code(0);
}

#[test]
fn an_index_of_hosts_leaves_flows_and_ports_out() {
    let folder = scratch();
    let (array, said) = recorded(&folder, "--index hosts");
    assert!(number(&said["index"], "segments_indexed") >= 3, "{said}");
    let filters = filters(&array);
    let (listed, read) = agree(&array, &filters[..8], &[], 0);
    assert!(read < listed, "{read} of {listed} chunks were read");
    let (_, said) = search(&array, "port 443", &[], 0);
    let left_out = said["index"]["left_out"].to_string();
    assert!(left_out.contains("port"), "{said}");
    assert_eq!(said["index"]["candidates"], said["index"]["chunks"]);
}

#[test]
fn explain_says_what_was_read_and_why() {
    let folder = scratch();
    let array = &indexed(&folder, "");
    let out = "-q -y -o /dev/null --explain";
    line(&format!("extract @ {out}"), array)
        .code(0)
        .says(&["every chunk is read: nothing in the selection narrows it"]);
    let of = |filter: &str| {
        let array = array.to_str().expect("a scratch path is text");
        let words =
            ["extract", array, "-q", "-y", "-o", "/dev/null", "--explain", "--filter", filter];
        ran(words).code(0)
    };
    of("host 192.0.2.1 and udp")
        .says(&["host 192.0.2.1 and protocol UDP", "candidates, which are read"]);
    of("ether multicast").says(&["can't help with an expression that contains 'ether'"]);
    line("flows @ --explain --filter icmp", array).code(0).says(&["protocol ICMP"]);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("binding a port");
    let port = socket.local_addr().expect("it has one").port();
    line(&format!("replay @ --udp 127.0.0.1:{port} --speed 1000 --explain --filter udp"), array)
        .says(&["protocol UDP", "candidates, which are read"]);
}

#[test]
fn torn_and_damaged_indexes_make_a_search_slower_and_never_wrong() {
    let folder = scratch();
    let array = &indexed(&folder, "");
    let filters = filters(array);
    // Every other page of what lies between the chunks of each full segment and the index of them.
    for member in 0..3 {
        let file =
            File::options().read(true).write(true).open(array.join(format!("member{member}")));
        let file = file.expect("it is there");
        let length = file.metadata().expect("it is open").len();
        let mut page = [0; 4096];
        for at in (0..length / 4096).map(|page| page * 4096) {
            file.read_exact_at(&mut page, at).expect("it can be read");
            let is_table = &page[..8] == b"LTKFLOWS" && at % (3 * 4096) != 0;
            if is_table {
                file.write_all_at(&[0xA5; 100], at + 4096 + 50).expect("it can be written");
            } else if &page[..8] == b"LTKFLOWS" {
                file.write_all_at(&[0xA5; 100], at + 50).expect("it can be written");
            }
        }
    }
    agree(array, &filters, &[], 0);
    assert_eq!(asked("array check @", array)["damaged"], Value::Array(Vec::new()));
}

#[test]
fn a_search_finds_what_parity_gives_back_of_a_lost_member() {
    let folder = scratch();
    let array = &indexed(&folder, "--parity 1 --placement stripe");
    let filters = filters(array);
    agree(array, &filters[..6], &[], 0);
    fs::remove_file(array.join("member1")).expect("it is there");
    agree(array, &filters, &["--degraded"], 0);
}

#[test]
fn a_ring_that_wraps_over_its_indexes_is_searched_as_a_full_scan_does() {
    let folder = scratch();
    let array = &indexed(&folder, &format!("--when-full wrap {SMALL}"));
    // Over a part of it, over all of it, with an end in the middle of a segment.
    for (more, index) in [("30MB", "none"), ("13MB", "flows"), ("44MB", "none"), ("36MB", "hosts")]
    {
        let record =
            format!("record -q --from {TRAFFIC},seed=9 --memory 64MiB --until-bytes {more}");
        line(&format!("{record} --to @ --when-full wrap --index {index}"), array).code(0);
        let filters = filters(array);
        agree(array, &filters[..5], &[], 0);
        line("array index @", array).code(0);
        agree(array, &filters[..5], &[], 0);
    }
}

/// No segment is full, so that none has an index. The thread that gathers keys may be behind, so the answer is waited for.
#[test]
fn what_is_recorded_at_the_moment_is_narrowed_by_what_the_recorder_has_in_memory() {
    const EACH: u64 = 1000;
    let folder = scratch();
    let array = new_in(&folder, "array");
    let free = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let address = free.expect("there is a free port");
    let options = "--members 2 --member-size 256MiB --segment 64MiB --chunk 256KiB --memory 64MiB";
    let mut recorder = Recorder::start(&format!("--from udp:{address} --to @ {options}"), &array);
    let mut filters = vec!["port 9".to_owned()];
    for number in 1..=4 {
        let sender = UdpSocket::bind("127.0.0.1:0").expect("there is a free port");
        for _ in 0..EACH {
            sender.send_to(&[7; 8000], address).expect("it can be sent");
        }
        recorder.wait_for("what was sent", |event| {
            event["offered_packets"].as_u64().is_some_and(|packets| packets >= number * EACH)
        });
        filters.push(format!("udp port {}", sender.local_addr().expect("it is bound").port()));
    }
    wait_until("all of it can be read", || {
        let takes = asked("takes @", &array);
        takes[0]["ledger"]["offered"]["packets"] == 4 * EACH
    });
    agree(&array, &filters, &[], 0);
    let mut read = Vec::new();
    for filter in &filters {
        let mut index = Value::Null;
        wait_until("the recorder answers for all of it", || {
            let (_, mut said) = search(&array, filter, &[], 0);
            index = said["index"].take();
            index["in_memory"] == index["chunks"]
        });
        assert_eq!(number(&index, "not_indexed"), 0, "{index}");
        read.push((number(&index, "candidates"), number(&index, "chunks")));
    }
    // Each sender's packets lie in a fourth of the chunks, and in those in which another's begin or end.
    assert_eq!(read[0].0, 0, "no packet has port 9");
    assert!(read[1..].iter().all(|(read, listed)| *read > 0 && read * 5 < listed * 2), "{read:?}");
    wait_until("the recorder answers for all of it", || {
        let said = line("extract @ -q -y --filter igmp --explain -o /dev/null", &array).code(0);
        said.stderr.contains("candidates, which are read: 0")
            && said.stderr.contains("the recorder had in memory: ")
    });
    recorder.stop().code(0);
}

#[test]
fn an_array_is_not_indexed_while_it_is_recorded_on() {
    let folder = scratch();
    let array = &indexed(&folder, "");
    let recorder = Recorder::start("--from synthetic:1MB/s --to @", array);
    line("array index @", array).code(1).says(&["being recorded on", "nothing was written"]);
    recorder.stop().code(0);
    line("array index @", array).code(0);
}
