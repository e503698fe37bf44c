//! Writes with Force Unit Access: not acknowledged from a buffer that loses its data with the power, but when the
//! wordlines that hold the data are programmed.

use base::Operation;

use super::hands::is_programming;
use super::namespaces::Place;
use super::{Drive, UnderWay};
use crate::ftl::Program;
use crate::map::NOWHERE;
use crate::spec::Media as Medium;

/// A write that waits for programs.
#[derive(Clone, Debug)]
pub(super) struct Forced {
    command: u32,
    /// The wordlines that are not programmed yet.
    wordlines: Vec<Wordline>,
}

/// A wordline on a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wordline {
    set: u16,
    superblock: u32,
    die: u32,
    wordline: u32,
}

impl Drive {
    /// Whether a write whose data has arrived must wait for programs: then it completes with the last of them. Wordlines
    /// that its data doesn't fill are filled up with padding.
    #[inline]
    pub(super) fn is_forced(&mut self, index: u32) -> bool {
        let UnderWay { command, namespace, .. } = self.commands[index as usize];
        let Operation::Write { offset, length, fua: true, .. } = command.operation else {
            return false;
        };
        if self.spec.buffer.protected || self.spec.flash.media == Medium::InPlace {
            return false;
        }
        let wordlines = self.program_now(namespace, offset, offset + u64::from(length));
        let waits = !wordlines.is_empty();
        if waits {
            self.forced.push(Forced { command: index, wordlines });
        }
        waits
    }

    /// Has a range of a namespace programmed: the wordlines that are still to be.
    #[cold]
    fn program_now(&mut self, namespace: u32, offset: u64, end: u64) -> Vec<Wordline> {
        let mut wordlines = Vec::new();
        let mut at = offset;
        while at < end {
            let Place { set, unit, units } = self.namespaces.locate(namespace, at, end);
            self.with_flash(set as usize, |ftl, hands| ftl.pad(hands));
            let owner = &self.sets[set as usize];
            owner.ftl.read(unit, units, |place, _| {
                if place == NOWHERE {
                    return;
                }
                let found = owner.ftl.locate(place);
                let wordline = Wordline {
                    set: set as u16,
                    superblock: found.superblock,
                    die: found.spot.die,
                    wordline: found.spot.wordline,
                };
                if is_programming(&owner.active, &found) && !wordlines.contains(&wordline) {
                    wordlines.push(wordline);
                }
            });
            at = self.unit.floor(at) + self.unit.bytes_of(units.into());
        }
        wordlines
    }

    /// A program is done: writes that waited for it alone are, too.
    #[inline]
    pub(super) fn forced_by(&mut self, set: u16, die: u32, program: &Program) {
        if self.forced.is_empty() {
            return;
        }
        let Program { superblock, wordline, .. } = *program;
        let done = Wordline { set, superblock, die, wordline };
        let Self { forced, over, now, .. } = self;
        forced.retain_mut(|write| {
            write.wordlines.retain(|waited| *waited != done);
            if write.wordlines.is_empty() {
                over.push(*now, write.command);
            }
            !write.wordlines.is_empty()
        });
    }
}
