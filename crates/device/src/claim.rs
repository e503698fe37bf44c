//! The claim on a target: one lock for one process, however many of its banks share the target.
//!
//! The kernel keeps an `flock` until the last descriptor of an open file is closed, and an io_uring
//! closes its own some time after it ends. So the last owner of a claim gives the lock back itself.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Another program may lock or claim a drive for a moment: udev while it probes a device that has
/// just been closed, `losetup` while it looks for a free one, [`is_locked`]. Who uses it holds it for
/// longer than these attempts take.
const ATTEMPTS_MAX: u32 = 20;
const RETRY_AFTER: Duration = Duration::from_millis(25);

/// An open file that may carry the lock; it gives the lock back when it goes.
#[derive(Debug)]
pub(crate) struct Claim {
    file: File,
    locked: bool,
    /// Whether data gets past the page cache of `file`, so that what is in there grows old.
    bypassed: bool,
}

impl Claim {
    /// A claim that keeps nobody off.
    pub(crate) fn shared(file: File) -> Self {
        Self { file, locked: false, bypassed: false }
    }

    /// The claim of the one who writes. Fails with [`io::ErrorKind::WouldBlock`] if somebody else
    /// has it.
    pub(crate) fn exclusive(file: File, bypassed: bool) -> io::Result<Self> {
        patiently(|| flock(&file, libc::LOCK_EX))?;
        Ok(Self { file, locked: true, bypassed })
    }

    /// What is claimed.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.bypassed {
            // So that others read what was written. It is advice: nothing to do if it fails.
            // SAFETY: no memory is involved.
            unsafe { libc::posix_fadvise(self.file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        }
        if self.locked {
            // If it fails, closing the file will do.
            drop(flock(&self.file, libc::LOCK_UN));
        }
    }
}

/// Whether somebody has the exclusive claim on an open file.
pub(crate) fn is_locked(file: &File) -> io::Result<bool> {
    // A shared lock, so that two who ask don't take each other for a recorder. The end of `file`
    // gives it back.
    match flock(file, libc::LOCK_SH) {
        Ok(()) => Ok(false),
        Err(reason) if reason.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(reason) => Err(reason),
    }
}

/// Tries again while somebody else has the drive, for about half a second.
pub(crate) fn patiently<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
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
fn flock(file: &File, operation: libc::c_int) -> io::Result<()> {
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
