//! A set of sequence numbers as ranges: compact when they come nearly in order, right in any order.

use std::collections::BTreeMap;
use std::ops::Range;

/// Numbers seen, as disjoint ranges that don't touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// End by start.
    ranges: BTreeMap<u64, u64>,
    /// The range added to last, kept outside the tree because the next number mostly belongs there.
    current: Option<Range<u64>>,
}

impl Ranges {
    /// Adds a number. False if it was there. `u64::MAX` can't be held and counts as there.
    pub fn insert(&mut self, number: u64) -> bool {
        let Some(next) = number.checked_add(1) else { return false };
        if let Some(current) = &mut self.current {
            // Growing into what the tree holds is left to `settle`, so look there first.
            if number == current.end && !self.ranges.contains_key(&number) {
                current.end = next;
                return true;
            }
            if current.contains(&number) {
                return false;
            }
        }
        self.settle();
        let (before, after) = (self.ranges.range(..=number).next_back(), self.ranges.get(&next));
        let (start, left) = match before {
            Some((_, end)) if *end > number => return false,
            Some((start, end)) if *end == number => (*start, true),
            _ => (number, false),
        };
        let end = after.copied().unwrap_or(next);
        if left {
            self.ranges.remove(&start);
        }
        self.ranges.remove(&next);
        self.current = Some(start..end);
        true
    }

    /// The ranges in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        let mut settled = self.clone();
        settled.settle();
        settled.ranges.into_iter().map(|(start, end)| start..end)
    }

    /// How many numbers.
    pub fn count(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    /// One past the greatest number; 0 if there is none.
    pub fn end(&self) -> u64 {
        self.iter().last().map_or(0, |range| range.end)
    }

    /// The numbers below `limit` that are not in it, as ranges in order.
    pub fn missing_below(&self, limit: u64) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut next = 0;
        for range in self.iter() {
            if range.start.min(limit) > next {
                missing.push(next..range.start.min(limit));
            }
            next = range.end;
        }
        if next < limit {
            missing.push(next..limit);
        }
        missing
    }

    /// Puts the current range back into the tree.
    fn settle(&mut self) {
        if let Some(Range { start, end }) = self.current.take() {
            // It may have grown up to the next one.
            let end = self.ranges.remove(&end).unwrap_or(end);
            self.ranges.insert(start, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_hold_what_a_plain_set_holds(numbers in prop::collection::vec(0u64..60, 0..200)) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for number in numbers {
                prop_assert_eq!(ranges.insert(number), set.insert(number));
                let held: Vec<_> = ranges.iter().collect();
                prop_assert!(held.windows(2).all(|two| two[0].end < two[1].start), "{:?}", held);
                prop_assert!(held.into_iter().flatten().eq(set.iter().copied()));
            }
            prop_assert_eq!(ranges.count(), set.len() as u64);
            let missing: Vec<_> = ranges.missing_below(50).into_iter().flatten().collect();
            prop_assert!(missing.into_iter().eq((0..50).filter(|n| !set.contains(n))));
        }
    }

    #[test]
    fn numbers_in_order_make_one_range() {
        let mut ranges = Ranges::default();
        for number in 0..100_000 {
            assert!(ranges.insert(number));
        }
        assert!(ranges.iter().eq(std::iter::once(0..100_000)));
        assert!(!ranges.insert(u64::MAX));
    }
}
