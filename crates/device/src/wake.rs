//! Waking a bank that waits, from another thread, with a system call only when it really sleeps.
//!
//! The bank and its wakers share one state. `wake` sets `WOKEN` in it and writes to an eventfd only if
//! it is the first to do so while `ASLEEP` is set; the bank sets `ASLEEP` before it enters the kernel,
//! with a poll of the eventfd in its ring, and stays out of the kernel if it finds anything else there.
//! So a wake is never lost, and many of them make one. A nudge is a wake of the bank's own making: it
//! makes the bank look around, but does not end its wait.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const WOKEN: u8 = 2;
const NUDGED: u8 = 4;

/// Makes a bank's `wait` return early, with nothing done. Clones wake the same bank.
#[derive(Clone, Debug)]
pub struct Waker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: AtomicU8,
    event: File,
}

impl Waker {
    /// Makes the bank's present `wait` return, or else its next one. What was written before this is
    /// seen by the bank's thread after that.
    pub fn wake(&self) {
        self.rouse(WOKEN);
    }

    /// Makes a sleeping bank look for what is done.
    pub(crate) fn nudge(&self) {
        self.rouse(NUDGED);
    }

    fn rouse(&self, by: u8) {
        if self.shared.state.fetch_or(by, Ordering::AcqRel) == ASLEEP {
            // Fails only when 2^64 - 2 events are pending, and then the bank wakes anyway.
            drop((&self.shared.event).write(&1u64.to_ne_bytes()));
        }
    }

    /// A waker that wakes nobody until a bank takes it.
    ///
    /// # Errors
    /// If the process has no file descriptor left for it.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is involved.
        let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if event < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that was just opened, and that nobody else owns.
        let event = unsafe { File::from_raw_fd(event) };
        Ok(Self { shared: Arc::new(Shared { state: AtomicU8::new(AWAKE), event }) })
    }

    /// What the bank polls while it sleeps.
    pub(crate) fn event(&self) -> RawFd {
        self.shared.event.as_raw_fd()
    }

    /// The bank is about to sleep; false if it must not, because it was woken or nudged.
    pub(crate) fn begin_sleep(&self) -> bool {
        self.shared
            .state
            .compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The bank is awake, whatever woke it; true if it was woken since it last asked.
    pub(crate) fn end_sleep(&self) -> bool {
        self.shared.state.swap(AWAKE, Ordering::AcqRel) & WOKEN != 0
    }

    /// Takes what was written to the eventfd, so that it can be polled again.
    pub(crate) fn drain(&self) {
        // Fails when there was nothing, which is as good.
        drop((&self.shared.event).read(&mut [0; 8]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(waker: &Waker) -> u64 {
        let mut count = [0; 8];
        match (&waker.shared.event).read_exact(&mut count) {
            Ok(()) => u64::from_ne_bytes(count),
            Err(_) => 0,
        }
    }

    #[test]
    fn a_wake_before_sleep_is_kept_and_costs_no_system_call() {
        let waker = Waker::new().unwrap();
        waker.wake();
        waker.clone().wake();
        assert!(!waker.begin_sleep());
        assert!(waker.end_sleep());
        assert!(!waker.end_sleep(), "it was taken");
        assert_eq!(events(&waker), 0);
    }

    #[test]
    fn a_nudge_rouses_but_is_no_wake() {
        let waker = Waker::new().unwrap();
        waker.nudge();
        assert!(!waker.begin_sleep());
        assert!(!waker.end_sleep());
        assert!(waker.begin_sleep());
        waker.nudge();
        waker.wake();
        assert_eq!(events(&waker), 1);
        assert!(waker.end_sleep());
    }

    #[test]
    fn many_wakes_of_a_sleeping_bank_are_one_event() {
        let waker = Waker::new().unwrap();
        assert!(waker.begin_sleep());
        for _ in 0..10 {
            waker.wake();
        }
        assert!(waker.end_sleep());
        assert_eq!(events(&waker), 1);
        assert!(waker.begin_sleep());
        assert!(!waker.end_sleep(), "nobody woke it this time");
    }
}
