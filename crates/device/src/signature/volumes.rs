//! Volume managers, RAID and encryption whose marks need looking around, and Longtake's own arrays.

use std::io;

use super::{Content, Medium, Signature, be16, be32, le16, le32, signature};

const KIB: u64 = 1024;

pub(super) fn find(medium: &Medium<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    longtake(medium, found)?;
    lvm2(medium, found)?;
    luks2_secondary(medium, found)?;
    md(medium, found)?;
    zfs(medium, found)?;
    drbd(medium, found)
}

/// A pcapng section header, and Longtake's record in it (`docs/format.md`, sections 1 and 2): at the
/// start, and at the copy in the last 64 KiB that end on a multiple of 4 KiB.
fn longtake(medium: &Medium<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const SECTION_HEADER: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];
    const KIND_SUPERBLOCK: u16 = 1;
    let copy = (medium.size & !(4 * KIB - 1)).checked_sub(64 * KIB).filter(|&offset| offset > 0);
    for offset in std::iter::once(0).chain(copy) {
        let Some(header) = medium.bytes(offset, 80)? else { continue };
        if header[..4] != SECTION_HEADER {
            continue;
        }
        let ours = &header[32..40] == b"LONGTAKE";
        if ours && le16(&header, 40) == KIND_SUPERBLOCK {
            let array: String = header[64..80].iter().map(|byte| format!("{byte:02x}")).collect();
            let name = format!("member of Longtake array {array}");
            found.push(signature(Content::LongtakeArray, name, offset));
        } else if offset == 0 {
            let name = if ours { "Longtake recording" } else { "pcapng file" };
            found.push(signature(Content::Image, name, offset));
        }
    }
    Ok(())
}

/// LVM2: lib/format_text/layout.h; the label is in one of the first four sectors.
fn lvm2(medium: &Medium<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    for sector in 0..4u64 {
        let Some(label) = medium.bytes(sector * 512, 32)? else { break };
        if &label[..8] == b"LABELONE" && &label[24..32] == b"LVM2 001" {
            found.push(signature(Content::Volume, "LVM2 physical volume", sector * 512));
        }
    }
    Ok(())
}

/// The second header of LUKS2, which survives when the first is overwritten: LUKS2 On-Disk Format
/// 1.1, 2.1. It knows its own offset.
fn luks2_secondary(medium: &Medium<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const OFFSETS_KIB: [u64; 9] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
    for offset in OFFSETS_KIB.map(|kib| kib * KIB) {
        let Some(header) = medium.bytes(offset, 264)? else { break };
        let own_offset = u64::from(be32(&header, 256)) << 32 | u64::from(be32(&header, 260));
        if &header[..6] == b"SKUL\xBA\xBE" && be16(&header, 6) == 2 && own_offset == offset {
            found.push(signature(Content::Encrypted, "LUKS2 second header", offset));
        }
    }
    Ok(())
}

/// Linux software RAID: kernel include/uapi/linux/raid/md_p.h. Version 1.x is little endian and lies
/// at the start (1.1), at 4 KiB (1.2) or 8 KiB before the end, on 4 KiB (1.0); 0.90 is in the host's
/// order, in the last 64 KiB that start on 64 KiB.
fn md(medium: &Medium<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const MAGIC: u32 = 0xA92B_4EFC;
    let sectors = medium.size / 512;
    let at_end = sectors.checked_sub(16).map(|sector| (sector & !7) * 512);
    let old = (medium.size & !(64 * KIB - 1)).checked_sub(64 * KIB);
    let places = [
        ("md RAID member (1.1)", Some(0), 1),
        ("md RAID member (1.2)", Some(4 * KIB), 1),
        ("md RAID member (1.0)", at_end, 1),
        ("md RAID member (0.90)", old, 0),
    ];
    for (name, offset, major) in places {
        let Some(offset) = offset else { continue };
        let Some(header) = medium.bytes(offset, 8)? else { continue };
        let little = (le32(&header, 0), le32(&header, 4)) == (MAGIC, major);
        let big = major == 0 && (be32(&header, 0), be32(&header, 4)) == (MAGIC, 0);
        if little || big {
            found.push(signature(Content::Raid, name, offset));
        }
    }
    Ok(())
}

/// ZFS: "ZFS On-Disk Specification", chapter 1: four labels of 256 KiB, two at either end, each with a
/// name-value list at 16 KiB and a ring of uberblocks from 128 KiB.
fn zfs(medium: &Medium<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const LABEL: u64 = 256 * KIB;
    const UBERBLOCK: u64 = 0x00BA_B10C;
    let end = medium.size & !(LABEL - 1);
    let labels = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
    for (n, label) in labels.into_iter().enumerate() {
        let Some(label) = label else { continue };
        let Some(bytes) = medium.bytes(label, LABEL as usize)? else { continue };
        let ring = &bytes[128 * KIB as usize..];
        let uberblock = ring.chunks_exact(KIB as usize).any(|block| {
            block[..8] == UBERBLOCK.to_le_bytes() || block[..8] == UBERBLOCK.to_be_bytes()
        });
        // XDR encoding (1), either byte order; the pool's id is in every label.
        let pairs = &bytes[16 * KIB as usize..128 * KIB as usize];
        let list = pairs[0] == 1
            && pairs[1] <= 1
            && pairs[2..4] == [0, 0]
            && pairs.windows(9).any(|name| name == b"pool_guid");
        if uberblock || list {
            found.push(signature(Content::Volume, format!("ZFS pool member (label {n})"), label));
        }
    }
    Ok(())
}

/// DRBD's internal metadata, in the last 4 KiB: drbd-utils user/shared/drbdmeta.c, `md_magic`.
fn drbd(medium: &Medium<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const MAGICS: [u32; 3] = [0x8374_026B, 0x8374_026C, 0x8374_026D];
    let Some(offset) = (medium.size & !(4 * KIB - 1)).checked_sub(4 * KIB) else { return Ok(()) };
    let Some(block) = medium.bytes(offset, 64)? else { return Ok(()) };
    if MAGICS.contains(&be32(&block, 60)) {
        found.push(signature(Content::Raid, "DRBD metadata", offset));
    }
    Ok(())
}
