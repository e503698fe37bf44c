//! The buffers that drives read and write: equal pieces of one mapping, each with one owner at a
//! time, tracked by an atomic state. The pool knows nothing of who gets a buffer next.
//!
//! Why aliasing is impossible in safe code: a reference into a buffer exists only while its state is
//! `BORROWED` (inside [`Buffers::with`]) or `HELD` (a live [`Buffer`]), and the kernel gets the
//! address only while it is `IN_FLIGHT`. Each of the three is entered from `IDLE` alone, by
//! compare-and-swap, so at most one of them holds; the acquire on entry and the release on exit
//! order one owner's accesses before the next one's. Buffers don't overlap.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use base::{BufferId, Buffers};

use crate::mapping::Mapping;
pub use crate::mapping::{Pages, PoolError};
use crate::warning::Warning;

/// Buffers start at multiples of this: what direct I/O and any drive's block size ask for.
const ALIGNMENT_BYTES: usize = 4096;

/// A kernel's limit on the length of one registered range of memory (`io_uring/rsrc.c`).
const REGISTERED_RANGE_BYTES_MAX: usize = 1 << 30;

const IDLE: u8 = 0;
const BORROWED: u8 = 1;
const HELD: u8 = 2;
const IN_FLIGHT: u8 = 3;

/// Equal buffers, named from 0, in one mapping of memory.
#[derive(Debug)]
pub struct Pool {
    mapping: Mapping,
    size: usize,
    stride: usize,
    states: Box<[AtomicU8]>,
}

impl Pool {
    /// `count` buffers of `size` bytes each, all in memory from the start, in the best pages that can
    /// be had from `best` down.
    ///
    /// # Errors
    /// [`PoolError`] if the memory can't be had in any pages.
    pub fn new(
        count: u32,
        size: usize,
        best: Pages,
    ) -> Result<(Arc<Self>, Vec<Warning>), PoolError> {
        let (mapping, warnings) = Mapping::new(bytes(count, size)?, best)?;
        Ok((Self::of(mapping, count, size), warnings))
    }

    /// The same, in memory as buffers are used, for whoever may need few of them or parts of them.
    ///
    /// # Errors
    /// As [`Pool::new`].
    pub fn as_used(count: u32, size: usize) -> Result<Arc<Self>, PoolError> {
        let mapping = Mapping::as_used(bytes(count, size)?)?;
        Ok(Self::of(mapping, count, size))
    }

    fn of(mapping: Mapping, count: u32, size: usize) -> Arc<Self> {
        let states = (0..count).map(|_| AtomicU8::new(IDLE)).collect();
        Arc::new(Self { mapping, size, stride: stride(size), states })
    }

    /// How many buffers there are.
    pub fn count(&self) -> u32 {
        self.states.len() as u32
    }

    /// The buffers' names.
    pub fn buffer_ids(&self) -> impl Iterator<Item = BufferId> + use<> {
        (0..self.count()).map(BufferId)
    }

    /// Whether all of it was in memory from the start.
    pub(crate) fn is_populated(&self) -> bool {
        self.mapping.is_populated()
    }

    /// The pages that the memory got.
    pub fn pages(&self) -> Pages {
        self.mapping.pages()
    }

    /// Takes a buffer for as long as the handle lives, on any thread.
    ///
    /// # Panics
    /// If the buffer is in use, or there is none of that name.
    pub fn hold(self: &Arc<Self>, buffer: BufferId) -> Buffer {
        self.enter(buffer, HELD, "hold");
        Buffer { pool: Arc::clone(self), id: buffer }
    }

    /// Gives a buffer to the kernel until [`Pool::end_flight`].
    ///
    /// # Panics
    /// If the buffer is in use, or there is none of that name.
    pub(crate) fn begin_flight(&self, buffer: BufferId) -> NonNull<u8> {
        self.enter(buffer, IN_FLIGHT, "submit a command on");
        self.address(buffer)
    }

    /// The kernel is done with it.
    pub(crate) fn end_flight(&self, buffer: BufferId) {
        self.leave(buffer, IN_FLIGHT);
    }

    /// The memory as ranges short enough to be registered, each but the last of
    /// [`Pool::registered_range_bytes`]; a buffer lies in one of them whole.
    pub(crate) fn ranges_to_register(&self) -> Vec<libc::iovec> {
        let all = self.stride * self.states.len();
        let range = self.registered_range_bytes();
        (0..all)
            .step_by(range)
            .map(|offset| libc::iovec {
                // SAFETY: `offset` is less than the length of the mapping.
                iov_base: unsafe { self.mapping.start().add(offset) }.as_ptr().cast(),
                iov_len: range.min(all - offset),
            })
            .collect()
    }

    /// Which of [`Pool::ranges_to_register`] a buffer lies in.
    pub(crate) fn range_of(&self, buffer: BufferId) -> u16 {
        let range = buffer.0 as usize * self.stride / self.registered_range_bytes();
        u16::try_from(range).expect("2^16 ranges of a GiB are more than a process can address")
    }

    /// Bytes of memory behind the buffers.
    pub(crate) fn bytes(&self) -> u64 {
        (self.stride * self.states.len()) as u64
    }

    fn registered_range_bytes(&self) -> usize {
        // Buffers longer than a range (no chunk is) would not register; the bank falls back.
        (REGISTERED_RANGE_BYTES_MAX / self.stride).max(1) * self.stride
    }

    #[inline]
    fn address(&self, buffer: BufferId) -> NonNull<u8> {
        assert!(buffer.0 < self.count());
        // SAFETY: the buffer exists, so that its start lies inside the mapping.
        unsafe { self.mapping.start().add(buffer.0 as usize * self.stride) }
    }

    fn enter(&self, buffer: BufferId, state: u8, attempt: &str) {
        let Some(current) = self.states.get(buffer.0 as usize) else {
            panic!(
                "can't {attempt} buffer {}: the pool's buffers are named 0 to {}",
                buffer.0,
                self.count() - 1
            );
        };
        if let Err(found) =
            current.compare_exchange(IDLE, state, Ordering::Acquire, Ordering::Relaxed)
        {
            let why = match found {
                BORROWED => "it is being looked at",
                HELD => "somebody holds it (release it first)",
                _ => "a command is using it (wait for its completion first)",
            };
            panic!("can't {attempt} buffer {}: {why}", buffer.0);
        }
    }

    fn leave(&self, buffer: BufferId, state: u8) {
        let current = &self.states[buffer.0 as usize];
        let before = current.load(Ordering::Relaxed);
        debug_assert_eq!(before, state, "buffer {} changed hands unnoticed", buffer.0);
        // A plain store: nobody else changes the state of a buffer that isn't idle, and a swap costs twenty cycles.
        current.store(IDLE, Ordering::Release);
    }
}

impl Buffers for Pool {
    fn size(&self) -> usize {
        self.size
    }

    fn with(&self, buffer: BufferId, look: &mut dyn FnMut(&mut [u8])) {
        /// Gives the buffer back also when `look` panics.
        struct Borrow<'a>(&'a Pool, BufferId);
        impl Drop for Borrow<'_> {
            fn drop(&mut self) {
                self.0.leave(self.1, BORROWED);
            }
        }
        self.enter(buffer, BORROWED, "look at");
        let _borrow = Borrow(self, buffer);
        // SAFETY: the state is BORROWED until `_borrow` goes, which outlives the slice; so nobody
        // else has a reference to these bytes (see the top of this file). They are initialised,
        // because the mapping is anonymous, and stay mapped as long as `self`.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(self.address(buffer).as_ptr(), self.size) };
        look(bytes);
    }

    fn lend(&self, buffer: BufferId) {
        self.begin_flight(buffer);
    }

    fn give_back(&self, buffer: BufferId) {
        self.end_flight(buffer);
    }
}

/// From the start of a buffer to that of the next one.
fn stride(size: usize) -> usize {
    size.next_multiple_of(ALIGNMENT_BYTES)
}

/// What `count` buffers of `size` bytes take.
fn bytes(count: u32, size: usize) -> Result<usize, PoolError> {
    if count == 0 || size == 0 {
        return Err(PoolError::Empty);
    }
    let too_large = || PoolError::TooLarge { count, size };
    // Commands carry lengths of 32 bits, so a larger buffer couldn't be written whole.
    if size > u32::MAX as usize / 2 {
        return Err(too_large());
    }
    let bytes = stride(size).checked_mul(count as usize).ok_or_else(too_large)?;
    if bytes > isize::MAX as usize / 2 {
        return Err(too_large());
    }
    Ok(bytes)
}

/// A buffer that its holder alone can touch, until it is dropped or released.
#[derive(Debug)]
pub struct Buffer {
    pool: Arc<Pool>,
    id: BufferId,
}

impl Buffer {
    /// The buffer's name.
    pub fn id(&self) -> BufferId {
        self.id
    }

    /// Puts it back, and gives its name to pass on in a command.
    pub fn release(self) -> BufferId {
        self.id
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the state is HELD for as long as this handle lives, and there is one handle for
        // one HELD; so the only references are those borrowed from it (see the top of this file).
        unsafe { std::slice::from_raw_parts(self.pool.address(self.id).as_ptr(), self.pool.size) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` makes the reference unique.
        unsafe {
            std::slice::from_raw_parts_mut(self.pool.address(self.id).as_ptr(), self.pool.size)
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.leave(self.id, HELD);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn pool(count: u32, size: usize) -> Arc<Pool> {
        Pool::new(count, size, Pages::Transparent).unwrap().0
    }

    fn message(action: impl FnOnce()) -> String {
        let payload = catch_unwind(AssertUnwindSafe(action)).expect_err("it should have panicked");
        payload.downcast_ref::<String>().cloned().expect("panics with a text")
    }

    #[test]
    fn buffers_start_at_4_kib_and_keep_what_was_put_in_them() {
        let pool = pool(5, 5000);
        for id in pool.buffer_ids() {
            pool.with(id, &mut |bytes| {
                assert_eq!(bytes.as_ptr().align_offset(ALIGNMENT_BYTES), 0);
                assert_eq!(bytes, [0; 5000]);
                bytes.fill(id.0 as u8 + 1);
            });
        }
        for id in pool.buffer_ids() {
            assert!(pool.hold(id).iter().all(|&byte| byte == id.0 as u8 + 1));
        }
    }

    #[test]
    fn a_buffer_has_one_owner_at_a_time() {
        let pool = pool(2, 4096);
        let held = pool.hold(BufferId(0));
        assert!(message(|| drop(pool.hold(BufferId(0)))).contains("somebody holds it"));
        assert!(message(|| pool.with(BufferId(0), &mut |_| {})).contains("somebody holds it"));
        assert!(
            message(|| {
                pool.begin_flight(BufferId(0));
            })
            .contains("can't submit a command on buffer 0")
        );
        let id = held.release();
        pool.begin_flight(id);
        assert!(message(|| drop(pool.hold(id))).contains("a command is using it"));
        pool.end_flight(id);
        drop(pool.hold(id));
        assert!(message(|| pool.with(BufferId(2), &mut |_| {})).contains("named 0 to 1"));
    }

    #[test]
    fn a_look_that_panics_gives_the_buffer_back() {
        let pool = pool(1, 4096);
        message(|| pool.with(BufferId(0), &mut |_| panic!("{}", "on purpose")));
        pool.with(BufferId(0), &mut |bytes| bytes[0] = 1);
        assert_eq!(pool.hold(BufferId(0))[0], 1);
    }

    #[test]
    fn a_buffer_filled_on_one_thread_is_read_on_another() {
        let pool = pool(1, 1 << 16);
        let mut held = pool.hold(BufferId(0));
        let id = std::thread::spawn(move || {
            held.fill(7);
            held.release()
        })
        .join()
        .unwrap();
        assert!(pool.hold(id).iter().all(|&byte| byte == 7));
    }

    #[test]
    fn every_buffer_lies_in_one_range_to_register() {
        let pool = pool(7, 3000);
        let ranges = pool.ranges_to_register();
        assert_eq!(ranges.iter().map(|range| range.iov_len as u64).sum::<u64>(), pool.bytes());
        for id in pool.buffer_ids() {
            let range = &ranges[pool.range_of(id) as usize];
            let start = range.iov_base as usize;
            let address = pool.address(id).as_ptr() as usize;
            assert!(address >= start && address + 3000 <= start + range.iov_len);
        }
    }

    #[test]
    fn a_pool_of_nothing_or_of_too_much_is_refused() {
        assert!(matches!(Pool::new(0, 4096, Pages::Normal), Err(PoolError::Empty)));
        assert!(matches!(Pool::new(1, 0, Pages::Normal), Err(PoolError::Empty)));
        assert!(matches!(
            Pool::new(u32::MAX, usize::MAX / 2, Pages::Normal),
            Err(PoolError::TooLarge { .. })
        ));
    }
}
