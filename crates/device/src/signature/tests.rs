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
