//! Where a replay sends to: a network interface, frame by frame, or a UDP socket, payload by payload.
//! Senders only send; when each packet is due is [`crate::pace`]'s, and waiting is
//! [`crate::replay`]'s.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use format::LinkType;

use crate::socket::{self, BATCH_MAX, Socket};

/// Packets to be sent together, copied, in order.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    /// The most packets that a batch should hold: what one system call sends.
    pub const PACKETS_MAX: usize = BATCH_MAX;

    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }
    /// Appends a packet.
    pub fn push(&mut self, packet: &[u8]) {
        self.bytes.extend_from_slice(packet);
        self.ends.push(self.bytes.len());
    }
    /// Forgets all packets and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
    /// How many packets it holds.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// The packet at `index`.
    ///
    /// # Panics
    /// If there are not that many.
    pub fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }
}

/// Sends packets somewhere.
pub trait Sender {
    /// What of a captured packet goes out.
    ///
    /// # Errors
    /// [`Unsendable`] if nothing of it can.
    fn payload<'p>(&self, link_type: LinkType, data: &'p [u8]) -> Result<&'p [u8], Unsendable>;

    /// Sends the batch's packets from `from` on and returns how many went, at least one. Does not
    /// wait for room.
    ///
    /// # Errors
    /// [`SendError`] about the packet at `from`, which did not go.
    fn send(&mut self, batch: &Batch, from: usize) -> Result<usize, SendError>;
}

impl<S: Sender + ?Sized> Sender for &mut S {
    fn payload<'p>(&self, link_type: LinkType, data: &'p [u8]) -> Result<&'p [u8], Unsendable> {
        (**self).payload(link_type, data)
    }

    fn send(&mut self, batch: &Batch, from: usize) -> Result<usize, SendError> {
        (**self).send(batch, from)
    }
}

/// Why nothing of a captured packet can be sent here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsendable {
    /// The target takes frames of another kind.
    LinkType,
    /// A UDP socket sends UDP payloads, and the packet has none (or only a fragment of one).
    NotUdp,
}

/// Why a packet was not sent.
#[derive(Debug)]
pub enum SendError {
    /// No room in the kernel's queue at the moment: send again.
    Busy,
    /// It is longer than the target takes (`EMSGSIZE`). Merged segments (GRO, TSO) are such packets.
    Oversize {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The receiver answered an earlier datagram that nobody listens there. Sending again is fine.
    NobodyListens,
    /// The interface went down or was deleted.
    Gone {
        /// The target, as it was named.
        target: String,
        /// The kernel's words.
        error: io::Error,
    },
    /// The kernel refused for another reason.
    System {
        /// The target, as it was named.
        target: String,
        /// The kernel's words.
        error: io::Error,
    },
}

impl SendError {
    fn from_os(error: io::Error, target: &str, first: &[u8]) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR | libc::ENOMEM) => Self::Busy,
            Some(libc::EMSGSIZE) => Self::Oversize { bytes: first.len() },
            Some(libc::ECONNREFUSED) => Self::NobodyListens,
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                Self::Gone { target: target.to_owned(), error }
            }
            _ => Self::System { target: target.to_owned(), error },
        }
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("the kernel's send queue is full: send again in a moment"),
            Self::Oversize { bytes } => write!(
                f,
                "a packet of {bytes} bytes is longer than the target takes: raise the interface's \
                 MTU, or capture with merging off (ethtool -K NAME gro off tso off gso off)"
            ),
            Self::NobodyListens => f.write_str("the receiver says that nobody listens there"),
            Self::Gone { target, error } => write!(
                f,
                "sending to {target} failed: {error}; the interface is down or deleted: see \
                 'ip link show', bring it up, and start the replay again"
            ),
            Self::System { target, error } => write!(f, "sending to {target} failed: {error}"),
        }
    }
}

impl std::error::Error for SendError {}

/// Why a sender could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// No interface of that name.
    NoSuchInterface {
        /// The name.
        name: String,
    },
    /// Sending frames takes a privilege.
    NoPermission {
        /// The interface.
        name: String,
    },
    /// The interface's frames are of a kind that no packet has here.
    HardwareType {
        /// The interface.
        name: String,
        /// Its ARPHRD number.
        hardware: u16,
    },
    /// A system call failed.
    System {
        /// What was tried.
        attempted: &'static str,
        /// On what.
        target: String,
        /// Why it failed.
        error: io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchInterface { name } => {
                write!(
                    f,
                    "can't send to interface '{name}': it doesn't exist; list interfaces with 'ip link show'"
                )
            }
            Self::NoPermission { name } => write!(
                f,
                "can't send to interface '{name}': opening a packet socket is not permitted; run \
                 as root or give the program CAP_NET_RAW (setcap cap_net_raw+ep)"
            ),
            Self::HardwareType { name, hardware } => write!(
                f,
                "can't send to interface '{name}': its hardware type {hardware} is neither \
                 Ethernet nor raw IP; choose another interface"
            ),
            Self::System { attempted, target, error } => {
                write!(f, "can't send to {target}: {attempted} failed: {error}")
            }
        }
    }
}

impl std::error::Error for OpenError {}

/// How to open an [`InterfaceSender`].
#[derive(Clone, Debug, Default)]
pub struct InterfaceSenderOptions {
    /// The interface's name.
    pub name: String,
    /// Hand frames to the driver directly, past traffic control and its queue (`PACKET_QDISC_BYPASS`):
    /// faster, but nothing buffers a burst, and captures on the same machine don't see the frames.
    pub bypass_qdisc: bool,
}

/// Sends frames as they were captured, link layer and all.
#[derive(Debug)]
pub struct InterfaceSender {
    socket: Socket,
    name: String,
    link_type: LinkType,
}

impl InterfaceSender {
    /// Opens a packet socket that only sends. Needs `CAP_NET_RAW`; it may be dropped afterwards.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(options: &InterfaceSenderOptions) -> Result<Self, OpenError> {
        let name = options.name.clone();
        let failed = |attempted, error| OpenError::System {
            attempted,
            target: format!("interface '{name}'"),
            error,
        };
        let index = socket::interface_index(&name)
            .map_err(|_| OpenError::NoSuchInterface { name: name.clone() })?;
        // Protocol 0: nothing is received, so nothing is queued for nobody.
        let socket = Socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0).map_err(|error| {
            if error.kind() == io::ErrorKind::PermissionDenied {
                OpenError::NoPermission { name: name.clone() }
            } else {
                failed("opening a packet socket", error)
            }
        })?;
        if options.bypass_qdisc {
            socket
                .set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32)
                .map_err(|error| failed("bypassing traffic control", error))?;
        }
        let mut address: libc::sockaddr_ll = socket::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = index as i32;
        socket.bind(&address).map_err(|error| failed("binding", error))?;
        let bound: libc::sockaddr_ll =
            socket.name().map_err(|error| failed("asking for the hardware type", error))?;
        let link_type = link_type_of(bound.sll_hatype).ok_or_else(|| OpenError::HardwareType {
            name: name.clone(),
            hardware: bound.sll_hatype,
        })?;
        Ok(Self { socket, name, link_type })
    }

    /// The kind of frame that the interface takes.
    pub const fn link_type(&self) -> LinkType {
        self.link_type
    }
}

impl Sender for InterfaceSender {
    fn payload<'p>(&self, link_type: LinkType, data: &'p [u8]) -> Result<&'p [u8], Unsendable> {
        if link_type == self.link_type { Ok(data) } else { Err(Unsendable::LinkType) }
    }

    fn send(&mut self, batch: &Batch, from: usize) -> Result<usize, SendError> {
        self.socket.send_batch((from..batch.len()).map(|i| batch.get(i))).map_err(|error| {
            SendError::from_os(error, &format!("interface '{}'", self.name), batch.get(from))
        })
    }
}

/// The link type of an interface's frames by its ARPHRD number (`linux/if_arp.h`); None for kinds
/// that can't be captured or sent here.
pub(crate) const fn link_type_of(hardware: u16) -> Option<LinkType> {
    /// `ARPHRD_RAWIP`, in `linux/if_arp.h`.
    const ARPHRD_RAWIP: u16 = 519;
    match hardware {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(LinkType::ETHERNET),
        libc::ARPHRD_NONE | ARPHRD_RAWIP => Some(LinkType::RAW_IP),
        _ => None,
    }
}

/// Sends UDP payloads: of a UDP packet its payload, of a raw sensor block ([`LinkType::USER0`]) the
/// block itself. The addresses that the packets were captured with play no part.
#[derive(Debug)]
pub struct UdpSender {
    socket: Socket,
    target: SocketAddr,
}

impl UdpSender {
    /// Opens a UDP socket connected to `target`. Multicast leaves by `multicast_interface`; without
    /// that the routing table decides.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn connect(
        target: SocketAddr,
        multicast_interface: Option<&str>,
    ) -> Result<Self, OpenError> {
        let failed =
            |attempted, error| OpenError::System { attempted, target: target.to_string(), error };
        let socket = Socket::open(socket::family(target.ip()), libc::SOCK_DGRAM, 0)
            .map_err(|error| failed("opening a UDP socket", error))?;
        if let Some(name) = multicast_interface {
            let index = socket::interface_index(name)
                .map_err(|_| OpenError::NoSuchInterface { name: name.to_owned() })?;
            // Before connecting, which chooses the source address by it.
            send_multicast_by(&socket, target.ip(), index as i32)
                .map_err(|error| failed("choosing the interface for multicast", error))?;
        }
        socket.connect(target).map_err(|error| failed("connecting the UDP socket", error))?;
        Ok(Self { socket, target })
    }
}

fn send_multicast_by(socket: &Socket, target: IpAddr, index: i32) -> io::Result<()> {
    match target {
        IpAddr::V4(_) => {
            let request = libc::ip_mreqn {
                imr_multiaddr: socket::to_in_addr(Ipv4Addr::UNSPECIFIED),
                imr_address: socket::to_in_addr(Ipv4Addr::UNSPECIFIED),
                imr_ifindex: index,
            };
            socket.set(libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &request)
        }
        IpAddr::V6(_) => socket.set(libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF, &index),
    }
}

impl Sender for UdpSender {
    fn payload<'p>(&self, link_type: LinkType, data: &'p [u8]) -> Result<&'p [u8], Unsendable> {
        if link_type == LinkType::USER0 {
            return Ok(data);
        }
        if link_type != LinkType::ETHERNET && link_type != LinkType::RAW_IP {
            return Err(Unsendable::LinkType);
        }
        udp_payload(link_type, data).ok_or(Unsendable::NotUdp)
    }

    fn send(&mut self, batch: &Batch, from: usize) -> Result<usize, SendError> {
        self.socket
            .send_batch((from..batch.len()).map(|i| batch.get(i)))
            .map_err(|error| SendError::from_os(error, &self.target.to_string(), batch.get(from)))
    }
}

/// The UDP payload of a whole, unfragmented packet, or None.
fn udp_payload(link_type: LinkType, frame: &[u8]) -> Option<&[u8]> {
    let packet = if link_type == LinkType::ETHERNET { past_ethernet(frame)? } else { frame };
    let datagram = match packet.first()? >> 4 {
        4 => past_ipv4(packet)?,
        6 => past_ipv6(packet)?,
        _ => return None,
    };
    const UDP_HEADER: usize = 8;
    let length = usize::from(be16(datagram, 4)?);
    datagram.get(UDP_HEADER..length)
}

/// What follows an Ethernet header and its VLAN tags, if that is IP.
fn past_ethernet(frame: &[u8]) -> Option<&[u8]> {
    let mut at = 12;
    loop {
        match be16(frame, at)? {
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            0x0800 | 0x86dd => return frame.get(at + 2..),
            _ => return None,
        }
    }
}

/// The UDP datagram in an IPv4 packet that is not a fragment.
fn past_ipv4(packet: &[u8]) -> Option<&[u8]> {
    let header = usize::from(packet.first()? & 0xf) * 4;
    let total = usize::from(be16(packet, 2)?);
    // The fragment offset and the flag for more fragments.
    let fragment = be16(packet, 6)? & 0x3fff != 0;
    if fragment || header < 20 || *packet.get(9)? != IPPROTO_UDP {
        return None;
    }
    packet.get(header..total)
}

/// The UDP datagram in an IPv6 packet, past the extension headers that any packet may have.
fn past_ipv6(packet: &[u8]) -> Option<&[u8]> {
    const HEADER: usize = 40;
    let end = HEADER + usize::from(be16(packet, 4)?);
    let (mut next, mut at) = (*packet.get(6)?, HEADER);
    loop {
        match next {
            IPPROTO_UDP => return packet.get(at..end),
            // Hop-by-hop options, routing, destination options: next header, length in 8 bytes - 1.
            0 | 43 | 60 => {
                next = *packet.get(at)?;
                at += (usize::from(*packet.get(at + 1)?) + 1) * 8;
            }
            _ => return None,
        }
    }
}

const IPPROTO_UDP: u8 = libc::IPPROTO_UDP as u8;

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An IPv4 packet with a UDP datagram, with padding behind as Ethernet adds it.
    fn ipv4_udp(payload: &[u8], padding: usize) -> Vec<u8> {
        let udp = 8 + payload.len();
        let mut packet = vec![0x45, 0];
        packet.extend(((20 + udp) as u16).to_be_bytes());
        packet.extend([0, 1, 0x40, 0, 64, IPPROTO_UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend([0x13, 0x88, 0x13, 0x89]);
        packet.extend((udp as u16).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(payload);
        packet.resize(packet.len() + padding, 0);
        packet
    }

    fn ethernet(tags: &[u16], ethertype: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x02; 12];
        for tag in tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0, 5]);
        }
        frame.extend(ethertype.to_be_bytes());
        frame.extend(packet);
        frame
    }

    #[test]
    fn the_udp_payload_is_found_behind_tags_and_before_padding() {
        let packet = ipv4_udp(b"abc", 15);
        assert_eq!(udp_payload(LinkType::RAW_IP, &packet), Some(&b"abc"[..]));
        for tags in [&[][..], &[0x8100], &[0x88a8, 0x8100]] {
            let frame = ethernet(tags, 0x0800, &packet);
            assert_eq!(udp_payload(LinkType::ETHERNET, &frame), Some(&b"abc"[..]), "{tags:x?}");
        }
    }

    #[test]
    fn the_udp_payload_is_found_behind_ipv6_extension_headers() {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8 + 8 + 2, 0, 64];
        packet.extend([0; 32]);
        packet.extend([IPPROTO_UDP, 0, 0, 0, 0, 0, 0, 0]);
        packet.extend([0, 1, 0, 2, 0, 10, 0, 0, b'h', b'i']);
        assert_eq!(udp_payload(LinkType::RAW_IP, &packet), Some(&b"hi"[..]));
        packet[40] = 6; // TCP
        assert_eq!(udp_payload(LinkType::RAW_IP, &packet), None);
    }

    #[test]
    fn fragments_and_other_protocols_have_no_udp_payload() {
        let mut fragment = ipv4_udp(b"abc", 0);
        fragment[6] = 0x20;
        assert_eq!(udp_payload(LinkType::RAW_IP, &fragment), None);
        let mut tcp = ipv4_udp(b"abc", 0);
        tcp[9] = 6;
        assert_eq!(udp_payload(LinkType::RAW_IP, &tcp), None);
        assert_eq!(udp_payload(LinkType::ETHERNET, &ethernet(&[], 0x0806, &[0; 28])), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_search_for_a_payload_fail(
            bytes in prop::collection::vec(any::<u8>(), 0..120),
            first in prop::sample::select(vec![0x45u8, 0x4f, 0x60, 0x00]),
        ) {
            let mut bytes = bytes;
            if let Some(b) = bytes.first_mut() { *b = first; }
            let raw = udp_payload(LinkType::RAW_IP, &bytes).map_or(0, <[u8]>::len);
            prop_assert!(raw <= bytes.len());
            let frame = ethernet(&[], if first == 0x60 { 0x86dd } else { 0x0800 }, &bytes);
            prop_assert_eq!(udp_payload(LinkType::ETHERNET, &frame).map_or(0, <[u8]>::len), raw);
        }
    }

    #[test]
    fn a_batch_gives_back_what_was_pushed_in_order() {
        let mut batch = Batch::new();
        for packet in [&b"one"[..], b"", b"three"] {
            batch.push(packet);
        }
        assert_eq!(
            (batch.len(), batch.get(0), batch.get(1), batch.get(2)),
            (3, &b"one"[..], &b""[..], &b"three"[..])
        );
        batch.clear();
        assert!(batch.is_empty());
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let options = InterfaceSenderOptions { name: "nonesuch0".into(), ..Default::default() };
        let message = InterfaceSender::open(&options).unwrap_err().to_string();
        assert!(message.contains("nonesuch0") && message.contains("ip link"), "{message}");
    }
}
