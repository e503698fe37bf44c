//! The headers in front of a transport header, prepared once for each direction of a flow: a packet copies them and
//! sets the lengths, identifications and checksums.

use super::checksum;
use super::mix::{Tag, Tunnel, Version};

/// The longest: two tags, a VXLAN tunnel and an IPv6 header with a fragment header.
pub(super) const HEADERS_BYTES_MAX: usize = 14 + 8 + 20 + 8 + 8 + 14 + 40 + 8;

/// The most headers with a length that changes.
const LAYERS_MAX: usize = 4;

const PROTOCOL_IPV4: u8 = 4;
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_IPV6: u8 = 41;
const PROTOCOL_FRAGMENT: u8 = 44;
const PROTOCOL_GRE: u8 = 47;
const TIME_TO_LIVE: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;
const ETHERTYPES: [u16; 2] = [0x0800, 0x86dd];
const VXLAN_PORT: u16 = 4789;
const GTP_PORT: u16 = 2152;

/// The address of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Address {
    V4([u8; 4]),
    V6([u8; 16]),
}

/// From where to where, and through what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub source: Address,
    pub destination: Address,
    pub protocol: u8,
    /// Whether datagrams come in fragments.
    pub fragments: bool,
    pub tag: Tag,
    pub tunnel: Tunnel,
    /// Chooses tags, labels, tunnels and their ends.
    pub network: u32,
    /// 0 from the client to the server, 1 back.
    pub direction: u8,
}

/// A header with a length.
#[derive(Clone, Copy, Debug)]
enum Layer {
    /// `sum` is that of the header without length, identification, fragment and checksum.
    Ipv4 {
        at: u8,
        sum: u32,
        inner: bool,
    },
    Ipv6 {
        at: u8,
    },
    Udp {
        at: u8,
    },
    Gtp {
        at: u8,
    },
}

/// What part of a datagram a packet carries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fragment {
    /// The datagram's number.
    pub datagram: u32,
    /// Where it starts, a multiple of 8.
    pub offset: u16,
    /// Whether there are more.
    pub more: bool,
}

/// Prepared headers.
#[derive(Clone, Debug)]
pub(super) struct Headers {
    bytes: [u8; HEADERS_BYTES_MAX],
    length: u8,
    layers: [Option<Layer>; LAYERS_MAX],
    fragments: bool,
    /// The sum of the pseudo-header without length.
    pub pseudo_sum: u32,
}

impl Headers {
    /// Prepares headers.
    pub(super) fn new(route: &Route) -> Self {
        let mut headers = Self {
            bytes: [0; HEADERS_BYTES_MAX],
            length: 0,
            layers: [None; LAYERS_MAX],
            fragments: route.fragments,
            pseudo_sum: 0,
        };
        let version = match route.source {
            Address::V4(_) => Version::V4,
            Address::V6(_) => Version::V6,
        };
        let outer = if route.tunnel == Tunnel::None { version } else { Version::V4 };
        headers.ethernet(route.direction, None);
        headers.tag(route, outer);
        headers.tunnel(route, version);
        headers.ip(route.source, route.destination, route.protocol, true);
        let protocol = u64::from(route.protocol);
        let sum = address_sum(route.source) + address_sum(route.destination) + protocol;
        headers.pseudo_sum = sum as u32;
        headers
    }

    /// Their bytes.
    pub(super) const fn length(&self) -> usize {
        self.length as usize
    }

    /// Writes them in front of what makes the frame `total` bytes long.
    #[inline]
    pub(super) fn write(
        &self,
        frame: &mut [u8],
        total: usize,
        id: u16,
        fragment: Option<Fragment>,
    ) {
        frame[..HEADERS_BYTES_MAX].copy_from_slice(&self.bytes);
        for layer in self.layers.iter().map_while(|layer| *layer) {
            match layer {
                Layer::Ipv4 { at, sum, inner } => {
                    let (id, flags) = match fragment {
                        Some(part) if inner => {
                            (part.datagram as u16, (part.offset / 8) | (u16::from(part.more) << 13))
                        }
                        _ => (id, DONT_FRAGMENT),
                    };
                    let at = usize::from(at);
                    let length = (total - at) as u16;
                    let changed = u64::from(length) + u64::from(id) + u64::from(flags);
                    put(frame, at + 2, length);
                    put(frame, at + 4, id);
                    put(frame, at + 6, flags);
                    put(frame, at + 10, checksum::finish(u64::from(sum) + changed));
                }
                Layer::Ipv6 { at } => {
                    put(frame, usize::from(at) + 4, (total - usize::from(at) - 40) as u16);
                }
                Layer::Udp { at } => {
                    put(frame, usize::from(at) + 4, (total - usize::from(at)) as u16)
                }
                Layer::Gtp { at } => {
                    put(frame, usize::from(at) + 2, (total - usize::from(at) - 8) as u16);
                }
            }
        }
        if let Some(part) = fragment.filter(|_| self.fragments) {
            let at = self.length();
            put(frame, at - 6, part.offset | u16::from(part.more));
            frame[at - 4..at].copy_from_slice(&part.datagram.to_be_bytes());
        }
    }

    fn push(&mut self, bytes: &[u8]) -> u8 {
        let at = self.length;
        self.bytes[usize::from(at)..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len() as u8;
        at
    }

    fn push_word(&mut self, word: u16) {
        self.push(&word.to_be_bytes());
    }

    fn layer(&mut self, layer: Layer) {
        let free = self.layers.iter_mut().find(|layer| layer.is_none());
        *free.expect("no route has more") = Some(layer);
    }

    /// Addresses of two stations: routers, or with a number those of virtual machines behind a tunnel.
    fn ethernet(&mut self, direction: u8, machine: Option<u16>) {
        let [high, low] = machine.unwrap_or(0).to_be_bytes();
        let kind = u8::from(machine.is_some());
        let station = |end| [2, kind, 0, high, low, end];
        self.push(&station(2 - direction));
        self.push(&station(1 + direction));
    }

    fn tag(&mut self, route: &Route, outer: Version) {
        let ethertype = ETHERTYPES[outer as usize];
        let vlan = 100 + (route.network % 50) as u16;
        match route.tag {
            Tag::None => {}
            Tag::Vlan => {
                self.push_word(0x8100);
                self.push_word(vlan);
            }
            Tag::QinQ => {
                self.push_word(0x88a8);
                self.push_word(vlan + 1000);
                self.push_word(0x8100);
                self.push_word(vlan);
            }
            Tag::Mpls => {
                // The one label is the bottom of its stack.
                let label = 16_000 + route.network % 1000;
                self.push_word(0x8847);
                let entry = (label << 12) | (1 << 8) | u32::from(TIME_TO_LIVE);
                self.push(&entry.to_be_bytes());
                return;
            }
        }
        self.push_word(ethertype);
    }

    fn tunnel(&mut self, route: &Route, inner: Version) {
        let ethertype = ETHERTYPES[inner as usize];
        let end = |side: u8| {
            let side = side ^ route.direction;
            Address::V4([172, 16 + side, 0, 1 + (route.network >> (8 * side)) as u8 % 16])
        };
        let (source, destination) = (end(0), end(1));
        match route.tunnel {
            Tunnel::None => {}
            Tunnel::Vxlan => {
                self.ip(source, destination, PROTOCOL_UDP, false);
                self.udp(0xc000 | route.network as u16, VXLAN_PORT);
                let vni = 5000 + route.network % 100;
                self.push(&[8, 0, 0, 0]);
                self.push(&(vni << 8).to_be_bytes());
                self.ethernet(route.direction, Some(route.network as u16));
                self.push_word(ethertype);
            }
            Tunnel::Gtp => {
                self.ip(source, destination, PROTOCOL_UDP, false);
                self.udp(GTP_PORT, GTP_PORT);
                // Version 1, a packet of the user's; the length comes later.
                let at = self.push(&[0x30, 0xff, 0, 0]);
                self.layer(Layer::Gtp { at });
                let endpoint = route.network ^ u32::from(route.direction);
                self.push(&endpoint.to_be_bytes());
            }
            Tunnel::Gre => {
                self.ip(source, destination, PROTOCOL_GRE, false);
                self.push_word(0);
                self.push_word(ethertype);
            }
            Tunnel::IpInIp => {
                let protocol = [PROTOCOL_IPV4, PROTOCOL_IPV6][inner as usize];
                self.ip(source, destination, protocol, false);
            }
        }
    }

    /// A UDP header of a tunnel, which may be without checksum (RFC 7348, 3GPP TS 29.281).
    fn udp(&mut self, source: u16, destination: u16) {
        let at = self.length;
        self.push_word(source);
        self.push_word(destination);
        self.push(&[0; 4]);
        self.layer(Layer::Udp { at });
    }

    fn ip(&mut self, source: Address, destination: Address, protocol: u8, inner: bool) {
        match (source, destination) {
            (Address::V4(source), Address::V4(destination)) => {
                let at = self.push(&[0x45, 0, 0, 0, 0, 0, 0, 0, TIME_TO_LIVE, protocol, 0, 0]);
                self.push(&source);
                self.push(&destination);
                let sum = checksum::sum(&self.bytes[usize::from(at)..usize::from(self.length)]);
                self.layer(Layer::Ipv4 { at, sum: sum as u32, inner });
                self.fragments &= !inner;
            }
            (Address::V6(source), Address::V6(destination)) => {
                let next = if self.fragments { PROTOCOL_FRAGMENT } else { protocol };
                let at = self.push(&[0x60, 0, 0, 0, 0, 0, next, TIME_TO_LIVE]);
                self.push(&source);
                self.push(&destination);
                self.layer(Layer::Ipv6 { at });
                if self.fragments {
                    self.push(&[protocol, 0, 0, 0, 0, 0, 0, 0]);
                }
            }
            _ => unreachable!("both ends of a flow have the same version"),
        }
    }
}

/// Writes a 16-bit word.
#[inline]
pub(super) fn put(frame: &mut [u8], at: usize, word: u16) {
    frame[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

fn address_sum(address: Address) -> u64 {
    match address {
        Address::V4(bytes) => checksum::sum(&bytes),
        Address::V6(bytes) => checksum::sum(&bytes),
    }
}
