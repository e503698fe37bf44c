//! What a drive's parameters come to by plain arithmetic: ceilings, which a simulation may come near and not pass.

use super::{Flash, Spec};

/// Bytes that are folded for each byte of the host's at most, as the translation layer does it.
const FOLDED_MAX: f64 = 8.0;

/// The part of a fill in which a drive empties its cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Folding {
    /// Bytes written when it begins.
    pub from_bytes: u64,
    /// Bytes a second that the host writes meanwhile.
    pub bytes_per_s: f64,
}

impl Flash {
    /// Bytes a second that the dies can read together, before channels and link.
    pub fn read_bytes_per_s(&self) -> f64 {
        let at_once = f64::from(self.dies()) * f64::from(self.planes) * f64::from(self.page_bytes);
        at_once / (self.read_us / 1e6)
    }

    /// Bytes a second that the channels can move together.
    pub fn channels_bytes_per_s(&self) -> f64 {
        f64::from(self.channels) * self.channel_mb_s * 1e6
    }
}

impl Spec {
    /// Bytes a second of reads one behind the other: the least of link, channels and dies.
    pub fn sequential_read_bytes_per_s(&self) -> f64 {
        self.through_the_link(self.flash.read_bytes_per_s())
    }

    /// Bytes a second of writes one behind the other past a cache, upkeep taken off.
    pub fn native_write_bytes_per_s(&self) -> f64 {
        let own = |upkeep: super::Upkeep| upkeep.bytes as f64 / upkeep.every_bytes as f64;
        let share = 1.0 + self.upkeep.map_or(0.0, own);
        self.through_the_link(self.flash.program_bytes_per_s() / share)
    }

    /// Bytes a second of writes one behind the other into the cache, its first stage if it has two; None without one.
    pub fn cached_write_bytes_per_s(&self) -> Option<f64> {
        let (flash, cache) = (&self.flash, self.cache?);
        let page = f64::from(flash.planes) * f64::from(flash.page_bytes);
        let dies = f64::from(flash.dies()) * page
            / (cache.first_program_us.unwrap_or(cache.program_us) / 1e6);
        Some(self.through_the_link(dies))
    }

    /// Where an empty drive that is written from its beginning to its end begins to empty its cache, and what the host is left
    /// meanwhile: from a fill level on, or when no free flash is left. None if it need not before it is full.
    ///
    /// A byte that leaves the cache costs a read and a program, and frees `pages_per_program` - 1 bytes of flash.
    pub fn folding(&self) -> Option<Folding> {
        let cache = self.cache?;
        let (capacity, bits) =
            (self.capacity_bytes as f64, f64::from(self.flash.pages_per_program));
        let cached = (cache.static_bytes + cache.dynamic_bytes) as f64;
        let superblock = (self.flash.block_bytes() * u64::from(self.flash.dies())) as f64;
        let kept = f64::from(self.mapping.reserve_superblocks) * superblock;
        let out = self.physical_bytes() as f64 - kept - (bits - 1.0) * cached;
        let shrinks = cache.shrink_from * capacity;
        let width = (cache.shrink_to - cache.shrink_from) * capacity;
        let (from_bytes, folded) = if shrinks < out.min(capacity) && cache.dynamic_bytes > 0 {
            (shrinks, (cache.dynamic_bytes as f64 / width.max(1e-3 * capacity)).min(FOLDED_MAX))
        } else if out < capacity {
            (out.max(cached), 1.0 / (bits - 1.0).max(1e-3))
        } else {
            return None;
        };
        let row =
            f64::from(self.flash.dies() * self.flash.planes) * f64::from(self.flash.page_bytes);
        let fold_us = cache.fold_us.unwrap_or(self.flash.program_us) / bits;
        let per_byte = (cache.read_us + fold_us) / 1e6 / row;
        let bytes_per_s = 1.0 / (1.0 / self.native_write_bytes_per_s() + folded * per_byte);
        Some(Folding { from_bytes: from_bytes as u64, bytes_per_s })
    }

    /// Microseconds of a read of so many bytes, of one unit at most, while nothing else is under way.
    pub fn lone_read_us(&self, bytes: u32) -> f64 {
        let bytes = f64::from(bytes);
        let transfers = bytes / self.flash.channel_mb_s + bytes / (self.link.bytes_per_s() / 1e6);
        self.controller.read_us + self.flash.read_us + transfers
    }

    fn through_the_link(&self, dies_bytes_per_s: f64) -> f64 {
        self.link.bytes_per_s().min(self.flash.channels_bytes_per_s()).min(dies_bytes_per_s)
    }
}

#[cfg(test)]
mod tests {
    use profile::library;

    use super::*;

    #[test]
    fn the_narrowest_place_is_the_ceiling() {
        let mut spec = Spec::from_profile(&library::get("ideal").unwrap()).unwrap();
        // 32 dies x 32 KiB in 500 us; 8 channels of 1 GB/s would do, and so would four lanes of PCIe 4.
        assert!((spec.native_write_bytes_per_s() - 2.097_152e9).abs() < 1.0);
        assert!((spec.sequential_read_bytes_per_s() - spec.link.bytes_per_s()).abs() < 1.0);
        spec.flash.channel_mb_s = 100.0;
        assert!((spec.sequential_read_bytes_per_s() - 0.8e9).abs() < 1.0);
        assert!((spec.native_write_bytes_per_s() - 0.8e9).abs() < 1.0);
        assert_eq!(spec.cached_write_bytes_per_s(), None);
    }

    #[test]
    fn a_lone_read_is_controller_medium_and_transfers() {
        let spec = Spec::from_profile(&library::get("ideal").unwrap()).unwrap();
        let link = 4096.0 / spec.link.bytes_per_s() * 1e6;
        assert!((spec.lone_read_us(4096) - (1.0 + 50.0 + 4.096 + link)).abs() < 1e-9);
    }
}
