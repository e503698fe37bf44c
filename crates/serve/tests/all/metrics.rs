//! Metrics say what the ledger does.

use std::collections::BTreeMap;
use std::time::Duration;

use longtake::Recording;
use longtake_serve::Limits;

use crate::harness::{Recorded, is_guarded};

#[test]
fn metrics_are_those_of_the_newest_take_s_ledger() {
    let recorded = Recorded::traffic(1_000_000);
    recorded.record(2_000_000);
    let service = recorded.served();
    let shown = service.json("/api/v1/arrays/radar/takes/last/ledger");
    let take = shown["take"].as_str().expect("a text");
    let mut compared = 0;
    let mut same = |name: &str, stage: &str, count: &serde_json::Value| {
        for unit in ["packets", "bytes"] {
            let series = format!(
                "longtake_take_{name}_{unit}_total{{array=\"radar\",take=\"{take}\"{stage}}}"
            );
            assert_eq!(service.metric(&series), count[unit].as_f64(), "{series}");
            compared += 1;
        }
    };
    let ledger = &shown["ledger"];
    // Every count that the ledger has: a new one is exported, too.
    for (name, count) in ledger.as_object().expect("an object") {
        if count["packets"].is_number() {
            same(name, "", count);
        }
    }
    for name in ["overwritten", "missing"] {
        same(name, "", &shown[name]);
    }
    for (stage, count) in ledger["lost"].as_object().expect("an object") {
        same("lost", &format!(",stage=\"{stage}\""), count);
    }
    let text = service.get("/metrics").text();
    let exported =
        text.lines().filter(|line| line.starts_with("longtake_take_") && line.contains("_total{"));
    assert_eq!(exported.count(), compared, "{text}");
    let stored = ledger["stored"]["packets"].as_f64();
    assert!(stored > Some(1000.0), "{stored:?}");
}

#[test]
fn metrics_are_openmetrics() {
    let recorded = Recorded::traffic(1_000_000);
    let answer = recorded.served().get("/metrics");
    assert!(answer.status == 200 && is_guarded(&answer));
    assert!(
        answer.headers["content-type"].starts_with("application/openmetrics-text; version=1.0.0")
    );
    let text = answer.text();
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    let mut types = BTreeMap::new();
    for line in text.lines() {
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["#", "TYPE", name, kind] => drop(types.insert(*name, *kind)),
            ["#", ..] => {}
            [series, value] => {
                let name = series.split('{').next().expect("a name");
                let of_counter = name.strip_suffix("_total").and_then(|name| types.get(name));
                assert!(
                    of_counter == Some(&"counter") || types.get(name) == Some(&"gauge"),
                    "{line}"
                );
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
            _ => panic!("{line}"),
        }
    }
    assert!(types.len() > 20, "{types:?}");
}

#[test]
fn an_array_that_cannot_be_opened_is_down() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    assert_eq!(service.metric("longtake_array_up{array=\"radar\"}"), Some(1.0));
    std::fs::remove_dir_all(recorded.path()).expect("it is there");
    assert_eq!(service.metric("longtake_array_up{array=\"radar\"}"), Some(0.0));
    assert_eq!(service.metric("longtake_array_recording{array=\"radar\"}"), None);
    let listed = service.json("/api/v1/arrays");
    assert!(listed["arrays"][0]["error"].is_string(), "{listed}");
}

#[test]
fn a_recording_under_way_tells_its_own_ledger_and_buffers() {
    let recorded = Recorded::traffic(1_000_000);
    let recording = Recording::builder("traffic:2MB/s", &recorded.place());
    let recording = recording.options(Recorded::options()).start().expect("it can be recorded on");
    let take = recording.started().take;
    let scraped_age_max = Duration::from_secs(1 << 30);
    let service = recorded.served_within(Limits { scraped_age_max, ..Limits::default() });
    let of_take = format!("array=\"radar\",take=\"{take}\"");
    let stored = format!("longtake_take_stored_packets_total{{{of_take}}}");
    while service.metric(&stored) <= Some(0.0) {}
    assert_eq!(service.metric("longtake_array_recording{array=\"radar\"}"), Some(1.0));
    assert!(service.metric("longtake_recorder_buffers{array=\"radar\"}") > Some(3.0));
    let of_member = "{array=\"radar\",member=\"1\"}";
    let member = |name: &str| service.metric(&format!("longtake_member_{name}{of_member}"));
    assert_eq!(member("working"), Some(1.0));
    // Packets are stored, so that both members have completed writes, or will.
    while member("write_latency_seconds_count") < Some(1.0) {}
    assert!(member("write_latency_seconds_sum") > Some(0.0));
    assert!(member("written_bytes_total") > Some(0.0));
    while member("write_rate_bytes_per_second_count") < Some(1.0) {}
    assert!(service.metric("longtake_recorder_segments_to_index{array=\"radar\"}").is_some());
    // The array is not read again: only what the recording tells goes on.
    let (newest, first) =
        ("longtake_array_last_packet_seconds{array=\"radar\"}", service.metric(&stored));
    let read = service.metric(newest);
    while service.metric(&stored) == first {}
    assert!(read.is_some() && service.metric(newest) == read);
    let status = longtake::control::status(recorded.open().uuid()).expect("it answers");
    assert_eq!(status["take"], take.to_string());
    assert_eq!(status["ledger"]["balances"], true);
    recording.stop();
    let account = recording.wait().expect("it ends");
    assert_eq!(service.metric(&stored), Some(account.ledger.stored.packets as f64));
    assert!(service.metric(newest) > read);
    assert_eq!(service.metric("longtake_recorder_buffers{array=\"radar\"}"), None);
    assert_eq!(service.metric("longtake_array_recording{array=\"radar\"}"), Some(0.0));
    longtake::control::status(recorded.open().uuid()).expect_err("nobody is there");
}
