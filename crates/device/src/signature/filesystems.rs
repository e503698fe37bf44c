//! File systems whose mark is too short to be believed alone, or wanders.

use std::io;

use super::{Content, Medium, Signature, be16, be32, le16, le32, signature};

pub(super) fn find(medium: &Medium<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    let checks = [ext, fat, hfs, nilfs, udf];
    for check in checks {
        if let Some((name, offset)) = check(medium)? {
            found.push(signature(Content::FileSystem, name, offset));
        }
    }
    Ok(())
}

type Found = io::Result<Option<(&'static str, u64)>>;

/// ext2, ext3, ext4 and an external journal: kernel Documentation/filesystems/ext4/super.rst. The mark
/// is 0xEF53, two bytes; the block size and count must make sense too.
fn ext(medium: &Medium<'_>) -> Found {
    const SUPERBLOCK: u64 = 1024;
    const COMPAT_JOURNAL: u32 = 0x4;
    const INCOMPAT_JOURNAL_DEVICE: u32 = 0x8;
    // What ext3 knows: filetype, recover, meta_bg. Anything more makes it ext4.
    const INCOMPAT_EXT3: u32 = 0x2 | 0x4 | 0x10;
    const RO_COMPAT_EXT3: u32 = 0x1 | 0x2 | 0x4;

    let Some(block) = medium.bytes(SUPERBLOCK, 256)? else { return Ok(None) };
    let log_block = le32(&block, 0x18);
    if le16(&block, 0x38) != 0xEF53 || log_block > 6 || le32(&block, 0x04) == 0 {
        return Ok(None);
    }
    let (compat, incompat, ro_compat) =
        (le32(&block, 0x5C), le32(&block, 0x60), le32(&block, 0x64));
    let name = if incompat & INCOMPAT_JOURNAL_DEVICE != 0 {
        "ext journal"
    } else if incompat & !INCOMPAT_EXT3 != 0 || ro_compat & !RO_COMPAT_EXT3 != 0 {
        "ext4"
    } else if compat & COMPAT_JOURNAL != 0 {
        "ext3"
    } else {
        "ext2"
    };
    Ok(Some((name, SUPERBLOCK + 0x38)))
}

/// FAT: Microsoft, "FAT: General Overview of On-Disk Format" 1.03. The type strings are only hints
/// there, so a boot sector whose parameter block makes sense counts without them.
fn fat(medium: &Medium<'_>) -> Found {
    let Some(sector) = medium.bytes(0, 512)? else { return Ok(None) };
    Ok(is_fat(&sector).then_some(("vfat", 0)))
}

/// Whether a first sector is a FAT boot sector. exFAT and NTFS leave the counts in it at zero.
pub(super) fn is_fat(sector: &[u8]) -> bool {
    let bytes_per_sector = le16(sector, 11);
    let sectors_per_cluster = sector[13];
    let (reserved, copies, media) = (le16(sector, 14), sector[16], sector[21]);
    let total = u32::from(le16(sector, 19)).max(le32(sector, 32));
    let jump = sector[0] == 0xE9 || (sector[0] == 0xEB && sector[2] == 0x90);
    jump && matches!(bytes_per_sector, 512 | 1024 | 2048 | 4096)
        && sectors_per_cluster.is_power_of_two()
        && reserved > 0
        && (1..=2).contains(&copies)
        && (media == 0xF0 || media >= 0xF8)
        && total > 0
}

/// HFS and HFS+: Apple technical note TN1150, and "Inside Macintosh: Files", 2-60.
fn hfs(medium: &Medium<'_>) -> Found {
    let Some(header) = medium.bytes(1024, 64)? else { return Ok(None) };
    let plus = matches!((&header[..2], be16(&header, 2)), (b"H+", 4) | (b"HX", 5));
    if plus {
        return Ok(Some(("hfsplus", 1024)));
    }
    let allocation = be32(&header, 0x14);
    let classic = &header[..2] == b"BD" && allocation != 0 && allocation.is_multiple_of(512);
    Ok(classic.then_some(("hfs", 1024)))
}

/// NILFS2: kernel include/uapi/linux/nilfs2_ondisk.h. Two bytes of mark behind revision 2.
fn nilfs(medium: &Medium<'_>) -> Found {
    let Some(header) = medium.bytes(1024, 16)? else { return Ok(None) };
    let known = le32(&header, 0) == 2 && le16(&header, 6) == 0x3434;
    Ok(known.then_some(("nilfs2", 1024 + 6)))
}

/// UDF: ECMA-167 part 2, 8.3: a sequence of descriptors from 32 KiB on, 2 KiB (or one sector) apart,
/// opened by BEA01; an NSR descriptor makes it UDF.
fn udf(medium: &Medium<'_>) -> Found {
    const START: u64 = 32 * 1024;
    const DESCRIPTORS_MAX: u64 = 64;
    for step in [2048, 4096] {
        for n in 0..DESCRIPTORS_MAX {
            let offset = START + n * step + 1;
            let Some(id) = medium.bytes(offset, 5)? else { break };
            match id.as_slice() {
                b"NSR02" | b"NSR03" => return Ok(Some(("udf", offset))),
                b"BEA01" | b"CD001" | b"BOOT2" | b"CDW02" => {}
                _ => break,
            }
        }
    }
    Ok(None)
}
