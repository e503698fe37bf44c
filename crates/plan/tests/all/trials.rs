//! Trials of designs: they begin where drives are slowest and follow the load over the day, because both change what a number of drives
//! comes to.

use std::ops::ControlFlow;

use base::{Duration, Rate};
use longtake_plan as plan;
use plan::mission::{Mission, Span};
use plan::phases::Stage;
use plan::trial::{Budget, Enough, Question, Trial, TrialVerdict, trials};
use plan::{Candidate, Draft, Requirement};
use profile::{Known, Parameter, Profile, Source, SourceKind, library, name};
use ssd::{Slot, Spec, Start};

/// A drive of QLC with a sixteenth of the blocks: its cache shrinks from half full to three quarters, at 110 MB/s where it writes 175 past
/// the cache and 171 over stale data, as filling it twice tells.
fn shrinking() -> Profile {
    let mut profile = library::get("qlc-1tb").unwrap();
    profile.capacity_bytes = 64 << 30;
    let set = [
        ("flash", "pages_per_block", 96),
        ("cache", "static_bytes", 750_000_000),
        ("cache", "dynamic_bytes", 8_000_000_000_i64),
    ];
    for (section, name, value) in set {
        profile.simulated.set(section, name, Parameter::assumed(value));
    }
    for (name, value) in [
        (name::WRITE_FAST, 1.6e9),
        (name::WRITE_CACHE, 8.7e9),
        (name::WRITE_NATIVE, 175e6),
        (name::WRITE_SHRINK, 32e9),
        (name::WRITE_SUSTAINED, 108e6),
        (name::WRITE_OVERWRITE, 171e6),
        (name::WRITE_WORST_SECOND, 108e6),
        (name::ENDURANCE, 1e18),
    ] {
        let source =
            Source { kind: SourceKind::Measured, origin: "the test".to_owned(), when: None };
        let unit = name::unit(name).unwrap();
        let (range, confidence, note) = (None, None, String::new());
        let known = Known { value, unit, range, confidence, note, source };
        profile.figures.insert(name.to_owned(), known);
    }
    profile
}

fn required(text: &str) -> Requirement {
    Draft::from_toml(text).unwrap().check().unwrap()
}

/// The first trial of a requirement on such drives, and the phase that the plan finds slowest.
fn trial(text: &str, profile: &Profile) -> (Trial, Stage) {
    let requirement = required(text);
    let answer = plan::plan(&requirement, &[Candidate::new(profile.clone(), None)]);
    let design = &answer.designs[0];
    let spec = Spec::from_profile(profile).unwrap();
    let slowest = design.array.as_ref().unwrap().slowest;
    (trials(&requirement, design, &spec).remove(0), slowest)
}

fn seconds(s: f64) -> Duration {
    Duration::from_secs_f64(s)
}

/// The same drive, said to be so many times as fast as it is.
fn overstated(times: f64) -> Profile {
    let mut profile = shrinking();
    for name in
        [name::WRITE_NATIVE, name::WRITE_SUSTAINED, name::WRITE_OVERWRITE, name::WRITE_WORST_SECOND]
    {
        profile.figures.get_mut(name).unwrap().value *= times;
    }
    profile
}

#[test]
fn where_the_planned_drives_are_not_enough_a_trial_goes_on_to_the_number_that_is() {
    let run = |rate, times| {
        let ring = format!("rate = \"{rate}\"\nraw = \"1MiB\"\nkeep = \"1m\"");
        let (trial, _) = trial(&ring, &overstated(times));
        let finding = trial.run(&mut Budget::unlimited(), |_, _| ControlFlow::Continue(()));
        finding.unwrap()
    };
    let honest = run("300MB/s", 1.0);
    assert_eq!(honest.verdict(), TrialVerdict::Confirmed, "{honest}");
    assert!(honest.enough.is_none());

    let refuted = run("300MB/s", 1.6);
    assert!(refuted.proof.drives < honest.proof.drives);
    assert_eq!(refuted.verdict(), TrialVerdict::TooFew, "{refuted}");
    let Some(Enough::Drives(drives, outcome)) = &refuted.enough else { panic!("{refuted}") };
    assert_eq!(*drives, honest.proof.drives, "as many as an honest plan has: {refuted}");
    assert!(refuted.does(outcome));
    let told = format!("; {drives} drives are enough: no loss in ");
    assert!(refuted.to_string().contains(&told), "{refuted}");

    // It does not look for ever.
    let refuted = run("900MB/s", 8.0);
    let Some(Enough::MoreThan(most)) = refuted.enough else { panic!("{refuted}") };
    assert!(
        most > refuted.proof.drives
            && refuted.to_string().contains(&format!("; nor are {most} drives"))
    );
}

#[test]
fn whatever_buffers_a_plan_asks_for_a_trial_can_be_begun() {
    let mut profile = shrinking();
    let known = profile.figures[name::WRITE_NATIVE].clone();
    for (name, value) in [(name::DIP_LOST, 1e30), (name::DIP_SHARE, 2.0)] {
        let known = Known { value, unit: name::unit(name).unwrap(), ..known.clone() };
        profile.figures.insert(name.to_owned(), known);
    }
    let ring = "rate = \"1GB/s\"\nraw = \"1MiB\"\nkeep = \"1m\"";
    assert_eq!(trial(ring, &profile).0.mission.buffers, 1 << 24);
    // A stripe waits for ever, however many drives it has.
    let given = required(&format!("{ring}\nplacement = \"stripe\"\nmemory = \"1000000TB\""));
    let answer = plan::plan(&given, &[Candidate::new(profile, None)]);
    assert!(answer.designs[0].array.is_none() && !answer.designs[0].obstacles.is_empty());
}

#[test]
fn a_ring_that_is_slowest_while_it_fills_up_is_tried_from_empty_drives_on() {
    let profile = shrinking();
    let (trial, slowest) = trial("rate = \"300MB/s\"\nraw = \"1MiB\"\nkeep = \"1m\"", &profile);
    assert_eq!((trial.question, slowest), (Question::Rate, Stage::Shrunk));
    assert!(trial.mission.drives.iter().all(|slot| slot.start == Start::Empty));
    let finding = trial.run(&mut Budget::unlimited(), |_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(finding.verdict(), TrialVerdict::Confirmed, "{finding}");
    let loss = finding.proof.without.as_ref().unwrap().first_loss.as_ref().unwrap();
    assert!(loss.behind.iter().all(|drive| drive.passes < 0.8), "{loss}");
    // Full drives would have shown nothing of it.
    let mut full = trial.mission.clone();
    full.drives.truncate(full.drives.len() - 1);
    for slot in &mut full.drives {
        slot.start = Start::Full;
    }
    let less = full.run(|_| ControlFlow::Continue(())).unwrap();
    assert!(less.lossless(), "{:?}", less.first_loss);
}

#[test]
fn a_ring_that_is_slowest_over_stale_data_is_tried_on_overwritten_drives() {
    let profile = library::get("samsung-970-pro-512gb").unwrap();
    let (trial, slowest) = trial("rate = \"4GB/s\"\nraw = \"1MiB\"\nkeep = \"1m\"", &profile);
    assert_eq!(slowest, Stage::Overwrite);
    assert!(trial.mission.drives.iter().all(|slot| slot.start == Start::Overwritten));
}

#[test]
fn a_rate_alone_is_tried_striped_over_every_byte_of_as_many_drives_as_it_asks_for() {
    let profile = library::get("samsung-970-pro-512gb").unwrap();
    let text = "rate = \"4GB/s\"\nraw = \"1MiB\"";
    let (trial, slowest) = trial(text, &profile);
    assert_eq!((trial.question, slowest), (Question::Rate, Stage::Overwrite));
    let requirement = Draft::from_toml(text).unwrap().check().unwrap();
    let candidate = Candidate::new(profile.clone(), None);
    let answer = plan::plan(&requirement, &[candidate]);
    let design = &answer.designs[0];
    assert_eq!(trial.mission.drives.len(), design.stripe_rate_drives.unwrap() as usize);
    let spec = Spec::from_profile(&profile).unwrap();
    assert_eq!(trials(&requirement, design, &spec).len(), 1, "nothing has to be held");
    assert_eq!(trial.mission.placement, recorder::Placement::Stripe);
    // It goes round once at least.
    let bytes: f64 = trial.mission.drives.iter().map(|s| s.spec.capacity_bytes as f64).sum();
    assert!(trial.mission.duration.as_secs_f64() * trial.mission.mean_rate().0 >= bytes);
}

#[test]
fn trials_follow_the_load_over_the_day_from_its_busiest_hours_on() {
    let profile = shrinking();
    let third = "rate = \"100MB/s\"\nraw = \"1MiB\"\nkeep = \"48h\"\nduty = \"25%\"";
    let (quarter, _) = trial(third, &profile);
    let [busy, idle] = quarter.mission.load[..] else { panic!("{:?}", quarter.mission.load) };
    assert_eq!((busy.time, idle.time), (seconds(21_600.0), seconds(64_800.0)));
    assert!((busy.rate.0 / 100e6 - 1.0).abs() < 0.01 && idle.rate.0 == 0.0);
    // Twice over the drives, six hours of every day.
    let bytes: f64 = quarter.mission.drives.iter().map(|s| s.spec.capacity_bytes as f64).sum();
    let days = 2.1 * bytes / (busy.rate.0 * 21_600.0);
    let time = quarter.mission.duration.as_secs_f64() / 86_400.0;
    assert!((time - days).abs() <= 1.0, "{time} days for {days} days' data");
    // By hours, the fullest come first.
    let mut shares = ["0.1"; 24];
    (shares[23], shares[0]) = ("1.0", "0.5");
    let hours = format!(
        "rate = \"100MB/s\"\nraw = \"1MiB\"\nmission = \"2h\"\nduty = [{}]",
        shares.join(", ")
    );
    let (hours, _) = trial(&hours, &profile);
    let rates: Vec<f64> = hours.mission.load.iter().map(|span| span.rate.0).collect();
    assert_eq!(hours.mission.load.len(), 24);
    assert!((rates[0] / rates[1] - 2.0).abs() < 1e-9 && (rates[0] / rates[2] - 10.0).abs() < 1e-9);
    assert_eq!(hours.mission.duration, seconds(7200.0));
}

#[test]
fn rests_give_a_cache_back_which_the_same_load_in_one_piece_does_not() {
    let spec = Spec::from_profile(&shrinking()).unwrap();
    let mission = |load: Vec<Span>, time: f64| {
        let slot = Slot { spec: spec.clone(), start: Start::Empty, namespaces: vec![0], seed: 1 };
        Mission { load, ..Mission::new(vec![slot], Rate(350e6), seconds(time)) }
    };
    let lost = |mission: &Mission| {
        let outcome = mission.run(|_| ControlFlow::Continue(())).unwrap();
        (!outcome.lossless()).then(|| outcome.first_loss.unwrap().to_string())
    };
    let span = |s: f64, rate: f64| Span { time: seconds(s), rate: Rate(rate) };
    // Twice what it writes past its cache: ten seconds at a time fit in.
    let resting = mission(vec![span(10.0, 350e6), span(40.0, 0.0)], 400.0);
    assert_eq!(lost(&resting), None);
    assert!(lost(&mission(vec![span(80.0, 350e6)], 80.0)).is_some());
}
