//! Which arrays there are: on the drives of this machine, and as member files in directories.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ::target::array::{PeekError, member_files, on_drives, peek};
use anyhow::{Context, Result, bail};
use base::units::counted;
use base::{ByteSize, Timestamp};
use uuid::Uuid;

use super::Array;
use crate::Remark;

/// An array that was found.
#[derive(Clone, Debug)]
pub struct FoundArray {
    /// Its identity.
    pub uuid: Uuid,
    /// The name that it was given when it was created.
    pub name: String,
    /// The directory of its member files; None if its members are drives.
    pub directory: Option<PathBuf>,
    /// The members that were found.
    pub targets: Vec<PathBuf>,
    /// Number of members that it has if none is missing.
    pub members: usize,
    /// Size of all its members in bytes.
    pub capacity_bytes: u64,
    /// Parity chunks for each group of chunks.
    pub parity: u8,
    /// What is on it, or why it can't be opened.
    pub state: Result<FoundState, String>,
}

/// What is on an array that was found.
#[derive(Clone, Copy, Debug)]
pub struct FoundState {
    /// Members that are present.
    pub present: usize,
    /// Whether somebody is recording on it.
    pub recording: bool,
    /// Whether a ring has overwritten some of it. If not, it may become a ring all the same: whether it does is up to each recording.
    pub has_wrapped: bool,
    /// Takes of which something is left.
    pub takes: usize,
    /// Bytes of all segments.
    pub data_bytes: u64,
    /// Bytes of the segments in use.
    pub used_bytes: u64,
    /// Time of the newest packet; None if there is none.
    pub newest_packet: Option<Timestamp>,
}

/// Buffers for looking into one array.
const MEMORY: ByteSize = ByteSize(16 << 20);

/// All arrays on the drives of this machine, then those in `directories`: a directory of member files, or one that holds such
/// directories. What could not be looked at goes to `tell`.
///
/// # Errors
/// If the drives can't be listed, or one of the directories can't be read.
pub fn list(
    directories: &[PathBuf],
    tell: &mut dyn FnMut(Remark),
) -> crate::Result<Vec<FoundArray>> {
    Ok(find(directories, tell)?)
}

fn find(directories: &[PathBuf], tell: &mut dyn FnMut(Remark)) -> Result<Vec<FoundArray>> {
    let drives = on_drives()?;
    if let Some(first) = drives.unreadable.first() {
        let count = counted(drives.unreadable.len() as u64, "drive");
        let remedy = if first.needs_root { "; root can read it" } else { "" };
        let (path, reason) = (first.path.display(), &first.reason);
        tell(Remark::Warning(format!(
            "arrays may be missing from the list: {count} could not be read, the first being {path} ({reason}{remedy})"
        )));
    }
    let mut found = Vec::new();
    for array in drives.arrays {
        found.extend(look(array.members, None));
    }
    for directory in directories {
        if !directory.is_dir() {
            bail!(
                "{} is not a directory: name directories of member files, or one that holds such directories",
                directory.display()
            );
        }
        for directory in with_those_below(directory, tell)? {
            match member_files(&directory) {
                Ok(files) if files.is_empty() => {}
                Ok(files) => {
                    let array = look(files.clone(), Some(directory));
                    if array.is_none() {
                        files
                            .iter()
                            .find_map(|file| refused(file))
                            .into_iter()
                            .for_each(&mut *tell);
                    }
                    found.extend(array);
                }
                Err(error) => tell(Remark::Warning(error.to_string())),
            }
        }
    }
    Ok(found)
}

/// A directory and the directories in it, by name. Symbolic links are not followed.
fn with_those_below(directory: &Path, tell: &mut dyn FnMut(Remark)) -> Result<Vec<PathBuf>> {
    let failed = || format!("looking into {}", directory.display());
    let mut found = vec![directory.to_owned()];
    for entry in fs::read_dir(directory).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.push(entry.path()),
            Ok(_) => {}
            Err(reason) => tell(Remark::Warning(format!("{}: {reason}", entry.path().display()))),
        }
    }
    found[1..].sort();
    Ok(found)
}

/// That a member's file may not be read, if it may not.
fn refused(file: &Path) -> Option<Remark> {
    match peek(file) {
        Err(PeekError::Open { path, reason }) if reason.kind() == ErrorKind::PermissionDenied => {
            let path = path.display();
            Some(Remark::Warning(format!(
                "an array may be missing from the list: reading {path} was not permitted; run as root or its owner"
            )))
        }
        _ => None,
    }
}

/// The array that these targets are members of; None if they are no members of any.
fn look(targets: Vec<PathBuf>, directory: Option<PathBuf>) -> Option<FoundArray> {
    let opened = Array::options().degraded(true).memory(MEMORY).open_members(&targets);
    let (state, known) = match opened {
        Ok(mut array) => (describe(&mut array), Some(array)),
        Err(error) => (Err(format!("{error:#}")), None),
    };
    let superblock = match known {
        Some(array) => array.opened.image.superblock,
        None => targets.iter().find_map(|target| peek(target).ok())?,
    };
    Some(FoundArray {
        uuid: superblock.array,
        name: superblock.name,
        directory,
        targets,
        members: superblock.members.len(),
        capacity_bytes: superblock.members.iter().map(|member| member.capacity_bytes).sum(),
        parity: superblock.parity,
        state,
    })
}

fn describe(array: &mut Array) -> Result<FoundState, String> {
    let contents = array.contents().map_err(|error| format!("{error:#}"))?;
    let info = array.info();
    Ok(FoundState {
        present: info.members.iter().filter(|member| member.target.is_some()).count(),
        recording: info.recording,
        has_wrapped: contents.released.is_some(),
        takes: contents.takes.len(),
        data_bytes: info.members.iter().map(|member| member.data_bytes).sum(),
        used_bytes: info.members.iter().map(|member| member.used_bytes).sum(),
        newest_packet: contents.newest_packet(),
    })
}
