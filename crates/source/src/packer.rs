//! Packs one queue's packets into chunk buffers: the hot path between a source and the recorder.
//!
//! One packer belongs to one source thread. It copies each packet once, into its chunk; it takes no
//! lock, makes no system call and allocates nothing for a packet. Buffers come and go by channel,
//! once for a chunk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{BufferId, Duration, Timestamp};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use device::{Buffer, Pool, Waker};
use format::chunk::PACKET_CHUNK_MAX_LEAST;
use format::pcapng::{self, InterfaceTotals};
use format::{ChunkSummary, ChunkWriter, Count, Interface, Ledger, NoRoom, Packet, Stage};

use crate::clock;
use crate::readable::TICK;
use crate::retention::Retention;
use crate::sink::{Ended, Loss, Sink};

/// A chunk that a packer has sealed.
#[derive(Clone, Debug)]
pub struct Filled {
    /// Its memory, idle in the pool.
    pub buffer: BufferId,
    /// What is in it.
    pub summary: ChunkSummary,
    /// What its queue lost since its last chunk, and how the packets in it were shortened.
    pub losses: Ledger,
}

/// What a packer has counted so far, for others to look at.
#[derive(Debug, Default)]
pub struct Progress {
    /// Packets offered, lost ones among them.
    pub offered_packets: AtomicU64,
    /// Their wire bytes, where known.
    pub offered_bytes: AtomicU64,
    /// Packets lost, by [`Stage`].
    pub lost_packets: [AtomicU64; Stage::ALL.len()],
    /// Packets truncated because no chunk holds them whole.
    pub truncated_packets: AtomicU64,
    /// Bytes cut from them, and from interface descriptions.
    pub truncated_bytes: AtomicU64,
}

/// What all packers of a recording share.
#[derive(Clone, Debug)]
pub struct Supply {
    /// The memory.
    pub pool: Arc<Pool>,
    /// Buffers that are free.
    pub free: Receiver<BufferId>,
    /// Where sealed chunks go.
    pub ready: Sender<Filled>,
    /// Wakes whoever takes them.
    pub waker: Waker,
    /// Set when the recording is to end.
    pub stop: Arc<AtomicBool>,
    /// Bytes of packets left until the packers end the recording themselves; `None`: no limit.
    /// They count at each chunk, so the limit is passed by at most a chunk for each queue.
    pub bytes_left: Option<Arc<AtomicU64>>,
    /// Shortest chunk in bytes.
    pub chunk_min: u32,
    /// Longest chunk in bytes; at least [`PACKET_CHUNK_MAX_LEAST`].
    pub chunk_max: u32,
    /// A chunk is sealed at this age at the latest.
    pub flush_interval: Duration,
    /// When the take started.
    pub started: Timestamp,
}

/// An interface and what became of its packets.
#[derive(Debug)]
struct Counted {
    interface: Interface,
    /// Bytes of its texts that its description leaves out; 0 once they are entered in the ledger.
    bytes_cut: u64,
    /// Packets lost since the last one that was packed, for its `epb_dropcount`.
    dropped: u64,
    /// Lost since the last chunk, by stage.
    lost: [u64; Stage::ALL.len()],
    totals: InterfaceTotals,
}

/// How a source takes it when there is no buffer, and when the recording is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressure {
    /// It is held back until there is a buffer, and ends at its next packet.
    Waits,
    /// What finds no buffer is lost. It ends at its next packet.
    Drops,
    /// What finds no buffer is lost. Packets that had arrived when the recording was to end are still
    /// taken: it is told at a tick, which must come however many packets do.
    DropsAndDrains,
}

/// The sink in front of the recorder.
#[derive(Debug)]
pub struct Packer {
    supply: Supply,
    queue: u16,
    pressure: Pressure,
    progress: Arc<Progress>,
    writer: Option<ChunkWriter<Buffer>>,
    /// When the chunk got its first packet, by the wall clock at a tick after it.
    seen: Option<Timestamp>,
    /// That packet's own time.
    first: Timestamp,
    interfaces: Vec<Counted>,
    losses: Ledger,
    /// Offered and packed since the progress was last published.
    unpublished: Ledger,
    /// What is kept of each packet; None for all of it.
    retention: Option<Box<dyn Retention>>,
    /// When the time was last looked at because a packet was left out.
    heard: Timestamp,
}

/// Losses are published after this many at the latest, so that a long stall shows while it lasts.
const PUBLISH_AFTER: u64 = 1024;

impl Packer {
    /// A packer for one queue of a source.
    ///
    /// # Panics
    /// If chunks are shorter than [`PACKET_CHUNK_MAX_LEAST`]: an empty one must take any interface and any packet.
    pub fn new(supply: Supply, queue: u16, pressure: Pressure, progress: Arc<Progress>) -> Self {
        let chunk_max = supply.chunk_max;
        assert!(chunk_max >= PACKET_CHUNK_MAX_LEAST, "chunks of {chunk_max} bytes are too short");
        Self {
            supply,
            queue,
            pressure,
            progress,
            writer: None,
            seen: None,
            first: Timestamp::MIN,
            interfaces: Vec::new(),
            losses: Ledger::default(),
            unpublished: Ledger::default(),
            retention: None,
            heard: Timestamp::MIN,
        }
    }

    /// Keeps of each packet what this rule says, if there is one.
    #[must_use]
    pub fn retaining(self, retention: Option<Box<dyn Retention>>) -> Self {
        Self { retention, ..self }
    }

    /// Hands in what is left. Waits for a buffer if losses are still to be told.
    pub fn finish(mut self) {
        let untold = self.losses != Ledger::default();
        if self.writer.is_none() && untold {
            self.take_buffer(true);
        }
        if self.writer.as_ref().is_some_and(|w| w.packets() > 0) || untold {
            for number in 0..self.interfaces.len() as u32 {
                // Its statistics need its description; an empty chunk has room for it.
                if self.interfaces[number as usize].lost.iter().any(|&n| n > 0) {
                    self.describe(number).ok();
                }
            }
            self.seal();
        }
        self.publish();
    }

    #[inline]
    fn stopping(&self) -> bool {
        self.supply.stop.load(Ordering::Relaxed)
    }

    /// Starts a chunk if a buffer can be had. A waiting source waits until there is one, or, unless
    /// `even_if_stopping`, until the recording is to end.
    fn take_buffer(&mut self, even_if_stopping: bool) -> bool {
        let mut buffer = self.supply.free.try_recv().ok();
        while buffer.is_none() && (self.pressure == Pressure::Waits || even_if_stopping) {
            if self.stopping() && !even_if_stopping {
                break;
            }
            match self.supply.free.recv_timeout(std::time::Duration::from_millis(50)) {
                Ok(found) => buffer = Some(found),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let Some(buffer) = buffer else { return false };
        let memory = self.supply.pool.hold(buffer);
        let Supply { chunk_min, chunk_max, .. } = self.supply;
        self.writer = Some(ChunkWriter::new(memory, chunk_min, chunk_max, self.queue));
        self.seen = None;
        true
    }

    /// Describes an interface in the chunk, if there is one that doesn't know it yet.
    fn describe(&mut self, number: u32) -> Result<(), NoRoom> {
        let Some(writer) = self.writer.as_mut().filter(|w| !w.knows(number)) else { return Ok(()) };
        let counted = &mut self.interfaces[number as usize];
        writer.interface(number, &counted.interface)?;
        let cut = Count::new(0, std::mem::take(&mut counted.bytes_cut));
        self.losses.truncated += cut;
        self.unpublished.truncated += cut;
        Ok(())
    }

    /// Appends a packet that an empty chunk refused: the part of it that fits.
    #[cold]
    fn cut_to_fit(&mut self, packet: &Packet<'_>) {
        let Some(writer) = &mut self.writer else { return };
        let dropped = self.interfaces[packet.interface as usize].dropped;
        let Ok(bytes) = writer.packet_cut_to_fit(packet, dropped) else {
            unreachable!("an empty chunk has room for a packet that is cut to fit it")
        };
        self.losses.truncated += Count::new(1, bytes);
        self.unpublished.truncated += Count::new(1, bytes);
    }

    /// Seals the chunk because it has no room for what comes next. Sealing an empty one for that would never
    /// end: the next is as short.
    fn seal_full(&mut self) {
        let packets = self.writer.as_ref().map(ChunkWriter::packets);
        assert_ne!(packets, Some(0), "an empty chunk has room for any interface and packet");
        self.seal();
    }

    /// Seals the chunk and sends it off.
    fn seal(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        let now = clock::now();
        let mut lossy = Vec::new();
        for (number, counted) in (0u32..).zip(&mut self.interfaces) {
            if counted.lost.iter().all(|&n| n == 0) {
                continue;
            }
            let named: Vec<String> = Stage::ALL
                .iter()
                .zip(counted.lost)
                .filter(|&(_, n)| n > 0)
                .map(|(stage, n)| format!("{stage} {n}"))
                .collect();
            counted.totals.start_ns = self.supply.started.as_nanos();
            counted.totals.end_ns = now.as_nanos();
            counted.totals.comment =
                format!("packets lost since the previous statistics: {}", named.join(", "));
            if writer.knows(number) {
                lossy.push((number, counted.totals.clone()));
                counted.lost = Default::default();
            }
        }
        let sealed = writer.seal(&lossy, now, false);
        let losses = std::mem::take(&mut self.losses);
        self.count_towards_limit(sealed.summary.captured_bytes);
        let filled = Filled { buffer: sealed.buffer.release(), summary: sealed.summary, losses };
        // Nobody takes it any more only when the recording has failed as a whole, which it reports.
        if self.supply.ready.send(filled).is_ok() {
            self.supply.waker.wake();
        }
        self.publish();
    }

    /// Ends the recording when `bytes` more reach its limit.
    fn count_towards_limit(&self, bytes: u64) {
        let Some(left) = &self.supply.bytes_left else { return };
        let mut reached = false;
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            reached = left <= bytes;
            Some(left.saturating_sub(bytes))
        })
        .ok();
        if reached {
            self.supply.stop.store(true, Ordering::Relaxed);
        }
    }

    fn publish(&mut self) {
        let counted = std::mem::take(&mut self.unpublished);
        let progress = &self.progress;
        progress.offered_packets.fetch_add(counted.offered.packets, Ordering::Relaxed);
        progress.offered_bytes.fetch_add(counted.offered.bytes, Ordering::Relaxed);
        if !counted.truncated.is_zero() {
            let Count { packets, bytes } = counted.truncated;
            progress.truncated_packets.fetch_add(packets, Ordering::Relaxed);
            progress.truncated_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        for stage in Stage::ALL {
            let lost = counted.lost(stage).packets;
            if lost > 0 {
                progress.lost_packets[stage.index()].fetch_add(lost, Ordering::Relaxed);
            }
        }
    }

    fn lose(&mut self, interface: u32, stage: Stage, count: Count) {
        self.losses.lose(stage, count);
        self.unpublished.lose(stage, count);
        let counted = &mut self.interfaces[interface as usize];
        if !stage.is_asked_for() {
            counted.totals.received += count.packets;
            counted.dropped += count.packets;
            counted.lost[stage.index()] += count.packets;
            if stage == Stage::Interface {
                counted.totals.dropped_by_interface += count.packets;
            } else {
                counted.totals.dropped_by_system += count.packets;
            }
        }
        if self.unpublished.lost(stage).packets >= PUBLISH_AFTER {
            self.publish();
        }
    }

    /// What comes before a packet's own bytes when the chunk doesn't take it as it is.
    #[cold]
    fn make_room(&mut self, packet: &Packet<'_>) -> Result<bool, Ended> {
        loop {
            if self.writer.is_none() && !self.take_buffer(false) {
                if self.pressure == Pressure::Waits {
                    return Err(Ended);
                }
                let count = Count::new(1, u64::from(packet.original_length));
                self.lose(packet.interface, Stage::NoBuffer, count);
                return Ok(false);
            }
            if self.describe(packet.interface).is_ok() {
                return Ok(true);
            }
            self.seal_full();
        }
    }

    /// Packs a packet of which so many bytes were left out.
    #[inline]
    fn pack(&mut self, packet: &Packet<'_>, left_out: u64) -> Result<(), Ended> {
        let number = packet.interface;
        loop {
            if !self.writer.as_ref().is_some_and(|w| w.knows(number)) && !self.make_room(packet)? {
                return Ok(());
            }
            let Some(writer) = &mut self.writer else { return Ok(()) };
            let first = writer.packets() == 0;
            if writer.packet(packet, self.interfaces[number as usize].dropped).is_err() {
                if !first {
                    self.seal_full();
                    continue;
                }
                self.cut_to_fit(packet);
            }
            if first {
                self.first = packet.timestamp;
            }
            let counted = &mut self.interfaces[number as usize];
            counted.dropped = 0;
            counted.totals.received += 1;
            counted.totals.delivered += 1;
            self.unpublished.store(Count::new(1, u64::from(packet.original_length)));
            if left_out > 0 {
                self.losses.sliced += Count::new(1, left_out);
            }
            self.seal_if_old(packet.timestamp);
            return Ok(());
        }
    }

    /// Seals the chunk if it is old when a packet of this time comes. A source that can't wait stamps by the wall clock: its packets
    /// tell a chunk's age.
    #[inline]
    fn seal_if_old(&mut self, now: Timestamp) {
        if self.pressure != Pressure::Waits && now.since(self.first) >= self.supply.flush_interval {
            self.seal();
        }
    }

    /// Packs what is to be kept of a packet.
    fn retain(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        let Some(retention) = &mut self.retention else { return self.pack(packet, 0) };
        let interface = &self.interfaces[packet.interface as usize].interface;
        let Some(bytes) = retention.keep(interface.link_type, packet) else {
            return self.leave_out(packet);
        };
        match packet.data.split_at_checked(bytes) {
            Some((data, rest)) => self.pack(&Packet { data, ..*packet }, rest.len() as u64),
            None => self.pack(packet, 0),
        }
    }

    /// Counts a packet that is not to be kept. The source takes packets for a sign of life and may not tick: a chunk must be sealed
    /// in time although nothing comes into it.
    fn leave_out(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        let count = Count::new(1, u64::from(packet.original_length));
        self.lose(packet.interface, Stage::Cut, count);
        if self.writer.as_ref().is_some_and(|writer| writer.packets() > 0) {
            self.seal_if_old(packet.timestamp);
        }
        let now = match self.pressure {
            Pressure::Waits => clock::coarse(),
            Pressure::Drops | Pressure::DropsAndDrains => return Ok(()),
        };
        if now.since(self.heard) < TICK && now >= self.heard {
            return Ok(());
        }
        self.heard = now;
        self.tick(now)
    }
}

impl Sink for Packer {
    fn interface(&mut self, interface: &Interface) -> u32 {
        let mut interface = interface.clone();
        if let Some(retention) = &self.retention {
            retention.describe(&mut interface);
        }
        self.interfaces.push(Counted {
            bytes_cut: pcapng::interface_bytes_cut(&interface),
            interface,
            dropped: 0,
            lost: Default::default(),
            totals: InterfaceTotals::default(),
        });
        self.interfaces.len() as u32 - 1
    }

    #[inline]
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        if self.pressure != Pressure::DropsAndDrains && self.stopping() {
            return Err(Ended);
        }
        match self.retention {
            None => self.pack(packet, 0),
            Some(_) => self.retain(packet),
        }
    }

    fn lost(&mut self, interface: u32, stage: Loss, packets: u64, bytes: u64) {
        let stage = match stage {
            Loss::Interface => Stage::Interface,
            Loss::KernelRing => Stage::KernelRing,
            Loss::Filtered => Stage::Filtered,
        };
        self.lose(interface, stage, Count::new(packets, bytes));
    }

    fn tick(&mut self, now: Timestamp) -> Result<(), Ended> {
        let filled = self.writer.as_ref().is_some_and(|w| w.packets() > 0);
        if filled {
            // A clock that was set back must not hold the chunk for as long: its age begins again.
            let seen = self.seen.map_or(now, |seen| seen.min(now));
            self.seen = Some(seen);
            if now.since(seen) >= self.supply.flush_interval {
                self.seal();
            }
        }
        self.publish();
        if self.stopping() { Err(Ended) } else { Ok(()) }
    }
}
