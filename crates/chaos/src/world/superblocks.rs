//! Changes of the superblocks between two recordings, cut short at any answer; and what superblocks may say afterwards.

use base::{Bank, BufferId, Buffers, Command, Completion, DriveId, Duration, Operation};
use format::Superblock;
use format::superblock::{Member, Protected};
use recorder::ArrayImage;
use recorder::superblocks::{self, Target, Update, UpdateCommand};

use super::{READ_BUFFERS, World};
use crate::case::{Change, Purpose};
use crate::outcome::Outcome;
use crate::run::protected;
use crate::source::time;

impl World<'_> {
    /// What superblocks say must be what was written last, or what a change that was cut short may have left.
    pub(super) fn check_superblocks(&mut self, image: &ArrayImage) {
        let members = &image.superblock.members;
        if self.superblocks_known {
            let possible = &self.members;
            assert!(
                possible.contains(members),
                "superblocks: {members:?}, and none of {possible:?}"
            );
        }
        if !image.superblocks_differ {
            self.members = vec![members.clone()];
        }
        self.check_protected(image);
    }

    fn check_protected(&mut self, image: &ArrayImage) {
        let mut possible = std::mem::take(&mut self.protected_before);
        possible.push(self.book.protected.clone());
        if self.superblocks_known {
            assert!(
                possible.contains(&image.protected),
                "protection: {:?} is protected, and none of {possible:?}",
                image.protected
            );
        }
        self.book.protected.clone_from(&image.protected);
        if image.superblocks_differ {
            self.book.met.add(Outcome::SuperblocksDiffered);
            // Until the recording has written them all again.
            self.protected_before = possible;
        }
    }

    pub(super) fn superblocks(&self, image: &ArrayImage) -> Vec<Target> {
        let mut bank = self.user();
        match superblocks::read_all(&mut self.reader(&mut bank), image) {
            Ok(targets) => targets,
            Err(error) => panic!("media: a superblock can't be read: {error}"),
        }
    }

    /// Changes the superblocks while nobody records. Returns whether the power failed in the end.
    pub(super) fn change_superblocks(&mut self, change: Change) -> bool {
        self.say(|| format!("superblocks: {change:?}"));
        let image = self.open();
        self.check_superblocks(&image);
        let mut targets = self.superblocks(&image);
        let superblocks: Vec<Superblock> = targets.iter().map(|t| t.superblock.clone()).collect();
        let now = self.drives.now();
        let mut answers = change.cut.map_or(u32::MAX, |(answers, _)| answers);
        let mut whole = true;
        let wanted = match change.purpose {
            Purpose::Protect(shares) => {
                let spans: Vec<Protected> =
                    shares.into_iter().map(|s| protected(now, self.case.oldest(), s)).collect();
                self.book.in_order = false;
                self.protected_before
                    .push(std::mem::replace(&mut self.book.protected, spans.clone()));
                superblocks::Change::Protect(spans)
            }
            Purpose::Join(drive, told) => {
                let at = usize::from(drive);
                let joined = Member {
                    joined_ns: time(now).as_nanos(),
                    identity: format!("joined {now:?}"),
                    ..image.superblock.members[at].clone()
                };
                // What it was before must not come back in its place.
                self.drives.hub(|hub| hub.media(drive).forget());
                let mut members = image.superblock.members.clone();
                members[at] = joined.clone();
                self.members.push(members);
                let target = &mut targets[at].superblock;
                *target = superblocks::joined(&superblocks, target, joined.clone());
                let sources: Vec<DriveId> = targets.iter().map(|target| target.drive).collect();
                let update = Update::new(&targets[at..=at]).made_from(&sources);
                whole = self.carry_out(update, &mut answers);
                if whole {
                    self.members.drain(..self.members.len() - 1);
                    self.book.met.add(Outcome::Joined);
                }
                if !told {
                    return self.changed(change, whole);
                }
                superblocks::Change::Join(drive, joined)
            }
        };
        if whole {
            let superblocks: Vec<Superblock> =
                targets.iter().map(|t| t.superblock.clone()).collect();
            for (target, next) in
                targets.iter_mut().zip(superblocks::changed(&superblocks, &wanted))
            {
                target.superblock = next;
            }
            whole = self.carry_out(Update::new(&targets), &mut answers);
            if whole {
                self.protected_before.clear();
            }
        }
        self.changed(change, whole)
    }

    /// A change of the superblocks is over, or was cut short. Returns whether the power failed.
    fn changed(&mut self, change: Change, whole: bool) -> bool {
        let Some((_, power)) = change.cut.filter(|_| !whole) else { return false };
        self.book.met.add(Outcome::ChangeCutShort);
        self.cut_short(power);
        power
    }

    /// Somebody is killed while writing in front of the segments, or the power fails.
    pub(super) fn cut_short(&mut self, power: bool) {
        self.drives.hub(|hub| hub.crash(power));
        self.clean = false;
        self.book.reused_unknown = true;
        self.book.in_order &= !power;
        let mut bank = self.user();
        assert_eq!(bank.wait_for(Duration::from_millis(100), &mut Vec::new()), Ok(()));
    }

    /// Carries out an update, or so much of it that so many commands are answered. Returns whether it was whole.
    pub(super) fn carry_out(&self, mut update: Update, answers: &mut u32) -> bool {
        let mut bank = self.user();
        let buffers = Self::names(0, READ_BUFFERS + self.case.metadata + self.case.buffers);
        loop {
            let commands = update.next_update_step();
            if commands.is_empty() {
                return true;
            }
            for batch in commands.chunks(buffers.len()) {
                for (command, &buffer) in batch.iter().zip(&buffers) {
                    let command = self.command(command, buffer);
                    assert_eq!(bank.submit(command), Ok(()), "an idle drive takes a command");
                }
                let (mut outstanding, mut done) = (batch.len(), Vec::new());
                while outstanding > 0 {
                    if *answers == 0 {
                        return false;
                    }
                    assert_eq!(bank.wait(None, &mut done), Ok(()));
                    for Completion { drive, outcome, .. } in done.drain(..) {
                        outstanding -= 1;
                        *answers = answers.saturating_sub(1);
                        update.done(drive, outcome);
                    }
                }
            }
        }
    }

    fn command(&self, command: &UpdateCommand, buffer: BufferId) -> Command {
        let operation = match command.bytes() {
            None => Operation::Flush,
            Some((offset, bytes)) => {
                self.memory.with(buffer, &mut |memory| {
                    memory[..bytes.len()].copy_from_slice(&bytes);
                });
                Operation::Write { offset, length: bytes.len() as u32, buffer, fua: false }
            }
        };
        Command { drive: command.drive(), operation, tag: 0 }
    }
}
