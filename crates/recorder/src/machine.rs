//! The recorder's core: chunks and completions in, writes, trims, flushes and events out.
//!
//! `handle(now, input)`, then `poll_output()` until it is empty, then wait until `poll_timeout()` at
//! the latest. It never looks at payload: in virtual time it runs on descriptors alone.

mod choice;
mod groups;
mod members;
mod parity;
mod reach;
mod tag;
mod upkeep;
mod written;

use std::collections::{BTreeMap, VecDeque};

use base::{BufferId, DeviceError, Instant};
use format::parity::{Part, PlacedParity, Row};
use format::{ChunkRecord, ChunkSummary, Count, Ledger, Place, Stage, TakeId, TakeRecord};

use crate::member::{GivenUp, InFlight, Member, PlacedChunk, Purpose};
use crate::open::{ArrayImage, MemberImage, Segment};
use crate::placement::Candidate;
use crate::protocol::{
    Config, Event, Fold, Input, MemberProgress, Output, ParityMeans, ReadyChunk, TimeRange,
    WhenFull,
};
use crate::turns::Turns;
use choice::Choice;
use groups::{Groups, Piece};
use tag::Tag;

/// A chunk that waits for a place.
#[derive(Debug)]
struct Waiting {
    chunk: ReadyChunk,
    /// Set once it had a number and its write failed: that number and the ledger know it already.
    first_sequence: Option<u64>,
}

/// A chunk that has got its place.
#[derive(Clone, Copy, Debug)]
struct Placed {
    place: Place,
    record: ChunkRecord,
    tag: u64,
}

/// Why nothing can be placed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusing {
    No,
    Full,
    NoMember,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// The source has stopped; what is under way completes.
    Draining,
    /// The chunk that ends the take was asked for and has not come yet.
    AwaitingEnd,
    /// It came, or can't be placed anywhere; the last writes and flushes complete.
    Ending,
    Finished,
}

/// The recording state machine.
#[derive(Debug)]
pub struct Recorder {
    config: Config,
    take: TakeId,
    members: Vec<Member>,
    protected: Vec<TimeRange>,
    /// As the array was found: they should be written again.
    pub(crate) superblocks_differ: bool,
    pub(crate) first_copies_bad: Vec<u16>,
    waiting: VecDeque<Waiting>,
    /// Those of an array with parity.
    groups: Groups,
    /// Buffers that the core holds, waiting or in flight.
    held: u32,
    next_sequence: u64,
    next_stripe: usize,
    ledger: Ledger,
    /// The same as chunks carry it: what was given a number stays in it as stored. If it can't be
    /// written in the end, its number is a gap, which says the same once and to the packet.
    carried: Ledger,
    /// How packets were shortened in chunks that are not acknowledged yet, by their first number.
    shortened: BTreeMap<u64, Ledger>,
    acknowledged: Count,
    /// The greatest number that was acknowledged.
    newest_acknowledged: u64,
    durable: Count,
    /// Times of the earliest and the latest packet that were given a place.
    first_ns: u64,
    last_ns: u64,
    reused_to_ns: u64,
    reused: Option<u64>,
    refusing: Refusing,
    phase: Phase,
    /// Tags are numbered from 0.
    next_tag: u64,
    turns: Turns,
    candidates: Vec<Candidate>,
    /// When each member wants to be looked after if nothing happens to it, and the first of these times, which is asked for all the
    /// time.
    dues: Vec<Instant>,
    first_due: Instant,
    /// Members that something has happened to since they were last looked after.
    touched: Vec<usize>,
    /// Commands; what is told besides waits in queues of its own, as it is several times as short.
    outputs: VecDeque<Output>,
    events: VecDeque<Event>,
    released: VecDeque<BufferId>,
}

/// Later than anything.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

impl Recorder {
    /// Starts a take on an array without parity as it was found. Members that could not be opened take no part.
    ///
    /// # Panics
    /// If the array has parity: see [`Recorder::with_parity`].
    pub fn new(config: Config, array: ArrayImage) -> Self {
        assert_eq!(array.superblock.parity, 0, "parity takes buffers of its own");
        Self::with_parity(config, array, ParityMeans::default())
    }

    /// Starts a take on an array as it was found, with what its parity takes.
    ///
    /// # Panics
    /// If there are fewer buffers for parity than one group takes.
    pub fn with_parity(config: Config, array: ArrayImage, means: ParityMeans) -> Self {
        let parity = array.superblock.parity;
        assert!(means.buffers.len() >= usize::from(parity), "a group's parities need buffers");
        let count = array.members.len() as u16;
        let next_sequence = array.next_sequence.max(config.started.as_nanos() / 1000);
        let take =
            TakeId { uuid: config.take, started: config.started, first_sequence: next_sequence };
        let heads = array.members.iter().flat_map(MemberImage::walked);
        let reused_to_ns = heads.filter_map(|head| head.reused_to_ns).max().unwrap_or(0);
        let members = members::of(array.members, array.uuid, parity, config.flow_indexes);
        Self {
            take,
            members,
            superblocks_differ: array.superblocks_differ,
            first_copies_bad: array.first_copies_bad,
            protected: array
                .protected
                .iter()
                .map(|p| TimeRange { from: p.from, to: p.to })
                .collect(),
            waiting: VecDeque::new(),
            groups: Groups::new(parity, means),
            held: 0,
            next_sequence,
            next_stripe: 0,
            ledger: Ledger::default(),
            carried: Ledger::default(),
            shortened: BTreeMap::new(),
            acknowledged: Count::ZERO,
            newest_acknowledged: 0,
            durable: Count::ZERO,
            first_ns: u64::MAX,
            last_ns: 0,
            reused_to_ns,
            reused: None,
            refusing: Refusing::No,
            phase: Phase::Running,
            next_tag: 0,
            turns: Turns::new(config.rest, config.rest_turn),
            candidates: Vec::new(),
            dues: vec![NEVER; usize::from(count)],
            first_due: NEVER,
            touched: (0..usize::from(count)).collect(),
            outputs: VecDeque::new(),
            events: VecDeque::new(),
            released: VecDeque::new(),
            config,
        }
    }

    /// Writes to one part of the array at a time, each for [`Config::rest_turn`] or until all of it has been written, while the
    /// members of the other parts rest: what readers read there shares no flash with the writing. They are woken when buffers
    /// fill past half, like all that rest. Each member's part is given by its index.
    ///
    /// # Panics
    /// If there is not a part for each member, or members rest in turn besides.
    #[must_use]
    pub fn with_parts(self, parts: Vec<u16>) -> Self {
        assert_eq!(parts.len(), self.members.len(), "each member belongs to a part");
        assert_eq!(self.config.rest, 0, "either members rest in turn, or parts");
        let turns = Turns::of_parts(parts, self.config.rest_turn);
        Self { turns, ..self }
    }

    /// Takes one input at `now`.
    pub fn handle(&mut self, now: Instant, input: Input) {
        // A chunk or a completion concerns the members it touches; anything else may concern all.
        let mut all =
            matches!(input, Input::Tick | Input::Stop | Input::Protect(_) | Input::Hold(_));
        match input {
            Input::Chunk(chunk) => {
                self.held += 1;
                if chunk.summary.end {
                    self.phase = Phase::Ending;
                }
                self.waiting.push_back(Waiting { chunk, first_sequence: None });
            }
            Input::Done { tag, outcome } => self.done(now, tag, outcome),
            Input::Sealed { group, place, length, body_crc } => {
                self.sealed(group, place, length, body_crc);
            }
            Input::FlowIndex(part) => self.write_flow_index(part),
            Input::Protect(ranges) => {
                self.protected = ranges;
                self.members.iter_mut().for_each(|m| m.may_trim = true);
            }
            Input::Hold(spans) => {
                for member in &mut self.members {
                    member.held.clone_from(&spans);
                    member.may_trim = true;
                }
            }
            Input::Stop => {
                if self.phase == Phase::Running {
                    self.phase = Phase::Draining;
                }
            }
            Input::Tick => {}
        }
        self.turn(now);
        if self.groups.any() {
            self.place_parities(now);
            self.place_waiting(now);
            self.close_if_due(now);
        } else {
            self.place_waiting(now);
        }
        all |= self.phase != Phase::Running;
        if all {
            self.touched = (0..self.members.len()).collect();
        }
        self.look_after_touched(now);
        self.advance_phase();
    }

    /// The next thing to be done.
    // Large, and asked for in loops of other crates: without a call it need not be copied.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        if !self.outputs.is_empty() {
            self.outputs.pop_front()
        } else if !self.events.is_empty() {
            self.events.pop_front().map(Output::Event)
        } else {
            self.released.pop_front().map(|buffer| Output::Release { buffer })
        }
    }

    /// When to call `handle` with [`Input::Tick`] at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let turn = self.turns.due().filter(|_| self.phase == Phase::Running);
        let due = Some(self.first_due).filter(|&due| due != NEVER);
        [due, turn, self.groups.due()].into_iter().flatten().min()
    }

    /// The take that is recorded.
    pub fn take(&self) -> TakeId {
        self.take
    }

    /// The account through the last chunk that was placed.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What stays of the take once it is over. The number of the record is still to be given.
    pub fn record(&self) -> TakeRecord {
        TakeRecord {
            number: 0,
            take: self.take,
            ended: self.finished(),
            last_sequence: self.next_sequence.saturating_sub(1),
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            ledger: self.carried,
        }
    }

    /// What kill -9 can't lose any more.
    pub fn acknowledged(&self) -> Count {
        self.acknowledged
    }

    /// What a power cut can't lose any more.
    pub fn durable(&self) -> Count {
        self.durable
    }

    /// Buffers that wait for a place or a completion.
    pub fn buffers_held(&self) -> u32 {
        self.held
    }

    /// The packet time (ns since 1970) up to which a ring has given up contents, in this take or before it; 0 if nothing. All
    /// that was acknowledged of later times is still there, as long as no more members are lost than there is parity.
    pub fn reused_to_ns(&self) -> u64 {
        self.reused_to_ns
    }

    /// Each member's bytes written in this take and whether it still works.
    pub fn members(&self) -> impl Iterator<Item = MemberProgress> + '_ {
        self.members.iter().map(|m| MemberProgress {
            written: m.written,
            rate: m.pace.rate(),
            working: m.failed.is_none(),
            resting: m.resting,
            under_way: m.in_flight.len() as u32,
        })
    }

    /// The segments that working members are filling, with their chunks in order.
    pub fn open_segments(&self) -> impl Iterator<Item = (u64, &[(Place, ChunkRecord)])> + '_ {
        let working = self.members.iter().filter(|member| member.failed.is_none());
        let heads = working.filter_map(|member| member.head.as_ref());
        heads.filter(|head| !head.chunks.is_empty()).map(|head| (head.segment, &head.chunks[..]))
    }

    /// Whether a segment of a working member is full, and holds exactly the chunks from the first to the last of these numbers.
    pub fn is_filled_with(&self, member: u16, segment: u64, sequences: (u64, u64)) -> bool {
        let member = &self.members[usize::from(member)];
        member.failed.is_none() && member.is_filled_with(segment, sequences)
    }

    /// Whether the take is over.
    pub fn finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Whether nothing more can be placed, so that the source may as well stop.
    pub fn refusing(&self) -> bool {
        self.refusing != Refusing::No
    }

    fn event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    fn tag(&mut self, tag: Tag) -> u64 {
        let number = self.next_tag;
        self.next_tag += 1;
        tag.numbered(number)
    }

    /// Lets the next members rest when those that do have had their turn.
    fn turn(&mut self, now: Instant) {
        if self.phase == Phase::Running {
            self.turns.advance(now, &mut self.members);
        }
    }

    /// Whether more than half of the buffers are filled. Then no member rests, and members may drift apart.
    fn pressed(&self) -> bool {
        self.held > self.config.buffers / 2
    }

    fn wraps(&self) -> bool {
        self.config.when_full == WhenFull::Wrap
    }

    fn release(&mut self, buffer: BufferId) {
        self.held -= 1;
        self.released.push_back(buffer);
    }

    // Placing chunks

    fn place_waiting(&mut self, now: Instant) {
        while let Some(waiting) = self.waiting.front() {
            let (length, end) = (waiting.chunk.summary.length, waiting.chunk.summary.end);
            if self.refusing != Refusing::No && !end {
                self.lose_front();
                continue;
            }
            match self.choose(now, length, end) {
                Choice::Member(member) => self.place_front(now, member),
                Choice::Close => self.close_group(now),
                Choice::Wait => return,
                Choice::Nowhere(why) => {
                    if self.refusing == Refusing::No {
                        self.refusing = why;
                        let protected = self.wraps();
                        self.event(match why {
                            Refusing::NoMember => Event::NoMemberLeft,
                            _ => Event::ArrayFull { protected },
                        });
                    }
                    self.lose_front();
                }
            }
        }
    }

    /// Gives up the first waiting chunk.
    fn lose_front(&mut self) {
        let Some(mut waiting) = self.waiting.pop_front() else { return };
        let stage = match self.refusing {
            Refusing::NoMember => Stage::DeviceError,
            _ => Stage::ArrayFull,
        };
        let count = waiting.chunk.summary.stored();
        // Only packets that are stored count as shortened.
        if let Some(first) = waiting.first_sequence {
            self.ledger.fail(stage, count);
            let shortened = self.shortened.remove(&first).unwrap_or_default();
            self.ledger = self.ledger.since(&shortened);
        } else {
            let losses = &mut waiting.chunk.losses;
            *losses = losses.since(&losses.shortened());
            for ledger in [&mut self.ledger, &mut self.carried] {
                ledger.add(&waiting.chunk.losses);
                ledger.lose(stage, count);
            }
        }
        self.release(waiting.chunk.buffer);
    }

    fn place_front(&mut self, now: Instant, at: usize) {
        let Some(waiting) = self.waiting.pop_front() else { return };
        let summary = waiting.chunk.summary;
        if waiting.first_sequence.is_none() {
            for ledger in [&mut self.ledger, &mut self.carried] {
                ledger.add(&waiting.chunk.losses);
                ledger.store(summary.stored());
            }
            if waiting.chunk.losses.shortens() {
                self.shortened.insert(self.next_sequence, waiting.chunk.losses.shortened());
            }
        }
        self.first_ns = self.first_ns.min(summary.first_ns);
        self.last_ns = self.last_ns.max(summary.last_ns);
        let buffer = waiting.chunk.buffer;
        let group = self.groups.any().then(|| self.groups.enter(now, self.parities()));
        let replaces = (waiting.first_sequence, None);
        let Placed { place, record, tag } = self.place(now, at, buffer, summary, replaces, group);
        let mut fold = Fold::default();
        let mut fills = false;
        if group.is_some() {
            let row = Row {
                sequence: record.sequence,
                offset: place.offset,
                length: summary.length,
                member: place.member,
            };
            fold = self.groups.join(Piece { record, buffer, row, written: false });
            fills = self.groups.full();
        }
        self.outputs.push_back(Output::WriteChunk { buffer, place, record, fold, tag });
        if fills {
            self.close_group(now);
        }
    }

    /// Gives a chunk a number and a place at a member's head. It stands in for another one, or is parity, of a group.
    fn place(
        &mut self,
        now: Instant,
        at: usize,
        buffer: BufferId,
        summary: ChunkSummary,
        (replaces, parity): (Option<u64>, Option<Part>),
        group: Option<u64>,
    ) -> Placed {
        let wraps = self.wraps();
        let purpose = Purpose::of(&summary, parity.is_some());
        let reused = self.members[at].make_room(summary.length, purpose, wraps, &self.protected);
        if let Some((segment, given_up)) = reused {
            self.give_up(at, segment, given_up);
        }
        let sequence = self.next_sequence;
        let record = ChunkRecord {
            take: self.take,
            sequence,
            replaces,
            ledger: self.carried,
            reused: self.reused,
            reused_to_ns: self.reused_to_ns,
            parity,
            group: group
                .filter(|_| parity.is_none())
                .and_then(|id| self.groups.joined(id, sequence)),
            last_parities: self.groups.last_parities(sequence),
            summary,
        };
        if let Some(Part { group, place, of, .. }) = parity {
            self.groups.placed(PlacedParity { sequence, group, member: at as u16, place, of });
        }
        self.next_sequence += 1;
        // A stripe of data goes on where the one before it ended, so that parities, which take the rest, go round.
        if parity.is_none() {
            self.next_stripe = at + 1;
        }
        let tag = self.tag(Tag::Chunk(at as u16));
        self.touched.push(at);
        let member = &mut self.members[at];
        let Some((place, segment)) = member.place(&record) else {
            unreachable!("room was checked before a member was chosen")
        };
        if member.in_flight.is_empty() {
            member.pace.started_from_idle(now);
        }
        member.in_flight_bytes += u64::from(summary.length);
        let chunk = PlacedChunk::of(&record);
        member.in_flight.push_back(InFlight { tag, buffer, chunk, segment, group, done: None });
        Placed { place, record, tag }
    }

    fn give_up(&mut self, at: usize, segment: u64, given_up: Segment) {
        if let Segment::Live(live) = given_up {
            self.reused_to_ns = self.reused_to_ns.max(live.last_ns);
            self.reused = self.reused.max(Some(live.last_sequence));
            self.event(Event::Reused { member: at as u16, segment, last_ns: live.last_ns });
        }
    }

    // Completions

    fn done(&mut self, now: Instant, tag: u64, outcome: Result<(), DeviceError>) {
        let kind = Tag::of(tag);
        let (Tag::Chunk(at) | Tag::Index(at) | Tag::Trim(at) | Tag::Flush(at)) = kind;
        self.touched.push(at.into());
        let member = &mut self.members[usize::from(at)];
        member.may_trim |= !matches!(kind, Tag::Chunk(_));
        match kind {
            Tag::Chunk(at) => self.chunk_done(now, usize::from(at), tag, outcome),
            Tag::Index(at) => {
                let member = &mut self.members[usize::from(at)];
                member.indexed(tag);
                match outcome {
                    // An index can be rebuilt, but a drive that can't write it can't write a chunk.
                    Err(error) => self.fail(usize::from(at), error),
                    Ok(()) => self.flush_later(now, usize::from(at)),
                }
            }
            Tag::Trim(at) => {
                let member = &mut self.members[usize::from(at)];
                member.trimming = None;
                if let Err(error) = outcome {
                    member.trims = false;
                    self.event(Event::TrimFailed { member: at, error });
                }
            }
            Tag::Flush(at) => {
                let member = &mut self.members[usize::from(at)];
                let Some((_, count)) = member.flushing.take() else { return };
                let groups = std::mem::take(&mut member.flushing_groups);
                match outcome {
                    Ok(()) => {
                        member.flushes_done += 1;
                        if self.groups.any() {
                            self.flushed(groups, true);
                        } else {
                            self.durable += count;
                            self.event(Event::Durable { member: at, count });
                        }
                    }
                    Err(error) => {
                        self.fail(usize::from(at), error);
                        self.flushed(groups, false);
                    }
                }
            }
        }
    }

    fn chunk_done(&mut self, now: Instant, at: usize, tag: u64, outcome: Result<(), DeviceError>) {
        let member = &mut self.members[at];
        let Some(flight) = member.in_flight.iter_mut().find(|f| f.tag == tag) else { return };
        let length = flight.chunk.summary.length;
        let error = outcome.as_ref().err().cloned();
        if outcome.is_err() {
            let sequence = flight.chunk.sequence;
            member.hole = Some(member.hole.map_or(sequence, |hole| hole.min(sequence)));
        }
        flight.done = Some(outcome);
        member.pace.finished(now, member.in_flight_bytes, length);
        member.in_flight_bytes -= u64::from(length);
        if let Some(error) = error {
            self.fail(at, error);
        }
        // Acknowledge in order: what lies behind a hole on a member is not found after a crash.
        while let Some(flight) = self.members[at].acknowledge_next() {
            match flight.group {
                None => self.acknowledge(now, at, flight.buffer, &flight.chunk),
                Some(group) => self.settle(now, at, &flight, group),
            }
        }
        for flight in self.members[at].take_failed().into_iter().rev() {
            match flight.group {
                None => self.wait_again(flight.buffer, &flight.chunk),
                Some(group) => self.unsettle(&flight, group),
            }
        }
    }

    fn acknowledge(&mut self, now: Instant, at: usize, buffer: BufferId, chunk: &PlacedChunk) {
        let count = chunk.summary.stored();
        let member = &mut self.members[at];
        member.acknowledged += count;
        member.acknowledged_chunks += 1;
        self.acknowledged += count;
        self.shortened.remove(&chunk.replaces.unwrap_or(chunk.sequence));
        let before = self.newest_acknowledged;
        self.newest_acknowledged = before.max(chunk.sequence);
        if self.wraps() {
            let told_now = |g: GivenUp| before < g.told_from && g.told_from <= chunk.sequence;
            let told =
                self.members.iter().enumerate().filter(|(_, m)| m.given_up.is_some_and(told_now));
            self.touched.extend(told.map(|(at, _)| at));
        }
        let member = &mut self.members[at];
        if !self.groups.any() {
            member.unflushed += count;
            self.flush_later(now, at);
        }
        self.event(Event::Acknowledged {
            sequence: chunk.sequence,
            member: at as u16,
            count,
            end: chunk.summary.end,
        });
        self.release(buffer);
    }

    /// The first error latches: the member gets nothing more.
    fn fail(&mut self, at: usize, error: DeviceError) {
        let member = &mut self.members[at];
        if member.failed.is_some() {
            return;
        }
        member.failed = Some(error.clone());
        self.touched.push(at);
        member.flush_due = None;
        member.closing.clear();
        let (held, held_chunks) = (member.acknowledged, member.acknowledged_chunks);
        let unflushed = std::mem::take(&mut member.unflushed_groups);
        let failed = self.members.iter().filter(|m| m.failed.is_some()).count();
        let spared = failed <= usize::from(self.groups.parity);
        self.event(Event::MemberFailed { member: at as u16, error, held, held_chunks, spared });
        self.flushed(unflushed, false);
        // The open group waits for nobody any more.
        self.groups.limit = 0;
    }

    fn advance_phase(&mut self) {
        if self.phase == Phase::Running {
            return;
        }
        let settled = self.waiting.is_empty()
            && self.members.iter().all(|m| m.in_flight.is_empty())
            && self.groups.settled();
        match self.phase {
            Phase::Draining if settled => {
                self.phase = Phase::AwaitingEnd;
                self.outputs.push_back(Output::WantEnd);
            }
            Phase::Ending if settled && self.members.iter().all(Member::idle) => {
                self.phase = Phase::Finished;
                self.event(Event::Finished);
            }
            _ => {}
        }
    }
}
