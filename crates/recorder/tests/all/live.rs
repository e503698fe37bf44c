//! Looking at an array while it is recorded on: which chunks are waited for, how long, and which
//! are listed in the end.

use base::{Bank, Buffers, DriveId, Duration};
use format::{ChunkRecord, Place, TakeId};
use longtake_recorder::open::{Look, Written, open_to_read};
use longtake_recorder::reader::Reader;
use longtake_recorder::takes::{Catalog, Entry};
use longtake_recorder::{ArrayImage, TimeRange, live};
use uuid::Uuid;

use crate::media::{Media, TAKE, record};
use crate::recovery::{FIRST, all, with_array};
use crate::rereading::{Changing, array, chunks, reader_of};

const NOW: Duration = Duration::ZERO;

/// Between the first look and the second one, which are 50 ms apart.
const SOON: Duration = Duration::from_millis(40);

/// Between the second look and the third.
const LATE: Duration = Duration::from_millis(80);

/// A chunk of one packet.
fn chunk(sequence: u64) -> ChunkRecord {
    record(sequence, 4096, (sequence * 100, sequence * 100 + 9))
}

/// Chunks one behind the other on each of two members.
fn two(members: [&[ChunkRecord]; 2]) -> (Media, Vec<Entry>) {
    let mut media = Media::new(2, 4, 256 << 10);
    let entries = (0..).zip(members).flat_map(|(member, records)| media.chunks(member, 0, records));
    let entries = entries.collect();
    (media, entries)
}

/// The chunks that a listing has, and how often the recorder was asked before a further look.
fn listed<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
) -> (Catalog, u32) {
    let (mut image, mut asked) = (image.clone(), 0);
    let written = image.written.clone();
    let ask = |_: &B| {
        asked += 1;
        written.clone()
    };
    let catalog = live::catalog(reader, &mut image, false, TimeRange::ALL, ask);
    (catalog.expect("drives that read"), asked)
}

/// The same of these members, which change meanwhile.
fn listed_while(
    media: &Media,
    written: Option<&Written>,
    changes: &[(Duration, &Entry, Vec<u8>)],
) -> (Catalog, u32) {
    let (bank, memory) = media.bank(64 << 10);
    let mut bank = Changing::new(bank);
    for (after, entry, bytes) in changes {
        bank.becomes(*after, entry, bytes.clone());
    }
    let mut reader = reader_of(&mut bank, &memory);
    let look = Look { written, ..Look::default() };
    let image = open_to_read(&mut reader, look).expect("the array opens");
    listed(&mut reader, &image)
}

fn numbers((catalog, asked): (Catalog, u32)) -> (Vec<u64>, u32) {
    (catalog.entries.iter().map(|entry| entry.record.sequence).collect(), asked)
}

/// What a recorder says that has written all chunks up to this one.
fn through(take: TakeId, through: u64) -> Written {
    Written { take: take.uuid, through, under_way: Vec::new(), working: vec![true; 4] }
}

/// Nothing lies there yet.
fn nothing() -> Vec<u8> {
    vec![0; 4096]
}

#[test]
fn an_array_without_a_gap_is_looked_at_again_once_unless_the_recorder_says_how_far_it_is_written() {
    let (media, _) = two([&[chunk(1), chunk(3)], &[chunk(2), chunk(4)]]);
    assert_eq!(numbers(listed_while(&media, None, &[])), (vec![1, 2, 3, 4], 1));
    let written = through(TAKE, 3);
    assert_eq!(numbers(listed_while(&media, Some(&written), &[])), (vec![1, 2, 3], 0));
}

#[test]
fn a_chunk_before_the_last_one_is_waited_for_and_later_ones_are_not_listed() {
    let (media, entries) = two([&[chunk(1), chunk(3)], &[chunk(2), chunk(4)]]);
    let late = &entries[2];
    let changes = [(NOW, late, nothing()), (LATE, late, media.bytes(late))];
    let written = Written { under_way: vec![2], ..through(TAKE, 3) };
    for written in [None, Some(&written)] {
        assert_eq!(numbers(listed_while(&media, written, &changes)), (vec![1, 2, 3], 2));
    }
}

#[test]
fn a_gap_that_stays_is_listed_after_forty_further_looks() {
    let (media, entries) = two([&[chunk(1), chunk(3)], &[chunk(2)]]);
    let looked = listed_while(&media, None, &[(NOW, &entries[2], nothing())]);
    assert_eq!(looked.0.takes()[0].gaps.len(), 1);
    assert_eq!(numbers(looked), (vec![1, 3], 40));
}

#[test]
fn what_a_ring_reuses_between_two_looks_stays_listed_with_what_it_said_of_the_ring() {
    let reused = |reused, record| ChunkRecord { reused: Some(reused), ..record };
    let (media, entries) = two([&[reused(4, chunk(11))], &[reused(10, chunk(12))]]);
    let looked = listed_while(&media, None, &[(SOON, &entries[1], nothing())]);
    assert_eq!(looked.0.reused, Some(10));
    assert_eq!(numbers(looked), (vec![11, 12], 1));
}

#[test]
fn a_chunk_that_was_written_anew_elsewhere_is_listed_and_others_as_late_are_not() {
    for (root, left) in [(3, vec![1, 2, 4, 5, 6]), (4, vec![1, 2, 3, 5, 6])] {
        let anew = ChunkRecord { replaces: Some(root), ledger: chunk(5).ledger, ..chunk(6) };
        let (media, entries) =
            two([&[chunk(1), chunk(3), chunk(5), chunk(7)], &[chunk(2), chunk(4), anew]]);
        let mut changes = Vec::new();
        for late in [&entries[2], &entries[6]] {
            changes.extend([(NOW, late, nothing()), (SOON, late, media.bytes(late))]);
        }
        assert_eq!(numbers(listed_while(&media, None, &changes)), (left, 1), "instead of {root}");
    }
}

#[test]
fn a_take_that_ends_meanwhile_is_listed_whole_even_if_its_first_chunk_was_the_last_one() {
    let mut end = chunk(2);
    end.summary.end = true;
    let take = TakeId { uuid: Uuid::from_u128(9), first_sequence: 10, ..TAKE };
    let of = |sequence: u64, record: ChunkRecord| ChunkRecord { take, sequence, ..record };
    let (media, entries) =
        two([&[chunk(1), end, of(10, chunk(1)), of(11, chunk(2)), of(12, end)], &[]]);
    let late = &entries[3];
    let changes = [(NOW, late, nothing()), (SOON, late, media.bytes(late))];
    let looked = listed_while(&media, None, &changes);
    assert_eq!(numbers(looked), (vec![1, 2, 10, 11, 12], 1));
}

#[test]
fn a_chunk_that_parity_gives_back_is_waited_for_on_a_member_that_is_there() {
    let (late, last) = (chunks()[7], chunks()[14]);
    let (mut bank, memory) = array(4);
    let Place { member, offset, .. } = late.place;
    let whole = bank.bank.peek(DriveId(member), offset, 4096);
    bank.becomes(NOW, &late, nothing());
    bank.becomes(LATE, &late, whole);
    let mut reader = reader_of(&mut bank, &memory);
    let written = through(last.record.take, last.record.sequence);
    let written = Written { under_way: vec![late.record.sequence], ..written };
    let look = Look { written: Some(&written), ..Look::default() };
    let image = open_to_read(&mut reader, look).expect("the array opens");
    let first = Catalog::load(&mut reader, &image, TimeRange::ALL).expect("drives that read");
    assert!(first.recovered.contains(&(FIRST + 7)));
    let (catalog, asked) = listed(&mut reader, &image);
    assert_eq!((catalog.recovered, asked), ([].into(), 2));
}

#[test]
fn chunks_that_parity_gives_back_are_not_waited_for_on_a_missing_member() {
    let mut members = all();
    members[1] = None;
    let (catalog, asked) = with_array(&mut members, false, listed).expect("the array opens");
    assert!(!catalog.recovered.is_empty());
    assert_eq!(asked, 1);
}
