//! The translation layer of one NVM Set: where data goes, and how space is won back. It knows no time: what the flash has to do for
//! it is told to a [`Flash`], in order.
//!
//! Data is appended to open superblocks, one for each [`Stream`], and so bound to no die. When free superblocks run short a victim's
//! valid units are copied on, a little with each unit that the host writes, so that the host never waits for a whole superblock.

mod audit;
mod cache;
mod collect;
mod free;
pub mod start;

use base::random::Random;

use crate::divisor::Divisor;
use crate::map::{Map, NOWHERE};
use crate::reverse::{Reverse, Spare};
use crate::spec::{Cache, Collector, Placement};
use crate::stripe::{Spot, Stripe};
use collect::Victim;
use free::{EraseAhead, Free};

/// What the flash does for a translation layer.
pub trait Flash {
    /// A die writes a wordline.
    fn program(&mut self, die: u32, program: Program);
    /// A die reads `units` units of one cell that are to be copied.
    fn copy(&mut self, die: u32, slc: bool, units: u32);
    /// A die erases its block of a superblock that is about to be programmed.
    fn erase(&mut self, die: u32, superblock: u32);
    /// A die without other work erases its block of a free superblock.
    fn erase_ahead(&mut self, die: u32, superblock: u32);
}

/// A program of one wordline on one die.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The superblock.
    pub superblock: u32,
    /// The wordline.
    pub wordline: u32,
    /// Whether it is written with one bit a cell.
    pub slc: bool,
    /// Units that it takes out of the host's buffer: all but padding, and none if they are copies.
    pub host_units: u16,
    /// How long it takes.
    pub pace: Pace,
}

/// Which of several program times applies; the number of bits per cell also matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Nothing else.
    #[default]
    Usual,
    /// It goes into the first stage of the cache.
    First,
    /// It takes data out of the cache.
    Folding,
}

/// A log: data of one kind, in a superblock of its own; with placement, one for each reclaim unit handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// From the host into the cache.
    Cached,
    /// From the host past it.
    Host,
    /// Copied by the collector.
    Copied,
}

/// Where a physical place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The superblock.
    pub superblock: u32,
    /// The place in it.
    pub spot: Spot,
    /// Whether it is written with one bit a cell.
    pub slc: bool,
    /// Whether its wordline is still being filled, so that what lies there is in memory.
    pub filling: bool,
}

/// How a translation layer is set up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// Logical units.
    pub units: u32,
    /// Superblocks, free ones included.
    pub superblocks: u32,
    /// Their shape.
    pub stripe: Stripe,
    /// How victims are chosen.
    pub collector: Collector,
    /// Superblocks to keep free; 2 at least.
    pub reserve: u32,
    /// Part of the flash used with one bit a cell, in bytes of this set.
    pub cache: Option<Cache>,
    /// Which data is written apart.
    pub placement: Option<Placement>,
    /// Bytes of a unit, for the cache's sizes.
    pub unit_bytes: u32,
    /// What random choices follow from.
    pub seed: u64,
}

impl Stream {
    /// Its place among open superblocks.
    #[inline]
    const fn of(self, handle: u32) -> usize {
        match self {
            Self::Cached => 0,
            Self::Host => 1 + 2 * handle as usize,
            Self::Copied => 2 + 2 * handle as usize,
        }
    }
}

/// What a translation layer has done, in units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Written by the host.
    pub host: u64,
    /// Copied, from the cache or from victims.
    pub copied: u64,
    /// Programmed to fill up a wordline.
    pub padding: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Closed,
}

#[derive(Clone, Debug)]
struct Superblock {
    /// The reclaim unit handle whose data it holds.
    handle: u32,
    state: State,
    slc: bool,
    /// Places that were filled when it was closed.
    used: u32,
    valid: u32,
    erases: u32,
    /// When it was closed, by the clock.
    closed: u64,
    reverse: Reverse,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    superblock: u32,
    next: u32,
}

/// The translation layer of one NVM Set.
#[derive(Clone, Debug)]
pub struct Ftl {
    setup: Setup,
    /// Places of a superblock; also the distance between two superblocks' first places.
    superblock_units: Divisor,
    map: Map,
    superblocks: Vec<Superblock>,
    /// Erases of all superblocks, and the most of one.
    erases: (u64, u32),
    free: Free,
    open: Vec<Option<Open>>,
    /// From which unit on data has which reclaim unit handle, in order of units.
    handles: Vec<(u32, u32)>,
    victim: Option<Victim>,
    /// Superblocks that are kept free in addition to the reserve, for the writes of a deterministic window.
    kept: u32,
    /// Whether nothing has been collected or folded since a deterministic window began.
    still: bool,
    spare: Spare,
    mapped: u32,
    done: Done,
    /// Units that the host ever wrote, what the drive began with included: what age is told by.
    clock: u64,
    random: Random,
    cache: cache::State,
    /// Superblocks whose last valid unit went.
    emptied: Vec<u32>,
    scratch: Vec<u32>,
}

impl Ftl {
    /// An empty one.
    pub fn new(setup: Setup) -> Self {
        let superblock = Superblock {
            handle: 0,
            state: State::Free,
            slc: false,
            used: 0,
            valid: 0,
            erases: 0,
            closed: 0,
            reverse: Reverse::new(),
        };
        let mut free = Free::new(setup.stripe.dies());
        (0..setup.superblocks).rev().for_each(|superblock| free.add(superblock, false, 0));
        Self {
            superblock_units: Divisor::new(setup.stripe.units(false)),
            map: Map::new(setup.units),
            superblocks: vec![superblock; setup.superblocks as usize],
            erases: (0, 0),
            free,
            open: vec![None; 1 + 2 * Placement::host_streams(setup.placement) as usize],
            handles: Vec::new(),
            victim: None,
            kept: 0,
            still: false,
            spare: Spare::default(),
            mapped: 0,
            done: Done::default(),
            clock: 0,
            random: Random::new(setup.seed),
            cache: cache::State::default(),
            emptied: Vec::new(),
            scratch: Vec::new(),
            setup,
        }
    }

    /// Memory of the tables in use, from logical units to places and back.
    pub fn table_bytes(&self) -> u64 {
        let back = self.superblocks.iter().map(|superblock| superblock.reverse.table_bytes());
        self.map.table_bytes() + back.sum::<u64>()
    }

    /// Has data from a unit on written with a reclaim unit handle. Units are named in order.
    pub fn place_from(&mut self, unit: u32, handle: u32) {
        self.handles.push((unit, handle));
    }

    /// Where the units that have this one's reclaim unit handle end.
    fn end_of_handle(&self, unit: u32) -> u32 {
        let next = self.handles.iter().find(|&&(first, _)| first > unit);
        next.map_or(self.setup.units, |&(first, _)| first)
    }

    /// The reclaim unit handle of a unit's data.
    #[inline]
    fn handle_of(&self, unit: u32) -> u32 {
        let after = self.handles.partition_point(|&(first, _)| first <= unit);
        if after == 0 { 0 } else { self.handles[after - 1].1 }
    }

    /// Writes `count` units from `first` on, for the host.
    #[inline]
    pub fn write(&mut self, first: u32, count: u32, flash: &mut impl Flash) {
        let (mut unit, end) = (first, first + count);
        let handle = self.handle_of(first);
        while unit < end {
            let stream = self.host_stream(flash);
            let count = self.append((stream, handle), unit, end - unit, flash);
            self.done.host += u64::from(count);
            self.clock += u64::from(count);
            unit += count;
            self.keep_pace(count, flash);
        }
    }

    /// Gives up the contents of units.
    pub fn trim(&mut self, first: u32, count: u32) {
        let Self { map, superblocks, superblock_units, emptied, .. } = self;
        let mut gone = 0;
        map.set(first, count, NOWHERE, |place, count| {
            gone += count;
            invalidate(superblocks, *superblock_units, emptied, place, count);
        });
        self.mapped -= gone;
        self.free_emptied();
    }

    /// Looks at units in pieces that lie in one cell, or nowhere: physical place (or [`NOWHERE`]) and units.
    #[inline]
    pub fn read(&self, first: u32, count: u32, mut look: impl FnMut(u32, u32)) {
        if count == 1 {
            look(self.map.get(first), 1);
            return;
        }
        self.map.runs(first, count, |place, count| {
            if place == NOWHERE {
                look(place, count);
                return;
            }
            let (mut place, end) = (place, place + count);
            while place < end {
                let left = self.setup.stripe.spot(self.superblock_units.split(place).1, false).left;
                let piece = left.min(end - place);
                look(place, piece);
                place += piece;
            }
        });
    }

    /// Where a unit lies, or [`NOWHERE`].
    #[inline]
    pub fn place(&self, unit: u32) -> u32 {
        self.map.get(unit)
    }

    /// Says that a unit will be written soon.
    #[inline]
    pub fn expect(&self, unit: u32) {
        self.map.expect(unit);
    }

    /// Fills up the host's open wordlines with padding, so that all data is programmed.
    pub fn pad(&mut self, flash: &mut impl Flash) {
        let host = (0..Placement::host_streams(self.setup.placement)).map(|h| (Stream::Host, h));
        for log in std::iter::once((Stream::Cached, 0)).chain(host) {
            let Some(open) = self.open[log.0.of(log.1)] else { continue };
            let slc = log.0 == Stream::Cached;
            let stripe = &self.setup.stripe;
            // With one page a wordline the dies before the next place are complete; else none is before the last page.
            let row = if slc { stripe.cell_units() } else { stripe.wordline_units(false) };
            let padding = open.next.next_multiple_of(row) - open.next;
            if padding > 0 {
                self.append(log, NOWHERE, padding, flash);
                self.done.padding += u64::from(padding);
            }
        }
    }

    /// The die that has a logical unit, and whether in cells of one bit; None if no die has it.
    // Always: a simulated drive does little else when it is read.
    #[inline(always)]
    pub fn on_die(&self, unit: u32) -> Option<(u32, bool)> {
        let place = self.map.get(unit);
        if place == NOWHERE {
            return None;
        }
        let Location { spot, slc, filling, .. } = self.locate(place);
        (!filling).then_some((spot.die, slc))
    }

    /// Where a physical place is, and how it is written.
    #[inline(always)]
    pub fn locate(&self, place: u32) -> Location {
        let (superblock, within) = self.superblock_units.split(place);
        // Without a cache there is no need to look; the list is long, and what is read lies anywhere.
        let slc = self.cache.superblocks > 0 && self.superblocks[superblock as usize].slc;
        let spot = self.setup.stripe.spot(within, slc);
        let open = self.open.iter().flatten().find(|open| open.superblock == superblock);
        let filling = open.is_some_and(|open| {
            within >= open.next - open.next % self.setup.stripe.wordline_units(slc)
        });
        Location { superblock, spot, slc, filling }
    }

    /// Share of the logical units that hold data, 0 to 1.
    pub fn fill(&self) -> f64 {
        f64::from(self.mapped) / f64::from(self.setup.units.max(1))
    }

    /// What was done so far.
    pub const fn done(&self) -> Done {
        self.done
    }

    /// How it is set up.
    pub const fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Superblocks that are free.
    pub fn free(&self) -> u32 {
        self.free.len()
    }

    /// Times that superblocks were erased: mean and most.
    pub fn erases(&self) -> (f64, u32) {
        let (sum, most) = self.erases;
        (sum as f64 / self.superblocks.len().max(1) as f64, most)
    }

    /// Valid units of each closed superblock.
    pub fn valid(&self) -> impl Iterator<Item = u32> {
        let closed = self.superblocks.iter().filter(|one| one.state == State::Closed);
        closed.map(|superblock| superblock.valid)
    }

    /// Appends units (or padding) to a stream's superblock; returns how many it took. Opens and closes superblocks.
    #[inline]
    fn append(
        &mut self,
        log: (Stream, u32),
        first: u32,
        count: u32,
        flash: &mut impl Flash,
    ) -> u32 {
        let (stream, at) = (log.0, log.0.of(log.1));
        let slc = stream == Stream::Cached;
        let open = match self.open[at] {
            Some(open) => open,
            None => self.open_superblock(log, flash),
        };
        let capacity = self.setup.stripe.units(slc);
        let count = count.min(capacity - open.next);
        let index = open.superblock as usize;
        if first != NOWHERE {
            let place = open.superblock * self.superblock_units.get() + open.next;
            let Self { map, superblocks, superblock_units, emptied, mapped, .. } = self;
            *mapped += count;
            map.set(first, count, place, |place, count| {
                *mapped -= count;
                invalidate(superblocks, *superblock_units, emptied, place, count);
            });
            superblocks[index].valid += count;
        }
        self.superblocks[index].reverse.append(
            open.next,
            first,
            count,
            self.superblock_units.get(),
            &mut self.spare,
        );
        let next = open.next + count;
        let stripe = self.setup.stripe;
        let pace = if slc { self.cache.pace } else { Pace::Usual };
        stripe.programs(open.next, next, slc, |die, wordline| {
            let superblock = open.superblock;
            let host_units = match (stream, first) {
                (Stream::Copied, _) => 0,
                (_, NOWHERE) => {
                    let places = stripe.places(die, wordline, slc);
                    places.map(|(start, end)| open.next.clamp(start, end) - start).sum()
                }
                _ => stripe.program_units(slc),
            };
            flash.program(
                die,
                Program { superblock, wordline, slc, host_units: host_units as u16, pace },
            );
        });
        if next == capacity {
            self.close(at, Open { superblock: open.superblock, next });
        } else {
            self.open[at] = Some(Open { superblock: open.superblock, next });
        }
        if !self.emptied.is_empty() {
            self.free_emptied();
        }
        count
    }

    #[cold]
    fn open_superblock(&mut self, (stream, handle): (Stream, u32), flash: &mut impl Flash) -> Open {
        // The last free superblocks belong to the collector, or it could never free another.
        let copied = Placement::copied_streams(self.setup.placement);
        while stream != Stream::Copied && self.free.len() <= copied {
            self.collect_one(flash);
        }
        if stream == Stream::Cached {
            self.cache.pace = self.cache_stage();
        }
        let taken = self.free.take().expect("over-provisioning leaves the collector a superblock");
        let index = taken.superblock;
        // Where its block was not erased ahead, a die erases it now, before all programs that come after.
        let mut dies = 0;
        for die in self.free.unerased(taken) {
            flash.erase(die, index);
            dies += 1;
        }
        if dies == self.setup.stripe.dies() {
            self.count_erase(index);
        }
        let superblock = &mut self.superblocks[index as usize];
        superblock.state = State::Open;
        superblock.handle = handle;
        superblock.slc = stream == Stream::Cached;
        self.cache.superblocks += u32::from(superblock.slc);
        Open { superblock: index, next: 0 }
    }

    /// A die that has nothing else to do erases its block of a superblock that is free and stale, before anybody waits for it.
    /// Returns whether there is one.
    pub fn erase_ahead(&mut self, die: u32, flash: &mut impl Flash) -> bool {
        let Some(EraseAhead { superblock, first }) = self.free.erase_ahead(die) else {
            return false;
        };
        flash.erase_ahead(die, superblock);
        if first {
            self.count_erase(superblock);
        }
        true
    }

    /// Whether there may be something to erase ahead.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.free.is_stale()
    }

    fn count_erase(&mut self, index: u32) {
        let erases = &mut self.superblocks[index as usize].erases;
        *erases += 1;
        self.erases = (self.erases.0 + 1, self.erases.1.max(*erases));
    }

    fn close(&mut self, at: usize, open: Open) {
        self.open[at] = None;
        let superblock = &mut self.superblocks[open.superblock as usize];
        superblock.state = State::Closed;
        superblock.used = open.next;
        superblock.closed = self.clock;
        if superblock.valid == 0 {
            self.emptied.push(open.superblock);
        }
    }

    fn free_emptied(&mut self) {
        while let Some(index) = self.emptied.pop() {
            let under_way = self.victim.as_ref().is_some_and(|victim| victim.superblock == index);
            let superblock = &self.superblocks[index as usize];
            // It may have been closed, or written again, since it was noted.
            if superblock.state == State::Closed && superblock.valid == 0 && !under_way {
                self.release(index);
            }
        }
    }

    /// Makes a superblock free. A die erases its block when the superblock is opened again, or before if it has time: see
    /// [`Ftl::erase_ahead`].
    fn release(&mut self, index: u32) {
        let superblock = &mut self.superblocks[index as usize];
        superblock.state = State::Free;
        superblock.reverse.clear(&mut self.spare);
        self.cache.superblocks -= u32::from(std::mem::take(&mut superblock.slc));
        self.free.add(index, true, superblock.erases);
    }
}

/// Counts units out of the superblocks that they lie in.
#[inline]
fn invalidate(
    superblocks: &mut [Superblock],
    superblock_units: Divisor,
    emptied: &mut Vec<u32>,
    place: u32,
    count: u32,
) {
    let (mut place, end) = (place, place + count);
    while place < end {
        let (index, within) = superblock_units.split(place);
        let piece = (superblock_units.get() - within).min(end - place);
        let superblock = &mut superblocks[index as usize];
        superblock.valid -= piece;
        if superblock.valid == 0 {
            emptied.push(index);
        }
        place += piece;
    }
}
