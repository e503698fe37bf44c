//! Reads that are repeated: how many, for how long, and that wear makes them more.

use base::{Bank, DriveId, Random};
use longtake_ssd::{Spec, Start};

use crate::drives;
use crate::laws::work::{Run, read, slot_of, write};

const READS: u64 = 4_000;

/// One die for each channel, so that a read waits for nothing but its cells.
fn worn(retry_share: f64, used: f64) -> Spec {
    let mut spec = drives::small();
    spec.flash.retry_share = retry_share;
    spec.endurance.used = used;
    spec
}

/// How often each of many reads was repeated, one read after the other, by how long it took.
fn repetitions(run: &mut Run, spec: &Spec, once_us: f64) -> Vec<u64> {
    let mut random = Random::new(5);
    let first = run.records.len();
    for _ in 0..READS {
        let offset = random.below(spec.capacity_bytes / 4096) * 4096;
        assert!(run.submit(DriveId(0), read(offset, 4096)));
        run.drain();
    }
    let times = |us: f64| {
        let times = (us - once_us) / spec.flash.read_us;
        assert!((times - times.round()).abs() < 1e-6, "whole reads of a cell: {times}");
        times.round() as u64
    };
    run.records[first..].iter().map(|one| times(one.latency().as_nanos() as f64 / 1e3)).collect()
}

/// A read of a drive that repeats none, in microseconds.
fn once_us() -> f64 {
    let mut run = Run::new(&[slot_of(drives::small(), Start::Full, 1)], None, 1);
    assert!(run.submit(DriveId(0), read(0, 4096)));
    run.drain();
    run.records[0].latency().as_nanos() as f64 / 1e3
}

/// Whether so many of the reads as `likely` says were repeated once more, each time.
fn assert_likely(times: &[u64], likely: f64) {
    let mut left = times.len() as f64;
    for already in 0..3 {
        let again = times.iter().filter(|&&one| one > already).count() as f64;
        let deviation = (likely * (1.0 - likely) / left).sqrt();
        let share = again / left;
        assert!(
            (share - likely).abs() <= 4.0 * deviation,
            "{share} of {left} reads repeated {already} times were repeated again, not {likely}"
        );
        left = again;
    }
}

#[test]
fn reads_are_repeated_by_what_is_used_of_a_life_and_each_takes_a_read_of_its_cells_longer() {
    for (retry_share, used) in [(0.8, 0.25), (1.0, 0.5), (0.5, 0.0), (0.0, 1.0)] {
        let spec = worn(retry_share, used);
        let mut run = Run::new(&[slot_of(spec.clone(), Start::Full, 1)], None, 1);
        let times = repetitions(&mut run, &spec, once_us());
        if retry_share * used > 0.0 {
            assert_likely(&times, retry_share * used);
        } else {
            assert!(times.iter().all(|&one| one == 0), "{retry_share} of {used}");
        }
        assert_eq!(run.bank.health(0).retries, times.iter().sum::<u64>());
        assert!((run.bank.health(0).sets[0].life_used - used).abs() < 1e-12);
    }
}

#[test]
fn writing_wears_a_drive_until_its_reads_are_repeated() {
    let mut spec = worn(0.9, 0.0);
    spec.endurance.cycles = 20;
    let mut run = Run::new(&[slot_of(spec.clone(), Start::Full, 1)], None, 1);
    let mut before = 0.0;
    for _ in 0..2 {
        let mut offset = 0;
        run.closed_loop(16, 5 * (spec.capacity_bytes >> 17) as u32, || {
            offset += 128 << 10;
            write((offset - (128 << 10)) % spec.capacity_bytes, 128 << 10)
        });
        run.wait(Some(run.bank.now() + base::Duration::from_secs(60)));
        let used = run.bank.health(0).sets[0].life_used;
        assert!(used > before + 0.15, "{used} after {before}");
        let times = repetitions(&mut run, &spec, once_us());
        assert_likely(&times, 0.9 * used);
        before = used;
    }
}
