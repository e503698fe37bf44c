//! What a source offers to be recorded: packets, and the interfaces they came from.

use base::Timestamp;

/// A link-layer header type as the LINKTYPE registry of tcpdump.org numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// Raw IPv4 or IPv6.
    pub const RAW_IP: Self = Self(101);
    /// Linux "cooked" capture.
    pub const LINUX_SLL: Self = Self(113);
    /// Private use: Longtake's raw sensor blocks, which are no packets.
    pub const USER0: Self = Self(147);
}

/// Where packets come from; one pcapng interface description.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interface {
    /// What it is called: `eth0`, `udp://0.0.0.0:5000`, a file's interface name.
    pub name: String,
    /// More words about it, or empty.
    pub description: String,
    /// The type of every packet's first header.
    pub link_type: LinkType,
    /// Longest packet kept in bytes; 0 means no limit.
    pub snap_length: u32,
    /// The capture filter in words, or empty.
    pub filter: String,
    /// Nominal speed in bits a second; 0 if unknown.
    pub speed_bits: u64,
}

/// One packet (or raw block) to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Which of the take's interfaces it came from, as the sink numbered them.
    pub interface: u32,
    /// When it was captured.
    pub timestamp: Timestamp,
    /// Its length on the wire in bytes; at least `data.len()`.
    pub original_length: u32,
    /// Its bytes as far as they are kept.
    pub data: &'a [u8],
    /// More pcapng options of an enhanced packet block, encoded little endian, each padded to four
    /// bytes, without `opt_endofopt` and without `epb_dropcount` (losses go to the ledger, which
    /// writes it). Usually empty.
    pub options: &'a [u8],
}
