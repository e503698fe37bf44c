//! What was acknowledged is on the media after kill -9, what was said to be durable after a power
//! cut, and what a dead member held is named exactly.

use crate::worlds::{each, keep_the_laws};
use base::{Duration, Instant};
use chaos::case::{Ending, Faults};
use chaos::fault::{Fault, What};
use chaos::{Wanted, World};
use longtake_recorder::WhenFull;

#[test]
fn what_was_acknowledged_is_found_after_kill_9() {
    keep_the_laws(400, &Wanted { endings: vec![Ending::Kill], ..Wanted::default() });
}

#[test]
fn what_is_durable_is_found_after_a_power_cut() {
    let endings = vec![Ending::PowerCut, Ending::Kill];
    keep_the_laws(400, &Wanted { endings, volatile: true, ..Wanted::default() });
}

#[test]
fn a_dead_member_is_a_gap_of_exactly_what_it_held() {
    let wanted = Wanted {
        endings: vec![Ending::Stop, Ending::Kill],
        faults: Faults::Honest,
        when_full: vec![WhenFull::Stop],
        rounds: 2,
        parity: false,
        ..Wanted::default()
    };
    each(400, &wanted, |mut case| {
        let members = case.drives.len() as u16;
        let chosen = (case.seed / 2 % u64::from(members)) as u16;
        let dies_for_good = case.seed.is_multiple_of(2);
        for round in case.rounds.iter_mut().filter(|_| dies_for_good) {
            let from = Instant::START + Duration::from_nanos(round.length.as_nanos() / 2);
            let to = Instant::from_nanos(u64::MAX / 2);
            round.faults.push(Fault { drive: chosen, from, to, what: What::Dies });
        }
        let mut world = World::new(&case, None);
        let mut dead = vec![chosen];
        for round in &case.rounds {
            let recorded = world.record(round, &mut |_| {});
            dead.extend(&recorded.failed);
            dead.sort_unstable();
            dead.dedup();
            if dead.len() < usize::from(members) {
                world.judge_without(&dead, recorded.power_failed);
            }
            // And when they are found again, so is everything.
            world.judge(recorded.power_failed);
        }
    });
}
