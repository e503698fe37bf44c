//! Trials: what stays the same on a smaller drive, what a curve says, what a profile is turned into.

use profile::{Known, Profile, Source, SourceKind};

use super::*;

fn write(block: u64, size: u64) -> Workload {
    let stream =
        Stream { write: 1, block: Blocks::of(block), size: Some(Size(size)), ..Stream::default() };
    Workload {
        name: "write".to_owned(),
        seed: 1,
        interval: Time(Duration::from_secs(1)),
        warm_up: Time::default(),
        stop: Stop { bytes: Some(Size(size)), ..Stop::default() },
        streams: vec![stream],
    }
}

fn trial(workload: Workload) -> Trial {
    Trial {
        name: "a/b".to_owned(),
        begins: Begins::Prepared,
        rest: Duration::from_secs(6),
        workload,
        shows: Shows::Nothing,
    }
}

#[test]
fn a_smaller_drive_gets_bytes_and_times_in_proportion_and_the_same_blocks() {
    let small = trial(write(1 << 20, 64 << 30)).scaled(64, 1 << 30).workload;
    assert_eq!(trial(write(1 << 20, 64 << 30)).scaled(6, 1 << 30).rest, Duration::from_secs(1));
    assert_eq!(small.streams[0].block, Blocks::of(1 << 20));
    assert_eq!(small.streams[0].size, Some(Size(1 << 30)));
    assert_eq!(small.stop.bytes, Some(Size(1 << 30)));
    assert_eq!(small.interval, Time(INTERVAL_MAX));
    let ends = Vec::new();
    let curve =
        Trial { shows: Shows::Curve { empty: true, ends }, ..trial(write(1 << 20, 64 << 30)) };
    let interval = curve.scaled(64, 1 << 30).workload.interval;
    assert_eq!(interval, Time(Duration::from_nanos(15_625_000)));
    let mut timed = write(4096, 64 << 30);
    timed.stop = Stop { time: Some(Time(Duration::from_secs(60))), ..Stop::default() };
    let time =
        |workload: Workload| trial(workload).scaled(60, 1 << 30).workload.stop.time.unwrap().0;
    assert_eq!(time(timed.clone()), Duration::from_secs(1));
    // Reads change nothing, so a short time tells as much.
    (timed.streams[0].read, timed.streams[0].write) = (1, 0);
    assert_eq!(time(timed), READ_TIME.1);
}

#[test]
fn regions_fit_the_smaller_drive_and_hold_all_that_is_under_way() {
    let mut workload = write(1 << 20, 64 << 20);
    workload.streams[0].depth = 16;
    assert_eq!(
        trial(workload.clone()).scaled(64, 1 << 30).workload.streams[0].size,
        Some(Size(16 << 20))
    );
    assert_eq!(trial(workload).scaled(64, 8 << 20).workload.streams[0].size, Some(Size(8 << 20)));
    let mut trim = write(1 << 30, 64 << 30);
    (trim.streams[0].trim, trim.streams[0].write) = (1, 0);
    trim.streams[0].align = Some(Size(4096));
    let trim = trial(trim).scaled(64, 1 << 30).workload;
    assert_eq!(
        (trim.streams[0].block.longest(), trim.streams[0].size),
        (16 << 20, Some(Size(1 << 30)))
    );
}

/// Fast for 250 MB at 1 GB/s, then 250 MB/s up to 1 GB, in intervals of 10 ms.
fn two_levels() -> Series {
    let point = |index: u64| {
        let bytes = if index < 25 { 10_000_000 } else { 2_500_000 };
        Point { start_ns: index * 10_000_000, duration_ns: 10_000_000, bytes }
    };
    Series::new((0..325).map(point).collect()).unwrap()
}

#[test]
fn a_cliff_shows_in_the_parts_about_it_and_in_the_levels() {
    let series = two_levels();
    let ends = ends(true, 1_000_000_000, Some(250_000_000));
    assert!(ends.windows(2).all(|pair| pair[0].1 < pair[1].1));
    assert_eq!(ends.last().unwrap().1, 1_000_000_000);
    let parts = parts(&series, &ends);
    assert_eq!(parts.len(), ends.len());
    for (part, (_, end)) in parts.iter().zip(&ends) {
        let expected = if *end <= 250_000_000 { 1e9 } else { 2.5e8 };
        assert!((part.value / expected - 1.0).abs() < 1e-6, "{part:?}");
    }
    let levels = levels(&series, true, 1_000_000_000);
    let value = |name: &str| levels.iter().find(|one| one.name == name).map(|one| one.value);
    assert!((value(name::WRITE_CACHE).unwrap() / 2.5e8 - 1.0).abs() < 0.03, "{levels:?}");
    assert!((value(name::WRITE_NATIVE).unwrap() / 2.5e8 - 1.0).abs() < 0.03, "{levels:?}");
    assert_eq!(value(name::WRITE_SHRINK), None);
}

#[test]
fn short_parts_weigh_less_than_long_ones() {
    let series = two_levels();
    let of = |end: u64| parts(&series, &[("x".to_owned(), end)])[0].noise;
    assert!(of(5_000_000) > 4.0 * of(500_000_000));
    assert!(of(500_000_000) < 1.1 * NOISE);
}

#[test]
fn what_was_not_reached_has_no_rate() {
    let ends = [("a".to_owned(), 500_000_000), ("b".to_owned(), 1_500_000_000)];
    assert_eq!(parts(&two_levels(), &ends).len(), 1);
    assert_eq!(parts(&Series::default(), &ends), []);
}

fn profile(figures: &[(&str, f64, Unit)]) -> Profile {
    let mut profile = Profile::new("a", "A", "nvme", 100 << 30);
    for &(name, value, unit) in figures {
        let source = Source { kind: SourceKind::Measured, origin: "x".to_owned(), when: None };
        let known =
            Known { value, unit, range: None, confidence: None, note: String::new(), source };
        profile.figures.insert(name.to_owned(), known);
    }
    profile
}

#[test]
fn a_profile_is_asked_for_what_it_knows_and_nothing_else() {
    let profile = profile(&[
        ("write.native", 1e9, Unit::BytesPerSecond),
        ("random.read.4KiB.depth1", 5e7, Unit::BytesPerSecond),
        ("snia.write.iops", 5e4, Unit::CommandsPerSecond),
        ("snia.round", 6.0, Unit::Count),
        ("dip.count", 3.0, Unit::Count),
    ]);
    let measured = of_profile(&profile);
    let names: Vec<&str> = measured.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["write.native", "random.read.4KiB.depth1", "snia.write.iops"]);
    let trials: Vec<&str> = measured.trials.iter().map(|trial| trial.name.as_str()).collect();
    assert_eq!(trials[..3], ["fill/empty", "prepare/drive-0", "random.read.4KiB.depth1"]);
    assert_eq!(
        measured.trials.iter().filter(|t| matches!(t.shows, Shows::Round { .. })).count(),
        6
    );
    assert!(
        measured.notes[0].contains("60 s") || measured.notes[0].contains("1m"),
        "{:?}",
        measured.notes
    );
}

#[test]
fn a_profile_without_figures_asks_for_nothing() {
    assert_eq!(of_profile(&profile(&[])), Measured::default());
}

#[test]
fn a_folder_without_steps_gives_no_targets() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(read(folder.path(), 1 << 30).unwrap(), Measured::default());
}

#[test]
fn a_curve_alone_is_something_to_fit_to_and_a_hostile_one_is_nothing() {
    let source = crate::profiling::measured("2026-01-01", "here");
    let of = |steps: &[(u64, f64)]| {
        let mut profile = Profile::new("it", "It", "nvme", 1 << 40);
        let (steps, source) = (steps.to_vec(), source.clone());
        profile.fill = Some(profile::FillCurve { steps, source });
        of_profile(&profile)
    };
    let measured = of(&[(1 << 39, 2e9), (1 << 40, 1e9)]);
    assert_eq!(measured.trials.len(), 1);
    let rates: Vec<f64> = measured.targets.iter().map(|target| target.value).collect();
    assert!(rates.len() >= 20 && (rates[0] / 2e9 - 1.0).abs() < 0.01, "{rates:?}");
    let hostile = of(&[(1 << 39, 1e-300), (u64::MAX / 2, 1e-300), (u64::MAX, 1e300)]);
    assert_eq!(hostile.targets, []);
}
