//! The superblocks that are free, in the order in which they are opened.

use std::collections::BTreeSet;

/// Free superblocks. Those that are erased already come first, or the time it took was wasted; then those that were erased the fewest
/// times; then those that have been free the longest.
#[derive(Debug, Default)]
pub(super) struct Free {
    entries: BTreeSet<Entry>,
    /// Numbers them as they come.
    came: u64,
}

/// A free superblock; compared by its fields in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    dirty: bool,
    erases: u32,
    came: u64,
    superblock: u32,
}

impl Free {
    /// A superblock becomes free.
    pub(super) fn add(&mut self, superblock: u32, dirty: bool, erases: u32) {
        self.entries.insert(Entry { dirty, erases, came: self.came, superblock });
        self.came += 1;
    }

    /// Takes the one that is to be opened next.
    pub(super) fn take(&mut self) -> Option<u32> {
        self.entries.pop_first().map(|entry| entry.superblock)
    }

    /// The next one that is to be erased ahead, which counts as erased from now on.
    pub(super) fn erase(&mut self) -> Option<u32> {
        let dirty = Entry { dirty: true, erases: 0, came: 0, superblock: 0 };
        let entry = *self.entries.range(dirty..).next()?;
        self.entries.remove(&entry);
        self.entries.insert(Entry { dirty: false, erases: entry.erases + 1, ..entry });
        Some(entry.superblock)
    }

    /// Number of free superblocks.
    pub(super) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// All, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.entries.iter().map(|entry| entry.superblock)
    }

    /// Keeps those that are meant to stay.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(u32) -> bool) {
        self.entries.retain(|entry| stays(entry.superblock));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_erased_come_first_and_then_the_least_worn_and_then_the_longest_free() {
        let mut free = Free::default();
        for (superblock, dirty, erases) in [(1, true, 5), (2, true, 3), (3, true, 3), (4, false, 9)]
        {
            free.add(superblock, dirty, erases);
        }
        assert_eq!(free.erase(), Some(2), "of those that would be opened first");
        let order: Vec<u32> = std::iter::from_fn(|| free.take()).collect();
        assert_eq!(order, [2, 4, 3, 1]);
        assert_eq!(free.erase(), None);
    }
}
