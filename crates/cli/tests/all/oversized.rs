//! Packets, options and interface descriptions that no chunk holds: each is truncated, stored and counted, whatever takes
//! it: an array, a ring, parity, a simulated drive; and what is left of it comes back.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::captures::{Frame, read};
use crate::harness::{Ended, Recorder, asked, line, new_in, number, scratch, wait_until};
use format::pcapng::{self, Blocks};
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

const SMALL: &str = "--members 1 --member-size 65MiB --segment 4MiB --chunk 1MiB --memory 64MiB";
const SHORTEST_CHUNKS: &str = "--member-size 65MiB --segment 1MiB --chunk 64KiB --memory 64MiB";

/// Bytes of a comment, and of its option.
const COMMENT_BYTES: usize = 65_000;
const COMMENT_OPTION_BYTES: u64 = 65_004;

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let mut option = [code.to_le_bytes(), (value.len() as u16).to_le_bytes()].concat();
    option.extend(value);
    option.resize(option.len().next_multiple_of(4), 0);
    option
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

/// The head of a pcapng file: a section, and an Ethernet interface for each pair of name and description.
fn head(interfaces: &[(&str, &str)]) -> Vec<u8> {
    let mut file = pcapng::section_header("test", "");
    for (name, description) in interfaces {
        let options =
            [option(2, name.as_bytes()), option(3, description.as_bytes()), option(9, &[9])];
        let body = [&[1, 0, 0, 0, 0, 0, 0, 0][..], &options.concat(), &option(0, &[])].concat();
        file.extend(block(pcapng::INTERFACE, &body));
    }
    file
}

/// A packet of the given options, so many microseconds after the first.
fn packet(interface: u32, after_us: u64, data: &[u8], options: &[u8]) -> Vec<u8> {
    let ns = 1_700_000_000_000_000_000 + after_us * 1000;
    let length = data.len() as u32;
    let mut body = Vec::new();
    for field in [interface, (ns >> 32) as u32, ns as u32, length, length] {
        body.extend(field.to_le_bytes());
    }
    body.extend(data);
    body.resize(body.len().next_multiple_of(4), 0);
    if !options.is_empty() {
        body.extend(options);
        body.extend(option(0, &[]));
    }
    block(pcapng::ENHANCED_PACKET, &body)
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// A file of one short packet with 70 comments of 65,000 bytes.
fn many_comments(folder: &TempDir) -> PathBuf {
    let path = new_in(folder, "comments.pcapng");
    let comments: Vec<u8> =
        (0..70u8).flat_map(|n| option(1, &[b'A' + n % 26; COMMENT_BYTES])).collect();
    let file = [head(&[("eth0", "")]), packet(0, 0, &bytes(60), &comments)].concat();
    fs::write(&path, file).expect("the file can be written");
    path
}

const LONG_BYTES: usize = 6 << 20;

/// A file of a packet of 6 MiB between two short ones.
fn long_packet(folder: &TempDir) -> PathBuf {
    let path = new_in(folder, "long.pcapng");
    let mut file = head(&[("eth0", "")]);
    for (n, length) in [100, LONG_BYTES, 101].into_iter().enumerate() {
        file.extend(packet(0, n as u64, &bytes(length), &[]));
    }
    fs::write(&path, file).expect("the file can be written");
    path
}

/// Records to the end of the source, with events.
fn recorded(from: &str, more: &str, array: &Path) -> Ended {
    Recorder::start(&format!("--from {from} --to @ {more}"), array).end()
}

/// The only take's `ledger` as JSON, which balances; its exit code tells that something was truncated.
#[track_caller]
fn ledger(array: &Path) -> Value {
    let take = line("ledger @ --json", array).code(3).json();
    assert_eq!(take["balances"], true, "{take:#}");
    assert_eq!(take["ledger"]["balances"], true, "{take:#}");
    assert_eq!(take["ledger"]["offered"], take["ledger"]["stored"], "{take:#}");
    take
}

#[track_caller]
fn truncated(ledger: &Value) -> (u64, u64) {
    (number(ledger, "truncated.packets"), number(ledger, "truncated.bytes"))
}

fn extracted(array: &Path, suffix: &str) -> PathBuf {
    let file = array.with_extension(suffix);
    let format = if suffix == "pcap" { "pcap" } else { "pcapng" };
    line(&format!("extract @ -q -y --take last --format {format} -o {}", text(&file)), array)
        .code(0);
    file
}

/// The comments of a file's only packet.
fn comments(file: &Path) -> Vec<Vec<u8>> {
    let file = fs::read(file).expect("it was extracted");
    let blocks = Blocks::new(&file).map(|block| block.expect("it is sound"));
    let packets: Vec<_> = blocks.filter(|block| block.kind == pcapng::ENHANCED_PACKET).collect();
    let [block] = &packets[..] else { panic!("{} packets", packets.len()) };
    let packet = pcapng::read_packet(block).expect("it is sound");
    pcapng::options(packet.options).map(|(_, value)| value.to_vec()).collect()
}

#[test]
fn a_packet_whose_options_no_chunk_holds_keeps_its_data_and_some_of_them() {
    let folder = scratch();
    let (file, array) = (many_comments(&folder), new_in(&folder, "array"));
    let ended = recorded(text(&file), SMALL, &array).code(3);
    assert_eq!(ended.events.iter().filter(|e| e["event"] == "truncated").count(), 1);
    let finished = &ended.event("finished")["ledger"];
    let take = ledger(&array);
    assert_eq!(&take["ledger"], finished);
    assert_eq!(number(finished, "offered.packets"), 1);
    // One chunk with the packet, and one that ends the take.
    assert!(number(&take, "chunks") <= 2, "{take:#}");
    let extract = extracted(&array, "pcapng");
    let kept = comments(&extract);
    assert_eq!(truncated(finished), (1, (70 - kept.len() as u64) * COMMENT_OPTION_BYTES));
    assert_eq!(kept.len(), 16, "what fits a chunk of 1 MiB");
    let original = comments(&file);
    assert_eq!(kept, original[..kept.len()]);
    let Frame { data, original_length, .. } = &read(&extract).frames[0];
    assert_eq!((&data[..], *original_length), (&bytes(60)[..], 60));
    assert_eq!(read(&extracted(&array, "pcap")).frames, read(&extract).frames);
}

#[test]
fn a_ring_keeps_its_earlier_takes_when_a_packet_fits_no_chunk() {
    let folder = scratch();
    let (file, array) = (many_comments(&folder), new_in(&folder, "array"));
    line(&format!("record -q --from synthetic:100MB/s --until-bytes 10MB --to @ {SMALL}"), &array)
        .code(0);
    let before = asked("takes @", &array);
    recorded(text(&file), "--when-full wrap", &array).code(3);
    let after = asked("takes @", &array);
    assert_eq!(after[0], before[0], "the earlier take is as it was");
    assert_eq!(truncated(&after[1]["ledger"]).0, 1);
    let shown = line("takes @", &array).code(0).text();
    assert!(shown.contains("truncated to fit: 1 packet, "), "{shown}");
    assert_eq!(comments(&extracted(&array, "pcapng")).len(), 16);
}

/// Fails unless these are the packets of [`long_packet`], the long one cut; returns what of it is kept.
#[track_caller]
fn kept_of_long(frames: &[Frame]) -> usize {
    let lengths: Vec<_> = frames.iter().map(|frame| frame.original_length).collect();
    assert_eq!(lengths, [100, LONG_BYTES as u32, 101]);
    assert!(frames.windows(2).all(|pair| pair[1].time - pair[0].time == 1000));
    for at in [0, 2] {
        assert_eq!(frames[at].data, bytes(frames[at].original_length as usize));
    }
    assert!(bytes(LONG_BYTES).starts_with(&frames[1].data));
    frames[1].data.len()
}

#[test]
fn a_packet_longer_than_a_chunk_is_cut_counted_extracted_and_skipped_by_replay() {
    let folder = scratch();
    let (file, array) = (long_packet(&folder), new_in(&folder, "array"));
    let said = line(&format!("record --from {} --to @ {SMALL}", text(&file)), &array).code(3);
    assert!(said.text().contains("truncated to fit"), "{}", said.text());
    assert!(
        said.text().contains("balanced: offered = stored + filtered + lost"),
        "{}",
        said.text()
    );
    said.says(&["a packet is longer than a chunk and was truncated"]);
    let take = ledger(&array);
    assert_eq!(number(&take, "ledger.stored.bytes"), (LONG_BYTES + 201) as u64);
    let kept = kept_of_long(&read(&extracted(&array, "pcapng")).frames);
    assert_eq!(kept_of_long(&read(&extracted(&array, "pcap")).frames), kept);
    assert_eq!(truncated(&take["ledger"]), (1, (LONG_BYTES - kept) as u64));
    assert!(kept > (1 << 20) - 4096, "a chunk's worth of it is kept: {kept}");
    let shown = line("ledger @", &array).code(3).text();
    assert!(shown.contains("truncated to fit"), "{shown}");
    line("array check @", &array).code(0);
    // The others have no UDP payload; nothing is sent, and each is counted.
    let replayed = line("replay @ --json --fastest --udp 127.0.0.1:9", &array).code(3).json();
    assert_eq!((number(&replayed, "truncated"), number(&replayed, "not_udp")), (1, 2));
}

#[test]
fn what_was_extracted_is_recorded_again_without_being_truncated_again() {
    let folder = scratch();
    let (file, array, again) =
        (long_packet(&folder), new_in(&folder, "array"), new_in(&folder, "again"));
    recorded(text(&file), SMALL, &array).code(3);
    let extract = extracted(&array, "pcapng");
    recorded(text(&extract), SMALL, &again).code(0);
    let take = line("ledger @ --json", &again).code(0).json();
    assert_eq!(truncated(&take["ledger"]), (0, 0));
    assert_eq!(read(&extracted(&again, "pcapng")).frames, read(&extract).frames);
    let shown = line("ledger @", &again).code(0).text() + &line("takes @", &again).code(0).text();
    assert!(!shown.contains("truncated"), "{shown}");
}

#[test]
fn every_packet_of_a_stream_that_fits_no_chunk_is_counted_with_and_without_parity() {
    for more in ["--members 1", "--members 3 --parity 1", "--members 4 --parity 2"] {
        let folder = scratch();
        let array = new_in(&folder, "array");
        let source = "synthetic:50MB/s,size=65535";
        let limits = format!("--until-bytes 5MB {SHORTEST_CHUNKS} {more}");
        let ended = recorded(source, &limits, &array).code(3);
        let take = ledger(&array);
        assert_eq!(take["ledger"], ended.event("finished")["ledger"]);
        let frames = read(&extracted(&array, "pcapng")).frames;
        assert_eq!(frames.len() as u64, number(&take, "ledger.offered.packets"));
        assert!(frames.iter().all(|frame| frame.original_length == 65_535));
        let kept: u64 = frames.iter().map(|frame| frame.data.len() as u64).sum();
        let cut = number(&take, "ledger.offered.bytes") - kept;
        assert_eq!(truncated(&take["ledger"]), (frames.len() as u64, cut), "{more}");
        line("array check @", &array).code(0);
    }
}

#[test]
fn a_take_that_was_killed_still_tells_what_was_truncated() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let arguments =
        format!("--from synthetic:20MB/s,size=65535 --members 1 --to @ {SHORTEST_CHUNKS}");
    let mut recorder = Recorder::start(&arguments, &array);
    recorder.wait_for("the note", |event| event["event"] == "truncated");
    recorder.wait_for("a status of it", |event| {
        event["event"] == "progress"
            && number(event, "truncated.packets") > 0
            && number(event, "ledger.truncated.packets") > 0
    });
    recorder.wait_for("an acknowledgement", |event| event["event"] == "acknowledged");
    recorder.signal(Signal::SIGKILL);
    recorder.end().code(-1);
    // Writes under way hold the member until the kernel has completed them.
    wait_until("nothing writes any more", || asked("array show @", &array)["recording"] == false);
    let take = ledger(&array);
    assert_eq!(take["state"], "cut short");
    let stored = number(&take, "ledger.stored.packets");
    assert!(stored > 0);
    assert_eq!(truncated(&take["ledger"]).0, stored, "every packet is too long");
}

#[test]
fn packets_that_the_user_asked_to_be_cut_are_not_truncated_to_fit() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let arguments = format!("--until-bytes 1MB --snap 1000 --members 1 {SHORTEST_CHUNKS}");
    let ended = recorded("synthetic:50MB/s,size=65535", &arguments, &array).code(0);
    assert_eq!(truncated(&ended.event("finished")["ledger"]), (0, 0));
    assert!(ended.events.iter().all(|event| event["event"] != "truncated"));
}

#[test]
fn long_texts_of_interfaces_are_cut_and_their_bytes_counted() {
    let folder = scratch();
    let (file, array) = (new_in(&folder, "texts.pcapng"), new_in(&folder, "array"));
    let (name, description) = ("n".repeat(60_000), "d".repeat(65_000));
    let names: Vec<String> = (0..50).map(|n| format!("{n}{name}")).collect();
    let interfaces: Vec<(&str, &str)> = names.iter().map(|n| (&n[..], &description[..])).collect();
    let mut capture = head(&interfaces);
    for n in 0..100 {
        capture.extend(packet(n % 50, u64::from(n), &bytes(60), &[]));
    }
    fs::write(&file, capture).expect("the file can be written");
    let limits = format!("{SHORTEST_CHUNKS} --members 1");
    let ended = recorded(text(&file), &limits, &array).code(0);
    let cut: usize = names.iter().map(|n| n.len() + description.len() - 2000).sum();
    assert_eq!(truncated(&ended.event("finished")["ledger"]), (0, cut as u64));
    let shown = line("ledger @", &array).code(0).text();
    assert!(shown.contains("truncated to fit"), "{shown}");
    let contents = read(&extracted(&array, "pcapng"));
    assert_eq!(contents.frames.len(), 100);
    for frame in &contents.frames {
        let at = (frame.time / 1000 % 50) as usize;
        let interface = &contents.interfaces[frame.interface as usize];
        assert_eq!(interface.name, names[at][..1000]);
        assert_eq!(frame.data, bytes(60));
    }
}

#[test]
fn a_simulated_drive_takes_oversized_packets_as_a_real_one_does() {
    let folder = scratch();
    for file in [many_comments(&folder), long_packet(&folder)] {
        let arguments = "record --json --from @ --to sim:samsung-970-evo-plus-1tb --memory 64MiB";
        let ran = line(arguments, &file).code(3);
        let events: Vec<Value> =
            ran.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let event = |name: &str| events.iter().find(|event| event["event"] == name);
        let finished = event("finished").expect("it ended");
        assert_eq!(truncated(&finished["ledger"]).0, 1, "{finished:#}");
        assert_eq!(finished["ledger"]["balances"], true);
        let read_back = event("read_back").expect("it was read back");
        assert_eq!(number(read_back, "damaged"), 0);
        assert!(number(read_back, "chunks") <= 4, "{read_back}");
    }
}
