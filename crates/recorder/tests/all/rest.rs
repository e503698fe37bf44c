//! Members that rest: each in its turn, and none for longer than that; the rest of the array goes on, and no packet is lost for it.

use crate::world::case::{Case, Ending, MemberCase, RoundCase, Wanted, cases, config, stalls};
use crate::world::{self, World};
use base::Duration;
use longtake_recorder::{Placement, WhenFull};
use proptest::prelude::*;

/// What was seen: turns that each member took, bytes written to those who rested, most that rested and least that did not.
struct Seen {
    turns: Vec<u32>,
    written_resting: u64,
    most_resting: usize,
    least_up: usize,
}

fn watched(case: &Case) -> (World, Seen, world::RoundReport) {
    let mut world = World::new(case.clone());
    let count = case.members.len();
    let mut seen =
        Seen { turns: vec![0; count], written_resting: 0, most_resting: 0, least_up: count };
    let mut before: Vec<(bool, u64)> = vec![(false, 0); count];
    let round = case.rounds[0].clone();
    let report = world.round(&round, |_, live, _| {
        let now: Vec<_> = live.core().members().map(|m| (m.resting, m.written)).collect();
        let resting = now.iter().filter(|m| m.0).count();
        seen.most_resting = seen.most_resting.max(resting);
        seen.least_up = seen.least_up.min(count - resting);
        for (at, (was, is)) in before.iter().zip(&now).enumerate() {
            seen.turns[at] += u32::from(is.0 && !was.0);
            if was.0 && is.0 {
                seen.written_resting += is.1 - was.1;
            }
        }
        before = now;
    });
    (world, seen, report)
}

fn ring(members: usize, rest: u32, buffers: u32, interval_us: u64) -> Case {
    let member = MemberCase {
        segments: 6,
        rate_mb: 100,
        latency_us: 100,
        jitter_us: 0,
        depth_max: 8,
        trims: true,
    };
    Case {
        members: vec![member; members],
        segment_kib: 512,
        volatile: false,
        placement: Placement::Adaptive,
        when_full: WhenFull::Wrap,
        depth: 2,
        buffers,
        drift_kib: 64,
        flush_us: 2000,
        trim_ahead: 2,
        trim_interval_us: 100,
        rest,
        rest_turn_us: 20_000,
        queues: 1,
        interval_us,
        rounds: vec![RoundCase {
            length_us: 400_000,
            ending: Ending::Stop,
            steps_more: 0,
            faults: Vec::new(),
            protections: Vec::new(),
        }],
        seed: 3,
    }
}

#[test]
fn all_rest_in_turn_and_take_no_writes_meanwhile() {
    for (members, rest) in [(3, 1), (4, 2), (5, 1)] {
        for placement in [Placement::Adaptive, Placement::Stripe] {
            let case = Case { placement, ..ring(members, rest, 32, 900) };
            let (world, seen, report) = watched(&case);
            assert!(report.finished);
            assert!(report.ledger.balances());
            assert_eq!(seen.most_resting, rest as usize);
            assert!(seen.turns.iter().all(|&turns| turns >= 2), "each of {:?}", seen.turns);
            let (least, most) = (seen.turns.iter().min(), seen.turns.iter().max());
            assert!(most.unwrap() - least.unwrap() <= 1, "in turn: {:?}", seen.turns);
            // The chunk that ends the take goes anywhere.
            assert!(seen.written_resting <= 4096, "nobody needed to be woken");
            let given = world.bank.watch(|w| w.given.clone());
            let mean = given.iter().sum::<u64>() / members as u64;
            assert!(
                given.iter().all(|&bytes| bytes > mean * 2 / 3 && bytes < mean * 4 / 3),
                "none starves: {given:?}"
            );
        }
    }
}

#[test]
fn who_rests_is_woken_when_buffers_fill_past_half() {
    // Two of three could not take it.
    let (_, seen, report) = watched(&ring(3, 1, 8, 20));
    assert!(report.finished);
    assert!(seen.written_resting > 0, "a member was woken");
}

#[test]
fn one_member_always_stays_up() {
    for (members, rest) in [(1, 1), (2, 2), (3, 7)] {
        let (_, seen, report) = watched(&ring(members, rest, 16, 900));
        assert!(report.finished);
        assert!(seen.least_up >= 1, "{members} members, {rest} of them resting");
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn a_ring_whose_members_rest_keeps_its_books(
        mut case in cases(Wanted {
            endings: vec![Ending::Stop],
            faults: Some(stalls()),
            when_full: vec![WhenFull::Wrap],
            ..Wanted::default()
        }),
        rest in 1u32..4,
        turn_us in 0u64..20_000,
    ) {
        (case.rest, case.rest_turn_us) = (rest, turn_us);
        let mut world = World::new(case);
        for round in world.case.rounds.clone() {
            let report = world.round_and_judge(&round);
            prop_assert!(report.finished && report.ledger.balances());
        }
    }

    #[test]
    fn none_starves_however_long_the_turns_are(
        members in 2usize..6,
        rest in 1u32..4,
        turn_us in 1_000u64..30_000,
        stripe in any::<bool>(),
    ) {
        let placement = if stripe { Placement::Stripe } else { Placement::Adaptive };
        let case = Case { placement, rest_turn_us: turn_us, ..ring(members, rest, 32, 1200) };
        let (world, seen, report) = watched(&case);
        prop_assert!(report.finished && report.ledger.balances());
        let resting = Duration::from_micros(turn_us * members as u64 * 2) < Duration::from_millis(400);
        let given = world.bank.watch(|w| w.given.clone());
        if resting {
            prop_assert!(seen.turns.iter().all(|&turns| turns > 0), "{:?}", seen.turns);
            prop_assert!(given.iter().all(|&bytes| bytes > 0), "{given:?}");
        }
    }
}
