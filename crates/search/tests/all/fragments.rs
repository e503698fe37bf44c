//! Later fragments get the ports of the first one.

use format::LinkType;
use longtake_search::{End, Fragments, Layer, Layers, Part, Transport, dissect};

/// An IPv4 fragment of a UDP datagram; offsets count 8 bytes.
fn v4(id: u16, offset: u16, more: bool) -> Vec<u8> {
    let [a, b] = id.to_be_bytes();
    let [c, d] = (offset | u16::from(more) << 13).to_be_bytes();
    let header = [0x45, 0, 0, 36, a, b, c, d, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&header[..], &[0x13, 0x88, 0, 53, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]].concat()
}

fn v6(id: u32, offset: u16, more: bool) -> Vec<u8> {
    let header = [&[0x60, 0, 0, 0, 0, 24, 44, 64][..], &[7; 16], &[8; 16]].concat();
    let place = (offset << 3 | u16::from(more)).to_be_bytes();
    let fragment = [&[17, 0][..], &place, &id.to_be_bytes()].concat();
    [&header[..], &fragment, &[0x13, 0x88, 0, 53, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]].concat()
}

fn resolved(fragments: &mut Fragments, packet: &[u8]) -> Layers {
    let mut layers = Layers::new();
    dissect(LinkType::RAW_IP, packet, &mut layers);
    fragments.resolve(&mut layers);
    layers
}

#[test]
fn a_later_fragment_gets_the_ports_of_the_first_and_their_flow_is_the_same() {
    for fragment in
        [(|offset, more| v4(9, offset, more)) as fn(u16, bool) -> Vec<u8>, |offset, more| {
            v6(9, offset, more)
        }]
    {
        let mut fragments = Fragments::new(10);
        let early = resolved(&mut fragments, &fragment(2, true));
        assert_eq!((early.all().len(), early.end()), (1, End::Fragment));
        assert_eq!(early.ips().next().map(|(_, ports)| ports), Some(Transport::Unknown));
        let first = resolved(&mut fragments, &fragment(0, true));
        assert_eq!(first.all()[1], Layer::Ports(5000, 53));
        for later in [fragment(1, true), fragment(2, false)] {
            let later = resolved(&mut fragments, &later);
            let part = later.ips().next().and_then(|(ip, _)| ip.fragment).map(|part| part.part);
            assert_eq!(part, Some(Part::Later));
            assert_eq!(later.all()[1], Layer::Ports(5000, 53));
            assert_eq!(later.flow(), first.flow());
        }
        let whole = resolved(&mut fragments, &fragment(0, false));
        assert_eq!(whole.ips().next().map(|(ip, _)| ip.fragment), Some(None));
        assert_eq!(fragments.len(), 1);
    }
}

#[test]
fn the_datagram_that_came_first_is_forgotten_first() {
    let mut fragments = Fragments::new(3);
    for id in [1, 2, 3, 1, 4] {
        resolved(&mut fragments, &v4(id, 0, true));
        assert!(fragments.len() <= 3);
    }
    let mut known = |id| resolved(&mut fragments, &v4(id, 3, false)).all().len() == 2;
    // Datagram 1 came again after 3.
    assert_eq!([1, 2, 3, 4].map(&mut known), [true, false, true, true]);
}
