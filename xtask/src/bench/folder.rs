//! Where a benchmark keeps its files.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A folder that is deleted in the end, with everything in it.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl From<PathBuf> for Folder {
    fn from(path: PathBuf) -> Self {
        Self(path)
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
