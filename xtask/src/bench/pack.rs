//! Packing packets into chunks, with checksum, on one core, against memcpy of the same bytes.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use base::{Duration, Timestamp};
use crossbeam_channel::unbounded;
use device::target::{self, Access};
use device::{Buffer, Options, Pages, Pool, UringBank};
use format::layout::CHUNK_MAX_DEFAULT;
use format::{ChunkWriter, Interface, LinkType, Packet};
use source::Sink;
use source::packer::{Packer, Pressure, Progress, Supply};

use super::Setting;
use super::comparison::{Comparison, Goal, Unit};
use super::machine::{self, ProcessorTime};
use super::rounds::{alone, interleaved};

/// Shortest chunk of the default layout.
const CHUNK_MIN: u32 = 28_672;
/// Chunk buffers that are filled in turn: far more memory than an L2 cache holds.
const BUFFERS: u32 = 16;
/// Bytes of packets in a round.
const ROUND_BYTES: usize = 1 << 30;
/// Rounds here for each that was asked for: they are short.
const ROUNDS: u32 = 3;
/// Where packets come from: a ring that stays in an L2 cache, and one that does not.
const RINGS: [(usize, &str); 2] = [(256 << 10, "256 KiB"), (64 << 20, "64 MiB")];

/// Runs it.
///
/// # Errors
/// If memory or a scratch file can't be had.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    machine::pinned(|| packing(setting))
}

fn packing(setting: &Setting) -> Result<Vec<Comparison>> {
    let mut found = Vec::new();
    let rounds = ROUNDS * setting.rounds;
    for (ring_bytes, from) in RINGS {
        let bench = Packing::new(ring_bytes, 1500)?;
        let [ours, by_packet, in_pieces] = interleaved(
            rounds,
            true,
            [
                Box::new(|| Ok(bench.bytes() / bench.pack())),
                Box::new(|| Ok(bench.bytes() / bench.copy())),
                Box::new(|| Ok(bench.bytes() / bench.copy_whole())),
            ],
        )?;
        let references =
            [("memcpy, packet by packet", by_packet), ("memcpy in pieces of 128 KiB", in_pieces)];
        for (name, figures) in references {
            found.push(Comparison {
                benchmark: "pack",
                what: format!("1500 B packets into chunks with checksum, from a ring of {from}"),
                reference: Some((name.to_owned(), figures)),
                ours: ours.clone(),
                unit: Unit::BytesPerS,
                goal: Some(Goal::Ratio(0.6)),
            });
        }
    }
    for (ring_bytes, from) in RINGS {
        let bench = Packing::new(ring_bytes, 64)?;
        found.push(Comparison {
            benchmark: "pack",
            what: format!("64 B packets into chunks with checksum, from a ring of {from}"),
            reference: None,
            ours: alone(rounds, || Ok(bench.packets as f64 / bench.pack()))?,
            unit: Unit::PacketsPerS,
            goal: Some(Goal::Value(20e6)),
        });
    }
    for (size, goal) in [(1500, None), (64, Some(Goal::Value(20e6)))] {
        let bench = Packing::new(RINGS[0].0, size)?;
        found.push(Comparison {
            benchmark: "pack",
            what: format!("{size} B packets through the recording's packer"),
            reference: None,
            ours: alone(rounds, || Ok(bench.packets as f64 / bench.through(setting)?))?,
            unit: Unit::PacketsPerS,
            goal,
        });
    }
    Ok(found)
}

/// The packets, and the memory that they go to.
struct Packing {
    ring: Vec<u8>,
    size: usize,
    packets: usize,
    pool: Arc<Pool>,
}

impl Packing {
    fn new(ring_bytes: usize, size: usize) -> Result<Self> {
        let mut random = base::random::Random::new(1);
        let mut ring = vec![0; ring_bytes / size * size];
        for byte in &mut ring {
            *byte = random.bits() as u8;
        }
        let (pool, _) = Pool::new(BUFFERS, CHUNK_MAX_DEFAULT as usize, Pages::Huge)?;
        // Small ones are fewer bytes, so that a round takes about as long.
        let packets = ROUND_BYTES / if size < 1000 { 4 } else { 1 } / size;
        Ok(Self { ring, size, packets, pool })
    }

    fn bytes(&self) -> f64 {
        (self.packets * self.size) as f64
    }

    /// Each packet of a round, one behind the other around the ring.
    fn each(&self, mut f: impl FnMut(usize, &[u8])) {
        let mut at = 0;
        for number in 0..self.packets {
            f(number, &self.ring[at..at + self.size]);
            at += self.size;
            if at == self.ring.len() {
                at = 0;
            }
        }
    }

    /// Buffers, held one after the other, round and round.
    fn buffers(&self) -> impl Iterator<Item = Buffer> {
        let ids: Vec<_> = self.pool.buffer_ids().collect();
        ids.into_iter().cycle().map(|id| self.pool.hold(id))
    }

    /// Seconds that packing takes.
    fn pack(&self) -> f64 {
        let mut buffers = self.buffers();
        let mut next = || {
            let buffer = buffers.next().expect("an endless iterator");
            let mut writer = ChunkWriter::new(buffer, CHUNK_MIN, CHUNK_MAX_DEFAULT, 0);
            writer.interface(0, &interface()).expect("an empty chunk has room");
            writer
        };
        let start = ProcessorTime::start();
        let mut writer = Some(next());
        self.each(|number, data| {
            let packet = Packet {
                interface: 0,
                timestamp: Timestamp::from_nanos(1_700_000_000_000_000_000 + number as u64),
                original_length: data.len() as u32,
                data,
                options: &[],
            };
            let full = writer.as_mut().is_some_and(|w| w.packet(&packet, 0).is_err());
            if full {
                if let Some(full) = writer.take() {
                    black_box(full.seal(&[], Timestamp::MIN, false).summary);
                }
                let mut fresh = next();
                fresh.packet(&packet, 0).expect("an empty chunk has room");
                writer = Some(fresh);
            }
        });
        if let Some(last) = writer {
            black_box(last.seal(&[], Timestamp::MIN, false).summary);
        }
        start.seconds()
    }

    /// Seconds that copying the same packets takes.
    fn copy(&self) -> f64 {
        let mut buffers = self.buffers();
        let mut next = || buffers.next().expect("an endless iterator");
        let start = ProcessorTime::start();
        let mut buffer = next();
        let mut at = 0;
        self.each(|_, data| {
            if at + data.len() > buffer.len() {
                black_box(&buffer[..]);
                buffer = next();
                at = 0;
            }
            buffer[at..at + data.len()].copy_from_slice(data);
            at += data.len();
        });
        black_box(&buffer[..]);
        start.seconds()
    }

    /// Seconds that copying as many bytes takes without regard to packets.
    fn copy_whole(&self) -> f64 {
        const PIECE: usize = 128 << 10;
        let mut buffers = self.buffers();
        let mut next = || buffers.next().expect("an endless iterator");
        let start = ProcessorTime::start();
        let mut buffer = next();
        let (mut at, mut from) = (0, 0);
        for _ in 0..self.packets * self.size / PIECE {
            if at + PIECE > buffer.len() {
                black_box(&buffer[..]);
                buffer = next();
                at = 0;
            }
            if from + PIECE > self.ring.len() {
                from = 0;
            }
            buffer[at..at + PIECE].copy_from_slice(&self.ring[from..from + PIECE]);
            at += PIECE;
            from += PIECE;
        }
        black_box(&buffer[..]);
        start.seconds()
    }

    /// Seconds that the packer of a recording takes, its chunks taken from it at once.
    fn through(&self, setting: &Setting) -> Result<f64> {
        let scratch = setting.dir.join("waker");
        target::create_file(&scratch, 1 << 20)?;
        let (target, _) = target::open(&scratch, Access::Read)?;
        let (mut bank, _) =
            UringBank::open(vec![target], Arc::clone(&self.pool), Options::default())?;
        std::fs::remove_file(&scratch)?;
        let (free, free_taken) = unbounded();
        let (ready, ready_taken) = unbounded();
        for id in self.pool.buffer_ids() {
            free.send(id)?;
        }
        let supply = Supply {
            pool: Arc::clone(&self.pool),
            free: free_taken,
            ready,
            waker: bank.waker(),
            stop: Arc::new(AtomicBool::new(false)),
            bytes_left: None,
            chunk_min: CHUNK_MIN,
            chunk_max: CHUNK_MAX_DEFAULT,
            flush_interval: Duration::from_secs(1),
            started: Timestamp::MIN,
        };
        let mut packer = Packer::new(supply, 0, Pressure::Drops, Arc::new(Progress::default()));
        let number = packer.interface(&interface());
        let start = ProcessorTime::start();
        self.each(|at, data| {
            let packet = Packet {
                interface: number,
                timestamp: Timestamp::from_nanos(1_700_000_000_000_000_000 + at as u64),
                original_length: data.len() as u32,
                data,
                options: &[],
            };
            packer.packet(&packet).expect("nobody ends it");
            if at % 256 == 0 {
                for filled in ready_taken.try_iter() {
                    free.send(filled.buffer).expect("the packer is there");
                }
            }
        });
        packer.finish();
        Ok(start.seconds())
    }
}

fn interface() -> Interface {
    Interface {
        name: "bench".into(),
        description: String::new(),
        link_type: LinkType::ETHERNET,
        snap_length: 0,
        filter: String::new(),
        speed_bits: 0,
    }
}
