//! The clock, and when `wait` comes back.

use super::{Bench, Fixture};
use crate::{Bank, Completion, Duration, Instant, Operation};

/// A flush that takes longer than five minutes, on whatever drive, is taken for lost. Counted in
/// polls, because the clock may be what is wrong.
const POLL_EVERY: Duration = Duration::from_micros(100);
const POLLS_MAX: u32 = 3_000_000;

pub(super) fn now_never_goes_backward_and_stamps_lie_within<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    let mut last = bench.bank().now();
    for drive in bench.drives().into_iter().cycle().take(200) {
        let submitted = bench.bank().now();
        assert!(submitted >= last);
        bench.submit(drive, Operation::Flush).expect("a bank with nothing under way");
        let done = bench.collect(1).remove(0);
        last = bench.bank().now();
        assert!(submitted <= done.reaped && done.reaped <= last, "{done:?}");
    }
}

pub(super) fn waiting_for_nothing_returns_at_once<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    let mut done = Vec::new();
    for _ in 0..3 {
        bench.bank().wait(None, &mut done).expect("a bank that works");
        assert_eq!(done, []);
        let drive = bench.drives()[0];
        bench.submit(drive, Operation::Flush).expect("a bank with nothing under way");
        bench.collect(1);
    }
}

pub(super) fn a_time_that_has_passed_polls<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    let drive = bench.drives()[0];
    let mut done = Vec::new();
    bench.bank().wait(Some(Instant::START), &mut done).expect("a bank that works");
    let now = bench.bank().now();
    bench.bank().wait(Some(now), &mut done).expect("a bank that works");
    assert_eq!(done, []);
    // Polling hands over what was submitted, so that it gets done if time passes.
    let tag = bench.submit(drive, Operation::Flush).expect("a bank with nothing under way");
    bench.bank().wait(Some(now), &mut done).expect("a bank that works");
    for _ in 0..POLLS_MAX {
        if !done.is_empty() {
            break;
        }
        bench.bank().wait_for(POLL_EVERY, &mut done).expect("a bank that works");
    }
    assert_eq!(done.iter().map(|done| done.tag).collect::<Vec<_>>(), [tag]);
}

pub(super) fn waiting_reaches_its_time_when_nothing_is_done<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    let mut done = Vec::new();
    for span in [Duration::from_nanos(1), Duration::from_micros(70), Duration::from_millis(3)] {
        let until = bench.bank().now() + span;
        bench.bank().wait(Some(until), &mut done).expect("a bank that works");
        assert!(bench.bank().now() >= until);
        assert_eq!(done, []);
    }
}

pub(super) fn waiting_ends_when_something_is_done<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    // A bank that slept until then would not come back in any test's time; virtual time shows it.
    let far = Duration::from_secs(200 * 365 * 86_400);
    for drive in bench.drives() {
        let until = bench.bank().now() + far;
        let tag = bench.submit(drive, Operation::Flush).expect("a bank with nothing under way");
        let mut done = Vec::new();
        bench.bank().wait(Some(until), &mut done).expect("a bank that works");
        assert_eq!(done.iter().map(|done| done.tag).collect::<Vec<_>>(), [tag]);
        assert!(bench.bank().now() < until);
    }
}

pub(super) fn waiting_appends_to_what_is_there<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    let drive = bench.drives()[0];
    let there = Completion { drive, tag: 4711, outcome: Ok(()), reaped: Instant::from_nanos(5) };
    let mut done = vec![there.clone()];
    let tag = bench.submit(drive, Operation::Flush).expect("a bank with nothing under way");
    bench.bank().wait(None, &mut done).expect("a bank that works");
    assert_eq!(done.len(), 2);
    assert_eq!(done[0], there);
    assert_eq!(done[1].tag, tag);
}
