//! Gets recorded packets back: chunks read ahead, checked, cut to a span of time, and those that
//! parallel queues filled at the same time merged in time order.

use std::collections::VecDeque;
use std::fmt;

use base::{
    Bank, BufferId, Buffers, Command, Completion, DeviceError, Duration, Instant, Operation, Rate,
};
use format::chunk::check_body;
use format::packets::{Item, Items};
use format::pcapng::{Block, Blocks, ReadPacket, read_packet};
use format::{ChunkRecord, Damage, Interface, Place};

use crate::open::ArrayImage;
use crate::protocol::TimeRange;
use crate::reader::{ReadError, Reader};
use crate::recover::{self, Groups};
use crate::takes::Entry;

/// Where extracted packets go.
pub trait Visitor {
    /// What can go wrong there.
    type Error;

    /// One packet; `block` is its whole enhanced packet block, and `record` its chunk's.
    ///
    /// # Errors
    /// Ends the extraction.
    fn packet(
        &mut self,
        interface: &Interface,
        packet: &ReadPacket<'_>,
        block: &Block<'_>,
        record: &ChunkRecord,
    ) -> Result<(), Self::Error>;

    /// All packets of a chunk at once, as their blocks lie there one behind the other; the
    /// interfaces are the chunk's. Returns whether they were taken; if not, they come one by one.
    ///
    /// # Errors
    /// Ends the extraction.
    fn blocks(
        &mut self,
        interfaces: &[Interface],
        blocks: &[u8],
        record: &ChunkRecord,
    ) -> Result<bool, Self::Error>;

    /// A chunk that could not be read and was made again by parity; its packets come as those of any
    /// other chunk.
    ///
    /// # Errors
    /// Ends the extraction.
    fn recovered(&mut self, _entry: &Entry, _why: &Unreadable) -> Result<(), Self::Error> {
        Ok(())
    }

    /// A chunk that was listed and can't be read: the drive fails, its bytes are damaged, or a ring has overwritten it since.
    ///
    /// # Errors
    /// Ends the extraction.
    fn lost(&mut self, entry: &Entry, why: &Unreadable) -> Result<(), Self::Error>;

    /// Called about once a chunk, with the chunks done so far and all of them.
    ///
    /// # Errors
    /// Ends the extraction.
    fn progress(&mut self, done: u64, of: u64) -> Result<(), Self::Error>;
}

/// Why a chunk in the index could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The drive failed to read it.
    Device(DeviceError),
    /// What is there doesn't check.
    Damaged(Damage),
    /// A ring has reused its place since the index was read.
    Overwritten,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(error) => error.fmt(f),
            Self::Damaged(damage) => damage.fmt(f),
            Self::Overwritten => f.write_str("the ring has reused its place"),
        }
    }
}

/// Where a chunk came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// It was read, and checks.
    Read,
    /// It could not be read for this reason, and parity gave it back.
    Recovered(Unreadable),
}

/// Why an extraction ended early.
#[derive(Debug)]
pub enum ExtractError<E> {
    /// The bank failed.
    Read(ReadError),
    /// The visitor did not want more.
    Visitor(E),
}

/// Chunks read ahead at most for each queue.
const AHEAD_MAX: usize = 8;

/// Looks at a segment that may be being rewritten, 10 ms apart, before a chunk in it is called damaged.
const REWRITE_LOOKS_MAX: u32 = 50;

/// Visits the packets of `entries` (one take's, its parity among them, in order of sequence number) that lie in `range`.
///
/// # Errors
/// [`ExtractError`]; chunks that can't be read are the visitor's to judge.
pub fn extract<B: Bank, M: Buffers, V: Visitor>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    entries: &[Entry],
    range: TimeRange,
    limit: Option<Rate>,
    visitor: &mut V,
) -> Result<(), ExtractError<V::Error>> {
    extract_wanted(reader, image, entries, &|_| true, range, limit, visitor)
}

/// The same with those chunks alone that are wanted. The others are there for what parity may have to give back.
///
/// # Errors
/// As [`extract`].
pub fn extract_wanted<B: Bank, M: Buffers, V: Visitor>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    entries: &[Entry],
    is_wanted: &dyn Fn(&Entry) -> bool,
    range: TimeRange,
    limit: Option<Rate>,
    visitor: &mut V,
) -> Result<(), ExtractError<V::Error>> {
    let (from, to) = (range.from.as_nanos(), range.to.as_nanos());
    let mut queues: Vec<(u16, Vec<Entry>)> = Vec::new();
    let mut total = 0;
    let is_read = |entry: &&Entry| entry.record.summary.overlaps(from, to) && is_wanted(entry);
    for entry in entries.iter().filter(is_read) {
        total += 1;
        let queue = entry.record.summary.queue;
        match queues.iter_mut().find(|(q, _)| *q == queue) {
            Some((_, list)) => list.push(*entry),
            None => queues.push((queue, vec![*entry])),
        }
    }
    for (_, list) in &mut queues {
        // A chunk that was placed again has a later number than its packets' place in the take.
        list.sort_by_key(|entry| entry.record.replaces.unwrap_or(entry.record.sequence));
    }
    let mut fetch = Fetch::new(reader, image, queues, Groups::of(entries), limit);
    fetch.total = total;
    let merged = merge(&mut fetch, range, visitor);
    if let Err(ExtractError::Visitor(_)) = merged {
        // Whoever reads next would take what is still being read ahead for its own.
        fetch.settle().map_err(ExtractError::Read)?;
    }
    merged
}

/// Visits the packets of all queues in order of time.
fn merge<B: Bank, M: Buffers, V: Visitor>(
    fetch: &mut Fetch<'_, '_, B, M>,
    range: TimeRange,
    visitor: &mut V,
) -> Result<(), ExtractError<V::Error>> {
    let single = fetch.lists.len() == 1;
    let mut streams: Vec<Option<Stream>> = (0..fetch.lists.len()).map(|_| None).collect();
    for (queue, stream) in streams.iter_mut().enumerate() {
        *stream = next_stream(fetch, queue, None, range, single, visitor)?;
    }
    loop {
        // Few queues: a linear search beats a heap.
        let Some((queue, _)) = streams
            .iter()
            .enumerate()
            .filter_map(|(queue, s)| s.as_ref().map(|s| (queue, s.time)))
            .min_by_key(|&(_, time)| time)
        else {
            return Ok(());
        };
        let until = streams
            .iter()
            .enumerate()
            .filter(|&(other, _)| other != queue)
            .filter_map(|(_, s)| s.as_ref().map(|s| s.time))
            .min()
            .unwrap_or(u64::MAX);
        let Some(stream) = streams[queue].as_mut() else { return Ok(()) };
        while !stream.ended && stream.time <= until {
            stream.visit(visitor).map_err(ExtractError::Visitor)?;
            stream.advance(range);
        }
        if stream.ended {
            let used = streams[queue].take();
            streams[queue] = next_stream(fetch, queue, used, range, single, visitor)?;
        }
    }
}

/// The next chunk of a queue, at its first packet to merge, if it has one; chunks that can go whole go on the way.
fn next_stream<B: Bank, M: Buffers, V: Visitor>(
    fetch: &mut Fetch<'_, '_, B, M>,
    queue: usize,
    used: Option<Stream>,
    range: TimeRange,
    single: bool,
    visitor: &mut V,
) -> Result<Option<Stream>, ExtractError<V::Error>> {
    let mut bytes = used.map(|s| s.bytes).unwrap_or_default();
    loop {
        let Some((entry, outcome)) = fetch.take(queue, &mut bytes).map_err(ExtractError::Read)?
        else {
            return Ok(None);
        };
        visitor.progress(fetch.taken, fetch.total).map_err(ExtractError::Visitor)?;
        let had = fetch.have(&entry, outcome, &mut bytes).map_err(ExtractError::Read)?;
        match had {
            Ok(Provenance::Read) => {}
            Ok(Provenance::Recovered(why)) => {
                visitor.recovered(&entry, &why).map_err(ExtractError::Visitor)?;
            }
            Err(why) => {
                visitor.lost(&entry, &why).map_err(ExtractError::Visitor)?;
                continue;
            }
        }
        let s = &entry.record.summary;
        let whole = s.first_ns >= range.from.as_nanos() && s.last_ns <= range.to.as_nanos();
        if single && whole && s.plain {
            let mut interfaces = Vec::new();
            let front = &bytes[..s.packets_start as usize];
            for block in
                Blocks::new(&front[format::section::HEADER_BYTES.min(front.len())..]).flatten()
            {
                if block.kind == format::pcapng::INTERFACE
                    && let Ok(interface) = format::pcapng::read_interface(&block)
                {
                    interfaces.push(interface);
                }
            }
            let blocks = &bytes[s.packets_start as usize..s.packets_end as usize];
            if visitor.blocks(&interfaces, blocks, &entry.record).map_err(ExtractError::Visitor)? {
                continue;
            }
        }
        match Stream::new(bytes, &entry.record, range) {
            Ok(stream) => return Ok(Some(stream)),
            Err(damage) => {
                bytes = Vec::new();
                let why = Unreadable::Damaged(damage);
                visitor.lost(&entry, &why).map_err(ExtractError::Visitor)?;
            }
        }
    }
}

/// Whether the bytes are the chunk that the index promised, whole.
pub(crate) fn check(bytes: &[u8], entry: &Entry) -> Result<(), Unreadable> {
    match ChunkRecord::read(bytes) {
        Ok((place, record)) if place == entry.place && record == entry.record => {
            check_body(bytes, &record).map_err(Unreadable::Damaged)
        }
        Ok((place, record)) if place == entry.place && record.sequence > entry.record.sequence => {
            Err(Unreadable::Overwritten)
        }
        Ok(_) => Err(Unreadable::Damaged(Damage::Elsewhere)),
        Err(damage) => Err(Unreadable::Damaged(damage)),
    }
}

/// A chunk being merged, at one of its packets.
#[derive(Debug)]
struct Stream {
    bytes: Vec<u8>,
    record: ChunkRecord,
    interfaces: Vec<Interface>,
    /// Offsets of the packet blocks within the range that are still to come, latest first.
    blocks: Vec<(u32, u64)>,
    at: u32,
    time: u64,
    ended: bool,
}

impl Stream {
    fn new(bytes: Vec<u8>, record: &ChunkRecord, range: TimeRange) -> Result<Self, Damage> {
        let mut interfaces = Vec::new();
        let mut blocks = Vec::with_capacity(record.summary.packets as usize);
        for item in Items::new(&bytes, record)? {
            match item? {
                Item::Interface(interface) => interfaces.push(interface),
                Item::Packet(packet, block) => {
                    blocks
                        .push(((format::section::HEADER_BYTES + block.offset) as u32, packet.time));
                }
            }
        }
        blocks.reverse();
        let record = *record;
        let mut stream = Self { bytes, record, interfaces, blocks, at: 0, time: 0, ended: false };
        stream.advance(range);
        Ok(stream)
    }

    /// Goes to the next packet within the range.
    fn advance(&mut self, range: TimeRange) {
        let inside = range.from.as_nanos()..=range.to.as_nanos();
        while let Some((at, time)) = self.blocks.pop() {
            if inside.contains(&time) {
                (self.at, self.time) = (at, time);
                return;
            }
        }
        self.ended = true;
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), V::Error> {
        let Some(Ok(block)) = Blocks::new(&self.bytes[self.at as usize..]).next() else {
            return Ok(());
        };
        let Ok(packet) = read_packet(&block) else { return Ok(()) };
        match self.interfaces.get(packet.interface as usize) {
            Some(interface) => visitor.packet(interface, &packet, &block, &self.record),
            None => Ok(()),
        }
    }
}

/// A chunk, and whether its bytes could be read.
pub(crate) type Fetched = (Entry, Result<(), Unreadable>);

/// Reads the chunks of several queues ahead, each in order.
#[derive(Debug)]
pub(crate) struct Fetch<'r, 'a, B, M> {
    reader: &'r mut Reader<'a, B, M>,
    image: &'r ArrayImage,
    lists: Vec<List>,
    groups: Groups,
    free: Vec<BufferId>,
    /// Kept for a look at a segment's start.
    spare: Option<BufferId>,
    spare_done: Option<Result<(), DeviceError>>,
    ahead: usize,
    limit: Option<Rate>,
    next_at: Instant,
    done: Vec<Completion>,
    /// Chunks taken, of how many.
    taken: u64,
    total: u64,
}

#[derive(Debug)]
struct List {
    entries: std::vec::IntoIter<Entry>,
    reading: VecDeque<Reading>,
}

#[derive(Debug)]
struct Reading {
    entry: Entry,
    buffer: BufferId,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The drive took no more commands when it was this one's turn.
    Waiting,
    Submitted,
    Done(Result<(), DeviceError>),
}

impl<'r, 'a, B: Bank, M: Buffers> Fetch<'r, 'a, B, M> {
    pub(crate) fn new(
        reader: &'r mut Reader<'a, B, M>,
        image: &'r ArrayImage,
        queues: Vec<(u16, Vec<Entry>)>,
        groups: Groups,
        limit: Option<Rate>,
    ) -> Self {
        let mut free = reader.buffers.clone();
        let spare = if free.len() > 1 { free.pop() } else { None };
        let ahead = (free.len() / queues.len().max(1)).clamp(1, AHEAD_MAX);
        let next_at = reader.bank.now();
        let lists = queues
            .into_iter()
            .map(|(_, entries)| List { entries: entries.into_iter(), reading: VecDeque::new() })
            .collect();
        Self {
            reader,
            image,
            lists,
            groups,
            free,
            spare,
            spare_done: None,
            ahead,
            limit,
            next_at,
            done: Vec::new(),
            taken: 0,
            total: 0,
        }
    }

    /// The next chunk of a queue, its bytes in `bytes`; None at the end.
    pub(crate) fn take(
        &mut self,
        queue: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<Fetched>, ReadError> {
        loop {
            // The chunk that is asked for may take the last buffer; reading ahead leaves one for
            // whichever queue is asked for next.
            self.fill(queue, 1, 0);
            self.fill(queue, self.ahead(), 1);
            match self.lists[queue].reading.front() {
                None => return Ok(None),
                Some(Reading { state: State::Done(_), .. }) => break,
                Some(Reading { state: State::Submitted, .. }) => self.reap(None)?,
                Some(Reading { state: State::Waiting, .. }) => {
                    let soon = self.reader.bank.now() + Duration::from_millis(1);
                    self.reap(Some(soon))?;
                }
            }
        }
        let Some(Reading { entry, buffer, state: State::Done(outcome) }) =
            self.lists[queue].reading.pop_front()
        else {
            return Ok(None);
        };
        self.taken += 1;
        let length = entry.record.summary.length as usize;
        if outcome.is_ok() {
            bytes.clear();
            let copy = &mut |memory: &mut [u8]| bytes.extend_from_slice(&memory[..length]);
            self.reader.memory.with(buffer, copy);
        }
        self.free.push(buffer);
        self.fill(queue, self.ahead(), 1);
        self.slow_down(length as u64)?;
        Ok(Some((entry, outcome.map_err(Unreadable::Device))))
    }

    /// Chunks of a queue to read at a time: few at first, which then come sooner.
    fn ahead(&self) -> usize {
        self.ahead.min(2 << self.taken.min(8))
    }

    /// Starts reads for one queue until `most` are under way or only `spare` buffers are left.
    fn fill(&mut self, queue: usize, most: usize, spare: usize) {
        let list = &mut self.lists[queue];
        while list.reading.len() < most && self.free.len() > spare {
            let Some(entry) = list.entries.next() else { break };
            let Some(buffer) = self.free.pop() else { break };
            list.reading.push_back(Reading { entry, buffer, state: State::Waiting });
        }
        for reading in list.reading.iter_mut().filter(|r| matches!(r.state, State::Waiting)) {
            let Entry { place, record } = reading.entry;
            let (buffer, length) = (reading.buffer, record.summary.length);
            let member = &self.image.members[usize::from(place.member)];
            if member.is_missing() {
                reading.state = State::Done(Err(DeviceError::Gone));
                continue;
            }
            let drive = member.drive;
            let operation = Operation::Read { offset: place.offset, length, buffer };
            if self
                .reader
                .bank
                .submit(Command { drive, operation, tag: u64::from(buffer.0) })
                .is_err()
            {
                return;
            }
            reading.state = State::Submitted;
        }
    }

    fn reap(&mut self, until: Option<Instant>) -> Result<(), ReadError> {
        self.done.clear();
        self.reader.bank.wait(until, &mut self.done)?;
        for completion in self.done.drain(..) {
            if self.spare.is_some_and(|spare| u64::from(spare.0) == completion.tag) {
                self.spare_done = Some(completion.outcome);
                continue;
            }
            let mut all = self.lists.iter_mut().flat_map(|list| &mut list.reading);
            if let Some(reading) = all.find(|r| u64::from(r.buffer.0) == completion.tag) {
                reading.state = State::Done(completion.outcome);
            }
        }
        Ok(())
    }

    /// Waits for all reads under way.
    fn settle(&mut self) -> Result<(), ReadError> {
        let is_under_way = |reading: &Reading| matches!(reading.state, State::Submitted);
        while self.lists.iter().flat_map(|list| &list.reading).any(is_under_way) {
            self.reap(None)?;
        }
        Ok(())
    }

    /// Has a chunk, as it was read or by parity; its bytes are in `bytes` then.
    fn have(
        &mut self,
        entry: &Entry,
        outcome: Result<(), Unreadable>,
        bytes: &mut Vec<u8>,
    ) -> Result<Result<Provenance, Unreadable>, ReadError> {
        let why = match self.judge(entry, outcome, bytes)? {
            Ok(()) => return Ok(Ok(Provenance::Read)),
            Err(why) => why,
        };
        // What the ring has overwritten may still stand in its group's parity, which other members hold.
        let sequence = entry.record.sequence;
        if self.groups.around(sequence).is_empty() {
            return Ok(Err(why));
        }
        // What is being read ahead comes in first, or its completions would go astray.
        self.settle()?;
        let buffers = self.free.iter().copied().chain(self.spare).collect();
        let Reader { bank, memory, .. } = &mut *self.reader;
        let mut reader = Reader { bank: &mut **bank, memory: *memory, buffers };
        let made = recover::chunk(&mut reader, self.image, &self.groups, sequence)?;
        self.slow_down(u64::from(entry.record.summary.length) * self.image.members.len() as u64)?;
        Ok(match made {
            Some((made, chunk)) if made.record == entry.record => {
                *bytes = chunk;
                Ok(Provenance::Recovered(why))
            }
            _ => Err(why),
        })
    }

    /// Whether the bytes are the chunk that the index promised. If not, a ring may have reused the
    /// segment since: its first chunk tells.
    pub(crate) fn judge(
        &mut self,
        entry: &Entry,
        outcome: Result<(), Unreadable>,
        bytes: &[u8],
    ) -> Result<Result<(), Unreadable>, ReadError> {
        let checked = outcome.and_then(|()| check(bytes, entry));
        let Err(Unreadable::Damaged(damage)) = checked else { return Ok(checked) };
        // With a single buffer there is none to look with.
        let Some(spare) = self.spare else { return Ok(Err(Unreadable::Damaged(damage))) };
        for _ in 0..REWRITE_LOOKS_MAX {
            match self.first_sequence(entry, spare)? {
                Some(first) if first > entry.record.sequence => {
                    return Ok(Err(Unreadable::Overwritten));
                }
                Some(_) => break,
                // It is being written, or damaged.
                None => {
                    let soon = self.reader.bank.now() + Duration::from_millis(10);
                    while self.reader.bank.now() < soon {
                        self.reap(Some(soon))?;
                    }
                }
            }
        }
        Ok(Err(Unreadable::Damaged(damage)))
    }

    /// The number of the chunk at the start of the segment that should hold `entry`, if one is
    /// there and can be read.
    fn first_sequence(
        &mut self,
        entry: &Entry,
        buffer: BufferId,
    ) -> Result<Option<u64>, ReadError> {
        let member = &self.image.members[usize::from(entry.place.member)];
        let layout = member.layout;
        let within = entry.place.offset.saturating_sub(layout.segment_offset(0));
        let offset = layout.segment_offset(within / layout.segment_bytes);
        let length = format::PAGE_BYTES as u32;
        let operation = Operation::Read { offset, length, buffer };
        let command = Command { drive: member.drive, operation, tag: u64::from(buffer.0) };
        while self.reader.bank.submit(command).is_err() {
            let soon = self.reader.bank.now() + Duration::from_millis(1);
            self.reap(Some(soon))?;
        }
        let outcome = loop {
            match self.spare_done.take() {
                Some(outcome) => break outcome,
                None => self.reap(None)?,
            }
        };
        let mut found = None;
        if outcome.is_ok() {
            self.reader.memory.with(buffer, &mut |bytes| {
                let read = ChunkRecord::read(&bytes[..length as usize]).ok();
                // Another member's chunk says nothing about this one's ring: somebody put it there.
                let here = |place: &format::Place| {
                    let Place { array, member, .. } = entry.place;
                    let same_member = place.member == member;
                    place.array == array && same_member && place.offset == offset
                };
                found = read.filter(|(place, _)| here(place)).map(|(_, r)| r.sequence);
            });
        }
        Ok(found)
    }

    /// Waits until `bytes` more are due at the limit, so that writes don't starve.
    fn slow_down(&mut self, bytes: u64) -> Result<(), ReadError> {
        let Some(limit) = self.limit else { return Ok(()) };
        self.next_at = self.next_at.max(self.reader.bank.now()) + limit.time_for(bytes);
        while self.reader.bank.now() < self.next_at {
            self.reap(Some(self.next_at))?;
        }
        Ok(())
    }
}

/// Reads every chunk and hands each to `each` with where it came from, or why it could not be read.
///
/// # Errors
/// [`ReadError`] if the bank fails.
pub fn verify<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    entries: &[Entry],
    mut each: impl FnMut(&Entry, Result<Provenance, Unreadable>),
) -> Result<(), ReadError> {
    let mut fetch =
        Fetch::new(reader, image, vec![(0, entries.to_vec())], Groups::of(entries), None);
    let mut bytes = Vec::new();
    while let Some((entry, outcome)) = fetch.take(0, &mut bytes)? {
        let had = fetch.have(&entry, outcome, &mut bytes)?;
        each(&entry, had);
    }
    Ok(())
}
