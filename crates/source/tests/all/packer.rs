//! The packer on packets and interfaces of any size: whatever does not fit a chunk is truncated and counted, and
//! nothing else is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Duration, Timestamp};
use crossbeam_channel::{Receiver, unbounded};
use device::{Pages, Pool, Waker};
use format::chunk::{PACKET_CHUNK_MAX_LEAST, packet_block_max};
use format::layout::CHUNK_MAX_LEAST;
use format::pcapng::{self, Blocks, INTERFACE_BYTES_MAX, packet_block_bytes};
use format::section::HEADER_BYTES;
use format::{Count, Interface, Ledger, LinkType, Packet};
use longtake_source::packer::Progress;
use longtake_source::{Filled, Loss, Packer, Pressure, Sink, Supply};
use proptest::prelude::*;

/// `epb_dropcount`.
const DROP_COUNT: u16 = 4;

/// A packet that is offered, and how many are lost right before it.
#[derive(Clone, Debug)]
struct Offered {
    interface: u32,
    data: Vec<u8>,
    options: Vec<u8>,
    lost: u64,
}

impl Offered {
    fn packet(&self, number: usize) -> Packet<'_> {
        Packet {
            interface: self.interface,
            timestamp: Timestamp::from_nanos(1000 + number as u64),
            original_length: self.data.len() as u32 + number as u32,
            data: &self.data,
            options: &self.options,
        }
    }
}

/// A packet as a chunk has it.
#[derive(Debug)]
pub struct Stored {
    pub interface: Interface,
    time: u64,
    pub original_length: u32,
    pub data: Vec<u8>,
    options: Vec<u8>,
    pub dropped: u64,
    /// Longest block that its chunk had room for when it came, if it is the first one.
    room: Option<usize>,
}

/// Options without drop count and end mark, encoded as packets have them.
fn encoded<'a>(options: impl Iterator<Item = (u16, &'a [u8])>) -> Vec<u8> {
    let mut out = Vec::new();
    for (code, value) in options.filter(|(code, _)| *code != DROP_COUNT) {
        out.extend(code.to_le_bytes());
        out.extend((value.len() as u16).to_le_bytes());
        out.extend(value);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

fn interface(number: usize, lengths: (usize, usize, usize)) -> Interface {
    let text = |length| format!("{number}").chars().cycle().take(length).collect();
    Interface {
        name: text(lengths.0),
        description: text(lengths.1),
        link_type: LinkType(100 + number as u16),
        snap_length: 7 + number as u32,
        filter: text(lengths.2),
        speed_bits: 0,
    }
}

/// What came of packing: chunk by chunk the packets and what else it tells, and the progress.
struct Packed {
    chunks: Vec<(Vec<Stored>, Ledger)>,
    progress: Arc<Progress>,
}

/// So many buffers for packers, and where sealed chunks arrive.
pub fn supply(buffers: u32, chunk_max: u32) -> (Supply, Receiver<Filled>) {
    let (pool, _) = Pool::new(buffers, chunk_max as usize, Pages::Normal).unwrap();
    let (free, taken) = unbounded();
    let (ready, filled) = unbounded();
    pool.buffer_ids().for_each(|buffer| free.send(buffer).unwrap());
    // A packer that wants more buffers than there are would wait for ever: as `free` is dropped here, it fails instead.
    let supply = Supply {
        pool,
        free: taken,
        ready,
        waker: Waker::new().unwrap(),
        stop: Arc::new(AtomicBool::new(false)),
        bytes_left: None,
        chunk_min: 4096,
        chunk_max,
        flush_interval: Duration::from_secs(1),
        started: Timestamp::MIN,
    };
    (supply, filled)
}

fn pack(chunk_max: u32, interfaces: &[Interface], offered: &[Offered]) -> Packed {
    // Each packet takes a chunk at most, and what was lost behind the last one another.
    let buffers = offered.len() as u32 + 1;
    let (supply, filled) = supply(buffers, chunk_max);
    let pool = Arc::clone(&supply.pool);
    let progress = Arc::new(Progress::default());
    let mut packer = Packer::new(supply, 0, Pressure::Waits, Arc::clone(&progress));
    for interface in interfaces {
        packer.interface(interface);
    }
    for (number, offered) in offered.iter().enumerate() {
        if offered.lost > 0 {
            packer.lost(offered.interface, Loss::Interface, offered.lost, 0);
        }
        packer.packet(&offered.packet(number)).unwrap();
    }
    packer.finish();
    let chunks = filled.try_iter().map(|filled| {
        let chunk = pool.hold(filled.buffer);
        let summary = filled.summary;
        let chunk = &chunk[..summary.length as usize];
        let packets = unpacked(chunk, chunk_max, summary.packets_start as usize);
        assert_eq!(summary.packets as usize, packets.len());
        (packets, filled.losses)
    });
    Packed { chunks: chunks.collect(), progress }
}

/// Reads a chunk's packets back.
pub fn unpacked(chunk: &[u8], chunk_max: u32, packets_start: usize) -> Vec<Stored> {
    let room = packet_block_max(chunk_max) + HEADER_BYTES + INTERFACE_BYTES_MAX - packets_start;
    let mut interfaces = Vec::new();
    let mut packets: Vec<Stored> = Vec::new();
    for block in Blocks::new(&chunk[HEADER_BYTES..]) {
        let block = block.unwrap();
        match block.kind {
            pcapng::INTERFACE => interfaces.push(pcapng::read_interface(&block).unwrap()),
            pcapng::ENHANCED_PACKET => {
                let packet = pcapng::read_packet(&block).unwrap();
                packets.push(Stored {
                    interface: interfaces[packet.interface as usize].clone(),
                    time: packet.time,
                    original_length: packet.original_length,
                    data: packet.data.to_vec(),
                    options: encoded(pcapng::options(packet.options)),
                    dropped: packet.dropped(),
                    room: packets.is_empty().then_some(room),
                });
            }
            _ => {}
        }
    }
    packets
}

/// An interface as its description has it.
fn described(interface: &Interface) -> Interface {
    let cut = |text: &String| text.chars().take(1000).collect();
    let Interface { name, description, filter, .. } = interface;
    let (name, description, filter) = (cut(name), cut(description), cut(filter));
    Interface { name, description, filter, ..interface.clone() }
}

/// Bytes of an interface's texts.
fn text_bytes(interface: &Interface) -> usize {
    interface.name.len() + interface.description.len() + interface.filter.len()
}

/// Fails unless every packet is stored once, in order, and as much of it as a chunk can hold; returns what is to be
/// counted as truncated.
fn judge(offered: &[Offered], interfaces: &[Interface], stored: &[&Stored]) -> Count {
    assert_eq!(stored.len(), offered.len(), "each packet is in exactly one chunk");
    let mut truncated = Count::ZERO;
    let mut seen = Vec::new();
    for (number, (offered, stored)) in offered.iter().zip(stored).enumerate() {
        let packet = offered.packet(number);
        let interface = &interfaces[offered.interface as usize];
        assert_eq!(stored.time, packet.timestamp.as_nanos());
        assert_eq!(stored.original_length, packet.original_length, "the original length is kept");
        assert_eq!(stored.dropped, offered.lost);
        assert_eq!(stored.interface, described(interface));
        assert!(packet.data.starts_with(&stored.data), "data is cut at its end");
        if !seen.contains(&offered.interface) {
            seen.push(offered.interface);
            truncated.bytes += (text_bytes(interface) - text_bytes(&stored.interface)) as u64;
        }
        let cut =
            packet.data.len() - stored.data.len() + packet.options.len() - stored.options.len();
        if cut == 0 {
            assert_eq!(stored.options, packet.options);
            continue;
        }
        truncated += Count::new(1, cut as u64);
        // Only what an empty chunk has no room for is cut, options first, and no more than must be.
        let room = stored.room.expect("a truncated packet is its chunk's first");
        assert!(packet_block_bytes(&packet, offered.lost) > room);
        let kept = Packet { data: &stored.data, options: &stored.options, ..packet };
        let taken = packet_block_bytes(&kept, offered.lost);
        assert!(taken <= room);
        if stored.data.len() < packet.data.len() {
            assert!(room - taken < 4 && stored.options.len() <= 256);
        }
    }
    truncated
}

fn option(code: u16, length: usize) -> Vec<u8> {
    encoded([(code, &vec![code as u8; length][..])].into_iter())
}

/// Lengths small, around a chunk's, and well above it.
fn data_lengths(chunk_max: usize) -> impl Strategy<Value = usize> {
    prop_oneof![0..2000usize, chunk_max - 6000..chunk_max + 300, 0..3 * chunk_max]
}

fn packets(chunk_max: u32, interfaces: usize) -> impl Strategy<Value = Vec<Offered>> {
    let lengths = prop_oneof![3 => 0..64usize, 1 => 0..3000usize, 1 => 50_000..65_536usize];
    let options =
        prop_oneof![Just(Vec::new()), proptest::collection::vec((5u16..9, lengths), 0..9),];
    let offered = (0..interfaces as u32, data_lengths(chunk_max as usize), options, 0u64..3);
    let offered = offered.prop_map(|(interface, length, options, lost)| Offered {
        interface,
        data: (0..length).map(|at| (at * 31 + length) as u8).collect(),
        options: options.into_iter().flat_map(|(code, length)| option(code, length)).collect(),
        lost: if lost == 2 { 5 } else { 0 },
    });
    proptest::collection::vec(offered, 0..9)
}

fn cases() -> impl Strategy<Value = (u32, Vec<Interface>, Vec<Offered>)> {
    let texts = || prop_oneof![0..40usize, 900..1100usize, 0..70_000usize];
    let interfaces = proptest::collection::vec((texts(), texts(), texts()), 1..6);
    let chunk_max = prop_oneof![
        Just(PACKET_CHUNK_MAX_LEAST),
        Just(CHUNK_MAX_LEAST),
        Just(CHUNK_MAX_LEAST + 4096),
        Just(256 << 10),
    ];
    (chunk_max, interfaces).prop_flat_map(|(chunk_max, lengths)| {
        let count = lengths.len();
        let interfaces: Vec<Interface> =
            lengths.into_iter().enumerate().map(|(n, lengths)| interface(n, lengths)).collect();
        (Just(chunk_max), Just(interfaces), packets(chunk_max, count))
    })
}

/// Packs and judges.
fn check(chunk_max: u32, interfaces: &[Interface], offered: &[Offered]) -> Count {
    let Packed { chunks, progress } = pack(chunk_max, interfaces, offered);
    let mut told = Ledger::default();
    for (packets, losses) in &chunks {
        assert!(!packets.is_empty() || !losses.lost_total().is_zero(), "an empty chunk");
        told.add(losses);
    }
    let stored: Vec<&Stored> = chunks.iter().flat_map(|(packets, _)| packets).collect();
    let truncated = judge(offered, interfaces, &stored);
    assert_eq!(told.truncated, truncated);
    assert_eq!(progress.truncated_packets.load(Ordering::Relaxed), truncated.packets);
    assert_eq!(progress.truncated_bytes.load(Ordering::Relaxed), truncated.bytes);
    let lost: u64 = offered.iter().map(|offered| offered.lost).sum();
    assert_eq!(told.lost_total().packets, lost);
    let all = progress.offered_packets.load(Ordering::Relaxed);
    assert_eq!(all, offered.len() as u64 + lost, "truncated packets are offered and stored");
    truncated
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_is_in_one_chunk_and_what_does_not_fit_is_counted_exactly(
        (chunk_max, interfaces, offered) in cases()
    ) {
        check(chunk_max, &interfaces, &offered);
    }
}

#[test]
fn a_short_packet_with_more_options_than_a_chunk_holds_keeps_its_data() {
    let interfaces = [interface(0, (4, 0, 0))];
    let data: Vec<u8> = (0..60).collect();
    let options: Vec<u8> = (0..70).flat_map(|_| option(1, 65_000)).collect();
    let offered = [Offered { interface: 0, data, options, lost: 0 }];
    let truncated = check(format::layout::CHUNK_MAX_DEFAULT, &interfaces, &offered);
    assert_eq!(truncated, Count::new(1, 6 * 65_004), "six comments less");
}

#[test]
fn a_packet_longer_than_any_chunk_fills_one() {
    let interfaces = [interface(0, (4, 0, 0))];
    let long = Offered { interface: 0, data: vec![3; 6 << 20], options: Vec::new(), lost: 0 };
    let short = Offered { data: vec![4; 100], ..long.clone() };
    let offered = [short.clone(), long, short];
    let truncated = check(format::layout::CHUNK_MAX_DEFAULT, &interfaces, &offered);
    assert_eq!(truncated.packets, 1);
    assert!(truncated.bytes < (6 << 20) - 4_180_000);
}

#[test]
fn many_interfaces_with_long_texts_share_chunks_or_get_their_own() {
    let interfaces: Vec<Interface> = (0..300).map(|n| interface(n, (3000, 3000, 3000))).collect();
    let offered: Vec<Offered> = (0..300)
        .map(|n| Offered { interface: n, data: vec![1; 60], options: Vec::new(), lost: 1 })
        .collect();
    let truncated = check(PACKET_CHUNK_MAX_LEAST, &interfaces, &offered);
    assert_eq!(truncated, Count::new(0, 300 * 6000));
}

#[test]
fn a_packet_that_the_snap_length_cut_is_not_counted_as_truncated() {
    let interfaces = [interface(0, (4, 0, 0))];
    // The original length goes up with the number: all but the first were captured in part.
    let one = Offered { interface: 0, data: vec![1; 60], options: Vec::new(), lost: 0 };
    let offered = vec![one; 9];
    assert_eq!(check(CHUNK_MAX_LEAST, &interfaces, &offered), Count::ZERO);
}

#[test]
fn packers_end_a_recording_at_its_limit_of_bytes_without_being_told() {
    const LIMIT: u64 = 1 << 20;
    const PACKET_BYTES: usize = 1000;
    let (mut supply, filled) = supply(64, PACKET_CHUNK_MAX_LEAST);
    supply.bytes_left = Some(Arc::new(AtomicU64::new(LIMIT)));
    let mut packers: Vec<Packer> = (0..2)
        .map(|queue| Packer::new(supply.clone(), queue, Pressure::Waits, Arc::default()))
        .collect();
    let data = [7; PACKET_BYTES];
    for packer in &mut packers {
        packer.interface(&interface(0, (1, 0, 0)));
    }
    let mut bytes = 0;
    for queue in [0, 1].into_iter().cycle() {
        let taken = packers[queue].packet(&Packet {
            interface: 0,
            timestamp: Timestamp::MIN,
            original_length: PACKET_BYTES as u32,
            data: &data,
            options: &[],
        });
        if taken.is_err() {
            break;
        }
        bytes += PACKET_BYTES as u64;
    }
    packers.into_iter().for_each(Packer::finish);
    let stored: u64 = filled.try_iter().map(|filled| filled.summary.captured_bytes).sum();
    assert_eq!(stored, bytes, "every packet that was taken is stored");
    let chunks = 2 * u64::from(PACKET_CHUNK_MAX_LEAST);
    assert!((LIMIT..=LIMIT + chunks).contains(&stored), "{stored} of {LIMIT}");
}

#[test]
fn a_clock_that_is_set_back_holds_a_chunk_for_one_more_interval_at_most() {
    for pressure in [Pressure::Waits, Pressure::Drops, Pressure::DropsAndDrains] {
        let (supply, filled) = supply(4, PACKET_CHUNK_MAX_LEAST);
        let interval = supply.flush_interval;
        let mut packer = Packer::new(supply, 0, pressure, Arc::default());
        packer.interface(&interface(0, (1, 0, 0)));
        let at = |seconds: u64| Timestamp::from_nanos(seconds * 1_000_000_000);
        let packet = Packet {
            interface: 0,
            timestamp: at(10_000),
            original_length: 1,
            data: &[7],
            options: &[],
        };
        packer.packet(&packet).unwrap();
        packer.tick(at(10_000)).unwrap();
        // An hour back.
        packer.tick(at(6_400)).unwrap();
        assert_eq!(filled.len(), 0, "it is no second old");
        packer.tick(at(6_400) + interval).unwrap();
        assert_eq!(filled.len(), 1, "{pressure:?}");
        packer.finish();
    }
}
