//! The translation layer held to closed forms of the write amplification, by writing drives over at random for long enough.

mod drive;
mod formulas;

use crate::long::long;
use drive::Drive;
use formulas::{ALPHA_COLD, ALPHA_HOT, TABLE};
use longtake_ssd::spec::Collector;
use longtake_ssd::steady;

/// How far a write amplification may be from its formula.
const TOLERANCE: f64 = 0.005;

fn assert_near(what: &str, found: f64, expected: f64) {
    let off = found / expected - 1.0;
    assert!(
        off.abs() <= TOLERANCE,
        "{what}: {found:.4}, not {expected:.4} ({:+.2} %)",
        off * 100.0
    );
}

/// Simulates a collector with each of some spare areas, and compares it with its column of the table.
///
/// The victims of a random choice differ most, so it takes more writing before their mean is known.
fn hold_to_table(collector: Collector, units_per_block: u32, column: usize, alphas: &[f64]) {
    let times = if collector == Collector::Random { 24.0 } else { 3.0 };
    for (alpha, values) in TABLE.iter().filter(|(alpha, _)| alphas.contains(alpha)) {
        let mut drive = Drive::new(collector, units_per_block, *alpha);
        drive.write_over(3.0);
        let found = drive.amplification(|drive| drive.write_over(times));
        let what = format!("{collector:?}, {units_per_block} units a block, {alpha} spare");
        let measured = drive.alpha();
        assert!((measured / alpha - 1.0).abs() < 3e-4, "{what}: in effect {measured}");
        // Nearly full drives make much of one block more or less, so the cell is moved to the spare area in effect.
        let amplification = |alpha: f64| {
            steady::steady_state(collector, 1.0 / alpha, units_per_block).write_amplification
        };
        let moved = amplification(measured) / amplification(*alpha);
        assert_near(&what, found, values[column] * moved);
    }
}

/// One column of the table; all of them take two minutes.
fn spare_areas() -> Vec<f64> {
    if long() { TABLE.map(|(alpha, _)| alpha).to_vec() } else { vec![1.15] }
}

#[test]
fn greedy_with_small_blocks_amplifies_as_desnoyers_says() {
    hold_to_table(Collector::Greedy, 64, 0, &spare_areas());
}

#[test]
fn greedy_with_larger_blocks_amplifies_as_desnoyers_says() {
    hold_to_table(Collector::Greedy, 256, 1, &spare_areas());
}

#[test]
fn taking_the_oldest_amplifies_as_fifo() {
    hold_to_table(Collector::Fifo, 64, 2, &spare_areas());
}

#[test]
fn the_best_of_ten_amplifies_as_the_mean_field() {
    hold_to_table(Collector::Choices(10), 256, 3, &spare_areas());
}

#[test]
fn taking_any_amplifies_as_the_mean_says() {
    hold_to_table(Collector::Random, 64, 4, &spare_areas());
}

/// With few superblocks each one that is kept free too many or too few is a good part of the spare area.
#[test]
fn a_drive_of_few_superblocks_amplifies_by_the_spare_area_beside_those_kept_free() {
    for (collector, alpha) in
        [(Collector::Greedy, 1.07), (Collector::Greedy, 1.15), (Collector::Fifo, 1.15)]
    {
        let mut drive = Drive::sized(collector, 256, alpha, 420);
        drive.write_over(4.0);
        let found = drive.amplification(|drive| drive.write_over(8.0));
        let expected = steady::steady_state(collector, 1.0 / alpha, 256).write_amplification;
        let off = found / expected - 1.0;
        // The formulas are of drives without end.
        assert!(off.abs() < 0.012, "{collector:?}, {alpha}: {found:.3}, not {expected:.3}");
    }
}

#[test]
fn trimming_is_spare_area() {
    let alpha = 1.15;
    for share in [0.1, 0.2] {
        let mut drive = Drive::new(Collector::Greedy, 64, alpha);
        drive.write_and_trim(4.0, share);
        let found = drive.amplification(|drive| drive.write_and_trim(2.0, share));
        let in_use = formulas::in_use(share);
        assert!(
            (drive.ftl().fill() / in_use - 1.0).abs() < 0.005,
            "{} {in_use}",
            drive.ftl().fill()
        );
        let expected = steady::greedy(in_use / alpha, 64).write_amplification;
        assert_near(&format!("{share} of the requests trim"), found, expected);
    }
}

#[test]
fn hot_and_cold_data_apart_amplify_each_on_its_own() {
    let (hot_data, hot_writes) = (0.2, 0.8);
    let mut hot = Drive::sized(Collector::Greedy, 64, ALPHA_HOT, 1024);
    let cold_data = f64::from(hot.ftl().setup().units) * (1.0 - hot_data) / hot_data;
    let blocks = cold_data * ALPHA_COLD / 64.0;
    let mut cold = Drive::sized(Collector::Greedy, 64, ALPHA_COLD, blocks as u32);
    // As many writes to the hot fifth as four times those to the rest: sixteen times as many for each of its units.
    for drive_writes in [1.0, 2.0] {
        cold.write_over(drive_writes);
        hot.write_over(16.0 * drive_writes);
    }
    let mut programmed = 0.0;
    let mut written = 0.0;
    for (drive, times) in [(&mut hot, 32.0), (&mut cold, 2.0)] {
        let before = drive.ftl().done();
        drive.write_over(times);
        let after = drive.ftl().done();
        programmed += (after.host + after.copied - before.host - before.copied) as f64;
        written += (after.host - before.host) as f64;
    }
    let parts = [(hot_writes, ALPHA_HOT), (1.0 - hot_writes, ALPHA_COLD)];
    let expected =
        formulas::apart(&parts, |alpha| steady::greedy(1.0 / alpha, 64).write_amplification);
    assert_near("hot and cold apart", programmed / written, expected);
}

#[test]
fn the_valid_units_of_blocks_are_spread_as_computed() {
    for collector in [Collector::Greedy, Collector::Choices(10)] {
        let mut drive = Drive::sized(collector, 64, 1.15, 2048);
        drive.write_over(4.0);
        let mut count = [0.0; 65];
        let mut blocks = 0.0;
        for valid in drive.ftl().valid() {
            count[valid as usize] += 1.0;
            blocks += 1.0;
        }
        let computed = steady::steady_state(collector, 1.0 / 1.15, 64).valid;
        let (mut found, mut expected) = (0.0, 0.0);
        for (i, (count, share)) in count.iter().zip(&computed).enumerate() {
            found += count / blocks;
            expected += share;
            let off: f64 = found - expected;
            assert!(
                off.abs() < 0.03,
                "{collector:?}: {found:.3} of blocks have {i} or fewer, not {expected:.3}"
            );
        }
    }
}

#[test]
fn a_drive_that_begins_in_its_steady_state_amplifies_as_one_written_for_long() {
    for (collector, column, units) in
        [(Collector::Greedy, 1, 256), (Collector::Choices(10), 3, 256), (Collector::Fifo, 2, 256)]
    {
        let (alpha, values) = TABLE[1];
        let mut drive = Drive::steady(collector, units, alpha, 4096);
        // Until collection begins the host fills what is free.
        drive.write_over(0.01);
        let found = drive.amplification(|drive| drive.write_over(0.5));
        let off = found / values[column] - 1.0;
        assert!(off.abs() < 0.01, "{collector:?}: {found:.4}, not {}", values[column]);
    }
}
