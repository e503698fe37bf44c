//! One chunk, really packed. Plans ask for the same chunk for each drive, and packing it takes most of the time that they need: what
//! was packed last is remembered.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use base::Timestamp;
use format::{ChunkSummary, ChunkWriter, Interface, LinkType, Packet};

/// What is packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) link_type: LinkType,
    /// Lengths of packets, each with its weight.
    pub(super) mix: Vec<(u32, u32)>,
    /// Bytes that are kept of a packet at most.
    pub(super) longest: u32,
    /// Bytes of the shortest and of the longest chunk.
    pub(super) chunk: (u32, u32),
    /// The chunk is sealed when it has packets of so many bytes.
    pub(super) most_bytes: u64,
}

/// Chunks that are remembered: a few more than a comparison of savings asks for.
const REMEMBERED_MAX: usize = 16;

/// The latest first.
static REMEMBERED: Mutex<VecDeque<(Contents, (ChunkSummary, u64))>> = Mutex::new(VecDeque::new());

/// The chunk in short, and the bytes of its packets.
pub(super) fn chunk(contents: Contents) -> (ChunkSummary, u64) {
    let remembered = || REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, packed)) = remembered().iter().find(|(known, _)| *known == contents) {
        return *packed;
    }
    let packed = pack(&contents);
    let mut remembered = remembered();
    remembered.push_front((contents, packed));
    remembered.truncate(REMEMBERED_MAX);
    packed
}

fn pack(contents: &Contents) -> (ChunkSummary, u64) {
    let interface = Interface {
        name: "eth0".to_owned(),
        description: String::new(),
        link_type: contents.link_type,
        snap_length: 0,
        filter: String::new(),
        speed_bits: 100_000_000_000,
    };
    let (least, most) = contents.chunk;
    let mut chunk = ChunkWriter::new(vec![0; most as usize], least, most, 0);
    // A chunk has room for a description, however long a packet is: `packet_block_max` leaves it.
    let packet_bytes = match chunk.interface(0, &interface) {
        Ok(()) => fill(&mut chunk, &contents.mix, contents.longest, contents.most_bytes),
        Err(_) => 0,
    };
    (chunk.seal(&[], Timestamp::MIN, false).summary, packet_bytes)
}

/// Packs packets of the mix, and of each as many bytes as the longest is to have, into a chunk until it is full or has packets of so
/// many bytes. Returns these.
fn fill(
    chunk: &mut ChunkWriter<Vec<u8>>,
    mix: &[(u32, u32)],
    longest: u32,
    most_bytes: u64,
) -> u64 {
    let data = vec![0; longest as usize];
    let mut turns = Turns::new(mix);
    let mut packet_bytes = 0;
    loop {
        let bytes = turns.next();
        let packet = Packet {
            interface: 0,
            timestamp: Timestamp::MIN,
            original_length: bytes,
            data: &data[..bytes.min(longest) as usize],
            options: &[],
        };
        if chunk.packet(&packet, 0).is_err() {
            return packet_bytes;
        }
        packet_bytes += u64::from(bytes);
        if packet_bytes >= most_bytes {
            return packet_bytes;
        }
    }
}

/// Lengths in turn, so that after any number of packets each has come nearly as often as its weight says.
struct Turns<'a> {
    mix: &'a [(u32, u32)],
    all: u64,
    credit: Vec<u64>,
}

impl<'a> Turns<'a> {
    fn new(mix: &'a [(u32, u32)]) -> Self {
        let all = mix.iter().map(|(_, weight)| u64::from(*weight)).sum();
        Self { mix, all, credit: vec![0; mix.len()] }
    }

    fn next(&mut self) -> u32 {
        if let [(bytes, _)] = self.mix {
            return *bytes;
        }
        let mut richest = 0;
        for (at, (_, weight)) in self.mix.iter().enumerate() {
            self.credit[at] += u64::from(*weight);
            if self.credit[at] > self.credit[richest] {
                richest = at;
            }
        }
        self.credit[richest] = self.credit[richest].saturating_sub(self.all);
        self.mix[richest].0
    }
}
