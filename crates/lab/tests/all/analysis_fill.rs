//! Thresholds of a sustained write, on fills modelled after drives whose behaviour is published.

use crate::synthetic::{GB_S, Noise, SECOND_NS, normal};
use base::Random;
use longtake_lab::analysis::fill::{self, PhaseKind};
use longtake_lab::analysis::{Cause, Fill, FillInput, Point, Sample, Series, Sought};

/// Writes `capacity` bytes: `steps` are (from this byte, rate), intervals of a second.
fn write(
    capacity: u64,
    steps: &[(u64, f64)],
    start_ns: u64,
    random: &mut Random,
    mut shape: impl FnMut(usize) -> f64,
) -> Series {
    let (mut done, mut points) = (0u64, Vec::new());
    while done < capacity {
        let level = steps.iter().rev().find(|(from, _)| *from <= done).unwrap().1;
        let rate = level * (1.0 + 0.02 * normal(random)) * shape(points.len());
        let left = capacity - done;
        // The last interval ends with the last byte.
        let duration_ns = (left as f64 / rate * 1e9).min(1e9).ceil() as u64;
        let bytes = ((rate * duration_ns as f64 / 1e9) as u64).clamp(1, left);
        points.push(Point {
            start_ns: start_ns + points.len() as u64 * SECOND_NS,
            duration_ns,
            bytes,
        });
        done += bytes;
    }
    Series::new(points).unwrap()
}

fn flat(_: usize) -> f64 {
    1.0
}

const GB: u64 = 1_000_000_000;

/// A terabyte of three-bit cells with a cache of 42 GB, slower from 80 % on, slower again when full.
fn cached_drive(random: &mut Random, samples: &[Sample]) -> Fill {
    let steps = [(0, 2.75 * GB_S), (42 * GB, 1.6 * GB_S), (800 * GB, 1.35 * GB_S)];
    let empty = write(1_000 * GB, &steps, 0, random, flat);
    let overwrite = write(1_000 * GB, &[(0, 1.1 * GB_S)], empty.end_ns() + SECOND_NS, random, flat);
    let input =
        FillInput { overwrite: Some(&overwrite), samples, ..FillInput::new(1_000 * GB, &empty) };
    fill::judge(&input)
}

#[test]
fn a_cached_drive_shows_all_four_phases() {
    for seed in 0..20 {
        let found = cached_drive(&mut Random::new(seed), &[]);
        let cache = found.cache.found().unwrap();
        assert!(cache.change.bytes.abs_diff(42 * GB) <= 3 * GB, "{cache:?}");
        assert!((cache.change.bytes_range.0..=cache.change.bytes_range.1).contains(&(42 * GB)));
        assert_eq!(cache.attribution.cause, Cause::CacheFull);
        assert!(cache.change.confidence > 0.999);
        let shrink = found.shrink.found().unwrap();
        assert!((shrink.fill - 0.8).abs() < 0.01, "{shrink:?}");
        assert_eq!(shrink.attribution.cause, Cause::CacheShrunk);
        let overwrite = found.overwrite.found().unwrap();
        assert!((overwrite.ratio.unwrap() - 1.1 / 1.35).abs() < 0.01, "{overwrite:?}");
        for (kind, rate) in [
            (PhaseKind::Fast, 2.75),
            (PhaseKind::Native, 1.6),
            (PhaseKind::Shrunk, 1.35),
            (PhaseKind::Overwrite, 1.1),
        ] {
            let phase = found.phases.iter().find(|p| p.kind == kind).unwrap();
            assert!((found.rate(kind).unwrap() / GB_S / rate - 1.0).abs() < 0.02, "{phase:?}");
            let (low, high) = phase.mean_range.unwrap();
            assert!(low <= phase.segment.mean && phase.segment.mean <= high);
            assert_eq!(phase.dips.count, 0);
        }
        assert!((found.sustained_rate().unwrap() / GB_S - 1.1).abs() < 0.02);
    }
}

#[test]
fn the_answer_says_each_phase_in_numbers() {
    let answer = cached_drive(&mut Random::new(1), &[]).answer().join("\n");
    for part in [
        "The empty drive took 4",
        "at 2.7",
        "slower at 1.60 GB/s (12.8 Gb/s): likely the cache was full",
        "neither temperature nor link was sampled then",
        "From 80 % full on it was 16 % slower at 1.35 GB/s",
        "Overwriting holds 1.10 GB/s",
        "no dips below 80 % of the level",
        "over 1m 00s",
    ] {
        assert!(answer.contains(part), "'{part}' is not in:\n{answer}");
    }
}

#[test]
fn a_drive_without_cache_is_said_to_have_no_cliff_and_what_could_have_been_missed() {
    for seed in 0..20 {
        let mut random = Random::new(50 + seed);
        let empty = write(512 * GB, &[(0, 2.2 * GB_S)], 0, &mut random, flat);
        let overwrite = write(512 * GB, &[(0, 2.2 * GB_S)], empty.end_ns(), &mut random, flat);
        let input = FillInput { overwrite: Some(&overwrite), ..FillInput::new(512 * GB, &empty) };
        let found = fill::judge(&input);
        for finding in [&found.cache, &found.shrink] {
            let Sought::NotSeen { drop_missed_max: Some(missed) } = finding else {
                panic!("{finding:?}")
            };
            assert!((0.05..0.10).contains(missed), "{missed}");
        }
        assert!(matches!(found.overwrite, Sought::NotSeen { drop_missed_max: Some(_) }));
        let kinds: Vec<PhaseKind> = found.phases.iter().map(|p| p.kind).collect();
        assert_eq!(kinds, [PhaseKind::Native, PhaseKind::Overwrite]);
        let answer = found.answer().join("\n");
        assert!(answer.contains("No cliff"), "{answer}");
        assert!(answer.contains("would have been seen"), "{answer}");
        assert!(answer.contains("A cache of less than "), "{answer}");
        assert!(answer.contains("Overwriting is no slower"), "{answer}");
    }
}

#[test]
fn a_drive_that_dips_has_its_dips_and_no_cliff() {
    let mut random = Random::new(77);
    let dip = |second: usize| if second % 25 >= 23 { 1.3 / 1.7 } else { 1.0 };
    let empty = write(1_600 * GB, &[(0, 1.7 * GB_S)], 0, &mut random, dip);
    let found = fill::judge(&FillInput::new(1_600 * GB, &empty));
    assert_eq!(found.cache.found(), None);
    let summary = &found.phases[0].dips;
    let truth = (0..empty.len()).filter(|second| second % 25 == 23).count();
    assert_eq!(summary.count, truth);
    assert_eq!(summary.rhythm.unwrap().period_ns, 25 * SECOND_NS);
    let worst = found.passes[0].worst[0].rate / GB_S;
    assert!(worst < 1.32 && worst > 1.2, "{worst}");
    assert_eq!(found.overwrite, Sought::NotMeasured);
    let answer = found.answer().join("\n");
    assert!(answer.contains("one every 25.0 s"), "{answer}");
    assert!(answer.contains("Overwriting was not measured"), "{answer}");
}

#[test]
fn a_drop_with_throttling_is_heat_and_no_cliff() {
    let mut random = Random::new(78);
    // Hot from second 200 to 320.
    let heat = |second: usize| if (200..320).contains(&second) { 0.6 } else { 1.0 };
    let empty = write(1_000 * GB, &[(0, 2.0 * GB_S)], 0, &mut random, heat);
    let samples: Vec<Sample> = (0..600)
        .map(|second| Sample {
            at_ns: second * SECOND_NS,
            throttled: Some((200..320).contains(&second)),
            temperature_celsius: Some(if (190..330).contains(&second) { 85.0 } else { 65.0 }),
            ..Sample::default()
        })
        .collect();
    let input = FillInput { samples: &samples, ..FillInput::new(1_000 * GB, &empty) };
    let found = fill::judge(&input);
    assert_eq!(found.cache.found(), None);
    let causes: Vec<Cause> = found.passes[0].attributions.iter().map(|a| a.cause).collect();
    assert_eq!(causes, [Cause::Heat, Cause::Heat]);
    let answer = found.answer().join("\n");
    assert!(answer.contains("likely heat (throttling began"), "{answer}");
    assert!(answer.contains("throttling ended"), "{answer}");
    // Without samples nothing speaks for heat: the drop is taken for the cache, the rise for nothing.
    let blind = fill::judge(&FillInput::new(1_000 * GB, &empty));
    assert!(blind.answer().join("\n").contains("the cause is not known"));
}

#[test]
fn a_drive_written_in_part_or_not_at_all_says_so() {
    let mut random = Random::new(79);
    let part = write(100 * GB, &[(0, 2.0 * GB_S)], 0, &mut random, flat);
    let answer = fill::judge(&FillInput::new(1_000 * GB, &part)).answer().join("\n");
    assert!(answer.contains("Only 100 GB of 1.00 TB were written"), "{answer}");
    let none = Series::default();
    let nothing = fill::judge(&FillInput::new(1_000 * GB, &none));
    assert_eq!(nothing.answer(), ["Nothing was written, so nothing is known."]);
    assert_eq!(nothing.cache, Sought::NotSeen { drop_missed_max: None });
    let over = write(1_000 * GB, &[(0, 1.0 * GB_S)], 0, &mut random, flat);
    let only_over = FillInput { overwrite: Some(&over), ..FillInput::new(1_000 * GB, &none) };
    let answer = fill::judge(&only_over).answer().join("\n");
    let rate = "An empty drive was not written. Overwriting wrote ";
    assert!(answer.starts_with(rate) && !answer.contains("cache"), "{answer}");
}

#[test]
fn findings_survive_being_written_down() {
    let found = cached_drive(&mut Random::new(2), &[]);
    let text = serde_json::to_string(&found).unwrap();
    let read: Fill = serde_json::from_str(&text).unwrap();
    // Floats may differ in the last digit unless the reader is exact; the sentences may not.
    assert_eq!(read.answer(), found.answer());
    assert_eq!(
        read.cache.found().map(|t| t.change.index),
        found.cache.found().map(|t| t.change.index)
    );
    let noise = Noise::White(0.1);
    assert!(format!("{noise:?}").contains("White"));
}
