//! Files that a command makes for its drives: whether there is space for them, and their removal if the work does not begin.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base::ByteSize;
use device::target::{CreateFileError, create_file_with_mode};
use nix::errno::Errno;
use nix::sys::statvfs::statvfs;

/// Refuses files that the file system has no room for. They all go to the file system of `directory`, which may be
/// missing yet. The message ends with `remedy`.
///
/// # Errors
/// If there is less space than they take.
pub fn check_space(
    directory: &Path,
    files: u64,
    size_bytes: u64,
    remedy: &'static str,
) -> Result<(), NewFilesError> {
    let available_bytes = available_bytes(directory)?;
    if files.saturating_mul(size_bytes) > available_bytes {
        let directory = directory.to_owned();
        return Err(NewFilesError::NoSpace {
            directory,
            files,
            size_bytes,
            available_bytes,
            remedy,
        });
    }
    Ok(())
}

/// Bytes that new files in `directory`, which may be missing yet, can take.
///
/// # Errors
/// If the file system doesn't tell.
pub fn available_bytes(directory: &Path) -> Result<u64, NewFilesError> {
    let existing = directory.ancestors().find(|path| path.exists());
    let existing = existing.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let status = statvfs(existing)
        .map_err(|reason| NewFilesError::FreeSpace { path: existing.to_owned(), reason })?;
    #[allow(clippy::useless_conversion, reason = "32 bits wide on some machines")]
    let bytes = |blocks| u64::from(blocks).saturating_mul(u64::from(status.fragment_size()));
    Ok(bytes(status.blocks_available()))
}

/// The files and directories that a command has created. They are removed with this, unless they are kept.
#[derive(Debug, Default)]
#[must_use = "they are removed with this"]
pub struct NewFiles {
    files: Vec<PathBuf>,
    /// Outermost first.
    directories: Vec<PathBuf>,
}

impl NewFiles {
    /// Creates a directory and those above it that are missing.
    ///
    /// # Errors
    /// If one can't be created.
    pub fn directory(&mut self, path: &Path) -> Result<(), NewFilesError> {
        let missing = path
            .ancestors()
            .take_while(|above| !above.as_os_str().is_empty() && above.symlink_metadata().is_err());
        let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        missing.reverse();
        for directory in missing {
            if let Err(reason) = fs::create_dir(&directory) {
                return Err(NewFilesError::Directory { path: directory, reason });
            }
            self.directories.push(directory);
        }
        if !path.is_dir() {
            return Err(NewFilesError::NoDirectory { path: path.to_owned() });
        }
        Ok(())
    }

    /// Creates a file with all its space set aside.
    ///
    /// # Errors
    /// If it exists or there is no space.
    pub fn file(&mut self, path: &Path, size_bytes: u64, mode: u32) -> Result<(), NewFilesError> {
        create_file_with_mode(path, size_bytes, mode).map_err(NewFilesError::File)?;
        self.files.push(path.to_owned());
        Ok(())
    }

    /// Whether this file was created by the command.
    pub fn holds(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file == path)
    }

    /// The work has begun: everything stays.
    pub fn keep(&mut self) {
        self.files.clear();
        self.directories.clear();
    }

    /// Removes everything, and gives the files that can't be removed.
    pub fn remove(&mut self) -> Vec<PathBuf> {
        let mut remaining = Vec::new();
        for file in self.files.drain(..) {
            if fs::remove_file(&file).is_err() && file.symlink_metadata().is_ok() {
                remaining.push(file);
            }
        }
        for directory in self.directories.drain(..).rev() {
            // Whatever somebody else has put there meanwhile keeps it.
            fs::remove_dir(directory).ok();
        }
        remaining
    }
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Why a file or directory can't be made.
#[derive(Debug)]
pub enum NewFilesError {
    /// The free space of a file system can't be asked for.
    FreeSpace {
        /// A file or directory on it.
        path: PathBuf,
        /// The kernel's reason.
        reason: Errno,
    },
    /// The file system has no room for the files.
    NoSpace {
        /// Their directory.
        directory: PathBuf,
        /// Number of files.
        files: u64,
        /// Size of each.
        size_bytes: u64,
        /// Free space of the file system.
        available_bytes: u64,
        /// What else the user can do.
        remedy: &'static str,
    },
    /// A directory can't be created.
    Directory {
        /// The directory.
        path: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// There is something else where the directory should be.
    NoDirectory {
        /// The path.
        path: PathBuf,
    },
    /// A file can't be created.
    File(CreateFileError),
}

impl fmt::Display for NewFilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FreeSpace { path, .. } => {
                write!(f, "asking for the free space of {}", path.display())
            }
            Self::NoSpace { directory, files, size_bytes, available_bytes, remedy } => {
                let needed = files.saturating_mul(*size_bytes);
                write!(
                    f,
                    "{files} new {} of {} need {needed} bytes ({}), and the file system of {} has {available_bytes} bytes ({}) \
                     available: free some space, or {remedy}",
                    if *files == 1 { "file" } else { "files" },
                    ByteSize(*size_bytes),
                    ByteSize(needed),
                    directory.display(),
                    ByteSize(*available_bytes)
                )
            }
            Self::Directory { path, .. } => write!(f, "creating {}", path.display()),
            Self::NoDirectory { path } => {
                write!(f, "{} is not a directory: name another", path.display())
            }
            Self::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NewFilesError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::FreeSpace { reason, .. } => Some(reason),
            Self::Directory { reason, .. } => Some(reason),
            Self::File(error) => error.source(),
            Self::NoSpace { .. } | Self::NoDirectory { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_kept_is_removed_but_nothing_that_somebody_else_has_put_there() {
        let folder = tempfile::tempdir().unwrap();
        let (outer, inner) = (folder.path().join("a"), folder.path().join("a/b"));
        let make = || {
            let mut made = NewFiles::default();
            made.directory(&inner).unwrap();
            made.file(&inner.join("member0"), 4096, 0o600).unwrap();
            assert!(made.holds(&inner.join("member0")));
            made
        };
        drop(make());
        assert!(!outer.exists());

        let mut made = make();
        fs::write(inner.join("other"), "mine").unwrap();
        assert_eq!(made.remove(), Vec::<PathBuf>::new());
        assert!(inner.join("other").exists() && !inner.join("member0").exists());

        fs::remove_dir_all(&outer).unwrap();
        make().keep();
        assert!(inner.join("member0").exists());
    }

    #[test]
    fn more_than_the_file_system_has_is_refused_with_what_would_help() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("not/yet");
        assert!(check_space(&missing, 1, 4096, "").is_ok());
        let error = check_space(&missing, 2, 1 << 62, "give less").unwrap_err().to_string();
        assert!(error.contains("2 new files of") && error.ends_with("or give less"), "{error}");
    }
}
