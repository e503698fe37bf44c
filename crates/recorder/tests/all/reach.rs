//! The cases reach what they are for: over some hundreds of them each outcome comes up, and the
//! same case comes out the same way.

use std::collections::BTreeMap;

use chaos::{Case, Outcome, Wanted, World, judged};

#[test]
fn every_outcome_is_reached_by_some_case() {
    let wanted = Wanted { volatile: true, ..Wanted::default() };
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    // Fewer would not reach all.
    for seed in 0..300 {
        let case = Case::wanted(seed, &wanted);
        let mut world = World::new(&case, None);
        world.run();
        let met = world.report().met;
        for (what, outcome) in [
            ("a take ends", Outcome::Stopped),
            ("a take is cut short", Outcome::Killed),
            ("the power fails", Outcome::PowerFailed),
            ("the array is full", Outcome::ArrayFull),
            ("a member fails", Outcome::MemberFailed),
            ("all members fail", Outcome::NoMemberLeft),
            ("chunks are lost for want of buffers", Outcome::NoBuffer),
            ("a ring gives up segments", Outcome::Wrapped),
            ("a ring gives up segments beside protected ones", Outcome::Spared),
            ("an update of the superblocks is cut short", Outcome::ProtectionCutShort),
            ("a chunk is written again", Outcome::PlacedAgain),
            ("an acknowledged chunk is cut off", Outcome::AcknowledgedCut),
            ("commands are under way together", Outcome::Reordered),
        ] {
            *seen.entry(what).or_default() += u32::from(met.has(outcome));
        }
        let durable = world.book.chunks.values().any(|chunk| chunk.durable);
        *seen.entry("a chunk is durable").or_default() += u32::from(durable);
    }
    for (what, times) in &seen {
        assert!(*times > 2, "{what}: {times} times of {seen:?}");
    }
}

#[test]
fn the_same_case_comes_out_the_same_way() {
    for seed in 0..20 {
        let case = Case::wanted(seed, &Wanted::default());
        assert_eq!(judged(&case, None).unwrap(), judged(&case, None).unwrap());
    }
}
