//! What is reported while a recording goes on, each with real traffic: silence, loss in the kernel, a link that goes down and comes
//! back, senders that come again. And what is known of packets that the kernel's filter rejects.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use crate::harness::captures::{read, tshark};
use crate::harness::namespaces::{FAR, Hosts};
use crate::harness::{Recorder, asked, line, longtake, new_in, number, own_address, run, scratch};
use crate::harness::{tool, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

const SMALL: &str = "--members 2 --member-size 65MiB --segment 8MiB --memory 64MiB";

/// A recorder of the far host's end of the cable, and its array.
fn on_the_far_host(hosts: &Hosts, folder: &TempDir, options: &[&str]) -> (Recorder, PathBuf) {
    let array = new_in(folder, "array");
    let mut record = longtake();
    record.args(["record", "--json", "--from", "if:cable", "--to"]).arg(&array);
    record.args(SMALL.split(' ')).args(options);
    (Recorder::spawn(&mut hosts.far(&record)), array)
}

/// Waits for an event of a name, and returns what it says.
#[track_caller]
fn said(recorder: &mut Recorder, name: &str) -> String {
    let event = recorder.wait_for(name, |event| event["event"] == name);
    event["text"].as_str().expect("it says something").to_owned()
}

/// Waits until so many packets were offered.
fn offered(recorder: &mut Recorder, packets: u64) {
    recorder.wait_for("packets", |event| {
        event["event"] == "progress" && number(event, "offered_packets") >= packets
    });
}

#[test]
fn a_source_that_falls_silent_is_reported_and_so_is_its_return() {
    let (hosts, folder) = (Hosts::new(), scratch());
    let (mut recorder, _) = on_the_far_host(&hosts, &folder, &["--filter", "udp port 9"]);
    hosts.mark("the first");
    offered(&mut recorder, 1);
    assert_eq!(said(&mut recorder, "silent"), "no packet for 5.00 s; the recording goes on");
    hosts.mark("the second");
    let resumed = said(&mut recorder, "resumed");
    assert!(resumed.starts_with("packets come again after "), "{resumed}");
    let ended = recorder.stop().code(0);
    assert_eq!(number(ended.event("finished"), "ledger.stored.packets"), 2);
}

#[test]
fn loss_in_the_kernels_ring_is_reported_with_its_remedy_and_counted() {
    const SENT: u64 = 4000;
    let (hosts, folder) = (Hosts::new(), scratch());
    let options = ["--kernel-buffer", "2MiB", "--filter", "udp port 9"];
    let (mut recorder, array) = on_the_far_host(&hosts, &folder, &options);
    hosts.mark("it records");
    offered(&mut recorder, 1);
    // While it stands still, its ring overflows: 4 MB come, and it holds two.
    recorder.signal(Signal::SIGSTOP);
    let mut bash = tool("bash", "bash");
    let payload = "x".repeat(1000);
    let send = format!("for i in $(seq {SENT}); do printf %s {payload} > /dev/udp/{FAR}/9; done");
    run(&mut hosts.near(bash.args(["-c", &send]))).code(0);
    recorder.signal(Signal::SIGCONT);
    let losing = said(&mut recorder, "losing");
    for words in ["losing packets (kernel ring, ", "raise --kernel-buffer, or use queues=4"] {
        assert!(losing.contains(words), "{losing}");
    }
    let ended = recorder.stop().code(3);
    let finished = ended.event("finished");
    let lost = number(finished, "ledger.lost.kernel_ring.packets");
    assert!(lost > 0 && finished["ledger"]["balances"] == true, "{finished:#}");
    assert_eq!(number(finished, "ledger.offered.packets"), SENT + 1);
    assert_eq!(number(finished, "ledger.stored.packets"), SENT + 1 - lost);
    let ledger = line("ledger @ --json", &array).code(3).json();
    for key in ["offered", "stored", "lost"] {
        assert_eq!(ledger["ledger"][key], finished["ledger"][key]);
    }
}

/// The link's states that progress has shown, each change once.
fn links(events: &[Value]) -> Vec<&str> {
    let progress = events.iter().filter(|event| event["event"] == "progress");
    let mut links: Vec<&str> =
        progress.map(|event| event["link"].as_str().expect("an interface has one")).collect();
    links.dedup();
    links
}

#[test]
fn a_link_that_goes_down_is_reported_when_it_happens_and_the_recording_goes_on() {
    let (hosts, folder) = (Hosts::new(), scratch());
    let (mut recorder, _) = on_the_far_host(&hosts, &folder, &["--filter", "udp port 9"]);
    let shown = |recorder: &mut Recorder, link: &str| {
        recorder.wait_for(link, |event| event["event"] == "progress" && event["link"] == link);
    };
    shown(&mut recorder, "up");
    hosts.mark("before");
    offered(&mut recorder, 1);
    // The other end of the cable is taken down.
    hosts.near_ip(&["link", "set", "cable", "down"]);
    let carrier = said(&mut recorder, "link_down");
    assert!(carrier.contains("no carrier") && carrier.contains("check the cable"), "{carrier}");
    shown(&mut recorder, "no_carrier");
    hosts.near_ip(&["link", "set", "cable", "up"]);
    let up = said(&mut recorder, "link_up");
    assert!(up.starts_with("the link is up again after "), "{up}");
    shown(&mut recorder, "up");
    hosts.mark("between");
    offered(&mut recorder, 2);
    // And this one.
    hosts.far_ip(&["link", "set", "cable", "down"]);
    let down = said(&mut recorder, "link_down");
    assert!(down.contains("`ip link set cable up` brings it up"), "{down}");
    shown(&mut recorder, "down");
    hosts.far_ip(&["link", "set", "cable", "up"]);
    said(&mut recorder, "link_up");
    shown(&mut recorder, "up");
    // The capture finds out by itself that it may go on.
    let mut number_sent = 2;
    wait_until("packets come again", || {
        hosts.mark("after");
        number_sent += 1;
        recorder.look();
        let last = recorder.events.iter().rfind(|event| event["event"] == "progress");
        last.is_some_and(|event| number(event, "offered_packets") > 2)
    });
    let ended = recorder.stop().code(0);
    let finished = ended.event("finished");
    assert_eq!(finished["reason"], "stopped");
    let stored = number(finished, "ledger.stored.packets");
    assert!((3..=number_sent).contains(&stored), "{finished:#}");
    let links = links(&ended.events);
    let changes = ["up", "no_carrier", "up", "down", "up"];
    // A progress line may fall between the interface's return and its carrier's.
    let expected = [changes.to_vec(), vec!["up", "no_carrier", "up", "down", "no_carrier", "up"]];
    assert!(expected.contains(&links), "{links:?}");
    let notes = finished["notes"].to_string();
    assert!(notes.contains("went down at") && notes.contains("came back at"), "{notes}");
}

#[test]
fn other_sources_than_interfaces_have_no_link() {
    let folder = scratch();
    let words = format!("--from synthetic:1MB/s --to @ {SMALL}");
    let mut recorder = Recorder::start(&words, &new_in(&folder, "array"));
    recorder.wait_for_written(1);
    let ended = recorder.stop().code(0);
    assert!(ended.event("progress")["link"].is_null());
}

#[test]
fn what_the_kernels_filter_rejects_is_not_counted_and_not_offered() {
    const WANTED: u64 = 7;
    let (hosts, folder) = (Hosts::new(), scratch());
    let (mut recorder, array) = on_the_far_host(&hosts, &folder, &["--filter", "udp port 9"]);
    let mut bash = tool("bash", "bash");
    let unwanted = format!("for i in $(seq 30); do printf x > /dev/udp/{FAR}/7; done");
    run(&mut hosts.near(bash.args(["-c", &unwanted]))).code(0);
    for number in 0..WANTED {
        hosts.mark(&format!("wanted {number}"));
    }
    offered(&mut recorder, WANTED);
    let ended = recorder.stop().code(0);
    let progress = ended.event("progress");
    assert!(progress["filtered_packets"].is_null(), "{progress:#}");
    let finished = ended.event("finished");
    assert!(finished["ledger"]["filtered"].is_null(), "{finished:#}");
    assert_eq!(finished["ledger"]["balances"], true);
    for key in ["offered", "stored"] {
        assert_eq!(number(finished, &format!("ledger.{key}.packets")), WANTED, "{finished:#}");
    }
    // What is on the media says the same.
    assert!(asked("ledger @", &array)["ledger"]["filtered"].is_null());
    let table = line("ledger @", &array).code(0).text();
    assert!(table.lines().any(|l| l.contains("filtered") && l.contains("not counted")), "{table}");
    assert!(asked("array info @", &array)["takes"][0]["ledger"]["filtered"].is_null());
    assert!(asked("takes @", &array)[0]["ledger"]["filtered"].is_null());
    let file = new_in(&folder, "take.pcapng");
    line(&format!("extract @ -q -o {}", file.display()), &array).code(0);
    let ports = tshark(&file, &["-T", "fields", "-e", "udp.dstport"]);
    assert_eq!(ports, ["9"; WANTED as usize]);
    assert!(read(&file).interfaces[0].filter.contains("udp port 9"));

    // In words the account says so, in a row of its own.
    let mut record = longtake();
    record.args(["record", "--from", "if:cable", "--filter", "udp port 9", "--for", "1s", "-w"]);
    record.arg(new_in(&folder, "words.pcapng"));
    let text = run(&mut hosts.far(&record)).code(0).text();
    let row = text.lines().find(|line| line.trim_start().starts_with("filtered"));
    let row = row.unwrap_or_else(|| panic!("no row of filtered packets: {text}"));
    assert!(row.contains("not counted"), "{row}");
    assert!(text.contains("balanced: offered = stored + filtered + lost"), "{text}");
}

#[test]
fn a_filter_on_vlan_tags_is_applied_here_and_what_it_rejects_is_counted() {
    let (hosts, folder) = (Hosts::new(), scratch());
    let (mut recorder, array) = on_the_far_host(&hosts, &folder, &["--filter", "vlan 5"]);
    for _ in 0..5 {
        hosts.mark("without a tag");
    }
    recorder.wait_for("rejected packets", |event| {
        event["event"] == "progress" && event["filtered_packets"].as_u64() >= Some(5)
    });
    let ended = recorder.stop().code(0);
    let finished = ended.event("finished");
    assert!(number(finished, "ledger.filtered.packets") >= 5, "{finished:#}");
    assert_eq!(number(finished, "ledger.stored.packets"), 0);
    assert_eq!(finished["ledger"]["balances"], true);
    for command in ["ledger @", "takes @"] {
        let asked = asked(command, &array);
        let take = asked.get(0).unwrap_or(&asked);
        assert_eq!(take["ledger"]["filtered"], finished["ledger"]["filtered"], "{command}");
    }
}

#[test]
fn whoever_connects_again_is_recorded_on_if_that_is_asked_for() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let listener = TcpListener::bind(own_address()).expect("the loopback is up");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let words = format!("--from tcp-listen:{address},reconnect,block=1000 --to @ {SMALL}");
    let mut recorder = Recorder::start(&words, &array);
    let mut sent = Vec::new();
    for round in 0..4u8 {
        let mut socket = TcpStream::connect(address).expect("it listens");
        let bytes = vec![round; 2500];
        socket.write_all(&bytes).expect("it reads");
        drop(socket);
        sent.extend(bytes);
        // The connection has ended when its last block has come, which is not full.
        recorder.wait_for("the last block", |event| {
            let stored = || number(event, "ledger.stored.bytes");
            event["event"] == "progress" && stored() == u64::from(round + 1) * 2500
        });
    }
    let ended = recorder.stop().code(0);
    let finished = ended.event("finished");
    assert_eq!(finished["reason"], "stopped");
    assert_eq!(number(finished, "ledger.stored.packets"), 12);
    let file = new_in(&folder, "all.raw");
    line(&format!("extract @ -q -o {}", file.display()), &array).code(0);
    assert!(std::fs::read(&file).expect("it is there") == sent);
    let pcapng = new_in(&folder, "all.pcapng");
    line(&format!("extract @ -q -o {}", pcapng.display()), &array).code(0);
    let names: Vec<String> = read(&pcapng).interfaces.into_iter().map(|i| i.name).collect();
    assert_eq!(names, ["tcp:127.0.0.1"], "the sender is the same host each time");

    // Without it, the first sender's end is the recording's, and the account says so.
    let words = format!("--from tcp-listen:{address} --to @ {SMALL}");
    let recorder = Recorder::start(&words, &new_in(&folder, "one"));
    TcpStream::connect(address).expect("it listens").write_all(b"x").expect("it reads");
    let ended = recorder.end().code(0);
    assert_eq!(ended.event("finished")["reason"], "connection_closed");
}

#[test]
fn members_of_a_new_array_are_as_large_as_a_known_rate_needs_for_its_time() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    // 3 GB of packets, their headers, and a twentieth and a segment more. It is stopped as soon as the file is there.
    let words = "--from synthetic:10MB/s --for 5m --members 1 --to @";
    let mut recorder = Recorder::start(words, &array);
    recorder.wait_for_written(1);
    let length = std::fs::metadata(array.join("member0")).expect("it is there").len();
    recorder.stop().code(0);
    assert!((3_400_000_000..3_600_000_000).contains(&length), "{length}");
}
