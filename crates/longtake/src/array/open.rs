//! From the targets of an array to an open bank and what was found on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::target::array::peek;
use ::target::{AnyBank, SimDataBank};
use anyhow::Result;
use base::units::grouped;
use base::{Bank, BufferId};
use device::target::{self, Access};
use device::{Options, Pages, Pool, UringBank};
use format::layout::SUPERBLOCK_BYTES;
use format::{Damage, Superblock};
use recorder::open::{Look, OpenError, is_unfinished, open_some, open_to_read};
use recorder::reader::Reader;
use recorder::stale::{self, Stale};
use recorder::superblocks::{self, Change};
use recorder::takes::Catalog;
use recorder::{ArrayImage, TimeRange, live};

use crate::instant::utc;
use crate::{Remark, control};

/// Hears remarks as they come up.
pub type Tell = Box<dyn FnMut(Remark) + Send>;

/// An open array.
pub struct Opened {
    /// Its drives.
    pub bank: AnyBank,
    /// Its buffers.
    pub pool: Arc<Pool>,
    /// What was found.
    pub image: ArrayImage,
    /// Whether somebody records on it.
    pub recording: bool,
    tell: Tell,
    /// Whether members may be missing.
    degraded: bool,
    /// Members that are out of date.
    stale: Vec<Stale>,
    /// Chunks in the last catalog that come from such a member although the ring has overwritten them since.
    pub overwritten: u64,
}

impl Opened {
    /// A reader that uses all buffers.
    pub fn reader(&mut self) -> Reader<'_, AnyBank, Arc<Pool>> {
        let buffers: Vec<BufferId> = self.pool.buffer_ids().collect();
        Reader { bank: &mut self.bank, memory: &self.pool, buffers }
    }

    /// The chunks that may hold packets of `range`. While somebody records, those that are still
    /// being written are waited for.
    ///
    /// # Errors
    /// If a drive can't be read.
    pub fn catalog(&mut self, range: TimeRange) -> Result<Catalog> {
        let mut image = self.image.clone();
        let (recording, degraded) = (self.recording, self.degraded);
        let mut reader = self.reader();
        let (array, mut answers) = (image.uuid, true);
        // A recorder that did not answer once would keep every further look waiting.
        let mut ask = || {
            let written = answers.then(|| control::written(array)).flatten();
            answers = written.is_some();
            written
        };
        let catalog = if recording {
            live::catalog(&mut reader, &mut image, degraded, range, |_| ask())?
        } else {
            Catalog::load(&mut reader, &image, range)?
        };
        self.image = image;
        self.overwritten = stale::overwritten(&self.stale, &catalog);
        if self.overwritten > 0 {
            (self.tell)(Remark::Warning(format!(
                "{} chunks come from members that are out of date; the ring has overwritten them since",
                grouped(self.overwritten)
            )));
        }
        Ok(catalog)
    }

    /// Simulated drives that were formatted and recorded on, and what is on them.
    pub(crate) fn simulated(bank: SimDataBank, pool: Arc<Pool>) -> Result<Self> {
        let mut bank = AnyBank::from(bank);
        let buffers = pool.buffer_ids().collect();
        let image = open_some(&mut Reader { bank: &mut bank, memory: &pool, buffers }, false)?;
        let stale = stale::members(&image);
        let tell: Tell = Box::new(|_| ());
        let (recording, degraded) = (false, false);
        Ok(Self { bank, pool, image, recording, tell, degraded, stale, overwritten: 0 })
    }

    /// Changes the superblocks of all members, which are open for writing. Gives the new ones.
    pub(crate) fn change_superblocks(&mut self, change: &Change) -> Result<Vec<Superblock>> {
        let image = self.image.clone();
        Ok(superblocks::change(&mut self.reader(), &image, change)?)
    }

    /// Finds out again what is on the members.
    pub(crate) fn read_again(&mut self) -> Result<()> {
        let degraded = self.degraded;
        self.image = open_some(&mut self.reader(), degraded)?;
        self.stale = stale::members(&self.image);
        Ok(())
    }

    /// Finds out what was written since the last look.
    pub(crate) fn look_again(&mut self) -> Result<()> {
        let (degraded, known) = (self.degraded, self.image.clone());
        let written = self.recording.then(|| control::written(known.uuid)).flatten();
        let (known, written) = (Some(&known), written.as_ref());
        let look = Look { degraded, known, written, by_records: true };
        self.image = open_to_read(&mut self.reader(), look)?;
        self.stale = stale::members(&self.image);
        Ok(())
    }

    /// The members that are out of date.
    pub fn stale(&self) -> &[Stale] {
        &self.stale
    }

    /// A member's file or device; None if it is missing.
    pub fn target(&self, member: u16) -> Option<&str> {
        let drive = self.image.members[usize::from(member)].drive;
        self.bank.drives().get(drive.index()).map(|drive| drive.name.as_str())
    }

    /// Hands a remark to whoever hears them.
    pub(crate) fn tell(&mut self, remark: Remark) {
        (self.tell)(remark);
    }

    /// Takes away whoever hears remarks: nobody does until [`Opened::set_tell`].
    pub(crate) fn take_tell(&mut self) -> Tell {
        std::mem::replace(&mut self.tell, Box::new(|_| ()))
    }

    pub(crate) fn set_tell(&mut self, tell: Tell) {
        self.tell = tell;
    }
}

/// The longest chunk of an array, as far as any of its members tells.
fn chunk_max(targets: &[&PathBuf]) -> usize {
    let seen = targets.iter().filter_map(|t| peek(t).ok()).map(|s| s.layout.chunk_max).max();
    seen.unwrap_or(format::layout::CHUNK_MAX_LIMIT) as usize
}

/// Opens an array's members with buffers for `memory_bytes` of chunks and `extra` more, and finds
/// out what is on them. Remarks go to `tell`. If `degraded` is set, a reader leaves out targets that
/// have no superblock or were cut short.
///
/// # Errors
/// If a target can't be opened or the array is not whole (and `degraded` is not set).
pub fn open(
    targets: &[PathBuf],
    access: Access,
    memory_bytes: u64,
    extra: u32,
    degraded: bool,
    tell: Tell,
) -> Result<Opened> {
    open_seen(targets, access, (memory_bytes, extra), degraded, None, tell)
}

/// The same; what an earlier look (`seen`) has found is not read again where it still stands.
///
/// # Errors
/// As [`open`].
pub fn open_seen(
    targets: &[PathBuf],
    access: Access,
    buffers: (u64, u32),
    degraded: bool,
    seen: Option<&ArrayImage>,
    mut tell: Tell,
) -> Result<Opened> {
    let unfinished = |path: &&PathBuf| peek(path).is_ok_and(|found| is_unfinished(&found));
    for path in targets.iter().filter(unfinished) {
        tell(Remark::Note(format!(
            "{} is left out: a member is being rebuilt on it, or that was cut short",
            path.display()
        )));
    }
    let mut targets: Vec<&PathBuf> = targets.iter().filter(|path| !unfinished(path)).collect();
    let leave_out = degraded && access == Access::Read;
    if leave_out && !targets.iter().all(|path| too_short(path)) {
        for path in targets.extract_if(.., |path| too_short(path)) {
            tell(Remark::Note(format!("left out: {} was cut short", path.display())));
        }
    }
    loop {
        match open_all(&targets, access, buffers, degraded, seen, &mut tell) {
            Err(error) if leave_out && targets.len() > 1 => match unusable(&error) {
                Some(drive) if targets.iter().any(|path| path.display().to_string() == drive) => {
                    tell(Remark::Note(format!("left out: {error:#}")));
                    targets.retain(|path| path.display().to_string() != drive);
                }
                _ => return Err(error),
            },
            Err(error) => return Err(error),
            Ok(found) => return Ok(found.opened(degraded, tell)),
        }
    }
}

/// Whether a file has no room for the two superblocks of a member.
fn too_short(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() < 2 * SUPERBLOCK_BYTES)
}

/// The drive that lost both of its superblocks or was cut short, if this is why an array could not be opened.
fn unusable(error: &anyhow::Error) -> Option<String> {
    match error.downcast_ref()? {
        OpenError::NotMember { damage: Damage::Newer { .. }, .. } => None,
        OpenError::NotMember { drive, .. } | OpenError::Shrunk { drive, .. } => Some(drive.clone()),
        _ => None,
    }
}

/// An array that is open.
struct Found {
    bank: UringBank,
    pool: Arc<Pool>,
    image: ArrayImage,
    recording: bool,
    stale: Vec<Stale>,
}

impl Found {
    fn opened(self, degraded: bool, tell: Tell) -> Opened {
        let Self { bank, pool, image, recording, stale } = self;
        let bank = AnyBank::from(bank);
        Opened { bank, pool, image, recording, tell, degraded, stale, overwritten: 0 }
    }
}

/// [`open`] with all of these targets.
fn open_all(
    targets: &[&PathBuf],
    access: Access,
    (memory_bytes, extra): (u64, u32),
    degraded: bool,
    seen: Option<&ArrayImage>,
    tell: &mut Tell,
) -> Result<Found> {
    let recording = targets.iter().any(|t| target::is_locked(t).unwrap_or(false));
    let array = targets.iter().find_map(|target| Some(peek(target).ok()?.array));
    let mut open = Vec::new();
    let mut warnings = Vec::new();
    for path in targets {
        let (target, found) = target::open(path, access)?;
        warnings.extend(found);
        open.push(target);
    }
    let size = chunk_max(targets);
    let held = open.iter().map(|target| target.geometry.capacity_bytes).sum();
    let busy = (open.len() * READ_BUFFERS_PER_MEMBER * size) as u64;
    let buffers = |bytes: u64| (bytes / size as u64).clamp(4, 1 << 16) as u32 + extra;
    let pool = match access {
        // A recording fills its buffers while its drives stand still. A reader never does, and the kernel would clear them first.
        Access::Read => Pool::as_used(buffers(memory_bytes.min(held).min(busy)), size)?,
        _ => {
            let (pool, found) = Pool::new(buffers(memory_bytes), size, Pages::Huge)?;
            warnings.extend(found);
            pool
        }
    };
    let (mut bank, found) = UringBank::open(open, Arc::clone(&pool), Options::default())?;
    warnings.extend(found);
    for warning in warnings {
        tell(Remark::Warning(warning.to_string()));
    }
    let buffers = pool.buffer_ids().collect();
    let mut reader = Reader { bank: &mut bank, memory: &pool, buffers };
    // Whoever writes to the array needs to know for itself what is on it.
    let asked = array.filter(|_| recording && access == Access::Read);
    let written = asked.and_then(control::written);
    let by_records = access == Access::Read;
    let look = Look { degraded, known: seen, written: written.as_ref(), by_records };
    let image = open_to_read(&mut reader, look)?;
    let stale = stale::members(&image);
    for stale in &stale {
        tell(Remark::Warning(describe(stale, &image, &bank)));
    }
    Ok(Found { bank, pool, image, recording, stale })
}

/// Which member is out of date, since when, and what to do.
fn describe(stale: &Stale, image: &ArrayImage, bank: &UringBank) -> String {
    let member = stale.member;
    let drive = image.members[usize::from(member)].drive;
    let name = bank.drives().get(drive.index()).map_or("-", |drive| drive.name.as_str());
    let since = match stale.newest {
        Some(newest) => format!("its newest packet is from {}", utc(newest)),
        None => "it holds no packet".to_owned(),
    };
    let lacks = match stale.missed {
        Some(started) => {
            format!("it lacks packets that the other members recorded after {}", utc(started))
        }
        None => "the ring has overwritten the packets of that time on the other members".to_owned(),
    };
    let advice = match image.superblock.parity {
        0 => {
            "insert the drive that was recorded on, or leave this one out and read with --degraded"
                .to_owned()
        }
        _ => format!(
            "leave it out and run `longtake array rebuild ARRAY --member {member} --onto TARGET`"
        ),
    };
    format!("member {member} ({name}) is out of date: {since}, and {lacks}; {advice}")
}

/// Buffers that keep a drive busy with whole chunks, however short they are.
const READ_BUFFERS_PER_MEMBER: usize = 32;

/// Enough to keep a dozen drives busy with whole chunks.
pub const READ_MEMORY_BYTES: u64 = 128 << 20;
