//! Admin commands to a controller: Identify, Get Log Page, Get Features, by ioctl on its character device.
//!
//! The kernel checks CAP_SYS_ADMIN at every command, not at opening: a process that has given up root
//! can't ask any more, even through a descriptor that it still holds.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::sysfs::DeviceNumber;

/// A controller, open for questions.
#[derive(Debug)]
pub struct Controller {
    file: File,
    node: PathBuf,
}

/// Why a controller didn't answer.
#[derive(Debug)]
pub enum AdminError {
    /// The user may not ask.
    NotPermitted {
        /// The controller's node.
        node: PathBuf,
    },
    /// The node is not the controller that sysfs names, so it is left alone.
    NotTheController {
        /// The node.
        node: PathBuf,
    },
    /// The drive says that it doesn't know this question.
    NotSupported {
        /// The controller's node.
        node: PathBuf,
        /// What was asked.
        asked: &'static str,
    },
    /// The drive refused.
    Refused {
        /// The controller's node.
        node: PathBuf,
        /// What was asked.
        asked: &'static str,
        /// Status code type and status code, as the specification numbers them: `0x202` is code
        /// 02h of type 2h.
        status: u16,
    },
    /// The kernel could not ask.
    Io {
        /// The controller's node.
        node: PathBuf,
        /// What was asked.
        asked: &'static str,
        /// The kernel's reason.
        error: io::Error,
    },
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted { node } => write!(f, "asking {} needs root", node.display()),
            Self::NotTheController { node } => write!(
                f,
                "{} was not asked: it is not the controller that sysfs names; the node is stale",
                node.display()
            ),
            Self::NotSupported { node, asked } => {
                write!(f, "{} does not support {asked}", node.display())
            }
            Self::Refused { node, asked, status } => {
                write!(f, "{} refused {asked} with NVMe status {status:#05x}", node.display())
            }
            Self::Io { node, asked, error } => {
                write!(f, "asking {} for {asked} failed: {error}", node.display())
            }
        }
    }
}

impl std::error::Error for AdminError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Which Identify data structure: Base Specification 2.0, figure 273 (CNS values).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identify {
    /// A namespace of the NVM command set (00h).
    Namespace(u32),
    /// The controller (01h).
    Controller,
    /// Active namespaces with identifiers above this one (02h).
    ActiveNamespaces(u32),
    /// NVM Sets from this identifier on (04h).
    NvmSets(u16),
    /// Endurance groups from this identifier on (19h).
    EnduranceGroups(u16),
}

/// Every Identify data structure's length in bytes.
pub const IDENTIFY_BYTES: usize = 4096;

/// A log page: Base Specification 2.0, figure 202.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// Log page identifier.
    pub id: u8,
    /// Log specific identifier: an endurance group or NVM Set where the page is of one, else 0.
    pub specific: u16,
    /// What it is called in messages.
    pub name: &'static str,
}

const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const GET_FEATURES: u8 = 0x0A;
/// The log of the controller as a whole, not of one namespace.
const NAMESPACE_ALL: u32 = u32::MAX;
/// A drive that takes longer than this to answer is reported as not answering.
const TIMEOUT_MS: u32 = 2_000;

/// Statuses (type and code) of a question that the drive doesn't know: Invalid Command Opcode, Invalid
/// Field in Command, Invalid Log Page. Base Specification 2.0, section 3.3.3.2.1 (Status Code).
const UNKNOWN_QUESTION: [u16; 3] = [0x001, 0x002, 0x109];
/// Status code and its type, without More, Do Not Retry and retry delay: Base Specification 2.0, 3.3.3.2.
const STATUS_MASK: u16 = 0x7FF;

impl Controller {
    /// Opens the character device `node`, whose number sysfs gives as `expected`.
    ///
    /// # Errors
    /// If it can't be opened, or is another device.
    pub fn open(node: &Path, expected: Option<DeviceNumber>) -> Result<Self, AdminError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => AdminError::NotPermitted { node: node.to_owned() },
            _ => AdminError::Io { node: node.to_owned(), asked: "an opening", error },
        };
        // Reading is enough: what may be sent is decided by capability.
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(node).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let number = DeviceNumber::from_raw(metadata.rdev());
        if !metadata.file_type().is_char_device() || expected.is_some_and(|e| e != number) {
            return Err(AdminError::NotTheController { node: node.to_owned() });
        }
        Ok(Self { file, node: node.to_owned() })
    }

    /// Its node, `/dev/nvme0`.
    pub fn node(&self) -> &Path {
        &self.node
    }

    /// Sends Identify.
    ///
    /// # Errors
    /// If the drive or the kernel refuses.
    pub fn identify(&self, what: Identify) -> Result<Box<[u8; IDENTIFY_BYTES]>, AdminError> {
        let (cns, nsid, cdw11, asked) = match what {
            Identify::Namespace(nsid) => (0x00, nsid, 0, "Identify Namespace"),
            Identify::Controller => (0x01, 0, 0, "Identify Controller"),
            Identify::ActiveNamespaces(above) => (0x02, above, 0, "its active namespaces"),
            Identify::NvmSets(from) => (0x04, 0, u32::from(from), "its NVM Sets"),
            Identify::EnduranceGroups(from) => (0x19, 0, u32::from(from), "its endurance groups"),
        };
        let mut answer = Box::new([0u8; IDENTIFY_BYTES]);
        let command =
            AdminCommand { opcode: IDENTIFY, nsid, cdw10: cns, cdw11, ..AdminCommand::default() };
        self.send(command, &mut answer[..], asked)?;
        Ok(answer)
    }

    /// Reads the first bytes of a log page. Its events, if it has any, are left standing.
    ///
    /// # Errors
    /// If the drive or the kernel refuses.
    ///
    /// # Panics
    /// If the length of `answer` is not a multiple of 4.
    pub fn log(&self, page: LogPage, answer: &mut [u8]) -> Result<(), AdminError> {
        const RETAIN_ASYNCHRONOUS_EVENT: u32 = 1 << 15;
        assert!(answer.len() >= 4 && answer.len().is_multiple_of(4), "logs come in dwords");
        let dwords = (answer.len() / 4 - 1) as u32;
        let command = AdminCommand {
            opcode: GET_LOG_PAGE,
            nsid: NAMESPACE_ALL,
            cdw10: (dwords & 0xFFFF) << 16 | RETAIN_ASYNCHRONOUS_EVENT | u32::from(page.id),
            cdw11: u32::from(page.specific) << 16 | dwords >> 16,
            ..AdminCommand::default()
        };
        self.send(command, answer, page.name).map(drop)
    }

    /// Asks for a feature's current value that fits in the completion.
    ///
    /// # Errors
    /// If the drive or the kernel refuses.
    pub fn feature(&self, id: u8, cdw11: u32, asked: &'static str) -> Result<u32, AdminError> {
        let command = AdminCommand {
            opcode: GET_FEATURES,
            cdw10: u32::from(id),
            cdw11,
            ..AdminCommand::default()
        };
        self.send(command, &mut [], asked)
    }

    /// Sends a command that only asks, and gives the first dword of its completion.
    fn send(
        &self,
        command: AdminCommand,
        answer: &mut [u8],
        asked: &'static str,
    ) -> Result<u32, AdminError> {
        let node = || self.node.clone();
        let mut command = AdminCommand {
            addr: if answer.is_empty() { 0 } else { answer.as_mut_ptr() as u64 },
            data_len: answer.len() as u32,
            timeout_ms: TIMEOUT_MS,
            ..command
        };
        // SAFETY: the request's number says that `command` is of the 72 bytes it is (asserted below), and
        // the kernel writes at most `data_len` bytes to `addr`: that is `answer`, borrowed for the call.
        let status = unsafe {
            libc::ioctl(self.file.as_raw_fd(), NVME_IOCTL_ADMIN_CMD as _, &raw mut command)
        };
        match status {
            0 => Ok(command.result),
            -1 => {
                let error = io::Error::last_os_error();
                Err(match error.kind() {
                    io::ErrorKind::PermissionDenied => AdminError::NotPermitted { node: node() },
                    _ => AdminError::Io { node: node(), asked, error },
                })
            }
            status => Err(match status as u16 & STATUS_MASK {
                code if UNKNOWN_QUESTION.contains(&code) => {
                    AdminError::NotSupported { node: node(), asked }
                }
                status => AdminError::Refused { node: node(), asked, status },
            }),
        }
    }
}

/// `struct nvme_passthru_cmd` of `linux/nvme_ioctl.h`.
#[repr(C)]
#[derive(Default)]
struct AdminCommand {
    opcode: u8,
    flags: u8,
    reserved1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}
const _: () = assert!(size_of::<AdminCommand>() == 72);

/// `_IOWR('N', 0x41, struct nvme_admin_cmd)`.
const NVME_IOCTL_ADMIN_CMD: libc::c_ulong =
    (3 << 30) | ((size_of::<AdminCommand>() as libc::c_ulong) << 16) | (0x4E << 8) | 0x41;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_number_is_the_one_of_the_kernel_header() {
        assert_eq!(NVME_IOCTL_ADMIN_CMD, 0xC048_4E41);
    }

    #[test]
    fn a_node_that_is_no_controller_is_never_asked() {
        let elsewhere = Some(DeviceNumber { major: 240, minor: 0 });
        let error = Controller::open(Path::new("/dev/null"), elsewhere).unwrap_err();
        assert!(matches!(error, AdminError::NotTheController { .. }), "{error}");
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Controller::open(file.path(), None).unwrap_err();
        assert!(error.to_string().contains("was not asked"), "{error}");
    }

    #[test]
    fn a_device_that_is_no_nvme_drive_answers_with_an_error_that_says_what_was_asked() {
        let null = Controller::open(Path::new("/dev/null"), None).unwrap();
        let error = null.identify(Identify::Controller).unwrap_err().to_string();
        assert!(error.contains("/dev/null") && error.contains("Identify Controller"), "{error}");
    }
}
