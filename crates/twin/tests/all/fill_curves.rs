//! Fill curves of drives that the library does not have, published ones and those of hidden simulated drives: read in as tables, fitted,
//! and compared with their twins.

use std::fmt::Write;

use base::Duration;
use lab::importing::profile::{ImportOptions, import};
use lab::{BankRig, Go, Rig};
use load::Workload;
use load::quantity::{Size, Time};
use load::workload::{Blocks, Stop, Stream};
use longtake_ssd::spec::{Cache, WhenFull};
use longtake_ssd::{SimBank, Slot, Spec, Start};
use longtake_twin::curves::{Division, PublishedCurve};
use longtake_twin::{Budget, MeasuredDrive, Search};
use profile::{Profile, library};

/// What an import makes of a published curve.
fn profile_of(curve: &PublishedCurve) -> Profile {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("curve.csv");
    std::fs::write(&path, curve.table()).expect("writing a table");
    curve.profile(&path).expect("it is a table")
}

/// A table as a profile.
fn read_in(table: &str, options: ImportOptions) -> Profile {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("curve.csv");
    std::fs::write(&path, table).expect("writing a table");
    import(&ImportOptions { from: vec![path], ..options }, None, "0.0.0").expect("a curve").profile
}

/// Why the twin of a profile must not stand for its drive, after so many drives were tried.
fn rejected(profile: &Profile, evaluations: u32) -> Option<String> {
    let drive = MeasuredDrive::of_profile(profile.clone(), "curve.csv".as_ref(), "twin");
    let drive = drive.expect("it tells of a drive");
    let search = Search::new(&drive, None).expect("a drive to begin with");
    let budget = Budget { evaluations, time: None };
    search.run(budget, &mut |_, _| Go::On).expect("drives can be tried").rejected()
}

/// A slice of all that are judged: drives with two and with three levels. With LONGTAKE_LONG set, all of them, and those that the rules
/// were made with.
#[test]
fn twins_of_published_curves_have_every_level_and_the_mean_within_a_tenth() {
    let long = std::env::var_os("LONGTAKE_LONG").is_some();
    let slice = ["Corsair MP700 Elite 2 TB", "Kingston NV2 1 TB", "WD Blue SN580 1 TB"];
    let evaluations = if long { 60 } else { 12 };
    let mut judged = 0;
    for drive in
        PublishedCurve::of(Division::Judge).into_iter().chain(PublishedCurve::of(Division::Learn))
    {
        if !long && !slice.contains(&drive.model.as_str()) {
            continue;
        }
        judged += 1;
        assert_eq!(rejected(&profile_of(&drive), evaluations), None, "{}", drive.model);
    }
    assert_eq!(judged, if long { 20 } else { slice.len() });
}

#[test]
fn curves_that_may_be_fitted_agree_with_the_mean_that_their_source_states() {
    let off = |drive: &PublishedCurve| Some(drive.mean_of_levels() / drive.mean_mb_s? - 1.0);
    for of in [Division::Learn, Division::Judge, Division::Contradicts] {
        assert!(!PublishedCurve::of(of).is_empty());
        for drive in PublishedCurve::of(of) {
            let agrees = off(&drive).is_none_or(|off| off.abs() < 0.1);
            assert_eq!(agrees, of != Division::Contradicts, "{} {:?}", drive.model, off(&drive));
            assert!(library::get(&drive.model).is_err(), "{} is in the library", drive.model);
        }
    }
}

#[test]
fn a_published_curve_is_kept_and_its_levels_are_those_that_were_typed_in() {
    for drive in
        PublishedCurve::of(Division::Learn).into_iter().chain(PublishedCurve::of(Division::Judge))
    {
        let profile = profile_of(&drive);
        let value = |name| profile.known(name).map(|known| known.value);
        let near = |name, expected: f64| {
            let found = value(name).unwrap_or_else(|| panic!("{}: no {name}", drive.model));
            assert!((found / expected - 1.0).abs() < 0.01, "{}: {name} {found}", drive.model);
        };
        let [(cache, fast), (second_end, second), rest @ ..] = drive.levels.as_slice() else {
            panic!("{} has one level", drive.model)
        };
        near(profile::name::WRITE_FAST, fast * 1e6);
        near(profile::name::WRITE_CACHE, cache * 1e9);
        near(profile::name::WRITE_NATIVE, second * 1e6);
        near(profile::name::WRITE_MEAN, drive.mean_of_levels() * 1e6);
        match rest {
            [] => assert_eq!(value(profile::name::WRITE_SHRINK), None, "{}", drive.model),
            [(_, third), ..] => {
                near(profile::name::WRITE_SHRINK, second_end * 1e9);
                near(profile::name::WRITE_SHRUNK, third * 1e6);
            }
        }
        assert_eq!(value(profile::name::WRITE_OVERWRITE), None, "{}", drive.model);
        let curve = profile.fill.as_ref().expect("it is kept");
        assert!(curve.is_whole(profile.capacity_bytes) && curve.steps.len() < 10, "{curve:?}");
        assert!(
            (curve.mean_rate() / (drive.mean_of_levels() * 1e6) - 1.0).abs() < 0.01,
            "{curve:?}"
        );
    }
}

/// A drive of 32 GiB with this cache. The fit sees only its fill curve.
fn hidden(over_provisioning: f64, cache: Cache) -> Spec {
    let mut spec =
        Spec::from_profile(&library::get("ideal").expect("it is there")).expect("a drive");
    spec.capacity_bytes = 32 << 30;
    spec.flash.dies_per_channel = 2;
    spec.flash.pages_per_block = 96;
    spec.flash.pages_per_program = 3;
    spec.flash.program_us = 2300.0;
    spec.flash.erase_us = 300.0;
    spec.mapping.over_provisioning = over_provisioning;
    spec.cache = Some(cache);
    spec.check().expect("it can be");
    spec
}

/// Its rate from empty to full, a line for each hundredth of a second.
fn curve(spec: &Spec) -> String {
    let slot = Slot { spec: spec.clone(), start: Start::Empty, namespaces: vec![0], seed: 7 };
    let mut rig = BankRig::without_data(SimBank::new(&[slot], None).expect("it can be"));
    let size = spec.capacity_bytes >> 20 << 20;
    let stream = Stream {
        write: 1,
        block: Blocks::of(1 << 20),
        size: Some(Size(size)),
        depth: 8,
        ..Stream::default()
    };
    let workload = Workload {
        name: "fill".to_owned(),
        seed: 1,
        interval: Time(Duration::from_millis(20)),
        warm_up: Time::default(),
        stop: Stop { bytes: Some(Size(size)), time: None, steady: None },
        streams: vec![stream],
    };
    let measurement = rig.run(&workload, &mut |_, _| Go::On).expect("it runs");
    let mut text = "seconds,MB/s\n".to_owned();
    for line in &measurement.series {
        let (end, length) = (line.start_ns + line.length_ns, line.length_ns);
        let rate = line.bytes as f64 * 1e3 / length as f64;
        writeln!(text, "{},{rate}", end as f64 / 1e9).expect("a string takes all");
    }
    text
}

#[test]
fn hidden_drives_are_found_again_from_their_curves_whatever_shape_those_have() {
    let plain = Cache {
        static_bytes: 0,
        dynamic_bytes: 2 << 30,
        shrink_from: 1.0,
        shrink_to: 1.0,
        program_us: 260.0,
        first_bytes: 0,
        first_program_us: None,
        read_us: 30.0,
        fold_us: None,
        when_full: WhenFull::Native,
        idle_ms: 1000.0,
        drain_mb_s: None,
    };
    for (what, spare, cache) in [
        (
            "flash that runs out",
            0.12,
            Cache { dynamic_bytes: 9 << 30, fold_us: Some(9200.0), ..plain },
        ),
        ("a cache that is folded on the way", 0.12, Cache { when_full: WhenFull::Fold, ..plain }),
        (
            "a cache of two stages",
            0.28,
            Cache {
                dynamic_bytes: 5 << 29,
                first_bytes: 1 << 30,
                first_program_us: Some(150.0),
                program_us: 230.0,
                ..plain
            },
        ),
        ("a cache that shrinks from half full on", 0.12, Cache { shrink_from: 0.5, ..plain }),
    ] {
        let spec = hidden(spare, cache);
        let options = ImportOptions {
            capacity_bytes: Some(spec.capacity_bytes),
            model: Some("Hidden".to_owned()),
            ..ImportOptions::default()
        };
        let profile = read_in(&curve(&spec), options);
        assert!(profile.known(profile::name::WRITE_CACHE).is_some(), "{what}: {profile:?}");
        assert_eq!(rejected(&profile, 12), None, "{what}");
    }
}
