//! A region in a few runs, as a recorder leaves it: a chunk's end, an index, the next segment's beginning.

use super::{NOWHERE, REGION_UNITS};

/// Runs that a region is kept in at most; one with more gets a table. Enough for a region of chunks that each end within a unit.
const RUNS_MAX: usize = 24;

/// A region's runs: each from its start to the next one's, the last to the region's end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short {
    count: u8,
    starts: [u16; RUNS_MAX],
    places: [u32; RUNS_MAX],
}

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
        Self { count: 1, starts: [0; RUNS_MAX], places: [base; RUNS_MAX] }
    }

    /// The run that a unit lies in: its place, and how many units from it on are in the run.
    #[inline]
    pub(super) fn get(&self, within: u32) -> (u32, u32) {
        let mut run = 0;
        while run + 1 < self.count as usize && u32::from(self.starts[run + 1]) <= within {
            run += 1;
        }
        let end = self.end(run);
        (ahead(self.places[run], within - u32::from(self.starts[run])), end - within)
    }

    fn end(&self, run: usize) -> u32 {
        if run + 1 < self.count as usize { u32::from(self.starts[run + 1]) } else { REGION_UNITS }
    }

    /// Tells the runs of some units that lie somewhere: place and length.
    pub(super) fn tell(&self, within: u32, count: u32, before: &mut impl FnMut(u32, u32)) {
        let (mut unit, end) = (within, within + count);
        while unit < end {
            let (place, length) = self.get(unit);
            let length = length.min(end - unit);
            if place != NOWHERE {
                before(place, length);
            }
            unit += length;
        }
    }

    /// Puts some units at places from `place` on, or nowhere.
    pub(super) fn put(&mut self, within: u32, count: u32, place: u32) -> Now {
        let end = within + count;
        let mut runs = Runs { count: 0, starts: [0; RUNS_MAX + 2], places: [0; RUNS_MAX + 2] };
        for run in 0..self.count as usize {
            let (start, place) = (u32::from(self.starts[run]), self.places[run]);
            if start < within {
                runs.push(start, place);
            }
        }
        runs.push(within, place);
        if end < REGION_UNITS {
            runs.push(end, self.get(end).0);
        }
        for run in 0..self.count as usize {
            let (start, place) = (u32::from(self.starts[run]), self.places[run]);
            if start > end {
                runs.push(start, place);
            }
        }
        if runs.count > RUNS_MAX {
            return Now::Many;
        }
        self.count = runs.count as u8;
        self.starts.copy_from_slice(&runs.starts[..RUNS_MAX]);
        self.places.copy_from_slice(&runs.places[..RUNS_MAX]);
        if runs.count == 1 { Now::One(self.places[0]) } else { Now::Few }
    }
}

/// So many places on, which is nowhere from nowhere.
const fn ahead(place: u32, units: u32) -> u32 {
    if place == NOWHERE { NOWHERE } else { place + units }
}

/// Runs while they are put together.
struct Runs {
    count: usize,
    starts: [u16; RUNS_MAX + 2],
    places: [u32; RUNS_MAX + 2],
}

impl Runs {
    /// Adds a run, unless it only goes on with the last one.
    fn push(&mut self, start: u32, place: u32) {
        if let Some(last) = self.count.checked_sub(1)
            && ahead(self.places[last], start - u32::from(self.starts[last])) == place
        {
            return;
        }
        self.starts[self.count] = start as u16;
        self.places[self.count] = place;
        self.count += 1;
    }
}
