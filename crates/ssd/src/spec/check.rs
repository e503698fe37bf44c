//! Whether a drive can be: what is impossible or absurd about its parameters, and what would be right.

use std::ops::RangeInclusive;

use super::{
    Cache, Collector, Controller, Endurance, Flash, Heat, Link, Mapping, Media, Placement,
    Predictable, SetLayout, Sets, Spec, SpecError, Upkeep,
};

/// Physical units must be fewer: two of a table's 2^32 entries mean something else than a place.
const UNITS_MAX: u64 = (1 << 32) - 2;

/// Superblocks that must be free beyond the capacity and the reserve: one open for each stream of data, one being emptied.
const OPEN_SUPERBLOCKS: u64 = 4;

/// More dies than any drive has.
const DIES_MAX: u64 = 65_536;

/// Commands that SATA can have under way: native command queuing has tags of five bits.
const SATA_COMMANDS: u32 = 32;

/// Times above this, in microseconds, are a slip of the unit.
const TIME_MAX_US: f64 = 1e7;

/// The largest variation: drives that differ more would not be sold as one model.
const VARIATION_MAX: f64 = 0.2;

/// Reclaim unit handles at most; drives on the market have 8 to 128.
const HANDLES_MAX: u32 = 128;

/// Units of a program at most; drives on the market have a few dozen.
const PROGRAM_UNITS_MAX: u64 = u16::MAX as u64;

/// More reads or writes, and longer, than a deterministic window of any drive: a week.
const COUNT_MAX: u64 = 1_000_000_000_000;
const MS_MAX: f64 = 604_800_000.0;

/// Share of bad blocks at most; makers promise 2 to 4 %.
const BAD_BLOCKS_MAX: f64 = 0.05;

/// More power than any drive takes.
const WATTS_MAX: f64 = 1_000.0;

/// No drive takes longer than a day to get warm, in seconds.
const TIME_CONSTANT_MAX_S: f64 = 86_400.0;

/// Temperatures of drives and of where they are, in degrees Celsius.
const CELSIUS: RangeInclusive<f64> = -60.0..=200.0;

type Check = Result<(), SpecError>;

impl Spec {
    /// Whether there can be such a drive.
    ///
    /// # Errors
    /// [`SpecError`] for the first field that can't be, with what would be right.
    pub fn check(&self) -> Check {
        ensure(!self.name.is_empty(), "name", || "it is empty: name the drive".to_owned())?;
        let block = u64::from(self.block_bytes);
        ensure(matches!(block, 512 | 4096), "controller.block_bytes", || {
            format!("{block} is neither 512 nor 4096")
        })?;
        let capacity = self.capacity_bytes;
        ensure(capacity > 0 && capacity.is_multiple_of(block), "capacity_bytes", || {
            format!("{capacity} is not a multiple of the {block} bytes of a block")
        })?;
        self.controller.check()?;
        self.link.check()?;
        let depth = self.controller.depth;
        ensure(!self.link.half_duplex() || depth <= SATA_COMMANDS, "controller.depth", || {
            format!(
                "SATA takes {SATA_COMMANDS} commands at once, not {depth}: give {SATA_COMMANDS} or less"
            )
        })?;
        self.flash.check(self.block_bytes)?;
        self.mapping.check(self.block_bytes, &self.flash)?;
        self.sets.check(&self.flash)?;
        for (index, namespace) in self.sets.namespaces.iter().enumerate() {
            ensure(self.namespace_bytes(namespace) > 0, "sets.namespaces", || {
                let (number, share) = (index + 1, namespace.share);
                format!("namespace {number} has no bytes: give it a share above {share}")
            })?;
        }
        if let Some(placement) = &self.placement {
            placement.check(self)?;
        }
        if let Some(predictable) = &self.predictable {
            predictable.check(self)?;
        }
        self.check_room()?;
        self.check_buffer()?;
        if let Some(cache) = &self.cache {
            cache.check(self)?;
        }
        self.endurance.check()?;
        self.upkeep.as_ref().map_or(Ok(()), Upkeep::check)?;
        self.heat
            .as_ref()
            .map_or(Ok(()), |heat| heat.check(self.flash.dies(), self.link.bytes_per_s()))
    }

    /// Whether there is enough flash beyond the capacity, and not more than the table can name.
    fn check_room(&self) -> Check {
        let unit = u64::from(self.mapping.unit_bytes);
        // Before the exact figure, which needs the sum to be one.
        let wanted = self.capacity_bytes as f64 * (1.0 + self.mapping.over_provisioning);
        let units_max = (UNITS_MAX * unit) as f64;
        let larger = || {
            let needed = (wanted / UNITS_MAX as f64).ceil().max(1.0) as u64;
            format!(
                "the drive has more than 2^32 - 2 units: use a larger mapping.unit_bytes, {} or more",
                needed.next_power_of_two()
            )
        };
        ensure(wanted < units_max, "mapping.unit_bytes", larger)?;
        let physical = self.physical_bytes();
        ensure(physical / unit < UNITS_MAX, "mapping.unit_bytes", larger)?;
        if self.flash.media == Media::InPlace {
            return Ok(());
        }
        let superblock = self.flash.block_bytes() * u64::from(self.flash.dies() / self.sets.count);
        let all = physical / self.flash.block_bytes() / u64::from(self.flash.dies());
        let superblocks = all - self.flash.bad_blocks_max(all);
        // What always stays in the cache takes a whole cell for each of its bits.
        let cells = |cache: &Cache| {
            cache.static_bytes.saturating_mul(u64::from(self.flash.pages_per_program))
                / u64::from(self.sets.count)
        };
        let cached = self.cache.as_ref().map_or(0, cells);
        let streams = u64::from(Placement::streams(self.placement));
        let kept = u64::from(self.mapping.reserve_superblocks) + OPEN_SUPERBLOCKS + streams - 2
            + self.window_superblocks();
        for set in 0..self.sets.count {
            let data = self.bytes_in_set(set).saturating_add(cached);
            let needed = data.div_ceil(superblock) + kept;
            ensure(superblocks >= needed, "mapping.over_provisioning", || {
                // Enough for every set to have as much as this one.
                let least = needed as f64 * (superblock * u64::from(self.sets.count)) as f64
                    / self.capacity_bytes as f64
                    - 1.0;
                let least = (least * 1e4).ceil() / 1e4;
                format!(
                    "set {set} has {superblocks} superblocks of {superblock} bytes, and needs {needed}: its data \
                     ({data} bytes, the fixed part of the cache included) and {kept} that are kept free or open; \
                     give {least} or more, or smaller superblocks (flash.pages_per_block)"
                )
            })?;
        }
        Ok(())
    }

    /// Bytes of namespaces in a set.
    fn bytes_in_set(&self, set: u32) -> u64 {
        let in_set = self.sets.namespaces.iter().filter(|namespace| namespace.sets.contains(&set));
        let share: f64 = in_set.map(|n| n.share / n.sets.len() as f64).sum();
        (self.capacity_bytes as f64 * share).ceil() as u64
    }

    fn check_buffer(&self) -> Check {
        if self.flash.media == Media::InPlace {
            return Ok(());
        }
        // In each stream, data that waits until its wordline is full takes room, and the next program needs room as well.
        let programs = 1 + u64::from(Placement::host_streams(self.placement));
        let needed = programs * self.flash.program_bytes() * u64::from(self.flash.dies());
        ensure(self.buffer.bytes >= needed, "buffer.bytes", || {
            format!(
                "{} can't keep the dies busy: give at least {programs} programs of each die, {needed} bytes",
                self.buffer.bytes
            )
        })
    }
}

impl Controller {
    fn check(&self) -> Check {
        time("controller.read_us", self.read_us, false)?;
        time("controller.write_us", self.write_us, false)?;
        for (field, iops) in
            [("controller.read_iops", self.read_iops), ("controller.write_iops", self.write_iops)]
        {
            ensure((1.0..=1e9).contains(&iops), field, || {
                format!("{iops} is not between 1 and 10^9 commands a second")
            })?;
        }
        ensure((1..=1 << 20).contains(&self.depth), "controller.depth", || {
            format!("{} is not between 1 and 2^20 commands", self.depth)
        })
    }
}

impl Link {
    fn check(&self) -> Check {
        let efficiency = match *self {
            Self::Pcie { generation, lanes, efficiency } => {
                ensure((1..=6).contains(&generation), "link.generation", || {
                    format!("{generation} is not one of PCIe's 1 to 6")
                })?;
                ensure((1..=16).contains(&lanes) && lanes.is_power_of_two(), "link.lanes", || {
                    format!("{lanes} is not 1, 2, 4, 8 or 16")
                })?;
                efficiency
            }
            Self::Sata { gbps, efficiency } => {
                ensure([1.5, 3.0, 6.0].contains(&gbps), "link.gbps", || {
                    format!("{gbps} is not 1.5, 3 or 6")
                })?;
                efficiency
            }
        };
        ensure(efficiency > 0.0 && efficiency <= 1.0, "link.efficiency", || {
            format!("{efficiency} is not a share above 0, up to 1")
        })
    }
}

impl Flash {
    fn check(&self, block_bytes: u32) -> Check {
        for (field, count) in [
            ("flash.channels", self.channels),
            ("flash.dies_per_channel", self.dies_per_channel),
            ("flash.planes", self.planes),
            ("flash.page_bytes", self.page_bytes),
            ("flash.pages_per_block", self.pages_per_block),
            ("flash.pages_per_program", self.pages_per_program),
        ] {
            ensure(count > 0, field, || "0 is none: give 1 or more".to_owned())?;
        }
        let dies = u64::from(self.channels) * u64::from(self.dies_per_channel);
        ensure(dies <= DIES_MAX, "flash.dies_per_channel", || {
            format!("{dies} dies in all are more than {DIES_MAX}")
        })?;
        ensure(self.planes <= 64, "flash.planes", || format!("{} is more than 64", self.planes))?;
        let page = self.page_bytes;
        ensure(
            page.is_power_of_two() && (512..=1 << 20).contains(&page),
            "flash.page_bytes",
            || format!("{page} is not a power of two from 512 to 1 MiB"),
        )?;
        ensure(page >= block_bytes, "flash.page_bytes", || {
            format!(
                "a page of {page} bytes can't hold a block of {block_bytes} (controller.block_bytes)"
            )
        })?;
        let (pages, program) = (self.pages_per_block, self.pages_per_program);
        ensure(pages <= 1 << 20, "flash.pages_per_block", || format!("{pages} is more than 2^20"))?;
        ensure(program <= 8, "flash.pages_per_program", || {
            format!("{program} is more than any cell has bits: give 1 to 8")
        })?;
        ensure(pages.is_multiple_of(program), "flash.pages_per_block", || {
            format!(
                "{pages} is not a multiple of the {program} pages of a program (flash.pages_per_program)"
            )
        })?;
        time("flash.read_us", self.read_us, true)?;
        time("flash.program_us", self.program_us, true)?;
        time("flash.erase_us", self.erase_us, self.media == Media::Nand)?;
        time("flash.suspend_us", self.suspend_us.unwrap_or(0.0), false)?;
        ensure((1.0..=1e6).contains(&self.channel_mb_s), "flash.channel_mb_s", || {
            format!("{} is not between 1 and 10^6 (MB/s)", self.channel_mb_s)
        })?;
        ensure((0.0..=VARIATION_MAX).contains(&self.variation), "flash.variation", || {
            format!("{} is not between 0 and {VARIATION_MAX}; 0.03 is 3 %", self.variation)
        })?;
        ensure((0.0..=BAD_BLOCKS_MAX).contains(&self.bad_blocks), "flash.bad_blocks", || {
            format!("{} is not between 0 and {BAD_BLOCKS_MAX}; 0.01 is 1 %", self.bad_blocks)
        })?;
        ensure((0.0..=1.0).contains(&self.retry_share), "flash.retry_share", || {
            format!("{} is not a share from 0 to 1", self.retry_share)
        })
    }
}

impl Mapping {
    fn check(&self, block_bytes: u32, flash: &Flash) -> Check {
        let (unit, page) = (self.unit_bytes, flash.page_bytes);
        // Both are below 2^27, as the flash was checked before.
        let cell = page * flash.planes;
        ensure(
            unit.is_power_of_two() && unit >= block_bytes && unit <= cell,
            "mapping.unit_bytes",
            || {
                format!(
                    "{unit} is not a power of two from a block ({block_bytes}) to a page of all planes ({cell})"
                )
            },
        )?;
        ensure(cell.is_multiple_of(unit), "mapping.unit_bytes", || {
            format!("a page of all planes ({cell} bytes) is no multiple of {unit}")
        })?;
        if flash.media == Media::InPlace {
            return Ok(());
        }
        let units = flash.program_bytes() / u64::from(unit);
        ensure(units <= PROGRAM_UNITS_MAX, "mapping.unit_bytes", || {
            format!(
                "a program of a die would hold {units} units: give units so large that it holds {PROGRAM_UNITS_MAX} at most"
            )
        })?;
        let spare = self.over_provisioning;
        ensure((0.0..=100.0).contains(&spare), "mapping.over_provisioning", || {
            format!("{spare} is not between 0 and 100; 0.07 is 7 %")
        })?;
        ensure(self.reserve_superblocks >= 2, "mapping.reserve_superblocks", || {
            format!("{} can't keep collection going: give 2 or more", self.reserve_superblocks)
        })?;
        ensure(self.collector != Collector::Choices(0), "mapping.collector", || {
            "no victim is among none: give choices-1 or more".to_owned()
        })
    }
}

impl Sets {
    fn check(&self, flash: &Flash) -> Check {
        let count = self.count;
        let (divided, what) = match self.layout {
            SetLayout::Vertical => (flash.channels, "channels (vertical sets)"),
            SetLayout::Horizontal => {
                (flash.dies_per_channel, "dies of a channel (horizontal sets)")
            }
        };
        ensure(count > 0 && divided.is_multiple_of(count), "sets.count", || {
            format!("{count} does not divide the {divided} {what}")
        })?;
        let field = "sets.namespaces";
        ensure(!self.namespaces.is_empty(), field, || {
            "there is none: give one or more".to_owned()
        })?;
        for (number, namespace) in self.namespaces.iter().enumerate() {
            let (share, sets) = (namespace.share, &namespace.sets);
            ensure(share > 0.0 && share <= 1.0, field, || {
                format!("namespace {number} has a share of {share}: give more than 0, up to 1")
            })?;
            ensure(!sets.is_empty(), field, || {
                format!("namespace {number} lies in no set: give sets = [0]")
            })?;
            for (at, set) in sets.iter().enumerate() {
                ensure(*set < count, field, || {
                    format!("namespace {number} lies in set {set}, of sets 0 to {}", count - 1)
                })?;
                ensure(!sets[..at].contains(set), field, || {
                    format!("namespace {number} has set {set} twice")
                })?;
            }
        }
        let sum: f64 = self.namespaces.iter().map(|namespace| namespace.share).sum();
        ensure(sum <= 1.0 + 1e-9, field, || format!("the shares sum to {sum}, more than 1"))
    }
}

impl Cache {
    fn check(&self, spec: &Spec) -> Check {
        ensure(spec.flash.media == Media::Nand, "cache", || {
            "in-place media have no bits to save: leave the section out".to_owned()
        })?;
        ensure(self.static_bytes > 0 || self.dynamic_bytes > 0, "cache.static_bytes", || {
            "a cache without static_bytes and dynamic_bytes is none: give one, or leave the section out".to_owned()
        })?;
        let room = spec.physical_bytes() / u64::from(spec.flash.pages_per_program);
        ensure(self.dynamic_bytes <= room, "cache.dynamic_bytes", || {
            format!(
                "{} is more than all flash holds with one bit a cell ({room} bytes)",
                self.dynamic_bytes
            )
        })?;
        let (from, to) = (self.shrink_from, self.shrink_to);
        ensure((0.0..=1.0).contains(&from), "cache.shrink_from", || {
            format!("{from} is not a fill from 0 to 1")
        })?;
        ensure((from..=1.0).contains(&to), "cache.shrink_to", || {
            format!("{to} is not a fill from shrink_from ({from}) to 1")
        })?;
        time("cache.program_us", self.program_us, true)?;
        let whole = self.static_bytes.saturating_add(self.dynamic_bytes);
        ensure(self.first_bytes <= whole, "cache.first_bytes", || {
            format!("{} is more than the whole cache ({whole} bytes)", self.first_bytes)
        })?;
        let staged = (self.first_bytes > 0) == self.first_program_us.is_some();
        ensure(staged, "cache.first_program_us", || {
            "first_bytes and first_program_us belong together: give both or neither".to_owned()
        })?;
        self.first_program_us.map_or(Ok(()), |us| time("cache.first_program_us", us, true))?;
        self.fold_us.map_or(Ok(()), |us| time("cache.fold_us", us, true))?;
        time("cache.read_us", self.read_us, true)?;
        ensure((0.0..=1e9).contains(&self.idle_ms), "cache.idle_ms", || {
            format!("{} is not between 0 and 10^9 ms", self.idle_ms)
        })?;
        let drain = self.drain_mb_s.unwrap_or(0.0);
        ensure((0.0..=1e6).contains(&drain), "cache.drain_mb_s", || {
            format!("{drain} is not between 0 and 10^6 (MB/s)")
        })
    }
}

impl Placement {
    fn check(&self, spec: &Spec) -> Check {
        let apart = spec.flash.media == Media::Nand && spec.cache.is_none();
        ensure(apart, "placement.handles", || {
            "flash with a cache, and media written in place, have no reclaim units: leave the section out"
                .to_owned()
        })?;
        ensure((1..=HANDLES_MAX).contains(&self.handles), "placement.handles", || {
            format!("{} is not between 1 and {HANDLES_MAX}", self.handles)
        })?;
        // Each stream of copies may need a superblock before any is freed.
        let needed = 1 + Self::copied_streams(Some(*self));
        ensure(spec.mapping.reserve_superblocks >= needed, "mapping.reserve_superblocks", || {
            format!(
                "{} are too few for what is copied apart: give {needed} or more",
                spec.mapping.reserve_superblocks
            )
        })
    }
}

impl Predictable {
    fn check(&self, spec: &Spec) -> Check {
        ensure(spec.flash.media == Media::Nand, "predictable.reads", || {
            "media in place do nothing that windows would keep away: leave the section out"
                .to_owned()
        })?;
        ensure(spec.sets.count > 1, "predictable.reads", || {
            "windows are of NVM Sets, and this drive has none: give sets.count 2 or more".to_owned()
        })?;
        ensure((1..=COUNT_MAX).contains(&self.reads), "predictable.reads", || {
            format!("{} is not between 1 and 10^12", self.reads)
        })?;
        ensure(self.writes <= COUNT_MAX, "predictable.writes", || {
            format!("{} is more than 10^12", self.writes)
        })?;
        let between = |name: &str, value: f64, least: f64, most: f64| {
            ensure((least..=most).contains(&value), &format!("predictable.{name}"), || {
                format!("{value} is not between {least} and {most} ms")
            })
        };
        between("longest_ms", self.longest_ms, 1.0, MS_MAX)?;
        between("recovery_ms", self.recovery_ms, 0.0, MS_MAX)?;
        between("recovery_least_ms", self.recovery_least_ms, 0.0, self.recovery_ms)
    }
}

impl Endurance {
    fn check(&self) -> Check {
        ensure(self.cycles > 0, "endurance.cycles", || {
            "0 wears out at once: give 1 or more".to_owned()
        })?;
        ensure((0.0..=1.0).contains(&self.used), "endurance.used", || {
            format!("{} is not a share from 0 to 1", self.used)
        })?;
        ensure(self.rated_bytes != Some(0), "endurance.rated_bytes", || {
            "0 is no promise: leave it out".to_owned()
        })
    }
}

impl Upkeep {
    fn check(&self) -> Check {
        ensure(self.bytes > 0, "upkeep.bytes", || "0 is none: leave the section out".to_owned())?;
        ensure(self.every_bytes >= self.bytes, "upkeep.every_bytes", || {
            format!(
                "{} is less than the {} that the drive then writes (upkeep.bytes): it would never keep up",
                self.every_bytes, self.bytes
            )
        })?;
        ensure(self.within_bytes <= self.every_bytes, "upkeep.within_bytes", || {
            format!(
                "{} is more than the {} after which the drive begins again (upkeep.every_bytes)",
                self.within_bytes, self.every_bytes
            )
        })
    }
}

impl Heat {
    fn check(&self, dies: u32, link_bytes_per_s: f64) -> Check {
        // Of all dies together, which joining them does not change.
        let watts = [
            ("heat.idle_w", self.idle_w),
            ("heat.die_w", self.die_w * f64::from(dies)),
            ("heat.transfer_w", self.transfer_w),
        ];
        for (field, watts) in watts {
            ensure((0.0..=WATTS_MAX).contains(&watts), field, || {
                format!("{watts} watts in all are no power of a drive: give 0 to {WATTS_MAX}")
            })?;
        }
        let positive =
            [("heat.joules_per_k", self.joules_per_k), ("heat.kelvin_per_w", self.kelvin_per_w)];
        for (field, value) in positive {
            ensure((1e-3..=1e6).contains(&value), field, || {
                format!("{value} is none: give 0.001 to 1,000,000")
            })?;
        }
        let constant_s = self.time_constant_s();
        ensure(constant_s <= TIME_CONSTANT_MAX_S, "heat.joules_per_k", || {
            format!(
                "with heat.kelvin_per_w it makes a time constant of {constant_s} s: give {TIME_CONSTANT_MAX_S} s at most"
            )
        })?;
        let celsius = [
            ("heat.ambient_c", self.ambient_c),
            ("heat.light_c", self.light_c),
            ("heat.heavy_c", self.heavy_c),
        ];
        for (field, celsius) in celsius {
            ensure(CELSIUS.contains(&celsius), field, || {
                format!("{celsius} is no temperature of a drive: give -60 to 200 degrees Celsius")
            })?;
        }
        ensure(self.heavy_c > self.light_c, "heat.heavy_c", || {
            format!("{} is not above heat.light_c, {}", self.heavy_c, self.light_c)
        })?;
        ensure((0.0..=50.0).contains(&self.hysteresis_k), "heat.hysteresis_k", || {
            format!("{} is none: give 0 to 50 kelvins", self.hysteresis_k)
        })?;
        let link_mb_s = link_bytes_per_s / 1e6;
        ensure(self.light_mb_s > 0.0 && self.light_mb_s <= link_mb_s, "heat.light_mb_s", || {
            let given = self.light_mb_s;
            format!("{given} is no share of what the link moves: give up to {link_mb_s:.0} MB/s")
        })?;
        let lightly = self.light_mb_s;
        ensure(self.heavy_mb_s > 0.0 && self.heavy_mb_s <= lightly, "heat.heavy_mb_s", || {
            let given = self.heavy_mb_s;
            format!("{given} is not between 0 and heat.light_mb_s, {lightly}")
        })
    }
}

/// A time in microseconds, above 0 if it `must` be.
fn time(field: &str, us: f64, must: bool) -> Check {
    let good = (0.0..=TIME_MAX_US).contains(&us) && (us > 0.0 || !must);
    ensure(good, field, || {
        let least = if must { "above 0" } else { "0 or more" };
        format!("{us} is no time in microseconds: give {least}, up to 10^7")
    })
}

fn ensure(good: bool, field: &str, problem: impl FnOnce() -> String) -> Check {
    if good { Ok(()) } else { Err(SpecError { field: field.to_owned(), problem: problem() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Buffer, Namespace, WhenFull};
    use profile::library;

    fn ideal() -> Spec {
        Spec::from_profile(&library::get("ideal").unwrap()).unwrap()
    }

    fn cache() -> Cache {
        Cache {
            static_bytes: 1 << 30,
            dynamic_bytes: 40 << 30,
            shrink_from: 0.5,
            shrink_to: 0.9,
            program_us: 200.0,
            first_bytes: 0,
            first_program_us: None,
            read_us: 25.0,
            fold_us: None,
            when_full: WhenFull::Native,
            idle_ms: 100.0,
            drain_mb_s: None,
        }
    }

    /// Refused with this field, and these words in the message.
    fn refused(field: &str, word: &str, change: impl FnOnce(&mut Spec)) {
        let mut spec = ideal();
        spec.cache = Some(cache());
        spec.upkeep = Some(Upkeep { every_bytes: 1 << 30, bytes: 1 << 20, within_bytes: 0 });
        spec.check().unwrap();
        change(&mut spec);
        let error = spec.check().unwrap_err();
        assert_eq!(error.field, field, "{error}");
        assert!(error.problem.contains(word), "{error}");
    }

    #[test]
    fn counts_of_zero_are_refused() {
        refused("flash.channels", "1 or more", |s| s.flash.channels = 0);
        refused("flash.dies_per_channel", "1 or more", |s| s.flash.dies_per_channel = 0);
        refused("flash.planes", "1 or more", |s| s.flash.planes = 0);
        refused("flash.pages_per_block", "1 or more", |s| s.flash.pages_per_block = 0);
        refused("flash.pages_per_program", "1 or more", |s| s.flash.pages_per_program = 0);
        refused("controller.depth", "between", |s| s.controller.depth = 0);
        refused("sets.count", "divide", |s| s.sets.count = 0);
        refused("endurance.cycles", "1 or more", |s| s.endurance.cycles = 0);
        refused("capacity_bytes", "multiple", |s| s.capacity_bytes = 0);
    }

    #[test]
    fn what_is_no_number_or_no_time_is_refused() {
        refused("flash.read_us", "above 0", |s| s.flash.read_us = f64::NAN);
        refused("flash.program_us", "above 0", |s| s.flash.program_us = 0.0);
        refused("flash.erase_us", "above 0", |s| s.flash.erase_us = -1.0);
        refused("flash.suspend_us", "0 or more", |s| s.flash.suspend_us = Some(f64::INFINITY));
        refused("controller.read_us", "0 or more", |s| s.controller.read_us = -0.1);
        refused("controller.write_iops", "between", |s| s.controller.write_iops = f64::NAN);
        refused("flash.channel_mb_s", "between", |s| s.flash.channel_mb_s = 0.0);
        refused("flash.variation", "3 %", |s| s.flash.variation = 0.21);
        refused("flash.variation", "3 %", |s| s.flash.variation = f64::NAN);
        refused("cache.idle_ms", "between", |s| s.cache.as_mut().unwrap().idle_ms = f64::NAN);
        refused("cache.drain_mb_s", "MB/s", |s| s.cache.as_mut().unwrap().drain_mb_s = Some(-1.0));
        refused("mapping.over_provisioning", "7 %", |s| s.mapping.over_provisioning = f64::NAN);
    }

    #[test]
    fn links_that_do_not_exist_are_refused() {
        let pcie = |generation, lanes, efficiency| Link::Pcie { generation, lanes, efficiency };
        refused("link.generation", "1 to 6", |s| s.link = pcie(7, 4, 0.9));
        refused("link.lanes", "16", |s| s.link = pcie(3, 3, 0.9));
        refused("link.efficiency", "above 0", |s| s.link = pcie(3, 4, 0.0));
        refused("link.efficiency", "up to 1", |s| s.link = pcie(3, 4, 1.1));
        refused("controller.depth", "32 or less", |s| {
            s.link = Link::Sata { gbps: 6.0, efficiency: 0.9 };
        });
        refused("link.gbps", "1.5, 3 or 6", |s| {
            s.link = Link::Sata { gbps: 12.0, efficiency: 0.9 }
        });
    }

    #[test]
    fn blocks_units_and_pages_must_fit_into_one_another() {
        refused("controller.block_bytes", "4096", |s| s.block_bytes = 1024);
        refused("capacity_bytes", "4096", |s| s.capacity_bytes += 512);
        refused("flash.page_bytes", "power of two", |s| s.flash.page_bytes = 12_000);
        refused("flash.page_bytes", "can't hold", |s| s.flash.page_bytes = 512);
        refused("flash.pages_per_block", "multiple of the 3", |s| s.flash.pages_per_program = 3);
        refused("mapping.unit_bytes", "power of two", |s| s.mapping.unit_bytes = 6144);
        refused("mapping.unit_bytes", "a block (4096)", |s| s.mapping.unit_bytes = 512);
        refused("mapping.unit_bytes", "(32768)", |s| s.mapping.unit_bytes = 65_536);
        refused("mapping.unit_bytes", "no multiple", |s| {
            s.flash.planes = 3;
            s.mapping.unit_bytes = 32_768;
        });
        refused("mapping.unit_bytes", "holds 65535 at most", |s| {
            (s.flash.planes, s.flash.page_bytes) = (64, 1 << 20);
            (s.flash.pages_per_program, s.flash.pages_per_block) = (4, 4 * s.flash.pages_per_block);
        });
    }

    #[test]
    fn a_drive_with_too_many_units_is_told_to_use_larger_ones() {
        refused("mapping.unit_bytes", "larger mapping.unit_bytes, 8192", |s| {
            s.capacity_bytes = 20_000_000_000_000 / 4096 * 4096;
        });
        let mut spec = ideal();
        spec.capacity_bytes = 20_000_000_000_000 / 4096 * 4096;
        spec.mapping.unit_bytes = 8192;
        spec.check().unwrap();
    }

    #[test]
    fn a_drive_without_room_to_collect_is_told_how_much_it_needs() {
        refused("mapping.over_provisioning", "or more", |s| s.mapping.over_provisioning = 0.0);
        let mut spec = ideal();
        spec.mapping.over_provisioning = 0.0;
        let error = spec.check().unwrap_err();
        let least = error.problem.split("give ").nth(1).unwrap().split(' ').next().unwrap();
        spec.mapping.over_provisioning = least.parse().unwrap();
        spec.check().unwrap();
        spec.mapping.over_provisioning -= 0.002;
        spec.check().unwrap_err();
    }

    #[test]
    fn the_fixed_part_of_a_cache_takes_flash_from_what_is_spare() {
        refused("mapping.over_provisioning", "fixed part", |s| {
            s.cache.as_mut().unwrap().static_bytes = 300_000_000_000;
        });
        refused("cache.dynamic_bytes", "one bit a cell", |s| {
            s.cache.as_mut().unwrap().dynamic_bytes = u64::MAX;
        });
    }

    #[test]
    fn a_set_that_holds_more_than_its_flash_is_refused() {
        refused("mapping.over_provisioning", "set 1", |s| {
            s.sets.count = 2;
            let namespace = |share, set| Namespace { share, sets: vec![set] };
            s.sets.namespaces = vec![namespace(0.3, 0), namespace(0.7, 1)];
        });
    }

    #[test]
    fn sets_divide_what_they_are_laid_out_on_and_namespaces_lie_in_them() {
        refused("sets.count", "8 channels", |s| {
            s.sets.layout = SetLayout::Vertical;
            s.sets.count = 3;
        });
        refused("sets.count", "4 dies of a channel", |s| s.sets.count = 8);
        refused("sets.namespaces", "none", |s| s.sets.namespaces.clear());
        let namespace = |share, sets: &[u32]| vec![Namespace { share, sets: sets.to_vec() }; 2];
        refused("sets.namespaces", "sum to 1.2", |s| s.sets.namespaces = namespace(0.6, &[0]));
        refused("sets.namespaces", "share of 0", |s| s.sets.namespaces = namespace(0.0, &[0]));
        refused("sets.namespaces", "no set", |s| s.sets.namespaces = namespace(0.5, &[]));
        refused("sets.namespaces", "set 1, of", |s| s.sets.namespaces = namespace(0.5, &[1]));
        refused("sets.namespaces", "twice", |s| s.sets.namespaces = namespace(0.5, &[0, 0]));
    }

    #[test]
    fn a_buffer_too_small_to_keep_the_dies_busy_is_refused() {
        refused("buffer.bytes", "2 programs", |s| {
            s.buffer = Buffer { bytes: 1 << 20, protected: true };
        });
    }

    #[test]
    fn a_cache_shrinks_from_less_to_more_fill() {
        refused("cache.shrink_to", "shrink_from", |s| s.cache.as_mut().unwrap().shrink_to = 0.4);
        refused("cache.shrink_from", "0 to 1", |s| s.cache.as_mut().unwrap().shrink_from = -0.1);
        refused("cache.static_bytes", "leave the section out", |s| {
            let cache = s.cache.as_mut().unwrap();
            (cache.static_bytes, cache.dynamic_bytes) = (0, 0);
        });
    }

    #[test]
    fn heat_that_no_drive_has_is_refused() {
        let heat = Heat {
            idle_w: 1.0,
            die_w: 0.1,
            transfer_w: 2.0,
            joules_per_k: 10.0,
            kelvin_per_w: 8.0,
            ambient_c: 25.0,
            light_c: 70.0,
            light_mb_s: 500.0,
            heavy_c: 80.0,
            heavy_mb_s: 100.0,
            hysteresis_k: 2.0,
        };
        let with = |field, word, change: fn(&mut Heat)| {
            refused(field, word, |spec| {
                let mut heat = heat;
                change(&mut heat);
                spec.heat = Some(heat);
            });
        };
        with("heat.idle_w", "watts", |heat| heat.idle_w = -1.0);
        with("heat.die_w", "watts", |heat| heat.die_w = f64::NAN);
        with("heat.transfer_w", "watts", |heat| heat.transfer_w = 2_000.0);
        with("heat.joules_per_k", "0.001", |heat| heat.joules_per_k = 0.0);
        with("heat.die_w", "watts", |heat| heat.die_w = 500.0);
        with("heat.joules_per_k", "time constant of 800000 s", |heat| heat.joules_per_k = 1e5);
        with("heat.kelvin_per_w", "0.001", |heat| heat.kelvin_per_w = -8.0);
        with("heat.ambient_c", "Celsius", |heat| heat.ambient_c = 300.0);
        with("heat.heavy_c", "above heat.light_c", |heat| heat.heavy_c = 70.0);
        with("heat.light_mb_s", "the link moves", |heat| heat.light_mb_s = 1e6);
        with("heat.heavy_mb_s", "between 0 and", |heat| heat.heavy_mb_s = 501.0);
        with("heat.hysteresis_k", "kelvins", |heat| heat.hysteresis_k = -1.0);
    }

    #[test]
    fn upkeep_that_never_ends_is_refused() {
        refused("upkeep.every_bytes", "keep up", |s| s.upkeep.as_mut().unwrap().every_bytes = 1);
        refused("upkeep.within_bytes", "begins again", |s| {
            s.upkeep.as_mut().unwrap().within_bytes = (1 << 30) + 1;
        });
        refused("upkeep.bytes", "leave", |s| s.upkeep.as_mut().unwrap().bytes = 0);
        refused("mapping.reserve_superblocks", "2 or more", |s| s.mapping.reserve_superblocks = 1);
        refused("mapping.collector", "choices-1", |s| s.mapping.collector = Collector::Choices(0));
        refused("endurance.rated_bytes", "leave", |s| s.endurance.rated_bytes = Some(0));
        let placed =
            |handles| Some(Placement { handles, isolation: crate::spec::Isolation::Persistent });
        refused("placement.handles", "leave the section out", |s| s.placement = placed(2));
        refused("buffer.bytes", "3 programs", |s| {
            (s.placement, s.cache) = (placed(2), None);
            s.buffer.bytes = 2 * s.flash.program_bytes() * u64::from(s.flash.dies());
        });
        refused("placement.handles", "1 and 128", |s| (s.placement, s.cache) = (placed(0), None));
        refused("mapping.reserve_superblocks", "give 9 or more", |s| {
            (s.placement, s.cache) = (placed(8), None);
        });
        refused("endurance.used", "from 0 to 1", |s| s.endurance.used = 1.5);
        refused("flash.retry_share", "from 0 to 1", |s| s.flash.retry_share = f64::NAN);
        refused("flash.bad_blocks", "1 %", |s| s.flash.bad_blocks = 0.06);
    }

    #[test]
    fn in_place_media_need_no_buffer_and_have_no_cache() {
        let mut spec = ideal();
        spec.flash.media = Media::InPlace;
        spec.flash.planes = 1;
        spec.flash.page_bytes = 4096;
        spec.flash.erase_us = 0.0;
        spec.buffer.bytes = 0;
        spec.mapping.over_provisioning = 0.0;
        spec.mapping.reserve_superblocks = 0;
        spec.check().unwrap();
        spec.cache = Some(cache());
        assert_eq!(spec.check().unwrap_err().field, "cache");
    }
}
