//! Recordings that depend on when drives do their maintenance: a plan that is right in all but one of a thousand isn't refuted because one
//! drive less is lucky.

use std::ops::ControlFlow;

use base::{Duration, Rate};
use longtake_plan::mission::Mission;
use longtake_plan::trial::{
    Budget, Drawn, Extent, Finding, Question, Trial, TrialVerdict, draw, draws,
};
use profile::library;
use recorder::{Placement, WhenFull};
use ssd::{Slot, Spec, Start};

/// A mission of 1 GB/s on drives that stand still for a fifth of a second after every 20 GB.
fn mission(drives: u64, placement: Placement, milliseconds: u64, buffers: u32) -> Mission {
    let spec = Spec::from_profile(&library::get("samsung-pm1725b-1.6tb").unwrap()).unwrap();
    let slot = |seed| Slot { spec: spec.clone(), start: Start::Empty, namespaces: vec![0], seed };
    let drives = (0..drives).map(slot).collect();
    let mut mission = Mission::new(drives, Rate(1e9), Duration::from_millis(milliseconds));
    mission.when_full = WhenFull::Stop;
    mission.placement = placement;
    mission.buffers = buffers;
    mission
}

fn run(mission: &Mission, mut budget: Budget) -> Finding {
    let trial = Trial {
        question: Question::Whole,
        mission: mission.clone(),
        held: Duration::ZERO,
        steady: None,
        planned: None,
    };
    trial.run(&mut budget, |_, _| ControlFlow::Continue(())).unwrap()
}

#[test]
fn one_less_that_loses_in_a_few_of_a_thousand_draws_confirms_a_plan() {
    // Of 1 GB in 20, one drive's maintenance falls into one mission of about twenty; two don't stop at the same time.
    let mission = mission(2, Placement::Adaptive, 1000, 16);
    let finding = run(&mission, Budget::unlimited());
    assert_eq!(finding.verdict(), TrialVerdict::Confirmed, "{finding}");
    let drawn = finding.draws.as_ref().unwrap();
    assert!(drawn.lost == 2 && (4..200).contains(&drawn.tried), "{drawn:?}");
    let told = format!("; on 1, in 2 of {} draws: loss after ", drawn.tried);
    assert!(finding.to_string().contains(&told), "{finding}");
    // Its own draw is the first, in which one less loses nothing: that told nothing.
    let mut less = mission;
    less.drives.pop();
    assert!(less.run(|_| ControlFlow::Continue(())).unwrap().first_loss.is_none());
}

#[test]
fn as_many_as_planned_have_to_hold_in_the_draws_in_which_one_less_loses() {
    // The second of a stripe stops four times as often, and keeps the first waiting.
    let mut mission = mission(2, Placement::Stripe, 1000, 16);
    mission.drives[1].spec.upkeep.as_mut().unwrap().every_bytes /= 8;
    mission.seed = 2;
    let finding = run(&mission, Budget::unlimited());
    let drawn = finding.draws.as_ref().unwrap();
    assert_eq!(drawn.lost, 2);
    assert_eq!(finding.verdict(), TrialVerdict::TooFew, "{finding}");
    // In its own draw it lost nothing.
    assert!(mission.run(|_| ControlFlow::Continue(())).unwrap().first_loss.is_none());
}

#[test]
fn one_less_that_loses_in_none_of_a_thousand_draws_refutes_a_plan() {
    // Buffers hold all of it.
    let finding = run(&mission(2, Placement::Adaptive, 40, 32), Budget::unlimited());
    assert_eq!(finding.verdict(), TrialVerdict::TooMany, "{finding}");
    let drawn = finding.draws.as_ref().unwrap();
    assert_eq!((drawn.tried, drawn.lost), (1000, 0));
    assert!(finding.to_string().contains("; on 1, in each of 1000 draws: no loss"), "{finding}");
}

#[test]
fn a_budget_that_ends_before_the_draws_do_decides_nothing() {
    let mission = mission(2, Placement::Adaptive, 40, 32);
    let first = run(&mission, Budget::unlimited()).proof.work();
    let finding = run(&mission, Budget::of(4 * first));
    assert_eq!(finding.verdict(), TrialVerdict::CutShort, "{finding}");
    assert_eq!(finding.extent(), Extent::Whole);
    let drawn = finding.draws.as_ref().unwrap();
    assert!((1..20).contains(&drawn.tried), "{drawn:?}");
}

#[test]
fn what_does_not_depend_on_chance_is_recorded_once() {
    let of = mission(2, Placement::Adaptive, 40, 32);
    let mut ring = of.clone();
    ring.when_full = WhenFull::Wrap;
    let mut even = of.clone();
    for slot in &mut even.drives {
        slot.spec.upkeep = None;
    }
    let mut stripe = ring.clone();
    stripe.placement = Placement::Stripe;
    assert_eq!([&of, &stripe, &ring, &even].map(draws), [1000, 20, 1, 1]);
    let finding = run(&even, Budget::unlimited());
    assert_eq!(finding.verdict(), TrialVerdict::TooMany, "{finding}");
    assert!(finding.draws.is_none());
}

#[test]
fn draws_are_told_as_what_was_recorded() {
    let told = |tried, lost| Drawn { of: 20, tried, lost, loss: None, work: 0 }.to_string();
    assert_eq!(told(0, 0), "");
    assert_eq!(told(7, 0), ", in each of 7 draws");
    assert_eq!(told(20, 1), ", in all but 1 of 20 draws");
    assert_eq!(told(7, 2), ", in 2 of 7 draws");
}

#[test]
fn each_draw_is_told_and_has_times_of_its_own_and_the_same_ones_again() {
    let mut one = mission(1, Placement::Adaptive, 1000, 16);
    let mut told = Vec::new();
    let first = draw(&one, 1000, |progress| {
        told.push(progress.draw.0);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(told.is_sorted() && told.last() >= Some(&2), "{told:?}");
    let again = draw(&one, 1000, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((again.tried, again.work), (first.tried, first.work));
    one.seed += 1;
    let other = draw(&one, 1000, |_| ControlFlow::Continue(())).unwrap();
    assert_ne!(other.work, first.work);
    // Whoever watches may end it.
    let broken = draw(&one, 1000, |progress| match progress.draw {
        (1, 1000) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert_eq!(broken.unwrap().tried, 1);
}
