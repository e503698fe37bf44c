//! The planner's arithmetic: cases computed by hand, and what holds for every case.

use longtake_plan as plan;
use plan::answer::{Answer, Design, plan};
use plan::limits::{Case, Limit, Subject};
use plan::phases::Stage;
use plan::sensitivity::Change;
use plan::{Candidate, Draft, Requirement};
use profile::{Known, Profile, Source, SourceKind, Trust, Unit, library, name};
use proptest::prelude::*;
use recorder::Placement;

/// A drive with these figures, measured, on four lanes of PCIe 4.
pub(super) fn drive(capacity_bytes: u64, figures: &[(&str, f64)]) -> Candidate {
    let mut profile = Profile::new("drive", "A drive", "nvme", capacity_bytes);
    let link = [(name::LINK_GIGATRANSFERS, 16.0), (name::LINK_LANES, 4.0)];
    for (name, value) in figures.iter().copied().chain(link) {
        let source =
            Source { kind: SourceKind::Measured, origin: "the test".to_owned(), when: None };
        let unit = name::unit(name).unwrap();
        let known =
            Known { value, unit, range: None, confidence: None, note: String::new(), source };
        profile.figures.insert(name.to_owned(), known);
    }
    Candidate::new(profile, None)
}

fn required(text: &str) -> Requirement {
    Draft::from_toml(text).unwrap().check().unwrap()
}

pub(super) fn design(text: &str, candidate: &Candidate) -> Design {
    let Answer { mut designs } = plan(&required(text), std::slice::from_ref(candidate));
    designs.remove(0)
}

fn need(design: &Design, limit: Limit) -> Option<u32> {
    design.needs.iter().find(|need| need.limit == limit).unwrap().drives
}

pub(super) const EVEN: [(&str, f64); 3] =
    [(name::WRITE_NATIVE, 2e9), (name::WRITE_OVERWRITE, 2e9), (name::WRITE_WORST_SECOND, 2e9)];

#[test]
fn a_ring_writes_over_stale_data_as_fast_as_in_its_slowest_minute() {
    let drives = |more: &[(&str, f64)]| {
        let figures: Vec<_> = EVEN.iter().chain(more).copied().collect();
        let text = "rate = \"9.95GB/s\"\nraw = \"64KiB\"\nkeep = \"1s\"";
        design(text, &drive(4_000_000_000_000, &figures)).array.unwrap().data_drives
    };
    assert_eq!(drives(&[]), 5, "9.96 GB/s / 2 GB/s");
    assert_eq!(drives(&[(name::WRITE_SUSTAINED, 1.99e9)]), 6, "9.96 GB/s / 1.99 GB/s");
    // Of a drive with a cache, one that is much slower was in another phase, and dips are counted by themselves.
    assert_eq!(drives(&[(name::WRITE_SUSTAINED, 1.95e9)]), 6);
    let cache = [(name::WRITE_FAST, 4e9), (name::WRITE_CACHE, 1e9)];
    assert_eq!(drives(&[(name::WRITE_SUSTAINED, 1.95e9), cache[0], cache[1]]), 5);
    let dips = [(name::DIP_LOST, 2e8), (name::DIP_SHARE, 2.0)];
    assert_eq!(drives(&[(name::WRITE_SUSTAINED, 1.99e9), dips[0], dips[1]]), 5);
    // The minute is known no better than the rest.
    let mut slow =
        drive(4_000_000_000_000, &[&EVEN[..], &[(name::WRITE_SUSTAINED, 1.98e9)]].concat());
    slow.profile.figures.get_mut(name::WRITE_OVERWRITE).unwrap().range = Some((1.96e9, 2.04e9));
    // A quarter of a percent more than 9.87 GB/s is 9.89, and five such drives write 9.9.
    let text = "rate = \"9.86GB/s\"\nraw = \"64KiB\"\nkeep = \"1s\"";
    let confidence = design(text, &slow).confidence.unwrap();
    assert!((0.5..0.6).contains(&confidence.enough), "{confidence:?}");
    assert_eq!(confidence.range, (1.96e9 * 0.99, 2.04e9 * 0.99));
}

#[test]
fn more_drives_are_planned_where_as_many_as_other_limits_ask_for_take_more_memory() {
    let figures = [
        (name::DIP_LOST, 1.14e9),
        (name::DIP_SHARE, 19.9),
        (name::WRITE_CACHE, 1e9),
        (name::WRITE_FAST, 8e9),
        (name::WRITE_NATIVE, 3.6e9),
        (name::WRITE_OVERWRITE, 1.1e9),
    ];
    let candidate = drive(3_000_000_000_000, &figures);
    let of = |memory: &str| {
        let text = format!("rate = \"1.465GB/s\"\nraw = \"64KiB\"\nkeep = \"183m\"\n{memory}");
        design(&text, &candidate)
    };
    // In the cache, a dip costs a drive 11 GB, and all of six may dip at once. Of twelve, at least one doesn't, and keeps up alone.
    let without = of("");
    assert_eq!(without.array.as_ref().unwrap().data_drives, 6);
    assert!(without.array.unwrap().buffer_bytes > 11e9);
    let with = of("memory = \"8GB\"");
    let array = with.array.as_ref().unwrap();
    assert_eq!((array.data_drives, array.binds), (12, Limit::Memory), "{with:?}");
    assert!(array.buffer_bytes < 8e9);
    assert_eq!(need(&with, Limit::Memory), Some(12));
    // Where six fit, memory by itself asks for as many as fit in it.
    assert_eq!(need(&of("memory = \"12GB\""), Limit::Memory), Some(2));
    let none = of("memory = \"50MB\"");
    let told = none.obstacles.first().unwrap().to_string();
    assert!(told.contains("buffers of 6 drives need"), "{told}");
}

#[test]
fn a_reserve_that_asks_for_one_more_drive_is_told() {
    let rate_words = |rate: &str| {
        let figures = [&EVEN[..], &[(name::WRITE_SUSTAINED, 1.98e9)]].concat();
        let text = format!("rate = \"{rate}\"\nraw = \"64KiB\"\nkeep = \"1s\"");
        let design = design(&text, &drive(4_000_000_000_000, &figures));
        let rate = design.needs.iter().find(|need| need.limit == Limit::Rate).unwrap();
        rate.arithmetic.join("\n")
    };
    assert!(rate_words("9.86GB/s").contains("= 4.99: 5 drives"), "{}", rate_words("9.86GB/s"));
    let told = "= 5.00 (5 would have only 0.09 % in reserve): 6 drives";
    assert!(rate_words("9.88GB/s").contains(told), "{}", rate_words("9.88GB/s"));
    assert!(rate_words("9.92GB/s").contains("= 5.02: 6 drives"), "{}", rate_words("9.92GB/s"));
}

#[test]
fn a_plan_says_how_sure_it_is_by_the_ranges_of_its_figures() {
    // Six drives write 12 GB/s, and 10.01 come: 16.6 % less would do, which is 3.25 standard deviations where 10 % are 1.96.
    let mut published = drive(4_000_000_000_000, &EVEN);
    for known in published.profile.figures.values_mut() {
        known.source.kind = SourceKind::Published;
    }
    let of = |rate: &str, more: &str, candidate: &Candidate| {
        design(&format!("rate = \"{rate}\"\nraw = \"64KiB\"\nkeep = \"3s\"\n{more}"), candidate)
    };
    let sure = of("10GB/s", "", &published).confidence.expect("a measurer published it");
    assert!((0.9993..0.9996).contains(&sure.enough), "{sure:?}");
    let said = plan::explain::lines(&of("10GB/s", "", &published)).join("\n");
    assert!(said.contains("fast enough with more than 99.9 % (write.overwrite"), "{said}");
    assert_eq!((sure.range, sure.sure_drives), ((1.8e9, 2.2e9), Some(6)));
    // They write as much as comes: it is even whether they do where figures are as likely to be worse as better.
    let even = of("11.98GB/s", "", &published).confidence.unwrap();
    assert!((0.5..0.52).contains(&even.enough), "{even:?}");
    assert_eq!(even.sure_drives, Some(7), "12 GB/s / 1.76 GB/s");
    // With a margin of 10 % they are seven, and more than enough without it.
    let margin = of("11.98GB/s", "margin_percent = 10.0", &published);
    assert!(margin.confidence.unwrap().enough > 0.99);
    let said = plan::explain::lines(&of("11.98GB/s", "", &published)).join("\n");
    assert!(said.contains("6 drives for data are fast enough with 5"), "{said}");
    assert!(said.contains("lies between 1.80 GB/s and 2.20 GB/s), 7 drives with 99 %"), "{said}");
    // A measurement tells its own range; one that doesn't, and what was seen to hold, leave nothing to doubt or nothing to say.
    let measured = |range: Option<(f64, f64)>, held: bool| {
        let mut candidate = published.clone();
        for known in candidate.profile.figures.values_mut() {
            (known.source.kind, known.range) = (SourceKind::Measured, range);
        }
        if held {
            let of = |value, unit| {
                let known = candidate.profile.figures[name::WRITE_NATIVE].clone();
                Known { value, unit, ..known }
            };
            let more = [
                (name::WRITE_HELD, of(2.2e9, Unit::BytesPerSecond)),
                (name::WRITE_HELD_WAITING, of(1e6, Unit::Bytes)),
            ];
            candidate.profile.figures.extend(more.map(|(name, known)| (name.to_owned(), known)));
        }
        of("11.98GB/s", "", &candidate).confidence
    };
    assert_eq!(measured(None, false), None);
    assert_eq!(measured(Some((1.99e9, 2.01e9)), true), None);
    let close = measured(Some((1.99e9, 2.01e9)), false).unwrap();
    assert!(close.enough > even.enough, "{close:?} of {even:?}");
}

#[test]
fn each_limit_asks_for_what_plain_division_says_and_the_greatest_binds() {
    let mut figures = EVEN.to_vec();
    // 1 GB/s for 5 years is 157.68 PB.
    figures.push((name::ENDURANCE, 40e15));
    let candidate = drive(4_000_000_000_000, &figures);
    let text = "rate = \"1GB/s\"\nraw = \"64KiB\"\nkeep = \"3h\"";
    let at = design(&format!("{text}\nlife_years = 5.0"), &candidate);
    assert_eq!(need(&at, Limit::Rate), Some(1));
    // 10.8 TB and a little on 4 TB each.
    assert_eq!(need(&at, Limit::Capacity), Some(3));
    assert_eq!(need(&at, Limit::Endurance), Some(4));
    assert_eq!(need(&at, Limit::Link), Some(1));
    let array = at.array.unwrap();
    assert_eq!((array.data_drives, array.binds), (4, Limit::Endurance));
    let years = array.life_years.unwrap();
    assert!((5.0..5.1).contains(&years), "{years}");
    assert!((3.9..4.5).contains(&(array.retention_s / 3600.0)));
    // Four write 8 GB/s where 1.0 is needed.
    assert!((690.0..701.0).contains(&array.headroom_percent), "{}", array.headroom_percent);
    // No --life is given: capacity binds, and the answer still says how long the drives last.
    let free = design(text, &candidate);
    assert_eq!(need(&free, Limit::Endurance), None);
    let array = free.array.unwrap();
    assert_eq!((array.data_drives, array.binds), (3, Limit::Capacity));
    let years = array.life_years.unwrap();
    assert!((3.75..3.81).contains(&years), "{years}");
}

#[test]
fn slices_lower_what_is_written_and_taken_up_by_the_bytes_left_out() {
    let drive = drive(1_000_000_000_000, &EVEN);
    let text = "rate = \"12.5GB/s\"\nkeep = \"1h\"\nframe = \"1518\"\n";
    let load = |more: &str| design(&format!("{text}{more}"), &drive).load.expect("it has a load");
    let (whole, sliced) = (load(""), load("slice = 128\n"));
    assert_eq!(whole.packet_bytes_per_s, sliced.packet_bytes_per_s);
    for (whole, sliced) in [
        (whole.offered_bytes_per_s, sliced.offered_bytes_per_s),
        (whole.space_bytes_per_s, sliced.space_bytes_per_s),
    ] {
        assert!((sliced / whole - 160.0 / 1548.0).abs() < 0.002, "{sliced} of {whole}");
    }
}

#[test]
fn parity_and_spares_come_on_top_and_cost_like_the_others() {
    let mut candidate = drive(4_000_000_000_000, &EVEN);
    candidate.price = Some(500.0);
    let text = "rate = \"5GB/s\"\nraw = \"1MiB\"\nkeep = \"10m\"\nparity = 1\nspare = 2";
    let array = design(text, &candidate).array.unwrap();
    assert_eq!((array.data_drives, array.drives, array.take.members), (3, 6, 4));
    assert_eq!(array.cost, Some(3000.0));
}

#[test]
fn a_mission_that_fits_in_the_caches_is_as_fast_as_they_are() {
    let mut figures = EVEN.to_vec();
    figures[0].1 = 1e9;
    figures[1].1 = 1e9;
    figures[2].1 = 1e9;
    figures.extend([(name::WRITE_FAST, 3e9), (name::WRITE_CACHE, 100e9)]);
    let candidate = drive(1_000_000_000_000, &figures);
    let short = design("rate = \"8.99GB/s\"\nraw = \"64KiB\"\nmission = \"60s\"", &candidate);
    let array = short.array.unwrap();
    assert_eq!((array.data_drives, array.slowest), (6, Stage::Cache), "540 GB in caches of 100");
    let long = design("rate = \"9.1GB/s\"\nraw = \"64KiB\"\nmission = \"10m\"", &candidate);
    let array = long.array.unwrap();
    assert_eq!((array.data_drives, array.slowest), (10, Stage::Native));
    // A ring ends up overwriting, however short it keeps.
    let ring = design("rate = \"8.99GB/s\"\nraw = \"64KiB\"\nkeep = \"60s\"", &candidate);
    assert_eq!(ring.array.unwrap().slowest, Stage::Overwrite);
}

#[test]
fn what_drives_are_short_of_until_a_mission_ends_may_wait_where_chunks_do() {
    let candidate = drive(4_000_000_000_000, &EVEN);
    for placement in ["adaptive", "stripe"] {
        let of = |rate: &str, more: &str| {
            let text = format!("rate = \"{rate}\"\nraw = \"64KiB\"\nplacement = \"{placement}\"");
            let design = design(&format!("{text}\n{more}"), &candidate);
            let said = design.needs[0].arithmetic.concat().contains("wait in memory")
                && design.doubts.concat().contains("slower than data comes");
            let array = design.array.unwrap();
            (array.data_drives, array.buffer_bytes, said)
        };
        // Of 10 GB/s and their headers, five drives write 10. Two chunks of 4 MiB on each and two more are 50 MB.
        let (drives, ring_bytes, said) = of("10GB/s", "keep = \"3s\"");
        assert_eq!((drives, said), (6, false), "{placement}: a ring falls short without end");
        let (drives, bytes, said) = of("10GB/s", "mission = \"3s\"");
        assert_eq!((drives, said), (5, true), "{placement}");
        let short = bytes - ring_bytes * 12.0 / 14.0;
        assert!((1e6..50e6).contains(&short), "{placement}: buffers hold both, {short}");
        let (drives, bytes, said) = of("10.1GB/s", "mission = \"3s\"");
        assert_eq!(
            (drives, bytes, said),
            (6, ring_bytes, false),
            "{placement}: 0.3 GB are too much"
        );
        let memory = "mission = \"3s\"\nmemory = \"1GiB\"";
        assert_eq!(of("10.1GB/s", memory).0, 5, "{placement}: but for who has the memory");
    }
}

#[test]
fn the_rate_of_a_shrunken_cache_is_the_one_that_was_measured() {
    let mut figures = EVEN.to_vec();
    figures.extend([(name::WRITE_SHRINK, 800e9), (name::WRITE_SHRUNK, 0.5e9)]);
    figures.retain(|(name, _)| *name != name::WRITE_WORST_SECOND);
    let candidate = drive(1_000_000_000_000, &figures);
    let text = "rate = \"1.9GB/s\"\nraw = \"64KiB\"\nmission = ";
    // 1.9 GB/s for 15 minutes are 1.71 TB: on two drives, 855 GB each, of which the last are taken at half a gigabyte a second.
    let full = design(&format!("{text}\"15m\""), &candidate).array.unwrap();
    assert_eq!((full.data_drives, full.slowest), (3, Stage::Native));
    let short = design(&format!("{text}\"6m\""), &candidate).array.unwrap();
    assert_eq!((short.data_drives, short.slowest), (1, Stage::Native));
}

#[test]
fn what_was_never_written_stays_unknown_and_ranks_behind_what_was() {
    let seen = drive(1_000_000_000_000, &EVEN);
    let mut half = seen.clone();
    half.profile.name = "half".to_owned();
    let source = Source { kind: SourceKind::Measured, origin: "the test".to_owned(), when: None };
    half.profile.fill = Some(profile::FillCurve { steps: vec![(500_000_000_000, 2e9)], source });
    let text = "rate = \"1.9GB/s\"\nraw = \"64KiB\"\nmission = ";
    let both = |mission: &str| {
        let required = required(&format!("{text}\"{mission}\""));
        plan(&required, &[half.clone(), seen.clone()]).designs
    };
    // 228 GB lie within what was measured, 855 GB do not.
    let short = both("2m");
    assert_eq!(short.iter().map(|one| one.drive.as_str()).collect::<Vec<_>>(), ["half", "drive"]);
    assert!(short.iter().all(|one| !one.relies_on_unseen));
    let long = both("7m30s");
    assert_eq!(long.iter().map(|one| one.drive.as_str()).collect::<Vec<_>>(), ["drive", "half"]);
    let [whole, half] = long.as_slice() else { panic!("two drives were planned with") };
    assert_eq!((whole.evidence, half.evidence), (Some(Trust::Measured), Some(Trust::Assumed)));
    assert!(
        half.relies_on_unseen
            && half
                .doubts
                .iter()
                .any(|doubt| { doubt.contains("nothing was measured behind the first 500 GB") }),
        "{:?}",
        half.doubts
    );
}

#[test]
fn memory_carries_a_mission_over_the_end_of_the_caches() {
    let mut figures = EVEN.to_vec();
    (figures[0].1, figures[1].1, figures[2].1) = (1e9, 1e9, 1e9);
    figures.extend([(name::WRITE_FAST, 3e9), (name::WRITE_CACHE, 100e9)]);
    let candidate = drive(1_000_000_000_000, &figures);
    // On 5 drives the caches hold 500 of 540 GB, and 8.99 GB/s come where 5 are written: 40 GB come in 4.4 s, of which 22 are
    // written.
    let text = "rate = \"8.99GB/s\"\nraw = \"64KiB\"\nmission = \"60s\"\nmemory = \"20GB\"";
    let array = design(text, &candidate).array.unwrap();
    assert_eq!(array.data_drives, 5);
    assert!((17e9..19e9).contains(&array.buffer_bytes), "{}", array.buffer_bytes);
    let less = design(&text.replace("20GB", "15GB"), &candidate).array.unwrap();
    assert_eq!(less.data_drives, 6);
}

#[test]
fn dips_cost_drives_when_striped_and_memory_when_adaptive() {
    let dipping = [
        (name::WRITE_NATIVE, 2e9),
        (name::WRITE_OVERWRITE, 2e9),
        (name::WRITE_WORST_SECOND, 1e9),
        (name::DIP_LENGTH, 0.5e9),
    ];
    let candidate = drive(4_000_000_000_000, &dipping);
    let text = "rate = \"9.9GB/s\"\nraw = \"64KiB\"\nkeep = \"5m\"";
    let at = design(text, &candidate);
    assert_eq!((at.stripe_rate_drives, at.adaptive_rate_drives), (Some(10), Some(5)));
    // 9.9 GB/s come where five write 5 for half a second, and 12 chunks of 4.19 MB are on their way.
    let array = at.array.unwrap();
    let by_hand = (at.load.unwrap().offered_bytes_per_s - 5e9) * 0.5 + 12.0 * 4_190_208.0;
    assert!((array.buffer_bytes / by_hand - 1.0).abs() < 1e-9, "{}", array.buffer_bytes);
    // Half of that memory: more drives until dips fit.
    let tight = design(&format!("{text}\nmemory = \"1.25GB\""), &candidate).array.unwrap();
    assert_eq!((tight.data_drives, tight.binds), (8, Limit::Memory));
    let striped = design(&format!("{text}\nplacement = \"stripe\""), &candidate);
    assert_eq!(striped.array.unwrap().data_drives, 10);
    let adaptive = striped.savings.iter().find(|saving| saving.change == Change::Adaptive).unwrap();
    assert_eq!((adaptive.drives_before, adaptive.drives_after), (Some(10), 5));
    // Where a measurement found no dips, the slowest second is none that all wait for.
    let counted = drive(4_000_000_000_000, &[&dipping[..], &[(name::DIP_COUNT, 0.0)]].concat());
    let striped = design(&format!("{text}\nplacement = \"stripe\""), &counted).array.unwrap();
    assert_eq!(striped.data_drives, 5);
    assert!((striped.buffer_bytes / by_hand - 1.0).abs() < 1e-9, "{}", striped.buffer_bytes);
}

#[test]
fn dips_that_were_measured_add_up_in_a_stripe_and_are_bridged_by_buffers() {
    let mut figures = vec![
        (name::WRITE_NATIVE, 2e9),
        (name::WRITE_OVERWRITE, 2e9),
        (name::DIP_LOST, 0.25e9),
        (name::DIP_SHARE, 2.0),
    ];
    let text = "rate = \"9.9GB/s\"\nraw = \"64KiB\"\nkeep = \"5m\"";
    let at = design(text, &drive(4_000_000_000_000, &figures));
    let offered = at.load.unwrap().offered_bytes_per_s;
    // A stripe of n writes n x 2.04 GB/s between dips, and stands still for 2 % of n times that: 5 x 2.04 / 1.1 = 9.27, 6 x 2.04 / 1.12 =
    // 10.9 GB/s.
    assert_eq!((at.stripe_rate_drives, at.adaptive_rate_drives), (Some(6), Some(5)));
    // A drive that takes a tenth of its time to make room does so while it waits, up to five others of 2 %: 5 x 2.04 / 1.02 = 10 GB/s.
    let with_room = |native: f64| {
        let figures = [&[(name::WRITE_NATIVE, native)], &figures[1..]].concat();
        design(text, &drive(4_000_000_000_000, &figures)).stripe_rate_drives
    };
    assert_eq!((with_room(2.2e9), with_room(2.1e9), with_room(1.9e9)), (Some(5), Some(6), Some(6)));
    // Five may all dip at once for a quarter of a second.
    let of_dips = at.array.unwrap().buffer_bytes - 12.0 * 4_190_208.0;
    assert!((of_dips / (0.25 * offered) - 1.0).abs() < 1e-9, "{of_dips}");
    // 2.3 x the root of 6 dips in a row, of a stripe that stands still meanwhile.
    let striped =
        design(&format!("{text}\nplacement = \"stripe\""), &drive(4_000_000_000_000, &figures));
    let of_dips = striped.array.unwrap().buffer_bytes - 14.0 * 4_190_208.0;
    assert!((of_dips / (0.25 * 2.3 * 6f64.sqrt() * offered) - 1.0).abs() < 1e-9, "{of_dips}");
    // Of many drives not all dip at once, so more of them take less memory.
    let tight =
        design(&format!("{text}\nmemory = \"1.25GB\""), &drive(4_000_000_000_000, &figures));
    let array = tight.array.unwrap();
    assert_eq!((array.data_drives, array.binds), (9, Limit::Memory));
    // More than 6 of 9 dip at once for 4 parts in 10^11 of the time, more than 5 for 5 in 10^9: three go on writing.
    let of_dips = array.buffer_bytes - 20.0 * 4_190_208.0;
    assert!((of_dips / (0.25 * (offered - 3.0 * 2e9)) - 1.0).abs() < 1e-9, "{of_dips}");
    // Two more drives for parity are waited for as well: six write 6 x 2.04 / 1.16 = 10.6 GB/s, and would write 10.9.
    let with_parity = format!("{text}\nplacement = \"stripe\"\nparity = 2\nrate = \"10.7GB/s\"");
    let with_parity = with_parity.replacen("rate = \"9.9GB/s\"\n", "", 1);
    let striped = design(&with_parity, &drive(4_000_000_000_000, &figures)).array.unwrap();
    assert_eq!((striped.data_drives, striped.parity_drives), (7, 2));
    // Each drive that is added is waited for as well: no number of them writes more than the level over the share.
    figures[3].1 = 20.0;
    let striped =
        design(&format!("{text}\nplacement = \"stripe\""), &drive(4_000_000_000_000, &figures));
    assert!(striped.array.is_some(), "2.4 / 0.2 = 12 GB/s at most");
    figures[3].1 = 30.0;
    let striped =
        design(&format!("{text}\nplacement = \"stripe\""), &drive(4_000_000_000_000, &figures));
    assert_eq!(striped.obstacles, [plan::limits::Obstacle::TooMany]);
}

#[test]
fn readers_take_their_share_of_the_drives_time() {
    let mut figures = EVEN.to_vec();
    figures.push((name::READ_SEQUENTIAL, 4e9));
    let candidate = drive(4_000_000_000_000, &figures);
    let text = "rate = \"7.9GB/s\"\nraw = \"64KiB\"\nkeep = \"5m\"";
    assert_eq!(need(&design(text, &candidate), Limit::Rate), Some(4));
    // 4 GB/s of reads take one drive's time: N x 2 x (1 - 1 / N) = 2 N - 2.
    let read = design(&format!("{text}\nreaders = \"2x2GB/s\""), &candidate);
    assert_eq!(need(&read, Limit::Rate), Some(5));
}

#[test]
fn lanes_that_have_to_be_shared_bind_though_drives_are_fast() {
    let candidate = drive(
        4_000_000_000_000,
        &[(name::WRITE_NATIVE, 6e9), (name::WRITE_OVERWRITE, 6e9), (name::WRITE_WORST_SECOND, 6e9)],
    );
    let text = "rate = \"20GB/s\"\nraw = \"64KiB\"\nkeep = \"1m\"";
    assert_eq!(design(text, &candidate).array.unwrap().data_drives, 4);
    // Two lanes of PCIe 3 carry 1.8 GB/s: 8 lanes in all 7.1.
    let old = design(&format!("{text}\nlanes = 8\npcie_generation = 3"), &candidate);
    assert!(old.array.is_none());
    assert!(old.obstacles[0].to_string().contains("lanes"), "{:?}", old.obstacles);
    let changes: Vec<Change> = old.savings.iter().map(|saving| saving.change).collect();
    assert!(changes.contains(&Change::Rate) && changes.contains(&Change::Lanes), "{changes:?}");
    // Enough of them: PCIe 3 x4 carries 3.55 GB/s, so that six drives are needed.
    let wide = design(&format!("{text}\nlanes = 24\npcie_generation = 3"), &candidate);
    let array = wide.array.unwrap();
    assert_eq!((array.data_drives, array.binds), (6, Limit::Link));
}

#[test]
fn an_uplink_must_carry_the_stream_and_its_parity() {
    let candidate = drive(4_000_000_000_000, &EVEN);
    let text = "rate = \"6GB/s\"\nraw = \"64KiB\"\nkeep = \"1m\"";
    let narrow = design(&format!("{text}\nuplink = \"3.5GB/s\""), &candidate);
    assert!(narrow.array.is_none() && narrow.obstacles[0].to_string().contains("uplink"));
    let rate = narrow.savings.iter().find(|saving| saving.change == Change::Rate).unwrap();
    // 3.5 of 6.0 and headers: 42 % less.
    assert!((41.0..43.0).contains(&rate.percent.unwrap()), "{rate:?}");
    // With one of parity, 6 x (N + 1) / N has to fit in 7.
    let parity = design(&format!("{text}\nuplink = \"7GB/s\"\nparity = 1"), &candidate);
    assert_eq!(need(&parity, Limit::Uplink), Some(7));
}

#[test]
fn a_slower_host_memory_than_the_copy_takes_is_refused() {
    let candidate = drive(4_000_000_000_000, &EVEN);
    let text = "rate = \"10GB/s\"\nraw = \"64KiB\"\nkeep = \"1m\"\nmemory_bandwidth = ";
    let slow = design(&format!("{text}\"29GB/s\""), &candidate);
    assert!(slow.obstacles[0].to_string().contains("copying each packet once moves 30.0 GB/s"));
    let between = design(&format!("{text}\"40GB/s\""), &candidate);
    assert!(between.array.is_some() && between.doubts.iter().any(|d| d.contains("memory bus")));
}

#[test]
fn a_datasheets_peak_is_told_and_not_used() {
    let candidate = Candidate::new(library::get("samsung-970-evo-plus-1tb").unwrap(), None);
    let at = design("rate = \"12.5GB/s\"\nraw = \"1MiB\"\nkeep = \"1m\"", &candidate);
    // 12.5 / 3.3, against 12.5 / 1.6.
    assert_eq!((at.datasheet_drives, need(&at, Limit::Rate)), (Some(4), Some(8)));
    assert_eq!(at.evidence, Some(Trust::Published));
    // Where nothing else is known, it is used and not trusted.
    let mut profile = candidate.profile;
    profile.figures.retain(|name, _| !name.starts_with("write.") && name != "datasheet.write");
    profile.simulated = profile::Simulated::default();
    let mut known =
        library::get("samsung-970-evo-plus-1tb").unwrap().figures["datasheet.write"].clone();
    known.note.clear();
    profile.figures.insert(name::WRITE_FAST.to_owned(), known);
    let peak = design(
        "rate = \"12.5GB/s\"\nraw = \"1MiB\"\nkeep = \"1m\"",
        &Candidate::new(profile, None),
    );
    assert_eq!((need(&peak, Limit::Rate), peak.evidence), (Some(4), Some(Trust::Datasheet)));
    assert!(peak.doubts.iter().any(|d| d.contains("REC-1") && d.contains("longtake measure fill")));
}

#[test]
fn every_drive_of_the_library_is_planned_with_or_says_why_not() {
    let candidates: Vec<Candidate> =
        library::names().map(|name| Candidate::new(library::get(name).unwrap(), None)).collect();
    let answer = plan(&required("rate = \"10Gb/s\"\nkeep = \"1h\""), &candidates);
    assert_eq!(answer.designs.len(), candidates.len());
    for design in &answer.designs {
        let array = design.array.as_ref().unwrap_or_else(|| panic!("{design:?}"));
        assert!(array.headroom_percent >= 0.0 && array.retention_s >= 3600.0, "{design:?}");
        assert!(!design.figures.is_empty());
    }
    let counts: Vec<u32> =
        answer.designs.iter().map(|d| d.array.as_ref().unwrap().drives).collect();
    assert!(counts.is_sorted());
}

fn any_drive() -> impl Strategy<Value = Candidate> {
    let rates = (0.2..4.0f64, 0.3..1.0f64, 0.3..1.0f64, 1.0..3.0f64);
    let sizes = (1.0..200.0f64, 0.2..8.0f64);
    let dips = (0.1..5.0f64, prop::option::of((0.01..2.0f64, 0.1..20.0f64)));
    (rates, sizes, dips).prop_map(
        |((native, overwrite, worst, fast), (cache, capacity), (dip_s, cost))| {
            let over = native * overwrite * 1e9;
            let (lost_s, share) = cost.unwrap_or((0.0, 0.0));
            drive(
                (capacity * 1e12) as u64,
                &[
                    (name::DIP_LOST, lost_s * 1e9),
                    (name::DIP_SHARE, share),
                    (name::WRITE_NATIVE, native * 1e9),
                    (name::WRITE_OVERWRITE, over),
                    (name::WRITE_WORST_SECOND, over * worst),
                    (name::WRITE_FAST, native * fast * 1e9),
                    (name::WRITE_CACHE, cache * 1e9),
                    (name::DIP_LENGTH, dip_s * 1e9),
                    (name::ENDURANCE, capacity * 1e15),
                    (name::READ_SEQUENTIAL, 5e9),
                ],
            )
        },
    )
}

fn any_requirement() -> impl Strategy<Value = String> {
    (
        0.1..60.0f64,
        prop_oneof![
            (1u32..600).prop_map(|minutes| format!("keep = \"{minutes}m\"")),
            (1u32..600).prop_map(|minutes| format!("mission = \"{minutes}m\"")),
            Just("placement = \"adaptive\"".to_owned()),
        ],
        prop_oneof![Just(""), Just("life_years = 5.0\n")],
        prop_oneof![Just(""), Just("readers = \"2x100MB/s\"\n"), Just("parity = 1\n")],
        prop_oneof![Just(""), Just("memory = \"8GB\"\n")],
    )
        .prop_map(|(rate, term, life, more, memory)| {
            format!("rate = \"{rate:.3}GB/s\"\nraw = \"64KiB\"\n{life}{more}{memory}{term}")
        })
}

fn data(requirement: &Requirement, candidate: &Candidate, placement: Placement) -> Option<u32> {
    let subject = Subject::new(candidate, requirement).unwrap();
    let sizing = Case::new(requirement, &subject).size(placement);
    sizing.answer.map(|(drives, _)| drives)
}

proptest! {
    #[test]
    fn more_of_anything_never_takes_fewer_drives(
        candidate in any_drive(),
        text in any_requirement(),
        more in 1.0..3.0f64,
        margin in 0.0..50.0f64,
    ) {
        let requirement = required(&text);
        let before = data(&requirement, &candidate, Placement::Adaptive);
        let mut faster = requirement.clone();
        faster.rate.0 *= more;
        let mut longer = requirement.clone();
        longer.term = match requirement.term {
            plan::requirement::Term::Keep(time) => {
                plan::requirement::Term::Keep(base::Duration::from_secs_f64(time.as_secs_f64() * more))
            }
            plan::requirement::Term::Mission { length, per_thousand_days } => {
                let length = base::Duration::from_secs_f64(length.as_secs_f64() * more);
                plan::requirement::Term::Mission { length, per_thousand_days }
            }
            plan::requirement::Term::Whole => {
                plan::requirement::Term::Keep(base::Duration::from_secs_f64(60.0 * more))
            }
        };
        let mut safer = requirement.clone();
        safer.margin_percent = margin;
        for harder in [faster, longer, safer] {
            match (before, data(&harder, &candidate, Placement::Adaptive)) {
                (Some(before), Some(after)) => prop_assert!(after >= before, "{before} {after}"),
                (None, Some(after)) => prop_assert!(false, "{after} drives will do for more"),
                (_, None) => {}
            }
        }
    }

    #[test]
    fn adaptive_placement_never_takes_more_drives_to_write_fast_enough(
        candidate in any_drive(),
        text in any_requirement(),
    ) {
        let requirement = required(&text);
        let subject = Subject::new(&candidate, &requirement).unwrap();
        let case = Case::new(&requirement, &subject);
        let of = |placement| {
            let needs = case.size(placement).needs;
            needs.iter().find(|need| need.limit == Limit::Rate).unwrap().drives
        };
        if let (Some(stripe), Some(adaptive)) = (of(Placement::Stripe), of(Placement::Adaptive)) {
            prop_assert!(adaptive <= stripe, "{adaptive} {stripe}");
        }
    }

    #[test]
    fn the_limit_that_binds_asks_for_most_and_what_it_asks_for_will_do(
        candidate in any_drive(),
        text in any_requirement(),
    ) {
        let requirement = required(&text);
        let subject = Subject::new(&candidate, &requirement).unwrap();
        let case = Case::new(&requirement, &subject);
        let sizing = case.size(Placement::Adaptive);
        let Some((drives, binds)) = sizing.answer else { return Ok(()) };
        let most = sizing.needs.iter().filter_map(|need| need.drives).max().unwrap();
        prop_assert_eq!(drives, most);
        let asks = sizing.needs.iter().find(|need| need.limit == binds).unwrap().drives;
        prop_assert_eq!(asks, Some(most));
        prop_assert!(case.sustains(drives, Placement::Adaptive));
        let array = plan::answer::array_of(&case, drives, binds);
        prop_assert!(array.retention_s >= requirement.held_s() * 0.999_999, "{}", array.retention_s);
        let life = requirement.life_years.unwrap_or(0.0);
        prop_assert!(array.life_years.unwrap() >= life * 0.999_999);
        let memory = requirement.host.memory.map_or(f64::INFINITY, |memory| memory.0 as f64);
        prop_assert!(array.buffer_bytes <= memory);
    }

    #[test]
    fn a_saving_saves_and_a_little_less_of_it_does_not(
        candidate in any_drive(),
        text in any_requirement(),
    ) {
        let requirement = required(&text);
        let subject = Subject::new(&candidate, &requirement).unwrap();
        let before = data(&requirement, &candidate, Placement::Adaptive);
        for saving in plan::sensitivity::savings(&requirement, &candidate, Some(&subject)) {
            if saving.change != Change::Rate {
                continue;
            }
            let at = |percent: f64| {
                let mut slower = requirement.clone();
                slower.rate.0 *= 1.0 - percent / 100.0;
                Case::new(&slower, &subject).size(Placement::Adaptive).answer.map(|(data, _)| data)
            };
            let percent = saving.percent.unwrap();
            prop_assert!(before.is_none_or(|before| at(percent).is_some_and(|now| now < before)));
            if percent > 0.25 {
                prop_assert_eq!(at(percent - 0.2), before);
            }
        }
    }
}

#[test]
fn parameters_that_no_drive_can_have_are_not_planned_with() {
    let text = include_str!("../../../profile/library/samsung-970-evo-plus-1tb.toml");
    let measured_away = |text: &str| {
        let lines = text.lines().filter(|line| !line.contains("\"write.native\""));
        lines.collect::<Vec<_>>().join("\n")
    };
    let candidate = |text: &str| Candidate::new(Profile::from_toml(text).unwrap(), None);
    let required = "rate = \"5Gb/s\"\nkeep = \"1d\"";
    // Without a figure, the simulated drive tells how fast it writes past its cache.
    let of_model = measured_away(text);
    assert!(design(required, &candidate(&of_model)).array.is_some());
    let impossible = of_model.replace("lanes = { is = 4,", "lanes = { is = 0,");
    assert_ne!(impossible, of_model);
    let design = design(required, &candidate(&impossible));
    assert!(!format!("{design:?}").contains("NaN"), "{design:#?}");
}
