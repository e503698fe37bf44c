//! From a command on a block device or a file to an entry of an io_uring, and from what the kernel
//! returned for it to an answer.

use base::{DeviceError, Operation};
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{opcode, squeue};

use crate::discard::discard_entry;
use crate::target::TargetKind;

/// A part of a command's range, and where in memory its data lies (for commands without: unused).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// In bytes from the drive's start.
    pub(crate) offset: u64,
    /// In bytes.
    pub(crate) length: u64,
    pub(crate) memory: *mut u8,
}

/// The entry for what is left of `operation`; `registered` is the number of the registered range
/// that the memory lies in, if it does.
pub(crate) fn entry(
    file: Fd,
    kind: TargetKind,
    operation: &Operation,
    piece: Piece,
    registered: Option<u16>,
) -> squeue::Entry {
    let Piece { offset, length, memory } = piece;
    // Longer reads and writes are refused.
    let length_32 = length as u32;
    match (operation, registered) {
        (Operation::Read { .. }, Some(range)) => {
            opcode::ReadFixed::new(file, memory, length_32, range).offset(offset).build()
        }
        (Operation::Read { .. }, None) => {
            opcode::Read::new(file, memory, length_32).offset(offset).build()
        }
        (Operation::Write { fua, .. }, Some(range)) => {
            opcode::WriteFixed::new(file, memory, length_32, range)
                .offset(offset)
                .rw_flags(write_flags(*fua))
                .build()
        }
        (Operation::Write { fua, .. }, None) => opcode::Write::new(file, memory, length_32)
            .offset(offset)
            .rw_flags(write_flags(*fua))
            .build(),
        (Operation::Trim { .. }, _) if kind == TargetKind::File => {
            opcode::Fallocate::new(file, length)
                .offset(offset)
                .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                .build()
        }
        (Operation::Trim { .. }, _) => discard_entry(file, offset, length),
        (Operation::Flush, _) => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
    }
}

/// Flags of a write. `RWF_DSYNC` makes the write durable before it completes: with direct I/O the kernel asks the
/// drive for FUA, or has it flush behind the write where it has no FUA (`dio_bio_write_op` in `block/fops.c`,
/// `iomap_dio_bio_iter` in `fs/iomap/direct-io.c`).
const fn write_flags(fua: bool) -> i32 {
    if fua { libc::RWF_DSYNC } else { 0 }
}

/// What became of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is done.
    Done,
    /// So many bytes were moved.
    Moved(u32),
    /// The same again may succeed; if not, this is the error.
    Busy(DeviceError),
    /// It can't be done.
    Failed(DeviceError),
}

/// From the result of an [`entry`], which moves data or not.
pub(crate) fn answer(result: i32, moves_data: bool) -> Answer {
    match result {
        ..0 => match -result {
            number @ (libc::EINTR | libc::EAGAIN) => Answer::Busy(DeviceError::Os(number)),
            number => Answer::Failed(device_error(number)),
        },
        moved if moves_data => Answer::Moved(moved as u32),
        _ => Answer::Done,
    }
}

/// The same, knowing how large the drive is now: a block device that was removed has no size any more, and a
/// write to it has no space, says the kernel (`blkdev_write_iter` in `block/fops.c`).
pub(crate) fn answer_of_block_device(answer: Answer, size: impl FnOnce() -> Option<u64>) -> Answer {
    match answer {
        Answer::Failed(DeviceError::NoSpace) if size() == Some(0) => {
            Answer::Failed(DeviceError::Gone)
        }
        answer => answer,
    }
}

/// What an error number of a read, write, trim or flush says of the drive (`errno(3)`; the block
/// layer's table is `blk_errors` in `block/blk-core.c`).
pub(crate) fn device_error(number: i32) -> DeviceError {
    match number {
        libc::ENODEV | libc::ENXIO | libc::ESHUTDOWN => DeviceError::Gone,
        libc::EIO | libc::ENODATA | libc::EREMOTEIO | libc::EILSEQ => DeviceError::Medium,
        libc::ENOSPC | libc::EDQUOT => DeviceError::NoSpace,
        _ => DeviceError::Os(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_become_what_a_recorder_can_act_on() {
        for (number, error) in [
            (libc::ENODEV, DeviceError::Gone),
            (libc::EIO, DeviceError::Medium),
            (libc::EDQUOT, DeviceError::NoSpace),
            (libc::ETIMEDOUT, DeviceError::Os(libc::ETIMEDOUT)),
        ] {
            assert_eq!(answer(-number, true), Answer::Failed(error));
        }
    }

    #[test]
    fn a_block_device_without_size_is_gone_and_not_full() {
        let full = || Answer::Failed(DeviceError::NoSpace);
        assert_eq!(answer_of_block_device(full(), || Some(0)), Answer::Failed(DeviceError::Gone));
        assert_eq!(answer_of_block_device(full(), || Some(1 << 30)), full());
        assert_eq!(answer_of_block_device(full(), || None), full());
        assert_eq!(answer_of_block_device(Answer::Moved(0), || Some(0)), Answer::Moved(0));
    }

    #[test]
    fn a_read_tells_how_much_it_moved_and_a_flush_that_it_is_done() {
        assert_eq!(answer(4096, true), Answer::Moved(4096));
        assert_eq!(answer(0, true), Answer::Moved(0));
        assert_eq!(answer(0, false), Answer::Done);
        assert_eq!(answer(-libc::EAGAIN, true), Answer::Busy(DeviceError::Os(libc::EAGAIN)));
    }
}
