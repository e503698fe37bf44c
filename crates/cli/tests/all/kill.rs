//! Recordings killed at random moments: nothing acknowledged is lost, every take opens, the ledger
//! names what is missing, and the array records on.
//!
//! Three rounds, or fifty at 1 GB/s with `LONGTAKE_LONG=1`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::harness::captures::synthetic;
use crate::harness::{Recorder, asked, line, long, new_in, number, scratch, seconds, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;
use source::synthetic::Options;

/// What one round has shown.
#[derive(Debug, Default)]
struct Round {
    acknowledged: usize,
    listed: usize,
    packets: u64,
    missing: u64,
    missing_chunks: u64,
    lost: u64,
}

/// Where the moments come from: the same in every short run, others in each long one.
fn seed() -> u64 {
    if long() { u64::from(std::process::id()) } else { 1 }
}

#[test]
fn killed_at_any_moment_a_recording_keeps_all_that_it_acknowledged() {
    let (rounds, rate) = if long() { (50, "1GB/s") } else { (3, "500MB/s") };
    let seed = seed();
    let mut random = base::random::Random::new(seed);
    let mut rows = Vec::new();
    for round in 0..rounds {
        let folder = scratch();
        let array = new_in(&folder, "array");
        let after = Duration::from_millis(random.below(if long() { 3000 } else { 1500 }));
        let queues = 1 + (round % 2) as u16;
        println!("round {round} of seed {seed}: killed {after:?} after its start, {queues} queues");
        rows.push(killed_after(after, rate, queues, round + 1 == rounds, &array));
        println!("  {:?}", rows[round]);
    }
    let sum = |of: fn(&Round) -> u64| rows.iter().map(of).sum::<u64>();
    println!(
        "{rounds} rounds: {} chunks acknowledged, all found; {} chunks found beyond them; \
         {} packets checked; {} chunks with {} packets not yet acknowledged are missing and named; \
         {} packets found no buffer",
        sum(|r| r.acknowledged as u64),
        sum(|r| (r.listed - r.acknowledged) as u64),
        sum(|r| r.packets),
        sum(|r| r.missing_chunks),
        sum(|r| r.missing),
        sum(|r| r.lost),
    );
    assert!(sum(|r| r.acknowledged as u64) > 0, "every round was over too soon");
}

/// One round on a new array: killed so long after its start, or after its first acknowledgement.
fn killed_after(
    after: Duration,
    rate: &str,
    queues: u16,
    acknowledged: bool,
    array: &Path,
) -> Round {
    let source = format!("synthetic:{rate},queues={queues}");
    let mut recorder =
        Recorder::start(&format!("--from {source} --to @ --member-size 1100MiB"), array);
    if acknowledged {
        recorder.wait_for("an acknowledgement", |event| event["event"] == "acknowledged");
    }
    std::thread::sleep(after);
    recorder.signal(Signal::SIGKILL);
    let ended = recorder.end().code(-1);
    let acknowledged: BTreeSet<u64> = ended.acknowledged().into_iter().collect();

    let shown = settled(array);
    let chunks = shown["chunks"].as_array().expect("there is a list");
    let listed: BTreeSet<u64> = chunks.iter().map(|c| number(c, "sequence")).collect();
    let lost: Vec<_> = acknowledged.difference(&listed).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");

    let mut round =
        Round { acknowledged: acknowledged.len(), listed: listed.len(), ..Round::default() };
    if !listed.is_empty() {
        check_take(array, chunks, queues, &mut round);
    }
    record_on(array, listed.len());
    round
}

/// The array with its chunks, once the kernel has completed the writes that were under way; it holds
/// the members until then.
fn settled(array: &Path) -> Value {
    let mut shown = Value::Null;
    wait_until("nothing writes any more", || {
        shown = asked("array show @ --chunks", array);
        shown["recording"] == false
    });
    shown
}

/// The take that was cut short: its packets, and its ledger.
fn check_take(array: &Path, chunks: &[Value], queues: u16, round: &mut Round) {
    let ran = line("ledger @ --json", array);
    let ledger = ran.json();
    assert_eq!(ledger["state"], "cut short");
    assert_eq!(ledger["balances"], true, "{ledger:#}");
    assert_eq!(ledger["ledger"]["balances"], true);
    round.missing = number(&ledger, "missing.packets");
    round.lost = number(&ledger, "ledger.lost.no_buffer.packets");
    let whole = round.missing + round.lost == 0;
    assert_eq!(ran.code, if whole { 0 } else { 3 }, "{}", ran.stderr);
    let gaps = ledger["gaps"].as_array().expect("there is a list");
    let length = |g: &Value| number(g, "last_sequence") + 1 - number(g, "first_sequence");
    round.missing_chunks = gaps.iter().map(length).sum();

    let extract = array.with_extension("pcapng");
    let output = extract.to_str().expect("a scratch path is text");
    let ran = line(&format!("extract @ -q -o {output}"), array);
    assert_eq!(ran.code, if round.missing == 0 { 0 } else { 3 }, "{}", ran.stderr);
    assert!(!ran.stderr.contains("unreadable"), "{}", ran.stderr);
    let found = synthetic(&extract, &Options { queues, ..Options::default() });
    round.packets = found.checker.packets();
    let packets: u64 = chunks.iter().map(|c| number(c, "packets")).sum();
    assert_eq!(round.packets, packets, "every packet of every listed chunk");
    assert_eq!(round.packets, number(&ledger, "on_media.packets"));

    let mut not_there = 0;
    for queue in found.checker.queues().values() {
        assert_eq!(queue.duplicates, 0);
        assert!(queue.in_order);
        let missing = queue.missing(queue.present.end());
        not_there += missing.iter().map(|r| r.end - r.start).sum::<u64>();
    }
    if queues == 1 {
        assert_eq!(not_there, round.missing + round.lost, "missing, and named");
    } else {
        // One queue's end may be missing, which its sequence numbers don't show.
        assert!(not_there <= round.missing + round.lost, "{not_there} are missing: {ledger:#}");
    }
}

/// The array takes another recording, and shows both.
fn record_on(array: &Path, chunks: usize) {
    let from = "--from synthetic:max,seed=2 --until-bytes 20MB --memory 128MiB";
    let ran = line(&format!("record {from} --to @ -q"), array);
    assert!(matches!(ran.code, 0 | 3), "{}", ran.stderr);
    let takes = asked("takes @", array);
    let takes = takes.as_array().expect("there is a list");
    assert_eq!(takes.len(), if chunks == 0 { 1 } else { 2 });
    let last = &takes[takes.len() - 1];
    assert_eq!(last["state"], "complete");
    assert_eq!(last["balances"], true);
    let extract = array.with_extension("next.pcapng");
    let output = extract.to_str().expect("a scratch path is text");
    line(&format!("extract @ -q --take last -o {output}"), array).code(0);
    let found = synthetic(&extract, &Options { seed: 2, ..Options::default() });
    assert_eq!(found.checker.packets(), number(last, "on_media.packets"));
    assert_eq!(number(last, "missing.packets"), 0);
}

#[test]
fn killed_while_the_ring_turns_the_newest_half_is_whole() {
    let mut random = base::random::Random::new(seed());
    for _ in 0..if long() { 20 } else { 1 } {
        let folder = scratch();
        let array = new_in(&folder, "array");
        let ring = "--members 2 --member-size 129MiB --segment 8MiB --when-full wrap";
        let mut recorder =
            Recorder::start(&format!("--from synthetic:100MB/s --to @ {ring}"), &array);
        recorder.wait_for_written(300 << 20);
        std::thread::sleep(Duration::from_millis(random.below(500)));
        recorder.signal(Signal::SIGKILL);
        let ended = recorder.end().code(-1);
        let shown = settled(&array);
        let chunks = shown["chunks"].as_array().expect("there is a list");
        let newest = &chunks[chunks.len() / 2..];
        let listed: BTreeSet<u64> = newest.iter().map(|c| number(c, "sequence")).collect();
        let from = *listed.first().expect("it wrote more than a lap");
        let acknowledged = ended.acknowledged();
        let lost: Vec<_> =
            acknowledged.iter().filter(|&s| *s >= from && !listed.contains(s)).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        assert!(acknowledged.iter().any(|s| *s >= from));

        let ledger = line("ledger @ --json", &array).json();
        assert_eq!(ledger["state"], "cut short");
        assert_eq!(ledger["balances"], true, "{ledger:#}");
        assert!(number(&ledger, "overwritten.packets") > 0);
        let since = seconds(newest.iter().map(|c| number(c, "first_ns")).min().unwrap_or(0));
        let extract = new_in(&folder, "newest.pcapng");
        let output = extract.to_str().expect("a scratch path is text");
        line(&format!("extract @ -q --since {since} -o {output}"), &array);
        let found = synthetic(&extract, &Options::default());
        let queue = &found.checker.queues()[&0];
        let (first, end) = (found.packets[0].2, queue.present.end());
        let named =
            number(&ledger, "missing.packets") + number(&ledger, "ledger.lost.no_buffer.packets");
        assert!(queue.in_order && queue.duplicates == 0);
        assert!(end - first - queue.present.count() <= named, "{ledger:#}");
    }
}
