//! What a flow index knows packets by, and the hashes under which it does.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

use crate::community_id::CommunityId;
use crate::protocol;

/// Ports from this one on are mostly a client's, chosen for one connection (Linux takes them from 32768 to 60999, and RFC 6335
/// names those from 49152 on dynamic). The ports below are mostly services'.
const EPHEMERAL_FROM: u16 = 32768;

/// Something that a packet is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IndexKey {
    /// Source or destination address of any IP header, or one of the addresses that ARP resolves.
    Host(IpAddr),
    /// The flow of any IP header with ports, both directions, by its Community ID with seed 0.
    Flow(CommunityId),
    /// Source or destination port.
    Port(u16),
    /// Protocol of any IP header.
    Protocol(u8),
    /// Id of any VLAN tag.
    Vlan(u16),
    /// Any label of an MPLS stack.
    Mpls(u32),
}

/// Kinds of keys, as a flow index is made with or without them. Their numbers are bits on the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyKind {
    /// Addresses.
    Hosts = 1,
    /// Flows.
    Flows = 2,
    /// Ports below 32768.
    ServicePorts = 4,
    /// Ports from 32768 on.
    EphemeralPorts = 8,
    /// Protocols, VLANs and MPLS labels.
    Labels = 16,
}

impl KeyKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Hosts, Self::Flows, Self::ServicePorts, Self::EphemeralPorts, Self::Labels];

    /// Its bit.
    pub const fn bit(self) -> u16 {
        self as u16
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hosts => "hosts",
            Self::Flows => "flows",
            Self::ServicePorts => "ports below 32768",
            Self::EphemeralPorts => "ports from 32768 on",
            Self::Labels => "protocols, VLANs and MPLS labels",
        })
    }
}

impl IndexKey {
    /// Which kind it is.
    pub const fn kind(&self) -> KeyKind {
        match self {
            Self::Host(_) => KeyKind::Hosts,
            Self::Flow(_) => KeyKind::Flows,
            Self::Port(port) if *port < EPHEMERAL_FROM => KeyKind::ServicePorts,
            Self::Port(_) => KeyKind::EphemeralPorts,
            Self::Protocol(_) | Self::Vlan(_) | Self::Mpls(_) => KeyKind::Labels,
        }
    }

    /// Its hash under a key: SipHash-1-3 (Aumasson and Bernstein, 2012) of a number for what it is and of its bytes in network byte
    /// order. Somebody who doesn't know the key can't choose addresses whose hashes meet.
    pub fn hash(&self, key: &[u8; 16]) -> u64 {
        let mut bytes = [0; 21];
        let length = match self {
            Self::Host(IpAddr::V4(host)) => put(&mut bytes, 1, &host.octets()),
            Self::Host(IpAddr::V6(host)) => put(&mut bytes, 1, &host.octets()),
            Self::Flow(id) => put(&mut bytes, 2, id.digest()),
            Self::Port(port) => put(&mut bytes, 3, &port.to_be_bytes()),
            Self::Protocol(protocol) => put(&mut bytes, 4, &[*protocol]),
            Self::Vlan(id) => put(&mut bytes, 5, &id.to_be_bytes()),
            Self::Mpls(label) => put(&mut bytes, 6, &label.to_be_bytes()),
        };
        SipHasher13::new_with_key(key).hash(&bytes[..length])
    }
}

fn put(bytes: &mut [u8; 21], kind: u8, value: &[u8]) -> usize {
    bytes[0] = kind;
    bytes[1..=value.len()].copy_from_slice(value);
    1 + value.len()
}

impl fmt::Display for IndexKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => write!(f, "host {host}"),
            Self::Flow(id) => write!(f, "flow {id}"),
            Self::Port(port) => write!(f, "port {port}"),
            Self::Protocol(number) => match protocol::name(*number) {
                Some(name) => write!(f, "protocol {name}"),
                None => write!(f, "protocol {number}"),
            },
            Self::Vlan(id) => write!(f, "VLAN {id}"),
            Self::Mpls(label) => write!(f, "MPLS label {label}"),
        }
    }
}
