//! Which member gets a chunk, by what its completions have shown of its speed.

use crate::hand::{Asked, Hand, config, image};
use base::Duration;
use longtake_recorder::Placement;

const SHORT: u32 = 4096;

/// Two empty members, of which nothing is known yet.
fn two() -> Hand {
    Hand::new(config(), image(0, 8, &[&[], &[]]))
}

/// The oldest chunk under way on a member is done.
fn done(hand: &mut Hand, member: u16) {
    let tag = hand.asked(|c| c.member == member && c.asked == Asked::Chunk)[0];
    hand.done(tag, Ok(()));
}

/// The member that a chunk of this length goes to.
fn placed(hand: &mut Hand, length: u32) -> u16 {
    hand.chunk(length, (1, 2));
    hand.members(false).pop().expect("it was placed at once")
}

#[test]
fn a_placement_is_told_by_its_name_and_no_other() {
    for placement in [Placement::Adaptive, Placement::Stripe] {
        assert_eq!(placement.to_string().parse(), Ok(placement));
    }
    assert_eq!("adaptive".parse(), Ok(Placement::Adaptive));
    assert_eq!("stripe".parse(), Ok(Placement::Stripe));
    let why = "raid".parse::<Placement>().unwrap_err();
    assert!(why.contains("'raid'") && why.contains("adaptive or stripe"), "{why}");
}

#[test]
fn a_member_that_has_finished_nothing_has_no_rate_yet() {
    let mut hand = two();
    let rates = |hand: &Hand| hand.core.members().map(|member| member.rate).collect::<Vec<_>>();
    assert_eq!(rates(&hand), [0.0, 0.0]);
    assert_eq!(placed(&mut hand, SHORT), 0);
    assert_eq!(rates(&hand), [0.0, 0.0]);
    hand.pass(Duration::from_millis(1));
    done(&mut hand, 0);
    // 4 KiB in a millisecond.
    let found = rates(&hand);
    assert!((found[0] - 4.096e6).abs() < 1.0 && found[1] == 0.0, "{found:?}");
}

#[test]
fn time_in_which_a_member_had_nothing_to_do_does_not_make_it_slow() {
    let mut hand = two();
    let ms = Duration::from_millis;
    let mut bursts = Vec::new();
    for _ in 0..12 {
        // The first member takes a millisecond for a chunk, the second one four: the fourth chunk of a burst is its.
        bursts.push([(); 4].map(|()| placed(&mut hand, SHORT)));
        for passed in 1..=16 {
            hand.pass(ms(1));
            for (member, takes) in [(0, 1), (1, 4)] {
                let under_way = hand.asked(|c| c.member == member && c.asked == Asked::Chunk);
                if passed % takes == 0 && !under_way.is_empty() {
                    done(&mut hand, member);
                }
            }
        }
        assert!(hand.under_way.is_empty(), "all of it is done");
        hand.pass(ms(100));
    }
    assert_eq!(bursts[8..], [[0, 0, 0, 1]; 4], "{bursts:?}");
}

#[test]
fn a_chunk_of_another_length_than_a_members_last_one_is_expected_by_its_own() {
    let mut hand = two();
    let ms = Duration::from_millis;
    // Both members write 4 KiB in a millisecond. The first one's last chunk was ten times as long.
    assert_eq!((placed(&mut hand, 10 * SHORT), placed(&mut hand, SHORT)), (0, 1));
    hand.pass(ms(1));
    done(&mut hand, 1);
    hand.pass(ms(9));
    done(&mut hand, 0);
    let mut members = Vec::new();
    for _ in 0..12 {
        let member = placed(&mut hand, SHORT);
        hand.pass(ms(1));
        done(&mut hand, member);
        members.push(member);
    }
    // Both would be as soon, so that the one with fewer bytes gets it, until it has as many as the other.
    assert_eq!(members, [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0]);
}
