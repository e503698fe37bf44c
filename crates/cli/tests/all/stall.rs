//! Members that crawl or stand still while a recording goes on: the others take over, nothing is lost as long as the
//! buffers last, and what is lost beyond them is named to the packet.
//!
//! Seconds long, because a member shows that it is slow by being slow.

use std::path::PathBuf;

use crate::harness::captures::{into, synthetic};
use crate::harness::{Recorder, line, longtake, new_in, number, run, scratch};
use crate::measure_rig::{LoopDevice, MIB, Throttle};
use base::Timestamp;
use format::{Interface, Packet};
use serde_json::Value;
use source::synthetic::{Checker, Options, Sizes};
use source::{Ended, Loss, Sink};
use tempfile::TempDir;

const PACKET_BYTES: u16 = 9000;

/// An array of loop devices, which the kernel can hold back for those in the group.
struct Rig {
    devices: Vec<LoopDevice>,
    throttle: Throttle,
    folder: TempDir,
}

impl Rig {
    fn new() -> Self {
        let rig = Self {
            devices: (0..4).map(|_| LoopDevice::new(320 * MIB)).collect(),
            throttle: Throttle::new(),
            folder: scratch(),
        };
        let mut create = longtake();
        create.args(["array", "create", "--segment", "16MiB", "--chunk", "512KiB"]);
        for device in &rig.devices {
            create.args([device.text(), "--erase", device.text()]);
        }
        run(&mut create).code(0);
        rig
    }

    /// The array's name on a command line.
    fn array(&self) -> PathBuf {
        self.devices.iter().map(LoopDevice::text).collect::<Vec<_>>().join(",").into()
    }

    fn record(&self, words: &str) -> Recorder {
        let mut record = self.throttle.longtake();
        record.args(["record", "--json", "--keep-privileges", "--to"]).arg(self.array());
        Recorder::spawn(record.args(words.split_whitespace()))
    }

    /// The take's file, and its ledger, which must balance.
    fn back(&self, code: i32) -> (PathBuf, Value) {
        let file = new_in(&self.folder, "take.pcapng");
        let ledger = line("ledger @ --json", &self.array()).code(code).json();
        assert_eq!((&ledger["state"], &ledger["balances"]), (&"complete".into(), &true.into()));
        assert_eq!(number(&ledger, "missing.packets"), 0, "{ledger:#}");
        let output = file.to_str().expect("a scratch path is text");
        line(&format!("extract @ -q --take last -o {output}"), &self.array()).code(0);
        (file, ledger)
    }
}

fn options() -> Options {
    Options { sizes: Sizes::Fixed(PACKET_BYTES), ..Options::default() }
}

/// Bytes given to each member so far, once they come to so many in all.
fn given(recorder: &mut Recorder, at_least: u64) -> Vec<u64> {
    let members = |event: &Value| -> Vec<u64> {
        let members = event["members"].as_array().into_iter().flatten();
        members.filter_map(|member| member["written"].as_u64()).collect()
    };
    let found = recorder.wait_for("bytes written", |event| {
        event["event"] == "progress" && members(event).iter().sum::<u64>() >= at_least
    });
    members(&found)
}

/// The same once they come to so many more than now, whatever has come in the meantime.
fn given_after(recorder: &mut Recorder, bytes: u64) -> Vec<u64> {
    recorder.look();
    let now = given(recorder, 0);
    given(recorder, now.iter().sum::<u64>() + bytes)
}

fn gained(from: &[u64], to: &[u64]) -> Vec<u64> {
    from.iter().zip(to).map(|(from, to)| to - from).collect()
}

#[test]
fn a_member_that_crawls_is_given_less_and_one_that_recovers_is_given_more_and_nothing_is_lost() {
    let rig = Rig::new();
    let from = "synthetic:50MB/s,size=9000";
    let mut recorder = rig.record(&format!("--from {from} --memory 256MiB --drift 1GiB"));
    let start = given(&mut recorder, 60_000_000);
    assert!(start.iter().all(|bytes| *bytes > 0), "each has its share: {start:?}");
    rig.throttle.limit_writes(&rig.devices[1], Some(500_000));
    // What was under way when it was told to crawl is not what is asked.
    let crawls = given_after(&mut recorder, 50_000_000);
    let crawled = given(&mut recorder, crawls.iter().sum::<u64>() + 200_000_000);
    rig.throttle.limit_writes(&rig.devices[1], None);
    let share = gained(&crawls, &crawled);
    let others = (share.iter().sum::<u64>() - share[1]) / 3;
    assert!(share[1] * 5 < others, "the member that crawls was given {share:?}");
    recorder.wait_for("it to be given more again", |event| {
        let written = event["members"][1]["written"].as_u64();
        event["event"] == "progress" && written > Some(crawled[1] + 20_000_000)
    });
    let ended = recorder.stop().code(0);
    let (file, ledger) = rig.back(0);
    let found = synthetic(&file, &options());
    let offered = number(ended.event("finished"), "ledger.offered.packets");
    assert_eq!(found.contiguous(), Some((0, offered - 1)));
    assert_eq!(number(&ledger, "on_media.packets"), offered);
}

#[test]
fn a_member_that_stands_still_holds_up_nothing_but_what_it_has_taken() {
    let rig = Rig::new();
    let from = "synthetic:50MB/s,size=9000";
    let mut recorder = rig.record(&format!("--from {from} --memory 256MiB"));
    given(&mut recorder, 60_000_000);
    // At this rate not a block passes in a minute. All the others together are slower than the drift allows.
    rig.throttle.limit_writes(&rig.devices[2], Some(1));
    // What was under way, and what was queued behind it, it takes before it stands.
    let stands = given_after(&mut recorder, 50_000_000);
    let stood = given(&mut recorder, stands.iter().sum::<u64>() + 250_000_000);
    let share = gained(&stands, &stood);
    assert!(share[2] <= 16_000_000, "the member that stands still was given {share:?}");
    rig.throttle.limit_writes(&rig.devices[2], None);
    let ended = recorder.stop().code(0);
    let (file, _) = rig.back(0);
    let offered = number(ended.event("finished"), "ledger.offered.packets");
    assert_eq!(synthetic(&file, &options()).contiguous(), Some((0, offered - 1)));
}

/// Holds a capture of one queue to what it says of its own losses: in front of every packet, as many are lost as numbers
/// are left out.
struct Named {
    checker: Checker,
    next: u64,
    lost: u64,
    lost_in_all: u64,
    gaps: u64,
}

impl Sink for Named {
    fn interface(&mut self, _: &Interface) -> u32 {
        0
    }
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        let found = self.checker.check(packet.data, packet.original_length);
        let (_, sequence) = found.unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(sequence, self.next + self.lost, "{} lost after {}", self.lost, self.next);
        self.gaps += u64::from(self.lost > 0);
        (self.next, self.lost) = (sequence + 1, 0);
        Ok(())
    }
    fn lost(&mut self, _: u32, _: Loss, packets: u64, _: u64) {
        self.lost += packets;
        self.lost_in_all += packets;
    }
    fn tick(&mut self, _: Timestamp) -> Result<(), Ended> {
        Ok(())
    }
}

#[test]
fn what_the_buffers_cannot_hold_is_named_to_the_packet_where_it_is_missing() {
    let rig = Rig::new();
    let from = "synthetic:60MB/s,size=9000";
    let mut recorder = rig.record(&format!("--from {from} --memory 48MiB"));
    let start = given(&mut recorder, 60_000_000);
    for device in &rig.devices {
        rig.throttle.limit_writes(device, Some(1_000_000));
    }
    recorder.wait_for("a loss", |event| event["lost_packets"].as_u64() > Some(2000));
    for device in &rig.devices {
        rig.throttle.limit_writes(device, None);
    }
    given(&mut recorder, start.iter().sum::<u64>() + 200_000_000);
    let ended = recorder.stop().code(3);
    let finished = ended.event("finished");
    let (offered, stored) =
        (number(finished, "ledger.offered.packets"), number(finished, "ledger.stored.packets"));
    let lost = number(finished, "ledger.lost.no_buffer.packets");
    assert!(lost > 2000 && offered == stored + lost, "{finished:#}");
    let (file, ledger) = rig.back(3);
    assert_eq!(number(&ledger, "ledger.lost.no_buffer.packets"), lost);
    let mut named =
        Named { checker: Checker::new(&options()), next: 0, lost: 0, lost_in_all: 0, gaps: 0 };
    into(&file, &mut named);
    assert_eq!((named.lost_in_all, named.next + named.lost), (lost, offered));
    assert_eq!(named.checker.packets(), stored);
    assert!(named.gaps > 0);
}
