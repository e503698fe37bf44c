//! IP headers with their extension headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Next;
use crate::cursor::{Cursor, be16};
use crate::layers::{End, Fragment, IpLayer, Layer, Layers, Part};

/// Extension headers that are passed at most; RFC 8200 has each of six kinds once, and one of them twice.
const EXTENSIONS_MAX: usize = 16;

/// Numbers of extension headers (RFC 8200; RFC 4302 for authentication).
mod extensions {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const AUTHENTICATION: u8 = 51;
    pub const DESTINATION: u8 = 60;
}

/// IP by its version.
#[inline]
pub fn any(cursor: &mut Cursor<'_>) -> Result<Next, End> {
    match cursor.peek()? >> 4 {
        4 => Ok(Next::Ipv4),
        6 => Ok(Next::Ipv6),
        _ => Err(End::Payload),
    }
}

/// An IPv4 header (RFC 791).
#[inline]
pub fn v4(cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, End> {
    let header = cursor.take::<20>()?;
    let length = usize::from(header[0] & 15) * 4;
    if header[0] >> 4 != 4 || length < 20 {
        return Err(End::Malformed);
    }
    // Zero where a driver leaves the division into packets to the hardware: then all bytes belong to it.
    let total = usize::from(be16(header[2], header[3]));
    if total != 0 {
        cursor.limit(total.checked_sub(20).ok_or(End::Malformed)?);
    }
    let flags = be16(header[6], header[7]);
    let id = u32::from(be16(header[4], header[5]));
    let mut ip = IpLayer {
        source: address_v4([header[12], header[13], header[14], header[15]]),
        destination: address_v4([header[16], header[17], header[18], header[19]]),
        protocol: None,
        fragment: part(flags & 0x1fff, flags & 0x2000 != 0).map(|part| Fragment { id, part }),
    };
    let protocol = cursor.skip(length - 20).and_then(|()| authenticated(header[9], &ip, cursor));
    ip.protocol = protocol.ok();
    follow(ip, protocol, layers)
}

/// An IPv6 header (RFC 8200).
#[inline]
pub fn v6(cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, End> {
    let header = cursor.take::<40>()?;
    if header[0] >> 4 != 6 {
        return Err(End::Malformed);
    }
    // Zero in a jumbogram (RFC 2675).
    let length = usize::from(be16(header[4], header[5]));
    if length != 0 {
        cursor.limit(length);
    }
    let [source, destination] = [8, 24].map(|at| {
        let octets: [u8; 16] = std::array::from_fn(|octet| header[at + octet]);
        IpAddr::V6(Ipv6Addr::from(octets))
    });
    let mut ip = IpLayer { source, destination, protocol: None, fragment: None };
    let protocol = extensions(header[6], &mut ip, cursor);
    ip.protocol = protocol.ok();
    follow(ip, protocol, layers)
}

const fn address_v4(octets: [u8; 4]) -> IpAddr {
    let [a, b, c, d] = octets;
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

/// Which fragment it is, if any. An IPv6 fragment header may say that the datagram is whole (RFC 6946).
const fn part(offset: u16, more: bool) -> Option<Part> {
    match (offset, more) {
        (0, false) => None,
        (0, true) => Some(Part::First),
        _ => Some(Part::Later),
    }
}

/// Appends a header whose extension headers have been passed, and says what follows it.
#[inline]
fn follow(ip: IpLayer, protocol: Result<u8, End>, layers: &mut Layers) -> Result<Next, End> {
    let is_later = is_later(&ip);
    layers.push(Layer::Ip(ip))?;
    let protocol = protocol?;
    if is_later { Err(End::Fragment) } else { Ok(Next::Protocol(protocol)) }
}

fn is_later(ip: &IpLayer) -> bool {
    ip.fragment.is_some_and(|fragment| fragment.part == Part::Later)
}

/// The protocol behind an authentication header, if there is one: IPv4 has no other extension header.
#[inline]
fn authenticated(next: u8, ip: &IpLayer, cursor: &mut Cursor<'_>) -> Result<u8, End> {
    if next == extensions::AUTHENTICATION && !is_later(ip) {
        return authentication(cursor);
    }
    Ok(next)
}

/// Passes an authentication header (RFC 4302), whose length counts 4-byte words less two. Returns what follows it.
fn authentication(cursor: &mut Cursor<'_>) -> Result<u8, End> {
    let [next, words] = *cursor.take()?;
    cursor.skip(usize::from(words) * 4 + 6)?;
    Ok(next)
}

/// Passes extension headers. Returns the protocol behind them.
#[inline]
fn extensions(mut next: u8, ip: &mut IpLayer, cursor: &mut Cursor<'_>) -> Result<u8, End> {
    for _ in 0..EXTENSIONS_MAX {
        match next {
            extensions::HOP_BY_HOP | extensions::ROUTING | extensions::DESTINATION => {
                // The length counts 8-byte units after the first.
                let [following, units] = *cursor.take()?;
                cursor.skip(usize::from(units) * 8 + 6)?;
                next = following;
            }
            extensions::AUTHENTICATION => next = authentication(cursor)?,
            extensions::FRAGMENT => {
                let [following, _, high, low, a, b, c, d] = *cursor.take()?;
                next = following;
                let offset = be16(high, low);
                let id = u32::from_be_bytes([a, b, c, d]);
                ip.fragment = part(offset >> 3, offset & 1 != 0).map(|part| Fragment { id, part });
                if is_later(ip) {
                    return Ok(next);
                }
            }
            protocol => return Ok(protocol),
        }
    }
    Err(End::TooDeep)
}
