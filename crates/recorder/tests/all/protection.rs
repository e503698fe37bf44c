//! A protected range is never written over or trimmed, whenever it was protected and whatever
//! happened since.

use crate::world::World;
use crate::world::case::{Ending, Wanted, cases, config};
use longtake_recorder::WhenFull;
use proptest::prelude::*;

fn wraps() -> Wanted {
    Wanted { when_full: vec![WhenFull::Wrap], faults: None, ..Wanted::default() }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn a_protected_range_is_read_back_bit_for_bit_after_any_number_of_wraps(
        case in cases(Wanted { endings: vec![Ending::Stop], ..wraps() })
    ) {
        // The book refuses to give up a segment with an acknowledged chunk of a range that is
        // protected, the watch sees what is written over, the judge reads back what must be there.
        World::run(case);
    }

    #[test]
    fn a_protected_range_survives_crashes_and_failing_members(
        case in cases(Wanted { faults: Wanted::default().faults, ..wraps() })
    ) {
        World::run(case);
    }

    #[test]
    fn a_protected_range_survives_power_cuts(
        case in cases(Wanted { endings: vec![Ending::PowerCut], volatile: true, ..wraps() })
    ) {
        World::run(case);
    }
}
