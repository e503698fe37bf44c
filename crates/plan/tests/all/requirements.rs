//! Requirements as people write them: what is understood, what has a default, and what can't be, with the nearest that can.

use base::{Duration, Rate};
use longtake_plan as plan;
use plan::requirement::{Counts, DutyText, Frames, IMIX, Term};
use plan::{Draft, RequirementError};
use proptest::prelude::*;
use recorder::Placement;

fn draft(text: &str) -> Draft {
    Draft::from_toml(text).unwrap()
}

#[test]
fn what_is_not_said_has_the_usual_meaning() {
    let plain = draft("rate = \"100Gb/s\"\nkeep = \"8h\"").check().unwrap();
    assert_eq!((plain.rate, plain.counts), (Rate(12.5e9), Counts::Wire));
    assert_eq!(plain.frames, Frames::Ethernet(vec![(1518, 1)]));
    assert_eq!(plain.term, Term::Keep(Duration::from_secs(8 * 3600)));
    assert_eq!((plain.parity, plain.spare, plain.life_years), (0, 0, None));
    assert_eq!((plain.duty.mean(), plain.placement), (1.0, Placement::Adaptive));
    // Bytes are said of data, and blocks that are no packets have no wire.
    assert_eq!(draft("rate = \"1GB/s\"\nkeep = \"1h\"").check().unwrap().counts, Counts::Payload);
    let raw = draft("rate = \"8Gb/s\"\nraw = \"1MiB\"\nkeep = \"1h\"").check().unwrap();
    assert_eq!((raw.counts, raw.frames), (Counts::Payload, Frames::Raw { block_bytes: 1 << 20 }));
}

#[test]
fn a_rate_alone_is_a_ring_over_all_that_the_drives_hold_by_their_slowest_moments() {
    let alone = draft("rate = \"100Gb/s\"").check().unwrap();
    assert_eq!((alone.term, alone.placement), (Term::Whole, Placement::Stripe));
    assert!(alone.wraps() && alone.held_s() == 0.0 && alone.mean_share() == 1.0);
    let adaptive = draft("rate = \"100Gb/s\"\nplacement = \"adaptive\"").check().unwrap();
    assert_eq!(adaptive.placement, Placement::Adaptive);
}

#[test]
fn a_whole_requirement_is_read() {
    let all = draft(
        "rate = \"25Gb/s\"\ncounts = \"payload\"\nframe = \"64:7,570:4,1518:1\"\nmission = \"2h\"\nmissions_a_day = 0.5\n\
         parity = 2\nspare = 1\nlife_years = 3.0\nmargin_percent = 10.0\nreaders = \"2x500MB/s\"\nlanes = 48\n\
         pcie_generation = 4\nuplink = \"7GB/s,6GB/s\"\nmemory = \"4GiB\"\nmemory_bandwidth = \"200GB/s\"\nnic = \"4x16*2\"\n\
         placement = \"stripe\"\nduty = \"50%\"\ndrives = [\"ideal\"]\n[prices]\nideal = 100.0\n",
    );
    let read = all.check().unwrap();
    assert_eq!(read.frames, Frames::Ethernet(vec![(64, 7), (570, 4), (1518, 1)]));
    let length = Duration::from_secs(7200);
    assert_eq!(read.term, Term::Mission { length, per_thousand_days: 500 });
    // One of 2 h every other day, half of it at the full rate.
    assert!((read.mean_share() - 0.5 / 24.0).abs() < 1e-12);
    assert_eq!(read.readers.bytes_per_s(), 1e9);
    assert_eq!(read.host.drive_lanes(), Some(16));
    assert_eq!(read.host.uplink.unwrap().to_drives, Rate(6e9));
    assert_eq!((read.placement, read.life_years), (Placement::Stripe, Some(3.0)));
    let imix = draft("rate = \"1Gb/s\"\nframe = \"imix\"\nkeep = \"1h\"").check().unwrap();
    assert_eq!(imix.frames, Frames::Ethernet(IMIX.to_vec()));
}

#[test]
fn options_go_before_a_file_and_take_away_what_they_exclude() {
    let file = draft(
        "rate = \"10Gb/s\"\nkeep = \"8h\"\nframe = \"64\"\nspare = 2\n[prices]\nideal = 1.0\n",
    );
    let options = draft("mission = \"2h\"\nraw = \"1MiB\"\nspare = 0\n[prices]\nother = 2.0\n");
    let both = file.overridden(options);
    assert_eq!((both.keep.as_deref(), both.mission.as_deref()), (None, Some("2h")));
    assert_eq!((both.frame.as_deref(), both.raw.as_deref()), (None, Some("1MiB")));
    assert_eq!((both.rate.as_deref(), both.spare), (Some("10Gb/s"), Some(0)));
    assert_eq!(both.prices.len(), 2);
    let missions = draft("rate = \"10Gb/s\"\nmission = \"2h\"\nmissions_a_day = 3.0");
    let ring = missions.overridden(draft("keep = \"1h\""));
    assert_eq!((ring.mission.as_deref(), ring.missions_a_day), (None, None));
}

#[test]
fn what_can_not_be_is_told_with_its_field_the_reason_and_the_nearest_that_can() {
    let ring = "rate = \"10Gb/s\"\nkeep = \"8h\"\n";
    for (text, field, nearest) in [
        ("life_years = 0.0", "life", "0.01"),
        ("life_years = -5.0", "life", "0.01"),
        ("life_years = nan", "life", "0.01"),
        ("margin_percent = -1.0", "margin", "0"),
        ("parity = 3", "parity", "2"),
        ("spare = 1000", "spare", "64"),
        ("frame = \"40\"", "frame", "64"),
        ("frame = \"100000\"", "frame", "65535"),
        ("frame = \"64:0\"", "frame", "64:1"),
        ("frame = \"big\"", "frame", "imix"),
        ("raw = \"0\"", "raw", "1"),
        ("slice = 0", "slice", "128"),
        ("duty = \"0\"", "duty", "1%"),
        ("duty = \"120%\"", "duty", "100%"),
        ("duty = [1.0, 0.5]", "duty", "24"),
        ("readers = \"many\"", "readers", "2x500MB/s"),
        ("lanes = 0", "lanes", "4"),
        ("pcie_generation = 9", "pcie-generation", "6"),
        ("uplink = \"0GB/s\"", "uplink", "1GB/s"),
        ("nic = \"4x3\"", "nic", "4x16"),
        ("memory = \"much\"", "memory", "4GiB"),
        ("nic = \"x\"", "nic", "4x16"),
        ("placement = \"random\"", "placement", "adaptive"),
        ("counts = \"bits\"", "counts", "wire"),
        ("prices = { ideal = -1.0 }", "price", "ideal=0"),
    ] {
        let error = draft(&format!("{ring}{text}")).check().unwrap_err();
        let (found, near, problem) = match &error {
            RequirementError::Value { field, nearest, problem, .. } => {
                (field, &nearest[..], problem)
            }
            RequirementError::Unreadable { field, example, problem, .. } => {
                (field, *example, problem)
            }
            _ => panic!("{text}: {error}"),
        };
        assert_eq!(*found, field, "{error}");
        assert!(near.contains(nearest) && !problem.is_empty(), "{error}");
    }
    let missions = |a_day: &str| {
        draft(&format!("rate = \"10Gb/s\"\nmission = \"2h\"\nmissions_a_day = {a_day}"))
    };
    assert!(missions("12.0").check().is_ok(), "one after another");
    let error = missions("12.1").check().unwrap_err();
    let RequirementError::Value { field: "missions-a-day", nearest, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(nearest, "12");
}

#[test]
fn what_excludes_each_other_is_told_with_which_to_choose_when() {
    for (text, one, other) in [
        ("keep = \"8h\"\nmission = \"8h\"", "--keep", "--mission"),
        ("keep = \"8h\"\nmissions_a_day = 2.0", "--keep", "--missions-a-day"),
        ("keep = \"8h\"\nframe = \"64\"\nraw = \"1MiB\"", "--frame", "--raw"),
        ("keep = \"8h\"\ncounts = \"wire\"\nraw = \"1MiB\"", "--wire", "--raw"),
        ("keep = \"8h\"\nslice = 128\nraw = \"1MiB\"", "--slice", "--raw"),
    ] {
        let error = draft(&format!("rate = \"10Gb/s\"\n{text}")).check().unwrap_err();
        let RequirementError::Contradiction { one: a, other: b, .. } = error else {
            panic!("{text}: {error}")
        };
        assert_eq!((a, b), (one, other));
        assert!(error.to_string().contains("; "), "{error}");
    }
    for (text, field) in
        [("keep = \"8h\"", "rate"), ("rate = \"10Gb/s\"\nmissions_a_day = 2.0", "mission")]
    {
        let error = draft(text).check().unwrap_err();
        assert!(
            matches!(error, RequirementError::Missing { field: f, .. } if f == field),
            "{error}"
        );
    }
    let error = Draft::from_toml("rat = \"10Gb/s\"").unwrap_err();
    assert!(error.to_string().contains("rat"), "{error}");
}

#[test]
fn a_duty_is_one_share_or_one_for_each_hour() {
    assert_eq!("30%".parse(), Ok(DutyText::Share("30%".to_owned())));
    let hours: DutyText = vec!["0.5"; 24].join(",").parse().unwrap();
    assert_eq!(hours, DutyText::Hours(vec![0.5; 24]));
    assert!("1,x".parse::<DutyText>().unwrap_err().contains('x'));
    let with = |duty| Draft { duty: Some(duty), ..draft("rate = \"10Gb/s\"\nkeep = \"8h\"") };
    assert!((with(hours).check().unwrap().duty.mean() - 0.5).abs() < 1e-12);
    let share = with(DutyText::Share("30%".to_owned())).check().unwrap();
    assert!((share.duty.mean() - 0.3).abs() < 1e-12);
}

proptest! {
    #[test]
    fn what_is_written_reads_back_as_the_same(
        rate in prop::option::of("[0-9]{1,3}Gb/s"),
        duty in prop::option::of(prop_oneof![
            "[0-9]{1,2}%".prop_map(DutyText::Share),
            prop::collection::vec(0.0..1.0f64, 24).prop_map(DutyText::Hours),
        ]),
        spare in prop::option::of(0u32..10),
        life_years in prop::option::of(0.1..10.0f64),
        drives in prop::collection::vec("[a-z0-9.-]{1,10}", 0..3),
        prices in prop::collection::btree_map("[a-z0-9.-]{1,10}", 0.0..1e4f64, 0..3),
    ) {
        let draft = Draft { rate, duty, spare, life_years, drives, prices, ..Draft::default() };
        let text = draft.to_toml().unwrap();
        prop_assert_eq!(Draft::from_toml(&text).unwrap(), draft, "{}", text);
    }

    #[test]
    fn no_text_of_any_kind_is_more_than_refused(text in "\\PC{0,20}", which in 0..9usize) {
        let t = Some(text);
        let mut draft = Draft { rate: Some("1GB/s".into()), keep: Some("1h".into()), ..Draft::default() };
        match which {
            0 => draft.rate = t,
            1 => draft.frame = t,
            2 => draft.raw = t,
            3 => draft.keep = t,
            4 => draft.readers = t,
            5 => draft.uplink = t,
            6 => draft.nic = t,
            7 => draft.memory = t,
            _ => draft.duty = t.map(DutyText::Share),
        }
        if let Err(error) = draft.check() {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
