//! Any bytes as a capture file that is recorded: what the file's reader delivers is packed, recorded onto drives in
//! memory, listed, extracted and scrubbed. Whatever the file says, every packet comes back as it was delivered, or an
//! account names what happened to it.
//!
//! The first byte says how it is recorded: with parity or not, in a ring or not, and how often the rest is repeated.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use base::{BufferId, Buffers, DriveId, Duration, Instant, Timestamp};
use crossbeam_channel::{Receiver, Sender, unbounded};
use device::{Pages, Pool, Waker};
use format::chunk::PACKET_CHUNK_MAX_LEAST;
use format::layout::CHUNK_MAX_LEAST;
use format::pcapng::{self, Block, ReadPacket};
use format::{ChunkRecord, ChunkSummary, ChunkWriter, Count, Interface, Ledger, Packet};
use recorder::create::{self, create};
use recorder::extract::{Unreadable, Visitor, extract};
use recorder::open::{open, open_some, superblock};
use recorder::reader::Reader;
use recorder::run::{Feed, Recording};
use recorder::scrub::{Options, Step, scrub};
use recorder::takes::{Catalog, Entry, Take};
use recorder::{Config, ParityMeans, Placement, ReadyChunk, Recorder, TimeRange, WhenFull};
use source::capture_file::CaptureFile;
use source::{Ended, Filled, Loss, Packer, Pressure, Sink, Supply};
use uuid::Uuid;

/// Shortest that a layout allows, so that a short file fills many.
const CHUNK_MAX: u32 = CHUNK_MAX_LEAST;
const SEGMENT_BYTES: u64 = 256 << 10;
/// Four segments.
const MEMBER_BYTES: u64 = (2 << 20) + 4096;
const MEMBERS: u16 = 3;
/// Bytes of a file at most, repetitions included: enough to fill the members.
const FILE_BYTES_MAX: usize = 4 << 20;
/// Buffers for chunks of packets, for parity, and for metadata and reading.
const CHUNK_BUFFERS: u32 = 6;
const PARITY_BUFFERS: u32 = 4;
const OTHER_BUFFERS: u32 = 8;
/// The bytes of a packet that decide about its place in an order.
const PREFIX_BYTES: usize = 64;
/// `epb_dropcount`, which is the recorder's own.
const DROP_COUNT: u16 = 4;

/// How a file is recorded.
#[derive(Clone, Copy, Debug)]
struct How {
    parity: u8,
    when_full: WhenFull,
    repeat: usize,
}

impl How {
    fn of(byte: u8) -> Self {
        Self {
            parity: byte & 1,
            when_full: if byte & 2 == 0 { WhenFull::Stop } else { WhenFull::Wrap },
            repeat: [1, 2, 64, 4096][usize::from(byte >> 2 & 3)],
        }
    }
}

/// A packet as far as a recording keeps it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    time: u64,
    link_type: u16,
    original_length: u32,
    prefix: Vec<u8>,
}

/// Packets, and the bytes that truncating them takes from.
#[derive(Debug, Default)]
struct Contents {
    interfaces: Vec<Interface>,
    packets: Vec<Kept>,
    /// Of data and options.
    bytes: u64,
    /// Packets that the file says were lost.
    lost: u64,
}

impl Contents {
    fn add(&mut self, link_type: u16, time: u64, original_length: u32, data: &[u8], opts: &[u8]) {
        let prefix = data[..data.len().min(PREFIX_BYTES)].to_vec();
        self.packets.push(Kept { time, link_type, original_length, prefix });
        let options = pcapng::options(opts).filter(|(code, _)| *code != DROP_COUNT);
        let options = options.map(|(_, value)| 4 + value.len().next_multiple_of(4));
        self.bytes += (data.len() + options.sum::<usize>()) as u64;
    }

    fn count(&self) -> u64 {
        self.packets.len() as u64
    }
}

/// A sealed chunk, copied out of its buffer.
type Chunk = (Vec<u8>, ChunkSummary, Ledger);

/// Takes sealed chunks out of the packer's way.
struct SealedChunks {
    pool: Arc<Pool>,
    free: Sender<BufferId>,
    filled: Receiver<Filled>,
    chunks: VecDeque<Chunk>,
}

impl SealedChunks {
    fn drain(&mut self) {
        for Filled { buffer, summary, losses } in self.filled.try_iter() {
            let chunk = self.pool.hold(buffer);
            self.chunks.push_back((chunk[..summary.length as usize].to_vec(), summary, losses));
            // Nobody takes buffers any more once the packer has finished.
            self.free.send(chunk.release()).ok();
        }
    }
}

/// Passes packets on to the packer, and notes them.
struct Packing {
    packer: Packer,
    offered: Contents,
    sealed: SealedChunks,
}

impl Packing {
    fn new() -> Self {
        let (pool, _) = Pool::new(3, CHUNK_MAX as usize, Pages::Normal).expect("it is little");
        let (free, taken) = unbounded();
        let (ready, filled) = unbounded();
        for buffer in pool.buffer_ids() {
            free.send(buffer).expect("both ends are here");
        }
        let supply = Supply {
            pool: Arc::clone(&pool),
            free: taken,
            ready,
            waker: Waker::new().expect("there are descriptors left"),
            stop: Arc::new(AtomicBool::new(false)),
            bytes_left: None,
            chunk_min: 4096,
            chunk_max: PACKET_CHUNK_MAX_LEAST,
            flush_interval: Duration::from_secs(1),
            started: Timestamp::MIN,
        };
        let packer = Packer::new(supply, 0, Pressure::Waits, Arc::default());
        let sealed = SealedChunks { pool, free, filled, chunks: VecDeque::new() };
        Self { packer, offered: Contents::default(), sealed }
    }

    /// All chunks, and what was offered.
    fn finish(self) -> (VecDeque<Chunk>, Contents) {
        let Self { packer, offered, mut sealed } = self;
        packer.finish();
        sealed.drain();
        (sealed.chunks, offered)
    }
}

impl Sink for Packing {
    fn interface(&mut self, interface: &Interface) -> u32 {
        self.offered.interfaces.push(interface.clone());
        self.packer.interface(interface)
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        let link_type = self.offered.interfaces[packet.interface as usize].link_type.0;
        let (time, length) = (packet.timestamp.as_nanos(), packet.original_length);
        self.offered.add(link_type, time, length, packet.data, packet.options);
        self.packer.packet(packet)?;
        self.sealed.drain();
        Ok(())
    }

    fn lost(&mut self, interface: u32, stage: Loss, packets: u64, bytes: u64) {
        self.offered.lost = self.offered.lost.saturating_add(packets);
        self.packer.lost(interface, stage, packets, bytes);
    }

    fn tick(&mut self, now: Timestamp) -> Result<(), Ended> {
        self.packer.tick(now)
    }
}

/// Chunks that are sealed already.
struct Sealed {
    memory: MemoryBuffers,
    free: Vec<BufferId>,
    chunks: VecDeque<Chunk>,
}

impl Sealed {
    fn lend(&mut self, bytes: &[u8]) -> Option<BufferId> {
        let buffer = self.free.pop()?;
        self.memory.with(buffer, &mut |memory| memory[..bytes.len()].copy_from_slice(bytes));
        Some(buffer)
    }
}

impl Feed for Sealed {
    fn poll(&mut self, _: Instant) -> Option<ReadyChunk> {
        if self.free.is_empty() {
            return None;
        }
        let (bytes, summary, losses) = self.chunks.pop_front()?;
        Some(ReadyChunk { buffer: self.lend(&bytes)?, summary, losses })
    }

    fn next(&self, _: Instant) -> Option<Instant> {
        None
    }

    fn release(&mut self, buffer: BufferId) {
        self.free.push(buffer);
    }

    fn ended(&self) -> bool {
        self.chunks.is_empty()
    }

    fn end_chunk(&mut self) -> Option<ReadyChunk> {
        let memory = vec![0; PACKET_CHUNK_MAX_LEAST as usize];
        let writer = ChunkWriter::new(memory, 4096, PACKET_CHUNK_MAX_LEAST, 0);
        let sealed = writer.seal(&[], Timestamp::MIN, true);
        let buffer = self.lend(&sealed.buffer[..sealed.summary.length as usize])?;
        Some(ReadyChunk { buffer, summary: sealed.summary, losses: Ledger::default() })
    }
}

/// What an extraction returns.
#[derive(Default)]
struct Extracted {
    contents: Contents,
    unreadable: u64,
}

impl Visitor for Extracted {
    type Error = Infallible;

    fn packet(
        &mut self,
        interface: &Interface,
        packet: &ReadPacket<'_>,
        _: &Block<'_>,
        _: &ChunkRecord,
    ) -> Result<(), Infallible> {
        let ReadPacket { time, original_length, data, options, .. } = *packet;
        self.contents.add(interface.link_type.0, time, original_length, data, options);
        Ok(())
    }

    fn blocks(&mut self, _: &[Interface], _: &[u8], _: &ChunkRecord) -> Result<bool, Infallible> {
        Ok(false)
    }

    fn lost(&mut self, _: &Entry, _: &Unreadable) -> Result<(), Infallible> {
        self.unreadable += 1;
        Ok(())
    }

    fn progress(&mut self, _: u64, _: u64) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Drives in memory and the buffers in front of them.
struct Array {
    bank: MemoryBank,
    memory: MemoryBuffers,
}

impl Array {
    fn of(drives: usize) -> Self {
        let count = CHUNK_BUFFERS + PARITY_BUFFERS + OTHER_BUFFERS;
        let memory = MemoryBuffers::new(count, CHUNK_MAX as usize);
        let drive = MemoryDrive { capacity_bytes: MEMBER_BYTES, ..MemoryDrive::default() };
        Self { bank: MemoryBank::new(vec![drive; drives], memory.clone()), memory }
    }

    fn reader(&mut self) -> Reader<'_, MemoryBank, MemoryBuffers> {
        let buffers = names(CHUNK_BUFFERS + PARITY_BUFFERS, OTHER_BUFFERS);
        Reader { bank: &mut self.bank, memory: &self.memory, buffers }
    }

    fn record(&mut self, chunks: VecDeque<Chunk>, how: How) {
        let plan = create::Plan {
            uuid: Uuid::from_u128(1),
            name: "fuzz".into(),
            created: Timestamp::MIN,
            segment_bytes: Some(SEGMENT_BYTES),
            chunk_max: Some(CHUNK_MAX),
            identities: (0..MEMBERS).map(|at| at.to_string()).collect(),
            trim: false,
            parity: how.parity,
        };
        let mut reader = self.reader();
        create(&mut reader, &plan).expect("the drives work");
        let image = open(&mut reader).expect("the array is whole");
        let drives: Vec<DriveId> = image.members.iter().map(|member| member.drive).collect();
        let superblocks = drives.iter().map(|&drive| superblock(&mut reader, drive));
        let superblocks = superblocks.map(|found| found.expect("it was opened")).collect();
        let config = Config {
            take: Uuid::from_u128(2),
            started: Timestamp::from_nanos(1),
            placement: Placement::Adaptive,
            when_full: how.when_full,
            depth: 2,
            buffers: CHUNK_BUFFERS,
            drift_max: 1 << 20,
            flush_interval: Duration::from_millis(2),
            trim_ahead: 0,
            trim_interval: Duration::ZERO,
            rest: 0,
            rest_turn: Duration::ZERO,
            flow_indexes: false,
        };
        let buffers = names(CHUNK_BUFFERS, PARITY_BUFFERS);
        let means = ParityMeans { buffers, wait: Duration::from_millis(1) };
        let core = Recorder::with_parity(config, image, means);
        let free = names(0, CHUNK_BUFFERS);
        let feed = Sealed { memory: self.memory.clone(), free, chunks };
        let others = names(CHUNK_BUFFERS + PARITY_BUFFERS, OTHER_BUFFERS);
        let (bank, memory) = (&mut self.bank, &self.memory);
        let mut recording = Recording::new(core, bank, memory, feed, drives, superblocks, others);
        let end = Instant::START + Duration::from_secs(3600);
        while !recording.step(end, &mut Vec::new()).expect("a bank that goes on") {
            assert!(recording.now() < end, "the take ends");
            if recording.core().refusing() {
                recording.feed().chunks.clear();
            }
        }
    }

    /// The only take, and its packets.
    fn read(&mut self) -> (Take, Extracted) {
        let mut reader = self.reader();
        let image = open_some(&mut reader, true).expect("enough members are there");
        let catalog = Catalog::load(&mut reader, &image, TimeRange::ALL).expect("drives that read");
        let takes = catalog.takes();
        assert_eq!(takes.len(), 1, "one recording is one take");
        let mut extracted = Extracted::default();
        extract(&mut reader, &image, &catalog.entries, TimeRange::ALL, None, &mut extracted)
            .expect("drives that read");
        if !image.members.iter().any(|member| member.is_missing()) {
            scrub(&mut reader, &image, &catalog, Options::default(), |step| {
                assert!(matches!(step, Step::Read(_)), "a whole array is clean: {step:?}");
            })
            .expect("drives that read");
        }
        (takes[0].clone(), extracted)
    }

    /// The same array without a member.
    fn without(&self, member: u16) -> Self {
        let mut array = Self::of(usize::from(MEMBERS) - 1);
        let left = (0..MEMBERS).filter(|&at| at != member);
        for (to, from) in (0..).zip(left) {
            let bytes = self.bank.peek(DriveId(from), 0, MEMBER_BYTES as usize);
            array.bank.poke(DriveId(to), 0, &bytes);
        }
        array
    }
}

fn names(from: u32, count: u32) -> Vec<BufferId> {
    (from..from + count).map(BufferId).collect()
}

/// Records them and reads them back.
pub fn run(bytes: &[u8]) {
    let Some((&how, file)) = bytes.split_first() else { return };
    let how = How::of(how);
    let repeat = how.repeat.min(FILE_BYTES_MAX / file.len().max(1)).max(1);
    let mut packing = Packing::new();
    // A file that is not sound is recorded up to where it is.
    CaptureFile::from_reader("fuzz.pcapng", Cursor::new(file.repeat(repeat)))
        .run(&mut packing)
        .ok();
    let (chunks, offered) = packing.finish();
    for (_, summary, losses) in &chunks {
        assert!(summary.packets > 0 || !losses.lost_total().is_zero(), "an empty chunk");
    }
    let mut array = Array::of(MEMBERS.into());
    array.record(chunks, how);
    let (take, extracted) = array.read();
    judge(&offered, &take, &extracted, how);
    if how.parity > 0 {
        let (degraded, again) = array.without(bytes.len() as u16 % MEMBERS).read();
        judge_degraded(&take, extracted.contents, &degraded, again.contents);
    }
}

/// Holds what is read without a member to what is read with all. A ring that has overwritten the beginning of a take has
/// also overwritten some of the parity of what was left there, so only a whole take must come back whole.
fn judge_degraded(take: &Take, contents: Contents, degraded: &Take, again: Contents) {
    assert!(degraded.balances(), "{degraded:#?}");
    assert_eq!(again.count(), degraded.stored.packets, "extract and listing agree");
    let (contents, again) = (sorted(contents), sorted(again));
    if take.overwritten.is_zero() {
        assert_eq!((degraded.stored, degraded.missing()), (take.stored, Count::ZERO));
        assert!(again == contents, "a lost member loses nothing, or changes it");
    } else {
        let found = again.iter().all(|packet| contents.binary_search(packet).is_ok());
        assert!(found, "a packet that only a degraded array has");
    }
}

/// Holds the account of a recording and what is extracted from it to what was offered.
fn judge(offered: &Contents, take: &Take, extracted: &Extracted, how: How) {
    assert!(take.balances() && take.ended, "{take:#?}");
    assert_eq!((extracted.unreadable, take.missing()), (0, Count::ZERO), "{take:#?}");
    let contents = &extracted.contents;
    assert_eq!(contents.count(), take.stored.packets, "extract and listing agree");
    let whole = take.ledger.stored.packets == offered.count() && take.overwritten.is_zero();
    if whole {
        assert_eq!(take.ledger.offered.packets, offered.count().saturating_add(offered.lost));
        let cut = offered.bytes - contents.bytes;
        let texts: u64 = offered.interfaces.iter().map(pcapng::interface_bytes_cut).sum();
        let truncated = take.ledger.truncated;
        assert!((cut..=cut + texts).contains(&truncated.bytes), "{cut} bytes cut, {truncated:?}");
        assert_eq!(cut > 0, truncated.packets > 0, "{truncated:?}");
    } else {
        assert!(how.repeat > 1 || offered.bytes > MEMBER_BYTES, "so little fits: {take:#?}");
    }
    if how.when_full == WhenFull::Wrap {
        assert_eq!(take.ledger.stored.packets, offered.count(), "a ring takes everything");
    }
    let mut left = offered.packets.iter().collect::<Vec<_>>();
    left.sort();
    if whole {
        let mut found = contents.packets.iter().collect::<Vec<_>>();
        found.sort();
        assert!(found == left, "every packet comes back");
    } else {
        for packet in &contents.packets {
            assert!(left.binary_search(&packet).is_ok(), "nobody offered {packet:?}");
        }
    }
}

fn sorted(contents: Contents) -> Vec<Kept> {
    let mut packets = contents.packets;
    packets.sort();
    packets
}
