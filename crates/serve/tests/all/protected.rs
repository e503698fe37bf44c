//! Protected spans over HTTP are those of the library.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use format::Superblock;
use format::layout::{Layout, SUPERBLOCK_BYTES};
use format::superblock::{PROTECTED_MAX, Protected};
use longtake::instant::utc;
use longtake::{Recording, TimeRange, Timestamp, array};
use longtake_serve::{Limits, Options};
use serde_json::{Value, json};

use crate::access::{Tokens, bearer, protected};
use crate::document::has_form;
use crate::harness::{Answer, Recorded, Service};

const PATH: &str = "/api/v1/arrays/radar/protected";

/// The answer to a change that is asked for as it should be.
fn change(service: &Service, tokens: &Tokens, method: &str, body: &Value) -> Answer {
    let headers = format!("Content-Type: application/json\r\n{}", bearer(&tokens.protect));
    Answer::read(service.request(method, PATH, &headers, &body.to_string()))
}

/// Protects and releases spans over HTTP and by the library, with the same result.
fn is_the_same(recorded: &Recorded, service: &Service, tokens: &Tokens) {
    let at = |second: u64| Timestamp::from_nanos(second * 1_000_000_000);
    let (early, late) =
        (TimeRange { from: at(100), to: at(200) }, TimeRange { from: at(300), to: at(400) });
    let as_body = |span: TimeRange| json!({"since": utc(span.from), "until": utc(span.to)});
    let mut labelled = as_body(early);
    labelled["label"] = json!("overflight");
    let answer = change(service, tokens, "POST", &labelled);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let expected = json!({"from": utc(early.from), "to": utc(early.to), "protected_ranges": 1});
    assert_eq!(answer.json(), expected);
    assert_eq!(change(service, tokens, "POST", &as_body(late)).json()["protected_ranges"], 2);
    let over_http = protected(recorded);
    assert_eq!(change(service, tokens, "DELETE", &as_body(early)).json()["protected_ranges"], 1);
    let left = protected(recorded);
    assert_eq!(change(service, tokens, "DELETE", &as_body(late)).json()["protected_ranges"], 0);
    assert_eq!(change(service, tokens, "DELETE", &as_body(late)).status, 409);
    let protect = |span, label| {
        array::protect::protect(&recorded.place(), span, label, Box::new(|_| ()))
            .expect("it can be")
    };
    let release = |span| {
        array::protect::unprotect(&recorded.place(), span, Box::new(|_| ())).expect("it is there")
    };
    protect(early, "overflight");
    protect(late, "");
    assert_eq!(over_http, protected(recorded));
    release(early);
    assert_eq!(left, protected(recorded));
    release(late);
}

#[test]
fn spans_protected_over_http_are_those_that_the_program_protects() {
    let (recorded, tokens) = (Recorded::traffic(1_000_000), Tokens::new());
    let service = recorded.served_as(tokens.options());
    is_the_same(&recorded, &service, &tokens);
    // The recording under way is asked.
    let recording = Recording::builder("traffic:100kB/s", &recorded.place());
    let recording = recording.options(Recorded::options()).start().expect("it can be recorded on");
    is_the_same(&recorded, &service, &tokens);
    recording.stop();
    recording.wait().expect("it ends");
}

/// Protects as many spans as a superblock has room for, on the members themselves: each change by itself would flush them.
fn protect_as_many_as_may(recorded: &Recorded) {
    let at = Timestamp::from_nanos(1);
    let span = Protected { from: at, to: at, made: at, label: String::new() };
    for member in ["member0", "member1"] {
        let member = File::options().read(true).write(true).open(recorded.path().join(member));
        let member = member.expect("it is there");
        let length = member.metadata().expect("it is there").len();
        for offset in [0, Layout::copy_offset(length)] {
            let mut bytes = vec![0; SUPERBLOCK_BYTES as usize];
            member.read_exact_at(&mut bytes, offset).expect("it is there");
            let mut superblock = Superblock::read(&bytes, offset).expect("it is sound");
            superblock.protected = vec![span.clone(); PROTECTED_MAX];
            member.write_all_at(&superblock.encode(offset), offset).expect("there is room");
        }
    }
}

#[test]
fn every_documented_answer_to_a_change_is_given() {
    let (recorded, tokens) = (Recorded::traffic(1_000_000), Tokens::new());
    let service = recorded.served_as(tokens.options());
    let document = service.json("/api/v1/openapi.json");
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    assert_eq!(document["components"]["securitySchemes"]["certificate"]["type"], "mutualTLS");
    assert_eq!(document["security"], json!([{}, {"token": []}, {"certificate": []}]));
    let (may, may_not) = (bearer(&tokens.admin), bearer(&tokens.read));
    let (span, json_type) =
        (r#"{"since": "1", "until": "2"}"#, "Content-Type: application/json\r\n");
    let with = |token: &str| format!("{json_type}{token}");
    let elsewhere = "/api/v1/arrays/sonar/protected";
    let mut given = BTreeSet::new();
    let mut ask = |status: u16, method: &str, path: &str, headers: &str, body: &str| {
        let answer = Answer::read(service.request(method, path, headers, body));
        assert_eq!(answer.status, status, "{method} {body}: {}", answer.text());
        let of_method =
            &document["paths"]["/api/v1/arrays/{array}/protected"][method.to_lowercase()];
        assert_eq!(of_method["security"], json!([{"token": []}]));
        let described = &of_method["responses"][status.to_string()]["content"]["application/json"];
        assert!(described.is_object(), "{method} {status}");
        has_form(&document, &described["schema"], &answer.json(), body);
        given.insert((method.to_lowercase(), status.to_string()));
    };
    for method in ["POST", "DELETE"] {
        ask(200, method, PATH, &with(&may), span);
        ask(401, method, PATH, json_type, span);
        ask(403, method, PATH, &with(&may_not), span);
        ask(404, method, elsewhere, &with(&may), span);
        for text in ["", "text/plain", "application/x-www-form-urlencoded"] {
            ask(415, method, PATH, &format!("Content-Type: {text}\r\n{may}"), span);
        }
        let long = json!({"since": "1", "until": "2".repeat(20_000)}).to_string();
        for body in [
            "",
            "{",
            "[]",
            r#"{"since": "1"}"#,
            r#"{"since": "yesterday", "until": "2"}"#,
            r#"{"since": "2", "until": "1"}"#,
            r#"{"since": "1", "until": "2", "lable": "x"}"#,
            &long,
        ] {
            ask(400, method, PATH, &with(&may), body);
        }
    }
    let label = json!({"since": "1", "until": "2", "label": "x".repeat(41)}).to_string();
    ask(400, "POST", PATH, &with(&may), &label);
    ask(409, "DELETE", PATH, &with(&may), span);
    protect_as_many_as_may(&recorded);
    ask(409, "POST", PATH, &with(&may), span);
    fs::remove_dir_all(recorded.path()).expect("it is there");
    ask(500, "POST", PATH, &with(&may), span);
    ask(500, "DELETE", PATH, &with(&may), span);
    let path = &document["paths"]["/api/v1/arrays/{array}/protected"];
    let documented = path.as_object().expect("an object").iter().flat_map(|(method, item)| {
        let statuses = item["responses"].as_object().expect("an object").keys();
        statuses.map(|status| (method.clone(), status.clone()))
    });
    assert_eq!(given, documented.collect());
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let (recorded, tokens) = (Recorded::empty(), Tokens::new());
    recorded.record(100_000);
    let limits = Limits { head_max: Duration::from_millis(50), ..Limits::default() };
    let service = recorded.served_as(Options { limits, ..tokens.options() });
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 30\r\n\
         Content-Type: application/json\r\n{}\r\n",
        bearer(&tokens.protect)
    );
    assert_eq!(Answer::read(service.send(head.as_bytes())).status, 408);
}
