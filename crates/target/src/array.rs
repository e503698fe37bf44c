//! The names of arrays: a directory of member files, drives with commas between them, or the name or UUID that drives of this
//! machine carry in their superblocks.

mod error;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use device::identity::IdentityError;
use device::target;
use format::layout::SUPERBLOCK_BYTES;
use format::{Damage, Superblock};
use nix::errno::Errno;
use uuid::Uuid;

use crate::name::SimTarget;

pub use error::{ArrayNameError, MemberFilesError, Missing, PeekError};

/// The parts of an array's name, which may be targets with commas between them.
pub fn named(array: &str) -> Vec<String> {
    array.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The targets that an array's name stands for.
///
/// # Errors
/// If nothing of that name is found; the message lists the forms a name may have.
pub fn resolve(array: &str) -> Result<Vec<PathBuf>, ArrayNameError> {
    let failed = |problem| Err(ArrayNameError::NotFound { array: array.to_owned(), problem });
    if SimTarget::all(&named(array))?.is_some() {
        return failed(Missing::Simulated);
    }
    let path = Path::new(array);
    if path.is_dir() {
        let members = member_files(path)?;
        if members.is_empty() {
            return failed(Missing::MemberFiles);
        }
        return Ok(members);
    }
    let targets: Vec<PathBuf> = named(array).into_iter().map(PathBuf::from).collect();
    if targets.len() > 1 || path.exists() {
        for target in &targets {
            if !target.exists() {
                return failed(Missing::Target(target.clone()));
            }
        }
        return Ok(targets);
    }
    if array.contains('/') {
        return failed(Missing::Path);
    }
    by_name(array)
}

/// The members of the array of this name or UUID among the drives of this machine.
fn by_name(array: &str) -> Result<Vec<PathBuf>, ArrayNameError> {
    let failed = |problem| Err(ArrayNameError::NotFound { array: array.to_owned(), problem });
    let arrays = on_drives()?.arrays;
    let is_meant =
        |found: &&DriveArray| found.name == array || found.uuid.to_string().starts_with(array);
    let mut meant = arrays.iter().filter(is_meant);
    match (meant.next(), meant.next()) {
        (Some(found), None) => Ok(found.members.clone()),
        (Some(_), Some(_)) => failed(Missing::Unique),
        (None, _) => {
            let mut names: Vec<String> = arrays.into_iter().map(|found| found.name).collect();
            names.sort();
            names.dedup();
            failed(Missing::Name { names })
        }
    }
}

/// An array whose members are drives of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveArray {
    /// Its identity.
    pub uuid: Uuid,
    /// The name that it was given when it was created.
    pub name: String,
    /// The drives that are its members, in the array's order. Members may be missing.
    pub members: Vec<PathBuf>,
}

/// The arrays on the drives of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnDrives {
    /// The arrays, by UUID.
    pub arrays: Vec<DriveArray>,
    /// Drives that could not be read although others may be able to: they may be members too.
    pub unreadable: Vec<UnreadableDrive>,
}

/// A drive whose superblock could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableDrive {
    /// Path of the drive.
    pub path: PathBuf,
    /// The reason in words.
    pub reason: String,
    /// Whether the user may not read it, but root may.
    pub needs_root: bool,
}

/// Reasons for which a drive can't be opened by anybody here: it has no node, no medium or no device behind its node, or a container
/// withholds it even from root. Such a drive can't be a member that another user would find.
const CLOSED_TO_ALL: [Errno; 5] =
    [Errno::EPERM, Errno::ENOENT, Errno::ENXIO, Errno::ENODEV, Errno::ENOMEDIUM];

impl UnreadableDrive {
    /// A drive that could not be read for this reason; None if nobody can open it.
    fn of(path: PathBuf, error: &PeekError) -> Option<Self> {
        let (reason, code) = match error {
            PeekError::Open { reason, .. } => {
                (reason.to_string(), reason.raw_os_error().map(Errno::from_raw))
            }
            other => (other.to_string(), None),
        };
        let is_closed = code.is_some_and(|code| CLOSED_TO_ALL.contains(&code));
        (!is_closed).then_some(Self { path, reason, needs_root: code == Some(Errno::EACCES) })
    }
}

/// Looks for arrays in the superblocks of all drives of this machine.
///
/// # Errors
/// If the drives can't be listed. Those that can't be opened are in the result.
pub fn on_drives() -> Result<OnDrives, IdentityError> {
    type Joined = (bool, u64);
    type Members = BTreeMap<u16, (Joined, PathBuf)>;
    let mut found: BTreeMap<Uuid, (String, Members)> = BTreeMap::new();
    let mut unreadable = Vec::new();
    for drive in device::identity::drives()? {
        let Some(path) = drive.device else { continue };
        let superblock = match peek(&path) {
            Ok(superblock) => superblock,
            Err(PeekError::Damage(_)) => continue,
            Err(error) => {
                unreadable.extend(UnreadableDrive::of(path, &error));
                continue;
            }
        };
        // Of two drives that say they are the same member the one that took the other's place is it.
        let own = &superblock.members[usize::from(superblock.member)];
        let joined = (superblock.generation > 0, own.joined_ns);
        let (_, members) =
            found.entry(superblock.array).or_insert((superblock.name, BTreeMap::new()));
        match members.entry(superblock.member) {
            Entry::Vacant(place) => drop(place.insert((joined, path))),
            Entry::Occupied(mut place) if place.get().0 < joined => {
                place.insert((joined, path));
            }
            Entry::Occupied(_) => {}
        }
    }
    let array = |(uuid, (name, members)): (Uuid, (String, Members))| DriveArray {
        uuid,
        name,
        members: members.into_values().map(|(_, path)| path).collect(),
    };
    Ok(OnDrives { arrays: found.into_iter().map(array).collect(), unreadable })
}

/// Reads the first superblock of a target, without direct I/O, for a look before opening it.
///
/// # Errors
/// If it can't be read, or there is none.
pub fn peek(path: &Path) -> Result<Superblock, PeekError> {
    let mut bytes = vec![0; SUPERBLOCK_BYTES as usize];
    let node = target::node_to_read(path).map_err(PeekError::Target)?;
    let failed = |reason| PeekError::Open { path: node.clone(), reason };
    let mut file = File::open(&node).map_err(failed)?;
    file.read_exact(&mut bytes).map_err(|_| PeekError::Damage(Damage::Short))?;
    Superblock::read(&bytes, 0).map_err(PeekError::Damage)
}

/// The member files of a directory, by number.
///
/// # Errors
/// If the directory can't be read, or a number is missing.
pub fn member_files(directory: &Path) -> Result<Vec<PathBuf>, MemberFilesError> {
    let mut numbered = Vec::new();
    let directory = directory.to_owned();
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(reason) if reason.kind() == ErrorKind::PermissionDenied => {
            return Err(MemberFilesError::NotPermitted { directory });
        }
        Err(reason) => return Err(MemberFilesError::Unreadable { directory, reason }),
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(reason) => return Err(MemberFilesError::Entry { directory, reason }),
        };
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("member"));
        if let Some(number) = number.and_then(|n| n.parse::<u16>().ok()) {
            numbered.push((number, entry.path()));
        }
    }
    numbered.sort();
    Ok(numbered.into_iter().map(|(_, path)| path).collect())
}
