//! Change points on synthetic series: false alarms, power, location, and bounds on the work.

use crate::synthetic::{GB_S, Noise, SECOND_NS, levels, noisy, seconds};
use base::Random;
use longtake_lab::analysis::{ChangeOptions, Point, Series, changes};

/// Flat: one level for the whole series. Noise about it may be white or remember (autoregression up
/// to 0.6), a few intervals may fall or rise, and the level may wave slowly by up to 2 % either way,
/// which is less than the least step asked for.
fn flat(seed: u64, n: usize) -> Vec<f64> {
    let mut random = Random::new(seed);
    let sd = 0.01 + 0.09 * (seed % 10) as f64 / 9.0;
    let noise = match seed % 4 {
        0 | 2 => Noise::White(sd),
        1 => Noise::Autoregressive(sd, 0.3),
        _ => Noise::Autoregressive(sd, 0.6),
    };
    let wave = if seed.is_multiple_of(5) { 0.02 } else { 0.0 };
    let level: Vec<f64> = (0..n)
        .map(|i| {
            2.0 * GB_S * (1.0 + wave * (std::f64::consts::TAU * i as f64 / n as f64 * 1.5).sin())
        })
        .collect();
    let mut rates = noisy(&level, noise, &mut random);
    if seed.is_multiple_of(3) {
        for rate in &mut rates {
            match random.below(100) {
                0 | 1 => *rate *= 0.3,
                2 => *rate *= 1.4,
                _ => {}
            }
        }
    }
    rates
}

#[test]
fn a_hundred_flat_series_have_no_change() {
    let mut alarms = Vec::new();
    for seed in 0..100 {
        let n = [120, 300, 600, 1_500][seed as usize / 25];
        let found = changes::find(&seconds(&flat(seed, n)), &ChangeOptions::default());
        if !found.changes.is_empty() {
            alarms.push((seed, n, found.changes));
        }
    }
    assert!(alarms.is_empty(), "{} false alarms: {alarms:#?}", alarms.len());
}

#[test]
fn a_step_of_a_tenth_is_found_in_each_of_a_hundred_series_within_two_hundredths_of_the_bytes() {
    for seed in 0..100u64 {
        let mut random = Random::new(1_000 + seed);
        let n = 400;
        let at = 60 + (seed as usize * 29) % 280;
        let sd = 0.02 + 0.03 * (seed % 7) as f64 / 6.0;
        let (from, to) =
            if seed % 2 == 0 { (2.0 * GB_S, 1.8 * GB_S) } else { (1.8 * GB_S, 2.0 * GB_S) };
        let rates = noisy(&levels(n, &[(0, from), (at, to)]), Noise::White(sd), &mut random);
        let series = seconds(&rates);
        let truth = series.cumulative_bytes()[at];
        let found = changes::find(&series, &ChangeOptions::default());
        assert_eq!(found.changes.len(), 1, "seed {seed}: {:#?}", found.changes);
        let change = &found.changes[0];
        let miss = change.bytes.abs_diff(truth) as f64 / series.total_bytes() as f64;
        assert!(miss <= 0.02, "seed {seed}: missed by {miss}");
        assert_eq!(change.is_drop(), seed % 2 == 0);
        assert!((change.relative().abs() - 0.1).abs() < 0.03, "seed {seed}: {change:?}");
    }
}

#[test]
fn the_range_of_a_location_holds_the_truth_nearly_always() {
    let mut held = 0;
    for seed in 0..200u64 {
        let mut random = Random::new(2_000 + seed);
        let at = 100 + (seed as usize * 13) % 200;
        let rates =
            noisy(&levels(400, &[(0, GB_S), (at, 0.85 * GB_S)]), Noise::White(0.06), &mut random);
        let series = seconds(&rates);
        let truth = series.cumulative_bytes()[at];
        let found = changes::find(&series, &ChangeOptions::default());
        held += usize::from(
            found.changes.iter().any(|c| (c.bytes_range.0..=c.bytes_range.1).contains(&truth)),
        );
    }
    assert!(held >= 186, "{held} of 200");
}

#[test]
fn several_steps_in_one_series_are_all_found() {
    for seed in 0..50 {
        let mut random = Random::new(3_000 + seed);
        let steps = [(0, 2.8 * GB_S), (30, 1.6 * GB_S), (420, 1.3 * GB_S), (560, 1.5 * GB_S)];
        let noise = [Noise::White(0.03), Noise::Autoregressive(0.03, 0.5)][seed as usize % 2];
        let series = seconds(&noisy(&levels(700, &steps), noise, &mut random));
        let bytes = series.cumulative_bytes();
        let found = changes::find(&series, &ChangeOptions::default());
        assert_eq!(found.changes.len(), 3, "seed {seed}: {:#?}", found.changes);
        for (change, (at, level)) in found.changes.iter().zip(&steps[1..]) {
            let miss = change.bytes.abs_diff(bytes[*at]) as f64 / series.total_bytes() as f64;
            assert!(miss <= 0.02, "seed {seed}: {miss} at {at}");
            assert!((change.after / level - 1.0).abs() < 0.03, "seed {seed}: {change:?}");
        }
    }
}

#[test]
fn a_fall_by_half_is_found_at_its_byte_among_periodic_dips() {
    for seed in 0..50u64 {
        let mut random = Random::new(4_000 + seed);
        let at = 90 + 2 * seed as usize;
        let mut rates =
            noisy(&levels(300, &[(0, GB_S), (at, 0.5 * GB_S)]), Noise::White(0.03), &mut random);
        let (period, length) = (15 + seed as usize % 10, 1 + seed as usize % 3);
        for start in (5..300 - length).step_by(period) {
            rates[start..start + length].iter_mut().for_each(|rate| *rate *= 0.4);
        }
        let series = seconds(&rates);
        let truth = series.cumulative_bytes()[at];
        let found = changes::find(&series, &ChangeOptions::default());
        assert_eq!(found.changes.len(), 1, "seed {seed}: {:#?}", found.changes);
        let miss = found.changes[0].bytes.abs_diff(truth) as f64 / series.total_bytes() as f64;
        assert!(miss <= 0.02, "seed {seed}: missed by {miss}");
    }
}

#[test]
fn a_limit_enforced_in_bursts_is_a_level_and_its_fall_by_half_is_found() {
    for seed in 0..50u64 {
        let mut random = Random::new(7_000 + seed);
        let at = 200 + 4 * seed as usize;
        // Thrice the level in one interval of three, nothing in the others.
        let bursts: Vec<f64> = (0..267)
            .flat_map(|_| {
                let full = 3.0 * (0.9 + 0.2 * random.below(1_000) as f64 / 1e3);
                let which = random.below(3);
                (0..3).map(move |i| if i == which { full } else { 0.0 })
            })
            .collect();
        let half: Vec<f64> = levels(800, &[(0, GB_S), (at, 0.5 * GB_S)]);
        let rates: Vec<f64> =
            half.iter().zip(&bursts).map(|(level, burst)| level * burst).collect();
        let series = seconds(&rates);
        let truth = series.cumulative_bytes()[at] as f64 / series.total_bytes() as f64;
        let found = changes::find(&series, &ChangeOptions::default()).changes;
        assert_eq!(found.len(), 1, "seed {seed}: {found:#?}");
        let place = found[0].bytes as f64 / series.total_bytes() as f64;
        assert!((place - truth).abs() < 0.02, "seed {seed}: {place} for {truth}");
        let even: Vec<f64> = bursts.iter().map(|burst| burst * GB_S).collect();
        assert_eq!(changes::find(&seconds(&even), &ChangeOptions::default()).changes, []);
    }
}

#[test]
fn a_noisy_phase_after_a_quiet_one_is_one_level() {
    for seed in 0..50u64 {
        let mut random = Random::new(5_000 + seed);
        let mut rates = noisy(&vec![3.0 * GB_S; 300], Noise::White(0.004), &mut random);
        rates.extend(noisy(&vec![GB_S; 200], Noise::White(0.10), &mut random));
        let found = changes::find(&seconds(&rates), &ChangeOptions::default());
        assert_eq!(found.changes.len(), 1, "seed {seed}: {:#?}", found.changes);
        assert_eq!(found.changes[0].index.abs_diff(300), 0);
    }
}

#[test]
fn a_step_said_to_be_seen_nineteen_times_in_twenty_is() {
    for (sd, correlation) in [(0.05, 0.0), (0.08, 0.5)] {
        let noise = Noise::Autoregressive(sd, correlation);
        let mut seen = 0;
        for seed in 0..100 {
            let mut random = Random::new(6_000 + seed);
            let n = 500;
            let plain = seconds(&noisy(&vec![GB_S; n], noise, &mut random));
            let segments = changes::find(&plain, &ChangeOptions::default()).segments;
            let missed = segments[0].step_missed_max.unwrap();
            let at = 60 + (seed as usize * 37) % 380;
            let stepped = levels(n, &[(0, GB_S), (at, GB_S * (1.0 - missed))]);
            let series = seconds(&noisy(&stepped, noise, &mut random));
            seen +=
                usize::from(!changes::find(&series, &ChangeOptions::default()).changes.is_empty());
        }
        assert!(seen >= 90, "sd {sd}, correlation {correlation}: {seen} of 100");
    }
}

/// Not timed: 100,000 intervals must be joined before they are judged, or this would never end.
#[test]
fn a_hundred_thousand_intervals_of_unequal_length_are_judged() {
    let mut random = Random::new(7);
    let n = 100_000;
    let at = 61_803;
    let steps = levels(n, &[(0, 3.0 * GB_S), (at, 2.0 * GB_S)]);
    let rates = noisy(&steps, Noise::Autoregressive(0.1, 0.6), &mut random);
    let mut start_ns = 5 * SECOND_NS;
    let points = rates.iter().map(|rate| {
        let duration_ns = 50_000_000 + random.below(100_000_000);
        let point = Point {
            start_ns,
            duration_ns,
            bytes: (rate * duration_ns as f64 / SECOND_NS as f64) as u64,
        };
        start_ns += duration_ns;
        point
    });
    let series = Series::new(points.collect()).unwrap();
    let truth = series.cumulative_bytes()[at];
    let found = changes::find(&series, &ChangeOptions::default());
    assert_eq!(found.changes.len(), 1, "{:#?}", found.changes);
    let miss = found.changes[0].bytes.abs_diff(truth) as f64 / series.total_bytes() as f64;
    assert!(miss <= 0.005, "missed by {miss}");
}
