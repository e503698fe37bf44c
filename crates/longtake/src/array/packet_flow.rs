//! What tables of packets say of each packet's flow.

use std::net::IpAddr;

use format::LinkType;
use search::{Fragments, Layers};

/// Names of the columns, which stand behind those that every table has.
pub(super) const COLUMNS: [&str; 6] =
    ["source", "destination", "source_port", "destination_port", "protocol", "tcp_flags"];

/// What the innermost IP header of a packet says, and the header behind it. What a packet doesn't have, or was cut off, is None.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PacketFlow {
    /// The addresses of source and destination.
    pub addresses: [Option<IpAddr>; 2],
    /// The ports of source and destination; of a later fragment, those of the first, if that was seen before.
    pub ports: [Option<u16>; 2],
    /// The number of the protocol.
    pub protocol: Option<u8>,
    /// The flags of TCP and the reserved bits before them, 12 bits.
    pub tcp_flags: Option<u16>,
}

/// Finds the flows of packets, which must come in order: what a fragment belongs to is known from earlier packets.
pub(super) struct PacketFlows {
    layers: Layers,
    fragments: Fragments,
}

impl Default for PacketFlows {
    fn default() -> Self {
        Self { layers: Layers::new(), fragments: Fragments::new(search::FRAGMENTS_MAX) }
    }
}

impl PacketFlows {
    /// What the next packet says.
    pub fn of(&mut self, link_type: LinkType, packet: &[u8]) -> PacketFlow {
        search::dissect(link_type, packet, &mut self.layers);
        self.fragments.resolve(&mut self.layers);
        let Some((flow, direction)) = self.layers.flow() else { return PacketFlow::default() };
        let ends = flow.ends(direction);
        PacketFlow {
            addresses: ends.map(|(address, _)| Some(address)),
            // ICMP has types in their place.
            ports: ends.map(|(_, port)| port.filter(|_| !flow.is_icmp())),
            protocol: Some(flow.protocol),
            tcp_flags: self.layers.tcp_flags(),
        }
    }
}
