//! Requests of strangers and of programs gone wrong.

use std::io::Read;

use crate::harness::{Answer, Recorded, Service, is_guarded};

fn lives(service: &Service) {
    assert_eq!(service.json("/api/v1/arrays")["arrays"][0]["id"], "radar");
}

/// The status that some bytes are answered with; None if the connection is closed without an answer.
fn status(service: &Service, bytes: &[u8]) -> Option<u16> {
    let mut stream = service.send(bytes);
    stream.shutdown(std::net::Shutdown::Write).ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok();
    Answer::head(&mut answer.as_slice()).map(|(status, _)| status)
}

#[test]
fn a_page_that_calls_the_service_by_its_own_name_gets_nothing() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    for head in [
        "GET /api/v1/arrays HTTP/1.1\r\nHost: evil.example\r\n",
        "GET /api/v1/arrays HTTP/1.1\r\nHost: evil.example:7878\r\n",
        "GET /metrics HTTP/1.1\r\nHost: localhost.evil.example\r\n",
        "GET /metrics HTTP/1.1\r\n",
        "GET /metrics HTTP/1.0\r\n",
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n",
        "GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n",
        "GET /nowhere HTTP/1.1\r\nHost: 10.0.0.1\r\n",
    ] {
        let answer =
            Answer::read(service.send(format!("{head}Connection: close\r\n\r\n").as_bytes()));
        assert_eq!(answer.status, 421, "{head}");
        assert!(is_guarded(&answer) && answer.json()["remedy"].is_string(), "{head}");
    }
    for host in ["localhost", "localhost:1", "127.0.0.1", "[::1]:7878"] {
        let head = format!(
            "GET /api/v1/arrays HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\n"
        );
        let answer =
            Answer::read(service.send(format!("{head}Connection: close\r\n\r\n").as_bytes()));
        assert!(answer.status == 200 && is_guarded(&answer), "{head}");
    }
}

#[test]
fn what_is_not_there_is_not_found_whatever_it_is_called() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    for path in [
        "/nowhere",
        "/api/v1/arrays/",
        "/api/v1/arrays/../../etc/passwd",
        "/api/v1/arrays/../../etc/passwd/takes",
        "/api/v1/arrays/..%2f..%2fetc%2fpasswd/takes",
        "/api/v1/arrays/%2fetc/takes",
        "/api/v1/arrays/%00/takes",
        "/api/v1/arrays/./takes",
        "/api/v1/arrays/rada/takes",
        "/api/v1/arrays/radar/takes/zzz/ledger",
        "/api/v1/arrays/radar/takes/..%2f/ledger",
        "/api/v1/arrays/radar/packets/",
        "/api/v2/arrays",
    ] {
        service.failure(404, path);
    }
    // Also the place of its files is no name of an array.
    let place = recorded.place().replace('/', "%2f");
    service.failure(404, &format!("/api/v1/arrays/{place}/takes"));
    service.failure(400, "/api/v1/arrays/%ff/takes");
    lives(&service);
}

#[test]
fn nothing_can_be_changed() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        for path in ["/api/v1/arrays", "/api/v1/arrays/radar/packets", "/metrics"] {
            let head =
                format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            let answer = Answer::read(service.send(head.as_bytes()));
            assert_eq!(answer.status, 405, "{method} {path}");
            assert!(is_guarded(&answer) && answer.json()["error"].is_string());
        }
    }
    lives(&service);
}

#[test]
fn garbage_is_refused_and_the_service_lives() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    let long = "x".repeat(100_000);
    let many = "X: 1\r\n".repeat(1000);
    for (bytes, statuses) in [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), &[400][..]),
        (b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n".to_vec(), &[400, 505]),
        (b"nonsense\r\n\r\n".to_vec(), &[400]),
        (b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), &[400]),
        (b"GET / HTTP/1.1\r\nHo st: localhost\r\n\r\n".to_vec(), &[400]),
        (format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes(), &[414, 431]),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n").into_bytes(), &[431]),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n").into_bytes(), &[431]),
    ] {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
        // What is refused before all of it has come may close the connection before the answer is read.
        if let Some(status) = status(&service, &bytes) {
            assert!(statuses.contains(&status), "{shown}: {status}");
        }
        lives(&service);
    }
    for truncated in
        ["", "GET", "GET / HTTP/1.1\r\nHost: local", "GET / HTTP/1.1\r\nHost: localhost\r\n"]
    {
        assert!(status(&service, truncated.as_bytes()).is_none_or(|status| status == 400));
    }
    lives(&service);
}
