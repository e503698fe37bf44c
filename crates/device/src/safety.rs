//! Which targets may be written: none, until everything that speaks against it has been looked at.
//!
//! [`inspect`] gathers every reason not to write a target. [`authorize`] turns a target without one,
//! whose serial number the user has typed, into an [`Authorized`]: the only proof that something may
//! be destroyed, with an exclusive claim on the device in it.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use crate::cost::{Cost, cost};
pub use crate::refusal::Refusal;

use crate::claim::patiently;
use crate::content;
use crate::holders::{self, Holder, Use};
use crate::identity::{self, Drive, Kind};
use crate::mounts::Mounts;
use crate::overlap::{self, Shared};
use crate::refusal::erase_argument;
use crate::sysfs::{BlockDevice, DeviceNumber, Node, System};

/// What is known about writing a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SafetyVerdict {
    /// The target; None if it is not there or no drive at all.
    pub drive: Option<Drive>,
    /// Every reason not to write it. Empty: it may be written, once confirmed.
    pub refusals: Vec<Refusal>,
    /// What could not be looked at, though nothing depends on it alone: whatever is in use there makes
    /// the exclusive opening fail.
    pub unchecked: Vec<String>,
}

impl SafetyVerdict {
    /// Whether nothing speaks against writing it.
    pub fn allowed(&self) -> bool {
        self.refusals.is_empty()
    }
}

/// What a target is to be opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A new array (or any other destructive use) on a drive that holds nothing.
    Create,
    /// The same, even if it is a member of a Longtake array. Nothing else is overlooked.
    Replace,
    /// Recording into the Longtake array that is there. Erases nothing, so it wants no confirmation.
    Continue,
}

/// Proof that a target may be written, and the claim that keeps others off.
///
/// While it lives, the kernel refuses to mount the block device, to swap on it, to put RAID or device
/// mapper on it, and any other exclusive opening (also ours: open it again without `O_EXCL`, then
/// compare [`Authorized::number`] with what was opened).
#[derive(Debug)]
pub struct Authorized {
    path: PathBuf,
    drive: Option<Drive>,
    claim: Option<File>,
}

impl Authorized {
    /// The target as the user named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is; None for a file that doesn't exist yet.
    pub fn drive(&self) -> Option<&Drive> {
        self.drive.as_ref()
    }

    /// The block device's number; None for a file.
    pub fn number(&self) -> Option<DeviceNumber> {
        self.drive.as_ref()?.number
    }

    /// The exclusively opened device (for `/dev/ng*` the block device beside it), or the file, open for
    /// reading and writing; None for a file that doesn't exist yet.
    pub fn claim(&self) -> Option<&File> {
        self.claim.as_ref()
    }

    /// Whether an open file is the very device or file that was authorized.
    ///
    /// # Errors
    /// If the operating system can't tell what `file` is.
    pub fn covers(&self, file: &File) -> io::Result<bool> {
        let metadata = file.metadata()?;
        Ok(match &self.claim {
            Some(claim) => same(&claim.metadata()?, &metadata),
            None => metadata.is_file() && metadata.len() == 0,
        })
    }
}

/// Every reason not to write `path`. What can't be looked at is a reason too.
pub fn inspect(path: &Path) -> SafetyVerdict {
    inspect_in(&System::default(), path)
}

/// [`inspect`] in another system. The path is taken as it is, not below the system's root.
pub fn inspect_in(system: &System, path: &Path) -> SafetyVerdict {
    let refused =
        |refusal| SafetyVerdict { drive: None, refusals: vec![refusal], unchecked: Vec::new() };
    let owned = || path.to_owned();
    match system.resolve(path) {
        Ok(Node::Block(device) | Node::Generic(device)) => inspect_block(system, path, &device),
        Ok(Node::File(_)) => inspect_file(system, path),
        Ok(Node::Missing) => match may_be_created(system, path) {
            true => SafetyVerdict { drive: None, refusals: Vec::new(), unchecked: Vec::new() },
            false => refused(Refusal::NotThere { path: owned() }),
        },
        Ok(Node::Unknown(number)) => refused(Refusal::NotADrive {
            path: owned(),
            found: format!("block device {number}, which /sys doesn't know"),
        }),
        Ok(Node::Other(found)) => {
            refused(Refusal::NotADrive { path: owned(), found: found.to_owned() })
        }
        Err(error) => refused(unreadable(path, "looking at it", &error)),
    }
}

/// Proof that a new array may be made on `path`: nothing speaks against it, and for a block device
/// `confirmations` has its serial number (see [`Drive::confirmation`]). A file that isn't empty is refused
/// unless `confirmations` has its path.
///
/// # Errors
/// Every reason not to, a missing confirmation among them.
pub fn authorize(path: &Path, confirmations: &[String]) -> Result<Authorized, Vec<Refusal>> {
    authorize_for(path, confirmations, Purpose::Create)
}

/// [`authorize`] for a purpose of its own.
///
/// # Errors
/// As [`authorize`].
pub fn authorize_for(
    path: &Path,
    confirmations: &[String],
    purpose: Purpose,
) -> Result<Authorized, Vec<Refusal>> {
    authorize_in(&System::default(), path, confirmations, purpose)
}

/// [`authorize_for`] in another system.
///
/// # Errors
/// As [`authorize`].
pub fn authorize_in(
    system: &System,
    path: &Path,
    confirmations: &[String],
    purpose: Purpose,
) -> Result<Authorized, Vec<Refusal>> {
    let verdict = inspect_in(system, path);
    let mut refusals = for_purpose(path, verdict.refusals, purpose, confirmations);
    if let Some(drive) = &verdict.drive
        && let Some(word) = drive.confirmation()
        && purpose != Purpose::Continue
        && !confirmations.contains(&word)
    {
        refusals.push(Refusal::NotConfirmed {
            path: path.to_owned(),
            argument: erase_argument(&word),
            model: drive.model.clone(),
            size_bytes: drive.size_bytes,
        });
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let claim = match &verdict.drive {
        None => None,
        Some(drive) => Some(claim(path, drive, purpose, confirmations)?),
    };
    Ok(Authorized { path: path.to_owned(), drive: verdict.drive, claim })
}

/// Opens it for good, then looks once more: what was inspected by name may have been replaced, or
/// written to, in between. From here on the kernel keeps others off a block device.
fn claim(
    path: &Path,
    drive: &Drive,
    purpose: Purpose,
    confirmations: &[String],
) -> Result<File, Vec<Refusal>> {
    let node = drive.device.as_deref().unwrap_or(path);
    let exclusive = if drive.device.is_some() { libc::O_EXCL } else { 0 };
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(exclusive | libc::O_CLOEXEC | libc::O_NONBLOCK);
    let opened = patiently(|| options.open(node));
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            let (path, device) = (path.to_owned(), node.to_owned());
            return Err(vec![Refusal::InUse { path, device, processes: Vec::new() }]);
        }
        Err(error) => return Err(vec![unreadable(path, "opening it for writing", &error)]),
    };
    let changed = || vec![Refusal::Changed { path: path.to_owned() }];
    let metadata = file.metadata().map_err(|error| vec![unreadable(path, "fstat", &error)])?;
    let number =
        metadata.file_type().is_block_device().then(|| DeviceNumber::from_raw(metadata.rdev()));
    let asked = fs::metadata(path).map_err(|_| changed())?;
    let generic = asked.file_type().is_char_device();
    if number != drive.number || (!generic && !same(&asked, &metadata)) {
        return Err(changed());
    }
    let found = content::refusals(path, &file, drive);
    let refusals = for_purpose(path, found, purpose, confirmations);
    if refusals.is_empty() { Ok(file) } else { Err(refusals) }
}

/// The same device or the same file.
fn same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    match (one.file_type().is_block_device(), other.file_type().is_block_device()) {
        (true, true) => one.rdev() == other.rdev(),
        (false, false) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// The reasons that count for a purpose. A file's unknown contents are given up by typing its path.
fn for_purpose(
    path: &Path,
    refusals: Vec<Refusal>,
    purpose: Purpose,
    confirmations: &[String],
) -> Vec<Refusal> {
    let given_up = confirmations.iter().any(|word| Path::new(word) == path);
    let is_array = |refusal: &Refusal| matches!(refusal, Refusal::LongtakeArray { .. });
    let had_array = refusals.iter().any(is_array);
    let mut left = refusals;
    left.retain(|refusal| !(given_up && matches!(refusal, Refusal::ForeignContent { .. })));
    if purpose != Purpose::Create {
        left.retain(|refusal| !is_array(refusal));
    }
    if purpose == Purpose::Continue && !had_array && left.is_empty() {
        left.push(Refusal::NoArray { path: path.to_owned() });
    }
    left
}

fn inspect_block(system: &System, path: &Path, device: &BlockDevice) -> SafetyVerdict {
    let drive = identity::of_block(system, path, device);
    let shared = overlap::devices(system, device);
    let mut refusals = Vec::new();
    if drive.read_only {
        refusals.push(Refusal::ReadOnly { path: path.to_owned() });
    }
    let mounts = Mounts::read(system);
    // A namespace starts as a copy of another one: the same mount in many is told once.
    let mut told = HashSet::new();
    for mount in &mounts.all {
        let on = shared.iter().find(|shared| shared.device.number == mount.number);
        if let Some(Shared { device, .. }) = on
            && told.insert((mount.number, &mount.point))
        {
            refusals.push(Refusal::Mounted {
                path: path.to_owned(),
                device: system.node(&device.name),
                mount_point: mount.point.clone(),
                filesystem: mount.filesystem.clone(),
                process: mount.process,
            });
        }
    }
    let beside = holders::beside_loop(system, device.whole().as_ref().unwrap_or(device));
    refusals.extend(drive.holders.iter().cloned().chain(beside).map(|held| by(path, held)));
    if !drive.partitions.is_empty() {
        let partitions = drive.partitions.iter().map(|partition| partition.path.clone()).collect();
        refusals.push(Refusal::Partitioned { path: path.to_owned(), partitions });
    }
    // Whoever was named above also keeps us from opening it exclusively; once is enough.
    let named = refusals.iter().any(|refusal| {
        matches!(refusal, Refusal::Mounted { .. } | Refusal::Swap { .. } | Refusal::Held { .. })
    });
    for shared in shared.iter().filter(|shared| !shared.around) {
        let exclusive = || open(system, &shared.device, libc::O_EXCL);
        match if named { exclusive() } else { patiently(exclusive) } {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && named => {}
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                let node = system.node(&shared.device.name);
                let processes = holders::openers(system, &[node.clone(), path.to_owned()]);
                let path = path.to_owned();
                refusals.push(Refusal::InUse { path, device: node, processes });
            }
            Err(error) => {
                let attempted = format!("opening {}", system.node(&shared.device.name).display());
                refusals.push(unreadable(path, &attempted, &error));
            }
        }
    }
    // The one that couldn't be opened at all has been told about above.
    if let Ok(file) = open(system, device, 0) {
        refusals.extend(content::refusals(path, &file, &drive));
    }
    SafetyVerdict { drive: Some(drive), refusals, unchecked: mounts.unchecked }
}

fn inspect_file(system: &System, path: &Path) -> SafetyVerdict {
    let (drive, opened) = match (identity::describe_in(system, path), File::open(path)) {
        (Ok(drive), opened) if drive.kind == Kind::File => (drive, opened),
        _ => {
            let refusals = vec![Refusal::Changed { path: path.to_owned() }];
            return SafetyVerdict { drive: None, refusals, unchecked: Vec::new() };
        }
    };
    let mut refusals = Vec::new();
    if drive.read_only {
        refusals.push(Refusal::ReadOnly { path: path.to_owned() });
    }
    refusals.extend(drive.holders.iter().cloned().map(|holder| by(path, holder)));
    match opened {
        Ok(file) => refusals.extend(content::refusals(path, &file, &drive)),
        Err(error) => refusals.push(unreadable(path, "opening it", &error)),
    }
    SafetyVerdict { drive: Some(drive), refusals, unchecked: Vec::new() }
}

fn by(path: &Path, holder: Holder) -> Refusal {
    match holder.how {
        Use::Swap => Refusal::Swap { path: path.to_owned(), device: holder.device },
        _ => Refusal::Held { path: path.to_owned(), holder },
    }
}

/// Opens a device's own node for reading, and makes sure that it is that device.
fn open(system: &System, device: &BlockDevice, flags: i32) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags | libc::O_CLOEXEC | libc::O_NONBLOCK)
        .open(system.node(&device.name))?;
    let metadata = file.metadata()?;
    let number = DeviceNumber::from_raw(metadata.rdev());
    if metadata.file_type().is_block_device() && number == device.number {
        Ok(file)
    } else {
        Err(io::Error::other(format!("the node there is not device {}", device.number)))
    }
}

/// A new file may be made in a folder that exists, but never among the device nodes: there it is a
/// misspelt drive, and would fill the memory.
fn may_be_created(system: &System, path: &Path) -> bool {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return false,
    };
    // A dangling symbolic link is somebody's mistake too.
    let dangling = fs::symlink_metadata(path).is_ok();
    let Ok(parent) = fs::canonicalize(parent) else { return false };
    // Another file system may be mounted there, such as /dev/shm.
    let of = |folder: &Path| fs::metadata(folder).ok().map(|metadata| metadata.dev());
    let among_nodes = parent.starts_with(&system.dev) && of(&parent) == of(&system.dev);
    !dangling && parent.is_dir() && !among_nodes
}

fn unreadable(path: &Path, attempted: &str, error: &io::Error) -> Refusal {
    // SAFETY: geteuid takes nothing, touches no memory and can't fail.
    let root = unsafe { libc::geteuid() } == 0;
    let reason = reason(error, root);
    Refusal::Unreadable { path: path.to_owned(), attempted: attempted.to_owned(), reason }
}

/// An error in words; where it helps, with the advice to run as root.
fn reason(error: &io::Error, root: bool) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied if !root => format!("{error}; run as root"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
#[allow(dead_code, reason = "the tests of tests/all use the rest")]
#[path = "../tests/safety_rig/mod.rs"]
pub(crate) mod safety_rig;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::safety_rig::{Loop, MIB, folder, image};
    use super::*;
    use crate::signature::{Content, Signature};

    fn signature(kind: Content) -> Signature {
        Signature { kind, name: "x".into(), offset: 0 }
    }

    #[test]
    fn a_verdict_allows_writing_only_without_any_refusal() {
        let path = PathBuf::from("x");
        let mut verdict =
            SafetyVerdict { drive: None, refusals: Vec::new(), unchecked: Vec::new() };
        assert!(verdict.allowed());
        verdict.refusals.push(Refusal::ReadOnly { path });
        assert!(!verdict.allowed());
    }

    #[test]
    fn each_purpose_overlooks_an_array_or_typed_contents_and_nothing_else() {
        let path = Path::new("/x/member");
        let array = || Refusal::LongtakeArray {
            path: path.into(),
            signature: signature(Content::LongtakeArray),
        };
        let foreign = || Refusal::ForeignContent { path: path.into(), offset: 3 };
        let ext4 =
            || Refusal::Signature { path: path.into(), signature: signature(Content::FileSystem) };
        let none = || Refusal::NoArray { path: path.into() };
        let left = |purpose, refusals: Vec<Refusal>, word: &str| {
            for_purpose(path, refusals, purpose, &["other".to_owned(), word.to_owned()])
        };
        use Purpose::{Continue, Create, Replace};
        for purpose in [Create, Replace, Continue] {
            assert_eq!(left(purpose, vec![array(), ext4()], "/x/member").last(), Some(&ext4()));
            assert_eq!(left(purpose, vec![ext4()], "/x/member"), [ext4()], "{purpose:?}");
            assert_eq!(left(purpose, vec![foreign()], "/x/member0"), [foreign()], "{purpose:?}");
        }
        assert_eq!(left(Create, vec![array()], "/x/member"), [array()]);
        assert_eq!(left(Replace, vec![array()], ""), []);
        assert_eq!(left(Continue, vec![array()], ""), []);
        assert_eq!(left(Create, vec![foreign()], "/x/member"), []);
        assert_eq!(left(Create, Vec::new(), ""), []);
        assert_eq!(left(Replace, Vec::new(), ""), []);
        // Nothing to record into.
        assert_eq!(left(Continue, Vec::new(), ""), [none()]);
    }

    #[test]
    fn a_device_that_is_exchanged_after_it_was_inspected_is_not_claimed() {
        let (device, other) = (Loop::new(8 * MIB), Loop::new(8 * MIB));
        let folder = folder();
        let link = folder.path().join("link");
        symlink(&device.path, &link).unwrap();
        let drive = inspect(&link).drive.unwrap();
        let claimed = |drive: &Drive| claim(&link, drive, Purpose::Create, &[]);
        assert!(claimed(&drive).is_ok());
        // The node that was inspected has become another device.
        let renumbered =
            Drive { number: Some(DeviceNumber { major: 7, minor: 9999 }), ..drive.clone() };
        let changed = [Refusal::Changed { path: link.clone() }];
        assert_eq!(claimed(&renumbered).unwrap_err(), changed);
        // The link leads to another device, or to a file.
        let file = image(folder.path(), "file", 8 * MIB);
        for target in [&other.path, &file] {
            fs::remove_file(&link).unwrap();
            symlink(target, &link).unwrap();
            assert_eq!(claimed(&drive).unwrap_err(), changed, "{target:?}");
        }
        fs::remove_file(&link).unwrap();
        assert_eq!(claimed(&drive).unwrap_err(), changed, "it is gone");
    }

    #[test]
    fn a_file_that_is_exchanged_after_it_was_inspected_is_not_claimed() {
        let folder = folder();
        let path = image(folder.path(), "member", MIB);
        let drive = inspect(&path).drive.unwrap();
        let device = Loop::new(8 * MIB);
        assert!(claim(&path, &drive, Purpose::Create, &[]).is_ok());
        fs::remove_file(&path).unwrap();
        symlink(&device.path, &path).unwrap();
        let changed = [Refusal::Changed { path: path.clone() }];
        assert_eq!(claim(&path, &drive, Purpose::Create, &[]).unwrap_err(), changed);
        let verdict = inspect_file(&System::default(), &path);
        assert_eq!((verdict.drive, verdict.refusals), (None, changed.to_vec()));
    }

    #[test]
    fn a_device_that_is_taken_after_it_was_inspected_is_in_use() {
        let device = Loop::new(8 * MIB);
        let drive = inspect(&device.path).drive.unwrap();
        let _first = claim(&device.path, &drive, Purpose::Create, &[]).unwrap();
        let refusals = claim(&device.path, &drive, Purpose::Create, &[]).unwrap_err();
        assert!(matches!(&refusals[..], [Refusal::InUse { .. }]), "{refusals:?}");
    }

    #[test]
    fn only_a_user_that_is_not_root_is_advised_to_become_root() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let other = io::Error::from(io::ErrorKind::NotFound);
        assert_eq!(reason(&denied, false), format!("{denied}; run as root"));
        assert_eq!(reason(&denied, true), denied.to_string());
        assert_eq!(reason(&other, false), other.to_string());
        // SAFETY: geteuid takes nothing, touches no memory and can't fail.
        let root = unsafe { libc::geteuid() } == 0;
        let Refusal::Unreadable { reason, .. } = unreadable(Path::new("x"), "it", &denied) else {
            panic!("it can't be read")
        };
        assert_eq!(reason.ends_with("run as root"), !root);
    }
}
