//! How members take their writes: a bank that times each write, and the distributions that come of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base::{
    Bank, BankError, Command, Completion, DriveId, Duration, Full, Geometry, Instant, Operation,
};
use serde::{Deserialize, Serialize};

/// Upper bounds of latencies in seconds. Drives answer within a millisecond, and stall for seconds.
pub const LATENCY_BOUNDS: &[f64] = &[
    100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
    10.0,
];

/// Upper bounds of rates in bytes a second: from one that has stopped to the fastest drives.
pub const RATE_BOUNDS: &[f64] = &[
    0.0, 1e6, 1e7, 5e7, 1e8, 2e8, 5e8, 1e9, 1.5e9, 2e9, 3e9, 4e9, 5e9, 6e9, 8e9, 10e9, 12e9, 14e9,
];

/// A rate is taken over this time.
const RATE_EVERY: Duration = Duration::from_secs(1);

/// How often a quantity was in which range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Upper bounds of the ranges, which they include. The last range has none.
    pub bounds: Vec<f64>,
    /// Values in each range, one more than there are bounds.
    pub counts: Vec<u64>,
    /// Sum of all values.
    pub sum: f64,
}

impl Distribution {
    /// An empty one.
    pub fn new(bounds: &[f64]) -> Self {
        Self { bounds: bounds.to_vec(), counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// Adds a value.
    pub fn enter(&mut self, value: f64) {
        self.counts[self.bounds.partition_point(|&bound| bound < value)] += 1;
        self.sum += value;
    }
}

/// How a member took its writes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemberWrites {
    /// Time from a write's submission to its completion, in seconds.
    pub latency: Distribution,
    /// Bytes written in each second, in bytes a second.
    pub rate: Distribution,
}

impl Default for MemberWrites {
    fn default() -> Self {
        Self { latency: Distribution::new(LATENCY_BOUNDS), rate: Distribution::new(RATE_BOUNDS) }
    }
}

/// What is known of each drive's writes, for those who look at a recording while the bank is in use.
#[derive(Clone, Debug, Default)]
pub struct WriteTimes {
    by_drive: Arc<Mutex<Vec<MemberWrites>>>,
    /// The drive of each member.
    drives: Vec<DriveId>,
}

impl WriteTimes {
    /// How each member took its writes. A member that is missing took none.
    pub fn of_members(&self) -> Vec<MemberWrites> {
        let by_drive = self.by_drive.lock().unwrap_or_else(PoisonError::into_inner);
        let of_drive = |drive: &DriveId| by_drive.get(drive.index()).cloned().unwrap_or_default();
        self.drives.iter().map(of_drive).collect()
    }
}

/// A bank whose writes are timed.
#[derive(Debug)]
pub struct TimedBank<B> {
    bank: B,
    times: WriteTimes,
    /// Writes under way by drive and tag: when they were submitted, and how many bytes they have.
    under_way: HashMap<(DriveId, u64), (Instant, u32)>,
    /// Bytes written to each drive since `since`.
    written: Vec<u64>,
    since: Instant,
}

impl<B: Bank> TimedBank<B> {
    /// Times the writes of a bank. `drives` are those of the members, in the array's order.
    pub fn new(bank: B, drives: &[DriveId]) -> Self {
        let count = bank.drives().len();
        let by_drive = Arc::new(Mutex::new(vec![MemberWrites::default(); count]));
        Self {
            times: WriteTimes { by_drive, drives: drives.to_vec() },
            under_way: HashMap::new(),
            written: vec![0; count],
            since: bank.now(),
            bank,
        }
    }

    /// What is known of the writes, also while the bank is in use.
    pub fn times(&self) -> WriteTimes {
        self.times.clone()
    }

    fn enter(&mut self, done: &[Completion]) {
        let now = self.bank.now();
        let elapsed = now.since(self.since);
        if done.is_empty() && elapsed < RATE_EVERY {
            return;
        }
        let mut by_drive = self.times.by_drive.lock().unwrap_or_else(PoisonError::into_inner);
        for completion in done {
            let at = completion.drive.index();
            let Some((submitted, bytes)) =
                self.under_way.remove(&(completion.drive, completion.tag))
            else {
                continue;
            };
            by_drive[at].latency.enter(completion.reaped.since(submitted).as_secs_f64());
            if completion.outcome.is_ok() {
                self.written[at] += u64::from(bytes);
            }
        }
        if elapsed >= RATE_EVERY {
            for (of_drive, written) in by_drive.iter_mut().zip(&mut self.written) {
                of_drive.rate.enter(std::mem::take(written) as f64 / elapsed.as_secs_f64());
            }
            self.since = now;
        }
    }
}

impl<B: Bank> Bank for TimedBank<B> {
    fn drives(&self) -> &[Geometry] {
        self.bank.drives()
    }

    fn now(&self) -> Instant {
        self.bank.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), Full> {
        let now = self.bank.now();
        self.bank.submit(command)?;
        if let Operation::Write { length, .. } = command.operation {
            self.under_way.insert((command.drive, command.tag), (now, length));
        }
        Ok(())
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        let first = done.len();
        let waited = self.bank.wait(until, done);
        self.enter(&done[first..]);
        waited
    }
}

#[cfg(test)]
mod tests {
    use base::conformance::Fixture;
    use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
    use base::{BufferId, DeviceError, Rate, conformance_tests};

    use super::*;

    struct Timed {
        bank: TimedBank<MemoryBank>,
        buffers: MemoryBuffers,
    }

    impl Timed {
        fn new(drives: Vec<MemoryDrive>) -> Self {
            let buffers = MemoryBuffers::new(16, 1 << 20);
            let ids: Vec<DriveId> = (0..drives.len() as u16).map(DriveId).collect();
            let bank = TimedBank::new(MemoryBank::new(drives, buffers.clone()), &ids);
            Self { bank, buffers }
        }
    }

    impl Fixture for Timed {
        type Bank = TimedBank<MemoryBank>;
        type Memory = MemoryBuffers;
        fn bank(&mut self) -> &mut Self::Bank {
            &mut self.bank
        }
        fn buffers(&self) -> &MemoryBuffers {
            &self.buffers
        }
        fn buffer_ids(&self) -> Vec<BufferId> {
            self.buffers.buffer_ids().collect()
        }
    }

    fn drive(latency: Duration) -> MemoryDrive {
        MemoryDrive { latency, rate: Some(Rate(1e9)), ..MemoryDrive::default() }
    }

    mod a_timed_bank_is_a_bank {
        use super::*;
        conformance_tests!(Timed::new(vec![
            drive(Duration::from_micros(80)),
            MemoryDrive { depth_max: 1, ..MemoryDrive::default() },
        ]));
    }

    /// How many values are in the range that this one lies in.
    fn like(distribution: &Distribution, value: f64) -> u64 {
        distribution.counts[distribution.bounds.partition_point(|&bound| bound < value)]
    }

    #[test]
    fn a_bound_belongs_to_the_range_below_it_and_the_last_range_has_none() {
        let mut distribution = Distribution::new(&[1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 2.0, 2.5, 1e9] {
            distribution.enter(value);
        }
        assert_eq!(distribution.counts, [2, 2, 2]);
        assert_eq!(distribution.sum, 7.5 + 1e9);
    }

    #[test]
    fn writes_are_timed_by_member_and_their_rate_is_that_of_each_second() {
        let mut timed = Timed::new(vec![drive(Duration::from_millis(4)); 2]);
        // A member is not the drive of the same number, and one is missing.
        timed.bank.times.drives = vec![DriveId(1), DriveId(0), DriveId(9)];
        let from = Instant::START;
        let at = |seconds| from + Duration::from_secs(seconds);
        timed.bank.bank.stall(DriveId(1), from, at(3));
        timed.bank.bank.fail_from(DriveId(0), at(4), DeviceError::Medium);
        let write = |timed: &mut Timed, drive: u16, tag: u64| {
            let buffer = BufferId(tag as u32);
            let operation = Operation::Write { offset: 0, length: 1 << 20, buffer, fua: false };
            timed.bank.submit(Command { drive: DriveId(drive), operation, tag }).expect("room");
        };
        let mut done = Vec::new();
        for second in 1..=6 {
            write(&mut timed, 0, second);
            if second == 1 {
                write(&mut timed, 1, 9);
            }
            while timed.bank.now() < at(second) {
                timed.bank.wait(Some(at(second)), &mut done).expect("memory does not fail");
            }
        }
        let members = timed.bank.times().of_members();
        let [stalled, steady, missing] = &members[..] else { panic!("{members:?}") };
        assert_eq!(*missing, MemberWrites::default());
        assert_eq!((like(&stalled.latency, 3.0), stalled.latency.counts.iter().sum()), (1, 1));
        // 4 ms, and 1 ms for the transfer of 1 MiB; a write that failed took its time, too.
        assert_eq!(like(&steady.latency, 5.05e-3) + like(&steady.latency, 1e-6), 6, "{steady:?}");
        // Writes of four seconds arrived, and nothing afterwards; each second is counted once.
        assert_eq!((like(&steady.rate, 1.05e6), steady.rate.counts.iter().sum()), (4, 6));
        assert_eq!((like(&steady.rate, 0.0), like(&stalled.rate, 0.0)), (2, 5), "{stalled:?}");
    }
}
