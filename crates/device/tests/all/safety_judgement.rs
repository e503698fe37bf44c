//! What a judgement of a target promises in cases that are rare and would destroy data: nodes that are not what sysfs says,
//! files that can't be written, names that are almost a drive's, and what opening leaves as it was.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::safety_rig::{Child, Loop, MIB, Mount, folder, image, run, text};
use longtake_device::Warning;
use longtake_device::holders::{Holder, Use};
use longtake_device::safety::{self, Refusal};
use longtake_device::sysfs::System;
use longtake_device::target::{self, Access};
use tempfile::TempDir;

const WRITE: Access = Access::Write { exclusive: true };

/// A made-up machine with one drive, `drive0`, of number 259:7777, and what is needed to look at it.
struct Machine {
    root: TempDir,
    system: System,
}

impl Machine {
    fn new() -> Self {
        let root = folder();
        let system = System::at(root.path());
        let drive = root.path().join("sys/devices/drive0");
        for folder in ["sys/block", "sys/class/block", "sys/dev/block", "proc/self", "dev"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::create_dir_all(&drive).unwrap();
        fs::write(drive.join("dev"), "259:7777\n").unwrap();
        fs::write(drive.join("size"), format!("{}\n", 8 * MIB / 512)).unwrap();
        for link in ["sys/block/drive0", "sys/class/block/drive0", "sys/dev/block/259:7777"] {
            symlink(&drive, root.path().join(link)).unwrap();
        }
        fs::write(root.path().join("proc/self/mountinfo"), "").unwrap();
        Self { root, system }
    }

    /// A node of the drive beside the folder of nodes, as the user may name it.
    fn named(&self) -> PathBuf {
        let path = self.root.path().join("named");
        run("mknod", &[text(&path), "b", "259", "7777"]);
        path
    }

    /// What the kernel's node of the drive should be.
    fn node(&self) -> PathBuf {
        self.system.dev.join("drive0")
    }
}

#[test]
fn a_node_that_is_a_pipe_is_refused_at_once() {
    let machine = Machine::new();
    run("mkfifo", &[text(&machine.node())]);
    let refusals = safety::inspect_in(&machine.system, &machine.named()).refusals;
    assert!(matches!(&refusals[..], [Refusal::Unreadable { .. }]), "{refusals:?}");
}

#[test]
fn a_node_of_another_device_is_refused_and_not_read_instead() {
    let machine = Machine::new();
    let other = Loop::new(8 * MIB);
    let writer = OpenOptions::new().write(true).open(&other.path).unwrap();
    writer.write_all_at(b"XFSB", 0).unwrap();
    symlink(&other.path, machine.node()).unwrap();
    let refusals = safety::inspect_in(&machine.system, &machine.named()).refusals;
    let [Refusal::Unreadable { reason, .. }] = &refusals[..] else { panic!("{refusals:?}") };
    assert!(reason.contains("not device 259:7777"), "{reason}");
}

#[test]
fn a_member_of_a_mounted_btrfs_is_refused_by_its_name_in_sysfs() {
    let machine = Machine::new();
    let members = machine.system.sys.join("fs/btrfs/0fc1e5f3/devices");
    fs::create_dir_all(&members).unwrap();
    let node = machine.named();
    let held = || {
        let refusals = safety::inspect_in(&machine.system, &node).refusals;
        let held = |refusal| match refusal {
            Refusal::Held { holder, .. } => Some((holder.how, holder.by, holder.device)),
            _ => None,
        };
        refusals.into_iter().filter_map(held).collect::<Vec<_>>()
    };
    fs::create_dir(members.join("drive01")).unwrap();
    assert_eq!(held(), []);
    fs::create_dir(members.join("drive0")).unwrap();
    assert_eq!(held(), [(Use::Btrfs, "0fc1e5f3".to_owned(), machine.node())]);
}

#[test]
fn loop_devices_on_different_files_have_nothing_to_do_with_each_other() {
    let (one, other) = (Loop::new(8 * MIB), Loop::new(8 * MIB));
    assert!(safety::inspect(&one.path).allowed());
    assert!(safety::inspect(&other.path).allowed());
}

#[test]
fn a_program_that_is_running_is_refused_though_its_path_was_typed() {
    let folder = folder();
    let path = folder.path().join("program");
    // By a process of its own: a descriptor of ours that is open for writing would go to every child that another test forks
    // meanwhile, and no program starts as long as somebody has one.
    run("cp", &["/bin/sleep", text(&path)]);
    let run = Command::new(&path).arg("1000").stdin(Stdio::null()).spawn().unwrap();
    let _running = Child(run);
    let refusals = safety::authorize(&path, &[text(&path).to_owned()]).unwrap_err();
    let [Refusal::Unreadable { attempted, .. }] = &refusals[..] else { panic!("{refusals:?}") };
    assert_eq!(attempted, "opening it for writing");
}

#[test]
fn a_file_that_was_not_there_is_covered_as_long_as_it_is_new() {
    let folder = folder();
    let path = folder.path().join("member");
    let authorized = safety::authorize(&path, &[]).unwrap();
    let covers = |path: &Path| authorized.covers(&File::open(path).unwrap()).unwrap();
    File::create_new(&path).unwrap();
    assert!(covers(&path));
    fs::write(&path, "somebody else was faster").unwrap();
    assert!(!covers(&path));
    assert!(!covers(Path::new("/dev/null")), "no file, though it is empty");
    assert!(!covers(folder.path()));
}

#[test]
fn a_new_file_may_be_made_in_any_folder_but_among_the_device_nodes() {
    let machine = Machine::new();
    let allowed = |path: &Path| safety::inspect_in(&machine.system, path).allowed();
    assert!(allowed(&machine.root.path().join("member0")), "beside the nodes");
    assert!(!allowed(&machine.system.dev.join("drive1")));
    fs::create_dir(machine.system.dev.join("folder")).unwrap();
    assert!(!allowed(&machine.system.dev.join("folder/drive1")));
    // Another file system that is mounted there is none of device nodes.
    assert!(safety::inspect(Path::new("/dev/shm/longtake-not-there")).allowed());
    assert!(!safety::inspect(Path::new("/dev/longtake-not-there")).allowed());
    assert!(safety::inspect(Path::new("longtake-not-there")).allowed(), "in the current folder");
}

#[test]
fn a_node_without_a_device_says_what_was_tried() {
    let folder = folder();
    let path = folder.path().join("node");
    run("mknod", &[text(&path), "b", "259", "1048575"]);
    let told = |access| target::open(&path, access).unwrap_err().to_string();
    let name = path.display();
    assert!(
        told(WRITE).starts_with(&format!("opening for writing {name} failed")),
        "{}",
        told(WRITE)
    );
    let reading = told(Access::Read);
    assert!(reading.starts_with(&format!("opening {name} failed")), "{reading}");
}

#[test]
fn a_target_is_open_for_writing_only_if_that_was_asked_for() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = image(folder.path(), "member", MIB);
    let device = Loop::new(8 * MIB);
    for path in [&device.path, &file] {
        for (access, mode) in [(Access::Read, 0), (WRITE, 2)] {
            let (opened, _) = target::open(path, access).unwrap();
            let info = format!("/proc/self/fdinfo/{}", opened.file.as_raw_fd());
            let info = fs::read_to_string(info).unwrap();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
            // The two lowest bits: O_RDONLY is 0, O_RDWR is 2.
            assert_eq!(
                u32::from_str_radix(flags.trim(), 8).unwrap() & 3,
                mode,
                "{path:?} {access:?}"
            );
        }
    }
}

#[test]
fn a_holder_reads_as_what_is_held_by_what() {
    let holder = Holder {
        device: "/dev/sda1".into(),
        by: "/dev/dm-3".into(),
        how: Use::DeviceMapper,
        name: Some("vg-root".into()),
    };
    assert_eq!(holder.to_string(), "/dev/sda1 by /dev/dm-3 (vg-root)");
    assert_eq!(Holder { name: None, ..holder }.to_string(), "/dev/sda1 by /dev/dm-3");
    for (how, words) in [
        (Use::Md, "software RAID"),
        (Use::DeviceMapper, "device mapper (LVM, encryption or multipath)"),
        (Use::Bcache, "bcache"),
        (Use::Loop, "a loop device"),
        (Use::Btrfs, "a mounted btrfs"),
        (Use::Swap, "swap space"),
        (Use::Other, "another driver"),
    ] {
        assert_eq!(how.to_string(), words);
    }
}

#[test]
fn a_file_has_the_block_of_the_drive_below_its_file_system() {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    let tells = (numbers.next(), numbers.next()) >= (Some(6), Some(1));
    let folder = folder();
    for block in [512, 4096] {
        let size = format!("--sector-size={block}");
        let image = image(folder.path(), &size, 32 * MIB);
        let device = Loop::on(&image, &[&size, "--direct-io=on"]);
        run("mkfs.ext4", &["-q", "-b", "4096", device.text()]);
        let mount = Mount::new(&device.path);
        let path = mount.point.path().join("member");
        target::create_file(&path, MIB).unwrap();
        let (opened, warnings) = target::open(&path, WRITE).unwrap();
        assert_eq!(warnings, []);
        let expected = if tells { block } else { 4096 };
        assert_eq!(opened.geometry.block_bytes, expected);
        assert_eq!(opened.geometry.trim_unit_bytes, Some(4096));
    }
}

#[test]
fn a_file_system_without_direct_io_is_taken_with_a_warning() {
    let point = folder();
    run("mount", &["-t", "ramfs", "ramfs", text(point.path())]);
    /// Unmounts also after a failure.
    struct Unmount<'a>(&'a Path);
    impl Drop for Unmount<'_> {
        fn drop(&mut self) {
            crate::safety_rig::try_run("umount", &["--lazy", text(self.0)]);
        }
    }
    let _mount = Unmount(point.path());
    let path = point.path().join("member");
    fs::write(&path, vec![0; MIB as usize]).unwrap();
    for access in [WRITE, Access::Read] {
        let (opened, warnings) = target::open(&path, access).unwrap();
        assert_eq!(opened.geometry.capacity_bytes, MIB);
        assert!(matches!(&warnings[..], [Warning::NoDirectIo { .. }]), "{warnings:?}");
    }
}

#[test]
fn opening_a_file_changes_neither_its_length_nor_its_space() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("member");
    target::create_file(&path, MIB + 100).unwrap();
    let before = fs::metadata(&path).unwrap();
    drop(target::open(&path, WRITE).unwrap());
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.len(), after.blocks()), (before.len(), before.blocks()));
}
