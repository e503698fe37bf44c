//! The earliest of a fixed number of times, each of which changes often: kept in order, as a new time is nearly always among the
//! latest, and the one that changes nearly always the earliest.

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
    /// Those that come, in order, in a ring.
    ring: Box<[u64; ENTRIES_MAX as usize]>,
    head: usize,
    length: usize,
    /// The first of them.
    first: u64,
}

const MASK: usize = ENTRIES_MAX as usize - 1;

impl Earliest {
    /// So many entries, all [`NEVER`].
    pub fn new(entries: usize) -> Self {
        assert!(entries <= ENTRIES_MAX as usize, "{entries} entries");
        let never = || Box::new([u64::MAX; ENTRIES_MAX as usize]);
        Self { keys: never(), ring: never(), head: 0, length: 0, first: u64::MAX }
    }

    /// Sets an entry's time.
    #[inline]
    pub fn set(&mut self, index: usize, time: u64) {
        let key = if time == NEVER { u64::MAX } else { time << NAME_BITS | index as u64 };
        let old = std::mem::replace(&mut self.keys[index & MASK], key);
        if old == key {
            return;
        }
        if old != u64::MAX {
            if old == self.first {
                self.head += 1;
            } else {
                self.remove(old);
            }
            self.length -= 1;
        }
        if key != u64::MAX {
            let mut at = self.head + self.length;
            self.length += 1;
            while at > self.head && self.ring[(at - 1) & MASK] > key {
                self.ring[at & MASK] = self.ring[(at - 1) & MASK];
                at -= 1;
            }
            self.ring[at & MASK] = key;
        }
        self.first = if self.length == 0 { u64::MAX } else { self.ring[self.head & MASK] };
    }

    /// Takes one out that is not the first.
    fn remove(&mut self, key: u64) {
        let end = self.head + self.length;
        let mut at = self.head + 1;
        while self.ring[at & MASK] != key {
            at += 1;
        }
        for at in at + 1..end {
            self.ring[(at - 1) & MASK] = self.ring[at & MASK];
        }
    }

    /// The earliest time.
    #[inline]
    pub fn time(&self) -> u64 {
        self.first >> NAME_BITS
    }

    /// Whose it is.
    #[inline]
    pub fn index(&self) -> usize {
        (self.first & u64::from(ENTRIES_MAX - 1)) as usize
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
