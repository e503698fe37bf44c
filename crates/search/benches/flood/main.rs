//! What a flood of flows takes to index: ten million flows in a segment of 1 GiB, beside ordinary traffic of as many packets.
//! `cargo bench -p longtake-search --bench flood` prints times, the most memory, and what the index has.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads the clock and prints"
)]

use std::process::Command;
use std::time::{Duration, Instant};

use format::flow_index::{FlowIndex, Subject, column, reserve};
use format::{LinkType, PAGE_BYTES};
use longtake_search::{KeyKind, SegmentKeys};
use source::generator::Generator;
use source::synthetic::Sizes;
use source::traffic::{Options, Traffic};
use uuid::Uuid;

const SEGMENT: u64 = 1 << 30;
const PACKET_BYTES: usize = 64;
/// Bytes that a packet takes in a segment: an enhanced packet block has 32 more.
const BLOCK_BYTES: u64 = 32 + PACKET_BYTES as u64;
/// Different flows of a flood.
const FLOWS: u32 = 10_000_000;
/// Packets that are made at a time, and then timed.
const BATCH: usize = 4096;
const KINDS: [&str; 3] =
    ["traffic of 2,000,000 flows", "10^7 sources", "200 sources, 50,000 ports each"];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // Tests build and start benchmarks as well.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    if let Some(kind) = KINDS.iter().find(|kind| arguments.iter().any(|argument| argument == *kind))
    {
        return measure(kind);
    }
    // Each in a program of its own, whose memory is that of one segment.
    for kind in KINDS {
        let program = std::env::current_exe().expect("the program has a path");
        let status = Command::new(program).args(["--bench", kind]).status();
        assert!(status.expect("it starts").success(), "{kind} failed");
    }
}

fn measure(kind: &str) {
    let packets = (SEGMENT - reserve(SEGMENT)) / BLOCK_BYTES;
    let mut make = maker(kind);
    let mut batch = vec![0; BATCH * PACKET_BYTES];
    let mut keys = SegmentKeys::default();
    let before = memory("VmRSS");
    let (mut sum, mut longest, mut number) = (Duration::ZERO, Duration::ZERO, 0);
    while number < packets {
        let some = (packets - number).min(BATCH as u64);
        let made = &mut batch[..some as usize * PACKET_BYTES];
        made.chunks_exact_mut(PACKET_BYTES).zip(number..).for_each(|(packet, at)| make(at, packet));
        let start = Instant::now();
        for (packet, at) in made.chunks_exact(PACKET_BYTES).zip(number..) {
            keys.add(column(at * BLOCK_BYTES, SEGMENT), LinkType::ETHERNET, packet);
        }
        let time = start.elapsed();
        (sum, longest, number) = (sum + time, longest.max(time), number + some);
    }
    let gathered = memory("VmHWM") - before;
    let subject = Subject::open(Uuid::from_u128(1), 0, (1, 64), packets * BLOCK_BYTES);
    let start = Instant::now();
    let bytes = keys.finish(&subject, [7; 16], (reserve(SEGMENT) / PAGE_BYTES) as u32);
    let finishing = start.elapsed();
    let bytes = bytes.expect("protocols have room");
    println!("{kind}: {packets} packets of {PACKET_BYTES} B");
    println!(
        "  to keys: {:.0} ns per packet, {:.1} ms for the slowest {BATCH} packets, {:.1} MB of memory",
        sum.as_nanos() as f64 / packets as f64,
        longest.as_secs_f64() * 1e3,
        gathered as f64 / 1e6
    );
    println!(
        "  to the index: {:.0} ms ({:.0} ns per packet with it), {:.1} MB of memory at most",
        finishing.as_secs_f64() * 1e3,
        (sum + finishing).as_nanos() as f64 / packets as f64,
        (memory("VmHWM") - before) as f64 / 1e6
    );
    print_index(&bytes);
}

fn print_index(bytes: &[u8]) {
    let first = FlowIndex::read_open(bytes, Uuid::from_u128(1), 0, 1, SEGMENT);
    let first = first.expect("it was made now");
    let missing = KeyKind::ALL.iter().filter(|kind| first.kinds & kind.bit() == 0);
    let missing: Vec<String> = missing.map(ToString::to_string).collect();
    let missing = if missing.is_empty() { "nothing".to_owned() } else { missing.join("; ") };
    println!("  index: {} bytes, {} keys; left out: {missing}", bytes.len(), first.keys);
}

/// Fills in the packet of a number.
type Maker = Box<dyn FnMut(u64, &mut [u8])>;

fn maker(kind: &str) -> Maker {
    if kind == KINDS[0] {
        let options = Options { sizes: Sizes::Fixed(PACKET_BYTES as u16), ..Options::default() };
        let mut traffic = Traffic::open(&options).expect("the options are in range").remove(0);
        return Box::new(move |number, packet| {
            traffic.packet(number, |made| {
                // Somewhat longer ones are cut: their headers come first.
                let length = made.len().min(packet.len());
                packet.fill(0);
                packet[..length].copy_from_slice(&made[..length]);
            });
        });
    }
    let has_many_sources = kind == KINDS[1];
    Box::new(move |number, packet| {
        // After the last flow the first one goes on.
        let flow = (number % u64::from(FLOWS)) as u32;
        let (source, port) = if has_many_sources {
            // An odd factor gives each flow an address of its own, spread over all.
            (flow.wrapping_mul(0x9e37_79b1), 1024 + (flow % 60_000) as u16)
        } else {
            (0x0a00_0001 + flow % 200, 1024 + (flow / 200) as u16)
        };
        put_packet(packet, source, port);
    })
}

/// A TCP SYN to port 443 of one host.
fn put_packet(packet: &mut [u8], source: u32, port: u16) {
    let length = (PACKET_BYTES - 14) as u16;
    packet.fill(0);
    packet[..12].fill(2);
    packet[12..14].copy_from_slice(&[8, 0]);
    packet[14..16].copy_from_slice(&[0x45, 0]);
    packet[16..18].copy_from_slice(&length.to_be_bytes());
    packet[22..24].copy_from_slice(&[64, 6]);
    packet[26..30].copy_from_slice(&source.to_be_bytes());
    packet[30..34].copy_from_slice(&[192, 0, 2, 1]);
    packet[34..36].copy_from_slice(&port.to_be_bytes());
    packet[36..38].copy_from_slice(&443_u16.to_be_bytes());
    packet[46..48].copy_from_slice(&[0x50, 2]);
}

/// Bytes of this program's memory, as Linux counts them: `VmRSS` now, `VmHWM` at most so far.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux counts it");
    let kib = line.trim_matches([':', ' ', '\t']).split(' ').next().expect("a number follows");
    kib.parse::<u64>().expect("it is a number") * 1024
}
