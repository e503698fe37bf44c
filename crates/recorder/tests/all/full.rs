//! The end of an array: what was stored is an exact prefix of what was offered, the take still gets
//! its end, and each loss has its name.

use crate::world::case::{Ending, Fault, RoundCase, Wanted, cases, config, stalls};
use crate::world::{self, World};
use format::{Count, Stage};
use longtake_recorder::WhenFull;
use proptest::prelude::*;

fn long(case: &world::case::Case) -> RoundCase {
    let capacity: u64 = case.members.iter().map(|m| m.segments * (case.segment_kib << 10)).sum();
    let rate: u64 = case.members.iter().map(|m| m.rate_mb).sum();
    let slowest = case.members.iter().map(|m| m.rate_mb).min().unwrap_or(1);
    // Longer than the drives or the source take to fill it, stalls and latency of each chunk included;
    // a take that has filled it ends then.
    let drives_us = 3 * capacity / slowest.min(rate);
    let source_us = 2 * capacity / 4096 * case.interval_us / u64::from(case.queues);
    RoundCase {
        length_us: 20 * (drives_us + source_us) + 60_000_000,
        ending: Ending::Stop,
        steps_more: 0,
        faults: Vec::new(),
        protections: Vec::new(),
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn a_full_array_holds_an_exact_prefix_and_its_end(
        case in cases(Wanted {
            endings: vec![Ending::Stop],
            when_full: vec![WhenFull::Stop],
            faults: Some(stalls()),
            protections: false,
            ..Wanted::default()
        })
    ) {
        let mut world = World::new(case);
        let mut round = long(&world.case);
        round.faults = world.case.rounds[0].faults.clone();
        let report = world.round_and_judge(&round);
        prop_assert!(report.full, "it was long enough");
        prop_assert!(report.ended, "the chunk that ends it has its place");
        let stored = world.bank.watch(|w| {
            let handed: Vec<_> = w.handed.iter().map(|c| c.packets.first().copied()).collect();
            let mut stored: Vec<_> = w.chunks.values().filter(|c| c.acknowledged).collect();
            stored.sort_by_key(|c| c.contents.packets.first().map_or(u64::MAX, |p| p.0));
            let stored: Vec<_> = stored.iter().map(|c| c.contents.packets.first().copied()).collect();
            let prefix = stored.len() - 1;
            assert_eq!(stored[..prefix], handed[..prefix], "the first ones, without a hole");
            let lost = &w.handed[prefix..];
            lost.iter().fold(Count::ZERO, |sum, c| sum + c.count)
        });
        prop_assert_eq!(report.ledger.lost(Stage::ArrayFull), stored);
        prop_assert!(report.ledger.lost(Stage::DeviceError).is_zero());
        // Another take finds it full from the start, says so, and does no harm.
        let again = world.round_and_judge(&round);
        prop_assert!(again.full && again.finished);
    }

    #[test]
    fn without_a_member_left_every_loss_is_the_devices(
        case in cases(Wanted { when_full: vec![WhenFull::Wrap], protections: false, ..Wanted::default() })
    ) {
        let mut world = World::new(case);
        let mut round = world.case.rounds[0].clone();
        round.ending = Ending::Stop;
        round.length_us += 200_000;
        let members = world.case.members.len() as u64;
        round.faults = (0..members).map(|m| (m as u8, m * 3000 % 10_000, Fault::Die)).collect();
        let report = world.round(&round, |_, _, _| {});
        prop_assert!(report.no_member && report.failed.len() as u64 == members);
        prop_assert!(report.ledger.lost(Stage::ArrayFull).is_zero());
        prop_assert!(!report.ledger.lost(Stage::DeviceError).is_zero());
        world.bank.revive();
        world.judge(&[], false);
    }
}
