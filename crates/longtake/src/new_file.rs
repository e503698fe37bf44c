//! Files that a command writes as a whole. One that is there already is somebody's, and is left alone unless it may be overwritten.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Refuses a file that is there, before anything is done for it.
///
/// # Errors
/// If it is there already and may not be overwritten.
pub fn check(path: &Path, overwrite: bool) -> Result<()> {
    if path.exists() && !overwrite {
        bail!("{} is there already: name another file, or add -y to overwrite it", path.display());
    }
    Ok(())
}

/// Writes a file.
///
/// # Errors
/// If it is there already and may not be overwritten, or can't be written.
pub fn write(path: &Path, contents: &str, overwrite: bool) -> Result<()> {
    if overwrite { File::create(path) } else { File::create_new(path) }
        .and_then(|mut file| file.write_all(contents.as_bytes()))
        .with_context(|| format!("writing {} (-y overwrites a file)", path.display()))
}
