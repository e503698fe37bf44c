//! The ledger always balances: while recording, on the media, after accidents; and it agrees with
//! the source's and the drives' own counts.

use crate::world::World;
use crate::world::case::{Ending, Wanted, cases, config};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn the_ledger_balances_without_accidents(
        case in cases(Wanted { endings: vec![Ending::Stop], faults: None, ..Wanted::default() })
    ) {
        World::run(case);
    }

    #[test]
    fn the_ledger_balances_whatever_fails(
        case in cases(Wanted { endings: vec![Ending::Stop], ..Wanted::default() })
    ) {
        World::run(case);
    }

    #[test]
    fn the_ledger_balances_after_crashes(case in cases(Wanted::default())) {
        World::run(case);
    }
}
