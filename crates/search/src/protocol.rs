//! IP protocols by number (IANA, "Assigned Internet Protocol Numbers").

/// ICMP (RFC 792).
pub const ICMP: u8 = 1;
/// IPv4 in IP (RFC 2003).
pub const IPV4: u8 = 4;
/// TCP (RFC 9293).
pub const TCP: u8 = 6;
/// UDP (RFC 768).
pub const UDP: u8 = 17;
/// DCCP (RFC 4340).
pub const DCCP: u8 = 33;
/// IPv6 in IP (RFC 4213).
pub const IPV6: u8 = 41;
/// GRE (RFC 2784).
pub const GRE: u8 = 47;
/// ESP (RFC 4303).
pub const ESP: u8 = 50;
/// ICMPv6 (RFC 4443).
pub const ICMPV6: u8 = 58;
/// SCTP (RFC 9260).
pub const SCTP: u8 = 132;
/// UDP-Lite (RFC 3828).
pub const UDP_LITE: u8 = 136;
/// MPLS in IP (RFC 4023).
pub const MPLS: u8 = 137;

const NAMES: [(u8, &str); 17] = [
    (ICMP, "ICMP"),
    (2, "IGMP"),
    (IPV4, "IPv4"),
    (TCP, "TCP"),
    (UDP, "UDP"),
    (DCCP, "DCCP"),
    (IPV6, "IPv6"),
    (46, "RSVP"),
    (GRE, "GRE"),
    (ESP, "ESP"),
    (ICMPV6, "ICMPv6"),
    (89, "OSPF"),
    (103, "PIM"),
    (112, "VRRP"),
    (SCTP, "SCTP"),
    (UDP_LITE, "UDP-Lite"),
    (MPLS, "MPLS"),
];

/// A protocol's usual name, or None for one that is rarely seen.
pub fn name(protocol: u8) -> Option<&'static str> {
    NAMES.iter().find(|(number, _)| *number == protocol).map(|(_, name)| *name)
}
