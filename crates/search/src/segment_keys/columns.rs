//! Where a segment may hold what is looked for, before its flow index is made.

use std::collections::HashMap;

use super::{Gathered, Host, SegmentKeys};
use crate::community_id::community_id;
use crate::condition::Condition;
use crate::flow::Flow;
use crate::index_key::{IndexKey, KeyKind};
use crate::key_hash::KeyHash;

/// Columns by key.
type Columns = HashMap<IndexKey, u64, KeyHash>;

impl SegmentKeys {
    /// The columns that may hold packets that meet a condition, of those entered so far: a bit each. Takes the time of a walk over all
    /// flows, a tenth of a microsecond each if the condition asks for flows.
    pub fn columns(&self, condition: &Condition) -> u64 {
        let gathered = &self.gathered;
        let columns = gathered.columns_of(condition.keys());
        let of_key = |key: &IndexKey| columns.get(key).map_or(u64::MAX, |c| c | gathered.anything);
        condition.columns(&of_key, gathered.fragmentary | gathered.anything)
    }
}

impl Gathered {
    /// The columns of each key, but for keys of which not all were gathered.
    fn columns_of(&self, keys: Vec<IndexKey>) -> Columns {
        let known = keys.into_iter().filter(|key| self.knows(key));
        let mut columns: Columns = known.map(|key| (key, self.apart(&key))).collect();
        let has_flows = columns.keys().any(|key| key.kind() == KeyKind::Flows);
        self.flows.for_each(|flow, of_flow| {
            let mut add = |key: IndexKey| {
                if let Some(columns) = columns.get_mut(&key) {
                    *columns |= of_flow;
                }
            };
            parts(&flow).for_each(&mut add);
            let id = if has_flows { community_id(&flow, 0) } else { None };
            id.into_iter().for_each(|id| add(IndexKey::Flow(id)));
        });
        columns
    }

    /// Whether every packet with this key was gathered.
    fn knows(&self, key: &IndexKey) -> bool {
        let kind = key.kind();
        let is_whole = match kind {
            KeyKind::Flows => self.flows_whole,
            KeyKind::Hosts => self.hosts_whole,
            KeyKind::ServicePorts | KeyKind::EphemeralPorts | KeyKind::Labels => true,
        };
        self.wants(kind) && is_whole
    }

    /// The columns in which a key was gathered apart from flows.
    fn apart(&self, key: &IndexKey) -> u64 {
        match key {
            IndexKey::Host(host) => self.hosts.get(&Host(*host)).copied().unwrap_or(0),
            IndexKey::Port(port) => self.ports.get(usize::from(*port)).copied().unwrap_or(0),
            IndexKey::Flow(_) => 0,
            IndexKey::Protocol(_) | IndexKey::Vlan(_) | IndexKey::Mpls(_) => {
                self.labels.columns(key)
            }
        }
    }
}

/// The keys that a flow consists of.
fn parts(flow: &Flow) -> impl Iterator<Item = IndexKey> {
    let ports = flow.ports.filter(|_| !flow.is_icmp());
    let ports = ports.into_iter().flat_map(|(first, second)| [first, second]);
    let others = [
        IndexKey::Host(flow.first),
        IndexKey::Host(flow.second),
        IndexKey::Protocol(flow.protocol),
    ];
    others.into_iter().chain(ports.map(IndexKey::Port))
}
