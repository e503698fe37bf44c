//! What a command does before its work begins: it notes what it creates, and looks whether a signal has asked it to stop. A start
//! that fails leaves nothing behind.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use signal_hook::consts::{SIGHUP, TERM_SIGNALS};
use target::NewFiles;

use crate::outlet;

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

/// The files and directories that a command has created. They are removed with this, unless they are kept; the user hears of
/// those that can't be.
#[derive(Debug, Default)]
#[must_use = "they are removed with this"]
pub struct Created(NewFiles);

impl Created {
    /// The work has begun: everything stays.
    pub fn keep(mut self) {
        self.0.keep();
    }
}

impl Deref for Created {
    type Target = NewFiles;

    fn deref(&self) -> &NewFiles {
        &self.0
    }
}

impl DerefMut for Created {
    fn deref_mut(&mut self) -> &mut NewFiles {
        &mut self.0
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        let remaining = self.0.remove();
        if !remaining.is_empty() {
            let remaining: Vec<String> =
                remaining.iter().map(|file| file.display().to_string()).collect();
            outlet::tell(&format!(
                "longtake: warning: these files were created and can't be removed again: {}",
                remaining.join(", ")
            ));
        }
    }
}
