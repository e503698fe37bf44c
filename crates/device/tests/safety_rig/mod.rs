//! Loop devices, mounts and swap for the safety tests, each undone when it goes out of scope.
//!
//! These tests need root and the tools of the Debian packages that [`run`] names when one is missing.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

pub const MIB: u64 = 1 << 20;

/// Debian package of each tool.
const PACKAGES: &[(&str, &str)] = &[
    ("mkfs.ext2", "e2fsprogs"),
    ("mkfs.ext3", "e2fsprogs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mkfs.vfat", "dosfstools"),
    ("mkfs.exfat", "exfatprogs"),
    ("mkfs.ntfs", "ntfs-3g"),
    ("mkfs.f2fs", "f2fs-tools"),
    ("mkfs.jfs", "jfsutils"),
    ("mkfs.reiserfs", "reiserfsprogs"),
    ("mkfs.nilfs2", "nilfs-tools"),
    ("mkfs.erofs", "erofs-utils"),
    ("mkapfs", "apfsprogs"),
    ("mkudffs", "udftools"),
    ("mksquashfs", "squashfs-tools"),
    ("genisoimage", "genisoimage"),
    ("make-bcache", "bcache-tools"),
    ("cryptsetup", "cryptsetup-bin"),
    ("pvcreate", "lvm2"),
    ("sfdisk", "fdisk"),
    ("mkswap", "util-linux"),
];

/// Runs a tool and expects success; its output is told otherwise.
pub fn run(tool: &str, arguments: &[&str]) -> String {
    let output = try_run(tool, arguments);
    assert!(
        output.status.success(),
        "{tool} {arguments:?} failed: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs a tool, whatever comes of it.
pub fn try_run(tool: &str, arguments: &[&str]) -> Output {
    // Most of these tools are in sbin, which isn't in everybody's PATH.
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    match Command::new(tool).args(arguments).env("PATH", path).output() {
        Ok(output) => output,
        Err(error) => {
            let package = PACKAGES.iter().find(|(name, _)| *name == tool);
            let package = package.map_or("util-linux", |(_, package)| package);
            panic!("this test runs {tool}: {error}; install it with `apt-get install {package}`")
        }
    }
}

/// A folder for images and mount points.
pub fn folder() -> TempDir {
    tempfile::Builder::new().prefix("longtake-safety-").tempdir().expect("a temporary folder")
}

/// A sparse image of so many bytes.
pub fn image(folder: &Path, name: &str, bytes: u64) -> PathBuf {
    let path = folder.join(name);
    File::create(&path).and_then(|file| file.set_len(bytes)).expect("a sparse image");
    path
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// A loop device, detached at the end.
pub struct Loop {
    pub path: PathBuf,
    /// Keeps the image that it stands on.
    _folder: Option<TempDir>,
}

impl Loop {
    /// On a new sparse image.
    pub fn new(bytes: u64) -> Self {
        let folder = folder();
        let image = image(folder.path(), "image", bytes);
        let mut device = Self::on(&image, &[]);
        device._folder = Some(folder);
        device
    }

    /// On an image or device of the caller's.
    pub fn on(backing: &Path, options: &[&str]) -> Self {
        let mut arguments = vec!["--find", "--show"];
        arguments.extend(options);
        arguments.push(text(backing));
        Self { path: run("losetup", &arguments).into(), _folder: None }
    }

    /// On an image that gets a partition table first, as sfdisk's `script` says. partx tells the kernel
    /// of the partitions, because not every kernel reads tables itself.
    pub fn partitioned(image: &Path, script: &str) -> Self {
        let path = image.with_extension("sfdisk");
        std::fs::write(&path, script).expect("a script");
        run("sh", &["-c", "sfdisk --quiet \"$0\" < \"$1\"", text(image), text(&path)]);
        let device = Self::on(image, &[]);
        run("partx", &["--add", device.text()]);
        device
    }

    pub fn text(&self) -> &str {
        text(&self.path)
    }

    /// `/dev/loop0p1`
    pub fn partition(&self, index: u32) -> PathBuf {
        format!("{}p{index}", self.path.display()).into()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        try_run("partx", &["--delete", self.text()]);
        try_run("losetup", &["--detach", self.text()]);
    }
}

/// A mounted file system, unmounted at the end.
pub struct Mount {
    pub point: TempDir,
}

impl Mount {
    pub fn new(device: &Path) -> Self {
        Self::with(&[text(device)])
    }

    pub fn bind(from: &Path) -> Self {
        Self::with(&["--bind", text(from)])
    }

    fn with(arguments: &[&str]) -> Self {
        let point = folder();
        let mut arguments = arguments.to_vec();
        arguments.push(text(point.path()));
        run("mount", &arguments);
        Self { point }
    }

    pub fn unmount(&self) {
        run("umount", &[text(self.point.path())]);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        try_run("umount", &["--lazy", text(self.point.path())]);
    }
}

/// Swap space in use, until the end.
pub struct Swap(pub PathBuf);

impl Swap {
    pub fn on(path: &Path) -> Self {
        run("mkswap", &[text(path)]);
        run("swapon", &[text(path)]);
        Self(path.to_owned())
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        try_run("swapoff", &[text(&self.0)]);
    }
}

/// A process, ended and waited for at the end.
pub struct Child(pub std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An array's superblock header as `docs/format.md` draws it, as far as it is looked at.
pub fn superblock_header(array: [u8; 16]) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[..4].copy_from_slice(&[0x0A, 0x0D, 0x0D, 0x0A]);
    bytes[4..8].copy_from_slice(&512u32.to_le_bytes());
    bytes[8..12].copy_from_slice(&0x1A2B_3C4Du32.to_le_bytes());
    bytes[32..40].copy_from_slice(b"LONGTAKE");
    bytes[40..42].copy_from_slice(&1u16.to_le_bytes());
    bytes[64..80].copy_from_slice(&array);
    bytes
}
