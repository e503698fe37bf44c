//! The protocols, VLANs and MPLS labels of a segment with the columns of each.

use std::collections::HashMap;

use crate::index_key::IndexKey;
use crate::key_hash::KeyHash;

/// Ids of VLANs: 12 bits.
const VLANS: usize = 1 << 12;

/// Labels with their columns; no columns for those that have not occurred.
#[derive(Debug)]
pub struct Labels {
    protocols: [u64; 256],
    vlans: Box<[u64; VLANS]>,
    mpls: HashMap<u32, u64, KeyHash>,
}

impl Default for Labels {
    fn default() -> Self {
        Self { protocols: [0; 256], vlans: Box::new([0; VLANS]), mpls: HashMap::default() }
    }
}

impl Labels {
    /// Adds columns to a protocol.
    #[inline]
    pub fn add_protocol(&mut self, protocol: u8, columns: u64) {
        self.protocols[usize::from(protocol)] |= columns;
    }

    /// Adds columns to a VLAN, by the lowest 12 bits of its id.
    #[inline]
    pub fn add_vlan(&mut self, id: u16, columns: u64) {
        self.vlans[usize::from(id) % VLANS] |= columns;
    }

    /// Adds columns to an MPLS label.
    #[inline]
    pub fn add_mpls(&mut self, label: u32, columns: u64) {
        *self.mpls.entry(label).or_default() |= columns;
    }

    /// The columns of a label; none of anything else.
    pub fn columns(&self, key: &IndexKey) -> u64 {
        match key {
            IndexKey::Protocol(protocol) => self.protocols[usize::from(*protocol)],
            IndexKey::Vlan(id) => self.vlans.get(usize::from(*id)).copied().unwrap_or(0),
            IndexKey::Mpls(label) => self.mpls.get(label).copied().unwrap_or(0),
            IndexKey::Host(_) | IndexKey::Flow(_) | IndexKey::Port(_) => 0,
        }
    }

    /// Calls `entered` with each label that has occurred, and its columns.
    pub fn for_each(&self, mut entered: impl FnMut(IndexKey, u64)) {
        let protocols = (0..=u8::MAX).map(IndexKey::Protocol).zip(self.protocols);
        let vlans = (0..VLANS as u16).map(IndexKey::Vlan).zip(*self.vlans);
        let occurred = protocols.chain(vlans).filter(|(_, columns)| *columns != 0);
        occurred.for_each(|(label, columns)| entered(label, columns));
        self.mpls.iter().for_each(|(label, &columns)| entered(IndexKey::Mpls(*label), columns));
    }

    /// Forgets all labels.
    pub fn clear(&mut self) {
        self.protocols.fill(0);
        self.vlans.fill(0);
        self.mpls.clear();
    }
}
