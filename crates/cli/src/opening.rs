//! From the targets of an array to an open bank and what was found on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::target::array::{peek, resolve};
use anyhow::Result;
use base::{Bank, BufferId};
use device::target::{self, Access};
use device::{Options, Pages, Pool, UringBank};
use format::Damage;
use format::layout::SUPERBLOCK_BYTES;
use recorder::open::{OpenError, is_unfinished, open_some};
use recorder::reader::Reader;
use recorder::stale::{self, Stale};
use recorder::takes::Catalog;
use recorder::{ArrayImage, TimeRange, live};
use serde_json::{Value, json};

use longtake::instant::utc;
use crate::outlet;

/// An open array.
#[derive(Debug)]
pub struct Opened {
    /// Its drives.
    pub bank: UringBank,
    /// Its buffers.
    pub pool: Arc<Pool>,
    /// What was found.
    pub image: ArrayImage,
    /// Whether somebody records on it.
    pub recording: bool,
    /// Whether members may be missing.
    degraded: bool,
    /// Members that are out of date.
    stale: Vec<Stale>,
    /// Chunks in the last catalog that come from such a member although the ring has overwritten them since.
    pub overwritten: u64,
}

impl Opened {
    /// A reader that uses all buffers.
    pub fn reader(&mut self) -> Reader<'_, UringBank, Arc<Pool>> {
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
        let catalog = if recording {
            live::catalog(&mut reader, &mut image, degraded, range)?
        } else {
            Catalog::load(&mut reader, &image, range)?
        };
        self.image = image;
        self.overwritten = stale::overwritten(&self.stale, &catalog);
        if self.overwritten > 0 {
            outlet::tell(&format!(
                "longtake: warning: {} chunks come from members that are out of date; the ring has overwritten them since",
                outlet::number(self.overwritten)
            ));
        }
        Ok(catalog)
    }

    /// The members that are out of date, for `--json`.
    pub fn stale_json(&self) -> Value {
        let members = &self.image.superblock.members;
        let rows = self.stale.iter().map(|stale| {
            json!({
                "member": stale.member, "identity": members[usize::from(stale.member)].identity,
                "newest_packet": stale.newest.map(utc), "missed_take_started": stale.missed.map(utc),
            })
        });
        Value::Array(rows.collect())
    }
}

/// The longest chunk of an array, as far as any of its members tells.
fn chunk_max(targets: &[&PathBuf]) -> usize {
    let seen = targets.iter().filter_map(|t| peek(t).ok()).map(|s| s.layout.chunk_max).max();
    seen.unwrap_or(format::layout::CHUNK_MAX_LIMIT) as usize
}

/// Opens an array's members with buffers for `memory_bytes` of chunks and `extra` more, and finds
/// out what is on them. Warnings go to standard error. If `degraded` is set, a reader leaves out targets that
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
) -> Result<Opened> {
    let unfinished = |path: &&PathBuf| peek(path).is_ok_and(|found| is_unfinished(&found));
    for path in targets.iter().filter(unfinished) {
        outlet::tell(&format!(
            "longtake: note: {} is left out: a member is being rebuilt on it, or that was cut short",
            path.display()
        ));
    }
    let mut targets: Vec<&PathBuf> = targets.iter().filter(|path| !unfinished(path)).collect();
    let leave_out = degraded && access == Access::Read;
    if leave_out && !targets.iter().all(|path| too_short(path)) {
        for path in targets.extract_if(.., |path| too_short(path)) {
            outlet::tell(&format!("longtake: note: left out: {} was cut short", path.display()));
        }
    }
    loop {
        match open_all(&targets, access, memory_bytes, extra, degraded) {
            Err(error) if leave_out && targets.len() > 1 => match unusable(&error) {
                Some(drive) if targets.iter().any(|path| path.display().to_string() == drive) => {
                    outlet::tell(&format!("longtake: note: left out: {error:#}"));
                    targets.retain(|path| path.display().to_string() != drive);
                }
                _ => return Err(error),
            },
            opened => return opened,
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

/// [`open`] with all of these targets.
fn open_all(
    targets: &[&PathBuf],
    access: Access,
    memory_bytes: u64,
    extra: u32,
    degraded: bool,
) -> Result<Opened> {
    let recording = targets.iter().any(|t| target::is_locked(t).unwrap_or(false));
    let mut open = Vec::new();
    let mut warnings = Vec::new();
    for path in targets {
        let (target, found) = target::open(path, access)?;
        warnings.extend(found);
        open.push(target);
    }
    let size = chunk_max(targets);
    let count = (memory_bytes / size as u64).clamp(4, 1 << 16) as u32 + extra;
    let (pool, found) = Pool::new(count, size, Pages::Huge)?;
    if access != Access::Read {
        warnings.extend(found);
    }
    let (mut bank, found) = UringBank::open(open, Arc::clone(&pool), Options::default())?;
    warnings.extend(found);
    for warning in warnings {
        outlet::tell(&format!("longtake: warning: {warning}"));
    }
    let buffers = pool.buffer_ids().collect();
    let image = open_some(&mut Reader { bank: &mut bank, memory: &pool, buffers }, degraded)?;
    let stale = stale::members(&image);
    for stale in &stale {
        outlet::tell(&format!("longtake: warning: {}", describe(stale, &image, &bank)));
    }
    Ok(Opened { bank, pool, image, recording, degraded, stale, overwritten: 0 })
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
            format!("it lacks what the other members recorded from {} on", utc(started))
        }
        None => "the ring has overwritten all that the other members held then".to_owned(),
    };
    let advice = match image.superblock.parity {
        0 => "put the drive back that was recorded on, or leave this one out and read with --degraded".to_owned(),
        _ => format!(
            "leave it out and run `longtake array rebuild ARRAY --member {member} --onto TARGET`"
        ),
    };
    format!("member {member} ({name}) is out of date: {since}, and {lacks}; {advice}")
}

/// Opens an array for reading.
///
/// # Errors
/// As [`open`].
pub fn open_to_read(array: &str, degraded: bool) -> Result<Opened> {
    open_members_to_read(&resolve(array)?, degraded)
}

/// Opens an array's members for reading.
///
/// # Errors
/// As [`open`].
pub fn open_members_to_read(members: &[PathBuf], degraded: bool) -> Result<Opened> {
    open(members, Access::Read, READ_MEMORY_BYTES, 0, degraded)
}

/// Enough to keep a dozen drives busy with whole chunks.
pub const READ_MEMORY_BYTES: u64 = 128 << 20;
