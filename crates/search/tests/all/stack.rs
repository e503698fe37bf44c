//! Packets made of known headers: their bytes, and the layers that a dissector must find in them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use format::LinkType;
use longtake_search::{IpLayer, Layer, Tunnel, protocol};
use proptest::collection::vec;
use proptest::prelude::*;

/// What a packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Ethernet,
    /// IEEE 802.3 with LLC and SNAP.
    Snap,
    Raw,
    Null,
    Sll,
    Sll2,
}

impl Link {
    pub fn link_type(self) -> LinkType {
        match self {
            Self::Ethernet | Self::Snap => LinkType::ETHERNET,
            Self::Raw => LinkType::RAW_IP,
            Self::Null => LinkType(0),
            Self::Sll => LinkType::LINUX_SLL,
            Self::Sll2 => LinkType(276),
        }
    }
}

/// A whole packet.
#[derive(Clone, Debug)]
pub struct Stack {
    pub link: Link,
    pub frame: Frame,
}

/// What an Ethernet header carries.
#[derive(Clone, Debug)]
pub struct Frame {
    /// EtherType of the tag, and the VLAN's id.
    pub vlans: Vec<(u16, u16)>,
    pub labels: Vec<u32>,
    pub ip: Ip,
}

/// An IP header.
#[derive(Clone, Debug)]
pub struct Ip {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// Options of IPv4 or extension headers of IPv6, by the count of 8 bytes in each.
    pub extensions: Vec<u8>,
    pub carries: Box<Carries>,
}

/// What an IP header carries.
#[derive(Clone, Debug)]
pub enum Carries {
    Ports {
        protocol: u8,
        source: u16,
        destination: u16,
    },
    /// With so many bytes behind the checksum.
    Icmp {
        kind: u8,
        code: u8,
        body: usize,
    },
    Other(u8),
    Ip(Ip),
    Gre {
        key: Option<u32>,
        sequence: bool,
        checksum: bool,
        bridged: bool,
        frame: Frame,
    },
    Vxlan {
        id: u32,
        port: u16,
        frame: Frame,
    },
    Gtp {
        id: u32,
        port: u16,
        extensions: u8,
        ip: Ip,
    },
}

impl Stack {
    pub fn bytes(&self) -> Vec<u8> {
        let (kind, mut inner) = self.frame.encode();
        let kind = kind.to_be_bytes();
        let mut bytes = match self.link {
            Link::Ethernet => [&[2; 12][..], &kind].concat(),
            Link::Snap => {
                let length = (inner.len() as u16 + 8).to_be_bytes();
                [&[2; 12][..], &length, &[0xaa, 0xaa, 3, 0, 0, 0], &kind].concat()
            }
            Link::Raw => Vec::new(),
            Link::Null => match self.frame.ip.source {
                IpAddr::V4(_) => vec![2, 0, 0, 0],
                IpAddr::V6(_) => vec![0, 0, 0, 30],
            },
            Link::Sll => [&[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0][..], &kind].concat(),
            Link::Sll2 => {
                [&kind[..], &[0, 0, 0, 0, 0, 7, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0]].concat()
            }
        };
        bytes.append(&mut inner);
        bytes
    }

    pub fn layers(&self) -> Vec<Layer> {
        let mut layers = Vec::new();
        self.frame.expect(&mut layers);
        layers
    }
}

impl Frame {
    /// Its EtherType and what follows that.
    fn encode(&self) -> (u16, Vec<u8>) {
        let mut inner = self.ip.encode();
        let mut kind = self.ip.ether_type();
        for (at, label) in self.labels.iter().enumerate().rev() {
            let bottom = u32::from(at + 1 == self.labels.len());
            let entry = (label << 12 | bottom << 8 | 64).to_be_bytes();
            inner.splice(0..0, entry);
            kind = 0x8847;
        }
        for &(tag, id) in self.vlans.iter().rev() {
            // Priority 5, so that the id is not all there is.
            let tagged = [(id | 0xa000).to_be_bytes(), kind.to_be_bytes()].concat();
            inner.splice(0..0, tagged);
            kind = tag;
        }
        (kind, inner)
    }

    fn expect(&self, layers: &mut Vec<Layer>) {
        layers.extend(self.vlans.iter().map(|&(_, id)| Layer::Vlan(id)));
        layers.extend(self.labels.iter().map(|&label| Layer::Mpls(label)));
        self.ip.expect(layers);
    }

    fn ethernet(&self) -> Vec<u8> {
        let (kind, inner) = self.encode();
        [&[4; 12][..], &kind.to_be_bytes(), &inner].concat()
    }
}

impl Ip {
    fn ether_type(&self) -> u16 {
        if self.source.is_ipv4() { 0x0800 } else { 0x86dd }
    }

    fn encode(&self) -> Vec<u8> {
        let payload = self.carries.encode();
        let protocol = self.carries.protocol(self.source.is_ipv4());
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                // Options that do nothing; five at most fit.
                let options = self.extensions.len().min(5) * 8;
                let length = (20 + options + payload.len()) as u16;
                let mut bytes = vec![0x45 + (options / 4) as u8, 0];
                bytes.extend(length.to_be_bytes());
                bytes.extend([0, 7, 0, 0, 64, protocol, 0, 0]);
                bytes.extend([source.octets(), destination.octets()].concat());
                bytes.extend(vec![1; options]);
                [bytes, payload].concat()
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let (first, extensions) = self.extension_headers(protocol);
                let length = (extensions.len() + payload.len()) as u16;
                let mut bytes = vec![0x60, 0, 0, 0];
                bytes.extend(length.to_be_bytes());
                bytes.extend([first, 64]);
                bytes.extend([source.octets(), destination.octets()].concat());
                [bytes, extensions, payload].concat()
            }
            _ => unreachable!("both addresses are of one family"),
        }
    }

    /// Destination options, each padded to its length; returns the number of the first header too.
    fn extension_headers(&self, protocol: u8) -> (u8, Vec<u8>) {
        let mut bytes = Vec::new();
        for (at, &units) in self.extensions.iter().enumerate() {
            let is_last = at + 1 == self.extensions.len();
            let padding = usize::from(units) * 8 + 4;
            bytes.extend([if is_last { protocol } else { 60 }, units, 1, padding as u8]);
            bytes.extend(vec![0; padding]);
        }
        (if bytes.is_empty() { protocol } else { 60 }, bytes)
    }

    fn expect(&self, layers: &mut Vec<Layer>) {
        layers.push(Layer::Ip(IpLayer {
            source: self.source,
            destination: self.destination,
            protocol: Some(self.carries.protocol(self.source.is_ipv4())),
            fragment: None,
        }));
        self.carries.expect(layers);
    }
}

fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() + 8) as u16;
    [&source.to_be_bytes()[..], &destination.to_be_bytes(), &length.to_be_bytes(), &[0, 0], payload]
        .concat()
}

impl Carries {
    fn protocol(&self, in_ipv4: bool) -> u8 {
        match self {
            Self::Ports { protocol, .. } | Self::Other(protocol) => *protocol,
            Self::Icmp { .. } if in_ipv4 => protocol::ICMP,
            Self::Icmp { .. } => protocol::ICMPV6,
            Self::Ip(inner) if inner.source.is_ipv4() => protocol::IPV4,
            Self::Ip(_) => protocol::IPV6,
            Self::Gre { .. } => protocol::GRE,
            Self::Vxlan { .. } | Self::Gtp { .. } => protocol::UDP,
        }
    }

    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Ports { protocol, source, destination } => {
                transport(*protocol, *source, *destination)
            }
            Self::Icmp { kind, code, body } => {
                [&[*kind, *code, 0, 0][..], &vec![0; *body]].concat()
            }
            Self::Other(_) => vec![0; 16],
            Self::Ip(inner) => inner.encode(),
            Self::Gre { key, sequence, checksum, bridged, frame } => {
                let flags = u16::from(*checksum) << 15
                    | u16::from(key.is_some()) << 13
                    | u16::from(*sequence) << 12;
                let (kind, inner) =
                    if *bridged { (0x6558, frame.ethernet()) } else { frame.encode() };
                let mut bytes = [flags.to_be_bytes(), kind.to_be_bytes()].concat();
                bytes.extend(checksum.then_some([0; 4]).iter().flatten());
                bytes.extend(key.map(u32::to_be_bytes).iter().flatten());
                bytes.extend(sequence.then_some([0, 0, 0, 9]).iter().flatten());
                [bytes, inner].concat()
            }
            Self::Vxlan { id, port, frame } => {
                let mut header = vec![8, 0, 0, 0];
                header.extend((id << 8).to_be_bytes());
                udp(*port, 4789, &[header, frame.ethernet()].concat())
            }
            Self::Gtp { id, port, extensions, ip } => {
                let mut options = Vec::new();
                if *extensions > 0 {
                    // A sequence number, then PDU session containers.
                    options.extend([0, 1, 0, 0x85]);
                    for left in (0..*extensions).rev() {
                        options.extend([1, 0, 1, if left > 0 { 0x85 } else { 0 }]);
                    }
                }
                let inner = ip.encode();
                let mut header = vec![if *extensions > 0 { 0x34 } else { 0x30 }, 255];
                header.extend(((options.len() + inner.len()) as u16).to_be_bytes());
                header.extend(id.to_be_bytes());
                udp(*port, 2152, &[header, options, inner].concat())
            }
        }
    }

    fn expect(&self, layers: &mut Vec<Layer>) {
        match self {
            Self::Ports { source, destination, .. } => {
                layers.push(Layer::Ports(*source, *destination));
            }
            Self::Icmp { kind, code, .. } => layers.push(Layer::Icmp(*kind, *code)),
            Self::Other(_) => {}
            Self::Ip(inner) => inner.expect(layers),
            Self::Gre { key, frame, .. } => {
                layers.push(Layer::Tunnel(Tunnel::Gre(*key)));
                frame.expect(layers);
            }
            Self::Vxlan { id, port, frame } => {
                layers.push(Layer::Ports(*port, 4789));
                layers.push(Layer::Tunnel(Tunnel::Vxlan(*id)));
                frame.expect(layers);
            }
            Self::Gtp { id, port, ip, .. } => {
                layers.push(Layer::Ports(*port, 2152));
                layers.push(Layer::Tunnel(Tunnel::Gtp(*id)));
                ip.expect(layers);
            }
        }
    }
}

/// A whole header of a transport protocol and no payload.
fn transport(protocol: u8, source: u16, destination: u16) -> Vec<u8> {
    let ports = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    // All twelve bits of the flags, differing from port to port.
    let [high, flags] = [(source >> 4) as u8 & 0x0f, source as u8];
    let rest: &[u8] = match protocol {
        // Sequence numbers, five words of header.
        protocol::TCP => &[0, 0, 0, 1, 0, 0, 0, 2, 0x50 | high, flags, 1, 0, 0, 0, 0, 0],
        protocol::UDP | protocol::UDP_LITE => &[0, 8, 0, 0],
        // Tag, checksum, one COOKIE ACK.
        protocol::SCTP => &[0, 0, 0, 1, 0, 0, 0, 0, 11, 0, 0, 4],
        // Four words of header, a data packet with a long sequence number.
        protocol::DCCP => &[4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 1],
        other => panic!("{other} has no ports"),
    };
    [ports, rest.to_vec()].concat()
}

/// Ports that mean nothing to anybody.
fn port() -> impl Strategy<Value = u16> {
    50_100_u16..50_900
}

fn addresses(is_v4: bool) -> BoxedStrategy<(IpAddr, IpAddr)> {
    if is_v4 {
        // Unicast and public enough.
        let one = || (11_u8..100, any::<[u8; 3]>()).prop_map(|(a, [b, c, d])| v4(a, b, c, d));
        (one(), one()).boxed()
    } else {
        let one = || any::<[u16; 7]>().prop_map(v6);
        (one(), one()).boxed()
    }
}

fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

fn v6(rest: [u16; 7]) -> IpAddr {
    let [b, c, d, e, f, g, h] = rest;
    IpAddr::V6(Ipv6Addr::new(0x2a00, b, c, d, e, f, g, h))
}

/// An IP header around what it carries.
fn ip(carries: impl Strategy<Value = Carries> + 'static) -> BoxedStrategy<Ip> {
    (any::<bool>(), vec(0_u8..3, 0..3), carries)
        .prop_flat_map(|(is_v4, extensions, carries)| {
            let around = move |(source, destination)| {
                let (extensions, carries) = (extensions.clone(), Box::new(carries.clone()));
                Ip { source, destination, extensions, carries }
            };
            addresses(is_v4).prop_map(around)
        })
        .boxed()
}

/// A frame around an IP header.
fn frame(ip: impl Strategy<Value = Ip> + 'static) -> impl Strategy<Value = Frame> {
    let tag = prop_oneof![Just(0x8100_u16), Just(0x88a8), Just(0x9100)];
    (vec((tag, 0_u16..4096), 0..3), vec(16_u32..1 << 20, 0..3), ip)
        .prop_map(|(vlans, labels, ip)| Frame { vlans, labels, ip })
}

fn last() -> BoxedStrategy<Carries> {
    use protocol::{DCCP, SCTP, TCP, UDP, UDP_LITE};
    let protocol = prop_oneof![Just(TCP), Just(UDP), Just(SCTP), Just(DCCP), Just(UDP_LITE)];
    prop_oneof![
        8 => (protocol, port(), port()).prop_map(|(protocol, source, destination)| {
            Carries::Ports { protocol, source, destination }
        }),
        1 => (prop_oneof![Just(8_u8), Just(0)], Just(0_u8))
            .prop_map(|(kind, code)| Carries::Icmp { kind, code, body: 4 }),
        // Numbers for experiments (RFC 3692).
        1 => (253_u8..=254).prop_map(Carries::Other),
    ]
    .boxed()
}

/// What an IP header may carry, up to two tunnels deep.
fn carried() -> impl Strategy<Value = Carries> {
    last().prop_recursive(2, 4, 1, |inner: BoxedStrategy<Carries>| {
        let gre_key = proptest::option::of(any::<u32>());
        prop_oneof![
            2 => last(),
            1 => ip(inner.clone()).prop_map(Carries::Ip),
            1 => (gre_key, any::<[bool; 3]>(), frame(ip(inner.clone()))).prop_map(
                |(key, [sequence, checksum, bridged], mut frame)| {
                    if !bridged {
                        // A tag belongs to an Ethernet header.
                        frame.vlans.clear();
                    }
                    Carries::Gre { key, sequence, checksum, bridged, frame }
                }
            ),
            1 => (0_u32..1 << 24, port(), frame(ip(inner.clone())))
                .prop_map(|(id, port, frame)| Carries::Vxlan { id, port, frame }),
            1 => (any::<u32>(), port(), 0_u8..3, ip(inner))
                .prop_map(|(id, port, extensions, ip)| Carries::Gtp { id, port, extensions, ip }),
        ]
    })
}

/// Any packet that this can make.
pub fn stack() -> impl Strategy<Value = Stack> {
    use Link::{Ethernet, Null, Raw, Sll, Sll2, Snap};
    let link = prop_oneof![
        4 => Just(Ethernet), 1 => Just(Snap), 1 => Just(Raw), 1 => Just(Null), 1 => Just(Sll), 1 => Just(Sll2),
    ];
    (link, frame(ip(carried()))).prop_map(|(link, mut frame)| {
        if matches!(link, Raw | Null) {
            frame.vlans.clear();
            frame.labels.clear();
        }
        Stack { link, frame }
    })
}

/// A packet of Ethernet and IP with what it carries.
pub fn plain(source: IpAddr, destination: IpAddr, carries: Carries) -> Stack {
    let ip = Ip { source, destination, extensions: Vec::new(), carries: Box::new(carries) };
    Stack { link: Link::Ethernet, frame: Frame { vlans: Vec::new(), labels: Vec::new(), ip } }
}
