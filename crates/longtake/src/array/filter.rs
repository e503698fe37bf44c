//! Which packets are accepted: a filter expression over recorded packets, and flows by their Community ID.

use std::collections::HashMap;

use anyhow::Result;
use format::Interface;
use format::pcapng::ReadPacket;
use search::{CommunityId, FRAGMENTS_MAX, Flow, Fragments, Layers, community_id, dissect};
use source::filter::Program;

use super::select::Selection;

/// A filter expression, compiled for each link type that comes up, and flows.
#[derive(Debug, Default)]
pub(super) struct Filter {
    expression: String,
    programs: HashMap<u16, Program>,
    flows: Option<FlowFilter>,
}

impl Filter {
    /// Accepts what a selection does, apart from times and takes.
    pub(super) fn new(selection: &Selection) -> Self {
        let ids = &selection.community_ids;
        let flows = (!ids.is_empty()).then(|| FlowFilter::new(ids.clone()));
        Self { expression: selection.filter.trim().to_owned(), programs: HashMap::new(), flows }
    }

    /// Whether everything is accepted.
    pub(super) fn is_empty(&self) -> bool {
        self.expression.is_empty() && self.flows.is_none()
    }

    /// Whether a packet is accepted.
    ///
    /// # Errors
    /// If the expression can't be compiled for the link type.
    pub(super) fn accepts(
        &mut self,
        interface: &Interface,
        packet: &ReadPacket<'_>,
    ) -> Result<bool> {
        // Flows see every packet: one that the expression rejects may be the first fragment of one that it accepts.
        let is_of_flow = self.flows.as_mut().is_none_or(|flows| flows.accepts(interface, packet));
        if self.expression.is_empty() {
            return Ok(is_of_flow);
        }
        let link_type = interface.link_type;
        if !self.programs.contains_key(&link_type.0) {
            let program = Program::compile(&self.expression, link_type, 0)?;
            self.programs.insert(link_type.0, program);
        }
        let program = &self.programs[&link_type.0];
        Ok(is_of_flow && program.matches(packet.data, packet.original_length))
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
