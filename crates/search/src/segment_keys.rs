//! The keys of a segment's packets, gathered in bounded memory, and the flow index that they become.

mod columns;
mod flows;
mod labels;

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use format::LinkType;
use format::flow_index::{self, COLUMNS, Facts, FlowIndex, Subject};

use crate::community_id::community_id;
use crate::dissect::{dissect, is_dissected};
use crate::flow::{Flow, hash_address};
use crate::fragments::{FRAGMENTS_MAX, Fragments};
use crate::index_key::{IndexKey, KeyKind};
use crate::key_hash::KeyHash;
use crate::layers::{End, Layer, Layers};
use flows::Flows;
use labels::Labels;

/// Flows of a segment, and then its hosts, that are remembered at most: an index of a five-hundredth of the default segment
/// holds no more. They take 50 MB at most, while their tables grow.
pub const KEYS_MAX: usize = 1 << 18;

/// What is tried until it has room: kinds of keys that are left out, and in how many columns a key may be before it counts as being
/// in all of them. A key that is in many columns narrows a search least; a client's port says little that its host doesn't; flows are
/// found by their hosts and ports.
const LADDER: [(&[KeyKind], u32); 10] = {
    use KeyKind::{EphemeralPorts, Flows, Hosts, ServicePorts};
    [
        (&[], COLUMNS),
        (&[], 16),
        (&[], 8),
        (&[EphemeralPorts], 16),
        (&[EphemeralPorts], 6),
        (&[EphemeralPorts, Flows], 16),
        (&[EphemeralPorts, Flows], 6),
        (&[EphemeralPorts, Flows, ServicePorts], 16),
        (&[EphemeralPorts, Flows, ServicePorts], 4),
        (&[EphemeralPorts, Flows, ServicePorts, Hosts], COLUMNS),
    ]
};

/// An address, hashed as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Host(IpAddr);

impl Hash for Host {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_address(self.0, state);
    }
}

/// Gathers the keys of the packets of a segment, with the columns in which each occurs.
#[derive(Debug)]
pub struct SegmentKeys {
    layers: Layers,
    fragments: Fragments,
    gathered: Gathered,
}

/// What was gathered.
#[derive(Debug)]
struct Gathered {
    keys_max: usize,
    /// Kinds that are wanted, a bit each.
    kinds: u16,
    /// Until there are too many: then what they consist of is gathered instead.
    flows: Flows,
    flows_whole: bool,
    /// Those that are no flow's.
    hosts: HashMap<Host, u64, KeyHash>,
    hosts_whole: bool,
    labels: Labels,
    /// By port; empty until one that is no flow's is gathered.
    ports: Vec<u64>,
    anything: u64,
    fragmentary: u64,
    /// Chunks that were not read.
    unread: u32,
    /// The packet before, which is often of the same flow.
    last: Option<(Flow, u64)>,
}

impl Default for SegmentKeys {
    fn default() -> Self {
        Self::new(KEYS_MAX)
    }
}

impl SegmentKeys {
    /// Of no packets yet. Remembers at most so many flows, and as many hosts.
    pub fn new(keys_max: usize) -> Self {
        let gathered = Gathered {
            keys_max,
            kinds: all_kinds(),
            flows: Flows::default(),
            flows_whole: true,
            hosts: HashMap::default(),
            hosts_whole: true,
            labels: Labels::default(),
            ports: Vec::new(),
            anything: 0,
            fragmentary: 0,
            unread: 0,
            last: None,
        };
        Self { layers: Layers::new(), fragments: Fragments::new(FRAGMENTS_MAX), gathered }
    }

    /// The same without flows and ports: hosts, protocols and labels alone.
    #[must_use]
    pub fn of_hosts(mut self) -> Self {
        let left_out = [KeyKind::Flows, KeyKind::ServicePorts, KeyKind::EphemeralPorts];
        self.gathered.kinds = left_out.iter().fold(all_kinds(), |kinds, kind| kinds & !kind.bit());
        self.clear();
        self
    }

    /// Forgets everything but the fragments of datagrams that may go on in the next segment.
    pub fn clear(&mut self) {
        let gathered = &mut self.gathered;
        gathered.flows.clear();
        gathered.hosts.clear();
        gathered.labels.clear();
        gathered.ports.clear();
        gathered.flows_whole = gathered.wants(KeyKind::Flows);
        gathered.hosts_whole = true;
        (gathered.anything, gathered.fragmentary) = (0, 0);
        (gathered.unread, gathered.last) = (0, None);
    }

    /// Enters a packet of a chunk in this column.
    ///
    /// # Panics
    /// If there is no such column.
    #[inline]
    pub fn add(&mut self, column: u32, link_type: LinkType, packet: &[u8]) {
        assert!(column < COLUMNS, "column {column}");
        let column = 1 << column;
        let Self { layers, fragments, gathered } = self;
        dissect(link_type, packet, layers);
        fragments.resolve(layers);
        gathered.add_layers(column, layers);
        // What could not be taken apart to its end may be what anybody looks for.
        let is_odd = matches!(layers.end(), End::Truncated | End::TooDeep | End::Malformed);
        if is_odd || !is_dissected(link_type) {
            gathered.anything |= column;
        }
    }

    /// Notes that a column may hold anything: a chunk of it was not read.
    pub fn add_unread(&mut self, column: u32) {
        self.gathered.anything |= 1 << column;
        self.gathered.unread += 1;
    }

    /// The flow index of what was gathered, for these chunks, in at most so many pages. None if even protocols and labels take more.
    /// What has no room is left out, the least useful first. Nothing is gathered afterwards but with [`SegmentKeys::clear`].
    pub fn finish(
        &mut self,
        subject: &Subject,
        hash_key: [u8; 16],
        pages_max: u32,
    ) -> Option<Vec<u8>> {
        self.gathered.finish(subject, hash_key, pages_max)
    }
}

fn all_kinds() -> u16 {
    KeyKind::ALL.iter().fold(0, |kinds, kind| kinds | kind.bit())
}

impl Gathered {
    fn wants(&self, kind: KeyKind) -> bool {
        self.kinds & kind.bit() != 0
    }

    #[inline]
    fn add_layers(&mut self, column: u64, layers: &Layers) {
        for layer in layers.all() {
            match *layer {
                Layer::Vlan(id) => self.labels.add_vlan(id, column),
                Layer::Mpls(label) => self.labels.add_mpls(label, column),
                Layer::Arp(sender, target) => {
                    self.add_host(IpAddr::V4(sender), column);
                    self.add_host(IpAddr::V4(target), column);
                }
                Layer::Ip(_) | Layer::Ports(..) | Layer::Icmp(..) | Layer::Tunnel(_) => {}
            }
        }
        for (ip, transport) in layers.ips() {
            if ip.fragment.is_some() {
                self.fragmentary |= column;
            }
            match ip.protocol {
                Some(protocol) => {
                    let (flow, _) = Flow::new(ip.source, ip.destination, protocol, transport);
                    self.add_flow(flow, column);
                }
                None => {
                    self.add_host(ip.source, column);
                    self.add_host(ip.destination, column);
                }
            }
        }
    }

    #[inline]
    fn add_flow(&mut self, flow: Flow, column: u64) {
        if self.last == Some((flow, column)) {
            return;
        }
        self.last = Some((flow, column));
        if self.flows_whole {
            if self.flows.add(&flow, column, self.keys_max) {
                return;
            }
            self.dissolve_flows();
        }
        self.add_parts(&flow, column);
    }

    /// Gathers what the flows consist of, and no flows any more.
    fn dissolve_flows(&mut self) {
        self.flows_whole = false;
        let flows = std::mem::take(&mut self.flows);
        flows.for_each(|flow, columns| self.add_parts(&flow, columns));
        // The memory is used again for the next segment.
        self.flows = flows.cleared();
    }

    fn add_parts(&mut self, flow: &Flow, columns: u64) {
        self.add_host(flow.first, columns);
        self.add_host(flow.second, columns);
        self.labels.add_protocol(flow.protocol, columns);
        let wants_ports = self.wants(KeyKind::ServicePorts);
        if let Some((first, second)) = flow.ports.filter(|_| wants_ports && !flow.is_icmp()) {
            self.ports.resize(1 << 16, 0);
            self.ports[usize::from(first)] |= columns;
            self.ports[usize::from(second)] |= columns;
        }
    }

    fn add_host(&mut self, host: IpAddr, columns: u64) {
        if let Some(held) = self.hosts.get_mut(&Host(host)) {
            *held |= columns;
        } else if self.hosts.len() < self.keys_max {
            self.hosts.insert(Host(host), columns);
        } else {
            self.hosts_whole = false;
        }
    }

    fn finish(&mut self, subject: &Subject, hash_key: [u8; 16], pages_max: u32) -> Option<Vec<u8>> {
        let overflowed = |is_whole: bool, kind: KeyKind| if is_whole { 0 } else { kind.bit() };
        let all = all_kinds();
        let mut left_out = all & !self.kinds | overflowed(self.flows_whole, KeyKind::Flows);
        let flows_fit = self.flows.len() <= flow_index::keys_max(pages_max);
        left_out |= overflowed(flows_fit, KeyKind::Flows);
        let keys = self.hashed(&hash_key, left_out);
        left_out |= overflowed(self.hosts_whole, KeyKind::Hosts);
        LADDER.iter().find_map(|(kinds, columns_max)| {
            let left_out = kinds.iter().fold(left_out, |kinds, kind| kinds | kind.bit());
            let kept = keys.iter().filter(|(kind, ..)| kind.bit() & left_out == 0);
            let hashed: Vec<(u64, u64)> = kept
                .map(|&(_, hash, columns)| match columns.count_ones() > *columns_max {
                    true => (hash, u64::MAX),
                    false => (hash, columns),
                })
                .collect();
            let facts = Facts {
                kinds: all & !left_out,
                hash_key,
                anything: self.anything,
                fragments: self.fragmentary,
                unread: self.unread,
            };
            FlowIndex::encode(subject, &facts, &hashed, pages_max)
        })
    }

    /// The keys, but for kinds that are left out anyway, with their hashes and columns.
    fn hashed(&mut self, hash_key: &[u8; 16], left_out: u16) -> Vec<(KeyKind, u64, u64)> {
        let mut keys = Vec::new();
        let mut enter = |key: IndexKey, columns| {
            if key.kind().bit() & left_out == 0 {
                keys.push((key.kind(), key.hash(hash_key), columns));
            }
        };
        if KeyKind::Flows.bit() & left_out == 0 {
            self.flows.for_each(|flow, columns| {
                // One whose ports are not known is found by its hosts.
                if let Some(id) = community_id(&flow, 0) {
                    enter(IndexKey::Flow(id), columns);
                }
            });
        }
        self.dissolve_flows();
        self.hosts.iter().for_each(|(host, &columns)| enter(IndexKey::Host(host.0), columns));
        self.labels.for_each(&mut enter);
        for (port, &columns) in (0..=u16::MAX).zip(&self.ports) {
            if columns != 0 {
                enter(IndexKey::Port(port), columns);
            }
        }
        keys
    }
}
