//! The book of what the recorder asked of the drives and what it promised, with the laws that hold at every moment.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use format::superblock::Protected;
use format::{ChunkRecord, Count, Layout, Ledger, Place};
use recorder::Event;
use uuid::Uuid;

use crate::adversary::Asked;
use crate::outcome::{Met, Outcome};
use crate::parity::Groups;
use crate::records::Records;
use crate::source::{Contents, Source, sliced, truncated};

/// A chunk whose write was submitted, and what has been said of it since.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Its header.
    pub record: ChunkRecord,
    /// Where it lies.
    pub place: Place,
    /// Its segment.
    pub segment: u64,
    /// What is in it.
    pub contents: Contents,
    /// Acknowledged, or found when the array was opened after a crash.
    pub acknowledged: bool,
    /// A flush covered it.
    pub durable: bool,
    /// The ring gave it up.
    pub given_up: bool,
    /// It may be gone or damaged: a power cut took it before it was flushed, or a fault that the judge knows of did.
    pub excused: bool,
    /// It was acknowledged with parity, which must be there as long as it is.
    pub secured: bool,
    /// The recording that wrote it, from 0.
    pub round: usize,
}

impl Written {
    /// The number that stays the same when it is written again.
    pub fn root(&self) -> u64 {
        self.record.replaces.unwrap_or(self.record.sequence)
    }

    /// Whether it must be there.
    pub fn is_due(&self) -> bool {
        self.acknowledged && !self.given_up && !self.excused
    }
}

/// What was said of one member in the recording under way.
#[derive(Debug, Default)]
struct Said {
    held: Count,
    held_chunks: u64,
    /// The last chunk that was acknowledged.
    last: Option<u64>,
    /// Acknowledged and not yet durable, in order.
    waiting: VecDeque<(u64, Count)>,
    failed: bool,
    /// Whether a flush was done.
    flushed: bool,
    /// Whether a segment was passed over, now or in an earlier recording.
    passed_over: bool,
}

/// What was asked, done and promised.
#[derive(Debug)]
pub struct Book {
    /// Each member's.
    pub layouts: Vec<Layout>,
    /// Every chunk ever submitted, by number.
    pub chunks: BTreeMap<u64, Written>,
    /// What each chunk holds, by its first packet's number.
    pub packets: BTreeMap<u64, (Contents, Uuid)>,
    /// The recording under way, or the last.
    pub round: usize,
    /// Chunk writes that may be under way on one member.
    pub depth: u32,
    /// Whether the recording under way has said that the array is full.
    pub full: bool,
    /// Whether it has said that no member is left.
    pub no_member: bool,
    /// The ranges that must not be reused.
    pub protected: Vec<Protected>,
    /// Segments given up, in all.
    pub reused: u64,
    /// Up to which packet time the recording said that the ring has given up contents; everything later is there.
    pub reused_to_ns: u64,
    /// Whether a crash or an accident may have taken the chunks that say so.
    pub reused_unknown: bool,
    /// Up to which number the media say that segments were given up.
    told_reused: Option<u64>,
    /// Acknowledged chunks that the recording under way has given up.
    given_up_now: BTreeSet<u64>,
    /// Whether a ring's segments are given up in the order of their age: until something has been protected, damaged or
    /// brought back.
    pub in_order: bool,
    /// What is met.
    pub met: Met,
    /// Those of an array with parity.
    pub groups: Groups,
    /// Of takes that are over.
    pub records: Records,
    said: Vec<Said>,
    /// Segments whose index was written: the recorder is done with them.
    indexed: BTreeSet<(u16, u64)>,
    /// Segments that something happened to that the judge knows of, since they were begun.
    harmed: BTreeSet<(u16, u64)>,
    /// Segments that something had happened to before they were begun again, and the number they were begun with: a power cut may
    /// take that, and what it was written over is seen again.
    harmed_before: BTreeMap<(u16, u64), u64>,
    /// Members that came back in an older state at some time.
    stale: BTreeSet<u16>,
    /// Chunks as they lie on each drive: start to end and number.
    shadow: Vec<BTreeMap<u64, (u64, u64)>>,
    /// The number that each drive was given last.
    last: Vec<Option<u64>>,
    /// The chunks that were submitted in this step.
    submitted_now: BTreeSet<u64>,
    /// Where the next chunk of a segment must start, once one was seen in this recording.
    next: BTreeMap<(u16, u64), u64>,
}

impl Book {
    /// An empty one, of members that are divided so, with so many parities and chunk writes under way on one of them.
    pub fn new(layouts: Vec<Layout>, parity: u8, depth: u32) -> Self {
        let count = layouts.len();
        Self {
            layouts,
            groups: Groups::new(parity),
            records: Records::default(),
            chunks: BTreeMap::new(),
            packets: BTreeMap::new(),
            round: 0,
            depth,
            full: false,
            no_member: false,
            protected: Vec::new(),
            reused: 0,
            reused_to_ns: 0,
            reused_unknown: false,
            told_reused: None,
            given_up_now: BTreeSet::new(),
            in_order: true,
            met: Met::default(),
            indexed: BTreeSet::new(),
            harmed: BTreeSet::new(),
            harmed_before: BTreeMap::new(),
            stale: BTreeSet::new(),
            said: (0..count).map(|_| Said::default()).collect(),
            shadow: vec![BTreeMap::new(); count],
            last: vec![None; count],
            submitted_now: BTreeSet::new(),
            next: BTreeMap::new(),
        }
    }

    /// A recording begins.
    pub fn begin(&mut self, round: usize) {
        self.round = round;
        (self.full, self.no_member) = (false, false);
        self.groups.begin();
        for said in &mut self.said {
            *said = Said { passed_over: said.passed_over, ..Said::default() };
        }
        self.next.clear();
        self.given_up_now.clear();
    }

    /// The segment that an offset of a member lies in, if any.
    pub fn segment_of(&self, member: u16, offset: u64) -> Option<u64> {
        let layout = &self.layouts[usize::from(member)];
        let within = offset.checked_sub(layout.segment_offset(0))?;
        Some(within / layout.segment_bytes).filter(|&segment| segment < layout.segments)
    }

    /// Enters what the recorder has asked for and said in one step, and holds it to the laws.
    pub fn enter(
        &mut self,
        asked: Vec<Asked>,
        written: Vec<(u16, u64)>,
        events: &mut Vec<Event>,
        source: &Source,
    ) {
        let mut begun = BTreeSet::new();
        let chunks = asked.iter().filter_map(|a| a.chunk.as_ref());
        self.submitted_now = chunks.map(|(_, _, record)| record.sequence).collect();
        for asked in &asked {
            self.asked(asked, source);
            if let (Some(segment), true) =
                (self.segment_of(asked.drive, asked.start), asked.chunk.is_some())
            {
                begun.insert((asked.drive, segment));
            }
        }
        for event in events.drain(..) {
            self.said(&event);
        }
        for asked in asked {
            self.written_over(&asked);
        }
        for (drive, end) in written {
            // Behind the last chunk of a segment there is always its index.
            let segment = self.segment_of(drive, end - 1);
            let layout = &self.layouts[usize::from(drive)];
            if let Some(segment) = segment
                && layout.segment_offset(segment + 1) == end
                && !begun.contains(&(drive, segment))
            {
                self.indexed.insert((drive, segment));
            }
        }
    }

    fn asked(&mut self, asked: &Asked, source: &Source) {
        let Some(segment) = self.segment_of(asked.drive, asked.start) else { return };
        let layout = &self.layouts[usize::from(asked.drive)];
        assert!(
            asked.end <= layout.segment_offset(segment + 1),
            "writing order: {} to {} on drive {} crosses the end of segment {segment}",
            asked.start,
            asked.end,
            asked.drive
        );
        let Some((buffer, place, record)) = &asked.chunk else { return };
        let (drive, sequence) = (asked.drive, record.sequence);
        let (at_once, depth) = (asked.at_once, self.depth);
        assert!(at_once <= depth, "depth: {at_once} chunk writes on drive {drive}, not {depth}");
        assert_eq!(place.member, drive, "a chunk goes to the member that its header names");
        let begins = place.offset == layout.segment_offset(segment);
        if begins {
            if self.harmed.remove(&(drive, segment)) {
                self.harmed_before.insert((drive, segment), sequence);
            }
            self.indexed.remove(&(drive, segment));
        }
        let expected = self.next.insert((drive, segment), asked.end);
        assert!(
            begins || expected.is_none_or(|at| at == place.offset),
            "writing order: chunk {sequence} at {} in segment {segment} of drive {drive}, not at {expected:?}",
            place.offset
        );
        assert!(record.ledger.balances(), "ledger: chunk {sequence} carries {:?}", record.ledger);
        if record.parity.is_some() {
            self.groups.asked(place, record, asked.table.as_ref());
        }
        let contents = match record.parity {
            Some(_) => Contents::NOTHING,
            None => source.contents[buffer],
        };
        assert_eq!(contents.count(), record.summary.stored(), "a buffer is its chunk's own");
        if record.replaces.is_some() {
            self.met.add(Outcome::PlacedAgain);
        }
        if record.parity.is_none() {
            self.packets.insert(contents.first, (contents, record.take.uuid));
        }
        let written = Written {
            record: **record,
            place: *place,
            segment,
            contents,
            acknowledged: false,
            durable: false,
            given_up: false,
            secured: false,
            // What lies behind a hole may not be found.
            excused: self.harmed.contains(&(drive, segment)),
            round: self.round,
        };
        let before = self.chunks.insert(sequence, written);
        assert!(before.is_none(), "number {sequence} was given out twice");
        let last = self.last[usize::from(drive)].replace(sequence);
        assert!(last < Some(sequence), "numbers go up on each member");
    }

    /// Nothing that must be there is written or trimmed over, and nothing trimmed of which no chunk says that it was given up.
    fn written_over(&mut self, asked: &Asked) {
        let segment = self.segment_of(asked.drive, asked.start);
        let layout = &self.layouts[usize::from(asked.drive)];
        let whole = |s| [layout.segment_offset(s), layout.segment_offset(s + 1)];
        let trims =
            asked.chunk.is_none() && segment.is_some_and(|s| whole(s) == [asked.start, asked.end]);
        let shadow = &mut self.shadow[usize::from(asked.drive)];
        let over: Vec<(u64, u64)> = shadow
            .range(..asked.end)
            .rev()
            .take_while(|(_, (end, _))| *end > asked.start)
            .map(|(&start, &(_, sequence))| (start, sequence))
            .collect();
        for (start, sequence) in over {
            shadow.remove(&start);
            let chunk = &self.chunks[&sequence];
            assert!(
                !chunk.is_due(),
                "chunk {sequence} at {} of member {} is written over",
                chunk.place.offset,
                chunk.place.member
            );
            assert!(
                !trims
                    || chunk.excused
                    || !self.given_up_now.contains(&sequence)
                    || Some(sequence) <= self.told_reused,
                "trim: chunk {sequence} of member {} is trimmed, and what was given up is told to {:?}",
                chunk.place.member,
                self.told_reused
            );
        }
        if let Some((_, _, record)) = &asked.chunk {
            shadow.insert(asked.start, (asked.end, record.sequence));
        }
    }

    fn said(&mut self, event: &Event) {
        match *event {
            Event::Acknowledged { sequence, member, count, .. } => {
                self.acknowledged(sequence, member, count);
            }
            Event::Durable { member, count } => self.durable(member, count),
            Event::MemberFailed { member, held, held_chunks, .. } => {
                self.met.add(Outcome::MemberFailed);
                let said = &mut self.said[usize::from(member)];
                assert!(!said.failed, "a member fails once");
                said.failed = true;
                if self.groups.parity > 0 {
                    self.met.add(Outcome::DiedUnderParity);
                }
                assert_eq!((held, held_chunks), (said.held, said.held_chunks), "what it held");
            }
            Event::Reused { member, segment, .. } => self.given_up(member, segment),
            Event::ArrayFull { protected } => {
                self.full = true;
                self.met.add(match protected {
                    true => Outcome::FullOfProtected,
                    false => Outcome::ArrayFull,
                });
            }
            Event::NoMemberLeft => {
                self.no_member = true;
                self.met.add(Outcome::NoMemberLeft);
            }
            Event::DurableChunk { sequence, count } => self.durable_chunk(sequence, count),
            Event::ParityReduced { parities, .. } => {
                self.groups.reduced(parities);
                self.met.add(Outcome::ParityReduced);
            }
            Event::TrimFailed { .. } | Event::Finished => {}
        }
    }

    fn acknowledged(&mut self, sequence: u64, member: u16, count: Count) {
        let Some(chunk) = self.chunks.get_mut(&sequence) else {
            panic!("chunk {sequence} is acknowledged and was never written")
        };
        assert!(!chunk.acknowledged, "chunk {sequence} is acknowledged twice");
        assert_eq!((chunk.place.member, chunk.contents.count()), (member, count), "what it is");
        chunk.acknowledged = true;
        self.told_reused = self.told_reused.max(chunk.record.reused);
        let parity = self.groups.parity > 0;
        let said = &mut self.said[usize::from(member)];
        assert!(parity || said.last < Some(sequence), "acknowledged in order on each member");
        said.last = Some(sequence);
        said.held += count;
        said.held_chunks += 1;
        if !parity {
            said.waiting.push_back((sequence, count));
            return;
        }
        let guards = self.groups.guards(sequence).to_vec();
        let least = usize::from(self.groups.told);
        let met = guards.len();
        assert!(met >= least, "parity: chunk {sequence} is acknowledged with {met} of {least}");
        for guard in guards {
            if let Some(parity) = self.chunks.get_mut(&guard) {
                parity.acknowledged = true;
            }
        }
        if let Some(chunk) = self.chunks.get_mut(&sequence) {
            chunk.secured = met > 0;
        }
    }

    /// In an array with parity groups become durable whole, in any order.
    fn durable_chunk(&mut self, sequence: u64, count: Count) {
        let Some(chunk) = self.chunks.get_mut(&sequence) else {
            panic!("chunk {sequence} is durable and was never written")
        };
        assert!(self.groups.parity > 0, "without parity, what is durable is told for each member");
        assert!(chunk.acknowledged && !chunk.durable, "durable once, and after it is acknowledged");
        assert_eq!(chunk.contents.count(), count, "what it is");
        chunk.durable = true;
        let member = chunk.place.member;
        for guard in self.groups.guards(sequence) {
            if let Some(parity) = self.chunks.get_mut(guard) {
                parity.durable = true;
            }
        }
        self.flushed(member);
    }

    fn durable(&mut self, member: u16, count: Count) {
        let mut left = count;
        while !left.is_zero() {
            let Some((sequence, of)) = self.said[usize::from(member)].waiting.pop_front() else {
                panic!("{count:?} of member {member} is durable before it is acknowledged")
            };
            assert!(of.packets <= left.packets, "a flush covers whole chunks, in order");
            left = left - of;
            if let Some(chunk) = self.chunks.get_mut(&sequence) {
                chunk.durable = true;
            }
        }
        self.flushed(member);
    }

    /// A flush of a member was done.
    fn flushed(&mut self, member: u16) {
        if std::mem::replace(&mut self.said[usize::from(member)].flushed, true) {
            return;
        }
        // What earlier recordings left on it was done long before.
        let round = self.round;
        for chunk in self.chunks.values_mut() {
            if chunk.round < round && chunk.place.member == member && chunk.acknowledged {
                chunk.durable = true;
            }
        }
    }

    fn given_up(&mut self, member: u16, segment: u64) {
        self.reused += 1;
        self.met.add(Outcome::Wrapped);
        let protected: Vec<_> =
            self.protected.iter().map(|p| (p.from.as_nanos(), p.to.as_nanos())).collect();
        let mut newest = 0;
        let mut given_up = Vec::new();
        let mut oldest_kept = (u64::MAX, 0);
        for chunk in self.chunks.values_mut() {
            if chunk.place.member != member || chunk.given_up {
                continue;
            }
            if !chunk.acknowledged {
                // A group may not be whole yet when a small ring comes round to one of its chunks, and what an earlier recording
                // wrote without an acknowledgement may lie there or not.
                chunk.given_up = chunk.segment == segment
                    && !self.submitted_now.contains(&chunk.record.sequence);
                continue;
            }
            if chunk.segment != segment {
                if !chunk.excused {
                    let kept = (chunk.record.sequence, chunk.segment);
                    oldest_kept = oldest_kept.min(kept);
                }
                continue;
            }
            if !chunk.excused {
                newest = newest.max(chunk.record.sequence);
            }
            let summary = &chunk.record.summary;
            assert!(
                chunk.excused || !protected.iter().any(|&(from, to)| summary.overlaps(from, to)),
                "protection: segment {segment} of member {member} is given up with chunk {} in it",
                chunk.record.sequence
            );
            chunk.given_up = true;
            self.given_up_now.insert(chunk.record.sequence);
            given_up.push(chunk.record.sequence);
        }
        for sequence in given_up {
            self.keeps_groups(sequence, &protected);
        }
        let (oldest_kept, kept_in) = oldest_kept;
        if newest > oldest_kept && !self.indexed.contains(&(member, kept_in)) {
            // It was passed over because it is still being closed. From now on their order is another.
            self.said[usize::from(member)].passed_over = true;
        }
        let in_order = self.in_order && !self.said[usize::from(member)].passed_over;
        assert!(
            !in_order || newest < oldest_kept,
            "ring: segment {segment} of member {member} is given up with chunk {newest}, and chunk {oldest_kept} is older"
        );
        if !protected.is_empty() && oldest_kept < newest {
            self.met.add(Outcome::Spared);
        }
    }

    /// A recording says since when nothing is missing.
    pub fn says_kept_since(&mut self, reused_to_ns: u64) {
        let least = if self.reused_unknown { self.reused_to_ns } else { 0 };
        self.reused_to_ns = reused_to_ns.max(least);
    }

    /// A chunk that the ring gives up is of no group that protects a chunk of a protected time.
    fn keeps_groups(&self, sequence: u64, protected: &[(u64, u64)]) {
        let group = self.groups.with(sequence);
        // Where a drive has lied about a part of the group, the recorder can't know what belongs to it.
        if group.iter().any(|other| self.chunks.get(other).is_some_and(|chunk| chunk.excused)) {
            return;
        }
        for other in group {
            let Some(chunk) = self.chunks.get(&other).filter(|c| c.is_due() && c.secured) else {
                continue;
            };
            let summary = &chunk.record.summary;
            assert!(
                !protected.iter().any(|&(from, to)| summary.overlaps(from, to)),
                "protection: chunk {sequence} is given up, and chunk {other} of its group is protected"
            );
        }
    }

    /// From now on the chunks of a segment may be gone or damaged: something happened to it that the judge knows of.
    pub fn excuse(&mut self, member: u16, segment: u64) {
        self.harmed.insert((member, segment));
        self.in_order = false;
        for chunk in self.chunks.values_mut() {
            chunk.excused |= chunk.place.member == member && chunk.segment == segment;
        }
    }

    /// From now on what the last recording wrote on a member may be gone: it came back in an older state.
    pub fn excuse_round(&mut self, member: u16) {
        self.in_order = false;
        self.stale.insert(member);
        let round = self.round;
        for chunk in self.chunks.values_mut() {
            // What was harmed before may be so again in the older state.
            let harmed = self.harmed.contains(&(member, chunk.segment));
            chunk.excused |= chunk.place.member == member && (chunk.round == round || harmed);
        }
    }

    /// Whether something has happened that the judge knows of to what a segment held together with this chunk.
    pub fn is_harmed(&self, member: u16, segment: u64, sequence: u64) -> bool {
        let before = self.harmed_before.get(&(member, segment));
        self.harmed.contains(&(member, segment)) || before.is_some_and(|&begun| sequence < begun)
    }

    /// Whether a member came back in an older state at some time.
    pub fn came_back_stale(&self, member: u16) -> bool {
        self.stale.contains(&member)
    }

    /// What the recording under way was asked to store, as far as a drive was asked for it.
    pub fn submitted(&self) -> Count {
        let roots: BTreeMap<u64, Count> =
            self.this_round().map(|c| (c.root(), c.contents.count())).collect();
        roots.into_values().fold(Count::ZERO, |a, b| a + b)
    }

    /// Whether a member has failed in the recording under way, or the last.
    pub fn has_failed(&self, member: u16) -> bool {
        self.said[usize::from(member)].failed
    }

    /// The chunks of the recording under way, or the last, by number.
    pub fn this_round(&self) -> impl Iterator<Item = &Written> {
        self.chunks.values().filter(|c| c.round == self.round)
    }

    /// Whether the ring has given up what a segment held, and nothing that must be there has come since.
    pub fn is_given_up(&self, member: u16, segment: u64) -> bool {
        let here = |c: &&Written| c.place.member == member && c.segment == segment;
        let mut chunks = self.chunks.values().filter(here);
        !chunks.clone().any(Written::is_due) && chunks.any(|c| c.given_up)
    }

    /// Bytes of chunks that each member was asked to write in the recording under way, or the last.
    pub fn given_bytes(&self) -> Vec<u64> {
        let mut given = vec![0; self.layouts.len()];
        for chunk in self.this_round() {
            given[usize::from(chunk.place.member)] += u64::from(chunk.record.summary.length);
        }
        given
    }

    /// What is said of truncated and sliced packets, in chunks and in the end, is what the source has cut off of what is stored.
    pub fn agrees_on_shortened(&self, told: &Ledger) {
        let (mut kept, mut carried) = (Ledger::default(), Ledger::default());
        for chunk in self.this_round().filter(|c| c.record.parity.is_none()) {
            let count = chunk.contents.count();
            let mut of = Ledger::default();
            (of.truncated, of.sliced) = (truncated(count), sliced(count));
            if chunk.acknowledged {
                kept.add(&of);
            }
            if chunk.record.replaces.is_none() {
                carried.add(&of);
            }
            let (sequence, told) = (chunk.record.sequence, chunk.record.ledger.shortened());
            assert_eq!(told, carried, "ledger: shortened through chunk {sequence}");
        }
        assert_eq!(told.shortened(), kept, "ledger: shortened, of what is stored");
    }

    /// What the recording under way has acknowledged: packets, each once.
    pub fn stored(&self) -> u64 {
        let this = self.this_round().filter(|c| c.acknowledged);
        let mut firsts: Vec<(u64, u32)> =
            this.map(|c| (c.contents.first, c.contents.packets)).collect();
        firsts.retain(|&(_, packets)| packets > 0);
        let all: u64 = firsts.iter().map(|&(_, packets)| u64::from(packets)).sum();
        firsts.sort_unstable();
        let twice = firsts.windows(2).any(|pair| pair[0].0 == pair[1].0);
        assert!(!twice, "ledger: a chunk is stored twice");
        all
    }
}
