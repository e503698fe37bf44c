//! NVMe passthrough: commands of the NVM command set, put into an io_uring as they go to the drive,
//! past the block layer, on a generic device (`/dev/ng0n1`).
//!
//! Sources: Linux's `linux/nvme_ioctl.h` and `drivers/nvme/host/ioctl.c`; NVM Express Base
//! Specification 2.0 (status codes) and NVM Command Set Specification 1.0 (commands, Identify
//! Namespace).

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use base::{BufferId, DeviceError, Operation};
use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::block::{BlockDevice, TransferLimits};
use crate::entry::{Answer, Piece, device_error};
use crate::mapping::{Mapping, Pages};
use crate::nvme::command::{CommandError, IDENTIFY, NVME_URING_CMD_IO, NvmeCommand};

/// `NVME_IOCTL_ID`: the namespace identifier.
const NVME_IOCTL_ID: libc::Ioctl = libc::_IO(b'N' as u32, 0x40);

/// Opcodes of the NVM command set.
const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const DATASET_MANAGEMENT: u8 = 0x09;

/// Dataset Management's attribute Deallocate (`cdw11`, bit 2).
const DEALLOCATE: u32 = 1 << 2;
/// Force Unit Access in command dword 12 of Write.
const FORCE_UNIT_ACCESS: u32 = 1 << 30;

/// Logical blocks that a read or write names at most: 16 bits, and 0 means one.
const BLOCKS_MAX: u64 = 1 << 16;

/// One range of Dataset Management, little-endian: attributes, blocks, first block.
pub(crate) type TrimRange = [u8; 16];

/// A namespace behind a generic device, which commands are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Namespace {
    nsid: u32,
    /// The binary logarithm of the logical block size.
    block_shift: u8,
    /// Logical blocks.
    blocks: u64,
    /// Of reads and writes, as the driver has them from the controller's MDTS and itself.
    limits: TransferLimits,
    /// Unit of deallocation in bytes; None if it can't.
    trim_unit_bytes: Option<u32>,
    /// Longest range to deallocate in bytes.
    trim_max_bytes: u64,
}

/// Why a generic device can't be used.
#[derive(Debug)]
pub(crate) enum NamespaceError {
    Os { attempted: &'static str, reason: io::Error },
    Status(u16),
    Metadata { bytes: u16 },
    BlockSize { shift: u8 },
}

impl fmt::Display for NamespaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os { attempted, reason } => write!(f, "{attempted} failed: {reason}"),
            Self::Status(status) => {
                write!(f, "Identify Namespace failed with NVMe status {status:#x}")
            }
            Self::Metadata { bytes } => write!(
                f,
                "its blocks carry {bytes} bytes of metadata each, which passthrough would have to \
                 move; name its block device instead, or format it without metadata"
            ),
            Self::BlockSize { shift } => {
                write!(f, "it claims blocks of 2^{shift} bytes; name its block device instead")
            }
        }
    }
}

impl Namespace {
    /// Asks the drive behind an open generic device; `beside` is its block device, which knows the
    /// driver's limits.
    pub(crate) fn of(generic: &File, beside: &BlockDevice) -> Result<Self, NamespaceError> {
        // SAFETY: NVME_IOCTL_ID takes no memory.
        let nsid = unsafe { libc::ioctl(generic.as_raw_fd(), NVME_IOCTL_ID) };
        let os = |attempted, reason| NamespaceError::Os { attempted, reason };
        let nsid = u32::try_from(nsid)
            .map_err(|_| os("asking for its namespace", io::Error::last_os_error()))?;
        let identity = identify(generic, nsid)?;
        let (block_shift, blocks) = format_of(&identity)?;
        Ok(Self {
            nsid,
            block_shift,
            blocks,
            limits: beside.driver,
            trim_unit_bytes: beside.discard_unit_bytes.filter(|unit| {
                unit.is_power_of_two() && beside.discard_max_bytes >= u64::from(*unit)
            }),
            trim_max_bytes: beside.discard_max_bytes.min(u64::from(u32::MAX) << block_shift),
        })
    }

    /// Bytes of a logical block.
    pub(crate) fn block_bytes(&self) -> u32 {
        1 << self.block_shift
    }

    /// Bytes of all blocks.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.blocks << self.block_shift
    }

    /// Unit of trims in bytes; None if it can't trim.
    pub(crate) fn trim_unit_bytes(&self) -> Option<u32> {
        self.trim_unit_bytes
    }

    /// The longest read or write that is one command, with memory in such pages, in bytes.
    pub(crate) fn piece_max_bytes(&self, pages: Pages) -> u64 {
        let nameable = BLOCKS_MAX << self.block_shift;
        self.limits.longest_bytes(pages, self.block_bytes()).min(nameable)
    }

    /// The longest trim that is one command, in bytes.
    pub(crate) fn trim_piece_max_bytes(&self) -> u64 {
        let unit = u64::from(self.trim_unit_bytes.unwrap_or(self.block_bytes()));
        (self.trim_max_bytes / unit * unit).max(unit)
    }

    /// What Dataset Management reads of the range from `offset` on.
    pub(crate) fn trim_range(&self, offset: u64, length: u64) -> TrimRange {
        let mut range = [0; 16];
        range[4..8].copy_from_slice(&((length >> self.block_shift) as u32).to_le_bytes());
        range[8..].copy_from_slice(&(offset >> self.block_shift).to_le_bytes());
        range
    }

    /// The entry for a piece of `operation`, whose data is at `memory`: in the registered range of
    /// that number, if there is one. A trim's memory is its [`TrimRange`].
    pub(crate) fn entry(
        &self,
        file: Fd,
        operation: &Operation,
        piece: Piece,
        registered: Option<u16>,
    ) -> squeue::Entry128 {
        opcode::UringCmd80::new(file, NVME_URING_CMD_IO)
            .cmd(self.command(operation, piece).bytes())
            .buf_index(registered)
            .build()
    }

    fn command(&self, operation: &Operation, piece: Piece) -> NvmeCommand {
        let mut command = NvmeCommand { nsid: self.nsid, ..NvmeCommand::default() };
        let block = piece.offset >> self.block_shift;
        match operation {
            Operation::Read { .. } | Operation::Write { .. } => {
                let reads = matches!(operation, Operation::Read { .. });
                command.opcode = if reads { READ } else { WRITE };
                command.addr = piece.memory.expose_provenance() as u64;
                command.data_len = piece.length as u32;
                command.cdw10 = block as u32;
                command.cdw11 = (block >> 32) as u32;
                // Blocks, less one.
                command.cdw12 = (piece.length >> self.block_shift) as u32 - 1;
                if matches!(operation, Operation::Write { fua: true, .. }) {
                    command.cdw12 |= FORCE_UNIT_ACCESS;
                }
            }
            Operation::Trim { .. } => {
                command.opcode = DATASET_MANAGEMENT;
                command.addr = piece.memory.expose_provenance() as u64;
                command.data_len = size_of::<TrimRange>() as u32;
                // Ranges, less one.
                command.cdw10 = 0;
                command.cdw11 = DEALLOCATE;
            }
            Operation::Flush => command.opcode = FLUSH,
        }
        command
    }
}

/// Whether the kernel takes commands on a part of a registered range that is longer than one command
/// may be. Before Linux 6.12, it held all of the range against the drive's limits. Reads one block.
pub(crate) fn takes_registered(generic: &File, namespace: &Namespace) -> bool {
    // More pages than a command may have, and never fewer than a block.
    let bytes = namespace.limits.segments_max.saturating_add(1).saturating_mul(4096);
    let Ok(bytes) = usize::try_from(bytes.clamp(1 << 20, 16 << 20)) else { return false };
    let Ok((memory, _)) = Mapping::new(bytes, Pages::Normal) else { return false };
    let ring = IoUring::<squeue::Entry128, cqueue::Entry32>::builder().build(1);
    let Ok(mut ring) = ring else { return false };
    let range = libc::iovec { iov_base: memory.start().as_ptr().cast(), iov_len: bytes };
    // SAFETY: the memory outlives the ring, which is dropped first (it was made last).
    if unsafe { ring.submitter().register_buffers(&[range]) }.is_err() {
        return false;
    }
    let length = u64::from(namespace.block_bytes());
    let piece = Piece { offset: 0, length, memory: memory.start().as_ptr() };
    let read = Operation::Read { offset: 0, length: length as u32, buffer: BufferId(0) };
    let entry = namespace.entry(Fd(generic.as_raw_fd()), &read, piece, Some(0));
    // SAFETY: the entry names a block of the memory, which nothing else uses until the completion.
    if unsafe { ring.submission().push(&entry) }.is_err() {
        return false;
    }
    if ring.submit_and_wait(1).is_err() {
        // Nobody knows whether the drive has the memory now.
        std::mem::forget((memory, ring));
        return false;
    }
    // A block that can't be read is no reason not to ask for others.
    ring.completion().next().is_some_and(|entry| entry.result() != -libc::EINVAL)
}

/// From an NVMe status (positive) or an error number (negative).
pub(crate) fn answer(result: i32) -> Answer {
    match result {
        0 => Answer::Done,
        ..0 => match -result {
            // The command was cancelled, as by a reset of the controller.
            number @ (libc::EINTR | libc::EAGAIN) => Answer::Busy(DeviceError::Os(number)),
            number => Answer::Failed(device_error(number)),
        },
        // Status Code Type in bits 10 to 8, Status Code in bits 7 to 0; above them, hints.
        status => match (status >> 8 & 7, status & 0xff) {
            // Namespace Not Ready; Command Interrupted.
            (0, 0x82 | 0x21) => Answer::Busy(DeviceError::Os(libc::EBUSY)),
            // Invalid Opcode, Field or Namespace; LBA Out of Range.
            (0, 0x01) => Answer::Failed(DeviceError::Os(libc::EOPNOTSUPP)),
            (0, 0x02 | 0x0b | 0x80) => Answer::Failed(DeviceError::Os(libc::EINVAL)),
            // Aborted, because it was asked for or because its queue was deleted.
            (0, 0x07 | 0x08) => Answer::Failed(DeviceError::Os(libc::ECANCELED)),
            // Namespace is Write Protected; Capacity Exceeded; Reservation Conflict.
            (0, 0x20) => Answer::Failed(DeviceError::Os(libc::EROFS)),
            (0, 0x81) => Answer::Failed(DeviceError::NoSpace),
            (0, 0x83) => Answer::Failed(DeviceError::Os(libc::EBADE)),
            // Media and Data Integrity Errors, of which Access Denied is none.
            (2, 0x86) => Answer::Failed(DeviceError::Os(libc::EACCES)),
            (2, _) => Answer::Failed(DeviceError::Medium),
            // Path Related: no way to the drive is left.
            (3, _) => Answer::Failed(DeviceError::Gone),
            _ => Answer::Failed(DeviceError::Os(libc::EIO)),
        },
    }
}

/// The Identify Namespace data structure (CNS 0).
fn identify(generic: &File, nsid: u32) -> Result<[u8; 4096], NamespaceError> {
    let mut data = [0; 4096];
    let command = NvmeCommand { opcode: IDENTIFY, nsid, ..NvmeCommand::default() };
    command.ask(generic, &mut data).map_err(|error| match error {
        CommandError::Status(status) => NamespaceError::Status(status),
        CommandError::Os(reason) => NamespaceError::Os { attempted: "Identify Namespace", reason },
    })?;
    Ok(data)
}

/// The binary logarithm of the block size and the number of blocks, from Identify Namespace: NSZE in
/// bytes 0 to 7, FLBAS in byte 26, and from byte 128 on, four bytes for each LBA format.
fn format_of(identity: &[u8; 4096]) -> Result<(u8, u64), NamespaceError> {
    let blocks = u64::from_le_bytes(*identity.first_chunk().expect("8 of 4096 bytes"));
    let flbas = identity[26];
    let index = usize::from(flbas & 0xf | flbas >> 1 & 0x30);
    let format = &identity[128 + 4 * index..][..4];
    let metadata = u16::from_le_bytes([format[0], format[1]]);
    let shift = format[2];
    if metadata != 0 {
        return Err(NamespaceError::Metadata { bytes: metadata });
    }
    // 512 bytes to 64 KiB.
    if !(9..=16).contains(&shift) || blocks > u64::MAX >> shift {
        return Err(NamespaceError::BlockSize { shift });
    }
    Ok((shift, blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace() -> Namespace {
        Namespace {
            nsid: 7,
            block_shift: 12,
            blocks: 1 << 40,
            limits: TransferLimits { bytes_max: 512 << 10, segments_max: 127 },
            trim_unit_bytes: Some(4096),
            trim_max_bytes: 1 << 31,
        }
    }

    #[test]
    fn a_read_names_its_blocks_and_its_memory() {
        let operation = Operation::Read { offset: 0, length: 0, buffer: BufferId(0) };
        let memory = std::ptr::without_provenance_mut(0x7000_1000);
        let piece = Piece { offset: 5 << 44, length: 64 << 10, memory };
        let bytes = namespace().command(&operation, piece).bytes();
        assert_eq!(bytes[0], 2);
        assert_eq!(bytes[4..8], 7u32.to_ne_bytes());
        assert_eq!(bytes[24..32], 0x7000_1000u64.to_ne_bytes());
        assert_eq!(bytes[36..40], 0x1_0000u32.to_ne_bytes());
        assert_eq!(bytes[44..48], 5u32.to_ne_bytes());
        assert_eq!(bytes[48..52], 15u32.to_ne_bytes());
    }

    #[test]
    fn a_forced_write_has_the_fua_bit_and_nothing_else_has() {
        let piece = Piece { offset: 4096, length: 16 << 10, memory: std::ptr::null_mut() };
        let buffer = BufferId(0);
        let write = |fua| Operation::Write { offset: 4096, length: 16 << 10, buffer, fua };
        let read = Operation::Read { offset: 4096, length: 16 << 10, buffer };
        let cdw12 = |operation: &Operation| namespace().command(operation, piece).cdw12;
        assert_eq!(cdw12(&write(true)), 1 << 30 | 3);
        assert_eq!((cdw12(&write(false)), cdw12(&read)), (3, 3));
    }

    #[test]
    fn a_command_names_65536_blocks_at_most() {
        assert_eq!(namespace().piece_max_bytes(Pages::Huge), 512 << 10);
        let limits = TransferLimits { bytes_max: 64 << 20, segments_max: 127 };
        let small = Namespace { block_shift: 9, limits, ..namespace() };
        assert_eq!(small.piece_max_bytes(Pages::Huge), 32 << 20);
    }

    #[test]
    fn a_trim_range_holds_length_then_start_in_blocks() {
        let range = namespace().trim_range(3 << 20, 1 << 20);
        assert_eq!(range[..4], [0; 4]);
        assert_eq!(range[4..8], 256u32.to_le_bytes());
        assert_eq!(range[8..], 768u64.to_le_bytes());
    }

    #[test]
    fn identify_tells_block_size_and_count_and_metadata_is_refused() {
        let mut identity = [0; 4096];
        identity[..8].copy_from_slice(&1000u64.to_le_bytes());
        identity[26] = 0x21; // format 17: bits 5 and 6 are the upper ones
        identity[128 + 4 * 17..][..4].copy_from_slice(&[0, 0, 12, 0]);
        assert_eq!(format_of(&identity).unwrap(), (12, 1000));
        identity[128 + 4 * 17] = 8;
        let error = format_of(&identity).unwrap_err();
        assert!(error.to_string().contains("8 bytes of metadata"), "{error}");
        identity[128 + 4 * 17..][..4].copy_from_slice(&[0, 0, 70, 0]);
        assert!(matches!(format_of(&identity), Err(NamespaceError::BlockSize { shift: 70 })));
    }

    #[test]
    fn statuses_become_what_a_recorder_can_act_on() {
        const DO_NOT_RETRY: i32 = 0x4000;
        for (result, expected) in [
            (0, Answer::Done),
            (0x281 | DO_NOT_RETRY, Answer::Failed(DeviceError::Medium)),
            (0x80 | DO_NOT_RETRY, Answer::Failed(DeviceError::Os(libc::EINVAL))),
            (0x82, Answer::Busy(DeviceError::Os(libc::EBUSY))),
            (0x371, Answer::Failed(DeviceError::Gone)),
            (-libc::EINTR, Answer::Busy(DeviceError::Os(libc::EINTR))),
            (-libc::ENODEV, Answer::Failed(DeviceError::Gone)),
        ] {
            assert_eq!(answer(result), expected, "{result:#x}");
        }
    }
}
