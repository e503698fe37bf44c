//! What lies on the media: superblock, segment, chunk, index, and the pcapng that all of it is.
//!
//! `docs/format.md` is the specification. No other room knows a byte's place. This crate does no I/O.

#![forbid(unsafe_code)]

pub mod packet;

pub use packet::{Interface, LinkType, Packet};
