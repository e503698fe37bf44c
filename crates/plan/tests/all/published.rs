//! The white paper's column of drives for 100 Gb/s, its worn-out array and its days of traffic, by the planner's arithmetic
//! (REC-7 to REC-15, BittWare, "NVMe SSD write performance").

use longtake_plan as plan;
use plan::limits::{Case, Limit, Subject};
use plan::{Candidate, Draft, Requirement};
use profile::{Known, Profile, Source, SourceKind, Unit, library};
use recorder::Placement;

/// 12.5 GB/s as they are, in blocks that add less than a thousandth: the paper leaves headers of packets out (REC-12).
const LINE: &str = "rate = \"12.5GB/s\"\nraw = \"1MiB\"\n";

fn requirement(text: &str) -> Requirement {
    Draft::from_toml(&(LINE.to_owned() + text)).unwrap().check().unwrap()
}

fn drives(model: &str, requirement: &Requirement, placement: Placement) -> u32 {
    let candidate = Candidate::new(library::get(model).unwrap(), None);
    let subject = Subject::new(&candidate, requirement).unwrap();
    let case = Case::new(requirement, &subject);
    let needs = case.size(placement).needs;
    needs.iter().find(|need| need.limit == Limit::Rate).unwrap().drives.unwrap()
}

/// Model, published drives for 100 Gb/s; ours striped (the paper's RAID 0) and adaptive, and with a margin of 5 %, striped.
const COLUMN: [(&str, u32, u32, u32, u32); 5] = [
    // 12.5 / 1.6 = 7.81; 13.1 / 1.6 = 8.2
    ("samsung-970-evo-plus-1tb", 8, 8, 8, 9),
    // 12.5 / 2.2 = 5.68; 13.1 / 2.2 = 5.97
    ("samsung-970-pro-512gb", 6, 6, 6, 6),
    // 12.5 / 1.3 = 9.6; 12.5 / 1.7 = 7.36, dips in buffers; 13.1 / 1.3 = 10.1
    ("samsung-pm1725b-1.6tb", 10, 10, 8, 11),
    // 12.5 / 2.2 = 5.68
    ("intel-optane-900p-480gb", 6, 6, 6, 6),
    // 12.5 / 3.2 = 3.91, and 5 are published; 13.1 / 3.2 = 4.1. A margin that gives 5 here gives 9 in the first row: 8 x 1.6 and
    // 4 x 3.2 are the same 12.8, so that no one rule has both.
    ("intel-d7-p5510-3.84tb", 5, 4, 4, 5),
];

#[test]
fn drives_for_100_gigabits_are_those_published_but_where_no_one_rule_has_them() {
    let bare = requirement("keep = \"8h\"");
    let with_margin = requirement("keep = \"8h\"\nmargin_percent = 5.0");
    for (model, published, stripe, adaptive, margin) in COLUMN {
        assert_eq!(drives(model, &bare, Placement::Stripe), stripe, "{model}");
        assert_eq!(drives(model, &bare, Placement::Adaptive), adaptive, "{model}");
        assert_eq!(drives(model, &with_margin, Placement::Stripe), margin, "{model}");
        let differs = model == "intel-d7-p5510-3.84tb";
        assert_eq!(published != stripe, differs, "{model}");
    }
}

#[test]
fn full_frames_on_the_wire_of_a_100_gigabit_link_take_the_same_drives() {
    // Headers add 34 bytes to 1514, and the link's 24 are not recorded: 12.6 GB/s instead of 12.5.
    let text = "rate = \"100Gb/s\"\nframe = \"1518\"\nkeep = \"8h\"";
    let wire = Draft::from_toml(text).unwrap().check().unwrap();
    for (model, _, stripe, adaptive, _) in COLUMN {
        assert_eq!(drives(model, &wire, Placement::Stripe), stripe, "{model}");
        assert_eq!(drives(model, &wire, Placement::Adaptive), adaptive, "{model}");
    }
}

#[test]
fn a_hundred_gigabit_link_carries_at_most_12_5_gigabytes_of_packets() {
    let candidate = Candidate::new(library::get("ideal").unwrap(), None);
    for (frame, kept) in [("1518", 12.5e9 * 1514.0 / 1538.0), ("64", 12.5e9 * 60.0 / 84.0)] {
        let text = format!("rate = \"100Gb/s\"\nframe = \"{frame}\"\nkeep = \"1h\"");
        let requirement = Draft::from_toml(&text).unwrap().check().unwrap();
        let subject = Subject::new(&candidate, &requirement).unwrap();
        let load = Case::new(&requirement, &subject).load;
        assert!((load.packet_bytes_per_s - kept).abs() < 1.0, "{frame}");
        assert!(load.packet_bytes_per_s < 12.5e9);
    }
}

/// An enterprise drive of 30 TB that may be overwritten once a day for five years.
fn large() -> Candidate {
    let mut profile = Profile::new("large", "30 TB, 1 DWPD", "nvme", 30_000_000_000_000);
    for (name, value, unit) in [
        (profile::name::WRITE_NATIVE, 3.2e9, Unit::BytesPerSecond),
        (profile::name::ENDURANCE, 30e12 * OVERWRITES, Unit::Bytes),
    ] {
        let source =
            Source { kind: SourceKind::Published, origin: "an example".to_owned(), when: None };
        let known =
            Known { value, unit, range: None, confidence: None, note: String::new(), source };
        profile.figures.insert(name.to_owned(), known);
    }
    Candidate::new(profile, None)
}

/// One drive write a day for five years: "about 1,800 times" (REC-13).
const OVERWRITES: f64 = 365.0 * 5.0;

#[test]
fn twelve_drives_of_30_terabytes_hold_about_8_hours_and_wear_out_in_a_little_over_a_year_and_a_half()
 {
    assert_eq!(OVERWRITES, 1825.0);
    let candidate = large();
    let requirement = requirement("keep = \"8h\"");
    let subject = Subject::new(&candidate, &requirement).unwrap();
    let case = Case::new(&requirement, &subject);
    let array = plan::answer::array_of(&case, 12, Limit::Capacity);
    // What is not packets, and what a ring keeps free, take 2 % of it: blocks of 1 MiB leave some of a chunk unused.
    let hours = array.retention_s / 3600.0;
    assert!((7.8..8.0).contains(&hours), "{hours}");
    let years = array.life_years.unwrap();
    assert!((1.5..1.75).contains(&years), "{years}");
}

#[test]
fn seven_to_ten_days_fit_where_the_link_is_not_full_all_day() {
    let candidate = large();
    for (days, most_percent) in [(7.0, 4.8), (10.0, 3.4)] {
        let text = format!("keep = \"{days}d\"\nduty = \"{most_percent}%\"");
        let busy = requirement(&text);
        let subject = Subject::new(&candidate, &busy).unwrap();
        let case = Case::new(&busy, &subject);
        let needs = case.size(Placement::Adaptive).needs;
        let capacity = needs.iter().find(|need| need.limit == Limit::Capacity).unwrap();
        // Twelve hold 8 hours of the full link, which is 4.8 % of seven days and 3.3 % of ten; a 13th takes what isn't packets.
        assert!((12..=13).contains(&capacity.drives.unwrap()), "{capacity:?}");
    }
}
