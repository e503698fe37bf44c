//! The rules of `docs/format.md` that no golden file can show: what is refused, what fits exactly, and what leaves
//! Longtake as a file.

mod chunks;
mod damage;
mod export;
mod layout;

use base::Timestamp;
use longtake_format::crc::crc32c;
use longtake_format::layout::PAGE_BYTES;
use longtake_format::parity::LastParities;
use longtake_format::{
    ChunkRecord, ChunkSummary, ChunkWriter, Interface, Ledger, LinkType, Packet, Place, TakeId,
};
use uuid::Uuid;

/// Where a section's record starts (section 2).
const RECORD: usize = 32;
/// Where the header's checksum is in the record.
const HEADER_CRC: usize = 20;
/// Where the fields of a kind start in the record.
const BY_KIND: usize = 56;

fn place() -> Place {
    Place { array: Uuid::from_u128(1), member: 1, members: 3, offset: 1 << 20 }
}

/// Number 9 of a take that starts at 7.
fn record(summary: ChunkSummary) -> ChunkRecord {
    ChunkRecord {
        take: TakeId { uuid: Uuid::from_u128(2), started: Timestamp::MIN, first_sequence: 7 },
        sequence: 9,
        replaces: None,
        ledger: Ledger::default(),
        reused: None,
        reused_to_ns: 0,
        parity: None,
        group: None,
        last_parities: LastParities::default(),
        summary,
    }
}

/// A chunk of one page without packets.
fn empty() -> ChunkSummary {
    ChunkSummary { length: PAGE_BYTES as u32, ..ChunkSummary::EMPTY }
}

fn interface(name: &str, link_type: LinkType) -> Interface {
    Interface {
        name: name.into(),
        description: String::new(),
        link_type,
        snap_length: 0,
        filter: String::new(),
        speed_bits: 0,
    }
}

fn packet(interface: u32, ns: u64, data: &[u8]) -> Packet<'_> {
    Packet {
        interface,
        timestamp: Timestamp::from_nanos(ns),
        original_length: data.len() as u32,
        data,
        options: &[],
    }
}

/// A writer of chunks from one page to 64 KiB with a described interface 4.
fn writer() -> ChunkWriter<Vec<u8>> {
    let mut writer = ChunkWriter::new(vec![0xEE; 1 << 16], PAGE_BYTES as u32, 1 << 16, 0);
    assert_eq!(writer.interface(4, &interface("eth4", LinkType::ETHERNET)), Ok(()));
    writer
}

/// A section with other bytes in its record, and a header checksum that fits them: what a hostile hand, or a faulty
/// recorder, could leave behind.
fn forged(section: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut section = section.to_vec();
    section[RECORD + at..RECORD + at + bytes.len()].copy_from_slice(bytes);
    let crc = RECORD + HEADER_CRC;
    section[crc..crc + 4].fill(0);
    let value = crc32c(&section[..512]);
    section[crc..crc + 4].copy_from_slice(&value.to_le_bytes());
    section
}
