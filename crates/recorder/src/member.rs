//! One member of the array while it is recorded on: its ring of segments, the head, the writes
//! under way, and what has to happen before a segment may be reused.

use std::collections::VecDeque;
use std::sync::Arc;

use base::{BufferId, DeviceError, Instant};
use format::parity::Part;
use format::{ChunkRecord, ChunkSummary, Count, Layout, Place};
use format::{flow_index, index};
use uuid::Uuid;

use crate::open::{Live, MemberImage, Segment};
use crate::placement::Pace;
use crate::protocol::{IndexPart, TimeRange};

/// What has to be known of a chunk once it has its place: a record is several times as long, and copied for every chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedChunk {
    pub(crate) sequence: u64,
    pub(crate) replaces: Option<u64>,
    pub(crate) parity: Option<Part>,
    pub(crate) summary: ChunkSummary,
}

impl PlacedChunk {
    pub(crate) const fn of(record: &ChunkRecord) -> Self {
        let ChunkRecord { sequence, replaces, parity, summary, .. } = *record;
        Self { sequence, replaces, parity, summary }
    }
}

/// A chunk on its way to the medium.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) tag: u64,
    pub(crate) buffer: BufferId,
    pub(crate) chunk: PlacedChunk,
    pub(crate) segment: u64,
    /// The group that it belongs to, in an array with parity.
    pub(crate) group: Option<u64>,
    pub(crate) done: Option<Result<(), DeviceError>>,
}

/// A full segment that waits for its last writes, and for a flush, before its index is written: an
/// index on the medium promises that its chunks are, also after a power cut.
#[derive(Debug)]
pub(crate) struct Closing {
    pub(crate) segment: u64,
    /// Shared with the writes of its index.
    pub(crate) chunks: Arc<Vec<(Place, ChunkRecord)>>,
    /// Where the index section starts within the segment.
    pub(crate) used: u64,
    pub(crate) step: Step,
}

impl Closing {
    /// None if the chunks leave no room for their index: a drive that lost writes shows chunks of a segment's earlier use before
    /// those that were written behind them. Such a segment stays without one.
    fn of(
        segment: u64,
        chunks: Vec<(Place, ChunkRecord)>,
        used: u64,
        layout: &Layout,
    ) -> Option<Self> {
        let room = layout.segment_bytes.checked_sub(used)?;
        (index::length_for(chunks.len() as u64) <= room).then_some(Self {
            segment,
            chunks: Arc::new(chunks),
            used,
            step: Step::Chunks,
        })
    }
}

/// How far the closing of a segment has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Its chunks are being written.
    Chunks,
    /// The first page of its index is.
    Front,
    /// The flush of this number will make them durable; then comes the index's tail, which counts.
    Flush(u64),
}

/// The write of an index's part, under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Indexing {
    pub(crate) tag: u64,
    pub(crate) segment: u64,
    /// Which part; None of a flow index.
    pub(crate) part: Option<IndexPart>,
}

/// The part of an index that is to be written.
#[derive(Debug)]
pub(crate) struct IndexWrite {
    pub(crate) segment: u64,
    pub(crate) place: Place,
    pub(crate) section_bytes: u64,
    pub(crate) chunks: Arc<Vec<(Place, ChunkRecord)>>,
    pub(crate) part: IndexPart,
}

/// Full segments that may wait for a flush on one member before it is sent early: each is one more
/// to walk when the array is opened after a crash.
const UNFLUSHED_SEGMENTS_MAX: usize = 2;

/// What a chunk is for which room is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Data,
    Parity,
    /// It ends the take, or is the parity of that chunk.
    End,
}

impl Purpose {
    pub(crate) const fn of(summary: &ChunkSummary, is_parity: bool) -> Self {
        match (summary.end, is_parity) {
            (true, _) => Self::End,
            (false, true) => Self::Parity,
            (false, false) => Self::Data,
        }
    }
}

/// Room that is kept in each segment, and more of it in the last segment of a member that does not wrap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// Whether each segment keeps room for a flow index.
    pub(crate) flow_indexes: bool,
    /// For the chunk that ends the take, or its parity.
    pub(crate) end: u32,
    /// For the parity of what other members took: as much twice, in an array with parity.
    pub(crate) parity: u32,
}

impl Keep {
    /// Bytes that a chunk of this purpose leaves free in every segment.
    fn in_each(self, purpose: Purpose, layout: &Layout) -> u64 {
        match purpose {
            Purpose::Data | Purpose::Parity if self.flow_indexes => {
                flow_index::reserve(layout.segment_bytes)
            }
            _ => 0,
        }
    }

    /// Bytes and chunks that a chunk of this purpose leaves free besides in the last one.
    const fn in_last(self, purpose: Purpose) -> (u32, u64) {
        match purpose {
            Purpose::End => (0, 0),
            Purpose::Data if self.parity > 0 => (self.end + 2 * self.parity, 3),
            Purpose::Data | Purpose::Parity => (self.end, 1),
        }
    }
}

/// Whether and why a member can't take a chunk now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// It can.
    Yes,
    /// Not yet: the next segment is being trimmed, or its index is still being written.
    Later,
    /// No segment may be used.
    Full,
}

/// What the search for the next segment finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Segment(u64),
    /// One that is still busy.
    Later,
    /// None at all, unless protection changes.
    Nothing,
}

/// From the earliest to the latest packet time of some chunks, ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

impl Times {
    /// Of no packets.
    pub(crate) const NONE: Self = Self { first_ns: u64::MAX, last_ns: 0 };
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) place: Place,
    pub(crate) layout: Layout,
    pub(crate) segments: Vec<Segment>,
    /// The packet times of the groups that each segment's chunks belong to, in an array with parity.
    group_times: Vec<Times>,
    /// Spans that are being read: their segments are reused last.
    pub(crate) held: Vec<TimeRange>,
    /// The segment being written and what is in it. None before the first and when full.
    pub(crate) head: Option<Head>,
    /// Where the search for the next segment starts.
    pub(crate) next_from: u64,
    pub(crate) in_flight: VecDeque<InFlight>,
    pub(crate) in_flight_bytes: u64,
    pub(crate) closing: VecDeque<Closing>,
    /// Writes of an index's parts under way.
    pub(crate) indexing: Vec<Indexing>,
    pub(crate) pace: Pace,
    pub(crate) written: u64,
    /// Whether it is its turn to take no writes.
    pub(crate) resting: bool,
    /// Bytes that the others got ahead of it while it rested: no drift to be made up for.
    pub(crate) excused: u64,
    pub(crate) keep: Keep,
    pub(crate) failed: Option<DeviceError>,
    /// Number of the first chunk whose write failed: what was placed behind it isn't found again.
    pub(crate) hole: Option<u64>,
    /// What was acknowledged on it in this take.
    pub(crate) acknowledged: Count,
    pub(crate) acknowledged_chunks: u64,
    /// Acknowledged since the last flush was sent.
    pub(crate) unflushed: Count,
    pub(crate) flushing: Option<(u64, Count)>,
    /// The same in an array with parity: the groups of chunks that are written and not flushed, and those being flushed.
    pub(crate) unflushed_groups: Vec<u64>,
    pub(crate) flushing_groups: Vec<u64>,
    /// Flushes sent and done, to number them.
    pub(crate) flushes_sent: u64,
    pub(crate) flushes_done: u64,
    pub(crate) flush_due: Option<Instant>,
    pub(crate) trims: bool,
    /// Whether there may be something to trim: something has changed since nothing was found.
    pub(crate) may_trim: bool,
    /// Given up ahead of the head, and not trimmed yet.
    pub(crate) given_up: Option<GivenUp>,
    pub(crate) trimming: Option<(u64, u64)>,
    pub(crate) trim_due: Instant,
}

/// A segment that a ring has given up before its head has come to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenUp {
    pub(crate) segment: u64,
    /// Chunks from this number on say that it was.
    pub(crate) told_from: u64,
}

#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) segment: u64,
    /// The longest data chunk that it takes, with what is kept beside it, looked at for every chunk; 0 if none.
    pub(crate) data_max: u32,
    pub(crate) used: u64,
    pub(crate) chunks: Vec<(Place, ChunkRecord)>,
}

impl Head {
    fn new(
        segment: u64,
        used: u64,
        chunks: Vec<(Place, ChunkRecord)>,
        layout: &Layout,
        keep: Keep,
    ) -> Self {
        let mut head = Self { segment, data_max: 0, used, chunks };
        head.data_max = head.data_max_in(layout, keep);
        head
    }

    fn data_max_in(&self, layout: &Layout, keep: Keep) -> u32 {
        let (reserve, extra) = keep.in_last(Purpose::Data);
        let taken = self.used
            + u64::from(reserve)
            + keep.in_each(Purpose::Data, layout)
            + index::length_for(self.chunks.len() as u64 + extra + 1);
        u32::try_from(layout.segment_bytes.saturating_sub(taken)).unwrap_or(u32::MAX)
    }
}

impl Member {
    pub(crate) fn new(
        image: MemberImage,
        array: Uuid,
        member: u16,
        members: u16,
        keep: Keep,
    ) -> Self {
        let missing = image.is_missing();
        let group_times = vec![Times::NONE; image.segments.len()];
        let place = Place { array, member, members, offset: 0 };
        let (head, next_from) = match image.head {
            Some(head) if !head.closed => {
                let next = head.segment + 1;
                (Some(Head::new(head.segment, head.used, head.chunks, &image.layout, keep)), next)
            }
            Some(head) => (None, head.segment + 1),
            None => (None, 0),
        };
        Self {
            place,
            layout: image.layout,
            next_from: next_from % image.layout.segments.max(1),
            segments: image.segments,
            group_times,
            held: Vec::new(),
            head,
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            closing: image
                .unindexed
                .into_iter()
                .filter_map(|s| Closing::of(s.segment, s.chunks, s.used, &image.layout))
                .collect(),
            indexing: Vec::new(),
            pace: Pace::default(),
            written: 0,
            resting: false,
            excused: 0,
            failed: missing.then_some(DeviceError::Gone),
            keep,
            hole: None,
            acknowledged: Count::ZERO,
            acknowledged_chunks: 0,
            unflushed: Count::ZERO,
            flushing: None,
            unflushed_groups: Vec::new(),
            flushing_groups: Vec::new(),
            flushes_sent: 0,
            flushes_done: 0,
            flush_due: None,
            trims: image.trims,
            may_trim: true,
            given_up: None,
            trimming: None,
            trim_due: Instant::START,
        }
    }

    /// Whether writes to a segment are due or under way: it can be neither reused nor trimmed yet.
    fn busy(&self, segment: u64) -> bool {
        self.head.as_ref().is_some_and(|h| h.segment == segment)
            || self.closing.iter().any(|c| c.segment == segment)
            || self.indexing.iter().any(|i| i.segment == segment)
    }

    /// Whether a flow index is being written to a segment.
    fn takes_flow_index(&self, segment: u64) -> bool {
        self.indexing.iter().any(|i| i.segment == segment && i.part.is_none())
    }

    /// Whether a segment is the next one to be reused.
    pub(crate) fn is_next(&self, segment: u64, wrap: bool, protected: &[TimeRange]) -> bool {
        self.next_segment(wrap, protected) == Next::Segment(segment)
    }

    /// The next segment that may be written behind the head. A ring takes the oldest one that is
    /// not protected; without wrapping only an empty one will do. One that is being read is taken if there is no other.
    fn next_segment(&self, wrap: bool, protected: &[TimeRange]) -> Next {
        let protects = |live: &Live| protected.iter().any(|r| r.touches(live));
        let holds = |live: &Live| self.held.iter().any(|r| r.touches(live));
        match self.next_of(wrap, |live| protects(live) || holds(live)) {
            Next::Nothing if !self.held.is_empty() => self.next_of(wrap, protects),
            next => next,
        }
    }

    /// The same with what is to be kept.
    fn next_of(&self, wrap: bool, kept: impl Fn(&Live) -> bool) -> Next {
        let count = self.layout.segments;
        let mut later = false;
        for step in 0..count {
            let segment = (self.next_from + step) % count;
            let usable = match self.segments[segment as usize] {
                Segment::Empty => true,
                Segment::Live(live) => wrap && !kept(&self.reach(segment, live)),
            };
            let is_head = self.head.as_ref().is_some_and(|h| h.segment == segment);
            if !usable || is_head {
                continue;
            }
            if self.takes_flow_index(segment) {
                // Which is soon over; the next one is younger.
                return Next::Later;
            } else if self.busy(segment) {
                later = true;
            } else if self.trimming.is_some_and(|(_, s)| s == segment) {
                return Next::Later;
            } else {
                return Next::Segment(segment);
            }
        }
        if later { Next::Later } else { Next::Nothing }
    }

    /// Whether the head segment takes a chunk of `length` for this purpose, and still has `reserve` bytes to spare.
    fn head_takes(&self, length: u32, purpose: Purpose, (reserve, extra): (u32, u64)) -> bool {
        self.head.as_ref().is_some_and(|head| {
            let used = head.used + self.keep.in_each(purpose, &self.layout);
            self.layout.fits(used, head.chunks.len() as u64 + extra, length + reserve)
        })
    }

    /// Whether there is room for a chunk of `length`. Without wrapping the last segment keeps room
    /// for the chunk that ends the take, unless this is it, and for parity.
    #[inline]
    pub(crate) fn room(
        &self,
        length: u32,
        purpose: Purpose,
        wrap: bool,
        protected: &[TimeRange],
    ) -> Room {
        // With room for the end too, what comes behind the head doesn't matter.
        let at_once = self.head.as_ref().is_some_and(|head| length <= head.data_max);
        if at_once && purpose == Purpose::Data {
            return Room::Yes;
        }
        self.room_beyond(length, purpose, wrap, protected)
    }

    /// The same, if it is for parity, or the end, or more than the head simply takes.
    fn room_beyond(
        &self,
        length: u32,
        purpose: Purpose,
        wrap: bool,
        protected: &[TimeRange],
    ) -> Room {
        let in_last = self.keep.in_last(purpose);
        if self.head_takes(length, purpose, in_last) {
            return Room::Yes;
        }
        let next = self.next_segment(wrap, protected);
        let keep = if next == Next::Nothing { in_last } else { (0, 0) };
        if self.head_takes(length, purpose, keep) {
            return Room::Yes;
        }
        match next {
            Next::Nothing => Room::Full,
            Next::Later => Room::Later,
            Next::Segment(_) => Room::Yes,
        }
    }

    /// Makes room for a chunk for which [`Self::room`] said yes: moves to the next segment if the
    /// head is full. Returns what a ring gave up for it.
    pub(crate) fn make_room(
        &mut self,
        length: u32,
        purpose: Purpose,
        wrap: bool,
        protected: &[TimeRange],
    ) -> Option<(u64, Segment)> {
        if self.head_takes(length, purpose, (0, 0)) {
            return None;
        }
        let Next::Segment(segment) = self.next_segment(wrap, protected) else { return None };
        if let Some(head) = self.head.take()
            && !head.chunks.is_empty()
        {
            let closing = Closing::of(head.segment, head.chunks, head.used, &self.layout);
            self.closing.extend(closing);
        }
        let given_up = self.empty(segment);
        // As many chunks as in the last one, so that its list need not grow.
        let chunks = Vec::with_capacity(self.closing.back().map_or(0, |last| last.chunks.len()));
        self.head = Some(Head::new(segment, 0, chunks, &self.layout, self.keep));
        self.may_trim = true;
        self.given_up.take_if(|given_up| given_up.segment == segment);
        self.next_from = (segment + 1) % self.layout.segments;
        Some((segment, given_up))
    }

    /// A segment's contents with the times of all groups that its chunks belong to: without one chunk of a group, parity
    /// can't give back another one, so a group is kept, and given up, as a whole.
    fn reach(&self, segment: u64, live: Live) -> Live {
        let Times { first_ns, last_ns } = self.group_times[segment as usize];
        Live { first_ns: live.first_ns.min(first_ns), last_ns: live.last_ns.max(last_ns), ..live }
    }

    /// Whether a segment has not been given up since this number was written to it.
    pub(crate) fn holds(&self, segment: u64, sequence: u64) -> bool {
        match self.segments[segment as usize] {
            Segment::Live(live) => live.first_sequence <= sequence,
            Segment::Empty => false,
        }
    }

    /// Chunks of a segment belong to a group of these times.
    pub(crate) fn extend_reach(&mut self, segment: u64, times: Times) {
        if let Some(own) = self.group_times.get_mut(segment as usize) {
            own.first_ns = own.first_ns.min(times.first_ns);
            own.last_ns = own.last_ns.max(times.last_ns);
        }
    }

    /// Empties a segment that the ring gives up. Returns what it held, with the times of its groups.
    pub(crate) fn empty(&mut self, segment: u64) -> Segment {
        let held = std::mem::replace(&mut self.segments[segment as usize], Segment::Empty);
        let held = match held {
            Segment::Live(live) => Segment::Live(self.reach(segment, live)),
            Segment::Empty => Segment::Empty,
        };
        self.group_times[segment as usize] = Times::NONE;
        held
    }

    /// What placement balances: bytes written, or excused.
    pub(crate) const fn balance(&self) -> u64 {
        self.written + self.excused
    }

    /// The next chunk that is acknowledged: written, with everything before it.
    pub(crate) fn acknowledge_next(&mut self) -> Option<InFlight> {
        let hole = self.hole;
        self.in_flight.pop_front_if(|flight| {
            flight.done == Some(Ok(())) && hole.is_none_or(|hole| flight.chunk.sequence < hole)
        })
    }

    /// Takes the chunks that are to be written elsewhere: those that failed, and those behind them that are done.
    pub(crate) fn take_failed(&mut self) -> Vec<InFlight> {
        let mut failed = Vec::new();
        let Some(hole) = self.hole else { return failed };
        let mut at = 0;
        while at < self.in_flight.len() {
            let flight = &self.in_flight[at];
            if flight.done.is_some() && flight.chunk.sequence >= hole {
                failed.extend(self.in_flight.remove(at));
            } else {
                at += 1;
            }
        }
        failed
    }

    /// Gives the chunk its place at the head. Room was made.
    pub(crate) fn place(&mut self, record: &ChunkRecord) -> Option<(Place, u64)> {
        let head = self.head.as_mut()?;
        let offset = self.layout.segment_offset(head.segment) + head.used;
        let place = Place { offset, ..self.place };
        head.used += u64::from(record.summary.length);
        head.chunks.push((place, *record));
        head.data_max = head.data_max_in(&self.layout, self.keep);
        self.segments[head.segment as usize].take_in(record);
        self.written += u64::from(record.summary.length);
        Some((place, head.segment))
    }

    /// The next part of an index to be written, if one may be.
    pub(crate) fn next_index(&mut self) -> Option<IndexWrite> {
        let front = self.closing.front()?;
        let whole = match front.step {
            Step::Flush(flush) if flush <= self.flushes_done => self.closing.pop_front(),
            _ => None,
        };
        if let Some(Closing { segment, chunks, used, .. }) = whole {
            return Some(self.index_write(segment, chunks, used, IndexPart::Tail));
        }
        let settled = self.closing.iter_mut().find(|closing| {
            closing.step == Step::Chunks
                && self.in_flight.iter().all(|f| f.segment != closing.segment)
        })?;
        settled.step = Step::Front;
        let (segment, chunks, used) = (settled.segment, Arc::clone(&settled.chunks), settled.used);
        Some(self.index_write(segment, chunks, used, IndexPart::Front))
    }

    fn index_write(
        &self,
        segment: u64,
        chunks: Arc<Vec<(Place, ChunkRecord)>>,
        used: u64,
        part: IndexPart,
    ) -> IndexWrite {
        let offset = self.layout.segment_offset(segment) + used;
        let section_bytes = self.layout.segment_bytes - used;
        debug_assert!(section_bytes >= index::length_for(chunks.len() as u64));
        IndexWrite { segment, place: Place { offset, ..self.place }, section_bytes, chunks, part }
    }

    /// Whether a segment is full, and holds exactly the chunks from the first to the last of these numbers.
    pub(crate) fn is_filled_with(&self, segment: u64, (first, last): (u64, u64)) -> bool {
        let is_head = self.head.as_ref().is_some_and(|head| head.segment == segment);
        match self.segments.get(segment as usize) {
            Some(Segment::Live(live)) if !is_head => {
                (live.first_sequence, live.last_sequence) == (first, last)
            }
            _ => false,
        }
    }

    /// The write of an index's part is done.
    pub(crate) fn indexed(&mut self, tag: u64) {
        let Some(at) = self.indexing.iter().position(|i| i.tag == tag) else { return };
        let Indexing { segment, part, .. } = self.indexing.swap_remove(at);
        let next = self.flushes_sent + 1;
        let closing = self.closing.iter_mut().find(|c| c.segment == segment);
        if let (Some(IndexPart::Front), Some(closing)) = (part, closing) {
            closing.step = Step::Flush(next);
        }
    }

    /// Whether full segments wait for a flush that should not wait for its time.
    pub(crate) fn wants_flush(&self, wrap: bool, protected: &[TimeRange]) -> bool {
        let unsent = |c: &&Closing| matches!(c.step, Step::Flush(n) if n > self.flushes_sent);
        let count = self.closing.iter().filter(unsent).count();
        count >= UNFLUSHED_SEGMENTS_MAX
            || (count > 0 && self.next_segment(wrap, protected) == Next::Later)
    }

    /// Whether nothing but a flush is missing for the indexes of full segments.
    pub(crate) fn closing_settled(&self) -> bool {
        self.closing.iter().all(|c| matches!(c.step, Step::Flush(_)))
    }

    /// The next segment to trim within a window of `ahead` segments before the head.
    pub(crate) fn to_trim(&self, ahead: u64, protected: &[TimeRange]) -> Option<u64> {
        let kept = |live: &Live| protected.iter().chain(&self.held).any(|r| r.touches(live));
        let count = self.layout.segments;
        let mut seen = 0;
        for step in 0..count {
            let segment = (self.next_from + step) % count;
            if self.busy(segment) {
                return None;
            }
            match self.segments[segment as usize] {
                Segment::Live(live) if kept(&self.reach(segment, live)) => continue,
                Segment::Live(_) => return Some(segment),
                Segment::Empty => {}
            }
            seen += 1;
            if seen >= ahead {
                return None;
            }
        }
        None
    }

    /// Whether nothing is under way on it any more, and nothing waits to be.
    pub(crate) fn idle(&self) -> bool {
        self.in_flight.is_empty()
            && self.indexing.is_empty()
            && self.flushing.is_none()
            && self.trimming.is_none()
            && (self.failed.is_some() || (self.closing.is_empty() && self.flush_due.is_none()))
    }
}
