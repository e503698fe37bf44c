//! Drives at random: every part of a specification varied within sense, small enough to be written over several times.

use longtake_ssd::Spec;
use longtake_ssd::spec::{
    Buffer, Cache, Collector, Controller, Endurance, Flash, Heat, Isolation, Link, Mapping, Media,
    Namespace, Placement, SetLayout, Sets, Upkeep, WhenFull,
};
use proptest::prelude::*;
use proptest::sample::select;

/// Superblocks are kept below this, so that a short run goes through several.
const SUPERBLOCK_BYTES_MAX: u64 = 4 << 20;

/// Drives are no smaller, so that a small share of one has room for a stripe over two sets.
const CAPACITY_BYTES_MIN: u64 = 4 << 20;

/// So many cases, or in proportion to `PROPTEST_CASES` where that is not 256. Seeds of failures aren't kept: what fails becomes a test
/// with a name.
pub fn cases(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: cases * default.cases / 256, failure_persistence: None, ..default }
}

/// Drives of any kind.
pub fn any() -> impl Strategy<Value = Spec> {
    prop_oneof![4 => nand(), 1 => in_place()]
}

/// Drives with pages that must be erased.
pub fn nand() -> impl Strategy<Value = Spec> {
    let parts =
        (flash(), outside(), mapping(), proptest::option::of(cache()), sets(), upkeep(), heat());
    parts.prop_map(|(flash, outside, mapping, cache, sets, upkeep, heat)| {
        let spec = assemble(flash, outside, mapping, cache, sets, upkeep);
        warmed(spec, heat)
    })
}

/// Drives whose media are written where data lies.
pub fn in_place() -> impl Strategy<Value = Spec> {
    (flash(), outside(), select(&[512_u32, 4096, 16 << 10][..]), 1.0..200.0).prop_map(
        |(mut flash, outside, page_bytes, program_us)| {
            flash.media = Media::InPlace;
            flash.planes = 1;
            flash.page_bytes = page_bytes.max(outside.block_bytes);
            (flash.pages_per_program, flash.program_us) = (1, program_us);
            let mut spec = assemble(flash, outside, Room::LEAST, None, Sets::none(), None);
            spec.capacity_bytes = 32 << 20;
            spec.buffer.bytes = 0;
            spec.mapping.unit_bytes = flash.page_bytes;
            spec.mapping.over_provisioning = 0.0;
            spec
        },
    )
}

/// What stands between flash and host.
#[derive(Clone, Copy, Debug)]
struct Outside {
    block_bytes: u32,
    controller: Controller,
    link: Link,
    protected: bool,
    /// Programs of each die that the buffer has room for.
    buffer_programs: u64,
}

/// Mapping, and superblocks of each set.
#[derive(Clone, Copy, Debug)]
struct Room {
    unit_bytes: u32,
    collector: Collector,
    reserve: u32,
    /// For data.
    data: u32,
    /// What is written apart.
    placement: Option<Placement>,
    /// Beyond what there must be.
    spare: u32,
    trim_reads_zeros: bool,
}

impl Room {
    const LEAST: Self = Self {
        unit_bytes: 512,
        collector: Collector::Greedy,
        reserve: 2,
        data: 8,
        placement: None,
        spare: 0,
        trim_reads_zeros: true,
    };
}

/// A cache by shares of what it can be.
#[derive(Clone, Copy, Debug)]
struct CacheShares {
    static_superblocks: u32,
    dynamic: f64,
    shrink: (f64, f64),
    program_us: f64,
    /// Share of the cache that is a first stage; below 0 for one stage.
    first: f64,
    folds_slowly: bool,
    when_full: WhenFull,
    idle_ms: f64,
    drain_mb_s: Option<f64>,
}

fn flash() -> impl Strategy<Value = Flash> {
    let shape = (
        select(&[1_u32, 2, 3, 4, 8][..]),
        1..=4_u32,
        select(&[1_u32, 2, 4][..]),
        select(&[4096_u32, 8192, 16_384][..]),
        1..=4_u32,
        2..=16_u32,
    );
    let times = (3.0..120.0, 100.0..2000.0, 500.0..8000.0, 100.0..1600.0);
    let suspends = (proptest::option::of(0.0..60.0), any_bool());
    let seldom = |most: f64| prop_oneof![4 => Just(0.0), 1 => 0.0..most];
    let shares = (seldom(0.2), seldom(0.05), seldom(1.0));
    (shape, times, suspends, shares).prop_map(
        |((channels, dies, planes, page, bits, wordlines), times, suspends, shares)| {
            let (variation, bad_blocks, retry_share) = shares;
            let (suspend_us, suspend_erases) = suspends;
            let (read_us, program_us, erase_us, channel_mb_s) = times;
            let mut flash = Flash {
                media: Media::Nand,
                channels,
                dies_per_channel: dies,
                planes,
                page_bytes: page,
                pages_per_block: bits,
                pages_per_program: bits,
                read_us,
                program_us,
                erase_us,
                channel_mb_s,
                suspend_us,
                suspend_erases,
                variation,
                bad_blocks,
                retry_share,
            };
            let row_bytes = flash.block_bytes() * u64::from(flash.dies());
            let most = (SUPERBLOCK_BYTES_MAX / row_bytes).max(1) as u32;
            flash.pages_per_block *= wordlines.min(most);
            flash
        },
    )
}

fn outside() -> impl Strategy<Value = Outside> {
    let link = prop_oneof![
        3 => (1..=6_u8, select(&[1_u8, 2, 4, 16][..]), 0.5..1.0)
            .prop_map(|(generation, lanes, efficiency)| Link::Pcie { generation, lanes, efficiency }),
        1 => (select(&[1.5, 3.0, 6.0][..]), 0.5..1.0)
            .prop_map(|(gbps, efficiency)| Link::Sata { gbps, efficiency }),
    ];
    let controller = (0.0..30.0, 0.0..30.0, 5e4..2e6, 5e4..2e6, 1..=128_u32);
    (select(&[512_u32, 4096][..]), controller, link, any_bool(), 2..=6_u64).prop_map(
        |(block_bytes, controller, link, protected, buffer_programs)| {
            let (read_us, write_us, read_iops, write_iops, depth) = controller;
            let depth = if link.half_duplex() { depth.min(32) } else { depth };
            let controller = Controller { read_us, write_us, read_iops, write_iops, depth };
            Outside { block_bytes, controller, link, protected, buffer_programs }
        },
    )
}

fn any_bool() -> impl Strategy<Value = bool> {
    proptest::bool::ANY
}

fn mapping() -> impl Strategy<Value = Room> {
    let collector = prop_oneof![
        Just(Collector::Greedy),
        Just(Collector::CostBenefit),
        Just(Collector::Fifo),
        (1..12_u32).prop_map(Collector::Choices),
        Just(Collector::Random),
    ];
    let unit = select(&[512_u32, 4096, 4096, 4096, 16_384][..]);
    let isolation = prop_oneof![Just(Isolation::Initial), Just(Isolation::Persistent)];
    let placement =
        (1..=3_u32, isolation).prop_map(|(handles, isolation)| Placement { handles, isolation });
    let placement = proptest::option::weighted(0.2, placement);
    (unit, collector, 2..=5_u32, 4..=16_u32, 0..=6_u32, any_bool(), placement).prop_map(
        |(unit_bytes, collector, reserve, data, spare, trim_reads_zeros, placement)| Room {
            placement,
            unit_bytes,
            collector,
            reserve,
            data,
            spare,
            trim_reads_zeros,
        },
    )
}

fn cache() -> impl Strategy<Value = CacheShares> {
    let when_full = prop_oneof![Just(WhenFull::Native), Just(WhenFull::Fold)];
    let shrink =
        (0.0..1.0, 0.0..1.0).prop_map(|(from, length)| (from, from + length * (1.0 - from)));
    let times = (50.0..500.0, -1.0..1.0, proptest::bool::ANY);
    let drain =
        prop_oneof![4 => Just(None), 1 => (0.0..200.0).prop_map(Some), 1 => Just(Some(0.0))];
    (0..=3_u32, 0.05..1.0, shrink, times, when_full, (0.0..30.0, drain)).prop_map(
        |(static_superblocks, dynamic, shrink, times, when_full, (idle_ms, drain_mb_s))| {
            CacheShares {
                static_superblocks,
                dynamic,
                shrink,
                program_us: times.0,
                first: times.1,
                folds_slowly: times.2,
                when_full,
                idle_ms,
                drain_mb_s,
            }
        },
    )
}

/// One set; two that are apart; two with a namespace over both and one in the second.
fn sets() -> impl Strategy<Value = Sets> {
    let layout = prop_oneof![Just(SetLayout::Vertical), Just(SetLayout::Horizontal)];
    (layout, 0..4_u32, 0.2..0.9).prop_map(|(layout, kind, part)| {
        let one = |share: f64, sets: &[u32]| Namespace { share, sets: sets.to_vec() };
        let (count, namespaces) = match kind {
            0 => (1, vec![one(1.0, &[0])]),
            1 => (1, vec![one(part, &[0]), one(1.0 - part, &[0])]),
            2 => (2, vec![one(0.5, &[0]), one(0.5 * part, &[1])]),
            _ => (2, vec![one(part, &[0, 1]), one((1.0 - part) / 2.0, &[1])]),
        };
        Sets { layout, count, namespaces }
    })
}

/// Drives that are throttled after milliseconds of work, lightly and heavily, to a share of their link; with what power.
fn heat() -> impl Strategy<Value = Option<(f64, f64, f64)>> {
    proptest::option::weighted(0.2, (0.1..0.9, 0.1..0.9, 0.01..1.0))
}

fn warmed(mut spec: Spec, heat: Option<(f64, f64, f64)>) -> Spec {
    let link_mb_s = spec.link.bytes_per_s() / 1e6;
    spec.heat = heat.map(|(light, heavy, watts)| Heat {
        idle_w: 0.1,
        die_w: watts,
        transfer_w: watts,
        joules_per_k: 0.001,
        kelvin_per_w: 100.0,
        ambient_c: 30.0,
        light_c: 50.0,
        light_mb_s: light * link_mb_s,
        heavy_c: 60.0,
        heavy_mb_s: light * heavy * link_mb_s,
        hysteresis_k: 1.0,
    });
    spec
}

fn upkeep() -> impl Strategy<Value = Option<Upkeep>> {
    proptest::option::weighted(0.3, (1..=64_u64, 4..=64_u64, 0..=64_u64)).prop_map(|upkeep| {
        upkeep.map(|(blocks, times, spread)| Upkeep {
            every_bytes: (blocks * times) << 14,
            bytes: blocks << 14,
            within_bytes: (blocks * times * spread / 64) << 14,
        })
    })
}

/// Superblocks that drives with so many good ones may lack in addition.
fn bad(flash: &Flash, good: u64) -> u64 {
    (0..8).fold(0, |bad, _| {
        let mean = flash.bad_blocks * (good + bad) as f64;
        if mean > 0.0 { (mean + 6.0 * mean.sqrt()).ceil() as u64 + 2 } else { 0 }
    })
}

/// A drive of these parts, each bent to what the others allow.
fn assemble(
    mut flash: Flash,
    outside: Outside,
    room: Room,
    cache: Option<CacheShares>,
    sets: Sets,
    upkeep: Option<Upkeep>,
) -> Spec {
    // Sets need something to divide.
    match sets.layout {
        SetLayout::Vertical => flash.channels = flash.channels.next_multiple_of(sets.count),
        SetLayout::Horizontal => {
            flash.dies_per_channel = flash.dies_per_channel.next_multiple_of(sets.count);
        }
    }
    let superblock = flash.block_bytes() * u64::from(flash.dies());
    let data = u64::from(room.data).max(CAPACITY_BYTES_MIN.div_ceil(superblock));
    let capacity_bytes = superblock * data;
    let cache = cache.map(|shares| {
        let bits = u64::from(flash.pages_per_program);
        let fixed = u64::from(shares.static_superblocks) * superblock / bits;
        let static_bytes = fixed.max(u64::from(flash.page_bytes));
        let dynamic_bytes = (capacity_bytes as f64 / bits as f64 * shares.dynamic) as u64;
        let first_bytes = ((static_bytes + dynamic_bytes) as f64 * shares.first.max(0.0)) as u64;
        Cache {
            static_bytes,
            dynamic_bytes,
            shrink_from: shares.shrink.0,
            shrink_to: shares.shrink.1,
            program_us: shares.program_us,
            first_bytes,
            first_program_us: (first_bytes > 0).then_some(shares.program_us / 2.0),
            read_us: flash.read_us / 2.0,
            fold_us: shares.folds_slowly.then_some(flash.program_us * 3.0),
            when_full: shares.when_full,
            idle_ms: shares.idle_ms,
            drain_mb_s: shares.drain_mb_s,
        }
    });
    let cells = cache.map_or(0, |cache| cache.static_bytes * u64::from(flash.pages_per_program));
    // What is kept free, one for each stream of data, one that is being emptied, one lost to rounding.
    let placement = room.placement.filter(|_| cache.is_none());
    let reserve = room.reserve.max(1 + Placement::copied_streams(placement));
    let streams = Placement::streams(placement) - 2;
    let beyond = u64::from(reserve + 4 + streams + room.spare + 1) * superblock + cells;
    let beyond = beyond + superblock * bad(&flash, (capacity_bytes + beyond).div_ceil(superblock));
    Spec {
        name: "random".to_owned(),
        model: "Random".to_owned(),
        capacity_bytes,
        block_bytes: outside.block_bytes,
        controller: outside.controller,
        link: outside.link,
        buffer: Buffer {
            bytes: (outside.buffer_programs + u64::from(Placement::host_streams(placement)) - 1)
                * flash.program_bytes()
                * u64::from(flash.dies()),
            protected: outside.protected,
        },
        mapping: Mapping {
            unit_bytes: room.unit_bytes.clamp(outside.block_bytes, flash.planes * flash.page_bytes),
            over_provisioning: beyond as f64 / capacity_bytes as f64,
            collector: room.collector,
            reserve_superblocks: reserve,
            trim_reads_zeros: room.trim_reads_zeros,
        },
        flash,
        cache,
        sets,
        placement,
        predictable: None,
        endurance: Endurance { cycles: 3_000, used: 0.25, rated_bytes: None },
        upkeep,
        heat: None,
    }
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn every_drive_drawn_can_be(spec in any()) {
        prop_assert_eq!(spec.check(), Ok(()), "{:?}", spec);
    }
}
