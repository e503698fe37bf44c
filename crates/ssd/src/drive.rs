//! A drive in time: commands pass the controller, then medium and link, or link and buffer. Everything that happens is an event of one
//! of a few queues, each in order by itself, so the next event is the earliest of their heads.
//!
//! Deliberately absent: read-ahead (a read waits for its cells, however regular), merging of writes in the buffer, heat.

mod namespaces;
mod power;

use std::collections::VecDeque;

use base::{Command, Completion, DriveId, Instant, Operation};

use crate::bank::{Slot, Start, Uplink};
use crate::dies::{Access, Dies, Done, Work};
use crate::earliest::NEVER;
use crate::ftl::{Flash, Ftl, Program, Setup};
use crate::health::{Health, SetHealth};
use crate::link::Wire;
use crate::map::NOWHERE;
use crate::media::Media;
use crate::spec::{Media as Medium, Spec, SpecError};
use crate::stripe::Stripe;
pub use namespaces::Namespaces;
use namespaces::Place;

/// Bytes of a write that are taken into the buffer and moved at a time.
const PIECE_BYTES: u32 = 256 << 10;

/// How long a drive without a cache waits before it uses idle time, in milliseconds.
const IDLE_MS: f64 = 1000.0;

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

/// A write that waits for room in the buffer.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    command: u32,
    offset: u64,
    end: u64,
}

/// Programs that a flush waits for.
#[derive(Clone, Debug, Default)]
struct Epoch {
    programs: u64,
    flushes: Vec<u32>,
}

#[derive(Debug)]
struct Set {
    ftl: Ftl,
    /// Its dies among the drive's.
    dies: Vec<u32>,
    active: Vec<Active>,
    written_units: u64,
    read_bytes: u64,
    upkeep_programs: u64,
}

/// A superblock with programs that are not done yet.
#[derive(Debug)]
struct Active {
    superblock: u32,
    /// Wordlines that each die has programmed.
    programmed: Vec<u32>,
    under_way: u32,
}

/// A simulated drive.
#[derive(Debug)]
pub struct Drive {
    spec: Spec,
    now: u64,
    namespaces: Namespaces,
    sets: Vec<Set>,
    dies: Dies,
    unit_bytes: u32,
    // The controller.
    read_ns: u64,
    write_ns: u64,
    read_step_ns: f64,
    write_step_ns: f64,
    controller_until: f64,
    // Queues of events, each in order.
    reads: VecDeque<(u64, u32)>,
    changes: VecDeque<(u64, u32)>,
    received: VecDeque<(u64, Piece)>,
    sent: VecDeque<(u64, u32)>,
    over: VecDeque<(u64, u32)>,
    idle_at: u64,
    // The link.
    to_host: Wire,
    from_host: Wire,
    half_duplex: bool,
    // The buffer, in units.
    buffer_units: u64,
    buffered: u64,
    waiting: VecDeque<Waiting>,
    // Flushes.
    epochs: VecDeque<Epoch>,
    first_epoch: u64,
    // Commands.
    commands: Vec<UnderWay>,
    free_commands: Vec<u32>,
    under_way: u32,
    busy_since: u64,
    idle_ns: u64,
    upkeep_left: u64,
    upkeep_die: u32,
    health: Health,
}

/// Passes what a translation layer wants on to the dies of its set.
struct Hands<'a> {
    now: u64,
    set: u16,
    own: &'a [u32],
    dies: &'a mut Dies,
    active: &'a mut Vec<Active>,
    epoch: u64,
    programs: &'a mut u64,
    unit_bytes: u32,
}

impl Flash for Hands<'_> {
    fn program(&mut self, program: Program) {
        let entry = self.active.iter_mut().find(|one| one.superblock == program.superblock);
        if let Some(active) = entry {
            active.under_way += 1;
        } else {
            // Dies before this one have programmed the wordline already.
            let programmed = (0..self.own.len() as u32)
                .map(|die| program.wordline + u32::from(die < program.die));
            self.active.push(Active {
                superblock: program.superblock,
                programmed: programmed.collect(),
                under_way: 1,
            });
        }
        *self.programs += 1;
        let work = Work::Program { set: self.set, program, epoch: self.epoch };
        self.dies.add(self.now, self.own[program.die as usize], work);
    }

    fn copy(&mut self, die: u32, slc: bool, units: u32) {
        let bytes = units * self.unit_bytes;
        self.dies.add(self.now, self.own[die as usize], Work::Copy { slc, bytes });
    }

    fn erase(&mut self, die: u32) {
        self.dies.add(self.now, self.own[die as usize], Work::Erase);
    }
}

impl Drive {
    /// A drive at time 0.
    ///
    /// # Errors
    /// [`SpecError`] if it can't be.
    pub fn new(slot: &Slot) -> Result<Self, SpecError> {
        let spec = slot.spec.clone();
        spec.check()?;
        let namespaces = Namespaces::new(&spec);
        let in_place = spec.flash.media == Medium::InPlace;
        let mut sets = Vec::new();
        for index in 0..spec.sets.count {
            let dies = spec.dies_of_set(index);
            let stripe = Stripe::new(&spec.flash, &spec.mapping, dies.len() as u32);
            let shared = 1.0 / f64::from(spec.sets.count);
            let mut ftl = Ftl::new(Setup {
                units: if in_place { 0 } else { namespaces.set_units(index) },
                superblocks: if in_place { 0 } else { spec.superblocks_of_set() },
                stripe,
                collector: spec.mapping.collector,
                reserve: spec.mapping.reserve_superblocks,
                cache: spec.cache.map(|mut cache| {
                    cache.static_bytes = (cache.static_bytes as f64 * shared) as u64;
                    cache.dynamic_bytes = (cache.dynamic_bytes as f64 * shared) as u64;
                    cache
                }),
                unit_bytes: spec.mapping.unit_bytes,
                seed: slot.seed.wrapping_add(u64::from(index)),
            });
            if !in_place {
                match slot.start {
                    Start::Empty => {}
                    Start::Full => ftl.fill_in_order(),
                    Start::Random { block_bytes } => {
                        ftl.scatter((block_bytes / spec.mapping.unit_bytes).max(1));
                    }
                }
            }
            sets.push(Set {
                ftl,
                dies,
                active: Vec::new(),
                written_units: 0,
                read_bytes: 0,
                upkeep_programs: 0,
            });
        }
        let ns = |us: f64| (us * 1e3).round() as u64;
        let idle_ms = spec.cache.map_or(IDLE_MS, |cache| cache.idle_ms);
        Ok(Self {
            now: 0,
            dies: Dies::new(&spec.flash, spec.cache.as_ref()),
            unit_bytes: spec.mapping.unit_bytes,
            read_ns: ns(spec.controller.read_us),
            write_ns: ns(spec.controller.write_us),
            read_step_ns: 1e9 / spec.controller.read_iops,
            write_step_ns: 1e9 / spec.controller.write_iops,
            controller_until: 0.0,
            reads: VecDeque::new(),
            changes: VecDeque::new(),
            received: VecDeque::new(),
            sent: VecDeque::new(),
            over: VecDeque::new(),
            idle_at: if in_place { NEVER } else { ns(idle_ms * 1e3) },
            to_host: Wire::new(spec.link.bytes_per_s()),
            from_host: Wire::new(spec.link.bytes_per_s()),
            half_duplex: spec.link.half_duplex(),
            buffer_units: spec.buffer.bytes / u64::from(spec.mapping.unit_bytes),
            buffered: 0,
            waiting: VecDeque::new(),
            epochs: VecDeque::from([Epoch::default()]),
            first_epoch: 0,
            commands: Vec::new(),
            free_commands: Vec::new(),
            under_way: 0,
            busy_since: 0,
            idle_ns: ns(idle_ms * 1e3),
            upkeep_left: spec.upkeep.map_or(u64::MAX, |upkeep| upkeep.every_bytes),
            upkeep_die: 0,
            health: Health::default(),
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

    /// Buffers of the commands under way.
    pub fn buffers(&self) -> impl Iterator<Item = base::BufferId> {
        let under_way =
            |&(index, _): &(usize, &UnderWay)| !self.free_commands.contains(&(index as u32));
        let all = self.commands.iter().enumerate().filter(under_way);
        all.filter_map(|(_, one)| one.command.operation.buffer())
    }

    /// What it has been through, as of `now` in nanoseconds.
    pub fn health(&self, now: u64) -> Health {
        let unit = u64::from(self.unit_bytes);
        let superblocks = u64::from(self.spec.superblocks_of_set());
        let set = |(index, set): (usize, &Set)| {
            let done = set.ftl.done();
            let (erases_mean, erases_max) = set.ftl.erases();
            let superblock =
                u64::from(set.ftl.setup().stripe.units(false)) * u64::from(self.unit_bytes);
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
                life_used: erases_mean / f64::from(self.spec.endurance.cycles),
            }
        };
        let mut health = self.health.clone();
        health.power_on = base::Duration::from_nanos(now);
        if self.under_way > 0 {
            health.busy = health.busy + base::Duration::from_nanos(now - self.busy_since.min(now));
        }
        health.sets = self.sets.iter().enumerate().map(set).collect();
        health
    }

    /// Takes a command that has been found good, for one of its namespaces.
    #[inline]
    pub fn submit(&mut self, now: u64, namespace: u32, command: Command) {
        if self.under_way == 0 {
            self.busy_since = now;
        }
        self.under_way += 1;
        self.idle_at = NEVER;
        let under_way = UnderWay { command, namespace, parts: 0, through: 0 };
        let index = match self.free_commands.pop() {
            Some(index) => {
                self.commands[index as usize] = under_way;
                index
            }
            None => {
                self.commands.push(under_way);
                self.commands.len() as u32 - 1
            }
        };
        let start = self.controller_until.max(now as f64);
        if let Operation::Read { .. } = command.operation {
            self.controller_until = start + self.read_step_ns;
            self.reads.push_back((self.controller_until as u64 + self.read_ns, index));
        } else {
            self.controller_until = start + self.write_step_ns;
            self.changes.push_back((self.controller_until as u64 + self.write_ns, index));
        }
    }

    /// When something happens next, in nanoseconds.
    #[inline]
    pub fn next(&self) -> u64 {
        let head = |queue: &VecDeque<(u64, u32)>| queue.front().map_or(NEVER, |event| event.0);
        let received = self.received.front().map_or(NEVER, |event| event.0);
        head(&self.reads)
            .min(head(&self.sent))
            .min(self.dies.next())
            .min(head(&self.changes))
            .min(received)
            .min(head(&self.over))
            .min(self.idle_at)
    }

    /// Lets the next thing happen, which is at `now` (see [`Drive::next`]), and appends what it completes.
    #[inline]
    pub fn step<M: base::Buffers>(
        &mut self,
        now: u64,
        uplink: &mut Option<UplinkWires>,
        mut data: Option<Data<'_, M>>,
        done: &mut Vec<Completion>,
    ) {
        self.now = now;
        let is_now =
            |queue: &VecDeque<(u64, u32)>| queue.front().is_some_and(|event| event.0 == now);
        if self.dies.next() == now {
            match self.dies.step() {
                Done::Access(access, through) => self.accessed(access, through, uplink),
                Done::Work(work) => self.worked(work, uplink, &mut data),
            }
        } else if is_now(&self.sent) {
            if let Some((_, index)) = self.sent.pop_front() {
                self.complete(index, data.as_mut(), done);
            }
        } else if is_now(&self.reads) {
            if let Some((_, index)) = self.reads.pop_front() {
                self.begin_read(index, uplink);
            }
        } else if let Some(&(at, piece)) = self.received.front()
            && at == now
        {
            self.received.pop_front();
            self.receive(piece, &mut data);
            if self.is_through(&piece) {
                self.complete(piece.command, data.as_mut(), done);
            }
        } else if is_now(&self.changes) {
            if let Some((_, index)) = self.changes.pop_front() {
                self.begin_change(index, uplink, &mut data);
            }
        } else if is_now(&self.over) {
            if let Some((_, index)) = self.over.pop_front() {
                self.complete(index, data.as_mut(), done);
            }
        } else {
            self.rest();
        }
    }

    /// A read has passed the controller.
    #[inline]
    fn begin_read(&mut self, index: u32, uplink: &mut Option<UplinkWires>) {
        let UnderWay { command, namespace, .. } = self.commands[index as usize];
        let Operation::Read { offset, length, .. } = command.operation else { return };
        self.health.reads += 1;
        self.health.read_bytes += u64::from(length);
        if length == 0 {
            self.over.push_back((self.now, index));
            return;
        }
        if self.spec.flash.media == Medium::InPlace {
            self.access_in_place(index, namespace, offset, length, true);
            return;
        }
        let (mut parts, mut from_memory) = (0, 0);
        let unit_bytes = u64::from(self.unit_bytes);
        let mut at = offset;
        let end = offset + u64::from(length);
        while at < end {
            let Place { set, unit, units } = self.namespaces.locate(namespace, at, end);
            let piece_end = ((at / unit_bytes + u64::from(units)) * unit_bytes).min(end);
            let now = self.now;
            let Set { ftl, dies: own, active, read_bytes, .. } = &mut self.sets[set as usize];
            let dies = &mut self.dies;
            *read_bytes += piece_end - at;
            let mut unit_at = at / unit_bytes * unit_bytes;
            ftl.read(unit, units, |place, count| {
                let bytes_end = unit_at + u64::from(count) * unit_bytes;
                let asked = (bytes_end.min(end) - unit_at.max(at)) as u32;
                unit_at = bytes_end;
                if place == NOWHERE {
                    from_memory += asked;
                    return;
                }
                let (superblock, within) = ftl.split(place);
                let slc = ftl.is_slc(superblock);
                let spot = ftl.setup().stripe.spot(within, slc);
                if ftl.is_filling(superblock, within)
                    || is_programming(active, superblock, spot.die, spot.wordline)
                {
                    from_memory += asked;
                    return;
                }
                parts += 1;
                let access = Access {
                    command: index,
                    channel_bytes: count * unit_bytes as u32,
                    link_bytes: asked,
                };
                dies.read(now, own[spot.die as usize], slc, access);
            });
            at = piece_end;
        }
        self.commands[index as usize].parts = parts + u32::from(from_memory > 0);
        if from_memory > 0 {
            let part = Access { command: index, channel_bytes: 0, link_bytes: from_memory };
            self.accessed(part, self.now, uplink);
        }
    }

    /// A part of a command is through its channel.
    #[inline]
    fn accessed(&mut self, access: Access, at: u64, uplink: &mut Option<UplinkWires>) {
        let writing = matches!(
            self.commands[access.command as usize].command.operation,
            Operation::Write { .. }
        );
        let mut through = at;
        if !writing {
            through = self.to_host.transfer(through, access.link_bytes);
            if self.half_duplex {
                self.from_host.hold(through);
            }
            if let Some(uplink) = uplink {
                through = uplink.read.transfer(through, access.link_bytes);
            }
        }
        let command = &mut self.commands[access.command as usize];
        command.through = command.through.max(through);
        command.parts -= 1;
        if command.parts == 0 {
            let event = (command.through, access.command);
            if writing { self.over.push_back(event) } else { self.sent.push_back(event) }
        }
    }

    /// A write, trim or flush has passed the controller.
    fn begin_change<M: base::Buffers>(
        &mut self,
        index: u32,
        uplink: &mut Option<UplinkWires>,
        data: &mut Option<Data<'_, M>>,
    ) {
        let UnderWay { command, namespace, .. } = self.commands[index as usize];
        match command.operation {
            Operation::Read { .. } => {}
            Operation::Write { offset, length, .. } => {
                self.health.writes += 1;
                self.health.written_bytes += u64::from(length);
                if length == 0 {
                    self.over.push_back((self.now, index));
                    return;
                }
                // In place, a write is done when all of it is on the medium; one part stands for what has not arrived.
                let in_place = self.spec.flash.media == Medium::InPlace;
                self.commands[index as usize].parts = u32::from(in_place);
                let end = offset + u64::from(length);
                self.waiting.push_back(Waiting { command: index, offset, end });
                self.admit(uplink);
            }
            Operation::Trim { offset, length } => {
                self.trim(namespace, offset, length);
                if let Some(data) = data {
                    data.of(command.drive).trim(offset, length);
                }
                self.over.push_back((self.now, index));
            }
            Operation::Flush => self.flush(index),
        }
    }

    fn trim(&mut self, namespace: u32, offset: u64, length: u64) {
        if self.spec.flash.media == Medium::InPlace {
            return;
        }
        let unit_bytes = u64::from(self.unit_bytes);
        // Units that are only partly given up keep their place.
        let mut at = offset.next_multiple_of(unit_bytes);
        let end = (offset + length) / unit_bytes * unit_bytes;
        while at < end {
            let Place { set, unit, units } = self.namespaces.locate(namespace, at, end);
            self.sets[set as usize].ftl.trim(unit, units);
            at += u64::from(units) * unit_bytes;
        }
    }

    fn flush(&mut self, index: u32) {
        if self.spec.buffer.protected || self.spec.flash.media == Medium::InPlace {
            self.over.push_back((self.now, index));
            return;
        }
        for set in 0..self.sets.len() {
            self.with_flash(set, |ftl, hands| ftl.pad(hands));
        }
        if self.epochs.iter().all(|epoch| epoch.programs == 0) {
            self.over.push_back((self.now, index));
            return;
        }
        if let Some(last) = self.epochs.back_mut() {
            last.flushes.push(index);
        }
        self.epochs.push_back(Epoch::default());
    }

    /// Runs a set's translation layer against the dies.
    #[inline]
    fn with_flash<T>(&mut self, set: usize, run: impl FnOnce(&mut Ftl, &mut Hands<'_>) -> T) -> T {
        let epoch = self.first_epoch + self.epochs.len() as u64 - 1;
        let Some(last) = self.epochs.back_mut() else { unreachable!("there is always an epoch") };
        let Set { ftl, dies: own, active, .. } = &mut self.sets[set];
        let mut hands = Hands {
            now: self.now,
            set: set as u16,
            own,
            dies: &mut self.dies,
            active,
            epoch,
            programs: &mut last.programs,
            unit_bytes: self.unit_bytes,
        };
        run(ftl, &mut hands)
    }

    /// Takes waiting writes into the buffer as far as there is room, and sends for their data.
    #[inline]
    fn admit(&mut self, uplink: &mut Option<UplinkWires>) {
        let unit_bytes = u64::from(self.unit_bytes);
        let in_place = self.spec.flash.media == Medium::InPlace;
        while let Some(waiting) = self.waiting.front_mut() {
            let end = (waiting.offset + u64::from(PIECE_BYTES)).min(waiting.end);
            let units = end.div_ceil(unit_bytes) - waiting.offset / unit_bytes;
            if !in_place {
                if self.buffered + units > self.buffer_units {
                    return;
                }
                self.buffered += units;
            }
            let length = (end - waiting.offset) as u32;
            let mut at = self.now;
            if let Some(uplink) = uplink {
                at = uplink.write.transfer(at, length);
            }
            at = self.from_host.transfer(at, length);
            if self.half_duplex {
                self.to_host.hold(at);
            }
            let (command, offset, last) = (waiting.command, waiting.offset, end == waiting.end);
            self.received.push_back((at, Piece { command, offset, length, last }));
            if last {
                self.waiting.pop_front();
            } else {
                waiting.offset = end;
            }
        }
    }

    /// A part of a write has arrived in the buffer.
    #[inline]
    fn receive<M: base::Buffers>(&mut self, piece: Piece, data: &mut Option<Data<'_, M>>) {
        let Piece { command: index, offset, length, .. } = piece;
        let UnderWay { command, namespace, .. } = self.commands[index as usize];
        if self.spec.flash.media == Medium::InPlace {
            if let Some(data) = data {
                data.keep(&command, offset, length);
            }
            self.access_in_place(index, namespace, offset, length, false);
            return;
        }
        let unit_bytes = u64::from(self.unit_bytes);
        let mut at = offset;
        let end = offset + u64::from(length);
        while at < end {
            let place = self.namespaces.locate(namespace, at, end);
            let Place { set, unit, units } = place;
            let first_byte = at / unit_bytes * unit_bytes;
            let piece_end = (first_byte + u64::from(units) * unit_bytes).min(end);
            if !at.is_multiple_of(unit_bytes) {
                self.merge(set, unit);
            }
            if !piece_end.is_multiple_of(unit_bytes) && (units > 1 || at.is_multiple_of(unit_bytes))
            {
                self.merge(set, unit + units - 1);
            }
            self.sets[set as usize].written_units += u64::from(units);
            let unsaved = data.as_ref().is_some() && !self.spec.buffer.protected;
            let before = if unsaved { self.sets[set as usize].ftl.done().host } else { 0 };
            self.with_flash(set as usize, |ftl, hands| ftl.write(unit, units, hands));
            if let Some(data) = data {
                if unsaved && self.sets[set as usize].ftl.done().host > before {
                    self.remember(data, command.drive, place, first_byte);
                }
                data.keep(&command, at, (piece_end - at) as u32);
            }
            at = piece_end;
        }
        if let Some(upkeep) = self.spec.upkeep {
            if self.upkeep_left <= u64::from(length) {
                self.upkeep_left = upkeep.every_bytes;
                self.keep_up(upkeep.bytes);
            } else {
                self.upkeep_left -= u64::from(length);
            }
        }
    }

    /// Whether a write is done now that this part has arrived.
    #[inline]
    fn is_through(&mut self, piece: &Piece) -> bool {
        let command = &mut self.commands[piece.command as usize];
        if piece.last && self.spec.flash.media == Medium::InPlace {
            command.parts -= 1;
        }
        piece.last && command.parts == 0
    }

    /// A unit that is written in part is read first, if it lies on flash. The write doesn't wait, but its dies do.
    fn merge(&mut self, set: u32, unit: u32) {
        let Set { ftl, dies: own, active, .. } = &self.sets[set as usize];
        let mut on_flash = None;
        ftl.read(unit, 1, |place, _| {
            if place == NOWHERE {
                return;
            }
            let (superblock, within) = ftl.split(place);
            let slc = ftl.is_slc(superblock);
            let spot = ftl.setup().stripe.spot(within, slc);
            if !ftl.is_filling(superblock, within)
                && !is_programming(active, superblock, spot.die, spot.wordline)
            {
                on_flash = Some((own[spot.die as usize], slc));
            }
        });
        if let Some((die, slc)) = on_flash {
            self.dies.add(self.now, die, Work::Copy { slc, bytes: self.unit_bytes });
        }
    }

    /// Writes the drive's own data, die by die.
    #[cold]
    fn keep_up(&mut self, bytes: u64) {
        let dies = self.spec.flash.dies();
        for _ in 0..bytes.div_ceil(self.spec.flash.program_bytes()) {
            self.dies.add(self.now, self.upkeep_die, Work::Upkeep);
            let set = self.sets.iter_mut().find(|set| set.dies.contains(&self.upkeep_die));
            if let Some(set) = set {
                set.upkeep_programs += 1;
            }
            self.upkeep_die = (self.upkeep_die + 1) % dies;
        }
    }

    /// Accesses that read or write in place: one for each page that the range touches.
    fn access_in_place(
        &mut self,
        index: u32,
        namespace: u32,
        offset: u64,
        length: u32,
        reading: bool,
    ) {
        let page = u64::from(self.spec.flash.page_bytes);
        let dies = u64::from(self.spec.flash.dies());
        let base = self.namespaces.start(namespace);
        let (mut at, end) = (base + offset, base + offset + u64::from(length));
        while at < end {
            let piece_end = ((at / page + 1) * page).min(end);
            let bytes = (piece_end - at) as u32;
            // Neighbours lie on different channels; a multiplication keeps equal strides apart.
            let die = ((at / page) % dies) as u32;
            self.commands[index as usize].parts += 1;
            let access = Access { command: index, channel_bytes: bytes, link_bytes: bytes };
            if reading {
                self.dies.read(self.now, die, false, access);
            } else {
                let access = Access { channel_bytes: 0, ..access };
                self.dies.write_in_place(self.now, die, bytes, access);
            }
            at = piece_end;
        }
    }

    /// Work on a die is done.
    fn worked<M: base::Buffers>(
        &mut self,
        work: Work,
        uplink: &mut Option<UplinkWires>,
        data: &mut Option<Data<'_, M>>,
    ) {
        if let Work::Program { set, program, epoch } = work {
            let owner = &mut self.sets[usize::from(set)];
            let found = owner.active.iter().position(|one| one.superblock == program.superblock);
            if let Some(at) = found {
                let active = &mut owner.active[at];
                active.programmed[program.die as usize] = program.wordline + 1;
                active.under_way -= 1;
                if active.under_way == 0 {
                    owner.active.swap_remove(at);
                }
            }
            if let Some(data) = data {
                self.saved(data, set, &program);
            }
            self.programmed(epoch);
            if program.host_units > 0 {
                self.buffered -= u64::from(program.host_units);
                self.admit(uplink);
            }
        }
        if self.under_way == 0 && !self.dies.working() && self.idle_at == NEVER {
            // The work of idle time goes on as soon as the last bit of it is done.
            self.idle_at = self.now;
        }
    }

    /// A program that flushes may wait for is done.
    fn programmed(&mut self, epoch: u64) {
        self.epochs[(epoch - self.first_epoch) as usize].programs -= 1;
        while self.epochs.len() > 1 && self.epochs[0].programs == 0 {
            if let Some(epoch) = self.epochs.pop_front() {
                self.first_epoch += 1;
                self.over.extend(epoch.flushes.into_iter().map(|index| (self.now, index)));
            }
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
                self.idle_at = self.now + self.idle_ns;
            }
        }
        done.push(Completion {
            drive: command.drive,
            tag: command.tag,
            outcome: Ok(()),
            reaped: Instant::from_nanos(self.now),
        });
    }

    /// Uses idle time: makes data safe, folds the cache, finishes collecting, erases ahead; a little each time.
    fn rest(&mut self) {
        self.idle_at = NEVER;
        let mut worked = false;
        for set in 0..self.sets.len() {
            let protected = self.spec.buffer.protected;
            worked |= self.with_flash(set, |ftl, hands| {
                if !protected {
                    ftl.pad(hands);
                }
                ftl.rest(hands)
            });
        }
        // Without anything begun, nothing would wake it again; there is nothing left to do then.
        if worked && !self.dies.working() {
            self.idle_at = self.now;
        }
    }
}

/// Whether a wordline's program is still queued or under way.
#[inline]
fn is_programming(active: &[Active], superblock: u32, die: u32, wordline: u32) -> bool {
    active
        .iter()
        .find(|one| one.superblock == superblock)
        .is_some_and(|one| wordline >= one.programmed[die as usize])
}

/// Where data is kept, and where it comes from.
#[derive(Debug)]
pub struct Data<'a, M> {
    /// The contents of each namespace of this drive that the bank shows.
    pub media: &'a mut [Media],
    /// The first one's place in the bank.
    pub first: usize,
    /// The memory that commands name.
    pub buffers: &'a M,
}

impl<M: base::Buffers> Data<'_, M> {
    fn of(&mut self, drive: DriveId) -> &mut Media {
        &mut self.media[drive.index() - self.first]
    }

    /// Keeps a part of what a write brings.
    fn keep(&mut self, command: &Command, offset: u64, length: u32) {
        let Operation::Write { offset: start, buffer, .. } = command.operation else { return };
        let within = (offset - start) as usize;
        let media = &mut self.media[command.drive.index() - self.first];
        // The buffer is the bank's until the command is done, so the bank may look at it.
        self.buffers.give_back(buffer);
        self.buffers.with(buffer, &mut |bytes| {
            media.write(offset, &bytes[within..within + length as usize]);
        });
        self.buffers.lend(buffer);
    }
}
