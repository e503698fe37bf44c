//! What the recorder says of the take under way spares readers the bodies of its chunks, and nothing else.

use format::{ChunkRecord, Place};
use longtake_recorder as recorder;
use recorder::TimeRange;
use recorder::open::{Look, Written, open_to_read};
use recorder::takes::Catalog;
use uuid::Uuid;

use crate::hand::{Asked, Hand, config, image};
use crate::looking_again::{damage, head};
use crate::recovery::{all, with_array};

type Chunk = (Place, ChunkRecord);

/// A member with an open segment, the segment's chunks, and one with packets between the first and the last of them.
pub fn open_segment() -> (u16, Vec<Chunk>, usize) {
    let inside = |member: u16| {
        let chunks = head(&all(), usize::from(member));
        let inner = 1..chunks.len().saturating_sub(1);
        let at = inner.into_iter().find(|&at| chunks[at].1.summary.packets > 0)?;
        Some((member, chunks, at))
    };
    (0..4).find_map(inside).expect("there is one")
}

/// All chunks up to the last one of these are written.
fn all_of(chunks: &[Chunk]) -> Written {
    let (_, last) = chunks.last().expect("there are some");
    let (take, through) = (last.take.uuid, last.sequence);
    Written { take, through, under_way: Vec::new(), working: vec![true; 4] }
}

/// How many chunks of the segment a look finds where the body of the one in the middle is torn.
fn found(change: impl FnOnce(&Chunk, &mut Written)) -> (usize, usize, usize) {
    let (member, chunks, at) = open_segment();
    let mut torn = all();
    damage(&mut torn, &chunks[at], 4096);
    let mut written = all_of(&chunks);
    change(&chunks[at], &mut written);
    let found = with_array(&mut torn, false, |reader, _| {
        let look = Look { written: Some(&written), ..Look::default() };
        let image = open_to_read(reader, look).expect("the array opens");
        let catalog = Catalog::load(reader, &image, TimeRange::ALL).expect("it can be listed");
        let last = catalog.entries.last().map(|entry| entry.record.sequence);
        assert!(last <= Some(written.through), "{last:?} is not written");
        image.members[usize::from(member)].head.as_ref().map_or(0, |head| head.chunks.len())
    });
    (found.expect("the array opens"), at, chunks.len())
}

#[test]
fn chunks_that_are_written_are_not_read() {
    let (found, _, all) = found(|_, _| ());
    assert_eq!(found, all);
}

#[test]
fn chunks_under_way_are_read() {
    let (found, at, _) = found(|(_, record), written| written.under_way.push(record.sequence));
    assert_eq!(found, at);
}

#[test]
fn chunks_on_a_member_that_has_failed_are_read() {
    let (found, at, _) =
        found(|(place, _), written| written.working[usize::from(place.member)] = false);
    assert_eq!(found, at);
}

#[test]
fn chunks_of_other_takes_are_read() {
    let (found, at, _) = found(|_, written| written.take = Uuid::from_u128(7));
    assert_eq!(found, at);
}

#[test]
fn chunks_that_were_written_since_are_left_out() {
    let (found, at, _) = found(|(_, record), written| written.through = record.sequence);
    assert_eq!(found, at + 1);
}

#[test]
fn the_recorder_tells_how_many_chunks_wait_for_a_place() {
    let mut hand = Hand::new(config(), image(0, 8, &[&[], &[]]));
    // Two members take four chunks each at once.
    for (chunks, waiting) in [(0, 0), (8, 0), (1, 1), (2, 3)] {
        (0..chunks).for_each(|_| hand.chunk(4096, (1, 2)));
        assert_eq!(hand.core.chunks_waiting(), waiting);
    }
    hand.finish(|_| true);
    assert_eq!(hand.core.chunks_waiting(), 0);
}

/// Numbers of all chunks under way, and of the last one that is written, counted from the first.
fn told(hand: &Hand) -> (Option<u64>, Vec<u64>) {
    let first = hand.writes[0].record.sequence;
    let Written { through, under_way, take, working } = hand.core.written();
    assert_eq!((take, working), (hand.core.take().uuid, vec![true; 2]));
    (through.checked_sub(first), under_way.iter().map(|number| number - first).collect())
}

#[test]
fn the_recorder_tells_which_chunks_are_written_and_which_before_them_are_not() {
    let mut hand = Hand::new(config(), image(0, 8, &[&[], &[]]));
    (0..4).for_each(|_| hand.chunk(4096, (1, 2)));
    assert_eq!(told(&hand), (None, vec![]));
    let on = |hand: &Hand, member| {
        hand.asked(|command| command.member == member && command.asked == Asked::Chunk)
    };
    let numbers = |member| {
        let of = hand.writes.iter().enumerate().filter(|(_, w)| w.place.member == member);
        of.map(|(at, _)| at as u64).collect::<Vec<_>>()
    };
    let (one, other) = (numbers(0), numbers(1));
    assert!(one.len() == 2 && other.len() == 2, "{one:?} {other:?}");
    // The second chunk of a member counts when the first one is there, too.
    let [first, second] = on(&hand, 1)[..] else { panic!("two are under way") };
    hand.done(second, Ok(()));
    assert_eq!(told(&hand), (None, vec![]));
    hand.done(first, Ok(()));
    let before: Vec<u64> = one.iter().copied().filter(|&number| number < other[1]).collect();
    assert_eq!(told(&hand), (Some(other[1]), before));
    on(&hand, 0).into_iter().for_each(|tag| hand.done(tag, Ok(())));
    assert_eq!(told(&hand), (Some(3), vec![]));
}
