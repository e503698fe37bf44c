//! What one memory drive keeps: sparse pages, and for each page what it was before, as long as a
//! volatile cache could still lose what came after.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::random::Random;

/// Bytes that a drive keeps or loses together.
pub(super) const PAGE_BYTES: usize = 4096;

/// What a trimmed range reads as, on a drive that doesn't promise zeros.
const GARBAGE: u8 = 0xd5;

/// A page; None reads as zeros.
type Page = Option<Arc<[u8; PAGE_BYTES]>>;

#[derive(Debug, Default)]
pub(super) struct Media {
    /// What reads see.
    pages: BTreeMap<u64, Arc<[u8; PAGE_BYTES]>>,
    /// What a power cut may bring back.
    unflushed: BTreeMap<u64, Unflushed>,
    /// Changes so far; names them in `Unflushed`.
    changes: u64,
    /// Whether anything is kept in `unflushed`.
    volatile: bool,
}

/// The states of a page since the last flush.
#[derive(Debug)]
struct Unflushed {
    durable: Page,
    /// With the number of the change that made it, in order.
    since: Vec<(u64, Page)>,
}

impl Media {
    pub(super) fn new(volatile: bool) -> Self {
        Self { volatile, ..Self::default() }
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) {
        for (page, within, part) in pieces(offset, bytes.len()) {
            match self.pages.get(&page) {
                Some(kept) => bytes[part].copy_from_slice(&kept[within]),
                None => bytes[part].fill(0),
            }
        }
    }

    /// Writes those pages of the range that `keep` says.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8], mut keep: impl FnMut(u64) -> bool) {
        self.changes += 1;
        for (page, within, part) in pieces(offset, bytes.len()) {
            if !keep(page) {
                continue;
            }
            let mut changed = self.pages.get(&page).cloned().unwrap_or_else(zeros);
            Arc::make_mut(&mut changed)[within].copy_from_slice(&bytes[part]);
            self.set(page, Some(changed));
        }
    }

    /// Trims those pages of the range that `keep` says.
    pub(super) fn trim(
        &mut self,
        offset: u64,
        length: u64,
        to_zeros: bool,
        mut keep: impl FnMut(u64) -> bool,
    ) {
        self.changes += 1;
        let end = offset + length;
        let first = offset / PAGE_BYTES as u64;
        let past = end.div_ceil(PAGE_BYTES as u64);
        // What was never written stays zeros: there is nothing to give up.
        let written: Vec<u64> = self.pages.range(first..past).map(|(&page, _)| page).collect();
        for page in written {
            if !keep(page) {
                continue;
            }
            let start = page * PAGE_BYTES as u64;
            let from = offset.saturating_sub(start) as usize;
            let to = (end - start).min(PAGE_BYTES as u64) as usize;
            if to_zeros && to - from == PAGE_BYTES {
                self.set(page, None);
            } else {
                let mut changed = Arc::clone(&self.pages[&page]);
                Arc::make_mut(&mut changed)[from..to].fill(if to_zeros { 0 } else { GARBAGE });
                self.set(page, Some(changed));
            }
        }
    }

    /// The number of the last change, for [`Media::flush`].
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Makes the changes up to this one durable.
    pub(super) fn flush(&mut self, up_to: u64) {
        self.unflushed.retain(|_, page| {
            let flushed = page.since.partition_point(|(change, _)| *change <= up_to);
            if let Some((_, state)) = page.since.drain(..flushed).next_back() {
                page.durable = state;
            }
            !page.since.is_empty()
        });
    }

    /// Makes a range durable as it is now: whatever state a page may go back to, it has these bytes.
    pub(super) fn force(&mut self, offset: u64, length: u64) {
        for (page, within, _) in pieces(offset, length as usize) {
            let Some(states) = self.unflushed.get_mut(&page) else { continue };
            let now = self.pages.get(&page).cloned().unwrap_or_else(zeros);
            let earlier = states.since.iter_mut().map(|(_, state)| state);
            for state in earlier.chain([&mut states.durable]) {
                let state = state.get_or_insert_with(zeros);
                Arc::make_mut(state)[within.clone()].copy_from_slice(&now[within.clone()]);
            }
        }
    }

    /// Each page that changed since it was flushed keeps any of its states since then.
    pub(super) fn lose_cache(&mut self, random: &mut Random) {
        for (page, states) in std::mem::take(&mut self.unflushed) {
            let kept = random.below(states.since.len() as u64 + 1) as usize;
            let state = match kept.checked_sub(1) {
                None => states.durable,
                Some(index) => states.since[index].1.clone(),
            };
            self.show(page, state);
        }
    }

    fn set(&mut self, page: u64, state: Page) {
        if self.volatile {
            let before = self.pages.get(&page).cloned();
            let unflushed = self
                .unflushed
                .entry(page)
                .or_insert_with(|| Unflushed { durable: before, since: Vec::new() });
            unflushed.since.push((self.changes, state.clone()));
        }
        self.show(page, state);
    }

    fn show(&mut self, page: u64, state: Page) {
        match state {
            Some(bytes) => drop(self.pages.insert(page, bytes)),
            None => drop(self.pages.remove(&page)),
        }
    }
}

fn zeros() -> Arc<[u8; PAGE_BYTES]> {
    Arc::new([0; PAGE_BYTES])
}

/// Cuts a range at page boundaries: page, range within the page, range within the whole.
fn pieces(
    offset: u64,
    length: usize,
) -> impl Iterator<Item = (u64, std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == length {
            return None;
        }
        let here = offset + at as u64;
        let within = (here % PAGE_BYTES as u64) as usize;
        let count = (PAGE_BYTES - within).min(length - at);
        let part = at..at + count;
        at += count;
        Some((here / PAGE_BYTES as u64, within..within + count, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(media: &Media, page: u64) -> u8 {
        let mut bytes = [0xff; PAGE_BYTES];
        media.read(page * PAGE_BYTES as u64, &mut bytes);
        assert!(bytes.iter().all(|&byte| byte == bytes[0]), "a page is kept or lost whole");
        bytes[0]
    }

    #[test]
    fn a_cache_may_lose_what_came_after_the_flush_and_nothing_before() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..100 {
            let mut media = Media::new(true);
            media.write(0, &[1; 2 * PAGE_BYTES], |_| true);
            let flushed = media.changes();
            media.write(0, &[2; 2 * PAGE_BYTES], |_| true);
            media.flush(flushed);
            media.write(0, &[3; PAGE_BYTES], |_| true);
            media.lose_cache(&mut Random::new(seed));
            seen.insert((page(&media, 0), page(&media, 1)));
        }
        let possible = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)];
        assert_eq!(seen, possible.into_iter().collect(), "each of these, and nothing else");
    }

    #[test]
    fn a_range_that_starts_and_ends_inside_pages_leaves_the_rest_of_them() {
        let mut media = Media::new(false);
        media.write(0, &[1; 3 * PAGE_BYTES], |_| true);
        media.write(1024, &[2; 2 * PAGE_BYTES], |_| true);
        media.trim(512, 2 * PAGE_BYTES as u64, true, |_| true);
        let mut bytes = [0; 3 * PAGE_BYTES];
        media.read(0, &mut bytes);
        let trimmed = 512 + 2 * PAGE_BYTES;
        let written = 1024 + 2 * PAGE_BYTES;
        assert!(bytes[..512].iter().all(|&byte| byte == 1));
        assert!(bytes[512..trimmed].iter().all(|&byte| byte == 0));
        assert!(bytes[trimmed..written].iter().all(|&byte| byte == 2));
        assert!(bytes[written..].iter().all(|&byte| byte == 1));
    }
}
