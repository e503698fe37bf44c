//! What the recorder does in an array with parity: groups open, close and break, and their parity chunks get places.

use base::{BufferId, Instant};
use format::parity::OVERHEAD_BYTES;
use format::{Count, Ledger};

use super::groups::{Group, ParityPiece, Piece, Standing, State};
use super::{Phase, Placed, Recorder, Waiting};
use crate::member::{InFlight, PlacedChunk, Purpose, Room};
use crate::placement::Placement;
use crate::protocol::{Event, Fold, Output, ParityProgress, ReadyChunk};

impl Recorder {
    /// What parity has come to in this take; None in an array without.
    pub fn parity(&self) -> Option<ParityProgress> {
        self.groups.any().then_some(self.groups.progress)
    }

    /// Parities that a group gets as long as nothing but the number of working members limits them.
    pub(super) fn parities(&self) -> usize {
        let working = self.members.iter().filter(|m| m.failed.is_none()).count();
        usize::from(self.groups.parity).min(working.saturating_sub(1))
    }

    /// Closes the open group, if it is due or nothing more will come for it.
    pub(super) fn close_if_due(&mut self, now: Instant) {
        let over = self.phase != Phase::Running && self.waiting.is_empty();
        if over || self.groups.full() || self.groups.due().is_some_and(|due| due <= now) {
            self.close_group(now);
        }
    }

    /// No chunk comes to the open group any more: its parities are sealed.
    pub(super) fn close_group(&mut self, now: Instant) {
        let Some(id) = self.groups.open.take() else { return };
        let Some(group) = self.groups.get(id) else { return };
        if self.too_wide(group) {
            self.break_group(id);
            return;
        }
        let length = group.longest() + OVERHEAD_BYTES;
        let others = self.parity_members(group, length).count();
        self.keep_together(id);
        let Some(group) = self.groups.get_mut(id) else { return };
        group.standing = Standing::Closed;
        let spare = group.parities.split_off(others.min(group.parities.len()));
        let parities = group.parities.len() as u8;
        for place in 0..parities {
            let (buffer, table) = (group.parities[usize::from(place)].buffer, group.table(place));
            self.outputs.push_back(Output::Seal { group: id, buffer, table });
        }
        for parity in spare {
            self.groups.give_back(parity.buffer);
        }
        self.tell_reduced(parities);
        self.complete(now, id);
    }

    /// Keeps, and gives up, the segments of a group's chunks for the times of the whole group. A segment may have been given up
    /// while the group was still open. Parity may then be too little for the group's other chunks, so chunks written from here on
    /// name the group's latest time as overwritten.
    fn keep_together(&mut self, id: u64) {
        let Some(group) = self.groups.get(id) else { return };
        let times = group.times();
        for row in group.data.iter().map(|piece| piece.row) {
            let member = &mut self.members[usize::from(row.member)];
            let within = row.offset - member.layout.segment_offset(0);
            let segment = within / member.layout.segment_bytes;
            if member.holds(segment, row.sequence) {
                member.extend_reach(segment, times);
            } else {
                self.reused_to_ns = self.reused_to_ns.max(times.last_ns);
            }
        }
    }

    /// Groups with fewer parities than any before are told of.
    fn tell_reduced(&mut self, parities: u8) {
        if parities < self.groups.least_told {
            self.groups.least_told = parities;
            let of = self.groups.parity;
            self.event(Event::ParityReduced { parities, of });
        }
    }

    /// A parity chunk is ready to be written.
    pub(super) fn sealed(&mut self, id: u64, place: u8, length: u32, body_crc: u32) {
        // Its group may have broken meanwhile.
        let Some(group) = self.groups.get_mut(id) else { return };
        let summary = group.summary(length, body_crc);
        if group.standing == Standing::Closed
            && let Some(parity) = group.parities.get_mut(usize::from(place))
        {
            parity.state = State::Sealed(summary);
            self.groups.unplaced.push_back((id, place));
        }
    }

    /// Gives places to the parities that wait for one, as far as there are members that take them now.
    pub(super) fn place_parities(&mut self, now: Instant) {
        for _ in 0..self.groups.unplaced.len() {
            let Some((id, place)) = self.groups.unplaced.pop_front() else { return };
            let Some(group) = self.groups.get(id) else { continue };
            let parity = group.parities[usize::from(place)];
            let State::Sealed(summary) = parity.state else { continue };
            match self.choose_for_parity(now, group, summary.length) {
                Some(Ok(at)) => {
                    let part = Some(group.table(place).part);
                    let buffer = parity.buffer;
                    let Placed { place: there, record, tag } =
                        self.place(now, at, buffer, summary, (None, part), Some(id));
                    let fold = Fold::default();
                    let write = Output::WriteChunk { buffer, place: there, record, fold, tag };
                    self.outputs.push_back(write);
                    self.groups.progress.bytes += u64::from(summary.length);
                    if let Some(group) = self.groups.get_mut(id) {
                        group.parities[usize::from(place)].state = State::Writing(at as u16);
                        group.writing += 1;
                    }
                    self.complete(now, id);
                }
                Some(Err(())) => self.groups.unplaced.push_back((id, place)),
                None if self.too_wide(group) => self.break_group(id),
                None => {
                    let mut left = 0;
                    if let Some(group) = self.groups.get_mut(id) {
                        group.parities[usize::from(place)].state = State::Dropped;
                        let there = |p: &&ParityPiece| p.state != State::Dropped;
                        left = group.parities.iter().filter(there).count() as u8;
                    }
                    self.groups.give_back(parity.buffer);
                    self.tell_reduced(left);
                    self.complete(now, id);
                }
            }
        }
    }

    /// Members that could take a parity of a group: those that work, have room, and none of its chunks.
    fn parity_members<'a>(
        &'a self,
        group: &'a Group,
        length: u32,
    ) -> impl Iterator<Item = (usize, Room)> + 'a {
        let purpose = if self.phase == Phase::Ending { Purpose::End } else { Purpose::Parity };
        let others = self
            .members
            .iter()
            .enumerate()
            .filter(|(at, member)| member.failed.is_none() && !group.has(*at as u16));
        others.filter_map(move |(at, member)| {
            let room = member.room(length, purpose, self.wraps(), &self.protected);
            (room != Room::Full).then_some((at, room))
        })
    }

    /// The member that a parity of a group goes to; an error to wait, None if there is none.
    fn choose_for_parity(
        &self,
        now: Instant,
        group: &Group,
        length: u32,
    ) -> Option<Result<usize, ()>> {
        let all = || self.parity_members(group, length);
        all().next()?;
        // Those who rest are woken for want of others.
        let awake = all().any(|(at, _)| !self.members[at].resting);
        let ready = all().filter(|&(at, room)| {
            let member = &self.members[at];
            let slot = member.in_flight.len() < self.config.depth as usize;
            room == Room::Yes && slot && !(awake && member.resting)
        });
        let count = self.members.len();
        let order = |&(at, _): &(usize, Room)| match self.config.placement {
            Placement::Stripe => (((at + count - self.next_stripe % count) % count) as u64, 0),
            Placement::Adaptive => {
                let member = &self.members[at];
                let expected = member.pace.expected(now, member.in_flight_bytes, length);
                (expected.as_nanos(), member.balance())
            }
        };
        Some(ready.min_by_key(order).map(|(at, _)| at).ok_or(()))
    }

    /// A chunk of a group is written, with everything before it on its member.
    pub(super) fn settle(&mut self, now: Instant, at: usize, flight: &InFlight, id: u64) {
        self.flush_later(now, at);
        let failed = self.members[at].failed.is_some();
        let Some(group) = self.groups.unfinished(id) else {
            self.groups.give_back(flight.buffer);
            return;
        };
        group.writing -= 1;
        if group.standing == Standing::Broken {
            self.give_up_piece(flight, id);
            return;
        }
        mark_written(group, &flight.chunk, at as u16);
        if failed {
            group.lapsed = true;
        } else {
            group.unflushed += 1;
            self.members[at].unflushed_groups.push(id);
        }
        self.complete(now, id);
    }

    /// A write of a group's failed, or what it wrote will not be found: all of its chunks are written again.
    pub(super) fn unsettle(&mut self, flight: &InFlight, id: u64) {
        let Some(group) = self.groups.unfinished(id) else {
            self.groups.give_back(flight.buffer);
            return;
        };
        group.writing -= 1;
        if group.standing != Standing::Broken {
            self.break_group(id);
        }
        self.give_up_piece(flight, id);
    }

    /// A group can't become what it should be: what is written of it is written again in other groups, and the rest once it is
    /// not under way any more.
    fn break_group(&mut self, id: u64) {
        let Some(group) = self.groups.get_mut(id) else { return };
        group.standing = Standing::Broken;
        let over = group.writing == 0;
        let data: Vec<Piece> = group.data.iter().copied().filter(|p| p.written).collect();
        let free: Vec<BufferId> = group
            .parities
            .iter()
            .filter(|p| !matches!(p.state, State::Writing(_) | State::Dropped))
            .map(|p| p.buffer)
            .collect();
        self.groups.open.take_if(|open| *open == id);
        self.groups.unplaced.retain(|&(group, _)| group != id);
        for buffer in free {
            self.groups.give_back(buffer);
        }
        for piece in data.into_iter().rev() {
            self.wait_again(piece.buffer, &PlacedChunk::of(&piece.record));
        }
        if over {
            self.groups.remove(id);
        }
    }

    /// Whether members have failed since a group got its chunks, so that too few are left for its parities, and a smaller one
    /// would have them.
    fn too_wide(&self, group: &Group) -> bool {
        let holds = |at: usize| group.data.iter().any(|p| usize::from(p.row.member) == at);
        let working = self.members.iter().enumerate().filter(|(_, m)| m.failed.is_none());
        working.filter(|(at, _)| !holds(*at)).count() < self.parities()
    }

    /// A chunk of a broken group is not under way any more.
    fn give_up_piece(&mut self, flight: &InFlight, id: u64) {
        if flight.chunk.parity.is_some() {
            self.groups.give_back(flight.buffer);
        } else {
            self.wait_again(flight.buffer, &flight.chunk);
        }
        if self.groups.get(id).is_some_and(|group| group.writing == 0) {
            self.groups.remove(id);
        }
    }

    /// A chunk is to be placed again. Its own losses are in the ledger already.
    pub(super) fn wait_again(&mut self, buffer: BufferId, placed: &PlacedChunk) {
        let chunk = ReadyChunk { buffer, summary: placed.summary, losses: Ledger::default() };
        let first_sequence = Some(placed.replaces.unwrap_or(placed.sequence));
        self.waiting.push_front(Waiting { chunk, first_sequence });
    }

    /// Acknowledges a group if all of it is written.
    fn complete(&mut self, now: Instant, id: u64) {
        let of = usize::from(self.groups.parity);
        let Some(group) = self.groups.get_mut(id) else { return };
        if !group.whole() {
            return;
        }
        group.standing = Standing::Acknowledged;
        let data = group.data.clone();
        let written: Vec<BufferId> = group.written_parities().collect();
        let short = written.len() < of;
        self.groups.progress.groups += u64::from(!written.is_empty());
        for buffer in written {
            self.groups.give_back(buffer);
        }
        if short {
            self.groups.progress.chunks_short += data.len() as u64;
        }
        for piece in data {
            let at = usize::from(piece.row.member);
            self.acknowledge(now, at, piece.buffer, &PlacedChunk::of(&piece.record));
        }
        self.make_durable(id);
    }

    /// A flush of a member covers its chunks of these groups, or never will.
    pub(super) fn flushed(&mut self, groups: Vec<u64>, durable: bool) {
        for id in groups {
            let Some(group) = self.groups.get_mut(id) else { continue };
            group.unflushed -= 1;
            group.lapsed |= !durable;
            self.make_durable(id);
        }
    }

    /// Says that a group is durable once all of it is, and forgets it.
    fn make_durable(&mut self, id: u64) {
        let Some(group) = self.groups.get(id) else { return };
        if group.standing != Standing::Acknowledged || group.unflushed > 0 {
            return;
        }
        if !group.lapsed {
            let data: Vec<(u64, Count)> = group
                .data
                .iter()
                .map(|piece| (piece.row.sequence, piece.record.summary.stored()))
                .collect();
            for (sequence, count) in data {
                self.durable += count;
                self.event(Event::DurableChunk { sequence, count });
            }
        }
        self.groups.remove(id);
    }
}

fn mark_written(group: &mut Group, chunk: &PlacedChunk, member: u16) {
    match chunk.parity {
        Some(part) => group.parities[usize::from(part.place)].state = State::Written(member),
        None => {
            let piece = group.data.iter_mut().find(|p| p.row.sequence == chunk.sequence);
            if let Some(piece) = piece {
                piece.written = true;
            }
        }
    }
}
