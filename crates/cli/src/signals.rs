//! Signals that ask a command to stop.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use lab::Go;
use signal_hook::consts::{SIGHUP, TERM_SIGNALS};

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

/// Whether a signal asked to stop. A second one ends the process at once.
///
/// # Errors
/// If signals can't be caught.
pub fn stop_or_go_on() -> Result<impl Fn() -> Go> {
    let stop = stop_on_signals()?;
    Ok(move || if stop.load(Ordering::Relaxed) { Go::Stop } else { Go::On })
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
