//! The recorder always makes progress when its drives do, always finishes, and gives every buffer
//! back once.

mod world;

use proptest::prelude::*;
use world::World;
use world::case::{Ending, Wanted, cases, config, stalls};

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
