//! Extraction gives exactly the packets of the chunks that are there, in the range, in time order,
//! each once, while the recording goes on.

use crate::worlds::{each, keep_the_laws};
use chaos::case::Ending;
use chaos::{Wanted, World};

#[test]
fn a_range_gives_exactly_its_packets() {
    let endings = vec![Ending::Stop, Ending::Kill];
    each(250, &Wanted { endings, ..Wanted::default() }, |case| {
        let mut world = World::new(&case, None);
        world.run();
        // All of it, whole chunks at once with every other seed.
        let catalog = world.judge(false);
        // A catalog of the range alone gives the same.
        let [one, other, ..] = (case.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).to_le_bytes();
        world.judge_span(&catalog, (one, other));
    });
}

#[test]
fn a_range_gives_its_packets_while_recording_goes_on() {
    let endings = vec![Ending::Stop, Ending::Kill];
    keep_the_laws(250, &Wanted { endings, views: Some(true), ..Wanted::default() });
}
