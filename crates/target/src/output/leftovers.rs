//! Files that a killed process left under their temporary names. Each is locked while it is being written, and the kernel releases
//! the lock with the process: a file that can be locked has no writer.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use nix::sys::statfs::{self, FsType, fstatfs};
use nix::unistd::Uid;
use tempfile::NamedTempFile;

/// How the names of outputs begin while they are written. Only such files are locked.
pub(super) const PREFIX: &str = ".longtake-output-";
/// How they end.
pub(super) const SUFFIX: &str = ".tmp";

/// Names tried for a new file, whose lock another process may take for a moment to see whether the file has a writer.
const TRIES_MAX: u32 = 16;

/// What `linux/magic.h` calls XFS_SUPER_MAGIC, which nix leaves out where musl is the C library.
const XFS_SUPER_MAGIC: FsType = FsType(0x5846_5342);

/// File systems of this machine alone, on which a lock is seen by every process that could write.
const LOCAL: [FsType; 6] = [
    statfs::BTRFS_SUPER_MAGIC,
    statfs::EXT4_SUPER_MAGIC,
    statfs::F2FS_SUPER_MAGIC,
    statfs::OVERLAYFS_SUPER_MAGIC,
    statfs::TMPFS_MAGIC,
    XFS_SUPER_MAGIC,
];

/// A file that was removed because the process that wrote it was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Its path.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Makes a temporary file and locks it.
pub(super) fn locked(make: impl Fn() -> io::Result<NamedTempFile>) -> io::Result<NamedTempFile> {
    for _ in 1..TRIES_MAX {
        let file = make()?;
        match file.as_file().try_lock() {
            // It may have been removed before it was locked.
            Ok(()) if file.as_file().metadata()?.nlink() == 0 => {}
            Err(fs::TryLockError::WouldBlock) => {}
            // The file system has no locks: without one the file is not removed.
            Ok(()) | Err(fs::TryLockError::Error(_)) => return Ok(file),
        }
    }
    Err(io::Error::other("other processes keep removing the file before it can be locked"))
}

/// Removes the files in a folder that killed processes of this user left. Those that may have a writer stay, and so does everything
/// on file systems that several machines can share.
pub(super) fn remove(folder: &Path) -> Vec<Leftover> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(PREFIX) && name.ends_with(SUFFIX)
    };
    entries.map(|entry| entry.path()).filter(is_named).filter_map(removed).collect()
}

/// Removes a file if nobody writes it.
fn removed(path: PathBuf) -> Option<Leftover> {
    let open = File::options().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(&path);
    let file = open.ok()?;
    let metadata = file.metadata().ok()?;
    let own = metadata.uid() == Uid::effective().as_raw();
    let local = fstatfs(&file).is_ok_and(|found| LOCAL.contains(&found.filesystem_type()));
    if !metadata.is_file() || !own || !local || file.try_lock().is_err() {
        return None;
    }
    // Between the two looks the file may have been completed under its final name, and another have got this one.
    let named = fs::symlink_metadata(&path).ok()?;
    if (named.dev(), named.ino()) != (metadata.dev(), metadata.ino()) {
        return None;
    }
    fs::remove_file(&path).ok()?;
    Some(Leftover { path, bytes: metadata.len() })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::output::{Outputs, Readers};

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_without_a_writer_is_removed_and_every_other_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let mut written =
            Outputs::new(false).create(&path.join("out.csv"), Readers::Owner).unwrap();
        written.write_all(b"figures").unwrap();
        let being_written = names(path);
        assert_eq!(being_written.len(), 1, "{being_written:?}");
        for other in ["notes.tmp", ".longtake-abc.tmp", ".longtake-output-abc"] {
            fs::write(path.join(other), "somebody's").unwrap();
        }
        std::os::unix::fs::symlink("notes.tmp", path.join(".longtake-output-link.tmp")).unwrap();
        fs::create_dir(path.join(".longtake-output-dir.tmp")).unwrap();
        let before = names(path);
        assert_eq!(remove(path), [], "the writer is alive");
        assert_eq!(names(path), before);
        let dead = path.join(".longtake-output-dead00.tmp");
        fs::write(&dead, "twelve bytes").unwrap();
        assert_eq!(remove(path), [Leftover { path: dead, bytes: 12 }]);
        assert_eq!(names(path), before);
        written.finish().unwrap();
        assert_eq!(fs::read(path.join("out.csv")).unwrap(), b"figures");
    }

    #[test]
    fn a_file_that_is_removed_before_it_is_locked_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let made = std::cell::Cell::new(0);
        let file = locked(|| {
            let file =
                tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).tempfile_in(&folder)?;
            made.set(made.get() + 1);
            // Another process sees the first one before it is locked.
            if made.get() == 1 {
                assert_eq!(remove(folder.path()).len(), 1);
            }
            Ok(file)
        });
        assert!(file.unwrap().path().exists());
        assert_eq!((made.get(), remove(folder.path())), (2, Vec::new()));
    }
}
