//! The real bank: all drives of a run on one io_uring, with direct I/O. Buffers that are in memory from
//! the start are registered with the kernel.
//!
//! `submit` queues, and hands what is queued to the kernel whenever it is [`HAND_OVER_AT`] commands.
//! `wait` hands over the rest in the system call in which it sleeps, or before it returns (with
//! [`Options::tight_loop`], up to three commands go with what is submitted next). So a caller submits
//! what it has and then waits (or polls, with an `until` that has passed): a command sits unseen by
//! its drive while its caller does something else.
//!
//! Drives that are polled have a second ring for their reads and writes, because in such a ring nothing
//! else is allowed. Long commands of passthrough drives go out in pieces, as the block layer would cut
//! them.

use std::fmt;
use std::io::{self, Seek, SeekFrom};
use std::sync::Arc;

use base::{
    Bank, BankError, Buffers, Command, Completion, DeviceError, Duration, Full, Geometry, Instant,
    Operation,
};
use io_uring::opcode;
use io_uring::types::Fd;

use crate::discard::{DiscardThread, ring_can_discard};
use crate::drive::{Drive, PIECES_MAX, needs, polls};
use crate::entry::{self, Answer, Piece};
use crate::passthrough::{self, TrimRange};
use crate::pool::Pool;
pub use crate::ring::OpenError;
use crate::ring::{Needs, Ring, Stay};
use crate::slot::Slot;
use crate::target::{OpenTarget, TargetKind};
use crate::wake::Waker;
use crate::warning::Warning;

/// Commands that are handed over together at most. Linux gives a drive nothing of what it is handed
/// before it has gone through all of it, so that a drive would idle over more; and with fewer, the
/// system call itself is felt.
const HAND_OVER_AT: usize = 4;

/// How long the end of a bank waits for what is under way. Linux gives up on an NVMe command after
/// 30 s and a reset; what is still there then is lost, and its memory is never given back.
const DRAIN_MAX: Duration = Duration::from_secs(90);

/// Marks the completion of the waker's poll; no slot has this number.
const WAKE: u64 = u64::MAX;

/// How a bank uses the kernel. The defaults are the fastest that leave the processor free to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Commands under way on one drive before [`Full`].
    pub depth_max: u32,
    /// Lock the buffers' pages once instead of for each command.
    pub register_buffers: bool,
    /// Look up the open files once instead of for each command.
    pub register_files: bool,
    /// Trim block devices through the ring, where the kernel can, instead of from a thread.
    pub trim_by_ring: bool,
    /// Poll drives for their completions, where their driver can, instead of being interrupted:
    /// shorter latency, for all the time of the processor while reads or writes are under way.
    pub poll: bool,
    /// The thread that waits does nothing else than take what is done, submit and wait again, and it drops the bank. Then a few
    /// commands that are queued when [`Bank::wait`] returns with completions are handed over together with those that come next, and
    /// the kernel keeps the ring at hand for the thread.
    pub tight_loop: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            depth_max: 32,
            register_buffers: true,
            register_files: true,
            trim_by_ring: true,
            poll: false,
            tight_loop: false,
        }
    }
}

/// Block devices, NVMe generic devices and files behind one ring (two, if some are polled). See
/// [`Bank`] for what it promises.
///
/// It may move to another thread until it first waits; after that it belongs to the thread that did.
/// Dropping it waits for what is under way.
pub struct UringBank {
    /// Everything that isn't polled, and the waker's poll.
    ring: Ring,
    /// Reads and writes of drives that are polled.
    polled: Option<Ring>,
    geometry: Vec<Geometry>,
    drives: Vec<Drive>,
    pool: Arc<Pool>,
    /// Commands accepted and not answered, by number; the number is the ring's `user_data`.
    slots: Vec<Option<Slot>>,
    free_slots: Vec<u32>,
    /// How many of them are in the polled ring.
    polled_under_way: usize,
    /// What a passthrough drive reads of the range that a slot's command trims; by number, or empty
    /// without such drives.
    trim_ranges: Vec<TrimRange>,
    /// Answered without the kernel: refused, or nothing to do.
    answered: Vec<(u32, Result<(), DeviceError>)>,
    /// What the rings say is done: number and result. Kept for its memory.
    reaped: Vec<(u64, i32)>,
    discards: Option<DiscardThread>,
    waker: Waker,
    /// Somebody else has the waker, so that sleeping must listen to it.
    listens: bool,
    /// The poll of the waker's eventfd is in the ring.
    poll_armed: bool,
    tight_loop: bool,
    /// Commands that were left queued when the last wait returned.
    left_queued: usize,
    enabled: bool,
}

// SAFETY: the pointers in `slots` lead into the pool, which the bank keeps alive and which any
// thread may use; they are only handed on to the kernel. Everything else is Send.
unsafe impl Send for UringBank {}

impl fmt::Debug for UringBank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UringBank")
            .field("geometry", &self.geometry)
            .field("polled", &self.polled.is_some())
            .field("under_way", &self.under_way())
            .finish_non_exhaustive()
    }
}

impl UringBank {
    /// A bank of `targets`, in their order, that moves data between them and `pool`.
    ///
    /// # Errors
    /// [`OpenError`] if the kernel can't give what a bank can't do without; what it can do without
    /// is a [`Warning`].
    pub fn open(
        targets: Vec<OpenTarget>,
        pool: Arc<Pool>,
        options: Options,
    ) -> Result<(Self, Vec<Warning>), OpenError> {
        if targets.is_empty() || targets.len() > usize::from(u16::MAX) {
            return Err(OpenError::DriveCount { count: targets.len() });
        }
        let waker = Waker::new()
            .map_err(|reason| OpenError::Os { attempted: "making an eventfd", reason })?;
        let mut warnings = Vec::new();
        let polled: Vec<bool> =
            targets.iter().map(|target| options.poll && polls(target, &mut warnings)).collect();
        let (ring, polled_ring) = open_rings(&targets, &polled, &pool, &options, &mut warnings)?;
        let mut discards = None;
        let mut drives = Vec::with_capacity(targets.len());
        for (mut target, polled) in targets.into_iter().zip(polled) {
            target.geometry.depth_max = options.depth_max;
            let trim_by_thread = needs_discard_thread(&target, &options)
                .then(|| target.file.try_clone().map(Arc::new))
                .transpose()
                .map_err(|reason| OpenError::Os {
                    attempted: "duplicating a descriptor",
                    reason,
                })?;
            if trim_by_thread.is_some() && discards.is_none() {
                discards = Some(DiscardThread::new(waker.clone()));
                warnings.push(Warning::TrimByThread);
            }
            let mut drive = Drive::new(target, trim_by_thread, polled, &pool);
            let home = polled_ring.as_ref().filter(|_| polled).unwrap_or(&ring);
            if home.has_buffers() && !drive.can_register() {
                drive.registers = false;
                let name = drive.target.geometry.name.clone();
                warnings.push(Warning::PassthroughNotRegistered { name });
            }
            drives.push(drive);
        }
        let commands_max = drives.len() * options.depth_max as usize;
        let passthrough = drives.iter().any(|drive| drive.target.namespace.is_some());
        let bank = Self {
            ring,
            polled: polled_ring,
            geometry: drives.iter().map(|drive| drive.target.geometry.clone()).collect(),
            drives,
            pool,
            slots: (0..commands_max).map(|_| None).collect(),
            free_slots: (0..commands_max as u32).rev().collect(),
            polled_under_way: 0,
            trim_ranges: vec![TrimRange::default(); if passthrough { commands_max } else { 0 }],
            answered: Vec::with_capacity(commands_max),
            reaped: Vec::with_capacity(commands_max + 1),
            listens: discards.is_some(),
            discards,
            waker,
            poll_armed: false,
            tight_loop: options.tight_loop,
            left_queued: 0,
            enabled: false,
        };
        Ok((bank, warnings))
    }

    /// A handle with which other threads make [`Bank::wait`] return early. A wake that comes while
    /// the bank isn't waiting makes its next `wait` return at once. A `wait` without `until` and
    /// without commands under way returns at once in any case.
    pub fn waker(&mut self) -> Waker {
        self.listens = true;
        self.waker.clone()
    }

    /// The buffers that commands name.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    fn under_way(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    /// Why a command can't reach its drive, if it can't.
    fn refusal(&self, command: &Command) -> Option<DeviceError> {
        let geometry = &self.geometry[command.drive.index()];
        let buffer_bytes = self.pool.size() as u64;
        geometry.check(&command.operation, buffer_bytes).err().map(DeviceError::from)
    }

    /// Puts the command of a slot, or the next pieces of it, into a ring or before the thread for
    /// trims.
    fn start(&mut self, number: u32) {
        let slot = self.slots[number as usize].as_mut().expect("a slot that starts is taken");
        let index = slot.command.drive.index();
        let drive = &self.drives[index];
        let operation = slot.command.operation;
        if let (Operation::Trim { offset, length }, Some(file)) = (operation, &drive.trim_by_thread)
        {
            let thread = self.discards.as_mut().expect("made with the first such drive");
            thread.discard(number, Arc::clone(file), offset, length);
            (slot.pieces, slot.handed) = (1, length);
            return;
        }
        let ring = match &mut self.polled {
            Some(polled) if drive.polled && slot.moves_data() => polled,
            _ => &mut self.ring,
        };
        let (file, flags) = ring.file(slot.command.drive.0, &drive.target.file);
        let buffer = operation.buffer().filter(|_| drive.registers);
        let registered = ring.range_of(&self.pool, buffer);
        let (start, length) = slot.range();
        let longest = match operation {
            Operation::Trim { .. } => drive.trim_piece_max_bytes,
            _ => drive.piece_max_bytes,
        };
        loop {
            let mut piece = Piece {
                offset: start + slot.handed,
                length: (length - slot.handed).min(longest),
                memory: slot.memory.wrapping_add(slot.handed as usize),
            };
            slot.pieces += 1;
            slot.handed += piece.length;
            let user_data = u64::from(number);
            if let Some(namespace) = &drive.target.namespace {
                if let Operation::Trim { .. } = operation {
                    let range = &mut self.trim_ranges[number as usize];
                    *range = namespace.trim_range(piece.offset, piece.length);
                    piece.memory = range.as_mut_ptr();
                }
                let entry = namespace.entry(file, &operation, piece, registered);
                // SAFETY: as below; and a trim's range stays as it is until the completion, because
                // a trim is one piece at a time and its slot is taken until then, and stays where
                // it is for as long as the bank, or for ever (see `drop`).
                unsafe { ring.push_wide(&entry.flags(flags).user_data(user_data)) };
            } else {
                let entry = entry::entry(file, drive.target.kind, &operation, piece, registered);
                // SAFETY: the memory that a read or write names belongs to a buffer whose state is
                // IN_FLIGHT until the command is finished, which is not before all its pieces are
                // done, so that no reference to it exists meanwhile (see `pool`); the piece lies
                // inside the buffer, because longer commands are refused; and the bank keeps the
                // pool until everything is done, or for ever (see `drop`). Other entries name no
                // memory.
                unsafe { ring.push(entry.flags(flags).user_data(user_data)) };
            }
            let one_at_a_time = matches!(operation, Operation::Trim { .. });
            if slot.handed == length || slot.pieces == PIECES_MAX || one_at_a_time {
                return;
            }
        }
    }

    /// Appends what is done. What must be asked for again is queued.
    fn reap(&mut self, done: &mut Vec<Completion>) {
        let mut reaped = std::mem::take(&mut self.reaped);
        self.ring.reap(&mut reaped);
        if let Some(polled) = &mut self.polled {
            polled.reap(&mut reaped);
        }
        while let Some((number, result)) = self.discards.as_mut().and_then(DiscardThread::done) {
            reaped.push((u64::from(number), result));
        }
        if reaped.is_empty() && self.answered.is_empty() {
            self.reaped = reaped;
            return;
        }
        // All of it was seen at once, and this is when: going through it takes time of its own.
        let now = self.now();
        for (number, result) in reaped.drain(..) {
            if number == WAKE {
                self.waker.drain();
                self.poll_armed = false;
            } else {
                self.react(number as u32, result, now, done);
            }
        }
        self.reaped = reaped;
        let mut answered = std::mem::take(&mut self.answered);
        for (number, outcome) in answered.drain(..) {
            self.finish(number, outcome, now, done);
        }
        self.answered = answered;
    }

    /// The open targets once more, for another bank of this process.
    ///
    /// # Errors
    /// If the process may have no more open files.
    pub fn targets(&self) -> io::Result<Vec<OpenTarget>> {
        self.drives.iter().map(|drive| drive.target.try_clone()).collect()
    }

    /// Finishes a command with its last piece, or asks for the rest.
    fn react(&mut self, number: u32, result: i32, now: Instant, done: &mut Vec<Completion>) {
        let slot = self.slots[number as usize].as_mut().expect("each piece is answered once");
        if slot.is_whole(result) {
            return self.finish(number, Ok(()), now, done);
        }
        let drive = &self.drives[slot.command.drive.index()];
        let answer = match &drive.target.namespace {
            Some(_) => passthrough::answer(result),
            None if drive.target.kind == TargetKind::BlockDevice => {
                let size = || (&drive.target.file).seek(SeekFrom::End(0)).ok();
                entry::answer_of_block_device(entry::answer(result, slot.moves_data()), size)
            }
            None => entry::answer(result, slot.moves_data()),
        };
        slot.pieces -= 1;
        match answer {
            Answer::Done => {}
            Answer::Moved(bytes) => slot.moved = slot.moved.map(|all| all + u64::from(bytes)),
            Answer::Busy(error) => slot.busy = Some(error),
            Answer::Failed(error) => slot.failure = slot.failure.take().or(Some(error)),
        }
        if slot.pieces > 0 {
            // After trouble nothing more is started, but the memory is the kernel's until all is back.
            let goes_on = slot.failure.is_none() && slot.busy.is_none();
            if goes_on && slot.handed < slot.range().1 {
                self.start(number);
            }
            return;
        }
        match slot.verdict(drive.piece_max_bytes, drive.target.geometry.block_bytes) {
            Some(outcome) => self.finish(number, outcome, now, done),
            None => self.start(number),
        }
    }

    fn finish(
        &mut self,
        number: u32,
        outcome: Result<(), DeviceError>,
        reaped: Instant,
        done: &mut Vec<Completion>,
    ) {
        let slot = self.slots[number as usize].take().expect("a command finishes once");
        self.free_slots.push(number);
        let Command { drive, operation, tag } = slot.command;
        self.drives[drive.index()].under_way -= 1;
        if let Some(buffer) = operation.buffer() {
            self.pool.end_flight(buffer);
            self.polled_under_way -= usize::from(self.drives[drive.index()].polled);
        }
        done.push(Completion { drive, tag, outcome, reaped });
    }

    /// Binds the rings to this thread, the first time.
    fn enable(&mut self) -> Result<(), BankError> {
        if !self.enabled {
            for ring in std::iter::once(&mut self.ring).chain(&mut self.polled) {
                ring.enable(self.tight_loop).map_err(|reason| BankError {
                    attempted: "enabling the io_uring",
                    reason: reason.to_string(),
                })?;
            }
            self.enabled = true;
        }
        Ok(())
    }

    /// Gives the kernel what is queued if it is enough to be worth it, once the bank has its thread.
    fn hand_over_many(&mut self) {
        if !self.enabled {
            return;
        }
        // If this fails, the queue stays as it is, and the next wait says so.
        if self.ring.queued() >= HAND_OVER_AT {
            drop(self.ring.enter(Stay::Not));
            self.left_queued = 0;
        }
        if let Some(polled) = &mut self.polled
            && polled.queued() >= HAND_OVER_AT
        {
            drop(polled.enter(Stay::Not));
        }
    }

    /// Gives the kernel what is still queued.
    fn hand_over(&mut self) -> Result<(), BankError> {
        for ring in std::iter::once(&mut self.ring).chain(&mut self.polled) {
            if ring.queued() > 0 {
                ring.enter(Stay::Not).map_err(cannot_enter)?;
            }
        }
        Ok(())
    }

    /// In a tight loop, before a few commands are handed over by themselves: takes what was done in the meantime, because what its
    /// caller submits next can go with them. A drive answers many commands at once, and the first of them ends a sleep.
    fn take_ready(&mut self) -> Result<bool, BankError> {
        let few = self.tight_loop && (1..HAND_OVER_AT).contains(&self.ring.queued());
        if few { self.ring.take_ready().map_err(cannot_enter) } else { Ok(false) }
    }

    /// Before a wait returns with completions: hands over what is queued, or in a tight loop leaves it to the next wait, unless nothing
    /// was added since the last one left something.
    fn hand_over_or_leave(&mut self) -> Result<(), BankError> {
        let queued = self.ring.queued();
        let few = (self.left_queued + 1..HAND_OVER_AT).contains(&queued);
        if self.tight_loop && self.polled.is_none() && few {
            self.left_queued = queued;
            return Ok(());
        }
        self.left_queued = 0;
        self.hand_over()
    }

    /// Hands over what is queued and sleeps until something may be done, for at most `span` (None:
    /// for as long as it takes); true if a waker ended it.
    fn sleep(&mut self, span: Option<Duration>) -> Result<bool, BankError> {
        if let Some(polled) = self.polled.as_mut().filter(|_| self.polled_under_way > 0) {
            // A polled drive rouses nobody, so there is no sleep: the caller looks again. The kernel
            // looks for us while there is nothing else to look at.
            self.ring.enter(Stay::Not).map_err(cannot_enter)?;
            let under_way = self.slots.len() - self.free_slots.len();
            let alone = span.is_none() && !self.listens && under_way == self.polled_under_way;
            polled.enter(if alone { Stay::UntilDone } else { Stay::Not }).map_err(cannot_enter)?;
            return Ok(self.listens && self.waker.end_sleep());
        }
        let stay = match span {
            Some(Duration::ZERO) => Stay::Not,
            Some(span) => Stay::For(span),
            None => Stay::UntilDone,
        };
        if !self.listens || stay == Stay::Not {
            self.ring.enter(stay).map_err(cannot_enter)?;
            return Ok(self.listens && self.waker.end_sleep());
        }
        if !self.poll_armed {
            let poll = opcode::PollAdd::new(Fd(self.waker.event()), libc::POLLIN as u32);
            // SAFETY: the entry names no memory.
            unsafe { self.ring.push(poll.build().user_data(WAKE)) };
            self.poll_armed = true;
        }
        let stay = if self.waker.begin_sleep() { stay } else { Stay::Not };
        let entered = self.ring.enter(stay);
        let woken = self.waker.end_sleep();
        entered.map_err(cannot_enter).map(|()| woken)
    }

    /// Waits until nothing is under way; false if that can't be had.
    fn drain(&mut self) -> bool {
        let deadline = self.now() + DRAIN_MAX;
        let mut done = Vec::new();
        while self.under_way() > 0 {
            if self.now() >= deadline || self.wait(Some(deadline), &mut done).is_err() {
                return false;
            }
            done.clear();
        }
        true
    }
}

/// Whether a drive can be trimmed, and not by the ring.
fn needs_discard_thread(target: &OpenTarget, options: &Options) -> bool {
    target.kind == TargetKind::BlockDevice
        && target.geometry.writable
        && target.geometry.trim_unit_bytes.is_some()
        && !(options.trim_by_ring && ring_can_discard(&target.file))
}

/// The ring, and the second one if some drives are `polled`. Their files and buffers are registered as the options say, but for
/// buffers that come to be as they are used: registering them would bring in all of them.
fn open_rings(
    targets: &[OpenTarget],
    polled: &[bool],
    pool: &Pool,
    options: &Options,
    warnings: &mut Vec<Warning>,
) -> Result<(Ring, Option<Ring>), OpenError> {
    let needs = needs(targets, polled, pool, options.depth_max)?;
    let mut open = |needs: Needs, holds_data: bool| {
        let mut ring = Ring::new(needs)?;
        if options.register_buffers && holds_data && pool.is_populated() {
            ring.register_buffers(pool, warnings);
        }
        if options.register_files {
            ring.register_files(targets, warnings);
        }
        Ok(ring)
    };
    let ring = open(needs, polled.contains(&false))?;
    let polled_ring =
        polled.contains(&true).then(|| open(Needs { polled: true, ..needs }, true)).transpose()?;
    Ok((ring, polled_ring))
}

impl Bank for UringBank {
    fn drives(&self) -> &[Geometry] {
        &self.geometry
    }

    /// `CLOCK_MONOTONIC`: all banks of a machine share it.
    fn now(&self) -> Instant {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a timespec of our own. This clock always exists.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    /// Queues a command. Its drive has it when [`HAND_OVER_AT`] are queued, or when [`Bank::wait`] is
    /// called.
    ///
    /// # Panics
    /// If there is no such drive, or the command's buffer doesn't exist or is in use.
    fn submit(&mut self, command: Command) -> Result<(), Full> {
        let index = command.drive.index();
        assert!(
            index < self.drives.len(),
            "can't submit a {} to drive {index}: the bank has {} drives",
            command.operation.describe(),
            self.drives.len()
        );
        if self.drives[index].under_way >= self.geometry[index].depth_max {
            return Err(Full);
        }
        let memory = match command.operation.buffer() {
            Some(buffer) => {
                let memory = self.pool.begin_flight(buffer).as_ptr();
                self.polled_under_way += usize::from(self.drives[index].polled);
                memory
            }
            None => std::ptr::null_mut(),
        };
        let number = self.free_slots.pop().expect("a slot for each command a drive may have");
        self.drives[index].under_way += 1;
        let passthrough = self.drives[index].target.namespace.is_some();
        let slot = Slot::new(command, memory, passthrough);
        let nothing = slot.range().1 == 0 && command.operation != Operation::Flush;
        self.slots[number as usize] = Some(slot);
        match self.refusal(&command) {
            Some(error) => self.answered.push((number, Err(error))),
            None if nothing => self.answered.push((number, Ok(()))),
            None => {
                self.start(number);
                // In a tight loop full drives are waited for next, and what is queued goes with that.
                if !(self.tight_loop && self.free_slots.is_empty()) {
                    self.hand_over_many();
                }
            }
        }
        Ok(())
    }

    /// Hands over what is queued before it looks, sleeps or returns; in a [tight loop](Options::tight_loop), with completions, the next
    /// wait does so.
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        self.enable()?;
        let before = done.len();
        let mut took_ready = false;
        loop {
            self.reap(done);
            if done.len() > before || (until.is_none() && self.under_way() == 0) {
                return self.hand_over_or_leave();
            }
            if !std::mem::replace(&mut took_ready, true) && self.take_ready()? {
                continue;
            }
            self.left_queued = 0;
            let span = until.map(|until| until.since(self.now()));
            let woken = self.sleep(span)?;
            if woken || span == Some(Duration::ZERO) {
                self.reap(done);
                return self.hand_over();
            }
        }
    }
}

impl Drop for UringBank {
    fn drop(&mut self) {
        if self.drain() {
            if let Some(thread) = self.discards.take() {
                thread.join();
            }
        } else {
            // A drive may still use the memory, so it must never be used for anything else.
            std::mem::forget(Arc::clone(&self.pool));
            std::mem::forget(std::mem::take(&mut self.trim_ranges));
        }
        // The next to open these drives should find them free.
        for ring in std::iter::once(&mut self.ring).chain(&mut self.polled) {
            ring.unregister();
        }
    }
}

fn cannot_enter(reason: io::Error) -> BankError {
    let reason = match reason.raw_os_error() {
        Some(libc::EEXIST) => "the bank belongs to the thread that first waited".to_owned(),
        _ => reason.to_string(),
    };
    BankError { attempted: "entering the io_uring", reason }
}
