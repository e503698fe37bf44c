//! The cases reach what they are for: over some hundreds of them each outcome comes up, and the
//! same case comes out the same way.

use std::collections::BTreeMap;

use crate::world::case::{Ending, Wanted, cases};
use crate::world::{self, World};
use format::Stage;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

#[test]
fn every_outcome_is_reached_by_some_case() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let wanted = Wanted {
        endings: vec![Ending::Stop, Ending::Crash, Ending::PowerCut],
        volatile: true,
        ..Wanted::default()
    };
    let cases = cases(wanted);
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for _ in 0..300 {
        let case = cases.new_tree(&mut runner).expect("a case").current();
        let mut world = World::new(case);
        for round in world.case.rounds.clone() {
            let report = world.round_and_judge(&round);
            let mut reached = |what, yes| *seen.entry(what).or_default() += u32::from(yes);
            reached("a take ends", report.ended);
            reached("a take is cut short", !report.finished && !report.cut);
            reached("the power fails", report.cut);
            reached("the array is full", report.full);
            reached("a member fails", !report.failed.is_empty());
            reached("all members fail", report.no_member);
            reached("chunks are lost for want of buffers", {
                !report.ledger.lost(Stage::NoBuffer).is_zero()
            });
            reached("a ring gives up segments", world.reused > 0);
            reached("a ring gives up segments beside protected ones", world.spared > 0);
            reached("an update of the superblocks is cut short", world.torn);
            let watch = |look: fn(&world::watch::Written) -> bool| {
                world.bank.watch(|w| w.chunks.values().any(look))
            };
            reached("a chunk is written again", watch(|c| c.record.replaces.is_some()));
            reached("a chunk is durable", watch(|c| c.durable));
            reached("an acknowledged chunk is cut off", watch(|c| c.cut));
            reached("commands are under way together", world.bank.watch(|w| w.deepest > 3));
        }
    }
    for (what, times) in &seen {
        assert!(*times > 2, "{what}: {times} times of {seen:?}");
    }
}

#[test]
fn the_same_case_comes_out_the_same_way() {
    let mut runner = TestRunner::deterministic();
    let cases = cases(Wanted::default());
    for _ in 0..20 {
        let case = cases.new_tree(&mut runner).expect("a case").current();
        let outcome = || {
            let mut world = World::run(case.clone());
            let catalog = world.judge(&[], false);
            (catalog.entries, world.next_packet, base::Bank::now(&world.bank))
        };
        assert_eq!(outcome(), outcome());
    }
}
