//! The keys of a packet: VLAN ids, MPLS labels, addresses and ports from the outside in; flows made of them, their Community ID, and
//! tables that count packets by flow, host or port. The keys of a segment's packets become its flow index, and a filter expression
//! becomes a condition on such keys. Pure: packets in, counts out.
//!
//! ```
//! use base::Timestamp;
//! use format::LinkType;
//! use longtake_search::{FlowTable, Fragments, Group, Layers, Order, dissect};
//!
//! let packet = [
//!     0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
//!     0x13, 0x88, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4, // UDP from port 5000 to port 53
//! ];
//! let (mut layers, mut fragments) = (Layers::new(), Fragments::new(1000));
//! let mut table = FlowTable::new(Group::Flows, 1000);
//! dissect(LinkType::RAW_IP, &packet, &mut layers);
//! fragments.resolve(&mut layers);
//! table.add(&layers, packet.len() as u64, Timestamp::from_nanos(7));
//!
//! let (flow, _) = layers.flow().expect("it has an IP header");
//! let id = search::community_id(&flow, 0).expect("its ports are known");
//! assert_eq!(id.to_string().len(), 30);
//! let ranking = table.rank(Order::Bytes, Some(10));
//! assert_eq!((ranking.rows.len(), ranking.total.packets), (1, 1));
//! # use longtake_search as search;
//! ```

#![forbid(unsafe_code)]

mod community_id;
mod condition;
mod cursor;
mod cutter;
mod dissect;
mod expression;
mod flow;
mod flow_table;
mod fragments;
mod index_key;
mod key_hash;
mod layers;
mod packet_test;
pub mod protocol;
mod segment_keys;

pub use community_id::{CommunityId, CommunityIdError, community_id};
pub use condition::Condition;
pub use cutter::{Cutter, IDLE, flow_to_cut};
pub use dissect::{OTHER_BYTES, dissect, dissect_headers, is_dissected};
pub use expression::condition_of;
pub use flow::{Direction, Flow, Transport};
pub use flow_table::{FLOWS_MAX, FlowTable, Group, Key, Order, Ranking, Row, Tally};
pub use fragments::{FRAGMENTS_MAX, Fragments};
pub use index_key::{IndexKey, KeyKind};
pub use key_hash::KeyHash;
pub use layers::{End, Fragment, IpLayer, LAYERS_MAX, Layer, Layers, Part, Tunnel};
pub use packet_test::PacketTest;
pub use segment_keys::{KEYS_MAX, SegmentKeys};
