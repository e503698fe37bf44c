//! Heat: when a drive is throttled, and what it writes then, follow from its power and its surroundings.

use base::{Bank, Duration, Instant};
use longtake_ssd::heat::{Thermal, Throttling};
use longtake_ssd::spec::Heat;
use longtake_ssd::{Health, Spec, Start};

use crate::drives;
use crate::laws::work::{self, Run, write};

const BLOCK: u32 = 128 << 10;

/// A small drive of this heat.
fn warm(heat: Heat) -> Spec {
    Spec { heat: Some(heat), ..drives::small() }
}

/// 1 W idle; 8 dies of 0.25 W and 3 W at the link's rate on top. 10 s of time constant.
const HEAT: Heat = Heat {
    idle_w: 1.0,
    die_w: 0.25,
    transfer_w: 3.0,
    joules_per_k: 1.0,
    kelvin_per_w: 10.0,
    ambient_c: 25.0,
    light_c: 50.0,
    light_mb_s: 100.0,
    heavy_c: 60.0,
    heavy_mb_s: 20.0,
    hysteresis_k: 1.0,
};

/// Writes over the drive in order for so long; bytes a second of every 100 ms.
fn write_for(run: &mut Run, capacity_bytes: u64, seconds: f64) -> Vec<f64> {
    let end = run.bank.now() + Duration::from_secs_f64(seconds);
    let (mut offset, mut rates) = (0, Vec::new());
    while run.bank.now() < end {
        let (begun, mut written) = (run.bank.now(), 0);
        while run.bank.now().since(begun) < Duration::from_millis(100) {
            run.closed_loop(16, 64, || {
                let at = offset;
                offset = (offset + u64::from(BLOCK)) % capacity_bytes;
                write(at, BLOCK)
            });
            written += 64 * u64::from(BLOCK);
        }
        rates.push(written as f64 / run.bank.now().since(begun).as_secs_f64());
    }
    rates
}

fn run_of(spec: &Spec) -> Run {
    Run::new(&[work::slot_of(spec.clone(), Start::Empty, 1)], None, 1)
}

fn thermal(run: &Run) -> Thermal {
    run.bank.health(0).thermal.expect("its heat is simulated")
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// Power of writing at a rate, with so many dies busy.
fn watts(spec: &Spec, bytes_per_s: f64, dies_busy: f64) -> f64 {
    let heat = spec.heat.expect("its heat is simulated");
    heat.idle_w + heat.die_w * dies_busy + heat.transfer_w * bytes_per_s / spec.link.bytes_per_s()
}

/// Dies that are busy on average, by what they are said to have done.
fn dies_busy(spec: &Spec, run: &Run, before: &Health, seconds: f64) -> f64 {
    let after = run.bank.health(0);
    let of = |health: &Health| health.sets[0].media_written_bytes;
    let programs = (of(&after) - of(before)) as f64 / spec.flash.program_bytes() as f64;
    let erases = (after.erases.blocks - before.erases.blocks) as f64;
    (programs * spec.flash.program_us + erases * spec.flash.erase_us) / 1e6 / seconds
}

/// Its mean power since a time, by what it wrote.
fn mean_watts(spec: &Spec, run: &Run, before: &Health, begun: Instant) -> f64 {
    let seconds = run.bank.now().since(begun).as_secs_f64();
    let written = run.bank.health(0).written_bytes - before.written_bytes;
    watts(spec, written as f64 / seconds, dies_busy(spec, run, before, seconds))
}

#[test]
fn a_drive_is_throttled_when_its_power_has_warmed_it_and_not_before() {
    let spec = warm(Heat { light_c: 40.0, ..HEAT });
    let mut run = run_of(&spec);
    let before = run.bank.health(0);
    let rates = write_for(&mut run, spec.capacity_bytes, 3.0);
    assert_eq!(thermal(&run).light.times, 0, "{:?}", thermal(&run));
    let busy = dies_busy(&spec, &run, &before, run.bank.now().as_nanos() as f64 / 1e9);
    let full = mean(&rates);
    let end_c = HEAT.steady_c(watts(&spec, full, busy));
    let due_s = -HEAT.time_constant_s() * (1.0 - 15.0 / (end_c - 25.0)).ln();
    assert!(due_s > 3.5, "it would be throttled after {due_s} s");
    while thermal(&run).light.times == 0 {
        let later = write_for(&mut run, spec.capacity_bytes, 0.1);
        let throttled = thermal(&run).light.times > 0;
        assert!(throttled || (later[0] / full - 1.0).abs() < 0.1, "{later:?} of {full}");
    }
    let at_s = run.bank.now().as_nanos() as f64 / 1e9;
    assert!((at_s / due_s - 1.0).abs() < 0.05, "throttled after {at_s} s for {due_s}");
    let throttled = mean(&write_for(&mut run, spec.capacity_bytes, 0.2));
    assert!((throttled / 100e6 - 1.0).abs() < 0.03, "{throttled}");
}

#[test]
fn a_hot_drive_writes_what_its_surroundings_take_the_heat_of() {
    for (ambient_c, kelvin_per_w) in [(25.0, 10.0), (35.0, 7.0), (20.0, 14.0)] {
        let spec = warm(Heat { ambient_c, kelvin_per_w, ..HEAT });
        let mut run = run_of(&spec);
        write_for(&mut run, spec.capacity_bytes, 60.0);
        let before = run.bank.health(0);
        let begun = run.bank.now();
        write_for(&mut run, spec.capacity_bytes, 60.0);
        let takes = mean_watts(&spec, &run, &before, begun);
        let Thermal { celsius, light, heavy, .. } = thermal(&run);
        assert!(light.times > 5 && heavy.times == 0, "{light:?}, {heavy:?}");
        assert!((48.5..50.5).contains(&celsius), "{celsius}");
        // It stays about half the hysteresis below the limit, so on average its power is what leaves it there.
        let leaves = (HEAT.light_c - HEAT.hysteresis_k / 2.0 - ambient_c) / kelvin_per_w;
        assert!((takes / leaves - 1.0).abs() < 0.03, "{takes} W for {leaves} W");
    }
}

#[test]
fn a_drive_too_hot_for_light_throttling_is_throttled_heavily() {
    // At 400 MB/s it would still reach 70 degrees, idle 45.
    let heat = Heat { kelvin_per_w: 20.0, light_mb_s: 400.0, ..HEAT };
    let spec = warm(heat);
    let mut run = run_of(&spec);
    write_for(&mut run, spec.capacity_bytes, 120.0);
    let before = run.bank.health(0);
    let begun = run.bank.now();
    write_for(&mut run, spec.capacity_bytes, 60.0);
    let takes = mean_watts(&spec, &run, &before, begun);
    let Thermal { highest_celsius, light, heavy, .. } = thermal(&run);
    assert!(heavy.times > 5 && highest_celsius < 61.5, "{heavy:?}, {highest_celsius}");
    assert!(light.times >= heavy.times, "it cools down into light throttling: {light:?}");
    let leaves = (HEAT.heavy_c - HEAT.hysteresis_k / 2.0 - HEAT.ambient_c) / 20.0;
    assert!((takes / leaves - 1.0).abs() < 0.05, "{takes} W for {leaves} W");
    // A rest cools it.
    run.wait(Some(run.bank.now() + Duration::from_secs(400)));
    let rested = mean(&write_for(&mut run, spec.capacity_bytes, 0.1));
    let cool = thermal(&run);
    assert!(cool.throttling == Throttling::None && rested > 440e6, "{cool:?}, {rested}");
}

#[test]
fn heat_that_never_reaches_a_limit_changes_nothing() {
    let cool = warm(Heat { ambient_c: -20.0, ..HEAT });
    let (mut with, mut without) = (run_of(&cool), run_of(&drives::small()));
    let rates = write_for(&mut with, cool.capacity_bytes, 2.0);
    assert_eq!(rates, write_for(&mut without, cool.capacity_bytes, 2.0));
    assert!(without.bank.health(0).thermal.is_none());
}
