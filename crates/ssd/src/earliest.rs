//! The earliest of a fixed number of times, each of which changes often: kept in order, as a new time is nearly always among the
//! latest, and the one that changes nearly always the earliest.

use std::hint::select_unpredictable;

/// Bits of a key that name who it belongs to; the others are the time in nanoseconds, enough for 208 days.
const NAME_BITS: u32 = 10;

/// Entries at most.
pub const ENTRIES_MAX: u32 = 1 << NAME_BITS;

/// A time that never comes.
pub const NEVER: u64 = u64::MAX >> NAME_BITS;

/// Times by index, the earliest on top. Of equal ones the first index is on top.
#[derive(Clone, Debug)]
pub struct Earliest {
    /// Each entry's time and name; what never comes is [`NEVER`].
    keys: Box<[u64; ENTRIES_MAX as usize]>,
    /// Those that come, in order, in a ring; the least of keys before them and the greatest behind them, so that nothing has to look
    /// where they begin and end.
    ring: Box<[u64; RING]>,
    head: usize,
    length: usize,
    /// The first of them, and its time.
    first: u64,
    time: u64,
}

/// Room for all entries, and for what lies before and behind them.
const RING: usize = 2 * ENTRIES_MAX as usize;

/// Where the ring begins to be filled, in the middle of what can be counted: it goes round in both directions.
const START: usize = 1 << 62;

const MASK: usize = ENTRIES_MAX as usize - 1;
const RING_MASK: usize = RING - 1;

const fn key(time: u64, index: usize) -> u64 {
    if time == NEVER { u64::MAX } else { time << NAME_BITS | index as u64 }
}

impl Earliest {
    /// So many entries, all [`NEVER`].
    pub fn new(entries: usize) -> Self {
        assert!(entries <= ENTRIES_MAX as usize, "{entries} entries");
        let mut ring = Box::new([u64::MAX; RING]);
        ring[0] = 0;
        let keys = Box::new([u64::MAX; ENTRIES_MAX as usize]);
        Self { keys, ring, head: START + 1, length: 0, first: u64::MAX, time: NEVER }
    }

    /// Sets an entry's time.
    #[inline]
    pub fn set(&mut self, index: usize, time: u64) {
        let new = key(time, index);
        let old = std::mem::replace(&mut self.keys[index & MASK], new);
        if old == new {
            return;
        }
        if old == self.first && old != u64::MAX {
            self.drop_first();
        } else if old != u64::MAX {
            self.remove(old);
        }
        if new < self.ring[(self.head + self.length / 2) & RING_MASK] {
            self.insert_from_front(new);
        } else {
            self.insert(new);
        }
        self.look();
    }

    /// Sets the time of an entry that would never have come, if `really`.
    // Whether it does can't be foreseen where this is called most: no branch depends on it.
    #[inline]
    pub fn begin(&mut self, index: usize, time: u64, really: bool) {
        let new = select_unpredictable(really, time << NAME_BITS | index as u64, u64::MAX);
        self.keys[index & MASK] = self.keys[index & MASK].min(new);
        self.insert(new);
        self.look();
    }

    /// Sets the time of the entry that is the earliest.
    // Nor here whether there is one.
    #[inline]
    pub fn pass(&mut self, time: u64) {
        let index = self.index();
        let new = select_unpredictable(time == NEVER, u64::MAX, time << NAME_BITS | index as u64);
        self.keys[index & MASK] = new;
        self.drop_first();
        self.insert(new);
        self.look();
    }

    /// Inserts a key, or nothing if it is the greatest.
    #[inline]
    fn insert(&mut self, key: u64) {
        let mut at = self.head + self.length;
        self.ring[(at + 1) & RING_MASK] = u64::MAX;
        while self.ring[(at - 1) & RING_MASK] > key {
            self.ring[at & RING_MASK] = self.ring[(at - 1) & RING_MASK];
            at -= 1;
        }
        self.ring[at & RING_MASK] = key;
        self.length += usize::from(key != u64::MAX);
    }

    /// Inserts a key that is among the first half.
    #[inline]
    fn insert_from_front(&mut self, key: u64) {
        let mut at = self.head;
        self.ring[(at - 2) & RING_MASK] = 0;
        while self.ring[at & RING_MASK] < key {
            self.ring[(at - 1) & RING_MASK] = self.ring[at & RING_MASK];
            at += 1;
        }
        self.ring[(at - 1) & RING_MASK] = key;
        self.head -= 1;
        self.length += 1;
    }

    #[inline]
    fn look(&mut self) {
        self.first = self.ring[self.head & RING_MASK];
        self.time = self.first >> NAME_BITS;
    }

    #[inline]
    fn drop_first(&mut self) {
        self.ring[self.head & RING_MASK] = 0;
        self.head += 1;
        self.length -= 1;
    }

    /// Takes one out that is not the first.
    fn remove(&mut self, key: u64) {
        let end = self.head + self.length;
        let mut at = self.head + 1;
        while self.ring[at & RING_MASK] != key {
            at += 1;
        }
        for at in at + 1..=end {
            self.ring[(at - 1) & RING_MASK] = self.ring[at & RING_MASK];
        }
        self.length -= 1;
    }

    /// The earliest time.
    #[inline]
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// Whose it is.
    #[inline]
    pub const fn index(&self) -> usize {
        self.first as usize & MASK
    }
}

#[cfg(test)]
mod tests {
    use base::random::Random;

    use super::*;

    #[test]
    fn the_earliest_is_what_a_search_finds() {
        for entries in [1, 2, 5, 32, 33] {
            let mut earliest = Earliest::new(entries);
            let mut model = vec![NEVER; entries];
            let mut random = Random::new(1);
            for _ in 0..2_000 {
                let index = random.below(entries as u64) as usize;
                model[index] = if random.one_in(4) { NEVER } else { random.below(50) };
                earliest.set(index, model[index]);
                let time = *model.iter().min().unwrap();
                assert_eq!(earliest.time(), time);
                if time != NEVER {
                    assert_eq!(earliest.index(), model.iter().position(|&t| t == time).unwrap());
                }
            }
        }
    }
}
