//! The conformance suite finds what it is there to find: each bug planted here fails a check.

use std::panic::{AssertUnwindSafe, catch_unwind};

use longtake_base::conformance::{Fixture, checks};
use longtake_base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use longtake_base::{
    Bank, BankError, BufferId, Command, Completion, DriveId, Duration, Full, Geometry, Instant,
    Operation,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    LosesACompletion,
    RepeatsACompletion,
    MixesUpTags,
    MixesUpDrives,
    LosesAWrite,
    ForgetsFua,
    WritesToTheNextBlock,
    WritesToAnotherDrive,
    ReadsHalf,
    TrimsTooMuch,
    TrimsNothing,
    TakesMoreThanItsDepth,
    TakesLessThanItsDepth,
    TakesACommandAndSaysFull,
    WritesBeyondItsEnd,
    WritesAcrossBlocks,
    WritesWithoutPermission,
    TransfersTooMuch,
    FailsCommandsOfNoBytes,
    RunsItsClockBackward,
    StampsTheFuture,
    SleepsTooLong,
    WakesTooEarly,
    ForgetsWhatWasDone,
}

const BUGS: [Bug; 24] = [
    Bug::LosesACompletion,
    Bug::RepeatsACompletion,
    Bug::MixesUpTags,
    Bug::MixesUpDrives,
    Bug::LosesAWrite,
    Bug::ForgetsFua,
    Bug::WritesToTheNextBlock,
    Bug::WritesToAnotherDrive,
    Bug::ReadsHalf,
    Bug::TrimsTooMuch,
    Bug::TrimsNothing,
    Bug::TakesMoreThanItsDepth,
    Bug::TakesLessThanItsDepth,
    Bug::TakesACommandAndSaysFull,
    Bug::WritesBeyondItsEnd,
    Bug::WritesAcrossBlocks,
    Bug::WritesWithoutPermission,
    Bug::TransfersTooMuch,
    Bug::FailsCommandsOfNoBytes,
    Bug::RunsItsClockBackward,
    Bug::StampsTheFuture,
    Bug::SleepsTooLong,
    Bug::WakesTooEarly,
    Bug::ForgetsWhatWasDone,
];

/// A bank that is right but for one bug.
struct Flawed {
    bug: Bug,
    inner: MemoryBank,
    claims: Vec<Geometry>,
    buffers: MemoryBuffers,
    submitted: u64,
    under_way: u32,
}

const BLOCK: u32 = 4096;
const CAPACITY: u64 = 32 << 20;

impl Flawed {
    fn new(bug: Bug) -> Self {
        let claimed = || MemoryDrive {
            block_bytes: BLOCK,
            capacity_bytes: CAPACITY,
            transfer_max_bytes: 256 << 10,
            depth_max: 8,
            volatile_cache: true,
            latency: Duration::from_micros(50),
            ..MemoryDrive::default()
        };
        let mut claims = vec![claimed(), claimed()];
        let mut drives = claims.clone();
        match bug {
            Bug::TakesMoreThanItsDepth => drives[0].depth_max += 1,
            Bug::WritesBeyondItsEnd => drives[0].capacity_bytes *= 2,
            Bug::WritesAcrossBlocks => drives[0].block_bytes = 512,
            Bug::WritesWithoutPermission => claims[1].writable = false,
            Bug::TransfersTooMuch => drives[0].transfer_max_bytes *= 2,
            _ => {}
        }
        let buffers = MemoryBuffers::new(10, 512 << 10);
        let claims = MemoryBank::new(claims, buffers.clone()).drives().to_vec();
        let inner = MemoryBank::new(drives, buffers.clone());
        Self { bug, inner, claims, buffers, submitted: 0, under_way: 0 }
    }

    fn spoil(&self, mut command: Command) -> Command {
        let now_and_then = self.submitted.is_multiple_of(41);
        let other = DriveId(1 - command.drive.0);
        match (self.bug, &mut command.operation) {
            (Bug::LosesAWrite, Operation::Write { length, .. }) if now_and_then => *length = 0,
            (Bug::WritesToTheNextBlock, Operation::Write { offset, length, .. })
                if now_and_then && *offset + u64::from(*length + BLOCK) <= CAPACITY =>
            {
                *offset += u64::from(BLOCK);
            }
            (Bug::ForgetsFua, Operation::Write { fua, .. }) => *fua = false,
            (Bug::ReadsHalf, Operation::Read { length, .. }) if *length > 64 << 10 => *length /= 2,
            (Bug::TrimsTooMuch, Operation::Trim { offset, length })
                if *offset + *length < CAPACITY =>
            {
                *length += u64::from(BLOCK);
            }
            (Bug::FailsCommandsOfNoBytes, Operation::Read { offset, length: 0, .. }) => *offset = 1,
            (Bug::TrimsNothing, Operation::Trim { length, .. }) => *length = 0,
            (Bug::WritesToAnotherDrive, Operation::Write { .. }) => command.drive = other,
            _ => {}
        }
        command
    }
}

impl Bank for Flawed {
    fn drives(&self) -> &[Geometry] {
        &self.claims
    }

    fn now(&self) -> Instant {
        let now = self.inner.now();
        if self.bug == Bug::RunsItsClockBackward {
            return Instant::from_nanos(u64::MAX / 2 - now.as_nanos());
        }
        now
    }

    fn submit(&mut self, command: Command) -> Result<(), Full> {
        self.submitted += 1;
        if self.bug == Bug::TakesLessThanItsDepth && self.under_way == 7 {
            return Err(Full);
        }
        self.inner.submit(self.spoil(command))?;
        self.under_way += 1;
        if self.bug == Bug::TakesACommandAndSaysFull && self.under_way == 8 {
            return Err(Full);
        }
        Ok(())
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        let mut found = Vec::new();
        match (self.bug, until) {
            (Bug::SleepsTooLong, Some(until)) => {
                while self.inner.now() < until {
                    self.inner.wait(Some(until), &mut found)?;
                }
            }
            (Bug::WakesTooEarly, Some(until)) => {
                let early = Instant::from_nanos(until.as_nanos().saturating_sub(1));
                self.inner.wait(Some(early), &mut found)?;
            }
            _ => self.inner.wait(until, &mut found)?,
        }
        self.under_way -= found.len() as u32;
        for completion in &mut found {
            match self.bug {
                Bug::MixesUpTags if self.submitted.is_multiple_of(17) => completion.tag += 1,
                Bug::MixesUpDrives if self.submitted.is_multiple_of(17) => {
                    completion.drive = DriveId(1 - completion.drive.0);
                }
                Bug::StampsTheFuture => completion.reaped += Duration::from_nanos(1),
                _ => {}
            }
        }
        match self.bug {
            Bug::LosesACompletion if self.submitted.is_multiple_of(13) => drop(found.pop()),
            Bug::RepeatsACompletion if self.submitted.is_multiple_of(13) => {
                found.extend(found.last().cloned());
            }
            Bug::ForgetsWhatWasDone => done.clear(),
            _ => {}
        }
        done.append(&mut found);
        Ok(())
    }
}

impl Fixture for Flawed {
    type Bank = Self;
    type Memory = MemoryBuffers;

    fn bank(&mut self) -> &mut Self {
        self
    }
    fn buffers(&self) -> &MemoryBuffers {
        &self.buffers
    }
    fn buffer_ids(&self) -> Vec<BufferId> {
        self.buffers.buffer_ids().collect()
    }
    fn power_cut(&mut self) -> bool {
        self.inner.power_cut(self.submitted);
        true
    }
}

/// The first check that a bank with this bug fails.
fn finder(bug: Bug) -> Option<&'static str> {
    let fails = |check: &fn(&mut Flawed)| {
        catch_unwind(AssertUnwindSafe(|| check(&mut Flawed::new(bug)))).is_err()
    };
    checks::<Flawed>().into_iter().find(|(_, check)| fails(check)).map(|(name, _)| name)
}

#[test]
fn every_planted_bug_is_found_and_nothing_is_found_without_one() {
    assert_eq!(finder(Bug::None), None);
    let missed: Vec<Bug> = BUGS.into_iter().filter(|&bug| finder(bug).is_none()).collect();
    assert_eq!(missed, [], "no check fails on these");
}
