//! A command under way: how much of it the kernel has, what came back, and what that comes to.

use base::{Command, DeviceError, Operation};

/// How often the rest of a short transfer is asked for before it is an error.
const SHORT_RETRIES_MAX: u8 = 2;

/// How often a command that the kernel or the drive was too busy for is given to it again.
const BUSY_RETRIES_MAX: u8 = 100;

#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) command: Command,
    /// Where the command's buffer lies; unused without one.
    pub(crate) memory: *mut u8,
    /// Entries in a ring.
    pub(crate) pieces: u16,
    /// Bytes of the command that were put into a ring.
    pub(crate) handed: u64,
    /// Bytes that were moved; None where the drive doesn't tell, but does all or fails.
    pub(crate) moved: Option<u64>,
    /// The first failure of a piece.
    pub(crate) failure: Option<DeviceError>,
    /// A piece met with somebody too busy.
    pub(crate) busy: Option<DeviceError>,
    pub(crate) short_retries: u8,
    pub(crate) busy_retries: u8,
}

impl Slot {
    pub(crate) fn new(command: Command, memory: *mut u8, passthrough: bool) -> Self {
        let moved = (command.operation.buffer().is_some() && !passthrough).then_some(0);
        let (failure, busy) = (None, None);
        let (short_retries, busy_retries) = (0, 0);
        Self {
            command,
            memory,
            pieces: 0,
            handed: 0,
            moved,
            failure,
            busy,
            short_retries,
            busy_retries,
        }
    }

    /// Offset and length of the command in bytes.
    pub(crate) fn range(&self) -> (u64, u64) {
        match self.command.operation {
            Operation::Read { offset, length, .. } | Operation::Write { offset, length, .. } => {
                (offset, u64::from(length))
            }
            Operation::Trim { offset, length } => (offset, length),
            Operation::Flush => (0, 0),
        }
    }

    pub(crate) fn moves_data(&self) -> bool {
        self.command.operation.buffer().is_some()
    }

    /// Whether this result, of its only piece, is that of a whole transfer: what most results are.
    #[inline]
    pub(crate) fn is_whole(&self, result: i32) -> bool {
        let length = self.range().1;
        self.pieces == 1
            && self.moved == Some(0)
            && self.handed == length
            && u64::try_from(result) == Ok(length)
            && self.failure.is_none()
            && self.busy.is_none()
    }

    /// Its outcome, when nothing of it is in a ring; None if it, or the rest of it, is to be started.
    pub(crate) fn verdict(
        &mut self,
        piece_max_bytes: u64,
        block_bytes: u32,
    ) -> Option<Result<(), DeviceError>> {
        if let Some(error) = self.failure.take() {
            return Some(Err(error));
        }
        let (_, length) = self.range();
        let moved = self.moved.unwrap_or(self.handed);
        let busy = self.busy.take();
        if busy.is_none() && moved == self.handed {
            return (moved == length).then_some(Ok(()));
        }
        if let Some(error) = busy {
            self.busy_retries += 1;
            if self.busy_retries > BUSY_RETRIES_MAX {
                return Some(Err(error));
            }
        } else {
            self.short_retries += 1;
            let goes_on = moved > 0 && moved.is_multiple_of(u64::from(block_bytes));
            if !goes_on || self.short_retries > SHORT_RETRIES_MAX {
                return Some(Err(DeviceError::Short { moved: moved as u32 }));
            }
        }
        // What one piece has moved is the start of it. Of several, nobody knows which was short.
        let resumes = length <= piece_max_bytes;
        self.moved = self.moved.filter(|_| resumes).or(self.moved.map(|_| 0));
        self.handed = self.moved.unwrap_or(0);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BufferId, DriveId};

    const BLOCK: u32 = 4096;
    const LENGTH: u64 = 64 << 10;

    fn slot(moved: u64) -> Slot {
        let operation = Operation::Read { offset: 0, length: LENGTH as u32, buffer: BufferId(0) };
        let command = Command { drive: DriveId(0), operation, tag: 0 };
        let slot = Slot::new(command, std::ptr::null_mut(), false);
        Slot { handed: LENGTH, moved: Some(moved), ..slot }
    }

    #[test]
    fn a_whole_transfer_is_done_and_pieces_that_are_left_are_started() {
        assert_eq!(slot(LENGTH).verdict(u64::MAX, BLOCK), Some(Ok(())));
        let mut half = Slot { handed: LENGTH / 2, ..slot(LENGTH / 2) };
        assert_eq!(half.verdict(LENGTH / 2, BLOCK), None);
        assert_eq!((half.handed, half.moved), (LENGTH / 2, Some(LENGTH / 2)));
    }

    #[test]
    fn the_one_piece_of_a_command_that_moved_all_of_it_finishes_it() {
        let whole = Slot { pieces: 1, ..slot(0) };
        assert!(whole.is_whole(LENGTH as i32));
        for result in [0, 4096, -libc::EIO] {
            assert!(!whole.is_whole(result), "{result}");
        }
        let others = [
            Slot { pieces: 2, ..slot(0) },
            Slot { pieces: 1, handed: LENGTH / 2, ..slot(0) },
            Slot { pieces: 1, ..slot(4096) },
            Slot { pieces: 1, busy: Some(DeviceError::Os(libc::EAGAIN)), ..slot(0) },
            Slot { pieces: 1, failure: Some(DeviceError::Medium), ..slot(0) },
            Slot { pieces: 1, moved: None, ..slot(0) },
        ];
        assert!(others.iter().all(|slot| !slot.is_whole(LENGTH as i32)));
    }

    #[test]
    fn a_short_transfer_goes_on_where_it_stopped_or_from_the_start_if_there_were_several() {
        let mut one = slot(8192);
        assert_eq!(one.verdict(u64::MAX, BLOCK), None);
        assert_eq!((one.handed, one.moved), (8192, Some(8192)));
        let mut several = slot(8192);
        assert_eq!(several.verdict(LENGTH / 4, BLOCK), None);
        assert_eq!((several.handed, several.moved), (0, Some(0)));
    }

    #[test]
    fn a_transfer_that_stays_short_fails_with_what_it_moved() {
        for moved in [0, 100] {
            let error = DeviceError::Short { moved: moved as u32 };
            assert_eq!(slot(moved).verdict(u64::MAX, BLOCK), Some(Err(error)));
        }
        let mut again = slot(4096);
        for _ in 0..SHORT_RETRIES_MAX {
            assert_eq!(again.verdict(u64::MAX, BLOCK), None);
            again.handed = LENGTH;
        }
        let error = DeviceError::Short { moved: 4096 };
        assert_eq!(again.verdict(u64::MAX, BLOCK), Some(Err(error)));
    }

    #[test]
    fn who_is_busy_is_asked_again_a_limited_number_of_times_and_a_failure_not() {
        let busy = Some(DeviceError::Os(libc::EAGAIN));
        let mut asking = slot(0);
        for _ in 0..BUSY_RETRIES_MAX {
            asking.busy.clone_from(&busy);
            assert_eq!(asking.verdict(u64::MAX, BLOCK), None);
            assert_eq!(asking.handed, 0);
        }
        asking.busy.clone_from(&busy);
        assert_eq!(asking.verdict(u64::MAX, BLOCK), busy.map(Err));
        asking.failure = Some(DeviceError::Medium);
        assert_eq!(asking.verdict(u64::MAX, BLOCK), Some(Err(DeviceError::Medium)));
    }
}
