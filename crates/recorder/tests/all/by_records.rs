//! What a member's own records of takes say spares readers the bodies of chunks that were flushed there, and nothing else.

use format::{ChunkRecord, Place, TakeRecord};
use longtake_recorder as recorder;
use recorder::TimeRange;
use recorder::open::{Look, open_to_read};
use uuid::Uuid;

use crate::asking::open_segment;
use crate::looking_again::damage;
use crate::recovery::{Members, all, read, read_of, with_array};

const BY_RECORDS: Look<'_> = Look { degraded: false, known: None, written: None, by_records: true };

/// A record of the take of these chunks, which says that it ended behind the last of them.
fn ended(chunks: &[(Place, ChunkRecord)]) -> TakeRecord {
    let (_, last) = chunks.last().expect("there are some");
    TakeRecord {
        number: 0,
        take: last.take,
        ended: true,
        last_sequence: last.sequence,
        first_ns: 1,
        last_ns: 2,
        ledger: last.ledger,
    }
}

/// Puts a record in the table of a member, instead of what it has.
fn put(members: &mut Members, member: u16, array: Uuid, record: &TakeRecord) {
    let bytes = members[usize::from(member)].as_mut().expect("the member is there");
    let at = TakeRecord::offset(record.number) as usize;
    let encoded = record.encode(array);
    bytes[at..at + encoded.len()].copy_from_slice(&encoded);
}

/// How many chunks of an open segment a look finds where the body of one within is torn, and that one's place, and how many there are.
fn found(look: Look<'_>, change: impl FnOnce(u64, &mut TakeRecord, &mut u16)) -> [usize; 3] {
    let (member, chunks, at) = open_segment();
    let mut torn = all();
    damage(&mut torn, &chunks[at], 4096);
    let (mut record, mut on) = (ended(&chunks), member);
    change(chunks[at].1.sequence, &mut record, &mut on);
    put(&mut torn, on, chunks[at].0.array, &record);
    let found = with_array(&mut torn, false, |reader, _| {
        let image = open_to_read(reader, look).expect("the array opens");
        image.members[usize::from(member)].head.as_ref().map_or(0, |head| head.chunks.len())
    });
    [found.expect("the array opens"), at, chunks.len()]
}

#[test]
fn chunks_of_a_take_that_has_ended_are_not_read() {
    let [found, _, all] = found(BY_RECORDS, |_, _, _| ());
    assert_eq!(found, all);
}

#[test]
fn a_look_that_is_not_by_records_reads_them() {
    let [found, at, _] = found(Look::default(), |_, _, _| ());
    assert_eq!(found, at);
}

#[test]
fn chunks_of_a_take_that_was_cut_short_are_read() {
    let [found, at, _] = found(BY_RECORDS, |_, record, _| record.ended = false);
    assert_eq!(found, at);
}

#[test]
fn chunks_of_a_take_that_a_later_recorder_has_entered_are_read() {
    let [found, at, _] =
        found(BY_RECORDS, |_, record, _| (record.first_ns, record.last_ns) = (u64::MAX, 0));
    assert_eq!(found, at);
}

#[test]
fn chunks_of_other_takes_are_read() {
    let [found, at, _] = found(BY_RECORDS, |_, record, _| record.take.uuid = Uuid::from_u128(7));
    assert_eq!(found, at);
}

#[test]
fn a_chunk_behind_the_end_of_its_take_is_read_and_the_last_one_is_not() {
    let [last, at, _] = found(BY_RECORDS, |torn, record, _| record.last_sequence = torn);
    assert!(last > at, "the torn chunk is the last one of the take");
    let [behind, at, _] = found(BY_RECORDS, |torn, record, _| record.last_sequence = torn - 1);
    assert_eq!(behind, at);
}

#[test]
fn what_another_member_has_on_record_counts_for_that_member() {
    let [found, at, _] = found(BY_RECORDS, |_, _, on| *on = (*on + 1) % 4);
    assert_eq!(found, at);
}

#[test]
fn a_damaged_chunk_that_was_not_read_is_made_good_by_parity_once_it_is() {
    let (member, chunks, at) = open_segment();
    let (whole, _) = read(&mut all(), TimeRange::ALL);
    let mut torn = all();
    damage(&mut torn, &chunks[at], 4096);
    put(&mut torn, member, chunks[at].0.array, &ended(&chunks));
    let came = with_array(&mut torn, false, |reader, _| {
        let image = open_to_read(reader, BY_RECORDS).expect("the array opens");
        read_of(reader, &image, TimeRange::ALL)
    });
    let (came, catalog) = came.expect("the array opens");
    assert!(catalog.recovered.is_empty(), "it was listed as it lies there");
    assert_eq!((came.recovered.len(), came.lost.len()), (1, 0));
    assert_eq!(came.packets, whole.packets);
}
