//! From a path to a drive that a bank can use: a block device, an NVMe generic device or a preallocated
//! file, opened for direct I/O, locked against a second recorder, its geometry read.

use std::ffi::CString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Geometry;

use crate::block::{BlockDevice, TransferLimits};
use crate::claim::{self, Claim, patiently};
use crate::passthrough::Namespace;
pub use crate::preallocate::{
    CreateFileError, FILE_MODE_DEFAULT, create_file, create_file_with_mode,
};
use crate::shell::quoted;
use crate::sysfs::{self, DeviceNumber, Node, System};
use crate::warning::Warning;

/// Longest read or write in bytes. Drives take less at once (`max_sectors_kb`); the kernel splits.
const TRANSFER_BYTES_MAX: u32 = 16 << 20;

/// Commands a drive until the bank sets its own limit.
const DEPTH_MAX_DEFAULT: u32 = 32;

/// Unit of direct I/O on files where the kernel doesn't tell (before Linux 6.1): it suits every
/// file system on every drive.
const FILE_BLOCK_BYTES_DEFAULT: u32 = 4096;

/// What a target is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading, also while somebody records on it.
    Read,
    /// Reading and writing. Nobody else can open it for writing through this crate meanwhile.
    Write {
        /// Also have the kernel refuse a block device that is mounted or otherwise held (`O_EXCL`),
        /// and refuse to mount it meanwhile.
        exclusive: bool,
    },
}

/// What is behind a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A block device, or a partition.
    BlockDevice,
    /// An NVMe generic device (`/dev/ng0n1`): its namespace, past the block layer.
    Passthrough,
    /// A regular file.
    File,
}

/// An open drive, ready for a bank. Who opened it for writing has it to himself until the last of its
/// clones, and of the banks that were made of them, is gone.
#[derive(Debug)]
pub struct OpenTarget {
    /// The open descriptor.
    pub file: File,
    /// Block device, generic device or file.
    pub kind: TargetKind,
    /// What a bank will show of it.
    pub geometry: Geometry,
    /// What the drive writes without reading first, in bytes, as far as it tells: at least
    /// `geometry.block_bytes`.
    pub physical_block_bytes: u32,
    /// Whether its completions can be polled for.
    pub polls: bool,
    /// What passthrough commands are made for.
    pub(crate) namespace: Option<Namespace>,
    /// What the block layer hands on whole; None for a file.
    pub(crate) unsplit: Option<TransferLimits>,
    claim: Arc<Claim>,
}

impl OpenTarget {
    /// The same open target for one more bank of this process, such as one for each thread.
    ///
    /// # Errors
    /// If the process may have no more open files.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            file: self.file.try_clone()?,
            kind: self.kind,
            geometry: self.geometry.clone(),
            physical_block_bytes: self.physical_block_bytes,
            polls: self.polls,
            namespace: self.namespace,
            unsplit: self.unsplit,
            claim: Arc::clone(&self.claim),
        })
    }

    /// The open file that stands for the target where it is claimed or compared with another: for an
    /// NVMe generic device the block device beside it, else the target itself.
    pub fn claimed(&self) -> &File {
        self.claim.file()
    }
}

/// Why a target can't be opened.
#[derive(Debug)]
pub enum TargetError {
    /// There is nothing at the path.
    NotFound {
        /// The target.
        path: PathBuf,
    },
    /// The user may not.
    NotPermitted {
        /// The target.
        path: PathBuf,
        /// Whether it was opened for writing.
        writing: bool,
    },
    /// Neither a block device nor a regular file.
    WrongKind {
        /// The target.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The kernel says that something holds the block device.
    Busy {
        /// The target.
        path: PathBuf,
    },
    /// Another process has it open for writing.
    BeingRecorded {
        /// The target.
        path: PathBuf,
    },
    /// An NVMe generic device that can't be used as it is.
    Passthrough {
        /// The target.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// There is no room for even one block.
    Empty {
        /// The target.
        path: PathBuf,
    },
    /// Anything else.
    Os {
        /// What was tried.
        attempted: &'static str,
        /// The target.
        path: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { path } => write!(
                f,
                "{}: there is no such device or file; `longtake drives` lists the drives",
                path.display()
            ),
            Self::NotPermitted { path, writing } => write!(
                f,
                "opening {} for {} was not permitted; run as root, or join the group that owns it",
                path.display(),
                if *writing { "writing" } else { "reading" }
            ),
            Self::WrongKind { path, found } => write!(
                f,
                "{} is {found}; give a block device (such as /dev/nvme0n1), an NVMe generic device \
                 (/dev/ng0n1) or a file",
                path.display()
            ),
            Self::Busy { path } => write!(
                f,
                "{} is in use: mounted, or part of a RAID, LVM or other device; `lsblk {}` shows \
                 by what",
                path.display(),
                quoted(&path.to_string_lossy())
            ),
            Self::BeingRecorded { path } => write!(
                f,
                "{} is being recorded by another process; wait until it has stopped, or choose \
                 another drive",
                path.display()
            ),
            Self::Passthrough { path, reason } => {
                write!(f, "using {} for NVMe passthrough: {reason}", path.display())
            }
            Self::Empty { path } => write!(
                f,
                "{} has no room for even one block; give a larger device or file",
                path.display()
            ),
            Self::Os { attempted, path, reason } => {
                write!(f, "{attempted} {} failed: {reason}", path.display())
            }
        }
    }
}

impl std::error::Error for TargetError {}

/// Opens a block device, an NVMe generic device or a file. It stays as it is until a bank writes to it.
///
/// # Errors
/// [`TargetError`], before anything was changed.
pub fn open(path: &Path, access: Access) -> Result<(OpenTarget, Vec<Warning>), TargetError> {
    let mut warnings = Vec::new();
    let target = match look(path)? {
        Kind::Block => open_block_device(path, access)?,
        Kind::Generic(beside) => open_generic(path, &beside, access)?,
        Kind::File => open_file(path, access, &mut warnings)?,
    };
    if target.geometry.capacity_bytes == 0 {
        return Err(TargetError::Empty { path: path.to_owned() });
    }
    Ok((target, warnings))
}

/// Whether some process has the target open for writing through this crate.
///
/// # Errors
/// [`TargetError`] if it can't be opened for reading.
pub fn is_locked(path: &Path) -> Result<bool, TargetError> {
    let node = node_to_read(path)?;
    let file = File::open(&node).map_err(|reason| open_error(path, false, reason))?;
    claim::is_locked(&file).map_err(|reason| os(path, "locking", reason))
}

/// What ordinary reads of a target must name: for an NVMe generic device, which takes commands alone,
/// the block device beside it, else the target itself.
///
/// # Errors
/// [`TargetError`] if it is no target.
pub fn node_to_read(path: &Path) -> Result<PathBuf, TargetError> {
    Ok(match look(path)? {
        Kind::Generic(beside) => System::default().node(&beside.name),
        Kind::Block | Kind::File => path.to_owned(),
    })
}

/// What is behind a path.
///
/// # Errors
/// [`TargetError`] if it is no target.
pub fn kind(path: &Path) -> Result<TargetKind, TargetError> {
    Ok(match look(path)? {
        Kind::Block => TargetKind::BlockDevice,
        Kind::Generic(_) => TargetKind::Passthrough,
        Kind::File => TargetKind::File,
    })
}

/// What a path leads to.
enum Kind {
    Block,
    /// With the block device of the same namespace.
    Generic(sysfs::BlockDevice),
    File,
}

fn look(path: &Path) -> Result<Kind, TargetError> {
    let node = System::default().resolve(path).map_err(|reason| open_error(path, false, reason))?;
    let found = match node {
        // A container may lack `/sys`: the device itself tells enough.
        Node::Block(_) | Node::Unknown(_) => return Ok(Kind::Block),
        Node::Generic(beside) => return Ok(Kind::Generic(beside)),
        Node::File(_) => return Ok(Kind::File),
        Node::Missing => return Err(TargetError::NotFound { path: path.to_owned() }),
        Node::Other(found) => found,
    };
    Err(TargetError::WrongKind { path: path.to_owned(), found })
}

fn open_block_device(path: &Path, access: Access) -> Result<OpenTarget, TargetError> {
    let file = patiently(|| block_options(access).open(path))
        .map_err(|reason| open_error(path, access != Access::Read, reason))?;
    if !BlockDevice::is(&file).map_err(|reason| os(path, "looking at", reason))? {
        return Err(changed(path));
    }
    let claim = file.try_clone().map_err(|reason| os(path, "duplicating", reason))?;
    let claim = claimed(path, claim, access, false)?;
    let device =
        BlockDevice::of(&file).map_err(|reason| os(path, "asking for the size of", reason))?;
    let mut geometry = geometry(path, device.capacity_bytes, device.logical_block_bytes, access);
    // A discarded block reads as zeros only if the drive likes, and the kernel has stopped telling
    // whether it does (`discard_zeroes_data` is 0 since Linux 4.12).
    geometry.trim_unit_bytes = device.discard_unit_bytes;
    Ok(OpenTarget {
        file,
        kind: TargetKind::BlockDevice,
        geometry,
        physical_block_bytes: device.physical_block_bytes,
        polls: device.polls,
        namespace: None,
        unsplit: Some(device.unsplit),
        claim,
    })
}

/// Commands go to the generic device. The block device beside it carries the claim, because whoever
/// else may want the namespace (a mount, another recorder) meets us there.
fn open_generic(
    path: &Path,
    beside: &sysfs::BlockDevice,
    access: Access,
) -> Result<OpenTarget, TargetError> {
    let writing = access != Access::Read;
    let node = System::default().node(&beside.name);
    let block = patiently(|| block_options(access).open(&node))
        .map_err(|reason| open_error(&node, writing, reason))?;
    let metadata = block.metadata().map_err(|reason| os(&node, "looking at", reason))?;
    if !metadata.file_type().is_block_device()
        || DeviceNumber::from_raw(metadata.rdev()) != beside.number
    {
        return Err(changed(&node));
    }
    let claim = claimed(path, block, access, true)?;
    let file = OpenOptions::new()
        .read(true)
        .write(writing)
        .open(path)
        .map_err(|reason| open_error(path, writing, reason))?;
    let passthrough = |reason: String| TargetError::Passthrough { path: path.to_owned(), reason };
    let device = BlockDevice::of(claim.file())
        .map_err(|reason| os(&node, "asking for the size of", reason))?;
    let namespace =
        Namespace::of(&file, &device).map_err(|error| passthrough(error.to_string()))?;
    if (namespace.block_bytes(), namespace.capacity_bytes())
        != (device.logical_block_bytes, device.capacity_bytes)
    {
        return Err(passthrough(format!(
            "it has {} bytes in blocks of {}, but {} has {} in blocks of {}; name that instead",
            namespace.capacity_bytes(),
            namespace.block_bytes(),
            node.display(),
            device.capacity_bytes,
            device.logical_block_bytes
        )));
    }
    let mut geometry = geometry(path, device.capacity_bytes, device.logical_block_bytes, access);
    // What a deallocated block reads as is the drive's choice, and so is whether it deallocates.
    geometry.trim_unit_bytes = namespace.trim_unit_bytes();
    Ok(OpenTarget {
        file,
        kind: TargetKind::Passthrough,
        geometry,
        physical_block_bytes: device.physical_block_bytes,
        polls: device.polls,
        namespace: Some(namespace),
        unsplit: Some(device.unsplit),
        claim,
    })
}

fn open_file(
    path: &Path,
    access: Access,
    warnings: &mut Vec<Warning>,
) -> Result<OpenTarget, TargetError> {
    let writing = access != Access::Read;
    let file = open_direct(path, writing, warnings)?;
    let metadata = file.metadata().map_err(|reason| os(path, "looking at", reason))?;
    if !metadata.is_file() {
        return Err(changed(path));
    }
    let claim = file.try_clone().map_err(|reason| os(path, "duplicating", reason))?;
    let claim = claimed(path, claim, access, false)?;
    let alignment = direct_io_alignment(&file).map_err(|reason| os(path, "looking at", reason))?;
    let block = alignment.unwrap_or(FILE_BLOCK_BYTES_DEFAULT);
    let mut geometry = geometry(path, metadata.len(), block, access);
    // A hole reads as zeros.
    geometry.trim_unit_bytes =
        if writing { punch_unit(&file, metadata.len(), block) } else { None };
    geometry.trim_reads_zeros = geometry.trim_unit_bytes.is_some();
    Ok(OpenTarget {
        file,
        kind: TargetKind::File,
        geometry,
        physical_block_bytes: block.max(FILE_BLOCK_BYTES_DEFAULT),
        polls: false,
        namespace: None,
        unsplit: None,
        claim,
    })
}

fn geometry(path: &Path, capacity_bytes: u64, block_bytes: u32, access: Access) -> Geometry {
    Geometry {
        name: path.display().to_string(),
        capacity_bytes: capacity_bytes / u64::from(block_bytes) * u64::from(block_bytes),
        block_bytes,
        transfer_max_bytes: TRANSFER_BYTES_MAX,
        depth_max: DEPTH_MAX_DEFAULT,
        trim_unit_bytes: None,
        trim_reads_zeros: false,
        writable: access != Access::Read,
    }
}

fn claimed(
    path: &Path,
    file: File,
    access: Access,
    bypassed: bool,
) -> Result<Arc<Claim>, TargetError> {
    if access == Access::Read {
        return Ok(Arc::new(Claim::shared(file)));
    }
    let claim = Claim::exclusive(file, bypassed).map_err(|reason| match reason.kind() {
        io::ErrorKind::WouldBlock => TargetError::BeingRecorded { path: path.to_owned() },
        _ => os(path, "locking", reason),
    });
    claim.map(Arc::new)
}

fn block_options(access: Access) -> OpenOptions {
    // Without O_CREAT, O_EXCL is for block devices: fail if something holds it (open(2)).
    let exclusive = if access == (Access::Write { exclusive: true }) { libc::O_EXCL } else { 0 };
    let mut options = OpenOptions::new();
    options.read(true).write(access != Access::Read).custom_flags(libc::O_DIRECT | exclusive);
    options
}

fn open_direct(
    path: &Path,
    writing: bool,
    warnings: &mut Vec<Warning>,
) -> Result<File, TargetError> {
    let open =
        |direct| OpenOptions::new().read(true).write(writing).custom_flags(direct).open(path);
    let mut warn = |reason: &str| {
        warnings.push(Warning::NoDirectIo { path: path.to_owned(), reason: reason.to_owned() });
    };
    match open(libc::O_DIRECT) {
        Ok(file) => {
            if lies_in_memory(&file) {
                warn("its file system lies in memory");
            }
            Ok(file)
        }
        Err(reason) if reason.raw_os_error() == Some(libc::EINVAL) => {
            let file = open(0).map_err(|reason| open_error(path, writing, reason))?;
            warn("its file system can't do direct I/O");
            Ok(file)
        }
        Err(reason) => Err(open_error(path, writing, reason)),
    }
}

/// The path has come to mean something else since it was looked at.
fn changed(path: &Path) -> TargetError {
    TargetError::WrongKind { path: path.to_owned(), found: "exchanged while it was opened" }
}

fn os(path: &Path, attempted: &'static str, reason: io::Error) -> TargetError {
    TargetError::Os { attempted, path: path.to_owned(), reason }
}

fn open_error(path: &Path, writing: bool, reason: io::Error) -> TargetError {
    let path = path.to_owned();
    match reason.raw_os_error() {
        Some(libc::ENOENT) => TargetError::NotFound { path },
        Some(libc::EACCES | libc::EPERM) => TargetError::NotPermitted { path, writing },
        Some(libc::EBUSY) => TargetError::Busy { path },
        _ => TargetError::Os {
            attempted: if writing { "opening for writing" } else { "opening" },
            path,
            reason,
        },
    }
}

/// tmpfs takes O_DIRECT since Linux 6.6 and ignores it.
fn lies_in_memory(file: &File) -> bool {
    /// `RAMFS_MAGIC` of `linux/magic.h`.
    const RAMFS_MAGIC: i64 = 0x8584_58f6;
    // SAFETY: all-zero bytes are a valid statfs, which the call fills.
    let mut status: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a statfs of our own.
    if unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut status) } != 0 {
        return false;
    }
    #[allow(clippy::unnecessary_cast, reason = "32 bits wide, or unsigned, on some machines")]
    [libc::TMPFS_MAGIC as i64, RAMFS_MAGIC].contains(&(status.f_type as i64))
}

/// The unit of offsets and lengths of direct I/O, or None if the kernel doesn't tell.
fn direct_io_alignment(file: &File) -> io::Result<Option<u32>> {
    let empty = CString::default();
    // SAFETY: all-zero bytes are a valid statx, which the call fills.
    let mut status: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: an empty path with AT_EMPTY_PATH names the descriptor; both pointers outlive the call.
    let answer = unsafe {
        libc::statx(
            file.as_raw_fd(),
            empty.as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            &raw mut status,
        )
    };
    if answer != 0 {
        let error = io::Error::last_os_error();
        // Kernels and sandboxes without the call know no alignment either.
        return match error.raw_os_error() {
            Some(libc::ENOSYS | libc::EINVAL | libc::EPERM) => Ok(None),
            _ => Err(error),
        };
    }
    Ok(alignment_told(&status))
}

/// The unit in the kernel's answer; None if the answer has none, or one that buffers don't suit.
fn alignment_told(status: &libc::statx) -> Option<u32> {
    let told = status.stx_mask & libc::STATX_DIOALIGN != 0;
    let alignment = status.stx_dio_offset_align;
    Some(alignment.max(512)).filter(|bytes| {
        // Buffers are aligned to 4 KiB, and a recorder writes multiples of that.
        told && alignment != 0 && bytes.is_power_of_two() && status.stx_dio_mem_align <= 4096
    })
}

/// The unit of holes in a file, or None if its file system can't make holes.
fn punch_unit(file: &File, length: u64, block: u32) -> Option<u32> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let unit = block.max(FILE_BLOCK_BYTES_DEFAULT);
    let beyond = length.next_multiple_of(u64::from(unit));
    // Beyond the end there is nothing to lose, but a file system that can't says so.
    // SAFETY: no memory is involved.
    let answer = unsafe {
        libc::fallocate(
            file.as_raw_fd(),
            mode,
            libc::off_t::try_from(beyond).ok()?,
            libc::off_t::from(unit),
        )
    };
    (answer == 0).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safety::safety_rig::{Loop, MIB};

    #[test]
    fn the_unit_of_direct_io_is_taken_only_if_buffers_suit_it() {
        let of = |mask, offset_align, mem_align| {
            // SAFETY: all-zero bytes are a valid statx.
            let mut status: libc::statx = unsafe { std::mem::zeroed() };
            status.stx_mask = mask;
            status.stx_dio_offset_align = offset_align;
            status.stx_dio_mem_align = mem_align;
            alignment_told(&status)
        };
        let asked = libc::STATX_DIOALIGN;
        assert_eq!(of(asked, 512, 4), Some(512));
        assert_eq!(of(asked | libc::STATX_SIZE, 4096, 4096), Some(4096));
        assert_eq!(of(asked, 1, 1), Some(512), "drives have no smaller blocks");
        assert_eq!(of(libc::STATX_SIZE, 512, 4), None, "the kernel doesn't tell");
        assert_eq!(of(asked, 0, 0), None, "the file can't do direct I/O");
        assert_eq!(of(asked, 1536, 4), None);
        assert_eq!(of(asked, 512, 8192), None, "buffers are aligned to 4 KiB");
    }

    /// Opens a loop device as if it were an NVMe generic one, with itself beside it.
    fn open_as_generic(path: &Path, change: impl FnOnce(&mut sysfs::BlockDevice)) -> TargetError {
        let Ok(Node::Block(mut beside)) = System::default().resolve(path) else {
            panic!("{} is a block device", path.display())
        };
        change(&mut beside);
        let opened = open_generic(path, &beside, Access::Write { exclusive: true });
        opened.expect_err("it takes no NVMe commands")
    }

    #[test]
    fn the_device_beside_a_generic_one_must_be_the_one_that_was_found() {
        let device = Loop::new(MIB);
        let error = open_as_generic(&device.path, |_| ());
        assert!(matches!(error, TargetError::Passthrough { .. }), "{error}");
        let error = open_as_generic(&device.path, |beside| beside.number.minor += 1);
        assert!(error.to_string().contains("exchanged"), "{error}");
    }

    #[test]
    fn an_error_beside_a_generic_device_says_that_it_was_opened_for_writing() {
        let device = Loop::new(MIB);
        // A folder can't be.
        let error = open_as_generic(&device.path, |beside| beside.name = ".".into());
        assert!(error.to_string().starts_with("opening for writing /dev/"), "{error}");
    }

    #[test]
    fn an_error_of_opening_is_told_as_what_the_user_can_do() {
        let of = |number, writing| {
            open_error(Path::new("/dev/x"), writing, io::Error::from_raw_os_error(number))
        };
        assert!(matches!(of(libc::ENOENT, true), TargetError::NotFound { .. }));
        assert!(matches!(of(libc::EBUSY, true), TargetError::Busy { .. }));
        for number in [libc::EACCES, libc::EPERM] {
            let text = |writing| of(number, writing).to_string();
            assert!(text(true).contains("for writing was not permitted"), "{}", text(true));
            assert!(text(false).contains("for reading was not permitted"), "{}", text(false));
        }
        let text = |writing| of(libc::EIO, writing).to_string();
        assert!(text(true).starts_with("opening for writing /dev/x failed"), "{}", text(true));
        assert!(text(false).starts_with("opening /dev/x failed"), "{}", text(false));
    }
}
