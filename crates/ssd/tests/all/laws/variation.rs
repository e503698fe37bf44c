//! Drives of a model that differ: how much, and in what.

use base::DriveId;
use longtake_ssd::{Spec, Start};

use crate::drives;
use crate::laws::work::{Run, read, slot_of, write};

const DRIVES: usize = 400;

/// How long a drive takes for a read of one page, in microseconds, for each of many drives of a model.
fn read_us(spec: &Spec) -> Vec<f64> {
    let one = |seed: usize| {
        let mut run = Run::new(&[slot_of(spec.clone(), Start::Full, seed as u64)], None, 1);
        assert!(run.submit(DriveId(0), read(0, 4096)));
        run.drain();
        run.records[0].latency().as_nanos() as f64 / 1e3
    };
    (0..DRIVES).map(one).collect()
}

#[test]
fn times_are_spread_as_the_variation_says() {
    for spread in [0.01, 0.05, 0.2] {
        let mut spec = drives::small();
        let [same, ..] = read_us(&spec)[..] else { unreachable!("there are drives") };
        spec.flash.variation = spread;
        let times = |us: f64| 1.0 + (us - same) / drives::small().flash.read_us;
        let all: Vec<f64> = read_us(&spec).into_iter().map(times).collect();
        let count = DRIVES as f64;
        let mean = all.iter().sum::<f64>() / count;
        let deviation = (all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count).sqrt();
        // Four of their own deviations, as so many drives have them.
        assert!((mean - 1.0).abs() < 4.0 * spread / count.sqrt(), "{spread}: {mean}");
        let off = (deviation / spread - 1.0).abs();
        assert!(off < 4.0 / (2.0 * count).sqrt(), "{spread}: {deviation}");
        assert!(all.iter().all(|one| (one - 1.0).abs() < 3.01 * spread), "cut off at three");
    }
}

#[test]
fn without_variation_all_drives_are_alike_and_with_it_a_drive_stays_what_it_is() {
    let mut spec = drives::cached();
    let alike = read_us(&spec);
    assert!(alike.iter().all(|us| *us == alike[0]));
    assert_eq!(spec.of_drive(7), spec);
    spec.flash.variation = 0.05;
    assert_eq!(read_us(&spec), read_us(&spec));
    let one = spec.of_drive(7);
    assert_eq!(one.of_drive(8), one, "a drive of its own doesn't vary");
}

#[test]
fn all_times_of_a_drives_flash_and_cache_are_longer_by_the_same_share() {
    let mut spec = drives::cached();
    spec.flash.variation = 0.1;
    if let Some(cache) = &mut spec.cache {
        (cache.first_program_us, cache.fold_us) = (Some(100.0), Some(700.0));
    }
    let one = spec.of_drive(3);
    let (model, drive) = (spec.cache.unwrap(), one.cache.unwrap());
    let shares = [
        one.flash.read_us / spec.flash.read_us,
        one.flash.program_us / spec.flash.program_us,
        one.flash.erase_us / spec.flash.erase_us,
        drive.program_us / model.program_us,
        drive.read_us / model.read_us,
        drive.first_program_us.unwrap() / 100.0,
        drive.fold_us.unwrap() / 700.0,
    ];
    assert!((shares[0] - 1.0).abs() > 0.001, "{shares:?}");
    assert!(shares.iter().all(|share| (share - shares[0]).abs() < 1e-12), "{shares:?}");
    let rest = |mut spec: Spec| {
        (spec.flash.read_us, spec.flash.program_us, spec.flash.erase_us) = (0.0, 0.0, 0.0);
        spec.flash.variation = 0.0;
        spec.cache = None;
        spec
    };
    assert_eq!(rest(one), rest(spec), "and nothing else");
}

/// Superblocks that drives of a model lack.
fn lost(spec: &Spec) -> Vec<f64> {
    let all = spec.superblocks_of_set();
    (0..DRIVES as u64)
        .map(|seed| f64::from(all - spec.of_drive(seed).superblocks_of_set()))
        .collect()
}

#[test]
fn each_drive_lacks_as_many_superblocks_as_its_worst_die_has_bad_blocks() {
    let mut spec = drives::small();
    spec.capacity_bytes = 512 << 20;
    spec.flash.bad_blocks = 0.02;
    let mean_and_deviation = |all: &[f64]| {
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let square = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
        (mean, (square / all.len() as f64).sqrt())
    };
    // Of one die: as many as so many throws of a coin come to.
    let mut one_die = spec.clone();
    (one_die.flash.channels, one_die.flash.dies_per_channel) = (1, 1);
    let blocks = f64::from(one_die.superblocks_of_set());
    let (mean, deviation) = mean_and_deviation(&lost(&one_die));
    let expected = (blocks * 0.02, (blocks * 0.02 * 0.98).sqrt());
    assert!((mean - expected.0).abs() < 4.0 * expected.1 / (DRIVES as f64).sqrt(), "{mean}");
    assert!((deviation / expected.1 - 1.0).abs() < 4.0 / (2.0 * DRIVES as f64).sqrt());
    // Of eight: the worst of eight, 1.42 deviations above the mean where they are normal.
    let blocks = f64::from(spec.superblocks_of_set());
    let worst = blocks * 0.02 + 1.42 * (blocks * 0.02 * 0.98).sqrt();
    let (mean, _) = mean_and_deviation(&lost(&spec));
    assert!((mean / worst - 1.0).abs() < 0.1, "{mean} of {blocks}, not {worst}");
    spec.flash.bad_blocks = 0.0;
    assert!(lost(&spec).iter().all(|&lost| lost == 0.0));
}

#[test]
fn bad_blocks_take_from_the_spare_flash_and_nothing_else() {
    let mut spec = drives::small();
    spec.flash.bad_blocks = 0.02;
    spec.check().unwrap();
    let mut run = Run::new(&[slot_of(spec.clone(), Start::Full, 7)], None, 1);
    let one = spec.of_drive(7);
    assert!(one.physical_bytes() < spec.physical_bytes());
    assert_eq!(one.capacity_bytes, spec.capacity_bytes);
    assert_eq!(one.of_drive(8), one, "a drive of its own loses no more");
    let mut offset = 0;
    run.closed_loop(8, 2_000, || {
        offset = (offset + 64 * 4096 * 7) % spec.capacity_bytes;
        write(offset, 4096)
    });
    run.bank.audit(0).unwrap();
    assert_eq!(run.bank.health(0).sets[0].physical_bytes, one.physical_bytes());
}
