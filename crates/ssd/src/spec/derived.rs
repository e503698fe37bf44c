//! What a drive's parameters come to, each by its name: sizes, counts and ceilings by plain arithmetic.

use std::fmt;

use base::units::grouped;
use base::{ByteSize, Rate};

use super::{Media, Spec};

/// Something that parameters come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Derived {
    /// Its name in JSON, with its unit.
    pub key: &'static str,
    /// Its name for people.
    pub words: &'static str,
    /// How much it is.
    pub quantity: Quantity,
}

/// A quantity with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// Bytes.
    Bytes(u64),
    /// A number of things.
    Count(u64),
    /// Bytes a second.
    BytesPerSecond(f64),
    /// Microseconds.
    Microseconds(f64),
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Bytes(bytes) => ByteSize(bytes).fmt(f),
            Self::Count(count) => f.write_str(&grouped(count)),
            Self::BytesPerSecond(rate) => Rate(rate).fmt(f),
            Self::Microseconds(us) => write!(f, "{us:.1} us"),
        }
    }
}

impl Spec {
    /// Everything that the parameters come to, in the order in which people read it.
    pub fn derived(&self) -> Vec<Derived> {
        use Quantity::{Bytes, BytesPerSecond, Count, Microseconds};
        let (flash, is_nand) = (&self.flash, self.flash.media == Media::Nand);
        let mut all = Vec::new();
        let mut add = |key, words, quantity| all.push(Derived { key, words, quantity });
        if is_nand {
            let superblock = flash.block_bytes() * u64::from(flash.dies() / self.sets.count);
            add("physical_bytes", "flash", Bytes(self.physical_bytes()));
            add("superblock_bytes", "superblock", Bytes(superblock));
        }
        add("program_bytes", "one program of a die", Bytes(flash.program_bytes()));
        if is_nand {
            let count = self.superblocks_of_set().into();
            add("superblocks", "superblocks of a set", Count(count));
        }
        add("dies", "dies", Count(flash.dies().into()));
        let mut rate = |key, words, rate| add(key, words, BytesPerSecond(rate));
        rate("link_bytes_per_s", "link, one direction", self.link.bytes_per_s());
        rate("channels_bytes_per_s", "channels together", flash.channels_bytes_per_s());
        rate("flash_read_bytes_per_s", "dies reading together", flash.read_bytes_per_s());
        rate("flash_write_bytes_per_s", "dies writing together", flash.program_bytes_per_s());
        let reads = self.sequential_read_bytes_per_s();
        rate("sequential_read_bytes_per_s", "sequential reads", reads);
        if let Some(cached) = self.cached_write_bytes_per_s() {
            rate("cached_write_bytes_per_s", "sequential writes into the cache", cached);
        }
        rate("native_write_bytes_per_s", "sequential writes", self.native_write_bytes_per_s());
        let lone = self.lone_read_us(self.mapping.unit_bytes);
        add("lone_read_us", "a read of one unit, alone", Microseconds(lone));
        all
    }
}

#[cfg(test)]
mod tests {
    use profile::library;

    use super::*;

    #[test]
    fn every_quantity_is_derived_once_and_shown_in_its_unit() {
        let spec = Spec::from_profile(&library::get("ideal").unwrap()).unwrap();
        let derived = spec.derived();
        let of = |key| {
            let mut found = derived.iter().filter(|derived| derived.key == key);
            let quantity = found.next().map(|derived| derived.quantity);
            assert!(found.next().is_none(), "{key} is there twice");
            quantity
        };
        assert_eq!(of("dies"), Some(Quantity::Count(spec.flash.dies().into())));
        assert_eq!(of("physical_bytes"), Some(Quantity::Bytes(spec.physical_bytes())));
        assert_eq!(of("cached_write_bytes_per_s").is_some(), spec.cache.is_some());
        assert_eq!(Quantity::Count(1_234).to_string(), "1,234");
        assert_eq!(Quantity::BytesPerSecond(1.6e9).to_string(), "1.60 GB/s (12.8 Gb/s)");
        assert_eq!(Quantity::Microseconds(61.25).to_string(), "61.2 us");
    }
}
