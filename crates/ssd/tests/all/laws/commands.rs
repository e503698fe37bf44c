//! Laws of commands: each completes once, none sooner than its way takes, and what is under way is what Little says.

use base::{DriveId, Duration, Operation};
use longtake_ssd::spec::Media;
use longtake_ssd::{Slot, Spec, Start, Uplink};
use proptest::prelude::*;

use super::specs;
use crate::drives;
use crate::laws::work::{self, Record, Run, read, write};

/// Nanoseconds that roundings of times and transfers may take off a command's way.
const ROUNDING_NS: f64 = 4.0;

/// Nanoseconds that a command's way takes at least, however idle the drive; without the medium unless `medium`, as data may be in
/// memory, or nowhere.
fn least_ns(spec: &Spec, uplink: Option<Uplink>, record: &Record, medium: bool) -> f64 {
    let controller = &spec.controller;
    let (read, written) = record.moved();
    let over = |bytes: u64, bytes_per_s: f64| bytes as f64 / bytes_per_s * 1e9;
    let link = |bytes| over(bytes, spec.link.bytes_per_s());
    let shared = match uplink {
        Some(shared) => {
            over(read, shared.read_bytes_per_s).max(over(written, shared.write_bytes_per_s))
        }
        None => 0.0,
    };
    let moved = link(read + written).max(shared);
    let in_place = spec.flash.media == Media::InPlace;
    let own_us = match record.command.operation {
        Operation::Read { .. } => {
            let cells = if medium || in_place { spec.flash.read_us } else { 0.0 };
            1e6 / controller.read_iops + controller.read_us + cells
        }
        Operation::Write { .. } => {
            let cells = if in_place { spec.flash.program_us } else { 0.0 };
            1e6 / controller.write_iops + controller.write_us + cells
        }
        Operation::Trim { .. } | Operation::Flush => {
            1e6 / controller.write_iops + controller.write_us
        }
    };
    own_us * 1e3 + moved - ROUNDING_NS
}

proptest! {
    #![proptest_config(specs::cases(128))]

    // That each completes once, when the bank says so, and that time never goes back: Run::wait looks at every completion.
    #[test]
    fn commands_complete_once_and_no_sooner_than_their_way_takes(
        (slot, uplink, work) in work::case(specs::any())
    ) {
        let run = Run::of(&slot, uplink, &work);
        for record in &run.records {
            let least = least_ns(run.bank.spec(0), uplink, record, false);
            let took = record.latency().as_nanos() as f64;
            // Transfers are rounded part by part; the shortest parts are blocks.
            let (read, written) = record.moved();
            let parts = (read + written) as f64 / f64::from(slot.spec.block_bytes);
            prop_assert!(took >= least - parts / 2.0, "{took} ns, not {least}: {record:?}");
        }
        let health = run.bank.health(0);
        let reads = run.records.iter().filter(|record| record.moved().0 > 0).count();
        let writes = run.records.iter().filter(|record| record.moved().1 > 0).count();
        prop_assert_eq!((health.reads, health.writes), (reads as u64, writes as u64));
        prop_assert_eq!((health.read_bytes, health.written_bytes), run.moved(0..run.records.len()));
    }

    #[test]
    fn the_integral_of_what_is_under_way_is_the_sum_of_latencies(
        (slot, uplink, work) in work::case(specs::any())
    ) {
        // Little's law as an identity, to the nanosecond: both sides are what rate x time x mean latency is.
        let run = Run::of(&slot, uplink, &work);
        let latencies: u128 = run.records.iter().map(|one| u128::from(one.latency().as_nanos())).sum();
        prop_assert_eq!(run.under_way_ns, latencies);
        prop_assert_eq!(run.bank.health(0).busy, run.busy);
    }

    #[test]
    fn what_lies_on_flash_takes_its_cells_time(mut spec in specs::nand(), seed: u64) {
        spec.cache = None;
        let slot = work::slot_of(spec, Start::Full, seed);
        let mut phase = work::Phase {
            commands: 300,
            mix: [1, 0, 0, 0],
            random: true,
            region: (0.0, 1.0),
            bytes: (512, 64 << 10),
            depth: 8,
            idle: None,
            pause_ns: 0,
        };
        let mut run = Run::new(&[slot], None, seed);
        run.phase(&phase);
        phase.random = false;
        run.phase(&phase);
        run.drain();
        for record in &run.records {
            let least = least_ns(run.bank.spec(0), None, record, true);
            let parts = record.moved().0 as f64 / f64::from(run.bank.spec(0).block_bytes);
            prop_assert!(record.latency().as_nanos() as f64 >= least - parts, "{least}: {record:?}");
        }
    }
}

#[test]
fn rate_times_mean_latency_is_the_depth_of_a_closed_loop() {
    for depth in [1, 7, 32] {
        let slot: Slot = work::slot_of(drives::small(), Start::Full, 1);
        let mut run = Run::new(&[slot], None, 1);
        let mut offsets = base::Random::new(4);
        run.closed_loop(depth, 20_000, || read(offsets.below(16_384) * 4096, 4096));
        let seconds = run.seconds();
        let latencies: Duration =
            run.records.iter().map(Record::latency).fold(Duration::ZERO, |a, b| a + b);
        let found = latencies.as_secs_f64() / seconds;
        // The loop is not full while the last commands drain: `depth` of 20,000 at most.
        let off = 1.0 - found / depth as f64;
        assert!((0.0..0.003).contains(&(off + 1e-12)), "{found} under way, of {depth}");
    }
}

#[test]
fn writes_larger_than_the_buffer_complete() {
    let mut spec = drives::cached();
    spec.buffer.bytes = 2 * spec.flash.program_bytes() * u64::from(spec.flash.dies());
    for protected in [false, true] {
        spec.buffer.protected = protected;
        let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Empty, 1)], None, 1);
        // A unit first, so that the last one of every row is waited for.
        assert!(run.submit(DriveId(0), write(0, 4096)));
        for offset in (4096..48 << 20).step_by(4 << 20) {
            assert!(run.submit(DriveId(0), write(offset, 4 << 20)));
        }
        run.drain();
    }
}
