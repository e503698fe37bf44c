//! Which processors threads run on.

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Tries all of these processors, so that a wrong one is known before anything is done.
pub fn check(processors: &[usize]) -> Result<()> {
    if processors.is_empty() {
        return Ok(());
    }
    let before = Affinity::of_this_thread()?;
    let tried = processors.iter().try_for_each(|&processor| bind(Some(processor)));
    drop(before);
    tried
}

/// Binds the calling thread to a processor.
pub fn bind(processor: Option<usize>) -> Result<()> {
    let Some(processor) = processor else { return Ok(()) };
    let mut set = CpuSet::new();
    set.set(processor).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set)).with_context(|| {
        format!("--cpus: binding a thread to processor {processor} (`nproc` prints their number)")
    })
}

/// The processors of a thread, which it gets back with this.
#[derive(Debug)]
pub struct Affinity(CpuSet);

impl Affinity {
    /// Those of the calling thread.
    pub fn of_this_thread() -> Result<Self> {
        Ok(Self(sched_getaffinity(Pid::from_raw(0)).context("asking for a thread's processors")?))
    }
}

impl Drop for Affinity {
    fn drop(&mut self) {
        // It had them before, so that the system gives them again; a processor that was taken away meanwhile is not missed.
        sched_setaffinity(Pid::from_raw(0), &self.0).ok();
    }
}
