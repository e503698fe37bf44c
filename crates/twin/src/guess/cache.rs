//! The cache of the drive to try first: what the levels of a fill curve and the places between them say by plain arithmetic.

use lab::fitting::trials::{Measured, Shows};
use profile::name;
use ssd::Spec;
use ssd::spec::{Cache, WhenFull};

use super::{CACHED_READ_SHARE, IDLE_MS, OPEN_SUPERBLOCKS, value};

/// A second level of at least this share of the first, before a third of at most this share of the second, is a cache's second stage.
/// Flash that is written past a cache is slower than that, and folding slows it less.
const STAGE_SHARE: f64 = 0.5;
/// The spare flash that a drive is thought to have at most, as a share of its capacity.
const OVER_PROVISIONING_MAX: f64 = 0.5;
/// Rates that a program may have at most, as a multiple of the host's: folding as fast as that slows nothing.
const FOLDING_MAX: f64 = 50.0;

/// The levels of a fill, in bytes a second and bytes.
#[derive(Clone, Copy, Debug)]
struct Levels {
    /// Bytes and rate of the cache's first stage, if it has two.
    first: Option<(f64, f64)>,
    /// The rate of the cache, or of its second stage.
    fast: f64,
    /// What the whole cache holds.
    cache: f64,
    native: f64,
    /// Where the third level begins and how high it is, if there is one.
    shrunk: Option<(f64, f64)>,
}

/// Gives a drive the cache that its fill showed, if it showed one, and the rate past it.
pub(super) fn put_cache(spec: &mut Spec, measured: &Measured) {
    let Some(levels) = Levels::of(measured) else { return };
    let bits = fitting_bits(spec, levels.cache);
    spec.flash.pages_per_program = bits;
    let levels = levels.in_stages(bits, spec.physical_bytes() as f64);
    let row = f64::from(spec.flash.dies() * spec.flash.planes) * f64::from(spec.flash.page_bytes);
    let page_us = |bytes_per_s: f64| row / bytes_per_s * 1e6;
    spec.flash.program_us = page_us(levels.native) * f64::from(bits);
    let read_us = spec.flash.read_us * CACHED_READ_SHARE;
    let mut cache = Cache {
        static_bytes: 0,
        dynamic_bytes: levels.cache as u64,
        shrink_from: 1.0,
        shrink_to: 1.0,
        program_us: page_us(levels.fast),
        first_bytes: levels.first.map_or(0, |(bytes, _)| bytes as u64),
        first_program_us: levels.first.map(|(_, rate)| page_us(rate)),
        read_us,
        fold_us: None,
        when_full: WhenFull::Native,
        idle_ms: IDLE_MS,
        drain_mb_s: None,
    };
    let (bits, read_s) = (f64::from(bits), read_us * 1e-6 / row);
    let capacity = spec.capacity_bytes as f64;
    let folding = Folding { spec, levels, bits, row, read_s };
    match levels.shrunk {
        Some((from, rate)) => {
            let until = back(measured, from, f64::midpoint(rate, levels.native));
            folding.slows(&mut cache, from, rate, until.unwrap_or(capacity));
            let spare = (folding.flash_until(from) / capacity - 1.0).min(OVER_PROVISIONING_MAX);
            spec.mapping.over_provisioning = spec.mapping.over_provisioning.max(spare);
        }
        None if folding.flash_until(capacity) > spec.physical_bytes() as f64 => {
            // Free flash runs out, but the curve shows no third level: the drive folds from the cliff to the end.
            spec.flash.program_us = folding.goes_on(&mut cache) * row * bits * 1e6;
        }
        None => {}
    }
    spec.cache = Some(cache);
    while spec.check().is_err() && spec.mapping.over_provisioning < OVER_PROVISIONING_MAX {
        spec.mapping.over_provisioning += 0.01;
    }
}

/// Bits of a cell with which all flash could hold a cache of that size, as many as the drive is thought to have at most.
fn fitting_bits(spec: &Spec, cache: f64) -> u32 {
    let fits = |bits: &u32| f64::from(*bits) * cache <= spec.physical_bytes() as f64;
    (1..=spec.flash.pages_per_program).rev().find(fits).unwrap_or(1)
}

/// Where a rate comes back above this one, behind a place on the drive, by the parts of its curve.
fn back(measured: &Measured, behind: f64, above: f64) -> Option<f64> {
    let curve = measured.trials.iter().find_map(|trial| match &trial.shows {
        Shows::Curve { empty: true, ends } => Some(ends),
        _ => None,
    })?;
    let starts = std::iter::once(0).chain(curve.iter().map(|(_, end)| *end));
    let later = curve.iter().zip(starts).filter(|(_, start)| *start as f64 > behind);
    let back =
        later.skip_while(|((part, _), _)| value(measured, part).is_none_or(|rate| rate < above));
    back.map(|(_, start)| start as f64).next()
}

impl Levels {
    /// What was measured; None without a cliff.
    fn of(measured: &Measured) -> Option<Self> {
        let of = |name| value(measured, name);
        let cache = of(name::WRITE_CACHE)?;
        let native = of(name::WRITE_NATIVE).or_else(|| of(name::WRITE_OVERWRITE))?;
        let fast = of(name::WRITE_FAST).unwrap_or(native);
        let shrunk = of(name::WRITE_SHRINK)
            .map(|from| (from, of(name::WRITE_SHRUNK).unwrap_or(native * STAGE_SHARE)));
        Some(Self { first: None, fast, cache, native, shrunk })
    }

    /// The same if the second level is a cache's second stage, and the third that of the flash.
    fn in_stages(self, bits: u32, physical: f64) -> Self {
        let Some((whole, past)) = self.shrunk else { return self };
        let fits = f64::from(bits) * whole <= physical;
        let stages =
            fits && self.native >= STAGE_SHARE * self.fast && past <= STAGE_SHARE * self.native;
        if !stages {
            return self;
        }
        let first = Some((self.cache, self.fast));
        Self { first, fast: self.native, cache: whole, native: past, shrunk: None }
    }
}

/// What folding takes: each byte that leaves the cache frees `bits - 1` bytes of flash.
struct Folding<'a> {
    spec: &'a Spec,
    levels: Levels,
    bits: f64,
    /// Bytes that all dies program at once with one bit a cell.
    row: f64,
    /// Seconds that the dies together take to read a byte of the cache.
    read_s: f64,
}

impl Folding<'_> {
    /// Flash that is in use when so many bytes were written and nothing was folded, with what the drive keeps free.
    fn flash_until(&self, written: f64) -> f64 {
        let superblock = self.spec.flash.block_bytes() as f64 * f64::from(self.spec.flash.dies());
        let kept = f64::from(self.spec.mapping.reserve_superblocks) + OPEN_SUPERBLOCKS;
        written + (self.bits - 1.0) * self.levels.cache + kept * superblock
    }

    /// The cache shrinks between two places, and the host is left this rate meanwhile.
    fn slows(&self, cache: &mut Cache, from: f64, rate: f64, until: f64) {
        let capacity = self.spec.capacity_bytes as f64;
        let folded = self.levels.cache / (until - from).max(capacity / 1000.0);
        let left = (1.0 / rate - 1.0 / self.levels.native).max(0.0);
        let fold_s = (left / folded - self.read_s).max(1.0 / (FOLDING_MAX * self.levels.native));
        (cache.shrink_from, cache.shrink_to) =
            ((from / capacity).min(1.0), (until / capacity).min(1.0));
        cache.fold_us = Some(fold_s * self.row * self.bits * 1e6);
    }

    /// The cache shrinks from the cliff to the end of the drive; returns the seconds that flash takes for a byte, so that both
    /// together make the level past the cliff.
    fn goes_on(&self, cache: &mut Cache) -> f64 {
        let capacity = self.spec.capacity_bytes as f64;
        let folded = self.levels.cache / (capacity - self.levels.cache).max(capacity / 1000.0);
        cache.shrink_from = self.levels.cache / capacity;
        let all = 1.0 / self.levels.native;
        ((all - folded * self.read_s) / (1.0 + folded)).max(all / 10.0)
    }
}
