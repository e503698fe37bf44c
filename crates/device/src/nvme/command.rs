//! A command as Linux takes it from a program, and the way of an admin command to the drive.
//!
//! Source: Linux's `linux/nvme_ioctl.h`. Commands that move data go by io_uring: see
//! [`crate::passthrough`].

use std::fmt;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::AsRawFd;

/// `struct nvme_passthru_cmd`, and `struct nvme_uring_cmd`, whose last field is reserved.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NvmeCommand {
    pub opcode: u8,
    pub flags: u8,
    pub reserved: u16,
    pub nsid: u32,
    pub cdw2: u32,
    pub cdw3: u32,
    pub metadata: u64,
    pub addr: u64,
    pub metadata_len: u32,
    pub data_len: u32,
    pub cdw10: u32,
    pub cdw11: u32,
    pub cdw12: u32,
    pub cdw13: u32,
    pub cdw14: u32,
    pub cdw15: u32,
    pub timeout_ms: u32,
    pub result: u32,
}

const COMMAND_BYTES: usize = size_of::<NvmeCommand>();
const _: () = assert!(COMMAND_BYTES == 72 && offset_of!(NvmeCommand, cdw10) == 40);

/// `NVME_IOCTL_ADMIN_CMD`.
const NVME_IOCTL_ADMIN_CMD: libc::Ioctl = libc::_IOWR::<NvmeCommand>(b'N' as u32, 0x41);

/// `NVME_URING_CMD_IO`.
pub(crate) const NVME_URING_CMD_IO: u32 = libc::_IOWR::<NvmeCommand>(b'N' as u32, 0x80) as u32;

/// Identify.
pub(crate) const IDENTIFY: u8 = 0x06;

/// Why a command has no answer.
#[derive(Debug)]
pub enum CommandError {
    /// The drive's own word: status code in bits 7:0, its type in 10:8, hints above.
    Status(u16),
    /// The kernel could not ask.
    Os(io::Error),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "the drive answered with NVMe status {status:#05x}"),
            Self::Os(error) => write!(f, "the kernel could not ask the drive: {error}"),
        }
    }
}

impl std::error::Error for CommandError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Status(_) => None,
            Self::Os(error) => Some(error),
        }
    }
}

impl NvmeCommand {
    /// Sends it to the admin queue behind an open controller or generic device. It must be a command
    /// that only asks; `answer` is filled. Gives the completion's first dword.
    pub(crate) fn ask(self, file: &File, answer: &mut [u8]) -> Result<u32, CommandError> {
        let mut command = Self {
            addr: if answer.is_empty() {
                0
            } else {
                answer.as_mut_ptr().expose_provenance() as u64
            },
            data_len: answer.len() as u32,
            ..self
        };
        // SAFETY: the request's number says that `command` is of the 72 bytes it is (asserted above), and
        // the kernel writes at most `data_len` bytes to `addr`: that is `answer`, borrowed for the call.
        let status =
            unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ADMIN_CMD, &raw mut command) };
        match status {
            0 => Ok(command.result),
            1.. => Err(CommandError::Status(status as u16)),
            ..0 => Err(CommandError::Os(io::Error::last_os_error())),
        }
    }

    /// As it stands in a ring's entry, which has room for 80 bytes.
    pub(crate) fn bytes(self) -> [u8; 80] {
        let mut bytes = [0; 80];
        // SAFETY: all fields are integers and there is no padding (the assertion on its size), so
        // that it is 72 initialised bytes.
        let own = unsafe { &*(&raw const self).cast::<[u8; COMMAND_BYTES]>() };
        bytes[..COMMAND_BYTES].copy_from_slice(own);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_numbers_are_those_of_the_kernel_header() {
        assert_eq!(NVME_IOCTL_ADMIN_CMD, 0xC048_4E41);
        assert_eq!(NVME_URING_CMD_IO, 0xC048_4E80);
    }

    #[test]
    fn a_device_that_is_no_drive_gives_the_kernels_reason() {
        let null = File::open("/dev/null").unwrap();
        let command = NvmeCommand { opcode: IDENTIFY, cdw10: 1, ..NvmeCommand::default() };
        let error = command.ask(&null, &mut [0; 4096]).unwrap_err();
        assert!(matches!(error, CommandError::Os(_)), "{error}");
    }
}
