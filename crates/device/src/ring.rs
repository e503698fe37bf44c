//! Setting up an io_uring in the fastest way that the kernel knows.

use std::fmt;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::IoUring;

use crate::pool::Pool;
use crate::target::OpenTarget;
use crate::warning::Warning;

/// Most submission queue entries that a ring can have (`IORING_MAX_ENTRIES` of Linux).
pub(crate) const RING_ENTRIES_MAX: u32 = 32768;

/// Why a bank can't be opened.
#[derive(Debug)]
pub enum OpenError {
    /// No drives, or more than a [`base::DriveId`] can name.
    DriveCount {
        /// How many there were.
        count: usize,
    },
    /// A queue depth of zero, or drives and depth that add up to more than a ring takes.
    Depth {
        /// Commands a drive.
        depth_max: u32,
        /// Drives.
        drives: usize,
    },
    /// The kernel has no io_uring for us.
    NoRing {
        /// Its reason.
        reason: io::Error,
    },
    /// The kernel's io_uring lacks what this needs.
    KernelTooOld {
        /// What it lacks.
        lacking: &'static str,
    },
    /// A thread or a descriptor that the bank needs can't be had.
    Os {
        /// What was tried.
        attempted: &'static str,
        /// The kernel's reason.
        reason: io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DriveCount { count } => {
                write!(f, "a bank has between 1 and {} drives, not {count}", u16::MAX)
            }
            Self::Depth { depth_max, drives } => write!(
                f,
                "{drives} drives with {depth_max} commands each can't share one ring of at most \
                 {RING_ENTRIES_MAX} commands; choose a queue depth between 1 and {}",
                RING_ENTRIES_MAX as usize / 2 / (*drives).max(1)
            ),
            Self::NoRing { reason } => {
                let advice = match reason.raw_os_error() {
                    Some(libc::ENOSYS) => "it needs Linux 5.11 or later",
                    Some(libc::EPERM) => {
                        "set `sysctl kernel.io_uring_disabled=0`, and allow io_uring in the \
                         container's seccomp profile"
                    }
                    Some(libc::ENOMEM) => "raise the limit of locked memory with `ulimit -l`",
                    _ => "see io_uring_setup(2) for the reason",
                };
                write!(f, "setting up io_uring failed: {reason}; {advice}")
            }
            Self::KernelTooOld { lacking } => {
                write!(f, "this kernel's io_uring lacks {lacking}; Linux 5.11 or later has it")
            }
            Self::Os { attempted, reason } => write!(f, "{attempted} failed: {reason}"),
        }
    }
}

impl std::error::Error for OpenError {}

/// A ring with at least this many submission queue entries, disabled until [`enable`].
pub(crate) fn build(entries: u32) -> Result<IoUring, OpenError> {
    // Completions are worked on only when their one reader asks for them (Linux 6.1), or at least
    // without interrupting it (5.19), or as it was before. All start disabled, so that the ring
    // belongs to the thread that enables it and not to the one that makes it.
    let deferred = IoUring::builder()
        .setup_r_disabled()
        .setup_submit_all()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .build(entries);
    let ring = deferred
        .or_else(|error| {
            fall_back(error)?;
            IoUring::builder()
                .setup_r_disabled()
                .setup_submit_all()
                .setup_coop_taskrun()
                .setup_taskrun_flag()
                .build(entries)
        })
        .or_else(|error| {
            fall_back(error)?;
            IoUring::builder().setup_r_disabled().build(entries)
        })
        .map_err(|reason| OpenError::NoRing { reason })?;
    let parameters = ring.params();
    for (has, lacking) in [
        (parameters.is_feature_ext_arg(), "waiting with a time limit"),
        (parameters.is_feature_nodrop(), "keeping completions that don't fit"),
    ] {
        if !has {
            return Err(OpenError::KernelTooOld { lacking });
        }
    }
    Ok(ring)
}

/// Passes on what an older way of setting up would not mend.
fn fall_back(error: io::Error) -> io::Result<()> {
    if error.raw_os_error() == Some(libc::EINVAL) { Ok(()) } else { Err(error) }
}

/// Lets the ring take commands, from now on from this thread.
pub(crate) fn enable(ring: &IoUring) -> io::Result<()> {
    ring.submitter().register_enable_rings()
}

/// Whether the kernel has locked the pool's memory for good.
pub(crate) fn register_buffers(ring: &IoUring, pool: &Pool, warnings: &mut Vec<Warning>) -> bool {
    let ranges = pool.ranges_to_register();
    // SAFETY: the ranges are the pool's mapping, which stays until the pool goes; and the bank, which
    // owns the ring, keeps the pool until it has unregistered them.
    match unsafe { ring.submitter().register_buffers(&ranges) } {
        Ok(()) => true,
        Err(reason) => {
            let (bytes, reason) = (pool.bytes(), reason.to_string());
            warnings.push(Warning::BuffersNotRegistered { bytes, reason });
            false
        }
    }
}

/// Whether the kernel keeps the targets' files at hand, by their index.
pub(crate) fn register_files(
    ring: &IoUring,
    targets: &[OpenTarget],
    warnings: &mut Vec<Warning>,
) -> bool {
    let files: Vec<_> = targets.iter().map(|target| target.file.as_raw_fd()).collect();
    match ring.submitter().register_files(&files) {
        Ok(()) => true,
        Err(reason) => {
            warnings.push(Warning::FilesNotRegistered { reason: reason.to_string() });
            false
        }
    }
}
