//! Marks written by hand, for what no tool on a test machine makes, and near misses; the tools' own
//! images are in `tests/safety_signatures.rs`.

use std::fs::File;
use std::os::unix::fs::FileExt;

use proptest::prelude::*;

use super::*;

const SIZE: u64 = 16 << 20;

/// An empty medium with these bytes put on it.
fn medium(size: u64, parts: &[(u64, &[u8])]) -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(size).unwrap();
    for (offset, bytes) in parts {
        file.write_all_at(bytes, *offset).unwrap();
    }
    file
}

fn names(size: u64, parts: &[(u64, &[u8])]) -> Vec<String> {
    let found = detect(&medium(size, parts), size).unwrap();
    found.into_iter().map(|signature| signature.name).collect()
}

fn kinds(parts: &[(u64, &[u8])]) -> Vec<Content> {
    detect(&medium(SIZE, parts), SIZE).unwrap().into_iter().map(|found| found.kind).collect()
}

#[test]
fn an_empty_medium_of_any_size_has_nothing_on_it() {
    for size in [0, 1, 511, 512, 4096, 65_535, 65_536, 1 << 20, SIZE + 4096] {
        assert_eq!(names(size, &[]), Vec::<String>::new(), "{size} bytes");
    }
}

#[test]
fn md_members_are_found_by_version_where_each_keeps_its_superblock() {
    let v1: &[u8] = b"\xFC\x4E\x2B\xA9\x01\x00\x00\x00";
    let v0: &[u8] = b"\xFC\x4E\x2B\xA9\x00\x00\x00\x00";
    let v0_big: &[u8] = b"\xA9\x2B\x4E\xFC\x00\x00\x00\x00";
    // An odd size: both superblocks at the end lie on boundaries of their own.
    let size = SIZE + 5 * 512;
    assert_eq!(names(size, &[(0, v1)]), ["md RAID member (1.1)"]);
    assert_eq!(names(size, &[(4096, v1)]), ["md RAID member (1.2)"]);
    assert_eq!(names(size, &[(SIZE - 8192, v1)]), ["md RAID member (1.0)"]);
    assert_eq!(names(size, &[(SIZE - 65_536, v0)]), ["md RAID member (0.90)"]);
    assert_eq!(names(size, &[(SIZE - 65_536, v0_big)]), ["md RAID member (0.90)"]);
    assert_eq!(names(size, &[(SIZE - 65_536, v1)]), Vec::<String>::new());
}

#[test]
fn any_of_the_four_zfs_labels_is_enough() {
    let uberblock = 0x00BA_B10Cu64;
    let label = 256 << 10;
    // Labels lie on multiples of their size, counted from the start.
    let size = SIZE + 100_000;
    for (n, place) in [0, label, SIZE - 2 * label, SIZE - label].into_iter().enumerate() {
        let expected = [format!("ZFS pool member (label {n})")];
        let ring = place + (128 << 10) + 5 * 1024;
        assert_eq!(names(size, &[(ring, &uberblock.to_le_bytes())]), expected);
        assert_eq!(names(size, &[(ring, &uberblock.to_be_bytes())]), expected);
        let list = place + (16 << 10);
        assert_eq!(names(size, &[(list, &[1, 1, 0, 0]), (list + 99, b"pool_guid")]), expected);
    }
}

#[test]
fn raid_of_firmware_and_drbd_is_found_at_the_end() {
    for (distance, magic, name) in [
        (1024, &b"Intel Raid ISM Cfg Sig. 1.0.00"[..], "Intel Matrix RAID member"),
        (8192, b"Intel Raid ISM Cfg Sig. 1.0.00", "Intel Matrix RAID member"),
        (512, b"\xDE\x11\xDE\x11", "DDF RAID member"),
        (512, b"$XIDE$", "LSI MegaRAID member"),
        (4096 - 60, b"\x83\x74\x02\x6D", "DRBD metadata"),
    ] {
        assert_eq!(names(SIZE, &[(SIZE - distance, magic)]), [name]);
    }
}

#[test]
fn storage_pools_are_found() {
    for (offset, magic, name) in [
        (0, &b"bluestore block device\n"[..], "Ceph BlueStore"),
        (516, b"!Stra0tis\x86\xFF\x02^\x41rh", "Stratis pool member"),
        (0, b"dmvdo001", "VDO"),
        (1 << 20, b"\x0D\xD0\x01\xC0", "VMFS volume member"),
        (0, b"HM\x01\x00", "LVM1 physical volume"),
        (1536, b"LABELONE\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0LVM2 001", "LVM2 physical volume"),
    ] {
        assert_eq!(names(SIZE, &[(offset, magic)]), [name]);
    }
    let bcachefs = b"\xC6\x85\x73\xF6\x66\xCE\x90\xA9\xD9\x6A\x60\xCF\x80\x3D\xF7\xEF";
    assert_eq!(names(SIZE, &[(4096 + 24, bcachefs)]), ["bcachefs"]);
}

#[test]
fn file_systems_without_a_tool_here_are_found() {
    let mut hfs = [0; 64];
    hfs[..2].copy_from_slice(b"BD");
    hfs[0x14..0x18].copy_from_slice(&4096u32.to_be_bytes());
    for (offset, magic, name) in [
        (1024, &b"H+\x00\x04"[..], "hfsplus"),
        (1024, b"HX\x00\x05", "hfsplus"),
        (1024, &hfs, "hfs"),
        (65_536, b"ReIsEr4", "reiser4"),
        (4096, b"OCFSV2", "ocfs2"),
        (65_536, b"\x01\x16\x19\x70\x00\x00\x00\x01", "gfs2"),
        (65_536 + 1372, b"\x19\x01\x54\x19", "ufs2"),
        (3, b"-FVE-FS-", "BitLocker"),
    ] {
        assert_eq!(names(SIZE, &[(offset, magic)]), [name]);
    }
}

#[test]
fn a_longtake_superblock_at_either_end_names_its_array_and_nothing_else_passes_for_one() {
    let mut header = [0; 512];
    header[..4].copy_from_slice(b"\x0A\x0D\x0D\x0A");
    header[32..40].copy_from_slice(b"LONGTAKE");
    header[40] = 1;
    header[64..80].copy_from_slice(&[0x5A; 16]);
    let name = format!("member of Longtake array {}", "5a".repeat(16));
    // The copy lies in the last 64 KiB that end on a multiple of 4 KiB.
    let size = SIZE + 1000;
    let name = name.as_str();
    assert_eq!(names(size, &[(0, &header)]), [name]);
    assert_eq!(names(size, &[(SIZE - 65_536, &header)]), [name]);
    assert_eq!(names(size, &[(0, &header), (SIZE - 65_536, &header)]), [name, name]);
    assert_eq!(kinds(&[(0, &header)]), [Content::LongtakeArray]);

    header[40] = 2;
    assert_eq!(names(size, &[(0, &header)]), ["Longtake recording"]);
    assert_eq!(names(size, &[(SIZE - 65_536, &header)]), Vec::<String>::new());
    header[32] = b'l';
    assert_eq!(names(size, &[(0, &header)]), ["pcapng file"]);
    assert_eq!(kinds(&[(0, &header)]), [Content::Image]);
}

#[test]
fn short_marks_are_not_believed_without_the_structure_around_them() {
    // ext's 0xEF53 alone; nilfs2's 0x3434 alone; "BD" alone; a LUKS2 second header in a wrong place.
    assert_eq!(names(SIZE, &[(1024 + 0x38, b"\x53\xEF")]), Vec::<String>::new());
    assert_eq!(names(SIZE, &[(1024 + 6, b"\x34\x34")]), Vec::<String>::new());
    assert_eq!(names(SIZE, &[(1024, b"BD")]), Vec::<String>::new());
    assert_eq!(names(SIZE, &[(16_384, b"SKUL\xBA\xBE\x00\x02")]), Vec::<String>::new());
    assert_eq!(names(SIZE, &[(508, b"\xDA\xBE")]), Vec::<String>::new());
}

#[test]
fn a_boot_sector_is_refused_with_or_without_a_table_in_it() {
    let end: (u64, &[u8]) = (510, b"\x55\xAA");
    assert_eq!(names(SIZE, &[end]), ["MBR"]);
    assert_eq!(names(SIZE, &[end, (446, b"\x80")]), ["MBR"]);
    assert_eq!(names(SIZE, &[end, (446, b"\x12")]), ["boot sector"]);
    assert_eq!(names(SIZE, &[end, (3, b"NTFS    ")]), ["ntfs"]);
}

#[test]
fn a_gpt_is_found_on_drives_of_both_block_sizes() {
    for block in [512, 4096] {
        assert_eq!(names(SIZE, &[(block, b"EFI PART")]), ["GPT"]);
        let end = names(SIZE, &[(SIZE - block, b"EFI PART")]);
        assert_eq!(end, ["GPT (the copy at the end)"]);
    }
}

#[test]
fn a_place_that_can_not_be_read_is_an_error_and_not_emptiness() {
    // The medium says that it is longer than it is, as a failing drive would.
    let file = medium(4096, &[]);
    let error = detect(&file, SIZE).unwrap_err().to_string();
    assert!(error.starts_with("reading"), "{error}");
}

/// Names and places of what is found.
fn places(size: u64, parts: &[(u64, &[u8])]) -> Vec<(String, u64)> {
    let found = detect(&medium(size, parts), size).unwrap();
    found.into_iter().map(|signature| (signature.name, signature.offset)).collect()
}

#[test]
fn long_marks_are_found_where_their_formats_put_them() {
    for (offset, mark, name) in [
        (65_600, &b"_BHRfS_M"[..], "btrfs"),
        (1024, b"\x10\x20\xF5\xF2", "f2fs"),
        (32_769, b"CD001", "iso9660"),
        (1024, b"\xE2\xE1\xF5\xE0", "erofs"),
        (65_588, b"ReIsEr", "reiserfs"),
        (8244, b"ReIsEr", "reiserfs"),
        (65_536, b"ReIsEr4", "reiser4"),
        (32_768, b"JFS1", "jfs"),
        (1024, b"OCFSV2", "ocfs2"),
        (2048, b"OCFSV2", "ocfs2"),
        (4096, b"OCFSV2", "ocfs2"),
        (8192, b"OCFSV2", "ocfs2"),
        (65_536, b"\x01\x16\x19\x70\x00\x00\x00\x01", "gfs2"),
        (9564, b"\x54\x19\x01\x00", "ufs1"),
        (66_908, b"\x19\x01\x54\x19", "ufs2"),
        (1_048_576, b"\x0D\xD0\x01\xC0", "VMFS volume member"),
        (2_097_152, b"\x5E\xF1\xAB\x2F", "VMFS"),
        (516, b"!Stra0tis\x86\xFF\x02^\x41rh", "Stratis pool member"),
        (4612, b"!Stra0tis\x86\xFF\x02^\x41rh", "Stratis pool member"),
        (4120, b"\xC6\x85\x73\xF6\x4E\x1A\x45\xCA\x82\x65\xF5\x7F\x48\xBA\x6D\x81", "bcache"),
        (64, b"\x7F\x10\xDA\xBE", "VDI image"),
        (512, b"\x57\x45\x56\x82", "BSD disklabel"),
        (SIZE - 1024, b"Intel Raid ISM Cfg Sig. ", "Intel Matrix RAID member"),
        (SIZE - 8192, b"Intel Raid ISM Cfg Sig. ", "Intel Matrix RAID member"),
        (SIZE - 4096, b"\xDE\x11\xDE\x11", "DDF RAID member"),
        (SIZE - 131_584, b"\xDE\x11\xDE\x11", "DDF RAID member"),
        (SIZE - 1024, b"NVIDIA  ", "NVIDIA RAID member"),
    ] {
        assert_eq!(places(SIZE, &[(offset, mark)]), [(name.to_owned(), offset)]);
    }
}

#[test]
fn swap_is_found_at_the_end_of_a_page_of_any_machine() {
    for page in [4096, 8192, 16_384, 32_768, 65_536] {
        assert_eq!(places(SIZE, &[(page - 10, b"SWAPSPACE2")]), [("swap".to_owned(), page - 10)]);
        assert_eq!(names(SIZE, &[(page - 10, b"S1SUSPEND")]), ["suspended system"]);
    }
    assert_eq!(names(SIZE, &[(4096, b"SWAPSPACE2")]), Vec::<String>::new());
}

/// A superblock of ext with these features: what it must have, and what needs support to be read or written.
fn ext(compat: u32, incompat: u32, ro_compat: u32) -> [u8; 256] {
    let mut block = [0; 256];
    block[0x04] = 1;
    block[0x38..0x3A].copy_from_slice(b"\x53\xEF");
    block[0x5C..0x60].copy_from_slice(&compat.to_le_bytes());
    block[0x60..0x64].copy_from_slice(&incompat.to_le_bytes());
    block[0x64..0x68].copy_from_slice(&ro_compat.to_le_bytes());
    block
}

#[test]
fn ext_is_named_by_its_features() {
    const JOURNAL: u32 = 4;
    let name = |block: [u8; 256]| places(SIZE, &[(1024, &block)]);
    let at_mark = |name: &str| [(name.to_owned(), 1080)];
    assert_eq!(name(ext(0, 0, 0)), at_mark("ext2"));
    assert_eq!(name(ext(JOURNAL, 0, 0)), at_mark("ext3"));
    for known in [0x2, 0x4, 0x10, 0x16] {
        assert_eq!(name(ext(0, known, 0)), at_mark("ext2"), "{known:#x}");
        assert_eq!(name(ext(JOURNAL, known, 0)), at_mark("ext3"), "{known:#x}");
    }
    for known in [0x1, 0x2, 0x4, 0x7] {
        assert_eq!(name(ext(JOURNAL, 0, known)), at_mark("ext3"), "{known:#x}");
    }
    assert_eq!(name(ext(JOURNAL, 0x40, 0)), at_mark("ext4"), "extents");
    assert_eq!(name(ext(JOURNAL, 0, 0x8)), at_mark("ext4"), "huge files");
    assert_eq!(name(ext(0, 0x8, 0)), at_mark("ext journal"));
}

#[test]
fn ext_without_its_mark_a_block_size_or_blocks_is_none() {
    let found = |change: fn(&mut [u8; 256])| {
        let mut block = ext(0, 0, 0);
        change(&mut block);
        names(SIZE, &[(1024, &block)])
    };
    assert_eq!(found(|block| block[0x18] = 6), ["ext2"], "blocks of 64 KiB");
    assert_eq!(found(|block| block[0x18] = 7), Vec::<String>::new());
    assert_eq!(found(|block| block[0x04] = 0), Vec::<String>::new());
    assert_eq!(found(|block| block[0x38] = 0), Vec::<String>::new());
}

#[test]
fn a_fat_boot_sector_is_told_by_all_of_its_parameters() {
    let mut sound = [0; 64];
    sound[..3].copy_from_slice(b"\xEB\x3C\x90");
    sound[11..13].copy_from_slice(&512u16.to_le_bytes());
    sound[13] = 8;
    sound[14..16].copy_from_slice(&1u16.to_le_bytes());
    sound[16] = 2;
    sound[19..21].copy_from_slice(&64u16.to_le_bytes());
    sound[21] = 0xF8;
    let with = |at: usize, bytes: &[u8]| {
        let mut sector = sound;
        sector[at..at + bytes.len()].copy_from_slice(bytes);
        names(SIZE, &[(0, &sector)])
    };
    for (at, bytes) in [
        (0, &b"\xEB"[..]),
        (0, b"\xE9\x00\x00"),
        (12, b"\x04"),
        (12, b"\x10"),
        (13, b"\x80"),
        (16, b"\x01"),
        (19, b"\x00\x00\xF0"),
        (21, b"\xFF"),
    ] {
        // A count of sectors that 16 bits can't hold stands in 32 bits.
        let mut sector = sound;
        sector[32..36].copy_from_slice(&100_000u32.to_le_bytes());
        sector[at..at + bytes.len()].copy_from_slice(bytes);
        assert_eq!(names(SIZE, &[(0, &sector)]), ["vfat"], "{bytes:?} at {at}");
    }
    assert_eq!(with(0, b"\xEB"), ["vfat"], "a small one has its count in 16 bits");
    for (what, at, bytes) in [
        ("no jump", 0, &b"\xEA"[..]),
        ("a short jump without its filler", 2, b"\x91"),
        ("sectors of 256 bytes", 12, b"\x01"),
        ("sectors of 8 KiB", 12, b"\x20"),
        ("clusters of 3 sectors", 13, b"\x03"),
        ("clusters of none", 13, b"\x00"),
        ("no reserved sector", 14, b"\x00"),
        ("no table", 16, b"\x00"),
        ("three tables", 16, b"\x03"),
        ("no such medium", 21, b"\xF1"),
        ("no such medium", 21, b"\xF7"),
        ("no sectors", 19, b"\x00\x00"),
    ] {
        assert_eq!(with(at, bytes), Vec::<String>::new(), "{what}");
    }
}

#[test]
fn marks_of_two_parts_are_not_believed_with_one_of_them() {
    let none = Vec::<String>::new();
    assert_eq!(places(SIZE, &[(1024, b"\x02\0\0\0\0\0\x34\x34")]), [("nilfs2".to_owned(), 1030)]);
    assert_eq!(names(SIZE, &[(1024, b"\x02")]), none);
    assert_eq!(
        places(SIZE, &[(0, b"ER"), (512, b"PM")]),
        [("Apple partition map".to_owned(), 512)]
    );
    assert_eq!(names(SIZE, &[(0, b"ER")]), none);
    assert_eq!(names(SIZE, &[(512, b"PM")]), none);
    assert_eq!(names(SIZE, &[(512, b"LABELONE")]), none);
    assert_eq!(names(SIZE, &[(512 + 24, b"LVM2 001")]), none);
}

#[test]
fn a_second_luks_header_has_its_version_and_its_own_place() {
    let header = |mark: &[u8], version: u16, own: u64| {
        let mut header = [0; 264];
        header[..6].copy_from_slice(mark);
        header[6..8].copy_from_slice(&version.to_be_bytes());
        header[256..].copy_from_slice(&own.to_be_bytes());
        names(SIZE, &[(32_768, &header)])
    };
    let mark = b"SKUL\xBA\xBE";
    assert_eq!(header(mark, 2, 32_768), ["LUKS2 second header"]);
    let none = Vec::<String>::new();
    assert_eq!(header(b"SKULL\0", 2, 32_768), none);
    assert_eq!(header(mark, 1, 32_768), none);
    assert_eq!(header(mark, 2, 16_384), none);
    assert_eq!(header(mark, 2, 1 << 32 | 32_768), none);
}

#[test]
fn what_looks_like_a_part_of_a_zfs_label_is_none() {
    let none = Vec::<String>::new();
    // An uberblock where the name-value list is.
    let uberblock = 0x00BA_B10Cu64.to_le_bytes();
    assert_eq!(names(SIZE, &[(64 << 10, &uberblock)]), none);
    let list = |head: &[u8], guid: &[u8]| names(SIZE, &[(16 << 10, head), (20 << 10, guid)]);
    assert_eq!(list(&[1, 1, 0, 0], b"pool_guid"), ["ZFS pool member (label 0)"]);
    assert_eq!(list(&[1, 0, 0, 0], b"pool_guid"), ["ZFS pool member (label 0)"]);
    assert_eq!(list(&[1, 1, 0, 0], b"pool_gold"), none);
    assert_eq!(list(&[2, 1, 0, 0], b"pool_guid"), none);
    assert_eq!(list(&[1, 2, 0, 0], b"pool_guid"), none);
    assert_eq!(list(&[1, 1, 1, 0], b"pool_guid"), none);
}

#[test]
fn marks_at_the_end_are_counted_from_whole_pages() {
    let drbd: &[u8] = b"\x83\x74\x02\x6D";
    for size in [SIZE, SIZE + 512, SIZE + 4095] {
        let expected = [("DRBD metadata".to_owned(), SIZE - 4096)];
        assert_eq!(places(size, &[(SIZE - 4096 + 60, drbd)]), expected, "{size} bytes");
    }
    // On the smallest medium that has room for a superblock its copy's place is its own.
    let mut header = [0; 512];
    header[..4].copy_from_slice(b"\x0A\x0D\x0D\x0A");
    header[32..40].copy_from_slice(b"LONGTAKE");
    header[40] = 1;
    assert_eq!(names(65_536, &[(0, &header)]).len(), 1);
}

#[test]
fn a_udf_sequence_is_followed_over_its_descriptors_and_no_further() {
    let expected = |offset| [("iso9660".to_owned(), 32_769), ("udf".to_owned(), offset)];
    let (start, second, third): (u64, u64, u64) = (32_769, 34_817, 36_865);
    let parts: [(u64, &[u8]); 3] = [(start, b"CD001"), (second, b"BEA01"), (third, b"NSR03")];
    assert_eq!(places(SIZE, &parts), expected(third));
    let parts: [(u64, &[u8]); 2] = [(start, b"BEA01"), (second, b"NSR02")];
    assert_eq!(places(SIZE, &parts), [("udf".to_owned(), second)]);
    let parts: [(u64, &[u8]); 2] = [(start, b"BEA01"), (32_769 + 4096, b"NSR02")];
    assert_eq!(places(SIZE, &parts), [("udf".to_owned(), 36_865)], "sectors of 4 KiB");
    // The sequence ends with the first thing that is no descriptor.
    let parts: [(u64, &[u8]); 2] = [(start, b"HELLO"), (second, b"NSR02")];
    assert_eq!(places(SIZE, &parts), []);
}

#[test]
fn a_signature_reads_as_what_it_is_and_where() {
    let found = detect(&medium(SIZE, &[(0, b"XFSB")]), SIZE).unwrap();
    assert_eq!(found[0].to_string(), "xfs (file system, found at byte 0)");
    for (kind, words) in [
        (Content::PartitionTable, "partition table"),
        (Content::Volume, "member of a storage pool"),
        (Content::Raid, "member of a RAID"),
        (Content::Encrypted, "encrypted data"),
        (Content::Swap, "swap space"),
        (Content::Image, "disk image or capture"),
        (Content::LongtakeArray, "Longtake array"),
    ] {
        assert_eq!(kind.to_string(), words);
    }
}

#[test]
fn a_mark_that_ends_with_the_medium_is_found_and_one_that_reaches_past_it_is_not() {
    assert_eq!(names(4096, &[(4096 - 10, b"SWAPSPACE2")]), ["swap"]);
    assert_eq!(names(4095, &[(4096 - 10, b"SWAPSPACE")]), Vec::<String>::new());
}

proptest! {
    #[test]
    fn whatever_lies_on_a_medium_can_be_looked_at(
        head in prop::collection::vec(any::<u8>(), 0..9000),
        tail in prop::collection::vec(any::<u8>(), 0..9000),
        size in 0u64..2_000_000,
    ) {
        let size = size.max((head.len() + tail.len()) as u64);
        let file = medium(size, &[(0, &head), (size - tail.len() as u64, &tail)]);
        for signature in detect(&file, size).unwrap() {
            prop_assert!(signature.offset < size);
        }
    }
}
