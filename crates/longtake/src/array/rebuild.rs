//! A missing member is rebuilt on another drive, also while the others are recorded on.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::target::array::peek;
use ::target::real::{STOPPED, open_proven};
use ::target::{AnyBank, NewFiles, authorize, wear};
use anyhow::{Context, Result, bail};
use base::{Bank, BufferId, ByteSize, DriveId, Rate};
use device::safety::{Authorized, Purpose};
use device::target::{Access, FILE_MODE_DEFAULT, is_locked};
use device::{Options, Pages, Pool, UringBank};
use format::superblock::Member;
use format::{PAGE_BYTES, Superblock};
use recorder::TimeRange;
use recorder::create::WRITTEN_BYTES;
use recorder::open::is_unfinished;
use recorder::reader::Reader;
use recorder::rebuild::{self, Plan, Rebuilt};
use recorder::superblocks::{self, Change, store};
use source::clock;
use uuid::Uuid;

use super::create::identity;
use super::open::{self, Opened};
use super::options::is_same;
use super::select::READ_RATE_DURING_RECORDING;
use super::{Array, Progress};
use crate::Remark;

/// How to rebuild a member.
#[derive(Clone, Debug)]
pub struct RebuildOptions {
    /// Serial number of the drive, or path of the file, whose contents may be lost.
    pub erase: Vec<String>,
    /// Mode of the file, if one is created.
    pub mode: u32,
    /// Reads at this rate at most; None for [`READ_RATE_DURING_RECORDING`] during a recording, and no limit otherwise.
    pub limit: Option<Rate>,
    /// Whether the plan is never run, so that the target need not be claimed.
    pub dry_run: bool,
}

impl Default for RebuildOptions {
    fn default() -> Self {
        Self { erase: Vec::new(), mode: FILE_MODE_DEFAULT, limit: None, dry_run: false }
    }
}

/// What was rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuildReport {
    /// Chunks of packets that were recovered and written.
    pub chunks: u64,
    /// Their length in bytes.
    pub bytes: u64,
    /// Parity chunks that were computed and written.
    pub parity_chunks: u64,
    /// Chunks that an earlier try had written.
    pub found_written: u64,
    /// Chunks that could not be recovered. Their places were filled, so that what lies behind them is found.
    pub filled: u64,
    /// Groups that have less parity than before, because the place of their parity chunk is not known.
    pub groups_without_parity: u64,
    /// Whether the target is a member now. During a recording it becomes one when the array is opened next.
    pub joined: bool,
    /// Segments of the member.
    pub segments: u64,
}

impl RebuildReport {
    /// Whether the member holds all that it held before.
    pub fn is_complete(&self) -> bool {
        self.filled + self.groups_without_parity == 0
    }
}

/// What a rebuild will write, and onto what. Nothing is written yet.
pub struct RebuildPlan<'a> {
    array: &'a mut Array,
    /// The superblock that the missing member had.
    superblock: Superblock,
    plan: Plan,
    onto: PathBuf,
    options: RebuildOptions,
    proofs: Vec<Option<Authorized>>,
    resumes: bool,
}

impl<'a> RebuildPlan<'a> {
    pub(super) fn new(
        array: &'a mut Array,
        member: u16,
        onto: &Path,
        options: &RebuildOptions,
    ) -> Result<Self> {
        array.targets.retain(|target| !is_same(target, onto));
        let opened = &mut array.opened;
        let superblock = missing(opened, member)?;
        let resumes = peek(onto).is_ok_and(|found| {
            is_unfinished(&found) && found.array == superblock.array && found.member == member
        });
        if !resumes
            && let Ok(found) = peek(onto)
            && found.array == superblock.array
        {
            let what =
                if is_unfinished(&found) { "an unfinished rebuild" } else { "the superblock" };
            bail!(
                "{} holds {what} of member {} of this array: rebuild onto another drive or a new file",
                onto.display(),
                found.member
            );
        }
        // What an earlier try has left belongs to no member yet, and is continued.
        let purpose = if resumes { Purpose::Continue } else { Purpose::Create };
        let proofs = authorize(&[onto], &options.erase, purpose, options.dry_run)?;
        let catalog = opened.catalog(TimeRange::ALL)?;
        let image = opened.image.clone();
        let recorded = catalog.entries.last().map(|e| e.record.take.uuid);
        let recorded = recorded.filter(|_| opened.recording);
        let plan = Plan::new(&mut opened.reader(), &image, &catalog, member, recorded)?;
        let (onto, options) = (onto.to_owned(), options.clone());
        Ok(Self { array, superblock, plan, onto, options, proofs, resumes })
    }

    /// The array's identity.
    pub fn array(&self) -> Uuid {
        self.superblock.array
    }

    /// The array's name.
    pub fn array_name(&self) -> &str {
        &self.superblock.name
    }

    /// Chunks to write, parity included.
    pub fn chunks(&self) -> u64 {
        self.plan.pieces()
    }

    /// Bytes to write, superblocks included. What an earlier try has written is not written again.
    pub fn writes_bytes(&self) -> u64 {
        self.plan.bytes() + WRITTEN_BYTES
    }

    /// The share of the drive's rated life that this takes, in words; None for a file.
    pub fn share_of_life(&self) -> Option<String> {
        wear(&self.onto, self.writes_bytes())
    }

    /// Whether an earlier try is continued.
    pub fn resumes(&self) -> bool {
        self.resumes
    }

    /// Groups that will have less parity than before, because the place of their parity chunk is not known.
    pub fn groups_without_parity(&self) -> u64 {
        self.plan.groups_without
    }

    /// Rebuilds the member. `progress` counts bytes.
    ///
    /// If `stop` is set before the first call of `progress`, a file that was created is removed. After it, what is written stays,
    /// and the same rebuild continues with it.
    ///
    /// # Errors
    /// If a drive can't be read, the target can't be written or is too small, `stop` was set, or this is a dry run.
    pub fn run(
        mut self,
        stop: &AtomicBool,
        mut progress: impl FnMut(Progress),
    ) -> crate::Result<RebuildReport> {
        Ok(self.rebuild(stop, &mut progress)?)
    }

    fn rebuild(
        &mut self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<RebuildReport> {
        if self.options.dry_run {
            bail!("this rebuild of {} was planned as a dry run", self.onto.display());
        }
        let (mut bank, pool) = self.prepare(stop)?;
        let buffers: Vec<BufferId> = pool.buffer_ids().collect();
        let mut to = Reader { bank: &mut bank, memory: &pool, buffers };
        let rebuilt = self.copy(&mut to, stop, progress)?;
        let joined = self.join(&mut to)?;
        self.array.targets.push(self.onto.clone());
        Ok(RebuildReport {
            chunks: rebuilt.chunks,
            bytes: rebuilt.bytes,
            parity_chunks: rebuilt.parity_chunks,
            found_written: rebuilt.found,
            filled: rebuilt.filled,
            groups_without_parity: self.plan.groups_without,
            joined,
            segments: self.superblock.layout.segments,
        })
    }

    /// Opens the target, creating a file where there is none, and marks it as a member that does not count yet. A file that was
    /// created is removed if that fails or is stopped.
    fn prepare(&mut self, stop: &AtomicBool) -> Result<(UringBank, Arc<Pool>)> {
        let mut created = NewFiles::default();
        let prepared = self.prepare_noting(&mut created, stop);
        match &prepared {
            // From here on the same call continues with what it finds written.
            Ok(_) => created.keep(),
            Err(_) => {
                let remaining = created.remove();
                if !remaining.is_empty() {
                    let names: Vec<String> =
                        remaining.iter().map(|file| file.display().to_string()).collect();
                    self.array.opened.tell(Remark::Warning(format!(
                        "these files were created and could not be removed: {}",
                        names.join(", ")
                    )));
                }
            }
        }
        prepared
    }

    fn prepare_noting(
        &mut self,
        created: &mut NewFiles,
        stop: &AtomicBool,
    ) -> Result<(UringBank, Arc<Pool>)> {
        if !self.onto.exists() {
            let member = usize::from(self.superblock.member);
            let size = self.superblock.members[member].capacity_bytes;
            created.file(&self.onto, size, self.options.mode)?;
        }
        let (mut bank, pool) = self.open_target()?;
        if !self.resumes {
            let buffers = pool.buffer_ids().collect();
            let mut to = Reader { bank: &mut bank, memory: &pool, buffers };
            rebuild::begin(&mut to, &self.superblock)?;
        }
        if stop.load(Ordering::Relaxed) {
            bail!(STOPPED);
        }
        Ok((bank, pool))
    }

    /// Opens the target, which must be as large as the member's segments take.
    fn open_target(&mut self) -> Result<(UringBank, Arc<Pool>)> {
        let onto = &self.onto;
        let proof = self.proofs.iter().flatten().find(|proof| proof.claim().is_some());
        let (target, warnings) = open_proven(onto, Access::Write { exclusive: false }, proof)?;
        for warning in warnings {
            self.array.opened.tell(Remark::Warning(warning.to_string()));
        }
        let layout = &self.superblock.layout;
        let size = layout.chunk_max as usize;
        let (pool, _) = Pool::new(4, size.max(1 << 20), Pages::Transparent)?;
        let (bank, _) = UringBank::open(vec![target], Arc::clone(&pool), Options::default())?;
        let drive = &bank.drives()[0];
        let needed = layout.segment_offset(layout.segments) + format::layout::SUPERBLOCK_BYTES;
        if drive.capacity_bytes < needed {
            bail!(
                "{} has {}, and the member takes {}: give a drive that is at least as large",
                onto.display(),
                ByteSize(drive.capacity_bytes),
                ByteSize(needed)
            );
        }
        if u64::from(drive.block_bytes) > PAGE_BYTES {
            bail!(
                "{} has blocks of {} bytes, the format's unit is {PAGE_BYTES}: format the namespace with smaller blocks",
                onto.display(),
                drive.block_bytes
            );
        }
        Ok((bank, pool))
    }

    /// Writes the member's chunks onto the target.
    fn copy(
        &mut self,
        to: &mut Reader<'_, UringBank, Arc<Pool>>,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Rebuilt> {
        let opened = &mut self.array.opened;
        let limit = self.options.limit;
        let limit = limit.or(opened.recording.then_some(READ_RATE_DURING_RECORDING));
        let image = opened.image.clone();
        let (mut done, total) = (0, self.plan.bytes());
        progress(Progress { done, total });
        let rebuilt = rebuild::run(&mut opened.reader(), to, &image, &self.plan, limit, |bytes| {
            done += bytes;
            progress(Progress { done, total });
            match stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        rebuilt.with_context(|| {
            format!("stopped: {} is no member yet; the same rebuild continues", self.onto.display())
        })
    }

    /// Makes the target a member: its superblock counts from now on. While somebody records, the target alone knows that, until
    /// the array is recorded on again; else all members are told. Returns whether they were.
    fn join(&mut self, to: &mut Reader<'_, UringBank, Arc<Pool>>) -> Result<bool> {
        // The new superblock is made from theirs, and must not know more than they do after a power cut.
        let image = self.array.opened.image.clone();
        superblocks::flush_all(&mut self.array.opened.reader(), &image)?;
        let own = &self.superblock;
        let member = Member {
            capacity_bytes: to.bank.drives()[0].capacity_bytes,
            identity: identity(&self.onto),
            joined_ns: clock::now().as_nanos(),
        };
        let sources = &self.array.targets;
        let others: Vec<Superblock> = sources.iter().filter_map(|path| peek(path).ok()).collect();
        store(to, DriveId(0), &superblocks::joined(&others, own, member.clone()))?;
        for path in sources {
            if is_locked(path)? {
                return Ok(false);
            }
        }
        let (member, layout) = (Change::Join(own.member, member), own.layout);
        if let Some(told) = self.tell_the_others(&member)?.into_iter().next() {
            let member = self.superblock.member;
            store(to, DriveId(0), &Superblock { member, layout, ..told })?;
        }
        self.array.opened.recording = false;
        Ok(true)
    }

    /// Tells all the other members, and gives their new superblocks.
    fn tell_the_others(&mut self, joined: &Change) -> Result<Vec<Superblock>> {
        let tell = self.array.opened.take_tell();
        let access = Access::Write { exclusive: true };
        let all = open::open(&self.array.targets, access, 64 << 20, 0, true, tell);
        let mut all = all.with_context(|| {
            format!(
                "{} is rebuilt; telling the others failed, which the next recording on {} does",
                self.onto.display(),
                self.array.name
            )
        })?;
        let changed = all.change_superblocks(joined)?;
        self.array.opened.set_tell(all.take_tell());
        Ok(changed)
    }
}

/// The superblock that a missing member had, if it is missing and can be rebuilt.
fn missing(opened: &Opened, member: u16) -> Result<Superblock> {
    let image = &opened.image;
    let superblock = &image.superblock;
    if matches!(opened.bank, AnyBank::Simulated(_)) {
        bail!("array '{}' is on simulated drives, of which none is lost", superblock.name);
    }
    let Some(found) = image.members.get(usize::from(member)) else {
        bail!(
            "array '{}' has no member {member}: its members are 0 to {}",
            superblock.name,
            image.members.len() - 1
        );
    };
    if superblock.parity == 0 {
        bail!(
            "array '{}' has no parity: a lost member can't be rebuilt. `longtake array create --parity 1` creates an \
             array that can lose one",
            superblock.name
        );
    }
    if let Some(drive) = opened.bank.drives().get(found.drive.index()) {
        bail!(
            "member {member} is present ({}): to replace it, name the array without it",
            drive.name
        );
    }
    Ok(Superblock { member, layout: found.layout, ..superblock.clone() })
}
