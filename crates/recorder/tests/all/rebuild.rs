//! Members of arrays that were recorded with parity are lost and made anew, whatever the lengths of chunks, the speeds of members
//! and the order in which parity got its places: then as many others may be lost. What a ring has given up in part is had no
//! worse than before.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use base::{
    Bank, BufferId, Buffers, DeviceError, DriveId, Duration, Instant, Random, Rate, Timestamp,
};
use format::{ChunkRecord, ChunkWriter, Interface, Layout, Ledger, LinkType, Packet, Superblock};
use longtake_recorder as recorder;
use proptest::prelude::*;
use recorder::create::{self, create};
use recorder::open::{open, open_some, superblock};
use recorder::reader::Reader;
use recorder::rebuild::{self, Plan};
use recorder::run::{Feed, Recording};
use recorder::scrub::{Options, scrub};
use recorder::superblocks::store;
use recorder::takes::Catalog;
use recorder::{
    ArrayImage, Config, ParityMeans, Placement, ReadyChunk, Recorder, TimeRange, WhenFull,
};
use uuid::Uuid;

const SEGMENT: u64 = 384 << 10;
const CHUNK_MAX: u32 = 64 << 10;
/// Five segments.
const CAPACITY: u64 = 3 << 20;
/// Buffers for chunks of packets, for parity, and for metadata and reading.
const BUFFERS: u32 = 24;
const PARITY_BUFFERS: u32 = 16;
const OTHERS: u32 = 8;

#[derive(Clone, Debug)]
struct Case {
    parity: u8,
    members: usize,
    placement: Placement,
    depth: u32,
    /// Chunks of each take.
    takes: Vec<u32>,
    /// Chunks that are not as long as the others: one in so many.
    short_one_in: u64,
    when_full: WhenFull,
    /// In the first take this member fails at this time, in microseconds.
    failing: Option<(usize, u64)>,
    seed: u64,
}

/// Chunks as fast as there are buffers.
struct Source {
    memory: MemoryBuffers,
    free: Vec<BufferId>,
    left: u32,
    short_one_in: u64,
    chunk_min: u32,
    random: Random,
    now: Timestamp,
}

impl Source {
    fn chunk(&mut self, end: bool) -> Option<ReadyChunk> {
        let buffer = self.free.pop()?;
        let longest = CHUNK_MAX - 4096;
        let mut writer = ChunkWriter::new(vec![0; longest as usize], self.chunk_min, longest, 0);
        let interface = Interface {
            name: "a".into(),
            description: String::new(),
            link_type: LinkType::ETHERNET,
            snap_length: 0,
            filter: String::new(),
            speed_bits: 0,
        };
        writer.interface(0, &interface).expect("it is empty");
        let full = !self.random.one_in(self.short_one_in);
        let packets = if full { u64::MAX } else { 1 + self.random.below(50) };
        let mut data = [0; 1000];
        data[..8].copy_from_slice(&self.random.bits().to_le_bytes());
        for _ in 0..if end { 0 } else { packets } {
            let timestamp = self.now;
            let packet = Packet {
                interface: 0,
                timestamp,
                original_length: 1000,
                data: &data,
                options: &[],
            };
            if writer.packet(&packet, 0).is_err() {
                break;
            }
        }
        let sealed = writer.seal(&[], self.now, end);
        let length = sealed.summary.length as usize;
        self.memory.with(buffer, &mut |bytes| {
            bytes[..length].copy_from_slice(&sealed.buffer[..length]);
        });
        Some(ReadyChunk { buffer, summary: sealed.summary, losses: Ledger::default() })
    }
}

impl Feed for Source {
    fn poll(&mut self, _: Instant) -> Option<ReadyChunk> {
        self.left.checked_sub(1)?;
        let chunk = self.chunk(false)?;
        self.left -= 1;
        Some(chunk)
    }
    fn next(&self, _: Instant) -> Option<Instant> {
        None
    }
    fn release(&mut self, buffer: BufferId) {
        self.free.push(buffer);
    }
    fn ended(&self) -> bool {
        self.left == 0
    }
    fn end_chunk(&mut self) -> Option<ReadyChunk> {
        self.chunk(true)
    }
}

/// Members' bytes; None for those that are gone.
type Members = Vec<Option<Vec<u8>>>;

fn names(from: u32, count: u32) -> Vec<BufferId> {
    (from..from + count).map(BufferId).collect()
}

/// Does something with the members that are there, and keeps what was written to them.
fn with_bank<T>(
    members: &mut Members,
    rates: &[Rate],
    use_it: impl FnOnce(&mut MemoryBank, &MemoryBuffers) -> T,
) -> T {
    let buffers = MemoryBuffers::new(BUFFERS + PARITY_BUFFERS + OTHERS, CHUNK_MAX as usize);
    let there = members.iter().zip(rates).filter(|(bytes, _)| bytes.is_some());
    let drive = |(_, rate): (_, &Rate)| MemoryDrive {
        capacity_bytes: CAPACITY,
        latency: Duration::from_micros(20),
        rate: Some(*rate),
        ..MemoryDrive::default()
    };
    let mut bank = MemoryBank::new(there.map(drive).collect(), buffers.clone());
    for (at, bytes) in (0u16..).zip(members.iter().flatten()) {
        bank.poke(DriveId(at), 0, bytes);
    }
    let done = use_it(&mut bank, &buffers);
    for (at, bytes) in (0u16..).zip(members.iter_mut().flatten()) {
        *bytes = bank.peek(DriveId(at), 0, bytes.len());
    }
    done
}

fn reader<'b, B: Bank>(bank: &'b mut B, memory: &'b MemoryBuffers) -> Reader<'b, B, MemoryBuffers> {
    Reader { bank, memory, buffers: names(BUFFERS + PARITY_BUFFERS, OTHERS) }
}

impl Case {
    fn rates(&self) -> Vec<Rate> {
        let mut random = Random::new(self.seed);
        let uneven = random.one_in(2);
        (0..self.members)
            .map(|_| Rate(100e6 * if uneven { 1.0 + random.below(6) as f64 } else { 1.0 }))
            .collect()
    }

    fn recorded(&self) -> Members {
        let mut members: Members = vec![Some(vec![0; CAPACITY as usize]); self.members];
        let rates = self.rates();
        with_bank(&mut members, &rates, |bank, memory| {
            let plan = create::Plan {
                uuid: Uuid::from_u128(1),
                name: "a".into(),
                created: Timestamp::MIN,
                segment_bytes: Some(SEGMENT),
                chunk_max: Some(CHUNK_MAX),
                identities: (0..self.members).map(|at| at.to_string()).collect(),
                trim: false,
                parity: self.parity,
            };
            create(&mut reader(bank, memory), &plan).expect("the drives work");
        });
        for (number, &chunks) in self.takes.iter().enumerate() {
            with_bank(&mut members, &rates, |bank, memory| {
                self.take(bank, memory, number, chunks);
            });
        }
        members
    }

    fn take(&self, bank: &mut MemoryBank, memory: &MemoryBuffers, number: usize, chunks: u32) {
        let mut to_open = reader(bank, memory);
        let image = open(&mut to_open).expect("the array is whole");
        let superblocks: Vec<Superblock> = image
            .members
            .iter()
            .map(|m| superblock(&mut to_open, m.drive).expect("it was opened"))
            .collect();
        if let Some((member, us)) = self.failing.filter(|_| number == 0) {
            let at = bank.now() + Duration::from_micros(us);
            bank.fail_from(DriveId(member as u16), at, DeviceError::Gone);
        }
        let started =
            Timestamp::from_nanos(1_800_000_000_000_000_000 + number as u64 * 1_000_000_000);
        let config = Config {
            take: Uuid::from_u128(2 + number as u128),
            started,
            placement: self.placement,
            when_full: self.when_full,
            depth: self.depth,
            buffers: BUFFERS,
            drift_max: 1 << 20,
            flush_interval: Duration::from_millis(2),
            trim_ahead: 0,
            trim_interval: Duration::ZERO,
            rest: 0,
            rest_turn: Duration::ZERO,
            flow_indexes: false,
        };
        let drives = image.members.iter().map(|m| m.drive).collect();
        let source = Source {
            memory: memory.clone(),
            free: names(0, BUFFERS),
            left: chunks,
            short_one_in: self.short_one_in,
            chunk_min: image.superblock.layout.chunk_min,
            random: Random::new(self.seed ^ number as u64),
            now: started,
        };
        let buffers = names(BUFFERS, PARITY_BUFFERS);
        let means = ParityMeans { buffers, wait: Duration::from_millis(1) };
        let core = Recorder::with_parity(config, image, means);
        let others = names(BUFFERS + PARITY_BUFFERS, OTHERS);
        let mut recording = Recording::new(core, bank, memory, source, drives, superblocks, others);
        let mut events = Vec::new();
        let end = Instant::START + Duration::from_secs(60);
        while !recording.step(end, &mut events).expect("a bank that goes on") {
            assert!(recording.now() < end, "the take ends");
        }
    }
}

/// What is read of an array without the members that are gone, through a closure.
fn with_catalog<T>(
    members: &mut Members,
    use_it: impl FnOnce(&mut Reader<'_, MemoryBank, MemoryBuffers>, &ArrayImage, &Catalog) -> T,
) -> T {
    let rates = vec![Rate(1e9); members.len()];
    with_bank(members, &rates, |bank, memory| {
        let mut reader = reader(bank, memory);
        let image = open_some(&mut reader, true).expect("enough is there");
        let catalog = Catalog::load(&mut reader, &image, TimeRange::ALL).expect("drives that read");
        use_it(&mut reader, &image, &catalog)
    })
}

/// The chunks of packets that nothing but a loss takes away: those whose groups a ring has begun to give up may go.
fn data(members: &mut Members, reused: Option<u64>) -> Vec<ChunkRecord> {
    with_catalog(members, |_, _, catalog| {
        let data = catalog.entries.iter().map(|e| e.record).filter(|r| r.parity.is_none());
        let first = |r: &ChunkRecord| r.group.map_or(r.sequence, |joined| joined.group);
        data.filter(|r| reused.is_none_or(|reused| first(r) > reused)).collect()
    })
}

/// The chunks of packets whose group has as much parity as the array. Where a member failed during the recording, some have less.
fn fully_protected(members: &mut Members, parity: u8) -> HashSet<u64> {
    with_catalog(members, |_, _, catalog| {
        let mut protecting: HashMap<u64, u8> = HashMap::new();
        for part in catalog.entries.iter().filter_map(|e| e.record.parity) {
            for number in part.group..=part.group + u64::from(part.span) {
                *protecting.entry(number).or_default() += 1;
            }
        }
        let data = catalog.entries.iter().map(|e| e.record).filter(|r| r.parity.is_none());
        let numbers = data.map(|r| r.sequence);
        numbers.filter(|number| protecting.get(number) == Some(&parity)).collect()
    })
}

/// Makes a member anew. Groups that lack parity then, and holes where packets were.
fn rebuild(members: &mut Members, lost: usize) -> (u64, u64) {
    let mut target = Vec::new();
    let done = with_catalog(members, |from, image, catalog| {
        let plan = Plan::new(from, image, catalog, lost as u16, None).expect("drives that read");
        let buffers = MemoryBuffers::new(BUFFERS + PARITY_BUFFERS + OTHERS, CHUNK_MAX as usize);
        let drive = MemoryDrive { capacity_bytes: CAPACITY, ..MemoryDrive::default() };
        let mut bank = MemoryBank::new(vec![drive], buffers.clone());
        let mut to = reader(&mut bank, &buffers);
        let superblock = Superblock {
            member: lost as u16,
            layout: Layout::new(CAPACITY, SEGMENT, CHUNK_MAX).expect("as it was"),
            ..image.superblock.clone()
        };
        rebuild::begin(&mut to, &superblock).expect("the drive works");
        let done = rebuild::run(from, &mut to, image, &plan, None, |_| ControlFlow::Continue(()));
        let done = done.expect("they work").expect("nothing stops it");
        store(&mut to, DriveId(0), &superblock).expect("the drive works");
        target = bank.peek(DriveId(0), 0, CAPACITY as usize);
        (plan.groups_without, done.filled)
    });
    members[lost] = Some(target);
    done
}

/// All sets of so many of some members.
fn sets(members: usize, count: usize) -> Vec<Vec<usize>> {
    let set = |bits: usize| (0..members).filter(move |at| bits >> at & 1 == 1).collect::<Vec<_>>();
    (0..1 << members).map(set).filter(|set| set.len() == count).collect()
}

fn cases() -> impl Strategy<Value = Case> {
    let array = (1u8..3, 0usize..4, any::<bool>(), 1u32..7, any::<bool>());
    let takes = (proptest::collection::vec(1u32..200, 1..4), 1u64..20, any::<u64>());
    let failing = proptest::option::weighted(0.3, (any::<usize>(), 0u64..20_000));
    (array, takes, failing).prop_map(
        |((parity, more, stripe, depth, wrap), (takes, short_one_in, seed), failing)| {
            let members = usize::from(parity) + 1 + more;
            // Without wrapping all of it fits, whatever the groups.
            let room = members as u32 * 20 / (1 + u32::from(parity)) / takes.len() as u32;
            let fits = |chunks: u32| if wrap { chunks } else { 1 + chunks % room };
            let takes = takes.into_iter().map(fits).collect();
            Case {
                parity,
                members,
                placement: if stripe { Placement::Stripe } else { Placement::Adaptive },
                depth,
                takes,
                short_one_in,
                when_full: if wrap { WhenFull::Wrap } else { WhenFull::Stop },
                // In a ring what a failed member held is given up sooner or later.
                failing: failing.filter(|_| !wrap).map(|(at, us)| (at % members, us)),
                seed,
            }
        },
    )
}

fn assert_rebuilds(case: &Case) {
    let mut whole = case.recorded();
    let reused = with_catalog(&mut whole, |_, _, catalog| catalog.reused);
    let all = data(&mut whole, reused);
    let count = usize::from(case.parity);
    let protected = fully_protected(&mut whole, case.parity);
    assert!(
        case.failing.is_some() || all.iter().all(|r| protected.contains(&r.sequence)),
        "a recording without a failure protects every chunk"
    );
    let mut random = Random::new(case.seed);
    // Some of all the sets: each takes time.
    let mut some = |most: u64| -> Vec<Vec<usize>> {
        let all = sets(case.members, count);
        (0..most).map(|_| all[random.below(all.len() as u64) as usize].clone()).collect()
    };
    for lost in some(2) {
        let mut members = whole.clone();
        lost.iter().for_each(|&at| members[at] = None);
        // A member that fails may leave too few for parity.
        let truth = data(&mut members, reused);
        assert!(case.failing.is_some() || truth == all, "{lost:?} are lost");
        for &at in &lost {
            let (without, filled) = rebuild(&mut members, at);
            // What a failed member kept from getting parity may find no room for it now, or be lost with the other one.
            let whole = reused.is_none() && case.failing.is_none();
            assert!(!whole || without == 0, "{lost:?}: member {at}: {without} groups");
            assert!(reused.is_some() || truth != all || filled == 0, "{lost:?}: member {at}");
        }
        assert!(data(&mut members, reused) == truth, "{lost:?} made anew");
        if reused.is_some() {
            continue;
        }
        // What had no parity may have got some.
        let now_protected = fully_protected(&mut members, case.parity);
        let kept = |r: &&ChunkRecord| protected.contains(&r.sequence);
        let lacking = truth.iter().filter(kept).find(|r| !now_protected.contains(&r.sequence));
        assert_eq!(lacking, None, "{lost:?} made anew");
        let has_all_parity = |r: &ChunkRecord| now_protected.contains(&r.sequence);
        with_catalog(&mut members, |reader, image, catalog| {
            let done = scrub(reader, image, catalog, Options::default(), |_| ());
            let done = done.expect("the drives work");
            let lacking = done.parity_missing + done.without_parity;
            assert_eq!(lacking, 0, "{lost:?}: {done:?}");
            let short = truth.iter().filter(|&record| !has_all_parity(record)).count();
            assert_eq!(done.less_parity, short as u64, "{lost:?}: {done:?}");
        });
        for gone in some(2) {
            let mut members = members.clone();
            gone.iter().for_each(|&at| members[at] = None);
            let mut found = data(&mut members, reused);
            let mut truth = truth.clone();
            found.retain(has_all_parity);
            truth.retain(has_all_parity);
            assert_eq!(found.len(), truth.len(), "{lost:?} made anew, then without {gone:?}");
            assert!(found == truth, "{lost:?} made anew, then without {gone:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn after_rebuilds_as_many_others_may_go(case in cases()) {
        assert_rebuilds(&case);
    }
}

#[test]
fn a_take_ends_at_the_end_of_the_array_though_its_source_waits_for_nothing_but_buffers() {
    for seed in 1..4 {
        let case = Case {
            parity: 1,
            members: 2,
            placement: Placement::Adaptive,
            depth: 2,
            takes: vec![26, 25],
            short_one_in: 19,
            when_full: WhenFull::Stop,
            failing: None,
            seed,
        };
        let mut members = case.recorded();
        let found = data(&mut members, None);
        let takes = found.iter().map(|record| record.take.uuid);
        assert!(takes.clone().count() < 51, "it is full");
        assert_eq!(takes.min(), Some(Uuid::from_u128(2)), "the first take has its room");
    }
}

#[test]
fn a_group_that_was_recorded_without_a_failed_member_survives_the_loss_of_fewer() {
    assert_rebuilds(&Case {
        parity: 2,
        members: 3,
        placement: Placement::Stripe,
        depth: 1,
        takes: vec![14],
        short_one_in: 5,
        when_full: WhenFull::Stop,
        failing: Some((0, 0)),
        seed: 3_352_180_955_442_339_677,
    });
}

#[test]
fn parity_that_no_chunk_names_is_of_the_take_that_its_new_number_is_in() {
    assert_rebuilds(&Case {
        parity: 2,
        members: 3,
        placement: Placement::Adaptive,
        depth: 1,
        takes: vec![4, 2, 3],
        short_one_in: 18,
        when_full: WhenFull::Stop,
        failing: None,
        seed: 5_843_818_765_728_906_058,
    });
}

#[test]
fn parity_that_no_chunk_names_leaves_named_parity_its_place() {
    let two_lost = Case {
        parity: 2,
        members: 4,
        placement: Placement::Adaptive,
        depth: 1,
        takes: vec![6, 7, 2],
        short_one_in: 2,
        when_full: WhenFull::Stop,
        failing: None,
        seed: 12_208_503_551_078_651_421,
    };
    let after_a_failure = Case {
        parity: 1,
        members: 2,
        takes: vec![5, 1, 2],
        short_one_in: 6,
        failing: Some((1, 2620)),
        seed: 3_399_671_449_412_103_459,
        ..two_lost.clone()
    };
    assert_rebuilds(&two_lost);
    assert_rebuilds(&after_a_failure);
}
