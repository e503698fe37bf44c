//! A segment of generated traffic, as a recording fills one.

use std::hint::black_box;

use format::flow_index::column;
use source::generator::Generator;
use source::synthetic::Sizes;
use source::traffic::{Options, Traffic};

/// Bytes of the segment.
pub const SEGMENT: u64 = 256 << 20;

/// Packets of a segment, one behind the other, with the column of each.
pub struct Segment {
    bytes: Vec<u8>,
    packets: Vec<(usize, usize, u32)>,
}

impl Segment {
    /// What this traffic fills a segment with, some way into it.
    pub fn of(sizes: Sizes) -> Self {
        let options = Options { sizes, ..Options::default() };
        let mut traffic = Traffic::open(&options).unwrap().remove(0);
        for sequence in 0..2_000_000 {
            traffic.packet(sequence, |packet| black_box(packet.len()));
        }
        let (mut bytes, mut packets, mut offset) = (Vec::new(), Vec::new(), 0);
        while offset < SEGMENT - 300_000 {
            traffic.packet(0, |packet| {
                packets.push((bytes.len(), packet.len(), column(offset, SEGMENT)));
                bytes.extend_from_slice(packet);
                // As an enhanced packet block.
                offset += 32 + packet.len().next_multiple_of(4) as u64;
            });
        }
        Self { bytes, packets }
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Packets with their columns, in order.
    pub fn packets(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let packet = |&(at, length, column)| (column, &self.bytes[at..at + length]);
        self.packets.iter().map(packet)
    }
}
