//! Holds the bytes of the ledger's accounts of truncated, cut and sliced packets to `docs/format.md`, sections 2 and 5.

// Under the name that every other crate knows it by.
extern crate longtake_format as format;

use base::Timestamp;
use format::chunk::{ChunkRecord, TakeId};
use format::parity::{Joined, LastParities};
use format::{ChunkWriter, Count, Ledger, Place, Stage};
use uuid::Uuid;

/// Where the record starts in the chunk, and a chunk's ledger in the record.
const RECORD: usize = 32;
const LEDGER: usize = RECORD + 56 + 104;

fn chunk(truncated: Count, group: Option<Joined>) -> Vec<u8> {
    retained(truncated, [Count::ZERO; 2], group)
}

/// A chunk of a take with so many packets truncated, cut and sliced.
fn retained(truncated: Count, [cut, sliced]: [Count; 2], group: Option<Joined>) -> Vec<u8> {
    let mut ledger = Ledger::default();
    ledger.store(Count::new(0x11, 0x12));
    for (number, stage) in (2u64..).zip(&Stage::ALL[..6]) {
        ledger.lose(*stage, Count::new(number * 16 + 1, number * 16 + 2));
    }
    ledger.truncated = truncated;
    ledger.lose(Stage::Cut, cut);
    ledger.sliced = sliced;
    let sealed = ChunkWriter::new(vec![0; 65_536], 4096, 65_536, 0).seal(&[], Timestamp::MIN, true);
    let record = ChunkRecord {
        take: TakeId { uuid: Uuid::nil(), started: Timestamp::MIN, first_sequence: 7 },
        sequence: 9,
        replaces: None,
        ledger,
        reused: None,
        reused_to_ns: 0,
        parity: None,
        group,
        last_parities: LastParities::default(),
        summary: sealed.summary,
    };
    let place = Place { array: Uuid::nil(), member: 0, members: 1, offset: 0 };
    let mut chunk = sealed.buffer;
    record.stamp(&place, &mut chunk);
    assert_eq!(ChunkRecord::read(&chunk), Ok((place, record)), "it reads back");
    chunk
}

fn pair(chunk: &[u8], number: usize) -> (u64, u64) {
    let at = LEDGER + 16 * number;
    let field = |at: usize| u64::from_le_bytes(chunk[at..at + 8].try_into().unwrap());
    (field(at), field(at + 8))
}

/// The versions that the record and the text of `shb_userappl` name.
fn versions(chunk: &[u8]) -> ((u16, u16), String) {
    let field = |at: usize| u16::from_le_bytes(chunk[at..at + 2].try_into().unwrap());
    let text = String::from_utf8(chunk[476..503].to_vec()).unwrap();
    ((field(RECORD + 10), field(RECORD + 12)), text)
}

#[test]
fn truncated_packets_are_the_ninth_pair_and_make_a_chunk_version_1_2() {
    let truncated = Count::new(0x0102_0304_0506_0708, 0x1112_1314_1516_1718);
    let chunk = chunk(truncated, None);
    for number in 2..8u64 {
        assert_eq!(pair(&chunk, number as usize), (number * 16 + 1, number * 16 + 2));
    }
    assert_eq!(pair(&chunk, 8), (truncated.packets, truncated.bytes));
    assert_eq!(pair(&chunk, 9), (0, 0), "nothing was cut");
    assert_eq!(versions(&chunk), ((1, 2), "Longtake (media format 1.2)".to_owned()));
}

#[test]
fn a_chunk_without_truncated_packets_keeps_its_version() {
    assert_eq!(versions(&chunk(Count::ZERO, None)).0, (1, 0));
    let group = Some(Joined { group: 8, of: 1 });
    assert_eq!(versions(&chunk(Count::ZERO, group)).0, (1, 1));
    assert_eq!(versions(&chunk(Count::new(0, 5), group)).0, (1, 2), "texts of interfaces alone");
}

#[test]
fn the_time_since_which_a_ring_holds_everything_makes_a_chunk_version_1_2() {
    let (place, record) = ChunkRecord::read(&chunk(Count::ZERO, None)).unwrap();
    let mut chunk = chunk(Count::ZERO, None);
    let record = ChunkRecord { reused_to_ns: 1, ..record };
    record.stamp(&place, &mut chunk);
    assert_eq!(ChunkRecord::read(&chunk), Ok((place, record)));
    assert_eq!(versions(&chunk), ((1, 2), "Longtake (media format 1.2)".to_owned()));
}

/// Where the pair of sliced packets starts in the chunk.
const SLICED: usize = RECORD + 56 + 344;

#[test]
fn cut_packets_are_the_tenth_pair_and_also_filtered_for_readers_that_do_not_know_them() {
    let chunk = retained(Count::ZERO, [Count::new(7, 700), Count::ZERO], None);
    assert_eq!(pair(&chunk, 9), (7, 700));
    // Stages begin with the third pair; the fourth of them is the filter's.
    assert_eq!(pair(&chunk, 5), (5 * 16 + 1 + 7, 5 * 16 + 2 + 700));
    let read = |number| pair(&chunk, number).0;
    assert_eq!(read(0), read(1) + (2..8).map(read).sum::<u64>(), "version 1.4 finds a balance");
    assert_eq!(versions(&chunk), ((1, 5), "Longtake (media format 1.5)".to_owned()));
}

#[test]
fn sliced_packets_stand_behind_the_reused_time_and_make_a_chunk_version_1_5() {
    let group = Some(Joined { group: 8, of: 1 });
    let sliced = Count::new(0x0102_0304_0506_0708, 0x1112_1314_1516_1718);
    let chunk = retained(Count::new(1, 1), [Count::ZERO, sliced], group);
    let field = |at: usize| u64::from_le_bytes(chunk[at..at + 8].try_into().unwrap());
    assert_eq!([field(SLICED), field(SLICED + 8)], [sliced.packets, sliced.bytes]);
    assert!(chunk[SLICED + 16..RECORD + 440].iter().all(|&byte| byte == 0), "still reserved");
    assert_eq!(versions(&chunk).0, (1, 5));
}
