//! An io_uring, set up in the fastest way that the kernel knows, with entries of the size that its
//! drives need.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use base::{BufferId, Duration};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{Builder, EnterFlags, IoUring, cqueue, squeue};

use crate::own_descriptor::OwnDescriptor;

use crate::pool::Pool;
use crate::target::OpenTarget;
use crate::warning::Warning;

/// Most submission queue entries that a ring can have (`IORING_MAX_ENTRIES` of Linux).
pub(crate) const RING_ENTRIES_MAX: u32 = 32768;

/// Longest single sleep: a clock that far ahead would overflow in the kernel's sum.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// Why a bank can't be opened.
#[derive(Debug)]
pub enum OpenError {
    /// No drives, or more than a [`base::DriveId`] can name.
    DriveCount {
        /// How many there were.
        count: usize,
    },
    /// A queue depth of zero, or drives and depth that add up to more than a ring takes.
    Depth {
        /// Commands a drive.
        depth_max: u32,
        /// Drives.
        drives: usize,
        /// The greatest depth that so many such drives can have.
        possible: u64,
    },
    /// The kernel has no io_uring for us.
    NoRing {
        /// Its reason.
        reason: io::Error,
    },
    /// The kernel's io_uring lacks what this needs.
    KernelTooOld {
        /// What it lacks.
        lacking: &'static str,
        /// The first version of Linux that has it.
        since: &'static str,
    },
    /// A thread or a descriptor that the bank needs can't be had.
    Os {
        /// What was tried.
        attempted: &'static str,
        /// The kernel's reason.
        reason: io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DriveCount { count } => {
                write!(f, "a bank has between 1 and {} drives, not {count}", u16::MAX)
            }
            Self::Depth { depth_max, drives, possible } => write!(
                f,
                "{drives} drives with {depth_max} commands each can't share one ring of at most \
                 {RING_ENTRIES_MAX} entries; choose a queue depth between 1 and {possible}"
            ),
            Self::NoRing { reason } => {
                let advice = match reason.raw_os_error() {
                    Some(libc::ENOSYS) => "it needs Linux 5.11 or later",
                    Some(libc::EPERM) => {
                        "set `sysctl kernel.io_uring_disabled=0`, and allow io_uring in the \
                         container's seccomp profile"
                    }
                    Some(libc::ENOMEM) => "raise the limit of locked memory with `ulimit -l`",
                    _ => "see io_uring_setup(2) for the reason",
                };
                write!(f, "setting up io_uring failed: {reason}; {advice}")
            }
            Self::KernelTooOld { lacking, since } => {
                write!(f, "this kernel's io_uring lacks {lacking}; Linux {since} or later has it")
            }
            Self::Os { attempted, reason } => write!(f, "{attempted} failed: {reason}"),
        }
    }
}

impl std::error::Error for OpenError {}

/// What a ring must be able to do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    /// Submission queue entries, at least.
    pub(crate) entries: u32,
    /// Entries of twice the size, for passthrough.
    pub(crate) wide: bool,
    /// Completions are polled for and interrupt nobody; nothing but reads and writes goes in.
    pub(crate) polled: bool,
}

/// How long entering the kernel may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    /// Only to hand over what is queued and to take what is done.
    Not,
    /// Until something is done, or for so long.
    For(Duration),
    /// Until something is done.
    UntilDone,
}

/// A ring. It is disabled until [`Ring::enable`] binds it to a thread.
pub(crate) struct Ring {
    /// The kernel keeps the ring itself at hand for one thread. It goes before the ring does.
    own: Option<OwnDescriptor>,
    queues: Queues,
    polled: bool,
    /// The pool's memory is locked for good.
    buffers_registered: bool,
    /// The kernel keeps the files at hand, by their index.
    files_registered: bool,
}

enum Queues {
    Narrow(IoUring),
    Wide(IoUring<squeue::Entry128, cqueue::Entry32>),
}

/// The same with entries of either size.
macro_rules! with {
    ($queues:expr, $ring:ident => $do:expr) => {
        match $queues {
            Queues::Narrow($ring) => $do,
            Queues::Wide($ring) => $do,
        }
    };
}

impl Ring {
    pub(crate) fn new(needs: Needs) -> Result<Self, OpenError> {
        let queues = match needs.wide {
            true => Queues::Wide(build(needs).map_err(|reason| match reason.raw_os_error() {
                Some(libc::EINVAL) => OpenError::KernelTooOld {
                    lacking: "large entries, which NVMe passthrough needs",
                    since: "5.19",
                },
                _ => OpenError::NoRing { reason },
            })?),
            false => Queues::Narrow(build(needs).map_err(|reason| OpenError::NoRing { reason })?),
        };
        let parameters = with!(&queues, ring => ring.params());
        for (has, lacking) in [
            (parameters.is_feature_ext_arg(), "waiting with a time limit"),
            (parameters.is_feature_nodrop(), "keeping completions that don't fit"),
        ] {
            if !has {
                return Err(OpenError::KernelTooOld { lacking, since: "5.11" });
            }
        }
        let (buffers_registered, files_registered) = (false, false);
        let polled = needs.polled;
        Ok(Self { queues, polled, buffers_registered, files_registered, own: None })
    }

    /// Has the kernel lock the pool's memory for good. The pool must stay until it was unregistered,
    /// or the ring is gone.
    pub(crate) fn register_buffers(&mut self, pool: &Pool, warnings: &mut Vec<Warning>) {
        let ranges = pool.ranges_to_register();
        // SAFETY: the ranges are the pool's mapping, which stays until the pool goes; and the bank,
        // which owns the ring, keeps the pool until it has unregistered them.
        match with!(&self.queues, ring => unsafe { ring.submitter().register_buffers(&ranges) }) {
            Ok(()) => self.buffers_registered = true,
            Err(reason) => {
                let (bytes, reason) = (pool.bytes(), reason.to_string());
                warnings.push(Warning::BuffersNotRegistered { bytes, reason });
            }
        }
    }

    /// Has the kernel keep the targets' files at hand, by their index.
    pub(crate) fn register_files(&mut self, targets: &[OpenTarget], warnings: &mut Vec<Warning>) {
        let files: Vec<_> = targets.iter().map(|target| target.file.as_raw_fd()).collect();
        match with!(&self.queues, ring => ring.submitter().register_files(&files)) {
            Ok(()) => self.files_registered = true,
            Err(reason) => {
                warnings.push(Warning::FilesNotRegistered { reason: reason.to_string() });
            }
        }
    }

    /// Lets go of memory and files. The end of the ring does this too, but some time later. Failures
    /// leave it to the end of the ring.
    pub(crate) fn unregister(&mut self) {
        with!(&self.queues, ring => {
            if std::mem::take(&mut self.files_registered) {
                drop(ring.submitter().unregister_files());
            }
            if std::mem::take(&mut self.buffers_registered) {
                drop(ring.submitter().unregister_buffers());
            }
        });
        self.own = None;
    }

    /// Lets the ring take commands, from now on from this thread. With `register_own`, the kernel also keeps the ring at hand for this
    /// thread, where it can (Linux 5.18).
    pub(crate) fn enable(&mut self, register_own: bool) -> io::Result<()> {
        with!(&self.queues, ring => ring.submitter().register_enable_rings())?;
        self.own = register_own.then(|| OwnDescriptor::register(self.descriptor())).flatten();
        Ok(())
    }

    fn descriptor(&self) -> RawFd {
        with!(&self.queues, ring => ring.as_raw_fd())
    }

    /// How an entry names a file: by its index where it is registered, and a flag says so.
    pub(crate) fn file(&self, index: u16, file: &File) -> (Fd, squeue::Flags) {
        if self.files_registered {
            (Fd(i32::from(index)), squeue::Flags::FIXED_FILE)
        } else {
            (Fd(file.as_raw_fd()), squeue::Flags::empty())
        }
    }

    /// Whether it has registered memory.
    pub(crate) fn has_buffers(&self) -> bool {
        self.buffers_registered
    }

    /// The registered range that a buffer lies in, if it is registered.
    pub(crate) fn range_of(&self, pool: &Pool, buffer: Option<BufferId>) -> Option<u16> {
        buffer.filter(|_| self.buffers_registered).map(|buffer| pool.range_of(buffer))
    }

    /// Queues an entry.
    ///
    /// # Safety
    /// The memory that it names must stay the kernel's until its completion.
    pub(crate) unsafe fn push(&mut self, entry: squeue::Entry) {
        let pushed = match &mut self.queues {
            // SAFETY: as the caller promises.
            Queues::Narrow(ring) => unsafe { ring.submission().push(&entry) },
            // SAFETY: as the caller promises.
            Queues::Wide(ring) => unsafe { ring.submission().push(&entry.into()) },
        };
        pushed.expect("a ring is made with an entry for whatever can be in it");
    }

    /// Queues a large entry.
    ///
    /// # Safety
    /// As [`Ring::push`].
    pub(crate) unsafe fn push_wide(&mut self, entry: &squeue::Entry128) {
        let Queues::Wide(ring) = &mut self.queues else {
            unreachable!("a bank with drives that need large entries has rings for them")
        };
        // SAFETY: as the caller promises.
        unsafe { ring.submission().push(entry) }
            .expect("a ring is made with an entry for whatever can be in it");
    }

    /// How many entries the kernel hasn't seen.
    pub(crate) fn queued(&mut self) -> usize {
        with!(&mut self.queues, ring => ring.submission().len())
    }

    /// Appends what is done: user data and result.
    pub(crate) fn reap(&mut self, reaped: &mut Vec<(u64, i32)>) {
        with!(&mut self.queues, ring => reaped.extend(
            ring.completion().map(|entry| (entry.user_data(), entry.result()))
        ));
    }

    /// Gives the kernel what is queued, and stays. It may come back early.
    pub(crate) fn enter(&mut self, stay: Stay) -> io::Result<()> {
        let (queued, more) = self.state();
        let waits = stay != Stay::Not;
        // A polled ring finds out what is done only by entering.
        if !waits && queued == 0 && !more && !self.polled {
            return Ok(());
        }
        let mut flags = EnterFlags::empty();
        if waits || more || self.polled {
            flags |= EnterFlags::GETEVENTS;
        }
        let span = match stay {
            Stay::For(span) => Some(Timespec::from(std::time::Duration::from(span.min(SLEEP_MAX)))),
            Stay::Not | Stay::UntilDone => None,
        };
        self.call(queued, u32::from(waits), flags, span.as_ref())
    }

    /// Takes what the kernel has ready and hasn't put into the queue of completions, and gives it nothing; false if there is nothing.
    pub(crate) fn take_ready(&mut self) -> io::Result<bool> {
        let (_, more) = self.state();
        if more {
            self.call(0, 0, EnterFlags::GETEVENTS, None)?;
        }
        Ok(more)
    }

    /// How many entries the kernel hasn't seen, and whether it has completions that only entering brings.
    fn state(&mut self) -> (u32, bool) {
        with!(&mut self.queues, ring => {
            let queue = ring.submission();
            (queue.len() as u32, queue.taskrun() || queue.cq_overflow())
        })
    }

    fn call(
        &self,
        queued: u32,
        done_min: u32,
        flags: EnterFlags,
        span: Option<&Timespec>,
    ) -> io::Result<()> {
        let entered = match (&self.own, span) {
            (Some(own), _) if own.is_of_this_thread() => own.enter(queued, done_min, flags, span),
            (_, Some(span)) => with!(&self.queues, ring => {
                let arguments = SubmitArgs::new().timespec(span);
                ring.submitter().submit_with_args(done_min as usize, &arguments).map(drop)
            }),
            (_, None) => with!(&self.queues, ring => {
                // SAFETY: without an argument, the call names no memory but the ring's own.
                let entered = unsafe {
                    ring.submitter().enter::<()>(queued, done_min, flags.bits(), None)
                };
                entered.map(drop)
            }),
        };
        entered.or_else(look_again)
    }
}

/// Time is up, or a signal came, or the kernel has to be emptied first: none of these is a failure.
fn look_again(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
        _ => Err(error),
    }
}

/// Completions are worked on only when their one reader asks for them (Linux 6.1), or at least
/// without interrupting it (5.19), or as it was before. All start disabled, so that the ring belongs
/// to the thread that enables it and not to the one that makes it.
fn build<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    needs: Needs,
) -> io::Result<IoUring<S, C>> {
    let attempt = |set: fn(&mut Builder<S, C>)| {
        let mut builder = IoUring::<S, C>::builder();
        builder.setup_r_disabled();
        if needs.polled {
            builder.setup_iopoll();
        }
        set(&mut builder);
        builder.build(needs.entries)
    };
    attempt(|builder| {
        builder.setup_submit_all().setup_single_issuer();
        builder.setup_defer_taskrun().setup_taskrun_flag();
    })
    .or_else(|error| {
        fall_back(error)?;
        attempt(|builder| {
            builder.setup_submit_all().setup_coop_taskrun().setup_taskrun_flag();
        })
    })
    .or_else(|error| {
        fall_back(error)?;
        attempt(|_| {})
    })
}

/// Passes on what an older way of setting up would not mend.
fn fall_back(error: io::Error) -> io::Result<()> {
    if error.raw_os_error() == Some(libc::EINVAL) { Ok(()) } else { Err(error) }
}
