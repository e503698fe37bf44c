//! How recordings end: by signal, by limit, with their source; each time whole, flushed and accounted
//! for. And what rights they have meanwhile.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::harness::captures::synthetic;
use crate::harness::namespaces::Hosts;
use crate::harness::{Recorder, asked, line, longtake, new_in, number, run, scratch, tool};
use nix::sys::signal::Signal;
use serde_json::Value;
use source::synthetic::Options;

const SMALL: &str = "--members 2 --member-size 129MiB --segment 8MiB --memory 64MiB";

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

/// The only take, which must be whole and in balance.
fn whole(array: &Path) -> Value {
    let take = line("ledger @ --json", array).code(0).json();
    assert_eq!(take["state"], "complete", "{take:#}");
    assert_eq!(take["balances"], true, "{take:#}");
    assert_eq!(take["ledger"]["balances"], true);
    assert_eq!(number(&take, "missing.packets"), 0);
    assert_eq!(number(&take, "on_media.packets"), number(&take, "ledger.stored.packets"));
    take
}

#[test]
fn a_signal_ends_a_take_and_keeps_all_that_was_offered() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGQUIT] {
        let folder = scratch();
        let array = new_in(&folder, "array");
        let mut recorder =
            Recorder::start(&format!("--from synthetic:10MB/s --to @ {SMALL}"), &array);
        recorder.wait_for_written(10 << 20);
        recorder.signal(signal);
        let ended = recorder.end().code(0);
        let finished = ended.event("finished");
        assert_eq!(finished["acknowledged"], finished["ledger"]["stored"], "{finished:#}");
        assert_eq!(finished["durable"], finished["ledger"]["stored"], "{finished:#}");
        let take = whole(&array);
        assert_eq!(take["take"], finished["take"]);
        assert_eq!(take["ledger"], finished["ledger"]);
        let file = new_in(&folder, "extract.pcapng");
        line(&format!("extract @ -q -o {}", text(&file)), &array).code(0);
        let found = synthetic(&file, &Options::default());
        let offered = number(finished, "ledger.offered.packets");
        assert_eq!(found.contiguous(), Some((0, offered - 1)), "{signal}");
    }
}

#[test]
fn a_limit_of_bytes_or_time_ends_a_take() {
    let folder = scratch();
    let array = new_in(&folder, "bytes");
    let ran =
        line(&format!("record --from synthetic:max --until-bytes 20MB --to @ {SMALL}"), &array);
    let said = ran.code(0).text();
    for words in
        ["balanced: offered = stored + filtered + lost", "longtake takes", "longtake extract"]
    {
        assert!(said.contains(words), "{said}");
    }
    let take = whole(&array);
    assert!(number(&take, "on_media.bytes") >= 20_000_000, "{take:#}");

    let array = new_in(&folder, "time");
    line(&format!("record -q --from synthetic:10MB/s --for 4s --to @ {SMALL}"), &array).code(0);
    assert!(number(&whole(&array), "on_media.packets") > 0);
}

#[test]
fn a_file_ends_a_take_when_it_ends() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let take = "--from synthetic:max --until-bytes 30MB";
    line(&format!("record -q {take} --to @ {SMALL}"), &array).code(0);
    let file = new_in(&folder, "take.pcap");
    line(&format!("extract @ -q -o {}", text(&file)), &array).code(0);
    let again = new_in(&folder, "again");
    line(&format!("record -q --from {} --to @ {SMALL}", text(&file)), &again).code(0);
    let (first, second) = (whole(&array), whole(&again));
    assert_eq!(first["on_media"], second["on_media"]);
    assert_eq!(first["first_packet"], second["first_packet"]);
    assert_eq!(first["last_packet"], second["last_packet"]);
}

#[test]
fn a_source_from_which_nothing_comes_is_ended_by_a_signal_too() {
    let folder = scratch();
    let fifo = new_in(&folder, "fifo");
    run(tool("mkfifo", "coreutils").arg(&fifo)).code(0);
    let pipe = format!("pipe:{}", text(&fifo));
    let hosts = Hosts::new();
    let sources = ["if:cable", "udp:127.0.0.1:0", "tcp-listen:127.0.0.1:0", &pipe, "-", "pcap:-"];
    for (at, source) in sources.into_iter().enumerate() {
        let array = new_in(&folder, &format!("array{at}"));
        let mut record = longtake();
        record.args(["record", "--json", "--from", source, "--to", text(&array)]);
        record.args(SMALL.split(' '));
        let recorder = Recorder::spawn(hosts.far(&record).stdin(Stdio::piped()));
        let ended = recorder.stop();
        assert_eq!(ended.code, 0, "{source}: {}", ended.stderr);
        let finished = ended.event("finished");
        assert_eq!(finished["ledger"]["balances"], true, "{source}");
        // A take without packets is one too.
        let takes = asked("takes @", &array);
        assert_eq!(takes.as_array().map(Vec::len), Some(1), "{source}: {takes:#}");
        assert_eq!(takes[0]["state"], "complete", "{source}");
    }
}

#[test]
fn takes_follow_one_another_on_an_array() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    for seed in 1..=4 {
        let take = format!("--from synthetic:max,seed={seed} --until-bytes 4MB");
        line(&format!("record -q {take} --to @ {SMALL}"), &array).code(0);
    }
    let takes = asked("takes @", &array);
    let takes = takes.as_array().expect("there is a list");
    assert_eq!(takes.len(), 4);
    for (take, seed) in takes.iter().zip(1..) {
        let (id, file) =
            (take["take"].as_str().expect("it is text"), new_in(&folder, "take.pcapng"));
        line(&format!("extract @ -q -y --take {} -o {}", &id[..13], text(&file)), &array).code(0);
        let found = synthetic(&file, &Options { seed, ..Options::default() });
        assert_eq!(found.contiguous().map(|(first, _)| first), Some(0));
        assert_eq!(found.packets.len() as u64, number(take, "on_media.packets"));
    }
    let file = new_in(&folder, "all.pcapng");
    let all = line(&format!("extract @ --json -q -o {}", text(&file)), &array).code(0).json();
    let sum: u64 = takes.iter().map(|take| number(take, "on_media.packets")).sum();
    assert_eq!(number(&all, "packets"), sum);
}

/// The user that a process runs as, and what it may do beyond that.
fn rights(pid: u32) -> (u32, u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|l| l.split_whitespace().next()).expect("the kernel tells").to_owned()
    };
    let user = field("Uid:").parse().expect("it is a number");
    (user, u64::from_str_radix(&field("CapEff:"), 16).expect("it is a number"))
}

#[test]
fn root_is_given_up_once_everything_is_open_unless_asked_not_to() {
    const NOBODY: u32 = 65534;
    let folder = scratch();
    for (option, expected) in [(None, NOBODY), (Some("--keep-privileges"), 0)] {
        let array = new_in(&folder, option.unwrap_or("nobody"));
        let mut record = longtake();
        record.env_remove("SUDO_USER").args(["record", "--json", "--from", "if:lo"]).args(option);
        let recorder = Recorder::spawn(record.args(SMALL.split(' ')).arg("--to").arg(&array));
        let (user, capabilities) = rights(recorder.pid());
        assert_eq!((user, capabilities == 0), (expected, expected == NOBODY));
        recorder.stop().code(0);
    }
    let refused = "record --from if:lo --to @ --user root";
    line(refused, &new_in(&folder, "nobody")).code(1).says(&["root", "--keep-privileges"]);
    let refused = "record --from if:lo --to @ --user longtake-nobody-is-called-that";
    line(refused, &new_in(&folder, "nobody")).code(1).says(&["there is no user", "--user"]);
}
