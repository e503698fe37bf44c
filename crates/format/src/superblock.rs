//! A member's superblock: which array, which member, how it is divided, what is protected
//! (`docs/format.md`, section 4).

use base::Timestamp;
use uuid::Uuid;

use crate::crc::crc32c;
use crate::fields::{Get, Put};
use crate::layout::{DATA_OFFSET, Layout, SUPERBLOCK_BYTES};
use crate::parity::{OVERHEAD_BYTES, PARITY_MAX};
use crate::pcapng::{self, LOCAL_HEADER_BYTES, PrivateKind};
use crate::section::{Damage, HEADER_BYTES, Header, Kind, MINOR_PARITY, Place};

const ROW_BYTES: usize = 64;
/// Rows that both tables have room for.
const ROWS_MAX: usize =
    (SUPERBLOCK_BYTES as usize - HEADER_BYTES - LOCAL_HEADER_BYTES - 4) / ROW_BYTES;
/// Members of an array at most.
pub const MEMBERS_MAX: usize = 256;
/// Bytes kept of an array's name.
pub const NAME_BYTES_MAX: usize = 64;
/// Bytes kept of a protected range's label.
pub const LABEL_BYTES_MAX: usize = 40;
/// Protected ranges of an array at most.
pub const PROTECTED_MAX: usize = 700;
/// The table of when members joined, in front of the block's closing length.
const JOINED_BYTES: usize = 8 * MEMBERS_MAX;
const _: () = assert!((ROWS_MAX - MEMBERS_MAX - PROTECTED_MAX) * ROW_BYTES >= JOINED_BYTES);

/// One member in the array's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its capacity in bytes.
    pub capacity_bytes: u64,
    /// Model and serial, or what else tells it from others; 56 bytes are kept.
    pub identity: String,
    /// When it took the place of another drive, in ns since 1970; 0 if it is as old as the array.
    pub joined_ns: u64,
}

/// A span of time whose segments a ring does not reuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// Start, included.
    pub from: Timestamp,
    /// End, included.
    pub to: Timestamp,
    /// When it was protected.
    pub made: Timestamp,
    /// The user's word for it; 40 bytes are kept.
    pub label: String,
}

/// What a superblock says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The array.
    pub array: Uuid,
    /// The array's name; 64 bytes are kept.
    pub name: String,
    /// This member's place, from 0.
    pub member: u16,
    /// All members, in order.
    pub members: Vec<Member>,
    /// How this member is divided.
    pub layout: Layout,
    /// When the array was created.
    pub created: Timestamp,
    /// Goes up by one with every change.
    pub generation: u64,
    /// What a ring must not reuse.
    pub protected: Vec<Protected>,
    /// Parity chunks for each group of chunks: so many members may die and nothing is lost. 0 for none, at most
    /// [`PARITY_MAX`].
    pub parity: u8,
}

impl Superblock {
    /// The longest chunk of packets: of an array with parity a page less than the longest chunk, which is parity.
    pub const fn data_chunk_max(&self) -> u32 {
        self.layout.chunk_max - if self.parity > 0 { OVERHEAD_BYTES } else { 0 }
    }

    /// Whether so many parity chunks suit an array of so many members that are divided so: each lies on a member of its own, and
    /// room is left for the data.
    pub const fn suits_parity(parity: u8, members: usize, layout: &Layout) -> bool {
        parity == 0
            || (parity <= PARITY_MAX
                && members > parity as usize
                && layout.chunk_min + OVERHEAD_BYTES <= layout.chunk_max)
    }

    /// The superblock's bytes for its place at `offset`: 64 KiB.
    ///
    /// # Panics
    /// If there are more members or protected ranges than [`MEMBERS_MAX`] and [`PROTECTED_MAX`].
    pub fn encode(&self, offset: u64) -> Vec<u8> {
        assert!(self.members.len() <= MEMBERS_MAX && self.protected.len() <= PROTECTED_MAX);
        let mut bytes = vec![0; SUPERBLOCK_BYTES as usize];
        let block_bytes = (SUPERBLOCK_BYTES as usize - HEADER_BYTES) as u32;
        let body = &mut bytes[HEADER_BYTES..];
        pcapng::private_header(&mut body[..LOCAL_HEADER_BYTES], PrivateKind::Tables, block_bytes);
        let end = body.len() - 4;
        let mut put = Put::new(&mut body[LOCAL_HEADER_BYTES..end]);
        for member in &self.members {
            put.u64(member.capacity_bytes).text(&member.identity, 56);
        }
        for range in &self.protected {
            put.u64(range.from.as_nanos())
                .u64(range.to.as_nanos())
                .u64(range.made.as_nanos())
                .text(&range.label, LABEL_BYTES_MAX);
        }
        let mut joined = Put::new(&mut body[end - JOINED_BYTES..end]);
        for member in &self.members {
            joined.u64(member.joined_ns);
        }
        body[end..].copy_from_slice(&block_bytes.to_le_bytes());

        let mut specific = [0; Header::SPECIFIC_BYTES];
        Put::new(&mut specific)
            .u64(self.generation)
            .u64(self.created.as_nanos())
            .u64(DATA_OFFSET)
            .u64(self.layout.segment_bytes)
            .u64(self.layout.segments)
            .u32(self.layout.chunk_max)
            .u32(self.layout.chunk_min)
            .u32(self.protected.len() as u32)
            .u32(self.parity.into())
            .text(&self.name, NAME_BYTES_MAX);
        let header = Header {
            kind: Kind::Superblock,
            minor: if self.parity > 0 { MINOR_PARITY } else { 0 },
            place: Place {
                array: self.array,
                member: self.member,
                members: self.members.len() as u16,
                offset,
            },
            body_crc: crc32c(&bytes[HEADER_BYTES..]),
            length: SUPERBLOCK_BYTES as u32,
            specific,
        };
        // The section of the first superblock goes on to the data: see `padding`.
        let section = if offset == 0 { DATA_OFFSET } else { SUPERBLOCK_BYTES };
        header.stamp(&mut bytes, section - HEADER_BYTES as u64);
        bytes
    }

    /// What fills the space between the first superblock and the data, written at creation.
    pub fn padding() -> Vec<u8> {
        let mut bytes = vec![0; (DATA_OFFSET - SUPERBLOCK_BYTES) as usize];
        pcapng::padding(&mut bytes);
        bytes
    }

    /// Reads and checks a superblock that was found at `offset`.
    ///
    /// # Errors
    /// [`Damage`] if it is none, or not sound, or belongs elsewhere.
    pub fn read(bytes: &[u8], offset: u64) -> Result<Self, Damage> {
        let header = Header::read(bytes)?;
        if header.kind != Kind::Superblock || header.place.offset != offset {
            return Err(Damage::Elsewhere);
        }
        let bytes = bytes.get(..SUPERBLOCK_BYTES as usize).ok_or(Damage::Short)?;
        if crc32c(&bytes[HEADER_BYTES..]) != header.body_crc {
            return Err(Damage::BodyChecksum);
        }
        let mut get = Get::new(&header.specific);
        let generation = get.u64();
        let created = Timestamp::from_nanos(get.u64());
        let data_offset = get.u64();
        let layout = Layout {
            segment_bytes: get.u64(),
            segments: get.u64(),
            chunk_max: get.u32(),
            chunk_min: get.u32(),
        };
        let protected = get.u32() as usize;
        let parity = u8::try_from(get.u32()).map_err(|_| Damage::Length)?;
        let name = get.text(NAME_BYTES_MAX);
        let members = usize::from(header.place.members);
        // Checksums guard against accidents, not against a hostile hand: the layout must hold by itself.
        let capacity = layout
            .segments
            .checked_mul(layout.segment_bytes)
            .and_then(|data| data.checked_add(DATA_OFFSET + SUPERBLOCK_BYTES))
            .ok_or(Damage::Length)?;
        let sound = data_offset == DATA_OFFSET
            && Layout::new(capacity, layout.segment_bytes, layout.chunk_max) == Ok(layout)
            && (1..=MEMBERS_MAX).contains(&members)
            && header.place.member < header.place.members
            && protected <= PROTECTED_MAX
            && Self::suits_parity(parity, members, &layout);
        if !sound {
            return Err(Damage::Length);
        }
        let (members, protected) = Self::tables(bytes, members, protected);
        Ok(Self {
            array: header.place.array,
            name,
            member: header.place.member,
            members,
            layout,
            created,
            generation,
            protected,
            parity,
        })
    }

    /// The tables of so many members and protected ranges in a superblock's bytes.
    fn tables(bytes: &[u8], members: usize, protected: usize) -> (Vec<Member>, Vec<Protected>) {
        let mut get = Get::new(&bytes[HEADER_BYTES + LOCAL_HEADER_BYTES..]);
        let joined_at = bytes.len() - 4 - JOINED_BYTES;
        let mut joined = Get::new(&bytes[joined_at..joined_at + JOINED_BYTES]);
        let members = (0..members)
            .map(|_| Member {
                capacity_bytes: get.u64(),
                identity: get.text(56),
                joined_ns: joined.u64(),
            })
            .collect();
        let protected = (0..protected)
            .map(|_| Protected {
                from: Timestamp::from_nanos(get.u64()),
                to: Timestamp::from_nanos(get.u64()),
                made: Timestamp::from_nanos(get.u64()),
                label: get.text(LABEL_BYTES_MAX),
            })
            .collect();
        (members, protected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn superblock() -> Superblock {
        Superblock {
            array: Uuid::from_u128(42),
            name: "radar".into(),
            member: 1,
            members: (0..3)
                .map(|n| Member {
                    capacity_bytes: 1 << 40,
                    identity: format!("drive {n}"),
                    joined_ns: n,
                })
                .collect(),
            layout: Layout::default_for(1 << 40).unwrap(),
            created: Timestamp::from_nanos(5),
            generation: 3,
            protected: vec![Protected {
                from: Timestamp::from_nanos(10),
                to: Timestamp::from_nanos(20),
                made: Timestamp::from_nanos(30),
                label: "überflug".into(),
            }],
            parity: 0,
        }
    }

    #[test]
    fn a_superblock_reads_back_from_its_own_place_only() {
        let copy = Layout::copy_offset(1 << 40);
        for offset in [0, copy] {
            let bytes = superblock().encode(offset);
            assert_eq!(Superblock::read(&bytes, offset), Ok(superblock()));
            assert_eq!(Superblock::read(&bytes, offset + 4096), Err(Damage::Elsewhere));
        }
    }

    #[test]
    fn parity_that_an_array_cannot_have_is_damage() {
        for parity in 0..=3 {
            let bytes = Superblock { parity, ..superblock() }.encode(0);
            let read = Superblock::read(&bytes, 0).map(|found| found.parity);
            assert_eq!(read, if parity < 3 { Ok(parity) } else { Err(Damage::Length) });
        }
        let mut pair = Superblock { parity: 2, ..superblock() };
        pair.members.pop();
        assert_eq!(Superblock::read(&pair.encode(0), 0), Err(Damage::Length));
    }

    #[test]
    fn a_changed_table_is_found() {
        let mut bytes = superblock().encode(0);
        bytes[HEADER_BYTES + 40] ^= 1;
        assert_eq!(Superblock::read(&bytes, 0), Err(Damage::BodyChecksum));
    }

    #[test]
    fn full_tables_fit() {
        let mut full = superblock();
        full.members = vec![full.members[0].clone(); MEMBERS_MAX];
        full.protected = vec![full.protected[0].clone(); PROTECTED_MAX];
        assert_eq!(Superblock::read(&full.encode(0), 0), Ok(full));
    }
}
