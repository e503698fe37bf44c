//! What the kernel has put on top of a device: md, device mapper, bcache, loop, btrfs, swap.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::loops::{self, Backing};
use crate::mounts::{block_number, unescape};
use crate::overlap::Shared;
use crate::sysfs::{BlockDevice, System, attribute, is_digits, names_in};

/// Something that uses a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// The device that is used: the drive or one of its partitions; for a file, the file.
    pub device: PathBuf,
    /// What uses it: `/dev/md0`, `/dev/dm-3`, `/dev/loop1`, or a mount's or swap's name.
    pub by: String,
    /// In which way it is used.
    pub how: Use,
    /// The user's name for it, where there is one: a volume's, an array's.
    pub name: Option<String>,
}

/// Ways to use a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// Linux software RAID.
    Md,
    /// Device mapper: LVM, dm-crypt, multipath.
    DeviceMapper,
    /// A bcache device or cache set.
    Bcache,
    /// A loop device.
    Loop,
    /// A mounted btrfs, which may have several members.
    Btrfs,
    /// Swap space.
    Swap,
    /// A driver that Longtake doesn't know by name.
    Other,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Md => "software RAID",
            Self::DeviceMapper => "device mapper (LVM, encryption or multipath)",
            Self::Bcache => "bcache",
            Self::Loop => "a loop device",
            Self::Btrfs => "a mounted btrfs",
            Self::Swap => "swap space",
            Self::Other => "another driver",
        })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.device.display(), self.by)?;
        if let Some(name) = &self.name {
            write!(f, " ({name})")?;
        }
        Ok(())
    }
}

/// Everything that uses any of these devices. A holder that is itself one of them (the loop device
/// whose backing is looked at on its behalf) is left out.
pub(crate) fn of_devices(system: &System, shared: &[Shared]) -> Vec<Holder> {
    let devices: Vec<_> = shared.iter().map(|shared| &shared.device).collect();
    let mut holders = Vec::new();
    for &device in &devices {
        stacked(system, device, &mut holders);
        for (uuid, name) in btrfs_members(system) {
            if name == device.name {
                holders.push(Holder {
                    device: system.node(&device.name),
                    by: uuid,
                    how: Use::Btrfs,
                    name: None,
                });
            }
        }
    }
    for attached in loops::attached(system) {
        let Some(Backing::Block(number)) = attached.backing else { continue };
        let on = devices.iter().find(|device| device.number == number);
        let itself = devices.iter().any(|device| device.number == attached.device.number);
        if let (Some(device), false) = (on, itself) {
            holders.push(loop_holder(system, system.node(&device.name), &attached.device));
        }
    }
    for (path, _) in swaps(system) {
        let number = block_number(&path);
        if let Some(device) = devices.iter().find(|device| Some(device.number) == number) {
            holders.push(Holder {
                device: system.node(&device.name),
                by: path.display().to_string(),
                how: Use::Swap,
                name: None,
            });
        }
    }
    holders
}

/// Everything that uses a regular file: loop devices and swap.
pub(crate) fn of_file(system: &System, path: &Path, metadata: &fs::Metadata) -> Vec<Holder> {
    let backing = Backing::of(metadata);
    let attached = loops::attached(system);
    let loops = attached
        .iter()
        .filter(|attached| attached.backing == Some(backing))
        .map(|attached| loop_holder(system, path.to_owned(), &attached.device));
    let swaps = swaps(system).into_iter().filter(|(swap, _)| {
        fs::metadata(swap).is_ok_and(|m| (m.dev(), m.ino()) == (metadata.dev(), metadata.ino()))
    });
    let swaps = swaps.map(|(swap, _)| Holder {
        device: path.to_owned(),
        by: swap.display().to_string(),
        how: Use::Swap,
        name: None,
    });
    loops.chain(swaps).collect()
}

/// Loop devices that use the same file as `target`, which is a loop device itself.
pub(crate) fn beside_loop(system: &System, target: &BlockDevice) -> Vec<Holder> {
    let own = loops::describe(system, target.clone());
    let Some(Backing::File { .. }) = own.as_ref().and_then(|own| own.backing) else {
        return Vec::new();
    };
    let backing = own.as_ref().and_then(|own| own.backing);
    loops::attached(system)
        .into_iter()
        .filter(|other| other.device.number != target.number && other.backing == backing)
        .map(|other| loop_holder(system, other.path.clone(), &other.device))
        .collect()
}

fn loop_holder(system: &System, device: PathBuf, by: &BlockDevice) -> Holder {
    let by = system.node(&by.name).display().to_string();
    Holder { device, by, how: Use::Loop, name: None }
}

/// What stands in `holders/`, and bcache's own folder (a registered device without a cache set has
/// no holder yet).
fn stacked(system: &System, device: &BlockDevice, holders: &mut Vec<Holder>) {
    let before = holders.len();
    for by in names_in(&device.directory.join("holders")).unwrap_or_default() {
        let folder = device.directory.join("holders").join(&by);
        let (how, name) = if folder.join("dm").exists() {
            (Use::DeviceMapper, attribute(&folder, "dm/name"))
        } else if folder.join("md").exists() {
            (Use::Md, attribute(&folder, "md/level"))
        } else if by.starts_with("bcache") {
            (Use::Bcache, attribute(&folder, "bcache/label"))
        } else {
            (Use::Other, None)
        };
        let by = system.node(&by).display().to_string();
        holders.push(Holder { device: system.node(&device.name), by, how, name });
    }
    if holders.len() == before && device.directory.join("bcache").exists() {
        holders.push(Holder {
            device: system.node(&device.name),
            by: "bcache".to_owned(),
            how: Use::Bcache,
            name: attribute(&device.directory, "bcache/label"),
        });
    }
}

/// The members of mounted btrfs file systems: UUID and device name. Only one of several members
/// shows in the mount table.
fn btrfs_members(system: &System) -> Vec<(String, String)> {
    let root = system.sys.join("fs/btrfs");
    let mut members = Vec::new();
    for uuid in names_in(&root).unwrap_or_default() {
        let devices = names_in(&root.join(&uuid).join("devices")).unwrap_or_default();
        members.extend(devices.into_iter().map(|device| (uuid.clone(), device)));
    }
    members
}

/// `/proc/swaps`: path and type of each swap space in use (proc_swaps(5)).
fn swaps(system: &System) -> Vec<(PathBuf, String)> {
    let table = fs::read_to_string(system.proc.join("swaps")).unwrap_or_default();
    let rows = table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((PathBuf::from(unescape(words.next()?)), words.next()?.to_owned()))
    });
    rows.collect()
}

/// Most processes, and open files of each, that are looked through.
const PROCESSES_MAX: usize = 100_000;
const FILES_MAX: usize = 65_536;

/// Other processes that have one of these drives or files open, as `name (pid 123)`, as far as this user may see them: root sees
/// all of this machine's.
pub fn other_openers(paths: &[PathBuf]) -> Vec<String> {
    let nodes: Vec<PathBuf> = paths.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    let own = format!("(pid {})", std::process::id());
    let mut found = openers(&System::default(), &nodes);
    found.retain(|process| !process.ends_with(&own));
    found
}

/// Processes that have one of these nodes open, as `name (pid 123)`: only a hint for the user, from
/// what `/proc/<pid>/fd` names, because an exclusive opener isn't told by the kernel.
pub(crate) fn openers(system: &System, nodes: &[PathBuf]) -> Vec<String> {
    let processes = names_in(&system.proc).unwrap_or_default();
    let processes = processes.into_iter().filter(|name| is_digits(name)).take(PROCESSES_MAX);
    let opens = |process: &PathBuf| {
        let files = names_in(&process.join("fd")).unwrap_or_default();
        files.iter().take(FILES_MAX).any(|file| {
            fs::read_link(process.join("fd").join(file)).is_ok_and(|link| nodes.contains(&link))
        })
    };
    let describe = |process: PathBuf| {
        let name = attribute(&process, "comm").unwrap_or_else(|| "process".to_owned());
        let pid = process.file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!("{name} (pid {pid})")
    };
    processes.map(|pid| system.proc.join(pid)).filter(opens).map(describe).collect()
}
