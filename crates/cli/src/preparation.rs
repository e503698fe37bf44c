//! What a command does before its work begins: it checks the space that new files take, notes what it creates, and looks
//! whether a signal has asked it to stop. A start that fails leaves nothing behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use base::ByteSize;
use device::target;
use nix::sys::statvfs::statvfs;
use signal_hook::consts::{SIGHUP, TERM_SIGNALS};

use crate::arguments::FileMode;
use crate::outlet;

/// What a command says that a signal has stopped before its work began.
pub const STOPPED: &str =
    "stopped by a signal before the start; files that this command had created are removed";

/// Is set by a signal that asks to stop. A second one ends the process at once: what was acknowledged is on the media.
///
/// # Errors
/// If signals can't be caught.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in stop_signals() {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Is set by a signal that asks to stop, as long as `begun` is not set. After that a signal ends the process as usual.
///
/// # Errors
/// If signals can't be caught.
pub fn stop_on_signals_until(begun: &Arc<AtomicBool>) -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in stop_signals() {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        signal_hook::flag::register_conditional_default(signal, Arc::clone(begun))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// The signals that ask to stop. A hangup is one of them, unless it is to be ignored, as under `nohup`.
fn stop_signals() -> impl Iterator<Item = i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let hangup = (ignored >> (SIGHUP - 1) & 1 == 0).then_some(SIGHUP);
    TERM_SIGNALS.iter().copied().chain(hangup)
}

/// Ends a preparation that a signal asked to stop.
///
/// # Errors
/// If one did.
pub fn go_on(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) {
        bail!(STOPPED);
    }
    Ok(())
}

/// Refuses files that the file system has no room for. They all go to the file system of `directory`, which may be
/// missing yet. The message ends with `remedy`.
///
/// # Errors
/// If there is less space than they take.
pub fn check_space(directory: &Path, files: u64, size: u64, remedy: &str) -> Result<()> {
    let existing = directory.ancestors().find(|path| path.exists());
    let existing = existing.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let status = statvfs(existing)
        .with_context(|| format!("asking for the free space of {}", existing.display()))?;
    #[allow(clippy::useless_conversion, reason = "32 bits wide on some machines")]
    let available =
        u64::from(status.blocks_available()).saturating_mul(u64::from(status.fragment_size()));
    let needed = files.saturating_mul(size);
    if needed > available {
        bail!(
            "{files} new {} of {} need {needed} bytes ({}), and the file system of {} has {available} bytes ({}) available: free \
             some space, or {remedy}",
            if files == 1 { "file" } else { "files" },
            ByteSize(size),
            ByteSize(needed),
            directory.display(),
            ByteSize(available)
        );
    }
    Ok(())
}

/// The files and directories that a command has created. They are removed with this, unless they are kept.
#[derive(Debug, Default)]
#[must_use = "they are removed with this"]
pub struct Created {
    files: Vec<PathBuf>,
    /// Outermost first.
    directories: Vec<PathBuf>,
}

impl Created {
    /// Creates a directory and those above it that are missing.
    ///
    /// # Errors
    /// If one can't be created.
    pub fn directory(&mut self, path: &Path) -> Result<()> {
        let missing = path
            .ancestors()
            .take_while(|above| !above.as_os_str().is_empty() && above.symlink_metadata().is_err());
        let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        missing.reverse();
        for directory in missing {
            fs::create_dir(&directory)
                .with_context(|| format!("creating {}", directory.display()))?;
            self.directories.push(directory);
        }
        if !path.is_dir() {
            bail!("{} is not a directory: name another", path.display());
        }
        Ok(())
    }

    /// Creates a file with all its space set aside.
    ///
    /// # Errors
    /// If it exists or there is no space.
    pub fn file(&mut self, path: &Path, size: u64, mode: FileMode) -> Result<()> {
        target::create_file_with_mode(path, size, mode.0)?;
        self.files.push(path.to_owned());
        Ok(())
    }

    /// Whether this file was created by the command.
    pub fn holds(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file == path)
    }

    /// The work has begun: everything stays.
    pub fn keep(mut self) {
        self.files.clear();
        self.directories.clear();
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        let mut remaining = Vec::new();
        for file in self.files.drain(..) {
            if fs::remove_file(&file).is_err() && file.symlink_metadata().is_ok() {
                remaining.push(file.display().to_string());
            }
        }
        for directory in self.directories.drain(..).rev() {
            // Whatever somebody else has put there meanwhile keeps it.
            fs::remove_dir(directory).ok();
        }
        if !remaining.is_empty() {
            outlet::tell(&format!(
                "longtake: warning: these files were created and can't be removed again: {}",
                remaining.join(", ")
            ));
        }
    }
}
