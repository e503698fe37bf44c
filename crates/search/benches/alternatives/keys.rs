//! The keys of a segment's packets, gathered exactly, and searches for keys that are there and that are not.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use base::Random;
use format::LinkType;
use longtake_search::{
    Condition, FRAGMENTS_MAX, Flow, Fragments, IndexKey, Layer, Layers, Transport, community_id,
    condition_of, dissect,
};

use crate::segment::Segment;

/// The key of the hashes, for all shapes.
pub const HASH_KEY: [u8; 16] = [7; 16];
/// Keys of each kind that are looked up.
const LOOKUPS: usize = 5000;

/// The keys of a segment with their columns, from which indexes are built and lookups are drawn.
pub struct Keys {
    /// Columns by key.
    pub columns: HashMap<IndexKey, u64>,
    /// Hashes and columns, in no order, as an index gets them.
    pub hashed: Vec<(u64, u64)>,
    /// How many keys the packets have together, repetitions counted.
    pub occurrences: u64,
    flows: BTreeMap<Flow, u64>,
}

/// One search: what it looks for, and the columns that hold it.
pub struct Search {
    /// The keys that a chunk must have.
    pub condition: Condition,
    /// Columns that hold a packet with all of them.
    pub wanted: u64,
}

/// Calls `entered` with each key of the packet in `layers`, and with each flow.
pub fn for_each_key(
    layers: &Layers,
    mut entered: impl FnMut(IndexKey),
    mut of_flow: impl FnMut(&Flow),
) {
    for layer in layers.all() {
        match *layer {
            Layer::Vlan(id) => entered(IndexKey::Vlan(id)),
            Layer::Mpls(label) => entered(IndexKey::Mpls(label)),
            Layer::Arp(sender, target) => {
                entered(IndexKey::Host(sender.into()));
                entered(IndexKey::Host(target.into()));
            }
            Layer::Ip(_) | Layer::Ports(..) | Layer::Icmp(..) | Layer::Tunnel(_) => {}
        }
    }
    for (ip, transport) in layers.ips() {
        entered(IndexKey::Host(ip.source));
        entered(IndexKey::Host(ip.destination));
        let Some(protocol) = ip.protocol else { continue };
        entered(IndexKey::Protocol(protocol));
        let (flow, _) = Flow::new(ip.source, ip.destination, protocol, transport);
        if let Transport::Ports { source, destination } = transport {
            entered(IndexKey::Port(source));
            entered(IndexKey::Port(destination));
        }
        of_flow(&flow);
    }
}

impl Keys {
    /// The keys of these packets.
    pub fn of(segment: &Segment) -> Self {
        let (mut layers, mut fragments) = (Layers::new(), Fragments::new(FRAGMENTS_MAX));
        let (mut columns, mut flows) = (HashMap::new(), BTreeMap::new());
        let mut occurrences = 0;
        for (column, packet) in segment.packets() {
            dissect(LinkType::ETHERNET, packet, &mut layers);
            fragments.resolve(&mut layers);
            let bit = 1_u64 << column;
            let enter = |key| {
                occurrences += 1;
                *columns.entry(key).or_default() |= bit;
            };
            for_each_key(&layers, enter, |flow| *flows.entry(*flow).or_default() |= bit);
        }
        for (flow, &held) in &flows {
            if let Some(id) = community_id(flow, 0) {
                *columns.entry(IndexKey::Flow(id)).or_default() |= held;
            }
        }
        let hashed = columns.iter().map(|(key, &columns)| (key.hash(&HASH_KEY), columns)).collect();
        Self { columns, hashed, occurrences, flows }
    }

    /// How many pairs of a key and a column there are.
    pub fn pairs(&self) -> u64 {
        self.hashed.iter().map(|(_, columns)| u64::from(columns.count_ones())).sum()
    }

    /// The hashes of each column's keys.
    pub fn by_column(&self) -> Vec<Vec<u64>> {
        let in_column = |column: u32| {
            let held = self.hashed.iter().filter(move |(_, columns)| columns >> column & 1 == 1);
            held.map(|&(hash, _)| hash).collect()
        };
        (0..u64::BITS).map(in_column).collect()
    }

    /// Searches for hosts, ports and flows of the segment, as many of each.
    pub fn present(&self) -> Vec<Search> {
        let mut random = Random::new(1);
        let mut searches = Vec::new();
        for is_of_kind in [is_host, is_port, is_flow] {
            let mut keys: Vec<IndexKey> = self.columns.keys().copied().filter(is_of_kind).collect();
            keys.sort_unstable();
            searches.extend((0..LOOKUPS).map(|_| {
                let key = keys[random.below(keys.len() as u64) as usize];
                Search { condition: Condition::Key(key), wanted: self.columns[&key] }
            }));
        }
        searches
    }

    /// Searches for hosts, ports and flows that the segment doesn't have, as many of each if there are so many ports.
    pub fn absent(&self) -> Vec<Search> {
        let mut random = Random::new(2);
        let mut keys = HashSet::new();
        for _ in 0..LOOKUPS {
            let [first, second] =
                [0; 2].map(|_| IpAddr::from((random.bits() as u32).to_be_bytes()));
            let [source, destination] = [0; 2].map(|_| random.bits() as u16);
            let transport = Transport::Ports { source, destination };
            let (flow, _) = Flow::new(first, second, 6, transport);
            let flow = community_id(&flow, 0).expect("its ports are known");
            keys.extend([IndexKey::Host(first), IndexKey::Port(source), IndexKey::Flow(flow)]);
        }
        let absent = keys.into_iter().filter(|key| !self.columns.contains_key(key));
        absent.map(|key| Search { condition: Condition::Key(key), wanted: 0 }).collect()
    }

    /// Searches for flows of the segment by an expression with two hosts, two ports and a protocol. One port twice names no flow.
    /// The expression leaves open which port is whose, as in the flows of a VXLAN tunnel's two directions.
    pub fn expressions(&self) -> Vec<Search> {
        let mut random = Random::new(3);
        let named = self.flows.iter().filter(|(flow, _)| [6, 17].contains(&flow.protocol));
        let named = named.filter_map(|(flow, columns)| Some((flow, flow.ports?, *columns)));
        let named: Vec<_> = named.filter(|(_, (first, second), _)| first != second).collect();
        let search = |_| {
            let (flow, (first, second), held) = named[random.below(named.len() as u64) as usize];
            let crossed = Flow { ports: Some((second, first)), ..*flow };
            let wanted = held | self.flows.get(&crossed).copied().unwrap_or_default();
            let name = if flow.protocol == 6 { "tcp" } else { "udp" };
            let hosts = format!("host {} and host {}", flow.first, flow.second);
            let text = format!("{name} and {hosts} and port {first} and port {second}");
            Search { condition: condition_of(&text).expect("it is understood"), wanted }
        };
        (0..LOOKUPS).map(search).collect()
    }
}

fn is_host(key: &IndexKey) -> bool {
    matches!(key, IndexKey::Host(_))
}

fn is_port(key: &IndexKey) -> bool {
    matches!(key, IndexKey::Port(_))
}

fn is_flow(key: &IndexKey) -> bool {
    matches!(key, IndexKey::Flow(_))
}
