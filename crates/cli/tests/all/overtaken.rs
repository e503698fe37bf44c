//! Readers of a ring: what it overwrites before they come to it, what it had overwritten before, and what parity gives back
//! where somebody else's chunks stand.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::harness::captures::{Synthetic, synthetic};
use crate::harness::{
    Recorder, Running, asked, line, longtake, new_in, now_ns, number, scratch, seconds, wait_until,
};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use serde_json::Value;
use source::synthetic::Options;

const MEMBERS: u64 = 2;
const SEGMENTS: u64 = 24;
/// Two members of 24 segments of 1 MiB: at 20 MB/s a lap takes more than two seconds.
const RING: &str = "--from synthetic:20MB/s --members 2 --member-size 25MiB --segment 1MiB --chunk 252KiB --when-full wrap --memory 64MiB";

/// Waits until the ring has begun so many further laps.
fn turn(recorder: &mut Recorder, laps: u64) {
    let reused = |events: &[Value]| events.iter().filter(|e| e["event"] == "reused").count() as u64;
    let wanted = reused(&recorder.events) + laps * MEMBERS * SEGMENTS;
    while reused(&recorder.events) < wanted {
        recorder.wait_for("a segment is reused", |e| e["event"] == "reused");
    }
}

/// An extraction into a pipe that nobody reads until `meanwhile` is done. Returns its exit code, its account, and what came.
fn stalled(array: &Path, arguments: &str, meanwhile: impl FnOnce()) -> (i32, Value, Synthetic) {
    let pipe = array.with_extension("pipe");
    nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).expect("making a pipe");
    let mut command = longtake();
    command.arg("extract").arg(array).args(arguments.split_whitespace());
    command.args(["--json", "-y", "-o"]).arg(&pipe);
    let child =
        command.stdout(std::process::Stdio::piped()).spawn().expect("starting an extraction");
    // It is opened by the other side once the chunks are listed.
    let mut from = File::open(&pipe).expect("opening the pipe");
    meanwhile();
    let mut capture = Vec::new();
    from.read_to_end(&mut capture).expect("reading the pipe");
    let ended = child.wait_with_output().expect("waiting for the extraction");
    let file = array.with_extension("pcapng");
    std::fs::write(&file, capture).expect("keeping what came");
    std::fs::remove_file(&pipe).expect("it is ours");
    let account = serde_json::from_slice(&ended.stdout).expect("it is JSON");
    (ended.status.code().unwrap_or(-1), account, synthetic(&file, &Options::default()))
}

#[test]
fn what_a_ring_overwrites_before_it_is_read_is_counted_with_its_span() {
    let folder = scratch();
    let array: &PathBuf = &new_in(&folder, "array");
    let mut recorder = Recorder::start(&format!("{RING} --to @"), array);
    turn(&mut recorder, 1);
    let (code, account, found) = stalled(array, "--read-rate 10GB/s", || turn(&mut recorder, 2));
    recorder.stop();
    assert_eq!(code, 3, "{account:#}");
    assert_eq!(found.packets.len() as u64, number(&account, "packets"), "{account:#}");
    // More is in the ring than buffers and a pipe hold.
    assert!(number(&account, "overwritten.packets") > 0, "{account:#}");
    assert!(account["overwritten"]["from"].is_string() && account["overwritten"]["to"].is_string());
    assert_eq!(number(&account, "unreadable.packets"), 0, "{account:#}");
}

#[test]
fn what_a_ring_overwrites_before_it_is_replayed_is_counted_with_its_span() {
    let folder = scratch();
    let array: &PathBuf = &new_in(&folder, "array");
    // Nothing has to be hit at its time, so the ring may turn fast.
    let ring = RING.replace("20MB/s", "100MB/s");
    let mut recorder = Recorder::start(&format!("{ring} --to @"), array);
    turn(&mut recorder, 1);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a free port");
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("it can have one");
    let address = socket.local_addr().expect("it is bound").to_string();
    let start = || {
        let mut command = longtake();
        command.args(["replay", "--json", "--udp", &address]).arg(array).stdout(Stdio::piped());
        Running::start(&mut command)
    };
    let mut replay = start();
    // The first packet is sent once the chunks are listed. On a machine on which that takes longer than a lap, the ring overtakes all
    // of them, and another replay tries again.
    wait_until("a packet comes", || {
        let came = socket.recv(&mut [0; 16]).is_ok();
        if !came && replay.0.try_wait().expect("waiting for a process").is_some() {
            // What it sent after all is not the next one's.
            while socket.recv(&mut [0; 16]).is_ok() {}
            replay = start();
        }
        came
    });
    replay.signal(Signal::SIGSTOP);
    turn(&mut recorder, 2);
    replay.signal(Signal::SIGCONT);
    assert_eq!(replay.wait(), 3);
    recorder.stop();
    let printed = replay.0.stdout.take().expect("it is piped");
    let account: Value = serde_json::from_reader(printed).expect("it is JSON");
    assert!(number(&account, "overwritten.packets") > 0, "{account:#}");
    assert!(account["overwritten"]["from"].is_string() && account["overwritten"]["to"].is_string());
    assert_eq!(number(&account, "unreadable.packets"), 0, "{account:#}");
}

#[test]
fn a_span_that_is_held_is_not_overwritten_while_it_is_read_and_the_recording_goes_on() {
    let folder = scratch();
    let array: &PathBuf = &new_in(&folder, "array");
    let mut recorder = Recorder::start(&format!("{RING} --to @"), array);
    turn(&mut recorder, 1);
    // The newest half of a second is a lap away from being overwritten. A machine on which the command takes longer than that to
    // start finds a hole, and tries again.
    let (code, account, found) = loop {
        let to = now_ns() - 50_000_000;
        let span = format!("--since {} --until {}", seconds(to - 500_000_000), seconds(to));
        let ended = stalled(array, &format!("{span} --hold"), || turn(&mut recorder, 2));
        if ended.1["holes"].as_array().is_some_and(Vec::is_empty) {
            break ended;
        }
    };
    let ended = recorder.stop();
    assert_eq!((code, number(&account, "overwritten.packets")), (0, 0), "{account:#}");
    assert!(found.contiguous().is_some() && !found.packets.is_empty(), "{account:#}");
    assert_eq!(number(ended.event("finished"), "ledger.lost.array_full.packets"), 0);
}

#[test]
fn a_hold_of_the_whole_ring_does_not_stop_the_recording() {
    let folder = scratch();
    let array: &PathBuf = &new_in(&folder, "array");
    let mut recorder = Recorder::start(&format!("{RING} --to @"), array);
    turn(&mut recorder, 1);
    let (code, account, _) = stalled(array, "--hold", || turn(&mut recorder, 2));
    let ended = recorder.stop();
    assert_eq!(code, 3, "{account:#}");
    assert_eq!(number(ended.event("finished"), "ledger.lost.array_full.packets"), 0);
}

#[test]
fn what_a_ring_had_overwritten_is_named_and_adds_up() {
    let folder = scratch();
    let array: &PathBuf = &new_in(&folder, "array");
    let mut recorder = Recorder::start(&format!("{RING} --to @"), array);
    turn(&mut recorder, 2);
    recorder.stop();
    let out = array.with_extension("pcapng");
    let everything = format!("extract @ -q -y --json -o {}", out.display());
    let account = line(&everything, array).code(0).json();
    let holes = account["holes"].as_array().expect("there is a list");
    let named: u64 = holes.iter().map(|hole| number(hole, "packets")).sum();
    let ledger = line("ledger @ --json", array).code(0).json();
    assert!(named > 0, "{account:#}");
    assert_eq!(named, number(&ledger, "overwritten.packets"), "{account:#}");
    assert_eq!(number(&account, "packets"), number(&ledger, "on_media.packets"));
    assert_eq!(named + number(&account, "packets"), number(&ledger, "ledger.stored.packets"));
    // Who asks for a span that is not whole any more is told so; since the last hole it is.
    line(&format!("{everything} --since 0"), array).code(3);
    let last = holes.iter().filter_map(|hole| hole["to"].as_str()).max().expect("there is one");
    line(&format!("{everything} --since {last}"), array).code(0);
}

/// Exchanges a segment of two members, byte for byte.
fn swap(array: &Path, members: [u64; 2], segment: u64, segment_bytes: u64) {
    let at = (1 << 20) + segment * segment_bytes;
    let mut files = members.map(|member| {
        let path = array.join(format!("member{member}"));
        File::options().read(true).write(true).open(path).expect("opening a member")
    });
    let contents = files.each_mut().map(|file| {
        let mut bytes = vec![0; segment_bytes as usize];
        file.seek(SeekFrom::Start(at)).expect("seeking");
        file.read_exact(&mut bytes).expect("reading a segment");
        bytes
    });
    for (file, bytes) in files.iter_mut().zip(contents.iter().rev()) {
        file.seek(SeekFrom::Start(at)).expect("seeking");
        file.write_all(bytes).expect("writing a segment");
        file.sync_all().expect("it reaches the medium");
    }
}

#[test]
fn segments_in_each_others_place_are_given_back_by_parity_wherever_they_are_listed() {
    let folder = scratch();
    let array: &PathBuf = &new_in(&folder, "array");
    let made =
        "--members 5 --parity 2 --member-size 64MiB --segment 4MiB --chunk 1MiB --memory 64MiB";
    line(
        &format!("record -q --from synthetic:100MB/s,size=9000 --until-bytes 45MB --to @ {made}"),
        array,
    )
    .code(0);
    let ledger = line("ledger @ --json", array).code(0).json();
    let stored = number(&ledger, "on_media.packets");
    let out = array.with_extension("pcapng");
    let extract = format!("extract @ -q -y --json -o {}", out.display());
    let mut recovered = 0;
    // Where data and where parity lies follows from the members' speeds: a segment may hold nothing but parity, which costs nothing.
    for pair in [[0, 1], [1, 2], [1, 3], [2, 3], [3, 4]] {
        swap(array, pair, 2, 4 << 20);
        let takes = asked("takes @", array);
        assert_eq!(number(&takes[0], "missing.packets"), 0, "{pair:?}: {takes:#}");
        assert_eq!(number(&takes[0], "on_media.packets"), stored, "{pair:?}: {takes:#}");
        recovered += number(&takes[0], "recovered.packets");
        let account = line(&extract, array).code(0).json();
        assert_eq!(number(&account, "packets"), stored, "{pair:?}: {account:#}");
        swap(array, pair, 2, 4 << 20);
    }
    assert!(recovered > 0, "no segment that was exchanged held data");
}
