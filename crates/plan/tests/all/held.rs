//! Rates that a drive was seen to hold, or not to, and which ones a plan asks for.

use longtake_plan::Candidate;
use longtake_plan::explain;
use longtake_plan::limits::Limit;
use profile::{FillCurve, Source, SourceKind, name};

use super::arithmetic::{EVEN, design, drive};

#[test]
fn what_a_drive_was_seen_to_hold_counts_for_more_than_its_full_speed() {
    let ring = "rate = \"10GB/s\"\nraw = \"64KiB\"\nkeep = \"1s\"";
    let rate_of = |figures: &[(&str, f64)], text: &str| {
        let figures: Vec<_> = EVEN.iter().chain(figures).copied().collect();
        let design = design(text, &drive(4_000_000_000_000, &figures));
        let arithmetic = design.needs[0].arithmetic.join("\n");
        let array = design.array.unwrap();
        (array.data_drives, array.buffer_bytes, array.headroom_percent, arithmetic)
    };
    let of_ring = |figures: &[(&str, f64)]| rate_of(figures, ring);
    // A little more than 10 GB/s is written: 5.01 drives of 2 GB/s.
    let (drives, buffers, ..) = of_ring(&[]);
    assert_eq!(drives, 6);
    // 2.002 GB/s on each of five, and 5 % more, as they are slowest over stale data.
    let waiting = (name::WRITE_HELD_WAITING, 1e9);
    let (held, held_buffers, headroom, text) = of_ring(&[(name::WRITE_HELD, 2.11e9), waiting]);
    assert_eq!(held, 5);
    // All that waited, and half of it again.
    let each = 1.5e9;
    let chunks = f64::from(2 << 22);
    assert!((held_buffers - (buffers - chunks) - 5.0 * each).abs() < 1e6, "{held_buffers}");
    assert!(headroom > 0.0, "{headroom}");
    assert!(text.contains("a drive was seen to hold 2.11 GB/s with 1.00 GB waiting"), "{text}");
    // A rate that was named with a few digits counts as the one that was meant, for buffers as well.
    let offered = design(ring, &drive(4_000_000_000_000, &EVEN)).load.unwrap().offered_bytes_per_s;
    let named = offered / 5.0 * 1.05 * 0.999_95;
    let (drives, named_buffers, ..) = of_ring(&[(name::WRITE_HELD, named), waiting]);
    assert_eq!((drives, named_buffers), (5, held_buffers));
    // Too near, not known what waited, or contradicted.
    assert_eq!(of_ring(&[(name::WRITE_HELD, 2.10e9), waiting]).0, 6);
    assert_eq!(of_ring(&[(name::WRITE_HELD, 2.2e9)]).0, 6);
    assert_eq!(of_ring(&[(name::WRITE_HELD, 2.2e9), waiting, (name::WRITE_NOT_HELD, 1.9e9)]).0, 6);
    // Six get 1.67 GB/s each: full speed asks for them, and their buffers hold what was seen to wait at that rate and half of it again, or eight
    // chunks of 4 MiB, or three times as much of a little.
    let at_rate =
        |waiting| of_ring(&[(name::WRITE_HELD, 1.76e9), (name::WRITE_HELD_WAITING, waiting)]);
    for (waited, each) in [(1e9, each), (40e6, 40e6 + f64::from(8 << 22)), (9e6, 27e6)] {
        let (six, six_buffers, ..) = at_rate(waited);
        assert_eq!(six, 6);
        assert!((six_buffers - buffers - 6.0 * each).abs() < 1e6, "{six_buffers}");
    }
    assert_eq!(of_ring(&[(name::WRITE_HELD, 1.75e9), waiting]).1, buffers);
    // Six would get 1.67 GB/s each, and seven 1.43.
    let not_held = [(name::WRITE_NOT_HELD, 1.6e9)];
    let (drives, .., text) = of_ring(&not_held);
    assert_eq!(drives, 7);
    assert!(text.contains("a drive was seen not to hold 1.60 GB/s"), "{text}");
    // A mission ends before its drives fall behind; beside readers, no rate was measured.
    let mission = "rate = \"10.2GB/s\"\nraw = \"64KiB\"\nmission = \"1s\"";
    assert_eq!(rate_of(&not_held, mission).0, 6);
    let held = [(name::WRITE_HELD, 9e9), waiting, (name::READ_SEQUENTIAL, 4e9)];
    let beside = format!("{ring}\nreaders = \"1x1GB/s\"");
    assert_eq!(rate_of(&held, &beside).0, rate_of(&held[2..], &beside).0);
    // Where a cache shrinks, a measurement shows at once whether a drive is too slow: a quarter of a percent more is enough.
    let shrunk = |held: f64| {
        let shrinks = [(name::WRITE_SHRINK, 2e12), (name::WRITE_SHRUNK, 1e9)];
        of_ring(&[shrinks[0], shrinks[1], (name::WRITE_HELD, held), waiting]).0
    };
    assert_eq!((shrunk(2.008e9), shrunk(2.006e9)), (5, 6));
}

#[test]
fn the_rates_to_try_settle_how_many_drives_are_enough_whatever_a_drive_holds() {
    let ring = "rate = \"10GB/s\"\nraw = \"64KiB\"\nkeep = \"1s\"";
    for holds in [1.2e9, 1.55e9, 1.7e9, 1.9e9, 2.05e9, 2.3e9, 3e9] {
        let mut figures = EVEN.to_vec();
        let mut tried: Vec<f64> = Vec::new();
        let settled = loop {
            let design = design(ring, &drive(4_000_000_000_000, &figures));
            let drives = design.array.as_ref().unwrap().data_drives;
            if design.rates_to_try.is_empty() {
                assert!(!explain::lines(&design).join("\n").contains("to be sure"));
                break drives;
            }
            let named = format!("of {drives} drives gets, and each of {}", drives - 1);
            let said = explain::lines(&design).join("\n");
            assert!(said.contains("longtake measure fill DRIVE --rate ") && said.contains(&named));
            tried.extend(&design.rates_to_try);
            figures.truncate(EVEN.len());
            let (held, not): (Vec<f64>, _) = tried.iter().partition(|rate| **rate <= holds);
            let held = held.into_iter().reduce(f64::max).map(|rate| (name::WRITE_HELD, rate));
            let not = not.into_iter().reduce(f64::min).map(|rate| (name::WRITE_NOT_HELD, rate));
            let waiting = Some((name::WRITE_HELD_WAITING, 1e9));
            figures.extend([held, not, waiting].into_iter().flatten());
        };
        // Each drive holds its share, and each of one less would have been less than 5 % from the limit.
        let written = 10.009e9;
        assert!(written / f64::from(settled) < holds, "{holds}: {settled}, {tried:?}");
        assert!(written / f64::from(settled - 1) > holds / 1.06, "{holds}: {settled}, {tried:?}");
    }
    // Where the time to keep asks for more drives than the rate, one less is out of the question.
    let long = design(&ring.replace("1s", "55m"), &drive(4_000_000_000_000, &EVEN));
    let array = long.array.as_ref().unwrap();
    assert_eq!((array.binds, array.data_drives), (Limit::Capacity, 9));
    assert!(long.rates_to_try.iter().all(|rate| *rate < 10.009e9 / 8.0), "{long:?}");
    let said = explain::lines(&long).join("\n");
    assert!(said.contains("what each of 9 drives gets") && !said.contains("each of 8"), "{said}");
    let beside = design(&format!("{ring}\nreaders = \"1x1GB/s\""), &{
        drive(4_000_000_000_000, &[&EVEN[..], &[(name::READ_SEQUENTIAL, 4e9)]].concat())
    });
    assert_eq!(beside.rates_to_try, [], "a rate is measured without readers");
}

/// A drive that dips for 0.2 s, 2 % of the time, and was seen to hold a rate while so many bytes waited.
fn dipping(held: f64, waiting: f64) -> Candidate {
    let mut figures = EVEN.to_vec();
    figures.extend([(name::DIP_LOST, 2e8), (name::DIP_SHARE, 2.0)]);
    figures.extend([(name::WRITE_HELD, held), (name::WRITE_HELD_WAITING, waiting)]);
    drive(4_000_000_000_000, &figures)
}

/// Such drives for data in a stripe.
fn striped(rate: &str, candidate: &Candidate) -> u32 {
    let text = format!("rate = \"{rate}\"\nraw = \"64KiB\"\nkeep = \"1s\"\nplacement = \"stripe\"");
    design(&text, candidate).array.unwrap().data_drives
}

#[test]
fn in_a_stripe_a_drive_waits_only_for_what_buffers_leave_of_the_dips_of_others() {
    let of = |waiting: f64| dipping(1e9, f64::from(4 << 22) + waiting);
    let with = |waiting: f64| striped("30.95GB/s", &of(waiting));
    // 31.0 GB/s of 2.04 GB/s between dips: 2 % of the time for the dips of each drive, or of its own and half of the others'. Of 200 MB that
    // cover a dip at 1 GB/s, 98 ms remain covered at 2.04 GB/s.
    assert_eq!((with(2e8), with(0.0)), (22, 19));
    // Of 100 MB, 49 ms: the dips of 19 others last as long as 14.3 whole ones. 20 x 1.56 GB/s are enough then, and 19 x 1.58 GB/s are not.
    assert_eq!(with(1e8), 20);
    // A buffer of 150 MB, which that rate didn't fill, covers 82 ms together with four chunks under way: 10.6 whole ones, 19 x 1.66 GB/s.
    let mut buffered = of(1e8);
    let source = Source { kind: SourceKind::Measured, origin: "the test".to_owned(), when: None };
    let mut steps = vec![(1_000_000_000, 2.4e9)];
    steps.extend((1..=400).map(|step| (step * 10_000_000_000, 2.04e9)));
    buffered.profile.fill = Some(FillCurve { steps, source });
    assert_eq!(striped("30.95GB/s", &buffered), 19);
    // Beside readers, what was seen without them tells nothing.
    let beside = |waiting: f64| {
        let mut candidate = of(waiting);
        let read = drive(1 << 40, &[(name::READ_SEQUENTIAL, 5e9)]);
        candidate.profile.figures.extend(read.profile.figures);
        let text = "rate = \"30.95GB/s\"\nraw = \"64KiB\"\nkeep = \"1s\"\nplacement = \"stripe\"\n";
        design(&format!("{text}readers = \"1x1GB/s\""), &candidate).array.unwrap().data_drives
    };
    assert_eq!(beside(0.0), beside(2e8));
}

#[test]
fn in_a_stripe_a_drive_gets_its_share_in_the_time_that_dips_of_others_leave() {
    let rate_of = |held: f64, waiting: f64| striped("10GB/s", &dipping(held, waiting));
    // At full speed: 2.04 GB/s between dips, and 2 % of the time for those of each. 5.46 / (1 + 0.02 x n) drives are six.
    assert_eq!(rate_of(1e9, 1e9), 6);
    // All five feel each other's dips: 2.102 GB/s x (1 + 4 x 0.02) have to be held.
    assert_eq!((rate_of(2.28e9, 1e9), rate_of(2.26e9, 1e9)), (5, 6));
    // Four chunks under way cover them whole, and half of them.
    assert_eq!(rate_of(2.11e9, f64::from(4 << 22)), 5);
    assert_eq!(rate_of(2.19e9, f64::from(4 << 22) + 2.19e8), 5);
    assert_eq!(rate_of(2.18e9, f64::from(4 << 22) + 2.18e8), 6);
}
