//! The seam: a bank of drives, addressed by index, real in real time or simulated in virtual time.
//!
//! Everything above (the recorder, workloads, readers) is generic over [`Bank`] and takes the time
//! from it. Waiting is what moves time: a real bank sleeps until a drive answers, a simulated one
//! jumps to its next event, and the loop above is the same code.

use std::fmt;
use std::sync::Arc;

use crate::time::{Duration, Instant};

/// A drive's place in its bank, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriveId(pub u16);

impl DriveId {
    /// The same as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A buffer's name. Its memory stays with whoever implements [`Buffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub u32);

/// What a drive is, as far as a recorder or a workload must know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// What the user called it: a path, or a simulated drive's name.
    pub name: String,
    /// Bytes that can be addressed; a multiple of `block_bytes`.
    pub capacity_bytes: u64,
    /// Unit of offsets and lengths of reads and writes; a power of two, 512 at least.
    pub block_bytes: u32,
    /// Longest read or write in bytes; a multiple of `block_bytes`.
    pub transfer_max_bytes: u32,
    /// Commands that it takes at once.
    pub depth_max: u32,
    /// Unit of offsets and lengths of trims in bytes, or None if it can't trim.
    pub trim_unit_bytes: Option<u32>,
    /// Whether a trimmed range reads back as zeros (it may read as anything otherwise).
    pub trim_reads_zeros: bool,
    /// Whether writing is allowed at all.
    pub writable: bool,
}

impl Geometry {
    /// Checks a command before it goes to the drive. `buffer_bytes` is the size of the buffers that commands name.
    ///
    /// # Errors
    /// [`Rejected`]: the command breaks a limit of the drive, which must not be touched then.
    #[inline]
    pub fn check(&self, operation: &Operation, buffer_bytes: u64) -> Result<(), Rejected> {
        // Blocks are powers of two.
        let in_blocks = |offset: u64, length: u64| {
            let block_bytes = self.block_bytes;
            let aligned = (offset | length) & u64::from(block_bytes - 1) == 0;
            if aligned { Ok(()) } else { Err(Rejected::Misaligned { unit_bytes: block_bytes }) }
        };
        if !self.writable && matches!(operation, Operation::Write { .. } | Operation::Trim { .. }) {
            return Err(Rejected::ReadOnly);
        }
        let (offset, length) = match *operation {
            Operation::Flush => return Ok(()),
            Operation::Read { offset, length, .. } | Operation::Write { offset, length, .. } => {
                let (length, max_bytes) = (u64::from(length), u64::from(self.transfer_max_bytes));
                let max_bytes = max_bytes.min(buffer_bytes);
                if length > max_bytes {
                    return Err(Rejected::TooLong { max_bytes });
                }
                in_blocks(offset, length)?;
                (offset, length)
            }
            Operation::Trim { offset, length } => {
                let unit_bytes = self.trim_unit_bytes.ok_or(Rejected::NoTrim)?;
                let unit = u64::from(unit_bytes);
                if !offset.is_multiple_of(unit) || !length.is_multiple_of(unit) {
                    return Err(Rejected::Misaligned { unit_bytes });
                }
                (offset, length)
            }
        };
        let inside = length <= self.capacity_bytes && offset <= self.capacity_bytes - length;
        if inside {
            Ok(())
        } else {
            Err(Rejected::OutOfRange { capacity_bytes: self.capacity_bytes })
        }
    }
}

/// Why a command was rejected before it reached its drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// The drive was opened for reading only.
    ReadOnly,
    /// The drive can't trim.
    NoTrim,
    /// Offset or length is not a multiple of this many bytes.
    Misaligned {
        /// Bytes of a block, or of the trim unit.
        unit_bytes: u32,
    },
    /// The command moves more than the drive or the buffers allow at once.
    TooLong {
        /// Longest transfer in bytes.
        max_bytes: u64,
    },
    /// The command reaches past the drive's end.
    OutOfRange {
        /// Size of the drive in bytes.
        capacity_bytes: u64,
    },
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly => f.write_str("the drive was opened for reading only"),
            Self::NoTrim => f.write_str("the drive does not support trim"),
            Self::Misaligned { unit_bytes } => {
                write!(f, "offset and length must be multiples of {unit_bytes} bytes")
            }
            Self::TooLong { max_bytes } => {
                write!(f, "at most {max_bytes} bytes can be transferred at once")
            }
            Self::OutOfRange { capacity_bytes } => {
                write!(f, "the drive ends at {capacity_bytes} bytes")
            }
        }
    }
}

/// What to do with a drive. Lengths and offsets are bytes and multiples of the drive's block size
/// (trim: of its trim unit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Fill the start of `buffer` with `length` bytes from `offset`.
    Read {
        /// From where, in bytes.
        offset: u64,
        /// How many bytes.
        length: u32,
        /// The buffer that the data goes to or comes from.
        buffer: BufferId,
    },
    /// Put `length` bytes from the start of `buffer` at `offset`.
    Write {
        /// To where, in bytes.
        offset: u64,
        /// How many bytes.
        length: u32,
        /// The buffer that the data goes to or comes from.
        buffer: BufferId,
        /// Force Unit Access: it completes only when its data is durable.
        fua: bool,
    },
    /// Give up the contents of a range. What it reads as afterwards: see [`Geometry`].
    Trim {
        /// From where, in bytes.
        offset: u64,
        /// How many bytes.
        length: u64,
    },
    /// Make durable every write that completed before this was submitted.
    Flush,
}

impl Operation {
    /// The buffer that is busy until the completion, if any.
    pub const fn buffer(&self) -> Option<BufferId> {
        match *self {
            Self::Read { buffer, .. } | Self::Write { buffer, .. } => Some(buffer),
            Self::Trim { .. } | Self::Flush => None,
        }
    }

    /// For messages: `write of 4096 bytes at 81920`.
    pub fn describe(&self) -> String {
        match *self {
            Self::Read { offset, length, .. } => format!("read of {length} bytes at {offset}"),
            Self::Write { offset, length, fua, .. } => {
                let forced = if fua { "FUA " } else { "" };
                format!("{forced}write of {length} bytes at {offset}")
            }
            Self::Trim { offset, length } => format!("trim of {length} bytes at {offset}"),
            Self::Flush => "flush".to_owned(),
        }
    }
}

/// One request to one drive. The tag comes back with the completion and means nothing to the bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Index of the drive in the bank.
    pub drive: DriveId,
    /// What to do.
    pub operation: Operation,
    /// The caller's own name for it.
    pub tag: u64,
}

/// The answer to one [`Command`]. Every accepted command is answered exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The command's drive.
    pub drive: DriveId,
    /// The command's tag.
    pub tag: u64,
    /// Done whole, or the drive's error. A short transfer is an error, never a success.
    pub outcome: Result<(), DeviceError>,
    /// When the bank saw it done.
    pub reaped: Instant,
}

/// Why a drive did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// The drive is gone (unplugged, or dead).
    Gone,
    /// The medium failed to read or write this range.
    Medium,
    /// No space behind the address (a thin or sparse file on a full file system).
    NoSpace,
    /// It moved this many bytes and then stopped, more than once.
    Short {
        /// Bytes that were moved.
        moved: u32,
    },
    /// The command never reached the drive, because it breaks one of its limits.
    Rejected(Rejected),
    /// Anything else, with the operating system's number.
    Os(i32),
}

impl From<Rejected> for DeviceError {
    fn from(why: Rejected) -> Self {
        Self::Rejected(why)
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the drive is gone (unplugged or dead)"),
            Self::Medium => f.write_str("medium error: the drive could not read or write there"),
            Self::NoSpace => f.write_str("no space left behind the file"),
            Self::Short { moved } => write!(f, "only {moved} bytes were moved"),
            Self::Rejected(why) => why.fmt(f),
            Self::Os(number) => {
                write!(f, "{}", std::io::Error::from_raw_os_error(*number))
            }
        }
    }
}

impl std::error::Error for DeviceError {}

/// The drive (or the whole bank) has as many commands under way as it takes: wait, then submit again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The bank itself failed: no command can be trusted to complete any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BankError {
    /// What was tried.
    pub attempted: &'static str,
    /// Why it failed.
    pub reason: String,
}

impl fmt::Display for BankError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.attempted, self.reason)
    }
}

impl std::error::Error for BankError {}

/// The drives of one run.
///
/// Promises that the conformance suite (feature `conformance`) holds every implementation to:
/// - every accepted command completes exactly once, with its own tag and drive, in any order;
/// - a read sees every write that completed before it was submitted;
/// - what a write with `fua` has written survives a loss of power from its completion on, and what
///   another write has written from the completion of a flush on that was submitted after it;
/// - a command that breaks a limit of the drive ([`Geometry::check`]) completes with
///   [`DeviceError::Rejected`] and touches nothing;
/// - a command of no bytes within bounds completes and does nothing;
/// - `depth_max` commands a drive are accepted before `Full`, whatever the other drives are doing;
///   `Full` changes nothing;
/// - `now` never goes backward, and `wait` returns no later than it must: as soon as at least one
///   command is done, at `until`, or (on real banks) when woken.
pub trait Bank {
    /// The drives, by [`DriveId`].
    fn drives(&self) -> &[Geometry];

    /// The bank's clock.
    fn now(&self) -> Instant;

    /// Starts a command. The buffer it names must not be touched until its completion.
    ///
    /// # Errors
    /// [`Full`] if the drive has `depth_max` commands under way; nothing was started.
    fn submit(&mut self, command: Command) -> Result<(), Full>;

    /// Waits until something is done or the clock reaches `until`, and appends what is done to
    /// `done`. Without `until` it waits for as long as commands are under way, and returns at once
    /// when there are none. An `until` that has passed polls.
    ///
    /// # Errors
    /// [`BankError`] if the bank can't go on at all; one drive's failure is a completion instead.
    fn wait(&mut self, until: Option<Instant>, done: &mut Vec<Completion>)
    -> Result<(), BankError>;

    /// Waits for at most `span` from now; see [`Bank::wait`].
    ///
    /// # Errors
    /// As [`Bank::wait`].
    fn wait_for(&mut self, span: Duration, done: &mut Vec<Completion>) -> Result<(), BankError> {
        let until = self.now() + span;
        self.wait(Some(until), done)
    }
}

/// The memory behind [`BufferId`]s, all of one size.
///
/// A bank that only keeps time has none, and [`NoBuffers`] stands in: what runs on descriptors alone
/// never looks inside.
pub trait Buffers {
    /// Bytes in each buffer.
    fn size(&self) -> usize;

    /// Lets `look` read and write a buffer's bytes.
    ///
    /// # Panics
    /// If a command is using the buffer, or the name is not one of these buffers'.
    fn with(&self, buffer: BufferId, look: &mut dyn FnMut(&mut [u8]));

    /// For banks: a command uses the buffer from now on, and [`Buffers::with`] panics until [`Buffers::give_back`]. Memory that
    /// nobody can look at need not do anything.
    fn lend(&self, _buffer: BufferId) {}

    /// For banks: the command is done.
    fn give_back(&self, _buffer: BufferId) {}
}

impl<B: Buffers + ?Sized> Buffers for Arc<B> {
    fn size(&self) -> usize {
        (**self).size()
    }
    fn with(&self, buffer: BufferId, look: &mut dyn FnMut(&mut [u8])) {
        (**self).with(buffer, look);
    }
    fn lend(&self, buffer: BufferId) {
        (**self).lend(buffer);
    }
    fn give_back(&self, buffer: BufferId) {
        (**self).give_back(buffer);
    }
}

/// Buffers without memory, for runs in virtual time on descriptors alone. `with` calls nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoBuffers {
    /// The size they claim, in bytes.
    pub size: usize,
}

impl Buffers for NoBuffers {
    fn size(&self) -> usize {
        self.size
    }
    fn with(&self, _buffer: BufferId, _look: &mut dyn FnMut(&mut [u8])) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER_BYTES: u64 = 8192;

    fn geometry() -> Geometry {
        Geometry {
            name: "a".to_owned(),
            capacity_bytes: 1 << 20,
            block_bytes: 512,
            transfer_max_bytes: 4096,
            depth_max: 1,
            trim_unit_bytes: Some(3 * 512),
            trim_reads_zeros: false,
            writable: true,
        }
    }

    fn read(offset: u64, length: u32) -> Operation {
        Operation::Read { offset, length, buffer: BufferId(0) }
    }

    fn write(offset: u64, length: u32) -> Operation {
        Operation::Write { offset, length, buffer: BufferId(0), fua: false }
    }

    #[test]
    fn a_command_is_rejected_for_the_limit_that_it_breaks() {
        let drive = geometry();
        let check = |operation: Operation| drive.check(&operation, BUFFER_BYTES);
        let misaligned = Err(Rejected::Misaligned { unit_bytes: 512 });
        let outside = Err(Rejected::OutOfRange { capacity_bytes: 1 << 20 });
        for of in [read, write] {
            assert_eq!(check(of((1 << 20) - 4096, 4096)), Ok(()));
            assert_eq!(check(of(1 << 20, 0)), Ok(()));
            assert_eq!(check(of((1 << 20) - 512, 1024)), outside);
            assert_eq!(check(of(u64::MAX - 511, 512)), outside);
            assert_eq!(check(of(1, 512)), misaligned);
            assert_eq!(check(of(0, 513)), misaligned);
            assert_eq!(check(of(0, 4608)), Err(Rejected::TooLong { max_bytes: 4096 }));
            assert_eq!(drive.check(&of(0, 1024), 512), Err(Rejected::TooLong { max_bytes: 512 }));
        }
        let trim = |offset, length| check(Operation::Trim { offset, length });
        assert_eq!(trim(3 * 512, 6 * 512), Ok(()));
        assert_eq!(trim(512, 3 * 512), Err(Rejected::Misaligned { unit_bytes: 3 * 512 }));
        assert_eq!(trim(0, 512), Err(Rejected::Misaligned { unit_bytes: 3 * 512 }));
        assert_eq!(trim(0, 3 << 20), outside);
        assert_eq!(check(Operation::Flush), Ok(()));
    }

    #[test]
    fn a_drive_that_is_open_for_reading_takes_reads_and_flushes_only() {
        let drive = Geometry { writable: false, trim_unit_bytes: None, ..geometry() };
        assert_eq!(drive.check(&read(0, 512), BUFFER_BYTES), Ok(()));
        assert_eq!(drive.check(&Operation::Flush, BUFFER_BYTES), Ok(()));
        let trim = Operation::Trim { offset: 0, length: 512 };
        for operation in [write(0, 512), trim] {
            assert_eq!(drive.check(&operation, BUFFER_BYTES), Err(Rejected::ReadOnly));
        }
        let drive = Geometry { writable: true, ..drive };
        assert_eq!(drive.check(&trim, BUFFER_BYTES), Err(Rejected::NoTrim));
    }
}
