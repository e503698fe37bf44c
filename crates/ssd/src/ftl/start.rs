//! What a drive may begin with, computed instead of simulated: full in order, or in the steady state of uniform random writes.

use base::random::Random;

use crate::ftl::free::Free;
use crate::ftl::{Flash, Ftl, Open, Program, State, Stream};
use crate::map::{Map, NOWHERE};
use crate::spec::Placement;
use crate::steady;

/// Does nothing: for what is to be there already.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Flash for Nothing {
    fn program(&mut self, _die: u32, _program: Program) {}
    fn copy(&mut self, _die: u32, _slc: bool, _units: u32) {}
    fn erase(&mut self, _die: u32, _superblock: u32) {}
    fn erase_ahead(&mut self, _die: u32, _superblock: u32) {}
}

/// Units written at a time.
const RUN_UNITS: u32 = 1 << 16;

impl Ftl {
    /// Writes everything once, in order and past the cache. The counters stay at zero.
    pub fn fill_in_order(&mut self) {
        let cache = self.setup.cache.take();
        self.write_in_order();
        self.setup.cache = cache;
        self.done = Default::default();
    }

    /// Writes everything in order, through the cache, as a drive without a moment's rest would. The counters of what was
    /// written stay at zero; what had to be erased for it counts as erased.
    pub fn overwrite_in_order(&mut self) {
        self.write_in_order();
        self.done = Default::default();
    }

    fn write_in_order(&mut self) {
        let mut first = 0;
        while first < self.setup.units {
            let end = self.end_of_handle(first).min(first + RUN_UNITS);
            self.write(first, end - first, &mut Nothing);
            first = end;
        }
        // What is there is on flash: nothing of it waits for the rest of its wordline.
        self.pad(&mut Nothing);
    }

    /// Puts everything where endless uniform random writes of `run` units each would have: superblocks hold the valid shares
    /// that the model of [`steady`] gives for this collector. Counters and wear stay at zero.
    ///
    /// # Panics
    /// If something was written already.
    pub fn scatter(&mut self, run: u32) {
        assert_eq!(self.mapped, 0, "only an empty drive can be put into a state");
        let (units, superblock_units) = (self.setup.units, self.superblock_units.get());
        // Open superblocks take none: they hold what is just being written.
        let closed =
            self.setup.superblocks - self.setup.reserve - Placement::streams(self.setup.placement);
        let rho = f64::from(units) / (f64::from(closed) * f64::from(superblock_units));
        let run = run.clamp(1, superblock_units);
        // What is written together is stale together.
        let grains = superblock_units / run;
        let shares = steady::valid_shares(self.setup.collector, rho, grains, closed as usize);
        let mut chunks = Chunks {
            order: Order::new(units.div_ceil(run), self.setup.seed),
            run,
            units,
            ahead: Vec::new(),
            current: (0, 0),
        };
        let mut given = 0.0;
        let mut placed = 0;
        for (index, share) in shares.iter().enumerate() {
            given += share * f64::from(superblock_units);
            let last = index + 1 == shares.len();
            let goal = if last { units } else { (given.round() as u32).min(units) };
            let valid = (goal - placed).min(superblock_units);
            self.scatter_one(index as u32, valid, &mut chunks);
            placed += valid;
        }
        // Rounding may leave a few for the host's open superblock.
        self.scatter_rest(&mut chunks);
        self.free.retain(|one| self.superblocks[one as usize].state == State::Free);
        self.pad(&mut Nothing);
        self.done = Default::default();
    }

    /// Puts what lies here into the steady state of [`Ftl::scatter`]. Counters and wear stay as they are.
    pub fn settle(&mut self, run: u32) {
        let mut settled = Self::new(self.setup);
        settled.scatter(run);
        settled.done = self.done;
        settled.handles.clone_from(&self.handles);
        settled.erases = self.erases;
        for (new, old) in settled.superblocks.iter_mut().zip(&self.superblocks) {
            new.erases = old.erases;
        }
        let free = std::mem::replace(&mut settled.free, Free::new(self.setup.stripe.dies()));
        for superblock in free.iter() {
            settled.free.add(superblock, false, settled.superblocks[superblock as usize].erases);
        }
        *self = settled;
    }

    /// Closes a superblock with so many valid units in it, spread evenly between stale ones.
    fn scatter_one(&mut self, index: u32, valid: u32, chunks: &mut Chunks) {
        let run = chunks.run;
        let capacity = self.superblock_units.get();
        let first_place = index * capacity;
        let mut put = 0;
        let mut place = 0;
        while place < capacity {
            // As many should be in by the end of the next run as its share says.
            let end = u64::from((place + run).min(capacity));
            if u64::from(put + 1) * u64::from(capacity) > u64::from(valid) * end {
                let count = run.min(capacity - place);
                self.note(index, place, NOWHERE, count);
                place += count;
                continue;
            }
            let Some((unit, count)) = chunks.take((capacity - place).min(valid - put), &self.map)
            else {
                break;
            };
            self.map.set(unit, count, first_place + place, |_, _| {});
            self.note(index, place, unit, count);
            put += count;
            place += count;
        }
        if place < capacity {
            self.note(index, place, NOWHERE, capacity - place);
        }
        let superblock = &mut self.superblocks[index as usize];
        superblock.state = State::Closed;
        superblock.used = capacity;
        superblock.valid = put;
        self.mapped += put;
    }

    fn note(&mut self, index: u32, place: u32, unit: u32, count: u32) {
        let reverse = &mut self.superblocks[index as usize].reverse;
        reverse.append(place, unit, count, self.superblock_units.get(), &mut self.spare);
    }

    fn scatter_rest(&mut self, chunks: &mut Chunks) {
        let index = self.superblocks.iter().position(|one| one.state == State::Free);
        let index = index.expect("some superblocks are left free") as u32;
        let mut next = 0;
        while let Some((unit, count)) = chunks.take(u32::MAX, &self.map) {
            self.map.set(unit, count, index * self.superblock_units.get() + next, |_, _| {});
            self.note(index, next, unit, count);
            next += count;
        }
        if next > 0 {
            let superblock = &mut self.superblocks[index as usize];
            superblock.state = State::Open;
            superblock.valid = next;
            self.mapped += next;
            self.open[Stream::Host.of(0)] = Some(Open { superblock: index, next });
        }
    }
}

/// Runs of units in random order, each once.
struct Chunks {
    order: Order,
    run: u32,
    units: u32,
    /// The next few, last first; the map expects them.
    ahead: Vec<u32>,
    /// What is left of the one at hand: first unit and the one past the last.
    current: (u32, u32),
}

impl Chunks {
    /// The next units, `most` at most: the first and how many. None when all are taken.
    #[inline]
    fn take(&mut self, most: u32, map: &Map) -> Option<(u32, u32)> {
        if self.current.0 == self.current.1 {
            if self.ahead.is_empty() {
                self.look_ahead(map);
            }
            let first = self.ahead.pop()? * self.run;
            self.current = (first, (first + self.run).min(self.units));
        }
        let (first, end) = self.current;
        let count = most.min(end - first);
        self.current.0 += count;
        Some((first, count))
    }

    fn look_ahead(&mut self, map: &Map) {
        const AHEAD: usize = 64;
        self.ahead.extend(std::iter::from_fn(|| self.order.next()).take(AHEAD));
        self.ahead.reverse();
        for &chunk in &self.ahead {
            map.expect(chunk * self.run);
        }
    }
}

/// The numbers below `end`, each once, in an order that a seed gives: a linear congruential sequence over the next power of two
/// (full period by Hull and Dobell's theorem), scrambled by a multiplication and a shift, numbers past the end left out.
struct Order {
    end: u32,
    mask: u64,
    state: u64,
    left: u64,
    shift: u32,
}

impl Order {
    fn new(end: u32, seed: u64) -> Self {
        let size = u64::from(end).next_power_of_two().max(2);
        let mut random = Random::new(seed);
        let shift = (size.trailing_zeros()).div_ceil(2);
        Self { end, mask: size - 1, state: random.bits() & (size - 1), left: size, shift }
    }

    /// The next one, if there are more.
    fn next(&mut self) -> Option<u32> {
        while self.left > 0 {
            self.left -= 1;
            self.state =
                (self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1)) & self.mask;
            // Low bits of the sequence have short periods; both steps can be undone, so every number still comes once.
            let mut number = self.state ^ (self.state >> self.shift);
            number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & self.mask;
            number ^= number >> self.shift;
            if number < u64::from(self.end) {
                return Some(number as u32);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_every_number_once() {
        for end in [1, 2, 3, 100, 1_023, 1_024, 1_025] {
            let mut order = Order::new(end, 9);
            let mut all: Vec<u32> = std::iter::from_fn(|| order.next()).collect();
            all.sort_unstable();
            assert_eq!(all, (0..end).collect::<Vec<_>>());
        }
    }
}
