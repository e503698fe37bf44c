//! A source in virtual time: several queues fill chunks of random sizes at random instants, in bursts too, and lose
//! packets at every stage. Packets are made from their number, so that they can be checked without being kept.

use std::collections::{BTreeMap, VecDeque};

use base::memory::MemoryBuffers;
use base::{BufferId, Buffers, Duration, Instant, Random, Timestamp};
use format::{ChunkWriter, Count, Interface, Ledger, LinkType, Packet, Sealed, Stage};
use recorder::run::{Feed, FilledSegment};
use recorder::{FlowIndexPart, ReadyChunk};

use crate::case::{CHUNK_MAX, Case};
use crate::flow_indexing::Maker;

/// When the bank's clock starts, in ns since 1970.
pub const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// Bytes on the wire beyond those that are kept.
const CUT_BYTES: u32 = 4;

/// A moment of the bank's clock as packets carry it.
pub fn time(at: Instant) -> Timestamp {
    Timestamp::from_nanos(EPOCH_NS + at.as_nanos())
}

/// What is in a chunk: packets numbered one after another, at even distances in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The first packet's number.
    pub first: u64,
    /// How many there are.
    pub packets: u32,
    /// Bytes that each keeps.
    pub length: u32,
    /// The queue.
    pub queue: u16,
    /// A step before the first packet's time, in ns since 1970.
    pub from_ns: u64,
    /// Time between two packets.
    pub step_ns: u64,
}

impl Contents {
    /// Of a chunk that no source filled.
    pub const NOTHING: Self =
        Self { first: 0, packets: 0, length: 0, queue: 0, from_ns: 0, step_ns: 0 };

    /// Packets and wire bytes.
    pub fn count(&self) -> Count {
        let packets = u64::from(self.packets);
        Count::new(packets, packets * u64::from(self.length + CUT_BYTES))
    }

    /// Time of the packet of this place in the chunk, in ns since 1970.
    pub fn time_ns(&self, at: u64) -> u64 {
        self.from_ns + self.step_ns * (at + 1)
    }

    /// Numbers of the packets from one time to another, both included, in ns since 1970.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = u64> + '_ {
        let inside = move |at: &u64| (from_ns..=to_ns).contains(&self.time_ns(*at));
        (0..u64::from(self.packets)).filter(inside).map(|at| self.first + at)
    }
}

/// What a source says was truncated of the packets of a chunk that holds `stored`: of each third chunk, one packet.
pub fn truncated(stored: Count) -> Count {
    if stored.packets % 3 == 1 { Count::new(1, 1 + stored.bytes % 97) } else { Count::ZERO }
}

/// What a source says was sliced of them: of each second chunk, every packet.
pub fn sliced(stored: Count) -> Count {
    if stored.packets % 2 == 1 {
        Count::new(stored.packets, stored.bytes % 89)
    } else {
        Count::ZERO
    }
}

/// Whether a packet's bytes are those that belong to its number.
pub fn is_genuine(number: u64, data: &[u8]) -> bool {
    let (words, rest) = data.as_chunks::<8>();
    let pattern = pattern(number);
    let body = words.iter().skip(1).all(|&word| u64::from_le_bytes(word) == pattern);
    words.first().is_some_and(|&word| u64::from_le_bytes(word) == number)
        && body
        && rest.iter().all(|&byte| byte == pattern as u8)
}

/// The number that a packet says it has.
pub fn number_of(data: &[u8]) -> Option<u64> {
    data.first_chunk().map(|&word| u64::from_le_bytes(word))
}

const fn pattern(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number >> 7
}

fn fill(number: u64, data: &mut [u8]) {
    let pattern = pattern(number);
    let (words, rest) = data.as_chunks_mut::<8>();
    words.fill(pattern.to_le_bytes());
    rest.fill(pattern as u8);
    if let Some(word) = words.first_mut() {
        *word = number.to_le_bytes();
    }
}

#[derive(Debug)]
struct Queue {
    /// When its next chunk is sealed.
    ready: Instant,
    /// Chunks that come at once with that one.
    burst: u64,
    /// Time of its last packet.
    last_ns: u64,
    losses: Ledger,
}

/// The source of one take.
#[derive(Debug)]
pub struct Source {
    memory: MemoryBuffers,
    random: Random,
    queues: Vec<Queue>,
    free: VecDeque<BufferId>,
    buffers: usize,
    out: Vec<BufferId>,
    interval: Duration,
    pages_max: u64,
    burst: u64,
    chunk_min: u32,
    chunk_max: u32,
    stop_at: Instant,
    /// How much older its packets are than its chunks.
    older: Duration,
    /// Whether it has stopped, or is to stop.
    pub stopped: bool,
    /// The number of the next packet.
    pub next_packet: u64,
    /// Everything that was offered, and what this source knows to be lost.
    pub told: Ledger,
    /// What is in each buffer that was handed over last.
    pub contents: BTreeMap<BufferId, Contents>,
    /// What was handed over, in order, but for the chunk that ends the take.
    pub handed: Vec<Contents>,
    /// Whether something was lost because no buffer was free.
    pub overrun: bool,
    end_given: bool,
    scratch: Vec<u8>,
    packet: Vec<u8>,
    /// Makes flow indexes, if the recording keeps room for them.
    pub maker: Option<Maker>,
    now: Instant,
}

impl Source {
    /// A source that starts at `start` and stops at `stop_at`, with these buffers.
    pub fn new(
        case: &Case,
        memory: &MemoryBuffers,
        free: Vec<BufferId>,
        chunk_min: u32,
        (start, stop_at): (Instant, Instant),
        older: Duration,
        next_packet: u64,
    ) -> Self {
        let mut random = Random::new(case.seed ^ start.as_nanos().rotate_left(32));
        let queues = (0..case.queues)
            .map(|_| Queue {
                ready: start + Duration::from_nanos(random.below(case.interval.as_nanos() + 1)),
                burst: 0,
                last_ns: time(start).as_nanos() - older.as_nanos(),
                losses: Ledger::default(),
            })
            .collect();
        Self {
            memory: memory.clone(),
            random,
            queues,
            buffers: free.len(),
            free: free.into(),
            out: Vec::new(),
            interval: case.interval,
            pages_max: case.pages_max,
            burst: case.burst,
            chunk_min,
            chunk_max: case.data_chunk_max(),
            stop_at,
            older,
            stopped: false,
            next_packet,
            told: Ledger::default(),
            contents: BTreeMap::new(),
            handed: Vec::new(),
            overrun: false,
            end_given: false,
            scratch: vec![0; CHUNK_MAX as usize],
            packet: Vec::new(),
            maker: None,
            now: start,
        }
    }

    /// Whether every buffer has come back.
    pub fn whole(&self) -> bool {
        self.out.is_empty() && self.free.len() == self.buffers
    }

    /// Buffers that are with the recorder.
    pub fn out(&self) -> usize {
        self.out.len()
    }

    /// Seals the chunk of one queue; None if there was no buffer for it.
    fn seal(&mut self, at: usize) -> Option<ReadyChunk> {
        let sealed_at = time(self.queues[at].ready);
        self.lose_by_chance(at);
        let mut contents = self.next_contents(at, sealed_at);
        self.set_next_time(at);
        let offered = contents.count();
        let Some(buffer) = self.free.pop_front() else {
            self.queues[at].losses.lose(Stage::NoBuffer, offered);
            self.overrun = true;
            return None;
        };
        self.out.push(buffer);
        let sealed = self.write(at, &mut contents, sealed_at);
        self.queues[at].losses.lose(Stage::NoBuffer, offered - contents.count());
        let mut losses = std::mem::take(&mut self.queues[at].losses);
        losses.truncated = truncated(contents.count());
        losses.sliced = sliced(contents.count());
        let used = sealed.summary.length as usize;
        self.memory.with(buffer, &mut |b| b[..used].copy_from_slice(&sealed.buffer[..used]));
        self.scratch = sealed.buffer;
        self.contents.insert(buffer, contents);
        self.handed.push(contents);
        self.told.add(&losses);
        self.told.store(contents.count());
        Some(ReadyChunk { buffer, summary: sealed.summary, losses })
    }

    /// Packets that a queue lost before the recorder could have had them, now and then.
    fn lose_by_chance(&mut self, at: usize) {
        let stages = [Stage::Interface, Stage::KernelRing, Stage::Filtered, Stage::NoBuffer];
        if let Some(&stage) = stages.get(self.random.below(24) as usize) {
            let packets = 1 + self.random.below(9);
            let lost = Count::new(packets, packets * self.random.below(100));
            // Half of what the user wants left out comes after the first bytes of its flow.
            let stage = match stage {
                Stage::Filtered if packets % 2 == 1 => Stage::Cut,
                stage => stage,
            };
            self.queues[at].losses.lose(stage, lost);
        }
    }

    /// What comes next in a queue's chunk, if all of it has room.
    fn next_contents(&mut self, at: usize, sealed_at: Timestamp) -> Contents {
        let queue = &mut self.queues[at];
        let ready_ns = sealed_at.as_nanos() - self.older.as_nanos();
        let pages = 1 + self.random.below(self.pages_max);
        let packets = 1 + self.random.below(6);
        let length = ((pages * 4096 - 700) / packets).saturating_sub(32).max(16) as u32;
        let contents = Contents {
            first: self.next_packet,
            packets: packets as u32,
            length,
            queue: at as u16,
            from_ns: queue.last_ns,
            step_ns: (ready_ns - queue.last_ns) / (packets + 1),
        };
        self.next_packet += packets;
        queue.last_ns = ready_ns;
        contents
    }

    /// When a queue has its next chunk. A burst makes up for itself by the pause before it, on average.
    fn set_next_time(&mut self, at: usize) {
        let queue = &mut self.queues[at];
        if queue.burst == 0 && self.burst > 1 && self.random.one_in(self.burst) {
            queue.burst = self.burst;
        }
        let pause = match queue.burst {
            0 => 2 * self.interval.as_nanos(),
            _ => {
                queue.burst -= 1;
                1000
            }
        };
        queue.ready += Duration::from_nanos(1 + self.random.below(pause));
    }

    /// Writes a chunk of these packets, or of as many as have room.
    fn write(
        &mut self,
        at: usize,
        contents: &mut Contents,
        sealed_at: Timestamp,
    ) -> Sealed<Vec<u8>> {
        let scratch = std::mem::take(&mut self.scratch);
        let mut writer = ChunkWriter::new(scratch, self.chunk_min, self.chunk_max, at as u16);
        let described = writer.interface(0, &interface(at));
        assert_eq!(described, Ok(()), "an empty chunk has room for an interface");
        self.packet.resize(contents.length as usize, 0);
        for number in 0..u64::from(contents.packets) {
            fill(contents.first + number, &mut self.packet);
            let packet = Packet {
                interface: 0,
                timestamp: Timestamp::from_nanos(contents.time_ns(number)),
                original_length: contents.length + CUT_BYTES,
                data: &self.packet,
                options: &[],
            };
            if writer.packet(&packet, 0).is_err() {
                break;
            }
        }
        contents.packets = writer.packets();
        writer.seal(&[], sealed_at, false)
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
        self.now = now;
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
        let chunk = (!self.stopped).then(|| next.min(self.stop_at));
        let index = self.maker.as_ref().and_then(Maker::next);
        chunk.into_iter().chain(index).min()
    }

    fn segment_filled(&mut self, segment: FilledSegment) {
        if let Some(maker) = &mut self.maker {
            maker.filled(self.now, &segment);
        }
    }

    fn flow_index(&mut self) -> Option<FlowIndexPart> {
        let now = self.now;
        self.maker.as_mut().and_then(|maker| maker.ready(now))
    }

    fn makes_flow_indexes(&self) -> bool {
        self.maker.as_ref().is_some_and(|maker| maker.next().is_some())
    }

    fn release(&mut self, buffer: BufferId) {
        let at = self.out.iter().position(|&b| b == buffer);
        let at = at.unwrap_or_else(|| panic!("buffers: {} was released twice", buffer.0));
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
            ChunkWriter::new(std::mem::take(&mut self.scratch), self.chunk_min, self.chunk_max, 0);
        let last_ns = self.queues[0].last_ns;
        let sealed_at = Timestamp::from_nanos(last_ns + self.older.as_nanos());
        let sealed = writer.seal(&[], sealed_at, true);
        let used = sealed.summary.length as usize;
        self.memory.with(buffer, &mut |b| b[..used].copy_from_slice(&sealed.buffer[..used]));
        self.scratch = sealed.buffer;
        let contents = Contents {
            first: self.next_packet,
            packets: 0,
            length: 0,
            queue: 0,
            from_ns: last_ns,
            step_ns: 0,
        };
        self.contents.insert(buffer, contents);
        self.told.add(&losses);
        Some(ReadyChunk { buffer, summary: sealed.summary, losses })
    }
}
