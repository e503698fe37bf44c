//! What an IP header carries: transport protocols with ports, ICMP, and tunnels.

use super::{Next, tunnel};
use crate::cursor::{Cursor, be16};
use crate::layers::{End, Layer, Layers};
use crate::protocol;

/// Destination port of VXLAN (RFC 7348, section 8).
const VXLAN_PORT: u16 = 4789;
/// Destination port of GTP-U (3GPP TS 29.281, section 4.4.2).
const GTP_PORT: u16 = 2152;

/// What an IP protocol says.
#[inline]
pub fn protocol(number: u8, cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, End> {
    match number {
        protocol::TCP => {
            ports(cursor, layers)?;
            // Only a copy goes on, past the numbers of sequence and acknowledgement: a packet may end behind its ports.
            if let Ok(&[.., offset, flags]) = { *cursor }.take::<10>() {
                layers.set_tcp_flags(be16(offset & 0x0f, flags));
            }
            Err(End::Payload)
        }
        protocol::SCTP | protocol::DCCP | protocol::UDP_LITE => {
            ports(cursor, layers)?;
            Err(End::Payload)
        }
        protocol::UDP => udp(cursor, layers),
        protocol::ICMP | protocol::ICMPV6 => {
            let [kind, code] = *cursor.take()?;
            layers.push(Layer::Icmp(kind, code))?;
            Err(End::Payload)
        }
        protocol::IPV4 => Ok(Next::Ipv4),
        protocol::IPV6 => Ok(Next::Ipv6),
        protocol::GRE => tunnel::gre(cursor, layers),
        protocol::MPLS => Ok(Next::Mpls),
        _ => Err(End::Payload),
    }
}

/// Source and destination port: the first four bytes of every transport protocol that has ports.
#[inline]
fn ports(cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<u16, End> {
    let [a, b, c, d] = *cursor.take()?;
    layers.push(Layer::Ports(be16(a, b), be16(c, d)))?;
    Ok(be16(c, d))
}

/// UDP (RFC 768), and the tunnels that are known by their destination port.
#[inline]
fn udp(cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, End> {
    let destination = ports(cursor, layers)?;
    match destination {
        VXLAN_PORT => {
            cursor.skip(4)?;
            tunnel::vxlan(cursor, layers)
        }
        GTP_PORT => {
            cursor.skip(4)?;
            tunnel::gtp(cursor, layers)
        }
        _ => Err(End::Payload),
    }
}
