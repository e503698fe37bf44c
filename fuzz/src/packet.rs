//! Any bytes as a packet: its layers are found up to some end, a part of the packet shows a part of them, and its flow is counted
//! and named.

use base::Timestamp;
use format::LinkType;
use search::{
    CommunityId, FlowTable, Fragments, Group, LAYERS_MAX, Layer, Layers, Order, community_id,
    dissect,
};

/// Link types that are looked into, and one that is not.
const LINK_TYPES: [u16; 12] = [1, 0, 12, 14, 101, 108, 113, 147, 228, 229, 276, 9999];

/// Lengths to which a packet is cut at most.
const CUTS_MAX: usize = 256;

/// Reads them: the first byte selects the link type.
pub fn run(bytes: &[u8]) {
    let Some((&first, packet)) = bytes.split_first() else { return };
    let link_type = LinkType(LINK_TYPES[usize::from(first) % LINK_TYPES.len()]);
    let (mut whole, mut cut) = (Layers::new(), Layers::new());
    dissect(link_type, packet, &mut whole);
    assert!(whole.all().len() <= LAYERS_MAX);
    for length in 0..packet.len().min(CUTS_MAX) {
        dissect(link_type, &packet[..length], &mut cut);
        assert!(is_part(cut.all(), whole.all()), "{length} bytes: {cut:?} of {whole:?}");
    }
    counted(&mut whole);
}

/// Whether the layers of a packet that was cut are those of the whole, but for what the last one lacks.
fn is_part(cut: &[Layer], whole: &[Layer]) -> bool {
    let Some((last, before)) = cut.split_last() else { return true };
    let same = match (last, whole.get(before.len())) {
        (Layer::Ip(cut), Some(Layer::Ip(whole))) => {
            (cut.source, cut.destination) == (whole.source, whole.destination)
                && (cut.protocol.is_none() || cut == whole)
        }
        (cut, whole) => Some(cut) == whole,
    };
    same && whole.starts_with(before)
}

/// Counts the packet in every group, and names its flow.
fn counted(layers: &mut Layers) {
    let mut fragments = Fragments::new(1);
    fragments.resolve(layers);
    fragments.resolve(layers);
    for group in [Group::Flows, Group::Hosts, Group::Ports] {
        let mut table = FlowTable::new(group, 1);
        table.add(layers, 100, Timestamp::from_nanos(1));
        let ranking = table.rank(Order::Bytes, None);
        let rows: u64 = ranking.rows.iter().map(|(_, row)| row.both().packets).sum();
        let times = if group == Group::Hosts && layers.flow().is_some() { 2 } else { 1 };
        assert_eq!(rows + ranking.beyond.packets + ranking.not_ip.packets, times);
    }
    if let Some(id) = layers.flow().and_then(|(flow, _)| community_id(&flow, 0)) {
        assert_eq!(id.to_string().parse::<CommunityId>(), Ok(id));
    }
}
