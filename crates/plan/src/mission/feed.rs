//! Descriptors of chunks, ready when packets at the mission's load would have filled them. As a packer does, it begins a chunk when a
//! buffer is free, and counts as lost for want of one what comes meanwhile.

use base::{BufferId, Duration, Instant};
use format::section::HEADER_BYTES;
use format::{ChunkSummary, Count, Ledger, PAGE_BYTES, Stage};
use recorder::run::Feed;
use recorder::{ReadyChunk, defaults};

use super::array::time;
use super::{Chunk, Mission, Span};

/// What comes of the load so far.
#[derive(Debug)]
pub struct Descriptors {
    load: Load,
    chunk: Chunk,
    chunk_min: u32,
    /// A chunk is sealed at this age at the latest.
    age_max: Duration,
    /// When data ends.
    end: Instant,
    free: Vec<BufferId>,
    filling: Option<BufferId>,
    /// Since when the chunk at hand is filled, or packets are lost.
    since: Instant,
    /// When it will be full, by the load.
    full: Instant,
    /// When it is sealed: when it is full, at its age at the latest, or when data ends.
    ready: Instant,
    /// Packets that came up to `since`, so that no part of one is counted twice.
    counted: u64,
    losses: Ledger,
    lost: Count,
    stopped: bool,
    /// Chunks handed on.
    chunks: u64,
}

impl Descriptors {
    /// For this mission, whose chunks are `chunk_min` bytes at least.
    pub fn new(mission: &Mission, chunk_min: u32) -> Self {
        let chunk = mission.chunk;
        let mut free: Vec<BufferId> = (0..mission.buffers).map(BufferId).collect();
        let filling = free.pop();
        let mut feed = Self {
            load: Load::new(&mission.load, f64::from(chunk.bytes) / f64::from(chunk.packets)),
            chunk,
            chunk_min,
            age_max: defaults::chunk_age_max(mission.flush_interval),
            end: Instant::START + mission.duration,
            free,
            filling,
            since: Instant::START,
            full: Instant::START,
            ready: Instant::START,
            counted: 0,
            losses: Ledger::default(),
            lost: Count::ZERO,
            stopped: false,
            chunks: 0,
        };
        feed.go_on(0, Instant::START);
        feed
    }

    /// Goes on after so many packets, from that moment.
    fn go_on(&mut self, counted: u64, since: Instant) {
        (self.counted, self.since) = (counted, since);
        self.full = self.load.when(counted + u64::from(self.chunk.packets));
        self.ready = self.full.min(since + self.age_max).min(self.end);
    }

    /// Ends it before its time.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// What was lost for want of a buffer so far, told in chunks or not yet.
    pub const fn lost(&self) -> Count {
        self.lost
    }

    /// Chunks handed on.
    pub const fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Bytes of a chunk that its packets stand for.
    pub fn bytes_of(&self, packets: u64) -> u64 {
        packets * u64::from(self.chunk.bytes) / u64::from(self.chunk.packets)
    }

    /// Counts what came up to `now` as lost, and begins a chunk if there is a buffer.
    fn begin(&mut self, now: Instant) {
        let came = self.load.packets_until(now.min(self.end));
        let packets = came - self.counted;
        if packets > 0 {
            let count = Count::new(packets, packets * u64::from(self.chunk.packet_bytes));
            self.losses.lose(Stage::NoBuffer, count);
            self.lost += count;
        }
        self.go_on(came, now);
        self.filling = self.free.pop();
    }
}

impl Feed for Descriptors {
    fn poll(&mut self, now: Instant) -> Option<ReadyChunk> {
        if self.stopped {
            return None;
        }
        loop {
            if self.filling.is_none() {
                self.begin(now);
            }
            let Some(buffer) = self.filling else {
                // What came is counted; nothing more does, whether a buffer is released or not.
                self.stopped = now >= self.end;
                return None;
            };
            let ready = self.ready;
            if ready > now {
                return None;
            }
            let mut packets = self.chunk.packets;
            if ready < self.full {
                let came = self.load.packets_until(ready) - self.counted;
                packets = came.min(packets.into()) as u32;
            }
            let since = self.since;
            self.go_on(self.counted + u64::from(packets), ready);
            self.stopped = ready >= self.end;
            if packets == 0 && self.losses == Ledger::default() {
                if self.stopped {
                    return None;
                }
                continue;
            }
            self.filling = self.free.pop();
            self.chunks += 1;
            let summary = self.summary(packets, since, ready, false);
            return Some(ReadyChunk { buffer, summary, losses: std::mem::take(&mut self.losses) });
        }
    }

    fn next(&self, _now: Instant) -> Option<Instant> {
        if self.stopped {
            return None;
        }
        // Without a buffer, its release is what wakes it.
        Some(if self.filling.is_some() { self.ready } else { self.end })
    }

    fn release(&mut self, buffer: BufferId) {
        self.free.push(buffer);
    }

    fn ended(&self) -> bool {
        self.stopped
    }

    fn end_chunk(&mut self) -> Option<ReadyChunk> {
        let buffer = self.filling.take().or_else(|| self.free.pop())?;
        let summary = self.summary(0, self.since, self.since, true);
        Some(ReadyChunk { buffer, summary, losses: std::mem::take(&mut self.losses) })
    }
}

impl Descriptors {
    fn summary(&self, packets: u32, since: Instant, ready: Instant, end: bool) -> ChunkSummary {
        let bytes = self.bytes_of(packets.into()).max(HEADER_BYTES as u64 + 1);
        let length = (bytes.next_multiple_of(PAGE_BYTES) as u32).max(self.chunk_min);
        let original = u64::from(packets) * u64::from(self.chunk.packet_bytes);
        let none = packets == 0;
        ChunkSummary {
            length,
            body_crc: 0,
            queue: 0,
            packets,
            packets_start: HEADER_BYTES as u32,
            packets_end: length,
            // Less of them may be kept than a chunk could hold whole.
            captured_bytes: original.min(u64::from(length)),
            original_bytes: original,
            first_ns: if none { u64::MAX } else { time(since).as_nanos() },
            last_ns: if none { 0 } else { time(ready).as_nanos() },
            sealed_ns: time(ready).as_nanos(),
            plain: true,
            loss: self.losses != Ledger::default(),
            end,
        }
    }
}

/// Packets over time.
#[derive(Debug)]
struct Load {
    /// End of each span in ns from the period's start, and packets until there; packets a ns in it.
    spans: Vec<(f64, f64, f64)>,
    period_ns: f64,
    period_packets: f64,
}

impl Load {
    fn new(load: &[Span], stored_per_packet: f64) -> Self {
        let (mut ns, mut packets) = (0.0, 0.0);
        let mut spans = Vec::new();
        for span in load {
            let per_ns = span.rate.0 / stored_per_packet / 1e9;
            ns += span.time.as_nanos() as f64;
            packets += span.time.as_nanos() as f64 * per_ns;
            spans.push((ns, packets, per_ns));
        }
        Self { spans, period_ns: ns, period_packets: packets }
    }

    /// Packets that have come by then.
    fn packets_until(&self, at: Instant) -> u64 {
        let ns = at.as_nanos() as f64;
        let periods = (ns / self.period_ns).floor();
        let within = ns - periods * self.period_ns;
        let span = self.spans.iter().find(|(end, ..)| within < *end).or(self.spans.last());
        let Some(&(end, packets, per_ns)) = span else { return 0 };
        // A hair more, so that the packet that `when` named has come.
        (periods * self.period_packets + packets - (end - within) * per_ns + 1e-3) as u64
    }

    /// When so many packets have come.
    fn when(&self, packets: u64) -> Instant {
        let wanted = packets as f64;
        if self.period_packets <= 0.0 {
            return Instant::from_nanos(u64::MAX);
        }
        let periods = ((wanted / self.period_packets).ceil() - 1.0).max(0.0);
        let within = wanted - periods * self.period_packets;
        let span = self.spans.iter().find(|(_, until, _)| within <= *until).or(self.spans.last());
        let Some(&(end, until, per_ns)) = span else { return Instant::from_nanos(u64::MAX) };
        let before = if per_ns > 0.0 { (until - within) / per_ns } else { 0.0 };
        Instant::from_nanos((periods * self.period_ns + end - before).ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use base::Rate;

    use super::*;

    #[test]
    fn packets_come_at_the_spans_rates_over_and_over() {
        let span = |s, rate| Span { time: Duration::from_secs(s), rate: Rate(rate) };
        let load = Load::new(&[span(10, 1000.0), span(5, 0.0), span(5, 4000.0)], 100.0);
        let at = |s: u64| Instant::START + Duration::from_secs(s);
        for (s, packets) in [(0, 0), (5, 50), (10, 100), (12, 100), (16, 140), (20, 300), (25, 350)]
        {
            assert_eq!(load.packets_until(at(s)), packets, "after {s} s");
        }
        for packets in 1..900 {
            let when = load.when(packets);
            assert_eq!(load.packets_until(when), packets, "at {when:?}");
        }
    }
}
