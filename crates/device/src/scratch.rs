//! Files that hold nothing but what measurements wrote. Such a file is marked when a measurement ends, unless another program
//! opened it meanwhile. It may be overwritten until another program has written to it.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use xattr::FileExt;

/// The extended attribute that marks a file.
const NAME: &str = "user.longtake.scratch";

/// A mark tells a file's time of change as this much earlier. Time stamps are as coarse as a few milliseconds, and whoever writes
/// right after the mark is made must change the stamp.
const EARLIER: Duration = Duration::from_secs(1);

/// A file that a measurement writes to, watched so that it isn't marked if another program may have written to it as well.
#[derive(Debug)]
pub struct Measured {
    file: File,
    /// An inotify instance that tells who opens the file.
    opened: File,
}

impl Measured {
    /// Watches an open file that holds nothing to keep. A program that has opened it before isn't noticed.
    ///
    /// # Errors
    /// If it can't be watched.
    pub fn watch(file: File) -> io::Result<Self> {
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        // SAFETY: it takes no memory.
        let instance = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        if instance < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nobody else's.
        let opened = unsafe { File::from_raw_fd(instance) };
        // SAFETY: the path is a string that ends with a zero, and lives until the call returns.
        if unsafe { libc::inotify_add_watch(instance, path.as_ptr(), libc::IN_OPEN) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { file, opened })
    }

    /// Marks the file as it now is, unless another program has opened it since it is watched. Returns whether it was marked.
    ///
    /// # Errors
    /// If the file system keeps no such marks. The file is then refused like any other.
    pub fn mark(self) -> io::Result<bool> {
        self.file.sync_all()?;
        match (&self.opened).read(&mut [0; 256]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(false),
        }
        self.file.set_modified(SystemTime::now() - EARLIER)?;
        self.file.set_xattr(NAME, state(&self.file)?.as_bytes())?;
        Ok(true)
    }
}

/// Whether an open file is marked and nobody has written to it since. A copy or a file that was put in its place isn't.
pub fn is_marked(file: &File) -> bool {
    let marked = file.get_xattr(NAME).ok().flatten();
    marked.is_some_and(|mark| state(file).is_ok_and(|state| state.as_bytes() == mark))
}

/// Which file it is, its length in bytes, and when it was last changed.
fn state(file: &File) -> io::Result<String> {
    let metadata = file.metadata()?;
    let (inode, length) = (metadata.ino(), metadata.len());
    Ok(format!("{inode} {length} {}.{:09}", metadata.mtime(), metadata.mtime_nsec()))
}
