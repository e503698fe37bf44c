//! The real bank: all drives of a run on one io_uring, with direct I/O from registered memory.
//!
//! `submit` only queues; `wait` hands everything queued to the kernel in one system call, before it
//! looks for what is done. So a caller submits what it has and then waits (or polls, with an `until`
//! that has passed): a command sits unseen by its drive while its caller does something else.

use std::fmt;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use base::{
    Bank, BankError, Buffers, Command, Completion, DeviceError, Duration, Full, Geometry, Instant,
    Operation,
};
use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};

use crate::discard::{DiscardThread, discard_entry, ring_can_discard};
use crate::pool::Pool;
pub use crate::ring::OpenError;
use crate::ring::{self, RING_ENTRIES_MAX};
use crate::target::{OpenTarget, TargetKind, flock};
use crate::wake::Waker;
use crate::warning::Warning;

/// How often the rest of a short transfer is asked for before it is an error.
const SHORT_RETRIES_MAX: u8 = 2;

/// How often a command that the kernel was too busy for is given to it again.
const BUSY_RETRIES_MAX: u8 = 100;

/// How long the end of a bank waits for what is under way. Linux gives up on an NVMe command after
/// 30 s and a reset; what is still there then is lost, and its memory is never given back.
const DRAIN_MAX: Duration = Duration::from_secs(90);

/// Longest single sleep: a clock that far ahead would overflow in the kernel's sum.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// Marks the completion of the waker's poll; no slot has this number.
const WAKE: u64 = u64::MAX;

/// How a bank uses the kernel. The defaults are the fastest.
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
}

impl Default for Options {
    fn default() -> Self {
        Self { depth_max: 32, register_buffers: true, register_files: true, trim_by_ring: true }
    }
}

/// Block devices and files behind one ring. See [`Bank`] for what it promises.
///
/// It may move to another thread until it first waits; after that it belongs to the thread that did.
/// Dropping it waits for what is under way.
pub struct UringBank {
    ring: IoUring,
    geometry: Vec<Geometry>,
    drives: Vec<Drive>,
    pool: Arc<Pool>,
    buffers_registered: bool,
    files_registered: bool,
    /// Commands accepted and not answered, by number; the number is the ring's `user_data`.
    slots: Vec<Option<Slot>>,
    free_slots: Vec<u32>,
    /// Answered without the kernel: refused, or nothing to do.
    answered: Vec<(u32, Result<(), DeviceError>)>,
    /// What the ring says is done: number and result. Kept for its memory.
    reaped: Vec<(u64, i32)>,
    discards: Option<DiscardThread>,
    waker: Waker,
    /// Somebody else has the waker, so that sleeping must listen to it.
    listens: bool,
    /// The poll of the waker's eventfd is in the ring.
    poll_armed: bool,
    enabled: bool,
}

struct Drive {
    target: OpenTarget,
    trim: Trim,
    under_way: u32,
}

/// How a drive is trimmed. Whether it can be, its geometry tells.
#[derive(Clone, Debug)]
enum Trim {
    /// `BLOCK_URING_CMD_DISCARD`.
    Ring,
    /// `BLKDISCARD` on a thread of its own, which uses this descriptor.
    Thread(Arc<File>),
    /// A hole in a file.
    Hole,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    command: Command,
    /// Where the command's buffer lies; unused without one.
    memory: *mut u8,
    moved: u32,
    short_retries: u8,
    busy_retries: u8,
}

// SAFETY: the pointers in `slots` lead into the pool, which the bank keeps alive and which any
// thread may use; they are only handed on to the kernel. Everything else is Send.
unsafe impl Send for UringBank {}

impl fmt::Debug for UringBank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UringBank")
            .field("geometry", &self.geometry)
            .field("buffers_registered", &self.buffers_registered)
            .field("files_registered", &self.files_registered)
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
        // One entry for each command and one for the waker's poll.
        let commands_max = (targets.len() as u64) * u64::from(options.depth_max);
        if commands_max == 0 || commands_max > u64::from(RING_ENTRIES_MAX / 2) {
            return Err(OpenError::Depth { depth_max: options.depth_max, drives: targets.len() });
        }
        let commands_max = commands_max as u32;
        let ring = ring::build(commands_max + 1)?;
        let mut warnings = Vec::new();
        let buffers_registered =
            options.register_buffers && ring::register_buffers(&ring, &pool, &mut warnings);
        let files_registered =
            options.register_files && ring::register_files(&ring, &targets, &mut warnings);
        let waker = Waker::new()
            .map_err(|reason| OpenError::Os { attempted: "making an eventfd", reason })?;
        let mut discards = None;
        let mut drives = Vec::with_capacity(targets.len());
        for mut target in targets {
            target.geometry.depth_max = options.depth_max;
            let trims = target.geometry.writable && target.geometry.trim_unit_bytes.is_some();
            let trim = if target.kind == TargetKind::File {
                Trim::Hole
            } else if !trims || (options.trim_by_ring && ring_can_discard(&target.file)) {
                Trim::Ring
            } else {
                let os = |attempted| move |reason| OpenError::Os { attempted, reason };
                if discards.is_none() {
                    let thread = DiscardThread::start(waker.clone());
                    discards = Some(thread.map_err(os("starting a thread for trims"))?);
                    warnings.push(Warning::TrimByThread);
                }
                let file = target.file.try_clone();
                Trim::Thread(Arc::new(file.map_err(os("duplicating a descriptor"))?))
            };
            drives.push(Drive { target, trim, under_way: 0 });
        }
        let bank = Self {
            ring,
            geometry: drives.iter().map(|drive| drive.target.geometry.clone()).collect(),
            drives,
            pool,
            buffers_registered,
            files_registered,
            slots: vec![None; commands_max as usize],
            free_slots: (0..commands_max).rev().collect(),
            answered: Vec::with_capacity(commands_max as usize),
            reaped: Vec::with_capacity(commands_max as usize + 1),
            listens: discards.is_some(),
            discards,
            waker,
            poll_armed: false,
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
        let invalid = Some(DeviceError::Os(libc::EINVAL));
        let (offset, length, unit) = match command.operation {
            Operation::Flush => return None,
            Operation::Read { offset, length, buffer: _ } => {
                (offset, u64::from(length), geometry.block_bytes)
            }
            Operation::Write { offset, length, buffer: _ } => {
                if !geometry.writable {
                    return Some(DeviceError::Os(libc::EBADF));
                }
                (offset, u64::from(length), geometry.block_bytes)
            }
            Operation::Trim { offset, length } => {
                if !geometry.writable {
                    return Some(DeviceError::Os(libc::EBADF));
                }
                let Some(unit) = geometry.trim_unit_bytes else {
                    return Some(DeviceError::Os(libc::EOPNOTSUPP));
                };
                (offset, length, unit)
            }
        };
        let unit = u64::from(unit);
        let aligned = offset.is_multiple_of(unit) && length.is_multiple_of(unit);
        let inside = offset.checked_add(length).is_some_and(|end| end <= geometry.capacity_bytes);
        let moves = command.operation.buffer().is_some();
        let fits =
            length <= u64::from(geometry.transfer_max_bytes) && length <= self.pool.size() as u64;
        if aligned && inside && (fits || !moves) { None } else { invalid }
    }

    /// Hands the command of a slot, or what is left of it, to the ring or to the thread for trims.
    fn start(&mut self, number: u32) {
        let slot = self.slots[number as usize].expect("a slot that starts is taken");
        let drive = &self.drives[slot.command.drive.index()];
        if let (Operation::Trim { offset, length }, Trim::Thread(file)) =
            (slot.command.operation, &drive.trim)
        {
            let thread = self.discards.as_ref().expect("started with the first such drive");
            thread.discard(number, Arc::clone(file), offset, length);
            return;
        }
        let entry = self.entry(drive, &slot).user_data(u64::from(number));
        self.push(&entry);
    }

    fn entry(&self, drive: &Drive, slot: &Slot) -> squeue::Entry {
        // A registered file is named by its index, and a flag says so.
        let (file, flags) = if self.files_registered {
            (Fd(i32::from(slot.command.drive.0)), squeue::Flags::FIXED_FILE)
        } else {
            (Fd(drive.target.file.as_raw_fd()), squeue::Flags::empty())
        };
        let memory = slot.memory.wrapping_add(slot.moved as usize);
        let moved = u64::from(slot.moved);
        let entry = match slot.command.operation {
            Operation::Read { offset, length, buffer } => {
                let (offset, length) = (offset + moved, length - slot.moved);
                if self.buffers_registered {
                    let range = self.pool.range_of(buffer);
                    opcode::ReadFixed::new(file, memory, length, range).offset(offset).build()
                } else {
                    opcode::Read::new(file, memory, length).offset(offset).build()
                }
            }
            Operation::Write { offset, length, buffer } => {
                let (offset, length) = (offset + moved, length - slot.moved);
                if self.buffers_registered {
                    let range = self.pool.range_of(buffer);
                    opcode::WriteFixed::new(file, memory, length, range).offset(offset).build()
                } else {
                    opcode::Write::new(file, memory, length).offset(offset).build()
                }
            }
            Operation::Trim { offset, length } => match drive.trim {
                Trim::Hole => opcode::Fallocate::new(file, length)
                    .offset(offset)
                    .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                    .build(),
                Trim::Ring | Trim::Thread(_) => discard_entry(file, offset, length),
            },
            Operation::Flush => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        };
        entry.flags(flags)
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the memory that a read or write names belongs to a buffer whose state is IN_FLIGHT
        // until the completion of the command, so that no reference to it exists meanwhile (see
        // `pool`); the range lies inside the buffer, because longer commands are refused; and the
        // bank keeps the pool until everything is done, or for ever (see `drop`). Other entries
        // name no memory.
        unsafe { self.ring.submission().push(entry) }
            .expect("the ring has an entry for each slot and one for the waker's poll");
    }

    /// Appends what is done. What must be asked for again is queued.
    fn reap(&mut self, done: &mut Vec<Completion>) {
        let mut answered = std::mem::take(&mut self.answered);
        for (number, outcome) in answered.drain(..) {
            self.finish(number, outcome, done);
        }
        self.answered = answered;

        let mut reaped = std::mem::take(&mut self.reaped);
        reaped.extend(self.ring.completion().map(|entry| (entry.user_data(), entry.result())));
        for (number, result) in reaped.drain(..) {
            if number == WAKE {
                self.waker.drain();
                self.poll_armed = false;
            } else {
                self.react(number as u32, result, done);
            }
        }
        self.reaped = reaped;

        while let Some((number, result)) = self.discards.as_ref().and_then(DiscardThread::done) {
            self.react(number, result, done);
        }
    }

    /// Finishes a command by what the kernel returned for it, or asks for the rest.
    fn react(&mut self, number: u32, result: i32, done: &mut Vec<Completion>) {
        let slot = self.slots[number as usize].as_mut().expect("the kernel answers once");
        let length = match slot.command.operation {
            Operation::Read { length, .. } | Operation::Write { length, .. } => length,
            Operation::Trim { .. } | Operation::Flush => 0,
        };
        let outcome = if result < 0 {
            let busy = matches!(-result, libc::EINTR | libc::EAGAIN);
            if busy && slot.busy_retries < BUSY_RETRIES_MAX {
                slot.busy_retries += 1;
                self.start(number);
                return;
            }
            Err(device_error(-result))
        } else if length == 0 {
            Ok(())
        } else {
            slot.moved += result as u32;
            let block = self.geometry[slot.command.drive.index()].block_bytes;
            if slot.moved == length {
                Ok(())
            } else if result > 0
                && slot.moved.is_multiple_of(block)
                && slot.short_retries < SHORT_RETRIES_MAX
            {
                slot.short_retries += 1;
                self.start(number);
                return;
            } else {
                Err(DeviceError::Short { moved: slot.moved })
            }
        };
        self.finish(number, outcome, done);
    }

    fn finish(
        &mut self,
        number: u32,
        outcome: Result<(), DeviceError>,
        done: &mut Vec<Completion>,
    ) {
        let slot = self.slots[number as usize].take().expect("a command finishes once");
        self.free_slots.push(number);
        let Command { drive, operation, tag } = slot.command;
        self.drives[drive.index()].under_way -= 1;
        if let Some(buffer) = operation.buffer() {
            self.pool.end_flight(buffer);
        }
        done.push(Completion { drive, tag, outcome, reaped: self.now() });
    }

    /// Binds the ring to this thread, the first time.
    fn enable(&mut self) -> Result<(), BankError> {
        if !self.enabled {
            ring::enable(&self.ring).map_err(|reason| BankError {
                attempted: "enabling the io_uring",
                reason: reason.to_string(),
            })?;
            self.enabled = true;
        }
        Ok(())
    }

    /// Gives the kernel what is queued, and waits for at most `span` for one thing to be done (zero:
    /// not at all). It may return early.
    fn enter(&mut self, span: Duration) -> Result<(), BankError> {
        let queue = self.ring.submission();
        let needless = queue.is_empty() && !queue.taskrun() && !queue.cq_overflow();
        drop(queue);
        if span == Duration::ZERO && needless {
            return Ok(());
        }
        let submitter = self.ring.submitter();
        let entered = if span == Duration::ZERO {
            submitter.submit()
        } else {
            let span = Timespec::from(std::time::Duration::from(span.min(SLEEP_MAX)));
            submitter.submit_with_args(1, &SubmitArgs::new().timespec(&span))
        };
        let Err(error) = entered else { return Ok(()) };
        let reason = match error.raw_os_error() {
            // Time is up, or a signal came, or the kernel has to be emptied first: look again.
            Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => return Ok(()),
            Some(libc::EEXIST) => "the bank belongs to the thread that first waited".to_owned(),
            _ => error.to_string(),
        };
        Err(BankError { attempted: "entering the io_uring", reason })
    }

    /// Gives the kernel what is still queued.
    fn hand_over(&mut self) -> Result<(), BankError> {
        if self.ring.submission().is_empty() { Ok(()) } else { self.enter(Duration::ZERO) }
    }

    /// Sleeps until something may be done, for at most `span`; true if a waker ended it.
    fn sleep(&mut self, span: Duration) -> Result<bool, BankError> {
        if !self.listens || span == Duration::ZERO {
            self.enter(span)?;
            return Ok(self.listens && self.waker.end_sleep());
        }
        if !self.poll_armed {
            let poll = opcode::PollAdd::new(Fd(self.waker.event()), libc::POLLIN as u32);
            self.push(&poll.build().user_data(WAKE));
            self.poll_armed = true;
        }
        let span = if self.waker.begin_sleep() { span } else { Duration::ZERO };
        let entered = self.enter(span);
        let woken = self.waker.end_sleep();
        entered.map(|()| woken)
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

    /// Queues a command; [`Bank::wait`] hands it to its drive.
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
            Some(buffer) => self.pool.begin_flight(buffer).as_ptr(),
            None => std::ptr::null_mut(),
        };
        let number = self.free_slots.pop().expect("a slot for each command a drive may have");
        self.drives[index].under_way += 1;
        let slot = Slot { command, memory, moved: 0, short_retries: 0, busy_retries: 0 };
        self.slots[number as usize] = Some(slot);
        let nothing = matches!(
            command.operation,
            Operation::Read { length: 0, .. }
                | Operation::Write { length: 0, .. }
                | Operation::Trim { length: 0, .. }
        );
        match self.refusal(&command) {
            Some(error) => self.answered.push((number, Err(error))),
            None if nothing => self.answered.push((number, Ok(()))),
            None => self.start(number),
        }
        Ok(())
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        self.enable()?;
        let before = done.len();
        loop {
            self.reap(done);
            if done.len() > before || (until.is_none() && self.under_way() == 0) {
                return self.hand_over();
            }
            let span = until.map_or(Duration::MAX, |until| until.since(self.now()));
            let woken = self.sleep(span)?;
            if woken || span == Duration::ZERO {
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
            // A drive may still write to the memory, so it must never be used for anything else.
            std::mem::forget(Arc::clone(&self.pool));
        }
        // The end of the ring does this too, but some time later; the next to open these drives
        // should find them free. Failures leave it to the end of the ring.
        let submitter = self.ring.submitter();
        if self.files_registered {
            drop(submitter.unregister_files());
        }
        if self.buffers_registered {
            drop(submitter.unregister_buffers());
        }
        for drive in &self.drives {
            drop(flock(&drive.target.file, libc::LOCK_UN));
        }
    }
}

/// What an error number of a read, write, trim or flush says of the drive (`errno(3)`; the block
/// layer's table is `blk_errors` in `block/blk-core.c`).
fn device_error(number: i32) -> DeviceError {
    match number {
        libc::ENODEV | libc::ENXIO | libc::ESHUTDOWN => DeviceError::Gone,
        libc::EIO | libc::ENODATA | libc::EREMOTEIO | libc::EILSEQ => DeviceError::Medium,
        libc::ENOSPC | libc::EDQUOT => DeviceError::NoSpace,
        _ => DeviceError::Os(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_become_what_a_recorder_can_act_on() {
        for (number, error) in [
            (libc::ENODEV, DeviceError::Gone),
            (libc::EIO, DeviceError::Medium),
            (libc::EDQUOT, DeviceError::NoSpace),
            (libc::ETIMEDOUT, DeviceError::Os(libc::ETIMEDOUT)),
        ] {
            assert_eq!(device_error(number), error);
        }
    }
}
