//! `record -w`: packets go straight into capture files. All that was offered is in them, also when they rotate, when the recording is
//! interrupted, and when the file system is full as far as it had room.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::harness::captures::{Contents, Frame, capinfos, read, synthetic, tshark};
use crate::harness::namespaces::{FAR, Hosts};
use crate::harness::{Ended, Recorder, line, longtake, new_in, number, own_address, run, scratch};
use crate::harness::{now_ns, tool};
use nix::sys::signal::Signal;
use serde_json::Value;
use source::synthetic::Options;
use tempfile::TempDir;

/// Between the headers of a pcapng packet and what it holds: longer than the block of any packet here.
const BLOCK_MAX: u64 = 1600;

/// The capture files in a folder by name, which is their order. Nothing else may be there.
#[track_caller]
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it is there").path()).collect();
    paths.sort();
    for path in &paths {
        assert!(path.extension().is_some_and(|e| e == "pcapng" || e == "pcap"), "{paths:?}");
    }
    paths
}

/// The files of `file` events.
fn told(ended: &Ended) -> Vec<&Value> {
    ended.events.iter().filter(|event| event["event"] == "file").collect()
}

/// Sequence numbers of synthetic packets, which must ascend without a gap from file to file. Every reader must like every file.
#[track_caller]
fn contiguous(paths: &[PathBuf]) -> Option<(u64, u64)> {
    let mut all: Option<(u64, u64)> = None;
    for path in paths {
        let found = synthetic(path, &Options::default());
        assert_eq!(capinfos(path), found.packets.len() as u64, "{path:?}");
        let (first, last) = found.contiguous()?;
        if let Some((_, before)) = all {
            assert_eq!(first, before + 1, "{path:?}");
        }
        all = Some((all.map_or(first, |(first, _)| first), last));
    }
    all
}

/// The ledger of a recording of which nothing was lost.
#[track_caller]
fn lossless(finished: &Value) -> u64 {
    assert_eq!(finished["ledger"]["balances"], true, "{finished:#}");
    assert_eq!(finished["ledger"]["offered"], finished["ledger"]["stored"], "{finished:#}");
    assert_eq!(finished["acknowledged"], finished["ledger"]["stored"], "{finished:#}");
    number(finished, "ledger.offered.packets")
}

#[test]
fn a_file_holds_every_packet_that_was_offered_and_other_tools_read_it() {
    let folder = scratch();
    for name in ["out.pcapng", "out.pcap", "out"] {
        let file = new_in(&folder, name);
        let words = "record --json --from synthetic:max --until-bytes 20MB --memory 64MiB -w @";
        let ran = line(words, &file).code(0).text();
        let finished = ran.lines().last().expect("there are events");
        let finished: Value = serde_json::from_str(finished).expect("it is JSON");
        let offered = lossless(&finished);
        assert_eq!(finished["reason"], "until_bytes");
        assert_eq!(finished["files"]["newest"], file.to_str().expect("it is text"));
        assert_eq!(synthetic(&file, &Options::default()).contiguous(), Some((0, offered - 1)));
        assert_eq!(capinfos(&file), offered);
        assert_eq!(tshark(&file, &["-c", "3", "-T", "fields", "-e", "frame.len"]), ["1500"; 3]);
        let found = fs::metadata(&file).expect("it is there");
        assert_eq!(found.len(), number(&finished, "written"), "{name}");
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "it holds what was recorded");
    }
    let said = line(
        "record --from synthetic:max --until-bytes 1MB --memory 64MiB -w @/words.pcapng",
        folder.path(),
    )
    .code(0)
    .text();
    for words in ["words.pcapng", "balanced: offered = stored + filtered + lost", "ended because"] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_capture_file_comes_through_unchanged_with_its_interfaces_and_times() {
    let folder = scratch();
    let (array, first) = (new_in(&folder, "array"), new_in(&folder, "first.pcapng"));
    let small = "--members 2 --member-size 65MiB --segment 8MiB --memory 64MiB";
    let words = format!("record -q --from synthetic:max,queues=3 --until-bytes 9MB --to @ {small}");
    line(&words, &array).code(0);
    line(&format!("extract @ -q -o {}", first.display()), &array).code(0);
    for (options, name) in [("", "whole.pcapng"), ("--rotate 1MB", "part.pcapng"), ("", "x.pcap")] {
        let out = new_in(&folder, &format!("out-{name}"));
        fs::create_dir(&out).expect("there is room");
        let words =
            format!("record -q --from {} --memory 64MiB {options} -w @/{name}", first.display());
        line(&words, &out).code(0);
        let found: Vec<_> = files(&out).iter().flat_map(|path| packets(path, name)).collect();
        assert!(found == packets(&first, name), "{name}");
    }
}

/// Each packet with its time and the name of its interface, which pcap has none of.
fn packets(path: &Path, format: &str) -> Vec<(u64, Vec<u8>, String)> {
    let Contents { interfaces, frames } = read(path);
    let name = |number: u32| match format.ends_with(".pcapng") {
        true => interfaces[number as usize].name.clone(),
        false => String::new(),
    };
    frames.into_iter().map(|frame| (frame.time, frame.data, name(frame.interface))).collect()
}

#[test]
fn rotation_by_size_fills_each_file_as_far_as_whole_packets_fit() {
    const SIZE: u64 = 4 << 20;
    for extension in ["pcapng", "pcap"] {
        let folder = scratch();
        let words =
            format!("--from synthetic:max --until-bytes 30MB --rotate 4MiB -w @/out.{extension}");
        let ended = Recorder::start(&words, folder.path()).end().code(0);
        let offered = lossless(ended.event("finished"));
        let paths = files(folder.path());
        assert_eq!(contiguous(&paths), Some((0, offered - 1)));
        let (last, full) = paths.split_last().expect("there are files");
        assert!(fs::metadata(last).expect("it is there").len() <= SIZE);
        for path in full {
            let length = fs::metadata(path).expect("it is there").len();
            assert!(length <= SIZE && length + BLOCK_MAX > SIZE, "{path:?}: {length}");
        }
        // Events tell of each file what it is.
        let told = told(&ended);
        assert_eq!(told.len(), paths.len());
        for (event, path) in told.iter().zip(&paths) {
            assert_eq!(event["file"], path.to_str().expect("it is text"));
            assert_eq!(number(event, "bytes"), fs::metadata(path).expect("it is there").len());
            assert_eq!(number(event, "packets.packets"), capinfos(path));
        }
        for (path, number) in paths.iter().zip(1..) {
            let name = path.file_name().expect("it has one").to_string_lossy().into_owned();
            assert!(name.starts_with(&format!("out_{number:05}_20")), "{name}");
        }
    }
}

/// A pcap file of packets at these times (s).
fn capture_at(path: &Path, seconds: &[f64]) {
    let mut bytes = 0xa1b2_3c4du32.to_le_bytes().to_vec();
    bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0]);
    for second in seconds {
        let nanoseconds = (second.fract() * 1e9).round() as u32;
        for field in [1_700_000_000 + second.trunc() as u32, nanoseconds, 60, 60] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend([0x55; 60]);
    }
    fs::write(path, bytes).expect("there is room");
}

#[test]
fn rotation_by_time_goes_by_the_times_of_the_packets() {
    let folder = scratch();
    let source = new_in(&folder, "source.pcap");
    capture_at(&source, &[0.0, 3.0, 9.999_999, 10.0, 15.0, 19.5, 47.0, 56.9, 57.0]);
    let out = new_in(&folder, "out");
    fs::create_dir(&out).expect("there is room");
    line(&format!("record -q --from {} --rotate 10s -w @/t.pcapng", source.display()), &out)
        .code(0);
    let paths = files(&out);
    let times = |path: &PathBuf| -> Vec<u64> {
        let relative = |frame: &Frame| (frame.time - 1_700_000_000_000_000_000) / 1_000_000;
        read(path).frames.iter().map(relative).collect()
    };
    assert_eq!(
        paths.iter().map(times).collect::<Vec<_>>(),
        [vec![0, 3000, 9999], vec![10_000, 15_000, 19_500], vec![47_000, 56_900], vec![57_000]]
    );
    // Names have the times of their first packets, but for the first, which begins with the recording.
    let named = |path: &PathBuf| path.to_string_lossy().ends_with("_20231114221330.pcapng");
    assert_eq!(paths.iter().map(named).collect::<Vec<_>>(), [false, true, false, false]);
}

/// A recorder of UDP, the port it listens on, and a socket that sends there.
fn udp(folder: &TempDir, options: &str) -> (Recorder, UdpSocket) {
    let address = own_address();
    let words = format!("--from udp:{address},headers=off {options}");
    let recorder = Recorder::start(&words, folder.path());
    let (host, _) = address.rsplit_once(':').expect("it has a port");
    let port = port_of(recorder.pid());
    let socket = UdpSocket::bind((host, 0)).expect("the loopback is up");
    socket.connect((host, port)).expect("the loopback is up");
    (recorder, socket)
}

/// The UDP port that a process listens on.
#[track_caller]
fn port_of(pid: u32) -> u16 {
    let mut ss = tool("ss", "iproute2");
    let said = run(ss.args(["-H", "-u", "-l", "-n", "-p"])).code(0).text();
    let mine = said.lines().find(|line| line.contains(&format!("pid={pid},")));
    let mine = mine.unwrap_or_else(|| panic!("{pid} listens nowhere:\n{said}"));
    let local = mine.split_whitespace().nth(3).expect("ss prints five columns");
    local.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("ss prints a port")
}

#[test]
fn a_file_of_a_time_ends_although_no_packet_follows() {
    let folder = scratch();
    let (mut recorder, socket) = udp(&folder, "--rotate 1s -w @/u.pcapng");
    for number in 0..3 {
        socket.send(format!("datagram {number}").as_bytes()).expect("the loopback is up");
        let file = recorder.wait_for("a file", |event| event["event"] == "file");
        assert_eq!(file["packets"]["packets"], 1, "{file:#}");
    }
    let ended = recorder.stop().code(0);
    assert_eq!(lossless(ended.event("finished")), 3);
    for (path, number) in files(folder.path()).iter().zip(0..3) {
        assert_eq!(read(path).frames[0].data, format!("datagram {number}").as_bytes());
    }
    assert_eq!(files(folder.path()).len(), 3);
}

#[test]
fn a_ring_of_files_keeps_the_newest_and_removes_no_file_of_others() {
    let folder = scratch();
    let others =
        ["out_00000_20200101000000.pcapng", "out_00001_20200101000000.pcapng", "out.pcapng"];
    for other in others {
        fs::write(new_in(&folder, other), "somebody's").expect("there is room");
    }
    let words = "--from synthetic:max --until-bytes 40MB --rotate 2MB --files 3 -w @/out.pcapng";
    let ended = Recorder::start(words, folder.path()).end().code(0);
    let finished = ended.event("finished");
    let offered = lossless(finished);
    for other in others {
        let path = new_in(&folder, other);
        assert_eq!(fs::read(&path).expect("it is still there"), b"somebody's");
        fs::remove_file(path).expect("it is there");
    }
    let told: Vec<String> =
        told(&ended).iter().map(|event| event["file"].as_str().unwrap_or("").to_owned()).collect();
    assert!(told.len() >= 20, "40 MB in files of 2 MB: {told:?}");
    let left = files(folder.path());
    assert_eq!(left, told[told.len() - 3..].iter().map(PathBuf::from).collect::<Vec<_>>());
    assert_eq!(number(finished, "files.complete"), told.len() as u64);
    assert_eq!(number(finished, "files.removed"), told.len() as u64 - 3);
    let (first, last) = contiguous(&left).expect("there are packets");
    assert!(first > 0);
    assert_eq!(last, offered - 1);
}

#[test]
fn an_existing_file_is_refused_and_y_replaces_it() {
    let folder = scratch();
    let file = new_in(&folder, "out.pcapng");
    fs::write(&file, "precious").expect("there is room");
    let words = "record -q --from synthetic:max --until-bytes 1MB --memory 64MiB -w @";
    line(words, &file).code(1).says(&["out.pcapng is there already", "-y"]);
    assert_eq!(fs::read(&file).expect("it is there"), b"precious");
    line(&format!("{words} -y"), &file).code(0);
    assert_eq!(synthetic(&file, &Options::default()).contiguous().map(|(first, _)| first), Some(0));
    // The source itself is never replaced.
    let onto_itself = format!("record -q -y --from {} -w @", file.display());
    let before = fs::read(&file).expect("it is there");
    line(&onto_itself, &file).code(1).says(&["out.pcapng"]);
    assert!(fs::read(&file).expect("it is there") == before);
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn a_file_that_appears_under_the_name_meanwhile_stays_and_the_recording_lies_beside_it() {
    let folder = scratch();
    let mut recorder = Recorder::start("--from synthetic:10MB/s -w @/out.pcapng", folder.path());
    recorder.wait_for_written(1 << 20);
    fs::write(new_in(&folder, "out.pcapng"), "somebody's").expect("there is room");
    let ended = recorder.stop().code(0);
    let offered = lossless(ended.event("finished"));
    assert_eq!(fs::read(new_in(&folder, "out.pcapng")).expect("it is there"), b"somebody's");
    let beside = new_in(&folder, "out-2.pcapng");
    assert_eq!(ended.event("finished")["files"]["newest"], beside.to_str().expect("it is text"));
    assert_eq!(synthetic(&beside, &Options::default()).contiguous(), Some((0, offered - 1)));
}

#[test]
fn options_that_do_not_go_together_are_refused_by_name() {
    let folder = scratch();
    let record = "record --from synthetic:max --until-bytes 1MB";
    for (options, words) in [
        ("", &["--to <ARRAY|DIR>", "--write <FILE>"][..]),
        ("--to @/array -w @/out.pcapng", &["--to", "--write"]),
        ("-w @/out.pcapng --parity 1", &["--write", "--parity"]),
        ("-w @/out.pcapng --when-full wrap", &["--write", "--when-full"]),
        ("-w @/out.pcapng --members 2", &["--write", "--members"]),
        ("-w @/out.pcapng --virtual --for 1s", &["--write", "--virtual"]),
        ("-w @/out.pcapng --strict", &["--write", "--strict"]),
        ("-w @/out.pcapng --files 3", &["--rotate"]),
        ("-w @/out.pcapng --rotate 10m --files 1", &["--files", "2.."]),
        ("-w @/out.pcapng --rotate 1KiB", &["--rotate", "at least", "1GiB", "10m"]),
        ("-w @/out.pcapng --rotate 10ms", &["--rotate", "at least"]),
        ("--to @/array --rotate 10m", &["--rotate", "--to"]),
        ("--to @/array --rotate 10m --files 3", &["--to"]),
        ("--to @/array -y", &["--overwrite", "--to"]),
        ("-w - ", &["standard output", "extract"]),
        ("-w @/out.csv", &["out.csv", ".pcapng", "extract"]),
        ("-w @/out.pcapng.gz", &["out.pcapng.gz", ".pcapng"]),
        ("-w @", &["directory"]),
    ] {
        line(&format!("{record} {options}"), folder.path()).code(2).says(words);
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 0, "{options}");
    }
    let missing = format!("{record} -w @/none/out.pcapng");
    line(&missing, folder.path()).code(1).says(&["none", "can't be used"]);
}

#[test]
fn a_signal_completes_the_last_file() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let folder = scratch();
        let (mut recorder, socket) = udp(&folder, "--flush-interval 100ms -w @/out.pcap");
        for number in 0..50 {
            socket.send(format!("datagram {number}").as_bytes()).expect("the loopback is up");
        }
        recorder.wait_for("all datagrams", |event| {
            event["event"] == "progress" && number(event, "ledger.stored.packets") == 50
        });
        assert!(!new_in(&folder, "out.pcap").exists(), "it is not complete yet");
        recorder.signal(signal);
        let ended = recorder.end().code(0);
        assert_eq!(lossless(ended.event("finished")), 50);
        assert_eq!(ended.event("finished")["reason"], "stopped");
        let paths = files(folder.path());
        assert_eq!(paths.len(), 1);
        let frames = read(&paths[0]).frames;
        for (frame, number) in frames.iter().zip(0..50) {
            assert_eq!(frame.data, format!("datagram {number}").as_bytes(), "{signal}");
        }
        assert_eq!(frames.len(), 50);
    }
}

#[test]
fn a_command_that_is_killed_leaves_every_complete_file() {
    let folder = scratch();
    let words = "--from synthetic:30MB/s --rotate 5MB -w @/out.pcapng";
    let mut recorder = Recorder::start(words, folder.path());
    for _ in 0..3 {
        recorder.wait_for("a file", |event| event["event"] == "file");
    }
    recorder.signal(Signal::SIGKILL);
    let ended = recorder.end().code(-1);
    // What was being written has no name that looks like a capture.
    let entries = fs::read_dir(folder.path()).expect("it is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it is there").path()).collect();
    paths.retain(|path| path.extension().is_none_or(|extension| extension != "tmp"));
    paths.sort();
    let told = told(&ended);
    assert!(paths.len() >= told.len() && told.len() >= 3);
    let (first, last) = contiguous(&paths).expect("there are packets");
    let packets: u64 = told.iter().map(|event| number(event, "packets.packets")).sum();
    assert_eq!(first, 0);
    assert!(last + 1 >= packets);
}

#[test]
fn the_next_run_removes_what_a_killed_one_left_unfinished_and_nothing_that_is_being_written() {
    let folder = scratch();
    let names = |ending: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder.path()).expect("it is there").flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
    };
    let start = |name: &str| {
        let words = format!("--from synthetic:30MB/s -w @/{name}.pcapng");
        let mut recorder = Recorder::start(&words, folder.path());
        recorder.wait_for_written(1);
        recorder
    };
    let killed = start("killed");
    let left = names(".tmp");
    assert_eq!(left.len(), 1, "{left:?}");
    killed.signal(Signal::SIGKILL);
    killed.end().code(-1);
    assert_eq!(names(".tmp"), left);
    // Another recorder's file stays, although it has the same kind of name.
    fs::write(folder.path().join(".longtake-notes.tmp"), "somebody's").expect("there is room");
    let alive = start("alive");
    let other = folder.path().join("other.pcapng");
    let ran =
        line("record --from synthetic:max --until-bytes 1MB --memory 64MiB -w @", &other).code(0);
    assert!(!ran.stderr.contains("removed"), "it was removed by the run before: {}", ran.stderr);
    let ended = alive.stop().code(0);
    let said: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("removed ")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    let name = left[0].to_str().expect("it is text");
    assert!(said[0].contains(name) && said[0].contains("a killed run left unfinished"), "{said:?}");
    assert_eq!(names(".tmp"), [folder.path().join(".longtake-notes.tmp")]);
    assert_eq!(names(".pcapng").len(), 2);
}

#[test]
fn a_full_file_system_ends_the_recording_and_what_fit_can_be_read() {
    let folder = scratch();
    let (small, kept) = (new_in(&folder, "small"), new_in(&folder, "kept"));
    for path in [&small, &kept] {
        fs::create_dir(path).expect("there is room");
    }
    // The file system ends with the command.
    let script = "mount -t tmpfs -o size=24m none \"$1\" && \"$0\" record --json --from synthetic:max \
                  --until-bytes 100MB --rotate 5MiB -w \"$1\"/out.pcapng; code=$?; cp \"$1\"/* \"$2\"; exit $code";
    let mut command = tool("unshare", "util-linux");
    command.args(["--mount", "sh", "-c", script]).arg(longtake().get_program());
    let ended = Recorder::spawn(command.arg(&small).arg(&kept)).end().code(3);
    assert!(ended.stderr.contains("writing ended with an error"), "{}", ended.stderr);
    assert!(ended.stderr.contains("No space left"), "{}", ended.stderr);
    let finished = ended.event("finished");
    assert_eq!(finished["reason"], "output_failed");
    assert_eq!(finished["ledger"]["balances"], true, "{finished:#}");
    let stored = number(finished, "ledger.stored.packets");
    assert!(number(finished, "ledger.lost.device_error.packets") > 0);
    let paths = files(&kept);
    assert!(paths.len() >= 4, "{paths:?}");
    assert_eq!(contiguous(&paths), Some((0, stored - 1)));
}

#[test]
fn packets_from_the_wire_go_into_files_and_root_is_given_up() {
    const NOBODY: u32 = 65_534;
    let hosts = Hosts::new();
    for (mode, user, file_user) in [(0o777, NOBODY, NOBODY), (0o700, 0, 0)] {
        let folder = scratch();
        let out = new_in(&folder, "out");
        fs::create_dir(&out).expect("there is room");
        for (path, mode) in [(folder.path(), 0o755), (&out, mode)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
        }
        let mut record = longtake();
        record.env_remove("SUDO_USER").args(["record", "--json", "--from", "if:cable", "-w"]);
        record.arg(out.join("wire.pcapng")).args(["--filter", "udp port 9"]);
        let mut recorder = Recorder::spawn(&mut hosts.far(&record));
        let status =
            fs::read_to_string(format!("/proc/{}/status", recorder.pid())).expect("it runs");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|l| l.split_whitespace().next()).expect("the kernel tells").to_owned()
        };
        assert_eq!((field("Uid:"), field("CapEff:")), (user.to_string(), "0".repeat(16)));
        assert_eq!(field("NoNewPrivs:"), "1");
        for number in 0..20 {
            hosts.mark(&format!("mark {number}"));
        }
        recorder.wait_for("all marks", |event| {
            event["event"] == "progress" && number(event, "ledger.stored.packets") == 20
        });
        let ended = recorder.stop().code(0);
        assert_eq!(lossless(ended.event("finished")), 20);
        let file = out.join("wire.pcapng");
        assert_eq!(fs::metadata(&file).expect("it is there").uid(), file_user);
        let fields = ["-T", "fields", "-e", "ip.dst", "-e", "udp.dstport"];
        assert_eq!(tshark(&file, &fields), [format!("{FAR}\t9").as_str(); 20]);
    }
}

#[test]
fn a_user_that_cannot_make_files_there_is_refused_before_anything_is_opened() {
    let folder = scratch();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("it is ours");
    let words = "record --from synthetic:max --until-bytes 1MB --user nobody -w @/out.pcapng";
    line(words, folder.path()).code(1).says(&[
        "--user nobody",
        "can't make files",
        "--keep-privileges",
    ]);
    assert_eq!(files(folder.path()).len(), 0);
}

#[test]
fn a_limit_of_time_ends_the_file() {
    let folder = scratch();
    let before = now_ns();
    let words = "record --json --from synthetic:1MB/s --for 2s --memory 64MiB -w @/out.pcapng";
    let ran = line(words, folder.path()).code(0).text();
    let finished: Value = serde_json::from_str(ran.lines().last().unwrap_or("")).expect("JSON");
    assert_eq!(finished["reason"], "duration");
    let offered = lossless(&finished);
    let found = synthetic(&new_in(&folder, "out.pcapng"), &Options::default());
    assert_eq!(found.contiguous(), Some((0, offered - 1)));
    assert!(found.packets.iter().all(|&(time, _, _)| time >= before));
    assert_eq!(files(folder.path()).len(), 1);
}
