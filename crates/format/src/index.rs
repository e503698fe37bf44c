//! A segment's index: the records of its chunks, at its end (`docs/format.md`, section 6).

use uuid::Uuid;

use crate::chunk::{ChunkRecord, SEQUENCE_END};
use crate::crc::crc32c;
use crate::fields::{Get, Put};
use crate::layout::PAGE_BYTES;
use crate::pcapng::{self, LOCAL_HEADER_BYTES, PrivateKind};
use crate::section::{Damage, HEADER_BYTES, Header, Kind, Place, RECORD_BYTES};

/// Length of the footer, without the block length behind it.
pub const FOOTER_BYTES: usize = 96;
const MAGIC: &[u8; 8] = b"LTKINDEX";
/// The footer and the block's closing length.
const TAIL_BYTES: u64 = FOOTER_BYTES as u64 + 4;

/// Bytes at the segment's end that hold `entries` entries and the footer, in whole pages.
pub const fn tail_length(entries: u64) -> u64 {
    (entries * RECORD_BYTES as u64 + TAIL_BYTES).next_multiple_of(PAGE_BYTES)
}

/// Bytes of the entries and what follows them, up to the segment's end.
pub const fn entries_bytes(entries: usize) -> usize {
    entries * RECORD_BYTES + TAIL_BYTES as usize
}

/// Least length of an index section of `entries` entries: the page with its header, and its tail.
pub const fn length_for(entries: u64) -> u64 {
    PAGE_BYTES + tail_length(entries)
}

/// How many entries fit in a tail of `bytes`.
pub const fn entries_in(bytes: u64) -> u64 {
    (bytes / PAGE_BYTES * PAGE_BYTES - TAIL_BYTES) / RECORD_BYTES as u64
}

/// What an index's footer says of its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// The array it belongs to.
    pub array: Uuid,
    /// Chunks in the segment.
    pub entries: u32,
    /// CRC32C of the entries.
    pub entries_crc: u32,
    /// Sequence number of the first chunk.
    pub first_sequence: u64,
    /// Sequence number of the last chunk.
    pub last_sequence: u64,
    /// Earliest packet time, ns since 1970.
    pub first_ns: u64,
    /// Latest packet time, ns since 1970.
    pub last_ns: u64,
    /// Length of the index section, from the last chunk's end to the segment's.
    pub section_bytes: u64,
    /// The member it lies on.
    pub member: u16,
}

/// The two pieces of an index that are written; what lies between them is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// For the section's first page.
    pub front: Vec<u8>,
    /// For the last pages of the segment.
    pub tail: Vec<u8>,
}

/// Encodes the index of a segment whose chunks are `chunks`, in order.
///
/// `place.offset` is where the last chunk ends, `section_bytes` the distance from there to the
/// segment's end: at least [`length_for`] the number of chunks.
///
/// # Panics
/// If `chunks` is empty or `section_bytes` is shorter than [`length_for`] says.
pub fn encode(place: &Place, section_bytes: u64, chunks: &[(Place, ChunkRecord)]) -> Written {
    let count = chunks.len() as u64;
    assert!(count > 0 && section_bytes >= length_for(count), "index of {count} in {section_bytes}");
    let header = Header {
        kind: Kind::Index,
        minor: 0,
        place: *place,
        body_crc: 0,
        length: section_bytes as u32,
        specific: [0; Header::SPECIFIC_BYTES],
    };
    let mut front = vec![0; PAGE_BYTES as usize];
    header.stamp(&mut front, section_bytes - HEADER_BYTES as u64);
    let block_bytes = (section_bytes - HEADER_BYTES as u64) as u32;
    pcapng::private_header(
        &mut front[HEADER_BYTES..HEADER_BYTES + LOCAL_HEADER_BYTES],
        PrivateKind::Index,
        block_bytes,
    );

    let mut tail = vec![0; tail_length(count) as usize];
    let end = tail.len();
    let entries_end = end - TAIL_BYTES as usize;
    let entries_start = entries_end - chunks.len() * RECORD_BYTES;
    for ((place, record), entry) in
        chunks.iter().zip(tail[entries_start..entries_end].chunks_exact_mut(RECORD_BYTES))
    {
        record.encode_entry(place, entry);
    }
    let footer = Footer {
        array: place.array,
        entries: count as u32,
        entries_crc: crc32c(&tail[entries_start..entries_end]),
        first_sequence: chunks[0].1.sequence,
        last_sequence: chunks[chunks.len() - 1].1.sequence,
        first_ns: chunks.iter().map(|(_, c)| c.summary.first_ns).min().unwrap_or(u64::MAX),
        last_ns: chunks.iter().map(|(_, c)| c.summary.last_ns).max().unwrap_or(0),
        section_bytes,
        member: place.member,
    };
    footer.put(&mut tail[entries_end..entries_end + FOOTER_BYTES]);
    tail[end - 4..].copy_from_slice(&block_bytes.to_le_bytes());
    Written { front, tail }
}

impl Footer {
    fn put(&self, out: &mut [u8]) {
        let mut put = Put::new(&mut out[..FOOTER_BYTES]);
        put.raw(MAGIC)
            .raw(self.array.as_bytes())
            .u32(self.entries)
            .u32(self.entries_crc)
            .u64(self.first_sequence)
            .u64(self.last_sequence)
            .u64(self.first_ns)
            .u64(self.last_ns)
            .u64(self.section_bytes)
            .u16(self.member)
            .finish();
        let crc = crc32c(&out[..FOOTER_BYTES - 4]);
        out[FOOTER_BYTES - 4..FOOTER_BYTES].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads the footer from the last bytes of a segment (a page is enough).
    ///
    /// # Errors
    /// [`Damage`] if there is no sound footer.
    pub fn read(segment_end: &[u8]) -> Result<Self, Damage> {
        let start = segment_end.len().checked_sub(TAIL_BYTES as usize).ok_or(Damage::Short)?;
        let footer = &segment_end[start..start + FOOTER_BYTES];
        if &footer[..8] != MAGIC {
            return Err(Damage::NotOurs);
        }
        let (body, crc) = footer.split_at(FOOTER_BYTES - 4);
        if crc32c(body).to_le_bytes() != *crc {
            return Err(Damage::HeaderChecksum);
        }
        let mut get = Get::new(&body[8..]);
        let footer = Self {
            array: Uuid::from_bytes(get.raw()),
            entries: get.u32(),
            entries_crc: get.u32(),
            first_sequence: get.u64(),
            last_sequence: get.u64(),
            first_ns: get.u64(),
            last_ns: get.u64(),
            section_bytes: get.u64(),
            member: get.u16(),
        };
        if footer.entries == 0 || footer.section_bytes < length_for(u64::from(footer.entries)) {
            return Err(Damage::Length);
        }
        if footer.first_sequence > footer.last_sequence || footer.last_sequence >= SEQUENCE_END {
            return Err(Damage::Contradiction);
        }
        Ok(footer)
    }

    /// Whether it can be the index of a segment of this length on the member of `place`.
    pub fn suits(&self, place: &Place, segment_bytes: u64) -> bool {
        self.array == place.array
            && self.member == place.member
            && self.section_bytes < segment_bytes
    }

    /// Reads the entries from the last [`tail_length`] bytes of a segment.
    ///
    /// # Errors
    /// [`Damage`] if the entries don't check against the footer.
    pub fn entries(&self, tail: &[u8]) -> Result<Vec<(Place, ChunkRecord)>, Damage> {
        let end = tail.len().checked_sub(TAIL_BYTES as usize).ok_or(Damage::Short)?;
        let bytes = self.entries as usize * RECORD_BYTES;
        let start = end.checked_sub(bytes).ok_or(Damage::Short)?;
        let entries = &tail[start..end];
        if crc32c(entries) != self.entries_crc {
            return Err(Damage::BodyChecksum);
        }
        let found: Vec<(Place, ChunkRecord)> = entries
            .chunks_exact(RECORD_BYTES)
            .map(ChunkRecord::decode_entry)
            .collect::<Result<_, _>>()?;
        if found.iter().any(|(place, _)| place.array != self.array || place.member != self.member) {
            return Err(Damage::Elsewhere);
        }
        // One directly behind the other, as in the segment.
        let follows = |pair: &[(Place, ChunkRecord)]| {
            let [(one, first), (two, second)] = pair else { return true };
            one.offset.checked_add(u64::from(first.summary.length)) == Some(two.offset)
                && first.sequence < second.sequence
        };
        if found.windows(2).all(follows) { Ok(found) } else { Err(Damage::Contradiction) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{ChunkSummary, TakeId};
    use crate::ledger::Ledger;
    use crate::parity::LastParities;
    use base::Timestamp;

    fn chunks(count: u64) -> Vec<(Place, ChunkRecord)> {
        let take = TakeId { uuid: Uuid::from_u128(2), started: Timestamp::MIN, first_sequence: 0 };
        (0..count)
            .map(|n| {
                let summary = ChunkSummary {
                    length: 8192,
                    body_crc: n as u32,
                    queue: 0,
                    packets: 3,
                    packets_start: 600,
                    packets_end: 900,
                    captured_bytes: 200,
                    original_bytes: 200,
                    first_ns: 1000 + n,
                    last_ns: 2000 + n,
                    sealed_ns: 3000,
                    plain: true,
                    loss: false,
                    end: false,
                };
                let place = Place {
                    array: Uuid::from_u128(1),
                    member: 1,
                    members: 2,
                    offset: (1 << 20) + n * 8192,
                };
                (
                    place,
                    ChunkRecord {
                        take,
                        sequence: 70 + n,
                        replaces: None,
                        ledger: Ledger::default(),
                        reused: Some(1),
                        reused_to_ns: 1,
                        parity: None,
                        group: None,
                        last_parities: LastParities::default(),
                        summary,
                    },
                )
            })
            .collect()
    }

    fn footer_of(tail: &[u8]) -> Footer {
        Footer::read(tail).unwrap()
    }

    #[test]
    fn a_footer_whose_numbers_run_backward_is_damaged() {
        let mut chunks = chunks(2);
        chunks.reverse();
        let written = encode(&chunks[0].0, length_for(2), &chunks);
        assert_eq!(Footer::read(&written.tail), Err(Damage::Contradiction));
    }

    #[test]
    fn an_index_reads_back_from_the_segments_end_whatever_lies_before() {
        for count in [1, 2, 64, 300] {
            let chunks = chunks(count);
            let place = Place { offset: (1 << 20) + count * 8192, ..chunks[0].0 };
            let section = length_for(count) + 40_960;
            let written = encode(&place, section, &chunks);
            let mut segment_end = vec![0xAA; section as usize];
            let tail_at = segment_end.len() - written.tail.len();
            segment_end[..written.front.len()].copy_from_slice(&written.front);
            segment_end[tail_at..].copy_from_slice(&written.tail);

            let page = &segment_end[segment_end.len() - PAGE_BYTES as usize..];
            let footer = Footer::read(page).unwrap();
            assert_eq!((footer.first_sequence, footer.last_sequence), (70, 69 + count));
            assert_eq!((footer.first_ns, footer.last_ns), (1000, 1999 + count));
            assert_eq!(footer.entries(&segment_end[tail_at..]).unwrap(), chunks);
            // To a pcapng reader it is a section of two blocks, whole to the last byte.
            let blocks: Vec<_> = pcapng::Blocks::new(&segment_end).map(Result::unwrap).collect();
            assert_eq!(blocks.len(), 2);
            // An index whose chunks don't lie one behind the other, or on its member, is none.
            if count > 1 {
                let mut moved = chunks.clone();
                moved[1].0.offset += 4096;
                let tail = encode(&place, section, &moved).tail;
                assert_eq!(footer_of(&tail).entries(&tail), Err(Damage::Contradiction));
                moved[1] = chunks[1];
                moved[1].0.member = 7;
                let tail = encode(&place, section, &moved).tail;
                assert_eq!(footer_of(&tail).entries(&tail), Err(Damage::Elsewhere));
            }
            // A changed entry is found.
            segment_end[tail_at + written.tail.len() - 200] ^= 1;
            assert_eq!(footer.entries(&segment_end[tail_at..]), Err(Damage::BodyChecksum));
        }
    }
}
