//! Marks that are long enough to stand for themselves, each at a fixed place.
//!
//! Offsets and values are facts of the formats; the last column names where they are written down.

use std::io;

use super::{Content, Medium, Signature, signature};
use Content::{Encrypted, FileSystem, Image, PartitionTable, Raid, Swap, Volume};

type Magic = (Content, &'static str, u64, &'static [u8]);

const KIB: u64 = 1024;

#[rustfmt::skip]
const MAGICS: &[Magic] = &[
    // XFS Algorithms and Data Structures, "Superblocks".
    (FileSystem, "xfs", 0, b"XFSB"),
    // Btrfs On-disk Format, "Superblock".
    (FileSystem, "btrfs", 64 * KIB + 64, b"_BHRfS_M"),
    // Kernel Documentation/filesystems/f2fs.rst: F2FS_SUPER_MAGIC 0xF2F52010, little endian.
    (FileSystem, "f2fs", KIB, b"\x10\x20\xF5\xF2"),
    // Microsoft, "NTFS boot sector", "exFAT specification" 3.1, "BitLocker" (boot sector OEM name).
    (FileSystem, "ntfs", 3, b"NTFS    "),
    (FileSystem, "exfat", 3, b"EXFAT   "),
    (Encrypted, "BitLocker", 3, b"-FVE-FS-"),
    // ECMA-119, 8.1: volume descriptor in sector 16.
    (FileSystem, "iso9660", 32 * KIB + 1, b"CD001"),
    // Kernel fs/squashfs/squashfs_fs.h (and its big-endian form), fs/erofs/erofs_fs.h, include/uapi/linux/cramfs_fs.h.
    (FileSystem, "squashfs", 0, b"hsqs"),
    (FileSystem, "squashfs", 0, b"sqsh"),
    (FileSystem, "erofs", KIB, b"\xE2\xE1\xF5\xE0"),
    (FileSystem, "cramfs", 0, b"\x45\x3D\xCD\x28"),
    // ReiserFS: reiserfs_fs.h, at 64 KiB or (old) 8 KiB, magic 52 bytes in.
    (FileSystem, "reiserfs", 64 * KIB + 52, b"ReIsEr"),
    (FileSystem, "reiserfs", 8 * KIB + 52, b"ReIsEr"),
    (FileSystem, "reiser4", 64 * KIB, b"ReIsEr4"),
    // Kernel fs/jfs/jfs_superblock.h.
    (FileSystem, "jfs", 32 * KIB, b"JFS1"),
    // Apple File System Reference, nx_superblock_t.
    (FileSystem, "apfs", 32, b"NXSB"),
    // Kernel fs/ocfs2/ocfs2_fs.h: block 2 of any block size.
    (FileSystem, "ocfs2", KIB, b"OCFSV2"),
    (FileSystem, "ocfs2", 2 * KIB, b"OCFSV2"),
    (FileSystem, "ocfs2", 4 * KIB, b"OCFSV2"),
    (FileSystem, "ocfs2", 8 * KIB, b"OCFSV2"),
    // Kernel include/uapi/linux/gfs2_ondisk.h: header magic and type 1 (superblock), big endian.
    (FileSystem, "gfs2", 64 * KIB, b"\x01\x16\x19\x70\x00\x00\x00\x01"),
    // FreeBSD sys/ufs/ffs/fs.h: fs_magic 1372 bytes into the superblock at 8 or 64 KiB.
    (FileSystem, "ufs1", 8 * KIB + 1372, b"\x54\x19\x01\x00"),
    (FileSystem, "ufs2", 64 * KIB + 1372, b"\x19\x01\x54\x19"),
    // util-linux libblkid, vmfs.c: volume member at 1 MiB, file system at 2 MiB.
    (Volume, "VMFS volume member", 1024 * KIB, b"\x0D\xD0\x01\xC0"),
    (FileSystem, "VMFS", 2048 * KIB, b"\x5E\xF1\xAB\x2F"),
    // LUKS On-Disk Format 1.2.3 and LUKS2 1.1: the primary header.
    (Encrypted, "LUKS", 0, b"LUKS\xBA\xBE"),
    // Kernel drivers/md/dm-verity, dm-integrity.c, dm-vdo (geometry block).
    (Volume, "dm-verity", 0, b"verity\0\0"),
    (Volume, "dm-integrity", 0, b"integrt\0"),
    (Volume, "VDO", 0, b"dmvdo001"),
    // Ceph src/os/bluestore/BlueStore.h: BDEV_LABEL.
    (Volume, "Ceph BlueStore", 0, b"bluestore block device"),
    // Stratis on-disk format: static header in sectors 1 and 9.
    (Volume, "Stratis pool member", 512 + 4, b"!Stra0tis\x86\xFF\x02^\x41rh"),
    (Volume, "Stratis pool member", 9 * 512 + 4, b"!Stra0tis\x86\xFF\x02^\x41rh"),
    // Kernel include/uapi/linux/bcache.h and fs/bcachefs/bcachefs_format.h: UUID 24 bytes into 4 KiB.
    (Volume, "bcache", 4 * KIB + 24, b"\xC6\x85\x73\xF6\x4E\x1A\x45\xCA\x82\x65\xF5\x7F\x48\xBA\x6D\x81"),
    (FileSystem, "bcachefs", 4 * KIB + 24, b"\xC6\x85\x73\xF6\x66\xCE\x90\xA9\xD9\x6A\x60\xCF\x80\x3D\xF7\xEF"),
    // Old RAID and volume headers: LVM1 (version 1 or 2 follows its two letters).
    (Volume, "LVM1 physical volume", 0, b"HM\x01\x00"),
    (Volume, "LVM1 physical volume", 0, b"HM\x02\x00"),
    // SGI disk label (big endian), kernel block/partitions/sgi.c.
    (PartitionTable, "SGI disk label", 0, b"\x0B\xE5\xA9\x41"),
    // BSD disklabel in sector 1, kernel block/partitions/msdos.c.
    (PartitionTable, "BSD disklabel", 512, b"\x57\x45\x56\x82"),
    // QEMU docs/interop/qcow2.txt; VMware "Virtual Disk Format 5.0"; Microsoft MS-VHDX, VHD; VirtualBox VDICore.h.
    (Image, "qcow2 image", 0, b"QFI\xFB"),
    (Image, "VMDK image", 0, b"KDMV"),
    (Image, "VHDX image", 0, b"vhdxfile"),
    (Image, "VHD image", 0, b"conectix"),
    (Image, "VDI image", 64, b"\x7F\x10\xDA\xBE"),
    // draft-ietf-opsawg-pcap: both byte orders, microseconds and nanoseconds.
    (Image, "pcap file", 0, b"\xA1\xB2\xC3\xD4"),
    (Image, "pcap file", 0, b"\xD4\xC3\xB2\xA1"),
    (Image, "pcap file", 0, b"\xA1\xB2\x3C\x4D"),
    (Image, "pcap file", 0, b"\x4D\x3C\xB2\xA1"),
];

/// Swap and suspend images: ten bytes at the end of the first page, whose size is the machine's.
/// Kernel include/linux/swap.h (`union swap_header`), kernel/power/swap.c; uswsusp; TuxOnIce.
const PAGE_BYTES: [u64; 5] = [4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB];
const SWAP: &[(&str, &[u8])] = &[
    ("swap", b"SWAPSPACE2"),
    ("swap", b"SWAP-SPACE"),
    ("suspended system", b"S1SUSPEND"),
    ("suspended system", b"S2SUSPEND"),
    ("suspended system", b"ULSUSPEND"),
    ("suspended system", b"LINHIB0001"),
];

/// Marks that RAID firmware leaves behind: name, distance from the end, bytes.
/// Kernel-side readers: mdadm super-intel.c, super-ddf.c (SNIA DDF 2.0, 5.6); libblkid for the rest.
#[rustfmt::skip]
const AT_END: &[(&str, u64, &[u8])] = &[
    ("Intel Matrix RAID member", 2 * 512, b"Intel Raid ISM Cfg Sig. "),
    ("Intel Matrix RAID member", 2 * 4096, b"Intel Raid ISM Cfg Sig. "),
    ("DDF RAID member", 512, b"\xDE\x11\xDE\x11"),
    ("DDF RAID member", 4096, b"\xDE\x11\xDE\x11"),
    ("DDF RAID member", 257 * 512, b"\xDE\x11\xDE\x11"),
    ("LSI MegaRAID member", 512, b"$XIDE$"),
    ("NVIDIA RAID member", 2 * 512, b"NVIDIA  "),
];

pub(super) fn find(medium: &Medium<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    for &(kind, name, offset, magic) in MAGICS {
        if medium.has(offset, magic)? {
            found.push(signature(kind, name, offset));
        }
    }
    for page in PAGE_BYTES {
        for (name, magic) in SWAP {
            let offset = page - 10;
            if medium.has(offset, magic)? {
                found.push(signature(Swap, *name, offset));
            }
        }
    }
    for &(name, distance, magic) in AT_END {
        if let Some(offset) = medium.before_end(distance)
            && medium.has(offset, magic)?
        {
            found.push(signature(Raid, name, offset));
        }
    }
    Ok(())
}
