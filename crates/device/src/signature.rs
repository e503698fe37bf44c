//! What lies on a drive, by its known marks: file systems, partition tables, volume managers, RAID,
//! encryption, swap, disk images, and Longtake's own arrays.
//!
//! It only ever reads, at fixed places at both ends, and calls no external program. Where a mark is
//! short enough to turn up by chance, the structure around it must make sense as well.

mod filesystems;
mod magics;
mod tables;
mod volumes;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::Serialize;

/// One mark that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Signature {
    /// What kind of thing it marks.
    pub kind: Content,
    /// What it is called: `ext4`, `GPT`, `LVM2 physical volume`.
    pub name: String,
    /// Where the mark lies, in bytes from the start.
    pub offset: u64,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, found at byte {})", self.name, self.kind, self.offset)
    }
}

/// Kinds of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// A file system, or a part of one.
    FileSystem,
    /// A partition table or boot sector.
    PartitionTable,
    /// A member of a volume manager's or storage system's pool.
    Volume,
    /// A member of a RAID or of a mirror over the network.
    Raid,
    /// Encrypted data.
    Encrypted,
    /// Swap space or a suspended system.
    Swap,
    /// A disk image or capture file, as a whole.
    Image,
    /// A member of a Longtake array.
    LongtakeArray,
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FileSystem => "file system",
            Self::PartitionTable => "partition table",
            Self::Volume => "member of a storage pool",
            Self::Raid => "member of a RAID",
            Self::Encrypted => "encrypted data",
            Self::Swap => "swap space",
            Self::Image => "disk image or capture",
            Self::LongtakeArray => "Longtake array",
        })
    }
}

/// Finds every known mark on a device or file of `size` bytes.
///
/// # Errors
/// If a place can't be read: what lies there is then not known, so nothing may be concluded.
pub fn detect(file: &File, size: u64) -> io::Result<Vec<Signature>> {
    let medium = Medium { file, size };
    let mut found = Vec::new();
    magics::find(&medium, &mut found)?;
    filesystems::find(&medium, &mut found)?;
    volumes::find(&medium, &mut found)?;
    tables::find(&medium, &mut found)?;
    Ok(found)
}

/// Read-only bytes with an end.
struct Medium<'a> {
    file: &'a File,
    size: u64,
}

impl Medium<'_> {
    /// `length` bytes from `offset`, or None if that reaches past the end.
    fn bytes(&self, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        let inside = offset.checked_add(length as u64).is_some_and(|end| end <= self.size);
        if !inside {
            return Ok(None);
        }
        let mut bytes = vec![0; length];
        match self.file.read_exact_at(&mut bytes, offset) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) => Err(io::Error::new(
                error.kind(),
                format!("reading {length} bytes at {offset}: {error}"),
            )),
        }
    }

    /// Whether these bytes lie there.
    fn has(&self, offset: u64, magic: &[u8]) -> io::Result<bool> {
        Ok(self.bytes(offset, magic.len())?.is_some_and(|bytes| bytes == magic))
    }

    /// An offset counted back from the end; None if the medium is shorter.
    fn before_end(&self, distance: u64) -> Option<u64> {
        self.size.checked_sub(distance)
    }
}

fn signature(kind: Content, name: impl Into<String>, offset: u64) -> Signature {
    Signature { kind, name: name.into(), offset }
}

fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    le16(bytes, at).swap_bytes()
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    le32(bytes, at).swap_bytes()
}

#[cfg(test)]
mod tests;
