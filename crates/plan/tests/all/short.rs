//! Missions that are over soon: planned by the fill curve, and with as many dips as there is time for.

use base::random::Random;
use longtake_plan::Candidate;
use longtake_plan::phases::Dips;
use profile::{FillCurve, Source, SourceKind, name};

use super::arithmetic::{EVEN, design, drive};

/// A drive that was seen not to dip, with this curve.
fn followed(kind: SourceKind, steps: &[(u64, f64)], more: &[(&str, f64)]) -> Candidate {
    let figures = [&EVEN[..], &[(name::DIP_COUNT, 0.0)], more].concat();
    let mut profile = drive(1_000_000_000_000, &figures).profile;
    let source = Source { kind, origin: "the test".to_owned(), when: None };
    profile.fill = Some(FillCurve { steps: steps.to_vec(), source });
    Candidate::new(profile, None)
}

/// Drives and bytes of buffers of a requirement, and what is said of the rate.
fn planned(text: &str, candidate: &Candidate) -> (u32, f64, String) {
    let design = design(&format!("rate = \"10GB/s\"\nraw = \"64KiB\"\n{text}"), candidate);
    let said = design.needs[0].arithmetic.join("\n");
    let array = design.array.unwrap();
    (array.data_drives, array.buffer_bytes, said)
}

#[test]
fn a_mission_is_planned_by_the_curve_and_a_ring_by_the_phases() {
    // No cache was found, as the drive got slower little by little. By its mean it is 2 GB/s.
    let steps = [
        (5_000_000_000, 2.6e9),
        (10_000_000_000, 2.55e9),
        (400_000_000_000, 2.1e9),
        (1_000_000_000_000, 1.9e9),
    ];
    let measured = followed(SourceKind::Measured, &steps, &[]);
    let (drives, _, said) = planned("mission = \"20s\"", &measured);
    assert_eq!(drives, 5, "{said}");
    let slow = steps.map(|(end, rate)| (end, rate * 0.9));
    let (slower, _, said) =
        planned("mission = \"20s\"", &followed(SourceKind::Measured, &slow, &[]));
    assert_eq!(slower, 6, "{said}");
    assert!(said.contains("by its fill curve, an empty drive takes 33.4 GB"), "{said}");
    // A curve that somebody published, and none at all, as the phases tell.
    for other in [followed(SourceKind::Published, &slow, &[]), drive(1_000_000_000_000, &EVEN)] {
        let (drives, _, said) = planned("mission = \"20s\"", &other);
        assert!(drives == 6 && !said.contains("fill curve"), "{said}");
    }
    // If one of the figures beside a curve is only assumed, the curve is not used.
    let mut assumed = followed(SourceKind::Measured, &slow, &[]);
    assumed.profile.figures.get_mut(name::WRITE_NATIVE).unwrap().source.kind = SourceKind::Assumed;
    assert!(!planned("mission = \"20s\"", &assumed).2.contains("fill curve"));
    // A ring, and a mission that writes more than was measured, are planned by the phases, too.
    let (ring, _, said) = planned("keep = \"5s\"", &measured);
    assert!(ring == 6 && !said.contains("fill curve"), "{said}");
    let short = followed(SourceKind::Measured, &steps[..2], &[]);
    let (.., said) = planned("mission = \"20s\"", &short);
    assert!(!said.contains("fill curve"), "{said}");
    // Another drive dips elsewhere.
    let dips = [(name::DIP_COUNT, 3.0), (name::DIP_LOST, 2e8), (name::DIP_SHARE, 2.0)];
    let (.., said) = planned("mission = \"20s\"", &followed(SourceKind::Measured, &steps, &dips));
    assert!(!said.contains("fill curve"), "{said}");
}

#[test]
fn an_interval_in_which_the_cache_ended_is_fast_before_and_slow_behind() {
    // 9.5 GB at 4 GB/s, and 1.5 GB/s from there on. Of the interval from 9 to 10 GB the mean is 2.18 GB/s, more than the 2.002 GB/s that each of
    // five drives gets.
    let mean = 1.0 / (0.5 / 4.0 + 0.5 / 1.5) * 1e9;
    let steps = [(9_000_000_000, 4e9), (10_000_000_000, mean), (1_000_000_000_000, 1.5e9)];
    let cache = [(name::WRITE_FAST, 4e9), (name::WRITE_CACHE, 9.5e9)];
    let followed = followed(SourceKind::Measured, &steps, &cache);
    let of = |mission: f64| planned(&format!("mission = \"{mission}s\""), &followed).0;
    assert_eq!((of(4.7), of(4.8)), (5, 6));
}

#[test]
fn drives_are_a_quarter_of_a_percent_faster_than_their_curve_asks_for() {
    // 9 MB/s too many for five drives: 36 MB in 4 s, and chunks on their way hold 50 MB. A quarter of a percent are 100 MB.
    let of = |placement: &str, overwrite: f64| {
        let steps = [(1_000_000_000_000, 2e9)];
        let followed =
            followed(SourceKind::Measured, &steps, &[(name::WRITE_OVERWRITE, overwrite)]);
        planned(&format!("mission = \"4s\"\nplacement = \"{placement}\""), &followed).0
    };
    assert_eq!((of("adaptive", 1.8e9), of("stripe", 1.8e9)), (6, 6));
    // A drive that is as fast over stale data has nothing to tidy up.
    assert_eq!((of("adaptive", 2e9), of("stripe", 2e9)), (5, 5));
}

#[test]
fn a_write_buffer_takes_as_much_at_any_rate_and_a_cache_does_not() {
    // Five drives get 2.002 GB/s each, 59 MB/s together more than they write. Chunks on their way hold 50 MB.
    let level = 1.99e9;
    let of = |seconds: f64, candidate: &Candidate| {
        planned(&format!("mission = \"{seconds}s\""), candidate).0
    };
    let even = followed(SourceKind::Measured, &[(1_000_000_000_000, level)], &[]);
    assert_eq!(of(1.0, &even), 6);
    // 10 MB more in the time of the first 200 MB are in the buffer.
    let steps = [(200_000_000, level / 0.95), (1_000_000_000_000, level)];
    let buffered = followed(SourceKind::Measured, &steps, &[]);
    assert_eq!(of(1.6, &buffered), 5);
    assert_eq!(of(1.8, &buffered), 6);
    // A cache that is twice as fast has its data only when it has come: 0.9 s remain.
    let cache = [(name::WRITE_FAST, 4e9), (name::WRITE_CACHE, 2e8)];
    let steps = [(200_000_000, 4e9), (1_000_000_000_000, level)];
    assert_eq!(of(1.0, &followed(SourceKind::Measured, &steps, &cache)), 6);
}

#[test]
fn a_mission_has_buffers_for_the_dips_that_fall_into_it() {
    let dips = Dips { together_s: 0.25, share: 0.02 };
    // One dip each in 12.75 s, which a second sees with a chance of 9.8 %: three of ten drives or less in 98.6 % of the cases, four in 99.8 %.
    assert_eq!(dips.within(10, 1.0), 5.0);
    // In ten periods, each of ten drives dips ten times if each dip costs as much as the costliest. But if they cost a few hundredths less,
    // there are a few hundredths more, and chance decides which drives have one more.
    let long = dips.within(10, 127.5);
    assert!((104.5..105.5).contains(&long), "{long}");
    // Of four drives that dip 10.2 times each, all but one in a thousand times three or fewer have the eleventh dip.
    let four = dips.within(4, 127.5);
    assert!((43.0 / 1.02..43.5).contains(&four), "{four}");
    // Longer missions and more drives have no fewer, thousands of drives neither, and those hardly more than their mean.
    for drives in [1, 2, 4, 10, 58, 1074, 1075, 3000] {
        for tenths in 1..300 {
            let seconds = f64::from(tenths) / 10.0;
            let here = dips.within(drives, seconds);
            assert!(dips.within(drives, seconds + 0.1) >= here, "{drives} {seconds}");
            assert!(dips.within(drives + 1, seconds) >= here, "{drives} {seconds}");
        }
    }
    let mean = 3000.0 * (20.0 + 0.25) / 12.75;
    let thousands = dips.within(3000, 20.0);
    assert!((mean..mean * 1.03).contains(&thousands), "{thousands} {mean}");
    let figures =
        [&EVEN[..], &[(name::DIP_COUNT, 9.0), (name::DIP_LOST, 2.5e8), (name::DIP_SHARE, 2.0)]];
    let dipping = drive(1_000_000_000_000, &figures.concat());
    let buffers = |placement: &str, seconds: f64| {
        let text = format!("mission = \"{seconds}s\"\nplacement = \"{placement}\"");
        planned(&text, &dipping).1
    };
    for placement in ["adaptive", "stripe"] {
        for seconds in [1.0, 2.0, 4.0, 8.0] {
            // All that comes, and the chunks on their way.
            let bytes = buffers(placement, seconds);
            assert!(bytes < 10.1e9 * seconds + 0.2e9, "{placement} {seconds}: {bytes}");
        }
    }
    // Of a second four dips of a quarter each are in the plan, of eight seconds more.
    let of_stripe = [1.0, 2.0, 8.0].map(|seconds| buffers("stripe", seconds));
    assert!(of_stripe[0] < of_stripe[2] / 1.3, "{of_stripe:?}");
    // Fewer drives dip than ever will at once in years.
    let ring = "keep = \"5s\"\nplacement = \"adaptive\"";
    assert!(buffers("adaptive", 2.0) < planned(ring, &dipping).1 * 1.02);
}

#[test]
fn what_a_drive_writes_between_dips_is_what_its_curve_shows_if_that_is_less() {
    // By their mean and the time that dips cost, five drives write 1.995 GB/s each between dips, 32 MB/s less than comes. The pass that was
    // measured met fewer dips than that.
    let dips = [
        (name::WRITE_NATIVE, 1.9e9),
        (name::WRITE_OVERWRITE, 1.9e9),
        (name::DIP_COUNT, 9.0),
        (name::DIP_LOST, 2.5e8),
        (name::DIP_SHARE, 5.0),
    ];
    let buffers = |kind, level: f64, dip_gb: u64| {
        let dip_end = (90 + dip_gb) * 1_000_000_000;
        let steps = [(90_000_000_000, level), (dip_end, 5e8), (1_000_000_000_000, level)];
        let (drives, bytes, said) =
            planned("mission = \"4s\"\nplacement = \"adaptive\"", &followed(kind, &steps, &dips));
        assert_eq!(drives, 5, "{said}");
        bytes
    };
    let (as_stated, slower) =
        (buffers(SourceKind::Measured, 1.995e9, 1), buffers(SourceKind::Measured, 1.95e9, 1));
    // In 4 s, five drives write 0.9 GB less; each dip of one of them costs a quarter of a second less of it.
    let dipping = Dips { together_s: 0.25, share: 0.05 }.within(5, 4.0);
    assert!((5.0..6.0).contains(&dipping), "{dipping}");
    let less = 0.045e9 * (5.0 * 4.0 - dipping * 0.25);
    assert!((slower - as_stated - less).abs() < 1e6, "{slower} {as_stated}");
    // More than the figures say is not counted on, nor what somebody published, nor steps so long that each has dips in it.
    assert_eq!(buffers(SourceKind::Measured, 2.2e9, 1), as_stated);
    assert_eq!(buffers(SourceKind::Published, 1.95e9, 1), as_stated);
    assert_eq!(buffers(SourceKind::Measured, 1.95e9, 10), as_stated);
}

#[test]
fn a_stripe_that_sees_few_dips_has_buffers_for_them_and_drives_for_the_rate_between_them() {
    let figures =
        [&EVEN[..], &[(name::DIP_COUNT, 9.0), (name::DIP_LOST, 2e8), (name::DIP_SHARE, 2.0)]];
    let dipping = drive(1_000_000_000_000, &figures.concat());
    let stripe = |seconds: u32| {
        let text = format!("mission = \"{seconds}s\"\nplacement = \"stripe\"");
        planned(&text, &dipping)
    };
    // In 2 s all of four drives dip at most, in turn: 0.8 s of 8.16 GB/s. They are 1.85 GB/s too slow anyway: another 3.7 GB. Three would be
    // 3.89 GB/s too slow, and what waits because of that would be more than what waits for three dips.
    let (drives, bytes, said) = stripe(2);
    assert_eq!(drives, 4, "{said}");
    assert!((10.2e9..10.4e9).contains(&bytes), "{bytes} {said}");
    // In a minute each dips six times, and all of that has to be made up for.
    assert_eq!(stripe(60).0, 6);
}

#[test]
fn a_curve_of_any_rates_is_planned_with_and_ends_in_a_number() {
    let (least, most, end) = (f64::from_bits(1), 1e308, 1_000_000_000_000);
    let curves: [&[(u64, f64)]; 5] = [
        &[(1_000, least), (2_000, 2.0 * least), (end, most)],
        &[(1_000, most), (2_000, most / 1e8), (end, least)],
        &[(1, 2e9), (2, 1e9), (3, 5e8), (end, 1e-300)],
        &[(u64::MAX, 2e9)],
        &[(end, most)],
    ];
    for steps in curves {
        for placement in ["adaptive", "stripe"] {
            let text = format!("mission = \"5s\"\nplacement = \"{placement}\"");
            let candidate = followed(SourceKind::Measured, steps, &[]);
            let (drives, buffers, _) = planned(&text, &candidate);
            assert!(drives > 0 && buffers.is_finite(), "{steps:?}: {drives}, {buffers}");
        }
    }
}

/// The most bytes that wait for `drives` that write `level` bytes a second each but in their dips, the first of which begin at random.
fn waiting(drives: u32, offered: f64, level: f64, dips: Dips, random: &mut Random) -> f64 {
    const STEP_S: f64 = 0.02;
    let period_s = dips.together_s * (1.0 + dips.share) / dips.share;
    let mut next: Vec<f64> =
        (0..drives).map(|_| random.bits() as f64 / 2f64.powi(64) * period_s).collect();
    let (mut waiting, mut most) = (0.0_f64, 0.0_f64);
    for step in 0..(3.0 * period_s / STEP_S) as u32 {
        let now = f64::from(step) * STEP_S;
        for at in next.iter_mut().filter(|at| now >= **at + dips.together_s) {
            *at += period_s;
        }
        let writes = next.iter().filter(|&&at| now < at).count();
        waiting = (waiting + (offered - writes as f64 * level) * STEP_S).max(0.0);
        most = most.max(waiting);
    }
    most
}

#[test]
fn buffers_hold_the_dips_of_drives_that_are_hardly_faster_than_what_comes() {
    let dips = Dips { together_s: 0.25, share: 0.025 };
    let figures =
        [&EVEN[..], &[(name::DIP_COUNT, 9.0), (name::DIP_LOST, 2.5e8), (name::DIP_SHARE, 2.5)]];
    let dipping = drive(1_000_000_000_000, &figures.concat());
    let mut random = Random::new(11);
    for rate in ["9.9GB/s", "9.8GB/s", "9.5GB/s", "8.5GB/s", "19.8GB/s", "19GB/s"] {
        let text =
            format!("rate = \"{rate}\"\nraw = \"64KiB\"\nkeep = \"5m\"\nplacement = \"adaptive\"");
        let design = design(&text, &dipping);
        let (array, offered) = (design.array.unwrap(), design.load.unwrap().offered_bytes_per_s);
        let drives = array.data_drives;
        let draws: Vec<f64> =
            (0..2_000).map(|_| waiting(drives, offered, 2.05e9, dips, &mut random)).collect();
        // The rest of the buffers is for two chunks of each drive and two more.
        let held = array.buffer_bytes - f64::from(2 * drives + 2) * 4_190_208.0;
        let more = draws.iter().filter(|&&waits| waits > held).count();
        let most = draws.iter().copied().fold(0.0, f64::max);
        assert!(
            more <= 4,
            "{rate} on {drives}: {more} of 2,000 are more than {held}, up to {most}"
        );
        assert!(held < 2.0 * most, "{rate} on {drives}: {held} for {most}");
    }
    // Those for parity dip as well, and what waits for them is in memory, too. Eight and two write as much as ten.
    let buffers = |rate: &str, parity: u32| {
        let text = format!("rate = \"{rate}\"\nraw = \"64KiB\"\nkeep = \"5m\"\nparity = {parity}");
        design(&format!("{text}\nplacement = \"adaptive\""), &dipping).array.unwrap()
    };
    let (with_parity, without) = (buffers("15.84GB/s", 2), buffers("19.8GB/s", 0));
    assert_eq!((with_parity.data_drives, without.data_drives), (8, 10));
    assert!((with_parity.buffer_bytes / without.buffer_bytes - 1.0).abs() < 1e-3);
    // Where those that don't dip keep up, nothing waits for dips: 16 hold half an hour of what six write.
    let text = "rate = \"10GB/s\"\nraw = \"64KiB\"\nkeep = \"1500s\"\nplacement = \"adaptive\"";
    let array = design(text, &dipping).array.unwrap();
    let chunks = f64::from(2 * array.data_drives + 2) * 4_190_208.0;
    assert!(array.data_drives >= 15 && (array.buffer_bytes - chunks).abs() < 1.0, "{array:?}");
}

/// Dips of a stripe that begin while the one that it waits for is covered, which lasts for this part of a period, if so many dip once in it
/// at places drawn at random.
fn beside(drives: u32, covered: f64, random: &mut Random) -> u32 {
    let mut places: Vec<f64> = (0..drives).map(|_| random.bits() as f64 / 2f64.powi(64)).collect();
    places.sort_by(f64::total_cmp);
    let (mut beside, mut until) = (0, 0.0);
    for place in places {
        if place < until { beside += 1 } else { until = place + covered }
    }
    beside
}

#[test]
fn dips_of_a_stripe_lie_beside_others_as_often_as_planned_in_all_but_a_few_arrays() {
    let mut random = Random::new(20);
    for share in [0.01, 0.03, 0.1] {
        let dips = Dips { together_s: 0.25, share };
        for (drives, covered) in [(2, 0.5), (9, 0.4), (9, 0.9), (29, 0.2), (29, 0.6), (80, 0.5)] {
            let draws: Vec<u32> =
                (0..2_000).map(|_| beside(drives, share * covered, &mut random)).collect();
            let planned = dips.beside(drives, covered);
            let fewer = draws.iter().filter(|&&seen| f64::from(seen) < planned).count();
            let fewest = draws.iter().copied().min().unwrap();
            let told = format!("{drives} of {share}, {covered} covered: {planned}, {fewest}");
            assert!(fewer <= 8, "{told}: {fewer} of 2,000 are fewer");
            assert!(planned > f64::from(fewest) - 2.0, "{told}");
        }
    }
}
