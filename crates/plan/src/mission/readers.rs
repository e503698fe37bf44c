//! Reads beside a recording: on the same drives and the same clock, at a rate, unseen by the recorder but for the time they cost it.

use base::{
    Bank, BankError, BufferId, Command, Completion, DriveId, Duration, Full, Geometry, Instant,
    Latencies, NoBuffers, Operation, Random, Rate,
};
use ssd::SimBank;

/// How long after a drive's writing has moved on to another part of it reads of the part that it left are counted apart: by then its
/// buffer is empty and its flash at rest.
pub const SETTLING: Duration = Duration::from_secs(1);

/// Somebody who reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Readers {
    /// Whether from places drawn at random, or in order.
    pub random: bool,
    /// Bytes of a read, a multiple of 4 KiB.
    pub bytes: u32,
    /// Bytes a second, over all drives in turn.
    pub rate: Rate,
    /// Reads under way at most. What is due while as many are is not read, and counted as missed.
    pub depth: u32,
    /// The drives that are read from; None for all.
    pub drives: Option<Vec<usize>>,
    /// Whether to stay away from the namespace of a drive that was written to last, on drives that show several.
    pub apart: bool,
    /// When reading begins, since the mission did.
    pub begins: Duration,
}

/// What came of the reads of all readers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reads {
    /// Bytes that readers got.
    pub bytes: u64,
    /// Bytes that they did not, because as many reads as may be were under way.
    pub missed_bytes: u64,
    /// From when a read was due until its data was there.
    pub latencies: Latencies,
    /// The same of reads within [`SETTLING`] of a change of the part that is written, where readers stay apart from it.
    pub after_change: Latencies,
}

impl Readers {
    /// Whether they can be simulated on so many drives.
    pub(super) fn sound(&self, drives: usize) -> bool {
        self.bytes > 0
            && self.bytes.is_multiple_of(4096)
            && self.rate.0 > 0.0
            && self.depth > 0
            && self
                .drives
                .as_ref()
                .is_none_or(|own| !own.is_empty() && own.iter().all(|&drive| drive < drives))
    }
}

/// Tags of reads have this bit; below it stand whose it is, and which of those under way.
const READ: u64 = 1 << 63;
const WHOSE: u32 = 32;

/// A bank that a recorder and readers share.
#[derive(Debug)]
pub struct Shared {
    bank: SimBank<NoBuffers>,
    streams: Vec<Stream>,
    /// Namespaces that each drive shows, one behind the other.
    each: usize,
    /// When each namespace was written to last; None before.
    written: Vec<Option<Instant>>,
    reads: Reads,
}

#[derive(Debug)]
struct Stream {
    readers: Readers,
    drives: Vec<usize>,
    /// When the next read is due, in ns.
    next: f64,
    /// When each read under way was due, and whether soon after a change; those that are done have left their places.
    under_way: Vec<(Instant, bool)>,
    free: Vec<u32>,
    /// How many were due.
    count: u64,
    /// Where the next read of each namespace is.
    cursors: Vec<u64>,
    random: Random,
}

impl Stream {
    fn due(&self) -> Instant {
        Instant::from_nanos(self.next as u64)
    }
}

impl Shared {
    /// Of this bank, whose drives show so many namespaces each, and these readers.
    pub fn new(bank: SimBank<NoBuffers>, each: usize, readers: &[Readers], seed: u64) -> Self {
        let namespaces = bank.drives().len();
        let streams = readers.iter().zip(0u64..).map(|(readers, number)| Stream {
            drives: readers.drives.clone().unwrap_or_else(|| (0..namespaces / each).collect()),
            next: readers.begins.as_nanos() as f64,
            under_way: vec![(Instant::START, false); readers.depth as usize],
            free: (0..readers.depth).collect(),
            count: 0,
            cursors: vec![0; namespaces],
            random: Random::new(seed.wrapping_add(number)),
            readers: readers.clone(),
        });
        let streams = streams.collect();
        Self { bank, streams, each, written: vec![None; namespaces], reads: Reads::default() }
    }

    /// The drives.
    pub fn bank(&self) -> &SimBank<NoBuffers> {
        &self.bank
    }

    /// What came of the reads so far.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Starts the reads that are due.
    fn read_due(&mut self) {
        let now = self.bank.now();
        for number in 0..self.streams.len() {
            while self.streams[number].due() <= now {
                let place = self.place(number);
                let stream = &mut self.streams[number];
                let bytes = stream.readers.bytes;
                let capacity = self.bank.drives()[place].capacity_bytes;
                let at = if stream.readers.random {
                    stream.random.below(capacity / u64::from(bytes))
                } else {
                    stream.cursors[place] % (capacity / u64::from(bytes))
                };
                let mut read = false;
                if let Some(&slot) = stream.free.last() {
                    let (offset, buffer) = (at * u64::from(bytes), BufferId(u32::MAX));
                    let operation = Operation::Read { offset, length: bytes, buffer };
                    let drive = DriveId(place as u16);
                    let tag = READ | (number as u64) << WHOSE | u64::from(slot);
                    read = self.bank.submit(Command { drive, operation, tag }).is_ok();
                }
                if read && let Some(slot) = stream.free.pop() {
                    let settling = stream.readers.apart
                        && self.written[place].is_some_and(|last| now.since(last) < SETTLING);
                    stream.under_way[slot as usize] = (stream.due(), settling);
                    stream.cursors[place] += 1;
                } else {
                    self.reads.missed_bytes += u64::from(bytes);
                }
                stream.count += 1;
                stream.next = stream.readers.begins.as_nanos() as f64
                    + stream.count as f64 * f64::from(bytes) / stream.readers.rate.0 * 1e9;
            }
        }
    }

    /// The namespace that a reader reads from next: drives in turn, and of each its namespaces, or those that are not written.
    fn place(&self, number: usize) -> usize {
        let stream = &self.streams[number];
        let drives = stream.drives.len() as u64;
        let (turn, round) = ((stream.count % drives) as usize, stream.count / drives);
        let first = stream.drives[turn] * self.each;
        if !stream.readers.apart || self.each == 1 {
            return first + (round % self.each as u64) as usize;
        }
        let of_drive = first..first + self.each;
        // Before anything is written, the last stands for it.
        let busy = of_drive.max_by_key(|&place| self.written[place]).unwrap_or(first);
        let quiet = (round % (self.each as u64 - 1)) as usize;
        first + (busy - first + 1 + quiet) % self.each
    }

    /// Takes a read that is done.
    fn read_done(&mut self, completion: &Completion) {
        let stream = &mut self.streams[((completion.tag & !READ) >> WHOSE) as usize];
        let slot = completion.tag as u32;
        let (due, settling) = stream.under_way[slot as usize];
        stream.free.push(slot);
        self.reads.bytes += u64::from(stream.readers.bytes);
        let latency = completion.reaped.since(due);
        let of = if settling { &mut self.reads.after_change } else { &mut self.reads.latencies };
        of.record(latency);
    }
}

impl Bank for Shared {
    fn drives(&self) -> &[Geometry] {
        self.bank.drives()
    }

    fn now(&self) -> Instant {
        self.bank.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), Full> {
        if self.each > 1 && matches!(command.operation, Operation::Write { .. }) {
            self.written[command.drive.index()] = Some(self.bank.now());
        }
        self.bank.submit(command)
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        if self.streams.is_empty() {
            return self.bank.wait(until, done);
        }
        let before = done.len();
        loop {
            self.read_due();
            let due = self.streams.iter().map(Stream::due).min();
            self.bank.wait(until.into_iter().chain(due).min(), done)?;
            let mut at = before;
            while at < done.len() {
                if done[at].tag & READ == 0 {
                    at += 1;
                } else {
                    let completion = done.remove(at);
                    self.read_done(&completion);
                }
            }
            if done.len() > before || until.is_some_and(|until| self.bank.now() >= until) {
                return Ok(());
            }
        }
    }
}
