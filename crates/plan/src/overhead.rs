//! What recording adds to packets, exactly: one chunk is really packed, by the code that packs all of them, and laid into a
//! segment until it is full.

mod packed;

use format::chunk::packet_block_max;
use format::index;
use format::layout::PAGE_BYTES;
use format::{Layout, LinkType};
use serde::Serialize;

use crate::requirement::Frames;
use packed::Contents;

/// A packer seals a chunk at this age though it isn't full: three quarters of the default flush interval of a second.
const SEALED_AFTER_S: f64 = 0.75;

/// What a full chunk and a full segment hold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Overhead {
    /// Packets in a chunk.
    pub packets: u32,
    /// Their bytes.
    pub packet_bytes: u64,
    /// Bytes before the first packet block: the section's header and the interface's description.
    pub head_bytes: u64,
    /// Bytes of the packet blocks.
    pub block_bytes: u64,
    /// Bytes of padding behind them, to whole pages.
    pub padding_bytes: u64,
    /// Bytes of the chunk.
    pub chunk_bytes: u64,
    /// The longest that a chunk may be: the size of a buffer.
    pub chunk_max_bytes: u64,
    /// Chunks in a segment.
    pub chunks: u64,
    /// Bytes of the index that are written at its end.
    pub index_bytes: u64,
    /// Bytes of the segment.
    pub segment_bytes: u64,
}

/// A block or packet too long for a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The longest that fits, in bytes.
    pub most_bytes: u32,
}

impl Overhead {
    /// Bytes of chunks for each byte that is written, indexes included.
    pub fn share_of_chunks(&self) -> f64 {
        let chunks = self.chunks * self.chunk_bytes;
        chunks as f64 / (chunks + self.index_bytes) as f64
    }

    /// Packs frames, of each of which at most the first `slice` bytes are kept, into a chunk until it is full, or as many as come in
    /// the time after which it is sealed, at so many bytes of packets a second.
    ///
    /// # Errors
    /// [`TooLong`] if a frame doesn't fit in a chunk.
    pub fn of(
        frames: &Frames,
        slice: Option<u32>,
        layout: &Layout,
        bytes_per_s: f64,
    ) -> Result<Self, TooLong> {
        let kept = frames.kept();
        let longest = kept.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0);
        let longest = longest.min(slice.unwrap_or(u32::MAX));
        // The block's header and end, and what rounds it to words.
        let most = packet_block_max(layout.chunk_max) - format::pcapng::PACKET_OVERHEAD_BYTES;
        let most_bytes = most as u32 / 4 * 4;
        if longest > most_bytes {
            return Err(TooLong { most_bytes });
        }
        let sealed_at = (bytes_per_s * SEALED_AFTER_S).ceil() as u64;
        // No chunk holds as much. With this all rates that fill chunks have the same chunk, which is packed once.
        let full_at = match slice {
            None => u64::from(layout.chunk_max),
            Some(_) => {
                let most = kept.iter().map(|(bytes, _)| u64::from(*bytes)).max().unwrap_or(0);
                u64::from(layout.chunk_max) / format::pcapng::PACKET_OVERHEAD_BYTES as u64 * most
            }
        };
        let link_type = match frames {
            Frames::Ethernet(_) => LinkType::ETHERNET,
            Frames::Raw { .. } => LinkType::USER0,
        };
        let (sealed, packet_bytes) = packed::chunk(Contents {
            link_type,
            mix: kept,
            longest,
            chunk: (layout.chunk_min, layout.chunk_max),
            most_bytes: sealed_at.min(full_at),
        });
        let (mut used, mut chunks) = (0, 0);
        while layout.fits(used, chunks, sealed.length) {
            used += u64::from(sealed.length);
            chunks += 1;
        }
        Ok(Self {
            packets: sealed.packets,
            packet_bytes,
            head_bytes: u64::from(sealed.packets_start),
            block_bytes: u64::from(sealed.packets_end - sealed.packets_start),
            padding_bytes: u64::from(sealed.length - sealed.packets_end),
            chunk_bytes: u64::from(sealed.length),
            chunk_max_bytes: u64::from(layout.chunk_max),
            chunks,
            index_bytes: PAGE_BYTES + index::tail_length(chunks),
            segment_bytes: layout.segment_bytes,
        })
    }

    /// Bytes written to drives for each byte of packets.
    pub fn written_per_byte(&self) -> f64 {
        (self.chunks * self.chunk_bytes + self.index_bytes) as f64 / self.packet_bytes_of_segment()
    }

    /// Bytes of drives taken up for each byte of packets.
    pub fn space_per_byte(&self) -> f64 {
        self.segment_bytes as f64 / self.packet_bytes_of_segment()
    }

    fn packet_bytes_of_segment(&self) -> f64 {
        (self.chunks * self.packet_bytes) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use format::layout::CHUNK_MAX_DEFAULT;
    use format::pcapng::PACKET_OVERHEAD_BYTES;
    use format::section::HEADER_BYTES;

    fn layout() -> Layout {
        Layout::default_for(1 << 40).unwrap()
    }

    fn ethernet(bytes: u32) -> Frames {
        Frames::Ethernet(vec![(bytes, 1)])
    }

    #[test]
    fn a_chunk_of_large_frames_adds_what_the_format_says_by_hand() {
        let of = Overhead::of(&ethernet(1518), None, &layout(), 12.5e9).unwrap();
        // 1514 bytes are padded to 1516, and a block adds 32.
        let block = 1516 + PACKET_OVERHEAD_BYTES as u64;
        assert_eq!(of.block_bytes, u64::from(of.packets) * block);
        assert_eq!(of.packet_bytes, u64::from(of.packets) * 1514);
        // Section header, and an interface of 8 + 12 fixed bytes with options name (8), speed (12), resolution (8), end (4).
        assert_eq!(of.head_bytes, HEADER_BYTES as u64 + 20 + 8 + 12 + 8 + 4);
        assert_eq!(of.chunk_bytes, of.head_bytes + of.block_bytes + of.padding_bytes);
        assert!(of.chunk_bytes.is_multiple_of(PAGE_BYTES));
        // Not one packet more would have fitted beside the room for statistics.
        assert!(of.chunk_bytes + block + 8192 > u64::from(CHUNK_MAX_DEFAULT));
        assert_eq!(of.chunks, 64);
        let written = (64 * of.chunk_bytes + of.index_bytes) as f64 / (64 * of.packet_bytes) as f64;
        assert_eq!(of.written_per_byte(), written);
        // 34 of 1514 bytes are 2.2 %.
        assert!((1.0225..1.0235).contains(&written), "{written}");
        assert!(of.space_per_byte() >= written);
    }

    #[test]
    fn small_frames_cost_half_as_much_again_and_raw_blocks_next_to_nothing() {
        let small = Overhead::of(&ethernet(64), None, &layout(), 12.5e9).unwrap();
        assert!((small.written_per_byte() - 92.0 / 60.0).abs() < 0.002);
        let raw = Frames::Raw { block_bytes: 1 << 20 };
        let raw = Overhead::of(&raw, None, &layout(), 12.5e9).unwrap();
        assert_eq!(raw.packets, 3);
        assert!(raw.written_per_byte() < 1.002, "{}", raw.written_per_byte());
        // But a fourth block doesn't fit in a chunk, and the segment is filled with shorter ones all the same.
        assert!(raw.space_per_byte() < 1.02, "{}", raw.space_per_byte());
    }

    #[test]
    fn a_slice_takes_the_space_of_what_is_kept_and_counts_whole_packets() {
        let sliced =
            |frame, slice| Overhead::of(&ethernet(frame), Some(slice), &layout(), 12.5e9).unwrap();
        // A block of 160 bytes for each 1514.
        let of = sliced(1518, 128);
        assert_eq!(of.block_bytes, u64::from(of.packets) * 160);
        assert_eq!(of.packet_bytes, u64::from(of.packets) * 1514);
        assert!((of.written_per_byte() - 160.0 / 1514.0).abs() < 0.001, "{of:?}");
        let whole = Overhead::of(&ethernet(64), None, &layout(), 12.5e9).unwrap();
        assert_eq!(sliced(64, 128), whole, "nothing is left out of shorter packets");
        let mix = Frames::Ethernet(crate::requirement::IMIX.to_vec());
        let of = Overhead::of(&mix, Some(64), &layout(), 12.5e9).unwrap();
        let (blocks, packets) = (7.0 * 92.0 + 5.0 * 96.0, 7.0 * 60.0 + 4.0 * 590.0 + 1514.0);
        assert!((of.block_bytes as f64 / of.packet_bytes as f64 - blocks / packets).abs() < 1e-3);
    }

    #[test]
    fn a_mix_costs_what_its_frames_cost_by_their_number() {
        let mix = Frames::Ethernet(crate::requirement::IMIX.to_vec());
        let of = Overhead::of(&mix, None, &layout(), 12.5e9).unwrap();
        let blocks = 7.0 * 92.0 + 4.0 * (592.0 + 32.0) + (1516.0 + 32.0);
        let kept = 7.0 * 60.0 + 4.0 * 590.0 + 1514.0;
        assert!((of.block_bytes as f64 / of.packet_bytes as f64 - blocks / kept).abs() < 1e-3);
    }

    #[test]
    fn a_slow_source_writes_chunks_that_are_not_full() {
        let of = Overhead::of(&ethernet(1518), None, &layout(), 100e3).unwrap();
        // 75 kB in three quarters of a second.
        assert_eq!(of.packets, 50);
        assert!(of.written_per_byte() > 1.05);
        assert!(of.chunks > 64);
    }

    #[test]
    fn chunks_are_full_at_every_rate_that_fills_them() {
        let mix = Frames::Ethernet(crate::requirement::IMIX.to_vec());
        for frames in [ethernet(64), ethernet(1518), ethernet(9018), mix] {
            for slice in [None, Some(1), Some(64), Some(128)] {
                let at = |rate| Overhead::of(&frames, slice, &layout(), rate).unwrap();
                let full = at(1e18);
                let rate = full.packet_bytes as f64 / SEALED_AFTER_S;
                assert_eq!(at(rate * 1.01), full, "{frames:?}, {slice:?}");
                assert_ne!(at(rate * 0.98), full, "{frames:?}, {slice:?}");
            }
        }
    }

    #[test]
    fn a_block_longer_than_a_chunk_is_refused_with_the_longest_that_fits() {
        let block = |block_bytes| Overhead::of(&Frames::Raw { block_bytes }, None, &layout(), 1e9);
        let TooLong { most_bytes } = block(8 << 20).unwrap_err();
        assert_eq!(block(most_bytes).unwrap().packets, 1);
        assert_eq!(block(most_bytes + 1), Err(TooLong { most_bytes }));
    }
}
