//! Why a target must not be written. Each reason says what was found, where, and what to do about it.

use std::fmt;
use std::path::PathBuf;

use base::ByteSize;
use serde::Serialize;

use crate::holders::{Holder, Use};
use crate::shell::quoted;
use crate::signature::Signature;

/// One reason not to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "refusal", rename_all = "snake_case")]
pub enum Refusal {
    /// Nothing is there, and it is no place for a new file.
    NotThere {
        /// The path.
        path: PathBuf,
    },
    /// A directory, a character device, a pipe, or a node without a device.
    NotADrive {
        /// The path.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// The kernel lets nobody write it.
    ReadOnly {
        /// The path.
        path: PathBuf,
    },
    /// A file system on it is mounted.
    Mounted {
        /// The path.
        path: PathBuf,
        /// The device that is mounted: itself, a partition, or another path to the same bytes.
        device: PathBuf,
        /// The mount point.
        mount_point: PathBuf,
        /// The file system's type.
        filesystem: String,
        /// A process in whose mount namespace it is, if it isn't in this one.
        process: Option<u32>,
    },
    /// It is in use as swap space.
    Swap {
        /// The path.
        path: PathBuf,
        /// What is swapped on.
        device: PathBuf,
    },
    /// Something stands on it: RAID, device mapper, bcache, a loop device, btrfs.
    Held {
        /// The path.
        path: PathBuf,
        /// What holds it.
        holder: Holder,
    },
    /// Somebody has it open exclusively.
    InUse {
        /// The path.
        path: PathBuf,
        /// The device that could not be opened exclusively.
        device: PathBuf,
        /// Processes that have it open, as far as they can be seen.
        processes: Vec<String>,
    },
    /// The kernel sees partitions on it.
    Partitioned {
        /// The path.
        path: PathBuf,
        /// Their nodes.
        partitions: Vec<PathBuf>,
    },
    /// It carries the mark of something known.
    Signature {
        /// The path.
        path: PathBuf,
        /// What was found.
        signature: Signature,
    },
    /// It is a member of a Longtake array already.
    LongtakeArray {
        /// The path.
        path: PathBuf,
        /// The superblock that was found.
        signature: Signature,
    },
    /// It should be a member of a Longtake array, and has no superblock.
    NoArray {
        /// The path.
        path: PathBuf,
    },
    /// A file with somebody's data in it.
    ForeignContent {
        /// The path.
        path: PathBuf,
        /// The first byte that isn't zero.
        offset: u64,
    },
    /// It can't be looked at, so nothing is known about it.
    Unreadable {
        /// The path.
        path: PathBuf,
        /// What was tried.
        attempted: String,
        /// Why it failed.
        reason: String,
    },
    /// It became another device between looking and opening.
    Changed {
        /// The path.
        path: PathBuf,
    },
    /// The user hasn't confirmed that this very drive may be erased.
    NotConfirmed {
        /// The path.
        path: PathBuf,
        /// The argument that confirms it.
        argument: String,
        /// The drive's model.
        model: Option<String>,
        /// The drive's size in bytes.
        size_bytes: u64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotThere { path } => write!(
                f,
                "{} does not exist: check the name, or list the drives with `longtake drives`",
                path.display()
            ),
            Self::NotADrive { path, found } => write!(
                f,
                "{} is {found}: give a block device (/dev/nvme0n1), an NVMe generic device \
                 (/dev/ng0n1) or a file",
                path.display()
            ),
            Self::ReadOnly { path } => write!(
                f,
                "{0} is read-only: take off its write protection (a device's with `blockdev --setrw \
                 {0}`), or choose another",
                path.display()
            ),
            Self::Mounted { path, device, mount_point, filesystem, process } => {
                write!(f, "{} is mounted", on(path, device))?;
                write!(f, " at {} ({filesystem})", mount_point.display())?;
                if let Some(process) = process {
                    write!(f, " in the mount namespace of process {process}")?;
                }
                write!(
                    f,
                    ": it is in use; unmount it first if you are sure, or choose another drive"
                )
            }
            Self::Swap { path, device } => write!(
                f,
                "{} is swap space in use: run `swapoff {}` first if you are sure, or choose another",
                on(path, device),
                device.display()
            ),
            Self::Held { path, holder } => {
                let release = match holder.how {
                    Use::Md => format!("stop the array with `mdadm --stop {}`", holder.by),
                    Use::DeviceMapper => {
                        format!("remove {} with `dmsetup` or `lvchange`", holder.by)
                    }
                    Use::Loop => format!("detach it with `losetup --detach {}`", holder.by),
                    Use::Btrfs => "unmount that btrfs".to_owned(),
                    Use::Bcache => "stop the bcache device".to_owned(),
                    Use::Swap | Use::Other => format!("release it from {}", holder.by),
                };
                write!(f, "{} is held by {}", on(path, &holder.device), holder.by)?;
                if let Some(name) = &holder.name {
                    write!(f, " ({name})")?;
                }
                write!(f, ", {}: {release} first if you are sure, or choose another", holder.how)
            }
            Self::InUse { path, device, processes } => {
                write!(f, "{} is in use: opening it exclusively failed", on(path, device))?;
                if !processes.is_empty() {
                    write!(f, ", and {} has it open", processes.join(", "))?;
                }
                write!(f, ": stop what uses it (`lsof {}`), or choose another", word(device))
            }
            Self::Partitioned { path, partitions } => {
                let list: Vec<_> = partitions.iter().map(|p| p.display().to_string()).collect();
                write!(
                    f,
                    "{} has partitions ({}): name one of them, or, if nobody needs their contents, \
                     wipe the table with `wipefs --all {2}` and read it in again with `partprobe {2}`",
                    path.display(),
                    list.join(", "),
                    word(path),
                )
            }
            Self::Signature { path, signature } => write!(
                f,
                "{} carries {signature}: it holds data; if nobody needs that, wipe it with \
                 `wipefs --all {1}` (or `blkdiscard {1}`), or choose another",
                path.display(),
                word(path)
            ),
            Self::LongtakeArray { path, signature } => write!(
                f,
                "{} is a {} already: record into that array, extract what you need, or create a new \
                 one over it with --force-new-array",
                path.display(),
                signature.name,
            ),
            Self::NoArray { path } => write!(
                f,
                "{} is not a member of a Longtake array: create one with `longtake array create`",
                path.display()
            ),
            Self::ForeignContent { path, offset } => write!(
                f,
                "{} is not empty (its first data is at byte {offset}) and not Longtake's: give a file \
                 that doesn't exist yet, or, if nobody needs its contents, {}",
                path.display(),
                erase_argument(&path.display().to_string())
            ),
            Self::Unreadable { path, attempted, reason } => write!(
                f,
                "{} is not written, because it could not be inspected: {attempted} failed: {reason}",
                path.display()
            ),
            Self::Changed { path } => write!(
                f,
                "{} became another device while it was being checked: look at it again with `longtake \
                 drives`",
                path.display()
            ),
            Self::NotConfirmed { path, argument, model, size_bytes } => write!(
                f,
                "everything on {} ({}, {}) would be erased: if that is meant, add {argument}",
                path.display(),
                model.as_deref().unwrap_or("model not known"),
                ByteSize(*size_bytes),
            ),
        }
    }
}

/// A path in a command to copy.
fn word(path: &std::path::Path) -> String {
    quoted(&path.to_string_lossy())
}

/// `/dev/sda`, or `/dev/sda (through /dev/sda2)`.
fn on(path: &std::path::Path, device: &std::path::Path) -> String {
    if path == device {
        path.display().to_string()
    } else {
        format!("{} (through {})", path.display(), device.display())
    }
}

/// The argument that confirms a drive, quoted for a shell where it must be.
pub(crate) fn erase_argument(word: &str) -> String {
    format!("--erase {}", quoted(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_is_quoted_where_a_shell_would_split_it() {
        assert_eq!(erase_argument("S4X-12"), "--erase S4X-12");
        assert_eq!(erase_argument("/dev/loop3"), "--erase /dev/loop3");
        assert_eq!(erase_argument("WD 12'3"), r"--erase 'WD 12'\''3'");
    }

    #[test]
    fn a_reason_names_the_partition_it_was_found_on() {
        let refusal = Refusal::Mounted {
            path: "/dev/nvme0n1".into(),
            device: "/dev/nvme0n1p2".into(),
            mount_point: "/home".into(),
            filesystem: "ext4".into(),
            process: None,
        };
        let text = refusal.to_string();
        assert!(
            text.starts_with("/dev/nvme0n1 (through /dev/nvme0n1p2) is mounted at /home (ext4)")
        );
        assert!(text.contains("unmount"), "{text}");
    }
}
