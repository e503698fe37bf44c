//! Discarding ranges of block devices: through the ring where the kernel can (Linux 6.12), else by
//! the ioctl, which blocks until the drive is done and so gets a thread of its own.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};

use crate::wake::Waker;

/// `BLOCK_URING_CMD_DISCARD` of `linux/blkdev.h`.
const BLOCK_URING_CMD_DISCARD: u32 = libc::_IO(0x12, 0) as u32;

/// `BLKDISCARD` of `linux/fs.h`.
const BLKDISCARD: libc::Ioctl = libc::_IO(0x12, 119);

/// Discards `length` bytes at `offset`, when it goes through a ring.
pub(crate) fn discard_entry(file: Fd, offset: u64, length: u64) -> squeue::Entry {
    // The offset travels in the entry's `addr` and the length in `addr3`, which is where the bytes
    // of a command start (`blkdev_uring_cmd` in `block/ioctl.c`).
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&length.to_ne_bytes());
    opcode::UringCmd16::new(file, BLOCK_URING_CMD_DISCARD).addr(Some(offset)).cmd(bytes).build()
}

/// Whether the kernel takes [`discard_entry`] for this block device, which can discard and is open
/// for writing.
pub(crate) fn ring_can_discard(file: &File) -> bool {
    let Ok(mut ring) = IoUring::new(1) else { return false };
    let probe = discard_entry(Fd(file.as_raw_fd()), 0, 0);
    // SAFETY: the entry names no memory.
    if unsafe { ring.submission().push(&probe) }.is_err() || ring.submit_and_wait(1).is_err() {
        return false;
    }
    // A kernel that knows the command refuses an empty range; one that doesn't, the command.
    let result = ring.completion().next().map(|entry| entry.result());
    result == Some(-libc::EINVAL) || result == Some(0)
}

/// Discards one range after the other, in the order they came. The thread starts with the first range: a process that gives
/// up privileges after opening its drives has none that still has them.
pub(crate) struct DiscardThread {
    waker: Waker,
    /// Once it has started.
    running: Option<Running>,
    /// Ranges for which the system gave no thread, with the reason as a negative error number.
    refused: Vec<(u32, i32)>,
}

struct Running {
    requests: Sender<Request>,
    results: Receiver<(u32, i32)>,
    thread: JoinHandle<()>,
}

struct Request {
    number: u32,
    file: Arc<File>,
    offset: u64,
    length: u64,
}

impl DiscardThread {
    /// It will nudge `waker` after each range.
    pub(crate) fn new(waker: Waker) -> Self {
        Self { waker, running: None, refused: Vec::new() }
    }

    /// Asks for a range. Its `number` comes back from [`DiscardThread::done`].
    pub(crate) fn discard(&mut self, number: u32, file: Arc<File>, offset: u64, length: u64) {
        let started = match self.running.take() {
            Some(running) => Ok(running),
            None => Running::start(self.waker.clone()),
        };
        match started {
            Ok(running) => {
                let request = Request { number, file, offset, length };
                let sent = running.requests.send(request);
                sent.expect("the thread takes requests for as long as this is alive");
                self.running = Some(running);
            }
            Err(reason) => {
                self.refused.push((number, -reason.raw_os_error().unwrap_or(libc::EAGAIN)));
                self.waker.nudge();
            }
        }
    }

    /// A range that is done: its number, and 0 or a negative error number, as from a ring.
    pub(crate) fn done(&mut self) -> Option<(u32, i32)> {
        let refused = self.refused.pop();
        refused.or_else(|| self.running.as_ref()?.results.try_recv().ok())
    }

    /// Ends the thread after its last range.
    pub(crate) fn join(self) {
        if let Some(Running { requests, thread, .. }) = self.running {
            drop(requests);
            thread.join().expect("the thread has nothing to panic about");
        }
    }
}

impl Running {
    fn start(waker: Waker) -> io::Result<Self> {
        let (requests, incoming) = channel::<Request>();
        let (outgoing, results) = channel();
        let thread = std::thread::Builder::new().name("trim".to_owned()).spawn(move || {
            for Request { number, file, offset, length } in incoming {
                if outgoing.send((number, discard(&file, offset, length))).is_err() {
                    return;
                }
                waker.nudge();
            }
        })?;
        Ok(Self { requests, results, thread })
    }
}

fn discard(file: &File, offset: u64, length: u64) -> i32 {
    let range = [offset, length];
    // SAFETY: BLKDISCARD reads two 64-bit numbers at the pointer.
    match unsafe { libc::ioctl(file.as_raw_fd(), BLKDISCARD, range.as_ptr()) } {
        0 => 0,
        _ => -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
    }
}
