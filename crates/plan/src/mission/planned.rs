//! A design's recording as a mission: its stream, its chunks, its buffers and its host, on so many of its drives.

use base::{Duration, Rate};
use recorder::WhenFull;
use ssd::{Slot, Spec, Start, Uplink};

use super::{Chunk, Mission, Readers, Span};
use crate::answer::Design;
use crate::requirement::{Requirement, Sets};

/// Reads under way of each reader: of long ones as many as extraction has, of random ones as many as come while a drive erases.
const READ_DEPTH: u32 = 4;
const RANDOM_DEPTH: u32 = 256;
/// Chunk buffers that are simulated, at most: more than any host has memory for, and few enough to keep a list of.
const BUFFERS_MAX: u32 = 1 << 24;

impl Mission {
    /// The mission of a requirement on drives of this specification. Its load is the required one, beginning with the busiest part of
    /// the day, for the time that has to be held. Only data drives are simulated; parity drives get the same load. Buffers take the
    /// memory that the host has for them, or else what the design asks for. None if the design has no rate.
    pub fn planned(
        requirement: &Requirement,
        design: &Design,
        spec: &Spec,
        drives: u32,
        start: &Start,
    ) -> Option<Self> {
        let (load, overhead) = (design.load?, design.overhead?);
        let host = &requirement.host;
        let mut spec = spec.clone();
        let mut namespaces = vec![0];
        match requirement.sets {
            Sets::Shared => spec.sets = ssd::spec::Sets::none(),
            Sets::Separate { .. } => namespaces = (0..spec.sets.namespaces.len()).collect(),
        }
        let parts = namespaces.len() as u32;
        if let Some(link) = host.link_for(spec.link, drives) {
            spec.link = link;
        }
        let slot = |seed| Slot {
            spec: spec.clone(),
            start: start.clone(),
            namespaces: namespaces.clone(),
            seed,
        };
        let duty = &requirement.duty;
        let rate = Rate(load.offered_bytes_per_s * overhead.share_of_chunks());
        // A ring over all that the drives hold lasts as long as it keeps.
        let held = design.array.as_ref().map_or(requirement.held_s(), |array| array.take.seconds);
        let drives_of = (0..u64::from(drives)).map(slot).collect();
        let mut mission = Self::new(drives_of, rate, Duration::from_secs_f64(held));
        // What is offered is what comes at the duty's peak.
        let span = |(seconds, share): (f64, f64)| Span {
            time: Duration::from_secs_f64(seconds),
            rate: Rate(rate.0 * share / duty.peak()),
        };
        mission.load = duty.from_busiest(held).into_iter().map(span).collect();
        mission.chunk = Chunk {
            bytes: overhead.chunk_bytes as u32,
            packets: overhead.packets,
            packet_bytes: (overhead.packet_bytes / u64::from(overhead.packets.max(1))) as u32,
        };
        let of_host = host.memory.map(|memory| memory.0 / overhead.chunk_max_bytes);
        let of_host = of_host.map(|buffers| buffers.min(u64::from(BUFFERS_MAX)) as u32);
        let of_plan = design.array.as_ref().map(|array| array.take.buffers);
        mission.buffers = of_host.or(of_plan).unwrap_or(mission.buffers).clamp(2, BUFFERS_MAX);
        mission.placement = requirement.placement;
        mission.when_full = if requirement.wraps() { WhenFull::Wrap } else { WhenFull::Stop };
        mission.uplink = host.uplink.map(|uplink| Uplink {
            read_bytes_per_s: uplink.to_host.0,
            write_bytes_per_s: uplink.to_drives.0,
        });
        mission.readers = readers(requirement, parts > 1);
        if let Sets::Separate { turn } = requirement.sets {
            (mission.separate, mission.rest_turn) = (true, turn);
        }
        Some(mission)
    }
}

/// The required readers, which read for the whole mission. With parts recorded to in turn they keep `apart` from the one in turn.
fn readers(requirement: &Requirement, apart: bool) -> Vec<Readers> {
    let random = requirement.readers.random_bytes.is_some();
    let reader = |_| Readers {
        random,
        bytes: requirement.readers.read_bytes(),
        rate: requirement.readers.rate,
        depth: if random { RANDOM_DEPTH } else { READ_DEPTH },
        drives: None,
        apart,
        begins: Duration::ZERO,
    };
    (0..requirement.readers.count).map(reader).collect()
}
