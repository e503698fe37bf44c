//! Packets of which only the headers are kept: they are dissected to the same layers, and are no longer than they must be.

use format::LinkType;
use longtake_search::{
    End, Fragments, Layer, Layers, OTHER_BYTES, community_id, dissect, dissect_headers, flow_to_cut,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::stack::stack;

fn dissected(link_type: LinkType, bytes: &[u8]) -> Layers {
    let mut layers = Layers::new();
    dissect(link_type, bytes, &mut layers);
    layers
}

/// How many bytes of a packet are headers. Fails unless the headers alone show the same as the packet.
#[track_caller]
fn headers(link_type: LinkType, bytes: &[u8]) -> usize {
    let mut layers = Layers::new();
    let length = dissect_headers(link_type, bytes, &mut layers);
    let (whole, sliced) = (dissected(link_type, bytes), dissected(link_type, &bytes[..length]));
    assert_eq!((layers.all(), layers.end()), (whole.all(), whole.end()));
    assert_eq!((sliced.all(), sliced.end()), (whole.all(), whole.end()), "{length} bytes");
    let again = dissect_headers(link_type, &bytes[..length], &mut layers);
    assert_eq!(again, length, "headers of headers");
    length
}

const LINK_TYPES: [u16; 12] = [0, 1, 12, 14, 101, 108, 113, 147, 228, 229, 276, 9999];

proptest! {
    #[test]
    fn headers_alone_show_the_same_layers_and_flow_as_the_whole_packet(
        stack in stack(), payload in vec(any::<u8>(), 0..300),
    ) {
        let bytes = [stack.bytes(), payload].concat();
        let length = headers(stack.link.link_type(), &bytes);
        let [whole, sliced] =
            [&bytes[..], &bytes[..length]].map(|bytes| dissected(stack.link.link_type(), bytes));
        let id = |layers: &Layers| layers.flow().and_then(|(flow, _)| community_id(&flow, 0));
        prop_assert_eq!(id(&sliced), id(&whole));
        prop_assert_eq!(flow_to_cut(&sliced), flow_to_cut(&whole));
    }

    #[test]
    fn any_bytes_and_their_headers_show_the_same(
        link_type in proptest::sample::select(&LINK_TYPES[..]),
        stack in stack(),
        any_bytes in vec(any::<u8>(), 0..200),
        changes in vec((any::<proptest::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<proptest::sample::Index>(),
    ) {
        headers(LinkType(link_type), &any_bytes);
        let mut bytes = stack.bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        headers(stack.link.link_type(), &bytes);
        headers(stack.link.link_type(), &bytes[..cut.index(bytes.len())]);
    }
}

/// An IPv4 packet behind an Ethernet header: with this protocol, this word of fragmentation, and 400 bytes of it.
fn ipv4(protocol: u8, fragment: u16, begin: &[u8]) -> Vec<u8> {
    let mut packet = vec![2; 12];
    packet.extend([8, 0, 0x45, 0]);
    packet.extend(420_u16.to_be_bytes());
    packet.extend([0, 9]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(begin);
    packet.resize(34 + 400, 0x5a);
    packet
}

#[test]
fn each_transport_protocol_keeps_its_whole_header_and_nothing_of_its_payload() {
    // Behind the 34 bytes of Ethernet and IPv4.
    let tcp = |words: u8| [&[0, 80, 0, 81][..], &[0; 8], &[words << 4, 0x10]].concat();
    let dccp = [0, 80, 0, 81, 6, 0];
    for (name, protocol, begin, expected) in [
        ("TCP", 6, &tcp(5)[..], 20),
        ("TCP with options", 6, &tcp(15)[..], 60),
        ("TCP with an impossible length", 6, &tcp(0)[..], 20),
        ("UDP", 17, &[0, 80, 0, 81], 8),
        ("UDP to the port of VXLAN that is not VXLAN", 17, &[0, 80, 0x12, 0xb5, 0, 0, 0, 0, 0], 20),
        ("UDP-Lite", 136, &[0, 80, 0, 81], 8),
        ("SCTP", 132, &[0, 80, 0, 81], 12),
        ("DCCP", 33, &dccp, 24),
        ("ICMP", 1, &[8, 0], 8),
        ("ESP, which is not looked into", 50, &[1, 2, 3, 4], 8),
        ("GRE of version 1, which is not looked into", 47, &[0, 1, 0, 0], 12),
    ] {
        let packet = ipv4(protocol, 0, begin);
        assert_eq!(headers(LinkType::ETHERNET, &packet), 34 + expected, "{name}");
        // A header that is cut short is kept as far as it goes.
        let short = 34 + expected.min(7) - 3;
        assert_eq!(headers(LinkType::ETHERNET, &packet[..short]), short, "{name}");
    }
}

#[test]
fn fragments_keep_the_headers_that_they_have() {
    let (first, later) = (ipv4(6, 0x2000, &[0, 80, 0, 81]), ipv4(6, 0x0030, &[]));
    assert_eq!(headers(LinkType::ETHERNET, &first), 34 + 20);
    assert_eq!(headers(LinkType::ETHERNET, &later), 34);
    // The later one gets the first one's ports, sliced as whole.
    let mut fragments = Fragments::new(8);
    let mut layers = Layers::new();
    dissect(LinkType::ETHERNET, &first[..54], &mut layers);
    fragments.resolve(&mut layers);
    dissect(LinkType::ETHERNET, &later[..34], &mut layers);
    assert_eq!(layers.end(), End::Fragment);
    fragments.resolve(&mut layers);
    assert!(layers.all().ends_with(&[Layer::Ports(80, 81)]));
}

#[test]
fn packets_without_ip_keep_a_stated_number_of_bytes_and_broken_ones_everything() {
    let frame = |kind: u16| {
        let mut frame = [&[2; 12][..], &kind.to_be_bytes()].concat();
        frame.resize(1000, 1);
        frame
    };
    assert_eq!(OTHER_BYTES, 128);
    for kind in [0x0806, 0x88cc, 0x0100] {
        assert_eq!(headers(LinkType::ETHERNET, &frame(kind)), 128, "{kind:#x}");
    }
    assert_eq!(headers(LinkType::ETHERNET, &frame(0x88cc)[..60]), 60);
    assert_eq!(headers(LinkType::USER0, &[7; 1000]), 128);
    // An IPv4 header of version 0.
    assert_eq!(headers(LinkType::ETHERNET, &frame(0x0800)), 1000);
}

#[test]
fn only_whole_packets_of_a_flow_count_as_its_own() {
    let flow = |packet: &[u8]| flow_to_cut(&dissected(LinkType::ETHERNET, packet));
    let ports = [0, 80, 0, 81];
    let found = flow(&ipv4(6, 0, &ports)).expect("it has a flow");
    assert_eq!((found.ports, found.protocol), (Some((80, 81)), 6));
    assert_eq!(flow(&ipv4(50, 0, &[])).map(|flow| flow.ports), Some(None), "ESP has no ports");
    for (why, packet) in [
        ("a first fragment", &ipv4(6, 0x2000, &ports)[..]),
        ("a later fragment", &ipv4(6, 0x0030, &[])),
        ("ports that are cut off", &ipv4(6, 0, &ports)[..36]),
        ("no IP", &[2; 100]),
    ] {
        assert_eq!(flow(packet), None, "{why}");
    }
}
