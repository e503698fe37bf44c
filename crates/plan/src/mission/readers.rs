//! Reads beside a recording: on the same drives and the same clock, at a rate, unseen by the recorder but for the time they cost it.

use base::{
    Bank, BankError, BufferId, Command, Completion, DriveId, Full, Geometry, Instant, NoBuffers,
    Operation, Random, Rate,
};
use ssd::SimBank;

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

/// Tags of reads have this bit; the rest says whose.
const READ: u64 = 1 << 63;

/// A bank that a recorder and readers share.
#[derive(Debug)]
pub struct Shared {
    bank: SimBank<NoBuffers>,
    streams: Vec<Stream>,
}

#[derive(Debug)]
struct Stream {
    readers: Readers,
    drives: Vec<DriveId>,
    /// When the next read is due, in ns.
    next: f64,
    under_way: u32,
    /// How many were due.
    count: u64,
    /// Where the next read is, by place in `drives`.
    cursors: Vec<u64>,
    random: Random,
    read_bytes: u64,
    missed_bytes: u64,
}

impl Stream {
    fn due(&self) -> Instant {
        Instant::from_nanos(self.next as u64)
    }
}

impl Shared {
    /// Of this bank and these readers.
    pub fn new(bank: SimBank<NoBuffers>, readers: &[Readers], seed: u64) -> Self {
        let streams = readers.iter().zip(0u64..).map(|(readers, number)| {
            let all = || (0..bank.drives().len()).collect();
            let own: Vec<usize> = readers.drives.clone().unwrap_or_else(all);
            Stream {
                cursors: vec![0; own.len()],
                drives: own.into_iter().map(|drive| DriveId(drive as u16)).collect(),
                next: 0.0,
                under_way: 0,
                count: 0,
                random: Random::new(seed.wrapping_add(number)),
                read_bytes: 0,
                missed_bytes: 0,
                readers: readers.clone(),
            }
        });
        let streams = streams.collect();
        Self { bank, streams }
    }

    /// The drives.
    pub fn bank(&self) -> &SimBank<NoBuffers> {
        &self.bank
    }

    /// Bytes that readers got, and those that they did not because as many reads as may be were under way.
    pub fn read(&self) -> (u64, u64) {
        let sum = |of: fn(&Stream) -> u64| self.streams.iter().map(of).sum();
        (sum(|stream| stream.read_bytes), sum(|stream| stream.missed_bytes))
    }

    /// Starts the reads that are due.
    fn read_due(&mut self) {
        let now = self.bank.now();
        for (number, stream) in self.streams.iter_mut().enumerate() {
            while stream.due() <= now {
                let bytes = stream.readers.bytes;
                let turn = (stream.count % stream.drives.len() as u64) as usize;
                let drive = stream.drives[turn];
                let places = self.bank.drives()[drive.index()].capacity_bytes / u64::from(bytes);
                let place = if stream.readers.random {
                    stream.random.below(places)
                } else {
                    stream.cursors[turn] % places
                };
                let (offset, buffer) = (place * u64::from(bytes), BufferId(u32::MAX));
                let operation = Operation::Read { offset, length: bytes, buffer };
                let command = Command { drive, operation, tag: READ | number as u64 };
                if stream.under_way < stream.readers.depth && self.bank.submit(command).is_ok() {
                    stream.under_way += 1;
                    stream.cursors[turn] += 1;
                } else {
                    stream.missed_bytes += u64::from(bytes);
                }
                stream.count += 1;
                stream.next = stream.count as f64 * f64::from(bytes) / stream.readers.rate.0 * 1e9;
            }
        }
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
                    continue;
                }
                let stream = &mut self.streams[(done[at].tag & !READ) as usize];
                stream.under_way -= 1;
                stream.read_bytes += u64::from(stream.readers.bytes);
                done.remove(at);
            }
            if done.len() > before || until.is_some_and(|until| self.bank.now() >= until) {
                return Ok(());
            }
        }
    }
}
