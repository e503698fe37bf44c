//! A Longtake section's first 512 bytes: a pcapng section header that carries the record
//! (`docs/format.md`, section 2).

use std::fmt;

use uuid::Uuid;

use crate::crc::crc32c;
use crate::fields::{Get, Put};
use crate::pcapng::{BYTE_ORDER, ENTERPRISE, SECTION_HEADER};

/// Length of the section header block.
pub const HEADER_BYTES: usize = 512;
/// Length of the record in it.
pub const RECORD_BYTES: usize = 440;
/// Where the record starts.
pub(crate) const RECORD_AT: usize = 32;
/// The newest version of the format that this program knows. It writes the least that has what a section uses.
pub const VERSION: (u16, u16) = (1, 5);
/// The least minor version that has parity.
pub(crate) const MINOR_PARITY: u16 = 1;
/// The least minor version that counts truncated packets and names the time since which a ring holds everything.
pub(crate) const MINOR_ACCOUNTS: u16 = 2;
/// The least minor version that keeps records of takes in front of the data.
pub(crate) const MINOR_TAKE_RECORDS: u16 = 3;
/// The least minor version that counts packets that were cut or sliced.
pub(crate) const MINOR_RETENTION: u16 = 5;

const MAGIC: &[u8; 8] = b"LONGTAKE";
const OPTION_CUSTOM_BINARY: u16 = 2989;
const OPTION_USER_APPLICATION: u16 = 4;
const APPLICATION: &[u8; 27] = b"Longtake (media format 1.0)";
/// Where the minor version's digit stands in it.
const APPLICATION_MINOR: usize = 25;
const CRC_AT: usize = RECORD_AT + 20;
const _: () = assert!(RECORD_AT + RECORD_BYTES + 4 + 28 + 4 + 4 == HEADER_BYTES);

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The array's description.
    Superblock,
    /// Packets.
    Chunk,
    /// A segment's index.
    Index,
}

/// Where a section lies, as it says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The array.
    pub array: Uuid,
    /// The member's place in the array, from 0.
    pub member: u16,
    /// How many members the array has.
    pub members: u16,
    /// Offset on the member in bytes.
    pub offset: u64,
}

/// Why bytes on the media are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Fewer bytes than the structure takes.
    Short,
    /// No Longtake section starts here.
    NotOurs,
    /// Written by a newer, incompatible version of the format.
    Newer {
        /// That version's major number.
        major: u16,
    },
    /// The header doesn't match its checksum.
    HeaderChecksum,
    /// The body doesn't match its checksum.
    BodyChecksum,
    /// A length or count that can't be.
    Length,
    /// Fields of a record that can't be true together.
    Contradiction,
    /// A sound section, but of another kind, array, member or offset.
    Elsewhere,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("cut short"),
            Self::NotOurs => f.write_str("no Longtake section starts here"),
            Self::Newer { major } => write!(
                f,
                "written in media format {major}.x; this program knows {}.x: use a newer Longtake",
                VERSION.0
            ),
            Self::HeaderChecksum => f.write_str("the header does not match its checksum"),
            Self::BodyChecksum => f.write_str("the body does not match its checksum"),
            Self::Length => f.write_str("a length that cannot be"),
            Self::Contradiction => f.write_str("a record that contradicts itself"),
            Self::Elsewhere => f.write_str("a section of another array, member or place"),
        }
    }
}

impl std::error::Error for Damage {}

/// The record, with the part that depends on the kind still encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the section holds.
    pub kind: Kind,
    /// The minor version of the format that it takes to understand all of it.
    pub minor: u16,
    /// Where it says that it lies.
    pub place: Place,
    /// CRC32C of the body.
    pub body_crc: u32,
    /// Length in bytes as the record has it.
    pub length: u32,
    /// The kind's own fields.
    pub specific: [u8; Self::SPECIFIC_BYTES],
}

impl Header {
    /// Length of the kind's own fields.
    pub const SPECIFIC_BYTES: usize = 384;

    /// Writes the section header block to the start of `section`. `section_length` is what pcapng
    /// calls so: the bytes behind this block, up to the next section.
    ///
    /// # Panics
    /// If `section` is shorter than [`HEADER_BYTES`].
    pub fn stamp(&self, section: &mut [u8], section_length: u64) {
        let block = &mut section[..HEADER_BYTES];
        let mut application = *APPLICATION;
        application[APPLICATION_MINOR] = b'0' + self.minor as u8;
        let mut put = Put::new(block);
        put.u32(SECTION_HEADER)
            .u32(HEADER_BYTES as u32)
            .u32(BYTE_ORDER)
            .u16(1)
            .u16(0)
            .u64(section_length)
            .u16(OPTION_CUSTOM_BINARY)
            .u16(4 + RECORD_BYTES as u16)
            .u32(ENTERPRISE)
            .zeros(RECORD_BYTES)
            .u16(OPTION_USER_APPLICATION)
            .u16(application.len() as u16)
            .raw(&application)
            .zeros(1)
            .u32(0)
            .u32(HEADER_BYTES as u32);
        self.put(&mut block[RECORD_AT..RECORD_AT + RECORD_BYTES]);
        let crc = crc32c(block);
        block[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
    }

    /// Writes the record alone, its header CRC as 0.
    pub(crate) fn put(&self, record: &mut [u8]) {
        Put::new(record)
            .raw(MAGIC)
            .u16(match self.kind {
                Kind::Superblock => 1,
                Kind::Chunk => 2,
                Kind::Index => 3,
            })
            .u16(VERSION.0)
            .u16(self.minor)
            .u16(self.place.member)
            .u16(self.place.members)
            .u16(0)
            .u32(0)
            .u32(self.body_crc)
            .u32(self.length)
            .raw(self.place.array.as_bytes())
            .u64(self.place.offset)
            .raw(&self.specific);
    }

    /// Reads and checks the first [`HEADER_BYTES`] of a section.
    ///
    /// # Errors
    /// [`Damage`] unless it is one of ours, of a version we know, with a sound checksum.
    pub fn read(section: &[u8]) -> Result<Self, Damage> {
        let block = section.get(..HEADER_BYTES).ok_or(Damage::Short)?;
        let start = u32::from_le_bytes([block[0], block[1], block[2], block[3]]);
        if start != SECTION_HEADER || &block[RECORD_AT..RECORD_AT + 8] != MAGIC {
            return Err(Damage::NotOurs);
        }
        let mut checked = [0; HEADER_BYTES];
        checked.copy_from_slice(block);
        checked[CRC_AT..CRC_AT + 4].fill(0);
        if crc32c(&checked).to_le_bytes() != block[CRC_AT..CRC_AT + 4] {
            return Err(Damage::HeaderChecksum);
        }
        Self::get(&block[RECORD_AT..RECORD_AT + RECORD_BYTES])
    }

    /// Reads the record alone; its checksum is the caller's matter.
    pub(crate) fn get(record: &[u8]) -> Result<Self, Damage> {
        if record.len() < RECORD_BYTES {
            return Err(Damage::Short);
        }
        if &record[..8] != MAGIC {
            return Err(Damage::NotOurs);
        }
        let mut get = Get::new(&record[8..]);
        let kind = get.u16();
        let (major, minor) = (get.u16(), get.u16());
        if major > VERSION.0 {
            return Err(Damage::Newer { major });
        }
        let kind = match kind {
            1 => Kind::Superblock,
            2 => Kind::Chunk,
            3 => Kind::Index,
            _ => return Err(Damage::Elsewhere),
        };
        let (member, members) = (get.u16(), get.u16());
        let (body_crc, length) = (get.skip(6).u32(), get.u32());
        let array = Uuid::from_bytes(get.raw());
        let offset = get.u64();
        let place = Place { array, member, members, offset };
        Ok(Self { kind, minor, place, body_crc, length, specific: get.raw() })
    }

    /// Checks the kind and, where given, the place.
    ///
    /// # Errors
    /// [`Damage::Elsewhere`] if it is a sound section of something else.
    pub fn expect(&self, kind: Kind, place: &Place) -> Result<(), Damage> {
        let same = self.kind == kind
            && self.place.array == place.array
            && self.place.member == place.member
            && self.place.offset == place.offset;
        if same { Ok(()) } else { Err(Damage::Elsewhere) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let place = Place { array: Uuid::from_u128(7), member: 2, members: 4, offset: 1 << 20 };
        Header { kind: Kind::Chunk, minor: 0, place, body_crc: 9, length: 8192, specific: [3; 384] }
    }

    #[test]
    fn a_header_reads_back_and_any_changed_bit_is_found() {
        let mut block = [0; HEADER_BYTES];
        header().stamp(&mut block, 7680);
        assert_eq!(Header::read(&block), Ok(header()));
        for byte in 0..HEADER_BYTES {
            let mut changed = block;
            changed[byte] ^= 0x10;
            assert!(Header::read(&changed).is_err(), "byte {byte}");
        }
    }

    #[test]
    fn a_newer_major_version_is_named() {
        let mut block = [0; HEADER_BYTES];
        header().stamp(&mut block, 7680);
        block[RECORD_AT + 10] = 2;
        block[CRC_AT..CRC_AT + 4].fill(0);
        let crc = crc32c(&block);
        block[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Header::read(&block), Err(Damage::Newer { major: 2 }));
    }

    #[test]
    fn a_record_that_is_cut_is_short() {
        let mut record = [0; RECORD_BYTES + 1];
        header().put(&mut record);
        assert_eq!(Header::get(&record[..RECORD_BYTES]), Ok(header()));
        assert_eq!(Header::get(&record), Ok(header()));
        assert_eq!(Header::get(&record[..RECORD_BYTES - 1]), Err(Damage::Short));
    }
}
