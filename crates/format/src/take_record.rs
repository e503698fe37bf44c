//! What stays of a take when a ring has overwritten its chunks: one record in a table that lies in front of the data, where no ring
//! reaches (`docs/format.md`, section 10).

use base::Timestamp;
use uuid::Uuid;

use crate::chunk::TakeId;
use crate::crc::crc32c;
use crate::fields::{Get, Put};
use crate::ledger::{Count, Ledger};
use crate::section::{MINOR_RETENTION, MINOR_TAKE_RECORDS, VERSION};

/// Length of a record: a block of the drives with the smallest blocks, so that a power cut leaves each one old or new.
pub const TAKE_RECORD_BYTES: usize = 512;
/// Where the table starts on a member.
pub const TAKE_RECORDS_OFFSET: u64 = 128 << 10;
/// Slots in the table. The record after those takes the place of the oldest one.
pub const TAKE_RECORDS_MAX: u64 = 1536;

const MAGIC: &[u8; 8] = b"LTKTAKE\0";
const FLAG_ENDED: u32 = 1;
const CRC_AT: usize = TAKE_RECORD_BYTES - 4;

/// A take's account and its sequence numbers, as they were when it was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakeRecord {
    /// Counts the records of an array from 0; the slot follows from it.
    pub number: u64,
    /// The take.
    pub take: TakeId,
    /// Whether the take was ended. The record of one that was cut short covers what was found of it when the next take started.
    pub ended: bool,
    /// The greatest sequence number that was given out in it; one less than its first if none was.
    pub last_sequence: u64,
    /// Earliest packet time, ns since 1970; all ones without packets, or if the take was cut short.
    pub first_ns: u64,
    /// Latest packet time, ns since 1970; 0 without packets, or if the take was cut short.
    pub last_ns: u64,
    /// The account, as chunks carry it: what was given a number counts as stored.
    pub ledger: Ledger,
}

impl TakeRecord {
    /// Whether the take's own recorder wrote it for certain: only that one knows the times of packets.
    pub const fn is_of_its_recorder(&self) -> bool {
        self.first_ns != u64::MAX
    }

    /// Where a record of this number lies on every member, in bytes.
    pub const fn offset(number: u64) -> u64 {
        TAKE_RECORDS_OFFSET + number % TAKE_RECORDS_MAX * TAKE_RECORD_BYTES as u64
    }

    /// Its bytes, for this array.
    pub fn encode(&self, array: Uuid) -> [u8; TAKE_RECORD_BYTES] {
        let mut bytes = [0; TAKE_RECORD_BYTES];
        let mut put = Put::new(&mut bytes);
        let has_retention = self.ledger.has_retention();
        put.raw(MAGIC)
            .u16(VERSION.0)
            .u16(if has_retention { MINOR_RETENTION } else { MINOR_TAKE_RECORDS })
            .u32(if self.ended { FLAG_ENDED } else { 0 })
            .raw(array.as_bytes())
            .u64(self.number)
            .raw(self.take.uuid.as_bytes())
            .u64(self.take.started.as_nanos())
            .u64(self.take.first_sequence)
            .u64(self.last_sequence)
            .u64(self.first_ns)
            .u64(self.last_ns);
        self.ledger.put(&mut put);
        self.ledger.sliced.put(&mut put);
        let crc = crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The record that stands at `offset` on a member of `array`; None if no sound one of that array belongs there.
    pub fn read(bytes: &[u8], array: Uuid, offset: u64) -> Option<Self> {
        let bytes = bytes.get(..TAKE_RECORD_BYTES)?;
        if &bytes[..MAGIC.len()] != MAGIC
            || bytes[CRC_AT..] != crc32c(&bytes[..CRC_AT]).to_le_bytes()
        {
            return None;
        }
        let mut get = Get::new(&bytes[MAGIC.len()..CRC_AT]);
        let (major, _minor, flags) = (get.u16(), get.u16(), get.u32());
        let of_array = Uuid::from_bytes(get.raw());
        let number = get.u64();
        if major > VERSION.0 || of_array != array || Self::offset(number) != offset {
            return None;
        }
        let uuid = Uuid::from_bytes(get.raw());
        let (started, first_sequence) = (Timestamp::from_nanos(get.u64()), get.u64());
        let (last_sequence, first_ns, last_ns) = (get.u64(), get.u64(), get.u64());
        // Later numbers would not be left for the takes to come.
        if last_sequence >= 1 << 63 || last_sequence.saturating_add(1) < first_sequence {
            return None;
        }
        let mut ledger = Ledger::get(&mut get);
        ledger.sliced = Count::get(&mut get);
        let take = TakeId { uuid, started, first_sequence };
        let ended = flags & FLAG_ENDED != 0;
        Some(Self { number, take, ended, last_sequence, first_ns, last_ns, ledger })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{DATA_OFFSET, SUPERBLOCK_BYTES};
    use crate::ledger::Stage;

    fn record() -> TakeRecord {
        let mut ledger = Ledger::default();
        ledger.store(Count::new(97_814, 6_000_000));
        ledger.lose(Stage::KernelRing, Count::new(3, 0));
        TakeRecord {
            number: 5,
            take: TakeId {
                uuid: Uuid::from_u128(7),
                started: Timestamp::from_nanos(1_000),
                first_sequence: 40,
            },
            ended: true,
            last_sequence: 99,
            first_ns: 1_100,
            last_ns: 2_000,
            ledger,
        }
    }

    #[test]
    fn a_record_reads_back_in_its_place_of_its_array_and_nowhere_else() {
        let array = Uuid::from_u128(1);
        for number in [0, 5, TAKE_RECORDS_MAX - 1, TAKE_RECORDS_MAX, u64::MAX] {
            for ended in [true, false] {
                let record = TakeRecord { number, ended, ..record() };
                let (bytes, offset) = (record.encode(array), TakeRecord::offset(number));
                assert_eq!(TakeRecord::read(&bytes, array, offset), Some(record));
                assert_eq!(TakeRecord::read(&bytes, Uuid::from_u128(2), offset), None);
                assert_eq!(TakeRecord::read(&bytes, array, offset + 512), None);
                assert_eq!(TakeRecord::read(&bytes[..511], array, offset), None);
            }
        }
    }

    #[test]
    fn every_field_lies_where_the_format_says() {
        let bytes = record().encode(Uuid::from_u128(1));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(&bytes[..8], b"LTKTAKE\0");
        assert_eq!(bytes[8..16], [1, 0, 3, 0, 1, 0, 0, 0], "version and flags");
        assert_eq!(bytes[16..32], *Uuid::from_u128(1).as_bytes());
        assert_eq!(u64_at(32), 5, "number");
        assert_eq!(bytes[40..56], *Uuid::from_u128(7).as_bytes());
        assert_eq!([56, 64, 72].map(u64_at), [1_000, 40, 99], "start and sequence numbers");
        assert_eq!([80, 88].map(u64_at), [1_100, 2_000], "packet times");
        assert_eq!([96, 104].map(u64_at), [97_817, 6_000_000], "offered");
        assert_eq!([112, 120].map(u64_at), [97_814, 6_000_000], "stored");
        assert_eq!(u64_at(144), 3, "lost in the kernel ring");
        assert!(bytes[256..508].iter().all(|&byte| byte == 0));
        assert_eq!(bytes[508..], crc32c(&bytes[..508]).to_le_bytes());
    }

    #[test]
    fn cut_and_sliced_packets_stand_behind_the_others_and_make_it_version_1_5() {
        let (array, mut record) = (Uuid::from_u128(1), record());
        record.ledger.lose(Stage::Cut, Count::new(7, 700));
        record.ledger.sliced = Count::new(8, 900);
        let bytes = record.encode(array);
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(bytes[8..12], [1, 0, 5, 0], "version");
        assert_eq!([240, 248].map(u64_at), [7, 700], "cut");
        assert_eq!([256, 264].map(u64_at), [8, 900], "sliced");
        assert!(bytes[272..508].iter().all(|&byte| byte == 0));
        assert_eq!(TakeRecord::read(&bytes, array, TakeRecord::offset(5)), Some(record));
    }

    #[test]
    fn a_record_with_any_bit_changed_is_no_record() {
        let array = Uuid::from_u128(1);
        let bytes = record().encode(array);
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(TakeRecord::read(&changed, array, TakeRecord::offset(5)), None, "bit {bit}");
        }
    }

    #[test]
    fn a_record_of_a_later_minor_version_is_read_and_one_of_a_later_major_version_is_not() {
        let array = Uuid::from_u128(1);
        let read = |at: usize, version: u8| {
            let mut bytes = record().encode(array);
            bytes[at] = version;
            let crc = crc32c(&bytes[..CRC_AT]);
            bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
            TakeRecord::read(&bytes, array, TakeRecord::offset(5))
        };
        assert_eq!(read(8, 1), Some(record()));
        assert_eq!(read(10, 200), Some(record()));
        assert_eq!(read(8, 2), None);
    }

    #[test]
    fn numbers_that_leave_none_for_later_takes_are_not_believed() {
        let array = Uuid::from_u128(1);
        let read = |first_sequence, last_sequence| {
            let take = TakeId { first_sequence, ..record().take };
            let record = TakeRecord { take, last_sequence, ..record() };
            TakeRecord::read(&record.encode(array), array, TakeRecord::offset(5)).is_some()
        };
        assert!(read(40, 40) && read(40, 39) && read(40, (1 << 63) - 1));
        assert!(!read(40, 38) && !read(40, 1 << 63) && !read(40, u64::MAX));
    }

    #[test]
    fn the_table_lies_between_superblock_and_data_and_each_slot_in_one_block() {
        const { assert!(TAKE_RECORDS_OFFSET > SUPERBLOCK_BYTES) };
        let end = TAKE_RECORDS_OFFSET + TAKE_RECORDS_MAX * TAKE_RECORD_BYTES as u64;
        assert!(end < DATA_OFFSET);
        assert_eq!(TakeRecord::offset(TAKE_RECORDS_MAX), TAKE_RECORDS_OFFSET);
        assert_eq!(TakeRecord::offset(TAKE_RECORDS_MAX - 1) + TAKE_RECORD_BYTES as u64, end);
    }
}
