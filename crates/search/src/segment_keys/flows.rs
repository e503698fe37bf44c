//! The flows of a segment with the columns of each, in as little memory as holds them: a lookup in a table that the processor's
//! caches don't hold is what entering a packet takes longest for.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr};

use crate::flow::Flow;
use crate::key_hash::KeyHash;

/// Flows with their columns.
#[derive(Debug, Default)]
pub struct Flows {
    ipv4: HashMap<Ipv4Flow, u64, KeyHash>,
    ipv6: HashMap<Flow, u64, KeyHash>,
}

/// A flow of IPv4, packed: half as long as [`Flow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ipv4Flow {
    /// Of the first end and the second.
    addresses: u64,
    /// Ports, protocol, and whether the ports are known.
    rest: u64,
}

impl Ipv4Flow {
    #[inline]
    fn of(flow: &Flow) -> Option<Self> {
        let (IpAddr::V4(first), IpAddr::V4(second)) = (flow.first, flow.second) else {
            return None;
        };
        let addresses = u64::from(first.to_bits()) << 32 | u64::from(second.to_bits());
        Some(Self { addresses, rest: flow.ports_and_protocol() })
    }

    fn flow(self) -> Flow {
        let address = |bits: u64| IpAddr::V4(Ipv4Addr::from_bits(bits as u32));
        let port = |shift: u32| (self.rest >> shift) as u16;
        Flow {
            first: address(self.addresses >> 32),
            second: address(self.addresses),
            ports: (self.rest & 1 == 1).then_some((port(32), port(16))),
            protocol: (self.rest >> 8) as u8,
        }
    }
}

impl Hash for Ipv4Flow {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.addresses);
        state.write_u64(self.rest);
    }
}

impl Flows {
    /// Adds columns to a flow. Returns whether it did: a flow that is new is not added to as many as `max`.
    #[inline]
    pub fn add(&mut self, flow: &Flow, columns: u64, max: usize) -> bool {
        let has_room = self.len() < max;
        match Ipv4Flow::of(flow) {
            Some(flow) => add(&mut self.ipv4, flow, columns, has_room),
            None => add(&mut self.ipv6, *flow, columns, has_room),
        }
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.ipv4.len() + self.ipv6.len()
    }

    /// Calls `entered` with each flow and its columns.
    pub fn for_each(&self, mut entered: impl FnMut(Flow, u64)) {
        self.ipv4.iter().for_each(|(flow, &columns)| entered(flow.flow(), columns));
        self.ipv6.iter().for_each(|(flow, &columns)| entered(*flow, columns));
    }

    /// Forgets all flows, and keeps the memory.
    pub fn clear(&mut self) {
        self.ipv4.clear();
        self.ipv6.clear();
    }

    /// None, in the same memory.
    #[must_use]
    pub fn cleared(mut self) -> Self {
        self.clear();
        self
    }
}

#[inline]
fn add<K: Eq + Hash>(
    flows: &mut HashMap<K, u64, KeyHash>,
    flow: K,
    columns: u64,
    has_room: bool,
) -> bool {
    if !has_room {
        let held = flows.get_mut(&flow);
        return held.map(|held| *held |= columns).is_some();
    }
    *flows.entry(flow).or_default() |= columns;
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            any::<u32>().prop_map(|bits| IpAddr::V4(bits.into())),
            any::<u128>().prop_map(|bits| IpAddr::V6(bits.into())),
        ]
    }

    fn flow() -> impl Strategy<Value = Flow> {
        (address(), address(), any::<Option<(u16, u16)>>(), any::<u8>())
            .prop_map(|(first, second, ports, protocol)| Flow { first, second, ports, protocol })
    }

    proptest! {
        #[test]
        fn flows_come_back_with_their_columns(
            entered in prop::collection::vec((flow(), any::<u64>()), 0..100),
            max in 1..100_usize,
        ) {
            let (mut flows, mut expected) = (Flows::default(), HashMap::<Flow, u64>::new());
            // Each twice, so that some are known.
            for &(flow, columns) in entered.iter().chain(&entered) {
                let has_room = expected.len() < max || expected.contains_key(&flow);
                prop_assert_eq!(flows.add(&flow, columns, max), has_room);
                if has_room {
                    *expected.entry(flow).or_default() |= columns;
                }
            }
            prop_assert_eq!(flows.len(), expected.len());
            let mut found = HashMap::new();
            flows.for_each(|flow, columns| {
                found.insert(flow, columns);
            });
            prop_assert_eq!(found, expected);
        }
    }
}
