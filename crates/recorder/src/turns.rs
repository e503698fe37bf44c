//! Whose turn it is to rest: some members at a time take no writes, so that each has time to erase, or that readers have all
//! parts of the array but one to themselves.

use base::{Duration, Instant};

use crate::member::Member;

/// Rest in turn.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    /// Members that rest at a time.
    rest: usize,
    /// The part of the array that each member belongs to: all parts but one rest at a time. Empty without parts.
    parts: Vec<u16>,
    /// Bytes written to all members when the turn began.
    written: u64,
    /// How long a turn lasts.
    turn: Duration,
    /// The member to begin the next turn with, or the part to write next.
    next: usize,
    /// When this turn is over.
    until: Option<Instant>,
}

impl Turns {
    /// Nobody rests yet.
    pub(crate) fn new(rest: u32, turn: Duration) -> Self {
        let turn = turn.max(TURN_MIN);
        Self { rest: rest as usize, parts: Vec::new(), written: 0, turn, next: 0, until: None }
    }

    /// All parts but one rest, instead of so many members.
    pub(crate) fn of_parts(parts: Vec<u16>, turn: Duration) -> Self {
        Self { parts, ..Self::new(0, turn) }
    }

    /// Whether members rest at all.
    pub(crate) const fn any(&self) -> bool {
        self.rest > 0 || !self.parts.is_empty()
    }

    /// When the next turn is due.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.until
    }

    /// Ends a turn that is over, and begins the next.
    pub(crate) fn advance(&mut self, now: Instant, members: &mut [Member]) {
        let over = |until: Instant| until <= now || self.is_written(members);
        if !self.any() || !self.until.is_none_or(over) {
            return;
        }
        self.until = Some(now + self.turn);
        self.written = written(members);
        let up = members.iter().filter(|m| m.failed.is_none() && !m.resting);
        let least = up.map(Member::balance).min();
        for member in members.iter_mut().filter(|m| m.resting) {
            member.resting = false;
            // What it missed is nothing to make up for: the others miss as much when they rest.
            member.excused += least.unwrap_or(0).saturating_sub(member.balance());
        }
        if self.parts.is_empty() {
            self.rest_members(members);
        } else {
            self.rest_parts(members);
        }
    }

    /// Whether as much has been written as the part in turn holds: a ring would go on to give up what is younger than what the
    /// other parts hold.
    fn is_written(&self, members: &[Member]) -> bool {
        if self.parts.is_empty() {
            return false;
        }
        let up = members.iter().filter(|m| m.failed.is_none() && !m.resting);
        written(members) - self.written >= up.map(|m| m.layout.data_bytes()).sum()
    }

    fn rest_members(&mut self, members: &mut [Member]) {
        // Somebody has to stay up.
        let working = members.iter().filter(|m| m.failed.is_none()).count();
        let count = members.len();
        let mut left = self.rest.min(working.saturating_sub(1));
        for step in 0..count {
            let at = (self.next + step) % count;
            if left == 0 {
                self.next = at;
                return;
            }
            if members[at].failed.is_none() {
                members[at].resting = true;
                left -= 1;
            }
        }
    }

    fn rest_parts(&mut self, members: &mut [Member]) {
        let count = 1 + usize::from(self.parts.iter().copied().max().unwrap_or(0));
        let works = |part: &usize| {
            let mut of_part =
                members.iter().zip(&self.parts).filter(|(_, p)| usize::from(**p) == *part);
            of_part.any(|(member, _)| member.failed.is_none())
        };
        let Some(part) = (self.next..self.next + count).map(|part| part % count).find(works) else {
            return;
        };
        self.next = part + 1;
        for (member, own) in members.iter_mut().zip(&self.parts) {
            member.resting = member.failed.is_none() && usize::from(*own) != part;
        }
    }
}

fn written(members: &[Member]) -> u64 {
    members.iter().map(|member| member.written).sum()
}

/// The shortest turn: less would be over before anything that was under way is done.
const TURN_MIN: Duration = Duration::from_millis(1);
