//! Flow indexes beside a recording. A thread reads the keys of chunks that were written, as long as their memory isn't needed for new
//! ones. Chunks that it has no time for are left out: searches read them, and they can be indexed later.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use base::{BufferId, DriveId};
use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};
use device::{Pool, Waker};
use format::index::{self, Footer};
use format::{ChunkRecord, Layout};
use recorder::FlowIndexPart;
use recorder::flow_indexes::Room;
use recorder::run::FilledSegment;
use search::{Condition, SegmentKeys};
use uuid::Uuid;

use super::options::FlowIndexing;
use crate::control::{Answer, InMemory, Reply};
use crate::flow_keys::{column_of, enter, has_keys, made};

/// What the indexing thread is given.
enum Job {
    /// A written chunk. Its buffer goes back afterwards.
    Chunk(BufferId),
    /// All chunks of a segment were given.
    Filled(FilledSegment),
    /// A reader searches what has no index yet.
    Exclude(Search),
}

/// A reader's search for chunks that hold no packet that meets a condition.
#[derive(Debug)]
pub struct Search {
    /// The condition.
    pub condition: Condition,
    /// Where the answer goes.
    pub answer: Sender<Answer>,
    /// Set once the reader waits no longer.
    pub left: Arc<AtomicBool>,
}

impl Search {
    /// Answers it.
    pub fn answer(self, known: InMemory) {
        self.answer.send(Ok(Reply::Excluded(known))).ok();
    }

    /// Whether the reader still waits for the answer.
    fn is_awaited(&self) -> bool {
        !self.left.load(Ordering::Relaxed)
    }
}

/// Segments with chunks that were left out that are remembered at most. They are indexed when the recording is over.
const INCOMPLETE_MAX: usize = 16;

/// What came of the flow indexes beside a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexCounts {
    /// Segments that were filled.
    pub filled: u64,
    /// Segments, of those, that got an index.
    pub indexed: u64,
    /// Chunks with packets that no index covers.
    pub chunks_left_out: u64,
    /// Bytes of the indexes.
    pub bytes: u64,
}

/// The recording's side of the indexing thread.
#[derive(Debug)]
pub struct Indexer {
    jobs: Option<Sender<Job>>,
    /// The same channel's other end, to take buffers back.
    waiting: Receiver<Job>,
    made: Receiver<Option<FlowIndexPart>>,
    /// Segments of which nothing has come back yet.
    outstanding: usize,
    thread: Option<JoinHandle<Left>>,
}

/// What the thread leaves.
#[derive(Debug, Default)]
pub struct Left {
    /// What it has done.
    pub counts: IndexCounts,
    /// The newest segments whose index lacks chunks.
    pub incomplete: Vec<Incomplete>,
}

/// A segment whose index lacks chunks.
#[derive(Debug)]
pub struct Incomplete {
    pub segment: FilledSegment,
    /// How many chunks with packets it lacks.
    pub left_out: u64,
    /// Whether there is an index at all.
    pub indexed: bool,
}

impl Indexer {
    /// Starts the thread. `members` are the drive and the layout of each; buffers go back to `free`.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(
        kinds: FlowIndexing,
        members: Vec<(DriveId, Layout)>,
        pool: Arc<Pool>,
        free: Sender<BufferId>,
        waker: Waker,
    ) -> Result<Self> {
        let (jobs, waiting) = unbounded();
        let (made_in, made) = unbounded();
        let indexing = Indexing {
            kinds,
            members,
            take: Uuid::nil(),
            open: HashMap::new(),
            spare: Vec::new(),
            left: Left::default(),
        };
        let jobs_taken = waiting.clone();
        let run = move || {
            // Capturing and writing come first. Where that can't be set, taking buffers back must do.
            rustix::process::nice(19).ok();
            let mut indexing = indexing;
            for job in jobs_taken {
                match job {
                    Job::Chunk(buffer) => {
                        let chunk = pool.hold(buffer);
                        indexing.enter(&chunk);
                        free.send(chunk.release()).ok();
                    }
                    Job::Filled(segment) => {
                        made_in.send(indexing.finish(segment)).ok();
                        waker.wake();
                    }
                    Job::Exclude(search) if search.is_awaited() => {
                        let known = indexing.exclude(&search.condition);
                        search.answer(known);
                    }
                    Job::Exclude(_) => {}
                }
            }
            indexing.left
        };
        let thread = thread::Builder::new().name("flow-index".into()).spawn(run);
        let thread = Some(thread.context("starting the thread for flow indexes")?);
        Ok(Self { jobs: Some(jobs), waiting, made, outstanding: 0, thread })
    }

    /// Gives the thread a chunk that was written. Gives its buffer back if there is no thread any more.
    pub fn offer(&self, buffer: BufferId) -> Option<BufferId> {
        match &self.jobs {
            Some(jobs) => jobs.send(Job::Chunk(buffer)).is_err().then_some(buffer),
            None => Some(buffer),
        }
    }

    /// Whether there is anything that the thread has not come to.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes back the buffers that the thread has not come to. Their chunks are left out.
    pub fn take_back(&mut self, mut free: impl FnMut(BufferId)) {
        let mut others = Vec::new();
        for job in self.waiting.try_iter() {
            match job {
                Job::Chunk(buffer) => free(buffer),
                Job::Exclude(search) if !search.is_awaited() => {}
                other => others.push(other),
            }
        }
        // All that was given before them is taken back or indexed.
        for job in others {
            self.send(job);
        }
    }

    /// Tells the thread that it was given all chunks of a segment.
    pub fn filled(&mut self, segment: FilledSegment) {
        if self.send(Job::Filled(segment)) {
            self.outstanding += 1;
        }
    }

    /// Has the thread answer which chunks of segments without an index hold nothing that meets a condition.
    pub fn exclude(&self, search: Search) {
        self.send(Job::Exclude(search));
    }

    fn send(&self, job: Job) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok())
    }

    /// A flow index that is ready.
    pub fn made(&mut self) -> Option<FlowIndexPart> {
        loop {
            match self.made.try_recv() {
                Ok(made) => {
                    self.outstanding = self.outstanding.saturating_sub(1);
                    if made.is_some() {
                        return made;
                    }
                }
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => {
                    self.outstanding = 0;
                    return None;
                }
            }
        }
    }

    /// Whether flow indexes are still to come.
    pub const fn is_busy(&self) -> bool {
        self.outstanding > 0
    }

    /// Segments that are filled and have no flow index yet.
    pub const fn segments_waiting(&self) -> usize {
        self.outstanding
    }

    /// Ends the thread, which gives back all buffers first.
    pub fn end(&mut self) -> Left {
        self.jobs = None;
        let left = self.thread.take().map(JoinHandle::join);
        left.and_then(std::result::Result::ok).unwrap_or_default()
    }
}

/// The keys of the chunks of a segment that is not full yet, as far as the thread has come.
#[derive(Debug)]
struct Open {
    keys: SegmentKeys,
    /// Numbers of the chunks whose keys were entered, and the column of each.
    entered: Vec<(u64, u32)>,
}

/// The thread's side.
struct Indexing {
    kinds: FlowIndexing,
    members: Vec<(DriveId, Layout)>,
    /// The take that is being recorded; nil before its first chunk.
    take: Uuid,
    /// By member and segment.
    open: HashMap<(u16, u64), Open>,
    /// Memory to be used again.
    spare: Vec<Open>,
    left: Left,
}

/// Chunks of which an answer tells at most: with two numbers of up to 20 digits each, it fits a line of the control socket.
const KNOWN_MAX: usize = 20_000;

/// Segments of a member whose keys are gathered at a time: the one that is being filled, and those before it that wait for a flush.
const OPEN_MAX: usize = 4;

impl Indexing {
    /// Enters a chunk's keys. Its header is stamped.
    fn enter(&mut self, chunk: &[u8]) {
        let Ok((place, record)) = ChunkRecord::read(chunk) else { return };
        let Some(&(_, layout)) = self.members.get(usize::from(place.member)) else { return };
        if !has_keys(&record) {
            return;
        }
        let (segment, column) = (layout.segment_at(place.offset), column_of(&layout, &place));
        if !self.open.contains_key(&(place.member, segment)) {
            self.forget_oldest(place.member);
        }
        let (spare, kinds) = (&mut self.spare, self.kinds);
        let open = self
            .open
            .entry((place.member, segment))
            .or_insert_with(|| spare.pop().unwrap_or_else(|| Open::new(kinds, &layout)));
        // A chunk that ends before it should was not entered whole.
        if enter(chunk, &record, column, &mut open.keys).is_some() {
            open.entered.push((record.sequence, column));
            self.take = record.take.uuid;
        }
    }

    /// Which of the chunks that were entered, and have no index yet, hold no packet that meets a condition. Of more than an answer
    /// holds, some are left out.
    fn exclude(&self, condition: &Condition) -> InMemory {
        let mut known = InMemory { take: self.take, ..InMemory::default() };
        for open in self.open.values() {
            let columns = open.keys.columns(condition);
            for &(sequence, column) in &open.entered {
                if known.known.len() == KNOWN_MAX {
                    return known;
                }
                known.known.push(sequence);
                if columns >> column & 1 == 0 {
                    known.excluded.push(sequence);
                }
            }
        }
        known
    }

    /// Forgets what was gathered of segments that were never filled: their member has failed, or their chunks were placed elsewhere.
    fn forget_oldest(&mut self, member: u16) {
        let of_member = self.open.iter().filter(|((at, _), _)| *at == member);
        if of_member.clone().count() < OPEN_MAX {
            return;
        }
        let oldest = of_member.min_by_key(|(_, open)| open.entered.last().copied());
        let Some(oldest) = oldest.map(|(at, _)| *at) else { return };
        let forgotten = self.open.remove(&oldest);
        self.spare.extend(forgotten.map(Open::cleared));
    }

    /// The flow index of a segment that was filled; None if it gets none.
    fn finish(&mut self, segment: FilledSegment) -> Option<FlowIndexPart> {
        let place = segment.place;
        let (drive, layout) = self.members.get(usize::from(place.member))?;
        let number = layout.segment_at(place.offset);
        let mut open = self.open.remove(&(place.member, number)).unwrap_or_else(|| {
            let spare = self.spare.pop();
            spare.unwrap_or_else(|| Open::new(self.kinds, layout))
        });
        let mut left_out = 0;
        for (place, record) in segment.chunks.iter().filter(|(_, record)| has_keys(record)) {
            if !open.entered.iter().any(|(entered, _)| *entered == record.sequence) {
                open.keys.add_unread(column_of(layout, place));
                left_out += 1;
            }
        }
        let part = match open.entered.is_empty() {
            true => None,
            false => footer(&segment).and_then(|footer| {
                let room = Room::in_full(*drive, layout, number, &footer);
                Some(room.part(number, made(&mut open.keys, &room)?))
            }),
        };
        let counts = &mut self.left.counts;
        counts.filled += 1;
        counts.chunks_left_out += left_out;
        if let Some(part) = &part {
            counts.indexed += 1;
            counts.bytes += part.bytes.len() as u64;
        }
        if left_out > 0 {
            let incomplete = &mut self.left.incomplete;
            if incomplete.len() == INCOMPLETE_MAX {
                incomplete.remove(0);
            }
            incomplete.push(Incomplete { segment, left_out, indexed: part.is_some() });
        }
        self.spare.push(open.cleared());
        part
    }
}

impl Open {
    fn new(kinds: FlowIndexing, layout: &Layout) -> Self {
        Self { keys: kinds.keys(layout.segment_bytes), entered: Vec::new() }
    }

    fn cleared(mut self) -> Self {
        self.keys.clear();
        self.entered.clear();
        self
    }
}

/// What a filled segment's index of chunks ends in.
pub fn footer(segment: &FilledSegment) -> Option<Footer> {
    let index = index::encode(&segment.place, segment.section_bytes, &segment.chunks);
    Footer::read(&index.tail).ok()
}

#[cfg(test)]
mod tests {
    use base::Timestamp;
    use format::flow_index::{FlowIndex, column};
    use format::{ChunkWriter, Interface, Ledger, LinkType, Packet, Place, TakeId};

    use search::IndexKey;

    use super::*;
    use crate::control::LINE_BYTES_MAX;

    const CHUNK_MAX: u32 = 64 << 10;
    const PACKET: [u8; 42] = {
        let mut packet = [0; 42];
        (packet[12], packet[14], packet[16]) = (8, 0x45, 0);
        (packet[17], packet[22], packet[23]) = (28, 64, 17);
        (packet[26], packet[30], packet[39]) = (10, 10, 8);
        packet
    };

    fn layout() -> Layout {
        Layout::new(16 << 20, 1 << 20, CHUNK_MAX).unwrap()
    }

    /// A chunk with a packet, at the place of its number in the first segment, and its bytes.
    fn chunk(number: u64) -> (Vec<u8>, (Place, ChunkRecord)) {
        let buffer = vec![0; CHUNK_MAX as usize];
        let mut writer = ChunkWriter::new(buffer, layout().chunk_min, CHUNK_MAX, 0);
        let interface = Interface {
            name: "test".into(),
            description: String::new(),
            link_type: LinkType::ETHERNET,
            snap_length: 0,
            filter: String::new(),
            speed_bits: 0,
        };
        writer.interface(0, &interface).unwrap();
        let packet = Packet {
            interface: 0,
            timestamp: Timestamp::from_nanos(number),
            original_length: 42,
            data: &PACKET,
            options: &[],
        };
        writer.packet(&packet, 0).unwrap();
        let mut sealed = writer.seal(&[], Timestamp::from_nanos(number), false);
        let offset = layout().segment_offset(0) + number * u64::from(CHUNK_MAX);
        let place = Place { array: Uuid::from_u128(1), member: 0, members: 1, offset };
        let (uuid, started) = (Uuid::from_u128(2), Timestamp::from_nanos(0));
        let record = ChunkRecord {
            take: TakeId { uuid, started, first_sequence: 100 },
            sequence: 100 + number,
            replaces: None,
            ledger: Ledger::default(),
            reused: None,
            reused_to_ns: 0,
            parity: None,
            group: None,
            last_parities: Default::default(),
            summary: sealed.summary,
        };
        record.stamp(&place, &mut sealed.buffer);
        (sealed.buffer, (place, record))
    }

    fn filled(chunks: Vec<(Place, ChunkRecord)>) -> FilledSegment {
        let used = chunks.len() as u64 * u64::from(CHUNK_MAX);
        let place = Place { offset: layout().segment_offset(0) + used, ..chunks[0].0 };
        FilledSegment { place, section_bytes: (1 << 20) - used, chunks: Arc::new(chunks) }
    }

    fn indexing() -> Indexing {
        Indexing {
            kinds: FlowIndexing::Flows,
            members: vec![(DriveId(0), layout())],
            take: Uuid::nil(),
            open: HashMap::new(),
            spare: Vec::new(),
            left: Left::default(),
        }
    }

    #[test]
    fn what_has_no_index_yet_is_known_from_memory() {
        let mut indexing = indexing();
        let condition = |port: u16| Condition::Key(IndexKey::Port(port));
        assert_eq!(indexing.exclude(&condition(0)), InMemory::default());
        let chunks: Vec<_> = (0..12).map(chunk).collect();
        for (bytes, _) in chunks.iter().step_by(4) {
            indexing.enter(bytes);
        }
        let (take, known) = (Uuid::from_u128(2), vec![100, 104, 108]);
        let of_other = InMemory { take, known: known.clone(), excluded: known.clone() };
        assert_eq!(indexing.exclude(&condition(9)), of_other);
        let of_own = InMemory { take, known, excluded: Vec::new() };
        assert_eq!(indexing.exclude(&condition(0)), of_own);
        assert_eq!(indexing.exclude(&Condition::Any), of_own);
        indexing.finish(filled(chunks.into_iter().map(|(_, listed)| listed).collect()));
        assert_eq!(indexing.exclude(&condition(9)), InMemory { take, ..InMemory::default() });
    }

    #[test]
    fn searches_whose_readers_have_left_are_given_up() {
        let ((jobs, waiting), (_, made)) = (unbounded(), unbounded());
        let mut indexer = Indexer { jobs: Some(jobs), waiting, made, outstanding: 0, thread: None };
        let (answer, answered) = unbounded();
        for has_left in [true, false, true] {
            let (condition, answer) = (Condition::Any, answer.clone());
            indexer.exclude(Search { condition, answer, left: Arc::new(has_left.into()) });
        }
        indexer.take_back(|_| panic!("there are no buffers"));
        let left: Vec<Job> = indexer.waiting.try_iter().collect();
        assert!(matches!(&left[..], [Job::Exclude(search)] if search.is_awaited()));
        assert!(answered.is_empty());
    }

    #[test]
    fn the_longest_answer_fits_a_line() {
        let numbers = vec![u64::MAX; KNOWN_MAX];
        let take = Uuid::max();
        let longest = InMemory { take, known: numbers.clone(), excluded: numbers };
        let answer: Answer = Ok(Reply::Excluded(longest));
        let line = serde_json::to_string(&answer).unwrap();
        assert!((line.len() as u64) < LINE_BYTES_MAX, "{}", line.len());
        assert_eq!(serde_json::from_str::<Answer>(&line).unwrap(), answer);
    }

    #[test]
    fn chunks_that_are_taken_back_are_left_out_of_the_index() {
        let mut indexing = indexing();
        let chunks: Vec<_> = (0..12).map(chunk).collect();
        for (bytes, _) in chunks.iter().step_by(4) {
            indexing.enter(bytes);
        }
        let segment = filled(chunks.into_iter().map(|(_, listed)| listed).collect());
        let footer = footer(&segment).unwrap();
        let part = indexing.finish(segment).expect("there is room for it");
        let index = FlowIndex::read(&part.bytes, &footer, 1 << 20).unwrap();
        let column_of = |number: u64| column(number * u64::from(CHUNK_MAX), 1 << 20);
        let left_out = (0..12).filter(|number| number % 4 != 0);
        let anything = left_out.fold(0, |columns, number| columns | 1 << column_of(number));
        assert_eq!((index.unread, index.anything), (9, anything));
        let Left { counts, incomplete } = indexing.left;
        assert_eq!((counts.filled, counts.indexed, counts.chunks_left_out), (1, 1, 9));
        assert_eq!((incomplete.len(), incomplete[0].left_out), (1, 9), "it can be completed");
    }

    #[test]
    fn a_segment_without_a_chunk_that_was_read_gets_no_index_and_the_newest_can_be_completed() {
        let mut indexing = indexing();
        for _ in 0..20 {
            let chunks = (0..3).map(|number| chunk(number).1).collect();
            assert_eq!(indexing.finish(filled(chunks)), None);
        }
        let Left { counts, incomplete } = indexing.left;
        assert_eq!((counts.filled, counts.indexed, counts.chunks_left_out), (20, 0, 60));
        assert_eq!(incomplete.len(), INCOMPLETE_MAX);
        assert!(incomplete.iter().all(|segment| !segment.indexed));
    }

    #[test]
    fn buffers_are_taken_back_and_filled_segments_stay_in_their_order_behind_them() {
        let (jobs, waiting) = unbounded();
        let (_made_in, made) = unbounded();
        let jobs = Some(jobs);
        let mut indexer = Indexer { jobs, waiting, made, outstanding: 0, thread: None };
        for buffer in 0..3 {
            assert_eq!(indexer.offer(BufferId(buffer)), None);
        }
        indexer.filled(filled(vec![chunk(0).1]));
        assert!(indexer.is_busy() && indexer.has_waiting());
        let mut free = Vec::new();
        indexer.take_back(|buffer| free.push(buffer.0));
        assert_eq!(free, [0, 1, 2]);
        assert!(matches!(indexer.waiting.try_recv(), Ok(Job::Filled(_))));
        assert!(!indexer.has_waiting() && indexer.is_busy());
    }
}
