//! A region in a few runs, as a recorder leaves it: a chunk's end, an index, the next segment's beginning.

use super::{NOWHERE, REGION_UNITS, ahead};

/// Runs that a region is kept in at most; one with more gets a table. Enough for a region of chunks that each end within a unit.
const RUNS_MAX: usize = 24;

/// A region's runs: each from its start to the next one's, the last to the region's end. Neighbours never go on with each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short {
    count: u8,
    /// [`UNUSED`] behind the last.
    starts: [u16; RUNS_MAX],
    places: [u32; RUNS_MAX],
}

/// A start that no unit reaches.
const UNUSED: u16 = u16::MAX;

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Now {
    /// One run from this place.
    One(u32),
    /// A few.
    Few,
    /// Too many: nothing was changed.
    Many,
}

impl Short {
    /// One run from `base`, or nothing anywhere.
    pub(super) const fn one(base: u32) -> Self {
        let mut starts = [UNUSED; RUNS_MAX];
        starts[0] = 0;
        Self { count: 1, starts, places: [base; RUNS_MAX] }
    }

    /// The run that a unit lies in: its place, and how many units from it on are in the run. Inlined, its comparisons would be
    /// unrolled one by one; on its own it compares many starts with one instruction.
    #[inline(never)]
    pub(super) fn get(&self, within: u32) -> (u32, u32) {
        let run = self.run(within);
        (self.place(run, within), self.end(run) - within)
    }

    /// The run that a unit lies in. All starts are looked at, without a branch for each.
    #[inline]
    fn run(&self, within: u32) -> usize {
        let within = within as u16;
        let up_to: u16 = self.starts.iter().map(|&start| u16::from(start <= within)).sum();
        usize::from(up_to) - 1
    }

    #[inline]
    fn start(&self, run: usize) -> u32 {
        u32::from(self.starts[run])
    }

    fn end(&self, run: usize) -> u32 {
        if run + 1 < usize::from(self.count) { self.start(run + 1) } else { REGION_UNITS }
    }

    /// Where a unit lies, as part of a run that begins before it.
    #[inline]
    fn place(&self, run: usize, within: u32) -> u32 {
        ahead(self.places[run], within - self.start(run))
    }

    /// Tells the runs of some units that lie somewhere: place and length.
    pub(super) fn tell(&self, within: u32, count: u32, before: &mut impl FnMut(u32, u32)) {
        let end = within + count;
        for run in self.run(within)..=self.run(end - 1) {
            if self.places[run] != NOWHERE {
                let from = self.start(run).max(within);
                before(self.place(run, from), self.end(run).min(end) - from);
            }
        }
    }

    /// Puts some units at places from `place` on, or nowhere. Tells the runs that lay there before.
    pub(super) fn put(
        &mut self,
        within: u32,
        count: u32,
        place: u32,
        before: &mut impl FnMut(u32, u32),
    ) -> Now {
        let end = within + count;
        let runs = usize::from(self.count);
        let (first, last) = (self.run(within), self.run(end - 1));
        // Of the runs in front the last may go on with these units, which may go on with what is behind: the rest of a run, or the next.
        let front = first + usize::from(self.start(first) < within);
        let joins_front = front > 0 && self.place(front - 1, within) == place;
        let rest = end < self.end(last);
        let behind = last + usize::from(!rest);
        let joins_behind = behind < runs && self.place(behind, end) == ahead(place, count);
        let own = usize::from(!joins_front);
        let left_over = usize::from(rest && !joins_behind);
        let tail = last + 1 + usize::from(!rest && joins_behind);
        let to = front + own + left_over;
        let now = to + runs - tail;
        if now > RUNS_MAX {
            return Now::Many;
        }
        self.tell(within, count, before);
        let left_over_place = if rest { self.place(last, end) } else { NOWHERE };
        self.starts.copy_within(tail..runs, to);
        self.places.copy_within(tail..runs, to);
        if own > 0 {
            (self.starts[front], self.places[front]) = (within as u16, place);
        }
        if left_over > 0 {
            (self.starts[to - 1], self.places[to - 1]) = (end as u16, left_over_place);
        }
        if now < runs {
            self.starts[now..runs].fill(UNUSED);
        }
        self.count = now as u8;
        if now == 1 { Now::One(self.places[0]) } else { Now::Few }
    }
}
