//! What a dissector finds in packets made of known headers, cut short, or made of any bytes.

use format::LinkType;
use longtake_search::{End, LAYERS_MAX, Layer, Layers, community_id, dissect};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::stack::stack;

fn dissected(link_type: LinkType, bytes: &[u8]) -> Layers {
    let mut layers = Layers::new();
    dissect(link_type, bytes, &mut layers);
    layers
}

/// Whether a packet that was cut short shows nothing else than the whole one, and no more: only the last header may lack what lay
/// behind the cut.
fn is_part(cut: &Layers, whole: &Layers) -> bool {
    if cut.tcp_flags().is_some_and(|flags| whole.tcp_flags() != Some(flags)) {
        return false;
    }
    let Some((last, before)) = cut.all().split_last() else { return true };
    let Some(of_whole) = whole.all().get(..cut.all().len()) else { return false };
    let last_agrees = match (*last, of_whole[before.len()]) {
        (Layer::Ip(cut), Layer::Ip(whole)) => {
            (cut.source, cut.destination) == (whole.source, whole.destination)
                && (cut.protocol.is_none() || cut == whole)
        }
        (cut, whole) => cut == whole,
    };
    last_agrees && before == &of_whole[..before.len()]
}

/// Every link type that is known, and some that are not.
fn link_type() -> impl Strategy<Value = LinkType> {
    let known = [0_u16, 1, 12, 14, 101, 108, 113, 147, 228, 229, 276, 9999];
    proptest::sample::select(known.to_vec()).prop_map(LinkType)
}

proptest! {
    #[test]
    fn headers_that_were_stacked_come_back_in_order(stack in stack()) {
        let layers = dissected(stack.link.link_type(), &stack.bytes());
        prop_assert_eq!(layers.all(), stack.layers());
        prop_assert_eq!(layers.end(), End::Payload);
    }

    #[test]
    fn a_packet_cut_at_any_length_shows_a_part_of_its_layers(stack in stack()) {
        let bytes = stack.bytes();
        let whole = dissected(stack.link.link_type(), &bytes);
        for length in 0..bytes.len() {
            let cut = dissected(stack.link.link_type(), &bytes[..length]);
            prop_assert!(is_part(&cut, &whole), "{length} bytes: {cut:?} of {whole:?}");
            let is_whole = cut.all() == whole.all();
            prop_assert!(is_whole || cut.end() == End::Truncated, "{length} bytes: {cut:?}");
        }
    }

    #[test]
    fn padding_behind_a_packet_adds_nothing(stack in stack(), padding in vec(any::<u8>(), 0..64)) {
        let padded = [stack.bytes(), padding].concat();
        let layers = dissected(stack.link.link_type(), &padded);
        prop_assert_eq!(layers.all(), stack.layers());
    }

    #[test]
    fn any_bytes_have_layers_and_cutting_them_adds_none(
        link_type in link_type(),
        bytes in vec(any::<u8>(), 0..200),
    ) {
        let whole = dissected(link_type, &bytes);
        prop_assert!(whole.all().len() <= LAYERS_MAX);
        for length in 0..bytes.len() {
            let cut = dissected(link_type, &bytes[..length]);
            prop_assert!(is_part(&cut, &whole), "{length} bytes: {cut:?} of {whole:?}");
        }
    }

    #[test]
    fn a_packet_with_any_changed_bytes_is_read_to_some_end(
        stack in stack(),
        changes in vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = stack.bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let layers = dissected(stack.link.link_type(), &bytes);
        if let Some((flow, direction)) = layers.flow() {
            let ip = layers.ips().next_back().expect("it has a flow").0;
            let [(source, _), (destination, _)] = flow.ends(direction);
            prop_assert_eq!((source, destination), (ip.source, ip.destination));
            let named = community_id(&flow, 0).map(|id| id.to_string());
            prop_assert!(named.is_none_or(|id| id.len() == 30));
        }
    }
}

#[test]
fn a_stack_that_is_too_deep_is_cut_and_says_so() {
    let mut bytes = vec![0; 12];
    for id in 0..=LAYERS_MAX as u8 {
        bytes.extend([0x81, 0, 0, id]);
    }
    bytes.extend([8, 0]);
    let layers = dissected(LinkType::ETHERNET, &bytes);
    assert_eq!((layers.all().len(), layers.end()), (LAYERS_MAX, End::TooDeep));
    assert!(layers.vlans().eq(0..LAYERS_MAX as u16));
}

#[test]
fn extension_headers_without_end_are_given_up_and_the_addresses_are_known() {
    let mut bytes = vec![0x60, 0, 0, 0, 0, 0, 60, 64];
    bytes.extend([7; 32]);
    bytes.extend([60, 0, 1, 4, 0, 0, 0, 0].repeat(1000));
    let layers = dissected(LinkType::RAW_IP, &bytes);
    assert_eq!((layers.all().len(), layers.end()), (1, End::TooDeep));
    assert_eq!(layers.flow(), None);
    let (ip, _) = layers.ips().next().expect("its header is whole");
    assert_eq!(ip.source.to_string(), "707:707:707:707:707:707:707:707");
}

#[test]
fn an_authentication_header_is_passed_in_both_versions_of_ip() {
    let authentication = [&[6, 4][..], &[0; 22]].concat();
    let tcp = [0, 80, 0, 81, 0, 0, 0, 0];
    let v4 = [&[0x45, 0, 0, 0, 0, 1, 0, 0, 64, 51, 0, 0][..], &[9; 8], &authentication, &tcp];
    let v6 = [&[0x60, 0, 0, 0, 0, 32, 51, 64][..], &[9; 32], &authentication, &tcp];
    for packet in [v4.concat(), v6.concat()] {
        let layers = dissected(LinkType::RAW_IP, &packet);
        assert_eq!(layers.all()[1..], [Layer::Ports(80, 81)]);
        assert_eq!(layers.ips().next().and_then(|(ip, _)| ip.protocol), Some(6));
    }
}

#[test]
fn an_ip_header_that_contradicts_itself_is_malformed() {
    let sound = [0x45, 0, 0, 20, 0, 1, 0, 0, 64, 17, 0, 0, 9, 9, 9, 9, 8, 8, 8, 8];
    let changed = |at: usize, byte: u8| {
        let mut packet = sound;
        packet[at] = byte;
        dissected(LinkType(228), &packet)
    };
    assert_eq!((changed(8, 63).all().len(), changed(8, 63).end()), (1, End::Truncated));
    for (at, byte) in [(0, 0x44), (0, 0x55), (3, 19)] {
        let layers = changed(at, byte);
        assert_eq!((layers.all(), layers.end()), (&[][..], End::Malformed), "{at} {byte}");
    }
}
