//! Changes of an array's superblocks: what every member is to have next, and in which order the two copies of each are written, so
//! that a power cut at any moment leaves each member a sound copy, old or new.
//!
//! [`Update`] does no I/O: whoever has the drives carries out its steps. A recording does so between its chunks, everything else by
//! [`carry_out`].

use std::collections::VecDeque;
use std::fmt;

use base::{Bank, Buffers, DeviceError, DriveId, Operation};
use format::superblock::{Member, Protected};
use format::{Layout, Superblock};

use crate::ArrayImage;
use crate::create::{CreateError, run, write};
use crate::open::{Copies, OpenError, is_unfinished, superblock_copies};
use crate::reader::Reader;

/// What a change of the superblocks is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// These spans are protected from now on, and no others.
    Protect(Vec<Protected>),
    /// This drive is a member from now on, in the place of one that was lost.
    Join(u16, Member),
    /// What a change that was cut short has left on some members is on all from now on.
    Settle,
}

/// The superblocks that members have after a change: all of one generation, which is newer than any of theirs. `superblocks` are
/// those of the members that are there.
pub fn changed(superblocks: &[Superblock], change: &Change) -> Vec<Superblock> {
    let Some(newest) = superblocks.iter().max_by_key(|s| s.generation) else { return Vec::new() };
    let mut members = members_now(superblocks, newest);
    let mut protected = newest.protected.clone();
    match change {
        Change::Protect(spans) => protected.clone_from(spans),
        Change::Join(member, joined) => members[usize::from(*member)] = joined.clone(),
        Change::Settle => {}
    }
    let generation = newest.generation + 1;
    let next = |own: &Superblock| Superblock {
        generation,
        protected: protected.clone(),
        members: members.clone(),
        ..own.clone()
    };
    superblocks.iter().map(next).collect()
}

/// The superblock with which a drive becomes a member in the place of a lost one, before the others know. `own` says which one, and
/// how the drive is divided; `superblocks` are those of the members that are there.
pub fn joined(superblocks: &[Superblock], own: &Superblock, joined: Member) -> Superblock {
    let newest = superblocks.iter().max_by_key(|s| s.generation).unwrap_or(own);
    let mut members = members_now(superblocks, newest);
    members[usize::from(own.member)] = joined;
    Superblock {
        members,
        // What was protected meanwhile is protected on it as well.
        protected: newest.protected.clone(),
        // One of generation 0 would not count.
        generation: newest.generation.max(1),
        ..own.clone()
    }
}

/// An array's members as its superblocks have them together: a drive that took another one's place may be all that knows it, until
/// the next change.
pub(crate) fn members_now(superblocks: &[Superblock], newest: &Superblock) -> Vec<Member> {
    let mut members = newest.members.clone();
    for other in superblocks.iter().filter(|s| s.array == newest.array && !is_unfinished(s)) {
        for (row, other) in members.iter_mut().zip(&other.members) {
            if other.joined_ns > row.joined_ns {
                row.clone_from(other);
            }
        }
    }
    members
}

/// One member in an update.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its drive.
    pub drive: DriveId,
    /// The drive's capacity in bytes, which says where the second copy lies.
    pub capacity_bytes: u64,
    /// What it is to have.
    pub superblock: Superblock,
    /// Whether of its two copies only the one at the drive's end is sound, or the newer one. That one is written last.
    pub first_copy_bad: bool,
}

/// A command of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateCommand {
    /// Flush the drive.
    Flush(DriveId),
    /// Write the superblock at this byte.
    Write(DriveId, u64, Box<Superblock>),
    /// Write these bytes, which are one page, at this byte.
    WritePage(DriveId, u64, Box<[u8]>),
}

impl UpdateCommand {
    /// The drive that it is for.
    pub fn drive(&self) -> DriveId {
        match self {
            Self::Flush(drive) | Self::Write(drive, ..) | Self::WritePage(drive, ..) => *drive,
        }
    }

    /// The bytes to write and where; None for a flush.
    pub fn bytes(&self) -> Option<(u64, Vec<u8>)> {
        match self {
            Self::Flush(_) => None,
            Self::Write(_, offset, superblock) => Some((*offset, superblock.encode(*offset))),
            Self::WritePage(_, offset, page) => Some((*offset, page.to_vec())),
        }
    }
}

/// A change of what lies in front of the segments, or behind them, step by step: the commands of a step may be carried out in any
/// order, and all of them before those of the next.
#[derive(Debug)]
pub struct Update {
    steps: VecDeque<Vec<UpdateCommand>>,
    outstanding: u32,
    /// Drives that failed. Their superblocks are left alone: one of the copies may be all there is.
    failed: Vec<DriveId>,
    outcome: Result<(), DeviceError>,
}

impl Update {
    /// An update of the superblocks of these members, in five steps for all at once: a flush, one copy, a flush, the other copy, a
    /// flush. The first flush is for copies that somebody who was killed has left in a drive's cache.
    pub fn new(targets: &[Target]) -> Self {
        let flush = || targets.iter().map(|target| UpdateCommand::Flush(target.drive)).collect();
        let copies = |bad_first: bool| {
            let write = |target: &Target| {
                let Target { drive, capacity_bytes, superblock, first_copy_bad } = target;
                let at_end = bad_first != *first_copy_bad;
                let offset = if at_end { Layout::copy_offset(*capacity_bytes) } else { 0 };
                UpdateCommand::Write(*drive, offset, Box::new(superblock.clone()))
            };
            targets.iter().map(write).collect()
        };
        Self::of_steps([flush(), copies(true), flush(), copies(false), flush()])
    }

    /// An update of these steps.
    pub fn of_steps(steps: impl IntoIterator<Item = Vec<UpdateCommand>>) -> Self {
        let steps = steps.into_iter().collect();
        Self { steps, outstanding: 0, failed: Vec::new(), outcome: Ok(()) }
    }

    /// Also flushes these drives first. What a superblock is made from must not go with the power after it is written: a drive of
    /// which another one knows that it joined, and which has forgotten it, would be taken for out of date.
    #[must_use]
    pub fn made_from(mut self, sources: &[DriveId]) -> Self {
        if let Some(first) = self.steps.front_mut() {
            let flushed: Vec<DriveId> = first.iter().map(UpdateCommand::drive).collect();
            let others = sources.iter().filter(|drive| !flushed.contains(drive));
            first.extend(others.map(|&drive| UpdateCommand::Flush(drive)));
        }
        self
    }

    /// The commands of the next step, in any order. All must be [`done`](Self::done) before the step after. None are left when the
    /// update is over, or no drive works.
    pub fn next_update_step(&mut self) -> Vec<UpdateCommand> {
        let mut commands = self.steps.pop_front().unwrap_or_default();
        commands.retain(|command| !self.failed.contains(&command.drive()));
        self.outstanding = commands.len() as u32;
        commands
    }

    /// A command of the current step is done. Returns whether the step is. One drive's failure does not spoil the update on the
    /// others.
    pub fn done(&mut self, drive: DriveId, outcome: Result<(), DeviceError>) -> bool {
        if outcome.is_err() && !self.failed.contains(&drive) {
            self.failed.push(drive);
        }
        if self.outcome.is_ok() {
            self.outcome = outcome;
        }
        self.outstanding -= 1;
        self.outstanding == 0
    }

    /// Drives that failed.
    pub fn failed(&self) -> &[DriveId] {
        &self.failed
    }

    /// The first error of any drive.
    ///
    /// # Errors
    /// That one.
    pub fn outcome(&self) -> Result<(), DeviceError> {
        self.outcome.clone()
    }
}

/// Every member's superblock as it is on its drive, and how its two copies were found.
///
/// # Errors
/// [`OpenError`] if one can't be read.
pub fn read_all<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
) -> Result<Vec<Target>, OpenError> {
    let drives: Vec<DriveId> =
        image.members.iter().filter(|m| !m.is_missing()).map(|m| m.drive).collect();
    drives
        .into_iter()
        .map(|drive| {
            let (superblock, copies) = superblock_copies(reader, drive)?;
            Ok(Target {
                drive,
                capacity_bytes: reader.bank.drives()[drive.index()].capacity_bytes,
                superblock,
                first_copy_bad: copies == Copies::Last,
            })
        })
        .collect()
}

/// Changes the superblocks of all members that are there, in an array that nobody records on, and gives the new ones. Goes on with
/// the others if a drive fails.
///
/// # Errors
/// [`ChangeError`] of the first drive that failed, or if the superblocks can't be read.
pub fn change<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    change: &Change,
) -> Result<Vec<Superblock>, ChangeError> {
    let mut targets = read_all(reader, image)?;
    let superblocks: Vec<Superblock> = targets.iter().map(|t| t.superblock.clone()).collect();
    let changed = changed(&superblocks, change);
    for (target, superblock) in targets.iter_mut().zip(&changed) {
        target.superblock = superblock.clone();
    }
    carry_out(reader, Update::new(&targets))?;
    Ok(changed)
}

/// Why superblocks could not be changed.
#[derive(Debug)]
pub enum ChangeError {
    /// They can't be read.
    Read(OpenError),
    /// A drive did not take its new one; the others have theirs.
    Write(CreateError),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChangeError {}

impl From<OpenError> for ChangeError {
    fn from(error: OpenError) -> Self {
        Self::Read(error)
    }
}

impl From<CreateError> for ChangeError {
    fn from(error: CreateError) -> Self {
        Self::Write(error)
    }
}

/// Flushes all members that are there: what was read from them stays.
///
/// # Errors
/// [`CreateError`] if a drive fails.
pub fn flush_all<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
) -> Result<(), CreateError> {
    let there = image.members.iter().filter(|member| !member.is_missing());
    there.map(|member| member.drive).try_for_each(|drive| run(reader, drive, Operation::Flush))
}

/// Writes both copies of one drive's superblock, the good one last.
///
/// # Errors
/// [`CreateError::Write`] if the drive fails.
pub fn store<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
    superblock: &Superblock,
) -> Result<(), CreateError> {
    let first_copy_bad = matches!(superblock_copies(reader, drive), Ok((_, Copies::Last)));
    let capacity_bytes = reader.bank.drives()[drive.index()].capacity_bytes;
    let superblock = superblock.clone();
    carry_out(reader, Update::new(&[Target { drive, capacity_bytes, superblock, first_copy_bad }]))
}

/// Carries out an update, one command after the other.
///
/// # Errors
/// [`CreateError`] of the first drive that failed, after the others were written.
pub fn carry_out<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    mut update: Update,
) -> Result<(), CreateError> {
    let mut first_error = Ok(());
    loop {
        let commands = update.next_update_step();
        if commands.is_empty() {
            return first_error;
        }
        for command in commands {
            let drive = command.drive();
            let outcome = match command.bytes() {
                None => run(reader, drive, Operation::Flush),
                Some((offset, bytes)) => write(reader, drive, offset, &bytes),
            };
            let told = match outcome {
                Ok(()) => Ok(()),
                Err(CreateError::Write { ref error, .. }) => Err(error.clone()),
                // The bank itself can't go on.
                Err(error) => return Err(error),
            };
            update.done(drive, told);
            if first_error.is_ok() {
                first_error = outcome;
            }
        }
    }
}
