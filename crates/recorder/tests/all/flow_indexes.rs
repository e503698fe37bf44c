//! Flow indexes by hand: the room that segments keep for them, and when one is written.

use crate::hand::{Asked, Hand, LONG, SEGMENT, config, image, live};
use base::Instant;
use longtake_recorder::{Config, Event, FlowIndexPart, Input, WhenFull};

/// A ring of so many segments on one member, which keeps room for flow indexes or doesn't.
fn ring(segments: u64, flow_indexes: bool) -> Hand {
    let config = Config { when_full: WhenFull::Wrap, flow_indexes, ..config() };
    Hand::new(config, image(0, segments, &[&[]]))
}

fn chunk(hand: &mut Hand, length: u32) {
    hand.chunk(length, (100_000, 100_001));
}

/// The segment that each chunk was written to.
fn segments(hand: &Hand) -> Vec<u64> {
    hand.writes.iter().map(|w| (w.place.offset - (1 << 20)) / SEGMENT).collect()
}

/// A flow index of what these writes, by their numbers, have filled a segment with.
fn index(hand: &Hand, segment: u64, (first, last): (usize, usize)) -> Input {
    let sequence = |at: usize| hand.writes[at].record.sequence;
    Input::FlowIndex(FlowIndexPart {
        member: 0,
        segment,
        sequences: (sequence(first), sequence(last)),
        offset: (1 << 20) + (segment + 1) * SEGMENT - 8192,
        bytes: vec![0; 4096].into(),
    })
}

fn writes_of_indexes(hand: &Hand) -> usize {
    hand.asked(|c| c.asked == Asked::FlowIndex).len()
}

#[test]
fn a_segment_keeps_room_for_its_flow_index() {
    for (flow_indexes, expected) in [(true, [0, 0, 0, 0, 0, 1]), (false, [0; 6])] {
        let mut hand = ring(3, flow_indexes);
        for length in [LONG, LONG, LONG, LONG, 4096, 4096] {
            chunk(&mut hand, length);
            hand.settle();
        }
        assert_eq!(segments(&hand), expected, "with room for flow indexes: {flow_indexes}");
    }
}

#[test]
fn a_flow_index_is_written_only_into_the_segment_that_it_is_about() {
    let mut hand = ring(3, true);
    for _ in 0..5 {
        chunk(&mut hand, LONG);
        hand.settle();
    }
    assert_eq!(segments(&hand), [0, 0, 0, 0, 1]);
    // The segment that is being filled takes none, nor one of other chunks, nor one that isn't there.
    for (segment, about) in [(1, (4, 4)), (0, (0, 2)), (0, (1, 3)), (2, (0, 3)), (9, (0, 3))] {
        hand.tell(index(&hand, segment, about));
        assert_eq!(writes_of_indexes(&hand), 0, "segment {segment}, chunks {about:?}");
    }
    hand.tell(index(&hand, 0, (0, 3)));
    assert_eq!(writes_of_indexes(&hand), 1);
}

#[test]
fn a_segment_is_not_reused_before_its_flow_index_is_written() {
    let mut hand = ring(3, true);
    for _ in 0..12 {
        chunk(&mut hand, LONG);
        hand.settle();
    }
    // The next segment to be reused takes no index: the recording would have to wait for it.
    hand.tell(index(&hand, 0, (0, 3)));
    assert_eq!(writes_of_indexes(&hand), 0);
    hand.tell(index(&hand, 1, (4, 7)));
    let under_way = hand.asked(|c| c.asked == Asked::FlowIndex);
    for _ in 0..5 {
        chunk(&mut hand, LONG);
        hand.finish(|c| c.asked != Asked::FlowIndex);
    }
    assert_eq!((segments(&hand)[12..].to_vec(), under_way.len()), (vec![0; 4], 1), "it waits");
    hand.done(under_way[0], Ok(()));
    assert_eq!(segments(&hand)[16..], [1]);
    // What was made of the lap before comes too late.
    hand.settle();
    hand.tell(index(&hand, 1, (4, 7)));
    assert_eq!(writes_of_indexes(&hand), 0);
}

#[test]
fn a_segment_that_was_given_up_ahead_takes_no_flow_index() {
    let config =
        Config { when_full: WhenFull::Wrap, trim_ahead: 1, flow_indexes: true, ..config() };
    let held: Vec<_> = (0..4).map(|n| live(10 * n, 10 * n + 3, (n + 1, n + 2))).collect();
    let mut hand = Hand::new(config, image(0, 4, &[&held]));
    chunk(&mut hand, LONG);
    let given_up = hand.saw(|event| matches!(event, Event::Reused { segment: 1, .. }));
    assert_eq!(given_up, 1);
    for (segment, written) in [(1, 0), (2, 1)] {
        let sequences = (10 * segment, 10 * segment + 3);
        let bytes = vec![0; 4096].into();
        let part = FlowIndexPart { member: 0, segment, sequences, offset: 2 << 20, bytes };
        hand.tell(Input::FlowIndex(part));
        assert_eq!(writes_of_indexes(&hand), written, "segment {segment}");
    }
}

#[test]
fn a_flow_index_is_written_and_flushed_when_the_take_is_over() {
    let mut hand = ring(3, true);
    for _ in 0..5 {
        chunk(&mut hand, LONG);
    }
    hand.settle();
    hand.tell(Input::Stop);
    hand.settle();
    hand.end();
    hand.settle();
    assert!(hand.core.finished());
    hand.tell(index(&hand, 0, (0, 3)));
    hand.finish(|c| c.asked == Asked::FlowIndex);
    assert_eq!(hand.asked(|c| c.asked == Asked::Flush).len(), 1, "at {:?}", hand.now);
    hand.settle();
    assert!(hand.core.finished() && hand.now == Instant::START);
}

#[test]
fn the_chunks_of_the_segments_that_are_being_filled_are_known() {
    let mut hand = ring(3, true);
    for _ in 0..6 {
        chunk(&mut hand, LONG);
    }
    hand.settle();
    let open: Vec<(u64, Vec<u64>)> = hand
        .core
        .open_segments()
        .map(|(segment, chunks)| (segment, chunks.iter().map(|(_, c)| c.sequence).collect()))
        .collect();
    let last: Vec<u64> = hand.writes[4..].iter().map(|w| w.record.sequence).collect();
    assert_eq!(open, [(1, last)]);
}
