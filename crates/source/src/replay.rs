//! Replays packets through a sender at their pace: waits until each is due, sends in batches when it
//! is behind, and accounts for everything that did not go out. A [`Replay`] is a [`Sink`], so any
//! source or reader can be replayed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use base::{Duration, Timestamp};
use format::{Interface, LinkType, Packet};

use crate::pace::{Pace, Schedule};
use crate::sink::{Ended, Loss, Sink};
use crate::transmit::{Batch, SendError, Sender, Unsendable};

/// Bytes that a batch holds before it is sent, however few packets they are.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// How long before a packet is due sleeping gives way to spinning: the kernel's timer slack
/// (50 us by default) and a wake-up fit in.
const SPIN: Duration = Duration::from_micros(150);

/// Longest sleep, so that a stop is seen soon.
const SLEEP_MAX: Duration = Duration::from_millis(50);

/// Wait before sending again to a full queue.
const BUSY_WAIT: std::time::Duration = std::time::Duration::from_micros(50);

/// What became of a replay. Each packet offered is counted in exactly one of `packets`, `oversize`,
/// `truncated`, `not_udp`, `other_link_type` and `unsent`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplaySummary {
    /// Packets offered.
    pub offered: u64,
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, as the sender counts a packet (frames, or UDP payloads).
    pub bytes: u64,
    /// Not sent: longer than the target takes.
    pub oversize: u64,
    /// The longest of those in bytes.
    pub oversize_bytes_max: usize,
    /// Not sent: the capture kept only a part of them (snap length, or truncated to fit a chunk).
    pub truncated: u64,
    /// Not sent: a UDP socket sends UDP payloads, and they have none.
    pub not_udp: u64,
    /// Not sent: frames of a kind that the target doesn't take.
    pub other_link_type: u64,
    /// Not sent: the replay was stopped or failed before their turn.
    pub unsent: u64,
    /// Packets that the recording had lost where it was recorded; a hole in what was sent.
    pub lost_before: u64,
    /// Times that the kernel's queue was full and sending was tried again.
    pub busy_retries: u64,
    /// Times that the receiver said that nobody listens.
    pub nobody_listened: u64,
    /// How late the latest packet left, at recorded pace: from due to the return of the system call.
    pub late_max: Duration,
    /// The sum of all packets' lateness, for [`ReplaySummary::late_mean`].
    pub late_sum: Duration,
    /// From the first packet's start to the last system call's return.
    pub elapsed: Duration,
}

impl ReplaySummary {
    /// How late a packet left on average; zero if none did, or at [`Pace::Fastest`].
    pub fn late_mean(&self) -> Duration {
        Duration::from_nanos(self.late_sum.as_nanos() / self.packets.max(1))
    }
}

/// Why a replay ended early, with what was sent until then.
#[derive(Debug)]
pub struct ReplayError {
    /// What the sender said.
    pub error: SendError,
    /// What was sent until then.
    pub summary: Box<ReplaySummary>,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "replay ended after {} packets: {}", self.summary.packets, self.error)
    }
}

impl std::error::Error for ReplayError {}

/// A replay under way. Push packets into it as a [`Sink`], then [`Replay::finish`].
#[derive(Debug)]
pub struct Replay<'s, S> {
    sender: S,
    schedule: Schedule,
    paced: bool,
    stop: &'s AtomicBool,
    start: Option<Instant>,
    link_types: Vec<LinkType>,
    batch: Batch,
    batch_bytes: usize,
    due: Vec<Duration>,
    summary: ReplaySummary,
    error: Option<SendError>,
}

impl<'s, S: Sender> Replay<'s, S> {
    /// A replay through `sender` that ends soon after `stop` becomes true.
    pub fn new(sender: S, pace: Pace, stop: &'s AtomicBool) -> Self {
        Self {
            sender,
            schedule: Schedule::new(pace),
            paced: pace != Pace::Fastest,
            stop,
            start: None,
            link_types: Vec::new(),
            batch: Batch::new(),
            batch_bytes: 0,
            due: Vec::with_capacity(Batch::PACKETS_MAX),
            summary: ReplaySummary::default(),
            error: None,
        }
    }

    /// What was sent until now.
    pub const fn summary(&self) -> &ReplaySummary {
        &self.summary
    }

    /// Sends what is left and sums up.
    ///
    /// # Errors
    /// [`ReplayError`] if the sender failed, now or before.
    pub fn finish(mut self) -> Result<ReplaySummary, ReplayError> {
        // An end is in `error` already, or a stop, which is no error.
        let _ended = self.flush();
        match self.error {
            None => Ok(self.summary),
            Some(error) => Err(ReplayError { error, summary: Box::new(self.summary) }),
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.error.is_some()
    }

    /// Waits until `due` after `start`. Returns whether there was anything to wait for.
    fn wait(&mut self, start: Instant, due: Duration) -> Result<bool, Ended> {
        let mut now = since(start);
        if now >= due {
            return Ok(false);
        }
        // What was due before must not wait for this one.
        self.flush()?;
        loop {
            now = since(start);
            if now >= due {
                return Ok(true);
            }
            if self.stopped() {
                return Err(Ended);
            }
            let left = due - now;
            if left > SPIN {
                thread::sleep((left - SPIN).min(SLEEP_MAX).into());
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Sends the batch; what can't go is counted.
    fn flush(&mut self) -> Result<(), Ended> {
        let mut from = 0;
        while from < self.batch.len() {
            if self.stopped() {
                break;
            }
            match self.sender.send(&self.batch, from) {
                Ok(sent) => {
                    self.count_sent(from, sent);
                    from += sent;
                }
                Err(SendError::Oversize { bytes }) => {
                    self.summary.oversize += 1;
                    self.summary.oversize_bytes_max = self.summary.oversize_bytes_max.max(bytes);
                    from += 1;
                }
                Err(SendError::NobodyListens) => self.summary.nobody_listened += 1,
                Err(SendError::Busy) => {
                    self.summary.busy_retries += 1;
                    thread::sleep(BUSY_WAIT);
                }
                Err(error) => self.error = Some(error),
            }
        }
        let unsent = self.batch.len() - from;
        self.summary.unsent += unsent as u64;
        self.batch.clear();
        self.batch_bytes = 0;
        self.due.clear();
        if self.stopped() { Err(Ended) } else { Ok(()) }
    }

    fn count_sent(&mut self, from: usize, sent: usize) {
        let elapsed = self.start.map_or(Duration::ZERO, since);
        self.summary.elapsed = elapsed;
        self.summary.packets += sent as u64;
        for i in from..from + sent {
            self.summary.bytes += self.batch.get(i).len() as u64;
            if self.paced {
                let late = elapsed.saturating_sub(self.due[i]);
                self.summary.late_max = self.summary.late_max.max(late);
                self.summary.late_sum = self.summary.late_sum + late;
            }
        }
    }
}

impl<S: Sender> Sink for Replay<'_, S> {
    fn interface(&mut self, interface: &Interface) -> u32 {
        self.link_types.push(interface.link_type);
        (self.link_types.len() - 1) as u32
    }

    /// Sends the packet when it is due, or with the next ones if it is late already.
    ///
    /// # Panics
    /// If the packet's interface was never declared.
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        self.summary.offered += 1;
        if self.stopped() {
            self.summary.unsent += 1;
            return Err(Ended);
        }
        // Also a packet that can't be sent keeps its place in time.
        let due = self.schedule.due(packet.timestamp);
        let start = *self.start.get_or_insert_with(Instant::now);
        if (packet.data.len() as u64) < u64::from(packet.original_length) {
            self.summary.truncated += 1;
            return Ok(());
        }
        let link_type = self.link_types[packet.interface as usize];
        let payload = match self.sender.payload(link_type, packet.data) {
            Ok(payload) => payload,
            Err(Unsendable::NotUdp) => {
                self.summary.not_udp += 1;
                return Ok(());
            }
            Err(Unsendable::LinkType) => {
                self.summary.other_link_type += 1;
                return Ok(());
            }
        };
        let waited = self.wait(start, due).inspect_err(|_| self.summary.unsent += 1)?;
        self.batch.push(payload);
        self.batch_bytes += payload.len();
        self.due.push(due);
        // In time: it goes now. Behind: the cost of a system call is shared until it has caught up.
        if waited || self.batch.len() == Batch::PACKETS_MAX || self.batch_bytes >= BATCH_BYTES_MAX {
            self.flush()?;
        }
        Ok(())
    }

    fn lost(&mut self, _interface: u32, _stage: Loss, packets: u64, _bytes: u64) {
        self.summary.lost_before += packets;
    }

    fn tick(&mut self, _now: Timestamp) -> Result<(), Ended> {
        self.flush()
    }
}

fn since(start: Instant) -> Duration {
    Duration::from_nanos(start.elapsed().as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Takes up to `room` packets a call and answers with the planned errors first.
    #[derive(Default)]
    struct Recorder {
        sent: Vec<Vec<u8>>,
        plan: VecDeque<SendError>,
        room: usize,
        bytes_max: usize,
    }

    impl Sender for &mut Recorder {
        fn payload<'p>(&self, link_type: LinkType, data: &'p [u8]) -> Result<&'p [u8], Unsendable> {
            match link_type {
                LinkType::USER0 => Ok(data),
                LinkType::RAW_IP => Err(Unsendable::NotUdp),
                _ => Err(Unsendable::LinkType),
            }
        }

        fn send(&mut self, batch: &Batch, from: usize) -> Result<usize, SendError> {
            if let Some(error) = self.plan.pop_front() {
                return Err(error);
            }
            let mut sent = 0;
            for i in (from..batch.len()).take(self.room) {
                if batch.get(i).len() > self.bytes_max {
                    break;
                }
                self.sent.push(batch.get(i).to_vec());
                sent += 1;
            }
            if sent == 0 {
                return Err(SendError::Oversize { bytes: batch.get(from).len() });
            }
            Ok(sent)
        }
    }

    fn recorder() -> Recorder {
        Recorder { room: 7, bytes_max: 100, ..Default::default() }
    }

    fn interface(link_type: LinkType) -> Interface {
        Interface {
            name: "test".into(),
            description: String::new(),
            link_type,
            snap_length: 0,
            filter: String::new(),
            speed_bits: 0,
        }
    }

    fn packet(data: &[u8], ns: u64) -> Packet<'_> {
        Packet {
            interface: 0,
            timestamp: Timestamp::from_nanos(1_700_000_000_000_000_000 + ns),
            original_length: data.len() as u32,
            data,
            options: &[],
        }
    }

    #[test]
    fn everything_goes_out_in_order_through_full_queues_and_short_sends() {
        let mut sender = recorder();
        sender.plan = [SendError::Busy, SendError::NobodyListens, SendError::Busy].into();
        let stop = AtomicBool::new(false);
        let mut replay = Replay::new(&mut sender, Pace::Fastest, &stop);
        replay.interface(&interface(LinkType::USER0));
        let packets: Vec<Vec<u8>> = (0..200u8).map(|i| vec![i; 1 + usize::from(i) % 9]).collect();
        for p in &packets {
            replay.packet(&packet(p, 0)).unwrap();
        }
        let summary = replay.finish().unwrap();
        assert_eq!(sender.sent, packets);
        assert_eq!((summary.packets, summary.busy_retries, summary.nobody_listened), (200, 2, 1));
        assert_eq!(summary.bytes, packets.iter().map(|p| p.len() as u64).sum::<u64>());
    }

    #[test]
    fn a_packet_that_cannot_go_is_counted_under_its_reason_and_the_rest_goes() {
        let mut sender = recorder();
        let stop = AtomicBool::new(false);
        let mut replay = Replay::new(&mut sender, Pace::Fastest, &stop);
        for link_type in [LinkType::USER0, LinkType::RAW_IP, LinkType::LINUX_SLL] {
            replay.interface(&interface(link_type));
        }
        let long = vec![9; 101];
        replay.packet(&packet(b"a", 0)).unwrap();
        replay.packet(&packet(&long, 0)).unwrap();
        replay.packet(&Packet { original_length: 2, ..packet(b"b", 0) }).unwrap();
        replay.packet(&Packet { interface: 1, ..packet(b"c", 0) }).unwrap();
        replay.packet(&Packet { interface: 2, ..packet(b"d", 0) }).unwrap();
        replay.lost(0, Loss::KernelRing, 5, 0);
        replay.packet(&packet(b"e", 0)).unwrap();
        let summary = replay.finish().unwrap();
        assert_eq!(sender.sent, [b"a", b"e"]);
        let expected = ReplaySummary {
            offered: 6,
            packets: 2,
            bytes: 2,
            oversize: 1,
            oversize_bytes_max: 101,
            truncated: 1,
            not_udp: 1,
            other_link_type: 1,
            lost_before: 5,
            elapsed: summary.elapsed,
            ..Default::default()
        };
        assert_eq!(summary, expected);
    }

    #[test]
    fn at_recorded_pace_no_packet_leaves_before_it_is_due() {
        let mut sender = recorder();
        let stop = AtomicBool::new(false);
        let start = Instant::now();
        let mut replay = Replay::new(&mut sender, Pace::recorded(2.0).unwrap(), &stop);
        replay.interface(&interface(LinkType::USER0));
        for i in 0..20 {
            replay.packet(&packet(b"x", i * 1_000_000)).unwrap();
        }
        let summary = replay.finish().unwrap();
        assert!(since(start) >= Duration::from_micros(9_500), "19 ms at twice the speed");
        assert_eq!(summary.packets, 20);
        assert!(summary.late_mean() <= summary.late_max);
    }

    #[test]
    fn a_failing_sender_ends_the_replay_with_what_was_sent() {
        let mut sender = recorder();
        sender.plan = [SendError::Gone {
            target: "interface 'x'".into(),
            error: std::io::Error::from_raw_os_error(libc::ENETDOWN),
        }]
        .into();
        let stop = AtomicBool::new(false);
        let mut replay = Replay::new(&mut sender, Pace::Fastest, &stop);
        replay.interface(&interface(LinkType::USER0));
        replay.packet(&packet(b"a", 0)).unwrap();
        assert_eq!(replay.tick(Timestamp::MIN), Err(Ended));
        assert_eq!(replay.packet(&packet(b"b", 0)), Err(Ended));
        let error = replay.finish().unwrap_err();
        assert_eq!((error.summary.offered, error.summary.packets, error.summary.unsent), (2, 0, 2));
        assert!(error.to_string().contains("interface 'x'"), "{error}");
    }

    #[test]
    fn a_stop_is_seen_while_waiting_for_a_packet_that_is_due_in_an_hour() {
        let mut sender = recorder();
        let stop = AtomicBool::new(false);
        let mut replay = Replay::new(&mut sender, Pace::recorded(1.0).unwrap(), &stop);
        replay.interface(&interface(LinkType::USER0));
        replay.packet(&packet(b"a", 0)).unwrap();
        let summary = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(std::time::Duration::from_millis(20));
                stop.store(true, Ordering::Relaxed);
            });
            assert_eq!(replay.packet(&packet(b"b", 3_600_000_000_000)), Err(Ended));
            replay.finish().unwrap()
        });
        assert_eq!((summary.packets, summary.unsent), (1, 1));
    }
}
