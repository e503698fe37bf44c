//! A recording whose chunks are described and not made: a mission in virtual time.

use anyhow::{Context, Result, bail};
use base::{Duration, Rate};
use format::layout::CHUNK_MAX_DEFAULT;
use plan::mission::{Chunk, Mission};
use source::spec::SourceSpec;
use source::synthetic::Sizes;
use target::{SimDrives, SimTarget, Uplink, array};

use super::builder::Builder;
use super::simulated::suits;

/// The mission that a recording is.
pub fn mission(job: &Builder) -> Result<Mission> {
    let Some(targets) = SimTarget::all(&array::named(&job.target))? else {
        bail!("--virtual is for simulated drives (--to sim:NAME*6): real ones take real data");
    };
    let spec = job.spec()?;
    suits(&spec, job)?;
    let drives = SimDrives::new(&targets, job.options.uplink, &job.known_profiles())?;
    if job.options.new.parity.is_some_and(|parity| parity > 0) {
        bail!(
            "--virtual describes chunks and makes none, so there is nothing for --parity to be of: leave one of them out"
        );
    }
    of(job, &spec, &drives)
}

fn of(job: &Builder, spec: &SourceSpec, drives: &SimDrives) -> Result<Mission> {
    let options = &job.options;
    let (packet_bytes, rate) = match (spec, spec.rate()) {
        (SourceSpec::Synthetic(synthetic), Some(rate)) => {
            synthetic.check()?;
            (mean_bytes(synthetic.sizes), rate)
        }
        (SourceSpec::Traffic(traffic), Some(rate)) => {
            traffic.check()?;
            (traffic.mean_bytes(), rate)
        }
        _ => bail!("{}: --virtual needs a source of a rate: synthetic:12.5GB/s", job.source),
    };
    if !options.filter.is_empty() || options.snap_bytes > 0 {
        bail!("--filter and --snap look at packets, and --virtual has none: leave them out");
    }
    if options.slice.is_some() || options.cut.is_some() {
        bail!("--slice and --cut look at packets, and --virtual has none: leave them out");
    }
    let duration = options.duration.context("--virtual needs to know how long: give --for")?;
    let longest = options.new.chunk.map(|chunk| u32::try_from(chunk.0)).transpose();
    let bytes = longest.context("--chunk")?.unwrap_or(CHUNK_MAX_DEFAULT);
    let chunk = Chunk::of(bytes, packet_bytes);
    let payload = f64::from(chunk.packets) * f64::from(chunk.packet_bytes);
    let stored = Rate(rate.0 * f64::from(chunk.bytes) / payload);
    // What is to be stored at most is as good as a time.
    let until = options.until_bytes.map(|bytes| rate.time_for(bytes.0));
    let duration = until.map_or(duration, |until: Duration| until.min(duration));
    let mut mission = Mission::new(drives.slots().to_vec(), stored, duration);
    mission.uplink = drives.uplink().map(Uplink::link);
    mission.chunk = chunk;
    mission.buffers = (options.memory.0 / u64::from(bytes.max(1))).clamp(4, 1 << 20) as u32;
    mission.segment_bytes = options.new.segment.map(|segment| segment.0);
    mission.placement = options.placement;
    mission.when_full = options.when_full;
    mission.depth = options.depth;
    mission.drift_max = options.drift_max.map(|drift| drift.0);
    mission.flush_interval = options.flush_interval;
    if let Some(trim_ahead) = options.trim_ahead {
        mission.trim_ahead = trim_ahead;
    }
    mission.trim_rate = options.trim_rate;
    mission.rest = options.rest;
    mission.separate = options.parts(|| Ok(drives.places()))?.is_some();
    mission.rest_turn = options.turn();
    Ok(mission)
}

/// Mean length of packets of these sizes, in bytes.
fn mean_bytes(sizes: Sizes) -> u32 {
    match sizes {
        Sizes::Fixed(bytes) => u32::from(bytes),
        Sizes::Imix => {
            const ROUND: u64 = 12;
            (0..ROUND).map(|n| u32::from(sizes.of(n))).sum::<u32>().div_ceil(ROUND as u32)
        }
    }
}
