//! A ring's own descriptor, registered for one thread: the kernel then finds the ring without looking at the table of open files, which
//! all threads of a process share (`IORING_REGISTER_RING_FDS` in io_uring_register(2)).

use std::cell::Cell;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};

use io_uring::EnterFlags;
use io_uring::types::Timespec;

/// Opcodes of io_uring_register(2), from `include/uapi/linux/io_uring.h`.
const REGISTER_RING_FDS: libc::c_uint = 20;
const UNREGISTER_RING_FDS: libc::c_uint = 21;

/// `struct io_uring_rsrc_update`.
#[repr(C)]
struct Update {
    offset: u32,
    reserved: u32,
    data: u64,
}

/// `struct io_uring_getevents_arg`.
#[repr(C)]
struct Waiting {
    signal_mask: u64,
    signal_mask_bytes: u32,
    reserved: u32,
    time: u64,
}

/// Numbers for threads: the standard library's takes longer to ask for than the look-up that is saved here.
static THREADS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// This thread's number; 0 until it is asked for.
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

fn this_thread() -> u64 {
    let number = THREAD.get();
    if number != 0 {
        return number;
    }
    THREAD.set(THREADS.fetch_add(1, Ordering::Relaxed));
    THREAD.get()
}

/// A place in a thread's table of rings, given back when dropped on that thread. The table keeps the ring alive until then, or until
/// the thread ends.
#[derive(Debug)]
pub(crate) struct OwnDescriptor {
    ring: RawFd,
    index: u32,
    thread: u64,
}

impl OwnDescriptor {
    /// Registers a ring for this thread; None if the kernel can't, or the thread's table is full.
    pub(crate) fn register(ring: RawFd) -> Option<Self> {
        // The kernel chooses the place.
        let mut update = Update { offset: u32::MAX, reserved: 0, data: ring as u64 };
        let registered = register(ring, REGISTER_RING_FDS, &mut update);
        let thread = this_thread();
        (registered == 1).then_some(Self { ring, index: update.offset, thread })
    }

    /// Whether the place is in the table of the thread that asks: the same number means another ring elsewhere.
    #[inline]
    pub(crate) fn is_of_this_thread(&self) -> bool {
        self.thread == this_thread()
    }

    /// io_uring_enter(2), which waits no longer than `time` if there is one.
    #[inline]
    pub(crate) fn enter(
        &self,
        queued: u32,
        done_min: u32,
        flags: EnterFlags,
        time: Option<&Timespec>,
    ) -> io::Result<()> {
        let time_address = time.map_or(0, |time| std::ptr::from_ref(time) as u64);
        let waiting =
            Waiting { signal_mask: 0, signal_mask_bytes: 0, reserved: 0, time: time_address };
        let (argument, bytes, extended) = match time {
            Some(_) => (&raw const waiting, size_of::<Waiting>(), EnterFlags::EXT_ARG),
            None => (std::ptr::null(), 0, EnterFlags::empty()),
        };
        let flags = (flags | extended | EnterFlags::REGISTERED_RING).bits();
        // SAFETY: beside the ring's own memory, the kernel reads `waiting` and the time, which stay until the call returns.
        let entered = unsafe {
            let call = libc::SYS_io_uring_enter;
            libc::syscall(call, self.index, queued, done_min, flags, argument, bytes)
        };
        if entered < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Drop for OwnDescriptor {
    fn drop(&mut self) {
        if self.is_of_this_thread() {
            let mut update = Update { offset: self.index, reserved: 0, data: 0 };
            register(self.ring, UNREGISTER_RING_FDS, &mut update);
        }
    }
}

fn register(ring: RawFd, what: libc::c_uint, update: &mut Update) -> libc::c_long {
    // SAFETY: the kernel reads and writes one update, which is ours until the call returns.
    unsafe { libc::syscall(libc::SYS_io_uring_register, ring, what, &raw mut *update, 1) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use io_uring::IoUring;

    use super::*;

    /// Rings that a thread can have registered at once (`IO_RINGFD_REG_MAX` of Linux).
    const PLACES: usize = 16;

    #[test]
    fn a_place_is_given_back_and_a_full_table_is_no_failure() {
        let rings: Vec<IoUring> = (0..=PLACES).map(|_| IoUring::new(2).unwrap()).collect();
        for _ in 0..3 {
            let all: Vec<_> =
                rings.iter().map(|ring| OwnDescriptor::register(ring.as_raw_fd())).collect();
            assert_eq!(all.iter().flatten().count(), PLACES);
            for own in all.iter().flatten() {
                own.enter(0, 0, EnterFlags::GETEVENTS, None).unwrap();
            }
        }
    }

    #[test]
    fn a_place_is_known_to_be_in_another_threads_table() {
        let ring = IoUring::new(2).unwrap();
        let own = OwnDescriptor::register(ring.as_raw_fd()).unwrap();
        assert!(own.is_of_this_thread());
        let elsewhere =
            std::thread::scope(|scope| scope.spawn(|| own.is_of_this_thread()).join().unwrap());
        assert!(!elsewhere);
    }

    #[test]
    fn waiting_ends_when_the_time_is_up() {
        let ring = IoUring::new(2).unwrap();
        let own = OwnDescriptor::register(ring.as_raw_fd()).unwrap();
        let time = Timespec::new().nsec(1_000);
        let over = own.enter(0, 1, EnterFlags::GETEVENTS, Some(&time)).unwrap_err();
        assert_eq!(over.raw_os_error(), Some(libc::ETIME));
    }
}
