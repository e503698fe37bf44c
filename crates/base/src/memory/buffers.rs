//! Buffers of plain memory, each marked while a command uses it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::{BufferId, Buffers};

/// Equal buffers, named from 0. Clones share them.
#[derive(Clone, Debug)]
pub struct MemoryBuffers {
    buffers: Arc<[Slot]>,
    size: usize,
}

#[derive(Debug)]
struct Slot {
    in_flight: AtomicBool,
    bytes: Mutex<Vec<u8>>,
}

impl MemoryBuffers {
    /// `count` buffers of `size` zero bytes each.
    pub fn new(count: u32, size: usize) -> Self {
        let slot = |_| Slot { in_flight: AtomicBool::new(false), bytes: Mutex::new(vec![0; size]) };
        Self { buffers: (0..count).map(slot).collect(), size }
    }

    /// The buffers' names.
    pub fn buffer_ids(&self) -> impl Iterator<Item = BufferId> + use<> {
        (0..self.buffers.len() as u32).map(BufferId)
    }

    /// A command uses it from now on.
    ///
    /// # Panics
    /// If one does already, or there is none of that name.
    pub(super) fn begin_flight(&self, buffer: BufferId) {
        let before = self.slot(buffer).in_flight.swap(true, Ordering::AcqRel);
        assert!(
            !before,
            "can't submit a command on buffer {}: a command is using it (wait for its completion \
             first)",
            buffer.0
        );
        drop(self.lock(buffer));
    }

    /// The command is done.
    pub(super) fn end_flight(&self, buffer: BufferId) {
        self.slot(buffer).in_flight.store(false, Ordering::Release);
    }

    /// The bytes of a buffer in flight.
    pub(super) fn lock(&self, buffer: BufferId) -> MutexGuard<'_, Vec<u8>> {
        match self.slot(buffer).bytes.try_lock() {
            Ok(bytes) => bytes,
            // Bytes are bytes, whoever panicked while looking at them.
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => {
                panic!("can't use buffer {}: it is being looked at", buffer.0)
            }
        }
    }

    fn slot(&self, buffer: BufferId) -> &Slot {
        self.buffers.get(buffer.0 as usize).unwrap_or_else(|| {
            panic!(
                "there is no buffer {}: they are named from 0 to {}",
                buffer.0,
                self.buffers.len().saturating_sub(1)
            )
        })
    }
}

impl Buffers for MemoryBuffers {
    fn size(&self) -> usize {
        self.size
    }

    fn with(&self, buffer: BufferId, look: &mut dyn FnMut(&mut [u8])) {
        assert!(
            !self.slot(buffer).in_flight.load(Ordering::Acquire),
            "can't look at buffer {}: a command is using it (wait for its completion first)",
            buffer.0
        );
        look(&mut self.lock(buffer));
    }

    fn lend(&self, buffer: BufferId) {
        self.begin_flight(buffer);
    }

    fn give_back(&self, buffer: BufferId) {
        self.end_flight(buffer);
    }
}
