//! The pcapng blocks that Longtake writes, and a walk over those it wrote itself.
//!
//! Source: draft-ietf-opsawg-pcapng, sections 3 and 4. Little endian only: captures of others are
//! read in the room `source`.

use crate::fields::Put;
use crate::packet::{Interface, Packet};
use crate::section::Damage;

/// Block type: section header.
pub const SECTION_HEADER: u32 = 0x0A0D_0D0A;
/// Block type: interface description.
pub const INTERFACE: u32 = 1;
/// Block type: interface statistics.
pub const STATISTICS: u32 = 5;
/// Block type: enhanced packet.
pub const ENHANCED_PACKET: u32 = 6;
/// Longtake's private block, in the range kept for local use.
pub const PRIVATE: u32 = 0x804C_544B;
/// Byte order magic.
pub const BYTE_ORDER: u32 = 0x1A2B_3C4D;
/// Private enterprise number: reserved for examples (RFC 5612) until one is registered.
pub const ENTERPRISE: u32 = 32473;
/// Bytes of an enhanced packet block before the packet.
pub const PACKET_HEADER_BYTES: usize = 28;
/// Bytes of an enhanced packet block that are neither packet nor options.
pub const PACKET_OVERHEAD_BYTES: usize = PACKET_HEADER_BYTES + 4;
/// Bytes of a private block before its payload.
pub const LOCAL_HEADER_BYTES: usize = 16;
/// The shortest private block.
pub const PRIVATE_LEAST_BYTES: usize = LOCAL_HEADER_BYTES + 4;

const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const EPB_DROPCOUNT: u16 = 4;

/// What a private block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateKind {
    /// A superblock's tables.
    Tables = 1,
    /// A segment's index.
    Index = 2,
    /// Nothing.
    Padding = 3,
    /// Parity over other chunks, and which they are.
    Parity = 4,
}

/// Writes the first 16 bytes of a private block of `length` bytes in all.
pub(crate) fn private_header(out: &mut [u8], kind: PrivateKind, length: u32) {
    Put::new(out).u32(PRIVATE).u32(length).u32(ENTERPRISE).u32(kind as u32);
}

/// Makes all of `out` one block of padding.
///
/// # Panics
/// If `out` is shorter than [`PRIVATE_LEAST_BYTES`].
pub(crate) fn padding(out: &mut [u8]) {
    let length = out.len() as u32;
    private_header(out, PrivateKind::Padding, length);
    let end = out.len() - 4;
    out[LOCAL_HEADER_BYTES..end].fill(0);
    out[end..].copy_from_slice(&length.to_le_bytes());
}

const fn padded(length: usize) -> usize {
    (length + 3) & !3
}

/// Length of the enhanced packet block that [`put_packet`] writes.
#[inline]
pub fn packet_block_bytes(packet: &Packet<'_>, dropped: u64) -> usize {
    let mut options = packet.options.len();
    if dropped > 0 {
        options += 12;
    }
    if options > 0 {
        options += 4;
    }
    PACKET_OVERHEAD_BYTES + padded(packet.data.len()) + options
}

/// Writes an enhanced packet block that fills `out`. `dropped` packets were lost between this one
/// and the one before it on the same interface.
///
/// # Panics
/// If `out` is not exactly [`packet_block_bytes`] long.
#[inline]
pub fn put_packet(out: &mut [u8], interface: u32, packet: &Packet<'_>, dropped: u64) {
    let total = out.len() as u32;
    let captured = packet.data.len();
    let ns = packet.timestamp.as_nanos();
    let Some((head, rest)) = out.split_first_chunk_mut::<PACKET_HEADER_BYTES>() else {
        panic!("a packet block of {total} bytes is shorter than its header");
    };
    head[0..4].copy_from_slice(&ENHANCED_PACKET.to_le_bytes());
    head[4..8].copy_from_slice(&total.to_le_bytes());
    head[8..12].copy_from_slice(&interface.to_le_bytes());
    head[12..16].copy_from_slice(&((ns >> 32) as u32).to_le_bytes());
    head[16..20].copy_from_slice(&(ns as u32).to_le_bytes());
    head[20..24].copy_from_slice(&(captured as u32).to_le_bytes());
    head[24..28].copy_from_slice(&packet.original_length.to_le_bytes());
    let (body, end) = rest.split_at_mut(rest.len() - 4);
    body[..captured].copy_from_slice(packet.data);
    let filled = padded(captured);
    if filled > captured {
        body[captured..filled].fill(0);
    }
    let options = &mut body[filled..];
    if !options.is_empty() {
        let mut put = Put::new(options);
        put.raw(packet.options);
        if dropped > 0 {
            put.u16(EPB_DROPCOUNT).u16(8).u64(dropped);
        }
        put.u16(OPTION_END).u16(0);
    }
    // Last, so that memory is written in ascending order: stores wait for one another, and one far
    // ahead waits for a cache line that was not prefetched.
    end.copy_from_slice(&total.to_le_bytes());
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    out.resize(padded(out.len()), 0);
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let total = (body.len() + 12) as u32;
    let mut out = Vec::with_capacity(body.len() + 12);
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&total.to_le_bytes());
    out.extend_from_slice(body);
    out.extend_from_slice(&total.to_le_bytes());
    out
}

/// The longest text of an interface description in bytes. A chunk repeats the description of each
/// interface that it has packets of, and the smallest chunk must hold one and a packet.
const INTERFACE_TEXT_BYTES_MAX: usize = 1000;

/// Cuts a text for an option at a character's border.
fn clipped(text: &str, bytes_max: usize) -> &[u8] {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text.as_bytes()[..end]
}

/// How many bytes of an interface's texts its description leaves out: what is longer than
/// 1,000 bytes of name, description and filter, each for itself.
pub fn interface_bytes_cut(interface: &Interface) -> u64 {
    let Interface { name, description, filter, .. } = interface;
    let cut = |text: &String| text.len() - clipped(text, INTERFACE_TEXT_BYTES_MAX).len();
    [name, description, filter].into_iter().map(cut).sum::<usize>() as u64
}

/// An interface description block, time stamps in nanoseconds. Texts are cut after 1,000 bytes;
/// [`interface_bytes_cut`] says how much that leaves out.
pub fn interface_block(interface: &Interface) -> Vec<u8> {
    let mut body = Vec::with_capacity(128);
    body.extend_from_slice(&interface.link_type.0.to_le_bytes());
    body.extend_from_slice(&[0, 0]);
    body.extend_from_slice(&interface.snap_length.to_le_bytes());
    if !interface.name.is_empty() {
        option(&mut body, 2, clipped(&interface.name, INTERFACE_TEXT_BYTES_MAX));
    }
    if !interface.description.is_empty() {
        option(&mut body, 3, clipped(&interface.description, INTERFACE_TEXT_BYTES_MAX));
    }
    if interface.speed_bits > 0 {
        option(&mut body, 8, &interface.speed_bits.to_le_bytes());
    }
    option(&mut body, 9, &[9]);
    if !interface.filter.is_empty() {
        let mut filter = vec![0];
        filter.extend_from_slice(clipped(&interface.filter, INTERFACE_TEXT_BYTES_MAX));
        option(&mut body, 11, &filter);
    }
    option(&mut body, OPTION_END, &[]);
    block(INTERFACE, &body)
}

/// Totals of one interface since its take began, for a statistics block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceTotals {
    /// When the take began, ns since 1970.
    pub start_ns: u64,
    /// When the totals were taken, ns since 1970.
    pub end_ns: u64,
    /// Packets offered.
    pub received: u64,
    /// Dropped by the interface.
    pub dropped_by_interface: u64,
    /// Dropped by the operating system or for want of a buffer.
    pub dropped_by_system: u64,
    /// Packets recorded.
    pub delivered: u64,
    /// In words, what was lost; or empty.
    pub comment: String,
}

/// An interface statistics block.
pub fn statistics_block(interface: u32, totals: &InterfaceTotals) -> Vec<u8> {
    let mut body = Vec::with_capacity(256);
    let halves = |ns: u64| {
        let mut out = [0; 8];
        out[..4].copy_from_slice(&((ns >> 32) as u32).to_le_bytes());
        out[4..].copy_from_slice(&(ns as u32).to_le_bytes());
        out
    };
    body.extend_from_slice(&interface.to_le_bytes());
    body.extend_from_slice(&halves(totals.end_ns));
    if !totals.comment.is_empty() {
        option(&mut body, OPTION_COMMENT, clipped(&totals.comment, 400));
    }
    option(&mut body, 2, &halves(totals.start_ns));
    option(&mut body, 3, &halves(totals.end_ns));
    option(&mut body, 4, &totals.received.to_le_bytes());
    option(&mut body, 5, &totals.dropped_by_interface.to_le_bytes());
    option(&mut body, 7, &totals.dropped_by_system.to_le_bytes());
    option(&mut body, 8, &totals.delivered.to_le_bytes());
    option(&mut body, OPTION_END, &[]);
    block(STATISTICS, &body)
}

/// The longest [`statistics_block`].
pub const STATISTICS_BYTES_MAX: usize = 12 + 12 + (4 + 400) + 6 * 12 + 4;

/// The longest [`interface_block`].
pub const INTERFACE_BYTES_MAX: usize =
    12 + 8 + 2 * (4 + INTERFACE_TEXT_BYTES_MAX) + 12 + 8 + (8 + INTERFACE_TEXT_BYTES_MAX) + 4;

/// A plain section header block, for files that are not on the media, of unknown length.
pub fn section_header(application: &str, comment: &str) -> Vec<u8> {
    let mut body = Vec::with_capacity(128);
    body.extend_from_slice(&BYTE_ORDER.to_le_bytes());
    body.extend_from_slice(&[1, 0, 0, 0]);
    body.extend_from_slice(&u64::MAX.to_le_bytes());
    if !comment.is_empty() {
        option(&mut body, OPTION_COMMENT, clipped(comment, 4000));
    }
    option(&mut body, 4, clipped(application, 200));
    option(&mut body, OPTION_END, &[]);
    block(SECTION_HEADER, &body)
}

/// One block: its type, its whole bytes, and where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// Block type.
    pub kind: u32,
    /// The block from its type to its second length.
    pub bytes: &'a [u8],
    /// Offset of its first byte in what is walked.
    pub offset: usize,
}

impl<'a> Block<'a> {
    /// What lies between the two lengths.
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[8..self.bytes.len() - 4]
    }
}

/// Walks little-endian blocks; stops after the first that is damaged.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Blocks<'a> {
    /// From the start of `bytes`, which must be a block's.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

/// Four bytes as a little-endian number. The caller knows that they are there.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Result<Block<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return None;
        }
        let offset = self.at;
        // Whatever goes wrong is final: the next block's place is not known.
        self.at = self.bytes.len();
        if rest.len() < 12 {
            return Some(Err(Damage::Short));
        }
        let total = u32_at(rest, 4) as usize;
        if total < 12 || !total.is_multiple_of(4) {
            return Some(Err(Damage::Length));
        }
        let Some(bytes) = rest.get(..total) else {
            return Some(Err(Damage::Short));
        };
        if u32_at(bytes, total - 4) as usize != total {
            return Some(Err(Damage::Length));
        }
        self.at = offset + total;
        Some(Ok(Block { kind: u32_at(bytes, 0), bytes, offset }))
    }
}

/// Walks the options at the end of a block's body: code and value. Stops at the end or at damage.
pub fn options(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (code, length) = (bytes.get(..2)?, bytes.get(2..4)?);
        let code = u16::from_le_bytes([code[0], code[1]]);
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        if code == OPTION_END {
            return None;
        }
        let value = bytes.get(4..4 + length)?;
        bytes = bytes.get(4 + padded(length)..).unwrap_or(&[]);
        Some((code, value))
    })
}

/// Reads an interface description block that [`interface_block`] wrote.
///
/// # Errors
/// [`Damage::Short`] if its fixed part is missing.
pub fn read_interface(block: &Block<'_>) -> Result<Interface, Damage> {
    let body = block.body();
    if body.len() < 8 {
        return Err(Damage::Short);
    }
    let mut interface = Interface {
        name: String::new(),
        description: String::new(),
        link_type: crate::packet::LinkType(u16::from_le_bytes([body[0], body[1]])),
        snap_length: u32_at(body, 4),
        filter: String::new(),
        speed_bits: 0,
    };
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    for (code, value) in options(&body[8..]) {
        match (code, value) {
            (2, _) => interface.name = text(value),
            (3, _) => interface.description = text(value),
            (8, &[a, b, c, d, e, f, g, h]) => {
                interface.speed_bits = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            }
            (11, [0, filter @ ..]) => interface.filter = text(filter),
            _ => {}
        }
    }
    Ok(interface)
}

/// An enhanced packet block, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPacket<'a> {
    /// Interface number within its section.
    pub interface: u32,
    /// Time in units of the interface (nanoseconds in what Longtake wrote).
    pub time: u64,
    /// Length on the wire in bytes.
    pub original_length: u32,
    /// The bytes kept.
    pub data: &'a [u8],
    /// The options, with their end.
    pub options: &'a [u8],
}

impl ReadPacket<'_> {
    /// Packets lost right before this one on its interface (`epb_dropcount`).
    pub fn dropped(&self) -> u64 {
        options(self.options)
            .find_map(|(code, value)| match (code, value) {
                (EPB_DROPCOUNT, &[a, b, c, d, e, f, g, h]) => {
                    Some(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
                }
                _ => None,
            })
            .unwrap_or(0)
    }
}

/// Reads an enhanced packet block.
///
/// # Errors
/// [`Damage`] if it is too short for what it says.
#[inline]
pub fn read_packet<'a>(block: &Block<'a>) -> Result<ReadPacket<'a>, Damage> {
    let body = block.body();
    if body.len() < 20 {
        return Err(Damage::Short);
    }
    let captured = u32_at(body, 12) as usize;
    let data = body.get(20..20usize.saturating_add(captured)).ok_or(Damage::Length)?;
    Ok(ReadPacket {
        interface: u32_at(body, 0),
        time: u64::from(u32_at(body, 4)) << 32 | u64::from(u32_at(body, 8)),
        original_length: u32_at(body, 16),
        data,
        options: body.get(20 + padded(captured)..).unwrap_or(&[]),
    })
}
