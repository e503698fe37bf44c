//! A filter expression over recorded packets.

use std::collections::HashMap;

use anyhow::Result;
use format::Interface;
use format::pcapng::ReadPacket;
use source::filter::Program;

/// A filter expression, compiled for each link type that comes up.
#[derive(Debug, Default)]
pub(super) struct Filter {
    expression: String,
    programs: HashMap<u16, Program>,
}

impl Filter {
    /// An empty expression accepts everything.
    pub(super) fn new(expression: &str) -> Self {
        Self { expression: expression.trim().to_owned(), programs: HashMap::new() }
    }

    /// Whether everything is accepted.
    pub(super) fn is_empty(&self) -> bool {
        self.expression.is_empty()
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
        if self.expression.is_empty() {
            return Ok(true);
        }
        let link_type = interface.link_type;
        if !self.programs.contains_key(&link_type.0) {
            let program = Program::compile(&self.expression, link_type, 0)?;
            self.programs.insert(link_type.0, program);
        }
        let program = &self.programs[&link_type.0];
        Ok(program.matches(packet.data, packet.original_length))
    }
}
