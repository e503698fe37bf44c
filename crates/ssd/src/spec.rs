//! What a simulated drive is made of: every parameter of the model, in the units of its name.

pub mod check;
mod coarse;
pub mod derived;
mod field;
pub mod listed;
pub mod parameters;
pub mod rates;
pub mod text;
mod variation;

use std::fmt;

/// A drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// What it is called, as in `sim:NAME`.
    pub name: String,
    /// The model that it stands for, as identify tells it.
    pub model: String,
    /// Bytes that can be addressed, in all namespaces together.
    pub capacity_bytes: u64,
    /// Unit of offsets and lengths: 512 or 4096.
    pub block_bytes: u32,
    /// What handles commands.
    pub controller: Controller,
    /// The way to the host.
    pub link: Link,
    /// Memory that takes writes before the flash does.
    pub buffer: Buffer,
    /// The medium.
    pub flash: Flash,
    /// Where data goes on the medium, and how space is won back. In-place media have none of it but `unit_bytes`.
    pub mapping: Mapping,
    /// Part of the flash used with one bit a cell.
    pub cache: Option<Cache>,
    /// NVM Sets and namespaces.
    pub sets: Sets,
    /// Flexible data placement, if it has that.
    pub placement: Option<Placement>,
    /// Predictable Latency Mode, if it has that.
    pub predictable: Option<Predictable>,
    /// How much writing it lives through.
    pub endurance: Endurance,
    /// What the drive writes for itself.
    pub upkeep: Option<Upkeep>,
    /// How warm it gets, and what it does about it. None for a drive that is always cool enough.
    pub heat: Option<Heat>,
}

/// The controller: it takes commands one by one, and each passes through it once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Controller {
    /// Time that a read spends in firmware and on its way, beside medium and link.
    pub read_us: f64,
    /// The same of a write, until its data may be taken.
    pub write_us: f64,
    /// Reads that it can begin in a second.
    pub read_iops: f64,
    /// Writes that it can begin in a second.
    pub write_iops: f64,
    /// Commands that it takes at once.
    pub depth: u32,
}

/// The way to the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Link {
    /// PCI Express: both directions at once.
    Pcie {
        /// 1 to 6.
        generation: u8,
        /// 1 to 16.
        lanes: u8,
        /// Share of the bytes after line coding that is payload.
        efficiency: f64,
    },
    /// SATA: one direction at a time, 32 commands.
    Sata {
        /// Line rate in Gb/s: 1.5, 3 or 6; ten bits a byte.
        gbps: f64,
        /// Share of the bytes after line coding that is payload.
        efficiency: f64,
    },
}

/// Memory that takes writes before the flash does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Buffer {
    /// Bytes of host data that wait for the flash at most.
    pub bytes: u64,
    /// Whether capacitors save it when power goes.
    pub protected: bool,
}

/// What becomes of data on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// Pages are programmed once and erased by the block.
    Nand,
    /// Every unit can be written where it lies (3D XPoint): no erasing, no garbage, no buffer.
    InPlace,
}

/// The medium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flash {
    /// What it is.
    pub media: Media,
    /// Channels.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Planes of a die, which work together.
    pub planes: u32,
    /// Bytes of a page on one plane; for in-place media the bytes that one access moves.
    pub page_bytes: u32,
    /// Pages of a block. A multiple of `pages_per_program`.
    pub pages_per_block: u32,
    /// Pages of a plane that one program writes: the bits of a cell, where they are programmed together.
    pub pages_per_program: u32,
    /// Time to read a page of each plane, until it can be transferred.
    pub read_us: f64,
    /// Time to program `planes` x `pages_per_program` pages.
    pub program_us: f64,
    /// Time to erase a block on each plane.
    pub erase_us: f64,
    /// Bytes a second of a channel, in 10^6.
    pub channel_mb_s: f64,
    /// Time to suspend a program or erase for a read; None if reads wait for its end.
    pub suspend_us: Option<f64>,
    /// Whether an erase can be suspended as a program can.
    pub suspend_erases: bool,
    /// Standard deviation of all these times, and those of the cache, among drives of the model, as a share of them.
    pub variation: f64,
    /// Share of the blocks that are bad from the factory, on average; each die of each drive has some of its own.
    pub bad_blocks: f64,
    /// Share of the reads of a page that are repeated once a drive's life is used up; before, in proportion to what is used of it.
    pub retry_share: f64,
}

/// Where data goes, and how space is won back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mapping {
    /// Bytes that the mapping table places as one. Smaller writes read the rest first.
    pub unit_bytes: u32,
    /// Flash beyond the capacity, as a share of the capacity: 0.07 is 7 %.
    pub over_provisioning: f64,
    /// How the next victim is chosen.
    pub collector: Collector,
    /// Superblocks that are kept free. Collection begins when no more than these are, paced by what the host writes.
    pub reserve_superblocks: u32,
    /// Whether what was trimmed, or never written, reads as zeros without touching the medium.
    pub trim_reads_zeros: bool,
}

/// How garbage collection chooses its next victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collector {
    /// The one with the fewest valid units.
    Greedy,
    /// The best of free space won x age / cost (Rosenblum and Ousterhout, 1992).
    CostBenefit,
    /// The oldest.
    Fifo,
    /// The one with the fewest valid units among so many drawn at random.
    Choices(u32),
    /// Any.
    Random,
}

/// Part of the flash used with one bit a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cache {
    /// Bytes of data that always fit in.
    pub static_bytes: u64,
    /// Bytes of data more, while the drive is empty.
    pub dynamic_bytes: u64,
    /// Fill (0 to 1) from which the dynamic part shrinks, in a straight line.
    pub shrink_from: f64,
    /// Fill at which nothing of the dynamic part is left.
    pub shrink_to: f64,
    /// Time to program a page of each plane with one bit a cell.
    pub program_us: f64,
    /// Bytes of data that go in first, each page in `first_program_us`: a cache of two stages. 0 for one stage.
    pub first_bytes: u64,
    /// Time to program a page of each plane in the first stage; None where there is none.
    pub first_program_us: Option<f64>,
    /// Time to read such a page.
    pub read_us: f64,
    /// Time of a program that takes data out of the cache; None for that of the flash. Drives fold with fewer planes or dies at a
    /// time, or check what they move, so that it takes longer.
    pub fold_us: Option<f64>,
    /// Where writes go when it is full.
    pub when_full: WhenFull,
    /// Idle time in milliseconds after which it is emptied in the background.
    pub idle_ms: f64,
    /// Rate at which idle time empties it at most, in 10^6 bytes a second; 0 for not at all, None for as fast as the flash does.
    pub drain_mb_s: Option<f64>,
}

/// Where writes go when the cache is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// Past it, until idle time has made room in it.
    Native,
    /// Through it all the same: what is in it is folded to make room.
    Fold,
}

/// NVM Sets and namespaces.
#[derive(Clone, Debug, PartialEq)]
pub struct Sets {
    /// How sets divide the flash.
    pub layout: SetLayout,
    /// How many; 1 for no sets.
    pub count: u32,
    /// Namespaces in order; their shares sum to 1 at most.
    pub namespaces: Vec<Namespace>,
}

/// How sets divide the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetLayout {
    /// A set has whole channels.
    Vertical,
    /// A set has some dies of every channel.
    Horizontal,
}

/// A namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Namespace {
    /// Its share of the capacity, 0 to 1.
    pub share: f64,
    /// The sets it lies in, from 0, in stripes.
    pub sets: Vec<u32>,
}

/// Flexible data placement (NVMe technical proposal 4146, part of Base Specification 2.1): data of each reclaim unit handle is written
/// into reclaim units, here superblocks, of its own. Writes carry no placement identifier, so that each goes to its namespace's first
/// placement handle: namespace n, from 0, has reclaim unit handle n modulo their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Reclaim unit handles; 1 at least.
    pub handles: u32,
    /// What the drive's own copying keeps apart.
    pub isolation: Isolation,
}

/// Types of reclaim unit handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Data is apart when it is written; what the collector copies of all handles comes together.
    Initial,
    /// It stays apart.
    Persistent,
}

/// Predictable Latency Mode (NVM Express Base Specification 2.0, section 8.16): what a deterministic window of an NVM Set has room for, and
/// how long the set takes to recover from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predictable {
    /// Reads of 4 KiB in a whole window (DTWIN Reads Typical); 1 at least.
    pub reads: u64,
    /// Writes of the size that suits the set in a whole window (DTWIN Writes Typical).
    pub writes: u64,
    /// Length of a whole window in milliseconds (DTWIN Time Maximum).
    pub longest_ms: f64,
    /// Milliseconds after a whole window until the next can be whole (NDWIN Time Minimum High).
    pub recovery_ms: f64,
    /// Milliseconds after any window until the next can begin (NDWIN Time Minimum Low).
    pub recovery_least_ms: f64,
}

/// How much writing it lives through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Endurance {
    /// Times that a block can be erased.
    pub cycles: u32,
    /// Share of its life that is used when it begins.
    pub used: f64,
    /// Bytes the maker promises that can be written, if he does.
    pub rated_bytes: Option<u64>,
}

/// What the drive writes for itself, such as its mapping table: it shows as dips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Upkeep {
    /// After so many bytes from the host,
    pub every_bytes: u64,
    /// it writes so many of its own.
    pub bytes: u64,
    /// It spreads them evenly over so many of the next bytes from the host, which then come more slowly; 0 for at once, which stops the
    /// host.
    pub within_bytes: u64,
}

/// How warm a drive gets: one mass that work heats and its surroundings cool. From two temperatures on the drive lets less through, as
/// with the two thermal management temperatures of the NVMe Base Specification 2.0, section 8.15 (host controlled thermal management).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heat {
    /// Power without any work, in watts.
    pub idle_w: f64,
    /// Power of a die that reads, programs or erases, in watts, beside `idle_w`.
    pub die_w: f64,
    /// Power of controller and link while they move data at the link's rate, in watts, beside `idle_w`.
    pub transfer_w: f64,
    /// Heat that warms the drive by a kelvin, in joules.
    pub joules_per_k: f64,
    /// How much warmer than its surroundings the drive gets for each watt, in kelvins.
    pub kelvin_per_w: f64,
    /// Temperature of its surroundings, in degrees Celsius, at which it also begins.
    pub ambient_c: f64,
    /// Temperature from which it is throttled lightly, in degrees Celsius.
    pub light_c: f64,
    /// What passes the link in each direction at most while it is throttled lightly, in 10^6 bytes a second.
    pub light_mb_s: f64,
    /// Temperature from which it is throttled heavily, in degrees Celsius.
    pub heavy_c: f64,
    /// The same while it is throttled heavily.
    pub heavy_mb_s: f64,
    /// How far it cools below a temperature before it is throttled less, in kelvins.
    pub hysteresis_k: f64,
}

/// Why a drive can't be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// Which field: `flash.channels`.
    pub field: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            // Nothing of the drive's own is wrong: there is none.
            "simulated" => f.write_str(&self.problem),
            field => write!(f, "a drive can't be simulated with this {field}: {}", self.problem),
        }
    }
}

impl std::error::Error for SpecError {}

impl Heat {
    /// Time in which the drive comes two thirds (1 - 1/e) nearer to the temperature at which it would stay, in seconds.
    pub fn time_constant_s(&self) -> f64 {
        self.joules_per_k * self.kelvin_per_w
    }

    /// Temperature at which the drive stays with this power, in degrees Celsius.
    pub fn steady_c(&self, watts: f64) -> f64 {
        self.ambient_c + self.kelvin_per_w * watts
    }
}

impl Sets {
    /// One namespace over all flash.
    pub fn none() -> Self {
        Self {
            layout: SetLayout::Horizontal,
            count: 1,
            namespaces: vec![Namespace { share: 1.0, sets: vec![0] }],
        }
    }
}

impl Placement {
    /// Streams of the host's data that are written apart.
    pub fn host_streams(placement: Option<Self>) -> u32 {
        placement.map_or(1, |placement| placement.handles)
    }

    /// The same of data that the collector copies.
    pub fn copied_streams(placement: Option<Self>) -> u32 {
        match placement {
            Some(Self { handles, isolation: Isolation::Persistent }) => handles,
            _ => 1,
        }
    }

    /// Both together, each with an open superblock.
    pub fn streams(placement: Option<Self>) -> u32 {
        Self::host_streams(placement) + Self::copied_streams(placement)
    }
}

impl Flash {
    /// Dies in all.
    pub const fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Bytes that a die programs at once.
    pub const fn program_bytes(&self) -> u64 {
        self.planes as u64 * self.page_bytes as u64 * self.pages_per_program as u64
    }

    /// Bytes of a block on each plane of one die.
    pub const fn block_bytes(&self) -> u64 {
        self.planes as u64 * self.page_bytes as u64 * self.pages_per_block as u64
    }

    /// Bytes a second that the dies can program together at most.
    pub fn program_bytes_per_s(&self) -> f64 {
        f64::from(self.dies()) * self.program_bytes() as f64 / (self.program_us / 1e6)
    }
}

impl Link {
    /// Payload bytes a second in one direction, in bytes. Line rates and codes: PCI Express base specification (1 and 2: 8b/10b,
    /// 3 to 5: 128b/130b, 6: PAM4 flits, counted without code); Serial ATA: 8b/10b.
    pub fn bytes_per_s(&self) -> f64 {
        match *self {
            Self::Pcie { generation, lanes, efficiency } => {
                let lane = match generation {
                    1 => 2.5e9 * 0.8,
                    2 => 5e9 * 0.8,
                    3 => 8e9 * 128.0 / 130.0,
                    4 => 16e9 * 128.0 / 130.0,
                    5 => 32e9 * 128.0 / 130.0,
                    _ => 64e9,
                };
                lane / 8.0 * f64::from(lanes) * efficiency
            }
            Self::Sata { gbps, efficiency } => gbps * 1e9 / 10.0 * efficiency,
        }
    }

    /// Whether only one direction can move data at a time.
    pub const fn half_duplex(&self) -> bool {
        matches!(self, Self::Sata { .. })
    }
}

impl Spec {
    /// Bytes of a namespace: whole units, and where it lies in several sets, whole rounds of their stripes.
    pub const fn namespace_bytes(&self, namespace: &Namespace) -> u64 {
        let unit = self.mapping.unit_bytes as u64;
        let grain = match namespace.sets.len() as u64 {
            0 | 1 => unit,
            sets => self.stripe_units() * unit * sets,
        };
        (self.capacity_bytes as f64 * namespace.share) as u64 / grain * grain
    }

    /// Units of a namespace that lie in one set before the next one's turn, where it lies in several.
    pub const fn stripe_units(&self) -> u64 {
        const STRIPE_BYTES: u64 = 128 << 10;
        let units = STRIPE_BYTES / self.mapping.unit_bytes as u64;
        if units == 0 { 1 } else { units }
    }

    /// Superblocks of each set: one block on every plane of every die of the set.
    pub fn superblocks_of_set(&self) -> u32 {
        (self.physical_bytes() / (self.flash.block_bytes() * u64::from(self.flash.dies()))) as u32
    }

    /// The dies of a set, in the order in which data is spread over them: neighbours are on different channels. Die `d` is on
    /// channel `d % channels`.
    pub fn dies_of_set(&self, set: u32) -> Vec<u32> {
        let Flash { channels, dies_per_channel, .. } = self.flash;
        let share = |all: u32| set * all / self.sets.count..(set + 1) * all / self.sets.count;
        let in_set = |die: &u32| match self.sets.layout {
            SetLayout::Vertical => share(channels).contains(&(die % channels)),
            SetLayout::Horizontal => share(dies_per_channel).contains(&(die / channels)),
        };
        (0..self.flash.dies()).filter(in_set).collect()
    }

    /// Superblocks of a set that are kept free for the writes of a deterministic window.
    pub fn window_superblocks(&self) -> u64 {
        // Programs of all its dies at a time, as superblocks are made of them.
        let programs = u64::from(self.flash.pages_per_block / self.flash.pages_per_program);
        self.predictable.map_or(0, |windows| windows.writes.div_ceil(programs.max(1)))
    }

    /// Flash that data is spread over beyond the capacity, as a share of it: without what is kept free, what is open, and what a cache
    /// always has. 0 for in-place media.
    pub fn spare_share(&self) -> f64 {
        if self.flash.media == Media::InPlace {
            return 0.0;
        }
        // The host's and the collector's open superblocks are half full: two of them hold one superblock of data.
        let open = Placement::streams(self.placement);
        let kept = f64::from(self.mapping.reserve_superblocks) + f64::from(open) / 2.0;
        let superblock = (self.flash.block_bytes() * u64::from(self.flash.dies())) as f64;
        let bits = f64::from(self.flash.pages_per_program);
        let cached = self.cache.map_or(0.0, |cache| cache.static_bytes as f64 * bits);
        let flash = self.physical_bytes() as f64 - kept * superblock - cached;
        (flash / self.capacity_bytes as f64 - 1.0).max(0.0)
    }

    /// Bytes of flash, spare area included: whole superblocks on every set.
    pub fn physical_bytes(&self) -> u64 {
        let superblock = self.flash.block_bytes() * u64::from(self.flash.dies());
        let wanted = self.capacity_bytes as f64 * (1.0 + self.mapping.over_provisioning);
        (wanted / superblock as f64).ceil() as u64 * superblock
    }
}
