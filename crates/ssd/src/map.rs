//! The mapping table: where each logical unit lies. Sequential data is kept as runs, one entry for a whole region or a short list, so
//! that a drive of 30 TB that is written in long runs takes megabytes; a region that is written in pieces has a table of its own units.

mod short;

use crate::words::Words;
use short::{Now, Short};

/// Logical units of a region.
pub const REGION_UNITS: u32 = 4096;

/// No place: never written, or trimmed.
pub const NOWHERE: u32 = u32::MAX;

const REGION: usize = REGION_UNITS as usize;

/// Where logical units lie, as physical units.
#[derive(Debug)]
pub struct Map {
    units: u32,
    regions: Vec<Region>,
    /// Tables of [`REGION_UNITS`] entries each, one behind the other.
    tables: Words,
    tables_used: u32,
    free_tables: Vec<u32>,
    shorts: Vec<Short>,
    free_shorts: Vec<u32>,
}

/// A region: in one run from `base`, or in pieces by `table`, or nowhere. From [`SHORT`] on the table is a short list instead.
#[derive(Clone, Copy, Debug)]
struct Region {
    base: u32,
    table: u32,
}

/// Short lists are numbered from here on.
const SHORT: u32 = 1 << 31;

impl Region {
    /// Its short list, if it has one.
    #[inline]
    const fn short(self) -> Option<usize> {
        if self.table != NOWHERE && self.table >= SHORT {
            Some((self.table - SHORT) as usize)
        } else {
            None
        }
    }

    /// Its table, if it has one.
    #[inline]
    const fn table(self) -> Option<usize> {
        if self.table < SHORT { Some(self.table as usize) } else { None }
    }
}

impl Clone for Map {
    /// Copies the tables in use alone: most drives have few, and room for all of them.
    fn clone(&self) -> Self {
        Self {
            tables: self.tables.copy(self.tables_used as usize * REGION),
            regions: self.regions.clone(),
            free_tables: self.free_tables.clone(),
            shorts: self.shorts.clone(),
            free_shorts: self.free_shorts.clone(),
            ..*self
        }
    }
}

const EMPTY: Region = Region { base: NOWHERE, table: NOWHERE };

impl Map {
    /// A table in which nothing is mapped.
    pub fn new(units: u32) -> Self {
        let regions = units.div_ceil(REGION_UNITS) as usize;
        Self {
            units,
            regions: vec![EMPTY; regions],
            tables: Words::new(regions * REGION),
            tables_used: 0,
            free_tables: Vec::new(),
            shorts: Vec::new(),
            free_shorts: Vec::new(),
        }
    }

    /// Memory of the tables in use.
    pub fn table_bytes(&self) -> u64 {
        u64::from(self.tables_used) * REGION as u64 * 4
    }

    /// Where a unit lies, or [`NOWHERE`].
    #[inline]
    pub fn get(&self, unit: u32) -> u32 {
        self.run(unit).0
    }

    /// Says that a unit will be looked up soon, so that the table's cache misses overlap.
    #[inline]
    pub fn expect(&self, unit: u32) {
        if let Some(region) = self.regions.get((unit / REGION_UNITS) as usize)
            && let Some(table) = region.table()
        {
            let within = (unit % REGION_UNITS) as usize;
            prefetch_index::prefetch_index(self.tables.all(), table * REGION + within);
        }
    }

    /// Looks at units in runs that lie one behind the other: the first's place (or [`NOWHERE`] for all) and how many.
    #[inline]
    pub fn runs(&self, first: u32, count: u32, mut look: impl FnMut(u32, u32)) {
        let (mut unit, end) = (first, first + count);
        while unit < end {
            let (start, mut length) = self.run(unit);
            // Runs may go on in the next region, or from one piece of a table to the next.
            while unit + length < end {
                let (next, more) = self.run(unit + length);
                let follows =
                    if start == NOWHERE { next == NOWHERE } else { next == start + length };
                if !follows {
                    break;
                }
                length += more;
            }
            let length = length.min(end - unit);
            look(start, length);
            unit += length;
        }
    }

    /// Where a unit lies, or [`NOWHERE`], and how many units from it on are known to be one run without looking at each: itself
    /// at least.
    #[inline]
    fn run(&self, unit: u32) -> (u32, u32) {
        let region = self.regions[(unit / REGION_UNITS) as usize];
        let within = unit % REGION_UNITS;
        if let Some(table) = region.table() {
            (self.tables.all()[table * REGION + within as usize], 1)
        } else if let Some(short) = region.short() {
            self.shorts[short].get(within)
        } else {
            (ahead(region.base, within), REGION_UNITS - within)
        }
    }

    /// Maps a run of units to places one behind the other from `place`, or to nowhere. Tells where they lay before, as runs of
    /// place and length.
    #[inline]
    pub fn set(&mut self, first: u32, count: u32, place: u32, mut before: impl FnMut(u32, u32)) {
        let (mut unit, end) = (first, first + count);
        let mut place = place;
        while unit < end {
            let index = unit / REGION_UNITS;
            let region_start = index * REGION_UNITS;
            let region_end = (region_start + REGION_UNITS).min(self.units);
            let piece_end = region_end.min(end);
            let count = piece_end - unit;
            if unit == region_start && piece_end == region_end {
                self.set_region(index as usize, count, place, &mut before);
            } else {
                self.set_piece(index as usize, unit - region_start, count, place, &mut before);
                if piece_end == region_end && place != NOWHERE {
                    self.collapse(index as usize, (region_end - region_start) as usize);
                }
            }
            if place != NOWHERE {
                place += count;
            }
            unit = piece_end;
        }
    }

    /// As [`Map::set`], where it doesn't matter where they lay before, and they do lie somewhere.
    #[inline]
    pub fn change(&mut self, first: u32, count: u32, place: u32) {
        let within = first % REGION_UNITS;
        if within + count < REGION_UNITS
            && let Some(table) = self.regions[(first / REGION_UNITS) as usize].table()
        {
            let start = table * REGION + within as usize;
            for (entry, place) in
                self.tables.some(start..start + count as usize).iter_mut().zip(place..)
            {
                *entry = place;
            }
        } else {
            self.set(first, count, place, |_, _| {});
        }
    }

    fn set_region(
        &mut self,
        index: usize,
        count: u32,
        place: u32,
        before: &mut impl FnMut(u32, u32),
    ) {
        let old = std::mem::replace(&mut self.regions[index], Region { base: place, ..EMPTY });
        if let Some(table) = old.table() {
            let start = table * REGION;
            tell_runs(&self.tables.all()[start..start + count as usize], before);
            self.free_tables.push(old.table);
        } else if let Some(short) = old.short() {
            self.shorts[short].tell(0, count, before);
            self.free_shorts.push(short as u32);
        } else if old.base != NOWHERE {
            before(old.base, count);
        }
    }

    #[inline]
    fn set_piece(
        &mut self,
        index: usize,
        within: u32,
        count: u32,
        place: u32,
        before: &mut impl FnMut(u32, u32),
    ) {
        let region = self.regions[index];
        if region.table().is_none() {
            if region.table == NOWHERE && region.base == NOWHERE && place == NOWHERE {
                return;
            }
            if self.put_short(index, within, count, place, before) {
                return;
            }
        }
        let start = self.regions[index].table as usize * REGION + within as usize;
        let entries = self.tables.some(start..start + count as usize);
        tell_runs(entries, before);
        if place == NOWHERE {
            entries.fill(NOWHERE);
        } else {
            for (entry, place) in entries.iter_mut().zip(place..) {
                *entry = place;
            }
        }
    }

    /// Changes a region without a table as a short list; or, if that would grow too long, gives it a table of what it was and returns
    /// false.
    fn put_short(
        &mut self,
        index: usize,
        within: u32,
        count: u32,
        place: u32,
        before: &mut impl FnMut(u32, u32),
    ) -> bool {
        let region = self.regions[index];
        let short = region.short().unwrap_or_else(|| self.list(region.base));
        match self.shorts[short].put(within, count, place, before) {
            Now::Many => {
                self.explode(index, &{ self.shorts[short] });
                self.free_shorts.push(short as u32);
                return false;
            }
            Now::One(base) => {
                self.regions[index] = Region { base, ..EMPTY };
                self.free_shorts.push(short as u32);
            }
            Now::Few => {
                self.regions[index] = Region { base: NOWHERE, table: SHORT + short as u32 };
            }
        }
        true
    }

    /// A short list of one run.
    fn list(&mut self, base: u32) -> usize {
        if let Some(short) = self.free_shorts.pop() {
            self.shorts[short as usize] = Short::one(base);
            return short as usize;
        }
        self.shorts.push(Short::one(base));
        self.shorts.len() - 1
    }

    /// Gives a region a table of its own.
    #[cold]
    fn explode(&mut self, index: usize, runs: &Short) {
        let table = self.free_tables.pop().unwrap_or_else(|| {
            self.tables_used += 1;
            self.tables_used - 1
        });
        let start = table as usize * REGION;
        let entries = self.tables.some(start..start + REGION);
        entries.fill(NOWHERE);
        let mut unit = 0;
        while unit < REGION_UNITS {
            let (place, length) = runs.get(unit);
            if place != NOWHERE {
                for (entry, place) in
                    entries[unit as usize..(unit + length) as usize].iter_mut().zip(place..)
                {
                    *entry = place;
                }
            }
            unit += length;
        }
        self.regions[index] = Region { base: NOWHERE, table };
    }

    /// Takes a region's table away if its units lie in one run.
    fn collapse(&mut self, index: usize, count: usize) {
        let Some(table) = self.regions[index].table() else { return };
        let start = table * REGION;
        let entries = &self.tables.all()[start..start + count];
        let base = entries[0];
        if base == NOWHERE || entries[count - 1] != base.wrapping_add(count as u32 - 1) {
            return;
        }
        if entries.iter().zip(base..).all(|(&entry, place)| entry == place) {
            self.free_tables.push(self.regions[index].table);
            self.regions[index] = Region { base, ..EMPTY };
        }
    }
}

/// So many places on, which is nowhere from nowhere.
#[inline]
pub const fn ahead(place: u32, units: u32) -> u32 {
    if place == NOWHERE { NOWHERE } else { place + units }
}

#[inline]
fn tell_runs(entries: &[u32], before: &mut impl FnMut(u32, u32)) {
    let mut at = 0;
    while at < entries.len() {
        let start = entries[at];
        if start == NOWHERE {
            at += 1;
            continue;
        }
        let mut length = 1;
        while at + length < entries.len() && entries[at + length] == start + length as u32 {
            length += 1;
        }
        before(start, length as u32);
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use base::random::Random;

    use super::*;

    #[test]
    fn random_runs_do_what_a_plain_table_does() {
        let units = 5 * REGION_UNITS + 77;
        let mut map = Map::new(units);
        let mut model = vec![NOWHERE; units as usize];
        let mut random = Random::new(3);
        let mut place = 0;
        for _ in 0..8_000 {
            let first = random.below(u64::from(units)) as u32;
            let longest = if random.one_in(2) { 3 } else { 3 * REGION_UNITS };
            let count = (1 + random.below(u64::from(longest)) as u32).min(units - first);
            let to = if random.one_in(5) { NOWHERE } else { place };
            let mut told = Vec::new();
            map.set(first, count, to, |start, length| told.extend(start..start + length));
            let range = first as usize..(first + count) as usize;
            let before: Vec<u32> =
                model[range.clone()].iter().copied().filter(|&p| p != NOWHERE).collect();
            assert_eq!(told, before);
            for (entry, at) in model[range].iter_mut().zip(0..) {
                *entry = if to == NOWHERE { NOWHERE } else { to + at };
            }
            place += count;
            let at = random.below(u64::from(units)) as u32;
            assert_eq!(map.get(at), model[at as usize]);
        }
        let mut all = Vec::new();
        map.runs(0, units, |start, length| {
            all.extend((0..length).map(|i| if start == NOWHERE { NOWHERE } else { start + i }));
        });
        assert_eq!(all, model);
    }

    #[test]
    fn what_is_written_in_order_takes_no_table() {
        let mut map = Map::new(4 * REGION_UNITS);
        for unit in (0..4 * REGION_UNITS).step_by(32) {
            map.set(unit, 32, 1_000 + unit, |_, _| {});
        }
        assert_eq!((map.tables_used, map.shorts.len()), (0, 1), "one list, used again and again");
        assert_eq!(map.get(777), 1_777);
    }

    #[test]
    fn what_recorders_leave_takes_no_table() {
        let mut map = Map::new(8 * REGION_UNITS);
        let mut place = 0;
        for _ in 0..3 {
            for segment in 0..8 {
                // A trim, chunks, the first page of an index, the next segment's chunks, the index's end.
                let start = segment * REGION_UNITS + if segment == 0 { 0 } else { 17 };
                let length = REGION_UNITS - 40;
                map.set(start, length + 20, NOWHERE, |_, _| {});
                map.set(start, length, place, |_, _| {});
                map.set(start + length, 1, place + 100_000, |_, _| {});
                map.set(start + length + 10, 9, place + 200_000, |_, _| {});
                place += length;
            }
        }
        assert_eq!(map.tables_used, 0);
    }
}
