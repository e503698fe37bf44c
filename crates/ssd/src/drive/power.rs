//! When a drive's time is cut: power goes (what waits in an unprotected buffer is lost, everything else stays), or a steady state is put
//! in place of what was there.

use std::collections::VecDeque;

use base::DriveId;

use super::namespaces::Place;
use super::{Data, Drive, Epoch};
use crate::earliest::NEVER;
use crate::ftl::Program;
use crate::ftl::start::Nothing;
use crate::spec::Media as Medium;

impl Drive {
    /// Notes what lies at units that were just placed and still have to be programmed.
    pub(super) fn remember<M: base::Buffers>(
        &self,
        data: &mut Data<'_, M>,
        drive: DriveId,
        placed: Place,
        first_byte: u64,
    ) {
        let media = data.of(drive);
        let mut offset = first_byte;
        self.sets[placed.set as usize].ftl.read(placed.unit, placed.units, |place, count| {
            for place in place..place + count {
                let key = (placed.set as u16, place);
                media.remember(offset, self.unit.bytes() as usize, key);
                offset += self.unit.bytes_of(1);
            }
        });
    }

    /// What a program has written is safe.
    pub(super) fn saved<M: base::Buffers>(
        &self,
        data: &mut Data<'_, M>,
        set: u16,
        die: u32,
        program: &Program,
    ) {
        if self.spec.buffer.protected {
            return;
        }
        let ftl = &self.sets[usize::from(set)].ftl;
        let first = program.superblock * ftl.setup().stripe.units(false);
        for (from, to) in ftl.setup().stripe.places(die, program.wordline, program.slc) {
            for place in from..to {
                for media in data.media.iter_mut() {
                    media.save((set, first + place));
                }
            }
        }
    }

    /// Power goes and comes back at once: what was under way is forgotten, what was not programmed stays where a bank that keeps
    /// data lets it. Returns whether anything was in an unprotected buffer.
    pub fn power_cut(&mut self, now: u64) -> bool {
        let lost = self.buffered > 0 && !self.spec.buffer.protected;
        self.health.unsafe_shutdowns += u64::from(lost);
        self.forget_windows();
        self.forget(now);
        for set in &mut self.sets {
            // Wordlines that were being filled are not used any further.
            set.ftl.pad(&mut Nothing);
        }
        lost
    }

    /// Puts the drive into the steady state of uniform random writes of so many bytes each. Counters and wear stay as they are.
    pub fn settle(&mut self, block_bytes: u64, now: u64) {
        self.forget_windows();
        self.forget(now);
        if self.spec.flash.media == Medium::Nand {
            let run = (block_bytes / u64::from(self.unit.bytes())).clamp(1, 1 << 16) as u32;
            for set in &mut self.sets {
                set.ftl.settle(run);
            }
        }
    }

    /// Forgets all that is under way.
    fn forget(&mut self, now: u64) {
        self.dies.reset();
        for set in &mut self.sets {
            set.active.clear();
        }
        for queue in [&mut self.reads, &mut self.changes, &mut self.sent, &mut self.over] {
            queue.clear();
        }
        self.received.clear();
        self.ready.clear();
        self.waiting.clear();
        self.commands.clear();
        self.free_commands.clear();
        self.under_way = 0;
        self.buffered = 0;
        self.first_epoch = 0;
        self.forced.clear();
        self.epochs = VecDeque::from([Epoch::default()]);
        self.controller_until = now << super::FINE_BITS;
        self.now = now;
        self.idle_at = now + self.idle_ns;
        self.heat_at = NEVER;
        self.find_others();
    }
}
