//! Faults that other simulators are known for, one test each. That there is a cache is [`crate::laws::cache`]'s to show, that each set wears
//! on its own [`crate::laws::wear`]'s, and that memory doesn't grow has a program of its own (`tests/memory.rs`), as it looks at all of its.

use base::{DriveId, Latencies, Random};
use longtake_ssd::spec::{Namespace, SetLayout, Sets};
use longtake_ssd::{Spec, Start};

use crate::drives;
use crate::laws::work::{self, Run, read, write};

/// Bytes of small commands.
const SMALL: u32 = 4096;

/// Reads of the second namespace, four under way, while sixteen random writes are under way to the first, or none.
fn reads_beside(spec: &Spec, writes: bool) -> Latencies {
    let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Full, 1)], None, 1);
    let mut random = Random::new(9);
    let places = spec.capacity_bytes / 2 / u64::from(SMALL) - 1;
    let mut offset = || random.below(places) * u64::from(SMALL);
    for _ in 0..16 {
        if writes {
            assert!(run.submit(DriveId(0), write(offset(), SMALL)));
        }
    }
    for _ in 0..4 {
        assert!(run.submit(DriveId(1), read(offset(), SMALL)));
    }
    let mut latencies = Latencies::default();
    while latencies.count() < 40_000 {
        for tag in run.wait(None) {
            let record = run.records[tag as usize];
            let reading = record.command.drive == DriveId(1);
            if reading {
                latencies.record(record.latency());
            }
            let next = if reading { read(offset(), SMALL) } else { write(offset(), SMALL) };
            assert!(run.submit(record.command.drive, next));
        }
    }
    if writes {
        let amplification = run.bank.health(0).sets[0].write_amplification();
        assert!(amplification > Some(1.1), "collection goes on: {amplification:?}");
    }
    latencies
}

/// Two halves: in sets of their own, or in one.
fn halves(layout: SetLayout, count: u32) -> Spec {
    let mut spec = drives::small();
    spec.mapping.over_provisioning = 0.5;
    let half = |set| Namespace { share: 0.5, sets: vec![set] };
    spec.sets = Sets { layout, count, namespaces: vec![half(0), half(count - 1)] };
    spec
}

#[test]
fn a_writer_in_one_vertical_set_leaves_reads_in_another_as_they_are() {
    let alone = reads_beside(&halves(SetLayout::Vertical, 2), false);
    let beside = reads_beside(&halves(SetLayout::Vertical, 2), true);
    for percent in [50.0, 99.0, 99.9] {
        let (alone, beside) =
            (alone.at(percent).as_nanos() as f64, beside.at(percent).as_nanos() as f64);
        // Only the controller is shared: a write is there for 2 us.
        assert!(
            beside <= alone + 4_000.0,
            "{percent} %: {beside} ns beside a writer, {alone} alone"
        );
    }
    let together = reads_beside(&halves(SetLayout::Vertical, 1), true);
    let mean = |latencies: &Latencies| latencies.mean_ns().expect("there are reads");
    assert!(mean(&beside) < 1.03 * mean(&alone), "{} {}", mean(&beside), mean(&alone));
    assert!(mean(&together) > 1.3 * mean(&alone), "{} {}", mean(&together), mean(&alone));
}

#[test]
fn horizontal_sets_share_channels_and_no_dies() {
    let mean = |spec, writes| reads_beside(&spec, writes).mean_ns().expect("there are reads");
    let alone = mean(halves(SetLayout::Horizontal, 2), false);
    let beside = mean(halves(SetLayout::Horizontal, 2), true);
    let vertical =
        mean(halves(SetLayout::Vertical, 2), true) / mean(halves(SetLayout::Vertical, 2), false);
    let together = mean(halves(SetLayout::Horizontal, 1), true);
    assert!(beside / alone > vertical, "a channel's writer is felt: {beside} {alone} {vertical}");
    assert!(beside < together, "a die's is not: {beside} {together}");
}

#[test]
fn what_was_trimmed_is_not_copied() {
    let amplification = |trimmed: bool| {
        let mut spec = drives::small();
        spec.capacity_bytes = 128 << 20;
        spec.mapping.over_provisioning = 0.2;
        let half = spec.capacity_bytes / 2;
        let mut run = Run::new(&[work::slot_of(spec, Start::Full, 1)], None, 1);
        if trimmed {
            assert!(run.submit(DriveId(0), base::Operation::Trim { offset: half, length: half }));
            run.drain();
        }
        let mut random = Random::new(3);
        // Only the first half is written: the other is cold data, or none.
        let places = half / u64::from(SMALL);
        run.closed_loop(32, 60_000, || write(random.below(places) * u64::from(SMALL), SMALL));
        run.bank.health(0).sets[0].write_amplification().expect("it was written")
    };
    let (with, without) = (amplification(true), amplification(false));
    assert!(
        with < 1.2,
        "1.2 times the drive for half of its data leaves next to nothing to copy: {with}"
    );
    assert!(without > 1.5, "{without}");
}

#[test]
fn writes_are_taken_no_faster_than_the_medium_takes_them_however_long() {
    let spec = drives::small();
    let flash = &spec.flash;
    // Every superblock is erased before it is programmed again.
    let wordlines = f64::from(flash.pages_per_block / flash.pages_per_program);
    let native = spec.native_write_bytes_per_s() * wordlines * flash.program_us
        / (wordlines * flash.program_us + flash.erase_us);
    let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Full, 1)], None, 1);
    let mut offset = 0;
    // 2 GiB in tenths.
    for tenth in 0..10 {
        let (first, before) = (run.records.len(), run.seconds());
        run.closed_loop(16, 3_200, || {
            offset = (offset + (64 << 10)) % spec.capacity_bytes;
            write(offset, 64 << 10)
        });
        let bytes = run.moved(first..run.records.len()).1 as f64;
        let rate = bytes / (run.seconds() - before);
        // The buffer and superblocks that need no erasing help in the first only.
        assert!(
            tenth == 0 || (rate / native - 1.0).abs() < 0.02,
            "tenth {tenth}: {rate}, not {native}"
        );
        assert!(run.bank.buffered_bytes(0) <= spec.buffer.bytes);
    }
}

#[test]
fn a_run_of_less_than_a_second_has_the_rate_of_a_long_one() {
    let rate = |commands: u32| {
        let mut run = Run::new(&[work::slot_of(drives::small(), Start::Full, 1)], None, 1);
        let mut random = Random::new(3);
        run.closed_loop(16, commands, || read(random.below(16_384) * u64::from(SMALL), SMALL));
        (f64::from(commands) / run.seconds(), run.seconds())
    };
    let (long, long_s) = rate(200_000);
    let (short, short_s) = rate((long * 0.3) as u32);
    assert!((0.28..0.32).contains(&short_s) && long_s > 1.5, "{short_s} s and {long_s} s");
    assert!((short / long - 1.0).abs() < 0.01, "{short} a second in 0.3 s, {long} in {long_s} s");
}

#[test]
fn collection_is_paced_so_no_write_waits_for_a_whole_block() {
    let mut spec = drives::small();
    spec.capacity_bytes = 256 << 20;
    spec.flash.pages_per_block = 96;
    spec.mapping.over_provisioning = 0.5;
    let slot = work::slot_of(spec.clone(), Start::Random { block_bytes: SMALL }, 1);
    let mut run = Run::new(&[slot], None, 1);
    let mut random = Random::new(3);
    let places = spec.capacity_bytes / u64::from(SMALL);
    run.closed_loop(32, 150_000, || write(random.below(places) * u64::from(SMALL), SMALL));
    let set = &run.bank.health(0).sets[0];
    let amplification = set.write_amplification().expect("it was written");
    assert!(amplification > 1.5 && set.erases_mean > 1.0, "it is steady: {set:?}");
    let longest = run.records.iter().map(|record| record.latency().as_nanos()).max();
    let longest_us = longest.expect("there are writes") as f64 / 1e3;
    let flash = &spec.flash;
    let wordlines = f64::from(flash.pages_per_block / flash.pages_per_program);
    // A plane bound to its own collection: the valid share of a block copied, and the block erased, with the host waiting.
    let valid = 1.0 - 1.0 / amplification;
    let reads_us = f64::from(flash.pages_per_program) * flash.read_us;
    let bound_us = valid * wordlines * (flash.program_us + reads_us) + flash.erase_us;
    // Paced: an erase for the host's superblock and one for the copies', and the programs of a wordline of each.
    let paced_us = 2.0 * flash.erase_us + 2.0 * amplification * (flash.program_us + reads_us);
    assert!(longest_us < paced_us, "{longest_us} us, not {paced_us}; {bound_us} if bound");
    assert!(longest_us < bound_us / 2.0, "{longest_us} us, and {bound_us} if bound");
}

/// Commands a second of a closed loop of so many, by exact mean value analysis (Reiser and Lavenberg, 1980): queues by demand in
/// seconds, how many alike of each; and a delay without queue. It is exact where services vary as exponentials do; constant ones,
/// as ours, make shorter queues, so it is a lower bound.
fn closed_loop_per_s(depth: u32, queues: &[(f64, f64)], delay_s: f64) -> f64 {
    let mut waiting = vec![0.0; queues.len()];
    let mut per_s = 0.0;
    for under_way in 1..=depth {
        let residence = |(queue, length): (&(f64, f64), &f64)| queue.0 * (1.0 + length);
        let each: Vec<f64> = queues.iter().zip(&waiting).map(residence).collect();
        let all: f64 = each.iter().zip(queues).map(|(one, queue)| one * queue.1).sum();
        per_s = f64::from(under_way) / (delay_s + all);
        waiting = each.iter().map(|one| per_s * one).collect();
    }
    per_s
}

#[test]
fn transfers_that_are_ready_are_not_held_back_by_reservations() {
    let mut spec = drives::small();
    (spec.flash.channels, spec.flash.dies_per_channel) = (8, 4);
    spec.capacity_bytes = 256 << 20;
    spec.flash.pages_per_block = 6;
    spec.buffer.bytes = 16 << 20;
    for channel_mb_s in [200.0, 400.0, 800.0] {
        spec.flash.channel_mb_s = channel_mb_s;
        let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Full, 1)], None, 1);
        let mut random = Random::new(3);
        let places = spec.capacity_bytes / u64::from(SMALL);
        run.closed_loop(32, 100_000, || read(random.below(places) * u64::from(SMALL), SMALL));
        let found = 100_000.0 / run.seconds();
        let transfer_s = f64::from(SMALL) / (channel_mb_s * 1e6);
        let queues = [
            (spec.flash.read_us * 1e-6 / 32.0, 32.0),
            (transfer_s / 8.0, 8.0),
            (f64::from(SMALL) / spec.link.bytes_per_s(), 1.0),
            (1.0 / spec.controller.read_iops, 1.0),
        ];
        let least = closed_loop_per_s(32, &queues, spec.controller.read_us * 1e-6);
        let most = queues.iter().map(|queue| 1.0 / queue.0).fold(f64::INFINITY, f64::min);
        assert!(
            (least..most).contains(&found),
            "{channel_mb_s} MB/s: {found} a second, not {least} to {most}"
        );
        // A loop without its edges: what a third less would come to is below the bound.
        assert!(0.69 * found < least, "the bound tells the error: {found} {least}");
    }
}
