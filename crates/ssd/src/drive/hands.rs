//! What a translation layer wants done, handed to the dies of its set; and which wordlines are still to be programmed.

use super::{Drive, Set};
use crate::dies::{Dies, Work};
use crate::ftl::{Flash, Ftl, Location, Program};

/// A superblock with programs that are not done yet.
#[derive(Clone, Debug)]
pub(super) struct Active {
    pub(super) superblock: u32,
    /// Wordlines that each die has programmed.
    pub(super) programmed: Vec<u32>,
    pub(super) under_way: u32,
}

/// Passes what a translation layer wants on to the dies of its set.
pub(super) struct Hands<'a> {
    now: u64,
    own: &'a [u32],
    dies: &'a mut Dies,
    active: &'a mut Vec<Active>,
    epoch: u32,
    programs: &'a mut u64,
    unit_bytes: u32,
}

impl Flash for Hands<'_> {
    #[inline(always)]
    fn program(&mut self, die: u32, program: Program) {
        let entry = self.active.iter_mut().find(|one| one.superblock == program.superblock);
        match entry {
            Some(active) => active.under_way += 1,
            None => self.activate(program.superblock, die, program.wordline),
        }
        *self.programs += 1;
        let work = Work::Program { program, epoch: self.epoch };
        self.dies.add(self.now, self.own[die as usize], work);
    }

    #[inline]
    fn copy(&mut self, die: u32, slc: bool, units: u32) {
        let bytes = units * self.unit_bytes;
        self.dies.add(self.now, self.own[die as usize], Work::Copy { slc, bytes });
    }

    #[inline]
    fn erase(&mut self, die: u32, _superblock: u32) {
        self.dies.add(self.now, self.own[die as usize], Work::Erase);
    }

    #[inline]
    fn erase_ahead(&mut self, die: u32, _superblock: u32) {
        self.dies.erase_ahead(self.now, self.own[die as usize]);
    }
}

impl Hands<'_> {
    /// Notes a superblock of which this is the first program that isn't done.
    #[cold]
    fn activate(&mut self, superblock: u32, die: u32, wordline: u32) {
        // Dies before this one have programmed the wordline already.
        let dies = 0..self.own.len() as u32;
        let programmed = dies.map(|one| wordline + u32::from(one < die)).collect();
        self.active.push(Active { superblock, programmed, under_way: 1 });
    }
}

/// Whether a wordline's program is still queued or under way.
#[inline]
pub(super) fn is_programming(active: &[Active], at: &Location) -> bool {
    active
        .iter()
        .find(|one| one.superblock == at.superblock)
        .is_some_and(|one| at.spot.wordline >= one.programmed[at.spot.die as usize])
}

impl Drive {
    /// A die without work erases a block that is free and stale, so that no program will have to wait for that. Not while a write waits
    /// for room in the buffer: then what comes next for this die is nearer than the end of an erase.
    #[inline]
    pub(super) fn erase_ahead(&mut self, die: u32) {
        let held_up = self.waiting.front().is_some_and(|first| first.held_up > 0);
        if !held_up && self.dies.is_without_work(die) {
            self.erase_if_stale(die);
        }
    }

    #[inline(never)]
    fn erase_if_stale(&mut self, die: u32) {
        let (set, number) = self.places[die as usize];
        if self.sets[set as usize].ftl.is_stale() && !self.is_deterministic(set) {
            self.with_flash(set as usize, |ftl, hands| ftl.erase_ahead(number, hands));
        }
    }

    /// The same for all dies.
    pub(super) fn erase_ahead_everywhere(&mut self) {
        for die in 0..self.places.len() as u32 {
            self.erase_ahead(die);
        }
    }

    /// Runs a set's translation layer against the dies.
    #[inline]
    pub(super) fn with_flash<T>(
        &mut self,
        set: usize,
        run: impl FnOnce(&mut Ftl, &mut Hands<'_>) -> T,
    ) -> T {
        let epoch = self.first_epoch.wrapping_add(self.epochs.len() as u32 - 1);
        let Some(last) = self.epochs.back_mut() else { unreachable!("there is always an epoch") };
        let Set { ftl, dies: own, active, .. } = &mut self.sets[set];
        let mut hands = Hands {
            now: self.now,
            own,
            dies: &mut self.dies,
            active,
            epoch,
            programs: &mut last.programs,
            unit_bytes: self.unit.bytes(),
        };
        run(ftl, &mut hands)
    }
}
