//! A protected range is never written over or trimmed, whenever it was protected and whatever
//! happened since. The book refuses to give up a segment with an acknowledged chunk of a range that is
//! protected, sees what is written over, and reads back what must be there.

use crate::worlds::keep_the_laws;
use chaos::Wanted;
use chaos::case::{Ending, Faults};
use longtake_recorder::WhenFull;

fn wraps(endings: &[Ending], faults: Faults) -> Wanted {
    Wanted {
        endings: endings.to_vec(),
        faults,
        when_full: vec![WhenFull::Wrap],
        protects: Some(true),
        ..Wanted::default()
    }
}

#[test]
fn a_protected_range_is_read_back_bit_for_bit_after_any_number_of_wraps() {
    keep_the_laws(400, &wraps(&[Ending::Stop], Faults::None));
}

#[test]
fn a_protected_range_survives_crashes_and_failing_members() {
    keep_the_laws(400, &wraps(&[Ending::Stop, Ending::Kill], Faults::Any));
}

#[test]
fn a_protected_range_survives_power_cuts() {
    let wanted = wraps(&[Ending::PowerCut], Faults::None);
    keep_the_laws(400, &Wanted { volatile: true, ..wanted });
}
