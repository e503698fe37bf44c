//! A trace on drives in virtual time, where every latency is known beforehand.

use std::io::Cursor;

use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use base::{Bank, Duration};
use load::trace::{Choice, FittedTrace, Fitting, Input, Speed, Trace};
use load::{Measurement, Verb};
use longtake_load as load;

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
