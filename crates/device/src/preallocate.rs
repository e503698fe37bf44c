//! Making a member file with all its space behind it, so that recording can't run out of it and
//! doesn't grow the file (which XFS would do one write at a time).

use std::ffi::CString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why a file can't be made.
#[derive(Debug)]
pub enum CreateFileError {
    /// Something is there already, and stays.
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file system has less space than asked for.
    NoSpace {
        /// The file.
        path: PathBuf,
        /// Bytes asked for.
        needed: u64,
        /// Bytes that were free.
        available: u64,
    },
    /// The file system can't set space aside.
    CannotPreallocate {
        /// The file.
        path: PathBuf,
    },
    /// Anything else.
    Os {
        /// What was tried.
        attempted: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
}

impl fmt::Display for CreateFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists { path } => write!(
                f,
                "{} exists already and was left alone; choose another name, or delete it",
                path.display()
            ),
            Self::NoSpace { path, needed, available } => write!(
                f,
                "creating {} needs {needed} bytes and its file system has {available} available; \
                 free some space, or ask for a smaller file",
                path.display()
            ),
            Self::CannotPreallocate { path } => write!(
                f,
                "{} lies on a file system that can't set space aside for it; use ext4, XFS or \
                 btrfs, or a block device",
                path.display()
            ),
            Self::Os { attempted, path, reason } => {
                write!(f, "{attempted} {} failed: {reason}", path.display())
            }
        }
    }
}

impl std::error::Error for CreateFileError {}

/// Mode of a file unless another is asked for: what was recorded is for its owner alone.
pub const FILE_MODE_DEFAULT: u32 = 0o600;

/// [`create_file_with_mode`] with [`FILE_MODE_DEFAULT`].
///
/// # Errors
/// The same.
pub fn create_file(path: &Path, size: u64) -> Result<(), CreateFileError> {
    create_file_with_mode(path, size, FILE_MODE_DEFAULT)
}

/// Makes a file of `size` bytes that reads as zeros and has all its space set aside. The file and
/// its name are durable when this returns.
///
/// The space is in unwritten extents: the first write to each also records in the file system's
/// journal that it is written now, so that the first pass over a member file costs a little more
/// than the next ones.
///
/// The file has exactly this mode, whatever the umask.
///
/// # Errors
/// [`CreateFileError`]; a file that was begun is removed again.
pub fn create_file_with_mode(path: &Path, size: u64, mode: u32) -> Result<(), CreateFileError> {
    let os = |attempted, reason| CreateFileError::Os { attempted, path: path.to_owned(), reason };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(FILE_MODE_DEFAULT);
    let file = match options.open(path) {
        Ok(file) => file,
        Err(reason) if reason.kind() == io::ErrorKind::AlreadyExists => {
            return Err(CreateFileError::Exists { path: path.to_owned() });
        }
        Err(reason) => return Err(os("creating", reason)),
    };
    let filled = file
        .set_permissions(fs::Permissions::from_mode(mode))
        .map_err(|reason| os("setting the mode of", reason))
        .and_then(|()| fill(path, &file, size));
    if filled.is_err() {
        // The first failure is the one to tell; a leftover file is visible by its name.
        drop(fs::remove_file(path));
    }
    filled
}

fn fill(path: &Path, file: &File, size: u64) -> Result<(), CreateFileError> {
    let os = |attempted, reason| CreateFileError::Os { attempted, path: path.to_owned(), reason };
    let available = available_bytes(path);
    let no_space =
        |available| CreateFileError::NoSpace { path: path.to_owned(), needed: size, available };
    if let Some(available) = available
        && size > available
    {
        return Err(no_space(available));
    }
    let length = libc::off_t::try_from(size)
        .map_err(|_| os("creating", io::Error::from_raw_os_error(libc::EFBIG)))?;
    loop {
        // An empty file needs no space, and fallocate refuses a length of zero.
        // SAFETY: no memory is involved.
        if length == 0 || unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } == 0 {
            break;
        }
        let reason = io::Error::last_os_error();
        match reason.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ENOSPC | libc::EDQUOT) => return Err(no_space(available.unwrap_or(0))),
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => {
                return Err(CreateFileError::CannotPreallocate { path: path.to_owned() });
            }
            _ => return Err(os("setting space aside for", reason)),
        }
    }
    file.sync_all().map_err(|reason| os("flushing", reason))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|reason| os("flushing the folder of", reason))
}

/// Bytes that the user may still take on the file system; None if it doesn't tell.
fn available_bytes(path: &Path) -> Option<u64> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: all-zero bytes are a valid statvfs, which the call fills.
    let mut status: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers outlive the call; the path ends with a zero byte.
    let answer = unsafe { libc::statvfs(path.as_ptr(), &raw mut status) };
    #[allow(clippy::unnecessary_cast, reason = "32 bits wide on some machines")]
    (answer == 0).then(|| status.f_bavail as u64 * status.f_frsize as u64)
}
