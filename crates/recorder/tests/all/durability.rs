//! What was acknowledged is on the media after kill -9, what was said to be durable after a power
//! cut, and what a dead member held is named exactly.

use crate::world::World;
use crate::world::case::{Ending, Fault, Wanted, any_fault, cases, config};
use longtake_recorder::WhenFull;
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn what_was_acknowledged_is_found_after_kill_9(
        case in cases(Wanted { endings: vec![Ending::Crash], ..Wanted::default() })
    ) {
        World::run(case);
    }

    #[test]
    fn what_is_durable_is_found_after_a_power_cut(
        case in cases(Wanted {
            endings: vec![Ending::PowerCut, Ending::Crash],
            volatile: true,
            ..Wanted::default()
        })
    ) {
        World::run(case);
    }

    #[test]
    fn a_dead_member_is_a_gap_of_exactly_what_it_held(
        case in cases(Wanted {
            faults: Some(prop_oneof![Just(Fault::Die), any_fault()].boxed()),
            when_full: vec![WhenFull::Stop],
            rounds: 2,
            ..Wanted::default()
        }),
        dead in any::<u8>(),
    ) {
        let mut world = World::new(case);
        let members = world.case.members.len() as u16;
        let mut dead = vec![u16::from(dead) % members];
        for round in world.case.rounds.clone() {
            let report = world.round(&round, |_, _, _| {});
            world.bank.revive();
            dead.extend(&report.failed);
            dead.sort_unstable();
            dead.dedup();
            if dead.len() < usize::from(members) {
                world.judge(&dead, report.cut);
            }
            // And when they are found again, so is everything.
            world.judge(&[], report.cut);
        }
    }
}
