//! A packet's bytes become its layers. Each header says what follows it, and one loop goes from header to header, so that neither
//! memory nor the stack grows with what a packet claims.

mod headers;
mod ip;
mod link;
mod transport;
mod tunnel;

use format::LinkType;

pub use headers::{OTHER_BYTES, dissect_headers};

use crate::cursor::Cursor;
use crate::layers::{End, Layers};

/// What follows a header.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// An Ethernet frame.
    Ethernet,
    /// What this EtherType says.
    EtherType(u16),
    /// An entry of an MPLS label stack.
    Mpls,
    /// IP of the version that its first four bits name.
    Ip,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// What this IP protocol says.
    Protocol(u8),
}

/// Whether packets of a link type are looked into. Of others, no layers are found.
pub const fn is_dissected(link_type: LinkType) -> bool {
    link::is_known(link_type)
}

/// Finds the layers of a packet, as far as its bytes go. `layers` holds them afterwards, and nothing of the packet before.
#[inline]
pub fn dissect(link_type: LinkType, packet: &[u8], layers: &mut Layers) {
    layers.clear();
    let mut cursor = Cursor::new(packet);
    let end = walk(link_type, &mut cursor, layers);
    layers.end_with(end);
}

#[inline]
fn walk(link_type: LinkType, cursor: &mut Cursor<'_>, layers: &mut Layers) -> End {
    let mut next = link::header(link_type, cursor);
    loop {
        next = match next {
            Ok(next) => step(next, cursor, layers),
            Err(end) => return end,
        };
    }
}

/// Reads one header.
#[inline]
fn step(next: Next, cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, End> {
    match next {
        Next::Ethernet => link::ethernet(cursor),
        Next::EtherType(number) => link::ether_type(number, cursor, layers),
        Next::Mpls => link::mpls(cursor, layers),
        Next::Ip => ip::any(cursor),
        Next::Ipv4 => ip::v4(cursor, layers),
        Next::Ipv6 => ip::v6(cursor, layers),
        Next::Protocol(number) => transport::protocol(number, cursor, layers),
    }
}
