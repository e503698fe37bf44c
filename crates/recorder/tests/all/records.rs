//! The table of takes that every member has: how records get their numbers, which of several of a take counts, and what is
//! entered of a take that has ended, or was cut short, without one.

use crate::listing::on_record;
use crate::media::{Media, TAKE, record};
use crate::rereading::{array, reader_of};
use base::DriveId;
use format::take_record::{TAKE_RECORD_BYTES, TAKE_RECORDS_MAX};
use format::{ChunkRecord, ChunkSummary, Count, TakeId, TakeRecord};
use longtake_recorder::open::open;
use longtake_recorder::take_records::TakeRecords;
use uuid::Uuid;

/// The record of a take of its own.
fn of_take(number: u64) -> TakeRecord {
    let take =
        TakeId { uuid: Uuid::from_u128(number.into()), first_sequence: 100 * number, ..TAKE };
    TakeRecord { take, ..on_record(100 * number + 9, 109, true) }
}

#[test]
fn a_take_that_is_entered_late_gets_a_number_that_no_record_has_had() {
    let mut records = TakeRecords::default();
    // While the one in the middle is written, what lies in the last one's slot stays.
    [1, 3, 2].into_iter().for_each(|take| records.enter(of_take(take)));
    let found: Vec<_> = records.iter().map(|record| (record.take, record.number)).collect();
    assert_eq!(found, [(of_take(1).take, 0), (of_take(2).take, 2), (of_take(3).take, 3)]);
}

#[test]
fn a_record_that_tells_no_more_of_a_take_than_the_one_that_is_there_changes_nothing() {
    let mut records = TakeRecords::default();
    records.enter(of_take(1));
    let mut other = of_take(1);
    other.ledger.store(Count::new(1, 50));
    records.enter(other);
    assert_eq!(records.iter().collect::<Vec<_>>(), [&of_take(1)]);
    // Each of these tells more by one.
    let more = [
        TakeRecord { last_ns: other.last_ns + 1, ..other },
        TakeRecord { last_sequence: other.last_sequence + 1, ..other },
    ];
    for more in more {
        records.enter(more);
        assert_eq!(records.iter().collect::<Vec<_>>(), [&more]);
    }
}

#[test]
fn the_newest_take_is_entered_as_its_chunks_show_it_though_an_older_look_at_it_is_on_record() {
    let summary = ChunkSummary { length: 4096, sealed_ns: 710, end: true, ..ChunkSummary::EMPTY };
    let end = ChunkRecord { summary, ..record(7, 4096, (700, 709)) };
    for (newest, ended) in [(end, true), (record(7, 4096, (700, 709)), false)] {
        let mut media = Media::new(1, 4, 256 << 10);
        media.chunks(0, 0, &[record(6, 4096, (600, 609)), newest]);
        // Members with the later chunks were away when it was written.
        media.take_record(0, &on_record(5, 0, false));
        let entered = media.open(64 << 10, false, |reader, image| {
            let mut records = TakeRecords::read(reader, image).expect("the drive reads");
            records.enter_newest(image);
            records.get(TAKE.uuid).map(|record| (record.last_sequence, record.ended))
        });
        assert_eq!(entered.expect("the array opens"), Some((7, ended)));
    }
}

#[test]
fn a_full_table_is_read_from_its_start_to_its_end_and_no_further() {
    let (mut bank, memory) = array(4);
    let image = open(&mut reader_of(&mut bank, &memory)).expect("the array opens");
    for number in 0..TAKE_RECORDS_MAX {
        let record = TakeRecord { number, ..of_take(number + 1) };
        for member in &image.members {
            let (at, bytes) = (TakeRecord::offset(number), record.encode(image.uuid));
            bank.bank.poke(DriveId(member.drive.0), at, &bytes);
        }
    }
    bank.bytes = 0;
    // The bank accepts no command that a drive would refuse.
    let records = TakeRecords::read(&mut reader_of(&mut bank, &memory), &image);
    assert_eq!(records.expect("drives that read").iter().count() as u64, TAKE_RECORDS_MAX);
    let table_bytes = TAKE_RECORDS_MAX * TAKE_RECORD_BYTES as u64;
    assert_eq!(bank.bytes, image.members.len() as u64 * table_bytes);
}
