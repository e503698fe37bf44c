//! A ring that wraps ten times over: protected spans survive, the rest is the newest data without gaps,
//! and what is extracted by time is right to the nanosecond, also while recording goes on.
//!
//! A hundred times over with `LONGTAKE_LONG=1`.

use std::path::{Path, PathBuf};

use crate::harness::captures::{Synthetic, synthetic};
use crate::harness::{
    Recorder, asked, line, long, new_in, now_ns, number, scratch, seconds, wait_until,
};
use serde_json::Value;
use source::synthetic::Options;

const MEMBERS: u64 = 3;
const SEGMENTS: u64 = 16;
const SEGMENT_BYTES: u64 = 4 << 20;
const RING: &str =
    "--members 3 --member-size 65MiB --segment 4MiB --when-full wrap --memory 128MiB";
const RING_BYTES: u64 = MEMBERS * SEGMENTS * SEGMENT_BYTES;
const PACKET_BYTES: u64 = 1500;

/// Slow enough for a lap to take seconds, and for the buffers to hold what comes while a busy machine stalls for as long.
const FROM: &str = "synthetic:60MB/s";
const BYTES_PER_S: f64 = 60e6;

/// A span of packet time in ns since 1970, both ends included.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: u64,
    to: u64,
}

impl Span {
    /// As arguments.
    fn arguments(self) -> String {
        format!("--since {} --until {}", seconds(self.from), seconds(self.to))
    }

    /// Of a tenth of a second that ended a moment ago.
    fn just_now() -> Self {
        let to = now_ns() - 50_000_000;
        Self { from: to - 100_000_000, to }
    }
}

/// Extracts a span, of which only what the ring has overwritten may be missing, and is named then.
#[track_caller]
fn extract(array: &Path, arguments: &str) -> Synthetic {
    let file = array.with_extension("pcapng");
    let output = file.to_str().expect("a scratch path is text");
    let ran = line(&format!("extract @ -q -y {arguments} -o {output}"), array);
    let overwritten =
        ran.stderr.contains("has overwritten") || ran.stderr.contains("the ring overwrote");
    assert!(ran.code == 0 || (ran.code == 3 && overwritten), "{}", ran.stderr);
    assert!(!ran.stderr.contains("are missing"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("could not be read"), "{}", ran.stderr);
    synthetic(&file, &Options::default())
}

/// The schedule of the synthetic source: when each packet was due. Known from one packet, to the
/// nanosecond.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    start: u64,
    ns_per_byte: f64,
}

impl Schedule {
    fn of(found: &Synthetic) -> Self {
        let ns_per_byte = 1e9 / BYTES_PER_S;
        let &(time, _, sequence) = found.packets.first().expect("there are packets");
        let start = time - ((sequence * PACKET_BYTES) as f64 * ns_per_byte) as u64;
        Self { start, ns_per_byte }
    }

    fn time(self, sequence: u64) -> u64 {
        self.start + ((sequence * PACKET_BYTES) as f64 * self.ns_per_byte) as u64
    }

    /// First and last packet that lie in a span.
    fn within(self, span: Span) -> (u64, u64) {
        let first_from = |time: u64| {
            let (mut low, mut high) = (0, 1 << 40);
            while low < high {
                let middle = (low + high) / 2;
                if self.time(middle) < time { low = middle + 1 } else { high = middle }
            }
            low
        };
        (first_from(span.from), first_from(span.to + 1) - 1)
    }
}

/// How many segments the ring has reused.
fn reused(events: &[Value]) -> u64 {
    events.iter().filter(|e| e["event"] == "reused").count() as u64
}

/// Waits until the ring has turned so many times since `from` reused segments.
fn turn(recorder: &mut Recorder, times: u64) {
    let wanted = reused(&recorder.events) + times * MEMBERS * SEGMENTS;
    while reused(&recorder.events) < wanted {
        recorder.wait_for("a segment is reused", |e| e["event"] == "reused");
    }
}

#[test]
fn a_ring_keeps_the_newest_and_what_is_protected_through_ten_laps() {
    let laps = if long() { 50 } else { 5 };
    let folder = scratch();
    let array = &new_in(&folder, "array");
    let mut recorder = Recorder::start(&format!("--from {FROM} --to @ {RING}"), array);

    // An early lap, and one in the middle. The last of a span may still lie in buffers.
    recorder.wait_for_written(RING_BYTES / 2);
    let early = protect(array);
    let first = while_recording(array, early);
    turn(&mut recorder, laps);
    let later = protect(array);
    let schedule = while_recording(array, later);
    assert_eq!(schedule.time(0), first.time(0));
    while_recording(array, early);
    newest_while_recording(array, schedule);
    turn(&mut recorder, laps);
    while_recording(array, early);
    let ended = recorder.stop();
    let finished = ended.event("finished");
    let lost = number(finished, "ledger.lost.no_buffer.packets");
    // Readers are held back for the writer's sake: nothing is lost by them (or else by a machine
    // too busy to generate the packets, which is the harness's failing and named as such).
    assert_eq!((ended.code, lost), (0, 0), "{}\n{finished:#}", ended.stderr);
    assert!(reused(&ended.events) >= 2 * laps * MEMBERS * SEGMENTS);

    for span in [early, later] {
        let found = extract(array, &span.arguments());
        assert_eq!(found.contiguous(), Some(schedule.within(span)), "{span:?}");
    }
    let since = number(finished, "reused_to_ns") + 1;
    let since_then = format!("--since {}", seconds(since));
    line(&format!("extract @ -q -o - {since_then}"), array).code(0);
    let newest = extract(array, &since_then);
    let (first, last) = newest.contiguous().expect("the ring is not empty");
    assert_eq!(first, schedule.within(Span { from: since, to: since + 1_000_000_000 }).0);
    assert_eq!(last + 1, number(finished, "ledger.offered.packets"), "up to the very last");
    let kept = (last - first) * PACKET_BYTES;
    assert!(kept > RING_BYTES / 3, "only {kept} of {RING_BYTES} bytes are kept without gaps");
    let ledger = line("ledger @ --json", array).code(0).json();
    assert_eq!(ledger["balances"], true, "{ledger:#}");
    assert_eq!(number(&ledger, "missing.packets"), 0);
    assert!(number(&ledger, "overwritten.packets") * PACKET_BYTES > 8 * RING_BYTES);
    let checked = asked("array check @", array);
    assert!(checked["damaged"].as_array().is_some_and(Vec::is_empty), "{checked}");

    borders(array);
    let_go(array, early, later);
}

/// Protects the span just recorded, through the recording under way.
fn protect(array: &Path) -> Span {
    let lap_ns = (RING_BYTES as f64 / BYTES_PER_S * 1e9) as u64;
    loop {
        let span = Span::just_now();
        let label = format!("--label lap-{}", span.to);
        let answer = asked(&format!("protect @ {} {label}", span.arguments()), array);
        assert!(number(&answer, "protected_ranges") > 0);
        if now_ns() < span.to + lap_ns / 2 {
            return span;
        }
        // The ring may have been faster than the request.
        asked(&format!("unprotect @ {}", span.arguments()), array);
    }
}

/// A protected span is found whole while recording goes on, once it is on the media.
fn while_recording(array: &Path, span: Span) -> Schedule {
    let mut schedule = None;
    // Its last chunk is written within the flush interval, and not before its first on every member.
    wait_until("the span is on the media", || {
        let found = extract(array, &span.arguments());
        let Some(part) = found.contiguous() else { return false };
        let known = Schedule::of(&found);
        schedule = Some(known);
        part == known.within(span)
    });
    schedule.expect("it was found")
}

/// What was recorded a moment ago is found while recording goes on. The ring, which holds three seconds, may be faster
/// than we: the slower we are, the younger it must be.
fn newest_while_recording(array: &Path, schedule: Schedule) {
    let mut ages_ms = [1000, 700, 500, 350, 250].into_iter().cycle();
    wait_until("the newest is found", || {
        let age_ms: u64 = ages_ms.next().expect("it begins again");
        let to = now_ns() - age_ms * 1_000_000;
        let span = Span { from: to - 20_000_000, to };
        let found = extract(array, &span.arguments());
        let (first, last) = schedule.within(span);
        found.sequences().eq(first..=last)
    });
}

/// Spans that begin and end right at chunks' and segments' borders hold what the whole has there.
fn borders(array: &Path) {
    let whole = extract(array, "");
    let chunks = asked("array show @ --chunks", array)["chunks"].clone();
    let chunks = chunks.as_array().expect("there is a list");
    let in_segment = |c: &Value| (number(c, "offset") - (1 << 20)) % SEGMENT_BYTES;
    let with_packets = || chunks.iter().filter(|c| number(c, "packets") > 0);
    let at_segment: Vec<_> = with_packets().filter(|c| in_segment(c) == 0).step_by(9).collect();
    let inside: Vec<_> = with_packets().step_by(113).collect();
    assert!(at_segment.len() > 2 && inside.len() > 2);
    for chunk in at_segment.into_iter().chain(inside) {
        let (from, to) = (number(chunk, "first_ns"), number(chunk, "last_ns"));
        for (from, to) in
            [(from, to), (from + 1, to - 1), (from - 1, to + 1), (to, to), (to + 1, to + 1)]
        {
            let found = extract(array, &Span { from, to }.arguments());
            let inside = |p: &&(u64, u16, u64)| (from..=to).contains(&p.0);
            assert!(
                found.packets.iter().eq(whole.packets.iter().filter(inside)),
                "{from} to {to}: {} packets",
                found.packets.len()
            );
        }
    }
}

/// An unprotected span goes on the next lap, and the other stays.
fn let_go(array: &Path, early: Span, later: Span) {
    asked(&format!("unprotect @ {}", early.arguments()), array);
    let shown = asked("array show @", array);
    assert_eq!(shown["protected"].as_array().map(Vec::len), Some(1), "{shown:#}");
    let until = 2 * RING_BYTES;
    line(&format!("record -q --from synthetic:max --until-bytes {until} --to @ {RING}"), array);
    let gone = extract(array, &early.arguments());
    assert_eq!(gone.packets.len(), 0, "it was unprotected two laps ago");
    let kept = extract(array, &later.arguments());
    assert!(kept.contiguous().is_some());
}

#[test]
fn when_all_is_protected_the_recording_stops_and_says_so() {
    let folder = scratch();
    let array: &PathBuf = &new_in(&folder, "array");
    let mut recorder = Recorder::start(
        "--from synthetic:15MB/s --to @ --members 2 --member-size 65MiB --segment 8MiB --when-full wrap --memory 64MiB",
        array,
    );
    recorder.wait_for_written(10 << 20);
    asked("protect @ --since 0 --until 4000000000", array);
    let ended = recorder.end().code(3);
    let full = ended.event("array_full");
    let text = full["text"].as_str().expect("it is a text");
    assert!(text.contains("protected") && text.contains("unprotect"), "{text}");
    let finished = ended.event("finished");
    assert_eq!(finished["ledger"]["balances"], true);
    assert!(number(finished, "ledger.lost.array_full.packets") > 0);
    assert_eq!(number(finished, "reused_to_ns"), 0);
    let ledger = line("ledger @ --json", array).code(3).json();
    assert_eq!(ledger["state"], "complete", "{ledger:#}");
    let found = extract(array, "");
    assert_eq!(found.contiguous().map(|(first, _)| first), Some(0));
    assert_eq!(found.packets.len() as u64, number(&ledger, "on_media.packets"));
    let again =
        line("record -q --from synthetic:100MB/s --to @ --when-full wrap --memory 64MiB", array)
            .code(3);
    again.says(&["protected", "unprotect"]);
}

#[test]
fn a_reader_overtaken_by_the_ring_takes_nothing_for_damage() {
    let folder = scratch();
    let array: &PathBuf = &new_in(&folder, "array");
    // Chunks sealed at another age are of another length: they lie at other places than those before.
    let from = "--from synthetic:40MB/s,imix";
    let ring = "--members 2 --member-size 18MiB --segment 1MiB --chunk 252KiB --when-full wrap";
    line(&format!("record -q {from} --flush-interval 5ms --for 2s --to @ {ring}"), array).code(0);
    let mut recorder =
        Recorder::start(&format!("{from} --flush-interval 3ms --to @ --when-full wrap"), array);
    recorder.wait_for_written(1 << 20);
    let file = array.with_extension("pcapng");
    let output = file.to_str().expect("a scratch path is text");
    let slow = format!("extract @ -q -y --read-rate 10MB/s -o {output}");
    let ran = line(&slow, array);
    assert!(ran.code == 0 || ran.stderr.contains("the ring overwrote"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("are missing"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("could not be read"), "{}", ran.stderr);
    let options = Options { sizes: source::synthetic::Sizes::Imix, ..Options::default() };
    // Whatever it got is right. On a busy machine the ring may be ahead of it from the first chunk on.
    synthetic(&file, &options);
    let checked = asked("array check @", array);
    assert!(checked["damaged"].as_array().is_some_and(Vec::is_empty), "{checked:#}");
    recorder.stop();
    let checked = asked("array check @", array);
    assert!(checked["damaged"].as_array().is_some_and(Vec::is_empty), "{checked:#}");
}

/// Whatever a ring overwrites, each take's account stays what it was when the take ended.
#[test]
fn ten_takes_in_a_wrapped_ring_keep_their_accounts() {
    let folder = scratch();
    let array = new_in(&folder, "ring");
    let account = |take: &Value| {
        ["take", "started", "state", "ledger", "last_sequence"].map(|key| take[key].clone())
    };
    let mut accounts = Vec::new();
    let is_overwritten = |take: &&Value| {
        number(take, "on_media.packets") == 0 && number(take, "overwritten.packets") > 0
    };
    // A fifth of the ring each; less on a machine that is too busy to store all, so that there may have to be more.
    for at in 0.. {
        let new = if at == 0 { "--members 2 --member-size 26MiB --segment 4MiB" } else { "" };
        let command = format!(
            "record --from {FROM} --to @ {new} --when-full wrap --until-bytes 10MB --memory 128MiB -q"
        );
        let ran = line(&command, &array);
        assert!(ran.code == 0 || ran.code == 3, "{}", ran.stderr);
        let takes = asked("takes @", &array);
        let takes = takes.as_array().expect("a list");
        accounts.push(account(takes.last().expect("a take")));
        if accounts.len() >= 10 && takes.iter().any(|take| is_overwritten(&take)) {
            break;
        }
        assert!(at < 200, "the ring never comes round");
    }
    let takes = asked("takes @", &array);
    let takes = takes.as_array().expect("a list");
    assert_eq!(takes.iter().map(account).collect::<Vec<_>>(), accounts);
    let overwritten: Vec<&Value> = takes.iter().filter(is_overwritten).collect();
    for take in takes {
        assert_eq!(take["state"], "complete");
        assert_eq!(number(take, "missing.packets"), 0, "{take}");
        let left = number(take, "on_media.packets") + number(take, "overwritten.packets");
        assert_eq!(left, number(take, "ledger.stored.packets"), "{take}");
    }
    let shown = line("takes @", &array).code(0);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let older = format!("{} older take", overwritten.len());
    assert!(shown.contains(&older) && shown.contains("--all lists"), "{shown}");
    let all = line("takes @ --all", &array).code(0);
    let all = String::from_utf8_lossy(&all.stdout).into_owned();
    let name = overwritten[0]["take"].as_str().expect("a name");
    assert!(!shown.contains(name) && all.contains(&format!("{name}: 0 of ")), "{all}");
    assert!(all.contains(" packets left, older ones overwritten"), "{all}");
}
