//! The parameters of specification files: each one's name, what it is taken to be when a file doesn't give it, and what it means.

use std::fmt;

/// A parameter that a specification file may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its section: `flash`.
    pub section: &'static str,
    /// Its name there: `channels`.
    pub name: &'static str,
    /// What it is without being given.
    pub absent: Absent,
    /// What it means, with its unit.
    pub meaning: &'static str,
}

/// What a parameter is when a file doesn't give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// It must be given, where its section is.
    Needed,
    /// This, as TOML.
    Default(&'static str),
    /// Nothing, which means this.
    Means(&'static str),
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Needed => f.pad("needed"),
            Self::Default(value) => f.pad(value),
            Self::Means(meaning) => f.pad(meaning),
        }
    }
}

const fn needed(section: &'static str, name: &'static str, meaning: &'static str) -> Known {
    Known { section, name, absent: Absent::Needed, meaning }
}

const fn or(
    section: &'static str,
    name: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Known {
    Known { section, name, absent: Absent::Default(default), meaning }
}

const fn without(
    section: &'static str,
    name: &'static str,
    means: &'static str,
    meaning: &'static str,
) -> Known {
    Known { section, name, absent: Absent::Means(means), meaning }
}

/// Every parameter, in the order in which files are written.
pub const PARAMETERS: [Known; 73] = [
    or("controller", "block_bytes", "512", "LBA size in bytes: 512 or 4096"),
    needed(
        "controller",
        "read_us",
        "controller's part of a read (without medium and link), microseconds",
    ),
    needed("controller", "write_us", "time of a write until its data may be taken, microseconds"),
    needed("controller", "read_iops", "reads that it can begin in a second"),
    needed("controller", "write_iops", "writes that it can begin in a second"),
    or("controller", "depth", "1024", "commands that it takes at once; SATA: 32"),
    or("link", "kind", "\"pcie\"", "pcie or sata"),
    needed("link", "generation", "PCIe generation, 1 to 6 (pcie)"),
    needed("link", "lanes", "PCIe lanes, 1 to 16 (pcie)"),
    or("link", "gbps", "6.0", "line rate in Gb/s: 1.5, 3 or 6 (sata)"),
    or(
        "link",
        "efficiency",
        "0.9",
        "share of the bytes after line coding that is payload, up to 1",
    ),
    needed(
        "buffer",
        "bytes",
        "bytes of host data that wait for the flash at most; in-place media: 0",
    ),
    or("buffer", "protected", "false", "whether capacitors save the buffer when power goes"),
    or("flash", "media", "\"nand\"", "nand, or in-place for 3D XPoint"),
    needed("flash", "channels", "channels"),
    needed("flash", "dies_per_channel", "dies on each channel"),
    needed("flash", "planes", "planes of a die, which work together (nand)"),
    needed(
        "flash",
        "page_bytes",
        "bytes of a page on one plane; in-place media: bytes of one access",
    ),
    needed("flash", "pages_per_block", "pages of a block (nand)"),
    or("flash", "pages_per_program", "1", "pages of a plane that one program writes (nand)"),
    needed("flash", "read_us", "time to read a page of each plane, microseconds"),
    needed("flash", "program_us", "time of one program, microseconds"),
    needed("flash", "erase_us", "time to erase a block of each plane, microseconds (nand)"),
    needed("flash", "channel_mb_s", "rate of a channel, 10^6 bytes a second"),
    without(
        "flash",
        "suspend_us",
        "reads wait",
        "time to suspend a program or erase for a read, microseconds (nand)",
    ),
    or(
        "flash",
        "suspend_erases",
        "true",
        "whether erases are suspended, not programs alone (nand)",
    ),
    or(
        "flash",
        "variation",
        "0.0",
        "standard deviation of its times among drives of a model, as a share: 0.03 is 3 %",
    ),
    or(
        "flash",
        "bad_blocks",
        "0.0",
        "share of blocks that are bad from the factory, on average: 0.01 is 1 % (nand)",
    ),
    or(
        "flash",
        "retry_share",
        "0.0",
        "share of page reads that are repeated when its life is used up (nand)",
    ),
    or("mapping", "unit_bytes", "4096", "bytes that the mapping table places as one"),
    needed("mapping", "over_provisioning", "flash beyond the capacity, as a share of it (nand)"),
    or(
        "mapping",
        "collector",
        "\"greedy\"",
        "victims: greedy, cost-benefit, fifo, choices-N, random (nand)",
    ),
    or("mapping", "reserve_superblocks", "4", "superblocks that are kept free, 2 at least (nand)"),
    or("mapping", "trim_reads_zeros", "true", "whether what is trimmed reads as zeros, at once"),
    or("cache", "static_bytes", "0", "bytes that always fit into the SLC cache"),
    or("cache", "dynamic_bytes", "0", "bytes more while the drive is empty"),
    or("cache", "shrink_from", "0.0", "fill, 0 to 1, from which the dynamic part shrinks"),
    or("cache", "shrink_to", "1.0", "fill at which nothing of the dynamic part is left"),
    needed("cache", "program_us", "time to program a page of each plane with one bit a cell"),
    or("cache", "first_bytes", "0", "bytes that go in first, each page in first_program_us"),
    without(
        "cache",
        "first_program_us",
        "one stage",
        "time to program such a page in the first stage, microseconds",
    ),
    needed("cache", "read_us", "time to read such a page, microseconds"),
    without(
        "cache",
        "fold_us",
        "as `flash.program_us`",
        "time of a program that takes data out of the cache, microseconds",
    ),
    or("cache", "when_full", "\"native\"", "native: writes go past a full cache; fold: through it"),
    or("cache", "idle_ms", "1000.0", "idle time after which it is emptied, milliseconds"),
    without(
        "cache",
        "drain_mb_s",
        "as fast as the flash",
        "rate at which idle time empties it, 10^6 bytes a second; 0: not at all",
    ),
    or(
        "sets",
        "layout",
        "\"horizontal\"",
        "vertical: sets have whole channels; horizontal: some dies of each",
    ),
    or("sets", "count", "1", "how many NVM Sets; 1 for none"),
    without(
        "sets",
        "namespaces",
        "one on each set",
        "list of { share = of the capacity, sets = [numbers from 0] }",
    ),
    needed(
        "placement",
        "handles",
        "reclaim unit handles; namespace n, from 0, has number n modulo these",
    ),
    or(
        "placement",
        "isolation",
        "\"persistent\"",
        "initial: what the drive copies comes together; persistent: it stays apart",
    ),
    needed("predictable", "reads", "reads of 4 KiB that a whole deterministic window has room for"),
    needed(
        "predictable",
        "writes",
        "writes that it has room for, each as long as a program of all dies of the set",
    ),
    needed("predictable", "longest_ms", "length of a whole deterministic window, milliseconds"),
    needed("predictable", "recovery_ms", "milliseconds from its end until another can be whole"),
    or("predictable", "recovery_least_ms", "0.0", "milliseconds until another can begin at all"),
    needed("endurance", "cycles", "times that a block can be erased"),
    or("endurance", "used", "0.0", "share of its life that is used when it begins, 0 to 1"),
    without(
        "endurance",
        "rated_bytes",
        "no promise",
        "bytes that the maker promises can be written",
    ),
    needed("upkeep", "every_bytes", "after so many bytes from the host"),
    needed("upkeep", "bytes", "bytes that the drive writes for its own upkeep"),
    or("upkeep", "within_bytes", "0", "host bytes over which they are spread; 0: written at once"),
    needed("heat", "idle_w", "power without any work, watts"),
    needed("heat", "die_w", "power of a die that reads, programs or erases, watts"),
    or("heat", "transfer_w", "0.0", "power of controller and link at the link's full rate, watts"),
    needed("heat", "joules_per_k", "heat that warms the drive by a kelvin, joules"),
    needed("heat", "kelvin_per_w", "kelvins above its surroundings for each watt"),
    or("heat", "ambient_c", "25.0", "temperature of its surroundings, degrees Celsius"),
    needed("heat", "light_c", "temperature from which it is throttled lightly"),
    needed(
        "heat",
        "light_mb_s",
        "rate of the link in each direction meanwhile, 10^6 bytes a second",
    ),
    needed("heat", "heavy_c", "temperature from which it is throttled heavily"),
    needed(
        "heat",
        "heavy_mb_s",
        "rate of the link in each direction meanwhile, 10^6 bytes a second",
    ),
    or(
        "heat",
        "hysteresis_k",
        "2.0",
        "kelvins that it cools below either before it is throttled less",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handbook_has_every_parameter_as_it_is() {
        let handbook = include_str!("../../../../docs/simulated-drives.md");
        let mut rows = 0;
        for Known { section, name, absent, meaning } in PARAMETERS {
            let absent = match absent {
                Absent::Default(value) => format!("`{value}`"),
                other => other.to_string(),
            };
            let (_, behind) = handbook
                .split_once(&format!("### `[simulated.{section}]`"))
                .unwrap_or_else(|| panic!("docs/simulated-drives.md has no section {section}"));
            let table = behind.split("###").next().unwrap_or_default();
            let row = format!("| `{name}` | {absent} | {meaning} |");
            assert!(table.contains(&row), "docs/simulated-drives.md lacks, in {section}: {row}");
            rows += 1;
        }
        let in_tables = handbook.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(
            in_tables, rows,
            "docs/simulated-drives.md tells of a parameter that isn't there"
        );
    }
}
