//! Packets counted by flow, host or port, in bounded memory: what comes beyond the limit is counted in one sum, and a ranking has it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::str::FromStr;

use base::Timestamp;

use crate::flow::{Direction, Flow, hash_address};
use crate::key_hash::KeyHash;
use crate::layers::Layers;

/// A good number of rows to count at most: a table of them takes 150 MB, and twice as much while it is sorted.
pub const FLOWS_MAX: usize = 900_000;

/// By what packets are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Group {
    /// By flow.
    #[default]
    Flows,
    /// By address: what each host sent and received.
    Hosts,
    /// By protocol and service port, which is the lower one of the two ports.
    Ports,
}

impl FromStr for Group {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "flows" => Ok(Self::Flows),
            "hosts" => Ok(Self::Hosts),
            "ports" => Ok(Self::Ports),
            _ => Err("give flows, hosts or ports"),
        }
    }
}

/// What a row of a table counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A flow.
    Flow(Flow),
    /// A host.
    Host(IpAddr),
    /// A service.
    Port {
        /// IP protocol.
        protocol: u8,
        /// Its port; None where there are no ports or they are not known.
        port: Option<u16>,
    },
}

/// All keys of a table are of one kind, so that the kind needs no hash.
impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Flow(flow) => flow.hash(state),
            Self::Host(host) => hash_address(*host, state),
            Self::Port { protocol, port } => {
                let port = port.map_or(0, |port| 1 << 16 | u64::from(port));
                state.write_u64(port << 8 | u64::from(*protocol));
            }
        }
    }
}

/// Packets that were counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Times of the earliest and the latest; None if there are none.
    pub span: Option<(Timestamp, Timestamp)>,
}

impl Tally {
    #[inline]
    fn enter(&mut self, bytes: u64, time: Timestamp) {
        self.packets += 1;
        self.bytes += bytes;
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
    }

    fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.span = match (self.span, other.span) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, another) => one.or(another),
        };
    }
}

/// What was counted under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What the first packet's sender sent; of a host what it sent; of a service what was sent to it.
    pub forward: Tally,
    /// What was sent the other way.
    pub backward: Tally,
    /// Of a flow, the direction of its first packet; else [`Direction::Forward`].
    pub began: Direction,
}

impl Row {
    /// Both directions together.
    pub fn both(&self) -> Tally {
        let mut sum = self.forward;
        sum.merge(&self.backward);
        sum
    }
}

/// By what a ranking is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By bytes on the wire, most first.
    #[default]
    Bytes,
    /// By packets, most first.
    Packets,
}

impl FromStr for Order {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "bytes" => Ok(Self::Bytes),
            "packets" => Ok(Self::Packets),
            _ => Err("give bytes or packets"),
        }
    }
}

/// Counts packets.
#[derive(Debug)]
pub struct FlowTable {
    group: Group,
    max: usize,
    rows: HashMap<Key, Row, KeyHash>,
    total: Tally,
    not_ip: Tally,
    beyond: Tally,
}

impl FlowTable {
    /// Counts with at most so many rows.
    pub fn new(group: Group, rows_max: usize) -> Self {
        let (total, not_ip, beyond) = (Tally::default(), Tally::default(), Tally::default());
        Self { group, max: rows_max, rows: HashMap::default(), total, not_ip, beyond }
    }

    /// Counts a packet of so many bytes on the wire, under its innermost IP header.
    #[inline]
    pub fn add(&mut self, layers: &Layers, bytes: u64, time: Timestamp) {
        self.total.enter(bytes, time);
        let Some((flow, direction)) = layers.flow() else {
            self.not_ip.enter(bytes, time);
            return;
        };
        match self.group {
            Group::Flows => self.enter(Key::Flow(flow), direction, bytes, time),
            Group::Hosts => {
                let [(from, _), (to, _)] = flow.ends(direction);
                self.enter(Key::Host(from), Direction::Forward, bytes, time);
                self.enter(Key::Host(to), Direction::Backward, bytes, time);
            }
            Group::Ports => {
                let [(_, from), (_, to)] = flow.ends(direction);
                let direction = if from < to { Direction::Backward } else { Direction::Forward };
                let port = from.min(to).filter(|_| !flow.is_icmp());
                let key = Key::Port { protocol: flow.protocol, port };
                self.enter(key, direction, bytes, time);
            }
        }
    }

    #[inline]
    fn enter(&mut self, key: Key, direction: Direction, bytes: u64, time: Timestamp) {
        let is_full = self.rows.len() >= self.max;
        let row = match self.rows.entry(key) {
            Entry::Occupied(row) => row.into_mut(),
            Entry::Vacant(_) if is_full => return self.beyond.enter(bytes, time),
            Entry::Vacant(place) => {
                let began = if self.group == Group::Flows { direction } else { Direction::Forward };
                let (forward, backward) = (Tally::default(), Tally::default());
                place.insert(Row { forward, backward, began })
            }
        };
        let tally = if direction == row.began { &mut row.forward } else { &mut row.backward };
        tally.enter(bytes, time);
    }

    /// The rows in order, most first; only the first `top` of them if that is given. Rows with the same count are in the order of
    /// their keys.
    pub fn rank(self, order: Order, top: Option<usize>) -> Ranking {
        let Self { group, rows, total, not_ip, beyond, .. } = self;
        let mut rows: Vec<(Key, Row)> = rows.into_iter().collect();
        let count = |row: &Row| match order {
            Order::Bytes => row.forward.bytes + row.backward.bytes,
            Order::Packets => row.forward.packets + row.backward.packets,
        };
        rows.sort_unstable_by_key(|(key, row)| (Reverse(count(row)), *key));
        let found = rows.len();
        let mut rest = Tally::default();
        let kept = top.unwrap_or(found).min(found);
        for (_, row) in rows.drain(kept..) {
            rest.merge(&row.both());
        }
        Ranking { group, rows, found, rest, beyond, not_ip, total }
    }
}

/// What was counted, in order.
///
/// Grouped by flows or ports, each packet is in one row, or in one of `rest`, `beyond` and `not_ip`, and `total` is the sum of all.
/// Grouped by hosts, each packet is counted twice: for its sender and for its receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranking {
    /// By what packets were counted.
    pub group: Group,
    /// The rows that were asked for.
    pub rows: Vec<(Key, Row)>,
    /// Rows that there are, those that were not asked for included.
    pub found: usize,
    /// Rows that were not asked for, together.
    pub rest: Tally,
    /// Packets of keys that came when the table was full.
    pub beyond: Tally,
    /// Packets without an IP header, or with one that is truncated.
    pub not_ip: Tally,
    /// All packets, each once.
    pub total: Tally,
}
