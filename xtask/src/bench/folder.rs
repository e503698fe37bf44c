//! Where a benchmark keeps its files.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::program;

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

/// A file system in memory (tmpfs). Dropping it unmounts it and deletes its files.
#[derive(Debug)]
pub struct Memory(Folder);

impl Memory {
    /// Makes a folder and mounts a file system of so many bytes there.
    ///
    /// # Errors
    /// If it can't be mounted, which takes root.
    pub fn mount(path: PathBuf, bytes: u64) -> Result<Self> {
        fs::create_dir_all(&path)?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]).arg(&path);
        program::run(&mut mount).context("mounting memory as a file system (it takes root)")?;
        Ok(Self(path.into()))
    }
}

impl Deref for Memory {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        drop(program::run(Command::new("umount").arg(&*self.0)));
    }
}
