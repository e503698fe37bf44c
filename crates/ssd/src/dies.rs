//! The dies and their channels in time. What a die does for a read is known by arithmetic when the read reaches it; one event for
//! each operation, when the die is done with it, keeps everything else in order. Channels are reserved at that event, not before,
//! so that no reservation blocks a transfer that is ready earlier.
//!
//! Reads go first. A program or erase that is under way is suspended for them if the flash can, a bounded number of times; one that
//! waits gets its turn after it has waited for as long as a program takes.

mod retries;

use std::collections::VecDeque;
use std::hint::select_unpredictable;

use crate::earliest::{Earliest, NEVER};
use crate::ftl::{Pace, Program};
use crate::health::Erases;
use crate::link::Channel;
use crate::spec::Spec;
use retries::Retries;

/// Reads for which one program or erase is suspended at most. Flash datasheets limit it because cells drift meanwhile.
const PREEMPTIONS_MAX: u8 = 16;

const NONE: u32 = u32::MAX;

/// What dies do beside what the host waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Writing a wordline of a superblock of the set that the die is in.
    Program {
        /// What is written.
        program: Program,
        /// Counts which flushes wait for it.
        epoch: u32,
    },
    /// Reading what is to be copied, or merged with a smaller write.
    Copy {
        /// Whether it lies in cells of one bit.
        slc: bool,
        /// Bytes to move off the die.
        bytes: u32,
    },
    /// Erasing a block of each plane.
    Erase,
    /// Writing a wordline of the drive's own data.
    Upkeep,
}

// Thousands wait for the dies of a busy drive: what takes less room leaves more of the cache to the tables.
const _: () = assert!(size_of::<Work>() == 16);

/// An access that a command waits for, while a die is at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The command's place in the drive's list.
    pub command: u32,
    /// Bytes that the channel moves off the die; 0 if this writes.
    pub channel_bytes: u32,
    /// Bytes of them that the host asked for.
    pub link_bytes: u32,
}

/// What a die has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// An access; its data is through the channel at this time.
    Access(Access, u64),
    /// Other work, on this die.
    Work(Work, u32),
}

/// Times of operations in nanoseconds, bytes of transfers.
#[derive(Clone, Copy, Debug)]
struct Timing {
    read: u64,
    read_slc: u64,
    program: u64,
    program_slc: u64,
    program_first: u64,
    program_fold: u64,
    erase: u64,
    suspend: Option<u64>,
    suspend_erases: bool,
    program_bytes: u32,
    program_slc_bytes: u32,
}

impl Timing {
    /// How long a program takes.
    #[inline(always)]
    const fn of(&self, program: &Program) -> u64 {
        match (program.pace, program.slc) {
            (Pace::Usual, false) => self.program,
            (Pace::Usual, true) => self.program_slc,
            (Pace::First, _) => self.program_first,
            (Pace::Folding, _) => self.program_fold,
        }
    }
}

#[derive(Clone, Debug)]
struct Die {
    channel: u32,
    /// The last of its accesses, as a place in `nodes`; the die's own if there are none.
    last: u32,
    /// When the last access so far will be done.
    busy_until: u64,
    /// Other work in order; when the first's data is in the die's register, or [`NEVER`] while that isn't arranged.
    queue: VecDeque<Work>,
    loaded: u64,
    current: Option<Work>,
    current_start: u64,
    current_end: u64,
    preempted: u8,
    /// Since when the first of the queue has waited.
    waiting_since: u64,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    access: Access,
    done: u64,
    next: u32,
}

impl Node {
    /// A die's own.
    const fn none() -> Self {
        let access = Access { command: NONE, channel_bytes: 0, link_bytes: 0 };
        Self { access, done: NEVER, next: NONE }
    }
}

/// All dies of a drive.
#[derive(Clone, Debug)]
pub struct Dies {
    timing: Timing,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    events: Earliest,
    /// Accesses, those of a die in a list. The first places are the dies' own: before the first of each.
    nodes: Vec<Node>,
    free_node: u32,
    /// Pieces of other work that are queued or under way.
    work: u64,
    erases: Erases,
    /// Time of all that dies have begun, in nanoseconds.
    busy_ns: u64,
    /// When reads are repeated, if any are, and how many were.
    retries: Option<Box<Retries>>,
    retried: u64,
}

impl Dies {
    /// Dies of the drive with this seed; die `d` is on channel `d % channels`.
    pub fn new(spec: &Spec, seed: u64) -> Self {
        let Spec { flash, cache, endurance, .. } = spec;
        let ns = |us: f64| (us * 1e3).round() as u64;
        let dies = flash.dies();
        let superblocks = spec.superblocks_of_set();
        let bytes_per_s = flash.channel_mb_s * 1e6;
        let die = |die: u32| Die {
            channel: die % flash.channels,
            last: die,
            busy_until: 0,
            queue: VecDeque::new(),
            loaded: NEVER,
            current: None,
            current_start: 0,
            current_end: NEVER,
            preempted: 0,
            waiting_since: 0,
        };
        Self {
            timing: Timing {
                read: ns(flash.read_us),
                read_slc: ns(cache.map_or(flash.read_us, |cache| cache.read_us)),
                program: ns(flash.program_us),
                program_slc: ns(cache.map_or(flash.program_us, |cache| cache.program_us)),
                program_first: ns(cache
                    .and_then(|cache| cache.first_program_us)
                    .unwrap_or(flash.program_us)),
                program_fold: ns(cache.and_then(|cache| cache.fold_us).unwrap_or(flash.program_us)),
                erase: ns(flash.erase_us),
                suspend: flash.suspend_us.map(ns),
                suspend_erases: flash.suspend_erases,
                program_bytes: flash.program_bytes() as u32,
                program_slc_bytes: flash.planes * flash.page_bytes,
            },
            dies: (0..dies).map(die).collect(),
            channels: (0..flash.channels)
                .map(|_| Channel::new(bytes_per_s, flash.page_bytes))
                .collect(),
            events: Earliest::new(dies as usize),
            nodes: vec![Node::none(); dies as usize],
            free_node: NONE,
            work: 0,
            erases: Erases::default(),
            busy_ns: 0,
            retries: Retries::of(flash, endurance, superblocks, seed).map(Box::new),
            retried: 0,
        }
    }

    /// When the first of a die's accesses is done, or [`NEVER`].
    #[inline]
    fn first_done(&self, index: u32) -> u64 {
        let first = self.nodes[index as usize].next;
        // What a die's own place says, if there is none: then no branch depends on it.
        self.nodes[select_unpredictable(first == NONE, index, first) as usize].done
    }

    /// When the next die is done with something, in nanoseconds.
    #[inline]
    pub const fn next(&self) -> u64 {
        self.events.time()
    }

    /// Whether dies have work that no host waits for.
    pub const fn working(&self) -> bool {
        self.work > 0
    }

    /// Whether a die is at anything but programs of the host's data, or will be.
    pub fn is_tidying(&self, die: u32) -> bool {
        let Die { current, queue, .. } = &self.dies[die as usize];
        let of_host =
            |work: &Work| matches!(work, Work::Program { program, .. } if program.host_units > 0);
        current.iter().chain(queue).any(|work| !of_host(work))
    }

    /// Whether a die has no work that no host waits for.
    #[inline]
    pub fn is_without_work(&self, die: u32) -> bool {
        let die = &self.dies[die as usize];
        die.current.is_none() && die.queue.is_empty()
    }

    /// What was erased, and what waited for it.
    pub const fn erases(&self) -> Erases {
        self.erases
    }

    /// Reads of a cell that were repeated.
    pub const fn retries(&self) -> u64 {
        self.retried
    }

    /// Time that dies were busy, summed over dies, in nanoseconds: of all operations that they have begun, whole.
    pub const fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// A die begins to read a cell, or will when it is free.
    // Always: a simulated drive does little else when it is read.
    #[inline(always)]
    pub fn read(&mut self, at: u64, die: u32, slc: bool, access: Access) {
        let length = self.reading(slc);
        self.access(at, die, length, access);
    }

    /// How long the next read of a cell takes.
    #[inline(always)]
    fn reading(&mut self, slc: bool) -> u64 {
        let once = if slc { self.timing.read_slc } else { self.timing.read };
        if self.retries.is_some() { self.repeated(once) } else { once }
    }

    /// How long a read takes with all its repetitions.
    #[cold]
    fn repeated(&mut self, once: u64) -> u64 {
        let erases = self.erases.blocks;
        let times = self.retries.as_mut().map_or(0, |retries| retries.next(erases));
        self.retried += times;
        once * (1 + times)
    }

    /// A die writes in place what arrives at `at`.
    pub fn write_in_place(&mut self, at: u64, die: u32, bytes: u32, access: Access) {
        let there = self.channels[self.dies[die as usize].channel as usize].patient(at, bytes);
        self.access(there, die, self.timing.program, access);
    }

    #[inline(always)]
    fn access(&mut self, at: u64, index: u32, length: u64, access: Access) {
        let start = if self.work > 0 {
            self.start_beside_work(at, index, length)
        } else {
            self.dies[index as usize].busy_until.max(at)
        };
        let die = &mut self.dies[index as usize];
        let done = start + length;
        self.busy_ns += length;
        die.busy_until = done;
        let node = Node { access, done, next: NONE };
        let place = if self.free_node == NONE {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        } else {
            let place = self.free_node;
            self.free_node = self.nodes[place as usize].next;
            self.nodes[place as usize] = node;
            place
        };
        let idle = die.last == index;
        self.nodes[die.last as usize].next = place;
        die.last = place;
        // Behind others it changes nothing about what comes next, but a suspended program's end has moved.
        if self.work > 0 {
            self.announce(index);
        } else {
            self.events.begin(index as usize, done, idle);
        }
    }

    /// When an access can start on a die that may have other work.
    fn start_beside_work(&mut self, at: u64, index: u32, length: u64) -> u64 {
        let die = &mut self.dies[index as usize];
        let free = die.busy_until.max(at);
        if !die.queue.is_empty()
            && die.current.is_none()
            && at.saturating_sub(die.waiting_since) > self.timing.program
        {
            self.begin(index, free);
        }
        let die = &mut self.dies[index as usize];
        let mut start = free;
        if die.current.is_some() && die.current_end > free {
            let to_its_end = die.current == Some(Work::Erase) && !self.timing.suspend_erases;
            match self.timing.suspend {
                Some(suspend) if die.preempted < PREEMPTIONS_MAX && !to_its_end => {
                    die.preempted += 1;
                    if die.busy_until <= at {
                        start += suspend;
                    }
                    die.current_end += start + length - free;
                }
                _ => start = die.current_end,
            }
        }
        start
    }

    /// A die without work erases a block before anything waits for it.
    pub fn erase_ahead(&mut self, at: u64, index: u32) {
        self.erases.ahead += 1;
        self.add(at, index, Work::Erase);
    }

    /// A die gets other work, behind what it has.
    // Always: passed in memory, work would be read back in wider pieces than it was written in, which processors stall for.
    #[inline(always)]
    pub fn add(&mut self, at: u64, index: u32, work: Work) {
        self.work += 1;
        self.erases.blocks += u64::from(work == Work::Erase);
        let die = &mut self.dies[index as usize];
        if die.queue.is_empty() {
            die.waiting_since = at;
        }
        die.queue.push_back(work);
        if die.current.is_none() && die.last == index {
            self.begin(index, at);
            self.announce(index);
        } else if die.queue.len() == 1 && die.current.is_some() {
            self.load(index, at);
        }
    }

    /// Moves the data of the next program into the die's register, beside what the die does.
    #[inline]
    fn load(&mut self, index: u32, at: u64) {
        let die = &mut self.dies[index as usize];
        if die.loaded != NEVER {
            return;
        }
        let bytes = match die.queue.front() {
            None => return,
            Some(Work::Program { program, .. }) if program.slc => self.timing.program_slc_bytes,
            Some(Work::Program { .. } | Work::Upkeep) => self.timing.program_bytes,
            Some(Work::Copy { .. } | Work::Erase) => 0,
        };
        die.loaded =
            if bytes == 0 { at } else { self.channels[die.channel as usize].patient(at, bytes) };
    }

    /// Begins with the first of a die's queue. The die has no other work under way.
    fn begin(&mut self, index: u32, at: u64) {
        self.load(index, at);
        let die = &mut self.dies[index as usize];
        let Some(work) = die.queue.pop_front() else { return };
        // By the time that the next but one is looked at, others have long taken its place in the cache.
        prefetch_index::prefetch_index(die.queue.as_slices().0, 1);
        let start = std::mem::replace(&mut die.loaded, NEVER).max(at);
        let length = match work {
            Work::Program { program, .. } => self.timing.of(&program),
            Work::Upkeep => self.timing.program,
            Work::Copy { slc, .. } => self.reading(slc),
            Work::Erase => self.timing.erase,
        };
        self.busy_ns += length;
        let die = &mut self.dies[index as usize];
        die.current = Some(work);
        die.current_start = start;
        die.current_end = start + length;
        die.preempted = 0;
        self.load(index, start);
    }

    /// Sets when the next thing happens on a die.
    #[inline]
    fn announce(&mut self, index: u32) {
        let access = self.first_done(index);
        let die = &self.dies[index as usize];
        let work = if die.current.is_some() { die.current_end } else { NEVER };
        self.events.set(index as usize, access.min(work));
    }

    /// Takes the next thing that is done; it is done at [`Dies::next`].
    #[inline(always)]
    pub fn step(&mut self) -> Done {
        let (now, index) = (self.events.time(), self.events.index() as u32);
        if self.work == 0 || self.first_done(index) == now {
            let place = self.nodes[index as usize].next;
            let node = self.nodes[place as usize];
            self.nodes[place as usize].next = self.free_node;
            self.free_node = place;
            self.nodes[index as usize].next = node.next;
            let die = &mut self.dies[index as usize];
            die.last = select_unpredictable(node.next == NONE, index, die.last);
            let channel = die.channel as usize;
            if self.work == 0 {
                self.events.pass(self.first_done(index));
            } else {
                if node.next == NONE && die.current.is_none() && !die.queue.is_empty() {
                    self.begin(index, now);
                }
                self.announce(index);
            }
            let bytes = node.access.channel_bytes;
            let through = if bytes == 0 { now } else { self.channels[channel].urgent(now, bytes) };
            return Done::Access(node.access, through);
        }
        let die = &mut self.dies[index as usize];
        let work = die.current.take().expect("an event is an access or other work");
        if work == Work::Erase && !die.queue.is_empty() {
            // It waited from when it came, or from when the erase began if it was there already.
            self.erases.waited_for += 1;
            self.erases.wait_ns += now - die.waiting_since.max(die.current_start);
        }
        die.waiting_since = now;
        if let Work::Copy { bytes, .. } = work {
            self.channels[die.channel as usize].patient(now, bytes);
        }
        if die.last == index && !die.queue.is_empty() {
            self.begin(index, now);
        }
        self.announce(index);
        self.work -= 1;
        Done::Work(work, index)
    }

    /// Forgets everything that is queued or under way, as when power goes.
    pub fn reset(&mut self) {
        for (index, die) in self.dies.iter_mut().enumerate() {
            die.last = index as u32;
            die.busy_until = 0;
            die.queue.clear();
            die.loaded = NEVER;
            die.current = None;
            self.events.set(index, NEVER);
        }
        self.nodes.clear();
        self.nodes.resize(self.dies.len(), Node::none());
        self.free_node = NONE;
        self.work = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Flash, Media};

    const NS_PER_US: u64 = 1000;

    fn flash(suspend_us: Option<f64>) -> Flash {
        Flash {
            media: Media::Nand,
            channels: 1,
            dies_per_channel: 1,
            planes: 2,
            page_bytes: 8 << 10,
            pages_per_block: 12,
            pages_per_program: 3,
            read_us: 50.0,
            program_us: 500.0,
            erase_us: 3_000.0,
            channel_mb_s: 800.0,
            suspend_us,
            suspend_erases: true,
            variation: 0.0,
            bad_blocks: 0.0,
            retry_share: 0.0,
        }
    }

    #[test]
    fn a_program_behind_an_erase_begins_when_it_has_ended_whatever_is_read_meanwhile() {
        for (suspend_us, ahead) in [(None, false), (None, true), (Some(30.0), true)] {
            let profile = profile::library::get("intel-d7-p5510-3.84tb").unwrap();
            let mut spec = Spec::from_profile(&profile).unwrap();
            (spec.flash, spec.cache) = (flash(suspend_us), None);
            let mut dies = Dies::new(&spec, 1);
            if ahead {
                dies.erase_ahead(0, 0);
            } else {
                dies.add(0, 0, Work::Erase);
            }
            let program = Program { host_units: 12, ..Program::default() };
            let program_at = 100 * NS_PER_US;
            let mut erased_at = None;
            let access = Access { command: 0, channel_bytes: 4096, link_bytes: 4096 };
            dies.read(50 * NS_PER_US, 0, false, access);
            dies.add(program_at, 0, Work::Program { program, epoch: 0 });
            while dies.working() {
                let now = dies.next();
                match dies.step() {
                    Done::Work(Work::Erase, _) => erased_at = Some(now),
                    Done::Work(Work::Program { .. }, die) => {
                        let erased_at = erased_at.expect("the erase was asked first");
                        // A read that couldn't suspend the erase goes first.
                        let read_us = if suspend_us.is_none() { 50 } else { 0 };
                        assert_eq!((now, die), (erased_at + (read_us + 500) * NS_PER_US, 0));
                        let wait_ns = erased_at - program_at;
                        let ahead = u64::from(ahead);
                        let expected = Erases { blocks: 1, ahead, waited_for: 1, wait_ns };
                        assert_eq!(dies.erases(), expected);
                    }
                    _ => {}
                }
            }
            let least = 3_000 * NS_PER_US;
            assert!(erased_at.is_some_and(|at| at >= least), "{erased_at:?}");
        }
    }
}
