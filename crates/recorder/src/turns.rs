//! Whose turn it is to rest: some members at a time take no writes, so that each has time to erase.

use base::{Duration, Instant};

use crate::member::Member;

/// Rest in turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    /// Members that rest at a time.
    rest: usize,
    /// How long a turn lasts.
    turn: Duration,
    /// The member to begin the next turn with.
    next: usize,
    /// When this turn is over.
    until: Option<Instant>,
}

impl Turns {
    /// Nobody rests yet.
    pub(crate) fn new(rest: u32, turn: Duration) -> Self {
        Self { rest: rest as usize, turn: turn.max(TURN_MIN), next: 0, until: None }
    }

    /// Whether members rest at all.
    pub(crate) const fn any(&self) -> bool {
        self.rest > 0
    }

    /// When the next turn is due.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.until
    }

    /// Ends a turn that is over, and begins the next.
    pub(crate) fn advance(&mut self, now: Instant, members: &mut [Member]) {
        if self.rest == 0 || self.until.is_some_and(|until| until > now) {
            return;
        }
        self.until = Some(now + self.turn);
        let up = members.iter().filter(|m| m.failed.is_none() && !m.resting);
        let least = up.map(Member::balance).min();
        for member in members.iter_mut().filter(|m| m.resting) {
            member.resting = false;
            // What it missed is nothing to make up for: the others miss as much when they rest.
            member.excused += least.unwrap_or(0).saturating_sub(member.balance());
        }
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
}

/// The shortest turn: less would be over before anything that was under way is done.
const TURN_MIN: Duration = Duration::from_millis(1);
