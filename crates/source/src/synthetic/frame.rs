//! A synthetic frame, byte by byte: what the generator writes and the checker expects.
//!
//! ```text
//! +0   14  Ethernet: to 02:00:00:00:00:02, from 02:00:00:01:QQ:QQ, IPv4
//! +14  20  IPv4: 198.18.Q.Q to 198.19.Q.Q (RFC 2544, for benchmarks), don't fragment, id 0, right checksum
//! +34   8  UDP: port 49152 to 9 (discard), checksum 0 (none)
//! +42   2  queue, big endian
//! +44   8  sequence number within the queue, big endian
//! +52      pattern: a slice of a table that the seed makes, where queue and sequence number choose it
//! -8    8  seal: a hash of seed, queue and sequence number, big endian
//! ```
//! The seal at the end beside the sequence number at the start shows a frame put together from two. There
//! is no frame check sequence.

/// Where the pattern starts.
pub(super) const HEAD_BYTES: usize = 52;
const QUEUE_AT: usize = 42;
const SEQUENCE_AT: usize = 44;
const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const SEAL_BYTES: usize = 8;

/// The shortest frame: Ethernet's 64 bytes less the check sequence, which is just the head and the seal.
pub const FRAME_BYTES_MIN: u16 = 60;
const _: () = assert!(FRAME_BYTES_MIN as usize == HEAD_BYTES + SEAL_BYTES);

/// Slices of the table start at so many places, one cache line apart: 128 KiB, which with the longest
/// frame behind it stays in a core's second-level cache.
const PLACES: usize = 2048;
const PLACE_BYTES: usize = 64;

/// The pattern's bytes and the frames laid in it. A frame is made by writing its head and seal over the
/// table and is undone by restoring these, so that its long middle is never copied.
pub(super) struct Table {
    seed: u64,
    pristine: Vec<u8>,
    frames: Vec<u8>,
}

/// The head of every frame of one queue and size, but for the sequence number.
#[derive(Clone, Copy)]
pub(super) struct Head([u8; HEAD_BYTES]);

impl Table {
    /// For frames up to `frame_bytes_max`.
    pub(super) fn new(seed: u64, frame_bytes_max: u16) -> Self {
        let length = PLACES * PLACE_BYTES + usize::from(frame_bytes_max);
        let mut state = mix(seed ^ 0x7461_6b65);
        let mut pristine = Vec::with_capacity(length + 8);
        while pristine.len() < length {
            state = state.wrapping_add(GOLDEN);
            pristine.extend_from_slice(&mix(state).to_le_bytes());
        }
        Self { seed, frames: pristine.clone(), pristine }
    }

    /// Lets `look` see one frame of `length` bytes.
    #[inline]
    pub(super) fn with_frame<T>(
        &mut self,
        head: &Head,
        queue: u16,
        sequence: u64,
        length: u16,
        look: impl FnOnce(&[u8]) -> T,
    ) -> T {
        let (key, place) = self.place(queue, sequence);
        let range = place..place + usize::from(length);
        let frame = &mut self.frames[range.clone()];
        let mut start = head.0;
        start[SEQUENCE_AT..].copy_from_slice(&sequence.to_be_bytes());
        frame[..HEAD_BYTES].copy_from_slice(&start);
        let seal_at = frame.len() - SEAL_BYTES;
        frame[seal_at..].copy_from_slice(&mix(key).to_be_bytes());
        let result = look(frame);
        let pristine = &self.pristine[range];
        frame[..HEAD_BYTES].copy_from_slice(&pristine[..HEAD_BYTES]);
        frame[seal_at..].copy_from_slice(&pristine[seal_at..]);
        result
    }

    /// What the seal is made from, and where the frame's slice of the table starts.
    #[inline]
    fn place(&self, queue: u16, sequence: u64) -> (u64, usize) {
        let key = self.seed ^ mix(u64::from(queue).wrapping_add(1)) ^ sequence.wrapping_mul(GOLDEN);
        // The upper bits of the product: neighbours lie apart, and each place has its turn.
        (key, (key >> 32) as usize % PLACES * PLACE_BYTES)
    }

    /// The first byte of a frame, or of what is left of it, that is not as it should be. `data` must at
    /// least hold the head, and `original_length` at least [`FRAME_BYTES_MIN`].
    pub(super) fn first_difference(
        &mut self,
        head: &Head,
        (queue, sequence): (u16, u64),
        data: &[u8],
        original_length: u16,
    ) -> Option<usize> {
        self.with_frame(head, queue, sequence, original_length, |frame| {
            if frame.get(..data.len()) == Some(data) {
                return None;
            }
            let place = frame.iter().zip(data).position(|(right, there)| right != there);
            Some(place.unwrap_or(frame.len()))
        })
    }
}

impl Head {
    /// For frames of `length` bytes, [`FRAME_BYTES_MIN`] at least.
    pub(super) fn new(queue: u16, length: u16) -> Self {
        let [high, low] = queue.to_be_bytes();
        let ip_length = length - ETHERNET_BYTES as u16;
        let mut head = [0; HEAD_BYTES];
        head[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
        head[6..12].copy_from_slice(&[2, 0, 0, 1, high, low]);
        head[12..14].copy_from_slice(&[0x08, 0x00]);
        head[14..16].copy_from_slice(&[0x45, 0]);
        head[16..18].copy_from_slice(&ip_length.to_be_bytes());
        head[20..22].copy_from_slice(&[0x40, 0]);
        head[22..24].copy_from_slice(&[64, 17]);
        head[26..30].copy_from_slice(&[198, 18, high, low]);
        head[30..34].copy_from_slice(&[198, 19, high, low]);
        let checksum = internet_checksum(&head[14..34]);
        head[24..26].copy_from_slice(&checksum.to_be_bytes());
        head[34..36].copy_from_slice(&49_152u16.to_be_bytes());
        head[36..38].copy_from_slice(&9u16.to_be_bytes());
        head[38..40].copy_from_slice(&(ip_length - IP_BYTES as u16).to_be_bytes());
        head[QUEUE_AT..SEQUENCE_AT].copy_from_slice(&queue.to_be_bytes());
        Self(head)
    }
}

/// Queue and sequence number of a frame, if enough of it is there.
pub(super) fn identify(data: &[u8]) -> Option<(u16, u64)> {
    let queue = data.get(QUEUE_AT..)?.first_chunk()?;
    let sequence = data.get(SEQUENCE_AT..)?.first_chunk()?;
    Some((u16::from_be_bytes(*queue), u64::from_be_bytes(*sequence)))
}

/// RFC 1071.
fn internet_checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 =
        bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's finalizer (Steele, Lea and Flood, OOPSLA 2014): every bit in depends on every bit out.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(table: &mut Table, queue: u16, sequence: u64, length: u16) -> Vec<u8> {
        table.with_frame(&Head::new(queue, length), queue, sequence, length, <[u8]>::to_vec)
    }

    #[test]
    fn making_a_frame_leaves_no_trace_in_the_table() {
        let mut table = Table::new(7, 1514);
        let first = frame(&mut table, 3, 5, 1514);
        for sequence in 0..10_000 {
            frame(&mut table, 3, sequence, 60 + (sequence % 1455) as u16);
        }
        assert_eq!(frame(&mut table, 3, 5, 1514), first);
        assert_eq!(table.frames, table.pristine);
    }

    #[test]
    fn frames_differ_by_seed_queue_and_sequence_number() {
        let first = frame(&mut Table::new(1, 1514), 0, 0, 1514);
        for (seed, queue, sequence) in [(2, 0, 0), (1, 1, 0), (1, 0, 1), (1, 0, PLACES as u64)] {
            let other = frame(&mut Table::new(seed, 1514), queue, sequence, 1514);
            assert_ne!(first[HEAD_BYTES..1506], other[HEAD_BYTES..1506], "pattern");
            assert_ne!(first[1506..], other[1506..], "seal");
        }
    }

    #[test]
    fn the_headers_are_right_and_the_checksum_cancels() {
        let frame = frame(&mut Table::new(1, 100), 258, 9, 100);
        assert_eq!(internet_checksum(&frame[14..34]), 0);
        assert_eq!(frame[16..18], 86u16.to_be_bytes());
        assert_eq!(frame[38..40], 66u16.to_be_bytes());
        assert_eq!(identify(&frame), Some((258, 9)));
        assert_eq!(identify(&frame[..51]), None);
    }
}
