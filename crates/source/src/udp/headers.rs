//! IP and UDP headers made from a datagram's addresses, so that tools which read packets decode what
//! a socket received.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use format::{Interface, LinkType};

/// Begins the description of an interface whose packets have headers that Longtake made, so that a
/// reader can tell them from headers that were captured.
pub const HEADERS_MADE: &str = "IP and UDP headers made from the addresses of a socket";

/// Room to leave in front of a payload: an IPv6 and a UDP header.
pub(super) const HEADROOM: usize = IPV6_HEADER + UDP_HEADER;

const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;
/// Hop limit of the made headers; the real one is not known.
const HOPS: u8 = 64;
const PROTOCOL_UDP: u8 = 17;

/// Whether the headers of an interface's packets were made from a socket's addresses.
pub fn has_made_headers(interface: &Interface) -> bool {
    interface.link_type == LinkType::RAW_IP && interface.description.starts_with(HEADERS_MADE)
}

/// The payload behind made headers, as far as it was kept. Made headers have no options, so that their
/// length follows from the IP version.
pub fn past_made_headers(packet: &[u8]) -> &[u8] {
    let ip = match packet.first().map(|first| first >> 4) {
        Some(4) => IPV4_HEADER,
        Some(6) => IPV6_HEADER,
        _ => return packet,
    };
    packet.get(ip + UDP_HEADER..).unwrap_or_default()
}

/// Writes the headers right in front of the payload, which begins at [`HEADROOM`] in `buffer`, and
/// returns how many bytes they are. `payload_length` counts what was sent; `buffer` may hold less.
pub(super) fn write(
    buffer: &mut [u8],
    payload_length: usize,
    source: SocketAddr,
    destination: SocketAddr,
) -> usize {
    // A socket for both IP versions calls IPv4 addresses ::ffff:a.b.c.d.
    let (source_ip, destination_ip) = (source.ip().to_canonical(), destination.ip().to_canonical());
    let udp_length = UDP_HEADER + payload_length;
    let udp = HEADROOM - UDP_HEADER;
    buffer[udp..udp + 2].copy_from_slice(&source.port().to_be_bytes());
    buffer[udp + 2..udp + 4].copy_from_slice(&destination.port().to_be_bytes());
    buffer[udp + 4..udp + 6].copy_from_slice(&(udp_length as u16).to_be_bytes());
    buffer[udp + 6..udp + 8].fill(0);
    match (source_ip, destination_ip) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            // Over IPv4 a checksum of zero says that there is none (RFC 768).
            write_ipv4(&mut buffer[udp - IPV4_HEADER..udp], udp_length, from, to);
            IPV4_HEADER + UDP_HEADER
        }
        (from, to) => {
            let (from, to) = (ipv6_of(from), ipv6_of(to));
            if buffer.len() == HEADROOM + payload_length {
                let checksum = udp_checksum(&buffer[udp..], from, to);
                buffer[udp + 6..udp + 8].copy_from_slice(&checksum.to_be_bytes());
            }
            write_ipv6(&mut buffer[..udp], udp_length, from, to);
            HEADROOM
        }
    }
}

fn write_ipv4(header: &mut [u8], udp_length: usize, from: Ipv4Addr, to: Ipv4Addr) {
    header.fill(0);
    header[0] = 0x45;
    header[2..4].copy_from_slice(&((IPV4_HEADER + udp_length) as u16).to_be_bytes());
    // Don't fragment: then the identification means nothing (RFC 6864).
    header[6] = 0x40;
    header[8] = HOPS;
    header[9] = PROTOCOL_UDP;
    header[12..16].copy_from_slice(&from.octets());
    header[16..20].copy_from_slice(&to.octets());
    let checksum = !fold(sum(0, header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

fn write_ipv6(header: &mut [u8], udp_length: usize, from: Ipv6Addr, to: Ipv6Addr) {
    header.fill(0);
    header[0] = 0x60;
    header[4..6].copy_from_slice(&(udp_length as u16).to_be_bytes());
    header[6] = PROTOCOL_UDP;
    header[7] = HOPS;
    header[8..24].copy_from_slice(&from.octets());
    header[24..40].copy_from_slice(&to.octets());
}

fn ipv6_of(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(a) => a.to_ipv6_mapped(),
        IpAddr::V6(a) => a,
    }
}

/// The checksum over the pseudo header and the datagram (RFC 8200, section 8.1).
fn udp_checksum(datagram: &[u8], from: Ipv6Addr, to: Ipv6Addr) -> u16 {
    let mut total = sum(0, &from.octets());
    total = sum(total, &to.octets());
    total += datagram.len() as u64 + u64::from(PROTOCOL_UDP);
    match !fold(sum(total, datagram)) {
        0 => 0xffff,
        checksum => checksum,
    }
}

/// Adds 16-bit big-endian words, the last one padded with zero (RFC 1071). Four bytes at a time have
/// the same sum once it is folded.
fn sum(mut total: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    total += words.iter().map(|&word| u64::from(u32::from_be_bytes(word))).sum::<u64>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    total + u64::from(u32::from_be_bytes(last))
}

fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(payload: &[u8], sent: usize, source: &str, destination: &str) -> Vec<u8> {
        let mut buffer = vec![0xee; HEADROOM];
        buffer.extend(payload);
        let length =
            write(&mut buffer, sent, source.parse().unwrap(), destination.parse().unwrap());
        buffer[HEADROOM - length..].to_vec()
    }

    #[test]
    fn an_ipv4_header_sums_to_zero_and_carries_the_addresses() {
        let packet = made(b"abc", 3, "10.0.0.1:1000", "239.1.2.3:2000");
        assert_eq!(packet.len(), 31);
        assert_eq!(fold(sum(0, &packet[..20])), 0xffff);
        assert_eq!(packet[2..4], [0, 31]);
        assert_eq!(packet[12..20], [10, 0, 0, 1, 239, 1, 2, 3]);
        assert_eq!(packet[20..28], [0x03, 0xe8, 0x07, 0xd0, 0, 11, 0, 0]);
    }

    #[test]
    fn an_ipv6_datagram_has_a_right_checksum_also_with_an_odd_length() {
        for payload in [&b"abc"[..], b"", b"abcd", &[0xff; 999]] {
            let packet = made(payload, payload.len(), "[fe80::1]:1", "[ff02::2]:2");
            let pseudo = sum(sum(0, &packet[8..40]), &[0, PROTOCOL_UDP]);
            let length = packet.len() as u64 - 40;
            assert_eq!(fold(sum(pseudo + length, &packet[40..])), 0xffff);
            assert_eq!(usize::from(u16::from_be_bytes([packet[4], packet[5]])), 8 + payload.len());
        }
    }

    #[test]
    fn the_payload_is_found_behind_made_headers_also_if_packets_were_cut() {
        for (source, destination, headers) in
            [("10.0.0.1:1", "10.0.0.2:2", 28), ("[fe80::1]:1", "[ff02::2]:2", 48)]
        {
            let packet = made(b"abc", 3, source, destination);
            assert_eq!(past_made_headers(&packet), b"abc");
            assert_eq!(past_made_headers(&packet[..headers + 1]), b"a");
            assert_eq!(past_made_headers(&packet[..headers]), b"");
            assert_eq!(past_made_headers(&packet[..20]), b"");
        }
    }

    #[test]
    fn a_mapped_address_makes_an_ipv4_header_and_lengths_are_those_sent() {
        let packet = made(b"ab", 1000, "[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.2]:2");
        assert_eq!(packet[0], 0x45);
        assert_eq!(packet[2..4], 1028u16.to_be_bytes());
        assert_eq!(packet[24..26], 1008u16.to_be_bytes());
    }
}
