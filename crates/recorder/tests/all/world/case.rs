//! What a case chooses: the drives, the array on them, how it is recorded on, and what goes wrong.

use base::memory::MemoryDrive;
use base::{Duration, Rate};
use format::layout::{DATA_OFFSET, SUPERBLOCK_BYTES};
use longtake_recorder::{Placement, WhenFull};
use proptest::prelude::*;

use super::watch::Kind;

pub const CHUNK_MAX: u32 = 64 << 10;

#[derive(Clone, Debug)]
pub struct MemberCase {
    pub segments: u64,
    pub rate_mb: u64,
    pub latency_us: u64,
    pub jitter_us: u64,
    pub depth_max: u32,
    pub trims: bool,
}

#[derive(Clone, Debug)]
pub enum Fault {
    /// Everything fails from then on, until the next recording.
    Die,
    /// One command fails.
    Once { kind: Kind, applied: bool },
    /// Nothing gets done for a while.
    Stall { us: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The source stops and the take is finished.
    Stop,
    /// kill -9.
    Crash,
    /// The power fails, and volatile caches lose what was not flushed.
    PowerCut,
}

#[derive(Clone, Debug)]
pub struct RoundCase {
    pub length_us: u64,
    pub ending: Ending,
    /// A crash comes so many steps after the time is over.
    pub steps_more: u8,
    /// Member (modulo their number), time, what.
    pub faults: Vec<(u8, u64, Fault)>,
    /// Time, and the shares of all time so far that are protected from then on; none unprotects.
    pub protections: Vec<(u64, Option<(u8, u8)>)>,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub members: Vec<MemberCase>,
    pub segment_kib: u64,
    pub volatile: bool,
    pub placement: Placement,
    pub when_full: WhenFull,
    pub depth: u32,
    pub buffers: u32,
    pub drift_kib: u64,
    pub flush_us: u64,
    pub trim_ahead: u64,
    pub trim_interval_us: u64,
    pub rest: u32,
    pub rest_turn_us: u64,
    pub queues: u16,
    pub interval_us: u64,
    pub rounds: Vec<RoundCase>,
    pub seed: u64,
}

impl Case {
    pub fn drives(&self) -> Vec<MemoryDrive> {
        self.members
            .iter()
            .map(|m| MemoryDrive {
                capacity_bytes: DATA_OFFSET
                    + m.segments * (self.segment_kib << 10)
                    + SUPERBLOCK_BYTES,
                depth_max: m.depth_max,
                trim_unit_bytes: m.trims.then_some(4096),
                trim_reads_zeros: m.segments.is_multiple_of(2),
                latency: Duration::from_micros(m.latency_us),
                rate: Some(Rate(m.rate_mb as f64 * 1e6)),
                volatile_cache: self.volatile,
                ..MemoryDrive::default()
            })
            .collect()
    }
}

fn member() -> impl Strategy<Value = MemberCase> {
    (2u64..9, 5u64..300, 0u64..2000, prop_oneof![Just(0u64), 1u64..3000], 2u32..20, any::<bool>())
        .prop_map(|(segments, rate_mb, latency_us, jitter_us, depth_max, trims)| MemberCase {
            segments,
            rate_mb,
            latency_us,
            jitter_us,
            depth_max,
            trims,
        })
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Chunk),
        2 => Just(Kind::Index),
        1 => Just(Kind::Trim),
        1 => Just(Kind::Flush),
    ]
}

/// Anything that goes wrong.
pub fn any_fault() -> BoxedStrategy<Fault> {
    prop_oneof![
        Just(Fault::Die),
        (kind(), any::<bool>()).prop_map(|(kind, applied)| Fault::Once { kind, applied }),
        (1u64..40_000).prop_map(|us| Fault::Stall { us }),
    ]
    .boxed()
}

/// Drives that stall and don't fail.
pub fn stalls() -> BoxedStrategy<Fault> {
    (1u64..40_000).prop_map(|us| Fault::Stall { us }).boxed()
}

/// What a test wants of its cases.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub endings: Vec<Ending>,
    pub faults: Option<BoxedStrategy<Fault>>,
    pub when_full: Vec<WhenFull>,
    pub protections: bool,
    pub rounds: usize,
    pub volatile: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            endings: vec![Ending::Stop, Ending::Crash],
            faults: Some(any_fault()),
            when_full: vec![WhenFull::Stop, WhenFull::Wrap],
            protections: true,
            rounds: 3,
            volatile: false,
        }
    }
}

fn round(wanted: &Wanted) -> impl Strategy<Value = RoundCase> + use<> {
    let faults = match &wanted.faults {
        Some(fault) => {
            proptest::collection::vec((any::<u8>(), 0u64..60_000, fault.clone()), 0..3).boxed()
        }
        None => Just(Vec::new()).boxed(),
    };
    let protection = (0u64..60_000, proptest::option::weighted(0.8, (any::<u8>(), any::<u8>())));
    let protections = if wanted.protections {
        proptest::collection::vec(protection, 0..4).boxed()
    } else {
        Just(Vec::new()).boxed()
    };
    let ending = proptest::sample::select(wanted.endings.clone());
    let length = prop_oneof![1 => 0u64..3000, 4 => 1000u64..80_000];
    (length, ending, any::<u8>(), faults, protections).prop_map(
        |(length_us, ending, steps_more, faults, protections)| RoundCase {
            length_us,
            ending,
            steps_more: steps_more % 16,
            faults,
            protections,
        },
    )
}

/// So many cases, or more or fewer in proportion to PROPTEST_CASES (256 unless set). Failures are
/// kept as tests of their own, not in files.
pub fn config(cases: u32) -> ProptestConfig {
    let cases = (cases * ProptestConfig::default().cases).div_ceil(256);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Cases of the kind that is wanted.
pub fn cases(wanted: Wanted) -> impl Strategy<Value = Case> {
    let array = (
        proptest::collection::vec(member(), 1..=6),
        proptest::sample::select(vec![256u64, 384, 512, 1024]),
        prop_oneof![Just(Placement::Adaptive), Just(Placement::Stripe)],
        proptest::sample::select(wanted.when_full.clone()),
    );
    let how = (1u32..9, 2u32..32, 0u64..600, 200u64..30_000, 0u64..4, 0u64..3000);
    let rest = (prop_oneof![2 => Just(0u32), 1 => 1u32..7], 0u64..40_000);
    let source = (1u16..5, 20u64..1500);
    let rounds = proptest::collection::vec(round(&wanted), 1..=wanted.rounds);
    let volatile = wanted.volatile;
    (array, how, rest, source, rounds, any::<u64>()).prop_map(
        move |(
            (members, segment_kib, placement, when_full),
            (depth, buffers, drift_kib, flush_us, trim_ahead, trim_interval_us),
            (rest, rest_turn_us),
            (queues, interval_us),
            rounds,
            seed,
        )| Case {
            members,
            segment_kib,
            volatile,
            placement,
            when_full,
            depth,
            buffers,
            drift_kib,
            flush_us,
            trim_ahead,
            trim_interval_us,
            rest,
            rest_turn_us,
            queues,
            interval_us,
            rounds,
            seed,
        },
    )
}
