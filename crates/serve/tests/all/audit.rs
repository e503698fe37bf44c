//! The audit log has exactly the requests that were made, and no request is answered without it.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use longtake_serve::{Options, Server};
use serde_json::{Value, json};

use crate::access::{Tokens, bearer, protected};
use crate::harness::{Answer, Recorded};

/// The lines of a log that tell of an event.
fn lines(log: &Path, event: &str) -> Vec<Value> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("it is JSON"));
    lines.filter(|line: &Value| line["event"] == event).collect()
}

#[test]
fn the_log_has_each_request_with_its_token_and_its_answer() {
    let (recorded, tokens) = (Recorded::traffic(1_000_000), Tokens::new());
    let log = tokens.beside("audit.jsonl");
    let service = recorded.served_as(Options { audit: Some(log.clone()), ..tokens.options() });
    let (reader, protector) = (bearer(&tokens.read), bearer(&tokens.protect));
    let json_type = "Content-Type: application/json\r\n";
    let body = r#"{"since": "1", "until": "2"}"#;
    let protect = format!("{json_type}{protector}");
    let is_read = format!("/nowhere?token={}", tokens.read);
    let array = "/api/v1/arrays/radar";
    let mut expected = Vec::new();
    for (who, headers, method, path, body) in [
        (json!("loopback"), "", "GET", "/metrics".to_owned(), ""),
        (json!("reader"), &reader, "GET", format!("{array}/packets?filter=tcp"), ""),
        (json!("reader"), &reader, "GET", format!("{array}/flows?top=3"), ""),
        (json!("reader"), &reader, "HEAD", format!("{array}/packets"), ""),
        (json!("reader"), &reader, "GET", format!("{array}/packets?filter=nonsense"), ""),
        (json!("reader"), &reader, "GET", is_read, ""),
        (json!(null), "Authorization: Bearer nonsense\r\n", "GET", "/metrics".to_owned(), ""),
        (json!("loopback"), json_type, "POST", format!("{array}/protected"), body),
        (json!("protector"), &protect, "POST", format!("{array}/protected"), body),
        (json!("protector"), &protect, "DELETE", format!("{array}/protected"), body),
        (json!("reader"), &reader, "POST", "/query".to_owned(), "tcp and port 443"),
        (json!(null), "Authorization: Bearer nonsense\r\n", "POST", "/query".to_owned(), "tcp"),
    ] {
        let stream = service.request(method, &path, headers, body);
        let (status, bytes) = match method {
            "HEAD" => (Answer::head(&mut std::io::BufReader::new(stream)).expect("a head").0, 0),
            _ => {
                let answer = Answer::read(stream);
                (answer.status, answer.body.len())
            }
        };
        let path = path.replace(&tokens.read["longtake_".len()..], "***");
        expected.push(json!({
            "token": who, "method": method, "path": path, "status": status, "bytes": bytes, "complete": true,
            "certificate": null, "body": if body.is_empty() || who.is_null() { json!(null) } else { json!(body) },
        }));
    }
    let statuses: Vec<u64> = expected.iter().filter_map(|line| line["status"].as_u64()).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 400, 404, 401, 401, 200, 200, 200, 401]);
    let (asked, answered) = (lines(&log, "request"), lines(&log, "answer"));
    assert_eq!((asked.len(), answered.len()), (expected.len(), expected.len()));
    for ((asked, answered), expected) in asked.iter().zip(&answered).zip(&expected) {
        for (key, value) in expected.as_object().expect("an object") {
            assert_eq!(&answered[key], value, "{answered}");
        }
        for key in ["time", "request", "token", "certificate", "peer", "method", "path", "body"] {
            assert_eq!(asked[key], answered[key], "{asked}");
        }
        assert!(asked["peer"].as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")));
        assert!(answered["seconds"].as_f64() > Some(0.0), "{answered}");
    }
    let text = fs::read_to_string(&log).expect("it is there");
    for secret in [&tokens.read, &tokens.protect] {
        assert!(!text.contains(&secret["longtake_".len()..]), "{text}");
    }
    assert_eq!(log.metadata().expect("it is there").mode() & 0o777, 0o600);
}

#[test]
fn a_client_that_leaves_is_entered_as_such() {
    let (recorded, tokens) = (Recorded::traffic(60_000_000), Tokens::new());
    let log = tokens.beside("audit.jsonl");
    let service = recorded.served_as(Options { audit: Some(log.clone()), ..tokens.options() });
    let reading = service.ask("/api/v1/arrays/radar/packets");
    while lines(&log, "request").is_empty() {}
    drop(reading);
    let answered = loop {
        if let [answered] = &lines(&log, "answer")[..] {
            break answered.clone();
        }
    };
    assert_eq!(answered["complete"], false, "{answered}");
}

#[test]
fn what_cannot_be_entered_is_refused_and_not_carried_out() {
    let (recorded, tokens) = (Recorded::traffic(1_000_000), Tokens::new());
    let folder = tokens.beside("logs");
    fs::create_dir(&folder).expect("it is new");
    let log = folder.join("audit.jsonl");
    let service = recorded.served_as(Options { audit: Some(log.clone()), ..tokens.options() });
    service.json("/api/v1/arrays");
    fs::rename(&folder, tokens.beside("moved")).expect("it is there");
    for path in ["/api/v1/arrays/radar/packets", "/metrics", "/"] {
        assert!(service.failure(500, path)["error"].to_string().contains("audit log"), "{path}");
    }
    let headers = format!("Content-Type: application/json\r\n{}", bearer(&tokens.admin));
    let path = "/api/v1/arrays/radar/protected";
    let answer = service.request("POST", path, &headers, r#"{"since": "1", "until": "2"}"#);
    assert_eq!(Answer::read(answer).status, 500);
    assert_eq!(protected(&recorded), json!([]));
    // A log that was renamed is continued by another one.
    fs::create_dir(&folder).expect("it is new");
    service.json("/api/v1/arrays");
    assert_eq!(lines(&log, "request").len(), 1);
    assert_eq!(lines(&tokens.beside("moved/audit.jsonl"), "request").len(), 1);
}

#[test]
fn a_service_whose_log_cannot_be_written_does_not_start() {
    let (recorded, tokens) = (Recorded::traffic(100_000), Tokens::new());
    let (folder, other) = (tokens.beside(""), tokens.store.path());
    let places = [Path::new("/dev/null"), Path::new("/proc/none"), &folder, other];
    let before = fs::read(other).expect("it is there");
    for place in places.map(|place: &Path| place.to_str().expect("it is text")) {
        let options = Options {
            arrays: vec![recorded.place()],
            audit: Some(place.into()),
            ..tokens.options()
        };
        let refused = Server::bind(&options).expect_err("it does not start").to_string();
        assert!(refused.contains("--audit") && refused.contains(place), "{refused}");
    }
    assert!(before == fs::read(other).expect("it is there"));
}

#[test]
fn a_start_that_fails_for_another_reason_leaves_no_log() {
    let (recorded, tokens) = (Recorded::traffic(100_000), Tokens::new());
    let log = tokens.beside("audit.jsonl");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let options =
        Options { arrays: vec![recorded.place()], audit: Some(log.clone()), ..tokens.options() };
    let nowhere = tokens.beside("nowhere").display().to_string();
    let failing = [
        Options { arrays: vec![nowhere], ..options.clone() },
        Options { listen: taken.local_addr().expect("it has one"), ..options.clone() },
        Options { pcap_over_ip: Some(([127, 0, 0, 1], 0).into()), ..options.clone() },
    ];
    for options in failing {
        Server::bind(&options).expect_err("it does not start");
        assert!(!log.exists(), "{options:?}");
    }
    Server::bind(&options).expect("it starts");
    assert!(log.exists());
}
