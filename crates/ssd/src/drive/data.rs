//! Data on its way between a bank's buffers and what its drives hold.

use base::{Command, DriveId, Operation};

use crate::media::Media;

/// Where data is kept, and where it comes from.
#[derive(Debug)]
pub struct Data<'a, M> {
    /// The contents of each namespace of this drive that the bank shows.
    pub media: &'a mut [Media],
    /// The first one's place in the bank.
    pub first: usize,
    /// The memory that commands name.
    pub buffers: &'a M,
}

impl<M: base::Buffers> Data<'_, M> {
    pub(super) fn of(&mut self, drive: DriveId) -> &mut Media {
        &mut self.media[drive.index() - self.first]
    }

    /// Keeps a part of what a write brings.
    pub(super) fn keep(&mut self, command: &Command, offset: u64, length: u32) {
        let Operation::Write { offset: start, buffer, .. } = command.operation else { return };
        let within = (offset - start) as usize;
        let media = &mut self.media[command.drive.index() - self.first];
        // The buffer is the bank's until the command is done, so the bank may look at it.
        self.buffers.give_back(buffer);
        self.buffers.with(buffer, &mut |bytes| {
            media.write(offset, &bytes[within..within + length as usize]);
        });
        self.buffers.lend(buffer);
    }
}
