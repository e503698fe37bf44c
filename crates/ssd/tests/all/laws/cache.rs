//! The cache in numbers: how much goes in at which rate, what is left of it on a full drive, and what idle time gives back.

use base::{Bank, DriveId, Duration};
use longtake_ssd::spec::WhenFull;
use longtake_ssd::{Spec, Start};

use crate::drives;
use crate::laws::work::{self, Run, write};

/// Bytes of a write.
const BLOCK: u32 = 64 << 10;

/// 512 MiB on 8 dies, three bits a cell, a superblock of the cache 1 MiB.
fn drive() -> Spec {
    let mut spec = drives::cached();
    spec.capacity_bytes = 512 << 20;
    spec.flash.pages_per_block = 24;
    spec.flash.program_us = 1500.0;
    spec.mapping.over_provisioning = 0.25;
    if let Some(cache) = &mut spec.cache {
        cache.static_bytes = 8 << 20;
        cache.dynamic_bytes = 64 << 20;
        cache.program_us = 200.0;
    }
    spec
}

/// Bytes of data in a superblock of the cache.
fn superblock_bytes(spec: &Spec) -> u64 {
    let flash = &spec.flash;
    flash.block_bytes() * u64::from(flash.dies()) / u64::from(flash.pages_per_program)
}

/// Writes one behind the other from `from` on; returns the bytes that had come through at the end of each millisecond.
fn write_on(run: &mut Run, from: u64, bytes: u64) -> Vec<u64> {
    let (start, first) = (run.bank.now(), run.records.len());
    let mut offset = from;
    run.closed_loop(16, (bytes / u64::from(BLOCK)) as u32, || {
        offset += u64::from(BLOCK);
        write(offset - u64::from(BLOCK), BLOCK)
    });
    let mut through = Vec::new();
    for record in &run.records[first..] {
        let at = (record.reaped.expect("it is done").since(start).as_nanos() / 1_000_000) as usize;
        through.resize(through.len().max(at + 1), 0);
        through[at] += u64::from(BLOCK);
    }
    let mut sum = 0;
    for bytes in &mut through {
        sum += *bytes;
        *bytes = sum;
    }
    through
}

/// Bytes a second between two counts of bytes.
fn rate(through: &[u64], from: u64, to: u64) -> f64 {
    let at = |bytes: u64| through.partition_point(|&sum| sum < bytes);
    let (first, last) = (at(from), at(to));
    (through[last] - through[first]) as f64 / (last - first) as f64 * 1e3
}

/// Bytes that went in fast: where a line at the fast rate and one at the slow rate, which ends where the writes did, meet. What the
/// buffer held at the end has not gone in yet.
fn knee(spec: &Spec, through: &[u64], fast: f64, slow: f64) -> f64 {
    let seconds = through.len() as f64 * 1e-3;
    let written = (through[through.len() - 1] - spec.buffer.bytes) as f64;
    (written - slow * seconds) / (1.0 - slow / fast)
}

fn assert_near(what: &str, found: f64, expected: f64, tolerance: f64) {
    let off = found / expected - 1.0;
    assert!(
        off.abs() <= tolerance,
        "{what}: {found:.0}, not {expected:.0} ({:+.2} %)",
        off * 100.0
    );
}

#[test]
fn as_much_as_it_has_goes_in_at_its_rate_and_the_rest_at_the_native_one() {
    let spec = drive();
    let (fast, slow) =
        (spec.cached_write_bytes_per_s().expect("a cache"), spec.native_write_bytes_per_s());
    assert!(fast > 2.0 * slow, "{fast} {slow}");
    let cache = spec.cache.expect("a cache");
    let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Empty, 1)], None, 1);
    // Not so much that it would begin to shrink.
    let through = write_on(&mut run, 0, 192 << 20);
    assert_near("fast", rate(&through, 8 << 20, 48 << 20), fast, 0.02);
    assert_near("slow", rate(&through, 96 << 20, 180 << 20), slow, 0.02);
    let held = (cache.static_bytes + cache.dynamic_bytes) as f64;
    let found = knee(&spec, &through, fast, slow);
    let within = 1.5 * superblock_bytes(&spec) as f64;
    assert!((found - held).abs() <= within, "{found} bytes fast, not {held} to within {within}");
}

#[test]
fn it_shrinks_in_a_straight_line_between_its_thresholds() {
    let spec = drive();
    let cache = spec.cache.expect("a cache");
    let (fast, slow) =
        (spec.cached_write_bytes_per_s().expect("a cache"), spec.native_write_bytes_per_s());
    for percent in [30_u64, 50, 60, 70, 80, 90, 100] {
        let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Full, 1)], None, 1);
        let kept = spec.capacity_bytes / 100 * percent / u64::from(BLOCK) * u64::from(BLOCK);
        let trim = base::Operation::Trim { offset: kept, length: spec.capacity_bytes - kept };
        assert!(run.submit(base::DriveId(0), trim));
        run.drain();
        // Erasing ahead takes idle time.
        run.wait(Some(run.bank.now() + Duration::from_secs(20)));
        // What holds data is written over, so the drive gets no fuller; and no more than what needs no erasing takes.
        let through = write_on(&mut run, 0, 96 << 20);
        let fill = kept as f64 / spec.capacity_bytes as f64;
        let left = 1.0
            - ((fill - cache.shrink_from) / (cache.shrink_to - cache.shrink_from)).clamp(0.0, 1.0);
        let expected = cache.static_bytes as f64 + cache.dynamic_bytes as f64 * left;
        let found = knee(&spec, &through, fast, slow);
        let within = 1.5 * superblock_bytes(&spec) as f64;
        assert!(
            (found - expected).abs() <= within,
            "{percent} % full: {found}, not {expected} to within {within}, {:?}",
            through.iter().step_by(8).collect::<Vec<_>>()
        );
    }
}

#[test]
fn while_it_shrinks_the_host_is_left_what_arithmetic_says() {
    let mut spec = drive();
    spec.flash.erase_us = 1.0;
    let cache = spec.cache.as_mut().expect("a cache");
    (cache.static_bytes, cache.dynamic_bytes) = (0, 64 << 20);
    (cache.shrink_from, cache.shrink_to) = (0.5, 0.8);
    let folding = spec.folding().expect("it shrinks");
    assert_eq!(folding.from_bytes, spec.capacity_bytes / 2);
    let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Empty, 1)], None, 1);
    let through = write_on(&mut run, 0, spec.capacity_bytes);
    let at = |share: f64| (share * spec.capacity_bytes as f64) as u64;
    assert_near("shrinking", rate(&through, at(0.52), at(0.78)), folding.bytes_per_s, 0.05);
    let native = spec.native_write_bytes_per_s();
    assert!(folding.bytes_per_s < 0.9 * native, "{folding:?}");
    assert_near("after", rate(&through, at(0.85), at(0.98)), native, 0.03);
    spec.cache = None;
    assert_eq!(spec.folding(), None);
}

#[test]
fn idle_time_empties_it_and_it_takes_as_much_again() {
    let spec = drive();
    let fast = spec.cached_write_bytes_per_s().expect("a cache");
    let idle_ms = spec.cache.expect("a cache").idle_ms as u64;
    let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Empty, 1)], None, 1);
    write_on(&mut run, 0, 128 << 20);
    // Less than it waits for changes nothing; enough gives all of it back.
    run.wait(Some(run.bank.now() + Duration::from_millis(idle_ms / 2)));
    let through = write_on(&mut run, 0, 16 << 20);
    let again = rate(&through, 4 << 20, 14 << 20);
    assert!(again < 0.6 * fast, "{again} without enough idle time, of {fast}");
    run.wait(Some(run.bank.now() + Duration::from_secs(5)));
    let through = write_on(&mut run, 0, 64 << 20);
    assert_near("after idle time", rate(&through, 8 << 20, 56 << 20), fast, 0.02);
}

/// Bytes that idle time of so many seconds gives back after a full cache.
fn given_back(spec: &Spec, seconds: u64) -> f64 {
    let (fast, slow) =
        (spec.cached_write_bytes_per_s().expect("a cache"), spec.native_write_bytes_per_s());
    let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Empty, 1)], None, 1);
    write_on(&mut run, 0, 128 << 20);
    run.wait(Some(run.bank.now() + Duration::from_secs(seconds)));
    let through = write_on(&mut run, 128 << 20, 112 << 20);
    knee(spec, &through, fast, slow)
}

#[test]
fn idle_time_empties_it_no_faster_than_it_drains() {
    let mut spec = drive();
    let idle_s = spec.cache.expect("a cache").idle_ms / 1e3;
    let all = 72.0 * 1.048_576;
    let within = 1.5 * superblock_bytes(&spec) as f64 / 1e6;
    for (drain_mb_s, seconds) in
        [(2.0, 10), (2.0, 25), (2.0, 60), (0.0, 600), (1e-300, 600), (50.0, 5)]
    {
        spec.cache.as_mut().expect("a cache").drain_mb_s = Some(drain_mb_s);
        let found = given_back(&spec, seconds) / 1e6;
        let expected = (drain_mb_s * (seconds as f64 - idle_s)).min(all);
        assert!((found - expected).abs() <= within, "{found} MB, not {expected}, in {seconds} s");
    }
}

#[test]
fn a_drive_that_waits_for_short_pauses_only_drains_beside_a_part_load() {
    let mut spec = drive();
    let fast = spec.cached_write_bytes_per_s().expect("a cache");
    let mut held = |idle_ms: f64| {
        spec.cache.as_mut().expect("a cache").idle_ms = idle_ms;
        let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Empty, 1)], None, 1);
        // One write at a time, so that the drive has nothing to do for most of it.
        let mut due = run.bank.now();
        for block in 0..(128 << 20) / u64::from(BLOCK) {
            run.wait(Some(due));
            assert!(run.submit(DriveId(0), write(block * u64::from(BLOCK), BLOCK)));
            run.drain();
            due += Duration::from_secs_f64(f64::from(BLOCK) / (fast / 20.0));
        }
        let through = write_on(&mut run, 128 << 20, 112 << 20);
        knee(&spec, &through, fast, spec.native_write_bytes_per_s())
    };
    let (short, long) = (held(0.2), held(50.0));
    let all = (72 << 20) as f64;
    assert!(short > 0.9 * all, "{short} bytes of room after pauses that it uses");
    assert!(long < 0.1 * all, "{long} bytes of room after pauses that are too short for it");
}

#[test]
fn what_is_folded_on_the_way_is_as_slow_as_writing_it_twice() {
    let mut spec = drive();
    spec.cache.as_mut().expect("a cache").when_full = WhenFull::Fold;
    let (fast, slow) =
        (spec.cached_write_bytes_per_s().expect("a cache"), spec.native_write_bytes_per_s());
    let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Empty, 1)], None, 1);
    let through = write_on(&mut run, 0, 112 << 20);
    assert_near("until it is full", rate(&through, 8 << 20, 48 << 20), fast, 0.02);
    let (before, began) = (run.bank.health(0).sets[0].clone(), run.seconds());
    write_on(&mut run, 112 << 20, 96 << 20);
    let (after, seconds) = (run.bank.health(0).sets[0].clone(), run.seconds() - began);
    // Each byte is programmed into the cache, read from it and programmed natively; erasing takes its dies too.
    let flash = &spec.flash;
    let row = f64::from(flash.dies()) * f64::from(flash.planes * flash.page_bytes);
    let reads = row / (spec.cache.expect("a cache").read_us * 1e-6);
    let erases = (after.erases_mean - before.erases_mean) * f64::from(spec.superblocks_of_set());
    let bytes = (after.written_bytes - before.written_bytes) as f64;
    let expected = bytes * (1.0 / fast + 1.0 / slow + 1.0 / reads) + erases * flash.erase_us * 1e-6;
    assert_near("milliseconds when full", seconds * 1e3, expected * 1e3, 0.05);
    assert!((after.media_written_bytes - before.media_written_bytes) as f64 > 1.9 * bytes);
}

#[test]
fn its_first_stage_goes_in_at_a_rate_of_its_own() {
    let mut spec = drive();
    let second = spec.cached_write_bytes_per_s().expect("a cache");
    let first_bytes = 40 << 20;
    let cache = spec.cache.as_mut().expect("a cache");
    (cache.first_bytes, cache.first_program_us) = (first_bytes, Some(cache.program_us / 2.0));
    let (first, slow) =
        (spec.cached_write_bytes_per_s().expect("a cache"), spec.native_write_bytes_per_s());
    assert!(first > 1.8 * second, "{first} {second}");
    let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Empty, 1)], None, 1);
    let through = write_on(&mut run, 0, 128 << 20);
    assert_near("first stage", rate(&through, 4 << 20, 34 << 20), first, 0.03);
    assert_near("second stage", rate(&through, 46 << 20, 66 << 20), second, 0.05);
    assert_near("past both", rate(&through, 90 << 20, 120 << 20), slow, 0.02);
}

#[test]
fn when_flash_runs_out_the_rate_falls_to_what_folding_leaves_and_stays_there_to_the_end() {
    let mut spec = drive();
    spec.flash.erase_us = 1.0;
    let cache = spec.cache.as_mut().expect("a cache");
    (cache.static_bytes, cache.dynamic_bytes) = (0, 150 << 20);
    (cache.shrink_from, cache.shrink_to) = (1.0, 1.0);
    for times in [1.0, 4.0, 20.0] {
        let fold_us = times * spec.flash.program_us;
        spec.cache.as_mut().expect("a cache").fold_us = Some(fold_us);
        let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Empty, 1)], None, 1);
        let through = write_on(&mut run, 0, spec.capacity_bytes);
        // Cached data occupies one cell per bit; the rest of the flash takes this much data.
        let bits = u64::from(spec.flash.pages_per_program);
        let kept = u64::from(spec.mapping.reserve_superblocks) * bits * superblock_bytes(&spec);
        let out = spec.physical_bytes() - kept - (bits - 1) * (150 << 20);
        let native = spec.native_write_bytes_per_s();
        assert_near("before", rate(&through, 170 << 20, out - (16 << 20)), native, 0.02);
        // A byte that is folded frees `bits - 1` of flash, and takes a read and a program.
        let flash = &spec.flash;
        let row = f64::from(flash.dies()) * f64::from(flash.planes * flash.page_bytes);
        let read_us = spec.cache.expect("a cache").read_us;
        let folding = (read_us + fold_us / bits as f64) * 1e-6 / row;
        let expected = 1.0 / (1.0 / native + folding / (bits - 1) as f64);
        let folding = spec.folding().expect("flash runs out");
        assert_near("where", folding.from_bytes as f64, out as f64, 0.02);
        assert_near("arithmetic", folding.bytes_per_s, expected, 0.02);
        for (from, to) in [(out + (16 << 20), 420 << 20), (420 << 20, 500 << 20)] {
            assert_near(&format!("{times} x, {from}"), rate(&through, from, to), expected, 0.05);
        }
    }
}
