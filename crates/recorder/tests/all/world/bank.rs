//! The bank under test: memory drives behind delays that let commands overtake each other, errors
//! on single commands, several users at once, and a [`Watch`] that sees every command.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use base::{
    Bank, BankError, Command, Completion, DeviceError, DriveId, Duration, Full, Geometry, Instant,
    Operation, Random,
};

use super::watch::{Kind, Watch};

/// One command that fails though the drive works on before and after.
#[derive(Clone, Copy, Debug)]
pub struct Once {
    /// Which drive.
    pub drive: u16,
    /// From when on.
    pub from: Instant,
    /// What kind of command.
    pub kind: Kind,
    /// Whether it happens all the same.
    pub applied: bool,
}

/// A command that was accepted and has not been answered.
struct Accepted {
    client: usize,
    command: Command,
    /// The bank's own drive.
    drive: DriveId,
    fails: bool,
}

struct Hub {
    bank: MemoryBank,
    random: Random,
    jitter: Vec<Duration>,
    accepted: HashMap<u64, Accepted>,
    /// Accepted, and not yet with the drive: when it goes there.
    delayed: Vec<(Instant, u64)>,
    done: Vec<Vec<Completion>>,
    next: u64,
    once: Vec<Once>,
    watch: Watch,
}

/// One user's handle on the bank. It may see only some of the drives.
pub struct Shared {
    geometry: Vec<Geometry>,
    all: Rc<[Geometry]>,
    drives: Vec<DriveId>,
    client: usize,
    hub: Rc<RefCell<Hub>>,
}

impl Shared {
    /// Drives in memory; `jitter` delays each command by up to so much, so that they overtake.
    pub fn new(
        drives: Vec<MemoryDrive>,
        jitter: Vec<Duration>,
        memory: &MemoryBuffers,
        watch: Watch,
        seed: u64,
    ) -> Self {
        let depths: Vec<u32> = drives.iter().map(|d| d.depth_max).collect();
        // Each user has the drive's depth to itself, as with a ring of its own.
        let deep = |d| MemoryDrive { depth_max: 4096, ..d };
        let bank = MemoryBank::new(drives.into_iter().map(deep).collect(), memory.clone());
        let mut geometry = bank.drives().to_vec();
        geometry.iter_mut().zip(depths).for_each(|(g, depth)| g.depth_max = depth);
        let drives = (0..geometry.len() as u16).map(DriveId).collect();
        let hub = Hub {
            bank,
            random: Random::new(seed),
            jitter,
            accepted: HashMap::new(),
            delayed: Vec::new(),
            done: vec![Vec::new()],
            next: 0,
            once: Vec::new(),
            watch,
        };
        let all = geometry.as_slice().into();
        Self { geometry, all, drives, client: 0, hub: Rc::new(RefCell::new(hub)) }
    }

    /// Another user of those drives that `keep` says.
    pub fn another(&self, keep: impl Fn(u16) -> bool) -> Self {
        let mut hub = self.hub.borrow_mut();
        hub.done.push(Vec::new());
        let kept: Vec<DriveId> =
            (0..hub.bank.drives().len() as u16).filter(|&d| keep(d)).map(DriveId).collect();
        Self {
            geometry: kept.iter().map(|d| self.all[d.index()].clone()).collect(),
            all: Rc::clone(&self.all),
            drives: kept,
            client: hub.done.len() - 1,
            hub: Rc::clone(&self.hub),
        }
    }

    /// Every number of commands that the drive has not been asked for is forgotten.
    pub fn crash(&self, seed: u64, power: bool) {
        let hub = &mut *self.hub.borrow_mut();
        hub.delayed.clear();
        hub.accepted.clear();
        hub.done.iter_mut().for_each(Vec::clear);
        hub.once.clear();
        if power {
            hub.bank.power_cut(seed)
        } else {
            hub.bank.crash(seed)
        }
        hub.watch.everything_ended();
    }

    /// The drive fails from then on; [`Shared::revive`] ends that.
    pub fn die(&self, drive: u16, at: Instant, error: DeviceError) {
        self.hub.borrow_mut().bank.fail_from(DriveId(drive), at, error);
    }

    /// The drive works again, and no planned error comes.
    pub fn revive(&self) {
        let hub = &mut *self.hub.borrow_mut();
        for drive in 0..hub.bank.drives().len() as u16 {
            let never = Instant::from_nanos(u64::MAX);
            hub.bank.fail_from(DriveId(drive), never, DeviceError::Gone);
        }
        hub.once.clear();
    }

    /// Nothing gets done on the drive for a while.
    pub fn stall(&self, drive: u16, from: Instant, to: Instant) {
        self.hub.borrow_mut().bank.stall(DriveId(drive), from, to);
    }

    /// Plans an error.
    pub fn fail_once(&self, once: Once) {
        self.hub.borrow_mut().once.push(once);
    }

    /// What lies on a drive.
    pub fn peek(&self, drive: u16, offset: u64, length: usize) -> Vec<u8> {
        self.hub.borrow().bank.peek(DriveId(drive), offset, length)
    }

    /// Damages what lies on a drive.
    pub fn poke(&self, drive: u16, offset: u64, bytes: &[u8]) {
        self.hub.borrow_mut().bank.poke(DriveId(drive), offset, bytes);
    }

    /// What was seen.
    pub fn watch<T>(&self, look: impl FnOnce(&mut Watch) -> T) -> T {
        look(&mut self.hub.borrow_mut().watch)
    }
}

impl Hub {
    /// Hands on to the drives what has been delayed long enough.
    fn hand_on(&mut self) {
        let now = self.bank.now();
        let mut ready: Vec<(Instant, u64)> =
            self.delayed.iter().copied().filter(|&(at, _)| at <= now).collect();
        ready.sort_unstable();
        self.delayed.retain(|&(at, _)| at > now);
        for (_, tag) in ready {
            let Accepted { command, drive, .. } = self.accepted[&tag];
            let command = Command { drive, tag, ..command };
            assert_eq!(
                self.bank.submit(command),
                Ok(()),
                "the hub keeps count of what is accepted"
            );
        }
    }

    fn reap(&mut self, until: Option<Instant>) -> Result<(), BankError> {
        let mut done = Vec::new();
        self.bank.wait(until, &mut done)?;
        for mut completion in done {
            let accepted = self.accepted.remove(&completion.tag).expect("it was accepted");
            if accepted.fails {
                completion.outcome = Err(DeviceError::Medium);
            }
            self.watch.completed(completion.tag, &accepted.command.operation);
            completion.tag = accepted.command.tag;
            completion.drive = accepted.command.drive;
            self.done[accepted.client].push(completion);
        }
        Ok(())
    }
}

impl Bank for Shared {
    fn drives(&self) -> &[Geometry] {
        &self.geometry
    }

    fn now(&self) -> Instant {
        self.hub.borrow().bank.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), Full> {
        let hub = &mut *self.hub.borrow_mut();
        let drive = self.drives[command.drive.index()];
        let mine = |a: &&Accepted| a.drive == drive && a.client == self.client;
        let under_way = hub.accepted.values().filter(mine).count();
        if under_way >= self.geometry[command.drive.index()].depth_max as usize {
            return Err(Full);
        }
        let now = hub.bank.now();
        let tag = hub.next;
        hub.next += 1;
        let kind = hub.watch.submitted(tag, drive.0, &command.operation);
        let once = hub
            .once
            .iter()
            .position(|o| o.drive == drive.0 && o.from <= now && Some(o.kind) == kind)
            .map(|at| hub.once.remove(at));
        let mut command = command;
        if once.is_some_and(|o| !o.applied) {
            // The drive is asked for nothing, which takes it as long.
            command.operation = match command.operation {
                Operation::Write { offset, buffer, .. } => {
                    Operation::Write { offset, length: 0, buffer }
                }
                _ => Operation::Trim { offset: 0, length: 0 },
            };
        }
        let accepted = Accepted { client: self.client, command, drive, fails: once.is_some() };
        hub.accepted.insert(tag, accepted);
        let jitter = hub.jitter[drive.index()].as_nanos();
        let delay = if hub.random.one_in(2) { hub.random.below(jitter + 1) } else { 0 };
        hub.delayed.push((now + Duration::from_nanos(delay), tag));
        hub.hand_on();
        Ok(())
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        let hub = &mut *self.hub.borrow_mut();
        loop {
            hub.hand_on();
            let next = hub.delayed.iter().map(|&(at, _)| at).min();
            let now = hub.bank.now();
            let over = until.is_some_and(|until| until <= now);
            if over {
                hub.reap(Some(now))?;
            }
            let mine = &mut hub.done[self.client];
            if over || !mine.is_empty() {
                done.append(mine);
                return Ok(());
            }
            if !hub.accepted.values().any(|a| a.client == self.client) && until.is_none() {
                return Ok(());
            }
            hub.reap([next, until].into_iter().flatten().min())?;
        }
    }
}
