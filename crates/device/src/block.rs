//! What the kernel says of an open block device: its size, its units, whether it can trim.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;

/// `BLKGETSIZE64` of `linux/fs.h`: the device's size in bytes, as 64 bits whatever `size_t` is.
const BLKGETSIZE64: libc::Ioctl = libc::_IOR::<libc::size_t>(0x12, 114);

/// Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockDevice {
    pub(crate) capacity_bytes: u64,
    /// Logical block: the unit of addresses.
    pub(crate) logical_block_bytes: u32,
    /// Physical block: what the drive writes without reading first, as far as it tells.
    pub(crate) physical_block_bytes: u32,
    /// Unit of discards; None if it can't discard.
    pub(crate) discard_unit_bytes: Option<u32>,
    /// Whether its driver has queues whose completions can be polled for.
    pub(crate) polls: bool,
}

impl BlockDevice {
    /// Asks the kernel about `file`, which is a block device.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let mut capacity_bytes = 0u64;
        let mut logical: libc::c_int = 0;
        let mut physical: libc::c_uint = 0;
        // SAFETY: BLKGETSIZE64 writes 8 bytes at the pointer.
        ask(unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &raw mut capacity_bytes) })?;
        // SAFETY: BLKSSZGET writes an int at the pointer.
        ask(unsafe { libc::ioctl(file.as_raw_fd(), libc::BLKSSZGET, &raw mut logical) })?;
        // SAFETY: BLKPBSZGET writes an unsigned int at the pointer.
        ask(unsafe { libc::ioctl(file.as_raw_fd(), libc::BLKPBSZGET, &raw mut physical) })?;
        let logical_block_bytes = u32::try_from(logical)
            .ok()
            .filter(|bytes| bytes.is_power_of_two() && *bytes >= 512)
            .ok_or_else(|| io::Error::other(format!("it claims blocks of {logical} bytes")))?;
        let queue = queue_folder(file)?;
        let granularity = number(&queue, "discard_granularity").unwrap_or(0);
        let can_discard = number(&queue, "discard_max_bytes").unwrap_or(0) > 0;
        let unit = u32::try_from(granularity).ok().map(|bytes| bytes.max(logical_block_bytes));
        Ok(Self {
            capacity_bytes,
            logical_block_bytes,
            physical_block_bytes: physical.max(logical_block_bytes),
            discard_unit_bytes: unit.filter(|_| can_discard),
            polls: number(&queue, "io_poll") == Some(1),
        })
    }

    /// Whether this is what `of` is for.
    pub(crate) fn is(file: &File) -> io::Result<bool> {
        Ok(file.metadata()?.file_type().is_block_device())
    }
}

fn ask(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `/sys/.../queue` of the device, or of the device that it is a partition of.
fn queue_folder(file: &File) -> io::Result<PathBuf> {
    let number = file.metadata()?.rdev();
    let folder = format!("/sys/dev/block/{}:{}", libc::major(number), libc::minor(number));
    let folder = fs::canonicalize(folder)?;
    let own = folder.join("queue");
    if own.is_dir() {
        return Ok(own);
    }
    Ok(folder.parent().unwrap_or(&folder).join("queue"))
}

fn number(queue: &std::path::Path, name: &str) -> Option<u64> {
    fs::read_to_string(queue.join(name)).ok()?.trim().parse().ok()
}
