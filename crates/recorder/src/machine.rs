//! The recorder's core: chunks and completions in, writes, trims, flushes and events out.
//!
//! `handle(now, input)`, then `poll_output()` until it is empty, then wait until `poll_timeout()` at
//! the latest. It never looks at payload: in virtual time it runs on descriptors alone.

use std::collections::VecDeque;

use base::{BufferId, DeviceError, Instant};
use format::{ChunkRecord, Count, Ledger, Stage, TakeId};

use crate::member::{InFlight, IndexWrite, Indexing, Member, Room};
use crate::open::{ArrayImage, Segment};
use crate::placement::{self, Candidate, Placement};
use crate::planted::{Bug, is_planted};
use crate::protocol::{
    Config, Event, Input, MemberProgress, Output, ReadyChunk, TimeRange, WhenFull,
};
use crate::turns::Turns;

/// A chunk that waits for a place.
#[derive(Debug)]
struct Waiting {
    chunk: ReadyChunk,
    /// Set once it had a number and its write failed: that number and the ledger know it already.
    first_sequence: Option<u64>,
}

/// What a command under way is, and whose. A tag carries both beside its number, so that nothing has to be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Chunk(u16),
    Index(u16),
    Trim(u16),
    Flush(u16),
}

impl Tag {
    /// Bits below a tag's number: 16 for the member, 2 for the kind.
    const BITS: u32 = 18;

    const fn numbered(self, number: u64) -> u64 {
        let (kind, member) = match self {
            Self::Chunk(member) => (0, member),
            Self::Index(member) => (1, member),
            Self::Trim(member) => (2, member),
            Self::Flush(member) => (3, member),
        };
        number << Self::BITS | kind << 16 | member as u64
    }

    const fn of(tag: u64) -> Self {
        let member = tag as u16;
        match tag >> 16 & 3 {
            0 => Self::Chunk(member),
            1 => Self::Index(member),
            2 => Self::Trim(member),
            _ => Self::Flush(member),
        }
    }
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
    /// Buffers that the core holds, waiting or in flight.
    held: u32,
    next_sequence: u64,
    next_stripe: usize,
    ledger: Ledger,
    /// The same as chunks carry it: what was given a number stays in it as stored. If it can't be
    /// written in the end, its number is a gap, which says the same once and to the packet.
    carried: Ledger,
    acknowledged: Count,
    durable: Count,
    reused_to_ns: u64,
    reused: Option<u64>,
    refusing: Refusing,
    phase: Phase,
    /// Tags are numbered from 0.
    next_tag: u64,
    turns: Turns,
    candidates: Vec<Candidate>,
    outputs: VecDeque<Output>,
}

impl Recorder {
    /// Starts a take on an array as it was found. Members that could not be opened take no part.
    pub fn new(config: Config, array: ArrayImage) -> Self {
        let count = array.members.len() as u16;
        let mut next_sequence = array.next_sequence.max(config.started.as_nanos() / 1000);
        if is_planted(Bug::ReusesNumbers) && array.next_sequence > 0 {
            next_sequence = array.next_sequence - crate::open::SEQUENCE_GAP + 1;
        }
        let take =
            TakeId { uuid: config.take, started: config.started, first_sequence: next_sequence };
        // The chunk that ends the take goes anywhere, so each keeps room for the longest.
        let end_bytes = array.members.iter().map(|m| m.layout.chunk_min).max().unwrap_or(0);
        let members = array
            .members
            .into_iter()
            .enumerate()
            .map(|(at, image)| Member::new(image, array.uuid, at as u16, count, end_bytes))
            .collect();
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
            held: 0,
            next_sequence,
            next_stripe: 0,
            ledger: Ledger::default(),
            carried: Ledger::default(),
            acknowledged: Count::ZERO,
            durable: Count::ZERO,
            reused_to_ns: 0,
            reused: None,
            refusing: Refusing::No,
            phase: Phase::Running,
            next_tag: 0,
            turns: Turns::new(config.rest, config.rest_turn),
            candidates: Vec::new(),
            outputs: VecDeque::new(),
            config,
        }
    }

    /// Takes one input at `now`.
    pub fn handle(&mut self, now: Instant, input: Input) {
        // A chunk or a completion concerns the members it touches; anything else may concern all.
        let mut all = self.phase != Phase::Running
            || matches!(input, Input::Tick | Input::Stop | Input::Protect(_));
        match input {
            Input::Chunk(chunk) => {
                self.held += 1;
                if chunk.summary.end {
                    self.phase = Phase::Ending;
                }
                self.waiting.push_back(Waiting { chunk, first_sequence: None });
            }
            Input::Done { tag, outcome } => self.done(now, tag, outcome),
            Input::Protect(ranges) => self.protected = ranges,
            Input::Stop => {
                if self.phase == Phase::Running {
                    self.phase = Phase::Draining;
                }
            }
            Input::Tick => {}
        }
        self.turn(now);
        self.place_waiting(now);
        all |= self.phase != Phase::Running;
        for at in 0..self.members.len() {
            if std::mem::take(&mut self.members[at].touched) || all {
                self.close_segments(at);
                self.trim_ahead(now, at);
                self.flush(now, at);
                self.members[at].due = self.member_due(at);
            }
        }
        self.advance_phase();
    }

    /// The next thing to be done.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call `handle` with [`Input::Tick`] at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let turn = self.turns.due().filter(|_| self.phase == Phase::Running);
        self.members.iter().filter_map(|m| m.due).chain(turn).min()
    }

    /// When a member wants to be looked after again, if nothing happens to it.
    fn member_due(&self, at: usize) -> Option<Instant> {
        let member = &self.members[at];
        if member.failed.is_some() {
            return None;
        }
        let flush = member.flush_due.filter(|_| member.flushing.is_none());
        let wants_trim = self.trims(member) && member.trimming.is_none();
        let trim = Some(member.trim_due).filter(|_| {
            wants_trim && member.to_trim(self.config.trim_ahead, &self.protected).is_some()
        });
        [flush, trim].into_iter().flatten().min()
    }

    /// The take that is recorded.
    pub fn take(&self) -> TakeId {
        self.take
    }

    /// The account through the last chunk that was placed.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
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

    /// The packet time (ns since 1970) up to which a ring has given up contents; 0 if nothing.
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

    /// Whether the take is over.
    pub fn finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Whether nothing more can be placed, so that the source may as well stop.
    pub fn refusing(&self) -> bool {
        self.refusing != Refusing::No
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
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

    /// Whether buffers are filled past half: balance yields to capture, and nobody rests.
    fn pressed(&self) -> bool {
        self.held > self.config.buffers / 2
    }

    fn wraps(&self) -> bool {
        self.config.when_full == WhenFull::Wrap
    }

    fn release(&mut self, buffer: BufferId) {
        self.held -= 1;
        self.outputs.push_back(Output::Release { buffer });
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
        let Some(waiting) = self.waiting.pop_front() else { return };
        let stage = match self.refusing {
            Refusing::NoMember => Stage::DeviceError,
            _ => Stage::ArrayFull,
        };
        let count = waiting.chunk.summary.stored();
        if waiting.first_sequence.is_some() {
            self.ledger.fail(stage, count);
        } else {
            for ledger in [&mut self.ledger, &mut self.carried] {
                ledger.add(&waiting.chunk.losses);
                ledger.lose(stage, count);
            }
        }
        self.release(waiting.chunk.buffer);
    }

    fn choose(&mut self, now: Instant, length: u32, end: bool) -> Choice {
        let mut candidates = std::mem::take(&mut self.candidates);
        let choice = self.choose_among(now, length, end, &mut candidates);
        self.candidates = candidates;
        choice
    }

    fn choose_among(
        &self,
        now: Instant,
        length: u32,
        end: bool,
        candidates: &mut Vec<Candidate>,
    ) -> Choice {
        let working = || self.members.iter().enumerate().filter(|(_, m)| m.failed.is_none());
        if working().next().is_none() {
            return Choice::Nowhere(Refusing::NoMember);
        }
        let room = |m: &Member| m.room(length, end, self.wraps(), &self.protected);
        let slot = |m: &Member| m.in_flight.len() < self.config.depth as usize;
        // Those who rest are woken when buffers fill, and when there is nobody else.
        let up = |m: &Member| m.failed.is_none() && !m.resting && room(m) != Room::Full;
        let wake = end || self.pressed() || (self.turns.any() && !self.members.iter().any(up));
        let takes = |m: &Member| m.failed.is_none() && (wake || !m.resting);
        match self.config.placement {
            Placement::Stripe => {
                let count = self.members.len();
                let next = (0..count)
                    .map(|step| (self.next_stripe + step) % count)
                    .find(|&at| takes(&self.members[at]));
                let Some(at) = next else { return Choice::Nowhere(Refusing::NoMember) };
                match room(&self.members[at]) {
                    // The end of the take goes wherever there is room for it.
                    Room::Full if end => {
                        let mut others = working().filter(|(_, m)| room(m) != Room::Full);
                        let ready = |(_, m): &(usize, &Member)| room(m) == Room::Yes && slot(m);
                        match others.clone().find(ready) {
                            Some((at, _)) => Choice::Member(at),
                            None if others.next().is_some() => Choice::Wait,
                            None => Choice::Nowhere(Refusing::Full),
                        }
                    }
                    Room::Full => Choice::Nowhere(Refusing::Full),
                    Room::Yes if slot(&self.members[at]) => Choice::Member(at),
                    _ => Choice::Wait,
                }
            }
            Placement::Adaptive => {
                candidates.clear();
                candidates.extend(working().filter(|(_, m)| takes(m)).filter_map(|(at, m)| {
                    match room(m) {
                        Room::Full => None,
                        room => Some(Candidate {
                            member: at,
                            balance: m.balance(),
                            expected: m.pace.expected(now, m.in_flight_bytes, length),
                            ready: room == Room::Yes && slot(m),
                        }),
                    }
                }));
                if candidates.is_empty() {
                    return Choice::Nowhere(Refusing::Full);
                }
                placement::adaptive(candidates, self.config.drift_max, self.pressed())
                    .map_or(Choice::Wait, Choice::Member)
            }
        }
    }

    fn place_front(&mut self, now: Instant, at: usize) {
        let Some(waiting) = self.waiting.pop_front() else { return };
        let summary = waiting.chunk.summary;
        if waiting.first_sequence.is_none() {
            for ledger in [&mut self.ledger, &mut self.carried] {
                ledger.add(&waiting.chunk.losses);
                if is_planted(Bug::CountsLossesTwice) {
                    ledger.add(&waiting.chunk.losses);
                }
                ledger.store(summary.stored());
            }
        }
        let wraps = self.wraps();
        let reused = self.members[at].make_room(summary.length, wraps, &self.protected);
        if let Some((segment, given_up)) = reused {
            self.give_up(at, segment, given_up);
        }
        let record = ChunkRecord {
            take: self.take,
            sequence: self.next_sequence,
            replaces: waiting.first_sequence,
            ledger: self.carried,
            reused: self.reused,
            parity: None,
            summary,
        };
        self.next_sequence += 1;
        self.next_stripe = at + 1;
        let tag = self.tag(Tag::Chunk(at as u16));
        let member = &mut self.members[at];
        let Some((place, segment)) = member.place(&record) else {
            unreachable!("room was checked before a member was chosen")
        };
        member.touched = true;
        if member.in_flight.is_empty() {
            member.pace.started_from_idle(now);
        }
        member.in_flight_bytes += u64::from(summary.length);
        member.in_flight.push_back(InFlight {
            tag,
            buffer: waiting.chunk.buffer,
            record,
            segment,
            done: None,
        });
        self.outputs.push_back(Output::WriteChunk {
            buffer: waiting.chunk.buffer,
            place,
            record,
            tag,
        });
        if is_planted(Bug::ReleasesEarly) {
            self.release(waiting.chunk.buffer);
        }
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
        self.members[usize::from(at)].touched = true;
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
                let Some((_, mut count)) = member.flushing.take() else { return };
                if is_planted(Bug::FlushCoversTooMuch) {
                    count += std::mem::take(&mut member.unflushed);
                }
                match outcome {
                    Ok(()) => {
                        member.flushes_done += 1;
                        self.durable += count;
                        self.event(Event::Durable { member: at, count });
                    }
                    Err(error) => self.fail(usize::from(at), error),
                }
            }
        }
    }

    fn chunk_done(&mut self, now: Instant, at: usize, tag: u64, outcome: Result<(), DeviceError>) {
        let member = &mut self.members[at];
        let Some(flight) = member.in_flight.iter_mut().find(|f| f.tag == tag) else { return };
        let length = flight.record.summary.length;
        let error = outcome.as_ref().err().cloned();
        if outcome.is_err() {
            let sequence = flight.record.sequence;
            member.hole = Some(member.hole.map_or(sequence, |hole| hole.min(sequence)));
        }
        flight.done = Some(outcome);
        member.in_flight_bytes -= u64::from(length);
        member.pace.finished(now, length);
        if let Some(error) = error {
            self.fail(at, error);
        }
        // Acknowledge in order: what lies behind a hole on a member is not found after a crash.
        while let Some(flight) = self.members[at].acknowledge_next() {
            self.acknowledge(now, at, flight.buffer, &flight.record);
        }
        for flight in self.members[at].take_failed().into_iter().rev() {
            // Its own losses are in the ledger already.
            let InFlight { buffer, record, .. } = flight;
            if is_planted(Bug::ForgetsFailedChunks) {
                self.release(buffer);
                continue;
            }
            let chunk = ReadyChunk { buffer, summary: record.summary, losses: Ledger::default() };
            let first_sequence = Some(record.replaces.unwrap_or(record.sequence));
            self.waiting.push_front(Waiting { chunk, first_sequence });
        }
    }

    fn acknowledge(&mut self, now: Instant, at: usize, buffer: BufferId, record: &ChunkRecord) {
        let count = record.summary.stored();
        let member = &mut self.members[at];
        member.acknowledged += count;
        member.acknowledged_chunks += 1;
        member.unflushed += count;
        self.acknowledged += count;
        self.flush_later(now, at);
        self.event(Event::Acknowledged {
            sequence: record.sequence,
            member: at as u16,
            count,
            end: record.summary.end,
        });
        if !is_planted(Bug::ReleasesEarly) {
            self.release(buffer);
        }
    }

    /// The first error latches: the member gets nothing more.
    fn fail(&mut self, at: usize, error: DeviceError) {
        let member = &mut self.members[at];
        if member.failed.is_some() {
            return;
        }
        member.failed = Some(error.clone());
        member.touched = true;
        member.flush_due = None;
        member.closing.clear();
        let (held, held_chunks) = (member.acknowledged, member.acknowledged_chunks);
        self.event(Event::MemberFailed { member: at as u16, error, held, held_chunks });
    }

    // What goes on beside the chunks

    fn flush_later(&mut self, now: Instant, at: usize) {
        let due = now + self.config.flush_interval;
        let member = &mut self.members[at];
        if member.failed.is_none() && member.flush_due.is_none() {
            member.flush_due = Some(due);
        }
    }

    fn flush(&mut self, now: Instant, at: usize) {
        let at_once = self.phase != Phase::Running && self.waiting.is_empty();
        let wraps = self.wraps();
        let member = &mut self.members[at];
        let quiet =
            member.in_flight.is_empty() && member.indexing.is_empty() && member.closing_settled();
        let due = member.flush_due.is_some_and(|due| {
            due <= now || (at_once && quiet) || member.wants_flush(wraps, &self.protected)
        });
        if !due || member.flushing.is_some() || member.failed.is_some() {
            return;
        }
        member.flush_due = None;
        let covered = std::mem::take(&mut member.unflushed);
        let tag = self.tag(Tag::Flush(at as u16));
        let member = &mut self.members[at];
        member.flushing = Some((tag, covered));
        member.flushes_sent += 1;
        self.outputs.push_back(Output::Flush { member: at as u16, tag });
    }

    fn close_segments(&mut self, at: usize) {
        if self.members[at].failed.is_some() {
            return;
        }
        while let Some(write) = self.members[at].next_index() {
            let tag = self.tag(Tag::Index(at as u16));
            let IndexWrite { segment, place, section_bytes, chunks, part } = write;
            self.members[at].indexing.push(Indexing { tag, segment, part });
            self.outputs.push_back(Output::WriteIndex { place, section_bytes, chunks, part, tag });
        }
    }

    fn trims(&self, member: &Member) -> bool {
        self.wraps()
            && self.config.trim_ahead > 0
            && self.phase == Phase::Running
            && member.trims
            && member.failed.is_none()
    }

    fn trim_ahead(&mut self, now: Instant, at: usize) {
        let member = &self.members[at];
        if !self.trims(member) || member.trimming.is_some() || member.trim_due > now {
            return;
        }
        let protected =
            if is_planted(Bug::TrimsProtected) { &[] } else { self.protected.as_slice() };
        let Some(segment) = member.to_trim(self.config.trim_ahead, protected) else { return };
        let tag = self.tag(Tag::Trim(at as u16));
        let member = &mut self.members[at];
        member.trimming = Some((tag, segment));
        member.trim_due = now + self.config.trim_interval;
        let offset = member.layout.segment_offset(segment);
        let length = member.layout.segment_bytes;
        let given_up = std::mem::replace(&mut member.segments[segment as usize], Segment::Empty);
        self.give_up(at, segment, given_up);
        self.outputs.push_back(Output::Trim { member: at as u16, offset, length, tag });
    }

    fn advance_phase(&mut self) {
        let settled =
            self.waiting.is_empty() && self.members.iter().all(|m| m.in_flight.is_empty());
        match self.phase {
            Phase::Draining if settled => {
                self.phase = Phase::AwaitingEnd;
                if !is_planted(Bug::ForgetsTheEnd) {
                    self.outputs.push_back(Output::WantEnd);
                }
            }
            Phase::Ending if settled && self.members.iter().all(Member::idle) => {
                self.phase = Phase::Finished;
                self.event(Event::Finished);
            }
            _ => {}
        }
    }
}

/// What became of the search for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Member(usize),
    Wait,
    Nowhere(Refusing),
}
