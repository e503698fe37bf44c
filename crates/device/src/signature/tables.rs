//! Partition tables: GPT at both ends, MBR told from the boot sectors that look like one, Apple, Sun.

use std::io;

use super::filesystems::is_fat;
use super::{Content, Medium, Signature, be16, le16, signature};

pub(super) fn find(medium: &Medium<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    gpt(medium, found)?;
    let Some(sector) = medium.bytes(0, 512)? else { return Ok(()) };
    let mut push = |name, offset| found.push(signature(Content::PartitionTable, name, offset));
    if let Some(name) = boot_record(&sector) {
        push(name, 510);
    }
    if is_sun(&sector) {
        push("Sun disk label", 508);
    }
    // Inside Macintosh: Devices, 3-12: driver descriptor in block 0, partition map from block 1 on.
    if &sector[..2] == b"ER" && medium.has(512, b"PM")? {
        push("Apple partition map", 512);
    }
    Ok(())
}

/// UEFI Specification 2.10, 5.3.2: header in the second block, copy in the last one.
fn gpt(medium: &Medium<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    let names = [("GPT", false), ("GPT (the copy at the end)", true)];
    for (name, at_end) in names {
        for block in [512, 4096] {
            let offset = if at_end { medium.before_end(block) } else { Some(block) };
            if let Some(offset) = offset
                && medium.has(offset, b"EFI PART")?
            {
                found.push(signature(Content::PartitionTable, name, offset));
            }
        }
    }
    Ok(())
}

/// UEFI Specification 2.10, 5.2.1. The last two bytes alone also end the boot sectors of FAT, exFAT,
/// NTFS and BitLocker, which are named elsewhere. In a table every boot flag is 0 or 0x80; otherwise
/// it is somebody's boot code.
fn boot_record(sector: &[u8]) -> Option<&'static str> {
    let named = is_fat(sector) || matches!(&sector[3..11], b"NTFS    " | b"EXFAT   " | b"-FVE-FS-");
    if le16(sector, 510) != 0xAA55 || named {
        return None;
    }
    let table = sector[446..510].chunks_exact(16).all(|entry| matches!(entry[0], 0 | 0x80));
    Some(if table { "MBR" } else { "boot sector" })
}

/// Kernel block/partitions/sun.c: 0xDABE, and all 256 big-endian words add up to zero by exclusive or.
fn is_sun(sector: &[u8]) -> bool {
    let sum = (0..512).step_by(2).fold(0, |sum, at| sum ^ be16(sector, at));
    be16(sector, 508) == 0xDABE && sum == 0
}
