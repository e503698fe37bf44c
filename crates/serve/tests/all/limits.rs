//! Clients that want too much, and clients that do too little.

use std::io::{BufReader, Read};
use std::time::Duration;

use longtake_serve::Limits;

use crate::harness::{Answer, Recorded};

/// More than sockets and the service together hold for a client that does not read.
const MUCH: u64 = 60_000_000;

#[test]
fn more_requests_than_may_read_packets_are_refused_until_one_ends() {
    let recorded = Recorded::traffic(MUCH);
    let service = recorded.served_within(Limits { reading_max: 1, ..Limits::default() });
    let reading = service.ask("/api/v1/arrays/radar/packets");
    while service.metric("longtake_serve_reading") != Some(1.0) {}
    for path in ["packets", "flows"] {
        let answer = service.get(&format!("/api/v1/arrays/radar/{path}"));
        assert_eq!(answer.status, 503);
        assert!(answer.headers["retry-after"].parse::<u64>().is_ok());
        assert!(answer.json()["remedy"].as_str().is_some_and(|text| text.contains("again")));
    }
    // Those that only list are not concerned.
    service.json("/api/v1/arrays/radar/takes");
    assert_eq!(service.metric("longtake_serve_refused_total"), Some(2.0));
    drop(reading);
    service.wait_until_nobody_reads();
    service.json("/api/v1/arrays/radar/flows?top=1");
}

#[test]
fn a_client_that_accepts_nothing_loses_its_connection() {
    let recorded = Recorded::traffic(MUCH);
    let stalled_max = Duration::from_millis(200);
    let service = recorded.served_within(Limits { stalled_max, ..Limits::default() });
    let stalled = service.ask("/api/v1/arrays/radar/packets");
    // Once the answer begins, it reads; how long the limit lets that be seen depends on the machine.
    stalled.peek(&mut [0]).expect("the answer begins");
    service.wait_until_nobody_reads();
    assert!(!Answer::read(stalled).is_whole);
}

#[test]
fn a_request_whose_head_does_not_come_loses_its_connection() {
    let recorded = Recorded::traffic(1_000_000);
    let head_max = Duration::from_millis(50);
    let service = recorded.served_within(Limits { head_max, ..Limits::default() });
    let mut stream = service.send(b"GET /api/v1/arrays HTTP/1.1\r\nHost: localhost\r\nX: ");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok();
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{answer:?}");
}

#[test]
fn a_connection_beyond_the_most_waits_for_another_to_end() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served_within(Limits { connections_max: 1, ..Limits::default() });
    let first = service.connect();
    let second = service.ask("/api/v1/arrays");
    drop(first);
    assert_eq!(Answer::read(second).status, 200);
}

#[test]
fn the_end_of_the_service_cuts_what_is_under_way() {
    let recorded = Recorded::traffic(MUCH);
    let service = recorded.served();
    let mut reader = BufReader::new(service.ask("/api/v1/arrays/radar/packets"));
    let (status, _) = Answer::head(&mut reader).expect("it is answered");
    assert_eq!(status, 200);
    drop(service);
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).ok();
    assert!(!rest.ends_with(b"\r\n0\r\n\r\n"));
}
