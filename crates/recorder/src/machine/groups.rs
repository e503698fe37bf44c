//! Groups of chunks with parity (`docs/format.md`, section 9): which chunks are in them, how far they have been written, and
//! what of them is flushed. A group is acknowledged as a whole, and made durable as a whole.

use std::collections::{BTreeMap, VecDeque};

use base::{BufferId, Duration, Instant};
use format::parity::{GROUP_MAX, Joined, LastParities, Part, PlacedParity, Row, Table};
use format::{ChunkRecord, ChunkSummary};

use crate::member::Times;
use crate::protocol::{Fold, ParityMeans, ParityProgress};

/// A data chunk of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) record: ChunkRecord,
    pub(super) buffer: BufferId,
    pub(super) row: Row,
    /// Written, with everything before it on its member.
    pub(super) written: bool,
}

/// A parity chunk of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParityPiece {
    pub(super) buffer: BufferId,
    pub(super) state: State,
}

/// How far a parity chunk has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Chunks are taken into it, or it is being sealed.
    Folding,
    /// It waits for a place.
    Sealed(ChunkSummary),
    /// It is being written to this member.
    Writing(u16),
    /// It is, with everything before it there.
    Written(u16),
    /// No member was left for it.
    Dropped,
}

/// How a group stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It takes chunks until this time at the latest.
    Open(Instant),
    /// Its parities are made and written.
    Closed,
    /// All of it is written.
    Acknowledged,
    /// A write of it failed: its chunks are written again in other groups.
    Broken,
}

/// One group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) data: Vec<Piece>,
    pub(super) parities: Vec<ParityPiece>,
    pub(super) standing: Standing,
    /// Writes under way.
    pub(super) writing: u32,
    /// Chunks that are written and not yet flushed.
    pub(super) unflushed: u32,
    /// A member failed before it had flushed its part.
    pub(super) lapsed: bool,
}

impl Group {
    /// Whether it has a chunk on a member.
    pub(super) fn has(&self, member: u16) -> bool {
        let parity = |p: &ParityPiece| matches!(p.state, State::Writing(m) | State::Written(m) if m == member);
        self.data.iter().any(|piece| piece.row.member == member) || self.parities.iter().any(parity)
    }

    /// The longest of its data chunks.
    pub(super) fn longest(&self) -> u32 {
        self.data.iter().map(|piece| piece.row.length).max().unwrap_or(0)
    }

    /// Whether it is closed and all of it is written, as far as it can be.
    pub(super) fn whole(&self) -> bool {
        let parity_done = |p: &ParityPiece| matches!(p.state, State::Written(_) | State::Dropped);
        self.standing == Standing::Closed
            && self.data.iter().all(|piece| piece.written)
            && self.parities.iter().all(parity_done)
    }

    /// The buffers of its parities that are on a medium.
    pub(super) fn written_parities(&self) -> impl Iterator<Item = BufferId> + '_ {
        let written = self.parities.iter().filter(|p| matches!(p.state, State::Written(_)));
        written.map(|p| p.buffer)
    }

    /// What a parity chunk of it says.
    pub(super) fn table(&self, place: u8) -> Table {
        let group = self.data.first().map_or(0, |piece| piece.row.sequence);
        let last = self.data.last().map_or(group, |piece| piece.row.sequence);
        let span = (last - group) as u32;
        let part = Part { group, span, place, of: self.parities.len() as u8 };
        Table { part, rows: self.data.iter().map(|piece| piece.row).collect() }
    }

    /// The packet times of all its chunks.
    pub(super) fn times(&self) -> Times {
        let all = self.data.iter().map(|piece| &piece.record.summary);
        all.fold(Times::NONE, |Times { first_ns, last_ns }, s| Times {
            first_ns: first_ns.min(s.first_ns),
            last_ns: last_ns.max(s.last_ns),
        })
    }

    /// A parity chunk in short: with the times of what it is of, so that a ring keeps it as long.
    pub(super) fn summary(&self, length: u32, body_crc: u32) -> ChunkSummary {
        let all = || self.data.iter().map(|piece| &piece.record.summary);
        let Times { first_ns, last_ns } = self.times();
        ChunkSummary {
            length,
            body_crc,
            queue: all().next().map_or(0, |s| s.queue),
            first_ns,
            last_ns,
            sealed_ns: all().map(|s| s.sealed_ns).max().unwrap_or(0),
            ..ChunkSummary::EMPTY
        }
    }
}

/// All groups of a take that are not durable yet.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Parity chunks for each; 0 for an array without parity, which has no groups.
    pub(super) parity: u8,
    /// How long the open one waits for further chunks.
    pub(super) wait: Duration,
    free: Vec<BufferId>,
    all: BTreeMap<u64, Group>,
    next: u64,
    /// The one that takes chunks.
    pub(super) open: Option<u64>,
    /// Data chunks that it takes at most, by the choice that was made last.
    pub(super) limit: usize,
    /// Parities that wait for a place, by group and place in it.
    pub(super) unplaced: VecDeque<(u64, u8)>,
    /// Those that got places last, newest first.
    placed: VecDeque<PlacedParity>,
    pub(super) progress: ParityProgress,
    /// The least number of parities that was told of.
    pub(super) least_told: u8,
}

impl Groups {
    pub(super) fn new(parity: u8, means: ParityMeans) -> Self {
        let progress = ParityProgress { parity, ..ParityProgress::default() };
        Self {
            parity,
            wait: means.wait,
            free: means.buffers,
            progress,
            least_told: parity,
            ..Self::default()
        }
    }

    pub(super) const fn any(&self) -> bool {
        self.parity > 0
    }

    /// Whether a group with so many parities could be opened now, or is open.
    pub(super) fn has_buffers(&self, parities: usize) -> bool {
        self.open.is_some() || self.free.len() >= parities
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut Group> {
        self.all.get_mut(&id)
    }

    /// A group that is not acknowledged yet, as every one is of which a write is under way.
    pub(super) fn unfinished(&mut self, id: u64) -> Option<&mut Group> {
        self.all.get_mut(&id).filter(|group| group.standing != Standing::Acknowledged)
    }

    pub(super) fn get(&self, id: u64) -> Option<&Group> {
        self.all.get(&id)
    }

    /// The group that takes chunks.
    pub(super) fn opened(&self) -> Option<&Group> {
        self.open.and_then(|id| self.all.get(&id))
    }

    /// Whether the open group takes no more.
    pub(super) fn full(&self) -> bool {
        self.opened().is_some_and(|group| group.data.len() >= self.limit)
    }

    /// When the open group is to be closed at the latest.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.opened()?.standing {
            Standing::Open(until) => Some(until),
            _ => None,
        }
    }

    /// Data chunks of a group at most, with so many members to spread over and buffers in all. A group holds its buffers until
    /// it is written, so a few groups must fit in them.
    pub(super) fn limit_for(&self, members: usize, buffers: u32) -> usize {
        members
            .saturating_sub(usize::from(self.parity))
            .min(GROUP_MAX)
            .min(buffers as usize / 4)
            .max(1)
    }

    /// The open group; a new one with so many parities if there is none.
    pub(super) fn enter(&mut self, now: Instant, parities: usize) -> u64 {
        if let Some(id) = self.open {
            return id;
        }
        let id = self.next;
        self.next += 1;
        let from = self.free.len().saturating_sub(parities);
        let piece = |buffer| ParityPiece { buffer, state: State::Folding };
        let group = Group {
            data: Vec::new(),
            parities: self.free.drain(from..).map(piece).collect(),
            standing: Standing::Open(now + self.wait),
            writing: 0,
            unflushed: 0,
            lapsed: false,
        };
        self.all.insert(id, group);
        self.open = Some(id);
        id
    }

    /// Takes a chunk into the open group. Returns what its parities need of it.
    pub(super) fn join(&mut self, piece: Piece) -> Fold {
        let mut fold = Fold::default();
        if let Some(group) = self.open.and_then(|id| self.all.get_mut(&id)) {
            fold.filled = group.longest();
            for (buffer, parity) in fold.parities.iter_mut().zip(&group.parities) {
                *buffer = Some(parity.buffer);
            }
            group.data.push(piece);
            group.writing += 1;
        }
        fold
    }

    /// What the chunk of this number, which comes to a group next, says of it.
    pub(super) fn joined(&self, id: u64, sequence: u64) -> Option<Joined> {
        let group = self.all.get(&id)?;
        let of = group.parities.len() as u8;
        let first = group.data.first().map_or(sequence, |piece| piece.row.sequence);
        (of > 0).then_some(Joined { group: first, of })
    }

    /// A parity has got a place.
    pub(super) fn placed(&mut self, parity: PlacedParity) {
        self.placed.push_front(parity);
        self.placed.truncate(LastParities::COUNT);
    }

    /// What a chunk of this number says of the parities before it.
    pub(super) fn last_parities(&self, sequence: u64) -> LastParities {
        LastParities::of(sequence, self.placed.iter().copied())
    }

    /// A parity's buffer can be used again.
    pub(super) fn give_back(&mut self, buffer: BufferId) {
        self.free.push(buffer);
    }

    /// Forgets a group of which nothing more is to come.
    pub(super) fn remove(&mut self, id: u64) {
        self.all.remove(&id);
    }

    /// Whether everything that was placed is acknowledged.
    pub(super) fn settled(&self) -> bool {
        self.all.values().all(|group| group.standing == Standing::Acknowledged)
    }
}
