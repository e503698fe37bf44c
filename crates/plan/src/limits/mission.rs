//! What waits in a mission, which ends: by the fill curve of its drives, if it was measured, or by as many dips as there is time for.

use recorder::Placement;

use super::Case;
use crate::phases::{Dips, Phase};

/// What waits in a mission over drives that dip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BetweenDips {
    /// Bytes because drives are slower than the stream even while none dips.
    backlog: f64,
    /// Bytes that drives would have written in the time that they dip; in a stripe, that all would have.
    dips: f64,
}

impl BetweenDips {
    pub(super) fn sum(&self) -> f64 {
        self.backlog + self.dips
    }
}

impl Case<'_> {
    /// Bytes that wait because drives are slower than the stream, by their curve. None of a ring, which outlasts it, and where there is no
    /// curve, or it ends before.
    pub(super) fn backlog_by_curve(&self, drives: u32) -> Option<f64> {
        if self.requirement.wraps() {
            return None;
        }
        let offered = self.load.offered_bytes_per_s * (1.0 + self.headroom());
        let count = f64::from(drives);
        let volume = self.fill(drives) * count;
        self.subject.phases.curve.as_ref()?.backlog(offered, volume, count, self.left(drives))
    }

    /// What waits in a mission whose drives dip. None of a stripe that may see more dips than would make it stand still in a row: it works
    /// some of them off before it ends.
    pub(super) fn between_dips(&self, drives: u32, placement: Placement) -> Option<BetweenDips> {
        let phases = &self.subject.phases;
        let dips = phases.dips.filter(|_| !self.requirement.wraps())?;
        let (count, left) = (f64::from(drives), self.left(drives));
        let volume = self.fill(drives) * count;
        let level = |phase: &Phase| phases.level(phase) * left;
        let dipped_s = |drives: u32| dips.within(drives, self.load.held_s) * dips.together_s;
        let offered = self.load.offered_bytes_per_s;
        let reached = phases.reached(self.fill(drives)).iter();
        let fastest = reached.map(level).fold(0.0, f64::max);
        let members = drives + self.requirement.parity;
        let (more, dipped) = match placement {
            Placement::Adaptive => (0.0, dipped_s(members) * fastest),
            Placement::Stripe => {
                if dipped_s(members) > dips.standstill_s(members) {
                    return None;
                }
                // What drives that are too slow wouldn't have written waits already.
                (self.headroom(), dipped_s(members) * offered.min(count * fastest))
            }
        };
        let offered = offered * (1.0 + more);
        let backlog = phases.backlog(offered, volume, count, |phase| level(phase) * count);
        Some(BetweenDips { backlog, dips: dipped })
    }

    /// Whether what waits because drives are too slow fits in as much memory as there is for dips anyway.
    pub(super) fn fits_beside_dips(&self, drives: u32, waits: BetweenDips) -> bool {
        let there = self.requirement.host.memory.map(|memory| memory.0 as f64);
        waits.backlog <= there.unwrap_or_else(|| self.pipeline_bytes(drives) + waits.dips)
    }

    /// The longest time in seconds for which a stripe over so many members stands still: a mission ends before more of them dip.
    pub(super) fn standstill_s(&self, dips: Dips, members: u32) -> f64 {
        let in_a_row_s = dips.standstill_s(members);
        if self.requirement.wraps() {
            return in_a_row_s;
        }
        in_a_row_s.min(dips.within(members, self.load.held_s) * dips.together_s)
    }
}
