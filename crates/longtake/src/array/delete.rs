//! An array is deleted: member files are removed, and on drives both superblocks are erased, so that nothing takes them for members
//! any more.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use ::target::array::{peek, resolve};
use anyhow::{Context, Result, anyhow, bail};
use base::{Bank, Buffers, Command, DriveId, Operation};
use device::holders::other_openers;
use device::target::{TargetKind, is_locked, kind};
use format::layout::SUPERBLOCK_BYTES;
use format::superblock::Protected;
use format::{Layout, Superblock};
use nix::fcntl::{AtFlags, OFlag, open};
use nix::sys::stat::{Mode, SFlag, fstatat};
use nix::unistd::{UnlinkatFlags, fsync, unlinkat};
use recorder::TimeRange;
use recorder::open::is_unfinished;
use recorder::reader::Reader;
use uuid::Uuid;

use super::Array;
use super::contents::Contents;
use crate::Remark;

/// How to delete an array.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeleteOptions {
    /// Whether members may be missing beyond what parity makes up for, as after a deletion that was cut short.
    pub degraded: bool,
    /// Whether to find out what would be lost and change nothing.
    pub dry_run: bool,
}

/// What is deleted, or would be.
#[derive(Clone, Debug)]
pub struct DeleteReport {
    /// The array's identity.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// What its members are.
    pub members: Vec<DeletedMember>,
    /// Numbers of the members that are missing: what they hold is not touched.
    pub missing: Vec<usize>,
    /// Takes that are lost.
    pub takes: usize,
    /// Packets that are lost.
    pub packets: u64,
    /// Packet bytes that are lost.
    pub bytes: u64,
    /// From the first packet to the last one; None if there is none.
    pub span: Option<TimeRange>,
    /// Protected spans that are lost.
    pub protected: Vec<Protected>,
    /// The directory of the member files; None if the array was not named by it.
    pub directory: Option<PathBuf>,
    /// What else is in that directory. It stays, and so does the directory.
    pub others: Vec<PathBuf>,
}

/// A member of an array that is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedMember {
    /// Its file or device.
    pub target: PathBuf,
    /// Whether it is a file, which is removed. The superblocks of a drive are erased.
    pub is_file: bool,
}

/// An array that can be deleted: nobody uses it, and every target is a member of it. Nothing is changed yet.
pub struct DeletePlan {
    array: Array,
    report: DeleteReport,
    /// The files to remove.
    files: Vec<MemberFile>,
}

/// A file as it was when the array was opened.
struct MemberFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl DeletePlan {
    /// Looks at the array of this name, and claims its members unless this is a dry run. Remarks go to `tell`.
    ///
    /// # Errors
    /// If somebody uses the array, a target is not a member of it or only a link to one, or a member can't be opened or is missing.
    pub fn new(
        name: &str,
        options: DeleteOptions,
        tell: impl FnMut(Remark) + Send + 'static,
    ) -> crate::Result<Self> {
        Ok(Self::of(name, options, tell)?)
    }

    /// What [`DeletePlan::run`] deletes.
    pub fn report(&self) -> &DeleteReport {
        &self.report
    }

    /// Deletes the array, unless this is a dry run.
    ///
    /// On drives the second superblocks are erased first, and the first ones when none of those is left: until then the array still
    /// opens. Then files are removed.
    ///
    /// # Errors
    /// If a drive can't be written or a file can't be removed. What was not deleted can be by the same call, with
    /// [`DeleteOptions::degraded`].
    pub fn run(mut self) -> crate::Result<DeleteReport> {
        if !self.report.dry_run {
            self.delete_members().context(
                "the array may be deleted in part: the same command with --degraded deletes the rest",
            )?;
            self.remove_directory()?;
        }
        Ok(self.report)
    }

    fn of(
        name: &str,
        options: DeleteOptions,
        tell: impl FnMut(Remark) + Send + 'static,
    ) -> Result<Self> {
        let targets = resolve(name)?;
        let directory = Path::new(name).is_dir().then(|| PathBuf::from(name));
        refuse_links(directory.as_deref(), &targets)?;
        refuse_used(&targets)?;
        let how = Array::options().degraded(options.degraded).repair(!options.dry_run);
        let mut array = how.on_remark(tell).open(name)?;
        refuse_others(&array, &targets)?;
        let contents = array.contents()?;
        let members = members(&targets)?;
        let files = members.iter().filter(|member| member.is_file);
        let files = files.map(|member| MemberFile::of(&member.target)).collect::<Result<_>>()?;
        let report = report(&array, &contents, members, directory, options.dry_run)?;
        Ok(Self { array, report, files })
    }

    fn delete_members(&mut self) -> Result<()> {
        let opened = &mut self.array.opened;
        let members = &self.report.members;
        let is_drive = |drive: &DriveId| {
            let name = &opened.bank.drives()[drive.index()].name;
            members.iter().any(|m| !m.is_file && m.target.display().to_string() == *name)
        };
        let drives = opened.image.members.iter().filter(|member| !member.is_missing());
        let drives: Vec<DriveId> = drives.map(|member| member.drive).filter(is_drive).collect();
        erase(&mut opened.reader(), &drives)?;
        self.files.iter().try_for_each(MemberFile::remove)
    }

    fn remove_directory(&self) -> Result<()> {
        let DeleteReport { directory, others, .. } = &self.report;
        let Some(directory) = directory.as_ref().filter(|_| others.is_empty()) else {
            return Ok(());
        };
        fs::remove_dir(directory).with_context(|| {
            format!("all members are deleted, but {} could not be removed", directory.display())
        })
    }
}

/// Refuses what is reached by a symbolic link: the directory, and files. Whoever deletes should name what is deleted. Names of block
/// devices may be links, as those in /dev/disk are.
fn refuse_links(directory: Option<&Path>, targets: &[PathBuf]) -> Result<()> {
    let is_link = |path: &Path| {
        // A slash at the end would lead behind the link.
        let path: PathBuf = path.components().collect();
        path.symlink_metadata().is_ok_and(|found| found.is_symlink())
    };
    if let Some(directory) = directory.filter(|directory| is_link(directory)) {
        bail!(
            "{} is a symbolic link: name the directory that it leads to; nothing was deleted",
            directory.display()
        );
    }
    let leads_out = |target: &&PathBuf| {
        is_link(target) && (directory.is_some() || fs::metadata(target).is_ok_and(|f| f.is_file()))
    };
    if let Some(target) = targets.iter().find(leads_out) {
        bail!(
            "{} is a symbolic link, and a deletion follows none: name the members themselves; nothing was deleted",
            target.display()
        );
    }
    Ok(())
}

/// How often, 25 ms apart, members are looked at before a process that has one open counts: udev and others look at each drive that
/// was written.
const LOOKS_MAX: u32 = 20;

/// Refuses an array that somebody records on, rebuilds, repairs or reads.
fn refuse_used(targets: &[PathBuf]) -> Result<()> {
    for target in targets {
        if is_locked(target)? {
            bail!(
                "{} is being written: stop the recording, rebuild or repair first; nothing was deleted",
                target.display()
            );
        }
    }
    for _ in 1..LOOKS_MAX {
        if other_openers(targets).is_empty() {
            return Ok(());
        }
        sleep(Duration::from_millis(25));
    }
    match other_openers(targets).as_slice() {
        [] => Ok(()),
        openers => bail!(
            "the array is in use: {} has a member of it open; nothing was deleted",
            openers.join(", ")
        ),
    }
}

/// Refuses targets that are no members of this very array.
fn refuse_others(array: &Array, targets: &[PathBuf]) -> Result<()> {
    let superblock = &array.opened.image.superblock;
    let members = array.info().members;
    for target in targets {
        let path = target.display().to_string();
        if members.iter().any(|member| member.target.as_ref() == Some(&path)) {
            continue;
        }
        let is_begun = |found: &Superblock| found.array == superblock.array && is_unfinished(found);
        match peek(target).is_ok_and(|found| is_begun(&found)) {
            true if target.is_file() => {}
            true => bail!(
                "{path} is not yet a member of array '{}', as a rebuild onto it was cut short: name the other members; nothing was deleted",
                superblock.name
            ),
            false => bail!(
                "{path} is not a member of array '{}': move it elsewhere, or leave it out; nothing was deleted",
                superblock.name
            ),
        }
    }
    Ok(())
}

fn members(targets: &[PathBuf]) -> Result<Vec<DeletedMember>> {
    let member = |target: &PathBuf| {
        let is_file = kind(target)? == TargetKind::File;
        Ok(DeletedMember { target: target.clone(), is_file })
    };
    targets.iter().map(member).collect()
}

fn report(
    array: &Array,
    contents: &Contents,
    members: Vec<DeletedMember>,
    directory: Option<PathBuf>,
    dry_run: bool,
) -> Result<DeleteReport> {
    let info = array.info();
    let mut others = Vec::new();
    if let Some(directory) = &directory {
        let failed = || format!("looking into {}", directory.display());
        for entry in fs::read_dir(directory).with_context(failed)? {
            let path = entry.with_context(failed)?.path();
            if !members.iter().any(|member| member.target == path) {
                others.push(path);
            }
        }
        others.sort();
    }
    let missing = info.members.iter().enumerate().filter(|(_, member)| member.target.is_none());
    Ok(DeleteReport {
        uuid: info.uuid,
        missing: missing.map(|(at, _)| at).collect(),
        name: info.name,
        dry_run,
        members,
        takes: contents.takes.len(),
        packets: contents.takes.iter().map(|take| take.stored.packets).sum(),
        bytes: contents.takes.iter().map(|take| take.captured_bytes).sum(),
        span: contents.span(),
        protected: info.protected,
        directory,
        others,
    })
}

impl MemberFile {
    fn of(path: &Path) -> Result<Self> {
        let found =
            path.symlink_metadata().with_context(|| format!("looking at {}", path.display()))?;
        Ok(Self { path: path.to_owned(), identity: (found.dev(), found.ino()) })
    }

    /// Removes the file, if it is still the one that was opened.
    fn remove(&self) -> Result<()> {
        self.remove_entry().with_context(|| format!("removing {}", self.path.display()))
    }

    fn remove_entry(&self) -> Result<()> {
        let parent = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let name = self.path.file_name().ok_or_else(|| anyhow!("it has no name"))?;
        // What is checked and removed is an entry of this very directory.
        let folder = open(parent, OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        let found = fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        let is_file = SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG;
        if !is_file || (found.st_dev, found.st_ino) != self.identity {
            bail!("it was exchanged for another file meanwhile, which stays");
        }
        unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir)?;
        Ok(fsync(&folder)?)
    }
}

/// Erases both superblocks of each drive: the second ones, and when all of these are gone the first ones.
///
/// # Errors
/// If a drive fails. The others may have theirs still.
fn erase<B: Bank, M: Buffers>(reader: &mut Reader<'_, B, M>, drives: &[DriveId]) -> Result<()> {
    let buffer = reader.buffers[0];
    let length = SUPERBLOCK_BYTES as u32;
    for at_end in [true, false] {
        for &drive in drives {
            // Reading may have filled it.
            reader.memory.with(buffer, &mut |memory| memory[..length as usize].fill(0));
            let capacity_bytes = reader.bank.drives()[drive.index()].capacity_bytes;
            let offset = if at_end { Layout::copy_offset(capacity_bytes) } else { 0 };
            run(reader.bank, drive, Operation::Write { offset, length, buffer, fua: false })?;
        }
        drives.iter().try_for_each(|&drive| run(reader.bank, drive, Operation::Flush))?;
    }
    Ok(())
}

/// Runs one command alone.
fn run<B: Bank>(bank: &mut B, drive: DriveId, operation: Operation) -> Result<()> {
    let mut done = Vec::new();
    while bank.submit(Command { drive, operation, tag: 0 }).is_err() {
        bank.wait(None, &mut done)?;
    }
    while done.is_empty() {
        bank.wait(None, &mut done)?;
    }
    let outcome = done.remove(0).outcome;
    outcome.map_err(|error| {
        let name = &bank.drives()[drive.index()].name;
        anyhow!("{name}: {} failed: {error}", operation.describe())
    })
}
