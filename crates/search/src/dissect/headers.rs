//! Where a packet's headers end: what is kept of it if its payload isn't wanted. Headers that are kept are dissected to the same
//! layers as the whole packet.

use format::LinkType;

use super::walk;
use crate::cursor::Cursor;
use crate::layers::{End, IpLayer, Layer, Layers};
use crate::protocol;

/// Bytes that count as headers in a packet without an IP header, or of a link type that is not dissected.
pub const OTHER_BYTES: usize = 128;

/// Bytes that count as the header of an IP payload whose protocol is not dissected, as many as an ICMP error quotes (RFC 792).
const PAYLOAD_BYTES: usize = 8;

/// Dissects a packet as [`dissect`](super::dissect()) does. Returns how many of its first bytes are headers, up to that of the
/// innermost transport protocol with its options. A packet counts whole if its headers are cut short, contradict themselves, or go
/// deeper than anybody uses.
#[inline]
pub fn dissect_headers(link_type: LinkType, packet: &[u8], layers: &mut Layers) -> usize {
    layers.clear();
    let mut cursor = Cursor::new(packet);
    let end = walk(link_type, &mut cursor, layers);
    layers.end_with(end);
    let passed = cursor.passed(packet);
    let bytes = match end {
        End::Truncated | End::TooDeep | End::Malformed => packet.len(),
        End::Fragment => passed,
        End::Payload => passed + behind(layers.all(), packet, passed),
    };
    bytes.min(packet.len())
}

/// Header bytes behind those that dissecting has passed.
#[inline]
fn behind(layers: &[Layer], packet: &[u8], passed: usize) -> usize {
    match layers {
        [.., Layer::Ip(IpLayer { protocol, .. }), Layer::Ports(..)] => {
            transport(*protocol, packet, passed)
        }
        // Type and code are passed.
        [.., Layer::Icmp(..)] => 6,
        layers if layers.iter().any(|layer| matches!(layer, Layer::Ip(_))) => PAYLOAD_BYTES,
        _ => OTHER_BYTES.saturating_sub(passed).max(1),
    }
}

/// Bytes of a transport protocol's header behind its ports.
#[inline]
fn transport(number: Option<u8>, packet: &[u8], passed: usize) -> usize {
    const PORTS_BYTES: usize = 4;
    // Nothing is known to be payload if the length of the header, in words of 4 bytes, is missing.
    let byte = |at| packet.get(passed - PORTS_BYTES + at).map(|&byte| usize::from(byte));
    let words = |words: Option<usize>| words.map_or(packet.len(), |words| words * 4);
    let header = match number {
        // RFC 9293: the length is the higher half of its byte.
        Some(protocol::TCP) => words(byte(12).map(|byte| byte >> 4)).max(20),
        // RFC 4340.
        Some(protocol::DCCP) => words(byte(4)).max(12),
        // RFC 9260.
        Some(protocol::SCTP) => 12,
        _ => 8,
    };
    header - PORTS_BYTES
}
