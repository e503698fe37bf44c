//! The drives that come with the program can be simulated, and plain arithmetic on their parameters still gives published figures.
//!
//! That guards the library against a changed value. It is no evidence for the model: most of the parameters were chosen with the
//! datasheet's figures in view, and some, which the library marks as `fitted`, with a recorder's maker's. `longtake reproduce`
//! tells what was calibrated from what is predicted.

use longtake_ssd::Spec;
use longtake_ssd::spec::Link;
use profile::{Profile, SourceKind, library, name};

/// How far arithmetic may be from a published figure: parameters are round, and have several figures to meet.
const WITHIN: f64 = 0.15;

/// Every drive of the library.
fn drives() -> Vec<(Profile, Spec)> {
    let drive = |name| {
        let profile = library::get(name).unwrap();
        let spec = Spec::from_profile(&profile).unwrap_or_else(|error| panic!("{name}: {error}"));
        (profile, spec)
    };
    library::names().map(drive).collect()
}

/// A figure, if it is published.
fn published(profile: &Profile, name: &str) -> Option<f64> {
    let known = profile.known(name)?;
    (known.source.kind == SourceKind::Published).then_some(known.value)
}

#[test]
fn every_drive_can_be() {
    for (profile, spec) in drives() {
        spec.check().unwrap_or_else(|error| panic!("{}: {error}", profile.name));
        assert_eq!(spec.capacity_bytes, profile.capacity_bytes);
    }
}

#[test]
fn parameters_still_give_the_published_rates() {
    let mut compared = 0;
    for (profile, spec) in drives() {
        let cached = spec.cached_write_bytes_per_s();
        for (figure, ours) in [
            (name::READ_SEQUENTIAL.to_owned(), Some(spec.sequential_read_bytes_per_s())),
            (name::WRITE_NATIVE.to_owned(), Some(spec.native_write_bytes_per_s())),
            (name::WRITE_FAST.to_owned(), cached),
            (name::random_rate(4096, 1), Some(4096.0 / (spec.lone_read_us(4096) / 1e6))),
        ] {
            let Some(theirs) = published(&profile, &figure) else { continue };
            let ours = ours.unwrap_or_else(|| panic!("{} has no cache", profile.name));
            let off = ours / theirs - 1.0;
            assert!(
                off.abs() <= WITHIN,
                "{} {figure}: {theirs:.3e} published, {ours:.3e} by arithmetic, {:.1} % off",
                profile.name,
                off * 100.0
            );
            compared += 1;
        }
    }
    assert!(compared >= 24, "{compared}");
}

#[test]
fn parameters_still_give_what_a_recorders_maker_measured() {
    // Rates of a recorder's maker, in GB/s: into a cache if there is one, and past it.
    for (name, cached, native) in [
        ("samsung-970-evo-plus-1tb", Some(2.75), 1.6),
        ("samsung-970-pro-512gb", None, 2.2),
        ("samsung-pm1725b-1.6tb", None, 1.7),
        ("intel-optane-900p-480gb", None, 2.2),
        ("intel-d7-p5510-3.84tb", None, 3.2),
    ] {
        let spec = Spec::from_profile(&library::get(name).unwrap()).unwrap();
        let off = spec.native_write_bytes_per_s() / (native * 1e9) - 1.0;
        assert!(off.abs() <= WITHIN, "{name}: {off:.3}");
        assert_eq!(cached.is_some(), spec.cache.is_some(), "{name}");
        if let Some((theirs, ours)) = cached.zip(spec.cached_write_bytes_per_s()) {
            assert!((ours / (theirs * 1e9) - 1.0).abs() <= WITHIN, "{name}: {ours:.3e}");
        }
    }
}

#[test]
fn what_a_profile_tells_twice_is_told_alike() {
    for (profile, spec) in drives() {
        if let (Some(figure), Some(rated)) = (profile.endurance(), spec.endurance.rated_bytes) {
            assert_eq!(figure.0, rated, "{}", profile.name);
        }
        if let Some(cache) = profile.cache() {
            let spec = spec.cache.unwrap();
            assert_eq!(cache.0, spec.static_bytes + spec.dynamic_bytes, "{}", profile.name);
        }
        if let (Some(link), Link::Pcie { generation, lanes, .. }) = (profile.link(), spec.link) {
            let gigatransfers = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0][usize::from(generation) - 1];
            assert_eq!(
                (link.gigatransfers, link.lanes),
                (gigatransfers, lanes),
                "{}",
                profile.name
            );
        }
    }
}
