//! Which members are out of date: those that lack takes of which the others have enough chunks, and those whose chunks are all
//! older than the others'. And what counts as overwritten of what such a member holds.

use crate::hand::{image, live};
use crate::media::{TAKE, record};
use base::Timestamp;
use format::{ChunkRecord, Place, TakeId};
use longtake_recorder::ArrayImage;
use longtake_recorder::open::{HeadImage, Live, Segment};
use longtake_recorder::stale::{Stale, members, overwritten};
use longtake_recorder::takes::{Catalog, Entry};
use uuid::Uuid;

/// When the take that a member misses began, and its first number.
const STARTED: u64 = 200;
const FIRST: u64 = 20;

/// So many chunks of a take that began with this number, at the head of a member.
fn at_head(image: &mut ArrayImage, member: usize, first_sequence: u64, count: u64) {
    let started = Timestamp::from_nanos(STARTED);
    let take = TakeId { uuid: Uuid::from_u128(9), started, first_sequence };
    let place = Place { array: image.uuid, member: member as u16, members: 2, offset: 0 };
    let chunk = |n| (place, ChunkRecord { take, ..record(first_sequence + n, 4096, (300, 301)) });
    image.members[member].head = Some(HeadImage {
        segment: 0,
        used: 0,
        chunks: (0..count).map(chunk).collect(),
        closed: false,
        newest: None,
        reused_to_ns: Some(0),
    });
}

/// Two members: the first one has chunks up to number 19, the other these of a later take.
fn behind(first_sequence: u64, count: u64, full: &[Live]) -> ArrayImage {
    let old = [live(10, 19, (100, 199))];
    let mut image = image(0, 8, &[&old, full]);
    at_head(&mut image, 1, first_sequence, count);
    image
}

/// The first member, which lacks the take.
const LACKS: Stale = Stale {
    member: 0,
    newest: Some(Timestamp::from_nanos(199)),
    missed: Some(Timestamp::from_nanos(STARTED)),
    last_sequence: Some(19),
};

/// An open segment, which says nothing of how many chunks of a take there are.
fn open(first: u64, last: u64) -> Live {
    Live { indexed: false, ..live(first, last, (300, 301)) }
}

#[test]
fn a_member_without_a_chunk_of_a_later_take_is_out_of_date_if_the_others_have_four_for_each_member()
{
    let head = [open(20, 40)];
    assert_eq!(members(&behind(FIRST, 7, &head)), []);
    assert_eq!(members(&behind(FIRST, 8, &head)), [LACKS]);
    // The member may have chunks of a take that began with its last number.
    assert_eq!(members(&behind(19, 8, &head)), []);
    // A third member, and with it four chunks more.
    let three = |count| {
        let mut image = image(0, 8, &[&[live(10, 19, (100, 199))], &head, &[open(21, 41)]]);
        at_head(&mut image, 1, FIRST, count);
        at_head(&mut image, 2, FIRST, 4);
        members(&image)
    };
    assert_eq!((three(7), three(8)), (vec![], vec![LACKS]));
}

#[test]
fn a_full_segment_behind_the_start_of_a_take_that_is_missed_counts_as_four_of_its_chunks() {
    let full = |first| live(first, first + 9, (300, 301));
    // One member has older chunks, so that no member counts as lapped.
    let older = [open(5, 9)];
    let found =
        |count, segments: &[Live]| members(&behind(FIRST, count, &[segments, &older].concat()));
    assert_eq!(found(3, &[full(20), open(40, 41)]), []);
    assert_eq!(found(4, &[full(20), open(40, 41)]), [LACKS]);
    assert_eq!(found(2, &[full(20), open(40, 41)]), []);
    // One that begins before the take may hold another one's chunks, and so may one that nobody has counted.
    assert_eq!(found(4, &[full(19), open(40, 41)]), []);
    assert_eq!(found(4, &[open(20, 29), open(40, 41)]), []);
}

#[test]
fn a_member_that_was_rebuilt_does_not_lack_what_was_recorded_before() {
    for (joined_ns, stale) in [(0, true), (STARTED - 1, true), (STARTED, false)] {
        let mut image = behind(FIRST, 8, &[open(20, 40)]);
        image.superblock.members[0].joined_ns = joined_ns;
        assert_eq!(members(&image), if stale { vec![LACKS] } else { vec![] }, "{joined_ns}");
    }
}

#[test]
fn an_empty_member_lacks_every_take_and_a_missing_one_is_not_out_of_date() {
    let mut image = behind(FIRST, 8, &[open(20, 40)]);
    image.members[0].segments.fill(Segment::Empty);
    let empty = Stale { newest: None, last_sequence: None, ..LACKS };
    assert_eq!(members(&image), [empty]);
    // Nothing but the end of a take has no packet time.
    image.members[0].segments[0] = Segment::Live(live(19, 19, (u64::MAX, 0)));
    assert_eq!(members(&image), [Stale { newest: None, ..LACKS }]);
    image.members[0].segments.clear();
    assert_eq!(members(&image), []);
}

#[test]
fn a_member_is_lapped_if_all_that_the_others_hold_is_newer_and_more_than_a_segment() {
    let old = [live(1, 9, (100, 199))];
    let one = [live(10, 19, (200, 299)), live(20, 29, (300, 399))];
    let other = [live(30, 39, (200, 299)), live(40, 49, (300, 399))];
    // The others have come round since: of no take is it known that it was missed.
    let lapped = Stale { missed: None, last_sequence: Some(9), ..LACKS };
    let found = |held: &[&[Live]]| members(&image(0, 8, held));
    assert_eq!(found(&[&old, &one, &other]), [lapped]);
    assert_eq!(found(&[&one, &old, &other]), [Stale { member: 1, ..lapped }]);
    assert_eq!(found(&[&old, &one[..1], &other]), []);
    assert_eq!(found(&[&old, &one, &other[..1]]), []);
    // One chunk that is as old is enough to tell that it was there.
    let as_old = [live(9, 19, (200, 299)), one[1]];
    assert_eq!(found(&[&old, &as_old, &other]), []);
    assert_eq!(found(&[&[], &one, &other]), []);
    assert_eq!(found(&[&old]), []);
    // Too few chunks of a take to say that it was missed.
    let mut few = image(0, 8, &[&old, &one, &other]);
    at_head(&mut few, 1, 45, 1);
    assert_eq!(members(&few), [lapped]);
    // What is missing says nothing, and one that was rebuilt holds what there is.
    let mut image = image(0, 8, &[&old, &one, &other]);
    image.members[2].segments.clear();
    assert_eq!(members(&image), [lapped]);
    image.superblock.members[0].joined_ns = 1;
    assert_eq!(members(&image), []);
    image.superblock.members[0].joined_ns = 0;
    image.members[1].segments.clear();
    assert_eq!(members(&image), []);
}

#[test]
fn of_a_member_that_is_out_of_date_what_the_ring_gave_up_is_overwritten() {
    let entry = |&(member, sequence): &(u16, u64)| {
        let place = Place { array: Uuid::from_u128(7), member, members: 2, offset: sequence << 16 };
        Entry { place, record: ChunkRecord { take: TAKE, ..record(sequence, 4096, (1, 2)) } }
    };
    let count = |last_sequence, reused, recovered: &[u64], places: &[(u16, u64)]| {
        let entries = places.iter().map(entry).collect();
        let recovered = recovered.iter().copied().collect();
        let catalog = Catalog { reused, recovered, ..Catalog::of(entries) };
        overwritten(&[Stale { last_sequence, ..LACKS }], &catalog)
    };
    let old = [(0, 10), (0, 12), (0, 13)];
    assert_eq!(count(Some(19), Some(12), &[], &old), 2);
    assert_eq!(count(Some(19), Some(19), &[], &old), 3);
    assert_eq!(count(Some(19), Some(9), &[], &old), 0);
    assert_eq!(count(Some(19), None, &[], &old), 0);
    // What has later numbers than it had when it was found so was written to it since.
    assert_eq!(count(Some(12), Some(19), &[], &old), 2);
    assert_eq!(count(Some(9), Some(19), &[], &old), 0);
    // Parity gave it back: it is nowhere.
    assert_eq!(count(Some(19), Some(19), &[12], &old), 2);
    assert_eq!(count(Some(19), Some(19), &[], &[(1, 10), (1, 12), (0, 13)]), 1);
    assert_eq!(overwritten(&[], &Catalog::of(old.iter().map(entry).collect())), 0);
}
