//! The first drive to try: what the figures say by plain arithmetic, on flash as drives of that size have it.

mod cache;

use lab::Unit;
use lab::experiment::any::ExperimentOutcome;
use lab::experiment::link::DriveLink;
use lab::fitting::trials::Measured;
use lab::run::Run;
use profile::{Profile, name};
use ssd::Spec;
use ssd::spec::{Buffer, Collector, Controller, Endurance, Flash, Link, Mapping, Media, Sets};

/// What is assumed where nothing better is known. Flash of three bits a cell with two planes of 16 KiB pages is what most
/// drives of today have (ISSCC, 2016 to 2020); dies of 256 Gb on eight channels, so do most controllers.
const PAGE_BYTES: u32 = 16 << 10;
const PLANES: u32 = 2;
const BITS: u32 = 3;
const CHANNELS: u32 = 8;
const DIE_BYTES: u64 = 32 << 30;
const DIES_PER_CHANNEL_MAX: u32 = 16;
/// Pages of a block: all have many divisors, so that the drive can be scaled down.
const PAGES_PER_BLOCK: [u32; 8] = [1152, 768, 576, 384, 192, 96, 48, 24];
/// Superblocks that drives are thought to have: it is what the library's have.
const SUPERBLOCKS: f64 = 800.0;
const RESERVE_SUPERBLOCKS: u32 = 4;
/// Superblocks that are being written or emptied.
const OPEN_SUPERBLOCKS: f64 = 3.0;
const OVER_PROVISIONING: f64 = 0.09;
const CHANNEL_MB_S: f64 = 800.0;
const CONTROLLER_READ_US: f64 = 8.0;
const CONTROLLER_WRITE_US: f64 = 12.0;
const READ_US: f64 = 50.0;
const IOPS: f64 = 500e3;
/// Of a block of the most pages; smaller ones, in proportion, so that erasing takes the same share of the time.
const ERASE_US: f64 = 3500.0;
const SUSPEND_US: f64 = 30.0;
const BUFFER_BYTES: u64 = 32 << 20;
const NATIVE_BYTES_PER_S: f64 = 1e9;
const IDLE_MS: f64 = 1000.0;
const CYCLES: u32 = 3000;
/// Cells of one bit are read so much faster.
const CACHED_READ_SHARE: f64 = 0.6;
/// A drive that is not known to have another link has this many lanes.
const LANES: u8 = 4;
/// Payload's share on PCI Express, until it is fitted.
const EFFICIENCY: f64 = 0.9;

/// What a drive is, as far as it tells.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Name of the twin.
    pub name: String,
    /// The maker's model name of the measured drive.
    pub model: String,
    /// Addressable bytes.
    pub capacity_bytes: u64,
    /// Unit of offsets and lengths, in bytes.
    pub block_bytes: u32,
    /// Its link, as if all of its bandwidth were payload; None if nothing tells it.
    pub link: Option<Link>,
}

/// The drive to begin with. What figures don't tell is as in `from`, or as drives of that size mostly are.
pub fn guess(identity: &Identity, measured: &Measured, from: Option<Spec>) -> Spec {
    let figures = MeasuredFigures { measured };
    let mut spec = from.unwrap_or_else(|| assumed(identity));
    spec.name.clone_from(&identity.name);
    spec.model.clone_from(&identity.model);
    spec.capacity_bytes = identity.capacity_bytes;
    spec.block_bytes = identity.block_bytes;
    spec.sets = Sets::none();
    figures.link(&mut spec, identity.link);
    let native = figures.native();
    let dies = f64::from(spec.flash.dies());
    if let Some(native) = native {
        spec.flash.program_us = dies * spec.flash.program_bytes() as f64 / native * 1e6;
    }
    figures.reads(&mut spec);
    figures.spare(&mut spec, native.unwrap_or(NATIVE_BYTES_PER_S));
    if native.is_some() {
        spec.cache = None;
        cache::put_cache(&mut spec, measured);
    }
    spec
}

/// A drive of that size as most are.
fn assumed(identity: &Identity) -> Spec {
    let wanted = identity.capacity_bytes / u64::from(CHANNELS) / DIE_BYTES;
    let dies_per_channel =
        u32::try_from(wanted.next_power_of_two()).unwrap_or(u32::MAX).min(DIES_PER_CHANNEL_MAX);
    let row = u64::from(CHANNELS * dies_per_channel * PLANES * PAGE_BYTES);
    let pages = identity.capacity_bytes as f64 / SUPERBLOCKS / row as f64;
    let fits = |pages_per_block: &u32| f64::from(*pages_per_block) <= 1.5 * pages;
    let pages_per_block = PAGES_PER_BLOCK.into_iter().find(fits).unwrap_or(24);
    let flash = Flash {
        media: Media::Nand,
        channels: CHANNELS,
        dies_per_channel,
        planes: PLANES,
        page_bytes: PAGE_BYTES,
        pages_per_block,
        pages_per_program: BITS,
        read_us: READ_US,
        program_us: 1800.0,
        erase_us: ERASE_US * f64::from(pages_per_block) / f64::from(PAGES_PER_BLOCK[0]),
        channel_mb_s: CHANNEL_MB_S,
        suspend_us: Some(SUSPEND_US),
        suspend_erases: true,
        variation: 0.0,
        bad_blocks: 0.0,
        retry_share: 0.0,
    };
    let least = 2 * flash.program_bytes() * u64::from(flash.dies());
    Spec {
        name: String::new(),
        model: String::new(),
        capacity_bytes: identity.capacity_bytes,
        block_bytes: identity.block_bytes,
        controller: Controller {
            read_us: CONTROLLER_READ_US,
            write_us: CONTROLLER_WRITE_US,
            read_iops: IOPS,
            write_iops: IOPS,
            depth: 1024,
        },
        link: Link::Pcie { generation: 3, lanes: LANES, efficiency: EFFICIENCY },
        // Small drives have less of it.
        buffer: Buffer {
            bytes: BUFFER_BYTES.min(identity.capacity_bytes / 1000).max(least),
            protected: false,
        },
        flash,
        mapping: Mapping {
            unit_bytes: 4096,
            over_provisioning: OVER_PROVISIONING,
            collector: Collector::Greedy,
            reserve_superblocks: RESERVE_SUPERBLOCKS,
            trim_reads_zeros: true,
        },
        cache: None,
        sets: Sets::none(),
        placement: None,
        predictable: None,
        endurance: Endurance { cycles: CYCLES, used: 0.0, rated_bytes: None },
        upkeep: None,
        heat: None,
    }
}

/// What figures tell.
struct MeasuredFigures<'a> {
    measured: &'a Measured,
}

impl MeasuredFigures<'_> {
    fn value(&self, name: &str) -> Option<f64> {
        value(self.measured, name)
    }

    /// The greatest of the figures whose names begin like this, in bytes a second.
    fn greatest(&self, prefixes: &[&str]) -> Option<f64> {
        let named = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let all = self.measured.targets.iter().filter(|target| named(&target.name));
        let all = all.filter(|target| target.unit != Unit::Bytes);
        all.map(|target| target.value).reduce(f64::max)
    }

    /// What the dies program, bytes a second.
    fn native(&self) -> Option<f64> {
        self.value(name::WRITE_NATIVE)
            .or_else(|| self.value(name::WRITE_OVERWRITE))
            .or_else(|| self.greatest(&["stream.write."]))
    }

    /// The link as it is known, or the least that carries what was reached.
    fn link(&self, spec: &mut Spec, known: Option<Link>) {
        let reached =
            self.greatest(&["stream.", "read.sequential", "random.read.", "write.", "fill."]);
        let carries = |link: &Link| reached.is_none_or(|reached| link.bytes_per_s() >= reached);
        let likely = || {
            let of = |generation| Link::Pcie { generation, lanes: LANES, efficiency: EFFICIENCY };
            (3..=6).map(of).find(carries)
        };
        let Some(link) = known.or_else(likely) else { return };
        spec.link = link;
        if link.half_duplex() {
            spec.controller.depth = spec.controller.depth.min(32);
        }
        let reads = self.greatest(&["stream.read.", "read.sequential"]);
        let (Link::Pcie { efficiency, .. } | Link::Sata { efficiency, .. }) = &mut spec.link;
        let whole = link.bytes_per_s() / *efficiency;
        *efficiency = reads.map_or(EFFICIENCY, |reads| (reads / whole).clamp(0.1, 1.0));
    }

    fn reads(&self, spec: &mut Spec) {
        let iops = self.greatest(&["mix.4096.r100", "mix.16384.r100"]).unwrap_or(0.0);
        let random = self.greatest(&["random.read.4KiB"]).unwrap_or(0.0) / 4096.0;
        if iops.max(random) > 0.0 {
            spec.controller.read_iops = iops.max(random);
            spec.controller.write_iops = spec.controller.write_iops.max(iops.max(random));
        }
        if let Some(writes) = self.value("snia.write.iops") {
            spec.controller.write_iops = spec.controller.write_iops.max(1.5 * writes);
        }
        let per_channel = |rate: f64| 1.25 * rate / 1e6 / f64::from(spec.flash.channels);
        let moved = ["stream.", "read.sequential", "write.", "fill."];
        let most = self.greatest(&moved).unwrap_or(0.0);
        spec.flash.channel_mb_s = spec.flash.channel_mb_s.max(per_channel(most));
        let lone = self.value(&name::random_rate(4096, 1)).map(|rate| 4096.0 * 1e6 / rate);
        if let Some(lone_us) = lone {
            let beside = spec.lone_read_us(4096) - spec.flash.read_us;
            spec.flash.read_us = (lone_us - beside).max(lone_us / 4.0);
            spec.controller.read_us = spec.controller.read_us.min(lone_us / 2.0);
        }
    }

    /// Flash beyond the capacity, from how many units are written for each that the host writes at random.
    fn spare(&self, spec: &mut Spec, native: f64) {
        if let Some(iops) = self.value("snia.write.iops") {
            let amplification = (native / (4096.0 * iops)).max(1.0);
            let units =
                (spec.flash.block_bytes() / 4096 * u64::from(spec.flash.dies())).min(4096) as u32;
            // The more of the flash is full, the more is copied.
            let (mut least, mut most) = (0.3, 0.98);
            for _ in 0..40 {
                let rho = f64::midpoint(least, most);
                let state = ssd::steady::steady_state(spec.mapping.collector, rho, units);
                if state.write_amplification < amplification { least = rho } else { most = rho }
            }
            let superblock = spec.flash.block_bytes() as f64 * f64::from(spec.flash.dies());
            // What is open holds half of what it could, in two superblocks.
            let kept = f64::from(spec.mapping.reserve_superblocks) + 1.0;
            spec.mapping.over_provisioning =
                1.0 / least - 1.0 + kept * superblock / spec.capacity_bytes as f64;
        }
        // What the model needs at least to win space back.
        while spec.check().is_err() && spec.mapping.over_provisioning < 1.0 {
            spec.mapping.over_provisioning += 0.01;
        }
    }
}

/// A figure of this name.
fn value(measured: &Measured, name: &str) -> Option<f64> {
    measured.targets.iter().find(|target| target.name == name).map(|target| target.value)
}

/// The link that a run or a profile knows of, with all of it payload.
pub fn known_link(run: Option<&Run>, profile: Option<&Profile>) -> Option<Link> {
    let measured = || {
        run?.outcomes.iter().find_map(|outcome| match outcome {
            ExperimentOutcome::Link(result) => match result.links.as_slice() {
                [DriveLink::Pcie { now: Some(link), .. }] => pcie(link.gigatransfers, link.lanes),
                [DriveLink::Sata { now_gbps, .. }] => Some(sata(*now_gbps)),
                _ => None,
            },
            _ => None,
        })
    };
    let facts = || {
        let facts = run?.subjects.first()?.facts.as_ref()?;
        if let Some(gbps) = facts.pointer("/drive/link/sata/now_gbps") {
            return Some(sata(gbps.as_f64()?));
        }
        let of = |part: &str| facts.pointer(&format!("/drive/link/pcie/now/{part}"))?.as_u64();
        let (generation, lanes) =
            (of("generation")?.try_into().ok()?, of("lanes")?.try_into().ok()?);
        Some(Link::Pcie { generation, lanes, efficiency: 1.0 })
    };
    let figures = || {
        let link = profile?.link()?;
        pcie(link.gigatransfers, link.lanes)
    };
    measured().or_else(facts).or_else(figures)
}

/// PCI Express doubles with each generation from 2.5 and 5 on, but for the third's 8.
fn pcie(gigatransfers: f64, lanes: u8) -> Option<Link> {
    let speeds = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];
    let generation = speeds.iter().position(|&speed| speed == gigatransfers)? as u8 + 1;
    Some(Link::Pcie { generation, lanes, efficiency: 1.0 })
}

const fn sata(gbps: f64) -> Link {
    Link::Sata { gbps, efficiency: 1.0 }
}
