//! What can be opened, what is refused, and what is said about it.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command as Process;

use crate::drives::{Folder, LoopDevice};
use longtake_device::target::{
    self, Access, CreateFileError, OpenTarget, TargetError, TargetKind, is_locked,
};
use longtake_device::{Options, Pages, Pool, UringBank, Warning};

const WRITE: Access = Access::Write { exclusive: true };

fn open(path: &Path, access: Access) -> OpenTarget {
    target::open(path, access).unwrap_or_else(|error| panic!("{error}")).0
}

fn refusal(path: &Path, access: Access) -> TargetError {
    target::open(path, access).expect_err("it should be refused")
}

#[test]
fn a_created_file_has_all_its_space_and_reads_as_zeros() {
    let folder = Folder::on_disk();
    let path = folder.path().join("member");
    target::create_file(&path, 8 << 20).unwrap();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.len(), 8 << 20);
    assert!(metadata.blocks() * 512 >= 8 << 20, "space is set aside");
    let mut bytes = vec![1; 4096];
    File::open(&path).unwrap().read_exact_at(&mut bytes, 4 << 20).unwrap();
    assert_eq!(bytes, [0; 4096]);
}

#[test]
fn a_file_that_is_there_is_never_replaced() {
    let folder = Folder::on_disk();
    let path = folder.path().join("member");
    fs::write(&path, "precious").unwrap();
    let error = target::create_file(&path, 4096).unwrap_err();
    assert!(matches!(error, CreateFileError::Exists { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_file_larger_than_the_space_left_is_refused_with_both_numbers_and_leaves_nothing() {
    let folder = Folder::on_disk();
    let path = folder.path().join("member");
    let error = target::create_file(&path, 1 << 50).unwrap_err();
    assert!(matches!(error, CreateFileError::NoSpace { needed: 0x4_0000_0000_0000, .. }));
    let message = error.to_string();
    assert!(message.contains("needs 1125899906842624 bytes"), "{message}");
    assert!(!path.exists());
}

#[test]
fn a_file_is_a_drive_with_blocks_and_holes() {
    let folder = Folder::on_disk();
    let path = folder.path().join("member");
    // Not whole blocks: the rest can't be addressed.
    target::create_file(&path, (8 << 20) + 100).unwrap();
    let target = open(&path, WRITE);
    assert_eq!(target.kind, TargetKind::File);
    assert_eq!(target.geometry.capacity_bytes, 8 << 20);
    assert_eq!(target.geometry.trim_unit_bytes, Some(4096));
    assert!(target.geometry.trim_reads_zeros && target.geometry.writable);
    assert_eq!(target.geometry.transfer_max_bytes, 16 << 20);
    drop(target);
    let target = open(&path, Access::Read);
    assert!(!target.geometry.writable && target.geometry.trim_unit_bytes.is_none());
}

#[test]
fn a_block_device_tells_its_units() {
    let folder = Folder::on_disk();
    for block_bytes in [512, 4096] {
        let image = folder.path().join(block_bytes.to_string());
        let device = LoopDevice::new(&image, 8 << 20, block_bytes);
        let (_, warnings) = target::open(device.path(), Access::Read).unwrap();
        assert_eq!(warnings, [], "a device node lies in memory, the device behind it doesn't");
        let target = open(device.path(), WRITE);
        assert_eq!(target.kind, TargetKind::BlockDevice);
        assert_eq!(target.geometry.capacity_bytes, 8 << 20);
        assert_eq!(target.geometry.block_bytes, block_bytes);
        assert!(target.physical_block_bytes >= block_bytes);
        assert!(target.geometry.trim_unit_bytes.is_some_and(|unit| unit >= block_bytes));
        assert!(!target.geometry.trim_reads_zeros, "a discard promises nothing");
    }
}

#[test]
fn two_recorders_cannot_open_one_member_but_readers_can() {
    let folder = Folder::on_disk();
    let file = folder.path().join("member");
    target::create_file(&file, 8 << 20).unwrap();
    let device = LoopDevice::new(&folder.path().join("image"), 8 << 20, 4096);
    for path in [file.as_path(), device.path()] {
        assert!(!is_locked(path).unwrap());
        let first = open(path, Access::Write { exclusive: false });
        assert!(is_locked(path).unwrap());
        let error = refusal(path, Access::Write { exclusive: false });
        assert!(matches!(error, TargetError::BeingRecorded { .. }), "{error}");
        assert!(error.to_string().contains("is being recorded by another process"), "{error}");
        open(path, Access::Read);
        drop(first);
        assert!(!is_locked(path).unwrap());
        open(path, WRITE);
    }
}

#[test]
fn a_lock_is_given_back_by_the_last_of_its_owners() {
    let folder = Folder::on_disk();
    let file = folder.path().join("member");
    target::create_file(&file, 8 << 20).unwrap();
    let device = LoopDevice::new(&folder.path().join("image"), 8 << 20, 4096);
    for path in [file.as_path(), device.path()] {
        let first = open(path, WRITE);
        let second = first.try_clone().unwrap();
        assert_eq!(second.geometry, first.geometry);
        let bank = |target| {
            let (pool, _) = Pool::new(1, 4096, Pages::Normal).unwrap();
            UringBank::open(vec![target], pool, Options::default()).unwrap().0
        };
        let (first, second) = (bank(first), bank(second));
        drop(first);
        assert!(is_locked(path).unwrap(), "another bank still has it");
        drop(second);
        assert!(!is_locked(path).unwrap());
        open(path, WRITE);
    }
}

#[test]
fn a_mounted_block_device_is_refused_for_exclusive_writing() {
    /// Unmounts also after a failure.
    struct Mount<'a>(&'a Path);
    impl Drop for Mount<'_> {
        fn drop(&mut self) {
            let status = Process::new("umount").arg(self.0).status();
            if !std::thread::panicking() {
                assert!(status.is_ok_and(|status| status.success()), "unmounting {:?}", self.0);
            }
        }
    }
    let folder = Folder::on_disk();
    let device = LoopDevice::new(&folder.path().join("image"), 16 << 20, 512);
    let point = folder.path().join("point");
    fs::create_dir(&point).unwrap();
    for (program, arguments) in
        [("mkfs.ext4", vec![device.path()]), ("mount", vec![device.path(), &point])]
    {
        let output = Process::new(program).args(&arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mount = Mount(&point);
    let error = refusal(device.path(), WRITE);
    assert!(matches!(error, TargetError::Busy { .. }), "{error}");
    drop(mount);
    open(device.path(), WRITE);
}

#[test]
fn a_file_in_memory_is_taken_with_a_warning() {
    let folder = Folder::in_memory();
    let path = folder.path().join("member");
    target::create_file(&path, 1 << 20).unwrap();
    let (_, warnings) = target::open(&path, WRITE).unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(matches!(&warnings[0], Warning::NoDirectIo { path: named, .. } if *named == path));
}

#[test]
fn what_is_no_drive_is_refused_by_name() {
    let folder = Folder::on_disk();
    let missing = folder.path().join("missing");
    assert!(matches!(refusal(&missing, WRITE), TargetError::NotFound { .. }));
    assert!(!missing.exists());
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    assert!(matches!(refusal(&empty, WRITE), TargetError::Empty { .. }));
    for (path, name) in
        [(folder.path(), "a directory"), (Path::new("/dev/null"), "a character device")]
    {
        let message = refusal(path, WRITE).to_string();
        assert!(message.contains(name), "{message}");
        assert!(message.contains(&path.display().to_string()), "{message}");
    }
}
