//! What the kernel says of an open block device: its size, its units, whether it can trim.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;

use crate::mapping::Pages;

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
    /// Longest discard that is one command to the drive.
    pub(crate) discard_max_bytes: u64,
    /// Whether its driver has queues whose completions can be polled for.
    pub(crate) polls: bool,
    /// Of reads and writes that the block layer hands on as they are; longer ones it splits.
    pub(crate) unsplit: TransferLimits,
    /// Of what the driver takes from anybody.
    pub(crate) driver: TransferLimits,
}

/// What one read or write can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransferLimits {
    /// Bytes.
    pub(crate) bytes_max: u64,
    /// Pieces of memory that are contiguous for the drive.
    pub(crate) segments_max: u64,
}

/// What is contiguous in memory at least.
const PAGE_BYTES: u64 = 4096;

impl TransferLimits {
    /// The longest transfer, in whole pages and blocks, between the drive and memory in such pages.
    pub(crate) fn longest_bytes(&self, pages: Pages, block_bytes: u32) -> u64 {
        // Small pages may lie anywhere, and transparent huge pages may be small ones.
        let scattered = self.segments_max.saturating_mul(PAGE_BYTES);
        let longest =
            if pages == Pages::Huge { self.bytes_max } else { self.bytes_max.min(scattered) };
        let unit = PAGE_BYTES.max(u64::from(block_bytes));
        (longest / unit * unit).max(unit)
    }
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
        let limits = |name| TransferLimits {
            // What every driver takes, if the kernel doesn't tell.
            bytes_max: number(&queue, name).map_or(PAGE_BYTES, |kib| kib.saturating_mul(1024)),
            segments_max: number(&queue, "max_segments").unwrap_or(1),
        };
        Ok(Self {
            capacity_bytes,
            logical_block_bytes,
            physical_block_bytes: physical.max(logical_block_bytes),
            discard_unit_bytes: unit.filter(|_| can_discard),
            discard_max_bytes: number(&queue, "discard_max_hw_bytes").unwrap_or(0),
            polls: number(&queue, "io_poll") == Some(1),
            unsplit: limits("max_sectors_kb"),
            driver: limits("max_hw_sectors_kb"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_keeps_to_bytes_and_segments_in_whole_pages_and_blocks() {
        let limits = TransferLimits { bytes_max: 512 << 10, segments_max: 127 };
        assert_eq!(limits.longest_bytes(Pages::Huge, 512), 512 << 10);
        assert_eq!(limits.longest_bytes(Pages::Normal, 512), 127 * 4096);
        assert_eq!(limits.longest_bytes(Pages::Transparent, 8192), 126 * 4096);
        let tiny = TransferLimits { bytes_max: 1 << 10, segments_max: 1 };
        assert_eq!(tiny.longest_bytes(Pages::Huge, 512), 4096);
    }
}
