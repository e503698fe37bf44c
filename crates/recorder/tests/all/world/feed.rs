//! A source in virtual time: several queues fill chunks of random sizes at random instants, and
//! lose packets at every stage.

use std::collections::VecDeque;

use base::memory::MemoryBuffers;
use base::{BufferId, Buffers, Duration, Instant, Random, Timestamp};
use format::{ChunkWriter, Count, Interface, Ledger, LinkType, Packet, Stage, Summary};
use longtake_recorder::ReadyChunk;
use longtake_recorder::run::Feed;

use super::bank::Shared;
use super::watch::Contents;

/// When a bank's clock starts, in ns since 1970.
pub const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// A moment of the bank's clock as packets carry it.
pub fn time(at: Instant) -> Timestamp {
    Timestamp::from_nanos(EPOCH_NS + at.as_nanos())
}

/// A chunk with one packet, or without any, as a source hands it to the core; its buffer holds nothing.
pub fn bare(buffer: BufferId, length: u32, packets: u32) -> ReadyChunk {
    let front = Summary { length, packets, packets_start: 600, packets_end: 700, ..Summary::EMPTY };
    let times = Summary { first_ns: 1, last_ns: 2, sealed_ns: 3, ..front };
    let summary = Summary { captured_bytes: 50, original_bytes: 50, ..times };
    ReadyChunk { buffer, summary, losses: Ledger::default() }
}

/// What a source says was truncated of the packets of a chunk that holds `stored`: of each third chunk, one packet.
pub fn truncated(stored: Count) -> Count {
    if stored.packets % 3 == 1 { Count::new(1, 1 + stored.bytes % 97) } else { Count::ZERO }
}

#[derive(Debug)]
struct Queue {
    /// When its next chunk is sealed.
    ready: Instant,
    /// Time of its last packet.
    last_ns: u64,
    losses: Ledger,
}

pub struct Source {
    memory: MemoryBuffers,
    /// To tell what is in each buffer.
    bank: Shared,
    random: Random,
    queues: Vec<Queue>,
    free: VecDeque<BufferId>,
    buffers: usize,
    out: Vec<BufferId>,
    interval: Duration,
    chunk_min: u32,
    chunk_max: u32,
    stop_at: Instant,
    pub stopped: bool,
    pub next_packet: u64,
    /// Everything that was offered, and what this source knows to be lost.
    pub told: Ledger,
    end_given: bool,
}

impl Source {
    #[expect(clippy::too_many_arguments, reason = "each is one thing that a case chooses")]
    pub fn new(
        memory: &MemoryBuffers,
        bank: Shared,
        seed: u64,
        queues: u16,
        free: Vec<BufferId>,
        interval: Duration,
        chunk_bytes: (u32, u32),
        (start, stop_at): (Instant, Instant),
        next_packet: u64,
    ) -> Self {
        let mut random = Random::new(seed);
        let queues = (0..queues)
            .map(|_| Queue {
                ready: start + Duration::from_nanos(random.below(interval.as_nanos() + 1)),
                last_ns: time(start).as_nanos(),
                losses: Ledger::default(),
            })
            .collect();
        Self {
            memory: memory.clone(),
            bank,
            random,
            queues,
            buffers: free.len(),
            free: free.into(),
            out: Vec::new(),
            interval,
            chunk_min: chunk_bytes.0,
            chunk_max: chunk_bytes.1,
            stop_at,
            stopped: false,
            next_packet,
            told: Ledger::default(),
            end_given: false,
        }
    }

    /// Whether every buffer has come back.
    pub fn whole(&self) -> bool {
        self.out.is_empty() && self.free.len() == self.buffers
    }

    /// Seals the chunk of one queue; None if there was no buffer for it.
    fn seal(&mut self, at: usize) -> Option<ReadyChunk> {
        let queue = &mut self.queues[at];
        let ready_ns = time(queue.ready).as_nanos();
        let random = &mut self.random;
        let stage = random.below(24) as usize;
        if stage < 4 {
            let stage =
                [Stage::Interface, Stage::KernelRing, Stage::Filtered, Stage::NoBuffer][stage];
            let packets = 1 + random.below(9);
            queue.losses.lose(stage, Count::new(packets, packets * random.below(100)));
        }
        let few = random.one_in(4);
        let packets = 1 + random.below(if few { 4 } else { 70 });
        let mut packets: Vec<(u64, u64, u16)> =
            (0..packets).map(|n| (self.next_packet + n, 0, at as u16)).collect();
        self.next_packet += packets.len() as u64;
        let span = ready_ns - queue.last_ns;
        let step = span / (packets.len() as u64 + 1);
        for (n, packet) in (1..).zip(&mut packets) {
            packet.1 = queue.last_ns + step * n;
        }
        let length = 16 + random.below(if few { 3000 } else { 900 }) as usize;
        let count = Count::new(packets.len() as u64, packets.len() as u64 * (length as u64 + 4));
        queue.last_ns = ready_ns;
        queue.ready += Duration::from_nanos(1 + random.below(2 * self.interval.as_nanos()));
        let Some(buffer) = self.free.pop_front() else {
            queue.losses.lose(Stage::NoBuffer, count);
            return None;
        };
        self.out.push(buffer);
        let mut losses = std::mem::take(&mut queue.losses);
        let (memory, size) = (self.memory.clone(), self.memory.size());
        let mut bytes = vec![0; size];
        memory.with(buffer, &mut |b| bytes.copy_from_slice(b));
        let mut writer = ChunkWriter::new(bytes, self.chunk_min, self.chunk_max, at as u16);
        writer.interface(0, &interface(at)).expect("an empty chunk has room");
        let mut data = vec![0u8; length];
        for &(number, ns, _) in &packets {
            data[..8].copy_from_slice(&number.to_le_bytes());
            data[8..16].copy_from_slice(&(!number).to_le_bytes());
            let packet = Packet {
                interface: 0,
                timestamp: Timestamp::from_nanos(ns),
                original_length: length as u32 + 4,
                data: &data,
                options: &[],
            };
            // At most 70 * (900 + 80) or 4 * 3100 bytes, and the chunk's own: below 64 KiB mostly.
            if writer.packet(&packet, 0).is_err() {
                break;
            }
        }
        packets.truncate(writer.packets() as usize);
        let kept = Count::new(packets.len() as u64, packets.len() as u64 * (length as u64 + 4));
        self.queues[at].losses.lose(Stage::NoBuffer, count - kept);
        let sealed = writer.seal(&[], Timestamp::from_nanos(ready_ns), false);
        memory.with(buffer, &mut |b| b.copy_from_slice(&sealed.buffer));
        self.bank.watch(|w| w.handed_over(buffer, Contents { packets, count: kept }));
        losses.truncated = truncated(kept);
        self.told.add(&losses);
        self.told.store(kept);
        Some(ReadyChunk { buffer, summary: sealed.summary, losses })
    }
}

fn interface(queue: usize) -> Interface {
    Interface {
        name: format!("queue{queue}"),
        description: String::new(),
        link_type: LinkType::USER0,
        snap_length: 0,
        filter: String::new(),
        speed_bits: 0,
    }
}

impl Feed for Source {
    fn poll(&mut self, now: Instant) -> Option<ReadyChunk> {
        loop {
            let next = (0..self.queues.len()).min_by_key(|&q| self.queues[q].ready)?;
            let due = self.queues[next].ready;
            if now >= self.stop_at && due >= self.stop_at {
                self.stopped = true;
            }
            if self.stopped || due > now {
                return None;
            }
            if let Some(chunk) = self.seal(next) {
                return Some(chunk);
            }
        }
    }

    fn next(&self, _now: Instant) -> Option<Instant> {
        let next = self.queues.iter().map(|q| q.ready).min()?;
        (!self.stopped).then(|| next.min(self.stop_at))
    }

    fn release(&mut self, buffer: BufferId) {
        let at = self.out.iter().position(|&b| b == buffer);
        let at = at.unwrap_or_else(|| panic!("buffer {} was released twice", buffer.0));
        self.out.swap_remove(at);
        // The latest is used again first, so that one released too early shows.
        self.free.push_front(buffer);
    }

    fn ended(&self) -> bool {
        self.stopped
    }

    fn end_chunk(&mut self) -> Option<ReadyChunk> {
        assert!(self.stopped && !self.end_given, "the end is asked for once, and last");
        let buffer = self.free.pop_front()?;
        self.end_given = true;
        self.out.push(buffer);
        let mut losses = Ledger::default();
        for queue in &mut self.queues {
            losses.add(&std::mem::take(&mut queue.losses));
        }
        let writer =
            ChunkWriter::new(vec![0; self.memory.size()], self.chunk_min, self.chunk_max, 0);
        let sealed = writer.seal(&[], Timestamp::from_nanos(self.queues[0].last_ns), true);
        self.memory.with(buffer, &mut |b| b.copy_from_slice(&sealed.buffer));
        let contents = Contents { packets: Vec::new(), count: Count::ZERO };
        self.bank.watch(|w| w.handed_over(buffer, contents));
        self.told.add(&losses);
        Some(ReadyChunk { buffer, summary: sealed.summary, losses })
    }
}
