//! Where the next chunk goes: which members take it, and whether it has to wait.

use base::Instant;

use super::{Recorder, Refusing};
use crate::member::{Member, Purpose, Room};
use crate::placement::{self, Candidate, Placement};

/// What became of the search for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Member(usize),
    /// The open group is not worth waiting for: it is to be closed, and the chunk goes into the next one.
    Close,
    Wait,
    Nowhere(Refusing),
}

impl Recorder {
    pub(super) fn choose(&mut self, now: Instant, length: u32, end: bool) -> Choice {
        let mut candidates = std::mem::take(&mut self.candidates);
        let choice = match self.config.placement {
            Placement::Stripe => self.next_in_turn(length, end),
            Placement::Adaptive => self.choose_among(now, length, end, &mut candidates),
        };
        self.candidates = candidates;
        if end {
            self.groups.limit = 1;
        }
        choice
    }

    /// Whether a member takes chunks now, with those that rest if they must.
    fn takes(&self, member: &Member, wake: bool) -> bool {
        member.failed.is_none() && (wake || !member.resting)
    }

    fn room(&self, member: &Member, length: u32, end: bool) -> Room {
        let purpose = if end { Purpose::End } else { Purpose::Data };
        member.room(length, purpose, self.wraps(), &self.protected)
    }

    fn slot(&self, member: &Member) -> bool {
        member.in_flight.len() < self.config.depth as usize
    }

    /// Whether those who rest are woken: when buffers fill, and when there is nobody else.
    fn wakes(&self, length: u32, end: bool) -> bool {
        let up = |m: &Member| {
            m.failed.is_none() && !m.resting && self.room(m, length, end) != Room::Full
        };
        end || self.pressed() || (self.turns.any() && !self.members.iter().any(up))
    }

    /// How far the members may drift apart. While those ahead stand still for those behind, no chunk is written any sooner, and
    /// what fills meanwhile is missing at the next dip: so balance yields once more chunks wait than there are members, or buffers are
    /// filled past half, of which so many may not be left.
    fn drift_max(&self) -> u64 {
        let many = self.waiting.len() > self.members.len() || self.pressed();
        if many { u64::MAX } else { self.config.drift_max }
    }

    /// Whether a group can be begun or gone on with, as far as buffers go.
    fn lacks_parity_buffers(&self) -> bool {
        self.groups.any() && !self.groups.has_buffers(self.parities())
    }

    fn next_in_turn(&mut self, length: u32, end: bool) -> Choice {
        let wake = self.wakes(length, end);
        let count = self.members.len();
        let mut taking = (0..count)
            .map(|step| (self.next_stripe + step) % count)
            .filter(|&at| self.takes(&self.members[at], wake));
        let Some(at) = taking.next() else { return Choice::Nowhere(Refusing::NoMember) };
        let members = 1 + taking.count();
        if self.lacks_parity_buffers() {
            return Choice::Wait;
        }
        if self.groups.opened().is_some_and(|group| group.has(at as u16)) {
            return Choice::Close;
        }
        let choice = match self.room(&self.members[at], length, end) {
            // The end of the take goes wherever there is room for it.
            Room::Full if end => {
                let mut others =
                    self.members.iter().enumerate().filter(|(_, m)| {
                        m.failed.is_none() && self.room(m, length, end) != Room::Full
                    });
                let ready = |(_, m): &(usize, &Member)| {
                    self.room(m, length, end) == Room::Yes && self.slot(m)
                };
                match others.clone().find(ready) {
                    Some((at, _)) => Choice::Member(at),
                    None if others.next().is_some() => Choice::Wait,
                    None => Choice::Nowhere(Refusing::Full),
                }
            }
            Room::Full => Choice::Nowhere(Refusing::Full),
            Room::Yes if self.slot(&self.members[at]) => Choice::Member(at),
            _ => Choice::Wait,
        };
        self.groups.limit = self.groups.limit_for(members, self.config.buffers);
        choice
    }

    fn choose_among(
        &mut self,
        now: Instant,
        length: u32,
        end: bool,
        candidates: &mut Vec<Candidate>,
    ) -> Choice {
        if self.members.iter().all(|m| m.failed.is_some()) {
            return Choice::Nowhere(Refusing::NoMember);
        }
        let wake = self.wakes(length, end);
        candidates.clear();
        for (at, member) in self.members.iter().enumerate() {
            if !self.takes(member, wake) {
                continue;
            }
            let room = self.room(member, length, end);
            if room != Room::Full {
                candidates.push(Candidate {
                    member: at,
                    balance: member.balance(),
                    expected: member.pace.expected(now, member.in_flight_bytes, length),
                    ready: room == Room::Yes && self.slot(member),
                });
            }
        }
        if candidates.is_empty() {
            return Choice::Nowhere(Refusing::Full);
        }
        if self.groups.any() {
            return self.choose_for_group(length, candidates, end);
        }
        placement::adaptive(candidates, self.drift_max(), |_| true)
            .map_or(Choice::Wait, Choice::Member)
    }

    /// The member for the next chunk of the open group, or of a new one. Nothing waits for a member that is slow: without it,
    /// groups are smaller.
    fn choose_for_group(&mut self, length: u32, candidates: &[Candidate], end: bool) -> Choice {
        let parities = self.parities();
        // Without room for their parity chunks are not what this array promises.
        let woken = self.members.iter().filter(|m| m.failed.is_none() && m.resting).count();
        if !end && candidates.len() + woken <= parities {
            return Choice::Nowhere(Refusing::Full);
        }
        if self.lacks_parity_buffers() {
            return Choice::Wait;
        }
        let drift_max = self.drift_max();
        let best = |eligible: &dyn Fn(&Candidate) -> bool| {
            placement::adaptive(candidates, drift_max, eligible)
        };
        // By what a full queue takes the fastest: how much is queued where at the moment says nothing of who is slow.
        let fastest =
            candidates.iter().map(|c| self.members[c.member].pace.rate()).fold(0.0, f64::max);
        let queue = f64::from(self.config.depth) * f64::from(length);
        let brisk =
            |c: &Candidate| fastest <= 0.0 || c.expected.as_secs_f64() * fastest <= SLOW * queue;
        // While no chunk waits behind this one, a member that is late is as good, if it writes the chunk in the time that the group
        // may wait for its parity anyway. Nobody waits for it to have a slot.
        let (at_ease, time) = (self.waiting.len() <= 1, self.groups.wait);
        let prompt = |c: &Candidate| brisk(c) || (at_ease && c.expected <= time);
        self.groups.limit = self
            .groups
            .limit_for(candidates.iter().filter(|c| prompt(c)).count(), self.config.buffers);
        let group = self.groups.opened();
        let outside = |c: &Candidate| group.is_none_or(|group| !group.has(c.member as u16));
        if let Some(at) = best(&|c| outside(c) && prompt(c)) {
            return Choice::Member(at);
        }
        let soon = |c: &&Candidate| outside(c) && brisk(c) && !c.ready;
        match best(&|c| !outside(c)) {
            Some(_) if candidates.iter().any(|c| soon(&c)) => Choice::Wait,
            Some(_) => Choice::Close,
            None => best(&outside).map_or(Choice::Wait, Choice::Member),
        }
    }
}

/// A member that takes so many times as long for a chunk as the fastest does for a full queue is slow. Members of one speed come to 1.25
/// when their queues are full.
const SLOW: f64 = 3.0;
