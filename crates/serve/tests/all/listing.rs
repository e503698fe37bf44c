//! Arrays, takes and ledgers are those that the library lists.

use std::fs;

use longtake::Recording;
use longtake::json;
use serde_json::Value;

use crate::harness::{Recorded, Service};

/// What is shown without its completeness, which is returned beside it.
fn apart(mut shown: Value) -> (Value, Value) {
    let completeness = shown.as_object_mut().expect("an object").remove("completeness");
    (shown, completeness.expect("every answer has it"))
}

#[test]
fn arrays_are_listed_with_members_capacity_and_span() {
    let recorded = Recorded::traffic(2_000_000);
    let listed = recorded.served().json("/api/v1/arrays");
    let [array] = listed["arrays"].as_array().expect("a list").as_slice() else {
        panic!("{listed}")
    };
    let take = recorded.open().ledger("last").expect("it is there");
    assert_eq!(array["id"], "radar");
    assert_eq!(array["uuid"], recorded.open().uuid().to_string());
    assert_eq!((&array["members"], &array["takes"]), (&2.into(), &1.into()));
    assert_eq!((&array["recording"], &array["error"]), (&false.into(), &Value::Null));
    let shown = json::take(&take, Default::default());
    assert_eq!(array["first_packet"], shown["first_packet"]);
    assert_eq!(array["last_packet"], shown["last_packet"]);
    assert!(
        array["used_bytes"].as_u64() > Some(2_000_000)
            && array["used_bytes"].as_u64() < array["data_bytes"].as_u64()
    );
}

#[test]
fn an_array_is_described_as_the_program_does() {
    let recorded = Recorded::traffic(2_000_000);
    let (shown, completeness) = apart(recorded.served().json("/api/v1/arrays/radar"));
    let described = recorded.open().describe().expect("it can be read");
    assert_eq!(shown, json::described(&described));
    assert_eq!(completeness["complete"], true);
}

#[test]
fn takes_and_ledgers_are_those_of_the_program() {
    let recorded = Recorded::traffic(1_000_000);
    recorded.record(2_000_000);
    let service = recorded.served();
    let mut array = recorded.open();
    let takes = array.takes().expect("they can be read");
    let rejections = array.rejections(&takes).expect("they can be read");
    let expected: Vec<Value> =
        takes.iter().zip(rejections).map(|(take, of)| json::take(take, of)).collect();
    let uuid = array.uuid();
    for id in ["radar".to_owned(), uuid.to_string(), uuid.to_string().to_uppercase()] {
        let listed = service.json(&format!("/api/v1/arrays/{id}/takes"));
        assert_eq!(listed["takes"], Value::from(expected.clone()));
        assert_eq!(listed["completeness"]["complete"], true);
    }
    let first = takes[0].id.uuid;
    for (name, take) in [(first.to_string(), 0), ("last".to_owned(), 1)] {
        let path = format!("/api/v1/arrays/radar/takes/{name}/ledger");
        let (ledger, completeness) = apart(service.json(&path));
        assert_eq!((&ledger, &completeness["complete"]), (&expected[take], &true.into()));
    }
}

#[test]
fn a_take_under_way_is_listed_as_such() {
    let recorded = Recorded::empty();
    let recording = Recording::builder("traffic:1MB/s", &recorded.place());
    let recording = recording.options(Recorded::options()).start().expect("it can be recorded on");
    let service = recorded.served();
    loop {
        let listed = service.json("/api/v1/arrays/radar/takes");
        assert_eq!(listed["recording"], true);
        let last = listed["takes"].as_array().expect("a list").last();
        if last.is_some_and(|take| take["state"] == "being recorded") {
            break;
        }
    }
    assert_eq!(service.metric("longtake_array_recording{array=\"radar\"}"), Some(1.0));
    recording.stop();
    recording.wait().expect("it ends");
    assert_eq!(service.json("/api/v1/arrays/radar/takes")["recording"], false);
    assert_eq!(service.metric("longtake_array_recording{array=\"radar\"}"), Some(0.0));
}

#[test]
fn what_a_missing_member_held_is_stated() {
    let recorded = Recorded::traffic(3_000_000);
    let service = recorded.served();
    fs::remove_file(recorded.path().join("member1")).expect("it is there");
    let listed = service.json("/api/v1/arrays/radar/takes");
    let completeness = &listed["completeness"];
    assert_eq!(completeness["complete"], false);
    assert_eq!(completeness["missing_members"], serde_json::json!([1]));
    assert_eq!(completeness["missing"], listed["takes"][0]["missing"]);
    assert!(completeness["missing"]["packets"].as_u64() > Some(0));
    assert_eq!(service.metric("longtake_member_up{array=\"radar\",member=\"1\"}"), Some(0.0));
    assert_eq!(service.metric("longtake_member_up{array=\"radar\",member=\"0\"}"), Some(1.0));
}

#[test]
fn an_array_that_is_replaced_is_not_taken_for_the_old_one() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    fs::remove_dir_all(recorded.path()).expect("it is there");
    recorded.record(1_000_000);
    let failure = service.failure(404, "/api/v1/arrays/radar/takes");
    assert!(failure["error"].as_str().is_some_and(|error| error.contains("another array")));
}

#[test]
fn arrays_of_the_same_name_are_called_by_their_uuids() {
    let (one, other) = (Recorded::traffic(1_000_000), Recorded::traffic(1_000_000));
    let service = Service::start(&longtake_serve::Options {
        arrays: vec![one.place(), other.place(), one.place()],
        listen: ([127, 0, 0, 1], 0).into(),
        ..longtake_serve::Options::default()
    });
    let listed = service.json("/api/v1/arrays");
    let mut expected = [one, other].map(|array| array.open().uuid().to_string());
    expected.sort();
    let ids = listed["arrays"].as_array().expect("a list").iter().map(|array| array["id"].clone());
    assert_eq!(ids.collect::<Vec<_>>(), expected);
    service.failure(404, "/api/v1/arrays/radar/takes");
}
