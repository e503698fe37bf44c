//! How fast packets are entered into a flow index, how large it is, and what other structures would take for the same keys.

use std::hint::black_box;
use std::time::Instant;

use base::ByteSize;
use format::LinkType;
use format::flow_index::{COLUMNS, column};
use format::index::Footer;
use longtake_search::{KeyKind, SegmentKeys};
use source::generator::Generator;
use source::synthetic::Sizes;
use source::traffic::{Options, Traffic};

const SEGMENT: u64 = 256 << 20;

/// Packets of a segment, one behind the other, with the column of each.
struct Segment {
    bytes: Vec<u8>,
    packets: Vec<(usize, usize, u32)>,
}

impl Segment {
    /// What this traffic fills a segment with, some way into it.
    fn of(sizes: Sizes) -> Self {
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

    fn gather(&self, keys: &mut SegmentKeys) {
        for &(at, length, column) in &self.packets {
            keys.add(column, LinkType::ETHERNET, &self.bytes[at..at + length]);
        }
    }
}

fn footer() -> Footer {
    Footer {
        array: uuid::Uuid::from_u128(1),
        entries: COLUMNS,
        entries_crc: 5,
        first_sequence: 1,
        last_sequence: 64,
        first_ns: 1,
        last_ns: 2,
        section_bytes: 8 << 20,
        member: 0,
    }
}

fn main() {
    for (name, sizes) in
        [("imix", Sizes::Imix), ("1500 B", Sizes::Fixed(1500)), ("64 B", Sizes::Fixed(64))]
    {
        let segment = Segment::of(sizes);
        let mut keys = SegmentKeys::default();
        let mut best = f64::MAX;
        for _ in 0..3 {
            keys.clear();
            let start = Instant::now();
            segment.gather(&mut keys);
            best = best.min(start.elapsed().as_secs_f64());
        }
        let count = segment.packets.len() as f64;
        println!(
            "{name}: {count} packets in a segment, entered at {:.1} M packets/s",
            count / best / 1e6
        );
        let start = Instant::now();
        for pages_max in [1 << 10, 128, 64, 32] {
            keys.clear();
            segment.gather(&mut keys);
            let bytes = keys.finish(&footer(), [1; 16], pages_max);
            let Some(bytes) = bytes else { continue };
            let kinds = u16::from_le_bytes([bytes[10], bytes[11]]);
            let kept = KeyKind::ALL.iter().filter(|kind| kinds & kind.bit() != 0);
            let kept: Vec<String> = kept.map(ToString::to_string).collect();
            println!(
                "  at most {}: {}, {:.3} % of the segment: {}",
                ByteSize(pages_max as u64 * 4096),
                ByteSize(bytes.len() as u64),
                bytes.len() as f64 / SEGMENT as f64 * 100.0,
                kept.join(", ")
            );
        }
        println!("  in {:.1} s", start.elapsed().as_secs_f64());
        keys.clear();
        segment.gather(&mut keys);
        for (kind, count, pairs) in keys.counts() {
            println!("  {kind}: {count} keys, {pairs} keys and columns");
        }
    }
}
