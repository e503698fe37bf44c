//! The part of the flash that is used with one bit a cell: when the host writes into it, when it is folded into the rest.

use crate::ftl::{Flash, Ftl, Pace, State as Use, Stream};
use crate::spec::WhenFull;

/// What the cache remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// Superblocks in use with one bit a cell.
    pub(super) superblocks: u32,
    /// It was full, and writes go past it until idle time has made room in it.
    bypassed: bool,
    /// The stage that its open superblock belongs to.
    pub(super) pace: Pace,
}

impl Ftl {
    /// Where the host's next unit goes.
    #[inline]
    pub(super) fn host_stream(&mut self, flash: &mut impl Flash) -> Stream {
        if self.setup.cache.is_none() {
            return Stream::Host;
        }
        if self.open[Stream::Cached.of(0)].is_some() {
            return Stream::Cached;
        }
        self.cache_or_past(flash)
    }

    /// Chooses when no superblock of the cache is open.
    #[cold]
    fn cache_or_past(&mut self, flash: &mut impl Flash) -> Stream {
        let Some(cache) = self.setup.cache else { return Stream::Host };
        if self.cache.bypassed {
            return Stream::Host;
        }
        if self.cache_has_room() {
            return Stream::Cached;
        }
        if cache.when_full == WhenFull::Fold && self.cache.superblocks > 0 && self.cache_limit() > 0
        {
            self.still = false;
            if self.fold_one(flash) {
                return Stream::Cached;
            }
        }
        self.cache.bypassed = true;
        Stream::Host
    }

    /// Whether the cache may have a superblock more, which must leave the collector what it needs.
    fn cache_has_room(&self) -> bool {
        self.free.len() > self.setup.reserve && self.cache.superblocks < self.cache_limit()
    }

    /// The stage that the next superblock of the cache belongs to.
    pub(super) fn cache_stage(&self) -> Pace {
        let first_bytes = self.setup.cache.map_or(0, |cache| cache.first_bytes);
        let held = (f64::from(self.cache.superblocks) + 0.5) * self.cached_superblock_bytes();
        if held < first_bytes as f64 { Pace::First } else { Pace::Usual }
    }

    /// Bytes of data that a superblock holds with one bit a cell.
    fn cached_superblock_bytes(&self) -> f64 {
        f64::from(self.setup.stripe.units(true)) * f64::from(self.setup.unit_bytes)
    }

    /// Superblocks that the cache may have at this fill.
    fn cache_limit(&self) -> u32 {
        let Some(cache) = self.setup.cache else { return 0 };
        let shrunk =
            (self.fill() - cache.shrink_from) / (cache.shrink_to - cache.shrink_from).max(1e-9);
        let dynamic = cache.dynamic_bytes as f64 * (1.0 - shrunk.clamp(0.0, 1.0));
        let bytes = cache.static_bytes as f64 + dynamic;
        (bytes / self.cached_superblock_bytes()).round() as u32
    }

    /// Whether the cache has more than it may, and a superblock that can be folded.
    #[inline]
    pub(super) fn must_shrink(&self) -> bool {
        self.cache.superblocks > 0
            && self.cache.superblocks > self.cache_limit()
            && self.oldest_cached().is_some()
    }

    /// Units to fold for units of the host, so that the cache shrinks a quarter faster than its limit.
    pub(super) fn shrinking_pace(&self) -> (u64, u64) {
        let Some(cache) = self.setup.cache else { return (1, 1) };
        let bytes = f64::from(self.setup.units) * f64::from(self.setup.unit_bytes);
        let slope =
            cache.dynamic_bytes as f64 / ((cache.shrink_to - cache.shrink_from).max(1e-3) * bytes);
        (((slope * 1.25).clamp(0.01, 8.0) * 1024.0) as u64, 1024)
    }

    /// The superblock of the cache that was closed first.
    pub(super) fn oldest_cached(&self) -> Option<u32> {
        let all = self.superblocks.iter().enumerate();
        let cached = all.filter(|(_, one)| one.slc && one.state == Use::Closed);
        cached.min_by_key(|(_, one)| one.closed).map(|(index, _)| index as u32)
    }

    /// Folds the oldest superblock of the cache to its end; false if there is none.
    fn fold_one(&mut self, flash: &mut impl Flash) -> bool {
        while self.victim.is_some() {
            self.copy_batch(flash);
        }
        let Some(oldest) = self.oldest_cached() else { return false };
        self.begin(oldest);
        while self.victim.is_some() {
            self.copy_batch(flash);
        }
        self.free.len() > self.setup.reserve
    }

    /// A little of what is better done while the host rests: finishing a victim, folding the cache. Returns whether there was anything
    /// to do.
    pub fn rest(&mut self, flash: &mut impl Flash) -> bool {
        let drains = self.setup.cache.is_some_and(|cache| cache.drain_mb_s != Some(0.0));
        // Not the open one: closed after every few writes, superblocks would wear out half empty.
        if self.victim.is_none()
            && drains
            && let Some(oldest) = self.oldest_cached()
        {
            self.begin(oldest);
        }
        let worked = self.victim.is_some();
        // About a wordline on every die.
        let target = self.done.copied + u64::from(self.setup.stripe.wordline_units(false));
        while self.victim.is_some() && self.done.copied < target {
            self.copy_batch(flash);
        }
        // What was folded takes writes again.
        if self.cache_has_room() {
            self.cache.bypassed = false;
        }
        worked
    }
}
