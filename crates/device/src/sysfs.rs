//! Block devices as the kernel shows them in `/sys`, `/proc` and `/dev`.
//!
//! Everything that asks about drives goes through a [`System`], so that a made-up tree can stand in
//! for the machine: [`System::at`] takes any folder that has `sys`, `proc` and `dev` in it.
//! Sources: the kernel's `Documentation/ABI/stable/sysfs-block` and `Documentation/ABI/testing/sysfs-nvme`.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// Unit of every size and offset in sysfs, whatever the drive's block size is.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Where the kernel tells about its devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// The sysfs mount, `/sys`.
    pub sys: PathBuf,
    /// The procfs mount, `/proc`.
    pub proc: PathBuf,
    /// The folder of device nodes, `/dev`.
    pub dev: PathBuf,
}

impl Default for System {
    /// This machine.
    fn default() -> Self {
        Self::at(Path::new("/"))
    }
}

impl System {
    /// The system whose `sys`, `proc` and `dev` lie under `root`.
    pub fn at(root: &Path) -> Self {
        Self { sys: root.join("sys"), proc: root.join("proc"), dev: root.join("dev") }
    }

    /// Every whole block device, hidden multipath legs left out, by name.
    ///
    /// # Errors
    /// If `/sys/block` can't be listed.
    pub(crate) fn disks(&self) -> io::Result<Vec<BlockDevice>> {
        let mut disks: Vec<_> = names_in(&self.sys.join("block"))?
            .into_iter()
            .filter_map(|name| self.block_by_name(&name))
            .filter(|disk| disk.number_attribute("hidden") != Some(1))
            .collect();
        disks.sort_by_key(|disk| natural(&disk.name));
        Ok(disks)
    }

    /// The block device that the kernel calls `name`: a whole drive or a partition.
    pub(crate) fn block_by_name(&self, name: &str) -> Option<BlockDevice> {
        let entry = self.sys.join("class/block").join(name);
        let entry = if entry.exists() { entry } else { self.sys.join("block").join(name) };
        BlockDevice::at(fs::canonicalize(entry).ok()?)
    }

    /// The block device with this number.
    pub(crate) fn block_by_number(&self, number: DeviceNumber) -> Option<BlockDevice> {
        let entry = self.sys.join("dev/block").join(number.to_string());
        BlockDevice::at(fs::canonicalize(entry).ok()?)
    }

    /// The namespace that an NVMe generic character device (`/dev/ng*`) reads and writes.
    ///
    /// The two need not carry the same digits: with multipath on, a private namespace is
    /// `ng<controller>n<n>` but `nvme<subsystem>n<n>`. So the way leads through the parent that both
    /// hang on, where only the last number must agree.
    pub(crate) fn namespace_of_generic(&self, number: DeviceNumber) -> Option<BlockDevice> {
        let entry = self.sys.join("dev/char").join(number.to_string());
        let generic = fs::canonicalize(entry).ok()?;
        let name = generic.file_name()?.to_str()?.to_owned();
        let namespace = name.strip_prefix("ng")?.split_once('n')?.1.to_owned();
        let parent = fs::canonicalize(generic.join("device"))
            .ok()
            .or_else(|| generic.parent().map(Path::to_owned))?;
        let sibling = names_in(&parent).ok()?.into_iter().find(|name| {
            name.strip_prefix("nvme")
                .and_then(|rest| rest.split_once('n'))
                .is_some_and(|(head, n)| n == namespace && is_digits(head))
        })?;
        self.block_by_name(&sibling)
    }

    /// Where the node of a kernel name lies. The kernel writes `!` for a slash in names.
    pub(crate) fn node(&self, name: &str) -> PathBuf {
        self.dev.join(name.replace('!', "/"))
    }

    /// What a path is, after following symbolic links.
    ///
    /// # Errors
    /// If it can't be looked at for another reason than that it isn't there.
    pub(crate) fn resolve(&self, path: &Path) -> io::Result<Node> {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Node::Missing),
            Err(error) => return Err(error),
        };
        let kind = metadata.file_type();
        let number = DeviceNumber::from_raw(metadata.rdev());
        Ok(if kind.is_block_device() {
            match self.block_by_number(number) {
                Some(device) => Node::Block(device),
                None => Node::Unknown(number),
            }
        } else if kind.is_char_device() {
            match self.namespace_of_generic(number) {
                Some(device) => Node::Generic(device),
                None => Node::Other("a character device"),
            }
        } else if kind.is_file() {
            Node::File(metadata)
        } else if kind.is_dir() {
            Node::Other("a directory")
        } else {
            Node::Other("a pipe or socket")
        })
    }
}

/// What a path turned out to be.
#[derive(Debug)]
pub(crate) enum Node {
    /// A block device that sysfs knows.
    Block(BlockDevice),
    /// An NVMe generic device, with the namespace behind it.
    Generic(BlockDevice),
    /// A block device node that sysfs has nothing about: stale, or of a container without `/sys`.
    Unknown(DeviceNumber),
    /// A regular file.
    File(fs::Metadata),
    /// Nothing is there.
    Missing,
    /// Something that can't be a drive, in words.
    Other(&'static str),
}

/// A device's major and minor number. Prints as `259:3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// Which driver.
    pub major: u32,
    /// Which of the driver's devices.
    pub minor: u32,
}

impl DeviceNumber {
    /// From `st_rdev` or `st_dev`.
    pub fn from_raw(raw: u64) -> Self {
        Self { major: libc::major(raw), minor: libc::minor(raw) }
    }

    /// From `259:3`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl Serialize for DeviceNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A block device's place in sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockDevice {
    /// The kernel's name, `nvme0n1p2`.
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    /// Its own folder, without symbolic links.
    pub directory: PathBuf,
}

impl BlockDevice {
    fn at(directory: PathBuf) -> Option<Self> {
        let name = directory.file_name()?.to_str()?.to_owned();
        // A hidden multipath leg has no number of its own.
        let number = attribute(&directory, "dev").and_then(|text| DeviceNumber::parse(&text))?;
        Some(Self { name, number, directory })
    }

    /// Its size, in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.number_attribute("size").unwrap_or(0).saturating_mul(SECTOR_BYTES)
    }

    /// The drive that it is a partition of.
    pub fn whole(&self) -> Option<Self> {
        if !self.directory.join("partition").exists() {
            return None;
        }
        Self::at(self.directory.parent()?.to_owned())
    }

    /// Its partitions, by number.
    pub fn partitions(&self) -> Vec<Self> {
        let mut partitions: Vec<_> = names_in(&self.directory)
            .unwrap_or_default()
            .into_iter()
            .map(|name| self.directory.join(name))
            .filter(|directory| directory.join("partition").exists())
            .filter_map(Self::at)
            .collect();
        partitions.sort_by_key(|p| p.number_attribute("partition"));
        partitions
    }

    /// Where it lies on its drive, in bytes: all of it, unless it is a partition.
    pub fn extent(&self) -> std::ops::Range<u64> {
        let start = self.number_attribute("start").unwrap_or(0).saturating_mul(SECTOR_BYTES);
        start..start.saturating_add(self.size_bytes())
    }

    /// A one-line file of its folder; None if it is absent or empty.
    pub fn attribute(&self, name: &str) -> Option<String> {
        attribute(&self.directory, name)
    }

    /// The same as a number.
    pub fn number_attribute(&self, name: &str) -> Option<u64> {
        self.attribute(name)?.parse().ok()
    }
}

/// A one-line file, trimmed; None if it is absent, unreadable or empty.
pub(crate) fn attribute(directory: &Path, name: &str) -> Option<String> {
    let bytes = fs::read(directory.join(name)).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

/// The names in a folder that are UTF-8 (all the kernel's are).
pub(crate) fn names_in(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        if let Ok(name) = entry?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_by_key(|name| natural(name));
    Ok(names)
}

pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Sorts `nvme10n1` behind `nvme9n1`: digits compare as numbers.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let word = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(word);
        let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(digits);
        parts.push((text.to_owned(), number.parse().unwrap_or(0)));
        rest = tail;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_the_numbers_in_them() {
        let mut names = vec!["nvme10n1", "sda", "nvme9n2", "nvme9n1"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["nvme9n1", "nvme9n2", "nvme10n1", "sda"]);
    }

    #[test]
    fn a_device_number_reads_back_as_it_prints() {
        let number = DeviceNumber { major: 259, minor: 70_000 };
        assert_eq!(DeviceNumber::parse(&number.to_string()), Some(number));
        assert_eq!(DeviceNumber::from_raw(libc::makedev(259, 70_000)), number);
        assert_eq!(DeviceNumber::parse("259"), None);
    }
}
