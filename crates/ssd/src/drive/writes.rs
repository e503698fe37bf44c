//! Writes, trims and flushes on their way: through link and buffer into the translation layer, and to flash when there is time.

use base::Operation;

use super::data::Data;
use super::hands::is_programming;
use super::namespaces::Place;
use super::{Drive, Epoch, Piece, SHORT_BYTES, Set, UnderWay, UplinkWires, Waiting};
use crate::dies::Work;
use crate::earliest::NEVER;
use crate::map::NOWHERE;
use crate::spec::{Media as Medium, Upkeep};

impl Drive {
    /// A write, trim or flush will have passed the controller at `at`. Returns the parts that its command begins with.
    #[inline]
    pub(super) fn pass_at(
        &mut self,
        at: u64,
        index: u32,
        namespace: u32,
        operation: &Operation,
    ) -> u32 {
        let &Operation::Write { offset, length: length @ 1.., .. } = operation else {
            self.changes.push(at, index);
            self.others_at = self.others_at.min(at);
            return 0;
        };
        // Behind others that wait for room it takes no event of its own.
        let end = offset + u64::from(length);
        self.waiting.push_back(Waiting { command: index, at, offset, end, held_up: 0 });
        self.others_at = self.others_at.min(self.asks_at());
        if length <= SHORT_BYTES
            && let Some((set, unit)) = self.namespaces.first_unit(namespace, offset)
        {
            self.sets[set as usize].ftl.expect(unit);
        }
        // In place, a write is done when all of it is on the medium; one part stands for what has not arrived.
        u32::from(self.spec.flash.media == Medium::InPlace)
    }

    /// A trim or flush has passed the controller, or a write of nothing.
    pub(super) fn begin_change<M: base::Buffers>(
        &mut self,
        index: u32,
        data: &mut Option<Data<'_, M>>,
    ) {
        let UnderWay { command, namespace, .. } = self.commands[index as usize];
        match command.operation {
            Operation::Read { .. } => {}
            Operation::Write { .. } => {
                self.health.writes += 1;
                self.over.push(self.now, index);
            }
            Operation::Trim { offset, length } => {
                self.trim(namespace, offset, length);
                if let Some(data) = data {
                    data.of(command.drive).trim(offset, length);
                }
                self.over.push(self.now, index);
            }
            Operation::Flush => self.flush(index),
        }
    }

    pub(super) fn trim(&mut self, namespace: u32, offset: u64, length: u64) {
        if self.spec.flash.media == Medium::InPlace {
            return;
        }
        // Units that are only partly given up keep their place.
        let mut at = self.unit.ceil(offset);
        let end = self.unit.floor(offset + length);
        while at < end {
            let Place { set, unit, units } = self.namespaces.locate(namespace, at, end);
            self.sets[set as usize].ftl.trim(unit, units);
            at += self.unit.bytes_of(units.into());
        }
        self.erase_ahead_everywhere();
    }

    pub(super) fn flush(&mut self, index: u32) {
        if self.spec.buffer.protected || self.spec.flash.media == Medium::InPlace {
            self.over.push(self.now, index);
            return;
        }
        for set in 0..self.sets.len() {
            self.with_flash(set, |ftl, hands| ftl.pad(hands));
        }
        if self.epochs.iter().all(|epoch| epoch.programs == 0) {
            self.over.push(self.now, index);
            return;
        }
        if let Some(last) = self.epochs.back_mut() {
            last.flushes.push(index);
        }
        self.epochs.push_back(Epoch::default());
    }

    /// When the first of the waiting writes asks for room.
    #[inline]
    pub(super) fn asks_at(&self) -> u64 {
        self.waiting.front().map_or(NEVER, Waiting::asks_at)
    }

    /// Takes writes that have passed the controller into the buffer as far as there is room, and sends for their data.
    #[inline]
    pub(super) fn admit(&mut self, uplink: &mut Option<UplinkWires>) {
        let unit = self.unit;
        let in_place = self.spec.flash.media == Medium::InPlace;
        while let Some(waiting) = self.waiting.front_mut().filter(|first| first.at <= self.now) {
            // Parts meet between units, so that none is written twice.
            let end = unit.floor(waiting.offset + self.piece_bytes).min(waiting.end);
            let units = unit.count(waiting.offset, end);
            if !in_place {
                if self.buffered + units > self.buffer_units {
                    waiting.held_up = units;
                    return;
                }
                self.buffered += units;
            }
            let length = (end - waiting.offset) as u32;
            self.health.written_bytes += u64::from(length);
            let mut at = self.now;
            if let Some(uplink) = uplink {
                at = uplink.write.transfer(at, length);
            }
            at = self.from_host.transfer(at, length);
            if self.half_duplex {
                self.to_host.hold(at);
            }
            let (command, offset, last) = (waiting.command, waiting.offset, end == waiting.end);
            self.received.push(at, Piece { command, offset, length, last });
            if last {
                self.health.writes += 1;
                self.waiting.pop_front();
            } else {
                waiting.offset = end;
            }
        }
    }

    /// A part of a write has arrived in the buffer.
    #[inline]
    pub(super) fn receive<M: base::Buffers>(
        &mut self,
        piece: Piece,
        data: &mut Option<Data<'_, M>>,
    ) {
        let Piece { command: index, offset, length, .. } = piece;
        let UnderWay { command, namespace, .. } = self.commands[index as usize];
        if self.spec.flash.media == Medium::InPlace {
            if let Some(data) = data {
                data.keep(&command, offset, length);
            }
            self.access_in_place(index, namespace, offset, length, false);
            return;
        }
        let size = self.unit;
        let mut at = offset;
        let end = offset + u64::from(length);
        while at < end {
            let place = self.namespaces.locate(namespace, at, end);
            let Place { set, unit, units } = place;
            let first_byte = size.floor(at);
            let piece_end = (first_byte + size.bytes_of(units.into())).min(end);
            if !size.starts_at(at) {
                self.merge(set, unit);
            }
            if !size.starts_at(piece_end) && (units > 1 || size.starts_at(at)) {
                self.merge(set, unit + units - 1);
            }
            self.sets[set as usize].written_units += u64::from(units);
            let unsaved = data.as_ref().is_some() && !self.spec.buffer.protected;
            let before = if unsaved { self.sets[set as usize].ftl.done().host } else { 0 };
            self.with_flash(set as usize, |ftl, hands| ftl.write(unit, units, hands));
            if self.is_deterministic(set) && !self.sets[set as usize].ftl.is_still() {
                self.end_disturbed_window(set);
            }
            if let Some(data) = data {
                if unsaved && self.sets[set as usize].ftl.done().host > before {
                    self.remember(data, command.drive, place, first_byte);
                }
                data.keep(&command, at, (piece_end - at) as u32);
            }
            at = piece_end;
        }
        if let Some(upkeep) = self.spec.upkeep {
            self.owe_upkeep(&upkeep, length);
        }
    }

    /// Counts what the host has written, and writes the drive's own data when its time has come.
    fn owe_upkeep(&mut self, upkeep: &Upkeep, length: u32) {
        if self.upkeep_left > u64::from(length) {
            self.upkeep_left -= u64::from(length);
        } else {
            self.upkeep_left = upkeep.every_bytes;
            if upkeep.within_bytes == 0 {
                self.keep_up(upkeep.bytes);
            } else {
                self.upkeep_open = upkeep.bytes;
            }
        }
        if self.upkeep_open > 0 {
            self.upkeep_due += f64::from(length) * upkeep.bytes as f64 / upkeep.within_bytes as f64;
            let program = self.spec.flash.program_bytes();
            while self.upkeep_due >= program as f64 && self.upkeep_open > 0 {
                self.keep_up(program);
                self.upkeep_due -= program as f64;
                self.upkeep_open = self.upkeep_open.saturating_sub(program);
            }
        }
    }

    /// Whether a write is done now that this part has arrived.
    #[inline]
    pub(super) fn is_through(&mut self, piece: &Piece) -> bool {
        let command = &mut self.commands[piece.command as usize];
        if piece.last && self.spec.flash.media == Medium::InPlace {
            command.parts -= 1;
        }
        piece.last && command.parts == 0
    }

    /// A unit that is written in part is read first, if it lies on flash. The write doesn't wait, but its dies do.
    pub(super) fn merge(&mut self, set: u32, unit: u32) {
        let Set { ftl, dies: own, active, .. } = &self.sets[set as usize];
        let mut on_flash = None;
        ftl.read(unit, 1, |place, _| {
            if place == NOWHERE {
                return;
            }
            let found = ftl.locate(place);
            if !found.filling && !is_programming(active, &found) {
                on_flash = Some((own[found.spot.die as usize], found.slc));
            }
        });
        if let Some((die, slc)) = on_flash {
            self.dies.add(self.now, die, Work::Copy { slc, bytes: self.unit.bytes() });
        }
    }

    /// Writes the drive's own data, die by die.
    #[cold]
    pub(super) fn keep_up(&mut self, bytes: u64) {
        let dies = self.spec.flash.dies();
        for _ in 0..bytes.div_ceil(self.spec.flash.program_bytes()) {
            let (set, _) = self.places[self.upkeep_die as usize];
            if !self.owe(set) {
                self.dies.add(self.now, self.upkeep_die, Work::Upkeep);
                self.sets[set as usize].upkeep_programs += 1;
            }
            self.upkeep_die = (self.upkeep_die + 1) % dies;
        }
    }

    /// Work on a die is done.
    pub(super) fn worked<M: base::Buffers>(
        &mut self,
        work: Work,
        die: u32,
        uplink: &mut Option<UplinkWires>,
        data: &mut Option<Data<'_, M>>,
    ) {
        if let Work::Program { program, epoch } = work {
            let (set, number) = self.places[die as usize];
            let owner = &mut self.sets[set as usize];
            let found = owner.active.iter().position(|one| one.superblock == program.superblock);
            if let Some(at) = found {
                let active = &mut owner.active[at];
                active.programmed[number as usize] = program.wordline + 1;
                active.under_way -= 1;
                if active.under_way == 0 {
                    owner.active.swap_remove(at);
                }
            }
            if let Some(data) = data {
                self.saved(data, set as u16, number, &program);
            }
            self.programmed(epoch);
            self.forced_by(set as u16, number, &program);
            if program.host_units > 0 {
                self.buffered -= u64::from(program.host_units);
                let has_room = |first: &Waiting| self.buffered + first.held_up <= self.buffer_units;
                if self.waiting.front().is_some_and(has_room) {
                    self.admit(uplink);
                }
            }
        }
        if self.under_way == 0 && !self.dies.working() && self.idle_at == NEVER {
            // The work of idle time goes on as soon as the last bit of it is done.
            self.idle_at = self.now.max(self.drain_at);
        }
    }

    /// A program that flushes may wait for is done.
    #[inline(always)]
    pub(super) fn programmed(&mut self, epoch: u32) {
        self.epochs[epoch.wrapping_sub(self.first_epoch) as usize].programs -= 1;
        if self.epochs.len() > 1 {
            self.end_epochs();
        }
    }

    /// Completes the flushes that wait for no program any more.
    #[cold]
    fn end_epochs(&mut self) {
        while self.epochs.len() > 1 && self.epochs[0].programs == 0 {
            if let Some(epoch) = self.epochs.pop_front() {
                self.first_epoch = self.first_epoch.wrapping_add(1);
                for index in epoch.flushes {
                    self.over.push(self.now, index);
                }
            }
        }
    }
}
