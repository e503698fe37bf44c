//! The hostile worlds of `chaos`: as many as a property is tried in, of the kind that it is about; and a plain one to make scenarios of.

use base::Duration;
use chaos::adversary::{Drive, Pace};
use chaos::case::{Ending, Round};
use chaos::media::Trimmed;
use chaos::{Case, Wanted, World, caught};
use format::layout::{DATA_OFFSET, SUPERBLOCK_BYTES};
use longtake_recorder::{Placement, WhenFull};
use proptest::prelude::ProptestConfig;

/// So many cases, or more or fewer in proportion to PROPTEST_CASES (256 unless set).
pub fn number_of(cases: u32) -> u32 {
    (cases * ProptestConfig::default().cases).div_ceil(256)
}

/// As [`number_of`], for properties of values that no seed chooses. Failures are kept as tests of their own, not in files.
pub fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases: number_of(cases),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Tries something in so many cases of a kind, and says which one it fails in.
pub fn each(cases: u32, wanted: &Wanted, mut body: impl FnMut(Case)) {
    for seed in 0..u64::from(number_of(cases)) {
        let case = Case::wanted(seed, wanted);
        if let Err(violation) = caught(seed, || body(case)) {
            panic!("seed {seed}: {}; of {wanted:?}", violation.message);
        }
    }
}

/// So many cases of a kind keep every law.
pub fn keep_the_laws(cases: u32, wanted: &Wanted) {
    each(cases, wanted, |case| World::new(&case, None).run());
}

/// The case keeps every law.
pub fn keeps_the_laws(case: &Case) {
    World::new(case, None).run();
}

/// Bytes of the segments of [`plain`].
pub const SEGMENT: u64 = 256 << 10;

/// A drive of so many segments that takes up to so long for a command, and nanoseconds for each KiB.
pub fn drive(segments: u64, pace: Pace, kib_ns: u64) -> Drive {
    Drive {
        capacity_bytes: DATA_OFFSET + segments * SEGMENT + SUPERBLOCK_BYTES,
        block_bytes: 4096,
        depth_max: 8,
        trimmed: None,
        volatile: false,
        pace,
        kib_ns,
        flush_us: 0,
    }
}

/// The same drive, which can trim.
pub fn trims(drive: Drive) -> Drive {
    Drive { trimmed: Some(Trimmed::Zeros), ..drive }
}

/// A recording in which nothing goes wrong until its end.
pub fn round(length: Duration, ending: Ending) -> Round {
    Round {
        length,
        ending,
        steps_more: 0,
        faults: Vec::new(),
        protections: Vec::new(),
        viewers: Vec::new(),
        remember: None,
        accident: None,
        changes: Vec::new(),
        misread: false,
        older: Duration::ZERO,
    }
}

/// The case with this seed. Two buffers for metadata for each member suffice to be fast; one in all must do.
pub fn with_seed(seed: u64, case: Case) -> Case {
    let metadata = 1 + (seed % (2 * case.drives.len() as u64)) as u32;
    Case { seed, metadata, ..case }
}

/// A ring on these drives, recorded on so.
pub fn plain(drives: Vec<Drive>, rounds: Vec<Round>) -> Case {
    Case {
        seed: 0,
        metadata: drives.len() as u32 + 2,
        drives,
        segment_bytes: SEGMENT,
        placement: Placement::Adaptive,
        when_full: WhenFull::Wrap,
        depth: 2,
        buffers: 8,
        drift_max: 0,
        flush_interval: Duration::from_millis(2),
        trim_ahead: 0,
        trim_interval: Duration::ZERO,
        rest: 0,
        parts: 0,
        rest_turn: Duration::ZERO,
        queues: 1,
        interval: Duration::from_micros(50),
        pages_max: 6,
        burst: 1,
        parity: 0,
        groups: 1,
        group_wait: Duration::ZERO,
        flow_indexes: false,
        rounds,
        trick: None,
    }
}
