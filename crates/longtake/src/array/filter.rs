//! Which packets are accepted: a filter expression over recorded packets, flows by their Community ID, a test of keys; and how many.

use std::collections::HashMap;

use anyhow::Result;
use base::Timestamp;
use format::pcapng::ReadPacket;
use format::{Interface, LinkType};
use search::{
    CommunityId, FRAGMENTS_MAX, Flow, Fragments, Layers, PacketTest, community_id, dissect,
};
use source::filter::Program;

use super::select::{Selection, Stopped};

/// Bytes of a packet's header in a pcap file.
const PCAP_HEADER_BYTES: u64 = 16;

/// A filter expression, compiled for each link type that comes up, flows, a test, and how many packets are wanted.
#[derive(Debug, Default)]
pub(super) struct Filter {
    expression: String,
    programs: Vec<(LinkType, Program)>,
    flows: Option<FlowFilter>,
    test: Option<Box<(PacketTest, Layers)>>,
    limit: Option<Limit>,
}

impl Filter {
    /// Accepts what a selection does, apart from times and takes.
    pub(super) fn new(selection: &Selection) -> Self {
        let ids = &selection.community_ids;
        let flows = (!ids.is_empty()).then(|| FlowFilter::new(ids.clone()));
        let test = selection.test.clone().map(|test| Box::new((test, Layers::new())));
        Self {
            expression: selection.filter.trim().to_owned(),
            programs: Vec::new(),
            flows,
            test,
            limit: Limit::of(selection),
        }
    }

    /// Whether everything is accepted.
    pub(super) fn is_empty(&self) -> bool {
        let Self { expression, programs: _, flows, test, limit } = self;
        expression.is_empty() && flows.is_none() && test.is_none() && limit.is_none()
    }

    /// Whether a packet is accepted.
    ///
    /// # Errors
    /// If the expression can't be compiled for the link type. [`Stopped`] once as many packets were accepted as are wanted.
    pub(super) fn accepts(
        &mut self,
        interface: &Interface,
        packet: &ReadPacket<'_>,
    ) -> Result<bool> {
        if self.limit.as_ref().is_some_and(Limit::is_reached) {
            return Err(Stopped.into());
        }
        // Flows see every packet: one that the expression rejects may be the first fragment of one that it accepts.
        let is_of_flow = self.flows.as_mut().is_none_or(|flows| flows.accepts(interface, packet));
        let accepted =
            self.matches(interface, packet)? && is_of_flow && self.passes(interface, packet);
        if let Some(limit) = self.limit.as_mut().filter(|_| accepted) {
            limit.enter(packet);
        }
        Ok(accepted)
    }

    /// Whether a packet passes the test.
    fn passes(&mut self, interface: &Interface, packet: &ReadPacket<'_>) -> bool {
        self.test.as_deref_mut().is_none_or(|(test, layers)| {
            dissect(interface.link_type, packet.data, layers);
            test.accepts(layers, Timestamp::from_nanos(packet.time))
        })
    }

    /// Whether a packet matches the expression.
    fn matches(&mut self, interface: &Interface, packet: &ReadPacket<'_>) -> Result<bool> {
        if self.expression.is_empty() {
            return Ok(true);
        }
        let link_type = interface.link_type;
        let at = match self.programs.iter().position(|&(known, _)| known == link_type) {
            Some(at) => at,
            None => {
                let program = Program::compile(&self.expression, link_type, 0)?;
                self.programs.push((link_type, program));
                self.programs.len() - 1
            }
        };
        Ok(self.programs[at].1.matches(packet.data, packet.original_length))
    }
}

/// What may still be accepted.
#[derive(Debug)]
struct Limit {
    packets: u64,
    bytes: u64,
}

impl Limit {
    /// That of a selection; None if it has none.
    fn of(selection: &Selection) -> Option<Self> {
        let Selection { packets_max, bytes_max, .. } = selection;
        let is_limited = packets_max.is_some() || bytes_max.is_some();
        is_limited.then(|| Self {
            packets: packets_max.unwrap_or(u64::MAX),
            bytes: bytes_max.unwrap_or(u64::MAX),
        })
    }

    fn is_reached(&self) -> bool {
        self.packets == 0 || self.bytes == 0
    }

    fn enter(&mut self, packet: &ReadPacket<'_>) {
        self.packets -= 1;
        self.bytes = self.bytes.saturating_sub(PCAP_HEADER_BYTES + packet.data.len() as u64);
    }
}

/// Flows whose ids were computed that are remembered.
const FLOWS_KNOWN_MAX: usize = 1 << 16;

/// Accepts the packets of some flows, in both directions.
#[derive(Debug)]
struct FlowFilter {
    ids: Vec<CommunityId>,
    layers: Layers,
    fragments: Fragments,
    /// Whether a flow is one of them: an id takes longer than all else.
    known: HashMap<Flow, bool>,
}

impl FlowFilter {
    fn new(ids: Vec<CommunityId>) -> Self {
        let fragments = Fragments::new(FRAGMENTS_MAX);
        Self { ids, layers: Layers::new(), fragments, known: HashMap::new() }
    }

    fn accepts(&mut self, interface: &Interface, packet: &ReadPacket<'_>) -> bool {
        dissect(interface.link_type, packet.data, &mut self.layers);
        self.fragments.resolve(&mut self.layers);
        let Some((flow, _)) = self.layers.flow() else { return false };
        if let Some(&accepted) = self.known.get(&flow) {
            return accepted;
        }
        if self.known.len() >= FLOWS_KNOWN_MAX {
            self.known.clear();
        }
        let accepted = community_id(&flow, 0).is_some_and(|id| self.ids.contains(&id));
        self.known.insert(flow, accepted);
        accepted
    }
}
