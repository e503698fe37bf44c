//! Predictable Latency Mode: while a set is in a deterministic window, its dies do nothing but what the host asks; what the drive has to
//! do for itself waits until the window is over. NVM Express Base Specification 2.0, section 8.16.

use base::{Instant, Operation};

use super::Drive;
use super::namespaces::Place;
use crate::earliest::NEVER;
use crate::health::SetWindow;
use crate::spec::Predictable;

/// The window that a set is in (Predictable Latency Mode Window, feature 14h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// DTWIN: reads take the time of a die that does nothing else.
    Deterministic,
    /// NDWIN: the drive does its housekeeping.
    NonDeterministic,
}

/// Bytes that count as a read in a deterministic window.
const READ_BYTES: u64 = 4 << 10;

/// The windows of a drive's sets.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    limits: Predictable,
    /// Each set's; None while the mode is off for it.
    sets: Vec<Option<SetState>>,
    /// When the first deterministic window is over, in nanoseconds; [`NEVER`] without one.
    pub(super) ends_at: u64,
}

#[derive(Clone, Copy, Debug)]
struct SetState {
    window: Window,
    since: u64,
    /// What is left of a deterministic window: bytes of reads and of writes, and when its time is over.
    reads: u64,
    writes: u64,
    until: u64,
    /// The share of the last one that was used up, 0 to 1.
    used: f64,
    /// Programs of the drive's own that wait for its end.
    owed: u64,
    /// Deterministic windows that the drive ended by itself.
    ended: u64,
}

impl Windows {
    pub(super) fn new(limits: Predictable, sets: u32) -> Self {
        Self { limits, sets: vec![None; sets as usize], ends_at: NEVER }
    }

    fn is_deterministic(&self, set: u32) -> bool {
        let state = &self.sets[set as usize];
        state.is_some_and(|state| state.window == Window::Deterministic)
    }

    /// Notes when the first deterministic window is over.
    fn look(&mut self) {
        let open = self.sets.iter().flatten().filter(|one| one.window == Window::Deterministic);
        self.ends_at = open.map(|one| one.until).min().unwrap_or(NEVER);
    }

    /// The share of a whole deterministic window that a set is ready for: it recovers from what it used of the last one.
    fn ready(&self, state: &SetState, now: u64) -> f64 {
        let Predictable { recovery_ms, recovery_least_ms, .. } = self.limits;
        let elapsed_ms = (now - state.since) as f64 / 1e6;
        if elapsed_ms < recovery_least_ms {
            return 0.0;
        }
        let more = (recovery_ms - recovery_least_ms) * state.used;
        let recovered =
            if more > 0.0 { ((elapsed_ms - recovery_least_ms) / more).min(1.0) } else { 1.0 };
        1.0 - state.used * (1.0 - recovered)
    }
}

impl SetState {
    /// What is used up of a window that was as long as limits allow.
    fn used(&self, now: u64, limits: &Predictable, write_bytes: u64) -> f64 {
        let share = |left: f64, whole: f64| if whole > 0.0 { 1.0 - left / whole } else { 0.0 };
        let time = self.until.saturating_sub(now) as f64 / 1e6;
        share(self.reads as f64, (limits.reads * READ_BYTES) as f64)
            .max(share(self.writes as f64, (limits.writes * write_bytes) as f64))
            .max(share(time, limits.longest_ms))
            .clamp(0.0, 1.0)
    }
}

impl Drive {
    /// Turns the mode off for a set (None), or asks for a window, as Set Features 13h and 14h do. Returns the window that the set is in
    /// then: a deterministic one only begins once the set has recovered from the last. None without the mode.
    pub fn set_window(&mut self, now: u64, set: u32, window: Option<Window>) -> Option<Window> {
        self.now = now;
        let was = self.windows.as_ref()?.sets[set as usize];
        match (window, was) {
            (None, _) => {
                self.recover(set);
                if let Some(windows) = &mut self.windows {
                    windows.sets[set as usize] = None;
                }
                self.keep_for_window(set, 0, false);
                self.rest_soon();
            }
            (Some(Window::Deterministic), Some(state)) => self.begin_window(set, state),
            (Some(Window::Deterministic), None) => {
                self.begin_recovery(set, 1.0, 0);
            }
            (Some(Window::NonDeterministic), None) => self.begin_recovery(set, 1.0, 0),
            (Some(Window::NonDeterministic), Some(state)) => {
                if state.window == Window::Deterministic {
                    self.end_window(set, false);
                }
            }
        }
        if let Some(windows) = &mut self.windows {
            windows.look();
        }
        self.find_others();
        self.windows.as_ref()?.sets[set as usize].map(|state| state.window)
    }

    /// Begins a deterministic window, with as much in it as the set is ready for.
    fn begin_window(&mut self, set: u32, state: SetState) {
        let write_bytes = self.window_write_bytes(set);
        let room = self.room_without_collecting(set);
        let mut dies = self.sets[set as usize].dies.iter();
        // It has not recovered before its dies are done with what it has to do for itself.
        if state.window == Window::Deterministic || dies.any(|&die| self.dies.is_tidying(die)) {
            return;
        }
        let Some(windows) = &mut self.windows else { return };
        let (limits, ready) = (windows.limits, windows.ready(&state, self.now));
        let nanoseconds = (limits.longest_ms * ready * 1e6) as u64;
        let reads = (limits.reads as f64 * ready) as u64 * READ_BYTES;
        if nanoseconds == 0 || reads == 0 {
            return;
        }
        let writes = ((limits.writes as f64 * ready) as u64 * write_bytes).min(room);
        windows.sets[set as usize] = Some(SetState {
            window: Window::Deterministic,
            since: self.now,
            reads,
            writes,
            until: self.now + nanoseconds,
            ..state
        });
        self.keep_for_window(set, 0, true);
    }

    /// Ends a deterministic window.
    fn end_window(&mut self, set: u32, by_itself: bool) {
        let write_bytes = self.window_write_bytes(set);
        let Some(windows) = &self.windows else { return };
        let Some(state) = windows.sets[set as usize] else { return };
        let used = state.used(self.now, &windows.limits, write_bytes);
        self.begin_recovery(set, used, state.ended + u64::from(by_itself));
    }

    /// Begins a non-deterministic window after one of which so much was used.
    fn begin_recovery(&mut self, set: u32, used: f64, ended: u64) {
        self.recover(set);
        let write_bytes = self.window_write_bytes(set);
        let Some(windows) = &mut self.windows else { return };
        let bytes = windows.limits.writes * write_bytes;
        windows.sets[set as usize] = Some(SetState {
            window: Window::NonDeterministic,
            since: self.now,
            reads: 0,
            writes: 0,
            until: 0,
            used,
            owed: 0,
            ended,
        });
        windows.look();
        self.keep_for_window(set, bytes, false);
        self.rest_soon();
    }

    /// Has an idle drive do the work of idle time, which sets in a window have left.
    fn rest_soon(&mut self) {
        if self.under_way == 0 {
            self.idle_at = self.idle_at.min((self.now + self.idle_ns).max(self.drain_at));
        }
    }

    /// Ends a window in which a write left the collector, or the cache, no choice.
    #[cold]
    pub(super) fn end_disturbed_window(&mut self, set: u32) {
        self.end_window(set, true);
        self.find_others();
    }

    /// Has a set's collector stand still, or keep room for so many bytes beside what it always keeps.
    fn keep_for_window(&mut self, set: u32, bytes: u64, still: bool) {
        let superblock = self.superblock_bytes(set);
        self.with_flash(set as usize, |ftl, hands| {
            ftl.keep_for_window(bytes.div_ceil(superblock) as u32, still, hands);
        });
        if !still {
            self.erase_ahead_everywhere();
        }
    }

    /// Does what a set owes.
    fn recover(&mut self, set: u32) {
        let Some(state) = self.windows.as_mut().and_then(|it| it.sets[set as usize].as_mut())
        else {
            return;
        };
        let owed = std::mem::take(&mut state.owed);
        let dies = self.sets[set as usize].dies.len();
        for number in 0..owed as usize {
            let die = self.sets[set as usize].dies[number % dies];
            self.dies.add(self.now, die, crate::dies::Work::Upkeep);
        }
        self.sets[set as usize].upkeep_programs += owed;
    }

    /// Whether a set's dies are to do nothing but what the host asks.
    #[inline]
    pub(super) fn is_deterministic(&self, set: u32) -> bool {
        self.windows.as_ref().is_some_and(|windows| windows.is_deterministic(set))
    }

    /// Has a program of the drive's own wait for the end of a deterministic window; false outside one.
    pub(super) fn owe(&mut self, set: u32) -> bool {
        let deterministic = self.is_deterministic(set);
        let state = self.windows.as_mut().and_then(|it| it.sets[set as usize].as_mut());
        if let Some(state) = state.filter(|_| deterministic) {
            state.owed += 1;
        }
        deterministic
    }

    /// Counts a command in the windows of its sets, and ends those that it is too much for.
    #[cold]
    pub(super) fn count_in_windows(&mut self, now: u64, namespace: u32, operation: &Operation) {
        self.now = now;
        self.end_windows();
        if let Operation::Read { offset, length, .. } | Operation::Write { offset, length, .. } =
            *operation
        {
            let (mut at, end) = (offset, offset + u64::from(length));
            while at < end {
                let Place { set, units, .. } = self.namespaces.locate(namespace, at, end);
                let until = (self.unit.floor(at) + self.unit.bytes_of(units.into())).min(end);
                self.count_in_window(set, until - at, matches!(operation, Operation::Read { .. }));
                at = until;
            }
        }
        self.find_others();
    }

    /// Counts bytes that are read from a set, or written to it, in its window.
    fn count_in_window(&mut self, set: u32, bytes: u64, reads: bool) {
        let Some(windows) = &mut self.windows else { return };
        let deterministic = windows.is_deterministic(set);
        let Some(state) = windows.sets[set as usize].as_mut().filter(|_| deterministic) else {
            return;
        };
        let left = if reads {
            let bytes = bytes.next_multiple_of(READ_BYTES);
            state.reads.checked_sub(bytes).map(|left| state.reads = left)
        } else {
            state.writes.checked_sub(bytes).map(|left| state.writes = left)
        };
        if left.is_none() {
            self.end_window(set, true);
        }
    }

    /// Ends the deterministic windows whose time is over.
    pub(super) fn end_windows(&mut self) {
        for set in 0..self.sets.len() as u32 {
            let state = self.windows.as_ref().and_then(|windows| windows.sets[set as usize]);
            let over =
                |state: SetState| state.window == Window::Deterministic && state.until <= self.now;
            if state.is_some_and(over) {
                self.end_window(set, true);
            }
        }
    }

    /// Turns the mode off everywhere, as a drive that gets power again does.
    pub(super) fn forget_windows(&mut self) {
        let Some(windows) = &mut self.windows else { return };
        *windows = Windows::new(windows.limits, windows.sets.len() as u32);
        for set in &mut self.sets {
            set.ftl.keep_for_window(0, false, &mut crate::ftl::start::Nothing);
        }
    }

    /// What a set's window is, for its log; None without the mode.
    pub(super) fn set_window_health(&self, set: u32, now: u64) -> Option<SetWindow> {
        let write_bytes = self.window_write_bytes(set);
        let state = self.windows.as_ref()?.sets[set as usize]?;
        let deterministic = state.window == Window::Deterministic;
        let left = |count: u64| if deterministic { count } else { 0 };
        Some(SetWindow {
            window: state.window,
            since: Instant::from_nanos(state.since),
            reads_left: left(state.reads / READ_BYTES),
            writes_left: left(state.writes / write_bytes),
            ms_left: left(state.until.saturating_sub(now) / 1_000_000),
            ended: state.ended,
        })
    }

    /// Bytes of a write of the size that suits a set: its dies program them at once.
    fn window_write_bytes(&self, set: u32) -> u64 {
        self.spec.flash.program_bytes() * self.sets[set as usize].dies.len() as u64
    }

    fn superblock_bytes(&self, set: u32) -> u64 {
        let units = self.sets[set as usize].ftl.setup().stripe.units(false);
        self.unit.bytes_of(units.into())
    }

    /// Bytes that the host may write into a set before it has to collect.
    fn room_without_collecting(&self, set: u32) -> u64 {
        let ftl = &self.sets[set as usize].ftl;
        let superblocks = ftl.free().saturating_sub(ftl.setup().reserve + 1);
        u64::from(superblocks) * self.superblock_bytes(set)
    }
}
