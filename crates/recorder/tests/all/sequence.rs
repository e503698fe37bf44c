//! Sequence numbers are given out once in an array's whole life, whatever ends its recordings.

use crate::world::World;
use crate::world::case::{Ending, Wanted, cases, config};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn numbers_never_repeat_across_crashes(
        case in cases(Wanted { rounds: 6, endings: vec![Ending::Crash], ..Wanted::default() })
    ) {
        // The watch on the bank sees every number and refuses one that it knows.
        World::run(case);
    }

    #[test]
    fn numbers_never_repeat_across_power_cuts(
        case in cases(Wanted {
            rounds: 6,
            endings: vec![Ending::Stop, Ending::PowerCut],
            volatile: true,
            ..Wanted::default()
        })
    ) {
        World::run(case);
    }
}
