//! Marks that real tools write: each image is made by its own mkfs, and what is found is compared with
//! what `blkid` (an independent reader) says of it.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::safety_rig::{MIB, folder, image, run, text, try_run};
use longtake_device::signature::{Content, Signature, detect};

fn found(path: &Path) -> Vec<Signature> {
    let file = File::open(path).unwrap();
    let size = file.metadata().unwrap().len();
    detect(&file, size).unwrap()
}

fn names(path: &Path) -> Vec<(Content, String)> {
    found(path).into_iter().map(|signature| (signature.kind, signature.name)).collect()
}

/// Makes an image with a tool, and checks that exactly `name` is found where blkid finds `type_`.
fn check(tool: &str, options: &[&str], mib: u64, kind: Content, name: &str, type_: &str) {
    let folder = folder();
    let path = image(folder.path(), "image", mib * MIB);
    assert_eq!(found(&path), [], "an empty image");
    let mut arguments = options.to_vec();
    arguments.push(text(&path));
    run(tool, &arguments);
    assert_eq!(names(&path), [(kind, name.to_owned())], "{tool} {options:?}");
    let blkid = run("blkid", &["--probe", "--output", "value", "--match-tag", "TYPE", text(&path)]);
    assert_eq!(blkid, type_, "{tool} {options:?}");
}

#[test]
fn linux_file_systems_are_found() {
    use Content::FileSystem;
    check("mkfs.ext2", &["-q"], 8, FileSystem, "ext2", "ext2");
    check("mkfs.ext3", &["-q"], 16, FileSystem, "ext3", "ext3");
    check("mkfs.ext4", &["-q"], 16, FileSystem, "ext4", "ext4");
    check("mkfs.ext4", &["-q", "-O", "journal_dev"], 16, FileSystem, "ext journal", "jbd");
    check("mkfs.xfs", &["-q"], 320, FileSystem, "xfs", "xfs");
    check("mkfs.btrfs", &["--quiet"], 160, FileSystem, "btrfs", "btrfs");
    check("mkfs.f2fs", &["-q"], 64, FileSystem, "f2fs", "f2fs");
    check("mkfs.jfs", &["-q"], 16, FileSystem, "jfs", "jfs");
    check("mkfs.reiserfs", &["-q", "-f"], 64, FileSystem, "reiserfs", "reiserfs");
    check("mkfs.nilfs2", &["-q"], 160, FileSystem, "nilfs2", "nilfs2");
}

#[test]
fn file_systems_of_other_systems_are_found_and_their_boot_sectors_are_not_taken_for_a_table() {
    use Content::FileSystem;
    check("mkfs.vfat", &["-F", "12"], 4, FileSystem, "vfat", "vfat");
    check("mkfs.vfat", &["-F", "16"], 32, FileSystem, "vfat", "vfat");
    check("mkfs.vfat", &["-F", "32"], 64, FileSystem, "vfat", "vfat");
    check("mkfs.exfat", &[], 16, FileSystem, "exfat", "exfat");
    check("mkfs.ntfs", &["--quick", "--force", "--quiet"], 16, FileSystem, "ntfs", "ntfs");
    check("mkapfs", &[], 1024, FileSystem, "apfs", "apfs");
    check("mkudffs", &["--media-type=hd"], 16, FileSystem, "udf", "udf");
    check("mkudffs", &["--media-type=hd", "--blocksize=4096"], 16, FileSystem, "udf", "udf");
}

#[test]
fn swap_pools_and_encryption_are_found() {
    check("mkswap", &[], 16, Content::Swap, "swap", "swap");
    check("mkswap", &["--pagesize", "65536"], 16, Content::Swap, "swap", "swap");
    check("make-bcache", &["-B"], 16, Content::Volume, "bcache", "bcache");
    // The second header of LUKS2 is found beside the first.
    let folder = folder();
    for (version, expected) in
        [("luks1", vec!["LUKS"]), ("luks2", vec!["LUKS", "LUKS2 second header"])]
    {
        let path = image(folder.path(), version, 32 * MIB);
        let key = folder.path().join("key");
        fs::write(&key, "a key for a test").unwrap();
        let quick = ["--batch-mode", "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"];
        let arguments = ["luksFormat", "--type", version, "--key-file", text(&key), text(&path)];
        run("cryptsetup", &[&quick[..], &arguments[..]].concat());
        let found = names(&path);
        let names: Vec<_> = found.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, expected);
        assert!(found.iter().all(|(kind, _)| *kind == Content::Encrypted));
        // Wiping the first header alone leaves data that can be had back.
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0; 4096], 0).unwrap();
        assert_eq!(self::names(&path).is_empty(), version == "luks1");
    }
}

#[test]
fn an_lvm_physical_volume_is_found() {
    // pvcreate takes block devices only.
    let device = crate::safety_rig::Loop::new(32 * MIB);
    let only =
        format!("devices {{ filter=[\"a|^{}$|\",\"r|.*|\"] use_devicesfile=0 }}", device.text());
    run("pvcreate", &["--quiet", "--quiet", "--config", &only, device.text()]);
    let file = File::open(&device.path).unwrap();
    let [Signature { kind: Content::Volume, name, offset: 512 }] =
        &detect(&file, 32 * MIB).unwrap()[..]
    else {
        panic!("{:?}", detect(&file, 32 * MIB))
    };
    assert_eq!(name, "LVM2 physical volume");
}

#[test]
fn images_of_whole_file_systems_are_found() {
    let folder = folder();
    let content = folder.path().join("content");
    fs::create_dir(&content).unwrap();
    fs::write(content.join("file"), "some content").unwrap();
    let path = |name: &str| folder.path().join(name);
    run("mksquashfs", &[text(&content), text(&path("squashfs")), "-quiet", "-no-progress"]);
    run("mkfs.erofs", &[text(&path("erofs")), text(&content)]);
    run("genisoimage", &["-quiet", "-o", text(&path("iso9660")), text(&content)]);
    for name in ["squashfs", "erofs", "iso9660"] {
        assert_eq!(names(&path(name)), [(Content::FileSystem, name.to_owned())]);
    }
    run("genisoimage", &["-quiet", "-udf", "-o", text(&path("bridge")), text(&content)]);
    let names: Vec<_> = found(&path("bridge")).into_iter().map(|s| s.name).collect();
    assert_eq!(names, ["iso9660", "udf"]);
}

#[test]
fn partition_tables_are_found_at_both_ends() {
    let folder = folder();
    let table = |label: &str| {
        let path = image(folder.path(), label, 16 * MIB);
        let script = folder.path().join("script");
        fs::write(&script, format!("label: {label}\n,4MiB\n")).unwrap();
        run("sh", &["-c", "sfdisk --quiet \"$0\" < \"$1\"", text(&path), text(&script)]);
        path
    };
    let name = |path: &Path| found(path).into_iter().map(|s| s.name).collect::<Vec<_>>();
    let gpt = table("gpt");
    assert_eq!(name(&gpt), ["GPT", "GPT (the copy at the end)", "MBR"]);
    assert_eq!(name(&table("dos")), ["MBR"]);
    assert_eq!(name(&table("sun")), ["Sun disk label"]);
    assert_eq!(name(&table("sgi")), ["SGI disk label"]);
    // With the start wiped, the copy still tells.
    let file = OpenOptions::new().write(true).open(&gpt).unwrap();
    file.write_all_at(&vec![0; MIB as usize], 0).unwrap();
    assert_eq!(name(&gpt), ["GPT (the copy at the end)"]);
}

#[test]
fn a_wiped_image_is_clean_again() {
    // What a refusal tells the user to do must help.
    let folder = folder();
    let path = image(folder.path(), "image", 64 * MIB);
    run("mkfs.ext4", &["-q", text(&path)]);
    assert_eq!(found(&path).len(), 1);
    assert!(try_run("wipefs", &["--all", "--quiet", text(&path)]).status.success());
    assert_eq!(found(&path), []);
}
