//! Packets over HTTP are those that the library extracts, and a stream says how complete it is.

use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::fs::FileExt;

use longtake::array::{FlowOptions, Take};
use longtake::{FileFormat, Recording, Selection, Timestamp};
use longtake_serve::Limits;
use serde_json::Value;

use crate::harness::{Answer, Recorded, is_guarded};

const PATH: &str = "/api/v1/arrays/radar/packets";

/// A pcapng block, from its type to its second length: the last one.
fn last_block(file: &[u8]) -> &[u8] {
    let length = file[file.len() - 4..].try_into().expect("four bytes");
    &file[file.len() - u32::from_le_bytes(length) as usize..]
}

/// The completeness that a pcapng file states at its end, and all before that.
pub fn stated(file: &[u8]) -> (&[u8], Value) {
    let block = last_block(file);
    assert_eq!(block[..4], [0x0a, 0x0d, 0x0d, 0x0a], "the last block begins a section");
    let text = String::from_utf8_lossy(block);
    let (start, end) = (text.find("{\"completeness\""), text.rfind("}}"));
    let text = &text[start.expect("it is stated")..end.expect("it is stated") + 2];
    let stated: Value = serde_json::from_str(text).expect("it is JSON");
    (&file[..file.len() - block.len()], stated["completeness"].clone())
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Selections of some of a take's packets, each as the query of an address and for the library.
fn selections(recorded: &Recorded, take: &Take) -> Vec<(String, Selection)> {
    let middle = u64::midpoint(take.first_ns, take.last_ns);
    let some = Selection {
        since: Some(Timestamp::from_nanos(take.first_ns + 1)),
        until: Some(Timestamp::from_nanos(middle)),
        ..Selection::default()
    };
    let filtered = Selection { filter: "udp port 53".to_owned(), ..Selection::default() };
    let flows = recorded.open().flows(&Selection::default(), &FlowOptions::default());
    let shown = longtake::json::flows(&flows.expect("they can be counted"), true);
    let id =
        shown["flows"].as_array().expect("a list").iter().find_map(|f| f["community_id"].as_str());
    let id = id.expect("some flow has one");
    let of_flow =
        Selection { community_ids: vec![id.parse().expect("it is one")], ..Selection::default() };
    let encoded = id.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    vec![
        (String::new(), Selection::default()),
        (format!("since={}&until={}", seconds(take.first_ns + 1), seconds(middle)), some),
        ("filter=udp+port+53".to_owned(), filtered),
        (format!("community_id={encoded}"), of_flow),
        (
            "take=last".to_owned(),
            Selection { take: Some("last".to_owned()), ..Selection::default() },
        ),
    ]
}

#[test]
fn packets_are_those_that_extract_writes() {
    let recorded = Recorded::traffic(5_000_000);
    let service = recorded.served();
    let take = recorded.open().ledger("last").expect("it is there");
    let mut lengths = Vec::new();
    for (query, selection) in selections(&recorded, &take) {
        let expected = |format| recorded.extracted(&selection, format);
        let answer = service.get(&format!("{PATH}?{query}"));
        assert!(answer.status == 200 && answer.is_whole && is_guarded(&answer), "{query}");
        assert_eq!(answer.headers["longtake-complete"], "true");
        let (file, completeness) = stated(&answer.body);
        assert!(file == expected(FileFormat::Pcapng), "{query}: pcapng differs");
        assert_eq!(completeness["complete"], true, "{query}");
        lengths.push(file.len());
        let answer = service.get(&format!("{PATH}?format=pcap&{query}"));
        assert!(
            answer.is_whole && answer.body == expected(FileFormat::Pcap),
            "{query}: pcap differs"
        );
        let answer = service.get(&format!("{PATH}?format=jsonl&{query}"));
        let lines = answer.text();
        let (packets, last) = lines.trim_end().rsplit_once('\n').expect("there are lines");
        assert!(
            format!("{packets}\n").as_bytes() == expected(FileFormat::Jsonl),
            "{query}: JSON differs"
        );
        let last: Value = serde_json::from_str(last).expect("it is JSON");
        assert_eq!(last["completeness"], completeness);
    }
    assert!(lengths[1..4].iter().all(|&length| length > 300 && length < lengths[0]), "{lengths:?}");
    assert_eq!(service.metric("longtake_serve_cut_total"), Some(0.0));
}

#[test]
fn packets_come_out_while_a_recording_goes_on() {
    let recorded = Recorded::empty();
    let recording = Recording::builder("traffic:2MB/s", &recorded.place());
    let recording = recording.options(Recorded::options()).start().expect("it can be recorded on");
    let service = recorded.served();
    let last = loop {
        let listed = service.json("/api/v1/arrays/radar/takes");
        if let Some(last) = listed["takes"][0]["last_packet"].as_str() {
            break last.to_owned();
        }
    };
    let answer = service.get(&format!("{PATH}?until={last}"));
    assert!(answer.is_whole, "{}", answer.text());
    recording.stop();
    recording.wait().expect("it ends");
    let until = longtake::instant::When::at(last.parse().expect("a time"), Timestamp::MIN);
    let selection = Selection { until: Some(until), ..Selection::default() };
    let (file, completeness) = stated(&answer.body);
    assert!(file == recorded.extracted(&selection, FileFormat::Pcapng), "it differs");
    assert_eq!(completeness["complete"], true);
}

/// Changes a byte in the middle of the array's second chunk of packets.
fn damage(recorded: &Recorded) {
    let contents = recorded.open().contents().expect("it can be read");
    let chunk = contents.chunks[1];
    let member = recorded.path().join(format!("member{}", chunk.place.member));
    let file = File::options().read(true).write(true).open(member).expect("it is there");
    let at = chunk.place.offset + u64::from(chunk.record.summary.length) / 2;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("it can be read");
    file.write_all_at(&[byte[0] ^ 1], at).expect("it can be written");
    file.sync_all().expect("it can be flushed");
}

#[test]
fn what_could_not_be_read_is_stated_at_the_end_or_the_stream_is_cut() {
    // Of segments that are not full, only chunks before the damage are found.
    let recorded = Recorded::traffic(20_000_000);
    let service = recorded.served();
    damage(&recorded);
    let answer = service.get(PATH);
    assert!(answer.is_whole);
    let (_, completeness) = stated(&answer.body);
    assert_eq!(completeness["complete"], false);
    assert!(completeness["unreadable"]["packets"].as_u64() > Some(0), "{completeness}");
    let answer = service.get(&format!("{PATH}?format=jsonl"));
    assert!(answer.is_whole && answer.text().contains("{\"completeness\":{\"complete\":false"));
    assert_eq!(service.metric("longtake_serve_cut_total"), Some(0.0));
    // pcap has no room for a statement.
    let answer = service.get(&format!("{PATH}?format=pcap"));
    assert!(answer.status == 200 && !answer.is_whole);
    assert_eq!(service.metric("longtake_serve_cut_total"), Some(1.0));
}

#[test]
fn what_is_known_to_be_missing_is_stated_at_the_start() {
    let recorded = Recorded::traffic(5_000_000);
    let service = recorded.served();
    fs::remove_file(recorded.path().join("member1")).expect("it is there");
    let answer = service.get(&format!("{PATH}?format=pcap"));
    assert!(answer.is_whole);
    assert_eq!(answer.headers["longtake-complete"], "false");
    let (_, completeness) = stated(&service.get(PATH).body);
    assert!(completeness["missing"]["packets"].as_u64() > Some(0), "{completeness}");
    assert_eq!(completeness["missing_members"], serde_json::json!([1]));
}

#[test]
fn a_client_that_leaves_ends_the_reading() {
    let recorded = Recorded::traffic(40_000_000);
    let recording = Recording::builder("traffic:100kB/s", &recorded.place());
    let recording = recording.options(Recorded::options()).start().expect("it can be recorded on");
    // Beside a recording each request reads 250 kB/s, which takes minutes here.
    let service = recorded.served_within(Limits { reading_max: 2000, ..Limits::default() });
    // A filter that accepts nothing sends nothing whose failure would tell. No index spares it a chunk, so that it can't end early.
    let none = "filter=less+10";
    let paths =
        [PATH.to_owned(), format!("{PATH}?{none}"), format!("/api/v1/arrays/radar/flows?{none}")];
    for (left, path) in (1u8..).zip(paths) {
        let client = service.ask(&path);
        while service.metric("longtake_serve_reading") != Some(1.0) {}
        drop(client);
        service.wait_until_nobody_reads();
        assert_eq!(service.metric("longtake_serve_left_total"), Some(left.into()), "{path}");
    }
    recording.stop();
    recording.wait().expect("it ends");
}

#[test]
fn the_head_of_an_answer_can_be_had_alone() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    let head = format!("HEAD {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut reader = BufReader::new(service.send(head.as_bytes()));
    let (status, headers) = Answer::head(&mut reader).expect("it is answered");
    assert_eq!((status, headers["longtake-complete"].as_str()), (200, "true"));
    service.wait_until_nobody_reads();
}

#[test]
fn what_cannot_be_extracted_is_refused_before_anything_is_sent() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    for (status, query) in [
        (400, "filter=nonsense"),
        (400, "format=parquet"),
        (400, "community_id=1:x"),
        (400, "since=now&until=-1h"),
        (400, "rate=1"),
        (404, "take=zzz"),
    ] {
        service.failure(status, &format!("{PATH}?{query}"));
    }
    assert_eq!(service.metric("longtake_serve_cut_total"), Some(0.0));
}
