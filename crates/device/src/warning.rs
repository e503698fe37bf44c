//! What works, but not as well as it could: each warning says what to do about it.

use std::fmt;
use std::path::PathBuf;

/// Something that a run goes on without, at a cost. Never an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The buffers lie in transparent huge pages, which the kernel grants or not.
    NoReservedHugePages {
        /// Pages of 2 MiB that the buffers need.
        needed: u64,
        /// Pages of 2 MiB that are reserved and free.
        free: u64,
        /// What `vm.nr_hugepages` would have to be.
        setting: u64,
    },
    /// The buffers lie in pages of the base size, so every transfer takes longer to set up.
    NoHugePages {
        /// What `vm.nr_hugepages` would have to be.
        setting: u64,
        /// Why transparent huge pages can't be had either.
        reason: String,
    },
    /// The kernel looks up and pins a buffer's pages again for every command.
    BuffersNotRegistered {
        /// Bytes that had to be locked.
        bytes: u64,
        /// The kernel's reason.
        reason: String,
    },
    /// The kernel looks up the open file again for every command.
    FilesNotRegistered {
        /// The kernel's reason.
        reason: String,
    },
    /// Reads and writes of this file go through the page cache.
    NoDirectIo {
        /// The file.
        path: PathBuf,
        /// Why direct I/O can't be had.
        reason: String,
    },
    /// The kernel can't use registered buffers in passthrough commands.
    PassthroughNotRegistered {
        /// What the user called the drive.
        name: String,
    },
    /// The kernel can't trim through io_uring, so a thread of its own issues the trims.
    TrimByThread,
    /// The drive can't be polled for completions, so it interrupts as ever.
    NotPolled {
        /// What the user called the drive.
        name: String,
        /// Whether it is a file, and so never polled.
        file: bool,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoReservedHugePages { needed, free, setting } => write!(
                f,
                "buffers use transparent huge pages, because only {free} of the {needed} huge \
                 pages of 2 MiB they need are reserved; to reserve them: \
                 sysctl vm.nr_hugepages={setting}"
            ),
            Self::NoHugePages { setting, reason } => write!(
                f,
                "buffers use small pages, which costs CPU time for each transfer: no huge pages \
                 are reserved, and transparent ones can't be had ({reason}); to reserve huge \
                 pages: sysctl vm.nr_hugepages={setting}"
            ),
            Self::BuffersNotRegistered { bytes, reason } => write!(
                f,
                "buffers are not registered with io_uring, which costs CPU time for each \
                 transfer: locking {bytes} bytes failed ({reason}); raise the limit with \
                 `ulimit -l {}` or run with CAP_IPC_LOCK",
                bytes.div_ceil(1024)
            ),
            Self::FilesNotRegistered { reason } => write!(
                f,
                "open files are not registered with io_uring, which costs a little CPU time for \
                 each transfer: {reason}; raise the limit of open files with `ulimit -n`"
            ),
            Self::NoDirectIo { path, reason } => write!(
                f,
                "{} is read and written through the page cache: {reason}; what is written there \
                 competes for memory and may be lost with the machine. Use a block device or a \
                 file on ext4 or XFS",
                path.display()
            ),
            Self::PassthroughNotRegistered { name } => write!(
                f,
                "{name}: this kernel can't use registered buffers for NVMe passthrough (Linux 6.12 \
                 and later can), which costs CPU time for each transfer; name the block device to \
                 use them"
            ),
            Self::TrimByThread => f.write_str(
                "this kernel can't trim block devices through io_uring (Linux 6.12 and later can), \
                 so a thread of its own trims, one range at a time",
            ),
            Self::NotPolled { name, file: true } => write!(
                f,
                "{name} is not polled but interrupts, because it is a file; name the block device \
                 that it lies on to have that polled"
            ),
            Self::NotPolled { name, file: false } => write!(
                f,
                "{name} is not polled but interrupts, because its driver has no queues for polling; \
                 for NVMe, load the driver with poll_queues=N (`nvme.poll_queues=N` when booting)"
            ),
        }
    }
}
