//! A trace on drives in virtual time, where every latency is known beforehand.

use std::io::Cursor;

use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use base::{Bank, Duration};
use load::trace::{Choice, FittedTrace, Fitting, Input, Speed, Trace};
use load::{Measurement, Verb};
use longtake_load as load;
use proptest::prelude::*;

use crate::engine::run_workload;

/// Two reads and a write, at 0, 1 and 1 ms.
const LOG: &str =
    "fio version 3 iolog\n0 f read 0 4096\n1000 f write 8192 4096\n1000 f read 4096 8192\n";

/// Replays it on a drive that takes 10 ms for everything, one command at a time.
fn replayed(speed: Speed, depth: u32) -> Measurement {
    let bytes = Box::new(Cursor::new(LOG.as_bytes()));
    let input = Input { name: "log".to_owned(), bytes };
    let trace = Trace::read(vec![input], &Choice::default()).unwrap();
    let memory = MemoryBuffers::new(256, 1 << 20);
    let drive = MemoryDrive { latency: Duration::from_millis(10), ..MemoryDrive::default() };
    let mut bank = MemoryBank::new(vec![drive], memory.clone());
    let fitting = Fitting { speed, wrap: false, depth: Some(depth) };
    let fitted = FittedTrace::new(&trace, &bank.drives()[0], fitting).unwrap();
    let start = bank.now();
    run_workload(&mut bank, &memory, &fitted.workload, start).0
}

/// Count, bytes, and longest service and response in milliseconds.
fn of(measured: &Measurement, verb: Verb) -> (u64, u64, u64, u64) {
    let result = measured.result("trace", verb).unwrap();
    let ms = |ns: Option<u64>| ns.unwrap() / 1_000_000;
    (result.count, result.bytes, ms(result.service.max_ns), ms(result.response.max_ns))
}

#[test]
fn at_recorded_times_a_response_includes_the_wait_for_what_came_before() {
    let measured = replayed(Speed::Recorded(1.0), 1);
    // Submitted at 0, 10 and 20 ms, and due at 0, 1 and 1.
    assert_eq!(of(&measured, Verb::Write), (1, 4096, 10, 19));
    assert_eq!(of(&measured, Verb::Read), (2, 12288, 10, 29));
    assert_eq!(measured.elapsed_ns, 30_000_000);
    assert_eq!(measured.results.iter().map(|result| result.delayed).sum::<u64>(), 2);
    assert_eq!((measured.unsent, measured.error_count()), (0, 0));
}

#[test]
fn with_room_every_request_starts_at_its_time() {
    let measured = replayed(Speed::Recorded(0.5), 8);
    assert_eq!(of(&measured, Verb::Read), (2, 12288, 10, 10));
    assert_eq!(measured.elapsed_ns, 12_000_000, "half as fast, the last is due at 2 ms");
}

#[test]
fn as_fast_as_possible_the_depth_is_kept_and_times_do_not_matter() {
    let measured = replayed(Speed::Fastest, 1);
    assert_eq!(of(&measured, Verb::Read), (2, 12288, 10, 10));
    assert_eq!(measured.elapsed_ns, 30_000_000);
    assert_eq!(replayed(Speed::Fastest, 3).elapsed_ns, 10_000_000);
}

/// A record of blktrace (a queued read of 4 KiB), and a line of each format that is text.
fn seeds() -> Vec<Vec<u8>> {
    let mut record = vec![0; 48];
    for (at, bytes) in [
        (0, 0x6561_7407_u32.to_le_bytes()),
        (24, 4096_u32.to_le_bytes()),
        (28, 0x0011_0001_u32.to_le_bytes()),
    ] {
        record[at..at + 4].copy_from_slice(&bytes);
    }
    let lines = [
        LOG,
        "fio version 2 iolog\nf read 0 4096\nf wait 5 0\nf write 0 512\n",
        "1,usr,0,Read,0,512,1\n2,usr,0,Write,512,512,1\n",
        "0,R,0,4096,15\n1,W,512,4096,16\n",
        "15,0,8,0,7\n15,8,8,1,7\n",
    ];
    let text = lines.map(|line| line.as_bytes().to_vec());
    std::iter::once([record.clone(), record].concat()).chain(text).collect()
}

proptest! {
    #[test]
    fn whatever_is_in_a_file_it_is_a_trace_within_the_drive_or_an_error(
        seed in 0..6_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
    ) {
        let mut bytes = seeds().swap_remove(seed);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        let input = Input { name: "file".to_owned(), bytes: Box::new(Cursor::new(bytes)) };
        let Ok(trace) = Trace::read(vec![input], &Choice::default()) else { return Ok(()) };
        let bank = MemoryBank::without_data(vec![MemoryDrive::default()]);
        let drive = &bank.drives()[0];
        let fitting = Fitting { speed: Speed::Fastest, wrap: true, depth: None };
        let Ok(fitted) = FittedTrace::new(&trace, drive, fitting) else { return Ok(()) };
        let commands = fitted.workload.streams[0].trace.as_ref().unwrap().requests().unwrap();
        for command in commands.iter() {
            let end = command.offset + u64::from(command.length);
            prop_assert!(command.length > 0 && command.length <= drive.transfer_max_bytes);
            prop_assert!(end <= drive.capacity_bytes);
            prop_assert!((command.offset | end).is_multiple_of(drive.block_bytes.into()));
        }
    }
}
