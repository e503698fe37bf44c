//! `extract --follow`: every packet of a recording under way comes once, and the end of the take ends it.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::captures::{Synthetic, synthetic};
use crate::harness::{Recorder, Running, asked, longtake, new_in, number, scratch};
use nix::sys::signal::Signal;
use source::synthetic::Options;

/// Two queues, small chunks and small segments on two members: their writes and their queues overtake each other all the time.
const ARRAY: &str = "--from synthetic:20MB/s,queues=2 --members 2 --member-size 257MiB --segment 1MiB --chunk 64KiB --memory 128MiB --flush-interval 200ms";

fn follow(array: &Path, words: &str) -> Command {
    let mut command = longtake();
    command.arg("extract").arg(array).arg("--follow").args(words.split_whitespace());
    command.stdout(Stdio::piped());
    command
}

/// Reads until so many bytes came.
fn read_some(from: &mut impl Read, bytes: usize, into: &mut Vec<u8>) {
    let until = into.len() + bytes;
    let mut block = vec![0; 1 << 16];
    while into.len() < until {
        let came = from.read(&mut block).expect("it can be read");
        assert!(came > 0, "it ended early");
        into.extend_from_slice(&block[..came]);
    }
}

/// The packets of a file, each once and none missing between the first and the last of its queue. Returns these by queue.
#[track_caller]
fn once_each(found: &Synthetic) -> BTreeMap<u16, (u64, u64)> {
    let mut queues: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    for &(_, queue, sequence) in &found.packets {
        queues.entry(queue).or_default().push(sequence);
    }
    let bounds = |(queue, numbers): (u16, Vec<u64>)| {
        for pair in numbers.windows(2) {
            assert_eq!(pair[1], pair[0] + 1, "queue {queue}");
        }
        (queue, (numbers[0], numbers[numbers.len() - 1]))
    };
    queues.into_iter().map(bounds).collect()
}

fn packets(folder: &Path, bytes: &[u8]) -> Synthetic {
    let file: PathBuf = folder.join("followed.pcapng");
    std::fs::write(&file, bytes).expect("there is space");
    synthetic(&file, &Options { queues: 2, ..Options::default() })
}

#[test]
fn each_packet_of_a_recording_comes_once_and_the_end_of_the_take_ends_it() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let recorder = Recorder::start(&format!("{ARRAY} --to @"), &array);
    let mut all = Running::start(&mut follow(&array, "--since 0 -o -"));
    let mut new = Running::start(&mut follow(&array, "-o -"));
    let [mut all_out, mut new_out] =
        [&mut all, &mut new].map(|running| running.0.stdout.take().expect("it is piped"));
    let (mut all_bytes, mut new_bytes) = (Vec::new(), Vec::new());
    // Enough for many looks at the array.
    read_some(&mut new_out, 30_000_000, &mut new_bytes);
    read_some(&mut all_out, 30_000_000, &mut all_bytes);
    recorder.stop().code(0);
    new_out.read_to_end(&mut new_bytes).expect("it can be read");
    all_out.read_to_end(&mut all_bytes).expect("it can be read");
    assert_eq!((all.wait(), new.wait()), (0, 0));
    let stored = number(&asked("ledger @", &array), "ledger.stored.packets");
    let found = packets(folder.path(), &all_bytes);
    let all = once_each(&found);
    assert_eq!(found.packets.len() as u64, stored);
    assert_eq!(all.values().map(|bounds| bounds.0).collect::<Vec<_>>(), [0, 0]);
    let new = once_each(&packets(folder.path(), &new_bytes));
    for (queue, (_, last)) in &new {
        assert_eq!(*last, all[queue].1, "queue {queue}");
    }
    assert_eq!(new.len(), 2);
}

#[test]
fn it_waits_for_a_recording_and_a_signal_leaves_a_complete_file() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    Recorder::start(&format!("{ARRAY} --to @ --until-bytes 1MB"), &array).end().code(0);
    let output = new_in(&folder, "out.pcapng");
    let mut waits = Running::start(&mut follow(&array, "-o -"));
    let words = format!("-q -o {}", output.display());
    let mut signalled = Running::start(&mut follow(&array, &words));
    let mut out = waits.0.stdout.take().expect("it is piped");
    let mut bytes = Vec::new();
    // The file's header comes at once, and nothing else before there is a recording.
    read_some(&mut out, 28, &mut bytes);
    let recorder =
        Recorder::start("--from synthetic:20MB/s,queues=2 --to @ --flush-interval 200ms", &array);
    read_some(&mut out, 3_000_000, &mut bytes);
    signalled.signal(Signal::SIGINT);
    assert_eq!(signalled.wait(), 0);
    once_each(&synthetic(&output, &Options { queues: 2, ..Options::default() }));
    recorder.stop().code(0);
    out.read_to_end(&mut bytes).expect("it can be read");
    assert_eq!(waits.wait(), 0);
    let stored = number(&asked("ledger @", &array), "ledger.stored.packets");
    let found = packets(folder.path(), &bytes);
    once_each(&found);
    assert_eq!(found.packets.len() as u64, stored);
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let recorder = Recorder::start(&format!("{ARRAY} --to @"), &array);
    let mut running = Running::start(follow(&array, "-o -").stderr(Stdio::piped()));
    let mut out = running.0.stdout.take().expect("it is piped");
    read_some(&mut out, 1000, &mut Vec::new());
    drop(out);
    assert_eq!(running.wait(), 1);
    recorder.stop().code(0);
    let mut said = String::new();
    running.0.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it is text");
    assert!(!said.contains("pipe"), "{said}");
}
