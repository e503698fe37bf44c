//! The recorder always makes progress when its drives do, always finishes, and gives every buffer
//! back once.

use crate::world::World;
use crate::world::case::{
    Case, Ending, Fault, MemberCase, RoundCase, Wanted, cases, config, stalls,
};
use format::Stage;
use longtake_recorder::{Placement, WhenFull};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn a_take_on_stalling_drives_finishes(
        case in cases(Wanted {
            endings: vec![Ending::Stop],
            faults: Some(stalls()),
            ..Wanted::default()
        })
    ) {
        let mut world = World::new(case);
        for round in world.case.rounds.clone() {
            let report = world.round_and_judge(&round);
            prop_assert!(report.finished);
            prop_assert!(report.ended || report.full, "room is kept for the chunk that ends it");
        }
    }

    #[test]
    fn a_take_on_failing_drives_finishes(
        case in cases(Wanted { endings: vec![Ending::Stop], ..Wanted::default() })
    ) {
        let mut world = World::new(case);
        for round in world.case.rounds.clone() {
            prop_assert!(world.round_and_judge(&round).finished);
        }
    }
}

#[test]
fn one_members_stall_does_not_stop_the_rings_of_the_others() {
    let member = |rate_mb| MemberCase {
        segments: 4,
        rate_mb,
        latency_us: 100,
        jitter_us: 0,
        depth_max: 8,
        trims: false,
    };
    let round = RoundCase {
        length_us: 200_000,
        ending: Ending::Stop,
        steps_more: 0,
        faults: vec![(0, 20_000, Fault::Stall { us: 3_000_000 })],
        protections: Vec::new(),
    };
    let case = Case {
        members: vec![member(200), member(200), member(200)],
        segment_kib: 256,
        volatile: false,
        placement: Placement::Adaptive,
        when_full: WhenFull::Wrap,
        depth: 2,
        buffers: 16,
        drift_kib: 64,
        flush_us: 2000,
        trim_ahead: 0,
        trim_interval_us: 0,
        rest: 0,
        rest_turn_us: 0,
        queues: 1,
        interval_us: 400,
        rounds: vec![round],
        // As many buffers for metadata as there are members, and two.
        seed: 4,
    };
    let mut world = World::new(case);
    let round = world.case.rounds[0].clone();
    let report = world.round(&round, |_, _, _| {});
    assert!(report.finished);
    let given = world.bank.watch(|w| w.given.clone());
    let capacity = 4 * (256 << 10);
    assert!(given[1] > 2 * capacity && given[2] > 2 * capacity, "they wrapped twice: {given:?}");
    assert!(report.ledger.lost(Stage::NoBuffer).packets < report.ledger.stored.packets / 50);
}
