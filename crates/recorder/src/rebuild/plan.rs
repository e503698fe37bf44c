//! What lay on a lost member, as far as the others tell: its chunks by the tables of their groups, its parity by the
//! groups that lack one, and holes that nothing is known of.

use std::collections::{HashSet, VecDeque};

use base::{Bank, Buffers, Timestamp};
use format::layout::DATA_OFFSET;
use format::parity::{LastParities, Part, PlacedParity, Row};
use format::{ChunkRecord, ChunkSummary, Layout, Ledger, Place, TakeId};
use uuid::Uuid;

use crate::open::{ArrayImage, MemberImage};
use crate::reader::{ReadError, Reader};
use crate::recover::Groups;
use crate::takes::{Catalog, Entry};

use super::lost::{Lost, LostParity, Numbers};

/// What to write, segment by segment in the order of their chunks.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) layout: Layout,
    /// What chunks are recovered from.
    pub(crate) groups: Groups,
    pub(super) segments: Vec<SegmentPlan>,
    /// The greatest number that a ring has given up: chunks up to it may be had no more, which is no loss.
    pub(super) reused: Option<u64>,
    /// Groups that lack a parity chunk for which no place was found.
    pub groups_without: u64,
}

/// One segment of it.
#[derive(Clone, Debug)]
pub(super) struct SegmentPlan {
    pub(super) segment: u64,
    pub(super) pieces: Vec<Piece>,
}

/// One chunk of it.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// A chunk that parity gives back.
    Chunk(Entry),
    /// Parity of these chunks; the checksum in its record is still to come.
    Parity(Entry, Vec<Row>),
    /// A chunk that only fills a hole, and whether packets are missing that may have been there.
    Filler(Entry, bool),
}

impl Piece {
    pub(crate) const fn entry(&self) -> &Entry {
        match self {
            Self::Chunk(entry) | Self::Parity(entry, _) | Self::Filler(entry, _) => entry,
        }
    }
}

impl Plan {
    /// Plans a member's rebuild. `recorded` is the take that is being recorded meanwhile: its groups may be still
    /// to get their parity.
    ///
    /// # Errors
    /// [`ReadError`] if the bank fails.
    pub fn new<B: Bank, M: Buffers>(
        reader: &mut Reader<'_, B, M>,
        image: &ArrayImage,
        catalog: &Catalog,
        member: u16,
        recorded: Option<Uuid>,
    ) -> Result<Self, ReadError> {
        let layout = &image.members[usize::from(member)].layout;
        let runs = runs(&catalog.entries, member, layout);
        let mut numbers = Numbers::new(catalog);
        let Lost { told, untold, incomplete } =
            Lost::of(reader, image, catalog, &numbers, member, recorded)?;
        let place =
            Place { array: image.uuid, member, members: image.members.len() as u16, offset: 0 };
        let missing = |(at, m): (u16, &MemberImage)| at != member && m.is_missing();
        let mut builder = Builder {
            place,
            numbers: &mut numbers,
            told: told.into(),
            untold,
            plan: Self {
                layout: *layout,
                groups: Groups::of(&catalog.entries),
                segments: Vec::new(),
                reused: catalog.reused,
                groups_without: incomplete,
            },
            used: runs.iter().map(|run| run.segment).collect(),
            end: None,
            last: None,
            oldest: Vec::new(),
            others_missing: (0..).zip(&image.members).any(missing),
            recorded,
        };
        let first = runs.first().map(|run| run.segment);
        for run in runs {
            builder.run(run);
        }
        builder.finish(first);
        Ok(builder.plan)
    }

    /// Chunks to be written or found, of every kind.
    pub fn pieces(&self) -> u64 {
        self.segments.iter().map(|s| s.pieces.len() as u64).sum()
    }

    /// Parity that lies between chunks that are known, so that its place is certain.
    pub(crate) fn parity_between(&self) -> impl Iterator<Item = &Piece> {
        self.segments.iter().flat_map(|SegmentPlan { pieces, .. }| {
            let known = |piece: &Piece| matches!(piece, Piece::Chunk(_));
            let end = pieces.iter().rposition(known).unwrap_or(0);
            pieces[..end].iter().filter(|piece| matches!(piece, Piece::Parity(..)))
        })
    }

    /// Bytes of them.
    pub fn bytes(&self) -> u64 {
        let pieces = self.segments.iter().flat_map(|s| &s.pieces);
        pieces.map(|piece| u64::from(piece.entry().record.summary.length)).sum()
    }
}

/// A segment's chunks that are known, in order.
struct Run {
    segment: u64,
    chunks: Vec<Entry>,
}

/// The known chunks of a member by segment. Where a ring wrote a segment anew, what was before it is left out though parity may
/// still have it: from the newest chunk back, places and segments must go down without a return.
fn runs(entries: &[Entry], member: u16, layout: &Layout) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut visited = HashSet::new();
    for entry in entries.iter().rev().filter(|e| e.place.member == member) {
        let Some(within) = entry.place.offset.checked_sub(DATA_OFFSET) else { continue };
        let segment = layout.segment_at(entry.place.offset);
        let length = u64::from(entry.record.summary.length);
        let inside = within % layout.segment_bytes + length <= layout.segment_bytes;
        if segment >= layout.segments || !inside {
            continue;
        }
        match runs.last_mut().filter(|run| run.segment == segment) {
            Some(run) => {
                let before = |next: &Entry| entry.place.offset + length <= next.place.offset;
                if run.chunks.last().is_some_and(before) {
                    run.chunks.push(*entry);
                }
            }
            None if visited.insert(segment) => runs.push(Run { segment, chunks: vec![*entry] }),
            None => {}
        }
    }
    runs.iter_mut().for_each(|run| run.chunks.reverse());
    runs.reverse();
    runs
}

/// Lays pieces into segments.
struct Builder<'n, 'c> {
    place: Place,
    numbers: &'n mut Numbers<'c>,
    /// Parity whose number is told, in order; what has a place is gone from it.
    told: VecDeque<LostParity>,
    /// Parity that is nowhere told of.
    untold: Vec<LostParity>,
    plan: Plan,
    /// Segments that something lies in.
    used: HashSet<u64>,
    /// The segment that was written last, and how far.
    end: Option<(u64, u64)>,
    /// What was laid down last.
    last: Option<ChunkRecord>,
    /// What lies before everything that is known of the member.
    oldest: Vec<LostParity>,
    /// Other members are missing too: what is nowhere told of may have been theirs.
    others_missing: bool,
    /// The take that is being recorded: its numbers may be on their way.
    recorded: Option<Uuid>,
}

/// Parity that nobody tells of is tried in holes by so many at a time.
const TRIED_MAX: usize = 10;
/// Sequence numbers are below this.
const NUMBERS_END: u64 = 1 << 63;

fn sum(lost: &[LostParity]) -> u64 {
    lost.iter().map(LostParity::length).sum()
}

impl Builder<'_, '_> {
    /// A segment's known chunks, with what lay before and between them.
    fn run(&mut self, run: Run) {
        let Some(first) = run.chunks.first() else { return };
        let start = self.plan.layout.segment_offset(run.segment);
        let mut below = self.told_below(first.record.sequence);
        // What fits before the first chunk was there, the others in the segments before. Without what is nowhere told of it
        // fits exactly; else with some of that.
        let hole = first.place.offset - start;
        let fits = |&at: &usize| sum(&below[at..]) <= hole;
        let least = (0..=below.len()).find(fits).unwrap_or(below.len());
        let next = first.record.sequence;
        let last = self.last_number();
        let exactly = |at: usize| {
            let rest = hole - sum(&below[at..]);
            let before = below[..at].last().map_or(last, |lost| lost.number);
            let set = if rest == 0 { Some(Vec::new()) } else { self.fitting(rest, before, next) };
            Some((at, set?))
        };
        let (at, set) = (least..=below.len()).find_map(exactly).unwrap_or((least, Vec::new()));
        let mut inside = below.split_off(at);
        self.take_in(&mut inside, set);
        let following = inside.first().map_or(next, |lost| lost.number);
        self.behind(below, Some((&first.record, following)));
        self.plan.segments.push(SegmentPlan { segment: run.segment, pieces: Vec::new() });
        let mut offset = start;
        for chunk in &run.chunks {
            inside.append(&mut self.told_below(chunk.record.sequence));
            if !self.hole(std::mem::take(&mut inside), &mut offset, chunk) {
                break;
            }
            self.piece(Piece::Chunk(*chunk), &mut offset);
        }
        self.end = Some((run.segment, offset - start));
    }

    /// The told parity up to a number.
    fn told_below(&mut self, sequence: u64) -> Vec<LostParity> {
        let count = self.told.partition_point(|lost| lost.number < sequence);
        self.told.drain(..count).collect()
    }

    /// What lay in the hole from `offset` to a chunk. False if it can't be filled: nothing behind it would be found.
    fn hole(&mut self, mut inside: Vec<LostParity>, offset: &mut u64, next: &Entry) -> bool {
        let hole = next.place.offset - *offset;
        let last = self.last_number();
        if sum(&inside) > hole || inside.iter().any(|lost| lost.number <= last) {
            inside.drain(..).for_each(|lost| self.without_place(&lost));
        }
        let mut rest = hole - sum(&inside);
        if let Some(set) = self.fitting(rest, last, next.record.sequence) {
            rest = 0;
            self.take_in(&mut inside, set);
        }
        let mut pieces: Vec<(LostParity, ChunkRecord)> = Vec::new();
        for lost in inside {
            match self.numbers.record(&lost) {
                Some(record) => pieces.push((lost, record)),
                None => rest += lost.length(),
            }
        }
        // The rest is filled where numbers are left for that.
        let count = rest.div_ceil(u64::from(self.plan.layout.chunk_max));
        let least = if last > 0 { last + 1 } else { 0 };
        let records = || pieces.iter().map(|(_, record)| record);
        let from = std::iter::once(least).chain(records().map(|record| record.sequence + 1));
        let gaps = from.zip(records().chain([&next.record]).copied().collect::<Vec<_>>());
        let room = |(from, to): &(u64, ChunkRecord)| from + count <= to.sequence;
        let filled = gaps.enumerate().filter(|(_, gap)| room(gap)).last();
        let Some((before, (_, to))) = filled else {
            pieces.iter().for_each(|(lost, _)| self.without_place(lost));
            return false;
        };
        let mut behind = pieces.split_off(before);
        for (lost, record) in pieces {
            self.parity(lost, record, offset);
        }
        self.fill(rest, offset, &to);
        for (lost, record) in behind.drain(..) {
            self.parity(lost, record, offset);
        }
        true
    }

    /// The number of what was laid down last.
    fn last_number(&self) -> u64 {
        self.last.map_or(0, |last| last.sequence)
    }

    /// Adds parity that nobody tells of, by its places in the list, with numbers.
    fn take_in(&mut self, inside: &mut Vec<LostParity>, set: Vec<(usize, u64)>) {
        // From the end, so that places before it stay what they are.
        for (at, number) in set.into_iter().rev() {
            let lost = self.untold.remove(at);
            inside.push(self.number(lost, number));
        }
        inside.sort_by_key(|lost| lost.number);
    }

    /// Parity that nobody tells of that is just so long and has numbers from behind `after` to before `below`: its places in the
    /// list, with numbers.
    fn fitting(&self, length: u64, after: u64, below: u64) -> Option<Vec<(usize, u64)>> {
        let end = self.untold.partition_point(|lost| lost.newest() < below);
        let from = end.saturating_sub(TRIED_MAX);
        let some = &self.untold[from..end];
        (1u32..1 << some.len()).find_map(|set| {
            let taken = || (0..some.len()).filter(|at| set >> at & 1 == 1);
            if taken().map(|at| some[at].length()).sum::<u64>() != length {
                return None;
            }
            let mut last = after;
            taken()
                .map(|at| {
                    last = self.free_number(&some[at], last, below)?;
                    Some((from + at, last))
                })
                .collect()
        })
    }

    /// A number behind another one for parity that nobody tells of.
    fn free_number(&self, lost: &LostParity, last: u64, below: u64) -> Option<u64> {
        let number = self.numbers.free(last.max(lost.newest()) + 1, below)?;
        let take = self.numbers.take_at(number)?;
        (self.recorded != Some(take.uuid)).then_some(number)
    }

    /// Gives parity that nobody told of a number, and the take that this number is in: takes lie one behind the other.
    fn number(&mut self, lost: LostParity, number: u64) -> LostParity {
        let Part { group, place, of, .. } = lost.part;
        let member = self.place.member;
        self.numbers.give(PlacedParity { sequence: number, group, member, place, of });
        LostParity { number, take: self.numbers.take_at(number).unwrap_or(lost.take), ..lost }
    }

    /// What is behind all that is known of the member.
    fn finish(&mut self, first: Option<u64>) {
        let told = self.told.drain(..).collect();
        self.behind(told, None);
        std::mem::take(&mut self.untold).iter().for_each(|lost| self.without_place(lost));
        self.lay_oldest(first);
    }

    /// Told parity goes behind what was written last, and into free segments from there to that of the next chunk that is
    /// known. So does, at the end of its take, what nobody told of. `next` is that chunk and the number that follows: the
    /// chunk's, or that of parity which lies in its segment before it.
    fn behind(&mut self, mut told: Vec<LostParity>, next: Option<(&ChunkRecord, u64)>) {
        let mut last = self.last_number();
        let below = match next {
            Some((next, following)) if next.take.first_sequence > last => {
                next.take.first_sequence.min(following)
            }
            Some((_, following)) => following,
            None => NUMBERS_END,
        };
        let over = |lost: &LostParity| {
            lost.newest() < below && next.is_none_or(|(next, _)| next.take != lost.take)
        };
        let (over, others) = std::mem::take(&mut self.untold).into_iter().partition(over);
        self.untold = others;
        let mut numbered = Vec::new();
        for lost in over {
            match self.free_number(&lost, last, below) {
                Some(number) => {
                    last = number;
                    numbered.push((lost, number));
                }
                None => self.untold.push(lost),
            }
        }
        // What is told of had its place here, and comes first.
        let count = self.count_that_fits(&told, &numbered);
        self.untold.extend(numbered.split_off(count).into_iter().map(|(lost, _)| lost));
        self.untold.sort_by_key(LostParity::newest);
        told.extend(numbered.into_iter().map(|(lost, number)| self.number(lost, number)));
        told.sort_by_key(|lost| lost.number);
        if self.end.is_none() {
            self.oldest = told;
            return;
        }
        told.into_iter().for_each(|lost| self.lay_behind(lost));
    }

    /// How many of these, from the first on, fit behind what was written last together with everything that is told of.
    fn count_that_fits(&self, told: &[LostParity], numbered: &[(LostParity, u64)]) -> usize {
        let Some((end, written)) = self.end else { return numbered.len() };
        let layout = &self.plan.layout;
        let fit = |count: usize| {
            let numbered = numbered[..count].iter().map(|(lost, number)| (*number, lost.length()));
            let told = told.iter().map(|lost| (lost.number, lost.length()));
            let mut lengths: Vec<(u64, u64)> = told.chain(numbered).collect();
            lengths.sort_unstable();
            let (mut segment, mut used, mut chunks) = (end, written, self.chunks_at_end());
            lengths.iter().all(|&(_, length)| {
                if !layout.fits(used, chunks, length as u32) {
                    segment = (segment + 1) % layout.segments;
                    (used, chunks) = (0, 0);
                }
                (used, chunks) = (used + length, chunks + 1);
                chunks > 1 || self.is_free(segment) || segment == end
            })
        };
        let counts: Vec<usize> = (1..=numbered.len()).collect();
        counts.partition_point(|&count| fit(count))
    }

    /// Chunks in the segment that was written last.
    fn chunks_at_end(&self) -> u64 {
        self.plan.segments.last().map_or(0, |segment| segment.pieces.len() as u64)
    }

    /// Lays parity behind what was written last, in a free segment if that one is full.
    fn lay_behind(&mut self, lost: LostParity) {
        let follows = self.last.is_none_or(|last| last.sequence < lost.number);
        let record = self.numbers.record(&lost).filter(|_| follows);
        let (Some(record), Some((mut at, mut used))) = (record, self.end) else {
            return self.without_place(&lost);
        };
        if !self.plan.layout.fits(used, self.chunks_at_end(), lost.length() as u32) {
            (at, used) = ((at + 1) % self.plan.layout.segments, 0);
            if !self.is_free(at) {
                return self.without_place(&lost);
            }
            self.used.insert(at);
            self.plan.segments.retain(|segment| segment.segment != at);
            self.plan.segments.push(SegmentPlan { segment: at, pieces: Vec::new() });
        }
        let start = self.plan.layout.segment_offset(at);
        let mut offset = start + used;
        self.parity(lost, record, &mut offset);
        self.end = Some((at, offset - start));
    }

    /// Whether nothing lies in a segment but what a ring has given up.
    fn is_free(&self, segment: u64) -> bool {
        let given_up = |plan: &SegmentPlan| {
            plan.pieces.iter().all(|piece| self.numbers.given_up(piece.entry().record.sequence))
        };
        let mut plans = self.plan.segments.iter().filter(|plan| plan.segment == segment);
        !self.used.contains(&segment) || plans.next().is_some_and(given_up)
    }

    /// Lays what is older than all that is known into the segments before that, or from the first one on if nothing is known.
    fn lay_oldest(&mut self, first: Option<u64>) {
        let layout = self.plan.layout;
        let mut segments: Vec<Vec<LostParity>> = Vec::new();
        let mut used = 0;
        for lost in std::mem::take(&mut self.oldest) {
            let length = lost.length();
            match segments.last_mut().filter(|s| layout.fits(used, s.len() as u64, length as u32)) {
                Some(segment) => segment.push(lost),
                None => {
                    segments.push(vec![lost]);
                    used = 0;
                }
            }
            used += length;
        }
        let before = |back: u64| (first.unwrap_or(0) + layout.segments - back) % layout.segments;
        // No more than are needed: a superblock may promise any number of segments.
        let needed = segments.len();
        let free = (1..=layout.segments)
            .take(needed)
            .take_while(|&back| !self.used.contains(&before(back)));
        // What the ring has given up comes first.
        let too_many = needed - free.count();
        segments.drain(..too_many).flatten().for_each(|lost| self.without_place(&lost));
        let count = segments.len() as u64;
        let known = std::mem::take(&mut self.plan.segments);
        for (at, parities) in (0..).zip(segments) {
            let segment = if first.is_some() { before(count - at) } else { at };
            let mut offset = layout.segment_offset(segment);
            self.plan.segments.push(SegmentPlan { segment, pieces: Vec::new() });
            for lost in parities {
                match self.numbers.record(&lost) {
                    Some(record) => self.parity(lost, record, &mut offset),
                    None => self.without_place(&lost),
                }
            }
        }
        self.plan.segments.extend(known);
    }

    /// Counts lost parity that no place is found for, unless a ring has given it up or it may have been another missing member's.
    fn without_place(&mut self, lost: &LostParity) {
        let given_up = self.numbers.given_up(lost.part.group) || self.numbers.given_up(lost.number);
        if !given_up && (lost.told || !self.others_missing) {
            self.plan.groups_without += 1;
        }
    }

    fn parity(&mut self, lost: LostParity, record: ChunkRecord, offset: &mut u64) {
        let place = Place { offset: *offset, ..self.place };
        self.piece(Piece::Parity(Entry { place, record }, lost.rows), offset);
    }

    fn piece(&mut self, piece: Piece, offset: &mut u64) {
        let record = piece.entry().record;
        *offset += u64::from(record.summary.length);
        self.last = Some(record);
        if let Some(segment) = self.plan.segments.last_mut() {
            segment.pieces.push(piece);
        }
    }

    /// Fills a hole of this length before a chunk, for which there are numbers.
    fn fill(&mut self, mut hole: u64, offset: &mut u64, next: &ChunkRecord) {
        let chunk_max = u64::from(self.plan.layout.chunk_max);
        let count = hole.div_ceil(chunk_max);
        let from = self.last_number();
        let lacks = self.numbers.lacks_packets(from, next.sequence);
        for sequence in next.sequence - count..next.sequence {
            let length = hole.min(chunk_max);
            hole -= length;
            let place = Place { offset: *offset, ..self.place };
            let record = filler(sequence, length as u32, self.last.as_ref(), next);
            self.piece(Piece::Filler(Entry { place, record }, lacks), offset);
        }
    }
}

/// A chunk of nothing, between these two.
pub(super) fn filler(
    sequence: u64,
    length: u32,
    last: Option<&ChunkRecord>,
    next: &ChunkRecord,
) -> ChunkRecord {
    let nobody = TakeId { uuid: Uuid::nil(), started: Timestamp::MIN, first_sequence: 0 };
    let take = if sequence >= next.take.first_sequence {
        next.take
    } else {
        last.map_or(nobody, |last| last.take)
    };
    ChunkRecord {
        take,
        sequence,
        replaces: None,
        ledger: last.map_or_else(Ledger::default, |last| last.ledger),
        reused: next.reused,
        reused_to_ns: next.reused_to_ns,
        parity: Some(Part::FILLER),
        group: None,
        last_parities: LastParities::default(),
        summary: ChunkSummary { length, ..ChunkSummary::EMPTY },
    }
}
