//! A bank that does everything a drive may do, and some things that it may not and the judge knows of: in virtual
//! time, the same again for the same seed. Several users share it, as processes share real drives.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use base::memory::MemoryBuffers;
use base::{
    Bank, BankError, BufferId, Buffers, Command, Completion, DeviceError, Duration, Full, Geometry,
    Instant, Operation, Random,
};
use format::layout::DATA_OFFSET;
use format::parity::Table;
use format::{ChunkRecord, Layout, Place};

use crate::fault::{Applied, Fault, Kind, What};
use crate::media::{Media, PAGE_BYTES, Trimmed};
use crate::outcome::{Met, Outcome};
use crate::trace::Trace;

/// How long a drive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Always so many microseconds.
    Even(u64),
    /// Anything up to so many microseconds.
    Spread(u64),
    /// Anything up to so many microseconds, and one in so many up to `worst_us`.
    Tailed {
        /// Most commands.
        us: u64,
        /// How rare the others are.
        one_in: u64,
        /// The others.
        worst_us: u64,
    },
}

/// What a drive is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drive {
    /// Bytes.
    pub capacity_bytes: u64,
    /// Unit of reads and writes, and of what a torn write leaves, in bytes.
    pub block_bytes: u32,
    /// Commands that it takes from one user at once.
    pub depth_max: u32,
    /// What a trim leaves, or None for a drive that can't.
    pub trimmed: Option<Trimmed>,
    /// Whether a power cut may take what was not flushed.
    pub volatile: bool,
    /// Time for each command; those of several commands overlap.
    pub pace: Pace,
    /// Nanoseconds for each KiB, one transfer after another.
    pub kib_ns: u64,
    /// The longest flush in microseconds.
    pub flush_us: u64,
}

/// A lie that the bank tells the recorder as a broken program below it would. For proving that the judge sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trick {
    /// Writes are answered before they are done.
    AnswersEarly,
    /// A write that stopped short is answered as done.
    HidesShort,
    /// Flushes are answered and not done.
    DropsFlushes,
    /// Two writes under way on one drive change places, now and then.
    SwapsWrites,
}

/// A write or trim that the recorder has asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Index of the drive in the bank.
    pub drive: u16,
    /// From where, in bytes.
    pub start: u64,
    /// To where.
    pub end: u64,
    /// The chunk that is written, and from which buffer, if it is one.
    pub chunk: Option<(BufferId, Place, Box<ChunkRecord>)>,
    /// The group that it is of, if it is a parity chunk.
    pub table: Option<Table>,
    /// If it is a chunk, how many chunk writes are under way on its drive with it.
    pub at_once: u32,
}

/// The drives, shared by all users.
pub struct Hub {
    geometry: Vec<Geometry>,
    drives: Vec<State>,
    memory: MemoryBuffers,
    now: Instant,
    /// Commands by when they will be done, then by the order they came in.
    under_way: BTreeMap<(Instant, u64), UnderWay>,
    submitted: u64,
    done: Vec<Vec<Completion>>,
    /// Commands of each user on each drive.
    depth: Vec<Vec<u32>>,
    faults: Vec<Fault>,
    random: Random,
    trick: Option<Trick>,
    /// What the watched user has asked for since the last look.
    pub(crate) asked: Vec<Asked>,
    /// Where the watched user's writes ended that were done since the last look: drive and offset.
    pub(crate) written: Vec<(u16, u64)>,
    /// Ranges that a drive claims to have written and has not: drive, start, end.
    pub(crate) lies: Vec<(u16, u64, u64)>,
    pub(crate) met: Met,
    pub(crate) trace: Trace,
}

struct State {
    drive: Drive,
    media: Media,
    busy_until: Instant,
}

struct UnderWay {
    user: usize,
    /// The bank's own drive.
    drive: usize,
    command: Command,
    refused: Option<DeviceError>,
    /// Changes of the media when it was submitted, for a flush.
    changes: u64,
    /// Bytes of a write that was answered already.
    own: Option<Vec<u8>>,
    watched: bool,
    /// Whether it writes a chunk.
    chunk: bool,
}

/// One user's handle on the drives. It may see only some of them.
pub struct Handle {
    geometry: Vec<Geometry>,
    drives: Vec<usize>,
    user: usize,
    watched: bool,
    hub: Rc<RefCell<Hub>>,
}

impl Handle {
    /// Drives that move data between themselves and `memory`; and a handle on all of them.
    pub fn new(drives: &[Drive], memory: &MemoryBuffers, seed: u64, trace: Trace) -> Self {
        let geometry: Vec<Geometry> = drives.iter().enumerate().map(geometry).collect();
        let states = drives.iter().map(|&drive| State {
            drive,
            media: Media::new(drive.capacity_bytes, drive.volatile),
            busy_until: Instant::START,
        });
        let hub = Hub {
            geometry: geometry.clone(),
            drives: states.collect(),
            memory: memory.clone(),
            now: Instant::START,
            under_way: BTreeMap::new(),
            submitted: 0,
            done: vec![Vec::new()],
            depth: vec![vec![0; drives.len()]],
            faults: Vec::new(),
            random: Random::new(seed),
            trick: None,
            asked: Vec::new(),
            written: Vec::new(),
            lies: Vec::new(),
            met: Met::default(),
            trace,
        };
        let drives = (0..geometry.len()).collect();
        Self { geometry, drives, user: 0, watched: false, hub: Rc::new(RefCell::new(hub)) }
    }

    /// Another user of those drives that `keep` says, numbered anew from 0.
    pub fn another(&self, keep: impl Fn(u16) -> bool) -> Self {
        let mut hub = self.hub.borrow_mut();
        hub.done.push(Vec::new());
        let count = hub.drives.len();
        hub.depth.push(vec![0; count]);
        let drives: Vec<usize> = (0..count).filter(|&d| keep(d as u16)).collect();
        Self {
            geometry: drives.iter().map(|&d| hub.geometry[d].clone()).collect(),
            drives,
            user: hub.done.len() - 1,
            watched: false,
            hub: Rc::clone(&self.hub),
        }
    }

    /// A user whose writes are watched, and whom a trick is played on.
    pub fn watched(&self, keep: impl Fn(u16) -> bool, trick: Option<Trick>) -> Self {
        self.hub.borrow_mut().trick = trick;
        Self { watched: true, ..self.another(keep) }
    }

    /// Looks at the drives past the seam.
    pub fn hub<T>(&self, look: impl FnOnce(&mut Hub) -> T) -> T {
        look(&mut self.hub.borrow_mut())
    }

    /// This user's name among the others.
    pub fn user(&self) -> usize {
        self.user
    }

    /// Commands that this user waits for, and answers that wait for it.
    pub fn pending(&self) -> bool {
        let hub = self.hub.borrow();
        !hub.done[self.user].is_empty() || hub.depth[self.user].iter().any(|&n| n > 0)
    }

    /// Whether answers are there already.
    pub fn answered(&self) -> bool {
        !self.hub.borrow().done[self.user].is_empty()
    }
}

fn geometry((at, drive): (usize, &Drive)) -> Geometry {
    Geometry {
        name: format!("hostile{at}"),
        capacity_bytes: drive.capacity_bytes,
        block_bytes: drive.block_bytes,
        transfer_max_bytes: 1 << 20,
        depth_max: drive.depth_max,
        trim_unit_bytes: drive.trimmed.map(|_| PAGE_BYTES as u32),
        trim_reads_zeros: drive.trimmed == Some(Trimmed::Zeros),
        writable: true,
    }
}

impl Hub {
    /// From now on these go wrong, instead of what did before.
    pub fn set_faults(&mut self, faults: Vec<Fault>) {
        self.faults = faults;
    }

    /// Writes past the seam, for good.
    pub fn poke(&mut self, drive: u16, offset: u64, bytes: &[u8]) {
        let state = &mut self.drives[usize::from(drive)];
        state.media.write(offset, bytes, state.drive.block_bytes, &mut |_| true);
        state.media.flush(state.media.changes());
    }

    /// Whether a user has commands under way.
    pub fn has_under_way(&self, user: usize) -> bool {
        self.depth[user].iter().any(|&n| n > 0)
    }

    /// A drive's contents.
    pub fn media(&mut self, drive: u16) -> &mut Media {
        &mut self.drives[usize::from(drive)].media
    }

    /// Ends the world around the drives: of each command under way, all, some or nothing has happened; then they are
    /// forgotten. Without `power` volatile caches lose what was not flushed, too.
    pub fn crash(&mut self, power_fails: bool) {
        let mut lost: Vec<_> = std::mem::take(&mut self.under_way).into_iter().collect();
        lost.sort_by_key(|((_, order), _)| *order);
        for (_, under_way) in lost {
            let operation = under_way.command.operation;
            if under_way.refused.is_none() && self.error(under_way.drive, &operation).is_none() {
                self.happen_partly(&under_way);
            }
            if let (None, Some(buffer)) = (&under_way.own, operation.buffer()) {
                self.memory.give_back(buffer);
            }
        }
        self.done.iter_mut().for_each(Vec::clear);
        self.depth.iter_mut().for_each(|drives| drives.fill(0));
        for state in &mut self.drives {
            state.busy_until = self.now;
            if power_fails {
                let cut = state.media.lose_cache(state.drive.block_bytes, &mut self.random);
                for (count, outcome) in
                    [(cut.lost, Outcome::CacheLost), (cut.torn, Outcome::PageTorn)]
                {
                    if count > 0 {
                        self.met.add(outcome);
                    }
                }
            }
        }
    }

    fn refusal(&self, drive: usize, operation: &Operation) -> Option<DeviceError> {
        let buffer_bytes = self.memory.size() as u64;
        self.geometry[drive].check(operation, buffer_bytes).err().map(DeviceError::from)
    }

    /// When a command that is submitted now will be done.
    fn due(&mut self, drive: usize, operation: &Operation) -> Instant {
        let State { drive: like, busy_until, .. } = &mut self.drives[drive];
        let random = &mut self.random;
        let us = match like.pace {
            Pace::Even(us) => us * 1000,
            Pace::Spread(us) => random.below(us * 1000 + 1),
            Pace::Tailed { one_in, worst_us, .. } if random.one_in(one_in) => {
                random.below(worst_us * 1000 + 1)
            }
            Pace::Tailed { us, .. } => random.below(us * 1000 + 1),
        };
        let (bytes, more) = match *operation {
            Operation::Read { length, .. } | Operation::Write { length, .. } => {
                (u64::from(length), 0)
            }
            Operation::Trim { .. } => (0, 0),
            Operation::Flush => (0, random.below(like.flush_us * 1000 + 1)),
        };
        if more > 1_000_000_000 {
            self.met.add(Outcome::LongFlush);
        }
        let start = (*busy_until).max(self.now);
        let mut factor = 1;
        for fault in self.faults.iter().filter(|f| usize::from(f.drive) == drive) {
            if let What::Slows(times) = fault.what
                && fault.is_on(self.now)
            {
                factor = times;
                self.met.add(Outcome::Slowed);
            }
        }
        let transfer = bytes.div_ceil(1024) * like.kib_ns * factor;
        *busy_until = start + Duration::from_nanos(transfer);
        *busy_until + Duration::from_nanos((us + more) * factor)
    }

    /// The end of the stalls that a moment falls into, or itself.
    fn after_stalls(&mut self, drive: usize, at: Instant) -> Instant {
        let mut at = at;
        let stalls = |f: &&Fault| f.what == What::Stalls && usize::from(f.drive) == drive;
        while let Some(fault) = self.faults.iter().filter(stalls).find(|f| f.is_on(at)) {
            at = fault.to;
            self.met.add(Outcome::Stalled);
        }
        at
    }

    fn next_due(&mut self) -> Option<Instant> {
        loop {
            let (&key, under_way) = self.under_way.first_key_value()?;
            let drive = under_way.drive;
            let later = self.after_stalls(drive, key.0);
            if later == key.0 {
                return Some(later);
            }
            if let Some(under_way) = self.under_way.remove(&key) {
                self.under_way.insert((later, key.1), under_way);
            }
        }
    }

    /// Moves the clock to the next answer to anybody, or to `until`.
    fn advance(&mut self, until: Option<Instant>) {
        let next = self.next_due();
        match (next, until) {
            (Some(next), Some(until)) if next > until => self.now = self.now.max(until),
            (Some(next), _) => {
                self.now = self.now.max(next);
                while self.next_due().is_some_and(|due| due <= self.now) {
                    if let Some(((_, order), under_way)) = self.under_way.pop_first() {
                        self.complete(order, under_way);
                    }
                }
            }
            (None, Some(until)) => self.now = self.now.max(until),
            (None, None) => {}
        }
    }

    /// The error that a command meets now, and how much of it happens all the same.
    fn error(&mut self, drive: usize, operation: &Operation) -> Option<(DeviceError, Applied)> {
        let now = self.now;
        self.faults
            .iter_mut()
            .filter(|f| usize::from(f.drive) == drive && f.is_on(now))
            .find_map(|f| f.error(operation))
    }

    fn complete(&mut self, order: u64, under_way: UnderWay) {
        let UnderWay { user, drive, command, .. } = under_way;
        let earlier = |u: &UnderWay| u.drive == drive && u.user == user;
        if self.under_way.iter().any(|((_, o), u)| *o < order && earlier(u)) {
            self.met.add(Outcome::Reordered);
        }
        let mut outcome = Ok(());
        if let Some(error) = &under_way.refused {
            outcome = Err(error.clone());
        } else if let Some((error, applied)) = self.error(drive, &command.operation) {
            self.note_error(&command.operation, &error, applied);
            match applied {
                Applied::Nothing => {}
                Applied::Part => self.happen_partly(&under_way),
                Applied::All => self.happen(&under_way, &mut |_| true),
            }
            outcome = Err(error);
        } else if self.loses(drive, &command.operation) {
            if let Operation::Write { offset, length, .. } = command.operation {
                self.lies.push((drive as u16, offset, offset + u64::from(length)));
                self.met.add(Outcome::WriteLost);
            }
        } else {
            self.happen(&under_way, &mut |_| true);
            if let Operation::Write { offset, length, fua: true, .. } = command.operation {
                self.drives[drive].media.force(offset, length.into());
            }
        }
        self.trace.completed(self.now, drive, &command, &outcome);
        if under_way.own.is_some() {
            return;
        }
        if let Some(buffer) = command.operation.buffer() {
            self.memory.give_back(buffer);
        }
        if under_way.watched
            && self.trick == Some(Trick::HidesShort)
            && matches!(outcome, Err(DeviceError::Short { .. }))
        {
            outcome = Ok(());
        }
        if let (true, Ok(()), Operation::Write { offset, length, .. }) =
            (under_way.watched, &outcome, command.operation)
        {
            self.written.push((drive as u16, offset + u64::from(length)));
        }
        self.depth[user][drive] -= 1;
        let Command { drive, tag, .. } = command;
        self.done[user].push(Completion { drive, tag, outcome, reaped: self.now });
    }

    fn note_error(&mut self, operation: &Operation, error: &DeviceError, applied: Applied) {
        match error {
            DeviceError::Gone => self.met.add(Outcome::Gone),
            DeviceError::NoSpace => self.met.add(Outcome::NoSpace),
            DeviceError::Short { .. } => self.met.add(Outcome::Short),
            _ => self.met.add(match (Kind::of(operation), applied) {
                (Kind::Read, _) => Outcome::ReadFailed,
                (Kind::Flush, _) => Outcome::FlushFailed,
                (Kind::Trim, _) => Outcome::TrimFailed,
                (Kind::Write, Applied::Nothing) => Outcome::WriteFailed,
                (Kind::Write, Applied::Part) => Outcome::WriteFailedInPart,
                (Kind::Write, Applied::All) => Outcome::WriteFailedAndHappened,
            }),
        }
    }

    /// Whether a write gets lost now though it is acknowledged.
    fn loses(&mut self, drive: usize, operation: &Operation) -> bool {
        let Operation::Write { offset, .. } = *operation else { return false };
        let now = self.now;
        // Superblocks stand twice, and a drive that loses one copy after a crash has torn the other has none: both places are left
        // alone.
        let copy = Layout::copy_offset(self.drives[drive].drive.capacity_bytes);
        let data = (DATA_OFFSET..copy).contains(&offset);
        self.faults.iter_mut().any(|f| match &mut f.what {
            What::LosesWrites { left } if usize::from(f.drive) == drive && *left > 0 && data => {
                let on = f.from <= now && now < f.to;
                *left -= u32::from(on);
                on
            }
            _ => false,
        })
    }

    /// Does what a command asks, on those blocks that `keep` says.
    fn happen(&mut self, under_way: &UnderWay, keep: &mut dyn FnMut(u64) -> bool) {
        let Self { drives, memory, random, met, faults, now, .. } = self;
        let State { drive, media, .. } = &mut drives[under_way.drive];
        match under_way.command.operation {
            Operation::Read { offset, length, buffer } => {
                memory.give_back(buffer);
                let on = |f: &&Fault| usize::from(f.drive) == under_way.drive && f.is_on(*now);
                let (mut offset, mut turn) = (offset, false);
                for fault in faults.iter().filter(on) {
                    match fault.what {
                        What::CorruptsReads(one_in) if random.one_in(one_in) => turn = true,
                        What::MisdirectsReads(one_in) if random.one_in(one_in) => {
                            let block = u64::from(drive.block_bytes);
                            let blocks = (drive.capacity_bytes - u64::from(length)) / block;
                            offset = random.below(blocks + 1) * block;
                            met.add(Outcome::ReadMisdirected);
                        }
                        _ => {}
                    }
                }
                memory.with(buffer, &mut |bytes| {
                    let bytes = &mut bytes[..length as usize];
                    if media.read(offset, bytes) {
                        met.add(Outcome::RotMet);
                    }
                    if turn && !bytes.is_empty() {
                        let at = random.below(bytes.len() as u64) as usize;
                        bytes[at] ^= 1 << random.below(8);
                        met.add(Outcome::ReadCorrupted);
                    }
                });
                memory.lend(buffer);
            }
            Operation::Write { offset, length, buffer, .. } => match &under_way.own {
                Some(bytes) => media.write(offset, bytes, drive.block_bytes, keep),
                None => {
                    memory.give_back(buffer);
                    memory.with(buffer, &mut |bytes| {
                        media.write(offset, &bytes[..length as usize], drive.block_bytes, keep);
                    });
                    memory.lend(buffer);
                }
            },
            Operation::Trim { offset, length } => {
                let Some(to) = drive.trimmed else { return };
                media.trim(offset, length, to, random, keep);
                met.add(match to {
                    Trimmed::Zeros => Outcome::TrimmedToZeros,
                    Trimmed::Junk => Outcome::TrimmedToJunk,
                    Trimmed::Old => Outcome::TrimmedToOld,
                });
            }
            Operation::Flush => media.flush(under_way.changes),
        }
    }

    /// Does all, the first part, any part or nothing of what a command asks.
    fn happen_partly(&mut self, under_way: &UnderWay) {
        let (offset, length) = match under_way.command.operation {
            // Whoever asked is gone.
            Operation::Read { .. } => return,
            Operation::Write { offset, length, .. } => (offset, u64::from(length)),
            Operation::Trim { offset, length } => (offset, length),
            // Either it was done, or its writes may be lost.
            Operation::Flush => (0, 0),
        };
        let mut random = Random::new(self.random.bits());
        match random.below(4) {
            0 => {}
            1 => self.happen(under_way, &mut |_| true),
            _ if length == 0 => {}
            2 => {
                self.met.add(Outcome::TornUnderWay);
                let end = offset + random.below(length + 1);
                self.happen(under_way, &mut |at| at < end);
            }
            _ => {
                self.met.add(Outcome::TornUnderWay);
                self.happen(under_way, &mut |_| random.one_in(2));
            }
        }
    }

    /// Sees what the watched user asks for, and that it meets nothing else that it has under way. Returns whether it is a chunk.
    fn watch(&mut self, drive: usize, operation: &Operation) -> bool {
        let (start, length, buffer) = match *operation {
            Operation::Write { offset, length, buffer, .. } => {
                (offset, u64::from(length), Some(buffer))
            }
            Operation::Trim { offset, length } => (offset, length, None),
            Operation::Read { .. } | Operation::Flush => return false,
        };
        let end = start + length;
        let mut at_once = 1;
        for other in self.under_way.values().filter(|u| u.watched && u.drive == drive) {
            at_once += u32::from(other.chunk && other.own.is_none());
            let (from, to) = match other.command.operation {
                Operation::Write { offset, length, .. } => (offset, offset + u64::from(length)),
                Operation::Trim { offset, length } => (offset, offset + length),
                Operation::Read { .. } | Operation::Flush => continue,
            };
            assert!(
                end <= from || to <= start || other.own.is_some(),
                "writing order: {} on drive {drive} while {} is under way",
                operation.describe(),
                other.command.operation.describe()
            );
        }
        let (mut chunk, mut table) = (None, None);
        if let Some(buffer) = buffer {
            self.memory.with(buffer, &mut |bytes| {
                let read = ChunkRecord::read(bytes).ok();
                let parity = read.as_ref().filter(|(_, record)| record.parity.is_some());
                table = parity.and_then(|(_, r)| Table::read(bytes, r).ok()).map(|(t, _)| t);
                let whole = |(place, record): &(Place, ChunkRecord)| {
                    place.offset == start && u64::from(record.summary.length) == length
                };
                chunk = read.filter(whole).map(|(place, record)| (buffer, place, Box::new(record)));
            });
        }
        let is_chunk = chunk.is_some();
        self.asked.push(Asked { drive: drive as u16, start, end, chunk, table, at_once });
        is_chunk
    }

    /// Lets a write change places with one of the same length under way on its drive, now and then.
    fn swap(&mut self, drive: usize, operation: &mut Operation) {
        let Operation::Write { offset, length, .. } = operation else { return };
        let other =
            self.under_way.values_mut().filter(|u| u.drive == drive && u.watched).find_map(|u| {
                match &mut u.command.operation {
                    Operation::Write { offset, length: l, .. } if l == length => Some(offset),
                    _ => None,
                }
            });
        if let Some(other) = other
            && self.random.one_in(4)
        {
            std::mem::swap(offset, other);
        }
    }
}

impl Bank for Handle {
    fn drives(&self) -> &[Geometry] {
        &self.geometry
    }

    fn now(&self) -> Instant {
        self.hub.borrow().now
    }

    fn submit(&mut self, command: Command) -> Result<(), Full> {
        let hub = &mut *self.hub.borrow_mut();
        let drive = self.drives[command.drive.index()];
        if hub.depth[self.user][drive] >= self.geometry[command.drive.index()].depth_max {
            hub.met.add(Outcome::Full);
            return Err(Full);
        }
        let mut command = command;
        let refused = hub.refusal(drive, &command.operation);
        hub.trace.submitted(hub.now, self.user, drive, &command);
        let trick = hub.trick.filter(|_| self.watched && refused.is_none());
        let chunk = self.watched && refused.is_none() && hub.watch(drive, &command.operation);
        match trick {
            Some(Trick::DropsFlushes) if command.operation == Operation::Flush => {
                command.operation =
                    Operation::Write { offset: 0, length: 0, buffer: BufferId(0), fua: false };
            }
            Some(Trick::SwapsWrites) => hub.swap(drive, &mut command.operation),
            _ => {}
        }
        let mut own = None;
        match command.operation {
            Operation::Write { length, buffer, .. } if trick == Some(Trick::AnswersEarly) => {
                hub.memory.with(buffer, &mut |bytes| own = Some(bytes[..length as usize].to_vec()));
                let Command { drive, tag, .. } = command;
                let reaped = hub.now;
                hub.done[self.user].push(Completion { drive, tag, outcome: Ok(()), reaped });
            }
            Operation::Write { length: 0, .. } if trick == Some(Trick::DropsFlushes) => {
                own = Some(Vec::new());
                let Command { drive, tag, .. } = command;
                let reaped = hub.now;
                hub.done[self.user].push(Completion { drive, tag, outcome: Ok(()), reaped });
            }
            operation => {
                hub.depth[self.user][drive] += 1;
                if let Some(buffer) = operation.buffer() {
                    hub.memory.lend(buffer);
                }
            }
        }
        let due = hub.due(drive, &command.operation);
        let order = hub.submitted;
        hub.submitted += 1;
        let changes = hub.drives[drive].media.changes();
        let (user, watched) = (self.user, self.watched);
        let under_way = UnderWay { user, drive, command, refused, changes, own, watched, chunk };
        hub.under_way.insert((due, order), under_way);
        Ok(())
    }

    /// May also return when another user's command is done, as a real bank's does when it is woken.
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        let hub = &mut *self.hub.borrow_mut();
        let under_way = hub.depth[self.user].iter().any(|&n| n > 0);
        if hub.done[self.user].is_empty() && (until.is_some() || under_way) {
            hub.advance(until);
        }
        done.append(&mut hub.done[self.user]);
        Ok(())
    }
}
