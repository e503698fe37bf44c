//! A second look at an array goes on from what the first one has found, and finds what a first look would.

use format::{ChunkRecord, Place};
use longtake_recorder as recorder;
use recorder::TimeRange;
use recorder::extract::extract;
use recorder::open::{Look, open_to_read};
use recorder::takes::Catalog;

use crate::recovery::{FIRST, Members, Packets, all, with_array};

type Chunk = (Place, ChunkRecord);

/// A look after one that found this.
fn second(known: &recorder::ArrayImage) -> Look<'_> {
    Look { known: Some(known), ..Look::default() }
}

/// The chunks of a member's head.
pub fn head(members: &Members, member: usize) -> Vec<Chunk> {
    let head =
        with_array(&mut members.clone(), false, |_, image| image.members[member].head.clone());
    let head = head.expect("the array opens");
    head.expect("the member is not empty").chunks
}

/// Turns over a byte of a chunk, so far behind its start.
pub fn damage(members: &mut Members, chunk: &Chunk, behind: u64) {
    let (Place { member, offset, .. }, _) = *chunk;
    let bytes = members[usize::from(member)].as_mut().expect("the member is there");
    bytes[(offset + behind) as usize] ^= 1;
}

/// What a second look finds on `later`, after a first one at `earlier`; and what a first one would find there.
fn second_and_first(earlier: &Members, later: &Members) -> [String; 2] {
    let known = with_array(&mut earlier.clone(), false, |_, image| image.clone());
    let known = known.expect("the array opens");
    let both = with_array(&mut later.clone(), false, |reader, image| {
        let again = open_to_read(reader, second(&known)).expect("the array opens again");
        [format!("{again:?}"), format!("{image:?}")]
    });
    both.expect("the array opens")
}

/// A second look finds what a first one would, where one of these chunks of a member's head is damaged: later, or only before.
fn agrees(choose: impl Fn(&[Chunk]) -> Vec<Chunk>, is_lost_later: bool) {
    for member in 0..4 {
        let chunks = head(&all(), member);
        assert!(!chunks.is_empty(), "member {member} has an open segment");
        for chunk in choose(&chunks) {
            let mut without = all();
            damage(&mut without, &chunk, 0);
            let [again, anew] = match is_lost_later {
                true => second_and_first(&all(), &without),
                false => second_and_first(&without, &all()),
            };
            assert_eq!(again, anew, "without chunk {} of member {member}", chunk.1.sequence);
        }
    }
}

#[test]
fn chunks_that_came_since_are_found() {
    agrees(<[Chunk]>::to_vec, false);
}

#[test]
fn what_no_longer_stands_is_read_anew() {
    let ends =
        |chunks: &[Chunk]| chunks.first().into_iter().chain(chunks.last()).copied().collect();
    agrees(ends, true);
}

#[test]
fn what_a_ring_has_begun_to_overwrite_is_read_anew_though_its_last_chunk_is_damaged_too() {
    for member in 0..4 {
        let chunks = head(&all(), member);
        let [(place, record), .., last] = &chunks[..] else {
            panic!("member {member} has several")
        };
        let mut later = all();
        damage(&mut later, last, 0);
        let mut newer = *record;
        newer.summary.sealed_ns += 1;
        let bytes = later[member].as_mut().expect("the member is there");
        newer.stamp(place, &mut bytes[place.offset as usize..]);
        let [again, anew] = second_and_first(&all(), &later);
        assert_eq!(again, anew, "member {member}");
    }
}

#[test]
fn another_arrays_chunks_are_not_taken_for_its_own() {
    let known = with_array(&mut all(), false, |_, image| image.clone()).expect("the array opens");
    let other = recorder::ArrayImage { uuid: uuid::Uuid::from_u128(7), ..known };
    let both = with_array(&mut all(), false, |reader, image| {
        let again = open_to_read(reader, second(&other)).expect("the array opens again");
        (format!("{again:?}"), format!("{image:?}"))
    });
    let (again, anew) = both.expect("the array opens");
    assert_eq!(again, anew);
}

#[test]
fn known_chunks_are_not_read_again_and_one_that_was_damaged_since_is_reported_when_it_is_read() {
    let inside = |member| {
        let chunks = head(&all(), member);
        let inner = 1..chunks.len().saturating_sub(1);
        let at = inner.into_iter().find(|&at| chunks[at].1.summary.packets > 0)?;
        Some((member, at, chunks))
    };
    let (member, at, chunks) = (0..4)
        .find_map(inside)
        .expect("an open segment with packets between its first and last chunk");
    let middle = chunks[at];
    let known = with_array(&mut all(), false, |_, image| image.clone()).expect("the array opens");
    let mut damaged = all();
    damage(&mut damaged, &middle, 4096);
    let looked = with_array(&mut damaged, false, |reader, anew| {
        let again = open_to_read(reader, second(&known)).expect("the array opens again");
        let count = |image: &recorder::ArrayImage| {
            image.members[member].head.as_ref().map(|head| head.chunks.len())
        };
        assert_eq!([count(&again), count(anew)], [Some(chunks.len()), Some(at)]);
        let catalog = Catalog::load(reader, &again, TimeRange::ALL).expect("it can be listed");
        let listed = catalog.entries.iter().find(|e| e.record.sequence == middle.1.sequence);
        let entries: Vec<_> = listed.copied().into_iter().collect();
        let mut packets = Packets::default();
        extract(reader, &again, &entries, TimeRange::ALL, None, &mut packets).expect("it is read");
        packets
    });
    let Packets { packets, recovered, lost } = looked.expect("the array opens");
    // Its parity is not among what was listed for the extraction.
    assert_eq!((packets.len(), recovered, lost), (0, vec![], vec![middle.1.sequence - FIRST]));
}
