//! The priority of a thread's I/O (`ioprio_set(2)`), which the kernel's I/O schedulers, and drives that
//! can, go by.

use std::fmt;
use std::io;

/// `IOPRIO_WHO_PROCESS` of `linux/ioprio.h`; with the number 0, the calling thread.
const WHO_PROCESS: libc::c_int = 1;

/// `IOPRIO_CLASS_SHIFT`: the class lies above the level.
const CLASS_SHIFT: u32 = 13;

/// The least urgent level of a class (`IOPRIO_NR_LEVELS` less one).
pub const LEVEL_MAX: u8 = 7;

/// A class, and in it a level from 0 (the most urgent) to [`LEVEL_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoPriority {
    /// Before everybody else, who may starve. Needs `CAP_SYS_NICE` or `CAP_SYS_ADMIN`.
    RealTime(u8),
    /// As usual. Level 4 is what threads have that never asked.
    BestEffort(u8),
    /// Only while nobody else wants the drive.
    Idle,
}

impl fmt::Display for IoPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RealTime(level) => write!(f, "real time, level {level}"),
            Self::BestEffort(level) => write!(f, "best effort, level {level}"),
            Self::Idle => f.write_str("idle"),
        }
    }
}

/// Why a priority can't be set.
#[derive(Debug)]
pub enum IoPriorityError {
    /// A level beyond [`LEVEL_MAX`].
    Level {
        /// What was asked for.
        priority: IoPriority,
    },
    /// The thread may not have real time.
    NotPermitted {
        /// What was asked for.
        priority: IoPriority,
    },
    /// Anything else.
    Os {
        /// What was asked for.
        priority: IoPriority,
        /// The kernel's reason.
        reason: io::Error,
    },
}

impl fmt::Display for IoPriorityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level { priority } => {
                write!(f, "setting the I/O priority to {priority}: levels go from 0 to {LEVEL_MAX}")
            }
            Self::NotPermitted { priority } => write!(
                f,
                "setting the I/O priority to {priority} was not permitted; run as root or with \
                 CAP_SYS_NICE, or ask for best effort"
            ),
            Self::Os { priority, reason } => {
                write!(f, "setting the I/O priority to {priority} failed: {reason}")
            }
        }
    }
}

impl std::error::Error for IoPriorityError {}

/// Gives the calling thread a priority, for what it (or a bank that belongs to it) hands to drives from
/// now on. Threads that it starts later inherit it. NVMe passthrough goes past it.
///
/// # Errors
/// [`IoPriorityError`]; the thread keeps the priority that it had.
pub fn set_io_priority(priority: IoPriority) -> Result<(), IoPriorityError> {
    // Classes of `linux/ioprio.h`.
    let (class, level) = match priority {
        IoPriority::RealTime(level) => (1, level),
        IoPriority::BestEffort(level) => (2, level),
        IoPriority::Idle => (3, 0),
    };
    if level > LEVEL_MAX {
        return Err(IoPriorityError::Level { priority });
    }
    let value = libc::c_int::from(class) << CLASS_SHIFT | libc::c_int::from(level);
    // SAFETY: no memory is involved.
    if unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, value) } == 0 {
        return Ok(());
    }
    let reason = io::Error::last_os_error();
    Err(match reason.raw_os_error() {
        Some(libc::EPERM) => IoPriorityError::NotPermitted { priority },
        _ => IoPriorityError::Os { priority, reason },
    })
}

/// The priority that the calling thread was given; None if it never was (its `nice` value decides).
pub fn io_priority() -> Option<IoPriority> {
    // SAFETY: no memory is involved.
    let value = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) };
    let level = (value & 7) as u8;
    match value >> CLASS_SHIFT {
        1 => Some(IoPriority::RealTime(level)),
        2 => Some(IoPriority::BestEffort(level)),
        3 => Some(IoPriority::Idle),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a thread of its own, for a priority is a thread's.
    fn set(priority: IoPriority) -> Result<Option<IoPriority>, IoPriorityError> {
        let run = move || set_io_priority(priority).map(|()| io_priority());
        std::thread::spawn(run).join().unwrap()
    }

    #[test]
    fn a_thread_gets_the_priority_that_it_asked_for() {
        for priority in [IoPriority::BestEffort(0), IoPriority::BestEffort(7), IoPriority::Idle] {
            assert_eq!(set(priority).unwrap(), Some(priority));
        }
        match set(IoPriority::RealTime(3)) {
            Ok(now) => assert_eq!(now, Some(IoPriority::RealTime(3))),
            Err(error) => assert!(error.to_string().contains("CAP_SYS_NICE"), "{error}"),
        }
    }

    #[test]
    fn a_level_that_no_class_has_is_refused() {
        let error = set(IoPriority::BestEffort(8)).unwrap_err();
        assert!(matches!(error, IoPriorityError::Level { .. }));
        assert!(error.to_string().contains("from 0 to 7"), "{error}");
    }
}
