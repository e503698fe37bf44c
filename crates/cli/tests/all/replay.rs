//! Takes replayed onto a wire and to a socket, and recorded there by another longtake: the same payloads
//! in the same order, at the pace that was asked for.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::harness::captures::{Frame, read};
use crate::harness::namespaces::Hosts;
use crate::harness::{
    Recorder, Running, asked, line, longtake, new_in, number, own_address, run, scratch, wait_until,
};
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

const SMALL: &str = "--members 1 --member-size 65MiB --segment 8MiB --memory 64MiB";

/// Ethernet, IPv4 and UDP headers of a synthetic packet.
const HEADER_BYTES: usize = 42;

/// IPv4 and UDP headers that a recording from a socket makes.
const MADE_BYTES: usize = 28;

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

/// An array with a synthetic take on it, and the take's packets.
fn take(folder: &TempDir, source: &str, limit: &str) -> (PathBuf, Vec<Frame>) {
    let array = new_in(folder, "original");
    line(&format!("record -q --from {source} {limit} --to @ {SMALL}"), &array).code(0);
    let frames = extracted(folder, &array);
    (array, frames)
}

fn extracted(folder: &TempDir, array: &Path) -> Vec<Frame> {
    let file = new_in(folder, "extract.pcapng");
    line(&format!("extract @ -q -y -o {}", text(&file)), array).code(0);
    read(&file).frames
}

/// Waits until a recording has been offered so many packets, and ends it.
fn stop_after(mut recorder: Recorder, packets: u64) {
    wait_until("all packets have come", || {
        recorder.look();
        let progress = recorder.events.iter().rev().find(|e| e["event"] == "progress");
        progress.is_some_and(|p| number(p, "offered_packets") >= packets)
    });
    recorder.stop().code(0);
}

/// A UDP address of this host that nobody uses at the moment.
fn free_address() -> String {
    let socket = UdpSocket::bind(own_address()).expect("there is a free port");
    socket.local_addr().expect("it is bound").to_string()
}

fn span_s(frames: &[Frame]) -> f64 {
    (frames[frames.len() - 1].time - frames[0].time) as f64 / 1e9
}

#[test]
fn frames_replayed_onto_a_wire_arrive_as_they_were() {
    let folder = scratch();
    let source = "synthetic:10MB/s,imix";
    let (original, frames) = take(&folder, source, "--until-bytes 10MB");
    for pace in ["--fastest", "--speed=4"] {
        let hosts = Hosts::new();
        let array = new_in(&folder, pace);
        let mut record = longtake();
        record.args(["record", "--json", "--from", "if:cable", "--to", text(&array)]);
        record.args(SMALL.split(' '));
        let recorder = Recorder::spawn(&mut hosts.far(&record));
        let mut replay = longtake();
        replay.args(["replay", text(&original), "--json", "--interface", "cable", pace]);
        let summary = run(&mut hosts.near(&replay)).code(0).json();
        assert_eq!(number(&summary, "packets"), frames.len() as u64);
        stop_after(recorder, frames.len() as u64);
        let arrived = extracted(&folder, &array);
        // Not what a host may send by itself.
        let ours = arrived.iter().filter(|f| frames[0].data[..12] == f.data[..12]);
        assert!(ours.map(|f| &f.data).eq(frames.iter().map(|f| &f.data)), "{pace}");
    }
}

#[test]
fn payloads_replayed_to_a_socket_arrive_in_order_and_not_too_soon() {
    let folder = scratch();
    let (original, frames) = take(&folder, "synthetic:2MB/s,size=1000", "--for 3s");
    for (pace, speed) in [("--speed=10", Some(10.0)), ("--fastest", None)] {
        let array = new_in(&folder, pace);
        let address = free_address();
        let recorder = Recorder::start(&format!("--from udp:{address} --to @ {SMALL}"), &array);
        let replay = format!("replay @ --udp {address} {pace}");
        let summary = asked(&replay, &original);
        assert_eq!(number(&summary, "packets"), frames.len() as u64);
        stop_after(recorder, frames.len() as u64);
        let arrived = extracted(&folder, &array);
        let payloads = frames.iter().map(|f| &f.data[HEADER_BYTES..]);
        assert!(arrived.iter().map(|f| &f.data[MADE_BYTES..]).eq(payloads), "{pace}");
        if let Some(speed) = speed {
            // Never before its time; how much later is up to the machine.
            let elapsed = summary["elapsed_s"].as_f64().expect("it is a number");
            let least = span_s(&frames) / speed;
            println!("{pace}: {elapsed} s for {least} s");
            assert!(elapsed >= least, "{elapsed} s are less than {least} s");
        }
    }
}

#[test]
fn a_part_of_a_take_is_replayed_by_time_and_filter() {
    let folder = scratch();
    let (original, frames) = take(&folder, "synthetic:5MB/s", "--until-bytes 3MB");
    let array = new_in(&folder, "part");
    let address = free_address();
    let recorder = Recorder::start(&format!("--from udp:{address} --to @ {SMALL}"), &array);
    let part = &frames[700..=1500];
    let (since, until) =
        (crate::harness::seconds(part[0].time), crate::harness::seconds(part[800].time));
    let none = format!("replay @ --udp {address} --fastest --filter tcp");
    assert_eq!(number(&asked(&none, &original), "packets"), 0);
    let replay = format!("replay @ --udp {address} --fastest --since {since} --until {until}");
    assert_eq!(number(&asked(&replay, &original), "packets"), 801);
    stop_after(recorder, 801);
    let arrived = extracted(&folder, &array);
    let payloads = part.iter().map(|f| &f.data[HEADER_BYTES..]);
    assert!(arrived.iter().map(|f| &f.data[MADE_BYTES..]).eq(payloads));
}

#[test]
fn a_signal_ends_a_replay_and_it_says_how_far_it_came() {
    let folder = scratch();
    let (original, frames) = take(&folder, "synthetic:2MB/s", "--for 2s");
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("there is a free port");
    let address = receiver.local_addr().expect("it is bound").to_string();
    // It would take more than half an hour.
    let mut process = Running::start(
        longtake()
            .args(["replay", text(&original), "--json", "--speed", "0.001", "--udp", &address])
            .stdout(Stdio::piped()),
    );
    let mut datagram = [0; 2000];
    let length = receiver.recv(&mut datagram).expect("the first comes at once");
    assert!(datagram[..length] == frames[0].data[HEADER_BYTES..]);
    process.signal(Signal::SIGINT);
    assert_eq!(process.wait(), 3, "the rest was not sent");
    let stdout = process.0.stdout.take().expect("it is piped");
    let summary: Value = serde_json::from_reader(stdout).expect("it is JSON");
    let sent = number(&summary, "packets");
    assert!((1..frames.len() as u64).contains(&sent), "{summary:#}");
    assert!(number(&summary, "unsent") > 0, "{summary:#}");
}
