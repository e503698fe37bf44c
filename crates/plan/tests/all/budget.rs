//! Trials within a budget of work: they cost no more, end where more would show nothing new, and never claim what they didn't record.

use std::ops::ControlFlow;

use base::{Duration, Rate};
use longtake_plan as plan;
use plan::mission::Mission;
use plan::trial::{
    Budget, Extent, Finding, Proofs, Question, Trial, TrialVerdict, Unproved, of_answer, trials,
};
use plan::{Candidate, Draft, Requirement};
use profile::{Parameter, Profile, Value, library};
use recorder::WhenFull;
use ssd::{Slot, Spec, Start};

fn required(text: &str) -> Requirement {
    Draft::from_toml(text).unwrap().check().unwrap()
}

/// A drive of the library with so many times fewer pages in every block.
fn shrunk(name: &str, by: i64) -> Profile {
    let mut profile = library::get(name).unwrap();
    profile.capacity_bytes /= by as u64;
    for (section, name) in
        [("flash", "pages_per_block"), ("cache", "static_bytes"), ("cache", "dynamic_bytes")]
    {
        let Some(parameter) = profile.simulated.get(section, name) else { continue };
        let Value::Integer(value) = parameter.value else { panic!("{section}.{name}") };
        profile.simulated.set(section, name, Parameter::assumed(value / by));
    }
    profile
}

/// The trial of a ring's rate.
fn of_rate(text: &str, profile: &Profile) -> Trial {
    let requirement = required(text);
    let answer = plan::plan(&requirement, &[Candidate::new(profile.clone(), None)]);
    let spec = Spec::from_profile(profile).unwrap();
    let trial = trials(&requirement, &answer.designs[0], &spec).remove(0);
    assert_eq!(trial.question, Question::Rate);
    trial
}

fn run(trial: &Trial, mut budget: Budget) -> Finding {
    trial.run(&mut budget, |_, _| ControlFlow::Continue(())).unwrap()
}

const PLENTY: u64 = 100_000_000_000;

#[test]
fn a_trial_that_ends_in_the_steady_state_comes_out_as_the_whole_one_does() {
    for (name, by, rate) in [
        ("samsung-970-evo-plus-1tb", 4, "3GB/s"),
        ("samsung-970-pro-512gb", 4, "4GB/s"),
        ("samsung-pm1725b-1.6tb", 16, "2.5GB/s"),
        ("micron-7500-pro-15.36tb", 16, "6GB/s"),
    ] {
        let trial = of_rate(&format!("rate = \"{rate}\"\nraw = \"1MiB\""), &shrunk(name, by));
        assert!(trial.mission.drives.iter().all(|slot| slot.start == Start::Overwritten));
        let mut fewer = trial.clone();
        fewer.mission.drives.pop();
        for trial in [trial, fewer].iter().filter(|trial| !trial.mission.drives.is_empty()) {
            let (long, short) = (run(trial, Budget::unlimited()), run(trial, Budget::of(PLENTY)));
            assert_eq!(long.verdict(), short.verdict(), "{name}: {long}; {short}");
            assert_eq!((long.extent(), short.extent()), (Extent::Whole, Extent::SteadyState));
            assert!(short.proof.work() < long.proof.work(), "{name}: {short}");
            let [with, all] = [&short, &long].map(|finding| &finding.proof.with);
            // Flash is written over as much in the end as in the whole trial.
            for (short, long) in with.drives.iter().zip(&all.drives) {
                assert!(
                    (short.amplification() / long.amplification() - 1.0).abs() < 0.02,
                    "{name}"
                );
            }
        }
    }
}

/// A mission onto drives that are full a second before its end.
fn full_at_the_end() -> Trial {
    let mut spec = Spec::from_profile(&library::get("ideal").unwrap()).unwrap();
    spec.capacity_bytes = 16 << 30;
    let slot = Slot { spec, start: Start::Empty, namespaces: vec![0], seed: 1 };
    let mut mission = Mission::new(vec![slot; 4], Rate(4e9), Duration::from_secs(18));
    mission.when_full = WhenFull::Stop;
    let held = Duration::ZERO;
    Trial { question: Question::Whole, mission, held, steady: None, planned: None }
}

#[test]
fn a_loss_at_the_end_of_a_mission_is_not_denied_where_only_its_beginning_was_recorded() {
    let trial = full_at_the_end();
    let whole = run(&trial, Budget::unlimited());
    let loss = whole.proof.with.first_loss.as_ref().expect("they are full before the end");
    assert_eq!(whole.verdict(), TrialVerdict::TooFew, "{whole}");
    let work = whole.proof.with.work;
    for share in [0.05, 0.3, 0.6, 0.9] {
        let part = run(&trial, Budget::of((work as f64 * share) as u64));
        assert!(part.proof.with.fed < loss.at);
        assert_eq!(part.verdict(), TrialVerdict::CutShort, "{part}");
        assert_eq!(part.extent(), Extent::Beginning);
        let text = part.to_string();
        assert!(!text.contains("confirmed"), "{text}");
        let claims = text.matches("no loss in ").count();
        assert_eq!(text.matches("no loss in the first ").count(), claims, "{text}");
        assert!(claims > 0 && text.contains(" of 18.0 s"), "{text}");
        let proofs = Proofs { findings: vec![("ideal".to_owned(), part)], unproved: Vec::new() };
        assert!(!proofs.confirmed());
    }
    // With as much as it takes, a budget changes nothing.
    let enough = run(&trial, Budget::of(PLENTY));
    assert_eq!((enough.verdict(), enough.extent()), (TrialVerdict::TooFew, Extent::Whole));
    assert_eq!(enough.to_string(), whole.to_string());
}

#[test]
fn trials_together_cost_what_the_budget_has_and_end_at_the_same_moment_every_time() {
    let trial = full_at_the_end();
    let spend = |work: u64| {
        let mut budget = Budget::of(work);
        let mut cost = Vec::new();
        while !budget.is_spent() {
            let finding = trial.run(&mut budget, |_, _| ControlFlow::Continue(())).unwrap();
            cost.push((finding.proof.work(), finding.proof.with.fed));
        }
        cost
    };
    // Looks are some steps apart, and what waits in buffers is still written.
    let whole = run(&trial, Budget::unlimited()).proof.work();
    for work in [20_000_000, whole + whole / 2] {
        let cost = spend(work);
        let sum: u64 = cost.iter().map(|(work, _)| work).sum();
        assert!(sum as f64 <= work as f64 * 1.01, "{sum} of {work}");
        assert_eq!(cost, spend(work));
    }
}

#[test]
fn what_no_work_is_left_for_is_not_confirmed_and_what_can_not_be_tried_does_not_count() {
    let requirement =
        required("rate = \"4GB/s\"\nraw = \"1MiB\"\ndrive_size = \"1TB\"\ndrive_rate = \"2GB/s\"");
    let described =
        Draft::from_toml("rate = \"4GB/s\"\ndrive_size = \"1TB\"\ndrive_rate = \"2GB/s\"");
    let described = described.unwrap().described().unwrap().unwrap();
    let candidates = [
        Candidate::of_description(described, None),
        Candidate::new(library::get("ideal").unwrap(), None),
    ];
    let answer = plan::plan(&requirement, &candidates);
    let all = of_answer(&requirement, &answer, &candidates);
    let why: Vec<Option<Unproved>> = all.into_iter().map(|(_, trial)| trial.err()).collect();
    assert!(why.contains(&Some(Unproved::Described)) && why.contains(&None), "{why:?}");
    let proofs = |why| Proofs { findings: Vec::new(), unproved: vec![("x".to_owned(), why)] };
    assert!(proofs(Unproved::Described).confirmed());
    assert!(!proofs(Unproved::WorkSpent).confirmed());
    assert!(Unproved::WorkSpent.to_string().contains("--long"));
}
