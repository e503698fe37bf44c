//! What lay on a lost member, as far as the others tell: its chunks by the tables of their groups, its parity by the
//! groups that lack one, and holes that nothing is known of.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use base::{Bank, Buffers, Timestamp};
use format::layout::DATA_OFFSET;
use format::parity::{GROUP_MAX, OVERHEAD_BYTES, Part, Row};
use format::section::HEADER_BYTES;
use format::{ChunkRecord, Layout, Ledger, Place, Summary, TakeId};
use uuid::Uuid;

use crate::open::{ArrayImage, MemberImage};
use crate::reader::{ReadError, Reader};
use crate::recover::{self, Groups};
use crate::takes::{Catalog, Entry};

/// A parity chunk gets its number soon after its group's last chunk: before so many more.
const NEAR: u64 = 256;

/// Chunks of a recording that may be on their way to their members, at most: it has no more buffers.
const UNDER_WAY_MAX: u64 = 1 << 16;

/// What to write, segment by segment in the order of their chunks.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) layout: Layout,
    /// What chunks are recovered from.
    pub(crate) groups: Groups,
    pub(super) segments: Vec<SegmentPlan>,
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
    /// A chunk that only fills a hole.
    Filler(Entry),
}

impl Piece {
    pub(crate) const fn entry(&self) -> &Entry {
        match self {
            Self::Chunk(entry) | Self::Parity(entry, _) | Self::Filler(entry) => entry,
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
        let lost = lost_parity(reader, image, catalog, member, recorded)?;
        let place =
            Place { array: image.uuid, member, members: image.members.len() as u16, offset: 0 };
        let groups = Groups::of(&catalog.entries);
        let plan = Self { layout: *layout, groups, segments: Vec::new(), groups_without: 0 };
        let used = runs.iter().map(|run| run.segment).collect();
        let missing = |(at, m): (u16, &MemberImage)| at != member && m.is_missing();
        let others_missing = (0..).zip(&image.members).any(missing);
        let mut builder =
            Builder { place, lost: lost.into(), plan, used, end: None, others_missing };
        for run in runs {
            builder.run(run);
        }
        builder.behind(u64::MAX, None);
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

/// A parity chunk that went with the member: its number, and what it is of.
#[derive(Clone, Debug)]
struct LostParity {
    record: ChunkRecord,
    rows: Vec<Row>,
}

/// Groups that lack parity, none of whose chunks is on the member, each with the number that is missing behind it.
fn lost_parity<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    catalog: &Catalog,
    member: u16,
    recorded: Option<Uuid>,
) -> Result<Vec<LostParity>, ReadError> {
    let parities = image.superblock.parity;
    let groups = Groups::of(&catalog.entries);
    let mut tables = recover::tables(reader, image, &groups)?;
    let by_number: BTreeMap<u64, &Entry> =
        catalog.entries.iter().map(|e| (e.record.sequence, e)).collect();
    // A group that has lost a chunk for good protects the others no more.
    tables.retain(|(table, _)| table.rows.iter().all(|row| by_number.contains_key(&row.sequence)));
    let covered: HashSet<u64> =
        tables.iter().flat_map(|(table, _)| &table.rows).map(|row| row.sequence).collect();
    let of = |entry: &Entry| entry.record.parity.map_or(u64::MAX, |part| part.group);
    let mut lost = Vec::new();
    // Where packets are missing a number may have been theirs, and must stay missing.
    let gaps: Vec<_> = catalog.takes().into_iter().flat_map(|take| take.gaps).collect();
    let empty = |number: u64| {
        catalog.reused.is_none_or(|reused| number > reused)
            && !gaps.iter().any(|gap| (gap.first_sequence..=gap.last_sequence).contains(&number))
    };
    let takes = catalog.entries.chunk_by(|a, b| a.record.take == b.record.take);
    for entries in takes {
        let take = entries[0].record.take;
        let last = entries[entries.len() - 1].record.sequence;
        let mut missing: BTreeSet<u64> = BTreeSet::new();
        let mut before = take.first_sequence;
        for entry in entries {
            missing.extend((before..entry.record.sequence).filter(|&number| empty(number)));
            before = entry.record.sequence + 1;
        }
        // Behind a take's last chunk numbers are free: the next take's begin far from there.
        let mut behind = last + 1;
        let mut add = |part: Part, rows: Vec<Row>, missing: &mut BTreeSet<u64>| {
            let Some(newest) = rows.last().map(|row| row.sequence) else { return };
            let mut members: Vec<u16> = rows.iter().map(|row| row.member).collect();
            members.sort_unstable();
            members.dedup();
            let suits = members.len() == rows.len()
                && rows.len() <= GROUP_MAX
                && !members.contains(&member);
            // Those of the take under way may be numbers of chunks that are on their way.
            let settled = if recorded == Some(take.uuid) {
                last.saturating_sub(UNDER_WAY_MAX)
            } else {
                u64::MAX
            };
            let number =
                missing.range(newest..settled.min(newest + NEAR).max(newest)).next().copied();
            let sequence = match number {
                Some(number) => number,
                None if recorded == Some(take.uuid) || newest + NEAR < last => return,
                None => behind,
            };
            // On another member that is missing, too, if not on this one.
            if !missing.remove(&sequence) && suits {
                behind += 1;
            }
            if !suits {
                return;
            }
            if let Some(record) = record(&by_number, take, sequence, part, &rows) {
                lost.push(LostParity { record, rows });
            }
        };
        for (table, there) in &tables {
            let part = table.part;
            if !(take.first_sequence..=last).contains(&part.group) {
                continue;
            }
            for place in (0..part.of).filter(|place| !there.contains(place)) {
                add(Part { place, ..part }, table.rows.clone(), &mut missing);
            }
        }
        // Groups of which no parity is left: they end where a number is missing, which was their parity's, and where a member
        // comes again.
        let mut rows: Vec<Row> = Vec::new();
        let mut close = |rows: &mut Vec<Row>, missing: &mut BTreeSet<u64>| {
            let mut rows = std::mem::take(rows);
            // A group is known by its first number: what was first in one that is broken can't be first again.
            let known =
                |row: &Row| groups.around(row.sequence).iter().any(|e| of(e) == row.sequence);
            rows.drain(..rows.iter().take_while(|row| known(row)).count());
            if let [first, .., last] | [first @ last] = &rows[..] {
                let span = (last.sequence - first.sequence) as u32;
                let part = Part { group: first.sequence, span, place: 0, of: parities.max(1) };
                add(part, rows, missing);
            }
        };
        for Entry { place, record } in entries.iter().filter(|e| e.record.parity.is_none()) {
            let sequence = record.sequence;
            let covered = covered.contains(&sequence);
            let ended = rows.last().is_some_and(|last| {
                missing.range(last.sequence..sequence).next().is_some()
                    || rows.iter().any(|row| row.member == place.member)
            });
            if ended || covered {
                close(&mut rows, &mut missing);
            }
            if !covered {
                let (offset, length) = (place.offset, record.summary.length);
                rows.push(Row { sequence, offset, length, member: place.member });
            }
        }
        close(&mut rows, &mut missing);
    }
    lost.sort_by_key(|lost| lost.record.sequence);
    Ok(lost)
}

/// What a parity chunk says of itself. Its account is that of the chunk before it: parity stores no packets.
fn record(
    by_number: &BTreeMap<u64, &Entry>,
    take: TakeId,
    sequence: u64,
    part: Part,
    rows: &[Row],
) -> Option<ChunkRecord> {
    let (_, before) = by_number.range(..sequence).next_back()?;
    let chunks: Vec<&Summary> =
        rows.iter().filter_map(|row| Some(&by_number.get(&row.sequence)?.record.summary)).collect();
    let longest = rows.iter().map(|row| row.length).max()?;
    Some(ChunkRecord {
        take,
        sequence,
        replaces: None,
        ledger: before.record.ledger,
        reused: before.record.reused,
        parity: Some(part),
        summary: Summary {
            length: longest + OVERHEAD_BYTES,
            queue: chunks.first()?.queue,
            first_ns: chunks.iter().map(|s| s.first_ns).min()?,
            last_ns: chunks.iter().map(|s| s.last_ns).max()?,
            sealed_ns: chunks.iter().map(|s| s.sealed_ns).max()?,
            ..empty()
        },
    })
}

/// A chunk without packets.
const fn empty() -> Summary {
    Summary {
        length: 0,
        body_crc: 0,
        queue: 0,
        packets: 0,
        packets_start: HEADER_BYTES as u32,
        packets_end: HEADER_BYTES as u32,
        captured_bytes: 0,
        original_bytes: 0,
        first_ns: u64::MAX,
        last_ns: 0,
        sealed_ns: 0,
        plain: true,
        loss: false,
        end: false,
    }
}

/// Lays pieces into segments.
struct Builder {
    place: Place,
    /// In order of their numbers; those that have a place are gone from it.
    lost: VecDeque<LostParity>,
    plan: Plan,
    /// Segments that known chunks lie in.
    used: HashSet<u64>,
    /// The segment that was written last, and how far.
    end: Option<(u64, u64)>,
    /// Other members are missing too: lost parity may have been theirs.
    others_missing: bool,
}

/// Those of some parity chunks, in order, that together are as long as a hole; and the others.
fn fitting(lost: Vec<LostParity>, hole: u64) -> (Vec<LostParity>, Vec<LostParity>) {
    let length = |lost: &LostParity| u64::from(lost.record.summary.length);
    // Few lie in one hole: more than this are taken together or not at all.
    let some = if lost.len() <= 10 { 1u32 << lost.len() } else { 0 };
    let taken = |set: u32, at: usize| set >> at & 1 == 1;
    let sum = |set: u32| {
        (0..lost.len()).filter(|&at| taken(set, at)).map(|at| length(&lost[at])).sum::<u64>()
    };
    if hole == 0 {
        return (Vec::new(), lost);
    }
    if lost.iter().map(length).sum::<u64>() == hole {
        return (lost, Vec::new());
    }
    let Some(set) = (1..some).find(|&set| sum(set) == hole) else { return (Vec::new(), lost) };
    let (exact, others): (Vec<_>, Vec<_>) =
        lost.into_iter().enumerate().partition(|&(at, _)| taken(set, at));
    let only = |list: Vec<(usize, LostParity)>| list.into_iter().map(|(_, lost)| lost).collect();
    (only(exact), only(others))
}

impl Builder {
    /// A segment's known chunks, with what lay before and between them.
    fn run(&mut self, run: Run) {
        let Some(first) = run.chunks.first() else { return };
        let start = self.plan.layout.segment_offset(run.segment);
        let hole = first.place.offset - start;
        // What fits exactly before the first chunk was there, the others in the segments before.
        let before = self.numbered_below(first.record.sequence);
        let (exact, before) = fitting(before, hole);
        for parity in before.into_iter().rev() {
            self.lost.push_front(parity);
        }
        self.behind(first.record.sequence, Some(run.segment));
        self.plan.segments.push(SegmentPlan { segment: run.segment, pieces: Vec::new() });
        let mut offset = start;
        let mut last: Option<ChunkRecord> = None;
        let mut exact = Some(exact);
        for chunk in &run.chunks {
            let hole = chunk.place.offset - offset;
            let parities = exact.take().unwrap_or_else(|| {
                let (parities, others) = fitting(self.numbered_below(chunk.record.sequence), hole);
                self.without_place(others.len());
                parities
            });
            if parities.is_empty() && !self.fill(&mut offset, last.as_ref(), chunk) {
                break;
            }
            for parity in parities {
                self.parity(parity, &mut offset);
            }
            self.piece(Piece::Chunk(*chunk));
            offset += u64::from(chunk.record.summary.length);
            last = Some(chunk.record);
        }
        self.end = Some((run.segment, offset - start));
    }

    /// The lost parity up to a number.
    fn numbered_below(&mut self, sequence: u64) -> Vec<LostParity> {
        let count = self.lost.partition_point(|lost| lost.record.sequence < sequence);
        self.lost.drain(..count).collect()
    }

    /// Lost parity up to a number goes behind what was written last, and into free segments from there to the next one that is known.
    fn behind(&mut self, sequence: u64, next: Option<u64>) {
        for parity in self.numbered_below(sequence) {
            let length = parity.record.summary.length;
            let fits = |builder: &Self| {
                let chunks = builder.plan.segments.last().map_or(0, |s| s.pieces.len() as u64);
                builder.end.is_some_and(|(_, used)| builder.plan.layout.fits(used, chunks, length))
            };
            if !fits(self) {
                let segment = match self.end {
                    Some((segment, _)) => (segment + 1) % self.plan.layout.segments,
                    None => 0,
                };
                if next == Some(segment) || self.used.contains(&segment) {
                    self.without_place(1);
                    continue;
                }
                self.used.insert(segment);
                self.plan.segments.push(SegmentPlan { segment, pieces: Vec::new() });
                self.end = Some((segment, 0));
            }
            let Some((segment, used)) = self.end else { continue };
            let start = self.plan.layout.segment_offset(segment);
            let mut offset = start + used;
            self.parity(parity, &mut offset);
            self.end = Some((segment, offset - start));
        }
    }

    /// Counts lost parity that no place is found for, unless it may have been another missing member's.
    fn without_place(&mut self, count: usize) {
        if !self.others_missing {
            self.plan.groups_without += count as u64;
        }
    }

    fn parity(&mut self, LostParity { record, rows }: LostParity, offset: &mut u64) {
        let place = Place { offset: *offset, ..self.place };
        *offset += u64::from(record.summary.length);
        self.piece(Piece::Parity(Entry { place, record }, rows));
    }

    fn piece(&mut self, piece: Piece) {
        if let Some(segment) = self.plan.segments.last_mut() {
            segment.pieces.push(piece);
        }
    }

    /// Fills the hole from `offset` to a chunk. False if there are no numbers for it: then nothing behind it can be found.
    fn fill(&mut self, offset: &mut u64, last: Option<&ChunkRecord>, next: &Entry) -> bool {
        let mut hole = next.place.offset - *offset;
        let count = hole.div_ceil(u64::from(self.plan.layout.chunk_max));
        let first = next.record.sequence.saturating_sub(count);
        let least = last.map_or(0, |last| last.sequence + 1);
        if first < least || next.record.sequence < count {
            return false;
        }
        for sequence in first..next.record.sequence {
            let length = hole.min(u64::from(self.plan.layout.chunk_max)) as u32;
            hole -= u64::from(length);
            let place = Place { offset: *offset, ..self.place };
            *offset += u64::from(length);
            let record = filler(sequence, length, last, &next.record);
            self.piece(Piece::Filler(Entry { place, record }));
        }
        true
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
        parity: Some(Part::FILLER),
        summary: Summary { length, ..empty() },
    }
}
