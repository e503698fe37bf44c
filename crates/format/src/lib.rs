//! What lies on the media: superblock, segment, chunk, index, and the pcapng that all of it is.
//!
//! `docs/format.md` is the specification. No other room knows a byte's place. This crate does no I/O.

#![forbid(unsafe_code)]

pub mod chunk;
pub mod crc;
pub mod export;
mod fields;
pub mod fit;
pub mod flow_index;
pub mod index;
pub mod layout;
pub mod ledger;
pub mod packet;
pub mod packets;
pub mod parity;
pub mod pcapng;
pub mod section;
pub mod superblock;
pub mod take_record;

pub use chunk::{ChunkRecord, ChunkSummary, ChunkWriter, NoRoom, Sealed, TakeId};
pub use layout::{Layout, LayoutError, PAGE_BYTES};
pub use ledger::{Count, Ledger, Stage};
pub use packet::{Interface, LinkType, Packet};
pub use section::{Damage, Header, Kind, Place};
pub use superblock::Superblock;
pub use take_record::TakeRecord;
