//! From a path to a drive that a bank can use: a block device or a preallocated file, opened for
//! direct I/O, locked against a second recorder, its geometry read.

use std::ffi::CString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::Geometry;

use crate::block::BlockDevice;
pub use crate::preallocate::{CreateFileError, create_file};
use crate::warning::Warning;

/// Longest read or write in bytes. Drives take less at once (`max_sectors_kb`); the kernel splits.
const TRANSFER_BYTES_MAX: u32 = 16 << 20;

/// Commands a drive until the bank sets its own limit.
const DEPTH_MAX_DEFAULT: u32 = 32;

/// Unit of direct I/O on files where the kernel doesn't tell (before Linux 6.1): it suits every
/// file system on every drive.
const FILE_BLOCK_BYTES_DEFAULT: u32 = 4096;

/// Another program may lock or claim a drive for a moment: udev while it probes a device that has
/// just been closed, `losetup` while it looks for a free one, [`is_locked`]. Who uses it holds it for
/// longer than these attempts take.
const ATTEMPTS_MAX: u32 = 20;
const RETRY_AFTER: Duration = Duration::from_millis(25);

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
    /// A regular file.
    File,
}

/// An open drive, ready for a bank.
#[derive(Debug)]
pub struct OpenTarget {
    /// The open descriptor, which carries the lock.
    pub file: File,
    /// Block device or file.
    pub kind: TargetKind,
    /// What a bank will show of it.
    pub geometry: Geometry,
    /// What the drive writes without reading first, in bytes, as far as it tells: at least
    /// `geometry.block_bytes`.
    pub physical_block_bytes: u32,
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
                "{} is {found}; give a block device (such as /dev/nvme0n1) or a file",
                path.display()
            ),
            Self::Busy { path } => write!(
                f,
                "{} is in use: mounted, or part of a RAID, LVM or other device; `lsblk {}` shows \
                 by what",
                path.display(),
                path.display()
            ),
            Self::BeingRecorded { path } => write!(
                f,
                "{} is being recorded by another process; wait until it has stopped, or choose \
                 another drive",
                path.display()
            ),
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

/// Opens a block device or a file. It stays as it is until a bank writes to it.
///
/// # Errors
/// [`TargetError`], before anything was changed.
pub fn open(path: &Path, access: Access) -> Result<(OpenTarget, Vec<Warning>), TargetError> {
    let writing = access != Access::Read;
    let kind = kind_of(path)?;
    let exclusive = kind == TargetKind::BlockDevice && access == Access::Write { exclusive: true };
    let mut warnings = Vec::new();
    let file = open_direct(path, writing, exclusive, &mut warnings)?;
    if writing {
        lock(path, &file)?;
    }
    let os = |attempted, reason| TargetError::Os { attempted, path: path.to_owned(), reason };
    // The path may have come to mean something else since it was looked at.
    let is_block = BlockDevice::is(&file).map_err(|e| os("looking at", e))?;
    let (capacity_bytes, block_bytes, physical_block_bytes, trim_unit_bytes) = if is_block {
        let device = BlockDevice::of(&file).map_err(|e| os("asking for the size of", e))?;
        let unit = device.discard_unit_bytes;
        (device.capacity_bytes, device.logical_block_bytes, device.physical_block_bytes, unit)
    } else {
        let metadata = file.metadata().map_err(|e| os("looking at", e))?;
        let alignment = direct_io_alignment(&file).map_err(|e| os("looking at", e))?;
        let block = alignment.unwrap_or(FILE_BLOCK_BYTES_DEFAULT);
        let unit = if writing { punch_unit(&file, metadata.len(), block) } else { None };
        (metadata.len(), block, block.max(FILE_BLOCK_BYTES_DEFAULT), unit)
    };
    let capacity_bytes = capacity_bytes / u64::from(block_bytes) * u64::from(block_bytes);
    if capacity_bytes == 0 {
        return Err(TargetError::Empty { path: path.to_owned() });
    }
    let geometry = Geometry {
        name: path.display().to_string(),
        capacity_bytes,
        block_bytes,
        transfer_max_bytes: TRANSFER_BYTES_MAX,
        depth_max: DEPTH_MAX_DEFAULT,
        trim_unit_bytes,
        // A hole reads as zeros. A discarded block does so only if the drive likes, and the kernel
        // has stopped telling whether it does (`discard_zeroes_data` is 0 since Linux 4.12).
        trim_reads_zeros: !is_block && trim_unit_bytes.is_some(),
        writable: writing,
    };
    let kind = if is_block { TargetKind::BlockDevice } else { TargetKind::File };
    Ok((OpenTarget { file, kind, geometry, physical_block_bytes }, warnings))
}

/// Whether some process has the target open for writing through this crate.
///
/// # Errors
/// [`TargetError`] if it can't be opened for reading.
pub fn is_locked(path: &Path) -> Result<bool, TargetError> {
    let file = File::open(path).map_err(|reason| open_error(path, false, reason))?;
    // A shared lock, so that two who ask don't take each other for a recorder. The end of `file`
    // gives it back.
    match flock(&file, libc::LOCK_SH) {
        Ok(()) => Ok(false),
        Err(reason) if reason.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(reason) => Err(TargetError::Os { attempted: "locking", path: path.to_owned(), reason }),
    }
}

fn kind_of(path: &Path) -> Result<TargetKind, TargetError> {
    let metadata = std::fs::metadata(path).map_err(|reason| open_error(path, false, reason))?;
    let kind = metadata.file_type();
    let found = if kind.is_block_device() {
        return Ok(TargetKind::BlockDevice);
    } else if kind.is_file() {
        return Ok(TargetKind::File);
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_char_device() {
        "a character device"
    } else {
        "neither a block device nor a file"
    };
    Err(TargetError::WrongKind { path: path.to_owned(), found })
}

fn open_direct(
    path: &Path,
    writing: bool,
    exclusive: bool,
    warnings: &mut Vec<Warning>,
) -> Result<File, TargetError> {
    // Without O_CREAT, O_EXCL is for block devices: fail if something holds it (open(2)).
    let exclusive = if exclusive { libc::O_EXCL } else { 0 };
    let open = |direct| {
        let mut options = OpenOptions::new();
        options.read(true).write(writing).custom_flags(direct | exclusive);
        patiently(|| options.open(path))
    };
    let mut warn = |reason: &str| {
        warnings.push(Warning::NoDirectIo { path: path.to_owned(), reason: reason.to_owned() });
    };
    match open(libc::O_DIRECT) {
        Ok(file) => {
            // A block device's node lies in memory too; what is behind it doesn't.
            let regular = file.metadata().is_ok_and(|m| m.is_file());
            if regular && lies_in_memory(&file) {
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
    let told = status.stx_mask & libc::STATX_DIOALIGN != 0;
    let alignment = status.stx_dio_offset_align;
    Ok(Some(alignment.max(512)).filter(|bytes| {
        // Buffers are aligned to 4 KiB, and a recorder writes multiples of that.
        told && alignment != 0 && bytes.is_power_of_two() && status.stx_dio_mem_align <= 4096
    }))
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

fn lock(path: &Path, file: &File) -> Result<(), TargetError> {
    let path = || path.to_owned();
    patiently(|| flock(file, libc::LOCK_EX)).map_err(|reason| match reason.kind() {
        io::ErrorKind::WouldBlock => TargetError::BeingRecorded { path: path() },
        _ => TargetError::Os { attempted: "locking", path: path(), reason },
    })
}

/// Tries again while somebody else has the drive, for about half a second.
fn patiently<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..ATTEMPTS_MAX {
        match attempt().map_err(|reason| reason.raw_os_error()) {
            Err(Some(libc::EWOULDBLOCK | libc::EBUSY)) => std::thread::sleep(RETRY_AFTER),
            Err(Some(number)) => return Err(io::Error::from_raw_os_error(number)),
            Err(None) => break,
            Ok(done) => return Ok(done),
        }
    }
    attempt()
}

/// Takes (`LOCK_SH`, `LOCK_EX`) or gives back (`LOCK_UN`) the lock without waiting.
pub(crate) fn flock(file: &File, operation: libc::c_int) -> io::Result<()> {
    loop {
        // SAFETY: no memory is involved.
        if unsafe { libc::flock(file.as_raw_fd(), operation | libc::LOCK_NB) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
