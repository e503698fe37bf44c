//! The run loop of a recording, the same on real drives and simulated ones: it carries the core's
//! outputs to the bank and the bank's completions to the core.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use base::{
    Bank, BankError, BufferId, Buffers, Command, Completion, DeviceError, DriveId, Duration,
    Instant, Operation,
};
use format::layout::SUPERBLOCK_BYTES;
use format::parity::{self, OVERHEAD_BYTES};
use format::superblock::Protected;
use format::{ChunkRecord, PAGE_BYTES, Place, Superblock, index};

use crate::machine::Recorder;
use crate::protocol::{
    Event, FlowIndexPart, Fold, IndexPart, Input, Output, ReadyChunk, TimeRange,
};
use crate::superblocks::{Change, Target, Update, UpdateCommand, changed};
use crate::take_records::TakeRecords;

/// Where chunks come from and buffers go back to.
pub trait Feed {
    /// A chunk that is ready at `now`, if any.
    fn poll(&mut self, now: Instant) -> Option<ReadyChunk>;

    /// When to ask again if nothing else happens; None if the feed wakes the bank by itself.
    fn next(&self, now: Instant) -> Option<Instant>;

    /// A buffer is free again.
    fn release(&mut self, buffer: BufferId);

    /// A buffer is free again whose chunk was placed and written: it is still there, with its header.
    fn release_written(&mut self, buffer: BufferId) {
        self.release(buffer);
    }

    /// Whether no chunk will come any more.
    fn ended(&self) -> bool;

    /// A chunk without packets that ends the take, with the losses that no chunk has told yet.
    /// Asked for once, after [`Feed::ended`]; None if there is no buffer for it yet.
    fn end_chunk(&mut self) -> Option<ReadyChunk>;

    /// A segment is full, and its chunks are written and flushed.
    fn segment_filled(&mut self, _segment: FilledSegment) {}

    /// A flow index that is ready to be written, if any. It is not if its segment was reused meanwhile.
    fn flow_index(&mut self) -> Option<FlowIndexPart> {
        None
    }

    /// Whether flow indexes of filled segments are still to come.
    fn makes_flow_indexes(&self) -> bool {
        false
    }
}

/// A full segment.
#[derive(Clone, Debug)]
pub struct FilledSegment {
    /// Where the section of its index starts.
    pub place: Place,
    /// From there to the segment's end.
    pub section_bytes: u64,
    /// Its chunks in order.
    pub chunks: Arc<Vec<(Place, ChunkRecord)>>,
}

/// What is still to be written beside chunks. Its bytes are made when there is memory for them: in virtual time never.
#[derive(Debug)]
struct Metadata {
    drive: DriveId,
    offset: u64,
    length: u32,
    contents: Contents,
    owner: Owner,
}

#[derive(Debug)]
enum Contents {
    Index {
        place: Place,
        section_bytes: u64,
        chunks: Arc<Vec<(Place, ChunkRecord)>>,
        part: IndexPart,
    },
    FlowIndex(Arc<[u8]>),
    Superblock {
        superblock: Superblock,
    },
    Page(Box<[u8]>),
}

impl Contents {
    fn encode(&self, offset: u64) -> Vec<u8> {
        match self {
            Self::Index { place, section_bytes, chunks, part } => {
                let written = index::encode(place, *section_bytes, chunks);
                match part {
                    IndexPart::Front => written.front,
                    IndexPart::Tail => written.tail,
                }
            }
            Self::FlowIndex(bytes) => bytes.to_vec(),
            Self::Superblock { superblock } => superblock.encode(offset),
            Self::Page(page) => page.to_vec(),
        }
    }
}

/// Whom a command under way belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// The core, by its tag.
    Core(u64),
    /// The update of superblocks, or of the records of takes.
    Update,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    owner: Owner,
    /// Given back when done; chunk buffers are the core's to release.
    buffer: Option<BufferId>,
}

/// A recording under way.
pub struct Recording<'a, B, M, F> {
    core: Recorder,
    bank: &'a mut B,
    memory: &'a M,
    feed: F,
    /// Drives by member.
    drives: Vec<DriveId>,
    superblocks: Vec<Superblock>,
    /// What the take's record joins when the take is over, until then.
    take_records: Option<TakeRecords>,
    metadata_free: Vec<BufferId>,
    metadata: VecDeque<Metadata>,
    /// Commands that a drive did not take yet.
    commands: VecDeque<(DriveId, Operation, Owner, Option<BufferId>)>,
    /// By tag; the places of those that are done are empty, and used again.
    under_way: Vec<Option<UnderWay>>,
    free_tags: Vec<u32>,
    update: Option<Update>,
    update_outcome: Result<(), DeviceError>,
    /// Drives that failed in an update. Their superblocks are left alone: one of the copies may be all there is.
    update_failed: Vec<DriveId>,
    wants_end: bool,
    /// Which buffers, by number, hold a stamped chunk: it was placed, and no other chunk was made there since.
    stamped: Vec<bool>,
    /// The feed has got a buffer since it was asked for chunks.
    released: bool,
    stopped: bool,
    done: Vec<Completion>,
}

impl<B, M, F> fmt::Debug for Recording<'_, B, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("core", &self.core).finish_non_exhaustive()
    }
}

impl<'a, B: Bank, M: Buffers, F: Feed> Recording<'a, B, M, F> {
    /// A recording that writes metadata through `metadata_buffers` (two for each member suffice).
    ///
    /// # Panics
    /// Without metadata buffers.
    pub fn new(
        core: Recorder,
        bank: &'a mut B,
        memory: &'a M,
        feed: F,
        drives: Vec<DriveId>,
        superblocks: Vec<Superblock>,
        metadata_buffers: Vec<BufferId>,
    ) -> Self {
        assert!(!metadata_buffers.is_empty(), "indexes and superblocks need a buffer");
        let differ = core.superblocks_differ;
        let mut recording = Self {
            core,
            bank,
            memory,
            feed,
            drives,
            superblocks,
            take_records: None,
            metadata_free: metadata_buffers,
            metadata: VecDeque::new(),
            commands: VecDeque::new(),
            under_way: Vec::new(),
            free_tags: Vec::new(),
            update: None,
            update_outcome: Ok(()),
            update_failed: Vec::new(),
            wants_end: false,
            stamped: Vec::new(),
            released: false,
            stopped: false,
            done: Vec::new(),
        };
        if differ {
            // What a change that was cut short has left in one place only would go with that.
            recording.change(&Change::Settle);
        }
        recording
    }

    /// Keeps the take's record beside these when the take is over, where a ring does not reach it.
    #[must_use]
    pub fn keeping_record(self, take_records: TakeRecords) -> Self {
        Self { take_records: Some(take_records), ..self }
    }

    /// The state machine, for its figures.
    pub fn core(&self) -> &Recorder {
        &self.core
    }

    /// Where chunks come from.
    pub fn feed(&mut self) -> &mut F {
        &mut self.feed
    }

    /// The drives.
    pub fn bank(&self) -> &B {
        self.bank
    }

    /// The bank's clock.
    pub fn now(&self) -> Instant {
        self.bank.now()
    }

    /// The protected ranges as the superblocks have them, or will.
    pub fn protected(&self) -> &[Protected] {
        self.superblocks.first().map_or(&[], |s| &s.protected)
    }

    /// Protects these ranges from now on and starts to write them to every superblock. False if
    /// an update is still under way: try again.
    pub fn protect(&mut self, ranges: Vec<Protected>) -> bool {
        if self.update.is_some() {
            return false;
        }
        self.change(&Change::Protect(ranges));
        true
    }

    /// Starts a change of the superblocks.
    fn change(&mut self, change: &Change) {
        self.superblocks = changed(&self.superblocks, change);
        let spans = self.protected().iter().map(|p| TimeRange { from: p.from, to: p.to }).collect();
        self.core.handle(self.bank.now(), Input::Protect(spans));
        if self.update_failed.is_empty() {
            self.update_outcome = Ok(());
        }
        let target = |superblock: &Superblock| {
            let drive = self.drives[usize::from(superblock.member)];
            Target {
                drive,
                capacity_bytes: self.bank.drives()[drive.index()].capacity_bytes,
                superblock: superblock.clone(),
                first_copy_bad: self.core.first_copies_bad.contains(&superblock.member),
            }
        };
        let targets = self.superblocks.iter().map(target);
        let working = targets.filter(|target| !self.update_failed.contains(&target.drive));
        self.update = Some(Update::new(&working.collect::<Vec<Target>>()));
        self.next_update_step();
    }

    /// From now on a ring reuses what has packets of these spans only where it has nothing else to reuse: they are being read.
    /// Nothing is written for it.
    pub fn hold(&mut self, spans: Vec<TimeRange>) {
        self.core.handle(self.bank.now(), Input::Hold(spans));
    }

    /// Whether an update of the superblocks is under way.
    pub fn updating(&self) -> bool {
        self.update.is_some()
    }

    /// How the updates of the superblocks went: the first error of any member, which then has got no more of them.
    pub fn update_outcome(&self) -> &Result<(), DeviceError> {
        &self.update_outcome
    }

    /// One round: takes what is ready, starts what can be started, waits until something happens or
    /// `until`, and appends what happened to `events`. Returns whether the take is over.
    ///
    /// # Errors
    /// [`BankError`] if the bank fails.
    pub fn step(&mut self, until: Instant, events: &mut Vec<Event>) -> Result<bool, BankError> {
        let now = self.bank.now();
        self.released = false;
        while let Some(chunk) = self.feed.poll(now) {
            self.core.handle(now, Input::Chunk(chunk));
        }
        while let Some(index) = self.feed.flow_index() {
            self.take_flow_index(now, &index);
        }
        if self.feed.ended() && !self.stopped {
            self.stopped = true;
            self.core.handle(now, Input::Stop);
        }
        if self.core.poll_timeout().is_some_and(|due| due <= now) {
            self.core.handle(now, Input::Tick);
        }
        self.carry_out(events);
        if self.wants_end
            && let Some(chunk) = self.feed.end_chunk()
        {
            self.wants_end = false;
            self.core.handle(now, Input::Chunk(chunk));
            self.carry_out(events);
        }
        self.keep_record_if_over();
        self.start();
        if self.core.finished()
            && self.update.is_none()
            && self.free_tags.len() == self.under_way.len()
            && !self.feed.makes_flow_indexes()
        {
            return Ok(true);
        }
        // What was lost for want of room gave its buffer back at once, which may be all that the feed waits for.
        let again = self.released.then_some(now);
        let until = [self.core.poll_timeout(), self.feed.next(now), again]
            .into_iter()
            .flatten()
            .fold(until, Instant::min);
        self.bank.wait(Some(until), &mut self.done)?;
        let now = self.bank.now();
        for at in 0..self.done.len() {
            self.completed(now, self.done[at].clone());
        }
        self.done.clear();
        self.carry_out(events);
        self.start();
        Ok(false)
    }

    /// Starts to write the take's record once all else is written.
    fn keep_record_if_over(&mut self) {
        if !self.core.finished() || self.update.is_some() {
            return;
        }
        let Some(mut take_records) = self.take_records.take() else { return };
        take_records.enter(self.core.record());
        let members = self.drives.iter().zip(self.core.members());
        let working =
            members.filter(|(drive, member)| member.working && !self.update_failed.contains(drive));
        self.update = Some(take_records.update(working.map(|(drive, _)| *drive)));
        self.next_update_step();
    }

    /// Carries the core's outputs out, as far as they don't have to wait.
    fn carry_out(&mut self, events: &mut Vec<Event>) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::WriteChunk { buffer, place, record, fold, tag } => {
                    let length = record.summary.length;
                    self.memory.with(buffer, &mut |bytes| {
                        record.stamp(&place, bytes);
                        self.fold(&fold, &bytes[..length as usize]);
                    });
                    self.note_stamped(buffer);
                    let operation =
                        Operation::Write { offset: place.offset, length, buffer, fua: false };
                    let drive = self.drives[usize::from(place.member)];
                    self.commands.push_back((drive, operation, Owner::Core(tag), None));
                }
                Output::WriteIndex { place, section_bytes, chunks, part, tag } => {
                    let drive = self.drives[usize::from(place.member)];
                    let (offset, length) = match part {
                        IndexPart::Front => (place.offset, PAGE_BYTES),
                        IndexPart::Tail => {
                            let length = index::tail_length(chunks.len() as u64);
                            (place.offset + section_bytes - length, length)
                        }
                    };
                    if part == IndexPart::Tail {
                        let chunks = Arc::clone(&chunks);
                        self.feed.segment_filled(FilledSegment { place, section_bytes, chunks });
                    }
                    let contents = Contents::Index { place, section_bytes, chunks, part };
                    let (length, owner) = (length as u32, Owner::Core(tag));
                    self.metadata.push_back(Metadata { drive, offset, length, contents, owner });
                }
                Output::WriteFlowIndex { part, tag } => self.queue_flow_index(part, tag),
                Output::Seal { group, buffer, table } => {
                    // Memory that keeps nothing has no checksum.
                    let mut sealed = (table.longest() + OVERHEAD_BYTES, 0);
                    self.memory.with(buffer, &mut |bytes| sealed = table.seal(bytes));
                    let ((length, body_crc), place) = (sealed, table.part.place);
                    let now = self.bank.now();
                    self.core.handle(now, Input::Sealed { group, place, length, body_crc });
                }
                Output::Trim { member, offset, length, tag } => {
                    let drive = self.drives[usize::from(member)];
                    let operation = Operation::Trim { offset, length };
                    self.commands.push_back((drive, operation, Owner::Core(tag), None));
                }
                Output::Flush { member, tag } => {
                    let drive = self.drives[usize::from(member)];
                    self.commands.push_back((drive, Operation::Flush, Owner::Core(tag), None));
                }
                Output::Release { buffer } => {
                    let stamped = self.stamped.get_mut(buffer.0 as usize);
                    match stamped.map(std::mem::take) {
                        Some(true) => self.feed.release_written(buffer),
                        _ => self.feed.release(buffer),
                    }
                    self.released = true;
                }
                Output::WantEnd => self.wants_end = true,
                Output::Event(event) => events.push(event),
            }
        }
    }

    fn queue_flow_index(&mut self, part: FlowIndexPart, tag: u64) {
        let drive = self.drives[usize::from(part.member)];
        let (offset, length) = (part.offset, part.bytes.len() as u32);
        let (contents, owner) = (Contents::FlowIndex(part.bytes), Owner::Core(tag));
        self.metadata.push_back(Metadata { drive, offset, length, contents, owner });
    }

    fn note_stamped(&mut self, buffer: BufferId) {
        let at = buffer.0 as usize;
        if at >= self.stamped.len() {
            self.stamped.resize(at + 1, false);
        }
        self.stamped[at] = true;
    }

    /// Hands a flow index to the core, in as many parts as the buffers for metadata make it.
    fn take_flow_index(&mut self, now: Instant, index: &FlowIndexPart) {
        let most = self.memory.size() / PAGE_BYTES as usize * PAGE_BYTES as usize;
        for (offset, bytes) in (index.offset..).step_by(most).zip(index.bytes.chunks(most)) {
            let part = FlowIndexPart { offset, bytes: bytes.into(), ..index.clone() };
            self.core.handle(now, Input::FlowIndex(part));
        }
    }

    /// Takes a stamped chunk into its group's parities, before it is submitted: afterwards its buffer is the drive's.
    fn fold(&self, fold: &Fold, chunk: &[u8]) {
        for (place, &parity) in (0u8..).zip(&fold.parities) {
            let Some(parity) = parity else { continue };
            self.memory.with(parity, &mut |parity| parity::fold(place, parity, fold.filled, chunk));
        }
    }

    /// Submits what waits: metadata as buffers allow, commands as the drives take them.
    fn start(&mut self) {
        while let Some(&buffer) = self.metadata_free.last() {
            let Some(Metadata { drive, offset, length, contents, owner }) =
                self.metadata.pop_front()
            else {
                break;
            };
            self.metadata_free.pop();
            self.memory.with(buffer, &mut |memory| {
                memory[..length as usize].copy_from_slice(&contents.encode(offset));
            });
            let operation = Operation::Write { offset, length, buffer, fua: false };
            self.commands.push_back((drive, operation, owner, Some(buffer)));
        }
        if self.commands.is_empty() {
            return;
        }
        // A drive that takes no more holds back its own commands only, in their order.
        let mut full: Vec<DriveId> = Vec::new();
        for _ in 0..self.commands.len() {
            let Some(next) = self.commands.pop_front() else { break };
            let (drive, operation, owner, buffer) = next;
            let tag = self.free_tags.last().map_or(self.under_way.len() as u64, |&t| t.into());
            if full.contains(&drive) || self.bank.submit(Command { drive, operation, tag }).is_err()
            {
                full.push(drive);
                self.commands.push_back(next);
                continue;
            }
            let under_way = Some(UnderWay { owner, buffer });
            match self.free_tags.pop() {
                Some(tag) => self.under_way[tag as usize] = under_way,
                None => self.under_way.push(under_way),
            }
        }
    }

    fn completed(&mut self, now: Instant, completion: Completion) {
        // A completion that belongs to nothing, or comes twice, must not stand for another command.
        let place = self.under_way.get_mut(completion.tag as usize);
        let Some(UnderWay { owner, buffer }) = place.and_then(Option::take) else { return };
        self.free_tags.push(completion.tag as u32);
        if let Some(buffer) = buffer {
            self.metadata_free.push(buffer);
        }
        match owner {
            Owner::Core(tag) => {
                self.core.handle(now, Input::Done { tag, outcome: completion.outcome });
            }
            Owner::Update => {
                let step_done = self
                    .update
                    .as_mut()
                    .is_some_and(|update| update.done(completion.drive, completion.outcome));
                if step_done {
                    self.next_update_step();
                }
            }
        }
    }

    fn next_update_step(&mut self) {
        let Some(update) = &mut self.update else { return };
        let commands = update.next_update_step();
        if commands.is_empty() {
            self.update_failed.extend(update.failed());
            if self.update_outcome.is_ok() {
                self.update_outcome = update.outcome();
            }
            self.update = None;
            self.core.first_copies_bad.clear();
        }
        for command in commands {
            match command {
                UpdateCommand::Flush(drive) => {
                    self.commands.push_back((drive, Operation::Flush, Owner::Update, None));
                }
                UpdateCommand::Write(drive, offset, superblock) => {
                    let contents = Contents::Superblock { superblock: *superblock };
                    let (length, owner) = (SUPERBLOCK_BYTES as u32, Owner::Update);
                    self.metadata.push_back(Metadata { drive, offset, length, contents, owner });
                }
                UpdateCommand::WritePage(drive, offset, page) => {
                    let (length, owner) = (page.len() as u32, Owner::Update);
                    let contents = Contents::Page(page);
                    self.metadata.push_back(Metadata { drive, offset, length, contents, owner });
                }
            }
        }
    }

    /// Ends the recording and gives the feed back.
    pub fn into_feed(self) -> F {
        self.feed
    }
}

/// The longest that a run loop sleeps without looking up.
pub const STEP_MAX: Duration = Duration::from_millis(100);
