//! Headers of tunnels: GRE, VXLAN, GTP-U.

use super::Next;
use crate::cursor::{Cursor, be16};
use crate::layers::{End, Layer, Layers, Tunnel};

/// Bits of a GRE header's first two bytes (RFC 1701, 2784, 2890).
mod gre_flags {
    pub const CHECKSUM: u16 = 0x8000;
    /// A source route, which RFC 2784 has abolished.
    pub const ROUTING: u16 = 0x4000;
    pub const KEY: u16 = 0x2000;
    pub const SEQUENCE: u16 = 0x1000;
    /// Version 1 is PPTP's, which carries PPP (RFC 2637).
    pub const VERSION: u16 = 7;
}

/// A GRE header (RFC 2784) with key and sequence number (RFC 2890).
pub fn gre(cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, End> {
    let [a, b, c, d] = *cursor.take()?;
    let flags = be16(a, b);
    if flags & (gre_flags::ROUTING | gre_flags::VERSION) != 0 {
        return Err(End::Payload);
    }
    if flags & gre_flags::CHECKSUM != 0 {
        cursor.skip(4)?;
    }
    let key = match flags & gre_flags::KEY {
        0 => None,
        _ => Some(u32::from_be_bytes(*cursor.take()?)),
    };
    if flags & gre_flags::SEQUENCE != 0 {
        cursor.skip(4)?;
    }
    layers.push(Layer::Tunnel(Tunnel::Gre(key)))?;
    Ok(Next::EtherType(be16(c, d)))
}

/// A VXLAN header (RFC 7348), which has its identifier only if a flag says so.
pub fn vxlan(cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, End> {
    const HAS_IDENTIFIER: u8 = 0x08;
    let [flags, _, _, _, a, b, c, _] = *cursor.take()?;
    if flags & HAS_IDENTIFIER == 0 {
        return Err(End::Payload);
    }
    layers.push(Layer::Tunnel(Tunnel::Vxlan(u32::from_be_bytes([0, a, b, c]))))?;
    Ok(Next::Ethernet)
}

/// A GTP-U header (3GPP TS 29.281, section 5.1) with its extension headers; only a G-PDU carries a user's packet.
pub fn gtp(cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, End> {
    /// Version 1 (three bits), and GTP rather than GTP'.
    const VERSION_AND_TYPE: u8 = 0x30;
    const VERSION_AND_TYPE_MASK: u8 = 0xf0;
    const HAS_OPTIONS: u8 = 7;
    const HAS_EXTENSION: u8 = 4;
    const G_PDU: u8 = 255;
    let [flags, message, _, _, a, b, c, d] = *cursor.take()?;
    if flags & VERSION_AND_TYPE_MASK != VERSION_AND_TYPE || message != G_PDU {
        return Err(End::Payload);
    }
    if flags & HAS_OPTIONS != 0 {
        let [_, _, _, extension] = *cursor.take()?;
        if flags & HAS_EXTENSION != 0 {
            gtp_extensions(extension, cursor)?;
        }
    }
    layers.push(Layer::Tunnel(Tunnel::Gtp(u32::from_be_bytes([a, b, c, d]))))?;
    Ok(Next::Ip)
}

/// Passes extension headers, each of which begins with its length in 4-byte units and ends with the type of the next.
fn gtp_extensions(mut kind: u8, cursor: &mut Cursor<'_>) -> Result<(), End> {
    while kind != 0 {
        let [units] = *cursor.take()?;
        // The length and the next type are two of the bytes.
        cursor.skip((usize::from(units) * 4).checked_sub(2).ok_or(End::Malformed)?)?;
        [kind] = *cursor.take()?;
    }
    Ok(())
}
