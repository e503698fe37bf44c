//! Missions: the books balance, the same mission comes out the same, a coarse drive stands for a fine one, and what is slow or full
//! shows as what it is.

use std::ops::ControlFlow;

use base::{Duration, Rate};
use longtake_plan::mission::{Chunk, LossCause, Mission, MissionOutcome, Readers, Span};
use recorder::{Placement, WhenFull};
use ssd::spec::Heat;
use ssd::{Slot, Spec, Start};

fn spec(name: &str) -> Spec {
    Spec::from_profile(&profile::library::get(name).unwrap()).unwrap()
}

fn slots(spec: &Spec, count: usize, start: Start) -> Vec<Slot> {
    vec![Slot { spec: spec.clone(), start, namespaces: vec![0], seed: 1 }; count]
}

/// A drive that is written over in seconds.
fn small() -> Spec {
    let mut spec = spec("ideal");
    spec.capacity_bytes = 8 << 30;
    spec
}

fn run(mission: &Mission) -> MissionOutcome {
    let outcome = mission.run(|_| ControlFlow::Continue(())).unwrap();
    assert!(outcome.ledger.balances());
    outcome
}

fn seconds(s: f64) -> Duration {
    Duration::from_secs_f64(s)
}

#[test]
fn a_load_within_the_drives_rate_is_stored_to_the_packet() {
    let mission = Mission::new(slots(&small(), 4, Start::Empty), Rate(3e9), seconds(20.0));
    let outcome = run(&mission);
    assert!(outcome.lossless() && outcome.first_loss.is_none() && outcome.whole);
    let Chunk { packets, bytes, .. } = mission.chunk;
    let offered = 3e9 * 20.0 / f64::from(bytes) * f64::from(packets);
    let stored = outcome.ledger.stored.packets as f64;
    assert!((stored - offered).abs() <= 2.0, "{stored} of {offered}");
    assert!(outcome.samples.len() > 400 && outcome.samples.len() <= 500);
    let written: u64 = outcome.drives.iter().map(|drive| drive.written_bytes).sum();
    assert!(written as f64 > 3e9 * 20.0, "indexes too");
}

#[test]
fn a_ring_keeps_what_it_can_hold() {
    let drives = slots(&small(), 4, Start::Empty);
    let outcome = run(&Mission::new(drives, Rate(4e9), seconds(30.0)));
    assert!(outcome.lossless());
    assert!(outcome.drives.iter().all(|drive| drive.passes > 3.0));
    // 32 GiB at 4 GB/s, without the segments that are trimmed ahead or being filled.
    let held = outcome.retention.as_secs_f64();
    assert!(held > 6.0 && held < 8.6, "{held} s");
    assert!(outcome.samples.last().unwrap().fill > 3.0);
}

#[test]
fn what_is_too_fast_is_lost_when_buffers_are_full_and_said_by_whom() {
    let drives = slots(&small(), 2, Start::Full);
    let ceiling = 2.0 * small().native_write_bytes_per_s();
    let outcome = run(&Mission::new(drives, Rate(1.5 * ceiling), seconds(5.0)));
    assert!(!outcome.lossless());
    assert_eq!(outcome.buffers_most, outcome.buffers);
    let loss = outcome.first_loss.unwrap();
    assert!(loss.cause == LossCause::NoBuffer && loss.behind.len() == 2, "{loss}");
    assert!(loss.behind.iter().all(|drive| drive.passes >= 1.0));
    assert!(loss.to_string().contains("in overwrite"), "{loss}");
    // What is not lost comes at the rate that the drives have.
    let mission_s = outcome.time.as_secs_f64();
    let stored: u64 = outcome.drives.iter().map(|drive| drive.written_bytes).sum();
    let rate = stored as f64 / mission_s / ceiling;
    assert!(rate > 0.9 && rate <= 1.02, "{rate} of the ceiling");
}

#[test]
fn buffers_that_still_fill_at_the_end_of_a_mission_that_was_to_go_on_are_as_good_as_a_loss() {
    let mission = |share: f64, endless| {
        let drives = slots(&small(), 2, Start::Full);
        let ceiling = 2.0 * small().native_write_bytes_per_s();
        // Room for more than a tenth of all that comes.
        Mission {
            endless,
            buffers: 20_000,
            ..Mission::new(drives, Rate(share * ceiling), seconds(20.0))
        }
    };
    let outcome = run(&mission(1.1, false));
    assert!(outcome.lossless() && outcome.first_loss.is_none(), "buffers hold the rest");
    let filling = run(&mission(1.1, true));
    assert!(filling.lossless() && filling.whole);
    let loss = filling.first_loss.expect("it can't go on like this");
    assert_eq!(loss.cause, LossCause::Filling { since: seconds(16.0) });
    assert!(loss.to_string().starts_with("after 20.0 s: buffers were still filling"), "{loss}");
    assert_eq!(run(&mission(0.95, true)).first_loss, None, "drives keep up");
}

#[test]
fn a_load_slightly_above_what_drives_sustain_is_not_lost_in_one_lap_but_in_three() {
    let mut drive = spec("samsung-970-pro-512gb");
    drive.capacity_bytes = 32 << 30;
    drive.flash.pages_per_block = 8 * drive.flash.pages_per_program;
    let laps = |rate: f64, laps: f64| {
        let time = seconds(laps * 4.0 * drive.capacity_bytes as f64 / rate);
        let drives = slots(&drive, 4, Start::Full);
        run(&Mission { buffers: 100, ..Mission::new(drives, Rate(rate), time) })
    };
    let all = laps(4.0 * drive.native_write_bytes_per_s(), 3.0);
    let last = &all.samples[all.samples.len() * 2 / 3..];
    let sum: f64 = last.iter().flat_map(|sample| &sample.rates).sum();
    let slightly_more = 1.03 * sum / last.len() as f64;
    assert!(laps(slightly_more, 1.1).lossless());
    assert!(!laps(slightly_more, 3.3).lossless());
}

#[test]
fn a_load_whose_peaks_wait_is_judged_over_a_whole_period() {
    let drives = slots(&small(), 2, Start::Full);
    let ceiling = 2.0 * small().native_write_bytes_per_s();
    let span = |share: f64, s: f64| Span { time: seconds(s), rate: Rate(share * ceiling) };
    // Ends in a peak that the drives don't keep up with, and that they have always worked off before.
    let load = vec![span(0.2, 5.0), span(1.3, 5.0)];
    let bursts = Mission {
        endless: true,
        buffers: 20_000,
        load,
        ..Mission::new(drives, Rate(1.0), seconds(40.0))
    };
    assert_eq!(run(&bursts).first_loss, None);
}

#[test]
fn striping_writes_at_the_rate_of_the_slowest_drive_and_adapting_at_that_of_all() {
    let mut model = small();
    model.flash.variation = 0.1;
    let count = 4_u32;
    let nominal = model.native_write_bytes_per_s();
    for placement in [Placement::Stripe, Placement::Adaptive] {
        let offered = Rate(1.5 * f64::from(count) * nominal);
        let drives = slots(&model, count as usize, Start::Full);
        let mut mission = Mission::new(drives, offered, seconds(10.0));
        mission.placement = placement;
        // As the mission numbers its drives.
        let rates: Vec<f64> = (0..u64::from(count))
            .map(|at| model.of_drive(1 + mission.seed + at).native_write_bytes_per_s())
            .collect();
        let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let all: f64 = rates.iter().sum();
        assert!(slowest * f64::from(count) < 0.93 * all, "{rates:?}");
        let outcome = run(&mission);
        let stored: u64 = outcome.drives.iter().map(|drive| drive.written_bytes).sum();
        let rate = stored as f64 / outcome.time.as_secs_f64();
        let expected = if placement == Placement::Stripe { slowest * 4.0 } else { all };
        assert!((rate / expected - 1.0).abs() < 0.04, "{placement:?}: {rate} of {expected}");
    }
}

#[test]
fn a_mission_ends_though_no_buffer_is_free_at_its_end() {
    for ms in 500..520 {
        let drives = slots(&small(), 1, Start::Empty);
        let mut mission = Mission::new(drives, Rate(2e10), Duration::from_millis(ms));
        mission.buffers = 4;
        let outcome = run(&mission);
        let Chunk { packets, bytes, .. } = mission.chunk;
        let offered = 2e10 * ms as f64 / 1e3 / f64::from(bytes) * f64::from(packets);
        let lost = outcome.ledger.lost_unwanted().packets as f64;
        let known = outcome.ledger.stored.packets as f64 + lost;
        assert!((known - offered).abs() <= 2.0 && lost > 0.0, "{known} of {offered}");
    }
}

#[test]
fn an_array_that_stops_when_it_is_full_says_so() {
    let mut mission = Mission::new(slots(&small(), 2, Start::Empty), Rate(2e9), seconds(20.0));
    mission.when_full = WhenFull::Stop;
    let outcome = run(&mission);
    assert!(outcome.first_loss.unwrap().cause == LossCause::Full);
    assert!(outcome.drives.iter().all(|drive| drive.passes > 0.9 && drive.passes <= 1.0));
}

#[test]
fn the_same_mission_comes_out_the_same() {
    let mut mission = Mission::new(slots(&small(), 3, Start::Full), Rate(4e9), seconds(5.0));
    mission.readers = vec![Readers {
        random: true,
        bytes: 65_536,
        rate: Rate(2e8),
        depth: 16,
        drives: None,
        apart: false,
        begins: Duration::ZERO,
    }];
    let (one, other) = (run(&mission), run(&mission));
    assert_eq!(one.samples, other.samples);
    assert_eq!(one.drives, other.drives);
    assert_eq!(one.reads, other.reads);
    let (read, missed) = (one.reads.bytes, one.reads.missed_bytes);
    assert!((read + missed) as f64 >= 0.99e9 && read > missed, "{read} read, {missed} missed");
}

#[test]
fn a_load_over_the_day_comes_and_goes() {
    let mut mission = Mission::new(slots(&small(), 2, Start::Empty), Rate(1e9), seconds(8.0));
    mission.load = vec![
        Span { time: seconds(1.0), rate: Rate(2e9) },
        Span { time: seconds(1.0), rate: Rate(0.0) },
    ];
    let outcome = run(&mission);
    assert!(outcome.lossless());
    let packets = f64::from(mission.chunk.packets) / f64::from(mission.chunk.bytes) * 8e9;
    assert!((outcome.ledger.stored.packets as f64 - packets).abs() < 3.0);
    let quiet = |sample: &&longtake_plan::mission::Sample| sample.rates.iter().sum::<f64>() < 1e8;
    let count = outcome.samples.iter().filter(quiet).count();
    assert!(count > 200 && count < 300, "{count} of {} samples", outcome.samples.len());
}

#[test]
fn a_coarse_drive_sustains_what_the_fine_one_does() {
    for name in ["samsung-970-evo-plus-1tb", "samsung-970-pro-512gb", "intel-d7-p5510-3.84tb"] {
        for placement in [Placement::Adaptive, Placement::Stripe] {
            let stored = |coarse| {
                let drives = slots(&spec(name), 2, Start::Full);
                let mut mission = Mission::new(drives, Rate(1e10), seconds(2.0));
                (mission.coarse, mission.placement) = (coarse, placement);
                run(&mission).ledger.stored.bytes as f64
            };
            let ratio = stored(true) / stored(false);
            assert!((ratio - 1.0).abs() < 0.01, "{name}, {placement}: {ratio}");
        }
    }
}

#[test]
fn a_coarse_drive_with_a_cache_holds_what_the_fine_one_does() {
    // Each is busy for a part of its time, for nearly all of it, and gets more than it writes in the end.
    let of =
        [("qlc-1tb", [6e7, 1.2e8, 1.5e8]), ("samsung-970-evo-plus-1tb", [1.2e9, 1.7e9, 1.9e9])];
    for (name, rates) in of {
        // A sixteenth of the drive, which is filled in seconds or minutes.
        let mut spec = spec(name);
        spec.capacity_bytes /= 16;
        spec.flash.pages_per_block /= 16;
        let cache = spec.cache.as_mut().unwrap();
        cache.static_bytes /= 16;
        cache.dynamic_bytes /= 16;
        for rate in rates {
            let stored = |coarse| {
                let drives = slots(&spec, 2, Start::Empty);
                let twice = seconds(2.0 * spec.capacity_bytes as f64 / rate);
                let mut mission = Mission::new(drives, Rate(2.0 * rate), twice);
                mission.coarse = coarse;
                run(&mission).ledger.stored.bytes as f64
            };
            let ratio = stored(true) / stored(false);
            assert!((ratio - 1.0).abs() < 0.01, "{name} at {rate}: {ratio}");
        }
    }
}

#[test]
fn a_coarse_drive_gets_as_warm_as_the_fine_one() {
    let fine = Spec {
        heat: Some(Heat {
            idle_w: 2.0,
            die_w: 0.1,
            transfer_w: 2.0,
            joules_per_k: 0.5,
            kelvin_per_w: 10.0,
            ambient_c: 35.0,
            light_c: 75.0,
            light_mb_s: 800.0,
            heavy_c: 90.0,
            heavy_mb_s: 100.0,
            hysteresis_k: 2.0,
        }),
        ..small()
    };
    assert!(fine.coarsened().flash.dies() < fine.flash.dies(), "it is coarser");
    let warm = |coarse, rate| {
        let mut mission = Mission::new(slots(&fine, 2, Start::Full), Rate(rate), seconds(60.0));
        mission.coarse = coarse;
        let warmth = run(&mission).drives[0].warmth.unwrap();
        (warmth.highest_celsius, warmth.lightly.as_secs_f64())
    };
    let (cool, cool_coarse) = (warm(false, 1e9), warm(true, 1e9));
    assert!(cool.0 > 60.0 && (cool.0 - cool_coarse.0).abs() < 1.0, "{cool:?}, {cool_coarse:?}");
    assert_eq!((cool.1, cool_coarse.1), (0.0, 0.0));
    let (hot, hot_coarse) = (warm(false, 4e9), warm(true, 4e9));
    assert!((hot.0 - hot_coarse.0).abs() < 1.0 && hot.1 > 10.0, "{hot:?}, {hot_coarse:?}");
    assert!((hot.1 / hot_coarse.1 - 1.0).abs() < 0.1, "{hot:?}, {hot_coarse:?}");
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let refused = |change: fn(&mut Mission)| {
        let mut mission = Mission::new(slots(&small(), 1, Start::Empty), Rate(1e9), seconds(1.0));
        change(&mut mission);
        mission.run(|_| ControlFlow::Continue(())).unwrap_err().to_string()
    };
    for (change, word) in [
        ((|m| m.drives.clear()) as fn(&mut Mission), "drives"),
        (|m| m.load.clear(), "load"),
        (|m| m.chunk.packets = 0, "chunk"),
        (|m| m.buffers = 1, "buffers"),
        (|m| m.segment_bytes = Some(4096), "segment"),
        (|m| m.drives[0].spec.flash.channels = 0, "channels"),
    ] {
        let error = refused(change);
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn whoever_watches_a_month_is_told_long_before_its_first_sample() {
    let month = seconds(30.0 * 86_400.0);
    let mission = Mission::new(slots(&small(), 4, Start::Empty), Rate(3e9), month);
    let mut told = 0;
    let outcome = mission.run(|progress| {
        told += 1;
        assert!(progress.sample.is_none() && progress.first_loss.is_none());
        if told < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let outcome = outcome.unwrap();
    assert!(!outcome.whole && outcome.lossless() && outcome.ledger.balances());
    // A five-hundredth of the month is more than an hour.
    assert!(outcome.fed < seconds(3_600.0), "{}", outcome.fed);
}

#[test]
fn a_mission_can_be_broken_off() {
    let mission = Mission::new(slots(&small(), 2, Start::Empty), Rate(1e9), seconds(3600.0));
    let mut told = 0;
    let outcome = mission
        .run(|_| {
            told += 1;
            if told == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert!(!outcome.whole && outcome.ledger.balances());
    assert!(outcome.time < seconds(60.0));
}

/// Two small drives of two NVM Sets, full, each part of which is recorded to for two seconds while readers have the other.
fn apart() -> Mission {
    let mut spec = spec("memblaze-4tb-horizontal");
    spec.capacity_bytes = 16 << 30;
    spec.flash.pages_per_block = 24;
    let slot = Slot { spec, start: Start::Full, namespaces: vec![0, 1], seed: 1 };
    let mut mission = Mission::new(vec![slot; 2], Rate(1.5e9), seconds(20.0));
    (mission.separate, mission.rest_turn) = (true, seconds(2.0));
    mission.readers = vec![Readers {
        random: true,
        bytes: 4096,
        rate: Rate(4e7),
        depth: 64,
        drives: None,
        apart: true,
        begins: seconds(4.0),
    }];
    mission.coarse = false;
    mission
}

#[test]
fn a_recorder_and_readers_change_places_on_the_parts_of_drives() {
    let mission = apart();
    let outcome = run(&mission);
    assert!(outcome.lossless());
    // Outcomes are of drives, and not of their parts: 30 GB on two drives of 16 GiB.
    assert_eq!(outcome.drives.len(), 2);
    assert!(outcome.drives.iter().all(|drive| drive.passes > 0.8 && drive.passes < 1.2));
    assert!(outcome.samples.iter().all(|sample| sample.rates.len() == 2));
    let reads = &outcome.reads;
    assert!(((reads.bytes + reads.missed_bytes) as f64 / (16.0 * 4e7) - 1.0).abs() < 0.01);
    assert!(reads.latencies.count() > 50_000 && reads.after_change.count() > 50_000);
    // Whoever reads where nobody writes meets nothing but other readers.
    let mean_us = reads.latencies.mean_ns().unwrap() / 1e3;
    assert!(mean_us < 110.0, "{mean_us} us");
    let beside = Mission {
        separate: false,
        readers: vec![Readers { apart: false, ..mission.readers[0].clone() }],
        ..mission
    };
    let beside_us = run(&beside).reads.latencies.mean_ns().unwrap() / 1e3;
    assert!(beside_us > 1.2 * mean_us, "{beside_us} us beside, {mean_us} us apart");
}

#[test]
fn a_ring_in_turns_holds_all_that_its_parts_hold_but_a_turn() {
    let mut mission = apart();
    mission.readers.clear();
    mission.duration = seconds(60.0);
    let outcome = run(&mission);
    assert!(outcome.lossless());
    let held = outcome.retention.as_secs_f64();
    // 32 GiB at 1.5 GB/s are 22.9 s; each of four members keeps 7 of its 32 segments free, and a turn is 2 s.
    let most = 32.0 * 1.0737 / 1.5 * 25.0 / 32.0;
    assert!(held > most - 2.5 && held < most + 2.5, "{held} s of {most}");
}

/// Erases that were asked when their blocks were needed, and those done ahead, on three laps of a ring that is full in the beginning.
fn erases(trim_ahead: u64, share: f64, rest: u32) -> (u64, u64) {
    let spec = small();
    let members = 3;
    let ceiling = f64::from(members) * spec.native_write_bytes_per_s();
    let seconds_of_laps = 3.2 * f64::from(members) * spec.capacity_bytes as f64 / ceiling;
    let drives = slots(&spec, members as usize, Start::Full);
    let mut mission =
        Mission::new(drives, Rate(share * ceiling), seconds(seconds_of_laps / share.min(1.0)));
    mission.trim_ahead = trim_ahead;
    (mission.rest, mission.rest_turn) = (rest, seconds(1.0));
    let outcome = run(&mission);
    assert_eq!(outcome.lossless(), share < 1.0);
    let (mut due, mut ahead) = (0, 0);
    for drive in &outcome.drives {
        assert!(drive.passes > 2.5, "{}", drive.passes);
        let erasing = drive.erasing.expect("blocks are written over");
        let of_drive = (erasing.erases as f64 * erasing.ahead).round() as u64;
        ahead += of_drive;
        due += erasing.erases - of_drive;
    }
    (due, ahead)
}

#[test]
fn a_ring_without_time_to_spare_erases_when_blocks_are_needed_and_one_with_time_before() {
    let none = erases(0, 1.5, 0);
    let trimmed = erases(4, 1.5, 0);
    let spared = erases(4, 0.8, 0);
    let rested = erases(4, 0.5, 1);
    // What is written over is erased once, whenever.
    assert!(none.0 > 10 * none.1, "{none:?}");
    assert!(trimmed.0 <= none.0 + none.0 / 50, "{trimmed:?}, {none:?}");
    assert!(spared.0 <= trimmed.0 && spared.1 > 10 * spared.0, "{spared:?}, {trimmed:?}");
    assert!(rested.0 <= trimmed.0 && rested.1 > 10 * rested.0, "{rested:?}, {trimmed:?}");
}
