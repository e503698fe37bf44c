//! How fast the sources that need no network are: packets made up, read from a file, filtered, checked.
//!
//! The sink only looks at each packet's last byte, so that what is measured is the source.

use std::hint::black_box;
use std::io::Cursor;

use base::{Rate, Timestamp};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use format::{Interface, LinkType, Packet};
use longtake_source::capture_file::CaptureFile;
use longtake_source::filter::Program;
use longtake_source::synthetic::{Checker, Options, Pace, Sizes, Synthetic};
use longtake_source::traffic::{self, Traffic};
use longtake_source::{Ended, Generator, Loss, Sink};

/// Takes so many packets.
struct Counting {
    left: u64,
}

impl Sink for Counting {
    fn interface(&mut self, _: &Interface) -> u32 {
        0
    }
    #[inline(never)]
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        black_box(packet.data.last());
        self.left = self.left.checked_sub(1).ok_or(Ended)?;
        Ok(())
    }
    fn lost(&mut self, _: u32, _: Loss, _: u64, _: u64) {}
    fn tick(&mut self, _: Timestamp) -> Result<(), Ended> {
        Ok(())
    }
}

/// Keeps what it takes.
#[derive(Default)]
struct Keeping(Vec<Vec<u8>>);

impl Sink for Keeping {
    fn interface(&mut self, _: &Interface) -> u32 {
        0
    }
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        if self.0.len() == 10_000 {
            return Err(Ended);
        }
        self.0.push(packet.data.to_vec());
        Ok(())
    }
    fn lost(&mut self, _: u32, _: Loss, _: u64, _: u64) {}
    fn tick(&mut self, _: Timestamp) -> Result<(), Ended> {
        Ok(())
    }
}

fn options(pace: Pace, sizes: Sizes) -> Options {
    Options { pace, sizes, ..Options::default() }
}

fn kept(sizes: Sizes) -> Vec<Vec<u8>> {
    let mut sink = Keeping::default();
    for source in Synthetic::open(&options(Pace::Max, sizes)).expect("options in range") {
        source.run(&mut sink);
    }
    sink.0
}

const SIZES: [(&str, Sizes); 3] =
    [("64", Sizes::Fixed(64)), ("1500", Sizes::Fixed(1500)), ("imix", Sizes::Imix)];

const PACKETS: u64 = 200_000;

fn synthetic(c: &mut Criterion) {
    let mut group = c.benchmark_group("synthetic");
    // A rate that no machine reaches: every packet is late, so nothing sleeps.
    for (pace_name, pace) in [("max", Pace::Max), ("paced", Pace::Rate(Rate(1e15)))] {
        for (name, sizes) in SIZES {
            let bytes: u64 = (0..PACKETS).map(|n| u64::from(sizes.of(n))).sum();
            group.throughput(Throughput::ElementsAndBytes { elements: PACKETS, bytes });
            group.bench_function(BenchmarkId::new(pace_name, name), |b| {
                b.iter_batched(
                    || Synthetic::open(&options(pace, sizes)).expect("options in range").remove(0),
                    |source| source.run(&mut Counting { left: PACKETS }),
                    criterion::BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

/// Once its first flows have ended, so that new ones begin all the time.
fn traffic(c: &mut Criterion) {
    let mut group = c.benchmark_group("traffic");
    for (name, sizes) in SIZES {
        let options = traffic::Options { sizes, ..traffic::Options::default() };
        let mut source = Traffic::open(&options).expect("options in range").remove(0);
        let mut sequence = 0;
        let mut round = || {
            let mut bytes = 0;
            for _ in 0..PACKETS {
                bytes += source.packet(sequence, |data| black_box(data).len() as u64);
                sequence += 1;
            }
            bytes
        };
        let bytes = (0..10).map(|_| round()).last().expect("there are some");
        group.throughput(Throughput::ElementsAndBytes { elements: PACKETS, bytes });
        group.bench_function(name, |b| b.iter(&mut round));
    }
    group.finish();
}

fn checker(c: &mut Criterion) {
    let mut group = c.benchmark_group("checker");
    for (name, sizes) in SIZES {
        let packets = kept(sizes);
        group.throughput(Throughput::Elements(packets.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut checker = Checker::new(&options(Pace::Max, sizes));
                for packet in &packets {
                    checker.check(packet, packet.len() as u32).expect("as it was made");
                }
                checker.packets()
            });
        });
    }
    group.finish();
}

/// A file of these packets, each with `options` in a pcapng.
fn file_of(packets: &[Vec<u8>], pcapng: bool, options: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let words = |file: &mut Vec<u8>, words: &[u32]| {
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    };
    if pcapng {
        words(&mut file, &[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
        words(&mut file, &[1, 20, 1, 0, 20]);
    } else {
        words(&mut file, &[0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1]);
    }
    for packet in packets {
        let length = packet.len() as u32;
        if pcapng {
            let block = 32 + length.next_multiple_of(4) + options.len() as u32;
            words(&mut file, &[6, block, 0, 0x0006_0000, length, length, length]);
            file.extend(packet);
            file.resize(file.len().next_multiple_of(4), 0);
            file.extend(options);
            words(&mut file, &[block]);
        } else {
            words(&mut file, &[1_700_000_000, 5, length, length]);
            file.extend(packet);
        }
    }
    file
}

fn capture_file(c: &mut Criterion) {
    let mut group = c.benchmark_group("capture_file");
    let flags = [2, 0, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    for (kind, pcapng, options) in
        [("pcap", false, &[][..]), ("pcapng", true, &[][..]), ("pcapng+flags", true, &flags[..])]
    {
        for (name, sizes) in SIZES {
            let packets = vec![kept(sizes); 20].concat();
            let file = file_of(&packets, pcapng, options);
            let elements = packets.len() as u64;
            group.throughput(Throughput::ElementsAndBytes { elements, bytes: file.len() as u64 });
            group.bench_function(BenchmarkId::new(kind, name), |b| {
                b.iter_batched(
                    || CaptureFile::from_reader("bench", Cursor::new(file.clone())),
                    |reader| reader.run(&mut Counting { left: u64::MAX }).expect("a good file"),
                    criterion::BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
}

fn filter(c: &mut Criterion) {
    let mut group = c.benchmark_group("filter");
    let packets = kept(Sizes::Fixed(64));
    group.throughput(Throughput::Elements(packets.len() as u64));
    for expression in ["udp", "udp port 9", "host 198.18.0.0 and not port 53"] {
        let program =
            Program::compile(expression, LinkType::ETHERNET, 0).expect("libpcap is there");
        group.bench_function(expression, |b| {
            b.iter(|| packets.iter().filter(|packet| program.matches(packet, 64)).count());
        });
    }
    group.finish();
}

criterion_group!(benches, synthetic, traffic, checker, capture_file, filter);
criterion_main!(benches);
