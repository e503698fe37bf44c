//! The end of an array: what was stored is an exact prefix of what was offered, the take still gets
//! its end, and each loss has its name.

use crate::worlds::{each, round};
use base::{Duration, Instant};
use chaos::case::{Ending, Faults, Round};
use chaos::fault::{Fault, What};
use chaos::{Case, Wanted, World};
use format::{Count, Stage};
use longtake_recorder::WhenFull;

/// Longer than the drives or the source take to fill the array, stalls and latency of each chunk included; a take that has
/// filled it ends then.
fn long(case: &Case) -> Round {
    let capacity: u64 = case.drives.iter().map(|d| d.capacity_bytes).sum();
    let slowest = case.drives.iter().map(|d| d.kib_ns).max().unwrap_or(1);
    let drives_ns = 3 * capacity / 1024 * slowest;
    let source_ns = 2 * capacity / 4096 * case.interval.as_nanos();
    let length = Duration::from_nanos(20 * (drives_ns + source_ns)) + Duration::from_secs(600);
    round(length, Ending::Stop)
}

#[test]
fn a_full_array_holds_an_exact_prefix_and_its_end() {
    let wanted = Wanted {
        endings: vec![Ending::Stop],
        when_full: vec![WhenFull::Stop],
        faults: Faults::Stalls,
        protects: Some(false),
        views: Some(false),
        ..Wanted::default()
    };
    each(60, &wanted, |case| {
        let mut world = World::new(&case, None);
        let mut round = long(&case);
        round.faults.clone_from(&case.rounds[0].faults);
        // That the first chunks are stored, without a hole, and lost is what came after them, is a law of every take.
        let recorded = world.record(&round, &mut |_| {});
        world.judge(false);
        assert!(recorded.full, "it was long enough");
        assert!(recorded.ended, "the chunk that ends it has its place");
        assert!(recorded.ledger.lost(Stage::DeviceError).is_zero());
        let stored = world.book.this_round().filter(|c| c.acknowledged);
        let stored = stored.fold(Count::ZERO, |sum, c| sum + c.contents.count());
        assert_eq!(recorded.ledger.stored, stored);
        // Another take finds it full from the start, says so, and does no harm.
        let again = world.record(&round, &mut |_| {});
        world.judge(false);
        assert!(again.full && again.finished);
    });
}

#[test]
fn without_a_member_left_every_loss_is_the_devices() {
    let wanted = Wanted {
        when_full: vec![WhenFull::Wrap],
        protects: Some(false),
        views: Some(false),
        ..Wanted::default()
    };
    each(60, &wanted, |case| {
        let mut world = World::new(&case, None);
        let members = case.drives.len() as u16;
        let mut round = round(case.rounds[0].length + Duration::from_millis(200), Ending::Stop);
        let dies = |drive: u16| {
            let from = Instant::START + Duration::from_micros(u64::from(drive) * 3000 % 10_000);
            Fault { drive, from, to: Instant::from_nanos(u64::MAX / 2), what: What::Dies }
        };
        round.faults = (0..members).map(dies).collect();
        let recorded = world.record(&round, &mut |_| {});
        assert!(recorded.no_member && recorded.failed.len() == usize::from(members));
        assert!(recorded.ledger.lost(Stage::ArrayFull).is_zero());
        assert!(!recorded.ledger.lost(Stage::DeviceError).is_zero());
        world.judge(false);
    });
}
