//! The earliest of a fixed number of times, each of which changes often: a tournament kept in one array.

/// Bits of a key that name who it belongs to; the others are the time in nanoseconds, enough for 208 days.
const NAME_BITS: u32 = 10;

/// Entries at most.
pub const ENTRIES_MAX: u32 = 1 << NAME_BITS;

/// A time that never comes.
pub const NEVER: u64 = u64::MAX >> NAME_BITS;

/// Times by index, the earliest on top. Of equal ones the first index is on top.
#[derive(Clone, Debug)]
pub struct Earliest {
    /// A binary tree: the root at 1, leaves from `leaves` on. All of it is there, so that no place needs to be checked.
    keys: Box<[u64; KEYS]>,
    leaves: usize,
}

const KEYS: usize = 2 * ENTRIES_MAX as usize;

impl Earliest {
    /// So many entries, all [`NEVER`].
    pub fn new(entries: usize) -> Self {
        assert!(entries <= ENTRIES_MAX as usize, "{entries} entries");
        let leaves = entries.next_power_of_two();
        Self { keys: Box::new([u64::MAX; KEYS]), leaves }
    }

    /// Sets an entry's time.
    #[inline]
    pub fn set(&mut self, index: usize, time: u64) {
        let mut at = (self.leaves + index) % KEYS;
        let mut least = time << NAME_BITS | index as u64;
        self.keys[at] = least;
        while at > 1 {
            least = least.min(self.keys[at ^ 1]);
            at /= 2;
            if self.keys[at] == least {
                return;
            }
            self.keys[at] = least;
        }
    }

    /// The earliest time.
    #[inline]
    pub fn time(&self) -> u64 {
        self.keys[1] >> NAME_BITS
    }

    /// Whose it is.
    #[inline]
    pub fn index(&self) -> usize {
        (self.keys[1] & u64::from(ENTRIES_MAX - 1)) as usize
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
