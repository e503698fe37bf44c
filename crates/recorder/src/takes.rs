//! What an array holds: its chunks by sequence number, its takes, and what is missing from them.

use std::collections::{BTreeMap, HashMap, HashSet, btree_map};
use std::ops;

use base::{Bank, Buffers};
use format::index::{self, Footer};
use format::parity::Row;
use format::{ChunkRecord, ChunkSummary, Count, Layout, PAGE_BYTES, Place, TakeRecord};
use uuid::Uuid;

use crate::open::{
    ArrayImage, MemberImage, OpenError, Segment,
    walk::{At, Told, walk},
};
use crate::protocol::TimeRange;
use crate::reader::{Range, ReadError, Reader};
use crate::recover;
use crate::take_records::TakeRecords;

mod span;
mod take;

use span::SegmentAt;
pub use span::Unread;
pub use take::{Gap, Take};

/// A chunk and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it says that it is; the member is in it.
    pub place: Place,
    /// What it says of itself.
    pub record: ChunkRecord,
}

impl Entry {
    /// As a group's table has it.
    pub fn row(&self) -> Row {
        let Self { place, record } = self;
        Row {
            sequence: record.sequence,
            offset: place.offset,
            length: record.summary.length,
            member: place.member,
        }
    }
}

/// The chunks of an array, by sequence number, each once.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// In order of sequence number.
    pub entries: Vec<Entry>,
    /// The greatest sequence number that a ring has given up.
    pub reused: Option<u64>,
    /// The latest packet time that a ring has given up, ns since 1970; None unless the newest chunk of every member says so.
    pub reused_to_ns: Option<u64>,
    /// Whether nothing but the ring can have taken chunks with numbers that it gave up, as far as the members show: each has newer
    /// ones, in every segment that has no index too.
    pub ring_alone: bool,
    /// Numbers of those chunks that no member has and parity gives back.
    pub recovered: HashSet<u64>,
    /// Full segments without an index that counts, by member: they were walked.
    pub unindexed: Vec<(u16, u64)>,
    /// Sequence numbers that chunks in unread segments may have. Segments stay unread if their packets lie outside the span of
    /// time that was asked for. Every chunk with another number is listed if a member holds it.
    pub unread: Unread,
    /// What is on record of the array's takes beside their chunks.
    pub records: TakeRecords,
}

impl Catalog {
    /// Reads the indexes of all segments that may hold packets of `range`, walking those segments
    /// that have none, and finds by parity what a missing member took with it. Chunks outside the
    /// range may be among the result.
    ///
    /// # Errors
    /// [`OpenError::Read`] if a drive fails.
    pub fn load<B: Bank, M: Buffers>(
        reader: &mut Reader<'_, B, M>,
        image: &ArrayImage,
        range: TimeRange,
    ) -> Result<Self, OpenError> {
        Self::load_more(reader, image, range, &Self::default())
    }

    /// The same with what an earlier look at the array has found: it need not be recovered again.
    pub(crate) fn load_more<B: Bank, M: Buffers>(
        reader: &mut Reader<'_, B, M>,
        image: &ArrayImage,
        range: TimeRange,
        seen: &Self,
    ) -> Result<Self, OpenError> {
        let records = TakeRecords::read(reader, image).map_err(ReadError::from)?;
        let mut listed = listed(reader, image, range, &records)?;
        let recovered = if image.superblock.parity > 0 {
            listed.add_what_parity_knows(reader, image, seen)?
        } else {
            HashSet::new()
        };
        let Listed { entries, unindexed, unread } = listed;
        let catalog = Self { records, ..Self::of(entries) };
        let counts = |sequence: &u64| {
            catalog.entries.binary_search_by_key(sequence, |e| e.record.sequence).is_ok()
        };
        let recovered = recovered.into_iter().filter(counts).collect();
        let walked = image.members.iter().flat_map(MemberImage::walked);
        let reused = walked.flat_map(|w| &w.chunks).filter_map(|(_, chunk)| chunk.reused).max();
        let reused = catalog.reused.max(reused);
        let reused_to_ns = reused_to_ns(&image.members);
        let ring_alone = ring_alone(&image.members, &unindexed, reused);
        Ok(Self { reused, reused_to_ns, ring_alone, recovered, unindexed, unread, ..catalog })
    }

    /// Sorts chunks and leaves out those that others stand in for.
    pub fn of(mut entries: Vec<Entry>) -> Self {
        let reused = entries.iter().filter_map(|e| e.record.reused).max();
        let mut newest: HashMap<u64, u64> = HashMap::new();
        for entry in &entries {
            if let Some(root) = entry.record.replaces {
                let newest = newest.entry(root).or_insert(entry.record.sequence);
                *newest = (*newest).max(entry.record.sequence);
            }
        }
        entries.retain(|entry| {
            let sequence = entry.record.sequence;
            let root = entry.record.replaces.unwrap_or(sequence);
            newest.get(&root).is_none_or(|&newest| newest == sequence)
        });
        // A chunk that only fills a hole says nothing of what was there.
        entries.retain(|entry| !entry.record.is_filler());
        entries.sort_by_key(|e| e.record.sequence);
        entries.dedup_by_key(|e| e.record.sequence);
        Self { entries, reused, ..Self::default() }
    }

    /// The takes, in the order in which they were recorded: those that have chunks, and those that are on record, unless an unread
    /// segment may hold their chunks.
    pub fn takes(&self) -> Vec<Take> {
        let mut by_take: BTreeMap<(u64, Uuid), Vec<&Entry>> = BTreeMap::new();
        for entry in &self.entries {
            let take = entry.record.take;
            by_take.entry((take.first_sequence, take.uuid)).or_default().push(entry);
        }
        let mut takes: BTreeMap<(u64, Uuid), Take> =
            by_take.into_iter().map(|(key, entries)| (key, self.take(&entries))).collect();
        for record in self.records.iter() {
            let key = (record.take.first_sequence, record.take.uuid);
            if let btree_map::Entry::Vacant(vacant) = takes.entry(key)
                && let Some(take) = self.take_without_chunks(record)
            {
                vacant.insert(take);
            }
        }
        takes.into_values().collect()
    }

    /// A take of which no chunk is left; None if one may be unread.
    fn take_without_chunks(&self, record: &TakeRecord) -> Option<Take> {
        let numbers = record.take.first_sequence..record.last_sequence + 1;
        if !numbers.is_empty() && self.unread.touches(&(numbers.start..=record.last_sequence)) {
            return None;
        }
        let mut take = Take::on_record(record);
        let started_ns = record.take.started.as_nanos();
        let from_ns = if started_ns > record.first_ns { 0 } else { started_ns };
        self.missing(&mut take, record.ledger.stored, numbers, from_ns, ends_at(record));
        Some(take)
    }

    fn take(&self, entries: &[&Entry]) -> Take {
        let (first, last) = (&entries[0].record, &entries[entries.len() - 1].record);
        let ended = entries.iter().any(|entry| entry.record.summary.end);
        let mut take = Take::empty(first, last, ended);
        self.find_missing(&mut take, entries);
        for Entry { record, .. } in entries {
            take.add(record, self.recovered.contains(&record.sequence));
        }
        take
    }

    /// Enters what is missing before and between the chunks of a take, as far as their ledgers tell.
    fn find_missing(&self, take: &mut Take, entries: &[&Entry]) {
        let mut replaced: BTreeMap<u64, Count> = BTreeMap::new();
        for entry in entries {
            if let Some(root) = entry.record.replaces {
                *replaced.entry(root).or_default() += entry.record.summary.stored();
            }
        }
        // What the ledger says was placed before a chunk, less those parts that are found elsewhere.
        let before = |record: &ChunkRecord| match record.replaces {
            Some(_) => record.ledger.stored,
            None => record.ledger.stored - record.summary.stored(),
        };
        let elsewhere = |from: u64, to: u64| {
            replaced.range(from..to).fold(Count::ZERO, |sum, (_, &count)| sum + count)
        };
        let first = &entries[0].record;
        let start = first.take.first_sequence;
        let missing = before(first) - elsewhere(start, first.sequence);
        // Packets of a capture file are older than the take.
        let started_ns = first.take.started.as_nanos();
        let from_ns = if started_ns > first.summary.first_ns { 0 } else { started_ns };
        let until = ends_before(entries);
        self.missing(take, missing, start..first.sequence, from_ns, until[0]);
        for (pair, &to_ns) in entries.windows(2).zip(&until[1..]) {
            let (one, two) = (&pair[0].record, &pair[1].record);
            let next = one.sequence + 1;
            let missing = before(two) - one.ledger.stored - elsewhere(next, two.sequence);
            self.missing(take, missing, next..two.sequence, one.summary.last_ns, to_ns);
        }
        let Some(record) = self.records.get(take.id.uuid) else { return };
        let last = &entries[entries.len() - 1].record;
        // One that was written when some members were away may know less than the chunks. Nothing but parity follows an end.
        if !record.ended && record.last_sequence < last.sequence {
            return;
        }
        let numbers = last.sequence + 1..record.last_sequence + 1;
        let missing = record.ledger.stored
            - last.ledger.stored
            - elsewhere(numbers.start, numbers.end.max(numbers.start));
        self.missing(take, missing, numbers, last.summary.last_ns, ends_at(record));
        take.ledger = record.ledger;
        take.ended |= record.ended;
        take.last_sequence = record.last_sequence.max(last.sequence);
    }

    /// Enters what lies between two chunks, with these numbers, as a gap, or as overwritten where the ring gave it up.
    fn missing(
        &self,
        take: &mut Take,
        count: Count,
        numbers: ops::Range<u64>,
        from_ns: u64,
        to_ns: u64,
    ) {
        // Without a number between them nothing can be missing, whatever the ledgers say.
        if count.packets == 0 || numbers.is_empty() {
            return;
        }
        let (first_sequence, last_sequence) = (numbers.start, numbers.end - 1);
        if self.unread.touches(&(first_sequence..=last_sequence)) {
            return;
        }
        let gap = Gap { first_sequence, last_sequence, count, from_ns, to_ns };
        let Some(reused) = self.reused.filter(|&reused| first_sequence <= reused) else {
            take.gaps.push(gap);
            return;
        };
        take.overwritten += count;
        // The time that the ring has come to ends what ends with the last number that it gave up, if a chunk follows. Anything else may
        // have been lost in another way, and be of any time before the next chunk: a power cut takes chunks whose parity, with a later
        // number and the same times, the ring gives up long after.
        let record = self.records.get(take.id.uuid);
        let is_followed =
            record.is_none_or(|record| record.ended && last_sequence < record.last_sequence);
        let ends = self.ring_alone && last_sequence == reused && is_followed;
        let given_up = self.reused_to_ns.filter(|&time| ends && from_ns < time);
        let to_ns = given_up.map_or(to_ns, |time| to_ns.min(time.saturating_add(1)));
        let gap = Gap { to_ns, ..gap };
        take.holes.push(gap);
    }
}

/// For each chunk of a take the time that ends a gap in front of it, ns since 1970: when the packets of the next chunk begin. One that
/// was placed anew does not count, as it is older than its number, nor does parity, which has the times of its group. All ones if there
/// is none.
fn ends_before(entries: &[&Entry]) -> Vec<u64> {
    let mut next = u64::MAX;
    let mut ends: Vec<u64> = entries
        .iter()
        .rev()
        .map(|Entry { record, .. }| {
            let ChunkSummary { packets, first_ns, sealed_ns, .. } = record.summary;
            if record.replaces.is_none() && record.parity.is_none() {
                next = if packets == 0 { sealed_ns } else { first_ns };
            }
            next
        })
        .collect();
    ends.reverse();
    ends
}

/// The time that ends what is missing at the end of a take, ns since 1970: all ones if its record does not tell.
const fn ends_at(record: &TakeRecord) -> u64 {
    if record.last_ns > 0 { record.last_ns.saturating_add(1) } else { u64::MAX }
}

/// What the indexes of the segments that a span of time concerns list.
struct Listed {
    entries: Vec<Entry>,
    /// Segments without an index that counts, by member.
    unindexed: Vec<(u16, u64)>,
    unread: Unread,
}

impl Listed {
    /// Adds what no index and no walk has found and parity tells of. Returns the numbers of those chunks that no member has. What an
    /// earlier look (`seen`) has recovered is taken from it.
    ///
    /// # Errors
    /// [`OpenError::Read`] if the bank fails.
    fn add_what_parity_knows<B: Bank, M: Buffers>(
        &mut self,
        reader: &mut Reader<'_, B, M>,
        image: &ArrayImage,
        seen: &Catalog,
    ) -> Result<HashSet<u64>, OpenError> {
        let read: HashSet<u64> = self.entries.iter().map(|e| e.record.sequence).collect();
        let again = |e: &&Entry| {
            let sequence = e.record.sequence;
            seen.recovered.contains(&sequence) && !read.contains(&sequence)
        };
        let mut recovered: Vec<Entry> = seen.entries.iter().filter(again).copied().collect();
        self.entries.extend(&recovered);
        let lost = recover::lost(reader, image, &self.entries, &self.unread)?;
        self.entries.extend(&lost.recovered);
        self.entries.extend(lost.hidden);
        recovered.extend(lost.recovered);
        Ok(recovered.iter().map(|e| e.record.sequence).collect())
    }
}

/// Reads the segments that the span concerns by what they said when the array was opened. Where one holds less than that, as it
/// is damaged or was reused since, others may be next to what is missing: they are read too.
///
/// # Errors
/// [`OpenError::Read`] if a drive fails.
fn listed<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    range: TimeRange,
    records: &TakeRecords,
) -> Result<Listed, OpenError> {
    let mut unindexed = Vec::new();
    let (mut next, mut unread) = segments(image);
    if range == TimeRange::ALL {
        next.append(&mut unread);
    }
    let mut found: Vec<(SegmentAt, Vec<Entry>)> = Vec::new();
    loop {
        found.extend(read_segments(reader, image, &next, &mut unindexed)?);
        next.clear();
        if !unread.is_empty() {
            next = still_needed(&found, &mut unread, range, records);
        }
        if next.is_empty() && !unread.is_empty() {
            next = with_losses_placed_anew(&found, &mut unread, range, records);
        }
        if next.is_empty() {
            let unread = numbers_of(&unread);
            let mut entries: Vec<Entry> =
                found.into_iter().flat_map(|(_, chunks)| chunks).collect();
            // Indexes that were written since know of more than the chunks that were looked for.
            let through = image.written.as_ref().map_or(u64::MAX, |written| written.through);
            entries.retain(|entry| entry.record.sequence <= through);
            return Ok(Listed { entries, unindexed, unread });
        }
    }
}

fn numbers_of(segments: &[SegmentAt]) -> Unread {
    Unread::of(segments.iter().map(|at| at.live.first_sequence..=at.live.last_sequence))
}

/// Takes from `unread` what a span of time needs beside what was found. Chunks that others stand in for don't count as found.
fn still_needed(
    found: &[(SegmentAt, Vec<Entry>)],
    unread: &mut Vec<SegmentAt>,
    range: TimeRange,
    records: &TakeRecords,
) -> Vec<SegmentAt> {
    let entries = found.iter().flat_map(|(_, chunks)| chunks).copied().collect();
    let counts: HashSet<u64> =
        Catalog::of(entries).entries.iter().map(|e| e.record.sequence).collect();
    let counted = |(at, chunks): &(SegmentAt, Vec<Entry>)| {
        at.as_found(chunks.iter().filter(|e| counts.contains(&e.record.sequence)))
    };
    let mut all: Vec<SegmentAt> = found.iter().filter_map(counted).collect();
    all.extend(records.iter().map(SegmentAt::behind));
    let read = all.len();
    all.extend(unread.iter());
    let needed = span::needed(&all, range);
    let mut needed = needed[read..].iter();
    unread.extract_if(.., |_| needed.next().is_some_and(|&needed| needed)).collect()
}

/// Takes from `unread` what may hold, under later numbers, chunks that seem lost of a span: a loss counts what no member has.
fn with_losses_placed_anew(
    found: &[(SegmentAt, Vec<Entry>)],
    unread: &mut Vec<SegmentAt>,
    range: TimeRange,
    records: &TakeRecords,
) -> Vec<SegmentAt> {
    let entries = found.iter().flat_map(|(_, chunks)| chunks).copied().collect();
    let (unread_numbers, records) = (numbers_of(unread), records.clone());
    let catalog = Catalog { unread: unread_numbers, records, ..Catalog::of(entries) };
    let originals: Vec<&ChunkRecord> =
        catalog.entries.iter().map(|e| &e.record).filter(|r| r.replaces.is_none()).collect();
    let takes = catalog.takes().into_iter();
    let lost = takes.flat_map(|take| take.gaps.into_iter().chain(take.holes));
    let with_end = lost.filter(|gap| gap.touches(range)).map(|gap| {
        // The chunk behind it may be a slow queue's: its packets are old, but it was sealed later than what is missing.
        let behind = originals.partition_point(|record| record.sequence <= gap.last_sequence);
        let sealed = originals.get(behind).map_or(u64::MAX, |record| record.summary.sealed_ns);
        (gap.first_sequence, gap.to_ns.max(sealed))
    });
    let losses = span::Losses::of(with_end);
    unread.extract_if(.., |at| losses.may_be_in(&at.live)).collect()
}

/// The segments that hold chunks: first those that every listing reads, then all others. A member's newest chunks tell what the
/// ring has given up, whatever their time; those of an open head are known already.
fn segments(image: &ArrayImage) -> (Vec<SegmentAt>, Vec<SegmentAt>) {
    let of_member = |(member, it): (u16, &MemberImage)| {
        let live = (0u64..).zip(&it.segments).filter_map(move |(segment, state)| match *state {
            Segment::Live(live) => {
                let untimed = it.untimed.binary_search_by_key(&segment, |(at, _)| *at).ok();
                let untimed_ns = untimed.map(|at| it.untimed[at].1);
                Some(SegmentAt { member, segment, live, untimed_ns })
            }
            Segment::Empty => None,
        });
        live.collect::<Vec<_>>()
    };
    let is_closed_head = |at: &SegmentAt| {
        let head = image.members[usize::from(at.member)].head.as_ref();
        head.is_some_and(|head| head.closed && head.segment == at.segment)
    };
    (0u16..).zip(&image.members).flat_map(of_member).partition(is_closed_head)
}

/// The chunks of some segments: by their indexes, or as far as a walk finds them. Those without an index that counts are added to
/// `unindexed`.
///
/// # Errors
/// [`OpenError::Read`] if a drive fails.
fn read_segments<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    segments: &[SegmentAt],
    unindexed: &mut Vec<(u16, u64)>,
) -> Result<Vec<(SegmentAt, Vec<Entry>)>, OpenError> {
    let (indexed, open): (Vec<SegmentAt>, Vec<_>) = segments.iter().partition(|s| s.live.indexed);
    let mut found = read_indexes(reader, image, &indexed)?;
    let place_of = |at: &SegmentAt| (at.member, at.segment);
    let read: HashSet<(u16, u64)> = found.iter().map(|(at, _)| place_of(at)).collect();
    let is_broken = |at: &SegmentAt| !read.contains(&place_of(at));
    let broken: Vec<SegmentAt> = indexed.into_iter().filter(is_broken).collect();
    let is_head = |at: &&SegmentAt| {
        let head = image.members[usize::from(at.member)].head.as_ref();
        head.is_some_and(|head| head.segment == at.segment)
    };
    unindexed.extend(broken.iter().map(place_of));
    unindexed.extend(open.iter().filter(|at| !is_head(at)).map(place_of));
    for at in broken.into_iter().chain(open) {
        found.push((at, walked(reader, image, at)?));
    }
    Ok(found)
}

/// A place on a member; the offset does not count.
fn place_on(image: &ArrayImage, member: u16) -> Place {
    Place { array: image.uuid, member, members: image.members.len() as u16, offset: 0 }
}

/// The chunks of segments by their indexes, without those whose index does not count.
///
/// # Errors
/// [`OpenError::Read`] if the bank fails.
fn read_indexes<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    segments: &[SegmentAt],
) -> Result<Vec<(SegmentAt, Vec<Entry>)>, OpenError> {
    let buffer_bytes = u64::from(reader.buffer_bytes());
    let mut found = Vec::new();
    // As long as the index was when the array was opened; since then the segment may have been reused.
    let mut next: Vec<(SegmentAt, u64)> =
        segments.iter().map(|at| (*at, index::tail_length(at.live.chunks.into()))).collect();
    while !next.is_empty() {
        let bytes_max = |at: &SegmentAt| {
            image.members[usize::from(at.member)].layout.segment_bytes.min(buffer_bytes)
        };
        next.retain(|(at, tail)| *tail <= bytes_max(at));
        let range = |(at, tail): &(SegmentAt, u64)| {
            let MemberImage { drive, layout, .. } = &image.members[usize::from(at.member)];
            let end = layout.segment_offset(at.segment) + layout.segment_bytes;
            Range { drive: *drive, offset: end - tail, length: *tail as u32 }
        };
        let ranges: Vec<Range> = next.iter().map(range).collect();
        let mut longer = Vec::new();
        reader.scatter(&ranges, |index, bytes| {
            let (at, read) = next[index];
            let layout = &image.members[usize::from(at.member)].layout;
            let place = place_on(image, at.member);
            let footer = bytes.ok().and_then(|bytes| Some((Footer::read(bytes).ok()?, bytes)));
            let suits = |(footer, _): &(Footer, _)| footer.suits(&place, layout.segment_bytes);
            let Some((footer, bytes)) = footer.filter(suits) else { return };
            let tail = index::tail_length(u64::from(footer.entries));
            if tail > read {
                longer.push((at, tail));
                return;
            }
            let tail = &bytes[(read - tail) as usize..];
            let chunks = indexed_chunks(&footer, tail, layout, at.segment);
            found.extend(chunks.map(|chunks| (at, chunks)));
        })?;
        next = longer;
    }
    Ok(found)
}

/// The latest packet time that a ring has given up, if it is known for certain: the chunk that tells it may have been the newest
/// of a member that is missing, or whose index is damaged; and what lay where a segment is that belongs elsewhere was lost in
/// another way.
fn reused_to_ns(members: &[MemberImage]) -> Option<u64> {
    let told = |member: &MemberImage| match &member.head {
        _ if member.lost_segment => None,
        Some(head) => {
            let others = member.unindexed.iter().filter_map(|other| other.reused_to_ns);
            head.reused_to_ns.map(|time| others.fold(time, u64::max))
        }
        None => (!member.is_missing()).then_some(0),
    };
    let told: Option<Vec<u64>> = members.iter().map(told).collect();
    told?.into_iter().max().filter(|&time| time > 0)
}

/// Whether no member can have lost chunks with numbers up to `reused` in another way. A walk ends at the first chunk that is lost:
/// what it leaves out is newer than the last one that it finds.
fn ring_alone(members: &[MemberImage], unindexed: &[(u16, u64)], reused: Option<u64>) -> bool {
    let has_newer = |member: &MemberImage| {
        let newest = member.head.as_ref().and_then(|head| head.newest);
        newest.is_some_and(|newest| Some(newest.sequence) > reused)
    };
    let is_newer = |&(member, segment): &(u16, u64)| {
        let state = members[usize::from(member)].segments[segment as usize];
        matches!(state, Segment::Live(live) if !live.indexed && Some(live.last_sequence) > reused)
    };
    members.iter().all(has_newer) && unindexed.iter().all(is_newer)
}

/// The chunks of a segment without an index that counts, as far as they can be read: opening has walked over most. One whose footer closed it when it was
/// opened holds what that says: behind the chunks that a power cut brought back may lie younger ones, of the segment's
/// reuse, that nobody will know of when the ring gives it up.
fn walked<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    SegmentAt { member, segment, .. }: SegmentAt,
) -> Result<Vec<Entry>, OpenError> {
    let place = place_on(image, member);
    let member = &image.members[usize::from(member)];
    if let Some(chunks) = member.walked_chunks(segment) {
        return Ok(chunks.iter().map(|&(place, record)| Entry { place, record }).collect());
    }
    let at = At { drive: member.drive, layout: &member.layout, place: &place };
    let told = Told { written: image.written.as_ref(), kept: None };
    let mut found = match walk(reader, at, segment, told) {
        Ok(found) => found,
        // A page that can't be read hides what is behind it; that is a gap then, unless parity fills it.
        Err(OpenError::Read(ReadError::Device { .. })) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let first = found.first().map(|(_, record)| record.sequence);
    if let Segment::Live(live) = member.segments[segment as usize]
        && live.indexed
        // It was not begun anew since.
        && first == Some(live.first_sequence)
    {
        found.retain(|(_, record)| record.sequence <= live.last_sequence);
    }
    Ok(found.into_iter().map(|(place, record)| Entry { place, record }).collect())
}

/// A segment's chunks by its index, if they lie in that segment from its start to the index.
fn indexed_chunks(
    footer: &Footer,
    tail: &[u8],
    layout: &Layout,
    segment: u64,
) -> Option<Vec<Entry>> {
    let found = footer.entries(tail).ok()?;
    let (first, _) = found.first()?;
    let length: u64 = found.iter().map(|(_, chunk)| u64::from(chunk.summary.length)).sum();
    let sound = first.offset == layout.segment_offset(segment)
        && length + footer.section_bytes == layout.segment_bytes
        && found.iter().all(|(_, chunk)| chunk.summary.length <= layout.chunk_max);
    sound.then(|| found.into_iter().map(|(place, record)| Entry { place, record }).collect())
}

/// The parts of a member, as offset and length, that together are whole pcapng, oldest first: for
/// copying by hand. Segments that a crash left without an index count up to their last chunk.
pub fn extents(member: &crate::open::MemberImage) -> Vec<(u64, u64)> {
    let Some(head) = &member.head else { return Vec::new() };
    let layout = &member.layout;
    let mut extents: Vec<(u64, u64)> = Vec::new();
    for segment in (head.segment + 1..layout.segments).chain(0..=head.segment) {
        let open = std::iter::once(head).filter(|head| !head.closed).chain(&member.unindexed);
        let used = match member.segments[segment as usize] {
            Segment::Live(_) => open
                .into_iter()
                .find(|open| open.segment == segment)
                .map_or(layout.segment_bytes, |open| open.used),
            Segment::Empty => continue,
        };
        let start = layout.segment_offset(segment);
        // The superblock belongs to what begins behind it.
        let from = if segment == 0 { 0 } else { start };
        match extents.last_mut() {
            Some((at, length)) if *at + *length == from => *length = start + used - *at,
            _ => extents.push((from, start + used - from)),
        }
    }
    debug_assert!(extents.iter().all(|(from, length)| (from | length).is_multiple_of(PAGE_BYTES)));
    extents
}
