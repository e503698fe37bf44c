//! PCAP-over-IP: tshark reads a recording live, and a client that is too slow is told what it has lost.

use std::io::Read;
use std::net::TcpStream;
use std::process::{Command, Stdio};

use format::pcapng::{Block, Blocks};
use longtake::recording::{NewArray, Options as RecordOptions, WhenFull};
use longtake::{ByteSize, FileFormat, Recording, Selection};
use longtake_serve::{Limits, Options, ServeError, Server};

use crate::harness::{Recorded, Service};

fn options(recorded: &[&Recorded], limits: Limits) -> Options {
    Options {
        arrays: recorded.iter().map(|recorded| recorded.place()).collect(),
        listen: ([127, 0, 0, 1], 0).into(),
        pcap_over_ip: Some(([127, 0, 0, 1], 0).into()),
        limits,
        ..Options::default()
    }
}

/// A client that is being served.
fn follow(service: &Service) -> TcpStream {
    let mut stream = TcpStream::connect(service.pcap_over_ip()).expect("it listens");
    let mut start = [0; 4];
    stream.read_exact(&mut start).expect("a file begins");
    assert_eq!(start, [0x0a, 0x0d, 0x0d, 0x0a]);
    stream
}

#[test]
fn tshark_reads_a_recording_under_way() {
    let recorded = Recorded::empty();
    let recording = Recording::builder("traffic:1MB/s", &recorded.place());
    let recording = recording.options(Recorded::options()).start().expect("it can be recorded on");
    let service = Service::start(&options(&[&recorded], Limits::default()));
    let address = format!("TCP@{}", service.pcap_over_ip());
    let tshark = Command::new("tshark")
        .args(["-n", "-l", "-i", &address, "-c", "300", "-T", "fields"])
        .args(["-e", "frame.time_epoch", "-e", "frame.cap_len", "-e", "frame.len"])
        .stderr(Stdio::piped())
        .output()
        .expect("tshark can be started");
    let seen = String::from_utf8(tshark.stdout).expect("it is text");
    let said = String::from_utf8_lossy(&tshark.stderr);
    assert!(tshark.status.success(), "{said}");
    recording.stop();
    recording.wait().expect("it ends");
    let lines = recorded.extracted(&Selection::default(), FileFormat::Jsonl);
    let of_line = |line: &str| {
        let packet: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
        let ns = packet["time_ns"].as_u64().expect("a number");
        let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
        format!("{seconds}.{rest:09}\t{}\t{}", packet["captured_length"], packet["original_length"])
    };
    let all: Vec<String> = String::from_utf8_lossy(&lines).lines().map(of_line).collect();
    let seen: Vec<&str> = seen.lines().collect();
    let start = all.iter().position(|packet| packet == seen[0]).expect("it was recorded");
    assert_eq!(seen.len(), 300, "{said}");
    assert!(seen == all[start..start + 300], "packets differ: {said}");
}

/// A ring so small that it is soon overwritten.
fn small_ring() -> RecordOptions {
    let new = NewArray {
        members: 2,
        member_size: Some(ByteSize(8 << 20)),
        segment: Some(ByteSize(1 << 20)),
        chunk: Some(ByteSize(64 << 10)),
        ..NewArray::default()
    };
    RecordOptions { new, when_full: WhenFull::Wrap, ..RecordOptions::default() }
}

/// The packets of a stream, and how many were lost by what its last statistics say.
fn counted(stream: &[u8]) -> (u64, u64) {
    let (mut packets, mut lost) = (0, 0);
    for block in Blocks::new(stream) {
        let Block { kind, bytes, .. } = block.expect("the stream is whole");
        match kind {
            6 => packets += 1,
            5 => lost = dropped_by_system(&bytes[20..bytes.len() - 4]),
            _ => {}
        }
    }
    (packets, lost)
}

/// The value of an option of a statistics block.
fn dropped_by_system(mut options: &[u8]) -> u64 {
    loop {
        let [kind, length] = [0, 2].map(|at| u16::from_le_bytes([options[at], options[at + 1]]));
        if kind == 7 {
            return u64::from_le_bytes(options[4..12].try_into().expect("eight bytes"));
        }
        options = &options[4 + usize::from(length).next_multiple_of(4)..];
    }
}

#[test]
fn a_client_that_the_ring_overtakes_is_told_how_many_packets_it_has_lost() {
    let recorded = Recorded::empty();
    let first = RecordOptions { until_bytes: Some(ByteSize(100_000)), ..small_ring() };
    let builder = Recording::builder("traffic:50MB/s", &recorded.place());
    builder.options(first).run(&mut ()).expect("files can be recorded on");
    let service = Service::start(&options(&[&recorded], Limits::default()));
    let mut stream = follow(&service);
    let recording = Recording::builder("traffic:50MB/s", &recorded.place());
    let recording = recording.options(small_ring()).start().expect("it can be recorded on");
    while recording.snapshot().ledger.stored.bytes < 60_000_000 {
        std::thread::yield_now();
    }
    assert!(recording.snapshot().lost_packets == 0, "a client holds the recorder up");
    recording.stop();
    let account = recording.wait().expect("it ends");
    let mut all = vec![0x0a, 0x0d, 0x0d, 0x0a];
    stream.read_to_end(&mut all).expect("it can be read");
    let (packets, lost) = counted(&all);
    assert!(packets > 0 && lost > 0, "{packets} {lost}");
    assert_eq!(packets + lost, account.ledger.stored.packets);
    let metric = service.metric("longtake_serve_pcap_over_ip_lost_packets_total");
    assert_eq!(metric, Some(lost as f64));
    while service.metric("longtake_serve_pcap_over_ip_streams") != Some(0.0) {}
}

#[test]
fn a_client_that_leaves_makes_room_for_another() {
    let recorded = Recorded::traffic(1_000_000);
    let limits = Limits { followers_max: 1, ..Limits::default() };
    let service = Service::start(&options(&[&recorded], limits));
    let first = follow(&service);
    let mut second = TcpStream::connect(service.pcap_over_ip()).expect("it listens");
    let mut none = Vec::new();
    second.read_to_end(&mut none).ok();
    assert!(none.is_empty());
    assert_eq!(service.metric("longtake_serve_pcap_over_ip_refused_total"), Some(1.0));
    drop(first);
    while service.metric("longtake_serve_pcap_over_ip_streams") != Some(0.0) {}
    let mut last = follow(&service);
    // The end of the service ends the stream.
    drop(service);
    let mut rest = Vec::new();
    last.read_to_end(&mut rest).ok();
}

#[test]
fn packets_of_one_array_alone_are_sent_and_to_this_machine_alone() {
    let (one, other) = (Recorded::traffic(1_000_000), Recorded::traffic(1_000_000));
    let several = options(&[&one, &other], Limits::default());
    let refused = Server::bind(&several).expect_err("it is refused");
    assert!(matches!(refused, ServeError::SeveralArrays(2)), "{refused}");
    assert!(refused.to_string().contains("--array"), "{refused}");
    let outside = Options {
        pcap_over_ip: Some(([0, 0, 0, 0], 0).into()),
        ..options(&[&one], Limits::default())
    };
    let refused = Server::bind(&outside).expect_err("it is refused");
    assert!(matches!(refused, ServeError::PcapOverIpNotLoopback(_)), "{refused}");
    // It can't ask for a token, and enters nothing in an audit log.
    let folder = tempfile::tempdir().expect("there is room");
    let audit = Some(folder.path().join("audit"));
    let audited = Options { audit, ..options(&[&one], Limits::default()) };
    let refused = Server::bind(&audited).expect_err("it is refused");
    assert!(matches!(refused, ServeError::PcapOverIpUnchecked), "{refused}");
}
