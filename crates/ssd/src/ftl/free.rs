//! The superblocks that are free, in the order in which they are opened, and which of them each die has erased ahead.

use std::collections::{BTreeSet, VecDeque};

/// Free superblocks. Those that are erased already come first, or the time it took was wasted; then those that some dies have
/// erased; then the others. Among equals those that were erased the fewest times come first, then those that have been free the
/// longest.
///
/// A die erases ahead alone, whenever it has nothing else to do, so dies are not equally far. All go through the same list.
#[derive(Clone, Debug)]
pub(super) struct Free {
    entries: BTreeSet<Entry>,
    /// Numbers them as they come.
    came: u64,
    /// Superblocks that some dies have erased ahead and others have not, in the order in which dies do it.
    ahead: VecDeque<Ahead>,
    /// Number of the first of `ahead`, counted from the beginning.
    first_ahead: u64,
    /// The number that each die is to erase next.
    next: Vec<u64>,
    /// Superblocks on which no die has begun.
    stale: u32,
}

/// How far a free superblock is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Erased {
    Fully,
    Partly,
    Nowhere,
}

/// A free superblock; compared by its fields in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    erased: Erased,
    erases: u32,
    came: u64,
    superblock: u32,
}

/// A superblock that is erased ahead.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    /// None if it was opened before all dies had erased it.
    entry: Option<Entry>,
    /// Dies that have not come to it.
    left: u32,
}

/// A superblock that is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) superblock: u32,
    /// Its number among those that are erased ahead if only some dies have erased it.
    number: Option<u64>,
    erased: Erased,
}

/// What a die erases ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EraseAhead {
    pub(super) superblock: u32,
    /// Whether no other die has begun on it.
    pub(super) first: bool,
}

impl Free {
    /// None, on so many dies.
    pub(super) fn new(dies: u32) -> Self {
        Self {
            entries: BTreeSet::new(),
            came: 0,
            ahead: VecDeque::new(),
            first_ahead: 0,
            next: vec![0; dies as usize],
            stale: 0,
        }
    }

    /// A superblock becomes free: erased, or with stale data in it.
    pub(super) fn add(&mut self, superblock: u32, stale: bool, erases: u32) {
        let erased = if stale { Erased::Nowhere } else { Erased::Fully };
        self.entries.insert(Entry { erased, erases, came: self.came, superblock });
        self.came += 1;
        self.stale += u32::from(stale);
    }

    /// Takes the one that is to be opened next.
    pub(super) fn take(&mut self) -> Option<Taken> {
        let Entry { superblock, erased, .. } = self.entries.pop_first()?;
        let mut number = None;
        match erased {
            Erased::Fully => {}
            Erased::Nowhere => self.stale -= 1,
            Erased::Partly => {
                let is = |ahead: &Ahead| ahead.entry.is_some_and(|e| e.superblock == superblock);
                let at = self.ahead.iter().position(is).expect("it is erased by some dies");
                self.ahead[at].entry = None;
                number = Some(self.first_ahead + at as u64);
            }
        }
        Some(Taken { superblock, number, erased })
    }

    /// The dies that have yet to erase a superblock that was just taken.
    pub(super) fn unerased(&self, taken: Taken) -> impl Iterator<Item = u32> {
        let dies = (0..).zip(&self.next);
        dies.filter(move |&(_, &next)| match taken.erased {
            Erased::Fully => false,
            Erased::Nowhere => true,
            Erased::Partly => taken.number.is_some_and(|number| next <= number),
        })
        .map(|(die, _)| die)
    }

    /// What a die that has nothing else to do erases ahead. It counts as erased on this die from now on.
    pub(super) fn erase_ahead(&mut self, die: u32) -> Option<EraseAhead> {
        loop {
            let at = (self.next[die as usize] - self.first_ahead) as usize;
            let first = at == self.ahead.len();
            if first {
                let entry = self.change(self.first_stale()?, Erased::Partly);
                let entry = Entry { erases: entry.erases + 1, ..entry };
                self.entries.insert(entry);
                self.stale -= 1;
                self.ahead.push_back(Ahead { entry: Some(entry), left: self.next.len() as u32 });
            }
            self.next[die as usize] += 1;
            let ahead = &mut self.ahead[at];
            ahead.left -= 1;
            let Ahead { entry, left } = *ahead;
            if left == 0 {
                // A die comes to the first before it comes to the others, so the first is the first to be complete.
                self.ahead.pop_front();
                self.first_ahead += 1;
            }
            if let Some(entry) = entry {
                if left == 0 {
                    let erased = self.change(entry, Erased::Fully);
                    self.entries.insert(erased);
                }
                return Some(EraseAhead { superblock: entry.superblock, first });
            }
        }
    }

    /// Takes an entry out; returns what it is to be instead.
    fn change(&mut self, entry: Entry, erased: Erased) -> Entry {
        self.entries.remove(&entry);
        Entry { erased, ..entry }
    }

    fn first_stale(&self) -> Option<Entry> {
        let stale = Entry { erased: Erased::Nowhere, erases: 0, came: 0, superblock: 0 };
        self.entries.range(stale..).next().copied()
    }

    /// Whether there may be something to erase ahead.
    #[inline]
    pub(super) fn is_stale(&self) -> bool {
        self.stale > 0 || !self.ahead.is_empty()
    }

    /// Number of free superblocks.
    pub(super) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// All, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.entries.iter().map(|entry| entry.superblock)
    }

    /// Keeps those that are meant to stay, of which none has stale data.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(u32) -> bool) {
        self.entries.retain(|entry| stays(entry.superblock));
        debug_assert!(self.first_stale().is_none() && self.ahead.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIES: u32 = 3;

    fn free() -> Free {
        let mut free = Free::new(DIES);
        for (superblock, stale, erases) in [(1, true, 5), (2, true, 3), (3, true, 3), (4, false, 9)]
        {
            free.add(superblock, stale, erases);
        }
        free
    }

    fn erase(free: &mut Free, die: u32) -> Option<u32> {
        free.erase_ahead(die).map(|erase| erase.superblock)
    }

    #[test]
    fn the_erased_come_first_and_then_the_least_worn_and_then_the_longest_free() {
        let mut free = free();
        for die in 0..DIES {
            assert_eq!(erase(&mut free, die), Some(2), "of those that would be opened first");
        }
        assert_eq!(erase(&mut free, 1), Some(3));
        let order: Vec<(u32, Vec<u32>)> = std::iter::from_fn(|| {
            let taken = free.take()?;
            Some((taken.superblock, free.unerased(taken).collect()))
        })
        .collect();
        let all = vec![0, 1, 2];
        assert_eq!(order, [(2, vec![]), (4, vec![]), (3, vec![0, 2]), (1, all)]);
        assert_eq!(erase(&mut free, 0), None);
    }

    #[test]
    fn each_die_erases_each_superblock_once_and_passes_over_what_was_opened_meanwhile() {
        let mut free = free();
        let firsts: Vec<bool> =
            [0, 0, 1].map(|die| free.erase_ahead(die).is_some_and(|erase| erase.first)).into();
        assert_eq!(firsts, [true, true, false], "die 0 began on two, die 1 on none");
        assert_eq!(free.take().map(|taken| taken.superblock), Some(4));
        let second = free.take().unwrap();
        assert_eq!((second.superblock, free.unerased(second).collect()), (2, vec![2]));
        let left: Vec<Option<u32>> = [0, 1, 1, 2, 2, 2].map(|die| erase(&mut free, die)).into();
        assert_eq!(left, [Some(1), Some(3), Some(1), Some(3), Some(1), None]);
        assert!(!free.is_stale());
        for superblock in [3, 1] {
            let taken = free.take().unwrap();
            assert_eq!((taken.superblock, free.unerased(taken).count()), (superblock, 0));
        }
    }
}
