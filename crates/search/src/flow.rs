//! A flow: who talks to whom, the same for both directions.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use crate::protocol;

/// What a packet's transport protocol says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Ports.
    Ports {
        /// Of the source.
        source: u16,
        /// Of the destination.
        destination: u16,
    },
    /// ICMP or ICMPv6.
    Icmp {
        /// Type of the message.
        kind: u8,
        /// Its code.
        code: u8,
    },
    /// The protocol has no ports, or the packet doesn't hold them.
    Unknown,
}

/// Which way a packet goes in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the flow's first endpoint to the second.
    Forward,
    /// From the second to the first.
    Backward,
}

impl Direction {
    /// The other way.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Forward => Self::Backward,
            Self::Backward => Self::Forward,
        }
    }
}

/// The two ends of a conversation and its protocol. The first end is the one with the smaller address, or with the smaller port if
/// the addresses are the same, as Community ID orders them, so that both directions are the same flow.
///
/// ICMP has the type of a message in the place of the sender's port, and the type of its answer in the place of the receiver's:
/// requests and answers are one flow. Messages without an answer have the code there, and their flow has one direction only: the
/// first end is the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// Address of the first end.
    pub first: IpAddr,
    /// Address of the second end.
    pub second: IpAddr,
    /// Ports of the first and the second end; None where the protocol has none or they are not known.
    pub ports: Option<(u16, u16)>,
    /// IP protocol, as [`protocol`] names them.
    pub protocol: u8,
}

impl Flow {
    /// The flow of a packet, and the packet's direction in it.
    #[inline]
    pub fn new(
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
        transport: Transport,
    ) -> (Self, Direction) {
        let (ports, one_way) = match transport {
            Transport::Unknown => (None, false),
            Transport::Ports { source, destination } => (Some((source, destination)), false),
            Transport::Icmp { kind, code } => match counterpart(protocol, kind) {
                Some(answer) => (Some((kind.into(), answer.into())), false),
                None => (Some((kind.into(), code.into())), true),
            },
        };
        let (from, to) = ports.unwrap_or_default();
        if one_way || (source, from) <= (destination, to) {
            let flow = Self { first: source, second: destination, ports, protocol };
            return (flow, Direction::Forward);
        }
        let ports = ports.map(|(from, to)| (to, from));
        (Self { first: destination, second: source, ports, protocol }, Direction::Backward)
    }

    /// Addresses and ports of the sender and the receiver of a packet of that direction.
    pub fn ends(&self, direction: Direction) -> [(IpAddr, Option<u16>); 2] {
        let first = (self.first, self.ports.map(|(port, _)| port));
        let second = (self.second, self.ports.map(|(_, port)| port));
        match direction {
            Direction::Forward => [first, second],
            Direction::Backward => [second, first],
        }
    }

    /// Of ICMP, the type of the messages that the sender of that direction sends, and their code if they have no answer.
    pub fn icmp(&self, direction: Direction) -> Option<(u16, Option<u16>)> {
        let [(_, kind), (_, other)] = self.ends(direction);
        let kind = kind.filter(|_| self.is_icmp())?;
        let has_answer =
            u8::try_from(kind).is_ok_and(|kind| counterpart(self.protocol, kind).is_some());
        Some((kind, other.filter(|_| !has_answer)))
    }

    /// Ports, protocol, and whether the ports are known, as one number: bits 32, 16, 8 and 0.
    #[inline]
    pub(crate) fn ports_and_protocol(&self) -> u64 {
        let (first, second) = self.ports.unwrap_or_default();
        let ports = u64::from(first) << 32 | u64::from(second) << 16;
        ports | u64::from(self.protocol) << 8 | u64::from(self.ports.is_some())
    }

    /// Whether it is ICMP or ICMPv6, whose ports are types and codes.
    pub const fn is_icmp(&self) -> bool {
        matches!(self.protocol, protocol::ICMP | protocol::ICMPV6)
    }
}

/// In as few numbers as hold it: a hash is what counting a packet takes longest for.
impl Hash for Flow {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match (self.first, self.second) {
            (IpAddr::V4(first), IpAddr::V4(second)) => {
                state.write_u64(u64::from(first.to_bits()) << 32 | u64::from(second.to_bits()));
            }
            (first, second) => {
                hash_address(first, state);
                hash_address(second, state);
            }
        }
        state.write_u64(self.ports_and_protocol());
    }
}

/// An address as numbers.
#[inline]
pub(crate) fn hash_address<H: Hasher>(address: IpAddr, state: &mut H) {
    match address {
        IpAddr::V4(address) => state.write_u64(1 << 32 | u64::from(address.to_bits())),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            state.write_u64((bits >> 64) as u64);
            state.write_u64(bits as u64);
        }
    }
}

/// The type of message that answers one, in either direction; None for messages that have no answer. Community ID took these pairs
/// from Zeek.
fn counterpart(protocol: u8, kind: u8) -> Option<u8> {
    match (protocol, kind) {
        // Echo, timestamp, information (RFC 792); address mask (RFC 950); router solicitation (RFC 1256).
        (protocol::ICMP, 0) => Some(8),
        (protocol::ICMP, 8) => Some(0),
        (protocol::ICMP, 9) => Some(10),
        (protocol::ICMP, 10) => Some(9),
        (protocol::ICMP, kind @ (13 | 15 | 17)) => Some(kind + 1),
        (protocol::ICMP, kind @ (14 | 16 | 18)) => Some(kind - 1),
        // Echo (RFC 4443); multicast listeners (RFC 2710): query and report; router and neighbour solicitation (RFC 4861);
        // node information (RFC 4620); home agent address discovery (RFC 6275).
        (protocol::ICMPV6, kind @ (128 | 130 | 133 | 135 | 139 | 144)) => Some(kind + 1),
        (protocol::ICMPV6, kind @ (129 | 131 | 134 | 136 | 140 | 145)) => Some(kind - 1),
        _ => None,
    }
}
