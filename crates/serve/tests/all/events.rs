//! Live events: what clients are sent, when, and how many clients there may be.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::time::Duration;

use longtake::Recording;
use longtake_serve::Limits;
use serde_json::Value;

use crate::harness::{Answer, Recorded, Service};

const PATH: &str = "/api/v1/events";

/// A stream of events.
pub struct EventStream(BufReader<TcpStream>);

/// What comes in a stream.
#[derive(Debug)]
pub enum Sent {
    Event { number: u64, data: Value },
    Comment,
}

impl EventStream {
    pub fn open(service: &Service) -> Self {
        let mut reader = BufReader::new(service.ask(PATH));
        let (status, headers) = Answer::head(&mut reader).expect("it is answered");
        assert_eq!((status, headers["content-type"].as_str()), (200, "text/event-stream"));
        Self(reader)
    }

    /// The next event or comment. Lines of neither are those of HTTP, which sends each in a chunk.
    pub fn next(&mut self) -> Sent {
        let mut number = None;
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("it is text") > 0, "the stream has ended");
            let line = line.trim_end();
            if line.starts_with(':') {
                return Sent::Comment;
            } else if let Some(id) = line.strip_prefix("id: ") {
                number = Some(id.parse().expect("a number"));
            } else if let Some(data) = line.strip_prefix("data: ") {
                let data = serde_json::from_str(data).expect("it is JSON");
                return Sent::Event { number: number.expect("the number comes first"), data };
            }
        }
    }

    /// The next event, and its number.
    pub fn event(&mut self) -> (u64, Value) {
        loop {
            if let Sent::Event { number, data } = self.next() {
                return (number, data);
            }
        }
    }

    /// The first of the next events that is as wanted.
    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (_, data) = self.event();
            if wanted(&data) {
                return data;
            }
        }
    }
}

fn stored(event: &Value) -> Option<u64> {
    event["status"]["ledger"]["stored"]["packets"].as_u64()
}

#[test]
fn events_tell_of_a_recording_from_before_its_start_until_after_its_end() {
    let recorded = Recorded::traffic(1_000_000);
    // The array is read when a recording begins or ends, and not for the counters between.
    let limits = Limits {
        scraped_age_max: Duration::from_secs(1 << 30),
        quiet_max: Duration::from_millis(1200),
        ..Limits::default()
    };
    let service = recorded.served_within(limits);
    let mut stream = EventStream::open(&service);
    let (first, before) = stream.event();
    let ledger = service.json("/api/v1/arrays/radar/takes/last/ledger");
    assert_eq!((&before["array"], &before["recording"]), (&"radar".into(), &false.into()));
    assert_eq!((&before["status"], &before["rate"]), (&Value::Null, &Value::Null));
    assert_eq!(before["take"]["ledger"], ledger["ledger"]);
    assert_eq!(before["gauges"]["last_packet"], ledger["last_packet"]);
    assert!(before["gauges"]["used_bytes"].as_u64() > Some(1_000_000));
    let recording = Recording::builder("traffic:2MB/s", &recorded.place());
    let recording = recording.options(Recorded::options()).start().expect("it can be recorded on");
    let take = recording.started().take.to_string();
    let one = stream.until(|event| stored(event) > Some(0) && event["rate"].is_object());
    assert_eq!((&one["recording"], &one["status"]["take"]), (&true.into(), &take.as_str().into()));
    let (number, other) = stream.event();
    assert!(number > first && stored(&other) > stored(&one), "{one} {other}");
    assert!(one["status"]["buffers"].as_u64() > Some(3));
    assert_eq!(other["gauges"]["read"], one["gauges"]["read"]);
    stream.until(|event| event["rate"]["stored"].as_f64() > Some(0.0));
    recording.stop();
    let account = recording.wait().expect("it ends");
    let after = stream.until(|event| event["recording"] == false);
    assert_eq!((&after["status"], &after["rate"]), (&Value::Null, &Value::Null));
    assert_eq!(after["take"]["take"], take);
    let kept = after["take"]["ledger"]["stored"]["packets"].as_u64();
    assert_eq!(kept, Some(account.ledger.stored.packets));
    // Nothing changes any more: recorders are asked several times, and no event comes.
    for _ in 0..2 {
        assert!(matches!(stream.next(), Sent::Comment));
    }
}

#[test]
fn all_clients_are_sent_the_same_and_nobody_is_asked_without_one() {
    let recorded = Recorded::empty();
    let recording = Recording::builder("traffic:1MB/s", &recorded.place());
    let recording = recording.options(Recorded::options()).start().expect("it can be recorded on");
    let service = recorded.served();
    assert_eq!(service.metric("longtake_serve_events_polling"), Some(0.0));
    let (mut one, mut other) = (EventStream::open(&service), EventStream::open(&service));
    let mut of_one = one.event();
    let mut of_other = other.event();
    for _ in 0..2 {
        while of_one.0 != of_other.0 {
            let later = if of_one.0 < of_other.0 { &mut one } else { &mut other };
            let event = later.event();
            *(if of_one.0 < of_other.0 { &mut of_one } else { &mut of_other }) = event;
        }
        assert_eq!(of_one.1, of_other.1);
        (of_one, of_other) = (one.event(), other.event());
    }
    assert_eq!(service.metric("longtake_serve_event_streams"), Some(2.0));
    assert_eq!(service.metric("longtake_serve_events_polling"), Some(1.0));
    drop((one, other));
    while service.metric("longtake_serve_event_streams") != Some(0.0) {}
    while service.metric("longtake_serve_events_polling") != Some(0.0) {}
    // The next client is not sent what was published for those before.
    let (number, _) = EventStream::open(&service).event();
    assert!(number > of_one.0);
    recording.stop();
    recording.wait().expect("it ends");
}

#[test]
fn more_clients_than_may_receive_events_are_refused_until_one_leaves() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served_within(Limits { events_max: 1, ..Limits::default() });
    let first = EventStream::open(&service);
    let failure = service.failure(503, PATH);
    assert!(failure["error"].as_str().is_some_and(|error| error.contains("1 clients")));
    assert_eq!(service.metric("longtake_serve_refused_total"), Some(1.0));
    drop(first);
    while service.metric("longtake_serve_event_streams") != Some(0.0) {}
    EventStream::open(&service).event();
}

#[test]
fn an_array_that_cannot_be_opened_says_why() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    std::fs::remove_dir_all(recorded.path()).expect("it is there");
    let (_, event) = EventStream::open(&service).event();
    assert!(event["error"].as_str().is_some_and(|error| !error.is_empty()), "{event}");
    assert_eq!((&event["gauges"], &event["recording"]), (&Value::Null, &false.into()));
}
