//! A drive in time: commands pass the controller, then medium and link, or link and buffer. Everything that happens is an event of one
//! of a few queues, each in order by itself, so the next event is the earliest of their heads.
//!
//! Deliberately absent: read-ahead (a read waits for its cells, however regular), merging of writes in the buffer.

mod data;
mod forced;
mod hands;
mod heat;
mod namespaces;
mod power;
mod reads;
mod unit;
mod windows;
mod writes;

use std::collections::VecDeque;

use base::random::Random;
use base::{Command, Completion, Instant, Operation};

use crate::bank::{Slot, Start, Uplink};
use crate::dies::{Access, Dies, Done};
use crate::earliest::NEVER;
use crate::ftl::{Ftl, Setup};
use crate::health::{Health, SetHealth};
use crate::heat::Thermometer;
use crate::link::Wire;
use crate::queue::Queue;
use crate::spec::{Media as Medium, Placement, Spec, SpecError};
use crate::stripe::Stripe;
pub use data::Data;
use forced::Forced;
use hands::Active;
use namespaces::Namespaces;
use unit::Unit;
pub use windows::Window;
use windows::Windows;

/// Bytes of a write that are taken into the buffer and moved at a time, if the buffer is not too small for it.
const PIECE_BYTES: u64 = 256 << 10;

/// Writes up to this length are looked up in the table before they arrive: it matters where they are many and scattered.
const SHORT_BYTES: u32 = 64 << 10;

/// How long a drive without a cache waits before it uses idle time, in milliseconds.
const IDLE_MS: f64 = 1000.0;

/// The controller's time is kept in parts of a nanosecond, so that rounding adds up to nothing.
const FINE_BITS: u32 = 8;
const FINE: f64 = (1 << FINE_BITS) as f64;

/// The two directions of an uplink.
#[derive(Clone, Copy, Debug)]
pub struct UplinkWires {
    /// Toward the host.
    pub read: Wire,
    /// Toward the drives.
    pub write: Wire,
}

impl UplinkWires {
    /// Both idle.
    pub fn new(uplink: &Uplink) -> Self {
        Self {
            read: Wire::new(uplink.read_bytes_per_s),
            write: Wire::new(uplink.write_bytes_per_s),
        }
    }
}

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    command: Command,
    namespace: u32,
    /// Parts that are still to come.
    parts: u32,
    /// When the last part so far is through.
    through: u64,
}

/// A part of a write on its way through the link.
#[derive(Clone, Copy, Debug)]
struct Piece {
    command: u32,
    /// From the namespace's start, in bytes.
    offset: u64,
    length: u32,
    last: bool,
}

/// A write that waits for the controller, and then for room in the buffer.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    command: u32,
    /// When it has passed the controller.
    at: u64,
    offset: u64,
    end: u64,
    /// Units of its next part, once the buffer had no room for them.
    held_up: u64,
}

impl Waiting {
    /// When it asks for room for the first time; [`NEVER`] if it was told to wait.
    #[inline]
    const fn asks_at(&self) -> u64 {
        if self.held_up == 0 { self.at } else { NEVER }
    }
}

/// Programs that a flush waits for.
#[derive(Clone, Debug, Default)]
struct Epoch {
    programs: u64,
    flushes: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Set {
    ftl: Ftl,
    /// Its dies among the drive's.
    dies: Vec<u32>,
    active: Vec<Active>,
    written_units: u64,
    read_bytes: u64,
    upkeep_programs: u64,
}

impl Set {
    /// The set of this number of the drive that the slot holds, as the slot begins it.
    fn new(spec: &Spec, slot: &Slot, index: u32, namespaces: &Namespaces) -> Self {
        let in_place = spec.flash.media == Medium::InPlace;
        let dies = spec.dies_of_set(index);
        let shared = 1.0 / f64::from(spec.sets.count);
        let mut ftl = Ftl::new(Setup {
            units: if in_place { 0 } else { namespaces.set_units(index) },
            superblocks: if in_place { 0 } else { spec.superblocks_of_set() },
            stripe: Stripe::of(&spec.flash, &spec.mapping, dies.len() as u32),
            collector: spec.mapping.collector,
            reserve: spec.mapping.reserve_superblocks,
            cache: spec.cache.map(|mut cache| {
                cache.static_bytes = (cache.static_bytes as f64 * shared) as u64;
                cache.dynamic_bytes = (cache.dynamic_bytes as f64 * shared) as u64;
                cache.first_bytes = (cache.first_bytes as f64 * shared) as u64;
                cache
            }),
            placement: spec.placement,
            unit_bytes: spec.mapping.unit_bytes,
            seed: slot.seed.wrapping_add(u64::from(index)),
        });
        if let Some(Placement { handles, .. }) = spec.placement {
            let own = namespaces.in_set(index);
            own.for_each(|(namespace, first)| ftl.place_from(first, namespace % handles));
        }
        match slot.start {
            Start::Full if !in_place => ftl.fill_in_order(),
            Start::Overwritten if !in_place => {
                ftl.fill_in_order();
                ftl.overwrite_in_order();
            }
            Start::Random { block_bytes } if !in_place => {
                ftl.scatter((block_bytes / spec.mapping.unit_bytes).max(1));
            }
            _ => {}
        }
        Self { ftl, dies, active: Vec::new(), written_units: 0, read_bytes: 0, upkeep_programs: 0 }
    }
}

/// Each die's set, and its number in it.
fn places(sets: &[Set], dies: u32) -> Vec<(u32, u32)> {
    let mut places = vec![(0, 0); dies as usize];
    for (set, one) in (0..).zip(sets) {
        for (number, &die) in (0..).zip(&one.dies) {
            places[die as usize] = (set, number);
        }
    }
    places
}

/// Bytes of a write that the buffer takes at once.
fn piece_bytes(spec: &Spec) -> u64 {
    // What waits for the rest of its wordline, in the cache or past it, takes room until more comes.
    let unit_bytes = u64::from(spec.mapping.unit_bytes);
    let cached = spec.cache.map_or(0, |_| u64::from(spec.flash.planes * spec.flash.page_bytes));
    let streams = u64::from(Placement::host_streams(spec.placement));
    let stuck = u64::from(spec.flash.dies()) * (streams * spec.flash.program_bytes() + cached);
    let in_place = spec.flash.media == Medium::InPlace;
    let room = if in_place { u64::MAX } else { spec.buffer.bytes.saturating_sub(stuck) };
    // Parts smaller than what a program takes would only be more of them.
    let most = PIECE_BYTES.max(spec.flash.program_bytes()).max(unit_bytes);
    room.clamp(unit_bytes, most)
}

/// Time for which every read keeps a die busy, at least.
fn shortest_read_us(spec: &Spec) -> f64 {
    let flash_us = spec.flash.read_us;
    spec.cache.map_or(flash_us, |cache| cache.read_us.min(flash_us))
}

/// Time for which every read keeps a channel busy, at least.
fn shortest_transfer_ns(spec: &Spec) -> u64 {
    match spec.flash.media {
        Medium::InPlace => 0,
        Medium::Nand => {
            Wire::new(spec.flash.channel_mb_s * 1e6).transfer(0, spec.mapping.unit_bytes)
        }
    }
}

/// A simulated drive.
#[derive(Clone, Debug)]
pub struct Drive {
    spec: Spec,
    now: u64,
    /// Events so far.
    events: u64,
    namespaces: Namespaces,
    sets: Vec<Set>,
    dies: Dies,
    /// Each die's set, and its number in it.
    places: Vec<(u32, u32)>,
    unit: Unit,
    // The controller.
    read_ns: u64,
    write_ns: u64,
    /// Time of a read and a write in the controller, and until when it is busy, in 2^-[`FINE_BITS`] ns.
    read_step: u64,
    write_step: u64,
    controller_until: u64,
    // Queues of events, each in order.
    reads: Queue<u32>,
    changes: Queue<u32>,
    received: Queue<Piece>,
    /// Parts that are, or will be, through their channel, in the order in which they are.
    ready: Queue<Access>,
    sent: Queue<u32>,
    over: Queue<u32>,
    idle_at: u64,
    /// When its temperature is looked at next.
    heat_at: u64,
    /// What every read spends on a die and in a channel, at least.
    shortest_read_ns: u64,
    shortest_transfer_ns: u64,
    /// The earliest of them, `ready` and `sent` left out.
    others_at: u64,
    // The link.
    to_host: Wire,
    from_host: Wire,
    half_duplex: bool,
    // The buffer, in units.
    buffer_units: u64,
    buffered: u64,
    piece_bytes: u64,
    waiting: VecDeque<Waiting>,
    // Flushes.
    epochs: VecDeque<Epoch>,
    first_epoch: u32,
    /// Writes with Force Unit Access that wait for their programs.
    forced: Vec<Forced>,
    // Commands.
    commands: Vec<UnderWay>,
    free_commands: Vec<u32>,
    under_way: u32,
    busy_since: u64,
    idle_ns: u64,
    /// When idle time may empty the cache further.
    drain_at: u64,
    upkeep_left: u64,
    /// Bytes of its own that it still has to write, and how many of them the host's bytes since the last program make due.
    upkeep_open: u64,
    upkeep_due: f64,
    upkeep_die: u32,
    health: Health,
    /// If its heat is simulated.
    thermometer: Option<Thermometer>,
    /// If it has Predictable Latency Mode.
    windows: Option<Windows>,
}

impl Drive {
    /// A drive at time 0.
    ///
    /// # Errors
    /// [`SpecError`] if it can't be.
    pub fn new(slot: &Slot) -> Result<Self, SpecError> {
        slot.spec.check()?;
        let spec = slot.spec.of_drive(slot.seed);
        let namespaces = Namespaces::new(&spec);
        let in_place = spec.flash.media == Medium::InPlace;
        let sets: Vec<Set> =
            (0..spec.sets.count).map(|index| Set::new(&spec, slot, index, &namespaces)).collect();
        let ns = |us: f64| (us * 1e3).round() as u64;
        let idle_ms = spec.cache.map_or(IDLE_MS, |cache| cache.idle_ms);
        Ok(Self {
            now: 0,
            events: 0,
            dies: Dies::new(&spec, slot.seed),
            places: places(&sets, spec.flash.dies()),
            unit: Unit::of(spec.mapping.unit_bytes),
            read_ns: ns(spec.controller.read_us),
            write_ns: ns(spec.controller.write_us),
            read_step: (1e9 / spec.controller.read_iops * FINE).round() as u64,
            write_step: (1e9 / spec.controller.write_iops * FINE).round() as u64,
            controller_until: 0,
            reads: Queue::new(),
            changes: Queue::new(),
            received: Queue::new(),
            ready: Queue::new(),
            shortest_read_ns: ns(shortest_read_us(&spec)),
            shortest_transfer_ns: shortest_transfer_ns(&spec),
            sent: Queue::new(),
            over: Queue::new(),
            idle_at: if in_place { NEVER } else { ns(idle_ms * 1e3) },
            others_at: if in_place { NEVER } else { ns(idle_ms * 1e3) },
            to_host: Wire::new(spec.link.bytes_per_s()),
            from_host: Wire::new(spec.link.bytes_per_s()),
            half_duplex: spec.link.half_duplex(),
            buffer_units: spec.buffer.bytes / u64::from(spec.mapping.unit_bytes),
            buffered: 0,
            piece_bytes: piece_bytes(&spec),
            waiting: VecDeque::new(),
            epochs: VecDeque::from([Epoch::default()]),
            first_epoch: 0,
            forced: Vec::new(),
            commands: Vec::new(),
            free_commands: Vec::new(),
            under_way: 0,
            busy_since: 0,
            idle_ns: ns(idle_ms * 1e3),
            drain_at: 0,
            // What was written before left each drive somewhere on its way to the next time: if only in the factory, or before it was
            // erased. Drives that had the same way to go would all stall at once.
            upkeep_left: spec
                .upkeep
                .map_or(u64::MAX, |upkeep| 1 + Random::new(slot.seed).below(upkeep.every_bytes)),
            upkeep_open: 0,
            upkeep_due: 0.0,
            upkeep_die: 0,
            health: Health::default(),
            thermometer: spec.heat.map(|heat| Thermometer::new(heat, spec.link.bytes_per_s())),
            heat_at: NEVER,
            windows: spec.predictable.map(|limits| Windows::new(limits, spec.sets.count)),
            namespaces,
            sets,
            spec,
        })
    }

    /// What it is made of.
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Bytes of a namespace.
    pub fn bytes(&self, namespace: u32) -> u64 {
        self.namespaces.bytes(namespace)
    }

    /// The NVM Sets of a namespace.
    pub fn sets_of(&self, namespace: u32) -> impl Iterator<Item = u32> {
        self.namespaces.sets(namespace)
    }

    /// Buffers of the commands under way.
    pub fn buffers(&self) -> impl Iterator<Item = base::BufferId> {
        let under_way =
            |&(index, _): &(usize, &UnderWay)| !self.free_commands.contains(&(index as u32));
        let all = self.commands.iter().enumerate().filter(under_way);
        all.filter_map(|(_, one)| one.command.operation.buffer())
    }

    /// What it has been through, as of `now` in nanoseconds.
    pub fn health(&self, now: u64) -> Health {
        let unit = u64::from(self.unit.bytes());
        let superblocks = u64::from(self.spec.superblocks_of_set());
        let set = |(index, set): (usize, &Set)| {
            let done = set.ftl.done();
            let (erases_mean, erases_max) = set.ftl.erases();
            let superblock = self.unit.bytes_of(set.ftl.setup().stripe.units(false).into());
            let capacity_bytes = self.namespaces.set_bytes(index as u32);
            SetHealth {
                capacity_bytes,
                physical_bytes: superblock * superblocks,
                unallocated_bytes: (self.spec.capacity_bytes / u64::from(self.spec.sets.count))
                    .saturating_sub(capacity_bytes),
                written_bytes: set.written_units * unit,
                read_bytes: set.read_bytes,
                media_written_bytes: (done.host + done.copied + done.padding) * unit
                    + set.upkeep_programs * self.spec.flash.program_bytes(),
                erases_mean,
                erases_max,
                life_used: self.spec.endurance.used
                    + erases_mean / f64::from(self.spec.endurance.cycles),
                window: self.set_window_health(index as u32, now),
            }
        };
        let mut health = self.health.clone();
        health.erases = self.dies.erases();
        health.retries = self.dies.retries();
        health.power_on = base::Duration::from_nanos(now);
        if self.under_way > 0 {
            health.busy = health.busy + base::Duration::from_nanos(now - self.busy_since.min(now));
        }
        health.thermal = self.thermal(now);
        health.sets = self.sets.iter().enumerate().map(set).collect();
        health
    }

    /// Bytes of the host's that the buffer holds or has room kept for, in whole units.
    pub fn buffered_bytes(&self) -> u64 {
        self.unit.bytes_of(self.buffered)
    }

    /// Memory of all sets' tables.
    pub fn table_bytes(&self) -> u64 {
        self.sets.iter().map(|set| set.ftl.table_bytes()).sum()
    }

    /// Whether the books of all sets agree; see [`Ftl::audit`].
    ///
    /// # Errors
    /// The first that don't, in words.
    pub fn audit(&self) -> Result<(), String> {
        self.sets.iter().try_for_each(|set| set.ftl.audit())
    }

    /// Takes a command that has been found good, for one of its namespaces. `next` is [`Drive::next`]; returns what it is then.
    #[inline]
    pub fn submit(&mut self, now: u64, namespace: u32, command: Command, mut next: u64) -> u64 {
        if self.under_way == 0 {
            self.busy_since = now;
            self.idle_at = NEVER;
            self.under_way = 1;
            self.look_at_heat(now);
            self.find_others();
            next = self.next();
        } else {
            self.under_way += 1;
        }
        if self.windows.as_ref().is_some_and(|windows| windows.ends_at != NEVER) {
            self.count_in_windows(now, namespace, &command.operation);
            next = self.next();
        }
        let mut under_way = UnderWay { command, namespace, parts: 0, through: 0 };
        let index = match self.free_commands.pop() {
            Some(index) => index,
            None => {
                self.commands.push(under_way);
                self.commands.len() as u32 - 1
            }
        };
        let start = self.controller_until.max(now << FINE_BITS);
        if let Operation::Read { offset, length, .. } = command.operation {
            self.controller_until = start + self.read_step;
            let at = (self.controller_until >> FINE_BITS) + self.read_ns;
            if self.read_early(index, namespace, offset, length, at) {
                under_way.parts = 1;
                next = next.min(self.dies.next());
            } else {
                self.reads.push(at, index);
                self.others_at = self.others_at.min(at);
                next = next.min(at);
            }
        } else {
            self.controller_until = start + self.write_step;
            let at = (self.controller_until >> FINE_BITS) + self.write_ns;
            under_way.parts = self.pass_at(at, index, namespace, &command.operation);
            next = next.min(self.others_at);
        }
        self.commands[index as usize] = under_way;
        next
    }

    /// When something happens next, in nanoseconds.
    #[inline]
    pub fn next(&self) -> u64 {
        self.dies.next().min(self.ready.next()).min(self.sent.next()).min(self.others_at)
    }

    /// Finds the earliest of the queues that reads on dies have nothing to do with.
    #[inline]
    fn find_others(&mut self) {
        self.others_at = (self.reads.next())
            .min(self.changes.next())
            .min(self.asks_at())
            .min(self.received.next())
            .min(self.over.next())
            .min(self.idle_at)
            .min(self.heat_at)
            .min(self.windows.as_ref().map_or(NEVER, |windows| windows.ends_at));
    }

    /// Lets happen what happens up to `until`, or until something is completed and nothing more happens at that time; appends what
    /// is completed. `next` is [`Drive::next`]; returns what it is then, which is later than [`Drive::now`].
    #[inline(always)]
    pub fn advance<M: base::Buffers>(
        &mut self,
        mut next: u64,
        mut until: u64,
        uplink: &mut Option<UplinkWires>,
        mut data: Option<Data<'_, M>>,
        done: &mut Vec<Completion>,
    ) -> u64 {
        let before = done.len();
        while next <= until {
            self.now = next;
            self.events += 1;
            if self.dies.next() == next {
                match self.dies.step() {
                    Done::Access(access, through) => self.ready_at(through, access, uplink),
                    Done::Work(work, die) => {
                        self.worked(work, die, uplink, &mut data);
                        self.erase_ahead(die);
                        self.find_others();
                    }
                }
            } else if self.ready.next() == next {
                self.send_ready(next, uplink);
            } else if let Some(index) = self.sent.pop_at(next) {
                self.complete(index, data.as_mut(), done);
                until = next;
            } else {
                self.step_others(uplink, &mut data, done);
                self.find_others();
                if done.len() > before {
                    until = next;
                }
            }
            next = self.next();
        }
        next
    }

    /// When the last thing happened, in nanoseconds.
    #[inline]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// How many events there were: what simulating it has cost.
    pub const fn events(&self) -> u64 {
        self.events
    }

    fn step_others<M: base::Buffers>(
        &mut self,
        uplink: &mut Option<UplinkWires>,
        data: &mut Option<Data<'_, M>>,
        done: &mut Vec<Completion>,
    ) {
        let now = self.now;
        if let Some(index) = self.reads.pop_at(now) {
            self.begin_read(index, uplink);
        } else if let Some(piece) = self.received.pop_at(now) {
            self.receive(piece, data);
            if self.is_through(&piece) && !self.is_forced(piece.command) {
                self.complete(piece.command, data.as_mut(), done);
            }
        } else if let Some(index) = self.changes.pop_at(now) {
            self.begin_change(index, data);
        } else if self.asks_at() == now {
            self.admit(uplink);
        } else if let Some(index) = self.over.pop_at(now) {
            self.complete(index, data.as_mut(), done);
        } else if self.heat_at == now {
            self.look_at_heat(now);
        } else if self.windows.as_ref().is_some_and(|windows| windows.ends_at == now) {
            self.end_windows();
        } else {
            self.rest();
        }
    }

    /// A command is done.
    #[inline]
    fn complete<M: base::Buffers>(
        &mut self,
        index: u32,
        data: Option<&mut Data<'_, M>>,
        done: &mut Vec<Completion>,
    ) {
        let UnderWay { command, .. } = self.commands[index as usize];
        if let (Some(data), Some(buffer)) = (data, command.operation.buffer()) {
            data.buffers.give_back(buffer);
            if let Operation::Read { offset, length, .. } = command.operation {
                let media = &data.media[command.drive.index() - data.first];
                data.buffers.with(buffer, &mut |bytes| {
                    media.read(offset, &mut bytes[..length as usize]);
                });
            }
        }
        self.free_commands.push(index);
        self.under_way -= 1;
        if self.under_way == 0 {
            let busy = base::Duration::from_nanos(self.now - self.busy_since);
            self.health.busy = self.health.busy + busy;
            if self.spec.flash.media == Medium::Nand {
                self.idle_at = (self.now + self.idle_ns).max(self.drain_at);
                self.others_at = self.others_at.min(self.idle_at);
            }
        }
        done.push(Completion {
            drive: command.drive,
            tag: command.tag,
            outcome: Ok(()),
            reaped: Instant::from_nanos(self.now),
        });
    }

    /// Uses idle time: makes data safe, folds the cache, finishes collecting; a little each time.
    fn rest(&mut self) {
        self.idle_at = NEVER;
        let copied = |sets: &[Set]| sets.iter().map(|set| set.ftl.done().copied).sum::<u64>();
        let (mut worked, before) = (false, copied(&self.sets));
        for set in (0..self.sets.len())
            .filter(|&set| !self.is_deterministic(set as u32))
            .collect::<Vec<_>>()
        {
            let protected = self.spec.buffer.protected;
            worked |= self.with_flash(set, |ftl, hands| {
                if !protected {
                    ftl.pad(hands);
                }
                ftl.rest(hands)
            });
        }
        let drains_ns = self.draining_ns(copied(&self.sets) - before);
        self.drain_at = self.now.saturating_add(drains_ns).min(NEVER);
        self.erase_ahead_everywhere();
        // Without anything begun, nothing would wake it again; there is nothing left to do then.
        if worked && !self.dies.working() {
            self.idle_at = self.drain_at;
        }
    }

    /// How long idle time takes at least to take so many units out of the cache.
    fn draining_ns(&self, units: u64) -> u64 {
        let limit = self.spec.cache.and_then(|cache| cache.drain_mb_s).filter(|&rate| rate > 0.0);
        limit.map_or(0, |rate| (self.unit.bytes_of(units) as f64 / rate * 1e3) as u64)
    }
}
