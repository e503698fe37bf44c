//! Drives of known behaviour for the experiments' tests: a bank in virtual time whose every latency a test decides,
//! and that counts what is done to it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use base::{
    Bank, BankError, BufferId, Command, Completion, DeviceError, Duration, Full, Geometry, Instant,
    NoBuffers, Operation, Rate,
};

use super::Scope;
use crate::lab::{Lab, LabError};
use crate::rig::{BankRig, Go};

/// When a command that is submitted now is done, or its failure.
pub type Model = Box<dyn FnMut(&Command, Instant) -> Result<Instant, DeviceError>>;

/// What was done to a bank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub trimmed_bytes: u64,
    /// Offset and length of every write and trim, by drive.
    pub changes: Vec<(u16, u64, u64)>,
}

pub struct ModelBank {
    geometry: Vec<Geometry>,
    model: Model,
    now: Instant,
    under_way: BTreeMap<(Instant, u64), (Command, Option<DeviceError>)>,
    busy: Vec<u32>,
    submitted: u64,
    done: Rc<RefCell<Done>>,
}

impl Bank for ModelBank {
    fn drives(&self) -> &[Geometry] {
        &self.geometry
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn submit(&mut self, command: Command) -> Result<(), Full> {
        let drive = command.drive.index();
        if self.busy[drive] == self.geometry[drive].depth_max {
            return Err(Full);
        }
        self.busy[drive] += 1;
        let (due, error) = match (self.model)(&command, self.now) {
            Ok(due) => (due, None),
            Err(error) => (self.now + Duration::from_micros(100), Some(error)),
        };
        self.submitted += 1;
        let mut done = self.done.borrow_mut();
        match command.operation {
            Operation::Read { length, .. } => done.read_bytes += u64::from(length),
            Operation::Write { offset, length, .. } => {
                done.written_bytes += u64::from(length);
                done.changes.push((command.drive.0, offset, length.into()));
            }
            Operation::Trim { offset, length } => {
                done.trimmed_bytes += length;
                done.changes.push((command.drive.0, offset, length));
            }
            Operation::Flush => {}
        }
        self.under_way.insert((due, self.submitted), (command, error));
        Ok(())
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        let next = self.under_way.first_key_value().map(|((due, _), _)| *due);
        let Some(to) = next.into_iter().chain(until).min() else { return Ok(()) };
        self.now = self.now.max(to);
        while let Some(entry) = self.under_way.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let (command, error) = entry.remove();
            self.busy[command.drive.index()] -= 1;
            let outcome = error.map_or(Ok(()), Err);
            let Command { drive, tag, .. } = command;
            done.push(Completion { drive, tag, outcome, reaped: self.now });
        }
        Ok(())
    }
}

/// A drive of 64 MiB that can do everything.
pub fn geometry() -> Geometry {
    Geometry {
        name: "model".to_owned(),
        capacity_bytes: 64 << 20,
        block_bytes: 512,
        transfer_max_bytes: 16 << 20,
        depth_max: 4096,
        trim_unit_bytes: Some(4096),
        trim_reads_zeros: true,
        writable: true,
    }
}

/// A drive that moves one command after the other at these rates (reads, writes), and answers `latency` later.
pub fn rated(read: Rate, write: Rate, latency: Duration) -> Model {
    let mut busy_until: BTreeMap<u16, Instant> = BTreeMap::new();
    Box::new(move |command, now| {
        let (rate, length) = moving(command, read, write);
        let busy = busy_until.entry(command.drive.0).or_default();
        *busy = (*busy).max(now) + rate.time_for(length);
        Ok(*busy + latency)
    })
}

/// The rate and the bytes that count for a command; trims take no time.
pub fn moving(command: &Command, read: Rate, write: Rate) -> (Rate, u64) {
    match command.operation {
        Operation::Read { length, .. } => (read, length.into()),
        Operation::Write { length, .. } => (write, length.into()),
        Operation::Trim { .. } | Operation::Flush => (read, 0),
    }
}

/// A rig of such a bank, and what is done to its drives.
pub fn rig(
    drives: Vec<Geometry>,
    model: Model,
) -> (BankRig<ModelBank, NoBuffers>, Rc<RefCell<Done>>) {
    let done = Rc::new(RefCell::new(Done::default()));
    let bank = ModelBank {
        busy: vec![0; drives.len()],
        geometry: drives,
        model,
        now: Instant::START,
        under_way: BTreeMap::new(),
        submitted: 0,
        done: Rc::clone(&done),
    };
    let buffers = (0..20_000).map(BufferId).collect();
    (BankRig::new(bank, NoBuffers { size: 16 << 20 }, buffers), done)
}

/// Runs an experiment on such a bank, with its results in `folder`; tells what was done to the drives meanwhile.
pub fn run_in<T>(
    folder: &Path,
    drives: Vec<Geometry>,
    model: Model,
    run: impl FnOnce(&mut Lab<'_>) -> Result<T, LabError>,
) -> (Result<T, LabError>, Done) {
    let (mut rig, done) = rig(drives, model);
    let mut watch = |_: &crate::Progress<'_>| Go::On;
    let mut lab = Lab::new(&mut rig, folder, &mut watch).unwrap();
    let result = run(&mut lab);
    let done = done.borrow().clone();
    (result, done)
}

/// Points of that many milliseconds, with estimates that fit a drive of 1 GB/s.
pub fn scope(point_ms: u64) -> Scope {
    Scope {
        point: Duration::from_millis(point_ms),
        interval: Duration::from_millis(100),
        write_guess: Rate(1e9),
        read_guess: Rate(1e9),
        ..Scope::default()
    }
}

/// Whether writes and trims of a drive stay below `end`, and touch every byte up to it.
pub fn covers(done: &Done, drive: u16, end: u64) -> bool {
    let mut changes: Vec<(u64, u64)> =
        done.changes.iter().filter(|c| c.0 == drive).map(|c| (c.1, c.2)).collect();
    changes.sort_unstable();
    let mut reached = 0;
    for (offset, length) in changes {
        if offset > reached || offset + length > end {
            return false;
        }
        reached = reached.max(offset + length);
    }
    reached == end
}
