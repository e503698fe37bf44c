//! Members that rest: each in its turn, and none for longer than that; the rest of the array goes on, and no packet is lost for it.

use crate::worlds::{SEGMENT, config, drive, each, plain, round, trims, with_seed};
use base::Duration;
use chaos::adversary::{Drive, Pace};
use chaos::case::{Ending, Faults};
use chaos::{Case, Recorded, Wanted, World};
use longtake_recorder::{Placement, WhenFull};
use proptest::prelude::*;

/// What was seen: turns that each member took, bytes written to those who rested, most that rested and least that did not.
struct Seen {
    turns: Vec<u32>,
    written_resting: u64,
    most_resting: usize,
    least_up: usize,
}

/// Records it, and returns what each member was given to write, what was seen, and how it ended.
fn watched(case: &Case) -> (Vec<u64>, Seen, Recorded) {
    let mut world = World::new(case, None);
    let count = case.drives.len();
    let mut seen =
        Seen { turns: vec![0; count], written_resting: 0, most_resting: 0, least_up: count };
    let mut before: Vec<(bool, u64)> = vec![(false, 0); count];
    let recorded = world.record(&case.rounds[0], &mut |run| {
        let now: Vec<_> = run.recording.core().members().map(|m| (m.resting, m.written)).collect();
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
    (world.book.given_bytes(), seen, recorded)
}

fn ring(members: usize, rest: u32, buffers: u32, interval_us: u64) -> Case {
    // 100 MB/s.
    let member = trims(drive(0, Pace::Even(100), 10_240));
    let capacity_bytes = member.capacity_bytes + 6 * 2 * SEGMENT;
    let rounds = vec![round(Duration::from_millis(400), Ending::Stop)];
    let case = Case {
        segment_bytes: 2 * SEGMENT,
        buffers,
        drift_max: 64 << 10,
        trim_ahead: 2,
        trim_interval: Duration::from_micros(100),
        rest,
        rest_turn: Duration::from_millis(20),
        interval: Duration::from_micros(interval_us),
        ..plain(vec![Drive { capacity_bytes, ..member }; members], rounds)
    };
    with_seed(3, case)
}

#[test]
fn all_rest_in_turn_and_take_no_writes_meanwhile() {
    for (members, rest) in [(3, 1), (4, 2), (5, 1)] {
        for placement in [Placement::Adaptive, Placement::Stripe] {
            let case = Case { placement, ..ring(members, rest, 32, 900) };
            let (given, seen, report) = watched(&case);
            assert!(report.finished);
            assert!(report.ledger.balances());
            assert_eq!(seen.most_resting, rest as usize);
            assert!(seen.turns.iter().all(|&turns| turns >= 2), "each of {:?}", seen.turns);
            let (least, most) = (seen.turns.iter().min(), seen.turns.iter().max());
            assert!(most.unwrap() - least.unwrap() <= 1, "in turn: {:?}", seen.turns);
            // The chunk that ends the take goes anywhere.
            assert!(
                seen.written_resting <= 4096,
                "a resting member took only the chunk that ends the take"
            );
            let mean = given.iter().sum::<u64>() / members as u64;
            assert!(
                given.iter().all(|&bytes| bytes > mean * 2 / 3 && bytes < mean * 4 / 3),
                "none starves: {given:?}"
            );
        }
    }
}

#[test]
fn one_part_is_written_at_a_time_and_all_of_them_alike() {
    for (members, parts) in [(2, 2), (4, 2), (6, 3), (3, 3)] {
        let case = Case { parts, ..ring(members, 0, 32, 900) };
        let (given, seen, report) = watched(&case);
        assert!(report.finished && report.ledger.balances());
        let each = members / usize::from(parts);
        assert_eq!((seen.most_resting, seen.least_up), (members - each, each));
        assert!(seen.turns.iter().all(|&turns| turns >= 2), "each of {:?}", seen.turns);
        // The chunk that ends the take goes anywhere.
        assert!(
            seen.written_resting <= 4096,
            "a resting member took only the chunk that ends the take"
        );
        let mean = given.iter().sum::<u64>() / members as u64;
        assert!(
            given.iter().all(|&bytes| bytes > mean / 2 && bytes < mean * 3 / 2),
            "none starves: {given:?}"
        );
    }
}

#[test]
fn a_part_that_is_written_over_once_hands_over_before_its_turn_ends() {
    // In 0.4 s a member is written over several times.
    let case = Case { parts: 2, rest_turn: Duration::from_secs(60), ..ring(2, 0, 32, 450) };
    let (given, seen, report) = watched(&case);
    assert!(report.finished && report.ledger.balances());
    assert!(seen.turns.iter().all(|&turns| turns > 0), "{:?} {given:?}", seen.turns);
    assert!(
        seen.written_resting <= 4096,
        "a resting member took only the chunk that ends the take"
    );
    let member = case.drives[0].capacity_bytes;
    assert!(given.iter().all(|&bytes| bytes > member / 8), "{given:?} of {member}");
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

#[test]
fn a_ring_whose_members_rest_keeps_its_books() {
    let wanted = Wanted {
        endings: vec![Ending::Stop],
        faults: Faults::Stalls,
        when_full: vec![WhenFull::Wrap],
        ..Wanted::default()
    };
    each(200, &wanted, |mut case| {
        case.rest = 1 + (case.seed % 3) as u32;
        let mut world = World::new(&case, None);
        for round in &case.rounds {
            let recorded = world.record(round, &mut |_| {});
            world.judge(false);
            assert!(recorded.finished && recorded.ledger.balances());
        }
    });
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn none_starves_however_long_the_turns_are(
        members in 2usize..6,
        rest in 1u32..4,
        turn_us in 1_000u64..30_000,
        stripe in any::<bool>(),
    ) {
        let placement = if stripe { Placement::Stripe } else { Placement::Adaptive };
        let rest_turn = Duration::from_micros(turn_us);
        let case = Case { placement, rest_turn, ..ring(members, rest, 32, 1200) };
        let (given, seen, report) = watched(&case);
        prop_assert!(report.finished && report.ledger.balances());
        let resting = Duration::from_micros(turn_us * members as u64 * 2) < Duration::from_millis(400);
        if resting {
            prop_assert!(seen.turns.iter().all(|&turns| turns > 0), "{:?}", seen.turns);
            prop_assert!(given.iter().all(|&bytes| bytes > 0), "{given:?}");
        }
    }
}
