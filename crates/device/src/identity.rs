//! Which drives there are and what each one is: maker's model and serial, size, link, wear, and what
//! stands on it.
//!
//! Two ways in: [`drives`] lists every whole drive of the machine, [`describe`] tells about one target,
//! which may also be a partition, an NVMe generic device (`/dev/ng*`) or a file.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::holders::{self, Holder};
use crate::link::{self, Link};
use crate::loops;
use crate::overlap;
use crate::sysfs::{BlockDevice, DeviceNumber, Node, SECTOR_BYTES, System, attribute, names_in};
use crate::wear::{self, Wear};

/// A drive, a partition or a file that may be recorded on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drive {
    /// As it was asked for; in a list, the same as `device`.
    pub path: PathBuf,
    /// The block device's own node: behind symbolic links, and behind `/dev/ng*`. None for a file.
    pub device: Option<PathBuf>,
    /// The block device's number. None for a file.
    pub number: Option<DeviceNumber>,
    /// What it is.
    pub kind: Kind,
    /// The drive that this is a partition of; model, serial and link are that drive's.
    pub partition_of: Option<PathBuf>,
    /// The maker's name of the model.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// World-wide name: EUI-64, NGUID or UUID of an NVMe namespace, NAA name of a SCSI disk.
    pub wwid: Option<String>,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Unit of addressing in bytes.
    pub logical_block_bytes: u64,
    /// Unit of writing without read-modify-write in bytes, as the drive reports it.
    pub physical_block_bytes: u64,
    /// Whether it has platters. None for a file.
    pub rotational: Option<bool>,
    /// Whether the kernel lets nobody write it.
    pub read_only: bool,
    /// How it is joined to the host, where that is known.
    pub link: Option<Link>,
    /// What only an NVMe namespace has.
    pub nvme: Option<Namespace>,
    /// The file or device behind a loop device.
    pub backing: Option<PathBuf>,
    /// How much of its life is used.
    pub wear: Wear,
    /// Its partitions, as the kernel sees them.
    pub partitions: Vec<Partition>,
    /// What the kernel has put on top of it or of its partitions.
    pub holders: Vec<Holder>,
}

/// Kinds of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An NVMe namespace.
    Nvme,
    /// A SATA disk (which Linux shows as a SCSI disk).
    Sata,
    /// A SCSI, SAS or USB disk.
    Scsi,
    /// A virtual machine's disk.
    Virtio,
    /// A loop device.
    Loop,
    /// A Linux software RAID.
    Md,
    /// A device mapper device: LVM, encryption, multipath.
    DeviceMapper,
    /// Another block device.
    Other,
    /// A regular file.
    File,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nvme => "NVMe",
            Self::Sata => "SATA",
            Self::Scsi => "SCSI",
            Self::Virtio => "virtio",
            Self::Loop => "loop",
            Self::Md => "md",
            Self::DeviceMapper => "dm",
            Self::Other => "other",
            Self::File => "file",
        })
    }
}

/// An NVMe namespace's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Namespace {
    /// Namespace identifier, from 1.
    pub id: Option<u32>,
    /// The controllers through which it is reached, `nvme0`.
    pub controllers: Vec<String>,
    /// The subsystem that they belong to, `nvme-subsys0`.
    pub subsystem: Option<String>,
    /// The subsystem's qualified name.
    pub subsystem_nqn: Option<String>,
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Partition {
    /// Its node.
    pub path: PathBuf,
    /// Its number in the table, from 1.
    pub index: u32,
    /// Where it starts on the drive, in bytes.
    pub start_bytes: u64,
    /// Its size in bytes.
    pub size_bytes: u64,
}

impl Drive {
    /// What a user must type to confirm that this drive, and no other, may be erased: its serial
    /// number; where it has none (loop devices, many virtual disks), the kernel's name of its node
    /// (`/dev/loop3`). None for a file, which needs no confirmation.
    pub fn confirmation(&self) -> Option<String> {
        let device = self.device.as_ref()?;
        Some(self.serial.clone().unwrap_or_else(|| device.display().to_string()))
    }
}

/// Why a target can't be described.
#[derive(Debug)]
pub enum IdentityError {
    /// Nothing is there.
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// It is there, and is no drive, partition or file.
    NotADrive {
        /// The path.
        path: PathBuf,
        /// What it is instead.
        found: &'static str,
    },
    /// It is a block device node, and sysfs knows no such device.
    Unknown {
        /// The path.
        path: PathBuf,
        /// The node's number.
        number: DeviceNumber,
    },
    /// The operating system refused to tell.
    Io {
        /// What was tried.
        attempted: &'static str,
        /// On which path.
        path: PathBuf,
        /// Its answer.
        error: io::Error,
    },
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { path } => write!(
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
            Self::Unknown { path, number } => write!(
                f,
                "{} is block device {number}, which /sys doesn't know: the node is stale, or /sys is \
                 not mounted here",
                path.display()
            ),
            Self::Io { attempted, path, error } => {
                write!(f, "{attempted} {} failed: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for IdentityError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Every whole drive of this machine that has a size, by name.
///
/// # Errors
/// If the machine's drives can't be listed.
pub fn drives() -> Result<Vec<Drive>, IdentityError> {
    drives_of(&System::default())
}

/// [`drives`] of another system.
///
/// # Errors
/// As [`drives`].
pub fn drives_of(system: &System) -> Result<Vec<Drive>, IdentityError> {
    let disks = system.disks().map_err(|error| IdentityError::Io {
        attempted: "listing the block devices in",
        path: system.sys.join("block"),
        error,
    })?;
    // Loop devices that are not set up and empty card readers have no size, nor has what is gone by now.
    let disks = disks.iter().filter(|disk| disk.size_bytes() > 0);
    let drives = disks.map(|disk| of_block(system, &system.node(&disk.name), disk));
    Ok(drives.filter(|drive| drive.size_bytes > 0).collect())
}

/// What is known of one target.
///
/// # Errors
/// If it isn't there, or is neither a drive nor a file.
pub fn describe(path: &Path) -> Result<Drive, IdentityError> {
    describe_in(&System::default(), path)
}

/// [`describe`] in another system. The path is taken as it is, not below the system's root.
///
/// # Errors
/// As [`describe`].
pub fn describe_in(system: &System, path: &Path) -> Result<Drive, IdentityError> {
    let node = system.resolve(path).map_err(|error| IdentityError::Io {
        attempted: "looking at",
        path: path.to_owned(),
        error,
    })?;
    match node {
        Node::Block(device) | Node::Generic(device) => Ok(of_block(system, path, &device)),
        Node::File(metadata) => Ok(of_file(system, path, &metadata)),
        Node::Missing => Err(IdentityError::NotFound { path: path.to_owned() }),
        Node::Unknown(number) => Err(IdentityError::Unknown { path: path.to_owned(), number }),
        Node::Other(found) => Err(IdentityError::NotADrive { path: path.to_owned(), found }),
    }
}

/// A block device, asked for as `path`.
pub(crate) fn of_block(system: &System, path: &Path, device: &BlockDevice) -> Drive {
    let whole = device.whole();
    let disk = whole.as_ref().unwrap_or(device);
    // Canonical, so that the names of parent folders (controller, port, bus) can be read off.
    let parent = fs::canonicalize(disk.directory.join("device")).ok();
    let kind = kind_of(disk, parent.as_deref());
    let nvme = parent.as_deref().filter(|_| kind == Kind::Nvme).map(|p| namespace(system, disk, p));
    let about = |names: &[&str]| names.iter().find_map(|name| disk.attribute(name));
    Drive {
        path: path.to_owned(),
        device: Some(system.node(&device.name)),
        number: Some(device.number),
        kind,
        partition_of: whole.as_ref().map(|whole| system.node(&whole.name)),
        model: about(&["device/model"]),
        serial: about(&["device/serial", "serial"]).or_else(|| unit_serial(disk)),
        firmware: about(&["device/firmware_rev", "device/rev"]),
        wwid: about(&["wwid", "device/wwid"]),
        size_bytes: device.size_bytes(),
        logical_block_bytes: disk.number_attribute("queue/logical_block_size").unwrap_or(512),
        physical_block_bytes: disk.number_attribute("queue/physical_block_size").unwrap_or(512),
        rotational: disk.number_attribute("queue/rotational").map(|n| n == 1),
        read_only: device.number_attribute("ro") == Some(1)
            || disk.number_attribute("ro") == Some(1),
        link: link_place(system, disk, nvme.as_ref()).and_then(|place| place.read()),
        wear: wear_of(system, kind, nvme.as_ref()),
        nvme,
        backing: loops::describe(system, disk.clone()).map(|found| found.path),
        partitions: partitions(system, device),
        holders: holders::of_devices(system, &overlap::devices(system, device)),
    }
}

fn of_file(system: &System, path: &Path, metadata: &fs::Metadata) -> Drive {
    let block = metadata.blksize();
    Drive {
        path: path.to_owned(),
        device: None,
        number: None,
        kind: Kind::File,
        partition_of: None,
        model: None,
        serial: None,
        firmware: None,
        wwid: None,
        size_bytes: metadata.len(),
        logical_block_bytes: SECTOR_BYTES,
        physical_block_bytes: block,
        rotational: None,
        read_only: metadata.permissions().readonly(),
        link: None,
        nvme: None,
        backing: None,
        wear: Wear::unknown("a file reports no wear"),
        partitions: Vec::new(),
        holders: holders::of_file(system, path, metadata),
    }
}

/// By the driver that made it; the name decides only where drivers have no bus.
fn kind_of(disk: &BlockDevice, parent: Option<&Path>) -> Kind {
    let has = |entry: &str| disk.directory.join(entry).exists();
    let bus = parent
        .and_then(|parent| fs::canonicalize(parent.join("subsystem")).ok())
        .and_then(|bus| bus.file_name().map(|name| name.to_string_lossy().into_owned()));
    match bus.as_deref() {
        Some("nvme" | "nvme-subsystem") => Kind::Nvme,
        Some("virtio") => Kind::Virtio,
        Some("scsi") if link::is_ata(&disk.directory) => Kind::Sata,
        Some("scsi") => Kind::Scsi,
        _ if has("dm") => Kind::DeviceMapper,
        _ if has("md") => Kind::Md,
        _ if disk.name.starts_with("loop") => Kind::Loop,
        _ => Kind::Other,
    }
}

/// A SCSI disk's Unit Serial Number page (SPC-4, 7.8.16): four bytes of header, then text.
fn unit_serial(disk: &BlockDevice) -> Option<String> {
    let page = fs::read(disk.directory.join("device/vpd_pg80")).ok()?;
    let text = String::from_utf8_lossy(page.get(4..)?).into_owned();
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

/// Without multipath a namespace hangs on its controller; with multipath on the subsystem, which links
/// to its controllers.
fn namespace(system: &System, disk: &BlockDevice, parent: &Path) -> Namespace {
    let name = parent.file_name().map(|name| name.to_string_lossy().into_owned());
    let on_subsystem = name.as_ref().is_some_and(|name| name.starts_with("nvme-subsys"));
    let (controllers, subsystem) = if on_subsystem {
        let links = names_in(parent).unwrap_or_default();
        (links.into_iter().filter(|name| is_controller(name)).collect(), name)
    } else {
        let class = system.sys.join("class/nvme-subsystem");
        let subsystem = names_in(&class).unwrap_or_default().into_iter().find(|subsystem| {
            name.as_ref().is_some_and(|controller| class.join(subsystem).join(controller).exists())
        });
        (name.into_iter().collect(), subsystem)
    };
    Namespace {
        id: disk.number_attribute("nsid").and_then(|id| u32::try_from(id).ok()),
        controllers,
        subsystem,
        subsystem_nqn: attribute(parent, "subsysnqn"),
    }
}

fn is_controller(name: &str) -> bool {
    name.strip_prefix("nvme").is_some_and(crate::sysfs::is_digits)
}

/// Where a disk's link is to be read.
pub(crate) fn link_place(
    system: &System,
    disk: &BlockDevice,
    nvme: Option<&Namespace>,
) -> Option<link::Place> {
    let Some(namespace) = nvme else { return Some(link::Place::Sata(disk.directory.clone())) };
    let controller = namespace.controllers.first()?;
    Some(link::Place::Pcie(system.sys.join("class/nvme").join(controller).join("device")))
}

/// A controller's node, and its number by sysfs.
pub(crate) fn controller_node(
    system: &System,
    controller: &str,
) -> (PathBuf, Option<DeviceNumber>) {
    let folder = system.sys.join("class/nvme").join(controller);
    let number = attribute(&folder, "dev").and_then(|text| DeviceNumber::parse(&text));
    (system.dev.join(controller), number)
}

fn wear_of(system: &System, kind: Kind, nvme: Option<&Namespace>) -> Wear {
    let Some(namespace) = nvme else {
        return Wear::unknown(match kind {
            Kind::Sata | Kind::Scsi => "Longtake reads it from NVMe drives only",
            _ => "it is not a drive that wears",
        });
    };
    let Some(controller) = namespace.controllers.first() else {
        return Wear::unknown("the namespace has no controller in /sys");
    };
    let (node, number) = controller_node(system, controller);
    wear::read(&node, number)
}

fn partitions(system: &System, device: &BlockDevice) -> Vec<Partition> {
    let describe = |partition: BlockDevice| Partition {
        path: system.node(&partition.name),
        index: partition.number_attribute("partition").and_then(|n| n.try_into().ok()).unwrap_or(0),
        start_bytes: partition.extent().start,
        size_bytes: partition.size_bytes(),
    };
    device.partitions().into_iter().map(describe).collect()
}
