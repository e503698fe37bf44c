//! Finding one flow in 10 TB, in virtual time: an array that fills three simulated drives is opened, listed and searched by its flow
//! indexes, and the chunks that may hold the flow are read. The recorder's own code does so, as it does on real drives.
//!
//! What such a search reads is on the drives: what opening an array looks at, the index of each segment's chunks, and its flow index.
//! Flow indexes have two thousand keys, and not a hundred thousand, so that they are made in time: of a longer one, no more is read.
//! The drives were filled before, so that a chunk takes as long to read as one with packets in it.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use base::memory::MemoryBuffers;
use base::{Bank, BufferId, Buffers, Command, DriveId, Operation, Timestamp};
use format::flow_index::{Facts, FlowIndex, column, pages_max};
use format::index::{self, Footer};
use format::{ChunkRecord, ChunkSummary, Layout, Ledger, PAGE_BYTES, Place, TakeId};
use recorder::create::{Plan, create};
use recorder::flow_indexes::{self, IndexedSegment, Room};
use recorder::open::open;
use recorder::reader::{Range, Reader};
use recorder::takes::{Catalog, Entry};
use recorder::{ArrayImage, TimeRange};
use ssd::SimBank;
use target::{Profiles, SimDrives};
use uuid::Uuid;

use super::Setting;
use super::comparison::{Comparison, Goal, Unit};
use super::rounds::Figures;

const DRIVES: &str = "intel-d7-p5510-3.84tb";
const MEMBERS: u16 = 3;
/// Bytes of segments that are full.
const ARRAY_BYTES: u64 = 10_000_000_000_000;
const CHUNKS: u64 = 64;
/// As many as the program has for arrays with chunks of 4 MiB.
const BUFFERS: u32 = 32;
/// Keys in each flow index, without the wanted one.
const KEYS: u64 = 2000;
/// The key that is looked for, by its hash; it lies in one of so many segments of a member.
const WANTED: u64 = 0x5eed_cafe_f00d_beef;
const WANTED_EVERY: u64 = 3000;
/// Columns of a segment that hold it.
const WANTED_COLUMNS: u64 = 0xff << 20;
/// Segments that are looked up at a time, as the program does.
const SEGMENTS_AT_A_TIME: usize = 1024;

type Memory = MemoryBuffers;
type Drives<'a> = Reader<'a, SimBank<Memory>, Memory>;

/// Runs it.
///
/// # Errors
/// If the simulated drives can't be made, or the search misses chunks that hold the key.
pub fn run(_: &Setting) -> Result<Vec<Comparison>> {
    let targets = format!("sim:{DRIVES}:full*{MEMBERS}").parse()?;
    let drives = SimDrives::new(&[targets], None, &Profiles::of_user())?;
    let memory = Memory::new(BUFFERS, format::layout::CHUNK_MAX_DEFAULT as usize);
    let mut bank = drives.bank_with_data(memory.clone())?;
    let buffers = memory.buffer_ids().collect();
    let mut reader = Reader { bank: &mut bank, memory: &memory, buffers };
    let segments = fill(&mut reader)?;
    let begun = Instant::now();
    let mut laps = Laps { at: vec![reader.bank.now()] };
    let image = open(&mut reader)?;
    laps.lap(reader.bank);
    let found = search(&mut reader, &image, &mut laps)?;
    let computed = begun.elapsed().as_secs_f64();
    ensure!(found >= segments / WANTED_EVERY * 8, "{found} chunks were found");
    let whole =
        format!("a flow in {found} chunks of 10 TB on {MEMBERS} simulated drives, in virtual time");
    let [first, .., last] = laps.at[..] else { unreachable!("there are laps") };
    let mut rows = vec![row(whole, last.since(first).as_secs_f64(), Some(Goal::Value(1.0)))];
    let parts =
        ["opening the array", "listing its chunks", "looking up the flow", "reading chunks"];
    for (part, lap) in parts.iter().zip(laps.at.windows(2)) {
        rows.push(row(format!("of that, {part}"), lap[1].since(lap[0]).as_secs_f64(), None));
    }
    rows.push(row(
        "what this machine took for all that, simulating the drives included".into(),
        computed,
        None,
    ));
    Ok(rows)
}

/// A row of the table, in seconds.
fn row(what: String, seconds: f64, goal: Option<Goal>) -> Comparison {
    let ours = Figures(vec![seconds]);
    Comparison { benchmark: "search-large", what, reference: None, ours, unit: Unit::Seconds, goal }
}

/// When each part ended, in virtual time.
struct Laps {
    at: Vec<base::Instant>,
}

impl Laps {
    fn lap(&mut self, bank: &impl Bank) {
        self.at.push(bank.now());
    }
}

/// Fills the drives. Returns how many segments that are.
fn fill(reader: &mut Drives<'_>) -> Result<u64> {
    let plan = Plan {
        uuid: Uuid::from_u128(10),
        name: "large".to_owned(),
        created: Timestamp::from_nanos(1),
        segment_bytes: None,
        chunk_max: None,
        identities: reader.bank.drives().iter().map(|drive| drive.name.clone()).collect(),
        trim: false,
        parity: 0,
    };
    create(reader, &plan)?;
    let image = open(reader)?;
    let mut writer = Writer { reader, under_way: Vec::new() };
    let mut segments = 0;
    for (number, member) in (0..MEMBERS).zip(&image.members) {
        let each = ARRAY_BYTES / u64::from(MEMBERS) / member.layout.segment_bytes;
        ensure!(each < member.layout.segments, "{DRIVES} has no room for {each} segments");
        for segment in 0..each {
            writer.segment(&image, number, segment)?;
        }
        segments += each;
    }
    writer.finish()?;
    Ok(segments)
}

/// Writes with all buffers.
struct Writer<'a, 'b> {
    reader: &'a mut Drives<'b>,
    under_way: Vec<BufferId>,
}

impl Writer<'_, '_> {
    /// Writes what a search reads of a segment.
    fn segment(&mut self, image: &ArrayImage, member: u16, segment: u64) -> Result<()> {
        let &recorder::MemberImage { drive, layout, .. } = &image.members[usize::from(member)];
        let start = layout.segment_offset(segment);
        let place = Place { array: image.uuid, member, members: MEMBERS, offset: start };
        let chunks: Vec<_> = (0..CHUNKS).map(|n| chunk(&place, &layout, segment, n)).collect();
        let (first, record) = &chunks[0];
        let mut header = vec![0; PAGE_BYTES as usize];
        record.stamp(first, &mut header);
        self.write(drive, start, &header)?;
        let used = CHUNKS * u64::from(layout.chunk_max);
        let end = Place { offset: start + used, ..place };
        let index = index::encode(&end, layout.segment_bytes - used, &chunks);
        self.write(drive, end.offset, &index.front)?;
        self.write(drive, start + layout.segment_bytes - index.tail.len() as u64, &index.tail)?;
        let footer = Footer::read(&index.tail).ok().context("a footer")?;
        let room = Room::in_full(drive, &layout, segment, &footer);
        let pages = pages_max(&footer, layout.segment_bytes);
        let flows = FlowIndex::encode(&room.subject, &facts(), &keys(member, segment), pages);
        self.write(drive, room.offset, &flows.context("room for a flow index")?)
    }

    fn write(&mut self, drive: DriveId, offset: u64, bytes: &[u8]) -> Result<()> {
        while self.reader.buffers.is_empty() {
            self.wait()?;
        }
        let buffer = self.reader.buffers.pop().context("a buffer")?;
        self.reader.memory.with(buffer, &mut |memory| memory[..bytes.len()].copy_from_slice(bytes));
        let operation = Operation::Write { offset, length: bytes.len() as u32, buffer, fua: false };
        let command = Command { drive, operation, tag: u64::from(buffer.0) };
        while self.reader.bank.submit(command).is_err() {
            self.wait()?;
        }
        self.under_way.push(buffer);
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        let mut done = Vec::new();
        self.reader.bank.wait(None, &mut done)?;
        for completion in done {
            ensure!(completion.outcome.is_ok(), "a write failed: {:?}", completion.outcome);
            let buffer = BufferId(completion.tag as u32);
            self.under_way.retain(|&one| one != buffer);
            self.reader.buffers.push(buffer);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        while !self.under_way.is_empty() {
            self.wait()?;
        }
        Ok(())
    }
}

/// A full chunk of a segment, with its place. Members take turns.
fn chunk(
    segment_place: &Place,
    layout: &Layout,
    segment: u64,
    number: u64,
) -> (Place, ChunkRecord) {
    let started = Timestamp::from_nanos(1_000_000_000);
    let turn = (segment * CHUNKS + number) * u64::from(MEMBERS) + u64::from(segment_place.member);
    let at_ns = started.as_nanos() + turn * 1_000_000;
    let length = layout.chunk_max;
    let summary = ChunkSummary {
        length,
        packets: 10_000,
        packets_end: length,
        first_ns: at_ns,
        last_ns: at_ns + 1_000_000,
        sealed_ns: at_ns + 1_000_000,
        ..ChunkSummary::EMPTY
    };
    let offset = segment_place.offset + number * u64::from(length);
    let record = ChunkRecord {
        take: TakeId { uuid: Uuid::from_u128(11), started, first_sequence: 1_000_000 },
        sequence: 1_000_000 + turn,
        replaces: None,
        ledger: Ledger::default(),
        reused: None,
        reused_to_ns: 0,
        parity: None,
        group: None,
        last_parities: Default::default(),
        summary,
    };
    (Place { offset, ..*segment_place }, record)
}

fn facts() -> Facts {
    Facts { kinds: 31, hash_key: [7; 16], anything: 0, fragments: 0, unread: 0 }
}

/// The keys of a segment, by their hashes, with their columns.
fn keys(member: u16, segment: u64) -> Vec<(u64, u64)> {
    let mut random = base::Random::new(u64::from(member) << 32 | segment);
    let mut keys: Vec<_> = (0..KEYS).map(|_| (random.bits(), 1 << random.below(64))).collect();
    if segment.is_multiple_of(WANTED_EVERY) {
        keys.push((WANTED, WANTED_COLUMNS));
    }
    keys
}

/// Lists the array, looks the flow up, and reads the chunks that may hold it. Returns how many they are.
fn search(reader: &mut Drives<'_>, image: &ArrayImage, laps: &mut Laps) -> Result<u64> {
    let range = TimeRange { from: Timestamp::MIN, to: Timestamp::MAX };
    let catalog = Catalog::load(reader, image, range)?;
    laps.lap(reader.bank);
    let segment_of = |entry: &Entry| {
        let layout = &image.members[usize::from(entry.place.member)].layout;
        (entry.place.member, layout.segment_at(entry.place.offset))
    };
    let mut places: Vec<(u16, u64)> = catalog.entries.iter().map(segment_of).collect();
    places.sort_unstable();
    places.dedup();
    let mut candidates = std::collections::HashMap::new();
    for places in places.chunks(SEGMENTS_AT_A_TIME) {
        let segments = flow_indexes::find(reader, image, places)?;
        let hashes = vec![vec![WANTED]; segments.len()];
        let columns = flow_indexes::columns(reader, &segments, &hashes)?;
        let is_read = |one: &IndexedSegment| one.flows.is_some();
        ensure!(segments.iter().all(is_read), "a flow index was not found");
        candidates
            .extend(segments.iter().zip(columns).map(|(one, c)| ((one.member, one.segment), c[0])));
    }
    laps.lap(reader.bank);
    let may_hold = |entry: &&Entry| {
        let (layout, at) =
            (&image.members[usize::from(entry.place.member)].layout, segment_of(entry));
        let offset = entry.place.offset - layout.segment_offset(at.1);
        candidates[&at] >> column(offset, layout.segment_bytes) & 1 == 1
    };
    let range = |entry: &Entry| Range {
        drive: image.members[usize::from(entry.place.member)].drive,
        offset: entry.place.offset,
        length: entry.record.summary.length,
    };
    let ranges: Vec<Range> = catalog.entries.iter().filter(may_hold).map(range).collect();
    let mut read = 0;
    reader.scatter(&ranges, |_, bytes| read += u64::from(bytes.is_ok()))?;
    laps.lap(reader.bank);
    ensure!(read == ranges.len() as u64, "{read} of {} chunks were read", ranges.len());
    Ok(read)
}
