//! How readers and a recording affect each other: the same stream is recorded with shared and with separate NVM Sets, on simulated drives
//! in virtual time, while readers read at their rate. The latency of every read is kept.
//!
//! Drives have all their dies and some of their blocks, because the number of blocks doesn't change which commands wait for which. They
//! start full, and are overwritten until every block has to be erased before it is written; only then are reads measured.

use std::ops::ControlFlow;

use base::{Duration, Rate};
use recorder::WhenFull;
use ssd::{Spec, Start};

use crate::answer::Design;
use crate::mission::{FirstLoss, Mission, MissionError, Progress, Reads, Span};
use crate::requirement::{Requirement, Sets};
use crate::trial::SPARE_TIMES;

/// Percentiles of latencies that are told.
pub const PERCENTS: [f64; 5] = [50.0, 99.0, 99.9, 99.99, 99.999];

/// Of a drive's blocks so many are simulated, but enough for this many bytes.
const SHARE: f64 = 0.05;
const BYTES_LEAST: u64 = 64 << 30;
/// As many reads as it takes to know what 99.99 % of them don't exceed, those soon after changes left out.
const READS: f64 = 1.25e6;
/// They are looked at for so long.
const TIME_MIN: Duration = Duration::from_secs(10);
const TIME_MAX: Duration = Duration::from_secs(60);
/// The shortest turn that is simulated instead of a longer one, so that there are some.
const TURN_MIN: Duration = Duration::from_secs(3);

/// One way to have readers beside a recording, and what came of it.
#[derive(Clone, Debug)]
pub struct Beside {
    /// Which sets they use.
    pub sets: Sets,
    /// Drives that hold data.
    pub drives: u32,
    /// Bytes a second of chunks that each took.
    pub write_bytes_per_s: f64,
    /// What came of the reads.
    pub reads: Reads,
    /// The most chunk buffers that were in use.
    pub buffers_most: u32,
    /// Chunk buffers.
    pub buffers: u32,
    /// The first loss, if there was one.
    pub first_loss: Option<FirstLoss>,
    /// How long reads were looked at.
    pub time: Duration,
}

/// Shared and separate sets side by side.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Shared sets on as many drives as they need, then on as many as separate ones need if that is another number, then separate ones.
    pub runs: Vec<Beside>,
}

/// Runs a design with separate sets, and the same stream with shared ones, on drives made like this; None if the design has no separate
/// sets. `watch` is told the share that is done, and may break it off.
///
/// # Errors
/// [`MissionError`] if a recording can't be run.
pub fn compare(
    requirement: &Requirement,
    design: &Design,
    spec: &Spec,
    mut watch: impl FnMut(f64) -> ControlFlow<()>,
) -> Result<Option<Comparison>, MissionError> {
    let (Some(split), Some(array)) = (&design.sets, &design.array) else { return Ok(None) };
    let apart = array.data_drives;
    let shared = split.shared_data_drives.filter(|shared| *shared != apart);
    let ways = shared.into_iter().chain([apart]).map(|drives| (Sets::Shared, drives));
    let ways: Vec<(Sets, u32)> = ways.chain([(requirement.sets, apart)]).collect();
    let mut runs = Vec::new();
    for (number, (sets, drives)) in ways.iter().enumerate() {
        let done = |share: f64| (number as f64 + share) / ways.len() as f64;
        let Some(run) = run(requirement, *sets, *drives, design, spec, |share| watch(done(share)))?
        else {
            return Ok(None);
        };
        runs.push(run);
    }
    Ok(Some(Comparison { runs }))
}

/// One of them; None if it is broken off.
fn run(
    requirement: &Requirement,
    sets: Sets,
    drives: u32,
    design: &Design,
    spec: &Spec,
    mut watch: impl FnMut(f64) -> ControlFlow<()>,
) -> Result<Option<Beside>, MissionError> {
    let requirement = Requirement { sets, ..requirement.clone() };
    let small = smaller(spec);
    let Some(mut mission) = Mission::planned(&requirement, design, &small, drives, &Start::Full)
    else {
        return Ok(None);
    };
    let rate = mission.load.iter().map(|span| span.rate.0).fold(0.0, f64::max);
    mission.load = vec![Span { time: Duration::from_secs(3600), rate: Rate(rate) }];
    mission.when_full = WhenFull::Wrap;
    mission.coarse = false;
    let each = rate / f64::from(drives);
    let spare = small.physical_bytes().saturating_sub(small.capacity_bytes) as f64;
    let begins = Duration::from_secs_f64(SPARE_TIMES * spare / each).max(TIME_MIN);
    let reads_per_s =
        requirement.readers.bytes_per_s() / f64::from(requirement.readers.read_bytes());
    let time = Duration::from_secs_f64(READS / reads_per_s).clamp(TIME_MIN, TIME_MAX);
    mission.duration = begins + time;
    // Every part has been written over before reads are looked at, and their time has changes in it.
    let parts = spec.sets.namespaces.len().max(1) as u64;
    let turn = Duration::from_nanos(begins.as_nanos() / parts).max(TURN_MIN);
    mission.rest_turn = mission.rest_turn.min(turn);
    for readers in &mut mission.readers {
        readers.begins = begins;
    }
    let outcome = mission.run(|progress: Progress<'_>| {
        watch(progress.at.as_secs_f64() / progress.duration.as_secs_f64())
    })?;
    if !outcome.whole {
        return Ok(None);
    }
    let written: u64 = outcome.drives.iter().map(|drive| drive.written_bytes).sum();
    Ok(Some(Beside {
        sets,
        drives,
        write_bytes_per_s: written as f64 / outcome.time.as_secs_f64() / f64::from(drives),
        reads: outcome.reads,
        buffers_most: outcome.buffers_most,
        buffers: outcome.buffers,
        first_loss: outcome.first_loss,
        time,
    }))
}

/// The same dies with fewer blocks; the whole drive if it can't be made smaller.
fn smaller(spec: &Spec) -> Spec {
    let mut small = spec.clone();
    let unit = u64::from(spec.mapping.unit_bytes);
    let bytes = (spec.capacity_bytes as f64 * SHARE) as u64;
    small.capacity_bytes = bytes.max(BYTES_LEAST).min(spec.capacity_bytes) / unit * unit;
    let share = small.capacity_bytes as f64 / spec.capacity_bytes as f64;
    if let Some(cache) = &mut small.cache {
        cache.static_bytes = (cache.static_bytes as f64 * share) as u64;
        cache.dynamic_bytes = (cache.dynamic_bytes as f64 * share) as u64;
    }
    if let Some(heat) = &mut small.heat {
        heat.joules_per_k *= share;
    }
    if small.check().is_ok() { small } else { spec.clone() }
}
