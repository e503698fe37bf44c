//! The layers of a packet, from the outside in, in a list of fixed capacity.

use std::net::{IpAddr, Ipv4Addr};

use crate::flow::{Direction, Flow, Transport};

/// Layers of a packet that are kept. More are cut off, and [`Layers::end`] says so.
pub const LAYERS_MAX: usize = 24;

/// One header of a packet, or what is needed of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// A VLAN tag (IEEE 802.1Q): the VLAN's id, 0 to 4095.
    Vlan(u16),
    /// An entry of an MPLS label stack (RFC 3032): its label, 20 bits.
    Mpls(u32),
    /// ARP or RARP (RFC 826): protocol addresses of the sender and the target.
    Arp(Ipv4Addr, Ipv4Addr),
    /// An IP header with its extension headers.
    Ip(IpLayer),
    /// Source and destination port of TCP, UDP, UDP-Lite, SCTP or DCCP in the IP header before it.
    Ports(u16, u16),
    /// Type and code of ICMP or ICMPv6 in the IP header before it.
    Icmp(u8, u8),
    /// A header of a tunnel.
    Tunnel(Tunnel),
}

/// An IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpLayer {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol of what it carries, behind all extension headers; None if the packet was truncated before it.
    pub protocol: Option<u8>,
    /// Which fragment of a datagram it is; None if it is whole, or if the packet was truncated before that can be told.
    pub fragment: Option<Fragment>,
}

/// A fragment of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Identification of the datagram: 16 bits in IPv4, 32 in IPv6.
    pub id: u32,
    /// Which fragment it is.
    pub part: Part,
}

/// Whether a fragment has the headers of what the datagram carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The first fragment, which has them.
    First,
    /// A later one, which has not.
    Later,
}

/// A header of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunnel {
    /// GRE (RFC 2784) with its key, if it has one (RFC 2890).
    Gre(Option<u32>),
    /// VXLAN (RFC 7348) with its network identifier, 24 bits.
    Vxlan(u32),
    /// GTP-U (3GPP TS 29.281) with its tunnel endpoint identifier.
    Gtp(u32),
}

/// Why a packet has no more layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// What follows is a payload, or a protocol that is not looked into.
    #[default]
    Payload,
    /// The packet's bytes end within a header.
    Truncated,
    /// What follows is a part of a fragmented datagram without its headers.
    Fragment,
    /// There are more than [`LAYERS_MAX`] layers, or more extension headers than anybody uses.
    TooDeep,
    /// A header contradicts itself.
    Malformed,
}

/// The layers of a packet. Keep one and dissect every packet into it: nothing is allocated.
#[derive(Clone, Debug)]
pub struct Layers {
    layers: [Layer; LAYERS_MAX],
    length: usize,
    end: End,
    tcp_flags: Option<u16>,
}

impl Default for Layers {
    fn default() -> Self {
        Self::new()
    }
}

impl Layers {
    /// No layers.
    pub const fn new() -> Self {
        Self { layers: [Layer::Vlan(0); LAYERS_MAX], length: 0, end: End::Payload, tcp_flags: None }
    }

    /// The layers from the outside in.
    #[inline]
    pub fn all(&self) -> &[Layer] {
        &self.layers[..self.length]
    }

    /// Why there are no more.
    pub const fn end(&self) -> End {
        self.end
    }

    /// The flags of the TCP header (RFC 9293, section 3.1) and the reserved bits before them, 12 bits, FIN the lowest; None without
    /// one that reaches so far.
    pub const fn tcp_flags(&self) -> Option<u16> {
        self.tcp_flags
    }

    /// Ids of the VLANs from the outside in, those inside tunnels included.
    pub fn vlans(&self) -> impl Iterator<Item = u16> + '_ {
        self.all().iter().filter_map(|layer| match layer {
            Layer::Vlan(id) => Some(*id),
            _ => None,
        })
    }

    /// IP headers from the outside in, each with what its transport protocol says.
    pub fn ips(&self) -> impl DoubleEndedIterator<Item = (&IpLayer, Transport)> + '_ {
        self.all().iter().enumerate().filter_map(|(at, layer)| match layer {
            Layer::Ip(ip) => Some((ip, self.transport(at))),
            _ => None,
        })
    }

    /// The flow of the innermost IP header, and the packet's direction in it; None without an IP header. A header that was truncated
    /// before its protocol belongs to no flow.
    #[inline]
    pub fn flow(&self) -> Option<(Flow, Direction)> {
        let (ip, transport) = self.ips().next_back()?;
        Some(Flow::new(ip.source, ip.destination, ip.protocol?, transport))
    }

    /// What the transport protocol of the IP header at this place says.
    #[inline]
    fn transport(&self, at: usize) -> Transport {
        match self.all().get(at + 1) {
            Some(&Layer::Ports(source, destination)) => Transport::Ports { source, destination },
            Some(&Layer::Icmp(kind, code)) => Transport::Icmp { kind, code },
            _ => Transport::Unknown,
        }
    }

    /// Forgets all layers.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.length = 0;
        self.end = End::Payload;
        self.tcp_flags = None;
    }

    pub(crate) fn end_with(&mut self, end: End) {
        self.end = end;
    }

    pub(crate) fn set_tcp_flags(&mut self, flags: u16) {
        self.tcp_flags = Some(flags);
    }

    /// Appends a layer.
    #[inline]
    pub(crate) fn push(&mut self, layer: Layer) -> Result<(), End> {
        *self.layers.get_mut(self.length).ok_or(End::TooDeep)? = layer;
        self.length += 1;
        Ok(())
    }
}
