//! A design's recording as a mission: its stream, its chunks, its buffers and its host, on so many of its drives.

use base::{Duration, Rate};
use recorder::WhenFull;
use ssd::{Slot, Spec, Start, Uplink};

use super::{Chunk, Mission, Readers};
use crate::answer::Design;
use crate::requirement::Requirement;

/// Bytes of a reader's read, as extraction reads; and each one's reads under way.
const READ_BYTES: u32 = 1 << 20;
const READ_DEPTH: u32 = 4;

impl Mission {
    /// What is to be recorded for a requirement, on drives made like this: at the full rate, for as many seconds at that rate as have
    /// to be held. Drives are those for data: parity drives get as much as they do, so they stand for all. Buffers are the memory
    /// that the host has for them, or what the design asks for. None if the design doesn't say what the stream comes to.
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
        if let Some(link) = host.link_for(spec.link, drives) {
            spec.link = link;
        }
        let slot =
            |seed| Slot { spec: spec.clone(), start: start.clone(), namespaces: vec![0], seed };
        let rate = Rate(load.offered_bytes_per_s * overhead.share_of_chunks());
        let held = Duration::from_secs_f64(load.held_s);
        let mut mission = Self::new((0..u64::from(drives)).map(slot).collect(), rate, held);
        mission.chunk = Chunk {
            bytes: overhead.chunk_bytes as u32,
            packets: overhead.packets,
            packet_bytes: (overhead.packet_bytes / u64::from(overhead.packets.max(1))) as u32,
        };
        let of_host = host.memory.map(|memory| memory.0 / overhead.chunk_max_bytes);
        let of_host = of_host.map(|buffers| buffers.min(u64::from(u32::MAX)) as u32);
        let of_plan = design.array.as_ref().map(|array| array.take.buffers);
        mission.buffers = of_host.or(of_plan).unwrap_or(mission.buffers).max(2);
        mission.placement = requirement.placement;
        mission.when_full = if requirement.wraps() { WhenFull::Wrap } else { WhenFull::Stop };
        mission.uplink = host.uplink.map(|uplink| Uplink {
            read_bytes_per_s: uplink.to_host.0,
            write_bytes_per_s: uplink.to_drives.0,
        });
        let reader = |_| Readers {
            random: false,
            bytes: READ_BYTES,
            rate: requirement.readers.rate,
            depth: READ_DEPTH,
            drives: None,
        };
        mission.readers = (0..requirement.readers.count).map(reader).collect();
        Some(mission)
    }
}
