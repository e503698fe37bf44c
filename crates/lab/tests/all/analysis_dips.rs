//! Dips on synthetic series whose dips are known.

use crate::synthetic::{GB_S, Noise, SECOND_NS, levels, noisy, seconds};
use base::Random;
use longtake_lab::analysis::fill::{FillInput, judge};
use longtake_lab::analysis::{ChangeOptions, DipOptions, Dips, Series, changes, dips};

fn dips_of(series: &Series) -> Dips {
    let segmentation = changes::find(series, &ChangeOptions::default());
    dips::find(series, &segmentation, &DipOptions::default())
}

/// First and last-but-one intervals of each dip.
fn places(found: &Dips) -> Vec<(usize, usize)> {
    found.dips.iter().map(|dip| (dip.first, dip.end)).collect()
}

#[test]
fn noise_alone_makes_no_dips_in_a_hundred_flat_series() {
    let mut counted = Vec::new();
    for seed in 0..100u64 {
        let mut random = Random::new(seed);
        let sd = 0.01 + 0.09 * (seed % 10) as f64 / 9.0;
        let noise = Noise::Autoregressive(sd, [0.0, 0.3, 0.6][seed as usize % 3]);
        let n = [120, 300, 600, 1_500][seed as usize / 25];
        let found = dips_of(&seconds(&noisy(&vec![GB_S; n], noise, &mut random)));
        if found.summary.count > 0 {
            counted.push((seed, n, sd, found.dips));
        }
    }
    assert!(counted.is_empty(), "{counted:#?}");
}

#[test]
fn known_dips_are_counted_right_with_depth_length_period_and_bytes() {
    for seed in 0..50u64 {
        let mut random = Random::new(100 + seed);
        let n = 400;
        let mut rates = noisy(&vec![GB_S; n], Noise::White(0.02), &mut random);
        let (period, length) = (12 + seed as usize % 20, 1 + seed as usize % 3);
        let mut truth = Vec::new();
        for start in (7..n - length).step_by(period) {
            rates[start..start + length].iter_mut().for_each(|rate| *rate = 0.4 * GB_S);
            truth.push((start, start + length));
        }
        let found = dips_of(&seconds(&rates));
        assert_eq!(places(&found), truth, "seed {seed}");
        let summary = &found.summary;
        assert_eq!(summary.count, truth.len());
        assert_eq!(summary.length_median_ns, Some(length as u64 * SECOND_NS));
        assert!((summary.lowest_share_median.unwrap() - 0.4).abs() < 0.01, "{summary:?}");
        let rhythm = summary.rhythm.unwrap();
        assert_eq!(rhythm.period_ns, period as u64 * SECOND_NS);
        assert!(rhythm.is_periodic() && rhythm.regularity > 0.99, "{rhythm:?}");
        let share = (truth.len() * length) as f64 / n as f64;
        assert!((summary.time_share - share).abs() < 1e-9);
        let missed = 0.6 * GB_S * (truth.len() * length) as f64;
        assert!((summary.bytes_missed as f64 / missed - 1.0).abs() < 0.03, "{summary:?}");
    }
}

#[test]
fn dips_at_random_times_are_counted_and_not_called_periodic() {
    let mut periodic = 0;
    for seed in 0..50 {
        let mut random = Random::new(200 + seed);
        let n = 1_000;
        let mut rates = noisy(&vec![GB_S; n], Noise::White(0.03), &mut random);
        let (mut at, mut truth) = (0, Vec::new());
        loop {
            at += 2 + random.below(60) as usize;
            if random.one_in(3) {
                at += random.below(80) as usize;
            }
            if at >= n {
                break;
            }
            rates[at] = 0.1 * GB_S;
            truth.push((at, at + 1));
        }
        let found = dips_of(&seconds(&rates));
        assert_eq!(places(&found), truth, "seed {seed}");
        periodic += usize::from(found.summary.rhythm.is_some_and(|r| r.is_periodic()));
    }
    assert_eq!(periodic, 0);
}

#[test]
fn dips_beside_a_step_are_counted_and_the_step_is_not() {
    for seed in 0..50u64 {
        let mut random = Random::new(300 + seed);
        let at = 120 + seed as usize;
        let (from, to) = if seed % 2 == 0 { (GB_S, 0.5 * GB_S) } else { (0.5 * GB_S, GB_S) };
        let mut rates =
            noisy(&levels(300, &[(0, from), (at, to)]), Noise::White(0.02), &mut random);
        // The interval of the step itself straddles both levels.
        rates[at] = 0.5 * (from + to);
        let plain = dips_of(&seconds(&rates));
        assert_eq!(places(&plain), [], "seed {seed}");
        rates[at - 2] = 0.1 * GB_S;
        rates[at + 2] = 0.1 * GB_S;
        let dipped = dips_of(&seconds(&rates));
        assert_eq!(places(&dipped), [(at - 2, at - 1), (at + 2, at + 3)], "seed {seed}");
    }
}

#[test]
fn deviations_are_those_of_the_rates_about_their_mean() {
    let rates: Vec<f64> =
        (0..100).map(|i| if i % 2 == 0 { 0.9 * GB_S } else { 1.1 * GB_S }).collect();
    let summary = dips_of(&seconds(&rates)).summary;
    assert!((summary.deviation_mean - 0.1).abs() < 1e-9);
    assert!((summary.deviation_standard - 0.1).abs() < 1e-9);
    assert_eq!((summary.count, summary.rhythm, summary.lowest_share_median), (0, None, None));
}

#[test]
fn a_noisier_series_says_that_only_deeper_dips_could_be_seen() {
    let mut random = Random::new(9);
    let mut threshold = |sd| {
        let rates = noisy(&vec![GB_S; 500], Noise::White(sd), &mut random);
        dips_of(&seconds(&rates)).summary.threshold
    };
    assert_eq!(threshold(0.01), 0.8);
    let lower = threshold(0.10);
    assert!(lower < 0.6 && lower > 0.3, "{lower}");
}

/// What the dips of an empty pass cost.
fn cost_of(series: &Series) -> Option<dips::DipCost> {
    dips::cost(&judge(&FillInput::new(series.total_bytes(), series)).passes)
}

#[test]
fn dips_cost_their_length_together_and_their_share_in_the_long_run() {
    // A second of standstill every twenty: nineteen seconds of writing take one more.
    let rates: Vec<f64> = (0..400).map(|at| if at % 20 == 10 { 0.0 } else { GB_S }).collect();
    let cost = cost_of(&seconds(&rates)).unwrap();
    assert!((cost.share - 1.0 / 19.0).abs() < 1e-6, "{cost:?}");
    assert!((cost.together_s - 1.0).abs() < 1e-6, "{cost:?}");
    // Two in a row, once: they are together, and the share between them is counted once.
    let mut rates = rates;
    rates[211] = 0.0;
    let cost = cost_of(&seconds(&rates)).unwrap();
    assert!(cost.together_s > 1.9 && cost.together_s <= 2.1, "{cost:?}");
    assert_eq!(cost_of(&seconds(&vec![GB_S; 400])), None);
}

#[test]
fn what_dips_cost_bounds_the_time_that_any_bytes_take() {
    for seed in 0..40 {
        let mut random = Random::new(300 + seed);
        let n = 400;
        let mut rates = noisy(&vec![GB_S; n], Noise::White(0.005), &mut random);
        let mut at = 5 + random.below(20) as usize;
        while at + 4 < n {
            let left = 0.6 * random.below(1000) as f64 / 1000.0;
            for _ in 0..=random.below(3) {
                rates[at] = left * GB_S;
                at += 1;
            }
            at += 4 + random.below(40) as usize;
        }
        let series = seconds(&rates);
        let cost = cost_of(&series).unwrap();
        let points = series.points();
        let mut closest = f64::INFINITY;
        for first in 0..n {
            let (mut bytes, mut time_s) = (0.0, 0.0);
            for point in &points[first..] {
                bytes += point.bytes as f64;
                time_s += point.duration_ns as f64 / 1e9;
                let bound = (1.0 + cost.share) * bytes / GB_S + cost.together_s;
                // Noise is no dip: intervals of half a percent add up to little.
                let noise = 0.05 + 0.002 * time_s;
                assert!(time_s <= bound + noise, "seed {seed}: {time_s} s for {bytes} bytes");
                closest = closest.min(bound - time_s);
            }
        }
        let near = 0.2 + 0.1 * cost.together_s;
        assert!(closest < near, "seed {seed}: nothing comes near the bound: {closest} s, {cost:?}");
    }
}
