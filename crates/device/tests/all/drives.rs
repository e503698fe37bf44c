//! Drives for tests: files on disk or in memory, and loop devices, gone again also after a failure.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use base::BufferId;
use base::conformance::Fixture;
use longtake_device::{Pool, UringBank};

/// A folder of its own.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// On the disk that the build is on: folders for temporary files often lie in memory.
    pub fn on_disk() -> Self {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        Self(tempfile::tempdir_in(place).expect("a folder beside the build"))
    }

    /// On tmpfs.
    pub fn in_memory() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").expect("a folder in memory"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// A block device backed by a file. Needs root, loop support and `losetup`.
pub struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    /// On a new file of this size.
    pub fn new(image: &Path, size: u64, block_bytes: u32) -> Self {
        File::create_new(image).and_then(|file| file.set_len(size)).expect("an image file");
        let output = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on", "--sector-size"])
            .arg(block_bytes.to_string())
            .arg(image)
            .output()
            .expect("losetup, of the package util-linux");
        assert!(
            output.status.success(),
            "these tests need root and loop devices: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let path = String::from_utf8(output.stdout).expect("a path");
        Self { path: PathBuf::from(path.trim()) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let status = Command::new("losetup").arg("--detach").arg(&self.path).status();
        if !std::thread::panicking() {
            assert!(status.is_ok_and(|status| status.success()), "detaching {:?}", self.path);
        }
    }
}

/// A bank and its buffers, on drives that go with it.
pub struct OnDrives<D> {
    pub bank: UringBank,
    pub pool: Arc<Pool>,
    /// Declared after the bank, so that the bank is dropped before its drives are removed.
    pub _drives: D,
}

impl<D> Fixture for OnDrives<D> {
    type Bank = UringBank;
    type Memory = Arc<Pool>;

    fn bank(&mut self) -> &mut UringBank {
        &mut self.bank
    }
    fn buffers(&self) -> &Arc<Pool> {
        &self.pool
    }
    fn buffer_ids(&self) -> Vec<BufferId> {
        self.pool.buffer_ids().collect()
    }
}
