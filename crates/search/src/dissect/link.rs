//! What a packet begins with, and what lies between that and IP: Ethernet, VLAN tags, MPLS labels.

use std::net::Ipv4Addr;

use format::LinkType;

use super::Next;
use crate::cursor::{Cursor, be16};
use crate::layers::{End, Layer, Layers};

/// Link types by their numbers in the LINKTYPE registry of tcpdump.org, beside those that `format` names.
mod types {
    /// BSD loopback: an address family in the byte order of whoever captured.
    pub const NULL: u16 = 0;
    /// Raw IP, by the number that DLT_RAW has on most systems.
    pub const RAW_OLD: u16 = 12;
    /// The same on OpenBSD.
    pub const RAW_BSD: u16 = 14;
    /// OpenBSD loopback: an address family in network byte order.
    pub const LOOP: u16 = 108;
    /// Raw IPv4.
    pub const IPV4: u16 = 228;
    /// Raw IPv6.
    pub const IPV6: u16 = 229;
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: u16 = 276;
}

/// EtherTypes (IEEE 802 registry).
mod ether_types {
    pub const IPV4: u16 = 0x0800;
    pub const ARP: u16 = 0x0806;
    pub const RARP: u16 = 0x8035;
    /// C-TAG (IEEE 802.1Q).
    pub const VLAN: u16 = 0x8100;
    /// Transparent Ethernet bridging (RFC 1701).
    pub const BRIDGED: u16 = 0x6558;
    pub const IPV6: u16 = 0x86dd;
    pub const MPLS: u16 = 0x8847;
    /// MPLS with an upstream-assigned label (RFC 5332).
    pub const MPLS_UPSTREAM: u16 = 0x8848;
    /// S-TAG (IEEE 802.1ad).
    pub const PROVIDER_VLAN: u16 = 0x88a8;
    /// Stacked tags before 802.1ad had a number.
    pub const OLD_STACKED_VLAN: u16 = 0x9100;
    /// Smaller numbers are lengths of IEEE 802.3 frames.
    pub const LEAST: u16 = 0x0600;
}

/// AF_INET everywhere.
const FAMILY_IPV4: u32 = 2;
/// AF_INET6 of Linux, NetBSD and OpenBSD, FreeBSD, and macOS.
const FAMILIES_IPV6: [u32; 4] = [10, 24, 28, 30];

/// Whether packets of a link type are looked into.
pub const fn is_known(link_type: LinkType) -> bool {
    matches!(
        link_type,
        LinkType::ETHERNET
            | LinkType::RAW_IP
            | LinkType::LINUX_SLL
            | LinkType(
                types::LINUX_SLL2
                    | types::NULL
                    | types::LOOP
                    | types::IPV4
                    | types::IPV6
                    | types::RAW_OLD
                    | types::RAW_BSD
            )
    )
}

/// Reads what a packet of a link type begins with.
#[inline]
pub fn header(link_type: LinkType, cursor: &mut Cursor<'_>) -> Result<Next, End> {
    match link_type {
        LinkType::ETHERNET => Ok(Next::Ethernet),
        LinkType::RAW_IP => Ok(Next::Ip),
        LinkType::LINUX_SLL => {
            let header = cursor.take::<16>()?;
            Ok(Next::EtherType(be16(header[14], header[15])))
        }
        LinkType(types::LINUX_SLL2) => {
            let header = cursor.take::<20>()?;
            Ok(Next::EtherType(be16(header[0], header[1])))
        }
        LinkType(types::NULL | types::LOOP) => family(*cursor.take()?),
        LinkType(types::IPV4) => Ok(Next::Ipv4),
        LinkType(types::IPV6) => Ok(Next::Ipv6),
        LinkType(types::RAW_OLD | types::RAW_BSD) => Ok(Next::Ip),
        _ => Err(End::Payload),
    }
}

/// An address family in either byte order.
fn family(bytes: [u8; 4]) -> Result<Next, End> {
    match u32::from_le_bytes(bytes).min(u32::from_be_bytes(bytes)) {
        FAMILY_IPV4 => Ok(Next::Ipv4),
        family if FAMILIES_IPV6.contains(&family) => Ok(Next::Ipv6),
        _ => Err(End::Payload),
    }
}

/// An Ethernet header (IEEE 802.3).
#[inline]
pub fn ethernet(cursor: &mut Cursor<'_>) -> Result<Next, End> {
    let header = cursor.take::<14>()?;
    Ok(Next::EtherType(be16(header[12], header[13])))
}

/// What an EtherType says.
#[inline]
pub fn ether_type(number: u16, cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, End> {
    match number {
        ether_types::IPV4 => Ok(Next::Ipv4),
        ether_types::IPV6 => Ok(Next::Ipv6),
        ether_types::ARP | ether_types::RARP => arp(cursor, layers),
        ether_types::VLAN | ether_types::PROVIDER_VLAN | ether_types::OLD_STACKED_VLAN => {
            let [high, low, inner_high, inner_low] = *cursor.take()?;
            layers.push(Layer::Vlan(be16(high, low) & 0xfff))?;
            Ok(Next::EtherType(be16(inner_high, inner_low)))
        }
        ether_types::MPLS | ether_types::MPLS_UPSTREAM => Ok(Next::Mpls),
        ether_types::BRIDGED => Ok(Next::Ethernet),
        length if length < ether_types::LEAST => snap(cursor),
        _ => Err(End::Payload),
    }
}

/// ARP and RARP (RFC 826, RFC 903) between hosts with addresses of Ethernet and IPv4. Others are read as if they had those, as
/// filters do.
fn arp(cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, End> {
    let [_, _, _, _, _, _, _, _, _, _, _, _, _, _, a, b, c, d, _, _, _, _, _, _, e, f, g, h] =
        *cursor.take()?;
    layers.push(Layer::Arp(Ipv4Addr::new(a, b, c, d), Ipv4Addr::new(e, f, g, h)))?;
    Err(End::Payload)
}

/// LLC with SNAP (IEEE 802): an EtherType behind a length.
fn snap(cursor: &mut Cursor<'_>) -> Result<Next, End> {
    match *cursor.take::<8>()? {
        [0xaa, 0xaa, 3, 0, 0, 0, high, low] if be16(high, low) >= ether_types::LEAST => {
            Ok(Next::EtherType(be16(high, low)))
        }
        _ => Err(End::Payload),
    }
}

/// An entry of a label stack (RFC 3032). Nothing says what follows the last one; if it is IP, its first four bits do (RFC 4928).
#[inline]
pub fn mpls(cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, End> {
    let entry = u32::from_be_bytes(*cursor.take()?);
    layers.push(Layer::Mpls(entry >> 12))?;
    let is_last = entry & 0x100 != 0;
    Ok(if is_last { Next::Ip } else { Next::Mpls })
}
