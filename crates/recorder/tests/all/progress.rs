//! The recorder always makes progress when its drives do, always finishes, and gives every buffer
//! back once.

use crate::worlds::{SEGMENT, drive, each, plain, round};
use base::{Duration, Instant};
use chaos::adversary::Pace;
use chaos::case::{Ending, Faults};
use chaos::fault::{Fault, What};
use chaos::{Wanted, World};

#[test]
fn a_take_on_stalling_drives_finishes() {
    let endings = vec![Ending::Stop];
    let wanted = Wanted { endings, faults: Faults::Stalls, ..Wanted::default() };
    each(400, &wanted, |case| {
        let mut world = World::new(&case, None);
        for round in &case.rounds {
            let recorded = world.record(round, &mut |_| {});
            world.judge(false);
            assert!(recorded.finished);
            assert!(recorded.ended || recorded.full, "room is kept for the chunk that ends it");
        }
    });
}

#[test]
fn a_take_on_failing_drives_finishes() {
    let endings = vec![Ending::Stop];
    let wanted = Wanted { endings, faults: Faults::Honest, ..Wanted::default() };
    each(400, &wanted, |case| {
        let mut world = World::new(&case, None);
        for round in &case.rounds {
            assert!(world.record(round, &mut |_| {}).finished);
            world.judge(false);
        }
    });
}

#[test]
fn one_members_stall_does_not_stop_the_rings_of_the_others() {
    let from = Instant::START + Duration::from_millis(20);
    let to = from + Duration::from_secs(3);
    let mut only = round(Duration::from_millis(200), Ending::Stop);
    only.faults.push(Fault { drive: 0, from, to, what: What::Stalls });
    // 200 MB/s.
    let mut case = plain(vec![drive(4, Pace::Even(100), 5120); 3], vec![only]);
    case.buffers = 16;
    case.drift_max = 64 << 10;
    case.interval = Duration::from_micros(400);
    let mut world = World::new(&case, None);
    let recorded = world.record(&case.rounds[0], &mut |_| {});
    assert!(recorded.finished);
    let (given, capacity) = (world.book.given_bytes(), 4 * SEGMENT);
    assert!(given[1] > 2 * capacity && given[2] > 2 * capacity, "they wrapped twice: {given:?}");
    assert!(!recorded.overrun, "buffers suffice: {:?}", recorded.ledger);
}
