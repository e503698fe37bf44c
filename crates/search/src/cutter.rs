//! Which packets are among the first bytes of their flow. Flows are remembered in fixed memory, and what is forgotten counts as new:
//! that keeps more than was asked for, never less.

use std::net::{IpAddr, Ipv4Addr};

use base::{Duration, Timestamp};

use crate::flow::Flow;
use crate::layers::{End, Layers};

/// After this time without a packet, a flow begins again: another connection may use the same ports by then.
pub const IDLE: Duration = Duration::from_secs(60);

/// Flows that share a place. The one that was quiet for longest is forgotten for another.
const WAYS: usize = 8;

/// The flow whose packets are counted together. None for a packet that is kept in any case: without an IP header, a fragment, or with
/// headers that can't be read to their end.
#[inline]
pub fn flow_to_cut(layers: &Layers) -> Option<Flow> {
    let is_fragment = layers.ips().any(|(ip, _)| ip.fragment.is_some());
    if is_fragment || layers.end() != End::Payload {
        return None;
    }
    layers.flow().map(|(flow, _)| flow)
}

/// A flow and what came of it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    flow: Flow,
    bytes: u64,
    /// Time of its last packet.
    last: Timestamp,
}

/// Keeps the first bytes of each flow.
#[derive(Debug)]
pub struct Cutter {
    bytes: u64,
    /// For each place a part of the hash of each of its flows, 0 for none.
    tags: Vec<[u16; WAYS]>,
    entries: Vec<Entry>,
}

impl Cutter {
    /// Keeps so many bytes of each flow, and remembers so many flows, in up to twice as many places: a power of two.
    pub fn new(bytes: u64, flows_max: usize) -> Self {
        let places = flows_max.div_ceil(WAYS).next_power_of_two();
        let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let flow = Flow { first: nobody, second: nobody, ports: None, protocol: 0 };
        let entry = Entry { flow, bytes: 0, last: Timestamp::MIN };
        Self { bytes, tags: vec![[0; WAYS]; places], entries: vec![entry; places * WAYS] }
    }

    /// Whether a packet of so many bytes on the wire is kept: fewer than the bytes to keep came before it. `hash` is that of the flow,
    /// the same for each of its packets.
    #[inline]
    pub fn keeps(&mut self, hash: u64, flow: &Flow, bytes: u64, at: Timestamp) -> bool {
        let place = hash as usize & (self.tags.len() - 1);
        let tag = (hash >> 40) as u16 | 1;
        let (tags, entries) = (&mut self.tags[place], &mut self.entries[place * WAYS..][..WAYS]);
        let same = |way: &usize| tags[*way] == tag && entries[*way].flow == *flow;
        if let Some(way) = (0..WAYS).find(same) {
            let entry = &mut entries[way];
            // A clock that was set back must not make it wait.
            if at.since(entry.last).max(entry.last.since(at)) >= IDLE {
                entry.bytes = 0;
            }
            let is_kept = entry.bytes < self.bytes;
            (entry.bytes, entry.last) = (entry.bytes.saturating_add(bytes), at);
            return is_kept;
        }
        let free = tags.iter().position(|&tag| tag == 0);
        let quietest = || (0..WAYS).min_by_key(|&way| entries[way].last).unwrap_or(0);
        let way = free.unwrap_or_else(quietest);
        tags[way] = tag;
        entries[way] = Entry { flow: *flow, bytes, last: at };
        self.bytes > 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::hash::BuildHasher;

    use base::Random;
    use proptest::prelude::*;

    use super::*;
    use crate::flow::Transport;
    use crate::key_hash::KeyHash;

    /// The same with unbounded memory.
    #[derive(Default)]
    struct Model(HashMap<(IpAddr, IpAddr, u16, u16), (u64, Timestamp)>);

    impl Model {
        fn keeps(&mut self, limit: u64, flow: &Flow, bytes: u64, at: Timestamp) -> bool {
            let (from, to) = flow.ports.expect("it has ports");
            let key = (flow.first, flow.second, from, to);
            let (before, last) = self.0.get(&key).copied().unwrap_or((0, at));
            let apart = at.as_nanos().abs_diff(last.as_nanos());
            let before = if apart >= 60_000_000_000 { 0 } else { before };
            self.0.insert(key, (before + bytes, at));
            before < limit
        }
    }

    /// A packet of one of so many flows, in either direction.
    fn flow(random: &mut Random, flows: u64) -> Flow {
        let number = random.below(flows);
        let transport = |source, destination| Transport::Ports { source, destination };
        let [client, server] =
            [number as u32 / 7, 7].map(|host| IpAddr::from((0x0a00_0000 + host).to_be_bytes()));
        let port = 1000 + (number % 7) as u16;
        let (flow, _) = match random.one_in(2) {
            true => Flow::new(client, server, 6, transport(port, 443)),
            false => Flow::new(server, client, 6, transport(443, port)),
        };
        flow
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn with_room_for_all_flows_it_keeps_what_unbounded_memory_keeps(
            seed in any::<u64>(), limit in 1_u64..20_000, flows in 1_u64..64,
        ) {
            let (mut random, hash) = (Random::new(seed), KeyHash::default());
            // So many places that eight flows in one of them are out of the question.
            let (mut cutter, mut model) = (Cutter::new(limit, 1 << 16), Model::default());
            let mut at = Timestamp::from_nanos(1 << 60);
            for _ in 0..4000 {
                let flow = flow(&mut random, flows);
                let bytes = 40 + random.below(1474);
                // Seldom as long as a flow may be idle, and backward at times.
                at = Timestamp::from_nanos(match random.below(8) {
                    0 => at.as_nanos() - random.below(1_000_000_000),
                    1 if random.one_in(20) => at.as_nanos() + 60_000_000_000 - random.below(2),
                    _ => at.as_nanos() + random.below(2_000_000_000),
                });
                let kept = cutter.keeps(hash.hash_one(flow), &flow, bytes, at);
                prop_assert_eq!(kept, model.keeps(limit, &flow, bytes, at));
            }
        }

        #[test]
        fn with_too_little_room_it_keeps_more_and_never_less(
            seed in any::<u64>(), limit in 1_u64..20_000, flows in 1_u64..2000, room in 1_usize..64,
        ) {
            let (mut random, hash) = (Random::new(seed), KeyHash::default());
            let (mut cutter, mut model) = (Cutter::new(limit, room), Model::default());
            let mut at = Timestamp::from_nanos(1 << 60);
            for _ in 0..4000 {
                let flow = flow(&mut random, flows);
                let bytes = 40 + random.below(1474);
                at = Timestamp::from_nanos(at.as_nanos() + random.below(100_000_000));
                let kept = cutter.keeps(hash.hash_one(flow), &flow, bytes, at);
                let wanted = model.keeps(limit, &flow, bytes, at);
                prop_assert!(kept || !wanted);
            }
        }
    }

    #[test]
    fn a_million_flows_take_seventy_megabytes() {
        let cutter = Cutter::new(1, 1 << 20);
        assert_eq!(cutter.entries.len(), 1 << 20);
        let bytes = size_of_val(&cutter.entries[..]) + size_of_val(&cutter.tags[..]);
        assert!((69_000_000..70_000_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn flows_whose_hashes_are_equal_are_told_apart() {
        let mut cutter = Cutter::new(100, 8);
        let mut random = Random::new(1);
        let (one, other) = (flow(&mut random, 1), flow(&mut Random::new(5), 1 << 30));
        assert_ne!(one, other);
        let at = Timestamp::from_nanos(7);
        let kept = [&one, &one, &other, &other, &one].map(|flow| cutter.keeps(9, flow, 100, at));
        assert_eq!(kept, [true, false, true, false, false]);
    }

    #[test]
    fn the_flow_that_was_quiet_for_longest_is_forgotten() {
        let mut cutter = Cutter::new(1, WAYS);
        let flows: Vec<Flow> = (0..9_u16)
            .map(|port| {
                let transport = Transport::Ports { source: port, destination: 53 };
                let ends = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
                Flow::new(ends[0], ends[1], 17, transport).0
            })
            .collect();
        let mut keeps =
            |flow: usize, ns| cutter.keeps(0, &flows[flow], 1, Timestamp::from_nanos(ns));
        assert!((0..8).all(|flow| keeps(flow, flow as u64)));
        assert!(!keeps(0, 100), "it is remembered, and no longer the quietest");
        assert!(keeps(8, 101), "another one takes the place of flow 1");
        assert!(!keeps(0, 102) && keeps(1, 103));
    }
}
