//! Loop devices and what lies behind them.
//!
//! The loop driver doesn't claim its backing device, so neither `holders/` nor an exclusive open
//! shows that a drive is in use below a loop device. Only asking every loop device does.

use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use crate::sysfs::{BlockDevice, DeviceNumber, System};

/// A loop device that is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    /// The loop device.
    pub device: BlockDevice,
    /// What it was told to use, as far as the kernel still knows its path.
    pub path: PathBuf,
    /// What it uses.
    pub backing: Option<Backing>,
}

/// What a loop device reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    /// A block device.
    Block(DeviceNumber),
    /// A file, by its file system's number and its inode.
    File {
        /// `st_dev`.
        device: u64,
        /// `st_ino`.
        inode: u64,
    },
}

impl Backing {
    /// What a path names now.
    pub fn of(metadata: &fs::Metadata) -> Self {
        if metadata.file_type().is_block_device() {
            Self::Block(DeviceNumber::from_raw(metadata.rdev()))
        } else {
            Self::File { device: metadata.dev(), inode: metadata.ino() }
        }
    }
}

/// Every loop device that is set up.
pub(crate) fn attached(system: &System) -> Vec<Loop> {
    let disks = system.disks().unwrap_or_default();
    disks.into_iter().filter_map(|disk| describe(system, disk)).collect()
}

/// The loop device's backing, or None if it is not a loop device or not set up.
pub(crate) fn describe(system: &System, device: BlockDevice) -> Option<Loop> {
    let path = PathBuf::from(device.attribute("loop/backing_file")?);
    // The path may have been removed, replaced, or be of another mount namespace: the driver knows
    // better, if it may be asked.
    let backing = ask(system, &device)
        .or_else(|| fs::metadata(&path).ok().map(|metadata| Backing::of(&metadata)));
    Some(Loop { device, path, backing })
}

/// `struct loop_info64` of `linux/loop.h`.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}
const _: () = assert!(size_of::<LoopInfo>() == 232);
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;

fn ask(system: &System, device: &BlockDevice) -> Option<Backing> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_CLOEXEC | libc::O_NONBLOCK)
        .open(system.node(&device.name))
        .ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.file_type().is_block_device()
        || DeviceNumber::from_raw(metadata.rdev()) != device.number
    {
        return None;
    }
    let mut info = std::mem::MaybeUninit::<LoopInfo>::zeroed();
    // SAFETY: the kernel writes one `struct loop_info64` to the pointer, whose size is asserted above,
    // and every bit pattern of it (zeros too) is a valid `LoopInfo`.
    let info = unsafe {
        if libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64 as _, info.as_mut_ptr()) != 0 {
            return None;
        }
        info.assume_init()
    };
    // A file has none; older drivers repeat its file system's device here.
    if info.rdevice != 0 && info.rdevice != info.device {
        return Some(Backing::Block(DeviceNumber::from_raw(info.rdevice)));
    }
    Some(Backing::File { device: info.device, inode: info.inode })
}
